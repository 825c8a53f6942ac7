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

/* Whose stream is recorded, for all graphs of the process that are kept: recordings never overlap */
static PetscDeviceContext recorder = NULL;
static PetscInt           users    = 0;

/* It has the device of PETSc's current context */
static PetscErrorCode RecorderGet(PetscDeviceContext current)
{
  PetscDevice device, of = NULL;

  PetscFunctionBegin;
  PetscCall(PetscDeviceContextGetDevice(current, &device));
  if (recorder) PetscCall(PetscDeviceContextGetDevice(recorder, &of));
  if (of == device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextDestroy(&recorder));
  PetscCall(PetscDeviceContextCreate(&recorder));
  PetscCall(PetscDeviceContextSetDevice(recorder, device));
  PetscCall(PetscDeviceContextSetStreamType(recorder, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(recorder));
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

/* What iterate() launches, as a graph, which is NULL where CUDA does not record it. An error of iterate()'s leaves nothing behind. */
static PetscErrorCode Record(GallopGraph *g, PetscInt iterations, PetscErrorCode (*iterate)(void *, PetscInt), void *ctx, cudaGraph_t *graph)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
  cudaStream_t   stream;

  PetscFunctionBegin;
  *graph = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {
    g->records = PETSC_TRUE;
    for (PetscInt k = 0; k < iterations && ierr == PETSC_SUCCESS; k++) {
      g->last = (PetscBool)(k == iterations - 1);
      ierr    = (*iterate)(ctx, k);
    }
    g->records = PETSC_FALSE;
    if (cudaStreamEndCapture(stream, graph) != cudaSuccess) *graph = NULL;
  }
  (void)cudaGetLastError();
  if (ierr != PETSC_SUCCESS && *graph) PetscCallCUDA(cudaGraphDestroy(*graph));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes the graph that is kept, or takes another one */
static PetscErrorCode Keep(GallopGraph *g, cudaGraph_t graph)
{
  cudaGraphExec_t               exec = (cudaGraphExec_t)g->exec;
  cudaGraphExecUpdateResultInfo info;

  PetscFunctionBegin;
  if (exec && (!graph || cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess)) {
    PetscCallCUDA(cudaGraphExecDestroy(exec));
    exec = NULL;
  }
  if (graph && !exec && cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) exec = NULL;
  if (graph) PetscCallCUDA(cudaGraphDestroy(graph));
  (void)cudaGetLastError();
  g->exec = exec;
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
  cudaGraph_t        graph;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  if (!g->uses) users++;
  g->uses = PETSC_TRUE;
  g->from = number;
  PetscCall(PetscDeviceContextGetCurrentContext(&current));
  PetscCall(RecorderGet(current));
  PetscCall(PetscDeviceContextSetCurrentContext(recorder));
  ierr = Record(g, iterations, iterate, ctx, &graph);
  PetscCall(PetscDeviceContextSetCurrentContext(current));
  PetscCall(Keep(g, ierr == PETSC_SUCCESS ? graph : NULL));
  PetscCall(ierr);
  *done = (PetscBool)(g->exec != NULL);
  if (!*done) work->number = number;
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
  if (g->uses && --users == 0) PetscCall(PetscDeviceContextDestroy(&recorder));
  PetscCall(PetscMemzero(g, sizeof(*g)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
