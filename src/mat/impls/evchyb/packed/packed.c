/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's packed storage: its build, what thread blocks do, new values. The arrays are made where the matrix is, by functions that either place has. */

#include "packedhost.h"
#include "../evchyb.h"

/* ---- either place ---- */

#if PetscDefined(HAVE_CUDA)
  #define WHERE(memtype, name, ...) (PetscMemTypeHost(memtype) ? name##_Host(__VA_ARGS__) : name##_Device(__VA_ARGS__))
#else
  #define WHERE(memtype, name, ...) name##_Host(__VA_ARGS__)
#endif

PetscErrorCode EVCHYBPackBegin(const GallopCSR *csr, const EVCHYBPackSurvey *survey, EVCHYBPack **pack)
{
  return WHERE(csr->memtype, EVCHYBPackBegin, csr, survey, pack);
}

PetscErrorCode EVCHYBPackMeasure(const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, EVCHYBPackCost cost[EVCHYB_PACK_COSTS])
{
  return WHERE(csr->memtype, EVCHYBPackMeasure, pack, csr, order, cost);
}

PetscErrorCode EVCHYBPackFinish(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, const EVCHYBPackSurvey *survey, PetscCount maxbytes, PetscBool *done)
{
  return WHERE(csr->memtype, EVCHYBPackFinish, pack, csr, order, survey, maxbytes, done);
}

PetscErrorCode EVCHYBPackDestroy(EVCHYBPack **pack)
{
  PetscFunctionBegin;
  if (!*pack) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(WHERE((*pack)->memtype, EVCHYBPackFree, *pack));
  PetscCall(PetscFree(*pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another dictionary, whose numbers the bytes that values take have room for: all else stays where it is */
static PetscErrorCode RenewDict(EVCHYBPack *pack, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  const EVCHYBPackValues kind = pack->figures.slots[EVCHYB_PACK_DICT8] ? EVCHYB_PACK_DICT8 : EVCHYB_PACK_DICT16;
  EVCHYBPack            *other;
  size_t                 bytes;

  PetscFunctionBegin;
  PetscCall(EVCHYBPackBegin(csr, NULL, &other));
  bytes = pack->bytes + (size_t)other->ndict * sizeof(PetscReal) - (size_t)pack->ndict * sizeof(PetscReal);
  *done = (PetscBool)(other->ndict && EVCHYBPackDictClass(other->ndict) <= kind && (!maxbytes || bytes <= (size_t)maxbytes));
  if (*done) {
    PetscReal     *dict  = pack->dict;
    const PetscInt ndict = pack->ndict;

    pack->dict     = other->dict;
    pack->ndict    = other->ndict;
    pack->unsorted = PETSC_FALSE;
    pack->bytes    = bytes;
    other->dict    = dict;
    other->ndict   = ndict;
    PetscCall(PetscInfo(NULL, "Packed entries: the new values take another dictionary, of %" PetscInt_FMT " numbers\n", pack->ndict));
  }
  PetscCall(EVCHYBPackDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackRefresh(EVCHYBPack *pack, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  PetscBool capturing = PETSC_FALSE;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (!PetscMemTypeHost(csr->memtype)) PetscCall(GallopDeviceIsCapturing(&capturing));
  PetscCheck(!capturing || EVCHYBPackTakesAny(pack), PETSC_COMM_SELF, PETSC_ERR_SUP, "New values that are packed in fewer bytes cannot be recorded in a CUDA graph: multiply once before"); /* the host asks whether they fit */
  if (pack->ndict) PetscCall(WHERE(csr->memtype, EVCHYBPackRenumber, pack, csr, fits));
  if (!*fits && pack->unsorted) {
    PetscBool sorted;

    PetscCall(WHERE(csr->memtype, EVCHYBPackSortDict, pack, &sorted));
    pack->unsorted = PetscNot(sorted);
  }
  if (!*fits && !pack->unsorted) PetscCall(WHERE(csr->memtype, EVCHYBPackRefresh, pack, csr, fits));
  if (!*fits && pack->ndict) {
    PetscCall(RenewDict(pack, csr, maxbytes, fits));
    if (*fits) PetscCall(WHERE(csr->memtype, EVCHYBPackRefresh, pack, csr, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPackCopyToHost - A copy on the host of a pack at either place, which EVCHYBPackDestroy() frees */
PetscErrorCode EVCHYBPackCopyToHost(const EVCHYBPack *pack, EVCHYBPack **copy)
{
  EVCHYBPack *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *pack;
  h->memtype = PETSC_MEMTYPE_HOST;
  PetscCall(PetscMalloc1(h->ndict, &h->dict));
  PetscCall(PetscMalloc4(h->nslice, &h->slice, h->nline, &h->line, h->nstream * EVCHYB_PACK_UNIT, &h->stream, h->nvalue * EVCHYB_PACK_UNIT, &h->value));
  PetscCall(GallopCopyToHost(h->dict, pack->memtype, pack->dict, (size_t)h->ndict * sizeof(*h->dict)));
  PetscCall(GallopCopyToHost(h->slice, pack->memtype, pack->slice, (size_t)h->nslice * sizeof(*h->slice)));
  PetscCall(GallopCopyToHost(h->line, pack->memtype, pack->line, (size_t)h->nline * sizeof(*h->line)));
  PetscCall(GallopCopyToHost(h->stream, pack->memtype, pack->stream, (size_t)h->nstream * EVCHYB_PACK_UNIT));
  PetscCall(GallopCopyToHost(h->value, pack->memtype, pack->value, (size_t)h->nvalue * EVCHYB_PACK_UNIT));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the plan ---- */

/* Pieces, those of a warp first; and which of the rows at the end have several, a thread block each. i: where entries of the rows begin, each rounded up to a multiple of 32. */
static PetscErrorCode PlanPieces(EVCHYB *ev, EVCHYBPacked *packed, const PetscCount i[])
{
  const PetscInt warps = EVCHYB_THREADS / EVCHYB_BLOCK, npiece = packed->pack->npiece, n = packed->nlong;
  PetscInt       shorter = 0, r;
  PetscCount     ofwarp  = EVCHYB_SHORT_ROW;

  PetscFunctionBegin;
  /* with fewer, longer rows one thread block for each keeps more warps busy; with many, its warps wait for each other */
  if (ev->processors) ofwarp = PetscMax(ofwarp, PetscMin(EVCHYB_WARP_ROW, (i[n] - i[0]) / ((PetscCount)ev->processors * (EVCHYB_WARPS_WANTED / 2))));
  while (shorter < n && i[shorter + 1] - i[shorter] <= ofwarp) shorter++;
  for (r = shorter; r < n && i[r + 1] - i[r] <= EVCHYB_PIECE; r++) { }
  if (shorter) EVCHYBMarksAdd(&packed->marks, shorter, (shorter + warps - 1) / warps, EVCHYB_RANGE_PIECES, 1);
  if (npiece > shorter) EVCHYBMarksAdd(&packed->marks, npiece - shorter, npiece - shorter, EVCHYB_RANGE_PIECES, warps);
  packed->gpublks = packed->marks.gbmark[packed->marks.np];
  PetscCall(EVCHYBPartsPlan(n - r, i + r, EVCHYB_PIECE, &packed->parts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Pieces take longest, and so come first. Fewer slices per warp towards the end, which comes for all multiprocessors at about the same time then. */
static void PlanLaunch(EVCHYB *ev, const EVCHYBPacked *packed)
{
  /* where most lines have columns that are stored, a slice takes long, and slices differ: one for each warp */
  const EVCHYBPack        *pack  = packed->pack;
  const EVCHYBPackFigures *f     = &pack->figures;
  const PetscCount         lines = pack->nline - pack->nlong / EVCHYB_PACK_ROWS, strided = f->lines[EVCHYB_PACK_STRIDED] - f->strided;
  const PetscInt           places = ev->processors * EVCHYB_PACK_WARPS, given = ev->options.slices, most = given ? given : 2 * strided < lines ? 1 : EVCHYB_PACK_EACH;
  PetscInt                 left   = pack->nslice - pack->npiece;
  EVCHYBMarks              slices = {0};

  ev->launch.n = 0;
  for (PetscInt k = packed->marks.np - 1; k >= 0; k--) EVCHYBLaunchAdd(&ev->launch, &packed->marks, k);
  for (PetscInt each = most; left > 0; each /= 2) {
    const PetscInt ofblock = each * EVCHYB_THREADS / EVCHYB_BLOCK, later = given || each == 1 ? 0 : PetscMin(left, each * places), blocks = (left - later + ofblock - 1) / ofblock, some = PetscMin(left, blocks * ofblock);

    if (!some) continue;
    EVCHYBMarksAdd(&slices, some, blocks, EVCHYB_RANGE_PACKED, each);
    EVCHYBLaunchAdd(&ev->launch, &slices, slices.np - 1);
    left -= some;
  }
}

static PetscErrorCode Plan(EVCHYB *ev, const GallopCSR *csr, const EVCHYBRows *rows, EVCHYBPacked *packed)
{
  PetscCount     *i;
  const PetscInt *host_i = NULL;

  PetscFunctionBegin;
  packed->nlong = rows->nlong;
  if (rows->nlong) PetscCall(GallopCSRGetHostI(csr, &host_i));
  PetscCall(PetscMalloc1(rows->nlong + 1, &i));
  i[0] = 0;
  for (PetscInt r = 0; r < rows->nlong; r++) i[r + 1] = i[r] + EVCHYBRoundUp(host_i[rows->longrows[r] + 1] - host_i[rows->longrows[r]]);
  PetscCall(PlanPieces(ev, packed, i));
  PlanLaunch(ev, packed);
  PetscCall(PetscFree(i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the storage ---- */

/*
  EVCHYBPackedBuild - Stores the entries as EVCHYBChoose() chose

  Input Parameters:
+ csr      - the matrix
. rows     - in the order of rows.h
. choice   - its pack is destroyed where the matrix does not become packed
- maxbytes - at most, 0 for no limit

  Output Parameter:
. done - false where there is no room
*/
PetscErrorCode EVCHYBPackedBuild(EVCHYB *ev, const GallopCSR *csr, const EVCHYBRows *rows, EVCHYBChoice *choice, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBPackOrder order = {.num = csr->m, .stride = choice->stride, .longest = ev->options.maxell, .piece = EVCHYB_PIECE};
  EVCHYBPacked   *packed;

  PetscFunctionBegin;
  PetscCall(PetscNew(&packed));
  packed->pack = choice->pack;
  choice->pack = NULL;
  if (choice->sorted) {
    order.perm = rows->all;
    order.num  = rows->nempty + rows->nshort;
  }
  PetscCall(EVCHYBCutRows(csr, rows, &order, done));
  if (*done) PetscCall(EVCHYBPackFinish(packed->pack, csr, &order, choice->survey, maxbytes, done));
  PetscCall(EVCHYBFreePieces(csr, &order));
  if (*done) PetscCall(Plan(ev, csr, rows, packed));
  ev->bytes  = packed->pack->bytes;
  ev->packed = packed;
  ev->fresh  = PETSC_TRUE;
  ev->work   = &EVCHYBPackedHost;
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeCUDA(csr->memtype)) {
    ev->work = &EVCHYBPackedDevice;
    if (*done) PetscCall(EVCHYBPackedPartsToDevice(ev, maxbytes, done));
  }
#endif
  if (!*done) PetscCall(EVCHYBPackedFree_Host(&ev->packed)); /* its parts are still on the host then */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPackedRefresh - New values, at either place */
PetscErrorCode EVCHYBPackedRefresh(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  EVCHYBPack *pack = ev->packed->pack;

  PetscFunctionBegin;
  ev->bytes -= pack->bytes;
  PetscCall(EVCHYBPackRefresh(pack, csr, maxbytes ? PetscMax(1, maxbytes - (PetscCount)ev->bytes) : 0, fits));
  ev->bytes += pack->bytes;
  ev->fresh = PETSC_TRUE;
  if (!*fits) PetscCall(PetscInfo(NULL, "EVC-HYB: the new values of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix cannot be stored as those before: it is packed again\n", ev->m, ev->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(EVCHYB *ev, const GallopProduct *p)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBPackApply_Host(ev->packed->pack, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPackedFree_Host - Of a copy too */
PetscErrorCode EVCHYBPackedFree_Host(EVCHYBPacked **packed)
{
  PetscFunctionBegin;
  if (!*packed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(EVCHYBPartsFree(&(*packed)->parts));
  PetscCall(EVCHYBPackDestroy(&(*packed)->pack));
  PetscCall(PetscFree(*packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBPackedFree_Host(&ev->packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const EVCHYBStorageWork EVCHYBPackedHost = {EVCHYBPackedRefresh, Apply, Destroy};

/* EVCHYBPackedCopyToHost - A copy on the host of what is at either place; EVCHYBPackedFree_Host() frees it */
PetscErrorCode EVCHYBPackedCopyToHost(const EVCHYBPacked *packed, PetscMemType memtype, EVCHYBPacked **copy)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(copy));
  **copy = *packed;
  PetscCall(EVCHYBPackCopyToHost(packed->pack, &(*copy)->pack));
  PetscCall(EVCHYBPartsCopyToHost(&packed->parts, memtype, &(*copy)->parts));
  PetscFunctionReturn(PETSC_SUCCESS);
}
