/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "PCGALLOPREORDER: what the outer solver and the one inside tell each other, failures, tolerances and initial guesses.\n\n";

#include "../densetest.h"
#include <petscsnes.h>
#include <petscksp.h>

#define SIZE 200

/* Takes CG with Jacobi SIZE iterations, or fewer for a tolerance */
static PetscErrorCode CreateMatrix(Mat *A)
{
  const TestShape shape = {SIZE, SIZE, PETSC_FALSE};
  PetscInt        rstart, rend;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    PetscCall(MatSetValue(*A, r, r, (PetscReal)(2 + r % 3), INSERT_VALUES));
    if (r > 0) PetscCall(MatSetValue(*A, r, r - 1, -1.0, INSERT_VALUES));
    if (r < SIZE - 1) PetscCall(MatSetValue(*A, r, r + 1, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateSolver(Mat A, KSPType outer, const char prefix[], KSP *ksp, KSP *inner)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, outer));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGALLOPREORDER));
  PetscCall(PCGallopReorderGetKSP(pc, inner));
  PetscCall(KSPSetType(*inner, KSPCG));
  PetscCall(KSPGetPC(*inner, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckReason(KSP ksp, PetscBool converged, const char what[])
{
  PC                 pc;
  PCFailedReason     failed;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCGetFailedReason(pc, &failed));
  if (converged)
    PetscCheck(reason > 0 && failed == PC_NOERROR, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s, %s, though the solver inside has converged", what, KSPConvergedReasons[reason], PCFailedReasons[failed]);
  else
    PetscCheck(reason == KSP_DIVERGED_PC_FAILED && failed == PC_SUBPC_ERROR, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s, %s, though the solver inside has not converged", what, KSPConvergedReasons[reason], PCFailedReasons[failed]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solver inside that stops too early, and one that is given the iterations it needs after that */
static PetscErrorCode Failures(Mat A, KSPType outer)
{
  KSP       ksp, inner, plain;
  PC        pc;
  Vec       x, y, b;
  Mat       B, X;
  PetscReal norm, error;
  PetscBool preonly;

  PetscFunctionBegin;
  PetscCall(PetscStrcmpAny(outer, &preonly, KSPPREONLY, KSPNONE, ""));
  PetscCall(CreateSolver(A, outer, NULL, &ksp, &inner));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(TestSetVec(b, 95));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &plain));
  PetscCall(KSPSetOperators(plain, A, A));
  PetscCall(KSPSetType(plain, KSPCG));
  PetscCall(KSPGetPC(plain, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int k = 0; k < 6; k++) {
    const PetscBool few = (PetscBool)(k % 2 == 0);

    PetscCall(KSPSetTolerances(inner, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, few ? 3 : 2 * SIZE));
    PetscCall(KSPSetTolerances(plain, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, few ? 3 : 2 * SIZE));
    PetscCall(k < 4 ? KSPSolve(ksp, b, x) : KSPSolveTranspose(ksp, b, x));
    PetscCall(CheckReason(ksp, (PetscBool)(!few || !preonly), k < 4 ? "KSPSolve()" : "KSPSolveTranspose()"));
    if (!preonly) continue;
    PetscCall(KSPSolve(plain, b, y)); /* its last iterate is there in any case */
    PetscCall(TestVecError(x, y, &error, &norm));
    PetscCheck(error <= 10 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %d: differs from the plain solve by %g of %g", k, (double)error, (double)norm);
  }

  /* a failure of another kind, which every outer solver has to see, does not stay either. KSPPREONLY has the last iterate then, too. */
  PetscCall(KSPSetMinimumIterations(inner, 2));
  PetscCall(KSPSetMinimumIterations(plain, 2));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetTolerances(inner, PETSC_CURRENT, PETSC_CURRENT, k == 0 ? 1e-10 : 1e4, PETSC_CURRENT));
    PetscCall(KSPSetTolerances(plain, PETSC_CURRENT, PETSC_CURRENT, k == 0 ? 1e-10 : 1e4, PETSC_CURRENT));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(CheckReason(ksp, (PetscBool)(k == 1), "divergence"));
    if (!preonly) continue;
    PetscCall(KSPSolve(plain, b, y));
    PetscCall(TestVecError(x, y, &error, &norm));
    PetscCheck(norm > 0 && error <= 10 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "divergence, %d: differs from the plain solve by %g of %g", k, (double)error, (double)norm);
  }
  PetscCall(KSPSetMinimumIterations(inner, 0));

  /* all columns, of which only one takes more than three iterations */
  PetscCall(TestCreateDense(A, PETSC_FALSE, MATDENSE, 3, PETSC_FALSE, 96, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  for (PetscInt k = 0; k < 3; k++) {
    Vec v;

    if (k == 1) continue;
    PetscCall(MatDenseGetColumnVecWrite(B, k, &v));
    PetscCall(VecSet(v, 0.0));
    PetscCall(MatDenseRestoreColumnVecWrite(B, k, &v));
  }
  for (int k = 0; k < 4 && preonly; k++) {
    PetscCall(KSPSetTolerances(inner, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, k % 2 == 0 ? 3 : 2 * SIZE));
    PetscCall(k < 2 ? KSPMatSolve(ksp, B, X) : KSPMatSolveTranspose(ksp, B, X));
    PetscCall(CheckReason(ksp, (PetscBool)(k % 2 == 1), k < 2 ? "KSPMatSolve()" : "KSPMatSolveTranspose()"));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveAndCheck(KSP ksp, KSP inner, PetscReal rtol, PetscReal abstol, PetscReal divtol, PetscInt max_it, PetscInt min_it, const char what[])
{
  Mat       A;
  Vec       x, b;
  PetscReal r, a, d;
  PetscInt  most, least;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 97));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetTolerances(inner, &r, &a, &d, &most));
  PetscCall(KSPGetMinimumIterations(inner, &least));
  PetscCheck(r == rtol && a == abstol && d == divtol && most == max_it && least == min_it, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: tolerances inside are %g %g %g, %" PetscInt_FMT " and %" PetscInt_FMT " iterations, but should be %g %g %g, %" PetscInt_FMT " and %" PetscInt_FMT, what, (double)r, (double)a, (double)d, most, least, (double)rtol, (double)abstol, (double)divtol, max_it, min_it);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tolerances of the outer solver hold inside, as they are at each solve, unless they were set for the solver inside */
static PetscErrorCode TolerancesOf(Mat A)
{
  const PetscReal r[] = {(PetscReal)1e-3, (PetscReal)1e-2, (PetscReal)0.25, (PetscReal)0.125}, a[] = {(PetscReal)1e-9, (PetscReal)1e-8}, d[] = {1000, 2000};
  KSP             ksp, inner;
  PetscReal       rtol, abstol, divtol;
  PetscInt        max_it;

  PetscFunctionBegin;
  PetscCall(CreateSolver(A, KSPPREONLY, "by_program_", &ksp, &inner));
  PetscCall(KSPGetTolerances(inner, &rtol, &abstol, &divtol, &max_it));
  PetscCall(SolveAndCheck(ksp, inner, rtol, abstol, divtol, max_it, 0, "defaults"));
  PetscCall(KSPSetTolerances(ksp, r[0], a[0], d[0], 300));
  PetscCall(KSPSetMinimumIterations(ksp, 2));
  PetscCall(SolveAndCheck(ksp, inner, r[0], a[0], d[0], 300, 2, "set"));
  PetscCall(KSPSetTolerances(ksp, r[1], a[1], d[1], 301));
  PetscCall(SolveAndCheck(ksp, inner, r[1], a[1], d[1], 301, 2, "changed"));
  PetscCall(KSPSetTolerances(inner, r[2], PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetTolerances(ksp, r[0], a[0], PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(SolveAndCheck(ksp, inner, r[2], a[0], d[1], 301, 2, "one for the solver inside"));
  PetscCall(KSPSetType(ksp, KSPFGMRES));
  PetscCall(KSPSetTolerances(ksp, r[3], a[1], d[0], 300));
  PetscCall(SolveAndCheck(ksp, inner, r[2], a[0], d[1], 301, 2, "of an outer solver that iterates"));
  PetscCall(KSPDestroy(&ksp));

  PetscCall(PetscOptionsSetValue(NULL, "-by_option_ksp_rtol", "0.25"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_option_ksp_atol", "1e-8"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_option_ksp_divtol", "2000"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_option_ksp_max_it", "300"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_option_ksp_min_it", "2"));
  PetscCall(CreateSolver(A, KSPPREONLY, "by_option_", &ksp, &inner));
  PetscCall(SolveAndCheck(ksp, inner, rtol, abstol, divtol, max_it, 0, "options that were not asked for"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(SolveAndCheck(ksp, inner, r[2], a[1], d[1], 300, 2, "options"));
  PetscCall(KSPSetTolerances(ksp, r[3], PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(SolveAndCheck(ksp, inner, r[3], a[1], d[1], 300, 2, "changed after options"));
  PetscCall(KSPDestroy(&ksp));

  /* values that the solver inside has anyway hold as options too */
  PetscCall(PetscOptionsSetValue(NULL, "-by_both_ksp_rtol", "0.25"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_both_reorder_ksp_rtol", "1e-5"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_both_reorder_ksp_max_it", "301"));
  PetscCall(CreateSolver(A, KSPPREONLY, "by_both_", &ksp, &inner));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, a[0], PETSC_CURRENT, 300));
  PetscCall(SolveAndCheck(ksp, inner, rtol, a[0], divtol, 301, 0, "options for both"));
  PetscCall(KSPSetTolerances(inner, r[3], PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(SolveAndCheck(ksp, inner, r[3], a[0], divtol, 301, 0, "set after options for both"));
  PetscCall(KSPDestroy(&ksp));

  /* options that are words: the numbers that they stand for are followed as others are */
  PetscCall(PetscOptionsSetValue(NULL, "-by_word_ksp_rtol", "determine"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_word_ksp_atol", "determine"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_word_ksp_divtol", "unlimited"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_word_ksp_max_it", "unlimited"));
  PetscCall(CreateSolver(A, KSPPREONLY, "by_word_", &ksp, &inner));
  PetscCall(KSPSetTolerances(ksp, r[0], a[0], d[0], 300));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = 0; k < 2; k++) PetscCall(SolveAndCheck(ksp, inner, rtol, abstol, PETSC_MAX_REAL, PETSC_INT_MAX, 0, "words"));
  PetscCall(KSPSetTolerances(ksp, r[1], a[1], d[1], 5));
  PetscCall(SolveAndCheck(ksp, inner, r[1], a[1], d[1], 5, 0, "changed after words"));
  PetscCall(KSPDestroy(&ksp));

  PetscCall(PetscOptionsSetValue(NULL, "-by_inner_word_reorder_ksp_rtol", "determine"));
  PetscCall(PetscOptionsSetValue(NULL, "-by_inner_word_reorder_ksp_max_it", "unlimited"));
  PetscCall(CreateSolver(A, KSPPREONLY, "by_inner_word_", &ksp, &inner));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetTolerances(ksp, r[k], a[k], d[k], 300 + k));
    PetscCall(SolveAndCheck(ksp, inner, rtol, a[k], d[k], PETSC_INT_MAX, 0, "words for the solver inside"));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A guess of the outer solver is one for the solver inside */
static PetscErrorCode Guess(Mat A)
{
  KSP       ksp, inner;
  Vec       x, y, b;
  PetscInt  its[3];
  PetscReal norm, error;
  PetscBool nonzero;

  PetscFunctionBegin;
  PetscCall(CreateSolver(A, KSPPREONLY, NULL, &ksp, &inner));
  PetscCall(KSPSetTolerances(ksp, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(TestSetVec(b, 98));
  for (int k = 0; k < 3; k++) {
    PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)(k == 1)));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetInitialGuessNonzero(ksp, &nonzero));
    PetscCheck(nonzero == (PetscBool)(k == 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the outer solver has lost its guess");
    PetscCall(KSPGetInitialGuessNonzero(inner, &nonzero));
    PetscCheck(!nonzero, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the solver inside has kept the guess");
    PetscCall(KSPGetIterationNumber(inner, &its[k]));
    if (k == 0) PetscCall(VecCopy(x, y));
  }
  PetscCheck(its[0] > 3 && its[1] <= 1 && its[2] == its[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations from the solution, %" PetscInt_FMT " and %" PetscInt_FMT " from 0", its[1], its[0], its[2]);
  PetscCall(TestVecError(x, y, &error, &norm));
  PetscCheck(error <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the solution differs by %g of %g", (double)error, (double)norm);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Handler(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode ierr, PetscErrorType type, const char *text, PetscCtx ctx)
{
  char *found = NULL;

  if (text && !PetscStrstr(text, "The solver inside PCGALLOPREORDER has not converged: DIVERGED_ITS, 3 iterations", &found) && found) *(PetscBool *)ctx = PETSC_TRUE;
  return ierr;
}

/* Errors, when they are asked for by the program, by an option, or by one for the solver inside. Last, as PETSc's solvers do not come back from errors. */
static PetscErrorCode Errors(Mat A)
{
  Vec x, b;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-error1_ksp_error_if_not_converged", NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-error2_reorder_ksp_error_if_not_converged", NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 99));
  for (int k = 0; k < 3; k++) {
    const char *const prefix[] = {"error0_", "error1_", "error2_"};
    KSP               ksp, inner;
    PetscErrorCode    ierr;
    PetscBool         told = PETSC_FALSE;

    PetscCall(CreateSolver(A, KSPPREONLY, prefix[k], &ksp, &inner));
    PetscCall(KSPSetFromOptions(ksp));
    if (k == 0) PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_TRUE));
    PetscCall(KSPSolve(ksp, b, x)); /* nothing to tell */
    PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 3));
    PetscCall(PetscPushErrorHandler(Handler, &told));
    ierr = KSPSolve(ksp, b, x);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_NOT_CONVERGED && told, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%sksp: error %d, which does %stell why", prefix[k], (int)ierr, told ? "" : "not ");
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options are looked at before each solve, the same ones or another order, which changes what iterates but not the solution */
static PetscErrorCode Orders(Mat A)
{
  const char *const orders[] = {"rcm", "rcm", "format", "format", "nd"};
  KSP               ksp, inner;
  Vec               x, y, b;
  PetscReal         norm, error;

  PetscFunctionBegin;
  PetscCall(CreateSolver(A, KSPPREONLY, "orders_", &ksp, &inner));
  PetscCall(KSPSetTolerances(ksp, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(TestSetVec(b, 94));
  PetscCall(KSPSolve(ksp, b, y));
  PetscCall(VecNorm(y, NORM_2, &norm));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(orders); k++) {
    PetscCall(PetscOptionsSetValue(NULL, "-orders_reorder_order", orders[k]));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(CheckReason(ksp, PETSC_TRUE, orders[k]));
    PetscCall(VecAXPY(x, -1.0, y));
    PetscCall(VecNorm(x, NORM_2, &error));
    PetscCheck(error <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "order %d, %s: the solution differs by %g of %g", (int)k, orders[k], (double)error, (double)norm);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solver that another object owns, such as TAO, and is viewed under it stands for the program's */
static PetscErrorCode Owned(Mat A)
{
  KSP ksp, inner;
  Vec x, b;

  PetscFunctionBegin;
  PetscCall(CreateSolver(A, KSPPREONLY, NULL, &ksp, &inner));
  PetscCall(PetscObjectSetTabLevel((PetscObject)ksp, 1));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 93));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 3));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(CheckReason(ksp, PETSC_FALSE, "a solver with an owner"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  As the solver of blocks, KSPPREONLY by default, it may be inexact: reaching the maximum number of iterations is no failure. That is so where PETSc tells that the solver is such a one; elsewhere it has to be
  asked for. In SNES it stands for the program's solver and is one.
*/
static PetscErrorCode Within(Mat A, PCType type, PetscBool told, PetscBool asked)
{
  const PetscBool    converges = (PetscBool)(told || asked);
  KSP                ksp;
  PC                 pc;
  Vec                x, b;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, "-within_sub_pc_type gallopreorder -within_sub_reorder_ksp_type cg -within_sub_reorder_pc_type jacobi -within_sub_reorder_ksp_max_it 5 -within_ksp_ksp_type "
                                           "preonly -within_ksp_pc_type gallopreorder -within_ksp_reorder_ksp_type cg -within_ksp_reorder_pc_type jacobi -within_ksp_reorder_ksp_max_it 5"));
  PetscCall(PetscOptionsSetValue(NULL, "-within_sub_reorder_ksp_converged_maxits", asked ? "true" : "false"));
  PetscCall(PetscOptionsSetValue(NULL, "-within_ksp_reorder_ksp_converged_maxits", asked ? "true" : "false"));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "within_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPFGMRES));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, type));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 96));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(converges ? reason > 0 : reason == KSP_DIVERGED_PC_FAILED, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "within %s, %s: %s", type, asked ? "as many iterations as are wanted" : "inexact", KSPConvergedReasons[reason]);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormFunction(SNES snes, Vec x, Vec f, PetscCtx ctx)
{
  PetscFunctionBegin;
  (void)snes;
  PetscCall(MatMult((Mat)ctx, x, f));
  PetscCall(VecShift(f, -1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormJacobian(SNES snes, Vec x, Mat J, Mat P, PetscCtx ctx)
{
  PetscFunctionBegin;
  (void)snes, (void)x, (void)J, (void)P, (void)ctx;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InSNES(Mat A)
{
  SNES                snes;
  KSP                 ksp, inner;
  PC                  pc;
  Vec                 x;
  SNESConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(SNESSetFunction(snes, NULL, FormFunction, A));
  PetscCall(SNESSetJacobian(snes, A, A, FormJacobian, NULL));
  PetscCall(SNESGetKSP(snes, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGALLOPREORDER));
  PetscCall(PCGallopReorderGetKSP(pc, &inner));
  PetscCall(KSPSetType(inner, KSPCG));
  PetscCall(KSPGetPC(inner, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetTolerances(inner, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, k ? 10000 : 2));
    PetscCall(VecSet(x, 0.0));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCheck(k ? reason > 0 : reason == SNES_DIVERGED_LINEAR_SOLVE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "in SNES, with %s iterations: %s", k ? "enough" : "too few", SNESConvergedReasons[reason]);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(SNESDestroy(&snes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(CreateMatrix(&A));
  PetscCall(Failures(A, KSPPREONLY));
  PetscCall(Failures(A, KSPNONE));
  PetscCall(Failures(A, KSPFGMRES));
  PetscCall(TolerancesOf(A));
  PetscCall(Guess(A));
  PetscCall(Errors(A));
  for (int k = 0; k < 2; k++) {
    PetscCall(Within(A, PCBJACOBI, PETSC_TRUE, (PetscBool)(k == 1)));
    PetscCall(Within(A, PCASM, PETSC_FALSE, (PetscBool)(k == 1)));
    PetscCall(Within(A, PCKSP, PETSC_FALSE, (PetscBool)(k == 1)));
  }
  PetscCall(Orders(A));
  PetscCall(Owned(A));
  PetscCall(InSNES(A));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 4}}
    output_file: output/empty.out

TEST*/
