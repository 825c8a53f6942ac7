/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: a group of columns in shared memory, and what a warp finds in its lines */

#include "fastloadsegments.cuh"
#include "fastloadshort.cuh"

static constexpr int Fetched = 8; /* entries that a lane loads before it uses the first */
static constexpr int Ranks   = 4; /* entries that it compares with each of its column at once */

/* The length of a sorted column */
static __device__ __forceinline__ int LengthOf(const Order *order, PetscInt s)
{
  int low = 0, high = Lengths - 1;

  while (low < high) {
    const int middle = (low + high + 1) / 2;

    if (order->columns[middle] <= s) low = middle;
    else high = middle - 1;
  }
  return low;
}

static __device__ __forceinline__ Run RunOf(const Order *order, PetscInt group)
{
  int low = 0, high = 2 * Lengths - 1;

  while (low < high) {
    const int middle = (low + high + 1) / 2;

    if (order->run[middle].group <= group) low = middle;
    else high = middle - 1;
  }
  return order->run[low];
}

/* A group in shared memory: a lane has a column, of which entries lie one below the other as they came, and order tells which one is on each line */
struct Lines {
  PetscInt      *entry, *row, *low; /* low: the lowest row of each line */
  unsigned char *order;
  int            lane;

  __device__ __forceinline__ Lines(unsigned char *memory, int most, int lane) : lane(lane)
  {
    entry = reinterpret_cast<PetscInt *>(memory);
    row   = entry + most * WarpSize;
    low   = row + most * WarpSize;
    order = reinterpret_cast<unsigned char *>(low + most);
  }

  /* The lane's entries, the first of which is at a place, the others step further each */
  __device__ __forceinline__ void Load(const GallopColumnEntry *from, In<PetscInt> i, PetscInt at, PetscInt step, int own, int most) const
  {
    for (int k = 0; k < most; k += Fetched) {
      GallopColumnEntry e[Fetched];

#pragma unroll
      for (int u = 0; u < Fetched; u++) e[u] = from[((PetscCount)at + (k + u < own ? k + u : own ? own - 1 : 0) * step) * Apart]; /* without a condition, so that the next one does not wait */
      __syncwarp();                                                                                                               /* else the compiler may load one after the other */
#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        if (k + u >= own) continue;
        entry[(k + u) * WarpSize + lane] = e[u].Entry(i);
        row[(k + u) * WarpSize + lane]   = (PetscInt)e[u].row;
      }
    }
  }

  /* As many are above an entry as have a smaller place in CSR */
  __device__ __forceinline__ void Sort(int own) const
  {
    for (int k = 0; k < own; k += Ranks) {
      PetscInt mine[Ranks];
      int      rank[Ranks];

#pragma unroll
      for (int u = 0; u < Ranks; u++) {
        mine[u] = entry[(k + u < own ? k + u : k) * WarpSize + lane];
        rank[u] = 0;
      }
      for (int l = 0; l < own; l++) {
        const PetscInt other = entry[l * WarpSize + lane];

#pragma unroll
        for (int u = 0; u < Ranks; u++) rank[u] += other < mine[u];
      }
#pragma unroll
      for (int u = 0; u < Ranks; u++)
        if (k + u < own) order[rank[u] * WarpSize + lane] = (unsigned char)(k + u);
    }
  }

  __device__ __forceinline__ int Slot(int line) const
  {
    return order[line * WarpSize + lane] * WarpSize + lane;
  }
};

/* Blocks of a group: calls what(number in the group, of its task, whether it begins that, segment, first line, line after the last) */
template <typename What>
static __device__ __forceinline__ void WalkBlocks(PetscInt own, int length, PetscInt limit, int lane, What what)
{
  PetscInt b = 0, t = 0;

  (void)WalkGroup(own, length, limit, lane, [&](const Segment &segment) {
    for (PetscInt k = 0; k < segment.blocks; k++, b++) {
      const bool begins = k || segment.begins;

      what(b, t, begins, segment, segment.BlockBegin(k), segment.BlockEnd(k));
      t += begins;
    }
  });
}

/* What holds for all lines of a block, as ClassKernel finds it */
struct Looks {
  bool     onerow = true, distinct = true, follow = true;
  PetscInt spread  = 0;
  int      longest = 1;

  /* A line: lanes from first on have entries, of these rows. Returns the lowest row; *together is false where the lane's row stands apart. */
  __device__ __forceinline__ PetscInt Add(PetscInt row, int lane, int first, int length, bool *together)
  {
    const bool     inside = lane >= first && lane < first + length;
    const PetscInt begin  = __shfl_sync(All, row, first);
    PetscInt       low = begin, high = begin + length - 1;

    *together = true;
    if (__any_sync(All, inside && row != begin + lane - first)) {
      const PetscInt     own    = inside ? row : -1 - lane; /* lanes without an entry differ from all others */
      const PetscInt     before = __shfl_up_sync(All, own, 1);
      const bool         same   = inside && lane > first && own == before;
      const unsigned int heads = __ballot_sync(All, !same), behind = lane == WarpSize - 1 ? 0 : heads >> (lane + 1);
      const unsigned int peers = MatchAny(own), run = peers >> (__ffs((int)peers) - 1);

      high      = WarpMax(own);
      low       = -WarpMax(inside ? -own : -begin);
      *together = !(run & (run + 1));
      longest   = max(longest, (behind ? lane + __ffs((int)behind) : WarpSize) - lane);
      if (__any_sync(All, same)) distinct = false;
      if (__any_sync(All, inside && lane > first && !same)) onerow = false;
      follow = false;
    } else if (length > 1) onerow = false;
    spread = high - low > spread ? high - low : spread;
    return low;
  }
};
