/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Many right-hand sides at once. KSPMatSolve() hands the solver a block of vectors, a dense matrix, and the products with it are products of a sparse
  and a dense matrix: those the library computes by TiledSpMM, which reads the entries of the sparse matrix once for all the vectors. On the host, where
  that is rarely faster, -mat_tiledspmm_least 2 asks for it.

    make examples     # prints the folder of the programs
    mpiexec -n 2 blocksolve -side 300 -columns 32 -mat_type evchyb \
      -mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6 -mg_levels_pc_type jacobi

  Of PETSc's own solvers Richardson's iteration works on blocks, and the others take one column after the other, also as smoothers of a multigrid method.
  Hence the options: with them all products, on all levels, are products with blocks. With HPDDM, -ksp_type hpddm has Krylov methods for blocks. On a GPU
  the block lives where the vectors of the matrix do.

  The program prints how many products were of each kind, and stops with an error if the solutions are not those that the right-hand sides were made from.
*/
static char help[] = "Solves with a block of right-hand sides by KSPMatSolve().\n\
  -side <n>: points a side of the grid, a matrix of n^2 rows\n\
  -columns <n>: right-hand sides\n\
  -mat_type evchyb, and all other options of PETSc\n\n";

#include <petscksp.h>
#include <petscgallop.h>

/* The five-point stencil on a square */
static PetscErrorCode CreateMatrix(PetscInt side, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, side * side, side * side));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt row = rstart; row < rend; row++) {
    const PetscInt x = row % side, y = row / side;

    PetscCall(MatSetValue(*A, row, row, 4.0, INSERT_VALUES));
    if (x > 0) PetscCall(MatSetValue(*A, row, row - 1, -1.0, INSERT_VALUES));
    if (x < side - 1) PetscCall(MatSetValue(*A, row, row + 1, -1.0, INSERT_VALUES));
    if (y > 0) PetscCall(MatSetValue(*A, row, row - side, -1.0, INSERT_VALUES));
    if (y < side - 1) PetscCall(MatSetValue(*A, row, row + side, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A, B, X, Y;
  KSP                 ksp;
  PC                  pc;
  KSPConvergedReason  reason;
  VecType             vtype;
  PetscInt            side = 50, columns = 32, m, M, its;
  PetscReal           norm, error;
  PetscBool           ours;
  MatGallopStatistics stats;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(CreateMatrix(side, &A));

  /* solutions X, and right-hand sides B = A X: dense matrices that live where the vectors of A do */
  PetscCall(MatGetVecType(A, &vtype));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vtype, m, PETSC_DECIDE, M, columns, m, NULL, &X));
  PetscCall(MatSetRandom(X, NULL));
  PetscCall(MatMatMult(A, X, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &B));
  PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &Y));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPRICHARDSON));
  PetscCall(KSPRichardsonSetScale(ksp, 0.99)); /* with 1 the multigrid method would iterate by itself, which it does column by column */
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetTolerances(ksp, PetscMax(1e-8, 10 * PETSC_MACHINE_EPSILON), PETSC_CURRENT, PETSC_CURRENT, 200));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPMatSolve(ksp, B, Y));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "Not solved after %" PetscInt_FMT " iterations: %s", its, KSPConvergedReasons[reason]);

  PetscCall(MatNorm(X, NORM_FROBENIUS, &norm));
  PetscCall(MatAXPY(Y, -1.0, X, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(Y, NORM_FROBENIUS, &error));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "columns %" PetscInt_FMT " iterations %" PetscInt_FMT " error %g\n", columns, its, (double)(error / norm)));
  PetscCheck(error <= 100 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "The error is %g", (double)(error / norm));
  PetscCall(MatGallopIsFormat(A, &ours));
  if (ours) { /* on this process; a matrix on several counts its diagonal and its off-diagonal block */
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "products with blocks: %" PetscInt64_FMT " on the host, %" PetscInt64_FMT " on the GPU, %" PetscInt64_FMT " by the parent type\n", stats.dense_products_host,
                          stats.dense_products_device, stats.dense_fallbacks));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "products with vectors: %" PetscInt64_FMT " on the host, %" PetscInt64_FMT " on the GPU, %" PetscInt64_FMT " by the parent type\n", stats.products_host,
                          stats.products_device, stats.fallbacks));
  }

  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&Y));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
