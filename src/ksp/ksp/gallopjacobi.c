/* SPDX-License-Identifier: BSD-2-Clause */
/* The diagonal of a Jacobi preconditioner, for fused solvers */

#include <gallop/matgallopimpl.h>
#include <petsc/private/pcimpl.h>
#include "gallopjacobi.h"

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

/*
  GallopDiagonalUpdate - What the preconditioner makes of ones, if that may have changed; ones is workspace

  PETSc changes the diagonal in the set-up of a preconditioner, and where it is reset, also by its options. pc has been set up.
*/
PetscErrorCode GallopDiagonalUpdate(GallopDiagonal *diagonal, PC pc, Vec ones)
{
  GallopDiagonal now = *diagonal;
  PetscBool      same;

  PetscFunctionBegin;
  now.matrix = pc->matstate;
  PetscCall(PCJacobiGetType(pc, &now.type));
  PetscCall(PCJacobiGetUseAbs(pc, &now.useabs));
  PetscCall(PCJacobiGetFixDiagonal(pc, &now.fix));
  PetscCall(PCJacobiGetRowl1Scale(pc, &now.scale));
  PetscCall(MatStateCompare(now.matrix, diagonal->matrix, &same));
  same = (PetscBool)(same && diagonal->valid && now.type == diagonal->type && now.useabs == diagonal->useabs && now.fix == diagonal->fix && now.scale == diagonal->scale);
  if (!same) {
    PetscCall(VecSet(ones, 1.0));
    PetscCall(PCApply(pc, ones, now.d));
    now.valid = PETSC_TRUE;
  }
  *diagonal = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}
