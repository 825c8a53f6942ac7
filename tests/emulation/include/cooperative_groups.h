/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUDA's: clusters of thread blocks */
#pragma once
#include "../emulate.h"

namespace cooperative_groups
{
struct cluster_group {
  void barrier_arrive() const { emu::ClusterArrive(); }
  void barrier_wait() const { emu::ClusterWait(); }
  void sync() const
  {
    barrier_arrive();
    barrier_wait();
  }
  template <typename T>
  T *map_shared_rank(T *p, int rank) const
  {
    return (T *)emu::OfBlock((void *)p, emu::block->number / emu::cluster * emu::cluster + rank);
  }
};

static inline cluster_group this_cluster()
{
  return {};
}
} // namespace cooperative_groups
