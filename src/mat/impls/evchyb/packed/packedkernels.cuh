/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What a warp reads of a slice of packed storage */

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

/* How the values of a slice may be stored beside EVCHYB_PACK_VALUE: where a value has an imaginary part, and where its parts are not of single precision as they are */
static constexpr bool EVCHYBPackMayBeReal = EVCHYB_PACK_PARTS > 1, EVCHYBPackMayBeSingle = sizeof(PetscReal) > sizeof(float);

/* Calls do_as(a kind) as the values of a slice are stored. Kind: how all of the matrix are, or EVCHYB_PACK_VALUE. What no slice can have is not compiled, for which a kernel would be twice as long. */
template <EVCHYBPackValues Kind, typename DoAs>
static __device__ __forceinline__ void EVCHYBPackDoAs(int values, DoAs do_as)
{
  using Value  = cuda::std::integral_constant<EVCHYBPackValues, Kind>;
  using Real   = cuda::std::integral_constant<EVCHYBPackValues, EVCHYB_PACK_REAL>;
  using Single = cuda::std::integral_constant<EVCHYBPackValues, EVCHYB_PACK_SINGLE>;

  if constexpr (Kind == EVCHYB_PACK_VALUE && EVCHYBPackMayBeReal) {
    if (values == EVCHYB_PACK_REAL) {
      do_as(Real());
      return;
    }
  }
  if constexpr (Kind == EVCHYB_PACK_VALUE && EVCHYBPackMayBeSingle) {
    if (values == EVCHYB_PACK_SINGLE) {
      do_as(Single());
      return;
    }
  }
  do_as(Value());
}

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
