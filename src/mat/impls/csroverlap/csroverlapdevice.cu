/* CSROVERLAP on the GPU: a copy of the CSR arrays, the batches, and the one kernel of its product */

#include <cuda_pipeline.h>
#include <gallop/cudaimpl.h>
#include "csroverlap.h"

static constexpr int Threads = 256; /* T of the paper */
static constexpr int Stages  = 2;   /* batches in shared memory */

template <typename V, typename I>
struct BatchesView {
  const I         *row_offsets, *column_indices;
  const V         *values;
  const BatchInfo *batch_infos;
  const I         *long_row_infos;
  PetscCount       nz;
  PetscInt         batch_num, block_batch_num, long_row_num;
  int              max_batch_size;
};

/* Room for a batch whose first entry does not lie at a multiple of 16 bytes */
template <typename T>
static __host__ __device__ constexpr int StageItems(int max_batch_size)
{
  return max_batch_size + 2 * 16 / (int)sizeof(T);
}

template <typename V, typename I>
static __host__ __device__ constexpr size_t StageBytes(int max_batch_size)
{
  return (StageItems<V>(max_batch_size) * sizeof(V) + StageItems<I>(max_batch_size) * sizeof(I) + 15) / 16 * 16;
}

/* Entries [begin, end) of an array to shared memory, 16 bytes at a time, from the multiple of 16 bytes at or before begin on; nothing behind the array is read */
template <typename T>
static __device__ __forceinline__ void CopyAsync(T *to, const T *from, PetscCount begin, PetscCount end, PetscCount all)
{
  constexpr int    items = 16 / sizeof(T);
  const PetscCount first = begin / items * items;

  for (PetscCount at = first + threadIdx.x * items; at < end; at += Threads * items) {
    const PetscCount left = all - at;

    if (left >= items) __pipeline_memcpy_async(to + (at - first), from + at, 16);
    else
      for (PetscCount k = 0; k < left; k++) __pipeline_memcpy_async(to + (at - first) + k, from + at + k, sizeof(T));
  }
}

/* Algorithm 5: VectorSize threads compute a row */
template <int VectorSize, typename V, typename I>
static __device__ __forceinline__ void VectorCompute(const BatchesView<V, I> &csr, const BatchInfo &batch, PetscInt begin, const V *sval, const I *scol, const GallopVectors<V> &v)
{
  constexpr int vectors = Threads / VectorSize;
  const int     lane = threadIdx.x % VectorSize, vector = threadIdx.x / VectorSize;

  for (PetscInt base = batch.start_row; base < batch.end_row; base += vectors) {
    const PetscInt row    = base + vector;
    const bool     inside = row < batch.end_row;
    V              sum    = V(0);

    if (inside) {
      const int last = (int)(csr.row_offsets[row + 1] - begin);

#pragma unroll 4
      for (int k = (int)(csr.row_offsets[row] - begin) + lane; k < last; k += VectorSize) sum += sval[k] * v.x[scol[k]];
    }
    sum = GallopGroupSum(sum, VectorSize);
    if (inside && lane == 0) GallopStore(v, row, sum);
  }
}

/* Algorithm 6 */
template <typename V, typename I>
static __device__ __forceinline__ void Compute(const BatchesView<V, I> &csr, const CSROverlapOptions &options, const BatchInfo &batch, const unsigned char *stage, const GallopVectors<V> &v)
{
  const PetscInt begin = csr.row_offsets[batch.start_row], nnz = csr.row_offsets[batch.end_row] - begin;
  const V       *sval = reinterpret_cast<const V *>(stage) + begin % (16 / (int)sizeof(V));
  const I       *scol = reinterpret_cast<const I *>(stage + StageItems<V>(csr.max_batch_size) * sizeof(V)) + begin % (16 / (int)sizeof(I));

  switch (CSROverlapVectorSize(&options, batch.end_row - batch.start_row, nnz)) {
  case 0:
    VectorCompute<1>(csr, batch, begin, sval, scol, v);
    break;
  case 1:
    VectorCompute<2>(csr, batch, begin, sval, scol, v);
    break;
  case 2:
    VectorCompute<4>(csr, batch, begin, sval, scol, v);
    break;
  case 3:
    VectorCompute<8>(csr, batch, begin, sval, scol, v);
    break;
  case 4:
    VectorCompute<16>(csr, batch, begin, sval, scol, v);
    break;
  default:
    VectorCompute<32>(csr, batch, begin, sval, scol, v);
  }
}

template <typename V, typename I>
static __device__ __forceinline__ void Fetch(const BatchesView<V, I> &csr, PetscInt b, unsigned char *stage)
{
  const BatchInfo  batch = csr.batch_infos[b];
  const PetscCount begin = csr.row_offsets[batch.start_row], end = csr.row_offsets[batch.end_row];

  CopyAsync(reinterpret_cast<V *>(stage), csr.values, begin, end, csr.nz);
  CopyAsync(reinterpret_cast<I *>(stage + StageItems<V>(csr.max_batch_size) * sizeof(V)), csr.column_indices, begin, end, csr.nz);
}

/* Algorithm 9: a block computes a row */
template <typename V, typename I>
static __device__ __forceinline__ void LongRow(const BatchesView<V, I> &csr, PetscInt row, const GallopVectors<V> &v)
{
  V sum = V(0);

#pragma unroll 8
  for (PetscCount k = csr.row_offsets[row] + (PetscCount)threadIdx.x; k < csr.row_offsets[row + 1]; k += Threads) sum += csr.values[k] * v.x[csr.column_indices[k]];
  sum = GallopWarpsSum<Threads>(sum, Threads);
  if (threadIdx.x == 0) GallopStore(v, row, sum);
}

/* Algorithm 4. The first blocks compute the long rows, so that these start first; no second kernel is needed. */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) csr_partial_overlapping(const BatchesView<V, I> csr, const CSROverlapOptions options, const GallopVectors<V> v, const bool fresh)
{
  extern __shared__ __align__(16) unsigned char stages[];
  const size_t                                  bytes = StageBytes<V, I>(csr.max_batch_size);

  if (fresh) GallopWaitForPredecessor();
  if (blockIdx.x < csr.long_row_num) {
    GallopWaitForPredecessor();
    LongRow(csr, csr.long_row_infos[blockIdx.x], v);
    return;
  }
  const PetscCount start = (PetscCount)(blockIdx.x - csr.long_row_num) * csr.block_batch_num, end = start + csr.block_batch_num < csr.batch_num ? start + csr.block_batch_num : csr.batch_num;

  if (start < end) Fetch(csr, (PetscInt)start, stages);
  __pipeline_commit();
  GallopWaitForPredecessor(); /* the matrix comes without waiting, vectors do not */
  for (PetscCount b = start; b < end; b++) {
    if (b + 1 < end) Fetch(csr, (PetscInt)(b + 1), stages + (b + 1 - start) % Stages * bytes);
    __pipeline_commit();
    __pipeline_wait_prior(Stages - 1);
    __syncthreads();
    Compute(csr, options, csr.batch_infos[b], stages + (b - start) % Stages * bytes, v);
    __syncthreads(); /* its place is for the batch after the next */
  }
}

/* Runs twice: with a null base it measures, then it hands out */
static size_t Carve(CSROverlap *ov, void *base)
{
  GallopCarver carver(base);
  PetscInt    *i, *j;
  PetscScalar *a;

  carver.Take(i, ov->m + 1);
  carver.Take(j, ov->nz);
  carver.Take(a, ov->nz);
  carver.Take(ov->batch_infos, ov->batch_num);
  carver.Take(ov->long_row_infos, ov->long_row_num);
  ov->row_offsets    = i;
  ov->column_indices = j;
  ov->values         = a;
  return carver.Bytes();
}

static PetscErrorCode Free(CSROverlap *ov)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree((void *)ov->row_offsets)); /* where the one allocation begins */
  PetscCall(PetscFree(ov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapDestroy_Device(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((CSROverlap *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapRefresh_Device(void *data, const GallopCSR *csr)
{
  CSROverlap  *ov = (CSROverlap *)data;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync((void *)ov->values, csr->a, (size_t)ov->nz * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
  ov->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapBuild_Device(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  const CSROverlapOptions *options = (const CSROverlapOptions *)opts;
  auto *const              kernel  = csr_partial_overlapping<PetscScalar, PetscInt>;
  const int                shared  = (int)(Stages * StageBytes<PetscScalar, PetscInt>((int)options->max_batch_size));
  CSROverlap              *ov;
  BatchInfo               *batch_infos;
  PetscInt                *long_row_infos;
  void                    *base = NULL;
  int                      device, processors, resident;
  cudaStream_t             stream;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscNew(&ov));
  ov->memtype = PETSC_MEMTYPE_CUDA;
  ov->m       = csr->m;
  ov->n       = csr->n;
  ov->nz      = csr->nz;
  ov->options = *options;
  PetscCall(CSROverlapPartition(options, csr->m, csr->host_i, &ov->batch_num, &batch_infos, &ov->long_row_num, &long_row_infos));
  CSROverlapMeasure(ov, csr->host_i, batch_infos);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(GallopKernelOverlaps(kernel, &ov->overlaps));
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, Threads, shared));
  PetscCheck(resident > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Two batches of -mat_csroverlap_max_batch_size %" PetscInt_FMT " entries take %d bytes of shared memory, more than this GPU has",
             options->max_batch_size, shared);
  ov->blocks = resident * processors;
  ov->bytes  = Carve(ov, NULL);
  if (!maxbytes || ov->bytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(ov->bytes, &base));
  if (base) {
    (void)Carve(ov, base);
    PetscCallCUDA(cudaMemcpyAsync((void *)ov->row_offsets, csr->i, (size_t)(ov->m + 1) * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    PetscCallCUDA(cudaMemcpyAsync((void *)ov->column_indices, csr->j, (size_t)ov->nz * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    PetscCall(GallopDeviceCopyIn(ov->batch_infos, batch_infos, (size_t)ov->batch_num * sizeof(BatchInfo)));
    PetscCall(GallopDeviceCopyIn(ov->long_row_infos, long_row_infos, (size_t)ov->long_row_num * sizeof(PetscInt)));
    PetscCall(CSROverlapRefresh_Device(ov, csr));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* the infos are pageable and about to go */
    *built = ov;
  } else {
    ov->row_offsets = NULL;
    PetscCall(Free(ov));
  }
  PetscCall(PetscFree(batch_infos));
  PetscCall(PetscFree(long_row_infos));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapApply_Device(void *data, const GallopProduct *p)
{
  CSROverlap                              *ov   = (CSROverlap *)data;
  const GallopVectors<PetscScalar>         v    = {*p->alpha, *p->beta, p->x, p->y, p->z, *p->beta != PetscScalar(0)};
  const PetscInt                           each = (PetscInt)(((PetscCount)ov->batch_num + ov->blocks - 1) / ov->blocks), blocks = each ? (ov->batch_num + each - 1) / each : 0;
  const BatchesView<PetscScalar, PetscInt> view   = {ov->row_offsets, ov->column_indices, ov->values, ov->batch_infos,  ov->long_row_infos,
                                                     ov->nz,          ov->batch_num,      each,       ov->long_row_num, (int)ov->options.max_batch_size};
  const size_t                             shared = Stages * StageBytes<PetscScalar, PetscInt>(view.max_batch_size);
  cudaStream_t                             stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(GallopLaunch(csr_partial_overlapping<PetscScalar, PetscInt>, {(PetscCount)blocks + ov->long_row_num, Threads, 1, shared, stream, (bool)ov->overlaps}, view, ov->options, v, (bool)ov->fresh));
  PetscCallCUDA(GallopNotFresh(stream, &ov->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapDevice = {CSROverlapBuild_Device, CSROverlapRefresh_Device, CSROverlapApply_Device, CSROverlapDestroy_Device};
