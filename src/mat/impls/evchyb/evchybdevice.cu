/* EVCHYB on the GPU: building it from CSR, renewing its values, and the one kernel of its product */

#include <gallop/cudaimpl.h>
#include <cub/cub.cuh>
#include "evchyb.h"

static constexpr int WarpsInBlock = EVCHYB_THREADS / WarpSize;
static_assert(EVCHYB_BLOCK == WarpSize, "a warp computes a column block");

/* ---------------------------------------------------------------- device helpers */

/* Matrix data is read once a product: it should not push x out of the caches */
template <typename T>
static __device__ __forceinline__ T LoadOnce(const T *p)
{
  return *p;
}
template <>
__device__ __forceinline__ double LoadOnce(const double *p)
{
  return __ldcs(p);
}
template <>
__device__ __forceinline__ float LoadOnce(const float *p)
{
  return __ldcs(p);
}
template <>
__device__ __forceinline__ int LoadOnce(const int *p)
{
  return __ldcs(p);
}
template <>
__device__ __forceinline__ long long LoadOnce(const long long *p)
{
  return __ldcs(p);
}

/* Shuffles any type word by word */
template <typename T>
static __device__ __forceinline__ T ShuffleDown(T value, int by, int width)
{
  static_assert(sizeof(T) % sizeof(int) == 0, "scalars are whole words");
  union
  {
    T   t;
    int word[sizeof(T) / sizeof(int)];
  } u = {value};

#pragma unroll
  for (int k = 0; k < (int)(sizeof(T) / sizeof(int)); k++) u.word[k] = __shfl_down_sync(0xffffffffu, u.word[k], by, width);
  return u.t;
}

template <typename V>
static __device__ __forceinline__ V GroupSum(V sum, int width)
{
  for (int by = width / 2; by > 0; by /= 2) sum += ShuffleDown(sum, by, width);
  return sum;
}

/* What other blocks wrote in this launch is in L2, not in L1 */
template <typename T>
static __device__ __forceinline__ T LoadFromL2(const T *p)
{
  static_assert(sizeof(T) % sizeof(int) == 0, "scalars are whole words");
  union
  {
    T   t;
    int word[sizeof(T) / sizeof(int)];
  } u = {T()};

#pragma unroll
  for (int k = 0; k < (int)(sizeof(T) / sizeof(int)); k++) u.word[k] = __ldcg((const int *)p + k);
  return u.t;
}

template <typename V>
struct Vectors {
  V        alpha, beta;
  const V *x, *y;
  V       *z;
  bool     readsy;
};

template <typename V>
static __device__ __forceinline__ void Store(const Vectors<V> &v, PetscInt row, V sum)
{
  v.z[row] = v.readsy ? v.alpha * sum + v.beta * v.y[row] : v.alpha * sum;
}

/* Sum over n entries of j and as that lie step apart: Unroll of them in flight. Padding has a negative column. */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ V Gather(const I *__restrict__ j, const V *__restrict__ as, int n, int step, const V *__restrict__ x)
{
  V   sum = V(0);
  int k   = 0;

  for (; k + Unroll <= n; k += Unroll) {
    I c[Unroll];
    V a[Unroll];

#pragma unroll
    for (int u = 0; u < Unroll; u++) {
      c[u] = LoadOnce(j + u * step);
      a[u] = LoadOnce(as + u * step);
    }
#pragma unroll
    for (int u = 0; u < Unroll; u++)
      if (c[u] >= 0) sum += a[u] * __ldg(x + c[u]);
    j += Unroll * step;
    as += Unroll * step;
  }
  if (k < n) {
    I c[Unroll - 1];
    V a[Unroll - 1];

#pragma unroll
    for (int u = 0; u < Unroll - 1; u++) {
      c[u] = k + u < n ? LoadOnce(j + u * step) : I(-1);
      a[u] = k + u < n ? LoadOnce(as + u * step) : V(0);
    }
#pragma unroll
    for (int u = 0; u < Unroll - 1; u++)
      if (c[u] >= 0) sum += a[u] * __ldg(x + c[u]);
  }
  return sum;
}

/* The entries of begin, begin + step, ... before end */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ V GatherRange(const I *__restrict__ j, const V *__restrict__ as, PetscCount begin, PetscCount end, int step, const V *__restrict__ x)
{
  return begin < end ? Gather<Unroll, V, I>(j + begin, as + begin, (int)((end - begin + step - 1) / step), step, x) : V(0);
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
  PetscInt          nsplit, split;
  const PetscCount *splitblk;
  V                *partial;
  int              *arrived;
};

/* Listing 1 of the paper: a lane computes one or several rows */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_adaptive(const EllView<V, I> &ell, const I *__restrict__ perm, const Vectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int rows = range.count, lane = threadIdx.x % WarpSize;
  PetscInt  b    = range.first + (PetscInt)block * rows * WarpsInBlock + threadIdx.x / WarpSize;

  for (int r = 0; r < rows && b < range.end; r++, b += WarpsInBlock) {
    const PetscInt   row   = perm[(PetscCount)b * EVCHYB_BLOCK + lane];
    const PetscCount first = ell.bnz[b] + lane;

    Store(v, row, Gather<Unroll, V, I>(ell.j + first, ell.as + first, (int)ell.clen[b], EVCHYB_BLOCK, v.x));
  }
}

/* Beyond the paper: several warps share a column block, each every so many columns */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_shared(const EllView<V, I> &ell, const I *__restrict__ perm, const Vectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int      warps = range.count, lane = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize, part = warp % warps;
  const PetscInt b   = range.first + (PetscInt)block * (WarpsInBlock / warps) + warp / warps;
  PetscInt       row = 0;
  V              sum = V(0);
  __shared__ V   sums[EVCHYB_THREADS];

  if (b < range.end) {
    const PetscCount first = ell.bnz[b] + part * EVCHYB_BLOCK + lane;

    row = perm[(PetscCount)b * EVCHYB_BLOCK + lane];
    sum = Gather<Unroll, V, I>(ell.j + first, ell.as + first, ((int)ell.clen[b] - part + warps - 1) / warps, warps * EVCHYB_BLOCK, v.x);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (b < range.end && part == 0) {
    for (int w = 1; w < warps; w++) sum += sums[threadIdx.x + w * WarpSize];
    Store(v, row, sum);
  }
}

/* The sum of a GPU block's threads, by groups of whole warps; valid in the first thread of each group */
template <typename V>
static __device__ __forceinline__ V WarpsSum(V sum, int threads)
{
  __shared__ V sums[WarpsInBlock];
  const int    warp = threadIdx.x / WarpSize, inwarp = threads / WarpSize;

  sum = GroupSum(sum, WarpSize);
  __syncthreads();
  if (threadIdx.x % WarpSize == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x % threads == 0)
    for (int w = 1; w < inwarp; w++) sum += sums[warp + w];
  return sum;
}

/* A row that several GPU blocks compute: each leaves its part, the last to arrive adds them in order, so that the result is the same in every run */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_split(const CsrView<V, I> &csr, const I *__restrict__ perm, const Vectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  PetscInt lo = 0, hi = csr.nsplit - 1;

  while (lo < hi) { /* the row that the block belongs to */
    const PetscInt mid = (lo + hi + 1) / 2;

    if (csr.splitblk[mid] <= block) lo = mid;
    else hi = mid - 1;
  }
  const PetscCount firstblk = csr.splitblk[lo], blocks = csr.splitblk[lo + 1] - firstblk;
  const PetscInt   r     = range.first + lo;
  const PetscCount begin = csr.i[r] + (block - firstblk) * csr.split, stop = csr.i[r + 1];
  V                sum = GatherRange<Unroll, V, I>(csr.j, csr.as, begin + threadIdx.x, begin + csr.split < stop ? begin + csr.split : stop, EVCHYB_THREADS, v.x);
  __shared__ bool  last;

  sum = WarpsSum(sum, EVCHYB_THREADS);
  if (threadIdx.x == 0) {
    csr.partial[block] = sum;
    __threadfence();
    last = atomicAdd(csr.arrived + lo, 1) == (int)(blocks - 1);
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = V(0);
  for (PetscCount b = threadIdx.x; b < blocks; b += EVCHYB_THREADS) sum += LoadFromL2(csr.partial + firstblk + b);
  sum = WarpsSum(sum, EVCHYB_THREADS);
  if (threadIdx.x == 0) {
    csr.arrived[lo] = 0; /* for the next product */
    Store(v, perm[r], sum);
  }
}

/* Listing 2 of the paper: TPR threads a row */
template <int Unroll, typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_adaptiveTPR(const CsrView<V, I> &csr, const I *__restrict__ perm, const Vectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  const int      tpr    = range.count, lane = threadIdx.x % tpr;
  const PetscInt r      = range.first + (PetscInt)block * (EVCHYB_THREADS / tpr) + threadIdx.x / tpr;
  const bool     inside = r < range.end;
  V              sum    = V(0);

  if (inside) sum = GatherRange<Unroll, V, I>(csr.j, csr.as, csr.i[r] + lane, csr.i[r + 1], tpr, v.x);
  sum = tpr <= WarpSize ? GroupSum(sum, tpr) : WarpsSum(sum, tpr);
  if (inside && lane == 0) Store(v, perm[r], sum);
}

/* Rows without entries: z = beta y */
template <typename V>
static __device__ __forceinline__ void ScaleEmpty(const PetscInt *__restrict__ perm, const Vectors<V> &v, const EVCHYBRange &range, unsigned int block)
{
  for (int k = 0; k < 4; k++) {
    const PetscInt r = range.first + ((PetscInt)block * 4 + k) * EVCHYB_THREADS + threadIdx.x;

    if (r < range.end) Store(v, perm[r], V(0));
  }
}

/* Algorithm 1 of the paper: the number of a GPU block decides what it computes */
template <int Unroll, int MinBlocks, typename V, typename I>
__global__ static void __launch_bounds__(EVCHYB_THREADS, MinBlocks) SpMV_EVCHYB_adaptive(const __grid_constant__ EVCHYBLaunch launch, const EllView<V, I> ell, const CsrView<V, I> csr, const I *__restrict__ perm, const Vectors<V> v, const PetscInt ellrows, const PetscInt rows)
{
  int k = 0;

  while (blockIdx.x >= launch.range[k].next) k++;
  const EVCHYBRange &range = launch.range[k];
  const unsigned int block = blockIdx.x - range.begin;

  switch (range.kind) {
  case EVCHYB_RANGE_ELL:
    SpMV_ELL_adaptive<Unroll, V, I>(ell, perm, v, range, block);
    break;
  case EVCHYB_RANGE_SHARED:
    SpMV_ELL_shared<Unroll, V, I>(ell, perm, v, range, block);
    break;
  case EVCHYB_RANGE_CSR:
    SpMV_CSR_adaptiveTPR<Unroll, V, I>(csr, perm + ellrows, v, range, block);
    break;
  case EVCHYB_RANGE_SPLIT:
    SpMV_CSR_split<Unroll, V, I>(csr, perm + ellrows, v, range, block);
    break;
  default:
    ScaleEmpty<V>(perm + rows, v, range, block);
  }
}

template <typename V>
__global__ static void ScaleKernel(PetscCount n, V beta, const V *y, V *z)
{
  for (PetscCount k = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x; k < n; k += (PetscCount)gridDim.x * blockDim.x) z[k] = beta * y[k];
}

/* ---------------------------------------------------------------- building */

static unsigned int GridFor(PetscCount threads)
{
  return (unsigned int)((threads + EVCHYB_THREADS - 1) / EVCHYB_THREADS);
}

/* What the kernels of the build count for the host */
struct Counts {
  unsigned long long nempty, nlong, nzell, LCmax, classes[EVCHYB_CLASSES];
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

/* Column blocks to the order in which they are stored; their entries for the prefix sum */
__global__ static void OrderKernel(PetscInt nb, const PetscInt *order, const PetscInt *__restrict__ oldperm, const PetscInt *__restrict__ oldclen, PetscInt *perm, PetscInt *clen, PetscCount *bnz)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (warp < nb) {
    const PetscCount from = order[warp];

    perm[warp * EVCHYB_BLOCK + lane] = oldperm[from * EVCHYB_BLOCK + lane];
    if (lane == 0) {
      clen[warp] = oldclen[from];
      bnz[warp]  = (PetscCount)oldclen[from] * EVCHYB_BLOCK;
    }
  }
}

static constexpr int FillChunk = 512; /* entries of SubCSR that a warp copies: a row may have many more */

/* j and as, or only as: a lane copies a row of a column block, a warp a piece of SubCSR */
template <bool Pattern>
__global__ static void __launch_bounds__(EVCHYB_THREADS) FillKernel(const SubELL ell, const SubCSR csr, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (warp < ell.nb) {
    const PetscInt   row = perm[warp * EVCHYB_BLOCK + lane], all = ell.clen[warp];
    const PetscCount from = i[row], to = ell.bnz[warp] + lane;
    const PetscInt   len = (PetscInt)(i[row + 1] - from);

#pragma unroll 4
    for (PetscInt k = 0; k < all; k++) {
      const PetscCount at = to + (PetscCount)k * EVCHYB_BLOCK;

      if (Pattern) ell.j[at] = k < len ? j[from + k] : -1;
      if (Pattern || k < len) ell.as[at] = k < len ? a[from + k] : PetscScalar(0);
    }
  } else {
    const PetscCount begin = (warp - ell.nb) * FillChunk, end = begin + FillChunk < csr.nz ? begin + FillChunk : csr.nz;
    PetscInt         lo = 0, hi = csr.n - 1;

    while (lo < hi) { /* the row that begin lies in */
      const PetscInt mid = (lo + hi + 1) / 2;

      if (csr.i[mid] <= begin) lo = mid;
      else hi = mid - 1;
    }
    for (PetscCount at = begin; at < end;) {
      const PetscInt   row  = perm[(PetscCount)ell.nb * EVCHYB_BLOCK + lo];
      const PetscCount base = csr.i[lo], from = i[row], len = i[row + 1] - from, stop = csr.i[lo + 1] < end ? csr.i[lo + 1] : end;

#pragma unroll 4
      for (PetscCount k = at - base + lane; k < stop - base; k += WarpSize) {
        if (Pattern) csr.j[base + k] = k < len ? j[from + k] : -1;
        if (Pattern || k < len) csr.as[base + k] = k < len ? a[from + k] : PetscScalar(0);
      }
      at = stop;
      lo++;
    }
  }
}

static PetscErrorCode Fill(EVCHYB *ev, const GallopCSR *csr, bool pattern)
{
  const PetscCount warps = (PetscCount)ev->ell.nb + (ev->csr.nz + FillChunk - 1) / FillChunk;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (pattern) FillKernel<true><<<GridFor(warps * WarpSize), EVCHYB_THREADS, 0, stream>>>(ev->ell, ev->csr, ev->perm, csr->i, csr->j, csr->a);
  else FillKernel<false><<<GridFor(warps * WarpSize), EVCHYB_THREADS, 0, stream>>>(ev->ell, ev->csr, ev->perm, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts of one allocation, each aligned as cudaMalloc() aligns */
class Carver {
public:
  explicit Carver(void *base) : base_(static_cast<char *>(base)) { }
  template <typename T>
  void Take(T *&ptr, PetscCount n)
  {
    ptr = base_ ? reinterpret_cast<T *>(base_ + bytes_) : nullptr;
    bytes_ += (((size_t)n * sizeof(T)) + 255) / 256 * 256;
  }
  size_t Bytes() const { return bytes_; }

private:
  char  *base_;
  size_t bytes_ = 0;
};

/* Runs twice: with a null base it measures, then it hands out */
static size_t CarveEntries(EVCHYB *ev, PetscInt nsplit, PetscCount nparts, void *base)
{
  Carver carver(base);

  carver.Take(ev->ell.j, ev->ell.nz);
  carver.Take(ev->ell.as, ev->ell.nz);
  carver.Take(ev->csr.j, ev->csr.nz);
  carver.Take(ev->csr.as, ev->csr.nz);
  carver.Take(ev->csr.splitblk, nsplit + 1);
  carver.Take(ev->csr.partial, nparts);
  carver.Take(ev->csr.arrived, nsplit);
  return carver.Bytes();
}

static size_t CarveRows(EVCHYB *ev, PetscInt nrows, PetscInt nb, PetscInt ncsr, void *base)
{
  Carver carver(base);

  carver.Take(ev->perm, nrows);
  carver.Take(ev->ell.bnz, nb + 1);
  carver.Take(ev->ell.clen, nb);
  carver.Take(ev->csr.i, ncsr + 1);
  return carver.Bytes();
}

/* What sorting needs and nothing else. What column blocks are sorted by takes the place of what rows were sorted by. */
struct Workspace {
  uint64_t *keys, *sortedkeys;
  PetscInt *rows, *sortedrows, *clen, *order;
  Counts   *counts;
  char     *cub;
  size_t    cubbytes;
};

static size_t CarveWorkspace(Workspace *w, PetscInt m, void *base)
{
  const PetscInt nb = m / EVCHYB_BLOCK;
  Carver         carver(base);

  carver.Take(w->keys, m);
  carver.Take(w->sortedkeys, m);
  carver.Take(w->rows, m);
  carver.Take(w->sortedrows, m);
  carver.Take(w->clen, nb);
  carver.Take(w->order, nb);
  carver.Take(w->counts, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* The two allocations of a built format begin at perm and at ell.j */
PetscErrorCode EVCHYBDestroy_Device(EVCHYB **ev)
{
  PetscFunctionBegin;
  if (!*ev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFree((*ev)->perm));
  PetscCall(GallopDeviceFree((*ev)->ell.j));
  PetscCall(PetscFree(*ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the rows and measures both parts: all that comes before the entries. *fits is false when the GPU has no room. */
static PetscErrorCode SortRows(EVCHYB *ev, const EVCHYBOptions *options, const GallopCSR *csr, bool *fits)
{
  const PetscInt m = csr->m;
  Workspace      w = {};
  Counts         counts;
  EVCHYBKeyShape shape;
  cudaStream_t   stream;
  size_t         sortbytes = 0, scanbytes = 0;
  void          *base, *rows;

  PetscFunctionBegin;
  *fits = false;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  EVCHYBGetKeyShape(options, m, csr->n, &shape);
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, sortbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, m, 0, shape.classbit + 2, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, scanbytes, ev->csr.i, ev->csr.i, (PetscCount)m + 1, stream));
  w.cubbytes = PetscMax(sortbytes, scanbytes);
  PetscCall(GallopDeviceMalloc(CarveWorkspace(&w, m, NULL), &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveWorkspace(&w, m, base);

  PetscCallCUDA(cudaMemsetAsync(w.counts, 0, sizeof(*w.counts), stream));
  KeysKernel<<<GridFor(m), EVCHYB_THREADS, 0, stream>>>(m, csr->i, csr->j, shape, w.keys, w.rows, w.counts);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, m, 0, shape.classbit + 2, stream));
  PetscCall(GallopDeviceCopyOut(&counts, w.counts, sizeof(counts)));
  EVCHYBSplit(options, (PetscInt)counts.nempty, m - (PetscInt)counts.nempty - (PetscInt)counts.nlong, (PetscInt)counts.nlong, ev);

  const PetscInt nb = ev->ell.nb, ncsr = ev->csr.n, nrows = m - ev->nempty, *sorted = w.sortedrows + ev->nempty;

  PetscCall(GallopDeviceMalloc(CarveRows(ev, nrows + ev->nlisted, nb, ncsr, NULL), &rows));
  if (rows) {
    ev->bytes += CarveRows(ev, nrows + ev->nlisted, nb, ncsr, rows);
    /* one count too many, so that the exclusive sums end with the totals */
    PetscCallCUDA(cudaMemsetAsync(ev->ell.bnz + nb, 0, sizeof(PetscCount), stream));
    PetscCallCUDA(cudaMemsetAsync(ev->csr.i + ncsr, 0, sizeof(PetscCount), stream));
    LengthsKernel<<<GridFor((PetscCount)nb * WarpSize + (ncsr + WarpSize - 1) / WarpSize * WarpSize), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, ev->byrow, csr->i, sorted, w.clen, w.keys, w.rows, ev->csr.i, w.counts);
    GallopCheckLaunch();
    if (nb) {
      PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.order, nb, 0, ev->byrow ? EVCHYB_ROWBITS + 5 : 5, stream));
      OrderKernel<<<GridFor((PetscCount)nb * WarpSize), EVCHYB_THREADS, 0, stream>>>(nb, w.order, sorted, w.clen, ev->perm, ev->ell.clen, ev->ell.bnz);
      GallopCheckLaunch();
    }
    PetscCallCUDA(cudaMemcpyAsync(ev->perm + ev->ell.n, sorted + ev->ell.n, ncsr * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    PetscCallCUDA(cudaMemcpyAsync(ev->perm + nrows, w.sortedrows, ev->nlisted * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w.cub, w.cubbytes, ev->ell.bnz, ev->ell.bnz, nb + 1, stream));
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w.cub, w.cubbytes, ev->csr.i, ev->csr.i, ncsr + 1, stream));
    PetscCall(GallopDeviceCopyOut(&counts, w.counts, sizeof(counts)));
    ev->nzell     = (PetscCount)counts.nzell;
    ev->ell.LCmax = (PetscInt)counts.LCmax;
    for (int c = 0; c < EVCHYB_CLASSES; c++) ev->ell.classes[c] = (PetscInt)counts.classes[c];
    *fits = true;
  }
  PetscCall(GallopDeviceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBBuild_Device(const EVCHYBOptions *options, const GallopCSR *csr, PetscCount maxbytes, EVCHYB **built)
{
  EVCHYB      *ev;
  bool         fits;
  PetscCount  *i, *splitblk;
  int          device, processors;
  void        *base;
  cudaStream_t stream;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscNew(&ev));
  ev->memtype = PETSC_MEMTYPE_CUDA;
  ev->m       = csr->m;
  ev->n       = csr->n;
  ev->nz      = csr->nz;
  PetscCall(SortRows(ev, options, csr, &fits));
  if (!fits) {
    PetscCall(EVCHYBDestroy_Device(&ev));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* the plan is made on the host: it needs the lengths of long rows */
  PetscCall(PetscMalloc1(ev->csr.n + 1, &i));
  PetscCall(GallopDeviceCopyOut(i, ev->csr.i, (ev->csr.n + 1) * sizeof(*i)));
  PetscCall(GallopDeviceCopyOut(&ev->ell.nz, ev->ell.bnz + ev->ell.nb, sizeof(ev->ell.nz)));
  ev->csr.nz = i[ev->csr.n];
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PetscCall(EVCHYBPlan(ev, i, processors, &splitblk));
  PetscCall(PetscFree(i));

  const PetscInt   nsplit = ev->csr.nsplit;
  const PetscCount nparts = splitblk[nsplit];
  const size_t     bytes  = CarveEntries(ev, nsplit, nparts, NULL);

  base = NULL;
  if (!maxbytes || ev->bytes + bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  if (base) {
    (void)CarveEntries(ev, nsplit, nparts, base);
    ev->bytes += bytes;
    PetscCallCUDA(cudaMemcpyAsync(ev->csr.splitblk, splitblk, (nsplit + 1) * sizeof(PetscCount), cudaMemcpyHostToDevice, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* splitblk is pageable and about to go */
    if (nsplit) PetscCallCUDA(cudaMemsetAsync(ev->csr.arrived, 0, nsplit * sizeof(int), stream));
    PetscCall(Fill(ev, csr, true));
    *built = ev;
  } else PetscCall(EVCHYBDestroy_Device(&ev));
  PetscCall(PetscFree(splitblk));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBRefresh_Device(EVCHYB *ev, const GallopCSR *csr)
{
  PetscFunctionBegin;
  PetscCall(Fill(ev, csr, false));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int Unroll, int MinBlocks>
static void LaunchShape(const EVCHYB *ev, const EVCHYBLaunch *launch, const Vectors<PetscScalar> &v, cudaStream_t stream)
{
  const SubELL                        *ell = &ev->ell;
  const SubCSR                        *csr = &ev->csr;
  const EllView<PetscScalar, PetscInt> e   = {ell->bnz, ell->clen, ell->j, ell->as};
  const CsrView<PetscScalar, PetscInt> c   = {csr->i, csr->j, csr->as, csr->nsplit, csr->split, csr->splitblk, csr->partial, csr->arrived};

  SpMV_EVCHYB_adaptive<Unroll, MinBlocks, PetscScalar, PetscInt><<<launch->range[launch->n - 1].next, EVCHYB_THREADS, 0, stream>>>(*launch, e, c, ev->perm, v, ell->n, ell->n + csr->n);
}

PetscErrorCode EVCHYBApply_Device(const EVCHYB *ev, const GallopProduct *p)
{
  Vectors<PetscScalar> v = {*p->alpha, *p->beta, p->x, p->y, p->z, *p->beta != PetscScalar(0)};
  EVCHYBLaunch         launch = ev->launch;
  cudaStream_t         stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (ev->nempty > ev->nlisted) { /* mostly empty rows, not listed: z = beta y everywhere, then the kernel adds to it. Nothing to do in the off-diagonal block of an MPI product. */
    if (!v.readsy) PetscCallCUDA(cudaMemsetAsync(v.z, 0, ev->m * sizeof(PetscScalar), stream));
    else if (v.beta != PetscScalar(1)) {
      ScaleKernel<<<GridFor(ev->m), EVCHYB_THREADS, 0, stream>>>((PetscCount)ev->m, v.beta, v.y, v.z);
      GallopCheckLaunch();
    } else if (v.y != v.z) PetscCallCUDA(cudaMemcpyAsync(v.z, v.y, ev->m * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
    v.y    = v.z;
    v.beta = PetscScalar(1);
  } else if (ev->nlisted && v.y == v.z && v.beta == PetscScalar(1)) launch.n--; /* empty rows come last, and keep what they have */
  if (launch.n) {
    if (ev->shape == EVCHYB_SHAPE_SHORT) LaunchShape<4, 6>(ev, &launch, v, stream);
    else if (ev->shape == EVCHYB_SHAPE_LARGE) LaunchShape<8, 5>(ev, &launch, v, stream);
    else LaunchShape<8, 4>(ev, &launch, v, stream);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
