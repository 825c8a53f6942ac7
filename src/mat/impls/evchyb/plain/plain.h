/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  EVCHYB's plain storage, the paper's: arrays of its Table 1.

  Rows of at most LCmax entries, 32 at a time, are a column block of SubELL, as wide as its longest row; that is the paper's rule, that the last (number of rows of length i) mod 32 rows of
  each length are merged into the rows of length i + 1. The last rows that do not fill a column block, and all longer rows, are the rows of SubCSR.

  Column blocks are computed in the order in which they are stored. In a small matrix that is the order of their size class, ceil(log2(length)), so that long ones can be shared among warps. In a
  large one, those of at most EVCHYB_LONGCLASS are put in the order of their first rows, so that blocks that run together work on the same part of x and y.

  Padding has column -1 and value 0 and is never multiplied.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include "../launch.h"
#include "../rows.h"
#include "../../common/bits.h"

#define EVCHYB_LONGCLASS 5 /* column blocks longer than 32 stay in order of length: one that starts last would be waited for */

/* The kernel is compiled for several numbers of entries in flight per thread, and of threads per multiprocessor in return */
typedef enum {
  EVCHYB_SHAPE_SHORT, /* short rows: half as many entries in flight */
  EVCHYB_SHAPE_LARGE, /* column blocks in order of rows: more entries than the caches hold */
  EVCHYB_SHAPE_DEEP   /* few or long rows: a thread waits least often */
} EVCHYBShape;

typedef struct {
  PetscInt      n;                       /* rows, a multiple of EVCHYB_BLOCK */
  PetscInt      nb;                      /* column blocks */
  PetscCount    nz;                      /* stored entries, padding included */
  PetscCount   *bnz;                     /* [nb + 1] first entry of each column block */
  PetscInt     *clen;                    /* [nb] length of each column block */
  GallopColumn *j;                       /* [nz] */
  PetscScalar  *as;                      /* [nz] entry k of row r of column block b is at bnz[b] + EVCHYB_BLOCK k + r */
  PetscInt      LCmax;                   /* longest column block */
  PetscInt      classes[EVCHYB_CLASSES]; /* column blocks of each size class */
  EVCHYBMarks   marks;                   /* rows here are column blocks */
  PetscCount    gpublks;
} SubELL;

typedef struct {
  PetscInt      n;
  PetscInt      nmerged; /* the first rows: those left over from SubELL */
  PetscCount    nz;      /* stored entries, padding included */
  PetscCount   *i;       /* [n + 1], multiples of EVCHYB_BLOCK */
  GallopColumn *j;
  PetscScalar  *as;
  EVCHYBMarks   marks;
  PetscCount    gpublks;
  PetscInt      split; /* entries of a row that one thread block computes, where several compute it */
  EVCHYBParts   parts; /* of the last rows */
} SubCSR;

typedef struct {
  PetscInt    nlisted; /* nempty when they are the fewer, else 0: listed, they are zeroed by the kernel and need no pass over the vector before it */
  PetscInt   *perm;    /* [ell.n + csr.n + nlisted] the row of the matrix that each row is */
  SubELL      ell;
  SubCSR      csr;
  PetscBool   inorder; /* perm is the identity, and no product reads it */
  PetscCount  nzell;   /* entries of the matrix in SubELL */
  PetscBool   byrow;   /* column blocks up to EVCHYB_LONGCLASS are in order of rows */
  EVCHYBShape shape;
} EVCHYBPlain;

/* The arrays, and how many elements each has; on the GPU they lie in two allocations, which begin at perm and at ell.j */
#define EVCHYB_PLAIN_ARRAYS(ARRAY, p) \
  ARRAY(perm, (p)->ell.n + (p)->csr.n + (p)->nlisted) \
  ARRAY(ell.bnz, (p)->ell.nb + 1) \
  ARRAY(ell.clen, (p)->ell.nb) \
  ARRAY(ell.j, (p)->ell.nz) \
  ARRAY(ell.as, (p)->ell.nz) \
  ARRAY(csr.i, (p)->csr.n + 1) \
  ARRAY(csr.j, (p)->csr.nz) \
  ARRAY(csr.as, (p)->csr.nz)

/* Bits of the sort key of column blocks, of which rowbits are a row's number: no more than there have to be, as a sort takes as long as they are many */
static inline int EVCHYBRowBits(PetscInt m)
{
  return GallopSortBits((uint64_t)PetscMax(1, m) - 1);
}

static inline int EVCHYBBlockKeyBits(PetscBool byrow, int rowbits)
{
  return byrow ? rowbits + 4 : 5;
}

/* ceil(log2(len)) of a column block: at least one entry, at most 65535 */
EVCHYB_HD int EVCHYBClass(PetscInt len)
{
  int c = 0;

  while (((PetscInt)1 << c) < len) c++;
  return c;
}

/* The sort key of a column block; ties keep the order of the sorted rows */
EVCHYB_HD uint64_t EVCHYBBlockKey(PetscBool byrow, int rowbits, PetscInt longest, PetscInt firstrow)
{
  const int c = EVCHYBClass(longest);

  if (!byrow) return (uint64_t)c;
  return c > EVCHYB_LONGCLASS ? (uint64_t)(c - EVCHYB_LONGCLASS) << rowbits : (uint64_t)firstrow;
}

/* Where the sorted rows are split, from the number of empty, short and long ones (section 2.1): column blocks, rows of SubCSR and how many of them come from SubELL, empty rows that are listed */
typedef struct {
  PetscInt nb, ncsr, nmerged, nlisted;
} EVCHYBSplit;

EVCHYB_HD EVCHYBSplit EVCHYBSplitOf(PetscInt m, PetscInt nempty, PetscInt nlong)
{
  const PetscInt nshort = m - nempty - nlong;
  EVCHYBSplit    split;

  split.nb      = nshort / EVCHYB_BLOCK;
  split.nmerged = nshort % EVCHYB_BLOCK;
  split.ncsr    = split.nmerged + nlong;
  split.nlisted = nempty <= m / 2 ? nempty : 0;
  return split;
}

/* Whether some rows are neither stored nor listed: empty ones, where most are */
static inline PetscBool EVCHYBLeavesRows(const EVCHYBPlain *plain, PetscInt nempty)
{
  return (PetscBool)(nempty > plain->nlisted);
}

PETSC_INTERN void           EVCHYBPlainSplit(const EVCHYB *, const EVCHYBRows *, EVCHYBPlain *);
PETSC_INTERN PetscErrorCode EVCHYBPlainPlan(EVCHYB *, EVCHYBPlain *, const PetscCount[]);
PETSC_INTERN PetscErrorCode EVCHYBPlainBuild_Host(EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBPlainOrder_Host(const EVCHYBOptions *, const GallopCSR *, PetscInt[]);
PETSC_INTERN PetscErrorCode EVCHYBPlainBuild_Device(EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBPlainRefresh_Device(EVCHYB *, const GallopCSR *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBPlainRestore_Device(const EVCHYBPlain *, const PetscInt[], PetscInt[], PetscScalar[]);
PETSC_INTERN PetscErrorCode EVCHYBPlainFree_Device(EVCHYB *);
PETSC_INTERN PetscErrorCode EVCHYBPlainCopyToHost(const EVCHYBPlain *, PetscMemType, EVCHYBPlain **);
PETSC_INTERN PetscErrorCode EVCHYBPlainFree_Host(EVCHYBPlain **);
