/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Transposed products by a format of the transpose, where the format itself has none: who computed them, what was built and when. And MatResidual(), which is one product.\n\n";

#include "../galloptest.h"
#include <gallop/formatimpl.h>

static MatGallopStatistics last;

/* All that has been counted since the last look has to be so many products of ours, of the parent's, builds and refreshes of the transpose's format. refreshes -1: some of the builds may be refreshes, as new entries may be in one block alone. */
static PetscErrorCode Expect(Mat A, PetscInt64 ours, PetscInt64 parents, PetscInt64 builds, PetscInt64 refreshes, const char what[])
{
  MatGallopStatistics now;
  PetscBool           device = PETSC_FALSE;
  PetscInt64          there, here, made, renewed;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(MatGallopGetStatistics(A, &now));
  there = now.products_device - last.products_device;
  here  = now.products_host - last.products_host;
  TestCheck(ours == (device ? there : here) && !(device ? here : there), "%" PetscInt64_FMT " products on the GPU and %" PetscInt64_FMT " on the host, not %" PetscInt64_FMT, what, there, here, ours);
  TestCheck(now.fallbacks - last.fallbacks == parents, "%" PetscInt64_FMT " products by the parent, not %" PetscInt64_FMT, what, now.fallbacks - last.fallbacks, parents);
  made    = now.transpose_builds - last.transpose_builds;
  renewed = now.transpose_refreshes - last.transpose_refreshes;
  TestCheck(refreshes < 0 ? made + renewed == builds : made == builds && renewed == refreshes, "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes of the transpose's format, not %" PetscInt64_FMT " and %" PetscInt64_FMT, what, made, renewed, builds, refreshes);
  last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Mat A, Mat R, Vec x, Vec z, const char what[])
{
  PetscFunctionBegin;
  PetscCall(TestSetVec(x, 60));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultTranspose(A, x, z));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, NULL, z, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOption(Mat A, const char name[], const char value[])
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, name, value));
  PetscCall(MatSetFromOptions(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What -mat_view shows has the line on the transpose, or not */
static PetscErrorCode CheckView(Mat A, PetscBool there, const char what[])
{
  const char  name[] = "transpose.view";
  PetscViewer viewer;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, name, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    char      text[8192];
    FILE     *file = fopen(name, "r");
    PetscBool has;

    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    (void)remove(name);
    has = (PetscBool)(strstr(text, "Transpose, for transposed products:") != NULL);
    TestCheck(has == there, "the view shows\n%s", what, text);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* parts: those that a transposed product asks, filled: those with entries */
static PetscErrorCode GetParts(Mat A, PetscInt *parts, PetscInt *filled)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestPartsFilled(A, parts, filled));
  if (size > 1) *parts = 2;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries in new places, in the rows of this process */
static PetscErrorCode AddEntries(Mat A)
{
  PetscInt rstart, rend, n;

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetSize(A, NULL, &n));
  for (PetscInt i = rstart; i < rend; i++)
    for (PetscInt k = 0; k < 3; k++) PetscCall(MatSetValue(A, i, (7 * i + 5 * k) % n, 0.5 + k, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposes(TestShape shape)
{
  Mat                 A, R;
  Vec                 x, y, z;
  PetscInt            parts = 0, filled = 0, own = 0;
  const GallopFormat *format;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 61, &A, &R));
  PetscCall(MatGallopGetFormat(A, &format));
  own = GallopComputesTranspose(format) && !format->prefers_transpose ? 0 : 1; /* builds of the transpose per part */
  PetscCall(MatCreateVecs(A, &z, &x));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(GetParts(A, &parts, &filled));
  PetscCall(CheckView(A, PETSC_FALSE, "before any transposed product"));
  PetscCall(Transposed(A, R, x, z, "first"));
  PetscCall(Expect(A, parts, 0, own * filled, 0, "first"));
  PetscCall(CheckView(A, (PetscBool)own, "after a transposed product"));
  PetscCall(Transposed(A, R, x, z, "second"));
  PetscCall(TestSetVec(y, 62));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultTransposeAdd(A, x, y, z));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, y, z, "with a vector added"));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultTransposeAdd(A, x, z, z));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, y, z, "added in place"));
  PetscCall(Expect(A, 3 * parts, 0, 0, 0, "more products"));

  PetscCall(MatScale(A, -3.0));
  PetscCall(MatScale(R, -3.0));
  PetscCall(Transposed(A, R, x, z, "new values"));
  PetscCall(Expect(A, parts, 0, 0, own * filled, "new values"));
  PetscCall(AddEntries(A));
  PetscCall(AddEntries(R));
  PetscCall(GetParts(A, &parts, &filled));
  PetscCall(MatGallopGetStatistics(A, &last)); /* an MPI matrix may have a new block, whose counts begin anew */
  PetscCall(Transposed(A, R, x, z, "new pattern"));
  PetscCall(Expect(A, parts, 0, own * filled, -1, "new pattern"));

  /* no room: the parent computes, and tries no more */
  PetscCall(SetOption(A, TestOption("", "memory"), "8"));
  for (int k = 0; k < 2; k++) PetscCall(Transposed(A, R, x, z, "without room"));
  PetscCall(Expect(A, 2 * (parts - filled), 2 * filled, 0, 0, "without room"));
  PetscCall(SetOption(A, TestOption("", "memory"), "0"));
  PetscCall(Transposed(A, R, x, z, "with room again"));
  PetscCall(Expect(A, parts, 0, own * filled, 0, "with room again"));

  if (own) {
    char before[16] = "gpu";

    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_explicit_transpose", before, sizeof(before), NULL));
    PetscCall(SetOption(A, "-mat_gallop_explicit_transpose", "never"));
    PetscCall(CheckView(A, PETSC_FALSE, "never"));
    PetscCall(Transposed(A, R, x, z, "never"));
    if (GallopComputesTranspose(format)) PetscCall(Expect(A, parts, 0, 0, 0, "never")); /* by its own transposed product */
    else PetscCall(Expect(A, 0, parts, 0, 0, "never"));
    PetscCall(SetOption(A, "-mat_gallop_explicit_transpose", before));
    PetscCall(Transposed(A, R, x, z, "again"));
    PetscCall(Expect(A, parts, 0, filled, 0, "again"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x is a product with the sign changed: what -R x + b is */
static PetscErrorCode Residuals(TestShape shape)
{
  Mat         A, R;
  Vec         x, b, r;
  PetscInt    parts = 0, filled = 0;
  PetscBool   borrows = PETSC_FALSE, device = PETSC_FALSE;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&last, sizeof(last)));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 63, &A, &R));
  PetscCall(MatScale(R, -1.0));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestPartsFilled(A, &parts, &filled));
  PetscCall(TestSetVec(x, 64));
  PetscCall(TestSetVec(b, 65));
  PetscCall(PetscStrcmp(TestFormat(""), "csroverlap", &borrows));
  PetscCall(TestHasDevice(&device));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (int k = 0; k < (borrows && !device ? 1 : 3); k++) { /* with room, without, and with room on some processes; on the host CSROVERLAP's arrays are the matrix's own, whatever their size */
    const PetscBool room = (PetscBool)(k == 0 || (k == 2 && rank % 2));

    PetscCall(SetOption(A, TestOption("", "memory"), room ? "0" : "8"));
    PetscCall(TestSpoilVec(r));
    PetscCall(MatResidual(A, b, x, r));
    PetscCall(TestCompare(R, TEST_MULT, x, b, r, "residual"));
    PetscCall(Expect(A, room ? parts : parts - filled, room ? 0 : filled, 0, 0, room ? "residual" : "residual by the parent"));
  }
  PetscCall(SetOption(A, TestOption("", "memory"), "0"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A column with so many entries and a row with so many: where one is long, the GPU sorts entries in another way. And new values, which come by the same way. */
static PetscErrorCode Lengths(PetscInt ofcolumn, PetscInt ofrow)
{
  const PetscInt m = 700, n = 9000;
  Mat            A, R;
  Vec            x, z;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &R));
  PetscCall(MatSetSizes(R, m, n, m, n));
  PetscCall(MatSetType(R, MATAIJ));
  PetscCall(MatSetUp(R));
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt k = 0; k < 5; k++) PetscCall(MatSetValue(R, i, (13 * i + 997 * k) % n, TestValue(66, i, k), INSERT_VALUES));
    if (i < ofcolumn) PetscCall(MatSetValue(R, i, 17, TestValue(67, i, 17), INSERT_VALUES));
  }
  for (PetscInt k = 0; k < ofrow; k++) PetscCall(MatSetValue(R, 600, k, TestValue(68, 600, k), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreateVecs(A, &z, &x));
  for (int k = 0; k < 2; k++) {
    PetscCall(Transposed(A, R, x, z, k ? "long lines, new values" : "long lines"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt  lengths[][2] = {{128, 8192}, {129, 0}, {700, 0}, {0, 8193}, {40, 9000}};
  const TestShape shapes[] = {TestSquare, TestSquareHash, TestWide, TestTall};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    PetscCall(Transposes(shapes[s]));
    PetscCall(Residuals(shapes[s]));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lengths); k++) PetscCall(Lengths(lengths[k][0], lengths[k][1]));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 4}}
    args: -format {{evchyb csroverlap fastload hbp}} -mat_gallop_build first -mat_gallop_explicit_transpose always
    filter: grep -v "no room for the"
    test:
      suffix: 1
    test:
      suffix: log_sync
      args: -log_sync

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -mat_gallop_build first -mat_gallop_explicit_transpose always -options_left no
    output_file: output/empty.out
    nsize: {{1 2}}
    filter: grep -v "no room for the"

TEST*/
