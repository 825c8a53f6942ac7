/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Solvers with fused vector operations beside PETSc's that they are: iterations, reasons, norms, histories and solutions, and whether their own kernels ran */

#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_NEXT */
#endif

#include "../galloptest.h"
#include <petscksp.h>

#if PetscDefined(HAVE_CUDA)
  #include <dlfcn.h>
  #include <petscdevice_cuda.h>
#endif

#define GRID 40
#define MOST 400 /* norms of a history */

typedef enum {
  RHS_RANDOM, /* of a random solution */
  RHS_ZERO,
  RHS_NAN,
  RHS_ONES,
  RHS_ONE_ZERO /* 1, 0, 1, 0, ... */
} RHS;

typedef enum { GUESS_ZERO, GUESS_RANDOM, GUESS_EXACT } Guess;

typedef enum {
  LOOK_NONE,
  LOOK_MONITOR, /* which counts, and looks at the iterate */
  LOOK_TEST     /* a test of the user's */
} Look;

typedef struct {
  const char *name;
  PCType      pc;
  KSPNormType norm;
  RHS         rhs;
  Guess       guess;
  int         kind; /* of matrix, the solver's */
  Look        look;
  PetscInt    max_it, min_it;
  const char *options;
  PetscBool   fuses; /* with a GPU */
} Case;

typedef struct {
  KSPType     parent, own;
  const char *event;       /* of its kernels */
  PetscInt    least, most; /* kernels of an iteration */
  PetscInt    dotted;      /* likewise, with Jacobi or no preconditioner and a product that computes a dot product: Dots() */
  PetscErrorCode (*create)(MatType, int, PetscBool, Mat *);
  PetscErrorCode (*objective)(KSP, PetscReal *); /* or NULL */
  PetscBool plain;                               /* no kernels before the first iteration */
  PetscErrorCode (*reference)(KSP);              /* what PETSc's solver is to be like where ours is not inside, or NULL */
} Solver;

typedef struct {
  PetscInt           its, looks;
  KSPConvergedReason reason;
  PetscReal          rnorm, objective, seen; /* seen: norms of iterates that a monitor added up */
  PetscReal          history[MOST];
  PetscInt           nhistory;
  Vec                x;
  PetscInt           kernels;
} Result;

static PetscErrorCode Monitor(KSP ksp, PetscInt its, PetscReal rnorm, PetscCtx ctx)
{
  Result   *result = (Result *)ctx;
  Vec       like, x, v;
  PetscReal norm;

  PetscFunctionBegin;
  (void)its, (void)rnorm;
  PetscCall(KSPGetSolution(ksp, &like));
  PetscCall(VecDuplicate(like, &v));
  x = v; /* which PETSc does not say of a solve that has ended */
  PetscCall(KSPBuildSolution(ksp, v, &x));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecDestroy(&v));
  result->seen += norm;
  result->looks++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ends after 11 iterations, whatever the norm */
static PetscErrorCode Converged(KSP ksp, PetscInt its, PetscReal rnorm, KSPConvergedReason *reason, PetscCtx ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)rnorm;
  ((Result *)ctx)->looks++;
  *reason = its == 11 ? KSP_CONVERGED_USER : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* asis: a solver of PETSc's name is PETSc's */
static PetscErrorCode Solve(const Solver *solver, const Case *c, KSPType type, PetscBool asis, Mat A, Mat P, Vec b, Vec solution, PetscInt solves, Result *result)
{
  KSP              ksp;
  PC               pc;
  const PetscReal *history;
  PetscInt         before = 0;
  PetscBool        format;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(result, sizeof(*result)));
  PetscCall(TestEventCount(solver->event, &before, NULL));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, P));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetNormType(ksp, c->norm));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, c->pc));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8), PETSC_CURRENT, PETSC_CURRENT, c->max_it));
  if (c->min_it) PetscCall(KSPSetMinimumIterations(ksp, c->min_it));
  PetscCall(KSPSetResidualHistory(ksp, NULL, MOST, PETSC_TRUE));
  if (c->look == LOOK_MONITOR) PetscCall(KSPMonitorSet(ksp, Monitor, result, NULL));
  if (c->look == LOOK_TEST) PetscCall(KSPSetConvergenceTest(ksp, Converged, result, NULL));
  PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)(c->guess != GUESS_ZERO)));
  if (asis) PetscCall(PetscOptionsSetValue(NULL, "-ksp_gallop_fuse", "false"));
  PetscCall(KSPSetFromOptions(ksp));
  if (asis) PetscCall(PetscOptionsClearValue(NULL, "-ksp_gallop_fuse"));
  PetscCall(MatGallopIsFormat(A, &format));
  if (solver->reference && type == solver->parent && (asis || !format)) PetscCall((*solver->reference)(ksp));
  PetscCall(VecDuplicate(b, &result->x));
  for (PetscInt k = 0; k < solves; k++) {
    if (c->guess == GUESS_EXACT) PetscCall(VecCopy(solution, result->x));
    else if (c->guess == GUESS_RANDOM) {
      PetscCall(VecCopy(solution, result->x));
      PetscCall(VecShift(result->x, 0.5));
    }
    PetscCall(KSPSolve(ksp, b, result->x));
  }
  PetscCall(KSPGetIterationNumber(ksp, &result->its));
  PetscCall(KSPGetConvergedReason(ksp, &result->reason));
  PetscCall(KSPGetResidualNorm(ksp, &result->rnorm));
  PetscCall(KSPGetResidualHistory(ksp, &history, &result->nhistory));
  PetscCheck(result->nhistory <= MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " norms", result->nhistory);
  PetscCall(PetscArraycpy(result->history, history, result->nhistory));
  if (solver->objective) PetscCall((*solver->objective)(ksp, &result->objective));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(TestEventCount(solver->event, &result->kernels, NULL));
  result->kernels -= before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Near(PetscReal a, PetscReal b, PetscReal scale, PetscReal tolerance)
{
  if (PetscIsInfOrNanReal(a) || PetscIsInfOrNanReal(b)) return (PetscBool)(PetscIsInfOrNanReal(a) && PetscIsInfOrNanReal(b));
  return (PetscBool)(PetscAbsReal(a - b) <= tolerance * scale);
}

static PetscErrorCode CompareSolutions(const Case *c, const Result *theirs, const Result *ours, PetscReal tolerance)
{
  Vec       difference;
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(ours->x, &difference));
  PetscCall(VecWAXPY(difference, -1.0, theirs->x, ours->x));
  PetscCall(VecNorm(difference, NORM_2, &error));
  PetscCall(VecNorm(theirs->x, NORM_2, &norm));
  if (sizeof(PetscReal) < 8 && PetscIsNanReal(norm)) error = norm = 0; /* PETSc iterates beyond what single precision resolves: there is nothing to compare with */
  TestCheck(error <= tolerance * PetscMax(1, norm), "solutions differ by %g of %g", c->name, (double)error, (double)norm);
  PetscCall(VecDestroy(&difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Sums in another order may put a norm on the other side of what it is to fall to. Until then norms are the same, and one iteration more or less changes a solution by no more than half of what is allowed, 100 times
  the relative tolerance of norms. Not where nothing is fused: PETSc's own methods run there, one of which rounding errors lead far astray.
*/
static PetscErrorCode Compare(const Case *c, const Result *theirs, const Result *ours)
{
  const PetscBool rough     = (PetscBool)(sizeof(PetscReal) < 8), same = (PetscBool)(ours->its == theirs->its);
  const PetscReal tolerance = (PetscReal)(rough ? 1e-2 : 1e-6), first = PetscMax(theirs->nhistory ? theirs->history[0] : 1, PETSC_SMALL);

  PetscFunctionBegin;
  TestCheck(ours->reason == theirs->reason, "%s, not %s", c->name, KSPConvergedReasons[ours->reason], KSPConvergedReasons[theirs->reason]);
  TestCheck(PetscAbsInt(ours->its - theirs->its) <= (rough ? PetscMax(1, theirs->its / 20) : 1), "%" PetscInt_FMT " iterations, not %" PetscInt_FMT, c->name, ours->its, theirs->its);
  TestCheck(!same || ours->nhistory == theirs->nhistory, "%" PetscInt_FMT " norms, not %" PetscInt_FMT, c->name, ours->nhistory, theirs->nhistory);
  if (same || (!rough && c->fuses))
    for (PetscInt k = 0; k < PetscMin(ours->nhistory, theirs->nhistory); k++)
      TestCheck(Near(ours->history[k], theirs->history[k], first, tolerance), "norm %" PetscInt_FMT " is %g, not %g", c->name, k, (double)ours->history[k], (double)theirs->history[k]);
  if (!same) {
    if (ours->reason > 0 && (rough || c->fuses)) PetscCall(CompareSolutions(c, theirs, ours, (rough ? 5 : 1) * tolerance));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  TestCheck(Near(ours->rnorm, theirs->rnorm, first, tolerance), "the last norm is %g, not %g", c->name, (double)ours->rnorm, (double)theirs->rnorm);
  TestCheck(Near(ours->objective, theirs->objective, PetscMax(1, PetscAbsReal(theirs->objective)), tolerance), "the objective is %g, not %g", c->name, (double)ours->objective, (double)theirs->objective);
  TestCheck(ours->looks == theirs->looks && Near(ours->seen, theirs->seen, PetscMax(1, theirs->seen), tolerance), "looked %" PetscInt_FMT " times and saw %g, not %" PetscInt_FMT " and %g", c->name,
            ours->looks, (double)ours->seen, theirs->looks, (double)theirs->seen);
  if (c->rhs != RHS_NAN) PetscCall(CompareSolutions(c, theirs, ours, tolerance));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where all kernels are ours: PETSc's dot products and preconditioners may differ from run to run */
static PetscErrorCode CheckBits(const Case *c, Mat A, const Result *once, const Result *again)
{
  PetscBool   equal, jacobi, none, ours;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(c->pc, PCJACOBI, &jacobi));
  PetscCall(PetscStrcmp(c->pc, PCNONE, &none));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatGallopIsFormat(A, &ours));
  if (size > 1 || !ours || !once->kernels || !(jacobi || none) || c->rhs == RHS_NAN) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecEqual(once->x, again->x, &equal));
  TestCheck(equal, "another run gives other bits", c->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether products compute a dot product. CSROVERLAP's first one copies the matrix and does not, but others come before. */
static PetscErrorCode Dots(const Solver *solver, const Case *c, Mat A, PetscBool *dots)
{
  PetscBool format, jacobi, none;
  char     *right;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &format, "seqaijevchyb", "seqaijcsroverlap", "seqaijhbp", ""));
  PetscCall(PetscStrcmp(c->pc, PCJACOBI, &jacobi));
  PetscCall(PetscStrcmp(c->pc, PCNONE, &none));
  PetscCall(PetscStrstr(c->options, "-ksp_pc_side right", &right));
  *dots = (PetscBool)(format && ((jacobi && !right) || none) && solver->dotted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Solver *solver, const Case *c, MatType type, PetscBool device)
{
  Mat       A, P;
  Vec       b, solution;
  Result    theirs, ours, again;
  PetscInt  most, rstart, rend;
  PetscBool format = PETSC_FALSE, dots = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall((*solver->create)(type, c->kind, PETSC_FALSE, &A));
  PetscCall((*solver->create)(type, c->kind, PETSC_TRUE, &P));
  PetscCall(MatCreateVecs(A, &solution, &b));
  PetscCall(VecSetRandom(solution, NULL));
  PetscCall(MatMult(A, solution, b));
  if (c->rhs != RHS_RANDOM) PetscCall(VecSet(b, c->rhs == RHS_ZERO ? 0.0 : c->rhs == RHS_NAN ? NAN : 1.0));
  if (c->rhs == RHS_ONE_ZERO) {
    PetscCall(VecGetOwnershipRange(b, &rstart, &rend));
    for (PetscInt r = rstart; r < rend; r++)
      if (r % 2) PetscCall(VecSetValue(b, r, 0.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
  }
  PetscCall(Solve(solver, c, solver->parent, PETSC_TRUE, A, P, b, solution, 2, &theirs));
  PetscCall(Solve(solver, c, solver->own, PETSC_FALSE, A, P, b, solution, 2, &ours));
  PetscCall(Compare(c, &theirs, &ours));

  /* PETSc's name, which is ours with a matrix of ours */
  PetscCall(Solve(solver, c, solver->parent, PETSC_FALSE, A, P, b, solution, 2, &again));
  PetscCall(MatGallopIsFormat(A, &format));
  if (format) PetscCall(CheckBits(c, A, &ours, &again));
  else PetscCall(Compare(c, &theirs, &again));
  TestCheck(format ? again.kernels == ours.kernels : !again.kernels, "%" PetscInt_FMT " of our kernels under PETSc's name, and %" PetscInt_FMT " under ours", c->name, again.kernels, ours.kernels);

  /* the sums that a solve begins with, and the kernels of each iteration: more only where the host goes ahead, by 3 and the iterations of a graph, and fewer where the product computes what they do */
  PetscCall(Dots(solver, c, A, &dots));
  most = 2 * (1 + (dots ? solver->dotted : solver->most) * (ours.its + 3 + 4));
  TestCheck(!theirs.kernels, "%" PetscInt_FMT " of our kernels in PETSc's solver", c->name, theirs.kernels);
  if (device && c->fuses)
    TestCheck(ours.kernels >= 2 * ((solver->plain ? 0 : 1) + solver->least * (ours.reason == KSP_DIVERGED_ITS || ours.its == 0 ? ours.its : ours.its - 1)) && ours.kernels <= most, "%" PetscInt_FMT " kernels in 2 times %" PetscInt_FMT " iterations", c->name,
              ours.kernels, ours.its);
  else TestCheck(!ours.kernels, "%" PetscInt_FMT " of our kernels where nothing can be fused", c->name, ours.kernels);
  PetscCall(VecDestroy(&theirs.x));
  PetscCall(VecDestroy(&ours.x));
  PetscCall(VecDestroy(&again.x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&solution));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(TestClearOptions(c->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a format of ours, and with PETSc's type */
static PetscErrorCode RunAll(const Solver *solver, size_t n, const Case cases[], PetscBool device)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < n; k++) {
    if (TestInPart()) PetscCall(Run(solver, &cases[k], TestFormat(""), device));
    if (TestInPart()) PetscCall(Run(solver, &cases[k], device ? MATAIJCUSPARSE : MATAIJ, device));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt graphs = 0; /* that were launched */

#if PetscDefined(HAVE_CUDA)
/* It goes before the runtime library's own, for this library: solvers log the same of a graph as of its kernels, and no object tells which they have launched */
PETSC_VISIBILITY_PUBLIC cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  cudaError_t (*real)(cudaGraphExec_t, cudaStream_t);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaGraphLaunch");
  graphs++;
  return (*real)(exec, stream);
}
#endif

/* On one process iterations of a small system are launched as CUDA graphs, from the ninth one on, where products compute a dot product; and the same kernels without graphs give the same bits */
static inline PetscErrorCode RunGraph(const Solver *solver, const char options[], PetscBool device)
{
  const Case        c        = {"CUDA graphs", PCJACOBI, KSP_NORM_PRECONDITIONED, RHS_RANDOM, GUESS_ZERO, 0, LOOK_NONE, 300, 0, options, PETSC_TRUE};
  const char *const wanted[] = {"true", "false"};
  Mat               A;
  Vec               b, solution;
  Result            results[2];
  PetscInt          launched[2];
  PetscMPIInt       size;
  PetscBool         dots = PETSC_FALSE, equal, reproducible = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall((*solver->create)(TestFormat(""), c.kind, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &solution, &b));
  PetscCall(VecSetRandom(solution, NULL));
  PetscCall(MatMult(A, solution, b));
  for (int k = 0; k < 2; k++) {
    const PetscInt before = graphs;

    PetscCall(PetscOptionsSetValue(NULL, "-ksp_gallop_graph", wanted[k]));
    PetscCall(Solve(solver, &c, solver->own, PETSC_FALSE, A, A, b, solution, 2, &results[k]));
    launched[k] = graphs - before;
  }
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_gallop_graph"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Dots(solver, &c, A, &dots));
  TestCheck(results[0].reason > 0 && results[0].its > 8, "%s after %" PetscInt_FMT " iterations: nothing is tested", c.name, KSPConvergedReasons[results[0].reason], results[0].its);
  TestCheck((device && size == 1 && dots) == (launched[0] > 0) && !launched[1], "%" PetscInt_FMT " launched in 2 times %" PetscInt_FMT " iterations, and %" PetscInt_FMT " where none are wanted", c.name, launched[0], results[0].its, launched[1]);
  PetscCall(TestReproducible(&reproducible));
  if (size == 1 && reproducible) {
    PetscCall(VecEqual(results[0].x, results[1].x, &equal));
    TestCheck(equal && results[0].its == results[1].its, "other bits than without, in %" PetscInt_FMT " and %" PetscInt_FMT " iterations", c.name, results[0].its, results[1].its);
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&results[k].x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&solution));
  PetscCall(MatDestroy(&A));
  PetscCall(TestClearOptions(options));
  PetscFunctionReturn(PETSC_SUCCESS);
}
