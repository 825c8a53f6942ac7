/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: loops, for sums and what is alike */
#pragma once
#include <cuda/std/type_traits>
#include "../../../emulate.h"

namespace cub
{
struct DeviceScan {
  template <typename In, typename Out, typename Op, typename Init>
  static cudaError_t ExclusiveScan(void *temp, size_t &bytes, In in, Out *out, Op op, Init init, ptrdiff_t n, cudaStream_t)
  {
    if (!temp) bytes = 1234;
    else
      emu::Enqueue([=] {
        Init sum = init;

        for (ptrdiff_t k = 0; k < n; k++) {
          const Init next = op(sum, in[k]);

          out[k] = sum;
          sum    = next;
        }
      });
    return cudaSuccess;
  }

  template <typename In, typename T>
  static cudaError_t ExclusiveSum(void *temp, size_t &bytes, In in, T *out, ptrdiff_t n, cudaStream_t stream)
  {
    return ExclusiveScan(temp, bytes, in, out, [](T a, T b) { return a + b; }, T(0), n, stream);
  }

  template <typename T, typename Op>
  static cudaError_t InclusiveScan(void *temp, size_t &bytes, const T *in, T *out, Op op, ptrdiff_t n, cudaStream_t)
  {
    if (!temp) bytes = 1234;
    else
      emu::Enqueue([=] {
        for (ptrdiff_t k = 0; k < n; k++) out[k] = k ? op(out[k - 1], in[k]) : in[k];
      });
    return cudaSuccess;
  }
};
} // namespace cub
