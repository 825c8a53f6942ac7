/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP on the GPU: a look at all rows, and at the columns of a sample. rules.c has the same for the host. */

#include <gallop/cudaimpl.h>
#include "choice.h"

static constexpr int Threads = 256;

/* A thread takes rows that are a grid apart */
__global__ static void __launch_bounds__(Threads) LengthsKernel(PetscInt m, const PetscInt *__restrict__ i, GallopPattern *p)
{
  unsigned long long nonempty = 0, squares = 0;
  unsigned int       longest = 0; /* rows beyond 2^32 entries are none that any format has */
  const PetscCount   step    = (PetscCount)gridDim.x * Threads;

  for (PetscCount r = GallopGlobalThread(); r < m; r += step) {
    const unsigned long long len = (unsigned long long)(i[r + 1] - i[r]);

    nonempty += len > 0;
    squares += len * len;
    longest = max(longest, (unsigned int)min(len, 0xffffffffull));
  }
  for (int by = WarpSize / 2; by; by /= 2) {
    nonempty += __shfl_xor_sync(0xffffffffu, nonempty, by);
    squares += __shfl_xor_sync(0xffffffffu, squares, by);
  }
  longest = GallopWarpMax(longest);
  if (threadIdx.x % WarpSize) return;
  atomicAdd(&p->nonempty, nonempty);
  atomicAdd(&p->squares, squares);
  atomicMax(&p->longest, (unsigned long long)longest);
}

/* A thread block for each window */
__global__ static void __launch_bounds__(Threads) WindowsKernel(PetscCount nz, int windows, PetscInt sector, const PetscInt *__restrict__ j, GallopPattern *p)
{
  static constexpr int    Words = GALLOP_BITS / 32;
  __shared__ unsigned int bits[Words];
  const PetscCount        end   = GallopWindowEnd(nz, windows, blockIdx.x);
  unsigned long long      marks = 0;

  for (int k = threadIdx.x; k < Words; k += Threads) bits[k] = 0;
  __syncthreads();
  for (PetscCount e = GallopWindowBegin(nz, windows, blockIdx.x) + threadIdx.x; e < end; e += Threads) {
    const unsigned int bit = GallopSectorBit(j[e], sector);

    atomicOr(bits + bit / 32, 1u << bit % 32);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < Words; k += Threads) marks += (unsigned long long)__popc(bits[k]);
  for (int by = WarpSize / 2; by; by /= 2) marks += __shfl_xor_sync(0xffffffffu, marks, by);
  if (threadIdx.x % WarpSize == 0) atomicAdd(&p->marks, marks);
}

/* GallopPatternGet_Device - Counts sectors of so many numbers; the host waits for it once. *done is false where the GPU has no room for a few bytes. l2: bytes of the L2 cache. */
PetscErrorCode GallopPatternGet_Device(const GallopCSR *csr, PetscInt sector, GallopPattern *p, PetscCount *l2, PetscBool *done)
{
  const int    windows = GallopWindows(csr->nz);
  int          device, bytes, processors;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
  *l2 = bytes;
  PetscCall(GallopWorkspaceMalloc(sizeof(*p), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceGetProcessors(&processors));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(memory, 0, sizeof(*p), stream));
  LengthsKernel<<<PetscMin(GallopBlocksFor(csr->m, Threads), (unsigned int)(8 * processors)), Threads, 0, stream>>>(csr->m, csr->i, (GallopPattern *)memory);
  GallopCheckLaunch();
  WindowsKernel<<<windows, Threads, 0, stream>>>(csr->nz, windows, sector, csr->j, (GallopPattern *)memory);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(p, memory, sizeof(*p)));
  PetscCall(GallopWorkspaceFree(memory));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
