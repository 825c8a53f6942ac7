/* SPDX-License-Identifier: BSD-2-Clause */
/* What solvers have in common that are one of PETSc's with another KSPSolve() */
#pragma once

#include <petsc/private/kspimpl.h>
#include "gallopjacobi.h"

typedef struct _GallopKSP GallopKSP;

/* What belongs to one solver, beside the parent's data: the first member of what each type has */
struct _GallopKSP {
  struct _KSPOps parent;
  PetscBool      fused; /* the last solve */
  const char    *why;   /* it was not */
  GallopDiagonal diagonal;
  PetscErrorCode (*clear)(GallopKSP *); /* frees what else there is; NULL for nothing */
};

PETSC_INTERN PetscErrorCode KSPGallopCompose(KSP, GallopKSP *);
PETSC_INTERN PetscErrorCode KSPGallopGet(KSP, PetscCtxRt);
PETSC_INTERN PetscErrorCode VecGallopIsCUDA(Vec, PetscBool *);
PETSC_INTERN PetscErrorCode VecGallopToDevice(Vec, const PetscScalar **);
