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

/* Lengths of columns, and what goes with them: zeroed before */
struct Census {
  GallopColumnsFound found;
  unsigned long long spread;           /* FastLoadSpread() of the samples */
  unsigned int       columns[Lengths]; /* of each length */
};

/* What kernels tell the host, in one copy: zeroed before */
struct Reply {
  GallopColumnsFound found; /* longest is more than Longest where nothing has been done */
  int                scattered, single, zeros;
  PetscInt           blocks, tasks, lines, rows; /* rows that have entries */
  unsigned long long rowbytes;
  unsigned int       ended; /* thread blocks that have filled their groups */
};

/* Groups that follow each other and are alike, or one whose columns differ. Of those there are none the next one has the same first group. */
struct Run {
  PetscInt group, length;           /* the first; entries of each column, -1 where they differ */
  PetscInt blocks, tasks, lines;    /* before the first */
  PetscInt nblocks, ntasks, nlines; /* of each group */
};

/* Sorted columns, the entries before them, and groups. Of each length there are groups whose columns all have it, then perhaps one that begins with it. */
struct Order {
  PetscInt columns[Lengths + 1]; /* shorter ones */
  PetscInt entries[Lengths + 1]; /* of these */
  PetscInt height;               /* of blocks, at most */
  int      longest;              /* entries of a column; negative where columns are not all short, or rows not sorted: then nothing is to be done */
  Run      run[2 * Lengths];
};

/* Bytes of offsets are added up over as many groups first */
static constexpr int Parcel = 4 * WarpSize;

/* Where the first entry of a column waits, and the column's group. Where all columns of the group are equally long entries are in lines of 32, else, with ~group, one after the other. */
struct __align__(2 * sizeof(PetscInt)) Place
{
  PetscInt at, group;
};

static __device__ __forceinline__ Place PlaceOf(const Order *order, PetscInt s, int length)
{
  const PetscInt group = s / WarpSize, first = group * WarpSize, begin = order->columns[length], end = order->columns[length + 1];

  if (begin <= first && end - first >= WarpSize) return {order->entries[length] + (first - begin) * length + s - first, group};
  return {order->entries[length] + (s - begin) * length, ~group};
}

/* What groups are filled from, and into */
struct Groups {
  const Order             *order;
  const GallopColumnEntry *entries;
  unsigned char           *apart;   /* of rows */
  unsigned char           *offsets; /* of the rows of each block, behind as many PetscInts as there are entries before it */
  unsigned int            *bytes;   /* of the offsets of each group */
  unsigned long long      *parcels; /* of each parcel of groups; in the end of those before it */
  Reply                   *reply;
};

/* fastloadgroups.cu */
PETSC_INTERN PetscErrorCode FastLoadFillGroups(const FastLoad *, const GallopCSR *, const Groups *, int, cudaStream_t);
PETSC_INTERN PetscErrorCode FastLoadFinishTasks(const FastLoad *, const FastLoad *, const Groups *, const PetscInt *, cudaStream_t);
