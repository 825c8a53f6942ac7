/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a point-block Jacobi preconditioner, for fused solvers: what it makes of unit vectors, and how residuals are multiplied by them */

#include <petsc/private/pcimpl.h>
#include "gallopblocks.h"
#include "gallopksp.h"

/* PCGallopGetBlockSize - Rows of a block of PCPBJACOBI of an AIJ matrix, 0 for another preconditioner */
PetscErrorCode PCGallopGetBlockSize(PC pc, PetscInt *bs)
{
  PetscBool blocks, seqaij, mpiaij;

  PetscFunctionBegin;
  *bs = 0;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCPBJACOBI, &blocks));
  if (!blocks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)pc->pmat, MATSEQAIJ, &seqaij));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)pc->pmat, MATMPIAIJ, &mpiaij));
  if (seqaij || mpiaij) PetscCall(MatGetBlockSize(pc->pmat, bs)); /* another one may have blocks of another size */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopBlocksCreate - Room for them. Collective, as vectors take tags from their communicator: for all processes to call where one does. */
PetscErrorCode GallopBlocksCreate(GallopBlocks *blocks, PetscInt bs, Vec like)
{
  PetscFunctionBegin;
  if (blocks->bs == bs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopBlocksReset(blocks));
  for (PetscInt k = 0; k < bs; k++) PetscCall(VecDuplicate(like, &blocks->column[k]));
  blocks->bs = bs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBlocksReset(GallopBlocks *blocks)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < GALLOP_BLOCK_MOST; k++) PetscCall(VecDestroy(&blocks->column[k]));
  blocks->bs    = 0;
  blocks->valid = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopBlocksUpdate - What the preconditioner makes of the k-th unit vector of all blocks at once, for each k, if that may have changed; unit is workspace

  PETSc changes the blocks in the set-up of a preconditioner alone, which follows the state of its matrix. pc has been set up.
*/
PetscErrorCode GallopBlocksUpdate(GallopBlocks *blocks, PC pc, Vec unit)
{
#if PetscDefined(HAVE_CUDA)
  PetscScalar *array;
  PetscInt     n;
  PetscBool    same;

  PetscFunctionBegin;
  PetscCall(MatStateCompare(pc->matstate, blocks->matrix, &same));
  if (same && blocks->valid) PetscFunctionReturn(PETSC_SUCCESS);
  blocks->valid = PETSC_FALSE;
  PetscCall(VecGetLocalSize(unit, &n));
  for (PetscInt k = 0; k < blocks->bs; k++) {
    PetscCall(VecGallopToWrite(unit, &array));
    PetscCall(GallopBlocksUnit_Device(n, blocks->bs, k, array));
    PetscCall(PCApply(pc, unit, blocks->column[k]));
  }
  blocks->matrix = pc->matstate;
  blocks->valid  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)blocks, (void)pc, (void)unit;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
#endif
}

/*
  GallopBlocksAdd - z = beta D r + gamma u + delta x, where D is the blocks

  Not Collective

  Input Parameters:
+ blocks - of at least 2 rows
. terms  - of the sum, which alpha and d are no part of; u may be z
. r      - multiplied by the blocks; not z
- x      - multiplied by delta; may be z; NULL where delta is 0

  Output Parameter:
. z - the sum

  Note:
  The vectors are on the GPU, and so is what they hold.
*/
PetscErrorCode GallopBlocksAdd(const GallopBlocks *blocks, const GallopTerms *terms, Vec r, Vec x, Vec z)
{
#if PetscDefined(HAVE_CUDA)
  const PetscScalar  factors[] = {terms->beta, terms->gamma, terms->delta};
  const PetscScalar *columns[GALLOP_BLOCK_MOST], *from[3] = {NULL, NULL, NULL};
  PetscScalar       *to;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(z, &n));
  for (PetscInt k = 0; k < blocks->bs; k++) PetscCall(VecGallopToDevice(blocks->column[k], &columns[k]));
  PetscCall(VecGallopToDevice(r, &from[0]));
  if (terms->u) PetscCall(VecGallopToDevice(terms->u, &from[1]));
  if (x) PetscCall(VecGallopToDevice(x, &from[2]));
  PetscCall(VecGallopToWrite(z, &to));
  GallopFusedLog(Gallop_BlocksAdd, z, PetscCall(GallopBlocksAdd_Device(n, blocks->bs, columns, from[0], from[1], from[2], factors, to)); PetscCall(PetscLogGpuFlops((2.0 * blocks->bs + 4.0) * n)));
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)blocks, (void)terms, (void)r, (void)x, (void)z;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
#endif
}
