/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values on the GPU by CUDA IPC: a kernel writes them into the neighbors' memory, and PETSc's stream waits for those that come. The host waits for nothing.

  Who writes: values, a fence for all GPUs, then the flag. Who waits: the flag, then what follows in the stream. A wait by the stream itself takes no multiprocessor, which processes that
  share a GPU need. But values from another GPU it orders only where the driver says so; elsewhere one warp polls.

  Where a long kernel follows that needs no ghost values, the product of a large diagonal block, values are packed on a side stream, so that it starts at once. What waits comes behind it, and waits for
  that, too: a kernel on PETSc's stream, which starts while the long one ends; or the side stream, for whose event PETSc's waits.
*/

#include "gallopexchangeunits.cuh"
#include <cuda.h>
#include "gallopflags.cuh"

/*
  A warp waits for flags: the next kernel in the stream sees what was written before them. And until values of so many neighbors have been packed, which is counted where packed is not NULL. The next
  kernel starts only then: its thread blocks could take all room from what is waited for.
*/
static __global__ void __launch_bounds__(32) WaitKernel(char *flags, int n, unsigned int number, unsigned int *packed, unsigned int neighbors)
{
  for (int k = (int)threadIdx.x; k < n; k += 32) GallopWaitFor(reinterpret_cast<unsigned int *>(flags + (size_t)k * GALLOP_IPC_FLAG), number);
  if (packed && threadIdx.x == 0) GallopWaitFor(packed, neighbors);
  __syncwarp();
  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
}

struct Plan : GallopDevicePlan {
  PackArguments to[2];
  unsigned int  blocks, *ended, *packed, neighbors; /* those of all products */
  PetscBool     streamwaits, flush, overlaps;
};

/* ---------------------------------------------------------------- memory that other processes open */

static PetscErrorCode Allocate_Device(size_t bytes, void **memory, GallopIPCHandle *handle, char device[16])
{
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(GallopIPCHandle), "a handle is sent as it is");
  PetscBool          fails, fits = PETSC_TRUE;
  cudaIpcMemHandle_t ipc;
  cudaError_t        err;
  int                number;

  PetscFunctionBegin;
  *memory = NULL;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&number));
  err = cudaMalloc(memory, bytes);
  if (err == cudaErrorMemoryAllocation) { /* what is kept for other matrices may be what is missing */
    (void)cudaGetLastError();
    PetscCall(GallopDeviceTry(bytes, &fits));
    if (fits) err = cudaMalloc(memory, bytes);
  }
  if (err != cudaSuccess) *memory = NULL;
  else if (cudaDeviceGetPCIBusId(device, 16, number) != cudaSuccess || cudaIpcGetMemHandle(&ipc, *memory) != cudaSuccess) {
    PetscCallCUDA(cudaFree(*memory));
    *memory = NULL;
  } else PetscCall(PetscMemcpy(handle, &ipc, sizeof(ipc)));
  (void)cudaGetLastError(); /* PetscSF does without */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free_Device(const GallopIPCAllocation *allocation, void *memory)
{
  PetscFunctionBegin;
  (void)allocation;
  PetscCallCUDA(cudaFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Open_Device(const GallopIPCAllocation *allocation, void **memory)
{
  cudaIpcMemHandle_t ipc;
  cudaError_t        err;

  PetscFunctionBegin;
  PetscCall(PetscMemcpy(&ipc, &allocation->handle, sizeof(ipc)));
  err = cudaIpcOpenMemHandle(memory, ipc, cudaIpcMemLazyEnablePeerAccess);
  if (err != cudaSuccess) {
    *memory = NULL;
    (void)cudaGetLastError();
    PetscCall(PetscInfo(NULL, "CUDA IPC: memory of process %" PetscInt64_FMT " of MPI_COMM_WORLD on GPU %s cannot be opened: %s\n", allocation->process[1], allocation->device, cudaGetErrorString(err)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Close_Device(const GallopIPCAllocation *allocation, void *memory)
{
  PetscFunctionBegin;
  (void)allocation;
  PetscCallCUDA(cudaIpcCloseMemHandle(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Clear_Device(void *memory, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(memory, 0, bytes, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- waits by the stream */

typedef CUresult (*BatchMemOp)(CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int);

/* The driver's function, whose operations wait for several flags by one call; NULL before CUDA 12, whose function of that name asks for permission */
static BatchMemOp GetBatchMemOp(void)
{
#if CUDART_VERSION >= 12000
  void                           *function = NULL;
  cudaDriverEntryPointQueryResult result   = cudaDriverEntryPointSymbolNotFound;
  #if CUDART_VERSION >= 12050
  const cudaError_t err = cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function, 12000, cudaEnableDefault, &result);
  #else
  const cudaError_t err = cudaGetDriverEntryPoint("cuStreamBatchMemOp", &function, cudaEnableDefault, &result);
  #endif

  (void)cudaGetLastError();
  return err == cudaSuccess && result == cudaDriverEntryPointSuccess ? (BatchMemOp)function : NULL;
#else
  return NULL;
#endif
}

static BatchMemOp batch = NULL;

static CUresult StreamWait(cudaStream_t stream, char *flags, int n, unsigned int number, bool flush)
{
  CUstreamBatchMemOpParams wait[GALLOP_IPC_NEIGHBORS] = {};

  for (int k = 0; k < n; k++) {
    wait[k].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait[k].waitValue.address   = (CUdeviceptr)(flags + (size_t)k * GALLOP_IPC_FLAG);
    wait[k].waitValue.value     = number;
    wait[k].waitValue.flags     = CU_STREAM_WAIT_VALUE_GEQ | (flush && k == n - 1 ? CU_STREAM_WAIT_VALUE_FLUSH : 0);
  }
  return batch((CUstream)stream, (unsigned int)n, wait, 0);
}

/* Whether the stream is to wait: one that is for tests is tried before */
static PetscErrorCode ChooseWait(GallopIPC ipc, Plan *plan)
{
  static const char *const ways[] = {"auto", "stream", "kernel"};
  static int               works  = -1;
  PetscInt                 way    = 0;
  PetscBool                near   = PETSC_TRUE;
  int                      device, flush; /* what came from another GPU before the flag is seen by what follows the wait */
  cudaStream_t             stream;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-mat_gallop_exchange_wait", ways, 3, &way, NULL));
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&flush, cudaDevAttrCanFlushRemoteWrites, device));
  for (int k = 0; k < ipc->ngive; k++)
    if (!ipc->neighbor[k].near) near = PETSC_FALSE;
  if (works < 0) {
    batch = GetBatchMemOp();
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    works = batch && StreamWait(stream, ipc->piece.memory, 1, 0, flush) == CUDA_SUCCESS;
    if (works && cudaStreamSynchronize(stream) != cudaSuccess) works = 0;
    (void)cudaGetLastError();
    PetscCall(PetscInfo(NULL, "CUDA IPC: a stream can%s wait for a flag, and can%s order what comes from another GPU before it\n", works ? "" : "not", flush ? "" : "not"));
  }
  plan->flush       = (PetscBool)(flush && !near); /* on one GPU nothing comes late */
  plan->streamwaits = (PetscBool)(works && (way == 1 || (way == 0 && (near || flush))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

static PetscErrorCode PlanDestroy_Device(void **data)
{
  Plan *plan = (Plan *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(plan->ended));
  PetscCall(GallopDevicePlanReset(plan));
  delete plan;
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plan's arrays on the GPU, all in one piece of memory */
static void Carve(GallopIPC ipc, GallopCarver &carver, Plan *plan)
{
  carver.Take(plan->ended, ipc->nneighbors + 1);
  plan->packed = plan->ended ? plan->ended + ipc->nneighbors : NULL;
  GallopDevicePlanCarve(ipc, carver, plan);
}

/* Whether a process that gives values has the same GPU, on which processes take turns unless CUDA MPS runs: what waits on one stream while another works would keep the GPU from it */
static bool SharesDevice(GallopIPC ipc)
{
  for (int k = 0; k < ipc->ngive; k++)
    if (ipc->neighbor[k].near) return true;
  return false;
}

/* A PetscSF, of which any number of leaves is expected, stays on PETSc's stream: it may scatter within a vector, and its waits must not come before it ends */
static PetscErrorCode ChooseStream(GallopIPC ipc, Plan *plan)
{
  static const char *const streams[] = {"auto", "same", "side"};
  PetscInt                 stream    = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-mat_gallop_exchange_stream", streams, 3, &stream, NULL));
  if (!ipc->ngive || ipc->kind.leaves < 0 || stream == 1 || (stream == 0 && (!ipc->kind.aside || SharesDevice(ipc)))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDevicePlanTakeSide(plan));
  PetscCallCUDA(GallopKernelOverlaps(WaitKernel, &plan->overlaps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanCreate_Device(GallopIPC ipc, void **data)
{
  Plan        *plan = new Plan();
  GallopCarver size(NULL);
  void        *memory = NULL;

  PetscFunctionBegin;
  *data = plan;
  for (int k = 0; k < ipc->nneighbors; k++) {
    const GallopIPCNeighbor &neighbor = ipc->neighbor[k];
    const unsigned int       n        = (unsigned int)(neighbor.n * ipc->kind.bs);

    for (int b = 0; b < 2; b++) plan->to[b].neighbor[k] = {neighbor.to[b], neighbor.raise, neighbor.ld, neighbor.first, n, plan->blocks};
    plan->blocks += GallopBlocksFor(n, PackValues);
  }
  for (int b = 0; b < 2; b++) plan->to[b].n = ipc->nneighbors;
  Carve(ipc, size, plan);
  if (!size.Bytes()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(size.Bytes(), &memory));
  if (!memory) {
    delete plan;
    *data = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GallopCarver carver(memory);
  Carve(ipc, carver, plan);
  if (ipc->nneighbors) PetscCall(ChooseWait(ipc, plan));
  PetscCall(ChooseStream(ipc, plan));
  PetscCall(GallopDevicePlanCopyIn(ipc, plan));
  if (ipc->nneighbors) PetscCall(Clear_Device(plan->ended, ((size_t)ipc->nneighbors + 1) * sizeof(*plan->ended)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StreamWaitFor(GallopIPC ipc, cudaStream_t stream, int first, int last, unsigned int number)
{
  const Plan *plan = (Plan *)ipc->plan;

  PetscFunctionBegin;
  PetscCheck(StreamWait(stream, ipc->piece.memory + (size_t)first * GALLOP_IPC_FLAG, last - first, number, plan->flush) == CUDA_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_GPU, "cuStreamBatchMemOp() failed");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the side stream waits, it does so at once */
static PetscErrorCode Send_Device(GallopIPC ipc, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  Plan        *plan = (Plan *)ipc->plan;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(GallopDevicePlanBegin(plan, &stream));
  if (!plan->side) PetscCall(PetscLogGpuTimeBegin());
  PetscCall(GallopDevicePack(stream, plan->to[buffer], plan->blocks, ipc->kind.bs, plan->index, x, ld, columns, number, plan->ended, plan->packed));
  plan->neighbors += (unsigned int)ipc->nneighbors;
  if (!plan->side) PetscCall(PetscLogGpuTimeEnd());
  else if (plan->streamwaits) {
    PetscCall(StreamWaitFor(ipc, stream, 0, ipc->ngive, number));
    PetscCallCUDA(cudaEventRecord(plan->come, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a product's wait, which is for the first neighbors, the side stream may have its part */
static PetscErrorCode Wait_Device(GallopIPC ipc, int first, int last, unsigned int number)
{
  Plan        *plan = (Plan *)ipc->plan;
  const bool   mine = plan->side && !first; /* x is read on the side stream */
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(GallopDevicePlanGetStream(plan, &stream));
  if (!plan->streamwaits) {
    PetscCallCUDA(GallopLaunch(WaitKernel, {1, 32, 1, 0, stream, mine && plan->overlaps}, ipc->piece.memory + (size_t)first * GALLOP_IPC_FLAG, last - first, number, mine ? plan->packed : (unsigned int *)NULL,
                               plan->neighbors));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mine) {
    PetscCallCUDA(cudaStreamWaitEvent(stream, plan->come, 0));
    first = ipc->ngive;
  }
  if (first < last) PetscCall(StreamWaitFor(ipc, stream, first, last, number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Describe_Device(GallopIPC ipc, const char **how)
{
  const Plan *plan = (Plan *)ipc->plan;

  PetscFunctionBegin;
  if (plan->streamwaits) *how = plan->side ? "the side stream" : "the stream";
  else *how = plan->side ? "a kernel beside the side stream" : "a kernel";
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopIPCTable GallopIPCTable_Device = {"CUDA IPC", NULL, Allocate_Device, Free_Device, Open_Device, Close_Device, Clear_Device, GallopIPCCreateVec_Device, PlanCreate_Device, PlanDestroy_Device, Send_Device, Wait_Device, GallopIPCUnpack_Device, GallopIPCFinish_Device, Describe_Device};
