/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A linear system whose matrix is in a Matrix Market file, solved by any KSP and PC. The library reads the file, plain or compressed; with
  -mat_type evchyb it computes the products, on the GPU where there is one.

    make examples     # prints the folder of the programs
    mpiexec -n 2 solve -f examples/matrices/bcsstk16.mtx.gz -mat_type evchyb -ksp_type cg -pc_type jacobi

  The right-hand side is the product with x = 1, so that the error is known too. The program stops with an error if the solver does not converge.
*/
static char help[] = "Solves a linear system whose matrix is in a Matrix Market file.\n\
  -f <file.mtx or file.mtx.gz>\n\
  -mat_type evchyb -ksp_type cg -pc_type jacobi, and all other options of PETSc\n\n";

#include <petscksp.h>
#include <petscgallop.h>

int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b, r;
  KSP                ksp;
  KSPConvergedReason reason;
  PetscInt           its, m, n;
  PetscReal          norm, rnorm, error;
  char               file[PETSC_MAX_PATH_LEN];
  PetscBool          set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), &set));
  PetscCheck(set, PETSC_COMM_WORLD, PETSC_ERR_USER, "Name the file of the matrix: -f matrix.mtx");
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGallopLoadMatrixMarket(A, file));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCheck(m == n, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "A linear system has a square matrix; %s is %" PetscInt_FMT " by %" PetscInt_FMT, file, m, n);

  /* a right-hand side with a known solution: x = 1 */
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, b));
  PetscCall(VecSet(x, 0.0));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "Not solved after %" PetscInt_FMT " iterations: %s", its, KSPConvergedReasons[reason]);

  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(VecShift(x, -1.0));
  PetscCall(VecNorm(x, NORM_INFINITY, &error));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %" PetscInt_FMT " residual %g error %g\n", its, (double)(rnorm / norm), (double)error));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
