/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of random matrices of many shapes with dense ones by TiledSpMM, against sums in long double, host and GPU; the arrays of both places, against each other.\n\n";

#include "propertytest.h"
#include "../densetest.h"
#include "../../src/mat/impls/tiledspmm/tiledspmm.h"

/* A number below n, for matrix number and for what it is used */
static PetscInt Below(PetscInt number, PetscInt what, PetscInt n)
{
  return (PetscInt)(TestRandom(7000 + what, number, what) * (PetscReal)n) % n;
}

typedef enum {
  LAW_FEW,   /* most rows are empty */
  LAW_EVEN,  /* all rows of one length */
  LAW_BAND,  /* near the diagonal: small footprints */
  LAW_POWER, /* lengths by a power law */
  LAW_FULL,  /* one row has all columns, others three */
  LAW_NONE,  /* no entry at all */
  LAW_ALIKE, /* rows of some groups, which are anywhere: those of a group have the same columns */
  LAW_COUNT
} Law;

static PetscInt Group(PetscInt number, PetscInt row, PetscInt m)
{
  return (PetscInt)(TestRandom(7104, number, row) * (PetscReal)(m / 20 + 1));
}

static PetscInt RowLength(Law law, PetscInt number, PetscInt row, PetscInt m, PetscInt n)
{
  switch (law) {
  case LAW_FEW:
    return PetscMin(n, TestRandom(7100, number, row) < (PetscReal)0.9 ? 0 : (PetscInt)((PetscReal)9 * TestRandom(7101, number, row)));
  case LAW_EVEN:
  case LAW_BAND:
    return PetscMin(n, Below(number, 1, 30));
  case LAW_POWER:
    return PetscMin(n, (PetscInt)((PetscReal)1.0 / (TestRandom(7102, number, row) + (PetscReal)0.002)));
  case LAW_FULL:
    return row == m / 2 ? n : PetscMin(n, 3);
  case LAW_ALIKE:
    return PetscMin(n, Below(number, 1, 40) + Group(number, row, m) % 3);
  default:
    return 0;
  }
}

/* Columns in increasing order, each the n / len-th, shaken; in a band, consecutive ones */
static PetscErrorCode RandomMatrix(Law law, PetscInt number, PetscInt m, PetscInt n, Mat *R)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = RowLength(law, number, r, m, n), step = len ? n / len : 0, like = law == LAW_ALIKE ? Group(number, r, m) : r;

    for (PetscInt k = 0; k < len; k++) {
      const PetscInt shake = (PetscInt)(TestRandom(7103 + number, like, k) * (PetscReal)step) % PetscMax(step, 1);

      PetscCall(TestEntriesPut(&e, law == LAW_BAND ? PetscMin(r, n - len) + k : k * step + shake, TestValue(number, r, k)));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What holds for segments: they are the rows in order, without stages each entry is where its segment looks for it, and the places of partial sums are those of the rows that are cut */
static PetscErrorCode CheckSegments(const TiledSpMM *t, PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const char what[])
{
  PetscCount seg = 0, few = 0, many = 0, slots = 0;
  PetscInt   filled = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) filled += i[r + 1] > i[r];
  TestCheck(t->skips == (t->kernel != TILEDSPMM_STAGED && 2 * (PetscCount)filled <= m), "%" PetscInt_FMT " rows have entries, and those without have %s", what, filled, t->skips ? "no segments" : "segments");
  TestCheck(t->segptr[0] == 0 && t->segptr[t->nseg] == i[m] && (t->segment || t->nseg == m), "%" PetscCount_FMT " segments", what, t->nseg);
  for (PetscInt r = 0; r < m; r++) {
    const PetscCount num = t->segment ? PetscMax(!t->skips, (i[r + 1] - i[r] + t->segment - 1) / t->segment) : 1;

    if (num > 1) {
      const PetscCount at = num <= TILEDSPMM_FEW ? few++ : t->nsplit - 1 - many++;

      TestCheck(t->splitrow[at] == r && t->splitptr[at] == slots && t->splitnum[at] == num, "partial sums of row %" PetscInt_FMT, what, r);
    }
    for (PetscCount k = 0; k < num; k++, seg++) {
      const PetscInt begin = i[r] + (PetscInt)k * t->segment, end = k + 1 < num ? begin + t->segment : i[r + 1];

      TestCheck(t->segptr[seg] == begin && t->segptr[seg + 1] == end, "segment %" PetscCount_FMT " of row %" PetscInt_FMT, what, k, r);
      if (t->segment) TestCheck(t->segrow[seg] == (num > 1 ? -1 - (slots + k) : r), "segment %" PetscCount_FMT " of row %" PetscInt_FMT " has its sum at %" PetscInt_FMT, what, k, r, t->segrow[seg]);
      for (PetscInt e = begin; e < end && t->kernel != TILEDSPMM_STAGED; e++) {
        const PetscCount at = t->kernel == TILEDSPMM_CACHED ? t->slicedispl[seg / TILEDSPMM_WARP] + (PetscCount)TILEDSPMM_WARP * (e - begin) + seg % TILEDSPMM_WARP : e;

        TestCheck(t->kernel != TILEDSPMM_CACHED || at < t->slicedispl[seg / TILEDSPMM_WARP + 1], "no room for segment %" PetscCount_FMT, what, seg);
        TestCheck(t->col[at] == j[e] && t->value[at] == a[e], "entry %" PetscInt_FMT " is of column %" PetscInt_FMT ", not %" PetscInt_FMT ", or has another value", what, e, (PetscInt)t->col[at], j[e]);
      }
    }
    if (num > 1) slots += num;
  }
  TestCheck(seg == t->nseg && few + many == t->nsplit && many == t->nmany && slots == t->nslots, "%" PetscCount_FMT " segments, %" PetscCount_FMT " partial sums", what, t->nseg, t->nslots);
  if (t->kernel != TILEDSPMM_STAGED) TestCheck(t->stored == (t->kernel == TILEDSPMM_CACHED ? t->slicedispl[t->slices] : t->nz), "%" PetscCount_FMT " entries stored", what, t->stored);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What holds for tiles: read unit by unit they have the entries of each row in order, and none is without; partial sums of a row that has several
  units lie one behind the other
*/
static PetscErrorCode CheckTiles(const TiledSpMM *t, PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const char what[])
{
  const PetscInt panels = (m + TILEDSPMM_TILE_ROWS - 1) / TILEDSPMM_TILE_ROWS, few = (PetscInt)(t->nsplit - t->nmany);
  PetscInt      *next, *split, *own, *units, *block;
  PetscCount     at = 0, slots = 0, tiles = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc5(m, &next, m, &split, panels, &own, panels, &units, panels, &block));
  PetscCall(PetscArraycpy(next, i, m));
  for (PetscInt r = 0; r < m; r++) split[r] = -1;
  for (PetscInt p = 0; p < panels; p++) {
    own[p]   = 0; /* units that came, how many there are, and the last block of columns of their tiles */
    units[p] = -1;
    block[p] = -1;
  }
  for (PetscInt k = 0; k < t->nsplit; k++) {
    TestCheck(split[t->splitrow[k]] < 0 && (k < few) == (t->splitnum[k] <= TILEDSPMM_FEW), "row %" PetscInt_FMT " with %" PetscInt_FMT " partial sums", what, t->splitrow[k], t->splitnum[k]);
    split[t->splitrow[k]] = k;
  }
  for (PetscCount u = 0; u < t->nunit; u++) {
    const PetscInt rows = t->unitrow[u], p = rows / TILEDSPMM_TILE_ROWS, last = PetscMin(m, rows + TILEDSPMM_TILE_ROWS);

    TestCheck(rows == p * TILEDSPMM_TILE_ROWS && (!u || rows >= t->unitrow[u - 1]), "unit %" PetscCount_FMT " is of row %" PetscInt_FMT, what, u, rows);
    TestCheck(t->valueptr[u] == i[rows] && (t->unitslot[u] < 0) == (t->unitnum[u] == 1) && own[p] < t->unitnum[u], "values of unit %" PetscCount_FMT, what, u);
    for (PetscInt r = rows; r < last; r++) {
      TestCheck((split[r] < 0) == (t->unitnum[u] == 1), "partial sums of row %" PetscInt_FMT, what, r);
      if (split[r] < 0) continue;
      TestCheck(t->splitnum[split[r]] == t->unitnum[u] && t->splitptr[split[r]] + own[p] == t->unitslot[u] + (r - rows) * t->unitnum[u], "unit %" PetscCount_FMT " has its sum of row %" PetscInt_FMT " elsewhere", what, u, r);
      slots++;
    }
    own[p]++;
    units[p] = t->unitnum[u];
    for (PetscCount k = t->tileptr[u]; k < t->tileptr[u + 1]; k++, tiles++) {
      TestCheck(t->tile[k].mask && t->tile[k].block > block[p] && t->valueptr[u] + t->tile[k].first == at, "tile %" PetscCount_FMT, what, k);
      block[p] = t->tile[k].block;
      for (int bit = 0; bit < TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS; bit++) {
        const PetscInt r = rows + bit / TILEDSPMM_TILE_COLS;

        if (!(t->tile[k].mask >> bit & 1)) continue;
        TestCheck(r < m && next[r] < i[r + 1] && j[next[r]] == (PetscInt)t->tile[k].block * TILEDSPMM_TILE_COLS + bit % TILEDSPMM_TILE_COLS && a[next[r]] == t->value[at], "an entry of tile %" PetscCount_FMT, what, k);
        next[r]++;
        at++;
      }
    }
  }
  for (PetscInt p = 0; p < panels; p++) TestCheck(own[p] == units[p], "not all units of row %" PetscInt_FMT, what, p * TILEDSPMM_TILE_ROWS);
  TestCheck(at == i[m] && t->stored == i[m] && tiles == t->ntile && slots == t->nslots, "%" PetscCount_FMT " entries in tiles, %" PetscCount_FMT " partial sums", what, at, t->nslots);
  PetscCall(PetscFree5(next, split, own, units, block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What holds for rows in the order of their patterns: each row is at one place, and as rows of zeros and ones, compared as memory is, none comes before a larger one. Without them rows
  are in order, or shall be, or that costs more rows of B.
*/
static PetscErrorCode CheckOrder(const TiledSpMM *t, PetscInt m, const PetscInt i[], const PetscInt j[], const char what[])
{
  char      *rows, *seen;
  PetscCount nmap   = 0;
  PetscBool  sorted = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2((size_t)m * t->n, &rows, PetscMax(t->n, m), &seen));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) rows[(PetscCount)r * t->n + j[k]] = 1;
    if (r && memcmp(rows + (PetscCount)(r - 1) * t->n, rows + (PetscCount)r * t->n, t->n) < 0) sorted = PETSC_FALSE;
  }
  for (PetscInt p = 0; p < t->panels; p++) {
    PetscCall(PetscArrayzero(seen, t->n));
    for (PetscInt k = i[p * t->options.panel]; k < i[PetscMin(m, (p + 1) * t->options.panel)]; k++) {
      nmap += !seen[j[k]];
      seen[j[k]] = 1;
    }
  }
  TestCheck(t->nmapgiven == nmap, "%" PetscCount_FMT " rows of B in the order of the matrix, not %" PetscCount_FMT, what, t->nmapgiven, nmap);
  if (t->reordered) {
    PetscCall(PetscArrayzero(seen, m));
    TestCheck(!sorted && t->options.reorder != TILEDSPMM_REORDER_NEVER, "rows were sorted", what);
    TestCheck(t->options.reorder == TILEDSPMM_REORDER_ALWAYS || t->nmap < nmap, "sorted rows need %" PetscCount_FMT " rows of B instead of %" PetscCount_FMT, what, t->nmap, nmap);
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt row = t->roworder[r], last = r ? t->roworder[r - 1] : 0;
      const int      order = r ? memcmp(rows + (PetscCount)last * t->n, rows + (PetscCount)row * t->n, t->n) : 1;

      TestCheck(row >= 0 && row < m && !seen[row], "row %" PetscInt_FMT " is not at one place", what, row);
      seen[row] = 1;
      TestCheck(order > 0 || (!order && last < row), "row %" PetscInt_FMT " comes before row %" PetscInt_FMT, what, last, row);
    }
  } else {
    TestCheck(sorted || t->options.reorder != TILEDSPMM_REORDER_ALWAYS, "rows were not sorted", what);
    TestCheck(t->nmap == nmap, "%" PetscCount_FMT " rows of B, not %" PetscCount_FMT, what, t->nmap, nmap);
  }
  PetscCall(PetscFree2(rows, seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What holds for every structure: each entry is stored once, where its row looks for it, with its column; padding holds nothing */
static PetscErrorCode CheckStructure(Mat A, Mat R, PetscMemType memtype, const char what[])
{
  const void        *data;
  TiledSpMM         *t;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, warps, panel;
  PetscCount         found = 0;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatGallopGetTiledSpMMData(A, memtype, &data));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  TestCheck(!data == !i[m], "a structure of no entries, or none of some", what);
  if (!data) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetArrayRead(R, &a));
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)data, &t));
  panel = t->options.panel;
  warps = panel / TILEDSPMM_WARP;
  if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(CheckTiles(t, m, i, j, a, what));
    found = t->nz;
  } else if (t->kernel != TILEDSPMM_STAGED) {
    PetscCall(CheckSegments(t, m, i, j, a, what));
    found = t->nz;
  } else {
    if (t->segment) { /* they are in the place of rows */
      PetscCall(CheckSegments(t, m, i, j, a, what));
      i = t->segptr;
      m = (PetscInt)t->nseg;
    }
    PetscCall(CheckOrder(t, m, i, j, what));
    for (PetscInt p = 0; p < t->panels; p++) {
      for (PetscCount s = t->stagedispl[p]; s < t->stagedispl[p + 1]; s++) {
        const PetscCount first = t->mapdispl[s], size = t->mapdispl[s + 1] - first;

        TestCheck(size > 0 && size <= t->options.stage, "stage %" PetscCount_FMT " has %" PetscCount_FMT " rows of B", what, s, size);
        TestCheck(size == t->options.stage || s + 1 == t->stagedispl[p + 1], "stage %" PetscCount_FMT " is not full", what, s);
        for (PetscInt r = 0; r < panel; r++) {
          const PetscInt   place = p * panel + r, row = t->reordered && place < m ? t->roworder[place] : place, len = t->len[s * panel + r];
          const PetscCount warp = s * warps + r / TILEDSPMM_WARP, width = (t->warpdispl[warp + 1] - t->warpdispl[warp]) / TILEDSPMM_WARP;

          TestCheck(len <= width && (row < m || !len), "row %" PetscInt_FMT " has %" PetscInt_FMT " entries in stage %" PetscCount_FMT, what, row, len, s);
          for (PetscInt k = 0; k < width; k++) {
            const PetscCount at   = t->warpdispl[warp] + TILEDSPMM_WARP * k + r % TILEDSPMM_WARP;
            const PetscInt   from = t->from[at];

            if (k >= len) {
              TestCheck(from == -1 && t->value[at] == (PetscScalar)0.0, "padding of row %" PetscInt_FMT " holds an entry", what, row);
              continue;
            }
            TestCheck(from >= i[row] && from < i[row + 1] && t->index[at] < size, "row %" PetscInt_FMT " has an entry of another", what, row);
            TestCheck(j[from] == t->map[first + t->index[at]] && a[from] == t->value[at], "an entry of row %" PetscInt_FMT " is of column %" PetscInt_FMT ", not %" PetscInt_FMT ", or has another value", what, row, t->map[first + t->index[at]], j[from]);
            found++;
          }
        }
      }
    }
  }
  TestCheck(found == i[m] && t->nz == i[m], "%" PetscCount_FMT " entries of %" PetscInt_FMT, what, found, i[m]);
  PetscCall(TiledSpMMDestroyHostCopy(&t));
  PetscCall(MatSeqAIJRestoreArrayRead(R, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host and GPU have the same arrays. A product on the host first gives the host's arrays the values that the GPU's have. */
static PetscErrorCode CompareArrays(Mat A, Mat R, const char what[])
{
  const void *host, *device;
  TiledSpMM  *h, *d;
  Mat         B, C;

  PetscFunctionBegin;
  PetscCall(TestCreateDense(A, PETSC_FALSE, MATSEQDENSE, 1, PETSC_FALSE, 0, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, what));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_HOST, &host));
  PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_CUDA, &device));
  if (!host && !device) PetscFunctionReturn(PETSC_SUCCESS);
  TestCheck(host && device, "not built at both places", what);
  if (((const TiledSpMM *)device)->kernel != TILEDSPMM_STAGED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)host, &h));
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)device, &d));
  if (h->segment != d->segment) { /* the GPU chose one */
    PetscCall(TiledSpMMDestroyHostCopy(&h));
    PetscCall(TiledSpMMDestroyHostCopy(&d));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->segment) TestSameNumber(h, d, nseg, what);
  TestSameNumber(h, d, nsplit, what);
  TestSameNumber(h, d, nmany, what);
  TestSameNumber(h, d, nslots, what);
  TestSameNumber(h, d, stages, what);
  TestSameNumber(h, d, nmap, what);
  TestSameNumber(h, d, stored, what);
  TestSameNumber(h, d, bytes, what);
  TestSameNumber(h, d, reordered, what);
  TestSameNumber(h, d, nmapgiven, what);
#define SAME(array, number) TestSameArray(h, d, array, number, what);
  TILEDSPMM_ARRAYS(h, SAME);
#undef SAME
  PetscCall(TiledSpMMDestroyHostCopy(&h));
  PetscCall(TiledSpMMDestroyHostCopy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with B on the host or on the GPU: B with and without Inf and NaN, then new values of A */
static PetscErrorCode Products(Mat A, Mat R, MatType type, PetscInt number, const char what[])
{
  static const PetscInt columns[] = {1, 2, 3, 5, 8, 12, 16, 19, 31, 32, 50};
  const PetscInt        K         = columns[Below(number, 2, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(columns))];
  const PetscBool       device    = (PetscBool)!strcmp(type, MATSEQDENSECUDA);
  PetscInt              m, n, nz;
  const PetscInt       *i;
  PetscBool             done;
  Mat                   B, C;
  PetscScalar          *b;
  MatGallopStatistics   last;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, NULL, &done));
  nz = i[m];
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, K, (PetscBool)(number % 2), number, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, what));
  PetscCall(TestDenseCounts(A, nz ? 1 : 0, 0, device ? TEST_DENSE_DEVICE : TEST_DENSE_HOST, &last, what));
  PetscCall(CheckStructure(A, R, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, what));
  if (n > 3) {
    PetscCall(MatDenseGetArray(B, &b));
    b[0] = b[n - 1] = (PetscScalar)INFINITY;
    b[n / 2]        = (PetscScalar)NAN;
    PetscCall(MatDenseRestoreArray(B, &b));
  }
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatScale(R, 3.0));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, what));
  PetscCall(TestDenseCounts(A, 0, nz ? 1 : 0, device ? TEST_DENSE_DEVICE : TEST_DENSE_HOST, &last, what));
  PetscCall(CheckStructure(A, R, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, what));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Enough rows that each multiprocessor has more than it works on at once: with B transposed, another kernel computes them */
static PetscErrorCode ManyRows(MatType type)
{
  static const PetscInt columns[] = {8, 19, 32};
  Mat                   A, R, B, C;
  MatGallopStatistics   last = {0};

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "transposed"));
  for (PetscInt segment = 0; segment <= 5; segment += 5) {
    PetscCall(TestSetIntOption("-mat_tiledspmm_segment", segment));
    PetscCall(RandomMatrix(LAW_POWER, 1000 + segment, 300000, 50, &R)); /* up to 50 entries per row */
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(MatGallopGetStatistics(A, &last));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
      PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns[k], PETSC_FALSE, 5, &B));
      PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
      PetscCall(TestCompareDense(R, B, C, "many rows"));
      PetscCall(TestDenseCounts(A, k ? 0 : 1, 0, strcmp(type, MATSEQDENSECUDA) ? TEST_DENSE_HOST : TEST_DENSE_DEVICE, &last, "many rows"));
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
    }
    PetscCall(CheckStructure(A, R, strcmp(type, MATSEQDENSECUDA) ? PETSC_MEMTYPE_HOST : PETSC_MEMTYPE_CUDA, "many rows"));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of len entries each near the diagonal */
static PetscErrorCode BandMatrix(PetscInt m, PetscInt len, Mat *R)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < len; k++) PetscCall(TestEntriesPut(&e, PetscMin(r, m - len) + k, TestValue(7500 + len, r, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each way in which kernels are compiled for a GPU that has enough to do: short rows and long ones, columns that a thread or a team has together, and some that are left */
static PetscErrorCode Ways(void)
{
  static const PetscInt pack = 16 / (PetscInt)PetscMin(16, sizeof(PetscScalar)); /* columns of a lane */
  const struct {
    const char *kernel;
    PetscInt    rows, len, columns, together;
  } cases[] = {
    {"cached",     160000,  4,  2,         2},
    {"cached",     160000,  4,  3,         2},
    {"cached",     160000,  4,  3,         0},
    {"cached",     160000,  4,  4,         0},
    {"cached",     160000,  4,  7,         0},
    {"cached",     160000,  4,  8,         0},
    {"cached",     60000,   14, 7,         0},
    {"cached",     60000,   14, 8,         0},
    {"cached",     60000,   4,  48,        0},
    {"cached",     60000,   4,  60,        0},
    {"cached",     60000,   14, 48,        0},
    {"cached",     60000,   14, 60,        0},
    {"transposed", 1300000, 3,  pack,      0},
    {"transposed", 600000,  3,  2 * pack,  0},
    {"transposed", 300000,  3,  4 * pack,  0},
    {"transposed", 160000,  3,  8 * pack,  0},
    {"transposed", 160000,  3,  16 * pack, 0},
    {"transposed", 160000,  30, 8 * pack,  0},
  };
  Mat                 A, R, B, C;
  const void         *data;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_tiledspmm_segment", 0));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    char what[64];

    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %" PetscInt_FMT " rows of %" PetscInt_FMT " entries, %" PetscInt_FMT " columns", cases[k].kernel, cases[k].rows, cases[k].len, cases[k].columns));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", cases[k].kernel));
    PetscCall(TestSetIntOption("-mat_tiledspmm_columns", cases[k].together));
    PetscCall(BandMatrix(cases[k].rows, cases[k].len, &R));
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(MatGallopGetStatistics(A, &last));
    PetscCall(TestCreateDense(A, PETSC_FALSE, MATSEQDENSECUDA, cases[k].columns, PETSC_FALSE, 8, &B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, what));
    PetscCall(TestDenseCounts(A, 1, 0, TEST_DENSE_DEVICE, &last, what));
    PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_CUDA, &data));
    TestCheck(data && ((const TiledSpMM *)data)->kernel == (strcmp(cases[k].kernel, "cached") ? TILEDSPMM_TRANSPOSED : TILEDSPMM_CACHED), "another kernel than %s", what, cases[k].kernel);
    PetscCall(CheckStructure(A, R, PETSC_MEMTYPE_CUDA, what));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 24 groups of 32 rows with 128 columns each, shuffled: sorted, each panel is one group, which is kept. Backwards, columns do not increase and rows stay as they are. With segments panels have other rows. */
static PetscErrorCode Shuffled(MatType type, PetscInt segment)
{
  enum { GROUPS = 24, EACH = 32, LEN = 128 };
  static const char *const names[] = {"never", "always", "choose"};
  const PetscInt           m = GROUPS * EACH, n = GROUPS * LEN;
  PetscInt                *i, *j;
  PetscScalar             *a;
  MatGallopStatistics      last = {0};

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "staged"));
  PetscCall(TestSetIntOption("-mat_tiledspmm_panel", EACH));
  PetscCall(TestSetIntOption("-mat_tiledspmm_segment", segment));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_utilization", "0")); /* rows of one length are not cut then */
  PetscCall(TestSetIntOption("-mat_tiledspmm_stage", 512));
  for (int k = 0; k < (PetscDefined(USE_DEBUG) ? 3 : 6); k++) { /* a PETSc with debugging refuses columns that do not increase */
    const PetscBool backwards = (PetscBool)(k >= 3), device = (PetscBool)!strcmp(type, MATSEQDENSECUDA);
    const void     *data;
    Mat             A, R, B, C;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_reorder", names[k % 3]));
    PetscCall(PetscMalloc3(m + 1, &i, m * LEN, &j, m * LEN, &a));
    i[0] = 0;
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt group = 31 * r % GROUPS; /* 31 and 24 have no common factor */

      i[r + 1] = i[r] + LEN;
      for (PetscInt c = 0; c < LEN; c++) {
        j[i[r] + c] = LEN * group + (backwards ? LEN - 1 - c : c);
        a[i[r] + c] = TestValue(7200, r, c);
      }
    }
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, i, j, a, &R));
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(TestCreateDense(A, PETSC_FALSE, type, 19, PETSC_FALSE, 6, &B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "shuffled"));
    PetscCall(MatGallopGetStatistics(A, &last));
    PetscCall(MatScale(A, -2.0));
    PetscCall(MatScale(R, -2.0));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "shuffled, new values"));
    PetscCall(TestDenseCounts(A, 0, 1, device ? TEST_DENSE_DEVICE : TEST_DENSE_HOST, &last, "shuffled, new values"));
    PetscCall(MatGallopGetTiledSpMMData(A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
    PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "shuffled: no structure");
    PetscCheck(((const TiledSpMM *)data)->segment == segment, PETSC_COMM_SELF, PETSC_ERR_PLIB, "shuffled: segments of %" PetscInt_FMT " entries", ((const TiledSpMM *)data)->segment);
    PetscCheck(segment || ((const TiledSpMM *)data)->reordered == (k == 1 || k == 2), PETSC_COMM_SELF, PETSC_ERR_PLIB, "shuffled: whether to sort rows, setting %d", k);
    PetscCheck(segment || ((const TiledSpMM *)data)->nmapgiven == n * m / EACH, PETSC_COMM_SELF, PETSC_ERR_PLIB, "shuffled: %" PetscCount_FMT " rows of B before", ((const TiledSpMM *)data)->nmapgiven);
    PetscCheck(segment || ((const TiledSpMM *)data)->nmap == (k == 1 || k == 2 ? n : n * m / EACH), PETSC_COMM_SELF, PETSC_ERR_PLIB, "shuffled: %" PetscCount_FMT " rows of B", ((const TiledSpMM *)data)->nmap);
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(TestDestroy(&A, &R));
    PetscCall(PetscFree3(i, j, a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns so far apart that the GPU finds footprints by a sort, two next to each other; one panel has all of them together. Rows are in the order of their patterns, or not. */
static PetscErrorCode Scattered(PetscBool device)
{
  enum { M = 90, N = 1700000, LEN = 12 };
  static const char *const reorders[] = {"never", "always", "choose"};
  PetscInt                *i, *j;
  PetscScalar             *a;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "staged"));
  PetscCall(TestSetIntOption("-mat_tiledspmm_panel", 32));
  PetscCall(TestSetIntOption("-mat_tiledspmm_stage", 100));
  PetscCall(TestSetIntOption("-mat_tiledspmm_segment", 0));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_utilization", "0"));
  PetscCall(TestSetIntOption("-mat_tiledspmm_columns", 0));
  PetscCall(PetscMalloc3(M + 1, &i, M * LEN, &j, M * LEN, &a));
  for (PetscInt r = 0; r <= M; r++) i[r] = r * LEN;
  for (PetscInt e = 0; e < M * LEN; e++) {
    const PetscInt r = e / LEN, like = r / 64 ? r : r % 4; /* of the first rows each fourth is the same */

    j[e] = r / 32 == 2 ? 500 + e % LEN + r : e % LEN / 2 * (2 * N / LEN) + (PetscInt)(TestRandom(7400, like, e % LEN / 2) * (N / LEN)) + e % 2;
    a[e] = TestValue(7401, e, 0);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(reorders); k++) {
    Mat A, R;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_reorder", reorders[k]));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, M, N, i, j, a, &R));
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(Products(A, R, MATSEQDENSE, 1, "scattered"));
    if (device) {
      PetscCall(Products(A, R, MATSEQDENSECUDA, 1, "scattered"));
      PetscCall(CompareArrays(A, R, "scattered"));
    }
    PetscCall(TestDestroy(&A, &R));
    for (PetscInt e = 0; e < M * LEN; e++) a[e] = TestValue(7401, e, 0);
  }
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Columns that do not increase have no tiles: another kernel computes the products. Once all rows have them in order, once one row has them backwards; and once each row, which is long enough to be looked
  at by several warps, is in two pieces that increase, at whose ends the warps begin.
*/
static PetscErrorCode Backwards(void)
{
  enum { M = 24, N = 820, LEN = 600 };
  PetscInt           *i, *j;
  PetscScalar        *a;
  const void         *data;
  MatGallopStatistics last = {0};
  Mat                 A, R, B, C;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "tensor"));
  PetscCall(PetscMalloc3(M + 1, &i, M * LEN, &j, M * LEN, &a));
  for (int k = 0; k < 3; k++) {
    i[0] = 0;
    for (PetscInt r = 0; r < M; r++) {
      i[r + 1] = i[r] + LEN;
      for (PetscInt c = 0; c < LEN; c++) {
        if (k < 2) j[i[r] + c] = k && r == M / 2 ? LEN - 1 - c : c;                                     /* one row is enough */
        else j[i[r] + c] = c < 256 ? 2 * c : c < 265 ? c + 256 : c < 301 ? 2 * (c - 265) + 1 : c + 220; /* 0 2 ... 510, 512 ... 520, 1 3 ... 71, 521 ... 819 */
        a[i[r] + c] = TestValue(7300, r, c);
      }
    }
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, M, N, i, j, a, &R));
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(MatGallopGetStatistics(A, &last));
    PetscCall(TestCreateDense(A, PETSC_FALSE, MATSEQDENSECUDA, 9, PETSC_FALSE, 7, &B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "backwards"));
    PetscCall(TestDenseCounts(A, 1, 0, TEST_DENSE_DEVICE, &last, "backwards"));
    PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_CUDA, &data));
    PetscCheck((((const TiledSpMM *)data)->kernel == TILEDSPMM_TENSOR) == !k, PETSC_COMM_SELF, PETSC_ERR_PLIB, "backwards, setting %d: tiles of columns that do not increase, or none of those that do", k);
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt sizes[]  = {1, 2, 7, 31, 32, 33, 64, 65, 127, 128, 129, 255, 257, 500, 1000, 1500};
  static const PetscInt panels[] = {32, 64, 96, 256, 512}, stages[] = {1, 3, 32, 100, 512, 4096}, columns[] = {0, 1, 2, 4, 8, 16, 32}, segments[] = {0, 1, 2, 5, 33, 100};
  static const char    *kernels[] = {"staged", "cached", "transposed", "tensor", "choose"}, *reorders[] = {"never", "always", "choose"};
  PetscInt              matrices = 200, first = 0;
  PetscBool             device = PETSC_FALSE;
  Mat                   A, R;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(TestHasDevice(&device));
  for (PetscInt number = first; number < first + matrices; number++) {
    const PetscInt m = sizes[Below(number, 3, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(sizes))];
    const PetscInt n = number % 3 ? m : sizes[Below(number, 4, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(sizes))];
    char           what[32];

    if (!TestInPart()) continue;
    PetscCall(PetscSNPrintf(what, sizeof(what), "matrix %" PetscInt_FMT, number));
    PetscCall(TestSetIntOption("-mat_tiledspmm_panel", panels[Below(number, 5, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(panels))]));
    PetscCall(TestSetIntOption("-mat_tiledspmm_stage", stages[Below(number, 6, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(stages))]));
    PetscCall(TestSetIntOption("-mat_tiledspmm_columns", columns[Below(number, 7, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(columns))]));
    PetscCall(TestSetIntOption("-mat_tiledspmm_segment", segments[Below(number, 8, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(segments))]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", kernels[Below(number, 9, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(kernels))]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_reorder", reorders[Below(number, 10, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(reorders))]));
    PetscCall(RandomMatrix((Law)(number % LAW_COUNT), number, m, n, &R));
    PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
    PetscCall(Products(A, R, MATSEQDENSE, number, what));
    if (device) {
      PetscCall(Products(A, R, MATSEQDENSECUDA, number, what));
      PetscCall(CompareArrays(A, R, what));
    }
    PetscCall(TestDestroy(&A, &R));
  }
  for (PetscInt segment = 0; segment <= 48; segment += 48) {
    if (TestInPart()) PetscCall(Shuffled(MATSEQDENSE, segment));
    if (device && TestInPart()) PetscCall(Shuffled(MATSEQDENSECUDA, segment));
  }
  if (device && !PetscDefined(USE_DEBUG) && TestInPart()) PetscCall(Backwards()); /* likewise */
  if (!first && TestInPart()) PetscCall(Scattered(device));
  if (device && first && TestInPart()) PetscCall(Ways());
  if (matrices >= 200 && !first && TestInPart()) PetscCall(ManyRows(device ? MATSEQDENSECUDA : MATSEQDENSE));
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
      args: -first 200 -format csroverlap

TEST*/
