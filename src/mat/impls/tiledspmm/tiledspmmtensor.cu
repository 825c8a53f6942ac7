/*
  TiledSpMM by tensor cores: tiles of eight rows and eight columns, of which a mask tells the entries. A warp multiplies the tiles of a unit, one after the other, with some columns of B, sixteen by an
  instruction.

  What is no entry is a zero there, and a zero times Inf is NaN: a lane that has a NaN computes its sums once more, entry by entry. Scalars that are no doubles are always computed so.
*/

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "../common/footprint.h"
#include "tiledspmmdevice.h"

static constexpr int Threads = 256, Rows = TILEDSPMM_TILE_ROWS, Cols = TILEDSPMM_TILE_COLS, Lanes = WarpSize / Rows; /* lanes that have a row of a tile */

static_assert(Cols == 2 * Lanes, "a lane has two entries of a tile");
static_assert(sizeof(TiledSpMMTile) == sizeof(uint4), "a tile is loaded at once");

template <typename V, typename I>
struct TilesView {
  PetscCount           num; /* units */
  I                    m, n;
  const I             *row, *slot, *slots;
  const PetscCount    *ptr, *valueptr;
  const TiledSpMMTile *tile;
  const V             *value;
};

static __device__ __forceinline__ unsigned int BitsBelow(int bit)
{
  return (1u << bit) - 1;
}

/* A tile's row, a bit for each column */
static __device__ __forceinline__ unsigned int RowOf(unsigned long long mask, int row)
{
  return (unsigned int)(mask >> (Cols * row)) & BitsBelow(Cols);
}

/* Entries of a tile before a row */
static __device__ __forceinline__ int EntriesBefore(unsigned long long mask, int row)
{
  return __popcll(mask & ((1ull << (Cols * row)) - 1));
}

/* ---------------------------------------------------------------- products */

static constexpr int TensorThreads = 128, TensorWarps = TensorThreads / WarpSize, TensorBlocks = 5; /* of a multiprocessor */

/*
  The transpose of C += A B: from each lane a pair of neighbours in columns lane / 4 and lane / 4 + 8 of B, rows 2 (lane % 4) and the next one, and of row lane / 4 of a tile the same two columns; sums of
  both columns of B with rows 2 (lane % 4) and the next one. (The order of what is summed up is another one than the instruction's, but the same in both factors.)
*/
[[maybe_unused]] static __device__ __forceinline__ void MultiplyTile(double c[2][2], const double b[2][2], const double a[2])
{
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
      : "d"(b[0][0]), "d"(b[1][0]), "d"(b[0][1]), "d"(b[1][1]), "d"(a[0]), "d"(a[1]));
#endif
}

/* Whether the kernel has instructions for it */
template <typename V>
static constexpr __device__ bool HasTensor()
{
#if __CUDA_ARCH__ >= 900
  return cuda::std::is_same_v<V, double>;
#else
  return false;
#endif
}

/* What a row of some tiles makes of a column of B, entry by entry. Not inline: it is hardly ever called. */
template <typename V>
static __device__ __noinline__ V MultiplyEntries(const TiledSpMMTile *tiles, int num, const V *value, int row, const V *b)
{
  V sum = V(0);

  for (int t = 0; t < num; t++) {
    const unsigned long long mask  = tiles[t].mask;
    const V                 *entry = value + tiles[t].first + EntriesBefore(mask, row);

    for (unsigned int left = RowOf(mask, row); left; left &= left - 1) sum += *entry++ * b[(PetscCount)tiles[t].block * Cols + __ffs((int)left) - 1];
  }
  return sum;
}

/* Two neighbours in a column of B, as one load where they are aligned. Where no row is left there is no entry. */
template <bool Aligned, typename V, typename I>
static __device__ __forceinline__ void LoadPair(const V *b, I row, I n, V x[2])
{
  if constexpr (Aligned) {
    const double2 pair = __ldg(reinterpret_cast<const double2 *>(b + min(row, n - 2)));

    x[0] = pair.x;
    x[1] = pair.y;
  } else {
    x[0] = GallopLoadReadOnly(b + min(row, n - 1));
    x[1] = GallopLoadReadOnly(b + min(row + 1, n - 1));
  }
}

/*
  N times eight columns, U tiles at once, those after them already under way. There is no test in the loop: behind the last tile comes the last one without entries, and columns that are not there are
  the last one once more.
*/
template <int N, int U, bool Aligned, typename V, typename I>
__global__ static void __launch_bounds__(TensorThreads, TensorBlocks) TensorKernel(const TilesView<V, I> s, const DenseView<V, I> dense, V *__restrict__ partial, const unsigned int blocks)
{
  static constexpr int Pairs = (N + 1) / 2;
  const I              first = (I)(blockIdx.x / blocks) * (8 * N); /* GPU blocks of the same columns come one after the other: pages of B and C count */
  const PetscCount     unit  = (blockIdx.x % blocks) * (PetscCount)TensorWarps + threadIdx.x / WarpSize;
  const int            lane = threadIdx.x % WarpSize, high = lane / Lanes, low = lane % Lanes;

  if (unit >= s.num) return;
  const I                    row = s.row[unit] + 2 * low, slot = s.slot[unit];
  const TiledSpMMTile *const tiles = s.tile + s.ptr[unit];
  const V *const             value = s.value + s.valueptr[unit];
  const int                  num   = (int)(s.ptr[unit + 1] - s.ptr[unit]);
  V                          acc[Pairs][2][2];
  bool                       exact = !HasTensor<V>();

  if constexpr (HasTensor<V>()) {
    const unsigned int below = BitsBelow(Cols * (high % (Rows / 2)) + 2 * low), one = below + 1, two = 2 * one; /* the lane's first entry in its half of the mask, and the second one */
    const bool         upper = high >= Rows / 2;
    const V           *b[N];
    uint4              now[U];
    const auto         Load = [&](uint4 to[U], int k) {
#pragma unroll
      for (int u = 0; u < U; u++) {
        to[u] = __ldg(reinterpret_cast<const uint4 *>(tiles + min(k + u, num - 1)));
        if (k + u >= num) to[u].x = to[u].y = 0;
      }
    };

#pragma unroll
    for (int n = 0; n < N; n++) b[n] = dense.b + (PetscCount)min(first + 8 * n + high, dense.columns - 1) * dense.ldb;
#pragma unroll
    for (int p = 0; p < Pairs; p++)
#pragma unroll
      for (int h = 0; h < 2; h++) acc[p][h][0] = acc[p][h][1] = V(0);
    if (num) Load(now, 0);
    GallopWaitForPredecessor();
    GallopLetSuccessorStart();
    __syncthreads(); /* no read-only load of B goes ahead of it */
#pragma unroll 2
    for (int k = 0; k < num; k += U) {
      uint4 next[U];
      V     a[U][2], x[U][2 * Pairs][2];

      Load(next, k + U);
#pragma unroll
      for (int u = 0; u < U; u++) {
        const unsigned int half = upper ? now[u].y : now[u].x, at = now[u].w + (upper ? __popc(now[u].x) : 0) + __popc(half & below);

        a[u][0] = half & one ? GallopLoadReadOnly(value + at) : V(0);
        a[u][1] = half & two ? GallopLoadReadOnly(value + at + (half & one ? 1 : 0)) : V(0);
#pragma unroll
        for (int n = 0; n < N; n++) LoadPair<Aligned>(b[n], (I)now[u].z * Cols + 2 * low, s.n, x[u][n]);
        if (N % 2) x[u][N][0] = x[u][N][1] = V(0);
      }
#pragma unroll
      for (int u = 0; u < U; u++) {
#pragma unroll
        for (int p = 0; p < Pairs; p++) MultiplyTile(acc[p], x[u] + 2 * p, a[u]);
        now[u] = next[u];
      }
    }
#pragma unroll
    for (int n = 0; n < N; n++) exact = exact || acc[n / 2][n % 2][0] != acc[n / 2][n % 2][0] || acc[n / 2][n % 2][1] != acc[n / 2][n % 2][1];
  } else {
    GallopWaitForPredecessor();
    GallopLetSuccessorStart();
    __syncthreads(); /* no read-only load of B goes ahead of it */
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
    bool entries = row + e < s.m;

    if (entries && dense.add && slot < 0) { /* nothing for a row without entries */
      entries = false;
      for (int k = 0; k < num && !entries; k++) entries = RowOf(tiles[k].mask, 2 * low + e);
    }
    if (!entries) continue;
#pragma unroll
    for (int n = 0; n < N; n++) {
      const I column = first + (I)(8 * n + high);
      V      &sum    = acc[n / 2][n % 2][e];

      if (column >= dense.columns) continue;
      if (exact) sum = MultiplyEntries<V>(tiles, num, value, 2 * low + e, dense.b + (PetscCount)column * dense.ldb);
      if (slot < 0) Store(dense, row + e, column, sum);
      else partial[((PetscCount)slot + (PetscCount)(2 * low + e) * s.slots[unit]) * dense.columns + column] = sum;
    }
  }
}

static constexpr PetscInt MostColumns = 32;
static constexpr int      TilesAtOnce = 4;

/* TiledSpMMHasTensor - Whether the kernel has been compiled for the GPU with the instructions for it */
PetscErrorCode TiledSpMMHasTensor(PetscBool *has)
{
  PetscFunctionBegin;
  PetscCallCUDA(GallopKernelOverlaps(TensorKernel<1, TilesAtOnce, false, PetscScalar, PetscInt>, has)); /* what both take is compute capability 9.0 */
  if (!PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_COMPLEX)) *has = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount Grid(const TiledSpMM *t)
{
  return (t->nunit + TensorWarps - 1) / TensorWarps;
}

/* TiledSpMMTensorPlan - How a product with so many columns is computed. Fewer columns at once where there are too few warps for the GPU. */
TiledSpMMPlan TiledSpMMTensorPlan(const TiledSpMM *t, PetscInt columns)
{
  static constexpr PetscInt Least = 8, Resident = 8 / TensorWarps; /* GPU blocks of a multiprocessor that hide latencies */
  PetscInt                  R = t->options.columns ? PetscMax(Least, t->options.columns) : MostColumns;

  while (R > Least && R >= 2 * columns) R /= 2;
  while (R > Least && !t->options.columns && Grid(t) * ((columns + R - 1) / R) < Resident * (PetscCount)t->multiprocessors) R /= 2;
  return {R, TilesAtOnce, TensorWarps, 1, TensorBlocks};
}

template <int N>
static cudaError_t LaunchTensor(const TiledSpMM *t, const DenseView<PetscScalar, PetscInt> &dense, PetscScalar *partial, cudaStream_t stream)
{
  const PetscCount                       groups  = (dense.columns + 8 * N - 1) / (8 * N);
  const TilesView<PetscScalar, PetscInt> s       = {t->nunit, t->m, t->n, t->unitrow, t->unitslot, t->unitnum, t->tileptr, t->valueptr, t->tile, t->value};
  const GallopGrid                       grid    = {Grid(t) * groups, TensorThreads, 1, 0, stream, Overlaps(t)};
  const unsigned int                     blocks  = (unsigned int)Grid(t);
  const bool                             aligned = (size_t)dense.b % sizeof(double2) == 0 && dense.ldb % 2 == 0 && t->n % 2 == 0;

  if constexpr (cuda::std::is_same_v<PetscScalar, double>)
    if (aligned) return GallopLaunch(TensorKernel<N, TilesAtOnce, true, PetscScalar, PetscInt>, grid, s, dense, partial, blocks);
  return GallopLaunch(TensorKernel<N, TilesAtOnce, false, PetscScalar, PetscInt>, grid, s, dense, partial, blocks);
}

PetscErrorCode TiledSpMMTensorApply(TiledSpMM *t, const GallopDenseProduct *p, PetscBool *done)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(TiledSpMMGetWork(t, (size_t)t->nslots * p->columns * sizeof(PetscScalar), done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ForColumns(p->columns, TiledSpMMTensorPlan(t, p->columns).columns, Grid(t), [&](PetscCount begin, PetscCount columns, PetscInt R) {
    const DenseView<PetscScalar, PetscInt> dense = DenseFrom(p, begin, columns);

    PetscFunctionBegin;
    PetscCallCUDA(R <= 8 ? LaunchTensor<1>(t, dense, t->work, stream) : R <= 16 ? LaunchTensor<2>(t, dense, t->work, stream) : LaunchTensor<4>(t, dense, t->work, stream));
    PetscCall(TiledSpMMCombine(t, t->work, (int)columns, dense, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }));
  PetscCallCUDA(GallopNotFresh(stream, &t->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- building */

/*
  Finding tiles is shared by warps: eight rows, a panel, are cut into parts where one of them has had another Part entries. So a part has Part entries of a row at most. It begins with a block of
  columns; parts of rows that are cut at the same place have nothing, all but the last.
*/
static constexpr PetscInt Part = 256;

struct PartsOfPanel {
  const PetscInt *i;
  PetscInt        m;

  __host__ __device__ PetscInt CutsOf(PetscInt r) const { return r < m && i[r + 1] > i[r] ? (i[r + 1] - i[r] - 1) / Part : 0; }

  __host__ __device__ PetscCount operator()(PetscCount panel) const
  {
    PetscCount num = panel * Rows < m; /* none behind the last rows, which ends the sums */

    for (PetscCount r = panel * Rows; r < m && r < (panel + 1) * Rows; r++) num += CutsOf((PetscInt)r);
    return num;
  }
};

/* Where parts begin: a warp a panel, a lane a cut, which finds its place among those of the other rows */
__global__ static void __launch_bounds__(Threads) CutKernel(const PartsOfPanel parts, PetscCount panels, const PetscInt *__restrict__ j, const PetscCount *__restrict__ partptr, PetscInt *__restrict__ partpanel, int *__restrict__ partblock)
{
  const PetscCount panel = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  const int        lane  = threadIdx.x % WarpSize;

  if (panel >= panels) return;
  const PetscCount first = partptr[panel], num = partptr[panel + 1] - first;

  for (PetscCount k = lane; k < num; k += WarpSize) {
    PetscCount cut = k - 1, rank = 1;
    PetscInt   r = (PetscInt)panel * Rows;

    partpanel[first + k] = (PetscInt)panel;
    if (k == 0) { /* the first part begins with the rows */
      partblock[first] = 0;
      continue;
    }
    while (cut >= parts.CutsOf(r)) cut -= parts.CutsOf(r++);
    const PetscInt block = j[parts.i[r] + (cut + 1) * Part] / Cols;

    for (PetscInt other = (PetscInt)panel * Rows; other < parts.m && other < ((PetscInt)panel + 1) * Rows; other++) {
      PetscInt low = 0, high = parts.CutsOf(other); /* cuts that come before */

      while (low < high) {
        const PetscInt middle = (low + high) / 2, at = j[parts.i[other] + (middle + 1) * Part] / Cols;

        if (at < block || (at == block && (other < r || (other == r && middle < cut)))) low = middle + 1;
        else high = middle;
      }
      rank += low;
    }
    if (rank < num) partblock[first + rank] = (int)block; /* where columns do not increase, searches may count a cut that does not come before */
  }
}

/*
  A warp finds the tiles of a part: the first column of its eight rows that none has passed yet begins one. Lanes look at the next eight entries of a row, two each. Counts tiles, or stores them.
  Columns that do not increase are told in *unordered. There are at most most parts: those that are not there have no tiles. Where no row is cut a panel is a part, and arrays of parts are NULL.
*/
template <bool Count>
__global__ static void __launch_bounds__(Threads) TilesKernel(PetscInt m, PetscCount panels, PetscCount most, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscCount *__restrict__ partptr, const PetscInt *__restrict__ partpanel, const int *__restrict__ partblock, PetscCount *__restrict__ tileptr, TiledSpMMTile *__restrict__ tile, int *__restrict__ unordered)
{
  static constexpr unsigned int None = 0xffffffffu;
  const PetscCount              part = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize, parts = partptr ? partptr[panels] : panels;
  const int                     lane = threadIdx.x % WarpSize, row = lane / Lanes, low = lane % Lanes, shift = Cols * (row % (Rows / 2));

  if (part >= parts) {
    if (Count && part <= most && lane == 0) tileptr[part] = 0;
    return;
  }
  const PetscInt     panel = partptr ? partpanel[part] : (PetscInt)part, r = panel * Rows + row, begin = r < m ? i[r] : 0, end = r < m ? i[r + 1] : 0;
  const bool         begins = !partptr || part == partptr[panel], ends = !partptr || part + 1 == partptr[panel + 1];
  const unsigned int stop      = ends ? None : (unsigned int)partblock[part + 1];
  PetscInt           p         = begins ? begin : (PetscInt)LowerBound(j, begin, end, (PetscInt)partblock[part] * Cols);
  PetscCount         t         = Count ? 0 : tileptr[part];
  unsigned int       first     = GallopGroupSum(low == 0 ? (unsigned int)(p - begin) : 0u, WarpSize); /* entries of the rows before */
  bool               increases = true;

  for (;;) {
    unsigned int block[2], own = 0;
    PetscInt     column[2];

#pragma unroll
    for (int e = 0; e < 2; e++) {
      const PetscInt k = p + 2 * low + e;

      column[e] = k < end ? j[k] : -1;
      block[e]  = k < end ? (unsigned int)(column[e] / Cols) : None;
      if (Count) increases = increases && (k + 1 >= end || j[k + 1] > column[e]);
    }
    const unsigned int least = GallopWarpMin(min(block[0], block[1]));

    if (least >= stop) break;
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (block[e] == least) own |= 1u << (shift + (int)(column[e] % Cols));
    const unsigned int lower = GallopWarpOr(row < Rows / 2 ? own : 0), upper = GallopWarpOr(row < Rows / 2 ? 0 : own);

    if (!Count && lane == 0) tile[t] = {(unsigned long long)upper << 32 | lower, (int)least, first};
    first += __popc(lower) + __popc(upper);
    p += __popc((row < Rows / 2 ? lower : upper) >> shift & BitsBelow(Cols));
    t++;
  }
  if (Count) {
    if (!ends && p != LowerBound(j, begin, end, (PetscInt)stop * Cols)) increases = false; /* the next part goes on elsewhere: what lies between was not looked at */
    if (!increases) *unordered = 1;
    if (lane == 0) tileptr[part] = t;
  }
}

/* Sums over panels: their units, tiles, and whether a column does not increase */
struct Found {
  Pieces     units;
  PetscCount tiles, unordered;
};

struct FoundAdd {
  __host__ __device__ Found operator()(const Found &a, const Found &b) const { return {PiecesAdd()(a.units, b.units), a.tiles + b.tiles, a.unordered + b.unordered}; }
};

/* Of a panel: more than one unit where it has more than twice size tiles */
struct FoundOfPanel {
  const PetscCount *partptr, *tileptr; /* parts of panels, where there are any, and first tile of each part */
  const int        *unordered;
  PetscInt          m;
  PetscCount        panels, size;

  __host__ __device__ Found operator()(PetscCount panel) const
  {
    if (panel >= panels)
      return {
        {0, 0, 0, 0},
        0, 0
      };
    const PetscCount part = partptr ? partptr[panel] : panel, end = partptr ? partptr[panel + 1] : panel + 1, tiles = tileptr[end] - tileptr[part];
    const PetscCount rows = m - panel * Rows < Rows ? m - panel * Rows : Rows, num = tiles > 2 * size ? (tiles + size - 1) / size : 1;

    return {PiecesOf(num, rows), tiles, panel == 0 ? *unordered : 0};
  }
};

/* A thread for a panel, and its units; and rows that have partial sums, those with many of them from the end on */
__global__ static void __launch_bounds__(Threads) UnitsKernel(PetscInt m, PetscCount panels, const PetscInt *__restrict__ i, const Found *__restrict__ before, PetscInt *__restrict__ unitrow, PetscInt *__restrict__ unitslot, PetscInt *__restrict__ unitnum, PetscCount *__restrict__ tileptr, PetscCount *__restrict__ valueptr, PetscCount nsplit, PetscInt *__restrict__ splitrow, PetscInt *__restrict__ splitptr, PetscInt *__restrict__ splitnum)
{
  const PetscCount panel = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (panel > panels) return;
  const Pieces     b     = before[panel].units;
  const PetscCount begin = before[panel].tiles;

  if (panel == panels) {
    tileptr[b.num] = begin;
    return;
  }
  const PetscInt   row   = (PetscInt)panel * Rows;
  const PetscCount tiles = before[panel + 1].tiles - begin;
  const Pieces     own   = PiecesOf(before[panel + 1].units.num - b.num, m - row < Rows ? m - row : Rows);

  for (PetscCount u = 0; u < own.num; u++) {
    unitrow[b.num + u]  = row;
    unitslot[b.num + u] = own.num > 1 ? (PetscInt)(b.slots + u) : -1;
    unitnum[b.num + u]  = (PetscInt)own.num;
    tileptr[b.num + u]  = begin + tiles * u / own.num;
    valueptr[b.num + u] = i[row];
  }
  for (PetscCount r = 0; r < own.few + own.many; r++) {
    const PetscCount at = PlaceOfSplit(own, b, r, nsplit);

    splitrow[at] = (PetscInt)(row + r);
    splitptr[at] = (PetscInt)(b.slots + r * own.num);
    splitnum[at] = (PetscInt)own.num;
  }
}

/* A warp stores the values of a unit's tiles: the entries of a row are in order in both */
__global__ static void __launch_bounds__(Threads) ValuesKernel(PetscInt m, PetscCount nunit, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const PetscInt *__restrict__ unitrow, const PetscInt *__restrict__ unitslot, const PetscCount *__restrict__ tileptr, const PetscCount *__restrict__ valueptr, const TiledSpMMTile *__restrict__ tile, PetscScalar *__restrict__ value)
{
  const PetscCount unit = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize, row = lane / Lanes, low = lane % Lanes;

  if (unit >= nunit) return;
  const PetscCount   end = tileptr[unit + 1];
  const PetscInt     r   = unitrow[unit] + row;
  PetscScalar *const to  = value + valueptr[unit];
  PetscCount         t   = tileptr[unit];
  PetscInt           p   = r >= m ? 0 : unitslot[unit] < 0 || t == end ? i[r] : (PetscInt)LowerBound(j, i[r], i[r + 1], (PetscInt)tile[t].block * Cols);

  for (; t < end; t++) {
    const unsigned long long mask = tile[t].mask;
    const int                own = __popc(RowOf(mask, row)), at = (int)tile[t].first + EntriesBefore(mask, row);

    for (int k = low; k < own; k += Lanes) to[at + k] = a[p + k];
    p += own;
  }
}

TILEDSPMM_CARVE(CarveArrays, TILEDSPMM_UNITS)

/* What is needed until the tiles are there */
typedef struct {
  PetscCount *partptr;   /* [panels + 1] parts of panels, and of each its panel and where it begins; NULL where a panel is a part */
  PetscInt   *partpanel; /* [parts] */
  int        *partblock; /* [parts] */
  PetscCount *tileptr;   /* [parts + 1] first tile of each */
  Found      *before;    /* [panels + 1] what the panels before have */
  int        *unordered;
  char       *cub;
  size_t      cubbytes;
} Workspace;

static size_t Carve(Workspace *w, PetscCount panels, PetscCount parts, void *base)
{
  GallopCarver carver(base);

  if (parts > panels) {
    carver.Take(w->partptr, panels + 1);
    carver.Take(w->partpanel, parts);
    carver.Take(w->partblock, parts);
  }
  carver.Take(w->tileptr, parts + 1);
  carver.Take(w->before, panels + 1);
  carver.Take(w->unordered, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

PetscErrorCode TiledSpMMTensorRefresh(TiledSpMM *t, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<GallopBlocksFor(t->nunit * WarpSize, Threads), Threads, 0, stream>>>(csr->m, t->nunit, csr->i, csr->j, csr->a, t->unitrow, t->unitslot, t->tileptr, t->valueptr, t->tile, t->value);
  GallopCheckLaunch();
  t->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tiles are counted, and units that each have at most about size of them where a panel has many */
static PetscErrorCode FindTiles(const GallopCSR *csr, Workspace *w, PetscCount panels, PetscCount parts, PetscCount size, cudaStream_t stream, Found *found)
{
  const PartsOfPanel cuts    = {csr->i, csr->m};
  const FoundOfPanel counted = {w->partptr, w->tileptr, w->unordered, csr->m, panels, size};

  PetscFunctionBegin;
  PetscCall(GallopDeviceZero(w->unordered, sizeof(*w->unordered)));
  if (w->partptr) {
    PetscCall(GallopDeviceZero(w->partblock, (size_t)parts * sizeof(*w->partblock))); /* where columns do not increase, parts may have no place */
    PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), cuts), w->partptr, panels + 1, stream));
    CutKernel<<<GallopBlocksFor(panels * WarpSize, Threads), Threads, 0, stream>>>(cuts, panels, csr->j, w->partptr, w->partpanel, w->partblock);
    GallopCheckLaunch();
  }
  TilesKernel<true><<<GallopBlocksFor((parts + 1) * WarpSize, Threads), Threads, 0, stream>>>(csr->m, panels, parts, csr->i, csr->j, w->partptr, w->partpanel, w->partblock, w->tileptr, NULL, w->unordered);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, w->tileptr, w->tileptr, parts + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, w->cubbytes, thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), counted), w->before, FoundAdd(), Found{}, panels + 1, stream));
  PetscCall(GallopDeviceCopyOut(found, w->before + panels, sizeof(*found)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for tiles and units, and what is in it */
static PetscErrorCode MakeTiles(TiledSpMM *t, const GallopCSR *csr, const Workspace *w, PetscCount panels, PetscCount parts, PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  void *memory = NULL;

  PetscFunctionBegin;
  t->bytes = TiledSpMMBytes(t);
  if (!maxbytes || t->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(CarveArrays(t, NULL), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveArrays(t, memory);
  TilesKernel<false><<<GallopBlocksFor(parts * WarpSize, Threads), Threads, 0, stream>>>(csr->m, panels, parts, csr->i, csr->j, w->partptr, w->partpanel, w->partblock, w->tileptr, t->tile, NULL);
  GallopCheckLaunch();
  UnitsKernel<<<GallopBlocksFor(panels + 1, Threads), Threads, 0, stream>>>(csr->m, panels, csr->i, w->before, t->unitrow, t->unitslot, t->unitnum, t->tileptr, t->valueptr, t->nsplit, t->splitrow, t->splitptr, t->splitnum);
  GallopCheckLaunch();
  PetscCall(TiledSpMMTensorRefresh(t, csr));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tiles of a unit, on average, where panels have many: units enough for all multiprocessors. More cost more than they spread. */
static PetscCount UnitSize(const TiledSpMM *t, double entries)
{
  static constexpr PetscCount Least = 16, Warps = 16;

  return t->options.segment ? (PetscCount)t->options.segment : PetscMax(Least, (PetscCount)((double)t->nz / entries) / (Warps * t->multiprocessors));
}

/*
  TiledSpMMTensorBuild - Given the longest row and about how many entries a tile has. *done stays false where columns do not increase, too, and where tiles turn out to have too few entries to be chosen
*/
PetscErrorCode TiledSpMMTensorBuild(TiledSpMM *t, const GallopCSR *csr, PetscInt longest, double entries, PetscCount maxbytes, PetscBool *done)
{
  const PetscCount panels = ((PetscCount)t->m + Rows - 1) / Rows, parts = panels + (longest > Part ? t->nz / Part : 0); /* at most */
  const auto       pieces = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), FoundOfPanel{});
  PetscCount      *count  = NULL;
  Workspace        w      = {};
  Found            found;
  void            *memory;
  size_t           bytes, most[2];
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopKernelOverlaps(TensorKernel<1, TilesAtOnce, false, PetscScalar, PetscInt>, &t->overlaps));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, most[0], pieces, w.before, FoundAdd(), Found{}, panels + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, most[1], count, count, parts + 1, stream));
  w.cubbytes = PetscMax(most[0], most[1]);
  bytes      = Carve(&w, panels, parts, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, panels, parts, memory);
  PetscCall(FindTiles(csr, &w, panels, parts, UnitSize(t, entries), stream, &found));
  t->ntile  = found.tiles;
  t->stored = t->nz;
  t->nunit  = found.units.num;
  t->nsplit = found.units.few + found.units.many;
  t->nmany  = found.units.many;
  t->nslots = found.units.slots;
  /* the choice was made by some of the rows; places of partial sums are PetscInt */
  if (!found.unordered && found.units.slots <= PETSC_INT_MAX && (t->options.kernel != TILEDSPMM_CHOOSE || TiledSpMMIsDense((double)t->nz, (double)t->ntile)))
    PetscCall(MakeTiles(t, csr, &w, panels, parts, maxbytes, stream, done));
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}
