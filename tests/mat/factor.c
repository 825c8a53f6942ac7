/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Factorizations of Gallop matrices: PETSc's, and those of the parent on the GPU.\n\n";

#include "../galloptest.h"

/* A matrix that every factorization takes: symmetric, strictly dominated by its diagonal */
static PetscErrorCode FillDominant(Mat A, PetscInt valueseed)
{
  PetscInt n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt j = 0; j < n; j++) {
      if (i == j) PetscCall(MatSetValue(A, i, i, 12.0 + TestRandom(valueseed, i, i), INSERT_VALUES));
      else if (TestRandom(50, PetscMin(i, j), PetscMax(i, j)) < (PetscReal)0.04) PetscCall(MatSetValue(A, i, j, -TestRandom(valueseed, PetscMin(i, j), PetscMax(i, j)), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Factor(Mat A, MatSolverType solver, MatFactorType ftype, Mat *F)
{
  IS            row, col;
  MatFactorInfo info;

  PetscFunctionBegin;
  if (!*F) {
    PetscCall(MatGetFactor(A, solver, ftype, F));
    PetscCall(MatGetOrdering(A, ftype == MAT_FACTOR_LU ? MATORDERINGRCM : MATORDERINGNATURAL, &row, &col));
    PetscCall(MatFactorInfoInitialize(&info));
    info.fill = 1;
    if (ftype == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(*F, A, row, col, &info));
    if (ftype == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(*F, A, row, col, &info));
    if (ftype == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(*F, A, row, &info));
    if (ftype == MAT_FACTOR_CHOLESKY) PetscCall(MatCholeskyFactorSymbolic(*F, A, row, &info));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
  }
  PetscCall(MatFactorInfoInitialize(&info));
  if (ftype == MAT_FACTOR_LU || ftype == MAT_FACTOR_ILU) PetscCall(MatLUFactorNumeric(*F, A, &info));
  else PetscCall(MatCholeskyFactorNumeric(*F, A, &info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, Mat F, PetscBool transpose, Vec *x)
{
  Vec b;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(TestSetVec(b, 51));
  if (transpose) PetscCall(MatSolveTranspose(F, b, *x));
  else PetscCall(MatSolve(F, b, *x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(MatSolverType solver, MatFactorType ftype)
{
  const TestShape     shape = {120, 120, PETSC_FALSE};
  Mat                 A, R, Q, F = NULL, G = NULL;
  Vec                 x, y;
  PetscReal           norm, error;
  MatGallopStatistics last = {0};
  PetscBool           available, cusparse;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, MATAIJ, shape, &R));
  PetscCall(PetscStrcmp(solver, MATSOLVERCUSPARSE, &cusparse));
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, cusparse ? MATAIJCUSPARSE : MATAIJ, shape, &Q)); /* cuSPARSE's factors of our matrix are those of PETSc's own type, right or wrong */
  for (PetscInt round = 0; round < 3; round++) {                                              /* the second and third with the symbolic factorization of the first */
    PetscCall(FillDominant(A, 52 + round));
    PetscCall(FillDominant(R, 52 + round));
    PetscCall(FillDominant(Q, 52 + round));
    PetscCall(MatGetFactorAvailable(A, solver, ftype, &available));
    PetscCheck(available, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no %s %s", solver, MatFactorTypes[ftype]);
    PetscCall(Factor(A, solver, ftype, &F));
    PetscCall(Factor(Q, solver, ftype, &G));
    for (int t = 0; t < (ftype == MAT_FACTOR_LU ? 2 : 1); t++) {
      PetscCall(Solve(A, F, (PetscBool)t, &x));
      PetscCall(Solve(Q, G, (PetscBool)t, &y));
      PetscCall(TestVecError(x, y, &error, &norm));
      PetscCheck(error <= 1000 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s %s: error %g of norm %g", solver, MatFactorTypes[ftype], (double)error, (double)norm);
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&y));
    }
    PetscCall(TestProducts(A, R, round ? TEST_REFRESH : TEST_BUILD, &last, "factored matrix")); /* which stays what it is */
  }
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&G));
  PetscCall(MatDestroy(&Q));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix itself becomes its factorization */
static PetscErrorCode InPlace(void)
{
  const TestShape shape = {120, 120, PETSC_FALSE};
  Mat             A, R;
  Vec             x, y;
  IS              row, col;
  MatFactorInfo   info;
  PetscReal       norm, error;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, MATAIJ, shape, &R));
  PetscCall(FillDominant(A, 53));
  PetscCall(FillDominant(R, 53));
  for (int k = 0; k < 2; k++) {
    Mat M = k ? R : A;

    PetscCall(MatGetOrdering(M, MATORDERINGNATURAL, &row, &col));
    PetscCall(MatFactorInfoInitialize(&info));
    info.fill = 1;
    PetscCall(MatILUFactor(M, row, col, &info));
    PetscCall(Solve(M, M, PETSC_FALSE, k ? &y : &x));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
  }
  PetscCall(TestVecError(x, y, &error, &norm));
  PetscCheck(error <= 1000 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatILUFactor(): error %g of norm %g", (double)error, (double)norm);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of rows with one pattern, which PETSc's factorizations and sweeps take together */
static PetscErrorCode FillBlocks(Mat A)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  for (PetscInt i = 0; i < n; i++) {
    for (PetscInt j = 0; j < n; j++) {
      if (i == j) PetscCall(MatSetValue(A, i, i, 12.0 + TestRandom(54, i, i), INSERT_VALUES));
      else if (i / 3 == j / 3 || TestRandom(55, i / 3, j / 3) < (PetscReal)0.04) PetscCall(MatSetValue(A, i, j, -TestRandom(54, i, j), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own, on the host, take the values that a call before has changed on the GPU: also of a matrix with inodes, which one has that has been MATAIJ, and for MatSOR() been asked to use them */
static PetscErrorCode ChangedOnDevice(void)
{
  const TestShape     shape    = {120, 120, PETSC_FALSE};
  const MatFactorType ftypes[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_NONE};
  Mat                 A[2], F[2] = {NULL, NULL};
  Vec                 x[2], b;
  PetscReal           norm, error;

  PetscFunctionBegin;
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(ftypes); f++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(TestCreateEmpty(PETSC_COMM_SELF, MATAIJ, shape, &A[k]));
      PetscCall(FillBlocks(A[k]));
    }
    PetscCall(MatConvert(A[0], TestFormat(""), MAT_INPLACE_MATRIX, &A[0]));
    PetscCall(MatSetOption(A[0], MAT_USE_INODES, PETSC_TRUE));
    for (int round = 0; round < 3; round++) { /* the first without a change; the third with the symbolic factorization of the second */
      for (int k = 0; k < 2; k++) {
        if (round) PetscCall(MatScale(A[k], 2.0));
        if (ftypes[f]) {
          PetscCall(Factor(A[k], MATSOLVERPETSC, ftypes[f], &F[k]));
          PetscCall(Solve(A[k], F[k], PETSC_FALSE, &x[k]));
        } else {
          PetscCall(MatCreateVecs(A[k], &x[k], &b));
          PetscCall(TestSetVec(b, 51));
          PetscCall(MatSOR(A[k], b, 1.0, (MatSORType)(SOR_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 1, 1, x[k]));
          PetscCall(VecDestroy(&b));
        }
      }
      PetscCall(TestVecError(x[0], x[1], &error, &norm));
      PetscCheck(error <= 1000 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s after %d times MatScale(): error %g of norm %g", ftypes[f] ? MatFactorTypes[ftypes[f]] : "MatSOR()", round, (double)error, (double)norm);
      for (int k = 0; k < 2; k++) {
        PetscCall(VecDestroy(&x[k]));
        if (!round) PetscCall(MatDestroy(&F[k]));
      }
    }
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&F[k]));
    PetscCall(TestDestroy(&A[0], &A[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Without a GPU there is no factorization of cuSPARSE's: an error says so, also inside a preconditioner that gives its factors a prefix, where PETSc would use what it did not get */
static PetscErrorCode NoSolver(PetscBool gpu)
{
  Mat            A, F = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 30, 30, 30, 30));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetUp(A));
  PetscCall(FillDominant(A, 52));
  PetscCall(MatSetOptionsPrefixFactor(A, "sub_"));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatGetFactor(A, MATSOLVERCUSPARSE, MAT_FACTOR_ILU, &F);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(gpu ? !ierr && F : ierr == PETSC_ERR_MISSING_FACTOR, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factorization by %s gave error %d", MATSOLVERCUSPARSE, (int)ierr);
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By -mat_seqaij_type, which turns a plain matrix into ours while it is created, whether a package is named or not */
static PetscErrorCode SeqAIJType(void)
{
  Mat A, R, F;
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", TestFormat("seqaij")));
  for (int named = 0; named < 2; named++) {
    PetscReal norm;

    for (int k = 0; k < 2; k++) {
      Mat *M = k ? &R : &A;

      PetscCall(MatCreate(PETSC_COMM_SELF, M));
      PetscCall(MatSetSizes(*M, 60, 60, 60, 60));
      PetscCall(MatSetType(*M, MATSEQAIJ));
      PetscCall(MatSetUp(*M));
      PetscCall(FillDominant(*M, 53));
      if (!k) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
    }
    PetscCall(TestIsOurs(A, PETSC_TRUE, "-mat_seqaij_type"));
    F = NULL;
    PetscCall(Factor(A, named ? MATSOLVERPETSC : NULL, MAT_FACTOR_ILU, &F));
    PetscCall(Solve(A, F, PETSC_FALSE, &x));
    PetscCall(MatDestroy(&F));
    PetscCall(Factor(R, MATSOLVERPETSC, MAT_FACTOR_ILU, &F));
    PetscCall(Solve(R, F, PETSC_FALSE, &y));
    PetscCall(MatDestroy(&F));
    PetscCall(VecAXPY(y, -1.0, x));
    PetscCall(VecNorm(y, NORM_INFINITY, &norm));
    PetscCheck(norm < 100 * PETSC_MACHINE_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "ILU of a matrix by -mat_seqaij_type differs by %g", (double)norm);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(TestDestroy(&A, &R));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", TestFormat("seqaij")));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const MatFactorType ftypes[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC};
  PetscBool           gpu      = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&gpu));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ftypes); k++) {
    PetscCall(Test(MATSOLVERPETSC, ftypes[k]));
    if (gpu) PetscCall(Test(MATSOLVERCUSPARSE, ftypes[k]));
  }
  PetscCall(InPlace());
  PetscCall(ChangedOnDevice());
  PetscCall(NoSolver(gpu));
  PetscCall(SeqAIJType());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/empty.out

TEST*/
