/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of TiledSpMM's kernels without stages a matrix is for, and whether its rows are cut, with stages too: by a look at the pattern, on the GPU */

#include "tiledspmmbuild.h"

/* ---------------------------------------------------------------- the look */

/* Sums over rows, or, for lines, over some of them */
struct Looked {
  double             squares;                                   /* of lengths */
  unsigned long long lines, footprint, entries, tiles, intiles; /* of the entries those in tiles that were counted */
  unsigned long long filled;                                    /* rows with entries */
  int                longest;
};

static constexpr int LookedBlocks  = 1024;  /* thread blocks that count lines, about: every step-th */
static constexpr int LookedEntries = 64;    /* of a row, at most, where lines are counted */
static constexpr int LookedLines   = 65536; /* that are told apart by a bit each; others with the same bit count as one. Tiles likewise. */

/* Whether a number's bit, which some others have too, is not there yet; then it is */
static __device__ __forceinline__ bool IsNew(unsigned int bits[LookedLines / WarpSize], PetscCount number)
{
  const unsigned int place = (unsigned int)((unsigned long long)number * 0x9e3779b97f4a7c15ull >> 40) % LookedLines, bit = 1u << place % WarpSize;

  return !(atomicOr(&bits[place / WarpSize], bit) & bit);
}

/*
  Lengths of all rows; of every step-th thread block's, the lines of B that 32 rows touch at once, one of their entries each, its footprint, the lines that all its rows touch, and its tiles
*/
__global__ static void __launch_bounds__(Threads) LookKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int step, Looked *looked)
{
  __shared__ unsigned int bits[LookedLines / WarpSize], tilebits[LookedLines / WarpSize];
  const PetscCount        row   = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const int               lane  = threadIdx.x % WarpSize;
  const PetscInt          begin = row < m ? i[row] : 0, len = row < m ? i[row + 1] - begin : 0;
  const double            squares = GallopGroupSum((double)len * (double)len, WarpSize);
  const unsigned int      filled  = (unsigned int)__popc(__ballot_sync(0xffffffffu, len > 0));
  const int               most    = (int)GallopWarpMax((unsigned int)(len > PETSC_INT32_MAX ? PETSC_INT32_MAX : len));
  unsigned int            lines = 0, entries = 0, footprint = 0, tiles = 0, intiles = 0;

  if (lane == 0) {
    atomicAdd(&looked->squares, squares);
    atomicMax(&looked->longest, most);
    if (filled) atomicAdd(&looked->filled, (unsigned long long)filled);
  }
  if (blockIdx.x % step) return;
  for (int w = threadIdx.x; w < LookedLines / WarpSize; w += Threads) bits[w] = tilebits[w] = 0;
  __syncthreads();
  long long cut = len > LookedEntries ? (long long)j[begin + LookedEntries - 1] : PETSC_INT_MAX; /* up to which all rows of a tile are looked at */
  for (int by = TILEDSPMM_TILE_ROWS / 2; by; by /= 2) cut = min(cut, __shfl_xor_sync(0xffffffffu, cut, by));
  for (int k = 0; k < most && k < LookedEntries; k++) {
    const bool       entry  = k < len;
    const PetscCount column = entry ? j[begin + k] : 0, line = entry ? column * (PetscCount)sizeof(PetscScalar) / TILEDSPMM_LINE : -1;
    const PetscCount before = __shfl_up_sync(0xffffffffu, (long long)line, 1);
    const bool       first  = entry && (lane == 0 || line != before);

    lines += __popc(__ballot_sync(0xffffffffu, first));
    entries += __popc(__ballot_sync(0xffffffffu, entry));
    footprint += __popc(__ballot_sync(0xffffffffu, first && IsNew(bits, line)));
    intiles += __popc(__ballot_sync(0xffffffffu, entry && column <= cut));
    tiles += __popc(__ballot_sync(0xffffffffu, entry && column <= cut && IsNew(tilebits, column / TILEDSPMM_TILE_COLS * (Threads / TILEDSPMM_TILE_ROWS) + threadIdx.x / TILEDSPMM_TILE_ROWS)));
  }
  if (lane == 0 && entries) {
    atomicAdd(&looked->lines, (unsigned long long)lines);
    atomicAdd(&looked->footprint, (unsigned long long)footprint);
    atomicAdd(&looked->tiles, (unsigned long long)tiles);
    atomicAdd(&looked->intiles, (unsigned long long)intiles);
    atomicAdd(&looked->entries, (unsigned long long)entries);
  }
}

static PetscErrorCode Look(const GallopCSR *csr, Looked *looked, PetscBool *done)
{
  const unsigned int blocks = GallopBlocksFor(csr->m, Threads);
  void              *memory;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopWorkspaceMalloc(sizeof(*looked), &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceZero(memory, sizeof(*looked)));
  LookKernel<<<blocks, Threads, 0, stream>>>(csr->m, csr->i, csr->j, (int)(blocks / LookedBlocks + 1), (Looked *)memory);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(looked, memory, sizeof(*looked)));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the choice */

static const double   CachedLines   = 3;   /* to which the cached kernel is the faster one, where rows are alike: bytes of lines that loads of B touch, over those that they need */
static const PetscInt CachedColumns = 32;  /* that shall fit in L2 where B stays as it is although loads of it are scattered */
static const PetscInt SegmentLeast  = 32;  /* more segments cost more than they spread */
static const PetscInt Resident      = 512; /* rows of a thread block as the paper's U counts them: what a multiprocessor works on at once, with few columns */
static const PetscInt Worth         = 4;   /* segments that the longest row shall have, where rows are cut for want of rows */

/* Lines of B, were each used whole and once */
static double LinesNeeded(const Looked *looked)
{
  return (double)looked->entries * (double)sizeof(PetscScalar) / TILEDSPMM_LINE;
}

/*
  The size of segments, 0 for none, after the chart of Figure 6: U mu where U, thread blocks of rows for each multiprocessor, is low; the mean where rows are too unlike. U mu gives each
  multiprocessor as many segments as it works on at once. rows: those that have segments. With stages a thread block is a panel, and segments are as short as the paper has them.
*/
static PetscInt SegmentSize(const TiledSpMM *t, const Looked *looked, double rows)
{
  const bool       staged = t->kernel == TILEDSPMM_STAGED;
  const double     mu = (double)t->nz / rows, squares = looked->squares / rows - mu * mu, sigma = squares > 0 ? sqrt(squares) : 0;
  const PetscCount resident = (staged ? t->options.panel : Resident) * (PetscCount)t->multiprocessors;
  const PetscReal  U        = (PetscReal)rows / (PetscReal)resident;
  const PetscInt   least = staged ? 1 : SegmentLeast, even = PetscMax(least, (PetscInt)(t->nz / resident)); /* U mu */
  PetscInt         size = t->options.segment;

  if (!size && sigma > (double)t->options.imbalance * mu) size = PetscMax(least, PetscMin(even, (PetscInt)mu));
  else if (!size && U < t->options.utilization && looked->longest / Worth >= even) size = even;
  return size && size < looked->longest ? size : 0;
}

/* TiledSpMMChooseSegment - For the staged kernel: most entries of a segment, 0 where no row is cut. *done false: there is no room for the look. */
PetscErrorCode TiledSpMMChooseSegment(const TiledSpMM *t, const GallopCSR *csr, PetscInt *segment, PetscBool *done)
{
  Looked looked;

  PetscFunctionBegin;
  *segment = 0;
  PetscCall(Look(csr, &looked, done));
  if (*done) *segment = SegmentSize(t, &looked, (double)t->m);
  if (*segment && t->nz / *segment > PETSC_INT_MAX - t->m) *segment = 0; /* segments are numbered as rows are */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tiles have their first column, and those behind it, in a PetscInt, and its number and the values before them in 32 bits */
static bool FitTiles(const TiledSpMM *t, const Looked *looked)
{
  return t->n <= PETSC_INT_MAX - TILEDSPMM_TILE_COLS && t->n / TILEDSPMM_TILE_COLS < PETSC_INT32_MAX && looked->longest <= PETSC_INT32_MAX / TILEDSPMM_TILE_ROWS;
}

/* Whether B is read as it lies: loads touch little more than they need, or 32 columns of B fit in L2 and neighbouring rows name the same lines, if one after the other */
static PetscErrorCode LeavesB(const TiledSpMM *t, const Looked *looked, PetscBool scattered, PetscBool *leaves)
{
  const double needed = LinesNeeded(looked);
  int          device, l2;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
  *leaves = (PetscBool)(!scattered || ((double)looked->footprint <= needed && (PetscCount)t->n * CachedColumns * (PetscCount)sizeof(PetscScalar) <= l2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  TiledSpMMChoose - By t->options and the pattern. Entries that are close together, in tiles, are for tensor cores. Rows that are not cut are for the cached kernel where B can stay as it is: nothing
  has to be copied first. Segments of one row name rows of B that are far apart. *done false: there is no room for the look.
*/
PetscErrorCode TiledSpMMChoose(const TiledSpMM *t, const GallopCSR *csr, TiledSpMMChoice *choice, PetscBool *done)
{
  const TiledSpMMKernel asked = t->options.kernel;
  Looked                looked;
  PetscInt              cut; /* most entries of a segment, 0 where no row is cut */
  PetscBool             leaves, tensor;

  PetscFunctionBegin;
  PetscCall(Look(csr, &looked, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  choice->longest   = looked.longest;
  choice->tilesize  = looked.tiles ? (double)looked.intiles / (double)looked.tiles : 1;
  choice->scattered = (PetscBool)((double)looked.lines > CachedLines * LinesNeeded(&looked));
  choice->skips     = (PetscBool)(2 * looked.filled <= (unsigned long long)t->m);
  cut               = SegmentSize(t, &looked, choice->skips ? (double)looked.filled : (double)t->m);
  choice->segment   = cut || !choice->skips ? cut : looked.longest;
  PetscCall(LeavesB(t, &looked, choice->scattered, &leaves));
  if (asked == TILEDSPMM_CACHED || asked == TILEDSPMM_TRANSPOSED) choice->untiled = asked;
  else choice->untiled = !cut && leaves ? TILEDSPMM_CACHED : TILEDSPMM_TRANSPOSED;
  tensor = (PetscBool)(asked == TILEDSPMM_TENSOR);
  if (asked == TILEDSPMM_CHOOSE && TiledSpMMIsDense((double)looked.intiles, (double)looked.tiles)) PetscCall(TiledSpMMHasTensor(&tensor));
  choice->kernel = tensor && FitTiles(t, &looked) ? TILEDSPMM_TENSOR : choice->untiled;
  PetscFunctionReturn(PETSC_SUCCESS);
}
