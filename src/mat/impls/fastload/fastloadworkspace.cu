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
  size_t bytes[4] = {0};

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes[0], w->colkey, w->sortedcolkey, w->cols, w->sortedcols, csr->n, 0, w->colbits, w->stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[1], w->len, w->begin, (PetscCount)csr->n + 1, w->stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[2], (PetscCount *)nullptr, (PetscCount *)nullptr, csr->nz + 1, w->stream)); /* blkRow: there are no more blocks than entries */
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[3], (PetscInt *)nullptr, (PetscInt *)nullptr, csr->nz + 1, w->stream));     /* blkLine */
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
  w->fill = {w->columns.unused[0], w->columns.unused[1]};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSortColumns(FastLoadWorkspace *w, PetscInt n)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->colkey, w->sortedcolkey, w->cols, w->sortedcols, n, 0, w->colbits, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static cudaError_t SortTasks(const FastLoad *fl, void *temp, size_t &bytes, const FastLoadTaskSort *sort, cudaStream_t stream)
{
  return cub::DeviceRadixSort::SortPairs(temp, bytes, sort->key, sort->sortedkey, sort->task, sort->order, fl->taskNum, 0, GallopSortBits((uint64_t)(fl->m / TaskPart)), stream);
}

static size_t CarveTaskSort(const FastLoad *fl, FastLoadTaskSort *sort, void *base)
{
  GallopCarver carver(base);

  carver.Take(sort->key, fl->taskNum);
  carver.Take(sort->sortedkey, fl->taskNum);
  carver.Take(sort->task, fl->taskNum);
  carver.Take(sort->order, fl->taskNum);
  carver.Take(sort->cub, (PetscCount)sort->cubbytes);
  return carver.Bytes();
}

/* FastLoadTaskSortGet - Memory to sort tasks in; *base, for GallopWorkspaceFree(), is NULL where the GPU has no room */
PetscErrorCode FastLoadTaskSortGet(const FastLoad *fl, FastLoadTaskSort *sort, cudaStream_t stream, void **base)
{
  PetscFunctionBegin;
  PetscCallCUDA(SortTasks(fl, nullptr, sort->cubbytes, sort, stream));
  PetscCall(GallopWorkspaceMalloc(CarveTaskSort(fl, sort, NULL), base));
  if (*base) (void)CarveTaskSort(fl, sort, *base);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadTaskSortRun(const FastLoad *fl, FastLoadTaskSort *sort, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(SortTasks(fl, sort->cub, sort->cubbytes, sort, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSum(FastLoadWorkspace *w, PetscInt *from, PetscInt *to, PetscCount n)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, from, to, n, w->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadSumCounts(void *temp, size_t bytes, PetscCount *array, PetscCount n, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(temp, bytes, array, array, n, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
