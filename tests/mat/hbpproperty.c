static char help[] = "Random matrices of many shapes in the HBP format: what its arrays must be, whoever built them, products, Inf and NaN in x; arrays of host and GPU against each other.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/hbp/hbp.h"

typedef enum {
  LAW_RANDOM,
  LAW_BAND,
  LAW_POWER, /* few columns and few rows have most entries */
  LAW_CROSS, /* a full column, and a full row */
  LAW_EMPTY, /* most columns and rows */
  LAW_EQUAL, /* all rows of the same length */
  LAW_DENSE,
  LAW_ONE, /* one entry */
  LAW_COUNT
} Law;

static PetscBool HasEntry(Law law, PetscInt seed, PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  const PetscReal r = TestRandom(seed, i, j), c = TestRandom(seed, -1, j), d = TestRandom(seed, i, -1);

  switch (law) {
  case LAW_RANDOM:
    return (PetscBool)(r < 0.05);
  case LAW_BAND:
    return (PetscBool)(i - j <= 2 && j - i <= 3);
  case LAW_POWER:
    return (PetscBool)(r < 0.002 / (0.002 + c * d));
  case LAW_CROSS:
    return (PetscBool)(j == n / 2 || i == m / 3 || r < 0.02);
  case LAW_EMPTY:
    return (PetscBool)(c < 0.2 && d < 0.2 && r < 0.4);
  case LAW_EQUAL:
    return (PetscBool)((j + 7 * i) % n < PetscMin(3, n));
  case LAW_DENSE:
    return (PetscBool)(r < 0.8);
  default:
    return (PetscBool)(i == m / 2 && j == n / 3);
  }
}

/* A copy whose rows have their columns in another order: as many of them at the end as at the beginning before */
static PetscErrorCode RotateRows(PetscInt seed, Mat *A)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, rows, *ri, *rj;
  PetscScalar       *ra;
  PetscBool          done;
  Mat                B, C;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*A, &m, &n));
  PetscCall(MatGetRowIJ(*A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(*A, &a));
  PetscCall(PetscMalloc3(m + 1, &ri, i[m], &rj, i[m], &ra));
  PetscCall(PetscArraycpy(ri, i, m + 1));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = i[r + 1] - i[r], shift = (PetscInt)(TestRandom(seed, r, -2) * len);

    for (PetscInt k = 0; k < len; k++) {
      rj[i[r] + (k + shift) % len] = j[i[r] + k];
      ra[i[r] + (k + shift) % len] = a[i[r] + k];
    }
  }
  PetscCall(MatSeqAIJRestoreArrayRead(*A, &a));
  PetscCall(MatRestoreRowIJ(*A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, ri, rj, ra, &B));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFree3(ri, rj, ra));
  PetscCall(MatDestroy(A));
  *A = C;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(Law law, PetscInt seed, PetscInt m, PetscInt n, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSetUp(*A));
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt j = 0; j < n; j++)
      if (HasEntry(law, seed, m, n, i, j)) PetscCall(MatSetValue(*A, i, j, TestValue(seed, i, j), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the format is built with */
typedef struct {
  PetscInt block_rows, block_cols, shared_x, map, long_row, lane_entries, fixed;
} Setting;

static const Setting settings[] = {
  {0,    0,     HBP_SHARED_CHOOSE, HBP_MAP_CHOOSE, 0,    0,    -1 }, /* the defaults */
  {0,    0,     HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 1500, 2,    100},
  {0,    0,     HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 20,   2000, 0  },
  {1,    1,     HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 0,    0,    70 },
  {7,    100,   HBP_SHARED_CHOOSE, HBP_MAP_NEVER,  0,    3,    70 },
  {33,   7,     HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 2000, 2,    100},
  {100,  33,    HBP_SHARED_NEVER,  HBP_MAP_NEVER,  3,    0,    0  },
  {1,    33,    HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 0,    2,    70 },
  {512,  4096,  HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 0,    2000, 70 }, /* the paper's */
  {512,  1,     HBP_SHARED_CHOOSE, HBP_MAP_CHOOSE, 2000, 0,    0  },
  {2048, 1000,  HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 1500, 7,    100},
  {9,    65536, HBP_SHARED_CHOOSE, HBP_MAP_ALWAYS, 1,    0,    70 }, /* one column of blocks */
  {20,   128,   HBP_SHARED_CHOOSE, HBP_MAP_CHOOSE, 50,   5,    70 },
  {300,  0,     HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 0,    20,   100},
  {0,    50,    HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 0,    2,    0  },
  {1,    16,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 0,    0,    70 }, /* maps of one chunk */
  {1,    40,    HBP_SHARED_CHOOSE, HBP_MAP_ALWAYS, 0,    2,    100}, /* chunks do not fill a block */
  {3,    48,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 20,   3,    0  },
  {5,    64,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 3,    2,    25 },
  {5,    300,   HBP_SHARED_CHOOSE, HBP_MAP_ALWAYS, 0,    0,    -1 },
  {7,    96,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 50,   7,    70 },
  {33,   64,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 2000, 20,   70 },
  {2,    32,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 0,    3,    70 },
  {16,   48,    HBP_SHARED_CHOOSE, HBP_MAP_ALWAYS, 100,  0,    100},
  {33,   1000,  HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 0,    2,    -1 },
  {0,    80,    HBP_SHARED_CHOOSE, HBP_MAP_ALWAYS, 1,    0,    0  },
  {300,  15,    HBP_SHARED_NEVER,  HBP_MAP_ALWAYS, 0,    2,    70 }, /* there is no room for a chunk */
  {5,    100,   HBP_SHARED_ALWAYS, HBP_MAP_ALWAYS, 0,    5,    -1 },
};

/* How many formats have maps in all, some, none of their blocks of rows with entries, where there may be maps */
enum { MAPS_ALL, MAPS_SOME, MAPS_NONE, MAPS_COUNT };

static PetscInt met[MAPS_COUNT];

#define PROPERTY(cond, ...) PetscCheck(cond, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", setting %" PetscInt_FMT ": " __VA_ARGS__)

/*
  7/8 of the sampled lengths, of whole rows where there may be maps, are in all classes but the last, and would not be were there half as many of each class; the longest has a place of its own class, as
  fine as there are places
*/
static PetscErrorCode CheckHash(const HBP *h, const PetscInt i[], const PetscInt j[], PetscInt setting, PetscInt number)
{
  const HBPHash *hash = &h->hash;
  PetscInt       all = 0, below = 0, half = 0, longest = 0, power = 1;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < HBP_SAMPLES; k++) {
    const PetscInt row = (PetscInt)(k * h->m / HBP_SAMPLES), end = PetscMin(i[row + 1], i[row] + HBP_LOOK);

    for (PetscInt e = i[row], len = 1; e < end; e++, len++) {
      if (e < end - 1 && (h->mapChunks || j[e] / h->M == j[e + 1] / h->M)) continue;
      all++;
      below += len < 8 << hash->a;
      half += len < 4 << hash->a;
      longest = PetscMax(longest, len);
      len     = 0;
    }
  }
  while (power <= longest) power *= 2;
  PROPERTY(8 * below >= 7 * all && (!hash->a || 8 * half < 7 * all), "a of the hash is %" PetscInt_FMT, number, setting, hash->a);
  PROPERTY(hash->b == PetscMax(1, PetscMin(h->N / 8, 64)) && hash->d == 1, "b of the hash is %" PetscInt_FMT ", d %" PetscInt_FMT, number, setting, hash->b, hash->d);
  PROPERTY((HBPFine(power >> hash->c) < hash->b || power >> hash->c == 1) && (!hash->c || HBPFine(power >> (hash->c - 1)) >= hash->b), "c of the hash is %" PetscInt_FMT, number, setting, hash->c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with more entries than the limit, as they are in CSR, and their pieces */
static PetscErrorCode CheckLongRows(const HBP *h, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscInt setting, PetscInt number)
{
  const GallopLongRows *l = &h->longRows;
  PetscInt              t = 0, at = 0, piece = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < h->m; r++) {
    if (i[r + 1] - i[r] <= h->longRow) continue;
    PROPERTY(t < l->num && l->row[t] == r && l->ptr[t] == at && l->firstPiece[t] == piece, "row %" PetscInt_FMT " is long", number, setting, r);
    for (PetscInt k = i[r]; k < i[r + 1]; k++, at++) {
      PROPERTY(h->longCol[at] == j[k] && h->data[h->blknz + at] == a[k], "entry %" PetscInt_FMT " of long row %" PetscInt_FMT, number, setting, k - i[r], r);
      if ((k - i[r]) % HBP_PIECE) continue;
      PROPERTY(piece < l->pieceNum && l->pieceRow[piece] == t && l->pieceAt[piece] == at, "piece %" PetscInt_FMT " of long row %" PetscInt_FMT, number, setting, piece, r);
      piece++;
    }
    t++;
  }
  PROPERTY(l->num == t && l->ptr[t] == at && l->nz == at && h->blknz == h->nz - at, "%" PetscInt_FMT " long rows, should be %" PetscInt_FMT, number, setting, l->num, t);
  PROPERTY(l->pieceNum == piece && l->firstPiece[t] == piece, "%" PetscInt_FMT " pieces of long rows, should be %" PetscInt_FMT, number, setting, l->pieceNum, piece);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Partial sums of a block of rows in pieces, in each by rows and else as they were, from the row of each in its block */
static PetscErrorCode CheckCombine(const HBP *h, const PetscInt row[], PetscInt setting, PetscInt number)
{
  const PetscInt most = (PetscInt)(32768 / sizeof(PetscScalar));
  PetscInt      *order, piece = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(most, &order));
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    PROPERTY(h->combinePtr[rb] == piece, "pieces of row block %" PetscInt_FMT " begin with %" PetscInt_FMT, number, setting, rb, h->combinePtr[rb]);
    for (PetscInt begin = h->partialPtr[rb]; begin < h->partialPtr[rb + 1]; begin += most, piece++) {
      const PetscInt        count = PetscMin(most, h->partialPtr[rb + 1] - begin);
      const unsigned short *ends  = h->combineEnd + piece * h->N;

      PROPERTY(piece < h->combineNum, "piece %" PetscInt_FMT, number, setting, piece);
      for (PetscInt k = 0; k < count; k++) order[k] = -1;
      for (PetscInt k = 0; k < count; k++) {
        PROPERTY(h->combinePos[begin + k] < count && order[h->combinePos[begin + k]] < 0, "place of partial sum %" PetscInt_FMT, number, setting, begin + k);
        order[h->combinePos[begin + k]] = begin + k;
      }
      for (PetscInt k = 1; k < count; k++)
        PROPERTY(row[order[k - 1]] < row[order[k]] || (row[order[k - 1]] == row[order[k]] && order[k - 1] < order[k]), "partial sum %" PetscInt_FMT " is not in order", number, setting, order[k]);
      for (PetscInt r = 0, k = 0; r < h->N; r++) {
        while (k < count && row[order[k]] == r) k++;
        PROPERTY(ends[r] == k, "row %" PetscInt_FMT " of piece %" PetscInt_FMT " ends at %d", number, setting, r, piece, ends[r]);
      }
    }
  }
  PROPERTY(h->combineNum == piece && h->combinePtr[h->rowBlocks] == piece, "%" PetscInt_FMT " pieces, should be %" PetscInt_FMT, number, setting, h->combineNum, piece);
  PetscCall(PetscFree(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* log2 of the lanes of a segment: the shortest one with the same hash leaves its lanes fewer entries than would become more */
static int LanesOf(const HBP *h, PetscInt len)
{
  const PetscInt hash  = HBPHashOf(&h->hash, len);
  int            lanes = 0;

  while (len > 1 && HBPHashOf(&h->hash, len - 1) == hash) len--;
  while (lanes < 5 && len / (1 << lanes) >= h->laneEntries) lanes++;
  return lanes;
}

/*
  Which blocks of rows have maps, and these: of each block of rows and chunk of columns, its place in the map, -1 in all places of a block of rows without one. Returns the columns of blocks: one where all
  entries are in blocks of rows with maps.
*/
static PetscErrorCode CheckMaps(const HBP *h, const PetscInt i[], const PetscInt j[], PetscInt place[], PetscInt *cols, PetscInt setting, PetscInt number)
{
  const Setting *o   = &settings[setting];
  const PetscInt all = (h->n + HBP_CHUNK - 1) / HBP_CHUNK, most = h->M / HBP_CHUNK;
  PetscInt       at = 0, mapped = 0, plain = 0;

  PetscFunctionBegin;
  *cols = (h->n + h->M - 1) / h->M;
  /* where the format chooses, such matrices have one column of blocks */
  PROPERTY(h->mapChunks == (o->map == HBP_MAP_ALWAYS && !h->shared && *cols > 1 ? most : 0) && !h->mapPtr == !h->mapChunks, "a map may have %" PetscInt_FMT " chunks", number, setting, h->mapChunks);
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    PetscInt *of = place + rb * all, num = 0;

    for (PetscInt c = 0; c < all; c++) of[c] = -1;
    if (!h->mapChunks) continue;
    for (PetscInt r = rb * h->N; r < PetscMin(h->m, (rb + 1) * h->N); r++)
      for (PetscInt k = i[r]; k < i[r + 1] && i[r + 1] - i[r] <= h->longRow; k++) of[j[k] / HBP_CHUNK] = 0;
    for (PetscInt c = 0; c < all; c++)
      if (!of[c]) of[c] = num++;
    PROPERTY(h->mapPtr[rb] == at && h->mapPtr[rb + 1] == at + (num > most ? 0 : num), "row block %" PetscInt_FMT " has entries in %" PetscInt_FMT " chunks, and a map of %" PetscInt_FMT, number, setting, rb, num, h->mapPtr[rb + 1] - h->mapPtr[rb]);
    for (PetscInt c = 0; c < all; c++) {
      if (num > most) of[c] = -1;
      PROPERTY(of[c] < 0 || h->map[at + of[c]] == c * HBP_CHUNK, "place %" PetscInt_FMT " of the map of row block %" PetscInt_FMT " is %" PetscInt_FMT, number, setting, of[c], rb, h->map[at + of[c]]);
    }
    if (num > most) plain++;
    else {
      at += num;
      mapped += num > 0;
    }
  }
  PROPERTY(h->mapped == mapped && h->mapNum == at, "%" PetscInt_FMT " maps of %" PetscInt_FMT " places, should be %" PetscInt_FMT " of %" PetscInt_FMT, number, setting, h->mapped, h->mapNum, mapped, at);
  if (h->mapChunks && !plain) *cols = 1;
  if (mapped && plain) met[MAPS_SOME]++;
  else if (mapped) met[MAPS_ALL]++;
  else if (plain) met[MAPS_NONE]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The bytes of all arrays but the workspace */
static PetscErrorCode CheckBytes(const HBP *h, PetscInt setting, PetscInt number)
{
  const GallopLongRows *l      = &h->longRows;
  const size_t          blocks = (size_t)h->blkNum + 1 + (size_t)h->colBlocks + 1, rows = (2 + !!h->mapPtr) * ((size_t)h->rowBlocks + 1) + (size_t)h->mapNum;
  const size_t          longs = 3 * (size_t)l->num + 2 + 2 * (size_t)l->pieceNum + (size_t)l->nz, places = h->csrIdx ? (size_t)h->blknz : 0;
  const size_t shorts = (h->longest > HBP_PACKED ? 2 : 1) * (size_t)h->segNum + (size_t)h->blknz + (size_t)h->partialNum + (size_t)(h->combineNum * h->N), bits = (size_t)(h->rowBlocks * HBPWords(h->N)) * 4;
  const size_t bytes = (blocks + rows + longs + places) * sizeof(PetscInt) + 2 * shorts + bits + ((size_t)h->groupNum + 1) * sizeof(HBPGroup) + (size_t)h->nz * sizeof(PetscScalar);

  PetscFunctionBegin;
  PROPERTY(h->bytes == bytes, "%g bytes, should be %g", number, setting, (double)h->bytes, (double)bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What holds for the arrays of any matrix. Each segment of each block is met once, as their order is strict, and so is each entry. */
static PetscErrorCode CheckArrays(Mat A, const HBP *h, PetscInt setting, PetscInt number)
{
  const Setting     *o = &settings[setting];
  const PetscInt     N = h->N, M = h->M, narrow = (PetscInt)((64 << 10) / sizeof(PetscScalar)), chunks = (h->n + HBP_CHUNK - 1) / HBP_CHUNK;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, rows, cols, blk = 0, g = 0, seg = 0, ptr = 0, partials = 0, most = 0;
  PetscInt          *sorted, *from;        /* columns in increasing order, and where each is in CSR */
  PetscInt          *first, *len, *blocks; /* of each row and column of blocks: its entries; of each row: how many blocks it has entries in, none of a long one */
  PetscInt          *place;                /* of each block of rows and chunk, see CheckMaps() */
  PetscInt          *partial, *partialRow; /* of each block, row by row: its first partial sum; of each partial sum: its row in the block */
  PetscBool          done, plain = PETSC_FALSE, unsorted = PETSC_FALSE, alone = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  rows = (m + N - 1) / N;
  PetscCall(PetscMalloc1(rows * chunks, &place));
  PROPERTY(h->m == m && h->n == n && h->nz == i[m] && h->rowBlocks == rows, "numbers", number, setting);
  PetscCall(CheckMaps(h, i, j, place, &cols, setting, number));
  PROPERTY(h->colBlocks == cols, "%" PetscInt_FMT " columns of blocks, should be %" PetscInt_FMT, number, setting, h->colBlocks, cols);
  PROPERTY(o->block_rows ? N == o->block_rows : N >= 512 && N <= HBP_MAX_ROWS, "%" PetscInt_FMT " rows a block", number, setting, N);
  PROPERTY(o->block_cols ? M == o->block_cols : M >= 1 && M <= (h->shared ? narrow : HBP_MAX_COLS), "%" PetscInt_FMT " columns a block", number, setting, M);
  PROPERTY(h->shared == (o->shared_x == HBP_SHARED_ALWAYS) || (h->shared && o->shared_x == HBP_SHARED_CHOOSE && cols > 1), "x in shared memory", number, setting);
  PROPERTY(h->longRow == (o->long_row ? o->long_row : h->shared ? 16384 : 1024), "rows with more than %" PetscInt_FMT " entries are long", number, setting, h->longRow);
  PROPERTY(h->laneEntries == (o->lane_entries ? o->lane_entries : h->shared ? 8 : 16), "lanes with %" PetscInt_FMT " entries", number, setting, h->laneEntries);
  PetscCall(CheckHash(h, i, j, setting, number));
  PetscCall(CheckLongRows(h, i, j, a, setting, number));

  PetscCall(PetscMalloc2(h->nz, &sorted, h->nz, &from));
  PetscCall(PetscCalloc4(m * cols, &first, m * cols, &len, m, &blocks, rows * cols, &partial));
  PetscCall(PetscArraycpy(sorted, j, h->nz));
  for (PetscInt k = 0; k < h->nz; k++) from[k] = k;
  for (PetscInt rb = 0; rb < rows; rb++) { /* with a map any order will do, and in long rows if all others have maps */
    PetscBool mapped = PETSC_FALSE;

    for (PetscInt c = 0; c < chunks; c++) mapped = (PetscBool)(mapped || place[rb * chunks + c] >= 0);
    for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N) && !mapped; r++) {
      if (i[r + 1] > i[r] && i[r + 1] - i[r] <= h->longRow) plain = PETSC_TRUE;
      for (PetscInt k = i[r] + 1; k < i[r + 1]; k++) unsorted = (PetscBool)(unsorted || j[k] < j[k - 1]);
    }
  }
  if (h->mapChunks && !plain) unsorted = PETSC_FALSE;
  for (PetscInt r = 0; r < m; r++) {
    if (unsorted) PetscCall(PetscSortIntWithArray(i[r + 1] - i[r], sorted + i[r], from + i[r]));
    for (PetscInt k = i[r]; k < i[r + 1] && i[r + 1] - i[r] <= h->longRow; k++) {
      const PetscInt at = r * cols + (place[r / N * chunks + sorted[k] / HBP_CHUNK] < 0 ? sorted[k] / M : 0);

      if (!len[at]) {
        first[at] = k;
        blocks[r]++;
      }
      len[at]++;
    }
    if (blocks[r] != 1) alone = PETSC_FALSE;
  }
  PROPERTY(!!h->csrIdx == (unsorted && h->blknz) && h->alone == alone, "csrIdx, alone", number, setting);
  for (PetscInt rb = 0; rb < rows; rb++) {
    PROPERTY(h->partialPtr[rb] == partials, "partial sums of row block %" PetscInt_FMT " begin at %" PetscInt_FMT, number, setting, rb, h->partialPtr[rb]);
    for (PetscInt cb = 0; cb < cols; cb++) {
      partial[rb * cols + cb] = partials;
      for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N); r++) partials += blocks[r] > 1 && len[r * cols + cb];
    }
    for (PetscInt k = 0; k < HBPWords(N) * 32; k++) {
      const PetscInt  r      = rb * N + k;
      const PetscBool direct = (PetscBool)(k < N && r < m && (blocks[r] == 1 || i[r + 1] - i[r] > h->longRow));

      PROPERTY((h->direct[rb * HBPWords(N) + k / 32] >> k % 32 & 1) == (unsigned int)direct, "direct bit of row %" PetscInt_FMT, number, setting, r);
    }
  }
  PROPERTY(h->partialPtr[rows] == partials && h->partialNum == partials, "%" PetscInt_FMT " partial sums, should be %" PetscInt_FMT, number, setting, h->partialNum, partials);

  PetscCall(PetscMalloc1(partials, &partialRow));
  for (PetscInt cb = 0; cb < cols; cb++) {
    PROPERTY(h->colGroup[cb] == g, "column %" PetscInt_FMT " of blocks begins with group %" PetscInt_FMT, number, setting, cb, h->colGroup[cb]);
    for (PetscInt rb = 0; rb < rows; rb++) {
      const PetscInt none = h->mapPtr && h->mapPtr[rb] < h->mapPtr[rb + 1] ? -2 - h->mapPtr[rb] : -1; /* out without partial sums */
      PetscInt       segs = 0, next = partial[rb * cols + cb], lasthash = -1, lastrow = -1;

      for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N); r++) segs += len[r * cols + cb] > 0;
      if (!segs) continue;
      PROPERTY(blk < h->blkNum && h->begin_nnz[blk] == ptr, "block %" PetscInt_FMT, number, setting, blk);
      blk++;
      for (PetscInt s = 0, count; s < segs; s += count, g++) {
        PetscInt row[HBP_GROUP], out = none, longest = 0, shortest = PETSC_INT_MAX; /* entries of lanes */
        int      lanes = 0;

        PROPERTY(g < h->groupNum && h->group[g].begin_ptr == ptr && h->group[g].seg == seg, "group %" PetscInt_FMT, number, setting, g);
        for (count = 0; s + count < segs; count++, seg++) {
          const PetscInt offset = HBPOutputRow(h->output_hash[seg]), r = rb * N + offset, at = r * cols + cb;
          PetscInt       hash;

          PROPERTY(offset < N && r < m && len[at] && HBPLength(h->output_hash, h->nnz_perrow, seg) == len[at], "segment %" PetscInt_FMT, number, setting, seg);
          most = PetscMax(most, len[at]);
          if (!count) lanes = LanesOf(h, len[at]);
          if (LanesOf(h, len[at]) != lanes || count == HBP_GROUP >> lanes) break;
          hash = HBPHashOf(&h->hash, len[at]);
          PROPERTY(hash >= 0 && hash < HBPHashes(&h->hash) && (hash > lasthash || (hash == lasthash && r > lastrow)), "segment %" PetscInt_FMT " with hash %" PetscInt_FMT " is not in order", number, setting, seg, hash);
          PROPERTY(!!(h->output_hash[seg] & HBP_FLAG) == (blocks[r] == 1), "flag of segment %" PetscInt_FMT, number, setting, seg);
          if (blocks[r] > 1) {
            if (out == none) out = next;
            partialRow[next++] = offset;
          }
          row[count] = r;
          lasthash   = hash;
          lastrow    = r;
          longest    = PetscMax(longest, (len[at] - 1) / (1 << lanes) + 1);
          shortest   = PetscMin(shortest, len[at] / (1 << lanes));
        }
        PROPERTY(shortest > 0, "a lane of group %" PetscInt_FMT " has no entry", number, setting, g);
        PROPERTY(h->group[g].out == out, "first partial sum of group %" PetscInt_FMT " is %" PetscInt_FMT, number, setting, g, h->group[g].out);
        PROPERTY(h->group[g].info == rb * 16 + (shortest == longest ? 8 : 0) + lanes, "info of group %" PetscInt_FMT " is %" PetscInt_FMT, number, setting, g, h->group[g].info);
        for (PetscInt k = 0; k < longest; k++) {
          for (PetscInt l = 0; l < count << lanes; l++) {
            const PetscInt at = row[l >> lanes] * cols + cb, of = k * (1 << lanes) + l % (1 << lanes), entry = first[at] + of;
            PetscInt       in;

            if (of >= len[at]) continue;
            in = place[rb * chunks + sorted[entry] / HBP_CHUNK];
            PROPERTY(ptr < h->blknz && h->col[ptr] == (in < 0 ? sorted[entry] % M : in * HBP_CHUNK + sorted[entry] % HBP_CHUNK) && h->data[ptr] == a[from[entry]], "entry %" PetscInt_FMT, number, setting, ptr);
            PROPERTY(!unsorted || h->csrIdx[ptr] == from[entry], "csrIdx of entry %" PetscInt_FMT, number, setting, ptr);
            ptr++;
          }
        }
      }
    }
  }
  PROPERTY(h->blkNum == blk && h->begin_nnz[blk] == ptr && ptr == h->blknz, "%" PetscInt_FMT " blocks, should be %" PetscInt_FMT, number, setting, h->blkNum, blk);
  PROPERTY(h->groupNum == g && h->colGroup[cols] == g && h->segNum == seg, "%" PetscInt_FMT " groups, should be %" PetscInt_FMT, number, setting, h->groupNum, g);
  PROPERTY(h->longest == most && !h->nnz_perrow == (most <= HBP_PACKED), "the longest segment has %" PetscInt_FMT " entries", number, setting, most);
  PROPERTY(h->group[g].begin_ptr == ptr && h->group[g].seg == seg && h->group[g].out == -1, "the end of groups", number, setting);
  PetscCall(CheckCombine(h, partialRow, setting, number));
  PetscCall(CheckBytes(h, setting, number));
  PetscCall(PetscFree(partialRow));
  PetscCall(PetscFree2(sorted, from));
  PetscCall(PetscFree(place));
  PetscCall(PetscFree4(first, len, blocks, partial));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors of a type */
static PetscErrorCode CheckProducts(Mat A, Mat B, VecType vectype, PetscInt number, PetscInt setting)
{
  Vec                 x, y, z, u;
  PetscInt            m, n;
  MatGallopStatistics before, after;
  PetscBool           device;
  char                what[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", setting %" PetscInt_FMT, number, setting));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &device));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, n, n));
  PetscCall(VecSetType(x, vectype));
  PetscCall(VecCreate(PETSC_COMM_SELF, &z));
  PetscCall(VecSetSizes(z, m, m));
  PetscCall(VecSetType(z, vectype));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(TestSetVec(x, number));
  PetscCall(TestSetVec(y, number + 1));
  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(TestAdds(B, A, TEST_MULT, x, y, z, what));

  PetscCall(TestTransposed(B, A, x, y, u, what));

  PetscCall(TestSpecial(B, A, TEST_MULT, x, z, what));
  PetscCall(TestSpecial(B, A, TEST_TRANSPOSE, y, u, what));
  PetscCall(MatGallopGetStatistics(B, &after));
  PROPERTY((device ? after.products_device - before.products_device : after.products_host - before.products_host) == 10 && after.fallbacks == before.fallbacks, "not all products were the format's", number, setting);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SAME(what, n) PROPERTY(!memcmp(h->what, d->what, (size_t)(n) * sizeof(*h->what)), "host and GPU differ in " #what, number, setting)

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt number, PetscInt setting)
{
  const void *data;
  HBP        *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, &data));
  PROPERTY(data, "no format", number, setting);
  PetscCall(HBPCopyToHost((const HBP *)data, &h));
  PetscCall(CheckArrays(A, h, setting, number));
  if (device) {
    PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, &data));
    PROPERTY(data, "no format on the GPU", number, setting);
    PetscCall(HBPCopyToHost((const HBP *)data, &d));
    PROPERTY(h->N == d->N && h->M == d->M && h->rowBlocks == d->rowBlocks && h->colBlocks == d->colBlocks && h->shared == d->shared && h->alone == d->alone && !memcmp(&h->hash, &d->hash, sizeof(h->hash)), "host and GPU differ", number, setting);
    PROPERTY(h->m == d->m && h->n == d->n && h->nz == d->nz && h->blkNum == d->blkNum && h->groupNum == d->groupNum && h->segNum == d->segNum && h->partialNum == d->partialNum, "host and GPU differ", number, setting);
    PROPERTY(h->longRow == d->longRow && h->laneEntries == d->laneEntries && h->blknz == d->blknz && h->combineNum == d->combineNum && h->longRows.num == d->longRows.num &&
               h->longRows.pieceNum == d->longRows.pieceNum && (!h->csrIdx == !d->csrIdx || !h->blknz),
             "host and GPU differ", number, setting);
    PROPERTY(h->mapChunks == d->mapChunks && h->mapped == d->mapped && h->mapNum == d->mapNum && !h->mapPtr == !d->mapPtr, "host and GPU differ in maps", number, setting);
    SAME(begin_nnz, h->blkNum + 1);
    SAME(colGroup, h->colBlocks + 1);
    SAME(group, h->groupNum + 1);
    SAME(output_hash, h->segNum);
    PROPERTY(h->longest == d->longest && !h->nnz_perrow == !d->nnz_perrow, "host and GPU differ in the longest segment", number, setting);
    if (h->nnz_perrow) SAME(nnz_perrow, h->segNum);
    SAME(col, h->blknz);
    SAME(data, h->nz);
    SAME(partialPtr, h->rowBlocks + 1);
    SAME(combinePtr, h->rowBlocks + 1);
    SAME(combinePos, h->partialNum);
    SAME(combineEnd, h->combineNum * h->N);
    SAME(direct, h->rowBlocks * HBPWords(h->N));
    if (h->mapPtr) {
      SAME(mapPtr, h->rowBlocks + 1);
      SAME(map, h->mapNum);
    }
    SAME(longRows.row, h->longRows.num);
    SAME(longRows.ptr, h->longRows.num + 1);
    SAME(longRows.pieceRow, h->longRows.pieceNum);
    SAME(longRows.pieceAt, h->longRows.pieceNum);
    SAME(longRows.firstPiece, h->longRows.num + 1);
    SAME(longCol, h->nz - h->blknz);
    if (h->csrIdx) SAME(csrIdx, h->blknz);
    PetscCall(HBPDestroyHostCopy(&d));
  }
  PetscCall(HBPDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt sizes[]   = {1, 2, 7, 31, 32, 33, 63, 64, 65, 97, 129, 200};
  const PetscInt        nsettings = PETSC_STATIC_ARRAY_LENGTH(settings);
  PetscInt              matrices = 130, first = 0, each = 2;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-each", &each, NULL)); /* settings a matrix */
  for (PetscInt number = first; number < first + matrices; number++) {
    PetscInt m = sizes[(size_t)(TestRandom(number, 0, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))], n = number % 3 ? m : sizes[(size_t)(TestRandom(number, 1, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))];
    Mat      A;
    MatInfo  info;

    if (number % 7 == 2) m = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* tall */
    if (number % 7 == 5) n = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* wide */
    PetscCall(CreateMatrix((Law)(number % LAW_COUNT), number, m, n, &A));
    if (!PetscDefined(USE_DEBUG) && number % 5 == 3) PetscCall(RotateRows(number, &A)); /* a PETSc with debugging refuses such arrays */
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    for (PetscInt k = 0; k < each; k++) {
      const PetscInt      setting = (number / LAW_COUNT * each + number % LAW_COUNT + k) % nsettings;
      Mat                 B, C;
      VecType             vectype;
      PetscBool           device;
      MatGallopStatistics stats;

      PetscCall(TestSetIntOption("-mat_hbp_block_rows", settings[setting].block_rows));
      PetscCall(TestSetIntOption("-mat_hbp_block_cols", settings[setting].block_cols));
      PetscCall(TestSetIntOption("-mat_hbp_shared_x", settings[setting].shared_x));
      PetscCall(TestSetIntOption("-mat_hbp_map", settings[setting].map));
      PetscCall(TestSetIntOption("-mat_hbp_fixed", settings[setting].fixed));
      PetscCall(TestSetIntOption("-mat_hbp_long_row", settings[setting].long_row));
      PetscCall(TestSetIntOption("-mat_hbp_lane_entries", settings[setting].lane_entries));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
      PetscCall(MatConvert(C, MATHBP, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatGetVecType(B, &vectype));
      PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
      for (int values = 0; values < 2; values++) { /* new values in the same pattern the second time */
        PetscCall(CheckProducts(C, B, VECSEQ, number, setting));
        if (device) PetscCall(CheckProducts(C, B, VECSEQCUDA, number, setting));
        if (info.nz_used > 0) PetscCall(CheckFormat(C, B, device, number, setting));
        PetscCall(MatScale(C, -1.5));
        PetscCall(MatScale(B, -1.5));
      }
      PetscCall(MatGallopGetStatistics(B, &stats));
      if (info.nz_used > 0)
        PROPERTY(stats.builds == 1 + device && stats.refreshes == 1 + device, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", number, setting, stats.builds, stats.refreshes);
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
    }
    PetscCall(MatDestroy(&A));
  }
  if (matrices >= 130 && each >= 2)
    for (int k = 0; k < MAPS_COUNT; k++) PetscCheck(met[k] >= 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "maps in all, some or none of the blocks of rows: %" PetscInt_FMT " formats of kind %d", met[k], k);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
    test:
      suffix: 2
      args: -first 130
    test:
      suffix: 3
      args: -first 260
    test:
      suffix: 4
      args: -first 390

TEST*/
