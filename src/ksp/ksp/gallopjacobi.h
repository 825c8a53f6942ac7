/* SPDX-License-Identifier: BSD-2-Clause */
/* Preconditioners that fused solvers compute themselves */
#pragma once

#include <petscksp.h>

typedef enum {
  GALLOP_PC_DIAGONAL, /* z = d r */
  GALLOP_PC_NONE,     /* z = r */
  GALLOP_PC_OTHER,    /* z from PCApply() */
  GALLOP_PC_KINDS
} GallopPCKind;

PETSC_INTERN PetscErrorCode PCGallopGetDiagonal(PC, Vec, GallopPCKind *, Vec *);
