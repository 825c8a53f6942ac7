/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order of rows and what plain storage makes of it on the GPU, src/mat/impls/evchyb/rows.cu and plain/plainbuild.cu, beside the host's */
#include "testing.h"
#include "memory.h"
#include "mat/impls/evchyb/launch.c"
#include "mat/impls/evchyb/rows.c"
#include "mat/impls/evchyb/plain/plainplan.c"
/* static functions of the same names */
#define Carve RowsCarve
#include "mat/impls/evchyb/rows.cu"
#undef Carve
#define Arrange           HostArrange
#define OrderColumnBlocks HostOrderColumnBlocks
#include "mat/impls/evchyb/plain/plainhost.c"
#undef Arrange
#undef OrderColumnBlocks
#define Free FreeArrays
#include "mat/impls/evchyb/plain/plainbuild.cu"
#undef Free
#define WarpsInBlock FillWarpsInBlock
#include "mat/impls/evchyb/plain/plainfill.cu"
#undef WarpsInBlock
#include "mat/impls/evchyb/plain/plainrestore.cu"
#include "restoretest.h"

/* ---- what the library has elsewhere ---- */

const EVCHYBStorageWork EVCHYBPlainDevice = {};

PetscErrorCode GallopCopyToHost(void *to, PetscMemType, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

EVCHYBOptions EVCHYBOptionsFor(const EVCHYBOptions *options, const GallopCSR *)
{
  return *options;
}

PetscErrorCode EVCHYBPackedRestore_Device(const EVCHYBPacked *, const PetscInt[], PetscInt[], PetscScalar[])
{
  emu::Fail("plain storage is restored as packed");
}

/* What the host has stored, where it may be read, and no byte more */
static void TestRestorePlain(const char *name, const EVCHYB &host, const GallopCSR &csr)
{
  EVCHYB      ev = host;
  EVCHYBPlain p  = *host.plain;

#define GUARD(what, num) p.what = emu::Guarded(std::vector(host.plain->what, host.plain->what + (num)));
  EVCHYB_PLAIN_ARRAYS(GUARD, host.plain)
#undef GUARD
  ev.plain = &p;
  TestRestore(name, ev, csr);
}

static int sorts; /* of all rows or column blocks at once */

template <typename T>
cudaError_t EVCHYBDeviceScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t)
{
  if (!temp) bytes = 777;
  else {
    T sum = {};

    for (PetscCount k = 0; k < n; k++) {
      const T next = sum + data[k];

      data[k] = sum;
      sum     = next;
    }
  }
  return cudaSuccess;
}

cudaError_t EVCHYBDeviceSortPairs(void *temp, size_t &bytes, const uint64_t *keys, uint64_t *sortedkeys, const PetscInt *values, PetscInt *sorted, PetscCount n, int bits, cudaStream_t)
{
  if (!temp) bytes = 777;
  else {
    const uint64_t          mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
    std::vector<PetscCount> order(n);

    sorts++;
    for (PetscCount k = 0; k < n; k++) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [=](PetscCount a, PetscCount b) { return (keys[a] & mask) < (keys[b] & mask); });
    for (PetscCount k = 0; k < n; k++) {
      sorted[k]     = values[order[k]];
      sortedkeys[k] = keys[order[k]];
    }
  }
  return cudaSuccess;
}

/* ---- builds ---- */

struct Case {
  const char                  *name;
  PetscInt                     m, n;
  std::function<int(PetscInt)> length;
  PetscInt                     window, maxell;
  bool                         byrow;
  int                          waits; /* of the host, at most */
};

#define SAME(what) \
  if (h->what != d->what) emu::Fail("%s: " #what " is %ld, not %ld", c.name, (long)d->what, (long)h->what)
#define SAMEARRAY(what, num) \
  for (PetscCount k = 0; k < (PetscCount)(num); k++) \
    if (h->what[k] != d->what[k]) emu::Fail("%s: " #what "[%ld] is %ld, not %ld", c.name, (long)k, (long)d->what[k], (long)h->what[k])

/* Whether thread blocks sort windows, and column blocks by them */
static bool ByWindows(const Case &c)
{
  return c.window >= EVCHYB_WINDOW_LEAST && c.window <= EVCHYB_WINDOW_MOST && (c.m - 1) / c.window < 1024;
}

static void Test(const Case &c, bool firstcol, bool counted)
{
  std::vector<PetscInt>    i{0}, j;
  std::vector<PetscScalar> a;
  EVCHYB                   host = {}, device;
  EVCHYBRows               rows = {};
  PetscBool                done;

  for (PetscInt r = 0; r < c.m; r++) {
    const int length = std::min<int>(c.length(r), c.n), shift = length ? (int)(choice() % (c.n - length + 1)) : 0;

    for (int k = 0; k < length; k++) j.push_back(shift + k);
    i.push_back((PetscInt)j.size());
  }
  for (size_t k = 0; k < j.size(); k++) a.push_back((PetscScalar)(k % 1000 + 1));

  GallopCSR csr = {};

  csr.m                 = c.m;
  csr.n                 = c.n;
  csr.nz                = (PetscCount)j.size();
  csr.i                 = emu::Guarded(i);
  csr.j                 = emu::Guarded(j);
  csr.a                 = emu::Guarded(a);
  host.m                = c.m;
  host.n                = c.n;
  host.nz               = csr.nz;
  host.processors       = 4;
  host.options.window   = c.window;
  host.options.maxell   = c.maxell;
  host.options.split    = 4096;
  host.options.rowsmax  = 1;
  host.options.columns  = 256;
  host.options.byrow    = c.byrow ? 1 : 0;
  host.options.firstcol = (PetscBool)firstcol;
  device                = host;
  host.overlaps         = PETSC_TRUE;
  EVCHYBRowsCount(c.maxell, c.m, csr.i, &rows);
  host.nempty = rows.nempty;
  CheckCall(EVCHYBRowsSort_Host(&host.options, &csr, PETSC_FALSE, &rows));
  CheckCall(EVCHYBPlainBuild_Host(&host, &csr, &rows, 0, &done));

  allocations.clear();
  emu::ClearCanaries();
  TestRestorePlain(c.name, host, csr);
  emu::CheckCanaries("after a restoration");
  for (auto p : allocations) free(p);
  for (int without = 0; without < 6; without++) { /* the first time there is memory for all requests, then the first, the second, and so on fails */
    device.plain = NULL;
    rows         = {};
    if (counted) EVCHYBRowsCount(c.maxell, c.m, csr.i, &rows);
    failing = without;
    waits = requests = freed = sorts = 0;
    allocations.clear();
    emu::ClearCanaries();
    emu::resident = 1 + (int)(choice() % 5);
    CheckCall(EVCHYBRowsSort_Device(&device.options, &csr, &rows, &done));
    if (done) CheckCall(EVCHYBPlainBuild_Device(&device, &csr, &rows, 0, &done));
    CheckCall(EVCHYBRowsFree_Device(&rows));
    emu::CheckCanaries("after a build");
    if (!done) {
      if (!without) emu::Fail("%s: no build", c.name);
      if (freed != (int)allocations.size()) emu::Fail("%s: without request %d, %d of %d pieces of memory are freed", c.name, without, freed, (int)allocations.size());
    } else {
      const EVCHYBPlain *h = host.plain, *d = device.plain;

      if (sorts && c.byrow && rows.nlong <= FewLong && ByWindows(c)) emu::Fail("%s: %d sorts of all column blocks", c.name, sorts);
      if (waits > c.waits) emu::Fail("%s: the host waits %d times", c.name, waits);
      if (device.nempty != host.nempty) emu::Fail("%s: %ld empty rows, not %ld", c.name, (long)device.nempty, (long)host.nempty);
      SAME(nlisted);
      SAME(ell.nb);
      SAME(ell.n);
      SAME(ell.nz);
      SAME(ell.LCmax);
      SAME(csr.n);
      SAME(csr.nmerged);
      SAME(csr.nz);
      SAME(csr.parts.nsplit);
      SAME(nzell);
      SAME(byrow);
      SAME(inorder);
      SAMEARRAY(ell.classes, EVCHYB_CLASSES);
      SAMEARRAY(perm, h->ell.n + h->csr.n + h->nlisted);
      SAMEARRAY(ell.clen, h->ell.nb);
      SAMEARRAY(ell.bnz, h->ell.nb + 1);
      SAMEARRAY(csr.i, h->csr.n + 1);
      SAMEARRAY(ell.j, h->ell.nz);
      SAMEARRAY(ell.as, h->ell.nz);
      SAMEARRAY(csr.j, h->csr.nz);
      SAMEARRAY(csr.as, h->csr.nz);
      CheckCall(EVCHYBPlainFree_Device(&device));
    }
    for (auto p : allocations) free(p);
    if (!full && without == 0 && choice() % 4) break;
  }
  CheckCall(EVCHYBPlainFree_Host(&host.plain));
}

int main(int argc, char **argv)
{
  auto       mixed   = [](int most) { return [=](PetscInt) { return (int)(choice() % 10 ? choice() % 30 : choice() % most); }; };
  auto       sorted  = [](PetscInt r) { return (int)(1 + r / 100); };
  auto       blocks  = [](PetscInt r) { return r / EVCHYB_BLOCK % 2 ? 3 : 5; };
  auto       never   = [](PetscInt) { return 0; };
  const Case cases[] = {
    {"short rows",                                3000,   500,  [](PetscInt) { return 1 + (int)(choice() % 9); },                 1024, 128, false, 1},
    {"short rows, by row",                        3000,   500,  [](PetscInt) { return 1 + (int)(choice() % 9); },                 1024, 128, true,  1},
    {"rows in order",                             900,    500,  sorted,                                                           256,  128, false, 1},
    {"rows in order, empty ones last",            900,    500,  [](PetscInt r) { return r < 600 ? 1 + (int)r / 100 : 0; },        256,  128, false, 1},
    {"blocks of rows that change places twice",   640,    500,  blocks,                                                           4096, 128, true,  1},
    {"short and empty rows",                      777,    900,  [](PetscInt r) { return r % 3 ? (int)(choice() % 9) : 0; },       256,  128, false, 1},
    {"most rows empty",                           2777,   900,  [](PetscInt r) { return r % 3 ? 0 : (int)(choice() % 9); },       4096, 128, false, 1},
    {"rows of all lengths",                       2900,   3000, mixed(1000),                                                      300,  128, false, 1},
    {"rows of all lengths, by row",               2900,   3000, mixed(1000),                                                      300,  64,  true,  1},
    {"rows of all lengths, windows by row",       5000,   3000, mixed(1000),                                                      1000, 250, true,  1},
    {"long column blocks, windows by row",        9000,   300,  mixed(300),                                                       4096, 250, true,  1},
    {"classes in order, windows by row",          9000,   300,  [](PetscInt r) { return (int)(r / 31 % 256); },                   512,  256, true,  1},
    {"most rows empty, windows by row",           7777,   900,  [](PetscInt r) { return r / 999 % 3 ? 0 : (int)(choice() % 9); }, 700,  128, true,  1},
    {"more windows than are few, by row",         300000, 100,  [](PetscInt r) { return r % 1000 == 7 ? 5 : (int)r % 2; },        256,  4,   true,  1},
    {"rows of all lengths, all sorted",           1900,   3000, mixed(1000),                                                      0,    128, false, 1},
    {"rows of all lengths, as they come",         1900,   3000, mixed(1000),                                                      1,    128, true,  1},
    {"more rows of SubCSR than come by one copy", 1900,   900,  [](PetscInt) { return (int)(choice() % 40); },                    512,  20,  false, 2},
    {"more long rows than a thread block sorts",  6000,   100,  [](PetscInt) { return (int)(choice() % 20); },                    512,  2,   false, 3},
    {"more rows of SubCSR than a block adds up",  12000,  100,  [](PetscInt) { return (int)(choice() % 20); },                    0,    1,   false, 2},
    {"more windows than are few",                 300000, 100,  [](PetscInt r) { return r % 1000 == 7 ? 5 : (int)r % 2; },        256,  4,   false, 1},
    {"rows of SubCSR alone",                      31,     500,  [](PetscInt r) { return (int)r; },                                256,  128, false, 1},
    {"one long row",                              100,    500,  [](PetscInt r) { return r == 50 ? 400 : 2; },                     256,  128, false, 1},
    {"empty rows",                                100,    5,    never,                                                            4096, 128, false, 1},
    {"one row",                                   1,      1,    [](PetscInt) { return 1; },                                       4096, 128, true,  1},
    {"one empty row",                             1,      1,    never,                                                            1,    128, false, 1},
  };
  Begin(argc, argv);
  for (auto &c : cases)
    for (int k = 0; k < 4; k++) {
      if (c.m > 100000 && k && !full) continue;
      Test(c, k % 2, k / 2);
    }
  return End();
}
