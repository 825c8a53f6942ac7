/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of CSR arrays in order of columns, by CUB's sort: for matrices with long columns, whose entries all of the GPU would count one after the other */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include "bits.h"
#include "columns.h"

static constexpr int Threads = 256;

struct Largest {
  __device__ PetscInt operator()(PetscInt a, PetscInt b) const { return a > b ? a : b; }
};

/* The row of each first entry; the largest so far is the row of the others */
__global__ static void __launch_bounds__(Threads) FirstsKernel(PetscInt m, const PetscInt *__restrict__ i, PetscInt *rows)
{
  const PetscCount r = GallopGlobalThread();

  if (r < m && i[r] < i[r + 1]) rows[i[r]] = (PetscInt)r;
}

/* What entries are sorted by: their columns. With a limit: those of long rows come last. */
__global__ static void __launch_bounds__(Threads) KeysKernel(PetscCount nz, PetscInt n, PetscInt limit, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ rows, PetscInt *keys, PetscInt *entries, PetscInt *longrows, GallopColumnsFound *found)
{
  const PetscCount k  = GallopGlobalThread();
  bool             in = true;

  if (k >= nz) return;
  if (limit) {
    const PetscInt r = rows[k];

    in = i[r + 1] - i[r] <= limit;
    if (k > i[r] && in && j[k] <= j[k - 1]) *(volatile int *)&found->unsorted = 1;
    if (k == i[r] && !in) longrows[atomicAdd(&found->nlong, 1)] = r;
  }
  keys[k]    = in ? j[k] : n;
  entries[k] = (PetscInt)k;
}

/* Where each column begins among the sorted entries */
__global__ static void __launch_bounds__(Threads) BeginsKernel(PetscInt n, PetscCount nz, const PetscInt *__restrict__ columns, PetscInt *begin)
{
  const PetscCount c   = GallopGlobalThread();
  PetscCount       low = 0, high = nz;

  if (c > n) return;
  while (low < high) {
    const PetscCount middle = (low + high) / 2;

    if (columns[middle] < c) low = middle + 1;
    else high = middle;
  }
  begin[c] = (PetscInt)low;
}

__global__ static void __launch_bounds__(Threads) LongestKernel(PetscInt n, const PetscInt *__restrict__ begin, GallopColumnsFound *found)
{
  unsigned int most = 0;

  for (PetscCount c = GallopGlobalThread(); c < n; c += (PetscCount)gridDim.x * Threads) most = max(most, (unsigned int)(begin[c + 1] - begin[c]));
  most = GallopWarpMax(most);
  if (threadIdx.x % WarpSize == 0) atomicMax(&found->longest, (int)most);
}

__global__ static void __launch_bounds__(Threads) GatherKernel(PetscCount nz, const PetscInt *__restrict__ entries, const PetscInt *__restrict__ rows, const PetscScalar *__restrict__ a, PetscInt *row, PetscScalar *values)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= nz) return;
  row[k] = rows[entries[k]];
  if (values) values[k] = a[entries[k]];
}

static cudaError_t Sort(void *temp, size_t &bytes, cub::DoubleBuffer<PetscInt> &keys, cub::DoubleBuffer<PetscInt> &entries, const GallopCSR *csr, cudaStream_t stream)
{
  return cub::DeviceRadixSort::SortPairs(temp, bytes, keys, entries, csr->nz, 0, GallopSortBits((uint64_t)csr->n), stream);
}

static cudaError_t Spread(void *temp, size_t &bytes, PetscInt *rows, PetscCount nz, cudaStream_t stream)
{
  return cub::DeviceScan::InclusiveScan(temp, bytes, rows, rows, Largest(), nz, stream);
}

struct Workspace {
  PetscInt           *keys[2], *entries[2]; /* [nz] to sort between */
  GallopColumnsFound *found;
  char               *cub;
  size_t              cubbytes;
};

static size_t Carve(const GallopCSR *csr, PetscInt limit, PetscBool withvalues, Workspace *w, GallopColumns *c, void *base)
{
  GallopCarver carver(base);

  carver.Take(c->begin, (PetscCount)csr->n + 1);
  for (int k = 0; k < 2; k++) {
    carver.Take(w->keys[k], csr->nz);
    carver.Take(w->entries[k], csr->nz);
  }
  if (withvalues) carver.Take(c->values, csr->nz);
  if (limit) carver.Take(c->longrows, csr->nz / limit + 1);
  carver.Take(w->found, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* The row of each entry */
static PetscErrorCode RowsOf(const GallopCSR *csr, const Workspace *w, PetscInt *rows, cudaStream_t stream)
{
  size_t bytes = w->cubbytes;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(rows, 0, (size_t)csr->nz * sizeof(*rows), stream));
  FirstsKernel<<<GallopBlocksFor(csr->m, Threads), Threads, 0, stream>>>(csr->m, csr->i, rows);
  GallopCheckLaunch();
  PetscCallCUDA(Spread(w->cub, bytes, rows, csr->nz, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopColumnsSortByCUB - As GallopColumnsSort(), for columns of any lengths */
PetscErrorCode GallopColumnsSortByCUB(const GallopCSR *csr, PetscInt limit, PetscBool withvalues, GallopColumns *c, cudaStream_t stream)
{
  const unsigned int          blocks = GallopBlocksFor(csr->nz, Threads), cols = GallopBlocksFor((PetscCount)csr->n + 1, Threads);
  Workspace                   w = {};
  cub::DoubleBuffer<PetscInt> keys, entries;
  size_t                      bytes;

  PetscFunctionBegin;
  *c = {};
  PetscCallCUDA(Sort(nullptr, w.cubbytes, keys, entries, csr, stream));
  PetscCallCUDA(Spread(nullptr, bytes, nullptr, csr->nz, stream));
  w.cubbytes = PetscMax(w.cubbytes, bytes);
  c->bytes   = Carve(csr, limit, withvalues, &w, c, NULL);
  PetscCall(GallopWorkspaceMalloc(c->bytes, &c->memory));
  if (!c->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(csr, limit, withvalues, &w, c, c->memory);
  keys    = cub::DoubleBuffer<PetscInt>(w.keys[0], w.keys[1]);
  entries = cub::DoubleBuffer<PetscInt>(w.entries[0], w.entries[1]);
  PetscCallCUDA(cudaMemsetAsync(w.found, 0, sizeof(*w.found), stream));
  if (limit) PetscCall(RowsOf(csr, &w, entries.Alternate(), stream));
  KeysKernel<<<blocks, Threads, 0, stream>>>(csr->nz, csr->n, limit, csr->i, csr->j, entries.Alternate(), keys.Current(), entries.Current(), c->longrows, w.found);
  GallopCheckLaunch();
  bytes = w.cubbytes;
  PetscCallCUDA(Sort(w.cub, bytes, keys, entries, csr, stream));
  BeginsKernel<<<cols, Threads, 0, stream>>>(csr->n, csr->nz, keys.Current(), c->begin);
  GallopCheckLaunch();
  LongestKernel<<<PetscMin(cols, 512u), Threads, 0, stream>>>(csr->n, c->begin, w.found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&c->found, w.found, sizeof(c->found)));
  c->entry     = entries.Current();
  c->row       = keys.Current();
  c->unused[0] = keys.Alternate();
  c->unused[1] = entries.Alternate();
  PetscCall(RowsOf(csr, &w, c->unused[0], stream));
  GatherKernel<<<blocks, Threads, 0, stream>>>(csr->nz, c->entry, c->unused[0], csr->a, c->row, c->values);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
