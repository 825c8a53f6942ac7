/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU: the build, by its stages */

#include "fastloaddevice.h"

/* Runs twice: with a null base it measures, then it hands out. value comes first. */
static size_t Carve(FastLoad *fl, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(fl->array, number);
  FASTLOAD_ARRAYS(fl, TAKE, TAKE);
#undef TAKE
  if (!fl->indexed) fl->csrIdx = NULL;
  if (!fl->options.deterministic) {
    fl->rowPtr   = NULL;
    fl->products = NULL;
  }
  return carver.Bytes();
}

static PetscErrorCode Destroy(void **data)
{
  FastLoad *fl = (FastLoad *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(fl->value)); /* where the one allocation begins; the other is rowIdx */
  PetscCall(GallopDeviceFree(fl->rowIdx));
  PetscCall(PetscFree(fl));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a plan: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode Complete(FastLoad *fl, const GallopCSR *csr, FastLoadWorkspace *w, PetscCount maxbytes, PetscBool *done)
{
  void      *base = NULL, *rowIdx = NULL;
  PetscCount rowbytes;

  PetscFunctionBegin;
  *done       = PETSC_FALSE;
  fl->indexed = (PetscBool)(w->columns.found.unsorted || fl->options.deterministic);
  fl->bytes   = Carve(fl, NULL);
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(fl->bytes, &base));
  if (!base) {
    fl->value = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  (void)Carve(fl, base);
  PetscCall(FastLoadSetBlocks(fl, w));
  PetscCall(FastLoadFillBlocks(fl, csr, w));
  PetscCall(FastLoadFillLongRows(fl, csr, w));
  if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyOut(&rowbytes, fl->blkRow + fl->blkNum, sizeof(rowbytes)));
  fl->bytes += (size_t)rowbytes;
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc((size_t)PetscMax(rowbytes, 1), &rowIdx));
  if (!rowIdx) PetscFunctionReturn(PETSC_SUCCESS);
  fl->rowIdx = (unsigned char *)rowIdx;
  PetscCall(GallopDeviceZero(rowIdx, (size_t)rowbytes));
  PetscCall(FastLoadFillOffsets(fl, w));
  PetscCall(FastLoadSetTasks(fl, w));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  FastLoadOptions   options;
  FastLoad         *fl;
  FastLoadWorkspace w = {};
  void             *wbase, *data;
  PetscCount        spread = 0;
  PetscBool         done;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(FastLoadGetSpread(csr, &spread, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  options = FastLoadChoose((const FastLoadOptions *)opts, csr, spread);
  PetscCall(PetscGetCurrentCUDAStream(&w.stream));
  PetscCall(GallopColumnsSort(csr, options.long_row, PETSC_FALSE, &w.columns, w.stream));
  if (!w.columns.memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FastLoadWorkspaceGet(&options, csr, &w, &wbase));
  if (!wbase) {
    PetscCall(GallopWorkspaceFree(w.columns.memory));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_CUDA;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = FASTLOAD_LENGTH;
  fl->options = options;
  fl->height  = options.height;
  fl->fresh   = PETSC_TRUE;
  data        = fl;
  PetscCall(FastLoadProductOverlaps(&fl->overlaps));
  PetscCall(FastLoadCountColumns(fl, csr, &w));
  PetscCall(FastLoadPlanBlocks(fl, csr, &w));
  PetscCall(Complete(fl, csr, &w, maxbytes, &done));
  PetscCallCUDA(cudaStreamSynchronize(w.stream)); /* what was copied from pageable memory is about to go */
  if (done) *built = fl;
  else PetscCall(Destroy(&data));
  PetscCall(FastLoadWorkspaceFreePlan(&w));
  PetscCall(GallopWorkspaceFree(wbase));
  PetscCall(GallopWorkspaceFree(w.columns.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadDevice = {Build, FastLoadRefresh_Device, FastLoadApply_Device, Destroy, FastLoadApplyTranspose_Device};
