/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the GPU: the dictionary of a matrix that has few distinct numbers */

#include "../scan.cuh"
#include "packedwarp.cuh"
#include "packeddevice.h"

static constexpr int                Places = EVCHYBPackTable;
static constexpr int                Seen   = 1024; /* the first numbers that a thread block meets are kept here, and not looked up in L2 again */
static constexpr unsigned long long Free   = EVCHYBPackFree;

using Distinct = EVCHYBPackDistinct;

/* What is not among the numbers yet */
static __device__ __forceinline__ void Append(unsigned long long bits, EVCHYBPackBits *numbers, Distinct *distinct)
{
  const unsigned int k = atomicAdd(&distinct->num, 1u);

  if (k < EVCHYB_PACK_DICT) numbers[k] = (EVCHYBPackBits)bits;
}

/* Puts a number into the table, and tells whether there may be others. L1 is not asked: what it has of the table may be old. */
static __device__ __forceinline__ bool AddDistinct(unsigned long long bits, unsigned long long *table, EVCHYBPackBits *numbers, Distinct *distinct)
{
  if (bits == Free) {
    if (!*(volatile unsigned int *)&distinct->hasfree && !atomicExch(&distinct->hasfree, 1u)) Append(bits, numbers, distinct);
    return true;
  }
  for (unsigned int at = EVCHYBPackHash(bits) % Places;; at = (at + 1) % Places) {
    unsigned long long is = __ldcg(table + at);

    if (is == bits) return true;
    if (*(volatile unsigned int *)&distinct->num > EVCHYB_PACK_DICT) return false;
    if (is != Free) continue;
    is = atomicCAS(table + at, Free, bits);
    if (is == Free) Append(bits, numbers, distinct);
    if (is == Free || is == bits) return true;
  }
}

/* Enough places stay free for a number to find its own after two or three others: more than a kernel has without asking, and no more than any GPU has */
static constexpr int    LookThreads = 1024, LookRoom = EVCHYB_PACK_LOOKS / 4 * 7;
static constexpr size_t LookBytes = LookRoom * sizeof(unsigned long long);

/* A thread block looks at a sample of the numbers. Where hardly any occurs twice, it says that there are too many. */
__global__ static void __launch_bounds__(LookThreads) LookKernel(PetscCount n, const PetscReal *__restrict__ a, const EVCHYBPackGate gate, Distinct *distinct)
{
  constexpr int                        Each = EVCHYB_PACK_LOOKS / LookThreads;
  extern __shared__ unsigned long long table[]; /* [LookRoom] */
  __shared__ int                       equal, hasfree;
  unsigned long long                   bits[Each];

  if (gate.IsShut()) return;
#pragma unroll
  for (int u = 0; u < Each; u++) bits[u] = EVCHYBPackBitsOf(a[EVCHYBPackLook(u * LookThreads + (int)threadIdx.x, n)]);
  for (int k = (int)threadIdx.x; k < LookRoom; k += LookThreads) table[k] = Free;
  if (threadIdx.x == 0) equal = hasfree = 0;
  __syncthreads();
#pragma unroll
  for (int u = 0; u < Each; u++) {
    bool met = bits[u] == Free && atomicExch(&hasfree, 1);

    for (unsigned int at = EVCHYBPackHash(bits[u]) % LookRoom; bits[u] != Free; at = (at + 1) % LookRoom) {
      const unsigned long long is = atomicCAS(table + at, Free, bits[u]);

      met = is == bits[u];
      if (met || is == Free) break;
    }
    if (met) atomicAdd(&equal, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0 && equal < EVCHYB_PACK_LOOKS_EQUAL) distinct->num = EVCHYB_PACK_DICT + 1;
}

/* All parts of all values, until there are too many */
__global__ static void __launch_bounds__(Threads) DistinctKernel(PetscCount n, const PetscReal *__restrict__ a, const EVCHYBPackGate gate, unsigned long long *table, EVCHYBPackBits *numbers, Distinct *distinct)
{
  constexpr int                 AtOnce = 4;
  const PetscCount              step = (PetscCount)gridDim.x * Threads, first = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  __shared__ unsigned long long seen[Seen];
  unsigned long long            bits[AtOnce];
  bool                          more = true;

  if (gate.IsShut() || __syncthreads_or(*(volatile unsigned int *)&distinct->num > EVCHYB_PACK_DICT)) return;
  for (int k = threadIdx.x; k < Seen; k += Threads) seen[k] = Free;
  __syncthreads();
  for (PetscCount k = first; k - first < AtOnce * step; k += step) {
    bits[0] = EVCHYBPackBitsOf(a[PetscMin(k, n - 1)]);
    /* a lane for all that have the number: where there are few, all of the grid would wait for one place */
    const bool mine = __ffs(__match_any_sync(0xffffffffu, bits[0])) - 1 == threadIdx.x % WarpSize;

    more = more && (!mine || AddDistinct(bits[0], table, numbers, distinct));
    if (more && mine) atomicExch(seen + EVCHYBPackHash(bits[0]) % Seen, bits[0]);
  }
  __syncthreads();
  for (PetscCount k = first + AtOnce * step; k < n && more; k += AtOnce * step) {
#pragma unroll
    for (int u = 0; u < AtOnce; u++) bits[u] = EVCHYBPackBitsOf(a[PetscMin(k + u * step, n - 1)]);
#pragma unroll
    for (int u = 0; u < AtOnce; u++)
      if (bits[u] == Free || seen[EVCHYBPackHash(bits[u]) % Seen] != bits[u]) more = more && AddDistinct(bits[u], table, numbers, distinct);
  }
}

typedef struct {
  unsigned long long *table;
  EVCHYBPackBits     *numbers;
  Distinct           *distinct;
} DistinctWorkspace;

static size_t CarveDistinct(DistinctWorkspace *w, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->table, Places);
  carver.Take(w->numbers, EVCHYB_PACK_DICT);
  carver.Take(w->distinct, 1);
  return carver.Bytes();
}

PetscErrorCode EVCHYBPackDistinctEnqueue(const GallopCSR *csr, const EVCHYBPackGate &gate, unsigned long long *table, EVCHYBPackBits *numbers, EVCHYBPackDistinct *distinct)
{
  const PetscCount n = csr->nz * EVCHYB_PACK_PARTS;
  int              processors;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&processors));
  if (n >= EVCHYB_PACK_LOOKS_FROM) {
    PetscCallCUDA(cudaFuncSetAttribute(LookKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)LookBytes));
    LookKernel<<<1, LookThreads, LookBytes, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), gate, distinct);
    GallopCheckLaunch();
  }
  DistinctKernel<<<PetscMin(GallopBlocksFor(n, Threads), 8u * (unsigned int)processors), Threads, 0, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), gate, table, numbers, distinct);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number's place is how many come before it: for few numbers that takes a fraction of what CUB's sort does */
static constexpr int RankMost = 1024;

__global__ static void __launch_bounds__(RankMost) RankKernel(int num, const EVCHYBPackBits *__restrict__ numbers, EVCHYBPackBits *__restrict__ sorted)
{
  __shared__ EVCHYBPackBits all[RankMost];
  const int                 own   = (int)threadIdx.x;
  int                       place = 0;

  if (own < num) all[own] = numbers[own];
  __syncthreads();
  if (own >= num) return;
  for (int k = 0; k < num; k++) place += all[k] < all[own] || (all[k] == all[own] && k < own);
  sorted[place] = all[own];
}

/* Numbers in the order of their bits. *done is false where there is no room to sort them. */
static PetscErrorCode SortNumbers(PetscInt num, const EVCHYBPackBits *numbers, EVCHYBPackBits *sorted, PetscBool *done)
{
  size_t       bytes;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (num <= RankMost) {
    RankKernel<<<1, (unsigned int)(num + WarpSize - 1) / WarpSize * WarpSize, 0, stream>>>((int)num, numbers, sorted);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(EVCHYBDeviceSortKeys(nullptr, bytes, numbers, sorted, num, stream));
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(EVCHYBDeviceSortKeys(memory, bytes, numbers, sorted, num, stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The dictionary of a pack, which has none where there is no room for it */
static PetscErrorCode KeepNumbers(PetscInt num, const EVCHYBPackBits *numbers, EVCHYBPack *pack)
{
  void     *kept;
  PetscBool done;

  PetscFunctionBegin;
  if (!num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc((size_t)num * sizeof(PetscReal), &kept));
  if (!kept) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SortNumbers(num, numbers, (EVCHYBPackBits *)kept, &done));
  if (done) {
    pack->ndict = num;
    pack->dict  = (PetscReal *)kept;
  } else PetscCall(GallopDeviceFree(kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Without a survey the numbers are counted here, and the host waits. There is no dictionary where there are too many, or no room for them. */
static PetscErrorCode FindDistinct(const GallopCSR *csr, EVCHYBPack *pack)
{
  const EVCHYBPackGate open = {};
  DistinctWorkspace    w    = {};
  Distinct             distinct;
  void                *memory;
  cudaStream_t         stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopWorkspaceMalloc(CarveDistinct(&w, NULL), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveDistinct(&w, memory);
  PetscCallCUDA(cudaMemsetAsync(w.table, 0xff, Places * sizeof(*w.table), stream));
  PetscCall(GallopDeviceZero(w.distinct, sizeof(*w.distinct)));
  PetscCall(EVCHYBPackDistinctEnqueue(csr, open, w.table, w.numbers, w.distinct));
  PetscCall(GallopDeviceCopyOut(&distinct, w.distinct, sizeof(distinct)));
  if (EVCHYBPackDictPays((PetscCount)distinct.num, csr->nz)) PetscCall(KeepNumbers((PetscInt)distinct.num, w.numbers, pack));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackBegin_Device(const GallopCSR *csr, const EVCHYBPackSurvey *survey, EVCHYBPack **pack)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_CUDA;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  if (survey) PetscCall(KeepNumbers(survey->ndict, survey->numbers, *pack));
  else PetscCall(FindDistinct(csr, *pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the dictionary where it is: CUDA graphs of products keep its address */
PetscErrorCode EVCHYBPackSortDict_Device(EVCHYBPack *pack, PetscBool *done)
{
  const size_t bytes = (size_t)pack->ndict * sizeof(EVCHYBPackBits);
  void        *sorted;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(GallopWorkspaceMalloc(bytes, &sorted));
  if (!sorted) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SortNumbers(pack->ndict, reinterpret_cast<EVCHYBPackBits *>(pack->dict), (EVCHYBPackBits *)sorted, done));
  if (*done) PetscCall(GallopDeviceCopy(pack->dict, sorted, bytes));
  PetscCall(GallopWorkspaceFree(sorted));
  PetscFunctionReturn(PETSC_SUCCESS);
}
