/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The kernel of EVCHYB's product with plain storage, Algorithm 1 of the paper, as a template over the types of numbers, V, and of columns, I */

#include <cooperative_groups.h>
#include "../parts.cuh"
#include "plain.h"

/* How the kernel is compiled: entries in flight per thread, thread blocks per multiprocessor, whether matrix data is loaded before the predecessor has ended, and whether rows are in order, so that perm is not read */
template <int AtOnce_, int MinBlocks_, bool Early_, bool InOrder_>
struct Shape {
  static constexpr int  AtOnce = AtOnce_, MinBlocks = MinBlocks_;
  static constexpr bool Early = Early_, InOrder = InOrder_;
};

/* By EVCHYBShape, measured on an H200, docs/development/evchyb.md: fewer entries in flight leave registers for more warps, which serves short rows. Of complex numbers in double precision half as many take as many registers. */
static constexpr bool WideNumbers = sizeof(PetscScalar) > 8;
static constexpr int  AtOnce      = WideNumbers ? EVCHYB_ATONCE / 2 : EVCHYB_ATONCE;
template <bool InOrder>
using ShortShape = Shape<AtOnce / 2, 6, true, InOrder>;
template <bool InOrder>
using LargeShape = Shape<AtOnce, WideNumbers ? 4 : 5, false, InOrder>;
template <bool InOrder>
using DeepShape = Shape<AtOnce, 4, true, InOrder>;

/* The row of the matrix that stored row k of a part is, whose first is stored row number first */
template <typename S>
static __device__ __forceinline__ PetscInt RowOf(const PetscInt *__restrict__ perm, PetscInt first, PetscCount k)
{
  if constexpr (S::InOrder) return (PetscInt)(first + k);
  else return perm[k];
}

/* x of a column; benchmarks/evchybparts.cu has types whose x is loaded in another way */
template <typename V, typename I>
static __device__ __forceinline__ const V &LoadX(const V *x, const I &column)
{
  return x[column];
}

/* Sum over n entries of j and as that lie step apart: AtOnce of them in flight. Padding has a negative column. */
template <typename S, typename V, typename I>
static __device__ __forceinline__ V Gather(const I *__restrict__ j, const V *__restrict__ as, int n, int step, const V *x)
{
  constexpr int Unroll = S::AtOnce;
  V             sum    = V(0);
  int           k      = 0;

  for (; k + Unroll <= n; k += Unroll) {
    I c[Unroll];
    V a[Unroll];

#pragma unroll
    for (int u = 0; u < Unroll; u++) {
      c[u] = GallopLoadOnce(j + u * step);
      a[u] = GallopLoadOnce(as + u * step);
    }
    if (S::Early && !k) GallopWaitForPredecessor();
#pragma unroll
    for (int u = 0; u < Unroll; u++)
      if (c[u] >= 0) sum += a[u] * LoadX(x, c[u]);
    j += Unroll * step;
    as += Unroll * step;
  }
  if (k < n) {
    I c[Unroll - 1];
    V a[Unroll - 1];

#pragma unroll
    for (int u = 0; u < Unroll - 1; u++) {
      c[u] = k + u < n ? GallopLoadOnce(j + u * step) : I(-1);
      a[u] = k + u < n ? GallopLoadOnce(as + u * step) : V(0);
    }
    if (S::Early && !k) GallopWaitForPredecessor();
#pragma unroll
    for (int u = 0; u < Unroll - 1; u++)
      if (c[u] >= 0) sum += a[u] * LoadX(x, c[u]);
  }
  return sum;
}

/* The entries of begin, begin + step, ... before end */
template <typename S, typename V, typename I>
static __device__ __forceinline__ V GatherRange(const I *__restrict__ j, const V *__restrict__ as, PetscCount begin, PetscCount end, int step, const V *x)
{
  return begin < end ? Gather<S, V, I>(j + begin, as + begin, (int)((end - begin + step - 1) / step), step, x) : V(0);
}

template <typename V, typename I>
struct EllView {
  const PetscCount *bnz;
  const PetscInt   *clen;
  const I          *j;
  const V          *as;
};

template <typename V, typename I>
struct CsrView {
  const PetscCount *i;
  const I          *j;
  const V          *as;
  PetscInt          split;
  PartsView<V>      parts;
};

/* Listing 1 of the paper: a lane computes one or several rows */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_adaptive(const EllView<V, I> &ell, const PetscInt *__restrict__ perm, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
  const int rows = range.count, lane = threadIdx.x % WarpSize;
  PetscInt  b = range.first + (PetscInt)block * rows * WarpsInBlock + threadIdx.x / WarpSize;

  for (int r = 0; r < rows && b < range.end; r++, b += WarpsInBlock) {
    const PetscInt   row   = RowOf<S>(perm, 0, (PetscCount)b * EVCHYB_BLOCK + lane);
    const PetscCount first = ell.bnz[b] + lane;

    GallopStore(v, row, Gather<S, V, I>(ell.j + first, ell.as + first, (int)ell.clen[b], EVCHYB_BLOCK, v.x), dot);
  }
}

/* Beyond the paper: several warps share a column block, each every warps-th column */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_shared(const EllView<V, I> &ell, const PetscInt *__restrict__ perm, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
  const int      warps = range.count, lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, part = warp % warps;
  const PetscInt b   = range.first + (PetscInt)block * (WarpsInBlock / warps) + warp / warps;
  PetscInt       row = 0;
  V              sum = V(0);
  __shared__ V   sums[EVCHYB_THREADS];

  if (b < range.end) {
    const PetscCount first = ell.bnz[b] + part * EVCHYB_BLOCK + lane;

    row = RowOf<S>(perm, 0, (PetscCount)b * EVCHYB_BLOCK + lane);
    sum = Gather<S, V, I>(ell.j + first, ell.as + first, ((int)ell.clen[b] - part + warps - 1) / warps, warps * EVCHYB_BLOCK, v.x);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (b < range.end && part == 0) {
    for (int w = 1; w < warps; w++) sum += sums[threadIdx.x + w * WarpSize];
    GallopStore(v, row, sum, dot);
  }
}

template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_split(const CsrView<V, I> &csr, const PetscInt *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const PetscInt   lo       = csr.parts.splitrow[block];
  const PetscCount firstblk = csr.parts.splitblk[lo];
  const PetscInt   r        = range.first + lo;
  const PetscInt   row      = RowOf<S>(perm, ellrows, r);
  const PetscCount begin = csr.i[r] + (block - firstblk) * csr.split, stop = csr.i[r + 1];
  const V          sum = GatherRange<S, V, I>(csr.j, csr.as, begin + threadIdx.x, begin + csr.split < stop ? begin + csr.split : stop, EVCHYB_THREADS, v.x);

  StoreSplit(csr.parts, lo, block, row, GallopWarpsSum<EVCHYB_THREADS>(sum, EVCHYB_THREADS), v);
}

/* A row that a cluster of thread blocks computes: the sums meet in the shared memory of its first block */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_cluster(const CsrView<V, I> &csr, const PetscInt *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
#if __CUDA_ARCH__ >= 900
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const int                               rank    = block % EVCHYB_CLUSTER;
  const PetscInt                          r = range.first + block / EVCHYB_CLUSTER, row = RowOf<S>(perm, ellrows, r);
  const PetscCount                        first = csr.i[r], stop = csr.i[r + 1], piece = (stop - first) / EVCHYB_BLOCK * EVCHYB_BLOCK / EVCHYB_CLUSTER + EVCHYB_BLOCK;
  const PetscCount                        begin = first + rank * piece, end = begin + piece < stop ? begin + piece : stop;
  V                                       sum;
  __shared__ __align__(16) unsigned char bytes[EVCHYB_CLUSTER * sizeof(V)];
  V                                     *sums = reinterpret_cast<V *>(bytes);

  cluster.barrier_arrive(); /* the first block must have started before others write to it */
  sum = GallopWarpsSum<EVCHYB_THREADS>(GatherRange<S, V, I>(csr.j, csr.as, begin + threadIdx.x, end, EVCHYB_THREADS, v.x), EVCHYB_THREADS);
  cluster.barrier_wait();
  if (threadIdx.x == 0) cluster.map_shared_rank(sums, 0)[rank] = sum;
  cluster.sync();
  if (rank == 0 && threadIdx.x == 0) {
    sum = V(0);
  #pragma unroll
    for (int k = 0; k < EVCHYB_CLUSTER; k++) sum += sums[k];
    GallopWaitForPredecessor();
    GallopStore(v, row, sum, dot);
  }
#endif
}

/* Listing 2 of the paper: TPR threads per row */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_adaptiveTPR(const CsrView<V, I> &csr, const PetscInt *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
  const int      tpr = range.count, lane = threadIdx.x % tpr;
  const PetscInt r      = range.first + (PetscInt)block * (EVCHYB_THREADS / tpr) + threadIdx.x / tpr;
  const bool     inside = r < range.end;
  PetscInt       row    = 0;
  V              sum    = V(0);

  if (inside) {
    row = RowOf<S>(perm, ellrows, r);
    sum = GatherRange<S, V, I>(csr.j, csr.as, csr.i[r] + lane, csr.i[r + 1], tpr, v.x);
  }
  sum = tpr <= WarpSize ? GallopGroupSum(sum, tpr) : GallopWarpsSum<EVCHYB_THREADS>(sum, tpr);
  if (inside && lane == 0) GallopStore(v, row, sum, dot);
}

/* Rows without entries: z = beta y */
template <typename S, typename V>
static __device__ __forceinline__ void ScaleEmpty(const PetscInt *__restrict__ perm, PetscInt rows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
  GallopWaitForPredecessor();
  for (int k = 0; k < 4; k++) {
    const PetscInt r = range.first + ((PetscInt)block * 4 + k) * EVCHYB_THREADS + threadIdx.x;

    if (r < range.end) GallopStore(v, RowOf<S>(perm, rows, r), V(0), dot);
  }
}

/* Algorithm 1 of the paper: the number of a thread block decides what it computes */
template <typename S, typename V, typename I>
__global__ static void __launch_bounds__(EVCHYB_THREADS, S::MinBlocks) SpMV_EVCHYB_adaptive(const __grid_constant__ EVCHYBLaunch launch, const EllView<V, I> ell, const CsrView<V, I> csr, const PetscInt *__restrict__ perm, const GallopVectors<V> v, const PetscInt ellrows, const PetscInt rows, const bool fresh)
{
  constexpr bool Wide = sizeof(V) > 8; /* registers do not hold it beside entries in flight */
  __shared__ V   dots[Wide ? EVCHYB_THREADS : 1];
  V own = V(0), *const dot = Wide ? dots + threadIdx.x : &own;
  int k = 0;

  *dot = V(0);
  if (!S::Early || fresh) GallopWaitForPredecessor();
  if (blockIdx.x >= launch.range[launch.n - 1].next) return; /* what fills up the last cluster */
  while (blockIdx.x >= launch.range[k].next) k++;
  const EVCHYBRange &range = launch.range[k];
  const unsigned int block = blockIdx.x - range.begin;

  switch (range.kind) {
  case EVCHYB_RANGE_ELL:
    SpMV_ELL_adaptive<S, V, I>(ell, perm, v, range, block, dot);
    break;
  case EVCHYB_RANGE_SHARED:
    SpMV_ELL_shared<S, V, I>(ell, perm, v, range, block, dot);
    break;
  case EVCHYB_RANGE_CSR:
    SpMV_CSR_adaptiveTPR<S, V, I>(csr, perm + ellrows, ellrows, v, range, block, dot);
    break;
  case EVCHYB_RANGE_CLUSTER:
    SpMV_CSR_cluster<S, V, I>(csr, perm + ellrows, ellrows, v, range, block, dot);
    break;
  case EVCHYB_RANGE_SPLIT:
    SpMV_CSR_split<S, V, I>(csr, perm + ellrows, ellrows, v, range, block);
    break;
  default:
    ScaleEmpty<S, V>(perm + rows, rows, v, range, block, dot);
  }
  if (S::Early) GallopWaitForPredecessor(); /* those that had nothing to do */
  GallopFinishDot<EVCHYB_THREADS>(v, *dot);
}

/* The kernel for a shape, with the arrays read as numbers of type V and columns of type I */
template <typename S, typename V, typename I>
static inline cudaError_t LaunchShape(const EVCHYBPlain *plain, const PetscInt perm[], const EVCHYBLaunch *launch, const GallopVectors<V> &v, bool overlaps, bool fresh, cudaStream_t stream)
{
  const SubELL       *ell = &plain->ell;
  const SubCSR       *csr = &plain->csr;
  const EllView<V, I> e   = {ell->bnz, ell->clen, reinterpret_cast<const I *>(ell->j), reinterpret_cast<const V *>(ell->as)};
  const CsrView<V, I> c   = {csr->i, reinterpret_cast<const I *>(csr->j), reinterpret_cast<const V *>(csr->as), csr->split, PartsViewOf<V>(&csr->parts)};

  static_assert(sizeof(V) == sizeof(PetscScalar) && sizeof(I) == sizeof(GallopColumn), "the format's arrays are read as arrays of these");
  return GallopLaunch(SpMV_EVCHYB_adaptive<S, V, I>, {launch->range[launch->n - 1].next, EVCHYB_THREADS, launch->range[0].kind == EVCHYB_RANGE_CLUSTER ? EVCHYB_CLUSTER : 1 /* its rows are the longest and come first */, 0, stream, overlaps}, *launch, e, c, perm, v,
                      ell->n, ell->n + csr->n, fresh);
}

template <bool InOrder, typename V, typename I>
static inline cudaError_t LaunchPlain(const EVCHYBPlain *plain, const PetscInt perm[], const EVCHYBLaunch *launch, const GallopVectors<V> &v, bool overlaps, bool fresh, cudaStream_t stream)
{
  if (plain->shape == EVCHYB_SHAPE_SHORT) return LaunchShape<ShortShape<InOrder>, V, I>(plain, perm, launch, v, overlaps, fresh, stream);
  if (plain->shape == EVCHYB_SHAPE_LARGE) return LaunchShape<LargeShape<InOrder>, V, I>(plain, perm, launch, v, overlaps, fresh, stream);
  return LaunchShape<DeepShape<InOrder>, V, I>(plain, perm, launch, v, overlaps, fresh, stream);
}
