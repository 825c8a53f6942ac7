/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's column blocks on the GPU: the build from CSR arrays, and new values. Nothing is sorted: a byte tells how many entries a row has in a block of columns, and places are counted. */

#include <cub/device/device_scan.cuh>
#include "hbpcolumnsdevice.h"

static constexpr int Lengths = HBP_MAX_LINES + 1; /* that a segment may have, 0 for none: a thread of a thread block for each */

static_assert(Lengths == Threads);

/* What a stage has, and all stages before one. refused: of the first stage, whether the matrix cannot be stored so. */
struct Counts {
  PetscInt seg, line, entry, refused;
};

struct AddCounts {
  __host__ __device__ Counts operator()(const Counts &a, const Counts &b) const { return {a.seg + b.seg, a.line + b.line, a.entry + b.entry, a.refused + b.refused}; }
};

struct Work {
  void          *memory;
  unsigned char *len;             /* entries of each row of each stage, stage by stage; not of rows behind the last one */
  Counts        *counts, *before; /* [stages + 1] */
  int           *refused;
  char          *cub;
};

/* Entries of each row in each block of columns */
__global__ static void __launch_bounds__(Threads) EntriesKernel(HBPColumns c, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, unsigned char *len, int *refused)
{
  const PetscCount r = GallopGlobalThread();

  if (r >= c.m) return;
  const PetscInt       end = i[r + 1], last = c.num - 1;
  unsigned char *const own = len + r / c.N * c.num * c.N + r % c.N;
  PetscInt             k = i[r], before = -1;
  PetscCount           stop = c.M;

  for (PetscInt b = 0; b <= last; b++, stop += c.M) {
    int num = 0;

    for (; k < end && (b == last || j[k] < stop); k++, num++) {
      if (j[k] <= before || num == c.longest) { /* such a row may have very many entries */
        *refused = 1;
        return;
      }
      before = j[k];
    }
    own[(PetscCount)b * c.N] = (unsigned char)num;
  }
}

/* The lengths of a stage's segments as warps count them. Each warp has rows that follow each other. */
struct Stage {
  const unsigned char *len;
  int                  rows, begin, end; /* of the tile, and of this warp */

  __device__ __forceinline__ Stage(const HBPColumns &c, PetscCount stage, const unsigned char *lens) : len(lens + stage * c.N)
  {
    const PetscInt first = (PetscInt)(stage / c.num) * c.N;

    rows  = (int)(c.m - first < c.N ? c.m - first : c.N);
    begin = min((rows + Threads - 1) / Threads * WarpSize * (int)(threadIdx.x / WarpSize), rows);
    end   = min(begin + (rows + Threads - 1) / Threads * WarpSize, rows);
  }

  /* Calls take(row, length, lanes with this length) for each row of the warp, in order; length 0 where there are fewer rows than lanes */
  template <typename Take>
  __device__ __forceinline__ void Walk(Take take) const
  {
    for (int first = begin; first < end; first += WarpSize) {
      const int row = first + (int)threadIdx.x % WarpSize, num = row < end ? len[row] : 0;

      take(row, num, __match_any_sync(All, num));
      __syncwarp();
    }
  }
};

/* Segments with each length, of each warp; by all threads of a thread block, for whom it is there afterwards */
static __device__ __forceinline__ void CountLengths(const Stage &stage, int counts[Warps][Lengths])
{
  for (int w = 0; w < Warps; w++) counts[w][threadIdx.x] = 0;
  __syncthreads();
  stage.Walk([&](int, int num, unsigned int same) {
    if (!(same & LanesBelow())) counts[threadIdx.x / WarpSize][num] += __popc(same);
  });
  __syncthreads();
}

/* size[k]: segments with more than k entries, the size of line k; by all threads */
static __device__ __forceinline__ void GetSizes(const int counts[Warps][Lengths], int with[Lengths], int size[Lengths])
{
  int sum = 0;

  for (int w = 0; w < Warps; w++) sum += counts[w][threadIdx.x];
  with[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int k = threadIdx.x + 1; k < Lengths; k++) sum += with[k];
  size[threadIdx.x] = sum;
  __syncthreads();
}

/* A thread block for each stage: how much it has */
__global__ static void __launch_bounds__(Threads) CountStagesKernel(HBPColumns c, const unsigned char *len, const int *refused, Counts *counts)
{
  __shared__ int   table[Warps][Lengths], with[Lengths], size[Lengths];
  const PetscCount s = (PetscCount)blockIdx.x;

  CountLengths(Stage(c, s, len), table);
  GetSizes(table, with, size);
  if (threadIdx.x) return;
  int      lines   = 0;
  PetscInt entries = 0;

  for (; size[lines]; lines++) entries += size[lines];
  counts[s] = {size[0], lines, entries, s ? 0 : *refused};
  if (!s) counts[gridDim.x] = {0, 0, 0, 0}; /* which does not count, but an exclusive sum reads it */
}

/* A thread block for each stage: its lines, and its segments by length, those of the same length in order of rows */
__global__ static void __launch_bounds__(Threads) PlaceKernel(HBPColumns c, const unsigned char *len, const Counts *before)
{
  __shared__ int   table[Warps][Lengths], with[Lengths], size[Lengths];
  const PetscCount s     = (PetscCount)blockIdx.x;
  const Counts     first = before[s], next = before[s + 1];
  const Stage      stage(c, s, len);
  const int        k = (int)threadIdx.x, warp = k / WarpSize;

  CountLengths(stage, table);
  GetSizes(table, with, size);
  if (k < next.line - first.line) {
    PetscInt at = first.entry;

    for (int l = 0; l < k; l++) at += size[l];
    c.line[first.line + k] = at;
  }
  if (k == 0) {
    c.linePtr[s] = first.line;
    c.segPtr[s]  = first.seg;
    if (s + 1 == gridDim.x) {
      c.linePtr[s + 1]  = next.line;
      c.segPtr[s + 1]   = next.seg;
      c.line[next.line] = next.entry;
    }
  }
  for (int w = 0, at = size[k]; w < Warps; w++) { /* behind those that are longer */
    const int own = table[w][k];

    table[w][k] = at;
    at += own;
  }
  __syncthreads();
  stage.Walk([&](int row, int num, unsigned int same) {
    const int at = table[warp][num] + __popc(same & LanesBelow());

    __syncwarp();
    if (!(same & LanesBelow())) table[warp][num] += __popc(same);
    if (num) c.row[first.seg + at] = (unsigned short)row;
  });
}

/* A thread block for each stage: the values of its entries, and their columns if these are wanted. A segment is looked up in its row. */
template <bool WithColumns>
__global__ static void __launch_bounds__(Threads) FillKernel(HBPColumns c, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a)
{
  static constexpr int Steps = 4;
  const PetscCount     s = (PetscCount)blockIdx.x, first = s % c.num * c.M;
  const PetscInt       seg = c.segPtr[s], num = c.segPtr[s + 1] - seg, begin = c.linePtr[s], end = c.linePtr[s + 1];

  for (PetscInt g = threadIdx.x; g < num; g += Threads) {
    const PetscInt row = (PetscInt)(s / c.num) * c.N + c.row[seg + g];
    PetscInt       k   = HBPSegmentBegin(j, i[row], i[row + 1], first);

    for (PetscInt l = begin; l < end && g < c.line[l + 1] - c.line[l]; l += Steps, k += Steps) {
      PetscScalar  value[Steps];
      unsigned int col[Steps];
      PetscInt     at[Steps];

#pragma unroll
      for (int u = 0; u < Steps; u++) {
        at[u] = l + u < end && g < c.line[l + u + 1] - c.line[l + u] ? c.line[l + u] + g : -1;
        if (at[u] < 0) continue;
        value[u] = a[k + u];
        if (WithColumns) col[u] = (unsigned int)(j[k + u] - first);
      }
#pragma unroll
      for (int u = 0; u < Steps; u++) {
        if (at[u] < 0) continue;
        c.data[at[u]] = value[u];
        if (WithColumns) c.col[at[u]] = col[u];
      }
    }
  }
}

static size_t CarveWork(Work *w, const HBPColumns *c, size_t cubbytes, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->len, HBPStages(c) * c->N);
  carver.Take(w->counts, HBPStages(c) + 1);
  carver.Take(w->before, HBPStages(c) + 1);
  carver.Take(w->refused, 1);
  carver.Take(w->cub, (PetscCount)cubbytes);
  return carver.Bytes();
}

static size_t CarveArrays(HBPColumns *c, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(c->array, number);
  HBP_COLUMNS_ARRAYS(c, TAKE);
#undef TAKE
  return carver.Bytes();
}

/* The numbers of everything; without memory, or where the matrix cannot be stored so, *done is false */
static PetscErrorCode Count(HBPColumns *c, const GallopCSR *csr, Work *w, cudaStream_t stream, PetscBool *done)
{
  const PetscCount stages = HBPStages(c);
  const Counts     none   = {0, 0, 0, 0};
  Counts           all;
  size_t           cubbytes = 0;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, cubbytes, w->counts, w->before, AddCounts(), none, stages + 1, stream));
  PetscCall(GallopWorkspaceMalloc(CarveWork(w, c, cubbytes, NULL), &w->memory));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveWork(w, c, cubbytes, w->memory);
  PetscCallCUDA(cudaMemsetAsync(w->refused, 0, sizeof(*w->refused), stream));
  EntriesKernel<<<GallopBlocksFor(c->m, Threads), Threads, 0, stream>>>(*c, csr->i, csr->j, w->len, w->refused);
  GallopCheckLaunch();
  CountStagesKernel<<<(unsigned int)stages, Threads, 0, stream>>>(*c, w->len, w->refused, w->counts);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w->cub, cubbytes, w->counts, w->before, AddCounts(), none, stages + 1, stream));
  PetscCall(GallopDeviceCopyOut(&all, w->before + stages, sizeof(all)));
  if (all.refused) PetscFunctionReturn(PETSC_SUCCESS);
  c->segNum  = all.seg;
  c->lineNum = all.line;
  *done      = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsBuild_Device - h->columns, NULL where the matrix is to be stored by blocks of rows and columns */
PetscErrorCode HBPColumnsBuild_Device(HBP *h, const GallopCSR *csr, const HBPSample *s, PetscCount maxbytes, cudaStream_t stream)
{
  HBPColumns *c;
  Work        w    = {};
  void       *base = NULL;
  PetscBool   done;

  PetscFunctionBegin;
  PetscCall(HBPColumnsGetRoom(csr, &h->options));
  PetscCall(HBPColumnsChoose(&h->options, csr, s, PETSC_MEMTYPE_CUDA, &c));
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Count(c, csr, &w, stream, &done));
  if (done) {
    c->bytes = CarveArrays(c, NULL);
    if (!maxbytes || c->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(c->bytes, &base));
  }
  if (base) {
    (void)CarveArrays(c, base);
    PlaceKernel<<<(unsigned int)HBPStages(c), Threads, 0, stream>>>(*c, w.len, w.before);
    GallopCheckLaunch();
    FillKernel<true><<<(unsigned int)HBPStages(c), Threads, 0, stream>>>(*c, csr->i, csr->j, csr->a);
    GallopCheckLaunch();
    PetscCall(HBPColumnsPlan(c, &h->options));
    h->columns = c;
    h->bytes   = c->bytes;
  } else {
    PetscCall(HBPColumnsTellRefusal(&h->options, csr, done || !w.memory ? HBP_COLUMNS_ROOM : HBP_COLUMNS_ROWS));
    PetscCall(HBPColumnsDestroy(&c));
  }
  PetscCall(GallopWorkspaceFree(w.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsRefresh_Device - New values */
PetscErrorCode HBPColumnsRefresh_Device(HBPColumns *c, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  FillKernel<false><<<(unsigned int)HBPStages(c), Threads, 0, stream>>>(*c, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  c->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
