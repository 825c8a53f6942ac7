/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: maps, the chunks of columns in which a block of rows has entries */

#include "../common/footprint.h"
#include "hbpdevice.h"

static constexpr int MapThreads = 512, MapWords = 8192; /* of a thread block that makes a map: it marks chunks by bits of these words */
static constexpr int MapResident = 4;                   /* thread blocks on a multiprocessor */

/* Calls what(column) for the entries of rows row, ..., row + rows - 1 that are not long. Bit r of longRows tells whether row + r is; some, whether any is. By all threads of a thread block. */
template <typename What>
static __device__ __forceinline__ void WalkShortRows(const HBPMatrix &A, PetscInt row, PetscInt rows, const unsigned int *longRows, bool some, What what)
{
  static constexpr int Ahead = 4;

  for (PetscInt from = 0, to; from < rows; from = to + 1) {
    for (to = some ? from : rows; to < rows; to++) { /* the next long row */
      const unsigned int left = longRows[to / 32] >> to % 32;

      if (left) to += __ffs((int)left) - 1;
      if (left) break;
      to |= 31;
    }
    if (to > rows) to = rows;
    const PetscCount end = A.i[row + to];

    for (PetscCount e = (PetscCount)A.i[row + from] + threadIdx.x; e < end; e += Ahead * MapThreads) {
      PetscInt j[Ahead];

#pragma unroll
      for (int u = 0; u < Ahead; u++) j[u] = e + u * MapThreads < end ? A.j[e + u * MapThreads] : -1;
#pragma unroll
      for (int u = 0; u < Ahead; u++)
        if (j[u] >= 0) what(j[u]);
    }
  }
}

using Marks = GallopFootprintMarks<MapThreads, MapWords>;
static_assert(HBP_MAX_COLS / HBP_CHUNK <= MapWords / 2, "chunks of a map that are far apart are found in one walk");

/* How many chunks block of rows rb has entries in, those in long rows left out, or more than A.mapChunks. Stores their first columns in increasing order where map is not NULL. */
static __device__ PetscInt WalkChunks(const HBPMatrix &A, PetscInt rb, Marks &marks, PetscInt *__restrict__ map)
{
  __shared__ unsigned int longRows[HBP_MAX_ROWS / 32];
  const PetscInt          row = rb * A.N, rows = A.m - row < A.N ? A.m - row : A.N;
  bool                    some = false;

  for (PetscInt r = (PetscInt)threadIdx.x; r - (PetscInt)threadIdx.x % WarpSize < rows; r += MapThreads) {
    const unsigned int isLong = __ballot_sync(All, r < rows && A.i[row + r + 1] - A.i[row + r] > A.longRow);

    if (threadIdx.x % WarpSize == 0) longRows[r / 32] = isLong;
    some = some || isLong;
  }
  some = __syncthreads_or(some);
  return GallopFootprint(marks, A.mapChunks, false, HBP_CHUNK, map, [&](auto what) { WalkShortRows(A, row, rows, longRows, some, [&](PetscInt col) { what((int)(col / HBP_CHUNK)); }); });
}

/* A thread block for each block of rows: how many chunks its map has, 0 for none */
__global__ static void __launch_bounds__(MapThreads, MapResident) CountChunksKernel(HBPMatrix A, PetscInt *__restrict__ chunks, HBPFound *found)
{
  __shared__ Marks marks;
  const PetscInt   rb = (PetscInt)blockIdx.x, num = WalkChunks(A, rb, marks, NULL);

  if (threadIdx.x) return;
  chunks[rb] = num <= A.mapChunks ? num : 0;
  if (rb == 0) chunks[A.rowBlocks] = 0;
  if (num > A.mapChunks) atomicAdd(&found->plain, 1);
  else if (num) atomicAdd(&found->mapped, 1);
}

/* A thread block for each block of rows: its map, which begins with chunk ptr[rb]. The last one makes a map of all chunks of a block, for the blocks that have none. */
__global__ static void __launch_bounds__(MapThreads, MapResident) MapKernel(HBPMatrix A, HBP h, ReadOnly<PetscInt> ptr, PetscInt all)
{
  __shared__ Marks marks;
  const PetscInt   rb  = (PetscInt)blockIdx.x;
  PetscInt *const  map = h.map + ptr[rb];

  if (threadIdx.x == 0) h.mapPtr[rb] = ptr[rb];
  if (rb == h.rowBlocks) {
    for (PetscInt k = threadIdx.x; k < all; k += MapThreads) map[k] = k * HBP_CHUNK;
    return;
  }
  if (A.mapped[rb]) (void)WalkChunks(A, rb, marks, map);
}

/* HBPCountMaps - Which blocks of rows have maps */
PetscErrorCode HBPCountMaps(HBP *h, HBPMatrix *A, const HBPLookWork *w, cudaStream_t stream)
{
  HBPFound found;

  PetscFunctionBegin;
  CountChunksKernel<<<(unsigned int)h->rowBlocks, MapThreads, 0, stream>>>(*A, w->chunks, w->found);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, w->found, sizeof(found)));
  h->mapped = found.mapped;
  if (!found.plain) {
    h->allMapped = PETSC_TRUE;
    h->colBlocks = 1;
  }
  A->mapped = w->chunks;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPFillMaps - The maps, which begin where w->mapPtr tells */
PetscErrorCode HBPFillMaps(const HBP *h, const HBPMatrix *A, const HBPLookWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  MapKernel<<<(unsigned int)h->rowBlocks + 1, MapThreads, 0, stream>>>(*A, *h, w->mapPtr, (PetscInt)(HBPMapPlaces(h) - h->mapNum));
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
