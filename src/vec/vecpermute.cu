/* SPDX-License-Identifier: BSD-2-Clause */
/* Permuting vectors on the GPU */

#include <gallop/cudaimpl.h>
#include "vecpermute.h"

static constexpr int Threads = 256;

/* One side is read or written in order, the other is scattered: order tells where */
template <bool Inverse, typename V, typename I>
__global__ static void __launch_bounds__(Threads) PermuteKernel(PetscCount n, const I *__restrict__ order, const V *__restrict__ x, V *__restrict__ y)
{
  const PetscCount k = (PetscCount)blockIdx.x * Threads + threadIdx.x;

  if (k >= n) return;
  if constexpr (Inverse) y[order[k]] = x[k];
  else y[k] = x[order[k]];
}

/* y = x in the order, or from it; all arrays are on the GPU, and x is not y */
PetscErrorCode GallopDevicePermute(PetscInt n, const PetscInt order[], PetscBool inverse, const PetscScalar x[], PetscScalar y[])
{
  const unsigned int blocks = (unsigned int)(((PetscCount)n + Threads - 1) / Threads);
  cudaStream_t       stream;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (inverse) PermuteKernel<true, PetscScalar, PetscInt><<<blocks, Threads, 0, stream>>>((PetscCount)n, order, x, y);
  else PermuteKernel<false, PetscScalar, PetscInt><<<blocks, Threads, 0, stream>>>((PetscCount)n, order, x, y);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
