/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A product with what solvers do to it next, z = d (alpha A x + beta y) + gamma u + delta x, on the GPU: in one kernel by a format of ours, else in one after the product
*/

#include <gallop/matgallopimpl.h>

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode ToRead(Vec v, const PetscScalar **array)
{
  PetscFunctionBegin;
  *array = NULL;
  if (v) PetscCall(VecGetArrayReadAndMemType(v, array, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Restore(Vec v, const PetscScalar **array)
{
  PetscFunctionBegin;
  if (v) PetscCall(VecRestoreArrayReadAndMemType(v, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sum with A x in w, or without it where w is NULL */
static PetscErrorCode Add(const GallopTerms *terms, Vec x, Vec y, Vec w, Vec z)
{
  const PetscScalar  factors[] = {terms->alpha, terms->beta, terms->gamma, terms->delta};
  const PetscBool    keeps     = (PetscBool)(terms->u == z || w == z);
  Vec                vecs[]    = {w == z ? NULL : w, y, terms->d, terms->u == z ? NULL : terms->u, x};
  const PetscScalar *arrays[PETSC_STATIC_ARRAY_LENGTH(vecs)];
  PetscScalar       *to;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(z, &n));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(vecs); k++) PetscCall(ToRead(vecs[k], &arrays[k]));
  if (keeps) PetscCall(VecGetArrayAndMemType(z, &to, NULL));
  else PetscCall(VecGetArrayWriteAndMemType(z, &to, NULL));
  PetscCall(PetscLogEventBegin(Gallop_TermsAdd, z, 0, 0, 0));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(GallopTermsAdd_Device(n, w == z ? to : arrays[0], arrays[1], arrays[2], terms->u == z ? to : arrays[3], arrays[4], factors, to));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(6.0 * n));
  PetscCall(PetscLogEventEnd(Gallop_TermsAdd, z, 0, 0, 0));
  if (keeps) PetscCall(VecRestoreArrayAndMemType(z, &to));
  else PetscCall(VecRestoreArrayWriteAndMemType(z, &to));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(vecs); k++) PetscCall(Restore(vecs[k], &arrays[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of ours with two blocks. On one process a dot product tells solvers that the product is one kernel, for a graph: that of an MPI matrix there is not. */
static PetscErrorCode HasBlocks(Mat A, PetscBool *has)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  *has = (PetscBool)(size > 1 && A->ops->mult == MatMult_MPIGallop && A->assembled && !A->factortype);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  MatGallopMultTerms - z = d (alpha A x + beta y) + gamma u + delta x

  Neighbor-wise Collective

  Input Parameters:
+ A     - any matrix, or NULL for none
. terms - of the sum; u may be z
. x     - multiplied by A, and by delta; not z; NULL where there is neither
. y     - not z; NULL where beta is 0
- w     - workspace for A x; z where u is not

  Output Parameters:
+ z   - the sum
- dot - whether the dot product of terms is there, over the rows of this process; NULL where none is wanted

  Note:
  The vectors are on the GPU, and so is what they hold.
*/
PetscErrorCode MatGallopMultTerms(Mat A, const GallopTerms *terms, Vec x, Vec y, Vec w, Vec z, PetscBool *dot)
{
#if PetscDefined(HAVE_CUDA)
  const PetscBool bare     = (PetscBool)(terms->alpha == 1.0 && !y && !terms->d && !terms->u && terms->delta == 0.0);
  const PetscBool residual = (PetscBool)(terms->alpha == -1.0 && terms->beta == 1.0 && y && !terms->d && !terms->u && terms->delta == 0.0);
  PetscBool       done = PETSC_FALSE, blocks = PETSC_FALSE;

  PetscFunctionBegin;
  if (dot) *dot = PETSC_FALSE;
  if (A && (dot ? bare && w == z : w != z || residual) && z->map->n == A->rmap->n && x->map->n == A->cmap->n) PetscCall(HasBlocks(A, &blocks));
  if (blocks && dot) {
    PetscCall(MatGallopMultDot_MPI(A, terms, x, z, dot));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (blocks) PetscCall(MatGallopMultTerms_MPI(A, terms, x, y, w, z, &done));
  else if (A) PetscCall(MatGallopMultTerms_Seq(A, terms, x, y, w, z, &done, dot));
  if (!done && !(A && w == z && bare)) PetscCall(Add(terms, x, y, A ? w : NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)A, (void)terms, (void)x, (void)y, (void)w, (void)z, (void)dot;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
#endif
}
