/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's transposed products on the GPU: warps walk the groups as the SpMV part does, and add what entries give to z */

#include "hbpcolumnsdevice.h"
#include "hbphotdevice.h"
#include "hbpkernels.cuh"

/* Thread blocks on a multiprocessor: with more, registers would not suffice */
template <typename V, typename I>
static constexpr int Resident = sizeof(V) > 8 ? 4
                              : sizeof(I) > 4 ? 5
                                              : 7;

/*
  Adds product to z[place] in lanes that want it; all lanes of a warp call it. Atomic operations on one number go one after the other. So where all lanes have the same column, as in nearly
  full columns, their sum is added.
*/
template <typename R, typename V, typename I>
static __device__ __forceinline__ void AddEntry(V *z, I place, V product, bool wanted)
{
  const I first = GallopShuffle(place, 0);

  if (__all_sync(All, wanted && place == first)) {
    product = GallopGroupSum(product, WarpSize);
    wanted  = threadIdx.x % WarpSize == 0;
  }
  if (wanted) GallopAtomicAdd<R>(z + place, product);
}

/* Adds a lane's entries to z, for TakeGroup(). alpha is multiplied last: else the warp would wait for x of the row before it asks for entries. */
template <typename V, typename R, typename I, int Where>
struct Scatter {
  V       *z;
  const I *map;
  V        x, alpha;
  bool     conjugate;

  template <int Steps, typename Wanted>
  __device__ __forceinline__ void Take(const V *value, const unsigned short *col, Wanted wanted) const
  {
    I place[Steps];

    GetPlaces<Where, Steps>(map, col, wanted, place);
#pragma unroll
    for (int u = 0; u < Steps; u++) AddEntry<R>(z, place[u], alpha * (GallopConjugate(value[u], conjugate) * x), wanted(u));
  }
  __device__ __forceinline__ Scatter Share(unsigned int live, int many) const
  {
    for (int k = (int)threadIdx.x % WarpSize % many; k; k--) live &= live - 1;
    return {z, map, GallopShuffle(x, __ffs((int)live) - 1), alpha, conjugate};
  }
  __device__ __forceinline__ void Collect(const Scatter &, unsigned int, int, bool) const { }
};

/* What a warp does with groups, for WalkPart() */
template <typename V, typename R, typename I, int Where>
class Transposed {
public:
  __device__ __forceinline__      Transposed(const HBPArrays<V, I> &h, const GallopVectors<V> &v, bool conjugate) : h_(h), v_(v), conjugate_(conjugate) { }
  __device__ __forceinline__ void Begin(I col) { z_ = v_.z + (PetscCount)col * h_.M; }
  __device__ __forceinline__ void Group(const Groups<I> &groups, int t, const Lane &own) const
  {
    const bool              used    = (int)threadIdx.x % WarpSize < LanesUsed(groups.lanes[t]);
    Scatter<V, R, I, Where> scatter = {z_, Where == MAPPED ? MapOf(h_, groups, t) : nullptr, used ? v_.x[groups.row[t] + HBPOutputRow(own.hash)] : V(0), v_.alpha, conjugate_};

    TakeGroup(h_, groups, t, own, scatter);
  }

  /* Groups of single entries: segments follow each other as their entries do */
  __device__ __forceinline__ void Singles(const Groups<I> &groups, int t, int stop) const
  {
    static constexpr int        Steps = 4;
    const int                   lane  = threadIdx.x % WarpSize;
    const I                     begin = groups.ptr[t], end = groups.ptr[stop], mine = groups.ptr[lane], row = groups.row[lane];
    const unsigned short *const hashes = h_.output_hash + (groups.seg[t] - begin);
    int                         before = t - 1; /* group of the entry before */

    for (I e = begin; e < end; e += Steps * WarpSize) {
      V              value[Steps], x[Steps];
      unsigned short col[Steps], hash[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I at = e + u * WarpSize + lane;

        hash[u]  = at < end ? GallopLoadOnce(hashes + at) : 0;
        value[u] = at < end ? GallopLoadOnce(h_.data + at) : V(0);
        col[u]   = at < end ? GallopLoadOnce(h_.col + at) : 0;
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I line = e + u * WarpSize, from = GallopShuffle(row, GroupOfSingle(t, stop, mine - line, &before)) + HBPOutputRow(hash[u]);

        x[u] = line + lane < end ? v_.x[from] : V(0);
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) AddEntry<R>(z_, (I)col[u], v_.alpha * (GallopConjugate(value[u], conjugate_) * x[u]), e + u * WarpSize + lane < end);
    }
  }

private:
  const HBPArrays<V, I>  &h_;
  const GallopVectors<V> &v_;
  const bool              conjugate_;
  V                      *z_ = nullptr; /* where the column of blocks begins */
};

/* Adds what a piece of a long row gives, by all threads of a thread block */
template <typename R, typename V, typename I>
static __device__ void AddPiece(const HBPArrays<V, I> &h, const I *longRow, const GallopVectors<V> &v, bool conjugate)
{
  static constexpr int Steps = 4;
  const GallopPiece<I> p     = GallopGetPiece(h.pieceRow, h.pieceAt, h.longPtr, (PetscInt)blockIdx.x, HBP_PIECE);
  const V              xl    = v.alpha * v.x[longRow[p.row]];

  for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += Steps * FewThreads) {
    V value[Steps];
    I col[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++) { /* atomic operations would keep later loads behind them */
      const bool wanted = k + u * FewThreads < p.end;

      value[u] = wanted ? GallopLoadOnce(h.data + h.blknz + k + u * FewThreads) : V(0);
      col[u]   = wanted ? GallopLoadOnce(h.longCol + k + u * FewThreads) : I(0);
    }
#pragma unroll
    for (int u = 0; u < Steps; u++)
      if (k + u * FewThreads < p.end) GallopAtomicAdd<R>(v.z + col[u], GallopConjugate(value[u], conjugate) * xl);
  }
}

/* The first thread blocks add pieces of long rows, the others parts as in the SpMV part. z has beta y when the kernel before has ended. */
template <typename V, typename R, typename I, int Where>
__global__ static void __launch_bounds__(FewThreads, Resident<V, I>) TransposedKernel(HBPArrays<V, I> h, const I *longRow, GallopVectors<V> v, bool conjugate)
{
  __shared__ Groups<I> warpGroups[FewThreads / WarpSize];
  const I              number = (I)blockIdx.x - h.pieceNum, agents = ((I)gridDim.x - h.pieceNum) * (FewThreads / WarpSize), given = agents * h.fixedEach;

  GallopLetSuccessorStart();
  if (number < 0) {
    GallopWaitForPredecessor();
    AddPiece<R>(h, longRow, v, conjugate);
    return;
  }
  WalkParts(h, number, given, [&](I p, bool wait) { WalkPart(h, p, warpGroups[threadIdx.x / WarpSize], Where != MAPPED, wait, Transposed<V, R, I, Where>(h, v, conjugate)); });
  if (given < h.partNum && threadIdx.x % WarpSize == 0) EndTickets(h, agents);
}

/* As many thread blocks as the GPU has room for at once, but not more than the SpMV part has: the parts that warps have beforehand are cut for their number. Where x is in shared memory in the SpMV part, each warp has one part. */
static PetscErrorCode PlanTransposed(const HBP *h, HBPPlan *plan)
{
  const auto kernel = h->mapped ? TransposedKernel<PetscScalar, PetscReal, PetscInt, MAPPED> : TransposedKernel<PetscScalar, PetscReal, PetscInt, PLAIN>;
  const int  warps  = FewThreads / WarpSize;
  int        device, sms, resident;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(GiveL1(kernel, FewThreads, device, &resident));
  plan->transposedBlocks = (int)PetscMin(h->shared ? ((PetscCount)plan->partNum + warps - 1) / warps : (PetscCount)plan->blocks, (PetscCount)sms * resident);
  plan->transposedEach   = h->shared ? 1 : plan->fixedEach;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyTranspose(HBP *h, const GallopProduct *p, PetscBool conjugate)
{
  HBPPlan                         *plan     = (HBPPlan *)h->plan;
  HBPArrays<PetscScalar, PetscInt> a        = ArraysOf(h);
  GallopVectors<PetscScalar>       v        = GallopVectorsOf(p);
  const bool                       overlaps = plan->overlaps && !plan->fresh; /* new values must have been written */
  cudaStream_t                     stream;
  GallopGrid                       grid;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!plan->transposedEach) PetscCall(PlanTransposed(h, plan));
  a.fixedEach = plan->transposedEach;
  a.direct    = true;
  grid        = {plan->transposedBlocks + (PetscCount)h->longRows.pieceNum, FewThreads, 1, 0, stream, overlaps};
  PetscCallCUDA(GallopBegin(h->n, &v, stream, overlaps));
  if (h->mapped) PetscCallCUDA(GallopLaunch(TransposedKernel<PetscScalar, PetscReal, PetscInt, MAPPED>, grid, a, h->longRows.row, v, (bool)conjugate));
  else PetscCallCUDA(GallopLaunch(TransposedKernel<PetscScalar, PetscReal, PetscInt, PLAIN>, grid, a, h->longRows.row, v, (bool)conjugate));
  PetscCallCUDA(GallopNotFresh(stream, &plan->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPApplyTranspose_Device - The transposed product */
PetscErrorCode HBPApplyTranspose_Device(void *data, const GallopProduct *p, PetscBool conjugate)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  if (h->columns) PetscCall(HBPColumnsApplyTranspose_Device(h->columns, h->n, p, conjugate));
  else if (h->hot) PetscCall(HBPHotApplyTranspose_Device(h->hot, p, conjugate));
  else PetscCall(ApplyTranspose(h, p, conjugate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
