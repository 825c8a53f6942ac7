/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Copies of the CSR arrays on the GPU: the parent's, which goes when the format is there, and those that are made for a build or a refresh and go after it.

  The parent makes its copy whenever one of its operations finds none, so to take it away is to leave the matrix as it was before its first use on the GPU. A copy that came back stays for as
  long as the pattern: what has used it will do so again, and to make it takes longer than to renew its values.
*/

#include <gallop/matgallopimpl.h>
#include <petscdevice.h>

PetscErrorCode MatGallopFreeRows(Mat_Gallop *g)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(g->rows));
  g->rows = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What refreshes take is kept for the next one, as other workspace; a build's would be kept for nothing */
static PetscErrorCode Malloc(const GallopCSRAccess *access, size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  if (access->refresh) PetscCall(GallopWorkspaceMalloc(bytes, ptr));
  else PetscCall(GallopDeviceMalloc(bytes, ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(const GallopCSRAccess *access, const void *ptr)
{
  PetscFunctionBegin;
  if (access->refresh) PetscCall(GallopWorkspaceFree((void *)ptr));
  else PetscCall(GallopDeviceFree((void *)ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where rows begin. Who refreshes once does so again: it stays for the next time, 4 bytes per row, that values alone are copied then. */
static PetscErrorCode UploadRows(Mat A, Mat_Gallop *g, GallopCSRAccess *access)
{
  GallopCSR   *csr   = &access->csr;
  const size_t bytes = (size_t)(csr->m + 1) * sizeof(PetscInt);
  void        *rows  = NULL;

  PetscFunctionBegin;
  access->ownsrows = (PetscBool) !(access->refresh && g->deviceparent);
  csr->i           = g->rows;
  if (g->rows && access->refresh && g->rowsnonzerostate == A->nonzerostate) PetscFunctionReturn(PETSC_SUCCESS); /* a build may be for a pattern that has changed in silence */
  PetscCall(MatGallopFreeRows(g));
  if (access->ownsrows) PetscCall(Malloc(access, bytes, &rows));
  else {
    PetscCall(GallopDeviceMalloc(bytes, &rows));
    g->rows             = (PetscInt *)rows;
    g->rowsnonzerostate = A->nonzerostate;
  }
  if (rows) PetscCall(GallopDeviceCopyIn(rows, csr->host_i, bytes));
  csr->i = (PetscInt *)rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From this many bytes of CSR arrays on they do not stay: to free the copy and to make it anew takes as long as some products of a smaller matrix */
static const size_t Large = (size_t)16 << 20;

/*
  How much memory has to be free for copies of the arrays: for a build, which makes the format too, so many times what these take; with less, values are read on the host, and columns too with half of it. For a refresh
  twice what is copied. What is read on the host comes at the speed of the bus each time; of values that is once or twice where they are read in order, of columns several times.
*/
static const size_t AmpleForBuild = 6, AmpleForRefresh = 2;

/* more: bytes that will be free by then, too */
static PetscErrorCode ReadsHost(const Mat_Gallop *g, const GallopCSRAccess *access, size_t more, PetscBool *values, PetscBool *columns)
{
  const size_t bytes = GallopCSRBytes(access->csr.m, access->csr.nz), values_bytes = (size_t)access->csr.nz * sizeof(PetscScalar);
  size_t       free;

  PetscFunctionBegin;
  *values = *columns = (PetscBool)(g->csr == GALLOP_CSR_HOST);
  if (*values || bytes < Large) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceGetFree(&free));
  free += more;
  if (access->refresh) *values = *columns = (PetscBool)(free / AmpleForRefresh < (access->columns ? bytes : values_bytes));
  else {
    *values  = (PetscBool)(free / AmpleForBuild < bytes);
    *columns = (PetscBool)(free / AmpleForBuild < bytes / 2);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Complex numbers that are not where the compiler would put them, in an array of the user's, cannot be loaded as such */
static PetscErrorCode Map(const void *host, size_t bytes, size_t each, void **device, const void **mapped)
{
  PetscFunctionBegin;
  if ((size_t)host % each == 0) PetscCall(GallopHostMap(host, bytes, device));
  if (*device) *mapped = host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An array of the host where kernels can read it: a copy, or the host's, *mapped, where that is wanted, or a copy has no room */
static PetscErrorCode Bring(const GallopCSRAccess *access, PetscBool map, const void *host, PetscCount n, size_t each, void **device, const void **mapped)
{
  const size_t bytes = (size_t)n * each;

  PetscFunctionBegin;
  *device = NULL;
  *mapped = NULL;
  if (map) PetscCall(Map(host, bytes, each, device, mapped));
  if (!*device) {
    PetscCall(Malloc(access, bytes, device));
    if (*device) PetscCall(GallopDeviceCopyIn(*device, host, bytes));
    else if (!map && bytes >= Large / 4) PetscCall(Map(host, bytes, each, device, mapped));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TakeAway(const GallopCSRAccess *access, const void *device, const void *mapped, size_t bytes)
{
  PetscFunctionBegin;
  if (mapped) PetscCall(GallopHostUnmap(mapped, bytes));
  else PetscCall(Free(access, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopMayRestore - Whether there is room for arrays that a format gives back, and for what is built of them: as much as lets a build have copies */
PetscErrorCode MatGallopMayRestore(const Mat_Gallop *g, GallopCSRAccess *access)
{
  PetscBool values, columns;

  PetscFunctionBegin;
  PetscCall(ReadsHost(g, access, 0, &values, &columns));
  access->fits = PetscNot(values);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopUploadCSR - Brings the arrays of the host to the GPU, columns only if they are wanted, for MatGallopFreeCSR() */
PetscErrorCode MatGallopUploadCSR(Mat A, Mat_Gallop *g, GallopCSRAccess *access)
{
  GallopCSR         *csr = &access->csr;
  const PetscScalar *a;
  void              *dj = NULL, *da = NULL;
  PetscBool          mapsa, mapsj;

  PetscFunctionBegin;
  access->owned   = PETSC_TRUE;
  access->mappedj = NULL;
  access->mappeda = NULL;
  PetscCall(ReadsHost(g, access, 0, &mapsa, &mapsj));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(UploadRows(A, g, access));
  if (access->columns && csr->i) PetscCall(Bring(access, mapsj, csr->host_j, csr->nz, sizeof(PetscInt), &dj, &access->mappedj));
  if (csr->i && (dj || !access->columns)) PetscCall(Bring(access, mapsa, a, csr->nz, sizeof(PetscScalar), &da, &access->mappeda));
  access->fits = (PetscBool)(da != NULL);
  if (access->fits) {
    PetscCall(PetscDeviceContextSynchronize(NULL)); /* the host's may be pinned, and change soon */
    if (g->deviceparent && (access->mappeda || access->mappedj)) g->stats.csr_maps++;
    else if (g->deviceparent) g->stats.csr_uploads++;
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  csr->j = (PetscInt *)dj;
  csr->a = (PetscScalar *)da;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopFreeCSR(GallopCSRAccess *access)
{
  PetscFunctionBegin;
  if (access->ownsrows) PetscCall(Free(access, access->csr.i));
  PetscCall(TakeAway(access, access->csr.j, access->mappedj, (size_t)access->csr.nz * sizeof(PetscInt)));
  PetscCall(TakeAway(access, access->csr.a, access->mappeda, (size_t)access->csr.nz * sizeof(PetscScalar)));
  if (!access->refresh && GallopCSRBytes(access->csr.m, access->csr.nz) >= Large) PetscCall(GallopDeviceFreeKept(PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* Where so many copies would fit, one that is asked for again and again stays */
static const size_t MuchRoom = 8;

/* Free memory that the parent gets for what stands in the place of its copy, a handle of cuSPARSE */
static const size_t HandleRoom = (size_t)4 << 20;

/* MatGallopNoteCopy - PETSc tells whether the copy on the GPU is current, but not whether an old one is there: noted whenever it is looked at */
void MatGallopNoteCopy(Mat A, Mat_Gallop *g)
{
  if (A->offloadmask != PETSC_OFFLOAD_GPU && A->offloadmask != PETSC_OFFLOAD_BOTH) return;
  if (A->offloadmask == PETSC_OFFLOAD_GPU) g->keeps = PETSC_TRUE;
  if (g->released == A->nonzerostate) g->back = A->nonzerostate;
  g->released           = 0;
  g->copied             = A->spptr;
  g->copiednonzerostate = A->nonzerostate;
}

static PetscBool HasCopy(Mat A, const Mat_Gallop *g)
{
  return (PetscBool)(A->offloadmask == PETSC_OFFLOAD_GPU || A->offloadmask == PETSC_OFFLOAD_BOTH || (g->copied && g->copied == A->spptr && g->copiednonzerostate == A->nonzerostate));
}

/* Whether the parent's copy is not to stay. In the first nonzero state PETSc would not see that a copy is missing. */
static PetscErrorCode Goes(Mat A, const Mat_Gallop *g, PetscBool *goes)
{
  const PetscInt *i, *j;
  PetscBool       coo, overfull;

  PetscFunctionBegin;
  *goes = PETSC_FALSE;
  if (!g->deviceparent || g->keeps || (g->csr == GALLOP_CSR_KEEP && !g->maxbytes) || GallopBoundToCPU(A) || A->structure_only || A->factortype || !A->nonzerostate || g->back == A->nonzerostate)
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopHasCOO(A, &coo)); /* MatSetValuesCOO() leaves values on the GPU */
  if (coo) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  PetscCall(MatGallopIsOverfull(A, &overfull)); /* the parent has no copy of it ever */
  *goes = (PetscBool)(!overfull && (g->csr >= GALLOP_CSR_RELEASE || g->maxbytes ? i[A->rmap->n] > 0 : GallopCSRBytes(A->rmap->n, i[A->rmap->n]) >= Large));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopCopyStays - Bytes of the parent's copy on the GPU that will be there with a structure; where that goes, or has gone, of what is kept for refreshes */
PetscErrorCode MatGallopCopyStays(Mat A, Mat_Gallop *g, PetscCount *bytes)
{
  const PetscInt *i, *j;
  PetscBool       goes;

  PetscFunctionBegin;
  *bytes = g->rows ? (PetscCount)((size_t)(A->rmap->n + 1) * sizeof(PetscInt)) : 0;
  if (!g->deviceparent || !HasCopy(A, g)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Goes(A, g, &goes));
  if (goes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  *bytes = (PetscCount)GallopCSRBytes(A->rmap->n, i[A->rmap->n]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether there is room for the parent's copy beside the structures within -mat_gallop_memory */
static PetscErrorCode WithinLimit(Mat A, Mat_Gallop *g, PetscBool *within)
{
  const PetscInt *i, *j;
  PetscCount      used = 0;

  PetscFunctionBegin;
  *within = PETSC_TRUE;
  if (!g->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  for (int s = 0; s < GALLOP_STRUCTURES; s++) used += (PetscCount)g->structure[s].instance[GALLOP_DEVICE].bytes;
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  *within = (PetscBool)(used + (PetscCount)GallopCSRBytes(A->rmap->n, i[A->rmap->n]) <= g->maxbytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopLacksCopy - Whether the parent has no copy on the GPU, as far as was seen, and none is to be made for products: the host has the values */
PetscErrorCode MatGallopLacksCopy(Mat A, Mat_Gallop *g, PetscBool *lacks)
{
  PetscFunctionBegin;
  *lacks = PETSC_FALSE;
  if (MatGallopNewestOnHost(A) && !HasCopy(A, g)) PetscCall(Goes(A, g, lacks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopParentIsWorse - Whether the parent's next product takes longer than a refresh, since its copy would have to be made, or than a build, since that copy has no room within -mat_gallop_memory, or cuSPARSE does not take the matrix */
PetscErrorCode MatGallopParentIsWorse(Mat A, Mat_Gallop *g, PetscBool refresh, PetscBool *worse)
{
  PetscBool within, takes;

  PetscFunctionBegin;
  PetscCall(MatGallopParentTakes(A, g, &takes));
  *worse = PetscNot(takes);
  if (*worse) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopLacksCopy(A, g, worse));
  if (!*worse || refresh) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(WithinLimit(A, g, &within));
  *worse = PetscNot(within);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoteGone(Mat A, Mat_Gallop *g)
{
  PetscFunctionBegin;
  g->released = A->nonzerostate;
  g->stats.csr_releases++;
  PetscCall(PetscInfo(A, "The CSR arrays of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix are on the host alone now\n", A->rmap->n, A->cmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What AIJCUSPARSE keeps on the GPU of a matrix, its transpose too, is behind A->spptr: a matrix that has not been on the GPU gives its own for it, and frees it */
static PetscErrorCode Release(Mat A)
{
  Mat   fresh;
  void *copy = A->spptr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &fresh));
  PetscCall(MatSetType(fresh, MATSEQAIJCUSPARSE));
  A->spptr     = fresh->spptr;
  fresh->spptr = copy;
  PetscCall(MatDestroy(&fresh));
  A->offloadmask  = PETSC_OFFLOAD_CPU;
  A->transupdated = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The algorithms of -mat_cusparse_spmv_alg and the like are kept with the copy, and are asked for again */
static PetscErrorCode LetGo(Mat A, Mat_Gallop *g)
{
  PetscFunctionBegin;
  PetscCall(Release(A));
  g->copied = NULL;
  if (g->optionsasked && g->parent.setfromoptions) {
    PetscObjectOptionsBegin((PetscObject)A);
    PetscCall((*g->parent.setfromoptions)(A, PetscOptionsObject));
    PetscOptionsEnd();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the parent computes products, until a format pays for them, while the fastest is being found, or since it is that. One that is about to be built, but, is not asked; one that the copy is kept for is. */
static PetscBool ParentComputes(Mat A, const Mat_Gallop *g, GallopStructureKind but)
{
  for (int s = 0; s < GALLOP_STRUCTURES; s++) {
    const GallopInstance *inst = &g->structure[s].instance[GALLOP_DEVICE];

    if ((s != (int)but || inst->data) && inst->asked && inst->pattern == A->nonzerostate &&
        (!inst->data || GallopLeaves(g->structure[s].type->format, inst->data) || GallopKeepsCSR(g->structure[s].type->format, inst->data)))
      return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* The parent's copy, which would go after a build, goes before it where memory is short */
static PetscErrorCode GoesBefore(Mat A, Mat_Gallop *g, GallopStructureKind kind, const GallopCSRAccess *access, PetscBool *gone)
{
  PetscBool goes, room = PETSC_FALSE, values, columns;

  PetscFunctionBegin;
  *gone = PETSC_FALSE;
  if (A->offloadmask == PETSC_OFFLOAD_GPU || !HasCopy(A, g) || ParentComputes(A, g, kind)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Goes(A, g, &goes));
  if (goes) PetscCall(ReadsHost(g, access, GallopCSRBytes(access->csr.m, access->csr.nz), &values, &columns));
  if (goes && values) PetscCall(GallopDeviceFits(HandleRoom, &room));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LetGo(A, g));
  PetscCall(NoteGone(A, g));
  *gone = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopDropOldCopy - A copy of the parent's of another pattern goes before a build that does without: nobody renews it, and MatZeroEntries() would take it for one of this pattern */
PetscErrorCode MatGallopDropOldCopy(Mat A, Mat_Gallop *g)
{
  PetscBool room;

  PetscFunctionBegin;
  if (!g->copied || g->copied != A->spptr || g->copiednonzerostate == A->nonzerostate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFits(HandleRoom, &room));
  if (room) PetscCall(LetGo(A, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopTakesUpload - Whether a build or a refresh gets a copy of the host's arrays that goes again, not the parent's

  A refresh that reads columns would copy these each time. Where the GPU has much room, the parent makes a copy for it after all, which stays: the next refreshes copy values only.
*/
PetscErrorCode MatGallopTakesUpload(Mat A, Mat_Gallop *g, GallopStructureKind kind, const GallopCSRAccess *access, PetscBool *takes)
{
  size_t free;

  PetscFunctionBegin;
  PetscCall(MatGallopLacksCopy(A, g, takes));
  if (!*takes && !access->refresh) PetscCall(GoesBefore(A, g, kind, access, takes));
  if (*takes && !access->refresh) PetscCall(MatGallopDropOldCopy(A, g));
  if (!*takes || !access->refresh || !access->columns || g->csr >= GALLOP_CSR_RELEASE || g->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceGetFree(&free));
  if (free / MuchRoom < GallopCSRBytes(A->rmap->n, access->csr.nz)) PetscFunctionReturn(PETSC_SUCCESS);
  *takes  = PETSC_FALSE;
  g->back = A->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopKeepCopy - Others than products use the parent's copy, or will write values there: products of matrices and factors keep addresses of it */
PetscErrorCode MatGallopKeepCopy(Mat A)
{
  Mat         parts[2] = {A, NULL};
  Mat_Gallop *g;

  PetscFunctionBegin;
  if (!A) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetContext(A, &g));
  if (!g || !g->deviceparent) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &parts[0], &parts[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!parts[k]) continue;
    PetscCall(MatGallopGetContext(parts[k], &g));
    if (g) g->keeps = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopNoteParentProduct - Before the parent computes one on the GPU: a CUDA graph that records it has the addresses of the copy, and may run after the next build */
PetscErrorCode MatGallopNoteParentProduct(Mat_Gallop *g)
{
  PetscFunctionBegin;
  if (!g->keeps) PetscCall(GallopDeviceIsCapturing(&g->keeps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopReleaseCopy - After a structure has been built or refreshed on the GPU: frees the parent's copy, if the host has the values too and nobody else uses it
*/
PetscErrorCode MatGallopReleaseCopy(Mat A, Mat_Gallop *g)
{
  PetscBool       goes, room, within, captured;
  const PetscInt *i, *j;

  PetscFunctionBegin;
  if (A->offloadmask != PETSC_OFFLOAD_BOTH) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceIsCapturing(&captured)); /* when nothing can be freed */
  if (captured) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopTrustHost(A));
  PetscCall(WithinLimit(A, g, &within));
  if (A->offloadmask != PETSC_OFFLOAD_BOTH || (within && ParentComputes(A, g, GALLOP_STRUCTURES))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Goes(A, g, &goes));
  if (goes) PetscCall(GallopDeviceFits(HandleRoom, &room));
  if (!goes || !room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LetGo(A, g));
  PetscCall(NoteGone(A, g));
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  if (GallopCSRBytes(A->rmap->n, i[A->rmap->n]) >= Large) PetscCall(GallopDeviceFreeKept(PETSC_TRUE)); /* of the build, which may be a third of a format */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopDeviceCSRFits - Whether the parent's copy is on the GPU, or can be made there

  Asked before the parent makes it: without room PETSc ends in an error that leaves memory and an open log event behind. New values alone need no memory.
*/
PetscErrorCode MatGallopDeviceCSRFits(Mat A, Mat_Gallop *g, PetscBool *fits)
{
  const PetscInt m        = A->rmap->n, *i, *j;
  PetscBool      overfull = PETSC_FALSE;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscCall(MatGallopTrustHost(A));
  if (HasCopy(A, g)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  if (!i[m]) { /* there is nothing to copy, now and later */
    g->copied             = A->spptr;
    g->copiednonzerostate = A->nonzerostate;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopIsOverfull(A, &overfull));
  if (overfull) {
    *fits = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(WithinLimit(A, g, fits));
  if (*fits) PetscCall(GallopDeviceFits(GallopCSRBytes(m, i[m]), fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
void MatGallopNoteCopy(Mat A, Mat_Gallop *g)
{
  (void)A, (void)g;
}

PetscErrorCode MatGallopCopyStays(Mat A, Mat_Gallop *g, PetscCount *bytes)
{
  (void)A, (void)g;
  *bytes = 0;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopLacksCopy(Mat A, Mat_Gallop *g, PetscBool *lacks)
{
  (void)A, (void)g;
  *lacks = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopParentIsWorse(Mat A, Mat_Gallop *g, PetscBool refresh, PetscBool *worse)
{
  (void)A, (void)g, (void)refresh;
  *worse = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopDropOldCopy(Mat A, Mat_Gallop *g)
{
  (void)A, (void)g;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopTakesUpload(Mat A, Mat_Gallop *g, GallopStructureKind kind, const GallopCSRAccess *access, PetscBool *takes)
{
  (void)A, (void)g, (void)kind, (void)access;
  *takes = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopKeepCopy(Mat A)
{
  (void)A;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopNoteParentProduct(Mat_Gallop *g)
{
  (void)g;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopReleaseCopy(Mat A, Mat_Gallop *g)
{
  (void)A, (void)g;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopDeviceCSRFits(Mat A, Mat_Gallop *g, PetscBool *fits)
{
  (void)A, (void)g;
  *fits = PETSC_TRUE;
  return PETSC_SUCCESS;
}
#endif
