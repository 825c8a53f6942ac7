/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "PCGALLOPREORDER: the solution of the plain solve, by products that permute nothing, while the operator changes between solves.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"
#include <petscksp.h>

#define GRID 24
#define SIZE (GRID * GRID)

/* Adds w (e_r - e_s)(e_r - e_s)^T, and what makes it unsymmetric */
static PetscErrorCode Link(Mat A, PetscInt r, PetscInt s, PetscReal w, PetscReal wind)
{
  const PetscInt    rows[] = {r, s};
  const PetscScalar v[]    = {w, -w + wind, -w - wind, w};

  PetscFunctionBegin;
  if (r != s) PetscCall(MatSetValues(A, 2, rows, 2, rows, v, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscReal shift, wind, weight;
  PetscBool more; /* another nonzero pattern */
} Problem;

/* A grid, links across it, and a hub that a third of the nodes are linked to, whose row is longer than what EVCHYB puts into SubELL */
static PetscErrorCode Fill(Mat A, Problem p)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatZeroEntries(A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    PetscCall(MatSetValue(A, r, r, p.shift, ADD_VALUES));
    if (r % GRID) PetscCall(Link(A, r, r - 1, p.weight, p.wind));
    if (r >= GRID) PetscCall(Link(A, r, r - GRID, 1, 0));
    if (r % 5 == 0) PetscCall(Link(A, r, (37 * r + 11) % SIZE, p.weight / 2, 0));
    if (r % 3 == 0) PetscCall(Link(A, r, SIZE / 2 + 5, (PetscReal)0.02, 0));
    if (r % 4 == 0 && p.more) PetscCall(Link(A, r, SIZE - 1 - r, (PetscReal)0.3, 0));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(MatType type, Problem p, Mat *A)
{
  const TestShape shape = {SIZE, SIZE, PETSC_FALSE};

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, type, shape, A));
  PetscCall(Fill(*A, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG takes no wind */
static PetscErrorCode GetProblem(Problem *p)
{
  char      type[32] = "";
  PetscBool cg;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, "reorder_", "-ksp_type", type, sizeof(type), NULL));
  PetscCall(PetscStrcmp(type, KSPCG, &cg));
  *p = (Problem){(PetscReal)0.5, cg ? 0 : (PetscReal)0.4, 1, PETSC_FALSE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const PetscReal Tolerance = 100 * PETSC_MACHINE_EPSILON, Allowed = 1e5 * PETSC_MACHINE_EPSILON;

/* All from the command line but the tolerances of the solver inside */
static PetscErrorCode CreateSolver(Mat A, Mat P, KSP *ksp, KSP *inner)
{
  PC        pc;
  PetscBool reorder;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, P));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGALLOPREORDER, &reorder));
  PetscCheck(reorder, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "-pc_type gallopreorder has not been taken");
  PetscCall(PCGallopReorderGetKSP(pc, inner));
  PetscCall(KSPSetTolerances(*inner, Tolerance, PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plain solve, and that x has its solution */
static PetscErrorCode CheckSolution(Mat R, KSPType type, PetscBool transpose, Vec b, Vec x, PetscInt *its, const char what[])
{
  KSP                ksp;
  PC                 pc;
  Vec                y, c;
  PetscReal          norm, error;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(VecCopy(b, c));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, R, R));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetTolerances(ksp, Tolerance, PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  if (transpose) PetscCall(KSPSolveTranspose(ksp, c, y));
  else PetscCall(KSPSolve(ksp, c, y));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the plain solve did not converge: %s", what, KSPConvergedReasons[reason]);
  if (its) PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(TestVecError(x, y, &error, &norm));
  PetscCheck(norm > 0 && error <= Allowed * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: differs from the plain solve by %g of %g", what, (double)error, (double)norm);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of the operator inside are in order */
static PetscErrorCode CheckInOrder(Mat B)
{
  const void *data;
  EVCHYB     *ev;
  PetscBool   mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)B, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(B, &B, NULL, NULL));
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, &data));
  if (!data) PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the operator inside has no format");
  PetscCall(EVCHYBCopyToHost((const EVCHYB *)data, &ev));
  PetscCheck(ev->plain->inorder, PETSC_COMM_SELF, PETSC_ERR_PLIB, "products inside permute rows");
  for (PetscInt r = 0; r < ev->plain->ell.n + ev->plain->csr.n; r++)
    PetscCheck(ev->plain->perm[r] == r, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " inside comes as number %" PetscInt_FMT, ev->plain->perm[r], r);
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve: its solution, how often it permuted operator and vectors, and who computed the products */
static PetscErrorCode Solve(KSP ksp, KSP inner, Mat A, Mat R, PetscInt matpermutes, const char what[])
{
  Vec                 x, b;
  Mat                 B;
  PC                  pc;
  KSPType             type;
  KSPConvergedReason  reason;
  PetscInt            before[2], after[2], its, plain;
  PetscBool           ours, evchyb, jacobi, device = PETSC_FALSE;
  MatGallopStatistics stats;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 90));
  PetscCall(KSPSetUp(ksp)); /* null spaces and the like are no matter of the solve */
  PetscCall(TestEventCount("GallopVecPermute", &before[1], NULL));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TestEventCount("GallopMatPermute", &after[0], NULL));
  PetscCall(TestEventCount("GallopVecPermute", &after[1], NULL));
  PetscCall(KSPGetConvergedReason(inner, &reason));
  PetscCall(KSPGetIterationNumber(inner, &its));
  PetscCheck(reason > 0 && its > 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the solver inside did not solve: %s after %" PetscInt_FMT " iterations", what, KSPConvergedReasons[reason], its);
  PetscCall(KSPGetType(inner, &type));
  PetscCall(CheckSolution(R, type, PETSC_FALSE, b, x, &plain, what));
  PetscCheck(after[0] == matpermutes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the operator was permuted %" PetscInt_FMT " times, not %" PetscInt_FMT, what, after[0], matpermutes);
  PetscCheck(after[1] == before[1] + 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " vectors were permuted, not right-hand side and solution", what, after[1] - before[1]);
  /* what does not depend on the order of rows takes as many iterations */
  PetscCall(KSPGetPC(inner, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  PetscCall(PetscObjectTypeCompare((PetscObject)inner, KSPBCGS, &ours)); /* which rounding errors lead far astray */
  PetscCheck(!jacobi || ours || PetscAbsInt(its - plain) <= 2, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, %" PetscInt_FMT " in the plain solve", what, its, plain);

  PetscCall(KSPGetOperators(inner, &B, NULL));
  PetscCheck(B != A, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the operator inside is not permuted", what);
  PetscCall(MatGallopIsFormat(A, &ours));
  PetscCall(TestIsOurs(B, ours, what));
  if (ours) {
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck(!stats.products_host && !stats.products_device && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: products with the operator that is not permuted", what);
    PetscCall(MatGallopGetStatistics(B, &stats));
    PetscCheck((device ? stats.products_device : stats.products_host) >= its && !(device ? stats.products_host : stats.products_device) && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "%s: %" PetscInt64_FMT " products by the format on the GPU, %" PetscInt64_FMT " on the host and %" PetscInt64_FMT " by the parent in %" PetscInt_FMT " iterations", what, stats.products_device, stats.products_host, stats.fallbacks, its);
    PetscCall(PetscStrcmp(TestFormat(""), MATEVCHYB, &evchyb));
    if (evchyb) PetscCall(CheckInOrder(B));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Counts(KSP inner, MatGallopStatistics *stats)
{
  Mat       B;
  PetscBool ours;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(inner, &B, NULL));
  PetscCall(MatGallopIsFormat(B, &ours));
  PetscCall(PetscMemzero(stats, sizeof(*stats)));
  if (ours) PetscCall(MatGallopGetStatistics(B, stats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same operator twice, then new values, then a new pattern, then another matrix */
static PetscErrorCode Sequence(MatType type)
{
  Problem             p;
  KSP                 ksp, inner;
  Mat                 A, R, B[2];
  PetscObjectId       id[2];
  PetscInt            permutes;
  MatGallopStatistics before, after;

  PetscFunctionBegin;
  PetscCall(GetProblem(&p));
  PetscCall(CreateMatrix(type, p, &A));
  PetscCall(CreateMatrix(MATAIJ, p, &R));
  PetscCall(CreateSolver(A, A, &ksp, &inner));
  PetscCall(TestEventCount("GallopMatPermute", &permutes, NULL));
  PetscCall(Solve(ksp, inner, A, R, permutes + 1, "first solve"));
  PetscCall(Solve(ksp, inner, A, R, permutes + 1, "second solve"));
  PetscCall(KSPGetOperators(inner, &B[0], NULL));
  PetscCall(PetscObjectGetId((PetscObject)B[0], &id[0]));

  PetscCall(Counts(inner, &before));
  p.weight = 2;
  PetscCall(Fill(A, p));
  PetscCall(Fill(R, p));
  PetscCall(Solve(ksp, inner, A, R, permutes + 2, "new values"));
  PetscCall(Counts(inner, &after));
  PetscCall(KSPGetOperators(inner, &B[1], NULL));
  PetscCall(PetscObjectGetId((PetscObject)B[1], &id[1]));
  PetscCheck(id[0] == id[1] && after.builds == before.builds, PETSC_COMM_SELF, PETSC_ERR_PLIB, "new values: the permuted operator was made anew");

  p.more = PETSC_TRUE;
  PetscCall(Fill(A, p)); /* to a matrix that has room no longer */
  PetscCall(Fill(R, p));
  PetscCall(Solve(ksp, inner, A, R, permutes + 3, "new pattern"));
  PetscCall(KSPGetOperators(inner, &B[1], NULL));
  PetscCall(PetscObjectGetId((PetscObject)B[1], &id[1]));
  PetscCheck(id[0] != id[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "new pattern: the permuted operator is the old one");
  p.weight = 1;
  PetscCall(Fill(A, p));
  PetscCall(Fill(R, p));
  PetscCall(Solve(ksp, inner, A, R, permutes + 4, "new values of the new pattern"));
  PetscCall(TestDestroy(&A, &R));

  p.more = PETSC_FALSE;
  PetscCall(CreateMatrix(type, p, &A));
  PetscCall(CreateMatrix(MATAIJ, p, &R));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Solve(ksp, inner, A, R, permutes + 5, "another matrix"));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Solve(ksp, inner, A, R, permutes + 6, "after KSPReset()"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The preconditioner from another matrix, with another pattern, and changes of either one alone */
static PetscErrorCode TwoMatrices(void)
{
  Problem  p, q;
  KSP      ksp, inner;
  KSPType  type;
  Mat      A, R, P, inside[2];
  Vec      x, b;
  PetscInt permutes = 0, now = 0;

  PetscFunctionBegin;
  PetscCall(GetProblem(&p));
  q      = p;
  q.more = PETSC_TRUE;
  PetscCall(CreateMatrix(TestFormat(""), p, &A));
  PetscCall(CreateMatrix(MATAIJ, p, &R));
  PetscCall(CreateMatrix(TestFormat(""), q, &P));
  PetscCall(CreateSolver(A, P, &ksp, &inner));
  PetscCall(KSPGetType(inner, &type));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 91));
  PetscCall(TestEventCount("GallopMatPermute", &permutes, NULL));
  for (int k = 0; k < 4; k++) {
    if (k == 1) {
      PetscCall(MatScale(A, 2.0));
      PetscCall(MatScale(R, 2.0));
    } else if (k == 2) PetscCall(MatScale(P, 2.0));
    else if (k == 3) {
      p.more = PETSC_TRUE;
      PetscCall(Fill(A, p));
      PetscCall(Fill(R, p));
    }
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(CheckSolution(R, type, PETSC_FALSE, b, x, NULL, k == 0 ? "two matrices" : k == 1 ? "new values of the operator" : k == 2 ? "new values of the other" : "new pattern of the operator"));
    PetscCall(KSPGetOperators(inner, &inside[0], &inside[1]));
    PetscCheck(inside[0] != inside[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "one matrix inside");
    PetscCall(TestEventCount("GallopMatPermute", &now, NULL));
    PetscCheck(now == permutes + (k == 0 || k == 3 ? 2 : 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %d: %" PetscInt_FMT " matrices were permuted", k, now - permutes);
    permutes = now;
  }
  PetscCall(KSPSetOperators(ksp, A, A)); /* and back to one */
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(CheckSolution(R, type, PETSC_FALSE, b, x, NULL, "one matrix again"));
  PetscCall(KSPGetOperators(inner, &inside[0], &inside[1]));
  PetscCheck(inside[0] == inside[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "two matrices inside");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&P));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D L D, whose null space D^-1 1 changes with the order of rows, unlike a constant */
static PetscErrorCode CreateSingular(Mat *A, Vec *null)
{
  const Problem p = {0, 0, 1, PETSC_FALSE};
  Vec           d;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(TestFormat(""), p, A));
  PetscCall(MatCreateVecs(*A, &d, null));
  PetscCall(TestSetVec(d, 92));
  PetscCall(VecAbs(d));
  PetscCall(VecShift(d, 1.0));
  PetscCall(MatDiagonalScale(*A, d, d));
  PetscCall(VecCopy(d, *null));
  PetscCall(VecReciprocal(*null));
  PetscCall(VecNormalize(*null, NULL));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetNullSpaces(Mat A, MatNullSpace sp, MatNullSpace near)
{
  PetscFunctionBegin;
  PetscCall(MatSetNullSpace(A, sp));
  PetscCall(MatSetTransposeNullSpace(A, sp));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operators inside have the null spaces sp and near, permuted, or none where these are NULL */
static PetscErrorCode CheckNullSpaces(KSP inner, MatNullSpace sp, MatNullSpace near, const char what[])
{
  Mat          B[2];
  MatNullSpace inside[3];
  PetscBool    isnull, constant[2];
  PetscInt     n[2];

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(inner, &B[0], &B[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetNullSpace(B[k], &inside[0]));
    PetscCall(MatGetTransposeNullSpace(B[k], &inside[1]));
    PetscCall(MatGetNearNullSpace(B[k], &inside[2]));
    for (int j = 0; j < 3; j++)
      PetscCheck(!inside[j] == !(j < 2 ? sp : near), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s %snull space inside", what, inside[j] ? "an old" : "no", j == 0 ? "" : j == 1 ? "transpose " : "near ");
    for (int j = 0; j < 2 && sp; j++) {
      PetscCall(MatNullSpaceTest(inside[j], B[k], &isnull));
      PetscCheck(isnull, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the null space inside is not that of the operator inside", what);
    }
    if (!near) continue;
    PetscCall(MatNullSpaceGetVecs(near, &constant[0], &n[0], NULL));
    PetscCall(MatNullSpaceGetVecs(inside[2], &constant[1], &n[1], NULL));
    PetscCheck(constant[0] == constant[1] && n[0] == n[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: another near null space inside", what);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NullSpaces(void)
{
  Mat                A;
  Vec                null, x, b;
  MatNullSpace       sp, near;
  KSP                ksp, inner;
  KSPConvergedReason reason;
  PetscReal          norm, residual;
  PetscScalar        dot;

  PetscFunctionBegin;
  PetscCall(CreateSingular(&A, &null));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &null, &sp));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &near));
  PetscCall(SetNullSpaces(A, sp, near));
  PetscCall(CreateSolver(A, A, &ksp, &inner));
  PetscCall(KSPSetTolerances(inner, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 93)); /* not in the range of A */
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(inner, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "null space: %s", KSPConvergedReasons[reason]);
  PetscCall(CheckNullSpaces(inner, sp, near, "null space"));
  PetscCall(VecDot(x, null, &dot));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCheck(PetscAbsScalar(dot) <= Allowed * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the solution has %g of %g in the null space", (double)PetscAbsScalar(dot), (double)norm);
  PetscCall(MatNullSpaceRemove(sp, b));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(VecScale(b, -1.0));
  PetscCall(MatMultAdd(A, x, b, b));
  PetscCall(VecNorm(b, NORM_2, &residual));
  PetscCheck(residual <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "null space: residual %g of %g", (double)residual, (double)norm);
  PetscCall(MatNullSpaceDestroy(&sp));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&null));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Null spaces that are set, replaced or taken away after the set-up: they hold at the next solve, and the operators are not permuted again */
static PetscErrorCode ChangedNullSpaces(void)
{
  Mat                A, P;
  Vec                null, x, b;
  MatNullSpace       sp, near[2];
  KSP                ksp, inner;
  KSPConvergedReason reason;
  PetscInt           before[2] = {0, 0}, after[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(CreateSingular(&A, &null));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &null, &sp));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &near[0]));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &null, &near[1]));
  PetscCall(MatCreateVecs(A, &x, &b));
  for (int two = 0; two < 2; two++) {
    PetscCall(CreateSolver(A, two ? P : A, &ksp, &inner));
    PetscCall(KSPSetTolerances(inner, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, 1000));
    PetscCall(KSPSetUp(ksp));
    PetscCall(CheckNullSpaces(inner, NULL, NULL, "set-up"));
    for (int k = 0; k < 4; k++) {
      const char *const  what[]  = {"set", "the same", "another near one", "taken away"};
      const MatNullSpace space   = k < 3 ? sp : NULL;
      const MatNullSpace nearone = k < 2 ? near[0] : k < 3 ? near[1] : NULL;

      PetscCall(SetNullSpaces(A, space, nearone));
      PetscCall(SetNullSpaces(P, space, nearone));
      PetscCall(VecSet(b, 0.0));
      if (space) PetscCall(TestSetVec(b, 93)); /* not in the range of A */
      PetscCall(TestEventCount("GallopMatPermute", &before[0], NULL));
      PetscCall(TestEventCount("GallopVecPermute", &before[1], NULL));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(TestEventCount("GallopMatPermute", &after[0], NULL));
      PetscCall(TestEventCount("GallopVecPermute", &after[1], NULL));
      PetscCall(KSPGetConvergedReason(inner, &reason));
      PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s", what[k], KSPConvergedReasons[reason]);
      PetscCall(CheckNullSpaces(inner, space, nearone, what[k]));
      PetscCheck(after[0] == before[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the operator was permuted", what[k]);
      PetscCheck(k != 1 || after[1] == before[1] + 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " vectors were permuted, not right-hand side and solution", what[k], after[1] - before[1]);
    }
    if (two) { /* a preconditioner that is reused keeps its old operators and their null spaces, until it is not */
      PetscCall(SetNullSpaces(A, sp, near[0]));
      PetscCall(SetNullSpaces(P, sp, near[0]));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(SetNullSpaces(A, NULL, NULL));
      PetscCall(SetNullSpaces(P, NULL, NULL));
      PetscCall(MatShift(A, 1.0));
      PetscCall(MatShift(P, 1.0));
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(CheckNullSpaces(inner, sp, near[0], "reused"));
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_FALSE));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(CheckNullSpaces(inner, NULL, NULL, "new operators"));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatNullSpaceDestroy(&sp));
  PetscCall(MatNullSpaceDestroy(&near[0]));
  PetscCall(MatNullSpaceDestroy(&near[1]));
  PetscCall(VecDestroy(&null));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Transposed solves, and a good guess for the solver inside, or for the one outside */
static PetscErrorCode TransposeAndGuess(void)
{
  Problem  p;
  KSP      ksp, inner;
  KSPType  type;
  PC       pc;
  Mat      A, R;
  Vec      x, b;
  PetscInt its[2];

  PetscFunctionBegin;
  PetscCall(GetProblem(&p));
  PetscCall(CreateMatrix(TestFormat(""), p, &A));
  PetscCall(CreateMatrix(MATAIJ, p, &R));
  PetscCall(CreateSolver(A, A, &ksp, &inner));
  PetscCall(KSPGetType(inner, &type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 94));
  PetscCall(KSPSolveTranspose(ksp, b, x));
  PetscCall(CheckSolution(R, type, PETSC_TRUE, b, x, NULL, "transposed"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(CheckSolution(R, type, PETSC_FALSE, b, x, NULL, "not transposed"));
  PetscCall(KSPGetIterationNumber(inner, &its[0]));
  PetscCall(KSPSetTolerances(inner, PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetInitialGuessNonzero(inner, PETSC_TRUE));
  PetscCall(PCApply(pc, b, x));
  PetscCall(KSPGetIterationNumber(inner, &its[1]));
  PetscCheck(its[0] > 3 && its[1] <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations from the solution, %" PetscInt_FMT " from 0", its[1], its[0]);
  PetscCall(KSPSetInitialGuessNonzero(inner, PETSC_FALSE));
  PetscCall(KSPSetTolerances(inner, Tolerance, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetType(ksp, KSPRICHARDSON));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 1));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(VecScale(x, 0.99));
  PetscCall(KSPSolve(ksp, b, x)); /* what is missing to the guess is all that the solver inside computes */
  PetscCall(CheckSolution(R, type, PETSC_FALSE, b, x, NULL, "from a guess"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What cannot be permuted is an error, not another solver */
static PetscErrorCode Refused(void)
{
  const TestShape      wide = {40, 60, PETSC_FALSE};
  Problem              p;
  Mat                  A, W, S, operators[3][2];
  const PetscErrorCode wanted[] = {PETSC_ERR_SUP, PETSC_ERR_SUP, PETSC_ERR_ARG_SIZ};
  PetscInt             n;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(GetProblem(&p));
  PetscCall(CreateMatrix(TestFormat(""), p, &A));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatCreateShell(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, NULL, &S));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), wide, &W));
  PetscCall(TestFill(W, 1, 1));
  operators[0][0] = S;
  operators[0][1] = A;
  operators[1][0] = A;
  operators[1][1] = S;
  operators[2][0] = operators[2][1] = W;
  for (int k = 0; k < 3; k++) {
    PC pc;

    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetOperators(pc, operators[k][0], operators[k][1]));
    PetscCall(PCSetType(pc, PCGALLOPREORDER));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = PCSetUp(pc);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == wanted[k], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "operators %d gave error %d, not %d", k, (int)ierr, (int)wanted[k]);
    PetscCall(PCDestroy(&pc));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool sequence = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sequence", &sequence, NULL));
  PetscCall(Sequence(TestFormat("")));
  if (!sequence) {
    PetscCall(Sequence(MATAIJ));
    PetscCall(TwoMatrices());
    PetscCall(NullSpaces());
    PetscCall(ChangedNullSpaces());
    PetscCall(TransposeAndGuess());
    PetscCall(Refused());
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 4}}
    args: -ksp_type preonly -pc_type gallopreorder
    test:
      suffix: jacobi
      args: -reorder_ksp_type {{cg gmres bcgs}} -reorder_pc_type jacobi
    test:
      suffix: ilu
      args: -reorder_ksp_type {{cg gmres bcgs}} -reorder_pc_type bjacobi -reorder_sub_pc_type ilu
    test: # in the order of the rows, which is the format's already
      suffix: ilu_order
      nsize: 1
      args: -reorder_ksp_type gmres -reorder_pc_type ilu -reorder_pc_factor_mat_ordering_type {{natural gallop rcm}} -sequence
    test:
      suffix: gamg
      args: -reorder_ksp_type {{cg gmres bcgs}} -reorder_pc_type gamg -sequence
    test:
      suffix: formats
      args: -reorder_ksp_type gmres -reorder_pc_type jacobi -format {{csroverlap fastload hbp}}
    test:
      suffix: window
      args: -reorder_ksp_type cg -reorder_pc_type jacobi -mat_evchyb_window {{0 64}} -mat_evchyb_by_row {{1 4000000}} -sequence
    test:
      suffix: order
      args: -reorder_ksp_type cg -reorder_pc_type jacobi -reorder_order {{format rcm}} -mat_evchyb_order {{none cluster}} -sequence

TEST*/
