/* SPDX-License-Identifier: BSD-2-Clause */
/*
  TiledSpMM by tensor cores. A warp multiplies the tiles of a unit, one after the other, with some columns of B, sixteen by an instruction.

  What is no entry is a zero there, and a zero times Inf is NaN: a lane that has a NaN computes its sums once more, entry by entry. Scalars that are no doubles are always computed so.
*/

#include "tiledspmmproduct.h"
#include "tiledspmmtiles.h"

static constexpr int TensorThreads = 128, TensorWarps = TensorThreads / WarpSize, TensorBlocks = 5; /* per multiprocessor: registers for 20 warps. dense4k takes 68 us so, not 108, on an H200 */

/*
  The transpose of C += A B: from each lane a pair of neighbours in columns lane / 4 and lane / 4 + 8 of B, rows 2 (lane % 4) and the next one, and of row lane / 4 of a tile the same two columns; sums of
  both columns of B with rows 2 (lane % 4) and the next one. (The order of what is summed up is another one than the instruction's, but the same in both factors.)
*/
[[maybe_unused]] static __device__ __forceinline__ void MultiplyTile(double c[2][2], const double b[2][2], const double a[2])
{
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
      : "d"(b[0][0]), "d"(b[1][0]), "d"(b[0][1]), "d"(b[1][1]), "d"(a[0]), "d"(a[1]));
#endif
}

/* Whether the kernel has instructions for it */
template <typename V>
static constexpr __device__ bool HasTensor()
{
#if __CUDA_ARCH__ >= 900
  return cuda::std::is_same_v<V, double>;
#else
  return false;
#endif
}

/* What a row of some tiles makes of a column of B, entry by entry. Not inline: it is hardly ever called. */
template <typename V>
static __device__ __noinline__ V MultiplyEntries(const TiledSpMMTile *tiles, int num, const V *value, int row, const V *b)
{
  V sum = V(0);

  for (int t = 0; t < num; t++) {
    const unsigned long long mask  = tiles[t].mask;
    const V                 *entry = value + tiles[t].first + EntriesBefore(mask, row);

    for (unsigned int left = RowOf(mask, row); left; left &= left - 1) sum += *entry++ * b[(PetscCount)tiles[t].block * Cols + __ffs((int)left) - 1];
  }
  return sum;
}

/* Two neighbours in a column of B, as one load where they are aligned. Where no row is left there is no entry. */
template <bool Aligned, typename V, typename I>
static __device__ __forceinline__ void LoadPair(const V *b, I row, I n, V x[2])
{
  if constexpr (Aligned) {
    const double2 pair = __ldg(reinterpret_cast<const double2 *>(b + min(row, n - 2)));

    x[0] = pair.x;
    x[1] = pair.y;
  } else {
    x[0] = GallopLoadReadOnly(b + min(row, n - 1));
    x[1] = GallopLoadReadOnly(b + min(row + 1, n - 1));
  }
}

/*
  N times eight columns, U tiles at once, those after them already under way. There is no test in the loop: behind the last tile comes the last one without entries, and columns that are not there are
  the last one once more.
*/
template <int N, int U, bool Aligned, typename V, typename I>
__global__ static void __launch_bounds__(TensorThreads, TensorBlocks) TensorKernel(const TilesView<V, I> s, const DenseView<V, I> dense, V *__restrict__ partial, const unsigned int blocks)
{
  static constexpr int Pairs = (N + 1) / 2;
  const I              first = (I)(blockIdx.x / blocks) * (8 * N); /* thread blocks of the same columns follow each other: B and C are in fewer pages of memory at once */
  const PetscCount     unit  = (blockIdx.x % blocks) * (PetscCount)TensorWarps + threadIdx.x / WarpSize;
  const int            lane = threadIdx.x % WarpSize, high = lane / Lanes, low = lane % Lanes;

  if (unit >= s.num) return;
  const I                    row = s.row[unit] + 2 * low, slot = s.slot[unit];
  const TiledSpMMTile *const tiles = s.tile + s.ptr[unit];
  const V *const             value = s.value + s.valueptr[unit];
  const int                  num   = (int)(s.ptr[unit + 1] - s.ptr[unit]);
  V                          acc[Pairs][2][2];
  bool                       exact = !HasTensor<V>();

  if constexpr (HasTensor<V>()) {
    const unsigned int below = BitsBelow(Cols * (high % (Rows / 2)) + 2 * low), one = below + 1, two = 2 * one; /* the lane's first entry in its half of the mask, and the second one */
    const bool         upper = high >= Rows / 2;
    const V           *b[N];
    uint4              now[U];
    const auto         Load = [&](uint4 to[U], int k) {
#pragma unroll
      for (int u = 0; u < U; u++) {
        to[u] = __ldg(reinterpret_cast<const uint4 *>(tiles + min(k + u, num - 1)));
        if (k + u >= num) to[u].x = to[u].y = 0;
      }
    };

#pragma unroll
    for (int n = 0; n < N; n++) b[n] = dense.b + (PetscCount)min(first + 8 * n + high, dense.columns - 1) * dense.ldb;
#pragma unroll
    for (int p = 0; p < Pairs; p++)
#pragma unroll
      for (int h = 0; h < 2; h++) acc[p][h][0] = acc[p][h][1] = V(0);
    if (num) Load(now, 0);
    GallopWaitForPredecessor();
    GallopLetSuccessorStart();
    __syncthreads(); /* no read-only load of B goes ahead of it */
#pragma unroll 2
    for (int k = 0; k < num; k += U) {
      uint4 next[U];
      V     a[U][2], x[U][2 * Pairs][2];

      Load(next, k + U);
#pragma unroll
      for (int u = 0; u < U; u++) {
        const unsigned int half = upper ? now[u].y : now[u].x, at = now[u].w + (upper ? __popc(now[u].x) : 0) + __popc(half & below);

        a[u][0] = half & one ? GallopLoadReadOnly(value + at) : V(0);
        a[u][1] = half & two ? GallopLoadReadOnly(value + at + (half & one ? 1 : 0)) : V(0);
#pragma unroll
        for (int n = 0; n < N; n++) LoadPair<Aligned>(b[n], (I)now[u].z * Cols + 2 * low, s.n, x[u][n]);
        if (N % 2) x[u][N][0] = x[u][N][1] = V(0);
      }
#pragma unroll
      for (int u = 0; u < U; u++) {
#pragma unroll
        for (int p = 0; p < Pairs; p++) MultiplyTile(acc[p], x[u] + 2 * p, a[u]);
        now[u] = next[u];
      }
    }
#pragma unroll
    for (int n = 0; n < N; n++) exact = exact || acc[n / 2][n % 2][0] != acc[n / 2][n % 2][0] || acc[n / 2][n % 2][1] != acc[n / 2][n % 2][1];
  } else {
    GallopWaitForPredecessor();
    GallopLetSuccessorStart();
    __syncthreads(); /* no read-only load of B goes ahead of it */
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
    bool entries = row + e < s.m;

    if (entries && dense.add && slot < 0) { /* nothing for a row without entries */
      entries = false;
      for (int k = 0; k < num && !entries; k++) entries = RowOf(tiles[k].mask, 2 * low + e);
    }
    if (!entries) continue;
#pragma unroll
    for (int n = 0; n < N; n++) {
      const I column = first + (I)(8 * n + high);
      V      &sum    = acc[n / 2][n % 2][e];

      if (column >= dense.columns) continue;
      if (exact) sum = MultiplyEntries<V>(tiles, num, value, 2 * low + e, dense.b + (PetscCount)column * dense.ldb);
      if (slot < 0) Store(dense, row + e, column, sum);
      else partial[((PetscCount)slot + (PetscCount)(2 * low + e) * s.slots[unit]) * dense.columns + column] = sum;
    }
  }
}

/* ---------------------------------------------------------------- plan */

static constexpr PetscInt   LeastColumns = 8, MostColumns = 32; /* at once: what an instruction has half of, and what registers hold */
static constexpr int        TilesAtOnce = 4;                    /* dense4k takes 105 us with two, not 68 */
static constexpr PetscCount LeastWarps  = 8;                    /* per multiprocessor: these hide latencies */

/* TiledSpMMHasTensor - Whether the kernel has been compiled for the GPU with the instructions for it */
PetscErrorCode TiledSpMMHasTensor(PetscBool *has)
{
  PetscFunctionBegin;
  PetscCall(TiledSpMMKernelsOverlap(has)); /* what both take is compute capability 9.0 */
  if (!PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_COMPLEX)) *has = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Thread blocks for some columns */
static PetscCount Grid(const TiledSpMM *t)
{
  return (t->nunit + TensorWarps - 1) / TensorWarps;
}

/* TiledSpMMTensorPlan - Fewer columns at once where there are too few warps for the GPU */
TiledSpMMPlan TiledSpMMTensorPlan(const TiledSpMM *t, PetscInt columns)
{
  const PetscCount few = LeastWarps / TensorWarps * t->multiprocessors;
  PetscInt         R   = PetscMax(LeastColumns, PowerOfTwo(columns, t->options.columns ? t->options.columns : MostColumns));

  while (R > LeastColumns && !t->options.columns && Grid(t) * ((columns + R - 1) / R) < few) R /= 2;
  return {R, TilesAtOnce, TensorWarps, 1, TensorBlocks};
}

/* ---------------------------------------------------------------- product */

template <int N>
static cudaError_t Launch(const TiledSpMM *t, const Dense &dense, cudaStream_t stream)
{
  const PetscCount   groups  = (dense.columns + 8 * N - 1) / (8 * N);
  const GallopGrid   grid    = {Grid(t) * groups, TensorThreads, 1, 0, stream, Overlaps(t)};
  const unsigned int blocks  = (unsigned int)Grid(t);
  const bool         aligned = (size_t)dense.b % sizeof(double2) == 0 && dense.ldb % 2 == 0 && t->n % 2 == 0;

  if constexpr (cuda::std::is_same_v<PetscScalar, double>)
    if (aligned) return GallopLaunch(TensorKernel<N, TilesAtOnce, true, PetscScalar, PetscInt>, grid, TilesOf(t), dense, t->work, blocks);
  return GallopLaunch(TensorKernel<N, TilesAtOnce, false, PetscScalar, PetscInt>, grid, TilesOf(t), dense, t->work, blocks);
}

PetscErrorCode TiledSpMMTensorApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  const auto launch = [&](const Dense &dense, PetscInt R, cudaStream_t stream) {
    return WithPower<MostColumns / LeastColumns>(R / LeastColumns, [&](auto power) { return Launch<decltype(power)::value>(t, dense, stream); });
  };

  PetscFunctionBegin;
  PetscCall(ComputeColumns(t, p, TiledSpMMTensorPlan(t, p->columns).columns, Grid(t), launch, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
