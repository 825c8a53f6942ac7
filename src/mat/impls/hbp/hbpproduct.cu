/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: the product, its SpMV part and its combine part */

#include "hbpcolumnsdevice.h"
#include "hbphotdevice.h"
#include "hbpkernels.cuh"

static constexpr int        SharedThreads = 512;     /* of the SpMV part where they share x */
static constexpr int        DotsAtOnce    = 16;      /* sums of a dot product that a thread has in flight where one thread block adds those of all parts */
static constexpr PetscCount FewDots       = 8192;    /* sums that it adds in the time that a kernel for the dot product of a small matrix would take; an estimate, */
static constexpr PetscInt   RowsPerDot    = 64;      /* as is that a larger matrix may have one more for this many rows */
static constexpr PetscCount ManyEntries   = 1000000; /* with this many entries it costs more than it gains that an SpMV part starts while the combine part before has most of L1 */

/* Threads of a thread block of the SpMV part, and such thread blocks on a multiprocessor: with more, registers would not suffice */
template <int Where>
static constexpr int SpMVThreads = Where == SHARED ? SharedThreads : FewThreads;
template <typename V, int Where>
static constexpr int SpMVResident = Where == SHARED ? (sizeof(V) > 8 ? 1 : 2) : (sizeof(V) > 8 ? 4 : 7);

/* The sum of a piece of a long row, by all threads of a thread block */
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

/* What the SpMV part does with groups, for WalkPart(). dot: what the lane's rows add to a dot product, or NULL */
template <typename V, typename I, int Where>
class Products {
public:
  __device__ __forceinline__      Products(const HBPArrays<V, I> &h, const GallopVectors<V> &v, const V *shared, V *dot) : h_(h), v_(v), x_(shared), dot_(dot) { }
  __device__ __forceinline__ void Begin(I col)
  {
    if (Where != SHARED) x_ = v_.x + (PetscCount)col * h_.M;
  }

  /* A group: its results, or its partial sums */
  __device__ __forceinline__ void Group(const Groups<I> &groups, int t, const Lane &own) const
  {
    const int                    lane = threadIdx.x % WarpSize, packed = groups.lanes[t], lanes = HBPInfoLanes(packed), used = LanesUsed(packed);
    const bool                   first = lane < used && !HBPLaneInSegment(lane, lanes), direct = own.hash & HBP_FLAG;
    Sum<V, Columns<V, I, Where>> sum = {
      {x_, Where == MAPPED ? MapOf(h_, groups, t) : nullptr},
      V(0)
    };

    TakeGroup(h_, groups, t, own, sum);
    for (int by = 1 << lanes >> 1; by; by /= 2) sum.sum += GallopShuffleDown(sum.sum, by, WarpSize);
    if (first && direct) GallopStore(v_, groups.row[t] + HBPOutputRow(own.hash), sum.sum, dot_);
    const I out = groups.out[t];

    if (out < 0) return;
    const unsigned int summed = __ballot_sync(All, first && !direct); /* the combine part adds them */

    if (summed >> lane & 1) h_.partial[out + __popc(summed & LanesBelow())] = sum.sum;
  }

  /* Groups of single entries. No row is done in one block, so the products are partial sums; each group knows where its own begin. */
  __device__ __forceinline__ void Singles(const Groups<I> &groups, int t, int stop) const
  {
    static constexpr int Steps = 4;
    const int            lane  = threadIdx.x % WarpSize;
    const I              begin = groups.ptr[t], end = groups.ptr[stop], mine = groups.ptr[lane], shift = groups.out[lane] - mine;
    int                  before = t - 1; /* group of the entry before */

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
  V *const                dot_;
};

/* The groups of part p */
template <typename V, typename I, int Where>
static __device__ __forceinline__ void ComputePart(const HBPArrays<V, I> &h, const GallopVectors<V> &v, I p, Groups<I> &groups, const V *shared, bool wait, V *dot = nullptr)
{
  WalkPart(h, p, groups, Where != MAPPED && !h.direct, wait, Products<V, I, Where>(h, v, shared, dot));
}

/* x of a column of blocks in shared memory, by all threads of a thread block */
template <typename V, typename I>
static __device__ __forceinline__ void LoadColumn(const HBPArrays<V, I> &h, const V *x, I col, V *xs)
{
  const I left = h.n - col * h.M, cols = left < h.M ? left : h.M;

  for (I c = threadIdx.x; c < cols; c += blockDim.x) xs[c] = x[(PetscCount)col * h.M + c]; /* not a read-only load, which might go ahead of the wait */
}

/*
  The SpMV part; its first thread blocks compute the pieces of long rows. Warps compute the parts that are theirs, and then take others by tickets. With x in shared memory thread blocks do
  so with shares, the parts of which their warps take one by one.

  Dot: also a dot product with the result, where each row has one segment. Which warp takes a part by ticket differs from run to run, so each of these parts leaves a sum of its own; parts given
  beforehand are always the same warp's, in the same order, and thread blocks leave their sums. It is another kernel, so that the one without needs no register for it.
*/
template <typename V, typename I, int Where, bool Dot>
__global__ static void __launch_bounds__(SpMVThreads<Where>, SpMVResident<V, Where>) HBPKernel(HBPArrays<V, I> h, GallopVectors<V> v)
{
  static constexpr bool Shared = Where == SHARED;
  const int             lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, warps = blockDim.x / WarpSize;
  const I               number = (I)blockIdx.x - h.pieceNum, numbers = (I)gridDim.x - h.pieceNum;
  const I               agents = Shared ? numbers : numbers * warps, total = Shared ? h.shareNum : h.partNum, given = agents * h.fixedEach; /* who takes parts or shares, how many there are, and how many are given beforehand */

  GallopLetSuccessorStart();
  if (number < 0) {
    GallopWaitForPredecessor();
    MultiplyPiece<SpMVThreads<Where>>(h, v.x);
    return;
  }
  __shared__ Groups<I> warpGroups[SpMVThreads<Where> / WarpSize];
  Groups<I>           &groups = warpGroups[warp];

  if constexpr (Shared) {
    static_assert(!Dot, "warps take parts of a share in an order that differs from run to run");
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
  } else if constexpr (Dot) {
    __shared__ V dots[2][SpMVThreads<Where>]; /* of parts that are given beforehand, and of one that has a ticket: there is no register left */

    dots[0][threadIdx.x] = V(0);
    WalkParts(h, number, given, [&](I p, bool wait) {
      V *const dot = dots[p < given ? 0 : 1] + threadIdx.x;

      if (p >= given) *dot = V(0);
      ComputePart<V, I, Where>(h, v, p, groups, nullptr, wait, dot);
      if (p < given) return;
      const V sum = GallopGroupSum(*dot, WarpSize);

      if (lane == 0) v.partial[v.blocks + (p - given)] = sum;
    });
    if (given < total && lane == 0) EndTickets(h, agents);
    GallopWaitForPredecessor(); /* warps that had nothing to do */
    GallopFinishDot<SpMVThreads<Where>, DotsAtOnce>(v, dots[0][threadIdx.x]);
    return;
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

/* Whether a row whose result does not come from partial sums is a long one */
template <typename V, typename I>
static __device__ __forceinline__ bool IsLong(const CombineArrays<V, I> &c, I row)
{
  return c.longNum && c.longRow[HBPPlaceOf(c.longNum, c.longRow, row)] == row;
}

/*
  The combine part. A thread block for each block of rows puts its partial sums in order of rows in shared memory, a piece after the other, and adds them. The last thread blocks add long rows, a warp for each.

  Dot: also a dot product with the result. Results that the SpMV part has stored are read.
*/
template <typename V, typename I, bool Dot>
__global__ static void __launch_bounds__(Threads) CombineKernel(CombineArrays<V, I> c, GallopVectors<V> v)
{
  static constexpr int Ahead = 4, Piece = HBP_COMBINED;
  extern __shared__ __align__(16) unsigned char memory[];
  V *const ordered = reinterpret_cast<V *>(memory), *const sums = ordered + Piece; /* sums are needed where there are several pieces */
  const I   rb    = (I)blockIdx.x;
  const int words = (int)((c.N + 31) / 32);
  V own = V(0), *const dot = Dot ? &own : nullptr;

  if (!c.shared) GallopLetSuccessorStart(); /* else the next product's SpMV part would begin with the little L1 that this leaves */
  if (rb >= c.rowBlocks) {
    const I t   = (rb - c.rowBlocks) * Warps + (I)(threadIdx.x / WarpSize);
    V       sum = V(0);

    GallopWaitForPredecessor();
    if (t < c.longNum) {
      for (I k = c.firstPiece[t] + threadIdx.x % WarpSize; k < c.firstPiece[t + 1]; k += WarpSize) sum += GallopLoadFromL2(c.longPartial + k);
      sum = GallopGroupSum(sum, WarpSize);
      if (threadIdx.x % WarpSize == 0) GallopStore(v, c.longRow[t], sum, dot);
    }
    if constexpr (Dot) GallopFinishDot<Threads>(v, own);
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
        if constexpr (Dot) {
          if (!wanted[u] && piece >= last && row < rows && !IsLong(c, rb * c.N + row)) own += GallopDotOf(v, rb * c.N + row, GallopLoadFromL2(v.z + rb * c.N + row));
        }
        if (!wanted[u]) continue;
        if (piece < last) sums[row] = sum;
        else GallopStore(v, rb * c.N + row, sum, dot);
      }
    }
    __syncthreads();
  }
  if constexpr (Dot) GallopFinishDot<Threads>(v, own);
}

static constexpr int CombineMost = (int)((HBP_COMBINED + HBP_MAX_ROWS) * sizeof(PetscScalar)); /* bytes of dynamic shared memory */

/* What does not change while a process uses a GPU, asked once */
struct Device {
  int       device = -1, sms = 0;
  int       resident[2] = {0, 0}; /* thread blocks of the SpMV part that a multiprocessor has at once, without and with maps; 0 before it is known */
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

    PetscCallCUDA(cudaFuncGetAttributes(&attributes, HBPKernel<PetscScalar, PetscInt, SHARED, false>));
    PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    room = HBPSharedCols((size_t)most, attributes.sharedSizeBytes);
    PetscCallCUDA(cudaFuncSetAttribute(HBPKernel<PetscScalar, PetscInt, SHARED, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(room * sizeof(PetscScalar))));
    known = device;
  }
  *cols = room;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares the kernels that the matrix needs, but not the one with x in shared memory, which HBPGetSharedCols_Device() did. No other kernel is asked about: that would load it. */
static PetscErrorCode GetDevice(const HBP *h, Device *d)
{
  static Device known;
  int           device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  if (device != known.device) {
    known = Device();
    PetscCallCUDA(GallopKernelOverlaps(CombineKernel<PetscScalar, PetscInt, false>, &known.overlaps));
    PetscCallCUDA(cudaDeviceGetAttribute(&known.sms, cudaDevAttrMultiProcessorCount, device));
    PetscCallCUDA(cudaFuncSetAttribute(CombineKernel<PetscScalar, PetscInt, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, CombineMost));
    known.device = device;
  }
  if (!h->shared && !known.resident[h->mapped > 0]) {
    const auto kernel = h->mapped ? HBPKernel<PetscScalar, PetscInt, MAPPED, false> : HBPKernel<PetscScalar, PetscInt, PLAIN, false>;

    PetscCallCUDA(GiveL1(kernel, FewThreads, device, &known.resident[h->mapped > 0])); /* the combine part before it needs shared memory */
  }
  *d = known;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPGetRoom - How the kernels of h are to be launched */
PetscErrorCode HBPGetRoom(const HBP *h, HBPRoom *room)
{
  const bool pieces = PetscMin((PetscCount)h->N * h->colBlocks, h->partialNum) > HBP_COMBINED; /* a block of rows may have several */
  Device     d;

  PetscFunctionBegin;
  PetscCall(GetDevice(h, &d));
  room->sms           = d.sms;
  room->resident      = d.resident[h->mapped > 0];
  room->threads       = h->shared ? SharedThreads : FewThreads;
  room->shared        = h->shared ? (size_t)h->M * sizeof(PetscScalar) : 0;
  room->combineShared = HBP_COMBINED * sizeof(PetscScalar) + (pieces ? (size_t)h->N * sizeof(PetscScalar) : 0);
  room->overlaps      = d.overlaps;
  if (h->shared) PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&room->resident, HBPKernel<PetscScalar, PetscInt, SHARED, false>, SharedThreads, room->shared));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static CombineArrays<PetscScalar, PetscInt> CombineArraysOf(const HBP *h)
{
  CombineArrays<PetscScalar, PetscInt> c = {};

  c.m           = h->m;
  c.N           = h->N;
  c.rowBlocks   = h->rowBlocks;
  c.longNum     = h->longRows.num;
  c.partialPtr  = h->partialPtr;
  c.combinePtr  = h->combinePtr;
  c.longRow     = h->longRows.row;
  c.firstPiece  = h->longRows.firstPiece;
  c.combinePos  = h->combinePos;
  c.combineEnd  = h->combineEnd;
  c.direct      = h->direct;
  c.partial     = h->partial;
  c.longPartial = h->longPartial;
  c.shared      = h->partialNum > 0;
  return c;
}

/* Thread blocks of the combine part */
static PetscCount CombineBlocks(const HBP *h)
{
  return h->rowBlocks + ((PetscCount)h->longRows.num + Warps - 1) / Warps;
}

/* Prepares the kernel with a dot product. Not before the first such product: most matrices need none, and this loads it. */
static PetscErrorCode PrepareDot(const HBP *h, HBPPlan *plan)
{
  int device, sms, resident = 0;

  PetscFunctionBegin;
  if (plan->dotBlocks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  if (!h->alone) PetscCallCUDA(cudaFuncSetAttribute(CombineKernel<PetscScalar, PetscInt, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, CombineMost));
  else if (h->mapped) PetscCallCUDA(GiveL1(HBPKernel<PetscScalar, PetscInt, MAPPED, true>, FewThreads, device, &resident));
  else PetscCallCUDA(GiveL1(HBPKernel<PetscScalar, PetscInt, PLAIN, true>, FewThreads, device, &resident));
  plan->dotBlocks = h->alone ? PetscMin(plan->blocks, PetscMax(resident, 1) * sms) : plan->blocks; /* it may need more registers */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts that warps take by tickets in a product with a dot product that the SpMV part computes */
static PetscInt PartsByTicket(const HBPPlan *plan)
{
  return PetscMax(plan->partNum - plan->dotBlocks * (plan->threads / WarpSize) * plan->fixedEach, 0);
}

/* HBPDotParts - The combine part computes a dot product. Where there is none the SpMV part does, unless x is in shared memory, or one thread block would have too many sums to add. None with what the product adds: some results are read where they are stored. */
PetscCount HBPDotParts(const void *data, PetscBool adds)
{
  const HBP *h    = (const HBP *)data;
  HBPPlan   *plan = (HBPPlan *)h->plan;
  PetscInt   sums;

  if (adds) return 0;
  if (h->columns) return h->columns->agents;
  if (h->hot) return HBPHotDotParts(h->hot);
  if (!plan || (h->alone && h->shared) || PrepareDot(h, plan)) return 0;
  if (!h->alone) return CombineBlocks(h);
  sums = PartsByTicket(plan);
  return sums > FewDots + h->m / RowsPerDot ? 0 : (PetscCount)plan->dotBlocks + sums;
}

static PetscErrorCode Apply(HBP *h, const GallopProduct *p)
{
  HBPPlan                   *plan     = (HBPPlan *)h->plan;
  GallopVectors<PetscScalar> v        = GallopVectorsOf(p);
  const bool                 dots     = v.with && h->alone; /* in the SpMV part */
  const PetscCount           blocks   = (dots ? plan->dotBlocks : plan->blocks) + (PetscCount)h->longRows.pieceNum;
  const bool                 overlaps = plan->overlaps && !plan->fresh;            /* new values must have been written */
  const bool                 waits    = h->nz >= ManyEntries && h->partialNum > 0; /* for the combine part of the product before */
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (v.with) {
    v.blocks = (unsigned int)(dots ? blocks : CombineBlocks(h));
    v.parts  = dots ? (unsigned int)PartsByTicket(plan) : 0;
  }
  if (blocks) {
    const HBPArrays<PetscScalar, PetscInt> a    = ArraysOf(h);
    const GallopGrid                       grid = {blocks, plan->threads, 1, plan->shared, stream, overlaps && !waits};

    if (h->shared) PetscCallCUDA(GallopLaunch(HBPKernel<PetscScalar, PetscInt, SHARED, false>, grid, a, v));
    else if (h->mapped) PetscCallCUDA(GallopLaunch(dots ? HBPKernel<PetscScalar, PetscInt, MAPPED, true> : HBPKernel<PetscScalar, PetscInt, MAPPED, false>, grid, a, v));
    else PetscCallCUDA(GallopLaunch(dots ? HBPKernel<PetscScalar, PetscInt, PLAIN, true> : HBPKernel<PetscScalar, PetscInt, PLAIN, false>, grid, a, v));
  }
  if (!h->alone) {
    const GallopGrid grid = {CombineBlocks(h), Threads, 1, plan->combineShared, stream, overlaps};

    PetscCallCUDA(GallopLaunch(v.with ? CombineKernel<PetscScalar, PetscInt, true> : CombineKernel<PetscScalar, PetscInt, false>, grid, CombineArraysOf(h), v));
  }
  PetscCallCUDA(GallopNotFresh(stream, &plan->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPApply_Device - The product */
PetscErrorCode HBPApply_Device(void *data, const GallopProduct *p)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  if (h->columns) PetscCall(HBPColumnsApply_Device(h->columns, p));
  else if (h->hot) PetscCall(HBPHotApply_Device(h->hot, p));
  else PetscCall(Apply(h, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}
