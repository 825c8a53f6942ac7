/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files: what each kernel's files do for tiledspmmdevice.cu. In builds and products *done stays false where there is no room; what t has of memory is Destroy()'s then, too. */

#include <gallop/cudaimpl.h>
#include "tiledspmm.h"

static_assert(TILEDSPMM_WARP == WarpSize, "the rows of a warp are padded together");

/* What is chosen of a matrix without stages */
typedef struct {
  TiledSpMMKernel kernel, untiled; /* the latter for where tiles cannot be had, as columns do not increase */
  PetscInt        segment;         /* most entries of a segment, 0 where each row is one */
  PetscBool       skips;           /* rows without entries, which are most, are to have no segments */
  PetscInt        longest;         /* entries of the longest row */
  double          tilesize;        /* entries of a tile, about */
  PetscBool       scattered;       /* as in TiledSpMM */
} TiledSpMMChoice;

PETSC_INTERN PetscErrorCode TiledSpMMChoose(const TiledSpMM *, const GallopCSR *, TiledSpMMChoice *, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMChooseSegment(const TiledSpMM *, const GallopCSR *, PetscInt *, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMKernelsOverlap(PetscBool *);

/* cut rows, of all kernels but that with tiles */
PETSC_INTERN PetscErrorCode TiledSpMMCutRows(TiledSpMM *, const GallopCSR *, PetscInt, PetscBool *);

/* staged */
PETSC_INTERN PetscErrorCode TiledSpMMStagedBuild(TiledSpMM *, const GallopCSR *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMStagedRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN PetscErrorCode TiledSpMMStagedApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMStagedAllowShared(size_t *);

/* cached and transposed, which have segments */
PETSC_INTERN PetscErrorCode TiledSpMMSegmentsBuild(TiledSpMM *, const GallopCSR *, PetscInt, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMSegmentsRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN TiledSpMMPlan  TiledSpMMCachedPlan(const TiledSpMM *, PetscInt);
PETSC_INTERN PetscErrorCode TiledSpMMCachedApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);
PETSC_INTERN TiledSpMMPlan  TiledSpMMTransposedPlan(const TiledSpMM *, PetscInt);
PETSC_INTERN PetscErrorCode TiledSpMMTransposedApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);

/* tensor */
PETSC_INTERN PetscErrorCode TiledSpMMHasTensor(PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMTensorBuild(TiledSpMM *, const GallopCSR *, PetscInt, double, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMTensorRefresh(TiledSpMM *, const GallopCSR *);
PETSC_INTERN TiledSpMMPlan  TiledSpMMTensorPlan(const TiledSpMM *, PetscInt);
PETSC_INTERN PetscErrorCode TiledSpMMTensorApply(TiledSpMM *, const GallopDenseProduct *, PetscBool *);

/* Whether tiles are full enough for tensor cores: entries in a quarter of their places. Below a fifth they are slower than the cached kernel. */
static constexpr double DenseTiles = 0.25;

static inline bool TiledSpMMIsDense(double entries, double tiles)
{
  return tiles > 0 && entries >= DenseTiles * TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS * tiles;
}
