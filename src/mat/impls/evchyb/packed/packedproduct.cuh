/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How a warp multiplies a slice of packed storage, or a part of a piece of a long row */

#include "packedkernels.cuh"

/* c + a b, rounded once, as the compiler makes it of the sums of plain storage */
template <typename V>
static __device__ __forceinline__ V EVCHYBPackMultiplyAdd(V a, V b, V c)
{
  if constexpr (cuda::std::is_floating_point_v<V>) return fma(a, b, c);
  else return c + a * b;
}

/*
  Adds what a lane's two entries of a line, a, give; has is x for them. Where there is no entry, on is false, 0 is stored and -0 is taken for x: their product leaves any sum as it is. x is not
  loaded under a condition that differs among lanes, for which the compiler would wait before it starts the next load. Alike: on is the same for both and for all lanes.
*/
template <EVCHYBPackValues Kind, bool Alike, typename V>
static __device__ __forceinline__ void EVCHYBPackAdd(const V a[2], const bool on[2], const V has[2], V &sum0, V &sum1)
{
  constexpr bool Dict = EVCHYBPackIsDict(Kind); /* whose number 0 may be any */

  if (Alike && !on[0]) return;
  sum0 = EVCHYBPackMultiplyAdd<V>(!Alike && Dict && !on[0] ? V(0) : a[0], Alike || on[0] ? has[0] : V(-0.0), sum0);
  sum1 = EVCHYBPackMultiplyAdd<V>(!Alike && Dict && !on[1] ? V(0) : a[1], Alike || on[1] ? has[1] : V(-0.0), sum1);
}

/* Values of some lines, each so many lines after the one before */
template <int Lines, EVCHYBPackValues Kind>
struct EVCHYBPackLines {
  EVCHYBPackLaneValues<Kind> stored[Lines];

  __device__ __forceinline__ void Load(const unsigned char *value, int apart, int num)
  {
#pragma unroll
    for (int u = 0; u < Lines; u++) stored[u].LoadOnceIf(value + u * apart * EVCHYBPackBytesALine<Kind>(), u < num);
  }
};

struct EVCHYBPackNoValues {
  __device__ __forceinline__ void Load(const unsigned char *, int, int) { }
};

/* Lines from k on of a slice, as they are known beside their values: the lane's line, and the bits of its rows. Codes too, which take few registers, and for which numbers of the dictionary wait. */
template <int Lines, EVCHYBPackValues Kind>
struct EVCHYBPackAhead {
  EVCHYBPackLine                                                                                    own;
  uint2                                                                                             mask;
  cuda::std::conditional_t<EVCHYBPackIsDict(Kind), EVCHYBPackLines<Lines, Kind>, EVCHYBPackNoValues> values;
};

/* Asks for a lane's line of those from k on, of which there are left: the lane-th, or the last one that is multiplied with it */
template <int Lines>
static __device__ __forceinline__ EVCHYBPackLine EVCHYBPackLoadOwn(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int k, int left)
{
  const int lane = threadIdx.x % WarpSize;

  return EVCHYBPackLoadLine(view.line + slice.line + (k + min(lane, min(left, Lines) - 1)));
}

/* Asks for what is known of those lines */
template <int Lines, EVCHYBPackValues Kind>
static __device__ __forceinline__ EVCHYBPackAhead<Lines, Kind> EVCHYBPackLoadAhead(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int k, int left)
{
  const int                    lane = threadIdx.x % WarpSize;
  EVCHYBPackAhead<Lines, Kind> ahead;

  ahead.own  = {0, 0};
  ahead.mask = EVCHYBPackLoadMasks(slice, view.stream, k / EVCHYB_PACK_CHUNK, lane);
  if (left > 0) ahead.own = EVCHYBPackLoadOwn<Lines>(view, slice, k, left);
  ahead.values.Load(view.value + (size_t)slice.value * EVCHYB_PACK_UNIT + (size_t)k * EVCHYBPackBytesALine<Kind>(), 1, left);
  return ahead;
}

/* The bits that a lane's rows have in num lines from k on */
static __device__ __forceinline__ EVCHYBPackPair<uint32_t> EVCHYBPackMasksFrom(const EVCHYBPackSlice &slice, uint2 stored, int k, int num)
{
  const uint32_t                 all  = EVCHYBPackAllLines(num);
  const EVCHYBPackPair<uint32_t> mask = EVCHYBPackMasksOf(slice, stored);

  return {mask.first >> k % EVCHYB_PACK_CHUNK & all, mask.second >> k % EVCHYB_PACK_CHUNK & all};
}

/* A lane's two columns of lines that are multiplied together, of which lanes have their own: all grow by one step from row to row */
struct EVCHYBPackStridedColumns {
  static constexpr bool MayBeFull = true;

  uint32_t by[2];

  __device__ __forceinline__ EVCHYBPackStridedColumns(int step) : by{(uint32_t)step * (threadIdx.x % WarpSize), (uint32_t)step * (threadIdx.x % WarpSize + WarpSize)} { }

  __device__ __forceinline__ EVCHYBPackPair<int> operator()(EVCHYBPackLine own, int u) const
  {
    const EVCHYBPackLine line = {__shfl_sync(0xffffffffu, own.base, u), 0};

    return {EVCHYBPackFrom(line, by[0]), EVCHYBPackFrom(line, by[1])};
  }
};

/* The same where all have offsets of 16 bits. Lines that there are not are the last one. */
template <int Lines>
struct EVCHYBPackNarrowColumns {
  static constexpr bool MayBeFull = true;

  uint32_t word[Lines];

  static __device__ __forceinline__ bool Are(EVCHYBPackLine own) { return __all_sync(0xffffffffu, EVCHYBPackClassOf(own) == EVCHYB_PACK_16); }

  __device__ __forceinline__ EVCHYBPackNarrowColumns() { }

  __device__ __forceinline__ EVCHYBPackNarrowColumns(EVCHYBPackLine own, const unsigned char *stream)
  {
#pragma unroll
    for (int u = 0; u < Lines; u++) word[u] = __ldcs(reinterpret_cast<const uint32_t *>(EVCHYBPackOffsets(GallopShuffle(own, u), stream)) + threadIdx.x % WarpSize);
  }

  __device__ __forceinline__ EVCHYBPackPair<int> operator()(EVCHYBPackLine own, int u) const
  {
    const EVCHYBPackLine line = {__shfl_sync(0xffffffffu, own.base, u), 0};

    return {EVCHYBPackFrom(line, word[u] & 0xffff), EVCHYBPackFrom(line, word[u] >> 16)};
  }
};

/* The same of any lines */
template <int Lines>
struct EVCHYBPackAnyColumns {
  static constexpr bool MayBeFull = false; /* with code for full lines too a kernel would be too long for the cache of instructions */

  uint2 word[Lines];

  __device__ __forceinline__ EVCHYBPackAnyColumns(EVCHYBPackLine own, const unsigned char *stream, int num)
  {
#pragma unroll
    for (int u = 0; u < Lines; u++) {
      const EVCHYBPackLine line = GallopShuffle(own, u);

      word[u] = make_uint2(0, 0);
      if (u < num) word[u] = EVCHYBPackLoadOffsets(line, stream, threadIdx.x % WarpSize);
    }
  }

  __device__ __forceinline__ EVCHYBPackPair<int> operator()(EVCHYBPackLine own, int u) const { return EVCHYBPackColumns(GallopShuffle(own, u), word[u], threadIdx.x % WarpSize); }
};

/*
  Some lines, of which there are num, each apart lines after the one before: their values and x for all of them are under way together. Order of sums: that of the lines, and the first of a lane's two
  entries first. Full: all rows have entries in all of these lines. Elsewhere x[0] is loaded where there is no entry.
*/
template <int Lines, EVCHYBPackValues Kind, bool Full, typename Known, typename Columns, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyLinesAs(const EVCHYBPackView &view, const unsigned char *value, int apart, const Known &known, const Columns &columns, int num, EVCHYBPackPair<uint32_t> mask, const V *x, V &sum0, V &sum1)
{
  EVCHYBPackLines<Lines, Kind> values;
  V                            a[Lines][2], has[Lines][2];

  if constexpr (cuda::std::is_same_v<decltype(Known::values), EVCHYBPackLines<Lines, Kind>>) values = known.values;
  else values.Load(value, apart, num);
#pragma unroll
  for (int u = 0; u < Lines; u++) {
    const EVCHYBPackPair<int> column = columns(known.own, u);

    has[u][0] = x[Full || mask.first >> u & 1 ? column.first : 0];
    has[u][1] = x[Full || mask.second >> u & 1 ? column.second : 0];
  }
#pragma unroll
  for (int u = 0; u < 2 * Lines; u++) a[u / 2][u % 2] = EVCHYBPackDecode(values.stored[u / 2], u % 2, view.dict);
#pragma unroll
  for (int u = 0; u < Lines; u++) {
    const bool on[2] = {Full ? u < num : (bool)(mask.first >> u & 1), Full ? u < num : (bool)(mask.second >> u & 1)};

    EVCHYBPackAdd<Kind, Full>(a[u], on, has[u], sum0, sum1);
  }
}

template <int Lines, EVCHYBPackValues Kind, typename Known, typename Columns, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyLinesBy(const EVCHYBPackView &view, const unsigned char *value, int apart, const Known &known, const Columns &columns, int num, EVCHYBPackPair<uint32_t> mask, const V *x, V &sum0, V &sum1)
{
  if (Columns::MayBeFull && __all_sync(0xffffffffu, (mask.first & mask.second) == EVCHYBPackAllLines(num))) EVCHYBPackMultiplyLinesAs<Lines, Kind, true>(view, value, apart, known, columns, num, mask, x, sum0, sum1);
  else EVCHYBPackMultiplyLinesAs<Lines, Kind, false>(view, value, apart, known, columns, num, mask, x, sum0, sum1);
}

/* The same by step, by which all columns grow from row to row, 0 where they may not. Narrow: columns of 16 bits have code of their own. */
template <int Lines, bool Narrow, EVCHYBPackValues Kind, typename Known, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyLines(const EVCHYBPackView &view, const unsigned char *value, int apart, const Known &known, int step, int num, EVCHYBPackPair<uint32_t> mask, const V *x, V &sum0, V &sum1)
{
  if (step) EVCHYBPackMultiplyLinesBy<Lines, Kind>(view, value, apart, known, EVCHYBPackStridedColumns(step), num, mask, x, sum0, sum1);
  else if (Narrow && EVCHYBPackNarrowColumns<Lines>::Are(known.own)) EVCHYBPackMultiplyLinesBy<Lines, Kind>(view, value, apart, known, EVCHYBPackNarrowColumns<Lines>(known.own, view.stream), num, mask, x, sum0, sum1);
  else EVCHYBPackMultiplyLinesBy<Lines, Kind>(view, value, apart, known, EVCHYBPackAnyColumns<Lines>(known.own, view.stream, num), num, mask, x, sum0, sum1);
}

struct EVCHYBPackOwn {
  EVCHYBPackLine     own;
  EVCHYBPackNoValues values;
};

/*
  What the rows of a slice add up to. First: what was asked for of its first lines. Offsets of 16 bits are asked for while the lines before are multiplied, for which a warp has to know those lines by then.
*/
template <int Lines, EVCHYBPackValues Kind, typename First, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyAhead(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, const First &first, const V *x, V sum[2])
{
  const int                      width  = slice.width;
  const unsigned char           *value  = view.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
  EVCHYBPackLine                 own    = first.own, next = own;
  uint2                          bits   = first.mask;
  bool                           narrow = EVCHYBPackNarrowColumns<Lines>::Are(own);
  EVCHYBPackNarrowColumns<Lines> columns;

  if (narrow) columns = EVCHYBPackNarrowColumns<Lines>(own, view.stream);
  if (width > Lines) next = EVCHYBPackLoadOwn<Lines>(view, slice, Lines, width - Lines);
#pragma unroll 1
  for (int k = 0; k < width; k += Lines) {
    const int                            left = width - k - Lines, num = min(Lines, width - k);
    const EVCHYBPackOwn                  known = {own, {}};
    const EVCHYBPackNarrowColumns<Lines> those = columns;
    const bool                           are   = narrow;
    const EVCHYBPackPair<uint32_t>       mask  = EVCHYBPackMasksFrom(slice, bits, k, num);

    if (left > 0) {
      own    = next;
      bits   = EVCHYBPackLoadMasks(slice, view.stream, (k + Lines) / EVCHYB_PACK_CHUNK, threadIdx.x % WarpSize);
      narrow = EVCHYBPackNarrowColumns<Lines>::Are(own);
      if (narrow) columns = EVCHYBPackNarrowColumns<Lines>(own, view.stream);
      if (left > Lines) next = EVCHYBPackLoadOwn<Lines>(view, slice, k + 2 * Lines, left - Lines);
    }
    if (are) EVCHYBPackMultiplyLinesBy<Lines, Kind>(view, value, 1, known, those, num, mask, x, sum[0], sum[1]);
    else EVCHYBPackMultiplyLinesBy<Lines, Kind>(view, value, 1, known, EVCHYBPackAnyColumns<Lines>(known.own, view.stream, num), num, mask, x, sum[0], sum[1]);
    value += Lines * EVCHYBPackBytesALine<Kind>();
  }
}

/* z of the rows of num slices, at least one, which are in a warp's shared memory. Kind: how all values are stored, or EVCHYB_PACK_VALUE, beside which slices may have EVCHYB_PACK_SINGLE and EVCHYB_PACK_REAL. Ahead: columns of the next lines are asked for. */
template <int Lines, bool Narrow, bool Ahead, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiply(const EVCHYBPackView &view, const EVCHYBPackSlice *slices, int num, const GallopVectors<V> &v, V *dot)
{
  static_assert(EVCHYB_PACK_CHUNK % Lines == 0, "lines that are multiplied together have their bits in one word of a mask");
  const int                    lane  = threadIdx.x % WarpSize;
  EVCHYBPackAhead<Lines, Kind> ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slices[0], 0, slices[0].width);

  GallopWaitForPredecessor();
#pragma unroll 1
  for (int e = 0; e < num; e++) {
    const EVCHYBPackSlice &slice = slices[e];
    const int              width = slice.width, step = (int)slice.at, units = EVCHYBPackValueUnits((EVCHYBPackValues)slice.values);
    const unsigned char   *value  = view.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
    V                      sum[2] = {V(0), V(0)};

#pragma unroll 1
    for (int k = 0; k < width && (step || !Ahead); k += Lines) {
      const int                          left = width - k, lines = min(Lines, left);
      const EVCHYBPackAhead<Lines, Kind> known = ahead;
      const EVCHYBPackPair<uint32_t>     mask  = EVCHYBPackMasksFrom(slice, known.mask, k, lines);

      if (left > Lines) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slice, k + Lines, left - Lines);
      else if (e + 1 < num) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slices[e + 1], 0, slices[e + 1].width);
      EVCHYBPackDoAs<Kind>(slice.values, [&](auto as) { EVCHYBPackMultiplyLines<Lines, Narrow, decltype(as)::value>(view, value, 1, known, step, lines, mask, v.x, sum[0], sum[1]); });
      value += Lines * units * EVCHYB_PACK_UNIT;
    }
    if constexpr (Ahead) {
      if (!step) EVCHYBPackDoAs<Kind>(slice.values, [&](auto as) { EVCHYBPackMultiplyAhead<Lines, decltype(as)::value>(view, slice, ahead, v.x, sum); });
    }
    if ((Ahead ? !step || !width : !width) && e + 1 < num) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slices[e + 1], 0, slices[e + 1].width);
    EVCHYBPackPair<int> row = EVCHYBPackRows(slice.rows, view.stream, lane);

    if (view.order) row = {row.first < 0 ? -1 : (int)__ldg(view.order + row.first), row.second < 0 ? -1 : (int)__ldg(view.order + row.second)};
    if (row.first >= 0) GallopStore(v, row.first, sum[0], dot);
    if (row.second >= 0) GallopStore(v, row.second, sum[1], dot);
  }
}

/* How many of lines k, k + warps, ... there are that are multiplied together */
template <int Lines>
static __device__ __forceinline__ int EVCHYBPackLinesFrom(int k, int warps, int width)
{
  return min(Lines, __popc(__ballot_sync(0xffffffffu, k + (int)(threadIdx.x % WarpSize) * warps < width)));
}

/* What a lane's two entries in lines warp, warp + warps, ... of a piece of a row add up to, Lines of them under way; of their descriptions each lane has one, so that more fit registers */
template <int Lines, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumManyLines(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int warp, int warps, const V *x, bool wait)
{
  const int             lane = threadIdx.x % WarpSize, width = slice.width;
  const unsigned char  *value = view.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
  const EVCHYBPackLine *line  = view.line + slice.line;
  int                   num   = EVCHYBPackLinesFrom<Lines>(warp, warps, width);
  EVCHYBPackOwn         ahead = {{0, 0}, {}};
  V                     sum   = V(0);

  if (num) ahead.own = EVCHYBPackLoadLine(line + warp + min(lane, num - 1) * warps);
  if (wait) GallopWaitForPredecessor();
#pragma unroll 1
  for (int k = warp; num; k += Lines * warps) {
    const EVCHYBPackOwn            known = ahead;
    const int                      lines = num, last = k + (lines - 1) * warps == width - 1 ? slice.last : EVCHYB_PACK_ROWS, kind = EVCHYBPackClassOf(known.own), stride = EVCHYBPackStrideOf(known.own);
    const uint32_t                 all  = EVCHYBPackAllLines(lines);
    const EVCHYBPackPair<uint32_t> mask = {lane < last ? all : all >> 1, lane + WarpSize < last ? all : all >> 1};
    const unsigned char           *from = value + (size_t)k * EVCHYBPackBytesALine<Kind>();

    num = EVCHYBPackLinesFrom<Lines>(k + Lines * warps, warps, width);
    if (num) ahead.own = EVCHYBPackLoadLine(line + k + (Lines + min(lane, num - 1)) * warps);
    EVCHYBPackMultiplyLines<Lines, true, Kind>(view, from, warps, known, __all_sync(0xffffffffu, stride == __shfl_sync(0xffffffffu, stride, 0) && kind == EVCHYB_PACK_STRIDED) ? stride : 0, lines, mask, x, sum, sum);
  }
  return sum;
}

/* The same of few lines, faster where each lane has the descriptions of all, docs/development/packing.md */
template <int Lines, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumFewLines(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int warp, int warps, const V *x, bool wait)
{
  const int            lane = threadIdx.x % WarpSize, width = slice.width;
  const unsigned char *value = view.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
  V                    sum   = V(0);

  for (int k = warp; k < width; k += Lines * warps) {
    EVCHYBPackLine             own[Lines];
    uint2                      word[Lines];
    EVCHYBPackLaneValues<Kind> stored[Lines];
    V                          a[Lines][2], has[Lines][2];

#pragma unroll
    for (int u = 0; u < Lines; u++) own[u] = EVCHYBPackLoadLine(view.line + slice.line + min(k + u * warps, width - 1)); /* of lines that there are not: the last one's */
#pragma unroll
    for (int u = 0; u < Lines; u++) word[u] = EVCHYBPackLoadOffsets(own[u], view.stream, lane);
#pragma unroll
    for (int u = 0; u < Lines; u++) stored[u].LoadOnceIf(value + (size_t)(k + u * warps) * EVCHYBPackBytesALine<Kind>(), k + u * warps < width);
    if (wait) GallopWaitForPredecessor();
    wait = false;
#pragma unroll
    for (int u = 0; u < Lines; u++) {
      const EVCHYBPackPair<int> column = EVCHYBPackColumns(own[u], word[u], lane);
      const int                 line = k + u * warps, n = line + 1 < width ? EVCHYB_PACK_ROWS : line < width ? slice.last : 0;

      has[u][0] = x[lane < n ? column.first : 0];
      has[u][1] = x[lane + WarpSize < n ? column.second : 0];
    }
#pragma unroll
    for (int u = 0; u < 2 * Lines; u++) a[u / 2][u % 2] = EVCHYBPackDecode(stored[u / 2], u % 2, view.dict);
#pragma unroll
    for (int u = 0; u < Lines; u++) {
      const int  line = k + u * warps, n = line + 1 < width ? EVCHYB_PACK_ROWS : line < width ? slice.last : 0;
      const bool on[2] = {lane < n, lane + WarpSize < n};

      EVCHYBPackAdd<Kind, false>(a[u], on, has[u], sum, sum);
    }
  }
  if (wait) GallopWaitForPredecessor();
  return sum;
}

template <int Lines, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumLines(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int warp, int warps, const V *x, bool wait)
{
  if constexpr (Lines > 4) return EVCHYBPackSumManyLines<Lines, Kind, V>(view, slice, warp, warps, x, wait);
  else return EVCHYBPackSumFewLines<Lines, Kind, V>(view, slice, warp, warps, x, wait);
}

/* The same of a piece, whose row is told in *row */
template <int Lines, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumPiece(const EVCHYBPackView &view, PetscCount number, int warp, int warps, const V *x, bool wait, PetscInt *row)
{
  const EVCHYBPackSlice slice = EVCHYBPackLoadSlice(view.slice + number);
  V                     sum   = V(0);

  *row = view.order ? view.order[slice.rows.base] : slice.rows.base;
  EVCHYBPackDoAs<Kind>(slice.values, [&](auto as) { sum = EVCHYBPackSumLines<Lines, decltype(as)::value, V>(view, slice, warp, warps, x, wait); });
  return sum;
}
