/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's products by clusters, and those of packed storage in the order of the matrix: src/mat/impls/evchyb/clusters/clustersmatrix.cu, plain/plain.cu and packed/packed.cu */
#include "producttest.h"
#include "mat/impls/evchyb/launch.c"
#include "mat/impls/evchyb/rows.c"
#include "mat/impls/evchyb/choose.c"
#define Visit VisitClusters
#include "mat/impls/evchyb/clusters/clustershost.c"
#undef Visit
#include "mat/impls/evchyb/clusters/clustersmatrix.cu"
/* static functions of the same names */
#define Apply   PlainHostApply
#define Destroy PlainHostDestroy
#define Refresh PlainHostRefresh
#define Fill    PlainHostFill
#include "mat/impls/evchyb/plain/plainplan.c"
#include "mat/impls/evchyb/plain/plainhost.c"
#undef Apply
#define Apply PlainApply
#include "mat/impls/evchyb/plain/plain.cu"
#undef Apply
#undef Destroy
#undef Refresh
#undef Fill
/* what the GPU calls so is something else */
#define EVCHYBPackRows    HostPackRows
#define EVCHYBPackColumns HostPackColumns
#include "mat/impls/evchyb/packed/packedplan.c"
#include "mat/impls/evchyb/packed/packeddict.c"
#include "mat/impls/evchyb/packed/packedstore.c"
#undef EVCHYBPackRows
#undef EVCHYBPackColumns
#define Apply   PackedHostApply
#define Destroy PackedHostDestroy
#include "mat/impls/evchyb/packed/packed.c"
#undef Apply
#undef Destroy
#define Apply   PackedApply
#define Destroy PackedDestroy
#define Launch  LaunchPacked
#include "mat/impls/evchyb/packed/packed.cu"

/* ---- what the library has elsewhere; formats are built on the host here ---- */

#define ELSEWHERE(function, ...) \
  PetscErrorCode function(__VA_ARGS__) \
  { \
    emu::Fail(#function "() is not for this test"); \
    return PETSC_SUCCESS; \
  }
ELSEWHERE(EVCHYBPackBegin_Device, const GallopCSR *, const EVCHYBPackSurvey *, EVCHYBPack **)
ELSEWHERE(EVCHYBPackMeasure_Device, const EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackCost[EVCHYB_PACK_COSTS])
ELSEWHERE(EVCHYBPackFinish_Device, EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, const EVCHYBPackSurvey *, PetscCount, PetscBool *)
ELSEWHERE(EVCHYBPackRefresh_Device, EVCHYBPack *, const GallopCSR *, PetscBool *)
ELSEWHERE(EVCHYBPackRenumber_Device, EVCHYBPack *, const GallopCSR *, PetscBool *)
ELSEWHERE(EVCHYBPackSortDict_Device, EVCHYBPack *, PetscBool *)
ELSEWHERE(EVCHYBPackFree_Device, EVCHYBPack *)
ELSEWHERE(EVCHYBPackSurveyFree_Device, EVCHYBPackSurvey *)
ELSEWHERE(EVCHYBPackApply_Host, const EVCHYBPack *, const GallopProduct *)
ELSEWHERE(EVCHYBPlainRefresh_Device, EVCHYB *, const GallopCSR *, PetscCount, PetscBool *)
ELSEWHERE(EVCHYBPlainFree_Device, EVCHYB *)

/* Rows are sorted on the host */
PetscErrorCode EVCHYBRowsNeed(const EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscBool *fits)
{
  *fits = PETSC_TRUE;
  return PETSC_SUCCESS;
}

PetscErrorCode EVCHYBLongRowsNeed(const EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscBool *fits)
{
  *fits = PETSC_TRUE;
  return PETSC_SUCCESS;
}

/* ---- cases ---- */

struct Case {
  const char *name;
  PetscInt    m;
  Length      length;
  bool        near;
  int         values; /* how many different ones, 0 for all */
};

static PetscErrorCode ApplyEither(void *data, const GallopProduct *p)
{
  EVCHYB *const ev = (EVCHYB *)data;

  return ev->clusters ? EVCHYBClustersApply_Device(ev, p) : (*ev->work->apply)(ev, p);
}

static void Test(const Case &c, bool packed, bool ordered)
{
  Matrix              A        = NewMatrix(c.m, c.m, c.length, c.near);
  EVCHYB              ev       = {};
  EVCHYBRows          rows     = {};
  EVCHYBClusters      clusters = {};
  EVCHYBClusterOrder  found;
  EVCHYBClusterMatrix matrix;
  EVCHYBChoice        chosen;
  PetscBool           done;
  PetscCount          room;

  if (c.values) {
    for (auto &a : A.a) a = (PetscReal)(choice() % c.values) / 3;
    A.csr.a = emu::Guarded(A.a);
  }
#if PetscDefined(USE_COMPLEX)
  for (PetscInt k = 0; k < A.csr.nz / 2; k++) A.a[k] = PetscRealPart(A.a[k]); /* slices with and without imaginary parts */
  A.csr.a = emu::Guarded(A.a);
#endif
  GallopCSR csr = A.csr;

  csr.memtype = PETSC_MEMTYPE_HOST;
  if (ordered) {
    CheckCall(EVCHYBClusterFind_Host(&csr, 0, &found, &done));
    CheckCall(EVCHYBClusterPermute_Host(found.order, &csr, &matrix, &done));
    csr             = matrix.csr;
    clusters.m      = c.m;
    clusters.order  = emu::Guarded(std::vector<PetscInt>(found.order, found.order + c.m));
    clusters.places = emu::Guarded(std::vector<PetscInt>(c.m, -1));
    clusters.x      = emu::Guarded(std::vector<PetscScalar>(c.m, NAN));
    ev.clusters     = &clusters;
  }
  ev.m = ev.n = c.m;
  ev.nz       = csr.nz;
  ev.options  = {.window = packed ? 4096 : (PetscInt)(choice() % 3), .maxell = 128, .split = 256, .rowsmax = 1, .columns = 256, .byrow = (PetscInt)(choice() % 2), .storage = packed ? EVCHYB_PACKED : EVCHYB_PLAIN};
  EVCHYBRowsCount(ev.options.maxell, c.m, csr.i, &rows);
  CheckCall(EVCHYBRowsSort_Host(&ev.options, &csr, (PetscBool)packed, &rows));
  ev.nempty = rows.nempty;
  CheckCall(EVCHYBChoose(&ev, &csr, NULL, &rows, &chosen));
  ev.processors = 1; /* which the plan is for */
  if (packed) CheckCall(EVCHYBPackedBuild(&ev, &csr, &rows, &chosen, 0, &done));
  else CheckCall(EVCHYBPlainBuild_Host(&ev, &csr, &rows, 0, &done));
  ev.work     = packed ? &EVCHYBPackedDevice : &EVCHYBPlainDevice;
  ev.overlaps = (PetscBool)(choice() % 2);

  EVCHYBParts *const parts = packed ? &ev.packed->parts : &ev.plain->csr.parts;

  parts->partial = emu::Guarded(std::vector<PetscScalar>(parts->nparts, NAN));
  parts->arrived = emu::Guarded(std::vector<int>(parts->nsplit, 0));
  if (ordered && !packed) CheckCall(EVCHYBClustersPlaces_Device(&clusters, ev.plain->perm, ev.plain->ell.n + ev.plain->csr.n + ev.plain->nlisted));
  room = ev.launch.range[ev.launch.n - 1].next + parts->nsplit;
  TestProducts(c.name, A, {NULL, NULL, ApplyEither, NULL, NULL}, &ev, room, room, NULL);
}

int main(int argc, char **argv)
{
  const Case cases[] = {
    {"rows that share columns",  900,  [](int) { return 7; },                                                             true,  0   },
    {"few values",               900,  [](int) { return 5; },                                                             true,  9   },
    {"lengths that differ",      500,  [](int r) { return r * 37 % 40; },                                                 false, 3000},
    {"some rows empty",          700,  [](int r) { return r % 3 ? 4 : 0; },                                               true,  0   },
    {"long rows",                5000, [](int r) { return r == 7 ? 5000 : r == 90 ? 129 : r % 1000 == 91 ? 600 : 3; },     false, 0   },
    {"few rows",                 3,    [](int r) { return r + 1; },                                                       true,  0   },
  };
  Begin(argc, argv);
  emu::processors = 3;
  for (auto &c : cases)
    for (int k = 0; k < 4; k++) Test(c, k % 2, k / 2);
  return End();
}
