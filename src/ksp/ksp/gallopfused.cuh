/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Kernels of fused solvers

  On one process the scalars of the method stay on the GPU. A kernel that sums adds up in two steps, threads of a block, then the sums of blocks in the last block that ends, in an order
  that does not depend on time, so that each run gives the same bits. That block then computes the scalars for the next kernel, and whether to go on: once it says no,
  kernels that the host has started already do nothing. On several processes the last block adds up the sums of all, as gallopgroup.cuh has it, and goes on as on one: all get the same bits. Or the
  host reduces the sums, and gives kernels the factors.
*/

#include <gallop/cudaimpl.h>
#include <cub/block/block_reduce.cuh>
#include "gallopfused.h"
#include "gallopgroup.cuh"

static constexpr int Threads = 256, BlocksPerProcessor = 8;

/* What the scalars of each method begin with */
struct FusedState {
  int          stop;
  unsigned int ended;        /* thread blocks of the kernel that runs */
  unsigned int productended; /* and of a product with a dot product */
  PetscInt64   number;       /* that results of a graph count from */
};
static constexpr size_t StateBytes = 256;

/* A dot product and the square of a norm */
struct Sums {
  PetscScalar dot;
  PetscReal   norm;
};

static __device__ __forceinline__ Sums operator+(const Sums &a, const Sums &b)
{
  return {a.dot + b.dot, a.norm + b.norm};
}

/* Room for the sums of a block, of this kind or another */
static constexpr size_t SumsBytes = 4 * sizeof(PetscScalar);

struct AddSums {
  template <typename S>
  __device__ S operator()(const S &a, const S &b) const
  {
    return a + b;
  }
};

/* What a kernel is told about the iteration that it is part of; State begins with FusedState */
template <typename State>
struct FusedStep {
  State        *state;
  void         *partial;
  DeviceGroup  *group; /* NULL where sums are this process's, or it is the only one */
  GallopRecord *records;
  PetscInt64    number;   /* of the results; in a graph how far beyond the GPU's count */
  bool          recorded; /* in a graph, */
  bool          advances; /* whose last results are counted from next */
};

static __device__ __forceinline__ bool IsFinite(PetscReal a)
{
  return isfinite(a);
}

#if PetscDefined(USE_COMPLEX)
static __device__ __forceinline__ bool IsFinite(PetscScalar a)
{
  return isfinite(PetscRealPart(a)) && isfinite(PetscImaginaryPart(a));
}
#endif

/* What PETSc's VecDot(a, b) or VecTDot(a, b) adds */
static __device__ __forceinline__ PetscScalar Dot(bool conjugate, PetscScalar a, PetscScalar b)
{
#if PetscDefined(USE_COMPLEX)
  if (conjugate) return a * PetscConj(b);
#endif
  (void)conjugate;
  return a * b;
}

static __device__ __forceinline__ PetscReal Square(PetscScalar a)
{
  return PetscRealPart(a * PetscConj(a));
}

/* All of a block's threads call it, in kernels that enter with sums; true in one thread of the grid, the last one, which gets the sums of all */
template <typename State, typename S>
static __device__ bool AddUp(const FusedStep<State> &s, S mine, S *all)
{
  static_assert(sizeof(S) <= SumsBytes, "room for the sums of a block");
  typedef cub::BlockReduce<S, Threads>    Reduce;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ bool                         last;
  S *const                                partial = (S *)s.partial;

  mine = Reduce(storage).Reduce(mine, AddSums());
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(&s.state->fused.ended, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
  mine = S();
  for (unsigned int k = threadIdx.x; k < gridDim.x; k += Threads) mine = mine + GallopLoadFromL2(partial + k);
  mine = Reduce(storage).Reduce(mine, AddSums());
  if (s.group && threadIdx.x < 32) {
    mine = SumOfProcesses(s.group, mine);
    GallopLetSuccessorStart();
  }
  if (threadIdx.x) return false;
  s.state->fused.ended = 0;
  *all                 = mine;
  return true;
}

template <typename State>
static __device__ __forceinline__ PetscInt64 NumberOf(const FusedStep<State> &s)
{
  return s.recorded ? s.state->fused.number + s.number : s.number;
}

/* For the host, which waits for the number */
template <typename State>
static __device__ void Publish(const FusedStep<State> &s, PetscScalar sum0, PetscScalar sum1, PetscReal norm, int stopped)
{
  const PetscInt64    number = NumberOf(s);
  GallopRecord *const record = s.records + number % GALLOP_RECORDS;

  s.state->fused.stop = stopped;
  if (s.advances && !stopped) s.state->fused.number = number;
  record->sum[0]  = sum0;
  record->sum[1]  = sum1;
  record->norm    = norm;
  record->stopped = stopped;
  __threadfence_system();
  *(volatile PetscInt64 *)&record->number = number;
}

/*
  Every kernel starts while the one before it ends, and lets the next one start: at once, or, if it waits for sums of other processes, when these are there. For the next one takes all room of the GPU, which a process that
  shares it may need for what others wait for. False where the solve is over.
*/
template <typename State>
static __device__ __forceinline__ bool Enter(const FusedStep<State> &s, bool sums = false)
{
  if (!sums || !s.group) GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  return !s.state->fused.stop;
}

template <typename State>
static FusedStep<State> FusedStepOf(const GallopFused *work)
{
  static_assert(sizeof(State) <= StateBytes, "room for the scalars of a method");
  const GallopGraph *g = &work->graph;

  return {(State *)work->state, work->partial, (DeviceGroup *)work->group, work->record, g->records ? work->number - g->from : work->number, (bool)g->records, g->records && g->last};
}

/* Starts a kernel over n entries; flops for each */
template <typename Step, typename... Params, typename... Args>
static PetscErrorCode Start(void (*kernel)(Step, PetscCount, Params...), const GallopFused *work, const Step &step, PetscInt n, PetscLogDouble flops, Args... args)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopLaunch(kernel, {PetscMin(GallopBlocksFor(n, Threads), (unsigned int)work->blocks), Threads, 1, 0, stream, (bool)work->overlaps}, step, (PetscCount)n, args...));
  PetscCall(PetscLogGpuFlops(flops * n));
  PetscFunctionReturn(PETSC_SUCCESS);
}
