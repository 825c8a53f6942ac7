/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: the rows of both parts, and the order of column blocks */

#include <cub/block/block_radix_sort.cuh>
#include "../parts.cuh"
#include "../scan.cuh"
#include "plaindevice.h"

/* Sort of keys below 32, for no more than one thread block sorts at once: a fraction of what CUB's device-wide sort takes */
static constexpr int SortItems = 8, SortMost = ScanThreads * SortItems, SortBits = 5;
static_assert(EVCHYB_CLASSES < 1 << SortBits, "keys of the small sort");

/*
  Rows that are sorted by windows are in the order of these, and so are the first rows of column blocks: to put column blocks in the order of their first rows each window is sorted by itself, if there
  are not too many windows to be added up by each thread block. Long ones go behind all others by class: a window counts its column blocks for each class, with those up to EVCHYB_LONGCLASS as one.
*/
static constexpr int WindowBlocks = EVCHYB_WINDOW_MOST / EVCHYB_BLOCK, WindowKinds = EVCHYB_CLASSES - EVCHYB_LONGCLASS;

/* What the kernels count for the host */
struct Counts {
  unsigned long long nempty, nlong, nzell, LCmax, classes[EVCHYB_CLASSES], moved; /* moved: not 0 when some row is not where it comes */
};
static constexpr int NumCounts = (int)(sizeof(Counts) / sizeof(PetscCount));

/*
  What is found out before the host knows how many rows are empty or long: room is for as many column blocks and rows of SubCSR as there may be. Column blocks are in the order of the sorted rows, and
  order, bnz and csri as they are to be stored. The host waits for the end of bnz, the counts and csri, which follow each other.
*/
struct Arranged {
  PetscInt      nb, ncsr;         /* at most */
  PetscInt      window, nwindows; /* no windows: column blocks are sorted otherwise */
  unsigned int *windows;          /* [nwindows x WindowKinds] column blocks */
  uint64_t     *keys, *sortedkeys;
  PetscInt     *index, *order;
  PetscInt     *clen;    /* [nb] */
  PetscInt     *entries; /* [nb] of the matrix */
  PetscInt     *place;   /* [nb] where a column block is to come, if its rows are to be where they come in the matrix; -1 if they cannot */
  PetscCount   *bnz;     /* [nb + 1] */
  Counts       *counts;
  PetscCount   *csri; /* [ncsr + 1] */
  char         *cub;
  size_t        cubbytes;
};

static bool SortsSmall(const Arranged *w, PetscBool byrow)
{
  return w->nb <= SortMost && !byrow;
}

/* Whether column blocks are sorted by CUB */
static bool SortsAll(const Arranged *w, PetscBool byrow)
{
  return !SortsSmall(w, byrow) && !w->nwindows;
}

static size_t Carve(Arranged *w, PetscBool byrow, void *base)
{
  const PetscInt nsorted = SortsAll(w, byrow) ? w->nb : 0;
  GallopCarver   carver(base);

  carver.Take(w->windows, (PetscCount)w->nwindows * WindowKinds);
  carver.Take(w->keys, w->nb);
  carver.Take(w->sortedkeys, nsorted);
  carver.Take(w->index, nsorted);
  if (!nsorted) w->index = NULL;
  carver.Take(w->order, w->nb);
  carver.Take(w->clen, w->nb);
  carver.Take(w->entries, w->nb);
  carver.Take(w->place, w->nb);
  carver.Take(w->bnz, (PetscCount)w->nb + 1 + NumCounts + w->ncsr + 1);
  w->counts = base ? reinterpret_cast<Counts *>(w->bnz + w->nb + 1) : NULL;
  w->csri   = base ? w->bnz + w->nb + 1 + NumCounts : NULL;
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static __device__ __forceinline__ EVCHYBSplit SplitOf(PetscInt m, const EVCHYBRowCounts *rows)
{
  return EVCHYBSplitOf(m, (PetscInt)rows->nempty, (PetscInt)rows->nlong);
}

/* Lengths and sort keys of the column blocks, stored entries of the rows of SubCSR */
__global__ static void __launch_bounds__(EVCHYB_THREADS) LengthsKernel(PetscInt m, PetscBool byrow, int rowbits, const PetscInt *__restrict__ i, const PetscInt *__restrict__ all, const EVCHYBRowCounts *__restrict__ rows, const Arranged w)
{
  const PetscCount  warp     = GallopGlobalThread() / WarpSize;
  const int         lane     = threadIdx.x % WarpSize;
  const EVCHYBSplit split    = SplitOf(m, rows);
  const PetscInt   *nonempty = all + rows->nempty;

  if (blockIdx.x == 0 && threadIdx.x < NumCounts) reinterpret_cast<unsigned long long *>(w.counts)[threadIdx.x] = 0; /* for those who count next */
  if (warp < split.nb) {
    const PetscInt row = nonempty[warp * EVCHYB_BLOCK + lane], first = GallopShuffle(row, 0);
    PetscInt       len = i[row + 1] - i[row], longest = len, sum = len;
    const bool     follows = __all_sync(0xffffffffu, row == first + lane);

    for (int by = WarpSize / 2; by > 0; by /= 2) {
      const PetscInt other = __shfl_xor_sync(0xffffffffu, longest, by);

      longest = other > longest ? other : longest;
      sum += __shfl_xor_sync(0xffffffffu, sum, by);
    }
    if (lane == 0) {
      w.clen[warp]    = longest;
      w.entries[warp] = sum;
      w.place[warp]   = follows && first % EVCHYB_BLOCK == 0 ? first / EVCHYB_BLOCK : -1;
      w.keys[warp]    = EVCHYBBlockKey(byrow, rowbits, longest, first);
      if (w.nwindows) atomicAdd(&w.windows[first / w.window * WindowKinds + (PetscInt)(w.keys[warp] >> rowbits)], 1u);
      if (w.index) w.index[warp] = (PetscInt)warp;
    }
  } else if (warp < w.nb) { /* there are no more: these are sorted behind the others */
    if (lane == 0) {
      w.keys[warp] = ~(uint64_t)0;
      if (w.index) w.index[warp] = (PetscInt)warp;
    }
  } else {
    const PetscCount r = (warp - w.nb) * WarpSize + lane;

    if (r < split.ncsr) {
      const PetscInt row = nonempty[(PetscCount)split.nb * EVCHYB_BLOCK + r];

      w.csri[r] = EVCHYBRoundUp(i[row + 1] - i[row]);
    } else if (r <= w.ncsr) w.csri[r] = 0;
  }
}

/* What a thread block has counted; in 32 bits where that is enough, which atomics in shared memory are made for */
struct BlockCounts {
  unsigned long long nzell;
  unsigned int       LCmax, classes[EVCHYB_CLASSES], moved;
};

static __device__ __forceinline__ void NothingCounted(BlockCounts *here)
{
  if (threadIdx.x < EVCHYB_CLASSES) here->classes[threadIdx.x] = 0;
  if (threadIdx.x) return;
  here->nzell = 0;
  here->LCmax = here->moved = 0;
}

/* The class of a column block, -1 where the lane has none. The whole warp calls it. */
static __device__ __forceinline__ void CountClass(int own, BlockCounts *here)
{
  unsigned int left = __ballot_sync(0xffffffffu, own >= 0);

  while (left) { /* one after the other: neighbours are of few */
    const int          c    = __shfl_sync(0xffffffffu, own, __ffs((int)left) - 1);
    const unsigned int same = __ballot_sync(0xffffffffu, own == c);

    if (threadIdx.x % WarpSize == 0) atomicAdd(&here->classes[c], (unsigned int)__popc(same));
    left &= ~same;
  }
}

/* Entries and the longest of the lane's column blocks, and whether some row is moved. The whole warp calls it. */
static __device__ __forceinline__ void CountEntries(PetscCount entries, PetscInt longest, bool moved, BlockCounts *here)
{
  const PetscCount   sum  = GallopGroupSum(entries, WarpSize);
  const unsigned int most = GallopWarpMax((unsigned int)longest);

  if (moved) here->moved = 1;
  if (threadIdx.x % WarpSize || !sum) return;
  atomicAdd(&here->nzell, (unsigned long long)sum);
  atomicMax(&here->LCmax, most);
}

/* Whether row r of SubCSR is not where it comes */
static __device__ __forceinline__ bool IsMoved(const PetscInt *nonempty, const EVCHYBSplit &split, PetscCount r)
{
  const PetscCount at = (PetscCount)split.nb * EVCHYB_BLOCK + r;

  return r < split.ncsr && nonempty[at] != at;
}

/* Rows of SubCSR that a thread block adds up before the host knows how many there are; of more the host waits for their number first */
static constexpr PetscInt FewRows = 2 * ScanThreads * ScanItems - 1;

/* Where rows of SubCSR begin, from their lengths, by a thread block */
template <int Threads>
static __device__ __forceinline__ void SumRows(typename cub::BlockScan<PetscCount, Threads>::TempStorage &temp, PetscInt ncsr, PetscCount *csri)
{
  PetscCount item[ScanItems], total, before = 0;

  for (PetscInt base = 0; base <= ncsr && ncsr <= FewRows; base += Threads * ScanItems) {
    const PetscInt first = base + (PetscInt)threadIdx.x * ScanItems;

#pragma unroll
    for (int k = 0; k < ScanItems; k++) item[k] = first + k < ncsr ? csri[first + k] : 0;
    __syncthreads(); /* the sum before used the same shared memory */
    cub::BlockScan<PetscCount, Threads>(temp).ExclusiveScan(item, item, PetscCount(0), cuda::std::plus<>(), total);
#pragma unroll
    for (int k = 0; k < ScanItems; k++)
      if (first + k <= ncsr) csri[first + k] = before + item[k];
    before += total;
  }
}

/* The order of column blocks, where they begin, where rows of SubCSR begin, and all counts, by one thread block */
__global__ static void __launch_bounds__(ScanThreads) SmallOrderKernel(PetscInt m, const PetscInt *__restrict__ all, const EVCHYBRowCounts *__restrict__ rows, const Arranged w)
{
  using Sort = cub::BlockRadixSort<unsigned int, ScanThreads, SortItems, PetscInt, SortBits>;
  using Scan = cub::BlockScan<PetscCount, ScanThreads>;
  __shared__ union
  {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
  } temp;
  __shared__ BlockCounts here;
  const EVCHYBSplit      split    = SplitOf(m, rows);
  const PetscInt        *nonempty = all + rows->nempty;
  unsigned int           key[SortItems];
  PetscInt               index[SortItems], longest = 0;
  PetscCount             item[SortItems], total, entries = 0;
  bool                   moved = false;

  NothingCounted(&here);
#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    index[k] = threadIdx.x * SortItems + k;
    key[k]   = index[k] < split.nb ? (unsigned int)w.keys[index[k]] : (1u << SortBits) - 1;
  }
  Sort(temp.sort).Sort(key, index, 0, SortBits);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    const int      at  = threadIdx.x * SortItems + k;
    const bool     has = at < split.nb;
    const PetscInt len = has ? w.clen[index[k]] : 0;

    if (has) {
      w.order[at] = index[k];
      entries += w.entries[index[k]];
      moved = moved || w.place[index[k]] != at;
    }
    longest = PetscMax(longest, len);
    item[k] = (PetscCount)len * EVCHYB_BLOCK;
    CountClass(has ? (int)key[k] : -1, &here); /* where column blocks are in order of their classes */
  }
  Scan(temp.scan).ExclusiveScan(item, item, PetscCount(0), cuda::std::plus<>(), total);
#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    const int at = threadIdx.x * SortItems + k;

    if (at < split.nb) w.bnz[at] = item[k];
  }
  if (threadIdx.x == 0) w.bnz[split.nb] = w.bnz[w.nb] = total;
  SumRows<ScanThreads>(temp.scan, split.ncsr, w.csri);
  for (PetscCount r = threadIdx.x; r < split.ncsr; r += ScanThreads) moved = moved || IsMoved(nonempty, split, r);
  CountEntries(entries, longest, moved, &here);
  __syncthreads();
  if (threadIdx.x < EVCHYB_CLASSES) w.counts->classes[threadIdx.x] = here.classes[threadIdx.x];
  if (threadIdx.x) return;
  w.counts->nempty = rows->nempty;
  w.counts->nlong  = rows->nlong;
  w.counts->nzell  = here.nzell;
  w.counts->LCmax  = here.LCmax;
  w.counts->moved  = here.moved;
}

/* Each thread block has a window, of whose column blocks each thread has one: up to EVCHYB_LONGCLASS in the order of their first rows, others as they come. The grid has all windows. */
__global__ static void __launch_bounds__(WindowBlocks) WindowOrderKernel(int rowbits, const Arranged w)
{
  constexpr int           Groups = WindowBlocks / WindowKinds;
  const int               kind = threadIdx.x % WindowKinds, group = threadIdx.x / WindowKinds;
  __shared__ unsigned int before[WindowKinds], own[WindowKinds], all[WindowKinds];
  __shared__ uint64_t     key[WindowBlocks];
  unsigned int            first = 0, num = 0, sum[2] = {0, 0};

  if (threadIdx.x < WindowKinds) {
    before[threadIdx.x] = all[threadIdx.x] = 0;
    own[threadIdx.x]                       = w.windows[blockIdx.x * WindowKinds + threadIdx.x];
  }
  __syncthreads();
  for (unsigned int k = group; group < Groups && k < gridDim.x; k += Groups) {
    const unsigned int n = w.windows[k * WindowKinds + kind];

    sum[0] += k < blockIdx.x ? n : 0;
    sum[1] += n;
  }
  if (sum[0]) atomicAdd(&before[kind], sum[0]);
  if (sum[1]) atomicAdd(&all[kind], sum[1]);
  __syncthreads();
  for (int k = 0; k < WindowKinds; k++) {
    first += before[k];
    num += own[k];
  }
  if (threadIdx.x < num) key[threadIdx.x] = w.keys[first + threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= num) return;
  const uint64_t mine = key[threadIdx.x];
  const int      is   = (int)(mine >> rowbits);
  unsigned int   at   = before[is];

  for (int k = 0; k < is; k++) at += all[k];
  for (unsigned int k = 0; k < num; k++)
    if ((int)(key[k] >> rowbits) == is) at += is ? k < threadIdx.x : key[k] < mine;
  w.order[at] = (PetscInt)(first + threadIdx.x);
}

/* Column blocks in their order: entries for the prefix sum, and all counts. The last thread block adds up rows of SubCSR. */
__global__ static void __launch_bounds__(EVCHYB_THREADS) CountKernel(PetscInt m, const PetscInt *__restrict__ all, const EVCHYBRowCounts *__restrict__ rows, const Arranged w)
{
  using Scan = cub::BlockScan<PetscCount, EVCHYB_THREADS>;
  __shared__ typename Scan::TempStorage temp;
  __shared__ BlockCounts                here; /* few atomics per thread block */
  const PetscCount                      at    = GallopGlobalThread();
  const EVCHYBSplit                     split = SplitOf(m, rows);
  const bool                            has   = at < split.nb;
  const PetscInt                        from = has ? w.order[at] : 0, len = has ? w.clen[from] : 0;

  if (blockIdx.x == gridDim.x - 1) {
    SumRows<EVCHYB_THREADS>(temp, split.ncsr, w.csri);
    return;
  }
  NothingCounted(&here);
  __syncthreads();
  if (at <= w.nb) w.bnz[at] = (PetscCount)len * EVCHYB_BLOCK; /* one too many, so that the exclusive sum ends with the total */
  CountClass(has ? EVCHYBClass(len) : -1, &here);
  CountEntries(has ? w.entries[from] : 0, len, (has && w.place[from] != at) || IsMoved(all + rows->nempty, split, at), &here);
  __syncthreads();
  if (threadIdx.x < EVCHYB_CLASSES && here.classes[threadIdx.x]) atomicAdd(&w.counts->classes[threadIdx.x], (unsigned long long)here.classes[threadIdx.x]);
  if (threadIdx.x) return;
  if (here.nzell) atomicAdd(&w.counts->nzell, here.nzell);
  if (here.nzell) atomicMax(&w.counts->LCmax, (unsigned long long)here.LCmax);
  if (here.moved) w.counts->moved = 1;
  if (blockIdx.x) return;
  w.counts->nempty = rows->nempty;
  w.counts->nlong  = rows->nlong;
}

/* What is arranged goes to its place: column blocks, and behind them the rows of SubCSR, and empty ones */
__global__ static void __launch_bounds__(EVCHYB_THREADS) PlaceKernel(PetscInt nb, PetscInt ncsr, PetscInt nlisted, const PetscInt *__restrict__ empty, const PetscInt *__restrict__ sorted, const Arranged w, PetscInt *perm, PetscInt *clen, PetscCount *bnz, PetscCount *csri)
{
  const PetscCount at = GallopGlobalThread(), warp = at / WarpSize, behind = at - (PetscCount)nb * EVCHYB_BLOCK;

  if (warp < nb) {
    const PetscCount from = w.order[warp];

    perm[at] = sorted[from * EVCHYB_BLOCK + threadIdx.x % WarpSize];
    if (threadIdx.x % WarpSize) return;
    clen[warp] = w.clen[from];
    bnz[warp]  = w.bnz[warp];
    return;
  }
  if (behind == 0) bnz[nb] = w.bnz[nb];
  if (behind <= ncsr) csri[behind] = w.csri[behind];
  if (behind < ncsr) perm[at] = sorted[at];
  else if (behind - ncsr < nlisted) perm[at] = empty[behind - ncsr];
}

static size_t CarveRows(EVCHYBPlain *p, void *base)
{
  GallopCarver carver(base);

  carver.Take(p->perm, p->ell.n + p->csr.n + p->nlisted);
  carver.Take(p->ell.clen, p->ell.nb);
  carver.Take(p->ell.bnz, p->ell.nb + 1);
  carver.Take(p->csr.i, p->csr.n + 1);
  return carver.Bytes();
}

static size_t CarveEntries(EVCHYBPlain *p, void *base)
{
  GallopCarver carver(base);

  carver.Take(p->ell.j, p->ell.nz);
  carver.Take(p->ell.as, p->ell.nz);
  carver.Take(p->csr.j, p->csr.nz);
  carver.Take(p->csr.as, p->csr.nz);
  CarveParts(&p->csr.parts, &carver);
  return carver.Bytes();
}

/* The two allocations begin at perm and at ell.j */
static PetscErrorCode Free(EVCHYBPlain **p)
{
  PetscFunctionBegin;
  if (!*p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFree((*p)->perm));
  PetscCall(GallopDeviceFree((*p)->ell.j));
  PetscCall(PetscFree(*p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPlainFree_Device(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(Free(&ev->plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lengths, orders and places of column blocks and of rows of SubCSR */
static PetscErrorCode OrderColumnBlocks(const EVCHYBPlain *p, const GallopCSR *csr, const EVCHYBRows *rows, Arranged *w, cudaStream_t stream)
{
  const int rowbits = EVCHYBRowBits(csr->m);

  PetscFunctionBegin;
  if (w->nwindows) PetscCallCUDA(cudaMemsetAsync(w->windows, 0, (size_t)w->nwindows * WindowKinds * sizeof(*w->windows), stream));
  LengthsKernel<<<GallopBlocksFor((PetscCount)w->nb * WarpSize + w->ncsr + 1, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(csr->m, p->byrow, rowbits, csr->i, rows->all, rows->counts, *w);
  GallopCheckLaunch();
  if (SortsSmall(w, p->byrow)) {
    SmallOrderKernel<<<1, ScanThreads, 0, stream>>>(csr->m, rows->all, rows->counts, *w);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (w->nwindows) {
    WindowOrderKernel<<<w->nwindows, WindowBlocks, 0, stream>>>(rowbits, *w);
    GallopCheckLaunch();
  } else if (w->nb) PetscCallCUDA(EVCHYBDeviceSortPairs(w->cub, w->cubbytes, w->keys, w->sortedkeys, w->index, w->order, w->nb, EVCHYBBlockKeyBits(p->byrow, rowbits), stream));
  CountKernel<<<GallopBlocksFor(PetscMax((PetscCount)w->nb, (PetscCount)w->ncsr) + 1, EVCHYB_THREADS) + 1, EVCHYB_THREADS, 0, stream>>>(csr->m, rows->all, rows->counts, *w);
  GallopCheckLaunch();
  if (w->nb) PetscCallCUDA(ExclusiveScan(w->cub, w->cubbytes, w->bnz, (PetscCount)w->nb + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers that come to the host by one copy to pinned memory. Where SubCSR has more rows, these come by another one. */
static constexpr PetscCount Reply = 512;

/* The end of bnz, counts, and the beginning of csr.i */
static PetscErrorCode WaitForNumbers(const EVCHYB *ev, EVCHYBPlain *p, const Arranged *w, EVCHYBRows *rows, PetscCount numbers[Reply])
{
  Counts counts;

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyOut(numbers, w->bnz + w->nb, (size_t)PetscMin(Reply, 1 + NumCounts + w->ncsr + 1) * sizeof(*numbers)));
  PetscCall(PetscMemcpy(&counts, numbers + 1, sizeof(counts)));
  EVCHYBRowsSetCounts(ev->m, (PetscInt)counts.nempty, (PetscInt)counts.nlong, rows);
  EVCHYBPlainSplit(ev, rows, p);
  p->ell.nz    = numbers[0];
  p->nzell     = (PetscCount)counts.nzell;
  p->ell.LCmax = (PetscInt)counts.LCmax;
  p->inorder   = (PetscBool)!counts.moved;
  for (int c = 0; c < EVCHYB_CLASSES; c++) p->ell.classes[c] = (PetscInt)counts.classes[c];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* csr.i on the host, to be freed by the caller */
static PetscErrorCode GetRowPointer(EVCHYBPlain *p, Arranged *w, const PetscCount numbers[Reply], PetscCount **i, cudaStream_t stream)
{
  const PetscCount n = (PetscCount)p->csr.n + 1;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, i));
  if (1 + NumCounts + n <= Reply) PetscCall(PetscArraycpy(*i, numbers + 1 + NumCounts, n));
  else {
    if (p->csr.n > FewRows) PetscCallCUDA(EVCHYBDeviceScan(w->cub, w->cubbytes, w->csri, n, stream));
    PetscCall(GallopDeviceCopyOut(*i, w->csri, (size_t)n * sizeof(**i)));
  }
  p->csr.nz = (*i)[p->csr.n];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All but the entries. *i has csr.i on the host, to be freed by the caller; it stays NULL when the GPU has no room. */
static PetscErrorCode Arrange(EVCHYB *ev, EVCHYBPlain *p, const GallopCSR *csr, EVCHYBRows *rows, PetscCount **i)
{
  const PetscBool   counted  = rows->counted;
  const PetscInt    mostlong = (PetscInt)PetscMin((PetscCount)csr->m, csr->nz / (ev->options.maxell + 1));
  const EVCHYBSplit split    = EVCHYBSplitOf(csr->m, rows->nempty, rows->nlong);
  Arranged          w        = {};
  PetscCount        numbers[Reply];
  size_t            sortbytes = 0, scanbytes = 0;
  void             *base, *arrays            = NULL;
  PetscBool         moved = PETSC_FALSE, fits = PETSC_TRUE;
  cudaStream_t      stream;

  PetscFunctionBegin;
  *i = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  w.nb     = counted ? split.nb : csr->m / EVCHYB_BLOCK;
  w.ncsr   = counted ? split.ncsr : PetscMin(csr->m, EVCHYB_BLOCK - 1 + mostlong);
  p->byrow = (PetscBool)(ev->options.byrow && ev->nz >= ev->options.byrow);
  w.window = ev->options.window;
  if (p->byrow && w.nb) w.nwindows = EVCHYBNumWindows(csr->m, w.window);
  if (w.nwindows > EVCHYB_FEW_WINDOWS) w.nwindows = 0;
  if (SortsAll(&w, p->byrow)) PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, sortbytes, w.keys, w.sortedkeys, w.index, w.order, w.nb, EVCHYBBlockKeyBits(p->byrow, EVCHYBRowBits(csr->m)), stream));
  PetscCallCUDA(ExclusiveScan(nullptr, scanbytes, w.bnz, PetscMax((PetscCount)w.nb, (PetscCount)w.ncsr) + 1, stream));
  w.cubbytes = PetscMax(sortbytes, scanbytes);
  PetscCall(GallopWorkspaceMalloc(Carve(&w, p->byrow, NULL), &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, p->byrow, base);
  PetscCall(OrderColumnBlocks(p, csr, rows, &w, stream));
  PetscCallCUDA(EVCHYBPlainOverlaps(&ev->overlaps)); /* while the GPU works */
  PetscCall(WaitForNumbers(ev, p, &w, rows, numbers));
  if (!counted) PetscCall(EVCHYBRowsSortLong_Device(&ev->options, csr, rows, &moved, &fits));
  if (moved) {
    PetscCall(OrderColumnBlocks(p, csr, rows, &w, stream));
    PetscCall(WaitForNumbers(ev, p, &w, rows, numbers));
  }
  PetscCall(GetRowPointer(p, &w, numbers, i, stream));
  ev->bytes = CarveRows(p, NULL);
  if (fits) PetscCall(GallopDeviceMalloc(ev->bytes, &arrays));
  if (arrays) {
    (void)CarveRows(p, arrays);
    PlaceKernel<<<GallopBlocksFor((PetscCount)p->ell.n + p->csr.n + 1 + p->nlisted, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(p->ell.nb, p->csr.n, p->nlisted, rows->all, rows->nonempty, w, p->perm,
                                                                                                                                  p->ell.clen, p->ell.bnz, p->csr.i);
    GallopCheckLaunch();
  } else PetscCall(PetscFree(*i));
  PetscCall(GallopWorkspaceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPlainBuild_Device - *done is false where the GPU has no room, or it would take more than maxbytes. Frees the rows when they are needed no more, before there are entries. */
PetscErrorCode EVCHYBPlainBuild_Device(EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBPlain *p;
  EVCHYBParts  parts;
  PetscCount  *i;
  size_t       bytes;
  void        *base = NULL;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscNew(&p));
  PetscCall(Arrange(ev, p, csr, rows, &i));
  PetscCall(EVCHYBRowsFree_Device(rows));
  ev->nempty = rows->nempty;
  if (!i) {
    PetscCall(Free(&p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(EVCHYBPlainPlan(ev, p, i)); /* on the host: it needs the lengths of long rows */
  PetscCall(PetscFree(i));
  parts = p->csr.parts;
  bytes = CarveEntries(p, NULL);
  if (!maxbytes || ev->bytes + bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  if (base) {
    (void)CarveEntries(p, base);
    ev->bytes += bytes;
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(CopyParts(&parts, &p->csr.parts, stream));
    PetscCall(EVCHYBPlainFill_Device(ev, p, csr, PETSC_TRUE));
    ev->plain = p;
    ev->work  = &EVCHYBPlainDevice;
    *done     = PETSC_TRUE;
  } else PetscCall(Free(&p));
  PetscCall(EVCHYBPartsFree(&parts));
  PetscFunctionReturn(PETSC_SUCCESS);
}
