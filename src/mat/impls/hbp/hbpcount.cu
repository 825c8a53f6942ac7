/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: what each block has, and so the sizes of everything */

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "../common/bits.h"
#include "hbpsegments.cuh"

static constexpr int ScanThreads = 1024; /* of the one thread block that adds up the counts of few blocks */
static constexpr int FewBlocks   = 8192; /* blocks, at most; CUB adds up the counts of more, which takes more launches */
static constexpr int TotalBlocks = 512;  /* most thread blocks that find totals */
static constexpr int ColumnBits  = 32;   /* of a key by which entries are sorted; the row is above them */

/* The row in which each tile of entries begins, and long rows in any order. Clears the counts of all blocks, and of one more. */
__global__ static void TilesKernel(PetscInt m, PetscInt longRow, ReadOnly<PetscInt> i, PetscCount blocks, HBPCountWork w, HBPFound *found)
{
  const PetscCount r = GallopGlobalThread();

  for (PetscCount b = r; b <= blocks; b += (PetscCount)gridDim.x * Threads) w.counts[b] = {0, 0};
  if (r >= m) return;
  if (i[r + 1] == i[r]) AddTo(&found->empty, 1);
  if (i[r + 1] - i[r] > longRow) {
    const PetscInt at = AddTo(&found->longRows, 1);

    w.longRows[at] = (PetscInt)r;
    if (at < FewRows) found->rows[at] = (PetscInt)r;
  }
  for (PetscCount t = ((PetscCount)i[r] + TileEntries - 1) / TileEntries; t * TileEntries < i[r + 1]; t++) w.tileRow[t] = (PetscInt)r;
}

__global__ static void __launch_bounds__(Threads) CountKernel(HBPMatrix A, HBPCounts *counts, HBPFound *found)
{
  unsigned int longest = 0;

  WalkSegments(A, &found->unsorted, [&](PetscCount block, PetscInt, PetscInt begin, PetscInt end, bool direct) {
    const int lanes = HBPLanes(&A.hash, A.laneEntries, end - begin);

    longest = max(longest, (unsigned int)(end - begin));
    atomicAdd(&counts[block].all, CountedSegment(end - begin, direct));
    if (lanes) atomicAdd(&counts[block].lanes, CountedLanes(lanes));
  });
  RaiseByWarp(&found->longest, longest);
}

/* A thread block for each block of rows with a map: segments, which are whole rows */
__global__ static void __launch_bounds__(Threads) CountMappedKernel(HBPMatrix A, HBPCounts *counts, HBPFound *found)
{
  const PetscInt     rb = (PetscInt)blockIdx.x, row = rb * A.N, end = A.m - row < A.N ? A.m : row + A.N;
  unsigned long long all = 0, more = 0;
  unsigned int       longest = 0;

  if (!A.mapped[rb]) return;
  for (PetscInt r = row + (PetscInt)threadIdx.x; r < end; r += Threads) {
    const PetscInt len = A.i[r + 1] - A.i[r];

    if (!len || len > A.longRow) continue;
    const int lanes = HBPLanes(&A.hash, A.laneEntries, len);

    longest = max(longest, (unsigned int)len);
    all += CountedSegment(len, true);
    more += CountedLanes(lanes);
  }
  for (int by = WarpSize / 2; by; by /= 2) {
    all += __shfl_xor_sync(All, all, by);
    more += __shfl_xor_sync(All, more, by);
  }
  RaiseByWarp(&found->longest, longest);
  if (threadIdx.x % WarpSize) return;
  if (all) atomicAdd(&counts[rb].all, all);
  if (more) atomicAdd(&counts[rb].lanes, more);
}

struct AddOffsets {
  __host__ __device__ HBPOffsets operator()(const HBPOffsets &a, const HBPOffsets &b) const { return {a.blk + b.blk, a.seg + b.seg, a.nnz + b.nnz, a.group + b.group}; }
};

/* Partial sums of block k, row by row of blocks */
struct PartialsByRows {
  const HBPCounts *counts;
  PetscInt         rowBlocks, colBlocks;

  __host__ __device__ PetscInt operator()(PetscCount k) const { return k < (PetscCount)rowBlocks * colBlocks ? PartialsIn(counts[k % colBlocks * rowBlocks + k / colBlocks].all) : 0; }
};

/* Pieces of the combine part that block of rows rb has */
struct PiecesOf {
  const PetscInt *partials;
  PetscInt        rowBlocks, colBlocks;

  __host__ __device__ PetscInt operator()(PetscInt rb) const
  {
    return rb < rowBlocks ? (partials[(PetscCount)(rb + 1) * colBlocks] - partials[(PetscCount)rb * colBlocks] + HBP_COMBINED - 1) / HBP_COMBINED : 0;
  }
};

/* Tells the host what it needs of the sums, by all threads of a grid. maps: where maps begin. */
static __device__ __forceinline__ void FindTotals(PetscCount blocks, PetscInt rowBlocks, const PetscInt *pieces, const HBPOffsets *offsets, const PetscInt *partials, const PetscInt *maps, HBPFound *found)
{
  const PetscCount stride = (PetscCount)gridDim.x * blockDim.x;
  unsigned int     most   = 0;

  for (PetscCount b = GallopGlobalThread(); b < blocks; b += stride) most = max(most, (unsigned int)(offsets[b + 1].seg - offsets[b].seg));
  RaiseByWarp(&found->most, most);
  for (PetscCount k = GallopGlobalThread(); k * rowBlocks <= blocks; k += stride) found->ends[k] = offsets[k * rowBlocks];
  if (GallopGlobalThread()) return;
  found->blk     = offsets[blocks].blk;
  found->seg     = offsets[blocks].seg;
  found->group   = offsets[blocks].group;
  found->partial = partials[blocks];
  found->combine = pieces[rowBlocks];
  if (maps) found->map = maps[rowBlocks];
}

__global__ static void TotalsKernel(PetscCount blocks, PetscInt rowBlocks, ReadOnly<PetscInt> pieces, ReadOnly<HBPOffsets> offsets, ReadOnly<PetscInt> partials, ReadOnly<PetscInt> maps, HBPFound *found)
{
  FindTotals(blocks, rowBlocks, pieces, offsets, partials, maps, found);
}

/* Calls put(k, sum of numbers before) for the n numbers get(k), by a thread block. All its threads may read afterwards what put() wrote. */
template <typename T, typename Add, typename Get, typename Put>
static __device__ __forceinline__ void BlockPrefixes(PetscInt n, Add add, Get get, Put put)
{
  using Scan = cub::BlockScan<T, ScanThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage memory;
  const PetscInt                        each = (n + ScanThreads - 1) / ScanThreads, first = (PetscInt)threadIdx.x * each, last = first + each < n ? first + each : n;
  T                                     sum = {}, before;

  for (PetscInt k = first; k < last; k++) sum = add(sum, get(k));
  Scan(memory).ExclusiveScan(sum, before, T{}, add);
  for (PetscInt k = first; k < last; k++) {
    const T own = get(k);

    put(k, before);
    before = add(before, own);
  }
  __syncthreads();
}

/* All sums by one thread block, which takes less time than to launch a scan of each. None is ReadOnly: some sums are of others. */
__global__ static void __launch_bounds__(ScanThreads) ScanKernel(PetscInt rowBlocks, PetscInt colBlocks, const HBPCounts *counts, const PetscInt *chunks, HBPOffsets *offsets, PetscInt *partials, PetscInt *pieces, PetscInt *maps, HBPFound *found)
{
  const PetscInt       blocks = rowBlocks * colBlocks;
  const PartialsByRows partialsOf{counts, rowBlocks, colBlocks};
  const PiecesOf       piecesOf{partials, rowBlocks, colBlocks};
  const auto           add = [](PetscInt a, PetscInt b) { return a + b; };

  BlockPrefixes<HBPOffsets>(
    blocks + 1, AddOffsets(), [&](PetscInt k) { return OffsetsOf()(counts[k]); }, [&](PetscInt k, const HBPOffsets &before) { offsets[k] = before; });
  BlockPrefixes<PetscInt>(
    blocks + 1, add, [&](PetscInt k) { return partialsOf(k); }, [&](PetscInt k, PetscInt before) { partials[k] = before; });
  BlockPrefixes<PetscInt>(
    rowBlocks + 1, add, [&](PetscInt k) { return piecesOf(k); }, [&](PetscInt k, PetscInt before) { pieces[k] = before; });
  if (maps)
    BlockPrefixes<PetscInt>(
      rowBlocks + 1, add, [&](PetscInt k) { return chunks[k]; }, [&](PetscInt k, PetscInt before) { maps[k] = before; });
  FindTotals(blocks, rowBlocks, pieces, offsets, partials, maps, found);
}

/* Keys by which the entries of all rows are sorted by columns. An entry's row and column are 64 bits. */
__global__ static void RowKeyKernel(HBPMatrix A, unsigned long long *__restrict__ key, PetscInt *__restrict__ entry)
{
  const PetscCount r = GallopGlobalThread();

  if (r >= A.m) return;
  for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
    key[k]   = (unsigned long long)r << ColumnBits | (unsigned long long)A.j[k];
    entry[k] = k;
  }
}

__global__ static void ColumnOfKeyKernel(PetscCount nz, ReadOnly<unsigned long long> key, PetscInt *__restrict__ j)
{
  const PetscCount k = GallopGlobalThread();

  if (k < nz) j[k] = (PetscInt)(key[k] & 0xffffffffu);
}

static bool HasFewBlocks(const HBP *h)
{
  return (PetscCount)h->rowBlocks * h->colBlocks <= FewBlocks;
}

/* All sums of what was counted; without cub only *cubbytes, what CUB needs for them */
static PetscErrorCode ScanBlocks(const HBP *h, const HBPWork *work, char *cub, size_t *cubbytes, cudaStream_t stream)
{
  const HBPCountWork *w        = &work->count;
  const HBPLookWork  *look     = &work->look;
  const PetscCount    blocks   = (PetscCount)h->rowBlocks * h->colBlocks;
  const auto          numbers  = thrust::make_counting_iterator((PetscCount)0);
  size_t              bytes[4] = {*cubbytes, *cubbytes, *cubbytes, look->chunks ? *cubbytes : 0};

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(cub, bytes[0], thrust::make_transform_iterator(w->counts, OffsetsOf()), w->offsets, AddOffsets(), HBPOffsets{0, 0, 0, 0}, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[1], thrust::make_transform_iterator(numbers, PartialsByRows{w->counts, h->rowBlocks, h->colBlocks}), w->partials, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[2], thrust::make_transform_iterator(numbers, PiecesOf{w->partials, h->rowBlocks, h->colBlocks}), w->pieces, h->rowBlocks + 1, stream));
  if (look->chunks) PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[3], look->chunks, look->mapPtr, h->rowBlocks + 1, stream));
  if (!cub) *cubbytes = PetscMax(PetscMax(bytes[0], bytes[1]), PetscMax(bytes[2], bytes[3]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t CarveCounts(HBPCountWork *w, const HBP *h, void *base)
{
  GallopCarver     carver(base);
  char            *found;
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  carver.Take(found, (PetscCount)FoundBytes(h->colBlocks));
  w->found = (HBPFound *)found;
  carver.Take(w->tileRow, TilesOf(h->nz));
  carver.Take(w->longRows, h->nz / h->longRow + 1);
  carver.Take(w->counts, blocks + 1);
  carver.Take(w->offsets, blocks + 1);
  carver.Take(w->partials, blocks + 1);
  carver.Take(w->pieces, (PetscCount)h->rowBlocks + 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* HBPTakeCounts - Room for what is counted of rows and blocks, and for CUB. Clears what is found. */
PetscErrorCode HBPTakeCounts(const HBP *h, HBPWork *work, cudaStream_t stream)
{
  HBPCountWork *w = &work->count;

  PetscFunctionBegin;
  w->cubbytes = 0;
  if (!h->mapChunks) work->look.chunks = work->look.mapPtr = NULL;
  if (!HasFewBlocks(h)) PetscCall(ScanBlocks(h, work, nullptr, &w->cubbytes, stream));
  PetscCall(GallopWorkspaceMalloc(CarveCounts(w, h, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveCounts(w, h, w->memory);
  PetscCallCUDA(cudaMemsetAsync(w->found, 0, sizeof(*w->found), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPFindTiles - Where tiles begin, from then on those of A, and long rows. Clears the counts. */
PetscErrorCode HBPFindTiles(const HBP *h, HBPMatrix *A, const HBPWork *work, cudaStream_t stream)
{
  PetscFunctionBegin;
  TilesKernel<<<GallopBlocksFor(A->m, Threads), Threads, 0, stream>>>(A->m, A->longRow, A->i, (PetscCount)h->rowBlocks * h->colBlocks, work->count, work->count.found);
  GallopCheckLaunch();
  A->tileRow = work->count.tileRow;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t CarveSorted(HBPSortWork *w, PetscCount nz, size_t cubbytes, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->j, nz);
  carver.Take(w->from, nz);
  carver.Take(w->entry, nz);
  carver.Take(w->key, nz);
  carver.Take(w->sortedkey, nz);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
}

/* HBPCanSortRows - Whether a key has bits for all columns */
PetscBool HBPCanSortRows(const HBP *h)
{
  return (PetscBool)((PetscCount)h->n <= (PetscCount)1 << ColumnBits);
}

/* HBPSortRows - Columns of each row in increasing order, from then on those of A */
PetscErrorCode HBPSortRows(HBPMatrix *A, HBPSortWork *w, cudaStream_t stream)
{
  size_t    cub  = 0;
  const int bits = ColumnBits + PetscMin(GallopSortBits(A->m), 64 - ColumnBits);

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  PetscCall(GallopWorkspaceMalloc(CarveSorted(w, A->nz, cub, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveSorted(w, A->nz, cub, w->memory);
  RowKeyKernel<<<GallopBlocksFor(A->m, Threads), Threads, 0, stream>>>(*A, w->key, w->entry);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  ColumnOfKeyKernel<<<GallopBlocksFor(A->nz, Threads), Threads, 0, stream>>>(A->nz, w->sortedkey, w->j);
  GallopCheckLaunch();
  A->j = w->j;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPCount - Numbers of everything, and where blocks begin */
PetscErrorCode HBPCount(const HBP *h, const HBPMatrix *A, HBPWork *work, HBPFound *found, cudaStream_t stream)
{
  HBPCountWork    *w      = &work->count;
  HBPLookWork     *look   = &work->look;
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  PetscFunctionBegin;
  if (work->sort.memory) { /* counted before rows were sorted */
    PetscCallCUDA(cudaMemsetAsync(w->counts, 0, (size_t)(blocks + 1) * sizeof(*w->counts), stream));
    PetscCallCUDA(cudaMemsetAsync(&w->found->most, 0, sizeof(w->found->most) + sizeof(w->found->longest), stream));
  }
  if (h->mapped) {
    CountMappedKernel<<<(unsigned int)h->rowBlocks, Threads, 0, stream>>>(*A, w->counts, w->found);
    GallopCheckLaunch();
  }
  CountKernel<<<(unsigned int)TilesOf(A->nz), Threads, 0, stream>>>(*A, w->counts, w->found);
  GallopCheckLaunch();
  if (HasFewBlocks(h)) ScanKernel<<<1, ScanThreads, 0, stream>>>(h->rowBlocks, h->colBlocks, w->counts, look->chunks, w->offsets, w->partials, w->pieces, look->mapPtr, w->found);
  else {
    PetscCall(ScanBlocks(h, work, w->cub, &w->cubbytes, stream));
    TotalsKernel<<<PetscMin(GallopBlocksFor(blocks, Threads), TotalBlocks), Threads, 0, stream>>>(blocks, h->rowBlocks, w->pieces, w->offsets, w->partials, look->mapPtr, w->found);
  }
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(found, w->found, FoundBytes(h->colBlocks)));
  work->fill.most = found->most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPSetNumbers - Puts the sizes of all arrays into h, and plans the long rows, which are in onDevice, in any order */
PetscErrorCode HBPSetNumbers(HBP *h, const GallopCSR *csr, const HBPFound *found, const PetscInt onDevice[], GallopLongRows *longRows)
{
  const PetscInt *host_i = NULL;
  PetscInt       *rows;

  PetscFunctionBegin;
  h->blkNum     = found->blk;
  h->segNum     = found->seg;
  h->groupNum   = found->group;
  h->partialNum = found->partial;
  h->combineNum = found->combine;
  h->mapNum     = found->map;
  h->longest    = found->longest;
  h->empty      = found->empty;
  h->alone      = (PetscBool)(!found->partial && !found->longRows && !found->empty);
  PetscCall(PetscMalloc1(found->longRows, &rows));
  if (found->longRows <= FewRows) PetscCall(PetscArraycpy(rows, found->rows, found->longRows));
  else PetscCall(GallopDeviceCopyOut(rows, onDevice, (size_t)found->longRows * sizeof(PetscInt)));
  if (found->longRows) PetscCall(GallopCSRGetHostI(csr, &host_i));
  PetscCall(GallopLongRowsPlan(host_i, found->longRows, rows, HBP_PIECE, longRows));
  PetscCall(PetscFree(rows));
  h->longRows.num      = longRows->num;
  h->longRows.pieceNum = longRows->pieceNum;
  h->longRows.nz       = longRows->nz;
  h->blknz             = h->nz - longRows->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}
