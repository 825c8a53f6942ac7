/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU: the memory that its build needs, and the sorts and sums of CUB's in it */

#include <cub/cub.cuh>
#include "../common/bits.h"
#include "fastloaddevice.h"

/* Runs twice: with a null base it measures, then it hands out */
static size_t CarveWorkspace(FastLoadWorkspace *w, const FastLoadOptions *o, const GallopCSR *csr, void *base)
{
  GallopCarver     carver(base);
  const PetscCount n = csr->n;

  carver.Take(w->len, n + 1);
  carver.Take(w->begin, n + 1);
  carver.Take(w->cols, n);
  carver.Take(w->sortedcols, n);
  carver.Take(w->from, n);
  carver.Take(w->blocks, (PetscCount)w->groups + 1);
  carver.Take(w->tasknum, (PetscCount)w->groups + 1);
  carver.Take(w->lines, (PetscCount)w->groups + 1);
  carver.Take(w->owner, csr->m);
  carver.Take(w->apart, csr->m);
  carver.Take(w->colkey, n);
  carver.Take(w->sortedcolkey, n);
  carver.Take(w->found, 1);
  w->flags = base ? w->found->flags : nullptr;
  if (!o->groups) {
    carver.Take(w->step, n + 1);
    carver.Take(w->start, w->most);
    carver.Take(w->top, w->most);
    carver.Take(w->steps, w->most);
  }
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* What the largest sort or sum needs */
static PetscErrorCode CubBytes(const GallopCSR *csr, FastLoadWorkspace *w)
{
  const int taskbits = GallopSortBits(csr->m / TaskPart); /* there are no more tasks, and no more blocks, than entries */
  size_t    bytes[5] = {0};

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes[0], w->colkey, w->sortedcolkey, w->cols, w->sortedcols, csr->n, 0, w->colbits, w->stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[1], w->len, w->begin, (PetscCount)csr->n + 1, w->stream));
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes[2], w->tasks.key, w->tasks.sortedkey, w->tasks.task, w->tasks.order, csr->nz, 0, taskbits, w->stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[3], (PetscCount *)nullptr, (PetscCount *)nullptr, csr->nz + 1, w->stream)); /* blkRow */
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[4], (PetscInt *)nullptr, (PetscInt *)nullptr, csr->nz + 1, w->stream));     /* blkLine */
  w->cubbytes = 0;
  for (size_t b : bytes) w->cubbytes = PetscMax(w->cubbytes, b);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadWorkspaceGet - *base, for GallopWorkspaceFree(), is NULL where the GPU has no room. w->stream and w->columns are set already, and columns have memory that blocks take. */
PetscErrorCode FastLoadWorkspaceGet(const FastLoadOptions *options, const GallopCSR *csr, FastLoadWorkspace *w, void **base)
{
  PetscFunctionBegin;
  w->groups  = FastLoadCeil(csr->n, WarpSize);
  w->most    = (PetscInt)PetscMin((double)csr->n, PetscSqrtReal(2 * (PetscReal)csr->nz) + 2);
  w->lenbits = GallopSortBits((uint64_t)w->columns.found.longest);
  w->colbits = w->lenbits + (options->window ? GallopSortBits(csr->n / options->window) : 0);
  PetscCall(CubBytes(csr, w));
  PetscCall(GallopWorkspaceMalloc(CarveWorkspace(w, options, csr, NULL), base));
  if (*base) (void)CarveWorkspace(w, options, csr, *base);
  FastLoadShareColumns(w);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSortColumns(FastLoadWorkspace *w, PetscInt n)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->colkey, w->sortedcolkey, w->cols, w->sortedcols, n, 0, w->colbits, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSortTasks(FastLoadWorkspace *w, PetscInt num, int bits)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->tasks.key, w->tasks.sortedkey, w->tasks.task, w->tasks.order, num, 0, bits, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSum(FastLoadWorkspace *w, PetscInt *from, PetscInt *to, PetscCount n)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, from, to, n, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSumCounts(FastLoadWorkspace *w, PetscCount *array, PetscCount n)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, array, array, n, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
