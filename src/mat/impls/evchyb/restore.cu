/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB on the GPU: back to CSR, for a format in another order where the parent's arrays have gone. That is once in the life of a matrix. */

#include <gallop/cudaimpl.h>
#include "evchyb.h"

/*
  EVCHYBRestore_Device - The CSR arrays of a matrix on the GPU, from its storage: each row's entries in their order, also where that is not by columns, and the bits of their values

  Input Parameters:
+ ev      - the format, which has rows and columns as they are in the matrix, without clusters
- pattern - the matrix, of which the host's arrays are looked at alone

  Output Parameters:
+ csr    - the matrix on the GPU
- memory - what is to be freed, NULL where there is no room for it, or pattern is another one
*/
PetscErrorCode EVCHYBRestore_Device(const EVCHYB *ev, const GallopCSR *pattern, GallopCSR *csr, void **memory)
{
  PetscInt    *i, *j;
  PetscScalar *a;
  size_t       bytes = 0;

  PetscFunctionBegin;
  *csr    = *pattern;
  *memory = NULL;
  if (pattern->m != ev->m || pattern->nz != ev->nz) PetscFunctionReturn(PETSC_SUCCESS); /* it is not the matrix that is stored */
  for (int pass = 0; pass < 2; pass++) {
    GallopCarver carver(pass ? *memory : NULL);

    carver.Take(i, (PetscCount)pattern->m + 1);
    carver.Take(j, pattern->nz);
    carver.Take(a, pattern->nz);
    bytes = carver.Bytes();
    if (!pass) PetscCall(GallopDeviceMalloc(bytes, memory));
    if (!*memory) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GallopDeviceCopyIn(i, pattern->host_i, ((size_t)pattern->m + 1) * sizeof(*i)));
  if (ev->packed) PetscCall(EVCHYBPackedRestore_Device(ev->packed, i, j, a));
  else PetscCall(EVCHYBPlainRestore_Device(ev->plain, i, j, a));
  csr->i = i;
  csr->j = j;
  csr->a = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}
