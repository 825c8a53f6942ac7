/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  HBP's column blocks: the storage of a matrix whose entries lie anywhere and whose x is more than L2 holds.

  The columns are cut into a few blocks, whose x stays in L2 while it is needed, and the rows into tiles. A thread block has the results of a tile in shared memory and meets one block of columns after
  the other; all thread blocks do so at about the same time. Nobody waits for another, so the result does not depend on how well they keep together. A result is stored once, and there are no partial sums.

  A tile in a block of columns is a stage. Of its rows only those with entries in it are stored, its segments, the longest first and else in order of rows. Line k of a stage has entry k of each segment
  that has as many: lanes that follow each other load entries that follow each other, and no lengths are stored, since the sizes of lines tell them.

  Included by hbp.h, which C and CUDA read: the host and the GPU build the same arrays.
*/

#define HBP_MAX_COLUMNS    4096        /* blocks of columns that may be asked for */
#define HBP_MAX_LINES      255         /* lines of a stage: a byte tells how many entries a segment has while the format is built */
#define HBP_FEW_LINES      32          /* a matrix may have this many, however few entries segments have on average */
#define HBP_UNEVEN         4           /* and else this many times the mean: a thread has a segment, so that a long one keeps a thread block waiting */
#define HBP_MAX_TILE       65536       /* rows of a tile: a segment's row has 16 bits */
#define HBP_TILE_BYTES     (110 << 10) /* of results in shared memory that most GPUs have room for twice on a multiprocessor */
#define HBP_USUAL_CACHE    (50 << 20)  /* L2, and thread blocks at once, without a GPU to ask */
#define HBP_USUAL_AGENTS   264
#define HBP_SECTOR         32 /* bytes that a GPU loads together */
#define HBP_SECTOR_ENTRIES 4  /* entries that a sector of x must have in each block of rows for which x is read: with fewer it is loaded again for nearly each of them */

/* For HBPColumnsTellRefusal() */
#define HBP_COLUMNS_ROOM "there is no room"
#define HBP_COLUMNS_ROWS "columns of a row do not increase, or a row has too many entries in one of the blocks"

typedef struct {
  PetscMemType    memtype;
  PetscInt        m;
  PetscCount      nz;
  PetscInt        num, M;   /* blocks of columns, and columns of each */
  PetscInt        tiles, N; /* and rows of each */
  PetscInt        longest;  /* entries that a segment may have */
  PetscInt        segNum, lineNum;
  PetscScalar    *data;    /* [nz] */
  unsigned int   *col;     /* [nz] column in its block */
  PetscInt       *line;    /* [lineNum + 1] first entry of each line; it ends where the next one begins, of the following stage too */
  PetscInt       *linePtr; /* [tiles * num + 1] first line of each stage, tile by tile */
  PetscInt       *segPtr;  /* [tiles * num + 1] first segment of each stage */
  unsigned short *row;     /* [segNum] row in the tile */
  size_t          bytes;
  PetscScalar    *sums;            /* [N] results of a tile, on the host only */
  PetscBool       keep;            /* the GPU is asked to keep x in L2 */
  PetscInt        agents;          /* thread blocks that compute tiles, on the GPU */
  PetscBool       overlaps, fresh; /* as in an HBPPlan */
} HBPColumns;

/* X(array, number) for each array, in the order in which they lie in the GPU's memory */
#define HBP_COLUMNS_ARRAYS(c, X) \
  do { \
    X(data, (c)->nz) \
    X(col, (c)->nz) \
    X(line, (PetscCount)(c)->lineNum + 1) \
    X(linePtr, HBPStages(c) + 1) \
    X(segPtr, HBPStages(c) + 1) \
    X(row, (c)->segNum) \
  } while (0)

static inline PetscCount HBPStages(const HBPColumns *c)
{
  return (PetscCount)c->tiles * c->num;
}
