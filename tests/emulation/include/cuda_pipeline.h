/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUDA's: what is asked for is there when it is waited for, and until then other bits are */
#pragma once
#include "../emulate.h"

namespace emu
{
struct Asked {
  void             *to;
  std::vector<char> bytes;
};

/* Of the threads that run */
inline std::vector<std::pair<Fiber *, Asked>> asked;
} // namespace emu

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes)
{
  emu::asked.push_back({
    emu::fiber, {to, {(const char *)from, (const char *)from + bytes}}
  });
  memset(to, 0xC7, bytes);
}

static inline void __pipeline_commit() { }

static inline void __pipeline_wait_prior(int)
{
  size_t kept = 0;

  for (auto &a : emu::asked) {
    if (a.first == emu::fiber) memcpy(a.second.to, a.second.bytes.data(), a.second.bytes.size());
    else emu::asked[kept++] = a;
  }
  emu::asked.resize(kept);
}
