/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: back to CSR, for a format in another order where the parent's arrays have gone. That is once in the life of a matrix: each row is written by whoever has it. */

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

/*
  EVCHYBPlainRestore_Device - The CSR arrays of a matrix on the GPU, from its storage, which has its rows in their own order

  Input Parameters:
+ p       - the storage
- pattern - the matrix, of which the host's arrays are looked at alone

  Output Parameters:
+ csr    - the matrix on the GPU
- memory - what is to be freed, NULL where there is no room for it
*/
PetscErrorCode EVCHYBPlainRestore_Device(const EVCHYBPlain *p, const GallopCSR *pattern, GallopCSR *csr, void **memory)
{
  PetscInt    *i, *j;
  PetscScalar *a;
  size_t       bytes = 0;
  cudaStream_t stream;

  PetscFunctionBegin;
  *csr = *pattern;
  for (int pass = 0; pass < 2; pass++) {
    GallopCarver carver(pass ? *memory : NULL);

    carver.Take(i, (PetscCount)pattern->m + 1);
    carver.Take(j, pattern->nz);
    carver.Take(a, pattern->nz);
    bytes = carver.Bytes();
    if (!pass) PetscCall(GallopDeviceMalloc(bytes, memory));
    if (!*memory) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceCopyIn(i, pattern->host_i, ((size_t)pattern->m + 1) * sizeof(*i)));
  if (p->ell.nb) {
    RestoreBlocksKernel<<<GallopBlocksFor((PetscCount)p->ell.nb * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(p->ell, p->perm, i, j, a);
    GallopCheckLaunch();
  }
  if (p->csr.n) {
    RestoreRowsKernel<<<(unsigned int)p->csr.n, EVCHYB_THREADS, 0, stream>>>(p->csr, p->perm + p->ell.n, i, j, a);
    GallopCheckLaunch();
  }
  csr->i = i;
  csr->j = j;
  csr->a = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}
