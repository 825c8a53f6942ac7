#pragma once

/* Packed storage before it is stored: the order of rows, the dictionary, what a slice takes. Host and GPU decide alike. */

#include "packed.h"

/* Which rows are packed, and in which order: num in perm, or all where perm is NULL, those stride apart in a slice. Rows of more than longest entries are in pieces, or left out where there are none. */
typedef struct {
  const PetscInt *perm;
  PetscInt        num, stride, longest;
  const PetscInt *pieceRow, *pieceAt; /* pieces of rows that are longer: which row each is of, and how many of its entries come before, a multiple of 64 */
  PetscInt        pieces, piece;      /* how many there are, and entries of a piece */
} GallopPackOrder;

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
PETSC_INTERN PetscErrorCode GallopPackFree_Host(GallopPack *);
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
