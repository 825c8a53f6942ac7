/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: a look at some rows, from which blocks are chosen */

#include "hbpdevice.h"

/* Columns of a block, narrow and wide */
struct Widths {
  PetscInt M[2];
};

/* A warp for each row of the samples. sum is a HBPSample, as an array. */
__global__ static void __launch_bounds__(Threads) LookKernel(PetscInt m, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, Widths w, unsigned long long *__restrict__ sum)
{
  static constexpr int    Num = sizeof(HBPSample) / sizeof(*sum), Near = offsetof(HBPSample, near) / sizeof(*sum), Chunks = offsetof(HBPSample, chunks) / sizeof(*sum), Segs = offsetof(HBPSample, segs) / sizeof(*sum), Logs = offsetof(HBPSample, logs) / sizeof(*sum);
  __shared__ unsigned int counts[Num]; /* of a HBPSample */
  const int               k = (int)(GallopGlobalThread() / WarpSize), lane = threadIdx.x % WarpSize;

  for (int f = threadIdx.x; f < Num; f += Threads) counts[f] = 0;
  __syncthreads();
  if (k < HBP_SAMPLES) {
    const HBPSampled row       = HBPSampledRow(m, i, k);
    PetscInt         before[2] = {row.begin, row.begin}; /* for each width, where the segment begins that goes on from the entries before */

    for (PetscInt first = row.begin; first < row.end; first += WarpSize) {
      const PetscInt     e = first + lane, col = e < row.end ? j[e] : 0, next = e + 1 < row.end ? j[e + 1] : 0;
      const bool         mine = e < row.end, near = mine && HBPIsNear(j, &row, col);
      const unsigned int nears = __ballot_sync(All, near), chunks = __ballot_sync(All, mine && !near && (e == row.begin || col / HBP_CHUNK != j[e - 1] / HBP_CHUNK));

      if (lane == 0) {
        atomicAdd(counts, (unsigned int)(row.end - first < WarpSize ? row.end - first : WarpSize));
        atomicAdd(counts + Near, (unsigned int)__popc(nears));
        atomicAdd(counts + Chunks, (unsigned int)__popc(chunks));
      }
      for (int width = HBP_NARROW; width <= HBP_WIDE; width++) {
        const bool         end  = mine && (e + 1 == row.end || next / w.M[width] != col / w.M[width]);
        const unsigned int ends = __ballot_sync(All, end), below = ends & LanesBelow();

        if (end) {
          const PetscInt begin = below ? first + WarpSize - __clz((int)below) : before[width];

          atomicAdd(counts + Segs + width, 1u);
          atomicAdd(counts + Logs + width * HBP_LOGS + HBPLog(e + 1 - begin), 1u);
        }
        if (ends) before[width] = first + WarpSize - __clz((int)ends);
      }
    }
    if (lane == 0 && row.end > row.begin) {
      atomicAdd(counts + Segs + HBP_ROW, 1u);
      atomicAdd(counts + Logs + HBP_ROW * HBP_LOGS + HBPLog(row.end - row.begin), 1u);
    }
  }
  __syncthreads();
  for (int f = threadIdx.x; f < Num; f += Threads)
    if (counts[f]) atomicAdd(sum + f, (unsigned long long)counts[f]);
}

static size_t CarveLook(HBPLookWork *w, const GallopCSR *csr, const HBPOptions *options, const PetscInt M[2], void *base)
{
  GallopCarver     carver(base);
  const PetscInt   rowBlocks = (csr->m - 1) / (options->block_rows ? options->block_rows : HBP_LEAST_ROWS) + 1;
  const PetscCount colBlocks = PetscMin((csr->n - 1) / PetscMin(M[0], M[1]) + 1, HBP_MOST_BLOCKS(csr->nz));
  char            *found;

  carver.Take(w->sample, 1);
  carver.Take(found, (PetscCount)FoundBytes((PetscInt)colBlocks));
  w->found = (HBPFound *)found;
  carver.Take(w->chunks, (PetscCount)rowBlocks + 1);
  carver.Take(w->mapPtr, (PetscCount)rowBlocks + 1);
  return carver.Bytes();
}

/* HBPTakeLook - Workspace that is needed before blocks are chosen: as much as the choice may need, see HBPChoose() and HBPFits(). Clears sample and found. */
PetscErrorCode HBPTakeLook(const GallopCSR *csr, const HBPOptions *options, const PetscInt M[2], HBPLookWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(GallopWorkspaceMalloc(CarveLook(w, csr, options, M, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveLook(w, csr, options, M, w->memory);
  PetscCallCUDA(cudaMemsetAsync(w->sample, 0, (size_t)((char *)(w->found + 1) - (char *)w->sample), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPLook - Looks at rows of the matrix */
PetscErrorCode HBPLook(const GallopCSR *csr, const PetscInt M[2], const HBPLookWork *w, HBPSample *s, cudaStream_t stream)
{
  const Widths widths = {
    {M[0], M[1]}
  };

  PetscFunctionBegin;
  LookKernel<<<GallopBlocksFor(HBP_SAMPLES, Warps), Threads, 0, stream>>>(csr->m, csr->i, csr->j, widths, (unsigned long long *)w->sample);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(s, w->sample, sizeof(*s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
