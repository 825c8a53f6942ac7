/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: maps of some blocks of rows, where others have none */

#include "hbpmap.cuh"

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

/* HBPFillMaps - The maps, which begin where w->mapPtr tells */
PetscErrorCode HBPFillMaps(const HBP *h, const HBPMatrix *A, const HBPLookWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  MapKernel<<<(unsigned int)h->rowBlocks + 1, MapThreads, 0, stream>>>(*A, *h, w->mapPtr, (PetscInt)(HBPMapPlaces(h) - h->mapNum));
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
