/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the host: the product and the transposed product */

#include "hbp.h"

/* A line of a group's entries, one for each lane that still has any: entry ptr + t is that of lane live[t] */
typedef struct {
  PetscInt line, ptr, lives, live[HBP_GROUP];
  int      lanes; /* log2 of a segment's lanes */
} Lines;

static void FirstLine(const HBP *h, PetscInt g, Lines *l)
{
  l->line  = 0;
  l->ptr   = h->group[g].begin_ptr;
  l->lanes = HBPInfoLanes(h->group[g].info);
  l->lives = (h->group[g + 1].seg - h->group[g].seg) << l->lanes;
  for (PetscInt t = 0; t < l->lives; t++) l->live[t] = t;
}

static void NextLine(const HBP *h, PetscInt g, Lines *l)
{
  PetscInt stay = 0;

  l->line++;
  l->ptr += l->lives;
  for (PetscInt t = 0; t < l->lives; t++) {
    const PetscInt lane = l->live[t], len = HBPLength(h->output_hash, h->nnz_perrow, h->group[g].seg + (lane >> l->lanes));

    if (HBPLaneLength(len, l->lanes, HBPLaneInSegment((int)lane, l->lanes)) > l->line) l->live[stay++] = lane;
  }
  l->lives = stay;
}

/* The place in x of a column by its number in the block: from the column of blocks on, or with a map from the vector's begin */
static inline PetscInt PlaceOf(const PetscInt map[], PetscInt col)
{
  return map ? map[col / HBP_CHUNK] + col % HBP_CHUNK : col;
}

static const PetscInt *MapOf(const HBP *h, PetscInt g)
{
  const PetscInt map = HBPMapOf(h->group[g].out);

  return map < 0 ? NULL : h->map + map;
}

/* The sums of a group's segments; x begins with its column of blocks */
static void MultiplyGroup(const HBP *h, PetscInt g, const PetscScalar x[], PetscScalar sums[])
{
  const PetscInt *map = MapOf(h, g), all = (h->group[g + 1].seg - h->group[g].seg) << HBPInfoLanes(h->group[g].info);
  Lines           l;

  for (PetscInt t = 0; t < all; t++) sums[t] = 0.0;
  for (FirstLine(h, g, &l); l.lives; NextLine(h, g, &l))
    for (PetscInt t = 0; t < l.lives; t++) sums[l.live[t]] += h->data[l.ptr + t] * x[PlaceOf(map, h->col[l.ptr + t])];
  for (PetscInt t = 0; l.lanes && t < all; t++) { /* a segment's sum is that of its lanes */
    if (HBPLaneInSegment((int)t, l.lanes)) sums[t >> l.lanes] += sums[t];
    else sums[t >> l.lanes] = sums[t];
  }
}

/* The SpMV part */
static void MultiplyBlocks(HBP *h, const GallopProduct *p)
{
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) {
      const HBPGroup *group = &h->group[g];
      PetscScalar     sums[HBP_GROUP];
      PetscInt        out = group->out;

      MultiplyGroup(h, g, p->x + (PetscCount)cb * h->M, sums);
      for (PetscInt l = 0; l < group[1].seg - group->seg; l++) {
        const int row = h->output_hash[group->seg + l];

        if (row & HBP_FLAG) GallopStoreRow(p, HBPInfoRowBlock(group->info) * h->N + HBPOutputRow(row), sums[l]);
        else h->partial[out++] = sums[l];
      }
    }
  }
}

/* The combine part of a block of rows */
static void Combine(const HBP *h, PetscInt rb, const GallopProduct *p)
{
  const unsigned int *direct = h->direct + (size_t)rb * HBPWords(h->N);
  PetscScalar         sum[HBP_MAX_ROWS], ordered[HBP_COMBINED];

  for (PetscInt r = 0; r < h->N; r++) sum[r] = 0.0;
  for (PetscInt piece = h->combinePtr[rb]; piece < h->combinePtr[rb + 1]; piece++) {
    const PetscInt        begin = h->partialPtr[rb] + (piece - h->combinePtr[rb]) * HBP_COMBINED, end = PetscMin(begin + HBP_COMBINED, h->partialPtr[rb + 1]);
    const unsigned short *ends = h->combineEnd + (size_t)piece * h->N;

    for (PetscInt k = begin; k < end; k++) ordered[h->combinePos[k]] = h->partial[k];
    for (PetscInt r = 0, k = 0; r < h->N; r++)
      for (; k < ends[r]; k++) sum[r] += ordered[k];
  }
  for (PetscInt r = 0; r < PetscMin(h->N, h->m - rb * h->N); r++)
    if (!(direct[r / 32] >> r % 32 & 1)) GallopStoreRow(p, rb * h->N + r, sum[r]);
}

/* HBPApply_Host - The product */
PetscErrorCode HBPApply_Host(void *data, const GallopProduct *p)
{
  HBP                  *h = (HBP *)data;
  const GallopLongRows *l = &h->longRows;

  PetscFunctionBegin;
  if (h->columns) HBPColumnsMultiply_Host(h->columns, p);
  if (h->hot) HBPHotMultiply_Host(h->hot, p);
  if (!HBPHasBlocks(h)) PetscFunctionReturn(PETSC_SUCCESS);
  MultiplyBlocks(h, p);
  for (PetscInt rb = 0; rb < h->rowBlocks && !h->alone; rb++) Combine(h, rb, p);
  for (PetscInt t = 0; t < l->num; t++) {
    PetscScalar sum = 0.0;

    for (PetscInt k = l->ptr[t]; k < l->ptr[t + 1]; k++) sum += h->data[h->blknz + k] * p->x[h->longCol[k]];
    GallopStoreRow(p, l->row[t], sum);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the transposed product of a group to z, which begins with its column of blocks */
static void AddGroup(const HBP *h, PetscInt g, const GallopProduct *p, PetscBool conjugate, PetscScalar z[])
{
  const PetscInt *map = MapOf(h, g), first = HBPInfoRowBlock(h->group[g].info) * h->N;
  Lines           l;

  for (FirstLine(h, g, &l); l.lives; NextLine(h, g, &l))
    for (PetscInt t = 0; t < l.lives; t++) {
      const PetscScalar value = h->data[l.ptr + t];

      z[PlaceOf(map, h->col[l.ptr + t])] += *p->alpha * ((conjugate ? PetscConj(value) : value) * p->x[first + HBPOutputRow(h->output_hash[h->group[g].seg + (l.live[t] >> l.lanes)])]);
    }
}

/* HBPApplyTranspose_Host - The transposed product */
PetscErrorCode HBPApplyTranspose_Host(void *data, const GallopProduct *p, PetscBool conjugate)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < h->n; c++) p->z[c] = *p->beta == (PetscScalar)0.0 ? 0.0 : *p->beta * p->y[c];
  if (h->columns) HBPColumnsAddTranspose_Host(h->columns, p, conjugate);
  if (h->hot) HBPHotAddTranspose_Host(h->hot, p, conjugate);
  for (PetscInt cb = 0; cb < h->colBlocks; cb++)
    for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) AddGroup(h, g, p, conjugate, p->z + (PetscCount)cb * h->M);
  for (PetscInt t = 0; t < h->longRows.num; t++)
    for (PetscInt k = h->longRows.ptr[t]; k < h->longRows.ptr[t + 1]; k++) {
      const PetscScalar value = h->data[h->blknz + k];

      p->z[h->longCol[k]] += *p->alpha * ((conjugate ? PetscConj(value) : value) * p->x[h->longRows.row[t]]);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}
