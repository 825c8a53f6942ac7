/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  The FastLoad format, names are those of section IV of

    J. Hu, H. Luo, H. Jiang, G. Xiao, K. Li, FastLoad: Speeding Up Data Loading of Both Sparse Matrix and Vector for SpMV on GPUs

  Columns are sorted by their number of entries, the shortest first and stably. Sorted columns make steps: step 0 takes from each column as many entries as the
  shortest one has, step 1 from all columns that have entries left as many as the shortest of these has left, and so on. A step is cut into blocks of blkLength = 32
  columns, fewer in the last one, and blkHeight entries of each column: all of the step's, or as many as the option allows. A block is stored line by line,
  a line being one entry of each of its columns (the zigzag order of Figure 6), so there is no padding. In a column entries are in order of rows.

  The paper makes steps of all columns. By default they are made of 32 columns that follow each other, a group: the blocks of a column then are computed by the same lane, one after
  the other, and x is loaded once. Each is cut where its lines reach a multiple of the greatest height, of 2, 4, ... times that where it has but a half, a quarter, ... of its columns left;
  the blocks between two cuts are a task, what a warp computes.

  Rows of a line are stored as offsets from the lowest one, in as few bytes as a block needs: none where they follow each other or are all the same.

  Rows with very many entries, to which all warps would add, are kept out of the columns and stored as in CSR.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include <gallop/formatimpl.h>

#define FASTLOAD_LENGTH  32         /* columns of a block: the width of a warp */
#define FASTLOAD_HIGHEST 32         /* most entries of a column in a block, where there is a limit */
#define FASTLOAD_CHOOSE  (-1)       /* the height, by the number of entries */
#define FASTLOAD_SAMPLES 1024       /* rows that are looked at to see how far their entries are apart */
#define FASTLOAD_SEARCH  255        /* of a line: a refresh has to search for its entries */
#define FASTLOAD_WINDOW  (16 << 20) /* bytes of a result that stay in the cache of a GPU */
#define FASTLOAD_CHAIN   4          /* most blocks of a task where its group is cut: a warp computes them one after the other */
#define FASTLOAD_PIECE   4096       /* entries of a long row that a thread block adds */
#define FASTLOAD_ALIGN   8          /* bytes: where the offsets of a block begin */

/* The paper's Figure 9: products with both kinds of sums, without "prefix sums", and without "segment sums" too */
typedef enum { FASTLOAD_SUMS_ALL, FASTLOAD_SUMS_SEGMENTS, FASTLOAD_SUMS_NONE } FastLoadSums;

typedef struct {
  PetscInt     height;   /* most entries of a column in a block, 0 for no limit, or FASTLOAD_CHOOSE */
  PetscInt     window;   /* columns among which they are sorted, 0 for all */
  PetscInt     long_row; /* rows with more entries are long, 0 to choose */
  PetscBool    groups;   /* steps are made of groups of columns */
  PetscBool    deterministic;
  PetscBool    sorted_x; /* x is put in the order of columns once per product, on the GPU */
  FastLoadSums sums;     /* what is added up in a line before it goes to the result */
} FastLoadOptions;

/* How the entries of a line are added to the result: what the lines of a block allow at most. The low bits of blkClass. */
enum {
  FASTLOAD_ONE_ROW, /* each line has entries of one row only: one sum ("prefix sum") */
  FASTLOAD_RUNS,    /* some neighbours are in the same row: sums of runs ("segment sum") */
  FASTLOAD_DISTINCT /* no neighbours are: each by itself */
};

/* The rest of blkClass: whether some of the rows are in another block too, or stand apart in a line; how rows are stored; log2 of the longest run, rounded up */
#define FASTLOAD_ADD(kind)   ((kind)&3)
#define FASTLOAD_SHARED      4
#define FASTLOAD_WIDTH(kind) ((kind) >> 3 & 3)
#define FASTLOAD_STEPS(kind) ((kind) >> 5)

/* FASTLOAD_WIDTH() */
enum {
  FASTLOAD_IMPLIED, /* in no bytes: all are the line's (FASTLOAD_ONE_ROW), or they follow each other */
  FASTLOAD_BYTE,
  FASTLOAD_SHORT,
  FASTLOAD_INT, /* a PetscInt */
  FASTLOAD_WIDTHS
};

/* Entries base, ..., base + height - 1 of the sorted columns from start on: a step of all columns */
typedef struct {
  PetscInt   start, base, height;
  PetscCount ptr; /* entries before */
  PetscInt   blk; /* blocks before */
} FastLoadStep;

/* A task's first block, and how many it has. Places in rowIdx are counted in FASTLOAD_ALIGN bytes: like entries they are no more than a PetscInt can count. Where columns of
   the matrix follow each other, colidx is the first of them; else the first sorted one. */
typedef struct {
  PetscInt      ptr, row, line, colidx, height, blk, end;
  unsigned char length, kind, follow, unused[sizeof(PetscInt) - 3]; /* all bytes are loaded */
} FastLoadTask;

typedef struct {
  PetscMemType    memtype;
  PetscInt        m, n;
  PetscCount      nz;
  PetscInt        length; /* of a block: FASTLOAD_LENGTH, smaller in tests */
  PetscInt        height; /* the limit that was taken */
  PetscInt        ncols;  /* sorted columns: with steps of all columns those that have entries, else all */
  PetscCount      blknz;  /* entries in blocks, the others are in long rows */
  PetscInt        blkNum, lineNum, taskNum;
  PetscCount     *blkPtr;    /* [blkNum + 1] first entry of each block */
  PetscInt       *blkColIdx; /* [blkNum] its first sorted column */
  PetscInt       *blkHeight; /* [blkNum] */
  unsigned char  *blkLength; /* [blkNum] */
  unsigned char  *blkClass;  /* [blkNum] */
  PetscInt       *blkLine;   /* [blkNum + 1] its first line */
  PetscCount     *blkRow;    /* [blkNum + 1] where its offsets begin in rowIdx */
  PetscInt       *lineRow;   /* [lineNum] the lowest row of each line */
  unsigned char  *lineAt;    /* [lineNum] FastLoadPlace() of its entries, or FASTLOAD_SEARCH where they differ; on the GPU */
  unsigned char  *rowIdx;    /* [blkRow[blkNum]] offsets of the rows of entries from lineRow, FASTLOAD_WIDTH() tells their type */
  PetscScalar    *value;     /* [blknz], then those of long rows */
  PetscInt       *taskBlk;   /* [taskNum + 1] first block of each task */
  FastLoadTask   *tasks;     /* [taskNum] what the GPU wants to know of each at once */
  PetscInt       *perm;      /* [ncols] the column of the matrix that each sorted one is */
  PetscInt        longNum;   /* long rows */
  PetscInt       *longRow;   /* [longNum] */
  PetscInt       *longPtr;   /* [longNum + 1] first entry of each */
  PetscInt       *longCol;   /* [nz - blknz] */
  PetscInt        pieceNum;  /* of long rows */
  PetscInt       *pieceRow;  /* [pieceNum] the long row that each is of, on the GPU */
  PetscInt       *pieceAt;   /* [pieceNum] its first entry, counted as in longPtr, on the GPU */
  PetscInt       *csrIdx;    /* [blknz] where entries are in CSR; NULL where rows are sorted, so that they can be found, and the result may differ from run to run */
  PetscInt       *rowPtr;    /* [m + 1] of CSR, on the GPU, where the result may not differ from run to run; NULL else */
  PetscScalar    *products;  /* [nz] in order of CSR, likewise */
  PetscScalar    *sortedX;   /* [ncols] x in the order of perm, on the GPU, where options.sorted_x; NULL else */
  PetscBool       single;    /* all blocks of a column are of one task */
  PetscBool       zeros;     /* some columns are in no block */
  PetscBool       fresh;     /* values have been written since the last product */
  PetscBool       overlaps;  /* kernels may start while those before them end */
  PetscBool       indexed;   /* there is csrIdx */
  PetscInt        rows;      /* that have entries; negative where they have not been counted */
  void           *memory[3]; /* on the GPU: what its arrays lie in */
  size_t          bytes;
  FastLoadOptions options;
} FastLoad;

/*
  What of a format lies in memory, once for all who allocate, copy or measure it: HERE(array, number), and ONDEVICE(array, number) for what only the GPU has. There they follow each other in
  this order, those of entries in one piece of memory and those of blocks in another. rowIdx comes on top: how long it is shows when the others are filled.
*/
#define FASTLOAD_ENTRY_ARRAYS(fl, HERE, ONDEVICE) \
  do { \
    HERE(value, (fl)->nz) \
    HERE(perm, (fl)->ncols) \
    HERE(csrIdx, (fl)->indexed ? (fl)->blknz : 0) \
    ONDEVICE(rowPtr, (fl)->options.deterministic ? (PetscCount)(fl)->m + 1 : 0) \
    ONDEVICE(products, (fl)->options.deterministic ? (fl)->nz : 0) \
    ONDEVICE(sortedX, (fl)->options.sorted_x ? (fl)->ncols : 0) \
  } while (0)
#define FASTLOAD_BLOCK_ARRAYS(fl, HERE, ONDEVICE) \
  do { \
    HERE(blkPtr, (PetscCount)(fl)->blkNum + 1) \
    HERE(blkRow, (PetscCount)(fl)->blkNum + 1) \
    HERE(blkColIdx, (fl)->blkNum) \
    HERE(blkHeight, (fl)->blkNum) \
    HERE(blkLine, (PetscCount)(fl)->blkNum + 1) \
    HERE(blkLength, (fl)->blkNum) \
    HERE(blkClass, (fl)->blkNum) \
    HERE(lineRow, (fl)->lineNum) \
    ONDEVICE(lineAt, (fl)->lineNum) \
    HERE(taskBlk, (PetscCount)(fl)->taskNum + 1) \
    ONDEVICE(tasks, (fl)->taskNum) \
    HERE(longRow, (fl)->longNum) \
    HERE(longPtr, (PetscCount)(fl)->longNum + 1) \
    HERE(longCol, (fl)->nz - (fl)->blknz) \
    ONDEVICE(pieceRow, (fl)->pieceNum) \
    ONDEVICE(pieceAt, (fl)->pieceNum) \
  } while (0)
#define FASTLOAD_ARRAYS(fl, HERE, ONDEVICE) \
  do { \
    FASTLOAD_ENTRY_ARRAYS(fl, HERE, ONDEVICE); \
    FASTLOAD_BLOCK_ARRAYS(fl, HERE, ONDEVICE); \
  } while (0)
#define FASTLOAD_NOT_HERE(array, number)

#if defined(__CUDACC__)
  #define FASTLOAD_HD static inline __host__ __device__
#else
  #define FASTLOAD_HD static inline
#endif

FASTLOAD_HD PetscInt FastLoadCeil(PetscInt a, PetscInt b)
{
  return a ? (a - 1) / b + 1 : 0;
}

/* Blocks that lie below each other in a step */
FASTLOAD_HD PetscInt FastLoadPieces(const FastLoadStep *step, PetscInt limit)
{
  return limit ? FastLoadCeil(step->height, limit) : 1;
}

/* Groups are cut where their lines reach a multiple of this, 0 for nowhere. It doubles each time that columns are half as many. */
FASTLOAD_HD PetscInt FastLoadCut(PetscInt limit, PetscInt length, PetscInt columns)
{
  while (2 * columns <= length) {
    columns *= 2;
    limit *= 2;
  }
  return limit;
}

/* base: entries of its columns in the blocks before */
typedef struct {
  PetscCount ptr;
  PetscInt   colidx, length, height, base;
} FastLoadBlock;

/* Block b where steps are of all columns */
FASTLOAD_HD FastLoadBlock FastLoadGetBlock(PetscInt num, const FastLoadStep steps[], PetscInt ncols, PetscInt length, PetscInt limit, PetscInt b)
{
  PetscInt      lo = 0, hi = num - 1;
  FastLoadBlock block;

  while (lo < hi) { /* the step that it is of */
    const PetscInt mid = hi - (hi - lo) / 2;

    if (steps[mid].blk <= b) lo = mid;
    else hi = mid - 1;
  }
  {
    const PetscInt pieces = FastLoadPieces(&steps[lo], limit), first = (b - steps[lo].blk) / pieces * length, above = (b - steps[lo].blk) % pieces * limit;
    const PetscInt left = ncols - steps[lo].start - first, below = steps[lo].height - above;

    block.colidx = steps[lo].start + first;
    block.length = left < length ? left : length;
    block.height = limit && below > limit ? limit : below;
    block.base   = steps[lo].base + above;
    block.ptr    = steps[lo].ptr + (PetscCount)first * steps[lo].height + (PetscCount)above * block.length;
  }
  return block;
}

/*
  blkClass, but for FASTLOAD_SHARED, from what holds for all lines of a block; spread is how far a row is from the lowest of its line at most, longest the longest run. Runs that are not summed share
  their row within the block.
*/
FASTLOAD_HD unsigned char FastLoadClass(FastLoadSums sums, int onerow, int distinct, int follow, PetscInt spread, PetscInt longest)
{
  const int most  = distinct ? FASTLOAD_DISTINCT : onerow ? FASTLOAD_ONE_ROW : FASTLOAD_RUNS;
  const int add   = distinct || sums == FASTLOAD_SUMS_NONE ? FASTLOAD_DISTINCT : sums == FASTLOAD_SUMS_SEGMENTS ? FASTLOAD_RUNS : most;
  const int width = follow || add == FASTLOAD_ONE_ROW ? FASTLOAD_IMPLIED : spread <= 255 ? FASTLOAD_BYTE : spread <= 65535 ? FASTLOAD_SHORT : FASTLOAD_INT;
  int       steps = 0;

  while (1 << steps < longest) steps++;
  return (unsigned char)(add | (add == FASTLOAD_DISTINCT && !distinct ? FASTLOAD_SHARED : 0) | width << 3 | steps << 5);
}

/* Whether the result is more than stays in cache, so that it matters in which order tasks add to it */
FASTLOAD_HD int FastLoadIsLarge(PetscInt m)
{
  return (size_t)m * sizeof(PetscScalar) > 2 * (size_t)FASTLOAD_WINDOW;
}

/* Whether entries lie anywhere, by the sum of FastLoadSpread() over the samples: those of a row spread over more than a fifth of the columns, on average */
FASTLOAD_HD int FastLoadIsScattered(PetscInt n, PetscCount spread)
{
  return 5 * spread > FASTLOAD_SAMPLES * (PetscCount)n;
}

/* How far the first and the last entry of sample k of the rows are apart */
FASTLOAD_HD PetscInt FastLoadSpread(PetscInt m, const PetscInt i[], const PetscInt j[], int k)
{
  const PetscInt row   = (PetscInt)((PetscCount)m * k / FASTLOAD_SAMPLES);
  const PetscInt apart = i[row + 1] > i[row] ? j[i[row + 1] - 1] - j[i[row]] : 0; /* columns need not increase */

  return apart < 0 ? -apart : apart;
}

/* Whether a row is kept out of the blocks */
FASTLOAD_HD int FastLoadIsLong(const PetscInt i[], PetscInt row, PetscInt limit)
{
  return i[row + 1] - i[row] > limit;
}

/* Bytes that the offsets of a block take */
FASTLOAD_HD PetscCount FastLoadRowBytes(int width, PetscCount entries)
{
  const PetscCount bytes = width == FASTLOAD_IMPLIED ? 0 : width == FASTLOAD_BYTE ? entries : width == FASTLOAD_SHORT ? 2 * entries : (PetscCount)sizeof(PetscInt) * entries;

  return (bytes + FASTLOAD_ALIGN - 1) / FASTLOAD_ALIGN * FASTLOAD_ALIGN;
}

/* The row of entry k of a block's line whose entries begin at first, the block's at ptr */
FASTLOAD_HD PetscInt FastLoadRow(int kind, PetscInt lineRow, const unsigned char *offsets, PetscCount first, PetscInt k)
{
  switch (FASTLOAD_WIDTH(kind)) {
  case FASTLOAD_IMPLIED:
    return FASTLOAD_ADD(kind) == FASTLOAD_ONE_ROW ? lineRow : lineRow + k;
  case FASTLOAD_BYTE:
    return lineRow + offsets[first + k];
  case FASTLOAD_SHORT:
    return lineRow + ((const unsigned short *)offsets)[first + k];
  default:
    return lineRow + ((const PetscInt *)offsets)[first + k];
  }
}

/*
  Where an entry is in its row of CSR: how far behind the first, or before the last where the row is above the diagonal, so that it is the same in rows that differ beyond the entry only. edge is where
  the row begins, or where the next one does. FastLoadAt() is the way back.
*/
FASTLOAD_HD PetscInt FastLoadPlace(int above, PetscInt edge, PetscInt entry)
{
  return above ? edge - 1 - entry : entry - edge;
}

FASTLOAD_HD PetscInt FastLoadAt(int above, PetscInt edge, PetscInt place)
{
  return above ? edge - 1 - place : edge + place;
}

/* Where column col is in row, whose columns increase */
FASTLOAD_HD PetscInt FastLoadFind(const PetscInt i[], const PetscInt j[], PetscInt row, PetscInt col)
{
  PetscInt lo = i[row], hi = i[row + 1] - 1;

  while (lo < hi) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (j[mid] < col) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

PETSC_INTERN void            FastLoadPlan(PetscInt, FastLoadStep[], PetscInt, PetscInt, PetscInt, PetscInt *);
PETSC_INTERN FastLoadOptions FastLoadChoose(const FastLoadOptions *, const GallopCSR *, PetscCount);
PETSC_INTERN PetscErrorCode  FastLoadRefresh_Host(void *, const GallopCSR *, PetscCount, GallopRefresh *);
PETSC_INTERN PetscErrorCode  FastLoadFree_Host(FastLoad *);

PETSC_INTERN const GallopFormatWork FastLoadHost, FastLoadDevice;

/* for tests: blocks of another length, which only the host takes; and a host copy of what either place has */
PETSC_EXTERN PetscErrorCode FastLoadBuild_Host(PetscInt, const FastLoadOptions *, const GallopCSR *, PetscCount, FastLoad **);
PETSC_EXTERN PetscErrorCode FastLoadCopyToHost(const FastLoad *, FastLoad **);
PETSC_EXTERN PetscErrorCode FastLoadDestroyHostCopy(FastLoad **);
