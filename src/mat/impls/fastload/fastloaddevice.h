/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: what the stages of FASTLOAD on the GPU know of each other. The format is built by short and groups, where columns are short, or else by count, plan and fill; then there is product. */

#include <gallop/cudaimpl.h>
#include <cuda/atomic>
#include "../common/columns.h"
#include "../common/longrowsdevice.h"
#include "fastload.h"

static constexpr int          Threads  = 256; /* of a thread block */
static constexpr int          Warps    = Threads / WarpSize;
static constexpr int          Ahead    = 4;                                         /* lines, or entries, that a lane of the build loads before it uses the first */
static constexpr PetscInt     TaskPart = FASTLOAD_WINDOW / 2 / sizeof(PetscScalar); /* rows of a large result that tasks add to one after the other */
static constexpr unsigned int All      = 0xffffffffu;                               /* lanes of a warp */
static_assert(FASTLOAD_LENGTH == WarpSize, "a lane has one column of a block");

using Key = cuda::std::conditional_t<sizeof(PetscInt) == 8, unsigned long long, unsigned int>; /* what CUB sorts by */

/* An array that a kernel reads and nothing writes meanwhile */
template <typename T>
using In = const T *__restrict__;

enum {
  FLAG_CUT,   /* a group has more than one task */
  FLAG_EMPTY, /* a column is in no block */
  FLAGS
};

/* What the host wants to know, for one copy: blocks, tasks and lines of groups, and the flags */
struct Found {
  PetscInt blocks, tasks, lines;
  int      flags[FLAGS];
};

/* What the build by columns of any lengths needs and the product does not. Once entries are in order of columns, the memory that they were sorted in serves for blocks. */
struct FastLoadWorkspace {
  GallopColumns columns; /* entries in order of columns, but for those of long rows */
  struct {
    PetscInt *base; /* of each block, entries of its columns in the blocks before */
    PetscInt *rows; /* the row of each entry, in order of blocks */
  } fill;
  union
  {
    PetscInt *len;      /* [n + 1] entries of each sorted column, then 0 */
    PetscInt *firstcol; /* [1] before that: the first sorted column that has entries */
  };
  PetscInt           *begin;                    /* [n + 1] entries before each sorted column */
  PetscInt           *cols, *sortedcols, *from; /* [n] from: where the entries of each sorted column begin among those in columns */
  unsigned long long *colkey, *sortedcolkey;    /* [n] */
  PetscInt           *blocks, *tasknum, *lines; /* [groups + 1] those before each group */
  PetscInt           *step, *start, *top;       /* for steps of all columns */
  FastLoadStep       *steps;                    /* likewise */
  PetscInt           *owner;                    /* [m] of each row, a block that has entries of it */
  int                *apart;                    /* [m] whether another block adds to the row, or another lane of a line */
  Found              *found;
  int                *flags; /* of found */
  char               *cub;
  size_t              cubbytes;

  /* on the host */
  cudaStream_t   stream;
  int            lenbits, colbits;
  PetscInt       groups, most; /* most steps of all columns: different lengths */
  PetscInt       stepNum;
  FastLoadStep  *hostSteps;
  GallopLongRows longRowsPlan;
};

/* Of tasks, where the result is large */
struct FastLoadTaskSort {
  PetscInt *task, *order;
  Key      *key, *sortedkey;
  char     *cub;
  size_t    cubbytes;
};

/* Thread blocks where each of n pieces of work has a warp */
static inline unsigned int WarpsFor(PetscCount n)
{
  return GallopBlocksFor(n * WarpSize, Threads);
}

static __device__ __forceinline__ void Raise(int *flag)
{
  cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, cuda::memory_order_relaxed);
}

/* Over the lanes of a warp */
template <typename I>
static __device__ __forceinline__ I WarpMax(I value)
{
  for (int by = WarpSize / 2; by > 0; by /= 2) {
    const I other = __shfl_xor_sync(All, value, by);

    if (other > value) value = other;
  }
  return value;
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ int WarpMax(int value)
{
  return __reduce_max_sync(All, value);
}
#endif

/* Lanes with the same row */
static __device__ __forceinline__ unsigned int MatchAny(PetscInt row)
{
  if constexpr (sizeof(row) == 4) return __match_any_sync(All, (unsigned int)row);
  else return __match_any_sync(All, (unsigned long long)row);
}

/* Of FastLoad or of what the product's kernels know of it */
template <typename I, typename Arrays>
static __device__ __forceinline__ GallopPiece<I> GetPiece(const Arrays &fl, PetscInt piece)
{
  return GallopGetPiece<I>(fl.pieceRow, fl.pieceAt, fl.longPtr, piece, FASTLOAD_PIECE);
}

/* fastloaddevice.cu: the format and its memory; *done is false where there is not enough */
PETSC_INTERN PetscErrorCode FastLoadCreate_Device(const FastLoadOptions *, const GallopCSR *, FastLoad **);
PETSC_INTERN PetscErrorCode FastLoadTakeEntries(FastLoad *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode FastLoadTakeBlocks(FastLoad *, PetscCount, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode FastLoadDestroy_Device(void **);

/* fastloadshort.cu */
PETSC_INTERN PetscErrorCode FastLoadBuildShort(const FastLoadOptions *, const GallopCSR *, PetscCount, FastLoad **, PetscBool *);

/* fastloadworkspace.cu: memory, and sorts and sums of CUB's. Sums are of the numbers before each. */
PETSC_INTERN PetscErrorCode FastLoadWorkspaceGet(const FastLoadOptions *, const GallopCSR *, FastLoadWorkspace *, void **);
PETSC_INTERN PetscErrorCode FastLoadSortColumns(FastLoadWorkspace *, PetscInt);
PETSC_INTERN PetscErrorCode FastLoadTaskSortGet(const FastLoad *, FastLoadTaskSort *, cudaStream_t, void **);
PETSC_INTERN PetscErrorCode FastLoadTaskSortRun(const FastLoad *, FastLoadTaskSort *, cudaStream_t);
PETSC_INTERN PetscErrorCode FastLoadSum(FastLoadWorkspace *, PetscInt *, PetscInt *, PetscCount);
PETSC_INTERN PetscErrorCode FastLoadSumCounts(void *, size_t, PetscCount *, PetscCount, cudaStream_t);

/* fastloadcount.cu */
PETSC_INTERN PetscErrorCode FastLoadSumSpread(const GallopCSR *, unsigned long long *, cudaStream_t);
PETSC_INTERN PetscErrorCode FastLoadGetSpread(const GallopCSR *, PetscCount *, PetscBool *);
PETSC_INTERN PetscErrorCode FastLoadCountColumns(FastLoad *, const GallopCSR *, FastLoadWorkspace *);

/* fastloadplan.cu */
PETSC_INTERN PetscErrorCode FastLoadPlanBlocks(FastLoad *, const GallopCSR *, FastLoadWorkspace *);
PETSC_INTERN PetscErrorCode FastLoadPlanLongRows(FastLoad *, const GallopCSR *, const PetscInt *, GallopLongRows *);
PETSC_INTERN PetscErrorCode FastLoadWorkspaceFreePlan(FastLoadWorkspace *);
PETSC_INTERN PetscErrorCode FastLoadSetBlocks(FastLoad *, FastLoadWorkspace *);
PETSC_INTERN PetscErrorCode FastLoadOrderTasks(const FastLoad *, cudaStream_t, void **, const PetscInt **, PetscBool *);
PETSC_INTERN PetscErrorCode FastLoadSetTasks(const FastLoad *, const PetscInt *, cudaStream_t);

/* fastloadfill.cu */
PETSC_INTERN PetscErrorCode FastLoadFillBlocks(FastLoad *, const GallopCSR *, FastLoadWorkspace *);
PETSC_INTERN PetscErrorCode FastLoadFillOffsets(FastLoad *, const FastLoadWorkspace *);
PETSC_INTERN PetscErrorCode FastLoadFillLongRows(const FastLoad *, const GallopCSR *, const GallopLongRows *, cudaStream_t);
PETSC_INTERN PetscErrorCode FastLoadRefresh_Device(void *, const GallopCSR *, PetscCount, GallopRefresh *);

/* fastloadproduct.cu and fastloaddeterministic.cu */
PETSC_INTERN PetscErrorCode FastLoadProductOverlaps(PetscBool *);
PETSC_INTERN PetscErrorCode FastLoadApply_Device(void *, const GallopProduct *);
PETSC_INTERN PetscErrorCode FastLoadApplyTranspose_Device(void *, const GallopProduct *, PetscBool);
PETSC_INTERN PetscErrorCode FastLoadApplyDeterministic(const FastLoad *, const GallopVectors<PetscScalar> *, cudaStream_t);
