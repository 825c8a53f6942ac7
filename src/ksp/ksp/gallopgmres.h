/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPGMRES: what gallopgmres.c asks of the GPU */
#pragma once

#include "gallopfused.h"

/* What an orthogonalization has beside GallopFused; all are NULL before the first one */
typedef struct {
  PetscInt     room;    /* for factors, of as many vectors */
  PetscScalar *partial; /* sums of thread blocks, */
  PetscScalar *h;       /* and of all, [room] on the GPU */
  PetscScalar *result;  /* the same, [room + 1] in pinned memory */
} GallopProjection;

PETSC_INTERN PetscErrorCode GallopProjectionCreate(GallopProjection *, PetscInt, PetscBool *);
PETSC_INTERN PetscErrorCode GallopProjectionDestroy(GallopProjection *);
PETSC_INTERN PetscErrorCode GallopProjectionDots(GallopFused *, const GallopProjection *, PetscInt, PetscInt, const PetscScalar *const[], const PetscScalar *, PetscBool);
PETSC_INTERN PetscErrorCode GallopProjectionSubtract(GallopFused *, const GallopProjection *, PetscInt, PetscInt, const PetscScalar *const[], const PetscScalar[], PetscScalar *);
