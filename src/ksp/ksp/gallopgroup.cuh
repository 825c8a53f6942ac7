/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Sums of several processes, for the kernels that have this process's */

#include <gallop/cudaimpl.h>
#include "../../mat/impls/base/gallopflags.cuh"
#include "gallopgroup.h"

/* Another process: where it wants this one's sums, in turn, and the flag that tells it; and where its sums come, and its flag */
struct GroupMember {
  PetscReal       *to[2];
  const PetscReal *from[2];
  unsigned int    *raise, *flag;
};

struct DeviceGroup {
  unsigned int number;                       /* of the last sums */
  int          n, rank;                      /* others; this one */
  GroupMember  member[GALLOP_IPC_NEIGHBORS]; /* the others by rank */
};

static __device__ __forceinline__ void Copy(PetscReal *to, const PetscReal *from, int n)
{
  for (int k = 0; k < n; k++) to[k] = from[k];
}

/*
  The first warp of a thread block calls it, once in a kernel; the sums of its first lane are this process's, and those of all come to this lane.

  Two places in turn are enough: who raises flag k has read what belongs to flag k - 1.
*/
template <typename S>
static __device__ S SumOfProcesses(DeviceGroup *group, S mine)
{
  constexpr int      Reals = sizeof(S) / sizeof(PetscReal);
  const int          lane = (int)threadIdx.x, n = group->n;
  const unsigned int number = group->number + 1;
  S                  sum    = S();

  alignas(S) __shared__ PetscReal own[Reals], others[GALLOP_IPC_NEIGHBORS][Reals];
  static_assert(Reals <= GALLOP_GROUP_REALS && GALLOP_IPC_NEIGHBORS <= 32, "room for sums, and a lane for each process");
  if (lane == 0) Copy(own, (const PetscReal *)&mine, Reals);
  __syncwarp();
  if (lane < n) {
    const GroupMember &m = group->member[lane];

    Copy(m.to[number % 2], own, Reals);
    GallopRaise(m.raise, number);
    GallopWaitFor(m.flag, number);
    for (int k = 0; k < Reals; k++) others[lane][k] = GallopLoadFromL2(m.from[number % 2] + k);
  }
  __syncwarp();
  if (lane) return sum;
  for (int k = 0; k <= n; k++) {
    if (k == group->rank) sum = sum + mine;
    if (k < n) sum = sum + *(const S *)others[k];
  }
  group->number = number;
  return sum;
}
