/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Gallop matrices that are duplicated, change places with another one, are bound to the CPU, or get other options.\n\n";

#include "../galloptest.h"
#include <petscksp.h>

/* The content of one matrix goes to another */
static PetscErrorCode HeaderReplace(PetscBool built, PetscBool plain)
{
  Mat                 A, R, C, S;
  MatGallopStatistics last = {0}, clast = {0};
  PetscMPIInt         size;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "matrix that is replaced"));
  PetscCall(MatDestroy(&R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, plain ? MATAIJ : TestFormat(""), TestSquareHash, 1, &C, &S));
  if (built) PetscCall(TestProducts(C, S, TEST_BUILD, &clast, "matrix that replaces"));
  PetscCall(MatHeaderReplace(A, &C));
  PetscCheck(!C, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatHeaderReplace() left a matrix");
  if (plain) {
    PetscCall(TestIsOurs(A, PETSC_FALSE, "MatHeaderReplace() by a plain matrix"));
    PetscCall(MatConvert(A, TestFormat(""), MAT_INPLACE_MATRIX, &A));
  }
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestProducts(A, S, size > 1 && built ? TEST_NOTHING : TEST_BUILD, &clast, "MatHeaderReplace()")); /* the blocks of an MPI matrix stay what they are */
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(S, 2.0));
  PetscCall(TestProducts(A, S, TEST_REFRESH, &clast, "MatScale() after MatHeaderReplace()"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A plain matrix becomes one of ours by the back door */
static PetscErrorCode HeaderReplacePlain(void)
{
  Mat                 A, R, C, S;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, TestSquare, 0, &A, &R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 1, &C, &S));
  PetscCall(MatHeaderReplace(A, &C));
  PetscCall(TestProducts(A, S, TEST_BUILD, &last, "MatHeaderReplace() of a plain matrix"));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HeaderMerge(PetscBool builta, PetscBool builtc)
{
  Mat                 A, R, C, S;
  MatGallopStatistics last = {0}, clast = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  if (builta) PetscCall(TestProducts(A, R, TEST_BUILD, &last, "matrix that is merged into"));
  PetscCall(MatDestroy(&R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestTall, 1, &C, &S));
  if (builtc) PetscCall(TestProducts(C, S, TEST_BUILD, &clast, "matrix that is merged"));
  PetscCall(MatHeaderMerge(A, &C));
  PetscCheck(!C, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatHeaderMerge() left a matrix");
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(TestProducts(A, S, TEST_ANY, &last, "MatHeaderMerge()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(S, 2.0));
  PetscCall(TestProducts(A, S, TEST_REFRESH, &last, "MatScale() after MatHeaderMerge()"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Duplicate(MatDuplicateOption option, PetscBool built, PetscBool destroyfirst)
{
  Mat                 A, R, B, S;
  MatGallopStatistics last = {0}, blast = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  if (built) PetscCall(TestProducts(A, R, TEST_BUILD, &last, "original"));
  PetscCall(MatDuplicate(A, option, &B));
  PetscCall(MatDuplicate(R, option, &S));
  PetscCall(TestHasType(B, TestFormat("seqaij"), TestFormat("mpiaij"), "MatDuplicate()"));
  PetscCall(TestProducts(B, S, TEST_BUILD, &blast, "duplicate"));
  if (destroyfirst) {
    PetscCall(MatDestroy(&A));
    PetscCall(TestProducts(B, S, TEST_NOTHING, &blast, "duplicate whose original is gone"));
  }
  PetscCall(TestFill(B, 0, 70));
  PetscCall(TestFill(S, 0, 70));
  PetscCall(TestProducts(B, S, TEST_REFRESH, &blast, "new values of a duplicate"));
  if (A) {
    PetscCall(TestProducts(A, R, built ? TEST_NOTHING : TEST_ANY, &last, "original of a changed duplicate"));
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatScale(R, 3.0));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "changed original"));
    PetscCall(TestProducts(B, S, TEST_NOTHING, &blast, "duplicate of a changed original"));
    PetscCall(TestPreallocate(A));
    PetscCall(TestPreallocate(R));
    PetscCall(TestFill(A, 3, 4));
    PetscCall(TestFill(R, 3, 4));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, "original of a new pattern"));
    PetscCall(TestProducts(B, S, TEST_NOTHING, &blast, "duplicate of an original of a new pattern"));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestDestroy(&B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a machine without a GPU this changes nothing */
static PetscErrorCode BindToCPU(void)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  for (int bind = 0; bind < 6; bind++) {
    PetscCall(MatBindToCPU(A, bind % 2 ? PETSC_FALSE : PETSC_TRUE));
    PetscCall(TestProducts(A, R, TEST_ANY, &last, bind % 2 ? "free" : "bound to the CPU"));
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(R, 1.5));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "new values between two bindings"));
    PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), "MatBindToCPU()"));
  }
  for (int bind = 0; bind < 2; bind++) PetscCall(MatBindToCPU(A, bind % 2 ? PETSC_FALSE : PETSC_TRUE)); /* as DMDA does */
  PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "bound and freed"));
  PetscCall(TestDestroy(&A, &R));

  /* before anything is in it */
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), TestSquareHash, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquareHash, &R));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(TestFill(A, 2, 2));
  PetscCall(TestFill(R, 2, 2));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "bound and freed before it had entries"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Toggle(KSP ksp, PetscInt it, PetscReal norm, PetscCtx ctx)
{
  Mat A;

  PetscFunctionBegin;
  (void)norm;
  (void)ctx;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  if (it % 4 == 2) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  if (it % 4 == 0) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BindDuringSolve(void)
{
  const TestShape     shape = {400, 400, PETSC_FALSE};
  Mat                 A, R;
  Vec                 x, b, y, c;
  KSP                 ksp;
  PC                  pc;
  PetscInt            rstart, rend, its[2];
  MatGallopStatistics before, after;
  PetscInt            parts;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (int k = 0; k < 2; k++) {
    Mat M = k ? R : A;

    for (PetscInt i = rstart; i < rend; i++) {
      if (i % 20) PetscCall(MatSetValue(M, i, i - 1, -1.0, INSERT_VALUES));
      if (i % 20 < 19) PetscCall(MatSetValue(M, i, i + 1, -1.0, INSERT_VALUES));
      if (i >= 20) PetscCall(MatSetValue(M, i, i - 20, -1.0, INSERT_VALUES));
      if (i < 380) PetscCall(MatSetValue(M, i, i + 20, -1.0, INSERT_VALUES));
      PetscCall(MatSetValue(M, i, i, 4.0, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatGallopGetStatistics(A, &before));
  for (int k = 0; k < 2; k++) {
    Mat M = k ? R : A;

    PetscCall(MatCreateVecs(M, k ? &y : &x, k ? &c : &b));
    PetscCall(TestSetVec(k ? c : b, 71));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, M, M));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(ksp, 100 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
    if (!k) PetscCall(KSPMonitorSet(ksp, Toggle, NULL, NULL));
    PetscCall(KSPSolve(ksp, k ? c : b, k ? y : x));
    PetscCall(KSPGetIterationNumber(ksp, &its[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCheck(its[0] >= its[1] - 1 && its[0] <= its[1] + 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations, with a plain matrix %" PetscInt_FMT, its[0], its[1]);
  PetscCall(MatGallopGetStatistics(A, &after));
  PetscCall(TestParts(A, &parts));
  PetscCheck(after.products_host + after.products_device - before.products_host - before.products_device == parts * its[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products in %" PetscInt_FMT " iterations on %" PetscInt_FMT " parts",
             after.products_host + after.products_device - before.products_host - before.products_device, its[0], parts);
  PetscCheck(after.fallbacks == before.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the parent", after.fallbacks - before.fallbacks);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSetFromOptions() without a change keeps the format, with one it is built anew, and a copy has the options of its original */
static PetscErrorCode Options(void)
{
  static const char *const options[][2] = {
    {MATEVCHYB,     "window"        },
    {MATCSROVERLAP, "max_batch_size"},
    {MATFASTLOAD,   "block_height"  },
    {MATHBP,        "block_cols"    }
  };
  const char         *option = NULL; /* one of the format's, that 32 changes */
  Mat                 A, R, B;
  MatGallopStatistics last = {0}, blast = {0};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++)
    if (!strcmp(TestFormat(""), options[k][0])) option = options[k][1];
  PetscCheck(option, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No option of %s to change", TestFormat(""));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatSetOptionsPrefix(A, "mine_"));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "MatSetFromOptions()"));
  PetscCall(PetscOptionsSetValue(NULL, TestOption("mine_", option), "32"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "MatSetFromOptions() with other options"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "MatSetFromOptions() with the same options again"));
  PetscCall(PetscOptionsClearValue(NULL, TestOption("mine_", option)));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(TestProducts(B, R, TEST_BUILD, &blast, "duplicate of a matrix with options"));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscOptionsSetValue(NULL, TestOption("mine_", "memory"), "1"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscOptionsClearValue(NULL, TestOption("mine_", "memory")));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscMemzero(&blast, sizeof(blast)));
  PetscCall(TestProducts(B, R, TEST_FALLBACK, &blast, "duplicate of a matrix that may take no memory"));
  PetscCall(MatDestroy(&B));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors on the host with a matrix that may be on the GPU, and every mix of the two */
static PetscErrorCode HostVectors(TestShape shape)
{
  Mat                 A, R;
  Vec                 x[2], y[2], z[2];
  MatGallopStatistics last   = {0};
  PetscBool           device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 0, &A, &R));
  PetscCall(MatCreateVecs(R, &x[0], &z[0])); /* a plain matrix has vectors on the host */
  PetscCall(MatCreateVecs(A, &x[1], &z[1]));
  for (int k = 0; k < 2; k++) PetscCall(VecDuplicate(z[k], &y[k]));
  for (PetscInt round = 0; round < 3; round++) {
    for (int mix = 0; mix < 8; mix++) {
      Vec u = x[mix & 1], v = y[mix >> 1 & 1], w = z[mix >> 2 & 1];

      PetscCall(TestMult(A, R, u, w, TEST_ANY, &last, "mixed vectors"));
      PetscCall(TestSetVec(v, 18));
      PetscCall(TestSpoilVec(w));
      PetscCall(MatMultAdd(A, u, v, w));
      PetscCall(TestCompare(R, TEST_MULT, u, v, w, "MatMultAdd() of mixed vectors"));
      PetscCall(TestOnDevice(A, u, w, &device));
      if (!((mix >> 1) & 1)) PetscCall(TestOnDevice(A, u, v, &device));
      if (mix == 5) PetscCall(MatGallopGetStatistics(A, &last)); /* only y on the host: of an MPI matrix, the diagonal block meets it, the off-diagonal block does not */
      else PetscCall(TestCounts(A, TEST_ANY, device, &last, "MatMultAdd() of mixed vectors"));
      PetscCall(VecCopy(v, w));
      PetscCall(MatMultAdd(A, u, w, w));
      PetscCall(TestCompare(R, TEST_MULT, u, v, w, "MatMultAdd() in place of mixed vectors"));
      PetscCall(TestOnDevice(A, u, w, &device));
      PetscCall(TestCounts(A, TEST_ANY, device, &last, "MatMultAdd() in place of mixed vectors"));

      PetscCall(TestSetVec(v, 19));
      PetscCall(TestSpoilVec(u));
      PetscCall(MatMultTranspose(A, v, u));
      PetscCall(TestCompare(R, TEST_TRANSPOSE, v, NULL, u, "MatMultTranspose() of mixed vectors"));
      PetscCall(TestTransposeCounts(A, &last, "MatMultTranspose() of mixed vectors"));
    }
    PetscCall(TestFill(A, 0, 80 + round));
    PetscCall(TestFill(R, 0, 80 + round));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
    PetscCall(VecDestroy(&z[k]));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const MatDuplicateOption options[] = {MAT_DO_NOT_COPY_VALUES, MAT_COPY_VALUES, MAT_SHARE_NONZERO_PATTERN};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(HeaderReplace(PETSC_FALSE, PETSC_FALSE));
  PetscCall(HeaderReplace(PETSC_TRUE, PETSC_FALSE));
  PetscCall(HeaderReplace(PETSC_FALSE, PETSC_TRUE));
  PetscCall(HeaderReplacePlain());
  PetscCall(HeaderMerge(PETSC_FALSE, PETSC_FALSE));
  PetscCall(HeaderMerge(PETSC_TRUE, PETSC_FALSE));
  PetscCall(HeaderMerge(PETSC_FALSE, PETSC_TRUE));
  PetscCall(HeaderMerge(PETSC_TRUE, PETSC_TRUE));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    PetscCall(Duplicate(options[k], PETSC_TRUE, PETSC_FALSE));
    PetscCall(Duplicate(options[k], PETSC_FALSE, PETSC_FALSE));
    PetscCall(Duplicate(options[k], PETSC_TRUE, PETSC_TRUE));
  }
  PetscCall(BindToCPU());
  PetscCall(BindDuringSolve());
  PetscCall(Options());
  PetscCall(HostVectors(TestSquare));
  PetscCall(HostVectors(TestWide));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out
    nsize: {{1 2 4}}
    filter: sed "/^Gallop: no room/d"

TEST*/
