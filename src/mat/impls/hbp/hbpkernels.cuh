/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: what the kernels of products share, how warps get groups and meet their entries */

#include "../common/longrowsdevice.h"
#include "hbpdevice.h"

/* The matrix and its plan, as kernels of products read them */
template <typename V, typename I>
struct HBPArrays {
  I                     n, N, M, partNum, shareNum, fixedEach;
  const Part<I>        *parts;
  const I              *shares;
  const I              *map;
  I                     mapNum; /* where the map of a block without one begins */
  const HBPGroup       *group;
  const unsigned short *output_hash, *nnz_perrow, *col;
  const V              *data;
  V                    *partial;
  bool                  direct; /* output_hash is needed of all segments: some rows are done in one block, or the product is transposed */
  int                  *tickets;
  PetscCount            blknz;
  I                     pieceNum;
  const I              *pieceRow, *pieceAt, *longPtr, *longCol;
  V                    *longPartial;
};

static inline HBPArrays<PetscScalar, PetscInt> ArraysOf(const HBP *h)
{
  const HBPPlan                   *plan = (const HBPPlan *)h->plan;
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
  How many thread blocks of a kernel a multiprocessor has at once. All memory that they do not need as shared memory becomes L1, for vectors and maps: by itself a multiprocessor may keep
  what the kernel before needed.
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

/* Where the x of a block is: in shared memory; in global memory, one number after the other; or in global memory by maps, where that of a block without a map of its own has all columns */
enum { SHARED, PLAIN, MAPPED };

/*
  Places in a vector of Steps columns by their numbers in the block; 0 by maps where one is not wanted. Places count from the block's first column, or with a map from the vector's begin. The
  compiler would look up one place after the other, to use fewer registers, but not across __syncwarp().
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

/* The groups of a part, as a warp keeps them in shared memory, and the end of the last: where their entries, segments, partial sums and rows begin, and PackLanes() */
template <typename I>
struct Groups {
  I   ptr[WarpSize], seg[WarpSize], out[WarpSize], row[WarpSize];
  int lanes[WarpSize];
};

/*
  What a warp has to know of a group's lanes: how many are used, and how many entries each has (lines) if they have equally many. The lowest bits are those of the group's info, so that
  HBPInfoEqual() and HBPInfoLanes() read them.
*/
static constexpr int UsedBits = 6; /* 0 to 32 lanes are used */

static __device__ __forceinline__ int PackLanes(int lines, int used, int info)
{
  return lines << (UsedBits + HBP_INFO_BITS) | used << HBP_INFO_BITS | (info & ((1 << HBP_INFO_BITS) - 1));
}

static __device__ __forceinline__ int LanesUsed(int packed)
{
  return packed >> HBP_INFO_BITS & ((1 << UsedBits) - 1);
}

static __device__ __forceinline__ int LanesLines(int packed)
{
  return packed >> (UsedBits + HBP_INFO_BITS);
}

/* The map of group t */
template <typename V, typename I>
static __device__ __forceinline__ const I *MapOf(const HBPArrays<V, I> &h, const Groups<I> &groups, int t)
{
  const I map = HBPMapOf(groups.out[t]);

  return h.map + (map < 0 ? h.mapNum : map);
}

/* What a lane loads of its segment before it takes entries: how many are its own, where lanes have different numbers of them, and output_hash */
struct Lane {
  int len, hash;
};

template <typename V, typename I>
static __device__ __forceinline__ Lane Fetch(const HBPArrays<V, I> &h, const Groups<I> &groups, int t)
{
  const int lane = threadIdx.x % WarpSize, packed = groups.lanes[t], lanes = HBPInfoLanes(packed);
  const I   seg = groups.seg[t] + (lane >> lanes);
  Lane      own = {0, 0};

  if (lane < LanesUsed(packed)) {
    if (h.direct || !HBPInfoEqual(packed)) own.hash = GallopLoadOnce(h.output_hash + seg);
    if (!HBPInfoEqual(packed)) own.len = (int)HBPLaneLength((I)(h.nnz_perrow ? GallopLoadOnce(h.nnz_perrow + seg) : HBPOutputLast(own.hash)) + 1, lanes, HBPLaneInSegment(lane, lanes));
  }
  return own;
}

/*
  What a warp does with entries of a group is a class with

    Take<Steps>(value, col, wanted), which gets Steps entries of each lane at once, of which it wants entry u if wanted(u);
    Share(live, many), which makes another object for lines that all lanes share: entries of lane l are those of the (l % many)-th lane that is live;
    Collect(part, live, many, mine), which gets that object back, and whether this lane is live.
*/

/* This lane's entries in lines of which all used lanes have one each: several lines at once. Lines are Stride entries apart, or as many as lanes are used if Stride is 0. */
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

/* This lane's entries from line k on, which begins with entry ptr. It has len of them in all, other lanes have other numbers. */
template <typename V, typename I, typename What>
static __device__ __forceinline__ void TakeRest(const HBPArrays<V, I> &h, I ptr, int k, int len, What &what)
{
  static constexpr int Few = 8, Far = 8, Steps = 4; /* lanes share lines where at most Few are live for at least Far lines */
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
    } else { /* a few long segments: until the next one ends, all lanes share the lines, as many at once as a warp has lanes for */
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
  const int  lane = threadIdx.x % WarpSize, packed = groups.lanes[t], used = LanesUsed(packed);
  const bool equal = HBPInfoEqual(packed);
  const int  lines = equal ? LanesLines(packed) : (int)GallopWarpMin((unsigned int)(lane < used ? own.len : HBP_MAX_COLS));
  const I    ptr   = groups.ptr[t];

  if (used == WarpSize) TakeLines<WarpSize>(h.data + ptr + lane, h.col + ptr + lane, lines, used, what);
  else TakeLines<0>(h.data + ptr + lane, h.col + ptr + lane, lines, used, what);
  if (!equal) TakeRest(h, ptr + (I)lines * used, lines, own.len, what);
}

/* x of a block, by its columns' numbers in the block */
template <typename V, typename I, int Where>
struct Columns {
  const V *x;
  const I *map;

  /* Loads x of Steps columns, or 0 where it is not wanted */
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

    for (int c = 1; c < copies; c++) total += GallopShuffle(part.sum, (lane + c * many) % WarpSize); /* valid in the first lanes, as many as are live */
    total = GallopShuffle(total, __popc(live & LanesBelow()) % WarpSize);
    if (mine) sum += total;
  }
};

/*
  Of groups t to stop - 1, whose segments have one entry each, the group of this lane's entry in a line of entries. In the lanes t to stop - 1 own tells where their group begins in the
  line. *before is the group of the last entry before the line, and then of the line's last.
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
  Walks the groups of part p, for a class with

    Begin(col), which gets the column of blocks;
    Singles(groups, t, stop), which gets groups t to stop - 1, whose segments have one entry each, if joins: their entries are one array;
    Group(groups, t, own), which gets any other group.

  If it has to wait for the kernel before, which may write vectors, it loads what belongs to the matrix first.
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
  const int          lanes = HBPInfoLanes(d.info), used = mine ? (int)(nextSeg - d.seg) << lanes : 0, lines = mine && HBPInfoEqual(d.info) ? (int)(nextPtr - d.begin_ptr) / used : 0;
  const unsigned int singles = joins ? __ballot_sync(All, lines == 1 && !lanes) : 0;

  what.Begin(part.col);
  __syncwarp();
  groups.ptr[lane]   = d.begin_ptr;
  groups.seg[lane]   = d.seg;
  groups.out[lane]   = d.out;
  groups.row[lane]   = HBPInfoRowBlock(d.info) * h.N;
  groups.lanes[lane] = PackLanes(lines, used, (int)d.info);
  __syncwarp();
  if (wait) GallopWaitForPredecessor();
  for (int t = 0; t < num;) {
    const unsigned int others = ~(singles >> t);
    int                end    = others ? t + __ffs(others) - 1 : num; /* of the groups of single entries */

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

/* Calls compute(part, whether to wait for the kernel before) for the parts that a warp of thread block number has beforehand, and then for those it takes by tickets. The first given parts have no tickets. */
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

/* By one thread of each of the agents that take tickets, when there are no more parts for it */
template <typename V, typename I>
static __device__ __forceinline__ void EndTickets(const HBPArrays<V, I> &h, I agents)
{
  if (atomicAdd(h.tickets + 1, 1) == (int)agents - 1) { /* the last agent: nobody takes another ticket */
    h.tickets[0] = 0;
    h.tickets[1] = 0;
  }
}
