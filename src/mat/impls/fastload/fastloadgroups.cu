/* SPDX-License-Identifier: BSD-2-Clause */
/*
  FASTLOAD on the GPU, the last stage of its build where columns are short: a warp for each group of columns puts its entries into order, stores their values, and looks at its blocks. It reads and
  writes nothing that another warp writes: of rows, only those that no other group has.
*/

#include "fastloadlines.cuh"

static constexpr int Sums = 8; /* numbers that it adds up at once */

/* The warp's group: its entries into order, and what there is to know of its blocks. Returns the bytes that offsets of rows take, which wait where as many whole rows would until all blocks are known. */
static __device__ __forceinline__ unsigned int FillGroup(const FastLoad &fl, const Groups &w, PetscInt g, const Lines &lines, In<PetscInt> i, In<PetscScalar> a)
{
  const Order *const   order  = w.order;
  unsigned char *const apart  = w.apart;
  const int            lane   = lines.lane;
  const Run            run    = RunOf(order, g);
  const PetscInt       s      = g * WarpSize + lane;
  const int            length = fl.ncols - (s - lane) < WarpSize ? (int)(fl.ncols - (s - lane)) : WarpSize;
  const int            own    = lane >= length ? 0 : run.length < 0 ? LengthOf(order, s) : (int)run.length;
  const Place          place  = lane < length ? PlaceOf(order, s, own) : Place{0, 0};
  const PetscInt       ptr = __shfl_sync(All, place.at, 0), limit = order->height; /* ptr: of the group's first entry */
  const bool           several = run.nblocks > 1;

  if (!run.nlines) return 0;
  const PetscInt col = lane < length ? fl.perm[s] : PetscInt(0);

  lines.Load(w.entries, i, own ? place.at : ptr, place.group < 0 ? 1 : WarpSize, own, (int)run.nlines);
  lines.Sort(own);
  __syncwarp(); /* all entries have been loaded: values may take their places */

  const auto inside = [=](const Segment &segment) { return lane >= segment.first && lane < length; };

  if (several) { /* a row that only this group has gets the number of one of the blocks that have entries of it */
    WalkBlocks(own, length, limit, lane, [&](PetscInt number, PetscInt, bool, const Segment &segment, PetscInt from, PetscInt to) {
      for (PetscInt q = from; q < to && inside(segment); q++) {
        const PetscInt row = lines.row[lines.Slot((int)q)];

        if (apart[row] != Elsewhere) apart[row] = (unsigned char)(1 + number);
      }
    });
    __syncwarp();
  }

  const PetscInt before = g - run.group; /* groups that are alike */
  PetscInt       at     = ptr;           /* of the block */
  unsigned int   bytes  = 0;             /* of the blocks before */

  WalkBlocks(own, length, limit, lane, [&](PetscInt number, PetscInt task, bool begins, const Segment &segment, PetscInt from, PetscInt to) {
    const PetscInt b = run.blocks + before * run.nblocks + number, line = run.lines + before * run.nlines + from;
    const bool     in     = inside(segment);
    bool           shared = false;
    Looks          looks;

    for (PetscInt q = from; q < to; q += Fetched) {
      PetscScalar   value[Fetched];
      unsigned char other[Fetched];

#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        const int slot = in ? lines.Slot((int)(q + u < to ? q + u : q)) : lane;

        value[u] = a[in ? lines.entry[slot] : 0];
        other[u] = apart[in ? lines.row[slot] : 0];
      }
      __syncwarp();
#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        if (q + u >= to) break;
        const int      slot = in ? lines.Slot((int)(q + u)) : lane;
        const PetscInt row  = in ? lines.row[slot] : 0;
        bool           together;
        const PetscInt low = looks.Add(row, lane, segment.first, segment.length, &together);

        if (in) {
          const PetscCount k = (PetscCount)at + (q + u - from) * segment.length + lane - segment.first;

          fl.value[k] = value[u];
          if (fl.csrIdx) fl.csrIdx[k] = lines.entry[slot];
          if (!together || (other[u] && other[u] != (unsigned char)(1 + number))) {
            shared = true;
            if (several) apart[row] = Elsewhere;
          }
        }
        if (lane == 0) {
          lines.low[q + u]                = low;
          fl.lineRow[line + q + u - from] = low;
        }
      }
    }
    for (PetscInt q = from; q < to; q += Fetched) { /* not above, where registers would not suffice */
      PetscInt edge[Fetched];

#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        const PetscInt row = in ? lines.row[lines.Slot((int)(q + u < to ? q + u : q))] : 0;

        edge[u] = i[row + (row < col)];
      }
#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        if (q + u >= to) break;
        const int      slot  = in ? lines.Slot((int)(q + u)) : lane;
        const PetscInt place = in ? FastLoadPlace(lines.row[slot] < col, edge[u], lines.entry[slot]) : 0, same = __shfl_sync(All, place, segment.first);
        const bool     alike = __all_sync(All, !in || place == same);

        if (lane == 0) fl.lineAt[line + q + u - from] = (unsigned char)(alike && same < FASTLOAD_SEARCH ? same : FASTLOAD_SEARCH);
      }
    }
    const int           longest = (int)GallopWarpMax((unsigned int)(in ? looks.longest : 1));
    const unsigned char kind    = FastLoadClass(fl.options.sums, looks.onerow, looks.distinct, looks.follow, looks.spread, longest);
    const int           width   = FASTLOAD_WIDTH(kind);
    const PetscCount    num     = (PetscCount)(to - from) * segment.length;

    shared = __any_sync(All, shared);
    if (lane == 0) {
      fl.blkPtr[b]    = at;
      fl.blkColIdx[b] = s + segment.first;
      fl.blkHeight[b] = to - from;
      fl.blkLength[b] = (unsigned char)segment.length;
      fl.blkLine[b]   = line;
      fl.blkClass[b]  = (unsigned char)(kind | (shared ? FASTLOAD_SHARED : 0));
      fl.blkRow[b]    = bytes;
      if (begins) fl.taskBlk[run.tasks + before * run.ntasks + task] = b;
    }
    if (width != FASTLOAD_IMPLIED) {
      unsigned char *const begin = w.offsets + (PetscCount)at * sizeof(PetscInt);

      __syncwarp();
      for (PetscInt q = from; q < to && in; q++) {
        const PetscInt   offset = lines.row[lines.Slot((int)q)] - lines.low[q];
        const PetscCount k      = (PetscCount)(q - from) * segment.length + lane - segment.first;

        if (width == FASTLOAD_BYTE) begin[k] = (unsigned char)offset;
        else if (width == FASTLOAD_SHORT) reinterpret_cast<unsigned short *>(begin)[k] = (unsigned short)offset;
        else reinterpret_cast<PetscInt *>(begin)[k] = offset;
      }
    }
    at += (PetscInt)num;
    bytes += (unsigned int)FastLoadRowBytes(width, num);
  });

  if (several) { /* rows of two blocks are known now */
    __syncwarp();
    WalkBlocks(own, length, limit, lane, [&](PetscInt number, PetscInt, bool, const Segment &segment, PetscInt from, PetscInt to) {
      bool shared = false;

      for (PetscInt q = from; q < to && inside(segment) && !shared; q++) shared = apart[lines.row[lines.Slot((int)q)]] == Elsewhere;
      shared = __any_sync(All, shared);
      if (shared && lane == 0) fl.blkClass[run.blocks + before * run.nblocks + number] |= FASTLOAD_SHARED;
    });
  }
  return bytes;
}

/* By a warp: of the bytes of offsets of parcels, those before each; *sum is that of all */
static __device__ __forceinline__ void SumParcels(PetscInt parcels, unsigned long long *bytes, unsigned long long *sum)
{
  const int          lane   = threadIdx.x % WarpSize;
  unsigned long long before = 0;

  for (PetscInt first = 0; first < parcels; first += Sums * WarpSize) {
    unsigned long long own[Sums];

#pragma unroll
    for (int u = 0; u < Sums; u++) own[u] = first + u * WarpSize + lane < parcels ? GallopLoadFromL2(bytes + first + u * WarpSize + lane) : 0;
#pragma unroll
    for (int u = 0; u < Sums; u++) {
      unsigned long long to = own[u];

      for (int by = 1; by < WarpSize; by *= 2) {
        const unsigned long long other = __shfl_up_sync(All, to, by);

        if (lane >= by) to += other;
      }
      if (first + u * WarpSize + lane < parcels) bytes[first + u * WarpSize + lane] = before + to - own[u];
      before += __shfl_sync(All, to, WarpSize - 1);
    }
  }
  if (lane == 0) *sum = before;
}

/* A warp for each group; the last thread block that ends adds up bytes of offsets. Nothing is done where a column has more than most entries. */
__global__ static void __launch_bounds__(Threads, 3) FillGroupsKernel(const FastLoad fl, const Groups w, PetscInt groups, int most, In<PetscInt> i, In<PetscScalar> a)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane  = threadIdx.x % WarpSize;
  const PetscCount                              g     = GallopGlobalThread() / WarpSize;
  unsigned int                                  ended = 0;

  if (w.order->longest < 0 || w.order->longest > most) return;
  if (g == 0 && lane == 0) {
    fl.blkPtr[w.reply->blocks] = w.order->entries[Lengths];
    fl.taskBlk[w.reply->tasks] = w.reply->blocks;
  }
  if (g < groups) {
    const unsigned int bytes = FillGroup(fl, w, (PetscInt)g, Lines(memory + threadIdx.x / WarpSize * most * LineBytes, most, lane), i, a);

    if (lane == 0) {
      w.bytes[g] = bytes;
      if (bytes) atomicAdd(&w.parcels[g / Parcel], (unsigned long long)bytes);
    }
  }
  __syncthreads();
  if (threadIdx.x >= WarpSize) return;
  if (lane == 0) {
    __threadfence();
    ended = atomicAdd(&w.reply->ended, 1u);
  }
  if (__shfl_sync(All, ended, 0) < gridDim.x - 1) return;
  __threadfence();
  SumParcels(groups / Parcel + 1, w.parcels, &w.reply->rowbytes);
}

/* The first num bytes of a word; nothing has set the others */
static __device__ __forceinline__ unsigned int BytesOfWord(const unsigned char *bytes, int num)
{
  unsigned int word = 0;

  for (int k = 0; k < num; k++) word |= (unsigned int)bytes[k] << 8 * k;
  return word;
}

/* A warp for each task: its blocks and their lines and offsets to their place, and what products want to know of it. In an order of tasks, or as they come where there is none. */
__global__ static void __launch_bounds__(Threads) FinishKernel(const FastLoad fl, const FastLoad from, const Groups w, In<PetscInt> order)
{
  const PetscCount k    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (k == 0 && lane == 0) {
    fl.blkPtr[fl.blkNum]   = fl.blknz;
    fl.blkRow[fl.blkNum]   = (PetscCount)w.reply->rowbytes;
    fl.blkLine[fl.blkNum]  = fl.lineNum;
    fl.taskBlk[fl.taskNum] = fl.blkNum;
    fl.longPtr[0]          = 0;
  }
  if (k >= fl.taskNum) return;
  const PetscCount   t     = order ? order[k] : k;
  const PetscInt     first = from.taskBlk[t], end = from.taskBlk[t + 1], group = from.blkColIdx[first] / WarpSize;
  unsigned long long place = 0; /* in rowIdx, of the group */

  for (PetscInt g = group / Parcel * Parcel + lane; g < group; g += WarpSize) place += w.bytes[g];
  for (int by = WarpSize / 2; by > 0; by /= 2) place += __shfl_xor_sync(All, place, by);
  place += w.parcels[group / Parcel];
  if (lane == 0) fl.taskBlk[t] = first;
  for (PetscInt b = first; b < end; b++) {
    const PetscInt            line = from.blkLine[b], height = from.blkHeight[b];
    const int                 length = from.blkLength[b], kind = from.blkClass[b], width = FASTLOAD_WIDTH(kind);
    const PetscCount          begin = from.blkPtr[b], at = (PetscCount)place + from.blkRow[b], bytes = (PetscCount)height * length * (width == FASTLOAD_INT ? (int)sizeof(PetscInt) : width);
    const unsigned char *const offsets = w.offsets + begin * sizeof(PetscInt);
    unsigned int *const       to      = reinterpret_cast<unsigned int *>(fl.rowIdx + at);

    if (lane == 0) {
      fl.blkPtr[b]    = begin;
      fl.blkRow[b]    = at;
      fl.blkColIdx[b] = from.blkColIdx[b];
      fl.blkHeight[b] = height;
      fl.blkLine[b]   = line;
      fl.blkLength[b] = (unsigned char)length;
      fl.blkClass[b]  = (unsigned char)kind;
    }
    for (PetscInt q = line + lane; q < line + height; q += WarpSize) {
      fl.lineRow[q] = from.lineRow[q];
      fl.lineAt[q]  = from.lineAt[q];
    }
    for (PetscCount word = lane; word < FastLoadRowBytes(width, (PetscCount)height * length) / 4; word += WarpSize) { /* bytes behind the last offset are 0 */
      const PetscCount left = bytes - 4 * word;

      to[word] = left >= 4 ? reinterpret_cast<const unsigned int *>(offsets)[word] : BytesOfWord(offsets + 4 * word, (int)left);
    }
  }
  const PetscInt *const cols   = fl.perm + from.blkColIdx[first];
  const int             length = from.blkLength[first];
  const bool            follow = __all_sync(All, lane >= length || cols[lane < length ? lane : 0] == cols[0] + lane);

  if (lane) return;
  fl.tasks[k] = {(PetscInt)from.blkPtr[first],
                 (PetscInt)((place + from.blkRow[first]) / FASTLOAD_ALIGN),
                 from.blkLine[first],
                 follow ? cols[0] : from.blkColIdx[first],
                 from.blkHeight[first],
                 first,
                 end,
                 from.blkLength[first],
                 from.blkClass[first],
                 follow};
}

/*
  FastLoadFillGroups - All arrays of blocks and their values, but for tasks and offsets of rows, if no column has more than most entries

  Input Parameters:
+ fl     - the format, with memory
. csr    - arrays on the GPU
. w      - the sorted columns, and the entries of each group in its place, as PlaceOf() tells; in the memory of values where InValues. apart is Elsewhere for each row that several groups have entries of, else 0
. most   - entries of a column
- stream - where

  Output Parameter:
. w - offsets, the bytes that they take, and reply->rowbytes; apart is anything
*/
PetscErrorCode FastLoadFillGroups(const FastLoad *fl, const GallopCSR *csr, const Groups *w, int most, cudaStream_t stream)
{
  const PetscInt groups = FastLoadCeil(fl->ncols, WarpSize);
  const int      warps  = (int)PetscMin((size_t)Warps, Shared / (LineBytes * most)); /* of a thread block */

  PetscFunctionBegin;
  FillGroupsKernel<<<(unsigned int)((groups - 1) / warps + 1), warps * WarpSize, warps * most * LineBytes, stream>>>(*fl, *w, groups, most, csr->i, csr->a);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadFinishTasks - Blocks of from, which FastLoadFillGroups() has filled, to the memory of a format, and tasks, in an order of theirs or as they come where it is NULL */
PetscErrorCode FastLoadFinishTasks(const FastLoad *fl, const FastLoad *from, const Groups *w, const PetscInt *order, cudaStream_t stream)
{
  PetscFunctionBegin;
  FinishKernel<<<WarpsFor(fl->taskNum), Threads, 0, stream>>>(*fl, *from, *w, order);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
