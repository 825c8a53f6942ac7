/* SPDX-License-Identifier: BSD-2-Clause */
#include <gallop/cudaimpl.h>
#include <cub/util_allocator.cuh>
#include "largepieces.h"

/* Whether this process has a GPU that PETSc may use. Asked once: the answer must not change under existing matrices. */
PetscErrorCode GallopDeviceAvailable(PetscBool *available)
{
  static int known = -1;

  PetscFunctionBegin;
  if (known < 0) {
    int         count = 0;
    PetscBool   disabled;
    cudaError_t err;

    PetscCall(GallopDeviceDisabled(&disabled));
    err = disabled ? cudaSuccess : cudaGetDeviceCount(&count);
    if (err != cudaSuccess) {
      PetscCall(PetscInfo(NULL, "No GPU: %s\n", cudaGetErrorString(err)));
      count = 0;
    }
    (void)cudaGetLastError(); /* no driver is no error here */
    known = count > 0;
  }
  *available = (PetscBool)known;
  if (known) PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The GPUs that the first process sees */
static PetscErrorCode ViewDevices(PetscViewer viewer)
{
  int count;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDeviceCount(&count));
  for (int d = 0; d < count; d++) {
    cudaDeviceProp properties;

    PetscCallCUDA(cudaGetDeviceProperties(&properties, d));
    PetscCall(PetscViewerASCIIPrintf(viewer, "GPU %d: %s, compute capability %d.%d, %.1f GiB of memory\n", d, properties.name, properties.major, properties.minor, (double)properties.totalGlobalMem / (1 << 30)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceView(PetscViewer viewer)
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)viewer);
  PetscMPIInt rank, size;
  PetscBool   available;
  PetscInt    with;
  int         driver;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscViewerASCIIPrintf(viewer, "CUDA: toolkit %d.%d, kernels for compute capability", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
#if defined(__CUDA_ARCH_LIST__)
  for (const int arch : {__CUDA_ARCH_LIST__}) PetscCall(PetscViewerASCIIPrintf(viewer, " %d.%d", arch / 100, arch % 100 / 10));
#else
  PetscCall(PetscViewerASCIIPrintf(viewer, " unknown"));
#endif
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver) PetscCall(PetscViewerASCIIPrintf(viewer, "; driver for CUDA %d.%d\n", driver / 1000, driver % 1000 / 10));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "; no driver\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(GallopDeviceAvailable(&available));
  with = available ? 1 : 0;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &with, 1, MPIU_INT, MPI_SUM, comm));
  PetscCall(PetscViewerASCIIPrintf(viewer, "GPUs: used by %" PetscInt_FMT " of %d processes%s\n", with, size, with == size ? "" : "; products are computed on the host"));
  if (available && rank == 0) PetscCall(ViewDevices(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceIsCapturing(PetscBool *is)
{
  cudaStreamCaptureStatus status;
  cudaStream_t            stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaStreamIsCapturing(stream, &status));
  *is = (PetscBool)(status != cudaStreamCaptureStatusNone);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceGetProcessors(int *multiprocessors)
{
  int device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A cudaMalloc() or cudaFree() of a few megabytes takes as long as ten products of a small matrix, so pieces are kept for the next builds. What stays as long as a
  matrix is rounded up to a power of two only while small; of larger pieces the last ones are kept as they are, and serve what needs seven eighths of
  them or more. All goes when memory is short, workspace when the CSR arrays of a large matrix do. CUDA's own pools take 8 to 15 ms for the first piece of a process, more than all its builds.
*/
static constexpr unsigned int      SmallestBin = 9, LargestKept = 24, LargestWorkspace = 26; /* powers of two */
static constexpr size_t            Keeps = 64 << 20, WorkspaceKeeps = 96 << 20;
static cub::CachingDeviceAllocator memories(2, SmallestBin, LargestKept, Keeps, true), workspaces(2, SmallestBin, LargestWorkspace, WorkspaceKeeps, true);
static LargePieces                 largememories(256, 8, 8. / 7., false), largeworkspaces(16, 1, 0, true);

static PetscBool registered = PETSC_FALSE;

PetscErrorCode GallopDeviceFreeKept(PetscBool workspace)
{
  PetscFunctionBegin;
  PetscCallCUDA(workspaces.FreeAllCached());
  PetscCallCUDA(largeworkspaces.FreeAllCached());
  if (workspace) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(memories.FreeAllCached());
  PetscCallCUDA(largememories.FreeAllCached());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Finalize(void)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFreeKept(PETSC_FALSE));
  registered = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is freed can be had again at once for this stream, and for others when it is done */
template <typename Allocator>
static PetscErrorCode Allocate(Allocator &allocator, size_t bytes, cudaStream_t stream, void **ptr)
{
  cudaError_t err;
  PetscBool   fails;

  PetscFunctionBegin;
  *ptr = NULL;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  if (!registered) PetscCall(PetscRegisterFinalize(Finalize));
  registered = PETSC_TRUE;
  err        = allocator.DeviceAllocate(ptr, PetscMax(bytes, (size_t)1), stream);
  if (err == cudaErrorMemoryAllocation) { /* the other one may keep what is missing */
    (void)cudaGetLastError();
    PetscCall(GallopDeviceFreeKept(PETSC_FALSE));
    err = allocator.DeviceAllocate(ptr, PetscMax(bytes, (size_t)1), stream);
  }
  if (err == cudaErrorMemoryAllocation) {
    *ptr = NULL;
    (void)cudaGetLastError(); /* the caller goes on without */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(err);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The default stream, since PETSc's current one may be gone when memory is freed; then the GPU is idle */
PetscErrorCode GallopDeviceMalloc(size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  if (bytes > (size_t)1 << LargestKept) PetscCall(Allocate(largememories, bytes, NULL, ptr));
  else PetscCall(Allocate(memories, bytes, NULL, ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceFree(void *ptr)
{
  cudaPointerAttributes where;

  PetscFunctionBegin;
  if (!ptr) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaPointerGetAttributes(&where, ptr));
  PetscCallCUDA(cudaDeviceSynchronize());
  if (largememories.Has(ptr)) PetscCallCUDA(largememories.DeviceFree(ptr));
  else PetscCallCUDA(memories.DeviceFree(where.device, ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether somebody else can have so much, who has nothing of what is kept here */
PetscErrorCode GallopDeviceTry(size_t bytes, PetscBool *fits)
{
  PetscBool   fails;
  cudaError_t err;
  void       *room;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFreeKept(PETSC_FALSE));
  err   = cudaMalloc(&room, PetscMax(bytes, (size_t)1));
  *fits = (PetscBool)(err == cudaSuccess);
  if (*fits) PetscCallCUDA(cudaFree(room));
  else if (err != cudaErrorMemoryAllocation) PetscCallCUDA(err);
  else (void)cudaGetLastError();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **ptr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (bytes > (size_t)1 << LargestWorkspace) PetscCall(Allocate(largeworkspaces, bytes, stream, ptr));
  else PetscCall(Allocate(workspaces, bytes, stream, ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopWorkspaceFree(void *ptr)
{
  PetscFunctionBegin;
  if (largeworkspaces.Has(ptr)) PetscCallCUDA(largeworkspaces.DeviceFree(ptr));
  else if (ptr) PetscCallCUDA(workspaces.DeviceFree(ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceGetFree(size_t *bytes)
{
  PetscBool fails;
  size_t    total;

  PetscFunctionBegin;
  *bytes = 0;
  PetscCall(GallopDeviceMallocFails(PETSC_FALSE, &fails));
  if (!fails) PetscCallCUDA(cudaMemGetInfo(bytes, &total));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPinnedMalloc(size_t bytes, void **ptr)
{
  PetscBool fails, taken;

  PetscFunctionBegin;
  *ptr = NULL;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopPinnedTake("", (PetscCount)bytes, &taken));
  if (taken && cudaMallocHost(ptr, PetscMax(bytes, (size_t)1)) != cudaSuccess) {
    *ptr = NULL;
    (void)cudaGetLastError(); /* the caller goes on without */
    PetscCall(GallopPinnedGiveBack((PetscCount)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPinnedFree(size_t bytes, void *ptr)
{
  PetscFunctionBegin;
  if (ptr) {
    PetscCallCUDA(cudaFreeHost(ptr));
    PetscCall(GallopPinnedGiveBack((PetscCount)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopHostMap(const void *host, size_t bytes, void **device)
{
  PetscBool fails, taken;

  PetscFunctionBegin;
  *device = NULL;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopPinnedTake("", (PetscCount)bytes, &taken));
  if (!taken) PetscFunctionReturn(PETSC_SUCCESS);
  if (cudaHostRegister((void *)host, bytes, cudaHostRegisterMapped) == cudaSuccess) {
    if (cudaHostGetDevicePointer(device, (void *)host, 0) != cudaSuccess) {
      *device = NULL;
      PetscCallCUDA(cudaHostUnregister((void *)host));
    }
  }
  if (*device) PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes)); /* as if it were copied */
  else {
    (void)cudaGetLastError(); /* the caller goes on without */
    PetscCall(GallopPinnedGiveBack((PetscCount)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopHostUnmap(const void *host, size_t bytes)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaHostUnregister((void *)host));
  PetscCall(GallopPinnedGiveBack((PetscCount)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceCopyIn(void *device, const void *host, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the host waits for in builds are a few numbers: they come by pinned memory, to which the GPU copies without the driver's detour. NULL where there is none. A process's first pinned memory takes 1 ms, so it has to ask for some numbers first. */
static const size_t ReplyBytes = 4096;
static const int    FewReplies = 64;
static void        *reply;

static PetscErrorCode ReplyDestroy(void)
{
  PetscFunctionBegin;
  if (reply) PetscCallCUDA(cudaFreeHost(reply));
  reply = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceGetReply(void **memory)
{
  PetscFunctionBegin;
  if (!reply) {
    if (cudaMallocHost(&reply, ReplyBytes) == cudaSuccess) PetscCall(PetscRegisterFinalize(ReplyDestroy));
    else {
      reply = NULL;
      (void)cudaGetLastError(); /* it takes longer without */
    }
  }
  *memory = reply;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceCopyOut(void *host, const void *device, size_t bytes)
{
  static int   replies = 0;
  cudaStream_t stream;
  void        *pinned = reply;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (bytes > ReplyBytes) pinned = NULL;
  else if (!pinned && ++replies > FewReplies) PetscCall(GallopDeviceGetReply(&pinned));
  PetscCallCUDA(cudaMemcpyAsync(pinned ? pinned : host, device, bytes, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  if (pinned) PetscCall(PetscMemcpy(host, pinned, bytes));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceZero(void *ptr, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(ptr, 0, bytes, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ static void CountRowsKernel(PetscInt m, const PetscInt *__restrict__ i, unsigned long long *__restrict__ rows)
{
  const PetscCount r   = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  const int        num = __syncthreads_count(r < m && i[r + 1] > i[r]);

  if (threadIdx.x == 0 && num) atomicAdd(rows, (unsigned long long)num);
}

PetscErrorCode GallopDeviceCountRows(PetscInt m, const PetscInt i[], PetscInt *rows)
{
  static constexpr int Threads = 1024;
  unsigned long long   num;
  cudaStream_t         stream;
  void                *sum;

  PetscFunctionBegin;
  PetscCall(GallopWorkspaceMalloc(sizeof(num), &sum));
  if (!sum) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceZero(sum, sizeof(num)));
  CountRowsKernel<<<(unsigned int)(((PetscCount)m + Threads - 1) / Threads), Threads, 0, stream>>>(m, i, (unsigned long long *)sum);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&num, sum, sizeof(num)));
  PetscCall(GallopWorkspaceFree(sum));
  *rows = (PetscInt)num;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- what the GPU can do */

static __global__ void Read(const double2 *a, size_t n, double *never)
{
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  double       sum    = 0;

  size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

  for (; k + 3 * stride < n; k += 4 * stride) {
    const double2 p = __ldcs(a + k), q = __ldcs(a + k + stride), r = __ldcs(a + k + 2 * stride), s = __ldcs(a + k + 3 * stride);

    sum += p.x + p.y + q.x + q.y + r.x + r.y + s.x + s.y;
  }
  for (; k < n; k += stride) sum += a[k].x + a[k].y;
  if (sum < 0) *never = sum; /* so that the compiler keeps the loads */
}

/* The best of several grids */
PetscErrorCode GallopDeviceReadBandwidth(size_t bytes, PetscLogDouble *bandwidth)
{
  static constexpr int Threads = 256, Grids = 20;
  cudaEvent_t          begin, end;
  cudaStream_t         stream;
  void                *memory;
  int                  multiprocessors;
  float                ms, best = PETSC_INFINITY;

  PetscFunctionBegin;
  *bandwidth = 0;
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&multiprocessors));
  PetscCallCUDA(cudaEventCreate(&begin));
  PetscCallCUDA(cudaEventCreate(&end));
  PetscCallCUDA(cudaMemsetAsync(memory, 0x3f, bytes, stream)); /* small numbers that are not negative */
  for (int k = 0; k < Grids; k++) {
    PetscCallCUDA(cudaEventRecord(begin, stream));
    Read<<<multiprocessors *(4 << k / 4), Threads, 0, stream>>>((const double2 *)memory, bytes / sizeof(double2), (double *)memory);
    GallopCheckLaunch();
    PetscCallCUDA(cudaEventRecord(end, stream));
    PetscCallCUDA(cudaEventSynchronize(end));
    PetscCallCUDA(cudaEventElapsedTime(&ms, begin, end));
    best = PetscMin(best, ms);
  }
  PetscCallCUDA(cudaEventDestroy(begin));
  PetscCallCUDA(cudaEventDestroy(end));
  PetscCall(GallopWorkspaceFree(memory));
  *bandwidth = (PetscLogDouble)bytes / (1e-3 * best);
  PetscFunctionReturn(PETSC_SUCCESS);
}
