/* FASTLOAD on the GPU: building it from CSR, renewing its values, and its products */

#include <gallop/cudaimpl.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include "../common/bits.h"
#include "../common/longrowsdevice.h"
#include "fastload.h"

static constexpr int          Threads  = 256; /* of a GPU block */
static constexpr int          Warps    = Threads / WarpSize;
static constexpr int          Adding   = sizeof(PetscScalar) > 8 ? 4 : 8;           /* lines whose entries are loaded before the first is used, in a product */
static constexpr int          Offset   = sizeof(PetscScalar) > 8 ? 3 : 7;           /* the same where rows are loaded too: one more, and registers do not suffice */
static constexpr int          Summing  = sizeof(PetscScalar) > 8 ? 4 : 8;           /* in a transposed product */
static constexpr int          Blocks   = 4;                                         /* of the GPU on a multiprocessor at least */
static constexpr PetscInt     TaskPart = FASTLOAD_WINDOW / 2 / sizeof(PetscScalar); /* rows of a large result that tasks add to one after the other */
static constexpr unsigned int All      = 0xffffffffu;                               /* lanes of a warp */
static_assert(FASTLOAD_LENGTH == WarpSize, "a lane has one column of a block");

using Key = cuda::std::conditional_t<sizeof(PetscInt) == 8, unsigned long long, unsigned int>; /* what CUB sorts by, and what a PetscInt is counted in */

static __device__ __forceinline__ PetscCount GlobalThread()
{
  return blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;
}

/* ---- the products ---- */

template <typename V, typename I>
struct FastLoadArrays {
  PetscInt             taskNum, pieceNum;
  PetscCount           blknz;
  const FastLoadTask  *tasks;
  const I             *blkHeight, *lineRow, *perm, *longRow, *longPtr, *longCol, *pieceRow, *pieceAt, *csrIdx;
  const unsigned char *blkLength, *blkClass, *rowIdx;
  const V             *value;
};

/* Where a block's entries, offsets and lines begin: as in a task, in few registers */
template <typename I>
struct BlockView {
  int length, kind;
  I   height, ptr, row, line;
};

template <typename I>
static __device__ __forceinline__ BlockView<I> FirstBlock(const FastLoadTask &task)
{
  return {task.length, task.kind, task.height, task.ptr, task.row, task.line};
}

/* Block b of a task, from the one before. The columns of a task's blocks end together. */
template <typename V, typename I>
static __device__ __forceinline__ void NextBlock(const FastLoadArrays<V, I> &fl, I b, BlockView<I> *block)
{
  const I entries = block->height * block->length;

  block->ptr += entries;
  block->line += block->height;
  block->row += (I)(FastLoadRowBytes(FASTLOAD_WIDTH(block->kind), entries) / FASTLOAD_ALIGN);
  block->length = fl.blkLength[b];
  block->kind   = fl.blkClass[b];
  block->height = fl.blkHeight[b];
}

template <typename V, typename I>
static __device__ __forceinline__ const unsigned char *Offsets(const FastLoadArrays<V, I> &fl, const BlockView<I> &block)
{
  return fl.rowIdx + (PetscCount)block.row * FASTLOAD_ALIGN;
}

/* In as few loads as can be */
static __device__ __forceinline__ FastLoadTask LoadTask(const FastLoadTask *tasks, PetscCount t)
{
  static_assert(sizeof(FastLoadTask) % sizeof(int4) == 0, "tasks are loaded 16 bytes at a time");
  union
  {
    FastLoadTask task;
    int4         part[sizeof(FastLoadTask) / sizeof(int4)];
  } u;

#pragma unroll
  for (size_t k = 0; k < sizeof(FastLoadTask) / sizeof(int4); k++) u.part[k] = __ldg(reinterpret_cast<const int4 *>(tasks + t) + k);
  return u.task;
}

/* Calls what() with the type of the rows of a block of 32 columns */
template <typename I, typename What>
static __device__ __forceinline__ void ByWidth(int kind, What what)
{
  switch (FASTLOAD_WIDTH(kind)) {
  case FASTLOAD_IMPLIED:
    what((void *)nullptr);
    break;
  case FASTLOAD_BYTE:
    what((unsigned char *)nullptr);
    break;
  case FASTLOAD_SHORT:
    what((unsigned short *)nullptr);
    break;
  default:
    what((I *)nullptr);
  }
}

/* The column of the matrix that the lane has in a task, 0 where none */
template <typename V, typename I>
static __device__ __forceinline__ I ColumnOf(const FastLoadArrays<V, I> &fl, const FastLoadTask &task, int lane)
{
  if (lane >= task.length) return I(0);
  return task.follow ? task.colidx + lane : fl.perm[task.colidx + lane];
}

/* The lane's entries of the next lines of a block of 32 columns: values, and rows as offsets from the lowest one of the line */
template <int Lines, typename V, typename I>
struct Entries {
  V value[Lines];
  I offset[Lines];

  /* Those from line on; W is how offsets are stored, void where they are implied */
  template <typename W>
  __device__ __forceinline__ void Load(const FastLoadArrays<V, I> &fl, const BlockView<I> &block, int lane, I line)
  {
    const I        at   = line * WarpSize + lane;
    const V *const from = fl.value + block.ptr + at;

#pragma unroll
    for (int u = 0; u < Lines; u++) {
      value[u]  = line + u < block.height ? GallopLoadOnce(from + u * WarpSize) : V(0);
      offset[u] = 0;
      if constexpr (!cuda::std::is_void_v<W>) offset[u] = line + u < block.height ? (I)GallopLoadOnce(reinterpret_cast<const W *>(Offsets(fl, block)) + at + u * WarpSize) : I(0);
    }
  }
};

/* Calls what(value, offset, low) for all lines of a block of 32 columns in turn, and ready() before, when the first have been asked for */
template <typename W, int Lines, typename V, typename I, typename Ready, typename What>
static __device__ __forceinline__ void WalkLines(const FastLoadArrays<V, I> &fl, const BlockView<I> &block, int lane, Ready ready, What what)
{
  constexpr int Most = WarpSize / Lines * Lines;
  I             low  = 0; /* lowest rows of lines, one in each lane */
  int           used = Most;

#pragma unroll 1
  for (I line = 0; line < block.height; line += Lines, used += Lines) {
    Entries<Lines, V, I> entries;

    if (used == Most) {
      low  = line + lane < block.height ? fl.lineRow[block.line + line + lane] : I(0);
      used = 0;
    }
    entries.template Load<W>(fl, block, lane, line);
    if (line == 0) ready();
#pragma unroll
    for (int u = 0; u < Lines; u++)
      if (line + u < block.height) what(entries.value[u], entries.offset[u], __shfl_sync(All, low, used + u));
  }
}

/* Calls what(entry, row) for the entries of a block of fewer columns. As many lines as lanes suffice for go at once: all entries of a lane are of its column. */
template <typename I>
struct Part {
  int length, lines, column;
  I   first; /* line of the lane */

  __device__ __forceinline__ Part(int length, I height, int lane) : length(length), lines(WarpSize / length), column(lane % length), first(lane / length < lines ? lane / length : height) { }
  template <typename What>
  __device__ __forceinline__ void Walk(int kind, I height, const I *lineRow, const unsigned char *rowIdx, What what) const
  {
#pragma unroll 2
    for (I line = first; line < height; line += lines) {
      const PetscCount at = (PetscCount)line * length;

      what(at + column, FastLoadRow(kind, lineRow[line], rowIdx, at, column));
    }
  }
};

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
      WalkLines<W, Adding>(fl, block, lane, ready, [&](const V &value, I, I low) {
        const V sum = GallopGroupSum(value * x, WarpSize);

        if (lane == 0) Add<R>(z + low, sum, shared);
      });
    } else {
      Diagonals<R, V, I> diagonals;

      WalkLines<W, Adding>(fl, block, lane, ready, [&](const V &value, I, I low) { diagonals.Line(low, value * x, z, shared, lane); });
      diagonals.Flush(z, shared, lane);
    }
  } else {
    WalkLines<W, Offset>(fl, block, lane, ready, [&](const V &value, I offset, I low) {
      V    sum  = value * x;
      bool adds = true;

      if (add == FASTLOAD_RUNS) sum = SegmentSum(sum, offset, lane, steps, &adds);
      if (adds) Add<R>(z + low + offset, sum, shared);
      if (!shared) __syncwarp(); /* another lane may go on with this row in the next line */
    });
  }
}

/* Of FastLoadArrays or of FastLoad */
template <typename I, typename Arrays>
static __device__ __forceinline__ GallopPiece<I> GetPiece(const Arrays &fl, PetscInt piece)
{
  return GallopGetPiece<I>(fl.pieceRow, fl.pieceAt, fl.longPtr, piece, FASTLOAD_PIECE);
}

/* A piece of a long row, by all threads of a GPU block */
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
__global__ static void __launch_bounds__(Threads, Blocks) FastLoadKernel(const __grid_constant__ FastLoadArrays<V, I> fl, const V alpha, const V *x, V *z, const bool fresh)
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
  const I            col    = ColumnOf(fl, task, lane);
  V                  xl     = V(0);
  I                  b      = task.blk;
  const auto         ready  = [&] {
    if (b > task.blk) return;
    GallopWaitForPredecessor();
    if (inside) xl = alpha * x[col]; /* no read-only load: ptxas would move that before the wait */
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
__global__ static void __launch_bounds__(Threads, Blocks) TransposedKernel(const __grid_constant__ FastLoadArrays<V, I> fl, const GallopVectors<V> v, const bool conjugate, const bool alone, const bool fresh)
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

        WalkLines<W, Summing>(fl, block, lane, ready, [&](const V &value, I offset, I low) { sum += GallopConjugate(value, conjugate) * x[low + offset]; });
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

/* Deterministic: products in order of CSR first ... */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) MultiplyKernel(const __grid_constant__ FastLoadArrays<V, I> fl, const V *__restrict__ x, V *products)
{
  const PetscCount t    = GlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (t >= fl.taskNum) return;
  const FastLoadTask task  = LoadTask(fl.tasks, t);
  BlockView<I>       block = FirstBlock<I>(task);
  const V            xl    = lane < task.length ? x[ColumnOf(fl, task, lane)] : V(0);

  for (I b = task.blk;;) {
    const I *const at = fl.csrIdx + block.ptr;
    const Part<I>  part(block.length, block.height, lane);
    const V        xc = GallopShuffle(xl, task.length - block.length + part.column);

    for (I line = part.first; line < block.height; line += part.lines) {
      const PetscCount k = (PetscCount)line * block.length + part.column;

      products[GallopLoadOnce(at + k)] = GallopLoadOnce(fl.value + block.ptr + k) * xc;
    }
    if (++b == task.end) break;
    NextBlock(fl, b, &block);
  }
}

/* ... and the sums of rows from them, by width threads a row */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) RowSumKernel(I m, int width, const I *__restrict__ rowPtr, const V *__restrict__ products, const GallopVectors<V> v)
{
  const PetscCount row    = GlobalThread() / width;
  const bool       inside = row < m;
  const int        lane   = threadIdx.x % width;
  V                sum    = V(0);

  if (inside)
    for (PetscCount k = (PetscCount)rowPtr[row] + lane; k < rowPtr[row + 1]; k += width) sum += products[k];
  sum = GallopGroupSum(sum, width);
  if (inside && lane == 0) GallopStore(v, (PetscInt)row, sum);
}

/* ---- build ---- */

enum {
  FLAG_UNSORTED, /* some row's columns do not increase */
  FLAG_LONG,     /* how many rows are long */
  FLAG_CUT,      /* a group has more than one task */
  FLAG_EMPTY,    /* a column is in no block */
  FLAGS
};

/* What the host wants to know, for one copy: blocks, tasks and lines of groups, and the flags */
struct Found {
  PetscInt blocks, tasks, lines;
  int      flags[FLAGS];
};

static __device__ __forceinline__ void Raise(int *flag)
{
  cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, cuda::memory_order_relaxed);
}

__global__ static void SpreadKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, unsigned long long *sum)
{
  const int k = (int)GlobalThread();

  if (k < FASTLOAD_SAMPLES) atomicAdd(sum, (unsigned long long)FastLoadSpread(m, i, j, k));
}

/* Where rows begin, and which of them are long, in any order */
__global__ static void RowsKernel(PetscInt m, PetscInt limit, const PetscInt *__restrict__ i, PetscInt *rowOf, int *flags, PetscInt *longRows)
{
  const PetscCount r = GlobalThread();

  if (r >= m || i[r + 1] == i[r]) return;
  rowOf[i[r]] = (PetscInt)r;
  if (FastLoadIsLong(i, (PetscInt)r, limit)) longRows[atomicAdd(&flags[FLAG_LONG], 1)] = (PetscInt)r;
}

/* What entries are sorted by: their columns; those of long rows come last */
__global__ static void EntryKeyKernel(PetscCount nz, PetscInt n, PetscInt limit, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ rowOf, Key *key, PetscInt *entry, int *flags)
{
  const PetscCount k = GlobalThread();

  if (k >= nz) return;
  if (k && rowOf[k] == rowOf[k - 1] && j[k] <= j[k - 1]) Raise(&flags[FLAG_UNSORTED]);
  key[k]   = (Key)(FastLoadIsLong(i, rowOf[k], limit) ? n : j[k]);
  entry[k] = (PetscInt)k;
}

/* Where the entries of each column begin and end among sorted ones; columns without have what they had */
__global__ static void BoundsKernel(PetscCount nz, PetscInt n, const Key *__restrict__ key, PetscInt *start, PetscInt *stop)
{
  const PetscCount k = GlobalThread();

  if (k >= nz || key[k] == (Key)n) return;
  if (!k || key[k] != key[k - 1]) start[key[k]] = (PetscInt)k;
  if (k == nz - 1 || key[k] != key[k + 1]) stop[key[k]] = (PetscInt)k + 1;
}

/* What columns are sorted by: their window, and in it their length */
__global__ static void ColumnKeyKernel(PetscInt n, PetscInt window, int bits, const PetscInt *__restrict__ start, const PetscInt *__restrict__ stop, unsigned long long *key, PetscInt *col)
{
  const PetscCount c = GlobalThread();

  if (c >= n) return;
  key[c] = (unsigned long long)(window ? c / window : 0) << bits | (unsigned long long)(stop[c] - start[c]);
  col[c] = (PetscInt)c;
}

/* Where columns with entries begin among sorted ones; *first is n where none have */
__global__ static void FirstKernel(PetscInt n, int bits, const unsigned long long *__restrict__ key, PetscInt *first)
{
  const PetscCount         s    = GlobalThread();
  const unsigned long long mask = (1ull << bits) - 1;

  if (s < n && key[s] & mask && (!s || !(key[s - 1] & mask))) *first = (PetscInt)s;
}

/* The length of each sorted column, and where its entries begin. len[n] is 0: one too many, so that the exclusive sum ends with the total */
__global__ static void LengthKernel(PetscInt n, int bits, const unsigned long long *__restrict__ key, const PetscInt *__restrict__ cols, const PetscInt *__restrict__ start, PetscInt *len, PetscInt *from)
{
  const PetscCount s = GlobalThread();

  if (s < n) {
    len[s]  = (PetscInt)(key[s] & ((1ull << bits) - 1));
    from[s] = start[cols[s]];
  } else if (s == n) len[n] = 0;
}

/* Lines [begin, end) of a group, all of the same columns, and the blocks that they are cut into: all but the first begin tasks, and that does too where begins */
struct Segment {
  int      first, length; /* columns of the group */
  PetscInt begin, end, cut, blocks;
  bool     begins;

  __device__ __forceinline__ PetscInt Tasks() const { return blocks - !begins; }
  __device__ __forceinline__ PetscInt BlockBegin(PetscInt k) const { return k ? (begin / cut + k) * cut : begin; }
  __device__ __forceinline__ PetscInt BlockEnd(PetscInt k) const { return k == blocks - 1 ? end : (begin / cut + k + 1) * cut; }
};

/* A warp a group; what() takes each segment, uniformly. Returns the lines. */
template <typename What>
static __device__ __forceinline__ PetscInt WalkGroup(PetscInt ncols, PetscInt limit, const PetscInt *len, PetscInt s, int lane, What what)
{
  const int      length = (int)(ncols - s < WarpSize ? ncols - s : WarpSize);
  const PetscInt own = lane < length ? len[s + lane] : 0, most = __shfl_sync(All, own, length - 1);
  int            chain = 0;

  for (PetscInt k = 0; k < most;) {
    const int      at  = __popc(__ballot_sync(All, lane < length && own <= k)); /* columns that are at their end */
    const PetscInt end = __shfl_sync(All, own, at), cut = limit ? FastLoadCut(limit, WarpSize, length - at) : most;

    const PetscInt blocks = (end - 1) / cut - k / cut + 1;
    const bool     begins = k % cut == 0 || (limit && most > limit && chain == FASTLOAD_CHAIN);

    chain = begins || blocks > 1 ? 1 : chain + 1;
    what(Segment{at, length - at, k, end, cut, blocks, begins});
    k = end;
  }
  return most;
}

__global__ static void CountGroupsKernel(PetscInt groups, PetscInt ncols, PetscInt limit, const PetscInt *__restrict__ len, PetscInt *blocks, PetscInt *tasks, PetscInt *lines, int *flags)
{
  const PetscCount g       = GlobalThread() / WarpSize;
  const int        lane    = threadIdx.x % WarpSize;
  PetscInt         nblocks = 0, ntasks = 0;

  if (g > groups) return;
  const PetscInt nlines = g == groups ? 0 : WalkGroup(ncols, limit, len, (PetscInt)g * WarpSize, lane, [&](const Segment &segment) {
    nblocks += segment.blocks;
    ntasks += segment.Tasks();
  });

  if (lane) return;
  blocks[g] = nblocks;
  tasks[g]  = ntasks;
  lines[g]  = nlines;
  if (ntasks > 1) Raise(&flags[FLAG_CUT]);
  if (g < groups && !len[g * WarpSize]) Raise(&flags[FLAG_EMPTY]);
}

__global__ static void TotalsKernel(const PetscInt *__restrict__ blocks, const PetscInt *__restrict__ tasks, const PetscInt *__restrict__ lines, Found *found)
{
  if (threadIdx.x) return;
  found->blocks = *blocks;
  found->tasks  = *tasks;
  found->lines  = *lines;
}

/* base: entries of each column of a block in the blocks before */
__global__ static void GroupsKernel(PetscInt groups, const PetscInt *__restrict__ len, const PetscInt *__restrict__ begin, const PetscInt *__restrict__ blocks, const PetscInt *__restrict__ tasks, const PetscInt *__restrict__ lines, const FastLoad fl, PetscInt *base)
{
  const PetscCount g    = GlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (g >= groups) return;
  const PetscInt line = lines[g];
  PetscInt       b = blocks[g], t = tasks[g];
  PetscCount     ptr = begin[g * WarpSize];

  WalkGroup(fl.ncols, fl.height, len, (PetscInt)g * WarpSize, lane, [&](const Segment &segment) {
    for (PetscInt k = lane; k < segment.blocks; k += WarpSize) {
      const PetscInt from = segment.BlockBegin(k), to = segment.BlockEnd(k);

      if (k || segment.begins) fl.taskBlk[t + k - !segment.begins] = b + k;
      fl.blkPtr[b + k]    = ptr + (PetscCount)segment.length * (from - segment.begin);
      fl.blkColIdx[b + k] = (PetscInt)g * WarpSize + segment.first;
      fl.blkHeight[b + k] = to - from;
      fl.blkLength[b + k] = (unsigned char)segment.length;
      fl.blkLine[b + k]   = line + from;
      base[b + k]         = from;
    }
    b += segment.blocks;
    t += segment.Tasks();
    ptr += (PetscCount)segment.length * (segment.end - segment.begin);
  });
}

/* Whether a step of all columns begins at each sorted one */
__global__ static void FlagKernel(PetscInt ncols, const PetscInt *__restrict__ len, PetscInt *flag)
{
  const PetscCount s = GlobalThread();

  if (s < ncols) flag[s] = !s || len[s] != len[s - 1];
  else if (s == ncols) flag[s] = 0;
}

/* The first column and the last entry of each step */
__global__ static void StepsKernel(PetscInt ncols, const PetscInt *__restrict__ len, const PetscInt *__restrict__ step, PetscInt *start, PetscInt *top)
{
  const PetscCount s = GlobalThread();

  if (s < ncols && step[s + 1] > step[s]) {
    start[step[s]] = (PetscInt)s;
    top[step[s]]   = len[s];
  }
}

__global__ static void StepBlocksKernel(PetscInt num, const FastLoadStep *__restrict__ steps, const FastLoad fl, PetscInt *base)
{
  const PetscCount b = GlobalThread();

  if (b >= fl.blkNum) return;
  const FastLoadBlock block = FastLoadGetBlock(num, steps, fl.ncols, FASTLOAD_LENGTH, fl.height, (PetscInt)b);

  fl.taskBlk[b]   = (PetscInt)b;
  fl.blkPtr[b]    = block.ptr;
  fl.blkColIdx[b] = block.colidx;
  fl.blkHeight[b] = block.height;
  fl.blkLength[b] = (unsigned char)block.length;
  fl.blkLine[b]   = block.height; /* to be added up */
  base[b]         = block.base;
}

/* A warp a block: the rows, values and places in CSR of its entries, from those sorted by columns, of which each sorted column's begin at start */
__global__ static void FillKernel(const FastLoad fl, const PetscInt *__restrict__ start, const PetscInt *__restrict__ base, const PetscInt *__restrict__ entries, const PetscInt *__restrict__ rowOf, const PetscScalar *__restrict__ a, PetscInt *rows)
{
  static constexpr int Ahead = 4;
  const PetscCount     b     = GlobalThread() / WarpSize;
  const int            lane  = threadIdx.x % WarpSize;

  if (b >= fl.blkNum) return;
  const int       length = fl.blkLength[b];
  const PetscInt  height = lane < length ? fl.blkHeight[b] : 0;
  const PetscInt *from   = lane < length ? entries + start[fl.blkColIdx[b] + lane] + base[b] : entries;
  PetscCount      at     = fl.blkPtr[b] + lane;

  for (PetscInt q = 0; __any_sync(All, q < height); q += Ahead) {
    PetscInt    entry[Ahead], row[Ahead];
    PetscScalar value[Ahead];

#pragma unroll
    for (int u = 0; u < Ahead; u++) entry[u] = q + u < height ? from[q + u] : -1;
    __syncwarp(); /* else the compiler would load one after the other */
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      row[u]   = entry[u] >= 0 ? rowOf[entry[u]] : 0;
      value[u] = entry[u] >= 0 ? a[entry[u]] : PetscScalar(0);
    }
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

/* A warp a block: each row gets one of the blocks that have entries of it. Which one does not matter: a row in several blocks differs from all but one of them. */
__global__ static void OwnerKernel(const FastLoad fl, const PetscInt *__restrict__ rows, PetscInt *owner)
{
  const PetscCount b = GlobalThread() / WarpSize;

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

/* A warp a block: its class, the lowest rows of its lines, the bytes that the others take, and the rows that are in another block too or stand apart in a line */
__global__ static void ClassKernel(const FastLoad fl, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ owner, int *apart)
{
  static constexpr int Ahead  = 4;
  const PetscCount     b      = GlobalThread() / WarpSize;
  const int            lane   = threadIdx.x % WarpSize;
  bool                 onerow = true, distinct = true, follow = true;
  PetscInt             spread  = 0;
  int                  longest = 1;

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

/* A warp a block, once rowIdx has memory: offsets of rows; and whether its rows are others' too */
__global__ static void OffsetsKernel(const FastLoad fl, const PetscInt *__restrict__ rows, const int *__restrict__ apart)
{
  static constexpr int Ahead = 4;
  const PetscCount     b     = GlobalThread() / WarpSize;
  const int            lane  = threadIdx.x % WarpSize;
  bool                 found = false;

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

/* What tasks are sorted by where the result is large: the part of it that they begin in */
__global__ static void TaskKeyKernel(const FastLoad fl, PetscInt part, Key *key, PetscInt *number)
{
  const PetscCount t = GlobalThread();

  if (t >= fl.taskNum) return;
  key[t]    = (Key)(fl.lineRow[fl.blkLine[fl.taskBlk[t]]] / part);
  number[t] = (PetscInt)t;
}

/* In order of numbers, where there are some */
__global__ static void TasksKernel(const FastLoad fl, const PetscInt *__restrict__ number)
{
  const PetscCount k = GlobalThread();

  if (k >= fl.taskNum) return;
  const PetscCount t = number ? number[k] : k;
  const PetscInt   b = fl.taskBlk[t], *cols = fl.perm + fl.blkColIdx[b];
  bool             follow = true;

  for (int l = 1; l < fl.blkLength[b]; l++) follow = follow && cols[l] == cols[0] + l;
  fl.tasks[k] = {(PetscInt)fl.blkPtr[b], (PetscInt)(fl.blkRow[b] / FASTLOAD_ALIGN),
                 fl.blkLine[b],          follow ? cols[0] : fl.blkColIdx[b],
                 fl.blkHeight[b],        b,
                 fl.taskBlk[t + 1],      fl.blkLength[b],
                 fl.blkClass[b],         follow};
}

/* New values, so many warps a block: to look an entry up is a chain of loads */
__global__ static void __launch_bounds__(Threads) RefreshKernel(const FastLoad fl, PetscInt warps, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const PetscCount warp = GlobalThread() / WarpSize, b = warp / warps;
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
__global__ static void __launch_bounds__(Threads) LongRowsKernel(const FastLoad fl, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, bool columns)
{
  const GallopPiece<PetscInt> p = GetPiece<PetscInt>(fl, (PetscInt)blockIdx.x);

  GallopCopyPiece(p, fl.longPtr, i[fl.longRow[p.row]], j, a, fl.value + fl.blknz, fl.longCol, columns);
}

/* What the build needs and the product does not */
struct Workspace {
  PetscInt           *rowOf, *longRows, *len, *begin, *cols, *sortedcols, *colBegin, *colEnd, *from, *blocks, *tasks, *lines, *entries, *sortedentries, *owner;
  PetscInt           *step, *start, *top; /* for steps of all columns */
  FastLoadStep       *steps;
  unsigned long long *colkey, *sortedcolkey;
  Key                *key, *sortedkey;
  int                *apart, *flags; /* flags: of found */
  Found              *found;
  char               *cub;
  size_t              cubbytes;
  int                 lenbits, colbits;
  PetscInt            groups, most; /* most steps of all columns: different lengths */
  bool                unsorted;     /* some row's columns do not increase */
};

static size_t CarveWorkspace(Workspace *w, const FastLoadOptions *o, const GallopCSR *csr, void *base)
{
  GallopCarver     carver(base);
  const PetscCount n = csr->n;

  carver.Take(w->rowOf, csr->nz);
  carver.Take(w->longRows, csr->nz / o->long_row + 1);
  carver.Take(w->len, n + 1);
  carver.Take(w->begin, n + 1);
  carver.Take(w->cols, n);
  carver.Take(w->sortedcols, n);
  carver.Take(w->colBegin, n);
  carver.Take(w->colEnd, n);
  carver.Take(w->from, n);
  carver.Take(w->blocks, (PetscCount)w->groups + 1);
  carver.Take(w->tasks, (PetscCount)w->groups + 1);
  carver.Take(w->lines, (PetscCount)w->groups + 1);
  carver.Take(w->entries, csr->nz);
  carver.Take(w->sortedentries, csr->nz);
  carver.Take(w->owner, csr->m);
  carver.Take(w->apart, csr->m);
  carver.Take(w->colkey, n);
  carver.Take(w->sortedcolkey, n);
  carver.Take(w->key, csr->nz);
  carver.Take(w->sortedkey, csr->nz);
  carver.Take(w->found, 1);
  w->flags = base ? w->found->flags : nullptr;
  if (!o->groups) {
    carver.Take(w->step, n + 1);
    carver.Take(w->start, w->most);
    carver.Take(w->top, w->most);
    carver.Take(w->steps, w->most);
  }
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* Runs twice: with a null base it measures, then it hands out. value comes first. */
static size_t Carve(FastLoad *fl, bool indices, void *base)
{
  GallopCarver carver(base);

  carver.Take(fl->value, fl->nz);
  carver.Take(fl->blkPtr, (PetscCount)fl->blkNum + 1);
  carver.Take(fl->blkRow, (PetscCount)fl->blkNum + 1);
  carver.Take(fl->blkColIdx, fl->blkNum);
  carver.Take(fl->blkHeight, fl->blkNum);
  carver.Take(fl->blkLine, (PetscCount)fl->blkNum + 1);
  carver.Take(fl->blkLength, fl->blkNum);
  carver.Take(fl->blkClass, fl->blkNum);
  carver.Take(fl->lineRow, fl->lineNum);
  carver.Take(fl->taskBlk, (PetscCount)fl->taskNum + 1);
  carver.Take(fl->tasks, fl->taskNum);
  carver.Take(fl->perm, fl->ncols);
  carver.Take(fl->longRow, fl->longNum);
  carver.Take(fl->longPtr, (PetscCount)fl->longNum + 1);
  carver.Take(fl->longCol, fl->nz - fl->blknz);
  carver.Take(fl->pieceRow, fl->pieceNum);
  carver.Take(fl->pieceAt, fl->pieceNum);
  if (indices) carver.Take(fl->csrIdx, fl->blknz);
  if (fl->options.deterministic) {
    carver.Take(fl->rowPtr, (PetscCount)fl->m + 1);
    carver.Take(fl->products, fl->nz);
  }
  return carver.Bytes();
}

static PetscErrorCode CubBytes(const GallopCSR *csr, Workspace *w, cudaStream_t stream)
{
  size_t bytes = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::InclusiveScan(nullptr, bytes, w->rowOf, w->rowOf, cuda::maximum<>(), csr->nz, stream));
  w->cubbytes = bytes;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, w->colkey, w->sortedcolkey, w->cols, w->sortedcols, csr->n, 0, w->colbits, stream));
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, w->len, w->begin, (PetscCount)csr->n + 1, stream));
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, w->key, w->sortedkey, w->entries, w->sortedentries, csr->nz, 0, PetscMax(GallopSortBits(csr->n), GallopSortBits(csr->m / TaskPart)), stream)); /* of tasks too: there are no more than entries */
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, (PetscCount *)nullptr, (PetscCount *)nullptr, csr->nz + 1, stream)); /* blkRow; there are no more blocks than entries */
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, (PetscInt *)nullptr, (PetscInt *)nullptr, csr->nz + 1, stream)); /* blkLine */
  w->cubbytes = PetscMax(w->cubbytes, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scan(Workspace *w, PetscInt *array, PetscCount n, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, array, array, n, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows, entries by columns, the lengths of columns, and their order */
static PetscErrorCode SortColumns(FastLoad *fl, const GallopCSR *csr, Workspace *w, cudaStream_t stream)
{
  const unsigned int rows = GallopBlocksFor(csr->m, Threads), cols = GallopBlocksFor((PetscCount)csr->n + 1, Threads), entries = GallopBlocksFor(csr->nz, Threads);
  PetscInt           skip = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->found, 0, sizeof(*w->found), stream));
  PetscCallCUDA(cudaMemsetAsync(w->rowOf, 0, (size_t)csr->nz * sizeof(*w->rowOf), stream));
  PetscCallCUDA(cudaMemsetAsync(w->colBegin, 0, (size_t)csr->n * sizeof(*w->colBegin), stream));
  PetscCallCUDA(cudaMemsetAsync(w->colEnd, 0, (size_t)csr->n * sizeof(*w->colEnd), stream));
  RowsKernel<<<rows, Threads, 0, stream>>>(csr->m, fl->options.long_row, csr->i, w->rowOf, w->flags, w->longRows);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::InclusiveScan(w->cub, w->cubbytes, w->rowOf, w->rowOf, cuda::maximum<>(), csr->nz, stream));
  EntryKeyKernel<<<entries, Threads, 0, stream>>>(csr->nz, csr->n, fl->options.long_row, csr->i, csr->j, w->rowOf, w->key, w->entries, w->flags);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->key, w->sortedkey, w->entries, w->sortedentries, csr->nz, 0, GallopSortBits(csr->n), stream));
  BoundsKernel<<<entries, Threads, 0, stream>>>(csr->nz, csr->n, w->sortedkey, w->colBegin, w->colEnd);
  GallopCheckLaunch();
  ColumnKeyKernel<<<cols, Threads, 0, stream>>>(csr->n, fl->options.window, w->lenbits, w->colBegin, w->colEnd, w->colkey, w->cols);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, w->colkey, w->sortedcolkey, w->cols, w->sortedcols, csr->n, 0, w->colbits, stream));
  if (!fl->options.groups) {                                          /* the paper leaves empty columns out */
    PetscCall(GallopDeviceCopyIn(w->len, &csr->n, sizeof(PetscInt))); /* not in use yet */
    FirstKernel<<<cols, Threads, 0, stream>>>(csr->n, w->lenbits, w->sortedcolkey, w->len);
    GallopCheckLaunch();
    PetscCall(GallopDeviceCopyOut(&skip, w->len, sizeof(PetscInt)));
    w->sortedcolkey += skip;
    w->sortedcols += skip;
  }
  fl->ncols = csr->n - skip;
  LengthKernel<<<GallopBlocksFor((PetscCount)fl->ncols + 1, Threads), Threads, 0, stream>>>(fl->ncols, w->lenbits, w->sortedcolkey, w->sortedcols, w->colBegin, w->len, w->from);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, w->len, w->begin, (PetscCount)fl->ncols + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of blocks, lines and tasks. The steps of all columns are to be freed by the caller. */
static PetscErrorCode Plan(FastLoad *fl, Workspace *w, cudaStream_t stream, PetscInt *num, FastLoadStep **steps)
{
  Found found;

  PetscFunctionBegin;
  *num   = 0;
  *steps = NULL;
  if (fl->options.groups) {
    w->groups = FastLoadCeil(fl->ncols, WarpSize);
    CountGroupsKernel<<<GallopBlocksFor(((PetscCount)w->groups + 1) * WarpSize, Threads), Threads, 0, stream>>>(w->groups, fl->ncols, fl->height, w->len, w->blocks, w->tasks, w->lines, w->flags);
    GallopCheckLaunch();
    PetscCall(Scan(w, w->blocks, (PetscCount)w->groups + 1, stream));
    PetscCall(Scan(w, w->tasks, (PetscCount)w->groups + 1, stream));
    PetscCall(Scan(w, w->lines, (PetscCount)w->groups + 1, stream));
    TotalsKernel<<<1, Threads, 0, stream>>>(w->blocks + w->groups, w->tasks + w->groups, w->lines + w->groups, w->found);
    GallopCheckLaunch();
  } else if (fl->ncols) {
    PetscInt *start, *top;

    FlagKernel<<<GallopBlocksFor((PetscCount)fl->ncols + 1, Threads), Threads, 0, stream>>>(fl->ncols, w->len, w->step);
    GallopCheckLaunch();
    PetscCall(Scan(w, w->step, (PetscCount)fl->ncols + 1, stream));
    StepsKernel<<<GallopBlocksFor(fl->ncols, Threads), Threads, 0, stream>>>(fl->ncols, w->len, w->step, w->start, w->top);
    GallopCheckLaunch();
    PetscCall(GallopDeviceCopyOut(num, w->step + fl->ncols, sizeof(PetscInt)));
    PetscCall(PetscMalloc1(*num, steps));
    PetscCall(PetscMalloc2(*num, &start, *num, &top));
    PetscCall(GallopDeviceCopyOut(start, w->start, (size_t)*num * sizeof(PetscInt)));
    PetscCall(GallopDeviceCopyOut(top, w->top, (size_t)*num * sizeof(PetscInt)));
    for (PetscInt t = 0; t < *num; t++) {
      (*steps)[t].start  = start[t];
      (*steps)[t].base   = t ? top[t - 1] : 0;
      (*steps)[t].height = top[t] - (*steps)[t].base;
    }
    PetscCall(PetscFree2(start, top));
    FastLoadPlan(*num, *steps, fl->ncols, FASTLOAD_LENGTH, fl->height, &fl->blkNum);
    for (PetscInt t = 0; t < *num; t++) fl->lineNum += FastLoadCeil(fl->ncols - (*steps)[t].start, WarpSize) * (*steps)[t].height;
    fl->taskNum = fl->blkNum;
  }
  PetscCall(GallopDeviceCopyOut(&found, w->found, sizeof(found)));
  if (fl->options.groups) {
    fl->blkNum  = found.blocks;
    fl->taskNum = found.tasks;
    fl->lineNum = found.lines;
  }
  fl->longNum = found.flags[FLAG_LONG];
  fl->single  = (PetscBool)(fl->options.groups && !found.flags[FLAG_CUT]);
  fl->zeros   = (PetscBool)(!fl->options.groups || found.flags[FLAG_EMPTY]);
  w->unsorted = found.flags[FLAG_UNSORTED];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanLongRows(FastLoad *fl, const GallopCSR *csr, const Workspace *w, GallopLongRows *l)
{
  PetscInt *rows;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(fl->longNum, &rows));
  if (fl->longNum) PetscCall(GallopDeviceCopyOut(rows, w->longRows, (size_t)fl->longNum * sizeof(PetscInt)));
  PetscCall(GallopLongRowsPlan(csr->host_i, fl->longNum, rows, FASTLOAD_PIECE, l));
  PetscCall(PetscFree(rows));
  fl->blknz    = csr->nz - l->nz;
  fl->pieceNum = l->pieceNum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillLongRows(const FastLoad *fl, const GallopCSR *csr, const GallopLongRows *l, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceCopyIn(fl->longPtr, l->ptr, (size_t)(fl->longNum + 1) * sizeof(PetscInt)));
  if (!fl->pieceNum) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceCopyIn(fl->longRow, l->row, (size_t)fl->longNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceRow, l->pieceRow, (size_t)fl->pieceNum * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->pieceAt, l->pieceAt, (size_t)fl->pieceNum * sizeof(PetscInt)));
  LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, stream>>>(*fl, csr->i, csr->j, csr->a, true);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All arrays but those of long rows and rowIdx; *rows lie in the workspace */
static PetscErrorCode Fill(FastLoad *fl, const GallopCSR *csr, Workspace *w, PetscInt num, const FastLoadStep steps[], cudaStream_t stream, const PetscInt **placed)
{
  const unsigned int warps = GallopBlocksFor((PetscCount)fl->blkNum * WarpSize, Threads);
  PetscInt          *rows  = (PetscInt *)w->key;

  PetscFunctionBegin;
  PetscCall(GallopDeviceCopy(fl->perm, w->sortedcols, (size_t)fl->ncols * sizeof(PetscInt)));
  if (fl->blkNum) {
    PetscInt *const blkBase = w->entries; /* free again, as w->key is */

    if (fl->options.groups) {
      GroupsKernel<<<GallopBlocksFor((PetscCount)w->groups * WarpSize, Threads), Threads, 0, stream>>>(w->groups, w->len, w->begin, w->blocks, w->tasks, w->lines, *fl, blkBase);
      GallopCheckLaunch();
    } else {
      PetscCall(GallopDeviceCopyIn(w->steps, steps, (size_t)num * sizeof(*steps)));
      StepBlocksKernel<<<GallopBlocksFor(fl->blkNum, Threads), Threads, 0, stream>>>(num, w->steps, *fl, blkBase);
      GallopCheckLaunch();
      PetscCall(Scan(w, fl->blkLine, fl->blkNum, stream));
    }
    PetscCall(GallopDeviceCopyIn(fl->blkPtr + fl->blkNum, &fl->blknz, sizeof(PetscCount)));
    FillKernel<<<warps, Threads, 0, stream>>>(*fl, w->from, blkBase, w->sortedentries, w->rowOf, csr->a, rows);
    GallopCheckLaunch();
    PetscCallCUDA(cudaMemsetAsync(w->apart, 0, (size_t)fl->m * sizeof(*w->apart), stream));
    OwnerKernel<<<warps, Threads, 0, stream>>>(*fl, rows, w->owner); /* rows without entries are never asked for */
    GallopCheckLaunch();
    ClassKernel<<<warps, Threads, 0, stream>>>(*fl, rows, w->owner, w->apart);
    GallopCheckLaunch();
  } else PetscCall(GallopDeviceZero(fl->blkPtr, sizeof(PetscCount)));
  PetscCall(GallopDeviceCopyIn(fl->blkLine + fl->blkNum, &fl->lineNum, sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->taskBlk + fl->taskNum, &fl->blkNum, sizeof(PetscInt)));
  PetscCall(GallopDeviceZero(fl->blkRow + fl->blkNum, sizeof(PetscCount)));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(w->cub, w->cubbytes, fl->blkRow, fl->blkRow, (PetscCount)fl->blkNum + 1, stream));
  *placed = rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  FastLoad *fl = (FastLoad *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(fl->value)); /* where the one allocation begins; the other is rowIdx */
  PetscCall(GallopDeviceFree(fl->rowIdx));
  PetscCall(PetscFree(fl));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a plan: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode Complete(FastLoad *fl, const GallopCSR *csr, Workspace *w, const GallopLongRows *l, PetscInt num, const FastLoadStep steps[], PetscCount maxbytes, cudaStream_t stream, PetscBool *done)
{
  const bool      indices = fl->options.deterministic || w->unsorted;
  const PetscInt *rows    = NULL;
  PetscInt       *number  = NULL;
  void           *base = NULL, *rowIdx = NULL;
  PetscCount      rowbytes;

  PetscFunctionBegin;
  *done     = PETSC_FALSE;
  fl->bytes = Carve(fl, indices, NULL);
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(fl->bytes, &base));
  if (!base) {
    fl->value = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  (void)Carve(fl, indices, base);
  PetscCall(Fill(fl, csr, w, num, steps, stream, &rows));
  PetscCall(FillLongRows(fl, csr, l, stream));
  if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyOut(&rowbytes, fl->blkRow + fl->blkNum, sizeof(rowbytes)));
  fl->bytes += (size_t)rowbytes;
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc((size_t)PetscMax(rowbytes, 1), &rowIdx));
  if (!rowIdx) PetscFunctionReturn(PETSC_SUCCESS);
  fl->rowIdx = (unsigned char *)rowIdx;
  PetscCall(GallopDeviceZero(rowIdx, (size_t)rowbytes));
  if (fl->blkNum) {
    OffsetsKernel<<<GallopBlocksFor((PetscCount)fl->blkNum * WarpSize, Threads), Threads, 0, stream>>>(*fl, rows, w->apart);
    GallopCheckLaunch();
    if (FastLoadIsLarge(fl->m)) {
      number = w->sortedentries; /* there are no more tasks than entries; rows are in w->key */
      TaskKeyKernel<<<GallopBlocksFor(fl->taskNum, Threads), Threads, 0, stream>>>(*fl, TaskPart, (Key *)w->entries, w->rowOf);
      GallopCheckLaunch();
      PetscCallCUDA(cub::DeviceRadixSort::SortPairs(w->cub, w->cubbytes, (Key *)w->entries, w->sortedkey, w->rowOf, number, fl->taskNum, 0, GallopSortBits(fl->m / TaskPart), stream));
    }
    TasksKernel<<<GallopBlocksFor(fl->taskNum, Threads), Threads, 0, stream>>>(*fl, number);
    GallopCheckLaunch();
  }
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As on the host; *fits is false where there is no memory for a number */
static PetscErrorCode Spread(const GallopCSR *csr, PetscCount *spread, PetscBool *fits, cudaStream_t stream)
{
  unsigned long long sum = 0;
  void              *total;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  if (FastLoadIsLarge(csr->m)) {
    PetscCall(GallopDeviceMalloc(sizeof(sum), &total));
    *fits = (PetscBool)(total != NULL);
    if (*fits) {
      PetscCallCUDA(cudaMemsetAsync(total, 0, sizeof(sum), stream));
      SpreadKernel<<<GallopBlocksFor(FASTLOAD_SAMPLES, Threads), Threads, 0, stream>>>(csr->m, csr->i, csr->j, (unsigned long long *)total);
      GallopCheckLaunch();
      PetscCall(GallopDeviceCopyOut(&sum, total, sizeof(sum)));
      PetscCall(GallopDeviceRelease(sizeof(sum), total));
    }
  }
  *spread = (PetscCount)sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  FastLoadOptions options;
  FastLoad       *fl;
  FastLoadStep   *steps;
  GallopLongRows  longrows;
  PetscInt        num;
  Workspace       w = {};
  size_t          wbytes;
  void           *wbase;
  cudaStream_t    stream;
  PetscCount      spread = 0;
  PetscBool       done;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(Spread(csr, &spread, &done, stream));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  options   = FastLoadChoose((const FastLoadOptions *)opts, csr, spread);
  w.groups  = FastLoadCeil(csr->n, WarpSize);
  w.most    = (PetscInt)PetscMin((double)csr->n, PetscSqrtReal(2 * (PetscReal)csr->nz) + 2);
  w.lenbits = GallopSortBits(csr->nz); /* not m: rows may name a column more than once */
  w.colbits = w.lenbits + (options.window ? GallopSortBits(csr->n / options.window) : 0);
  PetscCall(CubBytes(csr, &w, stream));
  wbytes = CarveWorkspace(&w, &options, csr, NULL);
  PetscCall(GallopDeviceMalloc(wbytes, &wbase));
  if (!wbase) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveWorkspace(&w, &options, csr, wbase);

  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_CUDA;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = FASTLOAD_LENGTH;
  fl->options = options;
  fl->height  = options.height;
  fl->fresh   = PETSC_TRUE;
  PetscCallCUDA(GallopKernelOverlaps(FastLoadKernel<PetscScalar, PetscReal, PetscInt>, &fl->overlaps));
  PetscCall(SortColumns(fl, csr, &w, stream));
  PetscCall(Plan(fl, &w, stream, &num, &steps));
  PetscCall(PlanLongRows(fl, csr, &w, &longrows));
  PetscCall(Complete(fl, csr, &w, &longrows, num, steps, maxbytes, stream, &done));
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied from pageable memory is about to go */
  if (done) *built = fl;
  else {
    void *data = fl;

    PetscCall(Destroy(&data));
  }
  PetscCall(PetscFree(steps));
  PetscCall(GallopLongRowsFree(&longrows));
  PetscCall(GallopDeviceRelease(wbytes, wbase));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  FastLoad    *fl = (FastLoad *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (fl->blkNum) {
    const PetscInt warps = (fl->lineNum - 1) / fl->blkNum + 1; /* the mean height */

    RefreshKernel<<<GallopBlocksFor((PetscCount)fl->blkNum * warps * WarpSize, Threads), Threads, 0, stream>>>(*fl, warps, csr->i, csr->j, csr->a);
    GallopCheckLaunch();
  }
  if (fl->pieceNum) {
    LongRowsKernel<<<(unsigned int)fl->pieceNum, Threads, 0, stream>>>(*fl, csr->i, csr->j, csr->a, false);
    GallopCheckLaunch();
  }
  fl->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static FastLoadArrays<PetscScalar, PetscInt> View(const FastLoad *fl)
{
  FastLoadArrays<PetscScalar, PetscInt> view = {};

  view.taskNum   = fl->taskNum;
  view.pieceNum  = fl->pieceNum;
  view.blknz     = fl->blknz;
  view.tasks     = fl->tasks;
  view.blkHeight = fl->blkHeight;
  view.lineRow   = fl->lineRow;
  view.perm      = fl->perm;
  view.longRow   = fl->longRow;
  view.longPtr   = fl->longPtr;
  view.longCol   = fl->longCol;
  view.pieceRow  = fl->pieceRow;
  view.pieceAt   = fl->pieceAt;
  view.csrIdx    = fl->csrIdx;
  view.blkLength = fl->blkLength;
  view.blkClass  = fl->blkClass;
  view.rowIdx    = fl->rowIdx;
  view.value     = fl->value;
  return view;
}

static GallopGrid GridOf(const FastLoad *fl, PetscCount blocks, cudaStream_t stream)
{
  return {blocks, Threads, 1, 0, stream, (bool)(fl->overlaps && !fl->fresh)}; /* new values must have been written */
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  FastLoad                  *fl     = (FastLoad *)data;
  const PetscCount           blocks = fl->pieceNum + ((PetscCount)fl->taskNum + Warps - 1) / Warps;
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (fl->products) {
    int width = 1;

    while (width < WarpSize && 2 * width * (PetscCount)fl->m <= fl->nz) width *= 2;
    MultiplyKernel<<<GallopBlocksFor((PetscCount)fl->taskNum * WarpSize, Threads), Threads, 0, stream>>>(View(fl), v.x, fl->products);
    GallopCheckLaunch();
    RowSumKernel<<<GallopBlocksFor((PetscCount)fl->m * width, Threads), Threads, 0, stream>>>(fl->m, width, fl->rowPtr, fl->products, v);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(GallopBegin(fl->m, &v, stream, fl->overlaps && !fl->fresh));
  PetscCallCUDA(GallopLaunch(FastLoadKernel<PetscScalar, PetscReal, PetscInt>, GridOf(fl, blocks, stream), View(fl), v.alpha, v.x, v.z, (bool)fl->fresh));
  PetscCallCUDA(GallopNotFresh(stream, &fl->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyTranspose(void *data, const GallopProduct *p, PetscBool conjugate)
{
  FastLoad                  *fl     = (FastLoad *)data;
  const PetscCount           blocks = fl->pieceNum + ((PetscCount)fl->taskNum + Warps - 1) / Warps;
  const bool                 alone  = fl->single && !fl->pieceNum; /* each column is one lane's */
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!alone || fl->zeros) PetscCallCUDA(GallopBegin(fl->n, &v, stream, fl->overlaps && !fl->fresh));
  if (blocks) PetscCallCUDA(GallopLaunch(TransposedKernel<PetscScalar, PetscReal, PetscInt>, GridOf(fl, blocks, stream), View(fl), v, (bool)conjugate, alone, (bool)fl->fresh));
  PetscCallCUDA(GallopNotFresh(stream, &fl->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadDevice = {Build, Refresh, Apply, Destroy, ApplyTranspose, NULL};
