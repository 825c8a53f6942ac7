/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of a matrix that may have more than 2^31 nonzeros, and again with new values.\n\n";

#include "../galloptest.h"

/*
  Rows of the same length. By default entry k of row i is at column i + k^2, so that a format with narrow or packed columns has what it is made for; scattered: in the k-th of
  as many equal parts of the columns.
*/
typedef struct {
  PetscInt     m, n, length;
  PetscBool    scattered;
  PetscInt    *i, *j;
  PetscScalar *a;
} Arrays;

static PetscInt Column(const Arrays *A, PetscInt i, PetscInt k)
{
  const PetscInt part = A->n / A->length;

  return A->scattered ? k * part + (PetscInt)(TestRandom(3, i, k) * part) : i + k * k;
}

static PetscErrorCode Create(Arrays *A)
{
  PetscInt nz;

  PetscFunctionBegin;
  PetscCall(PetscIntCast((PetscCount)A->m * A->length, &nz));
  PetscCall(PetscMalloc3(A->m + 1, &A->i, nz, &A->j, nz, &A->a));
  for (PetscInt i = 0; i <= A->m; i++) A->i[i] = i * A->length;
  for (PetscInt i = 0; i < A->m; i++)
    for (PetscInt k = 0; k < A->length; k++) A->j[A->i[i] + k] = Column(A, i, k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Fill(const Arrays *A, PetscInt seed)
{
  for (PetscInt i = 0; i < A->m; i++)
    for (PetscInt k = 0; k < A->length; k++) A->a[A->i[i] + k] = TestValue(seed, i, k);
}

/* More columns than plain storage, or packed, has bits for: no format, and nothing is lost. No product, whose x would take 24 GB. */
static PetscErrorCode Wide(void)
{
#if PetscDefined(USE_64BIT_INDICES)
  const PetscInt      m = 40, n = 3000000000;
  Mat                 A;
  const void         *data;
  const PetscScalar  *a;
  const PetscInt     *j;
  PetscInt            num, lines = 0, matches = 0;
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, m, n, m, n));
  PetscCall(MatSetType(A, MATEVCHYB));
  PetscCall(MatSeqAIJSetPreallocation(A, 2, NULL));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(TestCaptureBegin());
  for (PetscInt r = 0; r < m; r++) {
    PetscCall(MatSetValue(A, r, r, 1.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, n - 1 - r, TestValue(2, r, 0), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(TestCaptureEnd("Gallop: no room for the EVCHYB format of a 40 by 3000000000 matrix", &lines, &matches));
  TestCheck(lines == 1 && matches == 1, "%" PetscInt_FMT " messages, %" PetscInt_FMT " of them right", "wide", lines, matches);
  PetscCall(TestCaptureBegin()); /* new values ask again, and say nothing more */
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(TestCaptureEnd("Gallop", &lines, &matches));
  TestCheck(!lines, "%" PetscInt_FMT " more messages", "wide", lines);
  PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_HOST, &data));
  PetscCall(MatGallopGetStatistics(A, &s));
  TestCheck(!data && !s.builds, "a format for %" PetscInt_FMT " columns", "wide", n);
  PetscCall(MatGetRow(A, 7, &num, &j, &a));
  TestCheck(num == 2 && j[1] == n - 8 && a[1] == 2 * TestValue(2, 7, 0), "row 7 has %" PetscInt_FMT " entries", "wide", num);
  PetscCall(MatRestoreRow(A, 7, &num, &j, &a));
  PetscCall(MatDestroy(&A));
#else
  PetscFunctionBegin;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Arrays              arrays = {2000, 0, 15, PETSC_FALSE, NULL, NULL, NULL};
  Mat                 A, R;
  Vec                 x, z;
  PetscScalar        *a;
  MatGallopStatistics last = {0};
  PetscBool           wide = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &arrays.m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-row_length", &arrays.length, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-scattered", &arrays.scattered, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-wide", &wide, NULL));
  if (wide) {
    PetscCall(Wide());
    PetscCall(PetscFinalize());
    return 0;
  }
  arrays.n = arrays.m + arrays.length * arrays.length;
  PetscCall(Create(&arrays));
  Fill(&arrays, 0);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, arrays.m, arrays.n, arrays.i, arrays.j, arrays.a, &R));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, arrays.m, arrays.n, arrays.i, arrays.j, arrays.a, &A));
  PetscCall(MatConvert(A, TestFormat(""), MAT_INPLACE_MATRIX, &A));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "first product"));
  PetscCall(MatSeqAIJGetArray(A, &a));
  TestCheck(a == arrays.a, "the matrix has other arrays", "new values");
  Fill(&arrays, 1);
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "new values"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFree3(arrays.i, arrays.j, arrays.a));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}} -scattered {{0 1}}
    output_file: output/empty.out

  test:
    suffix: wide
    requires: defined(PETSC_USE_64BIT_INDICES)
    args: -wide -mat_gallop_build assembly -mat_evchyb_storage {{plain packed}}
    output_file: output/empty.out

TEST*/
