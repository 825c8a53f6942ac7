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

static const int AllDifferent = -1;

struct Case {
  const char *name;
  PetscInt    m;
  Length      length;
  PetscInt    window; /* of NewMatrix() */
  int         values; /* how many different ones, 0 for those of RandomReal(), AllDifferent for so many that they are in no dictionary */
  bool        narrow; /* packed in the matrix' order there are slices, and pieces where rows are long, with lines under way together whose columns all are stored in 16 bits */
};

static void CheckNarrow(const Case &c, const EVCHYBPack *pack)
{
  const bool dict     = pack->figures.slots[EVCHYB_PACK_DICT8] || pack->figures.slots[EVCHYB_PACK_DICT16];
  PetscInt   found[2] = {0, 0}; /* slices of short rows, pieces of long ones */

  for (PetscInt s = 0; s < pack->nslice; s++) {
    const EVCHYBPackLine *const lines = pack->line + pack->slice[s].line;

    found[s >= pack->nslice - pack->npiece] += pack->slice[s].width && std::all_of(lines, lines + std::min<PetscInt>(pack->slice[s].width, 8), [](EVCHYBPackLine line) { return EVCHYBPackClassOf(line) == EVCHYB_PACK_16; });
  }
  if (dict != (c.values > 0)) emu::Fail("%s: a dictionary, or none", c.name);
  if (!found[0] && !found[1]) emu::Fail("%s: no slice with columns of 16 bits", c.name);
  if (pack->npiece && !found[1]) emu::Fail("%s: no piece with columns of 16 bits", c.name);
}

static PetscErrorCode ApplyEither(void *data, const GallopProduct *p)
{
  EVCHYB *const ev = (EVCHYB *)data;

  return ev->clusters ? EVCHYBClustersApply_Device(ev, p) : (*ev->work->apply)(ev, p);
}

static void Test(const Case &c, bool packed, bool ordered)
{
  Matrix              A        = NewMatrix(c.m, c.m, c.length, c.window);
  EVCHYB              ev       = {};
  EVCHYBRows          rows     = {};
  EVCHYBClusters      clusters = {};
  EVCHYBClusterOrder  found;
  EVCHYBClusterMatrix matrix;
  EVCHYBChoice        chosen;
  PetscBool           done;
  PetscCount          room;

  if (c.values) {
    for (size_t k = 0; k < A.a.size(); k++) A.a[k] = c.values == AllDifferent ? A.a[k] + (PetscReal)k / 4096 : (PetscReal)(choice() % c.values) / 3;
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
  if (packed && !ordered && c.narrow) CheckNarrow(c, ev.packed->pack);
  if (ordered) ev.processors = 0; /* packed columns that are stored are asked for ahead in any number of thread blocks then */
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
    {"rows that share columns",                900,  [](int) { return 7; },                                                                               1,    0,            false},
    {"few values",                             900,  [](int) { return 5; },                                                                               1,    9,            false},
    {"lengths that differ",                    500,  [](int r) { return r * 37 % 40; },                                                                   0,    3000,         false},
    {"some rows empty",                        700,  [](int r) { return r % 3 ? 4 : 0; },                                                                 1,    0,            false},
    {"long rows",                              5000, [](int r) { return r == 7 ? 5000 : r == 90 ? 129 : r % 1000 == 91 ? 600 : 3; },                      0,    0,            false},
    {"few rows",                               3,    [](int r) { return r + 1; },                                                                         1,    0,            false},
    {"columns in no order",                    1500, [](int) { return 9; },                                                                               1400, AllDifferent, true },
    {"columns in no order, lengths differ",    1500, [](int r) { return r * 37 % 20; },                                                                   1400, AllDifferent, true },
    {"columns in no order, few values",        1500, [](int r) { return 8 + r % 2; },                                                                     1400, 9,            true },
    {"columns in no order, the last rows few", 65,   [](int r) { return 5 + r % 3; },                                                                     65,   0,            false},
    {"long rows, columns in no order",         3000, [](int r) { return r == 7 ? 2900 : r == 90 ? 129 : r % 500 == 91 ? 600 : r % 900 == 92 ? 513 : 3; }, 2900, AllDifferent, true },
  };
  Begin(argc, argv);
  emu::processors = 3;
  for (auto &c : cases)
    for (int k = 0; k < 4; k++) Test(c, k % 2, k / 2);
  return End();
}
