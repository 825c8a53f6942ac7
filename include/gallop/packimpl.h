#pragma once

/*
  Packed entries of a sparse matrix: a room that formats share. The same entries as in CSR in fewer bytes, and nothing lost.

  Rows come in slices of 64. What stands in the same place of 64 rows is a line: one entry of each row that has one there. Columns of a line are base + stride * (row in the slice) and
  not stored, or offsets of 8 or 16 bits from a base, or 32 bits. Where it takes fewer bytes a line has one diagonal's entries, so that a row without one does not shift the others.
  Values are numbers of a dictionary in 8 or 16 bits, or single precision where all of a slice are, or as they are.

  Long rows come in pieces, which are slices too: a line is 64 entries of the row that follow each other, and last is the number of them in the last line.

  A lane of a warp has rows l and l + 32 of a slice: what is stored for 64 rows is in the order 0 32 1 33 2 34 ..., so that a lane reads both at once, and neighbouring lanes have neighbouring rows.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include <gallop/formatimpl.h>

#define GALLOP_PACK_ROWS    64 /* of a slice */
#define GALLOP_PACK_UNIT    64 /* bytes in which places in the arrays are counted: 64 numbers of 8 bits */
#define GALLOP_PACK_CHUNK   32 /* lines whose bits a word of a row's mask has */
#define GALLOP_PACK_NONE    0xffffffffu
#define GALLOP_PACK_STRIDES 8     /* the largest stride of rows that is tried */
#define GALLOP_PACK_WIDEST  65535 /* lines of a slice, at most */
#define GALLOP_PACK_DICT    65536 /* distinct numbers of a dictionary, at most */

/* How the numbers of a line are stored; GALLOP_PACK_STRIDED not at all */
typedef enum { GALLOP_PACK_STRIDED, GALLOP_PACK_8, GALLOP_PACK_16, GALLOP_PACK_32, GALLOP_PACK_CLASSES } GallopPackClass;

/* The numbers of 64 rows, their columns or the rows themselves. info: the class in the upper two bits, below them the stride, or where in stream the offsets begin. A line shares those of the line before where all of its columns are as far from that one's. */
typedef struct {
  int32_t  base;
  uint32_t info;
} GallopPackLine;

#define GALLOP_PACK_INFO_BITS 30

/* How values are stored */
typedef enum { GALLOP_PACK_VALUE, GALLOP_PACK_SINGLE, GALLOP_PACK_DICT8, GALLOP_PACK_DICT16, GALLOP_PACK_VALUES } GallopPackValues;

typedef struct {
  int64_t        line;   /* its first line */
  uint32_t       value;  /* where its values begin */
  uint32_t       mask;   /* where its masks begin in stream, GALLOP_PACK_NONE where each row has an entry in each line */
  GallopPackLine rows;   /* its rows; the largest offset of a class for none */
  uint16_t       width;  /* lines */
  uint8_t        values; /* GallopPackValues */
  uint8_t        last;   /* of a piece of one row: entries of its last line. 0 where a slice is 64 rows. */
  uint32_t       at;     /* of a piece: lines of the row that come before it. Of 64 rows: what the columns of all lines grow by, 0 where some are stored or do not grow. */
} GallopPackSlice;

/* Numbers of what is stored, for all who show them */
typedef struct {
  PetscCount lines[GALLOP_PACK_CLASSES]; /* of each class */
  PetscCount strided;                    /* lines of pieces among those whose columns are not stored */
  PetscCount shared;                     /* lines that have the offsets of the line before */
  PetscCount slots[GALLOP_PACK_VALUES];  /* places for values, entries or not */
} GallopPackFigures;

typedef struct {
  PetscMemType      memtype;
  PetscInt          m, n;
  PetscInt          stride;                            /* of the rows of a slice, 0 where they were given in some order */
  PetscInt          nslice, npiece, ndict;             /* slices, and how many of them, the last ones, are pieces of long rows */
  PetscCount        nz, nlong, nline, nstream, nvalue; /* entries; places of pieces for them; units of stream and value */
  GallopPackSlice  *slice;                             /* [nslice] */
  GallopPackLine   *line;                              /* [nline] */
  unsigned char    *stream;                            /* offsets of columns and rows, masks */
  unsigned char    *value;
  PetscReal        *dict;     /* [ndict] numbers, parts of complex ones too; distinct, and in the order of their bits, when it is made */
  PetscBool         unsorted; /* they are in that order no more: none can be looked up */
  PetscBool         overlaps; /* on the GPU: a kernel may start while the one before it ends */
  size_t            bytes;
  GallopPackFigures figures;
} GallopPack;

/* Which rows are packed, and in which order: num in perm, or all where perm is NULL, those stride apart in a slice. Rows of more than longest entries are in pieces, or left out where there are none. */
typedef struct {
  const PetscInt *perm;
  PetscInt        num, stride, longest;
  const PetscInt *pieceRow, *pieceAt; /* pieces of rows that are longer: which row each is of, and how many of its entries come before, a multiple of 64 */
  PetscInt        pieces, piece;      /* how many there are, and entries of a piece */
} GallopPackOrder;

#if defined(__CUDACC__)
  #define GALLOP_PACK_HD static __host__ __device__ __forceinline__
#else
  #define GALLOP_PACK_HD static inline
#endif

/* Numbers that a value has, and the bits of one */
#define GALLOP_PACK_PARTS ((int)(sizeof(PetscScalar) / sizeof(PetscReal)))
#if defined(PETSC_USE_REAL_SINGLE)
typedef uint32_t GallopPackBits;
#else
typedef uint64_t GallopPackBits;
#endif

/* Where row l of a slice stands among its 64 */
GALLOP_PACK_HD int GallopPackPlace(int l)
{
  return 2 * (l % 32) + l / 32;
}

GALLOP_PACK_HD int GallopPackClassOf(GallopPackLine line)
{
  return (int)(line.info >> GALLOP_PACK_INFO_BITS);
}

/* The stride of a line that has one */
GALLOP_PACK_HD int GallopPackStrideOf(GallopPackLine line)
{
  return (int)(line.info << (32 - GALLOP_PACK_INFO_BITS)) >> (32 - GALLOP_PACK_INFO_BITS);
}

/* Where in stream the offsets of a line that has no stride begin */
GALLOP_PACK_HD const unsigned char *GallopPackOffsets(GallopPackLine line, const unsigned char *stream)
{
  return stream + (size_t)(line.info & ((1u << GALLOP_PACK_INFO_BITS) - 1)) * GALLOP_PACK_UNIT;
}

GALLOP_PACK_HD GallopPackLine GallopPackStrided(int32_t base, int stride)
{
  const GallopPackLine line = {base, (uint32_t)stride & ((1u << GALLOP_PACK_INFO_BITS) - 1)};

  return line;
}

GALLOP_PACK_HD GallopPackLine GallopPackStored(GallopPackClass kind, int32_t base, uint32_t at)
{
  const GallopPackLine line = {base, (uint32_t)kind << GALLOP_PACK_INFO_BITS | at};

  return line;
}

/* Units that the offsets of a class take */
GALLOP_PACK_HD uint32_t GallopPackOffsetUnits(GallopPackClass kind)
{
  return kind == GALLOP_PACK_STRIDED ? 0 : 1u << (kind - GALLOP_PACK_8);
}

/* The class for numbers up to so much apart. Where a number may be missing, the largest of the class says so. */
GALLOP_PACK_HD GallopPackClass GallopPackClassFor(uint32_t apart, PetscBool missing)
{
  apart += missing ? 1 : 0;
  return apart < 256 ? GALLOP_PACK_8 : apart < 65536 ? GALLOP_PACK_16 : GALLOP_PACK_32;
}

/* Units of 64 values, from a table in a word */
GALLOP_PACK_HD uint32_t GallopPackValueUnits(GallopPackValues kind)
{
  const uint32_t each = (uint32_t)sizeof(PetscReal) << 8 * GALLOP_PACK_VALUE | (uint32_t)sizeof(float) << 8 * GALLOP_PACK_SINGLE | 1u << 8 * GALLOP_PACK_DICT8 | 2u << 8 * GALLOP_PACK_DICT16;

  return (each >> 8 * kind & 0xff) * GALLOP_PACK_PARTS;
}

/* Bytes of a row's word of mask, and units of all masks of a slice */
GALLOP_PACK_HD int GallopPackMaskBytes(PetscInt width)
{
  return width <= 8 ? 1 : width <= 16 ? 2 : 4;
}

GALLOP_PACK_HD uint32_t GallopPackMaskUnits(PetscInt width)
{
  return (uint32_t)GallopPackMaskBytes(width) * (uint32_t)((width + GALLOP_PACK_CHUNK - 1) / GALLOP_PACK_CHUNK);
}

/* Slices of m rows that come by strides: groups of stride slices, of which the last has as many as there are rows */
GALLOP_PACK_HD PetscInt GallopPackNumSlices(const GallopPackOrder *order, PetscInt m)
{
  if (order->perm) return order->num / GALLOP_PACK_ROWS + (order->num % GALLOP_PACK_ROWS ? 1 : 0);
  const PetscInt group = GALLOP_PACK_ROWS * order->stride, left = m % group;

  return m / group * order->stride + (left < order->stride ? left : order->stride);
}

/* Row l of a slice, -1 where there is none; long rows are not left out here */
GALLOP_PACK_HD PetscInt GallopPackRow(const GallopPackOrder *order, PetscInt m, PetscInt slice, int l)
{
  if (order->perm) return slice * GALLOP_PACK_ROWS + l < order->num ? order->perm[slice * GALLOP_PACK_ROWS + l] : -1;
  const PetscInt group = slice / order->stride * order->stride * GALLOP_PACK_ROWS, in = slice % order->stride + order->stride * l;

  return in < m - group ? group + in : -1;
}

/* The number that an offset of a line stands for. Where there is no entry, a line that shares its offsets may count to more than 32 bits: that number means nothing, but is defined. */
GALLOP_PACK_HD int32_t GallopPackFrom(GallopPackLine line, uint32_t offset)
{
  return (int32_t)((uint32_t)line.base + offset);
}

/* A number of a line: place is that of the row. For rows -1 where there is none. */
GALLOP_PACK_HD PetscInt GallopPackNumber(GallopPackLine line, const unsigned char *stream, int place)
{
  const unsigned char *at = GallopPackOffsets(line, stream);

  switch (GallopPackClassOf(line)) {
  case GALLOP_PACK_STRIDED:
    return line.base + GallopPackStrideOf(line) * (place / 2 + 32 * (place % 2));
  case GALLOP_PACK_8:
    return GallopPackFrom(line, at[place]);
  case GALLOP_PACK_16:
    return GallopPackFrom(line, ((const uint16_t *)at)[place]);
  default:
    return GallopPackFrom(line, ((const uint32_t *)at)[place]);
  }
}

GALLOP_PACK_HD PetscInt GallopPackRowOf(GallopPackLine line, const unsigned char *stream, int place)
{
  const unsigned char *at   = GallopPackOffsets(line, stream);
  const int            kind = GallopPackClassOf(line);

  if (kind == GALLOP_PACK_8 && at[place] == 0xff) return -1;
  if (kind == GALLOP_PACK_16 && ((const uint16_t *)at)[place] == 0xffff) return -1;
  if (kind == GALLOP_PACK_32 && ((const uint32_t *)at)[place] == GALLOP_PACK_NONE) return -1;
  return GallopPackNumber(line, stream, place);
}

/* A row's word of the mask of lines 32 chunk to 32 chunk + 31 */
GALLOP_PACK_HD uint32_t GallopPackMaskOf(const GallopPackSlice *slice, const unsigned char *stream, PetscInt chunk, int place)
{
  const int            bytes = GallopPackMaskBytes(slice->width);
  const unsigned char *at    = stream + ((size_t)slice->mask + (size_t)chunk * bytes) * GALLOP_PACK_UNIT;

  if (slice->mask == GALLOP_PACK_NONE) return 0xffffffffu;
  return bytes == 1 ? at[place] : bytes == 2 ? ((const uint16_t *)at)[place] : ((const uint32_t *)at)[place];
}

/* The bits of a number, and the number that has them */
GALLOP_PACK_HD GallopPackBits GallopPackBitsOf(PetscReal value)
{
  union
  {
    PetscReal      value;
    GallopPackBits bits;
  } u;

  u.value = value;
  return u.bits;
}

/* Whether single precision has the number, all of its bits. No NaN: places differ in which bits of one they convert. */
GALLOP_PACK_HD PetscBool GallopPackIsSingle(PetscReal value)
{
  return (PetscBool)(value == value && GallopPackBitsOf((PetscReal)(float)value) == GallopPackBitsOf(value));
}

/* How the numbers of a dictionary of so many are stored */
GALLOP_PACK_HD GallopPackValues GallopPackDictClass(PetscCount ndict)
{
  return ndict <= 256 ? GALLOP_PACK_DICT8 : GALLOP_PACK_DICT16;
}

/* Whether a dictionary of so many numbers pays for nz values: it takes at most half of what is saved */
GALLOP_PACK_HD PetscBool GallopPackDictPays(PetscCount ndict, PetscCount nz)
{
  const int saved = (int)sizeof(PetscReal) - (GallopPackDictClass(ndict) == GALLOP_PACK_DICT8 ? 1 : 2);

  return (PetscBool)(ndict <= GALLOP_PACK_DICT && 2 * ndict * (PetscCount)sizeof(PetscReal) <= saved * GALLOP_PACK_PARTS * nz);
}

/*
  Of many numbers a few are looked at before all are counted. Were there no more distinct ones than a dictionary has, each as often, about 128 of these looks would meet a number again: where fewer
  than half as many do, there are too many. Where one number comes much more often than others, all are counted.
*/
#define GALLOP_PACK_LOOKS       4096
#define GALLOP_PACK_LOOKS_EQUAL 64
#define GALLOP_PACK_LOOKS_FROM  (1 << 19)

/* Which of n numbers look k is at: no order that they have makes looks alike, or different */
GALLOP_PACK_HD PetscCount GallopPackLook(int k, PetscCount n)
{
  uint64_t z = (uint64_t)(k + 1) * 0x9e3779b97f4a7c15ull;

  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (PetscCount)((z ^ z >> 31) % (uint64_t)n);
}

/* What the places of a number in tables are made of. Simple numbers differ in their upper bits only. */
GALLOP_PACK_HD uint32_t GallopPackHash(uint64_t bits)
{
  return (uint32_t)((bits ^ bits >> 32) * 0x9e3779b97f4a7c15ull >> 32);
}

/* Where in the dictionary a number is; ndict where it is not */
GALLOP_PACK_HD PetscInt GallopPackFind(const PetscReal *dict, PetscInt ndict, PetscReal value)
{
  const GallopPackBits bits = GallopPackBitsOf(value);
  PetscInt             low = 0, high = ndict;

  while (low < high) {
    const PetscInt middle = low + (high - low) / 2;

    if (GallopPackBitsOf(dict[middle]) < bits) low = middle + 1;
    else high = middle;
  }
  return low < ndict && GallopPackBitsOf(dict[low]) == bits ? low : ndict;
}

/* What a sample of slices takes: about so many rows, in groups that are as far apart as they can be */
#define GALLOP_PACK_SAMPLE (1 << 15)

typedef struct {
  int64_t bytes, entries;
  int64_t saved; /* of the bytes, by shared offsets */
} GallopPackCost;

#define GALLOP_PACK_COSTS (GALLOP_PACK_STRIDES + 1) /* of rows by each stride, the first one of rows in a given order, and the last one of pieces */

/* Orders of rows that are measured */
GALLOP_PACK_HD PetscInt GallopPackNumOrders(const GallopPackOrder *order)
{
  return order->perm ? 1 : GALLOP_PACK_STRIDES;
}

GALLOP_PACK_HD PetscInt GallopPackNumGroups(const GallopPackOrder *order, PetscInt m)
{
  const PetscInt group = GALLOP_PACK_ROWS * (order->perm ? 1 : order->stride), rows = order->perm ? order->num : m;

  return rows / group + (rows % group ? 1 : 0);
}

/* Slices of the sample, and which one each is; beyond the last one there may be numbers that are no slice's */
GALLOP_PACK_HD PetscInt GallopPackSampleSize(const GallopPackOrder *order, PetscInt m)
{
  const PetscInt stride = order->perm ? 1 : order->stride, groups = GallopPackNumGroups(order, m), most = GALLOP_PACK_SAMPLE / (GALLOP_PACK_ROWS * stride);

  return (groups < most ? groups : most) * stride;
}

GALLOP_PACK_HD PetscInt GallopPackSampled(const GallopPackOrder *order, PetscInt m, PetscInt k)
{
  const PetscInt stride = order->perm ? 1 : order->stride, sampled = GallopPackSampleSize(order, m) / stride;

  return (PetscInt)((PetscInt64)(k / stride) * GallopPackNumGroups(order, m) / sampled) * stride + k % stride;
}

/* What is known of a slice before it is stored */
typedef struct {
  PetscInt         width;
  PetscInt         lines[GALLOP_PACK_CLASSES]; /* of each class */
  PetscInt         shared;                     /* lines that have the offsets of the line before, */
  int64_t          saved;                      /* and the units which those would take */
  GallopPackClass  rows;                       /* class of its rows */
  GallopPackValues values;
  PetscBool        diagonals; /* lines are diagonals, else the first entries of all rows, the second ones, and so on */
  PetscBool        masks;
  int64_t          entries;
  int64_t          first; /* of a piece of a row: its first entry in CSR, and the lines before it */
  uint32_t         at;
  PetscInt         row;
} GallopPackPlan;

GALLOP_PACK_HD void GallopPackNoLines(GallopPackPlan *plan)
{
  for (int k = 0; k < GALLOP_PACK_CLASSES; k++) plan->lines[k] = 0;
  plan->shared = 0;
  plan->saved  = 0;
}

/* Counts a line, whose class is that of the line before where it shares. Registers have no index. */
GALLOP_PACK_HD void GallopPackCountLine(GallopPackPlan *plan, GallopPackClass kind, PetscBool shared)
{
#if defined(__CUDACC__)
  #pragma unroll
#endif
  for (int k = 0; k < GALLOP_PACK_CLASSES; k++) plan->lines[k] += k == (int)kind;
  plan->shared += shared;
  plan->saved += shared ? GallopPackOffsetUnits(kind) : 0;
}

/* Places of what a slice stores: counts of the slices before it */
typedef struct {
  int64_t line, stream, value;
} GallopPackPlaces;

GALLOP_PACK_HD GallopPackPlaces GallopPackPlacesOf(const GallopPackPlan *plan)
{
  int64_t offsets = GallopPackOffsetUnits(plan->rows) + (plan->masks ? (int64_t)GallopPackMaskUnits(plan->width) : 0) - plan->saved;

  for (int k = 0; k < GALLOP_PACK_CLASSES; k++) offsets += (int64_t)plan->lines[k] * GallopPackOffsetUnits((GallopPackClass)k);
  const GallopPackPlaces p = {plan->width, offsets, (int64_t)plan->width * GallopPackValueUnits(plan->values)};

  return p;
}

/* What a slice is chosen by: the bytes that a product loads, so that shared offsets, which come from a cache, count as those of each line */
GALLOP_PACK_HD int64_t GallopPackSliceBytes(const GallopPackPlan *plan)
{
  const GallopPackPlaces p = GallopPackPlacesOf(plan);

  return (p.stream + plan->saved + p.value) * GALLOP_PACK_UNIT + p.line * (int64_t)sizeof(GallopPackLine) + (int64_t)sizeof(GallopPackSlice);
}

/* The same slice by diagonals */
GALLOP_PACK_HD GallopPackPlan GallopPackByDiagonals(const GallopPackPlan *plan, PetscInt width)
{
  GallopPackPlan by = *plan;

  GallopPackNoLines(&by);
  by.width                      = width;
  by.lines[GALLOP_PACK_STRIDED] = width;
  by.diagonals                  = PETSC_TRUE;
  by.masks                      = (PetscBool)(plan->entries < (int64_t)GALLOP_PACK_ROWS * width);
  return by;
}

/* What the entries of a line are: their least and largest columns, and of columns less step for each row in the slice. The number from which offsets count goes to *base. */
GALLOP_PACK_HD GallopPackClass GallopPackClassOfEntries(PetscInt least, PetscInt largest, PetscInt leastless, PetscInt largestless, PetscInt *base)
{
  *base = leastless == largestless ? leastless : least;
  return leastless == largestless ? GALLOP_PACK_STRIDED : GallopPackClassFor((uint32_t)(largest - least), PETSC_FALSE);
}

/* The stride of a slice's rows that its columns can have too; 0 for none, by rows in an order that have another */
GALLOP_PACK_HD PetscInt GallopPackStep(const GallopPackOrder *order, const GallopPackPlan *plan, PetscInt row0, PetscInt row1)
{
  if (!order->perm) return order->stride;
  return plan->rows == GALLOP_PACK_STRIDED && row1 - row0 <= GALLOP_PACK_STRIDES && row0 - row1 <= GALLOP_PACK_STRIDES ? row1 - row0 : 0;
}

/* A piece, as far as it is known without its entries */
GALLOP_PACK_HD GallopPackPlan GallopPackPieceOf(const GallopPackOrder *order, const PetscInt i[], PetscInt piece)
{
  GallopPackPlan plan;

  plan.row       = order->pieceRow[piece];
  plan.at        = (uint32_t)(order->pieceAt[piece] / GALLOP_PACK_ROWS);
  plan.first     = (int64_t)i[plan.row] + order->pieceAt[piece];
  plan.entries   = (int64_t)i[plan.row + 1] - plan.first;
  plan.entries   = plan.entries < order->piece ? plan.entries : order->piece;
  plan.width     = (PetscInt)((plan.entries + GALLOP_PACK_ROWS - 1) / GALLOP_PACK_ROWS);
  plan.rows      = GALLOP_PACK_STRIDED;
  plan.diagonals = PETSC_FALSE;
  plan.masks     = PETSC_FALSE;
  plan.values    = GALLOP_PACK_VALUE;
  GallopPackNoLines(&plan);
  return plan;
}

/* Entries of line k of a piece of so many */
GALLOP_PACK_HD int GallopPackInLine(int64_t entries, PetscInt k)
{
  return (int)(entries - (int64_t)k * GALLOP_PACK_ROWS < GALLOP_PACK_ROWS ? entries - (int64_t)k * GALLOP_PACK_ROWS : GALLOP_PACK_ROWS);
}

/* What a stored piece's slice begins with, but for its places */
GALLOP_PACK_HD GallopPackSlice GallopPackPieceSlice(const GallopPackPlan *plan, const GallopPackPlaces *at)
{
  GallopPackSlice slice;

  slice.line   = at->line;
  slice.value  = (uint32_t)at->value;
  slice.mask   = GALLOP_PACK_NONE;
  slice.rows   = GallopPackStrided((int32_t)plan->row, 0);
  slice.width  = (uint16_t)plan->width;
  slice.values = (uint8_t)plan->values;
  slice.last   = (uint8_t)GallopPackInLine(plan->entries, plan->width - 1);
  slice.at     = plan->at;
  return slice;
}

/* What columns of a line of one row may grow by from entry to entry: as the second one is from the first, where that is little */
GALLOP_PACK_HD PetscInt GallopPackPieceStep(PetscInt column0, PetscInt column1)
{
  return column1 > column0 && column1 - column0 <= GALLOP_PACK_STRIDES ? column1 - column0 : 1;
}

/* Whether indices fit: 32 bits for a column, and for what a line with a stride counts up to where it has no entry at either end */
static inline PetscBool GallopPackIndicesFit(const GallopCSR *csr)
{
  const PetscInt64 most = PETSC_INT32_MAX - 2 * GALLOP_PACK_STRIDES * GALLOP_PACK_ROWS;

  return (PetscBool)(csr->m <= most && csr->n <= most);
}

/* Whether places fit: those in stream into a line's info, those of values into 32 bits */
static inline PetscBool GallopPackPlacesFit(const GallopPackPlaces *all)
{
  return (PetscBool)(all->stream < (int64_t)1 << GALLOP_PACK_INFO_BITS && all->value < (int64_t)GALLOP_PACK_NONE);
}

/*
  In this order, at either place: Begin() looks for a dictionary, Measure() tells what a sample of the slices takes, of rows in an order, or as they come with each of the strides, and all pieces; Finish() stores
  the entries, and keeps none where there is no room, or more than the places can tell. maxbytes: 0 for no limit. Refresh() tells whether the new values can be stored as those before them were, by
  either place's own with the same dictionary, by the one for both perhaps with another; if not, the pack is to be made again. Renumber() tells whether all entries that had one number of the
  dictionary have one again: then only the dictionary changes, and may lose its order, which SortDict() brings back, for entries that are all stored again.
*/
PETSC_INTERN PetscErrorCode GallopPackBegin_Host(const GallopCSR *, GallopPack **);
PETSC_INTERN PetscErrorCode GallopPackMeasure_Host(const GallopPack *, const GallopCSR *, const GallopPackOrder *, GallopPackCost[GALLOP_PACK_COSTS]);
PETSC_INTERN PetscErrorCode GallopPackFinish_Host(GallopPack *, const GallopCSR *, const GallopPackOrder *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackRefresh_Host(GallopPack *, const GallopCSR *, PetscBool *fits);
PETSC_INTERN PetscErrorCode GallopPackRenumber_Host(GallopPack *, const GallopCSR *, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackSortDict_Host(GallopPack *, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackApply_Host(const GallopPack *, const GallopProduct *);

/* The same where csr is */
PETSC_INTERN PetscErrorCode GallopPackBegin(const GallopCSR *, GallopPack **);
PETSC_INTERN PetscErrorCode GallopPackMeasure(const GallopPack *, const GallopCSR *, const GallopPackOrder *, GallopPackCost[GALLOP_PACK_COSTS]);
PETSC_INTERN PetscErrorCode GallopPackFinish(GallopPack *, const GallopCSR *, const GallopPackOrder *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackRefresh(GallopPack *, const GallopCSR *, PetscCount maxbytes, PetscBool *fits);

PETSC_INTERN PetscInt       GallopPackPickStride(const GallopPackCost[GALLOP_PACK_STRIDES]);
PETSC_INTERN PetscErrorCode GallopPackDestroy(GallopPack **);
PETSC_INTERN PetscErrorCode GallopPackCopyToHost(const GallopPack *, GallopPack **);
PETSC_INTERN size_t         GallopPackBytes(const GallopPack *);
#if defined(PETSC_HAVE_CUDA)
PETSC_INTERN PetscErrorCode GallopPackBegin_Device(const GallopCSR *, GallopPack **);
PETSC_INTERN PetscErrorCode GallopPackMeasure_Device(const GallopPack *, const GallopCSR *, const GallopPackOrder *, GallopPackCost[GALLOP_PACK_COSTS]);
PETSC_INTERN PetscErrorCode GallopPackFinish_Device(GallopPack *, const GallopCSR *, const GallopPackOrder *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackRefresh_Device(GallopPack *, const GallopCSR *, PetscBool *fits);
PETSC_INTERN PetscErrorCode GallopPackRenumber_Device(GallopPack *, const GallopCSR *, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackSortDict_Device(GallopPack *, PetscBool *done);
PETSC_INTERN PetscErrorCode GallopPackFree_Device(GallopPack *);
#endif
