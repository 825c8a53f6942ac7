/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM's partial sums: rows that are cut have some, which are added up when all are there */

#include "tiledspmmproduct.h"

/* The sum of partial sums first, first + step and so on below end, in column c */
template <typename V, typename I>
static __device__ __forceinline__ V SumSlots(const V *__restrict__ partial, I first, I end, int step, int width, int c)
{
  V sum = V(0);

#pragma unroll 8
  for (I slot = first; slot < end; slot += step) sum += partial[(PetscCount)slot * width + c];
  return sum;
}

static constexpr int CombineFew = 8, CombineMany = 32; /* warps of a thread block: one for each row, and all for one row */

/* Some of the rows that have partial sums */
template <typename I>
struct SplitsView {
  PetscCount begin, end;
  const I   *row, *ptr, *num;
};

/*
  The warps of a thread block add the partial sums of Together rows, each lane those of a column. Partial sums are [slot][width]. Each is added at the same place each time, so results do
  not depend on timing.
*/
template <int Warps, int Together, typename V, typename I>
__global__ static void __launch_bounds__(Warps *WarpSize) CombineKernel(const SplitsView<I> s, const V *__restrict__ partial, const int width, const DenseView<V, I> dense)
{
  static constexpr int Each = Warps / Together; /* warps for a row */
  __shared__ V         sums[Warps][WarpSize];
  const int            warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize, part = warp % Each;
  const PetscCount     k = s.begin + (PetscCount)blockIdx.x * Together + warp / Each;

  const I row = k < s.end ? GallopLoadReadOnly(s.row + k) : 0, slot = k < s.end ? GallopLoadReadOnly(s.ptr + k) : 0, stop = k < s.end ? slot + GallopLoadReadOnly(s.num + k) : 0;

  GallopWaitForPredecessor();
  GallopLetSuccessorStart();
  __syncthreads(); /* no read-only load of partial sums goes ahead of it */
  for (int first = 0; first < dense.columns; first += WarpSize) {
    const int c   = first + lane;
    V         sum = c < dense.columns ? SumSlots<V, I>(partial, slot + part, stop, Each, width, c) : V(0);

    if (Each > 1) {
      __syncthreads(); /* sums have been read */
      sums[warp][lane] = sum;
      __syncthreads();
      if (part == 0)
        for (int w = 1; w < Each; w++) sum += sums[warp + w][lane];
    }
    if (part == 0 && k < s.end && c < dense.columns) Store(dense, row, (I)c, sum);
  }
}

template <int Warps, int Together>
static cudaError_t Launch(const TiledSpMM *t, PetscCount begin, PetscCount end, const PetscScalar *partial, int width, const Dense &dense, cudaStream_t stream)
{
  const SplitsView<PetscInt> splits = {begin, end, t->splitrow, t->splitptr, t->splitnum};
  const GallopGrid           grid   = {(end - begin + Together - 1) / Together, Warps * WarpSize, 1, 0, stream, Overlaps(t)};

  return begin < end ? GallopLaunch(CombineKernel<Warps, Together, PetscScalar, PetscInt>, grid, splits, partial, width, dense) : cudaSuccess;
}

/* TiledSpMMCombine - Adds up partial sums, which are [slot][width], of the columns that dense has */
PetscErrorCode TiledSpMMCombine(const TiledSpMM *t, const PetscScalar *partial, int width, const Dense &dense, cudaStream_t stream)
{
  const PetscCount few = t->nsplit - t->nmany;

  PetscFunctionBegin;
  PetscCallCUDA((Launch<CombineFew, CombineFew>(t, 0, few, partial, width, dense, stream)));
  PetscCallCUDA((Launch<CombineMany, 1>(t, few, t->nsplit, partial, width, dense, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMGetWork - At least bytes bytes at t->work, which is kept for the next product; *done false: there is no room. What a CUDA graph has recorded stays until the end. */
PetscErrorCode TiledSpMMGetWork(TiledSpMM *t, size_t bytes, PetscBool *done)
{
  void *work = t->work;

  PetscFunctionBegin;
  if (bytes > t->workbytes) {
    if (t->recorded) {
      PetscCall(PetscRealloc((size_t)(t->nolder + 1) * sizeof(*t->older), &t->older));
      t->older[t->nolder++] = t->work;
    } else PetscCall(GallopDeviceFree(t->work));
    t->work      = NULL;
    t->workbytes = 0;
    t->recorded  = PETSC_FALSE;
    PetscCall(GallopDeviceMalloc(bytes, &work));
    if (work) t->workbytes = bytes;
  }
  t->work = (PetscScalar *)work;
  *done   = (PetscBool)(!bytes || work);
  if (bytes && work && !t->recorded) PetscCall(GallopDeviceIsCapturing(&t->recorded));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMKernelsOverlap - Whether kernels may start while the one before them ends; they are all compiled alike */
PetscErrorCode TiledSpMMKernelsOverlap(PetscBool *overlaps)
{
  PetscFunctionBegin;
  PetscCallCUDA(GallopKernelOverlaps(CombineKernel<CombineMany, 1, PetscScalar, PetscInt>, overlaps));
  PetscFunctionReturn(PETSC_SUCCESS);
}
