/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM's footprints: which rows of B a panel refers to, how many, and in how many lines of memory they are. Each panel's by bits in shared memory, or all by a sort. */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include "../common/bits.h"
#include "../common/footprint.h"
#include "tiledspmmstaged.h"

static constexpr int InspectThreads = 512, InspectWords = 8192; /* a thread block that looks for a footprint marks columns by InspectWords words of bits */

/* Calls what(entry, column) for the entries of a panel, by all threads of a thread block */
template <typename What>
static __device__ __forceinline__ void WalkPanel(const StagedPattern &A, PetscInt p, What what)
{
  static constexpr int Ahead = 4;
  const PetscCount     begin = A.i[p * A.panel], end = A.order ? begin : A.i[A.End(p)];

  if (A.order) /* each warp has a row */
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

/* ---- panel by panel ---- */

/* Where the result goes: sizes; or the lines of a column of B, added up; or the footprints, each of which begins in map at mapfirst */
struct FootprintsTo {
  PetscInt           *size;
  unsigned long long *lines;
  PetscInt           *map;
  const PetscCount   *mapfirst;
};

/* Each thread block has a panel. With scattered: says so there, where it would have to read the entries often, and counts none. */
__global__ static void __launch_bounds__(InspectThreads, 4) FootprintKernel(StagedPattern A, FootprintsTo to, int *scattered)
{
  __shared__ GallopFootprintMarks<InspectThreads, InspectWords> marks;
  PetscInt *const __restrict__ map = to.map;
  const PetscInt p                 = (PetscInt)blockIdx.x;
  const PetscInt num               = GallopFootprint(marks, PETSC_INT_MAX, scattered != NULL, 1, map ? map + GallopLoadReadOnly(to.mapfirst + p) : NULL,
                                                     [&](auto mark) { WalkPanel(A, p, [&](PetscCount, PetscInt col) { mark((int)(to.lines ? TiledSpMMLineOf(col) : col)); }); });

  if (threadIdx.x) return;
  if (num == GallopFootprintScattered) *scattered = 1;
  if (to.lines) atomicAdd(to.lines, (unsigned long long)PetscMax(num, 0));
  else if (!map) to.size[p] = PetscMax(num, 0);
}

static PetscErrorCode LaunchFootprints(const StagedPattern &A, const FootprintsTo &to, int *scattered)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  FootprintKernel<<<(unsigned int)A.panels, InspectThreads, 0, stream>>>(A, to, scattered);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines are needed where it is chosen by them whether rows stay sorted */
static unsigned long long *LinesOf(const TiledSpMM *t, const StagedCount *w)
{
  return t->options.reorder == TILEDSPMM_REORDER_CHOOSE ? &w->foundthere->lines : NULL;
}

static PetscErrorCode MeasurePanels(const TiledSpMM *t, const StagedPattern &A, const StagedCount *w, int *scattered)
{
  unsigned long long *const lines = LinesOf(t, w);

  PetscFunctionBegin;
  PetscCall(LaunchFootprints(A, {w->size, NULL, NULL, NULL}, scattered));
  if (lines) PetscCall(LaunchFootprints(A, {NULL, lines, NULL, NULL}, scattered));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMMeasureFootprints - Panel by panel, with a limit on how often the entries are read */
PetscErrorCode TiledSpMMMeasureFootprints(const TiledSpMM *t, const StagedPattern *A, StagedCount *w)
{
  PetscFunctionBegin;
  PetscCall(MeasurePanels(t, *A, w, &w->foundthere->scattered));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- by a sort of all entries, by panels and columns: linear in the entries, be their columns as far apart as they may ---- */

/* Panels in the upper bits, columns in the lower ones: sorted, and each one once, they are the footprints */
using PanelKey = unsigned long long;

/* Each thread block has a panel: the keys of its entries */
__global__ static void __launch_bounds__(InspectThreads) PanelKeysKernel(StagedPattern A, int colbits, PanelKey *__restrict__ keys)
{
  const PetscInt p = (PetscInt)blockIdx.x;

  WalkPanel(A, p, [&](PetscCount e, PetscInt col) { keys[e] = (PanelKey)p << colbits | (PanelKey)col; });
}

/* Each thread has a panel */
__global__ static void __launch_bounds__(Threads) SizesKernel(PetscInt panels, int colbits, const PanelKey *__restrict__ keys, const PetscCount *__restrict__ num, PetscInt *__restrict__ size)
{
  const PetscCount p = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (p < panels) size[p] = (PetscInt)(LowerBound(keys, 0, *num, (PanelKey)(p + 1) << colbits) - LowerBound(keys, 0, *num, (PanelKey)p << colbits));
}

/* Each thread has a key: its column to map, where there is one; else whether it begins a line, which are counted in *lines */
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

/* The keys, and room for sorting them */
struct SortWork {
  PanelKey   *keys, *others;
  PetscCount *num;
  char       *cub;
  size_t      cubbytes;
};

/* What FootprintKernel finds: the sizes of footprints and their lines, where these are wanted, or the footprints. *done is false where there is no room. */
static PetscErrorCode SortFootprints(const TiledSpMM *t, const StagedPattern &A, const FootprintsTo &to, PetscBool *done)
{
  const int                   colbits = GallopSortBits(t->n), bits = colbits + GallopSortBits(t->panels);
  cub::DoubleBuffer<PanelKey> keys(NULL, NULL);
  SortWork                    w         = {};
  size_t                      sortbytes = 0, uniquebytes = 0;
  void                       *memory;
  cudaStream_t                stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceRadixSort::SortKeys(nullptr, sortbytes, keys, t->nz, 0, bits, stream));
  PetscCallCUDA(cub::DeviceSelect::Unique(nullptr, uniquebytes, w.keys, w.others, w.num, t->nz, stream));
  w.cubbytes = PetscMax(sortbytes, uniquebytes);
  PetscCall(Allocate(
    GallopWorkspaceMalloc,
    [&](GallopCarver &carver) {
      carver.Take(w.keys, t->nz);
      carver.Take(w.others, t->nz);
      carver.Take(w.num, 1);
      carver.Take(w.cub, (PetscCount)w.cubbytes);
    },
    &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  keys = cub::DoubleBuffer<PanelKey>(w.keys, w.others);
  PanelKeysKernel<<<(unsigned int)t->panels, InspectThreads, 0, stream>>>(A, colbits, w.keys);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortKeys(w.cub, w.cubbytes, keys, t->nz, 0, bits, stream));
  PetscCallCUDA(cub::DeviceSelect::Unique(w.cub, w.cubbytes, keys.Current(), keys.Alternate(), w.num, t->nz, stream));
  if (to.size) {
    SizesKernel<<<GallopBlocksFor(t->panels, Threads), Threads, 0, stream>>>(t->panels, colbits, keys.Alternate(), w.num, to.size);
    GallopCheckLaunch();
  }
  if (to.lines || to.map) {
    KeysKernel<<<GallopBlocksFor(t->nz, Threads), Threads, 0, stream>>>(colbits, keys.Alternate(), w.num, to.map, to.lines);
    GallopCheckLaunch();
  }
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMMeasureScattered - By a sort; without room for it panel by panel, which may have to read the entries often */
PetscErrorCode TiledSpMMMeasureScattered(const TiledSpMM *t, const StagedPattern *A, StagedCount *w)
{
  PetscBool    done;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(&w->foundthere->lines, 0, sizeof(w->foundthere->lines), stream));
  PetscCall(SortFootprints(t, *A, {w->size, LinesOf(t, w), NULL, NULL}, &done));
  if (!done) PetscCall(MeasurePanels(t, *A, w, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMStoreFootprints - As they were measured, or without room for a sort panel by panel */
PetscErrorCode TiledSpMMStoreFootprints(const TiledSpMM *t, const StagedPattern *A, const StagedCount *w)
{
  const FootprintsTo to   = {NULL, NULL, t->map, w->mapfirst};
  PetscBool          done = PETSC_FALSE;

  PetscFunctionBegin;
  if (w->found.scattered) PetscCall(SortFootprints(t, *A, to, &done));
  if (!done) PetscCall(LaunchFootprints(*A, to, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
