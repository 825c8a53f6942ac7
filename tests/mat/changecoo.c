/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "COO assembly of a Gallop matrix: once, with new values, and again with a new pattern.\n\n";

#include "cootest.h"

/* Entries of the test pattern, each process every size-th of the whole matrix, some twice, and some that are to be ignored */
static PetscErrorCode COOCreate(Mat A, Mat R, PetscInt seed, PetscBool offprocess, COO *coo)
{
  PetscInt    m, n, rstart, rend, k = 0;
  PetscMPIInt rank, size;
  VecType     type;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetSize(R, &m, &n));
  PetscCall(MatGetOwnershipRange(R, &rstart, &rend));
  coo->n = 0;
  PetscCall(PetscMalloc2(3 * m * n, &coo->i, 3 * m * n, &coo->j));
  for (PetscInt i = offprocess ? 0 : rstart; i < (offprocess ? m : rend); i++) {
    for (PetscInt j = 0; j < n; j++) {
      if (!TestHasEntry(seed, m, n, i, j) || (offprocess && k++ % size != rank)) continue;
      for (PetscInt repeat = 0; repeat < (j % 5 == 0 ? 2 : 1); repeat++) {
        coo->i[coo->n]   = i;
        coo->j[coo->n++] = j;
      }
      if (j % 17 == 0) {
        coo->i[coo->n]   = -1;
        coo->j[coo->n++] = j;
      }
    }
  }
  PetscCall(MatGetVecType(A, &type));
  PetscCall(VecCreate(PETSC_COMM_SELF, &coo->v));
  PetscCall(VecSetSizes(coo->v, coo->n, coo->n));
  PetscCall(VecSetType(coo->v, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(TestShape shape, PetscBool offprocess, PetscBool fromhost)
{
  Mat                 A, R;
  COO                 coo;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, shape.m, shape.n));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &R));
  PetscCall(MatSetSizes(R, PETSC_DECIDE, PETSC_DECIDE, shape.m, shape.n));
  PetscCall(MatSetType(R, MATAIJ));
  PetscCall(MatSetUp(R));                        /* gives it its ranges of rows */
  for (PetscInt round = 0; round < 3; round++) { /* the third has the pattern of the second */
    PetscCall(COOCreate(A, R, PetscMin(round, 1), offprocess, &coo));
    PetscCall(COOSetPattern(A, &coo));
    PetscCall(COOSetPattern(R, &coo));
    PetscCall(COOSetValues(A, R, &coo, 60, INSERT_VALUES, fromhost));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatSetPreallocationCOO()"));
    PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), "MatSetPreallocationCOO()"));
    PetscCall(COOSetValues(A, R, &coo, 61, INSERT_VALUES, fromhost));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatSetValuesCOO() of new values"));
    PetscCall(COOSetValues(A, R, &coo, 62, ADD_VALUES, fromhost));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatSetValuesCOO() of values to add"));
    PetscCall(MatScale(A, 0.5));
    PetscCall(MatScale(R, 0.5));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatScale() after MatSetValuesCOO()"));
    PetscCall(COODestroy(&coo));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* COO on a matrix that was assembled otherwise, then otherwise again */
static PetscErrorCode Mixed(void)
{
  Mat                 A, R;
  COO                 coo;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(COOCreate(A, R, 1, PETSC_TRUE, &coo));
  PetscCall(COOSetPattern(A, &coo));
  PetscCall(COOSetPattern(R, &coo));
  PetscCall(COOSetValues(A, R, &coo, 63, INSERT_VALUES, PETSC_FALSE));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "COO assembly of an assembled matrix"));
  PetscCall(TestFill(A, 1, 64));
  PetscCall(TestFill(R, 1, 64));
  PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatSetValues() after COO assembly"));
  PetscCall(COOSetValues(A, R, &coo, 65, INSERT_VALUES, PETSC_FALSE));
  PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatSetValuesCOO() after MatSetValues()"));
  PetscCall(TestPreallocate(A));
  PetscCall(TestPreallocate(R));
  PetscCall(TestFill(A, 2, 66));
  PetscCall(TestFill(R, 2, 66));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "preallocation after COO assembly"));
  PetscCall(COODestroy(&coo));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A duplicate shares what COO assembly keeps; each has its own values */
static PetscErrorCode Duplicates(void)
{
  Mat                 A, R, B, S;
  COO                 coo;
  MatGallopStatistics last = {0}, blast = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(COOCreate(A, R, 1, PETSC_TRUE, &coo));
  PetscCall(COOSetPattern(A, &coo));
  PetscCall(COOSetPattern(R, &coo));
  PetscCall(COOSetValues(A, R, &coo, 67, INSERT_VALUES, PETSC_FALSE));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "COO assembly"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
  PetscCall(COOSetValues(B, S, &coo, 68, INSERT_VALUES, PETSC_FALSE));
  PetscCall(TestProducts(B, S, TEST_BUILD, &blast, "COO values of a duplicate"));
  PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "original of a duplicate"));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(COOSetValues(B, S, &coo, 69, INSERT_VALUES, PETSC_FALSE));
  PetscCall(TestProducts(B, S, TEST_REFRESH, &blast, "COO values of a duplicate whose original is gone"));
  PetscCall(COODestroy(&coo));
  PetscCall(TestDestroy(&B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const TestShape shapes[] = {TestSquare, TestWide, TestTall};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    PetscCall(Test(shapes[s], PETSC_FALSE, PETSC_FALSE));
    PetscCall(Test(shapes[s], PETSC_TRUE, PETSC_FALSE));
    PetscCall(Test(shapes[s], PETSC_TRUE, PETSC_TRUE));
  }
  PetscCall(Mixed());
  PetscCall(Duplicates());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 4}}
    test:
      suffix: 1
    test:
      suffix: in_assembly
      args: -mat_evchyb_build_in_assembly
    test:
      suffix: csroverlap
      args: -format csroverlap -mat_csroverlap_build_in_assembly {{0 1}}
    test:
      suffix: fastload
      args: -format fastload -mat_fastload_build_in_assembly {{0 1}}
    test:
      suffix: hbp
      args: -format hbp -mat_hbp_build_in_assembly {{0 1}}

TEST*/
