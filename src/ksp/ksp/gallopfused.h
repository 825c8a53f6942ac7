/* SPDX-License-Identifier: BSD-2-Clause */
/* What fused solvers have on the GPU: the scalars of the method, and the sums that the host reads */
#pragma once

#include <petscksp.h>
#include <gallop/deviceimpl.h>
#include <gallop/formatimpl.h>

/* What a part of an iteration has computed, as the host reads it from pinned memory. The last member is written last. */
typedef struct {
  GallopScalar sum[2];
  PetscReal    norm;
  int          stopped; /* no later kernel does anything: the iterates stay as they are */
  PetscInt64   number;  /* which results, of all solves; 0 before the first */
} GallopRecord;

#define GALLOP_RECORDS 8

/* Iterations that the host launches at once, see gallopgraph.cu */
typedef struct {
  void      *exec;    /* cudaGraphExec_t; NULL before the first */
  PetscBool  uses;    /* the stream that is recorded */
  PetscBool  records; /* now: what is launched becomes part of the graph, */
  PetscBool  last;    /* of its last iteration */
  PetscInt64 from;    /* the host's count of results before it */
} GallopGraph;

typedef struct {
  GallopRecord *record; /* [GALLOP_RECORDS] pinned, results k in k % GALLOP_RECORDS */
  PetscInt64    number; /* that the next results go by: the host counts */
  PetscBool     overlaps;
  void         *state, *partial;
  int           blocks; /* at most */
  void         *group;  /* a DeviceGroup, whose sums kernels add up; NULL for those of this process */
  GallopDot     dot;    /* of a product's result, for who asks the product for it */
  GallopGraph   graph;
} GallopFused;

PETSC_INTERN PetscErrorCode GallopFusedCreate(GallopFused *, PetscBool *);
PETSC_INTERN PetscErrorCode GallopFusedDestroy(GallopFused *);
PETSC_INTERN PetscErrorCode GallopFusedGo(GallopFused *, PetscBool);
PETSC_INTERN PetscErrorCode GallopFusedSumDot(const GallopFused *);
PETSC_INTERN PetscErrorCode GallopFusedWait(GallopFused *, PetscInt64, GallopRecord *);

PETSC_INTERN PetscErrorCode GallopFusedCountFrom(GallopFused *);
PETSC_INTERN PetscErrorCode GallopFusedRecord(GallopFused *, PetscInt, PetscErrorCode (*)(void *, PetscInt), void *, PetscBool *);
PETSC_INTERN PetscErrorCode GallopFusedLaunch(const GallopFused *);
PETSC_INTERN PetscErrorCode GallopGraphDestroy(GallopGraph *);
