/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: a loop */
#pragma once
#include "../../../emulate.h"

namespace cub
{
struct DeviceSelect {
  template <typename In, typename Flag, typename Out, typename Count>
  static cudaError_t Flagged(void *temp, size_t &bytes, In in, const Flag *flags, Out *out, Count *selected, ptrdiff_t n, cudaStream_t)
  {
    if (!temp) bytes = 2345;
    else
      emu::Enqueue([=] {
        *selected = 0;
        for (ptrdiff_t k = 0; k < n; k++)
          if (flags[k]) out[(*selected)++] = in[k];
      });
    return cudaSuccess;
  }
};
} // namespace cub
