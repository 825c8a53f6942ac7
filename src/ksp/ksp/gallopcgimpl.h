/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCG: the solver */
#pragma once

#include "gallopksp.h"

/* What belongs to one solver */
typedef struct {
  GallopKSP base;
  PetscErrorCode (*settype)(KSP, KSPCGType);
  PetscErrorCode (*setradius)(KSP, PetscReal);
  PetscErrorCode (*settarget)(KSP, PetscReal);
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
  PetscErrorCode (*setsinglereduction)(KSP, PetscBool);
  PetscBool single; /* the variant with one reduction */
  KSPCGType type;
  PetscReal radius, target, objective;
} GallopCG;

PETSC_INTERN PetscLogEvent KSP_GallopCGFused;

PETSC_INTERN PetscErrorCode KSPGallopCGSolve(KSP, GallopCG *);
