/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM on the host: the inspection of the pattern, which serves both places, new values, and the product. The reference for the GPU's. */

#include "tiledspmm.h"
#include <gallop/deviceimpl.h>

#define HOST_COLUMNS 16 /* most columns of B that the host computes at once */

PetscErrorCode TiledSpMMFree_Host(TiledSpMM **t)
{
  PetscFunctionBegin;
#define FREE(array, number) PetscCall(PetscFree((*t)->array));
  TILEDSPMM_ARRAYS(*t, FREE);
#undef FREE
  PetscCall(PetscFree((*t)->work));
  PetscCall(PetscFree(*t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt PanelEnd(const TiledSpMM *t, PetscInt panel)
{
  return TiledSpMMPlaces(t) - t->options.panel * panel < t->options.panel ? TiledSpMMPlaces(t) : t->options.panel * (panel + 1);
}

/* So slot marks a column that panel has met; a column's place in the footprint is not negative */
static PetscInt Met(PetscInt panel)
{
  return -2 - panel;
}

static PetscInt RowAt(const TiledSpMM *t, PetscInt place)
{
  return t->roworder ? t->roworder[place] : place;
}

static void ClearSlots(const TiledSpMM *t, PetscInt slot[])
{
  for (PetscInt c = 0; c < t->n; c++) slot[c] = -1;
}

/* How many rows of B a panel refers to, or how many lines of a column of B */
static PetscInt CountPanel(const TiledSpMM *t, const GallopCSR *csr, PetscInt p, PetscBool lines, PetscInt slot[])
{
  PetscInt size = 0;

  for (PetscInt r = p * t->options.panel; r < PanelEnd(t, p); r++) {
    const PetscInt row = RowAt(t, r);

    for (PetscInt k = csr->host_i[row]; k < csr->host_i[row + 1]; k++) {
      const PetscCount at = lines ? TiledSpMMLineOf(csr->host_j[k]) : csr->host_j[k];

      if (slot[at] == Met(p)) continue;
      slot[at] = Met(p);
      size++;
    }
  }
  return size;
}

/* How large the footprints of all panels are, and where the stages of each begin */
static PetscCount CountStages(const TiledSpMM *t, const GallopCSR *csr, PetscInt slot[], PetscCount stagedispl[])
{
  PetscCount nmap = 0;

  ClearSlots(t, slot);
  stagedispl[0] = 0;
  for (PetscInt p = 0; p < t->panels; p++) {
    const PetscInt size = CountPanel(t, csr, p, PETSC_FALSE, slot);

    stagedispl[p + 1] = stagedispl[p] + (size + t->options.stage - 1) / t->options.stage;
    nmap += size;
  }
  return nmap;
}

static PetscCount CountLines(const TiledSpMM *t, const GallopCSR *csr, PetscInt slot[])
{
  PetscCount lines = 0;

  ClearSlots(t, slot);
  for (PetscInt p = 0; p < t->panels; p++) lines += CountPanel(t, csr, p, PETSC_TRUE, slot);
  return lines;
}

/* Gives the panels rows in the order of their patterns, where that is wanted and worth it */
static PetscErrorCode Reorder(TiledSpMM *t, const GallopCSR *csr, PetscInt slot[])
{
  PetscCount *stagedispl, nmap, given = 0, sorted = 0, stores = 0;
  PetscInt   *order;

  PetscFunctionBegin;
  if (t->options.reorder == TILEDSPMM_REORDER_NEVER) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TiledSpMMSortRows(csr->m, csr->host_i, csr->host_j, &order));
  if (!order) PetscFunctionReturn(PETSC_SUCCESS);
  if (t->options.reorder == TILEDSPMM_REORDER_CHOOSE) given = CountLines(t, csr, slot);
  t->roworder = order;
  PetscCall(PetscMalloc1(t->panels + 1, &stagedispl));
  nmap = CountStages(t, csr, slot, stagedispl);
  if (t->options.reorder == TILEDSPMM_REORDER_CHOOSE) {
    sorted = CountLines(t, csr, slot);
    for (PetscInt r = 0; r < csr->m; r++) stores += r % TILEDSPMM_WARP == 0 || TiledSpMMLineOf(order[r]) != TiledSpMMLineOf(order[r - 1]);
  }
  t->reordered = TiledSpMMKeepsOrder(t, nmap, given, sorted, stores);
  if (t->reordered) {
    t->nmap = nmap;
    PetscCall(PetscArraycpy(t->stagedispl, stagedispl, t->panels + 1));
  } else PetscCall(PetscFree(t->roworder));
  PetscCall(PetscFree(stagedispl));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The footprint of a panel, in order, and where its stages begin. It is left in slot, too. */
static PetscErrorCode FindFootprint(TiledSpMM *t, const GallopCSR *csr, PetscInt p, PetscInt slot[])
{
  const PetscCount first = t->mapdispl[t->stagedispl[p]];
  PetscInt        *map = t->map + first, size = 0;

  PetscFunctionBegin;
  for (PetscInt r = p * t->options.panel; r < PanelEnd(t, p); r++) {
    const PetscInt row = RowAt(t, r);

    for (PetscInt k = csr->host_i[row]; k < csr->host_i[row + 1]; k++) {
      if (slot[csr->host_j[k]] == Met(p)) continue;
      slot[csr->host_j[k]] = Met(p);
      map[size++]          = csr->host_j[k];
    }
  }
  PetscCall(PetscSortInt(size, map));
  for (PetscInt q = 0; q < size; q++) slot[map[q]] = q;
  for (PetscCount s = t->stagedispl[p]; s < t->stagedispl[p + 1]; s++) t->mapdispl[s + 1] = PetscMin(t->mapdispl[s] + t->options.stage, first + size);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of each row of a panel in each stage, and the widths of its warps. False where a row has more entries in a stage than fit two bytes: it must name columns many times. */
static PetscBool CountEntries(TiledSpMM *t, const GallopCSR *csr, PetscInt p, const PetscInt slot[])
{
  const PetscInt   panel = t->options.panel, begin = p * panel;
  const PetscCount first = t->stagedispl[p], warps = panel / TILEDSPMM_WARP;

  for (PetscInt r = begin; r < PanelEnd(t, p); r++) {
    const PetscInt row = RowAt(t, r);

    for (PetscInt k = csr->host_i[row]; k < csr->host_i[row + 1]; k++) {
      TiledSpMMIndex *len = &t->len[(first + slot[csr->host_j[k]] / t->options.stage) * panel + r - begin];

      if (*len == USHRT_MAX) return PETSC_FALSE;
      (*len)++;
    }
  }
  for (PetscCount w = first * warps; w < t->stagedispl[p + 1] * warps; w++) {
    TiledSpMMIndex width = 0;

    for (int l = 0; l < TILEDSPMM_WARP; l++) width = PetscMax(width, t->len[w * TILEDSPMM_WARP + l]);
    t->warpdispl[w + 1] = t->warpdispl[w] + (PetscCount)width * TILEDSPMM_WARP;
  }
  return PETSC_TRUE;
}

/* index and from of a panel; next is 0 for each of its stages, before and after */
static void PlaceEntries(TiledSpMM *t, const GallopCSR *csr, PetscInt p, PetscInt slot[], PetscInt next[])
{
  const PetscInt   panel = t->options.panel, begin = p * panel;
  const PetscCount first = t->stagedispl[p], warps = panel / TILEDSPMM_WARP, map = t->mapdispl[first];

  for (PetscCount q = map; q < t->mapdispl[t->stagedispl[p + 1]]; q++) slot[t->map[q]] = (PetscInt)(q - map);
  for (PetscInt r = begin; r < PanelEnd(t, p); r++) {
    const PetscInt row = RowAt(t, r);

    for (PetscInt k = csr->host_i[row]; k < csr->host_i[row + 1]; k++) {
      const PetscInt   q = slot[csr->host_j[k]], s = q / t->options.stage;
      const PetscCount at = t->warpdispl[(first + s) * warps + (r - begin) / TILEDSPMM_WARP] + (PetscCount)TILEDSPMM_WARP * next[s]++ + (r - begin) % TILEDSPMM_WARP;

      t->index[at] = (TiledSpMMIndex)(q % t->options.stage);
      t->from[at]  = k;
    }
    for (PetscInt k = csr->host_i[row]; k < csr->host_i[row + 1]; k++) next[slot[csr->host_j[k]] / t->options.stage] = 0;
  }
}

/* index and from of all panels, padding included */
static PetscErrorCode PlaceAllEntries(TiledSpMM *t, const GallopCSR *csr, PetscInt slot[])
{
  PetscCount most = 0;
  PetscInt  *next;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(t->stored, &t->index));
  PetscCall(PetscMalloc1(t->stored, &t->from));
  PetscCall(PetscArrayzero(t->index, t->stored));
  for (PetscCount k = 0; k < t->stored; k++) t->from[k] = -1;
  for (PetscInt p = 0; p < t->panels; p++) most = PetscMax(most, t->stagedispl[p + 1] - t->stagedispl[p]);
  PetscCall(PetscCalloc1(most, &next));
  for (PetscInt p = 0; p < t->panels; p++) PlaceEntries(t, csr, p, slot, next);
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt Segments(const TiledSpMM *t, PetscInt len)
{
  return len > t->segment ? len / t->segment + (len % t->segment ? 1 : 0) : 1;
}

/* Segments, as the GPU numbers them: those of rows that have several have partial sums, in their order */
static void CutRows(TiledSpMM *t, const PetscInt i[])
{
  PetscCount few = 0, many = t->nsplit, slot = 0, seg = 0;

  for (PetscInt r = 0; r < t->m; r++) {
    const PetscInt num = Segments(t, i[r + 1] - i[r]);

    if (num > 1) {
      const PetscCount at = num <= TILEDSPMM_FEW ? few++ : --many;

      t->splitrow[at] = r;
      t->splitptr[at] = (PetscInt)slot;
      t->splitnum[at] = num;
    }
    for (PetscInt k = 0; k < num; k++, seg++) {
      t->segptr[seg] = i[r] + k * t->segment;
      t->segrow[seg] = num > 1 ? (PetscInt)(-1 - slot++) : r;
    }
  }
  t->segptr[seg] = i[t->m];
}

/* Cuts rows that are longer than segment, if there are any and segment is not 0. *cut is the pattern of what panels have then. */
static PetscErrorCode Cut(TiledSpMM *t, const GallopCSR *csr, PetscInt segment, GallopCSR *cut)
{
  PetscCount nseg = 0;

  PetscFunctionBegin;
  *cut       = *csr;
  t->segment = segment;
  t->nseg    = t->m;
  for (PetscInt r = 0; r < t->m && segment; r++) {
    const PetscInt num = Segments(t, csr->host_i[r + 1] - csr->host_i[r]);

    nseg += num;
    t->nsplit += num > 1;
    t->nmany += num > TILEDSPMM_FEW;
    t->nslots += num > 1 ? num : 0;
  }
  if (!t->nsplit || nseg > PETSC_INT_MAX) {
    t->segment = 0;
    t->nsplit = t->nmany = t->nslots = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  t->nseg = nseg;
#define GET(array, number) PetscCall(PetscMalloc1(number, &t->array));
  TILEDSPMM_SEGMENTS(t, GET)
#undef GET
  CutRows(t, csr->host_i);
  cut->m      = (PetscInt)t->nseg;
  cut->host_i = t->segptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  TiledSpMMInspect - The inspection of section 2.5: all arrays but value, on the host, from the pattern there, with rows cut that are longer than segment, if that is not 0

  *built stays NULL where the structure would take more than maxbytes, if that is not 0
*/
PetscErrorCode TiledSpMMInspect(const TiledSpMMOptions *options, const GallopCSR *given, PetscInt segment, PetscCount maxbytes, TiledSpMM **built)
{
  const PetscInt warps = options->panel / TILEDSPMM_WARP;
  GallopCSR      cut, *csr = &cut;
  TiledSpMM     *t;
  PetscInt      *slot;
  PetscBool      fits = PETSC_TRUE;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&t));
  t->memtype = PETSC_MEMTYPE_HOST;
  t->options = *options;
  t->kernel  = TILEDSPMM_STAGED;
  t->m       = given->m;
  t->n       = given->n;
  t->nz      = given->nz;
  PetscCall(Cut(t, given, segment, csr));
  t->panels = csr->m / options->panel + (csr->m % options->panel ? 1 : 0);
  PetscCall(PetscMalloc1(csr->n, &slot));
  PetscCall(PetscMalloc1(t->panels + 1, &t->stagedispl));
  t->nmap = t->nmapgiven = CountStages(t, csr, slot, t->stagedispl);
  PetscCall(Reorder(t, csr, slot));
  t->stages = t->stagedispl[t->panels];
  ClearSlots(t, slot);
  PetscCall(PetscCalloc1(t->stages + 1, &t->mapdispl));
  PetscCall(PetscMalloc1(t->nmap, &t->map));
  PetscCall(PetscCalloc1(t->stages * options->panel, &t->len));
  PetscCall(PetscCalloc1(t->stages * warps + 1, &t->warpdispl));
  for (PetscInt p = 0; p < t->panels && fits; p++) {
    PetscCall(FindFootprint(t, csr, p, slot));
    fits = CountEntries(t, csr, p, slot);
  }
  t->stored = t->warpdispl[t->stages * warps];
  t->bytes  = TiledSpMMBytes(t);
  if (maxbytes && t->bytes > (size_t)maxbytes) fits = PETSC_FALSE;
  if (fits) PetscCall(PlaceAllEntries(t, csr, slot));
  PetscCall(PetscFree(slot));
  if (fits) *built = t;
  else PetscCall(TiledSpMMFree_Host(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  TiledSpMM *t = (TiledSpMM *)data;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < t->stored; k++) t->value[k] = t->from[k] < 0 ? (PetscScalar)0.0 : csr->a[t->from[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data)
{
  TiledSpMM *t;

  PetscFunctionBegin;
  PetscCall(TiledSpMMInspect((const TiledSpMMOptions *)options, csr, ((const TiledSpMMOptions *)options)->segment, maxbytes, &t));
  if (t) {
    PetscCall(PetscMalloc1(t->stored, &t->value));
    PetscCall(PetscMalloc1((PetscCount)(t->options.panel + t->options.stage) * HOST_COLUMNS, &t->work));
    PetscCall(Refresh(t, csr, 0, NULL));
  }
  *data = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the products of a stage to the sums of a panel, for width columns, which compilers know. Columns that B does not have are staged as 0, and never stored. */
static inline void ComputeStage(const TiledSpMM *t, PetscCount stage, PetscInt width, PetscInt columns, const PetscScalar b[], PetscInt ldb, PetscScalar staged[], PetscScalar acc[])
{
  const PetscInt   panel = t->options.panel;
  const PetscCount first = t->mapdispl[stage], size = t->mapdispl[stage + 1] - first, warps = panel / TILEDSPMM_WARP;

  for (PetscCount q = 0; q < size; q++)
    for (PetscInt c = 0; c < width; c++) staged[q * width + c] = c < columns ? b[t->map[first + q] + (PetscCount)c * ldb] : (PetscScalar)0.0;
  for (PetscInt r = 0; r < panel; r++) {
    const PetscCount at  = t->warpdispl[stage * warps + r / TILEDSPMM_WARP] + r % TILEDSPMM_WARP;
    const PetscInt   len = t->len[stage * panel + r];
    PetscScalar      sum[HOST_COLUMNS]; /* in registers: acc might be where B is staged, as far as the compiler knows */

    for (PetscInt c = 0; c < width; c++) sum[c] = acc[r * width + c];
    for (PetscInt k = 0; k < len; k++) {
      const PetscScalar  value = t->value[at + (PetscCount)TILEDSPMM_WARP * k];
      const PetscScalar *row   = staged + (PetscCount)t->index[at + (PetscCount)TILEDSPMM_WARP * k] * width;

      for (PetscInt c = 0; c < width; c++) sum[c] += value * row[c];
    }
    for (PetscInt c = 0; c < width; c++) acc[r * width + c] = sum[c];
  }
}

/* columns columns of a panel, width at most, from column first on. Partial sums of segments are [column][slot]. */
static inline void ComputePanel(const TiledSpMM *t, PetscInt p, PetscInt first, PetscInt width, PetscInt columns, const GallopDenseProduct *product, PetscScalar partial[])
{
  const PetscInt     begin = p * t->options.panel, end = PanelEnd(t, p);
  const PetscScalar *b      = product->b + (PetscCount)first * product->ldb;
  PetscScalar       *staged = t->work, *acc = t->work + (PetscCount)t->options.stage * HOST_COLUMNS;

  for (PetscInt k = 0; k < t->options.panel * width; k++) acc[k] = 0.0;
  for (PetscCount s = t->stagedispl[p]; s < t->stagedispl[p + 1]; s++) ComputeStage(t, s, width, columns, b, product->ldb, staged, acc);
  for (PetscInt c = 0; c < columns; c++) {
    PetscScalar *const to = product->c + (PetscCount)(first + c) * product->ldc;

    for (PetscInt r = begin; r < end; r++) {
      const PetscInt    at = RowAt(t, r), row = t->segment ? t->segrow[at] : at;
      const PetscScalar sum = acc[(r - begin) * width + c];

      if (row < 0) partial[(first + c) * t->nslots - 1 - row] = sum;
      else to[row] = product->add ? to[row] + sum : sum;
    }
  }
}

static void Combine(const TiledSpMM *t, const GallopDenseProduct *product, const PetscScalar partial[])
{
  for (PetscInt c = 0; c < product->columns; c++)
    for (PetscCount k = 0; k < t->nsplit; k++) {
      PetscScalar *const to = product->c + (PetscCount)c * product->ldc + t->splitrow[k], sum = 0.0;

      for (PetscInt s = 0; s < t->splitnum[k]; s++) sum += partial[c * t->nslots + t->splitptr[k] + s];
      *to = product->add ? *to + sum : sum;
    }
}

PetscErrorCode TiledSpMMApplyDense_Host(void *data, const GallopDenseProduct *product, PetscBool *done)
{
  const TiledSpMM *t = (const TiledSpMM *)data;
  PetscScalar     *partial;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  PetscCall(PetscMalloc1(t->nslots * product->columns, &partial));
  for (PetscInt p = 0; p < t->panels; p++) {
    if (product->add && t->stagedispl[p] == t->stagedispl[p + 1]) continue;
    for (PetscInt k = 0, columns; k < product->columns; k += columns) {
      const PetscInt left = product->columns - k;

      columns = left > HOST_COLUMNS / 2 ? PetscMin(left, HOST_COLUMNS) : left > 2 ? PetscMin(left, 4) : 1;
      if (columns > 4) ComputePanel(t, p, k, HOST_COLUMNS, columns, product, partial);
      else if (columns > 1) ComputePanel(t, p, k, 4, columns, product, partial);
      else ComputePanel(t, p, k, 1, columns, product, partial);
    }
  }
  Combine(t, product, partial);
  PetscCall(PetscFree(partial));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(TiledSpMMFree_Host((TiledSpMM **)data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork TiledSpMMHost = {Build, Refresh, NULL, Destroy, NULL};

/* TiledSpMMCopyToHost - A copy on the host of a structure that was built at either place; TiledSpMMDestroyHostCopy() frees it */
PetscErrorCode TiledSpMMCopyToHost(const TiledSpMM *t, TiledSpMM **copy)
{
  TiledSpMM *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *t;
  h->memtype = PETSC_MEMTYPE_HOST;
  h->work    = NULL;
#define COPY(array, number) \
  PetscCall(PetscMalloc1(number, &h->array)); \
  PetscCall(GallopCopyToHost(h->array, t->memtype, t->array, (size_t)(number) * sizeof(*h->array)));
  TILEDSPMM_ARRAYS(t, COPY);
#undef COPY
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMDestroyHostCopy(TiledSpMM **copy)
{
  PetscFunctionBegin;
  PetscCall(TiledSpMMFree_Host(copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}
