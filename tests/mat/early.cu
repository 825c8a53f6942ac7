/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products right behind a kernel that lets its successor start long before it writes what the successor reads.\n\n";

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1
#include <petscdevice_cuda.h>
#include <petsc/private/matimpl.h>
#include "../galloptest.h"

/* Tells that the next kernel may start, waits a fifth of a millisecond, and only then writes */
__global__ static void SlowScale(PetscInt n, PetscScalar by, const PetscScalar *from, PetscScalar *to)
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  for (long long start = clock64(); clock64() - start < 400000;) { }
  for (PetscInt i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = by * from[i];
}

static PetscErrorCode Scale(PetscInt n, PetscScalar by, const PetscScalar *from, PetscScalar *to)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  SlowScale<<<16, 256, 0, stream>>>(n, by, from, to);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row i has 5 entries, each `every`-th has `longest` */
static PetscErrorCode Create(PetscInt m, PetscInt every, PetscInt longest, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, m, m, m));
  PetscCall(MatSetType(*A, TestFormat("")));
  PetscCall(MatSetUp(*A));
  for (PetscInt i = 0; i < m; i++) {
    const PetscInt len = i % every == 1 ? longest : 5, step = m / len;

    for (PetscInt k = 0; k < len; k++) PetscCall(MatSetValue(*A, i, k * step, TestValue(5, i, k), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = 2 z0. Where bits may differ: the random numbers leave the largest entry of z0 no smaller than its sum of |a x| by more than about the square root of its terms. */
static PetscErrorCode Check(Vec z0, Vec z, const char shape[], const char what[])
{
  PetscReal norm;
  PetscBool same;
  Vec       twice;

  PetscFunctionBegin;
  PetscCall(VecNorm(z0, NORM_INFINITY, &norm));
  PetscCall(VecDuplicate(z0, &twice));
  PetscCall(VecCopy(z0, twice));
  PetscCall(VecScale(twice, 2.0));
  PetscCall(TestSameResult(twice, z, 1000, &same));
  PetscCheck(norm > 0 && same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a product did not see %s", shape, what);
  PetscCall(VecDestroy(&twice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestEarly(PetscInt m, PetscInt every, PetscInt longest, const char shape[])
{
  Mat                 A;
  Vec                 x, x2, y, z0, z;
  const PetscScalar  *from;
  PetscScalar        *to, *a;
  const PetscInt     *i, *j;
  PetscMemType        memtype;
  MatInfo             info;
  MatGallopStatistics stats;
  PetscBool           copies, values; /* whether the parent has the values on the GPU only after a copy, and they can be asked for */

  PetscFunctionBegin;
  PetscCall(Create(m, every, longest, &A));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijcsroverlap", &copies));
  values = (PetscBool)!(PetscDefined(USE_DEBUG) && copies); /* a debug PETSc copies for matrices of its own name alone */
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(x, &x2));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(z, &z0));
  PetscCall(TestSetVec(x, 1));
  PetscCall(VecSet(x2, 0.0));
  PetscCall(MatMult(A, x, z0));
  PetscCall(MatMult(A, x, z0)); /* from the second on a product loads the matrix before it waits */

  PetscCall(VecCUDAGetArrayRead(x, &from));
  PetscCall(VecCUDAGetArrayWrite(x2, &to));
  PetscCall(Scale(m, 2.0, from, to));
  PetscCall(VecCUDARestoreArrayWrite(x2, &to));
  PetscCall(MatMult(A, x2, z));
  PetscCall(Check(z0, z, shape, "x"));

  PetscCall(VecCUDAGetArrayRead(z0, &from));
  PetscCall(VecCUDAGetArrayWrite(y, &to));
  PetscCall(Scale(m, 1.0, from, to));
  PetscCall(VecCUDARestoreArrayWrite(y, &to));
  PetscCall(MatMultAdd(A, x, y, z)); /* y = z0 */
  PetscCall(Check(z0, z, shape, "y"));

  PetscCall(VecCUDAGetArrayRead(x, &from));
  PetscCall(VecCUDAGetArrayWrite(z, &to));
  PetscCall(Scale(m, 7.0, from, to)); /* must not overwrite the product */
  PetscCall(VecCUDARestoreArrayWrite(z, &to));
  PetscCall(MatMult(A, x2, z));
  PetscCall(Check(z0, z, shape, "that z was still being written"));

  /* the values themselves, as a program's own kernel writes them */
  if (values) {
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &memtype));
    PetscCheck(PetscMemTypeCUDA(memtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "the values are not on the GPU");
    PetscCall(Scale((PetscInt)info.nz_used, 2.0, a, a));
    A->offloadmask = PETSC_OFFLOAD_GPU; /* as PETSc itself tells after its own kernels */
    PetscCall(PetscObjectStateIncrease((PetscObject)A));
    PetscCall(MatMult(A, x, z));
    PetscCall(Check(z0, z, shape, "the values of the matrix"));
  }

  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(stats.builds == 1 && stats.refreshes == values && stats.products_device == (values ? 6 : 5), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes, %" PetscInt64_FMT " products", shape,
             stats.builds, stats.refreshes, stats.products_device);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&x2));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&z0));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  if (device) {
    PetscCall(TestEarly(3000, 4000, 5, "Short rows"));
    PetscCall(TestEarly(9000, 3000, 9000, "Some long rows"));
    PetscCall(TestEarly(3000, 30, 3000, "Mostly long rows"));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  build:
    requires: cuda

  test:
    args: -format {{evchyb csroverlap fastload hbp}}
    command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args} -format ${iformat}
    output_file: output/empty.out

  test:
    suffix: clusters
    args: -mat_evchyb_order cluster
    command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}
    output_file: output/empty.out

TEST*/
