/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCG: the kernels of an iteration beside the product

  On one process the scalars of the method stay on the GPU. A kernel that sums adds up in two steps, threads of a block, then the sums of blocks in the last block that ends, in an order
  that does not depend on time, so that each run gives the same bits. That block then computes the scalars for the next kernel, and whether to go on: once it says no,
  kernels that the host has started already do nothing. On several processes the host reduces the sums, and gives kernels the factors.
*/

#include <gallop/cudaimpl.h>
#include <cub/block/block_reduce.cuh>
#include "gallopcg.h"

static constexpr int Threads = 256, BlocksPerProcessor = 8;

struct State {
  PetscScalar  beta, betaold, dpi, a, b;
  int          stop;
  unsigned int ended; /* thread blocks of the kernel that runs */
};

/* z.r and the square of the norm, or p.w alone */
struct Sums {
  PetscScalar dot;
  PetscReal   norm;
};

struct AddSums {
  __device__ Sums operator()(const Sums &a, const Sums &b) const { return {a.dot + b.dot, a.norm + b.norm}; }
};

/* What a kernel is told about the iteration that it is part of */
struct Step {
  State          *state;
  Sums           *partial;
  GallopCGRecord *record;
  PetscInt64      number;
  KSPNormType     norm;
  PetscReal       ttol, limit;
  bool            conjugate, first, tests, local;
  PetscScalar     factor; /* a or b, where sums are local */
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
static __device__ __forceinline__ PetscScalar Dot(const Step &s, PetscScalar a, PetscScalar b)
{
#if PetscDefined(USE_COMPLEX)
  if (s.conjugate) return a * PetscConj(b);
#endif
  return a * b;
}

static __device__ __forceinline__ PetscReal Square(PetscScalar a)
{
  return PetscRealPart(a * PetscConj(a));
}

template <int PC>
static __device__ __forceinline__ PetscScalar Preconditioned(const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, PetscScalar r, PetscCount i)
{
  if constexpr (PC == GALLOP_PC_DIAGONAL) return d[i] * r;
  else if constexpr (PC == GALLOP_PC_NONE) return r;
  else return z[i];
}

/* All of a block's threads call it; true in one thread of the grid, the last one, which gets the sums of all */
static __device__ bool AddUp(const Step &s, Sums mine, Sums *all)
{
  typedef cub::BlockReduce<Sums, Threads> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ bool                         last;

  mine = Reduce(storage).Reduce(mine, AddSums());
  if (threadIdx.x == 0) {
    s.partial[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(&s.state->ended, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
  mine = {0, 0};
  for (unsigned int k = threadIdx.x; k < gridDim.x; k += Threads) {
    const Sums from = GallopLoadFromL2(s.partial + k);

    mine.dot += from.dot;
    mine.norm += from.norm;
  }
  mine = Reduce(storage).Reduce(mine, AddSums());
  if (threadIdx.x) return false;
  s.state->ended = 0;
  *all           = mine;
  return true;
}

/* For the host, which waits for the number */
static __device__ void Publish(const Step &s, PetscReal dp, bool stop)
{
  s.record->dpi     = s.state->dpi;
  s.record->beta    = s.state->beta;
  s.record->dp      = dp;
  s.record->stopped = stop;
  __threadfence_system();
  *(volatile PetscInt64 *)&s.record->number = s.number;
}

static __device__ void FinishSums(const Step &s, const Sums &sums)
{
  State          *state = s.state;
  const PetscReal dp    = s.norm == KSP_NORM_NONE ? 0 : s.norm == KSP_NORM_NATURAL ? PetscSqrtReal(PetscAbsScalar(sums.dot)) : PetscSqrtReal(sums.norm);
  bool            stop  = false;

  if (s.local) {
    state->beta = sums.dot;
    Publish(s, sums.norm, false);
    return;
  }
  state->betaold = state->beta;
  state->beta    = sums.dot;
  state->b       = state->beta / state->betaold;
  if (!s.first) { /* the host looks at the first ones */
    stop = !IsFinite(dp) || !IsFinite(state->beta) || state->beta == (PetscScalar)0 || (s.tests && s.norm != KSP_NORM_NONE && (dp <= s.ttol || dp >= s.limit));
#if !PetscDefined(USE_COMPLEX)
    stop = stop || state->beta * state->betaold < 0;
#endif
  }
  state->stop = stop;
  Publish(s, dp, stop);
}

static __device__ void FinishDot(const Step &s, PetscScalar dpi)
{
  State          *state = s.state;
  const PetscReal now = PetscRealPart(dpi), before = PetscRealPart(state->dpi);

  state->dpi = dpi;
  if (s.local) Publish(s, 0, false);
  else if (!IsFinite(dpi) || dpi == (PetscScalar)0 || (!s.first && ((now > 0 && before < 0) || (now < 0 && before > 0)))) {
    state->stop = 1;
    Publish(s, 0, true);
  } else state->a = state->beta / dpi;
}

/* Every kernel starts while the one before it ends, and lets the next one start */
static __device__ __forceinline__ void Enter()
{
  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
}

template <int PC>
static __global__ __launch_bounds__(Threads) void SumsKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, const PetscScalar *__restrict__ r)
{
  const bool ofr  = s.norm == KSP_NORM_UNPRECONDITIONED;
  Sums       mine = {0, 0}, all;

  Enter();
  if (s.state->stop) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i], zi = Preconditioned<PC>(d, z, ri, i);

    mine.dot += Dot(s, zi, ri);
    mine.norm += Square(ofr ? ri : zi);
  }
  if (AddUp(s, mine, &all)) FinishSums(s, all);
}

template <int PC>
static __global__ __launch_bounds__(Threads) void DirectionKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, const PetscScalar *__restrict__ r, PetscScalar *__restrict__ p)
{
  Enter();
  if (s.state->stop) return;

  const PetscScalar b = s.local ? s.factor : s.state->b;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar zi = Preconditioned<PC>(d, z, PC == GALLOP_PC_OTHER ? (PetscScalar)0 : r[i], i);

    p[i] = s.first ? zi : zi + b * p[i];
  }
}

static __global__ __launch_bounds__(Threads) void DotKernel(Step s, PetscCount n, const PetscScalar *__restrict__ p, const PetscScalar *__restrict__ w)
{
  Sums mine = {0, 0}, all;

  Enter();
  if (s.state->stop) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) mine.dot += Dot(s, p[i], w[i]);
  if (AddUp(s, mine, &all)) FinishDot(s, all.dot);
}

/* With sums unless z comes from PCApply(), which needs r first */
template <int PC>
static __global__ __launch_bounds__(Threads) void UpdateKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ p, const PetscScalar *__restrict__ w, PetscScalar *__restrict__ x, PetscScalar *__restrict__ r)
{
  const bool ofr  = s.norm == KSP_NORM_UNPRECONDITIONED;
  Sums       mine = {0, 0}, all;

  Enter();
  if (s.state->stop) return;

  const PetscScalar a = s.local ? s.factor : s.state->a;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i] - a * w[i];

    x[i] += a * p[i];
    r[i] = ri;
    if constexpr (PC != GALLOP_PC_OTHER) {
      const PetscScalar zi = Preconditioned<PC>(d, NULL, ri, i);

      mine.dot += Dot(s, zi, ri);
      mine.norm += Square(ofr ? ri : zi);
    }
  }
  if constexpr (PC != GALLOP_PC_OTHER) {
    if (AddUp(s, mine, &all)) FinishSums(s, all);
  }
}

/* ---- the host ---- */

/* *done is false where there is no room */
PetscErrorCode GallopCGWorkCreate(GallopCGWork *work, PetscBool *done)
{
  int   processors;
  void *record;

  PetscFunctionBegin;
  if (!work->state) {
    PetscCall(GallopDeviceGetProcessors(&processors));
    work->blocks = processors * BlocksPerProcessor;
    PetscCall(GallopDeviceMalloc(sizeof(State), &work->state));
    PetscCall(GallopDeviceMalloc((size_t)work->blocks * sizeof(Sums), &work->partial));
    PetscCall(GallopPinnedMalloc(GALLOP_CG_RECORDS * sizeof(GallopCGRecord), &record));
    work->record = (GallopCGRecord *)record;
    if (record) PetscCall(PetscArrayzero(work->record, GALLOP_CG_RECORDS));
    PetscCallCUDA(GallopKernelOverlaps(DotKernel, &work->overlaps));
  }
  *done = (PetscBool)(work->state && work->partial && work->record);
  if (!*done) PetscCall(GallopCGWorkDestroy(work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopCGWorkDestroy(GallopCGWork *work)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(work->state));
  PetscCall(GallopDeviceFree(work->partial));
  PetscCall(GallopPinnedFree(GALLOP_CG_RECORDS * sizeof(GallopCGRecord), work->record));
  PetscCall(PetscMemzero(work, sizeof(*work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGGo - Kernels work from here on: in a new solve, or in one that the GPU has stopped */
PetscErrorCode GallopCGGo(GallopCGWork *work, PetscBool begins)
{
  State *state = (State *)work->state;

  PetscFunctionBegin;
  if (begins) PetscCall(GallopDeviceZero(state, sizeof(*state)));
  else PetscCall(GallopDeviceZero(&state->stop, sizeof(state->stop)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static Step StepOf(const GallopCGWork *work, const GallopCGMethod *method, PetscBool first, PetscBool tests)
{
  return {(State *)work->state,
          (Sums *)work->partial,
          work->record + work->number % GALLOP_CG_RECORDS,
          work->number,
          method->norm,
          method->ttol,
          method->limit,
          (bool)method->conjugate,
          (bool)first,
          (bool)tests,
          (bool)method->local,
          method->factor};
}

template <typename... Params, typename... Args>
static PetscErrorCode Start(void (*kernel)(Step, PetscCount, Params...), const GallopCGWork *work, const Step &step, PetscInt n, PetscLogDouble flops, Args... args)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopLaunch(kernel, {PetscMin(GallopBlocksFor(n, Threads), (unsigned int)work->blocks), Threads, 1, 0, stream, (bool)work->overlaps}, step, (PetscCount)n, args...));
  PetscCall(PetscLogGpuFlops(flops * n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of kernels that have the preconditioner as their parameter, that of the method */
#define CHOOSE(kernel, pc) (pc == GALLOP_PC_DIAGONAL ? kernel<GALLOP_PC_DIAGONAL> : pc == GALLOP_PC_NONE ? kernel<GALLOP_PC_NONE> : kernel<GALLOP_PC_OTHER>)

/* GallopCGSums - z.r and the norm; begins: of the first residual, which the host looks at */
PetscErrorCode GallopCGSums(GallopCGWork *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscBool begins, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(SumsKernel, method->pc), work, StepOf(work, method, begins, tests), v->n, 4, v->d, v->z, v->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGDirection - p = z + b p, or z in the first iteration */
PetscErrorCode GallopCGDirection(GallopCGWork *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscBool first)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(DirectionKernel, method->pc), work, StepOf(work, method, first, PETSC_FALSE), v->n, 2, v->d, v->z, v->r, v->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGDot - p.w, and the length of the step */
PetscErrorCode GallopCGDot(GallopCGWork *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscBool first)
{
  PetscFunctionBegin;
  PetscCall(Start(DotKernel, work, StepOf(work, method, first, PETSC_FALSE), v->n, 2, v->p, v->w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGUpdate - x += a p and r -= a w, and what GallopCGSums() sums where z needs no PCApply() */
PetscErrorCode GallopCGUpdate(GallopCGWork *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(UpdateKernel, method->pc), work, StepOf(work, method, PETSC_FALSE, tests), v->n,
                  method->pc == GALLOP_PC_OTHER  ? 4
                  : method->pc == GALLOP_PC_NONE ? 8
                                                 : 9,
                  v->d, v->p, v->w, v->x, v->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGWait - Until the GPU has written what it computed under this number. Looks at memory, and asks CUDA from time to time, since a GPU that failed writes nothing. */
PetscErrorCode GallopCGWait(GallopCGWork *work, PetscInt64 number, GallopCGRecord *found)
{
  const GallopCGRecord *record = work->record + number % GALLOP_CG_RECORDS;
  cudaStream_t          stream;
  PetscBool             idle = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  for (unsigned int looks = 1; __atomic_load_n(&record->number, __ATOMIC_ACQUIRE) != number; looks++) {
    PetscCheck(!idle, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The GPU is idle and has not ended the iteration");
    if (looks % 100000 == 0) {
      const cudaError_t err = cudaStreamQuery(stream);

      if (err != cudaErrorNotReady) PetscCallCUDA(err);
      idle = (PetscBool)(err == cudaSuccess);
      (void)cudaGetLastError();
    }
  }
  *found = *record;
  PetscFunctionReturn(PETSC_SUCCESS);
}
