/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The ways to and from the Gallop types: names, options, DM, conversions, files, submatrices, transposes.\n\n";

#include "../galloptest.h"
#include <petscdmda.h>

/* ---- names ---- */

static PetscErrorCode Names(void)
{
  const char *const names[] = {TestFormat(""), TestFormat("aij"), TestFormat("mpiaij"), TestFormat("seqaij")};
  PetscMPIInt       size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names); k++) {
    Mat                 A, R;
    MatType             type;
    MatGallopStatistics last = {0};
    PetscBool           same;
    const char         *full = k == 2 || size > 1 ? TestFormat("mpiaij") : TestFormat("seqaij");

    if (k == 3 && size > 1) continue;
    PetscCall(TestCreate(PETSC_COMM_WORLD, names[k], TestSquare, 0, &A, &R)); /* mpi types work on one process too */
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscStrcmp(type, full, &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatSetType() to %s gave %s", names[k], type);
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, names[k]));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscMemzero(&last, sizeof(last)));

    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, TestSquare.m, TestSquare.n));
    PetscCall(MatSetOptionsPrefix(A, "named_"));
    PetscCall(PetscOptionsSetValue(NULL, "-named_mat_type", names[k]));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    PetscCall(TestFill(A, 0, 0));
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscStrcmp(type, full, &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "-mat_type %s gave %s", names[k], type);
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, names[k]));
    PetscCall(PetscOptionsClearValue(NULL, "-named_mat_type"));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From one type to another by MatSetType(), before and after the matrix has entries */
static PetscErrorCode SetTypeTwice(void)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquare, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquare, &R));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetType(A, TestFormat("aij")));
  PetscCall(MatSetUp(A));
  PetscCall(TestFill(A, 1, 1));
  PetscCall(TestFill(R, 1, 1));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatSetType() of an unassembled matrix"));
  PetscCall(MatDestroy(&A));

  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &A));
  PetscCall(MatSetType(A, TestFormat("aij"))); /* keeps the entries, since the name begins with the old one */
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatSetType() of an assembled matrix"));
  PetscCall(MatSetType(A, TestFormat("aij")));
  PetscCall(TestProducts(A, R, TEST_ANY, &last, "MatSetType() of its own type"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Run with -mat_seqaij_type seqaijevchyb, or another format's: every sequential AIJ matrix is ours, the blocks of an MPI matrix too */
static PetscErrorCode SeqAIJType(void)
{
  Mat                 A, R, C, D, blocks[2];
  Vec                 x, y;
  PetscReal           norms[2];
  PetscBool           mpi, ours;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, TestSquare, 0, &A, &R));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatGallopIsFormat(blocks[k], &ours));
      PetscCheck(ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "block %d is not ours", k);
    }
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(TestSetVec(x, 1));
    PetscCall(MatMult(A, x, y));
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, y, "MPI matrix with blocks of ours"));
    PetscCall(MatGallopGetStatistics(blocks[0], &last));
    PetscCheck(last.products_host + last.products_device == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products", last.products_host + last.products_device);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  } else PetscCall(TestProducts(A, R, TEST_BUILD, &last, "-mat_seqaij_type"));
  PetscCall(TestDestroy(&A, &R));

  /* MatSetType() with another type of ours has the last word */
  PetscCall(PetscStrcmp(TestFormat(""), MATEVCHYB, &ours));
  PetscCall(TestCreate(PETSC_COMM_WORLD, ours ? MATHBP : MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestSetVec(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, y, "another type than -mat_seqaij_type"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norms[0]));
  PetscCall(MatNorm(D, NORM_FROBENIUS, &norms[1]));
  PetscCheck(PetscAbsReal(norms[0] - norms[1]) <= 100 * PETSC_MACHINE_EPSILON * norms[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "a product of matrices of another type than -mat_seqaij_type has the norm %g, not %g", (double)norms[0], (double)norms[1]);
  PetscCall(TestDestroy(&C, &D));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DMMatrix(PetscBool byoption)
{
  DM                  da;
  Mat                 A, R;
  MatGallopStatistics last = {0};
  DMDALocalInfo       info;

  PetscFunctionBegin;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_PERIODIC, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 6, 7, 8, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 2, 1, NULL, NULL, NULL, &da));
  if (byoption) {
    PetscCall(DMSetOptionsPrefix(da, "grid_"));
    PetscCall(PetscOptionsSetValue(NULL, "-grid_dm_mat_type", TestFormat("")));
  }
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  if (!byoption) PetscCall(DMSetMatType(da, TestFormat("")));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(DMSetMatType(da, MATAIJ));
  PetscCall(DMCreateMatrix(da, &R));
  PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), byoption ? "-dm_mat_type" : "DMSetMatType()"));
  PetscCall(DMDAGetLocalInfo(da, &info));
  for (int l = 0; l < 2; l++) {
    Mat M = l ? R : A;

    for (PetscInt k = info.zs; k < info.zs + info.zm; k++) {
      for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
        for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
          for (PetscInt c = 0; c < 2; c++) {
            MatStencil  row = {k, j, i, c}, cols[7] = {row, row, row, row, row, row, row};
            PetscScalar v[7];
            PetscInt    n = 1;

            if (k > 0) cols[n++].k--;
            if (k < 7) cols[n++].k++;
            if (i > 0) cols[n++].i--;
            if (i < 5) cols[n++].i++;
            cols[n++].j--;
            cols[n++].j++;
            for (PetscInt e = 0; e < n; e++) v[e] = TestValue(100, i + 10 * j + 100 * k, e + 10 * c);
            PetscCall(MatSetValuesStencil(M, 1, &row, n, cols, v, INSERT_VALUES));
          }
        }
      }
    }
    PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "matrix of a DMDA"));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(DMDestroy(&da));
  if (byoption) PetscCall(PetscOptionsClearValue(NULL, "-grid_dm_mat_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of a DMDA is converted with what PETSc's own takes along, AIJ or on a GPU AIJCUSPARSE, which is neither the DM nor its viewer, in natural order, where the matrix is a copy */
static PetscErrorCode DMMatrixTo(MatType to, MatReuse reuse)
{
  DM                da;
  Mat               M[2], C[2];
  PetscErrorCodeFn *view[2];
  PetscObject       dm[2];
  PetscViewer       viewer;
  PetscBool         device = PETSC_FALSE;
  MatType           own;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  own = device ? MATAIJCUSPARSE : MATAIJ;
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 6, 7, PETSC_DECIDE, PETSC_DECIDE, 2, 1, NULL, NULL, &da));
  PetscCall(DMSetUp(da));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "/dev/null", &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_NATIVE));
  for (int k = 0; k < 2; k++) {
    PetscCall(DMSetMatType(da, k == 0 ? own : TestFormat("")));
    PetscCall(DMCreateMatrix(da, &M[k]));
    PetscCall(MatShift(M[k], 1.0));
    C[k] = reuse == MAT_INPLACE_MATRIX ? M[k] : NULL;
    PetscCall(MatConvert(M[k], to, reuse, &C[k]));
    PetscCall(MatGetOperation(C[k], MATOP_VIEW, &view[k]));
    PetscCall(PetscObjectQuery((PetscObject)C[k], "__PETSc_dm", &dm[k]));
    PetscCall(MatView(C[k], viewer));
    PetscCall(MatDestroy(&C[k]));
    if (reuse != MAT_INPLACE_MATRIX) PetscCall(MatDestroy(&M[k]));
  }
  PetscCheck(view[0] == view[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "a matrix of a DMDA converted to %s has another viewer than when it was %s", to, own);
  PetscCheck(dm[0] == dm[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "a matrix of a DMDA converted to %s has %s DM, unlike when it was %s", to, dm[1] ? "a" : "no", own);
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- conversions ---- */

/* Any matrix against the plain one */
static PetscErrorCode CheckMult(Mat A, Mat R, const char what[])
{
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestSetVec(x, 21));
  PetscCall(MatMult(A, x, y));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, y, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromAIJ(TestShape shape, MatType from, MatType to)
{
  Mat                 A, B = NULL, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, shape, 2, &A, &R));
  if (from) PetscCall(MatConvert(A, from, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatConvert(A, to, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), "MatConvert() initial"));
  PetscCall(TestIsOurs(A, PETSC_FALSE, "source of MatConvert()"));
  PetscCall(CheckMult(A, R, "source of MatConvert()"));
  PetscCall(TestProducts(B, R, TEST_BUILD, &last, "MatConvert() initial"));
  PetscCall(MatScale(A, 3.0));
  PetscCall(TestProducts(B, R, TEST_NOTHING, &last, "MatConvert() whose source has changed"));
  PetscCall(MatScale(R, 3.0));
  PetscCall(MatConvert(A, to, MAT_REUSE_MATRIX, &B));
  PetscCall(TestProducts(B, R, TEST_REFRESH, &last, "MatConvert() reuse"));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(MatConvert(A, to, MAT_INPLACE_MATRIX, &A));
  PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), "MatConvert() in place"));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatConvert() in place"));
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatScale(R, 3.0));
  PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatScale() after MatConvert() in place"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode To(TestShape shape, MatType to, PetscBool symmetric, PetscBool reuse)
{
  Mat                 A, B = NULL, R;
  MatGallopStatistics last = {0};
  MatType             type;

  PetscFunctionBegin;
  for (int built = 0; built < 2; built++) {
    PetscCall(PetscMemzero(&last, sizeof(last)));
    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 3, &A, &R));
    if (symmetric) {
      Mat M[2] = {A, R}, T;

      for (int k = 0; k < 2; k++) {
        PetscCall(MatTranspose(M[k], MAT_INITIAL_MATRIX, &T));
        PetscCall(MatAXPY(M[k], 1.0, T, DIFFERENT_NONZERO_PATTERN));
        PetscCall(MatDestroy(&T));
        PetscCall(MatSetOption(M[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
        PetscCall(MatShift(M[k], 1.0)); /* symmetric block formats want a whole diagonal */
        PetscCall(MatSetOption(M[k], MAT_SYMMETRIC, PETSC_TRUE));
      }
    }
    if (built) {
      PetscCall(MatGallopGetStatistics(A, &last));
      PetscCall(TestProducts(A, R, TEST_ANY, &last, "source of MatConvert()"));
    }
    PetscCall(MatConvert(A, to, MAT_INITIAL_MATRIX, &B));
    PetscCall(TestIsOurs(B, PETSC_FALSE, to));
    PetscCall(CheckMult(B, R, to));
    PetscCall(TestProducts(A, R, built ? TEST_NOTHING : TEST_ANY, &last, "source of MatConvert()"));
    PetscCall(MatScale(A, 3.0));
    PetscCall(CheckMult(B, R, to));
    PetscCall(MatScale(R, 3.0));
    if (reuse) { /* PETSc's AIJPERM and AIJCRL cannot */
      PetscCall(MatConvert(A, to, MAT_REUSE_MATRIX, &B));
      PetscCall(CheckMult(B, R, to));
    }
    PetscCall(MatDestroy(&B));
    PetscCall(MatConvert(A, to, MAT_INPLACE_MATRIX, &A));
    PetscCall(TestIsOurs(A, PETSC_FALSE, to));
    PetscCall(MatGetType(A, &type));
    PetscCall(CheckMult(A, R, type));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By way of MatConvert()'s general route, which knows no more of a matrix than its rows */
static PetscErrorCode FromOther(MatType from)
{
  Mat                 A, R, B;
  MatGallopStatistics last = {0};
  PetscMPIInt         size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, TestSquare, 4, &A, &R));
  PetscCall(MatConvert(A, from, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatConvert(A, TestFormat(""), MAT_INITIAL_MATRIX, &B));
  PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), from));
  PetscCall(TestProducts(B, R, TEST_BUILD, &last, from));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(MatConvert(A, TestFormat(""), MAT_INPLACE_MATRIX, &A));
  PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), from));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, from));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To what it is already, by each of its names */
static PetscErrorCode ToItself(void)
{
  const char *const   names[] = {TestFormat(""), TestFormat("aij"), MATSAME};
  Mat                 A, R, B;
  MatGallopStatistics last = {0}, blast;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 5, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names); k++) {
    PetscCall(PetscMemzero(&blast, sizeof(blast)));
    PetscCall(MatConvert(A, names[k], MAT_INITIAL_MATRIX, &B));
    PetscCall(TestProducts(B, R, TEST_BUILD, &blast, "MatConvert() to its own type"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "MatScale()"));
    if (k < 2) { /* PETSc has no reuse for the name "same" */
      PetscCall(MatConvert(A, names[k], MAT_REUSE_MATRIX, &B));
      PetscCall(TestProducts(B, R, TEST_REFRESH, &blast, "MatConvert() to its own type, reuse"));
    }
    PetscCall(MatDestroy(&B));
    PetscCall(MatConvert(A, names[k], MAT_INPLACE_MATRIX, &A));
    PetscCall(MatGallopGetStatistics(A, &blast));
    PetscCheck(blast.builds == last.builds, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatConvert() to %s in place made the matrix anew", names[k]);
    PetscCall(TestProducts(A, R, TEST_ANY, &last, "MatConvert() to its own type, in place"));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There and back, often: nothing is lost or left over */
static PetscErrorCode Ring(void)
{
  Mat                 A, R;
  MatGallopStatistics last;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, TestSquareHash, 6, &A, &R));
  for (PetscInt k = 0; k < 5; k++) {
    PetscCall(PetscMemzero(&last, sizeof(last)));
    PetscCall(MatConvert(A, TestFormat(""), MAT_INPLACE_MATRIX, &A));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, "there"));
    PetscCall(TestFill(A, 6, 7 + k));
    PetscCall(TestFill(R, 6, 7 + k));
    if (k % 2) PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "there"));
    PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
    PetscCall(TestIsOurs(A, PETSC_FALSE, "back"));
    PetscCall(CheckMult(A, R, "back"));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- files ---- */

static PetscErrorCode File(TestShape shape)
{
  Mat                 A, R, B;
  PetscViewer         viewer;
  MatGallopStatistics last = {0};
  const char         *name = "convert_matrix.bin";
  char                path[PETSC_MAX_PATH_LEN], dir[PETSC_MAX_PATH_LEN];

  PetscFunctionBegin;
  PetscCall(PetscGetTmp(PETSC_COMM_WORLD, dir, sizeof(dir)));
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/gallop_XXXXXX", dir));
  PetscCall(PetscMkdtemp(path));
  PetscCallMPI(MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscCall(PetscStrlcat(path, "/", sizeof(path)));
  PetscCall(PetscStrlcat(path, name, sizeof(path)));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 8, &A, &R));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(A, viewer));
  PetscCall(MatView(R, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &viewer));
  for (int k = 0; k < 2; k++) { /* what we wrote, and what a plain matrix wrote */
    PetscCall(PetscMemzero(&last, sizeof(last)));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
    PetscCall(MatSetType(B, TestFormat("")));
    PetscCall(MatLoad(B, viewer));
    PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), "MatLoad()"));
    PetscCall(TestProducts(B, R, TEST_BUILD, &last, "MatLoad()"));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &viewer));
  PetscCall(MatScale(A, 5.0));
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(MatLoad(A, viewer)); /* into a matrix that has entries */
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatLoad() into an assembled matrix"));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(TestDestroy(&A, &R));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  {
    PetscMPIInt rank;

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    if (!rank) {
      char *slash;

      PetscCall(PetscStrrchr(path, '/', &slash));
      slash[-1] = 0;
      PetscCall(PetscRMTree(path));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- parts and whole ---- */

static PetscErrorCode SubMatrix(void)
{
  Mat                 A, R, B, S;
  IS                  rows, cols;
  PetscInt            rstart, rend, cstart, cend;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestWide, 9, &A, &R));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (rend - rstart + 1) / 2, rstart, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (cend - cstart + 2) / 3, cstart, 3, &cols));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatCreateSubMatrix(R, rows, cols, MAT_INITIAL_MATRIX, &S));
  PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), "MatCreateSubMatrix()"));
  PetscCall(TestProducts(B, S, TEST_BUILD, &last, "MatCreateSubMatrix()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &B));
  PetscCall(MatCreateSubMatrix(R, rows, cols, MAT_REUSE_MATRIX, &S));
  PetscCall(TestProducts(B, S, TEST_REFRESH, &last, "MatCreateSubMatrix() reuse"));
  PetscCall(TestDestroy(&B, &S));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));

  /* all rows and columns */
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, rend - rstart, rstart, 1, &rows));
  PetscCall(MatCreateSubMatrix(A, rows, NULL, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestProducts(B, R, TEST_BUILD, &last, "MatCreateSubMatrix() of everything"));
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&rows));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrices(void)
{
  Mat                 A, R, *B, *S, D, E;
  IS                  rows[2], cols[2];
  MatGallopStatistics last = {0};
  PetscBool           ours;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 10, &A, &R));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 40, 20 + 30 * k, 2, &rows[k]));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 50, 10 + 20 * k, 1, &cols[k]));
  }
  PetscCall(MatCreateSubMatrices(A, 2, rows, cols, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatCreateSubMatrices(R, 2, rows, cols, MAT_INITIAL_MATRIX, &S));
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatGallopIsFormat(B[k], &ours));
      PetscCall(CheckMult(B[k], S[k], "MatCreateSubMatrices()"));
      if (!ours) PetscCall(MatConvert(B[k], TestFormat(""), MAT_INPLACE_MATRIX, &B[k])); /* PETSc gives plain ones for some types */
      PetscCall(MatGallopGetStatistics(B[k], &last));
      PetscCall(TestProducts(B[k], S[k], TEST_ANY, &last, "MatCreateSubMatrices()"));
    }
    if (round == 0) {
      PetscCall(MatScale(A, 2.0));
      PetscCall(MatScale(R, 2.0));
      PetscCall(MatCreateSubMatrices(A, 2, rows, cols, MAT_REUSE_MATRIX, &B));
      PetscCall(MatCreateSubMatrices(R, 2, rows, cols, MAT_REUSE_MATRIX, &S));
    }
  }
  PetscCall(MatDestroySubMatrices(2, &B));
  PetscCall(MatDestroySubMatrices(2, &S));
  for (int k = 0; k < 2; k++) {
    PetscCall(ISDestroy(&rows[k]));
    PetscCall(ISDestroy(&cols[k]));
  }

  PetscCall(MatGetDiagonalBlock(A, &D));
  PetscCall(MatGetDiagonalBlock(R, &E));
  PetscCall(TestIsOurs(D, PETSC_TRUE, "MatGetDiagonalBlock()"));
  PetscCall(MatGallopGetStatistics(D, &last));
  PetscCall(TestProducts(D, E, TEST_BUILD, &last, "MatGetDiagonalBlock()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProducts(D, E, TEST_REFRESH, &last, "MatGetDiagonalBlock() after a change"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows are read on the host: AIJCUSPARSE's own merged matrices end a program in MatMult() */
static PetscErrorCode SameRows(Mat B, Mat S, const char what[])
{
  PetscInt m[2];

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(B, &m[0], NULL));
  PetscCall(MatGetLocalSize(S, &m[1], NULL));
  PetscCheck(m[0] == m[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " rows, not %" PetscInt_FMT, what, m[0], m[1]);
  for (PetscInt i = 0; i < m[0]; i++) {
    const PetscInt    *cols[2];
    const PetscScalar *vals[2];
    PetscInt           n[2];
    PetscBool          same = PETSC_FALSE;

    PetscCall(MatGetRow(B, i, &n[0], &cols[0], &vals[0]));
    PetscCall(MatGetRow(S, i, &n[1], &cols[1], &vals[1]));
    if (n[0] == n[1]) PetscCall(PetscArraycmp(cols[0], cols[1], n[0], &same));
    if (same) PetscCall(PetscArraycmp(vals[0], vals[1], n[0], &same));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: another row %" PetscInt_FMT, what, i);
    PetscCall(MatRestoreRow(B, i, &n[0], &cols[0], &vals[0]));
    PetscCall(MatRestoreRow(S, i, &n[1], &cols[1], &vals[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both blocks of an MPI matrix beside each other, where they are: a debug PETSc has AIJCUSPARSE's function check their names */
static PetscErrorCode LocalMerge(void)
{
  Mat         A, R, B = NULL, S = NULL;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 15, &A, &R));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatMPIAIJGetLocalMatMerge(A, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, NULL, &B));
    PetscCall(MatMPIAIJGetLocalMatMerge(R, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, NULL, &S));
    PetscCall(SameRows(B, S, k ? "MatMPIAIJGetLocalMatMerge() again" : "MatMPIAIJGetLocalMatMerge()"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal block of some processes together */
static PetscErrorCode MultiProcBlock(void)
{
  Mat                 A, R, B, S;
  MPI_Comm            comm;
  PetscMPIInt         rank, size;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, size > 2 ? rank / 2 : rank, 0, &comm));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 14, &A, &R));
  PetscCall(MatGetMultiProcBlock(A, comm, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetMultiProcBlock(R, comm, MAT_INITIAL_MATRIX, &S));
  PetscCall(TestIsOurs(B, PETSC_TRUE, "MatGetMultiProcBlock()"));
  PetscCall(TestProducts(B, S, TEST_BUILD, &last, "MatGetMultiProcBlock()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatGetMultiProcBlock(A, comm, MAT_REUSE_MATRIX, &B));
  PetscCall(MatGetMultiProcBlock(R, comm, MAT_REUSE_MATRIX, &S));
  PetscCall(TestProducts(B, S, TEST_ANY, &last, "MatGetMultiProcBlock() reuse"));
  PetscCall(TestDestroy(&B, &S));
  PetscCall(TestDestroy(&A, &R));
  PetscCallMPI(MPI_Comm_free(&comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposes(TestShape shape)
{
  Mat                 A, R, B, S, V;
  MatGallopStatistics last = {0}, tlast;
  Vec                 x, y;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 11, &A, &R));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTranspose(R, MAT_INITIAL_MATRIX, &S));
  PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), "MatTranspose()"));
  PetscCall(TestProducts(B, S, TEST_BUILD, &last, "MatTranspose()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
  PetscCall(MatTranspose(R, MAT_REUSE_MATRIX, &S));
  PetscCall(TestProducts(B, S, TEST_REFRESH, &last, "MatTranspose() reuse"));
  PetscCall(TestDestroy(&B, &S));

  PetscCall(MatCreateTranspose(A, &V)); /* a view: its product is our transposed one */
  PetscCall(MatCreateVecs(V, &x, &y));
  PetscCall(TestSetVec(x, 12));
  PetscCall(MatGallopGetStatistics(A, &tlast));
  PetscCall(MatMult(V, x, y));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, NULL, y, "MatCreateTranspose()"));
  PetscCall(TestTransposeCounts(A, &tlast, "MatCreateTranspose()"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&V));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Questions that the parent answers */
static PetscErrorCode SpotChecks(void)
{
  Mat                 A, R, P, Q;
  Vec                 d, e;
  PetscReal           na, nr;
  PetscInt            rstart, rend, n[2];
  PetscBool           flg;
  IS                  perm;
  NormType            norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};
  MatGallopStatistics last    = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 13, &A, &R));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &na));
    PetscCall(MatNorm(R, norms[k], &nr));
    PetscCheck(PetscAbsReal(na - nr) <= 100 * PETSC_MACHINE_EPSILON * nr, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "norm %d: %g, should be %g", k, (double)na, (double)nr);
  }
  PetscCall(MatEqual(A, R, &flg));
  PetscCheck(flg, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatEqual() says no");
  PetscCall(MatMultEqual(A, R, 3, &flg));
  PetscCheck(flg, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatMultEqual() says no");
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    const PetscInt    *j;
    const PetscScalar *v;
    PetscInt           count = 0;

    PetscCall(MatGetRow(A, i, &n[0], &j, &v));
    for (PetscInt k = 0; k < TestSquare.n; k++) {
      if (!TestHasEntry(13, TestSquare.m, TestSquare.n, i, k)) continue;
      PetscCheck(count < n[0] && j[count] == k && v[count] == TestValue(13, i, k), PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " is wrong", i);
      count++;
    }
    PetscCheck(count == n[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " has %" PetscInt_FMT " entries", i, n[0]);
    PetscCall(MatRestoreRow(A, i, &n[0], &j, &v));
  }
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(MatCreateVecs(R, NULL, &e));
  PetscCall(TestDiagonal(A, R, d, e, 0, "MatGetDiagonal()"));
  PetscCall(MatGetRowSum(A, d));
  PetscCall(MatGetRowSum(R, e));
  PetscCall(VecAXPY(e, -1.0, d));
  PetscCall(VecNorm(e, NORM_INFINITY, &nr));
  PetscCheck(nr <= 100 * PETSC_MACHINE_EPSILON, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatGetRowSum() is off by %g", (double)nr);
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&e));

  PetscCall(ISCreateStride(PETSC_COMM_WORLD, rend - rstart, TestSquare.m - 1 - rstart, -1, &perm));
  PetscCall(ISSetPermutation(perm));
  PetscCall(MatPermute(A, perm, perm, &P));
  PetscCall(MatPermute(R, perm, perm, &Q));
  PetscCall(MatConvert(P, TestFormat(""), MAT_INPLACE_MATRIX, &P)); /* PETSc permutes an MPI matrix of any type into a plain one */
  PetscCall(TestProducts(P, Q, TEST_BUILD, &last, "MatPermute()"));
  PetscCall(ISDestroy(&perm));
  PetscCall(TestDestroy(&P, &Q));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool seqaij, gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &seqaij));
  if (seqaij) PetscCall(SeqAIJType());
  else {
    PetscCall(Names());
    PetscCall(SetTypeTwice());
    PetscCall(DMMatrix(PETSC_FALSE));
    PetscCall(DMMatrix(PETSC_TRUE));
    PetscCall(DMMatrixTo(MATAIJ, MAT_INITIAL_MATRIX));
    PetscCall(DMMatrixTo(MATAIJ, MAT_INPLACE_MATRIX));
    PetscCall(DMMatrixTo(MATBAIJ, MAT_INITIAL_MATRIX));
    PetscCall(DMMatrixTo(MATDENSE, MAT_INITIAL_MATRIX));
    PetscCall(FromAIJ(TestSquare, NULL, TestFormat("")));
    PetscCall(FromAIJ(TestSquareHash, NULL, TestFormat("aij")));
    PetscCall(FromAIJ(TestWide, NULL, TestFormat("")));
    PetscCall(To(TestSquare, MATAIJ, PETSC_FALSE, PETSC_TRUE));
    PetscCall(To(TestTall, MATAIJ, PETSC_FALSE, PETSC_TRUE));
    PetscCall(To(TestSquare, MATDENSE, PETSC_FALSE, PETSC_TRUE));
    PetscCall(To(TestWide, MATDENSE, PETSC_FALSE, PETSC_TRUE));
    PetscCall(To(TestSquare, MATBAIJ, PETSC_FALSE, PETSC_TRUE));
    PetscCall(To(TestSquare, MATSBAIJ, PETSC_TRUE, PETSC_TRUE));
    PetscCall(To(TestSquare, MATAIJPERM, PETSC_FALSE, PETSC_FALSE));
    PetscCall(To(TestSquare, MATAIJCRL, PETSC_FALSE, PETSC_FALSE));
    PetscCall(FromOther(MATDENSE));
    PetscCall(FromOther(MATBAIJ));
    PetscCall(FromOther(MATAIJPERM));
    PetscCall(TestHasDevice(&gpu));
    if (gpu) {
      PetscCall(FromAIJ(TestSquare, MATAIJCUSPARSE, TestFormat("")));
      PetscCall(FromAIJ(TestWide, MATAIJCUSPARSE, TestFormat("")));
      PetscCall(To(TestSquare, MATAIJCUSPARSE, PETSC_FALSE, PETSC_TRUE));
      PetscCall(To(TestTall, MATAIJCUSPARSE, PETSC_FALSE, PETSC_TRUE));
      PetscCall(To(TestSquare, MATDENSECUDA, PETSC_FALSE, PETSC_TRUE));
    }
    PetscCall(ToItself());
    PetscCall(Ring());
    PetscCall(File(TestSquare));
    PetscCall(File(TestTall));
    PetscCall(SubMatrix());
    PetscCall(SubMatrices());
    PetscCall(LocalMerge());
    PetscCall(MultiProcBlock());
    PetscCall(Transposes(TestSquare));
    PetscCall(Transposes(TestWide));
    PetscCall(SpotChecks());
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
      args: -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: seqaij_type
      args: -mat_seqaij_type seqaijevchyb
    test:
      suffix: seqaij_type_csroverlap
      args: -format csroverlap -mat_seqaij_type seqaijcsroverlap -options_left no
    test:
      suffix: seqaij_type_fastload
      args: -format fastload -mat_seqaij_type seqaijfastload -options_left no
    test:
      suffix: seqaij_type_hbp
      args: -format hbp -mat_seqaij_type seqaijhbp -options_left no

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/empty.out
    nsize: {{1 2}}

TEST*/
