/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Loans of type names: while one of the parent's functions runs that compares exact names, a matrix and its blocks carry the parent's.
*/

#include <gallop/matgallopimpl.h>

static int lent = 0; /* matrices that carry their parent's name now */

PetscBool GallopLoanIsOpen(void)
{
  return lent > 0 ? PETSC_TRUE : PETSC_FALSE;
}

PetscErrorCode GallopLoanBegin(GallopLoan *loan)
{
  PetscFunctionBegin;
  loan->n    = 0;
  loan->host = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoanAddOne(GallopLoan *loan, Mat A)
{
  Mat_Gallop *g;
  char      **name;
  PetscBool   own;

  PetscFunctionBegin;
  if (!A) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(A, &g));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, g->mpi ? g->type->mpi : g->type->seq, &own));
  if (!own) PetscFunctionReturn(PETSC_SUCCESS); /* lent already */
  PetscCheck(loan->n < (int)PETSC_STATIC_ARRAY_LENGTH(loan->mat), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Too many matrices in one operation");
  name                = &g->lent[loan->host];
  loan->lent[loan->n] = GallopParentType(g->mpi, (PetscBool)(g->deviceparent && !loan->host));
  if (!*name) PetscCall(PetscStrallocpy(loan->lent[loan->n], name));
  PetscCall(PetscObjectReference((PetscObject)A)); /* the operation may destroy it, as a block of a result that is set up anew */
  if (!g->mpi) PetscCall(MatGallopTrustHost(A));
  loan->mat[loan->n] = A;
  loan->own[loan->n] = ((PetscObject)A)->type_name;
  lent++;
  ((PetscObject)A)->type_name   = *name; /* which the operation may free, as it may any matrix's */
  *name                         = NULL;
  A->ops->productsetfromoptions = g->parent.productsetfromoptions;
  loan->ops[loan->n]            = *A->ops;
  loan->n++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Also lends to the blocks of an MPI matrix */
PetscErrorCode GallopLoanAdd(GallopLoan *loan, Mat A)
{
  PetscBool mpi = PETSC_FALSE;

  PetscFunctionBegin;
  if (!A) PetscFunctionReturn(PETSC_SUCCESS);
  if (((PetscObject)A)->type_name) PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  if (mpi) {
    Mat diagonal, offdiagonal;

    PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &offdiagonal, NULL));
    PetscCall(LoanAddOne(loan, diagonal));
    PetscCall(LoanAddOne(loan, offdiagonal));
  }
  PetscCall(LoanAddOne(loan, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopLoanEnd(GallopLoan *loan)
{
  PetscFunctionBegin;
  for (; loan->n > 0; loan->n--, lent--) {
    const int   k = loan->n - 1;
    Mat         A = loan->mat[k];
    Mat_Gallop *g;
    PetscBool   same;

    PetscCall(MatGallopGetContext(A, &g));
    PetscCall(PetscStrcmp(((PetscObject)A)->type_name, loan->lent[k], &same));
    if (g && same) {
      if (g->deviceparent && !g->mpi) MatGallopNoteCopy(A, g); /* which the operation may have made */
      PetscCall(PetscFree(g->lent[loan->host]));
      g->lent[loan->host]         = ((PetscObject)A)->type_name;
      ((PetscObject)A)->type_name = loan->own[k];
    } else PetscCall(PetscFree(loan->own[k])); /* the operation gave A another type */
    /* our functions may have gone, but not where the operation left them alone: MatSetOperation() may have put a program's in their place before */
    if (g && same && !memcmp(A->ops, &loan->ops[k], sizeof(*A->ops)) && !A->hash_active) A->ops->productsetfromoptions = MatProductSetFromOptions_Gallop;
    else if (g) PetscCall(MatGallopInstall(A));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
