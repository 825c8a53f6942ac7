/* SPDX-License-Identifier: BSD-2-Clause */
/* What TiledSpMM chooses by a look at the pattern, src/mat/impls/tiledspmm/tiledspmmchoose.cu: kernels and the size of segments, beside what is expected, with tensor cores for tiles and without */
#include "producttest.h"

static const size_t L2 = 60 << 20; /* an H200's */

/* of the GPU's properties the choice asks for this one alone */
#define cudaDeviceGetAttribute(value, what, device) (*(value) = (what) == cudaDevAttrL2CacheSize ? (int)L2 : -1, cudaSuccess)
#include "mat/impls/tiledspmm/tiledspmmchoose.cu"
#undef cudaDeviceGetAttribute
#include "../tiledspmmcases.h"

static bool tensor; /* whether tensor cores multiply tiles */

PetscErrorCode TiledSpMMHasTensor(PetscBool *has)
{
  *has = (PetscBool)tensor;
  return PETSC_SUCCESS;
}

static void Test(const TiledSpMMCase &c)
{
  TiledSpMM       t      = {};
  TiledSpMMChoice chosen = {};
  PetscBool       done;
  PetscInt        m, n;

  CaseSizes(&c, emu::processors, L2, &m, &n);
  Matrix A = NewMatrix(m, n, [&](int r) { return (int)CaseLength(&c, m, r); });

  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = 0; k < A.i[r + 1] - A.i[r]; k++) A.j[A.i[r] + k] = CaseColumn(&c, m, n, r, k);
  A.csr.j               = emu::Guarded(A.j);
  t.multiprocessors     = emu::processors;
  t.m                   = m;
  t.n                   = n;
  t.nz                  = A.csr.nz;
  t.options.panel       = CASE_PANEL;
  t.options.utilization = (PetscReal)(c.utilization < 0 ? CASE_UTILIZATION : c.utilization);
  t.options.imbalance   = (PetscReal)(c.imbalance < 0 ? CASE_IMBALANCE : c.imbalance);
  t.kernel = t.options.kernel = c.staged ? TILEDSPMM_STAGED : TILEDSPMM_CHOOSE;
  if (c.staged) {
    chosen.kernel = TILEDSPMM_STAGED;
    CheckCall(TiledSpMMChooseSegment(&t, &A.csr, &chosen.segment, &done));
  } else CheckCall(TiledSpMMChoose(&t, &A.csr, &chosen, &done));
  if (!done) emu::Fail("%s: no room", c.what);
  if (chosen.kernel != (tensor ? c.kernel : c.other)) emu::Fail("%s, %s tensor cores: kernel %d", c.what, tensor ? "with" : "without", (int)chosen.kernel);
  if (!c.staged && chosen.untiled != (c.kernel == TILEDSPMM_TENSOR ? c.other : c.kernel)) emu::Fail("%s: without tiles kernel %d", c.what, (int)chosen.untiled);
  if (chosen.segment != CaseSegment(&c, A.csr.nz, emu::processors)) emu::Fail("%s: segments of %ld entries, not %ld", c.what, (long)chosen.segment, (long)CaseSegment(&c, A.csr.nz, emu::processors));
  emu::ClearCanaries();
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  emu::processors = 8;
  for (int with = 0; with < 2; with++) {
    tensor = with;
    for (const auto &c : tiledspmmcases) Test(c);
  }
  return End();
}
