/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files: what the stages of building the staged kernel's arrays tell each other. Counts come first, of the rows as they are and sorted; then the footprints and the entries. */

#include "tiledspmmbuild.h"

/* What of a matrix is looked at */
struct StagedPattern {
  PetscInt        m, panel, stage, panels;
  const PetscInt *i, *j, *order; /* order of rows in panels, NULL for the matrix's */

  __device__ __forceinline__ PetscInt Row(PetscCount place) const { return order ? order[place] : (PetscInt)place; }

  __host__ __device__ __forceinline__ PetscInt End(PetscInt p) const { return m - p * panel < panel ? m : (p + 1) * panel; }
};

struct StagedFound {
  PetscCount         stages, nmap;
  unsigned long long lines, stores; /* lines of a column of B that panels refer to, and that stores of sorted rows touch */
  int                disorder;      /* the columns of some row do not increase */
  int                scattered;     /* the columns of some panel are so far apart that footprints are found by a sort */
  int                unsorted;      /* rows are not in the order of their patterns */
};

/* What has been counted with rows in some order, and where on the GPU; memory is NULL where there was no room for it */
struct StagedCount {
  StagedFound  found;      /* on the host */
  StagedFound *foundthere; /* and on the GPU */
  PetscInt    *order;      /* [m] of rows, where they are sorted */
  PetscInt    *size;       /* [panels] rows of B in each footprint */
  PetscCount  *mapfirst;   /* [panels + 1] where footprints, and stages, of each panel begin */
  PetscCount  *stagefirst;
  char        *cub;
  size_t       cubbytes;
  void        *memory;
};

/*
  Footprints. Both measures store their sizes in size and add their lines, where these are wanted, to foundthere; the first may find that they are scattered, which it stores there, and the
  second is for such ones. The last stores the footprints in t->map.
*/
PETSC_INTERN PetscErrorCode TiledSpMMMeasureFootprints(const TiledSpMM *, const StagedPattern *, StagedCount *);
PETSC_INTERN PetscErrorCode TiledSpMMMeasureScattered(const TiledSpMM *, const StagedPattern *, StagedCount *);
PETSC_INTERN PetscErrorCode TiledSpMMStoreFootprints(const TiledSpMM *, const StagedPattern *, const StagedCount *);

/* Looks at a pattern with rows sorted or as they are. Disorder and unsorted are found with rows as they are only. */
PETSC_INTERN PetscErrorCode TiledSpMMCountStages(const TiledSpMM *, StagedPattern, PetscBool sort, StagedCount *);
