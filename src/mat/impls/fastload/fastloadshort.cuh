/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: what the stages of FASTLOAD's build where columns are short know of each other */

#include "fastloaddevice.h"

static constexpr int           Lengths   = GallopColumnShort + 1; /* of columns that are counted */
static constexpr unsigned char Elsewhere = 255;                   /* of a row that two groups have entries of, or two blocks, or two places in a line */

/* A warp has a group in shared memory, of which any kernel may have this much: bytes for each line, and most lines */
static constexpr size_t Shared    = 48 << 10;
static constexpr size_t LineBytes = WarpSize * (2 * sizeof(PetscInt) + 1) + sizeof(PetscInt);
static constexpr int    Longest   = Shared / LineBytes < GallopColumnShort ? (int)(Shared / LineBytes) : GallopColumnShort;
static_assert(Longest < Elsewhere, "a number of a block in its group fits a byte");

/* Entries wait in the memory of values, where they fit: each takes the room of Apart */
static constexpr bool InValues = sizeof(PetscScalar) >= sizeof(GallopColumnEntry);
static constexpr int  Apart    = InValues ? (int)(sizeof(PetscScalar) / sizeof(GallopColumnEntry)) : 1;

/* What kernels tell the host, in one copy */
struct Census {
  GallopColumnsFound found;
  unsigned long long spread;           /* FastLoadSpread() of the samples */
  unsigned int       columns[Lengths]; /* of each length */
};

/* Groups that follow each other and are alike, or one whose columns differ */
struct Run {
  PetscInt group, length;           /* the first; entries of each column, -1 where they differ */
  PetscInt blocks, tasks, lines;    /* before the first */
  PetscInt nblocks, ntasks, nlines; /* of each group */
};

/* What the host makes of the census: sorted columns, the entries before them, and groups */
struct Order {
  PetscInt columns[Lengths + 1]; /* shorter ones */
  PetscInt entries[Lengths + 1]; /* of these */
  PetscInt runs;
  Run      run[2 * Lengths + 1]; /* groups whose columns differ have the first column of a length, or are the last */
};

/* Where the first entry of a column waits, and the column's group. Where all columns of the group are equally long entries are in lines of 32, else, with ~group, one after the other. */
struct __align__(2 * sizeof(PetscInt)) Place {
  PetscInt at, group;
};

static __device__ __forceinline__ Place PlaceOf(const Order *order, PetscInt s, int length)
{
  const PetscInt group = s / WarpSize, first = group * WarpSize, begin = order->columns[length], end = order->columns[length + 1];

  if (begin <= first && end - first >= WarpSize) return {order->entries[length] + (first - begin) * length + s - first, group};
  return {order->entries[length] + (s - begin) * length, ~group};
}

/* fastloadgroups.cu */
PETSC_INTERN PetscErrorCode FastLoadFillGroups(const FastLoad *, const GallopCSR *, const Order *, int, const GallopColumnEntry *, unsigned char *, unsigned char *, cudaStream_t);
PETSC_INTERN PetscErrorCode FastLoadFinishTasks(const FastLoad *, const PetscInt *, const unsigned char *, cudaStream_t);
