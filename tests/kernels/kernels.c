/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Which of the library's kernels a program launches, for `make kernels`

  A library for LD_PRELOAD, whose functions go before those of libcudart.so. To the file that GALLOP_KERNELS names it appends the name of each kernel when it is first launched, and all of them, before the first, to that
  with .all behind its name. CUB's are left out. At the end it appends how many kernels it launched, anyone's, to that with .count.
*/

#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const void *function, *handle; /* by which it is launched */
  const char *name;
  int         launched;
} Kernel;

static Kernel kernels[4096];
static int    nkernels;
static long   count; /* of launches */

static void WriteLine(int file, const char name[])
{
  char line[4096];
  int  len = snprintf(line, sizeof(line), "%s\n", name);

  if (write(file, line, (size_t)len) != len) perror("kernels");
}

static void WriteAll(const char path[])
{
  char name[4096];
  int  file;

  snprintf(name, sizeof(name), "%s.all", path);
  file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (file < 0) return; /* another process has */
  for (int k = 0; k < nkernels; k++) WriteLine(file, kernels[k].name);
  close(file);
}

static void __attribute__((destructor)) WriteCount(void)
{
  const char *path = getenv("GALLOP_KERNELS");
  char        name[4096], number[32];
  int         file;

  if (!path || !count) return;
  snprintf(name, sizeof(name), "%s.count", path);
  snprintf(number, sizeof(number), "%ld", count);
  file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0) return;
  WriteLine(file, number);
  close(file);
}

static void Launched(const void *of)
{
  const char *path = getenv("GALLOP_KERNELS");
  int         file, k = 0;

  count++;
  while (k < nkernels && kernels[k].function != of && kernels[k].handle != of) k++;
  if (!path || k == nkernels || kernels[k].launched) return;
  WriteAll(path);
  file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0) return;
  WriteLine(file, kernels[k].name);
  close(file);
  kernels[k].launched = 1;
}

static void *Own(const char name[])
{
  return dlsym(RTLD_NEXT, name);
}

void __cudaRegisterFunction(void **binary, const char *function, char *device, const char *name, int threads, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
  void (*own)(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *);
  Dl_info at;

  *(void **)&own = Own("__cudaRegisterFunction");
  (*own)(binary, function, device, name, threads, tid, bid, block, grid, warp);
  if (!dladdr(function, &at) || !at.dli_fname || !strstr(at.dli_fname, "libgallop") || strstr(name, "3cub") || strstr(name, "thrust")) return;
  if (nkernels < (int)(sizeof(kernels) / sizeof(*kernels))) kernels[nkernels++] = (Kernel){.function = function, .name = name};
}

/* what nvcc's <<< >>> calls since CUDA 13: handles instead of functions */
cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *function)
{
  cudaError_t (*own)(cudaKernel_t *, const void *), err;

  *(void **)&own = Own("__cudaGetKernel");
  err            = (*own)(handle, function);
  for (int k = 0; k < nkernels; k++)
    if (kernels[k].function == function) kernels[k].handle = *handle;
  return err;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s)
{
  static cudaError_t (*own)(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);

  if (!own) *(void **)&own = Own("__cudaLaunchKernel");
  Launched((const void *)f);
  return (*own)(f, grid, block, arguments, shared, s);
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s)
{
  static cudaError_t (*own)(const void *, dim3, dim3, void **, size_t, cudaStream_t);

  if (!own) *(void **)&own = Own("cudaLaunchKernel");
  Launched(f);
  return (*own)(f, grid, block, arguments, shared, s);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *f, void **arguments)
{
  static cudaError_t (*own)(const cudaLaunchConfig_t *, const void *, void **);

  if (!own) *(void **)&own = Own("cudaLaunchKernelExC");
  Launched(f);
  return (*own)(config, f, arguments);
}
