/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products give the same bits in every run, with formats and options that promise it: 100 times, on a matrix whose rows are shared by many warps.\n\n";

#include "../galloptest.h"

/* A band, some full rows and columns, and scattered entries */
static PetscErrorCode Create(PetscInt n, Mat *A)
{
  PetscInt begin, end;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, TestFormat("")));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  for (PetscInt i = begin; i < end; i++) {
    for (PetscInt j = PetscMax(i - 2, 0); j <= PetscMin(i + 2, n - 1); j++) PetscCall(MatSetValue(*A, i, j, TestValue(1, i, j), INSERT_VALUES));
    for (PetscInt k = 0; k < 4; k++) {
      const PetscInt j = (PetscInt)(TestRandom(2, i, k) * n);

      PetscCall(MatSetValue(*A, i, j, TestValue(1, i, j), INSERT_VALUES));
    }
    for (PetscInt j = i % 2; j < 8; j += 2) PetscCall(MatSetValue(*A, i, j, TestValue(1, i, j), INSERT_VALUES));
    if (i % (n / 5) == 3)
      for (PetscInt j = 0; j < n; j++) PetscCall(MatSetValue(*A, i, j, TestValue(1, i, j), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A;
  Vec                 x, y[2];
  MatGallopStatistics stats;
  PetscBool           reproducible = PETSC_FALSE, same, transpose = PETSC_FALSE, device;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &transpose, NULL));
  PetscCall(TestReproducible(&reproducible));
  PetscCall(TestHasDevice(&device));
  PetscCheck(reproducible, PETSC_COMM_WORLD, PETSC_ERR_USER, "%s promises nothing", TestFormat(""));
  PetscCall(Create(3000, &A));
  PetscCall(MatCreateVecs(A, &x, &y[0]));
  PetscCall(VecDuplicate(y[0], &y[1]));
  PetscCall(TestSetVec(x, 3));
  for (int k = 0; k <= 100; k++) {
    Vec to = y[k > 0];

    PetscCall(TestSpoilVec(to));
    if (transpose) PetscCall(MatMultTranspose(A, x, to));
    else PetscCall(MatMult(A, x, to));
    if (!k) continue;
    PetscCall(VecEqual(y[0], y[1], &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "product %d differs from the first", k);
  }
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(!stats.fallbacks && (device ? stats.products_device : stats.products_host) >= 101, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the format computed %" PetscInt64_FMT " products on the GPU, %" PetscInt64_FMT " on the host",
             stats.products_device, stats.products_host);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y[0]));
  PetscCall(VecDestroy(&y[1]));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    test:
      suffix: 1
      args: -format {{evchyb csroverlap hbp}}
    test:
      suffix: clusters
      args: -mat_evchyb_order cluster
    test: # maps in most blocks of rows, not in those of full rows, which are not long
      suffix: hbp_maps
      args: -format hbp -mat_hbp_map 1 -mat_hbp_block_rows 4 -mat_hbp_block_cols 512 -mat_hbp_long_row 3000
    test:
      suffix: fastload
      args: -format fastload -mat_fastload_deterministic -transpose {{0 1}}

TEST*/
