/* SPDX-License-Identifier: BSD-2-Clause */
/* The diagonal that a Jacobi preconditioner multiplies by, which is kept for as long as it stays the same */

#include <gallop/matgallopimpl.h>
#include <petsc/private/pcimpl.h>
#include "gallopjacobi.h"

#define GALLOP_DIAGONAL "GallopDiagonal"

/* What the diagonal depends on */
typedef struct {
  MatState     matrix;
  PCJacobiType type;
  PetscBool    useabs, fix;
  PetscReal    scale;
} Key;

typedef struct {
  Key key;
  Vec d;
} Diagonal;

static PetscErrorCode DiagonalDestroy(PetscCtxRt ctx)
{
  Diagonal *diagonal = *(Diagonal **)ctx;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&diagonal->d));
  PetscCall(PetscFree(diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetKey(PC pc, Key *key)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(key, sizeof(*key))); /* keys are compared byte by byte */
  key->matrix = pc->matstate;
  PetscCall(PCJacobiGetType(pc, &key->type));
  PetscCall(PCJacobiGetUseAbs(pc, &key->useabs));
  PetscCall(PCJacobiGetFixDiagonal(pc, &key->fix));
  PetscCall(PCJacobiGetRowl1Scale(pc, &key->scale));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PCGallopGetDiagonal - What a preconditioner that has been set up does to a vector

  Input Parameters:
+ pc   - the preconditioner
- like - a vector that it applies to

  Output Parameters:
+ kind - see GallopPCKind
- d    - the diagonal, which belongs to pc; NULL unless kind is GALLOP_PC_DIAGONAL
*/
PetscErrorCode PCGallopGetDiagonal(PC pc, Vec like, GallopPCKind *kind, Vec *d)
{
  PetscBool jacobi, none, same;
  Diagonal *diagonal;
  Key       key;
  Vec       ones;

  PetscFunctionBegin;
  *d = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCNONE, &none));
  *kind = jacobi ? GALLOP_PC_DIAGONAL : none ? GALLOP_PC_NONE : GALLOP_PC_OTHER;
  if (!jacobi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetKey(pc, &key));
  PetscCall(PetscObjectContainerQuery((PetscObject)pc, GALLOP_DIAGONAL, &diagonal));
  if (!diagonal) {
    PetscCall(PetscNew(&diagonal));
    PetscCall(PetscObjectContainerCompose((PetscObject)pc, GALLOP_DIAGONAL, diagonal, DiagonalDestroy));
  }
  PetscCall(PetscMemcmp(&key, &diagonal->key, sizeof(key), &same));
  if (!same || !diagonal->d) {
    PetscCall(VecDestroy(&diagonal->d));
    PetscCall(VecDuplicate(like, &ones));
    PetscCall(VecDuplicate(like, &diagonal->d));
    PetscCall(VecSet(ones, 1.0));
    PetscCall(PCApply(pc, ones, diagonal->d));
    PetscCall(VecDestroy(&ones));
    diagonal->key = key;
  }
  *d = diagonal->d;
  PetscFunctionReturn(PETSC_SUCCESS);
}
