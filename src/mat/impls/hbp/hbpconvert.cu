/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: entries in the order in which warps meet them, and new values */

#include "../common/longrowsdevice.h"
#include "hbpcolumnsdevice.h"
#include "hbphotdevice.h"
#include "hbpwalk.cuh"

/* A thread block for each piece of a long row: its entries from CSR; columns too where they are wanted */
__global__ static void __launch_bounds__(Threads) LongRowsKernel(HBP h, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a, bool columns)
{
  const GallopPiece<PetscInt> p = GallopGetPiece(h.longRows.pieceRow, h.longRows.pieceAt, h.longRows.ptr, (PetscInt)blockIdx.x, HBP_PIECE);

  GallopCopyPiece(p, h.longRows.ptr, i[h.longRows.row[p.row]], j, a, h.data + h.blknz, h.longCol, columns);
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

/*
  A warp for each group: new values. A segment of the first column of blocks, or where no row is cut, begins with its row; any other is looked up there. The last groups come first: the product begins with the first ones,
  which are still in L2 then, since values of CSR leave it first.
*/
__global__ static void __launch_bounds__(Threads) RefreshKernel(HBP h, ReadOnly<PetscInt> i, ReadOnly<PetscInt> j, ReadOnly<PetscScalar> a)
{
  const PetscCount g = h.groupNum - 1 - GallopGlobalThread() / WarpSize;

  if (g < 0) return;
  const PetscInt cb    = HBPCutsRows(&h) ? HBPPlaceOf(h.colBlocks, h.colGroup, g) : 0;
  const PetscInt begin = HBPInfoRowBlock(h.group[g].info) * h.N;

  WalkGroup<PetscScalar>(
    h, g,
    [&](PetscInt seg) {
      const PetscInt row = begin + HBPOutputRow(h.output_hash[seg]);

      return cb ? HBPSegmentBegin(j, i[row], i[row + 1], (PetscCount)cb * h.M) : i[row];
    },
    [&](PetscInt k) { return GallopLoadOnce(a + k); }, [&](PetscInt at, PetscInt, const PetscScalar &value) { h.data[at] = value; });
}

__global__ static void RefreshByIndexKernel(HBP h, ReadOnly<PetscScalar> a)
{
  const PetscCount k = GallopGlobalThread();

  if (k < h.blknz) h.data[k] = a[h.csrIdx[k]];
}

/* HBPCopyLongEntries - Values of long rows, and their columns, which stay as they are, where they are wanted */
PetscErrorCode HBPCopyLongEntries(const HBP *h, const GallopCSR *csr, PetscBool columns, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!h->longRows.pieceNum) PetscFunctionReturn(PETSC_SUCCESS);
  LongRowsKernel<<<(unsigned int)h->longRows.pieceNum, Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a, (bool)columns);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPConvert - All entries, those of blocks and those of long rows */
PetscErrorCode HBPConvert(const HBP *h, const GallopCSR *csr, const HBPMatrix *A, const HBPWork *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(HBPCopyLongEntries(h, csr, PETSC_TRUE, stream));
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
  if (h->columns) PetscCall(HBPColumnsRefresh_Device(h->columns, csr));
  if (h->hot) PetscCall(HBPHotRefresh_Device(h->hot, csr));
  if (!HBPHasBlocks(h)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(HBPCopyLongEntries(h, csr, PETSC_FALSE, stream));
  if (h->indexed) RefreshByIndexKernel<<<GallopBlocksFor(h->blknz, Threads), Threads, 0, stream>>>(*h, csr->a);
  else RefreshKernel<<<GallopBlocksFor((PetscCount)h->groupNum * WarpSize, Threads), Threads, 0, stream>>>(*h, csr->i, csr->j, csr->a);
  GallopCheckLaunch();
  ((HBPPlan *)h->plan)->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
