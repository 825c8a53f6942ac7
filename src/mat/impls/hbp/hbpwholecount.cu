/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU where rows are whole (see hbpwhole.cu): all numbers, before the host knows what blocks are like */

#include "hbpchoose.h"
#include "hbpmap.cuh"
#include "hbpsegments.cuh"

static constexpr int CountThreads = MapThreads, CountWarps = CountThreads / WarpSize; /* of a thread block, which has a block of rows */

/* What is added up over blocks of rows */
enum { BLK, SEG, NNZ, GROUP, MAP, SUMS };

struct Sums {
  PetscInt of[SUMS];
};

static __device__ __forceinline__ Sums SumsOf(const HBPLookWork &w, PetscInt rb)
{
  const HBPOffsets own = OffsetsOf()({GallopLoadFromL2(&w.counts[rb].all), GallopLoadFromL2(&w.counts[rb].lanes)});

  return {
    {own.blk, own.seg, own.nnz, own.group, GallopLoadFromL2(w.chunks + rb)}
  };
}

/* All sums, by one thread block: each warp has blocks of rows that follow each other */
static __device__ __forceinline__ void AddUp(const HBPLookWork &w, PetscInt rowBlocks)
{
  __shared__ Sums  sums[CountWarps];
  const int        lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  const PetscInt   each = (rowBlocks + CountThreads - 1) / CountThreads * WarpSize, first = warp * each, last = first + each < rowBlocks ? first + each : rowBlocks;
  HBPFound *const  found  = &w.survey->found;
  int              mapped = 0;
  Sums             sum    = {};

  for (PetscInt rb = first + lane; rb < last; rb += WarpSize) {
    const Sums own = SumsOf(w, rb);

#pragma unroll
    for (int s = 0; s < SUMS; s++) sum.of[s] += own.of[s];
    mapped += own.of[MAP] > 0;
  }
#pragma unroll
  for (int s = 0; s < SUMS; s++) {
    for (int by = WarpSize / 2; by; by /= 2) sum.of[s] += __shfl_xor_sync(All, sum.of[s], by);
  }
  for (int by = WarpSize / 2; by; by /= 2) mapped += __shfl_xor_sync(All, mapped, by);
  if (lane == 0) {
    sums[warp] = sum;
    if (mapped) atomicAdd(&found->mapped, mapped);
  }
  __syncthreads();
  sum = {};
  for (int before = 0; before < warp; before++) {
#pragma unroll
    for (int s = 0; s < SUMS; s++) sum.of[s] += sums[before].of[s];
  }
  for (PetscInt at = first; at < last; at += WarpSize) {
    const Sums own = at + lane < last ? SumsOf(w, at + lane) : Sums{};
    Sums       to  = own;

#pragma unroll
    for (int s = 0; s < SUMS; s++) {
      for (int by = 1; by < WarpSize; by *= 2) {
        const PetscInt other = __shfl_up_sync(All, to.of[s], by);

        if (lane >= by) to.of[s] += other;
      }
      to.of[s] += sum.of[s];
      sum.of[s] = __shfl_sync(All, to.of[s], WarpSize - 1);
    }
    if (at + lane >= last) continue;
    w.offsets[at + lane] = {to.of[BLK] - own.of[BLK], to.of[SEG] - own.of[SEG], to.of[NNZ] - own.of[NNZ], to.of[GROUP] - own.of[GROUP]};
    w.mapPtr[at + lane]  = to.of[MAP] - own.of[MAP];
  }
  if (warp != CountWarps - 1 || lane) return;
  const HBPOffsets end = {sum.of[BLK], sum.of[SEG], sum.of[NNZ], sum.of[GROUP]};

  w.offsets[rowBlocks] = end;
  w.mapPtr[rowBlocks]  = sum.of[MAP];
  w.survey->end        = end;
  found->blk           = end.blk;
  found->seg           = end.seg;
  found->group         = end.group;
  found->map           = sum.of[MAP];
}

/* A thread block for each block of rows: how many segments it has, which are rows, and chunks of its map, 0 for none. The last thread block to end adds up. */
template <bool Maps>
__global__ static void __launch_bounds__(CountThreads, MapResident) CountWholeKernel(ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, HBPLookWork w)
{
  __shared__ unsigned long long counted[2];
  __shared__ bool               last;
  HBPSurvey *const              survey = w.survey;
  HBPFound *const               found  = &survey->found;
  const PetscInt                rb     = (PetscInt)blockIdx.x;

  if (!survey->whole || rb >= survey->h.rowBlocks) return;
  const HBPMatrix    A   = HBPMatrixOf(&survey->h, i, j);
  const PetscInt     row = rb * A.N, end = A.m - row < A.N ? A.m : row + A.N;
  unsigned long long all = 0, more = 0;
  unsigned int       longest = 0;
  PetscInt           empty = 0, chunks = 0;

  if (threadIdx.x < 2) counted[threadIdx.x] = 0;
  if constexpr (Maps) {
    __shared__ Marks marks;

    if (A.mapChunks) chunks = WalkChunks(A, rb, marks, NULL);
  }
  __syncthreads();
  for (PetscInt r = row + (PetscInt)threadIdx.x; r < end; r += CountThreads) {
    const PetscInt len = i[r + 1] - i[r];

    empty += len == 0;
    if (len > A.longRow) {
      const PetscInt at = AddTo(&found->longRows, 1);

      w.longRows[at] = r;
      if (at < FewRows) found->rows[at] = r;
    } else if (len) {
      longest = max(longest, (unsigned int)len);
      all += CountedSegment(len, true);
      if (len >= A.laneEntries) more += CountedLanes(HBPLanes(&A.hash, A.laneEntries, len));
    }
  }
  for (int by = WarpSize / 2; by; by /= 2) {
    all += __shfl_xor_sync(All, all, by);
    more += __shfl_xor_sync(All, more, by);
    empty += __shfl_xor_sync(All, empty, by);
  }
  RaiseByWarp(&found->longest, longest);
  if (threadIdx.x % WarpSize == 0) {
    if (all) atomicAdd(&counted[0], all);
    if (more) atomicAdd(&counted[1], more);
    if (empty) AddTo(&found->empty, empty);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    w.counts[rb] = {counted[0], counted[1]};
    w.chunks[rb] = chunks <= A.mapChunks ? chunks : 0;
    if (rb == 0) w.chunks[A.rowBlocks] = 0; /* who adds them up elsewhere wants one more */
    if (chunks > A.mapChunks) atomicAdd(&found->plain, 1);
    __threadfence();
    last = atomicAdd(&survey->counted, 1u) == (unsigned int)A.rowBlocks - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  AddUp(w, A.rowBlocks);
}

/* HBPCountWhole - Numbers of everything, by the blocks that HBPLook() chooses, if rows are whole then; chunks of maps in any case */
PetscErrorCode HBPCountWhole(const HBP *h, const GallopCSR *csr, const PetscInt M[2], const HBPLookWork *w, cudaStream_t stream)
{
  const PetscBool maps   = HBPMayMap(&h->options, h->n, M[HBP_WIDE]);
  const PetscInt  least  = h->options.block_rows ? h->options.block_rows : maps ? HBP_LEAST_ROWS : HBP_ROWS_LOCAL; /* rows of a block */
  const PetscInt  blocks = (h->m - 1) / least + 1;

  PetscFunctionBegin;
  if (!maps && h->n > M[HBP_WIDE]) PetscFunctionReturn(PETSC_SUCCESS);
  if (maps) CountWholeKernel<true><<<(unsigned int)blocks, CountThreads, 0, stream>>>(csr->i, csr->j, *w);
  else CountWholeKernel<false><<<(unsigned int)blocks, CountThreads, 0, stream>>>(csr->i, csr->j, *w);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
