/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU, the third stage of its build: the entries and rows of blocks, how these are stored, and long rows; and new values later */

#include "fastloaddevice.h"

/* A warp for each block: the rows, values and places in CSR of its entries, from those in order of columns. Those of each sorted column begin at start. */
__global__ static void FillKernel(const FastLoad fl, In<PetscInt> start, In<PetscInt> base, In<PetscInt> entries, In<PetscInt> rowOf, In<PetscScalar> a, PetscInt *rows)
{
  const PetscCount b    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (b >= fl.blkNum) return;
  const int       length = fl.blkLength[b];
  const PetscInt  height = lane < length ? fl.blkHeight[b] : 0;
  const PetscInt  from   = lane < length ? start[fl.blkColIdx[b] + lane] + base[b] : 0;
  PetscCount      at     = fl.blkPtr[b] + lane;

  for (PetscInt q = 0; __any_sync(All, q < height); q += Ahead) {
    PetscInt    entry[Ahead], row[Ahead];
    PetscScalar value[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      entry[u] = q + u < height ? entries[from + q + u] : -1;
      row[u]   = q + u < height ? rowOf[from + q + u] : 0;
    }
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Ahead; u++) value[u] = entry[u] >= 0 ? a[entry[u]] : PetscScalar(0);
    __syncwarp();
#pragma unroll
    for (int u = 0; u < Ahead; u++, at += length) {
      if (entry[u] < 0) continue;
      rows[at]     = row[u];
      fl.value[at] = value[u];
      if (fl.csrIdx) fl.csrIdx[at] = entry[u];
    }
  }
}

/* A warp for each block: each row gets one of the blocks that have entries of it. Which one does not matter: a row in several blocks differs from all but one of them. */
__global__ static void OwnerKernel(const FastLoad fl, In<PetscInt> rows, PetscInt *owner)
{
  const PetscCount b = GallopGlobalThread() / WarpSize;

  if (b >= fl.blkNum) return;
  for (PetscCount k = fl.blkPtr[b] + threadIdx.x % WarpSize; k < fl.blkPtr[b + 1]; k += WarpSize)
    cuda::atomic_ref<PetscInt, cuda::thread_scope_device>(owner[rows[k]]).store((PetscInt)b, cuda::memory_order_relaxed);
}

template <typename I>
static __device__ __forceinline__ I WarpMax(I value)
{
  for (int by = WarpSize / 2; by > 0; by /= 2) {
    const I other = __shfl_xor_sync(All, value, by);

    if (other > value) value = other;
  }
  return value;
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ int WarpMax(int value)
{
  return __reduce_max_sync(All, value);
}
#endif

/* Lanes with the same row */
static __device__ __forceinline__ unsigned int MatchAny(PetscInt row)
{
  if constexpr (sizeof(row) == 4) return __match_any_sync(All, (unsigned int)row);
  else return __match_any_sync(All, (unsigned long long)row);
}

/* A warp for each block: its class, the lowest rows of its lines, the bytes that its offsets take, and the rows that are in another block too or stand apart in a line */
__global__ static void ClassKernel(const FastLoad fl, In<PetscInt> rows, In<PetscInt> owner, int *apart)
{
  const PetscCount b      = GallopGlobalThread() / WarpSize;
  const int        lane   = threadIdx.x % WarpSize;
  bool             onerow = true, distinct = true, follow = true;
  PetscInt         spread  = 0;
  int              longest = 1;

  if (b >= fl.blkNum) return;
  const int        length = fl.blkLength[b];
  const bool       inside = lane < length;
  const PetscCount end    = fl.blkPtr[b + 1];
  PetscInt        *low    = fl.lineRow + fl.blkLine[b];

  for (PetscCount k = fl.blkPtr[b] + lane; k - lane < end; k += Ahead * length, low += Ahead) {
    PetscInt row[Ahead], other[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) row[u] = inside && k + u * length < end ? rows[k + u * length] : -1 - lane; /* lanes without a column differ from all others */
#pragma unroll
    for (int u = 0; u < Ahead; u++) other[u] = row[u] >= 0 ? owner[row[u]] : 0;
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      if (k - lane + u * length >= end) break;
      const PetscInt before = __shfl_up_sync(All, row[u], 1), first = __shfl_sync(All, row[u], 0);
      const PetscInt hi = WarpMax(row[u]), lo = -WarpMax(inside ? -row[u] : -first);
      bool           together = true; /* the line's entries of this lane's row */

      spread = hi - lo > spread ? hi - lo : spread;
      if (lane == 0) low[u] = lo;
      if (__any_sync(All, inside && row[u] != first + lane)) {
        const bool         same  = inside && lane && row[u] == before;
        const unsigned int heads = __ballot_sync(All, !same), behind = lane == WarpSize - 1 ? 0 : heads >> (lane + 1);
        const unsigned int peers = MatchAny(row[u]), run = peers >> (__ffs(peers) - 1);

        together = !(run & (run + 1));
        longest  = max(longest, (behind ? lane + __ffs(behind) : WarpSize) - lane);
        if (__any_sync(All, same)) distinct = false;
        if (__any_sync(All, inside && lane && !same)) onerow = false;
        follow = false;
      } else if (length > 1) onerow = false;
      if (inside && (!together || other[u] != b)) Raise(&apart[row[u]]);
    }
  }
  longest = WarpMax(inside ? longest : 1);
  if (lane == 0) {
    fl.blkClass[b] = FastLoadClass(onerow, distinct, follow, spread, longest);
    fl.blkRow[b]   = FastLoadRowBytes(FASTLOAD_WIDTH(fl.blkClass[b]), end - fl.blkPtr[b]);
  }
}

/* A warp for each block, once rowIdx has memory: offsets of rows, and whether other blocks have its rows too */
__global__ static void OffsetsKernel(const FastLoad fl, In<PetscInt> rows, In<int> apart)
{
  const PetscCount b     = GallopGlobalThread() / WarpSize;
  const int        lane  = threadIdx.x % WarpSize;
  bool             found = false;

  if (b >= fl.blkNum) return;
  const int            length = fl.blkLength[b];
  const PetscInt      *begin  = rows + fl.blkPtr[b];
  const int            width  = FASTLOAD_WIDTH(fl.blkClass[b]);
  const PetscCount     n      = fl.blkPtr[b + 1] - fl.blkPtr[b];
  unsigned char *const rowIdx = fl.rowIdx + fl.blkRow[b];

  int      at  = lane % length; /* k is in this column of the line low */
  PetscInt low = fl.blkLine[b] + lane / length;

  for (PetscCount k = lane; k < n; k += Ahead * WarpSize) {
    PetscInt row[Ahead], offset[Ahead];
    int      other[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      const bool mine = k + u * WarpSize < n;

      row[u]    = mine ? begin[k + u * WarpSize] : -1;
      offset[u] = mine ? fl.lineRow[low] : 0;
      low += WarpSize / length;
      at += WarpSize % length;
      if (at >= length) {
        at -= length;
        low++;
      }
    }
#pragma unroll
    for (int u = 0; u < Ahead; u++) other[u] = row[u] >= 0 ? apart[row[u]] : 0;
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      const PetscCount to = k + u * WarpSize;

      if (row[u] < 0) break;
      found     = found || other[u];
      offset[u] = row[u] - offset[u];
      if (width == FASTLOAD_BYTE) rowIdx[to] = (unsigned char)offset[u];
      else if (width == FASTLOAD_SHORT) reinterpret_cast<unsigned short *>(rowIdx)[to] = (unsigned short)offset[u];
      else if (width == FASTLOAD_INT) reinterpret_cast<PetscInt *>(rowIdx)[to] = offset[u];
    }
  }
  if (__any_sync(All, found) && lane == 0) fl.blkClass[b] |= FASTLOAD_SHARED;
}

/* New values, by a number of warps for each block */
__global__ static void __launch_bounds__(Threads) RefreshKernel(const FastLoad fl, PetscInt warps, In<PetscInt> i, In<PetscInt> j, In<PetscScalar> a)
{
  const PetscCount warp = GallopGlobalThread() / WarpSize, b = warp / warps;
  const int        lane = threadIdx.x % WarpSize;

  if (b >= fl.blkNum || lane >= fl.blkLength[b]) return;
  const PetscInt             length = fl.blkLength[b], col = fl.perm[fl.blkColIdx[b] + lane];
  const int                  kind   = fl.blkClass[b];
  const unsigned char *const rowIdx = fl.rowIdx + fl.blkRow[b];
  const PetscInt *const      low    = fl.lineRow + fl.blkLine[b];

  for (PetscInt q = (PetscInt)(warp % warps); q < fl.blkHeight[b]; q += warps) {
    const PetscCount at = fl.blkPtr[b] + (PetscCount)q * length + lane;

    fl.value[at] = a[fl.csrIdx ? fl.csrIdx[at] : FastLoadFind(i, j, FastLoadRow(kind, low[q], rowIdx, (PetscCount)q * length, lane), col)];
  }
}

/* A piece of a long row from CSR; columns too where they are wanted */
__global__ static void __launch_bounds__(Threads) LongRowsKernel(const FastLoad fl, In<PetscInt> i, In<PetscInt> j, In<PetscScalar> a, bool columns)
{
  const GallopPiece<PetscInt> p = GetPiece<PetscInt>(fl, (PetscInt)blockIdx.x);

  GallopCopyPiece(p, fl.longPtr, i[fl.longRow[p.row]], j, a, fl.value + fl.blknz, fl.longCol, columns);
}

/* FastLoadFillBlocks - Values of blocks, their classes, lines, and where their offsets begin. The rows of entries are in w->fill.rows for FastLoadFillOffsets(). */
PetscErrorCode FastLoadFillBlocks(FastLoad *fl, const GallopCSR *csr, FastLoadWorkspace *w)
{
  const unsigned int warps = WarpsFor(fl->blkNum);

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopy(fl->perm, w->sortedcols, (size_t)fl->ncols * sizeof(PetscInt)));
  if (fl->blkNum) {
    FillKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->from, w->fill.base, w->columns.entry, w->columns.row, csr->a, w->fill.rows);
    GallopCheckLaunch();
    PetscCallCUDA(cudaMemsetAsync(w->apart, 0, (size_t)fl->m * sizeof(*w->apart), w->stream));
    OwnerKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->fill.rows, w->owner); /* rows without entries are never asked for */
    GallopCheckLaunch();
    ClassKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->fill.rows, w->owner, w->apart);
    GallopCheckLaunch();
  }
  PetscCall(GallopDeviceZero(fl->blkRow + fl->blkNum, sizeof(PetscCount)));
  PetscCall(FastLoadSumCounts(w, fl->blkRow, (PetscCount)fl->blkNum + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadFillOffsets - Once rowIdx has memory */
PetscErrorCode FastLoadFillOffsets(FastLoad *fl, const FastLoadWorkspace *w)
{
  PetscFunctionBegin;
  if (!fl->blkNum) PetscFunctionReturn(PETSC_SUCCESS);
  OffsetsKernel<<<WarpsFor(fl->blkNum), Threads, 0, w->stream>>>(*fl, w->fill.rows, w->apart);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadFillLongRows(const FastLoad *fl, const GallopCSR *csr, const FastLoadWorkspace *w)
{
  const GallopLongRows *l = &w->longRowsPlan;

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyIn(fl->longPtr, l->ptr, (size_t)(fl->longNum + 1) * sizeof(PetscInt)));
  if (!fl->pieceNum) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceCopyIn(fl->longRow, l->row, (size_t)fl->longNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceRow, l->pieceRow, (size_t)fl->pieceNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceAt, l->pieceAt, (size_t)fl->pieceNum * sizeof(PetscInt)));
  LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, w->stream>>>(*fl, csr->i, csr->j, csr->a, true);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadRefresh_Device - New values. To look one up is a chain of loads, so that a block gets as many warps as blocks have lines on average. */
PetscErrorCode FastLoadRefresh_Device(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  FastLoad    *fl = (FastLoad *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (fl->blkNum) {
    const PetscInt warps = (fl->lineNum - 1) / fl->blkNum + 1;

    RefreshKernel<<<WarpsFor((PetscCount)fl->blkNum * warps), Threads, 0, stream>>>(*fl, warps, csr->i, csr->j, csr->a);
    GallopCheckLaunch();
  }
  if (fl->pieceNum) {
    LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, stream>>>(*fl, csr->i, csr->j, csr->a, false);
    GallopCheckLaunch();
  }
  fl->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
