/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPGALLOPCG beside KSPCG: iterations, reasons, norms, histories and solutions, and whether its own kernels ran.\n\n";

#include "../galloptest.h"
#include <petscksp.h>

#define GRID 40
#define MOST 400 /* norms of a history */

typedef enum { RHS_RANDOM, RHS_ZERO, RHS_NAN } RHS;

typedef enum { GUESS_ZERO, GUESS_RANDOM, GUESS_EXACT } Guess;

typedef enum {
  MAT_DEFINITE,
  MAT_INDEFINITE,    /* a part of the diagonal is negative; the preconditioner is of the definite one */
  MAT_INDEFINITE_PC, /* the other way round */
  MAT_SINGULAR       /* with a null space */
} Kind;

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
  Kind        kind;
  Look        look;
  PetscInt    max_it, min_it;
  const char *options;
  PetscBool   fuses; /* on one process with a GPU */
} Case;

/* clang-format off */
static const Case cases[] = {
  {"Jacobi",                       PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, unpreconditioned",     PCJACOBI, KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, natural",              PCJACOBI, KSP_NORM_NATURAL,          RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, no norm",              PCJACOBI, KSP_NORM_NONE,             RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    13,  0,  "",                        PETSC_TRUE },
  {"no preconditioner",            PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"block Jacobi",                 PCBJACOBI, KSP_NORM_PRECONDITIONED,  RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-sub_pc_type jacobi",     PETSC_TRUE },
  {"SOR, unpreconditioned",        PCSOR,    KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"GAMG",                         PCGAMG,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"a guess",                      PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"the solution as guess",        PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_EXACT,  MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"b = 0",                        PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_ZERO,   GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"b = 0 and a guess",            PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_ZERO,   GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"NaN in b",                     PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_NAN,    GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"no iteration",                 PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    0,   0,  "",                        PETSC_TRUE },
  {"few iterations",               PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    7,   0,  "",                        PETSC_TRUE },
  {"few are enough",               PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    7,   0,  "-ksp_converged_maxits",   PETSC_TRUE },
  {"at least 60",                  PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 60, "-ksp_rtol 1e-3",          PETSC_TRUE },
  {"diverges by its tolerance",    PCNONE,   KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_divtol 1.0001",      PETSC_TRUE },
  {"indefinite",                   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE,    LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"negative curvature",           PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE,    LOOK_NONE,    300, 0,  "-ksp_converged_neg_curve", PETSC_TRUE },
  {"indefinite preconditioner",    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE_PC, LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"a monitor",                    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_MONITOR, 300, 0,  "",                        PETSC_TRUE },
  {"a test of the user's",         PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_TEST,    300, 0,  "",                        PETSC_TRUE },
  {"null space",                   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_SINGULAR,      LOOK_NONE,    300, 0,  "",                        PETSC_FALSE},
  {"one reduction",                PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_cg_single_reduction", PETSC_FALSE},
  {"norms from the fifth on",      PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_check_norm_iteration 5", PETSC_FALSE},
  {"eigenvalues",                  PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_view_eigenvalues ascii:/dev/null", PETSC_FALSE},
  {"symmetric",                    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_cg_type symmetric",  PETSC_TRUE },
};
/* clang-format on */

typedef struct {
  PetscInt           its, looks;
  KSPConvergedReason reason;
  PetscReal          rnorm, objective, seen; /* seen: norms of iterates that a monitor added up */
  PetscReal          history[MOST];
  PetscInt           nhistory;
  Vec                x;
  PetscInt           kernels;
} Result;

/* Where it is to be indefinite, each third number on the diagonal is negative */
static PetscErrorCode CreateMatrix(MatType type, Kind kind, PetscBool pc, Mat *A)
{
  const PetscBool singular = (PetscBool)(kind == MAT_SINGULAR);
  Vec             diagonal;
  PetscScalar    *d;
  PetscInt        rstart, rend;

  PetscFunctionBegin;
  PetscCall(TestCreateLaplace(type, GRID, singular ? 0 : 1, singular ? 0 : 3, 3, A));
  if (kind == (pc ? MAT_INDEFINITE_PC : MAT_INDEFINITE)) {
    PetscCall(MatCreateVecs(*A, NULL, &diagonal));
    PetscCall(MatGetDiagonal(*A, diagonal));
    PetscCall(VecGetOwnershipRange(diagonal, &rstart, &rend));
    PetscCall(VecGetArray(diagonal, &d));
    for (PetscInt r = rstart; r < rend; r++)
      if (r % 3 == 0) d[r - rstart] = -d[r - rstart];
    PetscCall(VecRestoreArray(diagonal, &d));
    PetscCall(MatDiagonalSet(*A, diagonal, INSERT_VALUES));
    PetscCall(VecDestroy(&diagonal));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt its, PetscReal rnorm, PetscCtx ctx)
{
  Result   *result = (Result *)ctx;
  Vec       x;
  PetscReal norm;

  PetscFunctionBegin;
  (void)its, (void)rnorm;
  PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(VecNorm(x, NORM_2, &norm));
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

static PetscErrorCode Solve(const Case *c, KSPType type, Mat A, Mat P, Vec b, Vec solution, PetscInt solves, Result *result)
{
  KSP              ksp;
  PC               pc;
  const PetscReal *history;
  PetscBool        cg;
  PetscInt         before;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(result, sizeof(*result)));
  PetscCall(TestEventCount("GallopCGFused", &before, NULL));
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
  PetscCall(KSPSetFromOptions(ksp));
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
  PetscCall(PetscStrcmp(c->options, "-ksp_cg_single_reduction", &cg));
  if (!cg) PetscCall(KSPCGGetObjFcn(ksp, &result->objective));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(TestEventCount("GallopCGFused", &result->kernels, NULL));
  result->kernels -= before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Near(PetscReal a, PetscReal b, PetscReal scale, PetscReal tolerance)
{
  if (PetscIsInfOrNanReal(a) || PetscIsInfOrNanReal(b)) return (PetscBool)(PetscIsInfOrNanReal(a) && PetscIsInfOrNanReal(b));
  return (PetscBool)(PetscAbsReal(a - b) <= tolerance * scale);
}

static PetscErrorCode Compare(const Case *c, const Result *theirs, const Result *ours)
{
  const PetscReal tolerance = (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6), first = PetscMax(theirs->nhistory ? theirs->history[0] : 1, PETSC_SMALL);
  Vec             difference;
  PetscReal       norm, error;

  PetscFunctionBegin;
  TestCheck(ours->reason == theirs->reason, "%s, not %s", c->name, KSPConvergedReasons[ours->reason], KSPConvergedReasons[theirs->reason]);
  TestCheck(PetscAbsInt(ours->its - theirs->its) <= 1, "%" PetscInt_FMT " iterations, not %" PetscInt_FMT, c->name, ours->its, theirs->its);
  if (ours->its != theirs->its) PetscFunctionReturn(PETSC_SUCCESS);
  TestCheck(ours->nhistory == theirs->nhistory, "%" PetscInt_FMT " norms, not %" PetscInt_FMT, c->name, ours->nhistory, theirs->nhistory);
  for (PetscInt k = 0; k < ours->nhistory; k++)
    TestCheck(Near(ours->history[k], theirs->history[k], first, tolerance), "norm %" PetscInt_FMT " is %g, not %g", c->name, k, (double)ours->history[k], (double)theirs->history[k]);
  TestCheck(Near(ours->rnorm, theirs->rnorm, first, tolerance), "the last norm is %g, not %g", c->name, (double)ours->rnorm, (double)theirs->rnorm);
  TestCheck(Near(ours->objective, theirs->objective, PetscMax(1, PetscAbsReal(theirs->objective)), tolerance), "the objective is %g, not %g", c->name, (double)ours->objective, (double)theirs->objective);
  TestCheck(ours->looks == theirs->looks && Near(ours->seen, theirs->seen, PetscMax(1, theirs->seen), tolerance), "looked %" PetscInt_FMT " times and saw %g, not %" PetscInt_FMT " and %g", c->name,
            ours->looks, (double)ours->seen, theirs->looks, (double)theirs->seen);
  if (c->rhs == RHS_NAN) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDuplicate(ours->x, &difference));
  PetscCall(VecWAXPY(difference, -1.0, theirs->x, ours->x));
  PetscCall(VecNorm(difference, NORM_2, &error));
  PetscCall(VecNorm(theirs->x, NORM_2, &norm));
  TestCheck(error <= tolerance * PetscMax(1, norm), "solutions differ by %g of %g", c->name, (double)error, (double)norm);
  PetscCall(VecDestroy(&difference));
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

static PetscErrorCode Run(const Case *c, MatType type, PetscBool device)
{
  Mat      A, P;
  Vec      b, solution;
  Result   theirs, ours, again;
  PetscInt most;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall(CreateMatrix(type, c->kind, PETSC_FALSE, &A));
  PetscCall(CreateMatrix(type, c->kind, PETSC_TRUE, &P));
  PetscCall(MatCreateVecs(A, &solution, &b));
  PetscCall(VecSetRandom(solution, NULL));
  PetscCall(MatMult(A, solution, b));
  if (c->rhs == RHS_ZERO) PetscCall(VecSet(b, 0.0));
  if (c->rhs == RHS_NAN) PetscCall(VecSet(b, NAN));
  PetscCall(Solve(c, KSPCG, A, P, b, solution, 2, &theirs));
  PetscCall(Solve(c, KSPGALLOPCG, A, P, b, solution, 2, &ours));
  PetscCall(Compare(c, &theirs, &ours));
  PetscCall(Solve(c, KSPGALLOPCG, A, P, b, solution, 2, &again));
  PetscCall(CheckBits(c, A, &ours, &again));

  /* the sums that a solve begins with, and four times at most in each iteration: more only where the host goes ahead */
  most = 2 * (1 + 4 * (ours.its + 3));
  TestCheck(!theirs.kernels, "%" PetscInt_FMT " kernels of KSPGALLOPCG in KSPCG", c->name, theirs.kernels);
  if (device && c->fuses)
    TestCheck(ours.kernels >= 2 * (1 + 2 * (ours.reason == KSP_DIVERGED_ITS || ours.its == 0 ? ours.its : ours.its - 1)) && ours.kernels <= most, "%" PetscInt_FMT " kernels in 2 times %" PetscInt_FMT " iterations", c->name,
              ours.kernels, ours.its);
  else TestCheck(!ours.kernels, "%" PetscInt_FMT " kernels of KSPGALLOPCG where nothing can be fused", c->name, ours.kernels);
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

/* Another type and back, a reset, another size, a radius: the solver forgets what belonged to what was before */
static PetscErrorCode Change(MatType type)
{
  const KSPType      types[] = {KSPGALLOPCG, KSPGMRES, KSPGALLOPCG, KSPGALLOPCHEBYSHEV, KSPGALLOPCG, KSPGALLOPCG};
  KSP                ksp;
  PC                 pc;
  Mat                A[2];
  Vec                x, b, r;
  PetscReal          norm, norm0;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(type, MAT_DEFINITE, PETSC_FALSE, &A[0]));
  PetscCall(MatDuplicate(A[0], MAT_COPY_VALUES, &A[1]));
  PetscCall(MatScale(A[1], 3.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(MatCreateVecs(A[0], &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(VecNorm(b, NORM_2, &norm0));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat now = A[k % 2];

    if (k == 4) PetscCall(KSPReset(ksp));
    PetscCall(KSPSetOperators(ksp, now, now));
    PetscCall(KSPSetType(ksp, types[k]));
    PetscCall(KSPSetTolerances(ksp, (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8), PETSC_CURRENT, PETSC_CURRENT, 1000));
    if (k == 5) PetscCall(KSPCGSetRadius(ksp, 0.01));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    if (k == 5) {
      PetscCheck(reason == KSP_CONVERGED_STEP_LENGTH, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with a radius, not CONVERGED_STEP_LENGTH", KSPConvergedReasons[reason]);
      continue;
    }
    PetscCall(MatMult(now, x, r));
    PetscCall(VecAXPY(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCheck(reason > 0 && norm <= (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6) * norm0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "solve %d, of type %s: %s, residual %g of %g", (int)k, types[k], KSPConvergedReasons[reason], (double)norm, (double)norm0);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A[0]));
  PetscCall(MatDestroy(&A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscCall(Run(&cases[k], TestFormat(""), device));
    PetscCall(Run(&cases[k], device ? MATAIJCUSPARSE : MATAIJ, device));
  }
  PetscCall(Change(TestFormat("")));
  PetscCall(Change(device ? MATAIJCUSPARSE : MATAIJ));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2 4}}
    output_file: output/empty.out

TEST*/
