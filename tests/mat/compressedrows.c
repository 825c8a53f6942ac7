/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MatGetDiagonal() of matrices of which most rows have no entries: AIJCUSPARSE's copy leaves these out.\n\n";

#include "../galloptest.h"
#include <petsc/private/matimpl.h>

/* Every fifth row has entries, on the diagonal too */
static PetscErrorCode Create(MatType type, Mat *A)
{
  PetscInt m, n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, type, TestSquare, A));
  PetscCall(MatGetSize(*A, &m, &n));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt j = 0; j < n && i % 5 == 3; j++) {
      if (i == j || (i + j) % 4 == 0) PetscCall(MatSetValue(*A, i, j, TestValue(3, i, j), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A, R;
  Vec                 l, d, e, host;
  PetscInt            m;
  PetscMPIInt         size;
  PetscBool           device = PETSC_FALSE;
  MatGallopStatistics last   = {0};
  const PetscReal     ulps   = PetscDefined(USE_COMPLEX) ? 16 : 0; /* scalings of complex numbers round otherwise on a GPU */

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Create(TestFormat(""), &A));
  PetscCall(Create(MATAIJ, &R));
  PetscCall(MatCreateVecs(A, &l, &d));
  PetscCall(MatCreateVecs(R, NULL, &e));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &host));
  PetscCall(VecSetSizes(host, m, TestSquare.m));
  PetscCall(VecSetType(host, VECSTANDARD));
  PetscCall(TestDiagonal(A, R, d, e, 0, "new matrix, no product yet"));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(TestDiagonal(A, R, d, e, 0, "new matrix"));
  PetscCall(TestSetVec(l, 31));
  PetscCall(MatDiagonalScale(A, l, NULL));
  PetscCall(MatDiagonalScale(R, l, NULL));
#if PetscDefined(HAVE_DEVICE)
  if (device && size == 1) TestCheck(A->offloadmask == PETSC_OFFLOAD_GPU, "the newest values are not on the GPU alone", "scaled");
#endif
  PetscCall(TestDiagonal(A, R, d, e, ulps, "scaled"));
  PetscCall(TestDiagonal(A, R, host, e, ulps, "scaled, with a vector on the host"));
  PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "scaled"));

  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&e));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2}}
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

TEST*/
