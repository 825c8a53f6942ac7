/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB: clusters -> rows -> choose -> build -> apply, at either place */

#include "evchyb.h"
#include <gallop/deviceimpl.h>

/* What the options leave open: rows a little longer than the paper's SubELL takes are faster there where most are, measured in docs/development/evchyb.md */
EVCHYBOptions EVCHYBOptionsFor(const EVCHYBOptions *given, const GallopCSR *csr)
{
  EVCHYBOptions o = *given;

  if (o.maxell == PETSC_DECIDE) o.maxell = csr->nz > 96 * (PetscCount)csr->m && csr->nz <= 256 * (PetscCount)csr->m ? 256 : 128;
  return o;
}

static PetscErrorCode Destroy(EVCHYB *ev)
{
  PetscFunctionBegin;
  if (ev->work) PetscCall((*ev->work->destroy)(ev));
  PetscCall(EVCHYBClustersDestroy(&ev->clusters));
  PetscCall(PetscFree(ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const void *options, const GallopCSR *csr, EVCHYB **created)
{
  EVCHYB *ev;

  PetscFunctionBegin;
  PetscCall(PetscNew(&ev));
  ev->memtype = csr->memtype;
  ev->m       = csr->m;
  ev->n       = csr->n;
  ev->nz      = csr->nz;
  ev->options = EVCHYBOptionsFor((const EVCHYBOptions *)options, csr);
  *created    = ev;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBRowsNeed - Sorts the rows on the GPU, if they are not: packed storage may do without. *fits is false where the GPU has no room. */
PetscErrorCode EVCHYBRowsNeed(const EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_TRUE;
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeHost(csr->memtype) || rows->memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(EVCHYBRowsSort_Device(&ev->options, csr, rows, fits));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBLongRowsNeed - The same, and tells the host the long ones */
PetscErrorCode EVCHYBLongRowsNeed(const EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBRowsNeed(ev, csr, rows, fits));
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeHost(csr->memtype) || !*fits || rows->longrows) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(rows->nlong, &rows->longrows));
  PetscCall(GallopDeviceCopyOut(rows->longrows, rows->nonempty + rows->nshort, (size_t)rows->nlong * sizeof(*rows->longrows)));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The storage that is chosen, or plain storage where there is no room for it; none, and *done is false, where there is no room for that either, or columns do not fit */
static PetscErrorCode BuildEither(EVCHYB *ev, const GallopCSR *csr, EVCHYBPackSurvey *survey, EVCHYBRows *rows, PetscCount maxbytes, PetscErrorCode (*buildplain)(EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscCount, PetscBool *), PetscBool *done)
{
  EVCHYBChoice choice;
  PetscBool    sorted = PETSC_FALSE;

  PetscFunctionBegin;
  *done      = PETSC_FALSE;
  ev->nempty = rows->nempty;
  PetscCall(EVCHYBChoose(ev, csr, survey, rows, &choice));
  ev->scattered = choice.scattered;
  if (choice.pack) PetscCall(EVCHYBPackedBuild(ev, csr, rows, &choice, maxbytes, done));
  if (!*done) {
#if PetscDefined(HAVE_CUDA)
    if (survey) PetscCall(EVCHYBPackSurveyFree_Device(survey));
#endif
    if (GallopColumnsFit(csr)) PetscCall(EVCHYBRowsNeed(ev, csr, rows, &sorted));
    if (sorted) PetscCall((*buildplain)(ev, csr, rows, maxbytes, done));
  }
  if (!*done) ev->work = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BuildStorage_Host(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBRows rows = {.memory = NULL};

  PetscFunctionBegin;
  EVCHYBRowsCount(ev->options.maxell, csr->m, csr->i, &rows);
  PetscCall(EVCHYBRowsSort_Host(&ev->options, csr, EVCHYBTriesPacked(ev, csr), &rows));
  PetscCall(BuildEither(ev, csr, NULL, &rows, maxbytes, EVCHYBPlainBuild_Host, done));
  PetscCall(EVCHYBRowsFree_Host(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* The host waits once, for the survey or in the build of plain storage, unless long rows or an order of rows have to be looked at for packed storage */
static PetscErrorCode BuildStorage_Device(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBRows       rows   = {.memory = NULL};
  EVCHYBPackSurvey survey = {.memory = NULL};
  EVCHYBPackTerms  terms;
  PetscBool        surveyed;

  PetscFunctionBegin;
  PetscCall(GallopDeviceGetProcessors(&ev->processors));
  EVCHYBPackGetTerms(ev, &terms);
  if (EVCHYBTriesPacked(ev, csr)) PetscCall(EVCHYBPackSurvey_Device(csr, &terms, &survey));
  surveyed = (PetscBool)(survey.memory != NULL);
  if (surveyed) EVCHYBRowsSetCounts(csr->m, (PetscInt)survey.rows.nempty, (PetscInt)survey.rows.nlong, &rows);
  PetscCall(BuildEither(ev, csr, surveyed ? &survey : NULL, &rows, maxbytes, EVCHYBPlainBuild_Device, done));
  PetscCall(EVCHYBPackSurveyFree_Device(&survey));
  PetscCall(EVCHYBRowsFree_Device(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode BuildStorage(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeCUDA(csr->memtype)) PetscCall(BuildStorage_Device(ev, csr, maxbytes, done));
  else
#endif
    PetscCall(BuildStorage_Host(ev, csr, maxbytes, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A storage of the matrix in the order of ev->clusters */
static PetscErrorCode BuildOrdered(EVCHYB *ev, const EVCHYBClusterMatrix *matrix, PetscCount maxbytes, PetscBool *done)
{
  PetscFunctionBegin;
  PetscCall(BuildStorage(ev, &matrix->csr, maxbytes ? PetscMax(1, maxbytes - (PetscCount)ev->clusters->bytes) : 0, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  ev->bytes += ev->clusters->bytes;
#if PetscDefined(HAVE_CUDA)
  if (ev->plain && PetscMemTypeCUDA(ev->memtype)) PetscCall(EVCHYBClustersPlaces_Device(ev->clusters, ev->plain->perm, ev->plain->ell.n + ev->plain->csr.n + ev->plain->nlisted));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of a matrix for which clusters pay; *done is false too where they do not, or where there is no room for their order. memory is what the matrix lies in, if it is to be freed when it is in that order. */
static PetscErrorCode BuildByClusters(EVCHYB *ev, const GallopCSR *csr, void *memory, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBClusterOrder  found;
  EVCHYBClusterMatrix matrix;
  PetscReal           sectors[2];

  PetscFunctionBegin;
  PetscCall(EVCHYBClustersChoose(&ev->options, csr, &found, &matrix, sectors));
  if (matrix.memory) PetscCall(EVCHYBClustersCreate(csr, &found, sectors, maxbytes, &ev->clusters));
  PetscCall(EVCHYBClusterOrderFree(csr, &found));
  PetscCall(GallopDeviceFree(memory));
  if (ev->clusters) PetscCall(BuildOrdered(ev, &matrix, maxbytes, done));
  PetscCall(EVCHYBClusterMatrixFree(&matrix));
  if (!*done) PetscCall(EVCHYBClustersDestroy(&ev->clusters));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products before an order is looked for: with `auto` so many that the search takes little of their time */
static PetscInt After(const EVCHYBOptions *options)
{
  if (options->after != PETSC_DECIDE) return options->after;
  return options->order == EVCHYB_ORDER_AUTO ? EVCHYB_CLUSTER_AFTER : 0;
}

/* An order is to be looked for after these products, unless no order can pay. The arrays of a transpose are there for this build alone; and where memory is limited two formats need not fit. */
static PetscErrorCode LookLater(EVCHYB *ev, const GallopCSR *csr, PetscInt after)
{
  PetscBool may = PETSC_TRUE;

  PetscFunctionBegin;
  if (csr->transpose || ev->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (ev->options.order == EVCHYB_ORDER_AUTO) {
    may = ev->scattered; /* as the build has found: a look at the entries then */
    if (may) PetscCall(EVCHYBClustersMayPay(csr, &may));
  }
  if (may) ev->after = after;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBBuild(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  EVCHYB        *ev    = NULL;
  const PetscInt after = After((const EVCHYBOptions *)options);
  PetscBool      done  = PETSC_FALSE, tries;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(Create(options, csr, &ev));
  ev->maxbytes = maxbytes;
  tries        = EVCHYBClustersTries(&ev->options, csr, (PetscBool)(ev->options.order == EVCHYB_ORDER_AUTO && PetscMemTypeCUDA(csr->memtype)));
  if (tries && !after) PetscCall(BuildByClusters(ev, csr, NULL, maxbytes, &done));
  if (!done) {
    PetscCall(BuildStorage(ev, csr, maxbytes, &done));
    if (done && tries && after) PetscCall(LookLater(ev, csr, after));
  }
  if (done) *built = ev;
  else PetscCall(Destroy(ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBOrder_Host - The order in which rows are stored, of the matrix by clusters where the options ask for them, or they pay */
PetscErrorCode EVCHYBOrder_Host(const void *given, const GallopCSR *csr, PetscInt order[])
{
  const EVCHYBOptions *options = (const EVCHYBOptions *)given;
  EVCHYBClusterOrder   found   = {.order = NULL};
  EVCHYBClusterMatrix  matrix  = {.memory = NULL};
  PetscReal            sectors[2];

  PetscFunctionBegin;
  if (EVCHYBClustersTries(options, csr, PETSC_TRUE)) PetscCall(EVCHYBClustersChoose(options, csr, &found, &matrix, sectors));
  PetscCall(EVCHYBPlainOrder_Host(options, matrix.memory ? &matrix.csr : csr, order));
  if (matrix.memory)
    for (PetscInt k = 0; k < csr->m; k++) order[k] = found.order[order[k]];
  PetscCall(EVCHYBClusterMatrixFree(&matrix));
  PetscCall(EVCHYBClusterOrderFree(csr, &found));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBDestroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(Destroy((EVCHYB *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of an order that came later products are counted, up to as many as pay for a refresh; those of a CUDA graph cannot be, and may be many */
static PetscErrorCode CountProduct(EVCHYB *ev)
{
  PetscFunctionBegin;
  if (ev->recorded || After(&ev->options) == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (!PetscMemTypeHost(ev->memtype)) PetscCall(GallopDeviceIsCapturing(&ev->recorded));
  if (ev->products < EVCHYB_CLUSTER_FEW) ev->products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBApply(void *data, const GallopProduct *p)
{
  EVCHYB *ev = (EVCHYB *)data;

  PetscFunctionBegin;
  if (ev->clusters) PetscCall(CountProduct(ev));
  if (!ev->clusters) PetscCall((*ev->work->apply)(ev, p));
#if PetscDefined(HAVE_CUDA)
  else if (PetscMemTypeCUDA(ev->memtype)) PetscCall(EVCHYBClustersApply_Device(ev, p));
#endif
  else PetscCall(EVCHYBClustersApply_Host(ev, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order stays, also where new values are stored in another way */
static PetscErrorCode RefreshOrdered(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  EVCHYBClusterMatrix matrix;
  PetscBool           capturing = PETSC_FALSE;

  PetscFunctionBegin;
  if (!PetscMemTypeHost(ev->memtype)) PetscCall(GallopDeviceIsCapturing(&capturing));
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_SUP, "New values that are put into an order by clusters cannot be recorded in a CUDA graph: multiply once before"); /* the permuted matrix is gone when the graph runs */
  PetscCall(EVCHYBClusterPermute(ev->clusters->order, csr, &matrix, fits));
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*ev->work->refresh)(ev, &matrix.csr, maxbytes, fits));
  if (!*fits) {
    PetscCall((*ev->work->destroy)(ev));
    PetscCall(BuildOrdered(ev, &matrix, maxbytes, fits));
  }
  PetscCall(EVCHYBClusterMatrixFree(&matrix));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets of values of which none had the products that an order waits for: then it is not looked for any more. Or that had too few for an order that came, which is given up then. */
static const PetscInt MostStates = 2;

/* Whether the order is to go, since values change too often for it */
static PetscBool GivesUp(EVCHYB *ev)
{
  if (!ev->clusters || After(&ev->options) == 0 || ev->recorded) return PETSC_FALSE;
  ev->few      = ev->products < EVCHYB_CLUSTER_FEW ? ev->few + 1 : 0;
  ev->products = 0;
  return (PetscBool)(ev->few >= MostStates);
}

static PetscErrorCode EVCHYBRefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  EVCHYB   *ev = (EVCHYB *)data;
  PetscBool fits;

  PetscFunctionBegin;
  if (GivesUp(ev)) {
    *answer = GALLOP_REBUILD;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ev->after) ev->after = ++ev->restarts < MostStates ? After(&ev->options) : 0; /* products of these values */
  if (ev->clusters) PetscCall(RefreshOrdered(ev, csr, maxbytes, &fits));
  else PetscCall((*ev->work->refresh)(ev, csr, maxbytes, &fits));
  *answer = fits ? GALLOP_REFRESHED : GALLOP_REBUILD;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- an order that is looked for later ---- */

static PetscBool Tries(const void *data)
{
  return (PetscBool)(((const EVCHYB *)data)->after > 0);
}

/* The arrays go from the GPU like those of other matrices: either storage has all of their entries */
static PetscBool Restores(const void *data)
{
  return PetscNot(PetscMemTypeHost(((const EVCHYB *)data)->memtype));
}

/* A CUDA graph that records a product may run for as long as the matrix lives: the format stays as it is */
static PetscErrorCode Records(void *data, PetscBool *records)
{
  EVCHYB *ev = (EVCHYB *)data;

  PetscFunctionBegin;
  *records = PETSC_FALSE;
  if (!PetscMemTypeHost(ev->memtype)) PetscCall(GallopDeviceIsCapturing(records));
  if (*records) ev->recorded = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Asks(void *data, PetscBool *asks)
{
  EVCHYB *ev = (EVCHYB *)data;

  PetscFunctionBegin;
  ev->after = ev->recorded ? 0 : ev->after - 1;
  *asks     = (PetscBool)(!ev->recorded && !ev->after);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format in its order takes the place of the one without, if there is an order that pays, and room for both */
static PetscErrorCode Next(void *data, const GallopCSR *csr, PetscInt *builds, PetscBool *fits)
{
  EVCHYB   *ev = (EVCHYB *)data, *other = NULL, swap;
  PetscBool found  = PETSC_FALSE;
  void     *memory = NULL;
#if PetscDefined(HAVE_CUDA)
  GallopCSR restored;
#endif

  PetscFunctionBegin;
  *builds = 0;
  *fits   = PETSC_TRUE;
#if PetscDefined(HAVE_CUDA)
  if (csr && !csr->i) {
    PetscCall(EVCHYBRestore_Device(ev, csr, &restored, &memory));
    csr = memory ? &restored : NULL;
  }
#endif
  if (!csr) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Create(&ev->options, csr, &other));
  other->maxbytes = ev->maxbytes;
  PetscCall(BuildByClusters(other, csr, memory, ev->maxbytes, &found));
  if (found) {
    swap    = *ev;
    *ev     = *other;
    *other  = swap;
    *builds = 1;
  }
  PetscCall(Destroy(other));
  if (!PetscMemTypeHost(ev->memtype)) PetscCall(GallopDeviceFreeKept(PETSC_FALSE)); /* arrays, workspace and a format, which nobody will ask for again */
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatTrial EVCHYBTrial = {Tries, NULL, Restores, Records, Asks, Next, NULL};

const GallopFormatWork EVCHYBHost = {EVCHYBBuild, EVCHYBRefresh, EVCHYBApply, EVCHYBDestroy, NULL};
#if PetscDefined(HAVE_CUDA)
const GallopFormatWork EVCHYBDevice = {EVCHYBBuild, EVCHYBRefresh, EVCHYBApply, EVCHYBDestroy, NULL};
#endif

/* EVCHYBCopyToHost - A copy on the host of a format that was built at either place; EVCHYBDestroyHostCopy() frees it */
PetscErrorCode EVCHYBCopyToHost(const EVCHYB *ev, EVCHYB **copy)
{
  EVCHYB *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *ev;
  h->memtype = PETSC_MEMTYPE_HOST;
  if (ev->plain) PetscCall(EVCHYBPlainCopyToHost(ev->plain, ev->memtype, &h->plain));
  if (ev->packed) PetscCall(EVCHYBPackedCopyToHost(ev->packed, ev->memtype, &h->packed));
  if (ev->clusters) PetscCall(EVCHYBClustersCopyToHost(ev->clusters, &h->clusters));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBDestroyHostCopy(EVCHYB **copy)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBPlainFree_Host(&(*copy)->plain));
  PetscCall(EVCHYBPackedFree_Host(&(*copy)->packed));
  PetscCall(EVCHYBClustersDestroy(&(*copy)->clusters));
  PetscCall(PetscFree(*copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}
