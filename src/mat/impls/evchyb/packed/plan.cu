/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the GPU: what slices will take, as packedplan.c has it */

#include <cub/device/device_scan.cuh>
#include "packedlines.cuh"
#include "packeddevice.h"

/* How the values of the lines can be stored. shorter(k): in which ways, a bit each, the lane's values in line k can be in fewer bytes */
template <typename Shorter>
static __device__ __forceinline__ EVCHYBPackValues ValuesOf(PetscInt ndict, int lines, Shorter shorter)
{
  if (ndict) return EVCHYBPackDictClass(ndict);
  if constexpr (!EVCHYB_PACK_SHORTER) return EVCHYB_PACK_VALUE;
  else {
    unsigned int all = EVCHYB_PACK_SHORTER;

    for (int k = 0; k < lines && all; k++) {
      const unsigned int own = shorter(k);

#pragma unroll
      for (int kind = 0; kind < EVCHYB_PACK_VALUES; kind++)
        if (EVCHYB_PACK_SHORTER >> kind & 1 && !__all_sync(0xffffffffu, own >> kind & 1)) all &= ~(1u << kind);
    }
    return EVCHYBPackShortest(all);
  }
}

/* Whether columns increase and the slice takes at most most bytes by diagonals; *by is the plan then. *same: the diagonals are the first entries of all rows, the second ones, and so on. */
static __device__ __forceinline__ bool PlanDiagonals(const Rows &s, Columns columns, const EVCHYBPackPlan &plan, int64_t most, EVCHYBPackPlan *by, bool *same)
{
  PetscInt next[2]   = {s.first[0], s.first[1]};
  int      before[2] = {-1, -1}, width = 0;
  bool     increases = true, on[2];

  for (*same = true;; width++) {
    const int  left = columns.Move(width, next);
    const bool more = NextDiagonal(s, columns, next, on) != None;

    if (!more || width % Columns::Size == 0) { /* more lines never take less */
      *by = EVCHYBPackByDiagonals(&plan, width + (more ? left : 0));
      if (by->width > EVCHYB_PACK_WIDEST || EVCHYBPackSliceBytes(by) > most) return false;
    }
    if (!more) break;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      *same = *same && (on[h] || next[h] >= s.end[h]);
      if (!on[h]) continue;
      const int column = (int)columns.At(h, next[h]++);

      increases = increases && column > before[h];
      before[h] = column;
    }
  }
  *same = __all_sync(0xffffffffu, *same);
  return __all_sync(0xffffffffu, increases);
}

/* As EVCHYBPackPlanSlice() on the host, by a warp */
static __device__ void PlanSlice(PetscInt m, PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const EVCHYBPackOrder &order, PetscInt slice, unsigned char *room, EVCHYBPackPlan *plan)
{
  const Rows     s       = GetRows(m, i, order, slice, plan);
  PetscInt       next[2] = {s.first[0], s.first[1]};
  LineBefore     before;
  bool           same;
  EVCHYBPackPlan by;
  Columns        columns(j, i[m], s.end, room);

  plan->values = ValuesOf(ndict, s.longest, [=](int k) {
    unsigned int ways = EVCHYB_PACK_SHORTER;

#pragma unroll
    for (int h = 0; h < 2; h++)
      if (k < s.end[h] - s.first[h]) ways &= EVCHYBPackShorter(a[s.first[h] + k]);
    return ways;
  });
  plan->width     = s.longest;
  plan->masks     = (PetscBool)(plan->entries < (int64_t)EVCHYB_PACK_ROWS * s.longest);
  plan->diagonals = PETSC_FALSE;
  EVCHYBPackNoLines(plan);
  if (s.step) { /* the least that it can take: nothing else is to be looked at then */
    plan->lines[EVCHYB_PACK_STRIDED] = plan->width;
    if (PlanDiagonals(s, columns, *plan, EVCHYBPackSliceBytes(plan), &by, &same)) {
      if (!same) *plan = by;
      return;
    }
    plan->lines[EVCHYB_PACK_STRIDED] = 0;
  }
  for (int k = 0; k < s.longest; k++) {
    int column[2];

    (void)columns.Move(k, next);
#pragma unroll
    for (int h = 0; h < 2; h++) column[h] = next[h] < s.end[h] ? (int)columns.At(h, next[h]++) : -1;
    CountLine(plan, s.step, column, &before);
  }
  if (s.step && plan->lines[EVCHYB_PACK_STRIDED] < plan->width && PlanDiagonals(s, columns, *plan, EVCHYBPackSliceBytes(plan) - 1, &by, &same)) *plan = by;
}

/* plan: what EVCHYBPackPieceOf() knows of the piece */
static __device__ void PlanPiece(PetscInt ndict, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, unsigned char *room, EVCHYBPackPlan *plan)
{
  const EVCHYBPackPlan own = *plan;
  Lines<PetscInt>      columns(j, own.first, own.entries, room);
  Lines<PetscScalar>   values(a, own.first, own.entries, room);
  LineBefore           before;

  plan->values = ValuesOf(ndict, (int)own.width, [&](int k) {
    unsigned int ways = EVCHYB_PACK_SHORTER;

    values.Move(k);
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (values.Has(k, h)) ways &= EVCHYBPackShorter(values.Take(k, h));
    return ways;
  });
  for (int k = 0; k < own.width; k++) {
    int       column[2];
    const int step = ColumnsOfLine(columns, k, column);

    CountLine(plan, step, column, &before);
  }
}

/* blockIdx.y is the order: strides 1 to EVCHYB_PACK_STRIDES, or the given order; the last is that of the pieces. A warp measures one slice of the sample, or one piece. */
__global__ static void __launch_bounds__(Threads) MeasureKernel(PetscInt m, PetscInt ndict, const EVCHYBPackDistinct *distinct, const EVCHYBPackGate gate, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, EVCHYBPackOrder order, unsigned int orders, EVCHYBPackCost *cost)
{
  __shared__ __align__(16) unsigned char room[Threads / WarpSize][Columns::Bytes];
  EVCHYBPackPlan                         plan;
  unsigned long long                     weight = 1;

  if (gate.IsShut()) return;
  if (distinct) ndict = EVCHYBPackDictOf(distinct, i[m]);
  if (blockIdx.y < orders) {
    order.stride = (PetscInt)blockIdx.y + 1;
    if (WarpOfGrid() >= EVCHYBPackSampleSize(&order, m)) return;
    const PetscInt slice = EVCHYBPackSampled(&order, m, (PetscInt)WarpOfGrid());

    if (slice >= EVCHYBPackNumSlices(&order, m)) return;
    PlanSlice(m, ndict, i, j, a, order, slice, room[threadIdx.x / WarpSize], &plan);
    cost += blockIdx.y;
  } else {
    if (WarpOfGrid() >= order.looks || (gate.rows && !gate.rows->nlong) || !EVCHYBPackPieceOf(&order, m, i, (PetscInt)WarpOfGrid(), &plan)) return;
    PlanPiece(ndict, j, a, room[threadIdx.x / WarpSize], &plan);
    cost += EVCHYB_PACK_STRIDES;
    weight = (unsigned long long)EVCHYBPackLookWeight(&plan);
  }
  if (threadIdx.x % WarpSize) return;
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->bytes), weight * (unsigned long long)EVCHYBPackSliceBytes(&plan));
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->entries), weight * (unsigned long long)plan.entries);
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->saved), weight * (unsigned long long)plan.saved * EVCHYB_PACK_UNIT);
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->least), weight * (unsigned long long)EVCHYBPackLeastBytes(&plan));
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->columns), weight * (unsigned long long)EVCHYBPackColumnBytes(&plan));
}

/* distinct: where the GPU knows how many numbers the dictionary has, else NULL, and it has ndict */
PetscErrorCode EVCHYBPackMeasureEnqueue(const GallopCSR *csr, const EVCHYBPackGate &gate, PetscInt ndict, const EVCHYBPackDistinct *distinct, const EVCHYBPackOrder *order, EVCHYBPackCost cost[EVCHYB_PACK_COSTS])
{
  const unsigned int orders = (unsigned int)EVCHYBPackNumOrders(order);
  EVCHYBPackOrder    by     = *order;
  PetscInt           most   = order->looks;
  cudaStream_t       stream;

  PetscFunctionBegin;
  for (by.stride = 1; by.stride <= (PetscInt)orders; by.stride++) most = PetscMax(most, EVCHYBPackSampleSize(&by, csr->m));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  MeasureKernel<<<dim3(GallopBlocksFor((PetscCount)most * WarpSize, Threads), orders + (order->looks ? 1 : 0)), Threads, 0, stream>>>(csr->m, ndict, distinct, gate, csr->i, csr->j, csr->a, *order, orders, cost);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackMeasure_Device(const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, EVCHYBPackCost cost[EVCHYB_PACK_COSTS])
{
  const EVCHYBPackGate open  = {};
  const size_t         bytes = EVCHYB_PACK_COSTS * sizeof(*cost);
  void                *memory;

  PetscFunctionBegin;
  for (int k = 0; k < EVCHYB_PACK_COSTS; k++) cost[k] = {};
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS); /* nothing is known then, and nothing packed */
  PetscCall(GallopDeviceZero(memory, bytes));
  PetscCall(EVCHYBPackMeasureEnqueue(csr, open, pack->ndict, NULL, order, (EVCHYBPackCost *)memory));
  PetscCall(GallopDeviceCopyOut(cost, memory, bytes));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename T>
using Sums = EVCHYBPackSums<T>;

static constexpr int NumSums = (int)(sizeof(Sums<unsigned int>) / sizeof(unsigned int));

/* decided: where the GPU knows what is to be planned, of at most slices without pieces, else NULL. There is room for most slices; those that there are not take nothing. */
__global__ static void __launch_bounds__(Threads) PlanKernel(PetscInt m, PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, EVCHYBPackOrder order, PetscInt nslice, PetscInt npiece, PetscInt most, const EVCHYBPackDecided *__restrict__ decided, EVCHYBPackPlan *__restrict__ plans, EVCHYBPackPlaces *__restrict__ places, unsigned long long *total)
{
  __shared__ __align__(16) unsigned char room[Threads / WarpSize][Columns::Bytes];
  __shared__ Sums<unsigned int> sums; /* of the thread block's slices: all of the grid would wait for each other's */
  unsigned int *const           each  = reinterpret_cast<unsigned int *>(&sums);
  const PetscCount              slice = WarpOfGrid();
  const bool                    first = threadIdx.x % WarpSize == 0;
  EVCHYBPackPlan                plan;

  if (decided) {
    if (!decided->plans) {
      if (first && slice <= most) places[slice] = {0, 0, 0}; /* they are added up all the same */
      return;
    }
    order.stride = decided->stride;
    ndict        = decided->ndict;
    nslice       = EVCHYBPackNumSlices(&order, m);
  }
  if (threadIdx.x < NumSums) each[threadIdx.x] = 0;
  __syncthreads();
  if (slice < nslice - npiece) PlanSlice(m, ndict, i, j, a, order, (PetscInt)slice, room[threadIdx.x / WarpSize], &plan);
  else if (slice < nslice) {
    (void)EVCHYBPackPieceOf(&order, m, i, (PetscInt)slice - (nslice - npiece), &plan);
    PlanPiece(ndict, j, a, room[threadIdx.x / WarpSize], &plan);
  }
  if (first && slice >= nslice && slice <= most) places[slice] = {0, 0, 0}; /* the last one's place gets the totals */
  if (first && slice < nslice) {
    const unsigned int slots = EVCHYB_PACK_ROWS * (unsigned int)plan.width;

    plans[slice]  = plan;
    places[slice] = EVCHYBPackPlacesOf(&plan);
#pragma unroll
    for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) atomicAdd(&sums.lines[k], (unsigned int)plan.lines[k]);
    atomicAdd(&sums.slots[plan.values], slots);
    atomicAdd(&sums.entries, (unsigned int)plan.entries);
    if (slice >= nslice - npiece) {
      atomicAdd(&sums.strided, (unsigned int)plan.lines[EVCHYB_PACK_STRIDED]);
      atomicAdd(&sums.longslots, slots);
    }
    atomicAdd(&sums.shared, (unsigned int)plan.shared);
  }
  __syncthreads();
  if (threadIdx.x < NumSums && each[threadIdx.x]) atomicAdd(total + threadIdx.x, (unsigned long long)each[threadIdx.x]);
}

struct PlacesAdd {
  __host__ __device__ EVCHYBPackPlaces operator()(const EVCHYBPackPlaces &a, const EVCHYBPackPlaces &b) const { return {a.line + b.line, a.stream + b.stream, a.value + b.value}; }
};

PetscErrorCode EVCHYBPackPlanScanBytes(PetscInt most, size_t *cubbytes)
{
  EVCHYBPackPlaces *places = NULL;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, *cubbytes, places, places, PlacesAdd(), EVCHYBPackPlaces{0, 0, 0}, (PetscCount)most + 1, (cudaStream_t)NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackPlanEnqueue(const GallopCSR *csr, PetscInt ndict, const EVCHYBPackDecided *decided, const EVCHYBPackOrder *order, PetscInt nslice, PetscInt npiece, PetscInt most, const EVCHYBPackPlans *plans, Sums<unsigned long long> *sums, void *cub, size_t cubbytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PlanKernel<<<GallopBlocksFor(((PetscCount)most + 1) * WarpSize, Threads), Threads, 0, stream>>>(csr->m, ndict, csr->i, csr->j, csr->a, *order, nslice, npiece, most, decided, plans->plans, plans->places, reinterpret_cast<unsigned long long *>(sums));
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(cub, cubbytes, plans->places, plans->places, PlacesAdd(), EVCHYBPackPlaces{0, 0, 0}, (PetscCount)most + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Behind where the last slice ends, so that both come to the host by one copy */
struct Totals {
  EVCHYBPackPlaces         all;
  Sums<unsigned long long> sums;
};

struct Workspace {
  EVCHYBPackPlans plans;
  Totals         *totals;
  char           *cub;
  size_t          cubbytes;
};

static size_t Carve(Workspace *w, PetscInt nslice, void *base)
{
  GallopCarver carver(base);
  char        *places;

  carver.Take(w->plans.plans, nslice);
  carver.Take(places, (PetscCount)(nslice * sizeof(EVCHYBPackPlaces) + sizeof(Totals)));
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  w->plans.places = reinterpret_cast<EVCHYBPackPlaces *>(places);
  w->totals       = base ? reinterpret_cast<Totals *>(w->plans.places + nslice) : NULL;
  return carver.Bytes();
}

/* EVCHYBPackPlan_Device - What each slice of a pack takes, and where it goes, for which the host waits; all sizes of the pack. *memory, in which plans are, is NULL where there is no room for them. */
PetscErrorCode EVCHYBPackPlan_Device(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, EVCHYBPackPlans *plans, EVCHYBPackPlaces *all, void **memory)
{
  Workspace w = {};
  Totals    totals;

  PetscFunctionBegin;
  PetscCall(EVCHYBPackPlanScanBytes(pack->nslice, &w.cubbytes));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, pack->nslice, NULL), memory));
  if (!*memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, pack->nslice, *memory);
  PetscCall(GallopDeviceZero(&w.totals->sums, sizeof(w.totals->sums)));
  PetscCall(EVCHYBPackPlanEnqueue(csr, pack->ndict, NULL, order, pack->nslice, pack->npiece, pack->nslice, &w.plans, &w.totals->sums, w.cub, w.cubbytes));
  PetscCall(GallopDeviceCopyOut(&totals, w.totals, sizeof(totals)));
  EVCHYBPackFiguresOf(&totals.sums, &pack->figures);
  pack->nz    = (PetscCount)totals.sums.entries;
  pack->nlong = (PetscCount)totals.sums.longslots;
  *all        = totals.all;
  *plans      = w.plans;
  PetscFunctionReturn(PETSC_SUCCESS);
}
