/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Memory of the GPU that the CSR arrays give back when the format of a large matrix is there, as the driver counts it.\n\n";

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1
#include <petscdevice_cuda.h>
#include "../galloptest.h"

#define GRID 160

/* Laplace's operator in three dimensions, on the host */
static PetscErrorCode Create(Mat *A, size_t *bytes)
{
  const PetscInt n = GRID, m = n * n * n, step[3] = {n * n, n, 1};
  PetscInt      *i, *j, k                         = 0;
  PetscScalar   *a;
  Mat            B;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(m + 1, &i, 7 * m, &j, 7 * m, &a));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt at[3] = {r / (n * n), r / n % n, r % n};

    for (int d = 0; d < 7; d++) {
      const int      axis = d < 3 ? d : 6 - d;
      const PetscInt side = d < 3 ? -1 : d > 3 ? 1 : 0;

      if (side && (at[axis] + side < 0 || at[axis] + side >= n)) continue;
      j[k]   = side ? r + side * step[axis] : r;
      a[k++] = side ? -1.0 - TestRandom(1, r, d) : 7.0 + TestRandom(1, r, d);
    }
    i[r + 1] = k;
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, m, i, j, a, &B));
  PetscCall(MatConvert(B, TestFormat(""), MAT_INITIAL_MATRIX, A));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFree3(i, j, a));
  *bytes = (size_t)(m + 1) * sizeof(PetscInt) + (size_t)k * (sizeof(PetscInt) + sizeof(PetscScalar));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a matrix takes after a product, after as many of the parent's as it takes until the format pays, and with new values */
static PetscErrorCode Take(const char csr[], size_t *taken, size_t *bytes, PetscInt64 *went)
{
  Mat                 A;
  Vec                 x, z;
  size_t              before, after, total;
  MatGallopStatistics s = {0};

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_csr", csr));
  PetscCall(Create(&A, bytes));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(z, 1.0));
  PetscCallCUDA(cudaMemGetInfo(&before, &total));
  for (int k = 0; k < 2000 && !s.builds; k++) {
    PetscCall(MatMult(A, x, z));
    PetscCall(MatGallopGetStatistics(A, &s));
  }
  PetscCallCUDA(cudaMemGetInfo(&after, &total));
  PetscCheck(s.builds == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_gallop_csr %s: %" PetscInt64_FMT " builds", csr, s.builds);
  *taken = before > after ? before - after : 0;
  *went  = s.csr_uploads + s.csr_releases;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  if (device) {
    size_t     keep, release, bytes;
    PetscInt64 went;

    PetscCall(Take("keep", &keep, &bytes, &went)); /* the memory that the library keeps for other builds is taken here */
    PetscCall(Take("keep", &keep, &bytes, &went));
    PetscCheck(!went, PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_gallop_csr keep: CSR arrays went %" PetscInt64_FMT " times", went);
    for (int k = 0; k < 2; k++) {
      const char *csr = k ? "auto" : "release"; /* so large a matrix is released by itself */

      PetscCall(Take(csr, &release, &bytes, &went));
      PetscCall(PetscInfo(NULL, "%s takes %zu bytes, keep %zu, CSR arrays are %zu\n", csr, release, keep, bytes));
      PetscCheck(went == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_gallop_csr %s: CSR arrays went %" PetscInt64_FMT " times", csr, went);
      PetscCheck(release + bytes / 10 * 9 <= keep, PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_gallop_csr %s: the matrix takes %zu bytes of the GPU, with keep %zu; its CSR arrays take %zu", csr, release, keep, bytes);
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  build:
    requires: cuda

  testset:
    output_file: output/empty.out
    args: -format {{evchyb fastload hbp}}
    test:
      suffix: first
    test:
      suffix: pays
      args: -mat_gallop_build pays

TEST*/
