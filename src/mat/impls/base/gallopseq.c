/*
  The sequential subclass at work: when a format is built, refreshed or kept, and the products that it computes.
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/vecimpl.h>

#if PetscDefined(HAVE_CUDA)
PETSC_EXTERN PetscErrorCode MatSeqAIJCUSPARSEGetIJ(Mat, PetscBool, const PetscInt *[], const PetscInt *[]);
PETSC_EXTERN PetscErrorCode MatSeqAIJCUSPARSERestoreIJ(Mat, PetscBool, const PetscInt *[], const PetscInt *[]);
PETSC_EXTERN PetscErrorCode MatSeqAIJCUSPARSEGetArrayRead(Mat, const PetscScalar *[]);
PETSC_EXTERN PetscErrorCode MatSeqAIJCUSPARSERestoreArrayRead(Mat, const PetscScalar *[]);
#endif

/* The pattern on the host, which is there wherever the values are */
PetscErrorCode MatGallopGetHostPattern(Mat A, const PetscInt **i, const PetscInt **j)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, i, j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for type %s", ((PetscObject)A)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The CSR arrays at a place. A GPU view of a matrix whose parent is on the host is uploaded and owned. fits is false where the GPU has no room for it, or for the parent's copy. */
typedef struct {
  GallopCSR csr;
  PetscBool owned, fits;
} CSRAccess;

static PetscErrorCode CSRUpload(CSRAccess *access, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  GallopCSR *csr = &access->csr;
  void      *di, *dj, *da;

  PetscFunctionBegin;
  access->owned = PETSC_TRUE;
  PetscCall(GallopDeviceMalloc((csr->m + 1) * sizeof(PetscInt), &di));
  PetscCall(GallopDeviceMalloc(csr->nz * sizeof(PetscInt), &dj));
  PetscCall(GallopDeviceMalloc(csr->nz * sizeof(PetscScalar), &da));
  access->fits = (PetscBool)(di && dj && da);
  if (access->fits) {
    PetscCall(GallopDeviceCopyIn(di, i, (csr->m + 1) * sizeof(PetscInt)));
    PetscCall(GallopDeviceCopyIn(dj, j, csr->nz * sizeof(PetscInt)));
    PetscCall(GallopDeviceCopyIn(da, a, csr->nz * sizeof(PetscScalar)));
  }
  csr->i = (PetscInt *)di;
  csr->j = (PetscInt *)dj;
  csr->a = (PetscScalar *)da;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* For DeviceCSRFits(): PETSc tells whether the copy on the GPU is current, but not whether an old one is there */
static void NoteCopied(Mat A, Mat_Gallop *g)
{
  if (A->offloadmask != PETSC_OFFLOAD_GPU && A->offloadmask != PETSC_OFFLOAD_BOTH) return;
  g->copied             = A;
  g->copiednonzerostate = A->nonzerostate;
}
#endif

/*
  Before the parent's copy on the GPU is used: PETSc takes it to be as new as the host's when the matrix says so, but some of PETSc's functions write the
  host's arrays without saying anything (MatTranspose() with reuse, MatEliminateZeros(), the compaction of ghost columns). Values that change on the GPU are
  always said to. So whatever has changed since the last look, and is said to be at both places, is on the host.
*/
PetscErrorCode MatGallopTrustHost(Mat A)
{
#if PetscDefined(HAVE_CUDA)
  Mat_Gallop      *g;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  NoteCopied(A, g);
  if (A->offloadmask == PETSC_OFFLOAD_BOTH && (state != g->seenstate || A->nonzerostate != g->seennonzerostate)) A->offloadmask = PETSC_OFFLOAD_CPU;
  g->seenstate        = state;
  g->seennonzerostate = A->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)A;
  return PETSC_SUCCESS;
#endif
}

/*
  MatGallopTrustDevice - Notes that the values of a matrix, or of the blocks of one, are on the GPU alone: a host that has them later got them from there

  To be called in a function that left them there, with the number of times that PETSc increases the state of the matrix after it
*/
PetscErrorCode MatGallopTrustDevice(Mat A, PetscObjectState increases)
{
#if PetscDefined(HAVE_CUDA)
  Mat         parts[2] = {A, NULL};
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!g || !g->deviceparent) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &parts[0], &parts[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!parts[k] || parts[k]->offloadmask != PETSC_OFFLOAD_GPU) continue;
    PetscCall(MatGallopGetContext(parts[k], &g));
    if (!g) continue;
    PetscCall(MatGallopTrustHost(parts[k]));
    if (parts[k] == A) g->seenstate += increases;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)A, (void)increases;
  return PETSC_SUCCESS;
#endif
}

/*
  DeviceCSRFits - Whether the parent's copy is on the GPU, or can be made there

  Asked before the parent makes it: without room PETSc ends in an error that leaves memory and an open log event behind. New values alone need no memory.
*/
static PetscErrorCode DeviceCSRFits(Mat A, Mat_Gallop *g, PetscBool *fits)
{
#if PetscDefined(HAVE_CUDA)
  const size_t   integer = sizeof(PetscInt), value = sizeof(PetscScalar);
  const PetscInt m = A->rmap->n, *i, *j;
  size_t         bytes;
  void          *room;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscCall(MatGallopTrustHost(A));
  if (A->offloadmask == PETSC_OFFLOAD_GPU || A->offloadmask == PETSC_OFFLOAD_BOTH || (g->copied == A && g->copiednonzerostate == A->nonzerostate)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  if (!i[m]) { /* there is nothing to copy, now and later */
    g->copied             = A;
    g->copiednonzerostate = A->nonzerostate;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (i[m] > (PetscInt64)m * A->cmap->n) { /* rows name columns more than once, so often that cuSPARSE refuses the arrays: PETSc would end in its error */
    PetscCall(PetscInfo(A, "More entries than a %" PetscInt_FMT " by %" PetscInt_FMT " matrix has places: cuSPARSE does not take it\n", m, A->cmap->n));
    *fits = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  bytes = ((size_t)m + 1) * integer + (size_t)i[m] * (integer + value);
  PetscCall(GallopDeviceMalloc(bytes, &room));
  PetscCall(GallopDeviceRelease(bytes, room));
  *fits = (PetscBool)(room != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)A, (void)g;
  *fits = PETSC_TRUE;
  return PETSC_SUCCESS;
#endif
}

#if PetscDefined(HAVE_CUDA)
/* A must carry the parent's name */
static PetscErrorCode ParentDeviceCSR(Mat A, const PetscInt **i, const PetscInt **j, const PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, i, j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent's copy of a matrix on the GPU, made where it is missing or old; DeviceCSRFits() comes first where a product can do without */
static PetscErrorCode DeviceCSR(Mat A, const PetscInt **i, const PetscInt **j, const PetscScalar **a)
{
#if PetscDefined(HAVE_CUDA)
  Mat_Gallop *g;
  GallopLoan  loan;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopTrustHost(A));
  PetscCall(GallopLoanBegin(&loan));
  PetscCall(GallopLoanAdd(&loan, A));
  GallopLoanCall(&loan, ParentDeviceCSR(A, i, j, a));
  NoteCopied(A, g);
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "No GPU");
#endif
}

/* Whether it is a Gallop matrix whose parent computes on the GPU */
static PetscErrorCode ParentIsOnDevice(Mat A, PetscBool *device)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  PetscCall(MatGallopGetContext(A, &g));
  *device = (PetscBool)(g && g->deviceparent && !GallopBoundToCPU(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopToDevice(Mat A)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscBool          device;

  PetscFunctionBegin;
  PetscCall(ParentIsOnDevice(A, &device));
  if (device) PetscCall(DeviceCSR(A, &i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the parent can compute a product with a dense matrix where it would: not on a GPU that has no room for its copy of A. With tried that is looked at only when there was none for TiledSpMM. */
PetscErrorCode MatGallopParentFits(Mat A, PetscBool tried, PetscBool *fits)
{
  Mat_Gallop *g;
  PetscBool   device;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(ParentIsOnDevice(A, &device));
  if (device && (!tried || g->structure[GALLOP_TILEDSPMM].instance[GALLOP_DEVICE].toolarge)) PetscCall(DeviceCSRFits(A, g, fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the entries are nowhere but there */
static PetscBool NewestOnHost(Mat A)
{
#if PetscDefined(HAVE_CUDA)
  return (PetscBool)(A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED);
#else
  (void)A;
  return PETSC_TRUE;
#endif
}

static PetscErrorCode CSRGet(Mat A, Mat_Gallop *g, const GallopFormat *format, GallopPlace place, CSRAccess *access)
{
  GallopCSR *csr  = &access->csr;
  PetscBool  host = (PetscBool)(place == GALLOP_HOST);

  PetscFunctionBegin;
  PetscCall(PetscMemzero(access, sizeof(*access)));
  access->fits = PETSC_TRUE;
  csr->m       = A->rmap->n;
  csr->n       = A->cmap->n;
  PetscCall(MatGallopGetHostPattern(A, &csr->host_i, &csr->host_j));
  csr->nz = csr->host_i[csr->m];
  if (!host && g->deviceparent) PetscCall(MatGallopTrustHost(A));
  if (!host && format->device_takes_host) host = (PetscBool)(!g->deviceparent || NewestOnHost(A));
  if (host) {
    csr->memtype = PETSC_MEMTYPE_HOST;
    csr->i       = csr->host_i;
    csr->j       = csr->host_j;
    PetscCall(MatSeqAIJGetArrayRead(A, &csr->a));
  } else {
    csr->memtype = PETSC_MEMTYPE_CUDA;
    if (g->deviceparent) {
      PetscCall(DeviceCSRFits(A, g, &access->fits));
      if (access->fits) PetscCall(DeviceCSR(A, &csr->i, &csr->j, &csr->a));
    } else {
      const PetscScalar *a;

      PetscCall(MatSeqAIJGetArrayRead(A, &a));
      PetscCall(CSRUpload(access, csr->host_i, csr->host_j, a));
      PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSRRestore(Mat A, CSRAccess *access)
{
  GallopCSR *csr = &access->csr;

  PetscFunctionBegin;
  if (access->owned) {
    PetscCall(GallopDeviceFree((void *)csr->i));
    PetscCall(GallopDeviceFree((void *)csr->j));
    PetscCall(GallopDeviceFree((void *)csr->a));
  } else if (csr->memtype == PETSC_MEMTYPE_HOST) PetscCall(MatSeqAIJRestoreArrayRead(A, &csr->a));
  /* the parent's GPU arrays are borrowed without a reference: there is nothing to give back */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of a sequential AIJ matrix, ours or not, where they are newest; those on the GPU are found there for Gallop matrices only */
PetscErrorCode MatGallopGetValuesRead(Mat A, const PetscScalar **a, PetscMemType *memtype)
{
  Mat_Gallop     *g;
  const PetscInt *i, *j;
  PetscBool       device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g && g->deviceparent) {
    PetscCall(MatGallopTrustHost(A));
    device = (PetscBool)(!GallopBoundToCPU(A) && !NewestOnHost(A));
  }
  *memtype = device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;
  if (device) PetscCall(DeviceCSR(A, &i, &j, a));
  else PetscCall(MatSeqAIJGetArrayRead(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopRestoreValuesRead(Mat A, const PetscScalar **a, PetscMemType memtype)
{
  PetscFunctionBegin;
  if (PetscMemTypeHost(memtype)) PetscCall(MatSeqAIJRestoreArrayRead(A, a)); /* what is on the GPU is borrowed without a reference */
  else *a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether values can be written on the GPU: the parent has a copy of the matrix there, or room for it */
PetscErrorCode MatGallopDeviceTakesValues(Mat A, PetscBool *takes)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(ParentIsOnDevice(A, takes));
  PetscCall(MatGallopGetContext(A, &g));
  if (*takes) PetscCall(DeviceCSRFits(A, g, takes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* A function of the parent's GPU code, which checks its name */
static PetscErrorCode CallByParentsName(Mat A, PetscErrorCode (*f)(Mat, PetscScalar **), PetscScalar **a)
{
  GallopLoan loan;

  PetscFunctionBegin;
  PetscCall(GallopLoanBegin(&loan));
  PetscCall(GallopLoanAdd(&loan, A));
  GallopLoanCall(&loan, (*f)(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopGetDeviceValuesWrite(Mat A, PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(MatGallopToDevice(A)); /* PETSc gives what there is for writing, but does not make it */
  PetscCall(CallByParentsName(A, MatSeqAIJCUSPARSEGetArrayWrite, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopRestoreDeviceValuesWrite(Mat A, PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(CallByParentsName(A, MatSeqAIJCUSPARSERestoreArrayWrite, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode MatGallopGetDeviceValuesWrite(Mat A, PetscScalar **a)
{
  (void)A;
  (void)a;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "No GPU");
}

PetscErrorCode MatGallopRestoreDeviceValuesWrite(Mat A, PetscScalar **a)
{
  return MatGallopGetDeviceValuesWrite(A, a);
}
#endif

/* That there is no room for a structure, or for what it needs during a product; with csr the GPU has none for the CSR arrays that the structure is built from */
PetscErrorCode MatGallopWarnTooLarge(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscBool csr)
{
  const GallopStructure *structure = &g->structure[kind];
  const char            *who = g->parenttype, *of = kind == GALLOP_FORMAT ? "" : " with dense matrices";
  char                   what[64], where[64];

  PetscFunctionBegin;
  if (csr && g->deviceparent) who = "the host"; /* where ParentMult() computes then */
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s", csr ? "CSR arrays" : structure->type->format->ucname));
  if (!csr) PetscCall(PetscStrlcat(what, " format", sizeof(what)));
  if (!csr && structure->maxbytes) PetscCall(PetscSNPrintf(where, sizeof(where), "within -mat_%s_memory", structure->type->format->name));
  else PetscCall(PetscSNPrintf(where, sizeof(where), "on the %s", place == GALLOP_DEVICE ? "GPU" : "host"));
  PetscCall(PetscInfo(A, "No room for the %s of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix %s: %s computes its products%s\n", what, A->rmap->n, A->cmap->n, where, who, of));
  if (!structure->type->warned) {
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no room for the %s of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix %s; %s computes its products%s. Further matrices: -info\n", what,
                           A->rmap->n, A->cmap->n, where, who, of));
    structure->type->warned = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From so many on, rows that have entries are counted where CSR is: on the host that takes as long as many products, 0.5 ns a row */
static const PetscInt ManyRows = 1 << 16;

/* Products that the parent computes before free memory is looked at once more: to ask the driver takes as long as a few small products. Doubled with each try that fails. */
static const PetscInt FewestWaits = 64, MostWaits = 1 << 16;

static PetscErrorCode NoteTooLarge(GallopInstance *inst, GallopPlace place)
{
  PetscFunctionBegin;
  inst->waits    = inst->toolarge ? PetscMin(2 * inst->waits, MostWaits) : FewestWaits;
  inst->waited   = 0;
  inst->toolarge = PETSC_TRUE;
  if (place == GALLOP_DEVICE) PetscCall(GallopDeviceGetFree(&inst->freethen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether more memory of the GPU is free than when a structure did not fit. What it needs is not known, but it is more than a part of the bytes of its values. */
static PetscErrorCode MayFitNow(GallopInstance *inst, GallopPlace place, PetscBool *may)
{
  size_t bytes;

  PetscFunctionBegin;
  *may = PETSC_FALSE;
  if (place != GALLOP_DEVICE || ++inst->waited < inst->waits) PetscFunctionReturn(PETSC_SUCCESS);
  inst->waited = 0;
  PetscCall(GallopDeviceGetFree(&bytes));
  *may = (PetscBool)(bytes > inst->freethen + (size_t)inst->key.nz * sizeof(PetscScalar) / 8);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopUpdate - Gives the structure, the format or TiledSpMM, that belongs to the entries that the matrix has now: as it is, with new values, or built anew

  state is the object state that the entries count as. *data is NULL where the structure does not fit, and where there are no entries: key.nz tells. No structure is made of a
  matrix without entries.
*/
PetscErrorCode MatGallopUpdate(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscObjectState state, void **data)
{
  GallopStructure        *structure = &g->structure[kind];
  GallopInstance         *inst      = &structure->instance[place];
  GallopKey              *key       = &inst->key, now;
  GallopType              type      = structure->type;
  const GallopFormatWork *work      = GallopWork(type->format, place);
  CSRAccess               access;
  const PetscInt         *i, *j;
  PetscBool               samepattern, again = PETSC_FALSE;

  PetscFunctionBegin;
  /* assembly from a hash table is one within another, which changes no more than the state */
  if (key->assemblies && key->assemblies == A->num_ass - 1 && key->state == state - 1) {
    key->state      = state;
    key->assemblies = 0;
  }
  if (inst->toolarge) PetscCall(MayFitNow(inst, place, &again));
  if (key->owner == A && key->state == state && key->nonzerostate == A->nonzerostate && !again) {
    *data = inst->data;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  now         = (GallopKey){A, state, A->nonzerostate, i, j, i[A->rmap->n], key->rows, 0};
  samepattern = (PetscBool)(key->owner == A && key->nonzerostate == now.nonzerostate && key->i == i && key->j == j && key->nz == now.nz);
  if (!samepattern) {
    if (inst->data) PetscCall((*work->destroy)(&inst->data));
    inst->data     = NULL;
    inst->toolarge = PETSC_FALSE;
    now.rows       = -1;
  }
  if (now.nz && (!inst->toolarge || again)) {
    PetscCall(CSRGet(A, g, type->format, place, &access));
    if (inst->data) {
      if (access.fits) {
        PetscCall(PetscLogEventBegin(type->event_refresh, A, 0, 0, 0));
        PetscCall((*work->refresh)(inst->data, &access.csr));
        PetscCall(PetscLogEventEnd(type->event_refresh, A, 0, 0, 0));
        (*structure->refreshes)++;
        if (type->format->lost && (*type->format->lost)(inst->data)) PetscCall((*work->destroy)(&inst->data));
      } else PetscCall((*work->destroy)(&inst->data));
    } else if (access.fits) {
      if (!type->cited) PetscCall(PetscCitationsRegister(type->format->citation, &type->cited));
      PetscCall(PetscLogEventBegin(type->event_build, A, 0, 0, 0));
      if (kind == GALLOP_FORMAT && access.csr.memtype == PETSC_MEMTYPE_CUDA && access.csr.m >= ManyRows) PetscCall(GallopDeviceCountRows(access.csr.m, access.csr.i, &now.rows));
      if (work) PetscCall((*work->build)(structure->options, &access.csr, structure->maxbytes, &inst->data));
      PetscCall(PetscLogEventEnd(type->event_build, A, 0, 0, 0));
      if (inst->data) (*structure->builds)++;
    }
    PetscCall(CSRRestore(A, &access));
    if (inst->data) inst->toolarge = PETSC_FALSE;
    else {
      PetscCall(NoteTooLarge(inst, place));
      PetscCall(MatGallopWarnTooLarge(A, g, kind, place, PetscNot(access.fits)));
    }
  }
  *key  = now;
  *data = inst->data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyEnd_SeqGallop(Mat A, MatAssemblyType mode)
{
  Mat_Gallop      *g;
  PetscObjectState state;
  void            *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall((*g->parent.assemblyend)(A, mode));
  for (int p = 0; p < 2; p++) g->structure[GALLOP_FORMAT].instance[p].key.assemblies = 0;
  if (mode == MAT_FINAL_ASSEMBLY && g->build_in_assembly && !A->structure_only) {
    PetscBool   device;
    GallopPlace place;

    PetscCall(GallopDeviceAvailable(&device));
    PetscCall(PetscObjectStateGet((PetscObject)A, &state));
    place = device && !GallopBoundToCPU(A) ? GALLOP_DEVICE : GALLOP_HOST;
    PetscCall(MatGallopUpdate(A, g, GALLOP_FORMAT, place, state + 1, &data)); /* MatAssemblyEnd() increases the state after this */
    g->structure[GALLOP_FORMAT].instance[place].key.assemblies = A->num_ass + 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* Whether vectors have their arrays on the GPU, when they are asked for there: those that are bound to the CPU have not */
static PetscBool OnDevice(Vec x, Vec y, Vec z)
{
  return (PetscBool)(x->ops->getarrayandmemtype && z->ops->getarrayandmemtype && (!y || y->ops->getarrayandmemtype));
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
  arrays->place = GALLOP_HOST;
  PetscCall(VecGetArrayRead(x, &arrays->x));
  if (y == z) PetscCall(VecGetArray(z, &arrays->z));
  else PetscCall(VecGetArrayWrite(z, &arrays->z));
  arrays->y = y ? arrays->z : NULL;
  if (y && y != z) PetscCall(VecGetArrayRead(y, &arrays->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { PARENT_MULT, PARENT_MULTADD, PARENT_MULTTRANSPOSE, PARENT_MULTTRANSPOSEADD, PARENT_MULTHERMITIANTRANSPOSE, PARENT_MULTHERMITIANTRANSPOSEADD } ParentProduct;

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

/* One of the parent's products, by a table of its functions. These look at the matrix's data and at none of A->ops, so that ours may stay there. */
static PetscErrorCode CallParent(Mat A, const struct _MatOps *parent, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (product) {
  case PARENT_MULT:
    PetscCall((*parent->mult)(A, x, z));
    break;
  case PARENT_MULTADD:
    PetscCall((*parent->multadd)(A, x, y, z));
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

/*
  A product of the CUSPARSE parent's on the host: by the functions that it has there, which it shows while it is bound to the CPU. To bind it costs more than a small product, so
  transposed products, which MATAIJ computes in the same way bound or not, keep the table; the others use inodes only when bound, and are here only where the GPU has no room.
*/
static PetscErrorCode CallParentOnHost(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  const PetscBool transposed = (PetscBool)(product != PARENT_MULT && product != PARENT_MULTADD);

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
  PetscCall(MatGallopInstall(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs one of the parent's products. The CUSPARSE parent takes only vectors of the GPU: with a vector on the host, or no room on the GPU for its copy of the matrix, it computes on the host. */
static PetscErrorCode ParentMult(Mat A, Mat_Gallop *g, ParentProduct product, Vec x, Vec y, Vec z)
{
  PetscBool fits = PETSC_TRUE, host = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY");
  g->stats.fallbacks++;
  if (!PetscDefined(USE_COMPLEX)) { /* cuSPARSE refuses the conjugate transpose of real matrices */
    if (product == PARENT_MULTHERMITIANTRANSPOSE) product = PARENT_MULTTRANSPOSE;
    if (product == PARENT_MULTHERMITIANTRANSPOSEADD) product = PARENT_MULTTRANSPOSEADD;
  }
  if (y && y != z && (product == PARENT_MULTTRANSPOSEADD || product == PARENT_MULTHERMITIANTRANSPOSEADD)) {
    /* AIJCUSPARSE of PETSc 3.26 adds to what z holds unless y is z */
    PetscCall(VecCopy(y, z));
    y = z;
  }
  if (g->deviceparent && !GallopBoundToCPU(A)) {
    const void *data = g->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].data;

    PetscCall(MatGallopTrustHost(A));
    host = PetscNot(OnDevice(x, y, z));
    if (!host && data && g->type->format->streams) host = (*g->type->format->streams)(data);
    if (!host) PetscCall(DeviceCSRFits(A, g, &fits));
    if (!fits) PetscCall(MatGallopWarnTooLarge(A, g, GALLOP_FORMAT, GALLOP_DEVICE, PETSC_TRUE));
  }
  if (host || !fits) PetscCall(CallParentOnHost(A, g, product, x, y, z));
  else PetscCall(CallParent(A, &g->parent, product, x, y, z));
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

/* Whether the format itself computes such products, at either place */
static PetscBool FormatComputes(const GallopFormat *format, ParentProduct product)
{
  return (PetscBool)(product == PARENT_MULT || product == PARENT_MULTADD || (format->host->applytranspose && (!format->device || format->device->applytranspose)));
}

/* As MATAIJ counts them. Rows that have not been counted on the GPU are after the first product was launched, while the GPU works. */
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

/* z = op(A) x, or z = op(A) x + y: the format, or the parent where there is no room for it */
static PetscErrorCode Multiply(Mat A, ParentProduct product, Vec x, Vec y, Vec z)
{
  const PetscScalar one = 1.0, zero = 0.0;
  const PetscBool   transposed = (PetscBool)(product != PARENT_MULT && product != PARENT_MULTADD);
  Mat_Gallop       *g;
  Arrays            arrays;
  void             *data;
  PetscObjectState  state;
  PetscCount        nz;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!FormatComputes(g->type->format, product)) {
    PetscCall(ParentMult(A, g, product, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCheck(!A->structure_only, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has a pattern but no values: MAT_STRUCTURE_ONLY"); /* MATAIJ reads them all the same */
  PetscCall(ArraysGet(A, x, y, z, &arrays));
  PetscCall(MatGallopUpdate(A, g, GALLOP_FORMAT, arrays.place, state, &data));
  if (data) {
    const GallopFormatWork *work      = GallopWork(g->type->format, arrays.place);
    const GallopProduct     p         = {&one, y ? &one : &zero, arrays.x, arrays.y, arrays.z};
    const PetscBool         conjugate = (PetscBool)(product == PARENT_MULTHERMITIANTRANSPOSE || product == PARENT_MULTHERMITIANTRANSPOSEADD);
    PetscLogDouble          flops;

    PetscCall(PetscLogEventBegin(g->type->event_mult, A, x, z, 0));
    if (arrays.place == GALLOP_DEVICE) PetscCall(PetscLogGpuTimeBegin());
    if (transposed) PetscCall((*work->applytranspose)(data, &p, conjugate));
    else PetscCall((*work->apply)(data, &p));
    flops = Flops(A, &g->structure[GALLOP_FORMAT].instance[arrays.place].key, (PetscBool) !(y || transposed));
    if (arrays.place == GALLOP_DEVICE) {
      PetscCall(PetscLogGpuTimeEnd());
      PetscCall(PetscLogGpuFlops(flops));
      g->stats.products_device++;
    } else {
      PetscCall(PetscLogFlops(flops));
      g->stats.products_host++;
    }
    PetscCall(PetscLogEventEnd(g->type->event_mult, A, x, z, 0));
  }
  nz = g->structure[GALLOP_FORMAT].instance[arrays.place].key.nz;
  if (!nz) PetscCall(NoEntries(transposed ? A->cmap->n : A->rmap->n, g, &arrays));
  PetscCall(ArraysRestore(x, y, z, &arrays));
  if (nz && !data) PetscCall(ParentMult(A, g, product, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define GALLOP_PRODUCT(name, product) \
  PetscErrorCode name##_SeqGallop(Mat A, Vec x, Vec z) \
  { \
    PetscFunctionBegin; \
    PetscCall(Multiply(A, product, x, NULL, z)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  } \
\
  PetscErrorCode name##Add_SeqGallop(Mat A, Vec x, Vec y, Vec z) \
  { \
    PetscFunctionBegin; \
    PetscCall(Multiply(A, product##ADD, x, y, z)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
GALLOP_PRODUCT(MatMult, PARENT_MULT)
GALLOP_PRODUCT(MatMultTranspose, PARENT_MULTTRANSPOSE)
GALLOP_PRODUCT(MatMultHermitianTranspose, PARENT_MULTHERMITIANTRANSPOSE)

/* The data of a structure built for a place, NULL when none is there */
static PetscErrorCode GetData(Mat A, GallopStructureKind kind, PetscMemType memtype, const void **data)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCheck(g, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Not for matrix type %s", ((PetscObject)A)->type_name);
  *data = g->structure[kind].instance[PetscMemTypeHost(memtype) ? GALLOP_HOST : GALLOP_DEVICE].data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopGetFormatData(Mat A, PetscMemType memtype, const void **data)
{
  return GetData(A, GALLOP_FORMAT, memtype, data);
}

PetscErrorCode MatGallopGetTiledSpMMData(Mat A, PetscMemType memtype, const void **data)
{
  return GetData(A, GALLOP_TILEDSPMM, memtype, data);
}
