/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MatGetDiagonal() and MatDiagonalScale() with vectors on the host, which are used again with other numbers, while the values of the matrix are on the GPU.\n\n";

#include "../galloptest.h"
#include <petsc/private/matimpl.h>

/* A vector on the host wherever the matrix is, with the rows of its products or the columns */
static PetscErrorCode CreateHostVec(Mat A, PetscBool rows, Vec *v)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, rows ? m : n, rows ? M : N));
  PetscCall(VecSetType(*v, VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether values are on the GPU alone, so that the host's are no way round */
static PetscErrorCode OnDeviceAlone(Mat A, PetscBool device, const char what[])
{
  Mat       diagonal = A;
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, NULL, NULL));
#if PetscDefined(HAVE_DEVICE)
  if (device) TestCheck(diagonal->offloadmask == PETSC_OFFLOAD_GPU, "the newest values are not on the GPU alone", what);
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Scalings of complex numbers round otherwise on a GPU */
static PetscErrorCode Scaled(TestShape shape, PetscBool device)
{
  Mat                 A, R;
  Vec                 x, z, l, r, d = NULL, e = NULL;
  PetscInt            m, n;
  const PetscReal     ulps = PetscDefined(USE_COMPLEX) ? 16 : 0;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 3, &A, &R));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(CreateHostVec(A, PETSC_TRUE, &l));
  PetscCall(CreateHostVec(A, PETSC_FALSE, &r));
  if (m == n) {
    PetscCall(CreateHostVec(A, PETSC_TRUE, &d));
    PetscCall(VecDuplicate(d, &e));
    PetscCall(TestDiagonal(A, R, d, e, ulps, "new matrix, no product yet"));
  }
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "new matrix"));
  if (d) PetscCall(TestDiagonal(A, R, d, e, ulps, "new matrix"));
  for (int k = 0; k < 3; k++) {
    PetscCall(TestSetVec(l, 41 + k));
    PetscCall(TestSetVec(r, 51 + k));
    PetscCall(MatDiagonalScale(A, k == 1 ? NULL : l, k == 2 ? NULL : r));
    PetscCall(MatDiagonalScale(R, k == 1 ? NULL : l, k == 2 ? NULL : r));
    PetscCall(OnDeviceAlone(A, device, "scaled"));
    if (d) PetscCall(TestDiagonal(A, R, d, e, ulps, "scaled"));
    PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "scaled"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    if (d) PetscCall(TestDiagonal(A, R, d, e, ulps, "twice that"));
    PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "twice that"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&e));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(Scaled(TestSquare, device));
  PetscCall(Scaled(TestTall, device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2}}
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

TEST*/
