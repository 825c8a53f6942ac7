/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "EVC-HYB by clusters: the order of rows and columns, products in it, new values, and which matrices are left alone.\n\n";

#include "packtest.h"
#include "graphtest.h"
#include "../../src/mat/impls/gallop/choice.h"
#include <petscksp.h>

/* Rows and columns of R, which goes, in a random order */
static PetscErrorCode Shuffle(Mat *R)
{
  PetscInt    m, *number;
  Mat         A;
  IS          is;
  PetscRandom random;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*R, &m, NULL));
  PetscCall(PetscMalloc1(m, &number));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  for (PetscInt k = 0; k < m; k++) number[k] = k;
  for (PetscInt k = m - 1; k > 0; k--) {
    PetscReal r;
    PetscInt  l, swap = number[k];

    PetscCall(PetscRandomGetValueReal(random, &r));
    l         = PetscMin(k, (PetscInt)(r * (PetscReal)(k + 1)));
    number[k] = number[l];
    number[l] = swap;
  }
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, m, number, PETSC_OWN_POINTER, &is));
  PetscCall(ISSetPermutation(is));
  PetscCall(MatPermute(*R, is, is, &A));
  PetscCall(ISDestroy(&is));
  PetscCall(MatDestroy(R));
  *R = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Uniform(PetscInt m, PetscInt each, Mat *A)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < each; k++) {
      const PetscInt width = m / each;

      PetscCall(TestEntriesPut(&e, k * width + PetscMin(width - 1, (PetscInt)(TestRandom(3, r, k) * (PetscReal)width)), TestValue(3, r, k)));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sectors of x per entry */
static PetscErrorCode Sectors(Mat A, PetscReal *sectors)
{
  GallopCSR     csr = {0};
  GallopPattern pattern;
  GallopLook    look;
  PetscBool     done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &csr.m, &csr.i, &csr.j, &done));
  csr.n  = csr.m;
  csr.nz = csr.i[csr.m];
  PetscCall(GallopPatternGet_Host(&csr, GALLOP_SECTOR, &pattern));
  PetscCall(GallopPatternLook(&csr, &pattern, 0, &look));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &csr.m, &csr.i, &csr.j, &done));
  *sectors = look.footprint;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the rows of a format, and its bits of products, are those of another */
static PetscErrorCode SameOrder(const EVCHYB *a, const EVCHYB *b, const char what[])
{
  EVCHYB *h, *d;
  char   *met;

  PetscFunctionBegin;
  PetscCall(EVCHYBCopyToHost(a, &h));
  PetscCall(EVCHYBCopyToHost(b, &d));
  TestCheck(h->clusters && d->clusters, "no clusters", what);
  PetscCall(TestSameBytes(h->clusters->order, d->clusters->order, (size_t)h->m * sizeof(*h->clusters->order), "order", what));
  PetscCall(PetscCalloc1(h->m, &met));
  for (PetscInt k = 0; k < h->m; k++) {
    const PetscInt row = h->clusters->order[k];

    TestCheck(row >= 0 && row < h->m && !met[row], "order[%" PetscInt_FMT "] is %" PetscInt_FMT, what, k, row);
    met[row] = 1;
  }
  PetscCall(PetscFree(met));
  PetscCall(EVCHYBDestroyHostCopy(&h));
  PetscCall(EVCHYBDestroyHostCopy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, and z += A x where y is z, by two formats of a matrix by clusters, which agree to the last bit */
static PetscErrorCode CheckPlace(Mat A, Mat B, Mat C, int place, const char what[])
{
  const PetscMemType memtype = place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;
  PetscInt           m;
  Vec                x, y, z, w;
  PetscBool          same;
  const EVCHYB      *b = NULL, *c = NULL;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MultiplyAt(B, m, place, &x, &z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, what));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(TestSetVec(y, 3));
  PetscCall(MatMult(C, x, w));
  PetscCall(VecEqual(z, w, &same));
  TestCheck(same, "two formats of the same matrix give other bits", what);
  PetscCall(MatMultAdd(B, x, y, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, y, z, 16, what));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(B, x, z, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, y, z, 16, what));
  PetscCall(MatMultTranspose(B, x, z));
  PetscCall(TestCompareLong(A, TEST_TRANSPOSE, x, NULL, z, 64, what));
  PetscCall(MatMultTransposeAdd(B, x, y, z));
  PetscCall(TestCompareLong(A, TEST_TRANSPOSE, x, y, z, 64, what));
  PetscCall(FormatAt(B, memtype, &b));
  PetscCall(FormatAt(C, memtype, &c));
  PetscCall(SameOrder(b, c, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that a dictionary has no numbers for, at every other entry */
static PetscErrorCode NewValues(Mat A, PetscInt seed)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = seed ? TestValue(seed, k, 7) : (PetscScalar)(k % 3 + 1);
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a matrix, which goes: products in either storage, and again with values that take as many bytes and more. One build, and a refresh for each state; the order stays. */
static PetscErrorCode TestMatrix(Mat *R, const char name[])
{
  static const char *const storages[] = {"plain", "packed"};
  Mat                      A          = *R, B, C;
  PetscBool                device = PETSC_FALSE;
  MatGallopStatistics      s;
  char                     what[64];
  void                    *before = NULL;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s", name, storages[k]));
    PetscCall(NewValues(A, 0));
    PetscCall(CreateStored(A, storages[k], PETSC_FALSE, &B));
    PetscCall(CreateStored(A, storages[k], PETSC_FALSE, &C));
    for (int values = 0; values < 3; values++) {
      const EVCHYB *ev = NULL;

      if (values) PetscCall(NewValues(A, values == 1 ? 0 : 5));
      if (values) PetscCall(MatScale(A, 2.0));
      if (values) PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
      if (values) PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
      PetscCall(CheckPlace(A, B, C, 0, what));
      PetscCall(FormatAt(B, PETSC_MEMTYPE_HOST, &ev));
      TestCheck(!values || ev == before, "another format after new values", what);
      TestCheck(k ? !!ev->packed : !!ev->plain, "another storage", what);
      before = (void *)ev;
      if (device) PetscCall(CheckPlace(A, B, C, 1, what));
    }
    PetscCall(MatGallopGetStatistics(B, &s));
    TestCheck(s.builds == 1 + device && s.refreshes == 2 * (1 + device), "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", what, s.builds, s.refreshes);
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatDestroy(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMatrices(void)
{
  Mat         A;
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_explicit_transpose", "always"));
  if (TestInPart()) {
    PetscCall(Stencil(9, 8, 7, 1, VALUES_ALL, &A));
    PetscCall(Shuffle(&A));
    PetscCall(TestMatrix(&A, "a stencil"));
  }
  if (TestInPart()) {
    PetscCall(Stencil(6, 5, 4, 3, VALUES_ALL, &A));
    PetscCall(Shuffle(&A));
    PetscCall(TestMatrix(&A, "three unknowns per node"));
  }
  for (int law = TEST_LAW_RANDOM; law <= TEST_LAW_ONE; law++) {
    char name[16];

    if (!TestInPart()) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "law %d", law));
    PetscCall(TestCreateByLaw((TestLaw)law, 11, 300, 300, &A));
    PetscCall(TestMatrix(&A, name));
  }
  for (PetscInt kind = 0; kind < 4; kind++) { /* rows that name themselves; chains of six, every fifth row empty; one row; a row with all columns, and a column with all rows */
    const PetscInt m = kind == 2 ? 1 : 700;

    if (!TestInPart()) continue;
    PetscCall(TestEntriesBegin(m, m, &e));
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt place = 367 * r % m; /* in the chain */

      if (kind == 0 || kind == 2) PetscCall(TestEntriesPut(&e, r, 1));
      else if (kind == 1) {
        for (PetscInt c = 0; c < m && r % 5; c++)
          if (367 * c % m / 6 == place / 6 && PetscAbsInt(367 * c % m - place) < 2) PetscCall(TestEntriesPut(&e, c, 1));
      } else
        for (PetscInt c = 0; c < m; c++)
          if (r == 5 || c == 5 || PetscAbsInt(367 * c % m - place) < 2) PetscCall(TestEntriesPut(&e, c, 1));
      TestEntriesEndRow(&e);
    }
    PetscCall(TestEntriesEnd(&e, &A));
    if (kind != 2) PetscCall(TestMatrix(&A, kind == 0 ? "no neighbours" : kind == 1 ? "chains" : "a dense row"));
    else PetscCall(MatDestroy(&A)); /* evchybproperty.c has such matrices: they have one order only */
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_explicit_transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By itself the order is for MATORDERINGGALLOP, and comes to the format on the GPU after 1000 products, where it pays, also where the CSR arrays are to go; not where it is for MATORDERINGGALLOP alone */
static PetscErrorCode TestDefault(Mat A, IS rows, PetscBool device, PetscBool expected, const char what[])
{
  Mat           B;
  IS            ownrows, owncolumns;
  PetscBool     same;
  PetscInt      m;
  const EVCHYB *ev = NULL;
  Vec           x, z;

  PetscFunctionBegin;
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetOrdering(B, MATORDERINGGALLOP, &ownrows, &owncolumns));
  PetscCall(ISEqualUnsorted(rows, ownrows, &same));
  TestCheck(same, "%s", what, "by itself another order than by auto");
  PetscCall(MultiplyAt(B, m, device, &x, &z));
  PetscCall(FormatAt(B, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
  TestCheck(!ev->clusters, "%s", what, "a format that is ordered at once by itself");
  TestCheck(ev->after == 1000 ? device : !(device && expected) && !ev->after, "an order after %" PetscInt_FMT " products", what, ev->after); /* where none pays that may have to be found out */
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(ISDestroy(&ownrows));
  PetscCall(ISDestroy(&owncolumns));
  PetscCall(MatDestroy(&B));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscOptionsSetValue(NULL, k ? "-mat_evchyb_order" : "-mat_gallop_csr", k ? "reorder" : "release"));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, device, &x, &z));
    PetscCall(FormatAt(B, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
    TestCheck(k ? !ev->after : ev->after == 1000 ? device : !(device && expected) && !ev->after, "an order after %" PetscInt_FMT " products with %s", what, ev->after, k ? "reorder" : "release");
    PetscCall(PetscOptionsClearValue(NULL, k ? "-mat_evchyb_order" : "-mat_gallop_csr"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the matrix, which goes, is ordered by `auto`: in MATORDERINGGALLOP, and in a format on the GPU; never on the host */
static PetscErrorCode TestAuto(Mat *R, PetscBool expected, const char what[])
{
  Mat           A = *R, B;
  IS            rows, columns, plainrows, plaincolumns;
  PetscBool     same, device;
  PetscReal     before, after;
  PetscInt      m;
  const EVCHYB *ev = NULL;
  Vec           x, z;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "auto"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order_after", "0"));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetOrdering(B, MATORDERINGGALLOP, &rows, &columns));
  for (int place = 0; place < 1 + device; place++) {
    PetscCall(MultiplyAt(B, m, place, &x, &z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, what));
    PetscCall(FormatAt(B, place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
    TestCheck(!ev->clusters == !(place && expected), "%s on the %s", what, ev->clusters ? "ordered" : "not ordered", place ? "GPU" : "host");
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(MatDestroy(&B));
  if (device) { /* the same after a product */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order_after", "1"));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, 1, &x, &z));
    for (int k = 0; k < 3; k++) PetscCall(MatMult(B, x, z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, what));
    PetscCall(FormatAt(B, PETSC_MEMTYPE_CUDA, &ev));
    TestCheck(!ev->clusters == !expected, "%s, after a product, on the %s", what, ev->clusters ? "ordered" : "not ordered", "GPU");
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order_after"));
  PetscCall(TestDefault(A, rows, device, expected, what));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "none"));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetOrdering(B, MATORDERINGGALLOP, &plainrows, &plaincolumns));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(ISEqualUnsorted(rows, plainrows, &same));
  TestCheck(same != expected, "%s", what, expected ? "left alone" : "ordered");
  if (expected) {
    Mat C;

    PetscCall(Sectors(A, &before));
    PetscCall(MatPermute(A, rows, rows, &C));
    PetscCall(Sectors(C, &after));
    TestCheck(before > 0.7 && after < 0.25, "%g sectors of x per entry in the order by clusters, %g before", what, (double)after, (double)before);
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscCall(ISDestroy(&plainrows));
  PetscCall(ISDestroy(&plaincolumns));
  PetscCall(MatDestroy(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestChoice(void)
{
  const PetscInt n = 54; /* 157,464 rows and 1.08 M entries: auto looks at that */
  Mat            A;

  PetscFunctionBegin;
  PetscCall(Stencil(n, n, n, 1, VALUES_SINGLE, &A));
  PetscCall(TestAuto(&A, PETSC_FALSE, "a stencil as it is"));
  PetscCall(Stencil(n, n, n, 1, VALUES_SINGLE, &A));
  PetscCall(Shuffle(&A));
  PetscCall(TestAuto(&A, PETSC_TRUE, "a shuffled stencil"));
  PetscCall(Uniform(140000, 8, &A));
  PetscCall(TestAuto(&A, PETSC_FALSE, "columns anywhere"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An order that comes after so many products of the same values */
static PetscErrorCode TestLater(void)
{
  const PetscInt after = 5;
  PetscBool      device;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order_after", "5"));
  for (int place = 0; place < 1 + device; place++) {
    const PetscMemType  memtype = place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;
    Mat                 A, B;
    Vec                 x, z;
    PetscInt            m;
    PetscCount          bytes;
    MatGallopStatistics now;
    const EVCHYB       *ev = NULL;
    PetscViewer         nowhere;

    PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, "/dev/null", &nowhere));
    PetscCall(PetscViewerPushFormat(nowhere, PETSC_VIEWER_ASCII_INFO_DETAIL));
    PetscCall(Stencil(12, 11, 10, 1, VALUES_ALL, &A));
    PetscCall(Shuffle(&A));
    PetscCall(MatGetSize(A, &m, NULL));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, place, &x, &z)); /* the first one builds */
    for (PetscInt values = 0, k = 1; k < 3 * after; k++) {
      const PetscBool ordered = (PetscBool)(values && k - values >= after);

      PetscCall(FormatAt(B, memtype, &ev));
      TestCheck(ordered || !ev->clusters, "%" PetscInt_FMT " products", "later", k);
      if (k == after - 1) { /* it would come before the next one but one */
        PetscCall(MatScale(A, -3.0));
        PetscCall(MatScale(B, -3.0));
        values = k;
      }
      for (int v = 0; v < 3; v++) PetscCall(MatView(B, nowhere)); /* which are no products */
      PetscCall(MatMult(B, x, z));
      PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, "later"));
      PetscCall(MatGallopGetStatistics(B, &now));
      PetscCall(FormatAt(B, memtype, &ev));
      TestCheck(now.builds == 1 + (ev->clusters != NULL) && now.refreshes == (values > 0), "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes with %s order", "later", now.builds, now.refreshes, ev->clusters ? "an" : "no");
    }
    TestCheck(ev->clusters && ev->clusters->num > 0, "%s", "later", "no order came");
    bytes = (PetscCount)ev->bytes;
    PetscCall(MatScale(A, 0.5));
    PetscCall(MatScale(B, 0.5));
    PetscCall(MatMult(B, x, z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, "later, new values"));
    PetscCall(FormatAt(B, memtype, &ev));
    PetscCall(MatGallopGetStatistics(B, &now));
    TestCheck(ev->clusters && now.builds == 2 && (PetscCount)ev->bytes == bytes, "%" PetscInt64_FMT " builds and %" PetscCount_FMT " bytes", "later, new values", now.builds, (PetscCount)ev->bytes);

    /* values that are new again after few products take the order away; it comes again, and stays where products are many */
    for (int again = 0; again < 4; again++) {
      const PetscBool   ordered  = (PetscBool)(again > 0);
      const PetscInt    products = again == 0 ? 1 : again == 1 ? after + 200 : 2;
      const char *const what[]   = {"given up", "there again", "kept after many products", "kept after few"};

      if (again != 1) {
        PetscCall(MatScale(A, 2.0));
        PetscCall(MatScale(B, 2.0));
      }
      for (PetscInt k = 0; k < products; k++) PetscCall(MatMult(B, x, z));
      PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, what[again]));
      PetscCall(FormatAt(B, memtype, &ev));
      TestCheck(!ev->clusters == !ordered, "%s", what[again], ev->clusters ? "an order" : "no order");
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&B));

    /* also where another type chose the format */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_format", "evchyb"));
    PetscCall(MatConvert(A, MATGALLOP, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, place, &x, &z));
    for (PetscInt k = 0; k < after + 2; k++) PetscCall(MatMult(B, x, z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, "chosen, later"));
    PetscCall(MatGallopGetStatistics(B, &now));
    TestCheck(now.builds == 2, "%" PetscInt64_FMT " builds", "chosen, later", now.builds);
    PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_format"));
    PetscCall(PetscViewerPopFormat(nowhere));
    PetscCall(PetscViewerDestroy(&nowhere));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order_after"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of a matrix whose CSR arrays have gone from the GPU: they come from the format there, and go again */
static PetscErrorCode OneCopy(Mat A, PetscInt storage, const char name[])
{
  static const char *const storages[] = {"plain", "packed"};
  const PetscInt           after      = 5;
  Mat                      B[2];
  Vec                      x, z[2];
  PetscInt                 m;
  PetscBool                same;
  const EVCHYB            *ev[2];
  MatGallopStatistics      s, before;
  char                     what[64];

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(PetscSNPrintf(what, sizeof(what), "one copy, %s, %s", name, storages[storage]));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_csr", k ? "release" : "keep"));
    PetscCall(CreateStored(A, storages[storage], PETSC_FALSE, &B[k]));
    if (k) PetscCall(VecDestroy(&x));
    PetscCall(MultiplyAt(B[k], m, 1, &x, &z[k]));
    PetscCall(FormatAt(B[k], PETSC_MEMTYPE_CUDA, &ev[k]));
    PetscCall(MatGallopGetStatistics(B[k], &before));
    TestCheck(!ev[k]->clusters && before.csr_releases + before.csr_uploads == k, "%" PetscInt64_FMT " releases and %" PetscInt64_FMT " uploads before the order", what, before.csr_releases, before.csr_uploads); /* -mat_gallop_build first makes a copy that goes */
    for (PetscInt l = 0; l < after + 2; l++) PetscCall(MatMult(B[k], x, z[k]));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z[k], 16, what));
    PetscCall(FormatAt(B[k], PETSC_MEMTYPE_CUDA, &ev[k]));
    PetscCall(MatGallopGetStatistics(B[k], &s));
    TestCheck(ev[k]->clusters && s.builds == 2 && s.csr_releases == before.csr_releases && s.csr_uploads == before.csr_uploads, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " releases and %" PetscInt64_FMT " uploads with the order", what, s.builds, s.csr_releases, s.csr_uploads);
  }
  PetscCall(SameOrder(ev[0], ev[1], what));
  PetscCall(VecEqual(z[0], z[1], &same));
  TestCheck(same, "other bits", what);
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&B[k]));
    PetscCall(VecDestroy(&z[k]));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_csr"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of a matrix whose first products the parent has computed: its copy goes after the build. One that a transposed product has brought back stays. */
static PetscErrorCode AfterParent(PetscBool back)
{
  const PetscInt      after = 5, most = 100000;
  char                build[16];
  PetscBool           set;
  Mat                 A, B;
  Vec                 x, y, z;
  PetscInt            m;
  const EVCHYB       *ev = NULL;
  MatGallopStatistics s;
  const char *const   what = back ? "a copy that came back" : "after the parent's products";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_build", build, sizeof(build), &set));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "pays"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_csr", "release"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_explicit_transpose", "never"));
  PetscCall(Stencil(back ? 14 : 13, 11, 9, 1, VALUES_ALL, &A)); /* sizes that no other matrix has had: of those products are expected */
  PetscCall(Shuffle(&A));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MultiplyAt(B, m, 1, &x, &z));
  for (PetscInt k = 0; k < most; k++) {
    PetscCall(MatGallopGetStatistics(B, &s));
    if (s.builds) break;
    PetscCall(MatMult(B, x, z));
  }
  TestCheck(s.builds == 1 && s.csr_releases == 1 && !s.csr_uploads, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " releases and %" PetscInt64_FMT " uploads before the order", what, s.builds, s.csr_releases, s.csr_uploads);
  PetscCall(VecDuplicate(x, &y));
  if (back) PetscCall(MatMultTranspose(B, x, y));
  for (PetscInt l = 0; l < after + 2; l++) PetscCall(MatMult(B, x, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, what));
  PetscCall(FormatAt(B, PETSC_MEMTYPE_CUDA, &ev));
  PetscCall(MatGallopGetStatistics(B, &s));
  TestCheck(ev->clusters && s.builds == 2 && s.csr_releases == 1 && !s.csr_uploads, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " releases and %" PetscInt64_FMT " uploads with the order", what, s.builds, s.csr_releases, s.csr_uploads);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  if (set) PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", build));
  else PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_build"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_csr"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_explicit_transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode RecordProduct(Mat B, Vec x, Vec z, cudaGraphExec_t *exec)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(TestRecord(B, x, z, exec, &ierr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w is A x, and so is what the graph puts into z, bit by bit; the graph goes */
static PetscErrorCode LaunchProduct(cudaGraphExec_t exec, Mat A, Vec x, Vec w, Vec z, const char what[])
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, w, 16, what));
  PetscCall(TestSpoilVec(z));
  PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscCallCUDA(cudaGraphLaunch(exec, NULL));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCall(VecEqual(z, w, &same));
  TestCheck(same, "the graph's product has other bits", what);
  PetscCallCUDA(cudaGraphExecDestroy(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A stencil's matrix, the same in our type, and vectors in places that stay */
typedef struct {
  Mat A, B;
  Vec x, z, w;
} Recording;

static PetscErrorCode RecordingBegin(Values values, PetscBool shuffled, const char csr[], const char storage[], Recording *r)
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_csr", csr));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", storage));
  PetscCall(Stencil(12, 11, 10, 1, values, &r->A));
  if (shuffled) PetscCall(Shuffle(&r->A));
  PetscCall(MatGetSize(r->A, &m, NULL));
  PetscCall(MatConvert(r->A, MATEVCHYB, MAT_INITIAL_MATRIX, &r->B));
  PetscCall(MultiplyAt(r->B, m, 1, &r->x, &r->z));
  PetscCall(VecDuplicate(r->x, &r->w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RecordingScale(Recording *r, PetscScalar factor)
{
  PetscFunctionBegin;
  PetscCall(MatScale(r->A, factor));
  PetscCall(MatScale(r->B, factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RecordingEnd(Recording *r)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&r->x));
  PetscCall(VecDestroy(&r->z));
  PetscCall(VecDestroy(&r->w));
  PetscCall(MatDestroy(&r->A));
  PetscCall(MatDestroy(&r->B));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_storage"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_csr"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A CUDA graph that records a product while an order is waited for: it stays right whatever comes after it, so no order comes; also where the parent's copy came back before, and as the first product of new values */
static PetscErrorCode Recorded(PetscBool back, PetscBool newvalues)
{
  const PetscInt      after = 5;
  const char *const   what  = back ? "recorded, with a copy that came back" : newvalues ? "recorded after new values" : "recorded";
  Recording           r;
  const EVCHYB       *ev = NULL;
  MatGallopStatistics s;
  cudaGraphExec_t     exec;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_explicit_transpose", "never"));
  PetscCall(RecordingBegin(VALUES_ALL, PETSC_TRUE, newvalues ? "keep" : "release", newvalues ? "plain" : "auto", &r)); /* kept, and plain, new values are a kernel's, which a graph can record */
  PetscCall(MatMult(r.B, r.x, r.w));
  if (back) PetscCall(MatMultTranspose(r.B, r.x, r.w));
  if (newvalues) PetscCall(RecordingScale(&r, -1.0));
  PetscCall(RecordProduct(r.B, r.x, r.z, &exec));
  for (PetscInt k = 0; k < 3 * after; k++) PetscCall(MatMult(r.B, r.x, r.w));
  PetscCall(FormatAt(r.B, PETSC_MEMTYPE_CUDA, &ev));
  PetscCall(MatGallopGetStatistics(r.B, &s));
  TestCheck(!ev->clusters && s.builds == 1, "%s, %" PetscInt64_FMT " builds", what, ev->clusters ? "an order came" : "no order", s.builds);
  PetscCall(TestSetVec(r.x, 4)); /* in its place */
  PetscCall(MatMult(r.B, r.x, r.w));
  PetscCall(LaunchProduct(exec, r.A, r.x, r.w, r.z, what));
  PetscCall(RecordingEnd(&r));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_explicit_transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An order that is there stays, however often values change, once a CUDA graph has recorded a product in it, be it one of many */
static PetscErrorCode RecordedInOrder(void)
{
  const char *const what = "recorded in its order";
  Recording         r;
  const EVCHYB     *ev = NULL;
  cudaGraphExec_t   exec;

  PetscFunctionBegin;
  PetscCall(RecordingBegin(VALUES_ALL, PETSC_TRUE, "keep", "plain", &r)); /* new values come to the place of the old ones */
  for (PetscInt k = 0; k < 2 * EVCHYB_CLUSTER_FEW; k++) PetscCall(MatMult(r.B, r.x, r.w));
  PetscCall(FormatAt(r.B, PETSC_MEMTYPE_CUDA, &ev));
  TestCheck(ev->clusters, "no order", what);
  PetscCall(RecordProduct(r.B, r.x, r.z, &exec));
  for (PetscInt k = 0; k < 5; k++) {
    PetscCall(RecordingScale(&r, -1.5));
    PetscCall(MatMult(r.B, r.x, r.w));
  }
  PetscCall(FormatAt(r.B, PETSC_MEMTYPE_CUDA, &ev));
  TestCheck(ev->clusters, "the order has gone", what);
  PetscCall(LaunchProduct(exec, r.A, r.x, r.w, r.z, what));
  PetscCall(RecordingEnd(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of packed storage are looked at by the host, but for those that are stored as they are: an error tells that a graph cannot record them, and the next product has them */
static PetscErrorCode RecordedPacked(Values values)
{
  const PetscBool   shorter = (PetscBool)(values != VALUES_ALL);
  const char *const what    = shorter ? "new values, packed in fewer bytes" : "new values, packed as they are";
  Recording         r;
  PetscErrorCode    ierr;
  cudaGraphExec_t   exec;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "none"));
  PetscCall(RecordingBegin(values, PETSC_FALSE, "keep", "packed", &r));
  PetscCall(RecordingScale(&r, -2.0));
  PetscCall(TestRecord(r.B, r.x, r.z, &exec, &ierr));
  TestCheck(ierr == (shorter ? PETSC_ERR_SUP : PETSC_SUCCESS), "error %d", what, (int)ierr);
  PetscCall(MatMult(r.B, r.x, r.w));
  if (exec) PetscCall(LaunchProduct(exec, r.A, r.x, r.w, r.z, what));
  else PetscCall(TestCompareLong(r.A, TEST_MULT, r.x, NULL, r.w, 16, what));
  PetscCall(RecordingEnd(&r));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode TestOneCopy(void)
{
  PetscBool device;
  Mat       A;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order_after", "5"));
  for (int law = TEST_LAW_RANDOM - 1; law <= TEST_LAW_ONE; law++) {
    if (law < TEST_LAW_RANDOM) {
      PetscCall(Stencil(12, 11, 10, 1, VALUES_ALL, &A));
      PetscCall(Shuffle(&A));
    } else PetscCall(TestCreateByLaw((TestLaw)law, 11, 700, 700, &A));
    for (PetscInt storage = 0; storage < 2; storage++) PetscCall(OneCopy(A, storage, law < TEST_LAW_RANDOM ? "a stencil" : "random"));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(AfterParent(PETSC_FALSE));
  PetscCall(AfterParent(PETSC_TRUE));
#if PetscDefined(HAVE_CUDA)
  PetscCall(Recorded(PETSC_FALSE, PETSC_FALSE));
  PetscCall(Recorded(PETSC_TRUE, PETSC_FALSE));
  PetscCall(Recorded(PETSC_FALSE, PETSC_TRUE));
  PetscCall(RecordedInOrder());
  PetscCall(RecordedPacked(VALUES_ALL));
  PetscCall(RecordedPacked(VALUES_256));
#endif
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_max_ell", "3")); /* all longer rows in SubCSR */
  PetscCall(TestCreateByLaw(TEST_LAW_RANDOM, 12, 900, 900, &A));
  PetscCall(OneCopy(A, 0, "long rows"));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_max_ell"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order_after"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The bytes of a format are those of its storage and its order; where these do not fit a limit it has no order */
static PetscErrorCode TestBytes(void)
{
  PetscCount    bytes[2];
  Mat           A, B;
  Vec           x, z;
  const EVCHYB *ev = NULL;
  PetscInt      m;

  PetscFunctionBegin;
  PetscCall(Stencil(12, 11, 10, 1, VALUES_ALL, &A));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", "plain"));
  for (int k = 0; k < 3; k++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", k ? "cluster" : "none"));
    if (k == 2) PetscCall(TestSetIntOption("-mat_evchyb_memory", (PetscInt)bytes[0] + 1000));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, 0, &x, &z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, "bytes"));
    PetscCall(FormatAt(B, PETSC_MEMTYPE_HOST, &ev));
    TestCheck(!ev->clusters == (k != 1), "%s", "bytes", ev->clusters ? "an order" : "no order");
    if (k < 2) bytes[k] = (PetscCount)ev->bytes;
    if (ev->clusters)
      TestCheck(bytes[1] >= (PetscCount)(ev->clusters->bytes + (size_t)m * 7 * sizeof(PetscScalar) / 2) && ev->clusters->bytes == (size_t)m * (sizeof(PetscInt) + 2 * sizeof(PetscScalar)), "%" PetscCount_FMT " bytes, of which %zu are for the order", "bytes", bytes[1],
                ev->clusters->bytes);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_memory"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_storage"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far entries are from the diagonal inside PCGALLOPREORDER, at most: near it by rcm, nearer than before by clusters */
static PetscErrorCode TestReorder(void)
{
  static const char *const orders[] = {"format", "format", "rcm"}, *const clusters[] = {"none", "cluster", "none"};
  PetscReal sectors[3];
  Mat       A, B, P;
  PC        pc;
  KSP       inner;

  PetscFunctionBegin;
  PetscCall(Stencil(24, 24, 24, 1, VALUES_ALL, &A));
  PetscCall(Shuffle(&A));
  for (int k = 0; k < 3; k++) {
    PetscInt        m, band = 0;
    const PetscInt *i, *j;
    PetscBool       done;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", clusters[k]));
    PetscCall(PetscOptionsSetValue(NULL, "-reorder_order", orders[k]));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
    PetscCall(PCSetType(pc, "gallopreorder"));
    PetscCall(PCSetOperators(pc, B, B));
    PetscCall(PCSetFromOptions(pc));
    PetscCall(PCSetUp(pc));
    PetscCall(PCGallopReorderGetKSP(pc, &inner));
    PetscCall(KSPGetOperators(inner, &P, NULL));
    PetscCall(Sectors(P, &sectors[k]));
    PetscCall(MatGetRowIJ(P, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt e = i[r]; e < i[r + 1]; e++) band = PetscMax(band, PetscAbsInt(j[e] - r));
    PetscCall(MatRestoreRowIJ(P, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
    TestCheck(k == 2 ? band < 4096 + 2 * 24 * 24 : band > 4096 + 2 * 24 * 24, "entries are %" PetscInt_FMT " from the diagonal", orders[k], band);
    TestCheck(!k || sectors[k] < 0.5 * sectors[0], "%g sectors of x per entry, %g before", clusters[k], (double)sectors[k], (double)sectors[0]);
    PetscCall(PCDestroy(&pc));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-reorder_order"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What -mat_view shows */
static PetscErrorCode TestView(void)
{
  Mat A, B;

  PetscFunctionBegin;
  PetscCall(Stencil(10, 10, 10, 1, VALUES_ALL, &A));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &B));
  PetscCall(PetscViewerPushFormat(PETSC_VIEWER_STDOUT_SELF, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(B, PETSC_VIEWER_STDOUT_SELF));
  PetscCall(PetscViewerPopFormat(PETSC_VIEWER_STDOUT_SELF));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No order comes where values change too often for it, nor where memory is limited */
static PetscErrorCode TestNever(void)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "cluster"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order_after", "5"));
  for (int limit = 0; limit < 2; limit++) {
    Mat           A, B;
    Vec           x, z;
    PetscInt      m;
    const EVCHYB *ev = NULL;

    if (limit) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_memory", "100000000"));
    PetscCall(Stencil(12, 11, 10, 1, VALUES_ALL, &A));
    PetscCall(Shuffle(&A));
    PetscCall(MatGetSize(A, &m, NULL));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MultiplyAt(B, m, 0, &x, &z));
    for (PetscInt k = 0; k < 24; k++) {
      if (!limit && k < 8 && k % 4 == 3) {
        PetscCall(MatScale(A, -3.0));
        PetscCall(MatScale(B, -3.0));
      }
      PetscCall(MatMult(B, x, z));
    }
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, 16, "never"));
    PetscCall(FormatAt(B, PETSC_MEMTYPE_HOST, &ev));
    TestCheck(!ev->clusters, "%s", "never", limit ? "an order within a limit of memory" : "an order after two sets of values with four products");
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    if (limit) PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_memory"));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_order_after"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestMatrices());
  if (TestInPart()) PetscCall(TestChoice());
  if (TestInPart()) PetscCall(TestBytes());
  if (TestInPart()) PetscCall(TestLater());
  if (TestInPart()) PetscCall(TestNever());
  if (TestInPart()) PetscCall(TestOneCopy());
  if (TestInPart()) PetscCall(TestReorder());
  if (TestInPart()) PetscCall(TestView());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    filter: grep clusters

TEST*/
