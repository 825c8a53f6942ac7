/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: loads of x at any place, several at once */

#include "hbpdevice.h"

#if __CUDA_ARCH__ >= 800
  #define HBP_HINTS /* loads can tell L2 what to keep */
#endif

/* Loads x. Keep: L2 is to keep it rather than the entries, which pass by; L1 is not to, since it is too small. */
template <bool Keep>
struct HBPLoader {
  unsigned long long policy;

  __device__ __forceinline__ HBPLoader() : policy(0)
  {
#if defined(HBP_HINTS)
    if (Keep) asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
  }

  /* x, or 0 where it is not wanted. Written out, as GallopLoadOnceIf() is. */
  template <typename V>
  __device__ __forceinline__ V Load(const V *x, bool wanted) const
  {
    V value = V(0);

#if defined(HBP_HINTS)
    if constexpr (cuda::std::is_same_v<V, double>) {
      if constexpr (Keep)
        asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %3, 0;\n@there ld.global.nc.L1::no_allocate.L2::cache_hint.f64 %0, [%1], %2;\n}" : "+d"(value) : "l"(x), "l"(policy), "r"((int)wanted));
      else asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %2, 0;\n@there ld.global.nc.f64 %0, [%1];\n}" : "+d"(value) : "l"(x), "r"((int)wanted));
      return value;
    } else if constexpr (cuda::std::is_same_v<V, float>) {
      if constexpr (Keep)
        asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %3, 0;\n@there ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;\n}" : "+f"(value) : "l"(x), "l"(policy), "r"((int)wanted));
      else asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %2, 0;\n@there ld.global.nc.f32 %0, [%1];\n}" : "+f"(value) : "l"(x), "r"((int)wanted));
      return value;
    }
#endif
    if (wanted) value = GallopLoadReadOnly(x);
    return value;
  }
};
