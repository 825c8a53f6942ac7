/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order of rows on the GPU */

#include <cub/block/block_radix_sort.cuh>
#include "evchyb.h"
#include "scan.cuh"
#include "../common/bits.h"

/* Keys of all rows, and how many are empty and long */
__global__ static void KeysKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, uint64_t *keys, PetscInt *rows, EVCHYBRowCounts *counts)
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
static_assert(WindowMost == EVCHYB_WINDOW_MOST && EVCHYB_THREADS == EVCHYB_WINDOW_LEAST, "windows that thread blocks sort");

/* What a thread block counts in a window */
static __device__ __forceinline__ void StoreWindow(const int count[3], WindowCounts *windows, EVCHYBRowCounts *counts)
{
  if (threadIdx.x) return;
  windows[blockIdx.x] = {count[EVCHYB_EMPTY], count[EVCHYB_LONG]};
  if (blockIdx.x == gridDim.x - 1) windows[gridDim.x] = {0, 0}; /* its place gets the totals */
  if (blockIdx.x == 0) counts->ended = 0;
}

/* By length alone a key has room for the row's place in the window, so that nothing else is sorted, and more threads sort fewer rows each */
static constexpr int LengthThreads = 512, PlaceBits = 12;
static_assert(1 << PlaceBits >= WindowMost, "places of a window");

/* A thread block sorts a window: empty rows, short ones by length, then long ones as they come. Much less work than sorting all rows by window and length. bits: of the length of a short row and one more */
template <int WindowItems>
__global__ static void __launch_bounds__(LengthThreads) LengthSortKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, PetscInt maxell, int bits, PetscInt *rows, WindowCounts *windows, EVCHYBRowCounts *counts)
{
  using Sort = cub::BlockRadixSort<uint32_t, LengthThreads, WindowItems, cub::NullType, 5>;
  __shared__ typename Sort::TempStorage temp;
  __shared__ int                        count[3];
  const PetscCount                      first = (PetscCount)blockIdx.x * window;
  const int                             n     = (int)(m - first < window ? m - first : window);
  uint32_t                              keys[WindowItems];

  if (threadIdx.x < 3) count[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    keys[k] = ~(uint32_t)0;
    if (at < n) {
      const PetscInt len = i[first + at + 1] - i[first + at];

      keys[k] = (uint32_t)PetscMin(len, maxell + 1) << PlaceBits | (uint32_t)at;
      if (!len || len > maxell) atomicAdd(&count[len ? EVCHYB_LONG : EVCHYB_EMPTY], 1);
    }
  }
  Sort(temp).Sort(keys, PlaceBits, PlaceBits + bits);
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    if (at < n) rows[first + at] = (PetscInt)first + (PetscInt)(keys[k] & ((1u << PlaceBits) - 1));
  }
  StoreWindow(count, windows, counts);
}

/* The same where rows of one length are sorted by their first column */
template <int WindowItems>
__global__ static void __launch_bounds__(EVCHYB_THREADS) WindowSortKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, PetscInt *rows, WindowCounts *windows, EVCHYBRowCounts *counts)
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
      else keys[k] = (uint64_t)EVCHYB_SHORT << bits | (uint64_t)len << shape.colbits | (uint64_t)j[begin] >> shape.colshift;
      if (!len || len > shape.maxell) atomicAdd(&count[len ? EVCHYB_LONG : EVCHYB_EMPTY], 1);
    }
  }
  Sort(temp).Sort(keys, row, 0, bits + 2);
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    if (at < n) rows[first + at] = row[k];
  }
  StoreWindow(count, windows, counts);
}

/* Empty and long rows of a window: of those before it, of its own, and of all. Of more than EVCHYB_FEW_WINDOWS those before have been added up. */
struct WindowSums {
  WindowCounts before, own, all;
};

template <bool Few>
static __device__ __forceinline__ WindowSums SumWindows(const WindowCounts *__restrict__ windows)
{
  const int      window = (int)blockIdx.x, num = (int)gridDim.x;
  WindowSums     sums;
  __shared__ int sum[4]; /* of few windows there are fewer rows than an int counts */

  if constexpr (!Few) {
    const WindowCounts next = windows[window + 1];

    sums.before = windows[window];
    sums.own    = {next.nempty - sums.before.nempty, next.nlong - sums.before.nlong};
    sums.all    = windows[num];
  } else {
    int part[4] = {0, 0, 0, 0};

    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    for (int k = (int)threadIdx.x; k < num; k += EVCHYB_THREADS) {
      const WindowCounts counts = windows[k];

      part[2] += (int)counts.nempty;
      part[3] += (int)counts.nlong;
      if (k >= window) continue;
      part[0] += (int)counts.nempty;
      part[1] += (int)counts.nlong;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
      part[k] = GallopGroupSum(part[k], WarpSize);
      if (part[k] && threadIdx.x % WarpSize == 0) atomicAdd(&sum[k], part[k]);
    }
    __syncthreads();
    sums.before = {sum[0], sum[1]};
    sums.own    = windows[window];
    sums.all    = {sum[2], sum[3]};
  }
  return sums;
}

/* Long rows that the last thread block of a launch sorts: more would take so many registers and so much shared memory that few thread blocks run at once */
static constexpr int FewLongItems = 4, FewLong = FewLongItems * EVCHYB_THREADS;

/* Long rows, which windows leave as they come: by length and, if that is asked for, first column. Other thread blocks have written them. */
static __device__ __forceinline__ void SortFewLong(int nlong, int bits, const uint64_t *longkeys, PetscInt *rows)
{
  using Sort = cub::BlockRadixSort<uint64_t, EVCHYB_THREADS, FewLongItems, PetscInt>;
  __shared__ typename Sort::TempStorage temp;
  uint64_t                              keys[FewLongItems];
  PetscInt                              row[FewLongItems];

#pragma unroll
  for (int k = 0; k < FewLongItems; k++) {
    const int at = threadIdx.x * FewLongItems + k;

    keys[k] = at < nlong ? GallopLoadFromL2(longkeys + at) : ~(uint64_t)0;
    row[k]  = at < nlong ? GallopLoadFromL2(rows + at) : 0;
  }
  Sort(temp).Sort(keys, row, 0, bits);
#pragma unroll
  for (int k = 0; k < FewLongItems; k++) {
    const int at = threadIdx.x * FewLongItems + k;

    if (at < nlong) rows[at] = row[k];
  }
}

/* The windows' empty rows to the front, short ones behind them, long ones to the end, where the last thread block sorts them unless they are too many; keys of the long ones */
template <bool Few>
__global__ static void __launch_bounds__(EVCHYB_THREADS) WindowsGatherKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, const WindowCounts *__restrict__ windows, const PetscInt *__restrict__ rows, PetscInt *sorted, uint64_t *longkeys, EVCHYBRowCounts *counts)
{
  const PetscCount first = (PetscCount)blockIdx.x * window, n = m - first < window ? m - first : window;
  const WindowSums sums   = SumWindows<Few>(windows);
  const PetscCount nempty = sums.own.nempty, nshort = n - nempty - sums.own.nlong;
  const PetscCount toshort = sums.all.nempty + first - sums.before.nempty - sums.before.nlong;
  __shared__ bool  last;

  for (PetscCount k = threadIdx.x; k < n; k += blockDim.x) {
    const PetscInt row = rows[first + k];

    if (k < nempty) sorted[sums.before.nempty + k] = row;
    else if (k < nempty + nshort) sorted[toshort + k - nempty] = row;
    else {
      const PetscCount at = sums.before.nlong + k - nempty - nshort;

      sorted[m - sums.all.nlong + at] = row;
      longkeys[at]                    = EVCHYBKey(&shape, row, i[row + 1] - i[row], j[i[row]]);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts->nempty = (unsigned long long)sums.all.nempty;
    counts->nlong  = (unsigned long long)sums.all.nlong;
  }
  if (sums.all.nlong < 2 || sums.all.nlong > FewLong) return;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&counts->ended, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  SortFewLong((int)sums.all.nlong, shape.classbit, longkeys, sorted + m - sums.all.nlong);
}

/* Sorted rows are all that is left of it. Windows leave few to sort: nkeys long rows at the most. */
struct Workspace {
  PetscInt        *sortedrows, *rows;
  uint64_t        *keys, *sortedkeys;
  EVCHYBRowCounts *counts;
  WindowCounts    *windows;
  char            *cub;
  size_t           cubbytes;
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

/* Whether thread blocks sort windows, and with what: few or all long rows have keys */
struct Ways {
  bool           bywindow;
  PetscInt       window, nwindows, nkeys;
  EVCHYBKeyShape shape;
};

static PetscErrorCode GetWays(const EVCHYBOptions *options, const GallopCSR *csr, Ways *ways, Workspace *w)
{
  const PetscInt window = options->window;

  PetscFunctionBegin;
  ways->window   = window;
  ways->nwindows = EVCHYBNumWindows(csr->m, window);
  ways->bywindow = ways->nwindows > 0;
  ways->nkeys    = ways->bywindow ? (PetscInt)PetscMin((PetscCount)csr->m, csr->nz / (options->maxell + 1)) : csr->m;
  EVCHYBGetKeyShape(options, csr, &ways->shape);
  w->cubbytes = 0;
  if (!ways->bywindow) PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, w->cubbytes, w->keys, w->sortedkeys, w->rows, w->sortedrows, ways->nkeys, ways->shape.classbit + 2, NULL));
  else if (ways->nwindows > EVCHYB_FEW_WINDOWS) PetscCallCUDA(ExclusiveScan(nullptr, w->cubbytes, w->windows, (PetscCount)ways->nwindows + 1, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SortWindows(const GallopCSR *csr, const Ways &ways, Workspace *w, cudaStream_t stream)
{
  constexpr int Fewer = EVCHYB_THREADS * WindowFew / LengthThreads, More = WindowMost / LengthThreads;
  const bool    few = ways.nwindows <= EVCHYB_FEW_WINDOWS, narrow = ways.window <= WindowFew * EVCHYB_THREADS;
  const auto    gather = few ? WindowsGatherKernel<true> : WindowsGatherKernel<false>;

  PetscFunctionBegin;
  if (ways.shape.colbits) {
    const auto sort = narrow ? WindowSortKernel<WindowFew> : WindowSortKernel<WindowMany>;

    sort<<<ways.nwindows, EVCHYB_THREADS, 0, stream>>>(csr->m, ways.window, csr->i, csr->j, ways.shape, w->rows, w->windows, w->counts);
  } else {
    const auto sort = narrow ? LengthSortKernel<Fewer> : LengthSortKernel<More>;

    sort<<<ways.nwindows, LengthThreads, 0, stream>>>(csr->m, ways.window, csr->i, ways.shape.maxell, GallopBitsFor((uint64_t)ways.shape.maxell + 1), w->rows, w->windows, w->counts);
  }
  GallopCheckLaunch();
  if (!few) PetscCallCUDA(ExclusiveScan(w->cub, w->cubbytes, w->windows, (PetscCount)ways.nwindows + 1, stream));
  gather<<<ways.nwindows, EVCHYB_THREADS, 0, stream>>>(csr->m, ways.window, csr->i, csr->j, ways.shape, w->windows, w->rows, w->sortedrows, w->keys, w->counts);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SortAll(const GallopCSR *csr, const Ways &ways, Workspace *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->counts, 0, sizeof(*w->counts), stream));
  KeysKernel<<<GallopBlocksFor(csr->m, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(csr->m, csr->i, csr->j, ways.shape, w->keys, w->rows, w->counts);
  GallopCheckLaunch();
  PetscCallCUDA(EVCHYBDeviceSortPairs(w->cub, w->cubbytes, w->keys, w->sortedkeys, w->rows, w->sortedrows, csr->m, ways.shape.classbit + 2, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBRowsSortLong_Device - Sorts the long rows of sorted rows that have been counted, where they were too many for a thread block: windows leave them as they come

  Output Parameters:
+ moved - they have been sorted here
- fits  - false where there is no room for that
*/
PetscErrorCode EVCHYBRowsSortLong_Device(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *moved, PetscBool *fits)
{
  Workspace    w = {};
  Ways         ways;
  size_t       bytes;
  void        *memory;
  PetscInt    *longrows;
  cudaStream_t stream;

  PetscFunctionBegin;
  *moved = PETSC_FALSE;
  *fits  = PETSC_TRUE;
  PetscCall(GetWays(options, csr, &ways, &w));
  if (!ways.bywindow || rows->nlong <= FewLong) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, csr->m, ways.nkeys, ways.nwindows, rows->memory);
  longrows = w.sortedrows + csr->m - rows->nlong;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, bytes, w.keys, w.sortedkeys, w.rows, longrows, rows->nlong, ways.shape.classbit, stream));
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  *fits = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemcpyAsync(w.rows, longrows, rows->nlong * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
  PetscCallCUDA(EVCHYBDeviceSortPairs(memory, bytes, w.keys, w.sortedkeys, w.rows, longrows, rows->nlong, ways.shape.classbit, stream));
  PetscCall(GallopWorkspaceFree(memory));
  *moved = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBRowsSort_Device - Sorts all rows, empty ones too. Nothing waits for that: rows that had not been counted before have been counted on the GPU only.

  Input Parameter:
. rows - none, or their numbers

  Output Parameter:
. fits - false when the GPU has no room, and there are none; else EVCHYBRowsFree_Device() frees them

  Note:
  Where rows have been counted later, EVCHYBRowsSortLong_Device() is to be called.
*/
PetscErrorCode EVCHYBRowsSort_Device(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBRows *rows, PetscBool *fits)
{
  Workspace    w = {};
  Ways         ways;
  cudaStream_t stream;
  PetscBool    moved;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GetWays(options, csr, &ways, &w));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, csr->m, ways.nkeys, ways.nwindows, NULL), &rows->memory));
  if (!rows->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, csr->m, ways.nkeys, ways.nwindows, rows->memory);
  if (ways.bywindow) PetscCall(SortWindows(csr, ways, &w, stream));
  else PetscCall(SortAll(csr, ways, &w, stream));
  rows->all    = w.sortedrows;
  rows->counts = w.counts;
  *fits        = PETSC_TRUE;
  if (rows->counted) {
    EVCHYBRowsSetCounts(csr->m, rows->nempty, rows->nlong, rows);
    PetscCall(EVCHYBRowsSortLong_Device(options, csr, rows, &moved, fits));
    if (!*fits) PetscCall(EVCHYBRowsFree_Device(rows));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBRowsFree_Device(EVCHYBRows *rows)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(rows->longrows));
  PetscCall(GallopWorkspaceFree(rows->memory));
  rows->all = rows->nonempty = NULL;
  rows->counts               = NULL;
  rows->memory               = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
