/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: back to CSR. Each row is written by whoever has it: that is once in the life of a matrix. */

#include <gallop/cudaimpl.h>
#include "../evchyb.h"

/* A warp has a column block, and a lane a row of it */
__global__ static void __launch_bounds__(EVCHYB_THREADS) RestoreBlocksKernel(const SubELL ell, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const PetscCount at = GallopGlobalThread(), b = at / WarpSize;

  if (b >= ell.nb) return;
  const PetscInt   row = perm[at], first = i[row], len = i[row + 1] - first;
  const PetscCount from = ell.bnz[b] + at % WarpSize;

  for (PetscInt k = 0; k < len; k++) {
    j[first + k] = ell.j[from + (PetscCount)k * EVCHYB_BLOCK];
    a[first + k] = ell.as[from + (PetscCount)k * EVCHYB_BLOCK];
  }
}

/* A thread block has a row of SubCSR */
__global__ static void __launch_bounds__(EVCHYB_THREADS) RestoreRowsKernel(const SubCSR csr, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const PetscInt   row = perm[blockIdx.x], first = i[row], len = i[row + 1] - first;
  const PetscCount from = csr.i[blockIdx.x];

  for (PetscInt k = threadIdx.x; k < len; k += EVCHYB_THREADS) {
    j[first + k] = csr.j[from + k];
    a[first + k] = csr.as[from + k];
  }
}

/* EVCHYBPlainRestore_Device - All entries of the matrix whose rows begin at i, to j and a */
PetscErrorCode EVCHYBPlainRestore_Device(const EVCHYBPlain *p, const PetscInt i[], PetscInt j[], PetscScalar a[])
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (p->ell.nb) {
    RestoreBlocksKernel<<<GallopBlocksFor((PetscCount)p->ell.nb * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(p->ell, p->perm, i, j, a);
    GallopCheckLaunch();
  }
  if (p->csr.n) {
    RestoreRowsKernel<<<(unsigned int)p->csr.n, EVCHYB_THREADS, 0, stream>>>(p->csr, p->perm + p->ell.n, i, j, a);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
