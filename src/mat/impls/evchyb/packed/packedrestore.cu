/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's packed storage on the GPU: back to CSR */

#include "../evchyb.h"
#include "packedkernels.cuh"

/* What a lane's two rows have in line k of a slice, or the lane's two entries of a piece: on[h] says whether there is one, at[h] where it goes */
template <EVCHYBPackValues Kind>
static __device__ __forceinline__ void RestoreLine(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, int k, const bool on[2], const PetscInt at[2], PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const int                  lane   = threadIdx.x % WarpSize;
  const EVCHYBPackLine       line   = EVCHYBPackLoadLine(view.line + slice.line + k);
  const EVCHYBPackPair<int>  column = EVCHYBPackColumns(line, EVCHYBPackLoadOffsets(line, view.stream, lane), lane);
  EVCHYBPackLaneValues<Kind> stored;

  stored.LoadOnceIf(view.value + (size_t)slice.value * EVCHYB_PACK_UNIT + (size_t)k * EVCHYBPackBytesALine<Kind>(), true);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    if (!on[h]) continue;
    j[at[h]] = h ? column.second : column.first;
    a[at[h]] = EVCHYBPackDecode(stored, h, view.dict);
  }
}

/* Lines are made of what rows have next, whatever its column: entry k of a row is in the k-th of the lines that have one of it. A row that is not there has none in any. */
template <EVCHYBPackValues Kind>
static __device__ __forceinline__ void RestoreRows(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const int                 lane  = threadIdx.x % WarpSize;
  const EVCHYBPackPair<int> row   = EVCHYBPackRows(slice.rows, view.stream, lane);
  PetscInt                  at[2] = {row.first < 0 ? 0 : i[row.first], row.second < 0 ? 0 : i[row.second]};
  EVCHYBPackPair<uint32_t>  mask  = {0, 0};

  for (int k = 0; k < slice.width; k++) {
    if (k % EVCHYB_PACK_CHUNK == 0) mask = EVCHYBPackMasksOf(slice, EVCHYBPackLoadMasks(slice, view.stream, k / EVCHYB_PACK_CHUNK, lane));
    const bool on[2] = {(bool)(mask.first >> k % EVCHYB_PACK_CHUNK & 1), (bool)(mask.second >> k % EVCHYB_PACK_CHUNK & 1)};

    RestoreLine<Kind>(view, slice, k, on, at, j, a);
    at[0] += on[0];
    at[1] += on[1];
  }
}

template <EVCHYBPackValues Kind>
static __device__ __forceinline__ void RestorePiece(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const int      lane  = threadIdx.x % WarpSize;
  const PetscInt first = i[slice.rows.base] + (PetscInt)slice.at * EVCHYB_PACK_ROWS;

  for (int k = 0; k < slice.width; k++) {
    const int      n     = k + 1 < slice.width ? EVCHYB_PACK_ROWS : slice.last;
    const bool     on[2] = {lane < n, lane + WarpSize < n};
    const PetscInt at[2] = {first + k * EVCHYB_PACK_ROWS + lane, first + k * EVCHYB_PACK_ROWS + lane + WarpSize};

    RestoreLine<Kind>(view, slice, k, on, at, j, a);
  }
}

template <EVCHYBPackValues Kind>
static __device__ __forceinline__ void RestoreSlice(const EVCHYBPackView &view, const EVCHYBPackSlice &slice, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  if (slice.last) RestorePiece<Kind>(view, slice, i, j, a);
  else RestoreRows<Kind>(view, slice, i, j, a);
}

/* A warp has a slice, or a piece */
__global__ static void __launch_bounds__(EVCHYB_THREADS) RestorePackedKernel(const EVCHYBPackView view, PetscInt nslice, const PetscInt *__restrict__ i, PetscInt *__restrict__ j, PetscScalar *__restrict__ a)
{
  const PetscCount number = GallopGlobalThread() / WarpSize;

  if (number >= nslice) return;
  const EVCHYBPackSlice slice = EVCHYBPackLoadSlice(view.slice + number);

  if (slice.values == EVCHYB_PACK_VALUE) RestoreSlice<EVCHYB_PACK_VALUE>(view, slice, i, j, a);
  else if (EVCHYBPackMayBeSingle && slice.values == EVCHYB_PACK_SINGLE) RestoreSlice<EVCHYB_PACK_SINGLE>(view, slice, i, j, a);
  else if (EVCHYBPackMayBeReal && slice.values == EVCHYB_PACK_REAL) RestoreSlice<EVCHYB_PACK_REAL>(view, slice, i, j, a);
  else if (slice.values == EVCHYB_PACK_DICT8) RestoreSlice<EVCHYB_PACK_DICT8>(view, slice, i, j, a);
  else RestoreSlice<EVCHYB_PACK_DICT16>(view, slice, i, j, a);
}

/* EVCHYBPackedRestore_Device - All entries of the matrix whose rows begin at i, to j and a */
PetscErrorCode EVCHYBPackedRestore_Device(const EVCHYBPacked *packed, const PetscInt i[], PetscInt j[], PetscScalar a[])
{
  const EVCHYBPack *pack = packed->pack;
  cudaStream_t      stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (pack->nslice) {
    RestorePackedKernel<<<GallopBlocksFor((PetscCount)pack->nslice * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 0, stream>>>(EVCHYBPackViewOf(pack, NULL), pack->nslice, i, j, a);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
