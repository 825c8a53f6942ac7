/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting a matrix by columns, src/mat/impls/common/columns.cu, beside a sort on the host; and transposing it, src/mat/impls/base/galloptransposedevice.cu */
#include "matrices.h"
#include "mat/impls/common/columns.cu"
#define Threads TransposeThreads
#include "mat/impls/base/galloptransposedevice.cu"
#undef Threads

/* ---- what the library has elsewhere ---- */

static int   sortedbycub;
static void *workspace;

PetscErrorCode GallopColumnsSortByCUB(const GallopCSR *, PetscInt, PetscBool, GallopColumns *c, cudaStream_t)
{
  sortedbycub++;
  *c = {};
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 2;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **p)
{
  emu::ClearCanaries();
  workspace = *p = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  memset(*p, 0x5B, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceFree(void *p)
{
  emu::CheckCanaries("before a workspace is freed");
  emu::ClearCanaries();
  free(p);
  workspace = NULL;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyOut(void *to, const void *from, size_t bytes)
{
  emu::Sync();
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

/* ---- the test ---- */

static const size_t MostOfColumn = 128, MostOfRow = 8192; /* with more CUB sorts */

/* What a sort leaves out and finds */
struct Wanted {
  std::vector<std::vector<std::pair<PetscInt, PetscInt>>> columns; /* row and entry */
  std::vector<PetscInt>                                   longrows;
  bool                                                    unsorted = false, cub = false;
  size_t                                                  longest = 0;
};

static Wanted SortOnHost(const Matrix &A, PetscInt limit)
{
  Wanted w;

  w.columns.resize(A.n);
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt length = A.i[r + 1] - A.i[r];

    if (limit && length > limit) {
      w.longrows.push_back(r);
      continue;
    }
    w.cub = w.cub || (size_t)length > MostOfRow;
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      w.columns[A.j[k]].push_back({r, k});
      w.unsorted = w.unsorted || (k > A.i[r] && A.j[k] <= A.j[k - 1]);
    }
  }
  for (auto &column : w.columns) w.longest = std::max(w.longest, column.size());
  w.cub = w.cub || w.longest > MostOfColumn;
  return w;
}

static void Compare(const char *name, const Matrix &A, const Wanted &w, const GallopColumns &c, PetscInt limit, bool withvalues)
{
  PetscInt at = 0;

  if (c.found.longest != (int)w.longest) emu::Fail("%s: the longest column has %d entries, not %zu", name, (int)c.found.longest, w.longest);
  if (limit && (bool)c.found.unsorted != w.unsorted) emu::Fail("%s: unsorted rows %d, not %d", name, (int)c.found.unsorted, w.unsorted);
  if (c.found.nlong != (int)w.longrows.size()) emu::Fail("%s: %d long rows, not %zu", name, (int)c.found.nlong, w.longrows.size());
  if (limit) {
    std::vector<PetscInt> longrows(c.longrows, c.longrows + c.found.nlong);

    std::sort(longrows.begin(), longrows.end());
    if (longrows != w.longrows) emu::Fail("%s: other long rows", name);
  }
  if (withvalues ? c.entry != NULL : c.values != NULL) emu::Fail("%s: entries and values", name);
  for (PetscInt k = 0; k < A.n; k++) {
    if (c.begin[k] != at) emu::Fail("%s: column %ld begins at %ld, not %ld", name, (long)k, (long)c.begin[k], (long)at);
    for (auto &[row, entry] : w.columns[k]) {
      if (c.row[at] != row) emu::Fail("%s: row[%ld] is %ld, not %ld", name, (long)at, (long)c.row[at], (long)row);
      if (withvalues ? c.values[at] != (PetscScalar)(PetscReal)(entry + 0.5) : c.entry[at] != entry) emu::Fail("%s: %s[%ld]", name, withvalues ? "values" : "entry", (long)at);
      at++;
    }
  }
  if (c.begin[A.n] != at) emu::Fail("%s: columns end at %ld, not %ld", name, (long)c.begin[A.n], (long)at);
}

static void Sort(const char *name, const Matrix &A, PetscInt limit, bool withvalues, bool together)
{
  const PetscCount         nz = (PetscCount)A.j.size();
  std::vector<PetscScalar> values(nz);
  const Wanted             w = SortOnHost(A, limit);
  GallopColumns            c;

  for (PetscCount k = 0; k < nz; k++) values[k] = (PetscReal)(k + 0.5);
  const GallopCSR csr = {A.m, A.n, nz, emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(values)};

  emu::resident = together ? 1 + (int)(choice() % 5) : 1;
  emu::preempt  = together ? 3 : 0;
  sortedbycub   = 0;
  CheckCall(GallopColumnsSort(&csr, limit, (PetscBool)withvalues, &c, NULL));
  if (sortedbycub != (int)w.cub) emu::Fail("%s: CUB sorts %d times, not %d", name, sortedbycub, w.cub);
  if (w.cub) {
    if (workspace) emu::Fail("%s: a workspace is not freed", name);
    return;
  }
  emu::CheckCanaries(name);
  Compare(name, A, w, c, limit, withvalues);
  if (!withvalues) { /* the caller may use this memory */
    for (int k = 0; k < 2; k++) memset((void *)c.unused[k], 0x11 * (k + 1), nz * sizeof(PetscInt));
    emu::CheckCanaries(name);
    if (nz && (*(unsigned char *)c.unused[0] != 0x11 || ((unsigned char *)(c.unused[0] + nz))[-1] != 0x11)) emu::Fail("%s: unused arrays overlap", name);
    Compare(name, A, w, c, limit, withvalues);
  }
  CheckCall(GallopWorkspaceFree(c.memory));
}

/* Whether each entry has one on the other side of the diagonal, and rows are sorted: then nothing is */
static bool IsSymmetric(const Matrix &A)
{
  if (A.m != A.n) return false;
  for (PetscInt r = 0; r < A.m; r++)
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      const PetscInt c = A.j[k];

      if (k > A.i[r] && c <= A.j[k - 1]) return false;
      if (!std::binary_search(A.j.begin() + A.i[c], A.j.begin() + A.i[c + 1], r)) return false;
    }
  return true;
}

static void Transpose(const char *name, const Matrix &A)
{
  const PetscCount         nz = (PetscCount)A.j.size();
  std::vector<PetscScalar> values(nz);
  const Wanted             w         = SortOnHost(A, 0);
  const bool               symmetric = IsSymmetric(A);
  GallopTransposed         t         = {};
  PetscInt                 at        = 0;

  if (!nz) return; /* the base makes no transpose */
  for (PetscCount k = 0; k < nz; k++) values[k] = (PetscReal)(k + 0.5);
  const GallopCSR csr = {A.m, A.n, nz, emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(values)};

  emu::resident = 1 + (int)(choice() % 5);
  emu::preempt  = 3;
  CheckCall(GallopTransposedCreate_Device(&csr, &t));
  emu::CheckCanaries(name);
  if (!symmetric && w.cub) {
    if (workspace) emu::Fail("%s: a workspace of the transpose is not freed", name);
    return;
  }
  if (!t.memory || t.memory != workspace || (t.csr.i == csr.i) != symmetric) emu::Fail("%s: the transpose is not %s", name, symmetric ? "looked up" : "sorted");
  for (PetscInt c = 0; c < A.n; c++) {
    if (t.csr.i[c] != at) emu::Fail("%s: row %ld of the transpose", name, (long)c);
    for (auto &[row, entry] : w.columns[c]) {
      if (t.csr.j[at] != row || t.csr.a[at] != (PetscScalar)(PetscReal)(entry + 0.5)) emu::Fail("%s: entry %ld of the transpose", name, (long)at);
      at++;
    }
  }
  if (t.csr.m != A.n || t.csr.n != A.m || t.csr.nz != nz || t.csr.i[A.n] != at) emu::Fail("%s: the end of the transpose", name);
  CheckCall(GallopWorkspaceFree(t.memory));
}

/* A random pattern and its transpose, without one entry if there is to be none */
static Matrix Symmetric(PetscInt n, const Length &length, bool symmetric = true)
{
  std::vector<std::vector<PetscInt>> rows(n);

  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c : Some(length(r), n)) {
      rows[r].push_back(c);
      rows[c].push_back(r);
    }
  for (auto &row : rows) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
  }
  for (PetscInt r = n; r-- > 0 && !symmetric;)
    for (size_t k = 0; k < rows[r].size() && !symmetric; k++)
      if (rows[r][k] != r) {
        rows[r].erase(rows[r].begin() + k);
        symmetric = true;
      }
  return FromRows(n, rows);
}

static void Test(const char *name, const Matrix &A)
{
  Transpose(name, A);
  for (PetscInt limit : {0, 1, 3, 8, 1000000}) {
    if (!full && (limit == 1 || limit == 8)) continue;
    for (bool withvalues : {false, true}) {
      Sort(name, A, limit, withvalues, true);
      if (full) Sort(name, A, limit, withvalues, false);
    }
  }
}

int main(int argc, char **argv)
{
  auto none  = [](PetscInt) { return 0; };
  auto to    = [](int most) { return [=](PetscInt) { return (int)(choice() % most); }; };
  auto exact = [](int length) { return [=](PetscInt) { return length; }; };

  Begin(argc, argv);
  Test("empty rows", Rows(5, 7, none));
  Test("no rows", Rows(0, 7, none));
  Test("no columns", Rows(9, 0, none));
  Test("nothing", Rows(0, 0, none));
  Test("one entry", Rows(1, 1, exact(1)));
  Test("one column of 77", Columns(77, 1, exact(77)));
  Test("one column of 128", Columns(300, 1, exact(128)));
  Test("one column of 129", Columns(300, 1, exact(129)));
  Test("random", Rows(1003, 997, to(12)));
  Test("random, unsorted", Rows(803, 897, to(12), false));
  Test("wide", Rows(37, 9001, to(50)));
  Test("tall", Columns(9001, 37, to(129)));
  Test("columns up to 128", Columns(1500, full ? 700 : 200, to(129)));
  Test("all columns of 128", Columns(777, full ? 301 : 101, exact(128)));
  Test("dense", Columns(128, full ? 515 : 150, exact(128)));
  Test("long columns among empty ones", Columns(2000, 3001, [](PetscInt c) { return c >= 1000 && c < 1100 ? 128 : (int)(choice() % 2); }));
  Test("long first and long last columns", Columns(900, 1500, [](PetscInt c) { return c < 40 || c > 1460 ? 127 : (int)(c % 3); }));
  Test("one column too long", Columns(900, 1500, [](PetscInt c) { return c == 1499 ? 129 : (int)(c % 3); }));
  Test("a stencil", Stencil(41));
  Test("a symmetric pattern", Symmetric(300, to(8)));
  Test("a larger symmetric pattern", Symmetric(1500, to(4)));
  Test("a symmetric pattern, a few long rows", Symmetric(400, [](PetscInt r) { return r % 50 == 0 ? 200 : (int)(choice() % 3); }));
  Test("a symmetric pattern but for one entry", Symmetric(300, to(8), false));
  Test("a larger symmetric pattern but for one entry", Symmetric(1500, to(4), false));
  Test("a square, unsorted", Rows(500, 500, to(9), false));
  Test("a dense square", Symmetric(100, exact(100)));
  Test("a row of 8192", Rows(3, 20000, [](PetscInt r) { return r == 1 ? 8192 : 5; }));
  Test("a row of 8193", Rows(3, 20000, [](PetscInt r) { return r == 1 ? 8193 : 5; }));
  Test("some long rows", Rows(64, 400, [](PetscInt r) { return r % 9 == 0 ? 300 : 2; }));
  for (int t = 0; t < (full ? 25 : 3); t++) {
    const PetscInt m = 1 + choice() % 1200, n = 1 + choice() % 1200;
    const int      most = 1 + (int)(choice() % 130);

    Test("random columns", Columns(m, n, [=](PetscInt) { return (int)(choice() % 4 ? choice() % 3 : choice() % most); }));
  }
  return End();
}
