#pragma once

/* HBP on the GPU, for .cu files only: what the kernels of products share, how warps get groups and meet their entries */

#include "../common/footprint.h"
#include "../common/longrowsdevice.h"
#include "hbp.h"

static constexpr int          FewThreads = 128; /* of a GPU block whose warps compute parts on their own */
static constexpr unsigned int All        = 0xffffffffu;

static __device__ __forceinline__ unsigned int LanesBelow()
{
  unsigned int mask;

  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

/* Groups that a warp computes together, up to those of the next part, and their column of blocks */
template <typename I>
struct Part {
  I begin, col;
};

template <typename V, typename I>
struct HBPArrays {
  I                     n, N, M, partNum, shareNum, fixedEach;
  const Part<I>        *parts;
  const I              *shares; /* first part of what a GPU block with x in shared memory computes together, in one column of blocks */
  const I              *map;
  I                     mapNum;
  const HBPGroup       *group;
  const unsigned short *output_hash, *nnz_perrow, *col;
  const V              *data;
  V                    *partial;
  bool                  direct;  /* some rows are done in one block, or rows are wanted of all segments */
  int                  *tickets; /* taken, and GPU blocks that have ended */
  PetscCount            blknz;
  I                     pieceNum;
  const I              *pieceRow, *pieceAt, *longPtr, *longCol;
  V                    *longPartial;
};

/* Launches of a product */
typedef struct {
  PetscInt        partNum, shareNum, fixedEach;
  Part<PetscInt> *parts;
  PetscInt       *shares;
  int            *tickets;
  int             blocks, threads;
  size_t          shared, combineShared;
  int             transposedBlocks;
  PetscInt        transposedEach;  /* as fixedEach; 0 before the first transposed product */
  void           *longRows;        /* on the host, what the GPU copies from */
  PetscBool       overlaps, fresh; /* kernels may start while those before them end, and values have been written since the last product */
} Plan;

static inline HBPArrays<PetscScalar, PetscInt> ArraysOf(const HBP *h)
{
  const Plan                      *plan = (const Plan *)h->plan;
  HBPArrays<PetscScalar, PetscInt> a    = {};

  a.n           = h->n;
  a.N           = h->N;
  a.M           = h->M;
  a.partNum     = plan->partNum;
  a.fixedEach   = plan->fixedEach;
  a.parts       = plan->parts;
  a.shareNum    = plan->shareNum;
  a.shares      = plan->shares;
  a.map         = h->map;
  a.mapNum      = h->mapNum;
  a.group       = h->group;
  a.output_hash = h->output_hash;
  a.nnz_perrow  = h->nnz_perrow;
  a.col         = h->col;
  a.data        = h->data;
  a.partial     = h->partial;
  a.direct      = h->segNum > h->partialNum;
  a.tickets     = plan->tickets;
  a.blknz       = h->blknz;
  a.pieceNum    = h->longRows.pieceNum;
  a.pieceRow    = h->longRows.pieceRow;
  a.pieceAt     = h->longRows.pieceAt;
  a.longPtr     = h->longRows.ptr;
  a.longCol     = h->longCol;
  a.longPartial = h->longPartial;
  return a;
}

/*
  GPU blocks of a kernel that a multiprocessor has at once. All memory that they do not need shall be L1, for vectors and maps: by itself a multiprocessor may keep the shared memory that a kernel
  before needed.
*/
template <typename Kernel>
static inline cudaError_t GiveL1(Kernel *kernel, int threads, int device, int *resident)
{
  cudaFuncAttributes attributes = {};
  int                all = 1, reserved = 0;
  cudaError_t        err = cudaOccupancyMaxActiveBlocksPerMultiprocessor(resident, kernel, threads, 0);

  if (err == cudaSuccess) err = cudaFuncGetAttributes(&attributes, kernel);
  if (err == cudaSuccess) err = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (err == cudaSuccess) err = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  if (err == cudaSuccess) err = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, (int)((*resident * (attributes.sharedSizeBytes + reserved) * 100 + all - 1) / all));
  return err;
}

/* Where the x of a block is: in shared memory; or in global memory, as the columns follow each other, or by maps, of which that of a block without one has all its columns */
enum { SHARED, PLAIN, MAPPED };

/*
  Places in a vector, from the block's first column on or, with a map, from its begin, of Steps numbers of columns; 0 by maps where one is not wanted. The compiler would look up one after the other, to
  use fewer registers, but not across __syncwarp().
*/
template <int Where, int Steps, typename I, typename Wanted>
static __device__ __forceinline__ void GetPlaces(const I *map, const unsigned short *col, Wanted wanted, I *place)
{
#pragma unroll
  for (int u = 0; u < Steps; u++) {
    if constexpr (Where == MAPPED) place[u] = wanted(u) ? __ldg(map + col[u] / HBP_CHUNK) + col[u] % HBP_CHUNK : 0;
    else place[u] = col[u];
  }
  if (Where == MAPPED) __syncwarp();
}

/* The groups of a part, as a warp keeps them in shared memory, and the end of the last: where their entries, segments, partial sums and rows begin; of lanes the lines of all where these have as many, how many are used, whether they have as many, log2 of those of a segment */
template <typename I>
struct Groups {
  I   ptr[WarpSize], seg[WarpSize], out[WarpSize], row[WarpSize];
  int lanes[WarpSize];
};

/* The map of group t */
template <typename V, typename I>
static __device__ __forceinline__ const I *MapOf(const HBPArrays<V, I> &h, const Groups<I> &groups, int t)
{
  const I map = HBPMapOf(groups.out[t]);

  return h.map + (map < 0 ? h.mapNum : map);
}

/* What a lane knows of its entries of a segment before it begins: how many there are, where lanes have different numbers, and output_hash */
struct Lane {
  int len, hash;
};

template <typename V, typename I>
static __device__ __forceinline__ Lane Fetch(const HBPArrays<V, I> &h, const Groups<I> &groups, int t)
{
  const int lane = threadIdx.x % WarpSize, packed = groups.lanes[t], lanes = packed & 7;
  const I   seg = groups.seg[t] + (lane >> lanes);
  Lane      own = {0, 0};

  if (lane < (packed >> 4 & 63)) {
    if (h.direct || !(packed & 8)) own.hash = GallopLoadOnce(h.output_hash + seg);
    if (!(packed & 8)) own.len = (int)HBPLaneLength((I)(h.nnz_perrow ? GallopLoadOnce(h.nnz_perrow + seg) : own.hash / HBP_MAX_ROWS % HBP_PACKED) + 1, lanes, lane & ((1 << lanes) - 1));
  }
  return own;
}

/*
  What a warp does with entries of a group is a class with

    Take<Steps>(value, col, wanted), which gets each lane so many entries at once, those with wanted(u);
    Share(live, many), which makes another one for lines that all lanes share: entries of lane l are those of the (l % many)-th lane that is live;
    Collect(part, live, many, mine), which gets that one back, and whether this lane is live.

  This lane's entries in lines of all lanes that are used, stride of them or as many as are used: several lines at once.
*/
template <int Stride, typename V, typename What>
static __device__ __forceinline__ void TakeLines(const V *data, const unsigned short *col, int lines, int used, What &what)
{
  static constexpr int Steps = sizeof(V) > 8 ? 4 : 8, Half = Steps / 2;
  const int            stride = Stride ? Stride : used;

  for (int k = 0; k < lines; k += Steps) {
    const int      mine = Stride || (int)threadIdx.x % WarpSize < used ? lines - k : 0;
    V              value[Steps];
    unsigned short at[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const bool wanted = u < mine;

      value[u] = wanted ? GallopLoadOnce(data + u * stride) : V(0);
      at[u]    = wanted ? GallopLoadOnce(col + u * stride) : 0;
    }
    __syncwarp(); /* as in GetPlaces() */
#pragma unroll
    for (int half = 0; half < Steps; half += Half) {
      if (k + half >= lines) break;
      what.template Take<Half>(value + half, at + half, [=](int u) { return half + u < mine; });
    }
    data += Steps * stride;
    col += Steps * stride;
  }
}

/* This lane's entries from line k on, which begins with entry ptr, where lanes have different numbers of them: len */
template <typename V, typename I, typename What>
static __device__ __forceinline__ void TakeRest(const HBPArrays<V, I> &h, I ptr, int k, int len, What &what)
{
  static constexpr int Few = 8, Far = 8, Steps = 4;
  const int            lane = threadIdx.x % WarpSize;

  for (;;) {
    unsigned int live = __ballot_sync(All, k < len);
    const int    many = __popc(live);

    if (!many) break;
    const int run = many > Few ? 0 : (int)GallopWarpMin((unsigned int)(k < len ? len : HBP_MAX_COLS + 1)) - k;

    if (run < Far) {
      V              value[Steps];
      unsigned short col[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        if (u) live = __ballot_sync(All, k + u < len);
        const I    at     = ptr + __popc(live & LanesBelow());
        const bool wanted = k + u < len;

        value[u] = wanted ? GallopLoadOnce(h.data + at) : V(0);
        col[u]   = wanted ? GallopLoadOnce(h.col + at) : 0;
        ptr += __popc(live);
      }
      __syncwarp();
      what.template Take<Steps>(value, col, [=](int u) { return k + u < len; });
      k += Steps;
    } else { /* few segments, long ones: until the next one ends the lanes share the lines, as many at once as there is place for */
      const int copies = WarpSize / many, line = lane / many;
      What      part = what.Share(live, many);

      for (int s = 0; s < run; s += Steps * copies) {
        const int      mine = line < copies ? run - s - line : 0;
        V              value[Steps];
        unsigned short col[Steps];

#pragma unroll
        for (int u = 0; u < Steps; u++) {
          const I    at     = ptr + (I)(s + u * copies) * many + lane;
          const bool wanted = u * copies < mine;

          value[u] = wanted ? GallopLoadOnce(h.data + at) : V(0);
          col[u]   = wanted ? GallopLoadOnce(h.col + at) : 0;
        }
        __syncwarp();
        part.template Take<Steps>(value, col, [=](int u) { return u * copies < mine; });
      }
      what.Collect(part, live, many, k < len);
      ptr += (I)run * many;
      k += run;
    }
  }
}

/* The entries of group t */
template <typename V, typename I, typename What>
static __device__ __forceinline__ void TakeGroup(const HBPArrays<V, I> &h, const Groups<I> &groups, int t, const Lane &own, What &what)
{
  const int  lane = threadIdx.x % WarpSize, packed = groups.lanes[t], used = packed >> 4 & 63;
  const bool equal = packed & 8;
  const int  lines = equal ? packed >> 10 : (int)GallopWarpMin((unsigned int)(lane < used ? own.len : HBP_MAX_COLS));
  const I    ptr   = groups.ptr[t];

  if (used == WarpSize) TakeLines<WarpSize>(h.data + ptr + lane, h.col + ptr + lane, lines, used, what);
  else TakeLines<0>(h.data + ptr + lane, h.col + ptr + lane, lines, used, what);
  if (!equal) TakeRest(h, ptr + (I)lines * used, lines, own.len, what);
}

/*
  Groups t to stop - 1 of one entry a segment: entries are one array. In lanes that have one of these groups own tells where it begins in a line of entries. Returns the group of this lane's entry; *before is
  that of the last entry before the line, and then of its last.
*/
template <typename I>
static __device__ __forceinline__ int GroupOfSingle(int t, int stop, I own, int *before)
{
  const int          lane   = threadIdx.x % WarpSize;
  const unsigned int begins = GallopWarpOr(lane >= t && lane < stop && own >= 0 && own < WarpSize ? 1u << own : 0);
  const int          group  = (*before + __popc(begins & (LanesBelow() << 1 | 1))) & (WarpSize - 1);

  *before += __popc(begins);
  return group;
}

/*
  The groups of part p, for a class with

    Begin(col), which gets the column of blocks;
    Singles(groups, t, stop), which gets groups t to stop - 1 of one entry a segment, if joins: entries are one array;
    Group(groups, t, own), which gets any other.

  Where no vector may be used yet, what belongs to the matrix is loaded before.
*/
template <typename V, typename I, typename What>
static __device__ __forceinline__ void WalkPart(const HBPArrays<V, I> &h, I p, Groups<I> &groups, bool joins, bool wait, What what)
{
  const int          lane    = threadIdx.x % WarpSize;
  const Part<I>      part    = h.parts[p];
  const int          num     = (int)(h.parts[p + 1].begin - part.begin);
  const HBPGroup     d       = h.group[part.begin + (lane < num ? lane : num)];
  const I            nextPtr = GallopShuffle(d.begin_ptr, (lane + 1) % WarpSize), nextSeg = GallopShuffle(d.seg, (lane + 1) % WarpSize);
  const bool         mine  = lane < num;
  const int          lanes = (int)(d.info & 7), used = mine ? (int)(nextSeg - d.seg) << lanes : 0, lines = mine && d.info & 8 ? (int)(nextPtr - d.begin_ptr) / used : 0;
  const unsigned int singles = joins ? __ballot_sync(All, lines == 1 && !lanes) : 0;

  what.Begin(part.col);
  __syncwarp();
  groups.ptr[lane]   = d.begin_ptr;
  groups.seg[lane]   = d.seg;
  groups.out[lane]   = d.out;
  groups.row[lane]   = (d.info >> 4) * h.N;
  groups.lanes[lane] = lines << 10 | used << 4 | (int)(d.info & 15);
  __syncwarp();
  if (wait) GallopWaitForPredecessor();
  for (int t = 0; t < num;) {
    const unsigned int others = ~(singles >> t);
    int                end    = others ? t + __ffs(others) - 1 : num; /* of groups of single entries */

    if (end > num) end = num;
    if (end > t) what.Singles(groups, t, end);
    t = end;
    if (t == num) break;
    Lane now = Fetch(h, groups, t);

    for (; t < num && !(singles >> t & 1); t++) {
      const Lane then = t + 1 < num ? Fetch(h, groups, t + 1) : now;

      what.Group(groups, t, now);
      now = then;
    }
  }
}

/* Calls compute(part, whether it has to wait for the predecessor) for the parts that are a warp's of a GPU block of this number, and then for others by tickets. given: parts that are not taken. */
template <typename V, typename I, typename Compute>
static __device__ __forceinline__ void WalkParts(const HBPArrays<V, I> &h, I number, I given, Compute compute)
{
  const int lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, warps = blockDim.x / WarpSize;
  const I   total = h.partNum;
  I         p     = number * h.fixedEach * warps + warp;

  for (I t = 0; p < total; t++) {
    I then = total; /* taken before it is needed */

    if (t + 1 >= h.fixedEach && given < total && t) then = lane == 0 ? given + atomicAdd(h.tickets, 1) : 0;
    compute(p, t == 0);
    if (t + 1 >= h.fixedEach && given < total && !t) then = lane == 0 ? given + atomicAdd(h.tickets, 1) : 0; /* not before the wait */
    p = t + 1 < h.fixedEach ? p + warps : GallopShuffle(then, 0);
  }
}

/* By one thread of each of the agents that took tickets, when there are none for it any more */
template <typename V, typename I>
static __device__ __forceinline__ void EndTickets(const HBPArrays<V, I> &h, I agents)
{
  if (atomicAdd(h.tickets + 1, 1) == (int)agents - 1) { /* the last one: nobody takes a ticket any more */
    h.tickets[0] = 0;
    h.tickets[1] = 0;
  }
}
