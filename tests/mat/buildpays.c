/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "-mat_gallop_build pays: the parent computes until a build pays, entries that lived long earn the next build at once, and a count that is given counts.\n\
With -transpose the same of transposed products.\n\n";

#include "../galloptest.h"

static PetscBool transpose = PETSC_FALSE;

static PetscErrorCode Product(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  if (transpose) PetscCall(MatMultTranspose(A, x, z));
  else PetscCall(MatMult(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateVecs(Mat A, Vec *x, Vec *z)
{
  PetscFunctionBegin;
  if (transpose) PetscCall(MatCreateVecs(A, z, x));
  else PetscCall(MatCreateVecs(A, x, z));
  PetscCall(TestSetVec(*x, 40));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Formats made, and renewed: of the transpose where the format itself computes no transposed product */
static PetscErrorCode Made(Mat A, PetscInt64 *builds, PetscInt64 *refreshes)
{
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &s));
  *builds    = s.builds + s.transpose_builds;
  *refreshes = s.refreshes + s.transpose_refreshes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products until the format of each part with entries computes them, at most the given number; the answers are right all the while */
static PetscErrorCode CountUntilBuilt(Mat A, Mat R, PetscInt most, PetscInt *n)
{
  MatGallopStatistics before, now;
  Vec                 x, z;
  PetscInt            parts;
  PetscMPIInt         size;
  PetscBool           all;

  PetscFunctionBegin;
  PetscCall(TestParts(A, &parts));
  PetscCall(CreateVecs(A, &x, &z));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (transpose && size > 1) parts = 2; /* a block without entries is asked too */
  for (*n = 0; *n < most; (*n)++) {
    PetscCall(MatGallopGetStatistics(A, &before));
    PetscCall(Product(A, x, z));
    PetscCall(MatGallopGetStatistics(A, &now));
    if (!*n) PetscCall(TestCompare(R, transpose ? TEST_TRANSPOSE : TEST_MULT, x, NULL, z, "first product"));
    all = (PetscBool)(now.products_host + now.products_device - before.products_host - before.products_device == parts);
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &all, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
    if (all) break;
  }
  PetscCall(TestCompare(R, transpose ? TEST_TRANSPOSE : TEST_MULT, x, NULL, z, "last product"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, n, 1, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Mat A, PetscInt n)
{
  Vec x, z;

  PetscFunctionBegin;
  PetscCall(CreateVecs(A, &x, &z));
  for (PetscInt k = 0; k < n; k++) PetscCall(Product(A, x, z));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Mat A, Mat R)
{
  PetscFunctionBegin;
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(R, -2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt most = 2000;
  Mat            A, R;
  PetscInt       loads, first, n, expected = 0;
  PetscInt64     builds, refreshes, before;
  PetscBool      device = PETSC_FALSE, copies;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &transpose, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_gallop_products", &expected, NULL));

  /* CSROVERLAP's build copies a matrix from the host, which the parent's first product would have to do: it is made at once, and only new values wait */
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscStrcmp(TestFormat(""), MATCSROVERLAP, &copies));
  if (device && copies && !transpose) {
    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
    PetscCall(CountUntilBuilt(A, R, most, &n));
    PetscCheck(!n, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A matrix from the host was taken at product %" PetscInt_FMT, n);
    PetscCall(TestDestroy(&A, &R));
    PetscCall(PetscFinalize());
    return 0;
  }

  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestWide, 0, &A, &R));
  PetscCall(CountUntilBuilt(A, R, most, &loads));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(CountUntilBuilt(A, R, most, &first));
  PetscCheck(expected ? !first : first > 30 && first < most, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Built at product %" PetscInt_FMT ", with %" PetscInt_FMT " expected", first, expected);
  PetscCheck(expected || !device || loads > first + 50, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Built at product %" PetscInt_FMT ", the first format of the process, whose kernels had to be loaded, at %" PetscInt_FMT, first, loads);

  /* it has been multiplied often: new values are taken at once */
  PetscCall(Multiply(A, first));
  PetscCall(Scale(A, R));
  PetscCall(CountUntilBuilt(A, R, most, &n));
  PetscCheck(!n, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "After many products new values were taken at product %" PetscInt_FMT, n);
  PetscCall(Made(A, &builds, &refreshes));
  PetscCheck(builds && refreshes, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", builds, refreshes);

  /* since then there has been one product alone: the next new values wait, and less than a build does */
  PetscCall(Scale(A, R));
  PetscCall(CountUntilBuilt(A, R, most, &n));
  PetscCheck(expected ? !n : n > 5 && n < first, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "After few products new values were taken at product %" PetscInt_FMT ", a build at %" PetscInt_FMT, n, first);

  /* new values that nobody multiplies, between products: the format is never refreshed for them */
  PetscCall(Made(A, &builds, &before));
  for (int k = 0; k < 10; k++) {
    PetscCall(Scale(A, R));
    PetscCall(Multiply(A, 1));
  }
  PetscCall(Made(A, &builds, &refreshes));
  PetscCheck(expected || refreshes - before <= 2, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt64_FMT " refreshes for ten products", refreshes - before); /* the first may be earned, for each of two blocks */
  PetscCall(TestDestroy(&A, &R));

  /* states with too few products for a build each, as those of a Newton method: after some of them a build pays for those that follow */
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  for (n = 0, builds = 0; n < 20 && !builds; n++) {
    PetscCall(Multiply(A, PetscMax(first / 2, 1)));
    PetscCall(Scale(A, R));
    PetscCall(Made(A, &builds, &refreshes));
  }
  PetscCheck(builds && (expected || n > 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds after %" PetscInt_FMT " states of %" PetscInt_FMT " products", builds, n, PetscMax(first / 2, 1));
  PetscCall(TestDestroy(&A, &R));

  /* matrices that are made anew, as by multigrid in a Newton method: what the last two of its size were multiplied is what the next one expects */
  for (int k = 0; k < 5; k++) {
    const PetscInt products = k == 3 ? 1 : 5 * most / 10;

    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
    if (k == 2 || k == 4) {
      PetscCall(CountUntilBuilt(A, R, most, &n));
      PetscCheck(expected || (k == 2 ? !n : n == first), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Matrix %d was built at product %" PetscInt_FMT ", the first one at %" PetscInt_FMT, k, n, first);
    }
    PetscCall(Multiply(A, products));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    args: -mat_gallop_build pays
    test:
      suffix: 1
      args: -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: products
      args: -format {{evchyb hbp}} -mat_gallop_products 10000
    test:
      suffix: transpose
      args: -format {{evchyb csroverlap fastload hbp}} -transpose -mat_gallop_explicit_transpose always
    test:
      suffix: transpose_products
      args: -format {{evchyb hbp}} -transpose -mat_gallop_explicit_transpose always -mat_gallop_products 10000

TEST*/
