/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The CSR arrays of a transpose, from which its format is built: z = A^T x is a product of that format then. Formats whose own kernels compute transposed products do without.
*/

#include <gallop/matgallopimpl.h>

static PetscErrorCode Create_Host(const GallopCSR *csr, PetscCount maxbytes, GallopTransposed *t)
{
  const size_t bytes = (size_t)(csr->n + 2) * sizeof(PetscInt) + (size_t)csr->nz * (sizeof(PetscInt) + sizeof(PetscScalar));
  PetscInt    *i, *j;
  PetscScalar *a;

  PetscFunctionBegin;
  if (maxbytes && bytes > (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc3(csr->n + 2, &i, csr->nz, &j, csr->nz, &a));
  PetscCall(PetscArrayzero(i, csr->n + 2));
  for (PetscCount k = 0; k < csr->nz; k++) i[csr->j[k] + 2]++;
  for (PetscInt c = 0; c < csr->n; c++) i[c + 2] += i[c + 1];
  for (PetscInt r = 0; r < csr->m; r++) {
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      const PetscInt to = i[csr->j[k] + 1]++; /* ends as the beginning of the next row */

      j[to] = r;
      a[to] = csr->a[k];
    }
  }
  t->csr   = (GallopCSR){csr->n, csr->m, csr->nz, i, j, a, i, j, PETSC_MEMTYPE_HOST, NULL, PETSC_TRUE, PETSC_TRUE};
  t->bytes = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopTransposedDestroy(GallopTransposed *t)
{
  PetscInt    *i = (PetscInt *)t->csr.i, *j = (PetscInt *)t->csr.j;
  PetscScalar *a = (PetscScalar *)t->csr.a;

  PetscFunctionBegin;
  if (!i) PetscFunctionReturn(PETSC_SUCCESS);
  if (t->memory) {
    PetscCall(GallopWorkspaceFree(t->memory));
    PetscCall(PetscFree(t->host));
  } else PetscCall(PetscFree3(i, j, a));
  PetscCall(PetscMemzero(t, sizeof(*t)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopTransposedCreate - Transposes arrays of CSR where they are, in place of those that there were

  Rows have their columns in ascending order. *fits is false where the GPU has no room, and on the host, where they stay, beyond maxbytes.
*/
PetscErrorCode GallopTransposedCreate(const GallopCSR *csr, PetscCount maxbytes, GallopTransposed *t, PetscBool *fits)
{
  PetscFunctionBegin;
  PetscCall(GallopTransposedDestroy(t));
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeCUDA(csr->memtype)) PetscCall(GallopTransposedCreate_Device(csr, t));
  else PetscCall(Create_Host(csr, maxbytes, t));
#else
  PetscCall(Create_Host(csr, maxbytes, t));
#endif
  *fits = (PetscBool)(t->csr.i != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCSRGetHostI - Where rows begin, on the host; copied at the first call where it is not there yet */
PetscErrorCode GallopCSRGetHostI(const GallopCSR *csr, const PetscInt **i)
{
  const size_t n = (size_t)csr->m + 1;

  PetscFunctionBegin;
  *i = PetscMemTypeHost(csr->memtype) ? csr->i : csr->host_i;
  if (*i) PetscFunctionReturn(PETSC_SUCCESS);
  if (!*csr->copied) {
    PetscCall(PetscMalloc1(n, csr->copied));
    PetscCall(GallopCopyToHost(*csr->copied, csr->memtype, csr->i, n * sizeof(PetscInt)));
  }
  *i = *csr->copied;
  PetscFunctionReturn(PETSC_SUCCESS);
}
