/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "C = A B with dense B by TiledSpMM: numbers of columns, leading dimensions, shapes, reuse, special values, errors, no room.\n\n";

#include "../densetest.h"

/* The place where a product of A with B belongs */
static TestDensePlace Place(MatType type)
{
  return strcmp(type, MATSEQDENSECUDA) ? TEST_DENSE_HOST : TEST_DENSE_DEVICE;
}

/* A of a shape; the pattern belongs to seed. Rows and columns may be none. */
static PetscErrorCode CreatePair(PetscInt m, PetscInt n, PetscInt seed, Mat *A, Mat *R)
{
  const TestShape shape = {m, n, PETSC_TRUE};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_SELF, TestFormat(""), shape, seed, A, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckResultType(Mat C, const char what[])
{
  MatType   type;
  PetscBool device = PETSC_FALSE, same;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, device ? MATSEQDENSECUDA : MATSEQDENSE, &same)); /* as MATAIJCUSPARSE and MATAIJ make it */
  PetscCall(MatGetType(C, &type));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the result is of type %s", what, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new result, the same again, new values, another B by MatProductReplaceMats() */
static PetscErrorCode Reuse(PetscInt m, PetscInt n, MatType type, PetscInt columns, PetscBool lda)
{
  Mat                 A, R, B, D, C;
  MatGallopStatistics last = {0};
  MatInfo             info;
  PetscInt            work;
  PetscBool           empty = (PetscBool)(!m || !columns);

  PetscFunctionBegin;
  PetscCall(CreatePair(m, n, 3, &A, &R));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  work = empty || info.nz_used == 0 ? 0 : 1; /* without entries, or without a result, there is nothing to build */
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, lda, 40, &B));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, PetscNot(lda), 41, &D));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "new result"));
  PetscCall(TestDenseCounts(A, work, 0, Place(type), &last, "new result"));
  PetscCall(CheckResultType(C, "new result"));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "same again"));
  PetscCall(TestDenseCounts(A, 0, 0, Place(type), &last, "same again"));
  if (work) {
    PetscCall(TestFill(A, 3, 4));
    PetscCall(TestFill(R, 3, 4));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "new values"));
    PetscCall(TestDenseCounts(A, 0, 1, Place(type), &last, "new values"));
  }
  PetscCall(MatProductReplaceMats(NULL, D, NULL, C));
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(R, -2.0));
  PetscCall(MatProductNumeric(C));
  PetscCall(TestCompareDense(R, D, C, "other B"));
  PetscCall(TestDenseCounts(A, 0, work, Place(type), &last, "other B"));
  PetscCall(CheckResultType(C, "other B"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Step by step, another A, and a pattern that changes under the product */
static PetscErrorCode NewPattern(MatType type)
{
  Mat                 A, R, E, S, B, C;
  MatGallopStatistics last = {0}, laste = {0};

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, 5, &A, &R));
  PetscCall(CreatePair(150, 150, 6, &E, &S));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 7, PETSC_FALSE, 42, &B));
  PetscCall(MatProductCreate(A, B, NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(TestCompareDense(R, B, C, "step by step"));
  PetscCall(TestDenseCounts(A, 1, 0, Place(type), &last, "step by step"));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(TestFill(A, 7, 8));
  PetscCall(TestFill(R, 7, 8));
  PetscCall(MatProductNumeric(C));
  PetscCall(TestCompareDense(R, B, C, "new pattern"));
  PetscCall(TestDenseCounts(A, 1, 0, Place(type), &last, "new pattern"));
  PetscCall(MatProductReplaceMats(E, NULL, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(TestCompareDense(S, B, C, "other A"));
  PetscCall(TestDenseCounts(E, 1, 0, Place(type), &laste, "other A"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestDestroy(&E, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Into a matrix of the user's, which keeps its type, its leading dimension and what lies between its columns */
static PetscErrorCode IntoUsers(MatType type, MatType ctype, TestDensePlace place)
{
  const PetscScalar   between = -77.0;
  Mat                 A, R, B, C;
  PetscScalar        *c;
  PetscInt            m, columns, ldc;
  MatGallopStatistics last = {0};
  PetscBool           same;

  PetscFunctionBegin;
  PetscCall(CreatePair(70, 240, 9, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 5, PETSC_TRUE, 43, &B));
  PetscCall(TestCreateDense(A, PETSC_TRUE, ctype, 5, PETSC_TRUE, 44, &C));
  PetscCall(MatGetSize(C, &m, &columns));
  PetscCall(MatDenseGetLDA(C, &ldc));
  PetscCall(MatDenseGetArray(C, &c));
  for (PetscInt k = 0; k + 1 < columns; k++)
    for (PetscInt r = m; r < ldc; r++) c[r + k * ldc] = between;
  PetscCall(MatDenseRestoreArray(C, &c));
  for (int round = 0; round < 2; round++) {
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "user's result"));
    PetscCall(TestDenseCounts(A, round ? 0 : 1, 0, place, &last, "user's result"));
    PetscCall(PetscObjectTypeCompare((PetscObject)C, ctype, &same));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The user's result of type %s is of type %s now", ctype, ((PetscObject)C)->type_name);
  }
  PetscCall(MatDenseGetLDA(C, &ldc));
  PetscCheck(ldc == m + 5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The leading dimension of the result is %" PetscInt_FMT " now", ldc);
  PetscCall(MatDenseGetArray(C, &c));
  for (PetscInt k = 0; k + 1 < columns; k++)
    for (PetscInt r = m; r < ldc; r++) PetscCheck(c[r + k * ldc] == between, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product wrote below column %" PetscInt_FMT, k);
  PetscCall(MatDenseRestoreArray(C, &c));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inf and NaN in B touch the results that have entries there, and no others; what C held before touches none */
static PetscErrorCode Special(MatType type)
{
  Mat                 A, R, B, C;
  PetscScalar        *b;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, 10, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 9, PETSC_FALSE, 45, &B));
  PetscCall(MatDenseGetArray(B, &b));
  for (PetscInt k = 0; k < 9; k += 2) { /* other columns stay finite. PETSC_INFINITY is a finite number. */
    b[150 * k]           = (PetscScalar)INFINITY;
    b[150 * k + 40 + k]  = (PetscScalar)NAN;
    b[150 * k + 100 + k] = -(PetscScalar)INFINITY;
    b[150 * k + 149]     = (PetscScalar)INFINITY;
  }
  PetscCall(MatDenseRestoreArray(B, &b));
  PetscCall(TestCreateDense(A, PETSC_TRUE, type, 9, PETSC_FALSE, 46, &C));
  PetscCall(MatDenseGetArrayWrite(C, &b));
  for (PetscInt k = 0; k < 9 * 150; k++) b[k] = (PetscScalar)NAN;
  PetscCall(MatDenseRestoreArrayWrite(C, &b));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "Inf and NaN"));
  PetscCall(TestDenseCounts(A, 1, 0, Place(type), &last, "Inf and NaN"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A bound to the CPU: the host computes, whatever B is */
static PetscErrorCode Bound(MatType type)
{
  Mat                 A, R, B, C;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, 11, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 4, PETSC_FALSE, 47, &B));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "bound to the CPU"));
  PetscCall(TestDenseCounts(A, 1, 0, TEST_DENSE_HOST, &last, "bound to the CPU"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define EXPECT_ERROR(call, code) \
  do { \
    PetscErrorCode ierr_; \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    ierr_ = call; \
    PetscCall(PetscPopErrorHandler()); \
    PetscCheck(ierr_ == (code), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, not %d", #call, (int)ierr_, (int)(code)); \
  } while (0)

static PetscErrorCode Errors(MatType type)
{
  Mat          A, R, B, W, C, D;
  PetscScalar *b;
  PetscMemType memtype;

  PetscFunctionBegin;
  PetscCall(CreatePair(60, 60, 12, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 3, PETSC_FALSE, 48, &B));
  EXPECT_ERROR(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &B), PETSC_ERR_ARG_IDN);
  PetscCall(MatProductClear(B));
  /* another matrix with the array of B */
  PetscCall(TestCreateDense(A, PETSC_TRUE, type, 3, PETSC_FALSE, 49, &D));
  PetscCall(MatDenseGetArrayAndMemType(B, &b, &memtype));
  PetscCall(MatDenseRestoreArrayAndMemType(B, NULL));
  if (PetscMemTypeHost(memtype)) {
    PetscCall(MatDensePlaceArray(D, b));
    EXPECT_ERROR(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &D), PETSC_ERR_ARG_IDN);
    PetscCall(MatProductClear(D));
    PetscCall(MatDenseResetArray(D));
  }
  PetscCall(MatDestroy(&D));
  /* B of other rows, and of other columns than the result has */
  PetscCall(MatCreateDense(PETSC_COMM_SELF, 59, 3, 59, 3, NULL, &W));
  PetscCall(MatAssemblyBegin(W, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(W, MAT_FINAL_ASSEMBLY));
  EXPECT_ERROR(MatMatMult(A, W, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C), PETSC_ERR_ARG_SIZ);
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&W));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 4, PETSC_FALSE, 48, &W));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  EXPECT_ERROR(MatMatMult(A, W, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C), PETSC_ERR_ARG_SIZ);
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C)); /* all is well after it */
  PetscCall(TestCompareDense(R, B, C, "after errors"));
  PetscCall(MatDestroy(&W));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The structure does not fit: the parent computes, and says so once. With room it is made when the pattern changes. */
static PetscErrorCode NoRoom(MatType type)
{
  Mat                 A, R, B, C;
  PetscInt            lines = 0, messages = 0;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_memory", "1000"));
  PetscCall(TestCaptureBegin());
  PetscCall(CreatePair(150, 150, 13, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 6, PETSC_FALSE, 50, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "no room"));
  PetscCall(TestDenseCounts(A, 0, 0, TEST_DENSE_PARENT, &last, "no room"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "no room, new values"));
  PetscCall(TestDenseCounts(A, 0, 0, TEST_DENSE_PARENT, &last, "no room, new values"));
  PetscCall(CheckResultType(C, "no room"));
  PetscCall(TestCaptureEnd("Gallop: no room for the TILEDSPMM format of a 150 by 150 matrix within -mat_tiledspmm_memory; ", &lines, &messages));
  PetscCheck(lines == messages && messages == (strcmp(type, MATSEQDENSECUDA) ? 1 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines); /* the second place has nothing new to say */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_memory", "0"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "room"));
  PetscCall(TestDenseCounts(A, 1, 0, Place(type), &last, "room"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_tiledspmm_memory"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No room on the GPU for the n-th array that a product needs there: whoever computes, the answer is right, now and when there is room again */
static PetscErrorCode NoRoomOnGPU(MatType type, PetscInt n)
{
  Mat      A, R, B, C;
  PetscInt lines = 0, messages = 0;

  PetscFunctionBegin;
  PetscCall(TestCaptureBegin());
  PetscCall(CreatePair(150, 150, 14, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 6, PETSC_FALSE, 51, &B));
  PetscCall(TestSetIntOption("-gallop_device_malloc_fail", n));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "no room on the GPU"));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestFill(A, 14, 15 + k));
    PetscCall(TestFill(R, 14, 15 + k));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, k ? "room on the GPU" : "no room on the GPU, new values"));
    PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
  }
  PetscCall(TestCaptureEnd("Gallop: no room for the ", &lines, &messages));
  PetscCheck(lines == messages && messages <= 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By default the format computes one column, as it does vectors, and on the host the parent computes several. Neither builds TiledSpMM. */
static PetscErrorCode FewColumns(MatType type)
{
  const struct {
    PetscInt       least, columns; /* least 0: the default */
    TestDensePlace place;
    PetscInt       builds;
  } host[] =
    {
      {0,  1,  TEST_DENSE_HOST,   0},
      {0,  2,  TEST_DENSE_PARENT, 0},
      {0,  40, TEST_DENSE_PARENT, 0},
      {20, 19, TEST_DENSE_PARENT, 0},
      {20, 20, TEST_DENSE_HOST,   1},
      {1,  1,  TEST_DENSE_HOST,   0}
  },
    device[] = {{0, 1, TEST_DENSE_DEVICE, 0}, {3, 2, TEST_DENSE_PARENT, 0}, {0, 2, TEST_DENSE_DEVICE, 1}, {3, 1, TEST_DENSE_DEVICE, 0}, {1, 1, TEST_DENSE_DEVICE, 0}, {3, 3, TEST_DENSE_DEVICE, 0}};
  const PetscBool     ondevice = (PetscBool)!strcmp(type, MATSEQDENSECUDA);
  MatGallopStatistics last     = {.builds = 1}; /* the first product's, and no more */
  Mat                 A, R, B, C;

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, 15, &A, &R));
  for (size_t k = 0; k < 6; k++) {
    const PetscInt columns = ondevice ? device[k].columns : host[k].columns;

    PetscCall(TestSetIntOption("-mat_tiledspmm_least", ondevice ? device[k].least : host[k].least));
    PetscCall(MatSetFromOptions(A));
    PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, (PetscBool)(k % 2), 52, &B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "few columns"));
    PetscCall(CheckResultType(C, "few columns"));
    PetscCall(TestDenseCounts(A, ondevice ? device[k].builds : host[k].builds, 0, ondevice ? device[k].place : host[k].place, &last, "few columns"));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt columns[]   = {0, 1, 2, 3, 7, 8, 17, 32, 33, 130};
  static const PetscInt shapes[][2] = {
    {150, 150},
    {70,  240},
    {240, 70 },
    {1,   1  },
    {600, 33 },
    {0,   5  },
    {5,   0  },
    {0,   0  }
  };
  PetscBool gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1)); /* set by the user: TiledSpMM computes few columns too, on the host as well */
  PetscCall(TestHasDevice(&gpu));
  PetscCall(FewColumns(MATSEQDENSE));
  if (gpu) PetscCall(FewColumns(MATSEQDENSECUDA));
  for (int g = 0; g <= (int)gpu; g++) {
    MatType type = g ? MATSEQDENSECUDA : MATSEQDENSE;

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++)
      for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) PetscCall(Reuse(shapes[s][0], shapes[s][1], type, columns[k], (PetscBool)((k + s) % 2)));
    PetscCall(NewPattern(type));
    PetscCall(IntoUsers(type, type, Place(type)));
    PetscCall(Special(type));
    PetscCall(Bound(type));
    PetscCall(Errors(type));
    PetscCall(NoRoom(type));
    if (gpu)
      for (PetscInt n = 1; n < 9; n++) PetscCall(NoRoomOnGPU(type, n));
  }
  if (gpu) {
    PetscCall(IntoUsers(MATSEQDENSE, MATSEQDENSECUDA, TEST_DENSE_HOST));
    PetscCall(IntoUsers(MATSEQDENSECUDA, MATSEQDENSE, TEST_DENSE_DEVICE)); /* the parent's symbolic phase has C on the GPU, and C goes to the host after the product */
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: evchyb
    test:
      suffix: csroverlap
      args: -format csroverlap
    test:
      suffix: fastload
      args: -format fastload
    test:
      suffix: hbp
      args: -format hbp
    test:
      suffix: kernels
      args: -mat_tiledspmm_kernel {{staged cached transposed tensor}} -mat_tiledspmm_segment {{0 4}}
    test:
      suffix: tiles
      args: -mat_tiledspmm_panel {{32 64 512}} -mat_tiledspmm_stage {{1 7 4096}} -mat_tiledspmm_columns {{1 4 32}} -mat_tiledspmm_kernel staged
    test:
      suffix: reorder
      args: -mat_tiledspmm_panel 32 -mat_tiledspmm_reorder {{never always}} -mat_tiledspmm_kernel staged

TEST*/
