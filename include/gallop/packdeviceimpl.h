#pragma once

/* For .cu files only: a warp multiplies a slice of packed entries (gallop/packimpl.h) */

#include <gallop/cudaimpl.h>
#include <gallop/packimpl.h>

/* Two numbers that stand side by side: those of a lane's two rows */
template <typename T>
struct __align__(2 * sizeof(T)) GallopPackPair
{
  T first, second;
};

/* Some types load at once what the compiler would load in parts */
template <typename T>
static __device__ __forceinline__ GallopPackPair<T> GallopPackLoadPair(const void *p)
{
  using Word = cuda::std::conditional_t<sizeof(T) == 1, unsigned short, cuda::std::conditional_t<sizeof(T) == 2, unsigned int, cuda::std::conditional_t<sizeof(T) == 4, uint2, uint4>>>;
  union
  {
    GallopPackPair<T>                                             pair;
    cuda::std::conditional_t<(sizeof(T) > 8), unsigned int, Word> word;
  } u;

  if constexpr (sizeof(T) > 8) u.pair = *static_cast<const GallopPackPair<T> *>(p);
  else u.word = __ldcs(static_cast<const Word *>(p));
  return u.pair;
}

struct GallopPackView {
  const GallopPackSlice *slice;
  const GallopPackLine  *line;
  const unsigned char   *stream, *value;
  const PetscReal       *dict;
};

static inline GallopPackView GallopPackViewOf(const GallopPack *pack)
{
  return {pack->slice, pack->line, pack->stream, pack->value, pack->dict};
}

/* A value as it is stored, of two rows, and what it stands for */
template <GallopPackValues Kind>
struct GallopPackStoredValue;

template <>
struct GallopPackStoredValue<GALLOP_PACK_VALUE> {
  using Part = PetscReal;
};
template <>
struct GallopPackStoredValue<GALLOP_PACK_SINGLE> {
  using Part = float;
};
template <>
struct GallopPackStoredValue<GALLOP_PACK_DICT8> {
  using Part = uint8_t;
};
template <>
struct GallopPackStoredValue<GALLOP_PACK_DICT16> {
  using Part = uint16_t;
};

template <typename Part>
struct __align__(GALLOP_PACK_PARTS * sizeof(Part)) GallopPackParts
{
  Part part[GALLOP_PACK_PARTS];
};

template <GallopPackValues Kind, typename Part>
static __device__ __forceinline__ PetscScalar GallopPackDecode(const GallopPackParts<Part> &stored, const PetscReal *__restrict__ dict)
{
  union
  {
    PetscReal   part[GALLOP_PACK_PARTS];
    PetscScalar value;
  } u = {};

#pragma unroll
  for (int k = 0; k < GALLOP_PACK_PARTS; k++) {
    if constexpr (Kind == GALLOP_PACK_DICT8 || Kind == GALLOP_PACK_DICT16) u.part[k] = __ldg(dict + stored.part[k]);
    else u.part[k] = (PetscReal)stored.part[k];
  }
  return u.value;
}

/* The two columns that a lane's rows have in a line; all lanes have the same line */
static __device__ __forceinline__ GallopPackPair<int> GallopPackColumns(GallopPackLine line, const unsigned char *__restrict__ stream, int lane)
{
  const int            kind = GallopPackClassOf(line), base = line.base;
  const unsigned char *at = GallopPackOffsets(line, stream);

  if (kind == GALLOP_PACK_STRIDED) {
    const int stride = GallopPackStrideOf(line), first = base + stride * lane;

    return {first, first + WarpSize * stride};
  } else if (kind == GALLOP_PACK_8) {
    const GallopPackPair<uint8_t> offset = GallopPackLoadPair<uint8_t>(at + 2 * lane);

    return {base + offset.first, base + offset.second};
  } else if (kind == GALLOP_PACK_16) {
    const GallopPackPair<uint16_t> offset = GallopPackLoadPair<uint16_t>(at + 4 * lane);

    return {base + offset.first, base + offset.second};
  }
  const GallopPackPair<uint32_t> offset = GallopPackLoadPair<uint32_t>(at + 8 * lane);

  return {base + (int)offset.first, base + (int)offset.second};
}

/* The two rows of a lane, -1 for none */
static __device__ __forceinline__ GallopPackPair<int> GallopPackRows(GallopPackLine rows, const unsigned char *__restrict__ stream, int lane)
{
  GallopPackPair<int> row  = GallopPackColumns(rows, stream, lane);
  const int           kind = GallopPackClassOf(rows), none = kind == GALLOP_PACK_8 ? 0xff : kind == GALLOP_PACK_16 ? 0xffff : -1; /* the offset that says so; all bits of it are ones */

  if (kind != GALLOP_PACK_STRIDED) {
    if (row.first - rows.base == none) row.first = -1;
    if (row.second - rows.base == none) row.second = -1;
  }
  return row;
}

/* What a lane's two rows have of entries in 32 lines, a bit each */
static __device__ __forceinline__ GallopPackPair<uint32_t> GallopPackMasks(const GallopPackSlice &slice, const unsigned char *__restrict__ stream, int chunk, int lane)
{
  if (slice.mask == GALLOP_PACK_NONE) return {0xffffffffu, 0xffffffffu};
  const int            bytes = GallopPackMaskBytes(slice.width);
  const unsigned char *at    = stream + ((size_t)slice.mask + (size_t)chunk * bytes) * GALLOP_PACK_UNIT + 2 * bytes * lane;

  if (bytes == 1) {
    const GallopPackPair<uint8_t> mask = GallopPackLoadPair<uint8_t>(at);

    return {mask.first, mask.second};
  } else if (bytes == 2) {
    const GallopPackPair<uint16_t> mask = GallopPackLoadPair<uint16_t>(at);

    return {mask.first, mask.second};
  }
  return GallopPackLoadPair<uint32_t>(at);
}

/* Lines of a slice, at most 32, of which a lane knows its own: the values of AtOnce of them are under way together, and then what x has for them. Order of sums: that of the lines. */
template <int AtOnce, GallopPackValues Kind, typename V>
static __device__ __forceinline__ void GallopPackMultiplyLines(const GallopPackView &view, int num, GallopPackLine own, GallopPackPair<uint32_t> mask, const unsigned char *value, const V *x, bool &wait, V sum[2])
{
  using Parts              = GallopPackParts<typename GallopPackStoredValue<Kind>::Part>;
  const int     lane       = threadIdx.x % WarpSize;
  constexpr int BytesALine = GALLOP_PACK_ROWS * (int)sizeof(Parts);

  for (int k = 0; k < num; k += AtOnce) {
    GallopPackPair<Parts> stored[AtOnce];
    GallopPackPair<int>   column[AtOnce];

#pragma unroll
    for (int u = 0; u < AtOnce; u++) stored[u] = k + u < num ? GallopPackLoadPair<Parts>(value + (size_t)(k + u) * BytesALine + 2 * sizeof(Parts) * lane) : GallopPackPair<Parts>();
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const GallopPackLine line = GallopShuffle(own, (k + u) % WarpSize);

      if (k + u < num) column[u] = GallopPackColumns(line, view.stream, lane);
    }
    if (wait) { /* once: what no other kernel writes has been asked for */
      GallopWaitForPredecessor();
      wait = false;
    }
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      if (k + u < num && mask.first >> (k + u) & 1) sum[0] += GallopPackDecode<Kind>(stored[u].first, view.dict) * x[column[u].first];
      if (k + u < num && mask.second >> (k + u) & 1) sum[1] += GallopPackDecode<Kind>(stored[u].second, view.dict) * x[column[u].second];
    }
  }
}

/* A line's description, loaded at once */
static __device__ __forceinline__ GallopPackLine GallopPackLoadLine(const GallopPackLine *line)
{
  const uint2 word = __ldg(reinterpret_cast<const uint2 *>(line));

  return {(int32_t)word.x, word.y};
}

/* What is known of a slice, loaded at once */
static __device__ __forceinline__ GallopPackSlice GallopPackLoadSlice(const GallopPackSlice *slice)
{
  union
  {
    uint4           word[2];
    GallopPackSlice slice;
  } u;

  static_assert(sizeof(GallopPackSlice) == 2 * sizeof(uint4), "a slice is loaded at once");
  u.word[0] = __ldg(reinterpret_cast<const uint4 *>(slice));
  u.word[1] = __ldg(reinterpret_cast<const uint4 *>(slice) + 1);
  return u.slice;
}

/*
  z of the rows of Each slices from one on, or up to the last, end. What comes next of slices is loaded while one is multiplied. wait: the kernel before this one may still be running, and the warp
  waits for it where it has to.
*/
template <int AtOnce, int Each, typename V>
static __device__ __forceinline__ void GallopPackMultiply(const GallopPackView &view, PetscCount first, PetscCount end, const GallopVectors<V> &v, bool wait)
{
  const int       lane = threadIdx.x % WarpSize;
  GallopPackSlice next = GallopPackLoadSlice(view.slice + first);

#pragma unroll 1
  for (int e = 0; e < Each && first + e < end; e++) {
    const GallopPackSlice slice  = next;
    const int             width  = slice.width;
    const unsigned char  *value  = view.value + (size_t)slice.value * GALLOP_PACK_UNIT;
    V                     sum[2] = {V(0), V(0)};

    if (Each > 1) next = GallopPackLoadSlice(view.slice + (first + e + 1 < end ? first + e + 1 : first));
    for (int k = 0; k < width; k += GALLOP_PACK_CHUNK) {
      const int                      num  = min(GALLOP_PACK_CHUNK, width - k);
      const GallopPackLine           own  = lane < num ? GallopPackLoadLine(view.line + slice.line + k + lane) : GallopPackLine{0, 0};
      const GallopPackPair<uint32_t> mask = GallopPackMasks(slice, view.stream, k / GALLOP_PACK_CHUNK, lane);
      const unsigned char           *from = value + (size_t)k * GallopPackValueUnits((GallopPackValues)slice.values) * GALLOP_PACK_UNIT;

      switch (slice.values) {
      case GALLOP_PACK_VALUE:
        GallopPackMultiplyLines<AtOnce, GALLOP_PACK_VALUE, V>(view, num, own, mask, from, v.x, wait, sum);
        break;
      case GALLOP_PACK_SINGLE:
        GallopPackMultiplyLines<AtOnce, GALLOP_PACK_SINGLE, V>(view, num, own, mask, from, v.x, wait, sum);
        break;
      case GALLOP_PACK_DICT8:
        GallopPackMultiplyLines<AtOnce, GALLOP_PACK_DICT8, V>(view, num, own, mask, from, v.x, wait, sum);
        break;
      default:
        GallopPackMultiplyLines<AtOnce, GALLOP_PACK_DICT16, V>(view, num, own, mask, from, v.x, wait, sum);
      }
    }
    if (wait) GallopWaitForPredecessor();
    wait                          = false;
    const GallopPackPair<int> row = GallopPackRows(slice.rows, view.stream, lane);

    if (row.first >= 0) GallopStore(v, row.first, sum[0]);
    if (row.second >= 0) GallopStore(v, row.second, sum[1]);
  }
}

/* What a lane's two entries in lines warp, warp + warps, ... of a piece of a row add up to, AtOnce lines under way */
template <int AtOnce, GallopPackValues Kind, typename V>
static __device__ __forceinline__ V GallopPackSumLines(const GallopPackView &view, const GallopPackSlice &slice, int warp, int warps, const V *x, bool wait)
{
  using Parts               = GallopPackParts<typename GallopPackStoredValue<Kind>::Part>;
  const int            lane = threadIdx.x % WarpSize, width = slice.width;
  const unsigned char *value      = view.value + (size_t)slice.value * GALLOP_PACK_UNIT + 2 * sizeof(Parts) * lane;
  constexpr int        BytesALine = GALLOP_PACK_ROWS * (int)sizeof(Parts);
  V                    sum        = V(0);

  for (int k = warp; k < width; k += AtOnce * warps) {
    GallopPackPair<Parts> stored[AtOnce];
    GallopPackPair<int>   column[AtOnce];

#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int line = k + u * warps;

      if (line >= width) continue;
      const GallopPackLine own = GallopPackLoadLine(view.line + slice.line + line);

      stored[u] = GallopPackLoadPair<Parts>(value + (size_t)line * BytesALine);
      column[u] = GallopPackColumns(own, view.stream, lane);
    }
    if (wait) GallopWaitForPredecessor();
    wait = false;
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int line = k + u * warps, n = line + 1 < width ? GALLOP_PACK_ROWS : line < width ? slice.last : 0;

      if (lane < n) sum += GallopPackDecode<Kind>(stored[u].first, view.dict) * x[column[u].first];
      if (lane + WarpSize < n) sum += GallopPackDecode<Kind>(stored[u].second, view.dict) * x[column[u].second];
    }
  }
  if (wait) GallopWaitForPredecessor();
  return sum;
}

/* The same of a piece, whose row is told in *row */
template <int AtOnce, typename V>
static __device__ __forceinline__ V GallopPackSumPiece(const GallopPackView &view, PetscCount number, int warp, int warps, const V *x, bool wait, PetscInt *row)
{
  const GallopPackSlice slice = GallopPackLoadSlice(view.slice + number);

  *row = slice.rows.base;
  switch (slice.values) {
  case GALLOP_PACK_VALUE:
    return GallopPackSumLines<AtOnce, GALLOP_PACK_VALUE, V>(view, slice, warp, warps, x, wait);
  case GALLOP_PACK_SINGLE:
    return GallopPackSumLines<AtOnce, GALLOP_PACK_SINGLE, V>(view, slice, warp, warps, x, wait);
  case GALLOP_PACK_DICT8:
    return GallopPackSumLines<AtOnce, GALLOP_PACK_DICT8, V>(view, slice, warp, warps, x, wait);
  default:
    return GallopPackSumLines<AtOnce, GALLOP_PACK_DICT16, V>(view, slice, warp, warps, x, wait);
  }
}
