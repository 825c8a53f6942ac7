/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM on the GPU: its functions for the base, which are those of the kernel that a matrix is for */

#include "tiledspmmbuild.h"

/* By TiledSpMMKernel: new values for the arrays of the build, products, and how these are computed, without stages */
static const struct {
  PetscErrorCode (*refresh)(TiledSpMM *, const GallopCSR *);
  PetscErrorCode (*apply)(TiledSpMM *, const GallopDenseProduct *, PetscBool *);
  TiledSpMMPlan (*plan)(const TiledSpMM *, PetscInt);
} Kernels[] = {
  {TiledSpMMStagedRefresh,   TiledSpMMStagedApply,     NULL                   },
  {TiledSpMMSegmentsRefresh, TiledSpMMCachedApply,     TiledSpMMCachedPlan    },
  {TiledSpMMSegmentsRefresh, TiledSpMMTransposedApply, TiledSpMMTransposedPlan},
  {TiledSpMMTensorRefresh,   TiledSpMMTensorApply,     TiledSpMMTensorPlan    },
};

static_assert(sizeof(Kernels) / sizeof(Kernels[0]) == TILEDSPMM_CHOOSE, "a line for each kernel, in their order");

/* TiledSpMMGetPlan - How a product with that number of columns is computed without stages, where there is room for what it needs */
PetscErrorCode TiledSpMMGetPlan(const TiledSpMM *t, PetscInt columns, TiledSpMMPlan *plan)
{
  PetscFunctionBegin;
  *plan = (*Kernels[t->kernel].plan)(t, columns);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMGetMachine(const TiledSpMM *t, TiledSpMMMachine *machine)
{
  static PetscLogDouble bandwidth = 0; /* measured once */
  int                   device, clock, l1, l2;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device)); /* in kHz */
  PetscCallCUDA(cudaDeviceGetAttribute(&l1, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
  if (bandwidth == 0) PetscCall(GallopDeviceReadBandwidth((size_t)1 << 30, &bandwidth));
  machine->bandwidth       = bandwidth;
  machine->clock           = 1e3 * clock;
  machine->l1              = l1;
  machine->l2              = l2;
  machine->multiprocessors = t->multiprocessors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees what a kernel has of memory, at the places where allocations begin */
static PetscErrorCode FreeArrays(TiledSpMM *t)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(t->work));
  for (int k = 0; k < t->nolder; k++) PetscCall(GallopDeviceFree(t->older[k]));
  PetscCall(PetscFree(t->older));
  if (t->kernel == TILEDSPMM_STAGED) {
    PetscCall(GallopDeviceFree(t->segptr));
    PetscCall(GallopDeviceFree(t->stagedispl));
    PetscCall(GallopDeviceFree(t->index));
  } else if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(GallopDeviceFree(t->tileptr));
  } else {
    PetscCall(GallopDeviceFree(t->segptr));
    PetscCall(GallopDeviceFree(t->col));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  TiledSpMM *t = (TiledSpMM *)*data;

  PetscFunctionBegin;
  PetscCall(FreeArrays(t));
  PetscCall(PetscFree(t));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is known before anything is built */
static PetscErrorCode Begin(const TiledSpMMOptions *options, const GallopCSR *csr, TiledSpMM *t)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  t->memtype = PETSC_MEMTYPE_CUDA;
  t->options = *options;
  t->kernel  = options->kernel;
  t->m       = csr->m;
  t->n       = csr->n;
  t->nz      = csr->nz;
  PetscCall(GallopDeviceGetProcessors(&t->multiprocessors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds for the kernel that is asked for or chosen; without tiles where they turn out not to be there */
static PetscErrorCode BuildUnstaged(TiledSpMM *t, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  const TiledSpMMOptions options = t->options;
  TiledSpMMChoice        choice;

  PetscFunctionBegin;
  PetscCall(TiledSpMMChoose(t, csr, &choice, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  t->scattered = choice.scattered;
  t->kernel    = choice.kernel;
  if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(TiledSpMMTensorBuild(t, csr, choice.longest, choice.tilesize, maxbytes, done));
    if (*done) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(FreeArrays(t));
    PetscCall(Begin(&options, csr, t));
    t->scattered = choice.scattered;
    t->kernel    = choice.untiled;
  }
  t->skips = choice.skips;
  PetscCall(TiledSpMMSegmentsBuild(t, csr, choice.segment, maxbytes, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  TiledSpMM *t;
  void      *data;
  PetscBool  done = PETSC_FALSE;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&t));
  data = t;
  PetscCall(Begin((const TiledSpMMOptions *)options, csr, t));
  if (t->kernel == TILEDSPMM_STAGED || (PetscCount)t->m / Threads >= PETSC_INT32_MAX || !GallopColumnsFit(csr)) { /* more rows than grids with a thread for each have place for, or columns that do not fit */
    t->kernel = TILEDSPMM_STAGED;
    PetscCall(TiledSpMMStagedBuild(t, csr, maxbytes, &done));
  } else PetscCall(BuildUnstaged(t, csr, maxbytes, &done));
  if (done) *built = t;
  else PetscCall(Destroy(&data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  TiledSpMM *t = (TiledSpMM *)data;

  PetscFunctionBegin;
  PetscCall((*Kernels[t->kernel].refresh)(t, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows without segments, which are most of them */
static PetscErrorCode ZeroRows(const TiledSpMM *t, const GallopDenseProduct *p)
{
  const size_t pitch = (size_t)p->ldc * sizeof(*p->c), bytes = (size_t)t->m * sizeof(*p->c);
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (pitch <= PETSC_INT32_MAX) PetscCallCUDA(cudaMemset2DAsync(p->c, pitch, 0, bytes, (size_t)p->columns, stream)); /* the largest that CUDA takes */
  else
    for (PetscInt c = 0; c < p->columns; c++) PetscCall(GallopDeviceZero(p->c + (PetscCount)c * p->ldc, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMApplyDense_Device(void *data, const GallopDenseProduct *p, PetscBool *done)
{
  TiledSpMM   *t = (TiledSpMM *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  if (t->skips && !p->add) PetscCall(ZeroRows(t, p));
  PetscCall((*Kernels[t->kernel].apply)(t, p, done));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (*done) PetscCallCUDA(GallopNotFresh(stream, &t->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork TiledSpMMDevice = {Build, Refresh, NULL, Destroy, NULL};
