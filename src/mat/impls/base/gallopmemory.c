/* SPDX-License-Identifier: BSD-2-Clause */
/*
  One limit for all that a matrix keeps beside its entries, at each place: -mat_gallop_memory. The parent's copy on the GPU goes first; then TiledSpMM makes room for the formats, and the format of
  the transpose for the format.
*/

#include <gallop/matgallopimpl.h>

/* Structures by the order in which they go */
static const GallopStructureKind Order[] = {GALLOP_TILEDSPMM, GALLOP_TRANSPOSE, GALLOP_FORMAT};

/* MatGallopUsed - Bytes of all structures of a matrix at a place but one, and of the parent's copy that stays there */
PetscErrorCode MatGallopUsed(Mat A, Mat_Gallop *g, GallopStructureKind but, GallopPlace place, PetscCount *used)
{
  PetscCount parents = 0;

  PetscFunctionBegin;
  if (place == GALLOP_DEVICE) PetscCall(MatGallopCopyStays(A, g, &parents));
  *used = parents;
  for (int s = 0; s < GALLOP_STRUCTURES; s++)
    if (s != (int)but) *used += (PetscCount)g->structure[s].instance[place].bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopGetLimit - The most bytes that a structure may take, 0 for no limit; 1, which is too few for any, where nothing is left */
PetscErrorCode MatGallopGetLimit(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscCount *limit)
{
  PetscCount used = 0;

  PetscFunctionBegin;
  *limit = g->structure[kind].maxbytes;
  if (!g->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopUsed(A, g, kind, place, &used));
  used   = PetscMax(1, g->maxbytes - used);
  *limit = *limit ? PetscMin(*limit, used) : used;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopMakeRoom - A structure did not fit within the limit: drops the first of those that go before it. *made is false when none is left. */
PetscErrorCode MatGallopMakeRoom(Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscBool *made)
{
  PetscFunctionBegin;
  *made = PETSC_FALSE;
  if (!g->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; Order[k] != kind && !*made; k++) {
    GallopStructure *structure = &g->structure[Order[k]];

    if (!structure->instance[place].data) continue;
    PetscCall(PetscInfo(NULL, "%s of a matrix makes room within -mat_gallop_memory\n", Order[k] == GALLOP_TRANSPOSE ? "The format of the transpose" : structure->type->format->ucname));
    PetscCall(MatGallopDrop(structure, place));
    *made = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
