/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the host: entries are stored, and get new values */

#include "packedhost.h"

/* A value at its place in a line; false where it cannot be stored so */
static PetscBool StoreValue(const EVCHYBPack *pack, EVCHYBPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  const PetscReal *from = (const PetscReal *)&value;

  if (kind == EVCHYB_PACK_REAL) {
    if (!EVCHYBPackIsReal(value)) return PETSC_FALSE;
    ((PetscReal *)line)[place] = from[0];
    return PETSC_TRUE;
  }
  for (int part = 0; part < EVCHYB_PACK_PARTS; part++) {
    const int to = EVCHYB_PACK_PARTS * place + part;

    if (kind == EVCHYB_PACK_VALUE) ((PetscReal *)line)[to] = from[part];
    else if (kind == EVCHYB_PACK_SINGLE) {
      if (!EVCHYBPackIsSingle(from[part])) return PETSC_FALSE;
      ((float *)line)[to] = (float)from[part];
    } else {
      const PetscInt at = EVCHYBPackFind(pack->dict, pack->ndict, from[part]);

      if (at == pack->ndict) return PETSC_FALSE;
      if (kind == EVCHYB_PACK_DICT8) line[to] = (unsigned char)at;
      else ((uint16_t *)line)[to] = (uint16_t)at;
    }
  }
  return PETSC_TRUE;
}

static void StoreOffset(EVCHYBPackClass kind, unsigned char *at, int place, uint32_t offset)
{
  if (kind == EVCHYB_PACK_8) at[place] = (unsigned char)offset;
  else if (kind == EVCHYB_PACK_16) ((uint16_t *)at)[place] = (uint16_t)offset;
  else if (kind == EVCHYB_PACK_32) ((uint32_t *)at)[place] = offset;
}

static void StoreBit(const EVCHYBPack *pack, const EVCHYBPackSlice *slice, PetscInt k, int place)
{
  const int      bytes = EVCHYBPackMaskBytes(slice->width);
  unsigned char *at    = pack->stream + ((size_t)slice->mask + (size_t)(k / EVCHYB_PACK_CHUNK) * bytes) * EVCHYB_PACK_UNIT;
  const uint32_t bit   = (uint32_t)1 << k % EVCHYB_PACK_CHUNK;

  if (bytes == 1) at[place] |= (unsigned char)bit;
  else if (bytes == 2) ((uint16_t *)at)[place] |= (uint16_t)bit;
  else ((uint32_t *)at)[place] |= bit;
}

/* A line, whose offsets go to stream; shared, it has those of the line before, from which it is base away. Returns the class of the offsets that are stored for it. */
static EVCHYBPackClass StoreLine(EVCHYBPack *pack, EVCHYBPackClass kind, PetscBool shared, PetscInt base, PetscInt step, int64_t stream, EVCHYBPackLine *line)
{
  if (shared) *line = (EVCHYBPackLine){line[-1].base + (int32_t)base, line[-1].info};
  else *line = kind == EVCHYB_PACK_STRIDED ? EVCHYBPackStrided((int32_t)base, (int)step) : EVCHYBPackStored(kind, (int32_t)base, (uint32_t)stream);
  pack->figures.lines[EVCHYBPackClassOf(*line)]++;
  pack->figures.shared += shared;
  return shared ? EVCHYB_PACK_STRIDED : kind;
}

/* A slice's lines, offsets, masks and values, in memory that is 0 */
static void StoreSlice(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackRows *s, const EVCHYBPackPlan *plan, const EVCHYBPackPlaces *at, EVCHYBPackSlice *slice)
{
  PetscInt          next[EVCHYB_PACK_ROWS] = {0};
  int64_t           stream                 = at->stream;
  EVCHYBPackColumns line;

  slice->line   = at->line;
  slice->value  = (uint32_t)at->value;
  slice->width  = (uint16_t)plan->width;
  slice->values = (uint8_t)plan->values;
  slice->at     = plan->lines[EVCHYB_PACK_STRIDED] == plan->width ? (uint32_t)s->step : 0;
  slice->rows   = plan->rows == EVCHYB_PACK_STRIDED ? EVCHYBPackStrided((int32_t)s->row[0], (int)(s->row[1] - s->row[0])) : EVCHYBPackStored(plan->rows, (int32_t)s->lo, (uint32_t)stream);
  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) StoreOffset(plan->rows, pack->stream + stream * EVCHYB_PACK_UNIT, EVCHYBPackPlace(l), s->row[l] < 0 ? EVCHYB_PACK_NONE : (uint32_t)(s->row[l] - s->lo));
  stream += EVCHYBPackOffsetUnits(plan->rows);
  slice->mask = plan->masks ? (uint32_t)stream : EVCHYB_PACK_NONE;
  stream += plan->masks ? EVCHYBPackMaskUnits(plan->width) : 0;
  pack->figures.slots[plan->values] += (PetscCount)EVCHYB_PACK_ROWS * plan->width;
  for (PetscInt k = 0; k < plan->width; k++) {
    unsigned char  *to     = EVCHYBPackValuesOfLine(pack, slice, k);
    EVCHYBPackClass kind   = EVCHYB_PACK_STRIDED;
    PetscBool       shared = PETSC_FALSE;
    PetscInt        base   = 0;

    if (plan->diagonals) (void)EVCHYBPackNextDiagonal(csr, s, next, &base);
    else {
      EVCHYBPackColumnsOfRows(csr, s, k, &line);
      kind = EVCHYBPackClassOfLine(&line, &base, &shared);
    }
    kind = StoreLine(pack, kind, shared, base, s->step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
      const int place = EVCHYBPackPlace(l);

      if (plan->diagonals ? !EVCHYBPackIsOn(csr, s, next, l, base) : k >= s->len[l]) continue;
      StoreOffset(kind, pack->stream + stream * EVCHYB_PACK_UNIT, place, (uint32_t)(csr->j[s->first[l] + next[l]] - base));
      (void)StoreValue(pack, plan->values, to, place, csr->a[s->first[l] + next[l]]);
      if (plan->masks) StoreBit(pack, slice, k, place);
      next[l]++;
    }
    stream += EVCHYBPackOffsetUnits(kind);
  }
}

/* A piece of a row */
static void StorePiece(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackPlan *plan, const EVCHYBPackPlaces *at, EVCHYBPackSlice *slice)
{
  int64_t           stream = at->stream;
  EVCHYBPackColumns line;

  *slice = EVCHYBPackPieceSlice(plan, at);
  pack->figures.slots[plan->values] += (PetscCount)EVCHYB_PACK_ROWS * plan->width;
  pack->nlong += (PetscCount)EVCHYB_PACK_ROWS * plan->width;
  pack->figures.strided += plan->lines[EVCHYB_PACK_STRIDED];
  for (PetscInt k = 0; k < plan->width; k++) {
    const PetscCount from = (PetscCount)plan->first + (PetscCount)k * EVCHYB_PACK_ROWS;
    PetscInt         base;
    PetscBool        shared;
    EVCHYBPackClass  kind;

    EVCHYBPackColumnsOfPiece(csr, plan, k, &line);
    kind = EVCHYBPackClassOfLine(&line, &base, &shared);
    kind = StoreLine(pack, kind, shared, base, line.step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < EVCHYBPackInLine(plan->entries, k); l++) {
      StoreOffset(kind, pack->stream + stream * EVCHYB_PACK_UNIT, EVCHYBPackPlace(l), (uint32_t)(csr->j[from + l] - base));
      (void)StoreValue(pack, plan->values, EVCHYBPackValuesOfLine(pack, slice, k), EVCHYBPackPlace(l), csr->a[from + l]);
    }
    stream += EVCHYBPackOffsetUnits(kind);
  }
}

/* EVCHYBPackBytes - Of all arrays */
size_t EVCHYBPackBytes(const EVCHYBPack *pack)
{
  return (size_t)pack->nslice * sizeof(EVCHYBPackSlice) + (size_t)pack->nline * sizeof(EVCHYBPackLine) + (size_t)(pack->nstream + pack->nvalue) * EVCHYB_PACK_UNIT + (size_t)pack->ndict * sizeof(PetscReal);
}

PetscErrorCode EVCHYBPackFinish_Host(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, const EVCHYBPackSurvey *survey, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBPackPlaces all = {0, 0, 0};
  EVCHYBPackRows   s;
  EVCHYBPackPlan   plan;

  PetscFunctionBegin;
  (void)survey;
  *done        = PETSC_FALSE;
  pack->stride = order->perm ? 0 : order->stride;
  pack->npiece = order->pieces;
  pack->nslice = EVCHYBPackNumSlices(order, csr->m) + pack->npiece;
  for (int pass = 0; pass < 2; pass++) {
    EVCHYBPackPlaces at = {0, 0, 0};

    if (pass) {
      if (!EVCHYBPackPlacesFit(&all)) PetscFunctionReturn(PETSC_SUCCESS);
      pack->nline   = (PetscCount)all.line;
      pack->nstream = (PetscCount)all.stream;
      pack->nvalue  = (PetscCount)all.value;
      pack->bytes   = EVCHYBPackBytes(pack);
      if (maxbytes && pack->bytes > (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
      PetscCall(PetscCalloc4(pack->nslice, &pack->slice, pack->nline, &pack->line, pack->nstream * EVCHYB_PACK_UNIT, &pack->stream, pack->nvalue * EVCHYB_PACK_UNIT, &pack->value));
    }
    for (PetscInt k = 0; k < pack->nslice; k++) {
      EVCHYBPackPlaces own;

      const PetscInt piece = k - (pack->nslice - pack->npiece);

      if (piece < 0) EVCHYBPackPlanSlice(pack, csr, order, k, &s, &plan);
      else {
        (void)EVCHYBPackPieceOf(order, csr->m, csr->i, piece, &plan);
        EVCHYBPackPlanPiece(pack, csr, &plan);
      }
      own = EVCHYBPackPlacesOf(&plan);
      if (pass) {
        if (piece < 0) StoreSlice(pack, csr, &s, &plan, &at, &pack->slice[k]);
        else StorePiece(pack, csr, &plan, &at, &pack->slice[k]);
        pack->nz += (PetscCount)plan.entries;
      }
      at.line += own.line;
      at.stream += own.stream;
      at.value += own.value;
    }
    all = at;
  }
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is done with an entry's new value, whose place in a line that is; false where it cannot be */
typedef PetscBool (*Visit)(void *ctx, EVCHYBPackValues kind, unsigned char *line, int place, PetscScalar value);

static PetscBool VisitEntries(const EVCHYBPack *pack, const GallopCSR *csr, Visit visit, void *ctx)
{
  for (PetscInt s = 0; s < pack->nslice; s++) {
    const EVCHYBPackSlice *slice = &pack->slice[s];
    const EVCHYBPackValues kind  = (EVCHYBPackValues)slice->values;

    if (slice->last) {
      const PetscScalar *a = csr->a + (PetscCount)csr->i[slice->rows.base] + (PetscCount)slice->at * EVCHYB_PACK_ROWS;

      for (PetscInt k = 0; k < slice->width; k++)
        for (int l = 0; l < (k + 1 < slice->width ? EVCHYB_PACK_ROWS : slice->last); l++)
          if (!visit(ctx, kind, EVCHYBPackValuesOfLine(pack, slice, k), EVCHYBPackPlace(l), a[(PetscCount)k * EVCHYB_PACK_ROWS + l])) return PETSC_FALSE;
      continue;
    }
    for (int place = 0; place < EVCHYB_PACK_ROWS; place++) {
      const PetscInt row  = EVCHYBPackRowOf(slice->rows, pack->stream, place);
      PetscInt       from = row < 0 ? 0 : csr->i[row];

      for (PetscInt k = 0; k < slice->width && row >= 0; k++) {
        if (!(EVCHYBPackMaskOf(slice, pack->stream, k / EVCHYB_PACK_CHUNK, place) >> k % EVCHYB_PACK_CHUNK & 1)) continue;
        if (!visit(ctx, kind, EVCHYBPackValuesOfLine(pack, slice, k), place, csr->a[from++])) return PETSC_FALSE;
      }
    }
  }
  return PETSC_TRUE;
}

static PetscBool VisitStore(void *ctx, EVCHYBPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  return StoreValue((const EVCHYBPack *)ctx, kind, line, place, value);
}

/* EVCHYBPackRefresh_Host - fits: NULL where the values are known to */
PetscErrorCode EVCHYBPackRefresh_Host(EVCHYBPack *pack, const GallopCSR *csr, PetscBool *fits)
{
  PetscBool all;

  PetscFunctionBegin;
  all = VisitEntries(pack, csr, VisitStore, pack);
  if (fits) *fits = all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What each number of a dictionary has become, where it is known */
typedef struct {
  PetscReal *number;
  PetscBool *known;
} Numbers;

static PetscBool VisitNumber(void *ctx, EVCHYBPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  const Numbers   *n    = (const Numbers *)ctx;
  const PetscReal *from = (const PetscReal *)&value;

  for (int part = 0; part < EVCHYB_PACK_PARTS; part++) {
    const int      at = EVCHYB_PACK_PARTS * place + part, code = kind == EVCHYB_PACK_DICT8 ? line[at] : ((const uint16_t *)line)[at];
    const uint64_t complement = ~(uint64_t)EVCHYBPackBitsOf(from[part]);

    if (n->known[code] && EVCHYBPackBitsOf(n->number[code]) != EVCHYBPackBitsOf(from[part])) return PETSC_FALSE;
    if (!complement) return PETSC_FALSE; /* which on the GPU stands for one that is not known */
    n->known[code]  = PETSC_TRUE;
    n->number[code] = from[part];
  }
  return PETSC_TRUE;
}

/* EVCHYBPackRenumber_Host - For values of a dictionary. Numbers that no entry has stay as they are. */
PetscErrorCode EVCHYBPackRenumber_Host(EVCHYBPack *pack, const GallopCSR *csr, PetscBool *done)
{
  Numbers n;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2(pack->ndict, &n.number, pack->ndict, &n.known));
  *done = VisitEntries(pack, csr, VisitNumber, &n);
  if (*done) {
    pack->unsorted = PETSC_FALSE;
    for (PetscInt k = 0; k < pack->ndict; k++) {
      if (n.known[k]) pack->dict[k] = n.number[k];
      if (k && EVCHYBPackCompareBits(&pack->dict[k - 1], &pack->dict[k]) > 0) pack->unsorted = PETSC_TRUE;
    }
  }
  PetscCall(PetscFree2(n.number, n.known));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackSortDict_Host(EVCHYBPack *pack, PetscBool *done)
{
  PetscFunctionBegin;
  qsort(pack->dict, (size_t)pack->ndict, sizeof(*pack->dict), EVCHYBPackCompareBits);
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
