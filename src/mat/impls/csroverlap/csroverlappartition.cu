/* SPDX-License-Identifier: BSD-2-Clause */
/*
  CSROVERLAP: the partition into batches (Algorithm 3), made on the GPU where the row offsets are there. A batch begins where the one before it ends, which seems to take one thread. But a batch
  that begins in a chunk of rows, or before it, ends at one of the first rows behind it. So each chunk finds where a walk leaves it for each row at which it may come in, and how many batches it
  meets; then walks over chunks are short.
*/

#include "csroverlapdevice.h"

static constexpr int ChunkRows = 2048;               /* of a chunk, which a thread block has */
static constexpr int Entries   = CSROVERLAP_THREADS; /* rows at which a walk may come into a chunk: batches have no more rows */
static constexpr int Each      = 32;                 /* chunks of a super chunk */

static_assert(Threads == Entries, "a thread for each row at which a walk may come in");

/* Batches with entries, batches without, and long rows */
struct Counts {
  PetscInt busy, idle, nlong;

  __device__ Counts operator+(const Counts &c) const { return {busy + c.busy, idle + c.idle, nlong + c.nlong}; }
};

/* What the host is told. chosen: max_batch_size */
struct Found {
  CSROverlapSample   sample;
  unsigned long long nonempty;
  Counts             all;
  PetscInt           chosen;
};

/* The lengths of some rows */
__global__ static void __launch_bounds__(Threads) SampleKernel(PetscInt m, const PetscInt *__restrict__ row_offsets, CSROverlapSample *sample)
{
  const PetscCount         k   = GallopGlobalThread();
  const unsigned long long len = k < CSROVERLAP_SAMPLES && k < m ? (unsigned long long)CSROverlapSampleLength(m, row_offsets, (PetscInt)k) : 0;
  const unsigned long long sum = GallopGroupSum(len, WarpSize), squares = GallopGroupSum(len * len, WarpSize), above = GallopGroupSum((unsigned long long)(len > CSROVERLAP_ROW_IN_REGISTERS), WarpSize);

  if (threadIdx.x % WarpSize) return;
  atomicAdd(&sample->sum, sum);
  atomicAdd(&sample->squares, squares);
  atomicAdd(&sample->above, above);
}

/* fits, others: max_batch_size where rows of the sample fit registers, and where they do not */
__global__ static void ChooseKernel(PetscInt m, PetscInt fits, PetscInt others, Found *found)
{
  found->chosen = CSROverlapSampleFits(m, &found->sample) ? fits : others;
}

/* Where a walk comes into a chunk, counted from its first row, and what it has met */
struct Walk {
  PetscInt at;
  Counts   met;
};

/* The rows of a chunk, and where batches end that begin at each */
struct Chunk {
  PetscInt offsets[ChunkRows + Entries + 1];
  int      ends[ChunkRows];
  int      rows;

  __device__ __forceinline__ void Load(PetscInt max_batch_size, PetscInt m, const PetscInt *__restrict__ row_offsets, PetscInt first)
  {
    const int known = (int)(m - first < ChunkRows + Entries ? m - first : ChunkRows + Entries), own = known < ChunkRows ? known : ChunkRows;

    if (threadIdx.x == 0) rows = own;
    for (int k = threadIdx.x; k <= known; k += Threads) offsets[k] = row_offsets[first + k];
    __syncthreads();
    for (int k = threadIdx.x; k < own; k += Threads) ends[k] = (int)CSROverlapBatchEnd(max_batch_size, known, offsets, k);
    __syncthreads();
  }

  /* What begins at a row of the chunk */
  __device__ __forceinline__ Counts At(PetscInt max_batch_size, int row) const
  {
    if (CSROverlapIsLong(max_batch_size, offsets, row)) return {0, 0, 1};
    return offsets[ends[row]] > offsets[row] ? Counts{1, 0, 0} : Counts{0, 1, 0};
  }
};

__global__ static void __launch_bounds__(Threads) ChunksKernel(PetscInt m, const PetscInt *__restrict__ row_offsets, Walk *leaves, Found *found)
{
  __shared__ Chunk chunk;
  const PetscInt   max_batch_size = found->chosen;
  Counts           met            = {0, 0, 0};
  int              at = threadIdx.x, nonempty = 0;

  chunk.Load(max_batch_size, m, row_offsets, (PetscInt)blockIdx.x * ChunkRows);
  for (; at < chunk.rows; at = chunk.ends[at]) met = met + chunk.At(max_batch_size, at);
  leaves[(PetscCount)blockIdx.x * Entries + threadIdx.x] = {at - chunk.rows, met};
  for (int k = threadIdx.x; k < ChunkRows; k += Threads) nonempty += __syncthreads_count(k < chunk.rows && chunk.offsets[k + 1] > chunk.offsets[k]);
  if (threadIdx.x == 0) atomicAdd(&found->nonempty, (unsigned long long)nonempty);
}

/* The same for super chunks */
__global__ static void __launch_bounds__(Threads) SuperChunksKernel(PetscInt chunks, const Walk *__restrict__ leaves, Walk *superleaves)
{
  const PetscInt first = (PetscInt)blockIdx.x * Each;
  Walk           walk  = {(PetscInt)threadIdx.x, {0, 0, 0}};

  for (PetscInt c = first; c < first + Each && c < chunks; c++) {
    const Walk &next = leaves[(PetscCount)c * Entries + walk.at];

    walk = {next.at, walk.met + next.met};
  }
  superleaves[(PetscCount)blockIdx.x * Entries + threadIdx.x] = walk;
}

/* Threads that walk over some chunks each, from where befores say, or a first one from row 0: what they have met before each chunk, and behind the last of all */
__global__ static void WalkKernel(PetscInt chunks, PetscInt each, const Walk *__restrict__ befores, const Walk *__restrict__ leaves, Walk *starts)
{
  const PetscCount t     = GallopGlobalThread();
  const PetscCount first = t * each;

  if (first >= chunks) return;
  Walk walk = befores ? befores[t] : Walk{0, {0, 0, 0}};

  for (PetscCount c = first; c < first + each && c < chunks; c++) {
    const Walk &next = leaves[c * Entries + walk.at];

    starts[c] = walk;
    walk      = {next.at, walk.met + next.met};
  }
  if (first + each >= chunks) starts[chunks] = walk;
}

__global__ static void __launch_bounds__(Threads) BatchesKernel(PetscInt m, const PetscInt *__restrict__ row_offsets, const Walk *__restrict__ starts, const CSROverlapParts parts, Found *found)
{
  __shared__ Chunk chunk;
  const PetscInt   max_batch_size = found->chosen, first = (PetscInt)blockIdx.x * ChunkRows;

  chunk.Load(max_batch_size, m, row_offsets, first);
  if (threadIdx.x) return;
  Counts         met  = starts[blockIdx.x].met;
  const PetscInt busy = starts[gridDim.x].met.busy;

  if (blockIdx.x == 0) found->all = starts[gridDim.x].met;

  for (int at = (int)starts[blockIdx.x].at; at < chunk.rows; at = chunk.ends[at]) {
    const Counts    is   = chunk.At(max_batch_size, at);
    const BatchInfo info = {first + at, first + chunk.ends[at]};

    if (is.nlong) parts.longs[met.nlong] = {info.start_row, chunk.offsets[at], chunk.offsets[at + 1]};
    else {
      parts.infos[met.busy + met.idle]                  = info;
      parts.order[is.busy ? met.busy : busy + met.idle] = info;
    }
    met = met + is;
  }
}

typedef struct {
  Walk *leaves, *superleaves; /* [chunks * Entries] and so on */
  Walk *starts, *superstarts; /* [chunks + 1] */
  Found *found;
} Workspace;

static size_t Carve(Workspace *w, CSROverlapParts *parts, PetscInt chunks, PetscInt supers, PetscCount batches, PetscCount longs, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->leaves, (PetscCount)chunks * Entries);
  carver.Take(w->superleaves, (PetscCount)supers * Entries);
  carver.Take(w->starts, (PetscCount)chunks + 1);
  carver.Take(w->superstarts, (PetscCount)supers + 1);
  carver.Take(w->found, 1);
  carver.Take(parts->infos, batches);
  carver.Take(parts->order, batches);
  carver.Take(parts->longs, longs);
  return carver.Bytes();
}

/*
  CSROverlapPartition_Device - As CSROverlapPartition(), with the same result, on the GPU; max_batch_size is chosen there too, so that the host waits once

  Input Parameters:
+ options     - of the format
. largest     - most that max_batch_size may be
. m           - rows
. nz          - entries
- row_offsets - on the GPU

  Output Parameter:
. parts - batches in order of rows and in that of the kernel, and long rows with where they begin and end; parts->memory, for GallopWorkspaceFree(), is NULL where the GPU has no room
*/
PetscErrorCode CSROverlapPartition_Device(const CSROverlapOptions *options, PetscInt largest, PetscInt m, PetscCount nz, const PetscInt row_offsets[], CSROverlapParts *parts)
{
  const CSROverlapSample none = {0, 0, 0}, much = {0, 0, CSROVERLAP_SAMPLES};
  const PetscInt         chunks = (m - 1) / ChunkRows + 1, supers = (chunks - 1) / Each + 1, fits = PetscMin(CSROverlapBatchSize(options, m, nz, &none), largest), others = PetscMin(CSROverlapBatchSize(options, m, nz, &much), largest);
  const PetscCount       longs = nz / PetscMin(fits, others) + 1, most = 2 * ((PetscCount)m / CSROVERLAP_THREADS + longs) + longs; /* two batches that follow each other have more than one may have */
  Workspace              w;
  Found                  found;
  cudaStream_t           stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, parts, chunks, supers, most, longs, NULL), &parts->memory));
  if (!parts->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, parts, chunks, supers, most, longs, parts->memory);
  PetscCallCUDA(cudaMemsetAsync(w.found, 0, sizeof(*w.found), stream));
  SampleKernel<<<GallopBlocksFor(CSROVERLAP_SAMPLES, Threads), Threads, 0, stream>>>(m, row_offsets, &w.found->sample);
  GallopCheckLaunch();
  ChooseKernel<<<1, 1, 0, stream>>>(m, fits, others, w.found);
  GallopCheckLaunch();
  ChunksKernel<<<(unsigned int)chunks, Threads, 0, stream>>>(m, row_offsets, w.leaves, w.found);
  GallopCheckLaunch();
  SuperChunksKernel<<<(unsigned int)supers, Threads, 0, stream>>>(chunks, w.leaves, w.superleaves);
  GallopCheckLaunch();
  WalkKernel<<<1, 1, 0, stream>>>(supers, supers, NULL, w.superleaves, w.superstarts);
  GallopCheckLaunch();
  WalkKernel<<<GallopBlocksFor(supers, WarpSize), WarpSize, 0, stream>>>(chunks, Each, w.superstarts, w.leaves, w.starts);
  GallopCheckLaunch();
  BatchesKernel<<<(unsigned int)chunks, Threads, 0, stream>>>(m, row_offsets, w.starts, *parts, w.found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, w.found, sizeof(found)));
  parts->max_batch_size = found.chosen;
  parts->even           = CSROverlapIsEven(m, nz, &found.sample);
  parts->nonempty       = (PetscInt)found.nonempty;
  parts->busy_num       = found.all.busy;
  parts->batch_num      = found.all.busy + found.all.idle;
  parts->long_row_num   = found.all.nlong;
  PetscFunctionReturn(PETSC_SUCCESS);
}
