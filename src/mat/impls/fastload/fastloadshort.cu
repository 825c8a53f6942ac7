/* SPDX-License-Identifier: BSD-2-Clause */
/*
  FASTLOAD on the GPU: its build where all columns are short, as they are in most matrices, and sorted among all. How many columns there are of each length tells all groups of columns, their blocks,
  and where entries begin. So an entry, which has a number in its column in whatever order the GPU counts, goes to its group at once, into the memory of its value, and fastloadgroups.cu puts the
  entries of each group into order. The host waits once, when all that is left is to bring arrays of blocks from workspace, which has room for the most that there can be, to their place.
*/

#include "fastloadshortplan.cuh"

static constexpr int Loads = 8;    /* numbers that a lane loads before it uses the first */
static constexpr int Tiles = 1024; /* most parts of the columns that are sorted by a thread block each */
static constexpr int Least = 16;   /* entries of a column for which a warp always has shared memory */

/* Lengths of a warp's columns: calls what(column, length, lanes that have the same), with column n and length -1 where there is none. A tile is a thread block's, in parts of its warps. */
template <typename What>
static __device__ __forceinline__ void WalkTile(PetscInt n, PetscInt tile, const unsigned int *count, What what)
{
  const int        lane  = threadIdx.x % WarpSize;
  const PetscCount first = (PetscCount)blockIdx.x * tile + threadIdx.x / WarpSize * (tile / Warps), end = first + tile / Warps;

  for (PetscCount c = first; c < end && c < n; c += WarpSize) {
    const bool in     = c + lane < n;
    const int  length = in ? (int)min(count[c + lane], (unsigned int)GallopColumnShort) : -1; /* where columns are longer nothing will come of it */

    what(in ? (PetscInt)(c + lane) : n, length, __match_any_sync(All, length));
  }
}

static __device__ __forceinline__ bool IsFirst(unsigned int lanes)
{
  return __ffs((int)lanes) - 1 == (int)(threadIdx.x % WarpSize);
}

/* Columns of each length, in each tile and in all */
__global__ static void __launch_bounds__(Threads) CensusKernel(PetscInt n, PetscInt tile, In<unsigned int> count, PetscInt *tiles, Census *census)
{
  __shared__ unsigned int columns[Lengths];

  for (int k = threadIdx.x; k < Lengths; k += Threads) columns[k] = 0;
  __syncthreads();
  WalkTile(n, tile, count, [&](PetscInt, int length, unsigned int same) {
    if (length >= 0 && IsFirst(same)) atomicAdd(&columns[length], (unsigned int)__popc(same));
  });
  __syncthreads();
  for (int k = threadIdx.x; k < Lengths; k += Threads) {
    tiles[(PetscCount)k * gridDim.x + blockIdx.x] = (PetscInt)columns[k];
    if (columns[k]) atomicAdd(&census->columns[k], columns[k]);
  }
}

/* The first thread block plans; of the others a warp has a length, and counts those in the tiles before each */
__global__ static void __launch_bounds__(Threads) PlanKernel(PetscInt n, PetscInt limit, PetscInt scattered, bool indexed, int num, const Census *census, PetscInt *tiles, Order *order, Reply *reply)
{
  const int length = (int)(GallopGlobalThread() / WarpSize) - Warps, lane = threadIdx.x % WarpSize;
  int       before = 0;

  if (length < 0) PlanGroups(n, limit, scattered, indexed, census, order, reply);
  if (length < 0 || length >= Lengths || !census->columns[length]) return;
  PetscInt *const own = tiles + (PetscCount)length * num;

  for (int k = lane; k - lane < num; k += Loads * WarpSize) {
    int columns[Loads];

#pragma unroll
    for (int u = 0; u < Loads; u++) columns[u] = k + u * WarpSize < num ? (int)own[k + u * WarpSize] : 0;
#pragma unroll
    for (int u = 0; u < Loads; u++) {
      const int to = GallopWarpPrefix(columns[u]);

      if (k + u * WarpSize < num) own[k + u * WarpSize] = before + to - columns[u];
      before += __shfl_sync(All, to, WarpSize - 1);
    }
  }
}

/* Columns by their lengths, those of one length as they come */
__global__ static void __launch_bounds__(Threads) ColumnsKernel(PetscInt n, PetscInt tile, In<unsigned int> count, In<PetscInt> tiles, In<Order> order, PetscInt *perm, Place *places)
{
  __shared__ PetscInt next[Warps][Lengths]; /* the next column of each length of a warp */
  const int           warp = threadIdx.x / WarpSize, lengths = order->longest + 1;

  if (!lengths) return;
  for (int k = threadIdx.x; k < Warps * Lengths; k += Threads) next[k / Lengths][k % Lengths] = 0;
  __syncthreads();
  WalkTile(n, tile, count, [&](PetscInt, int length, unsigned int same) {
    if (length >= 0 && IsFirst(same)) next[warp][length] += __popc(same);
    __syncwarp();
  });
  __syncthreads();
  for (int length = threadIdx.x; length < lengths; length += Threads) {
    PetscInt sum = order->columns[length] + tiles[(PetscCount)length * gridDim.x + blockIdx.x];

    for (int w = 0; w < Warps; w++) {
      const PetscInt own = next[w][length];

      next[w][length] = sum;
      sum += own;
    }
  }
  __syncthreads();
  WalkTile(n, tile, count, [&](PetscInt c, int length, unsigned int same) {
    const PetscInt first = length >= 0 ? next[warp][length] : 0;

    __syncwarp();
    if (length >= 0) {
      const PetscInt s = first + __popc(same & ((1u << threadIdx.x % WarpSize) - 1));

      if (IsFirst(same)) next[warp][length] = first + __popc(same);
      perm[s]   = c;
      places[c] = PlaceOf(order, s, length);
    }
    __syncwarp();
  });
}

/* Entries to their groups, and which rows have entries in more than one */
__global__ static void __launch_bounds__(Threads) EntriesKernel(PetscInt m, PetscInt limit, int lanes, In<PetscInt> i, In<PetscInt> j, In<Place> places, In<unsigned char> numbers, In<Order> order, GallopColumnEntry *entries, unsigned char *apart, Reply *reply)
{
  const PetscCount r    = GallopGlobalThread() / lanes;
  const int        lane = (int)(threadIdx.x % lanes);

  if (order->longest < 0) return;
  const PetscInt begin = r < m ? i[r] : 0, end = r < m ? i[r + 1] : 0;
  const int      rows = __syncthreads_count(begin < end && !lane);

  if (threadIdx.x == 0 && rows) atomicAdd(reinterpret_cast<Key *>(&reply->rows), (Key)rows);
  if (begin == end || end - begin > limit) return;
  const PetscInt group   = places[j[begin]].group;
  bool           several = false;

#pragma unroll 4
  for (PetscInt k = begin + lane; k < end; k += lanes) {
    const Place    place = places[j[k]];
    const PetscInt at    = place.at + (place.group < 0 ? numbers[k] : numbers[k] * WarpSize);

    entries[(PetscCount)at * Apart] = GallopColumnEntry::Of((PetscInt)r, k, begin);
    several                         = several || place.group != group;
  }
  if (several) apart[r] = Elsewhere;
}

/* Once entries are in groups, offsets lie where what sorting columns takes was */
struct ShortWorkspace {
  Census            *census; /* with it begins what is to be zeroed: all up to the end of count */
  size_t             zerobytes;
  Order             *order;
  PetscInt          *longrows; /* in any order */
  GallopColumnEntry *entries;  /* [nz] where they do not fit in the memory of values */
  unsigned int      *count;    /* [n] entries of each column */
  Place             *places;   /* [n] */
  PetscInt          *tiles;    /* [Lengths][ntiles] */
  unsigned char     *numbers;  /* [nz] the number of each entry in its column */
  Groups             groups;
  FastLoad           blocks; /* has arrays for as many blocks, tasks and lines as there can be */
  PetscInt           tile;   /* columns of a tile */
  int                ntiles;
};

/*
  How many lines, blocks and tasks there can be. A group has no more lines than any column of the next one has entries, but for the last two. A block ends where a column does, of which there are
  few lengths, or where its group is cut.
*/
static void CountMost(const GallopCSR *csr, PetscInt limit, FastLoad *blocks)
{
  const PetscCount lines = PetscMin(csr->nz / WarpSize + 2 * Longest, csr->nz);

  blocks->lineNum = (PetscInt)lines;
  blocks->blkNum = blocks->taskNum = (PetscInt)PetscMin(lines, (limit ? lines / limit : 0) + FastLoadCeil(csr->n, WarpSize) + Longest);
}

/* Runs twice: with a null base it measures, then it hands out */
static size_t CarveShort(ShortWorkspace *w, const FastLoad *fl, const GallopCSR *csr, void *base)
{
  static constexpr size_t Line   = 256; /* bytes: where arrays begin that share a piece */
  const PetscInt          groups = FastLoadCeil(csr->n, WarpSize);
  const size_t            n = (size_t)csr->n, nz = (size_t)csr->nz;
  const size_t            count  = (sizeof(Census) + sizeof(Reply) + (groups / Parcel + 1) * sizeof(*w->groups.parcels) + csr->m + Line - 1) / Line * Line; /* behind apart */
  const size_t            places = count + (n * sizeof(*w->count) + Line - 1) / Line * Line, tiles = places + n * sizeof(Place), numbers = tiles + (size_t)Lengths * w->ntiles * sizeof(*w->tiles);
  GallopCarver            carver(base);
  unsigned char          *piece;

  carver.Take(piece, (PetscCount)PetscMax(count + nz * sizeof(PetscInt), numbers + nz));
  carver.Take(w->order, 1);
  carver.Take(w->longrows, csr->nz / fl->options.long_row + 1);
  carver.Take(w->groups.bytes, groups);
  w->entries = NULL;
  if (!InValues) carver.Take(w->entries, csr->nz);
  carver.Take(w->blocks.blkPtr, (PetscCount)w->blocks.blkNum + 1);
  carver.Take(w->blocks.blkRow, w->blocks.blkNum);
  carver.Take(w->blocks.blkColIdx, w->blocks.blkNum);
  carver.Take(w->blocks.blkHeight, w->blocks.blkNum);
  carver.Take(w->blocks.blkLine, w->blocks.blkNum);
  carver.Take(w->blocks.blkLength, w->blocks.blkNum);
  carver.Take(w->blocks.blkClass, w->blocks.blkNum);
  carver.Take(w->blocks.lineRow, w->blocks.lineNum);
  carver.Take(w->blocks.lineAt, w->blocks.lineNum);
  carver.Take(w->blocks.taskBlk, (PetscCount)w->blocks.taskNum + 1);
  if (!base) return carver.Bytes();
  w->zerobytes      = count + n * sizeof(*w->count);
  w->census         = reinterpret_cast<Census *>(piece);
  w->groups.reply   = reinterpret_cast<Reply *>(w->census + 1);
  w->groups.parcels = reinterpret_cast<unsigned long long *>(w->groups.reply + 1);
  w->groups.apart   = reinterpret_cast<unsigned char *>(w->groups.parcels + groups / Parcel + 1);
  w->groups.offsets = piece + count;
  w->groups.order   = w->order;
  w->count          = reinterpret_cast<unsigned int *>(piece + count);
  w->places         = reinterpret_cast<Place *>(piece + places);
  w->tiles          = reinterpret_cast<PetscInt *>(piece + tiles);
  w->numbers        = piece + numbers;
  return carver.Bytes();
}

/* From the lengths of columns to the plan: what the GPU does while the host takes memory for entries. height is that of blocks, scattered that where entries lie anywhere. */
static PetscErrorCode Plan(const FastLoad *fl, const GallopCSR *csr, PetscInt height, PetscInt scattered, const ShortWorkspace *w, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->census, 0, w->zerobytes, stream));
  PetscCall(FastLoadSumSpread(csr, &w->census->spread, stream));
  PetscCall(GallopColumnsCount(csr, fl->options.long_row, w->count, w->numbers, w->longrows, &w->census->found, stream));
  CensusKernel<<<(unsigned int)w->ntiles, Threads, 0, stream>>>(csr->n, w->tile, w->count, w->tiles, w->census);
  GallopCheckLaunch();
  PlanKernel<<<1 + WarpsFor(Lengths), Threads, 0, stream>>>(csr->n, height, scattered, (bool)fl->indexed, w->ntiles, w->census, w->tiles, w->order, w->groups.reply);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries to their groups, which are filled if no column has more than most entries */
static PetscErrorCode Fill(const FastLoad *fl, const GallopCSR *csr, int most, ShortWorkspace *w, cudaStream_t stream)
{
  const int                lanes   = GallopColumnsLanes(csr->nz, csr->m, GallopColumnsRowLanes);
  GallopColumnEntry *const entries = InValues ? reinterpret_cast<GallopColumnEntry *>(fl->value) : w->entries;

  PetscFunctionBegin;
  w->groups.entries = entries;
  w->blocks.value   = fl->value;
  w->blocks.perm    = fl->perm;
  w->blocks.csrIdx  = fl->csrIdx;
  ColumnsKernel<<<(unsigned int)w->ntiles, Threads, 0, stream>>>(csr->n, w->tile, w->count, w->tiles, w->order, fl->perm, w->places);
  GallopCheckLaunch();
  EntriesKernel<<<GallopBlocksFor((PetscCount)csr->m * lanes, Threads), Threads, 0, stream>>>(csr->m, fl->options.long_row, lanes, csr->i, csr->j, w->places, w->numbers, w->order, entries, w->groups.apart,
                                                                                              w->groups.reply);
  GallopCheckLaunch();
  PetscCall(FastLoadFillGroups(&w->blocks, csr, &w->groups, most, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With all numbers: takes memory for blocks and brings them there; *done is false where there is not enough */
static PetscErrorCode Complete(FastLoad *fl, const GallopCSR *csr, PetscCount rowbytes, ShortWorkspace *w, cudaStream_t stream, PetscCount maxbytes, PetscBool *done)
{
  GallopLongRows  longrows = {};
  const PetscInt *order;
  void           *memory;

  PetscFunctionBegin;
  PetscCall(FastLoadPlanLongRows(fl, csr, w->longrows, &longrows));
  PetscCall(FastLoadTakeBlocks(fl, rowbytes, maxbytes, done));
  if (*done) {
    if (fl->pieceNum) PetscCall(FastLoadFillLongRows(fl, csr, &longrows, stream));
    if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
    w->blocks.taskNum = fl->taskNum;
    PetscCall(FastLoadOrderTasks(&w->blocks, stream, &memory, &order, done));
    if (*done) PetscCall(FastLoadFinishTasks(fl, &w->blocks, &w->groups, order, stream));
    PetscCall(GallopWorkspaceFree(memory));
  }
  if (fl->pieceNum) PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied from pageable memory is about to go */
  PetscCall(GallopLongRowsFree(&longrows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  FastLoadBuildShort - The format, if its columns are short and sorted among all, and columns of its rows increase

  Input Parameters:
+ opts     - the options
. csr      - arrays on the GPU
- maxbytes - most bytes that the format may take, 0 for no limit

  Output Parameters:
+ built    - the format, NULL where there is not enough memory
- areshort - false where it is not such a matrix: then the format is NULL, or has memory for its entries and nothing else
*/
PetscErrorCode FastLoadBuildShort(const FastLoadOptions *opts, const GallopCSR *csr, PetscCount maxbytes, FastLoad **built, PetscBool *areshort)
{
  const FastLoadOptions options = FastLoadChoose(opts, csr, 0), scattered = FastLoadChoose(opts, csr, FASTLOAD_SAMPLES * (PetscCount)csr->n);
  FastLoad             *fl;
  ShortWorkspace        w = {};
  Reply                 reply;
  const int             most = (int)PetscMin(Longest, PetscMax(Least, 9 * csr->nz / (8 * (PetscCount)csr->n) + 3)); /* entries of the longest column, if all are about equal */
  void                 *base, *data;
  PetscBool             done;
  cudaStream_t          stream;

  PetscFunctionBegin;
  *built    = NULL;
  *areshort = (PetscBool)(options.groups && !options.window && csr->n <= PETSC_MPI_INT_MAX && csr->m <= GallopColumnRows); /* kernels count columns by int */
  if (!*areshort) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(FastLoadCreate_Device(&options, csr, &fl));
  fl->ncols   = csr->n;
  fl->blknz   = csr->nz;
  fl->indexed = options.deterministic;
  w.tile      = FastLoadCeil(FastLoadCeil(csr->n, Tiles), Threads) * Threads;
  w.ntiles    = (int)FastLoadCeil(csr->n, w.tile);
  w.blocks    = *fl;
  CountMost(csr, scattered.height, &w.blocks);
  PetscCall(GallopWorkspaceMalloc(CarveShort(&w, fl, csr, NULL), &base));
  done = (PetscBool)(base != NULL);
  if (done) {
    (void)CarveShort(&w, fl, csr, base);
    PetscCall(Plan(fl, csr, options.height, scattered.height, &w, stream));
    PetscCall(FastLoadTakeEntries(fl, maxbytes, &done));
  }
  if (done) {
    PetscCall(Fill(fl, csr, most, &w, stream));
    PetscCall(FastLoadProductOverlaps(&fl->overlaps)); /* while the GPU works */
    PetscCall(GallopDeviceCopyOut(&reply, w.groups.reply, sizeof(reply)));
    *areshort = (PetscBool)(reply.found.longest <= Longest && (fl->indexed || !reply.found.unsorted));
    if (*areshort) {
      if (reply.found.longest > most) {
        PetscCall(FastLoadFillGroups(&w.blocks, csr, &w.groups, reply.found.longest, stream));
        PetscCall(GallopDeviceCopyOut(&reply, w.groups.reply, sizeof(reply)));
      }
      fl->options.height = fl->height = reply.scattered ? scattered.height : options.height;
      fl->blkNum                      = reply.blocks;
      fl->taskNum                     = reply.tasks;
      fl->lineNum                     = reply.lines;
      fl->longNum                     = reply.found.nlong;
      fl->rows                        = reply.rows;
      fl->single                      = (PetscBool)reply.single;
      fl->zeros                       = (PetscBool)reply.zeros;
      PetscCall(Complete(fl, csr, (PetscCount)reply.rowbytes, &w, stream, maxbytes, &done));
    }
  }
  data = fl;
  if (done) *built = fl;
  else PetscCall(FastLoadDestroy_Device(&data));
  PetscCall(GallopWorkspaceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}
