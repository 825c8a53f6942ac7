/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order of rows on the GPU */

#include <cub/block/block_radix_sort.cuh>
#include "evchyb.h"
#include "scan.cuh"

/* What the kernels count for the host */
struct RowCounts {
  unsigned long long nempty, nlong;
};

/* Keys of all rows, and how many are empty and long */
__global__ static void KeysKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, uint64_t *keys, PetscInt *rows, RowCounts *counts)
{
  const PetscCount r   = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;
  PetscInt         len = 1;

  if (r < m) {
    len     = i[r + 1] - i[r];
    keys[r] = EVCHYBKey(&shape, (PetscInt)r, len, len ? j[i[r]] : 0);
    rows[r] = (PetscInt)r;
  }
  const int empty = __syncthreads_count(r < m && !len), longer = __syncthreads_count(r < m && len > shape.maxell);

  if (threadIdx.x == 0) {
    if (empty) atomicAdd(&counts->nempty, (unsigned long long)empty);
    if (longer) atomicAdd(&counts->nlong, (unsigned long long)longer);
  }
}

/* Rows of a window that a thread sorts: of small ones, and of the largest that a thread block sorts, the default */
static constexpr int WindowFew = 4, WindowMany = 16, WindowMost = WindowMany * EVCHYB_THREADS;

/* A thread block sorts a window: empty rows, short ones by length and, if that is asked for, first column, then long ones as they come. Much less work than sorting all rows by window, length and column. */
template <int WindowItems>
__global__ static void __launch_bounds__(EVCHYB_THREADS) WindowSortKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, PetscInt *rows, WindowCounts *windows)
{
  using Sort = cub::BlockRadixSort<uint64_t, EVCHYB_THREADS, WindowItems, PetscInt, 6>;
  __shared__ typename Sort::TempStorage temp;
  __shared__ int                        count[3];
  const PetscCount                      first = (PetscCount)blockIdx.x * window;
  const int                             n = (int)(m - first < window ? m - first : window), bits = shape.lenbits + shape.colbits;
  uint64_t                              keys[WindowItems];
  PetscInt                              row[WindowItems];

  if (threadIdx.x < 3) count[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    row[k]  = (PetscInt)(first + at);
    keys[k] = ~(uint64_t)0;
    if (at < n) {
      const PetscInt begin = i[first + at], len = i[first + at + 1] - begin;

      if (!len) keys[k] = 0;
      else if (len > shape.maxell) keys[k] = (uint64_t)EVCHYB_LONG << bits;
      else keys[k] = (uint64_t)EVCHYB_SHORT << bits | (uint64_t)len << shape.colbits | (shape.colbits ? (uint64_t)j[begin] >> shape.colshift : 0);
      if (!len || len > shape.maxell) atomicAdd(&count[len ? EVCHYB_LONG : EVCHYB_EMPTY], 1);
    }
  }
  Sort(temp).Sort(keys, row, 0, bits + 2);
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    if (at < n) rows[first + at] = row[k];
  }
  if (threadIdx.x == 0) {
    windows[blockIdx.x] = {count[EVCHYB_EMPTY], count[EVCHYB_LONG]};
    if (blockIdx.x == gridDim.x - 1) windows[gridDim.x] = {0, 0}; /* its place gets the totals */
  }
}

/* The windows' empty rows to the front, short ones behind them, long ones to the end; keys of the long ones */
__global__ static void WindowsGatherKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, const WindowCounts *__restrict__ windows, const PetscInt *__restrict__ rows, PetscInt *sorted, uint64_t *longkeys, RowCounts *counts)
{
  const PetscCount   first = (PetscCount)blockIdx.x * window, n = m - first < window ? m - first : window;
  const WindowCounts before = windows[blockIdx.x], next = windows[blockIdx.x + 1], total = windows[gridDim.x];
  const PetscCount   nempty = next.nempty - before.nempty, nshort = n - nempty - (next.nlong - before.nlong);
  const PetscCount   toshort = total.nempty + first - before.nempty - before.nlong;

  for (PetscCount k = threadIdx.x; k < n; k += blockDim.x) {
    const PetscInt row = rows[first + k];

    if (k < nempty) sorted[before.nempty + k] = row;
    else if (k < nempty + nshort) sorted[toshort + k - nempty] = row;
    else {
      const PetscCount at = before.nlong + k - nempty - nshort;

      sorted[m - total.nlong + at] = row;
      longkeys[at]                 = EVCHYBKey(&shape, row, i[row + 1] - i[row], j[i[row]]);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts->nempty = (unsigned long long)total.nempty;
    counts->nlong  = (unsigned long long)total.nlong;
  }
}

/* Sorted rows are all that is left of it. Windows leave few to sort: nkeys long rows at the most. */
struct Workspace {
  PetscInt     *sortedrows, *rows;
  uint64_t     *keys, *sortedkeys;
  RowCounts    *counts;
  WindowCounts *windows;
  char         *cub;
  size_t        cubbytes;
};

static size_t Carve(Workspace *w, PetscInt m, PetscInt nkeys, PetscInt nwindows, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->sortedrows, m);
  carver.Take(w->rows, m);
  carver.Take(w->keys, nkeys);
  carver.Take(w->sortedkeys, nkeys);
  carver.Take(w->counts, 1);
  carver.Take(w->windows, nwindows + 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static PetscErrorCode SortWindows(const GallopCSR *csr, PetscInt window, PetscInt nwindows, const EVCHYBKeyShape &shape, Workspace *w, cudaStream_t stream)
{
  const auto kernel = window <= WindowFew * EVCHYB_THREADS ? WindowSortKernel<WindowFew> : WindowSortKernel<WindowMany>;

  PetscFunctionBegin;
  kernel<<<nwindows, EVCHYB_THREADS, 0, stream>>>(csr->m, window, csr->i, csr->j, shape, w->rows, w->windows);
  GallopCheckLaunch();
  PetscCallCUDA(ExclusiveScan(w->cub, w->cubbytes, w->windows, (PetscCount)nwindows + 1, stream));
  WindowsGatherKernel<<<nwindows, EVCHYB_THREADS, 0, stream>>>(csr->m, window, csr->i, csr->j, shape, w->windows, w->rows, w->sortedrows, w->keys, w->counts);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SortAll(const GallopCSR *csr, const EVCHYBKeyShape &shape, Workspace *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->counts, 0, sizeof(*w->counts), stream));
  KeysKernel<<<GallopBlocksFor(csr->m, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(csr->m, csr->i, csr->j, shape, w->keys, w->rows, w->counts);
  GallopCheckLaunch();
  PetscCallCUDA(EVCHYBDeviceSortPairs(w->cub, w->cubbytes, w->keys, w->sortedkeys, w->rows, w->sortedrows, csr->m, shape.classbit + 2, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ static void __launch_bounds__(EVCHYB_THREADS) CountKernel(PetscInt m, PetscInt maxell, const PetscInt *__restrict__ i, RowCounts *counts)
{
  const PetscCount r     = GallopGlobalThread();
  const PetscInt   len   = r < m ? i[r + 1] - i[r] : 1;
  const int        empty = __syncthreads_count(!len), longer = __syncthreads_count(r < m && len > maxell);

  if (threadIdx.x == 0) {
    if (empty) atomicAdd(&counts->nempty, (unsigned long long)empty);
    if (longer) atomicAdd(&counts->nlong, (unsigned long long)longer);
  }
}

/* Waits for the counts of kernels, unless the host has the pattern of a few rows */
static PetscErrorCode GetCounts(const EVCHYBOptions *options, const GallopCSR *csr, const RowCounts *counted, EVCHYBRows *rows)
{
  RowCounts counts;

  PetscFunctionBegin;
  if (csr->host_i && csr->m < GALLOP_MANY_ROWS) EVCHYBRowsCount(options->maxell, csr->m, csr->host_i, rows);
  else {
    PetscCall(GallopDeviceCopyOut(&counts, counted, sizeof(counts)));
    rows->nempty = (PetscInt)counts.nempty;
    rows->nlong  = (PetscInt)counts.nlong;
    rows->nshort = csr->m - rows->nempty - rows->nlong;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBRowsCount_Device - How many rows are empty, short and long; sets nothing else. *fits is false when the GPU has no room for the counts. */
PetscErrorCode EVCHYBRowsCount_Device(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  cudaStream_t stream;
  void        *memory;

  PetscFunctionBegin;
  *rows = {};
  PetscCall(GallopWorkspaceMalloc(sizeof(RowCounts), &memory));
  *fits = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceZero(memory, sizeof(RowCounts)));
  CountKernel<<<GallopBlocksFor(csr->m, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(csr->m, options->maxell, csr->i, static_cast<RowCounts *>(memory));
  GallopCheckLaunch();
  PetscCall(GetCounts(options, csr, static_cast<RowCounts *>(memory), rows));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Windows leave long rows as they come. *fits is false where there is no room to sort them. */
static PetscErrorCode SortLong(PetscInt nlong, int bits, const Workspace *w, PetscInt *rows, PetscBool *fits)
{
  size_t       bytes;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, bytes, w->keys, w->sortedkeys, w->rows, rows, nlong, bits, stream));
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  *fits = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemcpyAsync(w->rows, rows, nlong * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
  PetscCallCUDA(EVCHYBDeviceSortPairs(memory, bytes, w->keys, w->sortedkeys, w->rows, rows, nlong, bits, stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBRowsSort_Device - Sorts all rows, empty ones too. *fits is false, and there are none, when the GPU has no room; else EVCHYBRowsFree_Device() frees them. */
PetscErrorCode EVCHYBRowsSort_Device(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  const PetscInt m = csr->m, window = options->window;
  const bool     bywindow = window >= EVCHYB_THREADS && window <= WindowMost;
  const PetscInt nwindows = bywindow ? (m + window - 1) / window : 0, nkeys = bywindow ? PetscMin(m, (PetscInt)(csr->nz / (options->maxell + 1))) : m;
  Workspace      w = {};
  EVCHYBKeyShape shape;
  cudaStream_t   stream;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  *rows = {};
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  EVCHYBGetKeyShape(options, csr, &shape);
  if (bywindow) PetscCallCUDA(ExclusiveScan(nullptr, w.cubbytes, w.windows, (PetscCount)nwindows + 1, stream));
  else PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, nkeys, shape.classbit + 2, stream));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, m, nkeys, nwindows, NULL), &rows->memory));
  if (!rows->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, m, nkeys, nwindows, rows->memory);
  if (bywindow) PetscCall(SortWindows(csr, window, nwindows, shape, &w, stream));
  else PetscCall(SortAll(csr, shape, &w, stream));
  PetscCall(GetCounts(options, csr, w.counts, rows));
  *fits = PETSC_TRUE;
  if (bywindow && rows->nlong > 1) PetscCall(SortLong(rows->nlong, shape.classbit, &w, w.sortedrows + m - rows->nlong, fits));
  if (!*fits) PetscCall(EVCHYBRowsFree_Device(rows));
  rows->all      = w.sortedrows;
  rows->nonempty = w.sortedrows + rows->nempty;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBRowsFree_Device(EVCHYBRows *rows)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(rows->longrows));
  PetscCall(GallopWorkspaceFree(rows->memory));
  rows->memory = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
