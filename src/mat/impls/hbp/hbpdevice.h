/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  HBP on the GPU, for .cu files only: what the stages of a build hand on. Each has a file of its own.

    hbplook.cu                     a look at some rows, from which a kernel chooses blocks
    hbpwholecount.cu, hbpwhole.cu  where all entries of a row are in one block: counts them before the host has been told of blocks; fills all arrays
    hbpmap.cu                      maps of blocks of rows, where other blocks have none
    hbpcount.cu                    where rows may be in several blocks: counts what each block has, so that the host knows all sizes
    hbpfill.cu                     puts the segments of each block in order by hash, and makes groups of them; the combine part's arrays
    hbpconvert.cu                  entries in the order of groups, and long rows; new values
    hbpplan.cu                     parts of about the same weight, how to launch
    hbpproduct.cu, hbptranspose.cu products
    hbpcolumnsbuild.cu, hbpcolumns.cu column blocks, which are built after the look and need none of these stages
    hbphotbuild.cu, hbphot.cu      hot columns, likewise
    hbpdevice.cu                   memory, and the build, which runs these stages
*/

#include <gallop/cudaimpl.h>
#include "hbp.h"

static constexpr int          Threads = 256, Warps = Threads / WarpSize; /* of a thread block, where nothing else is said */
static constexpr int          FewThreads  = 128;                         /* of a thread block whose warps compute parts on their own */
static constexpr int          FewRows     = 64;                          /* long rows that the host is told without asking */
static constexpr int          GroupWeight = 64;                          /* entries that take as long as what a group takes besides its entries */
static constexpr unsigned int All         = 0xffffffffu;                 /* lanes of a warp */

/* An array that a kernel only reads: an argument of its own, since of one in a struct the compiler does not know that nothing writes to it */
template <typename T>
using ReadOnly = const T *__restrict__;

static __device__ __forceinline__ unsigned int LanesBelow()
{
  unsigned int mask;

  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

/* What the stages of a build need of a matrix */
struct HBPMatrix {
  PetscInt        m, N, M, rowBlocks, longRow, laneEntries;
  HBPHash         hash;
  PetscCount      nz;
  const PetscInt *i, *j, *tileRow;
  const PetscInt *mapped;    /* of each block of rows, the chunks of its map; NULL where none has one */
  PetscInt        mapChunks; /* that a map may have */

  __device__ __forceinline__ bool IsMapped(PetscInt rowBlock) const { return mapped && mapped[rowBlock]; }
};

static inline __host__ __device__ HBPMatrix HBPMatrixOf(const HBP *h, const PetscInt *i, const PetscInt *j)
{
  return {h->m, h->N, h->M, h->rowBlocks, h->longRow, h->laneEntries, h->hash, h->nz, i, j, NULL, NULL, h->mapChunks};
}

/* What a block has, packed: see hbpsegments.cuh */
struct HBPCounts {
  unsigned long long all, lanes;
};

/* Blocks with entries, segments, entries and groups of all blocks before one, column by column */
struct HBPOffsets {
  PetscInt blk, seg, nnz, group;
};

/* What the host is told of the counts */
struct HBPFound {
  PetscInt   blk, seg, group, partial, combine, longRows, empty, map; /* empty: rows without entries */
  int        mapped, plain;                                           /* blocks of rows with a map, and without one but with entries */
  int        most, longest;                                           /* segments of a block, entries of a segment */
  int        unsorted;                                                /* some row's columns do not increase */
  PetscInt   rows[FewRows];                                           /* the first ones of longRows */
  HBPOffsets ends[1];                                                 /* [colBlocks + 1] of each column of blocks */
};

static inline size_t FoundBytes(PetscInt colBlocks)
{
  return sizeof(HBPFound) + (size_t)colBlocks * sizeof(HBPOffsets);
}

/* A segment before it has found its place: the first entry, how many follow it, the row in the block and HBP_FLAG. Stored at once. */
struct alignas(2 * sizeof(PetscInt)) HBPRecord {
  PetscInt       start;
  unsigned short last, row;
};

/*
  What the host is told by the one copy of a build: the choice of blocks, which is HBPChoose()'s, and what has been counted by it. whole: each row was taken to be in one block, so found is true
  unless it tells of plain blocks of rows.
*/
struct HBPSurvey {
  HBPSample    sample;
  unsigned int looked, counted; /* thread blocks that have ended */
  int          whole;
  HBP          h;
  HBPFound     found;
  HBPOffsets   end; /* the second one of found.ends */
};

/*
  Workspace of one stage or several: memory is NULL where there is none, because it was not asked for or because the GPU has no room
  From the look on: as much as any choice of blocks may need
*/
struct HBPLookWork {
  void       *memory;
  HBPSurvey  *survey;
  HBPCounts  *counts;          /* [rowBlocks] of each block of rows, if rows are whole */
  HBPOffsets *offsets;         /* [rowBlocks + 1] likewise */
  PetscInt   *longRows;        /* likewise, in any order */
  PetscInt   *chunks, *mapPtr; /* [rowBlocks + 1] chunks of the map of each block of rows, and where it begins; NULL where there are no maps */
  PetscCount  blocksMost;      /* blocks of rows, at most */
};

/* From the counts on, where rows may be in several blocks */
struct HBPCountWork {
  void       *memory;
  HBPFound   *found;
  PetscInt   *tileRow;  /* the row in which each tile of entries begins */
  PetscInt   *longRows; /* in any order */
  HBPCounts  *counts;   /* [blocks + 1] as the following ones */
  HBPOffsets *offsets;
  PetscInt   *partials; /* partial sums of all blocks before one, row by row of blocks */
  PetscInt   *pieces;   /* [rowBlocks + 1] of the combine part, of all blocks of rows before one */
  char       *cub;
  size_t      cubbytes;
};

/* Where the columns of rows do not increase */
struct HBPSortWork {
  void               *memory;
  PetscInt           *j, *from; /* columns in order, and where they are in CSR */
  PetscInt           *entry;
  unsigned long long *key, *sortedkey;
  char               *cub;
};

/* While segments find their places */
struct HBPFillWork {
  void           *memory;
  int             most;       /* segments of a block */
  HBPRecord      *rec;        /* by blocks, in any order */
  PetscInt       *start;      /* first entry of each segment, in order of places */
  unsigned short *partialRow; /* row in its block of each partial sum */
};

struct HBPWork {
  HBPLookWork  look;
  HBPCountWork count;
  HBPSortWork  sort;
  HBPFillWork  fill;
};

/* Groups that a warp computes together, up to those of the next part, and their column of blocks */
template <typename I>
struct Part {
  I begin, col;
};

/* Parts of the product's work, and its launches */
typedef struct {
  PetscInt        partNum, shareNum;
  PetscInt        fixedEach; /* parts or shares that a warp or a thread block has beforehand; it takes others by tickets */
  Part<PetscInt> *parts;     /* [partNum + 1] */
  PetscInt       *shares;    /* [shareNum + 1] first part of each share: what a thread block with x in shared memory computes together, in one column of blocks */
  int            *tickets;   /* taken, and agents that have ended */
  int             blocks, threads;
  size_t          shared, combineShared; /* bytes of dynamic shared memory of the SpMV part and of the combine part */
  int             transposedBlocks;
  PetscInt        transposedEach; /* as fixedEach; 0 before the first transposed product */
  void           *longRows;       /* on the host, what the GPU copies from */
  PetscBool       overlaps;       /* kernels may start while those before them end */
  PetscBool       fresh;          /* values have been written since the last product */
  PetscBool       groups;         /* a part is a group, and x is not in shared memory */
  int             dotBlocks;      /* as blocks, in a product with a dot product; 0 before the first one */
} HBPPlan;

/* What ends the arrays of parts */
static __device__ __forceinline__ void HBPEndParts(const HBP &h, const HBPPlan &plan)
{
  plan.parts[plan.partNum]   = {h.groupNum, h.colBlocks};
  plan.shares[plan.shareNum] = plan.partNum;
  plan.tickets[0] = plan.tickets[1] = 0;
}

/* Parts that follow each other, of one column of blocks and about the same weight: the first part, its first share, where it begins, and the weight of each */
typedef struct {
  PetscInt   part, col, share;
  PetscCount weight, each;
} HBPSection;

/* How parts are cut: whether entries count, how many parts a share has */
typedef struct {
  PetscCount  entries;
  PetscInt    together, sectionNum;
  HBPSection *sections;
} HBPCuts;

/* Launches of the SpMV part and of the combine part, as the GPU has room for them */
typedef struct {
  int       sms, resident, threads; /* multiprocessors, thread blocks of the SpMV part that one of them has at once, and threads of these */
  size_t    shared, combineShared;  /* as in HBPPlan */
  PetscBool overlaps;
} HBPRoom;

PETSC_INTERN PetscErrorCode HBPTakeLook(const HBP *, HBPLookWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPLook(const HBP *, const GallopCSR *, const PetscInt[2], const HBPLookWork *, cudaStream_t);

PETSC_INTERN PetscErrorCode HBPCountWhole(const HBP *, const GallopCSR *, const PetscInt[2], const HBPLookWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPFillWhole(const HBP *, const GallopCSR *, const HBPLookWork *, cudaStream_t);

PETSC_INTERN PetscErrorCode HBPFillMaps(const HBP *, const HBPMatrix *, const HBPLookWork *, cudaStream_t);

PETSC_INTERN PetscErrorCode HBPTakeCounts(const HBP *, HBPWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPFindTiles(const HBP *, HBPMatrix *, const HBPWork *, cudaStream_t);
PETSC_INTERN PetscBool      HBPCanSortRows(const HBP *);
PETSC_INTERN PetscErrorCode HBPSortRows(HBPMatrix *, HBPSortWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPCount(const HBP *, const HBPMatrix *, HBPWork *, HBPFound *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPSetNumbers(HBP *, const GallopCSR *, const HBPFound *, const PetscInt[], GallopLongRows *);

PETSC_INTERN PetscErrorCode HBPTakeRecords(const HBP *, HBPFillWork *);
PETSC_INTERN PetscErrorCode HBPFillBounds(const HBP *, const HBPMatrix *, const HBPCountWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPCollect(const HBP *, const HBPMatrix *, const HBPWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPFillGroups(const HBP *, const HBPWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPFillCombine(const HBP *, const unsigned short[], cudaStream_t);

PETSC_INTERN PetscErrorCode HBPCopyLongEntries(const HBP *, const GallopCSR *, PetscBool, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPConvert(const HBP *, const GallopCSR *, const HBPMatrix *, const HBPWork *, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPRefresh_Device(void *, const GallopCSR *, PetscCount, GallopRefresh *);

PETSC_INTERN PetscErrorCode HBPMakePlan(HBP *, const HBPOffsets[], HBPCuts *);
PETSC_INTERN PetscErrorCode HBPCutPlan(const HBP *, const HBPCuts *, cudaStream_t);

PETSC_INTERN PetscErrorCode HBPGetRoom(const HBP *, HBPRoom *);
PETSC_INTERN PetscErrorCode HBPApply_Device(void *, const GallopProduct *);
PETSC_INTERN PetscErrorCode HBPApplyTranspose_Device(void *, const GallopProduct *, PetscBool);

PETSC_INTERN PetscErrorCode HBPTakeArrays(HBP *, PetscCount);
PETSC_INTERN PetscErrorCode HBPCopyLongRows(HBP *, const GallopLongRows *);
PETSC_INTERN PetscErrorCode HBPReleaseWork(HBPWork *);
