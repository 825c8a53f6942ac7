/* SPDX-License-Identifier: BSD-2-Clause */
/* Preconditioners that fused solvers compute themselves */
#pragma once

#include <petscksp.h>

typedef enum {
  GALLOP_PC_DIAGONAL, /* z = d r */
  GALLOP_PC_NONE,     /* z = r */
  GALLOP_PC_OTHER     /* z from PCApply() */
} GallopPCKind;

/* The diagonal that a Jacobi preconditioner multiplies by, and what it was computed for. Zeroed, there is none. */
typedef struct {
  Vec              d;
  PetscBool        valid; /* to be made false when the solver is set up or reset */
  PetscObjectId    id;    /* of PETSc's vector, which no other vector ever has; 0 where that is not known */
  PetscObjectState state;
} GallopDiagonal;

PETSC_INTERN PetscErrorCode PCGallopGetKind(PC, GallopPCKind *);
PETSC_INTERN PetscErrorCode GallopDiagonalCreate(GallopDiagonal *, Vec);
PETSC_INTERN PetscErrorCode GallopDiagonalUpdate(GallopDiagonal *, PC, Vec);
