/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: the rows of both parts, and the order of column blocks */

#include <cub/block/block_radix_sort.cuh>
#include "../parts.cuh"
#include "../scan.cuh"
#include "plaindevice.h"

/* Sort of keys below 32, for no more than one thread block sorts at once: a fraction of what CUB's device-wide sort takes */
static constexpr int SortItems = 8, SortMost = ScanThreads * SortItems, SortBits = 5;

__global__ static void __launch_bounds__(ScanThreads) SmallSortKernel(int n, const uint64_t *__restrict__ keys, PetscInt *order)
{
  using Sort = cub::BlockRadixSort<unsigned int, ScanThreads, SortItems, PetscInt>;
  __shared__ typename Sort::TempStorage temp;
  unsigned int                          key[SortItems];
  PetscInt                              index[SortItems];

#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    index[k] = threadIdx.x * SortItems + k;
    key[k]   = index[k] < n ? (unsigned int)keys[index[k]] : (1u << SortBits) - 1;
  }
  Sort(temp).Sort(key, index, 0, SortBits);
#pragma unroll
  for (int k = 0; k < SortItems; k++) {
    const int at = threadIdx.x * SortItems + k;

    if (at < n) order[at] = index[k];
  }
}

static bool SortsSmall(const EVCHYBPlain *p)
{
  return p->ell.nb <= SortMost && !p->byrow;
}

/* What the kernels count for the host */
struct Counts {
  unsigned long long nzell, LCmax, classes[EVCHYB_CLASSES], moved; /* moved: not 0 when some row is not where it comes */
};

/* Lengths and sort keys of the column blocks, stored entries of the rows of SubCSR */
__global__ static void LengthsKernel(PetscInt nb, PetscInt ncsr, PetscBool byrow, const PetscInt *__restrict__ i, const PetscInt *__restrict__ perm, PetscInt *clen, uint64_t *keys, PetscInt *index, PetscCount *csri, Counts *counts)
{
  const PetscCount  warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;
  const int         lane = threadIdx.x % WarpSize;
  __shared__ Counts here; /* one atomic per thread block */

  for (int k = threadIdx.x; k < (int)(sizeof(Counts) / sizeof(unsigned long long)); k += EVCHYB_THREADS) reinterpret_cast<unsigned long long *>(&here)[k] = 0;
  __syncthreads();
  if (warp < nb) {
    const PetscInt     row = perm[warp * EVCHYB_BLOCK + lane];
    PetscInt           len = i[row + 1] - i[row], longest = len;
    unsigned long long sum = (unsigned long long)len;

    for (int by = WarpSize / 2; by > 0; by /= 2) {
      const PetscInt other = __shfl_xor_sync(0xffffffffu, longest, by);

      longest = other > longest ? other : longest;
      sum += __shfl_xor_sync(0xffffffffu, sum, by);
    }
    if (lane == 0) {
      clen[warp]  = longest;
      keys[warp]  = EVCHYBBlockKey(byrow, longest, row);
      index[warp] = (PetscInt)warp;
      atomicAdd(&here.nzell, sum);
      atomicMax(&here.LCmax, (unsigned long long)longest);
      atomicAdd(&here.classes[EVCHYBClass(longest)], 1ull);
    }
  } else if (warp - nb < (ncsr + WarpSize - 1) / WarpSize) {
    const PetscCount r = (warp - nb) * WarpSize + lane;

    if (r < ncsr) {
      const PetscInt row = perm[(PetscCount)nb * EVCHYB_BLOCK + r];

      csri[r] = EVCHYBRoundUp(i[row + 1] - i[row]);
    }
  }
  __syncthreads();
  if (threadIdx.x < EVCHYB_CLASSES) {
    if (here.classes[threadIdx.x]) atomicAdd(&counts->classes[threadIdx.x], here.classes[threadIdx.x]);
  } else if (threadIdx.x == EVCHYB_CLASSES) {
    if (here.nzell) atomicAdd(&counts->nzell, here.nzell);
    atomicMax(&counts->LCmax, here.LCmax);
  }
}

/* Column blocks to the order in which they are stored, and the rows behind them: those of SubCSR, and empty ones; entries of the blocks for the prefix sum */
__global__ static void OrderKernel(PetscInt nb, PetscInt ncsr, PetscInt nlisted, const PetscInt *order, const PetscInt *__restrict__ empty, const PetscInt *__restrict__ sorted, const PetscInt *__restrict__ oldclen, PetscInt *perm, PetscInt *clen, PetscCount *bnz, Counts *counts)
{
  const PetscCount warp = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize, at = warp * WarpSize + threadIdx.x % WarpSize, behind = at - (PetscCount)nb * EVCHYB_BLOCK;
  PetscCount       row = at;

  if (warp < nb) {
    const PetscCount from = order[warp];

    perm[at] = row = sorted[from * EVCHYB_BLOCK + threadIdx.x % WarpSize];
    if (at == warp * WarpSize) {
      clen[warp] = oldclen[from];
      bnz[warp]  = (PetscCount)oldclen[from] * EVCHYB_BLOCK;
    }
  } else if (behind < ncsr) perm[at] = row = sorted[at];
  else if (behind - ncsr < nlisted) perm[at] = row = empty[behind - ncsr];
  if (__syncthreads_or(row != at) && threadIdx.x == 0) counts->moved = 1;
  if (behind == 0) bnz[nb] = 0; /* one count too many, so that the exclusive sum ends with the total */
}

/* Column blocks as they are sorted */
struct Workspace {
  uint64_t *keys, *sortedkeys;
  PetscInt *index, *clen, *order;
  char     *cub;
  size_t    cubbytes;
};

static size_t Carve(Workspace *w, PetscInt nb, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->keys, nb);
  carver.Take(w->sortedkeys, nb);
  carver.Take(w->index, nb);
  carver.Take(w->clen, nb);
  carver.Take(w->order, nb);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* The end of bnz, csr.i and the counts go to the host in one piece */
static size_t CarveRows(EVCHYBPlain *p, void *base, Counts **counts)
{
  GallopCarver carver(base);

  carver.Take(p->perm, p->ell.n + p->csr.n + p->nlisted);
  carver.Take(p->ell.clen, p->ell.nb);
  carver.Take(p->ell.bnz, (PetscCount)p->ell.nb + 1 + p->csr.n + 1 + (PetscCount)(sizeof(Counts) / sizeof(PetscCount)));
  p->csr.i = base ? p->ell.bnz + p->ell.nb + 1 : NULL;
  *counts  = base ? reinterpret_cast<Counts *>(p->csr.i + p->csr.n + 1) : NULL;
  return carver.Bytes();
}

static size_t CarveEntries(EVCHYBPlain *p, void *base)
{
  GallopCarver carver(base);

  carver.Take(p->ell.j, p->ell.nz);
  carver.Take(p->ell.as, p->ell.nz);
  carver.Take(p->csr.j, p->csr.nz);
  carver.Take(p->csr.as, p->csr.nz);
  CarveParts(&p->csr.parts, &carver);
  return carver.Bytes();
}

/* The two allocations begin at perm and at ell.j */
static PetscErrorCode Free(EVCHYBPlain **p)
{
  PetscFunctionBegin;
  if (!*p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFree((*p)->perm));
  PetscCall(GallopDeviceFree((*p)->ell.j));
  PetscCall(PetscFree(*p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPlainFree_Device(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(Free(&ev->plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lengths, orders and places of column blocks and of rows of SubCSR, into arrays for which there is room */
static PetscErrorCode OrderColumnBlocks(EVCHYBPlain *p, const GallopCSR *csr, const EVCHYBRows *rows, Workspace *w, Counts *counts, cudaStream_t stream)
{
  const PetscInt nb = p->ell.nb, ncsr = p->csr.n;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(p->csr.i + ncsr, 0, sizeof(PetscCount) + sizeof(Counts), stream)); /* one count too many, so that the exclusive sum ends with the total */
  if (nb || ncsr) {
    LengthsKernel<<<GallopBlocksFor((PetscCount)nb * WarpSize + (ncsr + WarpSize - 1) / WarpSize * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, p->byrow, csr->i, rows->nonempty, w->clen, w->keys, w->index,
                                                                                                                                                           p->csr.i, counts);
    GallopCheckLaunch();
  }
  if (nb && SortsSmall(p)) {
    static_assert(EVCHYB_CLASSES < 1 << SortBits, "keys of the small sort");
    SmallSortKernel<<<1, ScanThreads, 0, stream>>>((int)nb, w->keys, w->order);
    GallopCheckLaunch();
  } else if (nb) PetscCallCUDA(EVCHYBDeviceSortPairs(w->cub, w->cubbytes, w->keys, w->sortedkeys, w->index, w->order, nb, p->byrow ? EVCHYB_ROWBITS + SortBits : SortBits, stream));
  OrderKernel<<<GallopBlocksFor((PetscCount)(nb + 1) * WarpSize + ncsr + p->nlisted, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(nb, ncsr, p->nlisted, w->order, rows->all, rows->nonempty, w->clen, p->perm,
                                                                                                                                   p->ell.clen, p->ell.bnz, counts);
  GallopCheckLaunch();
  if (nb) PetscCallCUDA(ExclusiveScan(w->cub, w->cubbytes, p->ell.bnz, (PetscCount)nb + 1, stream));
  if (ncsr) PetscCallCUDA(ExclusiveScan(w->cub, w->cubbytes, p->csr.i, (PetscCount)ncsr + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All but the entries. *i has csr.i on the host, to be freed by the caller; it stays NULL when the GPU has no room. */
static PetscErrorCode Arrange(EVCHYB *ev, EVCHYBPlain *p, const GallopCSR *csr, const EVCHYBRows *rows, PetscCount **i)
{
  const PetscInt   nb = p->ell.nb, ncsr = p->csr.n;
  const PetscCount n = ncsr + 2 + (PetscCount)(sizeof(Counts) / sizeof(PetscCount)); /* the end of bnz, csr.i, counts */
  Workspace        w = {};
  Counts           counts, *kept;
  size_t           sortbytes = 0, scanbytes = 0, bytes;
  void            *base, *arrays;
  cudaStream_t     stream;

  PetscFunctionBegin;
  *i = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!SortsSmall(p)) PetscCallCUDA(EVCHYBDeviceSortPairs(nullptr, sortbytes, w.keys, w.sortedkeys, w.index, w.order, nb, p->byrow ? EVCHYB_ROWBITS + SortBits : SortBits, stream));
  PetscCallCUDA(ExclusiveScan(nullptr, scanbytes, p->csr.i, PetscMax((PetscCount)nb, (PetscCount)ncsr) + 1, stream));
  w.cubbytes = PetscMax(sortbytes, scanbytes);
  bytes      = Carve(&w, nb, NULL);
  PetscCall(GallopWorkspaceMalloc(bytes, &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, nb, base);
  ev->bytes = CarveRows(p, NULL, &kept);
  PetscCall(GallopDeviceMalloc(ev->bytes, &arrays));
  if (arrays) {
    (void)CarveRows(p, arrays, &kept);
    PetscCall(OrderColumnBlocks(p, csr, rows, &w, kept, stream));
    PetscCall(PetscMalloc1(n, i));
    PetscCall(GallopDeviceCopyOut(*i, p->ell.bnz + nb, n * sizeof(PetscCount)));
    p->ell.nz = (*i)[0];
    p->csr.nz = (*i)[1 + ncsr];
    PetscCall(PetscMemcpy(&counts, *i + ncsr + 2, sizeof(counts)));
    PetscCall(PetscArraymove(*i, *i + 1, ncsr + 1));
    p->nzell     = (PetscCount)counts.nzell;
    p->ell.LCmax = (PetscInt)counts.LCmax;
    p->inorder   = (PetscBool)!counts.moved;
    for (int c = 0; c < EVCHYB_CLASSES; c++) p->ell.classes[c] = (PetscInt)counts.classes[c];
  }
  PetscCall(GallopWorkspaceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPlainBuild_Device - *done is false where the GPU has no room, or it would take more than maxbytes. Frees the rows when they are needed no more, before there are entries. */
PetscErrorCode EVCHYBPlainBuild_Device(EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBPlain *p;
  EVCHYBParts  parts;
  PetscCount  *i;
  size_t       bytes;
  void        *base = NULL;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscNew(&p));
  EVCHYBPlainSplit(ev, rows, p);
  PetscCall(Arrange(ev, p, csr, rows, &i));
  PetscCall(EVCHYBRowsFree_Device(rows));
  if (!i) {
    PetscCall(Free(&p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(EVCHYBPlainOverlaps(&ev->overlaps));
  PetscCall(EVCHYBPlainPlan(ev, p, i)); /* on the host: it needs the lengths of long rows */
  PetscCall(PetscFree(i));
  parts = p->csr.parts;
  bytes = CarveEntries(p, NULL);
  if (!maxbytes || ev->bytes + bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes, &base));
  if (base) {
    (void)CarveEntries(p, base);
    ev->bytes += bytes;
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(CopyParts(&parts, &p->csr.parts, stream));
    PetscCall(EVCHYBPlainFill_Device(ev, p, csr, PETSC_TRUE));
    ev->plain = p;
    ev->work  = &EVCHYBPlainDevice;
    *done     = PETSC_TRUE;
  } else PetscCall(Free(&p));
  PetscCall(EVCHYBPartsFree(&parts));
  PetscFunctionReturn(PETSC_SUCCESS);
}
