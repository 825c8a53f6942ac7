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

PetscErrorCode FastLoadDestroy_Device(void **data)
{
  FastLoad *fl = (FastLoad *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(fl->value)); /* where the one allocation begins; the other is rowIdx */
  PetscCall(GallopDeviceFree(fl->rowIdx));
  PetscCall(PetscFree(fl));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadCreate_Device - A format without arrays yet */
PetscErrorCode FastLoadCreate_Device(const FastLoadOptions *options, const GallopCSR *csr, FastLoad **created)
{
  FastLoad *fl;

  PetscFunctionBegin;
  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_CUDA;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = FASTLOAD_LENGTH;
  fl->options = *options;
  fl->height  = options->height;
  fl->fresh   = PETSC_TRUE;
  PetscCall(FastLoadProductOverlaps(&fl->overlaps));
  *created = fl;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadTakeArrays - Memory for all arrays but rowIdx, with a plan */
PetscErrorCode FastLoadTakeArrays(FastLoad *fl, PetscCount maxbytes, PetscBool *done)
{
  void *base = NULL;

  PetscFunctionBegin;
  fl->bytes = Carve(fl, NULL);
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(fl->bytes, &base));
  if (base) (void)Carve(fl, base);
  else fl->value = NULL;
  *done = (PetscBool)(base != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadTakeOffsets - Memory for rowIdx, once blkRow tells how long it is: the host waits for that */
PetscErrorCode FastLoadTakeOffsets(FastLoad *fl, PetscCount maxbytes, PetscCount *rowbytes, PetscBool *done)
{
  void *rowIdx = NULL;

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyOut(rowbytes, fl->blkRow + fl->blkNum, sizeof(*rowbytes)));
  fl->bytes += (size_t)*rowbytes;
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc((size_t)PetscMax(*rowbytes, 1), &rowIdx));
  fl->rowIdx = (unsigned char *)rowIdx;
  *done      = (PetscBool)(rowIdx != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a plan: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode Complete(FastLoad *fl, const GallopCSR *csr, FastLoadWorkspace *w, PetscCount maxbytes, PetscBool *done)
{
  const PetscInt *order;
  void           *memory;
  PetscCount      rowbytes;

  PetscFunctionBegin;
  fl->indexed = (PetscBool)(w->columns.found.unsorted || fl->options.deterministic);
  PetscCall(FastLoadTakeArrays(fl, maxbytes, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FastLoadSetBlocks(fl, w));
  PetscCall(FastLoadFillBlocks(fl, csr, w));
  PetscCall(FastLoadFillLongRows(fl, csr, &w->longRowsPlan, w->stream));
  if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
  PetscCall(FastLoadTakeOffsets(fl, maxbytes, &rowbytes, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceZero(fl->rowIdx, (size_t)rowbytes));
  PetscCall(FastLoadFillOffsets(fl, w));
  PetscCall(FastLoadOrderTasks(fl, w->stream, &memory, &order, done));
  if (*done) PetscCall(FastLoadSetTasks(fl, order, w->stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of any lengths, in any order */
static PetscErrorCode BuildLong(const FastLoadOptions *opts, const GallopCSR *csr, PetscCount maxbytes, FastLoad **built)
{
  FastLoadOptions   options;
  FastLoad         *fl;
  FastLoadWorkspace w = {};
  void             *wbase, *data;
  PetscCount        spread = 0;
  PetscBool         done;

  PetscFunctionBegin;
  PetscCall(FastLoadGetSpread(csr, &spread, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  options = FastLoadChoose(opts, csr, spread);
  PetscCall(PetscGetCurrentCUDAStream(&w.stream));
  PetscCall(GallopColumnsSort(csr, options.long_row, PETSC_FALSE, &w.columns, w.stream));
  if (!w.columns.memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FastLoadWorkspaceGet(&options, csr, &w, &wbase));
  if (!wbase) {
    PetscCall(GallopWorkspaceFree(w.columns.memory));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  PetscCall(FastLoadCreate_Device(&options, csr, &fl));
  PetscCall(FastLoadCountColumns(fl, csr, &w));
  PetscCall(FastLoadPlanBlocks(fl, csr, &w));
  PetscCall(Complete(fl, csr, &w, maxbytes, &done));
  PetscCallCUDA(cudaStreamSynchronize(w.stream)); /* what was copied from pageable memory is about to go */
  data = fl;
  if (done) *built = fl;
  else PetscCall(FastLoadDestroy_Device(&data));
  PetscCall(FastLoadWorkspaceFreePlan(&w));
  PetscCall(GallopWorkspaceFree(wbase));
  PetscCall(GallopWorkspaceFree(w.columns.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  FastLoad *fl = NULL;
  PetscBool areshort;

  PetscFunctionBegin;
  PetscCall(FastLoadBuildShort((const FastLoadOptions *)options, csr, maxbytes, &fl, &areshort));
  if (!areshort) PetscCall(BuildLong((const FastLoadOptions *)options, csr, maxbytes, &fl));
  *built = fl;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadDevice = {Build, FastLoadRefresh_Device, FastLoadApply_Device, FastLoadDestroy_Device, FastLoadApplyTranspose_Device};
