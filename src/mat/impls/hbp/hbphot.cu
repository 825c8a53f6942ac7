/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's hot columns on the GPU: products */

#include "hbphotdevice.h"
#include "hbploader.cuh"

static constexpr int        HotThreads  = 1024; /* of a thread block, which has a multiprocessor for itself */
static constexpr int        HotWarps    = HotThreads / WarpSize;
static constexpr PetscCount FewLongRows = 8192; /* of which one thread block adds the sums for a dot product in little time; */
static constexpr PetscInt   RowsPerLong = 64;   /* a larger matrix may have one more for this many rows, as in hbpproduct.cu */

/* Lines that a warp loads at once: with more, registers would not suffice */
template <typename V>
static constexpr int LinesAtOnce = sizeof(V) > 8 ? 4 : 8;

/* What kernels read */
template <typename V, typename I>
struct HotArrays {
  I                     num, groupNum;
  HBPHotClasses         classes;
  const V              *hotData, *coldData;
  const I              *coldCol;
  const unsigned short *hotCol;
  const HBPHotLines    *line;
  const I              *row;
  const unsigned int   *len;
  const I              *hotColumn, *longRow, *longPiece, *pieceLong;
  V                    *partial, *x;
  int                  *arrived;
};

static inline HotArrays<PetscScalar, PetscInt> HotArraysOf(const HBPHot *h)
{
  return {h->num, h->groupNum, h->classes, h->hotData, h->coldData, h->coldCol, h->hotCol, h->line, h->row, h->len, h->hotColumn, h->longRow, h->longPiece, h->pieceLong, h->partial, h->x, h->arrived};
}

/* What a lane has of a group: its part's row, its hot entries and the others, where the group's lines begin, log2 of the lanes of a part, and whether it is the first of them */
template <typename I>
struct HotGroup {
  HBPHotLines line;
  I           row;
  int         lanes, hot, cold;
  bool        first;
};

template <typename V, typename I>
static __device__ __forceinline__ HotGroup<I> GetGroup(const HotArrays<V, I> &h, I group)
{
  const int   lane = threadIdx.x % WarpSize;
  HotGroup<I> own  = {
     {0, 0},
     0, 0, 0, 0, false
  };
  PetscInt     begin, num;
  unsigned int len;

  if (group >= h.groupNum) return own;
  own.lanes      = HBPHotLanes(HBPHotGroup(&h.classes, group, &begin, &num));
  const int slot = lane >> own.lanes, within = HBPLaneInSegment(lane, own.lanes);

  own.line = h.line[group];
  if (slot >= num) return own;
  len       = h.len[begin + slot];
  own.row   = h.row[begin + slot];
  own.hot   = (int)HBPLaneLength((PetscInt)(len & 65535), own.lanes, within);
  own.cold  = (int)HBPLaneLength((PetscInt)(len >> 16), own.lanes, within);
  own.first = !within;
  return own;
}

/* Calls take(value, column, wanted) with a few at a time of the lane's own entries; entry u of them is wanted if wanted(u). All lanes of a warp call it. */
template <typename V, typename Column, typename Take>
static __device__ __forceinline__ void TakeLines(const V *data, const Column *col, int own, Take take)
{
  static constexpr int Steps = LinesAtOnce<V>;
  const int            most  = (int)GallopWarpMax((unsigned int)own);

  for (int k = 0; k < most; k += Steps) {
    V      value[Steps];
    Column at[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++) {
      value[u] = GallopLoadOnceIf(data + (k + u) * WarpSize, k + u < own);
      at[u]    = GallopLoadOnceIf(col + (k + u) * WarpSize, k + u < own);
    }
    take(value, at, [=](int u) { return k + u < own; });
  }
}

/* A piece of a long row has its sum. Who brings the last one of a row adds them all, with the other lanes. */
template <typename V, typename I>
static __device__ __forceinline__ void AddPieces(const HotArrays<V, I> &h, const GallopVectors<V> &v, I piece, V sum)
{
  I row = -1;

  if (piece >= 0) {
    row              = h.pieceLong[piece];
    h.partial[piece] = sum;
    __threadfence();
    if (atomicAdd(h.arrived + row, 1) != (int)(h.longPiece[row + 1] - h.longPiece[row]) - 1) row = -1;
  }
  for (unsigned int last = __ballot_sync(All, row >= 0); last; last &= last - 1) {
    const I t     = GallopShuffle(row, __ffs((int)last) - 1);
    V       total = V(0), dot = V(0);

    __threadfence();
    for (I k = h.longPiece[t] + (I)(threadIdx.x % WarpSize); k < h.longPiece[t + 1]; k += WarpSize) total += GallopLoadFromL2(h.partial + k);
    total = GallopGroupSum(total, WarpSize);
    if (threadIdx.x % WarpSize) continue;
    GallopStore(v, h.longRow[t], total, &dot);
    if (v.with) v.partial[v.blocks + t] = dot;
    h.arrived[t] = 0;
  }
}

/* Puts x of hot columns next to each other */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) GatherKernel(HotArrays<V, I> h, const V *x)
{
  const PetscCount k = GallopGlobalThread();

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  if (k < h.num) h.x[k] = x[h.hotColumn[k]];
}

/* Groups follow each other by the time that they take: warps get them in turn, so that all have about the same work, and neighbours go to different multiprocessors. The same warp has the same ones in every run. */
template <typename V, typename I>
__global__ static void __launch_bounds__(HotThreads, 1) HotKernel(HotArrays<V, I> h, GallopVectors<V> v)
{
  extern __shared__ __align__(16) unsigned char memory[];
  V *const                                      xs     = reinterpret_cast<V *>(memory);
  const int                                     lane   = threadIdx.x % WarpSize;
  const I                                       stride = (I)gridDim.x * HotWarps;
  const HBPLoader<false>                        loader;
  V                                             dot   = V(0);
  I                                             group = (I)(threadIdx.x / WarpSize) * (I)gridDim.x + (I)blockIdx.x;
  HotGroup<I>                                   next  = GetGroup(h, group);

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  for (I k = threadIdx.x; k < h.num; k += HotThreads) xs[k] = h.x[k];
  __syncthreads();
  for (; group < h.groupNum; group += stride) {
    const HotGroup<I> own = next;
    V                 sum = V(0);

    next = GetGroup(h, group + stride);
    TakeLines(h.hotData + (PetscCount)own.line.hot * WarpSize + lane, h.hotCol + (PetscCount)own.line.hot * WarpSize + lane, own.hot, [&](const V *value, const unsigned short *col, auto wanted) {
      V x[LinesAtOnce<V>];

#pragma unroll
      for (int u = 0; u < LinesAtOnce<V>; u++) x[u] = xs[col[u]]; /* the first one's where none is wanted: a condition would have each load wait for the one before */
#pragma unroll
      for (int u = 0; u < LinesAtOnce<V>; u++) sum += wanted(u) ? value[u] * x[u] : V(0);
    });
    TakeLines(h.coldData + (PetscCount)own.line.cold * WarpSize + lane, h.coldCol + (PetscCount)own.line.cold * WarpSize + lane, own.cold, [&](const V *value, const I *col, auto wanted) {
      V x[LinesAtOnce<V>];

#pragma unroll
      for (int u = 0; u < LinesAtOnce<V>; u++) x[u] = loader.Load(v.x + col[u], wanted(u));
#pragma unroll
      for (int u = 0; u < LinesAtOnce<V>; u++) sum += value[u] * x[u];
    });
    for (int by = 1 << own.lanes >> 1; by; by /= 2) sum += GallopShuffleDown(sum, by, WarpSize);
    if (own.first && own.row >= 0) GallopStore(v, own.row, sum, &dot);
    if (__any_sync(All, own.row < 0)) AddPieces(h, v, own.first && own.row < 0 ? -1 - own.row : (I)-1, sum);
  }
  GallopFinishDot<HotThreads>(v, dot);
}

/* A warp for each group adds to z what its entries give. z has beta y when the kernel before has ended. */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(Threads) TransposedHotKernel(HotArrays<V, I> h, GallopVectors<V> v, bool conjugate)
{
  const int         lane = threadIdx.x % WarpSize;
  const HotGroup<I> own  = GetGroup(h, (I)(GallopGlobalThread() / WarpSize));
  V                 x    = V(0);

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  if (own.hot + own.cold > 0) x = v.alpha * v.x[own.row >= 0 ? own.row : h.longRow[h.pieceLong[-1 - own.row]]];
  TakeLines(h.hotData + (PetscCount)own.line.hot * WarpSize + lane, h.hotCol + (PetscCount)own.line.hot * WarpSize + lane, own.hot, [&](const V *value, const unsigned short *col, auto wanted) {
#pragma unroll
    for (int u = 0; u < LinesAtOnce<V>; u++)
      if (wanted(u)) GallopAtomicAdd<R>(v.z + h.hotColumn[col[u]], GallopConjugate(value[u], conjugate) * x);
  });
  TakeLines(h.coldData + (PetscCount)own.line.cold * WarpSize + lane, h.coldCol + (PetscCount)own.line.cold * WarpSize + lane, own.cold, [&](const V *value, const I *col, auto wanted) {
#pragma unroll
    for (int u = 0; u < LinesAtOnce<V>; u++)
      if (wanted(u)) GallopAtomicAdd<R>(v.z + col[u], GallopConjugate(value[u], conjugate) * x);
  });
}

/* HBPHotGetRoom_Device - Hot columns that the GPU has room for in shared memory, which the kernel may take from then on */
PetscErrorCode HBPHotGetRoom_Device(HBPOptions *options)
{
  cudaFuncAttributes attributes;
  int                device, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaFuncGetAttributes(&attributes, HotKernel<PetscScalar, PetscInt>));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  options->hot_room = PetscMin(HBP_HOT_MOST, (PetscInt)((most - attributes.sharedSizeBytes) / sizeof(PetscScalar)));
  PetscCallCUDA(cudaFuncSetAttribute(HotKernel<PetscScalar, PetscInt>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(options->hot_room * sizeof(PetscScalar))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotPlan - How the product is to be launched */
PetscErrorCode HBPHotPlan(HBPHot *h)
{
  int device, sms;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(GallopKernelOverlaps(HotKernel<PetscScalar, PetscInt>, &h->overlaps));
  h->blocks = (int)PetscMin((PetscInt)sms, (h->groupNum - 1) / HotWarps + 1);
  h->fresh  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotDotParts - Each thread block leaves a sum, and each long row, since any warp may be the last that has a piece of it */
PetscCount HBPHotDotParts(const HBPHot *h)
{
  return h->longNum > FewLongRows + h->m / RowsPerLong ? 0 : (PetscCount)h->blocks + h->longNum;
}

/* HBPHotApply_Device - The product */
PetscErrorCode HBPHotApply_Device(HBPHot *h, const GallopProduct *p)
{
  const HotArrays<PetscScalar, PetscInt> a        = HotArraysOf(h);
  GallopVectors<PetscScalar>             v        = GallopVectorsOf(p);
  const bool                             overlaps = h->overlaps && !h->fresh; /* new values must have been written */
  cudaStream_t                           stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (v.with) {
    v.blocks = (unsigned int)h->blocks;
    v.parts  = (unsigned int)h->longNum;
  }
  PetscCallCUDA(GallopLaunch(GatherKernel<PetscScalar, PetscInt>, {GallopBlocksFor(h->num, Threads), Threads, 1, 0, stream, overlaps}, a, v.x));
  PetscCallCUDA(GallopLaunch(HotKernel<PetscScalar, PetscInt>, {h->blocks, HotThreads, 1, (size_t)h->num * sizeof(PetscScalar), stream, (bool)h->overlaps}, a, v));
  PetscCallCUDA(GallopNotFresh(stream, &h->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotApplyTranspose_Device - The transposed product */
PetscErrorCode HBPHotApplyTranspose_Device(HBPHot *h, const GallopProduct *p, PetscBool conjugate)
{
  GallopVectors<PetscScalar> v        = GallopVectorsOf(p);
  const bool                 overlaps = h->overlaps && !h->fresh;
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopBegin(h->n, &v, stream, overlaps));
  PetscCallCUDA(GallopLaunch(TransposedHotKernel<PetscScalar, PetscReal, PetscInt>, {GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 1, 0, stream, overlaps}, HotArraysOf(h), v, (bool)conjugate));
  PetscCallCUDA(GallopNotFresh(stream, &h->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}
