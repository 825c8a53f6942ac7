/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's order by hash beside other orders of the same blocks: by sorting (sort2D), by dynamic programming (DP2D), none (plain2D). The kernels are the library's, but for those orders. */

#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cuda_profiler_api.h>
#include <thrust/iterator/transform_iterator.h>
#include "../src/mat/impls/common/bits.h"
#include "../src/mat/impls/hbp/hbpchoose.h"
#include "../src/mat/impls/hbp/hbphash.cuh"
#include "bench.h"
#include "generate.h"
#include "hbpatomic.cuh"

static char help[] = "Times the set-up of HBP on one GPU with its hash and with other orders, on the same blocks, and products with them.\n\
  -generate <name,...>    matrices by name, see below\n\
  -f <file,...>           matrices from files: .mtx, .mtx.gz, or PETSc's binary format; one whose values are all 1 gets random values\n\
  -block_rows <512>       rows of a block, 1 to 2048\n\
  -block_cols <4096>      columns of a block, 1 to 65536\n\
  -shared_x <false>       products with the x of a block in shared memory\n\
  -atomic <false>         products that add the sums of segments to z by atomic operations, without partial sums and combine part\n\
  -fixed <-1>             percent of the work that is shared out beforehand; 100 leaves no tickets; -1 lets HBP choose\n\
  -long_row <0>           rows with more entries are kept out of the blocks, in all ways; 0 lets HBP choose\n\
  -lane_entries <0>       as -mat_hbp_lane_entries, for the hash: with more than a block has columns, each segment has one lane; 0 lets HBP choose\n\
  -block_sort <false>     sort2D and DP2D sort by a kernel of one thread block for each block of the matrix, not by cub::DeviceSegmentedSort\n\
  -min_ms <30>            how long reorderings and products are repeated\n\
  -seed <1>               of the generated matrices and of x\n\
  -once <way>             computes one product by hash or by one of cuSPARSE's algorithms, raw_..., for a profiler that starts by cudaProfilerStart(), and times nothing\n\
\n\
Ways: hash, as HBP has it; sort2D, segments of a block sorted by their lengths; DP2D, sorted and then cut into groups by dynamic programming, so that\n\
least lanes are idle; plain2D, in order of rows, 32 to a group; raw_..., cuSPARSE, for the products.\n\
Output: one line a matrix and way, fields separated by tabs, - for what there is not\n\
  matrix nnz blocks segments way groups\n\
  reorder_us              from the segments of each block, in any order, to their order; of many in a row, median of 7\n\
  setup_us                from CSR arrays on the GPU to all that a product needs: median of 7\n\
  reorder/hash setup/hash over those of the hash\n\
  deviation               of segments' lengths, mean over warps: 32 segments of a block that follow each other\n\
  spmv_us combine_us      the SpMV part by itself, and how much longer both parts take: medians of 7\n\
  product_us product/hash both parts, as the library launches them\n\
  L2                      before products: flushed, with 1 M nonzeros or more, or warm\n\
  err                     largest error of an entry of the result, relative to the sum of |a x| of its row\n\
and at the end geometric means of what is over the hash's.\n\
\n" BENCH_GENERATORS_HELP;

enum {
  HASH,
  SORT,
  DP,
  ROWS,
  RAW, /* the better one of cuSPARSE's, in means */
  WAYS
};

static const char *const Names[WAYS] = {"hash", "sort2D", "DP2D", "plain2D", "best raw"};

static constexpr unsigned int GroupLines = GroupWeight / WarpSize; /* what a group costs besides its lines of entries */

/* ---- orders ---- */

/* What finding another order takes */
struct Orders {
  void           *memory;
  unsigned short *last, *sorted;   /* [segNum] lengths less 1, by number and in order */
  PetscInt       *which, *order;   /* [segNum] records by number, and in order */
  unsigned char  *mark;            /* [segNum] DP2D: 1 + log2 of the lanes of a segment where a group begins, else 0 */
  PetscInt       *groups, *before; /* [blocks + 1] DP2D: groups of each block, and of those before */
  char           *cub;
  size_t          cubbytes;
};

struct FirstSegment {
  __host__ __device__ PetscInt operator()(const HBPOffsets &o) const { return o.seg; }
};

/* The first half of HashKernel() in hbpfill.cu by itself */
__global__ static void HashOrderKernel(HBP h, PetscCount blocks, const HBPOffsets *__restrict__ offsets, const HBPRecord *__restrict__ rec, int most, PetscInt *__restrict__ order)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     hashes = (int)HBPHashes(&h.hash);
  const PetscCount                              b      = GallopGlobalThread() / WarpSize;

  if (b >= blocks) return;
  const PetscInt first = offsets[b].seg, segs = offsets[b + 1].seg - first;

  if (!segs) return;
  const Shelf shelf = GetShelf(memory, h.N, hashes, most);

  PlaceSegments(h.hash, h.N, segs, rec + first, shelf);
  for (PetscInt k = threadIdx.x % WarpSize; k < segs; k += WarpSize) order[first + k] = first + shelf.place[k];
}

/* What is sorted: lengths, and the numbers of the records */
__global__ static void NumberKernel(PetscInt n, const HBPRecord *__restrict__ rec, unsigned short *__restrict__ last, PetscInt *__restrict__ which)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= n) return;
  last[k]  = rec[k].last;
  which[k] = (PetscInt)k;
}

/* A thread block for each block of the matrix sorts its segments by length */
template <int Each>
__global__ static void __launch_bounds__(FewThreads) SortKernel(const HBPOffsets *__restrict__ offsets, const HBPRecord *__restrict__ rec, int bits, unsigned short *__restrict__ sorted, PetscInt *__restrict__ order)
{
  using Sort = cub::BlockRadixSort<unsigned short, FewThreads, Each, unsigned short>;
  __shared__ typename Sort::TempStorage memory;
  const PetscInt                        first = offsets[blockIdx.x].seg, segs = offsets[blockIdx.x + 1].seg - first;
  unsigned short                        key[Each], value[Each];

  if (!segs) return;
  for (int k = 0; k < Each; k++) {
    const int at = (int)threadIdx.x * Each + k;

    key[k]   = at < segs ? rec[first + at].last : 0xffff; /* stays behind the others */
    value[k] = (unsigned short)at;
  }
  Sort(memory).SortBlockedToStriped(key, value, 0, bits);
  for (int k = 0; k < Each; k++) {
    const int at = (int)threadIdx.x + k * FewThreads;

    if (at >= segs) continue;
    sorted[first + at] = key[k];
    order[first + at]  = first + value[k];
  }
}

/* log2 of the lanes that each of c segments has that are a group: all have as many, and an entry for each */
static __device__ __forceinline__ int GroupLanes(int c, PetscInt shortest)
{
  return min(__clz(c - 1) - 27, 31 - __clz((int)shortest));
}

/*
  A warp a block: cuts sorted segments into groups, so that these have the fewest lines of lanes, and few groups are made. The least cost of the first i segments is that of the
  first i - c, and a group of the next c; each lane tries its own c.
*/
__global__ static void __launch_bounds__(Threads) CutKernel(PetscInt N, PetscCount blocks, const HBPOffsets *__restrict__ offsets, const unsigned short *__restrict__ sorted, unsigned char *__restrict__ mark, PetscInt *__restrict__ groups)
{
  extern __shared__ unsigned char choices[];
  unsigned char *const            choice = choices + (threadIdx.x / WarpSize) * ((size_t)N + 1);
  const int                       lane = threadIdx.x % WarpSize, c = lane + 1;
  const PetscCount                b        = GallopGlobalThread() / WarpSize;
  unsigned int                    before   = 0; /* least cost of the segments but the last c */
  int                             shortest = 0, lengths = 0;

  if (b > blocks) return;
  const PetscInt first = offsets[b].seg, segs = b < blocks ? offsets[b + 1].seg - first : 0;

  for (int i = 1; i <= segs; i++) {
    if (i % WarpSize == 1) lengths = i - 1 + lane < segs ? (int)sorted[first + i - 1 + lane] + 1 : 0;
    const int    longest = __shfl_sync(All, lengths, (i - 1) % WarpSize), other = __shfl_up_sync(All, shortest, 1);
    unsigned int cost = All;

    shortest = lane ? other : longest;
    if (c <= i) {
      const int lanes = GroupLanes(c, shortest);

      cost = (before + (unsigned int)HBPLaneLength(longest, lanes, 0) + GroupLines) * WarpSize + WarpSize - c; /* the largest c of equal costs */
    }
    const unsigned int least = GallopWarpMin(cost), up = __shfl_up_sync(All, before, 1);

    if (!lane) choice[i] = (unsigned char)(WarpSize - least % WarpSize);
    before = lane ? up : least / WarpSize;
  }
  for (PetscInt k = lane; k < segs; k += WarpSize) mark[first + k] = 0;
  __syncwarp();
  if (lane) return;
  PetscInt num = 0;

  for (PetscInt i = segs; i; num++) {
    const int size = choice[i];

    i -= size;
    mark[first + i] = (unsigned char)(1 + GroupLanes(size, (PetscInt)sorted[first + i] + 1));
  }
  groups[b] = num;
}

__global__ static void GroupOffsetsKernel(PetscCount n, const PetscInt *__restrict__ before, HBPOffsets *__restrict__ offsets)
{
  const PetscCount b = GallopGlobalThread();

  if (b < n) offsets[b].group = before[b];
}

/* The second half of HashKernel() in hbpfill.cu, with an order that has been found, and groups of 32 or as they are marked */
__global__ static void __launch_bounds__(Threads) PlaceKernel(HBP h, PetscCount blocks, const HBPOffsets *__restrict__ offsets, const PetscInt *__restrict__ partials, const HBPRecord *__restrict__ rec, const PetscInt *__restrict__ order, const unsigned char *__restrict__ mark, PetscInt *__restrict__ start, unsigned short *__restrict__ partialRow)
{
  const int        lane = threadIdx.x % WarpSize;
  const PetscCount b    = GallopGlobalThread() / WarpSize;

  if (b >= blocks) return;
  const HBPOffsets first = offsets[b];
  const PetscInt   segs = offsets[b + 1].seg - first.seg, rb = (PetscInt)(b % h.rowBlocks), cb = (PetscInt)(b / h.rowBlocks);
  PetscInt         ptr = first.nnz, out = partials[(PetscCount)rb * h.colBlocks + cb], g = first.group;

  if (!segs) return;
  if (lane == 0) h.begin_nnz[first.blk] = ptr;
  for (PetscInt s = 0, count; s < segs; s += count, g++) {
    int lanes = 0;

    count = segs - s < HBP_GROUP ? segs - s : HBP_GROUP;
    if (mark) {
      const PetscInt next = s + 1 + lane;

      count = __ffs(__ballot_sync(All, next >= segs || mark[first.seg + next])); /* where the next group begins */
      lanes = mark[first.seg + s] - 1;
    }
    const bool         mine     = lane < count;
    const HBPRecord    own      = mine ? rec[order[first.seg + s + lane]] : HBPRecord{0, 0, HBP_FLAG};
    PetscInt           len      = mine ? (PetscInt)own.last + 1 : 0;
    const int          row      = own.row;
    const unsigned int summed   = __ballot_sync(All, !(row & HBP_FLAG));
    const int          shortest = __shfl_sync(All, (int)len, 0);
    const bool         equal    = __all_sync(All, !mine || (len == shortest && len % (1 << lanes) == 0));

    if (mine) {
      const PetscInt to = first.seg + s + lane;

      h.output_hash[to] = HBPOutput(row, len, h.longest);
      if (h.nnz_perrow) h.nnz_perrow[to] = (unsigned short)(len - 1);
      start[to] = own.start;
    }
    if (!(row & HBP_FLAG)) partialRow[out + __popc(summed & LanesBelow())] = (unsigned short)row;
    if (lane == 0) h.group[g] = {ptr, first.seg + s, summed ? out : -1, HBPInfo(rb, equal, lanes)};
    out += __popc(summed);
    for (int by = WarpSize / 2; by; by /= 2) len += GallopShuffleWords(len, [=](int word) { return __shfl_xor_sync(All, word, by); });
    ptr += len;
  }
}

/* ---- set-up ---- */

struct SetUp {
  int               way;
  PetscBool         blocksort;
  const HBPOptions *options;
  const GallopCSR  *csr;
  HBPSample         sample;
  HBP              *h; /* the result */
  HBPMatrix         A;
  HBPWork           w;
  Orders            o;
  GallopLongRows    longRows;
  cudaStream_t      stream;
};

static PetscErrorCode NeedMemory(const void *memory)
{
  PetscFunctionBegin;
  PetscCheck(memory, PETSC_COMM_SELF, PETSC_ERR_MEM, "The GPU has no room for this matrix");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the choice of blocks the hash alone needs a look at the matrix */
static PetscErrorCode LookAt(SetUp *s)
{
  PetscInt M[2];
  HBP     *h;

  PetscFunctionBegin;
  PetscCall(HBPCreate(s->csr, s->options, PETSC_MEMTYPE_CUDA, &h));
  HBPCandidates(s->options, M);
  PetscCall(HBPTakeLook(h, &s->w.look, s->stream));
  PetscCall(NeedMemory(s->w.look.memory));
  PetscCall(HBPLook(h, s->csr, M, &s->w.look, s->stream));
  PetscCall(GallopDeviceCopyOut(&s->sample, &s->w.look.survey->sample, sizeof(s->sample)));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Up to the segments of each block, in any order: the stages of a build in hbpdevice.cu */
static PetscErrorCode Collect(SetUp *s)
{
  const GallopCSR *csr = s->csr;
  HBP             *h;
  HBPFound        *found;
  PetscInt         M[2];

  PetscFunctionBegin;
  PetscCall(HBPCreate(csr, s->options, PETSC_MEMTYPE_CUDA, &h));
  s->h = h;
  HBPCandidates(&h->options, M);
  HBPChoose(M, &s->sample, h);
  if (s->way != HASH) h->hash = {30, 1, 0, 1}; /* the same for all segments: they stay in order of rows, a lane each */
  PetscCheck(HBPFits(h), PETSC_COMM_SELF, PETSC_ERR_SUP, "There are far more blocks of %" PetscInt_FMT " rows by %" PetscInt_FMT " columns than entries", h->N, h->M);
  PetscCall(HBPTakeCounts(h, &s->w, s->stream));
  PetscCall(NeedMemory(s->w.count.memory));
  s->A = HBPMatrixOf(h, csr->i, csr->j);
  PetscCall(HBPFindTiles(h, &s->A, &s->w, s->stream));
  PetscCall(PetscMalloc(FoundBytes(h->colBlocks), (void **)&found));
  PetscCall(HBPCount(h, &s->A, &s->w, found, s->stream));
  PetscCheck(!found->unsorted, PETSC_COMM_SELF, PETSC_ERR_SUP, "Columns do not increase in each row");
  PetscCall(HBPSetNumbers(h, csr, found, s->w.count.longRows, &s->longRows));
  PetscCall(PetscFree(found));
  PetscCall(HBPTakeRecords(h, &s->w.fill));
  PetscCall(NeedMemory(s->w.fill.memory));
  PetscCall(HBPCollect(h, &s->A, &s->w, s->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceSort(const SetUp *s, char *cub, size_t *bytes)
{
  const auto begin = thrust::make_transform_iterator(s->w.count.offsets, FirstSegment());

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceSegmentedSort::StableSortPairs(cub, *bytes, s->o.last, s->o.sorted, s->o.which, s->o.order, s->h->segNum, (PetscCount)s->h->rowBlocks * s->h->colBlocks, begin, begin + 1, s->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceSum(const SetUp *s, char *cub, size_t *bytes)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(cub, *bytes, s->o.groups, s->o.before, (PetscCount)s->h->rowBlocks * s->h->colBlocks + 1, s->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t CarveOrders(Orders *o, const HBP *h, void *base)
{
  GallopCarver     carver(base);
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  carver.Take(o->last, h->segNum);
  carver.Take(o->sorted, h->segNum);
  carver.Take(o->which, h->segNum);
  carver.Take(o->order, h->segNum);
  carver.Take(o->mark, h->segNum);
  carver.Take(o->groups, blocks + 1);
  carver.Take(o->before, blocks + 1);
  carver.Take(o->cub, (PetscCount)o->cubbytes);
  return carver.Bytes();
}

static PetscErrorCode TakeOrders(SetUp *s)
{
  size_t sort = 0, sum = 0;

  PetscFunctionBegin;
  if (!s->blocksort && s->way != HASH) PetscCall(DeviceSort(s, NULL, &sort));
  if (s->way == DP) PetscCall(DeviceSum(s, NULL, &sum));
  s->o.cubbytes = PetscMax(sort, sum);
  PetscCall(GallopWorkspaceMalloc(CarveOrders(&s->o, s->h, NULL), &s->o.memory));
  PetscCall(NeedMemory(s->o.memory));
  (void)CarveOrders(&s->o, s->h, s->o.memory);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The reordering by itself */
static PetscErrorCode Reorder(void *ctx)
{
  SetUp           *s      = (SetUp *)ctx;
  const HBP       *h      = s->h;
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;

  PetscFunctionBegin;
  if (!h->segNum) PetscFunctionReturn(PETSC_SUCCESS);
  if (s->way == HASH) {
    size_t    shelf;
    const int warps = HashWarps(h, s->w.fill.most, &shelf);

    HashOrderKernel<<<GallopBlocksFor(blocks, warps), warps * WarpSize, warps * shelf, s->stream>>>(*h, blocks, s->w.count.offsets, s->w.fill.rec, s->w.fill.most, s->o.order);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (s->blocksort) {
    const int bits = PetscMin(GallopSortBits(h->M - 1), 16);

    if (h->N <= 4 * FewThreads) SortKernel<4><<<(unsigned int)blocks, FewThreads, 0, s->stream>>>(s->w.count.offsets, s->w.fill.rec, bits, s->o.sorted, s->o.order);
    else SortKernel<HBP_MAX_ROWS / FewThreads><<<(unsigned int)blocks, FewThreads, 0, s->stream>>>(s->w.count.offsets, s->w.fill.rec, bits, s->o.sorted, s->o.order);
    GallopCheckLaunch();
  } else {
    NumberKernel<<<GallopBlocksFor(h->segNum, Threads), Threads, 0, s->stream>>>(h->segNum, s->w.fill.rec, s->o.last, s->o.which);
    GallopCheckLaunch();
    PetscCall(DeviceSort(s, s->o.cub, &s->o.cubbytes));
  }
  if (s->way == DP) {
    CutKernel<<<GallopBlocksFor(blocks + 1, Warps), Threads, Warps *((size_t)h->N + 1), s->stream>>>(h->N, blocks, s->w.count.offsets, s->o.sorted, s->o.mark, s->o.groups);
    GallopCheckLaunch();
    PetscCall(DeviceSum(s, s->o.cub, &s->o.cubbytes));
    GroupOffsetsKernel<<<GallopBlocksFor(blocks + 1, Threads), Threads, 0, s->stream>>>(blocks + 1, s->o.before, s->w.count.offsets);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays, their conversion, launches: the other stages of a build in hbpdevice.cu, with segments as they have been ordered */
static PetscErrorCode Convert(SetUp *s)
{
  HBP             *h      = s->h;
  const PetscCount blocks = (PetscCount)h->rowBlocks * h->colBlocks;
  HBPOffsets      *ends;
  HBPCuts          cuts;

  PetscFunctionBegin;
  if (s->way == DP && h->segNum) PetscCall(GallopDeviceCopyOut(&h->groupNum, s->o.before + blocks, sizeof(h->groupNum)));
  PetscCall(PetscMalloc1(h->colBlocks + 1, &ends));
  PetscCallCUDA(cudaMemcpy2DAsync(ends, sizeof(*ends), s->w.count.offsets, (size_t)h->rowBlocks * sizeof(*ends), sizeof(*ends), (size_t)h->colBlocks + 1, cudaMemcpyDeviceToHost, s->stream)); /* other groups than were counted, maybe */
  PetscCallCUDA(cudaStreamSynchronize(s->stream));
  PetscCall(HBPMakePlan(h, ends, &cuts));
  PetscCall(PetscFree(ends));
  PetscCall(HBPTakeArrays(h, 0));
  PetscCall(NeedMemory(h->data));
  PetscCall(HBPFillBounds(h, &s->A, &s->w.count, s->stream));
  if (s->way == SORT || s->way == DP) {
    PlaceKernel<<<GallopBlocksFor(blocks, Warps), Threads, 0, s->stream>>>(*h, blocks, s->w.count.offsets, s->w.count.partials, s->w.fill.rec, s->o.order, s->way == DP ? s->o.mark : nullptr, s->w.fill.start,
                                                                           s->w.fill.partialRow);
    GallopCheckLaunch();
  } else PetscCall(HBPFillGroups(h, &s->w, s->stream));
  PetscCall(HBPFillCombine(h, s->w.fill.partialRow, s->stream));
  PetscCall(HBPCopyLongRows(h, &s->longRows));
  PetscCall(HBPConvert(h, s->csr, &s->A, &s->w, s->stream));
  PetscCall(HBPCutPlan(h, &cuts, s->stream));
  PetscCall(PetscFree(cuts.sections));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReleaseWork(SetUp *s)
{
  PetscFunctionBegin;
  PetscCall(GallopWorkspaceFree(s->o.memory));
  s->o.memory = NULL;
  PetscCall(HBPReleaseWork(&s->w));
  PetscCall(GallopLongRowsFree(&s->longRows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyBuilt(SetUp *s)
{
  void *data = s->h;

  PetscFunctionBegin;
  PetscCall((*HBPDevice.destroy)(&data));
  s->h = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All of it. By hash the order is found where the segments are placed. */
static PetscErrorCode RunSetUp(void *ctx)
{
  SetUp *s = (SetUp *)ctx;

  PetscFunctionBegin;
  if (s->way == HASH) PetscCall(LookAt(s));
  PetscCall(Collect(s));
  if (s->way == SORT || s->way == DP) {
    PetscCall(TakeOrders(s));
    PetscCall(Reorder(s));
  }
  PetscCall(Convert(s));
  PetscCall(ReleaseWork(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- measurements ---- */

/* Figures of a way; what there is not, is negative */
typedef struct {
  PetscInt       groups;
  PetscLogDouble reorder, setup, spmv, product;
  PetscReal      deviation, err;
} Figures;

/* The product that is timed, of which HBPApply_Device() may leave out a part */
struct Product {
  HBP                h;
  const PetscScalar *x;
  PetscScalar       *z;
  PetscBool          atomic;
};

static PetscErrorCode ApplyProduct(void *ctx)
{
  static const PetscScalar one = 1, zero = 0;
  Product                 *p       = (Product *)ctx;
  const GallopProduct      product = {&one, &zero, p->x, NULL, p->z, NULL, NULL};

  PetscFunctionBegin;
  if (p->atomic) PetscCall(HBPApplyAtomic(&p->h, p->x, p->z));
  else PetscCall(HBPApply_Device(&p->h, &product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeProduct(const BenchProblem *problem, PetscReal min_ms, BenchWork work, void *ctx, PetscLogDouble *seconds)
{
  PetscFunctionBegin;
  PetscCall(BenchTimeWarm(&BenchDevice, work, ctx, min_ms, seconds, NULL));
  if (problem->nz >= 1000000) PetscCall(BenchTimeCold(&BenchDevice, work, ctx, seconds, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HBPOptions options;
  PetscBool  blocksort, atomic;
  char       once[32];
  BenchInput in;
  PetscInt   matrices;
  PetscReal  reorder[WAYS], setup[WAYS], product[WAYS]; /* sums of the logarithms of ratios */
} Bench;

static PetscErrorCode CheckResult(Bench *b, const BenchProblem *problem, const char way[], BenchWork work, void *ctx, Vec y, PetscReal *err)
{
  const PetscScalar *values;

  PetscFunctionBegin;
  PetscCall(VecSet(y, INFINITY)); /* so that what a product does not write shows */
  PetscCall((*work)(ctx));
  PetscCall(VecGetArrayRead(y, &values));
  PetscCall(BenchProblemError(problem, values, problem->ny, err));
  PetscCall(VecRestoreArrayRead(y, &values));
  if (*err <= (100 + problem->longest) * PETSC_MACHINE_EPSILON) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# WRONG %s %s: error %.1e\n", problem->name, way, (double)*err));
  b->in.wrong++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetProduct(const Bench *b, const SetUp *s, Vec x, Vec y, Product *p)
{
  PetscFunctionBegin;
  *p = {*s->h, NULL, NULL, b->atomic};
  PetscCall(BenchDeviceArrays(x, y, &p->x, &p->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Profile(BenchWork work, void *ctx)
{
  PetscFunctionBegin;
  PetscCall((*work)(ctx)); /* kernels are loaded at their first launch */
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaProfilerStart());
  PetscCall((*work)(ctx));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaProfilerStop());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product of the way that is named, for a profiler */
static PetscErrorCode RunOnce(Bench *b, const BenchProblem *problem, SetUp *s, Vec x, Vec y)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(b->once, Names[HASH], &same));
  if (same) {
    Product p;

    s->way = HASH;
    PetscCall(RunSetUp(s));
    PetscCall(SetProduct(b, s, x, y, &p));
    PetscCall(Profile(ApplyProduct, &p));
    PetscCall(DestroyBuilt(s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 0; k < BenchDevice.nraws; k++) {
    void *raw;

    PetscCall(PetscStrcmp(b->once, BenchDevice.raws[k].name, &same));
    if (!same) continue;
    PetscCall((*BenchDevice.rawcreate)(problem->A, k, PETSC_FALSE, 0, x, y, &raw));
    PetscCall(Profile(BenchDevice.rawapply, raw));
    PetscCall((*BenchDevice.rawdestroy)(&raw));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option -once is %s, but must be %s or one of cuSPARSE's ways", b->once, Names[HASH]);
}

static PetscErrorCode Measure(Bench *b, const BenchProblem *problem, SetUp *s, Vec x, Vec y, Figures *f)
{
  PetscReal      times[BENCH_MEASUREMENTS], byrow;
  PetscLogDouble t;
  Product        both, spmv;
  HBP           *copy;

  PetscFunctionBegin;
  f->reorder = -1;
  if (s->way != ROWS) {
    PetscCall(Collect(s));
    PetscCall(TakeOrders(s));
    PetscCall(BenchTimeWarm(&BenchDevice, Reorder, s, b->in.min_ms, &f->reorder, NULL));
    PetscCall(ReleaseWork(s));
    PetscCall(DestroyBuilt(s));
  }
  for (int k = -2; k < BENCH_MEASUREMENTS; k++) { /* the first two, to warm up */
    PetscCall((*BenchDevice.time)(RunSetUp, s, 1, &t));
    if (k >= 0) times[k] = (PetscReal)t;
    if (k < BENCH_MEASUREMENTS - 1) PetscCall(DestroyBuilt(s));
  }
  PetscCall(BenchMedian(times, &f->setup, NULL));
  f->groups = s->h->groupNum;
  PetscCall(HBPCopyToHost(s->h, &copy));
  PetscCall(HBPGetDeviations(copy, &byrow, &f->deviation));
  PetscCall(HBPDestroyHostCopy(&copy));

  PetscCall(SetProduct(b, s, x, y, &both));
  spmv         = both;
  spmv.h.alone = PETSC_TRUE; /* as if there were no combine part */
  PetscCall(CheckResult(b, problem, Names[s->way], ApplyProduct, &both, y, &f->err));
  PetscCall(TimeProduct(problem, b->in.min_ms, ApplyProduct, &both, &f->product));
  f->spmv = b->atomic ? -1 : f->product;
  if (!s->h->alone && !b->atomic) PetscCall(TimeProduct(problem, b->in.min_ms, ApplyProduct, &spmv, &f->spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number, or a - */
static PetscErrorCode PrintField(const char format[], double value)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\t"));
  if (value < 0) PetscCall(PetscPrintf(PETSC_COMM_SELF, "-"));
  else PetscCall(PetscPrintf(PETSC_COMM_SELF, format, value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintLine(const BenchProblem *problem, PetscInt blocks, PetscInt segs, const char way[], const Figures *f, const Figures *hash)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%s", problem->name, problem->nz, blocks, segs, way));
  PetscCall(PrintField("%.0f", (double)f->groups));
  PetscCall(PrintField("%.2f", f->reorder * 1e6));
  PetscCall(PrintField("%.1f", f->setup * 1e6));
  PetscCall(PrintField("%.2f", f->reorder / hash->reorder));
  PetscCall(PrintField("%.2f", f->setup / hash->setup));
  PetscCall(PrintField("%.3g", (double)f->deviation));
  PetscCall(PrintField("%.2f", f->spmv * 1e6));
  PetscCall(PrintField("%.2f", f->spmv < 0 ? -1 : PetscMax(f->product - f->spmv, 0) * 1e6));
  PetscCall(PrintField("%.2f", f->product * 1e6));
  PetscCall(PrintField("%.2f", f->product / hash->product));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\t%s\t%.1e\n", problem->nz >= 1000000 ? "flushed" : "warm", (double)f->err));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix's CSR arrays on the GPU; a is where the allocation begins */
static PetscErrorCode CopyCSR(Mat A, GallopCSR *csr)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscBool          done;
  PetscInt          *di, *dj;
  PetscScalar       *da;
  void              *base;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &csr->m, &csr->n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  csr->nz      = i[csr->m];
  csr->host_i  = i; /* stays as long as A */
  csr->memtype = PETSC_MEMTYPE_CUDA;
  base         = NULL;
  for (int pass = 0; pass < 2; pass++) {
    GallopCarver carver(base);

    carver.Take(da, csr->nz);
    carver.Take(di, (PetscCount)csr->m + 1);
    carver.Take(dj, csr->nz);
    if (pass) break;
    PetscCall(GallopDeviceMalloc(carver.Bytes(), &base));
    PetscCall(NeedMemory(base));
  }
  PetscCall(GallopDeviceCopyIn(da, a, (size_t)csr->nz * sizeof(*a)));
  PetscCall(GallopDeviceCopyIn(di, i, ((size_t)csr->m + 1) * sizeof(*i)));
  PetscCall(GallopDeviceCopyIn(dj, j, (size_t)csr->nz * sizeof(*j)));
  PetscCallCUDA(cudaDeviceSynchronize());
  csr->i = di;
  csr->j = dj;
  csr->a = da;
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateVector(PetscInt n, const PetscScalar values[], Vec *v)
{
  PetscScalar *array;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, v));
  PetscCall(VecSetSizes(*v, n, n));
  PetscCall(VecSetType(*v, VECSEQCUDA));
  if (values) {
    PetscCall(VecGetArrayWrite(*v, &array));
    PetscCall(PetscArraycpy(array, values, n));
    PetscCall(VecRestoreArrayWrite(*v, &array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ways, with their times */
static PetscErrorCode RunWays(Bench *b, const BenchProblem *problem, SetUp *s, Vec x, Vec y)
{
  Figures   f, hash = {};
  PetscReal best   = PETSC_MAX_REAL;
  PetscInt  blocks = 0, segs = 0;

  PetscFunctionBegin;
  for (s->way = HASH; s->way < RAW; s->way++) {
    PetscCall(Measure(b, problem, s, x, y, &f));
    if (s->way == HASH) hash = f;
    blocks = s->h->blkNum;
    segs   = s->h->segNum;
    PetscCall(PrintLine(problem, blocks, segs, Names[s->way], &f, &hash));
    if (f.reorder > 0) b->reorder[s->way] += PetscLogReal((PetscReal)(f.reorder / hash.reorder));
    b->setup[s->way] += PetscLogReal((PetscReal)(f.setup / hash.setup));
    b->product[s->way] += PetscLogReal((PetscReal)(f.product / hash.product));
    PetscCall(DestroyBuilt(s));
  }
  for (PetscInt k = 0; k < BenchDevice.nraws; k++) {
    void *raw;

    if (BenchDevice.raws[k].dense || BenchDevice.raws[k].asked) continue;
    f = {-1, -1, -1, -1, -1, -1, -1};
    PetscCall((*BenchDevice.rawcreate)(problem->A, k, PETSC_FALSE, 0, x, y, &raw));
    PetscCall(CheckResult(b, problem, BenchDevice.raws[k].name, BenchDevice.rawapply, raw, y, &f.err));
    PetscCall(TimeProduct(problem, b->in.min_ms, BenchDevice.rawapply, raw, &f.product));
    PetscCall((*BenchDevice.rawdestroy)(&raw));
    PetscCall(PrintLine(problem, blocks, segs, BenchDevice.raws[k].name, &f, &hash));
    best = PetscMin(best, (PetscReal)f.product);
  }
  b->product[RAW] += PetscLogReal((PetscReal)(best / hash.product));
  b->matrices++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(void *ctx, const char given[], PetscBool file)
{
  Bench       *b = (Bench *)ctx;
  BenchProblem problem;
  GallopCSR    csr;
  SetUp        s = {};
  Vec          x, y;

  PetscFunctionBegin;
  PetscCall(BenchProblemCreate(given, file, b->in.seed, PETSC_FALSE, 0, &problem));
  PetscCheck(problem.nz, PETSC_COMM_SELF, PETSC_ERR_USER, "Matrix %s has no entries", problem.name);
  PetscCall(BenchProblemRemark(&problem));
  PetscCall(CopyCSR(problem.A, &csr));
  PetscCall(CreateVector(problem.n, problem.x, &x));
  PetscCall(CreateVector(problem.m, NULL, &y));
  s.csr       = &csr;
  s.options   = &b->options;
  s.blocksort = b->blocksort;
  PetscCall(PetscGetCurrentCUDAStream(&s.stream));
  PetscCall(LookAt(&s));
  PetscCall(ReleaseWork(&s));
  if (b->once[0]) PetscCall(RunOnce(b, &problem, &s, x, y));
  else PetscCall(RunWays(b, &problem, &s, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(GallopDeviceFree((void *)csr.a));
  PetscCall(BenchProblemDestroy(&problem));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintMeans(const Bench *b)
{
  PetscFunctionBegin;
  for (int way = SORT; way < WAYS; way++) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "geometric mean of %" PetscInt_FMT "\t-\t-\t-\t%s\t-\t-\t-", b->matrices, Names[way]));
    PetscCall(PrintField("%.2f", way < ROWS ? (double)PetscExpReal(b->reorder[way] / b->matrices) : -1));
    PetscCall(PrintField("%.2f", way < RAW ? (double)PetscExpReal(b->setup[way] / b->matrices) : -1));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\t-\t-\t-\t-\t%.2f\t-\t-\n", (double)PetscExpReal(b->product[way] / b->matrices)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -name <value>, at least least and at most most */
static PetscErrorCode GetRange(const char name[], PetscInt least, PetscInt most, PetscInt *value)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, name, value, NULL));
  PetscCheck(*value >= least && *value <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option %s is %" PetscInt_FMT ", but must be %" PetscInt_FMT " to %" PetscInt_FMT, name, *value, least, most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench          b = {};
  PetscBool      available, shared = PETSC_FALSE;
  PetscLogDouble bandwidth;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(BenchInputCreate(&b.in));
  b.options.block_rows = 512;
  b.options.block_cols = 4096;
  b.options.map        = HBP_MAP_NEVER;
  b.options.fixed      = -1;
  PetscCall(GetRange("-block_rows", 1, HBP_MAX_ROWS, &b.options.block_rows));
  PetscCall(GetRange("-block_cols", 1, HBP_MAX_COLS, &b.options.block_cols));
  PetscCall(GetRange("-fixed", -1, 100, &b.options.fixed));
  PetscCall(GetRange("-long_row", 0, PETSC_INT_MAX, &b.options.long_row));
  PetscCall(GetRange("-lane_entries", 0, PETSC_INT_MAX, &b.options.lane_entries));
  PetscCheck(b.options.lane_entries != 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "Option -lane_entries is 1, but must be 0 or at least 2");
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-shared_x", &shared, NULL));
  b.options.shared_x = shared ? HBP_SHARED_ALWAYS : HBP_SHARED_NEVER;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-block_sort", &b.blocksort, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-atomic", &b.atomic, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-once", b.once, sizeof(b.once), NULL));
  PetscCheck(!b.atomic || !shared, PETSC_COMM_WORLD, PETSC_ERR_ARG_INCOMP, "With -shared_x there is no -atomic");
  PetscCall(BenchDeviceAvailable(&available));
  PetscCheck(available, PETSC_COMM_WORLD, PETSC_ERR_GPU, "This program compares kernels, and there is no GPU");
  if (shared) PetscCall(HBPGetSharedCols_Device(&b.options.shared_cols));
  PetscCheck(!shared || b.options.block_cols <= b.options.shared_cols, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "With -shared_x a block has at most %" PetscInt_FMT " columns", b.options.shared_cols);

  PetscCall(BenchPrintHead(&BenchDevice, &bandwidth));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# blocks of %" PetscInt_FMT " rows by %" PetscInt_FMT " columns, x %s shared memory, sorted by %s%s\n", b.options.block_rows, b.options.block_cols, shared ? "in" : "not in", b.blocksort ? "thread blocks" : "cub::DeviceSegmentedSort", b.atomic ? ", sums of segments added to z by atomic operations" : ""));
  PetscCall(
    PetscPrintf(PETSC_COMM_SELF, "# matrix\tnnz\tblocks\tsegments\tway\tgroups\treorder_us\tsetup_us\treorder/hash\tsetup/hash\tdeviation\tspmv_us\tcombine_us\tproduct_us\tproduct/hash\tL2\terr\n"));
  PetscCall(BenchInputRun(&b.in, RunMatrix, &b));
  if (b.matrices) PetscCall(PrintMeans(&b));

  PetscCall((*BenchDevice.finish)());
  PetscCall(BenchInputDestroy(&b.in));
  PetscCall(PetscFinalize());
  return 0;
}
