/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Prefix sums of EVCHYB's build */

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
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

template <typename T>
static cudaError_t ExclusiveScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t stream)
{
  if (n > 2 * ScanThreads * ScanItems || !temp) return cub::DeviceScan::ExclusiveScan(temp, bytes, data, data, cuda::std::plus<>(), T{}, n, stream);
  ScanKernel<<<1, ScanThreads, 0, stream>>>(data, (int)n);
  return cudaGetLastError();
}
