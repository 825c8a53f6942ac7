/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What -gallop_statistics shows in PetscFinalize().\n\
  -leave  a matrix that is not destroyed before\n\
  -none   no product\n\n";

#include "../galloptest.h"

/* The bytes of a matrix's format, on all processes */
static PetscErrorCode AddBytes(Mat A, PetscInt64 *sum)
{
  Mat                 parts[2];
  int                 n     = 0;
  const GallopFormat *format;
  const void         *data;
  PetscInt64          bytes = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGallopGetFormat(A, &format));
  PetscCall(TestGetBlocks(A, parts, &n));
  for (int k = 0; k < n; k++) {
    PetscCall(TestFormatData(parts[k], "a part", &data));
    bytes += (*format->bytes)(data);
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &bytes, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  *sum += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Three products, and a fourth with new values */
static PetscErrorCode Products(Mat A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestSetVec(x, 17));
  for (int k = 0; k < 3; k++) PetscCall(MatMult(A, x, y));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two, with five columns */
static PetscErrorCode DenseProducts(Mat A)
{
  Mat      B, C = NULL;
  PetscInt n, N;
  VecType  vectype;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatGetVecType(A, &vectype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vectype, n, PETSC_DECIDE, N, 5, PETSC_DECIDE, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  for (int k = 0; k < 2; k++) PetscCall(MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const types[] = {MATEVCHYB, MATCSROVERLAP, MATFASTLOAD, MATHBP};
  Mat                      A[2], R;
  PetscBool                leave = PETSC_FALSE, none = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-leave", &leave, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-none", &none, NULL));
  for (int t = 0; t < 4; t++) {
    PetscInt64 most = 0;

    /* one after the other, of which each has the most; and of HBP two at one time */
    for (int k = 0; k < 2; k++) {
      PetscCall(TestCreate(PETSC_COMM_WORLD, types[t], TestSquare, 0, &A[k], &R));
      PetscCall(MatDestroy(&R));
      if (!none) {
        if (t < 3) most = 0;
        PetscCall(Products(A[k]));
        PetscCall(AddBytes(A[k], &most));
        if (t == 0) PetscCall(DenseProducts(A[k]));
      }
      if (t < 3) PetscCall(MatDestroy(&A[k]));
    }
    if (t == 3) {
      PetscCall(MatDestroy(&A[0]));
      if (!leave) PetscCall(MatDestroy(&A[1]));
    }
    if (!none) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "expect %s %" PetscInt64_FMT "\n", types[t], most));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    filter: ${GALLOP_TESTS}/sys/checkstatistics
    args: -gallop_statistics -mat_tiledspmm_least 2
    test:
      suffix: 1
    test:
      suffix: 2
      nsize: 2
    test:
      suffix: none
      args: -none
      nsize: {{1 2}}
    test:
      suffix: leave
      args: -leave

TEST*/
