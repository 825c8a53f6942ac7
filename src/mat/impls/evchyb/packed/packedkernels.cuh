/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A warp multiplies a slice of packed storage */

#include <gallop/cudaimpl.h>
#include "packed.h"

/* Two numbers that stand side by side: those of a lane's two rows */
template <typename T>
struct __align__(2 * sizeof(T)) EVCHYBPackPair
{
  T first, second;
};

struct EVCHYBPackView {
  const EVCHYBPackSlice *slice;
  const EVCHYBPackLine  *line;
  const unsigned char   *stream, *value;
  const PetscReal       *dict;
  const PetscInt        *order; /* the row of the matrix that each is, NULL where they are those of the matrix */
};

static inline EVCHYBPackView EVCHYBPackViewOf(const EVCHYBPack *pack, const PetscInt order[])
{
  return {pack->slice, pack->line, pack->stream, pack->value, pack->dict, order};
}

/* A value as it is stored, of two rows, and what it stands for */
template <EVCHYBPackValues Kind>
struct EVCHYBPackStoredValue;

template <>
struct EVCHYBPackStoredValue<EVCHYB_PACK_VALUE> {
  using Part = PetscReal;
};
template <>
struct EVCHYBPackStoredValue<EVCHYB_PACK_SINGLE> {
  using Part = float;
};
template <>
struct EVCHYBPackStoredValue<EVCHYB_PACK_REAL> {
  using Part = PetscReal;
};
template <>
struct EVCHYBPackStoredValue<EVCHYB_PACK_DICT8> {
  using Part = uint8_t;
};
template <>
struct EVCHYBPackStoredValue<EVCHYB_PACK_DICT16> {
  using Part = uint16_t;
};

/* Those that are stored of a value */
template <EVCHYBPackValues Kind, int Num = Kind == EVCHYB_PACK_REAL ? 1 : EVCHYB_PACK_PARTS>
struct __align__(Num * sizeof(typename EVCHYBPackStoredValue<Kind>::Part)) EVCHYBPackParts
{
  static constexpr int Parts = Num;

  typename EVCHYBPackStoredValue<Kind>::Part part[Num];
};

template <EVCHYBPackValues Kind>
static __host__ __device__ constexpr int EVCHYBPackBytesALine()
{
  return EVCHYB_PACK_ROWS * (int)sizeof(EVCHYBPackParts<Kind>);
}

static __host__ __device__ constexpr bool EVCHYBPackIsDict(EVCHYBPackValues kind)
{
  return kind == EVCHYB_PACK_DICT8 || kind == EVCHYB_PACK_DICT16;
}

static constexpr bool EVCHYBPackMayBeReal = EVCHYB_PACK_PARTS > 1; /* else a value has no imaginary part that could be left out */

/* A lane's two values of a line, as they are stored */
template <EVCHYBPackValues Kind>
struct EVCHYBPackNumbers {
  EVCHYBPackPair<EVCHYBPackParts<Kind>> pair;

  __device__ __forceinline__ void LoadOnceIf(const unsigned char *line, bool there) { pair = GallopLoadOnceIf(reinterpret_cast<const decltype(pair) *>(line) + threadIdx.x % WarpSize, there); }

  __device__ __forceinline__ PetscReal Part(int h, int p, const PetscReal *) const { return p < EVCHYBPackParts<Kind>::Parts ? (PetscReal)(h ? pair.second : pair.first).part[p] : PetscReal(0); }
};

/* The same by codes, in a register: taken apart or put together they would be waited for */
template <EVCHYBPackValues Kind>
struct EVCHYBPackCodes {
  using StoredPart           = typename EVCHYBPackStoredValue<Kind>::Part;
  static constexpr int Bytes = 2 * EVCHYB_PACK_PARTS * (int)sizeof(StoredPart);
  using Register             = cuda::std::conditional_t<Bytes == 8, unsigned long long, unsigned int>;

  Register word;

  /* Those of a lane; such loads the compiler lets go ahead of each other */
  __device__ __forceinline__ void Load(const unsigned char *line, int lane)
  {
    using Raw = cuda::std::conditional_t<Bytes == 2, unsigned short, Register>;

    word = *(reinterpret_cast<const Raw *>(line) + lane);
  }

  __device__ __forceinline__ void LoadIf(const unsigned char *line, bool there)
  {
    word = 0;
    if (there) Load(line, threadIdx.x % WarpSize);
  }

  __device__ __forceinline__ void LoadOnceIf(const unsigned char *line, bool there)
  {
    word = 0;
    GallopLoadWordOnceIf<Bytes>(line + threadIdx.x % WarpSize * Bytes, there, &word);
  }

  __device__ __forceinline__ int       Code(int h, int p) const { return (int)(StoredPart)(word >> (h * EVCHYB_PACK_PARTS + p) * 8 * sizeof(StoredPart)); }
  __device__ __forceinline__ PetscReal Part(int h, int p, const PetscReal *__restrict__ dict) const { return __ldg(dict + Code(h, p)); }
};

template <EVCHYBPackValues Kind>
using EVCHYBPackLaneValues = cuda::std::conditional_t<EVCHYBPackIsDict(Kind), EVCHYBPackCodes<Kind>, EVCHYBPackNumbers<Kind>>;

/* One of them, which the lane's row has */
template <typename Stored>
static __device__ __forceinline__ PetscScalar EVCHYBPackDecode(const Stored &stored, int h, const PetscReal *__restrict__ dict)
{
  union
  {
    PetscReal   part[EVCHYB_PACK_PARTS];
    PetscScalar value;
  } u = {};

#pragma unroll
  for (int p = 0; p < EVCHYB_PACK_PARTS; p++) u.part[p] = stored.Part(h, p, dict);
  return u.value;
}

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

/* The word in which a lane's two offsets of a line are. All lanes have the same line, and branch alike. */
static __device__ __forceinline__ uint2 EVCHYBPackLoadOffsets(EVCHYBPackLine line, const unsigned char *__restrict__ stream, int lane)
{
  const int kind = EVCHYBPackClassOf(line);

  static_assert(EVCHYB_PACK_8 == 1 && EVCHYB_PACK_16 == 2 && EVCHYB_PACK_32 == 3, "two offsets take two bytes to the power of their class");
  if (kind == EVCHYB_PACK_STRIDED) return {0, 0};
  return __ldcs(reinterpret_cast<const uint2 *>(EVCHYBPackOffsets(line, stream) + ((lane << kind) & ~7)));
}

/* The two columns that a lane's rows have in a line; all lanes have the same line */
static __device__ __forceinline__ EVCHYBPackPair<int> EVCHYBPackColumns(EVCHYBPackLine line, uint2 word, int lane)
{
  const int kind = EVCHYBPackClassOf(line);

  if (kind == EVCHYB_PACK_STRIDED) word = make_uint2((uint32_t)(EVCHYBPackStrideOf(line) * lane), (uint32_t)(EVCHYBPackStrideOf(line) * (lane + WarpSize)));
  else if (kind != EVCHYB_PACK_32) {
    const int      bits = 4 << kind; /* 8 or 16 */
    const uint32_t both = ((lane << kind) & 4 ? word.y : word.x) >> 8 * ((lane << kind) & 3), all = (1u << bits) - 1;

    word = make_uint2(both & all, both >> bits & all);
  }
  return {EVCHYBPackFrom(line, word.x), EVCHYBPackFrom(line, word.y)};
}

/* The two rows of a lane, -1 for none */
static __device__ __forceinline__ EVCHYBPackPair<int> EVCHYBPackRows(EVCHYBPackLine rows, const unsigned char *__restrict__ stream, int lane)
{
  const int           kind = EVCHYBPackClassOf(rows), none = kind == EVCHYB_PACK_8 ? 0xff : kind == EVCHYB_PACK_16 ? 0xffff : -1; /* the offset that says so; all bits of it are ones */
  EVCHYBPackPair<int> row = EVCHYBPackColumns(rows, EVCHYBPackLoadOffsets(rows, stream, lane), lane);

  if (kind != EVCHYB_PACK_STRIDED) {
    if (row.first - rows.base == none) row.first = -1;
    if (row.second - rows.base == none) row.second = -1;
  }
  return row;
}

/* What a lane's two rows have of entries in 32 lines, a bit each. Returned as it is stored: who asks early does not wait for it. Through L1, since a word serves more lines than are multiplied together. */
static __device__ __forceinline__ uint2 EVCHYBPackLoadMasks(const EVCHYBPackSlice &slice, const unsigned char *__restrict__ stream, int chunk, int lane)
{
  if (slice.mask == EVCHYB_PACK_NONE) return {0xffffffffu, 0xffffffffu};
  const int            bytes = EVCHYBPackMaskBytes(slice.width);
  const unsigned char *at    = stream + ((size_t)slice.mask + (size_t)chunk * bytes) * EVCHYB_PACK_UNIT + 2 * bytes * lane;

  if (bytes == 1) return {__ldg(reinterpret_cast<const unsigned short *>(at)), 0};
  if (bytes == 2) return {__ldg(reinterpret_cast<const unsigned int *>(at)), 0};
  return __ldg(reinterpret_cast<const uint2 *>(at));
}

static __device__ __forceinline__ EVCHYBPackPair<uint32_t> EVCHYBPackMasksOf(const EVCHYBPackSlice &slice, uint2 stored)
{
  if (slice.width > 16 || slice.mask == EVCHYB_PACK_NONE) return {stored.x, stored.y};
  if (slice.width > 8) return {stored.x & 0xffff, stored.x >> 16};
  return {stored.x & 0xff, stored.x >> 8};
}

/* A bit for each of the lines, at least one */
static __device__ __forceinline__ uint32_t EVCHYBPackAllLines(int lines)
{
  return (2u << (lines - 1)) - 1;
}

/* A line's description, loaded at once */
static __device__ __forceinline__ EVCHYBPackLine EVCHYBPackLoadLine(const EVCHYBPackLine *line)
{
  const uint2 word = __ldg(reinterpret_cast<const uint2 *>(line));

  return {(int32_t)word.x, word.y};
}

/* What is known of a slice, loaded at once */
static __device__ __forceinline__ EVCHYBPackSlice EVCHYBPackLoadSlice(const EVCHYBPackSlice *slice)
{
  union
  {
    uint4           word[2];
    EVCHYBPackSlice slice;
  } u;

  static_assert(sizeof(EVCHYBPackSlice) == 2 * sizeof(uint4), "a slice is loaded at once");
  u.word[0] = __ldg(reinterpret_cast<const uint4 *>(slice));
  u.word[1] = __ldg(reinterpret_cast<const uint4 *>(slice) + 1);
  return u.slice;
}

/* Values of some lines */
template <int Lines, EVCHYBPackValues Kind>
struct EVCHYBPackLines {
  EVCHYBPackLaneValues<Kind> stored[Lines];

  __device__ __forceinline__ void Load(const unsigned char *value, int num)
  {
#pragma unroll
    for (int u = 0; u < Lines; u++) stored[u].LoadOnceIf(value + u * EVCHYBPackBytesALine<Kind>(), u < num);
  }
};

struct EVCHYBPackNoCodes {
  __device__ __forceinline__ void Load(const unsigned char *, int) { }
};

/* Lines from k on of a slice, as they are known beside their values: the lane's line, and the bits of its rows. Codes too, which take few registers, and for which numbers of the dictionary wait. */
template <int Lines, EVCHYBPackValues Kind>
struct EVCHYBPackAhead {
  EVCHYBPackLine                                                                                    own;
  uint2                                                                                             mask;
  cuda::std::conditional_t<EVCHYBPackIsDict(Kind), EVCHYBPackLines<Lines, Kind>, EVCHYBPackNoCodes> codes;
};

/* Asks for what is known of those lines, of which there are left */
template <int Lines, EVCHYBPackValues Kind>
static __device__ __forceinline__ EVCHYBPackAhead<Lines, Kind> EVCHYBPackLoadAhead(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int k, int left)
{
  const int                    lane = threadIdx.x % WarpSize;
  EVCHYBPackAhead<Lines, Kind> ahead;

  ahead.own  = {0, 0};
  ahead.mask = EVCHYBPackLoadMasks(slice, view.stream, k / EVCHYB_PACK_CHUNK, lane);
  if (left > 0) ahead.own = EVCHYBPackLoadLine(view.line + slice.line + (k + min(lane, min(left, Lines) - 1)));
  ahead.codes.Load(view.value + (size_t)slice.value * EVCHYB_PACK_UNIT + (size_t)k * EVCHYBPackBytesALine<Kind>(), left);
  return ahead;
}

/*
  Some lines, of which there are num: their values and x for all of them are under way together. Order of sums: that of the lines. Strided: the columns of all lines grow by step from row to row,
  and a lane needs but their first columns to know its own. Full: all rows have entries in all of these lines. Elsewhere x[0] is loaded where there is no entry.
*/
template <int Lines, EVCHYBPackValues Kind, bool Strided, bool Full, typename Ahead, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyLines(const EVCHYBPackView &view, const unsigned char *value, const Ahead &known, int num, int step, EVCHYBPackPair<uint32_t> mask, const V *x, V sum[2])
{
  const int                    lane = threadIdx.x % WarpSize, by[2] = {step * lane, step * (lane + WarpSize)};
  uint2                        word[Lines];
  EVCHYBPackLines<Lines, Kind> values;
  V                            a[Lines][2], has[Lines][2];

#pragma unroll
  for (int u = 0; u < Lines && !Strided; u++) {
    const EVCHYBPackLine line = GallopShuffle(known.own, u);

    word[u] = make_uint2(0, 0);
    if (u < num) word[u] = EVCHYBPackLoadOffsets(line, view.stream, lane);
  }
  if constexpr (EVCHYBPackIsDict(Kind)) values = known.codes;
  else values.Load(value, num);
#pragma unroll
  for (int u = 0; u < Lines; u++) {
    int column[2];

    if constexpr (Strided) {
      const int base = __shfl_sync(0xffffffffu, known.own.base, u);

      column[0] = base + by[0];
      column[1] = base + by[1];
    } else {
      const EVCHYBPackPair<int> both = EVCHYBPackColumns(GallopShuffle(known.own, u), word[u], lane);

      column[0] = both.first;
      column[1] = both.second;
    }
    has[u][0] = x[Full || mask.first >> u & 1 ? column[0] : 0];
    has[u][1] = x[Full || mask.second >> u & 1 ? column[1] : 0];
  }
#pragma unroll
  for (int u = 0; u < 2 * Lines; u++) a[u / 2][u % 2] = EVCHYBPackDecode(values.stored[u / 2], u % 2, view.dict);
#pragma unroll
  for (int u = 0; u < Lines; u++) {
    const bool on[2] = {Full ? u < num : (bool)(mask.first >> u & 1), Full ? u < num : (bool)(mask.second >> u & 1)};

    EVCHYBPackAdd<Kind, Full>(a[u], on, has[u], sum[0], sum[1]);
  }
}

template <int Lines, EVCHYBPackValues Kind, typename Ahead, typename V>
static __device__ __forceinline__ void EVCHYBPackMultiplyLines(const EVCHYBPackView &view, const unsigned char *value, const Ahead &known, int num, int step, EVCHYBPackPair<uint32_t> mask, const V *x, V sum[2])
{
  if (!step) EVCHYBPackMultiplyLines<Lines, Kind, false, false>(view, value, known, num, step, mask, x, sum);
  else if (__all_sync(0xffffffffu, (mask.first & mask.second) == EVCHYBPackAllLines(num))) EVCHYBPackMultiplyLines<Lines, Kind, true, true>(view, value, known, num, step, mask, x, sum);
  else EVCHYBPackMultiplyLines<Lines, Kind, true, false>(view, value, known, num, step, mask, x, sum);
}

/* z of the rows of num slices, at least one, which are in a warp's shared memory. Kind: how all values are stored, or EVCHYB_PACK_VALUE, beside which slices may have EVCHYB_PACK_SINGLE and EVCHYB_PACK_REAL. */
template <int Lines, EVCHYBPackValues Kind, typename V>
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
    for (int k = 0; k < width; k += Lines) {
      const int                          left = width - k, lines = min(Lines, left);
      const bool                         more  = left > Lines;
      const uint32_t                     all   = EVCHYBPackAllLines(lines);
      const EVCHYBPackAhead<Lines, Kind> known = ahead;
      EVCHYBPackPair<uint32_t>           mask  = EVCHYBPackMasksOf(slice, known.mask);

      mask = {mask.first >> k % EVCHYB_PACK_CHUNK & all, mask.second >> k % EVCHYB_PACK_CHUNK & all};
      if (more) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slice, k + Lines, left - Lines);
      else if (e + 1 < num) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slices[e + 1], 0, slices[e + 1].width);
      if (Kind != EVCHYB_PACK_VALUE || slice.values == Kind) EVCHYBPackMultiplyLines<Lines, Kind>(view, value, known, lines, step, mask, v.x, sum);
      else if (EVCHYBPackMayBeReal && slice.values == EVCHYB_PACK_REAL) EVCHYBPackMultiplyLines<Lines, EVCHYB_PACK_REAL>(view, value, known, lines, step, mask, v.x, sum);
      else EVCHYBPackMultiplyLines<Lines, EVCHYB_PACK_SINGLE>(view, value, known, lines, step, mask, v.x, sum);
      value += Lines * units * EVCHYB_PACK_UNIT;
    }
    if (!width && e + 1 < num) ahead = EVCHYBPackLoadAhead<Lines, Kind>(view, slices[e + 1], 0, slices[e + 1].width);
    EVCHYBPackPair<int> row = EVCHYBPackRows(slice.rows, view.stream, lane);

    if (view.order) row = {row.first < 0 ? -1 : (int)__ldg(view.order + row.first), row.second < 0 ? -1 : (int)__ldg(view.order + row.second)};
    if (row.first >= 0) GallopStore(v, row.first, sum[0], dot);
    if (row.second >= 0) GallopStore(v, row.second, sum[1], dot);
  }
}

/* What a lane's two entries in lines warp, warp + warps, ... of a piece of a row add up to, AtOnce lines under way */
template <int AtOnce, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumLines(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int warp, int warps, const V *x, bool wait)
{
  const int            lane = threadIdx.x % WarpSize, width = slice.width;
  const unsigned char *value = view.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
  V                    sum   = V(0);

  for (int k = warp; k < width; k += AtOnce * warps) {
    EVCHYBPackLine             own[AtOnce];
    uint2                      word[AtOnce];
    EVCHYBPackLaneValues<Kind> stored[AtOnce];
    V                          a[AtOnce][2], has[AtOnce][2];

#pragma unroll
    for (int u = 0; u < AtOnce; u++) own[u] = EVCHYBPackLoadLine(view.line + slice.line + min(k + u * warps, width - 1)); /* of lines that there are not: the last one's */
#pragma unroll
    for (int u = 0; u < AtOnce; u++) word[u] = EVCHYBPackLoadOffsets(own[u], view.stream, lane);
#pragma unroll
    for (int u = 0; u < AtOnce; u++) stored[u].LoadOnceIf(value + (size_t)(k + u * warps) * EVCHYBPackBytesALine<Kind>(), k + u * warps < width);
    if (wait) GallopWaitForPredecessor();
    wait = false;
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const EVCHYBPackPair<int> column = EVCHYBPackColumns(own[u], word[u], lane);
      const int                 line = k + u * warps, n = line + 1 < width ? EVCHYB_PACK_ROWS : line < width ? slice.last : 0;

      has[u][0] = x[lane < n ? column.first : 0];
      has[u][1] = x[lane + WarpSize < n ? column.second : 0];
    }
#pragma unroll
    for (int u = 0; u < 2 * AtOnce; u++) a[u / 2][u % 2] = EVCHYBPackDecode(stored[u / 2], u % 2, view.dict);
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int  line = k + u * warps, n = line + 1 < width ? EVCHYB_PACK_ROWS : line < width ? slice.last : 0;
      const bool on[2] = {lane < n, lane + WarpSize < n};

      EVCHYBPackAdd<Kind, false>(a[u], on, has[u], sum, sum);
    }
  }
  if (wait) GallopWaitForPredecessor();
  return sum;
}

/* The same of a piece, whose row is told in *row */
template <int AtOnce, EVCHYBPackValues Kind, typename V>
static __device__ __forceinline__ V EVCHYBPackSumPiece(const EVCHYBPackView &view, PetscCount number, int warp, int warps, const V *x, bool wait, PetscInt *row)
{
  const EVCHYBPackSlice slice = EVCHYBPackLoadSlice(view.slice + number);

  *row = view.order ? view.order[slice.rows.base] : slice.rows.base;
  if (Kind != EVCHYB_PACK_VALUE || slice.values == Kind) return EVCHYBPackSumLines<AtOnce, Kind, V>(view, slice, warp, warps, x, wait);
  if (EVCHYBPackMayBeReal && slice.values == EVCHYB_PACK_REAL) return EVCHYBPackSumLines<AtOnce, EVCHYB_PACK_REAL, V>(view, slice, warp, warps, x, wait);
  return EVCHYBPackSumLines<AtOnce, EVCHYB_PACK_SINGLE, V>(view, slice, warp, warps, x, wait);
}
