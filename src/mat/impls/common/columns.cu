/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Entries of CSR arrays in order of columns. Each entry takes a number in its column, in whatever order the GPU counts, and goes to its column with its row; lanes then put the entries of a column
  into their order, so that the result is the same in every run. That reads and writes entries twice, a sort of CUB's once for each byte of a column's number.
*/

#include <cub/device/device_scan.cuh>
#include "columns.h"

static constexpr int      Threads  = 256;
static constexpr PetscInt RowShort = 8192; /* entries of a row that lanes walk along; with longer rows CUB sorts, which takes all entries alike */

/* Lanes, a power of two, for rows or columns with nz entries together, of which a lane has about each */
static int LanesFor(PetscCount nz, PetscInt n, int each)
{
  int lanes = 1;

  while (lanes < WarpSize && (PetscCount)lanes * n * each < nz) lanes *= 2;
  return lanes;
}

/* A number for each entry in its column, and how many there are in each. Ends early when a column, or a row that is not left out, turns out to be long. */
__global__ static void __launch_bounds__(Threads) CountKernel(PetscInt m, PetscInt limit, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, unsigned int *count, unsigned char *numbers, PetscInt *longrows, GallopColumnsFound *found)
{
  const PetscCount r    = GallopGlobalThread() / lanes;
  const int        lane = (int)(threadIdx.x % lanes);

  if (r >= m || found->longest > GallopColumnShort) return; /* an old value from L1 does no harm */
  const PetscInt begin = i[r], end = i[r + 1];

  if (limit && end - begin > limit) {
    if (!lane) longrows[atomicAdd(&found->nlong, 1)] = (PetscInt)r;
    return;
  }
  if (end - begin > RowShort) {
    *(volatile int *)&found->longest = GallopColumnShort + 1;
    return;
  }
  for (PetscInt k = begin + lane; k < end; k += lanes) {
    const PetscInt     c      = j[k];
    const unsigned int number = atomicAdd(count + c, 1u);

    if (number >= GallopColumnShort) {
      *(volatile int *)&found->longest = GallopColumnShort + 1;
      return;
    }
    numbers[k] = (unsigned char)number;
    if (k > begin && c <= j[k - 1]) *(volatile int *)&found->unsorted = 1;
  }
}

/* Entries to their columns */
__global__ static void __launch_bounds__(Threads) ScatterKernel(PetscInt m, PetscInt limit, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ begins, const unsigned char *__restrict__ numbers, GallopColumnEntry *pairs)
{
  const PetscCount r    = GallopGlobalThread() / lanes;
  const int        lane = (int)(threadIdx.x % lanes);

  if (r >= m) return;
  const PetscInt begin = i[r], end = i[r + 1];

  if (limit && end - begin > limit) return;
  for (PetscInt k = begin + lane; k < end; k += lanes) pairs[begins[j[k]] + numbers[k]] = {(PetscInt)r, k};
}

/* Entries of each column into their order: as many are before one as have a smaller place in CSR */
__global__ static void __launch_bounds__(Threads) OrderKernel(PetscInt n, int lanes, const PetscInt *__restrict__ begins, const GallopColumnEntry *__restrict__ pairs, const PetscScalar *__restrict__ a, PetscInt *entry, PetscInt *row, PetscScalar *values)
{
  const PetscCount c    = GallopGlobalThread() / lanes;
  const int        lane = (int)(threadIdx.x % lanes);

  if (c >= n) return;
  const PetscInt begin = begins[c], length = begins[c + 1] - begin;

  for (PetscInt k = lane; k < length; k += lanes) {
    const GallopColumnEntry own = pairs[begin + k];
    PetscInt                to  = begin;

    for (PetscInt l = 0; l < length; l++) to += pairs[begin + l].entry < own.entry;
    row[to] = own.row;
    if (entry) entry[to] = own.entry;
    if (values) values[to] = a[own.entry];
  }
}

/* The longest column, and 0 entries behind the last one: the sum of those before it is that of all */
__global__ static void __launch_bounds__(Threads) LongestKernel(PetscInt n, unsigned int *count, GallopColumnsFound *found)
{
  unsigned int most = 0;

  for (PetscCount c = GallopGlobalThread(); c < n; c += (PetscCount)gridDim.x * Threads) most = max(most, count[c]);
  most = GallopWarpMax(most);
  if (threadIdx.x % WarpSize == 0) atomicMax(&found->longest, (int)most);
  if (GallopGlobalThread() == 0) count[n] = 0;
}

static cudaError_t Sum(void *temp, size_t &bytes, const GallopColumns *c, PetscInt n, cudaStream_t stream)
{
  return cub::DeviceScan::ExclusiveScan(temp, bytes, c->count, c->begin, cuda::std::plus<>(), PetscInt(0), (PetscCount)n + 1, stream);
}

/* GallopColumnsPrepare - How much memory CUB's functions want, for GallopColumnsCarve() */
PetscErrorCode GallopColumnsPrepare(const GallopCSR *csr, GallopColumns *c, cudaStream_t stream)
{
  size_t bytes;

  PetscFunctionBegin;
  PetscCallCUDA(Sum(nullptr, bytes, c, csr->n, stream));
  PetscCall(GallopColumnsSortByCUBNeeds(csr, &c->cubbytes, stream));
  c->cubbytes = PetscMax(c->cubbytes, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopColumnsSort - Sorts entries by their columns, and in each as they come in CSR

  Input Parameters:
+ csr    - arrays on the GPU
. limit  - rows with more entries are left out, and listed in c->longrows; 0 for none
. values - NULL, or where values are to be, in the order of columns; then c->entry is not set
. c      - with memory, GallopColumnsCarve()
- stream - where

  Output Parameter:
. c - what GallopColumns says
*/
PetscErrorCode GallopColumnsSort(const GallopCSR *csr, PetscInt limit, PetscScalar *values, GallopColumns *c, cudaStream_t stream)
{
  const int          ofrow = LanesFor(csr->nz, csr->m, 8), ofcolumn = LanesFor(csr->nz, csr->n, 1); /* lanes of neighbouring rows often have neighbouring columns */
  const unsigned int rows = GallopBlocksFor((PetscCount)csr->m * ofrow, Threads), cols = GallopBlocksFor((PetscCount)csr->n * ofcolumn, Threads);
  unsigned char     *numbers = reinterpret_cast<unsigned char *>(c->first); /* until rows are there */
  int                processors;

  PetscFunctionBegin;
  PetscCall(GallopDeviceGetProcessors(&processors));
  PetscCallCUDA(cudaMemsetAsync(c->counts, 0, sizeof(*c->counts), stream));
  PetscCallCUDA(cudaMemsetAsync(c->count, 0, (size_t)csr->n * sizeof(*c->count), stream));
  CountKernel<<<rows, Threads, 0, stream>>>(csr->m, limit, ofrow, csr->i, csr->j, c->count, numbers, c->longrows, c->counts);
  GallopCheckLaunch();
  LongestKernel<<<PetscMin(GallopBlocksFor(csr->n, Threads), 4u * (unsigned int)processors), Threads, 0, stream>>>(csr->n, c->count, c->counts);
  GallopCheckLaunch();
  PetscCallCUDA(Sum(c->cub, c->cubbytes, c, csr->n, stream));
  PetscCall(GallopDeviceCopyOut(&c->found, c->counts, sizeof(c->found)));
  if (c->found.longest > GallopColumnShort) {
    PetscCall(GallopColumnsSortByCUB(csr, limit, values, c, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ScatterKernel<<<rows, Threads, 0, stream>>>(csr->m, limit, ofrow, csr->i, csr->j, c->begin, numbers, c->pairs);
  GallopCheckLaunch();
  c->row       = c->first;
  c->entry     = c->second;
  c->unused[0] = reinterpret_cast<PetscInt *>(c->pairs);
  c->unused[1] = GallopColumnsSecondHalf(c, csr->nz);
  OrderKernel<<<cols, Threads, 0, stream>>>(csr->n, ofcolumn, c->begin, c->pairs, csr->a, values ? NULL : c->entry, c->row, values);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
