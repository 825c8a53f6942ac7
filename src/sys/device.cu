#include <gallop/cudaimpl.h>

/* Whether this process has a GPU that PETSc may use. Asked once: the answer must not change under existing matrices. */
PetscErrorCode GallopDeviceAvailable(PetscBool *available)
{
  static int known = -1;

  PetscFunctionBegin;
  if (known < 0) {
    int       count = 0;
    char      enable[16];
    PetscBool set, none = PETSC_FALSE;

    PetscCall(PetscOptionsGetString(NULL, NULL, "-device_enable", enable, sizeof(enable), &set));
    if (set) PetscCall(PetscStrcmp(enable, "none", &none));
    if (none || cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    (void)cudaGetLastError(); /* no driver is no error here */
    known = count > 0;
  }
  *available = (PetscBool)known;
  if (known) PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **ptr)
{
  cudaError_t err;

  PetscFunctionBegin;
  *ptr = NULL;
  err  = cudaMalloc(ptr, PetscMax(bytes, (size_t)1));
  if (err == cudaErrorMemoryAllocation) {
    *ptr = NULL;
    (void)cudaGetLastError(); /* the caller goes on without */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(err);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceFree(void *ptr)
{
  PetscFunctionBegin;
  if (ptr) PetscCallCUDA(cudaFree(ptr));
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

PetscErrorCode GallopDeviceCopyOut(void *host, const void *device, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
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
