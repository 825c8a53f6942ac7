/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's column blocks on the GPU: the build, beside the host's arrays, new values, products: src/mat/impls/hbp/hbpcolumnsbuild.cu, hbpcolumns.cu */
#include "producttest.h"
#include "mat/impls/hbp/hbpcolumns.cu"
#include "mat/impls/hbp/hbphot.cu"
#include "mat/impls/hbp/hbpcolumnsbuild.cu"
#include "mat/impls/hbp/hbpchoose.c"
#include "mat/impls/hbp/hbpcolumns.c"
#include "mat/impls/hbp/hbphot.c"
#include "mat/impls/hbp/hbphost.c"
#include "mat/impls/common/longrows.c"

/* ---- of the rest of the format and of the library ---- */

PetscErrorCode HBPApply_Host(void *, const GallopProduct *)
{
  emu::Fail("a product on the host");
}

PetscErrorCode HBPApplyTranspose_Host(void *, const GallopProduct *, PetscBool)
{
  emu::Fail("a product on the host");
}

PetscErrorCode HBPGetSharedCols_Device(PetscInt *cols)
{
  *cols = HBP_MAX_SHARED_COLS;
  return PETSC_SUCCESS;
}

/* ---- the test ---- */

struct Case {
  const char *name;
  PetscInt    m, n;
  Length      length;
  PetscInt    columns, block_rows, cache; /* cache: numbers that L2 has room for, 0 for what the emulated GPU says */
  PetscInt    num;                        /* blocks of columns that there are to be, 0 where the matrix is to be stored otherwise */
  bool        unsorted;
};

/* Entries of a row anywhere */
static Matrix Scattered(const Case &c)
{
  Matrix A;

  A.i.push_back(0);
  for (PetscInt r = 0; r < c.m; r++) {
    std::vector<PetscInt> row;

    for (int k = c.length((int)r); k > 0; k--) row.push_back((PetscInt)(choice() % (uint64_t)c.n));
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    if (c.unsorted && r == c.m / 2 && row.size() > 1) std::swap(row[0], row[1]);
    for (PetscInt j : row) {
      A.j.push_back(j);
      A.a.push_back(RandomScalar());
    }
    A.i.push_back((PetscInt)A.j.size());
  }
  A.csr = {c.m, c.n, (PetscCount)A.j.size(), emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(A.a), A.i.data(), A.j.data(), PETSC_MEMTYPE_CUDA, NULL};
  return A;
}

static void CheckArrays(const Case &c, const HBPColumns *h, const HBPColumns *d)
{
  if (h->num != d->num || h->M != d->M || h->tiles != d->tiles || h->N != d->N || h->segNum != d->segNum || h->lineNum != d->lineNum) emu::Fail("%s: numbers differ", c.name);
#define SAME(array, number) \
  if ((number) > 0 && memcmp(h->array, d->array, (size_t)(number) * sizeof(*h->array))) emu::Fail("%s: " #array " differs", c.name);
  HBP_COLUMNS_ARRAYS(h, SAME);
#undef SAME
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  return HBPColumnsApply_Device((HBPColumns *)data, p);
}

static void Test(const Case &c)
{
  Matrix     A       = Scattered(c);
  HBPOptions options = {.shared_x = HBP_SHARED_CHOOSE, .map = HBP_MAP_CHOOSE, .fixed = -1};
  HBPSample  s;
  HBP       *h, d = {};

  options.block_rows = c.block_rows;
  options.columns    = c.columns;
  options.keep_x     = (PetscBool)(choice() % 2);
  if (c.cache) {
    options.cache     = c.cache * (PetscInt)sizeof(PetscScalar);
    options.tile_rows = 256;
    options.agents    = 5;
  }
  d.options           = options;
  const PetscInt M[2] = {8192, 65536};

  CheckCall(HBPBuild_Host(HBP_GROUP, &options, &A.csr, 0, &h));
  CheckCall(Look(&A.csr, M, &s));
  CheckCall(HBPColumnsBuild_Device(&d, &A.csr, &s, 0, NULL));
  if (!h || (h->columns ? h->columns->num : 0) != c.num || !h->columns != !d.columns) emu::Fail("%s: %ld blocks of columns", c.name, h && h->columns ? (long)h->columns->num : 0L);
  if (!h->columns) return;
  CheckArrays(c, h->columns, d.columns);
  TestProducts(c.name, A, {NULL, NULL, Apply, NULL, NULL}, d.columns, d.columns->agents, 0, NULL);
  TestTransposed(c.name, c.m, c.n, A, [&](const GallopProduct *p) { return HBPColumnsApplyTranspose_Device(d.columns, c.n, p, PETSC_TRUE); });
  for (auto &a : A.a) a = RandomScalar();
  A.csr.a = emu::Guarded(A.a);
  HBPColumnsFill_Host(h->columns, &A.csr, PETSC_FALSE);
  CheckCall(HBPColumnsRefresh_Device(d.columns, &A.csr));
  emu::Sync();
  CheckArrays(c, h->columns, d.columns);
}

int main(int argc, char **argv)
{
  const auto few     = [](int) { return 3 + (int)(choice() % 9); };
  const auto some    = [](int r) { return r % 7 ? 1 + (int)(choice() % 9) : 0; };
  const auto mixed   = [](int) { return 1 + (int)(choice() % 10 ? choice() % 30 : choice() % 250); };
  const Case cases[] = {
    {"short rows",                     2500, 3000,  few,                                             3,    0,   0,     3, false},
    {"tiles one after the other",      2500, 3000,  few,                                             4,    100, 0,     4, false},
    {"short and empty rows",           2000, 900,   some,                                            2,    64,  0,     2, false},
    {"rows of all lengths",            900,  9000,  mixed,                                           5,    300, 0,     5, false},
    {"the longest segment",            300,  20000, [](int r) { return r == 77 ? 270 : 3; },         2,    0,   0,     2, false},
    {"a segment that is too long",     300,  20000, [](int r) { return r == 77 ? 2000 : 3; },        2,    0,   0,     0, false},
    {"columns that are not in order",  300,  2000,  few,                                             2,    0,   0,     0, true },
    {"one row",                        1,    100,   [](int) { return 9; },                           3,    0,   0,     3, false},
    {"as many blocks as there can be", 200,  100,   few,                                             4096, 1,   0,     7, false},
    {"empty tiles and blocks",         1500, 5000,  [](int r) { return r / 300 % 2 && r % 9 == 0; }, 9,    33,  0,     9, false},
    {"chosen, in several passes",      3000, 9000,  [](int) { return 30; },                          0,    0,   5000,  9, false},
    {"x stays in L2",                  3000, 9000,  [](int) { return 30; },                          0,    0,   50000, 0, false},
    {"too few entries for that",       1000, 9000,  [](int) { return 3; },                           0,    0,   5000,  0, false},
    {"rows of too different lengths",  3000, 9000,  [](int r) { return r % 100 ? 30 : 400; },        0,    0,   5000,  0, false},
    {"turned off",                     3000, 9000,  [](int) { return 30; },                          1,    0,   5000,  0, false},
  };
  Begin(argc, argv);
  emu::processors = 3;
  for (auto &c : cases) Test(c);
  return End();
}
