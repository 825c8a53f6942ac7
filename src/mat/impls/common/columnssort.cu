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

/* The row of each entry */
static PetscErrorCode RowsOf(const GallopCSR *csr, const GallopColumns *c, PetscInt *rows, cudaStream_t stream)
{
  size_t bytes = c->cubbytes;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(rows, 0, (size_t)csr->nz * sizeof(*rows), stream));
  FirstsKernel<<<GallopBlocksFor(csr->m, Threads), Threads, 0, stream>>>(csr->m, csr->i, rows);
  GallopCheckLaunch();
  PetscCallCUDA(Spread(c->cub, bytes, rows, csr->nz, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopColumnsSortByCUBNeeds(const GallopCSR *csr, size_t *bytes, cudaStream_t stream)
{
  cub::DoubleBuffer<PetscInt> keys, entries;
  size_t                      other;

  PetscFunctionBegin;
  PetscCallCUDA(Sort(nullptr, *bytes, keys, entries, csr, stream));
  PetscCallCUDA(Spread(nullptr, other, nullptr, csr->nz, stream));
  *bytes = PetscMax(*bytes, other);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopColumnsSortByCUB - As GallopColumnsSort(), for columns of any lengths; whether columns increase is told only with a limit */
PetscErrorCode GallopColumnsSortByCUB(const GallopCSR *csr, PetscInt limit, PetscScalar *values, GallopColumns *c, cudaStream_t stream)
{
  const unsigned int          entries = GallopBlocksFor(csr->nz, Threads), cols = GallopBlocksFor((PetscCount)csr->n + 1, Threads);
  cub::DoubleBuffer<PetscInt> keys(reinterpret_cast<PetscInt *>(c->pairs), GallopColumnsSecondHalf(c, csr->nz)), places(c->first, c->second);
  size_t                      bytes = c->cubbytes;
  PetscInt                   *rows;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(c->counts, 0, sizeof(*c->counts), stream));
  if (limit) PetscCall(RowsOf(csr, c, places.Alternate(), stream));
  KeysKernel<<<entries, Threads, 0, stream>>>(csr->nz, csr->n, limit, csr->i, csr->j, places.Alternate(), keys.Current(), places.Current(), c->longrows, c->counts);
  GallopCheckLaunch();
  PetscCallCUDA(Sort(c->cub, bytes, keys, places, csr, stream));
  BeginsKernel<<<cols, Threads, 0, stream>>>(csr->n, csr->nz, keys.Current(), c->begin);
  GallopCheckLaunch();
  LongestKernel<<<PetscMin(cols, 512u), Threads, 0, stream>>>(csr->n, c->begin, c->counts);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&c->found, c->counts, sizeof(c->found)));
  rows         = keys.Alternate();
  c->entry     = places.Current();
  c->row       = keys.Current();
  c->unused[0] = rows;
  c->unused[1] = places.Alternate();
  PetscCall(RowsOf(csr, c, rows, stream));
  GatherKernel<<<entries, Threads, 0, stream>>>(csr->nz, c->entry, rows, csr->a, c->row, values);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
