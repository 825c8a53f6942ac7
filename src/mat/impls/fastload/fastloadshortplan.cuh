/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: blocks, tasks and lines of all groups, where columns are short, from how many columns there are of each length */

#include "fastloadshort.cuh"

/* As GallopWarpPrefixes(), of numbers that may be more than an int can count; returns their sum */
template <typename Get, typename Put>
static __device__ __forceinline__ PetscInt Prefixes(int n, Get get, Put put)
{
  PetscInt sum = 0;

  for (int first = 0; first < n; first += WarpSize) {
    const int      k   = first + (int)threadIdx.x % WarpSize;
    const PetscInt own = k < n ? get(k) : 0;
    PetscInt       to  = own;

    for (int by = 1; by < WarpSize; by *= 2) {
      const PetscInt other = __shfl_up_sync(All, to, by);

      if ((int)threadIdx.x % WarpSize >= by) to += other;
    }
    if (k < n) put(k, sum + to - own);
    sum += __shfl_sync(All, to, WarpSize - 1);
  }
  return sum;
}

/* Blocks, tasks and lines of a group that begins with sorted column s, of a length, as the host's PlanGroups() cuts it. columns are those shorter than each length. */
static __device__ void CountGroup(const PetscInt *columns, PetscInt n, PetscInt limit, PetscInt s, int length, Run *run)
{
  const int num  = (int)(n - s < WarpSize ? n - s : WarpSize);
  int       most = length, chain = 0;

  while (columns[most + 1] < s + num) most++;
  run->nlines = most;
  for (int k = 0; k < most;) {
    const PetscInt below = columns[k + 1] - s; /* columns that are at their end */
    const int      at = below > 0 ? (int)below : 0, cut = limit ? (int)FastLoadCut(limit, WarpSize, num - at) : most;

    while (columns[length + 1] <= s + at) length++;
    if (k % cut == 0 || (limit && most > limit && chain == FASTLOAD_CHAIN)) {
      run->ntasks++;
      chain = 0;
    }
    chain++;
    run->nblocks++;
    k = length < (k / cut + 1) * cut ? length : (k / cut + 1) * cut;
  }
}

/* By a thread block, of which each thread has a length. limit is the height of blocks, scattered that where entries lie anywhere; indexed tells that entries need not be found in their rows later. */
static __device__ __forceinline__ void PlanGroups(PetscInt n, PetscInt limit, PetscInt scattered, bool indexed, const Census *census, Order *order, Reply *reply)
{
  static_assert(Threads > Lengths && Warps >= 3, "a thread has a length, and warps add up three numbers");
  __shared__ PetscInt columns[Lengths + 1], numbers[3][2 * Lengths]; /* numbers: of blocks, tasks and lines of each run */
  __shared__ int      longest, several;
  const int           length = threadIdx.x, warp = threadIdx.x / WarpSize;
  Run                 run[2] = {};

  if (threadIdx.x == 0) {
    longest = census->found.longest; /* more than Longest where columns have not been counted to the end */
    several = 0;
  }
  __syncthreads();
  if (length < Lengths && census->columns[length]) atomicMax(&longest, length);
  if (warp == 0) {
    const PetscInt sum = Prefixes(
      Lengths, [&](int k) { return (PetscInt)census->columns[k]; }, [&](int k, PetscInt before) { columns[k] = before; });

    if (length == 0) columns[Lengths] = sum;
  } else if (warp == 1) {
    const PetscInt sum = Prefixes(
      Lengths, [&](int k) { return (PetscInt)census->columns[k] * k; }, [&](int k, PetscInt before) { order->entries[k] = before; });

    if (length == WarpSize) order->entries[Lengths] = sum;
  }
  __syncthreads();
  const bool builds = longest <= Longest && (indexed || !census->found.unsorted), far = FastLoadIsScattered(n, (PetscCount)census->spread);

  if (far) limit = scattered;
  if (length == 0) {
    reply->found         = census->found;
    reply->found.longest = longest;
    order->longest       = builds ? longest : -1;
    order->height        = limit;
  }
  if (!builds) return;
  if (length < Lengths) {
    const PetscInt begin = columns[length], end = columns[length + 1], first = FastLoadCeil(begin, WarpSize), last = end / WarpSize, alike = last > first ? last - first : 0;

    run[0].group  = first;
    run[0].length = length;
    run[1].group  = first + alike;
    run[1].length = -1;
    if (alike) {
      run[0].nlines  = length;
      run[0].nblocks = run[0].ntasks = limit ? FastLoadCeil(length, limit) : length > 0;
    }
    if (last * WarpSize >= begin && last * WarpSize < end) CountGroup(columns, n, limit, last * WarpSize, length, &run[1]);
    for (int k = 0; k < 2; k++) {
      const PetscInt num = k ? 1 : alike;

      numbers[0][2 * length + k] = num * run[k].nblocks;
      numbers[1][2 * length + k] = num * run[k].ntasks;
      numbers[2][2 * length + k] = num * run[k].nlines;
      if (run[k].ntasks > 1) several = 1;
    }
  }
  __syncthreads();
  if (warp < 3) {
    PetscInt *const own = numbers[warp];
    const PetscInt  sum = Prefixes(
       2 * Lengths, [&](int k) { return own[k]; }, [&](int k, PetscInt before) { own[k] = before; });

    if (length % WarpSize == 0) *(warp == 0 ? &reply->blocks : warp == 1 ? &reply->tasks : &reply->lines) = sum;
  }
  __syncthreads();
  if (length <= Lengths) order->columns[length] = columns[length];
  for (int k = 0; k < 2 && length < Lengths; k++) {
    run[k].blocks              = numbers[0][2 * length + k];
    run[k].tasks               = numbers[1][2 * length + k];
    run[k].lines               = numbers[2][2 * length + k];
    order->run[2 * length + k] = run[k];
  }
  if (length) return;
  reply->scattered = far;
  reply->single    = !several;
  reply->zeros     = columns[1] > 0;
}
