/* SPDX-License-Identifier: BSD-2-Clause */
/*
  FASTLOAD on the GPU, the last stage of its build where columns are short: a warp for each group of columns puts its entries into order, stores their values, and looks at its blocks. It reads and
  writes nothing that another warp writes: of rows, only those that no other group has.
*/

#include "fastloadsegments.cuh"
#include "fastloadshort.cuh"

static constexpr int Fetched = 8; /* entries that a lane loads before it uses the first */
static constexpr int Ranks   = 4; /* entries that it compares with each of its column at once */

/* The length of a sorted column */
static __device__ __forceinline__ int LengthOf(const Order *order, PetscInt s)
{
  int low = 0, high = Lengths - 1;

  while (low < high) {
    const int middle = (low + high + 1) / 2;

    if (order->columns[middle] <= s) low = middle;
    else high = middle - 1;
  }
  return low;
}

static __device__ __forceinline__ Run RunOf(const Order *order, PetscInt group)
{
  PetscInt low = 0, high = order->runs - 1;

  while (low < high) {
    const PetscInt middle = (low + high + 1) / 2;

    if (order->run[middle].group <= group) low = middle;
    else high = middle - 1;
  }
  return order->run[low];
}

/* A group in shared memory: a lane has a column, of which entries lie one below the other as they came, and order tells which one is on each line */
struct Lines {
  PetscInt      *entry, *row, *low; /* low: the lowest row of each line */
  unsigned char *order;
  int            lane;

  __device__ __forceinline__ Lines(unsigned char *memory, int most, int lane) : lane(lane)
  {
    entry = reinterpret_cast<PetscInt *>(memory);
    row   = entry + most * WarpSize;
    low   = row + most * WarpSize;
    order = reinterpret_cast<unsigned char *>(low + most);
  }

  /* The lane's entries, the first of which is at a place, the others step further each */
  __device__ __forceinline__ void Load(const GallopColumnEntry *from, PetscInt at, PetscInt step, int own, int most) const
  {
    for (int k = 0; k < most; k += Fetched) {
      GallopColumnEntry e[Fetched];

#pragma unroll
      for (int u = 0; u < Fetched; u++) e[u] = from[((PetscCount)at + (k + u < own ? k + u : own ? own - 1 : 0) * step) * Apart]; /* without a condition, so that the next one does not wait */
      __syncwarp();                                                                                                               /* else the compiler may load one after the other */
#pragma unroll
      for (int u = 0; u < Fetched; u++) {
        if (k + u >= own) continue;
        entry[(k + u) * WarpSize + lane] = e[u].entry;
        row[(k + u) * WarpSize + lane]   = e[u].row;
      }
    }
  }

  /* As many are above an entry as have a smaller place in CSR */
  __device__ __forceinline__ void Sort(int own) const
  {
    for (int k = 0; k < own; k += Ranks) {
      PetscInt mine[Ranks];
      int      rank[Ranks];

#pragma unroll
      for (int u = 0; u < Ranks; u++) {
        mine[u] = entry[(k + u < own ? k + u : k) * WarpSize + lane];
        rank[u] = 0;
      }
      for (int l = 0; l < own; l++) {
        const PetscInt other = entry[l * WarpSize + lane];

#pragma unroll
        for (int u = 0; u < Ranks; u++) rank[u] += other < mine[u];
      }
#pragma unroll
      for (int u = 0; u < Ranks; u++)
        if (k + u < own) order[rank[u] * WarpSize + lane] = (unsigned char)(k + u);
    }
  }

  __device__ __forceinline__ int Slot(int line) const
  {
    return order[line * WarpSize + lane] * WarpSize + lane;
  }
};

/* Blocks of a group: calls what(number in the group, of its task, whether it begins that, segment, first line, line after the last) */
template <typename What>
static __device__ __forceinline__ void WalkBlocks(PetscInt own, int length, PetscInt limit, int lane, What what)
{
  PetscInt b = 0, t = 0;

  (void)WalkGroup(own, length, limit, lane, [&](const Segment &segment) {
    for (PetscInt k = 0; k < segment.blocks; k++, b++) {
      const bool begins = k || segment.begins;

      what(b, t, begins, segment, segment.BlockBegin(k), segment.BlockEnd(k));
      t += begins;
    }
  });
}

/* What holds for all lines of a block, as ClassKernel finds it */
struct Looks {
  bool     onerow = true, distinct = true, follow = true;
  PetscInt spread  = 0;
  int      longest = 1;

  /* A line: lanes from first on have entries, of these rows. Returns the lowest row; *together is false where the lane's row stands apart. */
  __device__ __forceinline__ PetscInt Add(PetscInt row, int lane, int first, int length, bool *together)
  {
    const bool     inside = lane >= first && lane < first + length;
    const PetscInt begin  = __shfl_sync(All, row, first);
    PetscInt       low = begin, high = begin + length - 1;

    *together = true;
    if (__any_sync(All, inside && row != begin + lane - first)) {
      const PetscInt     own    = inside ? row : -1 - lane; /* lanes without an entry differ from all others */
      const PetscInt     before = __shfl_up_sync(All, own, 1);
      const bool         same   = inside && lane > first && own == before;
      const unsigned int heads = __ballot_sync(All, !same), behind = lane == WarpSize - 1 ? 0 : heads >> (lane + 1);
      const unsigned int peers = MatchAny(own), run = peers >> (__ffs((int)peers) - 1);

      high      = WarpMax(own);
      low       = -WarpMax(inside ? -own : -begin);
      *together = !(run & (run + 1));
      longest   = max(longest, (behind ? lane + __ffs((int)behind) : WarpSize) - lane);
      if (__any_sync(All, same)) distinct = false;
      if (__any_sync(All, inside && lane > first && !same)) onerow = false;
      follow = false;
    } else if (length > 1) onerow = false;
    spread = high - low > spread ? high - low : spread;
    return low;
  }
};

/* A warp for each group: its entries into order, and what there is to know of its blocks. Offsets of rows wait where as many whole rows would, until all blocks are known. */
__global__ static void __launch_bounds__(Threads, 3) FillGroupsKernel(const FastLoad fl, In<Order> order, PetscInt groups, int most, const GallopColumnEntry *entries, In<PetscScalar> a, unsigned char *apart, unsigned char *offsets)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     lane = threadIdx.x % WarpSize;
  const PetscCount                              g    = GallopGlobalThread() / WarpSize;

  if (g == 0 && lane == 0) {
    fl.blkPtr[fl.blkNum]   = fl.blknz;
    fl.blkLine[fl.blkNum]  = fl.lineNum;
    fl.blkRow[fl.blkNum]   = 0;
    fl.taskBlk[fl.taskNum] = fl.blkNum;
  }
  if (g >= groups) return;
  const Lines    lines(memory + threadIdx.x / WarpSize * most * LineBytes, most, lane);
  const Run      run     = RunOf(order, (PetscInt)g);
  const PetscInt s       = (PetscInt)g * WarpSize + lane;
  const int      length  = fl.ncols - (s - lane) < WarpSize ? (int)(fl.ncols - (s - lane)) : WarpSize;
  const int      own     = lane >= length ? 0 : run.length < 0 ? LengthOf(order, s) : (int)run.length;
  const Place    place   = lane < length ? PlaceOf(order, s, own) : Place{0, 0};
  const PetscInt ptr     = __shfl_sync(All, place.at, 0); /* of the group's first entry */
  const bool     several = run.nblocks > 1;

  if (!run.nlines) return;
  lines.Load(entries, own ? place.at : ptr, place.group < 0 ? 1 : WarpSize, own, (int)run.nlines);
  lines.Sort(own);
  __syncwarp(); /* all entries have been loaded: values may take their places */

  const auto inside = [=](const Segment &segment) { return lane >= segment.first && lane < length; };

  if (several) { /* a row that only this group has gets the number of one of the blocks that have entries of it */
    WalkBlocks(own, length, fl.height, lane, [&](PetscInt number, PetscInt, bool, const Segment &segment, PetscInt from, PetscInt to) {
      for (PetscInt q = from; q < to && inside(segment); q++) {
        const PetscInt row = lines.row[lines.Slot((int)q)];

        if (apart[row] != Elsewhere) apart[row] = (unsigned char)(1 + number);
      }
    });
    __syncwarp();
  }

  const PetscInt before = (PetscInt)g - run.group; /* groups that are alike */
  PetscInt       at     = ptr;                     /* of the block */

  WalkBlocks(own, length, fl.height, lane, [&](PetscInt number, PetscInt task, bool begins, const Segment &segment, PetscInt from, PetscInt to) {
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
    const int           longest = (int)GallopWarpMax((unsigned int)(in ? looks.longest : 1));
    const unsigned char kind    = FastLoadClass(looks.onerow, looks.distinct, looks.follow, looks.spread, longest);
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
      fl.blkRow[b]    = FastLoadRowBytes(width, num);
      if (begins) fl.taskBlk[run.tasks + before * run.ntasks + task] = b;
    }
    if (width != FASTLOAD_IMPLIED) {
      unsigned char *const begin = offsets + (PetscCount)at * sizeof(PetscInt);

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
  });

  if (several) { /* rows of two blocks are known now */
    __syncwarp();
    WalkBlocks(own, length, fl.height, lane, [&](PetscInt number, PetscInt, bool, const Segment &segment, PetscInt from, PetscInt to) {
      bool shared = false;

      for (PetscInt q = from; q < to && inside(segment) && !shared; q++) shared = apart[lines.row[lines.Slot((int)q)]] == Elsewhere;
      shared = __any_sync(All, shared);
      if (shared && lane == 0) fl.blkClass[run.blocks + before * run.nblocks + number] |= FASTLOAD_SHARED;
    });
  }
}

/* A warp for each task: the offsets of its blocks to their place, and what products want to know of it. In an order of tasks, or as they come where there is none. */
__global__ static void __launch_bounds__(Threads) FinishKernel(const FastLoad fl, In<PetscInt> order, In<unsigned char> offsets)
{
  const PetscCount k    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (k >= fl.taskNum) return;
  const PetscCount t     = order ? order[k] : k;
  const PetscInt   first = fl.taskBlk[t], end = fl.taskBlk[t + 1];

  for (PetscInt b = first; b < end; b++) {
    const int                 width = FASTLOAD_WIDTH(fl.blkClass[b]);
    const PetscCount          begin = fl.blkPtr[b], place = fl.blkRow[b], bytes = (fl.blkPtr[b + 1] - begin) * (width == FASTLOAD_INT ? (int)sizeof(PetscInt) : width);
    const unsigned int *const from = reinterpret_cast<const unsigned int *>(offsets + begin * sizeof(PetscInt));
    unsigned int *const       to   = reinterpret_cast<unsigned int *>(fl.rowIdx + place);

    if (width == FASTLOAD_IMPLIED) continue;
    for (PetscCount w = lane; w < (fl.blkRow[b + 1] - place) / 4; w += WarpSize) { /* bytes behind the last offset are 0 */
      const PetscCount   left = bytes - 4 * w;
      const unsigned int word = left > 0 ? from[w] : 0;

      to[w] = left > 0 && left < 4 ? word & ((1u << 8 * left) - 1) : word;
    }
  }
  const PetscInt *const cols   = fl.perm + fl.blkColIdx[first];
  const int             length = fl.blkLength[first];
  const bool            follow = __all_sync(All, lane >= length || cols[lane < length ? lane : 0] == cols[0] + lane);

  if (lane) return;
  fl.tasks[k] = {(PetscInt)fl.blkPtr[first], (PetscInt)(fl.blkRow[first] / FASTLOAD_ALIGN), fl.blkLine[first], follow ? cols[0] : fl.blkColIdx[first], fl.blkHeight[first], first, end, fl.blkLength[first], fl.blkClass[first], follow};
}

/*
  FastLoadFillGroups - All arrays of blocks and their values, but for offsets of rows

  Input Parameters:
+ fl      - the format, with memory
. csr     - arrays on the GPU
. order   - the sorted columns, on the GPU
. longest - entries of the longest column
. entries - of each group, in its place, as PlaceOf() tells; in the memory of values where InValues
. apart   - Elsewhere for each row that several groups have entries of, else 0
- stream  - where

  Output Parameters:
+ apart   - anything
- offsets - of the rows of each block, behind as many PetscInts as there are entries before it
*/
PetscErrorCode FastLoadFillGroups(const FastLoad *fl, const GallopCSR *csr, const Order *order, int longest, const GallopColumnEntry *entries, unsigned char *apart, unsigned char *offsets, cudaStream_t stream)
{
  const PetscInt groups = FastLoadCeil(fl->ncols, WarpSize);
  const int      warps  = (int)PetscMin((size_t)Warps, Shared / (LineBytes * longest)); /* of a thread block */

  PetscFunctionBegin;
  FillGroupsKernel<<<(unsigned int)((groups - 1) / warps + 1), warps * WarpSize, warps * longest * LineBytes, stream>>>(*fl, order, groups, longest, entries, csr->a, apart, offsets);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadFinishTasks - Offsets of rows to their place, once rowIdx has memory, and tasks, in an order of theirs or as they come where it is NULL */
PetscErrorCode FastLoadFinishTasks(const FastLoad *fl, const PetscInt *order, const unsigned char *offsets, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!fl->taskNum) PetscFunctionReturn(PETSC_SUCCESS);
  FinishKernel<<<WarpsFor(fl->taskNum), Threads, 0, stream>>>(*fl, order, offsets);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
