/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: how a thread block finds the map of a block of rows, the chunks of columns in which it has entries */

#include "../common/footprint.h"
#include "hbpdevice.h"

static constexpr int MapThreads = 512, MapWords = 8192; /* of a thread block that makes a map: it marks chunks by bits of these words */
static constexpr int MapResident = 3;                   /* thread blocks on a multiprocessor */
static constexpr int MapKept     = 8;                   /* entries that a thread keeps, so that it loads them once */

/* Calls what(column) for the entries of rows row, ..., row + rows - 1 that are not long. Bit r of longRows tells whether row + r is; some, whether any is. By all threads of a thread block. */
template <typename What>
static __device__ __forceinline__ void WalkShortRows(const HBPMatrix &A, PetscInt row, PetscInt rows, const unsigned int *longRows, bool some, What what)
{
  static constexpr int Ahead = 4;

  for (PetscInt from = 0, to; from < rows; from = to + 1) {
    for (to = some ? from : rows; to < rows; to++) { /* the next long row */
      const unsigned int left = longRows[to / 32] >> to % 32;

      if (left) to += __ffs((int)left) - 1;
      if (left) break;
      to |= 31;
    }
    if (to > rows) to = rows;
    const PetscCount end = A.i[row + to];

    for (PetscCount e = (PetscCount)A.i[row + from] + threadIdx.x; e < end; e += Ahead * MapThreads) {
      PetscInt j[Ahead];

#pragma unroll
      for (int u = 0; u < Ahead; u++) j[u] = e + u * MapThreads < end ? A.j[e + u * MapThreads] : -1;
#pragma unroll
      for (int u = 0; u < Ahead; u++)
        if (j[u] >= 0) what(j[u]);
    }
  }
}

using Marks = GallopFootprintMarks<MapThreads, MapWords>;
static_assert(HBP_MAX_COLS / HBP_CHUNK <= MapWords / 2, "chunks of a map that are far apart are found in one walk");

/* How many chunks block of rows rb has entries in, those in long rows left out, or more than A.mapChunks. Stores their first columns in increasing order where map is not NULL. */
static __device__ PetscInt WalkChunks(const HBPMatrix &A, PetscInt rb, Marks &marks, PetscInt *__restrict__ map)
{
  __shared__ unsigned int longRows[HBP_MAX_ROWS / 32];
  const PetscInt          row = rb * A.N, rows = A.m - row < A.N ? A.m - row : A.N;
  const PetscInt          first = A.i[row], num = A.i[row + rows] - first;
  const bool              few = num <= MapKept * MapThreads;
  int                     kept[MapKept]; /* chunks of entries */
  bool                    some = false;

#pragma unroll
  for (int u = 0; u < MapKept; u++) {
    const PetscInt k = (PetscInt)threadIdx.x + u * MapThreads;

    kept[u] = few && k < num ? (int)(A.j[first + k] / HBP_CHUNK) : -1;
  }
  for (PetscInt r = (PetscInt)threadIdx.x; r - (PetscInt)threadIdx.x % WarpSize < rows; r += MapThreads) {
    const unsigned int isLong = __ballot_sync(All, r < rows && A.i[row + r + 1] - A.i[row + r] > A.longRow);

    if (threadIdx.x % WarpSize == 0) longRows[r / 32] = isLong;
    some = some || isLong;
  }
  some = __syncthreads_or(some);
  if (few && !some) {
    return GallopFootprint(marks, A.mapChunks, false, HBP_CHUNK, map, [&](auto what) {
#pragma unroll
      for (int u = 0; u < MapKept; u++)
        if (kept[u] >= 0) what(kept[u]);
    });
  }
  return GallopFootprint(marks, A.mapChunks, false, HBP_CHUNK, map, [&](auto what) { WalkShortRows(A, row, rows, longRows, some, [&](PetscInt col) { what((int)(col / HBP_CHUNK)); }); });
}
