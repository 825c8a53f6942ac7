/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  What the thread blocks of EVCHYB's kernels do: ranges of them, each of one kind, and rows that several of them compute.

  This header is read by C and by CUDA.
*/

#include <gallop/formatimpl.h>

#define EVCHYB_BLOCK   32  /* rows of a column block, and what rows of SubCSR are padded to a multiple of: the width of a warp */
#define EVCHYB_THREADS 256 /* threads of a thread block: the paper's */
#define EVCHYB_CLUSTER 8   /* thread blocks of a cluster: no more are portable */
#define EVCHYB_MARKS   20  /* most row blocks for adaptive distributions: powers of two up to the longest row of SubELL, or up to EVCHYB_THREADS and two more in SubCSR */
#define EVCHYB_CLASSES 17  /* size classes of column blocks, ceil(log2(length)) */

/* Warps per multiprocessor that keep the memory of an H200 busy, with EVCHYB_ATONCE entries per thread in flight */
#define EVCHYB_WARPS_WANTED 24
#define EVCHYB_ATONCE       8 /* entries that a thread has in flight, unless the shape says otherwise */

/* What the thread blocks of a range do */
typedef enum {
  EVCHYB_RANGE_ELL,     /* count: rows per thread, one after the other */
  EVCHYB_RANGE_SHARED,  /* count: warps per column block */
  EVCHYB_RANGE_CSR,     /* count: threads per row (TPR) */
  EVCHYB_RANGE_SPLIT,   /* several thread blocks per row, count: entries of each */
  EVCHYB_RANGE_CLUSTER, /* a cluster of thread blocks per row */
  EVCHYB_RANGE_EMPTY,   /* rows without entries */
  EVCHYB_RANGE_PACKED,  /* slices, count: of each warp */
  EVCHYB_RANGE_PIECES   /* pieces of packed rows, count: warps per piece */
} EVCHYBRangeKind;

/* Rows [rmark[k], rmark[k + 1]) belong to thread blocks [gbmark[k], gbmark[k + 1]) */
typedef struct {
  PetscInt        np; /* row blocks for adaptive distributions */
  PetscInt        rmark[EVCHYB_MARKS + 1];
  PetscCount      gbmark[EVCHYB_MARKS + 1];
  EVCHYBRangeKind kind[EVCHYB_MARKS];
  PetscInt        count[EVCHYB_MARKS];
} EVCHYBMarks;

/* Marks in the order in which thread blocks start, longest rows first, as the kernel reads them */
typedef struct {
  unsigned int begin, next;
  PetscInt     first, end; /* column blocks, rows of SubCSR, slices, pieces, or empty rows */
  short        kind, count;
} EVCHYBRange;

#define EVCHYB_RANGES (EVCHYB_CLASSES + EVCHYB_MARKS + 5)

typedef struct {
  int         n;
  EVCHYBRange range[EVCHYB_RANGES];
} EVCHYBLaunch;

/* Rows that several thread blocks compute: the last ones of SubCSR, or of those that packed storage has in pieces */
typedef struct {
  PetscInt     nsplit;   /* rows */
  PetscCount   nparts;   /* thread blocks that compute them */
  PetscCount  *splitblk; /* [nsplit + 1] first thread block of each row, counted from the first of them */
  PetscInt    *splitrow; /* [nparts] which of these rows a thread block computes a part of */
  PetscScalar *partial;  /* [nparts] on the GPU */
  int         *arrived;  /* [nsplit] on the GPU: thread blocks that have left their partial sum; 0 between products */
} EVCHYBParts;

PETSC_INTERN void           EVCHYBMarksAdd(EVCHYBMarks *, PetscInt, PetscCount, EVCHYBRangeKind, PetscInt);
PETSC_INTERN void           EVCHYBLaunchAdd(EVCHYBLaunch *, const EVCHYBMarks *, PetscInt);
PETSC_INTERN PetscErrorCode EVCHYBPartsPlan(PetscInt, const PetscCount[], PetscInt, EVCHYBParts *);
PETSC_INTERN PetscErrorCode EVCHYBPartsFree(EVCHYBParts *);
PETSC_INTERN PetscErrorCode EVCHYBPartsCopyToHost(const EVCHYBParts *, PetscMemType, EVCHYBParts *);
