/* SPDX-License-Identifier: BSD-2-Clause */
/*
  TiledSpMM's transposed kernels: a copy of B row by row, made first; some lanes have a segment, and load a row of B together
*/

#include "tiledspmmsegments.h"

static constexpr int RowsThreads = 256, RowsEntries = 4; /* of a segment, loaded at once */
static constexpr int ShortEach = 4;                      /* short segments that a team has, one after the other */

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

static constexpr int TransposeRows = 64, TransposeThreads = 256;

/* B row by row, Width columns of each, 0 in those that it does not have */
template <int Width, typename V, typename I>
__global__ static void __launch_bounds__(TransposeThreads) TransposeKernel(const I n, const DenseView<V, I> dense, V *__restrict__ bt)
{
  __shared__ V     tile[Width][TransposeRows + 1];
  const PetscCount begin = (PetscCount)blockIdx.x * TransposeRows;

  GallopWaitForPredecessor();
  __syncthreads(); /* no read-only load goes ahead of it */
#pragma unroll
  for (int q = 0; q < Width * TransposeRows; q += TransposeThreads) {
    const int        at = q + threadIdx.x, c = at / TransposeRows, r = at % TransposeRows;
    const PetscCount row = begin + r;

    if (at < Width * TransposeRows) tile[c][r] = row < n && c < dense.columns ? GallopLoadReadOnly(dense.b + (PetscCount)c * dense.ldb + row) : V(0);
  }
  __syncthreads();
  GallopLetSuccessorStart();
#pragma unroll
  for (int q = 0; q < Width * TransposeRows; q += TransposeThreads) {
    const int at = q + threadIdx.x, c = at % Width, r = at / Width;

    if (at < Width * TransposeRows && begin + r < n) bt[(begin + r) * Width + c] = tile[c][r];
  }
}

/* Some entries of a segment, those that it does not have with value and column 0 */
template <int U, typename V, typename I>
struct Entries {
  GallopColumn c[U];
  V            v[U];
  int          num;

  __device__ __forceinline__ void Load(const SegmentsView<V, I> &s, I k, I end)
  {
    num = end - k < U ? (int)(end - k) : U; /* less than 0, maybe */
#pragma unroll
    for (int u = 0; u < U; u++) {
      c[u] = u < num ? GallopLoadReadOnly(s.col + k + u) : 0;
      v[u] = u < num ? GallopLoadReadOnly(s.value + k + u) : V(0);
    }
  }

  __device__ __forceinline__ void LoadAll(const SegmentsView<V, I> &s, I k)
  {
#pragma unroll
    for (int u = 0; u < U; u++) {
      c[u] = GallopLoadReadOnly(s.col + k + u);
      v[u] = GallopLoadReadOnly(s.value + k + u);
    }
    num = U;
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

/* What is in tile to C, a thread block's rows of a column by neighbouring threads; to is a row, less than 0 where it is not written */
template <int Width, int Rows, typename V, typename I>
static __device__ __forceinline__ void StoreTile(const V tile[Width][Rows + 1], const I to[Rows], int rows, const DenseView<V, I> &dense)
{
  for (int at = threadIdx.x; at < Width * Rows; at += RowsThreads) {
    const int c = at / Rows, r = at % Rows;

    if (r < rows && c < dense.columns && to[r] >= 0) Store(dense, to[r], (I)c, tile[c][r]);
  }
}

/* Thread blocks that a multiprocessor shall have: latencies are hidden by warps alone. Larger scalars and indices take more registers. */
template <typename V, typename I>
static constexpr int RowsResident()
{
  return sizeof(V) > 8 || sizeof(I) > 4 ? 4 : 6;
}

/* Lanes lanes per segment, each a pack of columns; with Parts of these, each of which takes every Parts-th of its entries, U at once */
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
    now.LoadAll(s, k);
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

/* ---------------------------------------------------------------- plan */

static constexpr int MostLanes  = 16;                 /* for a row of B */
static constexpr int RowsBlocks = 8, ShortBlocks = 3; /* thread blocks that a multiprocessor has, as the model counts them: of RowsKernel, and of ShortRowsKernel, which was fitted to an H200's times */
static constexpr int ShortEntries = 24;               /* of a segment, on average, below which it is short. Web-like rows of 3 entries take 474 us so, not 595. */
static constexpr int MostParts = 4, PartEntries = 4;  /* teams of lanes that share a segment, and the fewest entries of each, on average */
static constexpr int MultiprocessorThreads = 2048;    /* that run at once */

static int LanesFor(PetscInt columns)
{
  return (int)PowerOfTwo((columns - 1) / Pack<PetscScalar>::Size + 1, MostLanes);
}

/* Whether segments are short, and enough for each team to have several */
static bool IsShort(const TiledSpMM *t, int lanes)
{
  return t->nz < (PetscCount)ShortEntries * t->nseg && t->nseg >= (PetscCount)(RowsThreads / lanes) * ShortEach * RowsBlocks * t->multiprocessors;
}

/* Whether with parts parts there are no more lanes than the GPU runs at once, and some entries for each */
static bool HasParts(const TiledSpMM *t, int lanes, int parts)
{
  return parts * lanes <= WarpSize && (PetscCount)parts * lanes * t->nseg <= (PetscCount)MultiprocessorThreads * t->multiprocessors && t->nz >= (PetscCount)parts * PartEntries * t->nseg;
}

static int Parts(const TiledSpMM *t, int lanes)
{
  int parts = 1;

  while (parts < MostParts && HasParts(t, lanes, 2 * parts)) parts *= 2;
  return parts;
}

/* TiledSpMMTransposedPlan - Where there is room for what that number of columns needs: with less, fewer are computed at once */
TiledSpMMPlan TiledSpMMTransposedPlan(const TiledSpMM *t, PetscInt columns)
{
  const int lanes = LanesFor(columns), teams = RowsThreads / lanes, parts = Parts(t, lanes);

  if (IsShort(t, lanes)) return {lanes * Pack<PetscScalar>::Size, RowsEntries, teams * ShortEach, ShortEach, ShortBlocks};
  return {lanes * Pack<PetscScalar>::Size, RowsEntries * parts, teams / parts, 1, RowsBlocks};
}

/* ---------------------------------------------------------------- product */

static constexpr PetscCount Align = 16; /* rows of B transposed that there is room for are a multiple of it: partial sums, which follow, are aligned */

template <int Lanes, int Parts>
static cudaError_t LaunchRows(const TiledSpMM *t, const Dense &dense, PetscScalar *partial, cudaStream_t stream)
{
  static constexpr int Rows = RowsThreads / (Lanes * Parts);
  const GallopGrid     grid = {(t->nseg + Rows - 1) / Rows, RowsThreads, 1, 0, stream, Overlaps(t)};

  return GallopLaunch(RowsKernel<Lanes, Parts, PetscScalar, PetscInt>, grid, SegmentsOf(t), t->work, dense, partial);
}

template <int Lanes>
static cudaError_t LaunchShortRows(const TiledSpMM *t, const Dense &dense, PetscScalar *partial, cudaStream_t stream)
{
  static constexpr int Rows = RowsThreads / Lanes * ShortEach;
  const GallopGrid     grid = {(t->nseg + Rows - 1) / Rows, RowsThreads, 1, 0, stream, Overlaps(t)};

  return GallopLaunch(ShortRowsKernel<Lanes, PetscScalar, PetscInt>, grid, SegmentsOf(t), t->work, dense, partial);
}

template <int Lanes>
static cudaError_t LaunchTranspose(const TiledSpMM *t, const Dense &dense, cudaStream_t stream)
{
  const GallopGrid grid = {((PetscCount)t->n + TransposeRows - 1) / TransposeRows, TransposeThreads, 1, 0, stream, Overlaps(t)};

  return GallopLaunch(TransposeKernel<Lanes * Pack<PetscScalar>::Size, PetscScalar, PetscInt>, grid, t->n, dense, t->work);
}

template <int Lanes>
static cudaError_t Launch(const TiledSpMM *t, const Dense &dense, PetscScalar *partial, cudaStream_t stream)
{
  const cudaError_t err   = LaunchTranspose<Lanes>(t, dense, stream);
  const int         parts = Parts(t, Lanes);

  if (err != cudaSuccess) return err;
  if (IsShort(t, Lanes)) return LaunchShortRows<Lanes>(t, dense, partial, stream);
  if constexpr (Lanes * 4 <= WarpSize)
    if (parts == 4) return LaunchRows<Lanes, 4>(t, dense, partial, stream);
  return parts == 2 ? LaunchRows<Lanes, 2>(t, dense, partial, stream) : LaunchRows<Lanes, 1>(t, dense, partial, stream);
}

PetscErrorCode TiledSpMMTransposedApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  const size_t rows  = (size_t)((t->n + Align - 1) / Align * Align);
  int          lanes = LanesFor(p->columns);
  PetscInt     width;
  cudaStream_t stream;

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
    const Dense        dense   = DenseFrom(p, begin, PetscMin(width, p->columns - begin));
    PetscScalar *const partial = t->work + rows * width;

    PetscCallCUDA(WithPower<MostLanes>(lanes, [&](auto power) { return Launch<decltype(power)::value>(t, dense, partial, stream); }));
    PetscCall(TiledSpMMCombine(t, partial, (int)width, dense, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
