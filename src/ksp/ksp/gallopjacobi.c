/* SPDX-License-Identifier: BSD-2-Clause */
/* The diagonal of a Jacobi preconditioner, for fused solvers */

#include <gallop/matgallopimpl.h>
#include <petsc/private/pcimpl.h>
#include "gallopjacobi.h"

/* PETSc's PC_Jacobi, of whose vectors no function tells when they are others; see LayoutIsKnown() */
typedef struct {
  Vec          diag, diagsqrt;
  PCJacobiType type;
  PetscBool    useabs, fixdiag;
  PetscReal    scale;
} JacobiData;

PetscErrorCode PCGallopGetKind(PC pc, GallopPCKind *kind)
{
  PetscBool jacobi, none;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCNONE, &none));
  *kind = jacobi ? GALLOP_PC_DIAGONAL : none ? GALLOP_PC_NONE : GALLOP_PC_OTHER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopDiagonalCreate - Room for it. Collective, as vectors take tags from their communicator: for all processes to call where one does. */
PetscErrorCode GallopDiagonalCreate(GallopDiagonal *diagonal, Vec like)
{
  PetscFunctionBegin;
  if (!diagonal->d) PetscCall(VecDuplicate(like, &diagonal->d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the data of PCJACOBI looks as we think, by what PETSc tells of it */
static PetscErrorCode LayoutIsKnown(PC pc, PetscBool *known)
{
  const JacobiData *data = (const JacobiData *)pc->data;
  PCJacobiType      type;
  PetscBool         useabs, fixdiag;
  PetscReal         scale;

  PetscFunctionBegin;
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetUseAbs(pc, &useabs));
  PetscCall(PCJacobiGetFixDiagonal(pc, &fixdiag));
  PetscCall(PCJacobiGetRowl1Scale(pc, &scale));
  *known = (PetscBool)(data->type == type && data->useabs == useabs && data->fixdiag == fixdiag && data->scale == scale);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which vector PETSc multiplies by, and its state; 0 for none yet, or one that is not known */
static PetscErrorCode GetSource(PC pc, PetscBool known, PetscObjectId *id, PetscObjectState *state)
{
  const Vec diag = known ? ((const JacobiData *)pc->data)->diag : NULL;

  PetscFunctionBegin;
  *id    = 0;
  *state = 0;
  if (!diag) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectGetId((PetscObject)diag, id));
  PetscCall(PetscObjectStateGet((PetscObject)diag, state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopDiagonalUpdate - What the preconditioner makes of ones, if that may have changed; ones is workspace

  PETSc changes the diagonal in the set-up of a preconditioner, and makes another vector after it was reset, or its type was set; options alone change nothing. pc has been set up.
*/
PetscErrorCode GallopDiagonalUpdate(GallopDiagonal *diagonal, PC pc, Vec ones)
{
  PetscObjectId    id;
  PetscObjectState state;
  PetscBool        known = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(LayoutIsKnown(pc, &known));
  PetscCall(GetSource(pc, known, &id, &state));
  if (diagonal->valid && id && id == diagonal->id && state == diagonal->state) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecSet(ones, 1.0));
  PetscCall(PCApply(pc, ones, diagonal->d));
  PetscCall(GetSource(pc, known, &diagonal->id, &diagonal->state)); /* PETSc makes the vector when it first applies it */
  diagonal->valid = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
