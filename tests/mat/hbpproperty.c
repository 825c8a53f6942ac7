/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Random matrices of many shapes in the HBP format: what its arrays must be, whoever built them, products, Inf and NaN in x; arrays of host and GPU against each other.\n\n";

#include "hbptest.h"

/* A copy whose rows have their columns in another order: those from some place on first, then those before it */
static PetscErrorCode RotateRows(PetscInt seed, Mat *A)
{
  PetscInt    m, n;
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*A, &m, &n));
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    PetscInt           len;
    const PetscInt    *j;
    const PetscScalar *a;

    PetscCall(MatGetRow(*A, r, &len, &j, &a));
    for (PetscInt k = 0, shift = (PetscInt)(TestRandom(seed, r, -2) * len); k < len; k++) PetscCall(TestEntriesPut(&e, j[(k + len - shift) % len], a[(k + len - shift) % len]));
    PetscCall(MatRestoreRow(*A, r, &len, &j, &a));
    TestEntriesEndRow(&e);
  }
  PetscCall(MatDestroy(A));
  PetscCall(TestEntriesEndAsPut(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(TestLaw law, PetscInt number, Mat *A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  TestPropertySize(number, &m, &n);
  if (number % 7 == 2) m = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* tall */
  if (number % 7 == 5) n = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* wide */
  PetscCall(TestCreateByLaw(law, number, m, n, A));
  if (!PetscDefined(USE_DEBUG) && number % 5 == 3) PetscCall(RotateRows(number, A)); /* a PETSc with debugging refuses such arrays */
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

/* How many formats that may have maps have them in all, some or none of their blocks of rows with entries */
enum { MAPS_ALL, MAPS_SOME, MAPS_NONE, MAPS_COUNT };

static PetscInt met[MAPS_COUNT];

/*
  7/8 of the sampled lengths, of whole rows where there may be maps, are in all classes but the last, and would not be were there half as many of each class; the longest has a place of its own class, as
  fine as there are places
*/
static PetscErrorCode CheckHash(const HBP *h, const PetscInt i[], const PetscInt j[], const char what[])
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
  TestCheck(8 * below >= 7 * all && (!hash->a || 8 * half < 7 * all), "a of the hash is %" PetscInt_FMT, what, hash->a);
  TestCheck(hash->b == PetscMax(1, PetscMin(h->N / 8, 64)) && hash->d == 1, "b of the hash is %" PetscInt_FMT ", d %" PetscInt_FMT, what, hash->b, hash->d);
  TestCheck((HBPFine(power >> hash->c) < hash->b || power >> hash->c == 1) && (!hash->c || HBPFine(power >> (hash->c - 1)) >= hash->b), "c of the hash is %" PetscInt_FMT, what, hash->c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with more entries than the limit, as they are in CSR, and their pieces */
static PetscErrorCode CheckLongRows(const HBP *h, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const char what[])
{
  const GallopLongRows *l = &h->longRows;
  PetscInt              t = 0, at = 0, piece = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < h->m; r++) {
    if (i[r + 1] - i[r] <= h->longRow) continue;
    TestCheck(t < l->num && l->row[t] == r && l->ptr[t] == at && l->firstPiece[t] == piece, "row %" PetscInt_FMT " is long", what, r);
    for (PetscInt k = i[r]; k < i[r + 1]; k++, at++) {
      TestCheck(h->longCol[at] == j[k] && h->data[h->blknz + at] == a[k], "entry %" PetscInt_FMT " of long row %" PetscInt_FMT, what, k - i[r], r);
      if ((k - i[r]) % HBP_PIECE) continue;
      TestCheck(piece < l->pieceNum && l->pieceRow[piece] == t && l->pieceAt[piece] == at, "piece %" PetscInt_FMT " of long row %" PetscInt_FMT, what, piece, r);
      piece++;
    }
    t++;
  }
  TestCheck(l->num == t && l->ptr[t] == at && l->nz == at && h->blknz == h->nz - at, "%" PetscInt_FMT " long rows, should be %" PetscInt_FMT, what, l->num, t);
  TestCheck(l->pieceNum == piece && l->firstPiece[t] == piece, "%" PetscInt_FMT " pieces of long rows, should be %" PetscInt_FMT, what, l->pieceNum, piece);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Partial sums of a block of rows in pieces, in each by rows and else as they were, from the row of each in its block */
static PetscErrorCode CheckCombine(const HBP *h, const PetscInt row[], const char what[])
{
  const PetscInt most = (PetscInt)(32768 / sizeof(PetscScalar));
  PetscInt      *order, piece = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(most, &order));
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    TestCheck(h->combinePtr[rb] == piece, "pieces of row block %" PetscInt_FMT " begin with %" PetscInt_FMT, what, rb, h->combinePtr[rb]);
    for (PetscInt begin = h->partialPtr[rb]; begin < h->partialPtr[rb + 1]; begin += most, piece++) {
      const PetscInt        count = PetscMin(most, h->partialPtr[rb + 1] - begin);
      const unsigned short *ends  = h->combineEnd + piece * h->N;

      TestCheck(piece < h->combineNum, "piece %" PetscInt_FMT, what, piece);
      for (PetscInt k = 0; k < count; k++) order[k] = -1;
      for (PetscInt k = 0; k < count; k++) {
        TestCheck(h->combinePos[begin + k] < count && order[h->combinePos[begin + k]] < 0, "place of partial sum %" PetscInt_FMT, what, begin + k);
        order[h->combinePos[begin + k]] = begin + k;
      }
      for (PetscInt k = 1; k < count; k++)
        TestCheck(row[order[k - 1]] < row[order[k]] || (row[order[k - 1]] == row[order[k]] && order[k - 1] < order[k]), "partial sum %" PetscInt_FMT " is not in order", what, order[k]);
      for (PetscInt r = 0, k = 0; r < h->N; r++) {
        while (k < count && row[order[k]] == r) k++;
        TestCheck(ends[r] == k, "row %" PetscInt_FMT " of piece %" PetscInt_FMT " ends at %d", what, r, piece, ends[r]);
      }
    }
  }
  TestCheck(h->combineNum == piece && h->combinePtr[h->rowBlocks] == piece, "%" PetscInt_FMT " pieces, should be %" PetscInt_FMT, what, h->combineNum, piece);
  PetscCall(PetscFree(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* log2 of the lanes of a segment: as few as leave each lane of the shortest segment with the same hash fewer than laneEntries entries */
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
static PetscErrorCode CheckMaps(const HBP *h, const Setting *o, const PetscInt i[], const PetscInt j[], PetscInt place[], PetscInt *cols, const char what[])
{
  const PetscInt all = (h->n + HBP_CHUNK - 1) / HBP_CHUNK, most = h->M / HBP_CHUNK;
  PetscInt       at = 0, mapped = 0, plain = 0;

  PetscFunctionBegin;
  *cols = (h->n + h->M - 1) / h->M;
  /* where the format chooses, such matrices have one column of blocks */
  TestCheck(h->mapChunks == (o->map == HBP_MAP_ALWAYS && !h->shared && *cols > 1 ? most : 0) && !h->mapPtr == !h->mapChunks, "a map may have %" PetscInt_FMT " chunks", what, h->mapChunks);
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    PetscInt *of = place + rb * all, num = 0;

    for (PetscInt c = 0; c < all; c++) of[c] = -1;
    if (!h->mapChunks) continue;
    for (PetscInt r = rb * h->N; r < PetscMin(h->m, (rb + 1) * h->N); r++)
      for (PetscInt k = i[r]; k < i[r + 1] && i[r + 1] - i[r] <= h->longRow; k++) of[j[k] / HBP_CHUNK] = 0;
    for (PetscInt c = 0; c < all; c++)
      if (!of[c]) of[c] = num++;
    TestCheck(h->mapPtr[rb] == at && h->mapPtr[rb + 1] == at + (num > most ? 0 : num), "row block %" PetscInt_FMT " has entries in %" PetscInt_FMT " chunks, and a map of %" PetscInt_FMT, what, rb, num, h->mapPtr[rb + 1] - h->mapPtr[rb]);
    for (PetscInt c = 0; c < all; c++) {
      if (num > most) of[c] = -1;
      TestCheck(of[c] < 0 || h->map[at + of[c]] == c * HBP_CHUNK, "place %" PetscInt_FMT " of the map of row block %" PetscInt_FMT " is %" PetscInt_FMT, what, of[c], rb, h->map[at + of[c]]);
    }
    if (num > most) plain++;
    else {
      at += num;
      mapped += num > 0;
    }
  }
  TestCheck(h->mapped == mapped && h->mapNum == at, "%" PetscInt_FMT " maps of %" PetscInt_FMT " places, should be %" PetscInt_FMT " of %" PetscInt_FMT, what, h->mapped, h->mapNum, mapped, at);
  if (h->mapChunks && !plain) *cols = 1;
  if (mapped && plain) met[MAPS_SOME]++;
  else if (mapped) met[MAPS_ALL]++;
  else if (plain) met[MAPS_NONE]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The bytes of all arrays but the workspace */
static PetscErrorCode CheckBytes(const HBP *h, const char what[])
{
  const GallopLongRows *l      = &h->longRows;
  const size_t          blocks = (size_t)h->blkNum + 1 + (size_t)h->colBlocks + 1, rows = (2 + !!h->mapPtr) * ((size_t)h->rowBlocks + 1) + (size_t)h->mapNum;
  const size_t          longs = 3 * (size_t)l->num + 2 + 2 * (size_t)l->pieceNum + (size_t)l->nz, places = h->csrIdx ? (size_t)h->blknz : 0;
  const size_t shorts = (h->longest > HBP_PACKED ? 2 : 1) * (size_t)h->segNum + (size_t)h->blknz + (size_t)h->partialNum + (size_t)(h->combineNum * h->N), bits = (size_t)(h->rowBlocks * HBPWords(h->N)) * 4;
  const size_t bytes = (blocks + rows + longs + places) * sizeof(PetscInt) + 2 * shorts + bits + ((size_t)h->groupNum + 1) * sizeof(HBPGroup) + (size_t)h->nz * sizeof(PetscScalar);

  PetscFunctionBegin;
  TestCheck(h->bytes == bytes, "%g bytes, should be %g", what, (double)h->bytes, (double)bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What holds for the arrays of any matrix. Since the order of segments and of entries is strict, each one is met once. */
static PetscErrorCode CheckArrays(Mat A, const HBP *h, const Setting *o, const char what[])
{
  const PetscInt     N = h->N, M = h->M, narrow = (PetscInt)((64 << 10) / sizeof(PetscScalar)), chunks = (h->n + HBP_CHUNK - 1) / HBP_CHUNK;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, rows, cols, empty = 0, blk = 0, g = 0, seg = 0, ptr = 0, partials = 0, most = 0;
  PetscInt          *sorted, *from;        /* columns in increasing order, and where each is in CSR */
  PetscInt          *first, *len, *blocks; /* the entries of each row in each column of blocks; in how many blocks a row has entries, 0 for a long row */
  PetscInt          *place;                /* of each block of rows and chunk, see CheckMaps() */
  PetscInt          *partial, *partialRow; /* of each block, row by row: its first partial sum; of each partial sum: its row in the block */
  PetscBool          done, unsorted = PETSC_FALSE, alone = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  rows = (m + N - 1) / N;
  PetscCall(PetscMalloc1(rows * chunks, &place));
  TestCheck(h->m == m && h->n == n && h->nz == i[m] && h->rowBlocks == rows, "numbers", what);
  PetscCall(CheckMaps(h, o, i, j, place, &cols, what));
  TestCheck(h->colBlocks == cols, "%" PetscInt_FMT " columns of blocks, should be %" PetscInt_FMT, what, h->colBlocks, cols);
  TestCheck(o->block_rows ? N == o->block_rows : N >= 512 && N <= HBP_MAX_ROWS, "%" PetscInt_FMT " rows per block", what, N);
  TestCheck(o->block_cols ? M == o->block_cols : M >= 1 && M <= (h->shared ? narrow : HBP_MAX_COLS), "%" PetscInt_FMT " columns per block", what, M);
  TestCheck(h->shared == (o->shared_x == HBP_SHARED_ALWAYS) || (h->shared && o->shared_x == HBP_SHARED_CHOOSE && cols > 1), "x in shared memory", what);
  TestCheck(h->longRow == (o->long_row ? o->long_row : h->shared ? 16384 : 1024), "rows with more than %" PetscInt_FMT " entries are long", what, h->longRow);
  TestCheck(h->laneEntries == (o->lane_entries ? o->lane_entries : h->shared ? 8 : 16), "lanes with %" PetscInt_FMT " entries", what, h->laneEntries);
  PetscCall(CheckHash(h, i, j, what));
  PetscCall(CheckLongRows(h, i, j, a, what));

  PetscCall(PetscMalloc2(h->nz, &sorted, h->nz, &from));
  PetscCall(PetscCalloc4(m * cols, &first, m * cols, &len, m, &blocks, rows * cols, &partial));
  PetscCall(PetscArraycpy(sorted, j, h->nz));
  for (PetscInt k = 0; k < h->nz; k++) from[k] = k;
  for (PetscInt rb = 0; rb < rows; rb++) { /* blocks of rows with a map take columns in any order */
    PetscBool mapped = PETSC_FALSE;

    for (PetscInt c = 0; c < chunks; c++) mapped = (PetscBool)(mapped || place[rb * chunks + c] >= 0);
    for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N) && !mapped; r++) {
      for (PetscInt k = i[r] + 1; k < i[r + 1]; k++) unsorted = (PetscBool)(unsorted || j[k] < j[k - 1]);
    }
  }
  if (cols == 1) unsorted = PETSC_FALSE; /* then the order does not matter */
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
    empty += i[r + 1] == i[r];
  }
  TestCheck(!!h->csrIdx == (unsorted && h->blknz) && h->alone == alone && h->empty == empty, "csrIdx, alone, empty rows", what);
  for (PetscInt rb = 0; rb < rows; rb++) {
    TestCheck(h->partialPtr[rb] == partials, "partial sums of row block %" PetscInt_FMT " begin at %" PetscInt_FMT, what, rb, h->partialPtr[rb]);
    for (PetscInt cb = 0; cb < cols; cb++) {
      partial[rb * cols + cb] = partials;
      for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N); r++) partials += blocks[r] > 1 && len[r * cols + cb];
    }
    for (PetscInt k = 0; k < HBPWords(N) * 32; k++) {
      const PetscInt  r      = rb * N + k;
      const PetscBool direct = (PetscBool)(k < N && r < m && (blocks[r] == 1 || i[r + 1] - i[r] > h->longRow));

      TestCheck((h->direct[rb * HBPWords(N) + k / 32] >> k % 32 & 1) == (unsigned int)direct, "direct bit of row %" PetscInt_FMT, what, r);
    }
  }
  TestCheck(h->partialPtr[rows] == partials && h->partialNum == partials, "%" PetscInt_FMT " partial sums, should be %" PetscInt_FMT, what, h->partialNum, partials);

  PetscCall(PetscMalloc1(partials, &partialRow));
  for (PetscInt cb = 0; cb < cols; cb++) {
    TestCheck(h->colGroup[cb] == g, "column %" PetscInt_FMT " of blocks begins with group %" PetscInt_FMT, what, cb, h->colGroup[cb]);
    for (PetscInt rb = 0; rb < rows; rb++) {
      const PetscInt none = h->mapPtr && h->mapPtr[rb] < h->mapPtr[rb + 1] ? -2 - h->mapPtr[rb] : -1; /* out of a group without partial sums */
      PetscInt       segs = 0, next = partial[rb * cols + cb], lasthash = -1, lastrow = -1;

      for (PetscInt r = rb * N; r < PetscMin(m, (rb + 1) * N); r++) segs += len[r * cols + cb] > 0;
      if (!segs) continue;
      TestCheck(blk < h->blkNum && h->begin_nnz[blk] == ptr, "block %" PetscInt_FMT, what, blk);
      blk++;
      for (PetscInt s = 0, count; s < segs; s += count, g++) {
        PetscInt row[HBP_GROUP], out = none, longest = 0, shortest = PETSC_INT_MAX; /* entries of lanes */
        int      lanes = 0;

        TestCheck(g < h->groupNum && h->group[g].begin_ptr == ptr && h->group[g].seg == seg, "group %" PetscInt_FMT, what, g);
        for (count = 0; s + count < segs; count++, seg++) {
          const PetscInt offset = HBPOutputRow(h->output_hash[seg]), r = rb * N + offset, at = r * cols + cb;
          PetscInt       hash;

          TestCheck(offset < N && r < m && len[at] && HBPLength(h->output_hash, h->nnz_perrow, seg) == len[at], "segment %" PetscInt_FMT, what, seg);
          most = PetscMax(most, len[at]);
          if (!count) lanes = LanesOf(h, len[at]);
          if (LanesOf(h, len[at]) != lanes || count == HBP_GROUP >> lanes) break;
          hash = HBPHashOf(&h->hash, len[at]);
          TestCheck(hash >= 0 && hash < HBPHashes(&h->hash) && (hash > lasthash || (hash == lasthash && r > lastrow)), "segment %" PetscInt_FMT " with hash %" PetscInt_FMT " is not in order", what, seg, hash);
          TestCheck(!!(h->output_hash[seg] & HBP_FLAG) == (blocks[r] == 1), "flag of segment %" PetscInt_FMT, what, seg);
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
        TestCheck(shortest > 0, "a lane of group %" PetscInt_FMT " has no entry", what, g);
        TestCheck(h->group[g].out == out, "first partial sum of group %" PetscInt_FMT " is %" PetscInt_FMT, what, g, h->group[g].out);
        TestCheck(h->group[g].info == rb * 16 + (shortest == longest ? 8 : 0) + lanes, "info of group %" PetscInt_FMT " is %" PetscInt_FMT, what, g, h->group[g].info);
        for (PetscInt k = 0; k < longest; k++) {
          for (PetscInt l = 0; l < count << lanes; l++) {
            const PetscInt at = row[l >> lanes] * cols + cb, of = k * (1 << lanes) + l % (1 << lanes), entry = first[at] + of;
            PetscInt       in;

            if (of >= len[at]) continue;
            in = place[rb * chunks + sorted[entry] / HBP_CHUNK];
            TestCheck(ptr < h->blknz && h->col[ptr] == (in < 0 ? sorted[entry] % M : in * HBP_CHUNK + sorted[entry] % HBP_CHUNK) && h->data[ptr] == a[from[entry]], "entry %" PetscInt_FMT, what, ptr);
            TestCheck(!unsorted || h->csrIdx[ptr] == from[entry], "csrIdx of entry %" PetscInt_FMT, what, ptr);
            ptr++;
          }
        }
      }
    }
  }
  TestCheck(h->blkNum == blk && h->begin_nnz[blk] == ptr && ptr == h->blknz, "%" PetscInt_FMT " blocks, should be %" PetscInt_FMT, what, h->blkNum, blk);
  TestCheck(h->groupNum == g && h->colGroup[cols] == g && h->segNum == seg, "%" PetscInt_FMT " groups, should be %" PetscInt_FMT, what, h->groupNum, g);
  TestCheck(h->longest == most && !h->nnz_perrow == (most <= HBP_PACKED), "the longest segment has %" PetscInt_FMT " entries", what, most);
  TestCheck(h->group[g].begin_ptr == ptr && h->group[g].seg == seg && h->group[g].out == -1, "the end of groups", what);
  PetscCall(CheckCombine(h, partialRow, what));
  PetscCall(CheckBytes(h, what));
  PetscCall(PetscFree(partialRow));
  PetscCall(PetscFree2(sorted, from));
  PetscCall(PetscFree(place));
  PetscCall(PetscFree4(first, len, blocks, partial));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What host and GPU have built is the same */
static PetscErrorCode CompareArrays(const HBP *h, const HBP *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, N, what);
  TestSameNumber(h, d, M, what);
  TestSameNumber(h, d, rowBlocks, what);
  TestSameNumber(h, d, colBlocks, what);
  TestSameNumber(h, d, shared, what);
  TestSameNumber(h, d, alone, what);
  TestSameNumber(h, d, m, what);
  TestSameNumber(h, d, n, what);
  TestSameNumber(h, d, nz, what);
  TestSameNumber(h, d, blkNum, what);
  TestSameNumber(h, d, groupNum, what);
  TestSameNumber(h, d, segNum, what);
  TestSameNumber(h, d, partialNum, what);
  TestSameNumber(h, d, longRow, what);
  TestSameNumber(h, d, laneEntries, what);
  TestSameNumber(h, d, blknz, what);
  TestSameNumber(h, d, combineNum, what);
  TestSameNumber(h, d, longRows.num, what);
  TestSameNumber(h, d, longRows.pieceNum, what);
  TestSameNumber(h, d, mapChunks, what);
  TestSameNumber(h, d, mapped, what);
  TestSameNumber(h, d, mapNum, what);
  TestSameNumber(h, d, longest, what);
  PetscCall(TestSameBytes(&h->hash, &d->hash, sizeof(h->hash), "hash", what));
  TestSamePresence(h, d, nnz_perrow, what);
  TestSamePresence(h, d, mapPtr, what);
  if (h->blknz) TestSamePresence(h, d, csrIdx, what);
  TestSameArray(h, d, begin_nnz, h->blkNum + 1, what);
  TestSameArray(h, d, colGroup, h->colBlocks + 1, what);
  TestSameArray(h, d, group, h->groupNum + 1, what);
  TestSameArray(h, d, output_hash, h->segNum, what);
  if (h->nnz_perrow) TestSameArray(h, d, nnz_perrow, h->segNum, what);
  TestSameArray(h, d, col, h->blknz, what);
  TestSameArray(h, d, data, h->nz, what);
  TestSameArray(h, d, partialPtr, h->rowBlocks + 1, what);
  TestSameArray(h, d, combinePtr, h->rowBlocks + 1, what);
  TestSameArray(h, d, combinePos, h->partialNum, what);
  TestSameArray(h, d, combineEnd, h->combineNum * h->N, what);
  TestSameArray(h, d, direct, h->rowBlocks * HBPWords(h->N), what);
  if (h->mapPtr) {
    TestSameArray(h, d, mapPtr, h->rowBlocks + 1, what);
    TestSameArray(h, d, map, h->mapNum, what);
  }
  TestSameArray(h, d, longRows.row, h->longRows.num, what);
  TestSameArray(h, d, longRows.ptr, h->longRows.num + 1, what);
  TestSameArray(h, d, longRows.pieceRow, h->longRows.pieceNum, what);
  TestSameArray(h, d, longRows.pieceAt, h->longRows.pieceNum, what);
  TestSameArray(h, d, longRows.firstPiece, h->longRows.num + 1, what);
  TestSameArray(h, d, longCol, h->nz - h->blknz, what);
  if (h->csrIdx) TestSameArray(h, d, csrIdx, h->blknz, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt setting, const char what[])
{
  HBP *h, *d;

  PetscFunctionBegin;
  PetscCall(GetFormatAt(B, PETSC_MEMTYPE_HOST, what, &h));
  PetscCall(CheckArrays(A, h, &settings[setting], what));
  TestCheck(h->options.fixed == settings[setting].fixed, "%" PetscInt_FMT " percent of the work are shared out beforehand", what, h->options.fixed);
  if (device) {
    PetscCall(GetFormatAt(B, PETSC_MEMTYPE_CUDA, what, &d));
    PetscCall(CompareArrays(h, d, what));
    PetscCall(HBPDestroyHostCopy(&d));
  }
  PetscCall(HBPDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOptions(PetscInt setting)
{
  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_hbp_block_rows", settings[setting].block_rows));
  PetscCall(TestSetIntOption("-mat_hbp_block_cols", settings[setting].block_cols));
  PetscCall(TestSetIntOption("-mat_hbp_shared_x", settings[setting].shared_x));
  PetscCall(TestSetIntOption("-mat_hbp_map", settings[setting].map));
  PetscCall(TestSetIntOption("-mat_hbp_fixed", settings[setting].fixed));
  PetscCall(TestSetIntOption("-mat_hbp_long_row", settings[setting].long_row));
  PetscCall(TestSetIntOption("-mat_hbp_lane_entries", settings[setting].lane_entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const TestLaw laws[] = {TEST_LAW_RANDOM, TEST_LAW_BAND, TEST_LAW_POWER, TEST_LAW_CROSS, TEST_LAW_EMPTY, TEST_LAW_EQUAL_ROWS, TEST_LAW_DENSE, TEST_LAW_ONE};
  const TestProperties properties = {.format = MATHBP, .laws = laws, .nlaws = PETSC_STATIC_ARRAY_LENGTH(laws), .nsettings = PETSC_STATIC_ARRAY_LENGTH(settings), .create = CreateMatrix, .setoptions = SetOptions, .check = CheckFormat};
  PetscBool            all = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestPropertiesRun(&properties, &all));
  for (int k = 0; k < MAPS_COUNT && all; k++)
    PetscCheck(met[k] >= 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "maps in all, some or none of the blocks of rows: %" PetscInt_FMT " formats of kind %d", met[k], k);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -mat_gallop_explicit_transpose never
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
