/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP, measured choice: the clock of the GPU, by CUDA events on PETSc's current stream */

#include <gallop/cudaimpl.h>
#include "measure.h"

struct Timer {
  cudaEvent_t event[2];
};

static PetscErrorCode Record(cudaEvent_t event)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaEventRecord(event, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(void **timer)
{
  Timer *t = (Timer *)*timer;

  PetscFunctionBegin;
  if (!t) {
    PetscCall(PetscNew(&t));
    *timer = t;
    for (int k = 0; k < 2; k++) PetscCallCUDA(cudaEventCreate(&t->event[k]));
  }
  PetscCall(Record(t->event[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(void *timer)
{
  PetscFunctionBegin;
  PetscCall(Record(((Timer *)timer)->event[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Read(void *timer, PetscBool wait, PetscLogDouble *seconds)
{
  const Timer *t = (const Timer *)timer;
  cudaError_t  err;
  float        ms;

  PetscFunctionBegin;
  *seconds = -1;
  err      = wait ? cudaEventSynchronize(t->event[1]) : cudaEventQuery(t->event[1]);
  if (err == cudaErrorNotReady) {
    (void)cudaGetLastError(); /* no launch has failed */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(err);
  PetscCallCUDA(cudaEventElapsedTime(&ms, t->event[0], t->event[1]));
  *seconds = 1e-3 * (PetscLogDouble)ms;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **timer)
{
  Timer *t = (Timer *)*timer;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCallCUDA(cudaEventDestroy(t->event[k]));
  PetscCall(PetscFree(t));
  *timer = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The driver takes long to tell */
static PetscErrorCode Name(char name[], size_t len)
{
  static int            known = -1;
  static cudaDeviceProp properties;
  int                   device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  if (device != known) PetscCallCUDA(cudaGetDeviceProperties(&properties, device));
  known = device;
  PetscCall(PetscStrncpy(name, properties.name, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopClock GallopClockDevice = {Name, Begin, End, Read, Destroy, GallopDeviceIsCapturing, 0};
