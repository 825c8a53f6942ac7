/* HBP on the GPU: the build from CSR arrays there, and the kernels of the product */

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "../common/bits.h"
#include "hbpdevice.h"

static constexpr int Threads = 256, Warps = Threads / WarpSize;
static constexpr int SharedThreads = 512;                  /* of the SpMV part where they share x */
static constexpr int GroupWeight   = 64;                   /* entries that take as long as what a group takes besides its entries */
static constexpr int PartWeight    = 31 * GroupWeight;     /* of a part, at most, but for one of one group: so it has at most 31 groups, a lane each, and one for the end of the last */
static constexpr int TileEntries   = 1024;                 /* that a GPU block looks at to find segments */
static constexpr int ScanThreads = 1024, FewBlocks = 8192; /* so many are summed up by one GPU block of so many threads */
static constexpr int FewRows    = 64;                      /* long rows that the host is told without asking */
static constexpr int MapThreads = 512, MapWords = 8192;    /* a GPU block that makes a map marks chunks by as many words of bits */

/* What a block has: segments, those that give partial sums, entries; and of segments by log2 of lanes all but those with one */
struct Counts {
  unsigned long long all, lanes;
};

static constexpr int CountBits = 12; /* a block has at most HBP_MAX_ROWS segments */

/* Of all blocks before one, column by column */
struct Offsets {
  PetscInt blk, seg, nnz, group;
};

static __device__ __forceinline__ PetscCount GlobalThread()
{
  return (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
}

/* *most becomes at least the largest value of a warp */
static __device__ __forceinline__ void RaiseByWarp(int *most, unsigned int value)
{
  const int largest = (int)GallopWarpMax(value);

  if (threadIdx.x % WarpSize == 0 && largest > *(volatile int *)most) atomicMax(most, largest);
}

/* ---- the build ---- */

static __device__ __forceinline__ PetscInt AddOne(PetscInt *to)
{
  if constexpr (sizeof(PetscInt) == 4) return (PetscInt)atomicAdd((int *)to, 1);
  else return (PetscInt)atomicAdd((unsigned long long *)to, 1ull);
}

struct Widths {
  PetscInt M[2];
};

/* A warp a row of the samples */
__global__ static void __launch_bounds__(Threads) LookKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Widths w, unsigned long long *__restrict__ sum)
{
  static constexpr int    Num = sizeof(HBPSample) / sizeof(*sum), Near = offsetof(HBPSample, near) / sizeof(*sum), Chunks = offsetof(HBPSample, chunks) / sizeof(*sum), Segs = offsetof(HBPSample, segs) / sizeof(*sum), Logs = offsetof(HBPSample, logs) / sizeof(*sum);
  __shared__ unsigned int counts[Num]; /* of a HBPSample */
  const int               k = (int)(GlobalThread() / WarpSize), lane = threadIdx.x % WarpSize;

  for (int f = threadIdx.x; f < Num; f += Threads) counts[f] = 0;
  __syncthreads();
  if (k < HBP_SAMPLES) {
    const HBPSampled row       = HBPSampledRow(m, i, k);
    PetscInt         before[2] = {row.begin, row.begin}; /* where the segment that goes on begins, for each width */

    for (PetscInt first = row.begin; first < row.end; first += WarpSize) {
      const PetscInt     e = first + lane, col = e < row.end ? j[e] : 0, next = e + 1 < row.end ? j[e + 1] : 0;
      const bool         mine = e < row.end, near = mine && HBPIsNear(j, &row, col);
      const unsigned int nears = __ballot_sync(All, near), chunks = __ballot_sync(All, mine && !near && (e == row.begin || col / HBP_CHUNK != j[e - 1] / HBP_CHUNK));

      if (lane == 0) {
        atomicAdd(counts, (unsigned int)(row.end - first < WarpSize ? row.end - first : WarpSize));
        atomicAdd(counts + Near, (unsigned int)__popc(nears));
        atomicAdd(counts + Chunks, (unsigned int)__popc(chunks));
      }
      for (int width = HBP_NARROW; width <= HBP_WIDE; width++) {
        const bool         end  = mine && (e + 1 == row.end || next / w.M[width] != col / w.M[width]);
        const unsigned int ends = __ballot_sync(All, end), below = ends & LanesBelow();

        if (end) {
          const PetscInt begin = below ? first + WarpSize - __clz((int)below) : before[width];

          atomicAdd(counts + Segs + width, 1u);
          atomicAdd(counts + Logs + width * HBP_LOGS + HBPLog(e + 1 - begin), 1u);
        }
        if (ends) before[width] = first + WarpSize - __clz((int)ends);
      }
    }
    if (lane == 0 && row.end > row.begin) {
      atomicAdd(counts + Segs + HBP_ROW, 1u);
      atomicAdd(counts + Logs + HBP_ROW * HBP_LOGS + HBPLog(row.end - row.begin), 1u);
    }
  }
  __syncthreads();
  for (int f = threadIdx.x; f < Num; f += Threads)
    if (counts[f]) atomicAdd(sum + f, (unsigned long long)counts[f]);
}

struct Found {
  PetscInt blk, seg, group, partial, combine, longRows, map;
  int      mapped, plain;   /* blocks of rows with a map, and without one but with entries */
  int      most, longest;   /* segments of a block, entries of a segment */
  int      unsorted, empty; /* some row's columns do not increase, or it has no entries */
  PetscInt rows[FewRows];   /* the first ones of longRows */
  Offsets  ends[1];         /* [colBlocks + 1] of each column of blocks */
};

static inline size_t FoundBytes(PetscInt colBlocks)
{
  return sizeof(Found) + (size_t)colBlocks * sizeof(Offsets);
}

/* The row in which each tile of entries begins, and long rows in any order; clears the counts of all blocks and one more */
__global__ static void TilesKernel(PetscInt m, PetscInt longRow, const PetscInt *__restrict__ i, PetscInt *__restrict__ tileRow, PetscInt *__restrict__ longRows, PetscCount blocks, Counts *__restrict__ counts, Found *found)
{
  const PetscCount r = GlobalThread();

  for (PetscCount b = r; b <= blocks; b += (PetscCount)gridDim.x * Threads) counts[b] = {0, 0};
  if (r >= m) return;
  if (i[r + 1] == i[r]) found->empty = 1;
  if (i[r + 1] - i[r] > longRow) {
    const PetscInt at = AddOne(&found->longRows);

    longRows[at] = (PetscInt)r;
    if (at < FewRows) found->rows[at] = (PetscInt)r;
  }
  for (PetscCount t = ((PetscCount)i[r] + TileEntries - 1) / TileEntries; t * TileEntries < i[r + 1]; t++) tileRow[t] = (PetscInt)r;
}

/* What of a matrix the kernels that look for segments need */
struct Matrix {
  PetscInt        m, N, M, rowBlocks, longRow, laneEntries;
  HBPHash         hash;
  PetscCount      nz;
  const PetscInt *i, *j, *tileRow;
  const PetscInt *mapped;    /* of each block of rows, the chunks of its map; NULL where none has one */
  PetscInt        mapChunks; /* that a map may have */

  __device__ __forceinline__ bool IsMapped(PetscInt rowBlock) const { return mapped && mapped[rowBlock]; }
};

/* Calls what(column) for the entries of rows row, ..., row + rows - 1, those in long rows left out: bit r of longRows is of row + r. By all threads of a GPU block. */
template <typename What>
static __device__ __forceinline__ void WalkShortRows(const Matrix &A, PetscInt row, PetscInt rows, const unsigned int *longRows, bool some, What what)
{
  static constexpr int Ahead = 4;

  for (PetscInt from = 0, to; from < rows; from = to + 1) {
    for (to = some ? from : rows; to < rows; to++) { /* the next long row */
      const unsigned int left = longRows[to / 32] >> to % 32;

      if (left) to += __ffs((int)left) - 1;
      if (left) break;
      to |= 31;
    }
    if (to > rows) to = rows;
    const PetscCount end = A.i[row + to];

    for (PetscCount e = (PetscCount)A.i[row + from] + threadIdx.x; e < end; e += Ahead * MapThreads) {
      PetscInt j[Ahead];

#pragma unroll
      for (int u = 0; u < Ahead; u++) j[u] = e + u * MapThreads < end ? A.j[e + u * MapThreads] : -1;
#pragma unroll
      for (int u = 0; u < Ahead; u++)
        if (j[u] >= 0) what(j[u]);
    }
  }
}

using Marks = GallopFootprintMarks<MapThreads, MapWords>;
static_assert(HBP_MAX_COLS / HBP_CHUNK <= MapWords / 2, "chunks of a map that are far apart are found in one walk");

/* How many chunks block rb of rows has entries in, those in long rows left out, or more than A.mapChunks. Stores their first columns in increasing order where map is not NULL. */
static __device__ PetscInt WalkChunks(const Matrix &A, PetscInt rb, Marks &marks, PetscInt *__restrict__ map)
{
  __shared__ unsigned int longRows[HBP_MAX_ROWS / 32];
  const PetscInt          row = rb * A.N, rows = A.m - row < A.N ? A.m - row : A.N;
  bool                    some = false;

  for (PetscInt r = (PetscInt)threadIdx.x; r - (PetscInt)threadIdx.x % WarpSize < rows; r += MapThreads) {
    const unsigned int isLong = __ballot_sync(All, r < rows && A.i[row + r + 1] - A.i[row + r] > A.longRow);

    if (threadIdx.x % WarpSize == 0) longRows[r / 32] = isLong;
    some = some || isLong;
  }
  some = __syncthreads_or(some);
  return GallopFootprint(marks, A.mapChunks, false, HBP_CHUNK, map, [&](auto what) { WalkShortRows(A, row, rows, longRows, some, [&](PetscInt col) { what((int)(col / HBP_CHUNK)); }); });
}

/* A GPU block a block of rows: how many chunks its map has, 0 for none */
__global__ static void __launch_bounds__(MapThreads, 4) CountChunksKernel(Matrix A, PetscInt *__restrict__ chunks, Found *found)
{
  __shared__ Marks marks;
  const PetscInt   rb = (PetscInt)blockIdx.x, num = WalkChunks(A, rb, marks, NULL);

  if (threadIdx.x) return;
  chunks[rb] = num <= A.mapChunks ? num : 0;
  if (rb == 0) chunks[A.rowBlocks] = 0;
  if (num > A.mapChunks) atomicAdd(&found->plain, 1);
  else if (num) atomicAdd(&found->mapped, 1);
}

/* A GPU block a block of rows: its map; and the last one a map of all chunks of a block, for those that have none. ptr: where maps begin. */
__global__ static void __launch_bounds__(MapThreads, 4) MapKernel(Matrix A, HBP h, const PetscInt *__restrict__ ptr, PetscInt all)
{
  __shared__ Marks marks;
  const PetscInt   rb  = (PetscInt)blockIdx.x;
  PetscInt *const  map = h.map + ptr[rb];

  if (threadIdx.x == 0) h.mapPtr[rb] = ptr[rb];
  if (rb == h.rowBlocks) {
    for (PetscInt k = threadIdx.x; k < all; k += MapThreads) map[k] = k * HBP_CHUNK;
    return;
  }
  if (A.mapped[rb]) (void)WalkChunks(A, rb, marks, map);
}

/* Calls what(block, row, first entry, end, direct) for each segment that begins in a tile and is not of a block with a map */
template <typename What>
static __device__ __forceinline__ void WalkSegments(const Matrix &A, int *unsorted, What what)
{
  const PetscCount begin = (PetscCount)blockIdx.x * TileEntries, end = begin + TileEntries < A.nz ? begin + TileEntries : A.nz;
  const PetscInt   low = A.tileRow[blockIdx.x], high = end < A.nz ? A.tileRow[blockIdx.x + 1] : A.m - 1; /* rows from which on and up to which */
  bool             disorder = false;

  for (PetscCount e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const PetscInt row = low + HBPPlaceOf(high - low + 1, A.i + low, e); /* the last that begins at e or before, so one with entries */
    const PetscInt rb = row / A.N, first = A.i[row], last = A.i[row + 1], col = A.j[e], before = e > first ? A.j[e - 1] : -1;
    const PetscInt cb = col / A.M;

    if (A.IsMapped(rb)) continue;
    disorder = disorder || before >= col;
    if (last - first > A.longRow || (e > first && before / A.M == cb)) continue;
    what((PetscCount)cb * A.rowBlocks + rb, row, (PetscInt)e, HBPSegmentEnd(A.j, (PetscInt)e, last, A.M), A.j[first] / A.M == A.j[last - 1] / A.M);
  }
  if (disorder && unsorted) *unsorted = 1;
}

__global__ static void __launch_bounds__(Threads) CountKernel(Matrix A, Counts *counts, Found *found)
{
  unsigned int longest = 0;

  WalkSegments(A, &found->unsorted, [&](PetscCount block, PetscInt, PetscInt begin, PetscInt end, bool direct) {
    const int lanes = HBPLanes(&A.hash, A.laneEntries, end - begin);

    longest = max(longest, (unsigned int)(end - begin));

    atomicAdd(&counts[block].all, 1ull | (direct ? 0ull : 1ull << CountBits) | (unsigned long long)(end - begin) << 2 * CountBits);
    if (lanes) atomicAdd(&counts[block].lanes, 1ull << CountBits * (lanes - 1));
  });
  RaiseByWarp(&found->longest, longest);
}

/* Segments of blocks with maps, which are rows: a GPU block each */
__global__ static void __launch_bounds__(Threads) CountMappedKernel(Matrix A, Counts *counts, Found *found)
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
    all += 1ull | (unsigned long long)len << 2 * CountBits;
    if (lanes) more += 1ull << CountBits * (lanes - 1);
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
  __host__ __device__ Offsets operator()(const Offsets &a, const Offsets &b) const { return {a.blk + b.blk, a.seg + b.seg, a.nnz + b.nnz, a.group + b.group}; }
};

static __host__ __device__ __forceinline__ PetscInt CountOf(unsigned long long counts, int which)
{
  return (PetscInt)(counts >> CountBits * which & ((1 << CountBits) - 1));
}

struct OffsetsOf {
  __host__ __device__ Offsets operator()(const Counts &c) const
  {
    const PetscInt segs   = CountOf(c.all, 0);
    PetscInt       single = segs, groups = 0;

    for (int lanes = 1; lanes < HBP_LANES; lanes++) {
      const PetscInt num = CountOf(c.lanes, lanes - 1), size = HBP_GROUP >> lanes;

      single -= num;
      groups += (num + size - 1) / size;
    }
    return {segs > 0, segs, (PetscInt)(c.all >> 2 * CountBits), groups + (single + HBP_GROUP - 1) / HBP_GROUP};
  }
};

/* Partial sums of block k, row by row of blocks */
struct PartialsByRows {
  const Counts *counts;
  PetscInt      rowBlocks, colBlocks;

  __host__ __device__ PetscInt operator()(PetscCount k) const { return k < (PetscCount)rowBlocks * colBlocks ? CountOf(counts[k % colBlocks * rowBlocks + k / colBlocks].all, 1) : 0; }
};

/* Partial sums of a block of rows make so many pieces */
struct PiecesOf {
  const PetscInt *partials;
  PetscInt        rowBlocks, colBlocks;

  __host__ __device__ PetscInt operator()(PetscInt rb) const
  {
    return rb < rowBlocks ? (partials[(PetscCount)(rb + 1) * colBlocks] - partials[(PetscCount)rb * colBlocks] + HBP_COMBINED - 1) / HBP_COMBINED : 0;
  }
};

/* What the host is told of sums, by all threads of a grid; maps: where they begin */
static __device__ __forceinline__ void FindTotals(PetscCount blocks, PetscInt rowBlocks, const PetscInt *pieces, const Offsets *offsets, const PetscInt *partials, const PetscInt *maps, Found *found)
{
  const PetscCount stride = (PetscCount)gridDim.x * blockDim.x;
  unsigned int     most   = 0;

  for (PetscCount b = GlobalThread(); b < blocks; b += stride) most = max(most, (unsigned int)(offsets[b + 1].seg - offsets[b].seg));
  RaiseByWarp(&found->most, most);
  for (PetscCount k = GlobalThread(); k * rowBlocks <= blocks; k += stride) found->ends[k] = offsets[k * rowBlocks];
  if (GlobalThread()) return;
  found->blk     = offsets[blocks].blk;
  found->seg     = offsets[blocks].seg;
  found->group   = offsets[blocks].group;
  found->partial = partials[blocks];
  found->combine = pieces[rowBlocks];
  if (maps) found->map = maps[rowBlocks];
}

__global__ static void TotalsKernel(PetscCount blocks, PetscInt rowBlocks, const PetscInt *__restrict__ pieces, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, const PetscInt *__restrict__ maps, Found *found)
{
  FindTotals(blocks, rowBlocks, pieces, offsets, partials, maps, found);
}

/* Calls put(k, sum of those before) for the n numbers that get(k) tells a GPU block. What it puts all threads may then read. */
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

/* All sums by one GPU block, which takes less than to launch a scan of each. No pointer may be __restrict__: some sums are of others. */
__global__ static void __launch_bounds__(ScanThreads) ScanKernel(PetscInt rowBlocks, PetscInt colBlocks, const Counts *counts, const PetscInt *chunks, Offsets *offsets, PetscInt *partials, PetscInt *pieces, PetscInt *maps, Found *found)
{
  const PetscInt       blocks = rowBlocks * colBlocks;
  const PartialsByRows partialsOf{counts, rowBlocks, colBlocks};
  const PiecesOf       piecesOf{partials, rowBlocks, colBlocks};
  const auto           add = [](PetscInt a, PetscInt b) { return a + b; };

  BlockPrefixes<Offsets>(
    blocks + 1, AddOffsets(), [&](PetscInt k) { return OffsetsOf()(counts[k]); }, [&](PetscInt k, const Offsets &before) { offsets[k] = before; });
  BlockPrefixes<PetscInt>(
    blocks + 1, add, [&](PetscInt k) { return partialsOf(k); }, [&](PetscInt k, PetscInt before) { partials[k] = before; });
  BlockPrefixes<PetscInt>(
    rowBlocks + 1, add, [&](PetscInt k) { return piecesOf(k); }, [&](PetscInt k, PetscInt before) { pieces[k] = before; });
  if (maps)
    BlockPrefixes<PetscInt>(
      rowBlocks + 1, add, [&](PetscInt k) { return chunks[k]; }, [&](PetscInt k, PetscInt before) { maps[k] = before; });
  FindTotals(blocks, rowBlocks, pieces, offsets, partials, maps, found);
}

/* A segment before it has found its place: the first entry, how many follow it, the row in the block and HBP_FLAG. Stored at once. */
struct alignas(2 * sizeof(PetscInt)) Record {
  PetscInt       start;
  unsigned short last, row;
};

/* Segments by blocks, in any order */
__global__ static void __launch_bounds__(Threads) CollectKernel(Matrix A, Counts *counts, const Offsets *__restrict__ offsets, Record *__restrict__ rec)
{
  WalkSegments(A, nullptr, [&](PetscCount block, PetscInt row, PetscInt begin, PetscInt end, bool direct) {
    const PetscInt at = offsets[block].seg + CountOf(atomicAdd(&counts[block].all, ~0ull), 0) - 1; /* counts down */

    rec[at] = {begin, (unsigned short)(end - begin - 1), (unsigned short)(row % A.N | (direct ? HBP_FLAG : 0))};
  });
}

__global__ static void __launch_bounds__(Threads) CollectMappedKernel(Matrix A, const Offsets *__restrict__ offsets, Record *__restrict__ rec)
{
  __shared__ int taken;
  const PetscInt rb = (PetscInt)blockIdx.x, row = rb * A.N, end = A.m - row < A.N ? A.m : row + A.N;

  if (!A.mapped[rb]) return;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  for (PetscInt first = row + (PetscInt)threadIdx.x / WarpSize * WarpSize; first < end; first += Threads) {
    const PetscInt     r = first + (PetscInt)threadIdx.x % WarpSize, begin = r < end ? A.i[r] : 0, len = r < end ? A.i[r + 1] - begin : 0;
    const bool         mine = len && len <= A.longRow;
    const unsigned int live = __ballot_sync(All, mine);
    const int          base = __shfl_sync(All, threadIdx.x % WarpSize == 0 ? atomicAdd(&taken, __popc(live)) : 0, 0);
    const PetscInt     at   = offsets[rb].seg + base + __popc(live & LanesBelow());

    if (mine) rec[at] = {begin, (unsigned short)(len - 1), (unsigned short)((r - row) | HBP_FLAG)};
  }
}

/* What a warp needs in shared memory to find the places of a block's segments, of which a block has most at most */
struct Shelf {
  unsigned int   *bits;                 /* [words] rows that are there */
  int            *begin;                /* [hashes] segments of each hash, then the first place */
  unsigned short *before;               /* [words] how many in words before */
  unsigned short *order, *hash, *place; /* [most] records and their hashes in order of rows, records in order of places */
};

static __host__ __device__ size_t ShelfBytes(PetscInt N, PetscInt hashes, PetscInt most)
{
  const size_t words = (size_t)HBPWords(N);

  return (words * (sizeof(unsigned int) + sizeof(unsigned short)) + (size_t)hashes * sizeof(int) + 3 * (size_t)most * sizeof(unsigned short) + 15) / 16 * 16;
}

/* That of this warp */
static __device__ __forceinline__ Shelf GetShelf(unsigned char *memory, PetscInt N, int hashes, int most)
{
  const size_t words = (size_t)HBPWords(N);
  Shelf        shelf;

  shelf.bits   = (unsigned int *)(memory + threadIdx.x / WarpSize * ShelfBytes(N, hashes, most));
  shelf.begin  = (int *)(shelf.bits + words);
  shelf.before = (unsigned short *)(shelf.begin + hashes);
  shelf.order  = shelf.before + words;
  shelf.hash   = shelf.order + most;
  shelf.place  = shelf.hash + most;
  return shelf;
}

/* Warps of a GPU block, and the shared memory of each */
static int HashWarps(const HBP *h, PetscInt most, size_t *shelf)
{
  *shelf = ShelfBytes(h->N, HBPHashes(&h->hash), most);
  return (int)PetscMax(1, PetscMin(Warps, (48 << 10) / *shelf));
}

/* The same where each lane has at most one: lanes with a smaller hash, or the same one and a row before, are counted by votes on each bit */
static __device__ __forceinline__ void PlaceFew(const HBPHash &hash, PetscInt segs, const Record *rec, const Shelf &shelf)
{
  const int          lane  = threadIdx.x % WarpSize;
  const bool         mine  = lane < segs;
  const Record       own   = mine ? rec[lane] : Record{0, 0, 0};
  const unsigned int key   = mine ? (unsigned int)HBPHashOf(&hash, (PetscInt)own.last + 1) * HBP_MAX_ROWS + (own.row & ~HBP_FLAG) : 0;
  const unsigned int other = __shfl_sync(All, key, 0);
  unsigned int       same = __ballot_sync(All, mine), differ = GallopWarpOr(mine ? key ^ other : 0);
  int                place = 0;

  while (differ) { /* the highest bit that not all have */
    const unsigned int bit = 0x80000000u >> __clz((int)differ), ones = __ballot_sync(All, key & bit);

    if (key & bit) place += __popc(same & ~ones);
    same &= key & bit ? ones : ~ones;
    differ ^= bit;
  }
  if (mine) shelf.place[place] = (unsigned short)lane;
  __syncwarp();
}

/* Order of the records of a block by hash, of equal ones by row. Nothing is compared with each other: rows and hashes are counted. */
static __device__ void PlaceSegments(const HBPHash &hash, PetscInt N, PetscInt segs, const Record *rec, const Shelf &shelf)
{
  static constexpr int Ahead = 4;
  const int            lane = threadIdx.x % WarpSize, words = (int)HBPWords(N), hashes = (int)HBPHashes(&hash);

  if (segs <= WarpSize) {
    PlaceFew(hash, segs, rec, shelf);
    return;
  }
  for (int w = lane; w < words; w += WarpSize) shelf.bits[w] = 0;
  for (int k = lane; k < hashes; k += WarpSize) shelf.begin[k] = 0;
  __syncwarp();
  for (PetscInt k = lane; k < segs; k += Ahead * WarpSize) {
    int row[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) row[u] = k + u * WarpSize < segs ? rec[k + u * WarpSize].row & ~HBP_FLAG : -1;
#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (row[u] >= 0) atomicOr(shelf.bits + row[u] / 32, 1u << row[u] % 32);
  }
  __syncwarp();
  GallopWarpPrefixes(
    words, [&](int w) { return __popc(shelf.bits[w]); }, [&](int w, int before, int) { shelf.before[w] = (unsigned short)before; });
  for (PetscInt k = lane; k < segs; k += Ahead * WarpSize) {
    Record r[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (k + u * WarpSize < segs) r[u] = rec[k + u * WarpSize];
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      if (k + u * WarpSize >= segs) continue;
      const int row = r[u].row & ~HBP_FLAG, at = shelf.before[row / 32] + __popc(shelf.bits[row / 32] & ((1u << row % 32) - 1)), value = (int)HBPHashOf(&hash, (PetscInt)r[u].last + 1);

      shelf.order[at] = (unsigned short)(k + u * WarpSize);
      shelf.hash[at]  = (unsigned short)value;
      atomicAdd(shelf.begin + value, 1);
    }
  }
  __syncwarp();
  GallopWarpPrefixes(
    hashes, [&](int k) { return shelf.begin[k]; }, [&](int k, int before, int) { shelf.begin[k] = before; });
  for (PetscInt k = 0; k < segs; k += WarpSize) {
    const bool         mine  = k + lane < segs;
    const int          value = mine ? shelf.hash[k + lane] : -1;
    const unsigned int peers = __match_any_sync(All, value);
    const int          to    = mine ? shelf.begin[value] : 0;

    __syncwarp();
    if (mine && !(peers & LanesBelow())) shelf.begin[value] = to + __popc(peers);
    if (mine) shelf.place[to + __popc(peers & LanesBelow())] = shelf.order[k + lane];
    __syncwarp();
  }
}

/* A warp a block: its segments in their places, its groups. start is as of the records, but in order of places. */
__global__ static void HashKernel(HBP h, PetscCount blocks, const Counts *__restrict__ counts, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, const Record *__restrict__ rec, int most, PetscInt *__restrict__ start, unsigned short *__restrict__ partialRow)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane = threadIdx.x % WarpSize, hashes = (int)HBPHashes(&h.hash);
  const PetscCount                              b = GlobalThread() / WarpSize;

  if (b >= blocks) return;
  const Offsets  first = offsets[b];
  const PetscInt segs = offsets[b + 1].seg - first.seg, rb = (PetscInt)(b % h.rowBlocks), cb = (PetscInt)(b / h.rowBlocks);
  PetscInt       ptr = first.nnz, out = partials[(PetscCount)rb * h.colBlocks + cb];

  if (!segs) return;
  const Shelf shelf = GetShelf(memory, h.N, hashes, most);

  PlaceSegments(h.hash, h.N, segs, rec + first.seg, shelf);
  if (lane == 0) h.begin_nnz[first.blk] = ptr;
  PetscInt g = first.group, next = 0, single = segs;

  for (int lanes = 1; lanes < HBP_LANES; lanes++) single -= CountOf(counts[b].lanes, lanes - 1);
  for (int lanes = 0; lanes < HBP_LANES; lanes++) { /* those with as many lanes follow each other; as many groups at once as have 32 segments */
    const int      size = HBP_GROUP >> lanes, leader = lane & ~(size - 1);
    const PetscInt num = lanes ? CountOf(counts[b].lanes, lanes - 1) : single;

    for (PetscInt at = 0; at < num; at += WarpSize) {
      const bool         mine = at + lane < num;
      const PetscInt     to   = first.seg + next + at + lane;
      const Record       own  = mine ? rec[first.seg + shelf.place[next + at + lane]] : Record{0, 0, HBP_FLAG};
      const int          len = mine ? (int)own.last + 1 : 0, row = own.row, prefix = GallopWarpPrefix(len), other = __shfl_sync(All, len, leader);
      const unsigned int group  = (unsigned int)((1ull << size) - 1) << leader;
      const unsigned int summed = __ballot_sync(All, !(row & HBP_FLAG)), uneven = __ballot_sync(All, mine && (len != other || len & ((1 << lanes) - 1))); /* summed later, by the combine part */

      if (mine) {
        h.output_hash[to] = HBPOutput(row, len, h.longest);
        if (h.nnz_perrow) h.nnz_perrow[to] = (unsigned short)(len - 1);
        start[to] = own.start;
      }
      if (!(row & HBP_FLAG)) partialRow[out + __popc(summed & LanesBelow())] = (unsigned short)row;
      if (mine && lane == leader) {
        const PetscInt begin = HBPIsMapped(h.mapPtr, rb) ? -2 - h.mapPtr[rb] : summed & group ? out + __popc(summed & LanesBelow()) : -1;

        h.group[g + lane / size] = {ptr + prefix - len, to, begin, HBPInfo(rb, !(uneven & group), lanes)};
      }
      g += (PetscInt)((num - at < WarpSize ? num - at : WarpSize) + size - 1) / size;
      out += __popc(summed);
      ptr += __shfl_sync(All, prefix, WarpSize - 1);
    }
    next += num;
  }
}

static inline PetscCount DirectBits(const HBP *h)
{
  return (PetscCount)h->rowBlocks * HBPWords(h->N) * WarpSize;
}

/* One bit a row: whether all its entries are in one block, or it is long; what ends arrays, and where columns of blocks and rows of blocks begin */
__global__ static void BoundsKernel(Matrix A, HBP h, PetscCount bits, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, const PetscInt *__restrict__ pieces)
{
  const PetscCount k     = GlobalThread();
  const PetscInt   words = HBPWords(h.N), rb = (PetscInt)(k / WarpSize / words), r = (PetscInt)(k / WarpSize % words) * WarpSize + threadIdx.x % WarpSize;
  const PetscCount row = (PetscCount)rb * A.N + r;
  bool             one = false;

  if (k < bits && r < A.N && row < A.m) {
    const PetscInt first = A.i[row], end = A.i[row + 1];

    one = end - first > A.longRow || (end > first && (A.IsMapped(rb) || A.j[first] / A.M == A.j[end - 1] / A.M));
  }
  const unsigned int direct = __ballot_sync(All, one);

  if (k < bits && threadIdx.x % WarpSize == 0) h.direct[k / WarpSize] = direct;
  if (k <= h.colBlocks) h.colGroup[k] = offsets[k * h.rowBlocks].group;
  if (k <= h.rowBlocks) {
    h.partialPtr[k] = partials[k * h.colBlocks];
    h.combinePtr[k] = pieces[k];
  }
  if (k == 0) {
    h.begin_nnz[h.blkNum] = (PetscInt)h.blknz;
    h.group[h.groupNum]   = {(PetscInt)h.blknz, h.segNum, -1, 0};
    if (!h.longRows.num) h.longRows.ptr[0] = h.longRows.firstPiece[0] = 0;
  }
}

/* Pieces of the combine part, a warp each: the place of each partial sum by rows, and where those of each row end. What is of one row stays in order. */
__global__ static void CombinePlanKernel(HBP h, const unsigned short *__restrict__ row)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane  = threadIdx.x % WarpSize;
  const PetscCount                              piece = GlobalThread() / WarpSize;
  int *const                                    place = (int *)memory + (size_t)(threadIdx.x / WarpSize) * h.N;

  if (piece >= h.combineNum) return;
  const PetscInt        rb    = HBPPlaceOf(h.rowBlocks, h.combinePtr, piece); /* of several that begin with it the last, which has it */
  const PetscInt        begin = h.partialPtr[rb] + (PetscInt)(piece - h.combinePtr[rb]) * HBP_COMBINED, stop = h.partialPtr[rb + 1], end = stop - begin < HBP_COMBINED ? stop : begin + HBP_COMBINED;
  unsigned short *const ends = h.combineEnd + piece * h.N;

  for (PetscInt r = lane; r < h.N; r += WarpSize) place[r] = 0;
  __syncwarp();
  for (PetscInt k = begin + lane; k < end; k += WarpSize) atomicAdd(place + row[k], 1);
  __syncwarp();
  GallopWarpPrefixes((int)h.N, [&](int r) { return place[r]; },
                     [&](int r, int before, int own) {
                       place[r] = before;
                       ends[r]  = (unsigned short)(before + own);
                     });
  for (PetscInt k = begin; k < end; k += WarpSize) {
    const bool         mine  = k + lane < end;
    const int          r     = mine ? row[k + lane] : -1;
    const unsigned int peers = __match_any_sync(All, r);
    const int          to    = mine ? place[r] : 0;

    __syncwarp();
    if (mine && !(peers & LanesBelow())) place[r] = to + __popc(peers);
    if (mine) h.combinePos[k + lane] = (unsigned short)(to + __popc(peers & LanesBelow()));
    __syncwarp();
  }
}

/* A piece of a long row from CSR; columns too where they are wanted */
__global__ static void __launch_bounds__(Threads) LongRowsKernel(HBP h, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, bool columns)
{
  const GallopPiece<PetscInt> p = GallopGetPiece(h.longRows.pieceRow, h.longRows.pieceAt, h.longRows.ptr, (PetscInt)blockIdx.x, HBP_PIECE);

  GallopCopyPiece(p, h.longRows.ptr, i[h.longRows.row[p.row]], j, a, h.data + h.blknz, h.longCol, columns);
}

/*
  Calls store(entry, k, load(k)) for the entries of group g, where a warp meets them: this lane's k-th ones of a segment are all that are lanes apart; segment() tells where
  it begins. A few are loaded at once.
*/
template <typename Value, typename Segment, typename Load, typename Store>
static __device__ __forceinline__ void WalkGroup(const HBP &h, PetscCount g, Segment segment, Load load, Store store)
{
  static constexpr int Steps = 4;
  const HBPGroup       group = h.group[g];
  const int            lane = threadIdx.x % WarpSize, lanes = (int)(group.info & 7), within = lane & ((1 << lanes) - 1);
  const PetscInt       seg = group.seg + (lane >> lanes), mine = seg < h.group[g + 1].seg, len = mine ? HBPLaneLength(HBPLength(h.output_hash, h.nnz_perrow, seg), lanes, within) : 0, first = mine ? segment(seg) + within : 0;
  PetscInt             ptr = group.begin_ptr;

  for (PetscInt k = 0; __any_sync(All, k < len); k += Steps) {
    Value value[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++)
      if (k + u < len) value[u] = load(first + ((k + u) << lanes));
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const unsigned int live = __ballot_sync(All, k + u < len);

      if (k + u < len) store(ptr + __popc(live & LanesBelow()), first + ((k + u) << lanes), value[u]);
      ptr += __popc(live);
    }
  }
}

struct Entry {
  PetscInt    j, e;
  PetscScalar a;
};

/* A warp a group: its entries. from, where j is not CSR's but sorted. */
__global__ static void __launch_bounds__(Threads) ConvertKernel(HBP h, const PetscInt *__restrict__ start, const PetscInt *__restrict__ j, const PetscInt *__restrict__ from, const PetscScalar *__restrict__ a)
{
  const PetscCount g = GlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  const PetscInt  rb   = h.group[g].info >> 4;
  const bool      maps = HBPIsMapped(h.mapPtr, rb);
  const PetscInt *map = maps ? h.map + h.mapPtr[rb] : NULL, num = maps ? h.mapPtr[rb + 1] - h.mapPtr[rb] : 0;
  PetscInt        chunk = 0, begin = maps ? map[0] : 0; /* of the entry before, which often has the same */

  WalkGroup<Entry>(
    h, g, [&](PetscInt seg) { return start[seg]; },
    [&](PetscInt k) {
      const PetscInt e = from ? from[k] : k;

      return Entry{j[k], e, a[e]};
    },
    [&](PetscInt at, PetscInt, const Entry &entry) {
      if (maps && (entry.j < begin || entry.j - begin >= HBP_CHUNK)) {
        chunk = HBPPlaceOf(num, map, entry.j);
        begin = map[chunk];
      }
      h.col[at]  = (unsigned short)(maps ? chunk * HBP_CHUNK + entry.j - begin : entry.j % h.M);
      h.data[at] = entry.a;
      if (from) h.csrIdx[at] = entry.e;
    });
}

/* New values, a warp a group; a segment is looked up in its row */
__global__ static void __launch_bounds__(Threads) RefreshKernel(HBP h, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const PetscCount g = GlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  const PetscInt cb    = HBPPlaceOf(h.colBlocks, h.colGroup, g);
  const PetscInt begin = (h.group[g].info >> 4) * h.N;

  WalkGroup<PetscScalar>(
    h, g,
    [&](PetscInt seg) {
      const PetscInt row = begin + HBPOutputRow(h.output_hash[seg]);

      return HBPSegmentBegin(j, i[row], i[row + 1], (PetscCount)cb * h.M);
    },
    [&](PetscInt k) { return a[k]; }, [&](PetscInt at, PetscInt, const PetscScalar &value) { h.data[at] = value; });
}

__global__ static void RefreshByIndexKernel(HBP h, const PetscScalar *__restrict__ a)
{
  const PetscCount k = GlobalThread();

  if (k < h.blknz) h.data[k] = a[h.csrIdx[k]];
}

/* Rows whose columns do not increase are sorted first */
__global__ static void RowKeyKernel(Matrix A, unsigned long long *__restrict__ key, PetscInt *__restrict__ entry)
{
  const PetscCount r = GlobalThread();

  if (r >= A.m) return;
  for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
    key[k]   = (unsigned long long)r << 32 | (unsigned long long)A.j[k];
    entry[k] = k;
  }
}

__global__ static void ColumnOfKeyKernel(PetscCount nz, const unsigned long long *__restrict__ key, PetscInt *__restrict__ j)
{
  const PetscCount k = GlobalThread();

  if (k < nz) j[k] = (PetscInt)(key[k] & 0xffffffffu);
}

/* ---- the product ---- */

/* A piece of a long row, by all threads of a GPU block */
template <int BlockThreads, typename V, typename I>
static __device__ void MultiplyPiece(const HBPArrays<V, I> &h, const V *x)
{
  const GallopPiece<I> p   = GallopGetPiece(h.pieceRow, h.pieceAt, h.longPtr, (PetscInt)blockIdx.x, HBP_PIECE);
  V                    sum = V(0);

#pragma unroll 4
  for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += BlockThreads) sum += GallopLoadOnce(h.data + h.blknz + k) * x[GallopLoadOnce(h.longCol + k)];
  sum = GallopWarpsSum<BlockThreads>(sum, BlockThreads);
  if (threadIdx.x == 0) h.longPartial[blockIdx.x] = sum;
}

/* x of a block, by the numbers of its columns */
template <typename V, typename I, int Where>
struct Columns {
  const V *x;
  const I *map;

  /* Loads x of Steps numbers, or 0 where one is not wanted */
  template <int Steps, typename Wanted>
  __device__ __forceinline__ void Load(const unsigned short *col, Wanted wanted, V *value) const
  {
    I place[Steps];

    GetPlaces<Where, Steps>(map, col, wanted, place);
#pragma unroll
    for (int u = 0; u < Steps; u++) value[u] = wanted(u) ? x[place[u]] : V(0);
  }
};

/* The sum of a lane's entries, for TakeGroup() */
template <typename V, typename X>
struct Sum {
  X x;
  V sum;

  template <int Steps, typename Wanted>
  __device__ __forceinline__ void Take(const V *value, const unsigned short *col, Wanted wanted)
  {
    V xs[Steps];

    x.template Load<Steps>(col, wanted, xs);
#pragma unroll
    for (int u = 0; u < Steps; u++) sum += value[u] * xs[u];
  }
  __device__ __forceinline__ Sum Share(unsigned int, int) const
  {
    return {x, V(0)};
  }
  __device__ __forceinline__ void Collect(const Sum &part, unsigned int live, int many, bool mine)
  {
    const int lane = threadIdx.x % WarpSize, copies = WarpSize / many;
    V         total = part.sum;

    for (int c = 1; c < copies; c++) total += GallopShuffle(part.sum, (lane + c * many) % WarpSize); /* in the first lanes, as many as live */
    total = GallopShuffle(total, __popc(live & LanesBelow()) % WarpSize);
    if (mine) sum += total;
  }
};

/* What the SpMV part does with groups, for WalkPart() */
template <typename V, typename I, int Where>
class Products {
public:
  __device__ __forceinline__      Products(const HBPArrays<V, I> &h, const GallopVectors<V> &v, const V *shared) : h_(h), v_(v), x_(shared) { }
  __device__ __forceinline__ void Begin(I col)
  {
    if (Where != SHARED) x_ = v_.x + (PetscCount)col * h_.M;
  }

  /* Its results, or its partial sums */
  __device__ __forceinline__ void Group(const Groups<I> &groups, int t, const Lane &own) const
  {
    const int                    lane = threadIdx.x % WarpSize, packed = groups.lanes[t], lanes = packed & 7, used = packed >> 4 & 63;
    const bool                   first = lane < used && !(lane & ((1 << lanes) - 1)), direct = own.hash & HBP_FLAG;
    Sum<V, Columns<V, I, Where>> sum = {
      {x_, Where == MAPPED ? MapOf(h_, groups, t) : nullptr},
      V(0)
    };

    TakeGroup(h_, groups, t, own, sum);
    for (int by = 1 << lanes >> 1; by; by /= 2) sum.sum += GallopShuffleDown(sum.sum, by, WarpSize);
    if (first && direct) GallopStore(v_, groups.row[t] + HBPOutputRow(own.hash), sum.sum);
    const I out = groups.out[t];

    if (out < 0) return;
    const unsigned int summed = __ballot_sync(All, first && !direct); /* later, by the combine part */

    if (summed >> lane & 1) h_.partial[out + __popc(summed & LanesBelow())] = sum.sum;
  }

  /* Without rows that are done in one block: of where the sums go each group knows the beginning */
  __device__ __forceinline__ void Singles(const Groups<I> &groups, int t, int stop) const
  {
    static constexpr int Steps = 4;
    const int            lane  = threadIdx.x % WarpSize;
    const I              begin = groups.ptr[t], end = groups.ptr[stop], mine = groups.ptr[lane], shift = groups.out[lane] - mine;
    int                  before = t - 1; /* the group that the entry before is of */

    for (I e = begin; e < end; e += Steps * WarpSize) {
      V              value[Steps];
      unsigned short col[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I at = e + u * WarpSize + lane;

        value[u] = at < end ? GallopLoadOnce(h_.data + at) : V(0);
        col[u]   = at < end ? GallopLoadOnce(h_.col + at) : 0;
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) value[u] = e + u * WarpSize + lane < end ? value[u] * x_[col[u]] : V(0);
#pragma unroll
      for (int u = 0; u < Steps; u++) {
        const I line = e + u * WarpSize, to = line + lane + GallopShuffle(shift, GroupOfSingle(t, stop, mine - line, &before));

        if (line + lane < end) h_.partial[to] = value[u];
      }
    }
  }

private:
  const HBPArrays<V, I>  &h_;
  const GallopVectors<V> &v_;
  const V                *x_;
};

/* The groups of part p */
template <typename V, typename I, int Where>
static __device__ __forceinline__ void ComputePart(const HBPArrays<V, I> &h, const GallopVectors<V> &v, I p, Groups<I> &groups, const V *shared, bool wait)
{
  WalkPart(h, p, groups, Where != MAPPED && !h.direct, wait, Products<V, I, Where>(h, v, shared));
}

/* x of a column of blocks in shared memory, by all threads of a GPU block */
template <typename V, typename I>
static __device__ __forceinline__ void LoadColumn(const HBPArrays<V, I> &h, const V *x, I col, V *xs)
{
  const I left = h.n - col * h.M, cols = left < h.M ? left : h.M;

  for (I c = threadIdx.x; c < cols; c += blockDim.x) xs[c] = x[(PetscCount)col * h.M + c]; /* not a read-only load, which might go ahead of the wait */
}

/*
  The SpMV part, and first the pieces of long rows. Warps compute the parts that are theirs, and then take others by tickets; with x in shared memory GPU blocks take shares, the parts of
  which their warps take one by one.
*/
template <typename V, typename I, int Where>
__global__ static void __launch_bounds__(Where == SHARED ? SharedThreads : FewThreads, Where == SHARED ? (sizeof(V) > 8 ? 1 : 2) : (sizeof(V) > 8 ? 4 : 7)) HBPKernel(HBPArrays<V, I> h, GallopVectors<V> v)
{
  static constexpr bool Shared = Where == SHARED;
  const int             lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, warps = blockDim.x / WarpSize;
  const I               number = (I)blockIdx.x - h.pieceNum, numbers = (I)gridDim.x - h.pieceNum;
  const I agents = Shared ? numbers : numbers * warps, total = Shared ? h.shareNum : h.partNum, given = agents * h.fixedEach; /* who take, what there is, and how much of it is not taken */

  GallopLetSuccessorStart();
  if (number < 0) {
    GallopWaitForPredecessor();
    MultiplyPiece<Shared ? SharedThreads : FewThreads>(h, v.x);
    return;
  }
  __shared__ Groups<I> warpGroups[(Shared ? SharedThreads : FewThreads) / WarpSize];
  Groups<I>           &groups = warpGroups[warp];

  if constexpr (Shared) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int                                next, taken; /* part of the share, and shares */
    V *const                                      xs   = reinterpret_cast<V *>(memory);
    I                                             here = -1;

    for (I t = 0;; t++) {
      I s = number * h.fixedEach + t;

      __syncthreads(); /* what was in shared memory has been used */
      if (t >= h.fixedEach) {
        if (given >= total) break; /* there are no others */
        if (threadIdx.x == 0) taken = atomicAdd(h.tickets, 1);
        __syncthreads();
        s = given + taken;
      }
      if (s >= total) break;
      const I first = h.shares[s], stop = h.shares[s + 1], col = h.parts[first].col;

      if (t == 0) GallopWaitForPredecessor();
      if (threadIdx.x == 0) next = warps;
      if (here != col) LoadColumn(h, v.x, col, xs);
      here = col;
      __syncthreads();
      for (I p = first + warp; p < stop; p = first + __shfl_sync(All, lane == 0 ? atomicAdd(&next, 1) : 0, 0)) ComputePart<V, I, SHARED>(h, v, p, groups, xs, false);
    }
  } else {
    WalkParts(h, number, given, [&](I p, bool wait) { ComputePart<V, I, Where>(h, v, p, groups, nullptr, wait); });
  }
  if (given < total && !(Shared ? threadIdx.x : lane)) EndTickets(h, agents);
}

/* What the combine part reads */
template <typename V, typename I>
struct CombineArrays {
  I                     m, N, rowBlocks, longNum;
  const I              *partialPtr, *combinePtr, *longRow, *firstPiece;
  const unsigned short *combinePos, *combineEnd;
  const unsigned int   *direct;
  const V              *partial, *longPartial;
  bool                  shared; /* partial sums are put in order in shared memory */
};

/* The combine part: a GPU block a block of rows, a piece of its partial sums after the other, in order of rows in shared memory; and the last ones long rows, a warp each */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) CombineKernel(CombineArrays<V, I> c, GallopVectors<V> v)
{
  static constexpr int Ahead = 4, Piece = HBP_COMBINED;
  extern __shared__ __align__(16) unsigned char memory[];
  V *const ordered = reinterpret_cast<V *>(memory), *const sums = ordered + Piece; /* sums where there are several pieces */
  const I   rb    = (I)blockIdx.x;
  const int words = (int)((c.N + 31) / 32);

  if (!c.shared) GallopLetSuccessorStart(); /* else the next product's SpMV part would begin with as little L1 as this leaves */
  if (rb >= c.rowBlocks) {
    const I t   = (rb - c.rowBlocks) * Warps + (I)(threadIdx.x / WarpSize);
    V       sum = V(0);

    GallopWaitForPredecessor();
    if (t >= c.longNum) return;
    for (I k = c.firstPiece[t] + threadIdx.x % WarpSize; k < c.firstPiece[t + 1]; k += WarpSize) sum += GallopLoadFromL2(c.longPartial + k);
    sum = GallopGroupSum(sum, WarpSize);
    if (threadIdx.x % WarpSize == 0) GallopStore(v, c.longRow[t], sum);
    return;
  }
  const I stop = c.partialPtr[rb + 1], first = c.combinePtr[rb], last = c.combinePtr[rb + 1] - 1, rows = c.m - rb * c.N < c.N ? c.m - rb * c.N : c.N;

  GallopWaitForPredecessor();
  for (I piece = first; piece <= last || piece == first; piece++) {
    const I                     begin = c.partialPtr[rb] + (piece - first) * Piece, end = stop - begin < Piece ? stop : begin + Piece;
    const unsigned short *const ends = c.combineEnd + (PetscCount)piece * c.N;

    for (I k = begin + threadIdx.x; k < end; k += Ahead * Threads) {
      V   value[Ahead];
      int pos[Ahead];

#pragma unroll
      for (int u = 0; u < Ahead; u++) {
        if (k + u * Threads < end) {
          value[u] = GallopLoadFromL2(c.partial + k + u * Threads);
          pos[u]   = GallopLoadOnce(c.combinePos + k + u * Threads);
        }
      }
#pragma unroll
      for (int u = 0; u < Ahead; u++)
        if (k + u * Threads < end) ordered[pos[u]] = value[u];
    }
    __syncthreads();
    for (I r = threadIdx.x; r < rows; r += Ahead * Threads) {
      int  from[Ahead], to[Ahead];
      bool wanted[Ahead];

#pragma unroll
      for (int u = 0; u < Ahead; u++) {
        const I row = r + u * Threads;

        from[u]   = piece <= last && row < rows && row ? ends[row - 1] : 0;
        to[u]     = piece <= last && row < rows ? ends[row] : 0;
        wanted[u] = row < rows && !(c.direct[(PetscCount)rb * words + row / 32] >> row % 32 & 1);
      }
#pragma unroll
      for (int u = 0; u < Ahead; u++) {
        const I row = r + u * Threads;
        V       sum = piece > first && wanted[u] ? sums[row] : V(0);

        for (int k = from[u]; k < to[u]; k++) sum += ordered[k];
        if (!wanted[u]) continue;
        if (piece < last) sums[row] = sum;
        else GallopStore(v, rb * c.N + row, sum);
      }
    }
    __syncthreads();
  }
}

/* ---- host code ---- */

struct Workspace {
  HBPSample          *sample;
  Counts             *counts;
  Offsets            *offsets;
  PetscInt           *partials, *pieces, *tileRow, *longRows;
  Found              *found;
  PetscInt           *chunks, *mapPtr;  /* of maps, and where they begin; NULL where there are none */
  PetscInt           *j, *from, *entry; /* of rows that are not sorted */
  int                 most;             /* segments of a block */
  unsigned long long *key, *sortedkey;
  char               *cub;
};

static PetscCount Tiles(PetscCount nz)
{
  return (nz + TileEntries - 1) / TileEntries;
}

/* What is needed before blocks are chosen, or before it is known whether there is more than one column of them: as much as the choice may need, see HBPChoose() and HBPFits(), */
static size_t CarveLook(Workspace *w, const GallopCSR *csr, const HBPOptions *options, const PetscInt M[2], void *base)
{
  GallopCarver     carver(base);
  const PetscInt   rowBlocks = (csr->m - 1) / (options->block_rows ? options->block_rows : HBP_LEAST_ROWS) + 1;
  const PetscCount colBlocks = PetscMin((csr->n - 1) / PetscMin(M[0], M[1]) + 1, 4 * csr->nz + 16000000);
  char            *found;

  carver.Take(w->sample, 1);
  carver.Take(found, (PetscCount)FoundBytes((PetscInt)colBlocks));
  w->found = (Found *)found;
  carver.Take(w->chunks, (PetscCount)rowBlocks + 1);
  carver.Take(w->mapPtr, (PetscCount)rowBlocks + 1);
  return carver.Bytes();
}

/* and then */
static size_t CarveBlocks(Workspace *w, const HBP *h, size_t cubbytes, void *base)
{
  GallopCarver     carver(base);
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  carver.Take(w->tileRow, Tiles(h->nz));
  carver.Take(w->longRows, h->nz / h->longRow + 1);
  carver.Take(w->counts, blocks + 1);
  carver.Take(w->offsets, blocks + 1);
  carver.Take(w->partials, blocks + 1);
  carver.Take(w->pieces, (PetscCount)h->rowBlocks + 1);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
}

/* Clears sample and found too; *memory is to be freed, NULL where there is none */
static PetscErrorCode TakeLook(const GallopCSR *csr, const HBPOptions *options, const PetscInt M[2], Workspace *w, void **memory, size_t *bytes, cudaStream_t stream)
{
  PetscFunctionBegin;
  *bytes = CarveLook(w, csr, options, M, NULL);
  PetscCall(GallopDeviceMalloc(*bytes, memory));
  if (!*memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveLook(w, csr, options, M, *memory);
  PetscCallCUDA(cudaMemsetAsync(w->sample, 0, (size_t)((char *)(w->found + 1) - (char *)w->sample), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How the rows look */
static PetscErrorCode Look(const GallopCSR *csr, const PetscInt M[2], const Workspace *w, HBPSample *s, cudaStream_t stream)
{
  const Widths widths = {
    {M[0], M[1]}
  };

  PetscFunctionBegin;
  LookKernel<<<GallopBlocksFor(HBP_SAMPLES, Warps), Threads, 0, stream>>>(csr->m, csr->i, csr->j, widths, (unsigned long long *)w->sample);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(s, w->sample, sizeof(*s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t CarveSorted(Workspace *w, PetscCount nz, size_t cubbytes, void *base)
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

static size_t CarveRecords(Record **rec, PetscInt **start, unsigned short **partialRow, const HBP *h, void *base)
{
  GallopCarver carver(base);

  carver.Take(*rec, h->segNum);
  carver.Take(*start, h->segNum);
  carver.Take(*partialRow, h->partialNum);
  return carver.Bytes();
}

/* Chunks of a block without a map, where others have one */
static PetscInt AllChunks(const HBP *h)
{
  return h->mapped && h->colBlocks > 1 ? (h->M - 1) / HBP_CHUNK + 1 : 0;
}

/* Small arrays, all filled by one copy */
static void TakeLongRows(GallopCarver *carver, GallopLongRows *l)
{
  carver->Take(l->row, l->num);
  carver->Take(l->ptr, (PetscCount)l->num + 1);
  carver->Take(l->firstPiece, (PetscCount)l->num + 1);
  carver->Take(l->pieceRow, l->pieceNum);
  carver->Take(l->pieceAt, l->pieceNum);
}

static size_t Carve(HBP *h, bool indices, void *base)
{
  GallopCarver carver(base);

  carver.Take(h->data, h->nz);
  carver.Take(h->col, h->blknz);
  carver.Take(h->group, (PetscCount)h->groupNum + 1);
  carver.Take(h->output_hash, h->segNum);
  carver.Take(h->nnz_perrow, h->longest > HBP_PACKED ? h->segNum : 0);
  if (h->longest <= HBP_PACKED) h->nnz_perrow = NULL;
  carver.Take(h->begin_nnz, (PetscCount)h->blkNum + 1);
  carver.Take(h->colGroup, (PetscCount)h->colBlocks + 1);
  carver.Take(h->partialPtr, (PetscCount)h->rowBlocks + 1);
  carver.Take(h->combinePtr, (PetscCount)h->rowBlocks + 1);
  carver.Take(h->combinePos, h->partialNum);
  carver.Take(h->combineEnd, (PetscCount)h->combineNum * h->N);
  TakeLongRows(&carver, &h->longRows);
  carver.Take(h->longCol, h->longRows.nz);
  carver.Take(h->direct, (PetscCount)h->rowBlocks * HBPWords(h->N));
  carver.Take(h->mapPtr, h->mapChunks ? (PetscCount)h->rowBlocks + 1 : 0);
  carver.Take(h->map, h->mapNum + AllChunks(h));
  if (indices) carver.Take(h->csrIdx, h->blknz);
  if (!h->mapChunks) h->mapPtr = NULL;
  h->bytes = carver.Bytes();
  carver.Take(h->partial, h->partialNum);
  carver.Take(h->longPartial, h->longRows.pieceNum);
  return carver.Bytes();
}

static size_t CarvePlan(Plan *plan, void *base)
{
  GallopCarver carver(base);

  carver.Take(plan->parts, (PetscCount)plan->partNum + 1);
  carver.Take(plan->shares, (PetscCount)plan->shareNum + 1);
  carver.Take(plan->tickets, 2);
  return carver.Bytes();
}

/* One allocation for a format and its plan; h->data is NULL where there is no room. */
static PetscErrorCode TakeArrays(HBP *h, bool indices, PetscCount maxbytes)
{
  Plan        *plan  = (Plan *)h->plan;
  const size_t bytes = Carve(h, indices, NULL), planbytes = CarvePlan(plan, NULL);
  void        *base = NULL;

  PetscFunctionBegin;
  if (!maxbytes || bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes + planbytes, &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(h, indices, base);
  (void)CarvePlan(plan, (char *)base + bytes);
  h->bytes += planbytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool HasFewBlocks(const HBP *h)
{
  return (PetscCount)h->rowBlocks * h->colBlocks <= FewBlocks;
}

/* All sums of what was counted; without cub only *cubbytes, what these need */
static PetscErrorCode ScanBlocks(const HBP *h, const Workspace *w, char *cub, size_t *cubbytes, cudaStream_t stream)
{
  const PetscCount blocks   = (PetscCount)h->rowBlocks * h->colBlocks;
  const auto       numbers  = thrust::make_counting_iterator((PetscCount)0);
  size_t           bytes[4] = {*cubbytes, *cubbytes, *cubbytes, w->chunks ? *cubbytes : 0};

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(cub, bytes[0], thrust::make_transform_iterator(w->counts, OffsetsOf()), w->offsets, AddOffsets(), Offsets{0, 0, 0, 0}, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[1], thrust::make_transform_iterator(numbers, PartialsByRows{w->counts, h->rowBlocks, h->colBlocks}), w->partials, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[2], thrust::make_transform_iterator(numbers, PiecesOf{w->partials, h->rowBlocks, h->colBlocks}), w->pieces, h->rowBlocks + 1, stream));
  if (w->chunks) PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, bytes[3], w->chunks, w->mapPtr, h->rowBlocks + 1, stream));
  if (!cub) *cubbytes = PetscMax(PetscMax(bytes[0], bytes[1]), PetscMax(bytes[2], bytes[3]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for what is counted of rows and blocks, and for CUB; *memory is to be freed, NULL where there is none */
static PetscErrorCode TakeBlocks(const HBP *h, Workspace *w, size_t *cubbytes, void **memory, size_t *bytes, cudaStream_t stream)
{
  PetscFunctionBegin;
  *cubbytes = 0;
  if (!h->mapChunks) w->chunks = w->mapPtr = NULL;
  if (!HasFewBlocks(h)) PetscCall(ScanBlocks(h, w, nullptr, cubbytes, stream));
  *bytes = CarveBlocks(w, h, *cubbytes, NULL);
  PetscCall(GallopDeviceMalloc(*bytes, memory));
  if (*memory) (void)CarveBlocks(w, h, *cubbytes, *memory);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of each row in increasing order; *sorted is to be freed, NULL where there is no memory */
static PetscErrorCode SortRows(Matrix *A, Workspace *w, void **sorted, size_t *bytes, cudaStream_t stream)
{
  size_t    cub  = 0;
  const int bits = 32 + PetscMin(GallopSortBits(A->m), 32);

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  *bytes = CarveSorted(w, A->nz, cub, NULL);
  PetscCall(GallopDeviceMalloc(*bytes, sorted));
  if (!*sorted) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveSorted(w, A->nz, cub, *sorted);
  RowKeyKernel<<<GallopBlocksFor(A->m, Threads), Threads, 0, stream>>>(*A, w->key, w->entry);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  ColumnOfKeyKernel<<<GallopBlocksFor(A->nz, Threads), Threads, 0, stream>>>(A->nz, w->sortedkey, w->j);
  GallopCheckLaunch();
  A->j = w->j;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of everything, and where blocks begin */
static PetscErrorCode Count(const HBP *h, const Matrix *A, Workspace *w, size_t cubbytes, Found *found, cudaStream_t stream)
{
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  PetscFunctionBegin;
  if (w->from) { /* counted before rows were sorted */
    PetscCallCUDA(cudaMemsetAsync(w->counts, 0, (size_t)(blocks + 1) * sizeof(*w->counts), stream));
    PetscCallCUDA(cudaMemsetAsync(&w->found->most, 0, 2 * sizeof(int), stream));
  }
  if (h->mapped) {
    CountMappedKernel<<<(unsigned int)h->rowBlocks, Threads, 0, stream>>>(*A, w->counts, w->found);
    GallopCheckLaunch();
  }
  if (!h->allMapped) {
    CountKernel<<<(unsigned int)Tiles(A->nz), Threads, 0, stream>>>(*A, w->counts, w->found);
    GallopCheckLaunch();
  }
  if (HasFewBlocks(h)) ScanKernel<<<1, ScanThreads, 0, stream>>>(h->rowBlocks, h->colBlocks, w->counts, w->chunks, w->offsets, w->partials, w->pieces, w->mapPtr, w->found);
  else {
    PetscCall(ScanBlocks(h, w, w->cub, &cubbytes, stream));
    TotalsKernel<<<PetscMin(GallopBlocksFor(blocks, Threads), 512), Threads, 0, stream>>>(blocks, h->rowBlocks, w->pieces, w->offsets, w->partials, w->mapPtr, w->found);
  }
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(found, w->found, FoundBytes(h->colBlocks)));
  w->most = found->most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  HBP  *h    = (HBP *)*data;
  Plan *plan = (Plan *)h->plan;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(h->data)); /* where the allocation begins */
  if (plan) PetscCall(PetscFree(plan->longRows));
  PetscCall(PetscFree(plan));
  PetscCall(PetscFree(h));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts that follow each other, of one column of blocks and about the same weight: the first one, where it begins, and the first share */
typedef struct {
  PetscInt   part, col, share;
  PetscCount weight, each;
} Section;

/* As many as a launch takes with it */
struct Sections {
  static constexpr int Most = 64;

  PetscInt num;
  Section  of[Most];
};

/* How parts are cut: whether entries count, how many parts a share has */
typedef struct {
  PetscCount entries;
  PetscInt   together, sectionNum;
  Section   *sections;
} Cuts;

/* What parts are cut by: groups, and entries if these count */
static __host__ __device__ __forceinline__ PetscCount Weight(PetscCount entries, PetscCount groups)
{
  return entries + GroupWeight * groups;
}

/* Where parts of some sections begin, from part begin on and before part end; and shares */
__global__ static void PartsKernel(HBP h, Plan plan, PetscCount entries, PetscInt together, Sections sections, PetscInt begin, PetscInt end)
{
  const PetscCount p = begin + GlobalThread();

  if (p >= end) return;
  if (p == plan.partNum) {
    plan.parts[p]              = {h.groupNum, h.colBlocks};
    plan.shares[plan.shareNum] = plan.partNum;
    plan.tickets[0] = plan.tickets[1] = 0;
    return;
  }
  PetscInt first = 0, last = sections.num - 1;

  while (first < last) { /* the last section that begins at p or before */
    const PetscInt mid = last - (last - first) / 2;

    if (sections.of[mid].part <= p) first = mid;
    else last = mid - 1;
  }
  const Section  s      = sections.of[first];
  const PetscInt within = (PetscInt)p - s.part;
  PetscInt       lo = h.colGroup[s.col], hi = h.colGroup[s.col + 1];

  while (lo < hi) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (Weight(entries * h.group[mid].begin_ptr, mid) < s.weight + within * s.each) lo = mid + 1;
    else hi = mid;
  }
  plan.parts[p] = {lo, s.col};
  if (plan.shareNum && within % together == 0) plan.shares[s.share + within / together] = (PetscInt)p;
}

/* Cuts columns of blocks, before each of which is weight end[], into parts: given many or fewer of weight each first, and then parts of weight least. Returns the number of parts. */
static PetscInt CutParts(PetscInt cols, const PetscCount end[], PetscInt given, PetscCount each, PetscCount least, PetscInt *sectionNum, Section sections[])
{
  PetscInt num = 0, n = 0;

  for (PetscInt cb = 0; cb < cols; cb++) {
    PetscCount at = end[cb];

    while (at < end[cb + 1]) {
      const PetscCount weight = num < given ? each : least;
      PetscCount       parts  = (end[cb + 1] - at + weight - 1) / weight;

      if (num < given) parts = PetscMin(parts, given - num);
      sections[n++] = {num, cb, 0, at, weight};
      num += (PetscInt)parts;
      at += parts * weight;
    }
  }
  *sectionNum = n;
  return num;
}

/* What does not change while a process uses a GPU, asked once */
struct Device {
  int       device = -1, sms = 0;
  int       resident[2] = {0, 0}; /* GPU blocks of the SpMV part that a multiprocessor has at once, without and with maps; 0 before it is known */
  PetscBool overlaps    = PETSC_FALSE;
};

/* HBPGetSharedCols_Device - Columns of a block whose x the GPU has room for in shared memory, which the kernel may take from then on. Asked once. */
PetscErrorCode HBPGetSharedCols_Device(PetscInt *cols)
{
  static int      known = -1;
  static PetscInt room;
  int             device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  if (device != known) {
    cudaFuncAttributes attributes;
    int                most;

    PetscCallCUDA(cudaFuncGetAttributes(&attributes, HBPKernel<PetscScalar, PetscInt, SHARED>));
    PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    room = HBPSharedCols((size_t)most, attributes.sharedSizeBytes);
    PetscCallCUDA(cudaFuncSetAttribute(HBPKernel<PetscScalar, PetscInt, SHARED>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(room * sizeof(PetscScalar))));
    known = device;
  }
  *cols = room;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares the kernels of a matrix too, but for the one with x in shared memory, which HBPGetSharedCols_Device() did. Of a kernel that no matrix needs nothing is asked: it would be loaded. */
static PetscErrorCode GetDevice(const HBP *h, Device *d)
{
  static Device known;
  int           device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  if (device != known.device) {
    known = Device();
    PetscCallCUDA(GallopKernelOverlaps(CombineKernel<PetscScalar, PetscInt>, &known.overlaps));
    PetscCallCUDA(cudaDeviceGetAttribute(&known.sms, cudaDevAttrMultiProcessorCount, device));
    PetscCallCUDA(cudaFuncSetAttribute(CombineKernel<PetscScalar, PetscInt>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)((HBP_COMBINED + HBP_MAX_ROWS) * sizeof(PetscScalar))));
    known.device = device;
  }
  if (!h->shared && !known.resident[h->mapped > 0]) {
    const auto kernel = h->mapped ? HBPKernel<PetscScalar, PetscInt, MAPPED> : HBPKernel<PetscScalar, PetscInt, PLAIN>;

    PetscCallCUDA(GiveL1(kernel, FewThreads, device, &known.resident[h->mapped > 0])); /* the combine part before needed shared memory */
  }
  *d = known;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts of about the same weight, and how to launch. The caller frees cuts->sections. */
static PetscErrorCode MakePlan(HBP *h, const Offsets *ends, Cuts *cuts)
{
  Plan          *plan;
  PetscInt       num, shares = 0;
  PetscCount    *end, entries, weight, agents, each, least, mean;
  const PetscInt fixed = h->options.fixed >= 0 ? h->options.fixed : h->shared ? 0 : 75;
  int            resident, warps;
  Device         d;

  PetscFunctionBegin;
  *cuts = {};
  PetscCall(PetscNew(&plan));
  h->plan = plan;
  PetscCall(GetDevice(h, &d));
  plan->fresh    = PETSC_TRUE;
  plan->overlaps = d.overlaps;
  plan->shared   = h->shared ? (size_t)h->M * sizeof(PetscScalar) : 0;
  resident       = d.resident[h->mapped > 0];
  if (h->shared) PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, HBPKernel<PetscScalar, PetscInt, SHARED>, SharedThreads, plan->shared));
  plan->combineShared = HBP_COMBINED * sizeof(PetscScalar) + (PetscMin((PetscCount)h->N * h->colBlocks, h->partialNum) > HBP_COMBINED ? (size_t)h->N * sizeof(PetscScalar) : 0); /* a block of rows may have several pieces */
  plan->threads = h->shared ? SharedThreads : FewThreads;
  warps         = plan->threads / WarpSize;
  agents        = (PetscCount)d.sms * resident * warps;
  entries       = h->groupNum > 8 * agents; /* else a part is a group */
  PetscCall(PetscMalloc1(h->colBlocks + 1, &end));
  for (PetscInt cb = 0; cb <= h->colBlocks; cb++) end[cb] = Weight(entries * ends[cb].nnz, ends[cb].group);
  weight = end[h->colBlocks];
  mean   = weight / PetscMax(h->groupNum, 1) + 1;
  if (entries) {
    each  = PetscMin(PartWeight, PetscMax(mean, weight * fixed / 100 / agents + 1));
    least = PetscMin(PartWeight, PetscMax(mean, weight / (8 * agents)));
    if (h->shared) each = least;
  } else each = least = GroupWeight;
  plan->fixedEach = entries && h->options.fixed < 0 ? 1 : (PetscInt)PetscMax(1, weight * fixed / 100 / agents / each); /* the first one needs no ticket */
  PetscCall(PetscMalloc1(h->colBlocks + 1, &cuts->sections));                                                          /* one column may have two */
  num            = CutParts(h->colBlocks, end, h->shared ? 0 : plan->fixedEach * (PetscInt)agents, each, least, &cuts->sectionNum, cuts->sections);
  cuts->entries  = entries;
  cuts->together = h->shared ? (PetscInt)(PetscMax(weight / (8 * (PetscCount)d.sms * resident), 2 * h->M) / least + 1) : 1;
  for (PetscInt k = 0; k < cuts->sectionNum && h->shared; k++) {
    cuts->sections[k].share = shares;
    shares += ((k + 1 < cuts->sectionNum ? cuts->sections[k + 1].part : num) - cuts->sections[k].part + cuts->together - 1) / cuts->together;
  }
  plan->shareNum = shares;
  plan->partNum  = num;
  plan->blocks   = (int)PetscMin(h->shared ? (PetscCount)shares : ((PetscCount)num + warps - 1) / warps, (PetscCount)d.sms * resident);
  if (h->shared) plan->fixedEach = (PetscInt)PetscMax(1, (PetscReal)shares / PetscMax(plan->blocks, 1) * fixed / 100);
  PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sections go with the launches, so that the host has nothing to copy and nothing to wait for */
static PetscErrorCode CutPlan(const HBP *h, const Cuts *cuts, cudaStream_t stream)
{
  const Plan *plan  = (const Plan *)h->plan;
  PetscInt    begin = 0, first = 0;

  PetscFunctionBegin;
  do {
    Sections sections = {};
    PetscInt end      = plan->partNum + 1;

    sections.num = PetscMin(cuts->sectionNum - first, Sections::Most);
    for (PetscInt k = 0; k < sections.num; k++) sections.of[k] = cuts->sections[first + k];
    first += sections.num;
    if (first < cuts->sectionNum) end = cuts->sections[first].part;
    PartsKernel<<<GallopBlocksFor(end - begin, Threads), Threads, 0, stream>>>(*h, *plan, cuts->entries, cuts->together, sections, begin, end);
    GallopCheckLaunch();
    begin = end;
  } while (first < cuts->sectionNum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The GPU may copy later: the plan keeps what it copies from */
static PetscErrorCode CopyLongRows(HBP *h, const GallopLongRows *l)
{
  GallopLongRows staged = *l;
  GallopCarver   sizes(NULL);
  void         **base = &((Plan *)h->plan)->longRows;

  PetscFunctionBegin;
  if (!l->num) PetscFunctionReturn(PETSC_SUCCESS);
  TakeLongRows(&sizes, &staged);
  PetscCall(PetscMalloc(sizes.Bytes(), base));
  GallopCarver carver(*base);

  TakeLongRows(&carver, &staged);
  PetscCall(PetscArraycpy(staged.row, l->row, l->num));
  PetscCall(PetscArraycpy(staged.ptr, l->ptr, l->num + 1));
  PetscCall(PetscArraycpy(staged.firstPiece, l->firstPiece, l->num + 1));
  PetscCall(PetscArraycpy(staged.pieceRow, l->pieceRow, l->pieceNum));
  PetscCall(PetscArraycpy(staged.pieceAt, l->pieceAt, l->pieceNum));
  PetscCall(GallopDeviceCopyIn(h->longRows.row, *base, sizes.Bytes()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With all numbers known: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode Complete(HBP *h, const GallopCSR *csr, const Matrix *A, const GallopLongRows *l, const Cuts *cuts, Workspace *w, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks, bits = DirectBits(h);
  const int        planWarps = (int)PetscMax(1, PetscMin(Warps, (32 << 10) / ((size_t)h->N * sizeof(int))));
  Record          *rec;
  PetscInt        *start;
  unsigned short  *partialRow;
  size_t           recbytes, shelf;
  int              warps;
  void            *recbase;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(TakeArrays(h, w->from != NULL, maxbytes));
  if (!h->data) PetscFunctionReturn(PETSC_SUCCESS);
  recbytes = CarveRecords(&rec, &start, &partialRow, h, NULL);
  PetscCall(GallopDeviceMalloc(recbytes, &recbase));
  if (!recbase) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveRecords(&rec, &start, &partialRow, h, recbase);
  if (h->mapChunks) {
    MapKernel<<<(unsigned int)h->rowBlocks + 1, MapThreads, 0, stream>>>(*A, *h, w->mapPtr, AllChunks(h));
    GallopCheckLaunch();
  }
  BoundsKernel<<<GallopBlocksFor(PetscMax(bits, (PetscCount)h->colBlocks + 1), Threads), Threads, 0, stream>>>(*A, *h, bits, w->offsets, w->partials, w->pieces);
  GallopCheckLaunch();
  if (h->mapped) {
    CollectMappedKernel<<<(unsigned int)h->rowBlocks, Threads, 0, stream>>>(*A, w->offsets, rec);
    GallopCheckLaunch();
  }
  if (!h->allMapped) {
    CollectKernel<<<(unsigned int)Tiles(h->nz), Threads, 0, stream>>>(*A, w->counts, w->offsets, rec);
    GallopCheckLaunch();
  }
  warps = HashWarps(h, w->most, &shelf);
  HashKernel<<<GallopBlocksFor(blocks, warps), warps * WarpSize, warps * shelf, stream>>>(*h, blocks, w->counts, w->offsets, w->partials, rec, w->most, start, partialRow);
  GallopCheckLaunch();
  if (h->combineNum) {
    CombinePlanKernel<<<GallopBlocksFor(h->combineNum, planWarps), planWarps * WarpSize, planWarps *(size_t)h->N * sizeof(int), stream>>>(*h, partialRow);
    GallopCheckLaunch();
  }
  PetscCall(CopyLongRows(h, l));
  if (h->longRows.pieceNum) {
    LongRowsKernel<<<(unsigned int)h->longRows.pieceNum, Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a, true);
    GallopCheckLaunch();
  }
  ConvertKernel<<<GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 0, stream>>>(*h, start, A->j, w->from, csr->a);
  GallopCheckLaunch();
  PetscCall(CutPlan(h, cuts, stream));
  PetscCall(GallopDeviceRelease(recbytes, recbase));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which blocks of rows have maps */
static PetscErrorCode CountMaps(HBP *h, Matrix *A, const Workspace *w, cudaStream_t stream)
{
  Found found;

  PetscFunctionBegin;
  CountChunksKernel<<<(unsigned int)h->rowBlocks, MapThreads, 0, stream>>>(*A, w->chunks, w->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, w->found, sizeof(found)));
  h->mapped = found.mapped;
  if (!found.plain) {
    h->allMapped = PETSC_TRUE;
    h->colBlocks = 1;
  }
  A->mapped = w->chunks;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What has been counted, and the long rows */
static PetscErrorCode SetNumbers(HBP *h, const GallopCSR *csr, const Found *found, const Workspace *w, GallopLongRows *longRows)
{
  PetscInt *rows;

  PetscFunctionBegin;
  h->blkNum     = found->blk;
  h->segNum     = found->seg;
  h->groupNum   = found->group;
  h->partialNum = found->partial;
  h->combineNum = found->combine;
  h->mapNum     = found->map;
  h->longest    = found->longest;
  h->alone      = (PetscBool)(!found->partial && !found->longRows && !found->empty);
  PetscCall(PetscMalloc1(found->longRows, &rows));
  if (found->longRows <= FewRows) PetscCall(PetscArraycpy(rows, found->rows, found->longRows));
  else PetscCall(GallopDeviceCopyOut(rows, w->longRows, (size_t)found->longRows * sizeof(PetscInt)));
  PetscCall(GallopLongRowsPlan(csr->host_i, found->longRows, rows, HBP_PIECE, longRows));
  PetscCall(PetscFree(rows));
  h->longRows.num      = longRows->num;
  h->longRows.pieceNum = longRows->pieceNum;
  h->longRows.nz       = longRows->nz;
  h->blknz             = h->nz - longRows->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  HBP         *h;
  HBPSample    s;
  PetscInt     M[2];
  Matrix       A;
  Workspace    w     = {};
  Found       *found = NULL;
  size_t       lookbytes, blockbytes = 0, sortedbytes = 0, cubbytes;
  void        *lookmemory, *blockmemory = NULL, *sorted = NULL, *data;
  cudaStream_t stream;
  PetscBool    done;

  GallopLongRows longRows;
  Cuts           cuts;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscNew(&h));
  data       = h;
  h->memtype = PETSC_MEMTYPE_CUDA;
  h->m       = csr->m;
  h->n       = csr->n;
  h->nz      = csr->nz;
  h->options = *(const HBPOptions *)options;
  PetscCall(HBPGetSharedCols(csr, &h->options));
  HBPCandidates(&h->options, M);
  PetscCall(TakeLook(csr, &h->options, M, &w, &lookmemory, &lookbytes, stream));
  done = (PetscBool)(lookmemory != NULL);
  if (done) {
    PetscCall(Look(csr, M, &w, &s, stream));
    HBPChoose(&h->options, csr, M, &s, h);
    done = (PetscBool)HBPFits(h);
  }
  if (done) {
    A = {h->m, h->N, h->M, h->rowBlocks, h->longRow, h->laneEntries, h->hash, h->nz, csr->i, csr->j, NULL, NULL, h->mapChunks};
    if (h->mapChunks) PetscCall(CountMaps(h, &A, &w, stream));
    PetscCall(TakeBlocks(h, &w, &cubbytes, &blockmemory, &blockbytes, stream));
    done = (PetscBool)(blockmemory != NULL);
  }
  if (done) {
    A.tileRow = w.tileRow;
    PetscCall(PetscMalloc(FoundBytes(h->colBlocks), (void **)&found));
    TilesKernel<<<GallopBlocksFor(h->m, Threads), Threads, 0, stream>>>(h->m, h->longRow, csr->i, w.tileRow, w.longRows, (PetscCount)h->rowBlocks * h->colBlocks, w.counts, w.found);
    GallopCheckLaunch();
    PetscCall(Count(h, &A, &w, cubbytes, found, stream));
  }
  if (done && found->unsorted) done = (PetscBool)((PetscCount)h->n <= (PetscCount)1 << 32); /* keys have 32 bits for a column */
  if (done && found->unsorted) {
    char *const cub = w.cub;

    PetscCall(SortRows(&A, &w, &sorted, &sortedbytes, stream));
    w.cub = cub;
    done  = (PetscBool)(sorted != NULL);
    if (done) PetscCall(Count(h, &A, &w, cubbytes, found, stream));
  }
  if (done) done = (PetscBool)(found->longest <= HBP_MAX_COLS); /* else some row names columns more than once, and more often than two bytes tell */
  if (done) {
    PetscCall(SetNumbers(h, csr, found, &w, &longRows));
    PetscCall(MakePlan(h, found->ends, &cuts));
    PetscCall(Complete(h, csr, &A, &longRows, &cuts, &w, maxbytes, stream, &done));
    PetscCall(PetscFree(cuts.sections));
    PetscCall(GallopLongRowsFree(&longRows));
  }
  PetscCall(PetscFree(found));
  if (done) *built = h;
  else PetscCall(Destroy(&data));
  if (sorted) PetscCall(GallopDeviceRelease(sortedbytes, sorted));
  if (blockmemory) PetscCall(GallopDeviceRelease(blockbytes, blockmemory));
  if (lookmemory) PetscCall(GallopDeviceRelease(lookbytes, lookmemory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  HBP         *h = (HBP *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (h->longRows.pieceNum) {
    LongRowsKernel<<<(unsigned int)h->longRows.pieceNum, Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a, false);
    GallopCheckLaunch();
  }
  if (h->csrIdx) RefreshByIndexKernel<<<GallopBlocksFor(h->blknz, Threads), Threads, 0, stream>>>(*h, csr->a);
  else RefreshKernel<<<GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  ((Plan *)h->plan)->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  HBP                                   *h        = (HBP *)data;
  Plan                                  *plan     = (Plan *)h->plan;
  const HBPArrays<PetscScalar, PetscInt> a        = ArraysOf(h);
  const GallopVectors<PetscScalar>       v        = GallopVectorsOf(p);
  const PetscCount                       blocks   = plan->blocks + (PetscCount)h->longRows.pieceNum;
  const bool                             overlaps = plan->overlaps && !plan->fresh;        /* new values must have been written */
  const bool                             combined = h->nz >= 1000000 && h->partialNum > 0; /* then the combine part of the product before would leave little L1, while it runs */
  cudaStream_t                           stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (blocks) {
    const GallopGrid grid = {blocks, plan->threads, 1, plan->shared, stream, overlaps && !combined};

    if (h->shared) PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, SHARED>, grid, a, v));
    else if (h->mapped) PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, MAPPED>, grid, a, v));
    else PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, PLAIN>, grid, a, v));
  }
  if (!h->alone) {
    const CombineArrays<PetscScalar, PetscInt> c = {h->m,          h->N,          h->rowBlocks, h->longRows.num, h->partialPtr,  h->combinePtr,    h->longRows.row, h->longRows.firstPiece,
                                                    h->combinePos, h->combineEnd, h->direct,    h->partial,      h->longPartial, h->partialNum > 0};

    PetscCallCUDA(GallopLaunch(CombineKernel<PetscScalar, PetscInt>, {h->rowBlocks + ((PetscCount)h->longRows.num + Warps - 1) / Warps, Threads, 1, plan->combineShared, stream, overlaps}, c, v));
  }
  PetscCallCUDA(GallopNotFresh(stream, &plan->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork HBPDevice = {Build, Refresh, Apply, Destroy, HBPApplyTranspose_Device, NULL};
