/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The life of what is kept beside the entries, the format and TiledSpMM: when it is built, refreshed or kept, and what happens where there is no room for it.
*/

#include <gallop/matgallopimpl.h>

/* What a matrix has that cuSPARSE does not take, if that is what the parent lacks */
static PetscErrorCode GetRefused(Mat A, GallopLack lack, char what[], size_t len)
{
  PetscBool       overfull = PETSC_FALSE;
  const PetscInt *i, *j;

  PetscFunctionBegin;
  what[0] = '\0';
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  if (lack == GALLOP_LACKS_CSR) PetscCall(MatGallopIsOverfull(A, &overfull));
  if (overfull) PetscCall(PetscStrncpy(what, "more entries than places", len));
  else if (lack == GALLOP_LACKS_PARENT) PetscCall(PetscSNPrintf(what, len, "%" PetscInt_FMT " nonzeros", i[A->rmap->n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who computes instead: without its CSR arrays on the GPU, or where cuSPARSE does not take the matrix, ParentMult() does on the host */
static PetscErrorCode GetComputing(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, GallopLack lack, const char **who)
{
  PetscBool takes = PETSC_TRUE;

  PetscFunctionBegin;
  *who = GallopParentType(g->mpi, g->deviceparent);
  if (!g->deviceparent) PetscFunctionReturn(PETSC_SUCCESS);
  if (place == GALLOP_DEVICE && lack == GALLOP_LACKS_STRUCTURE && kind == GALLOP_FORMAT) PetscCall(MatGallopParentTakes(A, g, &takes));
  if (lack != GALLOP_LACKS_STRUCTURE || !takes) *who = "the host";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopWarnLack - That the parent computes products, and why: once for a type, and of each matrix with -info */
PetscErrorCode MatGallopWarnLack(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, GallopLack lack)
{
  const GallopStructure *structure = &g->structure[kind];
  const PetscBool        csr       = (PetscBool)(lack != GALLOP_LACKS_STRUCTURE);
  const char            *who, *of = kind == GALLOP_FORMAT ? "" : kind == GALLOP_TRANSPOSE ? " with its transpose" : " with dense matrices";
  const PetscInt         m = A->rmap->n, n = A->cmap->n;
  char                   what[64], where[64], refused[64];

  PetscFunctionBegin;
  PetscCall(GetRefused(A, lack, refused, sizeof(refused)));
  PetscCall(GetComputing(A, g, kind, place, lack, &who));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s", csr ? "CSR arrays" : structure->type->format->ucname));
  if (!csr) PetscCall(PetscStrlcat(what, " format", sizeof(what)));
  if (!csr && g->maxbytes)
    PetscCall(PetscSNPrintf(where, sizeof(where), "within -mat_gallop_memory%s%s%s", structure->maxbytes ? " or -mat_" : "", structure->maxbytes ? structure->type->format->name : "", structure->maxbytes ? "_memory" : ""));
  else if (!csr && structure->maxbytes) PetscCall(PetscSNPrintf(where, sizeof(where), "within -mat_%s_memory", structure->type->format->name));
  else PetscCall(PetscSNPrintf(where, sizeof(where), "on the %s", place == GALLOP_DEVICE ? "GPU" : "host"));
  if (refused[0]) PetscCall(PetscInfo(A, "A %" PetscInt_FMT " by %" PetscInt_FMT " matrix has %s, which cuSPARSE does not take: %s computes its products%s\n", m, n, refused, who, of));
  else PetscCall(PetscInfo(A, "No room for the %s of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix %s: %s computes its products%s\n", what, m, n, where, who, of));
  if (!structure->type->warned) {
    if (refused[0])
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: a %" PetscInt_FMT " by %" PetscInt_FMT " matrix has %s, which cuSPARSE does not take; %s computes its products%s. Further matrices: -info\n", m, n, refused, who, of));
    else
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no room for the %s of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix %s; %s computes its products%s. Further matrices: -info\n", what, m, n, where, who, of));
    structure->type->warned = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* Builds a structure within its limit; with -mat_gallop_memory others make room for it */
static PetscErrorCode Build(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, const GallopCSR *csr)
{
  GallopStructure        *structure = &g->structure[kind];
  GallopInstance         *inst      = &structure->instance[place];
  const GallopFormatWork *work      = GallopWork(structure->type->format, place);
  PetscBool               made      = (PetscBool)(work != NULL);
  PetscCount              limit;

  PetscFunctionBegin;
  while (!inst->data && made) {
    PetscCall(MatGallopGetLimit(A, g, kind, place, &limit));
    if (g->maxbytes && place == GALLOP_HOST) limit = PetscMax(1, limit - (PetscCount)inst->transposed.bytes); /* which stays there */
    PetscCall((*work->build)(structure->options, csr, limit, &inst->data));
    made = PETSC_FALSE;
    if (!inst->data) PetscCall(MatGallopMakeRoom(g, kind, place, &made));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No room for a structure: the parent computes until there is more */
static PetscErrorCode NoRoom(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscBool csr)
{
  PetscFunctionBegin;
  PetscCall(NoteTooLarge(&g->structure[kind].instance[place], place));
  PetscCall(MatGallopWarnLack(A, g, kind, place, csr ? GALLOP_LACKS_CSR : GALLOP_LACKS_STRUCTURE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products on the GPU are a structure's from now on */
static PetscErrorCode ReleaseCopy(Mat A, Mat_Gallop *g, const GallopFormat *format, const void *data)
{
  PetscFunctionBegin;
  if (data && !GallopLeaves(format, data) && !GallopKeepsCSR(format, data)) PetscCall(MatGallopReleaseCopy(A, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A structure that tries several formats, which is current: it builds another one if it wants to, and once it has chosen it is treated as any other */
static PetscErrorCode TryNext(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place)
{
  GallopStructure         *structure = &g->structure[kind];
  GallopInstance          *inst      = &structure->instance[place];
  const GallopFormat      *format    = structure->type->format;
  const GallopFormatTrial *trial     = format->trial;
  const PetscBool          kept      = GallopKeepsCSR(format, inst->data);
  PetscBool                records, asks = PETSC_FALSE, fits = PETSC_TRUE;
  PetscInt                 builds = 0;

  PetscFunctionBegin;
  PetscCall((*trial->records)(inst->data, &records));
  if (!records) PetscCall((*trial->asks)(inst->data, &asks));
  if (asks) {
    GallopCSRAccess access = {.columns = PETSC_TRUE};
    const PetscInt *i, *j;

    PetscCall(MatGallopGetHostPattern(A, &i, &j));
    access.restores = (PetscBool)(trial->restores && (*trial->restores)(inst->data) && inst->key.i == i && inst->key.j == j && inst->key.nz == i[A->rmap->n]);
    PetscCall(MatGallopGetCSR(A, g, format, kind, place, &access));
    PetscCall(PetscLogEventBegin(structure->type->event_build, A, 0, 0, 0));
    PetscCall((*trial->next)(inst->data, access.fits ? &access.csr : NULL, &builds, &fits));
    PetscCall(PetscLogEventEnd(structure->type->event_build, A, 0, 0, 0));
    PetscCall(MatGallopRestoreCSR(A, &access));
    *structure->builds += builds;
    if (place == GALLOP_DEVICE && builds) structure->type->loaded = PETSC_TRUE;
    if (!fits) {
      PetscCall(MatGallopDrop(structure, place));
      PetscCall(NoRoom(A, g, kind, place, PETSC_FALSE));
    }
  }
  MatGallopCountBytes(structure, place);
  if (place == GALLOP_DEVICE && (asks || kept)) PetscCall(ReleaseCopy(A, g, format, inst->data)); /* else it went after the build, or came back since */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopUpdate - Gives the structure, the format, that of the transpose, or TiledSpMM, that belongs to the entries that the matrix has now: as it is, with new values, or built anew

  state is the object state that the entries count as. product: one comes next, which a structure that tries several formats counts. *data is NULL where the structure does not fit, and where there are no entries: key.nz tells. No structure is made of a
  matrix without entries.
*/
PetscErrorCode MatGallopUpdate(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscObjectState state, PetscBool product, void **data)
{
  GallopStructure        *structure = &g->structure[kind];
  GallopInstance         *inst      = &structure->instance[place];
  GallopKey              *key       = &inst->key, now;
  GallopType              type      = structure->type;
  const GallopFormatWork *work      = GallopWork(type->format, place);
  GallopCSRAccess         access    = {.restores = PETSC_FALSE};
  const PetscInt         *i, *j;
  PetscBool               samepattern, again = PETSC_FALSE, fits, records, captured = PETSC_FALSE;
  const GallopCSR        *csr    = &access.csr;
  GallopRefresh           answer = GALLOP_REFRESHED;
  PetscCount              limit;

  PetscFunctionBegin;
  /* assembly from a hash table is one within another, which changes no more than the state */
  if (key->assemblies && key->assemblies == A->num_ass - 1 && key->state == state - 1) {
    PetscCall(MatGallopGetHostPattern(A, &i, &j));
    if (key->i == i && key->j == j && key->nz == i[A->rmap->n]) { /* else another matrix was merged into this one */
      key->state      = state;
      key->assemblies = 0;
    }
  }
  if (inst->toolarge) PetscCall(MayFitNow(inst, place, &again));
  if (key->owner == A && key->state == state && key->nonzerostate == A->nonzerostate && !again) {
    if (product && GallopTries(type->format, inst->data)) PetscCall(TryNext(A, g, kind, place));
    *data = inst->data;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  now         = (GallopKey){A, state, A->nonzerostate, i, j, i[A->rmap->n], key->rows, 0};
  samepattern = (PetscBool)(key->owner == A && key->nonzerostate == now.nonzerostate && key->i == i && key->j == j && key->nz == now.nz);
  if (!samepattern) {
    PetscCall(MatGallopDrop(structure, place));
    inst->toolarge = PETSC_FALSE;
    now.rows       = -1;
  }
  if (samepattern && GallopLeaves(type->format, inst->data)) { /* which the pattern alone decides */
    *key  = now;
    *data = inst->data;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (now.nz && (!inst->toolarge || again)) {
    access.refresh = (PetscBool)(inst->data != NULL);
    access.columns = (PetscBool)(!inst->data || kind == GALLOP_TRANSPOSE || (type->format->refresh_columns && (*type->format->refresh_columns)(inst->data)));
    PetscCall(MatGallopGetCSR(A, g, type->format, kind, place, &access));
    fits = access.fits;
    PetscCall(MatGallopGetLimit(A, g, kind, place, &limit));
    if (kind == GALLOP_TRANSPOSE && fits) {
      PetscCall(GallopTransposedCreate(&access.csr, limit, &inst->transposed, &fits));
      csr = &inst->transposed.csr;
    }
    if (inst->data) {
      if (fits) {
        PetscCall(PetscLogEventBegin(type->event_refresh, A, 0, 0, 0));
        PetscCall((*work->refresh)(inst->data, csr, limit, &answer));
        if (answer == GALLOP_REBUILD) {
          PetscCall((*work->destroy)(&inst->data));
          if (access.owned && !access.columns) {
            PetscCall(MatGallopRestoreCSR(A, &access));
            access.refresh = PETSC_FALSE;
            access.columns = PETSC_TRUE;
            PetscCall(MatGallopGetCSR(A, g, type->format, kind, place, &access));
          }
          if (access.fits) PetscCall(Build(A, g, kind, place, csr));
        }
        PetscCall(PetscLogEventEnd(type->event_refresh, A, 0, 0, 0));
        if (!GallopLeaves(type->format, inst->data)) (*structure->refreshes)++;
      } else PetscCall((*work->destroy)(&inst->data));
    } else if (fits) {
      if (!type->cited) PetscCall(PetscCitationsRegister(type->format->citation, &type->cited));
      PetscCall(PetscLogEventBegin(type->event_build, A, 0, 0, 0));
      PetscCall(Build(A, g, kind, place, csr));
      if (place == GALLOP_DEVICE && kind != GALLOP_TILEDSPMM && !GallopLeaves(type->format, inst->data)) type->loaded = PETSC_TRUE;
      PetscCall(PetscLogEventEnd(type->event_build, A, 0, 0, 0));
      if (kind == GALLOP_FORMAT && inst->data && type->format->nonempty) now.rows = (*type->format->nonempty)(inst->data);
      if (kind == GALLOP_FORMAT && now.rows < 0 && access.csr.memtype == PETSC_MEMTYPE_CUDA && access.csr.m >= GALLOP_MANY_ROWS)
        PetscCall(GallopDeviceCountRows(access.csr.m, access.csr.i, &now.rows));
      if (inst->data && !GallopLeaves(type->format, inst->data)) (*structure->builds)++;
    }
    if (place == GALLOP_DEVICE || !inst->data) PetscCall(GallopTransposedDestroy(&inst->transposed));
    PetscCall(MatGallopRestoreCSR(A, &access));
    if (inst->data) inst->toolarge = PETSC_FALSE;
    else PetscCall(NoRoom(A, g, kind, place, PetscNot(access.fits)));
  }
  if (product && GallopTries(type->format, inst->data)) PetscCall((*type->format->trial->records)(inst->data, &records));
  MatGallopCountBytes(structure, place);
  if (place == GALLOP_DEVICE && access.refresh) PetscCall(GallopDeviceIsCapturing(&captured));
  if (captured) now.state = key->state; /* a CUDA graph has the refresh, whenever it runs: the next product refreshes too */
  *key  = now;
  *data = inst->data;
  if (place == GALLOP_DEVICE) PetscCall(ReleaseCopy(A, g, type->format, inst->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopTries - Whether the format on the GPU is to become another one after more products, which a CUDA graph that records one would prevent */
PetscErrorCode MatGallopTries(Mat A, PetscBool *tries)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  *tries = (PetscBool)(g && GallopTries(g->type->format, g->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopForgetAssembly - Values have changed since the assembly that a format was made in, in a way that may count as one */
PetscErrorCode MatGallopForgetAssembly(Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  for (int p = 0; p < 2 && g; p++) g->structure[GALLOP_FORMAT].instance[p].key.assemblies = 0;
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
  PetscCall(MatGallopForgetAssembly(A));
  if (mode == MAT_FINAL_ASSEMBLY && g->build == GALLOP_BUILD_ASSEMBLY && !A->structure_only) {
    PetscBool   device;
    GallopPlace place;

    PetscCall(GallopDeviceAvailable(&device));
    PetscCall(PetscObjectStateGet((PetscObject)A, &state));
    place = device && !GallopBoundToCPU(A) ? GALLOP_DEVICE : GALLOP_HOST;
    PetscCall(MatGallopUpdate(A, g, GALLOP_FORMAT, place, state + 1, PETSC_FALSE, &data)); /* MatAssemblyEnd() increases the state after this */
    g->structure[GALLOP_FORMAT].instance[place].key.assemblies = A->num_ass + 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

PetscErrorCode MatGallopGetFormat(Mat A, const GallopFormat **format)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCheck(g, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Not for matrix type %s", ((PetscObject)A)->type_name);
  *format = g->type->format;
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
