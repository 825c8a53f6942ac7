/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Packed storage before it is stored: the order of rows, the dictionary, what a slice takes. Host and GPU decide alike. */

#include "packed.h"
#include <float.h>

/* Which rows are packed, and in which order: num in perm, or all where perm is NULL, those stride apart in a slice. Rows of more than longest entries are in pieces, or left out where there are none. */
typedef struct {
  const PetscInt *perm;
  PetscInt        num, stride, longest;
  const PetscInt *pieceRow, *pieceAt; /* pieces of rows that are longer: which row each is of, and how many of its entries come before, a multiple of 64 */
  PetscInt        pieces, piece;      /* how many there are, and entries of a piece */
  PetscInt        looks;              /* pieces of a sample instead, which are found by looks at entries */
} EVCHYBPackOrder;

/* Slices of m rows that come by strides: groups of stride slices, of which the last has as many as there are rows */
EVCHYB_PACK_HD PetscInt EVCHYBPackNumSlices(const EVCHYBPackOrder *order, PetscInt m)
{
  if (order->perm) return order->num / EVCHYB_PACK_ROWS + (order->num % EVCHYB_PACK_ROWS ? 1 : 0);
  const PetscInt group = EVCHYB_PACK_ROWS * order->stride, left = m % group;

  return m / group * order->stride + (left < order->stride ? left : order->stride);
}

/* Row l of a slice, -1 where there is none; long rows are not left out here */
EVCHYB_PACK_HD PetscInt EVCHYBPackRow(const EVCHYBPackOrder *order, PetscInt m, PetscInt slice, int l)
{
  if (order->perm) return slice * EVCHYB_PACK_ROWS + l < order->num ? order->perm[slice * EVCHYB_PACK_ROWS + l] : -1;
  const PetscInt group = slice / order->stride * order->stride * EVCHYB_PACK_ROWS, in = slice % order->stride + order->stride * l;

  return in < m - group ? group + in : -1;
}

/* The bits of a number, and the number that has them */
EVCHYB_PACK_HD EVCHYBPackBits EVCHYBPackBitsOf(PetscReal value)
{
  union
  {
    PetscReal      value;
    EVCHYBPackBits bits;
  } u;

  u.value = value;
  return u.bits;
}

/* Whether single precision has the number, all of its bits. No NaN: places differ in which bits of one they convert. A number beyond it is not converted, which -fp_trap would see; infinity is. */
EVCHYB_PACK_HD PetscBool EVCHYBPackIsSingle(PetscReal value)
{
  if (value != value) return PETSC_FALSE;
  if ((value > (PetscReal)FLT_MAX && value <= PETSC_MAX_REAL) || (value < -(PetscReal)FLT_MAX && value >= -PETSC_MAX_REAL)) return PETSC_FALSE;
  return (PetscBool)(EVCHYBPackBitsOf((PetscReal)(float)value) == EVCHYBPackBitsOf(value));
}

/* Whether a complex value has no imaginary part, all bits of which are 0 */
EVCHYB_PACK_HD PetscBool EVCHYBPackIsReal(PetscScalar value)
{
  return (PetscBool)(EVCHYB_PACK_PARTS > 1 && !EVCHYBPackBitsOf(((const PetscReal *)&value)[EVCHYB_PACK_PARTS - 1]));
}

/* In which ways, a bit each, a value takes fewer bytes than it has */
EVCHYB_PACK_HD unsigned int EVCHYBPackShorter(PetscScalar value)
{
  PetscBool single = (PetscBool)(sizeof(PetscReal) > sizeof(float));

  for (int p = 0; p < EVCHYB_PACK_PARTS; p++) single = (PetscBool)(single && EVCHYBPackIsSingle(((const PetscReal *)&value)[p]));
  return (unsigned int)single << EVCHYB_PACK_SINGLE | (unsigned int)EVCHYBPackIsReal(value) << EVCHYB_PACK_REAL;
}

/* Those that there are */
#define EVCHYB_PACK_SHORTER ((sizeof(PetscReal) > sizeof(float) ? 1u << EVCHYB_PACK_SINGLE : 0) | (EVCHYB_PACK_PARTS > 1 ? 1u << EVCHYB_PACK_REAL : 0))

/* How values are stored for all of which these hold */
EVCHYB_PACK_HD EVCHYBPackValues EVCHYBPackShortest(unsigned int shorter)
{
  return shorter >> EVCHYB_PACK_SINGLE & 1 ? EVCHYB_PACK_SINGLE : shorter >> EVCHYB_PACK_REAL & 1 ? EVCHYB_PACK_REAL : EVCHYB_PACK_VALUE;
}

/* How a number of a dictionary of ndict is stored */
EVCHYB_PACK_HD EVCHYBPackValues EVCHYBPackDictClass(PetscCount ndict)
{
  return ndict <= 256 ? EVCHYB_PACK_DICT8 : EVCHYB_PACK_DICT16;
}

/* Whether a dictionary of ndict numbers pays for nz values: it takes at most half of what it saves */
EVCHYB_PACK_HD PetscBool EVCHYBPackDictPays(PetscCount ndict, PetscCount nz)
{
  const int saved = (int)sizeof(PetscReal) - (EVCHYBPackDictClass(ndict) == EVCHYB_PACK_DICT8 ? 1 : 2);

  return (PetscBool)(ndict <= EVCHYB_PACK_DICT && 2 * ndict * (PetscCount)sizeof(PetscReal) <= saved * EVCHYB_PACK_PARTS * nz);
}

/*
  Of many numbers a few are looked at before all are counted. Were there no more distinct ones than a dictionary has, each as often, about 128 of these looks would meet a number again: where fewer
  than half as many do, there are too many. Where one number comes much more often than others, all are counted.
*/
#define EVCHYB_PACK_LOOKS       4096
#define EVCHYB_PACK_LOOKS_EQUAL 64
#define EVCHYB_PACK_LOOKS_FROM  (1 << 19)

/* Which of n numbers look k is at: no order that they have makes looks alike, or different */
EVCHYB_PACK_HD PetscCount EVCHYBPackLook(int k, PetscCount n)
{
  uint64_t z = (uint64_t)(k + 1) * 0x9e3779b97f4a7c15ull;

  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (PetscCount)((z ^ z >> 31) % (uint64_t)n);
}

/* What the places of a number in tables are made of. Simple numbers differ in their upper bits only. */
EVCHYB_PACK_HD uint32_t EVCHYBPackHash(uint64_t bits)
{
  return (uint32_t)((bits ^ bits >> 32) * 0x9e3779b97f4a7c15ull >> 32);
}

/* Where in the dictionary a number is; ndict where it is not */
EVCHYB_PACK_HD PetscInt EVCHYBPackFind(const PetscReal *dict, PetscInt ndict, PetscReal value)
{
  const EVCHYBPackBits bits = EVCHYBPackBitsOf(value);
  PetscInt             low = 0, high = ndict;

  while (low < high) {
    const PetscInt middle = low + (high - low) / 2;

    if (EVCHYBPackBitsOf(dict[middle]) < bits) low = middle + 1;
    else high = middle;
  }
  return low < ndict && EVCHYBPackBitsOf(dict[low]) == bits ? low : ndict;
}

/* Rows of a sample of slices, about, and of one with a stride, which only the rows of several unknowns per point are worth; its groups are spread evenly over the matrix */
#define EVCHYB_PACK_SAMPLE         (1 << 15)
#define EVCHYB_PACK_SAMPLE_STRIDED (1 << 13)

/* Entries that are looked at for the long rows of a sample, and entries of each piece that are enough for it */
#define EVCHYB_PACK_PIECE_LOOKS 1024
#define EVCHYB_PACK_SAMPLED     1024

typedef struct {
  int64_t bytes, entries;
  int64_t saved;   /* of the bytes, by shared offsets */
  int64_t least;   /* bytes that the entries take in any order: values as they are stored, lines without gaps, and slices */
  int64_t columns; /* bytes of their columns in lines without gaps, if these are as far apart as in the lines with gaps */
} EVCHYBPackCost;

#define EVCHYB_PACK_COSTS (EVCHYB_PACK_STRIDES + 1) /* of rows by each stride, the first one of rows in a given order, and the last one of pieces */

/* Rows, as far as it depends on them whether a matrix is packed */
typedef struct {
  int64_t nempty, nlong;
  int64_t entries, pieces; /* of the long ones */
  int64_t longest;         /* entries of one of the others */
} EVCHYBPackLengths;

/* What a matrix has to be like to be packed */
typedef struct {
  PetscBool      asked; /* nothing */
  PetscBool      sorts; /* rows can be sorted */
  PetscInt       longest;
  PetscInt       slices, storedslices; /* slices and pieces at least; with so many of them an entry may take more bytes, as most columns are stored then */
  PetscLogDouble bytes, storedbytes;   /* of an entry, at most */
  PetscCount     nz;
  PetscLogDouble uneven, lines; /* entries of the longest short row, at most, by the mean of these rows, or of all of them: whichever is more */
} EVCHYBPackTerms;

/* Pieces of a long row */
EVCHYB_PACK_HD PetscInt EVCHYBPackPiecesOf(PetscInt len)
{
  return len / EVCHYB_PIECE + (len % EVCHYB_PIECE ? 1 : 0);
}

/* Slices, and pieces of long rows: units of work for warps and thread blocks */
EVCHYB_PACK_HD int64_t EVCHYBPackUnits(PetscInt m, const EVCHYBPackLengths *rows)
{
  return (m - rows->nlong) / EVCHYB_PACK_ROWS + rows->pieces;
}

/* Whether the other warps would wait for the slice of the longest short row, which one warp has, line by line */
EVCHYB_PACK_HD PetscBool EVCHYBPackIsUneven(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows)
{
  const PetscLogDouble longest = (PetscLogDouble)rows->longest, entries = (PetscLogDouble)terms->nz - (PetscLogDouble)rows->entries, num = (PetscLogDouble)m - (PetscLogDouble)(rows->nempty + rows->nlong);

  return (PetscBool)(longest > terms->lines && longest * num > terms->uneven * entries);
}

/* Whether a sample of the entries is to be looked at. Where most rows are empty, plain storage leaves them alone, and packed slices have them all. */
EVCHYB_PACK_HD PetscBool EVCHYBPackMayPay(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows)
{
  return (PetscBool)(terms->asked || (rows->nempty <= m / 2 && EVCHYBPackUnits(m, rows) >= terms->slices && !EVCHYBPackIsUneven(terms, m, rows)));
}

/* Bytes of n entries by a sample of them; as many as in CSR where it has none */
EVCHYB_PACK_HD PetscLogDouble EVCHYBPackBytesBySample(const EVCHYBPackCost *cost, PetscLogDouble n)
{
  const PetscLogDouble csr = sizeof(PetscScalar) + sizeof(int32_t);

  return n * (cost->entries ? (PetscLogDouble)(cost->bytes - cost->saved) / (PetscLogDouble)cost->entries : csr);
}

/* Whether the matrix is packed, by samples of its slices and of pieces of its long rows */
EVCHYB_PACK_HD PetscBool EVCHYBPackPays(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows, const EVCHYBPackCost *slices, const EVCHYBPackCost *pieces)
{
  const PetscLogDouble most = EVCHYBPackUnits(m, rows) >= terms->storedslices ? terms->storedbytes : terms->bytes, nz = (PetscLogDouble)terms->nz, nlong = (PetscLogDouble)rows->entries;

  return (PetscBool)(terms->asked || EVCHYBPackBytesBySample(slices, nz - nlong) + EVCHYBPackBytesBySample(pieces, nlong) <= most * nz);
}

/* Rows stay in the order of the matrix, which reads and writes vectors best, unless sorted rows take a tenth less: whether they could, and whether it is likely */
EVCHYB_PACK_HD PetscBool EVCHYBPackSortingMayPay(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows, const EVCHYBPackCost *cost)
{
  return (PetscBool)(terms->sorts && rows->nlong < m && (PetscLogDouble)cost->least < 0.9 * (PetscLogDouble)cost->bytes);
}

EVCHYB_PACK_HD PetscBool EVCHYBPackSortingIsLikely(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows, const EVCHYBPackCost *cost)
{
  return (PetscBool)(EVCHYBPackSortingMayPay(terms, m, rows, cost) && (PetscLogDouble)cost->least < 0.75 * (PetscLogDouble)cost->bytes);
}

/* Whether rows are worth sorting: the matrix is packed as it is, or could be if its columns then take an eighth less than now, without gaps */
EVCHYB_PACK_HD PetscBool EVCHYBPackSortingMayDecide(const EVCHYBPackTerms *terms, PetscInt m, const EVCHYBPackLengths *rows, const EVCHYBPackCost *slices, const EVCHYBPackCost *pieces)
{
  EVCHYBPackCost sorted = *slices;

  sorted.bytes = slices->least + slices->columns / 8 * 7;
  sorted.saved = 0;
  return (PetscBool)(EVCHYBPackPays(terms, m, rows, slices, pieces) || EVCHYBPackPays(terms, m, rows, &sorted, pieces));
}

/* The stride that takes the fewest bytes per entry; a larger one has to save a thirtieth, as it reads and writes vectors by strides */
EVCHYB_PACK_HD PetscInt EVCHYBPackPickStride(const EVCHYBPackCost cost[EVCHYB_PACK_STRIDES])
{
  int best = 0;

  for (int k = 1; k < EVCHYB_PACK_STRIDES; k++)
    if ((PetscLogDouble)cost[k].bytes * (PetscLogDouble)cost[best].entries < 29. / 30 * (PetscLogDouble)cost[best].bytes * (PetscLogDouble)cost[k].entries) best = k;
  return best + 1;
}

/* How many orders of rows are measured */
EVCHYB_PACK_HD PetscInt EVCHYBPackNumOrders(const EVCHYBPackOrder *order)
{
  return order->perm ? 1 : EVCHYB_PACK_STRIDES;
}

EVCHYB_PACK_HD PetscInt EVCHYBPackNumGroups(const EVCHYBPackOrder *order, PetscInt m)
{
  const PetscInt group = EVCHYB_PACK_ROWS * (order->perm ? 1 : order->stride), rows = order->perm ? order->num : m;

  return rows / group + (rows % group ? 1 : 0);
}

/* Slices of the sample, and which one each is; beyond the last one there may be numbers that are no slice's */
EVCHYB_PACK_HD PetscInt EVCHYBPackSampleSize(const EVCHYBPackOrder *order, PetscInt m)
{
  const PetscInt stride = order->perm ? 1 : order->stride, groups = EVCHYBPackNumGroups(order, m), most = (stride > 1 ? EVCHYB_PACK_SAMPLE_STRIDED : EVCHYB_PACK_SAMPLE) / (EVCHYB_PACK_ROWS * stride);

  return (groups < most ? groups : most) * stride;
}

EVCHYB_PACK_HD PetscInt EVCHYBPackSampled(const EVCHYBPackOrder *order, PetscInt m, PetscInt k)
{
  const PetscInt stride = order->perm ? 1 : order->stride, sampled = EVCHYBPackSampleSize(order, m) / stride;

  return (PetscInt)((PetscInt64)(k / stride) * EVCHYBPackNumGroups(order, m) / sampled) * stride + k % stride;
}

/* What is known of a slice before it is stored */
typedef struct {
  PetscInt         width;
  PetscInt         lines[EVCHYB_PACK_CLASSES]; /* of each class */
  PetscInt         shared;                     /* lines that have the offsets of the line before, */
  int64_t          saved;                      /* and the units which those would take */
  EVCHYBPackClass  rows;                       /* class of its rows */
  EVCHYBPackValues values;
  PetscBool        diagonals; /* lines are diagonals, else the first entries of all rows, the second ones, and so on */
  PetscBool        masks;
  int64_t          entries;
  int64_t          first; /* of a piece of a row: its first entry in CSR, and the lines before it */
  uint32_t         at;
  PetscInt         row;
} EVCHYBPackPlan;

EVCHYB_PACK_HD void EVCHYBPackNoLines(EVCHYBPackPlan *plan)
{
  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) plan->lines[k] = 0;
  plan->shared = 0;
  plan->saved  = 0;
}

/* Counts a line, whose class is that of the line before where it shares. Registers have no index. */
EVCHYB_PACK_HD void EVCHYBPackCountLine(EVCHYBPackPlan *plan, EVCHYBPackClass kind, PetscBool shared)
{
#if defined(__CUDACC__)
  #pragma unroll
#endif
  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) plan->lines[k] += k == (int)kind;
  plan->shared += shared;
  plan->saved += shared ? EVCHYBPackOffsetUnits(kind) : 0;
}

/* Places of what a slice stores: counts of the slices before it */
typedef struct {
  int64_t line, stream, value;
} EVCHYBPackPlaces;

EVCHYB_PACK_HD EVCHYBPackPlaces EVCHYBPackPlacesOf(const EVCHYBPackPlan *plan)
{
  int64_t offsets = EVCHYBPackOffsetUnits(plan->rows) + (plan->masks ? (int64_t)EVCHYBPackMaskUnits(plan->width) : 0) - plan->saved;

  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) offsets += (int64_t)plan->lines[k] * EVCHYBPackOffsetUnits((EVCHYBPackClass)k);
  const EVCHYBPackPlaces p = {plan->width, offsets, (int64_t)plan->width * EVCHYBPackValueUnits(plan->values)};

  return p;
}

/* What a slice is chosen by: the bytes that a product loads, so that shared offsets, which come from a cache, count as those of each line */
EVCHYB_PACK_HD int64_t EVCHYBPackSliceBytes(const EVCHYBPackPlan *plan)
{
  const EVCHYBPackPlaces p = EVCHYBPackPlacesOf(plan);

  return (p.stream + plan->saved + p.value) * EVCHYB_PACK_UNIT + p.line * (int64_t)sizeof(EVCHYBPackLine) + (int64_t)sizeof(EVCHYBPackSlice);
}

EVCHYB_PACK_HD int64_t EVCHYBPackLeastBytes(const EVCHYBPackPlan *plan)
{
  return plan->entries * ((int64_t)EVCHYBPackValueUnits(plan->values) * EVCHYB_PACK_UNIT + (int64_t)sizeof(EVCHYBPackLine)) / EVCHYB_PACK_ROWS + (int64_t)sizeof(EVCHYBPackSlice);
}

EVCHYB_PACK_HD int64_t EVCHYBPackColumnBytes(const EVCHYBPackPlan *plan)
{
  int64_t units = -plan->saved;

  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) units += (int64_t)plan->lines[k] * EVCHYBPackOffsetUnits((EVCHYBPackClass)k);
  return plan->width ? units * EVCHYB_PACK_UNIT * plan->entries / ((int64_t)EVCHYB_PACK_ROWS * plan->width) : 0;
}

/* The same slice by diagonals */
EVCHYB_PACK_HD EVCHYBPackPlan EVCHYBPackByDiagonals(const EVCHYBPackPlan *plan, PetscInt width)
{
  EVCHYBPackPlan by = *plan;

  EVCHYBPackNoLines(&by);
  by.width                      = width;
  by.lines[EVCHYB_PACK_STRIDED] = width;
  by.diagonals                  = PETSC_TRUE;
  by.masks                      = (PetscBool)(plan->entries < (int64_t)EVCHYB_PACK_ROWS * width);
  return by;
}

/* What the entries of a line are: their least and largest columns, and of columns less step for each row in the slice. The number from which offsets count goes to *base. */
EVCHYB_PACK_HD EVCHYBPackClass EVCHYBPackClassOfEntries(PetscInt least, PetscInt largest, PetscInt leastless, PetscInt largestless, PetscInt *base)
{
  *base = leastless == largestless ? leastless : least;
  return leastless == largestless ? EVCHYB_PACK_STRIDED : EVCHYBPackClassFor((uint32_t)(largest - least), PETSC_FALSE);
}

/* The stride of a slice's rows that its columns can have too; 0 for none, by rows in an order that have another */
EVCHYB_PACK_HD PetscInt EVCHYBPackStep(const EVCHYBPackOrder *order, const EVCHYBPackPlan *plan, PetscInt row0, PetscInt row1)
{
  if (!order->perm) return order->stride;
  return plan->rows == EVCHYB_PACK_STRIDED && row1 - row0 <= EVCHYB_PACK_STRIDES && row0 - row1 <= EVCHYB_PACK_STRIDES ? row1 - row0 : 0;
}

/* A piece, as far as it is known without its entries: of a row, from so many of its entries on */
EVCHYB_PACK_HD EVCHYBPackPlan EVCHYBPackPieceAt(const EVCHYBPackOrder *order, const PetscInt i[], PetscInt row, PetscInt at)
{
  EVCHYBPackPlan plan;

  plan.row       = row;
  plan.at        = (uint32_t)(at / EVCHYB_PACK_ROWS);
  plan.first     = (int64_t)i[plan.row] + at;
  plan.entries   = (int64_t)i[plan.row + 1] - plan.first;
  plan.entries   = plan.entries < order->piece ? plan.entries : order->piece;
  plan.width     = (PetscInt)((plan.entries + EVCHYB_PACK_ROWS - 1) / EVCHYB_PACK_ROWS);
  plan.rows      = EVCHYB_PACK_STRIDED;
  plan.diagonals = PETSC_FALSE;
  plan.masks     = PETSC_FALSE;
  plan.values    = EVCHYB_PACK_VALUE;
  EVCHYBPackNoLines(&plan);
  return plan;
}

/* Piece number k of the order, or of its sample: false where the entry that is looked at is not in a long row */
EVCHYB_PACK_HD PetscBool EVCHYBPackPieceOf(const EVCHYBPackOrder *order, PetscInt m, const PetscInt i[], PetscInt k, EVCHYBPackPlan *plan)
{
  PetscInt row, at;

  if (order->looks) {
    const PetscInt entry = (PetscInt)EVCHYBPackLook(k, i[m]);
    PetscInt       end   = m;

    for (row = 0; end - row > 1;) { /* the last row that begins at the entry or before it */
      const PetscInt middle = row + (end - row) / 2;

      if (i[middle] <= entry) row = middle;
      else end = middle;
    }
    if (i[row + 1] - i[row] <= order->longest) return PETSC_FALSE;
    at = (entry - i[row]) / EVCHYB_PIECE * EVCHYB_PIECE;
  } else {
    row = order->pieceRow[k];
    at  = order->pieceAt[k];
  }
  *plan = EVCHYBPackPieceAt(order, i, row, at);
  return PETSC_TRUE;
}

/* A piece that a look finds counts for as many entries as any other: it is found the more often the more entries it has */
EVCHYB_PACK_HD int64_t EVCHYBPackLookWeight(const EVCHYBPackPlan *plan)
{
  return 64 * EVCHYB_PACK_SAMPLED / plan->entries;
}

/* Entries in line k of a piece that has entries of them */
EVCHYB_PACK_HD int EVCHYBPackInLine(int64_t entries, PetscInt k)
{
  return (int)(entries - (int64_t)k * EVCHYB_PACK_ROWS < EVCHYB_PACK_ROWS ? entries - (int64_t)k * EVCHYB_PACK_ROWS : EVCHYB_PACK_ROWS);
}

/* What a stored piece's slice begins with, but for its places */
EVCHYB_PACK_HD EVCHYBPackSlice EVCHYBPackPieceSlice(const EVCHYBPackPlan *plan, const EVCHYBPackPlaces *at)
{
  EVCHYBPackSlice slice;

  slice.line   = at->line;
  slice.value  = (uint32_t)at->value;
  slice.mask   = EVCHYB_PACK_NONE;
  slice.rows   = EVCHYBPackStrided((int32_t)plan->row, 0);
  slice.width  = (uint16_t)plan->width;
  slice.values = (uint8_t)plan->values;
  slice.last   = (uint8_t)EVCHYBPackInLine(plan->entries, plan->width - 1);
  slice.at     = plan->at;
  return slice;
}

/* What columns of a line of one row may grow by from entry to entry: as the second one is from the first, where that is little */
EVCHYB_PACK_HD PetscInt EVCHYBPackPieceStep(PetscInt column0, PetscInt column1)
{
  return column1 > column0 && column1 - column0 <= EVCHYB_PACK_STRIDES ? column1 - column0 : 1;
}

/* Whether indices fit: 32 bits for a column, and for what a line with a stride counts up to where it has no entry at either end */
static inline PetscBool EVCHYBPackIndicesFit(const GallopCSR *csr)
{
  const PetscInt64 most = PETSC_INT32_MAX - 2 * EVCHYB_PACK_STRIDES * EVCHYB_PACK_ROWS;

  return (PetscBool)(csr->m <= most && csr->n <= most);
}

/* Whether places fit: those in stream into a line's info, those of values into 32 bits */
static inline PetscBool EVCHYBPackPlacesFit(const EVCHYBPackPlaces *all)
{
  return (PetscBool)(all->stream < (int64_t)1 << EVCHYB_PACK_INFO_BITS && all->value < (int64_t)EVCHYB_PACK_NONE);
}

/*
  What the GPU has found out about a matrix, for which the host has waited once. It has measured samples of slices, in the order of the matrix, and of pieces, and where the terms are met by these, no row is long,
  and rows are not likely to be sorted, it has planned them: the host decides by the same numbers, and where it decides otherwise, a plan is of no use.
*/
typedef struct {
  EVCHYBPackLengths rows;
  PetscInt          ndict; /* numbers of a dictionary that pays, with which all was measured and planned; 0 for none */
  EVCHYBPackCost    cost[EVCHYB_PACK_COSTS];
  PetscInt          stride; /* of the rows of slices that are planned, 0 where none are */
  EVCHYBPackPlaces  all;    /* where the last one ends */
  EVCHYBPackFigures figures;
  PetscCount        nz;
  EVCHYBPackPlan   *plans; /* on the GPU */
  EVCHYBPackPlaces *places;
  EVCHYBPackBits   *numbers; /* of the dictionary, in no order */
  void             *memory;  /* in which these are; NULL where the GPU has no room for them, and nothing is known */
} EVCHYBPackSurvey;

/*
  In this order, at either place: Begin() looks for a dictionary, or takes what a survey has found, if there was one. Measure() tells what a sample of the slices takes, of rows in an order, or as they come
  with each of the strides, and a sample of pieces; Finish() stores
  the entries, and keeps none where there is no room, or more than the places can tell. maxbytes: 0 for no limit. Refresh() tells whether the new values can be stored as those before them were, by
  either place's own with the same dictionary, by the one for both perhaps with another; if not, the pack is to be made again. Renumber() tells whether all entries that had one number of the
  dictionary have one again: then only the dictionary changes, and may lose its order, which SortDict() brings back, for entries that are all stored again.
*/
PETSC_INTERN PetscErrorCode EVCHYBPackBegin_Host(const GallopCSR *, const EVCHYBPackSurvey *, EVCHYBPack **);
PETSC_INTERN PetscErrorCode EVCHYBPackMeasure_Host(const EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackCost[EVCHYB_PACK_COSTS]);
PETSC_INTERN PetscErrorCode EVCHYBPackFinish_Host(EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, const EVCHYBPackSurvey *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackRefresh_Host(EVCHYBPack *, const GallopCSR *, PetscBool *fits);
PETSC_INTERN PetscErrorCode EVCHYBPackRenumber_Host(EVCHYBPack *, const GallopCSR *, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackSortDict_Host(EVCHYBPack *, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackFree_Host(EVCHYBPack *);
PETSC_INTERN PetscErrorCode EVCHYBPackApply_Host(const EVCHYBPack *, const GallopProduct *);

/* The same where csr is */
PETSC_INTERN PetscErrorCode EVCHYBPackBegin(const GallopCSR *, const EVCHYBPackSurvey *, EVCHYBPack **);
PETSC_INTERN PetscErrorCode EVCHYBPackMeasure(const EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackCost[EVCHYB_PACK_COSTS]);
PETSC_INTERN PetscErrorCode EVCHYBPackFinish(EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, const EVCHYBPackSurvey *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackRefresh(EVCHYBPack *, const GallopCSR *, PetscCount maxbytes, PetscBool *fits);

PETSC_INTERN PetscErrorCode EVCHYBPackDestroy(EVCHYBPack **);
PETSC_INTERN PetscErrorCode EVCHYBPackCopyToHost(const EVCHYBPack *, EVCHYBPack **);
PETSC_INTERN size_t         EVCHYBPackBytes(const EVCHYBPack *);
#if defined(PETSC_HAVE_CUDA)
PETSC_INTERN PetscErrorCode EVCHYBPackSurvey_Device(const GallopCSR *, const EVCHYBPackTerms *, EVCHYBPackSurvey *);
PETSC_INTERN PetscErrorCode EVCHYBPackSurveyFree_Device(EVCHYBPackSurvey *);
PETSC_INTERN PetscErrorCode EVCHYBPackBegin_Device(const GallopCSR *, const EVCHYBPackSurvey *, EVCHYBPack **);
PETSC_INTERN PetscErrorCode EVCHYBPackMeasure_Device(const EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackCost[EVCHYB_PACK_COSTS]);
PETSC_INTERN PetscErrorCode EVCHYBPackFinish_Device(EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, const EVCHYBPackSurvey *, PetscCount maxbytes, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackRefresh_Device(EVCHYBPack *, const GallopCSR *, PetscBool *fits);
PETSC_INTERN PetscErrorCode EVCHYBPackRenumber_Device(EVCHYBPack *, const GallopCSR *, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackSortDict_Device(EVCHYBPack *, PetscBool *done);
PETSC_INTERN PetscErrorCode EVCHYBPackFree_Device(EVCHYBPack *);
#endif
