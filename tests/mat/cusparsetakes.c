/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Matrices with more nonzeros than cuSPARSE takes: it is given none of their products.\n\n";

#include "../densetest.h"

/* A product of one process leaves its result where it was computed */
static PetscErrorCode CheckPlace(Mat A, Vec x, Vec z, PetscBool transpose, PetscBool device, const char what[])
{
  PetscOffloadMask mask;
  PetscMPIInt      size;

  PetscFunctionBegin;
  PetscCall(TestSetVec(x, 18));
  if (transpose) PetscCall(MatMultTranspose(A, x, z));
  else PetscCall(MatMult(A, x, z));
  PetscCall(VecGetOffloadMask(z, &mask));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  TestCheck(size > 1 || mask == (device ? PETSC_OFFLOAD_GPU : PETSC_OFFLOAD_CPU), "offload mask %d", what, (int)mask);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Flops on the GPU, which PETSc's products by cuSPARSE log, and ours */
static PetscLogDouble GpuFlops(void)
{
#if PetscDefined(HAVE_CUDA) && PetscDefined(USE_LOG)
  return petsc_gflops;
#else
  return 0;
#endif
}

/* A B, or A^T B, of a dense B with so many columns: by TiledSpMM on the GPU, or with nothing of it there but the sums of what other processes have computed of A^T B */
static PetscErrorCode CheckDense(Mat A, Mat R, MatType type, PetscInt columns, PetscBool transpose, PetscBool gpu, const char what[])
{
  Mat                 B, C;
  PetscInt            m, n, M, N;
  PetscMPIInt         size;
  PetscLogDouble      flops, sums;
  MatGallopStatistics before, now;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  sums = transpose ? PETSC_FLOPS_PER_OP * (PetscLogDouble)(size - 1) * (PetscLogDouble)n * (PetscLogDouble)columns : 0;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &B));
  PetscCall(MatSetSizes(B, transpose ? m : n, PETSC_DECIDE, transpose ? M : N, columns));
  PetscCall(MatSetType(B, type));
  PetscCall(MatSetUp(B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatGallopGetStatistics(A, &before));
  flops = GpuFlops();
  if (transpose) PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  else PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  flops = GpuFlops() - flops;
  PetscCall(MatGallopGetStatistics(A, &now));
  if (gpu)
    TestCheck(now.dense_products_device > before.dense_products_device && now.dense_fallbacks == before.dense_fallbacks, "%" PetscInt64_FMT " on the GPU, %" PetscInt64_FMT " by the parent", what,
              now.dense_products_device - before.dense_products_device, now.dense_fallbacks - before.dense_fallbacks);
  TestCheck(gpu || flops <= sums, "%g flops on the GPU", what, flops);
  PetscCall(TestCompareColumns(R, transpose ? TEST_TRANSPOSE : TEST_MULT, B, C, what));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A, R;
  Vec                 x, z;
  PetscBool           device = PETSC_FALSE, fallback;
  PetscInt            lines = 0, messages = 0;
  MatGallopStatistics last = {0};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsHasName(NULL, NULL, "-fallback", &fallback)); /* no format, by another option */
  PetscCall(TestHasDevice(&device));
  PetscCall(TestCaptureBegin());
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  for (PetscInt k = 0; k < 2; k++) {
    const TestExpect expect = fallback ? TEST_FALLBACK : device ? (k ? TEST_REFRESH : TEST_BUILD) : TEST_FALLBACK; /* the host waits until a format pays */

    PetscCall(TestMult(A, R, x, z, expect, &last, k ? "new values" : "first product"));
    PetscCall(CheckPlace(A, x, z, PETSC_FALSE, (PetscBool)(device && !fallback), k ? "new values" : "first product"));
    PetscCall(CheckPlace(A, z, x, PETSC_TRUE, (PetscBool)(device && !fallback), "transposed"));
    PetscCall(TestCompare(R, TEST_TRANSPOSE, z, NULL, x, "transposed"));
    if (device) {
      PetscCall(CheckDense(A, R, MATDENSECUDA, 2, PETSC_FALSE, PETSC_TRUE, "two columns"));
      PetscCall(CheckDense(A, R, MATDENSECUDA, 1, PETSC_FALSE, PetscNot(fallback), "one column"));
      PetscCall(CheckDense(A, R, MATDENSE, 2, PETSC_FALSE, PETSC_FALSE, "two columns on the host"));
      PetscCall(CheckDense(A, R, MATDENSECUDA, 2, PETSC_TRUE, PETSC_FALSE, "two columns of a transposed product"));
    }
    PetscCall(MatGallopGetStatistics(A, &last));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(TestCaptureEnd("; the host computes its products", &lines, &messages));
  PetscCheck(!device || (messages == (fallback ? 1 : 0) && lines == messages), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    args: -gallop_cusparse_nonzeros 10 -mat_gallop_build pays -mat_tiledspmm_least 3 # two columns would be cuSPARSE's
    test:
      suffix: 1
      args: -format {{evchyb csroverlap fastload hbp gallop}}
    test:
      suffix: memory
      args: -fallback -format evchyb -mat_evchyb_memory 1
    test:
      suffix: parent
      args: -fallback -format gallop -mat_gallop_format parent

TEST*/
