/* TiledSpMM on the GPU: its arrays, new values, and the kernel of the product */

#include <gallop/cudaimpl.h>
#include "tiledspmm.h"

static_assert(TILEDSPMM_WARP == WarpSize, "the rows of a warp are padded together");

/* ---------------------------------------------------------------- the product */

template <typename V, typename I>
struct TilesView {
  I                     m, stage;
  const PetscCount     *stagedispl, *mapdispl, *warpdispl;
  const I              *map;
  const TiledSpMMIndex *len, *index;
  const V              *value;
};

/* B and C from some column on, and how many columns they have from there */
template <typename V, typename I>
struct DenseView {
  const V *b;
  V       *c;
  I        ldb, ldc, columns;
};

/* Most threads of a GPU block: each can have 128 registers, and where it holds more than 16 outputs 255 */
static constexpr int MaxThreads(int R)
{
  return R > 16 ? TILEDSPMM_MAX_PANEL / 2 : TILEDSPMM_MAX_PANEL;
}

/* A GPU block computes R columns of a panel, a thread R outputs of a row. Blocks that lie together have the same panel, which L2 then serves to all but the first. */
template <int R, typename V, typename I>
__global__ static void __launch_bounds__(MaxThreads(R)) TiledSpMMKernel(const TilesView<V, I> t, const DenseView<V, I> dense, const unsigned int groups)
{
  extern __shared__ __align__(16) unsigned char bytes[];
  V *const                                      shared  = reinterpret_cast<V *>(bytes); /* column r of B's stage is at r t.stage: lanes with neighbouring indices are in different banks */
  const PetscCount                              panel   = blockIdx.x / groups;
  const I                                       first   = (I)(blockIdx.x % groups) * R;
  const int                                     columns = dense.columns - first < R ? (int)(dense.columns - first) : R;
  const int                                     warps = blockDim.x / WarpSize, warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  const PetscCount                              row = panel * blockDim.x + threadIdx.x;
  const V *const                                b   = dense.b + (PetscCount)first * dense.ldb;
  V                                             acc[R];

#pragma unroll
  for (int r = 0; r < R; r++) acc[r] = V(0);
  for (PetscCount s = t.stagedispl[panel]; s < t.stagedispl[panel + 1]; s++) {
    const PetscCount map  = t.mapdispl[s];
    const int        size = (int)(t.mapdispl[s + 1] - map), len = t.len[s * blockDim.x + threadIdx.x];
    PetscCount       at = t.warpdispl[s * warps + warp] + lane;

    __syncthreads(); /* all are done with the stage before */
    for (int q = threadIdx.x; q < size; q += blockDim.x) {
      const V *const from = b + t.map[map + q];

#pragma unroll
      for (int r = 0; r < R; r++)
        if (r < columns) shared[r * t.stage + q] = from[(PetscCount)r * dense.ldb];
    }
    __syncthreads();
    for (int k = 0; k < len; k++, at += WarpSize) {
      const V  value  = GallopLoadOnce(t.value + at);
      const V *staged = shared + GallopLoadOnce(t.index + at);

#pragma unroll
      for (int r = 0; r < R; r++) acc[r] += value * staged[r * t.stage]; /* those of no column are never stored */
    }
  }
  if (row >= t.m) return;
  V *const c = dense.c + (PetscCount)first * dense.ldc + row;

#pragma unroll
  for (int r = 0; r < R; r++)
    if (r < columns) c[(PetscCount)r * dense.ldc] = acc[r];
}

/* Calls f(kernel) with the kernel for a number of columns at once */
template <typename F>
static cudaError_t WithKernel(PetscInt columns, F f)
{
  switch (columns) {
  case 1:
    return f(TiledSpMMKernel<1, PetscScalar, PetscInt>);
  case 2:
    return f(TiledSpMMKernel<2, PetscScalar, PetscInt>);
  case 4:
    return f(TiledSpMMKernel<4, PetscScalar, PetscInt>);
  case 8:
    return f(TiledSpMMKernel<8, PetscScalar, PetscInt>);
  case 16:
    return f(TiledSpMMKernel<16, PetscScalar, PetscInt>);
  default:
    return f(TiledSpMMKernel<32, PetscScalar, PetscInt>);
  }
}

static size_t SharedBytes(const TiledSpMM *t, PetscInt columns)
{
  return (size_t)t->options.stage * columns * sizeof(PetscScalar);
}

/* As many columns as asked for, a power of two, or fewer where the stages of so many do not fit in shared memory, or the outputs of large panels not in registers */
static PetscInt MostColumns(const TiledSpMM *t)
{
  PetscInt columns = t->options.columns;

  while (columns > 1 && (SharedBytes(t, columns) > t->shared || t->options.panel > MaxThreads((int)columns))) columns /= 2;
  return columns;
}

/* Columns first to last, R at a time */
static PetscErrorCode Launch(const TiledSpMM *t, const GallopDenseProduct *p, PetscInt first, PetscInt last, PetscInt R, cudaStream_t stream)
{
  const TilesView<PetscScalar, PetscInt> tiles = {t->m, t->options.stage, t->stagedispl, t->mapdispl, t->warpdispl, t->map, t->len, t->index, t->value};
  const PetscCount                       most  = PetscMax((PetscCount)1, (PetscCount)PETSC_INT32_MAX / t->panels); /* groups of columns in a grid */

  PetscFunctionBegin;
  for (PetscCount begin = first; begin < last; begin += most * R) {
    const PetscCount                       columns = PetscMin(last - begin, most * R), groups = (columns + R - 1) / R;
    const DenseView<PetscScalar, PetscInt> dense = {p->b + begin * p->ldb, p->c + begin * p->ldc, p->ldb, p->ldc, (PetscInt)columns};

    PetscCallCUDA(WithKernel(R, [&](auto *kernel) {
      return GallopLaunch(kernel, {t->panels * groups, (int)t->options.panel, 1, SharedBytes(t, R), stream, false}, tiles, dense, (unsigned int)groups);
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyDense(void *data, const GallopDenseProduct *p)
{
  const TiledSpMM *t = (const TiledSpMM *)data;
  const PetscInt   R = MostColumns(t), whole = p->columns / R * R;
  PetscInt         left = 1;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(Launch(t, p, 0, whole, R, stream));
  while (left < p->columns - whole) left *= 2; /* those left over, with no more outputs a thread than it takes */
  PetscCall(Launch(t, p, whole, p->columns, left, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- building */

static constexpr int ValuesThreads = 256;

template <typename V, typename I>
__global__ static void ValuesKernel(PetscCount n, const I *__restrict__ from, const V *__restrict__ a, V *__restrict__ value)
{
  const PetscCount k = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x;

  if (k < n) value[k] = from[k] < 0 ? V(0) : a[from[k]];
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  TiledSpMM   *t = (TiledSpMM *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<(unsigned int)((t->stored + ValuesThreads - 1) / ValuesThreads), ValuesThreads, 0, stream>>>(t->stored, t->from, csr->a, t->value);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs twice: with a null base it measures, then it hands out */
static size_t Carve(TiledSpMM *t, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(t->array, number);
  TILEDSPMM_ARRAYS(t, TAKE)
#undef TAKE
  return carver.Bytes();
}

static PetscErrorCode Destroy(void **data)
{
  TiledSpMM *t = (TiledSpMM *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(t->stagedispl)); /* where the one allocation begins */
  PetscCall(PetscFree(t));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies what the host has found out, all but the values */
static PetscErrorCode CopyIn(TiledSpMM *t, const TiledSpMM *host)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
#define COPY(array, number) PetscCall(GallopDeviceCopyIn(t->array, host->array, (size_t)(number) * sizeof(*t->array)));
  TILEDSPMM_PATTERN(t, COPY)
#undef COPY
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* what was copied is pageable and about to go */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The most shared memory that the device lets a GPU block have, which its kernels are allowed here */
static PetscErrorCode AllowShared(size_t *bytes)
{
  int device, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  for (PetscInt R = 1; R <= TILEDSPMM_MAX_COLUMNS; R *= 2) PetscCallCUDA(WithKernel(R, [=](auto *kernel) { return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most); }));
  *bytes = (size_t)most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The inspection runs on the host, from the pattern there, and its arrays are copied; only values are placed on the GPU */
static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data)
{
  TiledSpMM *host, *t;
  void      *base;

  PetscFunctionBegin;
  *data = NULL;
  PetscCall(TiledSpMMInspect((const TiledSpMMOptions *)options, csr, maxbytes, &host));
  if (!host) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&t));
  *t         = *host;
  t->memtype = PETSC_MEMTYPE_CUDA;
  PetscCall(GallopDeviceMalloc(Carve(t, NULL), &base));
  if (base) {
    (void)Carve(t, base);
    PetscCall(CopyIn(t, host));
    PetscCall(AllowShared(&t->shared));
    PetscCall(Refresh(t, csr));
    *data = t;
  } else PetscCall(PetscFree(t));
  PetscCall(TiledSpMMFree_Host(&host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork TiledSpMMDevice = {Build, Refresh, NULL, Destroy, NULL, ApplyDense};
