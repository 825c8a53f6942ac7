/* EVCHYB on the GPU: building it from CSR, renewing its values, and the one kernel of its product */

#include <gallop/cudaimpl.h>
#include <cub/cub.cuh>
#include "evchyb.h"

/* Entries of x that a thread asks for before it uses the first: the bytes in flight that the memory of an H200 wants */
static constexpr int Unroll = 4;

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

/* Sum over entries k = first, first + step, ... < end of entry k of j and as, which lie stride apart: Unroll of them in flight */
template <typename V, typename I>
static __device__ __forceinline__ V Gather(const I *__restrict__ j, const V *__restrict__ as, PetscCount first, PetscCount end, int step, int stride, const V *__restrict__ x)
{
  V sum = V(0);

  for (PetscCount k = first; k < end; k += (PetscCount)step * Unroll) {
    I c[Unroll];
    V a[Unroll];

#pragma unroll
    for (int u = 0; u < Unroll; u++) {
      const PetscCount at = k + u * step;

      c[u] = at < end ? LoadOnce(j + at * stride) : I(-1);
      a[u] = at < end ? LoadOnce(as + at * stride) : V(0);
    }
#pragma unroll
    for (int u = 0; u < Unroll; u++)
      if (c[u] >= 0) sum += a[u] * __ldg(x + c[u]);
  }
  return sum;
}

static __device__ __forceinline__ int FindRowBlock(const EVCHYBMarks &marks, PetscCount block)
{
  int k = 0;

  while (block >= marks.gbmark[k + 1]) k++;
  return k;
}

/* ---------------------------------------------------------------- the product */

template <typename V, typename I>
struct EllView {
  const PetscCount *bnz;
  const I          *clen, *j;
  const V          *as;
  EVCHYBMarks       marks;
  int               warps;
};

template <typename V, typename I>
struct CsrView {
  const PetscCount *i;
  const I          *j;
  const V          *as;
  EVCHYBMarks       marks;
  PetscInt          nsplit, split;
  const PetscCount *splitblk;
  V                *partial;
  int              *arrived;
};

/* Listing 1 of the paper: a lane computes a row of a column block; Shared: several warps share each */
template <bool Shared, typename V, typename I>
static __device__ __forceinline__ void SpMV_ELL_adaptive(const EllView<V, I> &ell, const I *__restrict__ perm, const Vectors<V> &v, PetscCount block)
{
  const int      lane  = threadIdx.x % WarpSize, warp = threadIdx.x / WarpSize;
  const int      warps = Shared ? ell.warps : 1, groups = WarpsInBlock / warps, group = warp / warps, part = warp % warps;
  const int      k    = FindRowBlock(ell.marks, block);
  const PetscInt rows = ell.marks.threads[k], end = ell.marks.rmark[k + 1];
  PetscInt       b = ell.marks.rmark[k] + (PetscInt)(block - ell.marks.gbmark[k]) * rows * groups + group;

  for (PetscInt r = 0; r < rows; r++, b += groups) {
    const bool inside = b < end;
    PetscInt   row    = 0;
    V          sum    = V(0);

    if (inside) {
      const PetscCount first = ell.bnz[b] + lane;

      row = perm[(PetscCount)b * EVCHYB_BLOCK + lane];
      sum = Gather<V, I>(ell.j + first, ell.as + first, part, ell.clen[b], warps, EVCHYB_BLOCK, v.x);
    }
    if (Shared) {
      __shared__ V sums[EVCHYB_THREADS];

      __syncthreads(); /* the turn before has been read */
      sums[threadIdx.x] = sum;
      __syncthreads();
      if (part == 0)
        for (int w = 1; w < warps; w++) sum += sums[threadIdx.x + w * WarpSize];
    }
    if (inside && part == 0) Store(v, row, sum);
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
template <typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_split(const CsrView<V, I> &csr, const I *__restrict__ perm, const Vectors<V> &v, PetscInt firstrow, PetscCount block)
{
  PetscInt lo = 0, hi = csr.nsplit - 1;

  while (lo < hi) { /* the row that the block belongs to */
    const PetscInt mid = (lo + hi + 1) / 2;

    if (csr.splitblk[mid] <= block) lo = mid;
    else hi = mid - 1;
  }
  const PetscCount firstblk = csr.splitblk[lo], blocks = csr.splitblk[lo + 1] - firstblk;
  const PetscInt   r     = firstrow + lo;
  const PetscCount begin = csr.i[r] + (block - firstblk) * csr.split, stop = csr.i[r + 1];
  V                sum = Gather<V, I>(csr.j, csr.as, begin + threadIdx.x, begin + csr.split < stop ? begin + csr.split : stop, EVCHYB_THREADS, 1, v.x);
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
template <typename V, typename I>
static __device__ __forceinline__ void SpMV_CSR_adaptiveTPR(const CsrView<V, I> &csr, const I *__restrict__ perm, const Vectors<V> &v, PetscCount block)
{
  const int k   = FindRowBlock(csr.marks, block);
  const int tpr = (int)csr.marks.threads[k];

  block -= csr.marks.gbmark[k];
  if (!tpr) {
    SpMV_CSR_split(csr, perm, v, csr.marks.rmark[k], block);
    return;
  }
  const int      lane   = threadIdx.x % tpr;
  const PetscInt r      = csr.marks.rmark[k] + (PetscInt)(block * (EVCHYB_THREADS / tpr)) + threadIdx.x / tpr;
  const bool     inside = r < csr.marks.rmark[k + 1];
  V              sum    = V(0);

  if (inside) sum = Gather<V, I>(csr.j, csr.as, csr.i[r] + lane, csr.i[r + 1], tpr, 1, v.x);
  sum = tpr <= WarpSize ? GroupSum(sum, tpr) : WarpsSum(sum, tpr);
  if (inside && lane == 0) Store(v, perm[r], sum);
}

/* Algorithm 1 of the paper. Long rows come first: they take longest, and a GPU starts blocks in order. */
template <bool Shared, typename V, typename I>
__global__ static void __launch_bounds__(EVCHYB_THREADS) SpMV_EVCHYB_adaptive(const EllView<V, I> ell, const CsrView<V, I> csr, const I *__restrict__ perm, const Vectors<V> v, const PetscCount csrblocks, const PetscInt ellrows)
{
  if (blockIdx.x < csrblocks) SpMV_CSR_adaptiveTPR<V, I>(csr, perm + ellrows, v, blockIdx.x);
  else SpMV_ELL_adaptive<Shared, V, I>(ell, perm, v, blockIdx.x - csrblocks);
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

/* Keys of all rows, and how many are empty and long */
__global__ static void KeysKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, EVCHYBKeyShape shape, uint64_t *keys, PetscInt *rows, unsigned long long *count)
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
    if (empty) atomicAdd(count, (unsigned long long)empty);
    if (longer) atomicAdd(count + 1, (unsigned long long)longer);
  }
}

/* Lengths of the column blocks and of the rows of SubCSR, as counts of stored entries for the prefix sums; entries and longest column block of SubELL */
__global__ static void LengthsKernel(PetscInt nb, PetscInt ncsr, const PetscInt *__restrict__ i, const PetscInt *__restrict__ perm, PetscInt *clen, PetscCount *bnz, PetscCount *csri, unsigned long long *count)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

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
      clen[warp] = longest;
      bnz[warp]  = (PetscCount)longest * EVCHYB_BLOCK;
      atomicAdd(count, sum);
      atomicMax(count + 1, (unsigned long long)longest);
    }
  } else if (warp - nb < (ncsr + WarpSize - 1) / WarpSize) {
    const PetscCount r = (warp - nb) * WarpSize + lane;

    if (r < ncsr) {
      const PetscInt row = perm[(PetscCount)nb * EVCHYB_BLOCK + r];

      csri[r] = EVCHYBRoundUp(i[row + 1] - i[row]);
    }
  }
}

/* j and as, or only as: a lane copies a row of a column block, a warp a row of SubCSR */
template <bool Pattern>
__global__ static void __launch_bounds__(EVCHYB_THREADS) FillKernel(PetscInt nb, PetscInt ncsr, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const PetscInt *__restrict__ perm, const PetscCount *__restrict__ bnz, const PetscInt *__restrict__ clen, PetscInt *ellj, PetscScalar *ellas, const PetscCount *__restrict__ csri, PetscInt *csrj, PetscScalar *csras)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (warp < nb) {
    const PetscInt   row  = perm[warp * EVCHYB_BLOCK + lane], all = clen[warp];
    const PetscCount from = i[row], to = bnz[warp] + lane;
    const PetscInt   len = (PetscInt)(i[row + 1] - from);

    for (PetscInt k = 0; k < all; k++) {
      const PetscCount at = to + (PetscCount)k * EVCHYB_BLOCK;

      if (Pattern) ellj[at] = k < len ? j[from + k] : -1;
      if (Pattern || k < len) ellas[at] = k < len ? a[from + k] : PetscScalar(0);
    }
  } else if (warp - nb < ncsr) {
    const PetscCount r   = warp - nb;
    const PetscInt   row = perm[(PetscCount)nb * EVCHYB_BLOCK + r];
    const PetscCount from = i[row], to = csri[r], all = csri[r + 1] - to, len = i[row + 1] - from;

    for (PetscCount k = lane; k < all; k += WarpSize) {
      if (Pattern) csrj[to + k] = k < len ? j[from + k] : -1;
      if (Pattern || k < len) csras[to + k] = k < len ? a[from + k] : PetscScalar(0);
    }
  }
}

static PetscErrorCode Fill(EVCHYB *ev, const GallopCSR *csr, bool pattern)
{
  SubELL          *ell   = &ev->ell;
  SubCSR          *sub   = &ev->csr;
  const PetscCount warps = (PetscCount)ell->nb + sub->n;
  cudaStream_t     stream;

  PetscFunctionBegin;
  if (!warps) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (pattern) FillKernel<true><<<GridFor(warps * WarpSize), EVCHYB_THREADS, 0, stream>>>(ell->nb, sub->n, csr->i, csr->j, csr->a, ev->perm, ell->bnz, ell->clen, ell->j, ell->as, sub->i, sub->j, sub->as);
  else FillKernel<false><<<GridFor(warps * WarpSize), EVCHYB_THREADS, 0, stream>>>(ell->nb, sub->n, csr->i, csr->j, csr->a, ev->perm, ell->bnz, ell->clen, ell->j, ell->as, sub->i, sub->j, sub->as);
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

/* What sorting needs and nothing else */
typedef struct {
  uint64_t           *keys, *sortedkeys;
  PetscInt           *rows, *sortedrows;
  unsigned long long *count; /* [4] empty and long rows, entries and longest column block of SubELL */
  void               *cub;
  size_t              cubbytes;
} Workspace;

static size_t CarveWorkspace(Workspace *w, PetscInt m, void *base)
{
  Carver carver(base);
  char  *cub;

  carver.Take(w->keys, m);
  carver.Take(w->sortedkeys, m);
  carver.Take(w->rows, m);
  carver.Take(w->sortedrows, m);
  carver.Take(w->count, 4);
  carver.Take(cub, (PetscCount)w->cubbytes);
  w->cub = cub;
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
  const PetscInt     m = csr->m;
  Workspace          w = {};
  unsigned long long count[4];
  EVCHYBKeyShape     shape;
  cudaStream_t       stream;
  size_t             sortbytes = 0, scanbytes = 0;
  void              *base;

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

  PetscCallCUDA(cudaMemsetAsync(w.count, 0, 4 * sizeof(*w.count), stream));
  KeysKernel<<<GridFor(m), EVCHYB_THREADS, 0, stream>>>(m, csr->i, csr->j, shape, w.keys, w.rows, w.count);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w.cub, w.cubbytes, w.keys, w.sortedkeys, w.rows, w.sortedrows, m, 0, shape.classbit + 2, stream));
  PetscCall(GallopDeviceCopyOut(count, w.count, 2 * sizeof(*count)));
  EVCHYBSplit(options, (PetscInt)count[0], m - (PetscInt)count[0] - (PetscInt)count[1], (PetscInt)count[1], ev);

  void          *rows;
  const PetscInt nb = ev->ell.nb, ncsr = ev->csr.n, nrows = m - ev->nempty;

  PetscCall(GallopDeviceMalloc(CarveRows(ev, nrows, nb, ncsr, NULL), &rows));
  if (rows) {
    ev->bytes += CarveRows(ev, nrows, nb, ncsr, rows);
    PetscCallCUDA(cudaMemcpyAsync(ev->perm, w.sortedrows + ev->nempty, nrows * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    /* one count too many, so that the exclusive sums end with the totals */
    PetscCallCUDA(cudaMemsetAsync(ev->ell.bnz + nb, 0, sizeof(PetscCount), stream));
    PetscCallCUDA(cudaMemsetAsync(ev->csr.i + ncsr, 0, sizeof(PetscCount), stream));
    LengthsKernel<<<GridFor((PetscCount)nb * WarpSize + (ncsr + WarpSize - 1) / WarpSize * WarpSize), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, csr->i, ev->perm, ev->ell.clen, ev->ell.bnz, ev->csr.i, w.count + 2);
    GallopCheckLaunch();
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w.cub, w.cubbytes, ev->ell.bnz, ev->ell.bnz, nb + 1, stream));
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w.cub, w.cubbytes, ev->csr.i, ev->csr.i, ncsr + 1, stream));
    PetscCall(GallopDeviceCopyOut(count + 2, w.count + 2, 2 * sizeof(*count)));
    ev->nzell     = (PetscCount)count[2];
    ev->ell.LCmax = (PetscInt)count[3];
    *fits         = true;
  }
  PetscCall(GallopDeviceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBBuild_Device(const EVCHYBOptions *options, const GallopCSR *csr, PetscCount maxbytes, EVCHYB **built)
{
  EVCHYB      *ev;
  bool         fits;
  PetscInt    *clen = NULL;
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

  /* the plan is made on the host: it needs the lengths of long rows, and of column blocks only when threads compute several rows */
  PetscCall(PetscMalloc1(ev->csr.n + 1, &i));
  PetscCall(GallopDeviceCopyOut(i, ev->csr.i, (ev->csr.n + 1) * sizeof(*i)));
  PetscCall(GallopDeviceCopyOut(&ev->ell.nz, ev->ell.bnz + ev->ell.nb, sizeof(ev->ell.nz)));
  ev->csr.nz = i[ev->csr.n];
  if (options->rowsmax > 1 && !options->window) {
    PetscCall(PetscMalloc1(ev->ell.nb, &clen));
    PetscCall(GallopDeviceCopyOut(clen, ev->ell.clen, ev->ell.nb * sizeof(*clen)));
  }
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PetscCall(EVCHYBPlan(ev, clen, i, processors, &splitblk));
  PetscCall(PetscFree(clen));
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

PetscErrorCode EVCHYBApply_Device(const EVCHYB *ev, const GallopProduct *p)
{
  const SubELL        *ell = &ev->ell;
  const SubCSR        *csr = &ev->csr;
  Vectors<PetscScalar> v   = {*p->alpha, *p->beta, p->x, p->y, p->z, *p->beta != PetscScalar(0)};
  const PetscCount     blocks = csr->gpublks + ell->gpublks;
  cudaStream_t         stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (ev->nempty) { /* empty rows are in no list: z = beta y everywhere, then the kernel adds to it */
    if (!v.readsy) PetscCallCUDA(cudaMemsetAsync(v.z, 0, ev->m * sizeof(PetscScalar), stream));
    else if (v.beta != PetscScalar(1)) {
      ScaleKernel<<<GridFor(ev->m), EVCHYB_THREADS, 0, stream>>>((PetscCount)ev->m, v.beta, v.y, v.z);
      GallopCheckLaunch();
    } else if (v.y != v.z) PetscCallCUDA(cudaMemcpyAsync(v.z, v.y, ev->m * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
    v.y    = v.z;
    v.beta = PetscScalar(1);
  }
  if (blocks) {
    const EllView<PetscScalar, PetscInt> e = {ell->bnz, ell->clen, ell->j, ell->as, ell->marks, (int)ell->warps};
    const CsrView<PetscScalar, PetscInt> c = {csr->i, csr->j, csr->as, csr->marks, csr->nsplit, ev->options.split, csr->splitblk, csr->partial, csr->arrived};

    if (ell->warps > 1) SpMV_EVCHYB_adaptive<true><<<(unsigned int)blocks, EVCHYB_THREADS, 0, stream>>>(e, c, (const PetscInt *)ev->perm, v, csr->gpublks, ell->n);
    else SpMV_EVCHYB_adaptive<false><<<(unsigned int)blocks, EVCHYB_THREADS, 0, stream>>>(e, c, (const PetscInt *)ev->perm, v, csr->gpublks, ell->n);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
