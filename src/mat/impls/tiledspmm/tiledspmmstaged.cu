/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM's staged kernel: a thread block has a panel of rows, and stages of the rows of B that it names, in shared memory */

#include <cuda_pipeline.h>
#include "tiledspmmproduct.h"

template <typename V, typename I>
struct StagesView {
  I                     places, stage; /* of all panels */
  const PetscCount     *stagedispl, *mapdispl, *warpdispl;
  const I              *map;
  const TiledSpMMIndex *len, *index;
  const V              *value;
  const I              *order;  /* NULL where rows are in the order of the matrix */
  const I              *segrow; /* NULL where no row is cut; negative for a segment with a partial sum */
};

/* Of a row, loaded at once: what registers hold */
template <typename V>
static constexpr int StagedEntries = sizeof(V) > 8 ? 2 : 4;

/* Thread blocks of the largest panels that a multiprocessor has room for: while one waits for its stage, the other works. This limits a thread to 64 registers; without it R = 16 in single precision took 94. */
template <int R, typename V>
static constexpr int StagedResident()
{
  return R * sizeof(V) <= 64 ? 2 : 1;
}

/* Some entries of a row in a stage, from the k-th of its len on */
template <typename V>
struct StagedRow {
  TiledSpMMIndex index[StagedEntries<V>];
  V              value[StagedEntries<V>];

  __device__ __forceinline__ void Load(const TiledSpMMIndex *from, const V *valuefrom, int k, int len)
  {
#pragma unroll
    for (int u = 0; u < StagedEntries<V>; u++) {
      index[u] = k + u < len ? GallopLoadOnce(from + WarpSize * u) : TiledSpMMIndex(0);
      value[u] = k + u < len ? GallopLoadOnce(valuefrom + WarpSize * u) : V(0);
    }
  }
};

/* A thread block computes R columns of a panel, each thread R outputs of a row. Neighbouring thread blocks have the same panel, which L2 then serves to all but the first. */
template <int R, typename V, typename I>
__global__ static void __launch_bounds__(TILEDSPMM_MAX_THREADS(R), (StagedResident<R, V>())) StagedKernel(const StagesView<V, I> t, const DenseView<V, I> dense, V *__restrict__ partial, const unsigned int groups)
{
  static constexpr int Each = StagedEntries<V>;
  extern __shared__ __align__(16) unsigned char bytes[];
  V *const                                      shared  = reinterpret_cast<V *>(bytes); /* column r of B's stage is at r t.stage: lanes with neighbouring indices are in different banks */
  const PetscCount                              panel   = blockIdx.x / groups;
  const I                                       first   = (I)(blockIdx.x % groups) * R;
  const int                                     columns = dense.columns - first < R ? (int)(dense.columns - first) : R;
  const int                                     warps = blockDim.x / WarpSize, warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  const PetscCount                              row = panel * blockDim.x + threadIdx.x;
  const V *const                                b   = dense.b + (PetscCount)first * dense.ldb;
  V                                             acc[R];

#pragma unroll
  for (int r = 0; r < R; r++) acc[r] = V(0);
  for (PetscCount s = t.stagedispl[panel]; s < t.stagedispl[panel + 1]; s++) {
    const PetscCount      map = t.mapdispl[s], at = t.warpdispl[s * warps + warp] + lane;
    const int             size = (int)(t.mapdispl[s + 1] - map), len = t.len[s * blockDim.x + threadIdx.x];
    const TiledSpMMIndex *index = t.index + at;
    const V              *value = t.value + at;
    StagedRow<V>          entries;

    __syncthreads(); /* all are done with the stage before */
    for (int q = threadIdx.x; q < size; q += blockDim.x) {
      const V *from = b + t.map[map + q];
      V       *to   = shared + q;

#pragma unroll
      for (int r = 0; r < R; r++, from += dense.ldb, to += t.stage) /* R addresses kept would take registers from other thread blocks */
        if (r < columns) __pipeline_memcpy_async(to, from, sizeof(V));
    }
    __pipeline_commit();
    entries.Load(index, value, 0, len); /* meanwhile */
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int k = 0; k < len; k += Each) {
      StagedRow<V> next;

      index += WarpSize * Each;
      value += WarpSize * Each;
      next.Load(index, value, k + Each, len);
#pragma unroll
      for (int u = 0; u < Each; u++)
        if (k + u < len) { /* what B has in row 0 may be no number */
          const V *staged = shared + entries.index[u];

#pragma unroll
          for (int r = 0; r < R; r++) acc[r] += entries.value[u] * staged[r * t.stage]; /* those of no column are never stored */
        }
      entries = next;
    }
  }
  if (row >= t.places) return;
  const I at = t.order ? t.order[row] : (I)row, to = t.segrow ? t.segrow[at] : at;

#pragma unroll
  for (int r = 0; r < R; r++)
    if (r < columns) {
      if (to >= 0) Store(dense, to, first + r, acc[r]);
      else partial[(PetscCount)(-1 - to) * dense.columns + first + r] = acc[r];
    }
}

static size_t SharedBytes(const TiledSpMM *t, PetscInt columns)
{
  return (size_t)t->options.stage * columns * sizeof(PetscScalar);
}

/* TiledSpMMStagedAllowShared - Lets the kernels have as much shared memory as a thread block of this GPU can, and tells how much that is */
PetscErrorCode TiledSpMMStagedAllowShared(size_t *bytes)
{
  int device, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  for (PetscInt R = 1; R <= TILEDSPMM_MAX_COLUMNS; R *= 2)
    PetscCallCUDA(WithPower<TILEDSPMM_MAX_COLUMNS>(R, [=](auto power) {
      return cudaFuncSetAttribute(StagedKernel<decltype(power)::value, PetscScalar, PetscInt>, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    }));
  *bytes = (size_t)most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMStagedApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  const StagesView<PetscScalar, PetscInt> stages =
    {TiledSpMMPlaces(t), t->options.stage, t->stagedispl, t->mapdispl, t->warpdispl, t->map, t->len, t->index, t->value, t->reordered ? t->roworder : NULL, t->segment ? t->segrow : NULL};
  const auto launch = [&](const Dense &dense, PetscInt R, cudaStream_t stream) {
    const PetscCount groups = (dense.columns + R - 1) / R;
    const GallopGrid grid   = {t->panels * groups, (int)t->options.panel, 1, SharedBytes(t, R), stream, false};

    return WithPower<TILEDSPMM_MAX_COLUMNS>(R, [&](auto power) { return GallopLaunch(StagedKernel<decltype(power)::value, PetscScalar, PetscInt>, grid, stages, dense, t->work, (unsigned int)groups); });
  };

  PetscFunctionBegin;
  PetscCall(ComputeColumns(t, p, TiledSpMMStagedColumns(t), t->panels, launch, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
