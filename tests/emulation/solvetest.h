/* SPDX-License-Identifier: BSD-2-Clause */
/* A solver of PETSc's with ours inside beside PETSc's, which has registered it: iterations, reasons, norms, solutions, and bits */
#pragma once
#include "solvers.h"

static long solves, iterations;

typedef enum { USUAL, GUESS, ZERO, NOT_A_NUMBER, NO_ITERATION, FEW_ITERATIONS, VARIANTS } Variant;

struct Result {
  PetscInt               its;
  KSPConvergedReason     reason;
  std::vector<PetscReal> norms;
  long                   kernels;
  PetscLogDouble         reductions; /* by MPI */
  int                    applied;    /* how many times PETSc has applied the preconditioner, where it logs that */
};

/* What is tested: PETSc's, by which options ours is, what it launches, and whether several processes get the same bits in each run */
struct Solver {
  KSPType                                     parent;
  const char                                 *options;
  std::function<bool(const Result &, PCType)> isright;
  bool                                        bits;
};

static PetscErrorCode GetApplied(int *applied)
{
  PetscEventPerfInfo info    = {};
  PetscBool          logging = PETSC_FALSE;
  PetscLogEvent      event;

  PetscFunctionBegin;
  PetscCall(PetscLogIsActive(&logging));
  PetscCall(PetscLogEventGetId("PCApply", &event));
  if (logging && event >= 0) PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
  *applied = info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveOnce(KSPType type, const char *options, PCType pctype, KSPNormType norm, Variant variant, Mat A, Vec b, Vec x, Result *result)
{
  KSP              ksp;
  PC               pc;
  const PetscReal *norms;
  PetscInt         n;
  int              applied;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(ksp, 1e-7, PETSC_CURRENT, PETSC_CURRENT, variant == NO_ITERATION ? 0 : variant == FEW_ITERATIONS || norm == KSP_NORM_NONE ? 4 : 100));
  PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)(variant == GUESS)));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 200, PETSC_TRUE));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClear(NULL));
  PetscCall(VecSet(x, variant == GUESS ? 0.25 : 0));
  launches           = 0;
  result->reductions = petsc_allreduce_ct;
  PetscCall(GetApplied(&applied));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &result->its));
  PetscCall(KSPGetConvergedReason(ksp, &result->reason));
  PetscCall(KSPGetResidualHistory(ksp, &norms, &n));
  result->norms.assign(norms, norms + n);
  result->kernels    = launches;
  result->reductions = petsc_allreduce_ct - result->reductions;
  PetscCall(GetApplied(&result->applied));
  result->applied -= applied;
  PetscCall(KSPDestroy(&ksp));
  emu::CheckCanaries("after a solve");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool Near(PetscReal a, PetscReal b, PetscReal scale)
{
  if (!isfinite(a) || !isfinite(b)) return isfinite(a) == isfinite(b);
  return fabs(a - b) <= 1e-9 * scale;
}

static PetscErrorCode TestSolve(const Solver &solver, KSPType type, PCType pc, KSPNormType norm, Variant variant)
{
  const PetscInt n = 700;
  Mat            A;
  Vec            b, x, y, again;
  PetscInt       rstart, rend;
  PetscReal      difference, size;
  PetscMPIInt    processes;
  PetscBool      equal;
  int            more;
  Result         wanted, found;
  char           name[200];

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "%s, %s, norm %d, variant %d", type, pc, norm, variant);
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 3, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    PetscCall(MatSetValue(A, r, r, 2.02 + (PetscReal)(r % 7) / 20, INSERT_VALUES));
    if (r) PetscCall(MatSetValue(A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(A, r, r + 1, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &again));
  for (PetscInt r = rstart; r < rend; r++) PetscCall(VecSetValue(b, r, variant == ZERO ? 0 : variant == NOT_A_NUMBER && r == 7 ? NAN : 1 + r % 3, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  emu::async    = false;
  emu::resident = 1 + (int)(choice() % 5);
  PetscCall(SolveOnce(solver.parent, "-ksp_gallop_fuse false", pc, norm, variant, A, b, y, &wanted));
  if (wanted.kernels) emu::Fail("%s: kernels in PETSc's solver", name);
  PetscCall(SolveOnce(type, solver.options, pc, norm, variant, A, b, x, &found));
  emu::resident = 1 + (int)(choice() % 5);
  PetscCall(SolveOnce(type, solver.options, pc, norm, variant, A, b, again, &found));
  if (found.its != wanted.its || found.reason != wanted.reason)
    emu::Fail("%s: %s after %ld iterations, not %s after %ld", name, KSPConvergedReasons[found.reason], (long)found.its, KSPConvergedReasons[wanted.reason], (long)wanted.its);
  solves++;
  iterations += found.its;
  if (!solver.isright(found, pc)) emu::Fail("%s: %ld kernels and %g reductions in %ld iterations", name, found.kernels, found.reductions, (long)found.its);
  /* CG knows the norm of r only after it has applied a preconditioner of another kind to it, except at the start; BiCGStab starts both products before it knows (v, rp) */
  if (!strcmp(solver.parent, KSPCG)) more = found.its && (norm == KSP_NORM_NONE || norm == KSP_NORM_UNPRECONDITIONED);
  else more = found.reason == KSP_DIVERGED_BREAKDOWN || (norm == KSP_NORM_NONE && variant == NOT_A_NUMBER);
  if (!strcmp(pc, PCSOR) && (found.applied < wanted.applied || found.applied > wanted.applied + more))
    emu::Fail("%s: the preconditioner is applied %d times, not %d", name, found.applied, wanted.applied);
  if (found.norms.size() != wanted.norms.size()) emu::Fail("%s: %zu norms, not %zu", name, found.norms.size(), wanted.norms.size());
  for (size_t k = 0; k < wanted.norms.size(); k++)
    if (!Near(found.norms[k], wanted.norms[k], wanted.norms[0])) emu::Fail("%s: norm %zu is %g, not %g", name, k, (double)found.norms[k], (double)wanted.norms[k]);
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &processes));
  PetscCall(VecEqual(x, again, &equal));
  PetscCall(VecAXPY(x, -1, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCall(VecNorm(y, NORM_2, &size));
  if (isfinite(size) != isfinite(difference) || (isfinite(size) && !(difference <= 1e-9 * (1 + size)))) emu::Fail("%s: solutions differ by %g of %g", name, (double)difference, (double)size);
  if (isfinite(size) && (processes == 1 || solver.bits) && !equal) emu::Fail("%s: another order of thread blocks gives other bits", name);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&again));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
