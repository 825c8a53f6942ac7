/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "One GPU for several processes, of which all but the first cannot see it: matrices that they share are on the host, those of the first process alone on the GPU.\n\n";

#include "../galloptest.h"
#include <stdlib.h>

/* Whether the parent of a matrix is on the host: the vectors of AIJCUSPARSE are not */
static PetscErrorCode CheckParent(Mat A, PetscBool device, const char what[])
{
  VecType   type;
  PetscBool cuda;

  PetscFunctionBegin;
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrendswith(type, "cuda", &cuda));
  PetscCheck(cuda == device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: vectors of type %s", what, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TestProducts() sees to it that our kernel on the host computes: where the vectors are */
static PetscErrorCode CheckShared(Mat A, Mat R, const char what[])
{
  Mat                 blocks[2];
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(CheckParent(A, PETSC_FALSE, what));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, what));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProducts(A, R, TEST_REFRESH, &last, what));
  PetscCheck(!last.products_device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products on the GPU", what, last.products_device);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestIsOurs(blocks[k], PETSC_TRUE, what));
    PetscCall(CheckParent(blocks[k], PETSC_FALSE, what));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shared(TestShape shape)
{
  Mat A, R, B;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 0, &A, &R));
  PetscCall(CheckShared(A, R, "matrix of all processes"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(CheckShared(B, R, "duplicate"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckShared(B, R, "MatConvert() initial"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &B));
  PetscCall(MatConvert(B, TestFormat(""), MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckShared(B, R, "MatConvert() in place"));
  PetscCall(MatDestroy(&B));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every process has one of its own */
static PetscErrorCode Alone(TestShape shape, PetscBool device)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_SELF, TestFormat(""), shape, 1, &A, &R));
  PetscCall(CheckParent(A, device, "matrix of one process"));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "matrix of one process"));
  PetscCheck((device ? last.products_host : last.products_device) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products on the host, %" PetscInt64_FMT " on the GPU", last.products_host,
             last.products_device);
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK"), *const gpus = getenv("GALLOP_GPUS");
  char      enable[16] = "";
  PetscBool disabled, device;
  PetscInt  lines = 0, matches = 0, expected;

  /* before anything asks CUDA for its devices */
  if (rank && atoi(rank) > 0) (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCheck(rank && atoi(rank) == PetscGlobalRank, PETSC_COMM_SELF, PETSC_ERR_SUP, "This MPI does not tell a process its rank in the environment");
  PetscCheck(gpus, PETSC_COMM_SELF, PETSC_ERR_SUP, "The environment does not tell how many GPUs there are: make check reads config/env");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-device_enable", enable, sizeof(enable), NULL));
  PetscCall(PetscStrcmp(enable, "none", &disabled));
  device = (PetscBool)(PetscGlobalRank == 0 && atoi(gpus) > 0 && !disabled);
  PetscCall(TestCaptureBegin());
  PetscCall(Shared(TestWide));
  PetscCall(TestCaptureEnd(device ? "some processes find no GPU" : "no GPU was found", &lines, &matches));
  expected = PetscDefined(HAVE_CUDA) && PetscGlobalRank == 0 && !disabled ? 1 : 0;
  PetscCheck(lines == expected && matches == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines and %" PetscInt_FMT " warnings, not %" PetscInt_FMT, lines, matches, expected);
  for (int k = 0; k < 2; k++) {
    PetscCall(Shared(k ? TestSquareHash : TestSquare));
    PetscCall(Alone(k ? TestTall : TestSquareHash, device));
    PetscCall(Shared(k ? TestTall : TestWide));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -gallop_warn_no_gpu -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out
    nsize: {{2 4}}

TEST*/
