/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <petscdm.h>
#include <petscmat.h>

typedef PetscErrorCode (*BenchWork)(void *);

/* A product by what is called without PETSc: a library, or a method to compare with */
typedef struct {
  const char *name;
  PetscBool   dense;     /* with dense matrices instead of vectors */
  PetscBool   rowmajor;  /* these lie row by row in memory */
  PetscBool   transpose; /* transposed products too */
  PetscBool   asked;     /* only with an option of its name */
} BenchRaw;

/* Where products are timed. Times are in seconds, memory in bytes, bandwidth in bytes per second. */
typedef struct {
  PetscErrorCode (*start)(PetscLogDouble *bandwidth); /* prints "# " lines on the machine and measures how fast it reads memory */
  PetscErrorCode (*finish)(void);
  PetscErrorCode (*time)(BenchWork, void *, PetscInt n, PetscLogDouble *); /* of all of n times the work, one after the other */
  PetscErrorCode (*timecold)(BenchWork, void *, PetscLogDouble *);         /* of once the work, with caches flushed before it */
  PetscErrorCode (*memory)(PetscLogDouble *);                              /* how much is in use */
  PetscErrorCode (*copy)(PetscLogDouble bytes, PetscLogDouble *);          /* of a copy from pinned memory of the host; NULL on the host */
  PetscErrorCode (*peak)(BenchWork, void *, PetscLogDouble *);             /* the most that is in use while the work is done; NULL on the host */
  PetscInt        nraws;
  const BenchRaw *raws;
  PetscErrorCode (*rawcreate)(Mat, PetscInt which, PetscBool transpose, PetscInt k, Vec x, Vec y, void **); /* from a SEQAIJ on the host; x and y are where products are timed */
  PetscErrorCode (*rawapply)(void *);
  PetscErrorCode (*rawload)(void *, PetscBool columns); /* values, and columns where wanted, come from pinned memory of the host, which the first call only makes; NULL on the host */
  PetscErrorCode (*rawdestroy)(void **);
} BenchPlace;

#define BENCH_MEASUREMENTS 7
#define BENCH_MOST_NAMES   256
#define BENCH_COLUMNS      3 /* of a dense matrix; all others are one of them, times a power of two */

/* A matrix, a vector or a dense matrix, and their product as it should be */
typedef struct {
  char         name[256];
  Mat          A;
  PetscInt     m, n, nz, longest;
  PetscInt     k, columns; /* columns of the dense matrix, 0 for a vector; how many of them are not another one's multiples */
  PetscInt     nx, ny;     /* lengths of the columns */
  PetscScalar *x;          /* [columns * nx] */
  void        *y;          /* [columns * ny] in long double */
  PetscReal   *sums;       /* of |a x|, for each entry of y */
} BenchProblem;

PETSC_INTERN PetscErrorCode BenchProblemCreate(const char[], PetscBool, PetscInt, PetscBool, PetscInt, BenchProblem *); /* from a name or a file, for products or transposed ones */
PETSC_INTERN PetscErrorCode BenchProblemRemark(const BenchProblem *);
PETSC_INTERN PetscErrorCode BenchProblemFill(const BenchProblem *, PetscScalar[]);                               /* all columns, one after the other */
PETSC_INTERN PetscErrorCode BenchProblemError(const BenchProblem *, const PetscScalar[], PetscInt, PetscReal *); /* of a result whose columns are so far apart */
PETSC_INTERN PetscErrorCode BenchProblemDestroy(BenchProblem *);

PETSC_INTERN PetscErrorCode BenchMedian(PetscReal[], PetscLogDouble *, PetscReal[2]);                                        /* of BENCH_MEASUREMENTS, and the smallest and the largest or NULL */
PETSC_INTERN PetscErrorCode BenchTimeWarm(const BenchPlace *, BenchWork, void *, PetscReal, PetscLogDouble *, PetscReal[2]); /* a median, and the smallest and the largest time or NULL */
PETSC_INTERN PetscErrorCode BenchTimeCold(const BenchPlace *, BenchWork, void *, PetscLogDouble *, PetscReal[2]);

/* A value for an option that was not given */
static inline PetscErrorCode BenchOptionByItself(const char name[], const char value[])
{
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, name, &set));
  if (!set) PetscCall(PetscOptionsSetValue(NULL, name, value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_INTERN PetscErrorCode BenchList(const char[], PetscInt, const char *const[], PetscInt *, char *[]);
PETSC_INTERN PetscErrorCode BenchFreeList(PetscInt, char *[]);
PETSC_INTERN PetscErrorCode BenchSplitType(const char[], char[], size_t, const char **); /* type@name: the type, and the name or NULL */

/* What each program here begins with, runs over, and ends with */
typedef struct {
  PetscInt  nfiles, nnames; /* -f, -generate */
  char     *files[BENCH_MOST_NAMES], *names[BENCH_MOST_NAMES];
  PetscInt  seed;   /* -seed */
  PetscReal min_ms; /* -min_ms */
  PetscInt  wrong;  /* results so far */
} BenchInput;

PETSC_INTERN PetscErrorCode BenchInputCreate(BenchInput *);
PETSC_INTERN PetscErrorCode BenchInputRun(BenchInput *, PetscErrorCode (*)(void *, const char[], PetscBool), void *); /* the work is given names, and whether they are those of files */
PETSC_INTERN PetscErrorCode BenchInputDestroy(BenchInput *);                                                          /* prints options that nothing used; an error where results are wrong */
PETSC_INTERN PetscErrorCode BenchPrintHead(const BenchPlace *, PetscLogDouble *);                                     /* commit, versions and machine, and starts the place */

#define BENCH_MOST_DOF 8

/* 7 or 27 points */
typedef struct {
  PetscInt  grid[3], processes[3], dof; /* points, processes or PETSC_DECIDE in each direction; unknowns per point */
  PetscBool box, scaled;                /* scaled: from both sides by numbers between 1 and 2, so that no two values are alike */
} BenchStencil;

PETSC_INTERN PetscErrorCode BenchStencilCreate(const BenchStencil *, MatType, PetscBool, DM *, Mat *); /* with vectors on the GPU or not */
PETSC_INTERN PetscErrorCode BenchNow(PetscBool, PetscLogDouble *);                                     /* when all that was begun, on the GPU too, has ended on all processes */

PETSC_INTERN const BenchPlace BenchHost;
PETSC_INTERN PetscErrorCode   BenchHostBandwidth(PetscLogDouble *); /* also prepares timing with flushed caches, as start() does */

#if defined(PETSC_HAVE_CUDA)
PETSC_INTERN const BenchPlace BenchDevice;
PETSC_INTERN PetscErrorCode   BenchDeviceAvailable(PetscBool *);
PETSC_INTERN PetscErrorCode   BenchDeviceArrays(Vec, Vec, const PetscScalar **, PetscScalar **); /* of x, and of y, which is written; they are where they are as long as the vectors */
#endif
