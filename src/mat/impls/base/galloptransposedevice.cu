/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSR arrays of a transpose, on the GPU */

#include <gallop/cudaimpl.h>
#include <gallop/matgallopimpl.h>
#include "../common/columns.h"

static size_t Carve(GallopColumns *c, PetscScalar **a, const GallopCSR *csr, void *base)
{
  GallopCarver carver(base);

  GallopColumnsCarve(csr, &carver, c);
  carver.Take(*a, csr->nz);
  return carver.Bytes();
}

/* Leaves no arrays where the GPU has no room */
PetscErrorCode GallopTransposedCreate_Device(const GallopCSR *csr, GallopTransposed *t)
{
  GallopColumns c = {};
  PetscScalar  *a;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopColumnsPrepare(csr, &c, stream));
  t->bytes = Carve(&c, &a, csr, NULL);
  PetscCall(GallopWorkspaceMalloc(t->bytes, &t->memory));
  if (!t->memory) {
    t->bytes = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  (void)Carve(&c, &a, csr, t->memory);
  PetscCall(GallopColumnsSort(csr, 0, a, &c, stream));
  t->csr = {csr->n, csr->m, csr->nz, c.begin, c.row, a, NULL, NULL, PETSC_MEMTYPE_CUDA, &t->host};
  PetscFunctionReturn(PETSC_SUCCESS);
}
