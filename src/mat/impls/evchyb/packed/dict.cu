/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the GPU: the dictionary of a matrix that has few distinct numbers */

#include "../scan.cuh"
#include "packedwarp.cuh"

static constexpr int                Places = 4 * EVCHYB_PACK_DICT; /* of the table of distinct numbers; a number is at the first free one from where its hash says */
static constexpr int                Seen   = 1024;                 /* the first numbers that a thread block meets are kept here, and not looked up in L2 again */
static constexpr unsigned long long Free   = ~0ull;                /* which are also the bits of one number: hasfree tells whether that is there */

struct Distinct {
  unsigned int num, hasfree; /* how many there are, Free among them */
};

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

static constexpr int LookThreads = 1024;

/* A thread block looks at a sample of the numbers. Where hardly any occurs twice, it says that there are too many. */
__global__ static void __launch_bounds__(LookThreads) LookKernel(PetscCount n, const PetscReal *__restrict__ a, Distinct *distinct)
{
  constexpr int                 Each = EVCHYB_PACK_LOOKS / LookThreads, Room = EVCHYB_PACK_LOOKS + EVCHYB_PACK_LOOKS / 4;
  __shared__ unsigned long long table[Room];
  __shared__ int                equal, hasfree;
  unsigned long long            bits[Each];

#pragma unroll
  for (int u = 0; u < Each; u++) bits[u] = EVCHYBPackBitsOf(a[EVCHYBPackLook(u * LookThreads + (int)threadIdx.x, n)]);
  for (int k = (int)threadIdx.x; k < Room; k += LookThreads) table[k] = Free;
  if (threadIdx.x == 0) equal = hasfree = 0;
  __syncthreads();
#pragma unroll
  for (int u = 0; u < Each; u++) {
    bool met = bits[u] == Free && atomicExch(&hasfree, 1);

    for (unsigned int at = EVCHYBPackHash(bits[u]) % Room; bits[u] != Free; at = (at + 1) % Room) {
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
__global__ static void __launch_bounds__(Threads) DistinctKernel(PetscCount n, const PetscReal *__restrict__ a, unsigned long long *table, EVCHYBPackBits *numbers, Distinct *distinct)
{
  constexpr int                 AtOnce = 4;
  const PetscCount              step = (PetscCount)gridDim.x * Threads, first = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  __shared__ unsigned long long seen[Seen];
  unsigned long long            bits[AtOnce];
  bool                          more = true;

  if (__syncthreads_or(*(volatile unsigned int *)&distinct->num > EVCHYB_PACK_DICT)) return;
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

/* Numbers in the order of their bits. *done is false where there is no room to sort them. */
static PetscErrorCode SortNumbers(PetscInt num, const EVCHYBPackBits *numbers, EVCHYBPackBits *sorted, PetscBool *done)
{
  size_t       bytes;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(EVCHYBDeviceSortKeys(nullptr, bytes, numbers, sorted, num, stream));
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(EVCHYBDeviceSortKeys(memory, bytes, numbers, sorted, num, stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *dict stays NULL where there are too many numbers, or no room for them */
static PetscErrorCode FindDistinct(const GallopCSR *csr, PetscReal **dict, PetscInt *ndict)
{
  const PetscCount  n = csr->nz * EVCHYB_PACK_PARTS;
  DistinctWorkspace w = {};
  Distinct          distinct;
  void             *memory, *kept = NULL;
  int               processors;
  cudaStream_t      stream;
  PetscBool         done;

  PetscFunctionBegin;
  *dict  = NULL;
  *ndict = 0;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopWorkspaceMalloc(CarveDistinct(&w, NULL), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveDistinct(&w, memory);
  PetscCallCUDA(cudaMemsetAsync(w.table, 0xff, Places * sizeof(*w.table), stream));
  PetscCall(GallopDeviceZero(w.distinct, sizeof(*w.distinct)));
  PetscCall(GallopDeviceGetProcessors(&processors));
  if (n >= EVCHYB_PACK_LOOKS_FROM) {
    LookKernel<<<1, LookThreads, 0, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), w.distinct);
    GallopCheckLaunch();
  }
  DistinctKernel<<<PetscMin(GallopBlocksFor(n, Threads), 8u * (unsigned int)processors), Threads, 0, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), w.table, w.numbers, w.distinct);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&distinct, w.distinct, sizeof(distinct)));
  if (EVCHYBPackDictPays((PetscCount)distinct.num, csr->nz)) PetscCall(GallopDeviceMalloc(distinct.num * sizeof(PetscReal), &kept));
  if (kept) {
    PetscCall(SortNumbers((PetscInt)distinct.num, w.numbers, (EVCHYBPackBits *)kept, &done));
    if (done) {
      *ndict = (PetscInt)distinct.num;
      *dict  = (PetscReal *)kept;
    } else PetscCall(GallopDeviceFree(kept));
  }
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackBegin_Device(const GallopCSR *csr, EVCHYBPack **pack)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_CUDA;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  PetscCall(FindDistinct(csr, &(*pack)->dict, &(*pack)->ndict));
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
