/* SPDX-License-Identifier: BSD-2-Clause */
/* What solvers have in common whose step is one product with what is done to it */
#pragma once

#include "gallopksp.h"

typedef struct _GallopSteps     GallopSteps;
typedef struct _GallopStepsType GallopStepsType;

/* A type of these solvers. It is registered under its own name, and under the parent's, which fuses steps for matrices of ours. */
struct _GallopStepsType {
  KSPType     own, parent;
  const char *eventname; /* of a fused solve */
  PetscErrorCode (*create)(KSP);
  PetscErrorCode (*look)(KSP, const char **);                         /* why no solve can be fused until the next set-up, as a set-up finds; may be NULL */
  PetscErrorCode (*canfuse)(KSP, const GallopSteps *, const char **); /* why the next solve cannot; may be NULL */
  PetscErrorCode (*solve)(KSP, GallopSteps *);                        /* with fused steps */
  PetscErrorCode (*parentcreate)(KSP);
  PetscLogEvent event;
};

/* What belongs to one solver: the first member of what each type has */
struct _GallopSteps {
  GallopKSP              base;
  const GallopStepsType *type;
  PetscBool              looked; /* since the last set-up, */
  const char            *never;  /* which told why no solve can be fused until the next one; NULL if some can */
  Mat                    A;      /* of the solve that runs, */
  PetscInt               bs;     /* rows of the blocks that its preconditioner multiplies by, 0 for none, */
  Vec                    d;      /* and what it multiplies by where it has no blocks of several rows; NULL for none */
};

PETSC_INTERN PetscErrorCode KSPGallopStepsCreate(KSP, const GallopStepsType *, GallopSteps *);
PETSC_INTERN PetscErrorCode KSPGallopStepsRegister(GallopStepsType *);
PETSC_INTERN PetscErrorCode KSPGallopStep(KSP, const GallopSteps *, PetscScalar, PetscScalar, Vec, PetscScalar, Vec, Vec);
