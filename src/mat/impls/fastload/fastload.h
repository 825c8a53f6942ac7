#pragma once

/*
  The FastLoad format, names are those of section IV of

    J. Hu, H. Luo, H. Jiang, G. Xiao, K. Li, FastLoad: Speeding Up Data Loading of Both Sparse Matrix and Vector for SpMV on GPUs

  Columns are sorted by their number of entries, the shortest first and stably; empty ones are left out. The sorted columns make steps: step 0 takes from each
  column as many entries as the shortest one has, step 1 from all columns that have entries left as many as the shortest of these has left, and so on. A step is
  cut into blocks of blkLength = 32 columns, fewer in the last one, and blkHeight entries of each column: all of the step's, or as many as the option allows.
  A block is stored line by line, a line being one entry of each of its columns (the zigzag order of Figure 6), so there is no padding. In a column entries are in order of rows.

  The blocks of the same 32 columns of a step follow each other, so the limit of blkHeight does not move entries.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include <gallop/formatimpl.h>

#define FASTLOAD_LENGTH 32 /* columns of a block: the width of a warp */

typedef struct {
  PetscInt height; /* most entries of a column in a block, 0 for no limit */
} FastLoadOptions;

/* How the entries of a line are added to the result: what the lines of a block allow at most */
enum {
  FASTLOAD_ONE_ROW,  /* each line has entries of one row only: one sum ("prefix sum") */
  FASTLOAD_RUNS,     /* some neighbours are in the same row: sums of runs ("segment sum") */
  FASTLOAD_DISTINCT, /* no neighbours are: each by itself */
  FASTLOAD_CLASSES,
  FASTLOAD_SHARED = 4 /* added to the class: rowShared has bits for some rows */
};

/* Entries base, ..., base + height - 1 of the sorted columns from start on */
typedef struct {
  PetscInt   start, base, height;
  PetscCount ptr; /* entries before */
  PetscInt   blk; /* blocks before */
} FastLoadStep;

typedef struct {
  PetscMemType    memtype;
  PetscInt        m, n;
  PetscCount      nz;
  PetscInt        length; /* of a block: FASTLOAD_LENGTH, smaller in tests */
  PetscInt        ncols;  /* columns that have entries */
  PetscInt        blkNum;
  PetscCount     *blkPtr;    /* [blkNum + 1] first entry of each block */
  PetscInt       *blkColIdx; /* [blkNum] its first column, in sortedX */
  PetscInt       *blkHeight; /* [blkNum] */
  unsigned char  *blkLength; /* [blkNum] */
  unsigned char  *blkClass;  /* [blkNum] */
  PetscInt       *rowIdx;    /* [nz] */
  PetscScalar    *value;     /* [nz] */
  PetscInt       *csrIdx;    /* [nz] where the entry is in CSR, for new values */
  unsigned int   *rowShared; /* [(nz + 31) / 32] bit k % 32 of word k / 32: another warp, or another run of the same line, adds to the row of entry k */
  PetscInt       *perm;      /* [ncols] the column of the matrix that each sorted one is */
  PetscScalar    *sortedX;   /* [ncols] x in order of the sorted columns, made in each product */
  size_t          bytes;
  FastLoadOptions options;
} FastLoad;

#if defined(__CUDACC__)
  #define FASTLOAD_HD static inline __host__ __device__
#else
  #define FASTLOAD_HD static inline
#endif

FASTLOAD_HD PetscInt FastLoadCeil(PetscInt a, PetscInt b)
{
  return a ? (a - 1) / b + 1 : 0;
}

/* Blocks that lie below each other in a step */
FASTLOAD_HD PetscInt FastLoadPieces(const FastLoadStep *step, PetscInt limit)
{
  return limit ? FastLoadCeil(step->height, limit) : 1;
}

/* Where entry k of sorted column col is stored */
FASTLOAD_HD PetscCount FastLoadPosition(PetscInt num, const FastLoadStep steps[], PetscInt ncols, PetscInt length, PetscInt col, PetscInt k)
{
  PetscInt lo = 0, hi = num - 1;

  while (lo < hi) { /* the step that takes it */
    const PetscInt mid = hi - (hi - lo) / 2;

    if (steps[mid].base <= k) lo = mid;
    else hi = mid - 1;
  }
  {
    const PetscInt first = (col - steps[lo].start) / length * length, lane = col - steps[lo].start - first; /* of the step's columns */
    const PetscInt left = ncols - steps[lo].start - first, width = left < length ? left : length;

    return steps[lo].ptr + (PetscCount)first * steps[lo].height + (PetscCount)(k - steps[lo].base) * width + lane;
  }
}

typedef struct {
  PetscCount ptr;
  PetscInt   colidx, length, height;
} FastLoadBlock;

FASTLOAD_HD FastLoadBlock FastLoadGetBlock(PetscInt num, const FastLoadStep steps[], PetscInt ncols, PetscInt length, PetscInt limit, PetscInt b)
{
  PetscInt      lo = 0, hi = num - 1;
  FastLoadBlock block;

  while (lo < hi) { /* the step that it is of */
    const PetscInt mid = hi - (hi - lo) / 2;

    if (steps[mid].blk <= b) lo = mid;
    else hi = mid - 1;
  }
  {
    const PetscInt pieces = FastLoadPieces(&steps[lo], limit), first = (b - steps[lo].blk) / pieces * length, above = (b - steps[lo].blk) % pieces * limit;
    const PetscInt left = ncols - steps[lo].start - first, below = steps[lo].height - above;

    block.colidx = steps[lo].start + first;
    block.length = left < length ? left : length;
    block.height = limit && below > limit ? limit : below;
    block.ptr    = steps[lo].ptr + (PetscCount)first * steps[lo].height + (PetscCount)above * block.length;
  }
  return block;
}

PETSC_INTERN void FastLoadPlan(PetscInt, FastLoadStep[], PetscInt, PetscInt, PetscInt, PetscInt *);

PETSC_INTERN const GallopFormatWork FastLoadHost, FastLoadDevice;

/* for tests: blocks of another length, which only the host takes; and a host copy of what either place has */
PETSC_EXTERN PetscErrorCode FastLoadBuild_Host(PetscInt, const FastLoadOptions *, const GallopCSR *, PetscCount, FastLoad **);
PETSC_EXTERN PetscErrorCode FastLoadCopyToHost(const FastLoad *, FastLoad **);
PETSC_EXTERN PetscErrorCode FastLoadDestroyHostCopy(FastLoad **);
