#pragma once

/* For .cu files only */

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1

#include <petscdevice_cuda.h>
#include <gallop/deviceimpl.h>

static constexpr int WarpSize = 32;

/* What every launcher does after a launch */
#define GallopCheckLaunch() PetscCallCUDA(cudaGetLastError())

/* The kernel may start while the one before it in the stream ends, and must call cudaGridDependencySynchronize() before it touches what others write; needs compute capability 9.0 */
template <typename... Params, typename... Args>
static inline cudaError_t GallopLaunchOverlapping(void (*kernel)(Params...), PetscCount blocks, int threads, cudaStream_t stream, bool overlaps, Args... args)
{
  cudaLaunchAttribute early  = {};
  cudaLaunchConfig_t  config = {};

  early.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim                                   = dim3((unsigned int)blocks);
  config.blockDim                                  = dim3((unsigned int)threads);
  config.stream                                    = stream;
  config.attrs                                     = &early;
  config.numAttrs                                  = overlaps;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}
