/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Iterations of a fused solver as a CUDA graph, which the host launches at once: a kernel of a small system takes less time than its launch

  Numbers of results come from the GPU then, which counts as the host does. PETSc's stream may be the default one, which CUDA does not record, so the kernels are recorded from one of our own.
*/

#include "gallopfused.cuh"

static __global__ void CountFromKernel(FusedState *state, PetscInt64 number)
{
  state->number = number;
}

static PetscErrorCode ContextCreate(PetscDeviceContext *context)
{
  PetscFunctionBegin;
  PetscCall(PetscDeviceContextCreate(context));
  PetscCall(PetscDeviceContextSetStreamType(*context, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(*context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopFusedCountFrom - The kernels of graphs that are launched from now on give their results the numbers that follow the host's */
PetscErrorCode GallopFusedCountFrom(GallopFused *work)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  CountFromKernel<<<1, 1, 0, stream>>>((FusedState *)work->state, work->number);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopFusedRecord - Records what iterate() launches for some iterations, each of which has results of one number

  *done is false where CUDA does not record or keep it; the host's count is what it was then.
*/
PetscErrorCode GallopFusedRecord(GallopFused *work, PetscInt iterations, PetscErrorCode (*iterate)(void *, PetscInt), void *ctx, PetscBool *done)
{
  GallopGraph       *g      = &work->graph;
  const PetscInt64   number = work->number;
  PetscDeviceContext current;
  cudaStream_t       stream;
  cudaGraph_t        graph = NULL;
  cudaGraphExec_t    exec  = (cudaGraphExec_t)g->exec;
  cudaError_t        err;

  PetscFunctionBegin;
  if (!g->context) PetscCall(ContextCreate(&g->context));
  PetscCall(PetscDeviceContextGetCurrentContext(&current));
  PetscCall(PetscDeviceContextSetCurrentContext(g->context));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  g->from    = number;
  g->records = PETSC_TRUE;
  for (PetscInt k = 0; k < iterations; k++) {
    g->last = (PetscBool)(k == iterations - 1);
    PetscCall((*iterate)(ctx, k));
  }
  g->records = PETSC_FALSE;
  err        = cudaStreamEndCapture(stream, &graph);
  PetscCall(PetscDeviceContextSetCurrentContext(current));
  if (err == cudaSuccess) {
    cudaGraphExecUpdateResultInfo info;

    if (exec && cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess) {
      (void)cudaGetLastError();
      PetscCallCUDA(cudaGraphExecDestroy(exec));
      exec = NULL;
    }
    if (!exec) err = cudaGraphInstantiate(&exec, graph, 0);
    PetscCallCUDA(cudaGraphDestroy(graph));
  }
  g->exec = err == cudaSuccess ? exec : NULL;
  *done   = (PetscBool)(err == cudaSuccess);
  if (*done) PetscFunctionReturn(PETSC_SUCCESS);
  (void)cudaGetLastError();
  work->number = number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopFusedLaunch - Launches what was recorded last */
PetscErrorCode GallopFusedLaunch(const GallopFused *work)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaGraphLaunch((cudaGraphExec_t)work->graph.exec, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopGraphDestroy(GallopGraph *g)
{
  PetscFunctionBegin;
  if (g->exec) PetscCallCUDA(cudaGraphExecDestroy((cudaGraphExec_t)g->exec));
  if (g->context) PetscCall(PetscDeviceContextDestroy(&g->context));
  PetscCall(PetscMemzero(g, sizeof(*g)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
