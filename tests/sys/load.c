/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A program that knows nothing of the library: -dll_append brings the types.\n\n";

#include <petscmat.h>

/* From petscgallop.h, which such a program does not include */
typedef struct {
  PetscInt64 builds, refreshes, products_host, products_device, fallbacks;
  PetscInt64 more[7]; /* of products with dense matrices and of the transpose */
} Statistics;

static PetscErrorCode Product(void)
{
  Mat         A, B;
  Vec         x, y, z;
  PetscInt    rstart, rend;
  PetscReal   norm, error;
  MatType     type;
  PetscBool   same;
  PetscMPIInt size;
  Statistics  now;
  PetscErrorCode (*statistics)(Mat, Statistics *) = NULL;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 100, 100));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscCall(MatSetValue(A, i, i, 2.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, i, (i + 37) % 100, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrcmp(type, size > 1 ? "mpiaijevchyb" : "seqaijevchyb", &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the matrix is of type %s", type);
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSetValue(x, 3, 4.0, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(B, x, z));
  PetscCall(VecNorm(z, NORM_2, &norm));
  PetscCall(VecAXPY(z, -1.0, y));
  PetscCall(VecNorm(z, NORM_2, &error));
  PetscCheck(error <= 10 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "error %g", (double)error);
  PetscCall(PetscDLLibrarySym(PETSC_COMM_WORLD, &PetscDLLibrariesLoaded, NULL, "MatGallopGetStatistics", (void **)&statistics));
  PetscCheck(statistics, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatGallopGetStatistics() is in none of the loaded libraries");
  PetscCall((*statistics)(A, &now));
  PetscCheck(now.products_host + now.products_device == (size > 1 ? 2 : 1) && !now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products", now.products_host + now.products_device);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    starts = 1;
  PetscMPIInt provided;

  for (int k = 1; k + 1 < argc; k++) /* MPI starts once: PETSc leaves it alone if it was there before */
    if (!strcmp(argv[k], "-starts") && MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided)) return 1;
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < starts; k++) { /* each PetscInitialize() loads the library anew, and PetscFinalize() forgets its types */
    PetscCall(PetscInitialize(&argc, &argv, NULL, help));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-starts", &starts, NULL));
    PetscCall(Product());
    PetscCall(PetscFinalize());
  }
  if (starts > 1) (void)MPI_Finalize();
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    requires: dynamic_libraries
    test:
      suffix: append
      args: -dll_append ${GALLOP_LIB} -mat_type {{evchyb aijevchyb}}
    test:
      suffix: prepend
      args: -dll_prepend ${GALLOP_LIB} -mat_type evchyb
    test:
      suffix: environment
      env: PETSC_OPTIONS='"${PETSC_OPTIONS} -dll_append ${GALLOP_LIB} -mat_type evchyb"'
    test:
      suffix: thrice
      args: -dll_append ${GALLOP_LIB} -mat_type evchyb -starts 3

TEST*/
