/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPMatSolve() with a Gallop matrix gives what it gives with a plain one, column by column and in blocks.\n\n";

#include <petscksp.h>
#include "../galloptest.h"

/* A 5-point stencil on a square, with a convection that makes it unsymmetric */
static PetscErrorCode CreateStencil(PetscInt side, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, side * side, side * side));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    const PetscInt x = r % side, y = r / side;

    PetscCall(MatSetValue(*A, r, r, 4.2, INSERT_VALUES));
    if (x > 0) PetscCall(MatSetValue(*A, r, r - 1, -1.1, INSERT_VALUES));
    if (x < side - 1) PetscCall(MatSetValue(*A, r, r + 1, -0.9, INSERT_VALUES));
    if (y > 0) PetscCall(MatSetValue(*A, r, r - side, -1.0, INSERT_VALUES));
    if (y < side - 1) PetscCall(MatSetValue(*A, r, r + side, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X with A X = B, where B lives as A's vectors do; B is the same for all */
static PetscErrorCode Solve(Mat A, PetscInt columns, Mat *X)
{
  KSP                ksp;
  Mat                B;
  VecType            type;
  PetscScalar       *b;
  PetscInt           m, rows, rstart, ldb;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatGetVecType(A, &type));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, type, m, PETSC_DECIDE, rows, columns, m, NULL, &B));
  PetscCall(MatDenseGetLDA(B, &ldb));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  for (PetscInt k = 0; k < columns; k++)
    for (PetscInt i = 0; i < m; i++) b[i + k * ldb] = TestValue(30, rstart + i, k);
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, X));
  PetscCall(MatAssemblyBegin(*X, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*X, MAT_FINAL_ASSEMBLY));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 100 * PETSC_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPMatSolve(ksp, B, *X));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Not solved: reason %d", (int)reason);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far two dense matrices of one layout are from each other and from 0, in the Frobenius norm, wherever each lives */
static PetscErrorCode Distance(Mat X, Mat Y, PetscReal *difference, PetscReal *norm)
{
  const PetscScalar *x, *y;
  PetscInt           m, columns, ldx, ldy;
  PetscReal          sums[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(X, &m, NULL));
  PetscCall(MatGetSize(X, NULL, &columns));
  PetscCall(MatDenseGetLDA(X, &ldx));
  PetscCall(MatDenseGetLDA(Y, &ldy));
  PetscCall(MatDenseGetArrayRead(X, &x));
  PetscCall(MatDenseGetArrayRead(Y, &y));
  for (PetscInt k = 0; k < columns; k++) {
    for (PetscInt i = 0; i < m; i++) {
      sums[0] += PetscSqr(PetscAbsScalar(x[i + k * ldx] - y[i + k * ldy]));
      sums[1] += PetscSqr(PetscAbsScalar(x[i + k * ldx]));
    }
  }
  PetscCall(MatDenseRestoreArrayRead(X, &x));
  PetscCall(MatDenseRestoreArrayRead(Y, &y));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, sums, 2, MPIU_REAL, MPIU_SUM, PETSC_COMM_WORLD));
  *difference = PetscSqrtReal(sums[0]);
  *norm       = PetscSqrtReal(sums[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 R, A, X[2];
  PetscReal           norm = 0, difference = 0;
  MatGallopStatistics stats;
  PetscBool           iterates = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-iterates", &iterates, NULL));
  PetscCall(CreateStencil(20, &R));
  PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
  for (PetscInt columns = 1; columns <= 20; columns += 19) {
    PetscCall(Solve(R, columns, &X[0]));
    PetscCall(Solve(A, columns, &X[1]));
    PetscCall(Distance(X[0], X[1], &difference, &norm));
    PetscCheck(norm > 0 && difference <= 1e4 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " columns differ by %g of %g", columns, (double)difference, (double)norm);
    PetscCall(MatDestroy(&X[0]));
    PetscCall(MatDestroy(&X[1]));
  }
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(!iterates || stats.products_host + stats.products_device > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No product by our kernels");
  PetscCheck(!stats.fallbacks && !stats.dense_fallbacks, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the parent", stats.fallbacks + stats.dense_fallbacks);
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: gmres
      nsize: {{1 3}}
      args: -ksp_type gmres -pc_type bjacobi -sub_pc_type ilu
    test:
      suffix: bcgs
      args: -ksp_type bcgs -pc_type jacobi
    test:
      suffix: lu
      args: -ksp_type preonly -pc_type lu -iterates 0

TEST*/
