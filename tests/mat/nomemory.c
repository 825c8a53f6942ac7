/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "No room on the GPU for one after the other of what a product needs there: the right answer, and one message.\n\n";

#include "../galloptest.h"

/* What the library asks the GPU for when it builds a format: the order of rows, workspace, the arrays of rows, entries */
#define FORMAT_REQUESTS 4

/* Vectors that live on the GPU where there is one, whatever the matrix thinks of that */
static PetscErrorCode CreateVecs(Mat A, PetscBool device, Vec *x, Vec *z)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), x));
  PetscCall(VecSetSizes(*x, n, N));
  PetscCall(VecSetType(*x, device ? VECCUDA : VECSTANDARD));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), z));
  PetscCall(VecSetSizes(*z, m, M));
  PetscCall(VecSetType(*z, device ? VECCUDA : VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A, R;
  Vec                 x, y, z, xt, zt;
  PetscBool           device = PETSC_FALSE, seqaij, transpose, release = PETSC_FALSE, wanting;
  PetscInt            n = 0, csr, parts = 0, built, lines = 0, messages = 0;
  MatGallopStatistics now;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gallop_device_malloc_fail", &n, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &seqaij));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-transpose", &transpose));    /* transposed products have a format too, for whose requests counts differ */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gallop_csr", &release)); /* the CSR arrays of such a matrix are on the GPU for a build only */
  PetscCall(TestHasDevice(&device));
  PetscCall(TestCaptureBegin());
  PetscCall(TestCreate(PETSC_COMM_WORLD, seqaij ? MATAIJ : MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(TestIsOurs(A, PETSC_TRUE, "new matrix"));
  PetscCall(TestParts(A, &parts));
  PetscCall(CreateVecs(A, device, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(CreateVecs(A, device, &zt, &xt));
  PetscCall(TestAnswers(A, R, x, y, z, xt, zt, "no room"));

  csr   = release ? 3 : 1; /* an array each for i, j and a; or a look whether the parent's copy has room */
  built = !device || !n ? parts : PetscMin(parts, (n - 1) / (csr + FORMAT_REQUESTS));
  PetscCall(MatGallopGetStatistics(A, &now));
  PetscCheck(transpose || (now.builds == built && now.products_host + now.products_device == 2 * built && (device || !now.products_device)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " products with room for %" PetscInt_FMT " of %" PetscInt_FMT " parts",
             now.builds, now.products_host + now.products_device, built, parts);

  /* new values, first without room, then with */
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(TestAnswers(A, R, x, y, z, xt, zt, k ? "room" : "no room, new values"));
    PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
  }
  PetscCall(TestCaptureEnd("Gallop: no room for the ", &lines, &messages));
  wanting = (PetscBool)(built < parts || (device && release && n && n <= csr + FORMAT_REQUESTS + 1)); /* the parent looks for room for its copy, for the transposed product */
  PetscCheck(lines == messages && (transpose ? messages <= 1 : messages == (wanting ? 1 : 0)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines with room for %" PetscInt_FMT " of %" PetscInt_FMT " parts", messages, lines, built, parts);

  /* where there is room again the format is built, without new values and after a while */
  for (int k = 0; k < 100; k++) {
    PetscCall(MatMult(A, x, z));
    if (transpose) PetscCall(MatMultTranspose(A, xt, zt));
  }
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "room again"));
  PetscCall(MatGallopGetStatistics(A, &now));
  built = (PetscInt)now.products_device;
  PetscCall(MatMult(A, x, z));
  PetscCall(MatGallopGetStatistics(A, &now));
  if (transpose) {
    PetscCall(TestCompare(R, TEST_TRANSPOSE, xt, NULL, zt, "room again, transposed"));
    PetscCheck(now.transpose_builds >= (device ? parts : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " formats of the transpose", now.transpose_builds);
  }
  PetscCheck(now.products_device - built == (device ? parts : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " of %" PetscInt_FMT " parts compute on the GPU, where there is room again", now.products_device - built, parts);

  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&xt));
  PetscCall(VecDestroy(&zt));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -gallop_device_malloc_fail {{0 1 2 3 4 5 6 7 8 9 10 11}} -mat_gallop_exchange sf
    test:
      suffix: 1
      nsize: {{1 2}}
      args: -mat_gallop_explicit_transpose never
    test:
      suffix: transpose
      nsize: {{1 2}}
      args: -transpose
    test:
      suffix: seqaij_type
      args: -mat_seqaij_type seqaijevchyb -mat_gallop_explicit_transpose never
    test:
      suffix: release
      args: -mat_gallop_csr release -mat_gallop_explicit_transpose never
    test:
      suffix: release_transpose
      args: -mat_gallop_csr release -transpose
    test:
      suffix: host
      args: -mat_gallop_csr host -mat_gallop_explicit_transpose never
    test:
      suffix: host_transpose
      args: -mat_gallop_csr host -transpose

TEST*/
