/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Products of matrices: the parent's, which know the parent's names. Ours is C = A B with a dense B, where there is room for TiledSpMM and it is worth it: its numeric phase, and in MPI
  its symbolic one too.

  PETSc finds a product by the exact types of its factors, and the parent's GPU code checks them again. So a product that has a Gallop matrix among
  its factors is set up, and its two phases are run, while those matrices carry their parent's names.
*/

#include <gallop/matgallopimpl.h>

static PetscErrorCode LoanToProduct(GallopLoan *loan, Mat C, PetscBool host)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  PetscCall(GallopLoanBegin(loan));
  loan->host = host;
  PetscCall(GallopLoanAdd(loan, C));
  PetscCall(GallopLoanAdd(loan, product->A));
  PetscCall(GallopLoanAdd(loan, product->B));
  PetscCall(GallopLoanAdd(loan, product->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A phase that the parent computes on the GPU, and what it keeps for the next one, use the copies of its factors there, and leave the result there */
static PetscErrorCode KeepCopies(Mat C, PetscBool host)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  if (host) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopKeepCopy(product->A));
  PetscCall(MatGallopKeepCopy(product->B));
  PetscCall(MatGallopKeepCopy(product->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Phases of the host's parents read the host's values as they are, however old, and write those of C without a word: that of a dense matrix and a sparse one, that with a blocked interpolation */
static PetscErrorCode BringFactorsToHost(Mat C, PetscBool host)
{
  const Mat_Product *product    = C->product;
  const Mat          factors[4] = {product->A, product->B, product->C, C};

  PetscFunctionBegin;
  for (int k = 0; k < 4 && host; k++) {
    Mat         factor = factors[k], blocks[2];
    Mat_Gallop *g      = NULL;
    PetscBool   blocked = PETSC_FALSE;

    if (factor) PetscCall(PetscObjectTypeCompareAny((PetscObject)factor, &blocked, MATSEQMAIJ, MATMPIMAIJ, ""));
    if (blocked) PetscCall(MatMAIJGetAIJ(factor, &factor));
    if (factor) PetscCall(MatGallopGetContext(factor, &g));
    if (!g) continue;
    blocks[0] = factor;
    blocks[1] = NULL;
    if (g->mpi) PetscCall(MatGallopGetBlocks(factor, &blocks[0], &blocks[1]));
    for (int b = 0; b < 2; b++) {
      if (!blocks[b]) continue;
      if (factor == C) PetscCall(MatGallopHostIsWritten(blocks[b]));
      else PetscCall(MatGallopBringToHost(blocks[b]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asked before the phases: one may put another matrix in the place of a factor */
static PetscErrorCode FactorType(const Mat_Product *product, GallopType *type)
{
  const Mat   factors[3] = {product->A, product->B, product->C};
  Mat_Gallop *g          = NULL;

  PetscFunctionBegin;
  for (int k = 0; k < 3 && !g; k++)
    if (factors[k]) PetscCall(MatGallopGetContext(factors[k], &g));
  *type = g ? g->type : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of sparse matrices for which AIJCUSPARSE takes AIJ's functions: where it is asked to, where a factor is bound to the CPU, and those that it has not in MPI. Some of these functions read old values of factors, and write the result without a word. */
static PetscErrorCode IsParentsOnHost(Mat C, PetscBool *host)
{
  static const char *const names[] = {
    [MATPRODUCT_AB]   = "matmatmult",
    [MATPRODUCT_AtB]  = "mattransposematmult",
    [MATPRODUCT_RARt] = "matrart",
    [MATPRODUCT_PtAP] = "matptap",
    [MATPRODUCT_ABC]  = "matmatmatmult",
  };
  const Mat_Product *product    = C->product;
  const Mat          factors[3] = {product->A, product->B, product->C};
  const char        *name       = product->type < PETSC_STATIC_ARRAY_LENGTH(names) ? names[product->type] : NULL;
  PetscBool          mpi, sparse = PETSC_TRUE, asked = PETSC_FALSE, bound = PETSC_FALSE;
  char               option[64];

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  for (int k = 0; k < 3 && sparse; k++) {
    if (!factors[k]) continue;
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)factors[k], &sparse, MATSEQAIJ, MATMPIAIJ, ""));
    bound = (PetscBool)(bound || GallopBoundToCPU(factors[k]));
  }
  if (!sparse) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->A, MATMPIAIJ, &mpi));
  if (name) {
    PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_backend_cpu", product->api_user ? name : "mat_product_algorithm"));
    PetscCall(PetscOptionsGetBool(NULL, ((PetscObject)C)->prefix, option, &asked, NULL));
  }
  *host = (PetscBool)(asked || bound || (mpi && product->type != MATPRODUCT_AB && product->type != MATPRODUCT_AtB && product->type != MATPRODUCT_PtAP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc knows no product of AIJCUSPARSE and AIJ, or MAIJ, in MPI: with a factor of plain AIJ, of a parent of that type, or of MAIJ, all are AIJ. So are they where the GPU's product is wrong, the GPU has no room, cuSPARSE does not take a factor, or AIJCUSPARSE's product is AIJ's. */
static PetscErrorCode HasHostFactor(Mat C, PetscBool *host)
{
  const Mat_Product *product    = C->product;
  const Mat          factors[3] = {product->A, product->B, product->C};
  PetscBool          dense, mpidense, takes = PETSC_TRUE, fits = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatProductIsDense_Gallop(product, &dense, &mpidense));
  if (dense) PetscCall(MatGallopParentFits(product->A, PETSC_TRUE, &fits));
  PetscCall(IsParentsOnHost(C, host));
  *host = (PetscBool)(*host || !fits);
  for (int k = 0; k < 3 && !*host; k++) {
    Mat_Gallop *g = NULL;

    if (factors[k]) PetscCall(PetscObjectTypeCompareAny((PetscObject)factors[k], host, MATSEQAIJ, MATMPIAIJ, MATSEQMAIJ, MATMPIMAIJ, ""));
    if (factors[k] && !*host) PetscCall(MatGallopGetContext(factors[k], &g));
    if (g && !dense && !mpidense) PetscCall(MatGallopParentTakes(factors[k], g, &takes));
    if (g) *host = PetscNot(g->deviceparent && takes);
  }
  if (!*host && product->type == MATPRODUCT_AtB) PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->B, MATMPIDENSE, host)); /* the GPU's keeps the values that A had when it was set up */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result of a product of Gallop matrices is one too, when it is sparse: the coarse matrices of a multigrid, for one */
static PetscErrorCode ResultAttach(Mat C, GallopType type)
{
  Mat_Gallop *own;
  PetscBool   parent;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(C, &own));
  if (own || !type) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)C, &parent, MATSEQAIJ, MATSEQAIJCUSPARSE, MATMPIAIJ, MATMPIAIJCUSPARSE, ""));
  if (parent) PetscCall(MatConvert_AIJ_Gallop(C, type->root, MAT_INPLACE_MATRIX, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's two phases of a product, kept beside its result */
#define GALLOP_PRODUCT "MatGallopProduct"
typedef struct {
  PetscErrorCode (*symbolic)(Mat);
  PetscErrorCode (*numeric)(Mat); /* NULL: ours needs no other */
  GallopType    type;             /* of the result */
  PetscBool     host;             /* found under the names of the host's parents */
  PetscBool     densehost;        /* the result has to be of type MATSEQDENSE, which the GPU's symbolic phase has changed */
  PetscObjectId factors[3];       /* those of the symbolic phase, sparse ones where it keeps no others */
  PetscBool     first;            /* no numeric phase has run since */
  PetscBool     unset;            /* then: the values that the first one would take were computed of unset ones */
  PetscBool     stale;            /* set up for other data than the product has now */
  PetscBool     ondevice;         /* the result was of type MATSEQDENSECUDA then */
  PetscErrorCode (*AB)(Mat, Mat, Mat); /* what the symbolic phase set, and the numeric one of AIJ calls: a dense result that changes its type sets its own */
  PetscErrorCode (*AtB)(Mat, Mat, Mat);
  PetscErrorCode (*ABt)(Mat, Mat, Mat);
} ProductPhases;

static PetscErrorCode ProductPhasesDestroy(PetscCtxRt ctx)
{
  return PetscFree(*(ProductPhases **)ctx);
}

static PetscErrorCode GetFactorIds(const Mat_Product *product, PetscObjectId ids[3])
{
  const Mat factors[3] = {product->A, product->B, product->C};

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscBool dense = PETSC_FALSE; /* products of two factors keep nothing of it */

    ids[k] = 0;
    if (factors[k] && (product->type == MATPRODUCT_AB || product->type == MATPRODUCT_AtB)) PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)factors[k], &dense, MATSEQDENSE, MATMPIDENSE, ""));
    if (factors[k] && !dense) PetscCall(PetscObjectGetId((PetscObject)factors[k], &ids[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductPhasesKeep(Mat C, const ProductPhases *keep)
{
  ProductPhases *phases;

  PetscFunctionBegin;
  PetscCall(PetscNew(&phases));
  *phases       = *keep;
  phases->stale = PETSC_FALSE;
  phases->first = PETSC_TRUE;
  PetscCall(GetFactorIds(C->product, phases->factors));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &phases->ondevice));
  phases->AB  = C->ops->matmultnumeric;
  phases->AtB = C->ops->transposematmultnumeric;
  phases->ABt = C->ops->mattransposemultnumeric;
  PetscCall(PetscObjectContainerCompose((PetscObject)C, GALLOP_PRODUCT, phases, ProductPhasesDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATSHELL runs products of the matrix that it was made of with data that it keeps and frees itself: they are put by while a product that was set up again has its own */
typedef struct {
  PetscBool shell;
  void     *data;
  Mat       work;
} PutBy;

static PetscErrorCode SetUpAgain(Mat C, PutBy *theirs)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  theirs->shell = PetscNot(product->setfromoptionscalled); /* it is made for one numeric phase */
  if (theirs->shell) {
    theirs->data   = product->data;
    theirs->work   = product->Dwork;
    product->Dwork = NULL;
  } else {
    if (product->data && product->destroy) PetscCall((*product->destroy)(&product->data));
    PetscCall(MatDestroy(&product->Dwork));
  }
  product->data    = NULL;
  product->destroy = NULL;
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is kept with C was set up for the factors of this time, and its data goes: the next time it is set up again */
static PetscErrorCode PutBack(Mat C, const PutBy *theirs)
{
  Mat_Product   *product = C->product;
  ProductPhases *kept;

  PetscFunctionBegin;
  if (!theirs->shell) PetscFunctionReturn(PETSC_SUCCESS);
  if (product->data && product->destroy) PetscCall((*product->destroy)(&product->data));
  PetscCall(MatDestroy(&product->Dwork));
  product->data    = theirs->data;
  product->Dwork   = theirs->work;
  product->destroy = NULL;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &kept));
  if (kept) kept->stale = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X, Y and Z where AIJCUSPARSE computes a product of three sparse matrices, on one process, as X (Y Z) */
static PetscErrorCode GetNested(const Mat_Product *product, Mat factors[3], PetscBool *nested)
{
  const PetscBool abc = (PetscBool)(product->type == MATPRODUCT_ABC);

  PetscFunctionBegin;
  *nested = (PetscBool)(abc || product->type == MATPRODUCT_PtAP || product->type == MATPRODUCT_RARt);
  if (!*nested) PetscFunctionReturn(PETSC_SUCCESS);
  factors[0] = abc ? product->A : product->B;
  factors[1] = abc ? product->B : product->A;
  factors[2] = abc ? product->C : product->B;
  for (int k = 0; k < 3 && *nested; k++) PetscCall(PetscObjectBaseTypeCompare((PetscObject)factors[k], MATSEQAIJ, nested));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Where Y or Z has its values on the GPU alone, the symbolic phase leaves those of Y Z unset, copies these to the GPU and takes them for its values there: with an X that is at both places, it computes
  the result of them, and the first numeric phase has nothing more to do (PETSc 3.26).
*/
static PetscErrorCode IsOfUnset(const Mat_Product *product, PetscBool host, PetscBool *unset)
{
  PetscFunctionBegin;
  *unset = PETSC_FALSE;
#if PetscDefined(HAVE_CUDA)
  if (!host && product->api_user) {
    Mat f[3];

    PetscCall(GetNested(product, f, unset));
    if (*unset) *unset = (PetscBool)(f[0]->offloadmask != PETSC_OFFLOAD_GPU && (f[1]->offloadmask == PETSC_OFFLOAD_GPU || f[2]->offloadmask == PETSC_OFFLOAD_GPU));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The products of two that AIJCUSPARSE keeps for one of three, as matproduct.c of PETSc 3.26 has them: MatProductReplaceMats() leaves their factors as they were */
typedef struct {
  Mat YZ, XYZ;
} Nested;

static PetscErrorCode ReplaceNested(const Mat_Product *product)
{
  const Nested *nested = (const Nested *)product->data;
  Mat           f[3];
  PetscBool     is;

  PetscFunctionBegin;
  PetscCall(GetNested(product, f, &is));
  if (!is || !nested || !product->setfromoptionscalled) PetscFunctionReturn(PETSC_SUCCESS); /* MATSHELL's data may be another's */
  PetscCall(MatProductReplaceMats(f[1], f[2], NULL, nested->YZ));
  PetscCall(MatProductReplaceMats(f[0], NULL, NULL, nested->XYZ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  With other factors than it was set up for, from MatProductReplaceMats() or MATSHELL, a product on the GPU is wrong in three ways. MATMPIAIJCUSPARSE keeps the blocks of the factors: it is set up
  again. MATSEQAIJCUSPARSE keeps those of a product of three, where they are replaced; and it computes values in the symbolic phase already, and the first numeric one takes them: that one runs twice.
*/
static PetscErrorCode SetUpForOtherFactors(Mat C, const ProductPhases *phases, PutBy *theirs, PetscBool *again, PetscBool *twice)
{
  Mat_Product  *product = C->product;
  Mat_Gallop   *g       = NULL;
  PetscObjectId ids[3];
  PetscBool     others;

  PetscFunctionBegin;
  *again = *twice = PETSC_FALSE;
  PetscCall(MatGallopGetContext(product->A, &g));
  if (!g || !g->deviceparent) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetFactorIds(product, ids));
  others = (PetscBool)(ids[0] != phases->factors[0] || ids[1] != phases->factors[1] || ids[2] != phases->factors[2]);
  *again = (PetscBool)(others && g->mpi);
  *twice = (PetscBool)(others && !g->mpi && !phases->host && phases->first);
  if (*again) PetscCall(SetUpAgain(C, theirs));
  else if (others && !phases->host) PetscCall(ReplaceNested(product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunNumeric(Mat C, const ProductPhases *phases, PetscBool twice)
{
  PetscFunctionBegin;
  C->ops->matmultnumeric          = phases->AB;
  C->ops->transposematmultnumeric = phases->AtB;
  C->ops->mattransposemultnumeric = phases->ABt;
  if (twice) PetscCall((*phases->numeric)(C));
  PetscCall((*phases->numeric)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A B with a dense B. *done is false where the parent has to compute it; it is set up again then, for the host, where the GPU has no room for its copy of A, or cuSPARSE does not take A. */
static PetscErrorCode DenseProductNumeric(Mat C, const ProductPhases *phases, PutBy *theirs, PetscBool *done, PetscBool *again)
{
  Mat_Product *product = C->product;
  PetscBool    fits    = PETSC_TRUE;
  Mat_Gallop  *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(product->A, &g));
  PetscCall(MatMatMultNumeric_SeqGallop_SeqDense(product->A, product->B, C, PETSC_FALSE, done));
  if (!*done && !phases->host) PetscCall(MatGallopParentFits(product->A, PETSC_FALSE, &fits));
  *again = PetscNot(fits);
  if (*again) {
    g->denseonhost = PETSC_TRUE;
    PetscCall(SetUpAgain(C, theirs));
    g->denseonhost = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_Gallop(Mat C)
{
  ProductPhases *kept, phases; /* a copy: what is composed with C may go */
  GallopLoan     loan;
  PutBy          theirs = {PETSC_FALSE, NULL, NULL};
  PetscBool      again = PETSC_FALSE, twice = PETSC_FALSE, dense, mpidense, done = PETSC_FALSE, isdense, isdevice, densehost;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &kept));
  PetscCheck(kept, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "Call MatProductSetFromOptions() and MatProductSymbolic() first");
  phases    = *kept;
  densehost = phases.densehost;
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSE, &isdense));
  if (densehost && !phases.host && isdense)
    PetscCall(MatConvert(C, MATSEQDENSECUDA, MAT_INPLACE_MATRIX, &C)); /* as the symbolic phase left it: the parent's function takes its array to be on the GPU */
  PetscCall(MatProductIsDense_Gallop(C->product, &dense, &mpidense));
  if (dense) PetscCall(DenseProductNumeric(C, &phases, &theirs, &done, &again));
  if (mpidense) PetscCall(MatMatMultNumeric_MPIGallop_MPIDense(C->product->A, C->product->B, C, &done));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATSEQDENSE, &isdense));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &isdevice));
  if (!done && !again && (!phases.numeric || phases.stale || (isdense && isdevice != phases.ondevice))) {
    PetscCall(SetUpAgain(C, &theirs));
    again = PETSC_TRUE;
  } else if (!done && !dense) PetscCall(SetUpForOtherFactors(C, &phases, &theirs, &again, &twice));
  if (again) {
    PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &kept));
    phases = *kept;
  }
  if (!done) {
    PetscCall(KeepCopies(C, phases.host));
    PetscCall(BringFactorsToHost(C, phases.host));
    PetscCall(LoanToProduct(&loan, C, phases.host));
    GallopLoanCall(&loan, RunNumeric(C, &phases, (PetscBool)(twice || (phases.first && phases.unset))));
    C->transupdated = PETSC_FALSE; /* which AIJCUSPARSE leaves */
    PetscCall(MatGallopForgetAssembly(C));
    if (C->ops->productnumeric && C->ops->productnumeric != MatProductNumeric_Gallop) { /* that of a product of three sets itself again */
      phases.numeric = C->ops->productnumeric;
      PetscCall(ProductPhasesKeep(C, &phases));
      C->ops->productnumeric = MatProductNumeric_Gallop;
    }
  }
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &kept));
  if (kept) kept->first = PETSC_FALSE;
  PetscCall(PutBack(C, &theirs));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &isdevice));
  if (densehost && isdevice) PetscCall(MatConvert(C, MATSEQDENSE, MAT_INPLACE_MATRIX, &C));
  PetscCall(ResultAttach(C, phases.type));
  if (!dense && !mpidense && !phases.host) PetscCall(MatGallopKeepCopy(C));
  PetscCall(MatGallopTrustDevice(C, 1)); /* MatProductNumeric() increases the state */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C for the product of an MPI matrix with a dense one. The parent's symbolic phase would make room on the GPU for a second C, and hold on to blocks of A that a new pattern replaces. */
static PetscErrorCode MPIDenseProductSymbolic(Mat C)
{
  Mat       A = C->product->A, B = C->product->B;
  PetscBool isdense;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATMPIDENSE, &isdense));
  if (!isdense) {
    PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
    PetscCall(MatSetVecType(C, B->defaultvectype));
  }
  PetscCall(MatSetSizes(C, A->rmap->n, B->cmap->n, A->rmap->N, B->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(C, A, B));
  PetscCall(MatSetUp(C));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Gallop(Mat C)
{
  ProductPhases *kept, phases;
  GallopLoan     loan;
  PetscBool      isdevice, dense, mpidense;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, GALLOP_PRODUCT, &kept));
  PetscCheck(kept, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "Call MatProductSetFromOptions() first");
  phases = *kept;
  PetscCall(MatProductIsDense_Gallop(C->product, &dense, &mpidense));
  if (mpidense) PetscCall(MatGallopWantsDense_MPI(C->product->A, C->product->B, &mpidense));
  if (mpidense) {
    PetscCall(MPIDenseProductSymbolic(C));
    phases.numeric = NULL;
    PetscCall(ProductPhasesKeep(C, &phases));
    C->ops->productnumeric = MatProductNumeric_Gallop;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  C->ops->productsymbolic = phases.symbolic;
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSE, &phases.densehost));
  if (!dense) PetscCall(KeepCopies(C, phases.host)); /* that of a product with a dense matrix looks at sizes only */
  PetscCall(LoanToProduct(&loan, C, phases.host));
  PetscCall(IsOfUnset(C->product, phases.host, &phases.unset));
  GallopLoanCall(&loan, (*phases.symbolic)(C));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &isdevice));
  if (!isdevice) phases.densehost = PETSC_FALSE;
  /* kept anew: a symbolic phase may replace C by another matrix, which loses what is composed */
  if (C->ops->productnumeric != MatProductNumeric_Gallop) {
    phases.numeric = C->ops->productnumeric;
    PetscCall(ProductPhasesKeep(C, &phases));
    C->ops->productnumeric = MatProductNumeric_Gallop;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Under parents' names PETSc asks the first factor that has such a function, ours, for a product that it does not know: the other factors may know it */
static PetscErrorCode AskOtherFactors(Mat C)
{
  const Mat factors[3] = {C->product->A, C->product->B, C->product->type == MATPRODUCT_ABC ? C->product->C : NULL};

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscErrorCode (*f)(Mat) = NULL;

    if (factors[k]) PetscCall(PetscObjectQueryFunction((PetscObject)factors[k], "MatProductSetFromOptions_anytype_C", &f));
    if (f && f != MatProductSetFromOptions_Gallop) {
      PetscCall((*f)(C));
      break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc comes here when factors are of the same Gallop type, or for any pair that it knows no product for (composed as anytype) */
PetscErrorCode MatProductSetFromOptions_Gallop(Mat C)
{
  GallopLoan    loan;
  ProductPhases phases = {0};
  PetscBool     dense, mpidense;

  PetscFunctionBegin;
  PetscCall(MatProductIsDense_Gallop(C->product, &dense, &mpidense));
  PetscCheck((!dense && !mpidense) || C->product->B != C, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_IDN, "The result of a product A B must not be B");
  PetscCall(FactorType(C->product, &phases.type));
  PetscCall(HasHostFactor(C, &phases.host));
  PetscCall(LoanToProduct(&loan, C, phases.host));
  if (!loan.n) { /* called from below: PETSc knows no product for the parents either */
    PetscCall(AskOtherFactors(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GallopLoanCall(&loan, MatProductSetFromOptions(C));
  if (!C->ops->productsymbolic && !phases.host) { /* AIJ has products that AIJCUSPARSE has not: that of a dense matrix and a sparse one */
    phases.host = PETSC_TRUE;
    PetscCall(LoanToProduct(&loan, C, phases.host));
    GallopLoanCall(&loan, MatProductSetFromOptions(C));
  }
  if (C->ops->productsymbolic && C->ops->productsymbolic != MatProductSymbolic_Gallop) {
    phases.symbolic = C->ops->productsymbolic;
    PetscCall(ProductPhasesKeep(C, &phases));
    C->ops->productsymbolic = MatProductSymbolic_Gallop;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
