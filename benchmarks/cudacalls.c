/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The calls of CUDA's runtime that a program makes between CudaCallsBegin() and CudaCallsEnd(), with times of the host's thread: for machines without a profiler

  A library for LD_PRELOAD, whose functions go before those of libcudart.so. fewproducts -calls prints what they noted.
*/

#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

typedef struct {
  const char *name;
  double      begin, end; /* in microseconds */
  size_t      size;       /* bytes, or thread blocks of a launch */
  const void *kernel;
} Call;

static Call   calls[1 << 16];
static int    ncalls, noting;
static double start;

static double Now(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

void CudaCallsBegin(void)
{
  ncalls = 0;
  noting = 1;
  start  = Now();
}

/* Microseconds since the call before, microseconds in the call, its name, size and kernel */
void CudaCallsEnd(void)
{
  double last = start;

  noting = 0;
  for (int k = 0; k < ncalls; k++) {
    const Call *c      = &calls[k];
    const char *kernel = "";

    if (c->kernel && cudaFuncGetName(&kernel, c->kernel) != cudaSuccess) kernel = "a kernel";
    printf("#   +%8.1f %8.1f %s %zu %.60s\n", c->begin - last, c->end - c->begin, c->name, c->size, kernel);
    last = c->end;
  }
}

static void Note(const char name[], double begin, size_t size, const void *kernel)
{
  if (noting && ncalls < (int)(sizeof(calls) / sizeof(*calls))) calls[ncalls++] = (Call){name, begin, Now(), size, kernel};
}

/* type parameters, then arguments: the runtime's own function is looked up once */
#define CALL(function, parameters, arguments, what, size, kernel) \
  cudaError_t function parameters \
  { \
    static cudaError_t(*own) parameters; \
    const double begin = Now(); \
    cudaError_t  err; \
\
    if (!own) *(void **)&own = dlsym(RTLD_NEXT, #function); \
    err = (*own)arguments; \
    Note(what, begin, size, kernel); \
    return err; \
  }

CALL(cudaMalloc, (void **p, size_t n), (p, n), "malloc", n, NULL)
CALL(cudaFree, (void *p), (p), "free", 0, NULL)
CALL(cudaMallocFromPoolAsync, (void **p, size_t n, cudaMemPool_t pool, cudaStream_t s), (p, n, pool, s), "malloc from pool", n, NULL)
CALL(cudaMallocAsync, (void **p, size_t n, cudaStream_t s), (p, n, s), "malloc async", n, NULL)
CALL(cudaFreeAsync, (void *p, cudaStream_t s), (p, s), "free async", 0, NULL)
CALL(cudaMallocHost, (void **p, size_t n), (p, n), "malloc host", n, NULL)
CALL(cudaMemcpyAsync, (void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s), (to, from, n, kind, s),
     kind == cudaMemcpyDeviceToHost   ? "copy to host"
     : kind == cudaMemcpyHostToDevice ? "copy from host"
                                      : "copy",
     n, NULL)
CALL(cudaMemcpy, (void *to, const void *from, size_t n, enum cudaMemcpyKind kind), (to, from, n, kind), "copy and wait", n, NULL)
CALL(cudaMemsetAsync, (void *p, int value, size_t n, cudaStream_t s), (p, value, n, s), "set", n, NULL)
CALL(cudaStreamSynchronize, (cudaStream_t s), (s), "wait for stream", 0, NULL)
CALL(cudaDeviceSynchronize, (void), (), "wait for device", 0, NULL)
CALL(cudaEventSynchronize, (cudaEvent_t e), (e), "wait for event", 0, NULL)
CALL(cudaMemGetInfo, (size_t * free, size_t *total), (free, total), "free memory", 0, NULL)
CALL(cudaFuncSetAttribute, (const void *f, enum cudaFuncAttribute a, int value), (f, a, value), "set attribute", 0, f)
CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes * a, const void *f), (a, f), "attributes", 0, f)
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int *n, const void *f, int threads, size_t shared, unsigned int flags), (n, f, threads, shared, flags), "occupancy", 0, f)
CALL(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *f, void **arguments), (config, f, arguments), "launch", config->gridDim.x, f)
CALL(cudaLaunchKernel, (const void *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s), (f, grid, block, arguments, shared, s), "launch", grid.x, f)
/* what nvcc's <<< >>> calls since CUDA 13 */
CALL(__cudaLaunchKernel, (cudaKernel_t f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s), (f, grid, block, arguments, shared, s), "launch", grid.x, (const void *)f)
