/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  MATGALLOP, measured choice: candidates multiply one after the other while their products are timed, and the fastest stays. Nothing here knows a format: choice.c builds and frees them, tests do without.
*/

#include "choice.h"

/* Times work at a place, and is read without waiting. CUDA events on the GPU; on the host there is none, but tests put one of their own there. */
typedef struct {
  PetscErrorCode (*name)(char name[], size_t len);                              /* of what computes: times hold for it alone */
  PetscErrorCode (*begin)(void **timer);                                        /* makes the timer where it is NULL */
  PetscErrorCode (*end)(void *timer);                                           /* of the work that was queued since begin() */
  PetscErrorCode (*read)(void *timer, PetscBool wait, PetscLogDouble *seconds); /* negative while that work is not done; wait: until it is */
  PetscErrorCode (*destroy)(void **timer);
  PetscErrorCode (*capturing)(PetscBool *is); /* whether a CUDA graph records the work */
  PetscCount l2;                              /* bytes of a made-up L2 cache; on the GPU it is asked for */
} GallopClock;

PETSC_EXTERN const GallopClock *GallopClockHost; /* NULL, but for tests */
#if PetscDefined(HAVE_CUDA)
PETSC_INTERN const GallopClock GallopClockDevice;
#endif

static inline const GallopClock *GallopClockFor(PetscMemType memtype)
{
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeCUDA(memtype)) return &GallopClockDevice;
#endif
  return PetscMemTypeHost(memtype) ? GallopClockHost : NULL;
}

#define GALLOP_TIMED 4 /* products of a candidate that are timed, after one that is not */

struct _GallopMeasure {
  const GallopClock *clock;
  GallopChoice       preferred[GALLOP_CANDIDATES]; /* the candidates, as the rules put them */
  GallopChoice       turn[GALLOP_CANDIDATES + 1];  /* in the order in which they are timed: the parent first, for the budget even where it is no candidate */
  int                candidates, turns, at;        /* at: whose turn it is */
  GallopChoice       best;                         /* of those that have had their turn; GALLOP_AUTO: none */
  PetscLogDouble     time[GALLOP_CHOICES + 1];     /* of a product, the shortest that was timed; 0: unknown */
  PetscReal          cost[GALLOP_CHOICES];         /* what a build may take, in products of the parent */
  GallopChoice       builtfirst;                   /* the first one that was built, which costs nothing if the rules would build one too; GALLOP_AUTO: none is */
  PetscLogDouble     spent;                        /* on further builds, and on products beyond the time of the best */
  PetscInt           allowed;                      /* on all that, in products of the parent */
  PetscReal          share;                        /* of the time of all products, that a further build is to have at most when it begins */
  PetscInt64         all;                          /* products since the measurement began */
  PetscBool          waiting;                      /* between turns: the fastest so far computes until the next build has that share */
  PetscInt           patience;                     /* products of a turn after which the host waits for times */
  PetscInt           asked, products;              /* since the turn began: how often it was asked whether that is over, and products */
  void              *timer[GALLOP_TIMED], *buildtimer;
  int                begun, read;                    /* of the timers */
  PetscBool          running, building, buildunread; /* between begin and end of a timer; the build's has not been read */
  PetscBool          captured;                       /* a CUDA graph records now: nothing is timed */
};

PETSC_EXTERN PetscErrorCode GallopMeasureCreate(const GallopClock *, int, const GallopChoice[], const PetscReal[], PetscReal, PetscInt, PetscReal, GallopMeasure **);
PETSC_EXTERN PetscErrorCode GallopMeasureDestroy(GallopMeasure **);
PETSC_EXTERN PetscErrorCode GallopMeasureBuild(GallopMeasure *, PetscBool ends);
PETSC_EXTERN PetscErrorCode GallopMeasureProduct(GallopMeasure *, PetscBool ends);
PETSC_EXTERN PetscErrorCode GallopMeasureRecords(GallopMeasure *, PetscBool *records);
PETSC_EXTERN PetscErrorCode GallopMeasureIsOver(GallopMeasure *, PetscBool *over);
PETSC_EXTERN void           GallopMeasureNext(GallopMeasure *, GallopChoice *next);
PETSC_EXTERN void           GallopMeasureNoRoom(GallopMeasure *, GallopChoice *next);
PETSC_EXTERN PetscBool      GallopMeasureBetter(const GallopMeasure *, GallopChoice, GallopChoice);
