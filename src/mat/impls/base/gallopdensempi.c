/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI matrices at work on dense ones: C = A B, whose ghost rows of B travel while the diagonal block computes, as gallopexchange.c has it for vectors */

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

PetscErrorCode GallopDenseExchangeReset(GallopDenseExchange *exchange)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSFDestroy(&exchange->sf[k]));
    PetscCall(MatDestroy(&exchange->ghost[k]));
    PetscCall(MatDestroy(&exchange->packed[k]));
    PetscCall(MatDestroy(&exchange->buffer[k]));
  }
  PetscCall(GallopIPCDestroy(&exchange->ipc));
  exchange->id = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Columns of a batch, where -matproduct_batch_size does not tell: as many as keep the ghost rows of each process, in one buffer or two, below about twice its own rows, but no fewer than a few,
  with which exchanges take longer than they save memory. A PetscSF numbers all places of a batch, by PetscInt.
*/
static PetscErrorCode DenseExchangeBatch(Mat A, PetscInt ghosts, PetscInt columns, PetscInt asked, PetscInt buffers, PetscInt *batch)
{
  static const PetscInt few   = 16;
  const PetscInt        limit = PETSC_INT_MAX / PetscMax(1, PetscMax(A->cmap->n, ghosts));
  PetscCount            most  = columns;

  PetscFunctionBegin;
  if (asked > 0) most = PetscMin(most, asked);
  else if (ghosts) most = PetscMin(most, PetscMax(few, 2 / buffers * (PetscCount)A->rmap->n * columns / ghosts));
  *batch = (PetscInt)PetscMin(most, limit);
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, batch, 1, MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The way, and the batches */
static PetscErrorCode DenseExchangeSetUp(Mat A, Mat C, PetscInt ghosts, PetscInt columns, GallopPlace place, Mat_Gallop *g)
{
  const GallopExchangeWay way      = g->exchange.way;
  GallopDenseExchange    *exchange = &g->denseexchange;
  GallopIPCKind           kind     = {PETSC_FALSE, PETSC_FALSE, ghosts, GALLOP_IPC_SCALAR, 0, PETSC_FALSE};
  PetscSF                 sf;
  PetscObjectId           id;
  PetscInt                asked = 0;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(PetscObjectGetId((PetscObject)sf, &id));
  PetscCall(PetscOptionsGetInt(((PetscObject)C)->options, ((PetscObject)C)->prefix, "-matproduct_batch_size", &asked, NULL));
  if (exchange->id == id && exchange->columns == columns && exchange->asked == asked && exchange->way == way && (!exchange->alike || exchange->place == place || way == GALLOP_EXCHANGE_SF))
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDenseExchangeReset(exchange));
  exchange->id      = id;
  exchange->columns = columns;
  exchange->asked   = asked;
  exchange->way     = way;
  exchange->place   = place;
  PetscCall(GallopExchangeAgree(A, way, "Ghost rows", (int)place, &exchange->alike));
  PetscCall(DenseExchangeBatch(A, ghosts, columns, asked, GallopExchangeTable(way, place) || way == GALLOP_EXCHANGE_NCCL ? 2 : 1, &exchange->batch));
  kind.columns = exchange->batch;
  if (exchange->batch == columns) PetscCall(GallopExchangeAside(A, columns, &kind.aside)); /* batches after the first have nothing beside them */
  if (exchange->alike) PetscCall(GallopExchangeConnect(A, sf, way, place, &kind, "Ghost rows", &exchange->ipc));
  if (exchange->ipc) PetscCall(PetscInfo(A, "Ghost rows: %" PetscInt_FMT " columns at a time\n", exchange->batch));
  else {
    PetscCall(PetscSFCreateStridedSF(sf, exchange->batch, A->cmap->n, ghosts, &exchange->sf[0]));
    if (columns % exchange->batch) PetscCall(PetscSFCreateStridedSF(sf, columns % exchange->batch, A->cmap->n, ghosts, &exchange->sf[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateLocalDense(PetscInt m, PetscInt n, GallopPlace place, Mat *M)
{
  PetscFunctionBegin;
  if (*M) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, M));
  PetscCall(MatSetSizes(*M, m, n, m, n));
  PetscCall(MatSetType(*M, place == GALLOP_DEVICE ? MATSEQDENSECUDA : MATSEQDENSE));
  PetscCall(MatSetUp(*M));
  if (place == GALLOP_DEVICE) PetscCall(PetscDeviceContextSynchronize(NULL)); /* it is zeroed on another stream, maybe, as new vectors are */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B's columns one after the other, which all processes can agree on: B itself, or a copy */
static PetscErrorCode PackColumns(GallopDenseExchange *exchange, GallopPlace place, Mat B, Mat *packed)
{
  PetscInt m, n, ld;

  PetscFunctionBegin;
  *packed = B;
  PetscCall(MatGetSize(B, &m, &n));
  PetscCall(MatDenseGetLDA(B, &ld));
  if (ld == m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CreateLocalDense(m, n, place, &exchange->packed[place]));
  PetscCall(MatCopy(B, exchange->packed[place], SAME_NONZERO_PATTERN));
  *packed = exchange->packed[place];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A batch on its way: its ghost rows, and arrays, which PetscSF wants again */
typedef struct {
  Mat          packed, ghost;
  PetscSF      sf;
  PetscScalar *from, *begin, *to;
} Batch;

/* A buffer as a matrix, for all products by these connections */
static PetscErrorCode GetBuffer(GallopDenseExchange *exchange, GallopPlace place, int k, Mat *M)
{
  PetscScalar *const array = (PetscScalar *)exchange->ipc->buffer[k];

  PetscFunctionBegin;
  if (!exchange->buffer[k]) {
    if (place == GALLOP_HOST) PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, exchange->ipc->nghost, exchange->batch, array, &exchange->buffer[k]));
#if PetscDefined(HAVE_CUDA)
    else PetscCall(MatCreateSeqDenseCUDA(PETSC_COMM_SELF, exchange->ipc->nghost, exchange->batch, array, &exchange->buffer[k]));
#endif
  }
  *M = exchange->buffer[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begins to bring ghost rows of columns of B from one on, as many as a batch has or are left */
static PetscErrorCode BatchBegin(GallopDenseExchange *exchange, GallopPlace place, Mat B, PetscInt first, PetscInt ghosts, Batch *batch)
{
  const PetscInt columns = PetscMin(exchange->batch, exchange->columns - first);
  PetscMemType   mfrom, mto;
  PetscInt       ld;
  int            k;

  PetscFunctionBegin;
  batch->packed = B;
  batch->begin  = NULL;
  if (!exchange->ipc) PetscCall(PackColumns(exchange, place, B, &batch->packed));
  PetscCall(MatDenseGetLDA(batch->packed, &ld));
  PetscCall(MatGallopDenseGetArray(batch->packed, place, GALLOP_READ, &batch->from, &mfrom));
  if (batch->from) batch->begin = batch->from + (PetscCount)first * ld;
  if (exchange->ipc) {
    PetscCall(GallopIPCSend(exchange->ipc, (const PetscReal *)batch->begin, (PetscCount)ld * GALLOP_IPC_SCALAR, columns, &k));
    PetscCall(GetBuffer(exchange, place, k, &batch->ghost));
  } else {
    PetscCall(CreateLocalDense(ghosts, exchange->batch, place, &exchange->ghost[place]));
    batch->ghost = exchange->ghost[place];
    batch->sf    = exchange->sf[columns < exchange->batch];
    PetscCall(MatGallopDenseGetArray(batch->ghost, place, GALLOP_WRITE, &batch->to, &mto));
    PetscCall(PetscSFBcastWithMemTypeBegin(batch->sf, MPIU_SCALAR, mfrom, batch->begin, mto, batch->to, MPI_REPLACE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchEnd(GallopDenseExchange *exchange, GallopPlace place, Batch *batch)
{
  PetscMemType memtype;

  PetscFunctionBegin;
  if (exchange->ipc) {
    PetscCall(GallopIPCReceive(exchange->ipc));
    PetscCall(MatGallopDenseGetArray(batch->ghost, place, GALLOP_WRITE, &batch->to, &memtype)); /* it has changed, and there */
  } else PetscCall(PetscSFBcastEnd(batch->sf, MPIU_SCALAR, batch->begin, batch->to, MPI_REPLACE));
  PetscCall(MatGallopDenseRestoreArray(batch->ghost, place, GALLOP_WRITE, &batch->to));
  PetscCall(MatGallopDenseRestoreArray(batch->packed, place, GALLOP_READ, &batch->from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where one process has no room for TiledSpMM it cannot leave the product to the parent, which all would have to do: a column after the other, as vectors */
static PetscErrorCode MultiplyColumns(Mat A, Mat B, Mat C, PetscBool add)
{
  PetscInt columns;

  PetscFunctionBegin;
  PetscCall(MatGetSize(B, NULL, &columns));
  for (PetscInt k = 0; k < columns; k++) {
    Vec b, c;

    PetscCall(MatDenseGetColumnVecRead(B, k, &b));
    if (add) {
      PetscCall(MatDenseGetColumnVec(C, k, &c));
      PetscCall(MatMultAdd(A, b, c, c));
      PetscCall(MatDenseRestoreColumnVec(C, k, &c));
    } else {
      PetscCall(MatDenseGetColumnVecWrite(C, k, &c));
      PetscCall(MatMult(A, b, c));
      PetscCall(MatDenseRestoreColumnVecWrite(C, k, &c));
    }
    PetscCall(MatDenseRestoreColumnVecRead(B, k, &b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MultiplyBlock(Mat A, Mat B, Mat C, PetscBool add)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatMatMultNumeric_SeqGallop_SeqDense(A, B, C, add, &done));
  if (!done) PetscCall(MultiplyColumns(A, B, C, add));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C += A ghost for columns of C from one on, and as many as ghost has or C has left */
static PetscErrorCode AddOffdiagonal(Mat A, Mat ghost, Mat C, PetscInt first)
{
  PetscInt columns, batch;
  Mat      part, to;

  PetscFunctionBegin;
  PetscCall(MatGetSize(C, NULL, &columns));
  PetscCall(MatGetSize(ghost, NULL, &batch));
  if (batch == columns) {
    PetscCall(MultiplyBlock(A, ghost, C, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  batch = PetscMin(batch, columns - first);
  PetscCall(MatDenseGetSubMatrix(ghost, PETSC_DECIDE, PETSC_DECIDE, 0, batch, &part));
  PetscCall(MatDenseGetSubMatrix(C, PETSC_DECIDE, PETSC_DECIDE, first, first + batch, &to));
  PetscCall(MultiplyBlock(A, part, to, PETSC_TRUE));
  PetscCall(MatDenseRestoreSubMatrix(C, &to));
  PetscCall(MatDenseRestoreSubMatrix(ghost, &part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether TiledSpMM computes A B, or with one column the format; or else the format column by column, where cuSPARSE does not take A. Decided by what is the same on all processes. */
PetscErrorCode MatGallopWantsDense_MPI(Mat A, Mat B, PetscBool *wanted)
{
  Mat_Gallop *g;
  PetscBool   device, takes = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIDENSECUDA, &device));
  *wanted = (PetscBool)(B->cmap->N == 1 || (*GallopDense_TILEDSPMM.wants)(g->structure[GALLOP_TILEDSPMM].options, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, B->cmap->N));
  if (!*wanted) PetscCall(MatGallopParentTakes(A, g, &takes));
  if (!takes) *wanted = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatMatMultNumeric_MPIGallop_MPIDense - C = A B: while the ghost rows of B travel, a batch of columns at a time, the diagonal block computes

  Collective. *done is false on all processes where the structure is not wanted, as for few columns: the parent computes the product then.
*/
PetscErrorCode MatMatMultNumeric_MPIGallop_MPIDense(Mat A, Mat B, Mat C, PetscBool *done)
{
  const PetscInt       columns = B->cmap->N;
  GallopDenseExchange *exchange;
  Mat_Gallop          *g, *block;
  Mat                  diagonal, offdiagonal, b, c;
  PetscInt             ghosts;
  GallopPlace          place;
  MatInfo              info;

  PetscFunctionBegin;
  PetscCheck(C->rmap->n == A->rmap->n && B->rmap->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Local sizes of A, %" PetscInt_FMT " by %" PetscInt_FMT ", B, %" PetscInt_FMT " rows, and C, %" PetscInt_FMT " rows, do not match",
             A->rmap->n, A->cmap->n, B->rmap->n, C->rmap->n);
  PetscCheck(!A->structure_only, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY");
  PetscCheck(C->cmap->N == columns, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_SIZ, "Number columns in B %" PetscInt_FMT " not equal columns in C %" PetscInt_FMT, columns, C->cmap->N);
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopGetBlocks(A, &diagonal, &offdiagonal));
  PetscCall(MatGallopWantsDense_MPI(A, B, done));
  if (!*done) {
    PetscCall(MatGallopGetContext(diagonal, &block));
    block->stats.dense_fallbacks++;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!columns) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDenseGetLocalMatrix(B, &b));
  PetscCall(MatDenseGetLocalMatrix(C, &c));
  PetscCall(MatGallopGetDensePlace(diagonal, b, c, &place));
  PetscCall(MatGetLocalSize(offdiagonal, NULL, &ghosts));
  PetscCall(MatGetInfo(offdiagonal, MAT_LOCAL, &info));
  exchange = &g->denseexchange;
  PetscCall(DenseExchangeSetUp(A, C, ghosts, columns, place, g));
  for (PetscInt first = 0; first < columns; first += exchange->batch) {
    Batch batch;

    PetscCall(BatchBegin(exchange, place, b, first, ghosts, &batch));
    if (!first) PetscCall(MultiplyBlock(diagonal, b, c, PETSC_FALSE));
    PetscCall(BatchEnd(exchange, place, &batch));
    if (info.nz_used > 0) PetscCall(AddOffdiagonal(offdiagonal, batch.ghost, c, first));
    GallopExchangeCount(g, exchange->ipc);
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
