/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPGMRES: the two kernels of classical Gram-Schmidt */

#include "gallopfused.cuh"
#include "gallopgmres.h"

/* Vectors whose addresses one launch takes, in 1 KB of parameters, and whose factors in as much or, where they are complex, twice as much; with more there are several launches */
static constexpr int VectorsPerLaunch = 128;

/* Vectors of a thread block, which reads w once for all of them: a sum and a load for each are in registers */
static constexpr int MostPerGroup = PetscDefined(USE_COMPLEX) ? 8 : 16, LeastPerGroup = 4, MostGroups = VectorsPerLaunch / 8;

/* Thread blocks per multiprocessor that have registers for as many vectors, without spills. With each choice 20 to 32 loads are in flight for a thread's place, half of them where they are twice as long. */
static constexpr int BlocksWith(int vectors)
{
  return PetscDefined(USE_COMPLEX) ? (vectors <= 4 ? 3 : 2) : vectors <= 4 ? 5 : vectors <= 8 ? 3 : 2;
}

/* Loads that a thread of the second kernel has in flight */
static constexpr int AtOnce = 8;

struct State {
  FusedState   fused;
  unsigned int groupended[MostGroups]; /* thread blocks of the first kernel, */
  unsigned int groupsended;            /* and groups */
};

struct Step : FusedStep<State> {
  bool publishes; /* the kernel's end is what the host waits for */
};

struct Vectors {
  const PetscScalar *v[VectorsPerLaunch];
};

/* That the host gives, where it has reduced them; else they are on the GPU */
template <bool Given>
struct Factors {
  PetscScalar h[Given ? VectorsPerLaunch : 1];
};

/*
  h[j] = <v_j, w>, for groups of vectors: blocks thread blocks each, whose sums the last one of the group adds in their order

  Where a group has fewer vectors than there are registers for, the last vector is read again, from the cache: loads that depend on a condition would wait for each other.
*/
template <int Most>
static __global__ __launch_bounds__(Threads, BlocksWith(Most)) void DotsKernel(Step s, PetscCount n, const __grid_constant__ Vectors vectors, int nv, int pergroup, unsigned int blocks, const PetscScalar *w, PetscScalar *partial, PetscScalar *h, PetscScalar *result)
{
  constexpr int      Warps = Threads / WarpSize;
  const int          group = (int)(blockIdx.x / blocks), first = group * pergroup, count = min(pergroup, nv - first), lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  const unsigned int block = blockIdx.x % blocks;
  const PetscScalar *v[Most];
  PetscScalar        sum[Most];

  __shared__ PetscScalar ofwarp[Warps][Most];
  __shared__ bool        last;

  if (!Enter(s)) return;
#pragma unroll
  for (int j = 0; j < Most; j++) {
    v[j]   = vectors.v[first + min(j, count - 1)];
    sum[j] = 0;
  }
  for (PetscCount i = (PetscCount)block * Threads + threadIdx.x; i < n; i += (PetscCount)blocks * Threads) {
    const PetscScalar wi = w[i];

#pragma unroll
    for (int j = 0; j < Most; j++) sum[j] += Dot(true, wi, v[j][i]);
  }
#pragma unroll
  for (int j = 0; j < Most; j++) {
    sum[j] = GallopGroupSum(sum[j], WarpSize);
    if (lane == 0) ofwarp[warp][j] = sum[j];
  }
  __syncthreads();
  if ((int)threadIdx.x < count) {
    PetscScalar mine = 0;

    for (int k = 0; k < Warps; k++) mine += ofwarp[k][threadIdx.x];
    partial[(size_t)(first + threadIdx.x) * blocks + block] = mine;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&s.state->groupended[group], 1u) == blocks - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int j = first + warp; j < first + count; j += Warps) {
    PetscScalar mine = 0;

    for (unsigned int k = lane; k < blocks; k += WarpSize) mine += GallopLoadFromL2(partial + (size_t)j * blocks + k);
    mine = GallopGroupSum(mine, WarpSize);
    if (lane == 0) {
      h[j]      = mine;
      result[j] = mine;
      __threadfence_system();
    }
  }
  __syncthreads();
  if (threadIdx.x) return;
  s.state->groupended[group] = 0;
  if (!s.publishes) return;
  __threadfence_system();
  if (atomicAdd(&s.state->groupsended, 1u) != gridDim.x / blocks - 1) return;
  s.state->groupsended = 0;
  Publish(s, 0, 0, 0, 0);
}

/*
  w -= sum of h[j] v_j for nv vectors, from the one with number first on, and the square of w's norm. As PETSc's does, w stays as it is where one of all nh factors on the GPU is not a number; those that
  are given the host has looked at.
*/
template <bool Given>
static __global__ __launch_bounds__(Threads, PetscDefined(USE_COMPLEX) ? 2 : 4) void SubtractKernel(Step s, PetscCount n, const __grid_constant__ Vectors vectors, const __grid_constant__ Factors<Given> given, int nv, int first, int nh, const PetscScalar *h, PetscScalar *w)
{
  __shared__ PetscScalar factor[VectorsPerLaunch + AtOnce];
  __shared__ bool        stays;
  Sums                   mine = {0, 0}, all;

  if (!Enter(s)) return;
  if (threadIdx.x == 0) stays = false;
  __syncthreads();
  for (int j = threadIdx.x; Given && j < nv; j += Threads) factor[j] = given.h[j];
  for (int j = threadIdx.x; !Given && j < nh; j += Threads) {
    const PetscScalar hj = h[j];

    if (j >= first && j < first + nv) factor[j - first] = hj;
    if (!IsFinite(hj)) stays = true;
  }
  if (threadIdx.x < AtOnce) factor[nv + threadIdx.x] = 0;
  __syncthreads();
  for (PetscCount i = stays ? n : GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    PetscScalar wi = w[i];

    for (int j = 0; j < nv; j += AtOnce) {
      PetscScalar vi[AtOnce];

#pragma unroll
      for (int k = 0; k < AtOnce; k++) vi[k] = vectors.v[min(j + k, nv - 1)][i];
#pragma unroll
      for (int k = 0; k < AtOnce; k++) wi -= factor[j + k] * vi[k];
    }
    w[i] = wi;
    mine.norm += Square(wi);
  }
  if (s.publishes && AddUp(s, mine, &all)) Publish(s, 0, 0, all.norm, 0);
}

/* ---- the host ---- */

/* GallopProjectionCreate - Room for the factors of as many vectors; *done is false where there is none */
PetscErrorCode GallopProjectionCreate(GallopProjection *p, PetscInt vectors, PetscBool *done)
{
  int   processors;
  void *partial, *h, *result;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  if (p->room >= vectors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopProjectionDestroy(p));
  PetscCall(GallopDeviceGetProcessors(&processors));
  PetscCall(GallopDeviceMalloc(((size_t)processors * 32 + VectorsPerLaunch) * sizeof(PetscScalar), &partial)); /* Most BlocksWith(Most) is at most 32 */
  PetscCall(GallopDeviceMalloc(vectors * sizeof(PetscScalar), &h));
  PetscCall(GallopPinnedMalloc((vectors + 1) * sizeof(PetscScalar), &result));
  p->room    = vectors;
  p->partial = (PetscScalar *)partial;
  p->h       = (PetscScalar *)h;
  p->result  = (PetscScalar *)result;
  *done      = (PetscBool)(partial && h && result);
  if (!*done) PetscCall(GallopProjectionDestroy(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopProjectionDestroy(GallopProjection *p)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(p->partial));
  PetscCall(GallopDeviceFree(p->h));
  PetscCall(GallopPinnedFree((p->room + 1) * sizeof(PetscScalar), p->result));
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int VectorsOf(PetscInt nv, PetscInt first, const PetscScalar *const v[], Vectors *vectors)
{
  const int count = (int)PetscMin(nv - first, VectorsPerLaunch);

  for (int j = 0; j < count; j++) vectors->v[j] = v[first + j];
  return count;
}

template <int Most>
static PetscErrorCode LaunchDots(const GallopFused *work, const GallopProjection *p, const Step &step, PetscInt n, PetscInt first, int nv, const Vectors &vectors, const PetscScalar *w)
{
  const int          groups = (nv + Most - 1) / Most, pergroup = (nv + groups - 1) / groups;
  const unsigned int most = PetscMax(work->blocks / BlocksPerProcessor * BlocksWith(Most) / groups, 1), blocks = PetscMin(GallopBlocksFor(n, Threads), most);
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopLaunch(DotsKernel<Most>, {(PetscCount)groups * blocks, Threads, 1, 0, stream, (bool)work->overlaps}, step, (PetscCount)n, vectors, nv, pergroup, blocks, w, p->partial, p->h + first, p->result + first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopProjectionDots - The factors of nv vectors of n entries, for GallopProjectionSubtract(). The host may wait for them, in p->result, where publishes is true; else for what comes next. */
PetscErrorCode GallopProjectionDots(GallopFused *work, const GallopProjection *p, PetscInt n, PetscInt nv, const PetscScalar *const v[], const PetscScalar *w, PetscBool publishes)
{
  Vectors vectors = {};

  PetscFunctionBegin;
  for (PetscInt first = 0; first < nv; first += VectorsPerLaunch) {
    const int  count = VectorsOf(nv, first, v, &vectors);
    const Step step  = {FusedStepOf<State>(work), publishes && first + count == nv};

    if (count <= LeastPerGroup) PetscCall(LaunchDots<LeastPerGroup>(work, p, step, n, first, count, vectors, w));
    else if (count <= 8) PetscCall(LaunchDots<8>(work, p, step, n, first, count, vectors, w));
    else PetscCall(LaunchDots<MostPerGroup>(work, p, step, n, first, count, vectors, w));
  }
  PetscCall(PetscLogGpuFlops(2.0 * nv * n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopProjectionSubtract - From w all vectors times their factors, those given or what GallopProjectionDots() has left, and the square of w's norm, for which the host waits */
PetscErrorCode GallopProjectionSubtract(GallopFused *work, const GallopProjection *p, PetscInt n, PetscInt nv, const PetscScalar *const v[], const PetscScalar given[], PetscScalar *w)
{
  Vectors        vectors = {};
  Factors<true>  factors = {};
  Factors<false> none    = {};

  PetscFunctionBegin;
  for (PetscInt first = 0; first < nv; first += VectorsPerLaunch) {
    const int            count = VectorsOf(nv, first, v, &vectors);
    const Step           step  = {FusedStepOf<State>(work), first + count == nv};
    const PetscLogDouble flops = 2.0 * count + (step.publishes ? 2 : 0);

    for (int j = 0; given && j < count; j++) factors.h[j] = GallopScalarAt(given + first + j);
    if (given) PetscCall(Start(SubtractKernel<true>, work, step, n, flops, vectors, factors, count, (int)first, (int)nv, p->h, w));
    else PetscCall(Start(SubtractKernel<false>, work, step, n, flops, vectors, none, count, (int)first, (int)nv, p->h, w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
