#pragma once

/*
  The EVC-HYB format: the arrays of Table 1 of

    D. Guo, W. Gropp, L. N. Olson, A hybrid format for better performance of sparse matrix-vector multiplication on a GPU

  Rows are sorted by length, rows of equal length by their first column; empty rows are left out. Rows of at most LCmax entries, 32 at a time, are a
  column block of SubELL, as wide as its longest row; that is the paper's rule, that the last (number of rows of length i) mod 32 rows of each length
  are merged into the rows of length i + 1. The last rows that do not fill a column block, and all longer rows, are the rows of SubCSR.

  Padding has column -1 and value 0 and is never multiplied.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include <gallop/formatimpl.h>

#define EVCHYB_BLOCK   32 /* rows of a column block, and what rows of SubCSR are padded to a multiple of: the width of a warp */
#define EVCHYB_THREADS 256 /* threads of a GPU block: the paper's */
#define EVCHYB_MARKS   12 /* most row blocks for adaptive distributions: powers of two up to EVCHYB_THREADS, and one for split rows */

typedef struct {
  PetscInt window;   /* rows are sorted within windows of so many rows, 0: all rows, as in the paper */
  PetscInt maxell;   /* longest row that SubELL takes: the paper's 128 */
  PetscInt split;    /* rows of SubCSR longer than this are computed by several GPU blocks, each so many entries */
  PetscInt rowsmax;  /* most rows that a thread computes in SubELL */
  PetscInt warpsmax; /* most warps that share a column block of SubELL when there are few */
} EVCHYBOptions;

/* Rows [rmark[k], rmark[k + 1]) belong to GPU blocks [gbmark[k], gbmark[k + 1]) */
typedef struct {
  PetscInt   np; /* row blocks for adaptive distributions */
  PetscInt   rmark[EVCHYB_MARKS + 1];
  PetscCount gbmark[EVCHYB_MARKS + 1];
  PetscInt   threads[EVCHYB_MARKS]; /* SubELL: rows a thread; SubCSR: threads a row (TPR), 0 where rows are split */
} EVCHYBMarks;

typedef struct {
  PetscInt     n;     /* rows, a multiple of EVCHYB_BLOCK */
  PetscInt     nb;    /* column blocks */
  PetscCount   nz;    /* stored entries, padding included */
  PetscCount  *bnz;   /* [nb + 1] first entry of each column block */
  PetscInt    *clen;  /* [nb] length of each column block */
  PetscInt    *j;     /* [nz] */
  PetscScalar *as;    /* [nz] entry k of row r of column block b is at bnz[b] + EVCHYB_BLOCK k + r */
  PetscInt     LCmax; /* longest column block */
  EVCHYBMarks  marks; /* rows here are column blocks */
  PetscInt     warps; /* warps that share a column block */
  PetscCount   gpublks;
} SubELL;

typedef struct {
  PetscInt     n;
  PetscInt     nmerged; /* the first rows: those left over from SubELL */
  PetscCount   nz;      /* stored entries, padding included */
  PetscCount  *i;       /* [n + 1], multiples of EVCHYB_BLOCK */
  PetscInt    *j;
  PetscScalar *as;
  EVCHYBMarks  marks;
  PetscCount   gpublks;
  PetscInt     nsplit;   /* rows computed by several GPU blocks: the last ones */
  PetscCount  *splitblk; /* [nsplit + 1] first GPU block of each, counted from the first of them */
  PetscScalar *partial;  /* [splitblk[nsplit]] */
  int         *arrived;  /* [nsplit] GPU blocks that have left their partial sum; 0 between products */
} SubCSR;

typedef struct {
  PetscMemType memtype;
  PetscInt     m, n;
  PetscCount   nz;        /* entries of the matrix */
  PetscInt     nempty;    /* rows without entries */
  PetscInt    *perm;      /* [ell.n + csr.n] the row of the matrix that each row is */
  SubELL       ell;
  SubCSR       csr;
  PetscCount   nzell;     /* entries of the matrix in SubELL */
  size_t       bytes;
  PetscInt     processors; /* of the GPU, 0 on the host */
  EVCHYBOptions options;
} EVCHYB;

/* The sort key of a row: class, then (window, length, first column) or, for long rows, (length, first column). Ties keep the order of rows, so host and GPU, sorting stably, agree. */
typedef struct {
  PetscInt window, maxell;
  int      lenbits;             /* of the length of a short row */
  int      colbits, longcolbits; /* of the first column; fewer than it has where 64 bits do not hold the key */
  int      colshift, longcolshift;
  int      classbit; /* the class stands here and above; keys have classbit + 2 bits */
} EVCHYBKeyShape;

#if defined(__CUDACC__)
  #define EVCHYB_HD static inline __host__ __device__
#else
  #define EVCHYB_HD static inline
#endif

enum {
  EVCHYB_EMPTY = 0,
  EVCHYB_SHORT = 1,
  EVCHYB_LONG  = 2
};

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

EVCHYB_HD PetscInt EVCHYBRoundUp(PetscInt len)
{
  return (len + EVCHYB_BLOCK - 1) / EVCHYB_BLOCK * EVCHYB_BLOCK;
}

PETSC_INTERN void           EVCHYBGetKeyShape(const EVCHYBOptions *, PetscInt, PetscInt, EVCHYBKeyShape *);
PETSC_INTERN void           EVCHYBSplit(const EVCHYBOptions *, PetscInt, PetscInt, PetscInt, EVCHYB *);
PETSC_INTERN PetscErrorCode EVCHYBPlan(EVCHYB *, const PetscInt[], const PetscCount[], PetscInt, PetscCount **);

PETSC_INTERN PetscErrorCode EVCHYBBuild_Host(const EVCHYBOptions *, const GallopCSR *, PetscCount, EVCHYB **);
PETSC_INTERN PetscErrorCode EVCHYBRefresh_Host(EVCHYB *, const GallopCSR *);
PETSC_INTERN PetscErrorCode EVCHYBApply_Host(const EVCHYB *, const GallopProduct *);
PETSC_INTERN PetscErrorCode EVCHYBDestroy_Host(EVCHYB **);

PETSC_INTERN PetscErrorCode EVCHYBBuild_Device(const EVCHYBOptions *, const GallopCSR *, PetscCount, EVCHYB **);
PETSC_INTERN PetscErrorCode EVCHYBRefresh_Device(EVCHYB *, const GallopCSR *);
PETSC_INTERN PetscErrorCode EVCHYBApply_Device(const EVCHYB *, const GallopProduct *);
PETSC_INTERN PetscErrorCode EVCHYBDestroy_Device(EVCHYB **);

/* a host copy of what the GPU has, for tests and viewers */
PETSC_EXTERN PetscErrorCode EVCHYBCopyToHost(const EVCHYB *, EVCHYB **);
PETSC_EXTERN PetscErrorCode EVCHYBDestroyHostCopy(EVCHYB **);
