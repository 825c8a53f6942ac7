/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the host: what slices will take, the reference for the GPU's */

#include "packedhost.h"

static void GetRows(const GallopCSR *csr, const EVCHYBPackOrder *order, PetscInt slice, EVCHYBPackRows *s, EVCHYBPackPlan *plan)
{
  PetscInt  hi  = -1;
  PetscBool all = PETSC_TRUE, even = PETSC_TRUE;

  s->lo         = PETSC_INT_MAX;
  s->longest    = 0;
  plan->entries = 0;
  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    PetscInt row = EVCHYBPackRow(order, csr->m, slice, l);

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
  plan->rows = all && even ? EVCHYB_PACK_STRIDED : EVCHYBPackClassFor((uint32_t)(hi - s->lo), PETSC_TRUE);
  s->step    = EVCHYBPackStep(order, plan, s->row[0], s->row[1]);
}

/* The k-th entries of all rows */
void EVCHYBPackColumnsOfRows(const GallopCSR *csr, const EVCHYBPackRows *s, PetscInt k, EVCHYBPackColumns *c)
{
  c->step    = s->step;
  c->follows = (PetscBool)(k > 0);
  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    c->column[l] = k < s->len[l] ? csr->j[s->first[l] + k] : -1;
    c->before[l] = k > 0 && k < s->len[l] ? csr->j[s->first[l] + k - 1] : -1;
  }
}

/* Line k of a piece of a row */
void EVCHYBPackColumnsOfPiece(const GallopCSR *csr, const EVCHYBPackPlan *plan, PetscInt k, EVCHYBPackColumns *c)
{
  const PetscInt *j = csr->j + plan->first + (PetscCount)k * EVCHYB_PACK_ROWS;
  const int       n = EVCHYBPackInLine(plan->entries, k);

  c->step    = EVCHYBPackPieceStep(j[0], n > 1 ? j[1] : j[0]);
  c->follows = (PetscBool)(k > 0);
  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    c->column[l] = l < n ? j[l] : -1;
    c->before[l] = k > 0 && l < n ? j[l - EVCHYB_PACK_ROWS] : -1;
  }
}

/* Whether all entries of a line are as far from those of the line before, and how far */
static PetscBool AreShared(const EVCHYBPackColumns *c, PetscInt *apart)
{
  PetscBool some = PETSC_FALSE;

  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    if (c->column[l] < 0) continue;
    if (some && c->column[l] - c->before[l] != *apart) return PETSC_FALSE;
    *apart = c->column[l] - c->before[l];
    some   = PETSC_TRUE;
  }
  return some;
}

/* How the columns of a line are stored: by their step from base, as offsets from it, or, shared, by the offsets of the line before, from which it is base away */
EVCHYBPackClass EVCHYBPackClassOfLine(const EVCHYBPackColumns *c, PetscInt *base, PetscBool *shared)
{
  PetscInt        lo = PETSC_INT_MAX, hi = PETSC_INT_MIN, lessl = PETSC_INT_MAX, lessh = PETSC_INT_MIN, apart = 0;
  EVCHYBPackClass kind;

  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    if (c->column[l] < 0) continue;
    const PetscInt column = c->column[l], less = column - c->step * l;

    lo    = PetscMin(lo, column);
    hi    = PetscMax(hi, column);
    lessl = PetscMin(lessl, less);
    lessh = PetscMax(lessh, less);
  }
  kind    = EVCHYBPackClassOfEntries(lo, hi, lessl, lessh, base);
  *shared = (PetscBool)(kind != EVCHYB_PACK_STRIDED && c->follows && AreShared(c, &apart));
  if (*shared) *base = apart;
  return kind;
}

/* Counts a line; *kind is the class of the one before, and is that of this one then */
static void CountLine(EVCHYBPackPlan *plan, const EVCHYBPackColumns *c, EVCHYBPackClass *kind)
{
  PetscInt              base;
  PetscBool             shared;
  const EVCHYBPackClass own = EVCHYBPackClassOfLine(c, &base, &shared);

  if (!shared) *kind = own;
  EVCHYBPackCountLine(plan, *kind, shared);
}

/* The next diagonal of a slice, from where its rows have come to: next[l] of row l. False where there is none. */
PetscBool EVCHYBPackNextDiagonal(const GallopCSR *csr, const EVCHYBPackRows *s, const PetscInt next[], PetscInt *diagonal)
{
  PetscBool some = PETSC_FALSE;

  for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
    if (next[l] >= s->len[l]) continue;
    const PetscInt own = csr->j[s->first[l] + next[l]] - s->step * l;

    *diagonal = some ? PetscMin(*diagonal, own) : own;
    some      = PETSC_TRUE;
  }
  return some;
}

PetscBool EVCHYBPackIsOn(const GallopCSR *csr, const EVCHYBPackRows *s, const PetscInt next[], int l, PetscInt diagonal)
{
  return (PetscBool)(next[l] < s->len[l] && csr->j[s->first[l] + next[l]] - s->step * l == diagonal);
}

static PetscBool ColumnsIncrease(const GallopCSR *csr, const EVCHYBPackRows *s)
{
  for (int l = 0; l < EVCHYB_PACK_ROWS; l++)
    for (PetscInt k = 1; k < s->len[l]; k++)
      if (csr->j[s->first[l] + k] <= csr->j[s->first[l] + k - 1]) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* Of shorter, in what ways n values from one on can be stored */
static unsigned int Shorter(unsigned int shorter, const GallopCSR *csr, PetscCount first, PetscCount n)
{
  for (PetscCount k = 0; k < n && shorter; k++) shorter &= EVCHYBPackShorter(csr->a[first + k]);
  return shorter;
}

static EVCHYBPackValues ValuesOf(const EVCHYBPack *pack, unsigned int shorter)
{
  return pack->ndict ? EVCHYBPackDictClass(pack->ndict) : EVCHYBPackShortest(shorter);
}

void EVCHYBPackPlanSlice(const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, PetscInt slice, EVCHYBPackRows *s, EVCHYBPackPlan *plan)
{
  PetscInt          next[EVCHYB_PACK_ROWS] = {0}, width = 0, diagonal;
  EVCHYBPackClass   kind    = EVCHYB_PACK_STRIDED;
  unsigned int      shorter = pack->ndict ? 0 : EVCHYB_PACK_SHORTER;
  EVCHYBPackPlan    by;
  EVCHYBPackColumns line;

  GetRows(csr, order, slice, s, plan);
  for (int l = 0; l < EVCHYB_PACK_ROWS && shorter; l++) shorter = Shorter(shorter, csr, s->first[l], s->len[l]);
  plan->values    = ValuesOf(pack, shorter);
  plan->width     = s->longest;
  plan->masks     = (PetscBool)(plan->entries < (int64_t)EVCHYB_PACK_ROWS * s->longest);
  plan->diagonals = PETSC_FALSE;
  EVCHYBPackNoLines(plan);
  for (PetscInt k = 0; k < s->longest; k++) {
    EVCHYBPackColumnsOfRows(csr, s, k, &line);
    CountLine(plan, &line, &kind);
  }
  if (!s->step || plan->lines[EVCHYB_PACK_STRIDED] == plan->width || !ColumnsIncrease(csr, s)) return;
  while (EVCHYBPackNextDiagonal(csr, s, next, &diagonal)) {
    for (int l = 0; l < EVCHYB_PACK_ROWS; l++) next[l] += EVCHYBPackIsOn(csr, s, next, l, diagonal);
    by = EVCHYBPackByDiagonals(plan, ++width);
    if (width > EVCHYB_PACK_WIDEST || EVCHYBPackSliceBytes(&by) >= EVCHYBPackSliceBytes(plan)) return;
  }
  *plan = by;
}

/* plan: what EVCHYBPackPieceOf() knows of the piece */
void EVCHYBPackPlanPiece(const EVCHYBPack *pack, const GallopCSR *csr, EVCHYBPackPlan *plan)
{
  EVCHYBPackClass   kind = EVCHYB_PACK_STRIDED;
  EVCHYBPackColumns line;

  plan->values = ValuesOf(pack, Shorter(pack->ndict ? 0 : EVCHYB_PACK_SHORTER, csr, plan->first, plan->entries));
  for (PetscInt k = 0; k < plan->width; k++) {
    EVCHYBPackColumnsOfPiece(csr, plan, k, &line);
    CountLine(plan, &line, &kind);
  }
}

static void AddCost(const EVCHYBPackPlan *plan, int64_t weight, EVCHYBPackCost *cost)
{
  cost->bytes += weight * EVCHYBPackSliceBytes(plan);
  cost->entries += weight * plan->entries;
  cost->saved += weight * plan->saved * EVCHYB_PACK_UNIT;
  cost->least += weight * EVCHYBPackLeastBytes(plan);
  cost->columns += weight * EVCHYBPackColumnBytes(plan);
}

PetscErrorCode EVCHYBPackMeasure_Host(const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, EVCHYBPackCost cost[EVCHYB_PACK_COSTS])
{
  EVCHYBPackOrder by = *order;
  EVCHYBPackPlan  plan;
  EVCHYBPackRows  s;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(cost, EVCHYB_PACK_COSTS));
  for (int k = 0; k < EVCHYBPackNumOrders(order); k++) {
    PetscInt num;

    by.stride = k + 1;
    num       = EVCHYBPackSampleSize(&by, csr->m);
    for (PetscInt n = 0; n < num; n++) {
      const PetscInt slice = EVCHYBPackSampled(&by, csr->m, n);

      if (slice >= EVCHYBPackNumSlices(&by, csr->m)) continue;
      EVCHYBPackPlanSlice(pack, csr, &by, slice, &s, &plan);
      AddCost(&plan, 1, &cost[k]);
    }
  }
  for (PetscInt n = 0; n < order->looks; n++) {
    if (!EVCHYBPackPieceOf(order, csr->m, csr->i, n, &plan)) continue;
    EVCHYBPackPlanPiece(pack, csr, &plan);
    AddCost(&plan, EVCHYBPackLookWeight(&plan), &cost[EVCHYB_PACK_STRIDES]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
