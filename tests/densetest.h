/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the tests of products with dense matrices share */

#include "galloptest.h"

/* A random dense matrix of n columns, to be multiplied by A or by its transpose. With lda its leading dimension is larger than its number of rows. */
static inline PetscErrorCode TestCreateDense(Mat A, PetscBool transposed, MatType type, PetscInt n, PetscBool lda, PetscInt seed, Mat *B)
{
  PetscInt     m, M, rstart;
  PetscScalar *b;
  Vec          x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecGetLocalSize(transposed ? y : x, &m));
  PetscCall(VecGetSize(transposed ? y : x, &M));
  PetscCall(VecGetOwnershipRange(transposed ? y : x, &rstart, NULL));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatCreate(PETSC_COMM_WORLD, B));
  PetscCall(MatSetSizes(*B, m, PETSC_DECIDE, M, n));
  PetscCall(MatSetType(*B, type));
  if (lda) PetscCall(MatDenseSetLDA(*B, m + 5));
  PetscCall(MatSetUp(*B));
  PetscCall(MatDenseGetLDA(*B, &M));
  PetscCall(MatDenseGetArrayWrite(*B, &b));
  for (PetscInt j = 0; j < n; j++) {
    for (PetscInt i = 0; i < m; i++) b[i + j * M] = TestValue(seed, rstart + i, j);
  }
  PetscCall(MatDenseRestoreArrayWrite(*B, &b));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = R B against sums in long double, on one process */
static inline PetscErrorCode TestCompareDense(Mat R, Mat B, Mat C, const char what[])
{
  PetscInt           m, n, columns, ldb, ldc, rows;
  const PetscInt    *i, *j;
  const PetscScalar *a, *b, *c;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &m, &n));
  PetscCall(MatGetSize(B, &rows, &columns));
  TestCheck(rows == n, "B has %" PetscInt_FMT " rows", what, rows);
  PetscCall(MatGetSize(C, &rows, &ldc));
  TestCheck(rows == m && ldc == columns, "C is %" PetscInt_FMT " by %" PetscInt_FMT, what, rows, ldc);
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(R, &a));
  PetscCall(MatDenseGetArrayRead(B, &b));
  PetscCall(MatDenseGetArrayRead(C, &c));
  PetscCall(MatDenseGetLDA(B, &ldb));
  PetscCall(MatDenseGetLDA(C, &ldc));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < columns; k++) {
      TestSum sum = {0, 0, 0};

      for (PetscInt e = i[r]; e < i[r + 1]; e++) TestSumAdd(&sum, a[e], b[j[e] + (PetscCount)k * ldb]);
      PetscCall(TestCompareSum(&sum, c[r + (PetscCount)k * ldc], TEST_ULPS, r, k, what));
    }
  }
  PetscCall(MatDenseRestoreArrayRead(C, &c));
  PetscCall(MatDenseRestoreArrayRead(B, &b));
  PetscCall(MatSeqAIJRestoreArrayRead(R, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = op(R) B, on any number of processes: column by column against the rows of the plain matrix */
static inline PetscErrorCode TestCompareColumns(Mat R, TestOp op, Mat B, Mat C, const char what[])
{
  PetscInt n;
  Vec      x, y, b, c;

  PetscFunctionBegin;
  PetscCall(MatGetSize(B, NULL, &n));
  PetscCall(MatCreateVecs(R, &x, &y));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(MatDenseGetColumnVecRead(B, k, &b));
    PetscCall(VecCopy(b, op == TEST_MULT ? x : y));
    PetscCall(MatDenseRestoreColumnVecRead(B, k, &b));
    PetscCall(MatDenseGetColumnVecRead(C, k, &c));
    PetscCall(VecCopy(c, op == TEST_MULT ? y : x));
    PetscCall(MatDenseRestoreColumnVecRead(C, k, &c));
    PetscCall(TestCompare(R, op, op == TEST_MULT ? x : y, NULL, op == TEST_MULT ? y : x, what));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a product was computed since the counts were last looked at: by TiledSpMM on the host or on the GPU, or by the parent */
typedef enum { TEST_DENSE_HOST, TEST_DENSE_DEVICE, TEST_DENSE_PARENT } TestDensePlace;

static inline PetscErrorCode TestDenseCounts(Mat A, PetscInt builds, PetscInt refreshes, TestDensePlace place, MatGallopStatistics *last, const char what[])
{
  MatGallopStatistics now;
  PetscInt64          host, device, parent;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &now));
  TestCheck(now.dense_builds == last->dense_builds + builds && now.dense_refreshes == last->dense_refreshes + refreshes, "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes, not %" PetscInt_FMT " and %" PetscInt_FMT, what,
            now.dense_builds - last->dense_builds, now.dense_refreshes - last->dense_refreshes, builds, refreshes);
  host   = now.dense_products_host - last->dense_products_host;
  device = now.dense_products_device - last->dense_products_device;
  parent = now.dense_fallbacks - last->dense_fallbacks;
  TestCheck(host == (place == TEST_DENSE_HOST) && device == (place == TEST_DENSE_DEVICE) && parent == (place == TEST_DENSE_PARENT), "%" PetscInt64_FMT " products on the host, %" PetscInt64_FMT " on the GPU, %" PetscInt64_FMT " by the parent", what, host, device, parent);
  TestCheck(now.builds == last->builds && now.products_host == last->products_host && now.products_device == last->products_device && now.fallbacks == last->fallbacks, "the format for vectors was used", what);
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}
