/* SPDX-License-Identifier: BSD-2-Clause */
/* What solvers have in common that are one of PETSc's with another KSPSolve() */
#pragma once

#include <petsc/private/kspimpl.h>
#include "gallopfused.h"
#include "gallopgroup.h"
#include "gallopjacobi.h"
#include "gallopblocks.h"

/* Iterations of a CUDA graph, which begins after as many as pay for it. The host goes ahead by less than GALLOP_RECORDS. */
#define GALLOP_GRAPH_ITERATIONS 4
#define GALLOP_GRAPH_FROM       8

/* Of one solve: whether its iterations may become a graph, and have */
typedef struct {
  PetscBool records, recorded;
} KSPGallopRecorder;

/* Where CG and BiCGStab add up sums of several processes: on their GPUs where these are all of the program's, on one host, and each has one of its own; by MPI; or on the GPUs also elsewhere on one host */
typedef enum { GALLOP_SUMS_NOT_TRIED = -1, GALLOP_SUMS_AUTO, GALLOP_SUMS_MPI, GALLOP_SUMS_DEVICE } GallopSums;

typedef struct _GallopKSP GallopKSP;

/* What belongs to one solver, beside the parent's data: the first member of what each type has */
struct _GallopKSP {
  struct _KSPOps parent;
  KSPType        own;     /* the type's own name; it takes the parent's too, for matrices of ours */
  PetscBool      asis;    /* -ksp_gallop_fuse false: under the parent's name it is the parent */
  PetscBool      nograph; /* -ksp_gallop_graph false */
  const char    *what;    /* is fused, and with what, for viewers */
  const char    *with;
  PetscBool      fused; /* the last solve */
  const char    *why;   /* it was not */
  GallopDiagonal diagonal;
  GallopBlocks   blocks;
  GallopFused    work; /* zeroed where nothing was ever fused by kernels of ours */
  GallopSums     sums, tried; /* as the user wants them, and as they were when processes were asked whether they can be */
  GallopGroup    group;
};

PETSC_INTERN PetscErrorCode KSPGallopRegister(KSPType, KSPType, PetscErrorCode (*)(KSP), PetscErrorCode (**)(KSP));
PETSC_INTERN PetscErrorCode KSPGallopCompose(KSP, KSPType, GallopKSP *);
PETSC_INTERN PetscErrorCode KSPGallopTakes(KSP, const GallopKSP *, PetscBool *);
PETSC_INTERN PetscErrorCode KSPSetFromOptions_Gallop(KSP, PetscOptionItems);
PETSC_INTERN PetscErrorCode KSPGallopGet(KSP, PetscCtxRt);
PETSC_INTERN PetscErrorCode VecGallopIsCUDA(Vec, PetscBool *);
PETSC_INTERN PetscErrorCode VecGallopToDevice(Vec, const PetscScalar **);
PETSC_INTERN PetscErrorCode VecGallopToWrite(Vec, PetscScalar **);

PETSC_INTERN PetscErrorCode KSPGallopBegin(KSP, GallopKSP *, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopLengthsMatch(KSP, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopCanFuse(KSP, const char **);
PETSC_INTERN PetscErrorCode KSPGallopVecsFit(Vec, PetscInt, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopGetRoom(KSP, GallopKSP *, PetscBool, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopEnd(KSP, GallopKSP *, PetscBool);
PETSC_INTERN PetscErrorCode KSPGallopGetDiagonal(KSP, GallopKSP *, Vec, Vec);
PETSC_INTERN PetscErrorCode KSPGallopGetGroup(KSP, GallopKSP *, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopReduce(KSP, GallopRecord *);
PETSC_INTERN PetscErrorCode KSPGallopWait(KSP, GallopKSP *, PetscBool, PetscInt64, GallopRecord *);
PETSC_INTERN PetscErrorCode KSPGallopGetAhead(KSP, const GallopKSP *, Mat, GallopPCKind, PetscInt *);
PETSC_INTERN PetscErrorCode KSPGallopRecords(KSP, const GallopKSP *, PetscInt, KSPGallopRecorder *);
PETSC_INTERN PetscErrorCode KSPGallopRecordable(KSP, Mat, const KSPGallopRecorder *, PetscInt, PetscBool *);
PETSC_INTERN PetscErrorCode KSPGallopGraph(GallopFused *, KSPGallopRecorder *, PetscErrorCode (*)(void *, PetscInt), PetscErrorCode (*)(void *, PetscInt), void *, PetscInt *);
PETSC_INTERN PetscErrorCode KSPGallopTest(KSP, PetscInt, PetscReal);

/* What belongs to one kernel or several: time and flops of the GPU */
#define GallopFusedLog(event, ksp, ...) \
  do { \
    PetscCall(PetscLogEventBegin(event, ksp, 0, 0, 0)); \
    PetscCall(PetscLogGpuTimeBegin()); \
    __VA_ARGS__; \
    PetscCall(PetscLogGpuTimeEnd()); \
    PetscCall(PetscLogEventEnd(event, ksp, 0, 0, 0)); \
  } while (0)

/* Of the GPU so far, as PetscLogGpuFlops() takes them */
static inline PetscLogDouble KSPGallopFlops(void)
{
#if PetscDefined(USE_LOG)
  return petsc_gflops / PETSC_FLOPS_PER_OP;
#else
  return 0;
#endif
}

/* Likewise, and keeps the flops, which an iteration of a graph logs again */
#define GallopFusedLogKept(event, ksp, kept, ...) \
  do { \
    const PetscLogDouble flops_ = KSPGallopFlops(); \
\
    GallopFusedLog(event, ksp, __VA_ARGS__); \
    (kept) = KSPGallopFlops() - flops_; \
  } while (0)

/* Replaces a function that the parent has composed, and keeps it */
#define KSPGallopReplace(name, own, kept) \
  do { \
    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, name, &(kept))); \
    PetscCall(PetscObjectComposeFunction((PetscObject)ksp, name, own)); \
  } while (0)

/* One that sets a value that we have to know, and the parent does not tell: Solver is what belongs to one solver */
#define KSP_GALLOP_SETTER(Solver, name, type, member, kept) \
  static PetscErrorCode name##_##Solver(KSP ksp, type value) \
  { \
    Solver *solver; \
\
    PetscFunctionBegin; \
    PetscCall(KSPGallopGet(ksp, &solver)); \
    solver->member = value; \
    PetscCall((*solver->kept)(ksp, value)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
