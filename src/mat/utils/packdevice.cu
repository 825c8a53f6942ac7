/* Packed entries on the GPU: the arrays that pack.c makes on the host, made there; new values */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_pipeline.h>
#include <gallop/packdeviceimpl.h>

static constexpr int Threads = 128, Half = WarpSize;
static constexpr int Together = 2; /* lines whose values are stored at once */
static_assert(GALLOP_PACK_ROWS == 2 * WarpSize, "a lane has two rows of a slice");

static __device__ __forceinline__ PetscCount WarpOfGrid()
{
  return (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
}

/* ---------------------------------------------------------------- what a slice will take */

/* Numbers that are compared are at least this much below 0: columns of a slice's first row less what they grow by to its last */
static constexpr int Bias = GALLOP_PACK_STRIDES * GALLOP_PACK_ROWS;

/* Over the warp, of numbers from -Bias on */
static __device__ __forceinline__ int WarpMin(int value)
{
  return (int)GallopWarpMin((unsigned int)(value + Bias)) - Bias;
}

static __device__ __forceinline__ int WarpMax(int value)
{
  return (int)GallopWarpMax((unsigned int)(value + Bias)) - Bias;
}

static constexpr int None = PETSC_INT32_MAX - Bias; /* more than any number here */

static __device__ __forceinline__ int RowInSlice(int h)
{
  return (int)(threadIdx.x % WarpSize) + h * Half;
}

/* What the lanes of a warp have asked for is in shared memory, for all of them */
static __device__ __forceinline__ void WaitForCopies()
{
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
}

/* Asks for entries that follow each other */
template <typename T>
static __device__ __forceinline__ void CopyPiece(const T *from, int entries, T *room)
{
  constexpr int AtOnce = 8;
  const int     lane   = threadIdx.x % WarpSize;

  from += lane; /* here, so that what is added below are constants of the instructions */
  room += lane;
#pragma unroll 1
  for (int left = entries - lane; left > 0; left -= AtOnce * WarpSize, from += AtOnce * WarpSize, room += AtOnce * WarpSize) {
#pragma unroll
    for (int u = 0; u < AtOnce; u++)
      if (u * WarpSize < left) __pipeline_memcpy_async(room + u * WarpSize, from + u * WarpSize, sizeof(T));
  }
}

/*
  The next entries of a warp's 64 rows, so many bytes of each, in shared memory: neighbouring lanes read what stands side by side. Lanes that read their own rows would want 64 lines of L1 at once.
*/
template <typename T, int BytesARow>
struct Window {
  static constexpr int Size = BytesARow / (int)sizeof(T), Stride = Size + 1;                       /* odd: the same entries of rows are in different banks */
  static constexpr int Entries = GALLOP_PACK_ROWS * Stride, Bytes = Entries * (int)sizeof(T) + 16; /* and what a row that has none left reads */
  static_assert(GALLOP_PACK_CHUNK % Size == 0, "a chunk of lines begins with entries of its own");
  static_assert(Size % Together == 0, "lines that are dealt with at once are read at once");

  const T *array;
  T       *room;
  PetscInt last;             /* entry of the array */
  PetscInt end[2], shift[2]; /* an entry less where it is in the room */

  __device__ __forceinline__ Window(const T *array, PetscInt num, const PetscInt end[2], unsigned char *room) : array(array), room(reinterpret_cast<T *>(room)), last(num - 1), end{end[0], end[1]} { }

  template <int Each>
  __device__ __forceinline__ void Read(const PetscInt next[2], int left)
  {
    const int lane = threadIdx.x % WarpSize, entry = lane % Each;

#pragma unroll
    for (int h = 0; h < 2; h++) {
      const PetscInt own = next[h] < end[h] ? next[h] : -1;

#pragma unroll 8
      for (int part = 0; part < Each; part++) {
        const int      row   = part * (WarpSize / Each) + lane / Each;
        const PetscInt first = __shfl_sync(0xffffffffu, own, row);

        if (entry < left && first >= 0) __pipeline_memcpy_async(room + (row + h * Half) * Stride + entry, array + first + PetscMin((PetscInt)entry, last - first), sizeof(T));
      }
      shift[h] = next[h] - RowInSlice(h) * Stride;
    }
  }

  /* Before line k: the lane's rows go on at next, and take an entry a line at most. Where it may read, it tells how many entries the longest one has yet. */
  __device__ __forceinline__ int Move(int k, const PetscInt next[2])
  {
    if (k % Size) return 0;
    const int left = WarpMax((int)PetscMax(end[0] - next[0], end[1] - next[1]));

    __syncwarp();
    if (left > Size / 2) Read<Size>(next, left);
    else Read<Size / 2>(next, left);
    WaitForCopies();
    return left;
  }

  __device__ __forceinline__ T At(int h, PetscInt next) const
  {
    return room[(int)(next - shift[h])];
  }
};

using Columns = Window<PetscInt, 64>;

/* The next lines of a piece in shared memory, so many bytes of them: a warp that goes through a row alone waits once for them all */
template <typename T>
struct Lines {
  static constexpr int Bytes = 4096, AtOnce = Bytes / (GALLOP_PACK_ROWS * (int)sizeof(T));
  static_assert(AtOnce % Together == 0, "lines that are dealt with at once are read at once");

  const T *array; /* from the piece's first entry on */
  T       *room;
  int      entries;

  __device__ __forceinline__ Lines(const T *array, int64_t first, int64_t entries, unsigned char *room) : array(array + first), room(reinterpret_cast<T *>(room)), entries((int)entries) { }

  /* Before line k */
  __device__ __forceinline__ void Move(int k)
  {
    const int from = k * GALLOP_PACK_ROWS;

    if (k % AtOnce) return;
    __syncwarp();
    CopyPiece(array + from, min(AtOnce * GALLOP_PACK_ROWS, entries - from), room);
    WaitForCopies();
  }

  __device__ __forceinline__ bool Has(int k, int h) const { return RowInSlice(h) < GallopPackInLine(entries, k); }
  __device__ __forceinline__ T    Take(int k, int h) const { return room[k % AtOnce * GALLOP_PACK_ROWS + RowInSlice(h)]; }
};

static_assert(Lines<PetscInt>::Bytes <= Columns::Bytes, "where slices have columns, pieces have lines of columns, and of values");

/*
  Windows of values, and the GPU blocks that have them. Where rows are long a window is wide, so that fewer sectors are read twice; and as caches have to keep sectors that are read in part, fewer
  warps run at once: a GPU block takes more shared memory than it uses.
*/
template <bool Long>
struct ValuesOfRows {
  using Values                   = Window<PetscScalar, Long ? 128 : 64>;
  static constexpr int RoomBytes = Values::Bytes > Columns::Bytes ? (int)Values::Bytes : (int)Columns::Bytes;
  static constexpr int MinBlocks = Long ? 4 : 8;
};

/* Below, more warps are faster */
static bool HasLongRows(const GallopPack *pack)
{
  return pack->nline > 16 * (PetscCount)pack->nslice;
}

static PetscErrorCode UnusedShared(bool haslong, size_t *bytes)
{
  constexpr int Most = 46 * 1024, Used = Threads / WarpSize * ValuesOfRows<true>::RoomBytes, Reserved = 1024; /* without being asked for; of a GPU block; of each by the system */
  int           device, all;

  PetscFunctionBegin;
  *bytes = 0;
  if (!haslong) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  *bytes = (size_t)PetscMax(0, PetscMin(Most, all / ValuesOfRows<true>::MinBlocks - Reserved) - Used);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A lane's rows of a slice, and what the warp knows of all */
struct Rows {
  int      row[2];
  PetscInt first[2], end[2];
  int      lo, longest, step;
};

static __device__ Rows GetRows(PetscInt m, const PetscInt *__restrict__ i, const GallopPackOrder &order, PetscInt slice, GallopPackPlan *plan)
{
  Rows s;
  int  lo = None, hi = -1, longest = 0, entries = 0;

#pragma unroll
  for (int h = 0; h < 2; h++) {
    PetscInt row = GallopPackRow(&order, m, slice, RowInSlice(h));

    if (row >= 0 && i[row + 1] - i[row] > order.longest) row = -1;
    s.row[h]   = (int)row;
    s.first[h] = row < 0 ? 0 : i[row];
    s.end[h]   = row < 0 ? 0 : i[row + 1];
    if (row >= 0) lo = min(lo, (int)row);
    hi      = max(hi, (int)row);
    longest = max(longest, (int)(s.end[h] - s.first[h]));
    entries += (int)(s.end[h] - s.first[h]);
  }
  s.lo      = WarpMin(lo);
  hi        = WarpMax(hi);
  s.longest = WarpMax(longest);
  if (hi < 0) s.lo = hi = 0;
  const int  row0 = __shfl_sync(0xffffffffu, s.row[0], 0), row1 = __shfl_sync(0xffffffffu, s.row[0], 1);
  const bool even = s.row[0] >= 0 && s.row[1] >= 0 && s.row[0] - row0 == RowInSlice(0) * (row1 - row0) && s.row[1] - row0 == RowInSlice(1) * (row1 - row0);

  plan->entries = GallopGroupSum(entries, WarpSize);
  plan->entries = __shfl_sync(0xffffffffu, (int)plan->entries, 0);
  plan->rows    = __all_sync(0xffffffffu, even) ? GALLOP_PACK_STRIDED : GallopPackClassFor((uint32_t)(hi - s.lo), PETSC_TRUE);
  s.step        = (int)GallopPackStep(&order, plan, row0, row1);
  return s;
}

/* The class of entries, two a lane at most, whose columns grow by step from place to place: the lane has told its own columns, -1 for none */
static __device__ __forceinline__ GallopPackClass ClassOfEntries(int step, const int column[2], PetscInt *base)
{
  int less[2] = {None, -Bias};

#pragma unroll
  for (int h = 0; h < 2; h++) {
    if (column[h] < 0) continue;
    less[0] = min(less[0], column[h] - step * RowInSlice(h));
    less[1] = max(less[1], column[h] - step * RowInSlice(h));
  }
  less[0] = WarpMin(less[0]);
  less[1] = WarpMax(less[1]);
  if (less[0] == less[1]) return GallopPackClassOfEntries(0, 0, less[0], less[1], base);
  const int lo = WarpMin(min(column[0] < 0 ? None : column[0], column[1] < 0 ? None : column[1])), hi = WarpMax(max(column[0], column[1]));

  return GallopPackClassOfEntries(lo, hi, less[0], less[1], base);
}

/* The line before another, and the lane's columns in it, -1 for none */
struct LineBefore {
  GallopPackLine line      = {0, 0};
  int            column[2] = {-1, -1};
};

/* Whether the columns that the lanes have told are all as far from those of the line before, and how far */
static __device__ __forceinline__ bool AreShared(const int column[2], const LineBefore &before, PetscInt *apart)
{
  const int own = column[0] >= 0 ? column[0] - before.column[0] : column[1] - before.column[1], all = __shfl_sync(0xffffffffu, own, __ffs(__ballot_sync(0xffffffffu, column[0] >= 0 || column[1] >= 0)) - 1);
  bool      same = true;

#pragma unroll
  for (int h = 0; h < 2; h++) same = same && (column[h] < 0 || (before.column[h] >= 0 && column[h] - before.column[h] == all));
  same = __all_sync(0xffffffffu, same);
  if (same) *apart = all;
  return same;
}

/* Counts a line, which is the one before to the next */
static __device__ __forceinline__ void CountLine(GallopPackPlan *plan, int step, const int column[2], LineBefore *before)
{
  PetscInt              base;
  const GallopPackClass own    = ClassOfEntries(step, column, &base);
  const bool            shared = own != GALLOP_PACK_STRIDED && AreShared(column, *before, &base);

  *before = {
    shared ? before->line : GallopPackStored(own, 0, 0), {column[0], column[1]}
  };
  GallopPackCountLine(plan, (GallopPackClass)GallopPackClassOf(before->line), (PetscBool)shared);
}

/* The lane's columns in line k of a piece, and what they may grow by */
static __device__ __forceinline__ int ColumnsOfLine(Lines<PetscInt> &columns, int k, int column[2])
{
  columns.Move(k);
#pragma unroll
  for (int h = 0; h < 2; h++) column[h] = columns.Has(k, h) ? (int)columns.Take(k, h) : -1;
  const int column0 = __shfl_sync(0xffffffffu, column[0], 0), column1 = __shfl_sync(0xffffffffu, column[0], 1);

  return (int)GallopPackPieceStep(column0, column1);
}

/* The next diagonal, from where the rows have come to: next[h] of the lane's; None where there is none. on[h]: the row has an entry there. */
static __device__ __forceinline__ int NextDiagonal(const Rows &s, const Columns &columns, const PetscInt next[2], bool on[2])
{
  int own[2];

#pragma unroll
  for (int h = 0; h < 2; h++) own[h] = next[h] < s.end[h] ? (int)columns.At(h, next[h]) - s.step * RowInSlice(h) : None;
  const int diagonal = WarpMin(min(own[0], own[1]));

#pragma unroll
  for (int h = 0; h < 2; h++) on[h] = own[h] == diagonal && diagonal != None;
  return diagonal;
}

static __device__ __forceinline__ bool IsSingle(PetscScalar value)
{
  const PetscReal *part = reinterpret_cast<const PetscReal *>(&value);
  bool             is   = true;

#pragma unroll
  for (int p = 0; p < GALLOP_PACK_PARTS; p++) is = is && GallopPackIsSingle(part[p]);
  return is;
}

/* How the values of so many lines can be stored: aresingle(k) tells of the lane's in line k */
template <typename AreSingle>
static __device__ __forceinline__ GallopPackValues ValuesOf(PetscInt ndict, int lines, AreSingle aresingle)
{
  if (ndict) return GallopPackDictClass(ndict);
  if constexpr (sizeof(PetscReal) == sizeof(float)) return GALLOP_PACK_VALUE;
  else {
    for (int k = 0; k < lines; k++)
      if (!__all_sync(0xffffffffu, aresingle(k))) return GALLOP_PACK_VALUE;
    return GALLOP_PACK_SINGLE;
  }
}

/* Whether columns increase and the slice takes at most so many bytes by diagonals, as *by then tells. *same: these lines are the first entries of all rows, the second ones, and so on. */
static __device__ __forceinline__ bool PlanDiagonals(const Rows &s, Columns columns, const GallopPackPlan &plan, int64_t most, GallopPackPlan *by, bool *same)
{
  PetscInt next[2]   = {s.first[0], s.first[1]};
  int      before[2] = {-1, -1}, width = 0;
  bool     increases = true, on[2];

  for (*same = true;; width++) {
    const int  left = columns.Move(width, next);
    const bool more = NextDiagonal(s, columns, next, on) != None;

    if (!more || width % Columns::Size == 0) { /* more lines never take less */
      *by = GallopPackByDiagonals(&plan, width + (more ? left : 0));
      if (by->width > GALLOP_PACK_WIDEST || GallopPackSliceBytes(by) > most) return false;
    }
    if (!more) break;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      *same = *same && (on[h] || next[h] >= s.end[h]);
      if (!on[h]) continue;
      const int column = (int)columns.At(h, next[h]++);

      increases = increases && column > before[h];
      before[h] = column;
    }
  }
  *same = __all_sync(0xffffffffu, *same);
  return __all_sync(0xffffffffu, increases);
}

/* As pack.c's, by a warp */
static __device__ void PlanSlice(PetscInt m, PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const GallopPackOrder &order, PetscInt slice, unsigned char *room, GallopPackPlan *plan)
{
  const Rows     s       = GetRows(m, i, order, slice, plan);
  PetscInt       next[2] = {s.first[0], s.first[1]};
  LineBefore     before;
  bool           same;
  GallopPackPlan by;
  Columns        columns(j, i[m], s.end, room);

  plan->values = ValuesOf(ndict, s.longest, [=](int k) {
    bool are = true;

#pragma unroll
    for (int h = 0; h < 2; h++) are = are && (k >= s.end[h] - s.first[h] || IsSingle(a[s.first[h] + k]));
    return are;
  });
  plan->width     = s.longest;
  plan->masks     = (PetscBool)(plan->entries < (int64_t)GALLOP_PACK_ROWS * s.longest);
  plan->diagonals = PETSC_FALSE;
  GallopPackNoLines(plan);
  if (s.step) { /* the least that it can take: nothing else is to be looked at then */
    plan->lines[GALLOP_PACK_STRIDED] = plan->width;
    if (PlanDiagonals(s, columns, *plan, GallopPackSliceBytes(plan), &by, &same)) {
      if (!same) *plan = by;
      return;
    }
    plan->lines[GALLOP_PACK_STRIDED] = 0;
  }
  for (int k = 0; k < s.longest; k++) {
    int column[2];

    (void)columns.Move(k, next);
#pragma unroll
    for (int h = 0; h < 2; h++) column[h] = next[h] < s.end[h] ? (int)columns.At(h, next[h]++) : -1;
    CountLine(plan, s.step, column, &before);
  }
  if (s.step && plan->lines[GALLOP_PACK_STRIDED] < plan->width && PlanDiagonals(s, columns, *plan, GallopPackSliceBytes(plan) - 1, &by, &same)) *plan = by;
}

static __device__ void PlanPiece(PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const GallopPackOrder &order, PetscInt piece, unsigned char *room, GallopPackPlan *plan)
{
  const GallopPackPlan own = GallopPackPieceOf(&order, i, piece);
  Lines<PetscInt>      columns(j, own.first, own.entries, room);
  Lines<PetscScalar>   values(a, own.first, own.entries, room);
  LineBefore           before;

  *plan        = own;
  plan->values = ValuesOf(ndict, (int)own.width, [&](int k) {
    values.Move(k);
    return (!values.Has(k, 0) || IsSingle(values.Take(k, 0))) && (!values.Has(k, 1) || IsSingle(values.Take(k, 1)));
  });
  for (int k = 0; k < own.width; k++) {
    int       column[2];
    const int step = ColumnsOfLine(columns, k, column);

    CountLine(plan, step, column, &before);
  }
}

/* Orders of strides 1 to GALLOP_PACK_STRIDES by y, or the given one, and after them pieces; a warp a slice of the sample, or a piece */
__global__ static void __launch_bounds__(Threads) MeasureKernel(PetscInt m, PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, GallopPackOrder order, GallopPackCost *cost)
{
  __shared__ __align__(16) unsigned char room[Threads / WarpSize][Columns::Bytes];
  GallopPackPlan                         plan;

  if (blockIdx.y < GallopPackNumOrders(&order)) {
    order.stride = (PetscInt)blockIdx.y + 1;
    if (WarpOfGrid() >= GallopPackSampleSize(&order, m)) return;
    const PetscInt slice = GallopPackSampled(&order, m, (PetscInt)WarpOfGrid());

    if (slice >= GallopPackNumSlices(&order, m)) return;
    PlanSlice(m, ndict, i, j, a, order, slice, room[threadIdx.x / WarpSize], &plan);
    cost += blockIdx.y;
  } else {
    if (WarpOfGrid() >= order.pieces) return;
    PlanPiece(ndict, i, j, a, order, (PetscInt)WarpOfGrid(), room[threadIdx.x / WarpSize], &plan);
    cost += GALLOP_PACK_STRIDES;
  }
  if (threadIdx.x % WarpSize) return;
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->bytes), (unsigned long long)GallopPackSliceBytes(&plan));
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->entries), (unsigned long long)plan.entries);
  atomicAdd(reinterpret_cast<unsigned long long *>(&cost->saved), (unsigned long long)plan.saved * GALLOP_PACK_UNIT);
}

PetscErrorCode GallopPackMeasure_Device(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, GallopPackCost cost[GALLOP_PACK_COSTS])
{
  const PetscInt  orders = GallopPackNumOrders(order);
  const size_t    bytes  = GALLOP_PACK_COSTS * sizeof(*cost);
  GallopPackOrder by     = *order;
  PetscInt        most   = order->pieces;
  void           *memory;
  cudaStream_t    stream;

  PetscFunctionBegin;
  for (int k = 0; k < GALLOP_PACK_COSTS; k++) cost[k] = {0, 0, 0};
  for (by.stride = 1; by.stride <= orders; by.stride++) most = PetscMax(most, GallopPackSampleSize(&by, csr->m));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS); /* nothing is known then, and nothing packed */
  PetscCall(GallopDeviceZero(memory, bytes));
  MeasureKernel<<<dim3(PetscMax(1u, GallopBlocksFor((PetscCount)most * WarpSize, Threads)), (unsigned int)orders + (order->pieces ? 1 : 0)), Threads, 0, stream>>>(csr->m, pack->ndict, csr->i, csr->j, csr->a, *order, (GallopPackCost *)memory);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(cost, memory, bytes));
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- a dictionary */

static constexpr int                Places = 4 * GALLOP_PACK_DICT; /* of the table of distinct numbers; a number is at the first free one from where its hash says */
static constexpr int                Seen   = 1024;                 /* places for the first numbers that a GPU block met, for which L2 is not asked again */
static constexpr unsigned long long Free   = ~0ull;                /* is one number's bits, too, which are told apart */

struct Distinct {
  unsigned int num, hasfree; /* how many there are, Free among them */
};

/* What is not among the numbers yet */
static __device__ __forceinline__ void Append(unsigned long long bits, GallopPackBits *numbers, Distinct *distinct)
{
  const unsigned int k = atomicAdd(&distinct->num, 1u);

  if (k < GALLOP_PACK_DICT) numbers[k] = (GallopPackBits)bits;
}

/* Puts a number into the table, and tells whether there may be others. L1 is not asked: what it has of the table may be old. */
static __device__ __forceinline__ bool AddDistinct(unsigned long long bits, unsigned long long *table, GallopPackBits *numbers, Distinct *distinct)
{
  if (bits == Free) {
    if (!*(volatile unsigned int *)&distinct->hasfree && !atomicExch(&distinct->hasfree, 1u)) Append(bits, numbers, distinct);
    return true;
  }
  for (unsigned int at = GallopPackHash(bits) % Places;; at = (at + 1) % Places) {
    unsigned long long is = __ldcg(table + at);

    if (is == bits) return true;
    if (*(volatile unsigned int *)&distinct->num > GALLOP_PACK_DICT) return false;
    if (is != Free) continue;
    is = atomicCAS(table + at, Free, bits);
    if (is == Free) Append(bits, numbers, distinct);
    if (is == Free || is == bits) return true;
  }
}

static constexpr int LookThreads = 1024;

/* A GPU block looks at some of many numbers, and where hardly any was met before leaves word that there are too many */
__global__ static void __launch_bounds__(LookThreads) LookKernel(PetscCount n, const PetscReal *__restrict__ a, Distinct *distinct)
{
  constexpr int                 Each = GALLOP_PACK_LOOKS / LookThreads, Room = GALLOP_PACK_LOOKS + GALLOP_PACK_LOOKS / 4;
  __shared__ unsigned long long table[Room];
  __shared__ int                equal, hasfree;
  unsigned long long            bits[Each];

#pragma unroll
  for (int u = 0; u < Each; u++) bits[u] = GallopPackBitsOf(a[GallopPackLook(u * LookThreads + (int)threadIdx.x, n)]);
  for (int k = (int)threadIdx.x; k < Room; k += LookThreads) table[k] = Free;
  if (threadIdx.x == 0) equal = hasfree = 0;
  __syncthreads();
#pragma unroll
  for (int u = 0; u < Each; u++) {
    bool met = bits[u] == Free && atomicExch(&hasfree, 1);

    for (unsigned int at = GallopPackHash(bits[u]) % Room; bits[u] != Free; at = (at + 1) % Room) {
      const unsigned long long is = atomicCAS(table + at, Free, bits[u]);

      met = is == bits[u];
      if (met || is == Free) break;
    }
    if (met) atomicAdd(&equal, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0 && equal < GALLOP_PACK_LOOKS_EQUAL) distinct->num = GALLOP_PACK_DICT + 1;
}

/* All parts of all values, until there are too many */
__global__ static void __launch_bounds__(Threads) DistinctKernel(PetscCount n, const PetscReal *__restrict__ a, unsigned long long *table, GallopPackBits *numbers, Distinct *distinct)
{
  constexpr int                 AtOnce = 4;
  const PetscCount              step = (PetscCount)gridDim.x * Threads, first = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  __shared__ unsigned long long seen[Seen];
  unsigned long long            bits[AtOnce];
  bool                          more = true;

  if (__syncthreads_or(*(volatile unsigned int *)&distinct->num > GALLOP_PACK_DICT)) return;
  for (int k = threadIdx.x; k < Seen; k += Threads) seen[k] = Free;
  __syncthreads();
  for (PetscCount k = first; k - first < AtOnce * step; k += step) {
    bits[0] = GallopPackBitsOf(a[PetscMin(k, n - 1)]);
    /* a lane for all that have the number: where there are few, all of the grid would wait for one place */
    const bool mine = __ffs(__match_any_sync(0xffffffffu, bits[0])) - 1 == threadIdx.x % WarpSize;

    more = more && (!mine || AddDistinct(bits[0], table, numbers, distinct));
    if (more && mine) atomicExch(seen + GallopPackHash(bits[0]) % Seen, bits[0]);
  }
  __syncthreads();
  for (PetscCount k = first + AtOnce * step; k < n && more; k += AtOnce * step) {
#pragma unroll
    for (int u = 0; u < AtOnce; u++) bits[u] = GallopPackBitsOf(a[PetscMin(k + u * step, n - 1)]);
#pragma unroll
    for (int u = 0; u < AtOnce; u++)
      if (bits[u] == Free || seen[GallopPackHash(bits[u]) % Seen] != bits[u]) more = more && AddDistinct(bits[u], table, numbers, distinct);
  }
}

typedef struct {
  unsigned long long *table;
  GallopPackBits     *numbers;
  Distinct           *distinct;
  char               *cub;
  size_t              cubbytes;
} DistinctWorkspace;

static size_t CarveDistinct(DistinctWorkspace *w, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->table, Places);
  carver.Take(w->numbers, GALLOP_PACK_DICT);
  carver.Take(w->distinct, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* Numbers in the order of their bits; how many bytes that takes, where cub is NULL */
static PetscErrorCode SortNumbers(PetscInt num, const GallopPackBits *numbers, GallopPackBits *sorted, char *cub, size_t *cubbytes)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceRadixSort::SortKeys(cub, *cubbytes, numbers, sorted, num, 0, 8 * (int)sizeof(GallopPackBits), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *dict stays NULL where there are too many numbers, or no room for them */
static PetscErrorCode FindDistinct(const GallopCSR *csr, PetscReal **dict, PetscInt *ndict)
{
  const PetscCount  n = csr->nz * GALLOP_PACK_PARTS;
  DistinctWorkspace w = {};
  Distinct          distinct;
  void             *memory, *kept = NULL;
  size_t            bytes;
  int               device, processors;
  cudaStream_t      stream;

  PetscFunctionBegin;
  *dict  = NULL;
  *ndict = 0;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(SortNumbers(GALLOP_PACK_DICT, NULL, NULL, NULL, &w.cubbytes));
  bytes = CarveDistinct(&w, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveDistinct(&w, memory);
  PetscCallCUDA(cudaMemsetAsync(w.table, 0xff, Places * sizeof(*w.table), stream));
  PetscCall(GallopDeviceZero(w.distinct, sizeof(*w.distinct)));
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  if (n >= GALLOP_PACK_LOOKS_FROM) {
    LookKernel<<<1, LookThreads, 0, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), w.distinct);
    GallopCheckLaunch();
  }
  DistinctKernel<<<PetscMin(GallopBlocksFor(n, Threads), 8u * (unsigned int)processors), Threads, 0, stream>>>(n, reinterpret_cast<const PetscReal *>(csr->a), w.table, w.numbers, w.distinct);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&distinct, w.distinct, sizeof(distinct)));
  if (GallopPackDictPays((PetscCount)distinct.num, csr->nz)) PetscCall(GallopDeviceMalloc(distinct.num * sizeof(PetscReal), &kept));
  if (kept) {
    *ndict = (PetscInt)distinct.num;
    *dict  = (PetscReal *)kept;
    PetscCall(SortNumbers(*ndict, w.numbers, (GallopPackBits *)kept, w.cub, &w.cubbytes));
  }
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackBegin_Device(const GallopCSR *csr, GallopPack **pack)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_CUDA;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  PetscCall(FindDistinct(csr, &(*pack)->dict, &(*pack)->ndict));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- storing */

static constexpr int Figures = GALLOP_PACK_CLASSES + GALLOP_PACK_VALUES + 4; /* lines and slots of GallopPackFigures, strided lines of pieces, entries, places of pieces, shared lines */

__global__ static void __launch_bounds__(Threads) PlanKernel(PetscInt m, PetscInt ndict, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, GallopPackOrder order, PetscInt nslice, PetscInt npiece, GallopPackPlan *__restrict__ plans, GallopPackPlaces *__restrict__ places, unsigned long long *figures)
{
  __shared__ __align__(16) unsigned char room[Threads / WarpSize][Columns::Bytes];
  __shared__ unsigned int                sums[Figures]; /* of the GPU block's slices: all of the grid would wait for each other's */
  const PetscCount                       slice = WarpOfGrid();
  const bool                             first = threadIdx.x % WarpSize == 0;
  GallopPackPlan                         plan;

  if (threadIdx.x < Figures) sums[threadIdx.x] = 0;
  __syncthreads();
  if (slice < nslice - npiece) PlanSlice(m, ndict, i, j, a, order, (PetscInt)slice, room[threadIdx.x / WarpSize], &plan);
  else if (slice < nslice) PlanPiece(ndict, i, j, a, order, (PetscInt)slice - (nslice - npiece), room[threadIdx.x / WarpSize], &plan);
  if (first && slice == nslice) places[slice] = {0, 0, 0}; /* whose place gets the totals */
  if (first && slice < nslice) {
    const unsigned int slots = GALLOP_PACK_ROWS * (unsigned int)plan.width;

    plans[slice]  = plan;
    places[slice] = GallopPackPlacesOf(&plan);
#pragma unroll
    for (int k = 0; k < GALLOP_PACK_CLASSES; k++) atomicAdd(sums + k, (unsigned int)plan.lines[k]);
    atomicAdd(sums + GALLOP_PACK_CLASSES + plan.values, slots);
    atomicAdd(sums + Figures - 3, (unsigned int)plan.entries);
    if (slice >= nslice - npiece) {
      atomicAdd(sums + Figures - 4, (unsigned int)plan.lines[GALLOP_PACK_STRIDED]);
      atomicAdd(sums + Figures - 2, slots);
    }
    atomicAdd(sums + Figures - 1, (unsigned int)plan.shared);
  }
  __syncthreads();
  if (threadIdx.x < Figures && sums[threadIdx.x]) atomicAdd(figures + threadIdx.x, (unsigned long long)sums[threadIdx.x]);
}

/* Two neighbouring places for those of a lane */
template <typename T>
static __device__ __forceinline__ void StorePair(void *at, T first, T second)
{
  static_cast<GallopPackPair<T> *>(at)[threadIdx.x % WarpSize] = {first, second};
}

static __device__ __forceinline__ void StoreOffsets(GallopPackClass kind, unsigned char *at, uint32_t first, uint32_t second)
{
  if (kind == GALLOP_PACK_8) StorePair<uint8_t>(at, (uint8_t)first, (uint8_t)second);
  else if (kind == GALLOP_PACK_16) StorePair<uint16_t>(at, (uint16_t)first, (uint16_t)second);
  else if (kind == GALLOP_PACK_32) StorePair<uint32_t>(at, first, second);
}

/* Both values of a lane in a line, 0 where there is none, whatever was read; false where one cannot be stored so */
template <GallopPackValues Kind>
static __device__ __forceinline__ bool StoreAs(unsigned char *line, const PetscScalar value[2], const bool on[2], const PetscReal *__restrict__ dict, PetscInt ndict)
{
  using Part = typename GallopPackStoredValue<Kind>::Part;
  GallopPackParts<Part> to[2];
  bool                  fits = true;

#pragma unroll
  for (int h = 0; h < 2; h++) {
    const PetscReal *from = reinterpret_cast<const PetscReal *>(&value[h]);

#pragma unroll
    for (int p = 0; p < GALLOP_PACK_PARTS; p++) {
      if constexpr (Kind == GALLOP_PACK_DICT8 || Kind == GALLOP_PACK_DICT16) {
        const PetscInt at = on[h] ? GallopPackFind(dict, ndict, from[p]) : 0;

        fits          = fits && at < ndict;
        to[h].part[p] = (Part)at;
      } else {
        if constexpr (Kind == GALLOP_PACK_SINGLE) fits = fits && (!on[h] || GallopPackIsSingle(from[p]));
        to[h].part[p] = on[h] ? (Part)from[p] : Part(0);
      }
    }
  }
  StorePair<GallopPackParts<Part>>(line, to[0], to[1]);
  return fits;
}

static __device__ __forceinline__ unsigned char *PlaceOf(unsigned char *array, int64_t unit)
{
  return array + unit * GALLOP_PACK_UNIT;
}

static __device__ __forceinline__ void StoreMasks(int bytes, unsigned char *at, const uint32_t mask[2])
{
  StoreOffsets(bytes == 1 ? GALLOP_PACK_8 : bytes == 2 ? GALLOP_PACK_16 : GALLOP_PACK_32, at, mask[0], mask[1]);
}

/* A line and its columns, which the lane has told, -1 for none. Returns the units of stream that they took. */
static __device__ __forceinline__ uint32_t StoreColumns(const GallopPack &pack, GallopPackClass kind, PetscInt base, int step, const int column[2], LineBefore *before, int64_t line, int64_t stream)
{
  const bool shared = kind != GALLOP_PACK_STRIDED && AreShared(column, *before, &base);

  if (shared) before->line.base += (int32_t)base;
  else before->line = kind == GALLOP_PACK_STRIDED ? GallopPackStrided((int32_t)base, step) : GallopPackStored(kind, (int32_t)base, (uint32_t)stream);
  *before = {
    before->line, {column[0], column[1]}
  };
  if (threadIdx.x % WarpSize == 0) pack.line[line] = before->line;
  if (shared) return 0;
  StoreOffsets(kind, PlaceOf(pack.stream, stream), column[0] >= 0 ? (uint32_t)(column[0] - (int)base) : 0, column[1] >= 0 ? (uint32_t)(column[1] - (int)base) : 0);
  return GallopPackOffsetUnits(kind);
}

/* Of the lines of a chunk, whose masks say where the lane's rows have entries; next[h] goes from the first to beyond the last of a row */
template <typename Values>
struct ChunkOf {
  Values   &values;
  uint32_t  mask[2];
  PetscInt *next;

  __device__ __forceinline__ void Move(int k) { (void)values.Move(k, next); }
  __device__ __forceinline__ bool Has(int k, int h) const { return mask[h] >> k & 1; }

  /* Read where there is none, too, so that all reads are under way together */
  __device__ __forceinline__ PetscScalar Take(int k, int h)
  {
    const PetscScalar value = values.At(h, next[h]);

    next[h] += Has(k, h);
    return value;
  }
};

template <GallopPackValues Kind, typename From>
static __device__ __forceinline__ bool StoreLinesAs(const GallopPack &pack, unsigned char *line, int lines, From &from)
{
  bool fits = true;

#pragma unroll 1
  for (int k = 0; k < lines; k += Together, line += Together * GallopPackBytesALine<Kind>()) {
    PetscScalar value[Together][2];
    bool        on[Together][2];

    from.Move(k);
#pragma unroll
    for (int u = 0; u < Together; u++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        on[u][h]    = from.Has(k + u, h);
        value[u][h] = from.Take(k + u, h);
      }
    }
#pragma unroll
    for (int u = 0; u < Together; u++)
      if (k + u < lines) fits = StoreAs<Kind>(line + u * GallopPackBytesALine<Kind>(), value[u], on[u], pack.dict, pack.ndict) && fits;
  }
  return fits;
}

/* The values of so many lines, from a unit on; false where one cannot be stored as they are */
template <typename From>
static __device__ __forceinline__ bool StoreLines(const GallopPack &pack, GallopPackValues kind, int64_t unit, int lines, From from)
{
  unsigned char *line = PlaceOf(pack.value, unit);

  if (kind == GALLOP_PACK_VALUE) return StoreLinesAs<GALLOP_PACK_VALUE>(pack, line, lines, from);
  if (kind == GALLOP_PACK_SINGLE) return StoreLinesAs<GALLOP_PACK_SINGLE>(pack, line, lines, from);
  return kind == GALLOP_PACK_DICT8 ? StoreLinesAs<GALLOP_PACK_DICT8>(pack, line, lines, from) : StoreLinesAs<GALLOP_PACK_DICT16>(pack, line, lines, from);
}

static __device__ void StorePiece(const GallopPack &pack, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const GallopPackPlan &plan, const GallopPackPlaces &at, unsigned char *room, GallopPackSlice *slice)
{
  int64_t         stream = at.stream;
  Lines<PetscInt> columns(j, plan.first, plan.entries, room);
  LineBefore      before;

  if (threadIdx.x % WarpSize == 0) *slice = GallopPackPieceSlice(&plan, &at);
  for (int k = 0; k < plan.width; k++) {
    int                   column[2];
    PetscInt              base;
    const int             step = ColumnsOfLine(columns, k, column);
    const GallopPackClass kind = ClassOfEntries(step, column, &base);

    stream += StoreColumns(pack, kind, base, step, column, &before, at.line + k, stream);
  }
  (void)StoreLines(pack, plan.values, at.value, (int)plan.width, Lines<PetscScalar>(a, plan.first, plan.entries, room));
}

/* A warp stores a slice as it was planned, and reads its rows once more */
template <bool Long>
__global__ static void __launch_bounds__(Threads, ValuesOfRows<Long>::MinBlocks) StoreKernel(const GallopPack pack, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, GallopPackOrder order, const GallopPackPlan *__restrict__ plans, const GallopPackPlaces *__restrict__ places)
{
  __shared__ __align__(16) unsigned char rooms[Threads / WarpSize][ValuesOfRows<Long>::RoomBytes];
  unsigned char                         *room   = rooms[threadIdx.x / WarpSize];
  const PetscCount                       number = WarpOfGrid();

  if (number >= pack.nslice) return;
  GallopPackPlan         plan = plans[number];
  const GallopPackPlaces at   = places[number];

  if (number >= pack.nslice - pack.npiece) {
    StorePiece(pack, j, a, plan, at, room, &pack.slice[number]);
    return;
  }
  const Rows                          s       = GetRows(pack.m, i, order, (PetscInt)number, &plan);
  const int                           bytes   = GallopPackMaskBytes(plan.width);
  int64_t                             stream  = at.stream, masks;
  PetscInt                            next[2] = {s.first[0], s.first[1]}, first[2] = {s.first[0], s.first[1]};
  GallopPackSlice                     slice = {};
  LineBefore                          before;
  const int                           row0 = __shfl_sync(0xffffffffu, s.row[0], 0), row1 = __shfl_sync(0xffffffffu, s.row[0], 1);
  Columns                             columns(j, i[pack.m], s.end, room);
  typename ValuesOfRows<Long>::Values values(a, i[pack.m], s.end, room);

  slice.line   = at.line;
  slice.value  = (uint32_t)at.value;
  slice.width  = (uint16_t)plan.width;
  slice.values = (uint8_t)plan.values;
  slice.at     = plan.lines[GALLOP_PACK_STRIDED] == plan.width ? (uint32_t)s.step : 0;
  slice.rows   = plan.rows == GALLOP_PACK_STRIDED ? GallopPackStrided(row0, row1 - row0) : GallopPackStored(plan.rows, s.lo, (uint32_t)stream);
  StoreOffsets(plan.rows, PlaceOf(pack.stream, stream), s.row[0] < 0 ? GALLOP_PACK_NONE : (uint32_t)(s.row[0] - s.lo), s.row[1] < 0 ? GALLOP_PACK_NONE : (uint32_t)(s.row[1] - s.lo));
  stream += GallopPackOffsetUnits(plan.rows);
  slice.mask = plan.masks ? (uint32_t)stream : GALLOP_PACK_NONE;
  masks      = stream;
  stream += plan.masks ? GallopPackMaskUnits(plan.width) : 0;
  if (threadIdx.x % WarpSize == 0) pack.slice[number] = slice;
  for (int chunk = 0; chunk * GALLOP_PACK_CHUNK < plan.width; chunk++) {
    const int     lines   = min(GALLOP_PACK_CHUNK, (int)plan.width - chunk * GALLOP_PACK_CHUNK);
    const int64_t line    = (int64_t)chunk * GALLOP_PACK_CHUNK;
    uint32_t      mask[2] = {0, 0};

    for (int k = 0; k < lines; k++) {
      GallopPackClass kind  = GALLOP_PACK_STRIDED;
      bool            on[2] = {next[0] < s.end[0], next[1] < s.end[1]};
      int             column[2];
      PetscInt        base;

      (void)columns.Move(k, next);
      if (plan.diagonals) base = NextDiagonal(s, columns, next, on);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        column[h] = on[h] ? (int)columns.At(h, next[h]) : -1;
        next[h] += on[h];
        mask[h] |= (uint32_t)on[h] << k;
      }
      if (!plan.diagonals) kind = ClassOfEntries(s.step, column, &base);
      stream += StoreColumns(pack, kind, base, s.step, column, &before, at.line + line + k, stream);
    }
    if (plan.masks) StoreMasks(bytes, PlaceOf(pack.stream, masks + (int64_t)chunk * bytes), mask);
    (void)StoreLines(pack, plan.values, at.value + line * GallopPackValueUnits(plan.values), lines,
                     ChunkOf<decltype(values)>{
                       values, {mask[0], mask[1]},
                        first
    });
  }
}

typedef struct {
  GallopPackPlan     *plans;  /* [nslice] */
  GallopPackPlaces   *places; /* [nslice + 1] */
  unsigned long long *figures;
  char               *cub;
  size_t              cubbytes;
} Workspace;

static size_t Carve(Workspace *w, PetscInt nslice, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->plans, nslice);
  carver.Take(w->places, (PetscCount)nslice + 1);
  carver.Take(w->figures, Figures);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

static size_t CarvePack(GallopPack *pack, void *base)
{
  GallopCarver carver(base);

  carver.Take(pack->slice, pack->nslice);
  carver.Take(pack->line, pack->nline);
  carver.Take(pack->stream, pack->nstream * GALLOP_PACK_UNIT);
  carver.Take(pack->value, pack->nvalue * GALLOP_PACK_UNIT);
  return carver.Bytes();
}

struct PlacesAdd {
  __host__ __device__ GallopPackPlaces operator()(const GallopPackPlaces &a, const GallopPackPlaces &b) const { return {a.line + b.line, a.stream + b.stream, a.value + b.value}; }
};

PetscErrorCode GallopPackFinish_Device(GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *order, PetscCount maxbytes, PetscBool *done)
{
  Workspace          w = {};
  GallopPackPlaces   all;
  unsigned long long figures[Figures];
  void              *memory, *kept = NULL;
  size_t             bytes;
  cudaStream_t       stream;

  PetscFunctionBegin;
  *done        = PETSC_FALSE;
  pack->stride = order->perm ? 0 : order->stride;
  pack->npiece = order->pieces;
  PetscCallCUDA(GallopKernelOverlaps(PlanKernel, &pack->overlaps));
  pack->nslice = GallopPackNumSlices(order, csr->m) + pack->npiece;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, w.cubbytes, w.places, w.places, PlacesAdd(), GallopPackPlaces{0, 0, 0}, (PetscCount)pack->nslice + 1, stream));
  bytes = Carve(&w, pack->nslice, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, pack->nslice, memory);
  PetscCall(GallopDeviceZero(w.figures, sizeof(figures)));
  PlanKernel<<<GallopBlocksFor(((PetscCount)pack->nslice + 1) * WarpSize, Threads), Threads, 0, stream>>>(csr->m, pack->ndict, csr->i, csr->j, csr->a, *order, pack->nslice, pack->npiece, w.plans, w.places, w.figures);
  GallopCheckLaunch();
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(w.cub, w.cubbytes, w.places, w.places, PlacesAdd(), GallopPackPlaces{0, 0, 0}, (PetscCount)pack->nslice + 1, stream));
  PetscCall(GallopDeviceCopyOut(figures, w.figures, sizeof(figures)));
  PetscCall(GallopDeviceCopyOut(&all, w.places + pack->nslice, sizeof(all)));
  for (int k = 0; k < GALLOP_PACK_CLASSES; k++) pack->figures.lines[k] = (PetscCount)figures[k];
  for (int k = 0; k < GALLOP_PACK_VALUES; k++) pack->figures.slots[k] = (PetscCount)figures[GALLOP_PACK_CLASSES + k];
  pack->figures.strided = (PetscCount)figures[Figures - 4];
  pack->nz              = (PetscCount)figures[Figures - 3];
  pack->nlong           = (PetscCount)figures[Figures - 2];
  pack->figures.shared  = (PetscCount)figures[Figures - 1];
  pack->nline           = (PetscCount)all.line;
  pack->nstream         = (PetscCount)all.stream;
  pack->nvalue          = (PetscCount)all.value;
  pack->bytes           = GallopPackBytes(pack);
  if (GallopPackPlacesFit(&all) && (!maxbytes || pack->bytes <= (size_t)maxbytes)) PetscCall(GallopDeviceMalloc(CarvePack(pack, NULL), &kept));
  if (kept) {
    const bool haslong = HasLongRows(pack);
    size_t     unused;
    const auto kernel = haslong ? StoreKernel<true> : StoreKernel<false>;

    (void)CarvePack(pack, kept);
    PetscCall(UnusedShared(haslong, &unused));
    kernel<<<GallopBlocksFor((PetscCount)pack->nslice * WarpSize, Threads), Threads, unused, stream>>>(*pack, csr->i, csr->j, csr->a, *order, w.plans, w.places);
    GallopCheckLaunch();
    *done = PETSC_TRUE;
  }
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackFree_Device(GallopPack *pack)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(pack->slice)); /* where there are slices this waits for products; a dictionary that was exchanged goes in the order of the stream */
  PetscCall(GallopDeviceRelease((size_t)pack->ndict * sizeof(PetscReal), pack->dict));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One word of it is enough: all warps write to the same place */
static __device__ __forceinline__ void Report(bool fits, int *unfit)
{
  if (unfit && !__all_sync(0xffffffffu, fits) && threadIdx.x % WarpSize == 0 && !*(volatile int *)unfit) *(volatile int *)unfit = 1;
}

/* So many warps a piece, which has many lines, and they are all the parallelism that long rows have */
static unsigned int WarpsAPiece(const GallopPack *pack)
{
  constexpr PetscCount Each = 8 * GALLOP_PACK_ROWS; /* entries for a warp */

  return pack->npiece ? (unsigned int)((pack->nlong + Each * pack->npiece - 1) / (Each * pack->npiece)) : 1;
}

/* A warp's slice, or the part of one that is a piece */
struct Work {
  PetscInt     number;
  unsigned int part; /* of a piece */
};

static __device__ __forceinline__ Work WorkOf(const GallopPack &pack, unsigned int parts)
{
  const PetscCount warp = WarpOfGrid(), beyond = warp - (pack.nslice - pack.npiece); /* the slices of short rows */

  if (beyond < 0) return {(PetscInt)warp, 0};
  return {PetscMin(pack.nslice - pack.npiece + (PetscInt)((unsigned int)beyond / parts), pack.nslice - 1), (unsigned int)beyond % parts}; /* the last warps do what others do */
}

static unsigned int GridOfWork(const GallopPack *pack, unsigned int parts)
{
  return GallopBlocksFor((pack->nslice + (PetscCount)(parts - 1) * pack->npiece) * WarpSize, Threads);
}

/* Lines of a piece, and their entries: none where there are no more */
struct Part {
  int     line, lines, entries;
  int64_t first;
};

static __device__ __forceinline__ Part PartOf(const GallopPackSlice &slice, const PetscInt *__restrict__ i, unsigned int part, unsigned int parts)
{
  const int each = (slice.width + (int)parts - 1) / (int)parts, line = (int)part * each, lines = min(each, slice.width - line);

  return {line, lines, lines * GALLOP_PACK_ROWS - (line + lines == slice.width ? GALLOP_PACK_ROWS - slice.last : 0), (int64_t)i[slice.rows.base] + ((int64_t)slice.at + line) * GALLOP_PACK_ROWS};
}

/* The lane's rows of a slice, as first entries and the ends. What they are is guessed before the slice is known: where rows come by strides they are these, but those that are in pieces. */
struct RowsOf {
  PetscInt guess[2], first[2], end[2];

  __device__ __forceinline__ RowsOf(const GallopPack &pack, PetscInt number, const PetscInt *__restrict__ i)
  {
    const GallopPackOrder order = {NULL, 0, pack.stride};
    const PetscInt        begin = pack.stride ? GallopPackRow(&order, pack.m, number, 0) : -1;

#pragma unroll
    for (int h = 0; h < 2; h++) {
      guess[h] = begin + pack.stride * RowInSlice(h);
      if (begin < 0 || guess[h] >= pack.m) guess[h] = -1;
      Load(i, h);
    }
  }

  __device__ __forceinline__ void Set(const GallopPack &pack, const GallopPackSlice &slice, const PetscInt *__restrict__ i)
  {
    const GallopPackPair<int> rows   = GallopPackRows(slice.rows, pack.stream, threadIdx.x % WarpSize);
    const int                 row[2] = {rows.first, rows.second};

#pragma unroll
    for (int h = 0; h < 2; h++) {
      if (row[h] == guess[h]) continue;
      guess[h] = row[h];
      Load(i, h);
    }
  }

private:
  __device__ __forceinline__ void Load(const PetscInt *__restrict__ i, int h)
  {
    first[h] = guess[h] < 0 ? 0 : i[guess[h]];
    end[h]   = guess[h] < 0 ? 0 : i[guess[h] + 1];
  }
};

/* New values: the entries of a row are where its bits are, in order */
template <bool Long>
__global__ static void __launch_bounds__(Threads, ValuesOfRows<Long>::MinBlocks) ValuesKernel(const GallopPack pack, unsigned int parts, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a, int *unfit)
{
  __shared__ __align__(16) unsigned char rooms[Threads / WarpSize][ValuesOfRows<Long>::RoomBytes];
  unsigned char                         *room  = rooms[threadIdx.x / WarpSize];
  const Work                             work  = WorkOf(pack, parts);
  const GallopPackSlice                  slice = GallopPackLoadSlice(pack.slice + work.number);
  const GallopPackValues                 kind  = (GallopPackValues)slice.values;
  bool                                   fits  = true;

  if (__any_sync(0xffffffffu, unfit && *(volatile int *)unfit)) return; /* another dictionary comes, or another pack */
  if (slice.last) {
    const Part part = PartOf(slice, i, work.part, parts);

    if (part.lines > 0) fits = StoreLines(pack, kind, slice.value + (int64_t)part.line * GallopPackValueUnits(kind), part.lines, Lines<PetscScalar>(a, part.first, part.entries, room));
    Report(fits, unfit);
    return;
  }
  RowsOf rows(pack, work.number, i);

  rows.Set(pack, slice, i);
  typename ValuesOfRows<Long>::Values values(a, i[pack.m], rows.end, room);

  for (int chunk = 0; chunk * GALLOP_PACK_CHUNK < slice.width; chunk++) {
    const int                      lines = min(GALLOP_PACK_CHUNK, slice.width - chunk * GALLOP_PACK_CHUNK);
    const GallopPackPair<uint32_t> mask  = GallopPackMasksOf(slice, GallopPackLoadMasks(slice, pack.stream, chunk, threadIdx.x % WarpSize));
    const uint32_t                 all   = GallopPackAllLines(lines);

    fits = StoreLines(pack, kind, slice.value + (int64_t)chunk * GALLOP_PACK_CHUNK * GallopPackValueUnits(kind), lines,
                      ChunkOf<decltype(values)>{
                        values, {mask.first & all, mask.second & all},
                         rows.first
    }) &&
           fits;
  }
  Report(fits, unfit);
}

static PetscErrorCode LaunchValues(const GallopPack *pack, const GallopCSR *csr, int *unfit)
{
  const bool         haslong = HasLongRows(pack);
  const auto         kernel  = haslong ? ValuesKernel<true> : ValuesKernel<false>;
  const unsigned int parts   = WarpsAPiece(pack);
  size_t             unused;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(UnusedShared(haslong, &unused));
  kernel<<<GridOfWork(pack, parts), Threads, unused, stream>>>(*pack, parts, csr->i, csr->a, unfit);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopPackRefresh_Device - fits: NULL where the values are known to */
PetscErrorCode GallopPackRefresh_Device(GallopPack *pack, const GallopCSR *csr, PetscBool *fits)
{
  const bool asks   = fits && pack->figures.slots[GALLOP_PACK_VALUE] < pack->nline * GALLOP_PACK_ROWS; /* values that are stored as they are fit */
  int        unfit  = 0;
  void      *memory = NULL;

  PetscFunctionBegin;
  if (asks) {
    *fits = PETSC_FALSE;
    PetscCall(GallopDeviceMalloc(sizeof(unfit), &memory));
    if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GallopDeviceZero(memory, sizeof(unfit)));
  }
  PetscCall(LaunchValues(pack, csr, (int *)memory));
  if (asks) {
    PetscCall(GallopDeviceCopyOut(&unfit, memory, sizeof(unfit)));
    PetscCall(GallopDeviceRelease(sizeof(unfit), memory));
  }
  if (fits) *fits = (PetscBool)!unfit;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- other numbers of a dictionary */

static constexpr int Noted      = 256;                           /* numbers that a byte tells apart */
static constexpr int NoteBlocks = 8;                             /* GPU blocks a multiprocessor; more leave too few registers */
static constexpr int NotesOnce  = 64 / (int)sizeof(PetscScalar); /* entries that a lane compares at once */
static constexpr int AsksOnce   = 8;                             /* lines whose codes it asks for at once */
static constexpr int NoteBytes  = 82 * GALLOP_PACK_ROWS;         /* of words of entries that a warp has in shared memory */

/* Keeps in a register what the compiler would compute anew wherever it is used under a condition */
template <typename T>
static __device__ __forceinline__ T Keep(T value)
{
  if constexpr (sizeof(T) == 8) asm volatile("mov.b64 %0, %0;" : "+l"(value));
  else asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

/* An array in shared memory by its address there, for the same reason; of 2, 4 or 8 bytes */
template <typename T>
class Shared {
public:
  using Word = cuda::std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;

  explicit __device__ __forceinline__ Shared(const T *array) : at_(Keep((unsigned int)__cvta_generic_to_shared(array))) { }

  __device__ __forceinline__ unsigned int Address(int k) const { return at_ + (unsigned int)k * (unsigned int)sizeof(T); }

  __device__ __forceinline__ T operator[](int k) const
  {
    Word word;

    if constexpr (sizeof(T) == 8) asm volatile("ld.shared.b64 %0, [%1];" : "=l"(word) : "r"(Address(k)) : "memory");
    else if constexpr (sizeof(T) == 4) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(Address(k)) : "memory");
    else asm volatile("ld.shared.u16 %0, [%1];" : "=r"(word) : "r"(Address(k)) : "memory");
    return (T)word;
  }

  static __device__ __forceinline__ void Set(unsigned int address, Word value)
  {
    if constexpr (sizeof(T) == 8) asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
    else if constexpr (sizeof(T) == 4) asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
    else asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "r"(value) : "memory");
  }

private:
  unsigned int at_;
};

/*
  What the numbers of the dictionary have become, the complements of their bits: 0 where that is not known yet. They are compared with entries of a lane, which a From tells: a[Place(u)] is one, and
  CodeOf(u, p) the code of a part of it. Where there are fewer the last one comes several times.
*/
template <GallopPackValues Kind>
struct Notes {
  unsigned long long        *numbers; /* [ndict] */
  unsigned long long        *noted;   /* [Noted] in shared memory, as a GPU block knows them where there are no more */
  Shared<unsigned long long> block;   /* the same */

  /* Numbers of a byte are noted by the GPU block: neither does L1 have old ones of them, nor do all warps of the grid exchange the same */
  __device__ __forceinline__ unsigned long long Known(int code) const
  {
    if constexpr (Kind == GALLOP_PACK_DICT8) return block[code];
    else return __ldca(numbers + code);
  }

  /* What the number was before, or now is */
  __device__ __forceinline__ unsigned long long Exchange(int code, unsigned long long bits) const
  {
    unsigned long long is = 0;

    if constexpr (Kind == GALLOP_PACK_DICT8) {
      is = atomicCAS(noted + code, 0, bits);
      if (!is) is = __ldcg(numbers + code);
    }
    if (!is) is = atomicCAS(numbers + code, 0, bits);
    return is ? is : bits;
  }

  /* L1 may not have what is known since; what is not known a lane exchanges for all that have the number */
  __device__ __forceinline__ bool Note(int code, unsigned long long bits) const
  {
    unsigned long long is = Kind == GALLOP_PACK_DICT8 ? Known(code) : __ldcg(numbers + code);

    if (!is) {
      const unsigned int same = __match_any_sync(__activemask(), code);
      const int          one  = __ffs(same) - 1;

      if (one == threadIdx.x % WarpSize) is = Exchange(code, bits);
      is = __shfl_sync(same, is, one);
    }
    return is == bits && bits;
  }

  static __device__ __forceinline__ unsigned long long BitsOf(const PetscScalar &value, int part) { return GallopPackBitsOf(reinterpret_cast<const PetscReal *>(&value)[part]); }

  /* False where a number has become two */
  template <typename From>
  __device__ __forceinline__ bool Are(const From &from, const PetscScalar value[NotesOnce]) const
  {
    unsigned int equal = ~0u, most = 0;
    bool         fits = true;

#pragma unroll
    for (int u = 0; u < NotesOnce; u++) {
#pragma unroll
      for (int p = 0; p < GALLOP_PACK_PARTS; p++) {
        const unsigned long long is = BitsOf(value[u], p), was = Known(from.CodeOf(u, p));

        equal &= (unsigned int)is ^ (unsigned int)was;
        equal &= (unsigned int)(is >> 32) ^ (unsigned int)(was >> 32);
        most = max(most, (unsigned int)(is >> 32));
      }
    }
    if (__all_sync(0xffffffffu, equal == ~0u && most < ~0u)) return true; /* all ones may be the complement of what is not known */
#pragma unroll 1
    for (int u = 0; u < NotesOnce; u++) { /* what is seldom done takes no registers, but loads again */
      const PetscScalar own = from.a[from.Place(u)];

#pragma unroll
      for (int p = 0; p < GALLOP_PACK_PARTS; p++) fits = Note(from.CodeOf(u, p), ~BitsOf(own, p)) && fits;
    }
    return fits;
  }

  template <typename From>
  static __device__ __forceinline__ void Ask(const From &from, PetscScalar value[NotesOnce])
  {
#pragma unroll
    for (int u = 0; u < NotesOnce; u++) value[u] = GallopLoadOnce(from.a + from.Place(u));
  }
};

/* Entries of a part of a piece, whose codes are in its order: from line k on */
template <GallopPackValues Kind>
struct FromPiece {
  const PetscScalar   *a;    /* the part's first entry */
  const unsigned char *line; /* and line */
  int                  lines, entries, k;

  __device__ __forceinline__ int Place(int u) const { return min((k + u / 2) * GALLOP_PACK_ROWS + RowInSlice(u % 2), entries - 1); }

  __device__ __forceinline__ int CodeOf(int u, int p) const
  {
    const int             place = Place(u), in = place % GALLOP_PACK_ROWS;
    GallopPackCodes<Kind> codes;

    codes.Load(line + place / GALLOP_PACK_ROWS * GallopPackBytesALine<Kind>(), in % WarpSize);
    return codes.Code(in / WarpSize, p);
  }
};

/* A word for an entry: the codes of its parts, and above them its row in the slice */
template <GallopPackValues Kind>
struct NoteWords {
  using Part                = typename GallopPackStoredValue<Kind>::Part;
  static constexpr int Bits = 8 * GALLOP_PACK_PARTS * (int)sizeof(Part);
  using Word                = cuda::std::conditional_t<Bits == 8, uint16_t, cuda::std::conditional_t<Bits == 32, uint64_t, uint32_t>>;
  static constexpr int Room = NoteBytes / (int)sizeof(Word); /* entries */

  static __device__ __forceinline__ int CodeOf(Word word, int p) { return (int)(Part)(word >> p * 8 * sizeof(Part)); }
  static __device__ __forceinline__ int RowOf(Word word) { return (int)(word >> Bits); }
};

/* Entries of a slice, from the lane's first on. Together: they follow each other in CSR. */
template <GallopPackValues Kind, bool Together>
struct FromSlice {
  using Words = NoteWords<Kind>;

  const PetscScalar           *a; /* the first one of all where they are together, else of the matrix */
  Shared<typename Words::Word> words;
  Shared<PetscInt>             begins; /* of rows, less the entries before them */
  int                          entries, first;

  __device__ __forceinline__ unsigned int Entry(int u) const { return min((unsigned int)(first + u * WarpSize), (unsigned int)(entries - 1)); }
  __device__ __forceinline__ int          CodeOf(int u, int p) const { return Words::CodeOf(words[(int)Entry(u)], p); }

  __device__ __forceinline__ auto Place(int u) const
  {
    if constexpr (Together) return Entry(u);
    else return begins[Words::RowOf(words[(int)Entry(u)])] + (PetscInt)Entry(u);
  }
};

/*
  A slice's entries are compared in the order of CSR, in which values are read: codes, which take an eighth of their bytes, are brought into it, by shared memory. Where they are more than there is room
  for they come in several turns.
*/
template <GallopPackValues Kind>
struct SliceNotes {
  using Words = NoteWords<Kind>;

  Shared<typename Words::Word> words;
  Shared<PetscInt>             begins;

  /* Words of entries from one on, as many as there is room for; at: how many entries there are before the lane's rows. All: there is room for all. */
  template <bool All>
  __device__ __forceinline__ void Bring(const GallopPack &pack, const GallopPackSlice &slice, const int at[2], int from) const
  {
    using Array                = Shared<typename Words::Word>;
    const unsigned char *line  = pack.value + (size_t)slice.value * GALLOP_PACK_UNIT;
    unsigned int         to[2] = {words.Address(at[0] - from), words.Address(at[1] - from)};
    typename Array::Word row[2];
    uint32_t             mask[2];

#pragma unroll
    for (int h = 0; h < 2; h++) row[h] = Keep((typename Array::Word)RowInSlice(h) << Words::Bits);
#pragma unroll 1
    for (int k = 0; k < slice.width; k += AsksOnce, line += AsksOnce * GallopPackBytesALine<Kind>()) {
      GallopPackCodes<Kind> codes[AsksOnce];

#pragma unroll
      for (int u = 0; u < AsksOnce; u++) codes[u].LoadIf(line + u * GallopPackBytesALine<Kind>(), u < slice.width - k);
      if (k % GALLOP_PACK_CHUNK == 0) {
        const GallopPackPair<uint32_t> bits = GallopPackMasksOf(slice, GallopPackLoadMasks(slice, pack.stream, k / GALLOP_PACK_CHUNK, threadIdx.x % WarpSize));
        const uint32_t                 all  = GallopPackAllLines(min(GALLOP_PACK_CHUNK, slice.width - k));

        mask[0] = bits.first & all;
        mask[1] = bits.second & all;
      }
#pragma unroll
      for (int u = 0; u < AsksOnce; u++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const bool on = mask[h] >> u & 1;

          if (on && (All || to[h] - words.Address(0) < NoteBytes)) Array::Set(to[h], row[h] | (h ? codes[u].word >> Words::Bits : codes[u].word & (((uint64_t)1 << Words::Bits) - 1)));
          if (on) to[h] += sizeof(typename Words::Word);
        }
      }
      mask[0] >>= AsksOnce;
      mask[1] >>= AsksOnce;
    }
  }

  template <bool Together>
  __device__ __forceinline__ bool CompareAs(const Notes<Kind> &notes, const GallopPack &pack, const GallopPackSlice &slice, const PetscScalar *__restrict__ a, const int at[2], int entries) const
  {
    bool fits = true;

#pragma unroll 1
    for (int from = 0; from < entries; from += Words::Room) {
      const int                 lane = threadIdx.x % WarpSize;
      FromSlice<Kind, Together> own  = {Keep(a + from), words, begins, min(entries - from, Words::Room), lane};
      PetscScalar               value[NotesOnce];

      if constexpr (Together) notes.Ask(own, value);
      __syncwarp();
      if (entries <= Words::Room) Bring<true>(pack, slice, at, 0);
      else Bring<false>(pack, slice, at, from);
      __syncwarp();
      if constexpr (!Together) notes.Ask(own, value);
#pragma unroll 1
      for (;;) {
        fits = notes.Are(own, value) && fits;
        own.first += NotesOnce * WarpSize;
        if (own.first - lane >= own.entries) break;
        notes.Ask(own, value);
      }
    }
    return fits;
  }

  __device__ __forceinline__ bool Compare(const Notes<Kind> &notes, const GallopPack &pack, const GallopPackSlice &slice, const PetscScalar *__restrict__ a, const RowsOf &rows) const
  {
    const int      lane = threadIdx.x % WarpSize, num[2] = {(int)(rows.end[0] - rows.first[0]), (int)(rows.end[1] - rows.first[1])};
    const PetscInt begin = GallopShuffle(rows.first[0], 0), half = GallopShuffle(rows.first[1], 0), end = GallopShuffle(rows.end[1], WarpSize - 1);
    const PetscInt next[2] = {GallopShuffle(rows.first[0], (lane + 1) % WarpSize), GallopShuffle(rows.first[1], (lane + 1) % WarpSize)};
    const bool     follow  = lane + 1 < WarpSize ? rows.end[0] == next[0] && rows.end[1] == next[1] : rows.end[0] == half;
    int            at[2]   = {(int)(rows.first[0] - begin), (int)(rows.first[1] - begin)};

    if (__all_sync(0xffffffffu, follow)) return CompareAs<true>(notes, pack, slice, a + begin, at, (int)(end - begin));
#pragma unroll
    for (int h = 0; h < 2; h++) at[h] = GallopWarpPrefix(num[h]) - num[h];
    at[1] += __shfl_sync(0xffffffffu, at[0] + num[0], WarpSize - 1);
#pragma unroll
    for (int h = 0; h < 2; h++) begins.Set(begins.Address(RowInSlice(h)), rows.first[h] - at[h]);
    return CompareAs<false>(notes, pack, slice, a, at, __shfl_sync(0xffffffffu, at[1] + num[1], WarpSize - 1));
  }
};

/* A warp a slice, several a piece */
template <GallopPackValues Kind>
__global__ static void __launch_bounds__(Threads, NoteBlocks) NotesKernel(const GallopPack pack, unsigned int parts, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a, unsigned long long *numbers, int *unfit)
{
  using Words = NoteWords<Kind>;
  __shared__ typename Words::Word rooms[Threads / WarpSize][Words::Room];
  __shared__ PetscInt             begins[Threads / WarpSize][GALLOP_PACK_ROWS];
  __shared__ unsigned long long   noted[Kind == GALLOP_PACK_DICT8 ? Noted : 1];
  const int                       warp  = (int)threadIdx.x / WarpSize;
  const Notes<Kind>               notes = {numbers, noted, Shared<unsigned long long>(noted)};
  const Work                      work  = WorkOf(pack, parts);
  const GallopPackSlice           slice = GallopPackLoadSlice(pack.slice + work.number);
  const bool                      known = *(volatile int *)unfit; /* another dictionary comes, or another pack */
  RowsOf                          rows(pack, work.number, i);
  bool                            fits = true;

  GallopLetSuccessorStart();
  if constexpr (Kind == GALLOP_PACK_DICT8) {
    for (int k = (int)threadIdx.x; k < PetscMin(pack.ndict, Noted); k += Threads) noted[k] = __ldcg(numbers + k);
    __syncthreads();
  }
  if (__any_sync(0xffffffffu, known)) return;
  if (slice.last) {
    const Part      part = PartOf(slice, i, work.part, parts);
    FromPiece<Kind> from = {a + part.first, PlaceOf(pack.value, slice.value + (int64_t)part.line * GallopPackValueUnits(Kind)), part.lines, part.entries, 0};
    PetscScalar     value[NotesOnce];

    for (; from.k < part.lines; from.k += NotesOnce / 2) {
      notes.Ask(from, value);
      fits = notes.Are(from, value) && fits;
    }
  } else {
    const SliceNotes<Kind> of = {Shared<typename Words::Word>(rooms[warp]), Shared<PetscInt>(begins[warp])};

    rows.Set(pack, slice, i);
    fits = of.Compare(notes, pack, slice, a, rows);
  }
  Report(fits, unfit);
}

static PetscErrorCode LaunchNotes(const GallopPack *pack, const GallopCSR *csr, unsigned long long *numbers, int *unfit)
{
  const auto         kernel = pack->figures.slots[GALLOP_PACK_DICT8] ? NotesKernel<GALLOP_PACK_DICT8> : NotesKernel<GALLOP_PACK_DICT16>;
  const unsigned int parts  = WarpsAPiece(pack);
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  kernel<<<GridOfWork(pack, parts), Threads, 0, stream>>>(*pack, parts, csr->i, csr->a, numbers, unfit);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct Renumbered {
  int unfit, unsorted;
};

/* The dictionary's new numbers, if they are, and whether they are in order. The host reads the answer where it is. */
__global__ static void __launch_bounds__(Threads) RenumberKernel(PetscInt ndict, const volatile unsigned long long *numbers, const volatile int *unfit, GallopPackBits *dict, Renumbered *answer)
{
  const PetscInt k = (PetscInt)(blockIdx.x * Threads + threadIdx.x);

  GallopWaitForPredecessor();
  if (k >= ndict) return;
  if (*unfit) {
    if (k == 0) answer->unfit = 1;
    return;
  }
  const GallopPackBits own = numbers[k] ? (GallopPackBits)~numbers[k] : dict[k];

  if (k + 1 < ndict && own > (numbers[k + 1] ? (GallopPackBits)~numbers[k + 1] : dict[k + 1])) answer->unsorted = 1;
  if (numbers[k]) dict[k] = own;
}

typedef struct {
  unsigned long long *numbers;
  int                *unfit;
} RenumberWorkspace;

static size_t CarveRenumber(RenumberWorkspace *w, PetscInt ndict, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->numbers, ndict);
  carver.Take(w->unfit, 1);
  return carver.Bytes();
}

PetscErrorCode GallopPackRenumber_Device(GallopPack *pack, const GallopCSR *csr, PetscBool *done)
{
  RenumberWorkspace w     = {};
  const size_t      bytes = CarveRenumber(&w, pack->ndict, NULL);
  Renumbered       *answer;
  void             *memory, *reply;
  cudaStream_t      stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(GallopDeviceGetReply(&reply));
  if (!reply) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveRenumber(&w, pack->ndict, memory);
  answer  = (Renumbered *)reply;
  *answer = {0, 0};
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceZero(memory, bytes));
  PetscCall(LaunchNotes(pack, csr, w.numbers, w.unfit));
  PetscCallCUDA(GallopLaunch(RenumberKernel, {GallopBlocksFor(pack->ndict, Threads), Threads, 1, 0, stream, (bool)pack->overlaps}, pack->ndict, w.numbers, w.unfit, reinterpret_cast<GallopPackBits *>(pack->dict), answer));
  PetscCall(GallopDeviceRelease(bytes, memory));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  *done = (PetscBool)!answer->unfit;
  if (*done) pack->unsorted = (PetscBool)answer->unsorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  GallopPackBits *sorted;
  char           *cub;
  size_t          cubbytes;
} SortWorkspace;

static size_t CarveSort(SortWorkspace *w, PetscInt ndict, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->sorted, ndict);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* In its place, which graphs of products that were recorded know */
PetscErrorCode GallopPackSortDict_Device(GallopPack *pack, PetscBool *done)
{
  GallopPackBits *dict = reinterpret_cast<GallopPackBits *>(pack->dict);
  SortWorkspace   w    = {};
  size_t          bytes;
  void           *memory;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(SortNumbers(pack->ndict, NULL, NULL, NULL, &w.cubbytes));
  bytes = CarveSort(&w, pack->ndict, NULL);
  PetscCall(GallopDeviceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveSort(&w, pack->ndict, memory);
  PetscCall(SortNumbers(pack->ndict, dict, w.sorted, w.cub, &w.cubbytes));
  PetscCall(GallopDeviceCopy(dict, w.sorted, (size_t)pack->ndict * sizeof(*dict)));
  PetscCall(GallopDeviceRelease(bytes, memory));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
