/* TiledSpMM on the GPU: which kernel a matrix is for, and what is common to them */

#include "../common/footprint.h"
#include "tiledspmmdevice.h"

static constexpr int Threads = 256;

/* ---------------------------------------------------------------- what is looked at before the choice */

/* Sums over rows, or, for lines, over some of them */
struct Looked {
  double             squares;                                   /* of lengths */
  unsigned long long lines, footprint, entries, tiles, intiles; /* of the entries those in tiles that were counted */
  int                longest;
};

static constexpr int LookedEntries = 64;    /* of a row, at most, where lines are counted */
static constexpr int LookedLines   = 65536; /* that are told apart by a bit each; others with the same bit count as one. Tiles likewise. */

/* Whether a number's bit, which some others have too, is not there yet; then it is */
static __device__ __forceinline__ bool IsNew(unsigned int bits[LookedLines / WarpSize], PetscCount number)
{
  const unsigned int place = (unsigned int)((unsigned long long)number * 0x9e3779b97f4a7c15ull >> 40) % LookedLines, bit = 1u << place % WarpSize;

  return !(atomicOr(&bits[place / WarpSize], bit) & bit);
}

/*
  Lengths of all rows; of every step-th GPU block's, the lines of B that 32 rows touch at once, one of their entries each, its footprint, the lines that all its rows touch, and its tiles
*/
__global__ static void __launch_bounds__(Threads) LookKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int step, Looked *looked)
{
  __shared__ unsigned int bits[LookedLines / WarpSize], tilebits[LookedLines / WarpSize];
  const PetscCount        row   = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const int               lane  = threadIdx.x % WarpSize;
  const PetscInt          begin = row < m ? i[row] : 0, len = row < m ? i[row + 1] - begin : 0;
  const double            squares = GallopGroupSum((double)len * (double)len, WarpSize);
  const int               most    = (int)GallopWarpMax((unsigned int)(len > PETSC_INT32_MAX ? PETSC_INT32_MAX : len));
  unsigned int            lines = 0, entries = 0, footprint = 0, tiles = 0, intiles = 0;

  if (lane == 0) {
    atomicAdd(&looked->squares, squares);
    atomicMax(&looked->longest, most);
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
  const PetscCount blocks = ((PetscCount)csr->m + Threads - 1) / Threads, most = 1024; /* GPU blocks that count lines */
  void            *memory;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceMalloc(sizeof(*looked), &memory));
  *done = (PetscBool)(memory != NULL);
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceZero(memory, sizeof(*looked)));
  LookKernel<<<(unsigned int)blocks, Threads, 0, stream>>>(csr->m, csr->i, csr->j, (int)(blocks / most + 1), (Looked *)memory);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(looked, memory, sizeof(*looked)));
  PetscCall(GallopDeviceRelease(sizeof(*looked), memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the choice */

static const double   CachedLines  = 3;   /* to which the cached kernel is the faster one, where rows are alike: bytes of lines that loads of B touch, over those that they need */
static const PetscInt SegmentLeast = 32;  /* more segments cost more than they spread */
static const PetscInt Resident     = 512; /* rows of a GPU block as the paper's U counts them: what a multiprocessor works on at once, with few columns */
static const PetscInt Worth        = 4;   /* segments that the longest row shall have, where rows are cut for want of rows */

/*
  The size of segments, 0 for none, after the chart of Figure 6: U mu where U, GPU blocks of rows for each multiprocessor, is low; the mean where rows are too unlike. U mu gives each
  multiprocessor as many segments as it works on at once.
*/
static PetscInt SegmentSize(const TiledSpMM *t, const Looked *looked)
{
  const double    mu = (double)t->nz / t->m, squares = looked->squares / t->m - mu * mu, sigma = squares > 0 ? sqrt(squares) : 0;
  const PetscReal U    = (PetscReal)t->m / ((PetscReal)Resident * t->multiprocessors);
  const PetscInt  even = PetscMax(SegmentLeast, (PetscInt)(t->nz / ((PetscCount)Resident * t->multiprocessors))); /* U mu */
  PetscInt        size = t->options.segment;

  if (!size && sigma > (double)t->options.imbalance * mu) size = PetscMax(SegmentLeast, PetscMin(even, (PetscInt)mu));
  else if (!size && U < t->options.utilization && looked->longest / Worth >= even) size = even;
  return size && size < looked->longest ? size : 0;
}

/* Tiles have their first column, and those behind it, in a PetscInt, and its number and the values before them in 32 bits */
static bool FitTiles(const TiledSpMM *t, const Looked *looked)
{
  return t->n <= PETSC_INT_MAX - TILEDSPMM_TILE_COLS && t->n / TILEDSPMM_TILE_COLS < PETSC_INT32_MAX && looked->longest <= PETSC_INT32_MAX / TILEDSPMM_TILE_ROWS;
}

/*
  Entries that are close together, in tiles, are for tensor cores. Neighbouring rows that name the same lines at once are what the cached kernel is for. Where 32 columns of B fit in L2 it is the faster one too if they do so one after the other, as nothing
  has to be copied first. Segments of one row name rows of B that are far apart.
*/
static PetscErrorCode ChooseKernel(TiledSpMM *t, const Looked *looked, PetscInt segment, bool tiles)
{
  static constexpr PetscCount Columns = 32;
  const double                needed  = (double)looked->entries * (double)sizeof(PetscScalar) / TILEDSPMM_LINE; /* lines, were each used whole and once */
  int                         device, l2;
  PetscBool                   near, tensor = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
  t->scattered = (PetscBool)((double)looked->lines > CachedLines * needed);
  near         = (PetscBool)((double)looked->footprint <= needed && t->n * Columns * (PetscCount)sizeof(PetscScalar) <= l2);
  if (t->kernel == TILEDSPMM_TENSOR && !tiles) t->kernel = TILEDSPMM_CHOOSE;
  if (t->kernel == TILEDSPMM_CHOOSE && tiles && TiledSpMMIsDense((double)looked->intiles, (double)looked->tiles)) PetscCall(TiledSpMMHasTensor(&tensor));
  if (tensor) t->kernel = TILEDSPMM_TENSOR;
  else if (t->kernel == TILEDSPMM_CHOOSE) t->kernel = !segment && (!t->scattered || near) ? TILEDSPMM_CACHED : TILEDSPMM_TRANSPOSED;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMGetMachine(const TiledSpMM *t, TiledSpMMMachine *machine)
{
  static PetscLogDouble bandwidth = 0; /* measured once */
  int                   device, clock, l1, l2;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device)); /* in kHz */
  PetscCallCUDA(cudaDeviceGetAttribute(&l1, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
  if (bandwidth == 0) PetscCall(GallopDeviceReadBandwidth((size_t)1 << 30, &bandwidth));
  machine->bandwidth       = bandwidth;
  machine->clock           = 1e3 * clock;
  machine->l1              = l1;
  machine->l2              = l2;
  machine->multiprocessors = t->multiprocessors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees what a kernel has of memory, at the places where allocations begin */
static PetscErrorCode FreeArrays(TiledSpMM *t)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(t->work));
  if (t->kernel == TILEDSPMM_STAGED) {
    PetscCall(GallopDeviceFree(t->stagedispl));
    PetscCall(GallopDeviceFree(t->index));
  } else if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(GallopDeviceFree(t->tileptr));
  } else {
    PetscCall(GallopDeviceFree(t->segptr));
    PetscCall(GallopDeviceFree(t->col));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  TiledSpMM *t = (TiledSpMM *)*data;

  PetscFunctionBegin;
  PetscCall(FreeArrays(t));
  PetscCall(PetscFree(t));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is known before anything is built */
static PetscErrorCode Begin(const TiledSpMMOptions *options, const GallopCSR *csr, TiledSpMM *t)
{
  int device;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  t->memtype = PETSC_MEMTYPE_CUDA;
  t->options = *options;
  t->kernel  = options->kernel;
  t->m       = csr->m;
  t->n       = csr->n;
  t->nz      = csr->nz;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&t->multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds what the kernel needs that is asked for or chosen; without tiles where they cannot be had, as columns do not increase */
static PetscErrorCode BuildUnstaged(TiledSpMM *t, const GallopCSR *csr, PetscCount maxbytes, PetscBool *done)
{
  const TiledSpMMOptions options = t->options;
  Looked                 looked;
  PetscInt               segment;

  PetscFunctionBegin;
  PetscCall(Look(csr, &looked, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  *done   = PETSC_FALSE;
  segment = SegmentSize(t, &looked);
  PetscCall(ChooseKernel(t, &looked, segment, FitTiles(t, &looked)));
  if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(TiledSpMMTensorBuild(t, csr, looked.longest, looked.tiles ? (double)looked.intiles / (double)looked.tiles : 1, maxbytes, done));
    if (*done) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(FreeArrays(t));
    PetscCall(Begin(&options, csr, t));
    PetscCall(ChooseKernel(t, &looked, segment, false));
  }
  PetscCall(TiledSpMMSegmentsBuild(t, csr, segment, maxbytes, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  TiledSpMM *t;
  void      *data;
  PetscBool  done = PETSC_FALSE;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&t));
  data = t;
  PetscCall(Begin((const TiledSpMMOptions *)options, csr, t));
  if (t->kernel == TILEDSPMM_STAGED || (PetscCount)t->m / Threads >= PETSC_INT32_MAX) {
    t->kernel = TILEDSPMM_STAGED;
    PetscCall(TiledSpMMStagedBuild(t, csr, maxbytes, &done));
  } else PetscCall(BuildUnstaged(t, csr, maxbytes, &done));
  if (done) *built = t;
  else PetscCall(Destroy(&data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  TiledSpMM *t = (TiledSpMM *)data;

  PetscFunctionBegin;
  if (t->kernel == TILEDSPMM_STAGED) PetscCall(TiledSpMMStagedRefresh(t, csr));
  else if (t->kernel == TILEDSPMM_TENSOR) PetscCall(TiledSpMMTensorRefresh(t, csr));
  else PetscCall(TiledSpMMSegmentsRefresh(t, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyDense(void *data, const GallopDenseProduct *p, PetscBool *done)
{
  TiledSpMM *t = (TiledSpMM *)data;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  if (t->kernel == TILEDSPMM_STAGED) PetscCall(TiledSpMMStagedApply(t, p));
  else if (t->kernel == TILEDSPMM_TENSOR) PetscCall(TiledSpMMTensorApply(t, p, done));
  else PetscCall(TiledSpMMSegmentsApply(t, p, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork TiledSpMMDevice = {Build, Refresh, NULL, Destroy, NULL, ApplyDense};
