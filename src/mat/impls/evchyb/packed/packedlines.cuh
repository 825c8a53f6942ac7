/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The lines of a slice or of a piece: which columns they have, and how these are stored. Planned and stored by the same functions. */

#include "packedwarp.cuh"

/* A lane's rows of a slice, and what the warp knows of all */
struct Rows {
  int      row[2];
  PetscInt first[2], end[2];
  int      lo, longest, step;
};

static __device__ Rows GetRows(PetscInt m, const PetscInt *__restrict__ i, const EVCHYBPackOrder &order, PetscInt slice, EVCHYBPackPlan *plan)
{
  Rows s;
  int  lo = None, hi = -1, longest = 0, entries = 0;

#pragma unroll
  for (int h = 0; h < 2; h++) {
    PetscInt row = EVCHYBPackRow(&order, m, slice, RowInSlice(h));

    if (row >= 0 && i[row + 1] - i[row] > order.longest) row = -1;
    s.row[h]   = (int)row;
    s.first[h] = row < 0 ? 0 : i[row];
    s.end[h]   = row < 0 ? 0 : i[row + 1];
    if (row >= 0) lo = min(lo, (int)row);
    hi      = max(hi, (int)row);
    longest = max(longest, (int)(s.end[h] - s.first[h]));
    entries += (int)(s.end[h] - s.first[h]);
  }
  s.lo      = WarpMin(lo);
  hi        = WarpMax(hi);
  s.longest = WarpMax(longest);
  if (hi < 0) s.lo = hi = 0;
  const int  row0 = __shfl_sync(0xffffffffu, s.row[0], 0), row1 = __shfl_sync(0xffffffffu, s.row[0], 1);
  const bool even = s.row[0] >= 0 && s.row[1] >= 0 && s.row[0] - row0 == RowInSlice(0) * (row1 - row0) && s.row[1] - row0 == RowInSlice(1) * (row1 - row0);

  plan->entries = GallopGroupSum(entries, WarpSize);
  plan->entries = __shfl_sync(0xffffffffu, (int)plan->entries, 0);
  plan->rows    = __all_sync(0xffffffffu, even) ? EVCHYB_PACK_STRIDED : EVCHYBPackClassFor((uint32_t)(hi - s.lo), PETSC_TRUE);
  s.step        = (int)EVCHYBPackStep(&order, plan, row0, row1);
  return s;
}

/* The class of entries, two a lane at most, whose columns grow by step from place to place: the lane has told its own columns, -1 for none */
static __device__ __forceinline__ EVCHYBPackClass ClassOfEntries(int step, const int column[2], PetscInt *base)
{
  int less[2] = {None, -Bias};

#pragma unroll
  for (int h = 0; h < 2; h++) {
    if (column[h] < 0) continue;
    less[0] = min(less[0], column[h] - step * RowInSlice(h));
    less[1] = max(less[1], column[h] - step * RowInSlice(h));
  }
  less[0] = WarpMin(less[0]);
  less[1] = WarpMax(less[1]);
  if (less[0] == less[1]) return EVCHYBPackClassOfEntries(0, 0, less[0], less[1], base);
  const int lo = WarpMin(min(column[0] < 0 ? None : column[0], column[1] < 0 ? None : column[1])), hi = WarpMax(max(column[0], column[1]));

  return EVCHYBPackClassOfEntries(lo, hi, less[0], less[1], base);
}

/* The line before another, and the lane's columns in it, -1 for none */
struct LineBefore {
  EVCHYBPackLine line      = {0, 0};
  int            column[2] = {-1, -1};
};

/* Whether the columns that the lanes have told are all as far from those of the line before, and how far */
static __device__ __forceinline__ bool AreShared(const int column[2], const LineBefore &before, PetscInt *apart)
{
  const int own = column[0] >= 0 ? column[0] - before.column[0] : column[1] - before.column[1], all = __shfl_sync(0xffffffffu, own, __ffs(__ballot_sync(0xffffffffu, column[0] >= 0 || column[1] >= 0)) - 1);
  bool      same = true;

#pragma unroll
  for (int h = 0; h < 2; h++) same = same && (column[h] < 0 || (before.column[h] >= 0 && column[h] - before.column[h] == all));
  same = __all_sync(0xffffffffu, same);
  if (same) *apart = all;
  return same;
}

/* Counts a line, which is the one before to the next */
static __device__ __forceinline__ void CountLine(EVCHYBPackPlan *plan, int step, const int column[2], LineBefore *before)
{
  PetscInt              base;
  const EVCHYBPackClass own    = ClassOfEntries(step, column, &base);
  const bool            shared = own != EVCHYB_PACK_STRIDED && AreShared(column, *before, &base);

  *before = {
    shared ? before->line : EVCHYBPackStored(own, 0, 0), {column[0], column[1]}
  };
  EVCHYBPackCountLine(plan, (EVCHYBPackClass)EVCHYBPackClassOf(before->line), (PetscBool)shared);
}

/* The lane's columns in line k of a piece, and what they may grow by */
static __device__ __forceinline__ int ColumnsOfLine(Lines<PetscInt> &columns, int k, int column[2])
{
  columns.Move(k);
#pragma unroll
  for (int h = 0; h < 2; h++) column[h] = columns.Has(k, h) ? (int)columns.Take(k, h) : -1;
  const int column0 = __shfl_sync(0xffffffffu, column[0], 0), column1 = __shfl_sync(0xffffffffu, column[0], 1);

  return (int)EVCHYBPackPieceStep(column0, column1);
}

/* The next diagonal, from where the rows have come to: next[h] of the lane's; None where there is none. on[h]: the row has an entry there. */
static __device__ __forceinline__ int NextDiagonal(const Rows &s, const Columns &columns, const PetscInt next[2], bool on[2])
{
  int own[2];

#pragma unroll
  for (int h = 0; h < 2; h++) own[h] = next[h] < s.end[h] ? (int)columns.At(h, next[h]) - s.step * RowInSlice(h) : None;
  const int diagonal = WarpMin(min(own[0], own[1]));

#pragma unroll
  for (int h = 0; h < 2; h++) on[h] = own[h] == diagonal && diagonal != None;
  return diagonal;
}
