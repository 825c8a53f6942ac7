/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's packed storage: what the GPU finds out, decides and stores, src/mat/impls/evchyb/packed/{survey,dict,plan,store}.cu, beside the host's, and the matrix back from it, packedrestore.cu */
#include "testing.h"
#include "memory.h"
#include "mat/impls/evchyb/rows.c"
#include "mat/impls/evchyb/choose.c"
/* what the GPU calls so is something else */
#define EVCHYBPackRows    HostPackRows
#define EVCHYBPackColumns HostPackColumns
#include "mat/impls/evchyb/packed/packedplan.c"
#include "mat/impls/evchyb/packed/packeddict.c"
#include "mat/impls/evchyb/packed/packedstore.c"
#undef EVCHYBPackRows
#undef EVCHYBPackColumns
#include "mat/impls/evchyb/packed/dict.cu"
#define Carve     PlanCarve
#define Workspace PlanWorkspace
#include "mat/impls/evchyb/packed/plan.cu"
#undef Carve
#undef Workspace
#include "mat/impls/evchyb/packed/survey.cu"
#include "mat/impls/evchyb/packed/store.cu"
#include "mat/impls/evchyb/packed/packedrestore.cu"
#include "restoretest.h"

/* ---- what the library has elsewhere ---- */

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceZero(void *p, size_t bytes)
{
  memset(p, 0, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 1;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCSRGetHostI(const GallopCSR *csr, const PetscInt **i)
{
  *i = csr->host_i;
  return PETSC_SUCCESS;
}

template <typename T>
cudaError_t EVCHYBDeviceSortKeys(void *temp, size_t &bytes, const T *keys, T *sorted, PetscCount n, cudaStream_t)
{
  if (!temp) bytes = 777;
  else {
    std::copy(keys, keys + n, sorted);
    std::sort(sorted, sorted + n);
  }
  return cudaSuccess;
}

#define WHERE(memtype, name, ...) (PetscMemTypeHost(memtype) ? name##_Host(__VA_ARGS__) : name##_Device(__VA_ARGS__))

PetscErrorCode EVCHYBPackBegin(const GallopCSR *csr, const EVCHYBPackSurvey *survey, EVCHYBPack **pack)
{
  return WHERE(csr->memtype, EVCHYBPackBegin, csr, survey, pack);
}

PetscErrorCode EVCHYBPackMeasure(const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, EVCHYBPackCost cost[EVCHYB_PACK_COSTS])
{
  return WHERE(csr->memtype, EVCHYBPackMeasure, pack, csr, order, cost);
}

PetscErrorCode EVCHYBPackDestroy(EVCHYBPack **pack)
{
  if (!*pack) return PETSC_SUCCESS;
  CheckCall(WHERE((*pack)->memtype, EVCHYBPackFree, *pack));
  return PetscFree(*pack);
}

/* The GPU's order of rows is the host's: plainbuild.cpp looks at that */
static GallopCSR onhost;

PetscErrorCode EVCHYBRowsNeed(const EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  *fits = PETSC_TRUE;
  return rows->memory ? PETSC_SUCCESS : EVCHYBRowsSort_Host(&ev->options, &onhost, PETSC_TRUE, rows);
}

PetscErrorCode EVCHYBLongRowsNeed(const EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  return EVCHYBRowsNeed(ev, csr, rows, fits);
}

PetscErrorCode EVCHYBPlainRestore_Device(const EVCHYBPlain *, const PetscInt[], PetscInt[], PetscScalar[])
{
  emu::Fail("packed storage is restored as plain");
}

/* ---- matrices ---- */

struct Case {
  const char                                   *name;
  PetscInt                                      m, n;
  std::function<int(PetscInt)>                  length;
  std::function<PetscInt(PetscInt, int, int)>   column; /* of row r, entry k, of so many */
  std::function<PetscReal(PetscInt, int)>       value;
  EVCHYBStorage                                 storage;
  bool                                          packed, sorted;
  int                                           waits; /* at most, until it is stored or is not to be packed */
};

static PetscCount reals; /* places for values without imaginary parts */

/* What is stored by the choice; none for plain storage */
static EVCHYBPack *Store(const EVCHYB *ev, const GallopCSR *csr, const EVCHYBRows *rows, EVCHYBChoice *choice)
{
  EVCHYBPackOrder order = {};
  EVCHYBPack     *pack  = choice->pack;
  PetscBool       done;

  if (!pack) return NULL;
  order.num     = csr->m;
  order.stride  = choice->stride;
  order.longest = ev->options.maxell;
  order.piece   = EVCHYB_PIECE;
  if (choice->sorted) {
    order.perm = rows->all;
    order.num  = rows->nempty + rows->nshort;
  }
  CheckCall(EVCHYBCutRows(csr, rows, &order, &done));
  if (done) CheckCall(WHERE(csr->memtype, EVCHYBPackFinish, pack, csr, &order, choice->survey, 0, &done));
  CheckCall(EVCHYBFreePieces(csr, &order));
  if (!done) CheckCall(EVCHYBPackDestroy(&pack));
  return pack;
}

/* What the GPU has stored, where it may be read, and no byte more */
static void TestRestorePacked(const char *name, const EVCHYBPack &stored, const GallopCSR &csr)
{
  EVCHYB       ev     = {};
  EVCHYBPack   pack   = stored;
  EVCHYBPacked packed = {};

  pack.slice  = (EVCHYBPackSlice *)emu::Guarded(stored.slice, stored.nslice * sizeof(*stored.slice), 16);
  pack.line   = (EVCHYBPackLine *)emu::Guarded(stored.line, stored.nline * sizeof(*stored.line), 8);
  pack.stream = (unsigned char *)emu::Guarded(stored.stream, stored.nstream * EVCHYB_PACK_UNIT, EVCHYB_PACK_UNIT);
  pack.value  = (unsigned char *)emu::Guarded(stored.value, stored.nvalue * EVCHYB_PACK_UNIT, EVCHYB_PACK_UNIT);
  pack.dict   = (PetscReal *)emu::Guarded(stored.dict, stored.ndict * sizeof(*stored.dict), sizeof(PetscReal));
  packed.pack = &pack;
  ev.packed   = &packed;
  ev.m  = csr.m;
  ev.nz = csr.nz;
  TestRestore(name, ev, csr);
}

#define SAME(what) \
  if (h->what != d->what) emu::Fail("%s: " #what " is %ld, not %ld", c.name, (long)d->what, (long)h->what)
#define SAMEBYTES(what, bytes) \
  if ((bytes) > 0 && memcmp(h->what, d->what, bytes)) emu::Fail("%s: " #what " differs", c.name)

static void Test(const Case &c)
{
  std::vector<PetscInt>    i{0}, j;
  std::vector<PetscScalar> a;
  EVCHYB                   ev   = {};
  EVCHYBRows               rows = {};
  EVCHYBChoice             chosen;
  EVCHYBPack              *h;

  for (PetscInt r = 0; r < c.m; r++) {
    const int length = c.length(r);

    for (int k = 0; k < length; k++) {
      const PetscInt column = c.column(r, k, length);

      if (column < 0 || column >= c.n) continue;
      j.push_back(column);
#if PetscDefined(USE_COMPLEX)
      a.push_back(PetscCMPLX(c.value(r, k), c.packed && r / 640 % 2 ? 0 : c.value(r, length - 1 - k))); /* some slices that are packed have no imaginary parts */
#else
      a.push_back(c.value(r, k));
#endif
    }
    i.push_back((PetscInt)j.size());
  }

  onhost         = {};
  onhost.memtype = PETSC_MEMTYPE_HOST;
  onhost.m       = c.m;
  onhost.n       = c.n;
  onhost.nz      = (PetscCount)j.size();
  onhost.i       = emu::Guarded(i);
  onhost.j       = emu::Guarded(j);
  onhost.a       = emu::Guarded(a);
  onhost.host_i  = onhost.i;

  GallopCSR ongpu = onhost;

  ongpu.memtype      = PETSC_MEMTYPE_CUDA;
  ev.m               = c.m;
  ev.n               = c.n;
  ev.nz              = onhost.nz;
  ev.processors      = 1;
  ev.options.window  = 4096;
  ev.options.maxell  = 128;
  ev.options.storage = c.storage;
  EVCHYBRowsCount(128, c.m, onhost.i, &rows);
  CheckCall(EVCHYBRowsSort_Host(&ev.options, &onhost, PETSC_TRUE, &rows));
  CheckCall(EVCHYBChoose(&ev, &onhost, NULL, &rows, &chosen));
  if ((chosen.pack != NULL) != c.packed || (bool)chosen.sorted != c.sorted) emu::Fail("%s: the host chooses otherwise than the test wants: packed %d, sorted %d", c.name, chosen.pack != NULL, (int)chosen.sorted);
  h = Store(&ev, &onhost, &rows, &chosen);
  CheckCall(EVCHYBRowsFree_Host(&rows));

  for (int without = 0; without < 7; without++) { /* the first time there is memory for all requests, then the first, the second, and so on fails */
    EVCHYBChoice     other;
    EVCHYBPackTerms  terms;
    EVCHYBPackSurvey survey = {};
    EVCHYBPack      *d;

    failing = without;
    waits = requests = freed = 0;
    allocations.clear();
    emu::ClearCanaries();
    emu::resident = 1 + (int)(choice() % 5);
    rows          = {};
    EVCHYBPackGetTerms(&ev, &terms);
    if (EVCHYBTriesPacked(&ev, &ongpu)) CheckCall(EVCHYBPackSurvey_Device(&ongpu, &terms, &survey));
    EVCHYBRowsCount(128, c.m, onhost.i, &rows);
    int64_t longest = 0;
    for (PetscInt r = 0; r < c.m; r++) {
      const PetscInt length = onhost.i[r + 1] - onhost.i[r];

      if (length <= 128) longest = PetscMax(longest, (int64_t)length);
    }
    if (survey.memory && survey.rows.longest != longest) emu::Fail("%s: the longest short row has %ld entries, not %ld", c.name, (long)survey.rows.longest, (long)longest);
    if (survey.memory && (survey.rows.nempty != rows.nempty || survey.rows.nlong != rows.nlong)) emu::Fail("%s: %ld empty and %ld long rows, not %ld and %ld", c.name, (long)survey.rows.nempty, (long)survey.rows.nlong, (long)rows.nempty, (long)rows.nlong);
    CheckCall(EVCHYBChoose(&ev, &ongpu, survey.memory ? &survey : NULL, &rows, &other));
    d = Store(&ev, &ongpu, &rows, &other);
    emu::CheckCanaries("after a build");
    if (!without) {
      if ((d != NULL) != (h != NULL) || other.sorted != chosen.sorted || other.stride != chosen.stride)
        emu::Fail("%s: the GPU's choice: packed %d, sorted %d, stride %ld; the host's %d, %d, %ld", c.name, d != NULL, (int)other.sorted, (long)other.stride, h != NULL, (int)chosen.sorted, (long)chosen.stride);
      if (waits > c.waits) emu::Fail("%s: the host waits %d times", c.name, waits);
    }
    if (d && h && d->ndict == h->ndict && other.sorted == chosen.sorted && other.stride == chosen.stride) { /* without a dictionary there may be another choice */
      reals += h->figures.slots[EVCHYB_PACK_REAL];
      SAME(nslice);
      SAME(npiece);
      SAME(ndict);
      SAME(nz);
      SAME(nlong);
      SAME(nline);
      SAME(nstream);
      SAME(nvalue);
      SAME(bytes);
      SAMEBYTES(figures.lines, sizeof(h->figures.lines));
      SAMEBYTES(figures.slots, sizeof(h->figures.slots));
      SAME(figures.strided);
      SAME(figures.shared);
      SAMEBYTES(dict, h->ndict * sizeof(PetscReal));
      SAMEBYTES(line, h->nline * sizeof(EVCHYBPackLine));
      SAMEBYTES(value, h->nvalue * EVCHYB_PACK_UNIT);
      for (PetscInt s = 0; s < h->nslice; s++) {
        SAME(slice[s].line);
        SAME(slice[s].value);
        SAME(slice[s].mask);
        SAME(slice[s].rows.base);
        SAME(slice[s].rows.info);
        SAME(slice[s].width);
        SAME(slice[s].values);
        SAME(slice[s].last);
        SAME(slice[s].at);
      }
    } else if (!without && d) emu::Fail("%s: a dictionary of %ld numbers, not %ld", c.name, (long)d->ndict, (long)h->ndict);
    if (d) TestRestorePacked(c.name, *d, onhost);
    CheckCall(EVCHYBPackDestroy(&d));
    CheckCall(EVCHYBPackSurveyFree_Device(&survey));
    CheckCall(EVCHYBRowsFree_Host(&rows));
    if (freed != (int)allocations.size()) emu::Fail("%s: without request %d, %d of %d pieces of memory are freed", c.name, without, freed, (int)allocations.size());
    for (auto p : allocations) free(p);
    if (requests < failing || (!full && choice() % 3)) break;
  }
  CheckCall(EVCHYBPackDestroy(&h));
}

int main(int argc, char **argv)
{
  auto const constant = [](int n) { return [=](PetscInt) { return n; }; };
  auto const stencil  = [](PetscInt n) { return [=](PetscInt r, int k, int) { static const int by[] = {-2, -1, 0, 1, 2}; return r + (by[k] < -1 ? -n : by[k] > 1 ? n : by[k]); }; };
  auto const near     = [](PetscInt r, int k, int) { return (PetscInt)(r / 1000 * 1000 + 7919 * (PetscInt64)r % 997 + 3 * k); };
  auto const far      = [](PetscInt m) { return [=](PetscInt r, int k, int n) { return (PetscInt)(k * (m / n) + (uint32_t)(2654435761u * (uint32_t)(r * n + k + 1)) % (uint32_t)(m / n)); }; };
  auto const few      = [](PetscInt r, int k) { return (PetscReal)(r * 5 + k) / 7 - (PetscReal)((r * 5 + k) / 3) / 7; };
  auto const two      = [](PetscInt, int k) { return k == 2 ? (PetscReal)4 : (PetscReal)-1; };
  auto const many     = [](PetscInt r, int k) { return 1 / (PetscReal)(7 + r * 61 + k); };
  auto const singles  = [](PetscInt r, int k) { return (PetscReal)(1 / (float)(7 + r * 61 + k)); };
  auto const odd      = [=](PetscInt r, int k) { return k == 1 ? -(PetscReal)0 : k == 2 ? std::copysign((PetscReal)NAN, (PetscReal)(r % 2 - 1)) : k == 3 ? PETSC_INFINITY : many(r, k); };
  auto const fewodd   = [=](PetscInt, int k) { return odd(7, k); };
  auto const turned   = [=](PetscInt r, int k, int n) { return stencil(50)(r, r / 640 % 2 ? (int)(k + r) % n : k, n); }; /* some slices have such rows, others none */
  auto const uneven   = [](PetscInt r) { return (uint32_t)(2654435761u * (uint32_t)(r + 1)) >> 29 ? 3 : 60; };
  const int  looked   = sizeof(PetscReal) < 8 ? 3 : 2; /* values are a smaller part of the bytes in single precision, so sorted rows could win, and a sample of them is waited for */
  const Case cases[]  = {
    {"5 points",                     2500, 2500,    constant(5),                                               stencil(50),                                       two,     EVCHYB_AUTO,   true,  false, 2},
    {"5 points, other values",       2500, 2500,    constant(5),                                               stencil(50),                                       many,    EVCHYB_AUTO,   true,  false, 1},
    {"5 points, single precision",   2500, 2500,    constant(5),                                               stencil(50),                                       singles, EVCHYB_AUTO,   true,  false, 1},
    {"5 points, too few entries",    1200, 1200,    constant(5),                                               stencil(50),                                       two,     EVCHYB_AUTO,   false, false, 0},
    {"too few rows",                 300,  1000,    constant(60),                                              [](PetscInt r, int k, int) { return r + k; },      two,     EVCHYB_AUTO,   false, false, 1},
    {"most rows empty",              5000, 5000,    [](PetscInt r) { return r < 2000 ? 6 : 0; },               [](PetscInt r, int k, int) { return r + k; },      two,     EVCHYB_AUTO,   false, false, 1},
    {"columns near each other",      2000, 3100,    constant(6),                                               near,                                              many,    EVCHYB_AUTO,   true,  false, looked},
    {"columns anywhere",             2000, 2000000, constant(6),                                               far(2000000),                                      many,    EVCHYB_AUTO,   false, false, 2},
    {"short and long ones among them", 2000, 2200,  uneven,                                                    [](PetscInt r, int k, int) { return r + k; },      two,     EVCHYB_AUTO,   false, false, 1},
    {"columns anywhere, uneven rows", 2000, 8000000, [](PetscInt r) { return r % 7 ? 15 : 60; },               far(8000000),                                      many,    EVCHYB_AUTO,   false, false, 1},
    {"columns anywhere, long rows",  2000, 2000000, [](PetscInt r) { return r % 20 == 7 ? 1000 : 8; },         far(2000000),                                      many,    EVCHYB_AUTO,   false, false, 1},
    {"columns anywhere, asked for",  700,  2000000, constant(6),                                               far(2000000),                                      few,     EVCHYB_PACKED, true,  false, 3},
    {"rows that are to be sorted",   2000, 2200,    uneven,                                                    near,                                              many,    EVCHYB_PACKED, true,  true,  3},
    {"long rows",                    1500, 9000,    [](PetscInt r) { return r % 300 == 7 ? 5000 : 8; },        [](PetscInt r, int k, int) { return r + k; },      few,     EVCHYB_AUTO,   true,  false, 4},
    {"long rows, asked for",         700,  9000,    [](PetscInt r) { return r % 300 == 7 ? 5000 : 8; },        [](PetscInt r, int k, int) { return r + k; },      many,    EVCHYB_PACKED, true,  false, 4},
    {"more values than one block sorts", 3000, 3000, constant(5),                                              stencil(50),                                       [](PetscInt r, int k) { return 1 / (PetscReal)(3 + (r * 5 + k) % 1500); }, EVCHYB_AUTO, true, false, 1},
    {"rows not sorted by columns",   2500, 2500,    constant(5),                                               turned,                                            fewodd,  EVCHYB_PACKED, true,  false, 3},
    {"rows of up to 12 entries",     2500, 2600,    [](PetscInt r) { return r % 7 ? 12 : 9; },                 [](PetscInt r, int k, int) { return r + k * k; },  odd,     EVCHYB_PACKED, true,  false, 3},
    {"one row",                      1,    5,       constant(5),                                               [](PetscInt r, int k, int) { return r + k; },      two,     EVCHYB_PACKED, true,  false, 3},
  };
  Begin(argc, argv);
  for (auto &c : cases) Test(c);
  if (full) { /* of so many values some are looked at first */
    Test({"many equal values", 110000, 110000, constant(5), stencil(330), two, EVCHYB_AUTO, true, false, 1});
    Test({"many values", 110000, 110000, constant(5), stencil(330), many, EVCHYB_AUTO, true, false, 1});
  }
  if (PetscDefined(USE_COMPLEX) && !reals) emu::Fail("no slice has only values without imaginary parts");
  return End();
}
