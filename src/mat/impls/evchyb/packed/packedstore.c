/* Packed storage on the host: entries are stored, and get new values */

#include "packedhost.h"

/* A value at its place in a line; false where it cannot be stored so */
static PetscBool StoreValue(const GallopPack *pack, GallopPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  const PetscReal *from = (const PetscReal *)&value;

  for (int part = 0; part < GALLOP_PACK_PARTS; part++) {
    const int to = GALLOP_PACK_PARTS * place + part;

    if (kind == GALLOP_PACK_VALUE) ((PetscReal *)line)[to] = from[part];
    else if (kind == GALLOP_PACK_SINGLE) {
      if (!GallopPackIsSingle(from[part])) return PETSC_FALSE;
      ((float *)line)[to] = (float)from[part];
    } else {
      const PetscInt at = GallopPackFind(pack->dict, pack->ndict, from[part]);

      if (at == pack->ndict) return PETSC_FALSE;
      if (kind == GALLOP_PACK_DICT8) line[to] = (unsigned char)at;
      else ((uint16_t *)line)[to] = (uint16_t)at;
    }
  }
  return PETSC_TRUE;
}

static void StoreOffset(GallopPackClass kind, unsigned char *at, int place, uint32_t offset)
{
  if (kind == GALLOP_PACK_8) at[place] = (unsigned char)offset;
  else if (kind == GALLOP_PACK_16) ((uint16_t *)at)[place] = (uint16_t)offset;
  else if (kind == GALLOP_PACK_32) ((uint32_t *)at)[place] = offset;
}

static void StoreBit(const GallopPack *pack, const GallopPackSlice *slice, PetscInt k, int place)
{
  const int      bytes = GallopPackMaskBytes(slice->width);
  unsigned char *at    = pack->stream + ((size_t)slice->mask + (size_t)(k / GALLOP_PACK_CHUNK) * bytes) * GALLOP_PACK_UNIT;
  const uint32_t bit   = (uint32_t)1 << k % GALLOP_PACK_CHUNK;

  if (bytes == 1) at[place] |= (unsigned char)bit;
  else if (bytes == 2) ((uint16_t *)at)[place] |= (uint16_t)bit;
  else ((uint32_t *)at)[place] |= bit;
}

/* A line, whose offsets go to stream; shared, it has those of the line before, from which it is base away. Returns the class of the offsets that are stored for it. */
static GallopPackClass StoreLine(GallopPack *pack, GallopPackClass kind, PetscBool shared, PetscInt base, PetscInt step, int64_t stream, GallopPackLine *line)
{
  if (shared) *line = (GallopPackLine){line[-1].base + (int32_t)base, line[-1].info};
  else *line = kind == GALLOP_PACK_STRIDED ? GallopPackStrided((int32_t)base, (int)step) : GallopPackStored(kind, (int32_t)base, (uint32_t)stream);
  pack->figures.lines[GallopPackClassOf(*line)]++;
  pack->figures.shared += shared;
  return shared ? GALLOP_PACK_STRIDED : kind;
}

/* A slice's lines, offsets, masks and values, in memory that is 0 */
static void StoreSlice(GallopPack *pack, const GallopCSR *csr, const GallopPackRows *s, const GallopPackPlan *plan, const GallopPackPlaces *at, GallopPackSlice *slice)
{
  PetscInt next[GALLOP_PACK_ROWS] = {0};
  int64_t  stream                 = at->stream;
  GallopPackColumns  line;

  slice->line   = at->line;
  slice->value  = (uint32_t)at->value;
  slice->width  = (uint16_t)plan->width;
  slice->values = (uint8_t)plan->values;
  slice->at     = plan->lines[GALLOP_PACK_STRIDED] == plan->width ? (uint32_t)s->step : 0;
  slice->rows   = plan->rows == GALLOP_PACK_STRIDED ? GallopPackStrided((int32_t)s->row[0], (int)(s->row[1] - s->row[0])) : GallopPackStored(plan->rows, (int32_t)s->lo, (uint32_t)stream);
  for (int l = 0; l < GALLOP_PACK_ROWS; l++) StoreOffset(plan->rows, pack->stream + stream * GALLOP_PACK_UNIT, GallopPackPlace(l), s->row[l] < 0 ? GALLOP_PACK_NONE : (uint32_t)(s->row[l] - s->lo));
  stream += GallopPackOffsetUnits(plan->rows);
  slice->mask = plan->masks ? (uint32_t)stream : GALLOP_PACK_NONE;
  stream += plan->masks ? GallopPackMaskUnits(plan->width) : 0;
  pack->figures.slots[plan->values] += (PetscCount)GALLOP_PACK_ROWS * plan->width;
  for (PetscInt k = 0; k < plan->width; k++) {
    unsigned char  *to     = GallopPackValuesOfLine(pack, slice, k);
    GallopPackClass kind   = GALLOP_PACK_STRIDED;
    PetscBool       shared = PETSC_FALSE;
    PetscInt        base   = 0;

    if (plan->diagonals) (void)GallopPackNextDiagonal(csr, s, next, &base);
    else {
      GallopPackColumnsOfRows(csr, s, k, &line);
      kind = GallopPackClassOfLine(&line, &base, &shared);
    }
    kind = StoreLine(pack, kind, shared, base, s->step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
      const int place = GallopPackPlace(l);

      if (plan->diagonals ? !GallopPackIsOn(csr, s, next, l, base) : k >= s->len[l]) continue;
      StoreOffset(kind, pack->stream + stream * GALLOP_PACK_UNIT, place, (uint32_t)(csr->j[s->first[l] + next[l]] - base));
      (void)StoreValue(pack, plan->values, to, place, csr->a[s->first[l] + next[l]]);
      if (plan->masks) StoreBit(pack, slice, k, place);
      next[l]++;
    }
    stream += GallopPackOffsetUnits(kind);
  }
}

/* A piece of a row */
static void StorePiece(GallopPack *pack, const GallopCSR *csr, const GallopPackPlan *plan, const GallopPackPlaces *at, GallopPackSlice *slice)
{
  int64_t stream = at->stream;
  GallopPackColumns line;

  *slice = GallopPackPieceSlice(plan, at);
  pack->figures.slots[plan->values] += (PetscCount)GALLOP_PACK_ROWS * plan->width;
  pack->nlong += (PetscCount)GALLOP_PACK_ROWS * plan->width;
  pack->figures.strided += plan->lines[GALLOP_PACK_STRIDED];
  for (PetscInt k = 0; k < plan->width; k++) {
    const PetscCount from = (PetscCount)plan->first + (PetscCount)k * GALLOP_PACK_ROWS;
    PetscInt         base;
    PetscBool        shared;
    GallopPackClass  kind;

    GallopPackColumnsOfPiece(csr, plan, k, &line);
    kind = GallopPackClassOfLine(&line, &base, &shared);
    kind = StoreLine(pack, kind, shared, base, line.step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < GallopPackInLine(plan->entries, k); l++) {
      StoreOffset(kind, pack->stream + stream * GALLOP_PACK_UNIT, GallopPackPlace(l), (uint32_t)(csr->j[from + l] - base));
      (void)StoreValue(pack, plan->values, GallopPackValuesOfLine(pack, slice, k), GallopPackPlace(l), csr->a[from + l]);
    }
    stream += GallopPackOffsetUnits(kind);
  }
}

/* GallopPackBytes - Of all arrays */
size_t GallopPackBytes(const GallopPack *pack)
{
  return (size_t)pack->nslice * sizeof(GallopPackSlice) + (size_t)pack->nline * sizeof(GallopPackLine) + (size_t)(pack->nstream + pack->nvalue) * GALLOP_PACK_UNIT + (size_t)pack->ndict * sizeof(PetscReal);
}

PetscErrorCode GallopPackFinish_Host(GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, PetscCount maxbytes, PetscBool *done)
{
  GallopPackPlaces all = {0, 0, 0};
  GallopPackRows             s;
  GallopPackPlan   plan;

  PetscFunctionBegin;
  *done        = PETSC_FALSE;
  pack->stride = order->perm ? 0 : order->stride;
  pack->npiece = order->pieces;
  pack->nslice = GallopPackNumSlices(order, csr->m) + pack->npiece;
  for (int pass = 0; pass < 2; pass++) {
    GallopPackPlaces at = {0, 0, 0};

    if (pass) {
      if (!GallopPackPlacesFit(&all)) PetscFunctionReturn(PETSC_SUCCESS);
      pack->nline   = (PetscCount)all.line;
      pack->nstream = (PetscCount)all.stream;
      pack->nvalue  = (PetscCount)all.value;
      pack->bytes   = GallopPackBytes(pack);
      if (maxbytes && pack->bytes > (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
      PetscCall(PetscCalloc4(pack->nslice, &pack->slice, pack->nline, &pack->line, pack->nstream * GALLOP_PACK_UNIT, &pack->stream, pack->nvalue * GALLOP_PACK_UNIT, &pack->value));
    }
    for (PetscInt k = 0; k < pack->nslice; k++) {
      GallopPackPlaces own;

      const PetscInt piece = k - (pack->nslice - pack->npiece);

      if (piece < 0) GallopPackPlanSlice(pack, csr, order, k, &s, &plan);
      else GallopPackPlanPiece(pack, csr, order, piece, &plan);
      own = GallopPackPlacesOf(&plan);
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
typedef PetscBool (*Visit)(void *ctx, GallopPackValues kind, unsigned char *line, int place, PetscScalar value);

static PetscBool VisitEntries(const GallopPack *pack, const GallopCSR *csr, Visit visit, void *ctx)
{
  for (PetscInt s = 0; s < pack->nslice; s++) {
    const GallopPackSlice *slice = &pack->slice[s];
    const GallopPackValues kind  = (GallopPackValues)slice->values;

    if (slice->last) {
      const PetscScalar *a = csr->a + (PetscCount)csr->i[slice->rows.base] + (PetscCount)slice->at * GALLOP_PACK_ROWS;

      for (PetscInt k = 0; k < slice->width; k++)
        for (int l = 0; l < (k + 1 < slice->width ? GALLOP_PACK_ROWS : slice->last); l++)
          if (!visit(ctx, kind, GallopPackValuesOfLine(pack, slice, k), GallopPackPlace(l), a[(PetscCount)k * GALLOP_PACK_ROWS + l])) return PETSC_FALSE;
      continue;
    }
    for (int place = 0; place < GALLOP_PACK_ROWS; place++) {
      const PetscInt row  = GallopPackRowOf(slice->rows, pack->stream, place);
      PetscInt       from = row < 0 ? 0 : csr->i[row];

      for (PetscInt k = 0; k < slice->width && row >= 0; k++) {
        if (!(GallopPackMaskOf(slice, pack->stream, k / GALLOP_PACK_CHUNK, place) >> k % GALLOP_PACK_CHUNK & 1)) continue;
        if (!visit(ctx, kind, GallopPackValuesOfLine(pack, slice, k), place, csr->a[from++])) return PETSC_FALSE;
      }
    }
  }
  return PETSC_TRUE;
}

static PetscBool VisitStore(void *ctx, GallopPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  return StoreValue((const GallopPack *)ctx, kind, line, place, value);
}

/* GallopPackRefresh_Host - fits: NULL where the values are known to */
PetscErrorCode GallopPackRefresh_Host(GallopPack *pack, const GallopCSR *csr, PetscBool *fits)
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

static PetscBool VisitNumber(void *ctx, GallopPackValues kind, unsigned char *line, int place, PetscScalar value)
{
  const Numbers   *n    = (const Numbers *)ctx;
  const PetscReal *from = (const PetscReal *)&value;

  for (int part = 0; part < GALLOP_PACK_PARTS; part++) {
    const int      at = GALLOP_PACK_PARTS * place + part, code = kind == GALLOP_PACK_DICT8 ? line[at] : ((const uint16_t *)line)[at];
    const uint64_t complement = ~(uint64_t)GallopPackBitsOf(from[part]);

    if (n->known[code] && GallopPackBitsOf(n->number[code]) != GallopPackBitsOf(from[part])) return PETSC_FALSE;
    if (!complement) return PETSC_FALSE; /* which on the GPU stands for one that is not known */
    n->known[code]  = PETSC_TRUE;
    n->number[code] = from[part];
  }
  return PETSC_TRUE;
}

/* GallopPackRenumber_Host - For values of a dictionary. Numbers that no entry has stay as they are. */
PetscErrorCode GallopPackRenumber_Host(GallopPack *pack, const GallopCSR *csr, PetscBool *done)
{
  Numbers n;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2(pack->ndict, &n.number, pack->ndict, &n.known));
  *done = VisitEntries(pack, csr, VisitNumber, &n);
  if (*done) {
    pack->unsorted = PETSC_FALSE;
    for (PetscInt k = 0; k < pack->ndict; k++) {
      if (n.known[k]) pack->dict[k] = n.number[k];
      if (k && GallopPackCompareBits(&pack->dict[k - 1], &pack->dict[k]) > 0) pack->unsorted = PETSC_TRUE;
    }
  }
  PetscCall(PetscFree2(n.number, n.known));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackSortDict_Host(GallopPack *pack, PetscBool *done)
{
  PetscFunctionBegin;
  qsort(pack->dict, (size_t)pack->ndict, sizeof(*pack->dict), GallopPackCompareBits);
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
