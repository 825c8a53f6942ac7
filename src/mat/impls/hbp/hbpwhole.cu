/* SPDX-License-Identifier: BSD-2-Clause */
/*
  HBP on the GPU where all entries of a row are in one block, because there is one column of blocks or because all blocks of rows have maps: what most matrices are. A row then is a segment, its block
  follows from its number, and there are no partial sums. hbpwholecount.cu finds all numbers; here one kernel fills all arrays.
*/

#include "hbpmap.cuh"
#include "hbpwalk.cuh"

static constexpr int WholeThreads = MapThreads, WholeWarps = WholeThreads / WarpSize; /* of a thread block, which has a block of rows */
static constexpr int MostHashes = HBP_CLASSES * HBP_FINE;
static constexpr int MostChunks = HBP_MAX_ROWS / WarpSize + HBP_LANES; /* 32 segments each, or the last ones with as many lanes */
static constexpr int RankWords  = 2048;                                /* of bits, one for each chunk of columns: a map whose chunks are nearer to each other is not searched */

/* Segments of a block by the lanes that each has, in this order; all of them are single, and more[lanes] others */
struct Lanes {
  int single, more[HBP_LANES];
};

/* 32 segments with equally many lanes, or fewer: the first one of the block, how many, and their first group */
struct Chunk {
  int lanes, first, count, group;
};

static __device__ __forceinline__ int NumChunks(const Lanes &l)
{
  int num = 0;

  for (int lanes = 0; lanes < HBP_LANES; lanes++) num += ((lanes ? l.more[lanes] : l.single) + WarpSize - 1) / WarpSize;
  return num;
}

static __device__ __forceinline__ Chunk GetChunk(const Lanes &l, int c)
{
  Chunk chunk = {0, 0, 0, 0};

  for (;; chunk.lanes++) {
    const int num = chunk.lanes ? l.more[chunk.lanes] : l.single, size = HBP_GROUP >> chunk.lanes, chunks = (num + WarpSize - 1) / WarpSize;

    if (c < chunks || chunk.lanes == HBP_LANES - 1) {
      chunk.first += c * WarpSize;
      chunk.count = min(WarpSize, num - c * WarpSize);
      chunk.group += c << chunk.lanes;
      return chunk;
    }
    c -= chunks;
    chunk.first += num;
    chunk.group += (num + size - 1) / size;
  }
}

/* Segments, which are rows, in order by hash, and those with the same hash in order of rows. hist has room for MostHashes numbers of each warp, and as many more. Sets bits of h.direct, too. */
static __device__ void OrderRows(const HBP &h, const HBPMatrix &A, PetscInt rb, unsigned short *hist, unsigned short *order, Lanes *l)
{
  static constexpr int  PerThread = (MostHashes + WholeThreads - 1) / WholeThreads;
  __shared__ int        sums[WholeWarps];
  const int             lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, hashes = (int)HBPHashes(&A.hash), words = (int)HBPWords(A.N), each = (words + WholeWarps - 1) / WholeWarps;
  const PetscInt        row = rb * A.N, rows = A.m - row < A.N ? A.m - row : A.N;
  unsigned short *const own = hist + warp * hashes, *const begin = hist + WholeWarps * hashes;

  /* Calls what(row, hash, lanes with this hash) for the rows of this warp, 32 at once; hash is -1 where there is no segment */
  const auto walk = [&](auto what) {
    for (int word = warp * each; word < min((warp + 1) * each, words); word++) {
      const int      r    = word * WarpSize + lane;
      const PetscInt len  = r < rows ? A.i[row + r + 1] - A.i[row + r] : 0;
      const int      hash = len && len <= A.longRow ? (int)HBPHashOf(&A.hash, len) : -1;

      what(word, r, len, hash, __match_any_sync(All, hash));
      __syncwarp();
    }
  };

  for (int k = threadIdx.x; k < WholeWarps * hashes; k += WholeThreads) hist[k] = 0;
  if (threadIdx.x < HBP_LANES) l->more[threadIdx.x] = 0;
  __syncthreads();
  walk([&](int word, int, PetscInt len, int hash, unsigned int peers) {
    const unsigned int direct = __ballot_sync(All, len > 0);

    if (lane == 0) h.direct[(PetscCount)rb * words + word] = direct;
    if (hash < 0) return;
    if (!(peers & LanesBelow())) own[hash] = (unsigned short)(own[hash] + __popc(peers));
    if (len >= A.laneEntries) {
      const int lanes = HBPLanes(&A.hash, A.laneEntries, len);

      if (lanes) atomicAdd(&l->more[lanes], 1);
    }
  });
  __syncthreads();
  int num[PerThread] = {}, sum = 0; /* rows with each hash of this thread */

#pragma unroll
  for (int u = 0; u < PerThread; u++) {
    const int k = PerThread * (int)threadIdx.x + u;

    if (k < hashes) {
#pragma unroll
      for (int w = 0; w < WholeWarps; w++) {
        const int here = hist[w * hashes + k];

        hist[w * hashes + k] = (unsigned short)num[u]; /* of the warps before */
        num[u] += here;
      }
    }
    sum += num[u];
  }
  int before = GallopWarpPrefix(sum);

  if (lane == WarpSize - 1) sums[warp] = before;
  before -= sum;
  __syncthreads();
  for (int w = 0; w < warp; w++) before += sums[w];
#pragma unroll
  for (int u = 0; u < PerThread; u++) {
    const int k = PerThread * (int)threadIdx.x + u;

    if (k < hashes) begin[k] = (unsigned short)before;
    before += num[u];
  }
  __syncthreads();
  walk([&](int, int r, PetscInt, int hash, unsigned int peers) {
    const int to = hash < 0 ? 0 : begin[hash] + own[hash];

    __syncwarp();
    if (hash < 0) return;
    if (!(peers & LanesBelow())) own[hash] = (unsigned short)(own[hash] + __popc(peers));
    order[to + __popc(peers & LanesBelow())] = (unsigned short)r;
  });
  __syncthreads();
}

/* What the first thread of a thread block tells of its block of rows, and of the ends of arrays */
static __device__ __forceinline__ void FillBounds(const HBP &h, const HBPPlan &plan, PetscInt rb, const HBPOffsets &first, bool some, ReadOnly<PetscInt> mapPtr)
{
  if (some) h.begin_nnz[first.blk] = first.nnz;
  h.partialPtr[rb] = h.combinePtr[rb] = 0;
  if (h.mapPtr) h.mapPtr[rb] = mapPtr[rb];
  if (rb < h.rowBlocks - 1) return;
  h.partialPtr[h.rowBlocks] = h.combinePtr[h.rowBlocks] = 0;
  if (h.mapPtr) h.mapPtr[h.rowBlocks] = mapPtr[h.rowBlocks];
  h.begin_nnz[h.blkNum] = (PetscInt)h.blknz;
  h.colGroup[0]         = 0;
  h.colGroup[1]         = h.groupNum;
  h.group[h.groupNum]   = {(PetscInt)h.blknz, h.segNum, -1, 0};
  if (!h.longRows.num) h.longRows.ptr[0] = h.longRows.firstPiece[0] = 0;
  if (plan.groups) HBPEndParts(h, plan);
}

/* Columns of a block by its map */
struct Ranks {
  int                   lowest, words; /* chunk of the first bit, and words of bits; 0 where the map is searched */
  const unsigned int   *bits;
  const unsigned short *before;
  const PetscInt       *map;
  PetscInt              num;

  __device__ __forceinline__ unsigned short ColumnOf(PetscInt j) const
  {
    const int      bit  = (int)(j / HBP_CHUNK) - lowest;
    const PetscInt rank = words ? (PetscInt)(before[bit / 32] + __popc(bits[bit / 32] & ((1u << bit % 32) - 1))) : HBPPlaceOf(num, map, j);

    return (unsigned short)(rank * HBP_CHUNK + j % HBP_CHUNK);
  }
};

/* Brings num values from p on to L2, by the threads of a thread block: a line each */
template <typename T>
static __device__ __forceinline__ void FetchLines(const T *p, PetscInt num)
{
  static constexpr int Line = 128 / sizeof(T);

  for (PetscInt k = (PetscInt)threadIdx.x * Line; k < num; k += WholeThreads * Line) asm volatile("prefetch.global.L2 [%0];" ::"l"(p + k));
}

struct WholeEntry {
  PetscInt    j;
  PetscScalar a;
};

/* A thread block for each block of rows: all that the format has of it, and parts where these are groups. The last blocks come first, as in a refresh. */
template <bool Maps>
__global__ static void __launch_bounds__(WholeThreads, MapResident) FillWholeKernel(HBP h, HBPPlan plan, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a, ReadOnly<HBPOffsets> offsets, ReadOnly<PetscInt> mapPtr)
{
  using Memory = GallopFootprintMarks<WholeThreads, Maps ? MapWords : (WholeWarps + 1) * MostHashes / 2>;
  static_assert(sizeof(Memory::bits) >= (WholeWarps + 1) * MostHashes * sizeof(unsigned short), "numbers of each hash are where chunks are marked later");
  __shared__ Memory         marks;
  __shared__ unsigned short order[HBP_MAX_ROWS], before[Maps ? RankWords : 1];
  __shared__ int            sums[MostChunks];
  __shared__ Lanes          l;
  const int                 lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  const PetscInt            rb   = h.rowBlocks - 1 - (PetscInt)blockIdx.x, row = rb * h.N;
  const HBPMatrix           A    = HBPMatrixOf(&h, i, j);
  const HBPOffsets          first = offsets[rb];
  const int                 segs  = (int)(offsets[rb + 1].seg - first.seg);
  Ranks                     ranks = {};

  FetchLines(j + i[row], i[PetscMin(row + h.N, h.m)] - i[row]); /* while rows are put in order */
  FetchLines(a + i[row], i[PetscMin(row + h.N, h.m)] - i[row]);
  if (threadIdx.x == 0) FillBounds(h, plan, rb, first, segs > 0, mapPtr);
  OrderRows(h, A, rb, reinterpret_cast<unsigned short *>(marks.bits), order, &l);
  if (threadIdx.x == 0) {
    l.single = segs;
    for (int lanes = 1; lanes < HBP_LANES; lanes++) l.single -= l.more[lanes];
  }
  if constexpr (Maps) {
    ranks.map = h.map + mapPtr[rb];
    ranks.num = mapPtr[rb + 1] - mapPtr[rb];
    if (ranks.num) {
      (void)WalkChunks(A, rb, marks, h.map + mapPtr[rb]);
      ranks.lowest = marks.lowest;
      ranks.words  = (marks.highest - marks.lowest) / 32 + 1;
      ranks.bits   = marks.bits;
      ranks.before = before;
      if (ranks.words > RankWords) ranks.words = 0;
      if (warp == 0) GallopWarpPrefixes(ranks.words, [&](int k) { return __popc(marks.bits[k]); }, [&](int k, int sum, int) { before[k] = (unsigned short)sum; });
    }
  }
  __syncthreads();
  const int chunks = NumChunks(l);

  for (int c = warp; c < chunks; c += WholeWarps) {
    const Chunk    chunk = GetChunk(l, c);
    const PetscInt r     = row + (lane < chunk.count ? order[chunk.first + lane] : 0);
    const int      sum   = GallopGroupSum(lane < chunk.count ? (int)(i[r + 1] - i[r]) : 0, WarpSize);

    if (lane == 0) sums[c] = sum;
  }
  __syncthreads();
  if (warp == 0) GallopWarpPrefixes(chunks, [&](int c) { return sums[c]; }, [&](int c, int sum, int) { sums[c] = sum; });
  __syncthreads();
  for (int c = warp; c < chunks; c += WholeWarps) {
    const Chunk        chunk = GetChunk(l, c);
    const int          lanes = chunk.lanes, size = HBP_GROUP >> lanes, leader = lane & ~(size - 1);
    const bool         mine  = lane < chunk.count;
    const int          r     = mine ? order[chunk.first + lane] : 0;
    const PetscInt     begin = mine ? i[row + r] : 0, ptr = first.nnz + sums[c], seg = first.seg + chunk.first + lane;
    const int          len = mine ? (int)(i[row + r + 1] - begin) : 0, prefix = GallopWarpPrefix(len), other = __shfl_sync(All, len, leader);
    const unsigned int group  = (unsigned int)((1ull << size) - 1) << leader;
    const unsigned int uneven = __ballot_sync(All, mine && (len != other || len & ((1 << lanes) - 1)));

    if (mine) {
      h.output_hash[seg] = HBPOutput(r | HBP_FLAG, len, h.longest);
      if (h.nnz_perrow) h.nnz_perrow[seg] = (unsigned short)(len - 1);
      if (lane == leader) {
        const PetscInt g = first.group + chunk.group + lane / size;

        h.group[g] = {ptr + prefix - len, seg, ranks.num ? HBPOutOfMap(mapPtr[rb]) : -1, HBPInfo(rb, !(uneven & group), lanes)};
        if (plan.groups) plan.parts[g] = {g, 0};
      }
    }
    for (int from = 0; from < chunk.count; from += size) { /* groups */
      const int      other = from + (lane >> lanes), within = HBPLaneInSegment(lane, lanes);
      const PetscInt at = ptr + __shfl_sync(All, prefix - len, from), start = GallopShuffle(begin, other), entries = __shfl_sync(All, len, other);

      WalkEntries<WholeEntry>(
        at, lanes, HBPLaneLength(entries, lanes, within), start + within, [&](PetscInt k) { return WholeEntry{j[k], GallopLoadOnce(a + k)}; },
        [&](PetscInt to, PetscInt, const WholeEntry &entry) {
          h.col[to]  = Maps && ranks.num ? ranks.ColumnOf(entry.j) : (unsigned short)entry.j;
          h.data[to] = entry.a;
        });
    }
  }
}

/* HBPFillWhole - All arrays but those of long rows, where each row is in one block. HBPCutPlan() has nothing to do then where a part is a group. */
PetscErrorCode HBPFillWhole(const HBP *h, const GallopCSR *csr, const HBPLookWork *w, cudaStream_t stream)
{
  const HBPPlan plan = *(const HBPPlan *)h->plan;

  PetscFunctionBegin;
  if (h->mapChunks) FillWholeKernel<true><<<(unsigned int)h->rowBlocks, WholeThreads, 0, stream>>>(*h, plan, csr->i, csr->j, csr->a, w->offsets, w->mapPtr);
  else FillWholeKernel<false><<<(unsigned int)h->rowBlocks, WholeThreads, 0, stream>>>(*h, plan, csr->i, csr->j, csr->a, w->offsets, w->mapPtr);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
