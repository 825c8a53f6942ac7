/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU: the build, by its stages */

#include "fastloaddevice.h"

/* Both run twice: with a null base they measure, then they hand out. */
static size_t CarveEntries(FastLoad *fl, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(fl->array, number);
  FASTLOAD_ENTRY_ARRAYS(fl, TAKE, TAKE);
  if (!fl->indexed) fl->csrIdx = NULL;
  if (!fl->options.deterministic) {
    fl->rowPtr   = NULL;
    fl->products = NULL;
  }
  if (!fl->options.sorted_x) fl->sortedX = NULL;
  return carver.Bytes();
}

static size_t CarveBlocks(FastLoad *fl, PetscCount rowbytes, void *base)
{
  GallopCarver carver(base);

  FASTLOAD_BLOCK_ARRAYS(fl, TAKE, TAKE);
  if (rowbytes >= 0) carver.Take(fl->rowIdx, PetscMax(rowbytes, 1));
#undef TAKE
  return carver.Bytes();
}

PetscErrorCode FastLoadDestroy_Device(void **data)
{
  FastLoad *fl = (FastLoad *)*data;

  PetscFunctionBegin;
  for (void *piece : fl->memory) PetscCall(GallopDeviceFree(piece));
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
  fl->rows    = -1;
  *created    = fl;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A piece of memory more, if the format may take so much */
static PetscErrorCode Take(FastLoad *fl, size_t bytes, PetscCount maxbytes, void **piece)
{
  PetscFunctionBegin;
  fl->bytes += bytes;
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, piece));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadTakeEntries - Memory for arrays of entries, in place of what there was */
PetscErrorCode FastLoadTakeEntries(FastLoad *fl, PetscCount maxbytes, PetscBool *done)
{
  void **piece = &fl->memory[0];

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(*piece));
  *piece    = NULL;
  fl->bytes = 0;
  PetscCall(Take(fl, CarveEntries(fl, NULL), maxbytes, piece));
  if (*piece) (void)CarveEntries(fl, *piece);
  *done = (PetscBool)(*piece != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadTakeBlocks - Memory for arrays of blocks, with a plan, and for rowIdx if it is known how long that is */
PetscErrorCode FastLoadTakeBlocks(FastLoad *fl, PetscCount rowbytes, PetscCount maxbytes, PetscBool *done)
{
  void **piece = &fl->memory[1];

  PetscFunctionBegin;
  PetscCall(Take(fl, CarveBlocks(fl, rowbytes, NULL), maxbytes, piece));
  if (*piece) (void)CarveBlocks(fl, rowbytes, *piece);
  *done = (PetscBool)(*piece != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for rowIdx, once blkRow tells how long it is: the host waits for that */
static PetscErrorCode TakeOffsets(FastLoad *fl, PetscCount maxbytes, PetscCount *rowbytes, PetscBool *done)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyOut(rowbytes, fl->blkRow + fl->blkNum, sizeof(*rowbytes)));
  PetscCall(Take(fl, (size_t)PetscMax(*rowbytes, 1), maxbytes, &fl->memory[2]));
  fl->rowIdx = (unsigned char *)fl->memory[2];
  *done      = (PetscBool)(fl->rowIdx != NULL);
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
  *done       = PETSC_TRUE;
  if (!fl->memory[0] || (fl->indexed && !fl->csrIdx)) PetscCall(FastLoadTakeEntries(fl, maxbytes, done));
  if (*done) PetscCall(FastLoadTakeBlocks(fl, -1, maxbytes, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FastLoadSetBlocks(fl, w));
  PetscCall(FastLoadFillBlocks(fl, csr, w));
  PetscCall(FastLoadFillLongRows(fl, csr, &w->longRowsPlan, w->stream));
  if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
  PetscCall(TakeOffsets(fl, maxbytes, &rowbytes, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceZero(fl->rowIdx, (size_t)rowbytes));
  PetscCall(FastLoadFillOffsets(fl, w));
  PetscCall(FastLoadOrderTasks(fl, w->stream, &memory, &order, done));
  if (*done) PetscCall(FastLoadSetTasks(fl, order, w->stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a plan by options: the format, or NULL where there is not enough memory. fl is NULL, or has memory for its entries and nothing else. */
static PetscErrorCode BuildSorted(const FastLoadOptions *options, const GallopCSR *csr, PetscCount maxbytes, FastLoadWorkspace *w, FastLoad **fl)
{
  void     *data;
  PetscBool done;

  PetscFunctionBegin;
  if (!*fl) PetscCall(FastLoadCreate_Device(options, csr, fl));
  (*fl)->options = *options;
  (*fl)->height  = options->height;
  PetscCall(FastLoadProductOverlaps(&(*fl)->overlaps));
  PetscCall(FastLoadCountColumns(*fl, csr, w));
  PetscCall(FastLoadPlanBlocks(*fl, csr, w));
  PetscCall(Complete(*fl, csr, w, maxbytes, &done));
  PetscCallCUDA(cudaStreamSynchronize(w->stream)); /* what was copied from pageable memory is about to go */
  data = *fl;
  if (!done) PetscCall(FastLoadDestroy_Device(&data));
  *fl = (FastLoad *)data;
  PetscCall(FastLoadWorkspaceFreePlan(w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of any lengths, in any order; fl as for BuildSorted() */
static PetscErrorCode BuildLong(const FastLoadOptions *opts, const GallopCSR *csr, PetscCount maxbytes, FastLoad **fl)
{
  FastLoadOptions   options;
  FastLoadWorkspace w     = {};
  void             *wbase = NULL, *data = *fl;
  PetscCount        spread = 0;
  PetscBool         done;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&w.stream));
  PetscCall(FastLoadGetSpread(csr, &spread, &done));
  options = FastLoadChoose(opts, csr, spread);
  if (done) PetscCall(GallopColumnsSort(csr, options.long_row, PETSC_FALSE, &w.columns, w.stream));
  if (w.columns.memory) PetscCall(FastLoadWorkspaceGet(&options, csr, &w, &wbase));
  if (wbase) PetscCall(BuildSorted(&options, csr, maxbytes, &w, fl));
  else if (data) {
    PetscCall(FastLoadDestroy_Device(&data));
    *fl = NULL;
  }
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
