/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of a shell that was made of a Gallop matrix and scaled: PETSc runs them by products of the matrix with other factors than they were set up for.\n\n";

#include "../galloptest.h"

/* B = op(S) X for a dense X, twice, into what is there already, and compared with op(S) times the columns of X */
static PetscErrorCode DenseProduct(Mat S, PetscBool transpose, Mat X, Mat B, const char what[])
{
  PetscBool equal;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatZeroEntries(B));
    if (transpose) PetscCall(MatTransposeMatMult(S, X, MAT_REUSE_MATRIX, PETSC_DETERMINE, &B));
    else PetscCall(MatMatMult(S, X, MAT_REUSE_MATRIX, PETSC_DETERMINE, &B));
    if (transpose) PetscCall(MatTransposeMatMultEqual(S, X, B, 5, &equal));
    else PetscCall(MatMatMultEqual(S, X, B, 5, &equal));
    PetscCheck(equal, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s is wrong", what);
    PetscCall(MatSetRandom(X, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = S X for a sparse X, several times: with the X that it was set up for, with new values of it and with another one */
static PetscErrorCode SparseProduct(Mat S)
{
  Mat       X[2], R[2], C = NULL;
  PetscBool equal;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 4, &X[k], &R[k]));
  PetscCall(MatScale(X[1], -3.0));
  for (int k = 0; k < 5; k++) {
    Mat B = X[k > 2];

    PetscCall(MatMatMult(S, B, C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatMatMultEqual(S, B, C, 5, &equal));
    PetscCheck(equal, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "S X with a sparse X is wrong, the %d. time", k + 1);
    PetscCall(MatScale(B, 0.5));
  }
  PetscCall(MatDestroy(&C));
  for (int k = 0; k < 2; k++) PetscCall(TestDestroy(&X[k], &R[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat      A, R, S, X, B;
  Vec      left, right;
  VecType  vtype;
  PetscInt m, n, columns = 3;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 3, &A, &R));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetVecType(A, &vtype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vtype, n, PETSC_DECIDE, PETSC_DETERMINE, columns, PETSC_DEFAULT, NULL, &X));
  PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(MatSetRandom(X, NULL));
  PetscCall(MatConvert(A, MATSHELL, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatCreateVecs(A, &right, &left));
  PetscCall(TestSetVec(right, 7));
  PetscCall(TestSetVec(left, 8));
  PetscCall(MatDiagonalScale(S, left, right)); /* so that the shell multiplies a scaled copy of X */
  PetscCall(DenseProduct(S, PETSC_FALSE, X, B, "S X"));
  PetscCall(MatDestroy(&B)); /* MatMatMult() and MatTransposeMatMult() can't share a result */
  PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(DenseProduct(S, PETSC_TRUE, X, B, "S^T X"));
  PetscCall(SparseProduct(S));
  PetscCall(VecDestroy(&left));
  PetscCall(VecDestroy(&right));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&B));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -malloc_dump -columns {{1 3}} -format {{evchyb hbp}}
    output_file: output/empty.out

TEST*/
