/* SPDX-License-Identifier: BSD-2-Clause */
/*
  When a format is worth its build: -mat_gallop_build pays. It counts products and does not time them, so that each run of a program does the same.

  Time is measured in products of the parent. A build takes B of them, and the format's products take a part of the parent's. Who builds after 4 B products has lost a quarter at the
  most, however few follow; who builds at the first product has won when 2.5 B follow and the format is 1.7 times as fast.
*/

#include <gallop/matgallopimpl.h>

/* What the two take on an H200, from docs/development: a launch and 12 bytes per entry at 4 TB/s, and what a build takes beyond its own products, mostly waits of the host */
static const PetscReal ProductTime = 5e-6, EntryTime = 3e-12, BuildTime = 8e-4, RefreshTime = 3e-5;
static const PetscReal BuildProducts = 12, RefreshProducts = 3;
static const PetscReal TransposeProducts = 10, TransposeTime = 1e-4; /* to transpose the entries, which a refresh does again */
static const PetscReal LosesQuarter = 4, Pays = 2.5;

static PetscReal Cost(GallopStructureKind kind, PetscCount nz, PetscBool refresh)
{
  const PetscReal product = ProductTime + EntryTime * (PetscReal)nz, transpose = kind == GALLOP_TRANSPOSE ? TransposeProducts + TransposeTime / product : 0;

  return transpose + (refresh ? RefreshProducts + RefreshTime / product : BuildProducts + BuildTime / product);
}

/*
  MatGallopPays - Tells whether the next product is the format's: it is there, or is worth its build or refresh now. With count the product is counted.

  Where the answer is no, a format of another pattern is given up: it would take memory for nothing.
*/
PetscErrorCode MatGallopPays(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscBool count, PetscBool *pays)
{
  GallopInstance  *inst = &g->structure[kind].instance[place];
  const GallopKey *key  = &inst->key;
  const PetscInt  *i, *j;
  PetscObjectState state;
  PetscReal        cost;

  PetscFunctionBegin;
  *pays = PETSC_TRUE;
  if (g->build != GALLOP_BUILD_PAYS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (inst->seen != state) {
    inst->before = inst->asked;
    inst->asked  = 0;
    inst->seen   = state;
  }
  if (count) inst->asked++;
  if (key->owner == A && key->state == state && key->nonzerostate == A->nonzerostate) PetscFunctionReturn(PETSC_SUCCESS);
  if (inst->data && (key->owner != A || key->nonzerostate != A->nonzerostate)) {
    PetscCall((*GallopWork(g->type->format, place)->destroy)(&inst->data));
    inst->data = NULL;
    PetscCall(GallopTransposedDestroy(&inst->transposed));
    MatGallopCountBytes(&g->structure[kind], place);
  }
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  cost  = Cost(kind, i[A->rmap->n], (PetscBool)(inst->data != NULL));
  *pays = (PetscBool)((PetscReal)inst->before >= Pays * cost || (PetscReal)g->products >= Pays * cost || (PetscReal)inst->asked > LosesQuarter * cost);
  PetscFunctionReturn(PETSC_SUCCESS);
}
