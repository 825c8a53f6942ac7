/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  HBP without its combine part, as the authors tried it (section V): a row that has segments in several blocks gets their sums by atomic operations on z. The library does not have it: the bits of
  such a product differ from run to run.
*/

#include "../src/mat/impls/hbp/hbpkernels.cuh"

/* What a warp does with groups, for WalkPart(). z is 0 where rows are cut. */
template <typename V, typename R, typename I>
class AtomicProducts {
public:
  __device__ __forceinline__      AtomicProducts(const HBPArrays<V, I> &h, const V *x, V *z) : h_(h), x_(x), z_(z) { }
  __device__ __forceinline__ void Begin(I col) { block_ = x_ + (PetscCount)col * h_.M; }
  __device__ __forceinline__ void Group(const Groups<I> &groups, int t, const Lane &own) const
  {
    const int                    lane = threadIdx.x % WarpSize, packed = groups.lanes[t], lanes = HBPInfoLanes(packed);
    Sum<V, Columns<V, I, PLAIN>> sum = {
      {block_, nullptr},
      V(0)
    };

    TakeGroup(h_, groups, t, own, sum);
    for (int by = 1 << lanes >> 1; by; by /= 2) sum.sum += GallopShuffleDown(sum.sum, by, WarpSize);
    if (lane >= LanesUsed(packed) || HBPLaneInSegment(lane, lanes)) return;
    V *const z = z_ + groups.row[t] + HBPOutputRow(own.hash);

    if (own.hash & HBP_FLAG) *z = sum.sum; /* the row's only segment */
    else GallopAtomicAdd<R>(z, sum.sum);
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
      V              value[Steps];
      unsigned short col[Steps], hash[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I at = e + u * WarpSize + lane;

        hash[u]  = at < end ? GallopLoadOnce(hashes + at) : 0;
        value[u] = at < end ? GallopLoadOnce(h_.data + at) : V(0);
        col[u]   = at < end ? GallopLoadOnce(h_.col + at) : 0;
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) value[u] = e + u * WarpSize + lane < end ? value[u] * block_[col[u]] : V(0);
#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I  line = e + u * WarpSize;
        V *const z    = z_ + GallopShuffle(row, GroupOfSingle(t, stop, mine - line, &before)) + HBPOutputRow(hash[u]);

        if (line + lane >= end) continue;
        if (hash[u] & HBP_FLAG) *z = value[u];
        else GallopAtomicAdd<R>(z, value[u]);
      }
    }
  }

private:
  const HBPArrays<V, I> &h_;
  const V               *x_, *block_ = nullptr; /* block_: where the column of blocks begins */
  V *const               z_;
};

/* The first thread blocks compute pieces of long rows, the others parts as in the SpMV part */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(FewThreads) AtomicKernel(HBPArrays<V, I> h, const I *longRow, const V *x, V *z)
{
  __shared__ Groups<I> warpGroups[FewThreads / WarpSize];
  const I              number = (I)blockIdx.x - h.pieceNum, agents = ((I)gridDim.x - h.pieceNum) * (FewThreads / WarpSize), given = agents * h.fixedEach;

  if (number < 0) {
    const GallopPiece<I> p   = GallopGetPiece(h.pieceRow, h.pieceAt, h.longPtr, (PetscInt)blockIdx.x, HBP_PIECE);
    V                    sum = V(0);

    for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += FewThreads) sum += GallopLoadOnce(h.data + h.blknz + k) * x[GallopLoadOnce(h.longCol + k)];
    sum = GallopWarpsSum<FewThreads>(sum, FewThreads);
    if (threadIdx.x == 0) GallopAtomicAdd<R>(z + longRow[p.row], sum);
    return;
  }
  WalkParts(h, number, given, [&](I p, bool) { WalkPart(h, p, warpGroups[threadIdx.x / WarpSize], true, false, AtomicProducts<V, R, I>(h, x, z)); });
  if (given < h.partNum && threadIdx.x % WarpSize == 0) EndTickets(h, agents);
}

/* z = A x, without maps and with x in global memory */
static PetscErrorCode HBPApplyAtomic(HBP *h, const PetscScalar *x, PetscScalar *z)
{
  const auto                       kernel = AtomicKernel<PetscScalar, PetscReal, PetscInt>;
  HBPPlan                         *plan   = (HBPPlan *)h->plan;
  HBPArrays<PetscScalar, PetscInt> a      = ArraysOf(h);
  static int                       most   = 0; /* thread blocks that the GPU has at once */
  cudaStream_t                     stream;
  PetscCount                       blocks;

  PetscFunctionBegin;
  if (!most) {
    int device, sms, resident;

    PetscCallCUDA(cudaGetDevice(&device));
    PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    PetscCallCUDA(GiveL1(kernel, FewThreads, device, &resident));
    most = sms * resident;
  }
  a.direct = true; /* output_hash tells the row of each segment */
  blocks   = PetscMin(plan->blocks, most) + (PetscCount)h->longRows.pieceNum;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!h->alone) PetscCallCUDA(cudaMemsetAsync(z, 0, (size_t)h->m * sizeof(*z), stream));
  if (blocks) {
    kernel<<<(unsigned int)blocks, FewThreads, 0, stream>>>(a, h->longRows.row, x, z);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
