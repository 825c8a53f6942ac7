/* SPDX-License-Identifier: BSD-2-Clause */
/* The benchmark's GPU: events, a flush of L2, read bandwidth, and cuSPARSE called without PETSc */

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1
#define CUSPARSE_ENABLE_EXPERIMENTAL_API      /* cusparse.h declares SpMVOp only so */

#include <petscdevice_cuda.h>
#include <cusparse.h>
#include <atomic>
#include <chrono>
#include <thread>
#include <gallop/cudaimpl.h>
#include "bench.h"

static constexpr size_t FlushBytes     = (size_t)256 << 20; /* several times the L2 of any GPU */
static constexpr size_t BandwidthBytes = (size_t)4 << 30;
static constexpr int    Threads        = 256;
static constexpr int    ColdProducts   = 12; /* of one measurement */

static struct {
  cudaEvent_t      begin, end;
  cusparseHandle_t cusparse;
  double          *flush;
  int              processors;
} device;

static __global__ void Fill(double *a, size_t n, double value)
{
  for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < n; k += (size_t)gridDim.x * blockDim.x) a[k] = value;
}

PetscErrorCode BenchDeviceAvailable(PetscBool *available)
{
  int n = 0;

  PetscFunctionBegin;
  *available = (PetscBool)(cudaGetDeviceCount(&n) == cudaSuccess && n > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchDeviceArrays(Vec x, Vec y, const PetscScalar **xx, PetscScalar **yy)
{
  const PetscScalar *read;
  PetscScalar       *write;

  PetscFunctionBegin;
  PetscCall(VecCUDAGetArrayRead(x, &read));
  PetscCall(VecCUDAGetArrayWrite(y, &write));
  *xx = read;
  *yy = write; /* pointers that are given back are NULL */
  PetscCall(VecCUDARestoreArrayWrite(y, &write));
  PetscCall(VecCUDARestoreArrayRead(x, &read));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename F>
static PetscErrorCode TimeOf(PetscInt n, PetscLogDouble *seconds, F work)
{
  cudaStream_t stream;
  float        ms;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaEventRecord(device.begin, stream));
  for (PetscInt k = 0; k < n; k++) PetscCall(work(stream));
  PetscCallCUDA(cudaEventRecord(device.end, stream));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaEventElapsedTime(&ms, device.begin, device.end));
  *seconds = ms * 1e-3;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Time(BenchWork work, void *ctx, PetscInt n, PetscLogDouble *seconds)
{
  PetscFunctionBegin;
  PetscCall(TimeOf(n, seconds, [=](cudaStream_t) { return (*work)(ctx); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time of the flushes is measured by itself and subtracted: events between a flush and a product would add more than small products take */
static PetscErrorCode TimeCold(BenchWork work, void *ctx, PetscLogDouble *seconds)
{
  PetscLogDouble both = 0, flushes = 0;

  PetscFunctionBegin;
  PetscCall(TimeOf(ColdProducts, &both, [=](cudaStream_t stream) {
    Fill<<<8 * device.processors, Threads, 0, stream>>>(device.flush, FlushBytes / sizeof(double), 0.5);
    return (*work)(ctx);
  }));
  PetscCall(TimeOf(ColdProducts, &flushes, [](cudaStream_t stream) {
    Fill<<<8 * device.processors, Threads, 0, stream>>>(device.flush, FlushBytes / sizeof(double), 0.5);
    return PETSC_SUCCESS;
  }));
  PetscCallCUDA(cudaGetLastError());
  *seconds = (both - flushes) / ColdProducts;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The driver's own version: CUDA knows only the newest toolkit that the driver serves */
static PetscErrorCode Driver(char version[], size_t len)
{
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  char  word[64];
  int   major, minor;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(version, "unknown", len));
  while (file && fscanf(file, "%63s", word) == 1) {
    if (sscanf(word, "%d.%d", &major, &minor) == 2) {
      PetscCall(PetscStrncpy(version, word, len));
      break;
    }
  }
  if (file) (void)fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Start(PetscLogDouble *bandwidth)
{
  char           driver[64];
  cudaDeviceProp prop;
  int            id, runtime, version;

  PetscFunctionBegin;
  PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
  PetscCallCUDA(cudaGetDevice(&id));
  PetscCallCUDA(cudaGetDeviceProperties(&prop, id));
  PetscCallCUDA(cudaRuntimeGetVersion(&runtime));
  PetscCallCUSPARSE(cusparseCreate(&device.cusparse));
  PetscCallCUSPARSE(cusparseGetVersion(device.cusparse, &version));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# machine: %s, %d multiprocessors, %.0f MiB\n", prop.name, prop.multiProcessorCount, (double)prop.totalGlobalMem / 1048576));
  PetscCall(Driver(driver, sizeof(driver)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# driver %s, CUDA %d.%d, cuSPARSE %d.%d.%d\n", driver, runtime / 1000, runtime % 1000 / 10, version / 1000, version % 1000 / 100, version % 100));
  device.processors = prop.multiProcessorCount;
  PetscCallCUDA(cudaEventCreate(&device.begin));
  PetscCallCUDA(cudaEventCreate(&device.end));
  PetscCallCUDA(cudaMalloc((void **)&device.flush, FlushBytes));
  PetscCall(GallopDeviceReadBandwidth(BandwidthBytes, bandwidth));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Finish(void)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaFree(device.flush));
  PetscCallCUDA(cudaEventDestroy(device.begin));
  PetscCallCUDA(cudaEventDestroy(device.end));
  PetscCallCUSPARSE(cusparseDestroy(device.cusparse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Memory(PetscLogDouble *used)
{
  size_t free, total;

  PetscFunctionBegin;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaMemGetInfo(&free, &total));
  *used = (PetscLogDouble)(total - free);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A second thread looks many times a millisecond: what is allocated and freed between two looks, it misses */
static PetscErrorCode Peak(BenchWork work, void *ctx, PetscLogDouble *most)
{
  std::atomic<bool>   done(false);
  std::atomic<size_t> least(SIZE_MAX);
  int                 id;
  PetscErrorCode      ierr;
  PetscLogDouble      now;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&id));
  std::thread watch([&]() {
    size_t free, total;

    if (cudaSetDevice(id) != cudaSuccess) return;
    while (!done) {
      if (cudaMemGetInfo(&free, &total) == cudaSuccess && free < least) least = free;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  ierr = (*work)(ctx);
  (void)cudaDeviceSynchronize();
  done = true;
  watch.join();
  PetscCall(ierr);
  PetscCall(Memory(&now));
  {
    size_t free, total;

    PetscCallCUDA(cudaMemGetInfo(&free, &total));
    *most = PetscMax(now, (PetscLogDouble)(total - PetscMin(free, least.load())));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- cuSPARSE without PETSc ---- */

static constexpr cudaDataType        ScalarType = PetscDefined(USE_COMPLEX) ? (sizeof(PetscReal) == 4 ? CUDA_C_32F : CUDA_C_64F) : (sizeof(PetscReal) == 4 ? CUDA_R_32F : CUDA_R_64F);
static constexpr cusparseIndexType_t IndexType  = sizeof(PetscInt) == 4 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;

/* SpMVOp came with cuSPARSE 12.7.3 (CUDA 13.1), its algorithms with 12.8; what it is known to take are real double numbers and 32-bit indices */
#define BENCH_SPMVOP (CUSPARSE_VERSION >= 12703 && PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX) && !PetscDefined(USE_64BIT_INDICES))
#if BENCH_SPMVOP
  #if CUSPARSE_VERSION >= 12800
    #define BENCH_SPMVOP_ALG(which) (cusparseSpMVOpAlg_t)(which),
  #else
    #define BENCH_SPMVOP_ALG(which)
  #endif
#endif

/* Names begin with raw_ but those of products with another layout than PETSc's, which are no baseline for it */
static const BenchRaw Raws[] = {
  {"raw_csr_alg1",      PETSC_FALSE, PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"raw_csr_alg2",      PETSC_FALSE, PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"raw_csr_alg1",      PETSC_TRUE,  PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"raw_csr_alg2",      PETSC_TRUE,  PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"raw_csr_alg3",      PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
  {"rowmajor_csr_alg1", PETSC_TRUE,  PETSC_TRUE,  PETSC_TRUE,  PETSC_FALSE},
  {"rowmajor_csr_alg2", PETSC_TRUE,  PETSC_TRUE,  PETSC_TRUE,  PETSC_FALSE},
  {"rowmajor_csr_alg3", PETSC_TRUE,  PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE},
  {"csc_warp",          PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE },
#if BENCH_SPMVOP && CUSPARSE_VERSION >= 12800
  {"raw_spmvop_alg1",   PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
  {"raw_spmvop_alg2",   PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
#elif BENCH_SPMVOP
  {"raw_spmvop", PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
#endif
};

/* What each of them is to cuSPARSE */
static const int Algs[] = {
  CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3, CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3, 0,
#if BENCH_SPMVOP && CUSPARSE_VERSION >= 12800
  CUSPARSE_SPMVOP_ALG1,   CUSPARSE_SPMVOP_ALG2,
#elif BENCH_SPMVOP
  0,
#endif
};
static_assert(sizeof(Algs) / sizeof(Algs[0]) == sizeof(Raws) / sizeof(Raws[0]), "an algorithm for each");
static constexpr PetscInt CSCWarp = 8, FirstSpMVOp = 9; /* all before are SpMV and SpMM */

/* The basic product by columns: a warp a column, which adds to y by atomic operations */
static __global__ void CSCKernel(PetscInt n, const PetscInt *__restrict__ begin, const PetscInt *__restrict__ row, const PetscScalar *__restrict__ a, const PetscScalar *__restrict__ x, PetscScalar *y)
{
  const PetscCount column = (blockIdx.x * (PetscCount)blockDim.x + threadIdx.x) / WarpSize;

  if (column >= n) return;
  for (PetscCount k = begin[column] + (PetscCount)(threadIdx.x % WarpSize); k < begin[column + 1]; k += WarpSize) GallopAtomicAdd<PetscReal>(y + row[k], a[k] * x[column]);
}

struct Raw {
  PetscInt            *i, *j;
  PetscScalar         *a;
  PetscInt            *hostj; /* in pinned memory, NULL before RawLoad() */
  PetscScalar         *hosta;
  void                *buffer;
  int                  alg;
  PetscCount           nz;
  PetscInt             m, n;   /* of csc_warp's matrix, whose columns i, j and a have */
  const PetscScalar   *xarray; /* its vectors, NULL where it is cuSPARSE */
  PetscScalar         *yarray;
  cusparseOperation_t  op;
  cusparseSpMatDescr_t A;
  cusparseDnVecDescr_t x, y;
  cusparseDnMatDescr_t B, C; /* NULL with vectors */
#if BENCH_SPMVOP
  cusparseSpMVOpDescr_t descr; /* NULL where it is not SpMVOp */
  cusparseSpMVOpPlan_t  plan;
  cusparseDnVecDescr_t  added;
  PetscScalar          *zeros;
#endif
};

template <typename T>
static PetscErrorCode CopyIn(const T *host, PetscCount n, T **ptr)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMalloc((void **)ptr, PetscMax(n, 1) * sizeof(T)));
  PetscCallCUDA(cudaMemcpy(*ptr, host, n * sizeof(T), cudaMemcpyHostToDevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix's rows on the GPU, for csc_warp those of its transpose */
static PetscErrorCode CopyRows(Mat A, Raw *raw)
{
  const PetscScalar *a;
  const PetscInt    *i, *j;
  PetscInt           m;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  raw->nz = i[m];
  PetscCall(CopyIn(i, (PetscCount)m + 1, &raw->i));
  PetscCall(CopyIn(j, raw->nz, &raw->j));
  PetscCall(CopyIn(a, raw->nz, &raw->a));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateCSC(Mat A, Raw *raw, const PetscScalar *x, PetscScalar *y)
{
  Mat columns;

  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &columns));
  PetscCall(CopyRows(columns, raw));
  PetscCall(MatDestroy(&columns));
  PetscCall(MatGetSize(A, &raw->m, &raw->n));
  raw->xarray = x;
  raw->yarray = y;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RawCreate(Mat A, PetscInt which, PetscBool transpose, PetscInt k, Vec x, Vec y, void **ctx)
{
  const PetscScalar one = 1, zero = 0, *xx;
  PetscScalar      *yy;
  PetscInt          m, n;
  size_t            bytes;
  cudaStream_t      stream;
  Raw              *raw;

  PetscFunctionBegin;
  PetscCall(PetscNew(&raw));
  *ctx     = raw;
  raw->alg = Algs[which];
  raw->op  = transpose ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  PetscCall(BenchDeviceArrays(x, y, &xx, &yy));
  if (which == CSCWarp) {
    PetscCall(CreateCSC(A, raw, xx, yy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(CopyRows(A, raw));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCallCUSPARSE(cusparseCreateCsr(&raw->A, m, n, raw->nz, raw->i, raw->j, raw->a, IndexType, IndexType, CUSPARSE_INDEX_BASE_ZERO, ScalarType));
  if (transpose) {
    const PetscInt rows = m;

    m = n;
    n = rows;
  }
  if (k) {
    const bool            rows  = Raws[which].rowmajor;
    const cusparseOrder_t order = rows ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;

    PetscCallCUSPARSE(cusparseCreateDnMat(&raw->B, n, k, rows ? k : n, (void *)xx, ScalarType, order));
    PetscCallCUSPARSE(cusparseCreateDnMat(&raw->C, m, k, rows ? k : m, yy, ScalarType, order));
  } else {
    PetscCallCUSPARSE(cusparseCreateDnVec(&raw->x, n, (void *)xx, ScalarType));
    PetscCallCUSPARSE(cusparseCreateDnVec(&raw->y, m, yy, ScalarType));
  }
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUSPARSE(cusparseSetStream(device.cusparse, stream));
  if (which >= FirstSpMVOp) {
#if BENCH_SPMVOP
    size_t *const need = &bytes;

    /* z = alpha A x + beta y: a y of zeros, since whether it is read with beta 0 is not told */
    PetscCallCUDA(cudaMalloc((void **)&raw->zeros, PetscMax(m, 1) * sizeof(PetscScalar)));
    PetscCallCUDA(cudaMemset(raw->zeros, 0, m * sizeof(PetscScalar)));
    PetscCallCUSPARSE(cusparseCreateDnVec(&raw->added, m, raw->zeros, ScalarType));
    PetscCallCUSPARSE(cusparseSpMVOp_bufferSize(device.cusparse, raw->op, raw->A, raw->x, raw->added, raw->y, ScalarType, BENCH_SPMVOP_ALG(raw->alg) need));
    PetscCallCUDA(cudaMalloc(&raw->buffer, PetscMax(bytes, 1)));
    PetscCallCUSPARSE(cusparseSpMVOp_createDescr(device.cusparse, &raw->descr, raw->op, raw->A, raw->x, raw->added, raw->y, ScalarType, BENCH_SPMVOP_ALG(raw->alg) raw->buffer));
    PetscCallCUSPARSE(cusparseSpMVOp_createPlan(device.cusparse, raw->descr, &raw->plan, NULL, 0));
#endif
  } else if (k) {
    const cusparseSpMMAlg_t alg = (cusparseSpMMAlg_t)raw->alg;

    PetscCallCUSPARSE(cusparseSpMM_bufferSize(device.cusparse, raw->op, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, raw->A, raw->B, &zero, raw->C, ScalarType, alg, &bytes));
    PetscCallCUDA(cudaMalloc(&raw->buffer, PetscMax(bytes, 1)));
    PetscCallCUSPARSE(cusparseSpMM_preprocess(device.cusparse, raw->op, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, raw->A, raw->B, &zero, raw->C, ScalarType, alg, raw->buffer));
  } else {
    const cusparseSpMVAlg_t alg = (cusparseSpMVAlg_t)raw->alg;

    PetscCallCUSPARSE(cusparseSpMV_bufferSize(device.cusparse, raw->op, &one, raw->A, raw->x, &zero, raw->y, ScalarType, alg, &bytes));
    PetscCallCUDA(cudaMalloc(&raw->buffer, PetscMax(bytes, 1)));
    PetscCallCUSPARSE(cusparseSpMV_preprocess(device.cusparse, raw->op, &one, raw->A, raw->x, &zero, raw->y, ScalarType, alg, raw->buffer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyCSC(const Raw *raw)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(raw->yarray, 0, raw->m * sizeof(PetscScalar), stream));
  CSCKernel<<<(unsigned int)(((PetscCount)raw->n * WarpSize + Threads - 1) / Threads), Threads, 0, stream>>>(raw->n, raw->i, raw->j, raw->a, raw->xarray, raw->yarray);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RawApply(void *ctx)
{
  const Raw        *raw = (const Raw *)ctx;
  const PetscScalar one = 1, zero = 0;

  PetscFunctionBegin;
  if (raw->xarray) {
    PetscCall(ApplyCSC(raw));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if BENCH_SPMVOP
  if (raw->plan) {
    PetscCallCUSPARSE(cusparseSpMVOp(device.cusparse, raw->plan, &one, &zero, raw->x, raw->added, raw->y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (raw->B) PetscCallCUSPARSE(cusparseSpMM(device.cusparse, raw->op, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, raw->A, raw->B, &zero, raw->C, ScalarType, (cusparseSpMMAlg_t)raw->alg, raw->buffer));
  else PetscCallCUSPARSE(cusparseSpMV(device.cusparse, raw->op, &one, raw->A, raw->x, &zero, raw->y, ScalarType, (cusparseSpMVAlg_t)raw->alg, raw->buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy in pinned memory, which no copy to the GPU has read yet: the first one takes longer */
template <typename T>
static PetscErrorCode CreatePinned(const T *from, PetscCount n, T **ptr)
{
  T *host;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &host));
  PetscCallCUDA(cudaMemcpy(host, from, (size_t)n * sizeof(T), cudaMemcpyDeviceToHost));
  PetscCallCUDA(cudaMallocHost((void **)ptr, PetscMax(n, 1) * sizeof(T)));
  PetscCall(PetscArraycpy(*ptr, host, n));
  PetscCall(PetscFree(host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program that calls cuSPARSE does before its first product. The first call makes what others copy from. */
static PetscErrorCode RawLoad(void *ctx, PetscBool columns)
{
  Raw         *raw    = (Raw *)ctx;
  const size_t jbytes = (size_t)raw->nz * sizeof(*raw->j), abytes = (size_t)raw->nz * sizeof(*raw->a);
  cudaStream_t stream;

  PetscFunctionBegin;
  if (!raw->hostj) {
    PetscCall(CreatePinned(raw->j, raw->nz, &raw->hostj));
    PetscCall(CreatePinned(raw->a, raw->nz, &raw->hosta));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (columns) PetscCallCUDA(cudaMemcpyAsync(raw->j, raw->hostj, jbytes, cudaMemcpyHostToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync(raw->a, raw->hosta, abytes, cudaMemcpyHostToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RawDestroy(void **ctx)
{
  Raw *raw = (Raw *)*ctx;

  PetscFunctionBegin;
#if BENCH_SPMVOP
  if (raw->plan) {
    PetscCallCUSPARSE(cusparseSpMVOp_destroyPlan(raw->plan));
    PetscCallCUSPARSE(cusparseSpMVOp_destroyDescr(raw->descr));
    PetscCallCUSPARSE(cusparseDestroyDnVec(raw->added));
    PetscCallCUDA(cudaFree(raw->zeros));
  }
#endif
  if (raw->A) PetscCallCUSPARSE(cusparseDestroySpMat(raw->A));
  if (raw->B) {
    PetscCallCUSPARSE(cusparseDestroyDnMat(raw->B));
    PetscCallCUSPARSE(cusparseDestroyDnMat(raw->C));
  } else if (raw->x) {
    PetscCallCUSPARSE(cusparseDestroyDnVec(raw->x));
    PetscCallCUSPARSE(cusparseDestroyDnVec(raw->y));
  }
  PetscCallCUDA(cudaFree(raw->i));
  PetscCallCUDA(cudaFree(raw->j));
  PetscCallCUDA(cudaFree(raw->a));
  PetscCallCUDA(cudaFreeHost(raw->hostj));
  PetscCallCUDA(cudaFreeHost(raw->hosta));
  PetscCallCUDA(cudaFree(raw->buffer));
  PetscCall(PetscFree(raw));
  *ctx = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The best of several copies */
static PetscErrorCode Copy(PetscLogDouble bytes, PetscLogDouble *seconds)
{
  void *from, *to;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMallocHost(&from, (size_t)bytes));
  PetscCallCUDA(cudaMalloc(&to, (size_t)bytes));
  PetscCall(PetscMemzero(from, (size_t)bytes));
  *seconds = PETSC_MAX_REAL;
  for (int k = 0; k < 5; k++) {
    PetscLogDouble t = 0;

    PetscCall(TimeOf(1, &t, [=](cudaStream_t stream) {
      PetscCallCUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyHostToDevice, stream));
      return PETSC_SUCCESS;
    }));
    *seconds = PetscMin(*seconds, t);
  }
  PetscCallCUDA(cudaFree(to));
  PetscCallCUDA(cudaFreeHost(from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const BenchPlace BenchDevice = {Start, Finish, Time, TimeCold, Memory, Copy, Peak, PETSC_STATIC_ARRAY_LENGTH(Raws), Raws, RawCreate, RawApply, RawLoad, RawDestroy};
