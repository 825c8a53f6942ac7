/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCG: what the solver asks of the GPU */
#pragma once

#include "gallopfused.h"
#include "gallopjacobi.h"

/* Arrays on the GPU, of n entries; of d and z the one that the preconditioner has. Of the variant with one reduction s is A z, and z is there unless it is r. */
typedef struct {
  PetscInt           n;
  const PetscScalar *d, *s;
  PetscScalar       *x, *r, *p, *w, *z;
} GallopCGArrays;

/* Likewise of the pipelined variant: u = B r, m = B w, n = A m, and s = A p, q = B s, z = A q. u and q are there, and m is read, where the preconditioner is of another kind, else m is written or w. */
typedef struct {
  PetscInt           length;
  const PetscScalar *d, *n;
  PetscScalar       *x, *r, *u, *w, *m, *p, *s, *q, *z;
} GallopPipeCGArrays;

/* How the iterates are computed, and when the GPU stops by itself */
typedef struct {
  GallopPCKind pc;
  KSPNormType  norm;
  PetscBool    conjugate;   /* dot products of Hermitian matrices */
  PetscReal    ttol, limit; /* stops at norms of at most ttol and of limit and more */
  PetscBool    local;       /* sums are this process's: the GPU does not stop, dp is the square of the norm, and the host gives a and b */
  GallopScalar factor;      /* a or b then */
  PetscBool    single;      /* the variant with one reduction, */
  GallopScalar b;           /* and its b then, or that of the pipelined one; a is the factor */
} GallopCGMethod;

/* Of iteration 0 and so on, or -1, the first residual */
PETSC_INTERN PetscErrorCode GallopCGSums(GallopFused *, const GallopCGArrays *, const GallopCGMethod *, PetscInt, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGDirection(GallopFused *, const GallopCGArrays *, const GallopCGMethod *, PetscInt);
PETSC_INTERN PetscErrorCode GallopCGGetDot(GallopFused *, const GallopCGMethod *, PetscInt, GallopDot **);
PETSC_INTERN PetscErrorCode GallopCGDot(GallopFused *, const GallopCGArrays *, const GallopCGMethod *, PetscInt);
PETSC_INTERN PetscErrorCode GallopCGPublishDot(GallopFused *, const GallopCGMethod *, PetscInt);
PETSC_INTERN PetscErrorCode GallopCGUpdate(GallopFused *, const GallopCGArrays *, const GallopCGMethod *, PetscInt, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGSingle(GallopFused *, const GallopCGArrays *, const GallopCGMethod *, PetscInt, PetscBool);

PETSC_INTERN PetscErrorCode GallopPipeCGSums(GallopFused *, const GallopPipeCGArrays *, const GallopCGMethod *);
PETSC_INTERN PetscErrorCode GallopPipeCGUpdate(GallopFused *, const GallopPipeCGArrays *, const GallopCGMethod *, PetscInt);
