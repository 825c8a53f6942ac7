/* SPDX-License-Identifier: BSD-2-Clause */
/* Products that the program records in a CUDA graph */
#pragma once

#include "../galloptest.h"
#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>

/* A product, recorded from a stream of its own since PETSc's may be the default one. After an error, which is returned in *ierr, there is no graph, x is not locked, and z may not be used. */
static inline PetscErrorCode TestRecord(Mat A, Vec x, Vec z, cudaGraphExec_t *exec, PetscErrorCode *ierr)
{
  PetscDeviceContext before, recorder;
  cudaStream_t       stream;
  cudaGraph_t        graph = NULL;
  PetscInt           locked;

  PetscFunctionBegin;
  *exec = NULL;
  PetscCall(TestNonblockingBegin(&before, &recorder));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  *ierr = MatMult(A, x, z);
  PetscCall(PetscPopErrorHandler());
  (void)cudaStreamEndCapture(stream, &graph);
  (void)cudaGetLastError();
  PetscCall(PetscDeviceContextSetCurrentContext(before));
  PetscCall(PetscDeviceContextDestroy(&recorder));
  if (!*ierr) PetscCallCUDA(cudaGraphInstantiate(exec, graph, 0));
  if (graph) PetscCallCUDA(cudaGraphDestroy(graph));
  PetscCall(VecLockGet(x, &locked));
  for (; *ierr && locked > 0; locked--) PetscCall(VecLockReadPop(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
