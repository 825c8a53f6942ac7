/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Rows that several thread blocks compute, on the GPU */

#include <gallop/cudaimpl.h>
#include <cuda/atomic>
#include "launch.h"

static constexpr int WarpsInBlock = EVCHYB_THREADS / WarpSize;
static_assert(EVCHYB_BLOCK == WarpSize, "a warp computes a column block");

template <typename V>
struct PartsView {
  const PetscCount *splitblk;
  const PetscInt   *splitrow;
  V                *partial;
  int              *arrived;
};

template <typename V>
static inline PartsView<V> PartsViewOf(const EVCHYBParts *parts)
{
  static_assert(sizeof(V) == sizeof(PetscScalar), "partial sums are read as numbers of this type");
  return {parts->splitblk, parts->splitrow, reinterpret_cast<V *>(parts->partial), parts->arrived};
}

/* Row number lo of them: each thread block leaves its part, the sum of its first thread, the last to arrive adds them in order, so that the result is the same in every run; so is its part of a dot product */
template <typename V>
static __device__ __forceinline__ void StoreSplit(const PartsView<V> &parts, PetscInt lo, PetscCount part, PetscInt row, V sum, const GallopVectors<V> &v)
{
  const PetscCount firstblk = parts.splitblk[lo], blocks = parts.splitblk[lo + 1] - firstblk;
  bool             last = false;

  if (threadIdx.x >= WarpSize) return;
  if (threadIdx.x == 0) {
    parts.partial[part] = sum;
    last                = cuda::atomic_ref<int, cuda::thread_scope_device>(parts.arrived[lo]).fetch_add(1, cuda::memory_order_acq_rel) == (int)(blocks - 1);
  }
  if (!__shfl_sync(0xffffffffu, last, 0)) return;
  __syncwarp(); /* what thread 0 has seen, all see */
  sum = V(0);
#pragma unroll 4
  for (int b = threadIdx.x; b < (int)blocks; b += WarpSize) sum += GallopLoadFromL2(parts.partial + firstblk + b);
  sum = GallopGroupSum(sum, WarpSize);
  if (threadIdx.x == 0) {
    parts.arrived[lo] = 0; /* for the next product */
    V dot = V(0);

    GallopStore(v, row, sum, &dot);
    if (v.with) v.partial[v.blocks + lo] = dot;
  }
}

static inline void CarveParts(EVCHYBParts *parts, GallopCarver *carver)
{
  carver->Take(parts->splitblk, parts->nsplit + 1);
  carver->Take(parts->splitrow, parts->nparts);
  carver->Take(parts->partial, parts->nparts);
  carver->Take(parts->arrived, parts->nsplit);
}

/* From arrays on the host to those on the GPU, for which there is room already. Of no rows nothing is read there. */
static inline PetscErrorCode CopyParts(const EVCHYBParts *host, const EVCHYBParts *device, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (host->nsplit) {
    PetscCallCUDA(cudaMemcpyAsync(device->splitblk, host->splitblk, (host->nsplit + 1) * sizeof(PetscCount), cudaMemcpyHostToDevice, stream));
    PetscCallCUDA(cudaMemcpyAsync(device->splitrow, host->splitrow, host->nparts * sizeof(PetscInt), cudaMemcpyHostToDevice, stream));
    PetscCallCUDA(cudaMemsetAsync(device->arrived, 0, host->nsplit * sizeof(int), stream));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied is pageable and about to go */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
