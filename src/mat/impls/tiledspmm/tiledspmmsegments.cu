/*
  TiledSpMM without stages: the rows of A, long ones cut into segments, and two kernels that compute them

  cached:     a thread a segment, R columns of B at once. Neighbouring segments name neighbouring rows of B, which the L1 cache then has.
  transposed: a copy of B row by row, made first; some lanes a segment, which load a row of B together.
*/

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "tiledspmmdevice.h"

static constexpr int Threads = 256;

template <typename V, typename I>
struct SegmentsView {
  PetscCount        num;
  const PetscCount *slicedispl;
  const I          *ptr, *row, *col; /* row is NULL where each row is one segment */
  const V          *value;
};

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

/* ---------------------------------------------------------------- cached */

static constexpr int CachedThreads = 128;

/* GPU blocks that a multiprocessor shall have: as many as registers allow without spilling */
template <typename V>
static constexpr int CachedBlocks(int R, int U)
{
  const int words = R * (int)(sizeof(V) / 4), loads = U * words;

  return loads >= 64 ? 4 : loads >= 32 ? 5 : loads >= 16 ? 6 : 8;
}

/* A thread a segment, U of its entries at once, those after them already under way */
template <int R, int U, bool Whole, typename V, typename I>
__global__ static void __launch_bounds__(CachedThreads, CachedBlocks<V>(R, U)) CachedKernel(const SegmentsView<V, I> s, const DenseView<V, I> dense, V *__restrict__ partial, const unsigned int groups)
{
  const I          first   = (I)(blockIdx.x % groups) * R;
  const int        columns = Whole || dense.columns - first >= R ? R : (int)(dense.columns - first);
  const PetscCount seg     = (blockIdx.x / groups) * (PetscCount)CachedThreads + threadIdx.x;

  const bool       inside = seg < s.num;
  const I          len    = inside ? s.ptr[seg + 1] - s.ptr[seg] : 0;
  const PetscCount at = inside ? s.slicedispl[seg / WarpSize] + seg % WarpSize : 0, ldb = dense.ldb;
  const I         *col          = s.col + at;
  const V         *value        = s.value + at;
  const V *const __restrict__ b = dense.b + (PetscCount)first * ldb;
  V acc[R], v[U];
  I c[U];

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
    I nextc[U];
    V nextv[U], x[U][R];

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

/* ---------------------------------------------------------------- transposed */

static constexpr int RowsThreads = 256, ShortEach = 4, RowsEntries = 4;

/* What a lane loads of a row of B: 16 bytes */
template <typename V>
struct __align__(16) Pack
{
  static constexpr int Size = 16 / (int)sizeof(V);
  V                    v[Size];
};

template <typename V>
static __device__ __forceinline__ Pack<V> LoadPack(const Pack<V> *p)
{
  const float4 words = __ldg(reinterpret_cast<const float4 *>(p));

  return *reinterpret_cast<const Pack<V> *>(&words);
}

static constexpr int TransposeRows = 64;

/* B row by row, Width columns a row, 0 in those that it does not have */
template <int Width, typename V, typename I>
__global__ static void __launch_bounds__(Threads) TransposeKernel(const I n, const DenseView<V, I> dense, V *__restrict__ bt)
{
  __shared__ V     tile[Width][TransposeRows + 1];
  const PetscCount begin = (PetscCount)blockIdx.x * TransposeRows;

  GallopWaitForPredecessor();
  __syncthreads(); /* no read-only load goes ahead of it */
#pragma unroll
  for (int q = 0; q < Width * TransposeRows; q += Threads) {
    const int        at = q + threadIdx.x, c = at / TransposeRows, r = at % TransposeRows;
    const PetscCount row = begin + r;

    if (at < Width * TransposeRows) tile[c][r] = row < n && c < dense.columns ? GallopLoadReadOnly(dense.b + (PetscCount)c * dense.ldb + row) : V(0);
  }
  __syncthreads();
  GallopLetSuccessorStart();
#pragma unroll
  for (int q = 0; q < Width * TransposeRows; q += Threads) {
    const int at = q + threadIdx.x, c = at % Width, r = at / Width;

    if (at < Width * TransposeRows && begin + r < n) bt[(begin + r) * Width + c] = tile[c][r];
  }
}

/* Some entries of a segment, those that it does not have with value and column 0 */
template <int U, typename V, typename I>
struct Entries {
  I   c[U];
  V   v[U];
  int num;

  __device__ __forceinline__ void Load(const SegmentsView<V, I> &s, I k, I end)
  {
    num = end - k < U ? (int)(end - k) : U; /* less than 0, maybe */
#pragma unroll
    for (int u = 0; u < U; u++) {
      c[u] = u < num ? GallopLoadReadOnly(s.col + k + u) : I(0);
      v[u] = u < num ? GallopLoadReadOnly(s.value + k + u) : V(0);
    }
  }
};

/* The products of some entries with a pack of columns; b begins at the lane's pack */
template <int Lanes, int U, typename V, typename I>
static __device__ __forceinline__ void LoadPacks(const Pack<V> *b, const Entries<U, V, I> &entries, Pack<V> x[U])
{
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < entries.num) x[u] = LoadPack(b + (PetscCount)entries.c[u] * Lanes);
    else
#pragma unroll
      for (int e = 0; e < Pack<V>::Size; e++) x[u].v[e] = V(0);
}

template <int U, typename V, typename I>
static __device__ __forceinline__ void AddProducts(const Entries<U, V, I> &entries, const Pack<V> x[U], Pack<V> &acc)
{
#pragma unroll
  for (int u = 0; u < U; u++)
#pragma unroll
    for (int e = 0; e < Pack<V>::Size; e++) acc.v[e] += entries.v[u] * x[u].v[e];
}

template <int Lanes, int U, typename V, typename I>
static __device__ __forceinline__ void AddPacks(const Pack<V> *b, const Entries<U, V, I> &entries, Pack<V> &acc)
{
  Pack<V> x[U];

  LoadPacks<Lanes>(b, entries, x);
  AddProducts(entries, x, acc);
}

template <typename I>
static constexpr I Nowhere = sizeof(I) == 4 ? (I)INT32_MIN : (I)INT64_MIN; /* neither a row nor the place of a partial sum */

/* What is in tile to C, a GPU block's rows of a column by neighbouring threads; to is a row, less than 0 where it is not written */
template <int Width, int Rows, typename V, typename I>
static __device__ __forceinline__ void StoreTile(const V tile[Width][Rows + 1], const I to[Rows], int rows, const DenseView<V, I> &dense)
{
  for (int at = threadIdx.x; at < Width * Rows; at += RowsThreads) {
    const int c = at / Rows, r = at % Rows;

    if (r < rows && c < dense.columns && to[r] >= 0) Store(dense, to[r], (I)c, tile[c][r]);
  }
}

/* GPU blocks that a multiprocessor shall have: latencies are hidden by warps alone */
template <typename V, typename I>
static constexpr int RowsResident()
{
  return sizeof(V) > 8 || sizeof(I) > 4 ? 4 : 6;
}

/* Lanes lanes a segment, each a pack of columns; with Parts of these, each of which takes every Parts-th of its entries, U at once */
template <int Lanes, int Parts, typename V, typename I>
__global__ static void __launch_bounds__(RowsThreads, RowsResident<V, I>()) RowsKernel(const SegmentsView<V, I> s, const V *__restrict__ bt, const DenseView<V, I> dense, V *__restrict__ partial)
{
  static constexpr int Team = Lanes * Parts, Rows = RowsThreads / Team, Width = Lanes * Pack<V>::Size, Size = Pack<V>::Size, U = RowsEntries;
  __shared__ V         tile[Width][Rows + 1];
  __shared__ I         to[Rows];
  const int            team = threadIdx.x / Team, lane = threadIdx.x % Lanes, part = threadIdx.x / Lanes % Parts;
  const PetscCount     begin = (PetscCount)blockIdx.x * Rows, seg = begin + team;
  const bool           inside = seg < s.num;
  const I              end    = inside ? s.ptr[seg + 1] : 0;
  I                    k      = inside ? s.ptr[seg] : 0;
  const Pack<V> *const b      = reinterpret_cast<const Pack<V> *>(bt) + lane;
  Entries<U, V, I>     now;
  Pack<V>              acc;

  if (threadIdx.x % Team == 0) to[team] = !inside || (dense.add && k == end) ? Nowhere<I> : s.row ? s.row[seg] : (I)seg;
  k += part * U;
  now.Load(s, k, end);
  GallopWaitForPredecessor();
  __syncthreads(); /* no read-only load of B goes ahead of it */
#pragma unroll
  for (int e = 0; e < Size; e++) acc.v[e] = V(0);
  if (now.num > 0) {
    AddPacks<Lanes>(b, now, acc);
    k += Parts * U;
  }
  for (; end - k >= U; k += Parts * U) {
#pragma unroll
    for (int u = 0; u < U; u++) {
      now.c[u] = GallopLoadReadOnly(s.col + k + u);
      now.v[u] = GallopLoadReadOnly(s.value + k + u);
    }
    now.num = U;
    AddPacks<Lanes>(b, now, acc);
  }
  for (; k < end; k++) {
    const V       v = GallopLoadReadOnly(s.value + k);
    const Pack<V> x = LoadPack(b + (PetscCount)GallopLoadReadOnly(s.col + k) * Lanes);

#pragma unroll
    for (int e = 0; e < Size; e++) acc.v[e] += v * x.v[e];
  }
#pragma unroll
  for (int by = Team / 2; by >= Lanes; by /= 2)
#pragma unroll
    for (int e = 0; e < Size; e++) acc.v[e] += GallopShuffleDown(acc.v[e], by, Team);
  if (part == 0) {
    const I row = to[team];

    if (row < 0 && row != Nowhere<I>) *reinterpret_cast<Pack<V> *>(partial + (PetscCount)(-1 - row) * Width + lane * Size) = acc;
#pragma unroll
    for (int e = 0; e < Size; e++) tile[lane * Size + e][team] = acc.v[e];
  }
  __syncthreads();
  GallopLetSuccessorStart(); /* later than in other kernels: what starts then takes room from teams that are at work */
  StoreTile<Width, Rows>(tile, to, Rows, dense);
}

/* For many short segments: as RowsKernel, ShortEach of them one after the other, with the entries that come next under way while those before are multiplied */
template <int Lanes, typename V, typename I>
__global__ static void __launch_bounds__(RowsThreads) ShortRowsKernel(const SegmentsView<V, I> s, const V *__restrict__ bt, const DenseView<V, I> dense, V *__restrict__ partial)
{
  static constexpr int Teams = RowsThreads / Lanes, Rows = Teams * ShortEach, Width = Lanes * Pack<V>::Size, Size = Pack<V>::Size, U = RowsEntries;
  __shared__ V         tile[Width][Rows + 1];
  __shared__ I         ptr[Rows + 1], to[Rows];
  const int            team = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
  const PetscCount     begin = (PetscCount)blockIdx.x * Rows;
  const int            rows  = s.num - begin < Rows ? (int)(s.num - begin) : Rows;
  const Pack<V> *const b     = reinterpret_cast<const Pack<V> *>(bt) + lane;
  Entries<U, V, I>     now;
  Pack<V>              acc;
  int                  q = team;

  for (int r = threadIdx.x; r <= rows; r += RowsThreads) {
    ptr[r] = s.ptr[begin + r];
    if (r < rows) to[r] = s.row ? s.row[begin + r] : (I)(begin + r);
  }
  __syncthreads();
  I k = q < rows ? ptr[q] : 0, end = q < rows ? ptr[q + 1] : 0;

  now.Load(s, k, end);
  GallopWaitForPredecessor();
  __syncthreads(); /* no read-only load of B goes ahead of it */
#pragma unroll
  for (int e = 0; e < Size; e++) acc.v[e] = V(0);
  while (q < rows) {
    const int        last = q;
    Entries<U, V, I> next;
    Pack<V>          x[U];

    LoadPacks<Lanes>(b, now, x);
    k += U;
    if (k >= end) {
      q += Teams;
      k   = q < rows ? ptr[q] : 0;
      end = q < rows ? ptr[q + 1] : 0;
    }
    next.Load(s, k, end);
    AddProducts(now, x, acc);
    if (q != last) {
      if (to[last] < 0) *reinterpret_cast<Pack<V> *>(partial + (PetscCount)(-1 - to[last]) * Width + lane * Size) = acc;
#pragma unroll
      for (int e = 0; e < Size; e++) {
        tile[lane * Size + e][last] = acc.v[e];
        acc.v[e]                    = V(0);
      }
    }
    now = next;
  }
  __syncthreads();
  if (dense.add) { /* nothing for rows without entries */
    for (int r = threadIdx.x; r < rows; r += RowsThreads)
      if (ptr[r] == ptr[r + 1]) to[r] = Nowhere<I>;
    __syncthreads();
  }
  GallopLetSuccessorStart();
  StoreTile<Width, Rows>(tile, to, rows, dense);
}

/* ---------------------------------------------------------------- rows of several segments */

/* The sum of partial sums first, first + step and so on below end, in column c */
template <typename V, typename I>
static __device__ __forceinline__ V SumSlots(const V *__restrict__ partial, I first, I end, int step, int width, int c)
{
  V sum = V(0);

#pragma unroll 8
  for (I slot = first; slot < end; slot += step) sum += partial[(PetscCount)slot * width + c];
  return sum;
}

static constexpr int CombineFew = 8, CombineMany = 32; /* warps of a GPU block: a row each, and one row for all */

/*
  The warps of a GPU block add the partial sums of Together rows, a lane a column. Partial sums are [slot][width]. Each is added at the same place each time, so results do
  not depend on timing.
*/
template <int Warps, int Together, typename V, typename I>
__global__ static void __launch_bounds__(Warps *WarpSize) CombineKernel(const PetscCount begin, const PetscCount end, const I *__restrict__ splitrow, const I *__restrict__ splitptr, const I *__restrict__ splitnum, const V *__restrict__ partial, const int width, const DenseView<V, I> dense)
{
  static constexpr int Each = Warps / Together; /* warps for a row */
  __shared__ V         sums[Warps][WarpSize];
  const int            warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize, part = warp % Each;
  const PetscCount     k = begin + (PetscCount)blockIdx.x * Together + warp / Each;

  const I row = k < end ? splitrow[k] : 0, slot = k < end ? splitptr[k] : 0, stop = k < end ? slot + splitnum[k] : 0;

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
    if (part == 0 && k < end && c < dense.columns) Store(dense, row, (I)c, sum);
  }
}

/* ---------------------------------------------------------------- products */

static SegmentsView<PetscScalar, PetscInt> SegmentsOf(const TiledSpMM *t)
{
  return {t->nseg, t->slicedispl, t->segptr, t->segment ? t->segrow : NULL, t->col, t->value};
}

/* TiledSpMMCombine - Adds up partial sums, which are [slot][width], of the columns that dense has */
PetscErrorCode TiledSpMMCombine(const TiledSpMM *t, const PetscScalar *partial, int width, const DenseView<PetscScalar, PetscInt> &dense, cudaStream_t stream)
{
  const PetscCount few = t->nsplit - t->nmany;
  const PetscInt  *row = t->splitrow, *ptr = t->splitptr, *num = t->splitnum;

  PetscFunctionBegin;
  if (few)
    PetscCallCUDA(GallopLaunch(CombineKernel<CombineFew, CombineFew, PetscScalar, PetscInt>, {(few + CombineFew - 1) / CombineFew, CombineFew * WarpSize, 1, 0, stream, Overlaps(t)}, (PetscCount)0, few, row, ptr, num, partial, width, dense));
  if (t->nmany)
    PetscCallCUDA(GallopLaunch(CombineKernel<CombineMany, 1, PetscScalar, PetscInt>, {t->nmany, CombineMany * WarpSize, 1, 0, stream, Overlaps(t)}, few, t->nsplit, row, ptr, num, partial, width, dense));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMGetWork - At least so many bytes at t->work, which is kept for the next product; *done false: there is no room */
PetscErrorCode TiledSpMMGetWork(TiledSpMM *t, size_t bytes, PetscBool *done)
{
  void *work = t->work;

  PetscFunctionBegin;
  if (bytes > t->workbytes) {
    PetscCall(GallopDeviceFree(t->work));
    t->work      = NULL;
    t->workbytes = 0;
    PetscCall(GallopDeviceMalloc(bytes, &work));
    if (work) t->workbytes = bytes;
  }
  t->work = (PetscScalar *)work;
  *done   = (PetscBool)(!bytes || work);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries at once: R U loads of B are under way, fewer where that does not pay. By words of 8 bytes, which is what registers hold. */
static constexpr int EntriesAtOnce(int R, bool deep)
{
  const int words = R * (sizeof(PetscScalar) > 8 ? 2 : 1);

  return deep ? (words >= 16 ? 2 : 4) : words >= 8 ? 1 : words >= 4 ? 2 : 4;
}

/* Whether there is more than one entry at once with many columns */
static bool IsLong(const TiledSpMM *t)
{
  return t->nz >= (PetscCount)12 * t->nseg;
}

static PetscCount CachedGrid(const TiledSpMM *t, PetscInt columns, PetscInt R)
{
  return (t->nseg + CachedThreads - 1) / CachedThreads * ((columns + R - 1) / R);
}

/* Whether several entries are loaded at once: there are many in a row, or so few GPU blocks that latencies decide */
static bool IsDeep(const TiledSpMM *t, PetscInt columns, PetscInt R)
{
  return IsLong(t) || CachedGrid(t, columns, R) <= 8 * (PetscCount)t->multiprocessors;
}

/* R, fewer where loads are scattered, and where with so many there are too few GPU blocks: less than the GPU takes at once, or, where each thread has much to do, than about two a multiprocessor */
static TiledSpMMPlan PlanCached(const TiledSpMM *t, PetscInt columns)
{
  static constexpr PetscInt Most = sizeof(PetscScalar) > 8 ? 8 : 16, Least = 4; /* what registers hold */
  PetscInt                  R = t->options.columns ? PetscMin(Most, t->options.columns) : Most, left = 1;
  const auto                Resident = [&]() { return (PetscCount)CachedBlocks<PetscScalar>((int)R, EntriesAtOnce((int)R, IsLong(t))) * t->multiprocessors; };

  while (left < columns) left *= 2;
  R = PetscMin(R, left);
  if (t->scattered && !t->options.columns) R = PetscMin(R, Most / (IsLong(t) ? 2 : 4));
  while (R > Least && (IsLong(t) ? 2 * CachedGrid(t, columns, R) < 5 * t->multiprocessors : CachedGrid(t, columns, R) < Resident())) R /= 2;
  const int U = EntriesAtOnce((int)R, IsDeep(t, columns, R));

  return {R, U, CachedThreads, 1, CachedBlocks<PetscScalar>((int)R, U)};
}

template <int R, bool Deep>
static cudaError_t LaunchCached(const TiledSpMM *t, const DenseView<PetscScalar, PetscInt> &dense, PetscScalar *partial, cudaStream_t stream)
{
  static constexpr int U      = EntriesAtOnce(R, Deep);
  const PetscCount     blocks = (t->nseg + CachedThreads - 1) / CachedThreads;
  const unsigned int   groups = (unsigned int)((dense.columns + R - 1) / R);
  const GallopGrid     grid   = {blocks * groups, CachedThreads, 1, 0, stream, Overlaps(t)};

  return dense.columns % R ? GallopLaunch(CachedKernel<R, U, false, PetscScalar, PetscInt>, grid, SegmentsOf(t), dense, partial, groups) : GallopLaunch(CachedKernel<R, U, true, PetscScalar, PetscInt>, grid, SegmentsOf(t), dense, partial, groups);
}

template <bool Deep>
static cudaError_t LaunchCachedColumns(const TiledSpMM *t, PetscInt R, const DenseView<PetscScalar, PetscInt> &dense, PetscScalar *partial, cudaStream_t stream)
{
  switch (R) {
  case 1:
    return LaunchCached<1, Deep>(t, dense, partial, stream);
  case 2:
    return LaunchCached<2, Deep>(t, dense, partial, stream);
  case 4:
    return LaunchCached<4, Deep>(t, dense, partial, stream);
  case 8:
    return LaunchCached<8, Deep>(t, dense, partial, stream);
  default:
    return LaunchCached<16, Deep>(t, dense, partial, stream);
  }
}

static PetscErrorCode ApplyCached(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  const PetscCount blocks = (t->nseg + CachedThreads - 1) / CachedThreads;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(TiledSpMMGetWork(t, (size_t)t->nslots * p->columns * sizeof(PetscScalar), done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ForColumns(p->columns, PlanCached(t, p->columns).columns, blocks, [&](PetscCount begin, PetscCount columns, PetscInt Rnow) {
    const DenseView<PetscScalar, PetscInt> dense = DenseFrom(p, begin, columns);

    PetscFunctionBegin;
    PetscCallCUDA(IsDeep(t, p->columns, Rnow) ? LaunchCachedColumns<true>(t, Rnow, dense, t->work, stream) : LaunchCachedColumns<false>(t, Rnow, dense, t->work, stream));
    PetscCall(TiledSpMMCombine(t, t->work, (int)columns, dense, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static constexpr int MostLanes = 16, RowsBlocks = 8, ShortBlocks = 3; /* lanes for a row of B; GPU blocks that a multiprocessor has, of the kernel for short segments fewer */

static int LanesFor(PetscInt columns)
{
  int lanes = 1;

  while (lanes < MostLanes && lanes * Pack<PetscScalar>::Size < columns) lanes *= 2;
  return lanes;
}

/* Whether segments are short, and enough for each team to have several */
static bool IsShort(const TiledSpMM *t, int lanes)
{
  static constexpr int Short = 24; /* mean entries */

  return t->nz < (PetscCount)Short * t->nseg && t->nseg >= (PetscCount)(RowsThreads / lanes) * ShortEach * RowsBlocks * t->multiprocessors;
}

/* Lanes of one part for all segments are fewer than the GPU has: more parts, while each has some entries */
static int Parts(const TiledSpMM *t, int lanes)
{
  static constexpr int Most = 4, Each = 4, Threads = 2048; /* entries of a part, on average; threads of a multiprocessor */
  int                  parts = 1;

  while (parts < Most && 2 * parts * lanes <= WarpSize && (PetscCount)2 * parts * lanes * t->nseg <= (PetscCount)Threads * t->multiprocessors && t->nz >= (PetscCount)2 * parts * Each * t->nseg)
    parts *= 2;
  return parts;
}

static TiledSpMMPlan PlanTransposed(const TiledSpMM *t, PetscInt columns)
{
  const int lanes = LanesFor(columns), teams = RowsThreads / lanes, parts = Parts(t, lanes);

  if (IsShort(t, lanes)) return {lanes * Pack<PetscScalar>::Size, RowsEntries, teams * ShortEach, ShortEach, ShortBlocks};
  return {lanes * Pack<PetscScalar>::Size, RowsEntries * parts, teams / parts, 1, RowsBlocks};
}

/* TiledSpMMGetPlan - How a product with so many columns is computed without stages, where there is room for what it needs */
PetscErrorCode TiledSpMMGetPlan(const TiledSpMM *t, PetscInt columns, TiledSpMMPlan *plan)
{
  PetscFunctionBegin;
  *plan = t->kernel == TILEDSPMM_TENSOR ? TiledSpMMTensorPlan(t, columns) : t->kernel == TILEDSPMM_CACHED ? PlanCached(t, columns) : PlanTransposed(t, columns);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int Lanes, int Parts>
static cudaError_t LaunchRows(const TiledSpMM *t, const DenseView<PetscScalar, PetscInt> &dense, const PetscScalar *bt, PetscScalar *partial, cudaStream_t stream)
{
  static constexpr int Rows = RowsThreads / (Lanes * Parts);

  return GallopLaunch(RowsKernel<Lanes, Parts, PetscScalar, PetscInt>, {(t->nseg + Rows - 1) / Rows, RowsThreads, 1, 0, stream, Overlaps(t)}, SegmentsOf(t), bt, dense, partial);
}

template <int Lanes>
static PetscErrorCode LaunchTransposed(const TiledSpMM *t, const DenseView<PetscScalar, PetscInt> &dense, PetscScalar *bt, PetscScalar *partial, cudaStream_t stream)
{
  static constexpr int Width = Lanes * Pack<PetscScalar>::Size, Teams = RowsThreads / Lanes;
  const bool           isshort = IsShort(t, Lanes);
  const GallopGrid     grid    = {(t->nseg + Teams * ShortEach - 1) / (Teams * ShortEach), RowsThreads, 1, 0, stream, Overlaps(t)};
  const int            parts   = Parts(t, Lanes);

  PetscFunctionBegin;
  PetscCallCUDA(GallopLaunch(TransposeKernel<Width, PetscScalar, PetscInt>, {((PetscCount)t->n + TransposeRows - 1) / TransposeRows, Threads, 1, 0, stream, Overlaps(t)}, t->n, dense, bt));
  if (isshort) PetscCallCUDA(GallopLaunch(ShortRowsKernel<Lanes, PetscScalar, PetscInt>, grid, SegmentsOf(t), (const PetscScalar *)bt, dense, partial));
  else if (parts == 4) PetscCallCUDA((LaunchRows<Lanes, (Lanes * 4 > WarpSize ? 1 : 4)>(t, dense, bt, partial, stream)));
  else if (parts == 2) PetscCallCUDA((LaunchRows<Lanes, 2>(t, dense, bt, partial, stream)));
  else PetscCallCUDA((LaunchRows<Lanes, 1>(t, dense, bt, partial, stream)));
  PetscCall(TiledSpMMCombine(t, partial, Width, dense, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyTransposed(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  int          lanes = LanesFor(p->columns);
  PetscInt     width;
  cudaStream_t stream;
  const size_t rows = ((size_t)t->n + 15) / 16 * 16; /* what follows is aligned */

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  *done = PETSC_FALSE;
  for (; lanes; lanes /= 2) { /* fewer columns at once need less room */
    width = lanes * Pack<PetscScalar>::Size;
    PetscCall(TiledSpMMGetWork(t, (rows + (size_t)t->nslots) * width * sizeof(PetscScalar), done));
    if (*done) break;
  }
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt begin = 0; begin < p->columns; begin += width) {
    const DenseView<PetscScalar, PetscInt> dense   = DenseFrom(p, begin, PetscMin(width, p->columns - begin));
    PetscScalar *const                     partial = t->work + rows * width;

    switch (lanes) {
    case 1:
      PetscCall(LaunchTransposed<1>(t, dense, t->work, partial, stream));
      break;
    case 2:
      PetscCall(LaunchTransposed<2>(t, dense, t->work, partial, stream));
      break;
    case 4:
      PetscCall(LaunchTransposed<4>(t, dense, t->work, partial, stream));
      break;
    case 8:
      PetscCall(LaunchTransposed<8>(t, dense, t->work, partial, stream));
      break;
    default:
      PetscCall(LaunchTransposed<16>(t, dense, t->work, partial, stream));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMSegmentsApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  if (t->kernel == TILEDSPMM_CACHED) PetscCall(ApplyCached(t, p, done));
  else PetscCall(ApplyTransposed(t, p, done));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (*done) PetscCallCUDA(GallopNotFresh(stream, &t->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- building */

/* None of the row behind the last, which ends the sums */
struct SegmentsOfRow {
  const PetscInt *i;
  PetscInt        m, segment;

  __host__ __device__ Pieces operator()(PetscInt r) const
  {
    const PetscInt   len = r < m ? i[r + 1] - i[r] : 0;
    const PetscCount num = r < m ? (len > segment ? (len + segment - 1) / segment : 1) : 0;

    return PiecesOf(num, 1);
  }
};

/* The row of a partial sum: the last one before which there are no more */
static __device__ __forceinline__ PetscInt RowOfSlot(const Pieces *__restrict__ before, PetscInt m, PetscCount slot)
{
  PetscInt lo = 0, hi = m - 1;

  while (lo < hi) {
    const PetscInt mid = hi - (hi - lo) / 2;

    if (before[mid].slots <= slot) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/* A thread for each row, and one for each segment of rows that have several, which are those with partial sums: a row may have millions */
__global__ static void __launch_bounds__(Threads) SegmentsKernel(const SegmentsOfRow rows, const Pieces *__restrict__ before, PetscCount nseg, PetscInt *__restrict__ ptr, PetscInt *__restrict__ row, PetscCount nslots, PetscCount nsplit, PetscInt *__restrict__ splitrow, PetscInt *__restrict__ splitptr, PetscInt *__restrict__ splitnum)
{
  const PetscCount r = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (r < nslots) {
    const PetscInt   of = RowOfSlot(before, rows.m, r);
    const PetscCount k = r - before[of].slots, at = before[of].num + k;

    ptr[at] = rows.i[of] + (PetscInt)k * rows.segment;
    row[at] = (PetscInt)(-1 - r);
  }
  if (r > rows.m) return;
  const Pieces b = before[r], own = rows((PetscInt)r);

  if (r == rows.m) {
    ptr[nseg] = rows.i[r];
    return;
  }
  if (own.num == 1) {
    ptr[b.num] = rows.i[r];
    row[b.num] = (PetscInt)r;
  } else {
    const PetscCount at = PlaceOfSplit(own, b, 0, nsplit);

    splitrow[at] = (PetscInt)r;
    splitptr[at] = (PetscInt)b.slots;
    splitnum[at] = (PetscInt)own.num;
  }
}

/* The room of each slice of 32 segments, 0 behind the last: a warp a slice */
__global__ static void __launch_bounds__(Threads) SlicesKernel(PetscCount nseg, const PetscInt *__restrict__ ptr, PetscCount slices, PetscCount *__restrict__ room)
{
  const PetscCount seg  = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const PetscInt   len  = seg < nseg ? ptr[seg + 1] - ptr[seg] : 0;
  PetscInt         most = len;

  for (int by = WarpSize / 2; by; by /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, by));
  if (seg % WarpSize == 0 && seg / WarpSize <= slices) room[seg / WarpSize] = (PetscCount)most * WarpSize;
}

/* CSR's entries, in slices, with 0 in what is padding, which no product reads; without col only values */
__global__ static void __launch_bounds__(Threads) FillKernel(PetscCount nseg, const PetscInt *__restrict__ ptr, const PetscCount *__restrict__ slicedispl, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, PetscInt *__restrict__ col, PetscScalar *__restrict__ value)
{
  const PetscCount seg = blockIdx.x * (PetscCount)Threads + threadIdx.x, slice = seg / WarpSize;

  if (slice * WarpSize >= nseg) return;
  const PetscInt   begin = seg < nseg ? ptr[seg] : 0, len = seg < nseg ? ptr[seg + 1] - begin : 0;
  const PetscCount first = slicedispl[slice], width = (slicedispl[slice + 1] - first) / WarpSize;

  for (PetscCount k = 0; k < width; k++) {
    const PetscCount at = first + k * WarpSize + seg % WarpSize;

    if (col) col[at] = k < len ? j[begin + k] : 0;
    value[at] = k < len ? a[begin + k] : PetscScalar(0);
  }
}

PetscErrorCode TiledSpMMSegmentsRefresh(TiledSpMM *t, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (t->kernel == TILEDSPMM_TRANSPOSED) PetscCall(GallopDeviceCopy(t->value, csr->a, (size_t)t->nz * sizeof(*t->value)));
  else {
    FillKernel<<<(unsigned int)((t->slices * WarpSize + Threads - 1) / Threads), Threads, 0, stream>>>(t->nseg, t->segptr, t->slicedispl, csr->j, csr->a, NULL, t->value);
    GallopCheckLaunch();
  }
  t->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

TILEDSPMM_CARVE(CarveSegments, TILEDSPMM_SEGMENTS)
TILEDSPMM_CARVE(CarveColumns, TILEDSPMM_COLUMNS)

/* What is needed until the segments are there */
typedef struct {
  Pieces *before;
  char   *cub;
  size_t  cubbytes;
} Workspace;

static size_t Carve(Workspace *w, PetscInt m, bool split, void *base)
{
  GallopCarver carver(base);

  if (split) carver.Take(w->before, (PetscCount)m + 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* Cuts rows; how many segments there are is asked before there is room for them */
static PetscErrorCode CountSegments(TiledSpMM *t, const SegmentsOfRow &rows, Workspace *w, cudaStream_t stream)
{
  const auto each = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscInt)0), rows);
  Pieces     all;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, w->cubbytes, each, w->before, PiecesAdd(), Pieces{0, 0, 0, 0}, (PetscCount)t->m + 1, stream));
  PetscCall(GallopDeviceCopyOut(&all, w->before + t->m, sizeof(all)));
  t->nseg   = all.num;
  t->nsplit = all.few + all.many;
  t->nmany  = all.many;
  t->nslots = all.slots;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureScans(const TiledSpMM *t, const SegmentsOfRow &rows, Workspace *w, cudaStream_t stream)
{
  const auto       each     = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscInt)0), rows);
  PetscCount      *count    = NULL;
  const PetscCount most     = t->segment ? t->m + t->nz / t->segment : t->m; /* segments: each but the last of a row is full */
  size_t           bytes[2] = {0, 0};

  PetscFunctionBegin;
  if (t->segment) PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, bytes[0], each, w->before, PiecesAdd(), Pieces{0, 0, 0, 0}, (PetscCount)t->m + 1, stream));
  if (t->kernel == TILEDSPMM_CACHED) PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[1], count, count, most / WarpSize + 2, stream));
  w->cubbytes = PetscMax(bytes[0], bytes[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the number of segments known, and room for them */
static PetscErrorCode Complete(TiledSpMM *t, const GallopCSR *csr, const SegmentsOfRow &rows, Workspace *w, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  void *entries = NULL;

  PetscFunctionBegin;
  if (t->segment) {
    SegmentsKernel<<<(unsigned int)((PetscMax((PetscCount)t->m + 1, t->nslots) + Threads - 1) / Threads), Threads, 0, stream>>>(rows, w->before, t->nseg, t->segptr, t->segrow, t->nslots, t->nsplit, t->splitrow, t->splitptr, t->splitnum);
    GallopCheckLaunch();
  } else PetscCall(GallopDeviceCopy(t->segptr, csr->i, (size_t)(t->m + 1) * sizeof(PetscInt)));
  if (t->kernel == TILEDSPMM_CACHED) {
    SlicesKernel<<<(unsigned int)((t->slices * WarpSize + Threads) / Threads), Threads, 0, stream>>>(t->nseg, t->segptr, t->slices, t->slicedispl);
    GallopCheckLaunch();
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, t->slicedispl, t->slicedispl, t->slices + 1, stream));
    PetscCall(GallopDeviceCopyOut(&t->stored, t->slicedispl + t->slices, sizeof(t->stored)));
  } else t->stored = t->nz;
  t->bytes = TiledSpMMBytes(t);
  if (!maxbytes || t->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(CarveColumns(t, NULL), &entries));
  if (!entries) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveColumns(t, entries);
  if (t->kernel == TILEDSPMM_CACHED) {
    FillKernel<<<(unsigned int)((t->slices * WarpSize + Threads - 1) / Threads), Threads, 0, stream>>>(t->nseg, t->segptr, t->slicedispl, csr->j, csr->a, t->col, t->value);
    GallopCheckLaunch();
  } else {
    PetscCall(GallopDeviceCopy(t->col, csr->j, (size_t)t->nz * sizeof(*t->col)));
    PetscCall(GallopDeviceCopy(t->value, csr->a, (size_t)t->nz * sizeof(*t->value)));
  }
  t->fresh = PETSC_TRUE;
  *done    = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMSegmentsBuild - For t->kernel, with rows cut where they are longer than segment, which is 0 where none is */
PetscErrorCode TiledSpMMSegmentsBuild(TiledSpMM *t, const GallopCSR *csr, PetscInt segment, PetscCount maxbytes, PetscBool *done)
{
  const SegmentsOfRow rows = {csr->i, csr->m, segment};
  Workspace           w    = {};
  void               *memory, *segments = NULL;
  size_t              bytes;
  cudaStream_t        stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopKernelOverlaps(CombineKernel<CombineMany, 1, PetscScalar, PetscInt>, &t->overlaps));
  t->segment = segment;
  t->nseg    = t->m;
  PetscCall(MeasureScans(t, rows, &w, stream));
  bytes = Carve(&w, t->m, segment > 0, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, t->m, segment > 0, memory);
  if (segment) PetscCall(CountSegments(t, rows, &w, stream));
  t->slices = t->kernel == TILEDSPMM_CACHED ? (t->nseg + WarpSize - 1) / WarpSize : 0;
  PetscCall(GallopDeviceMalloc(CarveSegments(t, NULL), &segments));
  if (segments) {
    (void)CarveSegments(t, segments);
    PetscCall(Complete(t, csr, rows, &w, maxbytes, stream, done));
  }
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}
