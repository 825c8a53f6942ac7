/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A Gallop matrix whose values change keeps its format and renews the values in it, once, at the next product.\n\n";

#include "../galloptest.h"

typedef struct {
  Mat                 A, R;
  MatGallopStatistics last;
} Test;

static PetscErrorCode Begin(Test *t, TestShape shape, PetscInt seed, const char what[])
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, seed, &t->A, &t->R));
  PetscCall(TestProducts(t->A, t->R, TEST_BUILD, &t->last, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Test *t)
{
  PetscFunctionBegin;
  PetscCall(TestDestroy(&t->A, &t->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BuildOnce(void)
{
  const TestShape shapes[] = {TestSquare, TestSquareHash, TestWide, TestTall};
  Test            t;
  Vec             x, z;

  PetscFunctionBegin;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    PetscCall(Begin(&t, shapes[s], (PetscInt)s, "new matrix"));
    PetscCall(MatCreateVecs(t.A, &x, &z));
    for (int k = 0; k < 20; k++) PetscCall(TestMult(t.A, t.R, x, z, TEST_NOTHING, &t.last, "many products"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(End(&t));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValues(void)
{
  Test t;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestSquare, 1, "new matrix"));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(TestFill(t.A, 1, 100 + k));
    PetscCall(TestFill(t.R, 1, 100 + k));
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatSetValues() of all entries"));
  }
  for (int k = 0; k < 2; k++) { /* from the process that owns the row, and from another one */
    Mat      M[] = {t.A, t.R};
    PetscInt rstart, rend, m;

    for (int l = 0; l < 2; l++) {
      PetscCall(MatGetOwnershipRange(M[l], &rstart, &rend));
      PetscCall(MatGetSize(M[l], &m, NULL));
      if (k == 0) PetscCall(MatSetValue(M[l], rstart / 3 * 3 + 3, rstart / 3 * 3 + 3, 2.5, INSERT_VALUES));
      else PetscCall(MatSetValue(M[l], m / 3 / 2 * 3, m / 3 / 2 * 3, 1.5, ADD_VALUES));
      PetscCall(MatAssemblyBegin(M[l], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(M[l], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatSetValue() of one entry"));
  }
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A second assembly in which nothing was set: the format may be refreshed, not built */
static PetscErrorCode AssembleAgain(void)
{
  Test t;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestSquare, 2, "new matrix"));
  PetscCall(MatAssemblyBegin(t.A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(t.A, MAT_FINAL_ASSEMBLY));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "assembly of nothing"));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls f with the sequential matrices that A consists of */
static PetscErrorCode ForEachBlock(Mat A, PetscErrorCode (*f)(Mat))
{
  Mat blocks[2];
  int n = 0;

  PetscFunctionBegin;
  PetscCall(TestGetBlocks(A, blocks, &n));
  for (int k = 0; k < n; k++) PetscCall((*f)(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockGetArray(Mat B)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(B, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = a[k] * (PetscScalar)0.5 + (PetscReal)(k % 5);
  PetscCall(MatSeqAIJRestoreArray(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockGetArrayWrite(Mat B)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArrayWrite(B, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = TestValue(33, k, 1);
  PetscCall(MatSeqAIJRestoreArrayWrite(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockGetArrayRead(Mat B)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(B, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Arrays(void)
{
  Test t;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestWide, 3, "new matrix"));
  PetscCall(ForEachBlock(t.A, BlockGetArray));
  PetscCall(ForEachBlock(t.R, BlockGetArray));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatSeqAIJGetArray()"));
  PetscCall(ForEachBlock(t.A, BlockGetArrayWrite));
  PetscCall(ForEachBlock(t.R, BlockGetArrayWrite));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatSeqAIJGetArrayWrite()"));
  PetscCall(ForEachBlock(t.A, BlockGetArrayRead));
  PetscCall(TestProducts(t.A, t.R, TEST_NOTHING, &t.last, "MatSeqAIJGetArrayRead()"));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one call does to both matrices */
static PetscErrorCode Scale(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatScale(A, -1.75));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Mat A)
{
  Vec l, r;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &r, &l));
  PetscCall(TestSetVec(l, 41));
  PetscCall(TestSetVec(r, 42));
  PetscCall(MatDiagonalScale(A, l, r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroEntries(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatZeroEntries(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroEntriesAndFill(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatZeroEntries(A));
  PetscCall(TestFill(A, 4, 404));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(USE_COMPLEX)
static PetscErrorCode Conjugate(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatScale(A, PETSC_i));
  PetscCall(MatConjugate(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode Simple(void)
{
  static const struct {
    const char *name;
    PetscErrorCode (*f)(Mat);
  } changes[] = {
    {"MatScale()",                     Scale             },
    {"MatDiagonalScale()",             DiagonalScale     },
    {"MatZeroEntries()",               ZeroEntries       },
    {"MatZeroEntries() then values",   ZeroEntriesAndFill},
#if PetscDefined(USE_COMPLEX)
    {"MatScale() then MatConjugate()", Conjugate         },
#endif
  };
  const TestShape shapes[] = {TestSquare, TestTall};
  Test            t;

  PetscFunctionBegin;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    PetscCall(Begin(&t, shapes[s], 4, "new matrix"));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes); k++) {
      PetscCall((*changes[k].f)(t.A));
      PetscCall((*changes[k].f)(t.R));
      PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, changes[k].name));
    }
    PetscCall(End(&t));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = alpha x + y where the pattern of y holds that of x */
static PetscErrorCode AXPY(void)
{
  Test t, u;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestSquare, 5, "new matrix"));
  PetscCall(Begin(&u, TestSquare, 5, "new matrix"));
  PetscCall(TestFill(u.A, 5, 55));
  PetscCall(TestFill(u.R, 5, 55));
  PetscCall(MatAXPY(t.A, 0.25, u.A, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(t.R, 0.25, u.R, SAME_NONZERO_PATTERN));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatAXPY() of the same pattern"));
  PetscCall(MatAXPY(t.A, -0.5, u.R, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(t.R, -0.5, u.R, SAME_NONZERO_PATTERN));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatAXPY() of a plain matrix of the same pattern"));
  PetscCall(TestProducts(u.A, u.R, TEST_REFRESH, &u.last, "the other matrix of MatAXPY()"));
  PetscCall(End(&u));

  PetscCall(PetscMemzero(&u, sizeof(u)));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 5, &u.A, &u.R));
  PetscCall(MatFilter(u.A, (PetscReal)0.5, PETSC_TRUE, PETSC_TRUE));
  PetscCall(MatFilter(u.R, (PetscReal)0.5, PETSC_TRUE, PETSC_TRUE));
  PetscCall(MatAXPY(t.A, 3.0, u.A, SUBSET_NONZERO_PATTERN));
  PetscCall(MatAXPY(t.R, 3.0, u.R, SUBSET_NONZERO_PATTERN));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatAXPY() of a subset of the pattern"));
  PetscCall(End(&u));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy(void)
{
  Test t, u;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestSquare, 6, "new matrix"));
  PetscCall(Begin(&u, TestSquare, 6, "new matrix"));
  PetscCall(MatScale(u.A, 3.0));
  PetscCall(MatScale(u.R, 3.0));
  PetscCall(MatCopy(u.A, t.A, SAME_NONZERO_PATTERN));
  PetscCall(MatCopy(u.R, t.R, SAME_NONZERO_PATTERN));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatCopy() of the same pattern"));
  PetscCall(MatScale(u.R, 3.0));
  PetscCall(MatCopy(u.R, t.A, SAME_NONZERO_PATTERN)); /* from a plain matrix */
  PetscCall(MatCopy(u.R, t.R, SAME_NONZERO_PATTERN));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatCopy() of a plain matrix"));
  PetscCall(End(&u));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a full diagonal MatShift() changes values only */
static PetscErrorCode Shift(void)
{
  Test     t;
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), TestSquare, &t.A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquare, &t.R));
  PetscCall(MatGetOwnershipRange(t.A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscCall(MatSetValue(t.A, i, i, (PetscReal)i, INSERT_VALUES));
    PetscCall(MatSetValue(t.R, i, i, (PetscReal)i, INSERT_VALUES));
  }
  PetscCall(TestFill(t.A, 7, 7));
  PetscCall(TestFill(t.R, 7, 7));
  PetscCall(TestProducts(t.A, t.R, TEST_BUILD, &t.last, "new matrix"));
  PetscCall(MatShift(t.A, 2.5));
  PetscCall(MatShift(t.R, 2.5));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatShift() of a full diagonal"));
  {
    Mat M[] = {t.A, t.R};
    Vec d;

    for (int k = 0; k < 2; k++) {
      PetscCall(MatCreateVecs(M[k], NULL, &d));
      PetscCall(TestSetVec(d, 8));
      PetscCall(MatDiagonalSet(M[k], d, ADD_VALUES));
      PetscCall(VecDestroy(&d));
    }
  }
  PetscCall(TestProducts(t.A, t.R, TEST_RENEWED, &t.last, "MatDiagonalSet()"));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatRetrieveValues() changes values without telling the object state */
static PetscErrorCode StoreRetrieve(void)
{
  Test t, u;

  PetscFunctionBegin;
  PetscCall(Begin(&t, TestSquare, 9, "new matrix"));
  PetscCall(PetscMemzero(&u, sizeof(u)));
  PetscCall(MatSetOption(t.A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatSetOption(t.R, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(t.A, 2.0));
    PetscCall(MatScale(t.R, 2.0));
    PetscCall(MatStoreValues(t.A));
    PetscCall(MatStoreValues(t.R));
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatScale() then MatStoreValues()"));
    PetscCall(MatScale(t.A, 7.0));
    PetscCall(MatScale(t.R, 7.0));
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatScale()"));
    PetscCall(MatRetrieveValues(t.A));
    PetscCall(MatRetrieveValues(t.R));
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatRetrieveValues()"));
  }
  /* the copy has a store of its own, or none, and must know its own functions */
  PetscCall(MatDuplicate(t.A, MAT_COPY_VALUES, &u.A));
  PetscCall(MatDuplicate(t.R, MAT_COPY_VALUES, &u.R));
  PetscCall(MatSetOption(u.A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatSetOption(u.R, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(u.A));
  PetscCall(MatStoreValues(u.R));
  PetscCall(MatScale(u.A, 3.0));
  PetscCall(MatScale(u.R, 3.0));
  PetscCall(TestProducts(u.A, u.R, TEST_BUILD, &u.last, "MatStoreValues() of a duplicate"));
  PetscCall(MatRetrieveValues(u.A));
  PetscCall(MatRetrieveValues(u.R));
  PetscCall(TestProducts(u.A, u.R, TEST_REFRESH, &u.last, "MatRetrieveValues() of a duplicate"));
  PetscCall(End(&u));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of whole rows from one array */
static PetscErrorCode UpdateWithArray(void)
{
  Test            t;
  PetscMPIInt     size;
  PetscInt        m, n, *i, *j, nz = 0, rstart;
  PetscScalar    *v;
  const TestShape shape = {150, 150, PETSC_FALSE};
  Mat            *M[]   = {&t.A, &t.R};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&t, sizeof(t)));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, M[k]));
    PetscCall(MatSetSizes(*M[k], PETSC_DECIDE, PETSC_DECIDE, shape.m, shape.n));
    PetscCall(MatSetType(*M[k], k ? MATAIJ : TestFormat("")));
  }
  n = shape.n;
  m = PETSC_DECIDE;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &n));
  PetscCallMPI(MPI_Scan(&m, &rstart, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  rstart -= m;
  PetscCall(PetscMalloc3(m + 1, &i, m * n, &j, m * n, &v));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt c = 0; c < n; c++) {
      if (!TestHasEntry(10, shape.m, n, rstart + r, c)) continue;
      j[nz]   = c;
      v[nz++] = TestValue(10, rstart + r, c);
    }
    i[r + 1] = nz;
  }
  for (int k = 0; k < 2; k++) PetscCall(MatMPIAIJSetPreallocationCSR(*M[k], i, j, v));
  PetscCall(TestProducts(t.A, t.R, TEST_BUILD, &t.last, "MatMPIAIJSetPreallocationCSR()"));
  for (PetscInt k = 0; k < nz; k++) v[k] = TestValue(11, k, rstart);
  for (int k = 0; k < 2; k++) PetscCall(MatUpdateMPIAIJWithArray(*M[k], v));
  PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatUpdateMPIAIJWithArray()"));
  PetscCall(PetscFree3(i, j, v));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the option, the format is there before the first product, and a product after an assembly finds it up to date */
static PetscErrorCode InAssembly(TestShape shape, PetscInt skip)
{
  Test                t;
  MatGallopStatistics now;
  PetscInt            parts = 0;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  PetscCall(PetscOptionsSetValue(NULL, TestOption("early_", "build_in_assembly"), NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &t.A));
  PetscCall(MatSetOptionsPrefix(t.A, "early_"));
  PetscCall(MatSetSizes(t.A, PETSC_DECIDE, PETSC_DECIDE, shape.m, shape.n));
  PetscCall(MatSetType(t.A, TestFormat("")));
  if (shape.preallocate) PetscCall(TestPreallocate(t.A));
  else PetscCall(MatSetUp(t.A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &t.R));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(TestFill(t.A, 12, 12 + k));
    PetscCall(TestFill(t.R, 12, 12 + k));
    PetscCall(TestParts(t.A, &parts));
    PetscCall(MatGallopGetStatistics(t.A, &now));
    PetscCheck(now.builds == parts && now.refreshes - t.last.refreshes == (k ? parts : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes in assembly %" PetscInt_FMT " of %" PetscInt_FMT " parts",
               now.builds, now.refreshes - t.last.refreshes, k + 1, parts);
    t.last = now;
    if (skip != k) PetscCall(TestProducts(t.A, t.R, TEST_NOTHING, &t.last, "format built in assembly"));
    PetscCall(MatScale(t.A, 2.0)); /* noticed with a product before it and without */
    PetscCall(MatScale(t.R, 2.0));
    PetscCall(TestProducts(t.A, t.R, TEST_REFRESH, &t.last, "MatScale() after a format was built in assembly"));
  }
  PetscCall(End(&t));
  PetscCall(PetscOptionsClearValue(NULL, TestOption("early_", "build_in_assembly")));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(BuildOnce());
  PetscCall(SetValues());
  PetscCall(AssembleAgain());
  PetscCall(Arrays());
  PetscCall(Simple());
  PetscCall(AXPY());
  PetscCall(Copy());
  PetscCall(Shift());
  PetscCall(StoreRetrieve());
  PetscCall(UpdateWithArray());
  for (PetscInt skip = 0; skip < 2; skip++) {
    PetscCall(InAssembly(TestSquare, skip));
    PetscCall(InAssembly(TestSquareHash, skip));
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
      suffix: csroverlap
      args: -format csroverlap -mat_csroverlap_build_in_assembly {{0 1}}
    test:
      suffix: fastload
      args: -format fastload -mat_fastload_build_in_assembly {{0 1}}
    test:
      suffix: hbp
      args: -format hbp -mat_hbp_build_in_assembly {{0 1}}

TEST*/
