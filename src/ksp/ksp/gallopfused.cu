/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of fused solvers, and how the host waits for their kernels */

#include "gallopfused.cuh"

__global__ static void EmptyKernel() { }

/* *done is false where there is no room */
PetscErrorCode GallopFusedCreate(GallopFused *work, PetscBool *done)
{
  int   processors;
  void *record;

  PetscFunctionBegin;
  if (!work->state) {
    PetscCall(GallopDeviceGetProcessors(&processors));
    work->blocks = processors * BlocksPerProcessor;
    PetscCall(GallopDeviceMalloc(StateBytes, &work->state));
    PetscCall(GallopDeviceMalloc((size_t)work->blocks * SumsBytes, &work->partial));
    PetscCall(GallopPinnedMalloc(GALLOP_RECORDS * sizeof(GallopRecord), &record));
    work->record = (GallopRecord *)record;
    if (record) PetscCall(PetscArrayzero(work->record, GALLOP_RECORDS));
    PetscCallCUDA(GallopKernelOverlaps(EmptyKernel, &work->overlaps));
  }
  *done = (PetscBool)(work->state && work->partial && work->record);
  if (!*done) PetscCall(GallopFusedDestroy(work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopFusedDestroy(GallopFused *work)
{
  PetscFunctionBegin;
  PetscCall(GallopGraphDestroy(&work->graph));
  PetscCall(GallopDeviceFree(work->state));
  PetscCall(GallopDeviceFree(work->partial));
  PetscCall(GallopDeviceFree(work->dot.partial));
  PetscCall(GallopPinnedFree(GALLOP_RECORDS * sizeof(GallopRecord), work->record));
  PetscCall(PetscMemzero(work, sizeof(*work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopFusedGo - Kernels work from here on: in a new solve, or in one that the GPU has stopped */
PetscErrorCode GallopFusedGo(GallopFused *work, PetscBool begins)
{
  FusedState *state = (FusedState *)work->state;

  PetscFunctionBegin;
  if (begins) PetscCall(GallopDeviceZero(state, StateBytes));
  else PetscCall(GallopDeviceZero(&state->stop, sizeof(state->stop)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nothing where the solve is over, as the kernel that other processes may have instead: one whose product leaves no dot product, for a block without entries, say */
static __global__ __launch_bounds__(32) void SumDotKernel(const FusedState *state, DeviceGroup *group, PetscScalar *dot)
{
  GallopWaitForPredecessor();
  if (state->stop) return;

  const PetscScalar all = SumOfProcesses(group, *dot);

  GallopLetSuccessorStart();
  if (threadIdx.x == 0) *dot = all;
}

/* GallopFusedSumDot - Of the dot product of this process, which a product has left, that of all */
PetscErrorCode GallopFusedSumDot(const GallopFused *work)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopLaunch(SumDotKernel, {1, 32, 1, 0, stream, (bool)work->overlaps}, (const FusedState *)work->state, (DeviceGroup *)work->group, work->dot.result));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopFusedWait - Until the GPU has written what it computed under this number. Looks at memory, and asks CUDA from time to time, since a GPU that failed writes nothing. */
PetscErrorCode GallopFusedWait(GallopFused *work, PetscInt64 number, GallopRecord *found)
{
  const GallopRecord *record = work->record + number % GALLOP_RECORDS;
  cudaStream_t        stream;
  PetscBool           idle = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  for (unsigned int looks = 1; __atomic_load_n(&record->number, __ATOMIC_ACQUIRE) != number; looks++) {
    PetscCheck(!idle, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The GPU is idle and has not ended the iteration");
    if (looks % 100000 == 0) {
      const cudaError_t err = cudaStreamQuery(stream);

      if (err != cudaErrorNotReady) PetscCallCUDA(err);
      idle = (PetscBool)(err == cudaSuccess);
      (void)cudaGetLastError();
    }
  }
  *found = *record;
  PetscFunctionReturn(PETSC_SUCCESS);
}
