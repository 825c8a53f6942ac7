/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: which of many places a thread block's entries are in, in order */

#include <gallop/cudaimpl.h>

/* Shared memory of a thread block that looks for its footprint: places are marked by bits, 32 Words of them at once, or are in a table of Words places */
template <int Threads, int Words>
struct GallopFootprintMarks {
  unsigned int bits[Words];
  int          lowest, highest, next, count[Threads / WarpSize];
};

/* Most walks by bits: so few are faster than a table or a sort, which take one */
static constexpr int GallopFootprintWalks = 4;

/* Instead of a number: the places are so far apart that bits would take more walks than these */
static constexpr PetscInt GallopFootprintScattered = -1;

/* The same by a table, for no more places than half of it, as far apart as they may be */
template <int Threads, int Words, typename Walk>
static __device__ PetscInt GallopFootprintByTable(GallopFootprintMarks<Threads, Words> &marks, PetscInt most, PetscInt scale, PetscInt *map, Walk walk)
{
  static constexpr unsigned int Free = 0xffffffffu;
  static_assert(!(Words & (Words - 1)) && Words % Threads == 0 && Words >= 4 * Threads, "the table is sorted by halves, and has places left when each thread has put one too many into it");
  volatile int *const num = &marks.next;

  for (int k = threadIdx.x; k < Words; k += Threads) marks.bits[k] = Free;
  if (threadIdx.x == 0) marks.next = 0;
  __syncthreads();
  walk([&](int place) {
    for (unsigned int at = (unsigned int)place * 0x9e3779b1u / (0xffffffffu / Words + 1); *num <= most; at = (at + 1) % Words) {
      unsigned int is = *(volatile unsigned int *)(marks.bits + at);

      if (is == Free) {
        is = atomicCAS(marks.bits + at, Free, (unsigned int)place);
        if (is == Free) atomicAdd(&marks.next, 1);
      }
      if (is == Free || is == (unsigned int)place) break;
    }
  });
  __syncthreads();
  const int found = marks.next;
  int       size  = 1;

  __syncthreads();
  if (!map || found > most) return found;
  if (threadIdx.x == 0) marks.next = 0;
  for (int k = threadIdx.x; k < Words; k += Threads) { /* to the front: where a place goes has been read */
    const unsigned int place = marks.bits[k];

    __syncthreads();
    if (place != Free) marks.bits[atomicAdd(&marks.next, 1)] = place;
  }
  while (size < found) size *= 2;
  for (int k = found + (int)threadIdx.x; k < size; k += Threads) marks.bits[k] = Free;
  __syncthreads();
  for (int sorted = 2; sorted <= size; sorted *= 2) { /* a bitonic sort */
    for (int by = sorted / 2; by; by /= 2) {
      for (int k = threadIdx.x; k < size / 2; k += Threads) {
        const int          low = 2 * k - (k & (by - 1)), high = low + by;
        const unsigned int a = marks.bits[low], b = marks.bits[high];

        if ((a > b) != !(low & sorted)) continue;
        marks.bits[low]  = b;
        marks.bits[high] = a;
      }
      __syncthreads();
    }
  }
  for (int k = threadIdx.x; k < found; k += Threads) map[k] = (PetscInt)marks.bits[k] * scale;
  return found;
}

/*
  How many places walk(what) tells, which calls what(place) for each one, of several that are the same once or often; or more than most. Places are less than PETSC_INT32_MAX.
  Stores them, times scale, in increasing order where map is not NULL. By all threads of a thread block; walks again from the first place that lies behind the last bit on. A few walks
  suffice where most is at most half of Words; else with few, which gives up then, and returns GallopFootprintScattered.
*/
template <int Threads, int Words, typename Walk>
static __device__ PetscInt GallopFootprint(GallopFootprintMarks<Threads, Words> &marks, PetscInt most, bool few, PetscInt scale, PetscInt *map, Walk walk)
{
  static constexpr int None = PETSC_INT32_MAX;
  const int            lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  int                  low = None, high = 0, begin, walks = 0;
  PetscInt             num = 0;

  if (threadIdx.x == 0) {
    marks.lowest  = None;
    marks.highest = 0;
  }
  __syncthreads();
  walk([&](int place) {
    low  = min(low, place);
    high = max(high, place);
  });
  low  = (int)GallopWarpMin((unsigned int)low);
  high = (int)GallopWarpMax((unsigned int)high);
  if (lane == 0 && low < None) {
    atomicMin(&marks.lowest, low);
    atomicMax(&marks.highest, high);
  }
  __syncthreads();
  if (most <= Words / 2 && marks.lowest < None && (marks.highest - marks.lowest) / (32 * Words) >= GallopFootprintWalks) return GallopFootprintByTable(marks, most, scale, map, walk);
  for (begin = marks.lowest; begin < None && num <= most; walks++) {
    if (few && walks == GallopFootprintWalks) return GallopFootprintScattered;
    const int words = marks.highest - begin < 32 * Words ? (marks.highest - begin) / 32 + 1 : Words, each = ((words - 1) / Threads + 1) * WarpSize, first = warp * each, last = min(first + each, words);
    int       own = 0, after = None, total = 0;

    for (int k = threadIdx.x; k < words; k += Threads) marks.bits[k] = 0;
    if (threadIdx.x == 0) marks.next = None;
    __syncthreads();
    walk([&](int place) {
      const int at = place - begin;

      if (at >= 32 * Words) after = min(after, place);
      else if (at >= 0 && !(*(volatile unsigned int *)(marks.bits + at / 32) >> at % 32 & 1)) atomicOr(marks.bits + at / 32, 1u << at % 32);
    });
    after = (int)GallopWarpMin((unsigned int)after);
    if (lane == 0 && after < None) atomicMin(&marks.next, after);
    __syncthreads();
    for (int k = first + lane; k < last; k += WarpSize) own += __popc(marks.bits[k]);
    for (int by = WarpSize / 2; by; by /= 2) own += __shfl_xor_sync(0xffffffffu, own, by);
    if (lane == 0) marks.count[warp] = own;
    __syncthreads();
    for (int w = 0; w < Threads / WarpSize; w++) {
      if (w == warp) own = total;
      total += marks.count[w];
    }
    if (map) {
      GallopWarpPrefixes(
        last - first, [&](int k) { return __popc(marks.bits[first + k]); },
        [&](int k, int before, int) {
          PetscInt to = num + own + before;

          for (unsigned int left = marks.bits[first + k]; left; left &= left - 1) map[to++] = (PetscInt)(begin + (first + k) * 32 + __ffs((int)left) - 1) * scale;
        });
    }
    num += total;
    begin = marks.next;
    __syncthreads();
  }
  return num;
}
