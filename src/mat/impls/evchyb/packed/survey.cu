/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Packed storage on the GPU: all that is found out about a matrix before it is stored. Rows and distinct values are counted, samples of slices, with each stride, and of pieces of long rows are measured, a thread decides as
  choose.c will, and slices are planned where they are to be packed. Each kernel reads what those before it have found, so that the host waits once, for all of it.
*/

#include "packedwarp.cuh"
#include "packeddevice.h"

static constexpr int CountThreads = 256;

/* Empty and long rows, and the longest of the others; the table of distinct numbers is made free, which the next kernels need */
__global__ static void __launch_bounds__(CountThreads) LengthsKernel(PetscInt m, PetscInt longest, const PetscInt *__restrict__ i, unsigned long long *__restrict__ table, EVCHYBPackLengths *rows)
{
  const PetscCount r      = GallopGlobalThread();
  const PetscInt   len    = r < m ? i[r + 1] - i[r] : 1;
  const bool       islong = r < m && len > longest;
  const int        empty = __syncthreads_count(!len), longer = __syncthreads_count(islong);

  for (PetscCount k = r; k < EVCHYBPackTable; k += (PetscCount)gridDim.x * CountThreads) table[k] = EVCHYBPackFree;
  const unsigned int most = GallopWarpMax(r < m && !islong ? (unsigned int)len : 0u);

  if (threadIdx.x % WarpSize == 0 && (int64_t)most > *(volatile int64_t *)&rows->longest) atomicMax(reinterpret_cast<unsigned long long *>(&rows->longest), (unsigned long long)most);
  if (longer) {
    const unsigned long long entries = GallopGroupSum(islong ? (unsigned long long)len : 0ull, WarpSize), pieces = GallopGroupSum(islong ? (unsigned long long)EVCHYBPackPiecesOf(len) : 0ull, WarpSize);

    if (threadIdx.x % WarpSize == 0 && pieces) {
      atomicAdd(reinterpret_cast<unsigned long long *>(&rows->entries), entries);
      atomicAdd(reinterpret_cast<unsigned long long *>(&rows->pieces), pieces);
    }
  }
  if (threadIdx.x) return;
  if (empty) atomicAdd(reinterpret_cast<unsigned long long *>(&rows->nempty), (unsigned long long)empty);
  if (longer) atomicAdd(reinterpret_cast<unsigned long long *>(&rows->nlong), (unsigned long long)longer);
}

/* Whether slices are planned, and how: where they are packed, unless there are long rows, or rows are likely to be sorted */
__global__ static void DecideKernel(PetscInt m, PetscCount nz, const EVCHYBPackGate gate, EVCHYBPackFound *found)
{
  const EVCHYBPackCost none = {};

  if (gate.IsShut()) return;
  const PetscInt        stride = EVCHYBPackPickStride(found->cost);
  const EVCHYBPackCost *cost   = &found->cost[stride - 1];

  found->decided.stride = stride;
  found->decided.ndict  = EVCHYBPackDictOf(&found->distinct, nz);
  found->decided.plans  = !found->rows.nlong && !EVCHYBPackSortingIsLikely(&gate.terms, m, &found->rows, cost) && EVCHYBPackPays(&gate.terms, m, &found->rows, cost, &none);
}

struct Workspace {
  unsigned long long *table;
  EVCHYBPackBits     *numbers;
  EVCHYBPackPlans     plans;
  EVCHYBPackPlaces   *all;   /* where the last slice ends */
  EVCHYBPackFound    *found; /* behind it */
  char               *cub;
  size_t              cubbytes;
};

static size_t Carve(Workspace *w, PetscInt most, void *base)
{
  GallopCarver carver(base);
  char        *places;

  carver.Take(w->table, EVCHYBPackTable);
  carver.Take(w->numbers, EVCHYB_PACK_DICT);
  carver.Take(w->plans.plans, most);
  carver.Take(places, (PetscCount)((most + 1) * sizeof(EVCHYBPackPlaces) + sizeof(EVCHYBPackFound)));
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  w->plans.places = reinterpret_cast<EVCHYBPackPlaces *>(places);
  w->all          = base ? w->plans.places + most : NULL;
  w->found        = base ? reinterpret_cast<EVCHYBPackFound *>(w->all + 1) : NULL;
  return carver.Bytes();
}

/* EVCHYBPackSurvey_Device - What can be found out before long rows, or sorted ones, are looked at. EVCHYBPackSurveyFree_Device() frees its memory, which is NULL where there was no room. */
PetscErrorCode EVCHYBPackSurvey_Device(const GallopCSR *csr, const EVCHYBPackTerms *terms, EVCHYBPackSurvey *survey)
{
  EVCHYBPackOrder order = {};
  PetscInt        most  = 0; /* slices */
  Workspace       w     = {};
  EVCHYBPackGate  gate;
  cudaStream_t    stream;
  struct {
    EVCHYBPackPlaces all;
    EVCHYBPackFound  found;
  } numbers;

  PetscFunctionBegin;
  *survey       = {};
  order.num     = csr->m;
  order.longest = terms->longest;
  for (order.stride = 1; order.stride <= EVCHYB_PACK_STRIDES; order.stride++) most = PetscMax(most, EVCHYBPackNumSlices(&order, csr->m));
  order.stride = 1;
  order.piece  = EVCHYB_PACK_SAMPLED;
  order.looks  = terms->asked ? 0 : EVCHYB_PACK_PIECE_LOOKS;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(EVCHYBPackPlanScanBytes(most, &w.cubbytes));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, most, NULL), &survey->memory));
  if (!survey->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, most, survey->memory);
  gate = {&w.found->rows, *terms, csr->m};
  PetscCall(GallopDeviceZero(w.found, sizeof(*w.found)));
  LengthsKernel<<<GallopBlocksFor(csr->m, CountThreads), CountThreads, 0, stream>>>(csr->m, terms->longest, csr->i, w.table, &w.found->rows);
  GallopCheckLaunch();
  PetscCall(EVCHYBPackDistinctEnqueue(csr, gate, w.table, w.numbers, &w.found->distinct));
  PetscCall(EVCHYBPackMeasureEnqueue(csr, gate, 0, &w.found->distinct, &order, w.found->cost));
  DecideKernel<<<1, 1, 0, stream>>>(csr->m, csr->nz, gate, w.found);
  GallopCheckLaunch();
  PetscCall(EVCHYBPackPlanEnqueue(csr, 0, &w.found->decided, &order, 0, 0, most, &w.plans, &w.found->sums, w.cub, w.cubbytes));
  PetscCall(GallopDeviceCopyOut(&numbers, w.all, sizeof(numbers)));
  survey->rows  = numbers.found.rows;
  survey->ndict = EVCHYBPackDictPays((PetscCount)numbers.found.distinct.num, csr->nz) ? (PetscInt)numbers.found.distinct.num : 0;
  PetscCall(PetscArraycpy(survey->cost, numbers.found.cost, EVCHYB_PACK_COSTS));
  survey->numbers = w.numbers;
  if (numbers.found.decided.plans) {
    survey->stride = numbers.found.decided.stride;
    survey->all    = numbers.all;
    survey->nz     = (PetscCount)numbers.found.sums.entries;
    survey->plans  = w.plans.plans;
    survey->places = w.plans.places;
    EVCHYBPackFiguresOf(&numbers.found.sums, &survey->figures);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackSurveyFree_Device(EVCHYBPackSurvey *survey)
{
  PetscFunctionBegin;
  PetscCall(GallopWorkspaceFree(survey->memory));
  survey->memory = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
