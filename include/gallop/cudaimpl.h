#pragma once

/* For .cu files only */

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1

#include <petscdevice_cuda.h>
#include <gallop/deviceimpl.h>

static constexpr int WarpSize = 32;

/* What every launcher does after a launch */
#define GallopCheckLaunch() PetscCallCUDA(cudaGetLastError())

/*
  overlaps: the kernel may start while the one before it in the stream ends, and must call cudaGridDependencySynchronize() before it touches what others write.
  cluster:  GPU blocks of a cluster; blocks that fill up the last one have numbers beyond `blocks`.
  Both need compute capability 9.0.
*/
template <typename... Params, typename... Args>
static inline cudaError_t GallopLaunch(void (*kernel)(Params...), PetscCount blocks, int threads, int cluster, cudaStream_t stream, bool overlaps, Args... args)
{
  cudaLaunchAttribute attrs[2] = {};
  cudaLaunchConfig_t  config   = {};

  attrs[0].id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  attrs[0].val.programmaticStreamSerializationAllowed = 1;
  attrs[1].id                                         = cudaLaunchAttributeClusterDimension;
  attrs[1].val.clusterDim.x                           = cluster;
  attrs[1].val.clusterDim.y                           = 1;
  attrs[1].val.clusterDim.z                           = 1;
  config.gridDim                                      = dim3((unsigned int)((blocks + cluster - 1) / cluster * cluster));
  config.blockDim                                     = dim3((unsigned int)threads);
  config.stream                                       = stream;
  config.attrs                                        = overlaps ? attrs : attrs + 1;
  config.numAttrs                                     = (overlaps ? 1 : 0) + (cluster > 1 ? 1 : 0);
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}
