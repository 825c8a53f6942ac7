/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM with stages: with the order of rows chosen and all counted, its arrays, and new values */

#include <cub/device/device_scan.cuh>
#include "tiledspmmstaged.h"

/* ---------------------------------------------------------------- fill: stages */

/* Where stages begin: each thread has a panel */
__global__ static void __launch_bounds__(Threads) StagesKernel(StagedPattern A, const PetscCount *__restrict__ mapfirst, TiledSpMM t)
{
  const PetscCount p = blockIdx.x * (PetscCount)Threads + threadIdx.x;

  if (p == 0) t.mapdispl[t.stages] = t.nmap;
  if (p >= A.panels) return;
  for (PetscCount s = t.stagedispl[p]; s < t.stagedispl[p + 1]; s++) t.mapdispl[s] = mapfirst[p] + (s - t.stagedispl[p]) * A.stage;
}

/* Each thread block has a stage, each thread a row of the panel: the entries of the row in the stage, where they begin, and how much room each warp needs */
__global__ static void __launch_bounds__(TILEDSPMM_MAX_PANEL) LengthsKernel(StagedPattern A, TiledSpMM t, PetscInt *__restrict__ start)
{
  const PetscCount s = blockIdx.x, warps = blockDim.x / WarpSize;
  const PetscInt   p     = LastNotAbove(A.panels - 1, s, [&](PetscInt k) { return t.stagedispl[k]; }); /* of those that begin with it, the last has it */
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

/* ---------------------------------------------------------------- fill: entries */

/* The same threads: the entries, and the padding behind them */
__global__ static void __launch_bounds__(TILEDSPMM_MAX_PANEL) EntriesKernel(StagedPattern A, TiledSpMM t, const PetscInt *__restrict__ start, const PetscScalar *__restrict__ a)
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
  ValuesKernel<<<GallopBlocksFor(t->stored, Threads), Threads, 0, stream>>>(t->stored, t->from, csr->a, t->value);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- all of it */

TILEDSPMM_ALLOCATE(AllocateSegments, TILEDSPMM_SEGMENTS)
TILEDSPMM_ALLOCATE(AllocateStages, TILEDSPMM_STAGES)
TILEDSPMM_ALLOCATE(AllocateEntries, TILEDSPMM_ENTRIES)

/* What is needed until the entries are there */
struct EntriesWork {
  PetscInt *start; /* [rows of panels, in all stages] where the entries of a row begin in a stage */
  char     *cub;
  size_t    cubbytes;
};

/* The stages, which tell how many entries are stored */
static PetscErrorCode FillStages(TiledSpMM *t, const StagedPattern &A, const StagedCount *count, EntriesWork *w, cudaStream_t stream)
{
  const PetscCount warps = t->stages * (t->options.panel / WarpSize);

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopy(t->stagedispl, count->stagefirst, (size_t)(t->panels + 1) * sizeof(*t->stagedispl)));
  if (t->reordered) PetscCall(GallopDeviceCopy(t->roworder, count->order, (size_t)A.m * sizeof(*t->roworder)));
  PetscCall(TiledSpMMStoreFootprints(t, &A, count));
  StagesKernel<<<GallopBlocksFor(t->panels, Threads), Threads, 0, stream>>>(A, count->mapfirst, *t);
  GallopCheckLaunch();
  LengthsKernel<<<(unsigned int)t->stages, (int)t->options.panel, 0, stream>>>(A, *t, w->start);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, t->warpdispl, t->warpdispl, warps + 1, stream));
  PetscCall(GallopDeviceCopyOut(&t->stored, t->warpdispl + warps, sizeof(t->stored)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the numbers of stages and rows of B known */
static PetscErrorCode Fill(TiledSpMM *t, const StagedPattern &A, const GallopCSR *csr, const StagedCount *count, PetscCount maxbytes, PetscBool *done)
{
  EntriesWork  w = {};
  void        *memory;
  PetscBool    room = PETSC_FALSE;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done     = PETSC_FALSE;
  t->stored = 0;
  if (t->stages > PETSC_INT32_MAX || !FitsMemory(t, maxbytes)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(AllocateStages(t, &room));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, w.cubbytes, t->warpdispl, t->warpdispl, t->stages * (t->options.panel / WarpSize) + 1, stream));
  PetscCall(Allocate(
    GallopWorkspaceMalloc,
    [&](GallopCarver &carver) {
      carver.Take(w.start, t->stages * t->options.panel);
      carver.Take(w.cub, (PetscCount)w.cubbytes);
    },
    &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FillStages(t, A, count, &w, stream));
  if (FitsMemory(t, maxbytes)) PetscCall(AllocateEntries(t, done));
  if (*done) {
    EntriesKernel<<<(unsigned int)t->stages, (int)t->options.panel, 0, stream>>>(A, *t, w.start, csr->a);
    GallopCheckLaunch();
    PetscCall(TiledSpMMStagedAllowShared(&t->shared));
  }
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For rows whose columns do not increase: by the host's inspection, whose arrays are copied */
static PetscErrorCode CopyFromHost(TiledSpMM *t, const GallopCSR *csr, PetscInt segment, PetscCount maxbytes, PetscBool *done)
{
  TiledSpMM   *host;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(TiledSpMMInspect(&t->options, csr, segment, maxbytes, &host));
  if (!host) PetscFunctionReturn(PETSC_SUCCESS);
  host->multiprocessors = t->multiprocessors;
  *t                    = *host;
  t->memtype            = PETSC_MEMTYPE_CUDA;
  t->segptr             = NULL;
  t->stagedispl         = NULL;
  t->index              = NULL;
  *done                 = PETSC_TRUE;
  if (t->segment) PetscCall(AllocateSegments(t, done));
  if (*done) PetscCall(AllocateStages(t, done));
  if (*done) PetscCall(AllocateEntries(t, done));
  if (*done) {
    PetscCall(PetscGetCurrentCUDAStream(&stream));
#define COPY(array, number) \
  if (host->array) PetscCall(GallopDeviceCopyIn(t->array, host->array, (size_t)(number) * sizeof(*t->array)));
    TILEDSPMM_ARRAYS(t, COPY); /* but value, which the host has not */
#undef COPY
    PetscCall(TiledSpMMStagedRefresh(t, csr));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied is pageable and about to go */
    PetscCall(TiledSpMMStagedAllowShared(&t->shared));
  }
  PetscCall(TiledSpMMFree_Host(&host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether there are more columns than the marks of a footprint tell apart, or more rows than a grid has place for */
static bool IsTooLarge(const TiledSpMM *t)
{
  return t->n >= PETSC_INT32_MAX || t->panels >= PETSC_INT32_MAX || (PetscCount)TiledSpMMPlaces(t) * WarpSize / Threads >= PETSC_INT32_MAX;
}

/* Cuts rows where that is wanted. The pattern that panels are made of is that of the segments then. */
static PetscErrorCode Cut(TiledSpMM *t, const GallopCSR *csr, PetscInt *segment, StagedPattern *A, PetscBool *done)
{
  PetscFunctionBegin;
  PetscCall(TiledSpMMChooseSegment(t, csr, segment, done));
  if (*done && *segment) PetscCall(TiledSpMMCutRows(t, csr, *segment, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  t->panels = TiledSpMMPlaces(t) / t->options.panel + (TiledSpMMPlaces(t) % t->options.panel ? 1 : 0);
  *A        = {TiledSpMMPlaces(t), t->options.panel, t->options.stage, t->panels, t->segment ? t->segptr : csr->i, csr->j, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts with rows as they are, and sorted where they are not and that may be better. Without room for it they stay as they are. */
static PetscErrorCode ChooseOrder(TiledSpMM *t, const StagedPattern &A, StagedCount *given, StagedCount *sorted)
{
  PetscFunctionBegin;
  PetscCall(TiledSpMMCountStages(t, A, PETSC_FALSE, given));
  t->nmapgiven = given->found.nmap;
  if (!given->found.unsorted || given->found.disorder) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TiledSpMMCountStages(t, A, PETSC_TRUE, sorted));
  if (sorted->memory) t->reordered = TiledSpMMKeepsOrder(t, sorted->found.nmap, (PetscCount)given->found.lines, (PetscCount)sorted->found.lines, (PetscCount)sorted->found.stores);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMStagedBuild(TiledSpMM *t, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  StagedCount   given = {}, sorted = {};
  StagedPattern A;
  PetscInt      segment;

  PetscFunctionBegin;
  PetscCall(Cut(t, csr, &segment, &A, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  *done = PETSC_FALSE;
  if (!IsTooLarge(t)) {
    PetscCall(ChooseOrder(t, A, &given, &sorted));
    const StagedCount *const chosen = t->reordered ? &sorted : &given;

    t->stages = chosen->found.stages;
    t->nmap   = chosen->found.nmap;
    A.order   = chosen->order;
    if (given.memory && !given.found.disorder) PetscCall(Fill(t, A, csr, chosen, maxbytes, done));
    if (given.memory) PetscCall(GallopWorkspaceFree(given.memory));
    if (sorted.memory) PetscCall(GallopWorkspaceFree(sorted.memory));
  }
  if (IsTooLarge(t) || given.found.disorder) {
    PetscCall(GallopDeviceFree(t->segptr));
    t->segptr = NULL;
    PetscCall(CopyFromHost(t, csr, segment, maxbytes, done));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
