/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Gallop matrices of odd shapes: without rows, columns, entries or ghosts, with an empty process, one row, one full row; unfinished ones; without values.\n\n";

#include "../galloptest.h"

typedef PetscBool (*Pattern)(PetscInt m, PetscInt n, PetscInt i, PetscInt j);

static PetscBool None(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  (void)m, (void)n, (void)i, (void)j;
  return PETSC_FALSE;
}

static PetscBool All(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  (void)m, (void)n, (void)i, (void)j;
  return PETSC_TRUE;
}

static PetscBool Random(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  return TestHasEntry(90, m, n, i, j);
}

static PetscBool OneFullRow(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  (void)n;
  return (PetscBool)(i == m / 3 || i == j);
}

static PetscBool OnlyOneFullRow(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  (void)n, (void)j;
  return (PetscBool)(i == m - 1);
}

static PetscBool OneFullColumn(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  (void)m, (void)i;
  return (PetscBool)(j == n - 1);
}

static PetscBool OneEntry(PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  return (PetscBool)(i == m - 1 && j == n / 2);
}

static PetscErrorCode Fill(Mat A, Pattern pattern, PetscInt seed)
{
  PetscInt m, n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt j = 0; j < n; j++)
      if ((*pattern)(m, n, i, j)) PetscCall(MatSetValue(A, i, j, TestValue(seed, i, j), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* m and n are local sizes, different on each process perhaps */
static PetscErrorCode Shape(PetscInt m, PetscInt n, Pattern pattern, const char what[])
{
  PetscFunctionBegin;
  for (int hash = 0; hash < 2; hash++) {
    Mat                 M[2];
    MatGallopStatistics last = {0};

    for (int k = 0; k < 2; k++) {
      PetscCall(MatCreate(PETSC_COMM_WORLD, &M[k]));
      PetscCall(MatSetSizes(M[k], m, n, PETSC_DETERMINE, PETSC_DETERMINE));
      PetscCall(MatSetType(M[k], k ? MATAIJ : TestFormat("")));
      PetscCall(MatSetFromOptions(M[k]));
      if (hash) PetscCall(MatSetUp(M[k]));
      else PetscCall(TestPreallocate(M[k]));
      PetscCall(Fill(M[k], pattern, 91));
    }
    PetscCall(TestProducts(M[0], M[1], TEST_BUILD, &last, what));
    for (int k = 0; k < 2; k++) PetscCall(Fill(M[k], pattern, 92));
    PetscCall(TestProducts(M[0], M[1], TEST_REFRESH, &last, what));
    for (int k = 0; k < 2; k++) PetscCall(MatScale(M[k], 2.0));
    PetscCall(TestProducts(M[0], M[1], TEST_REFRESH, &last, what));
    PetscCall(TestDestroy(&M[0], &M[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shapes(void)
{
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Shape(0, 0, None, "0 by 0"));
  PetscCall(Shape(0, 10, None, "no rows"));
  PetscCall(Shape(10, 0, None, "no columns"));
  PetscCall(Shape(40, 30, None, "no entries"));
  PetscCall(Shape(40, 30, All, "full"));
  PetscCall(Shape(rank == 0, rank == 0, All, "1 by 1"));
  PetscCall(Shape(rank == size - 1, 50, All, "one row"));
  PetscCall(Shape(50, rank == 0, All, "one column"));
  PetscCall(Shape(50, 60, OneFullRow, "one full row"));
  PetscCall(Shape(50, 60, OnlyOneFullRow, "nothing but one full row"));
  PetscCall(Shape(50, 60, OneFullColumn, "nothing but one full column"));
  PetscCall(Shape(50, 60, OneEntry, "one entry"));
  PetscCall(Shape(20, 2500, OneFullRow, "a row of thousands of entries"));
  PetscCall(Shape(32, 32, All, "32 rows a process"));
  PetscCall(Shape(33, 33, All, "33 rows a process"));
  PetscCall(Shape(31, 31, All, "31 rows a process"));
  PetscCall(Shape(rank == 0 ? 0 : 40, rank == 0 ? 0 : 40, Random, "the first process is empty"));
  PetscCall(Shape(rank == size - 1 ? 0 : 40, rank == size - 1 ? 0 : 40, Random, "the last process is empty"));
  PetscCall(Shape(rank == 0 ? 60 : 0, rank == 0 ? 60 : 0, Random, "all is on the first process"));
  PetscCall(Shape(rank == 0 ? 60 : 0, rank == size - 1 ? 60 : 0, Random, "rows on the first process, columns on the last"));
  PetscCall(Shape(rank % 2 ? 0 : 50, rank % 2 ? 50 : 10, Random, "rows and columns on different processes"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No ghosts at first, then some, then others */
static PetscErrorCode Ghosts(void)
{
  Mat                 M[2];
  PetscInt            rstart, rend, n;
  PetscMPIInt         size;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt step = 0; step < 4; step++) {
    for (int k = 0; k < 2; k++) {
      if (step == 0) PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, k ? MATAIJ : TestFormat(""), TestSquare, &M[k]));
      PetscCall(MatSetOption(M[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatGetSize(M[k], &n, NULL));
      PetscCall(MatGetOwnershipRange(M[k], &rstart, &rend));
      for (PetscInt i = rstart; i < rend; i++) {
        PetscCall(MatSetValue(M[k], i, i, TestValue(step, i, i), INSERT_VALUES));
        if (step > 0) PetscCall(MatSetValue(M[k], i, (i + step * 41) % n, TestValue(step, i, 1), INSERT_VALUES));
      }
      PetscCall(MatAssemblyBegin(M[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(M[k], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(TestProducts(M[0], M[1], step == 0 ? TEST_BUILD : (size > 1 ? TEST_CHANGED : TEST_BUILD), &last, step ? "new ghosts" : "no ghosts"));
  }
  PetscCall(TestDestroy(&M[0], &M[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc says what is wrong with a product of a matrix that is not assembled; it can be destroyed, bound, duplicated and used later all the same */
static PetscErrorCode Unfinished(PetscBool preallocate)
{
  const TestShape     shape = {30, 30, preallocate};
  Mat                 A, R, B;
  Vec                 x, y;
  PetscErrorCode      ierr;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(MatDestroy(&A));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatDestroy(&A));

  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  PetscCall(MatSetValue(A, 0, 0, 2.0, INSERT_VALUES));
  PetscCall(MatSetValue(R, 0, 0, 2.0, INSERT_VALUES));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatMult(A, x, y);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatMult() of an unassembled matrix gave error %d", (int)ierr);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatMultAdd(A, x, y, y);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatMultAdd() of an unassembled matrix gave error %d", (int)ierr);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));

  PetscCall(MatSetFromOptions(A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  if (!preallocate) {
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &B)); /* while values are in a hash table */
    PetscCall(TestIsOurs(B, PETSC_TRUE, "duplicate of an unfinished matrix"));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FLUSH_ASSEMBLY));
  PetscCall(MatAssemblyBegin(R, MAT_FLUSH_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FLUSH_ASSEMBLY));
  PetscCall(MatAssemblyEnd(R, MAT_FLUSH_ASSEMBLY));
  PetscCall(Fill(A, Random, 93));
  PetscCall(Fill(R, Random, 93));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "finished matrix"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix without values has no product: an error, where a plain matrix reads what is not there */
static PetscErrorCode StructureOnly(void)
{
  Mat                 A;
  Vec                 x, y;
  PetscErrorCode      ierr[2];
  PetscMPIInt         size;
  MatInfo             info;
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, TestSquare.m, TestSquare.n));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetOption(A, MAT_STRUCTURE_ONLY, PETSC_TRUE));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 3, NULL, 0, NULL));
  for (PetscInt i = 0; i < TestSquare.m; i++) {
    PetscInt rstart, rend;

    PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
    if (i >= rstart && i < rend) PetscCall(MatSetValues(A, 1, &i, 1, &i, NULL, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCheck((PetscInt)info.nz_used == TestSquare.m, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "pattern of %g entries", info.nz_used);
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestSetVec(x, 95));
  if (size == 1) { /* each process of a product would stop at another place */
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr[0] = MatMult(A, x, y);
    ierr[1] = MatMultTranspose(A, x, y);
    PetscCall(PetscPopErrorHandler());
    for (int k = 0; k < 2; k++) PetscCheck(ierr[k] == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "product of a matrix without values gave error %d", (int)ierr[k]);
  }
  PetscCall(MatGallopGetStatistics(A, &now));
  PetscCheck(!now.builds, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a format without values was built");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(Shapes());
  PetscCall(Ghosts());
  PetscCall(Unfinished(PETSC_TRUE));
  PetscCall(Unfinished(PETSC_FALSE));
  PetscCall(StructureOnly());
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
