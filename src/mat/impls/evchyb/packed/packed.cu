/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's packed storage on the GPU: the product */

#include "../parts.cuh"
#include "../evchyb.h"
#include "packedproduct.cuh"

static_assert(EVCHYB_WARP_ROW <= EVCHYB_PIECE, "a warp computes a row of one piece");

/* Pieces of packed rows: the last ones, a thread block each, are of rows that have several */
template <typename S, typename V>
static __device__ __forceinline__ void SpMV_packed_rows(const EVCHYBPackView &pack, PetscInt nslice, PetscInt npiece, PetscCount nparts, const PartsView<V> &parts, const GallopVectors<V> &v, const EVCHYBRange &range, unsigned int block, V *dot)
{
  const int      warp  = threadIdx.x / WarpSize;
  const PetscInt piece = range.first + (PetscInt)(range.count == 1 ? block * WarpsInBlock + warp : block);
  PetscInt       row   = 0;
  V              sum   = V(0);

  if (piece < range.end) sum = EVCHYBPackSumPiece<S::LongLines, S::Kind, V>(pack, (PetscCount)nslice - npiece + piece, range.count == 1 ? 0 : warp, range.count, v.x, true, &row);
  if (range.count == 1) {
    sum = GallopGroupSum(sum, WarpSize);
    if (piece < range.end && threadIdx.x % WarpSize == 0) GallopStore(v, row, sum, dot);
    return;
  }
  sum = GallopWarpsSum<EVCHYB_THREADS>(sum, EVCHYB_THREADS);
  if (piece >= npiece - nparts) {
    const PetscCount part = piece - (npiece - nparts);

    StoreSplit(parts, parts.splitrow[part], part, row, sum, v);
  } else if (threadIdx.x == 0) GallopStore(v, row, sum, dot);
}

/* Lines of a slice that are under way together, as many as fit registers, docs/development/packing.md */
#if !defined(EVCHYB_PACK_LINES)
  #define EVCHYB_PACK_LINES (sizeof(PetscScalar) > 8 ? 2 : sizeof(PetscScalar) > 4 ? 4 : 8)
#endif

/* How the packed kernel is compiled. Kind: how values are stored. LongLines: of a long row. Narrow: columns of 16 bits have code of their own, since with more lines a product is bound by instructions. MinBlocks: thread blocks per multiprocessor. Ahead: columns of the next lines are asked for, and there are no long rows. */
template <EVCHYBPackValues Kind_, bool Ahead_ = false>
struct PackedShape {
  static constexpr EVCHYBPackValues Kind      = Kind_;
  static constexpr bool             Ahead     = Ahead_;
  static constexpr int              Lines     = EVCHYB_PACK_LINES;
  static constexpr int              LongLines = Lines > 4 && EVCHYBPackIsDict(Kind) ? 4 : Lines;
  static constexpr bool             Narrow    = Lines > 4 && !EVCHYBPackIsDict(Kind);
  static constexpr int              MinBlocks = Ahead ? EVCHYB_PACK_BLOCKS - 1 : EVCHYB_PACK_BLOCKS;
};

/* The same product with the entries packed. A thread block has neighbouring slices, of which its warps take one after the other by turns. */
template <typename S, typename V>
__global__ static void __launch_bounds__(EVCHYB_THREADS, S::MinBlocks) SpMV_EVCHYB_packed(const __grid_constant__ EVCHYBLaunch launch, const EVCHYBPackView pack, const PetscInt nslice, const PetscInt npiece, const PetscCount nparts, const PartsView<V> parts, const GallopVectors<V> v, const bool fresh)
{
  __shared__ EVCHYBPackSlice slices[WarpsInBlock][EVCHYB_PACK_EACH];
  extern __shared__ __align__(16) unsigned char dots[]; /* of threads, for which there is no register left; none without a dot product: L1 has what is not shared */
  V *const dot = reinterpret_cast<V *>(dots) + threadIdx.x;
  int      k   = 0;

  if (v.with) *dot = V(0);
  if (fresh) GallopWaitForPredecessor();
  while (blockIdx.x >= launch.range[k].next) k++;
  const EVCHYBRange &range = launch.range[k];
  const unsigned int block = blockIdx.x - range.begin;

  if (!S::Ahead && range.kind == EVCHYB_RANGE_PIECES) SpMV_packed_rows<S, V>(pack, nslice, npiece, nparts, parts, v, range, block, dot);
  else {
    const int      warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
    const PetscInt first = range.first + (PetscInt)block * range.count * WarpsInBlock + warp;
    const int      num   = (int)PetscMin((PetscInt)range.count, (range.end - first + WarpsInBlock - 1) / WarpsInBlock);

    if (lane < num) slices[warp][lane] = EVCHYBPackLoadSlice(pack.slice + first + lane * WarpsInBlock);
    __syncwarp();
    if (num > 0) EVCHYBPackMultiply<S::Lines, S::Narrow, S::Ahead, S::Kind, V>(pack, slices[warp], num, v, dot);
  }
  GallopWaitForPredecessor(); /* those that had nothing to do */
  GallopFinishDot<EVCHYB_THREADS>(v, v.with ? *dot : V(0));
}

template <typename S>
static cudaError_t LaunchAs(const EVCHYB *ev, const GallopVectors<PetscScalar> &v, cudaStream_t stream)
{
  const EVCHYBPacked *packed = ev->packed;
  const EVCHYBPack   *pack   = packed->pack;
  const EVCHYBLaunch *launch = &ev->launch;

  return GallopLaunch(SpMV_EVCHYB_packed<S, PetscScalar>, {launch->range[launch->n - 1].next, EVCHYB_THREADS, 1, v.with ? EVCHYB_THREADS * sizeof(PetscScalar) : 0, stream, (bool)ev->overlaps}, *launch,
                      EVCHYBPackViewOf(pack, ev->clusters ? ev->clusters->order : NULL), pack->nslice, pack->npiece, packed->parts.nparts, PartsViewOf<PetscScalar>(&packed->parts), v, (bool)ev->fresh);
}

static cudaError_t Launch(const EVCHYB *ev, GallopVectors<PetscScalar> v, cudaStream_t stream)
{
  const PetscCount *slots = ev->packed->pack->figures.slots;

  v.blocks = (unsigned int)ev->launch.range[ev->launch.n - 1].next;
  v.parts  = (unsigned int)ev->packed->parts.nsplit;

  if (slots[EVCHYB_PACK_DICT8]) return LaunchAs<PackedShape<EVCHYB_PACK_DICT8>>(ev, v, stream);
  if (slots[EVCHYB_PACK_DICT16]) return LaunchAs<PackedShape<EVCHYB_PACK_DICT16>>(ev, v, stream);
  if constexpr (!PackedShape<EVCHYB_PACK_VALUE>::Narrow) {
    if (EVCHYBPackGainsAhead(ev->packed->pack, ev->processors, v.blocks)) return LaunchAs<PackedShape<EVCHYB_PACK_VALUE, true>>(ev, v, stream);
  }
  return LaunchAs<PackedShape<EVCHYB_PACK_VALUE>>(ev, v, stream);
}

static PetscErrorCode Apply(EVCHYB *ev, const GallopProduct *p)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (ev->launch.n) {
    PetscCallCUDA(Launch(ev, GallopVectorsOf(p), stream));
    PetscCallCUDA(GallopNotFresh(stream, &ev->fresh));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPackedPartsToDevice - The rows of several pieces, from the host, on which they stay where there is no room for them */
PetscErrorCode EVCHYBPackedPartsToDevice(EVCHYB *ev, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBParts *parts = &ev->packed->parts, host = *parts;
  GallopCarver measure(NULL);
  void        *base = NULL;
  cudaStream_t stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallCUDA(GallopKernelOverlaps(SpMV_EVCHYB_packed<PackedShape<EVCHYB_PACK_VALUE>, PetscScalar>, &ev->overlaps));
  if (!parts->nsplit) { /* nothing is read of them then */
    PetscCall(EVCHYBPartsFree(parts));
    *done = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  CarveParts(parts, &measure);
  if (!maxbytes || ev->bytes + measure.Bytes() <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(measure.Bytes(), &base));
  *parts = host;
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  GallopCarver carver(base);

  CarveParts(parts, &carver);
  ev->bytes += carver.Bytes();
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(CopyParts(&host, parts, stream));
  PetscCall(EVCHYBPartsFree(&host));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(EVCHYB *ev)
{
  PetscFunctionBegin;
  if (!ev->packed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceFree(ev->packed->parts.splitblk)); /* where the one allocation begins */
  PetscCall(EVCHYBPackDestroy(&ev->packed->pack));
  PetscCall(PetscFree(ev->packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const EVCHYBStorageWork EVCHYBPackedDevice = {EVCHYBPackedRefresh, Apply, Destroy};
