/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM with stages: how many there are, and rows of B in them, with rows as they are or in the order of their patterns */

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "tiledspmmstaged.h"

/* ---------------------------------------------------------------- the order of rows */

/* The order of section 4.2, for a sort */
struct RowBefore {
  const PetscInt *i, *j;

  __device__ bool operator()(PetscInt r, PetscInt s) const { return TiledSpMMCompareRows(i, j, r, s) < 0; }
};

/* Each warp has a row */
__global__ static void __launch_bounds__(Threads) OrderKernel(StagedPattern A, StagedFound *found)
{
  const PetscCount r   = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  bool             bad = false;

  if (r >= A.m) return;
  for (PetscInt e = A.i[r] + 1 + threadIdx.x % WarpSize; e < A.i[r + 1]; e += WarpSize) bad = bad || A.j[e - 1] >= A.j[e];
  if (bad) found->disorder = 1;
}

/* Each thread has a row */
__global__ static void __launch_bounds__(Threads) UnsortedKernel(StagedPattern A, StagedFound *found)
{
  const PetscCount r = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (r + 1 < A.m && TiledSpMMCompareRows(A.i, A.j, (PetscInt)r, (PetscInt)r + 1) > 0) found->unsorted = 1;
}

/* Each thread has a place in the order of rows */
__global__ static void __launch_bounds__(Threads) StoresKernel(StagedPattern A, StagedFound *found)
{
  const PetscCount   r      = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const int          lane   = threadIdx.x % WarpSize;
  const long long    line   = r < A.m ? (long long)TiledSpMMLineOf(A.order[r]) : -1;
  const long long    before = __shfl_up_sync(0xffffffffu, line, 1);
  const unsigned int first  = __ballot_sync(0xffffffffu, r < A.m && (lane == 0 || line != before));

  if (lane == 0 && first) atomicAdd(&found->stores, (unsigned long long)__popc(first));
}

/* Sorts rows and finds what stores of C cost then, or finds whether they are in order, and the columns of each. A warp or fewer threads for each row: the grid has place for all. */
static PetscErrorCode LookAtRows(const TiledSpMM *t, StagedPattern *A, PetscBool sort, StagedCount *w, cudaStream_t stream)
{
  const unsigned int blocks = GallopBlocksFor(A->m, Threads);

  PetscFunctionBegin;
  if (sort) {
    PetscCallCUDA(cub::DeviceMergeSort::SortKeysCopy(w->cub, w->cubbytes, thrust::make_counting_iterator((PetscInt)0), w->order, (PetscCount)A->m, RowBefore{A->i, A->j}, stream));
    A->order = w->order;
    StoresKernel<<<blocks, Threads, 0, stream>>>(*A, w->foundthere);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  OrderKernel<<<GallopBlocksFor((PetscCount)A->m * WarpSize, Threads), Threads, 0, stream>>>(*A, w->foundthere);
  GallopCheckLaunch();
  if (t->options.reorder != TILEDSPMM_REORDER_NEVER) {
    UnsortedKernel<<<blocks, Threads, 0, stream>>>(*A, w->foundthere);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- sums over panels */

/* Rows of B, and stages, of panel p; none of the one behind the last, which ends the sums over them */
struct SizeOf {
  const PetscInt *size;
  PetscInt        panels;

  __host__ __device__ PetscCount operator()(PetscInt p) const { return p < panels ? (PetscCount)size[p] : 0; }
};

struct StagesOf {
  const PetscInt *size;
  PetscInt        panels, stage;

  __host__ __device__ PetscCount operator()(PetscInt p) const { return p < panels ? ((PetscCount)size[p] + stage - 1) / stage : 0; }
};

__global__ static void TotalsKernel(PetscInt panels, const PetscCount *__restrict__ mapfirst, const PetscCount *__restrict__ stagefirst, StagedFound *found)
{
  found->nmap   = mapfirst[panels];
  found->stages = stagefirst[panels];
}

/* Where the footprints and the stages of each panel begin; without w->cub, how much room that takes */
static PetscErrorCode SumPanels(const TiledSpMM *t, StagedCount *w, cudaStream_t stream)
{
  const auto panel    = thrust::make_counting_iterator((PetscInt)0);
  const auto sizes    = thrust::make_transform_iterator(panel, SizeOf{w->size, t->panels});
  const auto stages   = thrust::make_transform_iterator(panel, StagesOf{w->size, t->panels, t->options.stage});
  size_t     bytes[2] = {w->cubbytes, w->cubbytes};

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, bytes[0], sizes, w->mapfirst, (PetscCount)t->panels + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, bytes[1], stages, w->stagefirst, (PetscCount)t->panels + 1, stream));
  if (!w->cub) w->cubbytes = PetscMax(bytes[0], bytes[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that has been found, to the host */
static PetscErrorCode GetFound(const TiledSpMM *t, StagedCount *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(SumPanels(t, w, stream));
  TotalsKernel<<<1, 1, 0, stream>>>(t->panels, w->mapfirst, w->stagefirst, w->foundthere);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&w->found, w->foundthere, sizeof(w->found)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllocateCount(const TiledSpMM *t, const StagedPattern &A, PetscBool sort, StagedCount *w, cudaStream_t stream)
{
  size_t sortbytes = 0;

  PetscFunctionBegin;
  PetscCall(SumPanels(t, w, stream));
  if (sort) PetscCallCUDA(cub::DeviceMergeSort::SortKeysCopy(nullptr, sortbytes, thrust::make_counting_iterator((PetscInt)0), w->order, (PetscCount)A.m, RowBefore{A.i, A.j}, stream));
  w->cubbytes = PetscMax(w->cubbytes, sortbytes);
  PetscCall(Allocate(
    GallopWorkspaceMalloc,
    [&](GallopCarver &carver) {
      if (sort) carver.Take(w->order, A.m);
      carver.Take(w->size, t->panels);
      carver.Take(w->mapfirst, (PetscCount)t->panels + 1);
      carver.Take(w->stagefirst, (PetscCount)t->panels + 1);
      carver.Take(w->foundthere, 1);
      carver.Take(w->cub, (PetscCount)w->cubbytes);
    },
    &w->memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMCountStages - w->memory is to be given back, NULL where there is no room. Of rows as they are, where w->found.disorder is set, the host must count. */
PetscErrorCode TiledSpMMCountStages(const TiledSpMM *t, StagedPattern A, PetscBool sort, StagedCount *w)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(AllocateCount(t, A, sort, w, stream));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemsetAsync(w->foundthere, 0, sizeof(*w->foundthere), stream));
  PetscCall(LookAtRows(t, &A, sort, w, stream));
  PetscCall(TiledSpMMMeasureFootprints(t, &A, w));
  PetscCall(GetFound(t, w, stream));
  if (w->found.scattered && !w->found.disorder) {
    PetscCall(TiledSpMMMeasureScattered(t, &A, w));
    PetscCall(GetFound(t, w, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
