/* TiledSpMM with stages of B in shared memory: its arrays, new values, and the kernel of the product */

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda_pipeline.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "../common/bits.h"
#include "../common/footprint.h"
#include "tiledspmmdevice.h"

/* ---------------------------------------------------------------- the product */

template <typename V, typename I>
struct TilesView {
  I                     m, stage;
  const PetscCount     *stagedispl, *mapdispl, *warpdispl;
  const I              *map;
  const TiledSpMMIndex *len, *index;
  const V              *value;
  const I              *order; /* NULL where rows are in the order of the matrix */
};

/* A GPU block computes R columns of a panel, a thread R outputs of a row. Blocks that lie together have the same panel, which L2 then serves to all but the first. */
template <int R, typename V, typename I>
__global__ static void __launch_bounds__(TILEDSPMM_MAX_THREADS(R)) StagedKernel(const TilesView<V, I> t, const DenseView<V, I> dense, const unsigned int groups)
{
  extern __shared__ __align__(16) unsigned char bytes[];
  V *const                                      shared  = reinterpret_cast<V *>(bytes); /* column r of B's stage is at r t.stage: lanes with neighbouring indices are in different banks */
  const PetscCount                              panel   = blockIdx.x / groups;
  const I                                       first   = (I)(blockIdx.x % groups) * R;
  const int                                     columns = dense.columns - first < R ? (int)(dense.columns - first) : R;
  const int                                     warps = blockDim.x / WarpSize, warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  const PetscCount                              row = panel * blockDim.x + threadIdx.x;
  const V *const                                b   = dense.b + (PetscCount)first * dense.ldb;
  V                                             acc[R];

#pragma unroll
  for (int r = 0; r < R; r++) acc[r] = V(0);
  for (PetscCount s = t.stagedispl[panel]; s < t.stagedispl[panel + 1]; s++) {
    const PetscCount map  = t.mapdispl[s];
    const int        size = (int)(t.mapdispl[s + 1] - map), len = t.len[s * blockDim.x + threadIdx.x];
    PetscCount       at = t.warpdispl[s * warps + warp] + lane;

    __syncthreads(); /* all are done with the stage before */
    for (int q = threadIdx.x; q < size; q += blockDim.x) {
      const V *const from = b + t.map[map + q];

#pragma unroll
      for (int r = 0; r < R; r++)
        if (r < columns) __pipeline_memcpy_async(shared + (r * t.stage + q), from + (PetscCount)r * dense.ldb, sizeof(V));
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int k = 0; k < len; k++, at += WarpSize) {
      const V  value  = GallopLoadOnce(t.value + at);
      const V *staged = shared + GallopLoadOnce(t.index + at);

#pragma unroll
      for (int r = 0; r < R; r++) acc[r] += value * staged[r * t.stage]; /* those of no column are never stored */
    }
  }
  if (row >= t.m) return;
  const I to = t.order ? t.order[row] : (I)row;

#pragma unroll
  for (int r = 0; r < R; r++)
    if (r < columns) Store(dense, to, first + r, acc[r]);
}

/* Calls f(kernel) with the kernel for a number of columns at once */
template <typename F>
static cudaError_t WithKernel(PetscInt columns, F f)
{
  switch (columns) {
  case 1:
    return f(StagedKernel<1, PetscScalar, PetscInt>);
  case 2:
    return f(StagedKernel<2, PetscScalar, PetscInt>);
  case 4:
    return f(StagedKernel<4, PetscScalar, PetscInt>);
  case 8:
    return f(StagedKernel<8, PetscScalar, PetscInt>);
  case 16:
    return f(StagedKernel<16, PetscScalar, PetscInt>);
  default:
    return f(StagedKernel<32, PetscScalar, PetscInt>);
  }
}

static size_t SharedBytes(const TiledSpMM *t, PetscInt columns)
{
  return (size_t)t->options.stage * columns * sizeof(PetscScalar);
}

PetscErrorCode TiledSpMMStagedApply(const TiledSpMM *t, const GallopDenseProduct *p)
{
  const TilesView<PetscScalar, PetscInt> tiles = {t->m, t->options.stage, t->stagedispl, t->mapdispl, t->warpdispl, t->map, t->len, t->index, t->value, t->reordered ? t->roworder : NULL};
  cudaStream_t                           stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(ForColumns(p->columns, TiledSpMMStagedColumns(t), t->panels, [&](PetscCount begin, PetscCount columns, PetscInt R) {
    const PetscCount groups = (columns + R - 1) / R;

    PetscFunctionBegin;
    PetscCallCUDA(WithKernel(R, [&](auto *kernel) {
      return GallopLaunch(kernel, {t->panels * groups, (int)t->options.panel, 1, SharedBytes(t, R), stream, false}, tiles, DenseFrom(p, begin, columns), (unsigned int)groups);
    }));
    PetscFunctionReturn(PETSC_SUCCESS);
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- building */

static constexpr int Threads        = 256;
static constexpr int InspectThreads = 512, InspectWords = 8192; /* a GPU block that looks for a footprint marks columns by as many words of bits */

template <typename V, typename I>
__global__ static void ValuesKernel(PetscCount n, const I *__restrict__ from, const V *__restrict__ a, V *__restrict__ value)
{
  const PetscCount k = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;

  if (k < n) value[k] = from[k] < 0 ? V(0) : a[from[k]];
}

PetscErrorCode TiledSpMMStagedRefresh(TiledSpMM *t, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<(unsigned int)((t->stored + Threads - 1) / Threads), Threads, 0, stream>>>(t->stored, t->from, csr->a, t->value);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What of a matrix the inspection needs */
struct Pattern {
  PetscInt        m, panel, stage, panels;
  const PetscInt *i, *j, *order; /* order of rows in panels, NULL for the matrix's */

  __device__ __forceinline__ PetscInt Row(PetscCount place) const { return order ? order[place] : (PetscInt)place; }

  __host__ __device__ __forceinline__ PetscInt End(PetscInt p) const { return m - p * panel < panel ? m : (p + 1) * panel; }
};

struct Found {
  PetscCount         stages, nmap;
  unsigned long long lines, stores; /* lines of a column of B that panels refer to, and that stores of sorted rows touch */
  int                disorder;      /* the columns of some row do not increase */
  int                scattered;     /* the columns of some panel are so far apart that footprints are found by a sort */
  int                unsorted;      /* rows are not in the order of their patterns */
};

/* The order of section 4.2, for a sort */
struct RowBefore {
  const PetscInt *i, *j;

  __device__ bool operator()(PetscInt r, PetscInt s) const { return TiledSpMMCompareRows(i, j, r, s) < 0; }
};

/* A warp a row */
__global__ static void __launch_bounds__(Threads) OrderKernel(Pattern A, Found *found)
{
  const PetscCount r   = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  bool             bad = false;

  if (r >= A.m) return;
  for (PetscInt e = A.i[r] + 1 + threadIdx.x % WarpSize; e < A.i[r + 1]; e += WarpSize) bad = bad || A.j[e - 1] >= A.j[e];
  if (bad) found->disorder = 1;
}

/* A thread a row */
__global__ static void __launch_bounds__(Threads) UnsortedKernel(Pattern A, Found *found)
{
  const PetscCount r = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (r + 1 < A.m && TiledSpMMCompareRows(A.i, A.j, (PetscInt)r, (PetscInt)r + 1) > 0) found->unsorted = 1;
}

/* A thread a place in the order of rows */
__global__ static void __launch_bounds__(Threads) StoresKernel(Pattern A, Found *found)
{
  const PetscCount   r      = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const int          lane   = threadIdx.x % WarpSize;
  const long long    line   = r < A.m ? (long long)TiledSpMMLineOf(A.order[r]) : -1;
  const long long    before = __shfl_up_sync(0xffffffffu, line, 1);
  const unsigned int first  = __ballot_sync(0xffffffffu, r < A.m && (lane == 0 || line != before));

  if (lane == 0 && first) atomicAdd(&found->stores, (unsigned long long)__popc(first));
}

/* Calls what(entry, column) for the entries of a panel, by all threads of a GPU block */
template <typename What>
static __device__ __forceinline__ void WalkPanel(const Pattern &A, PetscInt p, What what)
{
  static constexpr int Ahead = 4;
  const PetscCount     begin = A.i[p * A.panel], end = A.order ? begin : A.i[A.End(p)];

  if (A.order) /* a warp a row */
    for (PetscCount r = (PetscCount)p * A.panel + threadIdx.x / WarpSize; r < A.End(p); r += InspectThreads / WarpSize)
      for (PetscCount e = A.i[A.order[r]] + threadIdx.x % WarpSize; e < A.i[A.order[r] + 1]; e += WarpSize) what(e, A.j[e]);
  for (PetscCount e = begin + threadIdx.x; e < end; e += Ahead * InspectThreads) {
    PetscInt j[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) j[u] = e + u * InspectThreads < end ? A.j[e + u * InspectThreads] : -1;
#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (j[u] >= 0) what(e + u * InspectThreads, j[u]);
  }
}

/*
  A GPU block a panel: the size of its footprint, or with map the footprint, which begins there at mapfirst; with lines how many lines of a column of B it is in, added there. With scattered: says so there,
  where it would have to read the entries often, and counts none.
*/
__global__ static void __launch_bounds__(InspectThreads, 4) FootprintKernel(Pattern A, PetscInt *__restrict__ size, const PetscCount *__restrict__ mapfirst, PetscInt *__restrict__ map, unsigned long long *lines, int *scattered)
{
  __shared__ GallopFootprintMarks<InspectThreads, InspectWords> marks;
  const PetscInt                                                p   = (PetscInt)blockIdx.x;
  const PetscInt                                                num = GallopFootprint(marks, PETSC_INT_MAX, scattered != NULL, 1, map ? map + mapfirst[p] : NULL,
                                                                                      [&](auto mark) { WalkPanel(A, p, [&](PetscCount, PetscInt col) { mark((int)(lines ? TiledSpMMLineOf(col) : col)); }); });

  if (threadIdx.x) return;
  if (num == GallopFootprintScattered) *scattered = 1;
  if (lines) atomicAdd(lines, (unsigned long long)PetscMax(num, 0));
  else if (!map) size[p] = PetscMax(num, 0);
}

/* ---- footprints by a sort of all entries, by panels and columns: linear in the entries, be their columns as far apart as they may ---- */

/* Panels in the upper bits, columns in the lower ones: sorted, and each one once, they are the footprints */
using PanelKey = unsigned long long;

/* A GPU block a panel: the keys of its entries */
__global__ static void __launch_bounds__(InspectThreads) PanelKeysKernel(Pattern A, int colbits, PanelKey *__restrict__ keys)
{
  const PetscInt p = (PetscInt)blockIdx.x;

  WalkPanel(A, p, [&](PetscCount e, PetscInt col) { keys[e] = (PanelKey)p << colbits | (PanelKey)col; });
}

/* A thread a panel */
__global__ static void __launch_bounds__(Threads) SizesKernel(PetscInt panels, int colbits, const PanelKey *__restrict__ keys, const PetscCount *__restrict__ num, PetscInt *__restrict__ size)
{
  const PetscCount p = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (p < panels) size[p] = (PetscInt)(LowerBound(keys, 0, *num, (PanelKey)(p + 1) << colbits) - LowerBound(keys, 0, *num, (PanelKey)p << colbits));
}

/* A thread a key: its column to map, where there is one; else whether it begins a line, which are counted in *lines */
__global__ static void __launch_bounds__(Threads) KeysKernel(int colbits, const PanelKey *__restrict__ keys, const PetscCount *__restrict__ num, PetscInt *__restrict__ map, unsigned long long *lines)
{
  const PetscCount k      = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const PanelKey   mask   = ((PanelKey)1 << colbits) - 1;
  const bool       inside = k < *num;
  const PanelKey   own = inside ? keys[k] : 0, before = inside && k ? keys[k - 1] : 0;
  const bool       begins = inside && (!k || own >> colbits != before >> colbits || TiledSpMMLineOf((PetscInt)(own & mask)) != TiledSpMMLineOf((PetscInt)(before & mask)));

  if (map) {
    if (inside) map[k] = (PetscInt)(own & mask);
    return;
  }
  const unsigned int all = __ballot_sync(0xffffffffu, begins);

  if (all && threadIdx.x % WarpSize == 0) atomicAdd(lines, (unsigned long long)__popc(all));
}

typedef struct {
  PanelKey   *keys, *others;
  PetscCount *num;
  char       *cub;
  size_t      cubbytes;
} SortWorkspace;

static size_t CarveSort(SortWorkspace *w, PetscCount nz, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->keys, nz);
  carver.Take(w->others, nz);
  carver.Take(w->num, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* What FootprintKernel finds: the size of each footprint and their lines, where these are wanted, or with map the footprints. *done is false where there is no room. */
static PetscErrorCode SortFootprints(const TiledSpMM *t, const Pattern &A, PetscInt *size, unsigned long long *lines, PetscInt *map, cudaStream_t stream, PetscBool *done)
{
  const int                   colbits = GallopSortBits(t->n), bits = colbits + GallopSortBits(t->panels);
  const unsigned int          blocks = (unsigned int)((t->nz + Threads - 1) / Threads);
  cub::DoubleBuffer<PanelKey> keys(NULL, NULL);
  SortWorkspace               w = {};
  size_t                      sortbytes, uniquebytes, bytes;
  void                       *memory;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortKeys(nullptr, sortbytes, keys, t->nz, 0, bits, stream));
  PetscCallCUDA(cub::DeviceSelect::Unique(nullptr, uniquebytes, w.keys, w.others, w.num, t->nz, stream));
  w.cubbytes = PetscMax(sortbytes, uniquebytes);
  bytes      = CarveSort(&w, t->nz, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveSort(&w, t->nz, memory);
  keys = cub::DoubleBuffer<PanelKey>(w.keys, w.others);
  PanelKeysKernel<<<(unsigned int)t->panels, InspectThreads, 0, stream>>>(A, colbits, w.keys);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortKeys(w.cub, w.cubbytes, keys, t->nz, 0, bits, stream));
  PetscCallCUDA(cub::DeviceSelect::Unique(w.cub, w.cubbytes, keys.Current(), keys.Alternate(), w.num, t->nz, stream));
  if (size) {
    SizesKernel<<<(unsigned int)((t->panels + (PetscCount)Threads - 1) / Threads), Threads, 0, stream>>>(t->panels, colbits, keys.Alternate(), w.num, size);
    GallopCheckLaunch();
  }
  if (lines || map) {
    KeysKernel<<<blocks, Threads, 0, stream>>>(colbits, keys.Alternate(), w.num, map, lines);
    GallopCheckLaunch();
  }
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of B, and stages, of panel p; none of the one behind the last, which ends the sums over them */
struct SizeOf {
  const PetscInt *size;
  PetscInt        panels;

  __host__ __device__ PetscCount operator()(PetscInt p) const { return p < panels ? (PetscCount)size[p] : 0; }
};

struct StagesOf {
  const PetscInt *size;
  PetscInt        panels, stage;

  __host__ __device__ PetscCount operator()(PetscInt p) const { return p < panels ? ((PetscCount)size[p] + stage - 1) / stage : 0; }
};

__global__ static void TotalsKernel(PetscInt panels, const PetscCount *__restrict__ mapfirst, const PetscCount *__restrict__ stagefirst, Found *found)
{
  found->nmap   = mapfirst[panels];
  found->stages = stagefirst[panels];
}

/* Where stages begin, a thread a panel */
__global__ static void __launch_bounds__(Threads) StagesKernel(Pattern A, const PetscCount *__restrict__ mapfirst, TiledSpMM t)
{
  const PetscCount p = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (p == 0) t.mapdispl[t.stages] = t.nmap;
  if (p >= A.panels) return;
  for (PetscCount s = t.stagedispl[p]; s < t.stagedispl[p + 1]; s++) t.mapdispl[s] = mapfirst[p] + (s - t.stagedispl[p]) * A.stage;
}

/* The panel of a stage: of those that begin with it, the last, which has it */
static __device__ __forceinline__ PetscInt PanelOf(const Pattern &A, const PetscCount *stagedispl, PetscCount stage)
{
  PetscInt lo = 0, hi = A.panels - 1;

  while (lo < hi) {
    const PetscInt mid = hi - (hi - lo) / 2;

    if (stagedispl[mid] <= stage) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/* A GPU block a stage, a thread a row of the panel: the entries of the row in the stage, where they begin, and how much room each warp needs */
__global__ static void __launch_bounds__(TILEDSPMM_MAX_PANEL) LengthsKernel(Pattern A, TiledSpMM t, PetscInt *__restrict__ start)
{
  const PetscCount s = blockIdx.x, warps = blockDim.x / WarpSize;
  const PetscInt   p     = PanelOf(A, t.stagedispl, s);
  const PetscCount place = (PetscCount)p * A.panel + threadIdx.x, slot = s * blockDim.x + threadIdx.x;
  PetscCount       begin = 0, end = 0;

  if (place < A.m) {
    const PetscInt row = A.Row(place);

    begin = LowerBound(A.j, A.i[row], A.i[row + 1], t.map[t.mapdispl[s]]);
    end   = s + 1 < t.stagedispl[p + 1] ? LowerBound(A.j, begin, A.i[row + 1], t.map[t.mapdispl[s + 1]]) : A.i[row + 1];
  }
  const unsigned int width = GallopWarpMax((unsigned int)(end - begin));

  start[slot] = (PetscInt)begin;
  t.len[slot] = (TiledSpMMIndex)(end - begin);
  if (threadIdx.x % WarpSize == 0) t.warpdispl[s * warps + threadIdx.x / WarpSize] = (PetscCount)width * WarpSize;
  if (slot == 0) t.warpdispl[t.stages * warps] = 0;
}

/* The same threads: the entries, and the padding behind them */
__global__ static void __launch_bounds__(TILEDSPMM_MAX_PANEL) EntriesKernel(Pattern A, TiledSpMM t, const PetscInt *__restrict__ start, const PetscScalar *__restrict__ a)
{
  const PetscCount s = blockIdx.x, warp = s * (blockDim.x / WarpSize) + threadIdx.x / WarpSize, slot = s * blockDim.x + threadIdx.x;
  const PetscCount first = t.mapdispl[s], stop = t.mapdispl[s + 1], end = t.warpdispl[warp + 1];
  const int        len = t.len[slot];
  PetscCount       q   = first - 1; /* the place of the column before */

  for (PetscCount at = t.warpdispl[warp] + threadIdx.x % WarpSize, k = 0; at < end; at += WarpSize, k++) {
    const bool     entry = k < len;
    const PetscInt e     = entry ? start[slot] + (PetscInt)k : -1;

    if (entry) {
      const PetscInt col = A.j[e];

      q++; /* often the next one */
      if (t.map[q] != col) q = LowerBound(t.map, q + 1, stop, col);
    }
    t.index[at] = (TiledSpMMIndex)(entry ? q - first : 0);
    t.from[at]  = e;
    t.value[at] = entry ? a[e] : PetscScalar(0);
  }
}

TILEDSPMM_CARVE(CarveStages, TILEDSPMM_STAGES)
TILEDSPMM_CARVE(CarveEntries, TILEDSPMM_ENTRIES)

/* What is needed until the numbers of stages and rows of B are known, and what until that of entries is */
typedef struct {
  PetscInt   *size, *start, *order; /* order of rows, where they are sorted */
  PetscCount *mapfirst, *stagefirst;
  Found      *found;
  char       *cub, *lastcub;
  size_t      cubbytes, lastcubbytes;
} Workspace;

static size_t CarvePanels(Workspace *w, PetscInt panels, PetscInt sorted, void *base)
{
  GallopCarver carver(base);

  if (sorted) carver.Take(w->order, sorted);
  carver.Take(w->size, panels);
  carver.Take(w->mapfirst, (PetscCount)panels + 1);
  carver.Take(w->stagefirst, (PetscCount)panels + 1);
  carver.Take(w->found, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static size_t CarveLengths(Workspace *w, const TiledSpMM *t, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->start, t->stages * t->options.panel);
  carver.Take(w->lastcub, (PetscCount)w->lastcubbytes);
  return carver.Bytes();
}

/* The most shared memory that the device lets a GPU block have, which its kernels are allowed here */
static PetscErrorCode AllowShared(size_t *bytes)
{
  int device, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  for (PetscInt R = 1; R <= TILEDSPMM_MAX_COLUMNS; R *= 2) PetscCallCUDA(WithKernel(R, [=](auto *kernel) { return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most); }));
  *bytes = (size_t)most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of footprints and stages over panels */
static PetscErrorCode SumPanels(const TiledSpMM *t, Workspace *w, bool measure, cudaStream_t stream)
{
  const auto panel  = thrust::make_counting_iterator((PetscInt)0);
  const auto sizes  = thrust::make_transform_iterator(panel, SizeOf{w->size, t->panels});
  const auto stages = thrust::make_transform_iterator(panel, StagesOf{w->size, t->panels, t->options.stage});
  size_t     bytes[2];

  PetscFunctionBegin;
  if (measure) {
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[0], sizes, w->mapfirst, (PetscCount)t->panels + 1, stream));
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes[1], stages, w->stagefirst, (PetscCount)t->panels + 1, stream));
    w->cubbytes = PetscMax(bytes[0], bytes[1]);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, sizes, w->mapfirst, (PetscCount)t->panels + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, stages, w->stagefirst, (PetscCount)t->panels + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sizes of footprints, and how many lines they are in, with a limit on how often a kernel reads the entries, or without */
static PetscErrorCode MeasureFootprints(const TiledSpMM *t, const Pattern &A, Workspace *w, bool limited, cudaStream_t stream)
{
  int *const scattered = limited ? &w->found->scattered : NULL;

  PetscFunctionBegin;
  FootprintKernel<<<(unsigned int)t->panels, InspectThreads, 0, stream>>>(A, w->size, NULL, NULL, NULL, scattered);
  GallopCheckLaunch();
  if (t->options.reorder == TILEDSPMM_REORDER_CHOOSE) {
    FootprintKernel<<<(unsigned int)t->panels, InspectThreads, 0, stream>>>(A, NULL, NULL, NULL, &w->found->lines, scattered);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The footprints; without room for a sort as the kernel finds them, which may have to read the entries often */
static PetscErrorCode StoreFootprints(const TiledSpMM *t, const Pattern &A, const Workspace *w, bool scattered, cudaStream_t stream)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (scattered) PetscCall(SortFootprints(t, A, NULL, NULL, t->map, stream, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  FootprintKernel<<<(unsigned int)t->panels, InspectThreads, 0, stream>>>(A, NULL, w->mapfirst, t->map, NULL, NULL);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the numbers of stages and rows of B known. What t has of memory is Destroy()'s where *done stays false. */
static PetscErrorCode Complete(TiledSpMM *t, const Pattern &A, const GallopCSR *csr, Workspace *w, bool scattered, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  const int        panel  = (int)t->options.panel;
  const PetscCount warps  = t->stages * (panel / WarpSize);
  void            *stages = NULL, *entries = NULL, *lengths = NULL;
  size_t           bytes = 0;

  PetscFunctionBegin;
  *done     = PETSC_FALSE;
  t->stored = 0;
  if (t->stages > PETSC_INT32_MAX || (maxbytes && TiledSpMMBytes(t) > (size_t)maxbytes)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(CarveStages(t, NULL), &stages));
  if (!stages) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveStages(t, stages);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, w->lastcubbytes, t->warpdispl, t->warpdispl, warps + 1, stream));
  bytes = CarveLengths(w, t, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &lengths));
  if (lengths) {
    (void)CarveLengths(w, t, lengths);
    PetscCall(GallopDeviceCopy(t->stagedispl, w->stagefirst, (size_t)(t->panels + 1) * sizeof(*t->stagedispl)));
    if (t->reordered) PetscCall(GallopDeviceCopy(t->roworder, w->order, (size_t)t->m * sizeof(*t->roworder)));
    PetscCall(StoreFootprints(t, A, w, scattered, stream));
    StagesKernel<<<(unsigned int)((t->panels + Threads - 1) / Threads), Threads, 0, stream>>>(A, w->mapfirst, *t);
    GallopCheckLaunch();
    LengthsKernel<<<(unsigned int)t->stages, panel, 0, stream>>>(A, *t, w->start);
    GallopCheckLaunch();
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->lastcub, w->lastcubbytes, t->warpdispl, t->warpdispl, warps + 1, stream));
    PetscCall(GallopDeviceCopyOut(&t->stored, t->warpdispl + warps, sizeof(t->stored)));
    t->bytes = TiledSpMMBytes(t);
    if (!maxbytes || t->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(CarveEntries(t, NULL), &entries));
  }
  if (entries) {
    (void)CarveEntries(t, entries);
    EntriesKernel<<<(unsigned int)t->stages, panel, 0, stream>>>(A, *t, w->start, csr->a);
    GallopCheckLaunch();
    PetscCall(AllowShared(&t->shared));
    *done = PETSC_TRUE;
  }
  if (lengths) PetscCall(GallopDeviceRelease(bytes, lengths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of what has been found of panels, and all of it to the host */
static PetscErrorCode SumFootprints(const TiledSpMM *t, Workspace *w, Found *found, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(SumPanels(t, w, false, stream));
  TotalsKernel<<<1, 1, 0, stream>>>(t->panels, w->mapfirst, w->stagefirst, w->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(found, w->found, sizeof(*found)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Looks at the pattern on the GPU, with rows sorted or as they are; of these, found->disorder: the host must. *memory is to be given back, NULL where there is none.
  A warp or fewer threads a row: the grid has place for all rows.
*/
static PetscErrorCode Look(const TiledSpMM *t, Pattern A, bool sort, Workspace *w, Found *found, void **memory, size_t *bytes, cudaStream_t stream)
{
  const auto         rows   = thrust::make_counting_iterator((PetscInt)0);
  const unsigned int blocks = (unsigned int)(((PetscCount)t->m + Threads - 1) / Threads);
  size_t             sortbytes;

  PetscFunctionBegin;
  PetscCall(SumPanels(t, w, true, stream));
  if (sort) {
    PetscCallCUDA(cub::DeviceMergeSort::SortKeysCopy(nullptr, sortbytes, rows, w->order, (PetscCount)t->m, RowBefore{A.i, A.j}, stream));
    w->cubbytes = PetscMax(w->cubbytes, sortbytes);
  }
  *bytes = CarvePanels(w, t->panels, sort ? t->m : 0, NULL);
  PetscCall(GallopDeviceMalloc(*bytes, memory));
  if (!*memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarvePanels(w, t->panels, sort ? t->m : 0, *memory);
  PetscCallCUDA(cudaMemsetAsync(w->found, 0, sizeof(*w->found), stream));
  if (sort) {
    PetscCallCUDA(cub::DeviceMergeSort::SortKeysCopy(w->cub, w->cubbytes, rows, w->order, (PetscCount)t->m, RowBefore{A.i, A.j}, stream));
    A.order = w->order;
    StoresKernel<<<blocks, Threads, 0, stream>>>(A, w->found);
    GallopCheckLaunch();
  } else {
    OrderKernel<<<(unsigned int)(((PetscCount)t->m * WarpSize + Threads - 1) / Threads), Threads, 0, stream>>>(A, w->found);
    GallopCheckLaunch();
    if (t->options.reorder != TILEDSPMM_REORDER_NEVER) {
      UnsortedKernel<<<blocks, Threads, 0, stream>>>(A, w->found);
      GallopCheckLaunch();
    }
  }
  PetscCall(MeasureFootprints(t, A, w, true, stream));
  PetscCall(SumFootprints(t, w, found, stream));
  if (found->scattered && !found->disorder) {
    PetscBool done;

    PetscCallCUDA(cudaMemsetAsync(&w->found->lines, 0, sizeof(w->found->lines), stream));
    PetscCall(SortFootprints(t, A, w->size, t->options.reorder == TILEDSPMM_REORDER_CHOOSE ? &w->found->lines : NULL, NULL, stream, &done));
    if (!done) PetscCall(MeasureFootprints(t, A, w, false, stream));
    PetscCall(SumFootprints(t, w, found, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For rows whose columns do not increase: by the host's inspection, whose arrays are copied */
static PetscErrorCode CopyFromHost(TiledSpMM *t, const GallopCSR *csr, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  TiledSpMM *host;
  void      *stages, *entries = NULL;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(TiledSpMMInspect(&t->options, csr, maxbytes, &host));
  if (!host) PetscFunctionReturn(PETSC_SUCCESS);
  host->multiprocessors = t->multiprocessors;
  *t                    = *host;
  t->memtype            = PETSC_MEMTYPE_CUDA;
  PetscCall(GallopDeviceMalloc(CarveStages(t, NULL), &stages));
  (void)CarveStages(t, stages);
  if (stages) PetscCall(GallopDeviceMalloc(CarveEntries(t, NULL), &entries));
  t->index = NULL;
  if (entries) {
    (void)CarveEntries(t, entries);
#define COPY(array, number) \
  if (host->array) PetscCall(GallopDeviceCopyIn(t->array, host->array, (size_t)(number) * sizeof(*t->array)));
    TILEDSPMM_ARRAYS(t, COPY); /* but value, which the host has not */
#undef COPY
    PetscCall(TiledSpMMStagedRefresh(t, csr));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied is pageable and about to go */
    PetscCall(AllowShared(&t->shared));
    *done = PETSC_TRUE;
  }
  PetscCall(TiledSpMMFree_Host(&host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMStagedBuild(TiledSpMM *t, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  Workspace    w[2]      = {}; /* with rows as they are, and sorted */
  Found        found[2]  = {};
  void        *memory[2] = {NULL, NULL};
  size_t       bytes[2]  = {0, 0};
  Pattern      A;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  t->panels         = csr->m / t->options.panel + (csr->m % t->options.panel ? 1 : 0);
  A                 = {t->m, t->options.panel, t->options.stage, t->panels, csr->i, csr->j, NULL};
  found[0].disorder = t->n >= PETSC_INT32_MAX || t->panels >= PETSC_INT32_MAX || (PetscCount)t->m * WarpSize / Threads >= PETSC_INT32_MAX; /* more columns than the marks of a footprint tell apart, more rows than a grid has place for */
  if (!found[0].disorder) {
    PetscCall(Look(t, A, false, &w[0], &found[0], &memory[0], &bytes[0], stream));
    t->nmapgiven = found[0].nmap;
    if (found[0].unsorted && !found[0].disorder) { /* without room for it rows stay as they are */
      PetscCall(Look(t, A, true, &w[1], &found[1], &memory[1], &bytes[1], stream));
      if (memory[1]) t->reordered = TiledSpMMKeepsOrder(t, found[1].nmap, (PetscCount)found[0].lines, (PetscCount)found[1].lines, (PetscCount)found[1].stores);
    }
    t->stages = found[t->reordered].stages;
    t->nmap   = found[t->reordered].nmap;
    if (t->reordered) A.order = w[1].order;
    if (memory[0] && !found[0].disorder) PetscCall(Complete(t, A, csr, &w[t->reordered], found[t->reordered].scattered, maxbytes, stream, done));
    for (int k = 0; k < 2; k++)
      if (memory[k]) PetscCall(GallopDeviceRelease(bytes[k], memory[k]));
  }
  if (found[0].disorder) PetscCall(CopyFromHost(t, csr, maxbytes, stream, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
