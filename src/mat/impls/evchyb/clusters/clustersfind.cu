/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters on the GPU: which rows belong together */

#include "../../common/bits.h"
#include "clustersdevice.h"

static constexpr int Threads = EVCHYBClusterThreads, Lanes = EVCHYBClusterLanes;

static int AllLevels()
{
  int levels = 0;

  for (int phase = 0; phase < EVCHYB_CLUSTER_PHASES; phase++) levels += EVCHYBClusterLevels(phase);
  return levels;
}

/* Some lanes of a warp put a row each at the end of a list. All lanes call it. */
static __device__ __forceinline__ void Append(bool has, PetscInt row, PetscInt *list, unsigned int *num)
{
  const unsigned int all  = __ballot_sync(0xffffffffu, has);
  const int          lane = threadIdx.x % WarpSize;
  unsigned int       at   = 0;

  if (!all) return;
  if (lane == 0) at = atomicAdd(num, (unsigned int)__popc(all));
  at = __shfl_sync(0xffffffffu, at, 0) + (unsigned int)__popc(all & ((1u << lane) - 1));
  if (has) list[at] = row;
}

__global__ static void __launch_bounds__(Threads) SeedsKernel(PetscInt m, int phase, int level, uint32_t bound, unsigned long long *state, PetscInt *frontier, unsigned int *reached)
{
  const PetscCount r    = GallopGlobalThread();
  const bool       seed = r < m && state[r] == EVCHYB_CLUSTER_FREE && EVCHYBClusterHash((uint32_t)r, phase) <= bound;

  if (seed) state[r] = (unsigned long long)level << 32 | (uint32_t)r;
  Append(seed, (PetscInt)r, frontier, reached);
}

/* All clusters grow by a level. Whichever thread reaches a row first, it belongs to the seed with the least number that reaches it in this level. */
__global__ static void __launch_bounds__(Threads) SpreadKernel(int level, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ frontier, const unsigned int *reached, unsigned long long *state, PetscInt *next, unsigned int *nextreached)
{
  constexpr int    Groups = WarpSize / Lanes;
  const int        lane   = threadIdx.x % WarpSize;
  const PetscCount n = *reached, warps = (PetscCount)gridDim.x * Threads / WarpSize;

  for (PetscCount first = GallopGlobalThread() / WarpSize * Groups; first < n; first += warps * Groups) {
    const PetscCount   k   = first + lane / Lanes;
    const PetscInt     row = k < n ? frontier[k] : -1;
    unsigned long long key = 0;
    PetscInt           e = 0, end = 0;

    if (row >= 0) {
      e   = i[row];
      end = i[row + 1];
      key = (unsigned long long)(level + 1) << 32 | (uint32_t)state[row];
      if (end - e > EVCHYB_CLUSTER_LONGEST) end = e;
      e += lane % Lanes;
    }
    for (; __any_sync(0xffffffffu, e < end); e += Lanes) {
      const PetscInt column = e < end ? j[e] : -1;
      bool           free   = false;

      if (column >= 0 && __ldcg(state + column) > key) free = atomicMin(state + column, key) == EVCHYB_CLUSTER_FREE;
      Append(free, column, next, nextreached);
    }
  }
}

/* 1 for a seed; the last place gets the sum */
__global__ static void __launch_bounds__(Threads) FlagsKernel(PetscInt m, const unsigned long long *__restrict__ state, PetscCount *number)
{
  const PetscCount r = GallopGlobalThread();

  if (r <= m) number[r] = r < m && state[r] != EVCHYB_CLUSTER_FREE && (uint32_t)state[r] == (uint32_t)r;
}

/* Rows that belong to no cluster are one more, the last */
__global__ static void __launch_bounds__(Threads) KeysKernel(PetscInt m, const unsigned long long *__restrict__ state, const PetscCount *__restrict__ number, PetscInt *cluster, uint64_t *keys, PetscInt *rows, EVCHYBClusterCounts *counts)
{
  const PetscCount r = GallopGlobalThread();

  if (r == 0) counts->num = number[m];
  if (r >= m) return;
  const bool       free = state[r] == EVCHYB_CLUSTER_FREE;
  const PetscCount c    = number[free ? m : (PetscCount)(uint32_t)state[r]];

  cluster[r] = (PetscInt)c;
  keys[r]    = (uint64_t)c << EVCHYB_LEVEL_BITS | (free ? 0 : state[r] >> 32);
  rows[r]    = (PetscInt)r;
}

/* The clusters' graph, and what is counted on the way */
__global__ static void __launch_bounds__(Threads) LookKernel(PetscInt m, PetscInt step, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ cluster, const PetscCount *__restrict__ number, uint32_t *bits, EVCHYBClusterCounts *counts)
{
  const PetscCount   num = number[m], groups = (PetscCount)gridDim.x * Threads / Lanes;
  const int          lane    = threadIdx.x % WarpSize;
  unsigned long long entries = 0, inside = 0;

  for (PetscCount r = GallopGlobalThread() / Lanes * step; r < m; r += groups * step) {
    const PetscInt   begin = i[r], end = i[r + 1];
    const PetscCount a = cluster[r];

    if (lane % Lanes == 0) entries += (unsigned long long)(end - begin);
    if (a == num || end - begin > EVCHYB_CLUSTER_LONGEST) continue;
    for (PetscInt e = begin + lane % Lanes; e < end; e += Lanes) {
      const PetscCount b = cluster[j[e]];

      if (a == b) inside++;
      else if (num <= EVCHYB_CLUSTERS && b < num) {
        uint32_t *const at[2]  = {bits + a * EVCHYBClusterWords + b / 32, bits + b * EVCHYBClusterWords + a / 32};
        const uint32_t  bit[2] = {1u << b % 32, 1u << a % 32};

#pragma unroll
        for (int k = 0; k < 2; k++)
          if (!(__ldcg(at[k]) & bit[k])) atomicOr(at[k], bit[k]);
      }
    }
  }
  for (int by = WarpSize / 2; by; by /= 2) {
    entries += __shfl_xor_sync(0xffffffffu, entries, by);
    inside += __shfl_xor_sync(0xffffffffu, inside, by);
  }
  if (lane) return;
  if (entries) atomicAdd(&counts->entries, entries);
  if (inside) atomicAdd(&counts->inside, inside);
}

static size_t Carve(EVCHYBClusterWork *w, PetscInt m, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->order, m);
  carver.Take(w->state, m);
  carver.Take(w->cluster, m);
  carver.Take(w->pos, m);
  for (int k = 0; k < 2; k++) carver.Take(w->rows[k], m);
  for (int k = 0; k < 2; k++) carver.Take(w->keys[k], m);
  carver.Take(w->number, (PetscCount)m + 1);
  carver.Take(w->reached, AllLevels() + 1);
  carver.Take(w->counts, 1);
  carver.Take(w->bits, (PetscCount)EVCHYB_CLUSTERS * EVCHYBClusterWords);
  carver.Take(w->rank, EVCHYB_CLUSTERS);
  carver.Take(w->queue, EVCHYB_CLUSTERS);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static PetscErrorCode Grow(const GallopCSR *csr, const EVCHYBClusterWork *w, unsigned int grid, cudaStream_t stream)
{
  int level = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->state, 0xff, (size_t)csr->m * sizeof(*w->state), stream)); /* EVCHYB_CLUSTER_FREE */
  PetscCallCUDA(cudaMemsetAsync(w->reached, 0, (size_t)(AllLevels() + 1) * sizeof(*w->reached), stream));
  for (int phase = 0; phase < EVCHYB_CLUSTER_PHASES; phase++) {
    SeedsKernel<<<GallopBlocksFor(csr->m, Threads), Threads, 0, stream>>>(csr->m, phase, level, EVCHYBClusterBound(csr->m, phase), w->state, w->rows[level % 2], w->reached + level);
    GallopCheckLaunch();
    for (int k = 0; k < EVCHYBClusterLevels(phase); k++, level++) {
      SpreadKernel<<<grid, Threads, 0, stream>>>(level, csr->i, csr->j, w->rows[level % 2], w->reached + level, w->state, w->rows[(level + 1) % 2], w->reached + level + 1);
      GallopCheckLaunch();
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of each cluster, and where it goes: *fits is false where there is no room */
static PetscErrorCode Order(const GallopCSR *csr, const EVCHYBClusterWork *w, PetscCount num, cudaStream_t stream, PetscBool *fits)
{
  EVCHYBClusterPlaces places = {};
  void               *memory;

  PetscFunctionBegin;
  for (int pass = 0; pass < 2; pass++) {
    GallopCarver carver(pass ? memory : NULL);

    carver.Take(places.begin, num + 2);
    carver.Take(places.place, num + 1);
    if (!pass) PetscCall(GallopWorkspaceMalloc(carver.Bytes(), &memory));
    if (!memory) break;
  }
  *fits = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(EVCHYBDeviceSortPairs(w->cub, *const_cast<size_t *>(&w->cubbytes), w->keys[0], w->keys[1], w->rows[0], w->rows[1], csr->m, EVCHYB_LEVEL_BITS + GallopBitsFor((uint64_t)num), stream));
  if (num <= EVCHYB_CLUSTERS) PetscCall(EVCHYBClusterRank_Device(w, num));
  PetscCall(EVCHYBClusterSort_Device(csr, w, &places, num));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClusterFind_Device - As EVCHYBClusterFind_Host(); the host waits once */
PetscErrorCode EVCHYBClusterFind_Device(const GallopCSR *csr, PetscReal inside, EVCHYBClusterOrder *found, PetscBool *fits)
{
  const PetscInt    step      = EVCHYBClusterStep(csr->m);
  EVCHYBClusterWork w         = {};
  size_t            sortbytes = 0, scanbytes = 0;
  int               processors;
  unsigned int      grid;
  cudaStream_t      stream;

  PetscFunctionBegin;
  *found = {};
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&processors));
  grid = (unsigned int)(8 * processors);
  PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, sortbytes, w.keys[0], w.keys[1], w.rows[0], w.rows[1], csr->m, 64, stream));
  PetscCallCUDA(EVCHYBDeviceScan(nullptr, scanbytes, w.number, (PetscCount)csr->m + 1, stream));
  w.cubbytes = PetscMax(sortbytes, scanbytes);
  PetscCall(GallopWorkspaceMalloc(Carve(&w, csr->m, NULL), &found->memory));
  *fits = (PetscBool)(found->memory != NULL);
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, csr->m, found->memory);
  PetscCall(Grow(csr, &w, grid, stream));
  FlagsKernel<<<GallopBlocksFor((PetscCount)csr->m + 1, Threads), Threads, 0, stream>>>(csr->m, w.state, w.number);
  GallopCheckLaunch();
  PetscCallCUDA(EVCHYBDeviceScan(w.cub, w.cubbytes, w.number, (PetscCount)csr->m + 1, stream));
  PetscCallCUDA(cudaMemsetAsync(w.counts, 0, sizeof(*w.counts), stream));
  PetscCallCUDA(cudaMemsetAsync(w.bits, 0, sizeof(*w.bits) * EVCHYB_CLUSTERS * EVCHYBClusterWords, stream));
  KeysKernel<<<GallopBlocksFor(csr->m, Threads), Threads, 0, stream>>>(csr->m, w.state, w.number, w.cluster, w.keys[0], w.rows[0], w.counts);
  GallopCheckLaunch();
  LookKernel<<<PetscMin(grid, GallopBlocksFor((PetscCount)csr->m / step * Lanes, Threads)), Threads, 0, stream>>>(csr->m, step, csr->i, csr->j, w.cluster, w.number, w.bits, w.counts);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found->counts, w.counts, sizeof(found->counts)));
  if ((PetscReal)found->counts.inside >= inside * (PetscReal)found->counts.entries) {
    PetscCall(Order(csr, &w, found->counts.num, stream, fits));
    if (*fits) found->order = w.order;
  }
  if (!found->order) PetscCall(EVCHYBClusterOrderFree(csr, found));
  PetscFunctionReturn(PETSC_SUCCESS);
}
