/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Warps of kernels that go through what is stored: which slice, or which part of a piece, each has */

#include "packedwarp.cuh"

/* Notes that some value does not fit. Many warps may find that; one store is enough. */
static __device__ __forceinline__ void Report(bool fits, int *unfit)
{
  if (unfit && !__all_sync(0xffffffffu, fits) && threadIdx.x % WarpSize == 0 && !*(volatile int *)unfit) *(volatile int *)unfit = 1;
}

/* Warps per piece: a piece has many lines, and long rows offer no other parallelism */
static unsigned int WarpsAPiece(const EVCHYBPack *pack)
{
  constexpr PetscCount Each = 8 * EVCHYB_PACK_ROWS; /* entries for a warp */

  return pack->npiece ? (unsigned int)((pack->nlong + Each * pack->npiece - 1) / (Each * pack->npiece)) : 1;
}

/* A warp's slice, or the part of one that is a piece */
struct Work {
  PetscInt     number;
  unsigned int part; /* of a piece */
};

static __device__ __forceinline__ Work WorkOf(const EVCHYBPack &pack, unsigned int parts)
{
  const PetscCount warp = WarpOfGrid(), beyond = warp - (pack.nslice - pack.npiece); /* the slices of short rows */

  if (beyond < 0) return {(PetscInt)warp, 0};
  return {PetscMin(pack.nslice - pack.npiece + (PetscInt)((unsigned int)beyond / parts), pack.nslice - 1), (unsigned int)beyond % parts}; /* the last warps repeat the work of others */
}

static unsigned int GridOfWork(const EVCHYBPack *pack, unsigned int parts)
{
  return GallopBlocksFor((pack->nslice + (PetscCount)(parts - 1) * pack->npiece) * WarpSize, Threads);
}

/* Lines of a piece, and their entries: none where there are no more */
struct Part {
  int     line, lines, entries;
  int64_t first;
};

static __device__ __forceinline__ Part PartOf(const EVCHYBPackSlice &slice, const PetscInt *__restrict__ i, unsigned int part, unsigned int parts)
{
  const int each = (slice.width + (int)parts - 1) / (int)parts, line = (int)part * each, lines = min(each, slice.width - line);

  return {line, lines, lines * EVCHYB_PACK_ROWS - (line + lines == slice.width ? EVCHYB_PACK_ROWS - slice.last : 0), (int64_t)i[slice.rows.base] + ((int64_t)slice.at + line) * EVCHYB_PACK_ROWS};
}

/* Where the entries of the lane's two rows begin and end. The rows are guessed before the slice is loaded: where rows come by strides the guess is right, but for rows that are in pieces. */
struct RowsOf {
  PetscInt guess[2], first[2], end[2];

  __device__ __forceinline__ RowsOf(const EVCHYBPack &pack, PetscInt number, const PetscInt *__restrict__ i)
  {
    const EVCHYBPackOrder order = {NULL, 0, pack.stride};
    const PetscInt        begin = pack.stride ? EVCHYBPackRow(&order, pack.m, number, 0) : -1;

#pragma unroll
    for (int h = 0; h < 2; h++) {
      guess[h] = begin + pack.stride * RowInSlice(h);
      if (begin < 0 || guess[h] >= pack.m) guess[h] = -1;
      Load(i, h);
    }
  }

  __device__ __forceinline__ void Set(const EVCHYBPack &pack, const EVCHYBPackSlice &slice, const PetscInt *__restrict__ i)
  {
    const EVCHYBPackPair<int> rows   = EVCHYBPackRows(slice.rows, pack.stream, threadIdx.x % WarpSize);
    const int                 row[2] = {rows.first, rows.second};

#pragma unroll
    for (int h = 0; h < 2; h++) {
      if (row[h] == guess[h]) continue;
      guess[h] = row[h];
      Load(i, h);
    }
  }

private:
  __device__ __forceinline__ void Load(const PetscInt *__restrict__ i, int h)
  {
    first[h] = guess[h] < 0 ? 0 : i[guess[h]];
    end[h]   = guess[h] < 0 ? 0 : i[guess[h] + 1];
  }
};
