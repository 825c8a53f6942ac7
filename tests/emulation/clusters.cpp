/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order by clusters on the GPU, src/mat/impls/evchyb/clusters/, beside the host's; and products of plain storage in that order, with all that solvers add to them */
#include "memory.h"
#include "matrices.h"
#include "mat/impls/evchyb/launch.c"
#include "mat/impls/evchyb/rows.c"
#include "mat/impls/evchyb/devicewide.cu"
#include "mat/impls/evchyb/plain/plainplan.c"
/* static functions of the same names */
#define Order HostOrder
#define Grow  HostGrow
#define Visit HostVisit
#include "mat/impls/evchyb/clusters/clustershost.c"
#undef Order
#undef Grow
#undef Visit
#define Threads FindThreads
#define Lanes   FindLanes
#define Carve   FindCarve
#include "mat/impls/evchyb/clusters/clustersfind.cu"
#undef Threads
#undef Lanes
#undef Carve
#define Threads OrderThreads
#include "mat/impls/evchyb/clusters/clustersorder.cu"
#undef Threads
#include "mat/impls/evchyb/clusters/clustersmatrix.cu"
#define Apply HostApply
#include "mat/impls/evchyb/plain/plainhost.c"
#undef Apply
#include "mat/impls/evchyb/plain/plain.cu"

/* ---- what the library has elsewhere ---- */

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 1 + (int)(choice() % 3);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCopyToHost(void *to, PetscMemType, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode EVCHYBClusterOrderFree(const GallopCSR *, EVCHYBClusterOrder *found)
{
  found->order = NULL;
  return PETSC_SUCCESS;
}

EVCHYBOptions EVCHYBOptionsFor(const EVCHYBOptions *options, const GallopCSR *)
{
  return *options;
}

PetscErrorCode EVCHYBPlainRefresh_Device(EVCHYB *, const GallopCSR *, PetscCount, PetscBool *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode EVCHYBPlainFree_Device(EVCHYB *)
{
  return PETSC_SUCCESS;
}

PetscBool EVCHYBClustersTries(const EVCHYBOptions *, const GallopCSR *, PetscBool)
{
  return PETSC_FALSE;
}

PetscErrorCode EVCHYBClustersChoose(const EVCHYBOptions *, const GallopCSR *, EVCHYBClusterOrder *, EVCHYBClusterMatrix *, PetscReal[2])
{
  return PETSC_SUCCESS;
}

PetscErrorCode EVCHYBClusterMatrixFree(EVCHYBClusterMatrix *)
{
  return PETSC_SUCCESS;
}

/* ---- cases ---- */

static GallopCSR View(const Matrix &A, const std::vector<PetscScalar> &a, PetscMemType memtype)
{
  GallopCSR csr = {};

  csr.m = csr.n = A.m;
  csr.nz      = (PetscCount)A.j.size();
  csr.i       = emu::Guarded(A.i);
  csr.j       = emu::Guarded(A.j);
  csr.a       = emu::Guarded(a);
  csr.host_i  = A.i.data();
  csr.memtype = memtype;
  return csr;
}

/* z = alpha A x + beta y, or d (that) + gamma u + delta x, and its dot product with x */
static void Products(const char *name, const Matrix &A, const std::vector<PetscScalar> &a, const EVCHYBClusterMatrix &host, const PetscInt *order)
{
  std::vector<PetscScalar> x(A.m), y(A.m), u(A.m), d(A.m);
  EVCHYB                   ev   = {};
  EVCHYBRows               rows = {};
  EVCHYBClusters           clusters = {};
  PetscBool                done;

  for (auto *v : {&x, &y, &u, &d})
    for (auto &e : *v) e = RandomReal();
  ev.m = ev.n     = A.m;
  ev.nz           = (PetscCount)A.j.size();
  ev.processors   = 1;
  ev.overlaps     = (PetscBool)(choice() % 2);
  ev.options      = {.window = (PetscInt)(choice() % 3), .maxell = 128, .split = 256, .rowsmax = 1, .columns = 256, .byrow = (PetscInt)(choice() % 2)};
  EVCHYBRowsCount(ev.options.maxell, A.m, host.csr.i, &rows);
  CheckCall(EVCHYBRowsSort_Host(&ev.options, &host.csr, PETSC_FALSE, &rows));
  ev.nempty = rows.nempty;
  CheckCall(EVCHYBPlainBuild_Host(&ev, &host.csr, &rows, 0, &done));
  ev.work                     = &EVCHYBPlainDevice;
  ev.plain->csr.parts.partial = emu::Guarded(std::vector<PetscScalar>(ev.plain->csr.parts.nparts, NAN));
  ev.plain->csr.parts.arrived = emu::Guarded(std::vector<int>(ev.plain->csr.parts.nsplit, 0));
  clusters.m                  = A.m;
  clusters.order              = emu::Guarded(std::vector<PetscInt>(order, order + A.m));
  clusters.places             = emu::Guarded(std::vector<PetscInt>(A.m, -1));
  clusters.x                  = emu::Guarded(std::vector<PetscScalar>(A.m, NAN));
  ev.clusters                 = &clusters;
  CheckCall(EVCHYBClustersPlaces_Device(&clusters, ev.plain->perm, ev.plain->ell.n + ev.plain->csr.n + ev.plain->nlisted));
  for (int kind = 0; kind < 4; kind++) {
    const PetscScalar        alpha = RandomReal(), beta = kind % 2 ? RandomReal() : 0, gamma = RandomReal(), delta = RandomReal();
    const bool               more   = kind > 1 && ev.launch.n && !EVCHYBLeavesRows(ev.plain, ev.nempty);
    PetscScalar             *z      = emu::Guarded(std::vector<PetscScalar>(A.m, NAN));
    const unsigned           blocks = (ev.launch.n ? ev.launch.range[ev.launch.n - 1].next : 0) + (unsigned)ev.plain->csr.parts.nsplit;
    PetscScalar             *result = emu::Guarded(std::vector<PetscScalar>(1, NAN)), wanted = 0;
    PetscScalar *const       ux = emu::Guarded(u), *const dx = emu::Guarded(d), *const xx = emu::Guarded(x);
    GallopDot                dot    = {};
    GallopEpilogue           e      = {dx, ux, &gamma, &delta, &dot};
    GallopProduct            p      = {&alpha, &beta, xx, emu::Guarded(y), z, more ? &e : NULL};

    dot = {xx, PETSC_FALSE, result, emu::Guarded(std::vector<PetscScalar>(blocks, NAN)), blocks, emu::Guarded(std::vector<unsigned>(1, 0u)), PETSC_FALSE};
    CheckCall(EVCHYBClustersApply_Device(&ev, &p));
    emu::Sync();
    for (PetscInt r = 0; r < A.m; r++) {
      PetscScalar sum = 0;

      for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) sum += a[k] * x[A.j[k]];
      sum = alpha * sum + beta * y[r];
      if (more) sum = d[r] * sum + gamma * u[r] + delta * x[r];
      if (!(PetscAbsScalar(z[r] - sum) <= (PetscReal)1e-4 * (1 + (A.i[r + 1] - A.i[r])) * (PetscDefined(USE_REAL_SINGLE) ? 1 : (PetscReal)1e-8))) emu::Fail("%s: row %ld is %g, not %g", name, (long)r, (double)PetscRealPart(z[r]), (double)PetscRealPart(sum));
      wanted += x[r] * sum;
    }
    if (more && !(PetscAbsScalar(*result - wanted) <= (PetscReal)(PetscDefined(USE_REAL_SINGLE) ? 1e-2 : 1e-9) * (1 + A.m))) emu::Fail("%s: the dot product is %g, not %g", name, (double)PetscRealPart(*result), (double)PetscRealPart(wanted));
  }
}

static void Test(const char *name, const Matrix &A)
{
  std::vector<PetscScalar> a(A.j.size());
  EVCHYBClusterOrder       host, device;
  EVCHYBClusterMatrix      hostmatrix, matrix;
  PetscBool                fits;

  for (auto &e : a) e = RandomReal();
  const GallopCSR onhost = View(A, a, PETSC_MEMTYPE_HOST), csr = View(A, a, PETSC_MEMTYPE_CUDA);

  CheckCall(EVCHYBClusterFind_Host(&onhost, 0, &host, &fits));
  for (int again = 0; again < 2; again++) {
    waits = 0;
    CheckCall(EVCHYBClusterFind_Device(&csr, 0, &device, &fits));
    emu::Sync();
    emu::CheckCanaries("after clusters were found");
    if (!fits || !device.order || waits != 1) emu::Fail("%s: no order, or %d waits", name, waits);
    if (device.counts.num != host.counts.num || device.counts.entries != host.counts.entries || device.counts.inside != host.counts.inside)
      emu::Fail("%s: %ld clusters, %ld entries, %ld inside, not %ld, %ld, %ld", name, (long)device.counts.num, (long)device.counts.entries, (long)device.counts.inside, (long)host.counts.num, (long)host.counts.entries, (long)host.counts.inside);
    for (PetscInt k = 0; k < A.m; k++)
      if (device.order[k] != host.order[k]) emu::Fail("%s: order[%ld] is %ld, not %ld", name, (long)k, (long)device.order[k], (long)host.order[k]);
  }
  CheckCall(EVCHYBClusterPermute_Host(host.order, &onhost, &hostmatrix, &fits));
  CheckCall(EVCHYBClusterPermute_Device(device.order, &csr, &matrix, &fits));
  emu::Sync();
  emu::CheckCanaries("after the matrix was permuted");
  for (PetscInt k = 0; k <= A.m; k++)
    if (matrix.csr.i[k] != hostmatrix.csr.i[k]) emu::Fail("%s: i[%ld] is %ld, not %ld", name, (long)k, (long)matrix.csr.i[k], (long)hostmatrix.csr.i[k]);
  for (PetscCount k = 0; k < csr.nz; k++)
    if (matrix.csr.j[k] != hostmatrix.csr.j[k] || matrix.csr.a[k] != hostmatrix.csr.a[k]) emu::Fail("%s: entry %ld is in column %ld, not %ld", name, (long)k, (long)matrix.csr.j[k], (long)hostmatrix.csr.j[k]);
  Products(name, A, a, hostmatrix, host.order);

  /* a failing request leaves no order */
  for (int request = 1; request < 3; request++) {
    requests = 0;
    failing  = request;
    CheckCall(EVCHYBClusterFind_Device(&csr, 0, &device, &fits));
    emu::Sync();
    if (fits || device.order) emu::Fail("%s: an order without memory", name);
  }
  failing = 0;
  CheckCall(EVCHYBClusterFind_Device(&csr, 2, &device, &fits)); /* more than there are */
  if (!fits || (device.order && csr.nz)) emu::Fail("%s: an order that does not pay", name);
}

static Matrix Shuffled(const Matrix &A)
{
  const std::vector<PetscInt>        number = Some(A.m, A.m);
  std::vector<std::vector<PetscInt>> rows(A.m);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) rows[number[r]].push_back(number[A.j[k]]);
    std::sort(rows[number[r]].begin(), rows[number[r]].end());
  }
  return FromRows(A.m, rows);
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  Test("a grid", Shuffled(Stencil(20)));
  if (full) Test("a larger grid", Shuffled(Stencil(90)));
  Test("one row", Rows(1, 1, [](PetscInt) { return 1; }));
  Test("two rows", Rows(2, 2, [](PetscInt) { return 1; }));
  Test("unsymmetric", Rows(300, 300, [](PetscInt) { return (int)(choice() % 5); }));
  Test("no neighbours", Rows(200, 200, [](PetscInt) { return 0; }));
  Test("parts", Rows(700, 700, [](PetscInt r) { return r % 3 ? 1 : 2; }));
  Test("hubs", Rows(400, 400, [](PetscInt r) { return r == 7 ? 400 : r == 9 ? 129 : r == 11 ? 128 : 2; }));
  Test("all are neighbours", Rows(90, 90, [](PetscInt) { return 90; }));
  return End();
}
