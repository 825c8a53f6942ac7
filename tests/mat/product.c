/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of Gallop matrices with each other, with plain ones and with dense ones; again after values have changed.\n\n";

#include "../densetest.h"
#include "../producttest.h"

/* ---- sparse products ---- */

static PetscErrorCode ResultProducts(Mat D, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  Mat F;

  PetscFunctionBegin;
  PetscCall(MatConvert(D, MATAIJ, MAT_INITIAL_MATRIX, &F));
  PetscCall(TestProducts(D, F, expect, last, what));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ours tells, bit by bit, which of the factors are Gallop matrices */
static PetscErrorCode Sparse(MatProductType op, int ours)
{
  const TestShape     square = {60, 60, PETSC_TRUE}, tall = {60, 25, PETSC_TRUE}, wide = {25, 60, PETSC_TRUE};
  const TestShape     shapes[] = {op == MATPRODUCT_AB || op == MATPRODUCT_ABC ? wide : square, op == MATPRODUCT_PtAP || op == MATPRODUCT_AB ? tall : (op == MATPRODUCT_RARt ? wide : square), tall};
  Mat                 M[3], R[3], D = NULL, E = NULL;
  PetscErrorCode      ierr[2];
  MatGallopStatistics last = {0};
  PetscBool           isours;
  PetscMPIInt         size;
  const int           n = op == MATPRODUCT_ABC ? 3 : 2;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < 3; k++) PetscCall(TestCreate(PETSC_COMM_WORLD, ours >> k & 1 ? TestFormat("") : MATAIJ, shapes[k], 200 + 10 * k, &M[k], &R[k]));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr[1] = TestMatProduct(op, R, MAT_INITIAL_MATRIX, &E);
  PetscCall(PetscPopErrorHandler());
  if (ierr[1]) { /* what PETSc does not do for plain matrices, it does not do for ours, and says so likewise */
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr[0] = TestMatProduct(op, M, MAT_INITIAL_MATRIX, &D);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr[0] == ierr[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: error %d, with plain matrices error %d", MatProductTypes[op], (int)ierr[0], (int)ierr[1]);
    PetscFunctionReturn(PETSC_SUCCESS); /* what a failed product leaves behind cannot be freed */
  }
  PetscCall(TestMatProduct(op, M, MAT_INITIAL_MATRIX, &D));
  PetscCall(TestCompareEntries(D, E, MatProductTypes[op]));
  PetscCall(MatGallopIsFormat(D, &isours));
  PetscCheck(isours || !ours, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the result is not ours", MatProductTypes[op]);
  if (isours) PetscCall(ResultProducts(D, TEST_BUILD, &last, MatProductTypes[op]));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt round = 0; round < (op == MATPRODUCT_ABt && size > 1 ? 0 : 2); round++) { /* PETSc's A B^T of MPI matrices, reused, takes B for its transpose */
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(TestFill(M[k], 200 + 10 * k, 300 + round + 10 * k));
      PetscCall(TestFill(R[k], 200 + 10 * k, 300 + round + 10 * k));
      if (!round) continue; /* on the GPU, if there is one, and that of the result too */
      PetscCall(MatScale(M[k], 2.0));
      PetscCall(MatScale(R[k], 2.0));
    }
    if (round) PetscCall(MatScale(D, 3.0));
    PetscCall(TestMatProduct(op, M, MAT_REUSE_MATRIX, &D));
    PetscCall(TestMatProduct(op, R, MAT_REUSE_MATRIX, &E));
    PetscCall(TestCompareEntries(D, E, MatProductTypes[op]));
    if (isours) PetscCall(ResultProducts(D, TEST_RENEWED, &last, MatProductTypes[op]));
  }
  /* the factors still are what they were */
  for (PetscInt k = 0; k < n; k++) {
    if (!(ours >> k & 1)) continue;
    PetscCall(MatGallopGetStatistics(M[k], &last));
    PetscCall(TestProducts(M[k], R[k], TEST_ANY, &last, "factor of a product"));
  }
  PetscCall(TestDestroy(&D, &E));
  for (int k = 0; k < 3; k++) PetscCall(TestDestroy(&M[k], &R[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result outlives its factors, and is a matrix like any other */
static PetscErrorCode ResultAlone(void)
{
  Mat                 A, R, D, E;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 14, &A, &R));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(ResultProducts(D, TEST_BUILD, &last, "result without factors"));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatScale(E, 2.0));
  PetscCall(ResultProducts(D, TEST_REFRESH, &last, "changed result without factors"));
  PetscCall(TestCompareEntries(D, E, "changed result without factors"));
  PetscCall(MatProductClear(D));
  PetscCall(ResultProducts(D, TEST_ANY, &last, "result after MatProductClear()"));
  PetscCall(MatDuplicate(D, MAT_COPY_VALUES, &A));
  PetscCall(TestIsOurs(A, PETSC_TRUE, "duplicate of a result"));
  PetscCall(TestCompareEntries(A, E, "duplicate of a result"));
  PetscCall(MatDestroy(&A));
  PetscCall(TestDestroy(&D, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Step by step, and with other factors of the same pattern */
static PetscErrorCode Steps(void)
{
  Mat                 A, R, B, S, D, E;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 15, &A, &R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 15, &B, &S));
  PetscCall(TestFill(B, 15, 16));
  PetscCall(TestFill(S, 15, 16));
  PetscCall(MatProductCreate(A, A, NULL, &D));
  PetscCall(MatProductSetType(D, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(D));
  PetscCall(MatProductSymbolic(D));
  PetscCall(MatProductNumeric(D));
  PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(TestCompareEntries(D, E, "step by step"));
  PetscCall(ResultProducts(D, TEST_BUILD, &last, "step by step"));
  PetscCall(MatProductNumeric(D)); /* again, of nothing new */
  PetscCall(TestCompareEntries(D, E, "step by step, again"));
  PetscCall(MatDestroy(&E));
  PetscCall(MatProductReplaceMats(B, B, NULL, D));
  PetscCall(MatProductNumeric(D));
  PetscCall(MatMatMult(S, S, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(MatGallopGetStatistics(D, &last));
  PetscCall(TestCompareEntries(D, E, "MatProductReplaceMats()"));
  PetscCall(ResultProducts(D, TEST_ANY, &last, "MatProductReplaceMats()"));
  PetscCall(TestDestroy(&D, &E));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestDestroy(&B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- dense ---- */

static PetscErrorCode Dense(TestShape shape, MatType type, PetscInt n, PetscBool lda)
{
  Mat                 A, R, B, C, T, U = NULL;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 16, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, n, lda, 400, &B));
  PetscCall(TestCreateDense(A, PETSC_TRUE, type, n, lda, 401, &T));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareColumns(R, TEST_MULT, B, C, "dense product"));
  if (n) { /* PETSc has no transposed product without columns */
    PetscCall(MatTransposeMatMult(A, T, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &U));
    PetscCall(TestCompareColumns(R, TEST_TRANSPOSE, T, U, "dense product of the transpose"));
  }
  for (PetscInt round = 0; round < 2; round++) {
    PetscCall(TestFill(A, 16, 17 + round));
    PetscCall(TestFill(R, 16, 17 + round));
    PetscCall(MatScale(B, 0.5));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareColumns(R, TEST_MULT, B, C, "dense product, new values"));
    if (!n) continue;
    PetscCall(MatTransposeMatMult(A, T, MAT_REUSE_MATRIX, PETSC_DETERMINE, &U));
    PetscCall(TestCompareColumns(R, TEST_TRANSPOSE, T, U, "dense product of the transpose, new values"));
  }
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(TestProducts(A, R, TEST_ANY, &last, "factor of a dense product"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&U));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Into a matrix of the user's own */
static PetscErrorCode DenseInto(void)
{
  Mat A, R, B, C;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 18, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, MATDENSE, 5, PETSC_FALSE, 402, &B));
  PetscCall(TestCreateDense(A, PETSC_TRUE, MATDENSE, 5, PETSC_TRUE, 403, &C));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareColumns(R, TEST_MULT, B, C, "dense product into a matrix of the user's"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = B A with a dense B: AIJCUSPARSE has no such product, AIJ has, whatever was computed on the GPU before */
static PetscErrorCode DenseFirst(void)
{
  Mat       A, R, B, C, D;
  Vec       left;
  PetscInt  m;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_SELF, TestFormat(""), TestTall, 19, &A, &R));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, 6, m, NULL, &B));
  for (PetscInt i = 0; i < 6; i++)
    for (PetscInt j = 0; j < m; j++) PetscCall(MatSetValue(B, i, j, TestValue(404, i, j), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(B, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatMatMult(B, R, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatCreateVecs(A, NULL, &left));
  PetscCall(TestSetVec(left, 20));
  for (int round = 0; round < 3; round++) {
    PetscBool gallop;

    PetscCall(MatAXPY(C, -1.0, D, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(C, NORM_INFINITY, &norm));
    PetscCheck(norm <= 1e4 * PETSC_MACHINE_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A dense matrix times a sparse one: wrong by %g in round %d", (double)norm, round);
    PetscCall(MatGallopIsFormat(A, &gallop));
    PetscCheck(gallop, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The sparse factor has become another type");
    PetscCall(MatDiagonalScale(A, left, NULL));
    PetscCall(MatDiagonalScale(R, left, NULL));
    if (round) PetscCall(MatScale(B, 2.0));
    PetscCall(MatMatMult(B, A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatMatMult(B, R, MAT_REUSE_MATRIX, PETSC_DETERMINE, &D));
  }
  PetscCall(VecDestroy(&left));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P^T A P where P is for two unknowns per point, as multigrid on a DMDA has it: AIJ has that product, AIJCUSPARSE in MPI has not */
static PetscErrorCode BlockedInterpolation(PetscBool ours)
{
  const TestShape square = {64, 64, PETSC_TRUE}, tall = {32, 12, PETSC_TRUE};
  Mat             A, R, P, S, M[2], D, E;
  PetscBool       isours;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), square, 21, &A, &R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, ours ? TestFormat("") : MATAIJ, tall, 22, &P, &S));
  PetscCall(MatCreateMAIJ(P, 2, &M[0]));
  PetscCall(MatCreateMAIJ(S, 2, &M[1]));
  PetscCall(MatPtAP(A, M[0], MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatPtAP(R, M[1], MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(TestCompareEntries(D, E, "blocked interpolation"));
  PetscCall(MatGallopIsFormat(D, &isours));
  PetscCheck(isours, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Blocked interpolation: the result is not ours");
  PetscCall(MatScale(A, 2.0)); /* on the GPU, if there is one, and that of the result too */
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatScale(D, 3.0));
  PetscCall(MatPtAP(A, M[0], MAT_REUSE_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatPtAP(R, M[1], MAT_REUSE_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(TestCompareEntries(D, E, "blocked interpolation, new values"));
  PetscCall(TestDestroy(&M[0], &M[1]));
  PetscCall(TestDestroy(&D, &E));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestDestroy(&P, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (int op = MATPRODUCT_AB; op <= MATPRODUCT_ABC; op++) {
    for (int ours = 1; ours < (op == MATPRODUCT_ABC ? 8 : 4); ours++) PetscCall(Sparse((MatProductType)op, ours));
  }
  PetscCall(ResultAlone());
  PetscCall(Steps());
  PetscCall(TestHasDevice(&gpu));
  for (int k = 0; k <= (int)gpu; k++) {
    MatType type = k ? MATDENSECUDA : MATDENSE;

    PetscCall(Dense(TestSquare, type, 1, PETSC_FALSE));
    PetscCall(Dense(TestSquare, type, 7, PETSC_FALSE));
    PetscCall(Dense(TestSquare, type, 7, PETSC_TRUE));
    PetscCall(Dense(TestWide, type, 16, PETSC_FALSE));
    PetscCall(Dense(TestTall, type, 33, PETSC_TRUE));
    PetscCall(Dense(TestSquare, type, 0, PETSC_FALSE));
  }
  PetscCall(DenseInto());
  PetscCall(DenseFirst());
  for (int ours = 0; ours < 2; ours++) PetscCall(BlockedInterpolation((PetscBool)ours));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 4}}
    test:
      suffix: 1
    test:
      suffix: least
      args: -mat_tiledspmm_least 2
    test:
      suffix: backend_cpu
      args: -matmatmult_backend_cpu -mattransposematmult_backend_cpu -matptap_backend_cpu -matrart_backend_cpu -matmatmatmult_backend_cpu -mat_product_algorithm_backend_cpu -options_left no
    test:
      suffix: in_assembly
      args: -mat_evchyb_build_in_assembly
    test:
      suffix: csroverlap
      args: -format csroverlap -mat_csroverlap_build_in_assembly {{0 1}}
    test:
      suffix: fastload
      args: -format fastload -mat_fastload_build_in_assembly {{0 1}}
    test:
      suffix: hbp
      args: -format hbp -mat_hbp_build_in_assembly {{0 1}}

TEST*/
