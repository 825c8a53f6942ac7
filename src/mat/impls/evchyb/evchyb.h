#pragma once

/*
  The EVC-HYB format: the arrays of Table 1 of

    D. Guo, W. Gropp, L. N. Olson, A hybrid format for better performance of sparse matrix-vector multiplication on a GPU

  Rows are sorted by length within windows of consecutive rows (the paper's order: one window), rows of equal length by their first column or not; empty
  rows are left out. Rows of at most LCmax entries, 32 at a time, are a
  column block of SubELL, as wide as its longest row; that is the paper's rule, that the last (number of rows of length i) mod 32 rows of each length
  are merged into the rows of length i + 1. The last rows that do not fill a column block, and all longer rows, are the rows of SubCSR.

  A matrix whose rows come in that order already, one that was permuted by EVCHYBOrder_Host(), keeps it when the windows are of one row: perm is the identity then.

  Column blocks are computed in the order in which they are stored. In a small matrix that is the order of their size class, ceil(log2(length)), so that long ones can be
  shared among warps. In a large one, those of at most EVCHYB_LONGCLASS are put in the order of their first rows, so that blocks that run together work on the same part
  of x and y.

  Padding has column -1 and value 0 and is never multiplied.

  Packed (include/gallop/packimpl.h), SubELL is replaced by slices of 64 rows, in the order of the matrix or sorted within windows, whichever takes fewer bytes; empty rows are among them.
  Rows of SubCSR, the longer ones only, are stored in pieces of EVCHYB_PIECE entries; where a row has several, they are added up as those of several GPU blocks are in plain storage.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include <gallop/packimpl.h>

#define EVCHYB_BLOCK   32  /* rows of a column block, and what rows of SubCSR are padded to a multiple of: the width of a warp */
#define EVCHYB_THREADS 256 /* threads of a GPU block: the paper's */
#define EVCHYB_CLUSTER 8   /* GPU blocks of a cluster: no more are portable */
#define EVCHYB_MARKS   20  /* most row blocks for adaptive distributions: powers of two up to the longest row of SubELL, or up to EVCHYB_THREADS and two more in SubCSR */

#define EVCHYB_CLASSES   17 /* size classes of column blocks, ceil(log2(length)) */
#define EVCHYB_LONGCLASS 5  /* column blocks longer than 32 stay in order of length: one that starts last would be waited for */

typedef enum { EVCHYB_PLAIN, EVCHYB_PACKED, EVCHYB_AUTO } EVCHYBStorage;

typedef struct {
  PetscInt      window;   /* rows are sorted within windows of so many rows, 0: all rows, as in the paper, 1: as they come, but for empty and long ones */
  PetscInt      maxell;   /* longest row that SubELL takes: the paper's is 128; PETSC_DECIDE chooses */
  PetscInt      split;    /* rows of SubCSR longer than this are computed by several GPU blocks, each so many entries */
  PetscInt      rowsmax;  /* most rows that a thread computes in SubELL */
  PetscInt      columns;  /* most columns of a column block of SubELL that a warp computes before the block is shared among warps */
  PetscInt      byrow;    /* matrices of so many entries have column blocks in order of rows */
  PetscBool     firstcol; /* rows of one length are sorted by their first column, as in the paper, else they stay as they come */
  EVCHYBStorage storage;
  PetscInt      slices; /* of packed rows, that a warp computes one after the other, 0 chooses */
} EVCHYBOptions;

/* What the GPU blocks of a range do */
typedef enum {
  EVCHYB_RANGE_ELL,     /* count: rows a thread, one after the other */
  EVCHYB_RANGE_SHARED,  /* count: warps a column block */
  EVCHYB_RANGE_CSR,     /* count: threads a row (TPR) */
  EVCHYB_RANGE_SPLIT,   /* several GPU blocks a row, each so many entries */
  EVCHYB_RANGE_CLUSTER, /* a cluster of GPU blocks a row */
  EVCHYB_RANGE_EMPTY,   /* rows without entries */
  EVCHYB_RANGE_PACKED,  /* slices, count: of a warp */
  EVCHYB_RANGE_PIECES   /* pieces of packed rows, count: warps a piece */
} EVCHYBRangeKind;

#define EVCHYB_PACK_EACH  8  /* slices of a warp, one after the other, at most */
#define EVCHYB_PACK_WARPS 16 /* a multiprocessor: a range of GPU blocks with 8, 4 or 2 slices a warp ends where no more than that are left for each of so many warps */
/* Where it is not asked for, a matrix is packed that has so many slices, with pieces of long rows, and entries a multiprocessor, and so few bytes an entry beside its value: measured, docs/packing.md */
#define EVCHYB_PACK_SLICES  10
#define EVCHYB_PACK_ENTRIES 9000
#define EVCHYB_PACK_BYTES   1.6
/* The same where entries take more than that, mostly for columns in 16 bits: warps have a slice each then, and fewer would leave the GPU idle */
#define EVCHYB_PACK_STORED_SLICES 20
#define EVCHYB_PACK_STORED_BYTES  2.6
#define EVCHYB_PIECE              4096 /* entries of a piece */
#define EVCHYB_SAMPLE             512  /* pieces of a sample, at most, */
#define EVCHYB_SAMPLED            1024 /* and the entries of each that are enough for it */
#define EVCHYB_SHORT_ROW          512  /* that a warp computes, longer pieces a GPU block */
#define EVCHYB_WARP_ROW           3072 /* the same at most, where long rows are many: measured, docs/packing.md */

#define EVCHYB_ATONCE 8 /* entries that a thread has in flight, unless the shape says otherwise */

/* Rows [rmark[k], rmark[k + 1]) belong to GPU blocks [gbmark[k], gbmark[k + 1]) */
typedef struct {
  PetscInt        np; /* row blocks for adaptive distributions */
  PetscInt        rmark[EVCHYB_MARKS + 1];
  PetscCount      gbmark[EVCHYB_MARKS + 1];
  EVCHYBRangeKind kind[EVCHYB_MARKS];
  PetscInt        count[EVCHYB_MARKS];
} EVCHYBMarks;

/* The kernel is compiled for several numbers of entries in flight a thread, and of threads a processor in return */
typedef enum {
  EVCHYB_SHAPE_SHORT, /* short rows: half as many entries in flight */
  EVCHYB_SHAPE_LARGE, /* column blocks in order of rows: more entries than the caches hold */
  EVCHYB_SHAPE_DEEP   /* few or long rows: a thread waits least often */
} EVCHYBShape;

/* The marks of both parts in the order in which blocks start, longest rows first, as the kernel reads them */
typedef struct {
  unsigned int begin, next;
  PetscInt     first, end; /* column blocks, rows of SubCSR, or empty rows */
  short        kind, count;
} EVCHYBRange;

#define EVCHYB_RANGES (EVCHYB_CLASSES + EVCHYB_MARKS + 5)

typedef struct {
  int         n;
  EVCHYBRange range[EVCHYB_RANGES];
} EVCHYBLaunch;

typedef struct {
  PetscInt     n;                       /* rows, a multiple of EVCHYB_BLOCK */
  PetscInt     nb;                      /* column blocks */
  PetscCount   nz;                      /* stored entries, padding included */
  PetscCount  *bnz;                     /* [nb + 1] first entry of each column block */
  PetscInt    *clen;                    /* [nb] length of each column block */
  PetscInt    *j;                       /* [nz] */
  PetscScalar *as;                      /* [nz] entry k of row r of column block b is at bnz[b] + EVCHYB_BLOCK k + r */
  PetscInt     LCmax;                   /* longest column block */
  PetscInt     classes[EVCHYB_CLASSES]; /* column blocks of each size class */
  EVCHYBMarks  marks;                   /* rows here are column blocks */
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
  PetscInt     split;    /* entries of a row that one GPU block computes */
  PetscInt     nsplit;   /* rows computed by several GPU blocks: the last ones */
  PetscCount   nparts;   /* GPU blocks that compute them */
  PetscCount  *splitblk; /* [nsplit + 1] first GPU block of each, counted from the first of them */
  PetscInt    *splitrow; /* [nparts] which of these rows a GPU block computes a part of */
  PetscScalar *partial;  /* [nparts] */
  int         *arrived;  /* [nsplit] GPU blocks that have left their partial sum; 0 between products */
} SubCSR;

typedef struct {
  PetscMemType  memtype;
  PetscInt      m, n;
  PetscCount    nz;      /* entries of the matrix */
  PetscInt      nempty;  /* rows without entries */
  PetscInt      nlisted; /* nempty when they are the fewer, else 0: listed, they are zeroed by the kernel and need no pass over the vector before it */
  PetscInt     *perm;    /* [ell.n + csr.n + nlisted] the row of the matrix that each row is */
  SubELL        ell;
  SubCSR        csr;
  GallopPack   *pack; /* NULL where storage is plain */
  PetscBool     lost; /* the pack was, for want of room */
  PetscCount    maxbytes;
  PetscBool     inorder; /* perm is the identity, and no product reads it */
  PetscCount    nzell;   /* entries of the matrix in SubELL */
  size_t        bytes;
  PetscBool     byrow; /* column blocks up to EVCHYB_LONGCLASS are in order of rows */
  EVCHYBShape   shape;
  EVCHYBLaunch  launch;     /* for the GPU */
  int           processors; /* of the GPU, 0 on the host */
  PetscBool     overlaps;   /* the GPU can start a kernel while the one before it ends, and has clusters of blocks */
  PetscBool     fresh;      /* no product since the arrays were written */
  EVCHYBOptions options;
} EVCHYB;

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

#define EVCHYB_ROWBITS (sizeof(PetscInt) == 8 ? 59 : 31) /* of the number of a row: with five bits of size class above it a key fits 64 bits */

/* ceil(log2(len)) of a column block: at least one entry, at most 65535 */
EVCHYB_HD int EVCHYBClass(PetscInt len)
{
  int c = 0;

  while (((PetscInt)1 << c) < len) c++;
  return c;
}

/* The sort key of a column block; ties keep the order of the sorted rows */
EVCHYB_HD uint64_t EVCHYBBlockKey(PetscBool byrow, PetscInt longest, PetscInt firstrow)
{
  const int c = EVCHYBClass(longest);

  if (!byrow) return (uint64_t)c;
  return c > EVCHYB_LONGCLASS ? (uint64_t)c << EVCHYB_ROWBITS : (uint64_t)firstrow;
}

/* Whether some rows are neither stored nor listed: empty ones, where most are */
static inline PetscBool EVCHYBLeavesRows(const EVCHYB *ev)
{
  return (PetscBool)(!ev->pack && ev->nempty > ev->nlisted);
}

EVCHYB_HD PetscInt EVCHYBRoundUp(PetscInt len)
{
  return (len + EVCHYB_BLOCK - 1) / EVCHYB_BLOCK * EVCHYB_BLOCK;
}

PETSC_INTERN EVCHYBOptions  EVCHYBOptionsFor(const EVCHYBOptions *, const GallopCSR *);
PETSC_INTERN void           EVCHYBGetKeyShape(const EVCHYBOptions *, const GallopCSR *, EVCHYBKeyShape *);
PETSC_INTERN void           EVCHYBSplit(PetscInt, PetscInt, PetscInt, EVCHYB *);
PETSC_INTERN PetscBool      EVCHYBWantsPack(const EVCHYB *, const GallopCSR *, PetscInt); /* whether to try: empty rows */
PETSC_INTERN PetscErrorCode EVCHYBMakePack(const GallopCSR *, const PetscInt[], PetscInt, const PetscInt[], PetscInt, EVCHYB *);
PETSC_INTERN PetscErrorCode EVCHYBRefreshPack(const GallopFormatWork *, const GallopCSR *, EVCHYB *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBPlan(EVCHYB *, const PetscCount[], PetscCount **, PetscInt **);

PETSC_INTERN PetscErrorCode EVCHYBOrder_Host(const void *, const GallopCSR *, PetscInt[]);

PETSC_INTERN const GallopFormatWork EVCHYBHost, EVCHYBDevice;

/* a host copy of what the GPU has, for tests and viewers */
PETSC_EXTERN PetscErrorCode EVCHYBCopyToHost(const EVCHYB *, EVCHYB **);
PETSC_EXTERN PetscErrorCode EVCHYBDestroyHostCopy(EVCHYB **);
