/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: a look at some rows, and the choice of blocks */

#include "hbpchoose.h"
#include "hbpdevice.h"

/* Columns of a block, narrow and wide */
struct Widths {
  PetscInt M[2];
};

/* A warp for each row of the samples. The last thread block to end chooses blocks; h is the format before. */
__global__ static void __launch_bounds__(Threads) LookKernel(HBP h, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, Widths w, HBPSurvey *survey)
{
  using Sum = unsigned long long; /* of which a HBPSample is an array */
  static constexpr int    Num = sizeof(HBPSample) / sizeof(Sum), Near = offsetof(HBPSample, near) / sizeof(Sum), Chunks = offsetof(HBPSample, chunks) / sizeof(Sum), Segs = offsetof(HBPSample, segs) / sizeof(Sum), Logs = offsetof(HBPSample, logs) / sizeof(Sum);
  __shared__ unsigned int counts[Num];
  __shared__ HBPSample    sample;
  __shared__ bool         last;
  Sum *const              sum = reinterpret_cast<Sum *>(&survey->sample);
  const int               k = (int)(GallopGlobalThread() / WarpSize), lane = threadIdx.x % WarpSize;

  for (int f = threadIdx.x; f < Num; f += Threads) counts[f] = 0;
  __syncthreads();
  if (k < HBP_SAMPLES) {
    const HBPSampled row       = HBPSampledRow(h.m, i, k);
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
    if (counts[f]) atomicAdd(sum + f, (Sum)counts[f]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&survey->looked, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int f = threadIdx.x; f < Num; f += Threads) reinterpret_cast<Sum *>(&sample)[f] = GallopLoadFromL2(sum + f);
  __syncthreads();
  if (threadIdx.x) return;
  HBPChoose(w.M, &sample, &h);
  survey->h     = h;
  survey->whole = HBPFits(&h) && (h.colBlocks == 1 || h.mapChunks);
}

static size_t CarveLook(HBPLookWork *w, const HBP *h, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->survey, 1);
  carver.Take(w->counts, w->blocksMost);
  carver.Take(w->offsets, w->blocksMost + 1);
  carver.Take(w->longRows, h->nz / (h->options.long_row ? h->options.long_row : HBP_LONG_LEAST) + 1);
  carver.Take(w->chunks, w->blocksMost + 1);
  carver.Take(w->mapPtr, w->blocksMost + 1);
  return carver.Bytes();
}

/* HBPTakeLook - Workspace that is needed before blocks are chosen: as much as HBPChoose() may need. Clears the survey. */
PetscErrorCode HBPTakeLook(const HBP *h, HBPLookWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  w->blocksMost = ((PetscCount)h->m - 1) / (h->options.block_rows ? h->options.block_rows : HBP_LEAST_ROWS) + 1;
  PetscCall(GallopWorkspaceMalloc(CarveLook(w, h, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveLook(w, h, w->memory);
  PetscCallCUDA(cudaMemsetAsync(w->survey, 0, sizeof(*w->survey), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPLook - Looks at rows of the matrix, with blocks of M[0] and of M[1] columns, and chooses blocks */
PetscErrorCode HBPLook(const HBP *h, const GallopCSR *csr, const PetscInt M[2], const HBPLookWork *w, cudaStream_t stream)
{
  const Widths widths = {
    {M[0], M[1]}
  };

  PetscFunctionBegin;
  LookKernel<<<GallopBlocksFor(HBP_SAMPLES, Warps), Threads, 0, stream>>>(*h, csr->i, csr->j, widths, w->survey);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
