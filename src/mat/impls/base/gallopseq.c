/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The sequential subclass at work: the products that a format computes, and those that are the parent's.
*/

#include <gallop/matgallopimpl.h>

/* The arrays of the vectors of z = A x + y, all at one place: on the GPU when all are there, else on the host */
typedef struct {
  const PetscScalar *x, *y;
  PetscScalar       *z;
  GallopPlace        place;
} Arrays;

static PetscErrorCode ArraysGetOn(Vec x, Vec y, Vec z, Arrays *arrays, PetscBool *together)
{
  PetscMemType mx, my, mz;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(x, &arrays->x, &mx));
  if (y == z) PetscCall(VecGetArrayAndMemType(z, &arrays->z, &mz));
  else PetscCall(VecGetArrayWriteAndMemType(z, &arrays->z, &mz));
  my        = mz;
  arrays->y = y ? arrays->z : NULL;
  if (y && y != z) PetscCall(VecGetArrayReadAndMemType(y, &arrays->y, &my));
  *together     = (PetscBool)(PetscMemTypeCUDA(mx) && PetscMemTypeCUDA(my) && PetscMemTypeCUDA(mz));
  arrays->place = GALLOP_DEVICE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ArraysRestore(Vec x, Vec y, Vec z, Arrays *arrays)
{
  PetscFunctionBegin;
  if (arrays->place == GALLOP_DEVICE) {
    if (y && y != z) PetscCall(VecRestoreArrayReadAndMemType(y, &arrays->y));
    if (y == z) PetscCall(VecRestoreArrayAndMemType(z, &arrays->z));
    else PetscCall(VecRestoreArrayWriteAndMemType(z, &arrays->z));
    PetscCall(VecRestoreArrayReadAndMemType(x, &arrays->x));
  } else {
    if (y && y != z) PetscCall(VecRestoreArrayRead(y, &arrays->y));
    if (y == z) PetscCall(VecRestoreArray(z, &arrays->z));
    else PetscCall(VecRestoreArrayWrite(z, &arrays->z));
    PetscCall(VecRestoreArrayRead(x, &arrays->x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool OnDevice(Vec x, Vec y, Vec z)
{
  return (PetscBool)(GallopVecOnDevice(x) && GallopVecOnDevice(z) && (!y || GallopVecOnDevice(y)));
}

static PetscErrorCode HostArraysGet(Vec x, Vec y, Vec z, Arrays *arrays)
{
  PetscFunctionBegin;
  arrays->place = GALLOP_HOST;
  PetscCall(VecGetArrayRead(x, &arrays->x));
  if (y == z) PetscCall(VecGetArray(z, &arrays->z));
  else PetscCall(VecGetArrayWrite(z, &arrays->z));
  arrays->y = y ? arrays->z : NULL;
  if (y && y != z) PetscCall(VecGetArrayRead(y, &arrays->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ArraysGet(Mat A, Vec x, Vec y, Vec z, Arrays *arrays)
{
  PetscBool device = PETSC_FALSE, together = PETSC_FALSE;

  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && !GallopBoundToCPU(A)) PetscCall(GallopDeviceAvailable(&device));
  if (device) {
    if (OnDevice(x, y, z)) {
      PetscCall(ArraysGetOn(x, y, z, arrays, &together));
      if (together) PetscFunctionReturn(PETSC_SUCCESS);
      PetscCall(ArraysRestore(x, y, z, arrays));
    }
    PetscCall(PetscInfo(A, "A vector of the product lives on the host: so does the product. Use -vec_type cuda, -dm_vec_type cuda or MatCreateVecs()\n"));
  }
  PetscCall(HostArraysGet(x, y, z, arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { PARENT_MULT, PARENT_MULTADD, PARENT_RESIDUAL, PARENT_MULTTRANSPOSE, PARENT_MULTTRANSPOSEADD, PARENT_MULTHERMITIANTRANSPOSE, PARENT_MULTHERMITIANTRANSPOSEADD } ParentProduct;

static PetscBool IsTransposed(ParentProduct product)
{
  return (PetscBool)(product >= PARENT_MULTTRANSPOSE);
}

static PetscErrorCode ConjugatedTranspose(Mat A, PetscErrorCode (*multtranspose)(Mat, Vec, Vec), Vec x, Vec y, Vec z)
{
  Vec w, t;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &w));
  PetscCall(VecDuplicate(z, &t));
  PetscCall(VecCopy(x, w));
  PetscCall(VecConjugate(w));
  PetscCall((*multtranspose)(A, w, t));
  PetscCall(VecConjugate(t));
  if (y && y != z) PetscCall(VecCopy(y, z));
  if (y) PetscCall(VecAXPY(z, 1.0, t));
  else PetscCall(VecCopy(t, z));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  z = y - A x, of MPI vectors perhaps, of which only this process may be here: the vectors' own functions, not VecAYPX(), and no new vector, which would take a tag from the communicator
*/
static PetscErrorCode Residual(Mat A, const struct _MatOps *parent, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  if (y == z || y->ops->aypx != z->ops->aypx) { /* vectors of two places are copied by arrays */
    if (y != z) PetscUseTypeMethod(y, copy, z);
    PetscUseTypeMethod(z, scale, -1.0);
    PetscCall((*parent->multadd)(A, x, z, z));
    PetscUseTypeMethod(z, scale, -1.0);
  } else {
    PetscCall((*parent->mult)(A, x, z));
    PetscUseTypeMethod(z, aypx, -1.0, y);
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of the parent's products, by a table of its functions. These look at the matrix's data and at none of A->ops, so that ours may stay there. */
static PetscErrorCode ParentMultiply(Mat A, const struct _MatOps *parent, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (product) {
  case PARENT_MULT:
    PetscCall((*parent->mult)(A, x, z));
    break;
  case PARENT_MULTADD:
    PetscCall((*parent->multadd)(A, x, y, z));
    break;
  case PARENT_RESIDUAL:
    PetscCall(Residual(A, parent, x, y, z));
    break;
  case PARENT_MULTTRANSPOSE:
    PetscCall((*parent->multtranspose)(A, x, z));
    break;
  case PARENT_MULTTRANSPOSEADD:
    PetscCall((*parent->multtransposeadd)(A, x, y, z));
    break;
  case PARENT_MULTHERMITIANTRANSPOSE:
    if (parent->multhermitiantranspose) PetscCall((*parent->multhermitiantranspose)(A, x, z));
    else PetscCall(ConjugatedTranspose(A, parent->multtranspose, x, NULL, z));
    break;
  case PARENT_MULTHERMITIANTRANSPOSEADD:
    if (parent->multhermitiantransposeadd) PetscCall((*parent->multhermitiantransposeadd)(A, x, y, z));
    else PetscCall(ConjugatedTranspose(A, parent->multtranspose, x, y, z));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CallParent(Mat A, const struct _MatOps *parent, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  GallopCallByName(A, NULL, ParentMultiply(A, parent, product, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A product of the CUSPARSE parent's on the host: by the functions that it has there, which it shows while it is bound to the CPU. To bind it costs more than a small product, so
  transposed products, which MATAIJ computes in the same way bound or not, keep the table; the others use inodes only when bound, and are here only where the GPU has no room, or cuSPARSE does not take the matrix.
*/
static PetscErrorCode CallParentOnHost(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  const PetscBool transposed = IsTransposed(product);

  PetscFunctionBegin;
  if (transposed && g->parentonhost) {
    PetscCall(CallParent(A, g->parentonhost, product, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopUninstall(A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  if (!g->parentonhost) {
    PetscCall(PetscNew(&g->parentonhost));
    *g->parentonhost = *A->ops;
  }
  PetscCall(CallParent(A, g->parentonhost, product, x, y, z));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(MatGallopRetake(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the format itself computes such products, at either place */
static PetscBool FormatComputes(const GallopFormat *format, ParentProduct product)
{
  return (PetscBool)(!IsTransposed(product) || GallopComputesTranspose(format));
}

/* On the host, by the parent of either kind */
static PetscErrorCode HostParentMult(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  if (g->deviceparent && !GallopBoundToCPU(A)) PetscCall(CallParentOnHost(A, g, product, x, y, z));
  else PetscCall(CallParent(A, &g->parent, product, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A transposed product of MATSEQAIJ calls functions of its vectors. Those of an MPI vector are for all processes to call, with -log_sync they wait for all, and the other processes may have
  the format's product, or the GPU's: the parent gets sequential vectors with the same arrays.
*/
static PetscErrorCode HostParentMultOnLocal(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  Arrays   arrays;
  PetscInt nx, nz;
  Vec      lx, ly = NULL, lz;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &nx));
  PetscCall(VecGetLocalSize(z, &nz));
  PetscCall(HostArraysGet(x, y, z, &arrays));
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, nx, arrays.x, &lx));
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, nz, arrays.z, &lz));
  if (y && y != z) PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, nz, arrays.y, &ly));
  PetscCall(HostParentMult(A, g, product, lx, y == z && y ? lz : ly, lz));
  PetscCall(VecDestroy(&lx));
  PetscCall(VecDestroy(&ly));
  PetscCall(VecDestroy(&lz));
  PetscCall(ArraysRestore(x, y, z, &arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's product is timed where a format is being chosen */
static PetscErrorCode TimeParent(Mat_Gallop *g, ParentProduct product, GallopPlace place, PetscBool ends)
{
  const GallopFormat *format = g->type->format;
  void               *data   = g->structure[GALLOP_FORMAT].instance[place].data;

  PetscFunctionBegin;
  if (!IsTransposed(product) && GallopTries(format, data) && GallopLeaves(format, data)) PetscCall((*format->trial->parent)(data, ends));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs one of the parent's products. The CUSPARSE parent takes only vectors of the GPU: with a vector on the host, no room on the GPU for its copy of the matrix, or more nonzeros than cuSPARSE takes, it computes on the host. */
static PetscErrorCode ParentMult(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscBool   fits = PETSC_TRUE, takes = PETSC_TRUE, host = PETSC_TRUE, local;
  PetscMPIInt sizes[2];

  PetscFunctionBegin;
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY");
  g->stats.fallbacks++;
  if (!PetscDefined(USE_COMPLEX)) { /* cuSPARSE refuses the conjugate transpose of real matrices */
    if (product == PARENT_MULTHERMITIANTRANSPOSE) product = PARENT_MULTTRANSPOSE;
    if (product == PARENT_MULTHERMITIANTRANSPOSEADD) product = PARENT_MULTTRANSPOSEADD;
  }
  if (y && y != z && (product == PARENT_MULTTRANSPOSEADD || product == PARENT_MULTHERMITIANTRANSPOSEADD)) {
    /* AIJCUSPARSE of PETSc 3.26 adds to what z holds unless y is z */
    PetscUseTypeMethod(y, copy, z); /* VecCopy() is for all processes to call */
    PetscCall(PetscObjectStateIncrease((PetscObject)z));
    y = z;
  }
  if (g->deviceparent && !GallopBoundToCPU(A)) {
    const void *data = g->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].data;

    PetscCall(MatGallopTrustHost(A));
    host = PetscNot(OnDevice(x, y, z));
    if (!host && data && g->type->format->streams) host = (*g->type->format->streams)(data);
    if (!host) PetscCall(MatGallopParentTakes(A, g, &takes));
    if (!host && takes) PetscCall(MatGallopDeviceCSRFits(A, g, &fits));
    if (!fits || !takes) PetscCall(MatGallopWarnLack(A, g, GALLOP_FORMAT, GALLOP_DEVICE, takes ? GALLOP_LACKS_CSR : GALLOP_LACKS_PARENT));
  }
  if (!host && takes && fits) {
    PetscCall(MatGallopNoteParentProduct(g));
    PetscCall(TimeParent(g, product, GALLOP_DEVICE, PETSC_FALSE));
    PetscCall(CallParent(A, &g->parent, product, x, y, z));
    PetscCall(TimeParent(g, product, GALLOP_DEVICE, PETSC_TRUE));
    MatGallopNoteCopy(A, g);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)x), &sizes[0]));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)z), &sizes[1]));
  /* by what is the same on all processes: not whether this one's block has the CUSPARSE parent */
  local = (PetscBool)((sizes[0] > 1 || sizes[1] > 1) && IsTransposed(product) && (PetscDefined(HAVE_CUDA) || FormatComputes(g->type->format, product) || g->transpose == GALLOP_TRANSPOSE_ALWAYS));
  PetscCall(TimeParent(g, product, GALLOP_HOST, PETSC_FALSE));
  if (local) PetscCall(HostParentMultOnLocal(A, g, product, x, y, z));
  else PetscCall(HostParentMult(A, g, product, x, y, z));
  PetscCall(TimeParent(g, product, GALLOP_HOST, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = y or 0. On arrays: z may be an MPI vector, whose functions are for all processes to call, and others may have entries. */
static PetscErrorCode NoEntries(PetscInt n, Mat_Gallop *g, Arrays *arrays)
{
  const size_t bytes = n * sizeof(PetscScalar);

  PetscFunctionBegin;
  if (arrays->place == GALLOP_DEVICE) {
    if (!arrays->y) PetscCall(GallopDeviceZero(arrays->z, bytes));
    else if (arrays->y != arrays->z) PetscCall(GallopDeviceCopy(arrays->z, arrays->y, bytes));
    g->stats.products_device++;
  } else {
    if (!arrays->y) PetscCall(PetscMemzero(arrays->z, bytes));
    else if (arrays->y != arrays->z) PetscCall(PetscMemcpy(arrays->z, arrays->y, bytes));
    g->stats.products_host++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As MATAIJ counts them. Rows not counted on the GPU are counted here, after the launch, while the GPU works. */
static PetscLogDouble Flops(Mat A, GallopKey *key, PetscBool plain)
{
  if (plain && key->rows < 0) {
    const PetscInt *i = key->i, m = A->rmap->n;
    PetscInt        rows = 0;

    for (PetscInt r = 0; r < m; r++) rows += i[r + 1] > i[r];
    key->rows = rows;
  }
  return 2.0 * (PetscLogDouble)key->nz - (plain ? key->rows : 0);
}

/*
  Whether a format of the transpose is for such a product: the format itself does not compute it, or not as fast. Not where it would be another copy on the host, unless that is wanted, nor of a
  matrix that the GPU has no room for.
*/
static PetscBool TakesTranspose(Mat_Gallop *g, ParentProduct product, GallopPlace place)
{
  const GallopFormat *format = g->type->format;
  const void         *data   = g->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].data;

  if (!IsTransposed(product) || (GallopComputesTranspose(format) && !format->prefers_transpose) || !GallopWork(format, place)) return PETSC_FALSE;
  if (PetscDefined(USE_COMPLEX) && (product == PARENT_MULTHERMITIANTRANSPOSE || product == PARENT_MULTHERMITIANTRANSPOSEADD)) return PETSC_FALSE;
  if (place == GALLOP_HOST) return (PetscBool)(g->transpose == GALLOP_TRANSPOSE_ALWAYS);
  return (PetscBool)(g->transpose != GALLOP_TRANSPOSE_NEVER && !(data && format->streams && (*format->streams)(data)));
}

/* A structure for the next product, if it pays: *is tells. *data stays NULL where it has no room, and of a matrix without entries. */
static PetscErrorCode Take(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscObjectState state, PetscBool *is, void **data)
{
  PetscFunctionBegin;
  *data = NULL;
  PetscCall(MatGallopPays(A, g, kind, place, PETSC_TRUE, is));
  if (*is) PetscCall(MatGallopUpdate(A, g, kind, place, state, PETSC_TRUE, data));
  if (*data && GallopLeaves(g->type->format, *data)) *data = NULL;
  if (!*data && g->structure[kind].instance[place].key.nz) *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What computes a product: the format of the transpose, the format, or, where *is is false, the parent. A format that prefers that of the transpose is not built for a transposed product. */
static PetscErrorCode Choose(Mat A, Mat_Gallop *g, ParentProduct product, GallopPlace place, PetscObjectState state, GallopStructureKind *kind, PetscBool *is, void **data)
{
  const PetscBool takes = TakesTranspose(g, product, place);

  PetscFunctionBegin;
  *is   = PETSC_FALSE;
  *data = NULL;
  *kind = GALLOP_TRANSPOSE;
  if (takes) PetscCall(Take(A, g, GALLOP_TRANSPOSE, place, state, is, data));
  if (*is || !FormatComputes(g->type->format, product) || (takes && !g->structure[GALLOP_FORMAT].instance[place].data)) PetscFunctionReturn(PETSC_SUCCESS);
  *kind = GALLOP_FORMAT;
  PetscCall(Take(A, g, GALLOP_FORMAT, place, state, is, data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product by what Choose() chose; x and z belong to the log */
static PetscErrorCode Compute(Mat A, Mat_Gallop *g, ParentProduct product, GallopStructureKind kind, GallopPlace place, void *data, const GallopProduct *p, Vec x, Vec z)
{
  const GallopFormatWork *work       = GallopWork(g->type->format, place);
  const PetscBool         transposed = IsTransposed(product), conjugate = (PetscBool)(product == PARENT_MULTHERMITIANTRANSPOSE || product == PARENT_MULTHERMITIANTRANSPOSEADD);
  PetscLogDouble          flops;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(g->type->event_mult, A, x, z, 0));
  if (place == GALLOP_DEVICE) PetscCall(PetscLogGpuTimeBegin());
  if (transposed && kind == GALLOP_FORMAT) PetscCall((*work->applytranspose)(data, p, conjugate));
  else PetscCall((*work->apply)(data, p));
  flops = Flops(A, &g->structure[kind].instance[place].key, (PetscBool) !(p->y || transposed));
  if (p->epilogue && p->epilogue->dot && !p->epilogue->dot->adds) flops += 2.0 * A->rmap->n; /* which those of another block have been counted in */
  if (p->epilogue && (p->epilogue->d || p->epilogue->u || *p->epilogue->delta != 0.0)) flops += 6.0 * A->rmap->n;
  if (place == GALLOP_DEVICE) {
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(flops));
    g->stats.products_device++;
  } else {
    PetscCall(PetscLogFlops(flops));
    g->stats.products_host++;
  }
  PetscCall(PetscLogEventEnd(g->type->event_mult, A, x, z, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *dot is that of terms, with memory for its sums, where the format can and there is room; else NULL. adds: of what the product adds to z. */
static PetscErrorCode DotBegin(const GallopFormat *format, const void *data, const GallopTerms *terms, Vec x, const PetscScalar *xarray, PetscBool adds, const GallopDot **dot)
{
  const PetscCount parts = format->dotparts ? (*format->dotparts)(data, adds) : 0;
  GallopDot       *d     = terms->dot;

  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (parts > PetscMax(d->room, -d->room)) {
    void *memory;

    PetscCall(GallopDeviceFree(d->partial));
    PetscCall(GallopDeviceMalloc((size_t)parts * sizeof(PetscScalar), &memory));
    d->partial = (PetscScalar *)memory;
    d->room    = memory ? parts : -parts; /* negative: there is no room for so many, and nobody asks again */
  }
#endif
  *dot = parts && parts <= d->room ? d : NULL;
  if (!*dot) PetscFunctionReturn(PETSC_SUCCESS);
  d->adds = adds;
  if (terms->with == x) d->with = xarray;
  else PetscCall(VecGetArrayReadAndMemType(terms->with, &d->with, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DotEnd(const GallopTerms *terms, Vec x, PetscBool *dot)
{
  PetscFunctionBegin;
  *dot = PETSC_TRUE;
  if (terms->with != x) PetscCall(VecRestoreArrayReadAndMemType(terms->with, &terms->dot->with));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x, z = op(A) x + y, or z = y - A x: the format, that of the transpose, or the parent. terms: NULL, or a dot product that is wanted; *dot is set where it is there. */
static PetscErrorCode Multiply(Mat A, ParentProduct product, Vec x, Vec y, Vec z, const GallopTerms *terms, PetscBool *dot)
{
  const PetscScalar   one = 1.0, zero = 0.0, minusone = -1.0;
  GallopEpilogue      epilogue   = {NULL, NULL, &zero, &zero, NULL};
  const PetscBool     transposed = IsTransposed(product);
  GallopStructureKind kind;
  Mat_Gallop         *g;
  Arrays              arrays;
  void               *data;
  PetscObjectState    state;
  PetscBool           is;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!FormatComputes(g->type->format, product) && (g->transpose == GALLOP_TRANSPOSE_NEVER || (g->transpose == GALLOP_TRANSPOSE_GPU && (!g->deviceparent || GallopBoundToCPU(A))))) {
    PetscCall(ParentMult(A, g, product, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY"); /* MATAIJ reads them all the same */
  PetscCall(ArraysGet(A, x, y, z, &arrays));
  PetscCall(Choose(A, g, product, arrays.place, state, &kind, &is, &data));
  if (data) {
    GallopProduct p = {product == PARENT_RESIDUAL ? &minusone : &one, y ? &one : &zero, arrays.x, arrays.y, arrays.z, NULL, NULL};

    if (terms && arrays.place == GALLOP_DEVICE) PetscCall(DotBegin(g->type->format, data, terms, x, arrays.x, (PetscBool)(y != NULL), &epilogue.dot));
    if (epilogue.dot) p.epilogue = &epilogue;
    PetscCall(Compute(A, g, product, kind, arrays.place, data, &p, x, z));
    if (epilogue.dot) PetscCall(DotEnd(terms, x, dot));
  } else if (is) PetscCall(NoEntries(transposed ? A->cmap->n : A->rmap->n, g, &arrays));
  PetscCall(ArraysRestore(x, y, z, &arrays));
  if (!is) PetscCall(ParentMult(A, g, product, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatMult(); of a block and vectors of the whole matrix, whose lengths that would not take, what it calls */
static PetscErrorCode Mult(Mat A, Vec x, Vec w)
{
  PetscFunctionBegin;
  if (x->map->N == A->cmap->N && w->map->N == A->rmap->N) PetscCall(MatMult(A, x, w));
  else PetscUseTypeMethod(A, mult, x, w);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopMultTerms_Seq - z = d (alpha A x + beta y) + gamma u + delta x on the GPU, as one product where the format can; else A x alone

  Input Parameters:
+ A     - a matrix, perhaps of ours, or a block of ours with vectors of the whole matrix
. terms - of the sum; u may be z
. x     - multiplied by A; not z
. y     - not z
- w     - takes A x where the rest is left to the caller

  Output Parameters:
+ z    - the sum
. done - false where w has A x, and z is as it was
- dot  - whether the dot product of terms is there; NULL where none is wanted

  Note:
  The vectors are on the GPU, and so is what they hold.
*/
PetscErrorCode MatGallopMultTerms_Seq(Mat A, const GallopTerms *terms, Vec x, Vec y, Vec w, Vec z, PetscBool *done, PetscBool *dot)
{
  GallopEpilogue      epilogue = {NULL, NULL, &terms->gamma, &terms->delta, NULL};
  GallopStructureKind kind;
  Mat_Gallop         *g;
  Arrays              arrays;
  void               *data = NULL;
  PetscObjectState    state;
  PetscBool           is   = PETSC_FALSE;
  const PetscBool     adds = (PetscBool)(terms->beta == 0.0 && terms->u == z && terms->gamma == 1.0 && terms->delta == 0.0 && !dot);

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (dot) *dot = PETSC_FALSE;
  PetscCall(MatGallopGetContext(A, &g));
  if (A->ops->mult != MatMult_SeqGallop || !g->type->format->storesrows || !g->deviceparent || GallopBoundToCPU(A) || !A->assembled || A->factortype || x->map->n != A->cmap->n || z->map->n != A->rmap->n) {
    PetscCall(Mult(A, x, w)); /* which says what is wrong, if something is */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY");
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(ArraysGet(A, x, y, z, &arrays));
  if (arrays.place == GALLOP_DEVICE) PetscCall(Choose(A, g, PARENT_MULT, arrays.place, state, &kind, &is, &data));
  if (data && (*g->type->format->storesrows)(data, adds)) {
    GallopProduct p = {&terms->alpha, &terms->beta, arrays.x, arrays.y, arrays.z, &epilogue, NULL};

    if (terms->d) PetscCall(VecGetArrayReadAndMemType(terms->d, &epilogue.d, NULL));
    if (terms->u == z) epilogue.u = arrays.z;
    else if (terms->u) PetscCall(VecGetArrayReadAndMemType(terms->u, &epilogue.u, NULL));
    if (dot) PetscCall(DotBegin(g->type->format, data, terms, x, arrays.x, PETSC_FALSE, &epilogue.dot));
    PetscCall(PetscLogEventBegin(MAT_Mult, A, x, z, 0));
    PetscCall(Compute(A, g, PARENT_MULT, kind, arrays.place, data, &p, x, z));
    PetscCall(PetscLogEventEnd(MAT_Mult, A, x, z, 0));
    if (epilogue.dot) PetscCall(DotEnd(terms, x, dot));
    if (terms->u && terms->u != z) PetscCall(VecRestoreArrayReadAndMemType(terms->u, &epilogue.u));
    if (terms->d) PetscCall(VecRestoreArrayReadAndMemType(terms->d, &epilogue.d));
    *done = PETSC_TRUE;
  }
  PetscCall(ArraysRestore(x, y, z, &arrays));
  if (*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (data || is || arrays.place == GALLOP_HOST) PetscCall(Mult(A, x, w));
  else {
    /* not MatMult(), which would count the product again */
    PetscCall(PetscLogEventBegin(MAT_Mult, A, x, w, 0));
    PetscCall(ParentMult(A, g, PARENT_MULT, x, NULL, w));
    PetscCall(PetscLogEventEnd(MAT_Mult, A, x, w, 0));
    PetscCall(PetscObjectStateIncrease((PetscObject)w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopMultDot_Seq - z = A x, or z += A x, of a block: and the dot product of terms with A x, which is added to the one that is there in the latter case; *dot is false where it is not computed */
PetscErrorCode MatGallopMultDot_Seq(Mat A, const GallopTerms *terms, Vec x, PetscBool adds, Vec z, PetscBool *dot)
{
  PetscFunctionBegin;
  *dot = PETSC_FALSE;
  if (A->ops->mult == MatMult_SeqGallop) PetscCall(Multiply(A, adds ? PARENT_MULTADD : PARENT_MULT, x, adds ? z : NULL, z, terms, dot));
  else if (adds) PetscUseTypeMethod(A, multadd, x, z, z);
  else PetscUseTypeMethod(A, mult, x, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopMultAgain_Seq - A CUDA graph runs the last product of a matrix again: it is logged and counted as if it had been launched here */
PetscErrorCode MatGallopMultAgain_Seq(Mat A, Vec x, Vec z, PetscLogDouble flops)
{
  Mat_Gallop *g;
  PetscBool   pays;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopPays(A, g, GALLOP_FORMAT, GALLOP_DEVICE, PETSC_TRUE, &pays));
  PetscCall(PetscLogEventBegin(MAT_Mult, A, x, z, 0));
  PetscCall(PetscLogEventBegin(g->type->event_mult, A, x, z, 0));
  PetscCall(PetscLogGpuFlops(flops));
  PetscCall(PetscLogEventEnd(g->type->event_mult, A, x, z, 0));
  PetscCall(PetscLogEventEnd(MAT_Mult, A, x, z, 0));
  g->stats.products_device++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatMult() checks before it calls a type's function, and MatResidual() does not */
PetscErrorCode MatGallopCheckResidual(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  PetscCheck(A->assembled, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCheck(!A->factortype, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Not for factored matrix");
  PetscCheck(x != r, PETSC_COMM_SELF, PETSC_ERR_ARG_IDN, "x and r must be different vectors");
  PetscCheck(x->map->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Mat A, Vec x: local dim %" PetscInt_FMT " %" PetscInt_FMT, A->cmap->n, x->map->n);
  PetscCheck(b->map->n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Mat A, Vec b: local dim %" PetscInt_FMT " %" PetscInt_FMT, A->rmap->n, b->map->n);
  PetscCheck(r->map->n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Mat A, Vec r: local dim %" PetscInt_FMT " %" PetscInt_FMT, A->rmap->n, r->map->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatResidual_SeqGallop(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  PetscCall(MatGallopCheckResidual(A, b, x, r));
  PetscCall(Multiply(A, PARENT_RESIDUAL, x, b, r, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define GALLOP_PRODUCT(name, product) \
  PetscErrorCode name##_SeqGallop(Mat A, Vec x, Vec z) \
  { \
    PetscFunctionBegin; \
    PetscCall(Multiply(A, product, x, NULL, z, NULL, NULL)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  } \
\
  PetscErrorCode name##Add_SeqGallop(Mat A, Vec x, Vec y, Vec z) \
  { \
    PetscFunctionBegin; \
    PetscCall(Multiply(A, product##ADD, x, y, z, NULL, NULL)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
GALLOP_PRODUCT(MatMult, PARENT_MULT)
GALLOP_PRODUCT(MatMultTranspose, PARENT_MULTTRANSPOSE)
GALLOP_PRODUCT(MatMultHermitianTranspose, PARENT_MULTHERMITIANTRANSPOSE)
