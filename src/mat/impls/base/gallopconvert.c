/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Conversions of Gallop matrices, and copies of them.
*/

#include <gallop/matgallopimpl.h>

/* From a Gallop matrix to anything that PETSc can convert the parent to: by way of the parent */
static PetscErrorCode MatConvert_Gallop_Any(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  Mat            B = A;
  Mat_Gallop    *g;
  GallopType     type;
  PetscBool      same, asked;
  MatType        parent;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  type   = g->type;
  asked  = g->optionsasked;
  parent = GallopParentType(g->mpi, g->deviceparent);
  if (reuse != MAT_INPLACE_MATRIX) { /* as MatConvert() makes AIJ of AIJ: MatDuplicate() would copy the viewer and the DM too */
    PetscUseTypeMethod(A, duplicate, MAT_COPY_VALUES, &B);
    PetscCall(MatPropagateSymmetryOptions(A, B));
  }
  PetscCall(MatGallopDetach(B));
  PetscCall(PetscStrendswith(parent, newtype, &same)); /* aij, seqaij */
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatConvert(B, newtype, MAT_REUSE_MATRIX, newmat));
    PetscCall(MatDestroy(&B));
  } else {
    if (!same) {
      ierr = MatConvert(B, newtype, MAT_INPLACE_MATRIX, &B);
      if (ierr && B == A) { /* who goes on has a matrix of ours, with the options of the database */
        PetscCall(MatConvert_AIJ_Gallop(A, type->aijroot, MAT_INPLACE_MATRIX, &A));
        PetscCall(MatGallopGetContext(A, &g));
        g->optionsasked = asked;
      } else if (ierr) PetscCall(MatDestroy(&B));
      PetscCall(ierr);
    }
    *newmat = B;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls f(A, name) for every function composed with A whose name begins with prefix */
static PetscErrorCode ForEachComposed(Mat A, const char prefix[], PetscErrorCode (*f)(Mat, const char[], const char[]), const char arg[])
{
  const char **names = NULL;
  char       **copies;
  int          n = 0;
  PetscBool    match;

  PetscFunctionBegin;
  if (!((PetscObject)A)->qlist) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFunctionListGet(((PetscObject)A)->qlist, &names, &n));
  PetscCall(PetscMalloc1(n, &copies)); /* f changes the list that the names belong to */
  for (int k = 0; k < n; k++) PetscCall(PetscStrallocpy(names[k], &copies[k]));
  PetscCall(PetscFree(names));
  for (int k = 0; k < n; k++) {
    PetscErrorCodeFn *composed;

    PetscCall(PetscStrbeginswith(copies[k], prefix, &match));
    if (match) PetscCall(PetscObjectQueryFunction((PetscObject)A, copies[k], &composed));
    if (match && composed) PetscCall((*f)(A, copies[k], arg));
    PetscCall(PetscFree(copies[k]));
  }
  PetscCall(PetscFree(copies));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatConvert_seqaij_X_C gives MatConvert_<own>_X_C */
static PetscErrorCode ComposeConversionTo(Mat A, const char name[], const char own[])
{
  const char *target;
  char       *p, key[128];

  PetscFunctionBegin;
  PetscCall(PetscStrstr(name + sizeof("MatConvert_") - 1, "_", &p));
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  target = p + 1;
  PetscCall(PetscSNPrintf(key, sizeof(key), "MatConvert_%s_%s", own, target));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, key, MatConvert_Gallop_Any));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Uncompose(Mat A, const char name[], const char own[])
{
  char *p;

  PetscFunctionBegin;
  PetscCall(PetscStrstr(name, own, &p));
  if (p) PetscCall(PetscObjectComposeFunction((PetscObject)A, name, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopComposeConversions - Tells PETSc which conversions a matrix of ours has, under all of its names */
PetscErrorCode MatGallopComposeConversions(Mat A, GallopType type, PetscBool mpi)
{
  const char *const own = mpi ? type->mpi : type->seq;
  char              key[128], prefix[64];
  GallopType        other;

  PetscFunctionBegin;
  /* PETSc asks for the name as the caller wrote it, with seq, mpi or nothing before it */
  for (int device = 0; device < 2; device++) {
    const MatType     parent  = GallopParentType(mpi, (PetscBool)device);
    const char *const names[] = {own, type->root, type->aijroot};

    for (int k = 0; k < 3; k++) {
      PetscCall(PetscSNPrintf(key, sizeof(key), "MatConvert_%s_%s_C", parent, names[k]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, key, MatConvert_AIJ_Gallop));
    }
    PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "MatConvert_%s_", parent));
    PetscCall(ForEachComposed(A, prefix, ComposeConversionTo, own));
    PetscCall(PetscSNPrintf(key, sizeof(key), "MatConvert_%s_%s_C", own, parent));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, key, MatConvert_Gallop_Any));
  }
  PetscCall(GallopTypeGetList(&other));
  for (; other; other = other->next) {
    const char *const names[] = {mpi ? other->mpi : other->seq, other->root, other->aijroot};

    for (int k = 0; k < 3; k++) {
      if (other == type && k != 1) continue; /* of its own names, PETSc does not see that evchyb is seqaijevchyb */
      PetscCall(PetscSNPrintf(key, sizeof(key), "MatConvert_%s_%s_C", own, names[k]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, key, MatConvert_AIJ_Gallop));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopForgetConversions - Takes them away again: every own name ends with the root name */
PetscErrorCode MatGallopForgetConversions(Mat A, GallopType type)
{
  PetscFunctionBegin;
  PetscCall(ForEachComposed(A, "MatConvert_", Uncompose, type->root));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The duplicate B of an MPI matrix that is bound to the CPU is not, but its vector of ghost values has the host's functions all the same: a duplicate of that would have no array */
static PetscErrorCode UnbindDuplicate(Mat A, Mat B)
{
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)B, MATMPIAIJ, &mpi));
  if (!mpi || !GallopBoundToCPU(A) || GallopBoundToCPU(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBindToCPU(B, PETSC_TRUE));
  PetscCall(MatBindToCPU(B, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatConvert() from AIJ, AIJCUSPARSE or another Gallop type */
PetscErrorCode MatConvert_AIJ_Gallop(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  Mat         B;
  Mat_Gallop *g;
  GallopType  type;
  PetscBool   device = PETSC_FALSE, host;

  PetscFunctionBegin;
  PetscCall(GallopTypeFind(newtype, &type));
  PetscCheck(type, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_UNKNOWN_TYPE, "%s is not a Gallop matrix type", newtype);
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
    PetscCall(UnbindDuplicate(A, *newmat));
  }
  B = *newmat;
  if (B->factortype != MAT_FACTOR_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  /* -mat_seqaij_type within an operation that sees parents' names only: it may set such a name again, which would empty a matrix that is ours */
  if (reuse == MAT_INPLACE_MATRIX && !B->preallocated && GallopLoanIsOpen()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(B, &g));
  if (g && g->type != type) PetscCall(MatGallopDetach(B));

  /* the parent on the GPU, if there is one, also of a matrix that MatSeqAIJSetType() converts while it is created */
  PetscCall(MatGallopDeviceOnAllProcesses(B, &device));
  if (device) {
    PetscErrorCode (*convert)(Mat, MatType, MatReuse, Mat *) = NULL;

    PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJ, &host));
    if (host) PetscCall(PetscObjectQueryFunction((PetscObject)B, "MatConvert_seqaij_seqaijcusparse_C", &convert));
    PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIAIJ, &host));
    if (host) PetscCall(PetscObjectQueryFunction((PetscObject)B, "MatConvert_mpiaij_mpiaijcusparse_C", &convert));
    if (convert) {
      GallopLoan loan;

      PetscCall(GallopLoanBegin(&loan));
      PetscCall(GallopLoanAdd(&loan, B)); /* blocks may be ours already, as those of MatGetMultiProcBlock(): setting the parent's type would empty them */
      GallopLoanCall(&loan, (*convert)(B, NULL, MAT_INPLACE_MATRIX, &B));
      if (host) { /* an MPIAIJ matrix, bound to the CPU as all on the host, has bound its blocks in its assembly */
        Mat blocks[2];

        PetscCall(MatMPIAIJGetSeqAIJ(B, &blocks[0], &blocks[1], NULL));
        for (int k = 0; k < 2; k++)
          if (blocks[k]) PetscCall(MatBindToCPU(blocks[k], PETSC_FALSE));
      }
    }
  }
  PetscCall(MatGallopAttach(B, type));
  if (B->assembled) {
    PetscBool mpi;

    PetscCall(PetscStrcmp(((PetscObject)B)->type_name, type->mpi, &mpi));
    if (mpi) PetscCall(MatGallopGetBlocks(B, NULL, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDuplicate_Gallop(Mat A, MatDuplicateOption option, Mat *B)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (A->hash_active && g->deviceparent) { /* no entries to copy yet, and AIJCUSPARSE would take the copy out of its hash table */
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), B));
    PetscCall(MatSetSizes(*B, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
    PetscCall(MatSetBlockSizesFromMats(*B, A, A));
    PetscCall(MatSetType(*B, ((PetscObject)A)->type_name));
    PetscCall(MatGallopCopyOptions(A, *B));
    PetscCall(MatSetUp(*B));
    if (A->rmap->mapping) PetscCall(MatSetLocalToGlobalMapping(*B, A->rmap->mapping, A->cmap->mapping));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall((*g->parent.duplicate)(A, option, B));
  PetscCall(UnbindDuplicate(A, *B));
  PetscCall(MatGallopShareCOO(A, *B));
  PetscCall(MatGallopAttach(*B, g->type));
  PetscCall(MatGallopCopyOptions(A, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc gives a plain matrix, for a sequential one a copy with all that is composed with it */
PetscErrorCode MatGetMultiProcBlock_Gallop(Mat A, MPI_Comm comm, MatReuse reuse, Mat *B)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g->mpi) { /* MPIAIJ reads the off-diagonal values on the host, be they old or not */
    Mat                offdiagonal;
    const PetscScalar *a;

    PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &offdiagonal, NULL));
    PetscCall(MatSeqAIJGetArrayRead(offdiagonal, &a));
    PetscCall(MatSeqAIJRestoreArrayRead(offdiagonal, &a));
  }
  PetscCall((*g->parent.getmultiprocblock)(A, comm, reuse, B));
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(MatGallopForget(*B, A));
    PetscCall(MatConvert_AIJ_Gallop(*B, g->type->aijroot, MAT_INPLACE_MATRIX, B));
    PetscCall(MatGallopCopyOptions(A, *B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
