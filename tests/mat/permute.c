/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MATORDERINGGALLOP and MatGallopPermute(): the order is the format's, the format of the permuted matrix has rows in order, and its products are the permuted ones.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"

/* Rows of 1 to 12 entries in no order, some of hundreds, and some empty; fewer than half are */
static PetscErrorCode FillRows(Mat A, PetscInt valueseed, PetscInt empty, PetscBool more)
{
  PetscInt n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    const PetscInt length = i % empty == 4 ? 0 : i % 97 == 50 ? 150 + i % 7 * 40 : 1 + (PetscInt)(12 * TestRandom(70, i, 0));

    for (PetscInt k = 0; k < length; k++) {
      const PetscInt j = k % 3 == 2 ? (PetscInt)(n * TestRandom(71, i, k)) : (i + 5 * k) % n;

      PetscCall(MatSetValue(A, i, j, TestValue(valueseed, i, j), INSERT_VALUES));
    }
    if (more && i % 5 == 0) PetscCall(MatSetValue(A, i, n - 1 - i, TestValue(valueseed, i, n - 1 - i), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format of the matrix or of its diagonal block, on the host */
static PetscErrorCode GetFormat(Mat A, EVCHYB **ev)
{
  const void *data;
  PetscBool   mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &A, NULL, NULL));
  PetscCall(TestFormatData(A, "a permuted matrix, or what was permuted", &data));
  PetscCall(EVCHYBCopyToHost((const EVCHYB *)data, ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order is that in which the format of A keeps rows, and that of B keeps them as they come */
static PetscErrorCode CheckFormats(Mat A, IS order, Mat B)
{
  EVCHYB         *a, *b;
  const PetscInt *k;
  PetscInt        rstart, n, moved = 0;

  PetscFunctionBegin;
  PetscCall(GetFormat(A, &a));
  PetscCall(GetFormat(B, &b));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(ISGetIndices(order, &k));
  n = a->plain->ell.n + a->plain->csr.n + a->plain->nlisted;
  for (PetscInt r = 0; r < n; r++) {
    PetscCheck(a->plain->perm[r] == k[r] - rstart, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the format's row %" PetscInt_FMT " is %" PetscInt_FMT ", the order's %" PetscInt_FMT, r, a->plain->perm[r], k[r] - rstart);
    moved += a->plain->perm[r] != r;
  }
  PetscCheck(moved > n / 2 && !a->plain->inorder, PETSC_COMM_SELF, PETSC_ERR_PLIB, "only %" PetscInt_FMT " of %" PetscInt_FMT " rows change their place: nothing is tested", moved, n);
  PetscCheck(b->plain->ell.n + b->plain->csr.n + b->plain->nlisted == n && b->plain->inorder, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the rows of the permuted matrix are not in order");
  for (PetscInt r = 0; r < n; r++) PetscCheck(b->plain->perm[r] == r, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " of the permuted matrix comes as number %" PetscInt_FMT, b->plain->perm[r], r);
  /* the same column blocks and rows of SubCSR, no more padding */
  PetscCheck(a->plain->ell.nz == b->plain->ell.nz && a->plain->csr.nz == b->plain->csr.nz && a->nempty == b->nempty, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscCount_FMT " and %" PetscCount_FMT " stored entries, %" PetscCount_FMT " and %" PetscCount_FMT " in the permuted matrix",
             a->plain->ell.nz, a->plain->csr.nz, b->plain->ell.nz, b->plain->csr.nz);
  PetscCall(ISRestoreIndices(order, &k));
  PetscCall(EVCHYBDestroyHostCopy(&a));
  PetscCall(EVCHYBDestroyHostCopy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P (A x) and B (P x), for y = A x and y = A x + w, against the sums of the plain matrix R; and B itself against MatPermute() */
static PetscErrorCode CheckProducts(Mat A, Mat R, IS order, Mat B, const char what[])
{
  Vec       x, y, w, px, py, pw, back;
  Mat       permuted, plain;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &w));
  PetscCall(VecDuplicate(y, &back));
  PetscCall(MatCreateVecs(B, &px, &py));
  PetscCall(VecDuplicate(py, &pw));
  PetscCall(TestSetVec(x, 80));
  PetscCall(TestSetVec(w, 81));
  PetscCall(VecGallopPermute(x, order, PETSC_FALSE, px));
  PetscCall(VecGallopPermute(w, order, PETSC_FALSE, pw));
  PetscCall(TestSpoilVec(py));
  PetscCall(MatMult(B, px, py));
  PetscCall(VecGallopPermute(py, order, PETSC_TRUE, back));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, back, what));
  PetscCall(TestSpoilVec(py));
  PetscCall(MatMultAdd(B, px, pw, py));
  PetscCall(VecGallopPermute(py, order, PETSC_TRUE, back));
  PetscCall(TestCompare(R, TEST_MULT, x, w, back, what));
  PetscCall(MatMultAdd(B, px, pw, pw));
  PetscCall(VecGallopPermute(pw, order, PETSC_TRUE, back));
  PetscCall(TestCompare(R, TEST_MULT, x, w, back, what));
  PetscCall(MatMultTranspose(B, px, py));
  PetscCall(VecGallopPermute(py, order, PETSC_TRUE, back));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, NULL, back, what));
  PetscCall(MatMult(A, x, y)); /* so that A has a format */

  PetscCall(MatPermute(R, order, order, &permuted));
  PetscCall(MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &plain));
  PetscCall(MatEqual(permuted, plain, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: MatPermute() gives another matrix", what);
  PetscCall(MatDestroy(&permuted));
  PetscCall(MatDestroy(&plain));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&px));
  PetscCall(VecDestroy(&py));
  PetscCall(VecDestroy(&pw));
  PetscCall(VecDestroy(&back));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that are newest on the GPU are permuted there: once the permuted matrix is there, and where its entries come from, none of them is copied between host and GPU */
static PetscErrorCode StaysOnDevice(Mat A, Mat R, IS order, Mat B)
{
  MatInfo        info;
  PetscLogDouble in = 0, out = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(A, 0.5)); /* on the GPU, where there is one */
    PetscCall(MatScale(R, 0.5));
#if PetscDefined(HAVE_DEVICE)
    in  = petsc_ctog_sz;
    out = petsc_gtoc_sz;
#endif
    PetscCall(MatGallopPermute(A, order, order, MAT_REUSE_MATRIX, &B));
#if PetscDefined(HAVE_DEVICE)
    in  = petsc_ctog_sz - in;
    out = petsc_gtoc_sz - out;
#endif
  }
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCheck(in < info.nz_used * sizeof(PetscScalar) / 2 && out < info.nz_used * sizeof(PetscScalar) / 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "new values on the GPU: %g bytes were copied there and %g from there to permute %g entries", in, out, info.nz_used);
  PetscCall(CheckProducts(A, R, order, B, "new values on the GPU"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(PetscInt n, PetscInt empty)
{
  const TestShape     shape = {n, n, PETSC_FALSE};
  Mat                 A, R, B, copy;
  IS                  rows, columns;
  PetscBool           same, ours, evchyb;
  MatType             type;
  MatGallopStatistics stats, before;
  PetscInt            parts;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  PetscCall(FillRows(A, 72, empty, PETSC_FALSE));
  PetscCall(FillRows(R, 72, empty, PETSC_FALSE));
  PetscCall(MatGetOrdering(A, MATORDERINGGALLOP, &rows, &columns));
  PetscCall(ISEqualUnsorted(rows, columns, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "rows and columns have different orders");
  PetscCall(ISDestroy(&columns));
  PetscCall(MatGallopPermute(A, rows, rows, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, type, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the permuted matrix is not of type %s", type);
  PetscCall(CheckProducts(A, R, rows, B, "new matrix"));
  PetscCall(MatGallopIsFormat(A, &ours));
  PetscCall(PetscStrcmp(TestFormat(""), MATEVCHYB, &evchyb));
  if (evchyb) PetscCall(CheckFormats(A, rows, B));

  /* new values */
  PetscCall(FillRows(A, 73, empty, PETSC_FALSE));
  PetscCall(FillRows(R, 73, empty, PETSC_FALSE));
  if (ours) PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(MatGallopPermute(A, rows, rows, MAT_REUSE_MATRIX, &B));
  PetscCall(CheckProducts(A, R, rows, B, "new values"));
  if (ours) {
    PetscCall(TestParts(B, &parts));
    PetscCall(MatGallopGetStatistics(B, &stats));
    PetscCheck(stats.builds == before.builds && stats.refreshes == before.refreshes + parts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "new values: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes",
               stats.builds - before.builds, stats.refreshes - before.refreshes);
    PetscCheck(stats.products_host + stats.products_device >= before.products_host + before.products_device + 3 * parts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "new values: products not by the format");
  }
  if (evchyb) PetscCall(CheckFormats(A, rows, B));

  /* into a duplicate, which does not know where the entries of A go */
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &copy));
  PetscCall(FillRows(A, 74, empty, PETSC_FALSE));
  PetscCall(FillRows(R, 74, empty, PETSC_FALSE));
  PetscCall(MatScale(A, 3.0)); /* on the GPU, where there is one */
  PetscCall(MatScale(R, 3.0));
  PetscCall(MatGallopPermute(A, rows, rows, MAT_REUSE_MATRIX, &copy));
  PetscCall(CheckProducts(A, R, rows, copy, "new values in a duplicate"));
  if (ours) PetscCall(StaysOnDevice(A, R, rows, copy));
  PetscCall(MatDestroy(&copy));
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&rows));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of a plain matrix is that of the same matrix as MATEVCHYB */
static PetscErrorCode PlainMatrix(void)
{
  const TestShape shape = {700, 700, PETSC_FALSE};
  Mat             A, R, B;
  IS              rows[2], columns[2];
  PetscBool       same;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATEVCHYB, shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  PetscCall(FillRows(A, 72, 13, PETSC_FALSE));
  PetscCall(FillRows(R, 72, 13, PETSC_FALSE));
  PetscCall(MatGetOrdering(A, MATORDERINGGALLOP, &rows[0], &columns[0]));
  PetscCall(MatGetOrdering(R, MATORDERINGGALLOP, &rows[1], &columns[1]));
  PetscCall(ISEqualUnsorted(rows[0], rows[1], &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "a plain matrix has another order");
  PetscCall(MatGallopPermute(R, rows[0], columns[0], MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckProducts(A, R, rows[0], B, "plain matrix"));
  PetscCall(MatDestroy(&B));
  for (int k = 0; k < 2; k++) {
    PetscCall(ISDestroy(&rows[k]));
    PetscCall(ISDestroy(&columns[k]));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(PetscErrorCode ierr, PetscErrorCode wanted, const char what[])
{
  PetscFunctionBegin;
  PetscCheck(ierr == wanted, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s gave error %d, not %d", what, (int)ierr, (int)wanted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one call gives while errors are returned rather than printed */
#define EXPECT_ERROR(call, wanted, what) \
  do { \
    PetscErrorCode ierr; \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    ierr = call; \
    PetscCall(PetscPopErrorHandler()); \
    PetscCall(Expect(ierr, wanted, what)); \
  } while (0)

static PetscErrorCode Refused(void)
{
  const TestShape shape = {60, 60, PETSC_FALSE}, wide = {60, 80, PETSC_FALSE};
  Mat             A, W, D, B = NULL, C;
  IS              order, other, columns;
  PetscInt        n, rstart;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(FillRows(A, 72, 13, PETSC_FALSE));
  PetscCall(MatGetOrdering(A, MATORDERINGGALLOP, &order, &columns));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, n, rstart + n - 1, -1, &other));
  EXPECT_ERROR(MatGallopPermute(A, order, other, MAT_INITIAL_MATRIX, &B), PETSC_ERR_ARG_INCOMP, "another order of the columns");
  EXPECT_ERROR(MatGallopPermute(A, order, order, MAT_INPLACE_MATRIX, &B), PETSC_ERR_SUP, "a permutation in place");
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), wide, &W));
  PetscCall(TestFill(W, 1, 1));
  EXPECT_ERROR(MatGallopPermute(W, order, order, MAT_INITIAL_MATRIX, &B), PETSC_ERR_ARG_SIZ, "a rectangular matrix");
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, NULL, &D));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  EXPECT_ERROR(MatGallopPermute(D, order, order, MAT_INITIAL_MATRIX, &B), PETSC_ERR_SUP, "a dense matrix");
  EXPECT_ERROR(MatGetOrdering(D, MATORDERINGGALLOP, &other, &other), PETSC_ERR_SUP, "the order of a dense matrix");
  PetscCall(MatGallopPermute(A, order, columns, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &C));
  PetscCall(FillRows(C, 72, 13, PETSC_TRUE));
  EXPECT_ERROR(MatGallopPermute(C, order, order, MAT_REUSE_MATRIX, &B), PETSC_ERR_ARG_WRONG, "reuse with another pattern");
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  EXPECT_ERROR(MatGallopPermute(A, order, order, MAT_REUSE_MATRIX, &B), PETSC_ERR_ARG_WRONG, "reuse of what was not permuted");
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&W));
  PetscCall(MatDestroy(&A));
  PetscCall(ISDestroy(&order));
  PetscCall(ISDestroy(&columns));
  PetscCall(ISDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix, the same as plain AIJ, and its order */
static PetscErrorCode Small(Mat *A, Mat *R, IS *order, IS *columns)
{
  const TestShape shape = {300, 300, PETSC_FALSE};

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, R));
  PetscCall(FillRows(*A, 73, 13, PETSC_FALSE));
  PetscCall(FillRows(*R, 73, 13, PETSC_FALSE));
  PetscCall(MatGetOrdering(*A, MATORDERINGGALLOP, order, columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for a permuted matrix of before, whether the matrix, then and now, is bound to the CPU or not */
static PetscErrorCode Bound(void)
{
  static const PetscBool bound[] = {PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE};
  Mat                    A, R, B = NULL;
  IS                     order, columns;
  PetscBool              now;

  PetscFunctionBegin;
  PetscCall(Small(&A, &R, &order, &columns));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bound); k++) {
    PetscCall(MatBindToCPU(A, bound[k]));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(MatGallopPermute(A, order, order, B ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &B));
    PetscCall(CheckProducts(A, R, order, B, bound[k] ? "bound to the CPU" : "no longer bound to the CPU"));
    PetscCall(MatBoundToCPU(A, &now));
    if (now == bound[k]) {
      PetscCall(MatBoundToCPU(B, &now));
      PetscCheck(now == bound[k], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the permuted matrix is not bound as the matrix is");
    }
  }
  PetscCall(MatDestroy(&B));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(ISDestroy(&order));
  PetscCall(ISDestroy(&columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the GPU has no room for the permuted matrix, or for where its entries come from, it gets its values on the host */
static PetscErrorCode NoRoom(void)
{
  static const char *const fail[] = {"1", "2", "3", "4", "5", "6"};
  Mat                      A, R, B;
  IS                       order, columns;

  PetscFunctionBegin;
  PetscCall(Small(&A, &R, &order, &columns));
  for (size_t n = 0; n < PETSC_STATIC_ARRAY_LENGTH(fail); n++) {
    for (int reuse = 0; reuse < 2; reuse++) {
      PetscCall(MatScale(A, 2.0));
      PetscCall(MatScale(R, 2.0));
      PetscCall(PetscOptionsSetValue(NULL, "-gallop_device_malloc_fail", fail[n]));
      PetscCall(MatGallopPermute(A, order, order, reuse ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &B));
      PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
      PetscCall(CheckProducts(A, R, order, B, "no room on the GPU"));
    }
    PetscCall(MatDestroy(&B));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscCall(ISDestroy(&order));
  PetscCall(ISDestroy(&columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool evchyb;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(Test(700, 13));
  PetscCall(PetscStrcmp(TestFormat(""), MATEVCHYB, &evchyb));
  if (evchyb) {
    static const char *const options[][2] = {
      {"window",  "0" },
      {"window",  "64"},
      {"by_row",  "1" },
      {"max_ell", "4" },
      {"max_ell", "0" },
    };

    PetscCall(Test(700, 5000)); /* one empty row at most */
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
      const char *name = TestOption("", options[k][0]);

      PetscCall(PetscOptionsSetValue(NULL, name, options[k][1]));
      PetscCall(Test(900, 13));
      PetscCall(PetscOptionsClearValue(NULL, name));
    }
    PetscCall(PlainMatrix());
  }
  PetscCall(Bound());
  PetscCall(NoRoom());
  PetscCall(Refused());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
      nsize: {{1 4}}
      args: -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: seqaij_type
      args: -mat_seqaij_type seqaijevchyb

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/empty.out
    nsize: {{1 2}}

TEST*/
