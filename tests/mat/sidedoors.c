/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Functions of PETSc that change values, patterns and functions of a Gallop matrix, or make one, without calling those that tell.\n\n";

#include "../galloptest.h"

/* S and T are alike */
static PetscErrorCode Answers(Mat S, Mat T, const char what[])
{
  Vec x, y, z, xt, zt;

  PetscFunctionBegin;
  PetscCall(TestIsOurs(S, PETSC_TRUE, what));
  PetscCall(MatCreateVecs(S, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(z, &xt));
  PetscCall(VecDuplicate(x, &zt));
  PetscCall(TestAnswers(S, T, x, y, z, xt, zt, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&xt));
  PetscCall(VecDestroy(&zt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where each process asks for all of a matrix, MPIAIJ writes the values after the submatrix has been assembled */
static PetscErrorCode WholeSubMatrices(void)
{
  Mat      A, R, *S, *T;
  IS       rows, columns;
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m, 0, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &columns));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &columns, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatCreateSubMatrices(R, 1, &rows, &columns, MAT_INITIAL_MATRIX, &T));
  PetscCall(Answers(S[0], T[0], "all rows and columns"));
  for (int k = 0; k < 2; k++) {
    if (k) PetscCall(MatScale(S[0], 3.0)); /* where its products are: these values are replaced */
    PetscCall(MatScale(A, 10.0));
    PetscCall(MatScale(R, 10.0));
    PetscCall(MatCreateSubMatrices(A, 1, &rows, &columns, MAT_REUSE_MATRIX, &S));
    PetscCall(MatCreateSubMatrices(R, 1, &rows, &columns, MAT_REUSE_MATRIX, &T));
    PetscCall(Answers(S[0], T[0], "all rows and columns again"));
  }
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(MatDestroySubMatrices(1, &T));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix that is merged has been assembled from a hash table, and so once more than the one that it is merged into */
static PetscErrorCode MergeHash(void)
{
  Mat A, C, R;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), TestSquare, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), TestSquareHash, &C));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquare, &R));
  PetscCall(TestFill(A, 0, 0));
  PetscCall(TestFill(C, 0, 1));
  PetscCall(TestFill(R, 0, 1));
  PetscCall(MatHeaderMerge(A, &C));
  PetscCall(Answers(A, R, "a merged matrix"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A 2 by 2 block in each second row, in the order that the options of the first matrix say */
static PetscErrorCode SetBlocks(Mat A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = 0; r + 1 < rend - rstart; r += 2) {
    const PetscInt    rows[] = {r, r + 1};
    const PetscScalar a[]    = {TestValue(0, r, 0), TestValue(0, r, 1), 0, TestValue(0, r, 2)};

    PetscCall(MatSetValuesLocal(A, 2, rows, 2, rows, a, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a matrix whose values go to a hash table; with a GPU the options of AIJ stay behind */
static PetscErrorCode DuplicateHash(void)
{
  Mat                    A[2], B[2];
  ISLocalToGlobalMapping mapping;
  PetscInt               rstart, rend, *index;
  MatInfo                info[2];
  PetscBool              device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, k ? MATAIJ : TestFormat(""), TestSquareHash, &A[k]));
    PetscCall(MatGetOwnershipRange(A[k], &rstart, &rend));
    PetscCall(PetscMalloc1(rend - rstart, &index));
    for (PetscInt r = rstart; r < rend; r++) index[r - rstart] = r;
    PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 1, rend - rstart, index, PETSC_OWN_POINTER, &mapping));
    PetscCall(MatSetLocalToGlobalMapping(A[k], mapping, mapping));
    PetscCall(ISLocalToGlobalMappingDestroy(&mapping));
    if (!device) {
      PetscCall(MatSetOption(A[k], MAT_ROW_ORIENTED, PETSC_FALSE));
      PetscCall(MatSetOption(A[k], MAT_IGNORE_ZERO_ENTRIES, PETSC_TRUE));
    }
    PetscCall(MatDuplicate(A[k], MAT_DO_NOT_COPY_VALUES, &B[k]));
    PetscCall(SetBlocks(B[k]));
    PetscCall(MatGetInfo(B[k], MAT_GLOBAL_SUM, &info[k]));
  }
  PetscCall(Answers(B[0], B[1], "a duplicate"));
  TestCheck(info[0].nz_used == info[1].nz_used, "%g nonzeros, should be %g", "a duplicate", info[0].nz_used, info[1].nz_used);
  for (int k = 0; k < 2; k++) PetscCall(TestDestroy(&A[k], &B[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mine(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  (void)A, (void)x;
  PetscCall(VecSet(z, 42.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A function that the program has set stays when the matrix carries its parent's name for a while */
static PetscErrorCode Operation(void)
{
  Mat       A, R, C = NULL;
  Vec       x, z;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(MatSetOperation(A, MATOP_MULT, (PetscErrorCodeFn *)Mine));
  for (int k = 0; k < 2; k++) {
    if (k) PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    else PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
    PetscCall(MatDestroy(&C));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(A, x, z));
    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    TestCheck(norm == 42, "the product is not the program's", k ? "MatPtAP()" : "MatMatMult()");
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of a matrix with a prefix, which PETSc makes of our type: they have no room for a format either */
static PetscErrorCode Blocks(const char whose[])
{
  Mat                 A;
  Vec                 x, z;
  PetscInt            rstart, rend, m = 40, *i, *j;
  PetscScalar        *a;
  char                option[64];
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(option, sizeof(option), "-limited_mat_%s_memory", whose));
  PetscCall(PetscOptionsSetValue(NULL, option, "1"));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetOptionsPrefix(A, "limited_"));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, m, m));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  m = rend - rstart;
  PetscCall(PetscMalloc3(2 * m, &i, 2 * m, &j, 2 * m, &a));
  for (PetscInt k = 0; k < 2 * m; k++) {
    i[k] = rstart + k / 2;
    j[k] = (i[k] + k % 2 * 23) % 40;
    a[k] = TestValue(0, i[k], j[k]);
  }
  PetscCall(MatSetPreallocationCOO(A, 2 * m, i, j));
  PetscCall(MatSetValuesCOO(A, a, INSERT_VALUES));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 3));
  PetscCall(MatMult(A, x, z));
  PetscCall(MatGallopGetStatistics(A, &s));
  TestCheck(!s.products_host && !s.products_device && s.fallbacks > 0, "products by a format that has no room", option);
  PetscCall(PetscFree3(i, j, a));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A norm that PETSc does not have leaves the matrix as it is */
static PetscErrorCode Norm(void)
{
  Mat            A, R;
  PetscReal      norm;
  VecType        type;
  char           before[64];
  PetscErrorCode ierr;
  PetscBool      same;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrncpy(before, type, sizeof(before)));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatNorm(A, NORM_2, &norm);
  PetscCall(PetscPopErrorHandler());
  TestCheck(ierr, "no error", "MatNorm()");
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrcmp(type, before, &same));
  TestCheck(same, "vectors are %s, were %s", "MatNorm()", type, before);
  PetscCall(Answers(A, R, "MatNorm()"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refuse(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  (void)A, (void)newtype, (void)reuse, (void)newmat;
  return PETSC_ERR_SUP;
}

/* A conversion of the program's, from the parent on the host and on the GPU */
static PetscErrorCode ComposeConversion(Mat A, PetscErrorCode (*convert)(Mat, MatType, MatReuse, Mat *))
{
  static const char *const names[] = {"MatConvert_seqaij_seqsbaij_C", "MatConvert_seqaijcusparse_seqsbaij_C"};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(PetscObjectComposeFunction((PetscObject)A, names[k], convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nor does a conversion in place that fails take the type */
static PetscErrorCode Conversion(void)
{
  Mat            A, R;
  PetscErrorCode ierr;
  PetscMPIInt    size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(ComposeConversion(A, Refuse));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatConvert(A, MATSBAIJ, MAT_INPLACE_MATRIX, &A);
  PetscCall(PetscPopErrorHandler());
  PetscCall(ComposeConversion(A, NULL));
  TestCheck(ierr == PETSC_ERR_SUP, "error %d", "MatConvert()", (int)ierr);
  PetscCall(Answers(A, R, "MatConvert()"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries are 0 where the newest values are, which may be the GPU alone */
static PetscErrorCode EliminateZeros(void)
{
  Mat     A, R;
  MatInfo info;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(Answers(A, R, "before MatEliminateZeros()"));
  PetscCall(MatScale(A, 0.0));
  PetscCall(MatScale(R, 0.0));
  PetscCall(MatEliminateZeros(A, PETSC_FALSE));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  TestCheck(info.nz_used == 0, "%g nonzeros", "MatEliminateZeros()", info.nz_used);
  PetscCall(Answers(A, R, "MatEliminateZeros()"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent may have a copy on the GPU of a pattern that is no more, with a product of the new one in between or without */
static PetscErrorCode ZeroOldPattern(PetscBool product)
{
  Mat      A, R;
  PetscInt m, rstart, rend;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(Answers(A, R, "before new entries"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (int step = 0; step < 2; step++) {
    Mat both[] = {A, R};

    for (int k = 0; k < 2; k++) {
      if (step) PetscCall(MatZeroEntries(both[k]));
      PetscCall(MatSetOption(both[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      for (PetscInt r = rstart; r < rend; r++) {
        for (PetscInt c = 0; c < 5; c++) PetscCall(MatSetValue(both[k], r, (r + 29 * c) % m, TestValue(7, r, c), ADD_VALUES));
      }
      PetscCall(MatAssemblyBegin(both[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(both[k], MAT_FINAL_ASSEMBLY));
    }
    if (step) PetscCall(Answers(A, R, "new values after MatZeroEntries()"));
    else if (product) { /* by the format, from the host */
      Vec x, z;

      PetscCall(MatCreateVecs(A, &x, &z));
      PetscCall(TestSetVec(x, 3));
      PetscCall(MatMult(A, x, z));
      PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "new entries"));
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&z));
    }
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A transpose that is used again, after its values have changed where they are newest */
static PetscErrorCode Transpose(void)
{
  Mat A, R, B, S;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTranspose(R, MAT_INITIAL_MATRIX, &S));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatScale(A, -2.0));
    PetscCall(MatScale(R, -2.0));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
    PetscCall(MatTranspose(R, MAT_REUSE_MATRIX, &S));
    if (k) PetscCall(Answers(B, S, "MatTranspose()"));
    PetscCall(MatScale(B, 3.0));
    PetscCall(MatScale(S, 3.0));
    PetscCall(Answers(B, S, "MatTranspose() and MatScale()"));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestDestroy(&B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc reads on the host, after values have changed where they are newest */
static PetscErrorCode Reductions(void)
{
  Mat        A, R;
  PetscInt   n;
  PetscReal *norms[2];

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(Answers(A, R, "before MatGetColumnNorms()"));
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(R, -2.0));
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(PetscMalloc2(n, &norms[0], n, &norms[1]));
  PetscCall(MatGetColumnNorms(A, NORM_1, norms[0]));
  PetscCall(MatGetColumnNorms(R, NORM_1, norms[1]));
  for (PetscInt j = 0; j < n; j++)
    TestCheck(PetscAbsReal(norms[0][j] - norms[1][j]) <= 100 * PETSC_MACHINE_EPSILON * norms[1][j], "column %" PetscInt_FMT " has %g, not %g", "MatGetColumnNorms()", j, (double)norms[0][j], (double)norms[1][j]);
  PetscCall(PetscFree2(norms[0], norms[1]));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not any more, when rows have been scaled alone */
static PetscErrorCode Hermitian(void)
{
  Mat         A;
  Vec         left;
  PetscBool   is;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc has it of one process only */
  PetscCall(TestCreateLaplace(TestFormat(""), 9, 0, 0, 0, &A));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatIsHermitian(A, PETSC_SMALL, &is));
    TestCheck(is == (k == 0), "%d after %d times MatDiagonalScale()", "MatIsHermitian()", (int)is, k);
    PetscCall(MatCreateVecs(A, NULL, &left));
    PetscCall(TestSetVec(left, 1));
    PetscCall(MatDiagonalScale(A, left, NULL));
    PetscCall(VecDestroy(&left));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(WholeSubMatrices());
  PetscCall(MergeHash());
  PetscCall(DuplicateHash());
  PetscCall(Operation());
  PetscCall(Blocks(TestFormat("")));
  PetscCall(Blocks("gallop")); /* all of its structures */
  PetscCall(Norm());
  PetscCall(Conversion());
  PetscCall(EliminateZeros());
  PetscCall(ZeroOldPattern(PETSC_TRUE));
  PetscCall(ZeroOldPattern(PETSC_FALSE));
  PetscCall(Transpose());
  PetscCall(Reductions());
  PetscCall(Hermitian());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    filter: sed "/^Gallop: no room/d"

    test:
      suffix: 1
      args: -format {{evchyb csroverlap fastload hbp gallop}}
    test:
      suffix: assembly
      args: -format {{evchyb csroverlap hbp}} -mat_gallop_build assembly
    test:
      suffix: transpose
      args: -format csroverlap -mat_gallop_explicit_transpose never

TEST*/
