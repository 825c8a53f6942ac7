/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The AIJ subclass that every format shares: how a matrix becomes one, stays one and stops being one. Conversions are in gallopconvert.c, options in gallopoptions.c.

  AIJ stays the truth. A subclass matrix is a matrix of its parent type, MATSEQAIJ or MATSEQAIJCUSPARSE (MATMPIAIJ, MATMPIAIJCUSPARSE),
  whose name is changed and some of whose functions are replaced. What belongs to the subclass hangs in a container, Mat_Gallop, beside it.
*/

#include <gallop/matgallopimpl.h>

#define GALLOP_CONTEXT "MatGallop"
#define GALLOP_ABC     "MatProductSetFromOptions_seqaij_seqaij_seqaij_C"

/* The parents have a number, which MatDestroy needs: it may run when name and container are gone already (MatHeaderMerge) */
#define GALLOP_NPARENTS            4
#define GALLOP_PARENT(mpi, device) (2 * (mpi) + (device))

static PetscErrorCode (*ParentDestroy[GALLOP_NPARENTS])(Mat);

static PetscErrorCode MatDestroy_Gallop(Mat A, int parent)
{
  Mat_Gallop *g;
  PetscErrorCode (*destroy)(Mat) = ParentDestroy[parent];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g) {
    if (g->parent.destroy) destroy = g->parent.destroy;
    PetscCall(MatGallopDetach(A));
    A->factortype = MAT_FACTOR_NONE; /* a matrix factored in place still carries what it had on the GPU, and not a factor's data as AIJCUSPARSE believes */
  }
  PetscCall((*destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define GALLOP_DESTROY(parent) \
  static PetscErrorCode MatDestroy_Gallop_##parent(Mat A) \
  { \
    return MatDestroy_Gallop(A, parent); \
  }
GALLOP_DESTROY(0)
GALLOP_DESTROY(1)
GALLOP_DESTROY(2)
GALLOP_DESTROY(3)
static PetscErrorCode (*const OwnDestroy[GALLOP_NPARENTS])(Mat) = {MatDestroy_Gallop_0, MatDestroy_Gallop_1, MatDestroy_Gallop_2, MatDestroy_Gallop_3};

/* What a matrix of this type is as a parent; *is is false where none of ours can be built on it */
static PetscErrorCode GetParent(MatType type, PetscBool *is, PetscBool *mpi, PetscBool *device)
{
  PetscFunctionBegin;
  for (int k = 0; k < GALLOP_NPARENTS; k++) {
    *mpi    = (PetscBool)(k / 2);
    *device = (PetscBool)(k % 2);
    PetscCall(PetscStrcmp(type, GallopParentType(*mpi, *device), is));
    if (*is) break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopGetContext(Mat A, Mat_Gallop **g)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_CONTEXT, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts a structure's memory, after it was made or dropped */
void MatGallopCountBytes(GallopStructure *structure, GallopPlace place)
{
  const GallopFormat *format   = structure->type->format;
  GallopInstance     *instance = &structure->instance[place];
  GallopBytes        *bytes    = structure->bytes;
  const PetscInt64    now      = (instance->data && format->bytes ? (PetscInt64)(*format->bytes)(instance->data) : 0) + (PetscInt64)instance->transposed.bytes;

  bytes->now[place] += now - instance->bytes;
  bytes->most[place] = PetscMax(bytes->most[place], bytes->now[place]);
  instance->bytes    = now;
}

/* Drops what was built at a place, and counts its memory no more */
PetscErrorCode MatGallopDrop(GallopStructure *structure, GallopPlace place)
{
  GallopInstance *inst = &structure->instance[place];

  PetscFunctionBegin;
  if (inst->data) PetscCall((*GallopWork(structure->type->format, place)->destroy)(&inst->data));
  inst->data = NULL;
  PetscCall(GallopTransposedDestroy(&inst->transposed));
  MatGallopCountBytes(structure, place);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Drops what was built; the next product builds again */
PetscErrorCode MatGallopReset(GallopStructure *structure)
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscCall(MatGallopDrop(structure, (GallopPlace)p));
    structure->instance[p].toolarge  = PETSC_FALSE;
    structure->instance[p].key.owner = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatGallopStatisticsAdd(MatGallopStatistics *sum, const MatGallopStatistics *add)
{
  sum->builds += add->builds;
  sum->refreshes += add->refreshes;
  sum->products_host += add->products_host;
  sum->products_device += add->products_device;
  sum->fallbacks += add->fallbacks;
  sum->dense_builds += add->dense_builds;
  sum->dense_refreshes += add->dense_refreshes;
  sum->dense_products_host += add->dense_products_host;
  sum->dense_products_device += add->dense_products_device;
  sum->dense_fallbacks += add->dense_fallbacks;
  sum->transpose_builds += add->transpose_builds;
  sum->transpose_refreshes += add->transpose_refreshes;
  sum->exchanges_ipc += add->exchanges_ipc;
  sum->exchanges_nccl += add->exchanges_nccl;
  sum->exchanges_sf += add->exchanges_sf;
  sum->csr_uploads += add->csr_uploads;
  sum->csr_releases += add->csr_releases;
  sum->csr_maps += add->csr_maps;
}

static PetscErrorCode LeavePast(Mat_Gallop *g)
{
  PetscFunctionBegin;
  if (g->past && --g->past->refct == 0) PetscCall(PetscFree(g->past));
  g->past = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc replaces the blocks of an MPI matrix as it likes: what a block has counted goes to the matrix when the block goes */
PetscErrorCode MatGallopShare(Mat_Gallop *mpi, Mat_Gallop *block)
{
  PetscFunctionBegin;
  if (!mpi->past) {
    PetscCall(PetscNew(&mpi->past));
    mpi->past->refct = 1;
  }
  if (block->past == mpi->past) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LeavePast(block));
  block->past = mpi->past;
  block->past->refct++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContextDestroy(PetscCtxRt ctx)
{
  Mat_Gallop *g = *(Mat_Gallop **)ctx;

  PetscFunctionBegin;
  MatGallopPaysNote(g);
  if (g->past) MatGallopStatisticsAdd(&g->past->stats, &g->stats);
  MatGallopStatisticsAdd(&g->type->totals.stats, &g->stats);
  g->type->totals.matrices--;
  PetscCall(LeavePast(g));
  for (int s = 0; s < GALLOP_STRUCTURES; s++) {
    PetscCall(MatGallopReset(&g->structure[s]));
    if (s != GALLOP_TRANSPOSE) PetscCall(PetscFree(g->structure[s].options));
  }
  PetscCall(MatGallopFreeRows(g));
  PetscCall(GallopExchangeReset(&g->exchange));
  PetscCall(GallopDenseExchangeReset(&g->denseexchange));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(g->lent[k]));
  PetscCall(PetscFree(g->parentonhost));
  PetscCall(PetscFree(g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The functions that stand in A->ops: ALWAYS, or only WHERE the parent has one */
#define GALLOP_SLOTS_SEQ(ALWAYS, WHERE) \
  ALWAYS(mult, MatMult_SeqGallop) \
  ALWAYS(multadd, MatMultAdd_SeqGallop) \
  WHERE(multtranspose, MatMultTranspose_SeqGallop) \
  WHERE(multtransposeadd, MatMultTransposeAdd_SeqGallop) \
  WHERE(multhermitiantranspose, MatMultHermitianTranspose_SeqGallop) \
  WHERE(multhermitiantransposeadd, MatMultHermitianTransposeAdd_SeqGallop) \
  ALWAYS(residual, MatResidual_SeqGallop) \
  WHERE(getdiagonal, MatGetDiagonal_SeqGallop) \
  WHERE(scale, MatScale_SeqGallop) \
  WHERE(diagonalscale, MatDiagonalScale_SeqGallop) \
  WHERE(zeroentries, MatZeroEntries_SeqGallop) \
  WHERE(transpose, MatTranspose_SeqGallop) \
  WHERE(eliminatezeros, MatEliminateZeros_SeqGallop) \
  WHERE(load, MatLoad_SeqGallop) \
  WHERE(sor, MatSOR_SeqGallop) \
  WHERE(getcolumnreductions, MatGetColumnReductions_SeqGallop) \
  ALWAYS(ishermitian, MatIsHermitian_SeqGallop) \
  ALWAYS(assemblyend, MatAssemblyEnd_SeqGallop)

/* The parent's functions that check its name, those that others have taken apart */
#if GALLOP_NAMES_CHECKED
  #define GALLOP_SLOTS_NAMED(WHERE) \
    WHERE(axpy, MatAXPY_SeqGallop) \
    WHERE(setoption, MatSetOption_SeqGallop)
#else
  #define GALLOP_SLOTS_NAMED(WHERE)
#endif

#define GALLOP_SLOTS_MPI(ALWAYS, WHERE) \
  WHERE(setup, MatSetUp_MPIGallop) \
  ALWAYS(mult, MatMult_MPIGallop) \
  ALWAYS(multadd, MatMultAdd_MPIGallop) \
  WHERE(multtranspose, MatMultTranspose_MPIGallop) \
  WHERE(multtransposeadd, MatMultTransposeAdd_MPIGallop) \
  ALWAYS(residual, MatResidual_MPIGallop) \
  WHERE(norm, MatNorm_MPIGallop) \
  WHERE(eliminatezeros, MatEliminateZeros_MPIGallop) \
  WHERE(zerorowscolumns, MatZeroRowsColumns_MPIGallop) \
  WHERE(createsubmatrices, MatCreateSubMatrices_MPIGallop) \
  ALWAYS(assemblyend, MatAssemblyEnd_MPIGallop)

#define GALLOP_SLOTS_BOTH(ALWAYS, WHERE) \
  ALWAYS(duplicate, MatDuplicate_Gallop) \
  ALWAYS(setfromoptions, MatSetFromOptions_Gallop) \
  ALWAYS(view, MatView_Gallop) \
  WHERE(bindtocpu, MatBindToCPU_Gallop) \
  WHERE(getmultiprocblock, MatGetMultiProcBlock_Gallop) \
  ALWAYS(productsetfromoptions, MatProductSetFromOptions_Gallop)

/* A slot that holds our function already keeps the parent's that was saved: PETSc may have rewritten only some of the slots since */
#define TAKE_ALWAYS(slot, function) \
  if (A->ops->slot != function) { \
    g->parent.slot = A->ops->slot; \
    A->ops->slot   = function; \
  }
#define TAKE_WHERE(slot, function) \
  if (A->ops->slot != function) { \
    g->parent.slot = A->ops->slot; \
    if (A->ops->slot) A->ops->slot = function; \
  }
#define GIVE_BACK(slot, function) \
  if (A->ops->slot == function) A->ops->slot = g->parent.slot;

/*
  PETSc puts functions of its own before ours, which they call in the end, into submatrices: those stay. The parent's own in the slot means that ours is gone from it,
  and a matrix that is not past its creation can have no other: -mat_seqaij_type makes one ours before it is AIJCUSPARSE.
*/
static PetscErrorCode InstallDestroy(Mat A, Mat_Gallop *g, int parent)
{
  PetscBool parents = PETSC_FALSE;

  PetscFunctionBegin;
  for (int k = 0; k < GALLOP_NPARENTS; k++) {
    if (A->ops->destroy == OwnDestroy[k]) PetscFunctionReturn(PETSC_SUCCESS);
    if (A->ops->destroy == ParentDestroy[k]) parents = PETSC_TRUE;
  }
  if (g->parent.destroy && !parents && A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  if (!ParentDestroy[parent] || !A->preallocated) ParentDestroy[parent] = A->ops->destroy; /* a new matrix surely has the parent's */
  g->parent.destroy = A->ops->destroy;
  A->ops->destroy   = OwnDestroy[parent];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSetOperation() keeps the viewer that it replaces as the native one, and ours must not stay in a matrix that is not ours any more */
static void ViewNative(Mat A, Mat_Gallop *g)
{
  if (A->ops->viewnative == MatView_Gallop) A->ops->viewnative = g->parent.view;
}

/* While values go to a hash table, PETSc has functions of its own in A->ops, and puts back what was there, ours, when it is done: hands off till then */
PetscErrorCode MatGallopInstall(Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  if (A->hash_active) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(A, &g));
  ViewNative(A, g);
  if (!g->mpi) {
    GALLOP_SLOTS_SEQ(TAKE_ALWAYS, TAKE_WHERE)
    GALLOP_SLOTS_NAMED(TAKE_WHERE)
  } else {
    GALLOP_SLOTS_MPI(TAKE_ALWAYS, TAKE_WHERE)
  }
  GALLOP_SLOTS_BOTH(TAKE_ALWAYS, TAKE_WHERE)
  PetscCall(InstallDestroy(A, g, GALLOP_PARENT(g->mpi, g->deviceparent)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopUninstall(Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  ViewNative(A, g);
  if (!g->mpi) {
    GALLOP_SLOTS_SEQ(GIVE_BACK, GIVE_BACK)
    GALLOP_SLOTS_NAMED(GIVE_BACK)
  } else {
    GALLOP_SLOTS_MPI(GIVE_BACK, GIVE_BACK)
  }
  GALLOP_SLOTS_BOTH(GIVE_BACK, GIVE_BACK)
  if (A->ops->destroy == OwnDestroy[GALLOP_PARENT(g->mpi, g->deviceparent)]) {
    A->ops->destroy   = g->parent.destroy;
    g->parent.destroy = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSeqAIJKron() takes a second matrix of the exact type MATSEQAIJ only */
static PetscErrorCode MatSeqAIJKron_Gallop(Mat A, Mat B, MatReuse reuse, Mat *C)
{
  Mat_Gallop *g;
  Mat         plain;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatConvert(B, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain));
  PetscCall((*g->kron)(A, plain, reuse, C));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StructuresCreate(Mat_Gallop *g)
{
  GallopStructure *format = &g->structure[GALLOP_FORMAT], *tiledspmm = &g->structure[GALLOP_TILEDSPMM], *transpose = &g->structure[GALLOP_TRANSPOSE];

  PetscFunctionBegin;
  format->type         = g->type;
  format->builds       = &g->stats.builds;
  format->refreshes    = &g->stats.refreshes;
  tiledspmm->builds    = &g->stats.dense_builds;
  tiledspmm->refreshes = &g->stats.dense_refreshes;
  transpose->type      = g->type;
  transpose->builds    = &g->stats.transpose_builds;
  transpose->refreshes = &g->stats.transpose_refreshes;
  PetscCall(GallopTypeOfTiledSpMM(&tiledspmm->type));
  for (int s = 0; s < GALLOP_STRUCTURES; s++) {
    const GallopFormat *table = g->structure[s].type->format;

    g->structure[s].bytes = &g->type->totals.bytes[s == GALLOP_TRANSPOSE ? GALLOP_FORMAT : s];
    if (s == GALLOP_TRANSPOSE) continue;
    PetscCall(PetscCalloc(PetscMax(table->options_size, 1), &g->structure[s].options)); /* MatGallopAdopt() compares all bytes */
    PetscCall((*table->options_default)(g->structure[s].options));
  }
  transpose->options = format->options;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopAttach - Makes a matrix of a parent type, or one that PETSc has half turned back into it, a matrix of a Gallop type

  Idempotent: PETSc's parents rewrite name and functions of matrices that are ours already, in MatDuplicate() for one.
*/
PetscErrorCode MatGallopAttach(Mat A, GallopType type)
{
  Mat_Gallop *g;
  PetscBool   is, mpi, device;
  const char *name = ((PetscObject)A)->type_name, *own;
  PetscErrorCode (*f)(Mat);

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(GetParent(name, &is, &mpi, &device));
  if (!is) { /* ours already, or nothing that we can build on */
    PetscCheck(g && g->type == type, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "Cannot make a matrix of type %s one of type %s: convert it to %s first", name, type->aijroot, MATAIJ);
    PetscCall(MatGallopInstall(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  own = mpi ? type->mpi : type->seq;
  if (!g) {
    PetscCall(PetscNew(&g));
    g->type = type;
    PetscCall(MatGallopSetDefaults(g));
    PetscCall(StructuresCreate(g));
    type->totals.matrices++;
    PetscCall(PetscObjectContainerCompose((PetscObject)A, GALLOP_CONTEXT, g, ContextDestroy));
  }
  g->mpi          = mpi;
  g->deviceparent = device;
  PetscCall(MatGallopInstall(A));
  if (!mpi && g->deviceparent) PetscCall(MatSolverTypeRegisterCUSPARSE_Gallop(type));
  PetscCall(MatGallopComposeConversions(A, type, mpi));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", MatProductSetFromOptions_Gallop));
  PetscCall(MatGallopComposeCOO(A));
  PetscCall(GallopNamesCompose(A));
  if (!mpi) {
    PetscErrorCode (*kron)(Mat, Mat, MatReuse, Mat *);

    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSeqAIJKron_C", &kron));
    if (kron != MatSeqAIJKron_Gallop) g->kron = kron;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSeqAIJKron_C", MatSeqAIJKron_Gallop));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &f));
    if (f != MatRetrieveValues_SeqGallop) g->retrievevalues = f;
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &f));
    if (f != MatStoreValues_SeqGallop) g->storevalues = f;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C", MatRetrieveValues_SeqGallop));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C", MatStoreValues_SeqGallop));
    if (device) { /* a product of three of which some are on the host: PETSc has it for AIJ by A->ops alone, which differ here, and else takes one that keeps a first factor */
      const struct _MatOps *plain;

      PetscCall(MatGallopGetPlainOps(&plain));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, GALLOP_ABC, plain->productsetfromoptions));
    }
  }
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, own));
  PetscCall(MatGallopSetOptionsFromDatabase(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes away what A has composed with itself from A, or from a copy of it that is not ours */
PetscErrorCode MatGallopForget(Mat copy, Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopForgetConversions(copy, g->type));
  PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatProductSetFromOptions_anytype_C", NULL));
  if (!g->mpi) {
    PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatSeqAIJKron_C", g->kron));
    PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatRetrieveValues_C", g->retrievevalues));
    PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatStoreValues_C", g->storevalues));
    PetscCall(PetscObjectComposeFunction((PetscObject)copy, GALLOP_ABC, NULL));
  }
  PetscCall(MatGallopForgetCOO(copy, g));
  PetscCall(GallopNamesForget(copy, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves a matrix of the parent type */
PetscErrorCode MatGallopDetach(Mat A)
{
  Mat_Gallop *g;
  PetscBool   mpi;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  mpi = g->mpi;
  PetscCall(MatGallopUninstall(A));
  PetscCall(MatGallopForget(A, A));
  if (((PetscObject)A)->type_name) PetscCall(PetscObjectChangeTypeName((PetscObject)A, GallopParentType(g->mpi, g->deviceparent)));
  PetscCall(PetscObjectCompose((PetscObject)A, GALLOP_CONTEXT, NULL));
  if (mpi) {
    Mat blocks[2] = {NULL, NULL};

    if (A->preallocated) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (int k = 0; k < 2; k++)
      if (blocks[k]) PetscCall(MatGallopDetach(blocks[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For a matrix that is made a Gallop matrix: every process must choose the same parent, and only a PETSc with CUDA can have processes that differ */
PetscErrorCode MatGallopDeviceOnAllProcesses(Mat A, PetscBool *all)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GallopDeviceAvailable(&device));
  *all = device;
  if (PetscDefined(HAVE_CUDA)) PetscCallMPI(MPIU_Allreduce(&device, all, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (PetscDefined(HAVE_CUDA) && !*all) PetscCall(GallopDeviceWarn(device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopRetake - Puts our functions over those that the parent's MatBindToCPU() leaves in A->ops and composed with A */
PetscErrorCode MatGallopRetake(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatGallopInstall(A));
  PetscCall(MatGallopComposeCOO(A));
  PetscCall(GallopNamesCompose(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's function rewrites A->ops as it wants the parent's: it gets its own functions back first */
PetscErrorCode MatBindToCPU_Gallop(Mat A, PetscBool bind)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!g->mpi && g->deviceparent) PetscCall(MatGallopTrustHost(A)); /* PETSc tells the copy on the GPU nothing of values that changed while the matrix was bound */
  if (!A->hash_active) PetscCall(MatGallopUninstall(A));
  PetscCall((*g->parent.bindtocpu)(A, bind));
  PetscCall(MatGallopRetake(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopUnbind - Before a function that works on the GPU also while the matrix is bound to the CPU; MatGallopRebind() comes after it */
PetscErrorCode MatGallopUnbind(Mat A, PetscBool *bound)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  *bound = (PetscBool)(GallopBoundToCPU(A) && (!g || g->deviceparent)); /* on the host all are */
  if (*bound) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopRebind(Mat A, PetscBool bound)
{
  PetscFunctionBegin;
  if (bound) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCreate_<type>: the parent's creator, then the conversion in place */
static PetscErrorCode MatCreate_Gallop(Mat A, const GallopFormat *format, MatType host, MatType device)
{
  GallopType  type;
  Mat_Gallop *g;
  PetscBool   all = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GallopTypeOfFormat(format, &type));
  PetscCall(MatGallopDeviceOnAllProcesses(A, &all));
  PetscCall(MatSetType(A, all ? device : host));
  PetscCall(MatGallopGetContext(A, &g));
  if (g && g->type != type) PetscCall(MatGallopDetach(A)); /* -mat_seqaij_type names another one */
  PetscCall(MatGallopAttach(A, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqGallop(Mat A, const GallopFormat *format)
{
  return MatCreate_Gallop(A, format, MATSEQAIJ, MATSEQAIJCUSPARSE);
}

PetscErrorCode MatCreate_MPIGallop(Mat A, const GallopFormat *format)
{
  return MatCreate_Gallop(A, format, MATMPIAIJ, MATMPIAIJCUSPARSE);
}

/*@
  MatGallopIsFormat - Whether a matrix is of one of the Gallop types

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameter:
. flg - `PETSC_TRUE` when the type of `A` is `MATEVCHYB` or another type of this library

  Level: intermediate

.seealso: `MatGallopGetStatistics()`, `MATEVCHYB`
@*/
PetscErrorCode MatGallopIsFormat(Mat A, PetscBool *flg)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(flg, 2);
  PetscCall(MatGallopGetContext(A, &g));
  *flg = g ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
