/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: the kernels of FASTLOAD's products */

#include "fastloadwalk.cuh"

/*
  Lines whose entries are loaded before the first is used: in a product, in one where rows are loaded too, and in a transposed product. With one line more where rows are
  loaded, registers do not suffice.
*/
static constexpr int LinesAdded  = sizeof(PetscScalar) > 8 ? 4 : 8;
static constexpr int LinesPlaced = sizeof(PetscScalar) > 8 ? 3 : 7;
static constexpr int LinesSummed = sizeof(PetscScalar) > 8 ? 4 : 8;
static constexpr int Resident    = 4; /* thread blocks on a multiprocessor at least */

template <typename R, typename V>
static __device__ __forceinline__ void Add(V *to, const V &value, bool atomically)
{
  if (atomically) GallopAtomicAdd<R>(to, value);
  else *to += value;
}

/* Lane l's sum and those of the lanes behind it in its run of equal rows, none longer than 2^steps; *first tells whether the run begins here */
template <typename V, typename I>
static __device__ __forceinline__ V SegmentSum(V sum, I row, int lane, int steps, bool *first)
{
  const I            before = __shfl_up_sync(All, row, 1);
  const unsigned int heads  = __ballot_sync(All, lane == 0 || row != before);
  const unsigned int behind = lane == WarpSize - 1 ? 0 : heads >> (lane + 1);
  const int          end    = behind ? lane + __ffs(behind) : WarpSize;

  *first = heads >> lane & 1;
  for (int s = 0; s < steps; s++) {
    const V other = GallopShuffleDown(sum, 1 << s, WarpSize);

    if (lane + (1 << s) < end) sum += other;
  }
  return sum;
}

/*
  Lines of 32 columns whose rows follow each other, each line with higher rows than the one before: sums stay in the lanes while the rows move by, and only what no
  later line adds to goes to z. A lane has the sum for row cur_ + lane.
*/
template <typename R, typename V, typename I>
class Diagonals {
public:
  __device__ __forceinline__ void Line(I base, V product, V *z, bool shared, int lane)
  {
    const I by = base - cur_;

    if (mask_ && by < WarpSize) {
      if (lane < by) Put(z, shared, lane);
      sum_ = GallopShuffleDown(sum_, (int)by, WarpSize);
      mask_ >>= (int)by;
    } else Flush(z, shared, lane);
    sum_  = mask_ >> lane & 1 ? sum_ + product : product;
    mask_ = All;
    cur_  = base;
  }
  __device__ __forceinline__ void Flush(V *z, bool shared, int lane)
  {
    if (mask_) Put(z, shared, lane);
    mask_ = 0;
  }

private:
  __device__ __forceinline__ void Put(V *z, bool shared, int lane) { Add<R>(z + cur_ + lane, sum_, shared); }

  V            sum_  = V(0);
  I            cur_  = 0;
  unsigned int mask_ = 0; /* lanes that have a sum: all or none between two lines */
};

/* Adds the products of a block of 32 columns to z */
template <typename W, typename R, typename V, typename I, typename Ready>
static __device__ __forceinline__ void AddBlock(const FastLoadArrays<V, I> &fl, const BlockView<I> &block, int lane, Ready ready, const V &x, V *z)
{
  const bool shared = block.kind & FASTLOAD_SHARED;
  const int  steps = FASTLOAD_STEPS(block.kind), add = FASTLOAD_ADD(block.kind);

  if constexpr (cuda::std::is_void_v<W>) {
    if (add == FASTLOAD_ONE_ROW) {
      WalkLines<W, LinesAdded>(fl, block, lane, ready, [&](const V &value, I, I low) {
        const V sum = GallopGroupSum(value * x, WarpSize);

        if (lane == 0) Add<R>(z + low, sum, shared);
      });
    } else {
      Diagonals<R, V, I> diagonals;

      WalkLines<W, LinesAdded>(fl, block, lane, ready, [&](const V &value, I, I low) { diagonals.Line(low, value * x, z, shared, lane); });
      diagonals.Flush(z, shared, lane);
    }
  } else {
    WalkLines<W, LinesPlaced>(fl, block, lane, ready, [&](const V &value, I offset, I low) {
      V    sum  = value * x;
      bool adds = true;

      if (add == FASTLOAD_RUNS) sum = SegmentSum(sum, offset, lane, steps, &adds);
      if (adds) Add<R>(z + low + offset, sum, shared);
      if (!shared) __syncwarp(); /* another lane may go on with this row in the next line */
    });
  }
}

/* A piece of a long row, by all threads of a thread block */
template <typename R, typename V, typename I>
static __device__ __forceinline__ void AddLongRow(const FastLoadArrays<V, I> &fl, PetscInt piece, const V &alpha, const V *x, V *z)
{
  const GallopPiece<I> p   = GetPiece<I>(fl, piece);
  V                    sum = V(0);

#pragma unroll 4
  for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += Threads) sum += GallopLoadOnce(fl.value + fl.blknz + k) * x[GallopLoadOnce(fl.longCol + k)];
  sum = GallopWarpsSum<Threads>(sum, Threads);
  if (threadIdx.x == 0) GallopAtomicAdd<R>(z + fl.longRow[p.row], alpha * sum);
}

/* Blocks of fewer than 32 columns are few: their code is called, so that it takes no registers from what is not, with arguments in registers. skipped columns of the task are not in the block. */
template <typename R, typename V, typename I>
static __device__ __noinline__ void AddPart(int length, int kind, I height, const V *value, const I *lineRow, const unsigned char *rowIdx, int skipped, V xl, V *z)
{
  const Part<I> part(length, height, threadIdx.x % WarpSize);
  const V       xc = GallopShuffle(xl, skipped + part.column);

  part.Walk(kind, height, lineRow, rowIdx, [&](PetscCount at, I row) { GallopAtomicAdd<R>(z + row, GallopLoadOnce(value + at) * xc); });
}

template <typename V, typename I>
static __device__ __noinline__ V SumPart(int length, int kind, I height, const V *value, const I *lineRow, const unsigned char *rowIdx, int skipped, bool conjugate, const V *x)
{
  const int     lane = threadIdx.x % WarpSize, column = lane - skipped;
  const bool    inside = column >= 0 && column < length;
  const Part<I> part(length, height, lane);
  V             sums = V(0), sum = V(0);

  part.Walk(kind, height, lineRow, rowIdx, [&](PetscCount at, I row) { sums += GallopConjugate(GallopLoadOnce(value + at), conjugate) * x[row]; });
  for (int line = 0; line < part.lines; line++) { /* lanes of the same column */
    const V other = GallopShuffle(sums, (line * length + (inside ? column : 0)) % WarpSize);

    if (inside) sum += other;
  }
  return sum;
}

/* Algorithm 2 of the paper: a warp computes a task, block after block. z has beta y already, or will when the kernel before has ended. */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(Threads, Resident) FastLoadKernel(const __grid_constant__ FastLoadArrays<V, I> fl, const V alpha, const V *x, V *z, const bool fresh)
{
  const PetscCount t    = ((PetscCount)blockIdx.x - fl.pieceNum) * Warps + threadIdx.x / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  GallopLetSuccessorStart();
  if (fresh || t < 0 || t >= fl.taskNum) GallopWaitForPredecessor();
  if (t < 0) AddLongRow<R>(fl, (PetscInt)blockIdx.x, alpha, x, z);
  if (t < 0 || t >= fl.taskNum) return;

  const FastLoadTask task   = LoadTask(fl.tasks, t);
  const bool         inside = lane < task.length;
  BlockView<I>       block  = FirstBlock<I>(task);
  const bool         sorted = fl.sortedX && !task.follow;
  const I            col    = sorted ? task.colidx + lane : ColumnOf(fl, task, lane);
  V                  xl     = V(0);
  I                  b      = task.blk;
  const auto         ready  = [&] {
    if (b > task.blk) return;
    GallopWaitForPredecessor();
    if (inside) xl = alpha * (sorted ? fl.sortedX : x)[col]; /* no read-only load: ptxas would move that before the wait */
  };

  for (;;) {
    if (block.length == WarpSize) ByWidth<I>(block.kind, [&](auto *row) { AddBlock<cuda::std::remove_pointer_t<decltype(row)>, R>(fl, block, lane, ready, xl, z); });
    else {
      ready();
      AddPart<R>(block.length, block.kind, block.height, fl.value + block.ptr, fl.lineRow + block.line, Offsets(fl, block), task.length - block.length, xl, z);
    }
    if (++b == task.end) break;
    NextBlock(fl, b, &block);
  }
}

/* The transposed product: a lane adds up its column. v.z has what is added to where others add to the same columns, and has its value from here alone where not. */
template <typename V, typename R, typename I>
__global__ static void __launch_bounds__(Threads, Resident) TransposedKernel(const __grid_constant__ FastLoadArrays<V, I> fl, const GallopVectors<V> v, const bool conjugate, const bool alone, const bool fresh)
{
  const PetscCount t    = ((PetscCount)blockIdx.x - fl.pieceNum) * Warps + threadIdx.x / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  GallopLetSuccessorStart();
  if (fresh || t < 0 || t >= fl.taskNum) GallopWaitForPredecessor();
  if (t < 0) {
    const GallopPiece<I> p  = GetPiece<I>(fl, (PetscInt)blockIdx.x);
    const V              xl = v.alpha * v.x[fl.longRow[p.row]];

#pragma unroll 4
    for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += Threads) GallopAtomicAdd<R>(v.z + fl.longCol[k], GallopConjugate(fl.value[fl.blknz + k], conjugate) * xl);
  }
  if (t < 0 || t >= fl.taskNum) return;

  const FastLoadTask task  = LoadTask(fl.tasks, t);
  BlockView<I>       block = FirstBlock<I>(task);
  const I            col   = ColumnOf(fl, task, lane);
  V                  sum   = V(0);
  I                  b     = task.blk;
  const auto         ready = [&] {
    if (b == task.blk) GallopWaitForPredecessor();
  };

  for (;;) {
    if (block.length == WarpSize) {
      ByWidth<I>(block.kind, [&](auto *row) {
        using W = cuda::std::remove_pointer_t<decltype(row)>;

        const V *const x = v.x /* loaded plainly, as above */ + (cuda::std::is_void_v<W> && FASTLOAD_ADD(block.kind) != FASTLOAD_ONE_ROW ? lane : 0);

        WalkLines<W, LinesSummed>(fl, block, lane, ready, [&](const V &value, I offset, I low) { sum += GallopConjugate(value, conjugate) * x[low + offset]; });
      });
    } else {
      ready();
      sum += SumPart(block.length, block.kind, block.height, fl.value + block.ptr, fl.lineRow + block.line, Offsets(fl, block), task.length - block.length, conjugate, v.x);
    }
    if (++b == task.end) break;
    NextBlock(fl, b, &block);
  }
  if (lane < task.length && alone) GallopStore(v, col, sum);
  else if (lane < task.length) GallopAtomicAdd<R>(v.z + col, v.alpha * sum);
}
