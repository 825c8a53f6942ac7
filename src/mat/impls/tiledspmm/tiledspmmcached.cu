/* SPDX-License-Identifier: BSD-2-Clause */
/*
  TiledSpMM's cached kernel: each thread has a segment, and R columns of B at once. Neighbouring segments name neighbouring rows of B, which the L1 cache then has.
*/

#include "tiledspmmsegments.h"

/* The matrix goes past L1, which is for B. Unlike GallopLoadOnce() the compiler may let such loads go ahead of others. */
template <typename T>
static __device__ __forceinline__ T LoadPastL1(const T *p)
{
  if constexpr (sizeof(T) == 4) {
    unsigned int word;

    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(word) : "l"(p));
    return *reinterpret_cast<T *>(&word);
  } else if constexpr (sizeof(T) == 8) {
    unsigned long long word;

    asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(word) : "l"(p));
    return *reinterpret_cast<T *>(&word);
  } else {
    union
    {
      ulonglong2 words;
      char       bytes[sizeof(T)];
    } u;
    static_assert(sizeof(T) == 16, "scalars have up to 16 bytes");

    asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(u.words.x), "=l"(u.words.y) : "l"(p));
    return *reinterpret_cast<T *>(u.bytes);
  }
}

static constexpr int CachedThreads = 128;

/* Thread blocks that a multiprocessor shall have: as many as registers allow without spilling, of which loads of B under way take most */
template <typename V>
static constexpr int CachedBlocks(int R, int U)
{
  const int words = R * (int)(sizeof(V) / 4), loads = U * words;

  return loads >= (sizeof(V) > 8 ? 32 : 64) ? 4 : loads >= 32 ? 5 : loads >= 16 ? 6 : 8;
}

/* Each thread has a segment: U of its entries at once, those after them already under way */
template <int R, int U, bool Whole, typename V, typename I>
__global__ static void __launch_bounds__(CachedThreads, CachedBlocks<V>(R, U)) CachedKernel(const SegmentsView<V, I> s, const DenseView<V, I> dense, V *__restrict__ partial, const unsigned int groups)
{
  const I          first   = (I)(blockIdx.x % groups) * R;
  const int        columns = Whole || dense.columns - first >= R ? R : (int)(dense.columns - first);
  const PetscCount seg     = (blockIdx.x / groups) * (PetscCount)CachedThreads + threadIdx.x;

  const bool          inside = seg < s.num;
  const I             len    = inside ? s.ptr[seg + 1] - s.ptr[seg] : 0;
  const PetscCount    at = inside ? s.slicedispl[seg / WarpSize] + seg % WarpSize : 0, ldb = dense.ldb;
  const GallopColumn *col       = s.col + at;
  const V            *value     = s.value + at;
  const V *const __restrict__ b = dense.b + (PetscCount)first * ldb;
  V            acc[R], v[U];
  GallopColumn c[U];

#pragma unroll
  for (int r = 0; r < R; r++) acc[r] = V(0);
#pragma unroll
  for (int u = 0; u < U; u++) {
    c[u] = u < len ? LoadPastL1(col + WarpSize * u) : 0;
    v[u] = u < len ? LoadPastL1(value + WarpSize * u) : V(0);
  }
  GallopWaitForPredecessor();
  GallopLetSuccessorStart();
  __syncthreads(); /* no read-only load of B goes ahead of it */
  if (!inside || (dense.add && !len)) return;
  for (I k = 0; k < len; k += U) {
    GallopColumn nextc[U];
    V            nextv[U], x[U][R];

    col += WarpSize * U;
    value += WarpSize * U;
#pragma unroll
    for (int u = 0; u < U; u++) {
      nextc[u] = k + U + u < len ? LoadPastL1(col + WarpSize * u) : 0;
      nextv[u] = k + U + u < len ? LoadPastL1(value + WarpSize * u) : V(0);
    }
#pragma unroll
    for (int u = 0; u < U; u++)
      if (k + u < len) {
        const V *const from = b + c[u];

#pragma unroll
        for (int r = 0; r < R; r++)
          if (Whole || r < columns) x[u][r] = GallopLoadReadOnly(from + r * ldb);
      }
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (k + u < len)
#pragma unroll
        for (int r = 0; r < R; r++)
          if (Whole || r < columns) acc[r] += v[u] * x[u][r];
      c[u] = nextc[u];
      v[u] = nextv[u];
    }
  }
  const I row = s.row ? s.row[seg] : (I)seg;

#pragma unroll
  for (int r = 0; r < R; r++)
    if (Whole || r < columns) {
      if (row >= 0) Store(dense, row, first + r, acc[r]);
      else partial[(PetscCount)(-1 - row) * dense.columns + first + r] = acc[r];
    }
}

/* ---------------------------------------------------------------- plan */

static constexpr PetscInt   MostColumns = sizeof(PetscScalar) > 8 ? 8 : 16, LeastColumns = 4; /* R: what registers hold, and what it stays at where there are few thread blocks */
static constexpr PetscCount LongEntries = 12;                                                 /* of a segment, on average: from these on several entries are loaded at once with many columns, too, though not of complex numbers */

/* Thread blocks per multiprocessor up to which latencies decide. More entries at once: delaunay_n16 takes 8.0 us with 8 columns, not 10.2; but with 128, which have more thread blocks, 124, not 111. */
static constexpr PetscCount FewBlocks  = 8;
static constexpr double     LongBlocks = 2.5; /* thread blocks per multiprocessor that are enough where each thread has much to do */

/* Entries at once: R U loads of B are under way, fewer where that does not pay. By words of 8 bytes, which is what registers hold: sums and values of complex numbers take twice as many, too. */
static constexpr int EntriesAtOnce(int R, bool deep)
{
  const bool complex = sizeof(PetscScalar) > 8;
  const int  words   = R * (complex ? 2 : 1);

  return deep ? (words >= 16 ? 2 : 4) / (complex && words >= 8 ? 2 : 1) : words >= 8 ? 1 : words >= 4 ? 2 : 4;
}

/* Whether there is more than one entry at once with many columns */
static bool IsLong(const TiledSpMM *t)
{
  return t->nz >= LongEntries * t->nseg;
}

/* Thread blocks for R columns, and for all columns */
static PetscCount Grid(const TiledSpMM *t)
{
  return (t->nseg + CachedThreads - 1) / CachedThreads;
}

static PetscCount GridOf(const TiledSpMM *t, PetscInt columns, PetscInt R)
{
  return Grid(t) * ((columns + R - 1) / R);
}

/* Whether several entries are loaded at once: there are many in a row, or so few thread blocks that latencies decide */
static bool IsDeep(const TiledSpMM *t, PetscInt columns, PetscInt R)
{
  return IsLong(t) || GridOf(t, columns, R) <= FewBlocks * t->multiprocessors;
}

/* Whether there are fewer thread blocks than the GPU takes at once, or, where each thread has much to do, than it needs to be busy */
static bool IsFew(const TiledSpMM *t, PetscInt columns, PetscInt R)
{
  if (IsLong(t)) return (double)GridOf(t, columns, R) < LongBlocks * t->multiprocessors;
  return GridOf(t, columns, R) < (PetscCount)CachedBlocks<PetscScalar>((int)R, EntriesAtOnce((int)R, false)) * t->multiprocessors;
}

/* TiledSpMMCachedPlan - R, fewer where loads are scattered, and where there would be too few thread blocks */
TiledSpMMPlan TiledSpMMCachedPlan(const TiledSpMM *t, PetscInt columns)
{
  PetscInt R = PowerOfTwo(columns, t->options.columns ? PetscMin(MostColumns, t->options.columns) : MostColumns);

  if (t->scattered && !t->options.columns) R = PetscMin(R, MostColumns / (IsLong(t) ? 2 : 4));
  while (R > LeastColumns && IsFew(t, columns, R)) R /= 2;
  const int U = EntriesAtOnce((int)R, IsDeep(t, columns, R));

  return {R, U, CachedThreads, 1, CachedBlocks<PetscScalar>((int)R, U)};
}

/* ---------------------------------------------------------------- product */

template <int R, bool Deep>
static cudaError_t Launch(const TiledSpMM *t, const Dense &dense, cudaStream_t stream)
{
  static constexpr int U      = EntriesAtOnce(R, Deep);
  const unsigned int   groups = (unsigned int)((dense.columns + R - 1) / R);
  const GallopGrid     grid   = {GridOf(t, dense.columns, R), CachedThreads, 1, 0, stream, Overlaps(t)};

  if constexpr (R > 2) /* of a remainder fewer columns are computed at once */
    if (dense.columns % R) return GallopLaunch(CachedKernel<R, U, false, PetscScalar, PetscInt>, grid, SegmentsOf(t), dense, t->work, groups);
  return GallopLaunch(CachedKernel<R, U, true, PetscScalar, PetscInt>, grid, SegmentsOf(t), dense, t->work, groups);
}

PetscErrorCode TiledSpMMCachedApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  const auto launch = [&](const Dense &dense, PetscInt R, cudaStream_t stream) {
    return WithPower<MostColumns>(R, [&](auto power) {
      constexpr int Power = decltype(power)::value;

      return IsDeep(t, p->columns, R) ? Launch<Power, true>(t, dense, stream) : Launch<Power, false>(t, dense, stream);
    });
  };

  PetscFunctionBegin;
  PetscCall(ComputeColumns(t, p, TiledSpMMCachedPlan(t, p->columns).columns, Grid(t), launch, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
