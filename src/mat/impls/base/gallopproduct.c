/*
  Products of matrices, and factorizations: the parent's, which know the parent's names.

  PETSc finds a product by the exact types of its factors, and the parent's GPU code checks them again. So a product that has a Gallop matrix among
  its factors is set up, and its two phases are run, while those matrices carry their parent's names.
*/

#include <gallop/matgallopimpl.h>

PetscErrorCode GallopLoanBegin(GallopLoan *loan)
{
  PetscFunctionBegin;
  loan->n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoanAddOne(GallopLoan *loan, Mat A)
{
  Mat_Gallop *g;
  char       *name;
  PetscBool   same;

  PetscFunctionBegin;
  if (!A) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(A, &g));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, g->parenttype, &same));
  if (same) PetscFunctionReturn(PETSC_SUCCESS); /* lent already */
  PetscCheck(loan->n < (int)PETSC_STATIC_ARRAY_LENGTH(loan->mat), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Too many matrices in one operation");
  PetscCall(PetscStrallocpy(g->parenttype, &name));
  PetscCall(PetscObjectReference((PetscObject)A)); /* the operation may destroy it, as a block of a result that is set up anew */
  loan->mat[loan->n]            = A;
  loan->own[loan->n]            = ((PetscObject)A)->type_name;
  loan->lent[loan->n]           = name;
  ((PetscObject)A)->type_name   = name;
  A->ops->productsetfromoptions = g->parent.productsetfromoptions;
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
  for (; loan->n > 0; loan->n--) {
    const int   k = loan->n - 1;
    Mat         A = loan->mat[k];
    Mat_Gallop *g;

    if (((PetscObject)A)->type_name == loan->lent[k]) {
      ((PetscObject)A)->type_name = loan->own[k];
      PetscCall(PetscFree(loan->lent[k]));
    } else PetscCall(PetscFree(loan->own[k])); /* the operation gave A another type, and freed the lent name */
    PetscCall(MatGallopGetContext(A, &g));
    if (g) PetscCall(MatGallopInstall(A));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoanToProduct(GallopLoan *loan, Mat C)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  PetscCall(GallopLoanBegin(loan));
  PetscCall(GallopLoanAdd(loan, C));
  PetscCall(GallopLoanAdd(loan, product->A));
  PetscCall(GallopLoanAdd(loan, product->B));
  PetscCall(GallopLoanAdd(loan, product->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result of a product of Gallop matrices is one too, when it is sparse: the coarse matrices of a multigrid, for one */
static PetscErrorCode ResultAttach(Mat C)
{
  Mat_Product *product    = C->product;
  Mat          factors[3] = {product->A, product->B, product->C};
  Mat_Gallop  *g          = NULL, *own;
  PetscBool    parent;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(C, &own));
  if (own) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3 && !g; k++)
    if (factors[k]) PetscCall(MatGallopGetContext(factors[k], &g));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)C)->type_name, g->parenttype, &parent));
  if (parent) PetscCall(MatGallopAttach(C, g->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's two phases of a product, kept beside its result */
#define GALLOP_PRODUCT "MatGallopProduct"
typedef struct {
  PetscErrorCode (*symbolic)(Mat);
  PetscErrorCode (*numeric)(Mat);
} ProductPhases;

static PetscErrorCode ProductPhasesDestroy(PetscCtxRt ctx)
{
  return PetscFree(*(ProductPhases **)ctx);
}

static PetscErrorCode MatProductNumeric_Gallop(Mat C)
{
  ProductPhases *phases;
  GallopLoan     loan;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &phases));
  PetscCheck(phases, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "Call MatProductSetFromOptions() and MatProductSymbolic() first");
  PetscCall(LoanToProduct(&loan, C));
  PetscCall((*phases->numeric)(C));
  PetscCall(GallopLoanEnd(&loan));
  if (C->product) PetscCall(ResultAttach(C)); /* MatProductClear() may have been part of it */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Gallop(Mat C)
{
  ProductPhases *phases;
  GallopLoan     loan;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &phases));
  PetscCheck(phases, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "Call MatProductSetFromOptions() first");
  C->ops->productsymbolic = phases->symbolic;
  PetscCall(LoanToProduct(&loan, C));
  PetscCall((*phases->symbolic)(C));
  PetscCall(GallopLoanEnd(&loan));
  /* a parent's symbolic phase may have set C up anew, which leaves it without what is composed */
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &phases));
  if (C->ops->productnumeric != MatProductNumeric_Gallop) {
    phases->numeric        = C->ops->productnumeric;
    C->ops->productnumeric = MatProductNumeric_Gallop;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc comes here when factors are of the same Gallop type, or for any pair that it knows no product for (composed as anytype) */
PetscErrorCode MatProductSetFromOptions_Gallop(Mat C)
{
  ProductPhases *phases;
  GallopLoan     loan;

  PetscFunctionBegin;
  PetscCall(LoanToProduct(&loan, C));
  if (!loan.n) PetscFunctionReturn(PETSC_SUCCESS); /* called from below: PETSc knows no product for the parents either */
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(GallopLoanEnd(&loan));
  if (C->ops->productsymbolic && C->ops->productsymbolic != MatProductSymbolic_Gallop) {
    PetscCall(PetscNew(&phases));
    phases->symbolic        = C->ops->productsymbolic;
    C->ops->productsymbolic = MatProductSymbolic_Gallop;
    PetscCall(PetscObjectContainerCompose((PetscObject)C, GALLOP_PRODUCT, phases, ProductPhasesDestroy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factorizations on the GPU: cuSPARSE's of the parent. PETSc's own are found by the beginning of the type name. */
static PetscErrorCode MatGetFactor_gallop_cusparse(Mat A, MatFactorType ftype, Mat *F)
{
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *) = NULL;
  Mat_Gallop *g;

  PetscFunctionBegin;
  *F = NULL; /* declines: PETSc goes on to the next package */
  PetscCall(MatGallopGetContext(A, &g));
  if (g) PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, g->parenttype, ftype, NULL, NULL, &create));
  if (create) PetscCall((*create)(A, ftype, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSolverTypeRegister_Gallop(GallopType type)
{
  const MatFactorType ftypes[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  if (!PetscDefined(HAVE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ftypes); k++) PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, type->seq, ftypes[k], MatGetFactor_gallop_cusparse));
  PetscFunctionReturn(PETSC_SUCCESS);
}
