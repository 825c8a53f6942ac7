/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPBCGS: what gallopbcgs.c asks of the GPU */
#pragma once

#include "gallopfused.h"

/* Arrays on the GPU, of n entries */
typedef struct {
  PetscInt           n;
  const PetscScalar *v, *t;
  PetscScalar       *x, *r, *rp, *s, *p;
} GallopBCGSArrays;

/* How the iterates are computed, and when the GPU stops by itself */
typedef struct {
  KSPNormType  norm;
  PetscReal    ttol, limit;        /* stops at norms of at most ttol and of limit and more */
  PetscBool    local;              /* sums are this process's: the GPU does not stop, norms are squares, and the host gives the next three */
  GallopScalar alpha, omega, beta; /* omega is the last iteration's for the direction */
} GallopBCGSMethod;

/* What of an iteration has stopped the GPU */
typedef enum { GALLOP_BCGS_GOES = 0, GALLOP_BCGS_VRP, GALLOP_BCGS_ST, GALLOP_BCGS_NORM } GallopBCGSStop;

PETSC_INTERN PetscErrorCode GallopBCGSBegin(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *);
PETSC_INTERN PetscErrorCode GallopBCGSDirection(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *, PetscBool);
PETSC_INTERN PetscErrorCode GallopBCGSGetDot(GallopFused *, GallopDot **);
PETSC_INTERN PetscErrorCode GallopBCGSDotVRP(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *);
PETSC_INTERN PetscErrorCode GallopBCGSHalf(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *);
PETSC_INTERN PetscErrorCode GallopBCGSDotST(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *);
PETSC_INTERN PetscErrorCode GallopBCGSUpdate(GallopFused *, const GallopBCGSArrays *, const GallopBCGSMethod *, PetscBool);
