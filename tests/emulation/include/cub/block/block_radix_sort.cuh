/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: the first thread sorts */
#pragma once
#include "../../../emulate.h"

namespace cub
{
struct NullType { };

template <typename K, int N, int Items, typename V, int RadixBits = 4>
struct BlockRadixSort {
  struct Pair {
    K key;
    V value;
  };
  struct TempStorage {
    alignas(16) char pair[N * Items * sizeof(Pair)];
  };
  Pair *pair;

  BlockRadixSort(TempStorage &storage) : pair((Pair *)storage.pair) { }

  void Sort(K (&key)[Items], V (&value)[Items], int begin, int end)
  {
    const K mask = end - begin >= (int)(8 * sizeof(K)) ? ~(K)0 : (((K)1 << (end - begin)) - 1);

    for (int k = 0; k < Items; k++) pair[threadIdx.x * Items + k] = {key[k], value[k]};
    __syncthreads();
    if (!threadIdx.x) std::stable_sort(pair, pair + N * Items, [=](const Pair &a, const Pair &b) { return (a.key >> begin & mask) < (b.key >> begin & mask); });
    __syncthreads();
    for (int k = 0; k < Items; k++) {
      key[k]   = pair[threadIdx.x * Items + k].key;
      value[k] = pair[threadIdx.x * Items + k].value;
    }
  }

  void Sort(K (&key)[Items], int begin, int end)
  {
    V none[Items];

    Sort(key, none, begin, end);
  }
};
} // namespace cub
