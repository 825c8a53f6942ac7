/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's hot columns: the choice, for host and GPU; on the host the build, new values, and products */

#include <gallop/deviceimpl.h>
#include "hbp.h"

/* HBPHotGetRoom - Asks the GPU how many hot columns it has room for, unless that is known */
PetscErrorCode HBPHotGetRoom(HBPOptions *options)
{
  PetscBool device;

  PetscFunctionBegin;
  if (options->hot_room) PetscFunctionReturn(PETSC_SUCCESS);
  options->hot_room = HBP_HOT_MOST;
  PetscCall(GallopDeviceAvailable(&device));
#if PetscDefined(HAVE_CUDA)
  if (device) PetscCall(HBPHotGetRoom_Device(options));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether rows are of so different lengths as in graphs, by the samples */
static PetscBool IsUneven(const HBPSample *s)
{
  int longest = 0;

  for (int k = 0; k < HBP_LOGS; k++)
    if (s->logs[HBP_ROW][k]) longest = k;
  return (PetscBool)(s->segs[HBP_ROW] && ((unsigned long long)1 << longest) * s->segs[HBP_ROW] >= HBP_HOT_UNEVEN * s->entries);
}

/* HBPHotMay - How many hot columns the matrix may have, 0 for none, before columns are counted. HBPHotPays() says what the counts tell. */
PetscErrorCode HBPHotMay(HBPOptions *options, const GallopCSR *csr, const HBPSample *s, PetscInt *places)
{
  PetscFunctionBegin;
  *places = 0;
  if (!options->hot_columns || options->columns > 1 || csr->m > PETSC_INT_MAX - HBP_SPARE || csr->nz > PETSC_INT_MAX - HBP_SPARE || csr->nz / HBP_HOT_PIECE > PETSC_INT_MAX - csr->m - HBP_SPARE)
    PetscFunctionReturn(PETSC_SUCCESS);
  if (options->hot_columns < 0) {
    if (options->block_rows || options->block_cols || options->shared_x != HBP_SHARED_CHOOSE || options->map != HBP_MAP_CHOOSE || options->long_row || options->lane_entries)
      PetscFunctionReturn(PETSC_SUCCESS);
    if (csr->nz < HBP_HOT_ENTRIES || 2 * s->near >= s->entries || (size_t)csr->n * sizeof(PetscScalar) > HBP_CACHE || !IsUneven(s)) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HBPHotGetRoom(options));
  if (options->hot_columns < 0) {
    if (csr->n > 2 * options->hot_room) *places = options->hot_room;
  } else *places = PetscMin(options->hot_columns, options->hot_room);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotPays - Whether the hot columns have enough entries */
PetscBool HBPHotPays(const HBPOptions *options, PetscCount nz, PetscInt num, PetscCount entries)
{
  return (PetscBool)(num && (options->hot_columns > 0 || 2 * entries >= nz));
}

PetscErrorCode HBPHotCreate(const GallopCSR *csr, PetscMemType memtype, HBPHot **h)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(h));
  (*h)->memtype = memtype;
  (*h)->m       = csr->m;
  (*h)->n       = csr->n;
  (*h)->nz      = csr->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotSetClasses - Groups of each class, from the first parts */
void HBPHotSetClasses(HBPHot *h)
{
  h->classes.group[0] = 0;
  for (int k = 0; k < HBP_HOT_CLASSES; k++) {
    const PetscInt each = 32 >> HBPHotLanes(k);

    h->classes.group[k + 1] = h->classes.group[k] + (h->classes.part[k + 1] - h->classes.part[k] + each - 1) / each;
  }
  h->groupNum = h->classes.group[HBP_HOT_CLASSES];
}

PetscErrorCode HBPHotDestroy(HBPHot **h)
{
  PetscFunctionBegin;
  if (!*h) PetscFunctionReturn(PETSC_SUCCESS);
  if (PetscMemTypeHost((*h)->memtype)) {
#define FREE(array, number) PetscCall(PetscFree((*h)->array));
    HBP_HOT_ARRAYS(*h, FREE);
#undef FREE
    PetscCall(PetscFree((*h)->partial));
  } else PetscCall(GallopDeviceFree((*h)->hotData)); /* one allocation */
  PetscCall(PetscFree(*h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of the arrays that are not there yet */
static PetscErrorCode Allocate(HBPHot *h)
{
  PetscFunctionBegin;
#define ALLOCATE(array, number) \
  if (!h->array) PetscCall(PetscCalloc1(number, &h->array));
  HBP_HOT_ARRAYS(h, ALLOCATE);
#undef ALLOCATE
  PetscCall(PetscMalloc1(h->pieceNum, &h->partial));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(const HBPHot *h)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*h->array);
  HBP_HOT_ARRAYS(h, ADD);
#undef ADD
  return bytes;
}

/* HBPHotCopyToHost - A copy on the host of what was built at either place */
PetscErrorCode HBPHotCopyToHost(const HBPHot *h, HBPHot **copy)
{
  PetscFunctionBegin;
  *copy = NULL;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(copy));
  **copy           = *h;
  (*copy)->memtype = PETSC_MEMTYPE_HOST;
#define FORGET(array, number) (*copy)->array = NULL;
  HBP_HOT_ARRAYS(h, FORGET);
#undef FORGET
  PetscCall(Allocate(*copy));
#define COPY(array, number) \
  if ((number) > 0) PetscCall(GallopCopyToHost((*copy)->array, h->memtype, h->array, (size_t)(number) * sizeof(*h->array)));
  HBP_HOT_ARRAYS(h, COPY);
#undef COPY
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hot columns: those with the most entries, as many as there are places and none that has as few as one that has no place. Returns their entries. */
static PetscErrorCode FindColumns(HBPHot *h, const GallopCSR *csr, PetscInt places, PetscCount *entries)
{
  const int shift = HBPHotShift(csr->nz, places);
  PetscInt *count, *bins;
  int       least = HBP_HOT_BINS; /* bin of a hot column */

  PetscFunctionBegin;
  PetscCall(PetscCalloc2(csr->n, &count, HBP_HOT_BINS, &bins));
  for (PetscCount k = 0; k < csr->nz; k++) count[csr->j[k]]++;
  for (PetscInt c = 0; c < csr->n; c++) bins[HBPHotBin(count[c], shift)]++;
  while (least > 1 && h->num + bins[least - 1] <= places) h->num += bins[--least];
  PetscCall(PetscMalloc1(h->num, &h->hotColumn));
  PetscCall(PetscMalloc1(csr->n, &h->rank));
  *entries = 0;
  for (PetscInt c = 0, hot = 0; c < csr->n; c++) {
    h->rank[c] = HBP_COLD;
    if (HBPHotBin(count[c], shift) < least) continue;
    *entries += count[c];
    h->hotColumn[hot] = c;
    h->rank[c]        = (unsigned short)hot++;
  }
  PetscCall(PetscFree2(count, bins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A part before it has found its place */
typedef struct {
  unsigned int key;
  PetscInt     number, row, begin;
} HotPart;

static int ComparePart(const void *a, const void *b)
{
  const HotPart *p = (const HotPart *)a, *q = (const HotPart *)b;

  if (p->key != q->key) return p->key < q->key ? -1 : 1;
  return p->number < q->number ? -1 : 1;
}

static void FindParts(HBPHot *h, const GallopCSR *csr, HotPart part[])
{
  PetscInt num = 0, longs = 0, piece = 0;

  for (PetscInt r = 0; r < csr->m; r++) {
    const PetscInt end = csr->i[r + 1], pieces = HBPHotPieces(end - csr->i[r]);

    if (pieces > 1) {
      h->longRow[longs]     = r;
      h->longPiece[longs++] = piece;
    }
    for (PetscInt p = 0; p < pieces; p++) {
      const PetscInt begin = csr->i[r] + p * HBP_HOT_PIECE, stop = PetscMin(begin + HBP_HOT_PIECE, end);
      unsigned int   hot = 0;

      for (PetscInt k = begin; k < stop; k++) hot += h->rank[csr->j[k]] != HBP_COLD;
      part[num] = (HotPart){HBPHotKey(hot, (unsigned int)(stop - begin) - hot), num, pieces > 1 ? -1 - piece : r, begin};
      num++;
      if (pieces > 1) h->pieceLong[piece++] = longs - 1;
    }
  }
  h->longPiece[longs] = piece;
}

/* HBPHotFill_Host - The values of all entries, and their columns if these are wanted */
void HBPHotFill_Host(HBPHot *h, const GallopCSR *csr, PetscBool columns)
{
  for (int c = 0; c < HBP_HOT_CLASSES; c++) {
    const int lanes = HBPHotLanes(c);

    for (PetscInt p = h->classes.part[c]; p < h->classes.part[c + 1]; p++) {
      int            slot;
      const PetscInt g = HBPHotGroupOf(&h->classes, c, p, &slot), num = (PetscInt)((h->len[p] & 65535) + (h->len[p] >> 16));
      PetscInt       hot = 0, cold = 0;

      for (PetscInt k = h->begin[p]; k < h->begin[p] + num; k++) {
        const PetscBool  is = (PetscBool)(h->rank[csr->j[k]] != HBP_COLD);
        const PetscInt   q  = is ? hot++ : cold++;
        const PetscCount at = ((PetscCount)(is ? h->line[g].hot : h->line[g].cold) + (q >> lanes)) * 32 + (slot << lanes | (q & ((1 << lanes) - 1)));

        (is ? h->hotData : h->coldData)[at] = csr->a[k];
        if (columns && is) h->hotCol[at] = h->rank[csr->j[k]];
        if (columns && !is) h->coldCol[at] = csr->j[k];
      }
    }
  }
}

/* The order of parts, and lines of their groups */
static void PlaceParts(HBPHot *h, HotPart part[])
{
  int c = 0;

  qsort(part, (size_t)h->partNum, sizeof(*part), ComparePart);
  for (PetscInt p = 0; p < h->partNum; p++) {
    for (; c <= HBPHotClassOf(part[p].key); c++) h->classes.part[c] = p;
    h->row[p]   = part[p].row;
    h->begin[p] = part[p].begin;
    h->len[p]   = HBPHotLength(part[p].key);
  }
  for (; c <= HBP_HOT_CLASSES; c++) h->classes.part[c] = h->partNum;
  HBPHotSetClasses(h);
}

static void PlaceGroups(HBPHot *h)
{
  for (PetscInt g = 0; g < h->groupNum; g++) {
    PetscInt          first, num;
    const int         c = HBPHotGroup(&h->classes, g, &first, &num);
    const HBPHotLines l = HBPHotLinesOf(c, num, h->len + first);

    h->line[g] = h->lines;
    h->lines.hot += l.hot;
    h->lines.cold += l.cold;
  }
  h->line[h->groupNum] = h->lines;
}

/* HBPHotBuild_Host - h->hot, NULL where the matrix is to be stored by blocks of rows and columns */
PetscErrorCode HBPHotBuild_Host(HBP *h, const GallopCSR *csr, const HBPSample *s, PetscCount maxbytes)
{
  PetscInt   places;
  PetscCount entries = 0;
  HBPHot    *t;
  HotPart   *part;

  PetscFunctionBegin;
  PetscCall(HBPHotMay(&h->options, csr, s, &places));
  if (!places) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HBPHotCreate(csr, PETSC_MEMTYPE_HOST, &t));
  PetscCall(FindColumns(t, csr, places, &entries));
  if (HBPHotPays(&h->options, csr->nz, t->num, entries)) {
    for (PetscInt r = 0; r < csr->m; r++) {
      const PetscInt pieces = HBPHotPieces(csr->i[r + 1] - csr->i[r]);

      t->partNum += pieces;
      if (pieces == 1) continue;
      t->longNum++;
      t->pieceNum += pieces;
    }
    PetscCall(PetscMalloc1(t->partNum, &part));
    PetscCall(PetscMalloc1(t->partNum, &t->row));
    PetscCall(PetscMalloc1(t->partNum, &t->len));
    PetscCall(PetscMalloc1(t->partNum, &t->begin));
    PetscCall(PetscMalloc1(t->longNum, &t->longRow));
    PetscCall(PetscMalloc1(t->longNum + 1, &t->longPiece));
    PetscCall(PetscMalloc1(t->pieceNum, &t->pieceLong));
    FindParts(t, csr, part);
    PlaceParts(t, part);
    PetscCall(PetscFree(part));
    PetscCall(PetscMalloc1(t->groupNum + 1, &t->line));
    PlaceGroups(t);
    t->bytes = Bytes(t);
    if (!maxbytes || t->bytes + HBPHotWorkspaceBytes(t) <= (size_t)maxbytes) {
      PetscCall(Allocate(t));
      HBPHotFill_Host(t, csr, PETSC_TRUE);
      h->hot   = t;
      h->bytes = t->bytes;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(HBPHotDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls DO for each entry of part p: value is where its value is, column its column */
#define WALK_PART(h, c, p, DO) \
  do { \
    int            slot_; \
    const int      lanes_ = HBPHotLanes(c); \
    const PetscInt g_ = HBPHotGroupOf(&(h)->classes, c, p, &slot_), hot_ = (PetscInt)((h)->len[p] & 65535), cold_ = (PetscInt)((h)->len[p] >> 16); \
    for (PetscInt q_ = 0; q_ < hot_ + cold_; q_++) { \
      const PetscBool   is_    = (PetscBool)(q_ < hot_); \
      const PetscInt    of_    = is_ ? q_ : q_ - hot_; \
      const PetscCount  at_    = ((PetscCount)(is_ ? (h)->line[g_].hot : (h)->line[g_].cold) + (of_ >> lanes_)) * 32 + (slot_ << lanes_ | (of_ & ((1 << lanes_) - 1))); \
      const PetscScalar value  = (is_ ? (h)->hotData : (h)->coldData)[at_]; \
      const PetscInt    column = is_ ? (h)->hotColumn[(h)->hotCol[at_]] : (h)->coldCol[at_]; \
      DO; \
    } \
  } while (0)

/* HBPHotMultiply_Host - The product */
void HBPHotMultiply_Host(const HBPHot *h, const GallopProduct *p)
{
  for (int c = 0; c < HBP_HOT_CLASSES; c++)
    for (PetscInt t = h->classes.part[c]; t < h->classes.part[c + 1]; t++) {
      PetscScalar sum = 0.0;

      WALK_PART(h, c, t, sum += value * p->x[column]);
      if (h->row[t] >= 0) GallopStoreRow(p, h->row[t], sum);
      else h->partial[-1 - h->row[t]] = sum;
    }
  for (PetscInt l = 0; l < h->longNum; l++) {
    PetscScalar sum = 0.0;

    for (PetscInt k = h->longPiece[l]; k < h->longPiece[l + 1]; k++) sum += h->partial[k];
    GallopStoreRow(p, h->longRow[l], sum);
  }
}

/* HBPHotAddTranspose_Host - Adds the transposed product to z */
void HBPHotAddTranspose_Host(const HBPHot *h, const GallopProduct *p, PetscBool conjugate)
{
  for (int c = 0; c < HBP_HOT_CLASSES; c++)
    for (PetscInt t = h->classes.part[c]; t < h->classes.part[c + 1]; t++) {
      const PetscScalar x = p->x[h->row[t] >= 0 ? h->row[t] : h->longRow[h->pieceLong[-1 - h->row[t]]]];

      WALK_PART(h, c, t, p->z[column] += *p->alpha * ((conjugate ? PetscConj(value) : value) * x));
    }
}
