/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  The hash-based partition (HBP). Names are those of section III of

    C. Yan, B. Diao, H. Liu, Z. An, Y. Xu, A Nonlinear Hash-based Optimization Method for SpMV on GPUs

  The matrix is cut into blocks of block_rows rows by block_cols columns. Only blocks with entries are stored, one column of blocks after the other. Of a block only the rows with entries
  in it are stored, its segments. A hash of their lengths (nnz_perrow) puts segments of similar length next to each other; output_hash tells the row of each. 32 segments that follow each
  other are a group, which a warp computes, with a lane for each. Entries of a group are stored as the lanes meet them: the first of each segment, the second of those that have two, and
  so on, without padding. Long segments have 2, 4, ... 32 lanes each, which take its entries in turn; their groups have 16, 8, ... 1 segments.

  The paper also stores zero_row, which tells for all rows of each block how many before it in its group have no entries, and add_sign, which is the distance from an entry to the next one
  of its row. Neither is stored here: both follow from the lengths of segments, see HBPGetAddSign(). Columns are offsets from the block's first one, in 16 bits.

  The product has two parts. The SpMV part computes the sum of each segment. Where a row has entries in one block only, that is the row's result; else it is a partial sum, and the combine
  part adds them up. Partial sums are stored by blocks of rows, so that the combine part reads them one after the other: it puts pieces of them in order of rows (combinePos), and
  then adds up those of each row (combineEnd).

  A block's columns follow each other in the paper. But rows that are near each other often have entries in few places, far from each other. Such a block of rows has a map, the chunks of
  16 columns in which it has entries. It is then one block, whose columns are numbered by the place of their chunk in the map.

  Rows with very many entries are kept out of the blocks and stored as in CSR, in pieces.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include "../common/longrows.h"
#include "hbpcolumns.h"
#include "hbphot.h"

#define HBP_GROUP           32                                        /* most segments of a group: the width of a warp */
#define HBP_MAX_ROWS        2048                                      /* most rows of a block: its part of the result is in shared memory in the combine part */
#define HBP_MAX_COLS        65536                                     /* most columns of a block: columns have 16 bits */
#define HBP_CHUNK           16                                        /* columns of a chunk of a map: a line of the caches in real double */
#define HBP_FLAG            32768                                     /* in output_hash: all of the row's entries are in this block */
#define HBP_PACKED          16                                        /* where no segment has more entries, output_hash tells how many each has */
#define HBP_CACHE           (32 << 20)                                /* bytes of x that stay in the L2 of a GPU */
#define HBP_LEAST_ROWS      256                                       /* least rows of a block that are chosen */
#define HBP_MANY_ROWS       500000                                    /* a matrix with this many rows has enough blocks even if they are large */
#define HBP_PIECE           2048                                      /* entries of a long row that a thread block adds */
#define HBP_LANES           6                                         /* a segment has 1, 2, 4, 8, 16 or 32 lanes */
#define HBP_COMBINED        ((PetscInt)(32768 / sizeof(PetscScalar))) /* partial sums of a piece of the combine part */
#define HBP_CLASSES         9                                         /* classes of the hash (aggregation) */
#define HBP_FINE            64                                        /* most places of a class: HBPFine() of all lengths is less */
#define HBP_LOGS            18                                        /* powers of two that a length may reach */
#define HBP_SAMPLES         1024                                      /* rows that are looked at */
#define HBP_LOOK            512                                       /* entries of each that are looked at, at most */
#define HBP_NEAR            16                                        /* columns within which entries are near each other */
#define HBP_MOST_BLOCKS(nz) (4 * (PetscCount)(nz) + 16000000)         /* with entries and without */
#define HBP_ROW_BLOCKS      (1 << 27)                                 /* a matrix has fewer blocks of rows: HBPInfo() has no bits for more */
#define HBP_SPARE           4096                                      /* loops may count this far beyond the last entry and the last row */

/* What lets the x of a block be kept in shared memory, -mat_hbp_shared_x */
enum { HBP_SHARED_NEVER, HBP_SHARED_ALWAYS, HBP_SHARED_CHOOSE };

/* What lets blocks of rows have maps, -mat_hbp_map */
enum { HBP_MAP_NEVER, HBP_MAP_ALWAYS, HBP_MAP_CHOOSE };

typedef struct {
  PetscInt  block_rows, block_cols; /* 0 to choose */
  PetscInt  shared_x, map;
  PetscInt  long_row;                 /* rows with more entries are long, 0 to choose */
  PetscInt  lane_entries;             /* a segment that would give a lane this many entries has more lanes, 0 to choose */
  PetscInt  fixed;                    /* percent of the work that is shared out beforehand, -1 to choose */
  PetscInt  shared_cols;              /* most columns of a block whose x is kept in shared memory. HBPGetSharedCols() sets it, not the user. */
  PetscInt  columns;                  /* column blocks, 0 to choose, 1 for none */
  PetscBool keep_x;                   /* with column blocks, loads ask the GPU to keep x in L2 */
  PetscInt  cache, tile_rows, agents; /* bytes of L2, most rows of a tile, thread blocks at once: HBPColumnsGetRoom() sets them */
  PetscInt  hot_columns, hot_room;    /* most hot columns, 0 for none, -1 to choose; what the GPU has room for: HBPHotGetRoom() sets it */
} HBPOptions;

/*
  The hash of the length of a segment. Class q = min(len >> a, 8) (aggregation) has the b places from q b on (dispersion); within it c and d tell longer segments from shorter ones (linear
  mapping). See HBPHashOf().
*/
typedef struct {
  PetscInt a, b, c, d;
} HBPHash;

/*
  Where the entries, segments and partial sums of a group begin. The array has one more than there are groups, so that each ends where the next one begins.

  out is the first partial sum, or -1 where the group has none. Rows of a block with a map have no partial sums: there out tells where the map begins, see HBPOutOfMap().
  info packs the block of rows, the number of lanes for each segment, and whether all lanes have equally many entries, see HBPInfo().
*/
typedef struct
#if defined(__CUDACC__)
  __align__(4 * sizeof(PetscInt)) /* one load */
#endif
{
  PetscInt begin_ptr, seg, out, info;
}
HBPGroup;

/*
  What a look at some rows counts: entries; entries near one of the row before; chunks without such entries; and segments, in all (segs) and those whose length is 2^k to 2^(k + 1) - 1
  (logs). Segments are counted for blocks of either width that is a candidate, and for whole rows.
*/
enum { HBP_NARROW, HBP_WIDE, HBP_ROW, HBP_WIDTHS };

typedef struct {
  unsigned long long entries, near, chunks, segs[HBP_WIDTHS], logs[HBP_WIDTHS][HBP_LOGS];
} HBPSample;

typedef struct {
  PetscMemType    memtype;
  PetscInt        m, n;
  PetscCount      nz;
  PetscInt        N, M; /* rows and columns of a block */
  PetscInt        rowBlocks, colBlocks;
  PetscInt        longRow, laneEntries; /* see HBPOptions */
  HBPHash         hash;
  PetscInt        mapChunks; /* a block of rows with entries in at most this many chunks has a map; 0 where none has */
  PetscBool       shared;    /* the x of a block is kept in shared memory */
  PetscBool       allMapped; /* all blocks of rows with entries have maps, and there is one column of blocks */
  PetscBool       alone;     /* each row has one segment: there is no combine part */
  PetscBool       indexed;   /* csrIdx is there: columns of rows do not increase, and there are several columns of blocks */
  PetscInt        blkNum, groupNum, segNum, partialNum, combineNum;
  PetscInt        empty;          /* rows without entries */
  PetscInt        longest;        /* entries of the longest segment */
  PetscCount      blknz;          /* entries in blocks, the others are in long rows */
  PetscInt       *begin_nnz;      /* [blkNum + 1] first entry of each block */
  PetscInt       *colGroup;       /* [colBlocks + 1] first group of each column of blocks */
  HBPGroup       *group;          /* [groupNum + 1] */
  unsigned short *output_hash;    /* [segNum] row in its block, the number of entries where it is not in nnz_perrow, and HBP_FLAG; see HBPOutput() */
  unsigned short *nnz_perrow;     /* [segNum] entries less 1; NULL where longest is at most HBP_PACKED */
  unsigned short *col;            /* [blknz] column in its block */
  PetscScalar    *data;           /* [blknz], then those of long rows */
  PetscInt       *partialPtr;     /* [rowBlocks + 1] first partial sum of each block of rows */
  PetscInt       *combinePtr;     /* [rowBlocks + 1] first piece of each; a piece has HBP_COMBINED partial sums, the last one of a block of rows fewer */
  unsigned short *combinePos;     /* [partialNum] place in its piece, in order of rows */
  unsigned short *combineEnd;     /* [combineNum * N] where the partial sums of each row end in a piece */
  PetscScalar    *partial;        /* [partialNum] */
  unsigned int   *direct;         /* [rowBlocks * HBPWords(N)] a bit for each row: its result does not come from partial sums */
  PetscInt        mapped, mapNum; /* blocks of rows with a map, chunks of all maps */
  PetscInt       *mapPtr;         /* [rowBlocks + 1] first chunk of the map of each block of rows, which has none where the next begins there too; NULL without mapChunks */
  PetscInt       *map;            /* [mapNum] first column of each chunk, in increasing order */
  GallopLongRows  longRows;
  PetscInt       *longCol;     /* [nz - blknz] */
  PetscScalar    *longPartial; /* [longRows.pieceNum] */
  PetscInt       *csrIdx;      /* [blknz] where entries are in CSR; NULL unless indexed: else entries are found by their columns */
  size_t          bytes;       /* of all arrays but partial and longPartial, which are workspace */
  HBPOptions      options;
  void           *plan;    /* an HBPPlan, on the GPU only */
  HBPColumns     *columns; /* what the matrix is stored by if it has column blocks, else NULL. Then none of the above but m, n, nz, bytes, and options is there. */
  HBPHot         *hot;     /* likewise, if it has hot columns */
} HBP;

#if defined(__CUDACC__)
  #define HBP_HD static inline __host__ __device__
#else
  #define HBP_HD static inline
#endif

/* Whether the matrix is stored by blocks of rows and columns */
static inline PetscBool HBPHasBlocks(const HBP *h)
{
  return (PetscBool)(!h->columns && !h->hot);
}

/* Bytes of partial sums and of what else products use as workspace, which bytes does not count */
static inline size_t HBPWorkspaceBytes(const HBP *h)
{
  if (h->hot) return HBPHotWorkspaceBytes(h->hot);
  return HBPArrayBytes(h->memtype, (size_t)h->partialNum * sizeof(PetscScalar)) + HBPArrayBytes(h->memtype, (size_t)h->longRows.pieceNum * sizeof(PetscScalar));
}

/* Whether some row has entries in several blocks: its segments are looked up by columns when values change. Any other begins with its row. */
HBP_HD PetscBool HBPCutsRows(const HBP *h)
{
  return (PetscBool)(h->partialNum > 0);
}

/* Places of map: on the GPU the last map is that of a block without one, all of its chunks, where others have maps */
static inline PetscCount HBPMapPlaces(const HBP *h)
{
  const PetscBool all = (PetscBool)(PetscMemTypeDevice(h->memtype) && h->mapped && h->colBlocks > 1);

  return (PetscCount)h->mapNum + (all ? (h->M - 1) / HBP_CHUNK + 1 : 0);
}

/*
  X(array, number) for each array that stays, in the order in which they lie in the GPU's memory; then come those of long rows, and the workspace, partial and longPartial. Arrays without
  elements may be NULL, and nnz_perrow, mapPtr and csrIdx are.
*/
#define HBP_ARRAYS(h, X) \
  do { \
    X(data, (h)->nz) \
    X(col, (h)->blknz) \
    X(group, (PetscCount)(h)->groupNum + 1) \
    X(output_hash, (h)->segNum) \
    X(nnz_perrow, (h)->longest > HBP_PACKED ? (h)->segNum : 0) \
    X(begin_nnz, (PetscCount)(h)->blkNum + 1) \
    X(colGroup, (PetscCount)(h)->colBlocks + 1) \
    X(partialPtr, (PetscCount)(h)->rowBlocks + 1) \
    X(combinePtr, (PetscCount)(h)->rowBlocks + 1) \
    X(combinePos, (h)->partialNum) \
    X(combineEnd, (PetscCount)(h)->combineNum *(h)->N) \
    X(longCol, (h)->longRows.nz) \
    X(direct, (PetscCount)(h)->rowBlocks *HBPWords((h)->N)) \
    X(mapPtr, (h)->mapChunks ? (PetscCount)(h)->rowBlocks + 1 : 0) \
    X(map, HBPMapPlaces(h)) \
    X(csrIdx, (h)->indexed ? (h)->blknz : 0) \
  } while (0)
#define HBP_LONG_ROWS(l, X) \
  do { \
    X(row, (l)->num) \
    X(ptr, (PetscCount)(l)->num + 1) \
    X(firstPiece, (PetscCount)(l)->num + 1) \
    X(pieceRow, (l)->pieceNum) \
    X(pieceAt, (l)->pieceNum) \
  } while (0)

/* The linear mapping, in pieces: numbers below 4 as they are, then four steps for each power of two */
HBP_HD PetscInt HBPFine(PetscInt rest)
{
  int log = 2;

  if (rest < 4) return rest;
  while (rest >> (log + 1)) log++;
  return 4 * (log - 1) + (rest >> (log - 2) & 3);
}

/* The least number for which HBPFine() gives fine */
HBP_HD PetscInt HBPCoarse(PetscInt fine)
{
  return fine < 4 ? fine : (4 + fine % 4) << (fine / 4 - 1);
}

HBP_HD PetscInt HBPHashOf(const HBPHash *h, PetscInt len)
{
  const PetscInt q = len >> h->a < HBP_CLASSES - 1 ? len >> h->a : HBP_CLASSES - 1, fine = HBPFine((len - (q << h->a)) >> h->c);

  return q * h->b + (fine < h->b - 1 ? fine : h->b - 1) * h->d;
}

/* log2 of the lanes that a segment has. It depends on the hash, so that segments with equally many lanes follow each other in a block; and each lane has an entry. */
HBP_HD int HBPLanes(const HBPHash *h, PetscInt laneEntries, PetscInt len)
{
  const PetscInt value = HBPHashOf(h, len), q = value / h->b, least = (q << h->a) + (HBPCoarse(value % h->b / h->d) << h->c); /* length with this hash */
  int            lanes = 0;

  while (lanes < 5 && least >> lanes >= laneEntries) lanes++;
  return lanes;
}

/* info of a group: its block of rows, whether all its lanes have equally many entries, and log2 of the lanes of a segment */
#define HBP_INFO_EQUAL 8 /* lanes are below it */
#define HBP_INFO_BITS  4 /* the block of rows is above them */

HBP_HD PetscInt HBPInfo(PetscInt rowBlock, int equal, int lanes)
{
  return rowBlock * (1 << HBP_INFO_BITS) + (equal ? HBP_INFO_EQUAL : 0) + lanes;
}

HBP_HD PetscInt HBPInfoRowBlock(PetscInt info)
{
  return info >> HBP_INFO_BITS;
}

HBP_HD int HBPInfoEqual(PetscInt info)
{
  return (info & HBP_INFO_EQUAL) != 0;
}

HBP_HD int HBPInfoLanes(PetscInt info)
{
  return (int)(info & (HBP_INFO_EQUAL - 1));
}

/* Which of the 1 << lanes lanes of its segment a lane of a warp is */
HBP_HD int HBPLaneInSegment(int lane, int lanes)
{
  return lane & ((1 << lanes) - 1);
}

/* How many of the len entries of a segment one of its lanes has */
HBP_HD PetscInt HBPLaneLength(PetscInt len, int lanes, PetscInt lane)
{
  return (len - lane + ((PetscInt)1 << lanes) - 1) >> lanes;
}

#if HBP_FLAG != HBP_MAX_ROWS * HBP_PACKED
  #error "output_hash has bits for a row, for the entries of a segment, and for HBP_FLAG"
#endif

/* output_hash of a segment. row may have HBP_FLAG. */
HBP_HD unsigned short HBPOutput(int row, PetscInt len, PetscInt longest)
{
  return (unsigned short)(row | (longest > HBP_PACKED ? 0 : ((int)len - 1) * HBP_MAX_ROWS));
}

/* The row in its block that output_hash tells */
HBP_HD int HBPOutputRow(int output_hash)
{
  return output_hash & (HBP_MAX_ROWS - 1);
}

/* The length of a segment less 1 that output_hash tells where no segment has more than HBP_PACKED entries */
HBP_HD int HBPOutputLast(int output_hash)
{
  return output_hash / HBP_MAX_ROWS % HBP_PACKED;
}

/* Entries of a segment */
HBP_HD PetscInt HBPLength(const unsigned short output_hash[], const unsigned short nnz_perrow[], PetscInt seg)
{
  return (nnz_perrow ? nnz_perrow[seg] : HBPOutputLast(output_hash[seg])) + 1;
}

/* Values that a hash can have */
HBP_HD PetscInt HBPHashes(const HBPHash *h)
{
  return HBP_CLASSES * h->b;
}

/* The last of n places in array, whose numbers do not decrease, that is at most value */
HBP_HD PetscInt HBPPlaceOf(PetscInt n, const PetscInt array[], PetscCount value)
{
  PetscInt lo = 0, hi = n - 1;

  while (lo < hi) {
    const PetscInt mid = hi - (hi - lo) / 2;

    if (array[mid] <= value) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/* Whether a block of rows has a map */
HBP_HD int HBPIsMapped(const PetscInt mapPtr[], PetscInt rowBlock)
{
  return mapPtr && mapPtr[rowBlock] < mapPtr[rowBlock + 1];
}

/* The number that column j has in its block, of M columns where the block of rows has no map */
HBP_HD unsigned short HBPColumnIn(const PetscInt mapPtr[], const PetscInt map[], PetscInt M, PetscInt rowBlock, PetscInt j)
{
  if (!HBPIsMapped(mapPtr, rowBlock)) return (unsigned short)(j % M);
  return (unsigned short)(HBPPlaceOf(mapPtr[rowBlock + 1] - mapPtr[rowBlock], map + mapPtr[rowBlock], j) * HBP_CHUNK + j % HBP_CHUNK);
}

/* Words that have a bit for each row of a block */
HBP_HD PetscInt HBPWords(PetscInt rows)
{
  return (rows + 31) / 32;
}

/* The end of the segment that begins with entry k of a row, in blocks of M columns: the first entry behind it. Columns increase. */
HBP_HD PetscInt HBPSegmentEnd(const PetscInt j[], PetscInt k, PetscInt end, PetscInt M)
{
  const PetscCount limit = ((PetscCount)(j[k] / M) + 1) * M; /* may be more than PETSC_INT_MAX */
  PetscInt         lo = k, step = 1, hi;

  while (step < end - lo && j[lo + step] < limit) {
    lo += step;
    step *= 2;
  }
  hi = step < end - lo ? lo + step : end; /* j[lo] < limit <= j[hi] */
  while (hi - lo > 1) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (j[mid] < limit) lo = mid;
    else hi = mid;
  }
  return hi;
}

/* The first entry of a row whose column is at least first */
HBP_HD PetscInt HBPSegmentBegin(const PetscInt j[], PetscInt begin, PetscInt end, PetscCount first)
{
  while (begin < end) {
    const PetscInt mid = begin + (end - begin) / 2;

    if (j[mid] < first) begin = mid + 1;
    else end = mid;
  }
  return begin;
}

/* out of a group whose block has a map, which begins at chunk map */
HBP_HD PetscInt HBPOutOfMap(PetscInt map)
{
  return -2 - map;
}

/* Where the map of a group's block begins, -1 where it has none */
HBP_HD PetscInt HBPMapOf(PetscInt out)
{
  return out < -1 ? HBPOutOfMap(out) : -1;
}

/* Row k of the samples, and the first HBP_LOOK entries of it and of the row before */
typedef struct {
  PetscInt begin, end, other, last;
} HBPSampled;

HBP_HD HBPSampled HBPSampledRow(PetscInt m, const PetscInt i[], int k)
{
  const PetscInt row = (PetscInt)((PetscCount)m * k / HBP_SAMPLES);
  HBPSampled     s;

  s.begin = i[row];
  s.end   = i[row + 1] - s.begin < HBP_LOOK ? i[row + 1] : s.begin + HBP_LOOK;
  s.other = row ? i[row - 1] : s.begin;
  s.last  = s.begin - s.other < HBP_LOOK ? s.begin : s.other + HBP_LOOK;
  return s;
}

/* Whether the row before has an entry within HBP_NEAR columns */
HBP_HD int HBPIsNear(const PetscInt j[], const HBPSampled *s, PetscInt col)
{
  const PetscInt k = HBPSegmentBegin(j, s->other, s->last, (PetscCount)col - HBP_NEAR);

  return k < s->last && j[k] <= (PetscCount)col + HBP_NEAR;
}

/* floor(log2(len)) */
HBP_HD int HBPLog(PetscInt len)
{
  int log = 0;

  while (len >> (log + 1)) log++;
  return log;
}

/* Most columns of a block whose x is kept in shared memory, 12288 in real double */
#define HBP_MAX_SHARED_COLS ((PetscInt)((96 << 10) / sizeof(PetscScalar)))

/* Columns whose x has room in the block bytes of shared memory that a thread block may have, beside those that the kernel uses: whole chunks, so that x of a block begins with a line */
HBP_HD PetscInt HBPSharedCols(size_t block, size_t kernel)
{
  const size_t cols = block > kernel ? (block - kernel) / sizeof(PetscScalar) / HBP_CHUNK * HBP_CHUNK : 0;

  return cols < (size_t)HBP_MAX_SHARED_COLS ? (PetscInt)cols : HBP_MAX_SHARED_COLS;
}

/* For HBPTellRefusal(): what shows only when entries are counted */
#define HBP_REFUSED_ROW "a row has more than 65536 entries in one block"

/* Whether HBP can store the matrix; HBPTellRefusal() says why not. The build counts what every block has, those without entries too, so there must not be far more blocks than entries. */
HBP_HD int HBPFits(const HBP *h)
{
  return h->rowBlocks < HBP_ROW_BLOCKS && h->m <= PETSC_INT_MAX - HBP_SPARE && h->nz <= PETSC_INT_MAX - HBP_SPARE && (double)h->rowBlocks * h->colBlocks <= (double)HBP_MOST_BLOCKS(h->nz);
}

PETSC_INTERN PetscErrorCode HBPCreate(const GallopCSR *, const HBPOptions *, PetscMemType, HBP **);
PETSC_INTERN PetscErrorCode HBPTellRefusal(const HBP *, const char[]);
PETSC_INTERN PetscErrorCode HBPGetSharedCols(const GallopCSR *, HBPOptions *);
PETSC_INTERN PetscErrorCode HBPGetSharedCols_Device(PetscInt *);

PETSC_INTERN void HBPCandidates(const HBPOptions *, PetscInt[2]);

PETSC_INTERN PetscErrorCode HBPColumnsGetRoom(const GallopCSR *, HBPOptions *);
PETSC_INTERN PetscErrorCode HBPColumnsGetRoom_Device(HBPOptions *);
PETSC_INTERN PetscErrorCode HBPColumnsChoose(const HBPOptions *, const GallopCSR *, const HBPSample *, PetscMemType, HBPColumns **);
PETSC_INTERN PetscErrorCode HBPColumnsTellRefusal(const HBPOptions *, const GallopCSR *, const char[]);
PETSC_INTERN PetscErrorCode HBPColumnsBuild_Host(HBP *, const GallopCSR *, const HBPSample *, PetscCount);
PETSC_INTERN void           HBPColumnsFill_Host(HBPColumns *, const GallopCSR *, PetscBool);
PETSC_INTERN void           HBPColumnsMultiply_Host(const HBPColumns *, const GallopProduct *);
PETSC_INTERN void           HBPColumnsAddTranspose_Host(const HBPColumns *, const GallopProduct *, PetscBool);
PETSC_INTERN PetscErrorCode HBPColumnsCopyToHost(const HBPColumns *, HBPColumns **);
PETSC_INTERN PetscErrorCode HBPColumnsDestroy(HBPColumns **);

PETSC_INTERN PetscErrorCode HBPHotGetRoom(HBPOptions *);
PETSC_INTERN PetscErrorCode HBPHotGetRoom_Device(HBPOptions *);
PETSC_INTERN PetscErrorCode HBPHotMay(HBPOptions *, const GallopCSR *, const HBPSample *, PetscInt *);
PETSC_INTERN PetscBool      HBPHotPays(const HBPOptions *, PetscCount, PetscInt, PetscCount);
PETSC_INTERN PetscErrorCode HBPHotCreate(const GallopCSR *, PetscMemType, HBPHot **);
PETSC_INTERN void           HBPHotSetClasses(HBPHot *);
PETSC_INTERN PetscErrorCode HBPHotBuild_Host(HBP *, const GallopCSR *, const HBPSample *, PetscCount);
PETSC_INTERN void           HBPHotFill_Host(HBPHot *, const GallopCSR *, PetscBool);
PETSC_INTERN void           HBPHotMultiply_Host(const HBPHot *, const GallopProduct *);
PETSC_INTERN void           HBPHotAddTranspose_Host(const HBPHot *, const GallopProduct *, PetscBool);
PETSC_INTERN PetscErrorCode HBPHotCopyToHost(const HBPHot *, HBPHot **);
PETSC_INTERN PetscErrorCode HBPHotDestroy(HBPHot **);

PETSC_INTERN PetscErrorCode HBPGetDeviations(const HBP *, PetscReal *, PetscReal *);

PETSC_INTERN PetscErrorCode HBPApply_Host(void *, const GallopProduct *);
PETSC_INTERN PetscErrorCode HBPApplyTranspose_Host(void *, const GallopProduct *, PetscBool);

PETSC_INTERN PetscCount HBPDotParts(const void *, PetscBool); /* on the GPU */

PETSC_INTERN const GallopFormatWork HBPHost, HBPDevice;

/* for tests: a build with groups of fewer than HBP_GROUP segments, on the host only; the paper's add_sign; and a copy on the host of a format built at either place */
PETSC_EXTERN PetscErrorCode HBPBuild_Host(PetscInt, const HBPOptions *, const GallopCSR *, PetscCount, HBP **);
PETSC_EXTERN PetscErrorCode HBPGetAddSign(const HBP *, PetscInt[]);
PETSC_EXTERN PetscErrorCode HBPCopyToHost(const HBP *, HBP **);
PETSC_EXTERN PetscErrorCode HBPDestroyHostCopy(HBP **);
