/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A program of one process whose systems PETSc's server solves on several: on the first of them PETSC_COMM_WORLD is that process alone, and what all do together must not depend on it.\n\n";

#include <petscksp.h>

int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b, u;
  KSP                ksp;
  PetscInt           n = 200;
  PetscReal          error;
  KSPConvergedReason reason;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, n, n, n, n));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt    columns[] = {r - 1, r, r + 1 < n ? r + 1 : -1};
    const PetscScalar values[]  = {-1.0, 2.5, -1.0};

    PetscCall(MatSetValues(A, 1, &r, 3, columns, values, INSERT_VALUES)); /* negative columns are left out */
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(VecSet(u, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(A, 1.0 + k));
    PetscCall(MatMult(A, u, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(VecAXPY(x, -1.0, u));
    PetscCall(VecNorm(x, NORM_INFINITY, &error));
    PetscCheck(reason > 0 && error < 1e-3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Solve %d: %s, and an error of %g", k, KSPConvergedReasons[reason], (double)error);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&u));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  # with 64-bit indices the server of PETSc 3.26.1 ends in an error of MPI, also without our library
  test:
    requires: defined(PETSC_USE_SINGLE_LIBRARY) !defined(PETSC_USE_64BIT_INDICES)
    nsize: 3
    output_file: output/empty.out
    args: -mpi_linear_solver_server -mpi_linear_solver_server_use_shared_memory false -mpi_linear_solver_server_minimum_count_per_rank {{1 100}}
    args: -dll_append ${GALLOP_LIB} -mat_type evchyb -ksp_type gallopcg -pc_type jacobi

TEST*/
