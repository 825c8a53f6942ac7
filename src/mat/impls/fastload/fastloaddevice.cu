/* FASTLOAD on the GPU: building it from CSR, renewing its values, and its product */

#include <gallop/cudaimpl.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include "fastload.h"

static constexpr int          Threads = 256;         /* of a GPU block */
static constexpr unsigned int All     = 0xffffffffu; /* lanes of a warp */
static_assert(FASTLOAD_LENGTH == WarpSize, "a lane has one column of a block");

using Key = cuda::std::conditional_t<sizeof(PetscInt) == 8, unsigned long long, unsigned int>; /* what CUB sorts by, and what a PetscInt is counted in */

static unsigned int GridFor(PetscCount threads)
{
  return (unsigned int)((threads + Threads - 1) / Threads);
}

static __device__ __forceinline__ PetscCount GlobalThread()
{
  return blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;
}

/* The value of the lane before, of any integer type */
template <typename I>
static __device__ __forceinline__ I ShuffleUp(I value)
{
  return __shfl_up_sync(All, value, 1);
}

/* ---- the product ---- */

template <typename V, typename I>
struct FastLoadArrays {
  PetscInt             blkNum;
  const PetscCount    *blkPtr;
  const I             *blkColIdx, *rowIdx;
  const unsigned char *blkLength, *blkClass;
  const unsigned int  *rowShared;
  const V             *value, *sortedX;
};

/* The parts of a complex number one after the other: who reads z later sees both */
template <typename R, typename V>
static __device__ __forceinline__ void AtomicAdd(V *to, const V &value)
{
  const R *const from = reinterpret_cast<const R *>(&value);

#pragma unroll
  for (int k = 0; k < (int)(sizeof(V) / sizeof(R)); k++) atomicAdd(reinterpret_cast<R *>(to) + k, from[k]);
}

template <typename R, typename V>
static __device__ __forceinline__ void Add(V *z, PetscInt row, const V &value, bool atomically)
{
  if (atomically) AtomicAdd<R>(z + row, value);
  else z[row] += value;
}

/* Lane l's sum and those of the lanes behind it in its run of equal rows; *first tells whether the run begins here */
template <typename V, typename I>
static __device__ __forceinline__ V SegmentSum(V sum, I row, int lane, bool *first)
{
  const I            before = ShuffleUp(row);
  const unsigned int heads  = __ballot_sync(All, lane == 0 || row != before);
  const unsigned int behind = lane == WarpSize - 1 ? 0 : heads >> (lane + 1);
  const int          end    = behind ? lane + __ffs(behind) : WarpSize;

  *first = heads >> lane & 1;
#pragma unroll
  for (int by = 1; by < WarpSize; by *= 2) {
    const V other = GallopShuffleDown(sum, by, WarpSize);

    if (lane + by < end) sum += other;
  }
  return sum;
}

/* Algorithm 2 of the paper: a warp computes a block. z has beta y already. */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(Threads) FastLoadKernel(const FastLoadArrays<V, I> fl, const V alpha, V *z)
{
  const PetscCount b    = GlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (b >= fl.blkNum) return; /* a whole warp */

  const int        length = fl.blkLength[b], kind = fl.blkClass[b] & ~FASTLOAD_SHARED;
  const bool       inside = lane < length, shared = fl.blkClass[b] & FASTLOAD_SHARED;
  const PetscCount end = fl.blkPtr[b + 1];
  const V          x   = inside ? fl.sortedX[fl.blkColIdx[b] + lane] : V(0);

  for (PetscCount k = fl.blkPtr[b] + lane; k - lane < end; k += length) {
    /* lanes without a column do as if they had a row of their own, where nothing is added */
    const I row  = inside ? GallopLoadOnce(fl.rowIdx + k) : I(-1);
    bool    adds = inside;
    V       sum  = inside ? GallopLoadOnce(fl.value + k) * x : V(0);

    if (kind == FASTLOAD_ONE_ROW) {
      sum  = GallopGroupSum(sum, WarpSize);
      adds = lane == 0;
    } else if (kind == FASTLOAD_RUNS) {
      bool first;

      sum  = SegmentSum(sum, row, lane, &first);
      adds = inside && first;
    }
    if (adds) Add<R>(z, row, alpha * sum, shared && fl.rowShared[k / 32] >> (k % 32) & 1);
    __syncwarp(); /* another lane may go on with this row in the next line */
  }
}

/* sortedX, and z = beta y where the product adds to something else than z as it is: one pass over both vectors */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) VectorsKernel(PetscInt ncols, const I *__restrict__ perm, V *sortedX, PetscInt m, const GallopVectors<V> v)
{
  const PetscCount k = GlobalThread();

  if (k < ncols) sortedX[k] = GallopLoadReadOnly(v.x + perm[k]);
  if (k < m) v.z[k] = v.readsy ? v.beta * v.y[k] : V(0);
}

/* ---- build ---- */

__global__ static void CountKernel(PetscCount nz, const PetscInt *__restrict__ j, Key *count)
{
  const PetscCount k = GlobalThread();

  if (k < nz) atomicAdd(&count[j[k]], (Key)1);
}

__global__ static void NumberKernel(PetscCount n, PetscInt *number)
{
  const PetscCount k = GlobalThread();

  if (k < n) number[k] = (PetscInt)k;
}

/* Whether a step begins at each sorted column; the number of empty columns goes to flag[n + 1] */
__global__ static void FlagKernel(PetscInt n, const Key *__restrict__ sorted, PetscInt *flag)
{
  const PetscCount s = GlobalThread();

  if (s < n) {
    const Key before = s ? sorted[s - 1] : 0;

    flag[s] = sorted[s] != before;
    if (sorted[s] && !before) flag[n + 1] = (PetscInt)s;
  } else if (s == n) flag[n] = 0; /* one too many, so that the exclusive sum ends with the total */
}

/* The first column and the last entry of each step, and where each column of the matrix went */
__global__ static void StepsKernel(PetscInt n, const Key *__restrict__ sorted, const PetscInt *__restrict__ cols, const PetscInt *__restrict__ step, PetscInt *start, PetscInt *top, PetscInt *rank)
{
  const PetscCount s = GlobalThread();

  if (s >= n) return;
  const PetscInt nempty = step[n + 1], t = step[s];

  if (step[s + 1] > t) {
    start[t] = (PetscInt)s - nempty;
    top[t]   = (PetscInt)sorted[s];
  }
  if (s >= nempty) rank[cols[s]] = (PetscInt)s - nempty;
}

__global__ static void RankKernel(PetscCount nz, const PetscInt *__restrict__ j, const PetscInt *__restrict__ rank, Key *key)
{
  const PetscCount k = GlobalThread();

  if (k < nz) key[k] = (Key)rank[j[k]];
}

/* Entries of sorted columns, in each by rows, to their places; begin is where a column begins among them */
__global__ static void PlaceKernel(PetscCount nz, PetscInt m, const PetscInt *__restrict__ i, const Key *__restrict__ cols, const PetscInt *__restrict__ entries, const Key *__restrict__ begin, PetscInt num, const FastLoadStep *__restrict__ steps, PetscInt ncols, PetscInt *rowIdx, PetscInt *csrIdx)
{
  const PetscCount e = GlobalThread();

  if (e >= nz) return;
  const PetscInt   col = (PetscInt)cols[e], entry = entries[e];
  const PetscCount at = FastLoadPosition(num, steps, ncols, FASTLOAD_LENGTH, col, (PetscInt)(e - (PetscCount)begin[col]));
  PetscInt         lo = 0, hi = m - 1;

  while (lo < hi) { /* the row that the entry is in */
    const PetscInt mid = hi - (hi - lo) / 2;

    if (i[mid] <= entry) lo = mid;
    else hi = mid - 1;
  }
  rowIdx[at] = lo;
  csrIdx[at] = entry;
}

__global__ static void BlocksKernel(PetscInt num, const FastLoadStep *__restrict__ steps, const FastLoad fl)
{
  const PetscCount b = GlobalThread();

  if (b < fl.blkNum) {
    const FastLoadBlock block = FastLoadGetBlock(num, steps, fl.ncols, FASTLOAD_LENGTH, fl.options.height, (PetscInt)b);

    fl.blkPtr[b]    = block.ptr;
    fl.blkColIdx[b] = block.colidx;
    fl.blkHeight[b] = block.height;
    fl.blkLength[b] = (unsigned char)block.length;
  } else if (b == fl.blkNum) fl.blkPtr[b] = fl.nz;
}

/* A warp a block: each row gets one of the blocks that have entries of it. Which one does not matter: a row in several blocks differs from all but one of them. */
__global__ static void OwnerKernel(const FastLoad fl, PetscInt *owner)
{
  const PetscCount b = GlobalThread() / WarpSize;

  if (b >= fl.blkNum) return;
  for (PetscCount k = fl.blkPtr[b] + threadIdx.x % WarpSize; k < fl.blkPtr[b + 1]; k += WarpSize)
    cuda::atomic_ref<PetscInt, cuda::thread_scope_device>(owner[fl.rowIdx[k]]).store((PetscInt)b, cuda::memory_order_relaxed);
}

/* A warp a block: its class, and the rows that are in another block too or stand apart in a line */
__global__ static void ClassKernel(const FastLoad fl, const PetscInt *__restrict__ owner, int *apart)
{
  const PetscCount b      = GlobalThread() / WarpSize;
  const int        lane   = threadIdx.x % WarpSize;
  bool             onerow = true, distinct = true;

  if (b >= fl.blkNum) return;
  const int        length = fl.blkLength[b];
  const bool       inside = lane < length;
  const PetscCount end    = fl.blkPtr[b + 1];

  for (PetscCount k = fl.blkPtr[b] + lane; k - lane < end; k += length) {
    const PetscInt     row    = inside ? fl.rowIdx[k] : -1 - lane; /* lanes without a column differ from all others */
    const PetscInt     before = ShuffleUp(row);
    const unsigned int peers = __match_any_sync(All, (unsigned long long)row), run = peers >> (__ffs(peers) - 1);
    const bool         same = inside && lane && row == before;

    if (__any_sync(All, same)) distinct = false;
    if (__any_sync(All, inside && lane && !same)) onerow = false;
    if (inside && (run & (run + 1) || owner[row] != b)) cuda::atomic_ref<int, cuda::thread_scope_device>(apart[row]).store(1, cuda::memory_order_relaxed);
  }
  if (lane == 0) fl.blkClass[b] = (unsigned char)(distinct ? FASTLOAD_DISTINCT : onerow ? FASTLOAD_ONE_ROW : FASTLOAD_RUNS);
}

/* A warp a word of rowShared */
__global__ static void SharedKernel(const FastLoad fl, const int *__restrict__ apart)
{
  const PetscCount   k    = GlobalThread();
  const unsigned int word = __ballot_sync(All, k < fl.nz && apart[fl.rowIdx[k]]);

  if (threadIdx.x % WarpSize == 0 && k < fl.nz) fl.rowShared[k / 32] = word;
}

/* A warp a block: whether its entries have bits there */
__global__ static void SharedBlocksKernel(const FastLoad fl, const int *__restrict__ apart)
{
  const PetscCount b     = GlobalThread() / WarpSize;
  bool             found = false;

  if (b >= fl.blkNum) return;
  for (PetscCount k = fl.blkPtr[b] + threadIdx.x % WarpSize; k < fl.blkPtr[b + 1]; k += WarpSize) found = found || apart[fl.rowIdx[k]];
  if (__any_sync(All, found) && threadIdx.x % WarpSize == 0) fl.blkClass[b] |= FASTLOAD_SHARED;
}

__global__ static void ValuesKernel(PetscCount nz, const PetscInt *__restrict__ csrIdx, const PetscScalar *__restrict__ a, PetscScalar *value)
{
  const PetscCount k = GlobalThread();

  if (k < nz) value[k] = a[csrIdx[k]];
}

/* What the build needs and the product does not */
struct Workspace {
  Key          *count, *sortedcount, *key, *sortedkey; /* of columns; of entries */
  PetscInt     *cols, *sortedcols, *entries, *sortedentries;
  PetscInt     *step; /* that begins at each sorted column; then the number of steps, then that of empty columns */
  PetscInt     *rank, *start, *top, *owner;
  int          *apart;
  FastLoadStep *steps;
  char         *cub;
  size_t        cubbytes;
};

static size_t CarveWorkspace(Workspace *w, const GallopCSR *csr, PetscInt most, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->count, csr->n);
  carver.Take(w->sortedcount, csr->n);
  carver.Take(w->cols, csr->n);
  carver.Take(w->sortedcols, csr->n);
  carver.Take(w->step, (PetscCount)csr->n + 2);
  carver.Take(w->rank, csr->n);
  carver.Take(w->start, most);
  carver.Take(w->top, most);
  carver.Take(w->steps, most);
  carver.Take(w->key, csr->nz);
  carver.Take(w->sortedkey, csr->nz);
  carver.Take(w->entries, csr->nz);
  carver.Take(w->sortedentries, csr->nz);
  carver.Take(w->owner, csr->m);
  carver.Take(w->apart, csr->m);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* Runs twice: with a null base it measures, then it hands out. value comes first. */
static size_t Carve(FastLoad *fl, void *base)
{
  GallopCarver carver(base);

  carver.Take(fl->value, fl->nz);
  carver.Take(fl->rowIdx, fl->nz);
  carver.Take(fl->csrIdx, fl->nz);
  carver.Take(fl->rowShared, (fl->nz + 31) / 32);
  carver.Take(fl->blkPtr, (PetscCount)fl->blkNum + 1);
  carver.Take(fl->blkColIdx, fl->blkNum);
  carver.Take(fl->blkHeight, fl->blkNum);
  carver.Take(fl->blkLength, fl->blkNum);
  carver.Take(fl->blkClass, fl->blkNum);
  carver.Take(fl->perm, fl->ncols);
  carver.Take(fl->sortedX, fl->ncols);
  return carver.Bytes();
}

static int BitsFor(PetscCount largest)
{
  int bits = 1; /* CUB sorts by one at least */

  while (bits < (int)(8 * sizeof(Key)) && largest >> bits) bits++;
  return bits;
}

static PetscErrorCode CubBytes(const GallopCSR *csr, Workspace *w, cudaStream_t stream)
{
  size_t bytes = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, w->count, w->sortedcount, w->cols, w->sortedcols, csr->n, 0, BitsFor(csr->m), stream));
  w->cubbytes = bytes;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, w->step, w->step, (PetscCount)csr->n + 1, stream));
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, w->sortedcount, w->count, csr->n, stream));
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, w->key, w->sortedkey, w->entries, w->sortedentries, csr->nz, 0, BitsFor(csr->n - 1), stream));
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* perm's source is w->sortedcols + nempty; the steps are on the host, to be freed by the caller */
static PetscErrorCode SortColumns(const GallopCSR *csr, Workspace *w, cudaStream_t stream, PetscInt *nempty, PetscInt *num, FastLoadStep **steps)
{
  PetscInt counts[2], *start, *top;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->count, 0, (size_t)csr->n * sizeof(*w->count), stream));
  CountKernel<<<GridFor(csr->nz), Threads, 0, stream>>>(csr->nz, csr->j, w->count);
  GallopCheckLaunch();
  NumberKernel<<<GridFor(csr->n), Threads, 0, stream>>>(csr->n, w->cols);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->count, w->sortedcount, w->cols, w->sortedcols, csr->n, 0, BitsFor(csr->m), stream));
  FlagKernel<<<GridFor((PetscCount)csr->n + 1), Threads, 0, stream>>>(csr->n, w->sortedcount, w->step);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, w->step, w->step, (PetscCount)csr->n + 1, stream));
  StepsKernel<<<GridFor(csr->n), Threads, 0, stream>>>(csr->n, w->sortedcount, w->sortedcols, w->step, w->start, w->top, w->rank);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(counts, w->step + csr->n, sizeof(counts)));
  *num    = counts[0];
  *nempty = counts[1];
  PetscCall(PetscMalloc1(*num, steps));
  PetscCall(PetscMalloc2(*num, &start, *num, &top));
  PetscCall(GallopDeviceCopyOut(start, w->start, (size_t)*num * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyOut(top, w->top, (size_t)*num * sizeof(PetscInt)));
  for (PetscInt t = 0; t < *num; t++) {
    (*steps)[t].start  = start[t];
    (*steps)[t].base   = t ? top[t - 1] : 0;
    (*steps)[t].height = top[t] - (*steps)[t].base;
  }
  PetscCall(PetscFree2(start, top));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  FastLoad    *fl = (FastLoad *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<GridFor(fl->nz), Threads, 0, stream>>>(fl->nz, fl->csrIdx, csr->a, fl->value);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All arrays but the values, once they have memory */
static PetscErrorCode Fill(FastLoad *fl, const GallopCSR *csr, Workspace *w, PetscInt nempty, PetscInt num, const FastLoadStep steps[], cudaStream_t stream)
{
  const unsigned int entries = GridFor(fl->nz), warps = GridFor((PetscCount)fl->blkNum * WarpSize);

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyIn(w->steps, steps, (size_t)num * sizeof(*steps)));
  PetscCall(GallopDeviceCopy(fl->perm, w->sortedcols + nempty, (size_t)fl->ncols * sizeof(PetscInt)));
  /* entries by sorted columns; the counts become where columns begin */
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, w->sortedcount + nempty, w->count, fl->ncols, stream));
  RankKernel<<<entries, Threads, 0, stream>>>(fl->nz, csr->j, w->rank, w->key);
  GallopCheckLaunch();
  NumberKernel<<<entries, Threads, 0, stream>>>(fl->nz, w->entries);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->key, w->sortedkey, w->entries, w->sortedentries, fl->nz, 0, BitsFor(csr->n - 1), stream));
  PlaceKernel<<<entries, Threads, 0, stream>>>(fl->nz, fl->m, csr->i, w->sortedkey, w->sortedentries, w->count, num, w->steps, fl->ncols, fl->rowIdx, fl->csrIdx);
  GallopCheckLaunch();

  BlocksKernel<<<GridFor((PetscCount)fl->blkNum + 1), Threads, 0, stream>>>(num, w->steps, *fl);
  GallopCheckLaunch();
  PetscCallCUDA(cudaMemsetAsync(w->apart, 0, (size_t)fl->m * sizeof(*w->apart), stream));
  OwnerKernel<<<warps, Threads, 0, stream>>>(*fl, w->owner); /* rows without entries are never asked for */
  GallopCheckLaunch();
  ClassKernel<<<warps, Threads, 0, stream>>>(*fl, w->owner, w->apart);
  GallopCheckLaunch();
  SharedKernel<<<entries, Threads, 0, stream>>>(*fl, w->apart);
  GallopCheckLaunch();
  SharedBlocksKernel<<<warps, Threads, 0, stream>>>(*fl, w->apart);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  const FastLoadOptions *options = (const FastLoadOptions *)opts;
  const PetscInt         most    = PetscMin(PetscMin(csr->m, csr->n), (PetscInt)PetscMin((double)PETSC_INT_MAX, PetscSqrtReal(2 * (PetscReal)csr->nz) + 2)); /* different lengths of columns */
  FastLoad              *fl;
  FastLoadStep          *steps;
  PetscInt               nempty = 0, num = 0;
  Workspace              w = {};
  size_t                 wbytes;
  void                  *wbase, *base = NULL;
  cudaStream_t           stream;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(CubBytes(csr, &w, stream));
  wbytes = CarveWorkspace(&w, csr, most, NULL);
  PetscCall(GallopDeviceMalloc(wbytes, &wbase));
  if (!wbase) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveWorkspace(&w, csr, most, wbase);
  PetscCall(SortColumns(csr, &w, stream, &nempty, &num, &steps));

  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_CUDA;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = FASTLOAD_LENGTH;
  fl->ncols   = csr->n - nempty;
  fl->options = *options;
  FastLoadPlan(num, steps, fl->ncols, FASTLOAD_LENGTH, options->height, &fl->blkNum);
  fl->bytes = Carve(fl, NULL);
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(fl->bytes, &base));
  if (base) {
    (void)Carve(fl, base);
    PetscCall(Fill(fl, csr, &w, nempty, num, steps, stream));
    PetscCall(Refresh(fl, csr));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* the steps are pageable and about to go */
    *built = fl;
  } else PetscCall(PetscFree(fl));
  PetscCall(PetscFree(steps));
  PetscCall(GallopDeviceRelease(wbytes, wbase));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  const FastLoad                             *fl   = (const FastLoad *)data;
  const GallopVectors<PetscScalar>            v    = {*p->alpha, *p->beta, p->x, p->y, p->z, *p->beta != PetscScalar(0)};
  const PetscInt                              m    = v.readsy && v.y == v.z && v.beta == PetscScalar(1) ? 0 : fl->m; /* rows of z that are not yet what is added to */
  const FastLoadArrays<PetscScalar, PetscInt> view = {fl->blkNum, fl->blkPtr, fl->blkColIdx, fl->rowIdx, fl->blkLength, fl->blkClass, fl->rowShared, fl->value, fl->sortedX};
  cudaStream_t                                stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  VectorsKernel<<<GridFor(PetscMax(fl->ncols, m)), Threads, 0, stream>>>(fl->ncols, fl->perm, fl->sortedX, m, v);
  GallopCheckLaunch();
  FastLoadKernel<PetscScalar, PetscReal, PetscInt><<<GridFor((PetscCount)fl->blkNum * WarpSize), Threads, 0, stream>>>(view, v.alpha, v.z);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  FastLoad *fl = (FastLoad *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(fl->value)); /* where the one allocation begins */
  PetscCall(PetscFree(fl));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadDevice = {Build, Refresh, Apply, Destroy};
