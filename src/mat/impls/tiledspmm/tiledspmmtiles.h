/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files: the tiles of the tensor kernel, of eight rows and eight columns, of which a mask tells the entries */

#include "tiledspmmdevice.h"

static constexpr int Rows = TILEDSPMM_TILE_ROWS, Cols = TILEDSPMM_TILE_COLS, Lanes = WarpSize / Rows; /* lanes that have a row of a tile */

static_assert(Cols == 2 * Lanes, "a lane has two entries of a tile");
static_assert(sizeof(TiledSpMMTile) == sizeof(uint4), "a tile is loaded at once");

template <typename V, typename I>
struct TilesView {
  PetscCount           num; /* units */
  I                    m, n;
  const I             *row, *slot, *slots;
  const PetscCount    *ptr, *valueptr;
  const TiledSpMMTile *tile;
  const V             *value;
};

static inline TilesView<PetscScalar, PetscInt> TilesOf(const TiledSpMM *t)
{
  return {t->nunit, t->m, t->n, t->unitrow, t->unitslot, t->unitnum, t->tileptr, t->valueptr, t->tile, t->value};
}

static __device__ __forceinline__ unsigned int BitsBelow(int bit)
{
  return (1u << bit) - 1;
}

/* A tile's row, a bit for each column */
static __device__ __forceinline__ unsigned int RowOf(unsigned long long mask, int row)
{
  return (unsigned int)(mask >> (Cols * row)) & BitsBelow(Cols);
}

/* Entries of a tile before a row */
static __device__ __forceinline__ int EntriesBefore(unsigned long long mask, int row)
{
  return __popcll(mask & ((1ull << (Cols * row)) - 1));
}
