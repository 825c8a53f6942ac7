/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's build and its refresh on the GPU, src/mat/impls/hbp/hbpdevice.cu and the stages that it runs, beside the host's */
#include "memory.h"
#include "matrices.h"
#include "sort.h"
#include "mat/impls/common/longrows.c"
#include "mat/impls/hbp/hbpchoose.c"
/* static functions of the same names */
#define Allocate HostAllocate
#define Count    HostCount
#define Fill     HostFill
#define Build    HostBuild
#define Destroy  HostDestroy
#define Look     HostLook
#define Refresh  HostRefresh
#include "mat/impls/hbp/hbphost.c"
#undef Allocate
#undef Count
#undef Fill
#undef Build
#undef Destroy
#undef Look
#undef Refresh
#include "mat/impls/hbp/hbplook.cu"
#include "mat/impls/hbp/hbpwholecount.cu"
#include "mat/impls/hbp/hbpwhole.cu"
#include "mat/impls/hbp/hbpmap.cu"
#include "mat/impls/hbp/hbpcount.cu"
#include "mat/impls/hbp/hbpfill.cu"
#include "mat/impls/hbp/hbpconvert.cu"
#include "mat/impls/hbp/hbpplan.cu"
#include "mat/impls/hbp/hbpdevice.cu"

/* ---- what the library has elsewhere ---- */

/* no matrix here is one for these */
PetscErrorCode HBPColumnsBuild_Host(HBP *, const GallopCSR *, const HBPSample *, PetscCount)
{
  return PETSC_SUCCESS;
}

PetscErrorCode HBPHotBuild_Host(HBP *, const GallopCSR *, const HBPSample *, PetscCount)
{
  return PETSC_SUCCESS;
}

PetscErrorCode HBPColumnsBuild_Device(HBP *, const GallopCSR *, const HBPSample *, PetscCount, cudaStream_t)
{
  return PETSC_SUCCESS;
}

PetscErrorCode HBPHotBuild_Device(HBP *, const GallopCSR *, const HBPSample *, PetscCount, cudaStream_t)
{
  return PETSC_SUCCESS;
}

PetscErrorCode HBPColumnsDestroy(HBPColumns **)
{
  return PETSC_SUCCESS;
}

PetscErrorCode HBPHotDestroy(HBPHot **)
{
  return PETSC_SUCCESS;
}

void HBPColumnsFill_Host(HBPColumns *, const GallopCSR *, PetscBool)
{
  emu::Fail("column blocks");
}

void HBPHotFill_Host(HBPHot *, const GallopCSR *, PetscBool)
{
  emu::Fail("hot columns");
}

PetscErrorCode HBPColumnsRefresh_Device(HBPColumns *, const GallopCSR *)
{
  emu::Fail("column blocks");
}

PetscErrorCode HBPHotRefresh_Device(HBPHot *, const GallopCSR *)
{
  emu::Fail("hot columns");
}

PetscErrorCode HBPApply_Host(void *, const GallopProduct *)
{
  emu::Fail("a product");
}

PetscErrorCode HBPApplyTranspose_Host(void *, const GallopProduct *, PetscBool)
{
  emu::Fail("a product");
}

PetscErrorCode HBPApply_Device(void *, const GallopProduct *)
{
  emu::Fail("a product");
}

PetscErrorCode HBPApplyTranspose_Device(void *, const GallopProduct *, PetscBool)
{
  emu::Fail("a product");
}

static int processors; /* multiprocessors of the GPU */

PetscErrorCode HBPGetRoom(const HBP *h, HBPRoom *room)
{
  *room = {processors, 2, h->shared ? 512 : FewThreads, 0, 0, PETSC_TRUE};
  return PETSC_SUCCESS;
}

PetscErrorCode HBPGetSharedCols_Device(PetscInt *cols)
{
  *cols = HBP_MAX_SHARED_COLS;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceAvailable(PetscBool *available)
{
  *available = PETSC_TRUE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCSRGetHostI(const GallopCSR *csr, const PetscInt **i)
{
  *i = csr->host_i;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  emu::Enqueue([=] { memcpy(to, from, bytes); });
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCopyToHost(void *to, PetscMemType, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

/* PETSc's sort the integers that it was built for */
/* ---- the test ---- */

enum { COMBINES = 1, LONG = 2, MAPPED_ALL = 4, MAPPED_SOME = 8, INDEXED = 16, SHARED_X = 32, LANES = 64, EMPTY = 128, ALONE = 256 };

struct Case {
  const char *name;
  Matrix      A;
  HBPOptions  options; /* block_rows, block_cols, shared_x, map, long_row, lane_entries, fixed */
  int         kinds;   /* all that is to be there */
  int         waits;   /* of the host */
};

static int Kinds(const HBP *h)
{
  int kinds = (h->partialNum ? COMBINES : 0) | (h->longRows.num ? LONG : 0) | (h->indexed ? INDEXED : 0) | (h->shared ? SHARED_X : 0) | (h->empty ? EMPTY : 0) | (h->alone ? ALONE : 0);

  if (h->mapped) kinds |= h->allMapped ? MAPPED_ALL : MAPPED_SOME;
  for (PetscInt g = 0; g < h->groupNum; g++)
    if (HBPInfoLanes(h->group[g].info)) kinds |= LANES;
  return kinds;
}

static bool Same(const HBPGroup &a, const HBPGroup &b)
{
  return a.begin_ptr == b.begin_ptr && a.seg == b.seg && a.out == b.out && a.info == b.info;
}

template <typename T>
static bool Same(const T &a, const T &b)
{
  return a == b;
}

template <typename T>
static void Compare(const char *name, const char *what, const T *host, const T *device, PetscCount num)
{
  if (!device && num) emu::Fail("%s: no %s", name, what);
  for (PetscCount k = 0; k < num; k++)
    if (!Same(host[k], device[k])) emu::Fail("%s: %s[%ld] of %ld differs", name, what, (long)k, (long)num);
}

#define NUMBER(what) \
  if (host->what != h->what) emu::Fail("%s: " #what " is %ld, not %ld", name, (long)h->what, (long)host->what)

static void CompareAll(const char *name, const HBP *host, const HBP *h)
{
  const HBPPlan *plan = (const HBPPlan *)h->plan;

  NUMBER(N);
  NUMBER(M);
  NUMBER(rowBlocks);
  NUMBER(colBlocks);
  NUMBER(longRow);
  NUMBER(laneEntries);
  NUMBER(hash.a);
  NUMBER(hash.b);
  NUMBER(hash.c);
  NUMBER(mapChunks);
  NUMBER(shared);
  NUMBER(allMapped);
  NUMBER(alone);
  NUMBER(indexed);
  NUMBER(blkNum);
  NUMBER(groupNum);
  NUMBER(segNum);
  NUMBER(partialNum);
  NUMBER(combineNum);
  NUMBER(empty);
  NUMBER(longest);
  NUMBER(blknz);
  NUMBER(mapped);
  NUMBER(mapNum);
  NUMBER(longRows.num);
  NUMBER(longRows.pieceNum);
#define COMPARE(array, number) Compare(name, #array, host->array, h->array, number);
  HBP_ARRAYS(host, COMPARE);
#undef COMPARE
#define COMPARE(array, number) Compare(name, #array, host->longRows.array, h->longRows.array, number);
  HBP_LONG_ROWS(&host->longRows, COMPARE);
#undef COMPARE
  for (PetscCount k = h->mapNum; k < HBPMapPlaces(h); k++)
    if (h->map[k] != (k - h->mapNum) * HBP_CHUNK) emu::Fail("%s: the map of blocks without one", name);
  if (plan->parts[plan->partNum].begin != h->groupNum || plan->parts[0].begin != 0) emu::Fail("%s: parts are not all groups", name);
  for (PetscInt p = 0; p < plan->partNum; p++)
    if (plan->parts[p].begin > plan->parts[p + 1].begin || (plan->groups && plan->parts[p].begin != p) || (h->colBlocks == 1 && plan->parts[p].col)) emu::Fail("%s: part %ld", name, (long)p);
  if (plan->tickets[0] || plan->tickets[1]) emu::Fail("%s: tickets", name);
}

/* In one piece, each ending where memory ends that may be touched */
static PetscScalar *NewValues(GallopCSR *csr)
{
  std::vector<PetscScalar> a(csr->nz);

  for (auto &value : a) value = RandomReal();
  csr->a = emu::Guarded(a);
  return (PetscScalar *)csr->a;
}

static void Test(const Case &c)
{
  GallopCSR csr = {};
  HBP      *host;
  void     *data, *other;

  csr.m       = c.A.m;
  csr.n       = c.A.n;
  csr.nz      = (PetscCount)c.A.j.size();
  csr.i       = emu::Guarded(c.A.i);
  csr.j       = emu::Guarded(c.A.j);
  csr.host_i  = c.A.i.data();
  csr.host_j  = c.A.j.data();
  csr.memtype = PETSC_MEMTYPE_CUDA;
  NewValues(&csr);
  CheckCall(HBPBuild_Host(HBP_GROUP, &c.options, &csr, 0, &host));
  if (!host) emu::Fail("%s: no format", c.name);
  if (Kinds(host) != c.kinds) emu::Fail("%s: there is %x, not %x", c.name, Kinds(host), c.kinds);

  for (int without = 0; without < 6; without++) { /* the first time there is memory for all requests, then the first, the second, and so on fails */
    failing = without;
    waits = requests = freed = 0;
    allocations.clear();
    emu::ClearCanaries();
    emu::resident = 1 + (int)(choice() % 5);
    processors    = 1 + (int)(choice() % 3);
    CheckCall(HBPDevice.build(&c.options, &csr, 0, &data));
    emu::Sync();
    emu::CheckCanaries("after a build");
    if (!data) {
      if (!without) emu::Fail("%s: no build", c.name);
      if (freed != (int)allocations.size()) emu::Fail("%s: without request %d, %d of %d pieces of memory are freed", c.name, without, freed, (int)allocations.size());
    } else {
      GallopRefresh answer = {};
      other                = host;

      if (waits != c.waits) emu::Fail("%s: the host waits %d times, not %d", c.name, waits, c.waits);
      CompareAll(c.name, host, (HBP *)data);
      NewValues(&csr);
      CheckCall(HBPHost.refresh(other, &csr, 0, &answer));
      CheckCall(HBPDevice.refresh(data, &csr, 0, &answer));
      emu::Sync();
      Compare(c.name, "new value", host->data, ((HBP *)data)->data, host->nz);
      const PetscCount bytes = (PetscCount)(((HBP *)data)->bytes + HBPWorkspaceBytes((HBP *)data) + 2 * 256); /* canaries behind both arrays of workspace */

      CheckCall(HBPDevice.destroy(&data));
      for (int less = 0; less < 2 && !without; less++) { /* the limit, and one byte less */
        emu::ClearCanaries();
        CheckCall(HBPDevice.build(&c.options, &csr, bytes - less, &data));
        emu::Sync();
        if (!data != less) emu::Fail("%s: %s format in %ld bytes", c.name, data ? "a" : "no", (long)(bytes - less));
        if (data) CheckCall(HBPDevice.destroy(&data));
      }
    }
    emu::ClearCanaries();
    for (auto p : allocations) free(p);
    if (requests < without || (!full && !without && choice() % 4)) break;
  }
  other = host;
  CheckCall(HBPHost.destroy(&other));
}

/* Entries of a row are near its own column, and in some further places that are the same for all */
static Matrix Near(PetscInt m, PetscInt n, const Length &length, int far = 1)
{
  std::vector<std::vector<PetscInt>> rows(m);

  for (PetscInt r = 0; r < m; r++) {
    const int      num  = length(r);
    const PetscInt each = n / far;

    for (int k = 0; k < num; k++) rows[r].push_back(std::min<PetscInt>(n - 1, k % far * each + (PetscInt)((PetscCount)r * (each - num) / m) + k / far));
    std::sort(rows[r].begin(), rows[r].end());
    rows[r].erase(std::unique(rows[r].begin(), rows[r].end()), rows[r].end());
  }
  return FromRows(n, rows);
}

/* The rows of both, one after the other */
static Matrix Both(const Matrix &A, const Matrix &B)
{
  Matrix C = A;

  C.m += B.m;
  C.j.insert(C.j.end(), B.j.begin(), B.j.end());
  for (PetscInt r = 1; r <= B.m; r++) C.i.push_back((PetscInt)A.j.size() + B.i[r]);
  return C;
}

int main(int argc, char **argv)
{
  Begin(argc, argv);

  const Length     few = [](PetscInt) { return 3 + (int)(choice() % 5); }, same = [](PetscInt) { return 7; }, some = [](PetscInt r) { return r % 7 ? 1 + (int)(choice() % 9) : 0; };
  const Length     mixed = [](PetscInt) { return 1 + (int)(choice() % 10 ? choice() % 30 : choice() % 400); }, longer = [](PetscInt r) { return r % 60 ? 3 : 900; };
  const HBPOptions chosen = {.shared_x = HBP_SHARED_CHOOSE, .map = HBP_MAP_CHOOSE, .fixed = -1};
  const HBPOptions low    = {256, 0, 0, HBP_MAP_NEVER, 0, 0, -1}, lanes = {0, 0, 0, HBP_MAP_NEVER, 0, 4, -1}, longs = {256, 0, 0, HBP_MAP_NEVER, 64, 0, -1};
  const HBPOptions blocks = {256, 700, 0, HBP_MAP_NEVER, 0, 0, -1}, longblocks = {256, 900, 0, HBP_MAP_NEVER, 64, 4, -1}, maps = {256, 1500, 0, HBP_MAP_ALWAYS, 64, 0, -1};
  const HBPOptions somemaps = {256, 3000, 0, HBP_MAP_ALWAYS, 0, 0, -1}, shared = {256, 700, HBP_SHARED_ALWAYS, HBP_MAP_NEVER, 0, 0, -1}, tiny = {3, 0, 0, HBP_MAP_NEVER, 0, 0, -1}, odd = {300, 1500, 0, HBP_MAP_ALWAYS, 64, 3, -1};
  const Case       cases[] = {
    {"five points",                             Stencil(60),                           chosen,     ALONE,                                       1},
    {"short rows",                              Rows(3000, 1000, few),                 chosen,     ALONE,                                       1},
    {"equal rows",                              Rows(3000, 1000, same),                chosen,     ALONE,                                       1},
    {"one row",                                 Rows(1, 1, few),                       chosen,     ALONE,                                       1},
    {"unsorted",                                Rows(700, 1000, few, false),           chosen,     ALONE,                                       1},
    {"short and empty rows",                    Rows(2000, 900, some),                 chosen,     EMPTY,                                       1},
    {"blocks of 3 rows",                        Rows(200, 900, some),                  tiny,       EMPTY,                                       1},
    {"low blocks",                              Rows(2000, 900, few),                  low,        ALONE,                                       1},
    {"rows of all lengths",                     Rows(2000, 3000, mixed),               lanes,      ALONE | LANES,                               1},
    {"long rows",                               Rows(900, 2000, longer),               longs,      LONG,                                        1},
    {"more long rows than one copy tells",      Rows(4500, 1000, [](PetscInt r) { return r % 60 ? 3 : 90; }), longs,      LONG,                 2},
    {"long rows alone",                         Rows(3, 2000, [](PetscInt) { return 1000; }), longs, LONG,                                      1},
    {"maps",                                    Near(3000, 9000, few),                 maps,       ALONE | MAPPED_ALL,                          1},
    {"maps, several places",                    Near(3000, 90000, same, 5),            chosen,     ALONE | MAPPED_ALL,                          1},
    {"maps, empty and long rows",               Near(2000, 9000, [=](PetscInt r) { return r % 100 ? some(r) : 90; }), odd, MAPPED_ALL | LONG | EMPTY | LANES, 1},
    {"maps, unsorted",                          Rows(300, 1700, few, false),           {8, 1600, 0, HBP_MAP_ALWAYS, 0, 0, -1}, ALONE | MAPPED_ALL, 1},
    {"maps whose chunks are far apart",         Near(700, 3000000, few, 3),            {256, 65536, 0, HBP_MAP_ALWAYS, 0, 0, -1}, ALONE | MAPPED_ALL, 1},
    {"maps whose chunks take a table",          Near(300, 100000000, few, 3),          {256, 65536, 0, HBP_MAP_ALWAYS, 0, 0, -1}, ALONE | MAPPED_ALL, 1},
    {"maps of some",                            Both(Rows(600, 9000, mixed), Near(1000, 9000, few)), somemaps, COMBINES | MAPPED_SOME | LANES, 2},
    {"segments",                                Rows(1500, 3000, mixed),               blocks,     COMBINES | LANES,                            2},
    {"segments of some rows, long rows, lanes", Rows(900, 2000, longer),               longblocks, COMBINES | LONG,                             2},
    {"segments, unsorted",                      Rows(500, 3000, few, false),           blocks,     COMBINES | INDEXED,                          3},
    {"x in shared memory",                      Rows(1000, 3000, mixed),               shared,     COMBINES | LANES | SHARED_X,                 2},
    {"x in shared memory, whole rows",          Rows(1000, 600, few),                  shared,     ALONE | SHARED_X,                            1},
  };
  for (auto &c : cases) Test(c);
  return End();
}
