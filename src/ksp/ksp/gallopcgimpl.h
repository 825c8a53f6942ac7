/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCG: the solver */
#pragma once

#include "gallopksp.h"

typedef enum {
  GALLOP_CG_STANDARD,
  GALLOP_CG_SINGLE,   /* with one reduction */
  GALLOP_CG_PIPELINED /* with one reduction, which is under way during the preconditioner and the product */
} GallopCGVariant;

/* What belongs to one solver */
typedef struct {
  GallopKSP base;
  PetscErrorCode (*settype)(KSP, KSPCGType);
  PetscErrorCode (*setradius)(KSP, PetscReal);
  PetscErrorCode (*settarget)(KSP, PetscReal);
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
  PetscErrorCode (*setsinglereduction)(KSP, PetscBool);
  PetscErrorCode (*view)(KSP, PetscViewer);
  GallopCGVariant variant;
  KSPCGType       type;
  PetscReal       radius, target, objective;
} GallopCG;

PETSC_INTERN PetscLogEvent KSP_GallopCGFused;

PETSC_INTERN PetscErrorCode KSPGallopCGSolve(KSP, GallopCG *);
PETSC_INTERN PetscErrorCode KSPGallopPipeCGSolve(KSP, GallopCG *);
