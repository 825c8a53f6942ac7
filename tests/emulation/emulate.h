/* SPDX-License-Identifier: BSD-2-Clause */
/* CUDA on the CPU: a fiber for each thread of the thread blocks that are resident, and all that is not ordered by the kernel in an order that a seed chooses */
#pragma once

#include <petscdevice_cuda.h>
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/vecimpl.h>
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __grid_constant__
#undef __forceinline__
#undef __align__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __align__(n)    __attribute__((aligned(n)))
#define __shared__      static thread_local /* in the program's block of such variables, which is exchanged for each thread block */
#define __CUDA_ARCH__   900

using std::fma;
using std::isfinite;
using std::max;
using std::min;

extern dim3 gridDim, blockDim;

namespace emu
{
enum State { READY, AT_BARRIER, AT_WARP, ENDED };

enum WarpOp { SYNC, SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, REDUCE_MIN, REDUCE_MAX, REDUCE_OR, ALL, ANY, BALLOT, MATCH };

struct Fiber {
  void    *sp;
  char    *stack;
  uint3    id;
  State    state;
  int      lane, op, by, width; /* the warp operation that it is at, */
  unsigned mask;                /* of these lanes, */
  uint64_t in, out;             /* with this value, and what comes out */
  long     phases;              /* of the cluster's barrier */
};

struct Block {
  unsigned           number;
  std::vector<Fiber> fiber;
  std::vector<int>   ready;
  int                ended;
  char              *shared;  /* while another one runs */
  char              *dynamic; /* shared memory of the size that a launch asks for */

  std::vector<std::function<void()>> copies; /* of the copy engine, not done yet */
};

/* What runs */
extern Block *block;
extern Fiber *fiber;
extern int    cluster; /* thread blocks of one */

/* What a test chooses */
extern std::mt19937_64 random;
extern int             resident;   /* thread blocks at once */
extern int             preempt;    /* at one of so many atomic operations another thread goes on, 0 for none */
extern bool            async;      /* the host goes on before kernels have ended */
extern int             processors; /* of the GPU: multiprocessors */
extern int             occupancy;  /* thread blocks of a kernel that one of them has room for */

extern unsigned long kernels; /* that have run */

/* Says what is wrong, in which kernel and thread, and ends the program */
[[noreturn]] void Fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct Cfg {
  unsigned     grid, block, columns; /* thread blocks, threads of each, thread blocks of a row of the grid */
  size_t       shared;
  cudaStream_t stream;
  Cfg(size_t grid, size_t block, size_t shared = 0, cudaStream_t stream = NULL) : grid((unsigned)grid), block((unsigned)block), columns((unsigned)grid), shared(shared), stream(stream) { }
  Cfg(dim3 grid, size_t block, size_t shared = 0, cudaStream_t stream = NULL) : grid(grid.x * grid.y), block((unsigned)block), columns(grid.x), shared(shared), stream(stream) { }
};

void Run(const char *name, const Cfg &, int cluster, const std::function<void()> &);
/* In the order of the stream; Step() runs the first of what waits, if there is something, Sync() all */
void Enqueue(std::function<void()>);

/* What is enqueued while a CUDA graph is recorded */
typedef std::vector<std::function<void()>> Graph;
extern Graph                              *recording;

static inline void LaunchGraph(const Graph &graph)
{
  for (const auto &f : graph) Enqueue(f);
}
bool Step();
void Sync();

template <typename... P>
void Launch(const char *name, const Cfg &cfg, void (*kernel)(P...), std::type_identity_t<P>... args)
{
  const int of = cluster;

  Enqueue([=] { Run(name, cfg, of, [=] { kernel(args...); }); });
}

template <typename... P, typename... A>
cudaError_t LaunchEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A... args)
{
  if (!c->gridDim.x || c->blockDim.x > 1024) return cudaErrorInvalidConfiguration;
  for (unsigned k = 0; k < c->numAttrs; k++)
    if (c->attrs[k].id == cudaLaunchAttributeClusterDimension) cluster = (int)c->attrs[k].val.clusterDim.x;
  Launch("a kernel of cudaLaunchKernelEx()", Cfg(c->gridDim.x, c->blockDim.x, c->dynamicSmemBytes, c->stream), kernel, args...);
  cluster = 1;
  return cudaSuccess;
}

/* Points where another thread may go on */
void     MayYield();
int      Barrier(bool vote = false); /* how many threads have voted */
uint64_t Warp(WarpOp, unsigned mask, uint64_t in, int by = 0, int width = 32);
void     ClusterArrive();
void     ClusterWait();
void    *OfBlock(void *shared, unsigned block); /* the same variable of another thread block of the cluster */

/* An mbarrier in shared memory that counts the bytes which the copy engine writes: those of a phase are expected first */
void ExpectBytes(unsigned long long *barrier, unsigned bytes);
void CopyBytes(unsigned long long *barrier, void *to, const void *from, unsigned bytes);
void WaitForBytes(unsigned long long *barrier, unsigned parity);

/* Bytes that nobody may write to until they are looked at */
void Canary(void *begin, void *end, const char *what);
void CheckCanaries(const char *where);
void ClearCanaries();

/* A copy that ends where memory ends that may be touched; never freed */
void *Guarded(const void *from, size_t bytes, size_t align);
template <typename T>
T *Guarded(const std::vector<T> &v)
{
  return (T *)Guarded(v.data(), v.size() * sizeof(T), alignof(T));
}

template <typename T>
T Shuffle(WarpOp op, unsigned mask, T value, int by, int width)
{
  uint64_t in = 0;

  memcpy(&in, &value, sizeof(T));
  in = Warp(op, mask, in, by, width);
  memcpy((void *)&value, &in, sizeof(T));
  return value;
}

template <typename T, typename F>
T Atomic(T *p, F f)
{
  MayYield();
  const T old      = *(volatile T *)p;
  *(volatile T *)p = f(old);
  MayYield();
  return old;
}
} // namespace emu

/* ---- what kernels call ---- */

#define threadIdx                                (emu::fiber->id)
#define blockIdx                                 (uint3{emu::block->number % gridDim.x, emu::block->number / gridDim.x, 0})
#define cudaLaunchKernelEx                       emu::LaunchEx
#define cudaStreamBeginCapture(stream, mode)     (emu::recording = new emu::Graph(), cudaSuccess)
#define cudaStreamEndCapture(stream, graph)      (*(graph) = (cudaGraph_t)emu::recording, emu::recording = nullptr, cudaSuccess)
#define cudaGraphInstantiate(exec, graph, flags) (*(exec) = (cudaGraphExec_t) new emu::Graph(*(emu::Graph *)(graph)), cudaSuccess)
#define cudaGraphExecUpdate(exec, graph, info)   (*(emu::Graph *)(exec) = *(emu::Graph *)(graph), (void)(info), cudaSuccess)
#define cudaGraphDestroy(graph)                  (delete (emu::Graph *)(graph), cudaSuccess)
#define cudaGraphExecDestroy(exec)               (delete (emu::Graph *)(exec), cudaSuccess)
#define cudaGraphLaunch(exec, stream)            (emu::LaunchGraph(*(emu::Graph *)(exec)), cudaSuccess)

#define __cvta_generic_to_shared(p) ((size_t)(p))

/* clang-format off */
static inline void     __syncthreads() { emu::Barrier(); }
static inline int      __syncthreads_count(int v) { return emu::Barrier(v); }
static inline int      __syncthreads_or(int v) { return emu::Barrier(v) != 0; }
static inline void     __syncwarp(unsigned m = 0xffffffffu) { emu::Warp(emu::SYNC, m, 0); }
static inline unsigned __reduce_min_sync(unsigned m, unsigned v) { return (unsigned)emu::Warp(emu::REDUCE_MIN, m, v); }
static inline int      __reduce_max_sync(unsigned m, int v) { return (int)emu::Warp(emu::REDUCE_MAX, m, (uint64_t)(int64_t)v); }
static inline unsigned __reduce_or_sync(unsigned m, unsigned v) { return (unsigned)emu::Warp(emu::REDUCE_OR, m, v); }
static inline int      __all_sync(unsigned m, int v) { return (int)emu::Warp(emu::ALL, m, v != 0); }
static inline int      __any_sync(unsigned m, int v) { return (int)emu::Warp(emu::ANY, m, v != 0); }
static inline unsigned __ballot_sync(unsigned m, int v) { return (unsigned)emu::Warp(emu::BALLOT, m, v != 0); }
template <typename T> static inline unsigned __match_any_sync(unsigned m, T v) { uint64_t in = 0; memcpy(&in, &v, sizeof(T)); return (unsigned)emu::Warp(emu::MATCH, m, in); }
template <typename T> static inline T __shfl_sync(unsigned m, T v, int by, int width = 32) { return emu::Shuffle(emu::SHFL, m, v, by, width); }
template <typename T> static inline T __shfl_up_sync(unsigned m, T v, int by, int width = 32) { return emu::Shuffle(emu::SHFL_UP, m, v, by, width); }
template <typename T> static inline T __shfl_down_sync(unsigned m, T v, int by, int width = 32) { return emu::Shuffle(emu::SHFL_DOWN, m, v, by, width); }
template <typename T> static inline T __shfl_xor_sync(unsigned m, T v, int by, int width = 32) { return emu::Shuffle(emu::SHFL_XOR, m, v, by, width); }

static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
template <typename T> static inline T __ldg(const T *p) { return *p; }
template <typename T> static inline T __ldcs(const T *p) { return *p; }
template <typename T> static inline T __ldcg(const T *p) { return *p; }

template <typename T> static inline T atomicAdd(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return (T)(old + v); }); }
template <typename T> static inline T atomicMax(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return old > v ? old : v; }); }
template <typename T> static inline T atomicMin(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return old < v ? old : v; }); }
template <typename T> static inline T atomicOr(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return (T)(old | v); }); }
template <typename T> static inline T atomicAnd(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return (T)(old & v); }); }
template <typename T> static inline T atomicExch(T *p, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T) { return v; }); }
template <typename T> static inline T atomicCAS(T *p, std::type_identity_t<T> is, std::type_identity_t<T> v) { return emu::Atomic(p, [=](T old) { return old == is ? v : old; }); }
static inline void __threadfence() { emu::MayYield(); }
static inline void __threadfence_system() { emu::MayYield(); }
static inline void cudaGridDependencySynchronize() { }
static inline void cudaTriggerProgrammaticLaunchCompletion() { }
template <typename K> static inline cudaError_t EmulatedFuncGetAttributes(cudaFuncAttributes *a, K *) { *a = {}; a->ptxVersion = 90; return cudaSuccess; }
template <typename K> static inline cudaError_t EmulatedFuncSetAttribute(K *, cudaFuncAttribute, int) { return cudaSuccess; }
template <typename K> static inline cudaError_t EmulatedOccupancy(int *blocks, K *, int, size_t) { *blocks = emu::occupancy; return cudaSuccess; }
#define cudaFuncGetAttributes EmulatedFuncGetAttributes
#define cudaFuncSetAttribute EmulatedFuncSetAttribute
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor EmulatedOccupancy
/* clang-format on */
