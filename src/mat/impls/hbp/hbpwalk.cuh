/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: the order in which a warp meets entries, for kernels that store them */

#include "hbpdevice.h"

/*
  Calls store(entry, k, load(k)) for the entries of a group that begins with entry ptr, in the order in which a warp meets them. A lane has len of them: first and every (1 << lanes)-th behind it. A few
  are loaded at once.
*/
template <typename Value, typename Load, typename Store>
static __device__ __forceinline__ void WalkEntries(PetscInt ptr, int lanes, PetscInt len, PetscInt first, Load load, Store store)
{
  static constexpr int Steps = 4;

  for (PetscInt k = 0; __any_sync(All, k < len); k += Steps) {
    Value value[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++)
      if (k + u < len) value[u] = load(first + ((k + u) << lanes));
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const unsigned int live = __ballot_sync(All, k + u < len);

      if (k + u < len) store(ptr + __popc(live & LanesBelow()), first + ((k + u) << lanes), value[u]);
      ptr += __popc(live);
    }
  }
}

/* The same for group g; segment(seg) tells where a segment begins */
template <typename Value, typename Segment, typename Load, typename Store>
static __device__ __forceinline__ void WalkGroup(const HBP &h, PetscCount g, Segment segment, Load load, Store store)
{
  const HBPGroup group = h.group[g];
  const int      lane = threadIdx.x % WarpSize, lanes = HBPInfoLanes(group.info), within = HBPLaneInSegment(lane, lanes);
  const PetscInt seg = group.seg + (lane >> lanes), mine = seg < h.group[g + 1].seg, len = mine ? HBPLaneLength(HBPLength(h.output_hash, h.nnz_perrow, seg), lanes, within) : 0, first = mine ? segment(seg) + within : 0;

  WalkEntries<Value>(group.begin_ptr, lanes, len, first, load, store);
}
