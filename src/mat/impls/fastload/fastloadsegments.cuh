/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: how a warp of a FASTLOAD build walks over the blocks of a group */

#include "fastloaddevice.h"

/* Lines [begin, end) of a group, all of the same columns, and the blocks that they are cut into: all but the first begin tasks, and where begins is true the first does too */
struct Segment {
  int      first, length; /* columns of the group */
  PetscInt begin, end, cut, blocks;
  bool     begins;

  __device__ __forceinline__ PetscInt Tasks() const { return blocks - !begins; }
  __device__ __forceinline__ PetscInt BlockBegin(PetscInt k) const { return k ? (begin / cut + k) * cut : begin; }
  __device__ __forceinline__ PetscInt BlockEnd(PetscInt k) const { return k == blocks - 1 ? end : (begin / cut + k + 1) * cut; }
};

/* A warp for a group of length columns, of which each lane has one with own entries; what() takes each segment, with all lanes. Returns the number of lines. */
template <typename What>
static __device__ __forceinline__ PetscInt WalkGroup(PetscInt own, int length, PetscInt limit, int lane, What what)
{
  const PetscInt most  = __shfl_sync(All, own, length - 1);
  int            chain = 0;

  for (PetscInt k = 0; k < most;) {
    const int      at  = __popc(__ballot_sync(All, lane < length && own <= k)); /* columns that are at their end */
    const PetscInt end = __shfl_sync(All, own, at), cut = limit ? FastLoadCut(limit, WarpSize, length - at) : most;

    const PetscInt blocks = (end - 1) / cut - k / cut + 1;
    const bool     begins = k % cut == 0 || (limit && most > limit && chain == FASTLOAD_CHAIN);

    chain = begins || blocks > 1 ? 1 : chain + 1;
    what(Segment{at, length - at, k, end, cut, blocks, begins});
    k = end;
  }
  return most;
}
