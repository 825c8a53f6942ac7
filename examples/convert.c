/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A program of its own that links the library: it converts a matrix that is there, asks who computed its products, and solves with rows and columns in
  the order of the format, so that products permute nothing. After `make install PREFIX=/usr/local` no more than pkg-config is needed to compile it:

    export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig:$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig
    $(pkg-config --variable=ccompiler petsc) convert.c -o convert $(pkg-config --cflags --libs gallop) \
      -Wl,-rpath,$(pkg-config --variable=libdir gallop),-rpath,$(pkg-config --variable=libdir petsc)
    mpiexec -n 2 ./convert -side 500

  The program stops with an error if the converted matrix gives another product, or another solution, or if the library did not compute them.
*/
static char help[] = "Converts a matrix to MATEVCHYB, multiplies by it and solves with PCGALLOPREORDER.\n\
  -side <n>: points a side of the grid, a matrix of n^2 rows\n\n";

#include <petscksp.h>
#include <petscgallop.h>

/* What a program may have already: a matrix of type MATAIJ, here with rows of different lengths */
static PetscErrorCode CreateMatrix(PetscInt side, Mat *A)
{
  const PetscInt n = side * side;
  PetscInt       rstart, rend;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt row = rstart; row < rend; row++) {
    const PetscInt neighbours[] = {row - side, row - 1, row + 1, row + side};

    PetscCall(MatSetValue(*A, row, row, 4.1, INSERT_VALUES));
    for (int k = 0; k < 4; k++) {
      if (neighbours[k] >= 0 && neighbours[k] < n && (row + neighbours[k]) % 5) PetscCall(MatSetValue(*A, row, neighbours[k], -1.0, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |x - y| / |y|, wherever the two live */
static PetscErrorCode Distance(Vec x, Vec y, PetscReal *distance)
{
  PetscReal norm;
  Vec       d;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecCopy(x, d));
  PetscCall(VecAXPY(d, -1.0, y));
  PetscCall(VecNorm(d, NORM_2, distance));
  PetscCall(VecNorm(y, NORM_2, &norm));
  *distance /= norm;
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A;
  Vec                 x, b, u, v;
  KSP                 ksp, inner;
  PC                  pc, innerpc;
  PetscInt            side = 50, its;
  PetscReal           distance;
  KSPConvergedReason  reason;
  MatGallopStatistics stats;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage()); /* makes names and options known */
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));
  PetscCall(CreateMatrix(side, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMult(A, x, b)); /* by MATAIJ */

  /* the same product; vectors that fit the new type, on the GPU where there is one, come from MatCreateVecs() */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "first")); /* else MATAIJ computes the first products, until a format pays for itself */
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatCreateVecs(A, &u, &v));
  PetscCall(VecCopy(x, u));
  PetscCall(MatMult(A, u, v));
  PetscCall(Distance(v, b, &distance));
  PetscCheck(distance <= 10 * PETSC_MACHINE_EPSILON, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The products differ by %g", (double)distance);
  PetscCall(MatGallopGetStatistics(A, &stats)); /* of this process */
  PetscCheck(stats.products_host + stats.products_device > 0 && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the format, %" PetscInt64_FMT " by the parent type",
             stats.products_host + stats.products_device, stats.fallbacks);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "one product, on the %s, as with MATAIJ\n", stats.products_device ? "GPU" : "host"));

  /* a solve in the order of the format: the outer solver only hands over to the one inside, which gets options with the prefix -reorder_ */
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGALLOPREORDER));
  PetscCall(PCGallopReorderGetKSP(pc, &inner));
  PetscCall(KSPSetType(inner, KSPCG));
  PetscCall(KSPGetPC(inner, &innerpc));
  PetscCall(PCSetType(innerpc, PCJACOBI));
  PetscCall(KSPSetTolerances(inner, PetscMax(1e-10, 10 * PETSC_MACHINE_EPSILON), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(VecSet(u, 0.0));
  PetscCall(KSPSolve(ksp, v, u));
  PetscCall(KSPGetIterationNumber(inner, &its));
  PetscCall(KSPGetConvergedReason(inner, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "Not solved after %" PetscInt_FMT " iterations: %s", its, KSPConvergedReasons[reason]);
  PetscCall(Distance(u, x, &distance));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solved in the order of the format: iterations %" PetscInt_FMT " error %g\n", its, (double)distance));
  PetscCheck(distance <= 100 * PETSC_SQRT_MACHINE_EPSILON, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "The error is %g", (double)distance);

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&u));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
