#pragma once

/* For TiledSpMM's .cu files: what its kernels have in common */

#include <gallop/cudaimpl.h>
#include "tiledspmm.h"

static_assert(TILEDSPMM_WARP == WarpSize, "the rows of a warp are padded together");

/* B and C from some column on, how many columns they have from there, and whether C has numbers that the product is added to */
template <typename V, typename I>
struct DenseView {
  const V *b;
  V       *c;
  I        ldb, ldc, columns;
  bool     add;
};

template <typename V, typename I>
static __device__ __forceinline__ void Store(const DenseView<V, I> &dense, I row, I column, V sum)
{
  V *const to = dense.c + (PetscCount)column * dense.ldc + row;

  *to = dense.add ? *to + sum : sum;
}

/* The first of sorted numbers array[begin, end) that is not less */
template <typename T>
static __device__ __forceinline__ PetscCount LowerBound(const T *array, PetscCount begin, PetscCount end, T value)
{
  while (begin < end) {
    const PetscCount mid = begin + (end - begin) / 2;

    if (array[mid] < value) begin = mid + 1;
    else end = mid;
  }
  return begin;
}

/* Columns of a product from one on, as many as there are threads for */
static inline DenseView<PetscScalar, PetscInt> DenseFrom(const GallopDenseProduct *p, PetscCount begin, PetscCount columns)
{
  return {p->b + begin * p->ldb, p->c + begin * p->ldc, p->ldb, p->ldc, (PetscInt)columns, (bool)p->add};
}

/* Calls f(first, columns, R) for all columns: R at once as often as they fit, which one call does for as many as a grid of GPU blocks takes, then what is left by the next power of two */
template <typename F>
static inline PetscErrorCode ForColumns(PetscInt columns, PetscInt R, PetscCount blocks, F f)
{
  const PetscInt   whole = columns / R * R;
  const PetscCount most  = PetscMax((PetscCount)1, (PetscCount)PETSC_INT32_MAX / blocks) * R;
  PetscInt         left  = 1;

  PetscFunctionBegin;
  for (PetscCount begin = 0; begin < whole; begin += most) PetscCall(f(begin, PetscMin(whole - begin, most), R));
  while (left < columns - whole) left *= 2;
  if (whole < columns) PetscCall(f((PetscCount)whole, (PetscCount)(columns - whole), left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether so many entries in so many tiles are worth more together than one by one */
static inline bool TiledSpMMIsDense(double entries, double tiles)
{
  return tiles > 0 && entries >= 0.25 * TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS * tiles;
}

/* Kernels load what no other kernel writes while the one before them ends, but in the first product after entries were written */
static inline bool Overlaps(const TiledSpMM *t)
{
  return t->overlaps && !t->fresh;
}

/* What rows, or eight rows, are cut into, and sums over them: pieces, and of rows with several how many, with few and with many, and their partial sums */
struct Pieces {
  PetscCount num, few, many, slots;
};

/* Of some rows that are cut into num pieces each, at the same places */
static __host__ __device__ __forceinline__ Pieces PiecesOf(PetscCount num, PetscCount rows)
{
  return {num, num > 1 && num <= TILEDSPMM_FEW ? rows : 0, num > TILEDSPMM_FEW ? rows : 0, num > 1 ? num * rows : 0};
}

/* Where number r of rows that are cut is among all such rows: those with many pieces come from the end on */
static __device__ __forceinline__ PetscCount PlaceOfSplit(const Pieces &own, const Pieces &before, PetscCount r, PetscCount nsplit)
{
  return own.few ? before.few + r : nsplit - 1 - (before.many + r);
}

struct PiecesAdd {
  __host__ __device__ Pieces operator()(const Pieces &a, const Pieces &b) const { return {a.num + b.num, a.few + b.few, a.many + b.many, a.slots + b.slots}; }
};

PETSC_INTERN PetscErrorCode TiledSpMMGetWork(TiledSpMM *, size_t, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMCombine(const TiledSpMM *, const PetscScalar *, int, const DenseView<PetscScalar, PetscInt> &, cudaStream_t);

/* Of the staged kernel, of those that have segments instead, and of the one that has tiles. *done stays false where there is no room. What t has of memory is Destroy()'s then, too. */
PETSC_INTERN PetscErrorCode TiledSpMMStagedBuild(TiledSpMM *, const GallopCSR *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMStagedRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN PetscErrorCode TiledSpMMStagedApply(const TiledSpMM *, const GallopDenseProduct *);
PETSC_INTERN PetscErrorCode TiledSpMMSegmentsBuild(TiledSpMM *, const GallopCSR *, PetscInt, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMSegmentsRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN PetscErrorCode TiledSpMMSegmentsApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);

PETSC_INTERN PetscErrorCode TiledSpMMTensorBuild(TiledSpMM *, const GallopCSR *, PetscInt, double, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMTensorRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN PetscErrorCode TiledSpMMTensorApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMHasTensor(PetscBool *);
PETSC_INTERN TiledSpMMPlan  TiledSpMMTensorPlan(const TiledSpMM *, PetscInt);

/* What carves the arrays of a list out of an allocation. Run twice: with a null base it measures, then it hands out. */
#define TILEDSPMM_TAKE(array, number) carver.Take(t->array, number);
#define TILEDSPMM_CARVE(name, LIST) \
  static size_t name(TiledSpMM *t, void *base) \
  { \
    GallopCarver carver(base); \
\
    LIST(t, TILEDSPMM_TAKE) \
    return carver.Bytes(); \
  }
