/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSR arrays of a transpose, on the GPU: entries sorted by their columns stay in order of rows within each */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <gallop/cudaimpl.h>
#include <gallop/matgallopimpl.h>
#include "../common/bits.h"

static constexpr int Threads = 256;

struct Largest {
  __device__ PetscInt operator()(PetscInt a, PetscInt b) const { return a > b ? a : b; }
};

__global__ static void NumbersKernel(PetscCount n, PetscInt *numbers)
{
  const PetscCount k = GallopGlobalThread();

  if (k < n) numbers[k] = (PetscInt)k;
}

/* i of the transpose: where each column begins among the sorted ones */
__global__ static void BeginsKernel(PetscInt n, PetscCount nz, const PetscInt *__restrict__ columns, PetscInt *i)
{
  const PetscCount c   = GallopGlobalThread();
  PetscCount       low = 0, high = nz;

  if (c > n) return;
  while (low < high) {
    const PetscCount middle = (low + high) / 2;

    if (columns[middle] < c) low = middle + 1;
    else high = middle;
  }
  i[c] = (PetscInt)low;
}

/* The row of each first entry; the largest so far is the row of the others */
__global__ static void FirstsKernel(PetscInt m, const PetscInt *__restrict__ i, PetscInt *rows)
{
  const PetscCount r = GallopGlobalThread();

  if (r < m && i[r] < i[r + 1]) rows[i[r]] = (PetscInt)r;
}

__global__ static void GatherKernel(PetscCount nz, const PetscInt *__restrict__ order, const PetscInt *__restrict__ rows, const PetscScalar *__restrict__ a, PetscInt *tj, PetscScalar *ta)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= nz) return;
  tj[k] = rows[order[k]];
  ta[k] = a[order[k]];
}

/* Two buffers each to sort between; what is not needed any more is used again */
struct Workspace {
  PetscInt    *columns[2], *order[2], *i;
  PetscScalar *a;
  char        *cub;
  size_t       cubbytes;
};

static size_t Carve(Workspace *w, const GallopCSR *csr, void *base)
{
  GallopCarver carver(base);

  for (int k = 0; k < 2; k++) {
    carver.Take(w->columns[k], csr->nz);
    carver.Take(w->order[k], csr->nz);
  }
  carver.Take(w->i, (PetscCount)csr->n + 1);
  carver.Take(w->a, csr->nz);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* Leaves no arrays where the GPU has no room */
PetscErrorCode GallopTransposedCreate_Device(const GallopCSR *csr, GallopTransposed *t)
{
  const PetscCount            nz = csr->nz;
  Workspace                   w  = {};
  cub::DoubleBuffer<PetscInt> columns, order;
  PetscInt                   *rows, *j;
  cudaStream_t                stream;
  size_t                      sortbytes = 0, scanbytes = 0;
  const int                   bits = GallopSortBits((uint64_t)PetscMax(csr->n - 1, 0));

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, sortbytes, columns, order, nz, 0, bits, stream));
  PetscCallCUDA(cub::DeviceScan::InclusiveScan(nullptr, scanbytes, w.columns[0], w.columns[0], Largest(), nz, stream));
  w.cubbytes = PetscMax(sortbytes, scanbytes);
  t->bytes   = Carve(&w, csr, NULL);
  PetscCall(GallopWorkspaceMalloc(t->bytes, &t->memory));
  if (!t->memory) {
    t->bytes = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  (void)Carve(&w, csr, t->memory);

  PetscCallCUDA(cudaMemcpyAsync(w.columns[0], csr->j, nz * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
  NumbersKernel<<<GallopBlocksFor(nz, Threads), Threads, 0, stream>>>(nz, w.order[0]);
  GallopCheckLaunch();
  columns = cub::DoubleBuffer<PetscInt>(w.columns[0], w.columns[1]);
  order   = cub::DoubleBuffer<PetscInt>(w.order[0], w.order[1]);
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, sortbytes, columns, order, nz, 0, bits, stream));
  BeginsKernel<<<GallopBlocksFor((PetscCount)csr->n + 1, Threads), Threads, 0, stream>>>(csr->n, nz, columns.Current(), w.i);
  GallopCheckLaunch();

  rows = order.Alternate();
  j    = columns.Alternate();
  PetscCallCUDA(cudaMemsetAsync(rows, 0, nz * sizeof(PetscInt), stream));
  FirstsKernel<<<GallopBlocksFor(csr->m, Threads), Threads, 0, stream>>>(csr->m, csr->i, rows);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::InclusiveScan(w.cub, scanbytes, rows, rows, Largest(), nz, stream));
  GatherKernel<<<GallopBlocksFor(nz, Threads), Threads, 0, stream>>>(nz, order.Current(), rows, csr->a, j, w.a);
  GallopCheckLaunch();
  t->csr = {csr->n, csr->m, nz, w.i, j, w.a, NULL, NULL, PETSC_MEMTYPE_CUDA, &t->host};
  PetscFunctionReturn(PETSC_SUCCESS);
}
