/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSR arrays of a transpose, on the GPU */

#include <gallop/cudaimpl.h>
#include <gallop/matgallopimpl.h>
#include "../common/columns.h"

/* Leaves no arrays where the GPU has no room */
PetscErrorCode GallopTransposedCreate_Device(const GallopCSR *csr, GallopTransposed *t)
{
  GallopColumns c;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopColumnsSort(csr, 0, PETSC_TRUE, &c, stream));
  if (!c.memory) PetscFunctionReturn(PETSC_SUCCESS);
  t->memory = c.memory;
  t->bytes  = c.bytes;
  t->csr    = {csr->n, csr->m, csr->nz, c.begin, c.row, c.values, NULL, NULL, PETSC_MEMTYPE_CUDA, &t->host};
  PetscFunctionReturn(PETSC_SUCCESS);
}
