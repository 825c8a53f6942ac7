/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The CSR arrays of a sequential matrix, on the host and in the parent's copy on the GPU: which of the two is newer, and whether that copy can be made.
*/

#include <gallop/matgallopimpl.h>

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
  MatGallopNoteCopy(A, g);
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

/* Whether rows name columns more than once, so often that cuSPARSE refuses the arrays: PETSc would end in its error */
PetscErrorCode MatGallopIsOverfull(Mat A, PetscBool *overfull)
{
  const PetscInt *i, *j;

  PetscFunctionBegin;
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  *overfull = (PetscBool)(i[A->rmap->n] > (PetscInt64)A->rmap->n * A->cmap->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopParentCompresses - Whether AIJCUSPARSE's copy of a matrix may be without the rows that have no entries, as where three fifths have none: its MatGetDiagonal() (PETSc 3.26) reads that copy's row
  offsets as if it had all rows
*/
PetscErrorCode MatGallopParentCompresses(Mat A, PetscBool *compresses)
{
  const PetscInt *i, *j, m = A->rmap->n;
  PetscInt        empty = 0;
  Mat_Gallop     *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!g->compressesof || g->compressesof != A->spptr || g->compressesnonzerostate != A->nonzerostate) {
    PetscCall(MatGallopGetHostPattern(A, &i, &j));
    for (PetscInt r = 0; r < m; r++) empty += i[r + 1] == i[r];
    g->compresses             = (PetscBool)(m && empty >= m / 2);
    g->compressesof           = A->spptr;
    g->compressesnonzerostate = A->nonzerostate;
  }
  *compresses = g->compresses;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether it takes a matrix of this size whatever entries it has: nobody has to be asked then */
static PetscErrorCode CUSPARSETakesAll(Mat A, PetscBool *takes)
{
  const PetscLogDouble places = (PetscLogDouble)A->rmap->N * (PetscLogDouble)A->cmap->N, most = (PetscLogDouble)PETSC_COUNT_MAX / 2;

  PetscFunctionBegin;
  PetscCall(GallopCUSPARSETakes(places < most ? (PetscCount)places : PETSC_COUNT_MAX, takes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CUSPARSETakes(Mat A, PetscBool *takes)
{
  const PetscInt *i, *j;

  PetscFunctionBegin;
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  PetscCall(GallopCUSPARSETakes(i[A->rmap->n], takes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopParentTakes - Whether the parent multiplies a matrix with so many nonzeros where it would: cuSPARSE may not. Collective for an MPI matrix: whether it does on all processes. */
PetscErrorCode MatGallopParentTakes(Mat A, Mat_Gallop *g, PetscBool *takes)
{
  Mat       block[2];
  PetscBool each = PETSC_TRUE;

  PetscFunctionBegin;
  *takes = PETSC_TRUE;
  if (!g->deviceparent || (!g->mpi && GallopBoundToCPU(A))) PetscFunctionReturn(PETSC_SUCCESS); /* some processes may have bound their part of an MPI matrix */
  if (!g->mpi) {
    PetscCall(CUSPARSETakes(A, takes));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(CUSPARSETakesAll(A, takes));
  if (*takes) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->refusednonzerostate != A->nonzerostate + 1) {
    PetscCall(MatGallopGetBlocks(A, &block[0], &block[1]));
    for (int k = 0; k < 2 && each; k++) PetscCall(CUSPARSETakes(block[k], &each));
    g->refused = PetscNot(each);
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &g->refused, 1, MPI_C_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
    g->refusednonzerostate = A->nonzerostate + 1;
  }
  *takes = PetscNot(g->refused);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's copy of a matrix on the GPU, made where it is missing or old; MatGallopDeviceCSRFits() comes first where a product can do without */
static PetscErrorCode DeviceCSR(Mat A, const PetscInt **i, const PetscInt **j, const PetscScalar **a)
{
#if PetscDefined(HAVE_CUDA)
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopTrustHost(A));
  GallopCallByName(A, NULL, MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, i, j));
  GallopCallByName(A, NULL, MatSeqAIJCUSPARSEGetArrayRead(A, a));
  MatGallopNoteCopy(A, g);
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

/* Whether the parent can compute a product with a dense matrix where it would: not on a GPU that has no room for its copy of A, or where cuSPARSE does not take A. With tried that is looked at only when there was none for TiledSpMM. */
PetscErrorCode MatGallopParentFits(Mat A, PetscBool tried, PetscBool *fits)
{
  Mat_Gallop *g;
  PetscBool   device;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(ParentIsOnDevice(A, &device));
  if (device && g->denseonhost) *fits = PETSC_FALSE;
  else if (device && (!tried || g->structure[GALLOP_TILEDSPMM].instance[GALLOP_DEVICE].toolarge)) {
    PetscCall(MatGallopParentTakes(A, g, fits));
    if (*fits) PetscCall(MatGallopDeviceCSRFits(A, g, fits));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the host's copy of the entries is the only current one */
PetscBool MatGallopNewestOnHost(Mat A)
{
#if PetscDefined(HAVE_CUDA)
  return (PetscBool)(A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED);
#else
  (void)A;
  return PETSC_TRUE;
#endif
}

/*
  MatGallopGetCSR - The CSR arrays of a matrix for a build, or for a refresh, which may do without columns: access->refresh and columns tell what is wanted

  To transpose them they have to be at the place of the format. Where the parent has no copy on the GPU and makes none that would stay, one is made that goes again.
*/
PetscErrorCode MatGallopGetCSR(Mat A, Mat_Gallop *g, const GallopFormat *format, GallopStructureKind kind, GallopPlace place, GallopCSRAccess *access)
{
  GallopCSR *csr  = &access->csr;
  PetscBool  host = (PetscBool)(place == GALLOP_HOST), parents = g->deviceparent, upload;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(csr, sizeof(*csr)));
  access->owned = PETSC_FALSE;
  access->fits  = PETSC_TRUE;
  csr->m        = A->rmap->n;
  csr->n        = A->cmap->n;
  PetscCall(MatGallopGetHostPattern(A, &csr->host_i, &csr->host_j));
  csr->nz = csr->host_i[csr->m];
  if (!host && g->deviceparent) PetscCall(MatGallopTrustHost(A));
  if (!host && access->restores && (!g->deviceparent || MatGallopNewestOnHost(A))) {
    csr->memtype = PETSC_MEMTYPE_CUDA;
    PetscCall(MatGallopMayRestore(g, access));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!host && format->device_takes_host && (!g->deviceparent || MatGallopNewestOnHost(A))) {
    host    = (PetscBool)(kind != GALLOP_TRANSPOSE);
    parents = PETSC_FALSE;
    if (g->deviceparent && !access->refresh) PetscCall(MatGallopDropOldCopy(A, g));
  }
  if (!host && parents) {
    PetscCall(MatGallopTakesUpload(A, g, kind, access, &upload));
    parents = PetscNot(upload);
    host    = (PetscBool)(upload && format->device_takes_host && kind != GALLOP_TRANSPOSE);
  }
  if (host) {
    csr->memtype = PETSC_MEMTYPE_HOST;
    csr->i       = csr->host_i;
    csr->j       = csr->host_j;
    PetscCall(MatSeqAIJGetArrayRead(A, &csr->a));
  } else {
    csr->memtype = PETSC_MEMTYPE_CUDA;
    if (parents) {
      PetscCall(MatGallopFreeRows(g));
      PetscCall(MatGallopDeviceCSRFits(A, g, &access->fits));
      if (access->fits) PetscCall(DeviceCSR(A, &csr->i, &csr->j, &csr->a));
    } else PetscCall(MatGallopUploadCSR(A, g, access));
  }
  csr->passing = (PetscBool)(access->owned || (place == GALLOP_DEVICE && g->csr >= GALLOP_CSR_RELEASE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopRestoreCSR(Mat A, GallopCSRAccess *access)
{
  GallopCSR *csr = &access->csr;

  PetscFunctionBegin;
  if (access->owned) PetscCall(MatGallopFreeCSR(access));
  else if (csr->memtype == PETSC_MEMTYPE_HOST) PetscCall(MatSeqAIJRestoreArrayRead(A, &csr->a));
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
    device = (PetscBool)(!GallopBoundToCPU(A) && !MatGallopNewestOnHost(A));
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
  if (*takes) PetscCall(MatGallopDeviceCSRFits(A, g, takes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
PetscErrorCode MatGallopGetDeviceValuesWrite(Mat A, PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(MatGallopToDevice(A)); /* PETSc gives what there is for writing, but does not make it */
  GallopCallByName(A, NULL, MatSeqAIJCUSPARSEGetArrayWrite(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopRestoreDeviceValuesWrite(Mat A, PetscScalar **a)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  GallopCallByName(A, NULL, MatSeqAIJCUSPARSERestoreArrayWrite(A, a));
  PetscCall(MatGallopGetContext(A, &g));
  MatGallopNoteCopy(A, g);
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
