/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A Gallop matrix whose nonzero pattern changes builds its format anew, at the next product, and is right.\n\n";

#include "../galloptest.h"

/* What is done to our matrix and to the plain one */
static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewEntries(Mat A)
{
  PetscInt m, n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt i = rstart; i < rend; i += 3) {
    for (PetscInt k = 0; k < 9; k++) PetscCall(MatSetValue(A, i, (i + 5 * k * k) % n, TestValue(1, i, k), INSERT_VALUES));
  }
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New entries of the diagonal block only */
static PetscErrorCode NewDiagonalEntries(Mat A)
{
  PetscInt rstart, rend, cstart, cend;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt i = rstart; i < rend; i++) PetscCall(MatSetValue(A, i, cstart + (i * 7) % (cend - cstart), 0.75, ADD_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One new entry in all, set by the last process in a row of the first */
static PetscErrorCode OneNewEntry(Mat A)
{
  PetscInt    m, n, c = 0;
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  while (TestHasEntry(0, m, n, 3, c)) c++;
  if (rank == size - 1) PetscCall(MatSetValue(A, 3, c, -1.25, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FirstEntryOfEmptyRow(Mat A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt i = rstart; i < rend; i++)
    if (i % 11 == 5) PetscCall(MatSetValue(A, i, 0, (PetscReal)i, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries that PETSc was told to ignore */
static PetscErrorCode IgnoredEntries(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(TestFill(A, 77, 78));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroTheRows(Mat A, PetscBool keep, PetscBool diagonal, PetscBool columns)
{
  PetscInt  n = 0, rstart, rend, *rows;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(PetscMalloc1(rend - rstart, &rows));
  for (PetscInt i = rstart; i < rend; i++) {
    has = TestHasEntry(0, 150, 150, i, i);
    if (i % 4 == 0 && has) rows[n++] = i;
  }
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, keep));
  if (columns) PetscCall(MatZeroRowsColumns(A, n, rows, diagonal ? 2.5 : 0.0, NULL, NULL));
  else PetscCall(MatZeroRows(A, n, rows, diagonal ? 2.5 : 0.0, NULL, NULL));
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRows(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsDiagonal(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_FALSE, PETSC_TRUE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKeep(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKeepDiagonal(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_TRUE, PETSC_TRUE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsColumns(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EliminateZeros(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE));
  PetscCall(MatEliminateZeros(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EliminateZerosKeepDiagonal(Mat A)
{
  PetscFunctionBegin;
  PetscCall(ZeroTheRows(A, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE));
  PetscCall(MatEliminateZeros(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Filter(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatFilter(A, (PetscReal)0.4, PETSC_TRUE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A)
{
  PetscFunctionBegin;
  PetscCall(TestPreallocate(A));
  PetscCall(TestFill(A, 5, 6));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same pattern again: the arrays are new ones all the same */
static PetscErrorCode PreallocateSame(Mat A)
{
  PetscFunctionBegin;
  PetscCall(TestPreallocate(A));
  PetscCall(TestFill(A, 0, 6));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResetPreallocation(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatResetPreallocation(A));
  PetscCall(TestFill(A, 8, 9));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResetHash(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatResetHash(A));
  PetscCall(TestFill(A, 8, 10));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shift(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(A, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With another matrix of its own type, of another pattern */
static PetscErrorCode AXPYDifferent(Mat A)
{
  Mat     B;
  MatType type;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, type, TestSquare, &B));
  PetscCall(TestFill(B, 31, 32));
  PetscCall(MatAXPY(A, 1.5, B, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AYPXDifferent(Mat A)
{
  Mat     B;
  MatType type;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, type, TestSquare, &B));
  PetscCall(TestFill(B, 33, 34));
  PetscCall(MatAYPX(A, 1.5, B, UNKNOWN_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyDifferent(Mat A)
{
  Mat     B;
  MatType type;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, type, TestSquare, &B));
  PetscCall(TestFill(B, 35, 36));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCopy(B, A, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nothing(Mat A)
{
  PetscFunctionBegin;
  (void)A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two changes before the next product */
static PetscErrorCode PatternThenValues(Mat A)
{
  PetscFunctionBegin;
  PetscCall(NewEntries(A));
  PetscCall(MatScale(A, 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*f)(Mat);
  TestExpect seq, mpi;
  PetscBool  replaced; /* by MatHeaderReplace(): the matrix that takes its place begins to count from zero */
} changes[] = {
  {"new entries",                            NewEntries,                 TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"new entries in the diagonal block",      NewDiagonalEntries,         TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"one new entry",                          OneNewEntry,                TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"first entry of empty rows",              FirstEntryOfEmptyRow,       TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"new entries, then MatScale()",           PatternThenValues,          TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"entries that are ignored",               IgnoredEntries,             TEST_REFRESH, TEST_REFRESH, PETSC_FALSE},
  {"MatZeroRows()",                          ZeroRows,                   TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"MatZeroRows() with a diagonal",          ZeroRowsDiagonal,           TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"MatZeroRows() keeping the pattern",      ZeroRowsKeep,               TEST_REFRESH, TEST_REFRESH, PETSC_FALSE},
  {"MatZeroRows() with a diagonal, keeping", ZeroRowsKeepDiagonal,       TEST_REFRESH, TEST_REFRESH, PETSC_FALSE},
  {"MatZeroRowsColumns()",                   ZeroRowsColumns,            TEST_REFRESH, TEST_REFRESH, PETSC_FALSE},
  {"MatEliminateZeros()",                    EliminateZeros,             TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"MatEliminateZeros() but the diagonal",   EliminateZerosKeepDiagonal, TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"MatFilter()",                            Filter,                     TEST_BUILD,   TEST_CHANGED, PETSC_TRUE },
  {"preallocated again",                     Preallocate,                TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"preallocated again, same pattern",       PreallocateSame,            TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatResetPreallocation()",                ResetPreallocation,         TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatResetHash()",                         ResetHash,                  TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatShift() of a missing diagonal",       Shift,                      TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"MatTranspose() in place",                Transpose,                  TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatAXPY() of another pattern",           AXPYDifferent,              TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatAYPX() of another pattern",           AYPXDifferent,              TEST_BUILD,   TEST_BUILD,   PETSC_FALSE},
  {"MatCopy() of another pattern",           CopyDifferent,              TEST_BUILD,   TEST_CHANGED, PETSC_FALSE},
  {"no change",                              Nothing,                    TEST_NOTHING, TEST_NOTHING, PETSC_FALSE}
};

static PetscErrorCode Change(size_t k, TestShape shape, PetscBool first)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};
  PetscMPIInt         size;
  PetscBool           inassembly;
  TestExpect          expect;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  expect = size > 1 ? changes[k].mpi : changes[k].seq;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 0, &A, &R));
  if (first) PetscCall(TestProductsBriefly(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall((*changes[k].f)(A));
  PetscCall((*changes[k].f)(R));
  if (changes[k].replaced) PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(PetscOptionsHasName(NULL, NULL, TestOption("", "build_in_assembly"), &inassembly));
  if (!first) expect = inassembly ? TEST_ANY : TEST_BUILD;
  if (first && shape.preallocate) PetscCall(TestProducts(A, R, expect, &last, changes[k].name)); /* in all ways once: the others do not differ in that */
  else PetscCall(TestProductsBriefly(A, R, expect, &last, changes[k].name));
  PetscCall(MatScale(A, 2.0)); /* and after it values can change as ever */
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProductsBriefly(A, R, TEST_REFRESH, &last, changes[k].name));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All of them, one after the other, to one matrix */
static PetscErrorCode Sequence(void)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  for (PetscInt round = 0; round < 2; round++) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes); k++) {
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
      PetscCall(MatSetOption(R, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
      PetscCall((*changes[k].f)(A));
      PetscCall((*changes[k].f)(R));
      if (changes[k].replaced) PetscCall(PetscMemzero(&last, sizeof(last)));
      PetscCall(TestProducts(A, R, TEST_ANY, &last, changes[k].name));
    }
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool sequence = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sequence", &sequence, NULL));
  if (sequence) PetscCall(Sequence());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes) && !sequence; k++) {
    PetscCall(Change(k, TestSquare, PETSC_TRUE));
    PetscCall(Change(k, TestSquareHash, PETSC_TRUE));
    PetscCall(Change(k, TestSquare, PETSC_FALSE));
  }
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
      suffix: sequence
      args: -sequence -mat_evchyb_build_in_assembly {{0 1}}
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
