/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: the first thread adds up */
#pragma once
#include "../../../emulate.h"

namespace cub
{
template <typename T, int N>
struct BlockReduce {
  struct TempStorage {
    alignas(16) char value[N * sizeof(T)];
  };
  TempStorage &storage;

  BlockReduce(TempStorage &storage) : storage(storage) { }

  template <typename Op>
  T Reduce(T mine, Op op)
  {
    memcpy(storage.value + threadIdx.x * sizeof(T), (void *)&mine, sizeof(T));
    __syncthreads();
    for (int k = 1; k < N && !threadIdx.x; k++) {
      T other;

      memcpy((void *)&other, storage.value + k * sizeof(T), sizeof(T));
      mine = op(mine, other);
    }
    return mine;
  }
};
} // namespace cub
