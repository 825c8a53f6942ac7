/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Solvers whose steps are fused with the product beside PETSc's that they are: iterates, alone and in multigrid, whether steps were fused, and that a solve copies nothing between host and GPU */

#include "../galloptest.h"
#include <petscdmda.h>
#include <petscksp.h>

#define GRID 40

typedef struct {
  const char *name;
  PCType      pc;
  KSPNormType norm;
  PetscBool   guess, space;
  PetscInt    max_it;
  PetscInt    bs; /* rows of a block */
  const char *options;
  const char *why; /* steps are not fused with a GPU; NULL if they are */
} Case;

typedef struct {
  KSPType     parent, own;
  const char *event; /* of a fused solve */
  PetscInt    n;
  const Case *cases;
} Solver;

typedef struct {
  PetscInt           its, fused, added, blocks, copies;
  KSPConvergedReason reason;
  PetscInt           nhistory;
  Vec                x[4];
} Result;

static PetscInt Copies(void)
{
#if PetscDefined(HAVE_DEVICE)
  return (PetscInt)(petsc_ctog_ct + petsc_ctog_ct_scalar + petsc_gtoc_ct + petsc_gtoc_ct_scalar);
#else
  return 0;
#endif
}

/* Values depend on k. They are written on the host, and copied to where the vector is. */
static PetscErrorCode SetVec(Vec v, PetscInt k, PetscInt j)
{
  PetscScalar       *a;
  const PetscScalar *there;
  PetscInt           rstart, rend;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(v, &rstart, &rend));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt r = rstart; r < rend; r++) a[r - rstart] = TestValue(k, r, j);
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscCall(VecGetArrayReadAndMemType(v, &there, NULL));
  PetscCall(VecRestoreArrayReadAndMemType(v, &there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether KSPView() says it */
static PetscErrorCode Says(KSP ksp, const char text[], PetscBool *says)
{
  FILE       *file = tmpfile();
  PetscViewer viewer;
  char        line[512], *found;

  PetscFunctionBegin;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  *says = PETSC_FALSE;
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, file, &viewer));
  PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  rewind(file);
  while (fgets(line, sizeof(line), file)) {
    PetscCall(PetscStrstr(line, text, &found));
    if (found) *says = PETSC_TRUE;
  }
  (void)fclose(file);
  PetscCallMPI(MPI_Bcast(says, 1, MPI_C_BOOL, 0, PETSC_COMM_WORLD)); /* only this process has written */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckView(const Case *c, KSP ksp, KSPType own, PetscInt fused, PetscBool device)
{
  const char *const host = PetscDefined(HAVE_CUDA) ? "vectors are on the host" : "PETSc was configured without CUDA";
  char              text[128];
  PetscBool         named, says;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, own, &named));
  if (!fused && !named) PetscFunctionReturn(PETSC_SUCCESS);
  if (fused) PetscCall(PetscSNPrintf(text, sizeof(text), "steps are fused with the product on the GPU"));
  else PetscCall(PetscSNPrintf(text, sizeof(text), "steps are not fused: %s", device ? c->why : host));
  PetscCall(Says(ksp, text, &says));
  TestCheck(says, "KSPView() does not say: %s", c->name, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A point has bs unknowns, whose block is dense and dominates; those of near points are coupled one by one */
static PetscErrorCode CreateBlocks(MatType type, PetscInt bs, PetscInt seed, Mat *A)
{
  const PetscInt grid = GRID / 2;
  PetscInt       rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, grid * grid * bs, grid * grid * bs));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    const PetscInt  p = r / bs, i = p % grid, j = p / grid, near[] = {r - bs, r + bs, r - grid * bs, r + grid * bs};
    const PetscBool in[] = {(PetscBool)(i > 0), (PetscBool)(i < grid - 1), (PetscBool)(j > 0), (PetscBool)(j < grid - 1)};

    for (PetscInt k = 0; k < bs; k++) PetscCall(MatSetValue(*A, r, p * bs + k, p * bs + k == r ? 4.5 + TestRandom(seed, r, 0) : TestValue(seed, r, k) / (PetscReal)(2 * bs), INSERT_VALUES));
    for (int k = 0; k < 4; k++)
      if (in[k]) PetscCall(MatSetValue(*A, r, near[k], -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(const Case *c, MatType type, PetscInt seed, Mat *A)
{
  PetscFunctionBegin;
  if (c->bs > 1) PetscCall(CreateBlocks(type, c->bs, seed, A));
  else PetscCall(TestCreateLaplace(type, GRID, c->space ? 0 : 0.5, c->space ? 0 : 1, seed, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves, then two more after the values have changed. Guesses and right-hand sides are new each time. */
static PetscErrorCode Solve(const Solver *solver, const Case *c, MatType type, KSPType ksptype, PetscBool device, Result *result)
{
  KSP              ksp;
  PC               pc;
  Mat              A, other;
  Vec              x, b;
  PetscInt         before = 0, addedbefore = 0, blocksbefore = 0;
  PetscReal        shift = 0.25, norm;
  const PetscReal *history;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(result, sizeof(*result)));
  PetscCall(TestEventCount(solver->event, &before, NULL));
  PetscCall(TestEventCount("GallopTermsAdd", &addedbefore, NULL));
  PetscCall(TestEventCount("GallopBlocksAdd", &blocksbefore, NULL));
  PetscCall(CreateMatrix(c, type, 5, &A));
  PetscCall(CreateMatrix(c, type, 6, &other));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ksptype));
  PetscCall(KSPSetNormType(ksp, c->norm));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, c->pc));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-30, PETSC_CURRENT, PETSC_CURRENT, c->max_it));
  if (c->norm == KSP_NORM_NONE) PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPSetInitialGuessNonzero(ksp, c->guess));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 100, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = 0; k < 4; k++) {
    PetscInt copies;

    PetscCall(SetVec(x, k, 1));
    PetscCall(SetVec(b, k, 2));
    if (k == 2 && !c->space) PetscCall(MatAXPY(A, shift, other, SAME_NONZERO_PATTERN));
    if (k == 2) PetscCall(KSPSetOperators(ksp, A, A));
    copies = Copies();
    PetscCall(KSPSolve(ksp, b, x));
    if (k % 2) result->copies += Copies() - copies;
    PetscCall(VecDuplicate(x, &result->x[k]));
    PetscCall(VecCopy(x, result->x[k]));
    PetscCall(VecNorm(result->x[k], NORM_2, &norm)); /* waits: PETSc's own solver may still copy b from pinned memory, which the next right-hand side is written to */
  }
  PetscCall(KSPGetIterationNumber(ksp, &result->its));
  PetscCall(KSPGetConvergedReason(ksp, &result->reason));
  PetscCall(KSPGetResidualHistory(ksp, &history, &result->nhistory));
  PetscCall(TestEventCount(solver->event, &result->fused, NULL));
  result->fused -= before;
  PetscCall(TestEventCount("GallopTermsAdd", &result->added, NULL));
  result->added -= addedbefore;
  PetscCall(TestEventCount("GallopBlocksAdd", &result->blocks, NULL));
  result->blocks -= blocksbefore;
  if (result->fused || !device || c->why) PetscCall(CheckView(c, ksp, solver->own, result->fused, device));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x and y, of what, by solver with type; single: how near they have to be in single precision */
static PetscErrorCode CheckNear(const char what[], double single, Vec x, Vec y, KSPType ksptype, MatType type)
{
  const PetscReal tolerance = (PetscReal)(sizeof(PetscReal) < 8 ? single : 1e-9);
  PetscReal       norm, error;

  PetscFunctionBegin;
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecAXPY(x, -1.0, y));
  PetscCall(VecNorm(x, NORM_2, &error));
  TestCheck(error <= tolerance * norm, "%s with %s differs by %g of %g", what, ksptype, type, (double)error, (double)norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Kernels of one fused solve that add terms after the product: one in each step, or only in first steps, without a product, where the format adds all terms itself. Before blocks a residual is computed,
  none of a zero guess.
*/
static PetscErrorCode Added(const Case *c, MatType type, PetscInt *added)
{
  PetscMPIInt size;
  PetscBool   format, fastload;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscStrcmp(type, TestFormat(""), &format));
  PetscCall(PetscStrcmp(type, MATFASTLOAD, &fastload));
  if (c->bs > 1) *added = format && (!fastload || size > 1) ? 0 : c->max_it - (c->guess ? 0 : PetscMin(c->max_it, 1));
  else *added = format && !fastload ? (PetscInt)(!c->guess && c->max_it > 0) : c->max_it;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Solver *solver, const Case *c, MatType type, KSPType ksptype, PetscBool device)
{
  Result      theirs, ours;
  PetscInt    added = 0;
  PetscMPIInt size;
  PetscBool   sor;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscStrcmp(c->pc, PCSOR, &sor)); /* it amplifies what single precision rounds */
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall(Solve(solver, c, device ? MATAIJCUSPARSE : MATAIJ, solver->parent, device, &theirs));
  TestCheck(!theirs.fused, "%" PetscInt_FMT " fused solves with the parent's type", c->name, theirs.fused);
  PetscCall(Solve(solver, c, type, ksptype, device, &ours));
  TestCheck(ours.fused == (device && !c->why ? 4 : 0), "%" PetscInt_FMT " fused solves of %s with %s", c->name, ours.fused, ksptype, type);
  if (ours.fused) PetscCall(Added(c, type, &added));
  TestCheck(ours.added == 4 * added, "terms added %" PetscInt_FMT " times, not %" PetscInt_FMT ", by %s with %s", c->name, ours.added, 4 * added, ksptype, type);
  TestCheck(ours.blocks == (ours.fused && c->bs > 1 ? 4 * c->max_it : 0), "%" PetscInt_FMT " kernels with blocks of %" PetscInt_FMT " rows by %s with %s", c->name, ours.blocks, c->bs, ksptype, type);
  if (ours.fused && size == 1) TestCheck(!ours.copies, "%" PetscInt_FMT " copies between host and GPU by %s with %s", c->name, ours.copies, ksptype, type);
  TestCheck(theirs.its == ours.its && theirs.reason == ours.reason, "%" PetscInt_FMT " iterations and %s, not %" PetscInt_FMT " and %s", c->name, ours.its, KSPConvergedReasons[ours.reason], theirs.its,
            KSPConvergedReasons[theirs.reason]);
  TestCheck(theirs.nhistory == ours.nhistory, "a history of %" PetscInt_FMT " norms, not %" PetscInt_FMT, c->name, ours.nhistory, theirs.nhistory);
  for (int k = 0; k < 4; k++) {
    PetscCall(CheckNear(c->name, sor ? 6e-2 : 1e-3, ours.x[k], theirs.x[k], ksptype, type));
    PetscCall(VecDestroy(&theirs.x[k]));
    PetscCall(VecDestroy(&ours.x[k]));
  }
  PetscCall(TestClearOptions(c->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one solver, of which things change between solves ---- */

#define CHANGES 11

static PetscErrorCode Change(const Solver *solver, MatType type, KSPType ksptype, PetscInt *fused, Vec results[CHANGES])
{
  const Case three = {.bs = 3}, two = {.bs = 2};
  Mat        A, B;
  KSP        ksp;
  PC         pc;
  PetscInt   before = 0;

  PetscFunctionBegin;
  PetscCall(TestEventCount(solver->event, &before, NULL));
  PetscCall(CreateMatrix(&three, type, 5, &A));
  PetscCall(CreateMatrix(&two, type, 6, &B));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ksptype));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 3));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int k = 0; k < CHANGES; k++) {
    Vec       b;
    PetscReal norm;

    if (k == 1) PetscCall(PCSetType(pc, PCPBJACOBI));
    if (k == 2) PetscCall(MatScale(A, 2.0));
    if (k == 3) PetscCall(PCSetType(pc, PCJACOBI));
    if (k == 4) PetscCall(PCSetType(pc, PCPBJACOBI));
    if (k == 5) PetscCall(KSPReset(ksp));
    if (k == 5) PetscCall(KSPSetOperators(ksp, B, B));
    if (k == 6) PetscCall(PCSetType(pc, PCNONE));
    if (k == 7) PetscCall(PCSetType(pc, PCJACOBI));
    if (k == 7) PetscCall(PCJacobiSetType(pc, PC_JACOBI_ROWL1));
    if (k == 7) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE)); /* for which PETSc writes to the host where the sums are on the GPU, and they are all 1 then */
    if (k == 8) PetscCall(PCJacobiSetRowl1Scale(pc, 0.5)); /* which PETSc looks at in the next set-up */
    if (k == 9) PetscCall(PCReset(pc));
    if (k == 9) PetscCall(KSPSetOperators(ksp, B, B));
    if (k == 10) { /* Chebyshev's method makes its work vectors anew, but for those of its estimates */
      if (strcmp(solver->parent, KSPCHEBYSHEV)) PetscCall(KSPReset(ksp));
      else {
        PetscCall(KSPChebyshevEstEigSet(ksp, 0, 0, 0, 0));
        PetscCall(KSPChebyshevSetEigenvalues(ksp, 2.25, 0.25));
      }
      PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
      PetscCall(PCSetType(pc, PCJACOBI));
      PetscCall(KSPSetPC(ksp, pc));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(PCDestroy(&pc));
    }
    PetscCall(MatCreateVecs(k < 5 || k == 10 ? A : B, &results[k], &b));
    PetscCall(SetVec(results[k], k, 1));
    PetscCall(SetVec(b, k, 2));
    PetscCall(KSPSolve(ksp, b, results[k]));
    PetscCall(VecNorm(results[k], NORM_2, &norm));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(TestEventCount(solver->event, fused, NULL));
  *fused -= before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The preconditioner, with and without a new set-up of the solver or of itself, the values of the matrix, and the matrix with its size */
static PetscErrorCode RunChanges(const Solver *solver, PetscBool device)
{
  const char *const what = "changes between solves";
  PetscInt          fused;
  Vec               theirs[CHANGES], ours[CHANGES];

  PetscFunctionBegin;
  PetscCall(Change(solver, device ? MATAIJCUSPARSE : MATAIJ, solver->parent, &fused, theirs));
  PetscCall(Change(solver, TestFormat(""), solver->parent, &fused, ours));
  TestCheck(fused == (device ? CHANGES : 0), "%" PetscInt_FMT " fused solves of %d", what, fused, CHANGES);
  for (int k = 0; k < CHANGES; k++) {
    PetscCall(CheckNear(what, 1e-3, ours[k], theirs[k], solver->parent, TestFormat("")));
    PetscCall(VecDestroy(&theirs[k]));
    PetscCall(VecDestroy(&ours[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- multigrid ---- */

#define LEVELS 3
#define CYCLES 5

/* 5 points for each unknown of a point, and another unknown there. The diagonal is not constant. */
static PetscErrorCode ComputeMatrix(KSP ksp, Mat J, Mat A, PetscCtx ctx)
{
  DM            da;
  DMDALocalInfo info;

  PetscFunctionBegin;
  (void)J, (void)ctx;
  PetscCall(KSPGetDM(ksp, &da));
  PetscCall(DMDAGetLocalInfo(da, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++)
      for (PetscInt c = 0; c < info.dof; c++) {
        const MatStencil row    = {.j = j, .i = i, .c = c};
        const MatStencil cols[] = {
          row, {.j = j,     .i = i - 1, .c = c                 },
           {.j = j,     .i = i + 1, .c = c                 },
           {.j = j - 1, .i = i,     .c = c                 },
           {.j = j + 1, .i = i,     .c = c                 },
           {.j = j,     .i = i,     .c = (c + 1) % info.dof}
        };
        const PetscScalar v[]  = {(PetscReal)4.5 + (PetscReal)((i + j + c) % 3) / 4, -1, -1, -1, -1, -0.25};
        const PetscBool   in[] = {PETSC_TRUE, (PetscBool)(i > 0), (PetscBool)(i < info.mx - 1), (PetscBool)(j > 0), (PetscBool)(j < info.my - 1), (PetscBool)(info.dof > 1)};

        for (int k = 0; k < 6; k++)
          if (in[k]) PetscCall(MatSetValuesStencil(A, 1, &row, 1, &cols[k], &v[k], INSERT_VALUES));
      }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycles(const Solver *solver, MatType type, KSPType smoother, PCType pctype, PetscInt dof, PetscInt *fused, PetscInt *blocks, Vec *x)
{
  DM       da, fine;
  KSP      ksp;
  PC       pc;
  Vec      b;
  char     vtype[64];
  PetscInt before = 0, blocksbefore = 0;

  PetscFunctionBegin;
  PetscCall(TestEventCount(solver->event, &before, NULL));
  PetscCall(TestEventCount("GallopBlocksAdd", &blocksbefore, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mg_levels_ksp_type", smoother));
  PetscCall(PetscOptionsSetValue(NULL, "-mg_levels_pc_type", pctype));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 9, PETSC_DECIDE, PETSC_DECIDE, dof, 1, NULL, NULL, &da));
  PetscCall(DMSetMatType(da, type));
  PetscCall(TestGetVecType(type, vtype, sizeof(vtype)));
  PetscCall(DMSetVecType(da, vtype));
  PetscCall(DMSetUp(da));
  for (int k = 1; k < LEVELS; k++) {
    PetscCall(DMRefine(da, PETSC_COMM_WORLD, &fine));
    PetscCall(DMDestroy(&da));
    da = fine;
  }
  PetscCall(DMCreateGlobalVector(da, &b));
  PetscCall(VecDuplicate(b, x));
  PetscCall(SetVec(b, 7, 3));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetDM(ksp, da));
  PetscCall(KSPSetComputeOperators(ksp, ComputeMatrix, NULL));
  PetscCall(KSPSetType(ksp, KSPRICHARDSON)); /* whose steps are the preconditioner's cycles */
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetTolerances(ksp, 0, 0, PETSC_CURRENT, CYCLES));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCMG));
  PetscCall(PCMGSetLevels(pc, LEVELS, NULL));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, *x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscOptionsClearValue(NULL, "-mg_levels_ksp_type"));
  PetscCall(PetscOptionsClearValue(NULL, "-mg_levels_pc_type"));
  PetscCall(TestEventCount(solver->event, fused, NULL));
  *fused -= before;
  PetscCall(TestEventCount("GallopBlocksAdd", blocks, NULL));
  *blocks -= blocksbefore;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Smoothers by the parent's name, with a matrix of the parent's type and one of ours: a solve before, and one after the correction on each level but the coarsest */
static PetscErrorCode RunMultigrid(const Solver *solver, PCType pctype, PetscInt dof, PetscBool device)
{
  const char *const options = "-mg_coarse_ksp_type preonly -mg_coarse_pc_type jacobi -mg_levels_ksp_max_it 2 -mg_levels_ksp_richardson_scale 0.6";
  const char *const what    = "multigrid";
  PetscInt          fused, blocks;
  PetscBool         hasblocks;
  Vec               theirs, ours;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(pctype, PCPBJACOBI, &hasblocks));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(Cycles(solver, device ? MATAIJCUSPARSE : MATAIJ, solver->parent, pctype, dof, &fused, &blocks, &theirs));
  TestCheck(!fused, "%" PetscInt_FMT " fused solves with the parent's type", what, fused);
  PetscCall(Cycles(solver, TestFormat(""), solver->parent, pctype, dof, &fused, &blocks, &ours));
  TestCheck(fused == (device ? 2 * (LEVELS - 1) * CYCLES : 0), "%" PetscInt_FMT " fused solves in %d cycles with %s, %s and %" PetscInt_FMT " unknowns per point", what, fused, CYCLES, TestFormat(""), pctype, dof);
  TestCheck(blocks == (hasblocks && dof > 1 ? 2 * fused : 0), "%" PetscInt_FMT " kernels with blocks in %" PetscInt_FMT " fused solves of 2 steps with %s and %" PetscInt_FMT " unknowns per point", what, blocks, fused, pctype, dof);
  PetscCall(CheckNear(what, 1e-3, ours, theirs, solver->parent, TestFormat("")));
  PetscCall(VecDestroy(&theirs));
  PetscCall(VecDestroy(&ours));
  PetscCall(TestClearOptions(options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a format of ours by both names, and with PETSc's type */
static PetscErrorCode RunAll(const Solver *solver, PetscBool device)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt k = 0; k < solver->n; k++) {
    if (TestInPart()) PetscCall(Run(solver, &solver->cases[k], TestFormat(""), solver->parent, device));
    if (TestInPart()) PetscCall(Run(solver, &solver->cases[k], TestFormat(""), solver->own, device));
    if (TestInPart()) PetscCall(Run(solver, &solver->cases[k], device ? MATAIJCUSPARSE : MATAIJ, solver->own, device));
  }
  if (TestInPart()) PetscCall(RunChanges(solver, device));
  if (TestInPart()) PetscCall(RunMultigrid(solver, PCJACOBI, 1, device));
  if (TestInPart()) PetscCall(RunMultigrid(solver, PCJACOBI, 2, device));
  if (TestInPart()) PetscCall(RunMultigrid(solver, PCPBJACOBI, 1, device));
  /* on the GPU with several processes PETSc 3.26 inverts such blocks of a DMDA's matrix wrongly, whatever its type */
  if ((!device || size == 1) && TestInPart()) PetscCall(RunMultigrid(solver, PCPBJACOBI, 3, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}
