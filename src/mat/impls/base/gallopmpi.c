/*
  The MPI subclass at work: its blocks, the exchange of ghost values, and the products, with vectors and with dense matrices, that run the diagonal block while the values travel.
*/

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

/*
  MatGallopGetBlocks - Gives the diagonal and the off-diagonal block of an MPI matrix, each a sequential matrix of the same Gallop type

  PETSc makes blocks of the parent's type in several places (preallocation, hash-based assembly, disassembly), so they are looked at here, at
  use, rather than in each of those. On a process with a GPU they stay on the host where the matrix does, because another process has none.
*/
PetscErrorCode MatGallopGetBlocks(Mat A, Mat *diagonal, Mat *offdiagonal)
{
  Mat         blocks[2];
  Mat_Gallop *g, *b;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscCheck(blocks[k], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has no blocks yet: assemble it first");
    PetscCall(MatGallopGetContext(blocks[k], &b));
    if (!b) {
      if (!g->deviceparent) PetscCall(MatGallopAttach(blocks[k], g->type));
      else PetscCall(MatConvert_AIJ_Gallop(blocks[k], g->type->seq, MAT_INPLACE_MATRIX, &blocks[k]));
      PetscCall(MatGallopCopyOptions(A, blocks[k]));
      PetscCall(MatGallopGetContext(blocks[k], &b));
    }
    if (!g->past || b->past != g->past) PetscCall(MatGallopShare(g, b));
  }
  if (diagonal) *diagonal = blocks[0];
  if (offdiagonal) *offdiagonal = blocks[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeReset(GallopExchange *exchange)
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) PetscCall(VecDestroy(&exchange->ghost[p]));
  exchange->id = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeBegin - Begins to bring the values of x that the off-diagonal block needs; they are in ghost after GallopExchangeEnd()

  ghost lives where x does. Work that needs no ghost value goes between the two calls.
*/
PetscErrorCode GallopExchangeBegin(Mat A, GallopExchange *exchange, Vec x, Vec *ghost)
{
  PetscSF            sf;
  PetscObjectId      id;
  Mat                offdiagonal;
  PetscInt           n;
  const PetscScalar *array;
  PetscMemType       memtype;
  GallopPlace        place;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(PetscObjectGetId((PetscObject)sf, &id));
  PetscCall(MatGallopGetBlocks(A, NULL, &offdiagonal));
  PetscCall(MatGetLocalSize(offdiagonal, NULL, &n));
  if (exchange->id != id || exchange->n != n) { /* a new pattern has a new PetscSF */
    PetscCall(GallopExchangeReset(exchange));
    exchange->id = id;
    exchange->n  = n;
  }
  PetscCall(VecGetArrayReadAndMemType(x, &array, &memtype));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  place = PetscMemTypeCUDA(memtype) ? GALLOP_DEVICE : GALLOP_HOST;
  if (!exchange->ghost[place]) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &exchange->ghost[place]));
    PetscCall(VecSetSizes(exchange->ghost[place], n, n));
    PetscCall(VecSetType(exchange->ghost[place], place == GALLOP_DEVICE ? VECSEQCUDA : VECSEQ));
    if (place == GALLOP_DEVICE) PetscCall(PetscDeviceContextSynchronize(NULL)); /* PETSc zeros new vectors on the default stream, for which a nonblocking one does not wait */
  }
  *ghost = exchange->ghost[place];
  PetscCall(VecScatterBegin(sf, x, *ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeEnd(Mat A, GallopExchange *exchange, Vec x, Vec ghost)
{
  PetscSF sf;

  PetscFunctionBegin;
  (void)exchange;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(VecScatterEnd(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, or z = A x + y */
static PetscErrorCode MatMultAddKernel_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  Mat_Gallop *g;
  Mat         diagonal, offdiagonal;
  Vec         ghost;
  PetscInt    n;
  MatInfo     info;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCheck(n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Incompatible partition of A (%" PetscInt_FMT ") and x (%" PetscInt_FMT ")", A->cmap->n, n);
  PetscCall(MatGallopGetBlocks(A, &diagonal, &offdiagonal));
  PetscCall(GallopExchangeBegin(A, &g->exchange, x, &ghost));
  if (y) PetscUseTypeMethod(diagonal, multadd, x, y, z);
  else PetscUseTypeMethod(diagonal, mult, x, z);
  PetscCall(GallopExchangeEnd(A, &g->exchange, x, ghost));
  PetscCall(MatGetInfo(offdiagonal, MAT_LOCAL, &info));
  if (info.nz_used > 0) PetscUseTypeMethod(offdiagonal, multadd, ghost, z, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_MPIGallop(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent adds up columns in new vectors that it takes to be zero. Those of the GPU are so on the GPU, not where it adds: it gets vectors of the host. */
PetscErrorCode MatNorm_MPIGallop(Mat A, NormType type, PetscReal *norm)
{
  Mat_Gallop *g;
  Mat         mats[2] = {A, NULL};
  char       *kept[2];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &mats[1], NULL));
  for (int k = 0; k < 2; k++) {
    VecType vectype;

    PetscCall(MatGetVecType(mats[k], &vectype));
    PetscCall(PetscStrallocpy(vectype, &kept[k]));
    PetscCall(MatSetVecType(mats[k], VECSTANDARD));
  }
  PetscCall((*g->parent.norm)(A, type, norm));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetVecType(mats[k], kept[k]));
    PetscCall(PetscFree(kept[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyEnd_MPIGallop(Mat A, MatAssemblyType mode)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall((*g->parent.assemblyend)(A, mode));
  if (mode == MAT_FINAL_ASSEMBLY) {
    Mat blocks[2];

    PetscCall(MatGallopGetBlocks(A, &blocks[0], &blocks[1]));
    for (int k = 0; k < 2; k++) { /* blocks that became ours just now have not been built in their own assembly */
      PetscObjectState state;
      void            *data;
      PetscBool        device;
      Mat_Gallop      *b;

      if (!g->build_in_assembly || A->structure_only) continue;
      PetscCall(MatGallopGetContext(blocks[k], &b));
      PetscCall(GallopDeviceAvailable(&device));
      PetscCall(PetscObjectStateGet((PetscObject)blocks[k], &state));
      PetscCall(MatGallopUpdate(blocks[k], b, GALLOP_FORMAT, device && !GallopBoundToCPU(blocks[k]) ? GALLOP_DEVICE : GALLOP_HOST, state, &data));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- dense matrices */

PetscErrorCode GallopDenseExchangeReset(GallopDenseExchange *exchange)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSFDestroy(&exchange->sf[k]));
    PetscCall(MatDestroy(&exchange->ghost[k]));
    PetscCall(MatDestroy(&exchange->packed[k]));
  }
  exchange->id = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Columns of a batch, where -matproduct_batch_size does not tell: as many as keep the ghost rows of each process below about twice its own rows, but no fewer than a few, with which exchanges
  take longer than they save memory. A PetscSF numbers all places of a batch, by PetscInt.
*/
static PetscErrorCode DenseExchangeBatch(Mat A, PetscInt ghosts, PetscInt columns, PetscInt asked, PetscInt *batch)
{
  static const PetscInt few   = 16;
  const PetscInt        limit = PETSC_INT_MAX / PetscMax(1, PetscMax(A->cmap->n, ghosts));
  PetscCount            most  = columns;

  PetscFunctionBegin;
  if (asked > 0) most = PetscMin(most, asked);
  else if (ghosts) most = PetscMin(most, PetscMax(few, 2 * (PetscCount)A->rmap->n * columns / ghosts));
  *batch = (PetscInt)PetscMin(most, limit);
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, batch, 1, MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseExchangeSetUp(Mat A, Mat C, PetscInt ghosts, PetscInt columns, GallopDenseExchange *exchange)
{
  PetscSF       sf;
  PetscObjectId id;
  PetscInt      asked = 0, batch;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(PetscObjectGetId((PetscObject)sf, &id));
  PetscCall(PetscOptionsGetInt(((PetscObject)C)->options, ((PetscObject)C)->prefix, "-matproduct_batch_size", &asked, NULL));
  if (exchange->id == id && exchange->columns == columns && exchange->asked == asked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDenseExchangeReset(exchange));
  PetscCall(DenseExchangeBatch(A, ghosts, columns, asked, &batch));
  PetscCall(PetscSFCreateStridedSF(sf, batch, A->cmap->n, ghosts, &exchange->sf[0]));
  if (columns % batch) PetscCall(PetscSFCreateStridedSF(sf, columns % batch, A->cmap->n, ghosts, &exchange->sf[1]));
  exchange->id      = id;
  exchange->columns = columns;
  exchange->asked   = asked;
  exchange->batch   = batch;
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

/* Whether TiledSpMM computes A B, or with one column the format. Decided by what is the same on all processes. */
PetscErrorCode MatGallopWantsDense_MPI(Mat A, Mat B, PetscBool *wanted)
{
  Mat_Gallop *g;
  PetscBool   device;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIDENSECUDA, &device));
  *wanted = (PetscBool)(B->cmap->N == 1 || (*g->structure[GALLOP_TILEDSPMM].type->format->wantsdense)(g->structure[GALLOP_TILEDSPMM].options, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, B->cmap->N));
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
  Mat                  diagonal, offdiagonal, b, c, packed;
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
  PetscCall(DenseExchangeSetUp(A, C, ghosts, columns, exchange));
  PetscCall(CreateLocalDense(ghosts, exchange->batch, place, &exchange->ghost[place]));
  PetscCall(PackColumns(exchange, place, b, &packed));
  for (PetscInt first = 0; first < columns; first += exchange->batch) {
    PetscSF      sf    = exchange->sf[columns - first < exchange->batch];
    Mat          ghost = exchange->ghost[place];
    PetscScalar *from, *to, *begin = NULL;
    PetscMemType mfrom, mto;
    PetscInt     ld;

    PetscCall(MatDenseGetLDA(packed, &ld));
    PetscCall(MatGallopDenseGetArray(packed, place, GALLOP_READ, &from, &mfrom));
    PetscCall(MatGallopDenseGetArray(ghost, place, GALLOP_WRITE, &to, &mto));
    if (from) begin = from + (PetscCount)first * ld;
    PetscCall(PetscSFBcastWithMemTypeBegin(sf, MPIU_SCALAR, mfrom, begin, mto, to, MPI_REPLACE));
    if (!first) PetscCall(MultiplyBlock(diagonal, b, c, PETSC_FALSE));
    PetscCall(PetscSFBcastEnd(sf, MPIU_SCALAR, begin, to, MPI_REPLACE));
    PetscCall(MatGallopDenseRestoreArray(ghost, place, GALLOP_WRITE, &to));
    PetscCall(MatGallopDenseRestoreArray(packed, place, GALLOP_READ, &from));
    if (info.nz_used > 0) PetscCall(AddOffdiagonal(offdiagonal, ghost, c, first));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
