/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Solvers whose step is one product with what is done to it, KSPGALLOPCHEBYSHEV and KSPGALLOPRICHARDSON: when steps are fused, and a step

  A solver of these is the parent with another KSPSolve(): options and what is not fused are the parent's. It takes the parent's name, too, for matrices of ours, so that multigrid smooths with it.
*/

#include <gallop/matgallopimpl.h>
#include "gallopsteps.h"

/* What is decided once for a set-up, at the first solve of ours. All processes agree on where vectors are, since some may have bound theirs to the host. */
static PetscErrorCode LookAtSetUp(KSP ksp, const GallopStepsType *type, const char **never)
{
  PetscBool   device = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBegin;
  *never = NULL;
  if (!PetscDefined(HAVE_CUDA)) {
    *never = "PETSc was configured without CUDA";
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGallopIsCUDA(ksp->work[0], &device));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  if (!device) *never = "vectors are on the host";
  else if (type->look) PetscCall((*type->look)(ksp, never));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is the same on all processes: they then make vectors for the preconditioner together */
static PetscErrorCode CanFuse(KSP ksp, GallopSteps *steps, GallopPCKind pc, const char **why)
{
  MatNullSpace space;
  PetscBool    takes;

  PetscFunctionBegin;
  PetscCall(KSPGallopTakes(ksp, &steps->base, &takes));
  *why = takes ? NULL : steps->base.asis ? "-ksp_gallop_fuse is false" : "the matrix is none of ours";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (!steps->looked) PetscCall(LookAtSetUp(ksp, steps->type, &steps->never));
  steps->looked = PETSC_TRUE;
  *why          = steps->never;
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetNullSpace(steps->A, &space));
  if (pc == GALLOP_PC_OTHER && !steps->bs) *why = "the preconditioner is not Jacobi's";
  else if (steps->bs > GALLOP_BLOCK_MOST) *why = "blocks of the preconditioner have more than " PetscStringize(GALLOP_BLOCK_MOST) " rows";
  else if (ksp->normtype != KSP_NORM_NONE) *why = "norms are wanted";
  else if (space) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is the transposed one";
  else if (ksp->err_hist) *why = "a history of errors is wanted";
  else if (steps->type->canfuse) PetscCall((*steps->type->canfuse)(ksp, steps, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What may differ between processes: those that compute as the parent does exchange the same messages */
static PetscErrorCode CanFuseHere(KSP ksp, const char **why)
{
  PetscBool x, b, alike;

  PetscFunctionBegin;
  PetscCall(VecGallopIsCUDA(ksp->vec_sol, &x));
  PetscCall(VecGallopIsCUDA(ksp->vec_rhs, &b));
  PetscCall(KSPGallopLengthsMatch(ksp, &alike));
  if (!x || !b) *why = "vectors are on the host";
  else if (!alike) *why = "vectors have other lengths than the matrix";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  KSPGallopStep - z = s D (b - A x) + gamma u + delta x, without the terms of x where it is NULL

  u may be z, and so may x where D has blocks of several rows. D is the preconditioner, b the right-hand side. The second work vector of the solver takes A x, or the residual for blocks.
*/
PetscErrorCode KSPGallopStep(KSP ksp, const GallopSteps *steps, PetscScalar s, PetscScalar gamma, Vec u, PetscScalar delta, Vec x, Vec z)
{
  const GallopTerms terms = {.alpha = -s, .beta = s, .gamma = gamma, .delta = x ? delta : 0, .d = steps->d, .u = u}, residual = {.alpha = -1, .beta = 1};
  Vec               w = ksp->work[1];

  PetscFunctionBegin;
  if (steps->bs > 1) {
    if (x) PetscCall(MatGallopMultTerms(steps->A, &residual, x, ksp->vec_rhs, w, w, NULL));
    PetscCall(GallopBlocksAdd(&steps->base.blocks, &terms, x ? w : ksp->vec_rhs, x, z));
  } else PetscCall(MatGallopMultTerms(x ? steps->A : NULL, &terms, x, ksp->vec_rhs, x ? w : NULL, z, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveFused(KSP ksp, GallopSteps *steps, GallopPCKind kind)
{
  const PetscScalar *array;

  PetscFunctionBegin;
  steps->d = NULL;
  if (kind == GALLOP_PC_DIAGONAL) {
    PetscCall(GallopDiagonalUpdate(&steps->base.diagonal, ksp->pc, ksp->work[0]));
    steps->d = steps->base.diagonal.d;
  } else if (steps->bs) {
    PetscCall(GallopBlocksUpdate(&steps->base.blocks, ksp->pc, ksp->work[0]));
    if (steps->bs == 1) steps->d = steps->base.blocks.column[0];
  }
  if (ksp->max_it > 0) {
    PetscCall(VecGallopToDevice(ksp->vec_rhs, &array));
    PetscCall(VecGallopToDevice(ksp->vec_sol, &array));
  }
  PetscCall(PetscLogEventBegin(steps->type->event, ksp, 0, 0, 0));
  PetscCall((*steps->type->solve)(ksp, steps));
  PetscCall(PetscLogEventEnd(steps->type->event, ksp, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After KSPSetPC() the solver may be for a matrix of another layout; collective, as the layouts of all processes are compared */
static PetscErrorCode DropOfOtherLayout(KSP ksp, GallopSteps *steps)
{
  const Vec   kept[] = {steps->base.diagonal.d, steps->base.blocks.column[0]};
  PetscLayout have, want;
  PetscBool   same[] = {PETSC_TRUE, PETSC_TRUE};

  PetscFunctionBegin;
  PetscCall(VecGetLayout(ksp->work[0], &want));
  for (int k = 0; k < 2; k++) {
    if (!kept[k]) continue;
    PetscCall(VecGetLayout(kept[k], &have));
    PetscCall(PetscLayoutCompare(have, want, &same[k]));
  }
  if (!same[0]) PetscCall(VecDestroy(&steps->base.diagonal.d));
  if (!same[0]) steps->base.diagonal.valid = PETSC_FALSE;
  if (!same[1]) PetscCall(GallopBlocksReset(&steps->base.blocks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors for the preconditioner, on all processes; where one has no room for them the parent solves, until the next set-up */
static PetscErrorCode GetVecs(KSP ksp, GallopSteps *steps, GallopPCKind kind)
{
  const PetscInt more = kind == GALLOP_PC_DIAGONAL ? !steps->base.diagonal.d : steps->bs != steps->base.blocks.bs ? steps->bs : 0;
  PetscBool      fit  = PETSC_TRUE;
  PetscMPIInt    size;

  PetscFunctionBegin;
  if (!more) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGallopVecsFit(ksp->work[0], more, &fit));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &fit, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  if (!fit) {
    steps->base.why = steps->never = "the GPU has no room for the preconditioner";
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (kind == GALLOP_PC_DIAGONAL) PetscCall(GallopDiagonalCreate(&steps->base.diagonal, ksp->work[0]));
  else PetscCall(GallopBlocksCreate(&steps->base.blocks, steps->bs, ksp->work[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_GallopSteps(KSP ksp)
{
  GallopSteps *steps;
  GallopPCKind kind;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &steps));
  PetscCall(PCGetOperators(ksp->pc, &steps->A, NULL));
  PetscCall(PCGallopGetKind(ksp->pc, &kind));
  PetscCall(PCGallopGetBlockSize(ksp->pc, &steps->bs));
  PetscCall(CanFuse(ksp, steps, kind, &steps->base.why));
  if (!steps->base.why) PetscCall(DropOfOtherLayout(ksp, steps));
  if (!steps->base.why) PetscCall(GetVecs(ksp, steps, kind));
  if (!steps->base.why) PetscCall(CanFuseHere(ksp, &steps->base.why));
  steps->base.fused = PetscNot(steps->base.why);
  if (steps->base.fused) PetscCall(SolveFused(ksp, steps, kind));
  else PetscCall((*steps->base.parent.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's may choose KSPSolve() */
static PetscErrorCode KSPSetUp_GallopSteps(KSP ksp)
{
  GallopSteps *steps;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &steps));
  PetscCall((*steps->base.parent.setup)(ksp));
  if (ksp->ops->solve != KSPSolve_GallopSteps) steps->base.parent.solve = ksp->ops->solve;
  ksp->ops->solve            = KSPSolve_GallopSteps;
  steps->base.diagonal.valid = PETSC_FALSE;
  steps->base.blocks.valid   = PETSC_FALSE;
  steps->looked              = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopStepsCreate - Makes a solver the parent, with steps, which are zeroed, for its data */
PetscErrorCode KSPGallopStepsCreate(KSP ksp, const GallopStepsType *type, GallopSteps *steps)
{
  PetscFunctionBegin;
  PetscCall((*type->parentcreate)(ksp));
  PetscCall(KSPGallopCompose(ksp, type->own, &steps->base));
  steps->type      = type;
  steps->base.what = "steps";
  steps->base.with = " with the product";
  ksp->ops->setup  = KSPSetUp_GallopSteps;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopStepsRegister - Registers a type under its own name, and in the parent's place */
PetscErrorCode KSPGallopStepsRegister(GallopStepsType *type)
{
  PetscFunctionBegin;
  PetscCall(GallopLogEventRegister(type->eventname, KSP_CLASSID, &type->event));
  PetscCall(KSPGallopRegister(type->own, type->parent, type->create, &type->parentcreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
