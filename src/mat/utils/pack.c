/* Packed entries on the host: how they are stored, renewed and multiplied. The reference for the GPU's. */

#include <gallop/packimpl.h>
#include <gallop/deviceimpl.h>

/* ---------------------------------------------------------------- what a slice will take */

/* The rows of a slice, and their entries */
typedef struct {
  PetscInt row[GALLOP_PACK_ROWS];
  PetscInt first[GALLOP_PACK_ROWS], len[GALLOP_PACK_ROWS];
  PetscInt lo, longest; /* the least row; entries of the longest one */
  PetscInt step;        /* what columns of a diagonal grow by from row to row, 0 where rows have no such order */
} Rows;

static void GetRows(const GallopCSR *csr, const GallopPackOrder *order, PetscInt slice, Rows *s, GallopPackPlan *plan)
{
  PetscInt  hi  = -1;
  PetscBool all = PETSC_TRUE, even = PETSC_TRUE;

  s->lo         = PETSC_INT_MAX;
  s->longest    = 0;
  plan->entries = 0;
  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    PetscInt row = GallopPackRow(order, csr->m, slice, l);

    if (row >= 0 && csr->i[row + 1] - csr->i[row] > order->longest) row = -1;
    s->row[l]   = row;
    s->first[l] = row < 0 ? 0 : csr->i[row];
    s->len[l]   = row < 0 ? 0 : csr->i[row + 1] - csr->i[row];
    s->longest  = PetscMax(s->longest, s->len[l]);
    plan->entries += s->len[l];
    if (row < 0) all = PETSC_FALSE;
    else {
      s->lo = PetscMin(s->lo, row);
      hi    = PetscMax(hi, row);
    }
    if (l && s->row[l] - s->row[l - 1] != s->row[1] - s->row[0]) even = PETSC_FALSE;
  }
  if (hi < 0) s->lo = hi = 0;
  plan->rows = all && even ? GALLOP_PACK_STRIDED : GallopPackClassFor((uint32_t)(hi - s->lo), PETSC_TRUE);
  s->step    = GallopPackStep(order, plan, s->row[0], s->row[1]);
}

/* The columns of a line, -1 where it has no entry, those of the line before, if there is one, and what they may grow by */
typedef struct {
  PetscInt  column[GALLOP_PACK_ROWS], before[GALLOP_PACK_ROWS], step;
  PetscBool follows;
} Columns;

/* The k-th entries of all rows */
static void ColumnsOfRows(const GallopCSR *csr, const Rows *s, PetscInt k, Columns *c)
{
  c->step    = s->step;
  c->follows = (PetscBool)(k > 0);
  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    c->column[l] = k < s->len[l] ? csr->j[s->first[l] + k] : -1;
    c->before[l] = k > 0 && k < s->len[l] ? csr->j[s->first[l] + k - 1] : -1;
  }
}

/* Line k of a piece of a row */
static void ColumnsOfPiece(const GallopCSR *csr, const GallopPackPlan *plan, PetscInt k, Columns *c)
{
  const PetscInt *j = csr->j + plan->first + (PetscCount)k * GALLOP_PACK_ROWS;
  const int       n = GallopPackInLine(plan->entries, k);

  c->step    = GallopPackPieceStep(j[0], n > 1 ? j[1] : j[0]);
  c->follows = (PetscBool)(k > 0);
  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    c->column[l] = l < n ? j[l] : -1;
    c->before[l] = k > 0 && l < n ? j[l - GALLOP_PACK_ROWS] : -1;
  }
}

/* Whether all entries of a line are as far from those of the line before, and how far */
static PetscBool AreShared(const Columns *c, PetscInt *apart)
{
  PetscBool some = PETSC_FALSE;

  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    if (c->column[l] < 0) continue;
    if (some && c->column[l] - c->before[l] != *apart) return PETSC_FALSE;
    *apart = c->column[l] - c->before[l];
    some   = PETSC_TRUE;
  }
  return some;
}

/* How the columns of a line are stored: by their step from base, as offsets from it, or, shared, by the offsets of the line before, from which it is base away */
static GallopPackClass ClassOfLine(const Columns *c, PetscInt *base, PetscBool *shared)
{
  PetscInt        lo = PETSC_INT_MAX, hi = PETSC_INT_MIN, lessl = PETSC_INT_MAX, lessh = PETSC_INT_MIN, apart = 0;
  GallopPackClass kind;

  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    if (c->column[l] < 0) continue;
    const PetscInt column = c->column[l], less = column - c->step * l;

    lo    = PetscMin(lo, column);
    hi    = PetscMax(hi, column);
    lessl = PetscMin(lessl, less);
    lessh = PetscMax(lessh, less);
  }
  kind    = GallopPackClassOfEntries(lo, hi, lessl, lessh, base);
  *shared = (PetscBool)(kind != GALLOP_PACK_STRIDED && c->follows && AreShared(c, &apart));
  if (*shared) *base = apart;
  return kind;
}

/* Counts a line; *kind is the class of the one before, and is that of this one then */
static void CountLine(GallopPackPlan *plan, const Columns *c, GallopPackClass *kind)
{
  PetscInt              base;
  PetscBool             shared;
  const GallopPackClass own = ClassOfLine(c, &base, &shared);

  if (!shared) *kind = own;
  GallopPackCountLine(plan, *kind, shared);
}

/* The next diagonal of a slice, from where its rows have come to: next[l] of row l. False where there is none. */
static PetscBool NextDiagonal(const GallopCSR *csr, const Rows *s, const PetscInt next[], PetscInt *diagonal)
{
  PetscBool some = PETSC_FALSE;

  for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
    if (next[l] >= s->len[l]) continue;
    const PetscInt own = csr->j[s->first[l] + next[l]] - s->step * l;

    *diagonal = some ? PetscMin(*diagonal, own) : own;
    some      = PETSC_TRUE;
  }
  return some;
}

static PetscBool IsOn(const GallopCSR *csr, const Rows *s, const PetscInt next[], int l, PetscInt diagonal)
{
  return (PetscBool)(next[l] < s->len[l] && csr->j[s->first[l] + next[l]] - s->step * l == diagonal);
}

static PetscBool ColumnsIncrease(const GallopCSR *csr, const Rows *s)
{
  for (int l = 0; l < GALLOP_PACK_ROWS; l++)
    for (PetscInt k = 1; k < s->len[l]; k++)
      if (csr->j[s->first[l] + k] <= csr->j[s->first[l] + k - 1]) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* How n values from one on can be stored */
static GallopPackValues ValuesOf(const GallopPack *pack, const GallopCSR *csr, PetscCount first, PetscCount n)
{
  const PetscReal *a = (const PetscReal *)(csr->a + first);

  if (pack->ndict) return GallopPackDictClass(pack->ndict);
  if (sizeof(PetscReal) == sizeof(float)) return GALLOP_PACK_VALUE;
  for (PetscCount k = 0; k < GALLOP_PACK_PARTS * n; k++)
    if (!GallopPackIsSingle(a[k])) return GALLOP_PACK_VALUE;
  return GALLOP_PACK_SINGLE;
}

static void PlanSlice(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, PetscInt slice, Rows *s, GallopPackPlan *plan)
{
  PetscInt        next[GALLOP_PACK_ROWS] = {0}, width = 0, diagonal;
  GallopPackClass kind = GALLOP_PACK_STRIDED;
  GallopPackPlan  by;
  Columns         line;

  GetRows(csr, order, slice, s, plan);
  plan->values = ValuesOf(pack, csr, 0, 0);
  for (int l = 0; l < GALLOP_PACK_ROWS && plan->values == GALLOP_PACK_SINGLE; l++) plan->values = ValuesOf(pack, csr, s->first[l], s->len[l]);
  plan->width     = s->longest;
  plan->masks     = (PetscBool)(plan->entries < (int64_t)GALLOP_PACK_ROWS * s->longest);
  plan->diagonals = PETSC_FALSE;
  GallopPackNoLines(plan);
  for (PetscInt k = 0; k < s->longest; k++) {
    ColumnsOfRows(csr, s, k, &line);
    CountLine(plan, &line, &kind);
  }
  if (!s->step || plan->lines[GALLOP_PACK_STRIDED] == plan->width || !ColumnsIncrease(csr, s)) return;
  while (NextDiagonal(csr, s, next, &diagonal)) {
    for (int l = 0; l < GALLOP_PACK_ROWS; l++) next[l] += IsOn(csr, s, next, l, diagonal);
    by = GallopPackByDiagonals(plan, ++width);
    if (width > GALLOP_PACK_WIDEST || GallopPackSliceBytes(&by) >= GallopPackSliceBytes(plan)) return;
  }
  *plan = by;
}

static void PlanPiece(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, PetscInt piece, GallopPackPlan *plan)
{
  GallopPackClass kind = GALLOP_PACK_STRIDED;
  Columns         line;

  *plan        = GallopPackPieceOf(order, csr->i, piece);
  plan->values = ValuesOf(pack, csr, plan->first, plan->entries);
  for (PetscInt k = 0; k < plan->width; k++) {
    ColumnsOfPiece(csr, plan, k, &line);
    CountLine(plan, &line, &kind);
  }
}

static void AddCost(const GallopPackPlan *plan, GallopPackCost *cost)
{
  cost->bytes += GallopPackSliceBytes(plan);
  cost->entries += plan->entries;
  cost->saved += plan->saved * GALLOP_PACK_UNIT;
}

PetscErrorCode GallopPackMeasure_Host(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, GallopPackCost cost[GALLOP_PACK_COSTS])
{
  GallopPackOrder by = *order;
  GallopPackPlan  plan;
  Rows            s;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(cost, GALLOP_PACK_COSTS));
  for (int k = 0; k < GallopPackNumOrders(order); k++) {
    PetscInt num;

    by.stride = k + 1;
    num       = GallopPackSampleSize(&by, csr->m);
    for (PetscInt n = 0; n < num; n++) {
      const PetscInt slice = GallopPackSampled(&by, csr->m, n);

      if (slice >= GallopPackNumSlices(&by, csr->m)) continue;
      PlanSlice(pack, csr, &by, slice, &s, &plan);
      AddCost(&plan, &cost[k]);
    }
  }
  for (PetscInt n = 0; n < order->pieces; n++) {
    PlanPiece(pack, csr, order, n, &plan);
    AddCost(&plan, &cost[GALLOP_PACK_STRIDES]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopPackPickStride - The stride that takes the fewest bytes an entry; a larger one has to save a thirtieth, as it reads and writes vectors by strides */
PetscInt GallopPackPickStride(const GallopPackCost cost[GALLOP_PACK_STRIDES])
{
  int best = 0;

  for (int k = 1; k < GALLOP_PACK_STRIDES; k++)
    if ((PetscLogDouble)cost[k].bytes * (PetscLogDouble)cost[best].entries < 29. / 30 * (PetscLogDouble)cost[best].bytes * (PetscLogDouble)cost[k].entries) best = k;
  return best + 1;
}

/* ---------------------------------------------------------------- a dictionary */

static int CompareBits(const void *a, const void *b)
{
  const GallopPackBits x = GallopPackBitsOf(*(const PetscReal *)a), y = GallopPackBitsOf(*(const PetscReal *)b);

  return x < y ? -1 : x > y;
}

/* A table of distinct numbers: one is at the first free place from where its hash says */
typedef struct {
  PetscInt   num, places;
  PetscReal *number;
  PetscBool *used;
} Table;

static PetscBool AddDistinct(Table *t, PetscReal number)
{
  const GallopPackBits bits = GallopPackBitsOf(number);
  PetscInt             at   = (PetscInt)(GallopPackHash(bits) % (uint64_t)t->places);

  while (t->used[at] && GallopPackBitsOf(t->number[at]) != bits) at = at + 1 == t->places ? 0 : at + 1;
  if (t->used[at]) return PETSC_FALSE;
  t->used[at]   = PETSC_TRUE;
  t->number[at] = number;
  t->num++;
  return PETSC_TRUE;
}

static PetscErrorCode FindDistinct(const GallopCSR *csr, PetscReal **dict, PetscInt *ndict)
{
  const PetscReal *a = (const PetscReal *)csr->a;
  const PetscCount n = GALLOP_PACK_PARTS * csr->nz;
  Table            t = {.places = 2 * GALLOP_PACK_DICT};

  PetscFunctionBegin;
  *dict  = NULL;
  *ndict = 0;
  PetscCall(PetscCalloc2(t.places, &t.number, t.places, &t.used));
  if (n >= GALLOP_PACK_LOOKS_FROM) {
    PetscInt equal = 0;

    for (int k = 0; k < GALLOP_PACK_LOOKS; k++) equal += !AddDistinct(&t, a[GallopPackLook(k, n)]);
    if (equal < GALLOP_PACK_LOOKS_EQUAL) t.num = GALLOP_PACK_DICT + 1;
  }
  for (PetscCount k = 0; k < n && t.num <= GALLOP_PACK_DICT; k++) (void)AddDistinct(&t, a[k]);
  if (t.num && GallopPackDictPays(t.num, csr->nz)) {
    PetscCall(PetscMalloc1(t.num, dict));
    for (PetscInt at = 0; at < t.places; at++)
      if (t.used[at]) (*dict)[(*ndict)++] = t.number[at];
    qsort(*dict, (size_t)*ndict, sizeof(**dict), CompareBits);
  }
  PetscCall(PetscFree2(t.number, t.used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopPackFree_Host(GallopPack *pack)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(pack->dict));
  PetscCall(PetscFree4(pack->slice, pack->line, pack->stream, pack->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackBegin_Host(const GallopCSR *csr, GallopPack **pack)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_HOST;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  PetscCall(FindDistinct(csr, &(*pack)->dict, &(*pack)->ndict));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- storing */

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

static unsigned char *ValuesOfLine(const GallopPack *pack, const GallopPackSlice *slice, PetscInt k)
{
  return pack->value + ((size_t)slice->value + (size_t)k * GallopPackValueUnits((GallopPackValues)slice->values)) * GALLOP_PACK_UNIT;
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
static void StoreSlice(GallopPack *pack, const GallopCSR *csr, const Rows *s, const GallopPackPlan *plan, const GallopPackPlaces *at, GallopPackSlice *slice)
{
  PetscInt next[GALLOP_PACK_ROWS] = {0};
  int64_t  stream                 = at->stream;
  Columns  line;

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
    unsigned char  *to     = ValuesOfLine(pack, slice, k);
    GallopPackClass kind   = GALLOP_PACK_STRIDED;
    PetscBool       shared = PETSC_FALSE;
    PetscInt        base   = 0;

    if (plan->diagonals) (void)NextDiagonal(csr, s, next, &base);
    else {
      ColumnsOfRows(csr, s, k, &line);
      kind = ClassOfLine(&line, &base, &shared);
    }
    kind = StoreLine(pack, kind, shared, base, s->step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
      const int place = GallopPackPlace(l);

      if (plan->diagonals ? !IsOn(csr, s, next, l, base) : k >= s->len[l]) continue;
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
  Columns line;

  *slice = GallopPackPieceSlice(plan, at);
  pack->figures.slots[plan->values] += (PetscCount)GALLOP_PACK_ROWS * plan->width;
  pack->nlong += (PetscCount)GALLOP_PACK_ROWS * plan->width;
  pack->figures.strided += plan->lines[GALLOP_PACK_STRIDED];
  for (PetscInt k = 0; k < plan->width; k++) {
    const PetscCount from = (PetscCount)plan->first + (PetscCount)k * GALLOP_PACK_ROWS;
    PetscInt         base;
    PetscBool        shared;
    GallopPackClass  kind;

    ColumnsOfPiece(csr, plan, k, &line);
    kind = ClassOfLine(&line, &base, &shared);
    kind = StoreLine(pack, kind, shared, base, line.step, stream, &pack->line[at->line + k]);
    for (int l = 0; l < GallopPackInLine(plan->entries, k); l++) {
      StoreOffset(kind, pack->stream + stream * GALLOP_PACK_UNIT, GallopPackPlace(l), (uint32_t)(csr->j[from + l] - base));
      (void)StoreValue(pack, plan->values, ValuesOfLine(pack, slice, k), GallopPackPlace(l), csr->a[from + l]);
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
  Rows             s;
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

      if (piece < 0) PlanSlice(pack, csr, order, k, &s, &plan);
      else PlanPiece(pack, csr, order, piece, &plan);
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
          if (!visit(ctx, kind, ValuesOfLine(pack, slice, k), GallopPackPlace(l), a[(PetscCount)k * GALLOP_PACK_ROWS + l])) return PETSC_FALSE;
      continue;
    }
    for (int place = 0; place < GALLOP_PACK_ROWS; place++) {
      const PetscInt row  = GallopPackRowOf(slice->rows, pack->stream, place);
      PetscInt       from = row < 0 ? 0 : csr->i[row];

      for (PetscInt k = 0; k < slice->width && row >= 0; k++) {
        if (!(GallopPackMaskOf(slice, pack->stream, k / GALLOP_PACK_CHUNK, place) >> k % GALLOP_PACK_CHUNK & 1)) continue;
        if (!visit(ctx, kind, ValuesOfLine(pack, slice, k), place, csr->a[from++])) return PETSC_FALSE;
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
      if (k && CompareBits(&pack->dict[k - 1], &pack->dict[k]) > 0) pack->unsorted = PETSC_TRUE;
    }
  }
  PetscCall(PetscFree2(n.number, n.known));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackSortDict_Host(GallopPack *pack, PetscBool *done)
{
  PetscFunctionBegin;
  qsort(pack->dict, (size_t)pack->ndict, sizeof(*pack->dict), CompareBits);
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/* The columns of a line, in the order of the values */
static void GetColumns(GallopPackLine line, const unsigned char *stream, PetscInt column[])
{
  const unsigned char *at   = GallopPackOffsets(line, stream);
  const int            kind = GallopPackClassOf(line), stride = GallopPackStrideOf(line);

  if (kind == GALLOP_PACK_STRIDED)
    for (int l = 0; l < GALLOP_PACK_ROWS / 2; l++) {
      column[2 * l]     = line.base + stride * l;
      column[2 * l + 1] = line.base + stride * (l + GALLOP_PACK_ROWS / 2);
    }
  else if (kind == GALLOP_PACK_8)
    for (int p = 0; p < GALLOP_PACK_ROWS; p++) column[p] = GallopPackFrom(line, at[p]);
  else if (kind == GALLOP_PACK_16)
    for (int p = 0; p < GALLOP_PACK_ROWS; p++) column[p] = GallopPackFrom(line, ((const uint16_t *)at)[p]);
  else
    for (int p = 0; p < GALLOP_PACK_ROWS; p++) column[p] = GallopPackFrom(line, ((const uint32_t *)at)[p]);
}

/* The rows of a slice, -1 where there is none, in the order of the values */
static void GetRowsOf(const GallopPackSlice *slice, const unsigned char *stream, PetscInt row[])
{
  if (GallopPackClassOf(slice->rows) == GALLOP_PACK_STRIDED) GetColumns(slice->rows, stream, row);
  else
    for (int place = 0; place < GALLOP_PACK_ROWS; place++) row[place] = GallopPackRowOf(slice->rows, stream, place);
}

/* The values of a line: where they are stored as they are, else in room for them */
static const PetscScalar *GetValues(const GallopPack *pack, GallopPackValues kind, const unsigned char *line, PetscScalar room[])
{
  const int  n    = GALLOP_PACK_PARTS * GALLOP_PACK_ROWS;
  PetscReal *part = (PetscReal *)room;

  if (kind == GALLOP_PACK_VALUE) return (const PetscScalar *)line;
  if (kind == GALLOP_PACK_SINGLE)
    for (int k = 0; k < n; k++) part[k] = (PetscReal)((const float *)line)[k];
  else if (kind == GALLOP_PACK_DICT8)
    for (int k = 0; k < n; k++) part[k] = pack->dict[line[k]];
  else
    for (int k = 0; k < n; k++) part[k] = pack->dict[((const uint16_t *)line)[k]];
  return room;
}

/* x for a line in the order of the values; on, where it is not NULL, tells which of them are entries: elsewhere any x will do */
static void GetX(const GallopPack *pack, GallopPackLine line, const uint32_t on[], const PetscScalar *PETSC_RESTRICT x, PetscScalar *PETSC_RESTRICT has)
{
  if (GallopPackClassOf(line) == GALLOP_PACK_STRIDED) {
    const PetscInt     stride = GallopPackStrideOf(line), last = line.base + (GALLOP_PACK_ROWS - 1) * stride;
    const PetscScalar *from[2];

    if (!on || (PetscMin(line.base, last) >= 0 && PetscMax(line.base, last) < pack->n)) {
      from[0] = x + line.base;
      from[1] = from[0] + GALLOP_PACK_ROWS / 2 * stride;
      if (stride == 1)
        for (int l = 0; l < GALLOP_PACK_ROWS / 2; l++) {
          has[2 * l]     = from[0][l];
          has[2 * l + 1] = from[1][l];
        }
      else
        for (int l = 0; l < GALLOP_PACK_ROWS / 2; l++) {
          has[2 * l]     = from[0][stride * l];
          has[2 * l + 1] = from[1][stride * l];
        }
      return;
    }
  }
  {
    PetscInt column[GALLOP_PACK_ROWS];

    GetColumns(line, pack->stream, column);
    if (on)
      for (int place = 0; place < GALLOP_PACK_ROWS; place++) column[place] = on[place] ? column[place] : 0;
    for (int place = 0; place < GALLOP_PACK_ROWS; place++) has[place] = x[column[place]];
  }
}

/* Adds what stands in a line to the sums of the rows that have an entry there; elsewhere 0 is multiplied, and left out */
static void AddWhere(const uint32_t on[], const PetscScalar *PETSC_RESTRICT value, const PetscScalar *PETSC_RESTRICT has, PetscScalar *PETSC_RESTRICT sum)
{
  for (int place = 0; place < GALLOP_PACK_ROWS; place++) {
    const PetscScalar a = value[place], b = has[place], before = sum[place];
    const PetscScalar with = GallopMultiplyAdd(on[place] ? a : 0.0, on[place] ? b : 0.0, before);

    sum[place] = on[place] ? with : before;
  }
}

/* The sums of a slice's rows, line by line */
static void SumSlice(const GallopPack *pack, const GallopPackSlice *slice, const PetscScalar *x, PetscScalar sum[])
{
  PetscScalar room[GALLOP_PACK_ROWS], has[GALLOP_PACK_ROWS];
  uint32_t    mask[GALLOP_PACK_ROWS], on[GALLOP_PACK_ROWS], all = ~(uint32_t)0;

  for (int place = 0; place < GALLOP_PACK_ROWS; place++) sum[place] = 0.0;
  for (PetscInt k = 0; k < slice->width; k++) {
    const PetscScalar   *value = GetValues(pack, (GallopPackValues)slice->values, ValuesOfLine(pack, slice, k), room);
    const GallopPackLine line  = pack->line[slice->line + k];

    if (slice->mask != GALLOP_PACK_NONE && k % GALLOP_PACK_CHUNK == 0) {
      all = ~(uint32_t)0;
      for (int place = 0; place < GALLOP_PACK_ROWS; place++) mask[place] = GallopPackMaskOf(slice, pack->stream, k / GALLOP_PACK_CHUNK, place);
      for (int place = 0; place < GALLOP_PACK_ROWS; place++) all &= mask[place];
    }
    if (all >> k % GALLOP_PACK_CHUNK & 1) {
      GetX(pack, line, NULL, x, has);
      for (int place = 0; place < GALLOP_PACK_ROWS; place++) sum[place] = GallopMultiplyAdd(value[place], has[place], sum[place]);
    } else {
      for (int place = 0; place < GALLOP_PACK_ROWS; place++) on[place] = mask[place] >> k % GALLOP_PACK_CHUNK & 1;
      GetX(pack, line, on, x, has);
      AddWhere(on, value, has, sum);
    }
  }
}

/* sum and what a piece of a row adds to it, from its first entry to its last */
static PetscScalar SumPiece(const GallopPack *pack, const GallopPackSlice *slice, const PetscScalar *x, PetscScalar sum)
{
  PetscScalar room[GALLOP_PACK_ROWS];
  PetscInt    column[GALLOP_PACK_ROWS];

  for (PetscInt k = 0; k < slice->width; k++) {
    const PetscScalar *value = GetValues(pack, (GallopPackValues)slice->values, ValuesOfLine(pack, slice, k), room);

    GetColumns(pack->line[slice->line + k], pack->stream, column);
    for (int l = 0; l < (k + 1 < slice->width ? GALLOP_PACK_ROWS : slice->last); l++) sum = GallopMultiplyAdd(value[GallopPackPlace(l)], x[column[GallopPackPlace(l)]], sum);
  }
  return sum;
}

PetscErrorCode GallopPackApply_Host(const GallopPack *pack, const GallopProduct *p)
{
  PetscScalar row = 0.0; /* of a long row, so far */

  PetscFunctionBegin;
  for (PetscInt s = 0; s < pack->nslice; s++) {
    const GallopPackSlice *slice = &pack->slice[s];
    PetscScalar            sum[GALLOP_PACK_ROWS];
    PetscInt               rows[GALLOP_PACK_ROWS];

    if (slice->last) {
      row = SumPiece(pack, slice, p->x, row);
      if (s + 1 < pack->nslice && pack->slice[s + 1].at) continue; /* the row goes on */
      GallopStoreRow(p, slice->rows.base, row);
      row = 0.0;
      continue;
    }
    SumSlice(pack, slice, p->x, sum);
    GetRowsOf(slice, pack->stream, rows);
    for (int place = 0; place < GALLOP_PACK_ROWS; place++)
      if (rows[place] >= 0) GallopStoreRow(p, rows[place], sum[place]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- either place */

#if PetscDefined(HAVE_CUDA)
  #define WHERE(memtype, name, ...) (PetscMemTypeHost(memtype) ? name##_Host(__VA_ARGS__) : name##_Device(__VA_ARGS__))
#else
  #define WHERE(memtype, name, ...) name##_Host(__VA_ARGS__)
#endif

PetscErrorCode GallopPackBegin(const GallopCSR *csr, GallopPack **pack)
{
  return WHERE(csr->memtype, GallopPackBegin, csr, pack);
}

PetscErrorCode GallopPackMeasure(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, GallopPackCost cost[GALLOP_PACK_COSTS])
{
  return WHERE(csr->memtype, GallopPackMeasure, pack, csr, order, cost);
}

PetscErrorCode GallopPackFinish(GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, PetscCount maxbytes, PetscBool *done)
{
  return WHERE(csr->memtype, GallopPackFinish, pack, csr, order, maxbytes, done);
}

PetscErrorCode GallopPackDestroy(GallopPack **pack)
{
  PetscFunctionBegin;
  if (!*pack) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(WHERE((*pack)->memtype, GallopPackFree, *pack));
  PetscCall(PetscFree(*pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another dictionary, whose numbers the bytes that values take have room for: all else stays where it is */
static PetscErrorCode RenewDict(GallopPack *pack, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  const GallopPackValues kind = pack->figures.slots[GALLOP_PACK_DICT8] ? GALLOP_PACK_DICT8 : GALLOP_PACK_DICT16;
  GallopPack            *other;
  size_t                 bytes;

  PetscFunctionBegin;
  PetscCall(GallopPackBegin(csr, &other));
  bytes = pack->bytes + (size_t)other->ndict * sizeof(PetscReal) - (size_t)pack->ndict * sizeof(PetscReal);
  *done = (PetscBool)(other->ndict && GallopPackDictClass(other->ndict) <= kind && (!maxbytes || bytes <= (size_t)maxbytes));
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
  PetscCall(GallopPackDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackRefresh(GallopPack *pack, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (pack->ndict) PetscCall(WHERE(csr->memtype, GallopPackRenumber, pack, csr, fits));
  if (!*fits && pack->unsorted) {
    PetscBool sorted;

    PetscCall(WHERE(csr->memtype, GallopPackSortDict, pack, &sorted));
    pack->unsorted = PetscNot(sorted);
  }
  if (!*fits && !pack->unsorted) PetscCall(WHERE(csr->memtype, GallopPackRefresh, pack, csr, fits));
  if (!*fits && pack->ndict) {
    PetscCall(RenewDict(pack, csr, maxbytes, fits));
    if (*fits) PetscCall(WHERE(csr->memtype, GallopPackRefresh, pack, csr, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopPackCopyToHost - A copy on the host of a pack at either place, which GallopPackDestroy() frees */
PetscErrorCode GallopPackCopyToHost(const GallopPack *pack, GallopPack **copy)
{
  GallopPack *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *pack;
  h->memtype = PETSC_MEMTYPE_HOST;
  PetscCall(PetscMalloc1(h->ndict, &h->dict));
  PetscCall(PetscMalloc4(h->nslice, &h->slice, h->nline, &h->line, h->nstream * GALLOP_PACK_UNIT, &h->stream, h->nvalue * GALLOP_PACK_UNIT, &h->value));
  PetscCall(GallopCopyToHost(h->dict, pack->memtype, pack->dict, (size_t)h->ndict * sizeof(*h->dict)));
  PetscCall(GallopCopyToHost(h->slice, pack->memtype, pack->slice, (size_t)h->nslice * sizeof(*h->slice)));
  PetscCall(GallopCopyToHost(h->line, pack->memtype, pack->line, (size_t)h->nline * sizeof(*h->line)));
  PetscCall(GallopCopyToHost(h->stream, pack->memtype, pack->stream, (size_t)h->nstream * GALLOP_PACK_UNIT));
  PetscCall(GallopCopyToHost(h->value, pack->memtype, pack->value, (size_t)h->nvalue * GALLOP_PACK_UNIT));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}
