/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: a loop, for sums */
#pragma once
#include <cuda/std/type_traits>
#include "../../../emulate.h"

namespace cub
{
struct DeviceScan {
  template <typename In, typename Out, typename Op, typename Init>
  static cudaError_t ExclusiveScan(void *temp, size_t &bytes, const In *in, Out *out, Op, Init init, ptrdiff_t n, cudaStream_t)
  {
    if (!temp) bytes = 1234;
    else
      emu::Enqueue([=] {
        Init sum = init;

        for (ptrdiff_t k = 0; k < n; k++) {
          const Init next = sum + in[k];

          out[k] = sum;
          sum    = next;
        }
      });
    return cudaSuccess;
  }
};
} // namespace cub
