/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Entries of CSR arrays in order of columns. Each entry takes a number in its column, in whatever order the GPU counts, and goes to its column with its row; lanes then put the entries of a column
  into their order, so that the result is the same in every run. That reads and writes entries twice, a sort of CUB's once for each byte of a column's number.
*/

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include "columns.h"

static constexpr int      Threads  = 256;
static constexpr PetscInt RowShort = 8192; /* entries of a row that lanes walk along; with longer rows CUB sorts, which takes all entries alike */

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
#pragma unroll 4
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
#pragma unroll 4
  for (PetscInt k = begin + lane; k < end; k += lanes) pairs[begins[j[k]] + numbers[k]] = GallopColumnEntry::Of((PetscInt)r, k, begin);
}

static constexpr int Room = 16384 / (int)sizeof(GallopColumnEntry); /* entries that a thread block sorts at a time */
static_assert(Room >= GallopColumnShort && Room <= 65536, "a column fits, and places among them fit 16 bits");

/*
  Entries of each column into their order: as many are before one as have a smaller place in CSR. A thread block takes neighbouring columns, as many as fit. Values may lie where the pairs are, if
  both are of one size: the block has read its own before it writes.
*/
__global__ static void __launch_bounds__(Threads) OrderKernel(PetscInt n, PetscInt each, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ begins, const GallopColumnEntry *pairs, const PetscScalar *__restrict__ a, PetscInt *row, PetscInt *entry, PetscScalar *values)
{
  __shared__ GallopColumnEntry pair[Room];
  __shared__ unsigned short    order[Room];
  __shared__ PetscInt          offsets[Threads + 1];
  __shared__ int               fits;
  const PetscCount             first = (PetscCount)blockIdx.x * each, last = first + each < n ? first + each : n;

  for (PetscCount c = first; c < last;) {
    const int      most  = (int)(last - c < Threads ? last - c : Threads);
    const PetscInt begin = begins[c];

    if (threadIdx.x == 0) fits = 0;
    __syncthreads();
    if ((int)threadIdx.x < most) {
      const PetscInt end = begins[c + threadIdx.x + 1] - begin;

      offsets[threadIdx.x + 1] = end;
      if (end <= Room) atomicMax(&fits, (int)threadIdx.x + 1);
    }
    if (threadIdx.x == 0) offsets[0] = 0;
    __syncthreads();
    const int columns = fits, length = (int)offsets[columns];

    for (int k = threadIdx.x; k < length; k += Threads) pair[k] = pairs[begin + k];
    __syncthreads();
    for (int col = threadIdx.x / lanes; col < columns; col += Threads / lanes) {
      const int from = (int)offsets[col], to = (int)offsets[col + 1];

      for (int k = from + (int)threadIdx.x % lanes; k < to; k += lanes) {
        const GallopColumnEntry::Key own = pair[k].Order();
        int                          at  = from;

        for (int l = from; l < to; l++) at += pair[l].Order() < own;
        order[at] = (unsigned short)k;
      }
    }
    __syncthreads();
#pragma unroll 4
    for (int k = threadIdx.x; k < length; k += Threads) {
      const GallopColumnEntry own = pair[order[k]];
      const PetscInt          at  = own.Entry(i);

      row[begin + k] = (PetscInt)own.row;
      if (entry) entry[begin + k] = at;
      if (values) values[begin + k] = a[at];
    }
    __syncthreads();
    c += columns;
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

struct Workspace {
  unsigned int       *count; /* [n + 1] */
  GallopColumnEntry  *pairs; /* [nz] without values in the memory of the unused arrays, which are of use only later */
  GallopColumnsFound *found;
  char               *cub;
  size_t              cubbytes;
};

static constexpr bool InPlace = sizeof(PetscScalar) == sizeof(GallopColumnEntry); /* values take the place of pairs */

static size_t Carve(const GallopCSR *csr, PetscInt limit, PetscBool withvalues, Workspace *w, GallopColumns *c, void *base)
{
  GallopCarver carver(base);

  carver.Take(c->begin, (PetscCount)csr->n + 1);
  carver.Take(w->count, (PetscCount)csr->n + 1);
  if (withvalues) carver.Take(w->pairs, csr->nz);
  else {
    carver.Take(c->unused[0], 2 * csr->nz + 64);
    c->unused[1] = base ? c->unused[0] + (csr->nz + 63) / 64 * 64 : NULL; /* where CUB likes arrays to begin */
    w->pairs     = reinterpret_cast<GallopColumnEntry *>(c->unused[0]);
  }
  carver.Take(c->row, csr->nz);
  c->entry     = NULL;
  c->values    = NULL;
  if (!withvalues) carver.Take(c->entry, csr->nz);
  else if (InPlace) c->values = reinterpret_cast<PetscScalar *>(w->pairs);
  else carver.Take(c->values, csr->nz);
  if (limit) carver.Take(c->longrows, csr->nz / limit + 1);
  carver.Take(w->found, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static cudaError_t Sum(void *temp, size_t &bytes, const Workspace *w, const GallopColumns *c, PetscInt n, cudaStream_t stream)
{
  return cub::DeviceScan::ExclusiveScan(temp, bytes, w->count, c->begin, cuda::std::plus<>(), PetscInt(0), (PetscCount)n + 1, stream);
}

/*
  GallopColumnsCount - Numbers the entries of each column, in any order

  Input Parameters:
+ csr    - arrays on the GPU
. limit  - rows with more entries are left out; 0 for none
- stream - where

  Output Parameters, on the GPU:
+ count    - [n] entries of each column, zeroed before
. numbers  - [nz] the number of each entry among those of its column
. longrows - rows that were left out, in any order
- found    - nlong and unsorted, and longest only where it is more than GallopColumnShort: then the rest is not complete. Zeroed before.
*/
PetscErrorCode GallopColumnsCount(const GallopCSR *csr, PetscInt limit, unsigned int *count, unsigned char *numbers, PetscInt *longrows, GallopColumnsFound *found, cudaStream_t stream)
{
  const int lanes = GallopColumnsLanes(csr->nz, csr->m, GallopColumnsRowLanes);

  PetscFunctionBegin;
  CountKernel<<<GallopBlocksFor((PetscCount)csr->m * lanes, Threads), Threads, 0, stream>>>(csr->m, limit, lanes, csr->i, csr->j, count, numbers, longrows, found);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopColumnsSort - Sorts entries by their columns, and in each as they come in CSR

  Input Parameters:
+ csr        - arrays on the GPU
. limit      - rows with more entries are left out, and listed in c->longrows; 0 for none
. withvalues - the values of entries rather than their places in CSR
- stream     - where

  Output Parameter:
. c - what GallopColumns says, in memory that is the caller's to free; none where the GPU has no room
*/
PetscErrorCode GallopColumnsSort(const GallopCSR *csr, PetscInt limit, PetscBool withvalues, GallopColumns *c, cudaStream_t stream)
{
  const int          ofrow = GallopColumnsLanes(csr->nz, csr->m, GallopColumnsRowLanes), ofcolumn = GallopColumnsLanes(csr->nz, csr->n, 1);
  const unsigned int rows = GallopBlocksFor((PetscCount)csr->m * ofrow, Threads);
  const PetscInt     each = (PetscInt)PetscMax(1, PetscMin(Threads, 3 * Room / 4 * (PetscCount)csr->n / PetscMax(csr->nz, 1))); /* columns of a thread block, which fit at once if they are about equal */
  Workspace          w    = {};
  unsigned char     *numbers;
  int                processors;

  PetscFunctionBegin;
  *c = {};
  if (csr->m > GallopColumnRows) {
    PetscCall(GallopColumnsSortByCUB(csr, limit, withvalues, c, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GallopDeviceGetProcessors(&processors));
  PetscCallCUDA(Sum(nullptr, w.cubbytes, &w, c, csr->n, stream));
  c->bytes = Carve(csr, limit, withvalues, &w, c, NULL);
  PetscCall(GallopWorkspaceMalloc(c->bytes, &c->memory));
  if (!c->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(csr, limit, withvalues, &w, c, c->memory);
  numbers = reinterpret_cast<unsigned char *>(c->row); /* until rows are there */
  PetscCallCUDA(cudaMemsetAsync(w.found, 0, sizeof(*w.found), stream));
  PetscCallCUDA(cudaMemsetAsync(w.count, 0, (size_t)csr->n * sizeof(*w.count), stream));
  PetscCall(GallopColumnsCount(csr, limit, w.count, numbers, c->longrows, w.found, stream));
  LongestKernel<<<PetscMin(GallopBlocksFor(csr->n, Threads), 4u * (unsigned int)processors), Threads, 0, stream>>>(csr->n, w.count, w.found);
  GallopCheckLaunch();
  PetscCallCUDA(Sum(w.cub, w.cubbytes, &w, c, csr->n, stream));
  PetscCall(GallopDeviceCopyOut(&c->found, w.found, sizeof(c->found)));
  if (c->found.longest > GallopColumnShort) {
    PetscCall(GallopWorkspaceFree(c->memory));
    PetscCall(GallopColumnsSortByCUB(csr, limit, withvalues, c, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ScatterKernel<<<rows, Threads, 0, stream>>>(csr->m, limit, ofrow, csr->i, csr->j, c->begin, numbers, w.pairs);
  GallopCheckLaunch();
  OrderKernel<<<GallopBlocksFor(csr->n, (int)each), Threads, 0, stream>>>(csr->n, each, ofcolumn, csr->i, c->begin, w.pairs, csr->a, c->row, c->entry, c->values);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
