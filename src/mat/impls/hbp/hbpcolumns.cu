/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's column blocks on the GPU: products */

#include "hbpcolumnsdevice.h"
#include "hbploader.cuh"

static constexpr int ProductThreads = 512; /* of a thread block */
static constexpr int Resident       = 2;   /* thread blocks on a multiprocessor: one computes while the other begins a stage */

/* Segments of a thread whose entries are loaded at once: with more, registers would not suffice */
template <typename V>
static constexpr int SegmentsAtOnce = sizeof(V) > 8 ? 3 : 6;

/* What kernels read. Everything but x is loaded once, see GallopLoadOnce(). */
template <typename V, typename I>
struct Arrays {
  I                     m, M, num, tiles, N;
  const V              *data;
  const unsigned int   *col;
  const I              *line, *linePtr, *segPtr;
  const unsigned short *row;
};

static inline Arrays<PetscScalar, PetscInt> ArraysOf(const HBPColumns *c)
{
  return {c->m, c->M, c->num, c->tiles, c->N, c->data, c->col, c->line, c->linePtr, c->segPtr, c->row};
}

/* The lines of a stage as its thread block has them in shared memory: where each begins, and the last one's end */
template <typename I>
struct Lines {
  int num;
  I   first[HBP_MAX_LINES + 1];

  /* Entries of line k, which is that of the segments before this number */
  __device__ __forceinline__ I Size(int k) const { return k < num ? first[k + 1] - first[k] : 0; }
};

/* By all threads of a thread block. All have it after the next barrier. */
template <typename V, typename I>
static __device__ __forceinline__ void GetLines(const Arrays<V, I> &c, I stage, Lines<I> &lines)
{
  const I first = c.linePtr[stage], num = c.linePtr[stage + 1] - first;

  if (threadIdx.x == 0) lines.num = (int)num;
  for (I k = threadIdx.x; k <= num; k += blockDim.x) lines.first[k] = c.line[first + k];
}

/* Adds the sums of a stage's segments to the results of its tile. Each thread has segments of its own, several at once. */
template <typename V, typename I, bool Keep>
static __device__ __forceinline__ void AddStage(const Arrays<V, I> &c, const Lines<I> &lines, const unsigned short *rows, const HBPLoader<Keep> &loader, const V *x, V *results)
{
  static constexpr int Segments = SegmentsAtOnce<V>;
  const I              num      = lines.Size(0);

  for (I base = 0; base < num; base += Segments * ProductThreads) {
    const I own = base + (I)threadIdx.x;
    V       sum[Segments];
    int     row[Segments];

#pragma unroll
    for (int u = 0; u < Segments; u++) {
      sum[u] = V(0);
      row[u] = own + u * ProductThreads < num ? GallopLoadOnce(rows + own + u * ProductThreads) : 0;
    }
    for (int k = 0; base < lines.Size(k); k++) {
      const I      size = lines.Size(k), at = lines.first[k] + own;
      V            value[Segments], xs[Segments];
      unsigned int col[Segments];

#pragma unroll
      for (int u = 0; u < Segments; u++) {
        value[u] = GallopLoadOnceIf(c.data + at + u * ProductThreads, own + u * ProductThreads < size);
        col[u]   = GallopLoadOnceIf(c.col + at + u * ProductThreads, own + u * ProductThreads < size);
      }
#pragma unroll
      for (int u = 0; u < Segments; u++) xs[u] = loader.Load(x + col[u], own + u * ProductThreads < size);
#pragma unroll
      for (int u = 0; u < Segments; u++) sum[u] += value[u] * xs[u];
    }
#pragma unroll
    for (int u = 0; u < Segments; u++)
      if (own + u * ProductThreads < num) results[row[u]] += sum[u];
  }
}

/*
  A thread block takes every (gridDim.x)-th tile, so that the same one computes the same rows in every run. It goes through the blocks of columns forwards and backwards in turn: the last one's x is
  still in L2 when the next tile begins.
*/
template <typename V, typename I, bool Keep>
__global__ static void __launch_bounds__(ProductThreads, Resident) ColumnsKernel(Arrays<V, I> c, GallopVectors<V> v)
{
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Lines<I> lines;
  V *const            results = reinterpret_cast<V *>(memory);
  const HBPLoader<Keep>  loader;
  V                   dot  = V(0);
  bool                back = false;

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  for (I tile = (I)blockIdx.x; tile < c.tiles; tile += (I)gridDim.x, back = !back) {
    const I first = tile * c.N, rows = c.m - first < c.N ? c.m - first : c.N;

    for (I r = threadIdx.x; r < rows; r += ProductThreads) results[r] = V(0);
    for (I b = 0; b < c.num; b++) {
      const I block = back ? c.num - 1 - b : b, stage = tile * c.num + block;

      GetLines(c, stage, lines);
      __syncthreads();
      AddStage(c, lines, c.row + c.segPtr[stage], loader, v.x + (PetscCount)block * c.M, results);
      __syncthreads();
    }
    for (I r = threadIdx.x; r < rows; r += ProductThreads) GallopStore(v, first + r, results[r], &dot);
  }
  GallopFinishDot<ProductThreads>(v, dot);
}

/* A thread block for each stage adds to z what its entries give. z has beta y when the kernel before has ended. */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(ProductThreads) TransposedColumnsKernel(Arrays<V, I> c, GallopVectors<V> v, bool conjugate)
{
  static constexpr int Steps = 2;
  __shared__ Lines<I>         lines;
  const I                     block = (I)(blockIdx.x / (unsigned int)c.tiles), tile = (I)(blockIdx.x % (unsigned int)c.tiles), stage = tile * c.num + block; /* a block of columns after the other */
  const unsigned short *const rows = c.row + c.segPtr[stage];
  V *const                    z    = v.z + (PetscCount)block * c.M;

  GallopLetSuccessorStart();
  GetLines(c, stage, lines);
  __syncthreads();
  GallopWaitForPredecessor();
  for (I g = threadIdx.x; g < lines.Size(0); g += ProductThreads) {
    const V x = v.alpha * v.x[tile * c.N + GallopLoadOnce(rows + g)];

    for (int k = 0; g < lines.Size(k); k += Steps) {
      V            value[Steps];
      unsigned int col[Steps];

#pragma unroll
      for (int l = 0; l < Steps; l++) { /* atomic operations would keep later loads behind them */
        const bool wanted = g < lines.Size(k + l);

        value[l] = wanted ? GallopLoadOnce(c.data + lines.first[k + l] + g) : V(0);
        col[l]   = wanted ? GallopLoadOnce(c.col + lines.first[k + l] + g) : 0;
      }
#pragma unroll
      for (int l = 0; l < Steps; l++)
        if (g < lines.Size(k + l)) GallopAtomicAdd<R>(z + col[l], GallopConjugate(value[l], conjugate) * x);
    }
  }
}

template <bool Keep>
static constexpr auto Product = ColumnsKernel<PetscScalar, PetscInt, Keep>;

static PetscErrorCode GetRoom(const void *kernel, int device, HBPOptions *options)
{
  cudaFuncAttributes attributes;
  int                block, all, reserved, cache, sms;
  size_t             room;

  PetscFunctionBegin;
  PetscCallCUDA(cudaFuncGetAttributes(&attributes, kernel));
  PetscCallCUDA(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  room               = PetscMin((size_t)block, (size_t)(all / Resident - reserved)) - attributes.sharedSizeBytes;
  options->cache     = cache;
  options->tile_rows = PetscMin((PetscInt)(PetscMin(room, (size_t)HBP_TILE_BYTES) / sizeof(PetscScalar)), HBP_MAX_TILE) / WarpSize * WarpSize;
  options->agents    = sms * Resident;
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(options->tile_rows * sizeof(PetscScalar))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsGetRoom_Device - What column blocks are cut for. The kernels may have as much shared memory from then on. */
PetscErrorCode HBPColumnsGetRoom_Device(HBPOptions *options)
{
  int device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  if (options->keep_x) PetscCall(GetRoom((const void *)Product<true>, device, options));
  else PetscCall(GetRoom((const void *)Product<false>, device, options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsPlan - How the product is to be launched */
PetscErrorCode HBPColumnsPlan(HBPColumns *c, const HBPOptions *options)
{
  PetscFunctionBegin;
  PetscCallCUDA(GallopKernelOverlaps(c->keep ? Product<true> : Product<false>, &c->overlaps));
  c->agents = PetscMin(options->agents, c->tiles);
  c->fresh  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsApply_Device - The product */
PetscErrorCode HBPColumnsApply_Device(HBPColumns *c, const GallopProduct *p)
{
  GallopVectors<PetscScalar> v = GallopVectorsOf(p);
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (v.with) v.blocks = (unsigned int)c->agents;
  const GallopGrid grid = {c->agents, ProductThreads, 1, (size_t)c->N * sizeof(PetscScalar), stream, c->overlaps && !c->fresh}; /* new values must have been written */

  if (c->keep) PetscCallCUDA(GallopLaunch(Product<true>, grid, ArraysOf(c), v));
  else PetscCallCUDA(GallopLaunch(Product<false>, grid, ArraysOf(c), v));
  PetscCallCUDA(GallopNotFresh(stream, &c->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsApplyTranspose_Device - The transposed product */
PetscErrorCode HBPColumnsApplyTranspose_Device(HBPColumns *c, PetscInt n, const GallopProduct *p, PetscBool conjugate)
{
  GallopVectors<PetscScalar> v        = GallopVectorsOf(p);
  const bool                 overlaps = c->overlaps && !c->fresh;
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopBegin(n, &v, stream, overlaps));
  PetscCallCUDA(GallopLaunch(TransposedColumnsKernel<PetscScalar, PetscReal, PetscInt>, {HBPStages(c), ProductThreads, 1, 0, stream, overlaps}, ArraysOf(c), v, (bool)conjugate));
  PetscCallCUDA(GallopNotFresh(stream, &c->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}
