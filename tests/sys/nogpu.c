/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A PETSc with CUDA on a machine without a GPU: the first Gallop matrix says so, once.\n\n";

#include "../galloptest.h"

static const char Warning[] = "no GPU was found: products of Gallop matrices are computed on the host";

int main(int argc, char **argv)
{
  Mat         A;
  PetscInt    lines, matches, expected;
  PetscBool   convert = PETSC_FALSE, silent = PETSC_FALSE, device = PETSC_FALSE;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-convert", &convert, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-silent", &silent, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));

  PetscCall(TestCaptureBegin());
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, TestSquare, &A));
  PetscCall(TestFill(A, 0, 0));
  PetscCall(TestCaptureEnd(Warning, &lines, &matches));
  PetscCheck(!lines, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines without a Gallop matrix", lines);

  PetscCall(TestCaptureBegin());
  if (convert) PetscCall(MatConvert(A, MATEVCHYB, MAT_INPLACE_MATRIX, &A));
  else {
    PetscCall(MatDestroy(&A));
    PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, &A));
    PetscCall(TestFill(A, 0, 0));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(TestHasDevice(&device)); /* makes another one */
  PetscCall(TestCaptureEnd(Warning, &lines, &matches));
  expected = PetscDefined(HAVE_CUDA) && !device && !silent && rank == 0 ? 1 : 0;
  PetscCheck(lines == expected && matches == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines and %" PetscInt_FMT " warnings, not %" PetscInt_FMT, lines, matches, expected);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    test:
      suffix: says
      args: -gallop_warn_no_gpu -convert {{0 1}}
    test:
      suffix: silenced
      args: -gallop_warn_no_gpu 0 -silent
    test:
      suffix: host
      requires: cuda
      args: -gallop_warn_no_gpu -device_enable none -silent
    test:
      suffix: host_cuda
      requires: cuda
      args: -gallop_warn_no_gpu -device_enable_cuda none -silent

TEST*/
