#pragma once

/*
  The hash-based partition (HBP), names are those of section III of

    C. Yan, B. Diao, H. Liu, Z. An, Y. Xu, A Nonlinear Hash-based Optimization Method for SpMV on GPUs

  The matrix is cut into blocks of block_rows rows by block_cols columns. Only blocks with entries are stored, one column of blocks after the other, and of a block only the
  rows with entries in it, its segments. A hash of their lengths (nnz_perrow) puts segments of similar length next to each other; output_hash tells the row of each. 32
  segments that follow each other are a group, which a warp computes, a lane each. Entries of a group are stored as the lanes meet them: the first of each segment, the second of
  those that have two, and so on, without padding. Long segments have 2, 4, ... 32 lanes each, which take its entries in turn, and there are so many fewer in a group.

  The paper stores of all rows of each block zero_row, how many before it in its group have no entries, and of each entry add_sign, the distance to the next one of its row.
  Both can be derived from the lengths of segments, HBPGetAddSign() does; they are not stored. Columns are offsets from the block's first one, in 16 bits.

  The product has two parts. The SpMV part computes the sum of each segment. Where a row has entries in one block only, that is the row's result; else it is a partial sum, and the combine
  part adds them up. Partial sums are stored by blocks of rows, so that the combine part reads them one after the other: pieces of them it puts in order of rows (combinePos), and
  then adds up those of each row (combineEnd).

  A block's columns follow each other in the paper. But rows that are near each other often have entries in few places, far from each other: then a block of rows has a map, the chunks of 16
  columns in which it has entries, and is one block, whose columns are numbered by the place of their chunk in the map.

  Rows with very many entries are kept out of the blocks and stored as in CSR, in pieces.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include "../common/longrows.h"

#define HBP_GROUP      32                                        /* segments of a group: the width of a warp */
#define HBP_MAX_ROWS   2048                                      /* of a block: its part of the result is in shared memory in the combine part */
#define HBP_MAX_COLS   65536                                     /* of a block: columns have 16 bits */
#define HBP_CHUNK      16                                        /* columns of a place of a map: a line of the caches in real double */
#define HBP_FLAG       32768                                     /* in output_hash: all of the row's entries are in this block */
#define HBP_PACKED     16                                        /* where no segment has more entries, output_hash tells how many */
#define HBP_CACHE      (32 << 20)                                /* bytes of x that stay in the L2 of a GPU */
#define HBP_LEAST_ROWS 256                                       /* that are chosen */
#define HBP_MANY_ROWS  500000                                    /* with as many, larger blocks leave enough of them */
#define HBP_PIECE      2048                                      /* entries of a long row that a GPU block adds */
#define HBP_LANES      6                                         /* a segment has 1, 2, 4, 8, 16 or 32 */
#define HBP_COMBINED   ((PetscInt)(32768 / sizeof(PetscScalar))) /* partial sums of a piece of the combine part */
#define HBP_CLASSES    9                                         /* of the hash's aggregation */
#define HBP_FINE       64                                        /* places of a class at most: all lengths have one */
#define HBP_LOGS       18                                        /* powers of two that a length may reach */
#define HBP_SAMPLES    1024                                      /* rows that are looked at, and the most entries of each */
#define HBP_LOOK       512

/* What lets the x of a block be kept in shared memory, -mat_hbp_shared_x */
enum { HBP_SHARED_NEVER, HBP_SHARED_ALWAYS, HBP_SHARED_CHOOSE };

/* What lets blocks of rows have maps, -mat_hbp_map */
enum { HBP_MAP_NEVER, HBP_MAP_ALWAYS, HBP_MAP_CHOOSE };

typedef struct {
  PetscInt block_rows, block_cols; /* 0 to choose */
  PetscInt shared_x, map;
  PetscInt long_row;     /* rows with more entries are long, 0 to choose */
  PetscInt lane_entries; /* segments that would give a lane as many have more lanes, 0 to choose */
  PetscInt fixed;        /* percent of the work that is shared out beforehand, -1 to choose */
  PetscInt shared_cols;  /* most columns of a block whose x is kept in shared memory, 0 for what HBPGetSharedCols() tells: no option of the user's */
} HBPOptions;

/* The hash of a segment of len entries: its class min(len >> a, 8), (aggregation), b places each (dispersion), in which c and d tell longer ones from shorter ones (linear mapping) */
typedef struct {
  PetscInt a, b, c, d;
} HBPHash;

/*
  Where things of a group begin, of which there is one more than groups. out is its first partial sum, -1 where it has none, and where its block has a map, and so no row partial sums, -2
  less where that begins; info, see HBPInfo(), the rest.
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
  Counted over some rows: entries; those near one of the row before; chunks without such; segments, with either width of blocks or the whole row, and those whose length is 2^k to
  2^(k + 1) - 1
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
  PetscInt        mapChunks; /* a block of rows with entries in at most as many chunks has a map; 0 where none has */
  PetscBool       shared;    /* the x of a block is kept in shared memory */
  PetscBool       allMapped; /* all blocks of rows with entries have maps, and there is one column of blocks */
  PetscBool       alone;     /* each row has one segment: there is no combine part */
  PetscInt        blkNum, groupNum, segNum, partialNum, combineNum;
  PetscInt        longest;        /* entries of the longest segment */
  PetscCount      blknz;          /* entries in blocks, the others are in long rows */
  PetscInt       *begin_nnz;      /* [blkNum + 1] first entry of each block */
  PetscInt       *colGroup;       /* [colBlocks + 1] first group of each column of blocks */
  HBPGroup       *group;          /* [groupNum + 1] */
  unsigned short *output_hash;    /* [segNum] row in its block, HBP_MAX_ROWS times the entries less 1 where these are not in nnz_perrow, and HBP_FLAG */
  unsigned short *nnz_perrow;     /* [segNum] entries less 1; no array where longest is at most HBP_PACKED */
  unsigned short *col;            /* [blknz] column in its block */
  PetscScalar    *data;           /* [blknz], then those of long rows */
  PetscInt       *partialPtr;     /* [rowBlocks + 1] first partial sum of each block of rows */
  PetscInt       *combinePtr;     /* [rowBlocks + 1] first piece of each; a piece has HBP_COMBINED partial sums, the last one of a block of rows fewer */
  unsigned short *combinePos;     /* [partialNum] place in its piece, in order of rows */
  unsigned short *combineEnd;     /* [combineNum * N] of each row, where its partial sums end in a piece */
  PetscScalar    *partial;        /* [partialNum] */
  unsigned int   *direct;         /* [rowBlocks * HBPWords(N)] a bit a row: its result does not come from the partial sums of its block of rows */
  PetscInt        mapped, mapNum; /* blocks of rows with a map, places of all maps */
  PetscInt       *mapPtr;         /* [rowBlocks + 1] first place of the map of each block of rows, which has none where that of the next is the same; no array without mapChunks */
  PetscInt       *map;            /* [mapNum] first column of each chunk, in increasing order */
  GallopLongRows  longRows;
  PetscInt       *longCol;     /* [nz - blknz] */
  PetscScalar    *longPartial; /* [longRows.pieceNum] */
  PetscInt       *csrIdx;      /* [blknz] where entries are in CSR; NULL where columns of rows increase, so that they can be found */
  size_t          bytes;       /* partial sums are workspace and not in it */
  HBPOptions      options;
  void           *plan; /* of the GPU's launches */
} HBP;

#if defined(__CUDACC__)
  #define HBP_HD static inline __host__ __device__
#else
  #define HBP_HD static inline
#endif

/* The linear mapping, in pieces: numbers below 4 as they are, then four steps for each power of two */
HBP_HD PetscInt HBPFine(PetscInt rest)
{
  int log = 2;

  if (rest < 4) return rest;
  while (rest >> (log + 1)) log++;
  return 4 * (log - 1) + (rest >> (log - 2) & 3);
}

/* The least number that gives fine */
HBP_HD PetscInt HBPCoarse(PetscInt fine)
{
  return fine < 4 ? fine : (4 + fine % 4) << (fine / 4 - 1);
}

HBP_HD PetscInt HBPHashOf(const HBPHash *h, PetscInt len)
{
  const PetscInt q = len >> h->a < HBP_CLASSES - 1 ? len >> h->a : HBP_CLASSES - 1, fine = HBPFine((len - (q << h->a)) >> h->c);

  return q * h->b + (fine < h->b - 1 ? fine : h->b - 1) * h->d;
}

/* log2 of the lanes that a segment has. It depends on the hash, so that those with as many follow each other in a block, and is such that each lane has an entry. */
HBP_HD int HBPLanes(const HBPHash *h, PetscInt laneEntries, PetscInt len)
{
  const PetscInt value = HBPHashOf(h, len), q = value / h->b, least = (q << h->a) + (HBPCoarse(value % h->b / h->d) << h->c); /* length with this hash */
  int            lanes = 0;

  while (lanes < 5 && least >> lanes >= laneEntries) lanes++;
  return lanes;
}

/* A group's block of rows, whether all its lanes have as many entries, and log2 of the lanes of a segment */
HBP_HD PetscInt HBPInfo(PetscInt rowBlock, int equal, int lanes)
{
  return rowBlock * 16 + (equal ? 8 : 0) + lanes;
}

/* Entries that a lane has of a segment of len entries */
HBP_HD PetscInt HBPLaneLength(PetscInt len, int lanes, PetscInt lane)
{
  return (len - lane + ((PetscInt)1 << lanes) - 1) >> lanes;
}

#if HBP_FLAG != HBP_MAX_ROWS * HBP_PACKED
  #error "output_hash has bits for a row, for the entries of a segment, and for HBP_FLAG"
#endif

/* output_hash of a segment */
HBP_HD unsigned short HBPOutput(int row, PetscInt len, PetscInt longest)
{
  return (unsigned short)(row | (longest > HBP_PACKED ? 0 : ((int)len - 1) * HBP_MAX_ROWS));
}

/* The row that it tells */
HBP_HD int HBPOutputRow(int output_hash)
{
  return output_hash & (HBP_MAX_ROWS - 1);
}

/* Entries of a segment */
HBP_HD PetscInt HBPLength(const unsigned short output_hash[], const unsigned short nnz_perrow[], PetscInt seg)
{
  return (nnz_perrow ? nnz_perrow[seg] : output_hash[seg] / HBP_MAX_ROWS % HBP_PACKED) + 1;
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

/* Words of a bit for each row of a block */
HBP_HD PetscInt HBPWords(PetscInt rows)
{
  return (rows + 31) / 32;
}

/* How far the segment that begins with entry k of a row reaches, in blocks of M columns: the first entry that is not of it. Columns increase. */
HBP_HD PetscInt HBPSegmentEnd(const PetscInt j[], PetscInt k, PetscInt end, PetscInt M)
{
  const PetscCount limit = ((PetscCount)(j[k] / M) + 1) * M; /* more than a PetscInt, maybe */
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

/* Where the columns from first on begin in a row */
HBP_HD PetscInt HBPSegmentBegin(const PetscInt j[], PetscInt begin, PetscInt end, PetscCount first)
{
  while (begin < end) {
    const PetscInt mid = begin + (end - begin) / 2;

    if (j[mid] < first) begin = mid + 1;
    else end = mid;
  }
  return begin;
}

/* Where the map of a group's block begins, -1 where it has none */
HBP_HD PetscInt HBPMapOf(PetscInt out)
{
  return out < -1 ? -2 - out : -1;
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

/* Whether the row before has an entry within 16 columns */
HBP_HD int HBPIsNear(const PetscInt j[], const HBPSampled *s, PetscInt col)
{
  const PetscInt k = HBPSegmentBegin(j, s->other, s->last, (PetscCount)col - 16);

  return k < s->last && j[k] <= (PetscCount)col + 16;
}

HBP_HD int HBPLog(PetscInt len)
{
  int log = 0;

  while (len >> (log + 1)) log++;
  return log;
}

/* 12288 in real double */
#define HBP_MAX_SHARED_COLS ((PetscInt)((96 << 10) / sizeof(PetscScalar)))

/* Columns whose x has room in the shared memory of a GPU block, in bytes, beside what the kernel has there: whole chunks, so that x of a block begins with a line */
HBP_HD PetscInt HBPSharedCols(size_t block, size_t kernel)
{
  const size_t cols = block > kernel ? (block - kernel) / sizeof(PetscScalar) / HBP_CHUNK * HBP_CHUNK : 0;

  return cols < (size_t)HBP_MAX_SHARED_COLS ? (PetscInt)cols : HBP_MAX_SHARED_COLS;
}

/* The build counts what every block has, those without entries too: there must not be far more than entries. Loops may count beyond the last entry and the last row. */
HBP_HD int HBPFits(const HBP *h)
{
  return h->rowBlocks < 1 << 27 && h->m <= PETSC_INT_MAX - 4096 && h->nz <= PETSC_INT_MAX - 4096 && (double)h->rowBlocks * h->colBlocks <= 4 * (double)h->nz + 16e6;
}

PETSC_INTERN PetscErrorCode HBPGetSharedCols(const GallopCSR *, HBPOptions *);
PETSC_INTERN PetscErrorCode HBPGetSharedCols_Device(PetscInt *);

PETSC_INTERN void HBPCandidates(const HBPOptions *, PetscInt[2]);
PETSC_INTERN void HBPChoose(const HBPOptions *, const GallopCSR *, const PetscInt[2], const HBPSample *, HBP *);

PETSC_INTERN PetscErrorCode HBPGetDeviations(const HBP *, PetscReal *, PetscReal *);

PETSC_INTERN PetscErrorCode HBPApplyTranspose_Device(void *, const GallopProduct *, PetscBool);

PETSC_INTERN const GallopFormatWork HBPHost, HBPDevice;

/* for tests: other groups than of HBP_GROUP segments, which only the host takes; the paper's arrays; and a host copy of what either place has */
PETSC_EXTERN PetscErrorCode HBPBuild_Host(PetscInt, const HBPOptions *, const GallopCSR *, PetscCount, HBP **);
PETSC_EXTERN PetscErrorCode HBPGetAddSign(const HBP *, PetscInt[]);
PETSC_EXTERN PetscErrorCode HBPCopyToHost(const HBP *, HBP **);
PETSC_EXTERN PetscErrorCode HBPDestroyHostCopy(HBP **);
