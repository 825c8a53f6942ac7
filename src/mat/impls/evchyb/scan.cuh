/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Prefix sums of EVCHYB's build, and sorts */

#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>
#include <gallop/cudaimpl.h>

/* Exclusive prefix sum in place. One thread block is enough for a few thousand; CUB's device-wide scan costs two launches more than its work then. */
static constexpr int ScanThreads = 512, ScanItems = 8;

template <typename T>
__global__ static void __launch_bounds__(ScanThreads) ScanKernel(T *data, int n)
{
  using Scan = cub::BlockScan<T, ScanThreads>;
  __shared__ typename Scan::TempStorage temp;
  T                                     before = {};

  for (int base = 0; base < n; base += ScanThreads * ScanItems) {
    const int first = base + threadIdx.x * ScanItems;
    T         item[ScanItems], total;

#pragma unroll
    for (int k = 0; k < ScanItems; k++) item[k] = first + k < n ? data[first + k] : T{};
    Scan(temp).ExclusiveScan(item, item, T{}, cuda::std::plus<>(), total);
#pragma unroll
    for (int k = 0; k < ScanItems; k++)
      if (first + k < n) data[first + k] = before + item[k];
    before = before + total;
    __syncthreads();
  }
}

/* Empty and long rows of a window, then of all windows before it */
struct WindowCounts {
  PetscCount nempty, nlong;

  __host__ __device__ WindowCounts operator+(const WindowCounts &other) const { return {nempty + other.nempty, nlong + other.nlong}; }
};

/*
  CUB's device-wide functions, where temp is NULL how many bytes they want. They are in a file of their own, devicewide.cu: with a kernel CUDA loads all others of its file, and most builds need
  none of these.
*/
template <typename T>
cudaError_t EVCHYBDeviceScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t stream);
template <typename T>
cudaError_t EVCHYBDeviceSortKeys(void *temp, size_t &bytes, const T *keys, T *sorted, PetscCount n, cudaStream_t stream);
cudaError_t EVCHYBDeviceSortPairs(void *temp, size_t &bytes, const uint64_t *keys, uint64_t *sortedkeys, const PetscInt *values, PetscInt *sorted, PetscCount n, int bits, cudaStream_t stream);

template <typename T>
static cudaError_t ExclusiveScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t stream)
{
  const bool few = n <= 2 * ScanThreads * ScanItems;

  if (!few) return EVCHYBDeviceScan(temp, bytes, data, n, stream);
  if (!temp) bytes = 0;
  else ScanKernel<T><<<1, ScanThreads, 0, stream>>>(data, (int)n);
  return cudaGetLastError();
}
