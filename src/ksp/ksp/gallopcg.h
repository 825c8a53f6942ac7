/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCG: what gallopcg.c asks of the GPU */
#pragma once

#include <petscksp.h>
#include <gallop/deviceimpl.h>
#include "gallopjacobi.h"

/* What one iteration has computed, as the host reads it from pinned memory. The last member is written last. */
typedef struct {
  PetscScalar dpi, beta;
  PetscReal   dp;
  int         stopped; /* no later kernel does anything: the iterates stay as they are */
  PetscInt64  number;  /* which iteration, in all solves; 0 before the first */
} GallopCGRecord;

#define GALLOP_CG_RECORDS 8

typedef struct {
  GallopCGRecord *record; /* [GALLOP_CG_RECORDS] pinned, iteration k of all solves in k % GALLOP_CG_RECORDS */
  PetscInt64      number; /* that the next results go by: the host counts */
  PetscBool       overlaps;
  void           *state, *partial;
  int             blocks; /* at most */
} GallopCGWork;

/* Arrays on the GPU, of n entries; of d and z the one that the preconditioner has */
typedef struct {
  PetscInt           n;
  const PetscScalar *d, *z, *w;
  PetscScalar       *x, *r, *p;
} GallopCGArrays;

/* How the iterates are computed, and when the GPU stops by itself */
typedef struct {
  GallopPCKind pc;
  KSPNormType  norm;
  PetscBool    conjugate;   /* dot products of Hermitian matrices */
  PetscReal    ttol, limit; /* stops at norms of at most ttol and of limit and more */
  PetscBool    local;       /* sums are this process's: the GPU does not stop, dp is the square of the norm, and the host gives a and b */
  PetscScalar  factor;      /* a or b then */
} GallopCGMethod;

PETSC_INTERN PetscErrorCode GallopCGWorkCreate(GallopCGWork *, PetscBool *);
PETSC_INTERN PetscErrorCode GallopCGWorkDestroy(GallopCGWork *);
PETSC_INTERN PetscErrorCode GallopCGGo(GallopCGWork *, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGSums(GallopCGWork *, const GallopCGArrays *, const GallopCGMethod *, PetscBool, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGDirection(GallopCGWork *, const GallopCGArrays *, const GallopCGMethod *, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGDot(GallopCGWork *, const GallopCGArrays *, const GallopCGMethod *, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGUpdate(GallopCGWork *, const GallopCGArrays *, const GallopCGMethod *, PetscBool);
PETSC_INTERN PetscErrorCode GallopCGWait(GallopCGWork *, PetscInt64, GallopCGRecord *);
