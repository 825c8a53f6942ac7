/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU, the third stage of its build: the entries and rows of blocks, how these are stored, and long rows; and new values later */

#include "fastloaddevice.h"

static constexpr int Refreshed          = 8;  /* lines of which a lane looks up the entries at once */
static constexpr int MostRounds         = 8;  /* of a thread block of a refresh */
static constexpr int BlocksPerProcessor = 16; /* thread blocks that there are for each multiprocessor at least before they take more than one round */

/* A warp for each block: the rows, values and places in CSR of its entries, from those in order of columns. Those of each sorted column begin at start. */
__global__ static void FillKernel(const FastLoad fl, In<PetscInt> start, In<PetscInt> base, In<PetscInt> entries, In<PetscInt> rowOf, In<PetscInt> i, In<PetscScalar> a, PetscInt *rows)
{
  const PetscCount b    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (b >= fl.blkNum) return;
  const int      length = fl.blkLength[b];
  const PetscInt height = lane < length ? fl.blkHeight[b] : 0;
  const PetscInt from   = lane < length ? start[fl.blkColIdx[b] + lane] + base[b] : 0;
  const PetscInt col    = lane < length ? fl.perm[fl.blkColIdx[b] + lane] : 0;
  PetscCount     at     = fl.blkPtr[b] + lane;

  for (PetscInt q = 0; __any_sync(All, q < height); q += Ahead) {
    PetscInt    entry[Ahead], row[Ahead], edge[Ahead];
    PetscScalar value[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      entry[u] = q + u < height ? entries[from + q + u] : -1;
      row[u]   = q + u < height ? rowOf[from + q + u] : 0;
    }
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      value[u] = entry[u] >= 0 ? a[entry[u]] : PetscScalar(0);
      edge[u]  = i[row[u] + (row[u] < col)];
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < Ahead; u++, at += length) {
      const PetscInt place = entry[u] >= 0 ? FastLoadPlace(row[u] < col, edge[u], entry[u]) : 0, same = __shfl_sync(All, place, 0);
      const bool     alike = __all_sync(All, entry[u] < 0 || place == same);

      if (entry[u] < 0) continue;
      if (lane == 0) fl.lineAt[fl.blkLine[b] + q + u] = (unsigned char)(alike && same < FASTLOAD_SEARCH ? same : FASTLOAD_SEARCH);
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
    fl.blkClass[b] = FastLoadClass(fl.options.sums, onerow, distinct, follow, spread, longest);
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

/* Where a column is in rows, whose columns increase: all are searched at once, so that one does not wait for the others */
static __device__ __forceinline__ void Search(PetscInt col, const PetscInt row[Refreshed], In<PetscInt> i, In<PetscInt> j, PetscInt at[Refreshed])
{
  PetscInt begin[Refreshed], end[Refreshed], found[Refreshed];
  bool     more = true;

#pragma unroll
  for (int u = 0; u < Refreshed; u++) {
    begin[u] = i[row[u]];
    end[u]   = i[row[u] + 1];
  }
#pragma unroll
  for (int u = 0; u < Refreshed; u++) at[u] = begin[u] + (end[u] - begin[u]) / 2;
  while (more) {
    more = false;
#pragma unroll
    for (int u = 0; u < Refreshed; u++) found[u] = j[at[u]];
#pragma unroll
    for (int u = 0; u < Refreshed; u++) {
      if (found[u] == col) continue;
      if (found[u] < col) begin[u] = at[u] + 1;
      else end[u] = at[u];
      if (begin[u] < end[u]) at[u] = begin[u] + (end[u] - begin[u]) / 2;
      more = more || begin[u] < end[u];
    }
  }
}

/* Adds the lane's offsets in lines of a block to rows; they are stored as numbers of type W, length in a line, the first from offsets on */
template <typename W>
static __device__ __forceinline__ void AddOffsets(const W *offsets, PetscInt length, PetscInt q, PetscInt last, PetscInt row[Refreshed])
{
  PetscInt offset[Refreshed];

#pragma unroll
  for (int u = 0; u < Refreshed; u++) offset[u] = (PetscInt)offsets[(PetscCount)(q + u < last ? q + u : last) * length];
#pragma unroll
  for (int u = 0; u < Refreshed; u++) row[u] += offset[u];
}

/* Where the lane's entries of Refreshed lines from q on are in CSR; to is behind the last. Most lines tell it: without them each entry takes several loads, one after the other. */
static __device__ __forceinline__ void FindLines(const FastLoad &fl, PetscInt b, PetscInt q, PetscInt to, int lane, In<PetscInt> i, In<PetscInt> j, PetscInt at[Refreshed])
{
  const int                  kind = fl.blkClass[b], length = fl.blkLength[b], width = FASTLOAD_WIDTH(kind);
  const unsigned char *const rowIdx = fl.rowIdx + fl.blkRow[b];
  const PetscInt             first = fl.blkLine[b], last = to - 1, col = fl.perm[fl.blkColIdx[b] + lane];
  PetscInt                   row[Refreshed], edge[Refreshed];
  int                        place[Refreshed];
  bool                       known = true;

#pragma unroll
  for (int u = 0; u < Refreshed; u++) {
    const PetscInt line = first + (q + u < last ? q + u : last);

    row[u]   = fl.lineRow[line];
    place[u] = fl.lineAt[line];
  }
  if (width == FASTLOAD_BYTE) AddOffsets(rowIdx + lane, length, q, last, row);
  else if (width == FASTLOAD_SHORT) AddOffsets(reinterpret_cast<const unsigned short *>(rowIdx) + lane, length, q, last, row);
  else if (width == FASTLOAD_INT) AddOffsets(reinterpret_cast<const PetscInt *>(rowIdx) + lane, length, q, last, row);
  else if (FASTLOAD_ADD(kind) != FASTLOAD_ONE_ROW) {
#pragma unroll
    for (int u = 0; u < Refreshed; u++) row[u] += lane;
  }
#pragma unroll
  for (int u = 0; u < Refreshed; u++) edge[u] = i[row[u] + (row[u] < col)];
#pragma unroll
  for (int u = 0; u < Refreshed; u++) {
    at[u] = FastLoadAt(row[u] < col, edge[u], place[u]);
    known = known && place[u] != FASTLOAD_SEARCH;
  }
  if (!known) Search(col, row, i, j, at);
}

/* New values of a block, Refreshed lines at once, by the lanes that have a column of it; part is the warp's number among so many */
static __device__ __forceinline__ void RefreshBlock(const FastLoad &fl, PetscInt b, PetscInt part, PetscInt parts, int lane, In<PetscInt> i, In<PetscInt> j, In<PetscScalar> a)
{
  const PetscInt   length = fl.blkLength[b], height = fl.blkHeight[b];
  const PetscCount ptr = fl.blkPtr[b] + lane;

  if (lane >= length) return;
  for (PetscInt q = part * Refreshed; q < height; q += parts * Refreshed) {
    PetscInt    at[Refreshed];
    PetscScalar value[Refreshed];

    if (fl.csrIdx) {
#pragma unroll
      for (int u = 0; u < Refreshed; u++) at[u] = fl.csrIdx[ptr + (PetscCount)(q + u < height ? q + u : q) * length];
    } else FindLines(fl, b, q, height, lane, i, j, at);
#pragma unroll
    for (int u = 0; u < Refreshed; u++) value[u] = a[at[u]];
#pragma unroll
    for (int u = 0; u < Refreshed; u++)
      if (q + u < height) fl.value[ptr + (PetscCount)(q + u) * length] = value[u];
  }
}

/* New values, by a number of warps for each block. A thread block goes over neighbouring blocks in rounds: these often have entries in the same rows, which are in L1 then. */
__global__ static void __launch_bounds__(Threads) RefreshKernel(const FastLoad fl, PetscInt warps, int rounds, In<PetscInt> i, In<PetscInt> j, In<PetscScalar> a)
{
  const int lane = threadIdx.x % WarpSize;

  for (int r = 0; r < rounds; r++) {
    const PetscCount warp = ((PetscCount)blockIdx.x * rounds + r) * Warps + threadIdx.x / WarpSize;

    if (warp >= (PetscCount)fl.blkNum * warps) return;
    RefreshBlock(fl, (PetscInt)warp / warps, (PetscInt)warp % warps, warps, lane, i, j, a);
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
    FillKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->from, w->fill.base, w->columns.entry, w->columns.row, csr->i, csr->a, w->fill.rows);
    GallopCheckLaunch();
    PetscCallCUDA(cudaMemsetAsync(w->apart, 0, (size_t)fl->m * sizeof(*w->apart), w->stream));
    OwnerKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->fill.rows, w->owner); /* rows without entries are never asked for */
    GallopCheckLaunch();
    ClassKernel<<<warps, Threads, 0, w->stream>>>(*fl, w->fill.rows, w->owner, w->apart);
    GallopCheckLaunch();
  }
  PetscCall(GallopDeviceZero(fl->blkRow + fl->blkNum, sizeof(PetscCount)));
  PetscCall(FastLoadSumCounts(w->cub, w->cubbytes, fl->blkRow, (PetscCount)fl->blkNum + 1, w->stream));
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

PetscErrorCode FastLoadFillLongRows(const FastLoad *fl, const GallopCSR *csr, const GallopLongRows *l, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!fl->pieceNum) {
    PetscCall(GallopDeviceZero(fl->longPtr, sizeof(PetscInt)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GallopDeviceCopyIn(fl->longPtr, l->ptr, (size_t)(fl->longNum + 1) * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->longRow, l->row, (size_t)fl->longNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceRow, l->pieceRow, (size_t)fl->pieceNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceAt, l->pieceAt, (size_t)fl->pieceNum * sizeof(PetscInt)));
  LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, stream>>>(*fl, csr->i, csr->j, csr->a, true);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadRefresh_Device - New values. To look one up is a chain of loads: a block gets warps for all lines that blocks have on average. */
PetscErrorCode FastLoadRefresh_Device(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  FastLoad    *fl = (FastLoad *)data;
  int          processors;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (fl->blkNum) {
    const PetscInt     warps  = ((fl->lineNum - 1) / fl->blkNum) / Refreshed + 1;
    const unsigned int blocks = WarpsFor((PetscCount)fl->blkNum * warps);
    int                rounds;

    PetscCall(GallopDeviceGetProcessors(&processors));
    rounds = (int)PetscMax(1, PetscMin(MostRounds, blocks / (unsigned int)(BlocksPerProcessor * processors)));
    RefreshKernel<<<(blocks - 1) / (unsigned int)rounds + 1, Threads, 0, stream>>>(*fl, warps, rounds, csr->i, csr->j, csr->a);
    GallopCheckLaunch();
  }
  if (fl->pieceNum) {
    LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, stream>>>(*fl, csr->i, csr->j, csr->a, false);
    GallopCheckLaunch();
  }
  fl->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
