/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequential matrices at work on dense ones: C = A B by TiledSpMM, which is kept beside the format. Those of MPI are in gallopdensempi.c. */

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

/* MatGallopDenseGetArray - The array of a sequential dense matrix, on the host, or where the matrix keeps it when it may be the GPU: memtype tells which */
PetscErrorCode MatGallopDenseGetArray(Mat M, GallopPlace place, GallopAccess access, PetscScalar **array, PetscMemType *memtype)
{
  const PetscScalar **from = (const PetscScalar **)array;

  PetscFunctionBegin;
  *memtype = PETSC_MEMTYPE_HOST;
  if (place == GALLOP_DEVICE) {
    if (access == GALLOP_READ) PetscCall(MatDenseGetArrayReadAndMemType(M, from, memtype));
    else if (access == GALLOP_WRITE) PetscCall(MatDenseGetArrayWriteAndMemType(M, array, memtype));
    else PetscCall(MatDenseGetArrayAndMemType(M, array, memtype));
  } else if (access == GALLOP_READ) PetscCall(MatDenseGetArrayRead(M, from));
  else if (access == GALLOP_WRITE) PetscCall(MatDenseGetArrayWrite(M, array));
  else PetscCall(MatDenseGetArray(M, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopDenseRestoreArray(Mat M, GallopPlace place, GallopAccess access, PetscScalar **array)
{
  const PetscScalar **from = (const PetscScalar **)array;

  PetscFunctionBegin;
  if (place == GALLOP_DEVICE) {
    if (access == GALLOP_READ) PetscCall(MatDenseRestoreArrayReadAndMemType(M, from));
    else if (access == GALLOP_WRITE) PetscCall(MatDenseRestoreArrayWriteAndMemType(M, array));
    else PetscCall(MatDenseRestoreArrayAndMemType(M, array));
  } else if (access == GALLOP_READ) PetscCall(MatDenseRestoreArrayRead(M, from));
  else if (access == GALLOP_WRITE) PetscCall(MatDenseRestoreArrayWrite(M, array));
  else PetscCall(MatDenseRestoreArray(M, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays of B and C, both at one place: on the GPU when both are there, else on the host */
typedef struct {
  PetscScalar *b, *c; /* b is read only */
  GallopPlace  place;
} DenseArrays;

static PetscErrorCode DenseArraysRestore(Mat B, Mat C, PetscBool add, DenseArrays *arrays)
{
  PetscFunctionBegin;
  PetscCall(MatGallopDenseRestoreArray(C, arrays->place, add ? GALLOP_READ_WRITE : GALLOP_WRITE, &arrays->c));
  PetscCall(MatGallopDenseRestoreArray(B, arrays->place, GALLOP_READ, &arrays->b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseArraysGet(Mat A, Mat B, Mat C, PetscBool add, DenseArrays *arrays)
{
  PetscBool    device = PETSC_FALSE;
  PetscMemType mb, mc;

  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && !GallopBoundToCPU(A) && !GallopBoundToCPU(B) && !GallopBoundToCPU(C))
    PetscCall(GallopDeviceAvailable(&device)); /* MatDenseGetArrayReadAndMemType() would bind them to the GPU */
  for (arrays->place = device ? GALLOP_DEVICE : GALLOP_HOST;; arrays->place = GALLOP_HOST) {
    PetscCall(MatGallopDenseGetArray(B, arrays->place, GALLOP_READ, &arrays->b, &mb));
    PetscCall(MatGallopDenseGetArray(C, arrays->place, add ? GALLOP_READ_WRITE : GALLOP_WRITE, &arrays->c, &mc));
    if (arrays->place == GALLOP_HOST || (PetscMemTypeCUDA(mb) && PetscMemTypeCUDA(mc))) break;
    PetscCall(DenseArraysRestore(B, C, add, arrays));
    PetscCall(PetscInfo(A, "A dense matrix of the product lives on the host: so does the product. Use type %s\n", MATDENSECUDA));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckArrays(const PetscScalar *b, const PetscScalar *c, PetscBool empty)
{
  PetscFunctionBegin;
  PetscCheck(b != c || empty, PETSC_COMM_SELF, PETSC_ERR_ARG_IDN, "The result of a product A B must not be B, or have its array");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a product of sequential matrices is computed, which B and C must be fit for */
PetscErrorCode MatGallopGetDensePlace(Mat A, Mat B, Mat C, GallopPlace *place)
{
  DenseArrays        arrays;
  const PetscScalar *b, *c;

  PetscFunctionBegin;
  PetscCall(DenseArraysGet(A, B, C, PETSC_FALSE, &arrays));
  b = arrays.b;
  c = arrays.c;
  PetscCall(DenseArraysRestore(B, C, PETSC_FALSE, &arrays));
  *place = arrays.place;
  PetscCall(CheckArrays(b, c, (PetscBool)(!B->cmap->n || !A->rmap->n)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSizes(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY");
  PetscCheck(B->rmap->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Number columns in A %" PetscInt_FMT " not equal rows in B %" PetscInt_FMT, A->cmap->n, B->rmap->n);
  PetscCheck(A->rmap->n == C->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Number rows in C %" PetscInt_FMT " not equal rows in A %" PetscInt_FMT, C->rmap->n, A->rmap->n);
  PetscCheck(B->cmap->n == C->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Number columns in B %" PetscInt_FMT " not equal columns in C %" PetscInt_FMT, B->cmap->n, C->cmap->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a product is one that TiledSpMM is for: A B of a matrix of ours, which does not carry its parent's name now, and a dense one. In MPI it is so for its blocks. */
PetscErrorCode MatProductIsDense_Gallop(const Mat_Product *product, PetscBool *seq, PetscBool *mpi)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  *seq = *mpi = PETSC_FALSE;
  if (product->type != MATPRODUCT_AB) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(product->A, &g));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)product->A)->type_name, g->type->seq, seq));
  PetscCall(PetscStrcmp(((PetscObject)product->A)->type_name, g->type->mpi, mpi));
  if (*seq) PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->B, MATSEQDENSE, seq));
  if (*mpi) PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->B, MATMPIDENSE, mpi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By TiledSpMM, or, with one column, by the format, as with a vector */
static PetscErrorCode Compute(const GallopFormat *format, GallopStructureKind kind, GallopPlace place, void *data, const GallopDenseProduct *p, PetscBool *done)
{
  const PetscScalar   one = 1.0, zero = 0.0;
  const GallopProduct column = {&one, p->add ? &one : &zero, p->b, p->add ? p->c : NULL, p->c, NULL, NULL};

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  if (kind == GALLOP_FORMAT) PetscCall((*GallopWork(format, place)->apply)(data, &column));
  else if (place == GALLOP_DEVICE) PetscCall((*GallopDense_TILEDSPMM.apply_device)(data, p, done));
  else PetscCall((*GallopDense_TILEDSPMM.apply_host)(data, p, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatMatMultNumeric_SeqGallop_SeqDense - C = A B, or C += A B

  *done is false where there is no room for the structure, or it is not wanted, as for few columns: the parent computes the product then
*/
PetscErrorCode MatMatMultNumeric_SeqGallop_SeqDense(Mat A, Mat B, Mat C, PetscBool add, PetscBool *done)
{
  const PetscInt      columns = B->cmap->n;
  const PetscBool     empty   = (PetscBool)(!columns || !A->rmap->n);
  GallopStructureKind kind    = GALLOP_TILEDSPMM;
  Mat_Gallop         *g;
  DenseArrays         arrays;
  PetscBool           wanted = PETSC_TRUE, pays = PETSC_TRUE;
  PetscObjectState    state;
  PetscCount          nz   = 0;
  void               *data = NULL;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(CheckSizes(A, B, C));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(DenseArraysGet(A, B, C, add, &arrays));
  PetscCall(CheckArrays(arrays.b, arrays.c, empty));
  if (!empty) wanted = (*GallopDense_TILEDSPMM.wants)(g->structure[GALLOP_TILEDSPMM].options, arrays.place == GALLOP_HOST ? PETSC_MEMTYPE_HOST : PETSC_MEMTYPE_CUDA, columns);
  if (!wanted && columns == 1) {
    kind   = GALLOP_FORMAT;
    wanted = PETSC_TRUE;
  } else if (!wanted && !empty && arrays.place == GALLOP_DEVICE) {
    PetscCall(MatGallopParentTakes(A, g, &wanted)); /* else it is not the parent's */
    wanted = PetscNot(wanted);
  }
  *done = (PetscBool)(wanted && empty);
  if (!empty && wanted && kind == GALLOP_FORMAT) PetscCall(MatGallopPays(A, g, kind, arrays.place, PETSC_TRUE, &pays));
  if (!empty && wanted && pays) {
    PetscCall(MatGallopUpdate(A, g, kind, arrays.place, state, PETSC_TRUE, &data));
    if (GallopLeaves(g->structure[kind].type->format, data)) data = NULL;
    nz    = g->structure[kind].instance[arrays.place].key.nz;
    *done = (PetscBool)!nz;
  }
  if (data) {
    GallopType           type  = g->structure[kind].type;
    const PetscLogDouble flops = 2.0 * (PetscLogDouble)nz * columns; /* as MATAIJ counts them */
    GallopDenseProduct   p     = {columns, arrays.b, 0, arrays.c, 0, add};

    PetscCall(MatDenseGetLDA(B, &p.ldb));
    PetscCall(MatDenseGetLDA(C, &p.ldc));
    PetscCall(PetscLogEventBegin(type->event_mult, A, B, C, 0));
    if (arrays.place == GALLOP_DEVICE) PetscCall(PetscLogGpuTimeBegin());
    PetscCall(Compute(type->format, kind, arrays.place, data, &p, done));
    if (arrays.place == GALLOP_DEVICE) PetscCall(PetscLogGpuTimeEnd());
    if (*done && arrays.place == GALLOP_DEVICE) PetscCall(PetscLogGpuFlops(flops));
    else if (*done) PetscCall(PetscLogFlops(flops));
    PetscCall(PetscLogEventEnd(type->event_mult, A, B, C, 0));
    if (!*done) PetscCall(MatGallopWarnLack(A, g, kind, arrays.place, GALLOP_LACKS_STRUCTURE));
  }
  PetscCall(DenseArraysRestore(B, C, add, &arrays));
  if (*done && !nz && !empty && !add) PetscCall(MatZeroEntries(C));
  if (!*done) g->stats.dense_fallbacks++;
  else if (arrays.place == GALLOP_DEVICE) g->stats.dense_products_device++;
  else g->stats.dense_products_host++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
