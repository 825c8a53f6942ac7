/* SPDX-License-Identifier: BSD-2-Clause */
/*
  When a format is worth its build: -mat_gallop_build pays. It counts products and does not time them, so that each run of a program does the same.

  Time is measured in products of the parent. A build takes B of them. Who builds after 3.6 B products has lost a quarter at the most, however few follow, and has won when 80 do; who builds at
  the first product has won when 2.5 B follow and the format is 1.7 times as fast.
*/

#include <gallop/matgallopimpl.h>
#include "../common/bits.h"

/* Seconds on an H200: a product of the parent's, and EVCHYB's build beyond its first product, by rows and entries; docs/development/builds.md */
static const PetscReal  ProductTime = 9e-6, ProductRow = 5e-12, ProductEntry = 4.3e-12;
static const PetscReal  BuildTime = 1.1e-4, BuildRow = 6e-11, BuildEntry = 1.3e-11, LargeTime = 5e-5;
static const PetscCount Large         = 1000000;                        /* entries: such a matrix may be packed */
static const PetscReal  TransposeTime = 7e-5, TransposeEntry = 5.3e-11; /* to transpose the entries, which a refresh does again */
static const PetscReal  LoadTime        = 2.5e-3;                       /* the first build of a process loads the kernels, for all others too */
static const PetscReal  RefreshProducts = 2;
static const PetscReal  HostProducts    = 15; /* of a build there */
static const PetscReal  LosesQuarter = 3.6, Pays = 2.5;

/* GallopParentSeconds - What a product of the parent's takes on a GPU, by rows and entries: an estimate. For -mat_gallop_choose measure as well, as is the next one. */
PETSC_INTERN PetscReal GallopParentSeconds(PetscReal, PetscReal);
PETSC_INTERN PetscReal GallopBuildProducts(const GallopFormat *, PetscReal, PetscReal);

PetscReal GallopParentSeconds(PetscReal m, PetscReal nz)
{
  return ProductTime + ProductRow * m + ProductEntry * nz;
}

PetscReal GallopBuildProducts(const GallopFormat *format, PetscReal m, PetscReal nz)
{
  const PetscReal build = BuildTime + BuildRow * m + BuildEntry * nz + (nz >= Large ? LargeTime : 0);

  return (format->build_cost > 0 ? format->build_cost : 1) * build / GallopParentSeconds(m, nz);
}

/* In products */
static PetscReal Cost(const GallopFormat *format, GallopStructureKind kind, GallopPlace place, PetscReal m, PetscReal nz, PetscBool refresh)
{
  const PetscReal transpose = kind == GALLOP_TRANSPOSE ? TransposeTime + TransposeEntry * nz : 0;

  if (place == GALLOP_HOST) return refresh ? RefreshProducts : HostProducts;
  return transpose / GallopParentSeconds(m, nz) + (refresh ? RefreshProducts : GallopBuildProducts(format, m, nz));
}

static PetscInt64 *Lived(const Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscCount entries)
{
  return g->type->lived[kind][place][GallopBitsFor((uint64_t)entries)].products;
}

/* MatGallopPaysNote - Before a matrix goes: how often its entries were multiplied, for the next one of its size. Newton's methods and multigrid make their matrices anew again and again. */
void MatGallopPaysNote(Mat_Gallop *g)
{
  for (int kind = 0; kind < GALLOP_STRUCTURES; kind++)
    for (int place = 0; place < 2; place++) {
      const GallopInstance *inst = &g->structure[kind].instance[place];
      PetscInt64           *lived;

      if (!inst->entries) continue;
      lived    = Lived(g, (GallopStructureKind)kind, (GallopPlace)place, inst->entries);
      lived[1] = lived[0];
      lived[0] = inst->asked ? inst->asked : inst->before;
    }
}

/*
  MatGallopPays - Tells whether the next product is the format's: it is there, or is worth its build or refresh now. With count the product is counted.

  Where the answer is no, a format of another pattern is given up: it would take memory for nothing.
*/
PetscErrorCode MatGallopPays(Mat A, Mat_Gallop *g, GallopStructureKind kind, GallopPlace place, PetscBool count, PetscBool *pays)
{
  GallopInstance     *inst   = &g->structure[kind].instance[place];
  const GallopKey    *key    = &inst->key;
  const GallopFormat *format = g->type->format;
  const PetscInt     *i, *j;
  PetscObjectState    state;
  PetscReal           cost, load, m, nz, expected;
  PetscBool           refresh;

  PetscFunctionBegin;
  *pays = PETSC_TRUE;
  if (g->build != GALLOP_BUILD_PAYS) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (inst->seen != state) {
    inst->older  = (PetscBool)(inst->older || inst->asked);
    inst->before = inst->asked;
    inst->asked  = 0;
    inst->seen   = state;
  }
  if (inst->pattern != A->nonzerostate) inst->waiting = 0;
  inst->pattern = A->nonzerostate;
  if (count) inst->asked++;
  if (key->owner == A && key->state == state && key->nonzerostate == A->nonzerostate) {
    inst->entries = key->nz;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  inst->entries = i[A->rmap->n];
  /* a copy from the host that the format makes by itself is what the parent would have to make first */
  if (kind == GALLOP_FORMAT && place == GALLOP_DEVICE && format->device_takes_host && MatGallopNewestOnHost(A)) PetscFunctionReturn(PETSC_SUCCESS);
  if (inst->data && (key->owner != A || key->nonzerostate != A->nonzerostate)) PetscCall(MatGallopDrop(&g->structure[kind], place));
  if (place == GALLOP_DEVICE) {
    PetscBool worse;

    PetscCall(MatGallopParentIsWorse(A, g, (PetscBool)(inst->data != NULL), &worse));
    if (worse) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (count) inst->waiting++;
  m       = (PetscReal)A->rmap->n;
  nz      = (PetscReal)inst->entries;
  refresh = (PetscBool)(inst->data != NULL);
  cost    = Cost(format, kind, place, m, nz, refresh);
  load    = place == GALLOP_DEVICE && !g->type->loaded ? LoadTime / GallopParentSeconds(m, nz) : 0;
  if (g->products) expected = g->products;
  else if (inst->older) expected = (PetscReal)inst->before;
  else {
    const PetscInt64 *lived = Lived(g, kind, place, inst->entries);

    expected = (PetscReal)PetscMin(lived[0], lived[1]);
  }
  *pays = (PetscBool)(expected >= Pays * cost + load || (PetscReal)inst->asked > LosesQuarter * cost + load);
  /* many states of one pattern, each with too few products for a build and enough for a refresh: a build pays for all that follow */
  if (!*pays && !refresh) *pays = (PetscBool)((PetscReal)inst->waiting > LosesQuarter * cost + load && (PetscReal)inst->before >= Pays * Cost(format, kind, place, m, nz, PETSC_TRUE));
  if (*pays && place == GALLOP_DEVICE) { /* a CUDA graph records the parent's product rather than a build, which cannot be recorded */
    PetscCall(GallopDeviceIsCapturing(pays));
    *pays = PetscNot(*pays);
  }
  if (*pays) inst->waiting = 0;
  else if (count && inst->asked == 1)
    PetscCall(PetscInfo(A, "%s computes about %.0f products of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix with new entries, until the format pays\n", GallopParentType(g->mpi, g->deviceparent), (double)(LosesQuarter * cost + load),
                        A->rmap->n, A->cmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}
