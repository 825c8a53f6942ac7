/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: entries in the order in which warps meet them, and new values */

#include "../common/longrowsdevice.h"
#include "hbpdevice.h"

/* A thread block for each piece of a long row: its entries from CSR; columns too where they are wanted */
__global__ static void __launch_bounds__(Threads) LongRowsKernel(HBP h, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a, bool columns)
{
  const GallopPiece<PetscInt> p = GallopGetPiece(h.longRows.pieceRow, h.longRows.pieceAt, h.longRows.ptr, (PetscInt)blockIdx.x, HBP_PIECE);

  GallopCopyPiece(p, h.longRows.ptr, i[h.longRows.row[p.row]], j, a, h.data + h.blknz, h.longCol, columns);
}

/*
  Calls store(entry, k, load(k)) for the entries of group g, in the order in which a warp meets them. segment(seg) tells where a segment begins; each of its lanes has every (1 << lanes)-th
  entry. A few are loaded at once.
*/
template <typename Value, typename Segment, typename Load, typename Store>
static __device__ __forceinline__ void WalkGroup(const HBP &h, PetscCount g, Segment segment, Load load, Store store)
{
  static constexpr int Steps = 4;
  const HBPGroup       group = h.group[g];
  const int            lane = threadIdx.x % WarpSize, lanes = HBPInfoLanes(group.info), within = HBPLaneInSegment(lane, lanes);
  const PetscInt       seg = group.seg + (lane >> lanes), mine = seg < h.group[g + 1].seg, len = mine ? HBPLaneLength(HBPLength(h.output_hash, h.nnz_perrow, seg), lanes, within) : 0, first = mine ? segment(seg) + within : 0;
  PetscInt             ptr = group.begin_ptr;

  for (PetscInt k = 0; __any_sync(All, k < len); k += Steps) {
    Value value[Steps];

#pragma unroll
    for (int u = 0; u < Steps; u++)
      if (k + u < len) value[u] = load(first + ((k + u) << lanes));
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Steps; u++) {
      const unsigned int live = __ballot_sync(All, k + u < len);

      if (k + u < len) store(ptr + __popc(live & LanesBelow()), first + ((k + u) << lanes), value[u]);
      ptr += __popc(live);
    }
  }
}

struct Entry {
  PetscInt    j, e;
  PetscScalar a;
};

/* A warp for each group: its entries. Where j is not CSR's but sorted, from tells where each entry is in CSR; else it is NULL. */
__global__ static void __launch_bounds__(Threads) ConvertKernel(HBP h, ReadOnly<PetscInt> start, ReadOnly<PetscInt> j, ReadOnly<PetscInt> from, ReadOnly<PetscScalar> a)
{
  const PetscCount g = GallopGlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  const PetscInt  rb   = HBPInfoRowBlock(h.group[g].info);
  const bool      maps = HBPIsMapped(h.mapPtr, rb);
  const PetscInt *map = maps ? h.map + h.mapPtr[rb] : NULL, num = maps ? h.mapPtr[rb + 1] - h.mapPtr[rb] : 0;
  PetscInt        chunk = 0, begin = maps ? map[0] : 0; /* chunk of the entry before, which often has this one too */

  WalkGroup<Entry>(
    h, g, [&](PetscInt seg) { return start[seg]; },
    [&](PetscInt k) {
      const PetscInt e = from ? from[k] : k;

      return Entry{j[k], e, a[e]};
    },
    [&](PetscInt at, PetscInt, const Entry &entry) {
      if (maps && (entry.j < begin || entry.j - begin >= HBP_CHUNK)) {
        chunk = HBPPlaceOf(num, map, entry.j);
        begin = map[chunk];
      }
      h.col[at]  = (unsigned short)(maps ? chunk * HBP_CHUNK + entry.j - begin : entry.j % h.M);
      h.data[at] = entry.a;
      if (from) h.csrIdx[at] = entry.e;
    });
}

/* A warp for each group: new values. A segment is looked up in its row. */
__global__ static void __launch_bounds__(Threads) RefreshKernel(HBP h, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a)
{
  const PetscCount g = GallopGlobalThread() / WarpSize;

  if (g >= h.groupNum) return;
  const PetscInt cb    = HBPPlaceOf(h.colBlocks, h.colGroup, g);
  const PetscInt begin = HBPInfoRowBlock(h.group[g].info) * h.N;

  WalkGroup<PetscScalar>(
    h, g,
    [&](PetscInt seg) {
      const PetscInt row = begin + HBPOutputRow(h.output_hash[seg]);

      return HBPSegmentBegin(j, i[row], i[row + 1], (PetscCount)cb * h.M);
    },
    [&](PetscInt k) { return a[k]; }, [&](PetscInt at, PetscInt, const PetscScalar &value) { h.data[at] = value; });
}

__global__ static void RefreshByIndexKernel(HBP h, ReadOnly<PetscScalar> a)
{
  const PetscCount k = GallopGlobalThread();

  if (k < h.blknz) h.data[k] = a[h.csrIdx[k]];
}

/* Long rows, whose columns stay as they are */
static PetscErrorCode CopyLongEntries(const HBP *h, const GallopCSR *csr, bool columns, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!h->longRows.pieceNum) PetscFunctionReturn(PETSC_SUCCESS);
  LongRowsKernel<<<(unsigned int)h->longRows.pieceNum, Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a, columns);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPConvert - All entries, those of blocks and those of long rows */
PetscErrorCode HBPConvert(const HBP *h, const GallopCSR *csr, const HBPMatrix *A, const HBPWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(CopyLongEntries(h, csr, true, stream));
  ConvertKernel<<<GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 0, stream>>>(*h, w->fill.start, A->j, w->sort.from, csr->a);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPRefresh_Device - New values */
PetscErrorCode HBPRefresh_Device(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  HBP         *h = (HBP *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(CopyLongEntries(h, csr, false, stream));
  if (h->indexed) RefreshByIndexKernel<<<GallopBlocksFor(h->blknz, Threads), Threads, 0, stream>>>(*h, csr->a);
  else RefreshKernel<<<GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  ((HBPPlan *)h->plan)->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
