/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: how a warp puts the segments of a block in order by hash */

#include "hbpdevice.h"

/* What a warp needs in shared memory to find the places of a block's segments. No block has more than most of them. */
struct Shelf {
  unsigned int   *bits;                 /* [words] a bit for each row that has a segment */
  int            *begin;                /* [hashes] segments of each hash, then the first place */
  unsigned short *before;               /* [words] bits in the words before */
  unsigned short *order, *hash, *place; /* [most] records and their hashes in order of rows, records in order of places */
};

static inline __host__ __device__ size_t ShelfBytes(PetscInt N, PetscInt hashes, PetscInt most)
{
  const size_t words = (size_t)HBPWords(N);

  return (words * (sizeof(unsigned int) + sizeof(unsigned short)) + (size_t)hashes * sizeof(int) + 3 * (size_t)most * sizeof(unsigned short) + 15) / 16 * 16;
}

/* The shelf of this warp */
static __device__ __forceinline__ Shelf GetShelf(unsigned char *memory, PetscInt N, int hashes, int most)
{
  const size_t words = (size_t)HBPWords(N);
  Shelf        shelf;

  shelf.bits   = (unsigned int *)(memory + threadIdx.x / WarpSize * ShelfBytes(N, hashes, most));
  shelf.begin  = (int *)(shelf.bits + words);
  shelf.before = (unsigned short *)(shelf.begin + hashes);
  shelf.order  = shelf.before + words;
  shelf.hash   = shelf.order + most;
  shelf.place  = shelf.hash + most;
  return shelf;
}

static constexpr size_t ShelvesBytes = 48 << 10; /* of shared memory that a thread block has without asking for more */

/* Warps of a thread block, and the shared memory of each */
static inline int HashWarps(const HBP *h, PetscInt most, size_t *shelf)
{
  *shelf = ShelfBytes(h->N, HBPHashes(&h->hash), most);
  return (int)PetscMax(1, PetscMin(Warps, ShelvesBytes / *shelf));
}

/* PlaceSegments() where each lane has at most one segment: votes on each bit count the lanes with a smaller hash, or with the same hash and a row before */
static __device__ __forceinline__ void PlaceFew(const HBPHash &hash, PetscInt segs, const HBPRecord *rec, const Shelf &shelf)
{
  const int          lane  = threadIdx.x % WarpSize;
  const bool         mine  = lane < segs;
  const HBPRecord    own   = mine ? rec[lane] : HBPRecord{0, 0, 0};
  const unsigned int key   = mine ? (unsigned int)HBPHashOf(&hash, (PetscInt)own.last + 1) * HBP_MAX_ROWS + (own.row & ~HBP_FLAG) : 0;
  const unsigned int other = __shfl_sync(All, key, 0);
  unsigned int       same = __ballot_sync(All, mine), differ = GallopWarpOr(mine ? key ^ other : 0);
  int                place = 0;

  while (differ) { /* the highest bit that not all have */
    const unsigned int bit = 0x80000000u >> __clz((int)differ), ones = __ballot_sync(All, key & bit);

    if (key & bit) place += __popc(same & ~ones);
    same &= key & bit ? ones : ~ones;
    differ ^= bit;
  }
  if (mine) shelf.place[place] = (unsigned short)lane;
  __syncwarp();
}

/* Order of the records of a block by hash, and of those with the same hash by row, in shelf.place. Records are not compared with each other: rows and hashes are counted. */
static __device__ void PlaceSegments(const HBPHash &hash, PetscInt N, PetscInt segs, const HBPRecord *rec, const Shelf &shelf)
{
  static constexpr int Ahead = 4;
  const int            lane = threadIdx.x % WarpSize, words = (int)HBPWords(N), hashes = (int)HBPHashes(&hash);

  if (segs <= WarpSize) {
    PlaceFew(hash, segs, rec, shelf);
    return;
  }
  for (int w = lane; w < words; w += WarpSize) shelf.bits[w] = 0;
  for (int k = lane; k < hashes; k += WarpSize) shelf.begin[k] = 0;
  __syncwarp();
  for (PetscInt k = lane; k < segs; k += Ahead * WarpSize) {
    int row[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) row[u] = k + u * WarpSize < segs ? rec[k + u * WarpSize].row & ~HBP_FLAG : -1;
#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (row[u] >= 0) atomicOr(shelf.bits + row[u] / 32, 1u << row[u] % 32);
  }
  __syncwarp();
  GallopWarpPrefixes(
    words, [&](int w) { return __popc(shelf.bits[w]); }, [&](int w, int before, int) { shelf.before[w] = (unsigned short)before; });
  for (PetscInt k = lane; k < segs; k += Ahead * WarpSize) {
    HBPRecord r[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (k + u * WarpSize < segs) r[u] = rec[k + u * WarpSize];
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      if (k + u * WarpSize >= segs) continue;
      const int row = r[u].row & ~HBP_FLAG, at = shelf.before[row / 32] + __popc(shelf.bits[row / 32] & ((1u << row % 32) - 1)), value = (int)HBPHashOf(&hash, (PetscInt)r[u].last + 1);

      shelf.order[at] = (unsigned short)(k + u * WarpSize);
      shelf.hash[at]  = (unsigned short)value;
      atomicAdd(shelf.begin + value, 1);
    }
  }
  __syncwarp();
  GallopWarpPrefixes(
    hashes, [&](int k) { return shelf.begin[k]; }, [&](int k, int before, int) { shelf.begin[k] = before; });
  for (PetscInt k = 0; k < segs; k += WarpSize) {
    const bool         mine  = k + lane < segs;
    const int          value = mine ? shelf.hash[k + lane] : -1;
    const unsigned int peers = __match_any_sync(All, value);
    const int          to    = mine ? shelf.begin[value] : 0;

    __syncwarp();
    if (mine && !(peers & LanesBelow())) shelf.begin[value] = to + __popc(peers);
    if (mine) shelf.place[to + __popc(peers & LanesBelow())] = shelf.order[k + lane];
    __syncwarp();
  }
}
