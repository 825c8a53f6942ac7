/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: the first thread adds up */
#pragma once
#include <cuda/std/type_traits>
#include "../../../emulate.h"

namespace cub
{
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_WARP_SCANS };

template <typename T, int N, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING>
struct BlockScan {
  struct TempStorage {
    alignas(16) char value[(N + 1) * sizeof(T)];
  };
  T *value;

  BlockScan(TempStorage &storage) : value((T *)storage.value) { }

  template <int Items, typename Op>
  void ExclusiveScan(T (&in)[Items], T (&out)[Items], T init, Op op, T &total)
  {
    T sum = in[0];

    for (int k = 1; k < Items; k++) sum = op(sum, in[k]);
    value[threadIdx.x] = sum;
    __syncthreads();
    if (!threadIdx.x) {
      sum = T{};
      for (int k = 0; k < N; k++) {
        const T next = op(sum, value[k]);

        value[k] = sum;
        sum      = next;
      }
      value[N] = sum;
    }
    __syncthreads();
    sum   = op(init, value[threadIdx.x]);
    total = value[N];
    for (int k = 0; k < Items; k++) {
      const T next = op(sum, in[k]);

      out[k] = sum;
      sum    = next;
    }
  }

  template <typename Op>
  void ExclusiveScan(T in, T &out, T init, Op op)
  {
    T ins[1] = {in}, outs[1], total;

    ExclusiveScan(ins, outs, init, op, total);
    out = outs[0];
  }
};
} // namespace cub
