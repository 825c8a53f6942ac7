/* SPDX-License-Identifier: BSD-2-Clause */
/*
  PCPBJACOBI and PCVPBJACOBI of Gallop matrices on the GPU, where those of MATAIJCUSPARSE are.

  PETSc 3.26 chooses their GPU code in the set-up, by the exact type name of the matrix. So the set-up sees the parent's name. That code takes vectors of the GPU only: a preconditioner that
  gets vectors of the host is set up again there, and stays there. Where it is reused for a matrix that is not the one of its set-up any more, the vectors are copied instead.
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/pcimpl.h>

/* What a preconditioner of each of these types had before ours */
typedef struct {
  PCType type;
  PetscErrorCode (*create)(PC);
  PetscErrorCode (*setup)(PC);
  PetscErrorCode (*apply)(PC, Vec, Vec);
  PetscErrorCode (*applytranspose)(PC, Vec, Vec);
} ParentPC;

static ParentPC parents[] = {
  {PCPBJACOBI,  NULL, NULL, NULL, NULL},
  {PCVPBJACOBI, NULL, NULL, NULL, NULL}
};

/* What belongs to one preconditioner: the functions of its GPU code, of which matrix its blocks are, and whether it is to stay on the host */
#define GALLOP_BLOCKJACOBI "GallopBlockJacobi"
typedef struct {
  PetscErrorCode (*apply)(PC, Vec, Vec);
  PetscErrorCode (*applytranspose)(PC, Vec, Vec);
  PetscObjectId    id;
  PetscObjectState state;
  PetscBool        host;
} BlockJacobi;

static PetscErrorCode BlockJacobiDestroy(PetscCtxRt ctx)
{
  return PetscFree(*(BlockJacobi **)ctx);
}

static PetscErrorCode GetParent(PC pc, ParentPC **parent)
{
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  *parent = NULL;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(parents) && !same; k++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)pc, parents[k].type, &same));
    if (same) *parent = &parents[k];
  }
  PetscCheck(*parent, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "Not for a preconditioner of type %s", ((PetscObject)pc)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpOnHost(PC pc, const ParentPC *parent)
{
  PetscFunctionBegin;
  pc->ops->apply          = parent->apply;
  pc->ops->applytranspose = parent->applytranspose;
  PetscCall((*parent->setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix that there is now, by which another set-up gives the same blocks or not */
static PetscErrorCode GetMatrix(PC pc, PetscObjectId *id, PetscObjectState *state)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, id));
  PetscCall(PetscObjectStateGet((PetscObject)pc->pmat, state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyToCopies(PC pc, PetscErrorCode (*apply)(PC, Vec, Vec), Vec x, Vec y)
{
  Vec copy[2];

  PetscFunctionBegin;
  PetscCall(GallopVecCreateOnDevice(x, &copy[0]));
  PetscCall(GallopVecCreateOnDevice(y, &copy[1]));
  PetscCall(GallopVecCopyEntries(x, copy[0]));
  PetscCall((*apply)(pc, copy[0], copy[1]));
  PetscCall(GallopVecCopyEntries(copy[1], y));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&copy[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(PC pc, PetscBool transpose, Vec x, Vec y)
{
  BlockJacobi     *jacobi;
  ParentPC        *parent;
  PetscObjectId    id;
  PetscObjectState state;
  PetscErrorCode (*apply)(PC, Vec, Vec);

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)pc, GALLOP_BLOCKJACOBI, &jacobi));
  apply = transpose ? jacobi->applytranspose : jacobi->apply;
  if (GallopVecOnDevice(x) && GallopVecOnDevice(y)) {
    PetscCall((*apply)(pc, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GetMatrix(pc, &id, &state));
  if (id != jacobi->id || state != jacobi->state) {
    PetscCall(ApplyToCopies(pc, apply, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GetParent(pc, &parent));
  jacobi->host = PETSC_TRUE;
  PetscCall(SetUpOnHost(pc, parent));
  if (transpose) PetscUseTypeMethod(pc, applytranspose, x, y);
  else PetscUseTypeMethod(pc, apply, x, y);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_GallopBlockJacobi(PC pc, Vec x, Vec y)
{
  return Apply(pc, PETSC_FALSE, x, y);
}

static PetscErrorCode PCApplyTranspose_GallopBlockJacobi(PC pc, Vec x, Vec y)
{
  return Apply(pc, PETSC_TRUE, x, y);
}

static PetscErrorCode PCSetUp_GallopBlockJacobi(PC pc)
{
  ParentPC    *parent;
  Mat_Gallop  *g;
  BlockJacobi *jacobi;
  GallopLoan   loan;

  PetscFunctionBegin;
  PetscCall(GetParent(pc, &parent));
  PetscCall(MatGallopGetContext(pc->pmat, &g));
  PetscCall(PetscObjectContainerQuery((PetscObject)pc, GALLOP_BLOCKJACOBI, &jacobi));
  if (g && g->deviceparent && !jacobi) { /* on all processes, wherever their values are: it takes a number of their communicator */
    PetscCall(PetscNew(&jacobi));
    PetscCall(PetscObjectContainerCompose((PetscObject)pc, GALLOP_BLOCKJACOBI, jacobi, BlockJacobiDestroy));
  }
  if (!g || !g->deviceparent || GallopBoundToCPU(pc->pmat) || (jacobi && jacobi->host)) {
    if (jacobi && jacobi->apply) PetscCall(SetUpOnHost(pc, parent)); /* PCPBJACOBI would leave the functions of the GPU in place */
    else PetscCall((*parent->setup)(pc));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopKeepCopy(pc->pmat)); /* each set-up reads it */
  PetscCall(GallopLoanBegin(&loan));
  PetscCall(GallopLoanAdd(&loan, pc->pmat));
  GallopLoanCall(&loan, (*parent->setup)(pc));
  jacobi->apply           = pc->ops->apply;
  jacobi->applytranspose  = pc->ops->applytranspose;
  PetscCall(GetMatrix(pc, &jacobi->id, &jacobi->state));
  pc->ops->apply          = PCApply_GallopBlockJacobi;
  pc->ops->applytranspose = PCApplyTranspose_GallopBlockJacobi;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_GallopBlockJacobi(PC);

/* The GPU code of PCPBJACOBI keeps its memory for the next matrix, be that larger or not: it begins anew */
static PetscErrorCode PCReset_GallopBlockJacobi(PC pc)
{
  BlockJacobi *jacobi;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)pc, GALLOP_BLOCKJACOBI, &jacobi));
  if (!jacobi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscUseTypeMethod(pc, destroy);
  PetscCall(PCCreate_GallopBlockJacobi(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_GallopBlockJacobi(PC pc)
{
  ParentPC *parent;

  PetscFunctionBegin;
  PetscCall(GetParent(pc, &parent));
  PetscCall(PetscObjectCompose((PetscObject)pc, GALLOP_BLOCKJACOBI, NULL)); /* of the time before PCReset(), or before another type */
  PetscCall((*parent->create)(pc));
  parent->setup          = pc->ops->setup;
  parent->apply          = pc->ops->apply;
  parent->applytranspose = pc->ops->applytranspose;
  pc->ops->setup         = PCSetUp_GallopBlockJacobi;
  pc->ops->reset         = PCReset_GallopBlockJacobi;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only where PETSc has CUDA: else there is but one code of either */
PetscErrorCode PCRegister_GallopBlockJacobi(void)
{
  PetscFunctionBegin;
  if (!PetscDefined(HAVE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCInitializePackage());
  PetscCall(PCRegisterAll());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(parents); k++) {
    PetscErrorCode (*create)(PC) = NULL;

    PetscCall(PetscFunctionListFind(PCList, parents[k].type, &create));
    if (!create || create == PCCreate_GallopBlockJacobi) continue;
    parents[k].create = create;
    PetscCall(PCRegister(parents[k].type, PCCreate_GallopBlockJacobi));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
