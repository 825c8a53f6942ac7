/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's hot columns on the GPU: the build from CSR arrays, and new values */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include "hbphotdevice.h"

static constexpr int ThresholdThreads = 1024, BinsEach = HBP_HOT_BINS / ThresholdThreads;

/* What the host is told */
struct HotFound {
  PetscInt           num, parts, longs, pieces, part[HBP_HOT_CLASSES + 1];
  int                least; /* bin of a hot column */
  unsigned long long entries;
};

/* Parts, long rows and their pieces, of a row or of all rows before */
struct HotNumbers {
  PetscInt parts, longs, pieces;
};

struct AddNumbers {
  __host__ __device__ HotNumbers operator()(const HotNumbers &a, const HotNumbers &b) const { return {a.parts + b.parts, a.longs + b.longs, a.pieces + b.pieces}; }
};

struct AddLines {
  __host__ __device__ HBPHotLines operator()(const HBPHotLines &a, const HBPHotLines &b) const { return {a.hot + b.hot, a.cold + b.cold}; }
};

/* Workspace until hot columns and parts are known, and from then on */
struct HotColumnWork {
  void           *memory;
  HotFound       *found;
  unsigned int   *count, *bins; /* entries of each column, columns of each bin */
  PetscInt       *flag, *place; /* of each column: whether it is hot, hot ones before it */
  unsigned short *rank;
  HotNumbers     *numbers, *before; /* of each row */
  char           *cub;
};

struct HotPartWork {
  void         *memory;
  unsigned int *key, *sortedkey, *len;
  PetscInt     *id, *sorted, *of; /* parts, parts in order, the row of each */
  HBPHotLines  *lines, *line;     /* of each group, and of all before it */
  char         *cub;
};

__global__ static void CountColumnsKernel(PetscCount nz, ReadOnly<PetscInt> j, unsigned int *count)
{
  const PetscCount k = GallopGlobalThread();

  if (k < nz) atomicAdd(count + j[k], 1u);
}

/* Columns in each bin, but for those without entries, which are many */
__global__ static void __launch_bounds__(Threads) HistogramKernel(PetscInt n, int shift, ReadOnly<unsigned int> count, unsigned int *bins)
{
  const PetscCount   c    = GallopGlobalThread();
  const int          bin  = c < n ? HBPHotBin((PetscInt)count[c], shift) : 0;
  const unsigned int same = __match_any_sync(All, bin);

  if (bin && !(same & LanesBelow())) atomicAdd(bins + bin, (unsigned int)__popc(same));
}

/* The least bin of a hot column: as many bins from the last one on as there are places for, by one thread block */
__global__ static void __launch_bounds__(ThresholdThreads) ThresholdKernel(PetscInt places, ReadOnly<unsigned int> bins, HotFound *found)
{
  __shared__ PetscInt sums[ThresholdThreads];
  PetscInt            num = 0;
  int                 t   = ThresholdThreads - 1, least;

  for (int b = 0; b < BinsEach; b++) num += bins[threadIdx.x * BinsEach + b];
  sums[threadIdx.x] = num;
  __syncthreads();
  if (threadIdx.x) return;
  num = 0;
  for (; t > 0 && num + sums[t] <= places; t--) num += sums[t];
  for (least = (t + 1) * BinsEach; least > 1 && num + (PetscInt)bins[least - 1] <= places; least--) num += bins[least - 1];
  found->num   = num;
  found->least = least;
}

__global__ static void FlagKernel(PetscInt n, int shift, ReadOnly<unsigned int> count, HotFound *found, PetscInt *flag)
{
  const PetscCount c = GallopGlobalThread();

  if (c >= n) return;
  const bool hot = HBPHotBin((PetscInt)count[c], shift) >= found->least;

  flag[c] = hot;
  if (hot) atomicAdd(&found->entries, (unsigned long long)count[c]);
}

__global__ static void RankKernel(PetscInt n, ReadOnly<PetscInt> flag, ReadOnly<PetscInt> place, unsigned short *rank)
{
  const PetscCount c = GallopGlobalThread();

  if (c < n) rank[c] = flag[c] ? (unsigned short)place[c] : HBP_COLD;
}

/* One more than there are rows, none: an exclusive sum reads all that it is given */
__global__ static void NumbersKernel(PetscInt m, ReadOnly<PetscInt> i, HotNumbers *numbers)
{
  const PetscCount r = GallopGlobalThread();

  if (r > m) return;
  const PetscInt pieces = r < m ? HBPHotPieces(i[r + 1] - i[r]) : 0;

  numbers[r] = {pieces, pieces > 1, pieces > 1 ? pieces : 0};
}

__global__ static void TotalsKernel(const HotNumbers *all, HotFound *found)
{
  found->parts  = all->parts;
  found->longs  = all->longs;
  found->pieces = all->pieces;
}

__global__ static void PartsKernel(PetscInt m, ReadOnly<HotNumbers> before, PetscInt *of, PetscInt *id)
{
  const PetscCount r = GallopGlobalThread();

  if (r >= m) return;
  for (PetscInt p = before[r].parts; p < before[r + 1].parts; p++) {
    of[p] = (PetscInt)r;
    id[p] = p;
  }
}

/* Where the entries of part p begin and end */
static __device__ __forceinline__ void GetEntries(const PetscInt *i, const HotNumbers *before, PetscInt row, PetscInt p, PetscInt *begin, PetscInt *end)
{
  *begin = i[row] + (p - before[row].parts) * HBP_HOT_PIECE;
  *end   = i[row + 1] - *begin < HBP_HOT_PIECE ? i[row + 1] : *begin + HBP_HOT_PIECE;
}

/* A warp for each part: the number by which it is ordered */
__global__ static void __launch_bounds__(Threads) KeysKernel(PetscInt parts, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<unsigned short> rank, ReadOnly<HotNumbers> before, ReadOnly<PetscInt> of, unsigned int *key)
{
  const PetscCount p    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;
  PetscInt         begin, end;
  unsigned int     hot = 0;

  if (p >= parts) return;
  GetEntries(i, before, of[p], (PetscInt)p, &begin, &end);
  for (PetscInt k = begin; k < end; k += WarpSize) hot += (unsigned int)__popc(__ballot_sync(All, k + lane < end && rank[j[k + lane < end ? k + lane : k]] != HBP_COLD));
  if (lane == 0) key[p] = HBPHotKey(hot, (unsigned int)(end - begin) - hot);
}

/* What the order of parts tells: lengths, and where classes begin. One thread more than there are parts. */
__global__ static void BoundsKernel(PetscInt parts, ReadOnly<unsigned int> key, unsigned int *len, HotFound *found)
{
  const PetscCount p = GallopGlobalThread();

  if (p > parts) return;
  if (p < parts) len[p] = HBPHotLength(key[p]);
  for (int c = p ? HBPHotClassOf(key[p - 1]) + 1 : 0; c <= (p < parts ? HBPHotClassOf(key[p]) : HBP_HOT_CLASSES); c++) found->part[c] = (PetscInt)p;
}

__global__ static void GroupsKernel(HBPHotClasses classes, PetscInt groups, ReadOnly<unsigned int> len, HBPHotLines *lines)
{
  const PetscCount g = GallopGlobalThread();
  PetscInt         first, num;

  if (g == groups) lines[g] = {0, 0}; /* as in NumbersKernel() */
  if (g >= groups) return;
  const int c = HBPHotGroup(&classes, (PetscInt)g, &first, &num);

  lines[g] = HBPHotLinesOf(c, num, len + first);
}

/* Rows and first entries of parts in their order */
__global__ static void PlaceKernel(HBPHot h, ReadOnly<PetscInt> i, ReadOnly<HotNumbers> before, ReadOnly<PetscInt> of, ReadOnly<PetscInt> sorted)
{
  const PetscCount at = GallopGlobalThread();

  if (at >= h.partNum) return;
  const PetscInt p = sorted[at], row = of[p], piece = p - before[row].parts;

  h.row[at]   = before[row + 1].longs > before[row].longs ? -1 - (before[row].pieces + piece) : row;
  h.begin[at] = i[row] + piece * HBP_HOT_PIECE;
}

__global__ static void HotColumnsKernel(HBPHot h, ReadOnly<unsigned short> rank)
{
  const PetscCount c = GallopGlobalThread();

  if (c >= h.n) return;
  h.rank[c] = rank[c];
  if (rank[c] != HBP_COLD) h.hotColumn[rank[c]] = (PetscInt)c;
}

__global__ static void LongRowsKernel(HBPHot h, ReadOnly<HotNumbers> before)
{
  const PetscCount r = GallopGlobalThread();

  if (r == 0) h.longPiece[h.longNum] = h.pieceNum;
  if (r >= h.m || before[r + 1].longs == before[r].longs) return;
  const PetscInt t = before[r].longs;

  h.longRow[t]   = (PetscInt)r;
  h.longPiece[t] = before[r].pieces;
  h.arrived[t]   = 0;
  for (PetscInt k = before[r].pieces; k < before[r + 1].pieces; k++) h.pieceLong[k] = t;
}

/* A warp for each part: the values of its entries, and their columns if these are wanted */
template <bool WithColumns>
__global__ static void __launch_bounds__(Threads) FillKernel(HBPHot h, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a)
{
  const PetscCount p = GallopGlobalThread() / WarpSize;

  if (p >= h.partNum) return;
  int      c   = 0, slot;
  PetscInt hot = 0, cold = 0;
  while (p >= h.classes.part[c + 1]) c++;
  const int         lane = threadIdx.x % WarpSize, lanes = HBPHotLanes(c), within = (1 << lanes) - 1;
  const PetscInt    g = HBPHotGroupOf(&h.classes, c, (PetscInt)p, &slot), begin = h.begin[p], num = (PetscInt)((h.len[p] & 65535) + (h.len[p] >> 16));
  const HBPHotLines line = h.line[g];

  for (PetscInt k = 0; k < num; k += WarpSize) {
    const bool         mine   = k + lane < num;
    const PetscInt     column = mine ? j[begin + k + lane] : 0;
    const PetscScalar  value  = mine ? a[begin + k + lane] : PetscScalar(0);
    const int          rank   = h.rank[column];
    const unsigned int hots = __ballot_sync(All, mine && rank != HBP_COLD), colds = __ballot_sync(All, mine && rank == HBP_COLD);
    const bool         is = rank != HBP_COLD;
    const PetscInt     q  = is ? hot + __popc(hots & LanesBelow()) : cold + __popc(colds & LanesBelow());
    const PetscCount   at = ((PetscCount)(is ? line.hot : line.cold) + (q >> lanes)) * WarpSize + (slot << lanes | (int)(q & within));

    hot += __popc(hots);
    cold += __popc(colds);
    if (!mine) continue;
    (is ? h.hotData : h.coldData)[at] = value;
    if (WithColumns && is) h.hotCol[at] = (unsigned short)rank;
    if (WithColumns && !is) h.coldCol[at] = column;
  }
}

static size_t CarveColumns(HotColumnWork *w, const HBPHot *h, size_t cubbytes, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->found, 1);
  carver.Take(w->bins, HBP_HOT_BINS);
  carver.Take(w->count, h->n);
  carver.Take(w->flag, h->n);
  carver.Take(w->place, h->n);
  carver.Take(w->rank, h->n);
  carver.Take(w->numbers, (PetscCount)h->m + 1);
  carver.Take(w->before, (PetscCount)h->m + 1);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
}

static size_t CarveParts(HotPartWork *w, PetscInt parts, size_t cubbytes, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->key, parts);
  carver.Take(w->sortedkey, parts);
  carver.Take(w->len, parts);
  carver.Take(w->id, parts);
  carver.Take(w->sorted, parts);
  carver.Take(w->of, parts);
  carver.Take(w->lines, (PetscCount)parts + 1); /* there are no more groups */
  carver.Take(w->line, (PetscCount)parts + 1);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
}

static size_t CarveArrays(HBPHot *h, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(h->array, number);
  HBP_HOT_ARRAYS(h, TAKE);
#undef TAKE
  h->bytes = carver.Bytes();
  carver.Take(h->partial, h->pieceNum);
  carver.Take(h->x, h->num);
  carver.Take(h->arrived, h->longNum);
  return carver.Bytes();
}

/* The hot columns, and how many parts rows have. *done is false where there is no room, or where hot columns do not pay. */
static PetscErrorCode FindColumns(HBPHot *h, const HBPOptions *options, const GallopCSR *csr, PetscInt places, HotColumnWork *w, cudaStream_t stream, PetscBool *done)
{
  const int        shift = HBPHotShift(csr->nz, places);
  const HotNumbers none  = {0, 0, 0};
  HotFound         found;
  size_t           cub[2] = {0, 0}, most;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, cub[0], w->flag, w->place, h->n, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, cub[1], w->numbers, w->before, AddNumbers(), none, h->m + 1, stream));
  most = PetscMax(cub[0], cub[1]);
  PetscCall(GallopWorkspaceMalloc(CarveColumns(w, h, most, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveColumns(w, h, most, w->memory);
  PetscCallCUDA(cudaMemsetAsync(w->found, 0, sizeof(*w->found), stream));
  PetscCallCUDA(cudaMemsetAsync(w->bins, 0, HBP_HOT_BINS * sizeof(*w->bins), stream));
  PetscCallCUDA(cudaMemsetAsync(w->count, 0, (size_t)h->n * sizeof(*w->count), stream));
  CountColumnsKernel<<<GallopBlocksFor(h->nz, Threads), Threads, 0, stream>>>(h->nz, csr->j, w->count);
  GallopCheckLaunch();
  HistogramKernel<<<GallopBlocksFor(h->n, Threads), Threads, 0, stream>>>(h->n, shift, w->count, w->bins);
  GallopCheckLaunch();
  ThresholdKernel<<<1, ThresholdThreads, 0, stream>>>(places, w->bins, w->found);
  GallopCheckLaunch();
  FlagKernel<<<GallopBlocksFor(h->n, Threads), Threads, 0, stream>>>(h->n, shift, w->count, w->found, w->flag);
  GallopCheckLaunch();
  NumbersKernel<<<GallopBlocksFor((PetscCount)h->m + 1, Threads), Threads, 0, stream>>>(h->m, csr->i, w->numbers);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, cub[1], w->numbers, w->before, AddNumbers(), none, h->m + 1, stream));
  TotalsKernel<<<1, 1, 0, stream>>>(w->before + h->m, w->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, w->found, sizeof(found)));
  if (!HBPHotPays(options, h->nz, found.num, (PetscCount)found.entries)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, cub[0], w->flag, w->place, h->n, stream));
  RankKernel<<<GallopBlocksFor(h->n, Threads), Threads, 0, stream>>>(h->n, w->flag, w->place, w->rank);
  GallopCheckLaunch();
  h->num      = found.num;
  h->partNum  = found.parts;
  h->longNum  = found.longs;
  h->pieceNum = found.pieces;
  *done       = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of parts, groups and lines */
static PetscErrorCode SortParts(HBPHot *h, const GallopCSR *csr, const HotColumnWork *c, HotPartWork *w, cudaStream_t stream, PetscBool *done)
{
  const PetscInt    parts = h->partNum;
  const HBPHotLines none  = {0, 0};
  HotFound          found;
  size_t            cub[2] = {0, 0}, most;
  const int         bits   = 2 * HBP_HOT_FIELD + 3;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, cub[0], w->key, w->sortedkey, w->id, w->sorted, parts, 0, bits, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, cub[1], w->lines, w->line, AddLines(), none, parts + 1, stream));
  most = PetscMax(cub[0], cub[1]);
  PetscCall(GallopWorkspaceMalloc(CarveParts(w, parts, most, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveParts(w, parts, most, w->memory);
  PartsKernel<<<GallopBlocksFor(h->m, Threads), Threads, 0, stream>>>(h->m, c->before, w->of, w->id);
  GallopCheckLaunch();
  KeysKernel<<<GallopBlocksFor((PetscCount)parts * WarpSize, Threads), Threads, 0, stream>>>(parts, csr->i, csr->j, c->rank, c->before, w->of, w->key);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, cub[0], w->key, w->sortedkey, w->id, w->sorted, parts, 0, bits, stream));
  BoundsKernel<<<GallopBlocksFor((PetscCount)parts + 1, Threads), Threads, 0, stream>>>(parts, w->sortedkey, w->len, c->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, c->found, sizeof(found)));
  PetscCall(PetscArraycpy(h->classes.part, found.part, HBP_HOT_CLASSES + 1));
  HBPHotSetClasses(h);
  GroupsKernel<<<GallopBlocksFor((PetscCount)h->groupNum + 1, Threads), Threads, 0, stream>>>(h->classes, h->groupNum, w->len, w->lines);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, cub[1], w->lines, w->line, AddLines(), none, h->groupNum + 1, stream));
  PetscCall(GallopDeviceCopyOut(&h->lines, w->line + h->groupNum, sizeof(h->lines)));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(HBPHot *h, const GallopCSR *csr, const HotColumnWork *c, const HotPartWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemcpyAsync(h->line, w->line, ((size_t)h->groupNum + 1) * sizeof(*h->line), cudaMemcpyDeviceToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync(h->len, w->len, (size_t)h->partNum * sizeof(*h->len), cudaMemcpyDeviceToDevice, stream));
  PlaceKernel<<<GallopBlocksFor(h->partNum, Threads), Threads, 0, stream>>>(*h, csr->i, c->before, w->of, w->sorted);
  GallopCheckLaunch();
  HotColumnsKernel<<<GallopBlocksFor(h->n, Threads), Threads, 0, stream>>>(*h, c->rank);
  GallopCheckLaunch();
  LongRowsKernel<<<GallopBlocksFor(h->m, Threads), Threads, 0, stream>>>(*h, c->before);
  GallopCheckLaunch();
  FillKernel<true><<<GallopBlocksFor((PetscCount)h->partNum * WarpSize, Threads), Threads, 0, stream>>>(*h, csr->j, csr->a);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotBuild_Device - h->hot, NULL where the matrix is to be stored by blocks of rows and columns */
PetscErrorCode HBPHotBuild_Device(HBP *h, const GallopCSR *csr, const HBPSample *s, PetscCount maxbytes, cudaStream_t stream)
{
  HBPHot       *t;
  HotColumnWork columns = {};
  HotPartWork   parts   = {};
  PetscInt      places;
  void         *base = NULL;
  PetscBool     done;

  PetscFunctionBegin;
  PetscCall(HBPHotMay(&h->options, csr, s, &places));
  if (!places) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HBPHotCreate(csr, PETSC_MEMTYPE_CUDA, &t));
  PetscCall(FindColumns(t, &h->options, csr, places, &columns, stream, &done));
  if (done) PetscCall(SortParts(t, csr, &columns, &parts, stream, &done));
  if (done) {
    const size_t bytes = CarveArrays(t, NULL);

    if (!maxbytes || bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  }
  if (base) {
    (void)CarveArrays(t, base);
    PetscCall(Fill(t, csr, &columns, &parts, stream));
    PetscCall(HBPHotPlan(t));
    h->hot   = t;
    h->bytes = t->bytes;
  } else PetscCall(HBPHotDestroy(&t));
  PetscCall(GallopWorkspaceFree(parts.memory));
  PetscCall(GallopWorkspaceFree(columns.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPHotRefresh_Device - New values */
PetscErrorCode HBPHotRefresh_Device(HBPHot *h, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  FillKernel<false><<<GallopBlocksFor((PetscCount)h->partNum * WarpSize, Threads), Threads, 0, stream>>>(*h, csr->j, csr->a);
  GallopCheckLaunch();
  h->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
