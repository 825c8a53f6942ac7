/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: how kernels of the build find segments, and the numbers that they count of them */

#include "hbpdevice.h"

static constexpr int TileEntries = 1024; /* in which a thread block looks for segments */

/* Tiles of nz entries */
static inline PetscCount TilesOf(PetscCount nz)
{
  return (nz + TileEntries - 1) / TileEntries;
}

/* HBPCounts: all has the segments of a block, those that give partial sums, and entries; lanes has the segments with 2, 4, ... 32 lanes */
static constexpr int CountBits = 12; /* a block has at most HBP_MAX_ROWS segments */
static_assert(HBP_MAX_ROWS < 1 << CountBits && (HBP_LANES - 1) * CountBits <= 64, "numbers of segments fit");

static __host__ __device__ __forceinline__ PetscInt CountOf(unsigned long long counts, int which)
{
  return (PetscInt)(counts >> CountBits * which & ((1 << CountBits) - 1));
}

/* What a segment adds to all */
static __device__ __forceinline__ unsigned long long CountedSegment(PetscInt len, bool direct)
{
  return 1ull | (direct ? 0ull : 1ull << CountBits) | (unsigned long long)len << 2 * CountBits;
}

/* and to lanes, where it has 1 << lanes of them: only several are counted */
static __device__ __forceinline__ unsigned long long CountedLanes(int lanes)
{
  return lanes ? 1ull << CountBits * (lanes - 1) : 0ull;
}

static __host__ __device__ __forceinline__ PetscInt SegmentsIn(unsigned long long all)
{
  return CountOf(all, 0);
}

static __host__ __device__ __forceinline__ PetscInt PartialsIn(unsigned long long all)
{
  return CountOf(all, 1);
}

static __host__ __device__ __forceinline__ PetscInt EntriesIn(unsigned long long all)
{
  return (PetscInt)(all >> 2 * CountBits);
}

/* Segments with 1 << lanes lanes, of which there are several */
static __host__ __device__ __forceinline__ PetscInt SegmentsWith(unsigned long long counts, int lanes)
{
  return CountOf(counts, lanes - 1);
}

/* What a block adds to those behind it */
struct OffsetsOf {
  __host__ __device__ HBPOffsets operator()(const HBPCounts &c) const
  {
    const PetscInt segs   = SegmentsIn(c.all);
    PetscInt       single = segs, groups = 0;

    for (int lanes = 1; lanes < HBP_LANES; lanes++) {
      const PetscInt num = SegmentsWith(c.lanes, lanes), size = HBP_GROUP >> lanes;

      single -= num;
      groups += (num + size - 1) / size;
    }
    return {segs > 0, segs, EntriesIn(c.all), groups + (single + HBP_GROUP - 1) / HBP_GROUP};
  }
};

/* *most becomes at least the largest value of a warp */
static __device__ __forceinline__ void RaiseByWarp(int *most, unsigned int value)
{
  const int largest = (int)GallopWarpMax(value);

  if (threadIdx.x % WarpSize == 0 && largest > *(volatile int *)most) atomicMax(most, largest);
}

/* *to += by, by any thread; what it was before */
static __device__ __forceinline__ PetscInt AddTo(PetscInt *to, PetscInt by)
{
  if constexpr (sizeof(PetscInt) == 4) return (PetscInt)atomicAdd((int *)to, (int)by);
  else return (PetscInt)atomicAdd((unsigned long long *)to, (unsigned long long)by);
}

/* Calls what(block, row, first entry, end, direct) for each segment that begins in this thread block's tile and is not of a block with a map. direct: it is the only one of its row. */
template <typename What>
static __device__ __forceinline__ void WalkSegments(const HBPMatrix &A, int *unsorted, What what)
{
  const PetscCount begin = (PetscCount)blockIdx.x * TileEntries, end = begin + TileEntries < A.nz ? begin + TileEntries : A.nz;
  const PetscInt   low = A.tileRow[blockIdx.x], high = end < A.nz ? A.tileRow[blockIdx.x + 1] : A.m - 1; /* rows from which on and up to which */
  bool             disorder = false;

  for (PetscCount e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const PetscInt row = low + HBPPlaceOf(high - low + 1, A.i + low, e); /* the last that begins with e or before it, so it has entries */
    const PetscInt rb = row / A.N, first = A.i[row], last = A.i[row + 1], col = A.j[e], before = e > first ? A.j[e - 1] : -1;
    const PetscInt cb = col / A.M;

    if (A.IsMapped(rb)) continue;
    disorder = disorder || before >= col;
    if (last - first > A.longRow || (e > first && before / A.M == cb)) continue;
    what((PetscCount)cb * A.rowBlocks + rb, row, (PetscInt)e, HBPSegmentEnd(A.j, (PetscInt)e, last, A.M), A.j[first] / A.M == A.j[last - 1] / A.M);
  }
  if (disorder && unsorted) *unsorted = 1;
}
