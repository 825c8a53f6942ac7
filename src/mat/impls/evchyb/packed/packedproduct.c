/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the host: the product */

#include "packedhost.h"

_Static_assert(sizeof(EVCHYBPackBits) == sizeof(PetscReal), "all bits of a number are looked at");

/* The columns of a line, in the order of the values */
static void GetColumns(EVCHYBPackLine line, const unsigned char *stream, PetscInt column[])
{
  const unsigned char *at   = EVCHYBPackOffsets(line, stream);
  const int            kind = EVCHYBPackClassOf(line), stride = EVCHYBPackStrideOf(line);

  if (kind == EVCHYB_PACK_STRIDED)
    for (int l = 0; l < EVCHYB_PACK_ROWS / 2; l++) {
      column[2 * l]     = line.base + stride * l;
      column[2 * l + 1] = line.base + stride * (l + EVCHYB_PACK_ROWS / 2);
    }
  else if (kind == EVCHYB_PACK_8)
    for (int p = 0; p < EVCHYB_PACK_ROWS; p++) column[p] = EVCHYBPackFrom(line, at[p]);
  else if (kind == EVCHYB_PACK_16)
    for (int p = 0; p < EVCHYB_PACK_ROWS; p++) column[p] = EVCHYBPackFrom(line, ((const uint16_t *)at)[p]);
  else
    for (int p = 0; p < EVCHYB_PACK_ROWS; p++) column[p] = EVCHYBPackFrom(line, ((const uint32_t *)at)[p]);
}

/* The rows of a slice, -1 where there is none, in the order of the values */
static void GetRowsOf(const EVCHYBPackSlice *slice, const unsigned char *stream, PetscInt row[])
{
  if (EVCHYBPackClassOf(slice->rows) == EVCHYB_PACK_STRIDED) GetColumns(slice->rows, stream, row);
  else
    for (int place = 0; place < EVCHYB_PACK_ROWS; place++) row[place] = EVCHYBPackRowOf(slice->rows, stream, place);
}

/* The values of a line: where they are stored as they are, else in room for them */
static const PetscScalar *GetValues(const EVCHYBPack *pack, EVCHYBPackValues kind, const unsigned char *line, PetscScalar room[])
{
  const int  n    = EVCHYB_PACK_PARTS * EVCHYB_PACK_ROWS;
  PetscReal *part = (PetscReal *)room;

  if (kind == EVCHYB_PACK_VALUE) return (const PetscScalar *)line;
  if (kind == EVCHYB_PACK_SINGLE)
    for (int k = 0; k < n; k++) part[k] = (PetscReal)((const float *)line)[k];
  else if (kind == EVCHYB_PACK_REAL)
    for (int k = 0; k < EVCHYB_PACK_ROWS; k++) room[k] = (PetscScalar)((const PetscReal *)line)[k];
  else if (kind == EVCHYB_PACK_DICT8)
    for (int k = 0; k < n; k++) part[k] = pack->dict[line[k]];
  else
    for (int k = 0; k < n; k++) part[k] = pack->dict[((const uint16_t *)line)[k]];
  return room;
}

/* x for a line in the order of the values; on, where it is not NULL, tells which of them are entries: elsewhere any x will do */
static void GetX(const EVCHYBPack *pack, EVCHYBPackLine line, const uint32_t on[], const PetscScalar *PETSC_RESTRICT x, PetscScalar *PETSC_RESTRICT has)
{
  if (EVCHYBPackClassOf(line) == EVCHYB_PACK_STRIDED) {
    const PetscInt     stride = EVCHYBPackStrideOf(line), last = line.base + (EVCHYB_PACK_ROWS - 1) * stride;
    const PetscScalar *from[2];

    if (!on || (PetscMin(line.base, last) >= 0 && PetscMax(line.base, last) < pack->n)) {
      from[0] = x + line.base;
      from[1] = from[0] + EVCHYB_PACK_ROWS / 2 * stride;
      if (stride == 1)
        for (int l = 0; l < EVCHYB_PACK_ROWS / 2; l++) {
          has[2 * l]     = from[0][l];
          has[2 * l + 1] = from[1][l];
        }
      else
        for (int l = 0; l < EVCHYB_PACK_ROWS / 2; l++) {
          has[2 * l]     = from[0][stride * l];
          has[2 * l + 1] = from[1][stride * l];
        }
      return;
    }
  }
  {
    PetscInt column[EVCHYB_PACK_ROWS];

    GetColumns(line, pack->stream, column);
    if (on)
      for (int place = 0; place < EVCHYB_PACK_ROWS; place++) column[place] = on[place] ? column[place] : 0;
    for (int place = 0; place < EVCHYB_PACK_ROWS; place++) has[place] = x[column[place]];
  }
}

/* Adds what stands in a line to the sums of the rows that have an entry there; elsewhere 0 is multiplied, and left out */
static void AddWhere(const uint32_t on[], const PetscScalar *PETSC_RESTRICT value, const PetscScalar *PETSC_RESTRICT has, PetscScalar *PETSC_RESTRICT sum)
{
  for (int place = 0; place < EVCHYB_PACK_ROWS; place++) {
    const PetscScalar a = value[place], b = has[place], before = sum[place];
    const PetscScalar with = GallopMultiplyAdd(on[place] ? a : 0.0, on[place] ? b : 0.0, before);

    sum[place] = on[place] ? with : before;
  }
}

/* The sums of a slice's rows, line by line */
static void SumSlice(const EVCHYBPack *pack, const EVCHYBPackSlice *slice, const PetscScalar *x, PetscScalar sum[])
{
  PetscScalar room[EVCHYB_PACK_ROWS], has[EVCHYB_PACK_ROWS];
  uint32_t    mask[EVCHYB_PACK_ROWS], on[EVCHYB_PACK_ROWS], all = ~(uint32_t)0;

  for (int place = 0; place < EVCHYB_PACK_ROWS; place++) sum[place] = 0.0;
  for (PetscInt k = 0; k < slice->width; k++) {
    const PetscScalar   *value = GetValues(pack, (EVCHYBPackValues)slice->values, EVCHYBPackValuesOfLine(pack, slice, k), room);
    const EVCHYBPackLine line  = pack->line[slice->line + k];

    if (slice->mask != EVCHYB_PACK_NONE && k % EVCHYB_PACK_CHUNK == 0) {
      all = ~(uint32_t)0;
      for (int place = 0; place < EVCHYB_PACK_ROWS; place++) mask[place] = EVCHYBPackMaskOf(slice, pack->stream, k / EVCHYB_PACK_CHUNK, place);
      for (int place = 0; place < EVCHYB_PACK_ROWS; place++) all &= mask[place];
    }
    if (all >> k % EVCHYB_PACK_CHUNK & 1) {
      GetX(pack, line, NULL, x, has);
      for (int place = 0; place < EVCHYB_PACK_ROWS; place++) sum[place] = GallopMultiplyAdd(value[place], has[place], sum[place]);
    } else {
      for (int place = 0; place < EVCHYB_PACK_ROWS; place++) on[place] = mask[place] >> k % EVCHYB_PACK_CHUNK & 1;
      GetX(pack, line, on, x, has);
      AddWhere(on, value, has, sum);
    }
  }
}

/* sum and what a piece of a row adds to it, from its first entry to its last */
static PetscScalar SumPiece(const EVCHYBPack *pack, const EVCHYBPackSlice *slice, const PetscScalar *x, PetscScalar sum)
{
  PetscScalar room[EVCHYB_PACK_ROWS];
  PetscInt    column[EVCHYB_PACK_ROWS];

  for (PetscInt k = 0; k < slice->width; k++) {
    const PetscScalar *value = GetValues(pack, (EVCHYBPackValues)slice->values, EVCHYBPackValuesOfLine(pack, slice, k), room);

    GetColumns(pack->line[slice->line + k], pack->stream, column);
    for (int l = 0; l < (k + 1 < slice->width ? EVCHYB_PACK_ROWS : slice->last); l++) sum = GallopMultiplyAdd(value[EVCHYBPackPlace(l)], x[column[EVCHYBPackPlace(l)]], sum);
  }
  return sum;
}

PetscErrorCode EVCHYBPackApply_Host(const EVCHYBPack *pack, const GallopProduct *p)
{
  PetscScalar row = 0.0; /* of a long row, so far */

  PetscFunctionBegin;
  for (PetscInt s = 0; s < pack->nslice; s++) {
    const EVCHYBPackSlice *slice = &pack->slice[s];
    PetscScalar            sum[EVCHYB_PACK_ROWS];
    PetscInt               rows[EVCHYB_PACK_ROWS];

    if (slice->last) {
      row = SumPiece(pack, slice, p->x, row);
      if (s + 1 < pack->nslice && pack->slice[s + 1].at) continue; /* the row goes on */
      GallopStoreRow(p, slice->rows.base, row);
      row = 0.0;
      continue;
    }
    SumSlice(pack, slice, p->x, sum);
    GetRowsOf(slice, pack->stream, rows);
    for (int place = 0; place < EVCHYB_PACK_ROWS; place++)
      if (rows[place] >= 0) GallopStoreRow(p, rows[place], sum[place]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
