/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's build: CUB's device-wide sums and sorts */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include "packed/packed.h"
#include "scan.cuh"

template <typename T>
cudaError_t EVCHYBDeviceScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t stream)
{
  return cub::DeviceScan::ExclusiveScan(temp, bytes, data, data, cuda::std::plus<>(), T{}, n, stream);
}

template cudaError_t EVCHYBDeviceScan(void *, size_t &, PetscCount *, PetscCount, cudaStream_t);
template cudaError_t EVCHYBDeviceScan(void *, size_t &, WindowCounts *, PetscCount, cudaStream_t);

template <typename T>
cudaError_t EVCHYBDeviceSortKeys(void *temp, size_t &bytes, const T *keys, T *sorted, PetscCount n, cudaStream_t stream)
{
  return cub::DeviceRadixSort::SortKeys(temp, bytes, keys, sorted, n, 0, 8 * (int)sizeof(T), stream);
}

template cudaError_t EVCHYBDeviceSortKeys(void *, size_t &, const EVCHYBPackBits *, EVCHYBPackBits *, PetscCount, cudaStream_t);

cudaError_t EVCHYBDeviceSortPairs(void *temp, size_t &bytes, const uint64_t *keys, uint64_t *sortedkeys, const PetscInt *values, PetscInt *sorted, PetscCount n, int bits, cudaStream_t stream)
{
  return cub::DeviceRadixSort::SortPairs(temp, bytes, keys, sortedkeys, values, sorted, n, 0, bits, stream);
}
