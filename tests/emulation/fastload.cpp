/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD's builds, its refresh and its products: src/mat/impls/fastload/, and what of common/ they call, beside the host's */
#include "matrices.h"
#include "sort.h"
#include <set>

#define Threads ColumnsThreads
#include "mat/impls/common/columns.cu"
#undef Threads
#define Threads       SortThreads
#define Workspace     SortWorkspace
#define LongestKernel SortLongestKernel
#include "mat/impls/common/columnssort.cu"
#undef Threads
#undef Workspace
#undef LongestKernel
#include "mat/impls/common/longrows.c"
#include "mat/impls/fastload/fastloadworkspace.cu"
#include "mat/impls/fastload/fastloadcount.cu"
#include "mat/impls/fastload/fastloadplan.cu"
#include "mat/impls/fastload/fastloadfill.cu"
#include "mat/impls/fastload/fastloadgroups.cu"
#include "mat/impls/fastload/fastloadshort.cu"
#include "mat/impls/fastload/fastloaddevice.cu"
#define __noinline__ /* nvcc's; headers that have gcc's have been read */
#include "mat/impls/fastload/fastloadproduct.cu"
#include "mat/impls/fastload/fastloaddeterministic.cu"
#include "mat/impls/fastload/fastloadhostbuild.c"
#define Build HostBuild
#include "mat/impls/fastload/fastloadhost.c"
#undef Build

/* ---- what the library has elsewhere ---- */

static std::set<void *> pieces;   /* of memory of the GPU */
static int              requests; /* for it, until there is no room; 0 for no end */

static void *Take(size_t bytes)
{
  void *p;

  if (requests && !--requests) {
    requests = 1;
    return NULL;
  }
  p = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  memset(p, 0x5B, bytes);
  pieces.insert(p);
  return p;
}

static void Give(void *p)
{
  if (!p) return;
  emu::Sync();
  emu::CheckCanaries("before memory is freed");
  emu::ClearCanaries();
  if (!pieces.erase(p)) emu::Fail("memory is freed that was not taken");
  free(p);
}

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 2;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **p)
{
  *p = Take(bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceFree(void *p)
{
  Give(p);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  *p = Take(bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceFree(void *p)
{
  Give(p);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  return (PetscErrorCode)cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, NULL);
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  return (PetscErrorCode)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, NULL);
}

PetscErrorCode GallopDeviceZero(void *p, size_t bytes)
{
  return (PetscErrorCode)cudaMemsetAsync(p, 0, bytes, NULL);
}

PetscErrorCode GallopDeviceCopyOut(void *to, const void *from, size_t bytes)
{
  emu::Sync();
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCopyToHost(void *to, PetscMemType, const void *from, size_t bytes)
{
  return GallopDeviceCopyOut(to, from, bytes);
}

PetscErrorCode GallopCSRGetHostI(const GallopCSR *csr, const PetscInt **i)
{
  *i = csr->i;
  return PETSC_SUCCESS;
}

/* PETSc's, which is compiled for one type of PetscInt */
/* ---- the test ---- */

struct Setting {
  const char     *name;
  FastLoadOptions options;
};

static const Setting settings[] = {
  {"the defaults",                                   {-1, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                        },
  {"no limit",                                       {0, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                         },
  {"height 1",                                       {1, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                         },
  {"height 2, long rows of 7",                       {2, 0, 7, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                         },
  {"height 4, long rows of 20",                      {4, 0, 20, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                        },
  {"height 32",                                      {32, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                        },
  {"deterministic",                                  {-1, 0, 0, PETSC_TRUE, PETSC_TRUE, PETSC_FALSE}                         },
  {"x is sorted",                                    {-1, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE}                         },
  {"x is sorted, height 1, long rows of 7",          {1, 0, 7, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE}                          },
  {"x is sorted, deterministic",                     {-1, 0, 0, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE}                          },
  {"x is sorted, steps of all columns, height 4",    {4, 0, 0, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE}                         },
  {"segment sums alone",                             {-1, 0, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_SEGMENTS}},
  {"no sums, height 2, long rows of 7",              {2, 0, 7, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_NONE}     },
  {"no sums, steps of all columns, height 4",        {4, 0, 0, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, FASTLOAD_SUMS_NONE}     },
  {"windows of 32",                                  {32, 32, 0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                       },
  {"windows of 64, height 4, long rows of 5",        {4, 64, 5, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}                        },
  {"steps of all columns",                           {0, 0, 0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE}                        },
  {"steps of all columns, height 4, long rows of 3", {4, 0, 3, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE}                        },
};

#define SAME_NUMBER(what) \
  if (h->what != d->what) emu::Fail("%s: " #what " is %ld, not %ld", name, (long)d->what, (long)h->what);
#define SAME_ARRAY(what, number) \
  for (PetscCount k = 0; k < (PetscCount)(number); k++) \
    if (h->what[k] != d->what[k]) emu::Fail("%s: " #what "[%ld] of %ld", name, (long)k, (long)(number));

static void Compare(const char *name, const FastLoad *h, const FastLoad *d)
{
  std::vector<bool> seen(h->taskNum);

  SAME_NUMBER(ncols)
  SAME_NUMBER(nz)
  SAME_NUMBER(blknz)
  SAME_NUMBER(blkNum)
  SAME_NUMBER(lineNum)
  SAME_NUMBER(taskNum)
  SAME_NUMBER(longNum)
  SAME_NUMBER(single)
  SAME_NUMBER(zeros)
  SAME_NUMBER(height)
  SAME_NUMBER(indexed)
  SAME_ARRAY(perm, h->ncols)
  SAME_ARRAY(blkPtr, h->blkNum + 1)
  SAME_ARRAY(blkColIdx, h->blkNum)
  SAME_ARRAY(blkHeight, h->blkNum)
  SAME_ARRAY(blkLength, h->blkNum)
  SAME_ARRAY(blkLine, h->blkNum + 1)
  SAME_ARRAY(taskBlk, h->taskNum + 1)
  SAME_ARRAY(lineRow, h->lineNum)
  SAME_ARRAY(blkClass, h->blkNum)
  SAME_ARRAY(blkRow, h->blkNum + 1)
  SAME_ARRAY(rowIdx, h->blkRow[h->blkNum])
  SAME_ARRAY(value, h->nz)
  SAME_ARRAY(longRow, h->longNum)
  SAME_ARRAY(longPtr, h->longNum + 1)
  SAME_ARRAY(longCol, h->nz - h->blknz)
  if (!h->csrIdx != !d->csrIdx) emu::Fail("%s: csrIdx", name);
  if (h->csrIdx) SAME_ARRAY(csrIdx, h->blknz)
  for (PetscInt k = 0; k < d->taskNum; k++) { /* each task once, those of a part of a large result after each other */
    const FastLoadTask t = d->tasks[k];
    const PetscInt     b = t.blk, task = (PetscInt)(std::lower_bound(h->taskBlk, h->taskBlk + h->taskNum, b) - h->taskBlk), part = h->lineRow[h->blkLine[b]] / TaskPart;
    bool               follow = true;

    if (task == h->taskNum || h->taskBlk[task] != b || seen[task]) emu::Fail("%s: task %ld", name, (long)k);
    seen[task] = true;
    for (int l = 0; l < h->blkLength[b]; l++) follow = follow && h->perm[h->blkColIdx[b] + l] == h->perm[h->blkColIdx[b]] + l;
    if (t.ptr != h->blkPtr[b] || t.row * FASTLOAD_ALIGN != h->blkRow[b] || t.line != h->blkLine[b] || t.height != h->blkHeight[b] || t.end != h->taskBlk[task + 1] || t.length != h->blkLength[b] || t.kind != h->blkClass[b] || t.follow != follow || t.colidx != (follow ? h->perm[h->blkColIdx[b]] : h->blkColIdx[b]))
      emu::Fail("%s: what task %ld tells", name, (long)k);
    if (k && FastLoadIsLarge(h->m) && part < h->lineRow[h->blkLine[d->tasks[k - 1].blk]] / TaskPart) emu::Fail("%s: task %ld is not in order", name, (long)k);
    if (!FastLoadIsLarge(h->m) && task != k) emu::Fail("%s: task %ld has moved", name, (long)k);
  }
}

/* Whether FastLoadBuildShort() shall build */
static bool IsShort(const GallopCSR *csr, const FastLoadOptions *o)
{
  const FastLoadOptions chosen = FastLoadChoose(o, csr, 0);
  std::vector<int>      count(csr->n);
  int                   most   = 0;
  bool                  sorted = true;

  for (PetscInt r = 0; r < csr->m; r++) {
    const PetscInt length = csr->i[r + 1] - csr->i[r];

    if (length > chosen.long_row) continue;
    if (length > 8192) most = 1000;
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      most   = std::max(most, ++count[csr->j[k]]);
      sorted = sorted && (k == csr->i[r] || csr->j[k] > csr->j[k - 1]);
    }
  }
  return chosen.groups && !chosen.window && most <= Longest && (sorted || chosen.deterministic);
}

static void Choose()
{
  emu::resident = 1 + (int)(choice() % 5);
  emu::preempt  = choice() % 2 ? 3 : 0;
  emu::async    = choice() % 2;
}

static PetscErrorCode BuildBy(int way, const FastLoadOptions *o, const GallopCSR *csr, FastLoad **built, PetscBool *areshort)
{
  void *data = NULL;

  *built    = NULL;
  *areshort = PETSC_TRUE;
  if (way == 0) return FastLoadBuildShort(o, csr, 0, built, areshort);
  if (way == 1) return BuildLong(o, csr, 0, built);
  PetscCall(FastLoadDevice.build(o, csr, 0, &data));
  *built = (FastLoad *)data;
  return PETSC_SUCCESS;
}

static std::vector<PetscScalar> Values(size_t nz, int factor)
{
  std::vector<PetscScalar> values(nz);

  for (size_t k = 0; k < nz; k++) values[k] = (PetscReal)(k % 100000 + 0.5) * factor; /* all different, also in single precision */
  return values;
}

/* alpha A x + beta y, with terms that rounding leaves alone: each sum is the same in any order */
static void TestProduct(const char *name, const GallopCSR *csr, const FastLoadOptions *o, FastLoad *d, bool adds)
{
  const PetscScalar        alpha = -1, beta = adds ? 2 : 0;
  std::vector<PetscScalar> x(csr->n), y(csr->m), a(csr->nz), expected(csr->m);
  GallopCSR                small = *csr;

  for (size_t k = 0; k < a.size(); k++) a[k] = (PetscReal)(1 + k % 7);
  for (size_t k = 0; k < x.size(); k++) x[k] = (PetscReal)(1 + choice() % 9);
  for (size_t k = 0; k < y.size(); k++) y[k] = (PetscReal)(choice() % 9);
  small.a = emu::Guarded(a);
  CheckCall(FastLoadRefresh_Device(d, &small, 0, NULL));
  for (PetscInt r = 0; r < csr->m; r++) {
    expected[r] = beta * y[r];
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) expected[r] += alpha * a[k] * x[csr->j[k]];
  }
  PetscScalar *const  z       = emu::Guarded(std::vector<PetscScalar>(csr->m, PetscScalar(77)));
  const GallopProduct product = {&alpha, &beta, emu::Guarded(x), emu::Guarded(y), z, NULL};

  CheckCall(FastLoadApply_Device(d, &product));
  emu::Sync();
  emu::CheckCanaries(name);
  for (PetscInt r = 0; r < csr->m; r++)
    if (z[r] != expected[r]) emu::Fail("%s: row %ld of a product", name, (long)r);
  if (!d->sortedX != !(o->sorted_x && !o->deterministic)) emu::Fail("%s: memory for sorted x", name);
  for (PetscInt k = 0; d->sortedX && k < d->ncols; k++)
    if (d->sortedX[k] != x[d->perm[k]]) emu::Fail("%s: sorted x, %ld of %ld", name, (long)k, (long)d->ncols);
}

static void Test(const char *what, const Matrix &A, const Setting &s)
{
  const std::string named = std::string(what) + ", " + s.name;
  const char       *name  = named.c_str();
  const PetscCount  nz    = (PetscCount)A.j.size();
  const GallopCSR   csr   = {A.m, A.n, nz, emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(Values(nz, 1))};
  GallopCSR         after = csr;
  FastLoad         *h, *d;
  void             *data;
  PetscBool         areshort;
  const bool        shall    = IsShort(&csr, &s.options);
  PetscInt          nonempty = 0;

  for (PetscInt r = 0; r < A.m; r++) nonempty += A.i[r + 1] > A.i[r];
  after.a = emu::Guarded(Values(nz, -3));
  CheckCall(FastLoadBuild_Host(FASTLOAD_LENGTH, &s.options, &csr, 0, &h));
  for (int way = 0; way < 3; way++) {
    if (way == 2 && !full) continue; /* one of the two before */
    if (way == 1 && !full && shall && choice() % 3) continue;
    Choose();
    CheckCall(BuildBy(way, &s.options, &csr, &d, &areshort));
    emu::Sync();
    emu::CheckCanaries(name);
    if (way == 0 && (bool)areshort != shall) emu::Fail("%s: columns are %s", name, areshort ? "short" : "long");
    if (!areshort) { /* memory for entries may be there, for the other build */
      data = d;
      if (d) CheckCall(FastLoadDestroy_Device(&data));
      if (!pieces.empty()) emu::Fail("%s: %zu pieces of memory are left where nothing is built", name, pieces.size());
      continue;
    }
    if (!d) emu::Fail("%s: nothing is built", name);
    Compare(name, h, d);
    if (d->rows >= 0 && d->rows != nonempty) emu::Fail("%s: %ld rows have entries, not %ld", name, (long)d->rows, (long)nonempty);
    if (&s == settings && strstr(what, "stencil")) { /* a refresh has to search for few entries */
      const PetscInt search = (PetscInt)std::count(d->lineAt, d->lineAt + d->lineNum, FASTLOAD_SEARCH);

      if (2 * search > d->lineNum) emu::Fail("%s: entries of %ld lines of %ld would be searched for", name, (long)search, (long)d->lineNum);
    }
    if (way == 0 && d->rows < 0) emu::Fail("%s: rows with entries have not been counted", name);
    CheckCall(FastLoadRefresh_Device(d, &after, 0, NULL));
    emu::Sync();
    CheckCall(FastLoadRefresh_Host(h, &after, 0, NULL));
    Compare(name, h, d);
    CheckCall(FastLoadRefresh_Host(h, &csr, 0, NULL));
    if (full || choice() % 2) TestProduct(name, &csr, &s.options, d, choice() % 2);
    data = d;
    CheckCall(FastLoadDestroy_Device(&data));
    if (!pieces.empty()) emu::Fail("%s: %zu pieces of memory are left", name, pieces.size());
  }
  CheckCall(FastLoadFree_Host(h));
}

/* No room for one after the other of the pieces of memory */
static void TestRoom(const char *name, const Matrix &A, const FastLoadOptions &o)
{
  const PetscCount nz  = (PetscCount)A.j.size();
  const GallopCSR  csr = {A.m, A.n, nz, emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(Values(nz, 1))};

  for (int way = 0; way < 2; way++) {
    FastLoad *d = NULL;

    for (int n = 1; !d; n++) {
      PetscBool areshort;
      void     *data;

      if (n > 20) emu::Fail("%s: nothing is built", name);
      Choose();
      requests = n;
      CheckCall(BuildBy(way, &o, &csr, &d, &areshort));
      if (!areshort) emu::Fail("%s: columns are long", name);
      requests = 0;
      emu::Sync();
      if (!d) {
        if (!pieces.empty()) emu::Fail("%s: %zu pieces of memory are left without room for request %d", name, pieces.size(), n);
        continue;
      }
      data = d;
      CheckCall(FastLoadDestroy_Device(&data));
    }
  }
}

static void TestAll(const char *name, const Matrix &A)
{
  if (A.j.empty()) return; /* the base does without a format */
  for (auto &s : settings)
    if (full || &s == settings || choice() % 3 == 0) Test(name, A, s);
}

/* Rows as given, over and over */
static Matrix Repeated(PetscInt m, PetscInt n, const std::vector<PetscInt> &row)
{
  std::vector<std::vector<PetscInt>> rows(m);

  for (auto &r : rows) r = row;
  return FromRows(n, rows);
}

/* As an interpolation: each row has the columns around a place of a coarser grid */
static Matrix Interpolation(PetscInt n)
{
  std::vector<std::vector<PetscInt>> rows(2 * n - 1);

  for (PetscInt r = 0; r < 2 * n - 1; r++) {
    rows[r].push_back(r / 2);
    if (r % 2) rows[r].push_back(r / 2 + 1);
  }
  return FromRows(n, rows);
}

int main(int argc, char **argv)
{
  auto to    = [](int most) { return [=](PetscInt) { return (int)(choice() % most); }; };
  auto exact = [](int length) { return [=](PetscInt) { return length; }; };

  Begin(argc, argv);
  TestAll("one entry", Rows(1, 1, exact(1)));
  TestAll("one column of 77", Columns(77, 1, exact(77)));
  TestAll("one column of 128", Columns(300, 1, exact(128)));
  TestAll("one column of 129", Columns(300, 1, exact(129)));
  TestAll("32 columns of 3", Columns(50, 32, exact(3)));
  TestAll("33 columns of 3", Columns(50, 33, exact(3)));
  TestAll("31 columns of 3", Columns(50, 31, exact(3)));
  TestAll("a stencil", Stencil(41));
  TestAll("a large stencil", Stencil(full ? 101 : 70));
  TestAll("an interpolation", Interpolation(300));
  TestAll("random", Rows(503, 497, to(12)));
  TestAll("random, unsorted", Rows(403, 497, to(12), false));
  TestAll("a column named twice", Repeated(40, 50, {3, 7, 7, 20}));
  TestAll("wide", Rows(37, 3001, to(50)));
  TestAll("tall and large", Columns(6001, 37, to(129)));
  TestAll("dense", Columns(128, full ? 215 : 70, exact(128)));
  TestAll("dense, equal rows", Repeated(full ? 100 : 20, 90, [] {
            std::vector<PetscInt> row(90);
            for (PetscInt c = 0; c < 90; c++) row[c] = c;
            return row;
          }()));
  TestAll("long columns among empty ones", Columns(1000, 1501, [](PetscInt c) { return c >= 500 && c < 550 ? 128 : (int)(choice() % 2); }));
  TestAll("one column too long", Columns(900, 700, [](PetscInt c) { return c == 699 ? 129 : (int)(c % 3); }));
  TestAll("two lengths", Columns(400, 900, [](PetscInt c) { return c % 2 ? 3 : 9; }));
  TestAll("all lengths", Columns(300, 600, [](PetscInt c) { return (int)(c % 100); }));
  TestAll("a row of 8193", Rows(3, 9000, [](PetscInt r) { return r == 1 ? 8193 : 5; }));
  TestAll("some long rows", Rows(64, 400, [](PetscInt r) { return r % 9 == 0 ? 300 : 2; }));
  TestAll("only long rows", Rows(9, 400, exact(30)));
  for (int t = 0; t < (full ? 25 : 4); t++) {
    const PetscInt m = 1 + choice() % 900, n = 1 + choice() % 900;
    const int      most = 1 + (int)(choice() % 60);

    TestAll("random columns", Columns(m, n, [=](PetscInt) { return (int)(choice() % 4 ? choice() % 3 : choice() % most); }));
  }
  TestRoom("no room", Stencil(20), settings[0].options);
  TestRoom("no room, long rows", Rows(64, 400, [](PetscInt r) { return r % 9 == 0 ? 300 : 2; }), settings[3].options);
  TestRoom("no room, a large result", Columns(6001, 37, to(50)), settings[0].options);
  return End();
}
