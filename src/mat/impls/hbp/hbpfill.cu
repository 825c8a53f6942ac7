/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: the segments of each block in their places, groups of them, and what the combine part needs */

#include "hbphash.cuh"
#include "hbpsegments.cuh"

static constexpr size_t PlacesBytes = 32 << 10; /* of shared memory that a thread block has to order partial sums by rows */

/* Segments by blocks, in any order */
__global__ static void __launch_bounds__(Threads) CollectKernel(HBPMatrix A, HBPCounts *counts, ReadOnly<HBPOffsets> offsets, HBPRecord *__restrict__ rec)
{
  WalkSegments(A, nullptr, [&](PetscCount block, PetscInt row, PetscInt begin, PetscInt end, bool direct) {
    const PetscInt at = offsets[block].seg + SegmentsIn(atomicAdd(&counts[block].all, ~0ull)) - 1; /* counts down */

    rec[at] = {begin, (unsigned short)(end - begin - 1), (unsigned short)(row % A.N | (direct ? HBP_FLAG : 0))};
  });
}

__global__ static void __launch_bounds__(Threads) CollectMappedKernel(HBPMatrix A, ReadOnly<HBPOffsets> offsets, HBPRecord *__restrict__ rec)
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

/* A warp for each block: its segments in their places, its groups. start is that of the records, in order of places. */
__global__ static void HashKernel(HBP h, PetscCount blocks, ReadOnly<HBPCounts> counts, ReadOnly<HBPOffsets> offsets, ReadOnly<PetscInt> partials, ReadOnly<HBPRecord> rec, int most, PetscInt *__restrict__ start, unsigned short *__restrict__ partialRow)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane = threadIdx.x % WarpSize, hashes = (int)HBPHashes(&h.hash);
  const PetscCount                              b = GallopGlobalThread() / WarpSize;

  if (b >= blocks) return;
  const HBPOffsets first = offsets[b];
  const PetscInt   segs = offsets[b + 1].seg - first.seg, rb = (PetscInt)(b % h.rowBlocks), cb = (PetscInt)(b / h.rowBlocks);
  PetscInt         ptr = first.nnz, out = partials[(PetscCount)rb * h.colBlocks + cb];

  if (!segs) return;
  const Shelf shelf = GetShelf(memory, h.N, hashes, most);

  PlaceSegments(h.hash, h.N, segs, rec + first.seg, shelf);
  if (lane == 0) h.begin_nnz[first.blk] = ptr;
  PetscInt g = first.group, next = 0, single = segs;

  for (int lanes = 1; lanes < HBP_LANES; lanes++) single -= SegmentsWith(counts[b].lanes, lanes);
  for (int lanes = 0; lanes < HBP_LANES; lanes++) { /* segments with equally many lanes follow each other; 32 segments at once, which are 1 << lanes groups */
    const int      size = HBP_GROUP >> lanes, leader = lane & ~(size - 1);
    const PetscInt num = lanes ? SegmentsWith(counts[b].lanes, lanes) : single;

    for (PetscInt at = 0; at < num; at += WarpSize) {
      const bool         mine = at + lane < num;
      const PetscInt     to   = first.seg + next + at + lane;
      const HBPRecord    own  = mine ? rec[first.seg + shelf.place[next + at + lane]] : HBPRecord{0, 0, HBP_FLAG};
      const int          len = mine ? (int)own.last + 1 : 0, row = own.row, prefix = GallopWarpPrefix(len), other = __shfl_sync(All, len, leader);
      const unsigned int group  = (unsigned int)((1ull << size) - 1) << leader;
      const unsigned int summed = __ballot_sync(All, !(row & HBP_FLAG)), uneven = __ballot_sync(All, mine && (len != other || len & ((1 << lanes) - 1))); /* summed: the combine part adds them */

      if (mine) {
        h.output_hash[to] = HBPOutput(row, len, h.longest);
        if (h.nnz_perrow) h.nnz_perrow[to] = (unsigned short)(len - 1);
        start[to] = own.start;
      }
      if (!(row & HBP_FLAG)) partialRow[out + __popc(summed & LanesBelow())] = (unsigned short)row;
      if (mine && lane == leader) {
        const PetscInt begin = HBPIsMapped(h.mapPtr, rb) ? HBPOutOfMap(h.mapPtr[rb]) : summed & group ? out + __popc(summed & LanesBelow()) : -1;

        h.group[g + lane / size] = {ptr + prefix - len, to, begin, HBPInfo(rb, !(uneven & group), lanes)};
      }
      g += (PetscInt)((num - at < WarpSize ? num - at : WarpSize) + size - 1) / size;
      out += __popc(summed);
      ptr += __shfl_sync(All, prefix, WarpSize - 1);
    }
    next += num;
  }
}

/* Bits of h->direct, whole words for each block of rows */
static inline PetscCount DirectBits(const HBP *h)
{
  return (PetscCount)h->rowBlocks * HBPWords(h->N) * WarpSize;
}

/* A bit for each row: whether all its entries are in one block, or it is long. And the ends of arrays, and where columns of blocks and blocks of rows begin. */
__global__ static void BoundsKernel(HBPMatrix A, HBP h, PetscCount bits, ReadOnly<HBPOffsets> offsets, ReadOnly<PetscInt> partials, ReadOnly<PetscInt> pieces)
{
  const PetscCount k     = GallopGlobalThread();
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

/* A warp for each piece of the combine part: the place of each partial sum in order of rows, and where those of each row end. Partial sums of one row stay in order. */
__global__ static void CombinePlanKernel(HBP h, ReadOnly<unsigned short> row)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane  = threadIdx.x % WarpSize;
  const PetscCount                              piece = GallopGlobalThread() / WarpSize;
  int *const                                    place = (int *)memory + (size_t)(threadIdx.x / WarpSize) * h.N;

  if (piece >= h.combineNum) return;
  const PetscInt        rb    = HBPPlaceOf(h.rowBlocks, h.combinePtr, piece); /* of several blocks of rows that begin with the piece the last one has it */
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

static size_t CarveRecords(HBPFillWork *w, const HBP *h, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->rec, h->segNum);
  carver.Take(w->start, h->segNum);
  carver.Take(w->partialRow, h->partialNum);
  return carver.Bytes();
}

/* HBPTakeRecords - Room for segments before they have found their places */
PetscErrorCode HBPTakeRecords(const HBP *h, HBPFillWork *w)
{
  PetscFunctionBegin;
  PetscCall(GallopWorkspaceMalloc(CarveRecords(w, h, NULL), &w->memory));
  if (w->memory) (void)CarveRecords(w, h, w->memory);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPFillBounds - Where columns of blocks and blocks of rows begin, and which rows are done without the combine part */
PetscErrorCode HBPFillBounds(const HBP *h, const HBPMatrix *A, const HBPCountWork *w, cudaStream_t stream)
{
  const PetscCount bits = DirectBits(h);

  PetscFunctionBegin;
  BoundsKernel<<<GallopBlocksFor(PetscMax(bits, (PetscCount)h->colBlocks + 1), Threads), Threads, 0, stream>>>(*A, *h, bits, w->offsets, w->partials, w->pieces);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPCollect - The segments of each block, in any order. Uses up the counts of segments. */
PetscErrorCode HBPCollect(const HBP *h, const HBPMatrix *A, const HBPWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (h->mapped) {
    CollectMappedKernel<<<(unsigned int)h->rowBlocks, Threads, 0, stream>>>(*A, w->count.offsets, w->fill.rec);
    GallopCheckLaunch();
  }
  CollectKernel<<<(unsigned int)TilesOf(h->nz), Threads, 0, stream>>>(*A, w->count.counts, w->count.offsets, w->fill.rec);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPFillGroups - Segments in order by hash, and groups of them */
PetscErrorCode HBPFillGroups(const HBP *h, const HBPWork *work, cudaStream_t stream)
{
  const HBPCountWork *count  = &work->count;
  const HBPFillWork  *w      = &work->fill;
  const PetscCount    blocks = (PetscCount)h->rowBlocks * h->colBlocks;
  size_t              shelf;
  int                 warps;

  PetscFunctionBegin;
  warps = HashWarps(h, w->most, &shelf);
  HashKernel<<<GallopBlocksFor(blocks, warps), warps * WarpSize, warps * shelf, stream>>>(*h, blocks, count->counts, count->offsets, count->partials, w->rec, w->most, w->start, w->partialRow);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPFillCombine - Pieces of the combine part, from the row of each partial sum */
PetscErrorCode HBPFillCombine(const HBP *h, const unsigned short partialRow[], cudaStream_t stream)
{
  const size_t bytes = (size_t)h->N * sizeof(int);
  const int    warps = (int)PetscMax(1, PetscMin(Warps, PlacesBytes / bytes));

  PetscFunctionBegin;
  if (!h->combineNum) PetscFunctionReturn(PETSC_SUCCESS);
  CombinePlanKernel<<<GallopBlocksFor(h->combineNum, warps), warps * WarpSize, warps * bytes, stream>>>(*h, partialRow);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
