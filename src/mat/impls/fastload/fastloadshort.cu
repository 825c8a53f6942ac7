/* SPDX-License-Identifier: BSD-2-Clause */
/*
  FASTLOAD on the GPU: its build where all columns are short, as they are in most matrices, and sorted among all. From how many columns there are of each length the host knows all groups of columns,
  their blocks, and where entries begin. So an entry, which has a number in its column in whatever order the GPU counts, goes to its group at once, into the memory of its value, and fastloadgroups.cu
  puts the entries of each group into order.
*/

#include "fastloadshort.cuh"

static constexpr int Loads = 8;    /* numbers that a lane loads before it uses the first */
static constexpr int Tiles = 1024; /* most parts of the columns that are sorted by a thread block each */

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

/* A warp for each length: those in the tiles before each */
__global__ static void __launch_bounds__(Threads) TilesKernel(int lengths, int num, PetscInt *tiles)
{
  const int length = (int)(GallopGlobalThread() / WarpSize), lane = threadIdx.x % WarpSize;
  int       before = 0;

  if (length >= lengths) return;
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
__global__ static void __launch_bounds__(Threads) ColumnsKernel(PetscInt n, PetscInt tile, int lengths, In<unsigned int> count, In<PetscInt> tiles, In<Order> order, PetscInt *perm, Place *places)
{
  __shared__ PetscInt next[Warps][Lengths]; /* the next column of each length of a warp */
  const int           warp = threadIdx.x / WarpSize;

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
__global__ static void __launch_bounds__(Threads) EntriesKernel(PetscInt m, PetscInt limit, int lanes, In<PetscInt> i, In<PetscInt> j, In<Place> places, In<unsigned char> numbers, GallopColumnEntry *entries, unsigned char *apart)
{
  const PetscCount r    = GallopGlobalThread() / lanes;
  const int        lane = (int)(threadIdx.x % lanes);

  if (r >= m) return;
  const PetscInt begin = i[r], end = i[r + 1];

  if (begin == end || end - begin > limit) return;
  const PetscInt group   = places[j[begin]].group;
  bool           several = false;

#pragma unroll 4
  for (PetscInt k = begin + lane; k < end; k += lanes) {
    const Place    place = places[j[k]];
    const PetscInt at    = place.at + (place.group < 0 ? numbers[k] : numbers[k] * WarpSize);

    entries[(PetscCount)at * Apart] = {(PetscInt)r, k};
    several                         = several || place.group != group;
  }
  if (several) apart[r] = Elsewhere;
}

/* Rows, then what sorting columns takes; once entries are in groups, offsets lie where that was */
struct ShortWorkspace {
  Census            *census;
  unsigned char     *apart; /* [m] Elsewhere, or 0, or 1 + the number of a block in the only group that has the row */
  Order             *order;
  PetscInt          *longrows; /* in any order */
  GallopColumnEntry *entries;  /* [nz] where they do not fit in the memory of values */
  char              *cub;
  size_t             cubbytes, zero; /* zero: bytes to be zeroed, from census on */
  Place             *places;         /* [n] */
  PetscInt          *tiles;          /* [Lengths][ntiles] */
  unsigned int      *count;          /* [n] entries of each column */
  unsigned char     *numbers;        /* [nz] the number of each entry in its column */
  unsigned char     *offsets;        /* as many as nz PetscInts, where these four were */
  PetscInt           tile;           /* columns of a tile */
  int                ntiles;
};

/* Runs twice: with a null base it measures, then it hands out */
static size_t CarveShort(ShortWorkspace *w, const FastLoadOptions *o, const GallopCSR *csr, void *base)
{
  GallopCarver   carver(base);
  unsigned char *zero;

  w->zero = sizeof(Census) + (size_t)csr->m;
  carver.Take(zero, (PetscCount)w->zero);
  w->census = reinterpret_cast<Census *>(zero);
  w->apart  = base ? zero + sizeof(Census) : NULL;
  carver.Take(w->order, 1);
  carver.Take(w->longrows, csr->nz / o->long_row + 1);
  w->entries = NULL;
  if (!InValues) carver.Take(w->entries, csr->nz);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  carver.Take(w->offsets, (PetscCount)PetscMax(csr->nz * sizeof(PetscInt), csr->n * (sizeof(Place) + sizeof(*w->count)) + (size_t)Lengths * w->ntiles * sizeof(PetscInt) + csr->nz));
  w->places  = reinterpret_cast<Place *>(w->offsets);
  w->tiles   = base ? reinterpret_cast<PetscInt *>(w->places + csr->n) : NULL;
  w->count   = base ? reinterpret_cast<unsigned int *>(w->tiles + (PetscCount)Lengths * w->ntiles) : NULL;
  w->numbers = base ? reinterpret_cast<unsigned char *>(w->count + csr->n) : NULL;
  return carver.Bytes();
}

/* Blocks, tasks and lines of a group, whose columns have these lengths, as the host's PlanGroups() cuts it */
static void CountGroup(PetscInt limit, int length, const PetscInt len[], Run *run)
{
  const PetscInt most  = len[length - 1];
  PetscInt       chain = 0;
  int            at    = 0;

  run->nblocks = run->ntasks = 0;
  run->nlines                = most;
  for (PetscInt k = 0; k < most;) {
    while (len[at] <= k) at++; /* columns that are at their end */
    const PetscInt cut = limit ? FastLoadCut(limit, WarpSize, length - at) : most;

    if (k % cut == 0 || (limit && most > limit && chain == FASTLOAD_CHAIN)) {
      run->ntasks++;
      chain = 0;
    }
    chain++;
    run->nblocks++;
    k = PetscMin(len[at], (k / cut + 1) * cut);
  }
}

/* All numbers of the format, and where entries and blocks of groups begin, from columns of each length */
static void PlanShort(FastLoad *fl, const Census *census, Order *o)
{
  const PetscInt groups  = FastLoadCeil(fl->ncols, WarpSize);
  PetscInt       columns = 0, entries = 0;
  int            first = 0; /* length of the group's first column */

  for (int length = 0; length < Lengths; length++) {
    o->columns[length] = columns;
    o->entries[length] = entries;
    columns += (PetscInt)census->columns[length];
    entries += (PetscInt)census->columns[length] * length;
  }
  o->columns[Lengths] = columns;
  o->entries[Lengths] = entries;
  o->runs             = 0;
  fl->single          = PETSC_TRUE;
  fl->zeros           = (PetscBool)(census->columns[0] > 0);
  for (PetscInt g = 0; g < groups;) {
    const PetscInt begin  = g * WarpSize;
    const int      length = (int)PetscMin(WarpSize, fl->ncols - begin);
    Run           *run    = &o->run[o->runs++];
    PetscInt       len[WarpSize], alike;

    while (o->columns[first + 1] <= begin) first++;
    alike = (o->columns[first + 1] - begin) / WarpSize;
    for (int k = 0, own = first; k < length; k++) {
      while (o->columns[own + 1] <= begin + k) own++;
      len[k] = own;
    }
    run->group  = g;
    run->length = alike ? first : -1;
    run->blocks = fl->blkNum;
    run->tasks  = fl->taskNum;
    run->lines  = fl->lineNum;
    CountGroup(fl->height, length, len, run);
    if (run->ntasks > 1) fl->single = PETSC_FALSE;
    alike = PetscMax(alike, 1);
    fl->blkNum += alike * run->nblocks;
    fl->taskNum += alike * run->ntasks;
    fl->lineNum += alike * run->nlines;
    g += alike;
  }
}

/* With a plan: takes memory and fills it; *done is false where there is not enough */
static PetscErrorCode CompleteShort(FastLoad *fl, const GallopCSR *csr, const Order *plan, int longest, const GallopLongRows *longrows, ShortWorkspace *w, cudaStream_t stream, PetscCount maxbytes, PetscBool *done)
{
  const int          lanes = GallopColumnsLanes(csr->nz, csr->m, GallopColumnsRowLanes);
  GallopColumnEntry *entries;
  const PetscInt    *order;
  void              *memory;
  PetscCount         rowbytes;

  PetscFunctionBegin;
  PetscCall(FastLoadTakeArrays(fl, maxbytes, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  entries = InValues ? reinterpret_cast<GallopColumnEntry *>(fl->value) : w->entries;
  PetscCall(GallopDeviceCopyIn(w->order, plan, sizeof(*plan)));
  ColumnsKernel<<<(unsigned int)w->ntiles, Threads, 0, stream>>>(csr->n, w->tile, longest + 1, w->count, w->tiles, w->order, fl->perm, w->places);
  GallopCheckLaunch();
  if (fl->blkNum) {
    EntriesKernel<<<GallopBlocksFor((PetscCount)csr->m * lanes, Threads), Threads, 0, stream>>>(csr->m, fl->options.long_row, lanes, csr->i, csr->j, w->places, w->numbers, entries, w->apart);
    GallopCheckLaunch();
    PetscCall(FastLoadFillGroups(fl, csr, w->order, longest, entries, w->apart, w->offsets, stream));
    PetscCall(FastLoadSumCounts(w->cub, w->cubbytes, fl->blkRow, (PetscCount)fl->blkNum + 1, stream));
  } else {
    PetscCall(GallopDeviceZero(fl->blkPtr, sizeof(*fl->blkPtr)));
    PetscCall(GallopDeviceZero(fl->blkLine, sizeof(*fl->blkLine)));
    PetscCall(GallopDeviceZero(fl->blkRow, sizeof(*fl->blkRow)));
    PetscCall(GallopDeviceZero(fl->taskBlk, sizeof(*fl->taskBlk)));
  }
  PetscCall(FastLoadFillLongRows(fl, csr, longrows, stream));
  if (fl->rowPtr) PetscCall(GallopDeviceCopy(fl->rowPtr, csr->i, (size_t)(fl->m + 1) * sizeof(PetscInt)));
  PetscCall(FastLoadOrderTasks(fl, stream, &memory, &order, done));
  if (*done) PetscCall(FastLoadTakeOffsets(fl, maxbytes, &rowbytes, done)); /* the host waits, also for what was copied from its memory */
  if (*done) PetscCall(FastLoadFinishTasks(fl, order, w->offsets, stream));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  FastLoadBuildShort - The format, if its columns are short and sorted among all

  Input Parameters:
+ opts     - the options
. csr      - arrays on the GPU
- maxbytes - most bytes that the format may take, 0 for no limit

  Output Parameters:
+ built    - the format, NULL where there is not enough memory
- areshort - false where columns are not short, or not sorted among all: then nothing is built
*/
PetscErrorCode FastLoadBuildShort(const FastLoadOptions *opts, const GallopCSR *csr, PetscCount maxbytes, FastLoad **built, PetscBool *areshort)
{
  FastLoadOptions options = FastLoadChoose(opts, csr, 0); /* all but the height */
  FastLoad       *fl;
  ShortWorkspace  w        = {};
  GallopLongRows  longrows = {};
  Census          census;
  Order          *order;
  void           *base, *data;
  int             longest = 0;
  PetscBool       done;
  cudaStream_t    stream;

  PetscFunctionBegin;
  *built    = NULL;
  *areshort = (PetscBool)(options.groups && !options.window && csr->n <= PETSC_MPI_INT_MAX); /* kernels count columns by int */
  if (!*areshort) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  w.tile   = FastLoadCeil(FastLoadCeil(csr->n, Tiles), Threads) * Threads;
  w.ntiles = (int)FastLoadCeil(csr->n, w.tile);
  PetscCall(FastLoadSumCountsBytes(csr->nz + 1, &w.cubbytes, stream)); /* there are no more blocks than entries */
  PetscCall(GallopWorkspaceMalloc(CarveShort(&w, &options, csr, NULL), &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveShort(&w, &options, csr, base);
  PetscCallCUDA(cudaMemsetAsync(w.census, 0, w.zero, stream));
  PetscCallCUDA(cudaMemsetAsync(w.count, 0, (size_t)csr->n * sizeof(*w.count), stream));
  PetscCall(FastLoadSumSpread(csr, &w.census->spread, stream));
  PetscCall(GallopColumnsCount(csr, options.long_row, w.count, w.numbers, w.longrows, &w.census->found, stream));
  CensusKernel<<<(unsigned int)w.ntiles, Threads, 0, stream>>>(csr->n, w.tile, w.count, w.tiles, w.census);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&census, w.census, sizeof(census)));
  for (int length = 0; length < Lengths; length++)
    if (census.columns[length]) longest = length;
  if (PetscMax(longest, census.found.longest) > Longest) {
    *areshort = PETSC_FALSE;
    PetscCall(GallopWorkspaceFree(base));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  TilesKernel<<<WarpsFor(longest + 1), Threads, 0, stream>>>(longest + 1, w.ntiles, w.tiles); /* while the host plans */
  GallopCheckLaunch();
  options = FastLoadChoose(opts, csr, (PetscCount)census.spread);
  PetscCall(FastLoadCreate_Device(&options, csr, &fl));
  fl->longNum = census.found.nlong;
  fl->ncols   = csr->n;
  fl->indexed = (PetscBool)(census.found.unsorted || options.deterministic);
  PetscCall(PetscNew(&order));
  PlanShort(fl, &census, order);
  PetscCall(FastLoadPlanLongRows(fl, csr, w.longrows, &longrows));
  PetscCall(CompleteShort(fl, csr, order, longest, &longrows, &w, stream, maxbytes, &done));
  data = fl;
  if (done) *built = fl;
  else PetscCall(FastLoadDestroy_Device(&data));
  PetscCall(PetscFree(order));
  PetscCall(GallopLongRowsFree(&longrows));
  PetscCall(GallopWorkspaceFree(base));
  PetscFunctionReturn(PETSC_SUCCESS);
}
