/* HBP on the GPU: the build from CSR arrays there, and the kernels of the product */

#include <gallop/cudaimpl.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "hbp.h"

static constexpr int          Threads = 256, Warps = Threads / WarpSize;
static constexpr int          SharedThreads = 512, FewThreads = 128; /* of the SpMV part: as many as share x, or few */
static constexpr int          MostTaken   = 31;                      /* groups that a warp takes at once: a lane each, and one for the end of the last */
static constexpr int          TakenWeight = 1024;                    /* of about this weight */
static constexpr int          GroupWeight = 64;                      /* entries that take as long as what a group takes besides its entries */
static constexpr int          TileEntries = 1024;                    /* that a GPU block looks at to find segments */
static constexpr unsigned int All         = 0xffffffffu;

/* What a block has: segments, those that give partial sums, entries; and of segments by log2 of lanes all but those with one */
struct Counts {
  unsigned long long all, lanes;
};

static constexpr int CountBits = 12; /* a block has at most HBP_MAX_ROWS segments */

static __device__ __forceinline__ PetscCount GlobalThread()
{
  return (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
}

static inline unsigned int GridFor(PetscCount n, int threads = Threads)
{
  return (unsigned int)PetscMax((n + threads - 1) / threads, 1);
}

static __device__ __forceinline__ unsigned int LanesBelow()
{
  unsigned int mask;

  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
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

__global__ static void LookKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Widths w, HBPSample *sum)
{
  const int                 k    = (int)GlobalThread();
  HBPSample                 mine = {};
  unsigned long long *const to   = (unsigned long long *)sum;
  const unsigned long long *from = (const unsigned long long *)&mine;

  if (k >= HBP_SAMPLES) return;
  HBPLook(m, i, j, w.M, k, &mine);
  for (int f = 0; f < (int)(sizeof(mine) / sizeof(*from)); f++)
    if (from[f]) atomicAdd(to + f, from[f]);
}

struct Found {
  PetscInt blk, seg, group, partial, combine, longRows;
  int      unsorted, empty; /* some row's columns do not increase, or it has no entries */
};

/* The row in which each tile of entries begins, and long rows in any order */
__global__ static void TilesKernel(PetscInt m, PetscInt longRow, const PetscInt *__restrict__ i, PetscInt *__restrict__ tileRow, PetscInt *__restrict__ longRows, Found *found)
{
  const PetscCount r = GlobalThread();

  if (r >= m) return;
  if (i[r + 1] == i[r]) found->empty = 1;
  if (i[r + 1] - i[r] > longRow) longRows[AddOne(&found->longRows)] = (PetscInt)r;
  for (PetscCount t = ((PetscCount)i[r] + TileEntries - 1) / TileEntries; t * TileEntries < i[r + 1]; t++) tileRow[t] = (PetscInt)r;
}

/* What of a matrix the kernels that look for segments need */
struct Matrix {
  PetscInt        m, N, M, rowBlocks, longRow, laneEntries;
  HBPHash         hash;
  PetscCount      nz;
  const PetscInt *i, *j, *tileRow;
};

/* Calls what(block, row, first entry, end, direct) for each segment that begins in a tile */
template <typename What>
static __device__ __forceinline__ void WalkSegments(const Matrix &A, int *unsorted, What what)
{
  const PetscCount begin = (PetscCount)blockIdx.x * TileEntries, end = begin + TileEntries < A.nz ? begin + TileEntries : A.nz;
  const PetscInt   low = A.tileRow[blockIdx.x], high = end < A.nz ? A.tileRow[blockIdx.x + 1] : A.m - 1; /* rows from which on and up to which */
  bool             disorder = false;

  for (PetscCount e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const PetscInt row   = low + HBPPlaceOf(high - low + 1, A.i + low, e); /* the last that begins at e or before, so one with entries */
    const PetscInt first = A.i[row], last = A.i[row + 1], col = A.j[e], cb = col / A.M, before = e > first ? A.j[e - 1] : -1;

    disorder = disorder || before >= col;
    if (last - first > A.longRow || (e > first && before / A.M == cb)) continue;
    what((PetscCount)cb * A.rowBlocks + row / A.N, row, (PetscInt)e, HBPSegmentEnd(A.j, (PetscInt)e, last, A.M), A.j[first] / A.M == A.j[last - 1] / A.M);
  }
  if (disorder && unsorted) *unsorted = 1;
}

__global__ static void __launch_bounds__(Threads) CountKernel(Matrix A, Counts *counts, Found *found)
{
  WalkSegments(A, &found->unsorted, [&](PetscCount block, PetscInt, PetscInt begin, PetscInt end, bool direct) {
    const int lanes = HBPLanes(&A.hash, A.laneEntries, end - begin);

    atomicAdd(&counts[block].all, 1ull | (direct ? 0ull : 1ull << CountBits) | (unsigned long long)(end - begin) << 2 * CountBits);
    if (lanes) atomicAdd(&counts[block].lanes, 1ull << CountBits * (lanes - 1));
  });
}

/* Of all blocks before one, column by column */
struct Offsets {
  PetscInt blk, seg, nnz, group;
};

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

/* One bit a row: whether all its entries are in one block, or it is long */
__global__ static void DirectKernel(Matrix A, PetscInt words, PetscCount n, unsigned int *__restrict__ direct)
{
  const PetscCount k  = GlobalThread();
  const PetscInt   rb = (PetscInt)(k / WarpSize / words), r = (PetscInt)(k / WarpSize % words) * WarpSize + threadIdx.x % WarpSize;
  const PetscCount row   = (PetscCount)rb * A.N + r;
  const bool       valid = k < n && r < A.N && row < A.m;
  bool             one   = false;

  if (valid) {
    const PetscInt first = A.i[row], end = A.i[row + 1];

    one = end - first > A.longRow || (end > first && A.j[first] / A.M == A.j[end - 1] / A.M);
  }
  const unsigned int bits = __ballot_sync(All, one);

  if (k < n && threadIdx.x % WarpSize == 0) direct[k / WarpSize] = bits;
}

/* Partial sums of a block of rows make so many pieces */
struct PiecesOf {
  const PetscInt *partials;
  PetscInt        rowBlocks, colBlocks;

  __host__ __device__ PetscInt operator()(PetscInt rb) const
  {
    return rb < rowBlocks ? (partials[(PetscCount)(rb + 1) * colBlocks] - partials[(PetscCount)rb * colBlocks] + HBP_COMBINED - 1) / HBP_COMBINED : 0;
  }
};

__global__ static void TotalsKernel(PetscCount blocks, PetscInt rowBlocks, const PetscInt *__restrict__ pieces, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, Found *found)
{
  found->blk     = offsets[blocks].blk;
  found->seg     = offsets[blocks].seg;
  found->group   = offsets[blocks].group;
  found->partial = partials[blocks];
  found->combine = pieces[rowBlocks];
}

/* Segments before they have found their places: the first entry, how many follow it, the row in the block and HBP_FLAG */
struct Records {
  PetscInt       *start;
  unsigned short *last, *row;
};

/* Segments by blocks, in any order */
__global__ static void __launch_bounds__(Threads) CollectKernel(Matrix A, Counts *counts, const Offsets *__restrict__ offsets, Records rec)
{
  WalkSegments(A, nullptr, [&](PetscCount block, PetscInt row, PetscInt begin, PetscInt end, bool direct) {
    const PetscInt at = offsets[block].seg + CountOf(atomicAdd(&counts[block].all, ~0ull), 0) - 1; /* counts down */

    rec.start[at] = begin;
    rec.last[at]  = (unsigned short)(end - begin - 1);
    rec.row[at]   = (unsigned short)(row % A.N | (direct ? HBP_FLAG : 0));
  });
}

/* The sum over this lane and those below */
static __device__ __forceinline__ int WarpPrefix(int sum)
{
  for (int by = 1; by < WarpSize; by *= 2) {
    const int other = __shfl_up_sync(All, sum, by);

    if ((int)threadIdx.x % WarpSize >= by) sum += other;
  }
  return sum;
}

/* What a warp needs in shared memory to find the places of a block's segments */
struct Shelf {
  unsigned int   *bits;          /* [words] rows that are there */
  unsigned short *before;        /* [words] how many in words before */
  unsigned short *begin;         /* [hashes + 1] first place of each hash */
  unsigned short *order, *place; /* [N] records in order of rows, and of places */
};

static __host__ __device__ size_t ShelfBytes(PetscInt N, PetscInt hashes)
{
  const size_t words = (size_t)HBPWords(N);

  return (words * (sizeof(unsigned int) + sizeof(unsigned short)) + ((size_t)hashes + 1 + 2 * (size_t)N) * sizeof(unsigned short) + 15) / 16 * 16;
}

/* Order of the records of a block by hash, of equal ones by row. Nothing is compared with each other: rows and hashes are counted. */
static __device__ void PlaceSegments(const HBPHash &hash, PetscInt N, PetscInt segs, const unsigned short *last, const unsigned short *row, const Shelf &shelf)
{
  const int lane = threadIdx.x % WarpSize, words = (int)HBPWords(N), hashes = (int)HBPHashes(&hash);
  int       sum = 0;

  for (int w = lane; w < words; w += WarpSize) shelf.bits[w] = 0;
  for (int k = lane; k <= hashes; k += WarpSize) shelf.begin[k] = 0;
  __syncwarp();
  for (PetscInt k = lane; k < segs; k += WarpSize) atomicOr(shelf.bits + (row[k] & ~HBP_FLAG) / 32, 1u << (row[k] & ~HBP_FLAG) % 32);
  __syncwarp();
  for (int w = 0; w < words; w += WarpSize) { /* prefix sums */
    const int own = w + lane < words ? __popc(shelf.bits[w + lane]) : 0, to = WarpPrefix(own);

    if (w + lane < words) shelf.before[w + lane] = (unsigned short)(sum + to - own);
    sum += __shfl_sync(All, to, WarpSize - 1);
  }
  __syncwarp();
  for (PetscInt k = lane; k < segs; k += WarpSize) {
    const int r = row[k] & ~HBP_FLAG;

    shelf.order[shelf.before[r / 32] + __popc(shelf.bits[r / 32] & ((1u << r % 32) - 1))] = (unsigned short)k;
  }
  __syncwarp();
  for (int pass = 0; pass < 2; pass++) { /* counts hashes, then places */
    for (PetscInt k = 0; k < segs; k += WarpSize) {
      const bool         mine  = k + lane < segs;
      const int          which = mine ? shelf.order[k + lane] : 0, value = mine ? (int)HBPHashOf(&hash, (PetscInt)last[which] + 1) : -1;
      const unsigned int peers = __match_any_sync(All, value);
      const int          to    = mine ? shelf.begin[value] : 0;

      __syncwarp();
      if (mine && !(peers & LanesBelow())) shelf.begin[value] = (unsigned short)(to + __popc(peers));
      if (mine && pass) shelf.place[to + __popc(peers & LanesBelow())] = (unsigned short)which;
      __syncwarp();
    }
    if (pass) break;
    sum = 0;
    for (int k = 0; k < hashes; k += WarpSize) { /* prefix sums again */
      const int own = k + lane < hashes ? shelf.begin[k + lane] : 0, to = WarpPrefix(own);

      if (k + lane < hashes) shelf.begin[k + lane] = (unsigned short)(sum + to - own);
      sum += __shfl_sync(All, to, WarpSize - 1);
    }
    __syncwarp();
  }
}

/* A warp a block: its segments in their places, its groups. start is as rec.start, but in order of places. */
__global__ static void HashKernel(HBP h, PetscCount blocks, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, Records rec, PetscInt *__restrict__ start, unsigned short *__restrict__ partialRow)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane = threadIdx.x % WarpSize, hashes = (int)HBPHashes(&h.hash);
  const PetscCount                              b     = GlobalThread() / WarpSize;
  const size_t                                  words = (size_t)HBPWords(h.N);
  Shelf                                         shelf;

  if (b >= blocks) return;
  const Offsets  first = offsets[b];
  const PetscInt segs = offsets[b + 1].seg - first.seg, rb = (PetscInt)(b % h.rowBlocks), cb = (PetscInt)(b / h.rowBlocks);
  PetscInt       ptr = first.nnz, out = partials[(PetscCount)rb * h.colBlocks + cb];

  if (!segs) return;
  shelf.bits   = (unsigned int *)(memory + threadIdx.x / WarpSize * ShelfBytes(h.N, hashes));
  shelf.before = (unsigned short *)(shelf.bits + words);
  shelf.begin  = shelf.before + words;
  shelf.order  = shelf.begin + hashes + 1;
  shelf.place  = shelf.order + h.N;
  PlaceSegments(h.hash, h.N, segs, rec.last + first.seg, rec.row + first.seg, shelf);
  if (lane == 0) {
    h.begin_nnz[first.blk] = ptr;
    h.blkRow[first.blk]    = rb;
  }
  PetscInt g = first.group;

  for (PetscInt s = 0, count; s < segs; s += count, g++) {
    const PetscInt     from = s + lane < segs ? first.seg + shelf.place[s + lane] : first.seg;
    PetscInt           len  = s + lane < segs ? (PetscInt)rec.last[from] + 1 : 0;
    const int          own = len ? HBPLanes(&h.hash, h.laneEntries, len) : -1, lanes = __shfl_sync(All, own, 0);
    const bool         mine     = own == lanes && lane < HBP_GROUP >> lanes; /* those with as many lanes follow each other */
    const int          row      = mine ? rec.row[from] : HBP_FLAG;
    const unsigned int summed   = __ballot_sync(All, !(row & HBP_FLAG)); /* later, by the combine part */
    const int          shortest = __shfl_sync(All, (int)len, 0);         /* at most 65536, as all are where lanes have as many entries */
    const bool         equal    = __all_sync(All, !mine || (len == shortest && len % (1 << lanes) == 0));

    count = __popc(__ballot_sync(All, mine));
    if (mine) {
      const PetscInt to = first.seg + s + lane;

      h.output_hash[to] = (unsigned short)row;
      h.nnz_perrow[to]  = (unsigned short)(len - 1);
      start[to]         = rec.start[from];
    } else len = 0;
    if (!(row & HBP_FLAG)) partialRow[out + __popc(summed & LanesBelow())] = (unsigned short)row;
    if (lane == 0) h.group[g] = {ptr, first.seg + s, summed ? out : -1, HBPInfo(rb, equal, lanes)};
    out += __popc(summed);
    for (int by = WarpSize / 2; by; by /= 2) len += GallopShuffleWords(len, [=](int word) { return __shfl_xor_sync(All, word, by); });
    ptr += len;
  }
}

/* What a part of the work is cut by */
static __device__ __forceinline__ PetscCount Weight(PetscInt entries, PetscInt groups)
{
  return entries + (PetscCount)GroupWeight * groups;
}

/* What ends arrays, and where columns of blocks and rows of blocks begin. ends: the weight of what is before each column of blocks. */
__global__ static void BoundsKernel(HBP h, const Offsets *__restrict__ offsets, const PetscInt *__restrict__ partials, const PetscInt *__restrict__ pieces, PetscCount *__restrict__ ends)
{
  const PetscCount k = GlobalThread();

  if (k <= h.colBlocks) {
    h.colGroup[k] = offsets[k * h.rowBlocks].group;
    ends[k]       = Weight(offsets[k * h.rowBlocks].nnz, offsets[k * h.rowBlocks].group);
  }
  if (k <= h.rowBlocks) {
    h.partialPtr[k] = partials[k * h.colBlocks];
    h.combinePtr[k] = pieces[k];
  }
  if (k == 0) {
    h.begin_nnz[h.blkNum] = (PetscInt)h.blknz;
    h.group[h.groupNum]   = {(PetscInt)h.blknz, h.segNum, -1, 0};
  }
}

/* Pieces of the combine part, a warp each: the place of each partial sum by rows, and where those of each row end. What is of one row stays in order. */
__global__ static void CombinePlanKernel(HBP h, const unsigned short *__restrict__ row)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane  = threadIdx.x % WarpSize;
  const PetscCount                              piece = GlobalThread() / WarpSize;
  int *const                                    place = (int *)memory + (size_t)(threadIdx.x / WarpSize) * h.N;
  int                                           sum   = 0;

  if (piece >= h.combineNum) return;
  const PetscInt        rb    = HBPPlaceOf(h.rowBlocks, h.combinePtr, piece); /* of several that begin with it the last, which has it */
  const PetscInt        begin = h.partialPtr[rb] + (PetscInt)(piece - h.combinePtr[rb]) * HBP_COMBINED, stop = h.partialPtr[rb + 1], end = stop - begin < HBP_COMBINED ? stop : begin + HBP_COMBINED;
  unsigned short *const ends = h.combineEnd + piece * h.N;

  for (PetscInt r = lane; r < h.N; r += WarpSize) place[r] = 0;
  __syncwarp();
  for (PetscInt k = begin + lane; k < end; k += WarpSize) atomicAdd(place + row[k], 1);
  __syncwarp();
  for (PetscInt r = 0; r < h.N; r += WarpSize) {
    const int own = r + lane < h.N ? place[r + lane] : 0, to = WarpPrefix(own);

    if (r + lane < h.N) {
      place[r + lane] = sum + to - own;
      ends[r + lane]  = (unsigned short)(sum + to);
    }
    sum += __shfl_sync(All, to, WarpSize - 1);
  }
  __syncwarp();
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

/* Calls what(entry, k) for the entries of group g, where a warp meets them: this lane's k-th ones of a segment are all that are lanes apart; segment() tells where it begins */
template <typename Segment, typename What>
static __device__ __forceinline__ void WalkGroup(const HBP &h, PetscCount g, Segment segment, What what)
{
  const HBPGroup group = h.group[g];
  const int      lane = threadIdx.x % WarpSize, lanes = (int)(group.info & 7), within = lane & ((1 << lanes) - 1);
  const PetscInt seg = group.seg + (lane >> lanes), mine = seg < h.group[g + 1].seg, len = mine ? HBPLaneLength((PetscInt)h.nnz_perrow[seg] + 1, lanes, within) : 0, first = mine ? segment(seg) + within : 0;
  PetscInt       ptr = group.begin_ptr;

  for (PetscInt k = 0;; k++) {
    const unsigned int live = __ballot_sync(All, k < len);

    if (!live) break;
    if (k < len) what(ptr + __popc(live & LanesBelow()), first + (k << lanes));
    ptr += __popc(live);
  }
}

/* A warp a group: its entries. from, where j is not CSR's but sorted. */
__global__ static void __launch_bounds__(Threads) ConvertKernel(HBP h, const PetscInt *__restrict__ start, const PetscInt *__restrict__ j, const PetscInt *__restrict__ from, const PetscScalar *__restrict__ a)
{
  const PetscCount g = GlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  WalkGroup(
    h, g, [&](PetscInt seg) { return start[seg]; },
    [&](PetscInt at, PetscInt k) {
      const PetscInt e = from ? from[k] : k;

      h.col[at]  = (unsigned short)(j[k] % h.M);
      h.data[at] = a[e];
      if (from) h.csrIdx[at] = e;
    });
}

/* New values, a warp a group; a segment is looked up in its row */
__global__ static void __launch_bounds__(Threads) RefreshKernel(HBP h, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const PetscCount g = GlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  const PetscInt cb    = HBPPlaceOf(h.colBlocks, h.colGroup, g);
  const PetscInt begin = (h.group[g].info >> 4) * h.N;

  WalkGroup(
    h, g,
    [&](PetscInt seg) {
      const PetscInt row = begin + (h.output_hash[seg] & ~HBP_FLAG);

      return HBPSegmentBegin(j, i[row], i[row + 1], (PetscCount)cb * h.M);
    },
    [&](PetscInt at, PetscInt k) { h.data[at] = a[k]; });
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

/* Groups that a GPU block computes together: of one column of blocks */
template <typename I>
struct Part {
  I begin, end, col;
};

template <typename V, typename I>
struct HBPArrays {
  I                     n, N, M, partNum, fixedEach;
  int                   take; /* groups that a warp takes at once */
  const Part<I>        *parts;
  const HBPGroup       *group;
  const unsigned short *output_hash, *nnz_perrow, *col;
  const V              *data;
  V                    *partial;
  bool                  direct;  /* some rows are done in one block */
  int                  *tickets; /* taken, and GPU blocks that have ended */
  PetscCount            blknz;
  I                     pieceNum;
  const I              *pieceRow, *pieceAt, *longPtr, *longCol;
  V                    *longPartial;
};

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

/* What a lane knows of its entries of a segment before it begins: the first one, how many follow, and output_hash */
template <typename V>
struct Lane {
  V   value;
  int col, last, hash;
};

/* A group: where its entries begin, how many they are; lanes that are in use, log2 of those of a segment, and whether all have as many entries */
template <typename I>
struct Group {
  I    ptr, nnz;
  int  used, lanes;
  bool equal;
};

/* nnz, used, lanes and equal in one word: a group has at most 32 times 65536 entries. d is this group, next the one behind. */
static __device__ __forceinline__ int PackGroup(const HBPGroup &d, const HBPGroup &next)
{
  const int lanes = (int)(d.info & 7);

  return (int)((unsigned int)(next.begin_ptr - d.begin_ptr) << 10 | (unsigned int)(next.seg - d.seg) << lanes << 4 | (unsigned int)(d.info & 15));
}

/* Group t of those that a warp has taken, a lane each in d and packed */
template <typename I>
static __device__ __forceinline__ Group<I> GetGroup(const HBPGroup &d, int packed, int t)
{
  const unsigned int p = (unsigned int)__shfl_sync(All, packed, t);

  return {GallopShuffle(d.begin_ptr, t), (I)(p >> 10), (int)(p >> 4 & 63), (int)(p & 7), (p & 8) != 0};
}

/* Loads that do not depend on each other */
template <typename V, typename I>
static __device__ __forceinline__ Lane<V> Fetch(const HBPArrays<V, I> &h, const HBPGroup &d, int packed, int t)
{
  const int      lane = threadIdx.x % WarpSize;
  const Group<I> g    = GetGroup<I>(d, packed, t);
  const I        seg  = GallopShuffle(d.seg, t) + (lane >> g.lanes);
  Lane<V>        own  = {};

  if (lane < g.used) {
    own.value = GallopLoadOnce(h.data + g.ptr + lane);
    own.col   = GallopLoadOnce(h.col + g.ptr + lane);
    own.last  = (int)HBPLaneLength((I)GallopLoadOnce(h.nnz_perrow + seg) + 1, g.lanes, lane & ((1 << g.lanes) - 1)) - 1;
    if (h.direct) own.hash = GallopLoadOnce(h.output_hash + seg);
  }
  return own;
}

/* The sum of this lane's entries but for the first: x is that of the block, ptr the group's second line */
template <typename V, typename I>
static __device__ __forceinline__ V Multiply(const HBPArrays<V, I> &h, I ptr, int last, const V *x)
{
  static constexpr int Few = 8, Far = 8, Steps = 4;
  const int            lane = threadIdx.x % WarpSize;
  V                    sum  = V(0);

  for (int k = 1;;) {
    unsigned int live = __ballot_sync(All, k <= last); /* 0 in lanes that are not in use */
    const int    many = __popc(live);

    if (!many) break;
    const int run = many > Few ? 0 : (int)__reduce_min_sync(All, (unsigned int)(k <= last ? last : HBP_MAX_COLS)) + 1 - k;

    if (run < Far) {
      I              at[Steps];
      V              value[Steps];
      unsigned short col[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        if (u) live = __ballot_sync(All, k + u <= last);
        at[u] = ptr + __popc(live & LanesBelow());
        ptr += __popc(live);
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) {
        if (k + u <= last) {
          value[u] = GallopLoadOnce(h.data + at[u]);
          col[u]   = GallopLoadOnce(h.col + at[u]);
        }
      }
#pragma unroll
      for (int u = 0; u < Steps; u++)
        if (k + u <= last) sum += value[u] * x[col[u]];
      k += Steps;
    } else { /* few segments, long ones: until the next one ends the lanes share the lines, as many at once as there is place for */
      const int copies = WarpSize / many, line = lane / many;
      V         part = V(0), total;

      if (line < copies) {
        const I first = ptr + lane;

#pragma unroll 4
        for (int s = line; s < run; s += copies) {
          const I at = first + (I)(s - line) * many;

          part += GallopLoadOnce(h.data + at) * x[GallopLoadOnce(h.col + at)];
        }
      }
      total = part;
      for (int c = 1; c < copies; c++) total += GallopShuffle(part, (lane + c * many) % WarpSize); /* in the first lanes, as many as live */
      total = GallopShuffle(total, __popc(live & LanesBelow()) % WarpSize);
      if (k <= last) sum += total;
      ptr += (I)run * many;
      k += run;
    }
  }
  return sum;
}

/* With the sums of all lanes: group t's results, or its partial sums. hash is output_hash of the lane's segment. */
template <typename V, typename I>
static __device__ __forceinline__ void FinishGroup(const HBPArrays<V, I> &h, const GallopVectors<V> &v, const HBPGroup &d, int packed, int t, int hash, V sum)
{
  const int          lane  = threadIdx.x % WarpSize;
  const unsigned int p     = (unsigned int)__shfl_sync(All, packed, t);
  const int          lanes = (int)(p & 7);
  const I            out   = GallopShuffle(d.out, t);
  const bool         first = lane < (int)(p >> 4 & 63) && !(lane & ((1 << lanes) - 1)), direct = hash & HBP_FLAG;

  for (int by = 1 << lanes >> 1; by; by /= 2) sum += GallopShuffleDown(sum, by, WarpSize);
  if (h.direct) {
    const I row = (GallopShuffle(d.info, t) >> 4) * h.N;

    if (first && direct) GallopStore(v, row + (hash & ~HBP_FLAG), sum);
  }
  if (out < 0) return;
  const unsigned int summed = __ballot_sync(All, first && !direct); /* later, by the combine part */

  if (summed >> lane & 1) h.partial[out + __popc(summed & LanesBelow())] = sum;
}

/* Group t whose lanes have different numbers of entries */
template <typename V, typename I>
static __device__ __forceinline__ void ComputeGroup(const HBPArrays<V, I> &h, const GallopVectors<V> &v, const HBPGroup &d, int packed, int t, const Lane<V> &own, const V *x)
{
  const Group<I> g   = GetGroup<I>(d, packed, t);
  V              sum = (int)threadIdx.x % WarpSize < g.used ? own.value * x[own.col] : V(0);

  sum += Multiply(h, g.ptr + g.used, own.last, x);
  FinishGroup(h, v, d, packed, t, own.hash, sum);
}

/* Groups t to stop - 1, in each of which all lanes have as many entries: lines, whatever group they are of, several at a time. lines are those of this lane's group. */
template <typename V, typename I>
static __device__ __forceinline__ void ComputeEquals(const HBPArrays<V, I> &h, const GallopVectors<V> &v, const HBPGroup &d, int packed, int lines, int t, int stop, const V *x)
{
  static constexpr int Steps = 4;
  const int            lane  = threadIdx.x % WarpSize;
  I                    ptr   = GallopShuffle(d.begin_ptr, t);
  int                  used = __shfl_sync(All, packed, t) >> 4 & 63, left = __shfl_sync(All, lines, t);
  V                    sum = V(0);

  while (t < stop) {
    V              value[Steps];
    unsigned short col[Steps];
    int            hash[Steps], ends = 0, g = t; /* which of the lines are the last of a group */

#pragma unroll
    for (int u = 0; u < Steps; u++) {
      value[u] = V(0);
      col[u]   = 0;
      hash[u]  = 0;
      if (g < stop) {
        if (lane < used) {
          value[u] = GallopLoadOnce(h.data + ptr + lane);
          col[u]   = GallopLoadOnce(h.col + ptr + lane);
        }
        ptr += used;
        if (--left == 0) {
          if (h.direct) {
            const I   seg   = GallopShuffle(d.seg, g);
            const int lanes = __shfl_sync(All, packed, g) & 7;

            if (lane < used) hash[u] = GallopLoadOnce(h.output_hash + seg + (lane >> lanes));
          }
          ends |= 1 << u;
          g++;
          used = __shfl_sync(All, packed, g) >> 4 & 63;
          left = __shfl_sync(All, lines, g);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < Steps; u++) {
      sum += value[u] * x[col[u]];
      if (ends >> u & 1) {
        FinishGroup(h, v, d, packed, t++, hash[u], sum);
        sum = V(0);
      }
    }
  }
}

/*
  Groups t to stop - 1 of one entry a segment, without rows that are done in one block: entries are one array, and of where the sums go each group knows the
  beginning.
*/
template <typename V, typename I>
static __device__ __forceinline__ void ComputeSingles(const HBPArrays<V, I> &h, const HBPGroup &d, int t, int stop, const V *x)
{
  static constexpr int Steps = 4;
  const int            lane  = threadIdx.x % WarpSize;
  const I              begin = GallopShuffle(d.begin_ptr, t), end = GallopShuffle(d.begin_ptr, stop), shift = d.out - d.begin_ptr;
  int                  before = t - 1; /* the group that the entry before is of */

  for (I e = begin; e < end; e += Steps * WarpSize) {
    V              value[Steps];
    unsigned short col[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const I at = e + u * WarpSize + lane;

      if (at < end) {
        value[u] = GallopLoadOnce(h.data + at);
        col[u]   = GallopLoadOnce(h.col + at);
      }
    }
#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const I            line = e + u * WarpSize, own = d.begin_ptr - line; /* where this lane's group begins in the line */
      const unsigned int begins = __reduce_or_sync(All, lane >= t && lane < stop && own >= 0 && own < WarpSize ? 1u << own : 0);
      const I            to     = line + lane + GallopShuffle(shift, (before + __popc(begins & (LanesBelow() << 1 | 1))) & (WarpSize - 1));

      if (line + lane < end) h.partial[to] = value[u] * x[col[u]];
      before += __popc(begins);
    }
  }
}

/* The SpMV part: GPU blocks compute the parts that are theirs, and then take others in turn */
template <typename V, typename I, bool Shared>
__global__ static void __launch_bounds__(Shared ? SharedThreads : FewThreads, Shared ? (sizeof(V) > 8 ? 1 : 2) : (sizeof(V) > 8 ? 4 : 7)) HBPKernel(HBPArrays<V, I> h, GallopVectors<V> v)
{
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int                                next, taken; /* groups of the part, and parts */
  V *const                                      xs   = reinterpret_cast<V *>(memory);
  const int                                     lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  const I                                       number = (I)blockIdx.x - h.pieceNum, numbers = (I)gridDim.x - h.pieceNum;
  I                                             here = -1;

  GallopLetSuccessorStart();
  if (number < 0) {
    GallopWaitForPredecessor();
    MultiplyPiece<Shared ? SharedThreads : FewThreads>(h, v.x);
    return;
  }
  for (I t = 0;; t++) {
    I p = number * h.fixedEach + t;

    __syncthreads(); /* what was in shared memory has been used */
    if (t >= h.fixedEach) {
      if (t == 0) GallopWaitForPredecessor();
      if (numbers * h.fixedEach >= h.partNum) break; /* there are no others */
      if (threadIdx.x == 0) taken = atomicAdd(h.tickets, 1);
      __syncthreads();
      p = numbers * h.fixedEach + taken;
    }
    if (p >= h.partNum) break;
    const Part<I> part = h.parts[p];

    if (t == 0) GallopWaitForPredecessor();
    const V *const x = v.x + (PetscCount)part.col * h.M;

    if (threadIdx.x == 0) next = (int)(blockDim.x / WarpSize) * h.take;
    if (Shared && here != part.col) {
      const I left = h.n - part.col * h.M, cols = left < h.M ? left : h.M;

      for (I c = threadIdx.x; c < cols; c += blockDim.x) xs[c] = x[c]; /* not a read-only load, which might go ahead of the wait */
      here = part.col;
    }
    __syncthreads();
    for (I g = part.begin + warp * h.take; g < part.end;) {
      const int      groups = part.end - g < h.take ? (int)(part.end - g) : h.take;
      const HBPGroup d      = h.group[g + (lane < groups ? lane : groups)];
      HBPGroup       behind;

      behind.begin_ptr          = GallopShuffle(d.begin_ptr, (lane + 1) % WarpSize);
      behind.seg                = GallopShuffle(d.seg, (lane + 1) % WarpSize);
      const int          packed = PackGroup(d, behind);
      const int          used = packed >> 4 & 63, lines = used ? (int)((unsigned int)packed >> 10) / used : 0;
      const unsigned int equals = __ballot_sync(All, lane < groups && packed & 8), singles = h.direct ? 0 : __ballot_sync(All, lines == 1) & equals & __ballot_sync(All, !(packed & 7));

      for (int k = 0; k < groups;) {
        const unsigned int kind = singles >> k & 1 ? singles : equals >> k & 1 ? equals & ~singles : ~equals, others = ~(kind >> k);
        int                end = others ? k + __ffs(others) - 1 : groups; /* of those like it */

        if (end > groups) end = groups;
        if (kind == singles) ComputeSingles(h, d, k, end, Shared ? xs : x);
        else if (equals >> k & 1) ComputeEquals(h, v, d, packed, lines, k, end, Shared ? xs : x);
        else {
          Lane<V> now = Fetch(h, d, packed, k);

          for (int t = k; t < end; t++) {
            const Lane<V> then = t + 1 < end ? Fetch(h, d, packed, t + 1) : now;

            ComputeGroup(h, v, d, packed, t, now, Shared ? xs : x);
            now = then;
          }
        }
        k = end;
      }
      g = part.begin + __shfl_sync(All, lane == 0 ? atomicAdd(&next, h.take) : 0, 0);
    }
  }
  if (threadIdx.x == 0 && atomicAdd(h.tickets + 1, 1) == (int)numbers - 1) { /* the last one: nobody takes a ticket any more */
    h.tickets[0] = 0;
    h.tickets[1] = 0;
  }
}

/* What the combine part reads */
template <typename V, typename I>
struct CombineArrays {
  I                     m, N, rowBlocks, longNum;
  const I              *partialPtr, *combinePtr, *longRow, *firstPiece;
  const unsigned short *combinePos, *combineEnd;
  const unsigned int   *direct;
  const V              *partial, *longPartial;
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

  GallopLetSuccessorStart();
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
  const I stop = c.partialPtr[rb + 1], first = c.combinePtr[rb], last = c.combinePtr[rb + 1] - 1;

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
    for (I r = threadIdx.x; r < c.N && rb * c.N + r < c.m; r += Threads) {
      V sum = piece > first ? sums[r] : V(0);

      if (piece <= last)
        for (int k = r ? ends[r - 1] : 0, to = ends[r]; k < to; k++) sum += ordered[k];
      if (piece < last) sums[r] = sum;
      else if (!(c.direct[(PetscCount)rb * words + r / 32] >> r % 32 & 1)) GallopStore(v, rb * c.N + r, sum);
    }
    __syncthreads();
  }
}

/* ---- host code ---- */

/* Launches of a product */
typedef struct {
  PetscInt        partNum, fixedEach;
  Part<PetscInt> *parts;
  int            *tickets;
  int             blocks, threads, take;
  size_t          shared, combineShared;
  PetscBool       overlaps, fresh; /* kernels may start while those before them end, and values have been written since the last product */
} Plan;

struct Workspace {
  Counts             *counts;
  Offsets            *offsets;
  PetscInt           *partials, *pieces, *tileRow, *longRows;
  Found              *found;
  PetscInt           *j, *from, *entry; /* of rows that are not sorted */
  unsigned long long *key, *sortedkey;
  char               *cub;
};

static int BitsFor(PetscCount largest)
{
  int bits = 1;

  while (bits < 32 && largest >> bits) bits++;
  return bits;
}

/* How the rows look; *fits is false where there is no memory for that */
static PetscErrorCode Look(const GallopCSR *csr, const PetscInt M[2], HBPSample *s, PetscBool *fits, cudaStream_t stream)
{
  void *sum;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscCall(GallopDeviceMalloc(sizeof(*s), &sum));
  if (!sum) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemsetAsync(sum, 0, sizeof(*s), stream));
  LookKernel<<<GridFor(HBP_SAMPLES, WarpSize), WarpSize, 0, stream>>>(csr->m, csr->i, csr->j,
                                                                      {
                                                                        {M[0], M[1]}
  },
                                                                      (HBPSample *)sum);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(s, sum, sizeof(*s)));
  PetscCall(GallopDeviceRelease(sizeof(*s), sum));
  *fits = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount Tiles(PetscCount nz)
{
  return (nz + TileEntries - 1) / TileEntries;
}

static size_t CarveWorkspace(Workspace *w, const HBP *h, size_t cubbytes, void *base)
{
  GallopCarver     carver(base);
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  carver.Take(w->counts, blocks + 1);
  carver.Take(w->offsets, blocks + 1);
  carver.Take(w->partials, blocks + 1);
  carver.Take(w->pieces, (PetscCount)h->rowBlocks + 1);
  carver.Take(w->tileRow, Tiles(h->nz));
  carver.Take(w->longRows, h->nz / h->longRow + 1);
  carver.Take(w->found, 1);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
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

static size_t CarveRecords(Records *rec, PetscInt **start, PetscCount **ends, unsigned short **partialRow, const HBP *h, void *base)
{
  GallopCarver carver(base);

  carver.Take(rec->start, h->segNum);
  carver.Take(rec->last, h->segNum);
  carver.Take(rec->row, h->segNum);
  carver.Take(*start, h->segNum);
  carver.Take(*ends, (PetscCount)h->colBlocks + 1);
  carver.Take(*partialRow, h->partialNum);
  return carver.Bytes();
}

static size_t Carve(HBP *h, bool indices, void *base)
{
  GallopCarver carver(base);

  carver.Take(h->data, h->nz);
  carver.Take(h->col, h->blknz);
  carver.Take(h->group, (PetscCount)h->groupNum + 1);
  carver.Take(h->output_hash, h->segNum);
  carver.Take(h->nnz_perrow, h->segNum);
  carver.Take(h->begin_nnz, (PetscCount)h->blkNum + 1);
  carver.Take(h->blkRow, h->blkNum);
  carver.Take(h->colGroup, (PetscCount)h->colBlocks + 1);
  carver.Take(h->partialPtr, (PetscCount)h->rowBlocks + 1);
  carver.Take(h->combinePtr, (PetscCount)h->rowBlocks + 1);
  carver.Take(h->combinePos, h->partialNum);
  carver.Take(h->combineEnd, (PetscCount)h->combineNum * h->N);
  carver.Take(h->longRows.row, h->longRows.num);
  carver.Take(h->longRows.ptr, (PetscCount)h->longRows.num + 1);
  carver.Take(h->longRows.firstPiece, (PetscCount)h->longRows.num + 1);
  carver.Take(h->longRows.pieceRow, h->longRows.pieceNum);
  carver.Take(h->longRows.pieceAt, h->longRows.pieceNum);
  carver.Take(h->longCol, h->longRows.nz);
  carver.Take(h->direct, (PetscCount)h->rowBlocks * HBPWords(h->N));
  if (indices) carver.Take(h->csrIdx, h->blknz);
  h->bytes = carver.Bytes();
  carver.Take(h->partial, h->partialNum);
  carver.Take(h->longPartial, h->longRows.pieceNum);
  return carver.Bytes();
}

/* Columns of each row in increasing order; *sorted is to be freed, NULL where there is no memory */
static PetscErrorCode SortRows(Matrix *A, Workspace *w, void **sorted, size_t *bytes, cudaStream_t stream)
{
  size_t    cub  = 0;
  const int bits = 32 + BitsFor(A->m);

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  *bytes = CarveSorted(w, A->nz, cub, NULL);
  PetscCall(GallopDeviceMalloc(*bytes, sorted));
  if (!*sorted) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveSorted(w, A->nz, cub, *sorted);
  RowKeyKernel<<<GridFor(A->m), Threads, 0, stream>>>(*A, w->key, w->entry);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, cub, w->key, w->sortedkey, w->entry, w->from, A->nz, 0, bits, stream));
  ColumnOfKeyKernel<<<GridFor(A->nz), Threads, 0, stream>>>(A->nz, w->sortedkey, w->j);
  GallopCheckLaunch();
  A->j = w->j;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of everything, and where blocks begin */
static PetscErrorCode Count(const HBP *h, const Matrix *A, Workspace *w, size_t cubbytes, Found *found, cudaStream_t stream)
{
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->counts, 0, (size_t)(blocks + 1) * sizeof(*w->counts), stream));
  CountKernel<<<(unsigned int)Tiles(A->nz), Threads, 0, stream>>>(*A, w->counts, w->found);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, cubbytes, thrust::make_transform_iterator(w->counts, OffsetsOf()), w->offsets, AddOffsets(), Offsets{0, 0, 0, 0}, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, cubbytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), PartialsByRows{w->counts, h->rowBlocks, h->colBlocks}), w->partials, blocks + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, cubbytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscInt)0), PiecesOf{w->partials, h->rowBlocks, h->colBlocks}), w->pieces, h->rowBlocks + 1, stream));
  TotalsKernel<<<1, 1, 0, stream>>>(blocks, h->rowBlocks, w->pieces, w->offsets, w->partials, w->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(found, w->found, sizeof(*found)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  HBP  *h    = (HBP *)*data;
  Plan *plan = (Plan *)h->plan;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(h->data)); /* where the allocation begins */
  if (plan) PetscCall(GallopDeviceFree(plan->parts));
  PetscCall(PetscFree(plan));
  PetscCall(PetscFree(h));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Groups of the parts, which are of about the same weight. begin is, until then, how many parts of the same column are before. */
__global__ static void PartsKernel(PetscInt num, PetscCount each, const HBPGroup *__restrict__ group, const PetscInt *__restrict__ colGroup, const PetscCount *__restrict__ ends, Part<PetscInt> *__restrict__ parts)
{
  const PetscCount p = GlobalThread();

  if (p >= num) return;
  const PetscInt cb = parts[p].col, before = parts[p].begin;

  for (int end = 0; end < 2; end++) {
    PetscInt lo = colGroup[cb], hi = colGroup[cb + 1];

    while (lo < hi) {
      const PetscInt mid = lo + (hi - lo) / 2;

      if (Weight(group[mid].begin_ptr, mid) < ends[cb] + (before + end) * each) lo = mid + 1;
      else hi = mid;
    }
    if (end) parts[p].end = lo;
    else parts[p].begin = lo;
  }
}

/* Parts of about the same weight, and how to launch; *done is false where there is no memory */
static PetscErrorCode MakePlan(HBP *h, const PetscCount *ends, cudaStream_t stream, PetscBool *done)
{
  Plan           *plan;
  PetscInt        num = 0;
  PetscCount     *end, each, warps, mean;
  Part<PetscInt> *parts;
  GallopCarver    sizes(NULL);
  void           *base;
  int             device, sms, resident = 1;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscNew(&plan));
  plan->fresh = PETSC_TRUE;
  PetscCallCUDA(GallopKernelOverlaps(CombineKernel<PetscScalar, PetscInt>, &plan->overlaps));
  h->plan      = plan;
  plan->shared = h->shared ? (size_t)h->M * sizeof(PetscScalar) : 0;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  if (h->shared) {
    PetscCallCUDA(cudaFuncSetAttribute(HBPKernel<PetscScalar, PetscInt, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, HBP_MAX_SHARED_COLS * (int)sizeof(PetscScalar)));
    PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, HBPKernel<PetscScalar, PetscInt, true>, SharedThreads, plan->shared));
  } else PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, HBPKernel<PetscScalar, PetscInt, false>, FewThreads, 0));
  plan->combineShared = HBP_COMBINED * sizeof(PetscScalar) + (PetscMin((PetscCount)h->N * h->colBlocks, h->partialNum) > HBP_COMBINED ? (size_t)h->N * sizeof(PetscScalar) : 0); /* a block of rows may have several pieces */
  PetscCallCUDA(cudaFuncSetAttribute(CombineKernel<PetscScalar, PetscInt>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)((HBP_COMBINED + HBP_MAX_ROWS) * sizeof(PetscScalar))));
  plan->threads = h->shared ? SharedThreads : FewThreads;
  warps         = (PetscCount)sms * resident * (plan->threads / WarpSize);
  PetscCall(PetscMalloc1(h->colBlocks + 1, &end));
  PetscCall(GallopDeviceCopyOut(end, ends, (size_t)(h->colBlocks + 1) * sizeof(*end)));
  mean       = end[h->colBlocks] / PetscMax(h->groupNum, 1) + 1; /* weight of a group */
  plan->take = (int)PetscMin(MostTaken, PetscMin((h->groupNum - 1) / warps, TakenWeight / mean) + 1);
  each       = PetscMax(end[h->colBlocks] / (8 * (PetscCount)sms * resident), h->shared ? 2 * h->M : plan->threads / WarpSize * plan->take * mean);
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) num += (PetscInt)((end[cb + 1] - end[cb] + each - 1) / each);
  PetscCall(PetscMalloc1(num, &parts));
  plan->partNum = 0;
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt k = 0; k * each < end[cb + 1] - end[cb]; k++) parts[plan->partNum++] = {k, 0, cb};
  }
  plan->blocks    = (int)PetscMin(num, sms * resident);
  plan->fixedEach = (PetscInt)PetscMax(1, (PetscReal)num / PetscMax(plan->blocks, 1) * h->options.fixed / 100); /* the first one needs no ticket */
  sizes.Take(plan->parts, num);
  sizes.Take(plan->tickets, 2);
  PetscCall(GallopDeviceMalloc(sizes.Bytes(), &base));
  if (base) {
    GallopCarver carver(base);

    carver.Take(plan->parts, num);
    carver.Take(plan->tickets, 2);
    PetscCall(GallopDeviceZero(plan->tickets, 2 * sizeof(int)));
    if (num) {
      PetscCall(GallopDeviceCopyIn(plan->parts, parts, (size_t)num * sizeof(*parts)));
      PartsKernel<<<GridFor(num), Threads, 0, stream>>>(num, each, h->group, h->colGroup, ends, plan->parts);
      GallopCheckLaunch();
    }
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied from pageable memory is about to go */
    *done = PETSC_TRUE;
  } else plan->parts = NULL;
  h->bytes += sizes.Bytes();
  PetscCall(PetscFree(parts));
  PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyLongRows(HBP *h, const GallopLongRows *l)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyIn(h->longRows.ptr, l->ptr, (size_t)(l->num + 1) * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(h->longRows.firstPiece, l->firstPiece, (size_t)(l->num + 1) * sizeof(PetscInt)));
  if (!l->num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceCopyIn(h->longRows.row, l->row, (size_t)l->num * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(h->longRows.pieceRow, l->pieceRow, (size_t)l->pieceNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(h->longRows.pieceAt, l->pieceAt, (size_t)l->pieceNum * sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With all numbers known: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode Complete(HBP *h, const GallopCSR *csr, const Matrix *A, const GallopLongRows *l, Workspace *w, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks, words = (PetscCount)h->rowBlocks * HBPWords(h->N);
  const size_t     shelf = ShelfBytes(h->N, HBPHashes(&h->hash)), bytes = Carve(h, w->from != NULL, NULL);
  const int        warps = (int)PetscMax(1, PetscMin(Warps, (48 << 10) / shelf)), planWarps = (int)PetscMax(1, PetscMin(Warps, (32 << 10) / ((size_t)h->N * sizeof(int))));
  Records          rec;
  PetscInt        *start;
  PetscCount      *ends;
  unsigned short  *partialRow;
  size_t           recbytes;
  void            *base = NULL, *recbase = NULL;

  PetscFunctionBegin;
  *done   = PETSC_FALSE;
  h->data = NULL;
  if (!maxbytes || bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(h, w->from != NULL, base);
  recbytes = CarveRecords(&rec, &start, &ends, &partialRow, h, NULL);
  PetscCall(GallopDeviceMalloc(recbytes, &recbase));
  if (!recbase) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveRecords(&rec, &start, &ends, &partialRow, h, recbase);
  DirectKernel<<<GridFor(words * WarpSize), Threads, 0, stream>>>(*A, HBPWords(h->N), words * WarpSize, h->direct);
  GallopCheckLaunch();
  CollectKernel<<<(unsigned int)Tiles(h->nz), Threads, 0, stream>>>(*A, w->counts, w->offsets, rec);
  GallopCheckLaunch();
  PetscCallCUDA(cudaFuncSetAttribute(HashKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(warps * shelf)));
  HashKernel<<<GridFor(blocks, warps), warps * WarpSize, warps * shelf, stream>>>(*h, blocks, w->offsets, w->partials, rec, start, partialRow);
  GallopCheckLaunch();
  BoundsKernel<<<GridFor((PetscCount)PetscMax(h->rowBlocks, h->colBlocks) + 1), Threads, 0, stream>>>(*h, w->offsets, w->partials, w->pieces, ends);
  GallopCheckLaunch();
  if (h->combineNum) {
    CombinePlanKernel<<<GridFor(h->combineNum, planWarps), planWarps * WarpSize, planWarps *(size_t)h->N * sizeof(int), stream>>>(*h, partialRow);
    GallopCheckLaunch();
  }
  PetscCall(CopyLongRows(h, l));
  if (h->longRows.pieceNum) {
    LongRowsKernel<<<(unsigned int)h->longRows.pieceNum, Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a, true);
    GallopCheckLaunch();
  }
  ConvertKernel<<<GridFor((PetscCount)h->groupNum * WarpSize), Threads, 0, stream>>>(*h, start, A->j, w->from, csr->a);
  GallopCheckLaunch();
  PetscCall(MakePlan(h, ends, stream, done));
  PetscCall(GallopDeviceRelease(recbytes, recbase));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  HBP         *h;
  HBPSample    s;
  PetscInt     M[2];
  Matrix       A;
  Workspace    w = {};
  Found        found;
  size_t       wbytes, sortedbytes = 0, cubbytes = 0, bytes;
  void        *wbase, *sorted = NULL, *data;
  cudaStream_t stream;
  PetscBool    done;
  PetscCount   blocks;
  PetscInt    *rows;

  GallopLongRows longRows;

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
  HBPCandidates(&h->options, M);
  PetscCall(Look(csr, M, &s, &done, stream));
  if (done) HBPChoose(&h->options, csr, M, &s, h);
  if (!done || !HBPFits(h)) {
    PetscCall(PetscFree(h));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  blocks = (PetscCount)h->rowBlocks * h->colBlocks;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, bytes, thrust::make_transform_iterator(w.counts, OffsetsOf()), w.offsets, AddOffsets(), Offsets{0, 0, 0, 0}, blocks + 1, stream));
  cubbytes = bytes;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), PartialsByRows{w.counts, h->rowBlocks, h->colBlocks}), w.partials, blocks + 1, stream));
  cubbytes = PetscMax(cubbytes, bytes);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscInt)0), PiecesOf{w.partials, h->rowBlocks, h->colBlocks}), w.pieces, h->rowBlocks + 1, stream));
  cubbytes = PetscMax(cubbytes, bytes);
  wbytes   = CarveWorkspace(&w, h, cubbytes, NULL);
  PetscCall(GallopDeviceMalloc(wbytes, &wbase));
  if (!wbase) {
    PetscCall(PetscFree(h));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  (void)CarveWorkspace(&w, h, cubbytes, wbase);
  A = {h->m, h->N, h->M, h->rowBlocks, h->longRow, h->laneEntries, h->hash, h->nz, csr->i, csr->j, w.tileRow};
  PetscCallCUDA(cudaMemsetAsync(w.found, 0, sizeof(*w.found), stream));
  TilesKernel<<<GridFor(h->m), Threads, 0, stream>>>(h->m, h->longRow, csr->i, w.tileRow, w.longRows, w.found);
  GallopCheckLaunch();
  PetscCall(Count(h, &A, &w, cubbytes, &found, stream));
  if (found.unsorted) {
    char *const cub = w.cub;

    PetscCall(SortRows(&A, &w, &sorted, &sortedbytes, stream));
    w.cub = cub;
    done  = (PetscBool)(sorted != NULL);
    if (done) PetscCall(Count(h, &A, &w, cubbytes, &found, stream));
  }
  if (done) {
    h->blkNum     = found.blk;
    h->segNum     = found.seg;
    h->groupNum   = found.group;
    h->partialNum = found.partial;
    h->combineNum = found.combine;
    h->alone      = (PetscBool)(!found.partial && !found.longRows && !found.empty);
    PetscCall(PetscMalloc1(found.longRows, &rows));
    if (found.longRows) PetscCall(GallopDeviceCopyOut(rows, w.longRows, (size_t)found.longRows * sizeof(PetscInt)));
    PetscCall(GallopLongRowsPlan(csr->host_i, found.longRows, rows, HBP_PIECE, &longRows));
    PetscCall(PetscFree(rows));
    h->longRows.num      = longRows.num;
    h->longRows.pieceNum = longRows.pieceNum;
    h->longRows.nz       = longRows.nz;
    h->blknz             = h->nz - longRows.nz;
    PetscCall(Complete(h, csr, &A, &longRows, &w, maxbytes, stream, &done));
    PetscCall(GallopLongRowsFree(&longRows));
  }
  if (done) *built = h;
  else PetscCall(Destroy(&data));
  if (sorted) PetscCall(GallopDeviceRelease(sortedbytes, sorted));
  PetscCall(GallopDeviceRelease(wbytes, wbase));
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
  if (h->csrIdx) RefreshByIndexKernel<<<GridFor(h->blknz), Threads, 0, stream>>>(*h, csr->a);
  else RefreshKernel<<<GridFor((PetscCount)h->groupNum * WarpSize), Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  ((Plan *)h->plan)->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  HBP                             *h        = (HBP *)data;
  Plan                            *plan     = (Plan *)h->plan;
  HBPArrays<PetscScalar, PetscInt> a        = {};
  const GallopVectors<PetscScalar> v        = GallopVectorsOf(p);
  const PetscCount                 blocks   = plan->blocks + (PetscCount)h->longRows.pieceNum;
  const bool                       overlaps = plan->overlaps && !plan->fresh; /* new values must have been written */
  cudaStream_t                     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  a.n           = h->n;
  a.N           = h->N;
  a.M           = h->M;
  a.partNum     = plan->partNum;
  a.fixedEach   = plan->fixedEach;
  a.parts       = plan->parts;
  a.group       = h->group;
  a.output_hash = h->output_hash;
  a.nnz_perrow  = h->nnz_perrow;
  a.col         = h->col;
  a.data        = h->data;
  a.partial     = h->partial;
  a.direct      = h->segNum > h->partialNum;
  a.take        = plan->take;
  a.tickets     = plan->tickets;
  a.blknz       = h->blknz;
  a.pieceNum    = h->longRows.pieceNum;
  a.pieceRow    = h->longRows.pieceRow;
  a.pieceAt     = h->longRows.pieceAt;
  a.longPtr     = h->longRows.ptr;
  a.longCol     = h->longCol;
  a.longPartial = h->longPartial;
  if (blocks) {
    const GallopGrid grid = {blocks, plan->threads, 1, plan->shared, stream, overlaps};

    if (h->shared) PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, true>, grid, a, v));
    else PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, false>, grid, a, v));
  }
  if (!h->alone) {
    const CombineArrays<PetscScalar, PetscInt> c = {h->m,          h->N,          h->rowBlocks, h->longRows.num, h->partialPtr, h->combinePtr, h->longRows.row, h->longRows.firstPiece,
                                                    h->combinePos, h->combineEnd, h->direct,    h->partial,      h->longPartial};

    PetscCallCUDA(GallopLaunch(CombineKernel<PetscScalar, PetscInt>, {h->rowBlocks + ((PetscCount)h->longRows.num + Warps - 1) / Warps, Threads, 1, plan->combineShared, stream, overlaps}, c, v));
  }
  PetscCallCUDA(GallopNotFresh(stream, &plan->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork HBPDevice = {Build, Refresh, Apply, Destroy, NULL};
