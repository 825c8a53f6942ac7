/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  EVCHYB's order of rows: by length within windows of consecutive rows (the paper's order: one window), rows of equal length by their first column or not; empty rows come first, long ones last.

  This header is read by C and by CUDA.
*/

#include <gallop/formatimpl.h>

#define EVCHYB_WINDOW_LEAST 256 /* rows of the windows that thread blocks sort on the GPU */
#define EVCHYB_WINDOW_MOST  4096
#define EVCHYB_FEW_WINDOWS  1024 /* of so few each thread block adds up those before its own */

/* How many windows thread blocks sort, 0 where all rows are sorted at once */
static inline PetscInt EVCHYBNumWindows(PetscInt m, PetscInt window)
{
  return window >= EVCHYB_WINDOW_LEAST && window <= EVCHYB_WINDOW_MOST ? (m + window - 1) / window : 0;
}

typedef struct _EVCHYB        EVCHYB;
typedef struct _EVCHYBOptions EVCHYBOptions;

/* The sort key of a row: class, then (window, length, first column) or, for long rows, (length, first column). Ties keep the order of rows, so host and GPU, sorting stably, agree. */
typedef struct {
  PetscInt window, maxell;
  int      lenbits;              /* of the length of a short row */
  int      colbits, longcolbits; /* of the first column; fewer than it has where 64 bits do not hold the key, none where it is not sorted by */
  int      colshift, longcolshift;
  int      classbit; /* the class stands here and above; keys have classbit + 2 bits */
} EVCHYBKeyShape;

#if defined(__CUDACC__)
  #define EVCHYB_HD static inline __host__ __device__
#else
  #define EVCHYB_HD static inline
#endif

enum { EVCHYB_EMPTY = 0, EVCHYB_SHORT = 1, EVCHYB_LONG = 2 };

EVCHYB_HD uint64_t EVCHYBKey(const EVCHYBKeyShape *shape, PetscInt row, PetscInt len, PetscInt firstcol)
{
  uint64_t key;

  if (!len) return 0;
  if (len > shape->maxell) return (uint64_t)EVCHYB_LONG << shape->classbit | (uint64_t)len << shape->longcolbits | (uint64_t)firstcol >> shape->longcolshift;
  key = shape->window ? (uint64_t)(row / shape->window) : 0;
  key = key << shape->lenbits | (uint64_t)len;
  key = key << shape->colbits | (uint64_t)firstcol >> shape->colshift;
  return (uint64_t)EVCHYB_SHORT << shape->classbit | key;
}

/* What the GPU counts of the rows that it sorts */
typedef struct {
  unsigned long long nempty, nlong;
  unsigned int       ended; /* thread blocks that have put their rows into place */
} EVCHYBRowCounts;

/*
  Rows in this order; where csr is, unless it is said otherwise. On the GPU, rows that have been counted and not sorted yet have no memory, and those that have been sorted may not have been counted: only
  the GPU knows the numbers then, which EVCHYBRowsSetCounts() tells the host when it has waited for them.
*/
typedef struct {
  PetscBool              counted; /* the host knows the numbers */
  PetscInt               nempty, nshort, nlong;
  const PetscInt        *all;      /* empty, short and long ones; NULL where the empty ones were left out, as nobody wants them */
  const PetscInt        *nonempty; /* [nshort + nlong]; NULL where they have not been counted */
  PetscInt              *longrows; /* [nlong] on the host */
  const EVCHYBRowCounts *counts;   /* on the GPU, of rows that were sorted there */
  void                  *memory;
} EVCHYBRows;

EVCHYB_HD PetscInt EVCHYBRoundUp(PetscInt len)
{
  return (len + 31) / 32 * 32;
}

PETSC_INTERN void           EVCHYBGetKeyShape(const EVCHYBOptions *, const GallopCSR *, EVCHYBKeyShape *);
PETSC_INTERN PetscErrorCode EVCHYBSortByKey(PetscInt, int, uint64_t *, PetscInt *);
PETSC_INTERN void           EVCHYBRowsCount(PetscInt, PetscInt, const PetscInt[], EVCHYBRows *);
PETSC_INTERN PetscErrorCode EVCHYBRowsSort_Host(const EVCHYBOptions *, const GallopCSR *, PetscBool, EVCHYBRows *);
PETSC_INTERN PetscErrorCode EVCHYBRowsFree_Host(EVCHYBRows *);
PETSC_INTERN void           EVCHYBRowsSetCounts(PetscInt, PetscInt, PetscInt, EVCHYBRows *);
PETSC_INTERN PetscErrorCode EVCHYBRowsSort_Device(const EVCHYBOptions *, const GallopCSR *, EVCHYBRows *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBRowsSortLong_Device(const EVCHYBOptions *, const GallopCSR *, EVCHYBRows *, PetscBool *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBRowsFree_Device(EVCHYBRows *);
