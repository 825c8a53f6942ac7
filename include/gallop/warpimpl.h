/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: what the lanes of a warp, and the warps of a thread block, compute together */

#include <petscsys.h>

static constexpr int WarpSize = 32;

/* Shuffles any type word by word: shuffle() takes an int */
template <typename T, typename Shuffle>
static __device__ __forceinline__ T GallopShuffleWords(T value, Shuffle shuffle)
{
  static_assert(sizeof(T) % sizeof(int) == 0, "scalars are whole words");
  union
  {
    T   t;
    int word[sizeof(T) / sizeof(int)];
  } u = {value};

#pragma unroll
  for (int k = 0; k < (int)(sizeof(T) / sizeof(int)); k++) u.word[k] = shuffle(u.word[k]);
  return u.t;
}

template <typename T>
static __device__ __forceinline__ T GallopShuffleDown(T value, int by, int width)
{
  return GallopShuffleWords(value, [=](int word) { return __shfl_down_sync(0xffffffffu, word, by, width); });
}

/* The value of a lane */
template <typename T>
static __device__ __forceinline__ T GallopShuffle(T value, int lane)
{
  return GallopShuffleWords(value, [=](int word) { return __shfl_sync(0xffffffffu, word, lane); });
}

template <typename V>
static __device__ __forceinline__ V GallopGroupSum(V sum, int width)
{
  for (int by = width / 2; by > 0; by /= 2) sum += GallopShuffleDown(sum, by, width);
  return sum;
}

/* Over the lanes of a warp, which takes one instruction from compute capability 8.0 on */
static __device__ __forceinline__ unsigned int GallopWarpMin(unsigned int value)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffffu, value);
#else
  for (int by = WarpSize / 2; by; by /= 2) value = min(value, __shfl_xor_sync(0xffffffffu, value, by));
  return value;
#endif
}

static __device__ __forceinline__ unsigned int GallopWarpMax(unsigned int value)
{
  return ~GallopWarpMin(~value);
}

static __device__ __forceinline__ unsigned int GallopWarpOr(unsigned int bits)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(0xffffffffu, bits);
#else
  for (int by = WarpSize / 2; by; by /= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, by);
  return bits;
#endif
}

/* The sum over this lane and those below */
static __device__ __forceinline__ int GallopWarpPrefix(int sum)
{
  for (int by = 1; by < WarpSize; by *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, by);

    if ((int)threadIdx.x % WarpSize >= by) sum += other;
  }
  return sum;
}

/* Calls put(k, sum of those before, own) for the n numbers that get(k) tells a warp */
template <typename Get, typename Put>
static __device__ __forceinline__ void GallopWarpPrefixes(int n, Get get, Put put)
{
  int sum = 0;

  for (int first = 0; first < n; first += WarpSize) {
    const int k = first + (int)threadIdx.x % WarpSize, own = k < n ? get(k) : 0, to = GallopWarpPrefix(own);

    if (k < n) put(k, sum + to - own, own);
    sum += __shfl_sync(0xffffffffu, to, WarpSize - 1);
  }
  __syncwarp();
}

/* The sum of a thread block's threads, by groups of whole warps; valid in the first thread of each group. Once in a kernel: its shared memory is not waited for. */
template <int BlockThreads, typename V>
static __device__ __forceinline__ V GallopWarpsSum(V sum, int threads)
{
  __shared__ V sums[BlockThreads / WarpSize];
  const int    warp = threadIdx.x / WarpSize, inwarp = threads / WarpSize;

  sum = GallopGroupSum(sum, WarpSize);
  if (threadIdx.x % WarpSize == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x % threads == 0)
    for (int w = 1; w < inwarp; w++) sum += sums[warp + w];
  return sum;
}
