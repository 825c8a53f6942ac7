/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  HBP's hot columns: the storage of a matrix a few columns of which have most of its entries, as in graphs. The x of these hot columns is in shared memory, and their entries have 16 bits for a column.

  A row, or a piece of HBP_HOT_PIECE entries of a longer one, is a part. A part has 1, 2, 4, ... 32 lanes of a warp, so that none has more than 32 entries. Parts are ordered by lanes, the most first, then by
  hot entries and by the others, and a warp computes a group of them: first the hot entries, then the others. Groups follow each other by the time that they take, and warps get them in turn.

  A line of a group has an entry of each lane, the k-th; a lane that has fewer leaves a gap, which is not read. A row that is one part is done by its warp. Of a row with several pieces the last warp
  to come adds their sums, in order.

  Included by hbp.h, which C and CUDA read: the host and the GPU build the same arrays.
*/

#define HBP_HOT_PIECE   1024        /* entries of a part: 32 for each lane of a warp */
#define HBP_HOT_CLASSES 6           /* parts with 32, 16, ... 1 lanes, in this order */
#define HBP_HOT_BYTES   (192 << 10) /* of x in shared memory; this and the last two measured on an H200, docs/development/hbp.md */
#define HBP_HOT_MOST    ((PetscInt)(HBP_HOT_BYTES / sizeof(PetscScalar)) < 65534 ? (PetscInt)(HBP_HOT_BYTES / sizeof(PetscScalar)) : 65534)
#define HBP_COLD        65535   /* rank of a column that is not hot */
#define HBP_HOT_BINS    8192    /* of the histogram of columns' entries */
#define HBP_HOT_ENTRIES 8000000 /* fewer are not worth it to fill so much shared memory */
#define HBP_HOT_UNEVEN  3       /* some row of the samples has this many times the mean */

/* First lines of a group */
typedef struct {
  PetscInt hot, cold;
} HBPHotLines;

/* First part and first group of each class */
typedef struct {
  PetscInt part[HBP_HOT_CLASSES + 1], group[HBP_HOT_CLASSES + 1];
} HBPHotClasses;

typedef struct {
  PetscMemType    memtype;
  PetscInt        m, n;
  PetscCount      nz;
  PetscInt        num;               /* hot columns */
  PetscInt        partNum, groupNum; /* = classes.part[HBP_HOT_CLASSES], classes.group[HBP_HOT_CLASSES] */
  PetscInt        longNum, pieceNum; /* rows of several parts, and these */
  HBPHotLines     lines;             /* of all groups */
  HBPHotClasses   classes;
  PetscScalar    *hotData;   /* [32 lines.hot] */
  PetscScalar    *coldData;  /* [32 lines.cold] */
  PetscInt       *coldCol;   /* [32 lines.cold] */
  unsigned short *hotCol;    /* [32 lines.hot] ranks */
  HBPHotLines    *line;      /* [groupNum + 1] */
  PetscInt       *row;       /* [partNum] the row of each part, or -1 - piece */
  unsigned int   *len;       /* [partNum] hot entries, and the others in the upper 16 bits */
  PetscInt       *begin;     /* [partNum] first entry in CSR */
  PetscInt       *hotColumn; /* [num] in increasing order */
  unsigned short *rank;      /* [n] of each column its place in hotColumn, or HBP_COLD */
  PetscInt       *longRow;   /* [longNum] */
  PetscInt       *longPiece; /* [longNum + 1] first piece of each */
  PetscInt       *pieceLong; /* [pieceNum] which of the long rows it is of */
  size_t          bytes;
  PetscScalar    *partial; /* [pieceNum] workspace, as is the rest, which is on the GPU only */
  PetscScalar    *x;       /* [num] of hot columns */
  int            *arrived; /* [longNum] pieces whose sums are there; 0 before and after a product */
  int             blocks;
  PetscBool       overlaps, fresh; /* as in an HBPPlan */
} HBPHot;

/* X(array, number) for each array that stays, in the order in which they lie in the GPU's memory */
#define HBP_HOT_ARRAYS(h, X) \
  do { \
    X(hotData, (PetscCount)(h)->lines.hot * 32) \
    X(coldData, (PetscCount)(h)->lines.cold * 32) \
    X(coldCol, (PetscCount)(h)->lines.cold * 32) \
    X(hotCol, (PetscCount)(h)->lines.hot * 32) \
    X(line, (PetscCount)(h)->groupNum + 1) \
    X(row, (h)->partNum) \
    X(len, (h)->partNum) \
    X(begin, (h)->partNum) \
    X(hotColumn, (h)->num) \
    X(rank, (h)->n) \
    X(longRow, (h)->longNum) \
    X(longPiece, (PetscCount)(h)->longNum + 1) \
    X(pieceLong, (h)->pieceNum) \
  } while (0)

/* Bytes of an array: on the GPU as GallopCarver counts them */
static inline size_t HBPArrayBytes(PetscMemType memtype, size_t bytes)
{
  return PetscMemTypeDevice(memtype) ? (bytes + 255) / 256 * 256 : bytes;
}

/* Bytes of workspace, which bytes does not count */
static inline size_t HBPHotWorkspaceBytes(const HBPHot *h)
{
  const size_t partial = HBPArrayBytes(h->memtype, (size_t)h->pieceNum * sizeof(*h->partial));

  if (PetscMemTypeHost(h->memtype)) return partial;
  return partial + HBPArrayBytes(h->memtype, (size_t)h->num * sizeof(*h->x)) + HBPArrayBytes(h->memtype, (size_t)h->longNum * sizeof(*h->arrived));
}

#if defined(__CUDACC__)
  #define HBP_HOT_HD static inline __host__ __device__
#else
  #define HBP_HOT_HD static inline
#endif

/* Pieces of a row, 1 where it is not long */
HBP_HOT_HD PetscInt HBPHotPieces(PetscInt len)
{
  return len > HBP_HOT_PIECE ? (len - 1) / HBP_HOT_PIECE + 1 : 1;
}

/* The number by which parts are ordered */
#define HBP_HOT_FIELD 11 /* bits: HBP_HOT_PIECE has a place */

HBP_HOT_HD unsigned int HBPHotKey(unsigned int hot, unsigned int cold)
{
  unsigned int lanes = 0;

  while (hot + cold > 32u << lanes) lanes++;
  return (HBP_HOT_CLASSES - 1 - lanes) << 2 * HBP_HOT_FIELD | (HBP_HOT_PIECE - hot) << HBP_HOT_FIELD | (HBP_HOT_PIECE - cold);
}

HBP_HOT_HD int HBPHotClassOf(unsigned int key)
{
  return (int)(key >> 2 * HBP_HOT_FIELD);
}

HBP_HOT_HD unsigned int HBPHotLength(unsigned int key)
{
  const unsigned int mask = (1u << HBP_HOT_FIELD) - 1;

  return (HBP_HOT_PIECE - (key >> HBP_HOT_FIELD & mask)) | (HBP_HOT_PIECE - (key & mask)) << 16;
}

/* log2 of the lanes of a part */
HBP_HOT_HD int HBPHotLanes(int c)
{
  return HBP_HOT_CLASSES - 1 - c;
}

/* The class of a group, its first part, and how many it has */
HBP_HOT_HD int HBPHotGroup(const HBPHotClasses *c, PetscInt group, PetscInt *first, PetscInt *num)
{
  int      k = 0;
  PetscInt each;

  while (k < HBP_HOT_CLASSES - 1 && group >= c->group[k + 1]) k++;
  each   = 32 >> HBPHotLanes(k);
  *first = c->part[k] + (group - c->group[k]) * each;
  *num   = c->part[k + 1] - *first < each ? c->part[k + 1] - *first : each;
  return k;
}

/* The group of a part in class k, and which of its parts it is */
HBP_HOT_HD PetscInt HBPHotGroupOf(const HBPHotClasses *c, int k, PetscInt part, int *slot)
{
  const PetscInt each = 32 >> HBPHotLanes(k);

  *slot = (int)((part - c->part[k]) % each);
  return c->group[k] + (part - c->part[k]) / each;
}

/* Lines of a group in class k whose parts have these lengths: its first one has the most hot entries */
HBP_HOT_HD HBPHotLines HBPHotLinesOf(int k, PetscInt num, const unsigned int len[])
{
  const int   lanes = HBPHotLanes(k), up = (1 << lanes) - 1;
  HBPHotLines l = {((PetscInt)(len[0] & 65535) + up) >> lanes, 0};

  for (PetscInt p = 0; p < num; p++) {
    const PetscInt cold = ((PetscInt)(len[p] >> 16) + up) >> lanes;

    if (cold > l.cold) l.cold = cold;
  }
  return l;
}

/* Fewer columns than there are places have at least this many entries, >> shift; bins are of the histogram of all columns' entries, >> shift */
HBP_HOT_HD int HBPHotShift(PetscCount nz, PetscInt places)
{
  int shift = 0;

  while (nz / ((PetscCount)(HBP_HOT_BINS - 1) << shift) > places) shift++;
  return shift;
}

HBP_HOT_HD int HBPHotBin(PetscInt entries, int shift)
{
  return entries >> shift < HBP_HOT_BINS - 1 ? (int)(entries >> shift) : HBP_HOT_BINS - 1;
}
