/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: a stable sort */
#pragma once
#include "../../../emulate.h"

namespace cub
{
template <typename T>
struct DoubleBuffer {
  T  *buffers[2] = {};
  int selector   = 0;

  DoubleBuffer() { }
  DoubleBuffer(T *current, T *alternate) : buffers{current, alternate} { }
  T *Current() const { return buffers[selector]; }
  T *Alternate() const { return buffers[1 - selector]; }
};

struct DeviceRadixSort {
  template <typename K>
  static cudaError_t SortKeys(void *temp, size_t &bytes, const K *keys, K *sorted, ptrdiff_t n, int, int, cudaStream_t)
  {
    if (!temp) bytes = 4321;
    else
      emu::Enqueue([=] {
        std::copy(keys, keys + n, sorted);
        std::sort(sorted, sorted + n);
      });
    return cudaSuccess;
  }

  template <typename K, typename V>
  static cudaError_t SortPairs(void *temp, size_t &bytes, const K *keys, K *sortedkeys, const V *values, V *sorted, ptrdiff_t n, int begin, int end, cudaStream_t)
  {
    if (!temp) bytes = 4321;
    else
      emu::Enqueue([=] {
        const uint64_t         mask = (end < 64 ? (uint64_t)1 << end : 0) - ((uint64_t)1 << begin);
        std::vector<ptrdiff_t> order(n);

        for (ptrdiff_t k = 0; k < n; k++) order[k] = k;
        std::stable_sort(order.begin(), order.end(), [=](ptrdiff_t a, ptrdiff_t b) { return ((uint64_t)keys[a] & mask) < ((uint64_t)keys[b] & mask); });
        for (ptrdiff_t k = 0; k < n; k++) {
          sortedkeys[k] = keys[order[k]];
          sorted[k]     = values[order[k]];
        }
      });
    return cudaSuccess;
  }

  template <typename K, typename V>
  static cudaError_t SortPairs(void *temp, size_t &bytes, DoubleBuffer<K> &keys, DoubleBuffer<V> &values, ptrdiff_t n, int begin, int end, cudaStream_t stream)
  {
    const cudaError_t err = SortPairs(temp, bytes, keys.Current(), keys.Alternate(), values.Current(), values.Alternate(), n, begin, end, stream);

    if (temp) {
      keys.selector   = 1 - keys.selector;
      values.selector = 1 - values.selector;
    }
    return err;
  }
};
} // namespace cub
