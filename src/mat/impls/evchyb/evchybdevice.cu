/* EVCHYB on the GPU: building it from CSR, renewing its values, and the one kernel of its product */

#include <gallop/packdeviceimpl.h>
#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include "evchyb.h"

static constexpr int WarpsInBlock = EVCHYB_THREADS / WarpSize;
static_assert(EVCHYB_BLOCK == WarpSize, "a warp computes a column block");
static_assert(EVCHYB_WARP_ROW <= EVCHYB_PIECE, "a warp computes a row of one piece");

/* How the kernel is compiled: entries in flight a thread, GPU blocks a multiprocessor, whether matrix data is loaded before the predecessor has ended, and whether rows are in order, so that perm is not read */
template <int AtOnce_, int MinBlocks_, bool Early_, bool InOrder_>
struct Shape {
  static constexpr int  AtOnce = AtOnce_, MinBlocks = MinBlocks_;
  static constexpr bool Early = Early_, InOrder = InOrder_;
};

/* The row of the matrix that stored row k of a part is, whose first is stored row number first */
template <typename S, typename I>
static __device__ __forceinline__ PetscInt RowOf(const I *__restrict__ perm, PetscInt first, PetscCount k)
{
  if constexpr (S::InOrder) return (PetscInt)(first + k);
  else return perm[k];
}

/* Sum over n entries of j and as that lie step apart: AtOnce of them in flight. Padding has a negative column. */
template <typename S, typename V, typename I>
static __device__ __forceinline__ V Gather(const I *__restrict__ j, const V *__restrict__ as, int n, int step, const V *x)
{
  constexpr int Unroll = S::AtOnce;
  V             sum    = V(0);
  int           k      = 0;

  for (; k + Unroll <= n; k += Unroll) {
    I c[Unroll];
    V a[Unroll];

#pragma unroll
    for (int u = 0; u < Unroll; u++) {
      c[u] = GallopLoadOnce(j + u * step);
      a[u] = GallopLoadOnce(as + u * step);
    }
    if (S::Early && !k) GallopWaitForPredecessor();
#pragma unroll
    for (int u = 0; u < Unroll; u++)
      if (c[u] >= 0) sum += a[u] * x[c[u]];
    j += Unroll * step;
    as += Unroll * step;
  }
  if (k < n) {
    I c[Unroll - 1];
    V a[Unroll - 1];

#pragma unroll
    for (int u = 0; u < Unroll - 1; u++) {
      c[u] = k + u < n ? GallopLoadOnce(j + u * step) : I(-1);
      a[u] = k + u < n ? GallopLoadOnce(as + u * step) : V(0);
    }
    if (S::Early && !k) GallopWaitForPredecessor();
#pragma unroll
    for (int u = 0; u < Unroll - 1; u++)
      if (c[u] >= 0) sum += a[u] * x[c[u]];
  }
  return sum;
}

/* The entries of begin, begin + step, ... before end */
template <typename S, typename V, typename I>
static __device__ __forceinline__ V GatherRange(const I *__restrict__ j, const V *__restrict__ as, PetscCount begin, PetscCount end, int step, const V *x)
{
  return begin < end ? Gather<S, V, I>(j + begin, as + begin, (int)((end - begin + step - 1) / step), step, x) : V(0);
}

/* ---------------------------------------------------------------- the product */

template <typename V, typename I>
struct EllView {
  const PetscCount *bnz;
  const I          *clen, *j;
  const V          *as;
};

template <typename V, typename I>
struct CsrView {
  const PetscCount *i;
  const I          *j;
  const V          *as;
  PetscInt          split;
  const PetscCount *splitblk;
  const PetscInt   *splitrow;
  V                *partial;
  int              *arrived;
};

/* Listing 1 of the paper: a lane computes one or several rows */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_adaptive(const EllView<V, I> &ell, const I *__restrict__ perm, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int rows = range.count, lane = threadIdx.x % WarpSize;
  PetscInt  b = range.first + (PetscInt)block * rows * WarpsInBlock + threadIdx.x / WarpSize;

  for (int r = 0; r < rows && b < range.end; r++, b += WarpsInBlock) {
    const PetscInt   row   = RowOf<S>(perm, 0, (PetscCount)b * EVCHYB_BLOCK + lane);
    const PetscCount first = ell.bnz[b] + lane;

    GallopStore(v, row, Gather<S, V, I>(ell.j + first, ell.as + first, (int)ell.clen[b], EVCHYB_BLOCK, v.x));
  }
}

/* Beyond the paper: several warps share a column block, each every so many columns */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_shared(const EllView<V, I> &ell, const I *__restrict__ perm, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int      warps = range.count, lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, part = warp % warps;
  const PetscInt b   = range.first + (PetscInt)block * (WarpsInBlock / warps) + warp / warps;
  PetscInt       row = 0;
  V              sum = V(0);
  __shared__ V   sums[EVCHYB_THREADS];

  if (b < range.end) {
    const PetscCount first = ell.bnz[b] + part * EVCHYB_BLOCK + lane;

    row = RowOf<S>(perm, 0, (PetscCount)b * EVCHYB_BLOCK + lane);
    sum = Gather<S, V, I>(ell.j + first, ell.as + first, ((int)ell.clen[b] - part + warps - 1) / warps, warps * EVCHYB_BLOCK, v.x);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (b < range.end && part == 0) {
    for (int w = 1; w < warps; w++) sum += sums[threadIdx.x + w * WarpSize];
    GallopStore(v, row, sum);
  }
}

/* A row that several GPU blocks compute, number lo of them: each leaves its part, the sum of its first thread, the last to arrive adds them in order, so that the result is the same in every run */
template <typename V, typename I>
static __device__ __forceinline__ void StoreSplit(const CsrView<V, I> &csr, PetscInt lo, PetscCount part, PetscInt row, V sum, const GallopVectors<V> &v)
{
  const PetscCount firstblk = csr.splitblk[lo], blocks = csr.splitblk[lo + 1] - firstblk;
  bool             last = false;

  if (threadIdx.x >= WarpSize) return;
  if (threadIdx.x == 0) {
    csr.partial[part] = sum;
    last              = cuda::atomic_ref<int, cuda::thread_scope_device>(csr.arrived[lo]).fetch_add(1, cuda::memory_order_acq_rel) == (int)(blocks - 1);
  }
  if (!__shfl_sync(0xffffffffu, last, 0)) return;
  __syncwarp(); /* what thread 0 has seen, all see */
  sum = V(0);
#pragma unroll 4
  for (int b = threadIdx.x; b < (int)blocks; b += WarpSize) sum += GallopLoadFromL2(csr.partial + firstblk + b);
  sum = GallopGroupSum(sum, WarpSize);
  if (threadIdx.x == 0) {
    csr.arrived[lo] = 0; /* for the next product */
    GallopStore(v, row, sum);
  }
}

template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_split(const CsrView<V, I> &csr, const I *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const PetscInt   lo       = csr.splitrow[block];
  const PetscCount firstblk = csr.splitblk[lo];
  const PetscInt   r        = range.first + lo;
  const PetscInt   row      = RowOf<S>(perm, ellrows, r);
  const PetscCount begin = csr.i[r] + (block - firstblk) * csr.split, stop = csr.i[r + 1];
  const V          sum = GatherRange<S, V, I>(csr.j, csr.as, begin + threadIdx.x, begin + csr.split < stop ? begin + csr.split : stop, EVCHYB_THREADS, v.x);

  StoreSplit(csr, lo, block, row, GallopWarpsSum<EVCHYB_THREADS>(sum, EVCHYB_THREADS), v);
}

/* A row that a cluster of GPU blocks computes: the sums meet in the shared memory of its first block */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_cluster(const CsrView<V, I> &csr, const I *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
#if __CUDA_ARCH__ >= 900
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const int                               rank    = block % EVCHYB_CLUSTER;
  const PetscInt                          r = range.first + block / EVCHYB_CLUSTER, row = RowOf<S>(perm, ellrows, r);
  const PetscCount                        first = csr.i[r], stop = csr.i[r + 1], piece = (stop - first) / EVCHYB_BLOCK * EVCHYB_BLOCK / EVCHYB_CLUSTER + EVCHYB_BLOCK;
  const PetscCount                        begin = first + rank * piece, end = begin + piece < stop ? begin + piece : stop;
  V                                       sum;
  __shared__ __align__(16) unsigned char bytes[EVCHYB_CLUSTER * sizeof(V)];
  V                                     *sums = reinterpret_cast<V *>(bytes);

  cluster.barrier_arrive(); /* the first block must have started before others write to it */
  sum = GallopWarpsSum<EVCHYB_THREADS>(GatherRange<S, V, I>(csr.j, csr.as, begin + threadIdx.x, end, EVCHYB_THREADS, v.x), EVCHYB_THREADS);
  cluster.barrier_wait();
  if (threadIdx.x == 0) cluster.map_shared_rank(sums, 0)[rank] = sum;
  cluster.sync();
  if (rank == 0 && threadIdx.x == 0) {
    sum = V(0);
  #pragma unroll
    for (int k = 0; k < EVCHYB_CLUSTER; k++) sum += sums[k];
    GallopWaitForPredecessor();
    GallopStore(v, row, sum);
  }
#endif
}

/* Listing 2 of the paper: TPR threads a row */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_adaptiveTPR(const CsrView<V, I> &csr, const I *__restrict__ perm, PetscInt ellrows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int      tpr = range.count, lane = threadIdx.x % tpr;
  const PetscInt r      = range.first + (PetscInt)block * (EVCHYB_THREADS / tpr) + threadIdx.x / tpr;
  const bool     inside = r < range.end;
  PetscInt       row    = 0;
  V              sum    = V(0);

  if (inside) {
    row = RowOf<S>(perm, ellrows, r);
    sum = GatherRange<S, V, I>(csr.j, csr.as, csr.i[r] + lane, csr.i[r + 1], tpr, v.x);
  }
  sum = tpr <= WarpSize ? GallopGroupSum(sum, tpr) : GallopWarpsSum<EVCHYB_THREADS>(sum, tpr);
  if (inside && lane == 0) GallopStore(v, row, sum);
}

/* Rows without entries: z = beta y */
template <typename S, typename V>
static __device__ __forceinline__ void ScaleEmpty(const PetscInt *__restrict__ perm, PetscInt rows, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  GallopWaitForPredecessor();
  for (int k = 0; k < 4; k++) {
    const PetscInt r = range.first + ((PetscInt)block * 4 + k) * EVCHYB_THREADS + threadIdx.x;

    if (r < range.end) GallopStore(v, RowOf<S>(perm, rows, r), V(0));
  }
}

/* Algorithm 1 of the paper: the number of a GPU block decides what it computes */
template <typename S, typename V, typename I>
__global__ static void __launch_bounds__(EVCHYB_THREADS, S::MinBlocks) SpMV_EVCHYB_adaptive(const __grid_constant__ EVCHYBLaunch launch, const EllView<V, I> ell, const CsrView<V, I> csr, const I *__restrict__ perm, const GallopVectors<V> v, const PetscInt ellrows, const PetscInt rows, const bool fresh)
{
  int k = 0;

  if (!S::Early || fresh) GallopWaitForPredecessor();
  if (blockIdx.x >= launch.range[launch.n - 1].next) return; /* what fills up the last cluster */
  while (blockIdx.x >= launch.range[k].next) k++;
  const EVCHYBRange &range = launch.range[k];
  const unsigned int block = blockIdx.x - range.begin;

  switch (range.kind) {
  case EVCHYB_RANGE_ELL:
    SpMV_ELL_adaptive<S, V, I>(ell, perm, v, range, block);
    break;
  case EVCHYB_RANGE_SHARED:
    SpMV_ELL_shared<S, V, I>(ell, perm, v, range, block);
    break;
  case EVCHYB_RANGE_CSR:
    SpMV_CSR_adaptiveTPR<S, V, I>(csr, perm + ellrows, ellrows, v, range, block);
    break;
  case EVCHYB_RANGE_CLUSTER:
    SpMV_CSR_cluster<S, V, I>(csr, perm + ellrows, ellrows, v, range, block);
    break;
  case EVCHYB_RANGE_SPLIT:
    SpMV_CSR_split<S, V, I>(csr, perm + ellrows, ellrows, v, range, block);
    break;
  default:
    ScaleEmpty<S, V>(perm + rows, rows, v, range, block);
  }
  if (S::Early) GallopWaitForPredecessor(); /* those that had nothing to do */
}

/* Pieces of packed rows: the last ones, a GPU block each, are of rows that have several */
template <typename S, typename V, typename I>
static __device__ __forceinline__ void SpMV_packed_rows(const GallopPackView &pack, PetscInt nslice, PetscInt npiece, PetscCount nparts, const CsrView<V, I> &csr, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int      warp  = threadIdx.x / WarpSize;
  const PetscInt piece = range.first + (PetscInt)(range.count == 1 ? block * WarpsInBlock + warp : block);
  PetscInt       row   = 0;
  V              sum   = V(0);

  if (piece < range.end) sum = GallopPackSumPiece<S::Lines, S::Kind, V>(pack, (PetscCount)nslice - npiece + piece, range.count == 1 ? 0 : warp, range.count, v.x, true, &row);
  if (range.count == 1) {
    sum = GallopGroupSum(sum, WarpSize);
    if (piece < range.end && threadIdx.x % WarpSize == 0) GallopStore(v, row, sum);
    return;
  }
  sum = GallopWarpsSum<EVCHYB_THREADS>(sum, EVCHYB_THREADS);
  if (piece >= npiece - nparts) {
    const PetscCount part = piece - (npiece - nparts);

    StoreSplit(csr, csr.splitrow[part], part, row, sum, v);
  } else if (threadIdx.x == 0) GallopStore(v, row, sum);
}

/* How the packed kernel is compiled: lines that are under way together, and GPU blocks a multiprocessor, measured for 8 bytes, docs/packing.md; more lines of 16 do not fit registers. Kind: how values are stored */
template <GallopPackValues Kind_>
struct PackedShape {
  static constexpr GallopPackValues Kind  = Kind_;
  static constexpr int              Lines = sizeof(PetscScalar) > 8 ? 2 : 4, MinBlocks = 4;
};

/* The same product with the entries packed. A GPU block has neighbouring slices, of which its warps take one after the other by turns. */
template <typename S, typename V, typename I>
__global__ static void __launch_bounds__(EVCHYB_THREADS, S::MinBlocks) SpMV_EVCHYB_packed(const __grid_constant__ EVCHYBLaunch launch, const GallopPackView pack, const PetscInt nslice, const PetscInt npiece, const PetscCount nparts, const CsrView<V, I> csr, const GallopVectors<V> v, const bool fresh)
{
  __shared__ GallopPackSlice slices[WarpsInBlock][EVCHYB_PACK_EACH];
  int                        k = 0;

  if (fresh) GallopWaitForPredecessor();
  while (blockIdx.x >= launch.range[k].next) k++;
  const EVCHYBRange &range = launch.range[k];
  const unsigned int block = blockIdx.x - range.begin;

  if (range.kind == EVCHYB_RANGE_PIECES) SpMV_packed_rows<S, V, I>(pack, nslice, npiece, nparts, csr, v, range, block);
  else {
    const int      warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
    const PetscInt first = range.first + (PetscInt)block * range.count * WarpsInBlock + warp;
    const int      num   = (int)PetscMin((PetscInt)range.count, (range.end - first + WarpsInBlock - 1) / WarpsInBlock);

    if (lane < num) slices[warp][lane] = GallopPackLoadSlice(pack.slice + first + lane * WarpsInBlock);
    __syncwarp();
    if (num > 0) GallopPackMultiply<S::Lines, S::Kind, V>(pack, slices[warp], num, v);
  }
  GallopWaitForPredecessor(); /* those that had nothing to do */
}

template <typename V>
__global__ static void ScaleKernel(PetscCount n, V beta, const V *y, V *z)
{
  for (PetscCount k = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x; k < n; k += (PetscCount)gridDim.x * blockDim.x) z[k] = beta * y[k];
}

/* ---------------------------------------------------------------- building */

/* Exclusive prefix sum in place. One GPU block is enough for a few thousand; CUB's device-wide scan costs two launches more than its work then. */
static constexpr int ScanThreads = 512, ScanItems = 8;

template <typename T>
__global__ static void __launch_bounds__(ScanThreads) ScanKernel(T *data, int n)
{
  using Scan = cub::BlockScan<T, ScanThreads>;
  __shared__ typename Scan::TempStorage temp;
  T                                     before = {};

  for (int base = 0; base < n; base += ScanThreads * ScanItems) {
    const int first = base + threadIdx.x * ScanItems;
    T         item[ScanItems], total;

#pragma unroll
    for (int k = 0; k < ScanItems; k++) item[k] = first + k < n ? data[first + k] : T{};
    Scan(temp).ExclusiveScan(item, item, T{}, cuda::std::plus<>(), total);
#pragma unroll
    for (int k = 0; k < ScanItems; k++)
      if (first + k < n) data[first + k] = before + item[k];
    before = before + total;
    __syncthreads();
  }
}

template <typename T>
static cudaError_t ExclusiveScan(void *temp, size_t &bytes, T *data, PetscCount n, cudaStream_t stream)
{
  if (n > 2 * ScanThreads * ScanItems || !temp) return cub::DeviceScan::ExclusiveScan(temp, bytes, data, data, cuda::std::plus<>(), T{}, n, stream);
  ScanKernel<<<1, ScanThreads, 0, stream>>>(data, (int)n);
  return cudaGetLastError();
}

/* Sort of keys below 32, for no more than one GPU block sorts at once: a fraction of what CUB's device-wide sort takes */
static constexpr int SortItems = 8, SortMost = ScanThreads * SortItems, SortBits = 5;

__global__ static void __launch_bounds__(ScanThreads) SmallSortKernel(int n, const uint64_t *__restrict__ keys, PetscInt *order)
{
  using Sort = cub::BlockRadixSort<unsigned int, ScanThreads, SortItems, PetscInt>;
  __shared__ typename Sort::TempStorage temp;
  unsigned int                          key[SortItems];
  PetscInt                              index[SortItems];

#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    index[k] = threadIdx.x * SortItems + k;
    key[k]   = index[k] < n ? (unsigned int)keys[index[k]] : (1u << SortBits) - 1;
  }
  Sort(temp).Sort(key, index, 0, SortBits);
#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    const int at = threadIdx.x * SortItems + k;

    if (at < n) order[at] = index[k];
  }
}

/* What the kernels of the build count for the host */
struct Counts {
  unsigned long long nempty, nlong, nzell, LCmax, classes[EVCHYB_CLASSES], moved; /* moved: not 0 when some row is not where it comes */
};

/* Keys of all rows, and how many are empty and long */
__global__ static void KeysKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, uint64_t *keys, PetscInt *rows, Counts *counts)
{
  const PetscCount r   = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;
  PetscInt         len = 1;

  if (r < m) {
    len     = i[r + 1] - i[r];
    keys[r] = EVCHYBKey(&shape, (PetscInt)r, len, len ? j[i[r]] : 0);
    rows[r] = (PetscInt)r;
  }
  const int empty = __syncthreads_count(r < m && !len), longer = __syncthreads_count(r < m && len > shape.maxell);

  if (threadIdx.x == 0) {
    if (empty) atomicAdd(&counts->nempty, (unsigned long long)empty);
    if (longer) atomicAdd(&counts->nlong, (unsigned long long)longer);
  }
}

/* Empty and long rows of a window, then of all windows before it */
struct WindowCounts {
  PetscCount nempty, nlong;

  __host__ __device__ WindowCounts operator+(const WindowCounts &other) const { return {nempty + other.nempty, nlong + other.nlong}; }
};

/* Rows of a window that a thread sorts: of small ones, and of the largest that a GPU block sorts, the default */
static constexpr int WindowFew = 4, WindowMany = 16, WindowMost = WindowMany * EVCHYB_THREADS;

/* A GPU block sorts a window: empty rows, short ones by length and, if that is asked for, first column, then long ones as they come. Much less work than sorting all rows by window, length and column. */
template <int WindowItems>
__global__ static void __launch_bounds__(EVCHYB_THREADS) WindowSortKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, PetscInt *rows, WindowCounts *windows)
{
  using Sort = cub::BlockRadixSort<uint64_t, EVCHYB_THREADS, WindowItems, PetscInt, 6>;
  __shared__ typename Sort::TempStorage temp;
  __shared__ int                        count[3];
  const PetscCount                      first = (PetscCount)blockIdx.x * window;
  const int                             n = (int)(m - first < window ? m - first : window), bits = shape.lenbits + shape.colbits;
  uint64_t                              keys[WindowItems];
  PetscInt                              row[WindowItems];

  if (threadIdx.x < 3) count[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    row[k]  = (PetscInt)(first + at);
    keys[k] = ~(uint64_t)0;
    if (at < n) {
      const PetscInt begin = i[first + at], len = i[first + at + 1] - begin;

      if (!len) keys[k] = 0;
      else if (len > shape.maxell) keys[k] = (uint64_t)EVCHYB_LONG << bits;
      else keys[k] = (uint64_t)EVCHYB_SHORT << bits | (uint64_t)len << shape.colbits | (shape.colbits ? (uint64_t)j[begin] >> shape.colshift : 0);
      if (!len || len > shape.maxell) atomicAdd(&count[len ? EVCHYB_LONG : EVCHYB_EMPTY], 1);
    }
  }
  Sort(temp).Sort(keys, row, 0, bits + 2);
#pragma unroll
  for (int k = 0; k < WindowItems; k++) {
    const int at = threadIdx.x * WindowItems + k;

    if (at < n) rows[first + at] = row[k];
  }
  if (threadIdx.x == 0) {
    windows[blockIdx.x] = {count[EVCHYB_EMPTY], count[EVCHYB_LONG]};
    if (blockIdx.x == gridDim.x - 1) windows[gridDim.x] = {0, 0}; /* its place gets the totals */
  }
}

/* The windows' empty rows to the front, short ones behind them, long ones to the end; keys of the long ones */
__global__ static void WindowsGatherKernel(PetscInt m, PetscInt window, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, const WindowCounts *__restrict__ windows, const PetscInt *__restrict__ rows, PetscInt *sorted, uint64_t *longkeys, Counts *counts)
{
  const PetscCount   first = (PetscCount)blockIdx.x * window, n = m - first < window ? m - first : window;
  const WindowCounts before = windows[blockIdx.x], next = windows[blockIdx.x + 1], total = windows[gridDim.x];
  const PetscCount   nempty = next.nempty - before.nempty, nshort = n - nempty - (next.nlong - before.nlong);
  const PetscCount   toshort = total.nempty + first - before.nempty - before.nlong;

  for (PetscCount k = threadIdx.x; k < n; k += blockDim.x) {
    const PetscInt row = rows[first + k];

    if (k < nempty) sorted[before.nempty + k] = row;
    else if (k < nempty + nshort) sorted[toshort + k - nempty] = row;
    else {
      const PetscCount at = before.nlong + k - nempty - nshort;

      sorted[m - total.nlong + at] = row;
      longkeys[at]                 = EVCHYBKey(&shape, row, i[row + 1] - i[row], j[i[row]]);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts->nempty = (unsigned long long)total.nempty;
    counts->nlong  = (unsigned long long)total.nlong;
  }
}

/* Lengths and sort keys of the column blocks, stored entries of the rows of SubCSR */
__global__ static void LengthsKernel(PetscInt nb, PetscInt ncsr, PetscBool byrow, const PetscInt *__restrict__ i, const PetscInt *__restrict__ perm, PetscInt *clen, uint64_t *keys, PetscInt *index, PetscCount *csri, Counts *counts)
{
  const PetscCount  warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int         lane = threadIdx.x % WarpSize;
  __shared__ Counts here; /* one atomic a GPU block */

  for (int k = threadIdx.x; k < (int)(sizeof(Counts) / sizeof(unsigned long long)); k += EVCHYB_THREADS) reinterpret_cast<unsigned long long *>(&here)[k] = 0;
  __syncthreads();
  if (warp < nb) {
    const PetscInt     row = perm[warp * EVCHYB_BLOCK + lane];
    PetscInt           len = i[row + 1] - i[row], longest = len;
    unsigned long long sum = (unsigned long long)len;

    for (int by = WarpSize / 2; by > 0; by /= 2) {
      const PetscInt other = __shfl_xor_sync(0xffffffffu, longest, by);

      longest = other > longest ? other : longest;
      sum += __shfl_xor_sync(0xffffffffu, sum, by);
    }
    if (lane == 0) {
      clen[warp]  = longest;
      keys[warp]  = EVCHYBBlockKey(byrow, longest, row);
      index[warp] = (PetscInt)warp;
      atomicAdd(&here.nzell, sum);
      atomicMax(&here.LCmax, (unsigned long long)longest);
      atomicAdd(&here.classes[EVCHYBClass(longest)], 1ull);
    }
  } else if (warp - nb < (ncsr + WarpSize - 1) / WarpSize) {
    const PetscCount r = (warp - nb) * WarpSize + lane;

    if (r < ncsr) {
      const PetscInt row = perm[(PetscCount)nb * EVCHYB_BLOCK + r];

      csri[r] = EVCHYBRoundUp(i[row + 1] - i[row]);
    }
  }
  __syncthreads();
  if (threadIdx.x < EVCHYB_CLASSES) {
    if (here.classes[threadIdx.x]) atomicAdd(&counts->classes[threadIdx.x], here.classes[threadIdx.x]);
  } else if (threadIdx.x == EVCHYB_CLASSES) {
    if (here.nzell) atomicAdd(&counts->nzell, here.nzell);
    atomicMax(&counts->LCmax, here.LCmax);
  }
}

/* Column blocks to the order in which they are stored, and the rows behind them: those of SubCSR, and empty ones; entries of the blocks for the prefix sum */
__global__ static void OrderKernel(PetscInt nb, PetscInt ncsr, PetscInt nlisted, const PetscInt *order, const PetscInt *__restrict__ empty, const PetscInt *__restrict__ sorted, const PetscInt *__restrict__ oldclen, PetscInt *perm, PetscInt *clen, PetscCount *bnz, Counts *counts)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize, at = warp * WarpSize + threadIdx.x % WarpSize, behind = at - (PetscCount)nb * EVCHYB_BLOCK;
  PetscCount       row = at;

  if (warp < nb) {
    const PetscCount from = order[warp];

    perm[at] = row = sorted[from * EVCHYB_BLOCK + threadIdx.x % WarpSize];
    if (at == warp * WarpSize) {
      clen[warp] = oldclen[from];
      bnz[warp]  = (PetscCount)oldclen[from] * EVCHYB_BLOCK;
    }
  } else if (behind < ncsr) perm[at] = row = sorted[at];
  else if (behind - ncsr < nlisted) perm[at] = row = empty[behind - ncsr];
  if (__syncthreads_or(row != at) && threadIdx.x == 0) counts->moved = 1;
  if (behind == 0) bnz[nb] = 0; /* one count too many, so that the exclusive sum ends with the total */
}

/* The widths of a tile, which is what a warp copies of a column block at once. A wide one reads whole cache lines of long rows, a narrow one leaves registers for more warps where most rows fit into it. */
static constexpr int FillWide = sizeof(PetscScalar) > 8 ? 8 : 16, FillNarrow = FillWide / 2;

/* How the entries are shared out among warps: a small matrix has too few column blocks to keep the GPU busy with a warp each */
struct FillShape {
  int parts; /* warps a column block: each takes every so many tiles */
  int chunk; /* entries of SubCSR a warp: a row may have many more */
};
static constexpr int FillChunk = 512; /* the most */
static constexpr int FillWarps = 64;  /* wanted a multiprocessor: twice what runs at once, since most of those that share a column block of a small matrix find no tile in it */
static_assert(FillChunk / EVCHYB_BLOCK <= WarpSize, "a lane for each row");

/*
  Columns k to k + columns of a column block, from CSR rows of which a lane knows its own. They are read along the rows, Width neighbours at once, and written along the columns: a
  lane that walked its row would ask for 32 sectors with every load. Between they meet in shared memory.
*/
template <int Width, typename T>
static __device__ __forceinline__ void FillTile(void *shared, const T *from, PetscInt first, PetscInt len, PetscInt k, int columns, T padding, T *to)
{
  constexpr int Rows = WarpSize / Width; /* that the warp reads from at once */
  const int     lane = threadIdx.x % WarpSize, column = lane % Width;
  T(*tile)[Width + 1] = static_cast<T(*)[Width + 1]>(shared);
  T value[Width];

#pragma unroll
  for (int u = 0; u < Width; u++) {
    const int        row   = u * Rows + lane / Width;
    const PetscCount begin = __shfl_sync(0xffffffffu, first, row);
    const PetscInt   n     = __shfl_sync(0xffffffffu, len, row);

    value[u] = k + column < n ? from[begin + k + column] : padding;
  }
#pragma unroll
  for (int u = 0; u < Width; u++) tile[u * Rows + lane / Width][column] = value[u];
  __syncwarp();
#pragma unroll
  for (int u = 0; u < Width; u++)
    if (u < columns) to[u * WarpSize + lane] = tile[lane][u];
  __syncwarp(); /* the next tile takes the same place */
}

/* Of n ascending numbers, the first of which is at most limit, the last that is: a warp looks at 32 at once */
static __device__ __forceinline__ PetscInt LastAtMost(const PetscCount *__restrict__ numbers, PetscInt n, PetscCount limit)
{
  PetscInt lo = 0;

  while (n > 1) {
    const PetscInt     step = (n + WarpSize - 1) / WarpSize, at = (PetscInt)(threadIdx.x % WarpSize) * step;
    const unsigned int lanes = __ballot_sync(0xffffffffu, at < n && numbers[lo + at] <= limit);
    const PetscInt     skip  = (__popc(lanes) - 1) * step;

    lo += skip;
    n = step < n - skip ? step : n - skip;
  }
  return lo;
}

/* n entries of SubCSR from begin on, both multiples of 32. A lane looks after a row; 32 entries are of one row, whatever its length. */
template <bool Pattern, int AtOnce>
static __device__ __forceinline__ void FillRows(const SubCSR &csr, PetscCount begin, int n, const PetscInt *__restrict__ perm, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  const int        lane   = threadIdx.x % WarpSize;
  const PetscInt   r      = LastAtMost(csr.i, csr.n, begin) + lane;
  const bool       inside = r < csr.n;
  const PetscCount at = (inside ? csr.i[r] : csr.nz) - begin, next = (inside ? csr.i[r + 1] : csr.nz) - begin; /* where the row is in the chunk */
  const PetscInt   row = inside ? perm[r] : 0;

  GallopWaitForPredecessor();
  const PetscInt   first = i[row], len = i[row + 1] - first;
  const PetscCount shift = first - at;                         /* entry k of the chunk is entry shift + k of the matrix */
  const int        stop  = (int)(at + len < n ? at + len : n); /* where the row's entries end */
  const int        end   = (int)(next < n ? next : n);         /* and where its padding does */

  for (int k = 0; k < n; k += AtOnce * WarpSize) {
    PetscInt    column[AtOnce];
    PetscScalar value[AtOnce];

#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int mine = k + u * WarpSize + lane, owner = __popc(__ballot_sync(0xffffffffu, end <= k + u * WarpSize)); /* rows that end before; all of them behind the chunk, where no lane has any entries */
      const PetscCount from = __shfl_sync(0xffffffffu, shift, owner) + mine;
      const bool       real = mine < __shfl_sync(0xffffffffu, stop, owner);

      if (Pattern) column[u] = real ? j[from] : -1;
      value[u] = real ? a[from] : PetscScalar(0);
    }
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int mine = k + u * WarpSize + lane;

      if (mine >= n) break;
      if (Pattern) csr.j[begin + mine] = column[u];
      csr.as[begin + mine] = value[u];
    }
  }
}

/*
  j and as, or only as; padding too, so that whole sectors are written. What a column block is made of is loaded before the wait for the predecessor, which may be writing i, j and a:
  these are not __restrict__. So the compiler lets none of their loads go ahead of a store, and a thread has to load a batch before it stores any.
*/
template <bool Pattern, int Width>
__global__ static void __launch_bounds__(EVCHYB_THREADS, Width == FillWide ? 4 : 6) FillKernel(const SubELL ell, const SubCSR csr, const FillShape shape, const PetscInt *__restrict__ perm, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  constexpr size_t   Largest = sizeof(PetscScalar) > sizeof(PetscInt) ? sizeof(PetscScalar) : sizeof(PetscInt);
  const unsigned int parts = shape.parts, warp = blockIdx.x * WarpsInBlock + threadIdx.x / WarpSize, ellwarps = (unsigned int)ell.nb * parts;
  __shared__ __align__(16) unsigned char tiles[WarpsInBlock][WarpSize * (Width + 1) * Largest];

  if (warp < ellwarps) {
    const PetscCount b   = ell.nb - 1 - (PetscInt)(warp / parts); /* the longest stand last */
    const PetscInt   row = perm[b * EVCHYB_BLOCK + threadIdx.x % WarpSize], all = ell.clen[b];
    const PetscCount to   = ell.bnz[b];
    void            *tile = tiles[threadIdx.x / WarpSize];

    GallopWaitForPredecessor();
    const PetscInt first = i[row], len = i[row + 1] - first;

    for (PetscInt k = (PetscInt)(warp % parts) * Width; k < all; k += shape.parts * Width) {
      const PetscCount at      = to + (PetscCount)k * EVCHYB_BLOCK;
      const int        columns = all - k < Width ? (int)(all - k) : Width;

      if (Pattern) FillTile<Width>(tile, j, first, len, k, columns, PetscInt(-1), ell.j + at);
      FillTile<Width>(tile, a, first, len, k, columns, PetscScalar(0), ell.as + at);
    }
  } else {
    const PetscCount begin = (PetscCount)(warp - ellwarps) * shape.chunk, n = csr.nz - begin < shape.chunk ? csr.nz - begin : shape.chunk;

    if (n > 0) FillRows<Pattern, Width / (Pattern ? 4 : 2)>(csr, begin, (int)n, perm + ell.n, i, j, a);
    else GallopWaitForPredecessor();
  }
}

template <int Width>
static cudaError_t LaunchFill(const EVCHYB *ev, const GallopCSR *csr, const FillShape &shape, bool pattern, cudaStream_t stream)
{
  const PetscCount warps = (PetscCount)ev->ell.nb * shape.parts + (ev->csr.nz + shape.chunk - 1) / shape.chunk;

  return GallopLaunch(pattern ? FillKernel<true, Width> : FillKernel<false, Width>, {GallopBlocksFor(warps * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 1, 0, stream, (bool)ev->overlaps}, ev->ell, ev->csr, shape, ev->perm,
                      csr->i, csr->j, csr->a);
}

static PetscErrorCode Fill(EVCHYB *ev, const GallopCSR *csr, bool pattern)
{
  const PetscCount wanted = (PetscCount)ev->processors * FillWarps, nb = ev->ell.nb;
  FillShape        shape = {1, FillChunk};
  cudaStream_t     stream;

  PetscFunctionBegin;
  ev->fresh = PETSC_TRUE;
  if (!nb && !ev->csr.nz) PetscFunctionReturn(PETSC_SUCCESS); /* all rows are packed */
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  while (shape.chunk > 128 && ev->csr.nz / shape.chunk < wanted) shape.chunk /= 2;
  if (nb >= wanted && ev->ell.nz <= (PetscCount)FillNarrow * ev->ell.n && ev->csr.nz < ev->ell.nz) PetscCallCUDA(LaunchFill<FillNarrow>(ev, csr, shape, pattern, stream));
  else {
    while (shape.parts * FillWide < ev->ell.LCmax && nb * shape.parts * 2 <= wanted) shape.parts *= 2;
    PetscCallCUDA(LaunchFill<FillWide>(ev, csr, shape, pattern, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs twice: with a null base it measures, then it hands out */
static size_t CarveEntries(EVCHYB *ev, PetscInt nsplit, PetscCount nparts, void *base)
{
  GallopCarver carver(base);

  carver.Take(ev->ell.j, ev->ell.nz);
  carver.Take(ev->ell.as, ev->ell.nz);
  carver.Take(ev->csr.j, ev->csr.nz);
  carver.Take(ev->csr.as, ev->csr.nz);
  carver.Take(ev->csr.splitblk, nsplit + 1);
  carver.Take(ev->csr.splitrow, nparts);
  carver.Take(ev->csr.partial, nparts);
  carver.Take(ev->csr.arrived, nsplit);
  return carver.Bytes();
}

static size_t CarveRows(EVCHYB *ev, PetscInt nrows, PetscInt nb, PetscInt ncsr, void *base, Counts **counts)
{
  GallopCarver carver(base);

  carver.Take(ev->perm, nrows);
  carver.Take(ev->ell.clen, nb);
  carver.Take(ev->ell.bnz, (PetscCount)nb + 1 + ncsr + 1 + (PetscCount)(sizeof(Counts) / sizeof(PetscCount))); /* the end of bnz, csr.i and the counts go to the host in one piece */
  ev->csr.i = base ? ev->ell.bnz + nb + 1 : NULL;
  *counts   = base ? reinterpret_cast<Counts *>(ev->csr.i + ncsr + 1) : NULL;
  return carver.Bytes();
}

/* What sorting needs and nothing else. What column blocks are sorted by takes the place of what rows were sorted by. */
struct Workspace {
  uint64_t *keys, *sortedkeys;
  PetscInt *rows, *sortedrows, *clen, *order;
  char     *cub;
  size_t    cubbytes;

  Counts       *counts;
  WindowCounts *windows;
};

static size_t CarveWorkspace(Workspace *w, PetscInt m, PetscInt nwindows, void *base)
{
  const PetscInt nb = m / EVCHYB_BLOCK;
  GallopCarver   carver(base);

  carver.Take(w->keys, m);
  carver.Take(w->sortedkeys, m);
  carver.Take(w->rows, m);
  carver.Take(w->sortedrows, m);
  carver.Take(w->clen, nb);
  carver.Take(w->order, nb);
  carver.Take(w->counts, 1);
  carver.Take(w->windows, nwindows + 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* The two allocations of a built format begin at perm and at ell.j */
static PetscErrorCode Free(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(ev->perm));
  PetscCall(GallopDeviceFree(ev->ell.j));
  PetscCall(GallopPackDestroy(&ev->pack));
  PetscCall(PetscFree(ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBDestroy_Device(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((EVCHYB *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Sorts the rows, packs them where that is asked for and pays, and measures both parts: all that comes before other entries. *fits is false when the GPU has no room; *i has csr.i on the host, to be
  freed by the caller.
*/
static PetscErrorCode SortRows(EVCHYB *ev, const GallopCSR *csr, bool *fits, PetscCount **i)
{
  const EVCHYBOptions *options = &ev->options;
  const PetscInt       m = csr->m, window = options->window;
  const bool           bywindow = window >= EVCHYB_THREADS && window <= WindowMost;
  const PetscInt       nwindows = bywindow ? (m + window - 1) / window : 0;
  Workspace            w        = {};
  Counts               counts, *rowcounts;
  EVCHYBKeyShape       shape;
  cudaStream_t         stream;
  size_t               sortbytes = 0, scanbytes = 0, windowbytes = 0, bytes;
  void                *base, *rows;

  PetscFunctionBegin;
  *fits = false;
  *i    = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  EVCHYBGetKeyShape(options, csr, &shape);
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, sortbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, m, 0, shape.classbit + 2, stream));
  PetscCallCUDA(ExclusiveScan(nullptr, scanbytes, ev->csr.i, (PetscCount)m + 1, stream));
  if (bywindow) PetscCallCUDA(ExclusiveScan(nullptr, windowbytes, w.windows, (PetscCount)nwindows + 1, stream));
  w.cubbytes = PetscMax(PetscMax(sortbytes, scanbytes), windowbytes);
  bytes      = CarveWorkspace(&w, m, nwindows, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveWorkspace(&w, m, nwindows, base);

  if (bywindow) {
    const auto kernel = window <= WindowFew * EVCHYB_THREADS ? WindowSortKernel<WindowFew> : WindowSortKernel<WindowMany>;

    kernel<<<nwindows, EVCHYB_THREADS, 0, stream>>>(m, window, csr->i, csr->j, shape, w.rows, w.windows);
    GallopCheckLaunch();
    PetscCallCUDA(ExclusiveScan(w.cub, w.cubbytes, w.windows, (PetscCount)nwindows + 1, stream));
    WindowsGatherKernel<<<nwindows, EVCHYB_THREADS, 0, stream>>>(m, window, csr->i, csr->j, shape, w.windows, w.rows, w.sortedrows, w.keys, w.counts);
    GallopCheckLaunch();
  } else {
    PetscCallCUDA(cudaMemsetAsync(w.counts, 0, sizeof(*w.counts), stream));
    KeysKernel<<<GallopBlocksFor(m, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(m, csr->i, csr->j, shape, w.keys, w.rows, w.counts);
    GallopCheckLaunch();
    PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, m, 0, shape.classbit + 2, stream));
  }
  PetscCall(GallopDeviceCopyOut(&counts, w.counts, 2 * sizeof(counts.nempty))); /* nempty and nlong */

  const PetscInt nlong = (PetscInt)counts.nlong;

  if (bywindow && nlong > 1) {
    PetscCallCUDA(cudaMemcpyAsync(w.rows, w.sortedrows + m - nlong, nlong * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows + m - nlong, nlong, 0, shape.classbit, stream));
  }
  if (EVCHYBWantsPack(ev, csr, (PetscInt)counts.nempty)) {
    PetscInt *longrows;

    PetscCall(PetscMalloc1(nlong, &longrows));
    if (nlong) PetscCall(GallopDeviceCopyOut(longrows, w.sortedrows + m - nlong, (size_t)nlong * sizeof(*longrows)));
    PetscCall(EVCHYBMakePack(csr, w.sortedrows, m - nlong, longrows, nlong, ev));
    PetscCall(PetscFree(longrows));
  }
  EVCHYBSplit((PetscInt)counts.nempty, m - (PetscInt)counts.nempty - nlong, nlong, ev);

  const PetscInt nb = ev->ell.nb, ncsr = ev->csr.n, nrows = ev->ell.n + ncsr, *sorted = w.sortedrows + m - nrows;

  PetscCall(GallopDeviceMalloc(CarveRows(ev, nrows + ev->nlisted, nb, ncsr, NULL, &rowcounts), &rows));
  if (rows) {
    const PetscCount n = ncsr + 2 + (PetscCount)(sizeof(Counts) / sizeof(PetscCount)); /* the end of bnz, csr.i, counts */

    ev->bytes += CarveRows(ev, nrows + ev->nlisted, nb, ncsr, rows, &rowcounts);
    PetscCallCUDA(cudaMemsetAsync(ev->csr.i + ncsr, 0, sizeof(PetscCount) + sizeof(Counts), stream)); /* one count too many, so that the exclusive sum ends with the total */
    if (nb || ncsr) {
      LengthsKernel<<<GallopBlocksFor((PetscCount)nb * WarpSize + (ncsr + WarpSize - 1) / WarpSize * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, ev->byrow, csr->i, sorted, w.clen, w.keys, w.rows,
                                                                                                                                     ev->csr.i, rowcounts);
      GallopCheckLaunch();
    }
    if (nb && nb <= SortMost && !ev->byrow) {
      static_assert(EVCHYB_CLASSES < 1 << SortBits, "keys of the small sort");
      SmallSortKernel<<<1, ScanThreads, 0, stream>>>((int)nb, w.keys, w.order);
      GallopCheckLaunch();
    } else if (nb) PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.order, nb, 0, ev->byrow ? EVCHYB_ROWBITS + 5 : 5, stream));
    OrderKernel<<<GallopBlocksFor((PetscCount)(nb + 1) * WarpSize + ncsr + ev->nlisted, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, ev->nlisted, w.order, w.sortedrows, sorted, w.clen, ev->perm, ev->ell.clen,
                                                                                                              ev->ell.bnz, rowcounts);
    GallopCheckLaunch();
    if (nb) PetscCallCUDA(ExclusiveScan(w.cub, w.cubbytes, ev->ell.bnz, (PetscCount)nb + 1, stream));
    if (ncsr) PetscCallCUDA(ExclusiveScan(w.cub, w.cubbytes, ev->csr.i, (PetscCount)ncsr + 1, stream));
    PetscCall(PetscMalloc1(n, i));
    PetscCall(GallopDeviceCopyOut(*i, ev->ell.bnz + nb, n * sizeof(PetscCount)));
    ev->ell.nz = (*i)[0];
    ev->csr.nz = ev->pack ? 0 : (*i)[1 + ncsr];
    PetscCall(PetscMemcpy(&counts, *i + ncsr + 2, sizeof(counts)));
    PetscCall(PetscArraymove(*i, *i + 1, ncsr + 1));
    ev->nzell     = (PetscCount)counts.nzell;
    ev->ell.LCmax = (PetscInt)counts.LCmax;
    ev->inorder   = (PetscBool)!counts.moved;
    for (int c = 0; c < EVCHYB_CLASSES; c++) ev->ell.classes[c] = (PetscInt)counts.classes[c];
    *fits = true;
  }
  PetscCall(GallopDeviceRelease(bytes, base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBBuild_Device(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  EVCHYB      *ev;
  bool         fits;
  PetscCount  *i, *splitblk;
  PetscInt    *splitrow;
  int          device;
  void        *base;
  cudaStream_t stream;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscNew(&ev));
  ev->memtype  = PETSC_MEMTYPE_CUDA;
  ev->m        = csr->m;
  ev->n        = csr->n;
  ev->nz       = csr->nz;
  ev->options  = EVCHYBOptionsFor((const EVCHYBOptions *)opts, csr);
  ev->maxbytes = maxbytes;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&ev->processors, cudaDevAttrMultiProcessorCount, device));
  PetscCall(SortRows(ev, csr, &fits, &i));
  if (!fits) {
    PetscCall(Free(ev));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* the plan is made on the host: it needs the lengths of long rows */
  PetscCallCUDA(GallopKernelOverlaps(FillKernel<true, FillWide>, &ev->overlaps));
  PetscCall(EVCHYBPlan(ev, i, &splitblk, &splitrow));
  PetscCall(PetscFree(i));

  const PetscInt   nsplit = ev->csr.nsplit;
  const PetscCount nparts = ev->csr.nparts;
  const size_t     bytes  = CarveEntries(ev, nsplit, nparts, NULL);

  base = NULL;
  if (ev->pack) ev->bytes += ev->pack->bytes;
  if (!maxbytes || ev->bytes + bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  if (base) {
    (void)CarveEntries(ev, nsplit, nparts, base);
    ev->bytes += bytes;
    if (nsplit) {
      PetscCallCUDA(cudaMemcpyAsync(ev->csr.splitblk, splitblk, (nsplit + 1) * sizeof(PetscCount), cudaMemcpyHostToDevice, stream));
      PetscCallCUDA(cudaMemcpyAsync(ev->csr.splitrow, splitrow, nparts * sizeof(PetscInt), cudaMemcpyHostToDevice, stream));
      PetscCallCUDA(cudaMemsetAsync(ev->csr.arrived, 0, nsplit * sizeof(int), stream));
      PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied is pageable and about to go */
    } else PetscCallCUDA(cudaMemsetAsync(ev->csr.splitblk, 0, sizeof(PetscCount), stream));
    PetscCall(Fill(ev, csr, true));
    *built = ev;
  } else PetscCall(Free(ev));
  PetscCall(PetscFree2(splitblk, splitrow));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBRefresh_Device(void *data, const GallopCSR *csr)
{
  EVCHYB   *ev   = (EVCHYB *)data;
  PetscBool fits = PETSC_TRUE;

  PetscFunctionBegin;
  if (ev->pack) PetscCall(EVCHYBRefreshPack(&EVCHYBDevice, csr, ev, &fits));
  if (fits) PetscCall(Fill(ev, csr, false));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename S>
static cudaError_t LaunchShape(const EVCHYB *ev, const EVCHYBLaunch *launch, const GallopVectors<PetscScalar> &v, cudaStream_t stream)
{
  const SubELL                        *ell = &ev->ell;
  const SubCSR                        *csr = &ev->csr;
  const EllView<PetscScalar, PetscInt> e   = {ell->bnz, ell->clen, ell->j, ell->as};
  const CsrView<PetscScalar, PetscInt> c   = {csr->i, csr->j, csr->as, csr->split, csr->splitblk, csr->splitrow, csr->partial, csr->arrived};

  return GallopLaunch(SpMV_EVCHYB_adaptive<S, PetscScalar, PetscInt>,
                      {launch->range[launch->n - 1].next, EVCHYB_THREADS, launch->range[0].kind == EVCHYB_RANGE_CLUSTER ? EVCHYB_CLUSTER : 1 /* its rows are the longest and come first */, 0, stream,
                       (bool)ev->overlaps},
                      *launch, e, c, ev->perm, v, ell->n, ell->n + csr->n, (bool)ev->fresh);
}

template <bool InOrder>
static cudaError_t Launch(const EVCHYB *ev, const EVCHYBLaunch *launch, const GallopVectors<PetscScalar> &v, cudaStream_t stream)
{
  if (ev->shape == EVCHYB_SHAPE_SHORT) return LaunchShape<Shape<4, 6, true, InOrder>>(ev, launch, v, stream);
  if (ev->shape == EVCHYB_SHAPE_LARGE) return LaunchShape<Shape<8, 5, false, InOrder>>(ev, launch, v, stream);
  return LaunchShape<Shape<8, 4, true, InOrder>>(ev, launch, v, stream);
}

template <GallopPackValues Kind>
static cudaError_t LaunchPackedAs(const EVCHYB *ev, const EVCHYBLaunch *launch, const GallopVectors<PetscScalar> &v, cudaStream_t stream)
{
  const SubCSR                        *csr = &ev->csr;
  const CsrView<PetscScalar, PetscInt> c   = {csr->i, csr->j, csr->as, csr->split, csr->splitblk, csr->splitrow, csr->partial, csr->arrived};

  return GallopLaunch(SpMV_EVCHYB_packed<PackedShape<Kind>, PetscScalar, PetscInt>, {launch->range[launch->n - 1].next, EVCHYB_THREADS, 1, 0, stream, (bool)ev->overlaps}, *launch, GallopPackViewOf(ev->pack),
                      ev->pack->nslice, ev->pack->npiece, csr->nparts, c, v, (bool)ev->fresh);
}

static cudaError_t LaunchPacked(const EVCHYB *ev, const EVCHYBLaunch *launch, const GallopVectors<PetscScalar> &v, cudaStream_t stream)
{
  if (ev->pack->figures.slots[GALLOP_PACK_DICT8]) return LaunchPackedAs<GALLOP_PACK_DICT8>(ev, launch, v, stream);
  if (ev->pack->figures.slots[GALLOP_PACK_DICT16]) return LaunchPackedAs<GALLOP_PACK_DICT16>(ev, launch, v, stream);
  return LaunchPackedAs<GALLOP_PACK_VALUE>(ev, launch, v, stream);
}

static PetscErrorCode EVCHYBApply_Device(void *data, const GallopProduct *p)
{
  EVCHYB                    *ev     = (EVCHYB *)data;
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  EVCHYBLaunch               launch = ev->launch;
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (EVCHYBLeavesRows(ev)) { /* mostly empty rows, not listed: z = beta y everywhere, then the kernel adds to it. Nothing to do in the off-diagonal block of an MPI product. */
    if (!v.readsy) PetscCallCUDA(cudaMemsetAsync(v.z, 0, ev->m * sizeof(PetscScalar), stream));
    else if (v.beta != PetscScalar(1)) {
      ScaleKernel<<<GallopBlocksFor(ev->m, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>((PetscCount)ev->m, v.beta, v.y, v.z);
      GallopCheckLaunch();
    } else if (v.y != v.z) PetscCallCUDA(cudaMemcpyAsync(v.z, v.y, ev->m * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
    v.y    = v.z;
    v.beta = PetscScalar(1);
  } else if (ev->nlisted && v.y == v.z && v.beta == PetscScalar(1)) launch.n--; /* empty rows come last, and keep what they have */
  if (launch.n) {
    PetscCallCUDA(ev->pack ? LaunchPacked(ev, &launch, v, stream) : ev->inorder ? Launch<true>(ev, &launch, v, stream) : Launch<false>(ev, &launch, v, stream));
    PetscCallCUDA(GallopNotFresh(stream, &ev->fresh));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork EVCHYBDevice = {EVCHYBBuild_Device, EVCHYBRefresh_Device, EVCHYBApply_Device, EVCHYBDestroy_Device, NULL, NULL};
