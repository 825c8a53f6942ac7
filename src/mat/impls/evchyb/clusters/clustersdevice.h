/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files: what the steps of finding clusters on the GPU work with */

#include <gallop/cudaimpl.h>
#include "../evchyb.h"
#include "../scan.cuh"

static constexpr int EVCHYBClusterThreads = 256, EVCHYBClusterLanes = 8; /* lanes read a row together: few rows of a mesh are much longer */
static constexpr int EVCHYBClusterWords = EVCHYB_CLUSTERS / 32;          /* of a row of the clusters' graph */

/* What clusters are found with, in a workspace */
struct EVCHYBClusterWork {
  PetscInt            *order;   /* [m] what is found */
  unsigned long long  *state;   /* [m] level and seed of each row */
  PetscInt            *cluster; /* [m] */
  PetscInt            *pos;     /* [m] where each row is in the new order */
  PetscInt            *rows[2]; /* [m] two frontiers, then rows before and after they are sorted */
  uint64_t            *keys[2]; /* [m] before and after */
  PetscCount          *number;  /* [m + 1] of seeds before each row */
  unsigned int        *reached; /* [levels + 1] rows of each frontier */
  EVCHYBClusterCounts *counts;
  uint32_t            *bits;  /* [clusters][EVCHYBClusterWords] the clusters' graph */
  int                 *rank;  /* [clusters] */
  int                 *queue; /* [clusters] */
  char                *cub;
  size_t               cubbytes;
};

/* Of clusters whose number is known */
struct EVCHYBClusterPlaces {
  PetscCount *begin; /* [num + 2] where each begins among the sorted rows, and behind them those that belong to none */
  PetscCount *place; /* [num + 1] where the cluster of each rank begins in the new order */
};

/* The rows of cluster c, from the least place that they have in the new order on */
static __device__ __forceinline__ PetscCount EVCHYBClusterPlace(const EVCHYBClusterPlaces &p, const int *rank, PetscCount num, PetscCount c)
{
  return c < num && rank ? p.place[rank[c]] : p.begin[c];
}

PETSC_INTERN PetscErrorCode EVCHYBClusterRank_Device(const EVCHYBClusterWork *, PetscCount num);
PETSC_INTERN PetscErrorCode EVCHYBClusterSort_Device(const GallopCSR *, const EVCHYBClusterWork *, const EVCHYBClusterPlaces *, PetscCount num);
