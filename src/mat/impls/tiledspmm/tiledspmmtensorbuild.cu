/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The tiles of TiledSpMM's tensor kernel, and units of them, each the work of a warp. Tiles are counted, which tells how many units there are, then the arrays are filled.
*/

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "tiledspmmbuild.h"
#include "tiledspmmtiles.h"

/* ---------------------------------------------------------------- parts of panels */

/*
  Finding tiles is shared by warps: eight rows, a panel, are cut into parts where one of them has had another Part entries. So a part has Part entries of a row at most. It begins with a block of
  columns; parts of rows that are cut at the same place have nothing, all but the last.
*/
static constexpr PetscInt Part = 256;

/* CSR's pattern, and how many panels it has */
struct Panels {
  PetscInt        m;
  PetscCount      num;
  const PetscInt *i, *j;
};

static Panels PanelsOf(const GallopCSR *csr)
{
  return {csr->m, ((PetscCount)csr->m + Rows - 1) / Rows, csr->i, csr->j};
}

/* At most most parts; these arrays are NULL where no row is cut, and a panel is a part */
struct Parts {
  PetscCount  most;
  PetscCount *ptr;   /* [panels + 1] first part of each panel */
  PetscInt   *panel; /* [parts] */
  int        *block; /* [parts] where a part begins */
};

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

/* Where parts begin: each warp has a panel, each lane a cut, and finds its place among those of the other rows */
__global__ static void __launch_bounds__(Threads) CutKernel(const Panels A, const PartsOfPanel parts, const Parts to)
{
  const PetscInt *const __restrict__ j         = A.j;
  const PetscCount *const __restrict__ partptr = to.ptr;
  PetscInt *const __restrict__ partpanel       = to.panel;
  int *const __restrict__ partblock            = to.block;
  const PetscCount panel                       = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  const int        lane                        = threadIdx.x % WarpSize;

  if (panel >= A.num) return;
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

/* ---------------------------------------------------------------- count, and fill alike */

/*
  A warp finds the tiles of a part: the first column of its eight rows that none has passed yet begins one. Lanes look at the next eight entries of a row, two each. Counts tiles, or stores them.
  Columns that do not increase are told in *unordered. Of the most parts that there may be, those that are not there have no tiles. The arrays are arguments
  by themselves: the compiler sees then that nothing writes them.
*/
template <bool Count>
__global__ static void __launch_bounds__(Threads) TilesKernel(PetscInt m, PetscCount panels, PetscCount most, In<PetscInt> i, In<PetscInt> j, In<PetscCount> partptr, In<PetscInt> partpanel, In<int> partblock, Out<PetscCount> tileptr, Out<TiledSpMMTile> tile, Out<int> unordered)
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

/* ---------------------------------------------------------------- count */

/* Sums over panels: their units, tiles, and whether a column does not increase */
struct TilesFound {
  Pieces     units;
  PetscCount tiles, unordered;
};

struct TilesFoundAdd {
  __host__ __device__ TilesFound operator()(const TilesFound &a, const TilesFound &b) const { return {PiecesAdd()(a.units, b.units), a.tiles + b.tiles, a.unordered + b.unordered}; }
};

/* Of a panel: more than one unit where it has more than twice size tiles */
struct TilesFoundOfPanel {
  const PetscCount *partptr, *tileptr; /* parts of panels, where there are any, and first tile of each part */
  const int        *unordered;
  PetscInt          m;
  PetscCount        panels, size;

  __host__ __device__ TilesFound operator()(PetscCount panel) const
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

/* What is needed until the tiles are there */
struct TilesWork {
  Parts       parts;
  PetscCount *tileptr; /* [parts + 1] first tile of each */
  TilesFound *before;  /* [panels + 1] what the panels before have */
  int        *unordered;
  char       *cub;
  size_t      cubbytes;
};

static PetscErrorCode AllocateWork(const Panels &A, TilesWork *w, cudaStream_t stream, void **memory)
{
  const auto  pieces = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), TilesFoundOfPanel{});
  PetscCount *count  = NULL;
  size_t      most[2];

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, most[0], pieces, w->before, TilesFoundAdd(), TilesFound{}, A.num + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, most[1], count, count, w->parts.most + 1, stream));
  w->cubbytes = PetscMax(most[0], most[1]);
  PetscCall(Allocate(
    GallopWorkspaceMalloc,
    [&](GallopCarver &carver) {
      if (w->parts.most > A.num) {
        carver.Take(w->parts.ptr, A.num + 1);
        carver.Take(w->parts.panel, w->parts.most);
        carver.Take(w->parts.block, w->parts.most);
      }
      carver.Take(w->tileptr, w->parts.most + 1);
      carver.Take(w->before, A.num + 1);
      carver.Take(w->unordered, 1);
      carver.Take(w->cub, (PetscCount)w->cubbytes);
    },
    memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CutPanels(const Panels &A, TilesWork *w, cudaStream_t stream)
{
  const PartsOfPanel parts = {A.i, A.m};
  const auto         each  = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), parts);

  PetscFunctionBegin;
  PetscCall(GallopDeviceZero(w->parts.block, (size_t)w->parts.most * sizeof(*w->parts.block))); /* where columns do not increase, parts may have no place */
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, each, w->parts.ptr, A.num + 1, stream));
  CutKernel<<<GallopBlocksFor(A.num * WarpSize, Threads), Threads, 0, stream>>>(A, parts, w->parts);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tiles, and units, each of which has at most about size of them where a panel has many */
static PetscErrorCode CountTiles(const Panels &A, TilesWork *w, PetscCount size, cudaStream_t stream, TilesFound *found)
{
  const Parts &p    = w->parts;
  const auto   each = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscCount)0), TilesFoundOfPanel{w->parts.ptr, w->tileptr, w->unordered, A.m, A.num, size});

  PetscFunctionBegin;
  PetscCall(GallopDeviceZero(w->unordered, sizeof(*w->unordered)));
  if (w->parts.ptr) PetscCall(CutPanels(A, w, stream));
  TilesKernel<true><<<GallopBlocksFor((w->parts.most + 1) * WarpSize, Threads), Threads, 0, stream>>>(A.m, A.num, p.most, A.i, A.j, p.ptr, p.panel, p.block, w->tileptr, NULL, w->unordered);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, w->tileptr, w->tileptr, w->parts.most + 1, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, w->cubbytes, each, w->before, TilesFoundAdd(), TilesFound{}, A.num + 1, stream));
  PetscCall(GallopDeviceCopyOut(found, w->before + A.num, sizeof(*found)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- fill */

/* The arrays that UnitsKernel fills */
struct UnitArrays {
  PetscInt   *row, *slot, *num;
  PetscCount *tileptr, *valueptr;
  SplitRows   splits;

  explicit UnitArrays(const TiledSpMM *t) : row(t->unitrow), slot(t->unitslot), num(t->unitnum), tileptr(t->tileptr), valueptr(t->valueptr), splits(t) { }
};

/* A thread for a panel, and its units; and rows that have partial sums */
__global__ static void __launch_bounds__(Threads) UnitsKernel(const Panels A, const TilesFound *__restrict__ before, const UnitArrays to)
{
  const PetscCount panel = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (panel > A.num) return;
  const Pieces     b     = before[panel].units;
  const PetscCount begin = before[panel].tiles;

  if (panel == A.num) {
    to.tileptr[b.num] = begin;
    return;
  }
  const PetscInt   row   = (PetscInt)panel * Rows;
  const PetscCount tiles = before[panel + 1].tiles - begin;
  const Pieces     own   = PiecesOf(before[panel + 1].units.num - b.num, A.m - row < Rows ? A.m - row : Rows);

  const PetscCount first = GallopLoadReadOnly(A.i + row);

  for (PetscCount u = 0; u < own.num; u++) {
    to.row[b.num + u]      = row;
    to.slot[b.num + u]     = own.num > 1 ? (PetscInt)(b.slots + u) : -1;
    to.num[b.num + u]      = (PetscInt)own.num;
    to.tileptr[b.num + u]  = begin + tiles * u / own.num;
    to.valueptr[b.num + u] = first;
  }
  for (PetscCount r = 0; r < own.few + own.many; r++) to.splits.Set(own, b, r, (PetscInt)(row + r));
}

/* A warp stores the values of a unit's tiles: the entries of a row are in order in both */
__global__ static void __launch_bounds__(Threads) ValuesKernel(const Panels A, const PetscScalar *__restrict__ a, const TilesView<PetscScalar, PetscInt> s, PetscScalar *__restrict__ value)
{
  const PetscCount unit = (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
  const int        lane = threadIdx.x % WarpSize, row = lane / Lanes, low = lane % Lanes;

  if (unit >= s.num) return;
  const PetscInt *const __restrict__ i = A.i, *const __restrict__ j = A.j;
  const TiledSpMMTile *const __restrict__ tile = s.tile;
  const PetscCount   end                       = s.ptr[unit + 1];
  const PetscInt     r                         = s.row[unit] + row;
  PetscScalar *const to                        = value + s.valueptr[unit];
  PetscCount         t                         = s.ptr[unit];
  PetscInt           p                         = r >= A.m ? 0 : s.slot[unit] < 0 || t == end ? i[r] : (PetscInt)LowerBound(j, i[r], i[r + 1], (PetscInt)tile[t].block * Cols);

  for (; t < end; t++) {
    const unsigned long long mask = tile[t].mask;
    const int                own = __popc(RowOf(mask, row)), at = (int)tile[t].first + EntriesBefore(mask, row);

    for (int k = low; k < own; k += Lanes) to[at + k] = a[p + k];
    p += own;
  }
}

PetscErrorCode TiledSpMMTensorRefresh(TiledSpMM *t, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<GallopBlocksFor(t->nunit * WarpSize, Threads), Threads, 0, stream>>>(PanelsOf(csr), csr->a, TilesOf(t), t->value);
  GallopCheckLaunch();
  t->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillTiles(TiledSpMM *t, const GallopCSR *csr, const Panels &A, const TilesWork *w, cudaStream_t stream)
{
  const Parts &p = w->parts;

  PetscFunctionBegin;
  TilesKernel<false><<<GallopBlocksFor(w->parts.most * WarpSize, Threads), Threads, 0, stream>>>(A.m, A.num, p.most, A.i, A.j, p.ptr, p.panel, p.block, w->tileptr, t->tile, NULL);
  GallopCheckLaunch();
  UnitsKernel<<<GallopBlocksFor(A.num + 1, Threads), Threads, 0, stream>>>(A, w->before, UnitArrays(t));
  GallopCheckLaunch();
  PetscCall(TiledSpMMTensorRefresh(t, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- both */

TILEDSPMM_ALLOCATE(AllocateUnits, TILEDSPMM_UNITS)

/* Tiles of a unit, on average, where panels have many: units enough for all multiprocessors. More cost more than they spread. */
static PetscCount UnitSize(const TiledSpMM *t, double entries)
{
  static constexpr PetscCount Least = 16, Warps = 16; /* tiles; warps per multiprocessor */

  return t->options.segment ? (PetscCount)t->options.segment : PetscMax(Least, (PetscCount)((double)t->nz / entries) / (Warps * t->multiprocessors));
}

/* Whether the tiles that have been counted are kept: the choice was made by some of the rows, and places of partial sums are PetscInt */
static bool IsWanted(const TiledSpMM *t, const TilesFound &found)
{
  if (found.unordered || found.units.slots > PETSC_INT_MAX) return false;
  return t->options.kernel != TILEDSPMM_CHOOSE || TiledSpMMIsDense((double)t->nz, (double)found.tiles);
}

/*
  TiledSpMMTensorBuild - Given the longest row and about how many entries a tile has. *done stays false where columns do not increase, too, and where tiles turn out to have too few entries to be chosen
*/
PetscErrorCode TiledSpMMTensorBuild(TiledSpMM *t, const GallopCSR *csr, PetscInt longest, double entries, PetscCount maxbytes, PetscBool *done)
{
  const Panels A = PanelsOf(csr);
  TilesWork    w = {};
  TilesFound   found;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(TiledSpMMKernelsOverlap(&t->overlaps));
  *done        = PETSC_FALSE;
  w.parts.most = A.num + (longest > Part ? t->nz / Part : 0);
  PetscCall(AllocateWork(A, &w, stream, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CountTiles(A, &w, UnitSize(t, entries), stream, &found));
  t->ntile  = found.tiles;
  t->stored = t->nz;
  t->nunit  = found.units.num;
  SetSplits(t, found.units);
  if (IsWanted(t, found) && FitsMemory(t, maxbytes)) PetscCall(AllocateUnits(t, done));
  if (*done) PetscCall(FillTiles(t, csr, A, &w, stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}
