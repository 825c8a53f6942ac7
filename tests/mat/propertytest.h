/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  What the tests that look inside a format share, *property.c with random matrices and *format.c with written ones: matrices made row by row or by laws, sums in long double, arrays of host and GPU
  against each other, and the run of a format over matrices and settings.
*/

#include "../galloptest.h"

/* ---- matrices made row by row ---- */

typedef struct {
  PetscInt     m, n, rows, nz, room; /* rows and entries that are there, entries that there is room for */
  PetscInt    *i, *j;
  PetscScalar *a;
} TestEntries;

static inline PetscErrorCode TestEntriesBegin(PetscInt m, PetscInt n, TestEntries *e)
{
  PetscFunctionBegin;
  *e = (TestEntries){.m = m, .n = n, .room = 4 * m + 1};
  PetscCall(PetscMalloc1(m + 1, &e->i));
  PetscCall(PetscMalloc1(e->room, &e->j));
  PetscCall(PetscMalloc1(e->room, &e->a));
  e->i[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next entry of the row; none where there is no such column, as on the border of a grid */
static inline PetscErrorCode TestEntriesPut(TestEntries *e, PetscInt column, PetscScalar value)
{
  PetscFunctionBegin;
  if (column < 0 || column >= e->n) PetscFunctionReturn(PETSC_SUCCESS);
  if (e->nz == e->room) {
    e->room *= 2;
    PetscCall(PetscRealloc((size_t)e->room * sizeof(*e->j), &e->j));
    PetscCall(PetscRealloc((size_t)e->room * sizeof(*e->a), &e->a));
  }
  e->j[e->nz]   = column;
  e->a[e->nz++] = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void TestEntriesEndRow(TestEntries *e)
{
  e->i[++e->rows] = e->nz;
}

static inline PetscErrorCode TestEntriesFree(TestEntries *e)
{
  PetscFunctionBegin;
  PetscCheck(e->rows == e->m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " rows of %" PetscInt_FMT, e->rows, e->m);
  PetscCall(PetscFree(e->i));
  PetscCall(PetscFree(e->j));
  PetscCall(PetscFree(e->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestEntriesEnd(TestEntries *e, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, e->m, e->n, e->m, e->n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, e->i, e->j, e->a));
  PetscCall(TestEntriesFree(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix has the entries of each row in the order that they were put in, which may be none of increasing columns: a PETSc with debugging refuses those */
static inline PetscErrorCode TestEntriesEndAsPut(TestEntries *e, Mat *A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, e->m, e->n, e->i, e->j, e->a, &B));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, A));
  PetscCall(MatDestroy(&B));
  PetscCall(TestEntriesFree(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- random matrices: where a law has entries ---- */

typedef enum {
  TEST_LAW_RANDOM,
  TEST_LAW_BAND,
  TEST_LAW_POWER_COLUMNS, /* few columns have most entries */
  TEST_LAW_POWER,         /* few columns and few rows have most entries */
  TEST_LAW_CROSS,         /* a full column, and a full row */
  TEST_LAW_EMPTY,         /* most columns and rows */
  TEST_LAW_EQUAL_COLUMNS, /* all columns of the same length */
  TEST_LAW_EQUAL_ROWS,    /* all rows of the same length */
  TEST_LAW_DENSE,
  TEST_LAW_ONE /* one entry */
} TestLaw;

static inline PetscBool TestLawHasEntry(TestLaw law, PetscInt seed, PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  const PetscReal r = TestRandom(seed, i, j), c = TestRandom(seed, -1, j), d = TestRandom(seed, i, -1);

  switch (law) {
  case TEST_LAW_RANDOM:
    return (PetscBool)(r < 0.05);
  case TEST_LAW_BAND:
    return (PetscBool)(i - j <= 2 && j - i <= 3);
  case TEST_LAW_POWER_COLUMNS:
    return (PetscBool)(r < 0.002 / (0.002 + c));
  case TEST_LAW_POWER:
    return (PetscBool)(r < 0.002 / (0.002 + c * d));
  case TEST_LAW_CROSS:
    return (PetscBool)(j == n / 2 || i == m / 3 || r < 0.02);
  case TEST_LAW_EMPTY:
    return (PetscBool)(c < 0.2 && d < 0.2 && r < 0.4);
  case TEST_LAW_EQUAL_COLUMNS:
    return (PetscBool)((i + 7 * j) % m < PetscMin(3, m));
  case TEST_LAW_EQUAL_ROWS:
    return (PetscBool)((j + 7 * i) % n < PetscMin(3, n));
  case TEST_LAW_DENSE:
    return (PetscBool)(r < 0.8);
  case TEST_LAW_ONE:
    return (PetscBool)(i == m / 2 && j == n / 3);
  }
  return PETSC_FALSE;
}

static inline PetscErrorCode TestCreateByLaw(TestLaw law, PetscInt seed, PetscInt m, PetscInt n, Mat *A)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt j = 0; j < n; j++)
      if (TestLawHasEntry(law, seed, m, n, i, j)) PetscCall(TestEntriesPut(&e, j, TestValue(seed, i, j)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products ---- */

/* Vectors of a type, for z = A x */
static inline PetscErrorCode TestCreateVecsOfType(Mat A, VecType type, Vec *x, Vec *z)
{
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, x));
  PetscCall(VecSetSizes(*x, n, n));
  PetscCall(VecSetType(*x, type));
  PetscCall(VecCreate(PETSC_COMM_SELF, z));
  PetscCall(VecSetSizes(*z, m, m));
  PetscCall(VecSetType(*z, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z against op(R) x + y in long double, on one process; y may be NULL */
static inline PetscErrorCode TestCompareLong(Mat R, TestOp op, Vec x, Vec y, Vec z, PetscReal ulps, const char what[])
{
  const PetscInt    *i, *j;
  const PetscScalar *a, *xa, *ya = NULL, *za;
  PetscInt           m, n, rows;
  PetscBool          done;
  TestSum           *sum;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &m, &n));
  rows = op == TEST_MULT ? m : n;
  PetscCall(PetscCalloc1(rows, &sum));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(R, &a));
  PetscCall(VecGetArrayRead(x, &xa));
  if (y) PetscCall(VecGetArrayRead(y, &ya));
  PetscCall(VecGetArrayRead(z, &za));
  for (PetscInt r = 0; r < rows && y; r++) TestSumAdd(&sum[r], 1.0, ya[r]);
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const PetscInt to = op == TEST_MULT ? r : j[k], from = op == TEST_MULT ? j[k] : r;

      TestSumAdd(&sum[to], op == TEST_HERMITIAN ? PetscConj(a[k]) : a[k], xa[from]);
    }
  }
  for (PetscInt r = 0; r < rows; r++) PetscCall(TestCompareSum(&sum[r], za[r], ulps, r, 0, what));
  PetscCall(VecRestoreArrayRead(z, &za));
  if (y) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscCall(MatSeqAIJRestoreArrayRead(R, &a));
  PetscCall(MatRestoreRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(PetscFree(sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x + y, into another vector and into y's own; the product of a transpose if op is TEST_TRANSPOSE */
static inline PetscErrorCode TestAdds(Mat A, Mat R, TestOp op, Vec x, Vec y, Vec z, const char what[])
{
  PetscErrorCode (*const add)(Mat, Vec, Vec, Vec) = op == TEST_TRANSPOSE ? MatMultTransposeAdd : MatMultAdd;

  PetscFunctionBegin;
  PetscCheck(op == TEST_MULT || op == TEST_TRANSPOSE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "no such product here");
  PetscCall(TestSpoilVec(z));
  PetscCall((*add)(A, x, y, z));
  PetscCall(TestCompare(R, op, x, y, z, what));
  PetscCall(VecCopy(y, z));
  PetscCall((*add)(A, x, z, z));
  PetscCall(TestCompare(R, op, x, y, z, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inf and NaN in x, one process: they touch the sums that have entries there, and no others. x is spoilt, z gets the product. */
static inline PetscErrorCode TestSpecial(Mat A, Mat R, TestOp op, Vec x, Vec z, const char what[])
{
  PetscErrorCode (*const mult)(Mat, Vec, Vec) = op == TEST_TRANSPOSE ? MatMultTranspose : MatMult;
  Vec                xhost, w;
  PetscInt           n, m;
  const PetscScalar *za, *wa;
  PetscScalar       *xa;

  PetscFunctionBegin;
  PetscCheck(op == TEST_MULT || op == TEST_TRANSPOSE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "no such product here");
  PetscCall(VecGetSize(x, &n));
  PetscCall(VecGetSize(z, &m));
  PetscCall(VecGetArray(x, &xa));
  xa[n / 3]     = (PetscScalar)NAN;
  xa[n / 2]     = (PetscScalar)INFINITY; /* PETSC_INFINITY is a finite number */
  xa[2 * n / 3] = -(PetscScalar)INFINITY;
  PetscCall(VecRestoreArray(x, &xa));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &xhost));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m, &w));
  PetscCall(VecCopy(x, xhost));
  PetscCall((*mult)(A, x, z));
  PetscCall((*mult)(R, xhost, w));
  PetscCall(VecGetArrayRead(z, &za));
  PetscCall(VecGetArrayRead(w, &wa));
  for (PetscInt r = 0; r < m; r++) {
    const PetscBool same = (PetscBool)(PetscIsInfOrNanScalar(za[r]) == PetscIsInfOrNanScalar(wa[r]) && (PetscDefined(USE_COMPLEX) || PetscIsNanScalar(za[r]) == PetscIsNanScalar(wa[r])));

    TestCheck(same, "sum %" PetscInt_FMT " is %g, should be %g", what, r, (double)PetscRealPart(za[r]), (double)PetscRealPart(wa[r]));
  }
  PetscCall(VecRestoreArrayRead(z, &za));
  PetscCall(VecRestoreArrayRead(w, &wa));
  PetscCall(VecDestroy(&xhost));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of a matrix with vectors of MatCreateVecs(), with its values and then with others, all of them the format's. One build, one refresh. */
static inline PetscErrorCode TestFormatProducts(Mat A, const char what[])
{
  Vec                 x, y, z;
  Mat                 R;
  MatGallopStatistics before, after;
  PetscInt64          products;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &before));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestSetVec(y, 3));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestSetVec(x, 2));
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, what));
    PetscCall(TestAdds(A, R, TEST_MULT, x, y, z, what));
    PetscCall(TestSpoilVec(x));
    PetscCall(MatMultTranspose(A, y, x));
    PetscCall(TestCompare(R, TEST_TRANSPOSE, y, NULL, x, what));
    PetscCall(MatScale(A, -3.0));
    PetscCall(MatScale(R, -3.0));
  }
  PetscCall(MatGallopGetStatistics(A, &after));
  products = after.products_host + after.products_device - before.products_host - before.products_device;
  TestCheck(after.builds == 1 && after.refreshes == 1, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", what, after.builds, after.refreshes);
  TestCheck(products == 8 && after.fallbacks == before.fallbacks, "%" PetscInt64_FMT " products, and %" PetscInt64_FMT " by the parent", what, products, after.fallbacks - before.fallbacks);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors of a type for products with A: x, which has values, and u as its rows are, y, which has values, and z as its columns */
static inline PetscErrorCode TestProductVecsCreate(Mat A, VecType type, PetscInt seed, Vec *x, Vec *y, Vec *z, Vec *u)
{
  PetscFunctionBegin;
  PetscCall(TestCreateVecsOfType(A, type, x, z));
  PetscCall(VecDuplicate(*z, y));
  PetscCall(VecDuplicate(*x, u));
  PetscCall(TestSetVec(*x, seed));
  PetscCall(TestSetVec(*y, seed + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestProductVecsDestroy(Vec *x, Vec *y, Vec *z, Vec *u)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(x));
  PetscCall(VecDestroy(y));
  PetscCall(VecDestroy(z));
  PetscCall(VecDestroy(u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Whether AIJCUSPARSE's products may go wrong: its csrmv_v3_kernel loses the last of 32 or 33 rows now and then where other processes share the GPU by MPS, with matrices of PETSc's types too, and its
  product of a conjugate transpose an entry of it. compute-sanitizer's racecheck tells of a race in that kernel.
*/
static inline PetscErrorCode TestIsRaced(Mat A, PetscBool *raced)
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  *raced = (PetscBool)(m == 32 || m == 33);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products of B with vectors of a type, whose answers are those of A. The format computes transposed ones itself. */
static inline PetscErrorCode TestFormatProductsOfType(Mat A, Mat B, VecType type, PetscInt seed, const char what[])
{
  Vec                 x, y, z, u;
  MatGallopStatistics before, after;
  PetscInt64          products;
  PetscBool           device;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, VECSEQCUDA, &device));
  PetscCall(TestProductVecsCreate(A, type, seed, &x, &y, &z, &u));
  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(TestAdds(B, A, TEST_MULT, x, y, z, what));

  PetscCall(TestSpoilVec(u));
  PetscCall(MatMultTranspose(B, y, u));
  PetscCall(TestCompare(A, TEST_TRANSPOSE, y, NULL, u, what));
  PetscCall(TestAdds(B, A, TEST_TRANSPOSE, y, x, u, what));
  PetscCall(TestSpoilVec(u));
  PetscCall(MatMultHermitianTranspose(B, y, u));
  PetscCall(TestCompare(A, TEST_HERMITIAN, y, NULL, u, what));
  PetscCall(VecCopy(x, u));
  PetscCall(MatMultHermitianTransposeAdd(B, y, u, u));
  PetscCall(TestCompare(A, TEST_HERMITIAN, y, x, u, what));

  PetscCall(TestSpecial(B, A, TEST_MULT, x, z, what));
  PetscCall(TestSpecial(B, A, TEST_TRANSPOSE, y, u, what));
  PetscCall(MatGallopGetStatistics(B, &after));
  products = device ? after.products_device - before.products_device : after.products_host - before.products_host;
  TestCheck(products == 10 && after.fallbacks == before.fallbacks, "%" PetscInt64_FMT " products of 10 were the format's", what, products);
  PetscCall(TestProductVecsDestroy(&x, &y, &z, &u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- arrays ---- */

/* Number k of n that an array has, and should have: those of expected, up to its end */
static inline PetscErrorCode TestCheckList(const char what[], const char name[], PetscInt n, const PetscInt expected[], PetscInt end, PetscInt k, PetscInt value)
{
  PetscInt len = 0;

  PetscFunctionBegin;
  while (expected[len] != end) len++;
  TestCheck(len == n, "%s has %" PetscInt_FMT " numbers, not %" PetscInt_FMT, what, name, n, len);
  TestCheck(k >= n || value == expected[k], "%s[%" PetscInt_FMT "] is %" PetscInt_FMT ", not %" PetscInt_FMT, what, name, k, value, expected[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestSameBytes(const void *h, const void *d, size_t bytes, const char name[], const char what[])
{
  PetscFunctionBegin;
  TestCheck(!bytes || !memcmp(h, d, bytes), "host and GPU differ in %s", what, name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Members of what host and GPU have built, h and d, both of them on the host now: a number, an array of n, whether there is an array */
#define TestSameNumber(h, d, member, what)   TestCheck((h)->member == (d)->member, "host and GPU differ in " #member ": %g, %g", what, (double)(h)->member, (double)(d)->member)
#define TestSameArray(h, d, member, n, what) PetscCall(TestSameBytes((h)->member, (d)->member, (size_t)(n) * sizeof(*(h)->member), #member, what))
#define TestSamePresence(h, d, member, what) TestCheck(!(h)->member == !(d)->member, "only one of host and GPU has " #member, what)

/* ---- the run of a format ---- */

/* A format is built from each of many random matrices, with some of its settings */
typedef struct {
  MatType        format;
  const TestLaw *laws; /* laws and settings take turns */
  PetscInt       nlaws, nsettings;
  PetscErrorCode (*create)(TestLaw law, PetscInt number, Mat *A); /* matrix number of all */
  PetscErrorCode (*setoptions)(PetscInt setting);
  /* what B has built on the host, and on the GPU if device; A is a plain matrix with the same entries */
  PetscErrorCode (*check)(Mat A, Mat B, PetscBool device, PetscInt setting, const char what[]);
} TestProperties;

/* Sizes at and around those of warps and words */
static inline void TestPropertySize(PetscInt number, PetscInt *m, PetscInt *n)
{
  static const PetscInt sizes[] = {1, 2, 7, 31, 32, 33, 63, 64, 65, 97, 129, 200};

  *m = sizes[(size_t)(TestRandom(number, 0, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))];
  *n = number % 3 ? *m : sizes[(size_t)(TestRandom(number, 1, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))];
}

/* Products and arrays of a matrix with a setting, and again with new values in the same pattern */
static inline PetscErrorCode TestPropertiesOf(const TestProperties *t, Mat A, PetscInt number, PetscInt setting)
{
  Mat                 B, C;
  MatInfo             info;
  VecType             vectype;
  PetscBool           device;
  MatGallopStatistics stats;
  char                what[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", setting %" PetscInt_FMT, number, setting));
  PetscCall((*t->setoptions)(setting));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatConvert(C, t->format, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetVecType(B, &vectype));
  PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
  for (int values = 0; values < 2; values++) {
    PetscCall(TestFormatProductsOfType(C, B, VECSEQ, number, what));
    if (device) PetscCall(TestFormatProductsOfType(C, B, VECSEQCUDA, number, what));
    if (info.nz_used > 0) PetscCall((*t->check)(C, B, device, setting, what)); /* no format is made of no entries */
    PetscCall(MatScale(C, -1.5));
    PetscCall(MatScale(B, -1.5));
  }
  PetscCall(MatGallopGetStatistics(B, &stats));
  if (info.nz_used > 0) TestCheck(stats.builds == 1 + device && stats.refreshes == 1 + device, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", what, stats.builds, stats.refreshes);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -matrices from -first on, -each settings for each matrix. all, or NULL: as many of both as without options, or more. */
static inline PetscErrorCode TestPropertiesRun(const TestProperties *t, PetscBool *all)
{
  PetscInt matrices = 130, first = 0, each = 2, done = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-each", &each, NULL));
  for (PetscInt number = first; number < first + matrices; number++) {
    const PetscInt turn = number / t->nlaws, law = number % t->nlaws;
    Mat            A;

    if (!TestInPart()) continue;
    PetscCall((*t->create)(t->laws[law], number, &A));
    for (PetscInt k = 0; k < each; k++) PetscCall(TestPropertiesOf(t, A, number, (turn * each + law + k) % t->nsettings));
    PetscCall(MatDestroy(&A));
    done++;
  }
  if (all) *all = (PetscBool)(done >= 130 && each >= 2);
  PetscFunctionReturn(PETSC_SUCCESS);
}
