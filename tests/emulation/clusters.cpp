/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order by clusters on the GPU, and the matrix in it, src/mat/impls/evchyb/clusters/, beside the host's; clustersproduct.cpp has the products */
#include "memory.h"
#include "matrices.h"
#include "mat/impls/evchyb/rows.c"
#include "mat/impls/evchyb/devicewide.cu"
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

/* ---- what the library has elsewhere ---- */

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 1 + (int)(choice() % 3);
  return PETSC_SUCCESS;
}

PetscErrorCode EVCHYBClusterOrderFree(const GallopCSR *, EVCHYBClusterOrder *found)
{
  found->order = NULL;
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
