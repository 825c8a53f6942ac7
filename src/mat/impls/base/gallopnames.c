/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A debug PETSc has AIJCUSPARSE's functions check that a matrix has exactly that name. They serve every matrix that has AIJCUSPARSE's data, and ours have: for a call they carry the name.
  In an optimized PETSc there is nothing to do.
*/

#include <gallop/matgallopimpl.h>

#if GALLOP_NAMES_CHECKED
PetscErrorCode GallopNamesLend(GallopNames *names, Mat A, Mat B)
{
  PetscFunctionBegin;
  names->mat[0] = A;
  names->mat[1] = B;
  for (int k = 0; k < 2; k++) {
    Mat_Gallop *g = NULL;
    PetscBool   same;

    names->own[k] = NULL;
    if (names->mat[k]) PetscCall(MatGallopGetContext(names->mat[k], &g));
    if (!g || g->mpi || !g->deviceparent) continue;
    PetscCall(PetscObjectTypeCompare((PetscObject)names->mat[k], MATSEQAIJCUSPARSE, &same)); /* where a loan is open, or A is B */
    if (same) continue;
    names->own[k] = ((PetscObject)names->mat[k])->type_name;
    PetscCall(PetscStrallocpy(MATSEQAIJCUSPARSE, &((PetscObject)names->mat[k])->type_name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopNamesReturn(GallopNames *names)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    if (!names->own[k]) continue;
    PetscCall(PetscFree(((PetscObject)names->mat[k])->type_name));
    ((PetscObject)names->mat[k])->type_name = names->own[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetOption_SeqGallop(Mat A, MatOption option, PetscBool flag)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  GallopCallByName(A, NULL, (*g->parent.setoption)(A, option, flag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc runs for a matrix, and compares to tell where the other one of a sum is */
static PetscErrorCode (*AXPYOf(Mat A, const Mat_Gallop *g))(Mat, PetscScalar, Mat, MatStructure)
{
  return g && A->ops->axpy == MatAXPY_SeqGallop ? g->parent.axpy : A->ops->axpy;
}

static PetscErrorCode SamePattern(Mat A, Mat B, PetscBool *same)
{
  const PetscInt *i[2], *j[2], m = A->rmap->n;

  PetscFunctionBegin;
  PetscCall(MatGallopGetHostPattern(A, &i[0], &j[0]));
  PetscCall(MatGallopGetHostPattern(B, &i[1], &j[1]));
  PetscCall(PetscArraycmp(i[0], i[1], m + 1, same));
  if (*same) PetscCall(PetscArraycmp(j[0], j[1], i[0][m], same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE's, which compares whether both matrices have it */
static PetscErrorCode AXPYOnDevice(Mat Y, PetscScalar a, Mat X, MatStructure structure, PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure))
{
  PetscErrorCode (*const own)(Mat, PetscScalar, Mat, MatStructure) = Y->ops->axpy, (*const other)(Mat, PetscScalar, Mat, MatStructure) = X->ops->axpy;
  PetscErrorCode ierr;

  X->ops->axpy = axpy;
  Y->ops->axpy = axpy;
  ierr         = (*axpy)(Y, a, X, structure);
  X->ops->axpy = other;
  Y->ops->axpy = own;
  return ierr;
}

/* AIJCUSPARSE's function leaves a sum of two patterns to MATSEQAIJ's, which gives the result the name that Y has then: that one is called here, by our name */
PetscErrorCode MatAXPY_SeqGallop(Mat Y, PetscScalar a, Mat X, MatStructure structure)
{
  Mat_Gallop *g, *x;
  PetscBool   device;
  PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure);

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(Y, &g));
  PetscCall(MatGallopGetContext(X, &x));
  axpy   = g->parent.axpy;
  device = (PetscBool)(g->deviceparent && !GallopBoundToCPU(Y) && AXPYOf(X, x) == axpy);
  if (device && structure != SAME_NONZERO_PATTERN) {
    PetscBool same;

    PetscCall(SamePattern(X, Y, &same));
    if (same) structure = SAME_NONZERO_PATTERN;
    else device = (PetscBool)(structure == SUBSET_NONZERO_PATTERN && Y->cmap->n != 1 && !PetscDefined(USE_64BIT_INDICES));
  }
  if (device) {
    GallopCallByName(X, Y, AXPYOnDevice(Y, a, X, structure, axpy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (g->deviceparent && !GallopBoundToCPU(Y)) {
    const struct _MatOps *plain;

    Y->transupdated = PETSC_FALSE; /* AIJCUSPARSE's transpose is old */
    PetscCall(MatGallopGetPlainOps(&plain));
    axpy = plain->axpy;
  }
  PetscCall((*axpy)(Y, a, X, structure));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of plain MPI matrices whose blocks are ours reads its parts by this one */
static PetscErrorCode MatSeqAIJCopySubArray_SeqGallop(Mat A, PetscInt n, const PetscInt entries[], PetscScalar v[])
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  GallopCallByName(A, NULL, (*g->copysubarray)(A, n, entries, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJGetLocalMatMerge_MPIGallop(Mat A, MatReuse reuse, IS *columns, Mat *local)
{
  Mat_Gallop *g;
  Mat         diagonal, offdiagonal;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &offdiagonal, NULL));
  GallopCallByName(diagonal, offdiagonal, (*g->getlocalmatmerge)(A, reuse, columns, local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopNamesCompose - Puts our functions over the parent's, which has none on the host, nor a sequential matrix while it is bound to the CPU */
PetscErrorCode GallopNamesCompose(Mat A)
{
  Mat_Gallop *g;
  PetscErrorCode (*copy)(Mat, PetscInt, const PetscInt[], PetscScalar[]);
  PetscErrorCode (*merge)(Mat, MatReuse, IS *, Mat *);

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSeqAIJCopySubArray_C", &copy));
  if (copy) {
    if (copy != MatSeqAIJCopySubArray_SeqGallop) g->copysubarray = copy;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSeqAIJCopySubArray_C", MatSeqAIJCopySubArray_SeqGallop));
  }
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatMPIAIJGetLocalMatMerge_C", &merge));
  if (merge) {
    if (merge != MatMPIAIJGetLocalMatMerge_MPIGallop) g->getlocalmatmerge = merge;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatMPIAIJGetLocalMatMerge_C", MatMPIAIJGetLocalMatMerge_MPIGallop));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopNamesForget(Mat copied, const Mat_Gallop *g)
{
  PetscErrorCode (*copy)(Mat, PetscInt, const PetscInt[], PetscScalar[]);
  PetscErrorCode (*merge)(Mat, MatReuse, IS *, Mat *);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)copied, "MatSeqAIJCopySubArray_C", &copy));
  if (copy == MatSeqAIJCopySubArray_SeqGallop) PetscCall(PetscObjectComposeFunction((PetscObject)copied, "MatSeqAIJCopySubArray_C", g->copysubarray));
  PetscCall(PetscObjectQueryFunction((PetscObject)copied, "MatMPIAIJGetLocalMatMerge_C", &merge));
  if (merge == MatMPIAIJGetLocalMatMerge_MPIGallop) PetscCall(PetscObjectComposeFunction((PetscObject)copied, "MatMPIAIJGetLocalMatMerge_C", g->getlocalmatmerge));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode GallopNamesCompose(Mat A)
{
  (void)A;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopNamesForget(Mat copy, const Mat_Gallop *g)
{
  (void)copy, (void)g;
  return PETSC_SUCCESS;
}
#endif
