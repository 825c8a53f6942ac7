/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Flags in the memory of other GPUs of the host: numbers that only grow, but for wrapping around. What was written before one is raised is seen by who waits for it. */

#include <cuda/atomic>

static __device__ __forceinline__ void GallopRaise(unsigned int *flag, unsigned int number)
{
  cuda::atomic_ref<unsigned int, cuda::thread_scope_system>(*flag).store(number, cuda::memory_order_release);
}

static __device__ __forceinline__ void GallopWaitFor(unsigned int *flag, unsigned int number)
{
  const cuda::atomic_ref<unsigned int, cuda::thread_scope_system> is(*flag);

  while ((int)(is.load(cuda::memory_order_acquire) - number) < 0) { }
}
