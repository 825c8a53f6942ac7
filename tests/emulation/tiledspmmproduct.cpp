/* SPDX-License-Identifier: BSD-2-Clause */
/*
  TiledSpMM's products C = A B by the staged, the cached and the transposed kernel: src/mat/impls/tiledspmm/tiledspmmstaged.cu, tiledspmmcached.cu, tiledspmmtransposed.cu and tiledspmmcombine.cu. The
  arrays of the first are those of the host, the others' are built by tiledspmmsegmentsbuild.cu.
*/
#include "producttest.h"
#include "mat/impls/tiledspmm/tiledspmmhost.c"
#include "mat/impls/tiledspmm/tiledspmmorder.c"
#include "mat/impls/tiledspmm/tiledspmmcombine.cu"
#include "mat/impls/tiledspmm/tiledspmmstaged.cu"
#include "mat/impls/tiledspmm/tiledspmmcached.cu"
#include "mat/impls/tiledspmm/tiledspmmtransposed.cu"
#include "mat/impls/tiledspmm/tiledspmmsegmentsbuild.cu"

/* ---- the test ---- */

struct Case {
  const char *name;
  PetscInt    m, n;
  Length      length;
  bool        near;
};

struct Setting {
  TiledSpMMKernel  kernel;
  PetscInt         panel, stage, columns, segment; /* segment 0: no row is cut */
  TiledSpMMReorder reorder;
  bool             skips; /* rows without entries have no segment */
};

/* C = A B, or C + A B, of so many columns, several times, each in another order of threads, which must give the same bits. What is not a number in B is in C where a row names it, and nowhere else. */
static void TestProduct(const char *name, const Matrix &A, TiledSpMM *t, PetscErrorCode (*apply)(TiledSpMM *, const GallopDenseProduct *, PetscBool *), PetscInt columns, bool add)
{
  const PetscInt           m = A.csr.m, n = A.csr.n, ldb = n + 3, ldc = m + 2, bad = (PetscInt)(choice() % n);
  const PetscReal          small = 2000 * PETSC_MACHINE_EPSILON;
  std::vector<PetscScalar> bs((size_t)ldb * columns), cs((size_t)ldc * columns), first;

  for (auto &e : bs) e = RandomScalar();
  for (auto &e : cs) e = RandomScalar();
  for (PetscInt k = 0; k < columns; k += 2) bs[(size_t)ldb * k + bad] = (PetscScalar)(PetscReal)NAN;
  const PetscScalar *b = emu::Guarded(bs);
  PetscScalar       *c = emu::Guarded(cs);

  for (int run = 0; run < (full ? 6 : 2); run++) {
    const GallopDenseProduct p = {columns, b, ldb, c, ldc, (PetscBool)add};
    PetscBool                done;

    std::copy(cs.begin(), cs.end(), c);
    for (size_t k = 0; k < t->workbytes / sizeof(*t->work); k++) t->work[k] = (PetscScalar)(PetscReal)NAN; /* all that is read is to be written before */
    emu::resident = 1 + run * 2;
    emu::preempt  = run ? 4 : 0;
    CheckCall((*apply)(t, &p, &done));
    if (!done) emu::Fail("%s: no room", name);
    for (PetscInt k = 0; k < columns; k++) {
      for (PetscInt r = 0; r < ldc; r++) {
        const PetscScalar is = c[(size_t)ldc * k + r], was = cs[(size_t)ldc * k + r];
        PetscScalar       sum   = r < m && !add ? (PetscScalar)0 : was;
        PetscReal         scale = 4;

        for (PetscInt e = r < m ? A.i[r] : 0; r < m && e < A.i[r + 1]; e++) {
          sum += A.a[e] * bs[(size_t)ldb * k + A.j[e]];
          scale += PetscAbsScalar(A.a[e] * bs[(size_t)ldb * k + A.j[e]]);
        }
        if (sum != sum ? is == is : !(PetscAbsScalar(is - sum) <= small * scale))
          emu::Fail("%s: row %ld of column %ld is %g, not %g", name, (long)r, (long)k, (double)PetscRealPart(is), (double)PetscRealPart(sum));
      }
    }
    if (!run) first.assign(c, c + cs.size());
    if (memcmp(first.data(), c, cs.size() * sizeof(*c))) emu::Fail("%s: the result has other bits", name);
  }
}

/* The arrays as the GPU has them: they end where memory ends */
static TiledSpMM *Build(const Matrix &A, const TiledSpMMOptions &options, const Setting &set)
{
  TiledSpMM               *t;
  PetscBool                done;
  std::vector<PetscScalar> values;

  if (set.kernel == TILEDSPMM_STAGED) {
    GallopCSR host = A.csr;

    host.i       = A.i.data();
    host.j       = A.j.data();
    host.a       = A.a.data();
    host.memtype = PETSC_MEMTYPE_HOST;
    CheckCall(TiledSpMMInspect(&options, &host, set.segment, 0, &t));
    values.resize(t->stored);
    for (PetscCount k = 0; k < t->stored; k++) values[k] = t->from[k] >= 0 ? A.a[t->from[k]] : (PetscScalar)0;
    t->value = values.data();
#define GUARD(array, number) \
  if (t->array) t->array = (decltype(t->array))emu::Guarded(t->array, (size_t)(number) * sizeof(*t->array), alignof(decltype(*t->array)));
    TILEDSPMM_ARRAYS(t, GUARD);
#undef GUARD
    t->work      = NULL;
    t->workbytes = 0;
    t->shared    = 48 << 10;
  } else {
    t          = new TiledSpMM();
    t->options = options;
    t->m       = A.csr.m;
    t->n       = A.csr.n;
    t->nz      = A.csr.nz;
    t->kernel  = set.kernel;
    t->skips   = (PetscBool)set.skips;
    CheckCall(TiledSpMMSegmentsBuild(t, &A.csr, set.segment ? set.segment : set.skips ? PETSC_INT_MAX / 2 : 0, 0, &done));
    if (!done) emu::Fail("no room for segments");
    CheckCall(TiledSpMMSegmentsRefresh(t, &A.csr)); /* which leaves the columns */
  }
  t->multiprocessors = emu::processors;
  return t;
}

static void Test(const Case &p, const Setting &set)
{
  static PetscErrorCode (*const apply[])(TiledSpMM *, const GallopDenseProduct *, PetscBool *) = {TiledSpMMStagedApply, TiledSpMMCachedApply, TiledSpMMTransposedApply};
  const PetscInt   columns[] = {1, 2, 3, 8, 17, 33};
  const Matrix     A         = NewMatrix(p.m, p.n, p.length, p.near);
  TiledSpMMOptions options   = {set.panel, set.stage, set.columns, set.segment, 1, 0, PETSC_MAX_REAL, set.kernel, set.reorder};
  char             name[80];

  for (PetscInt k : columns) {
    TiledSpMM *const t = Build(A, options, set);

    snprintf(name, sizeof(name), "%s, kernel %d, segment %d, %d columns", p.name, (int)set.kernel, (int)set.segment, (int)k);
    if (!set.skips) TestProduct(name, A, t, apply[set.kernel], k, false); /* where rows are left out, C is set to zero before */
    TestProduct(name, A, t, apply[set.kernel], k, true);
    emu::ClearCanaries();
  }
}

/* Work that a CUDA graph has recorded stays when more is needed */
static void Recorded()
{
  TiledSpMM t = TiledSpMM();
  PetscBool done;
  void     *work;

  CheckCall(TiledSpMMGetWork(&t, 100, &done));
  CheckCall(TiledSpMMGetWork(&t, 200, &done));
  if (t.nolder) emu::Fail("work is kept that nothing has recorded");
  captures = true;
  CheckCall(TiledSpMMGetWork(&t, 150, &done));
  captures = false;
  work     = t.work;
  for (size_t bytes : {100, 300, 400}) CheckCall(TiledSpMMGetWork(&t, bytes, &done));
  if (t.nolder != 1 || t.older[0] != work || t.work == work) emu::Fail("recorded work has gone");
  CheckCall(PetscFree(t.older));
  emu::ClearCanaries();
}

int main(int argc, char **argv)
{
  const Case patterns[] = {
    {"short rows",          1300, 900,  [](int) { return 2 + (int)(choice() % 5); },                               true },
    {"rows of all lengths", 150,  700,  [](int) { return (int)(choice() % 10 ? choice() % 30 : choice() % 400); }, false},
    {"a long row",          70,   2000, [](int r) { return r == 33 ? 1500 : r % 3; },                               false},
    {"few rows",            5,    300,  [](int r) { return 60 * r; },                                              true },
  };
  const Setting settings[] = {
    {TILEDSPMM_STAGED,     64,  32,  0,  0,  TILEDSPMM_REORDER_NEVER,  false},
    {TILEDSPMM_STAGED,     32,  8,   4,  7,  TILEDSPMM_REORDER_ALWAYS, false},
    {TILEDSPMM_STAGED,     256, 100, 32, 0,  TILEDSPMM_REORDER_ALWAYS, false},
    {TILEDSPMM_CACHED,     64,  32,  0,  0,  TILEDSPMM_REORDER_NEVER,  false},
    {TILEDSPMM_CACHED,     64,  32,  8,  16, TILEDSPMM_REORDER_NEVER,  false},
    {TILEDSPMM_CACHED,     64,  32,  0,  0,  TILEDSPMM_REORDER_NEVER,  true },
    {TILEDSPMM_TRANSPOSED, 64,  32,  0,  0,  TILEDSPMM_REORDER_NEVER,  false},
    {TILEDSPMM_TRANSPOSED, 64,  32,  0,  10, TILEDSPMM_REORDER_NEVER,  true },
    {TILEDSPMM_TRANSPOSED, 64,  32,  0,  10, TILEDSPMM_REORDER_NEVER,  false},
  };
  Begin(argc, argv);
  emu::processors = 1;
  for (auto &p : patterns)
    for (auto &set : settings) Test(p, set);
  Recorded();
  return End();
}
