/* CSROVERLAP on the GPU: a copy of the CSR arrays, the batches, and the one kernel of its product */

#include <cuda_pipeline.h>
#include <gallop/cudaimpl.h>
#include "csroverlapdevice.h"

static constexpr int Threads   = CSROVERLAP_THREADS;
static constexpr int Warps     = Threads / WarpSize;
static constexpr int BatchRun  = 4;    /* most batches of a GPU block, one after the other */
static constexpr int PieceLow  = 1024; /* entries of a piece of a long row, at least and at most, and how many pieces keep a multiprocessor busy */
static constexpr int PieceHigh = 16384;
static constexpr int PieceBusy = 16;
static constexpr int Carveout = 132 << 10, CarveoutLarge = 164 << 10; /* bytes of shared memory of a multiprocessor: what is left is L1, where loads of x wait, unless rows are even */

template <typename V, typename I>
struct CsrView {
  const I            *row_offsets, *column_indices;
  const V            *values;
  const BatchWork    *batch_works;
  const LongRowPiece *pieces;
  V                  *partial;
  int                *arrived;
  PetscInt            batch_num, block_batch_num, piece_begin, piece_num; /* of this launch; pieces from piece_begin on */
  int                 max_batch_size;
};

/* Shared memory of a GPU block: the batch that is being copied, the row offsets of two batches, products of the batch that is being computed, and its rows that wait */
template <typename T>
static __host__ __device__ constexpr size_t PaddedBytes(int items) /* room for the multiples of 16 bytes around them */
{
  return (items * sizeof(T) + 2 * 16) / 16 * 16;
}

template <typename V, typename I>
struct Shared {
  int max_batch_size;

  __host__ __device__ size_t Columns() const { return PaddedBytes<V>(max_batch_size); }
  __host__ __device__ size_t Offsets(int slot) const { return Columns() + PaddedBytes<I>(max_batch_size) + slot * PaddedBytes<I>(Threads + 1); }
  __host__ __device__ size_t Products() const { return Offsets(2); }
  __host__ __device__ size_t Waiting() const { return Products() + PaddedBytes<V>(max_batch_size > Threads + Warps ? max_batch_size : Threads + Warps); }
  __host__ __device__ size_t Bytes() const { return Waiting() + Threads * sizeof(int); }
};

/* ---- copies to shared memory that occupy no thread ---- */

/* Where items begin that are copied from the multiple of 16 bytes at or before begin on */
template <typename T>
static __device__ __forceinline__ const T *Placed(const unsigned char *at, PetscCount begin)
{
  return reinterpret_cast<const T *>(at) + begin % (16 / (int)sizeof(T));
}

template <typename T>
static __device__ __forceinline__ unsigned int CopyBytes(PetscCount begin, PetscCount end)
{
  constexpr int items = 16 / sizeof(T);

  return (unsigned int)(((end + items - 1) / items - begin / items) * 16);
}

#if __CUDA_ARCH__ >= 900
/* The copy engine writes for itself, one thread starts it, and an mbarrier counts the bytes */
struct Arrival {
  unsigned long long *barrier;
  unsigned int        parity = 0;
  unsigned long long  once; /* the matrix is read once a product: what it pushes out of L2 should not be x */

  __device__ __forceinline__ unsigned int Address() const { return (unsigned int)__cvta_generic_to_shared(barrier); }
  __device__ __forceinline__ void         Init()
  {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Address()));
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
  __device__ __forceinline__ void Expect(unsigned int bytes) const { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Address()), "r"(bytes) : "memory"); }
  __device__ __forceinline__ void Wait()
  {
    asm volatile("{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::"r"(Address()), "r"(parity) : "memory");
    parity ^= 1;
  }
  __device__ __forceinline__ void Copy(void *to, const void *from, unsigned int bytes) const
  {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes), "r"(Address()), "l"(once)
                 : "memory");
  }
};
#endif

/* From 8.0 on every thread starts copies of 16 bytes, which below are ordinary ones */
template <typename T>
static __device__ __forceinline__ void CopyByThreads(unsigned char *to, const T *from, PetscCount begin, PetscCount end)
{
  const unsigned char *first = reinterpret_cast<const unsigned char *>(from + begin / (16 / (int)sizeof(T)) * (16 / (int)sizeof(T)));

  for (unsigned int at = threadIdx.x * 16; at < CopyBytes<T>(begin, end); at += Threads * 16) __pipeline_memcpy_async(to + at, first + at, 16);
}

/* Begins to copy a batch. Arrays are padded, so that the last 16 bytes may be read where fewer are theirs. */
template <typename V, typename I, typename A>
static __device__ __forceinline__ void Fetch(const CsrView<V, I> &csr, const Shared<V, I> &layout, unsigned char *shared, int slot, const BatchWork &work, const A &arrival)
{
  const PetscCount begin = work.begin, end = begin + work.nnz, row = work.start_row, rowend = row + work.rows + 1;

#if __CUDA_ARCH__ >= 900
  const unsigned int values = work.nnz ? CopyBytes<V>(begin, end) : 0, columns = work.nnz ? CopyBytes<I>(begin, end) : 0, offsets = CopyBytes<I>(row, rowend);

  if (threadIdx.x != 0) return;
  arrival.Expect(values + columns + offsets);
  if (work.nnz) {
    arrival.Copy(shared, csr.values + begin / (16 / (int)sizeof(V)) * (16 / (int)sizeof(V)), values);
    arrival.Copy(shared + layout.Columns(), csr.column_indices + begin / (16 / (int)sizeof(I)) * (16 / (int)sizeof(I)), columns);
  }
  arrival.Copy(shared + layout.Offsets(slot), csr.row_offsets + row / (16 / (int)sizeof(I)) * (16 / (int)sizeof(I)), offsets);
#else
  if (work.nnz) {
    CopyByThreads(shared, csr.values, begin, end);
    CopyByThreads(shared + layout.Columns(), csr.column_indices, begin, end);
  }
  CopyByThreads(shared + layout.Offsets(slot), csr.row_offsets, row, rowend);
  __pipeline_commit();
#endif
}

#if __CUDA_ARCH__ < 900
struct Arrival {
  __device__ __forceinline__ void Wait()
  {
    __pipeline_wait_prior(0);
    __syncthreads();
  }
};
#endif

/* A load that is under way when its thread comes to a barrier could still see what the copy engine writes after it. So loads are finished first: a use that the compiler cannot drop. */
template <typename T>
static __device__ __forceinline__ int Mixed(T value)
{
  static_assert(sizeof(T) % sizeof(int) == 0, "scalars are whole words");
  union
  {
    T   t;
    int word[sizeof(T) / sizeof(int)];
  } u       = {value};
  int mixed = u.word[0];

#pragma unroll
  for (int k = 1; k < (int)(sizeof(T) / sizeof(int)); k++) mixed ^= u.word[k];
  return mixed;
}

static __device__ __forceinline__ void FinishLoads(int mixed)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .pred p;\nsetp.eq.s32 p, %0, 0x5a7b31c3;\n@p nanosleep.u32 0;\n}" ::"r"(mixed) : "memory");
#endif
}

/* ---- the sums of a batch ---- */

/* Algorithm 5: VectorSize threads sum a row, of products in shared memory */
template <int VectorSize, typename V, typename I>
static __device__ __forceinline__ void VectorCompute(const BatchWork &work, const V *products, const I *offsets, int *waiting, int *nwaiting, const GallopVectors<V> &v)
{
  constexpr int vectors = Threads / VectorSize;
  const int     lane = threadIdx.x % VectorSize, vector = threadIdx.x / VectorSize;
  const bool    uneven = work.kind & CSROVERLAP_KIND_UNEVEN;

  for (int base = 0; base < work.rows; base += vectors) {
    const int row    = base + vector;
    bool      inside = row < work.rows;
    int       k = inside ? (int)(offsets[row] - work.begin) : 0, end = inside ? (int)(offsets[row + 1] - work.begin) : 0;
    V         sum = V(0);

    if (uneven && end - k > CSROVERLAP_UNEVEN * VectorSize) {
      if (lane == 0) waiting[atomicAdd(nwaiting, 1)] = row;
      inside = false;
      end    = k;
    }
#pragma unroll 4
    for (k += lane; k < end; k += VectorSize) sum += products[k];
    sum = GallopGroupSum(sum, VectorSize);
    if (inside && lane == 0) GallopStore(v, work.start_row + row, sum);
  }
  if (uneven) { /* a warp sums each of the rows that wait: their order does not matter */
    __syncthreads();
    for (int i = threadIdx.x / WarpSize; i < *nwaiting; i += Warps) {
      const int row = waiting[i], end = (int)(offsets[row + 1] - work.begin);
      V         sum = V(0);

#pragma unroll 4
      for (int k = (int)(offsets[row] - work.begin) + threadIdx.x % WarpSize; k < end; k += WarpSize) sum += products[k];
      sum = GallopGroupSum(sum, WarpSize);
      if (threadIdx.x % WarpSize == 0) GallopStore(v, work.start_row + row, sum);
    }
    __syncthreads();
    if (threadIdx.x == 0) *nwaiting = 0;
  }
}

/* vector_size 32: warps have equal shares of the entries, whatever the rows; each sums its part of a row, and these meet in parts[row + warp] */
template <int Each, typename V, typename I>
static __device__ __forceinline__ void WarpCompute(const BatchWork &work, const V (&product)[Each], const I *offsets, V *parts, const GallopVectors<V> &v)
{
  constexpr int share = WarpSize * Each;
  const int     warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize, begin = warp * share, end = begin + share < work.nnz ? begin + share : work.nnz;
  int           row = 0;

  if (begin < end) {
    for (int base = 0; base < work.rows; base += WarpSize) row += __popc(__ballot_sync(0xffffffffu, base + lane < work.rows && offsets[base + lane + 1] - work.begin <= begin));
    for (int k = begin; k < end; row++) {
      const int rowend = (int)(offsets[row + 1] - work.begin), stop = rowend < end ? rowend : end;
      V         sum = V(0);

      if (stop <= k) continue;
#pragma unroll
      for (int e = 0; e < Each; e++) {
        const int at = begin + e * WarpSize + lane;

        if (at >= k && at < stop) sum += product[e];
      }
      sum = GallopGroupSum(sum, WarpSize);
      if (lane == 0) parts[row + warp] = sum;
      k = stop;
    }
  }
  __syncthreads();
  for (row = threadIdx.x; row < work.rows; row += Threads) {
    const int first = (int)(offsets[row] - work.begin), last = (int)(offsets[row + 1] - work.begin) - 1;
    V         sum = V(0);

    if (last >= first)
      for (int w = first / share; w <= last / share; w++) sum += parts[row + w];
    GallopStore(v, work.start_row + row, sum);
  }
}

/* Algorithm 9 for a piece of a long row; where the row has several, the last block to come adds them, in their order */
template <typename V, typename I>
static __device__ __forceinline__ void LongRow(const CsrView<V, I> &csr, const GallopVectors<V> &v)
{
  const PetscInt     number = csr.piece_begin + (PetscInt)blockIdx.x;
  const LongRowPiece piece  = csr.pieces[number];
  V                  sum    = V(0);
  PetscCount         k      = (PetscCount)piece.begin + threadIdx.x;

  for (; k + 3 * Threads < piece.end; k += 4 * Threads) {
    I column[4];
    V value[4];

#pragma unroll
    for (int u = 0; u < 4; u++) {
      column[u] = GallopLoadOnce(csr.column_indices + k + u * Threads);
      value[u]  = GallopLoadOnce(csr.values + k + u * Threads);
    }
#pragma unroll
    for (int u = 0; u < 4; u++) sum += value[u] * GallopLoadReadOnly(v.x + column[u]);
  }
  for (; k < piece.end; k += Threads) sum += GallopLoadOnce(csr.values + k) * v.x[GallopLoadOnce(csr.column_indices + k)];
  sum = GallopWarpsSum<Threads>(sum, Threads);
  if (threadIdx.x != 0) return;
  if (piece.pieces > 1) {
    csr.partial[number] = sum;
    __threadfence();
    if (atomicAdd(csr.arrived + piece.first, 1) != (int)piece.pieces - 1) return;
    csr.arrived[piece.first] = 0; /* for the next product */
    __threadfence();
    sum = V(0);
    for (PetscInt p = piece.first; p < piece.first + piece.pieces; p++) sum += GallopLoadFromL2(csr.partial + p);
  }
  GallopStore(v, piece.row, sum);
}

/*
  Algorithm 4. The first blocks compute the long rows, so that these start first; no second kernel is needed.

  The two places of the paper's pipeline are shared memory and the registers: once a block's threads have loaded a batch to registers, where they fetch x for it, the
  place in shared memory is free for the next one.
*/
template <int Each, bool Even, typename V, typename I>
__global__ static void __launch_bounds__(Threads) csr_partial_overlapping(const CsrView<V, I> csr, const GallopVectors<V> v, const bool fresh)
{
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ int                                 nwaiting;
  const Shared<V, I>                             layout   = {csr.max_batch_size};
  V *const                                       products = reinterpret_cast<V *>(shared + layout.Products());
  const int                                      first    = threadIdx.x / WarpSize * WarpSize * Each + threadIdx.x % WarpSize; /* of its entries in a batch */

  if (fresh) GallopWaitForPredecessor();
  if (blockIdx.x < csr.piece_num) {
    GallopWaitForPredecessor();
    LongRow(csr, v);
    return;
  }
  const PetscCount begin = (PetscCount)(blockIdx.x - csr.piece_num) * csr.block_batch_num, end = begin + csr.block_batch_num < csr.batch_num ? begin + csr.block_batch_num : csr.batch_num;
  BatchWork        work = csr.batch_works[begin], next = begin + 1 < end ? csr.batch_works[begin + 1] : work;
#if __CUDA_ARCH__ >= 900
  __shared__ unsigned long long barrier;
  Arrival                       arrival = {&barrier};

  arrival.Init();
#else
  Arrival arrival;
#endif
  if (threadIdx.x == 0) nwaiting = 0;
  Fetch(csr, layout, shared, 0, work, arrival);
  GallopWaitForPredecessor(); /* the matrix comes without waiting, vectors do not */
  for (PetscCount b = begin; b < end; b++) {
    const int  slot    = (int)(b - begin) % 2;
    const I   *offsets = Placed<I>(shared + layout.Offsets(slot), work.start_row), *columns = Placed<I>(shared + layout.Columns(), work.begin);
    const V   *values = Placed<V>(shared, work.begin);
    const bool rows   = work.kind & CSROVERLAP_KIND_ROWS;
    V          product[Each];
    I          column[Each];
    int        mixed = 0;

    arrival.Wait();
    if (rows) { /* a thread has a row */
      const bool inside = (int)threadIdx.x < work.rows;
      const int  first = inside ? (int)(offsets[threadIdx.x] - work.begin) : 0, length = inside ? (int)(offsets[threadIdx.x + 1] - work.begin) - first : 0;

#pragma unroll
      for (int e = 0; e < Each; e++) {
        product[e] = e < length ? values[first + e] : V(0);
        column[e]  = e < length ? columns[first + e] : -1;
      }
    } else { /* neighbouring threads have neighbouring entries */
#pragma unroll
      for (int e = 0; e < Each; e++) {
        product[e] = first + e * WarpSize < work.nnz ? values[first + e * WarpSize] : V(0);
        column[e]  = first + e * WarpSize < work.nnz ? columns[first + e * WarpSize] : -1;
      }
    }
#pragma unroll
    for (int e = 0; e < Each; e++) mixed ^= Mixed(product[e]) ^ Mixed(column[e]);
    FinishLoads(mixed);
    __syncthreads();
    const BatchWork after = b + 2 < end ? csr.batch_works[b + 2] : next;

    if (b + 1 < end) Fetch(csr, layout, shared, 1 - slot, next, arrival);
    V x[Each]; /* all are asked for before the first is used */

#pragma unroll
    for (int e = 0; e < Each; e++) x[e] = column[e] >= 0 ? GallopLoadReadOnly(v.x + column[e]) : V(0);
#pragma unroll
    for (int e = 0; e < Each; e++) product[e] *= x[e];
    if (rows) {
      V sum = product[0];

#pragma unroll
      for (int e = 1; e < Each; e++) sum += product[e];
      if ((int)threadIdx.x < work.rows) GallopStore(v, work.start_row + (PetscInt)threadIdx.x, sum);
    } else if ((work.kind & CSROVERLAP_KIND_SIZE) == CSROVERLAP_SIZES - 1) {
      WarpCompute<Each>(work, product, offsets, products, v);
    } else {
      int *const waiting = reinterpret_cast<int *>(shared + layout.Waiting());

#pragma unroll
      for (int e = 0; e < Each; e++)
        if (column[e] >= 0) products[first + e * WarpSize] = product[e];
      __syncthreads();
      switch (work.kind & CSROVERLAP_KIND_SIZE) {
      case 0:
        VectorCompute<1>(work, products, offsets, waiting, &nwaiting, v);
        break;
      case 1:
        VectorCompute<2>(work, products, offsets, waiting, &nwaiting, v);
        break;
      case 2:
        VectorCompute<4>(work, products, offsets, waiting, &nwaiting, v);
        break;
      case 3:
        VectorCompute<8>(work, products, offsets, waiting, &nwaiting, v);
        break;
      default:
        VectorCompute<16>(work, products, offsets, waiting, &nwaiting, v);
      }
    }
    work = next;
    next = after;
  }
}

/* ---- build ---- */

/* A warp describes a batch to the kernel */
__global__ static void DescribeBatchesKernel(PetscInt batch_num, const BatchInfo *batch_infos, const PetscInt *row_offsets, const CSROverlapOptions options, int each, BatchWork *batch_works)
{
  const PetscCount b       = ((PetscCount)blockIdx.x * blockDim.x + threadIdx.x) / WarpSize;
  const int        lane    = threadIdx.x % WarpSize;
  PetscInt         longest = 0;

  if (b >= batch_num) return;
  const BatchInfo info = batch_infos[b];

  for (PetscInt row = info.start_row + lane; row < info.end_row; row += WarpSize) {
    const PetscInt length = row_offsets[row + 1] - row_offsets[row];

    longest = length > longest ? length : longest;
  }
  for (int by = WarpSize / 2; by > 0; by /= 2) {
    const PetscInt other = GallopShuffleDown(longest, by, WarpSize);

    longest = other > longest ? other : longest;
  }
  if (lane == 0) {
    BatchWork work;

    work.start_row = info.start_row;
    work.begin     = row_offsets[info.start_row];
    work.rows      = (unsigned short)(info.end_row - info.start_row);
    work.nnz       = (int)(row_offsets[info.end_row] - work.begin);
    work.kind      = (unsigned short)CSROverlapKind(&options, each, work.rows, work.nnz, longest);
    batch_works[b] = work;
  }
}

/* Batches in the order in which the kernel takes them, those without entries last: a product that adds to z leaves them out. *order is NULL where that is their order. */
static PetscErrorCode OrderBatches(PetscInt batch_num, const BatchInfo batch_infos[], const PetscInt row_offsets[], PetscInt *busy_num, BatchInfo **order)
{
  PetscInt busy = 0, idle;

  PetscFunctionBegin;
  *order = NULL;
  for (PetscInt b = 0; b < batch_num; b++)
    if (row_offsets[batch_infos[b].end_row] > row_offsets[batch_infos[b].start_row]) busy++;
  *busy_num = busy;
  if (busy == batch_num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(batch_num, order));
  idle = busy;
  busy = 0;
  for (PetscInt b = 0; b < batch_num; b++) (*order)[row_offsets[batch_infos[b].end_row] > row_offsets[batch_infos[b].start_row] ? busy++ : idle++] = batch_infos[b];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows in pieces: as many as keep the GPU busy, neither too small nor too large. Freed by the caller. */
static PetscErrorCode CutLongRows(PetscInt long_row_num, const PetscInt long_row_infos[], const PetscInt row_offsets[], int processors, PetscInt *piece_num, LongRowPiece **pieces)
{
  PetscCount entries = 0;
  PetscInt   size    = PieceLow;

  PetscFunctionBegin;
  for (PetscInt l = 0; l < long_row_num; l++) entries += row_offsets[long_row_infos[l] + 1] - row_offsets[long_row_infos[l]];
  while (size < PieceHigh && entries / size > (PetscCount)PieceBusy * processors) size *= 2;
  *piece_num = 0;
  for (PetscInt l = 0; l < long_row_num; l++) *piece_num += (row_offsets[long_row_infos[l] + 1] - row_offsets[long_row_infos[l]] - 1) / size + 1;
  PetscCall(PetscMalloc1(*piece_num, pieces));
  for (PetscInt l = 0, p = 0; l < long_row_num; l++) {
    const PetscInt row = long_row_infos[l], begin = row_offsets[row], end = row_offsets[row + 1], n = (end - begin - 1) / size + 1, first = p;

    for (PetscInt k = 0; k < n; k++, p++) (*pieces)[p] = {row, begin + k * size, k + 1 < n ? begin + (k + 1) * size : end, first, n};
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef void (*Kernel)(const CsrView<PetscScalar, PetscInt>, const GallopVectors<PetscScalar>, const bool);

/* Even has kernels of its own because the carveout belongs to a kernel */
static Kernel GetKernel(PetscInt max_batch_size, PetscBool even)
{
  switch (CSROverlapEach(max_batch_size)) {
  case 1:
    return csr_partial_overlapping<1, false, PetscScalar, PetscInt>;
  case 2:
    return csr_partial_overlapping<2, false, PetscScalar, PetscInt>;
  case 4:
    return even ? csr_partial_overlapping<4, true, PetscScalar, PetscInt> : csr_partial_overlapping<4, false, PetscScalar, PetscInt>;
  case 8:
    return csr_partial_overlapping<8, false, PetscScalar, PetscInt>;
  case 16:
    return csr_partial_overlapping<16, false, PetscScalar, PetscInt>;
  default:
    return csr_partial_overlapping<32, false, PetscScalar, PetscInt>;
  }
}

static size_t SharedBytes(PetscInt max_batch_size)
{
  const Shared<PetscScalar, PetscInt> layout = {(int)max_batch_size};

  return layout.Bytes();
}

/* What the kernel needs of the GPU, and how many of its blocks fit there. Without the option, batches are no larger than a block of this GPU has shared memory for. */
static PetscErrorCode PrepareKernel(CSROverlap *ov, int *processors)
{
  PetscInt           most = CSROVERLAP_LARGEST_BATCH;
  Kernel             kernel;
  cudaFuncAttributes attr = {};
  int                device, block, processor, each = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaFuncGetAttributes(&attr, GetKernel(ov->max_batch_size, ov->even))); /* what it has of a fixed size is the same for all */
  while (most > 32 && SharedBytes(most) + attr.sharedSizeBytes > (size_t)block) most -= 32;
  if (!ov->options.max_batch_size) ov->max_batch_size = PetscMin(ov->max_batch_size, most);
  PetscCheck(ov->max_batch_size <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_csroverlap_max_batch_size %" PetscInt_FMT " takes more shared memory than the %d bytes that a block of this GPU has: must be between 32 and %" PetscInt_FMT, ov->max_batch_size, block, most);
  kernel = GetKernel(ov->max_batch_size, ov->even);
  PetscCallCUDA(GallopKernelOverlaps(kernel, &ov->overlaps));
  /* a kernel's for as long as the process lives, and so for the largest batches of all matrices that it serves */
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SharedBytes(PetscMin(CSROverlapEach(ov->max_batch_size) * Threads, most))));
  if (!ov->even || GetKernel(ov->max_batch_size, PETSC_FALSE) == kernel)
    PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, PetscMin(100, (CSROverlapEach(ov->max_batch_size) >= 8 ? CarveoutLarge : Carveout) / (processor / 100) + 1)));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Threads, SharedBytes(ov->max_batch_size)));
  ov->resident = PetscMax(each, 1) * *processors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs twice: with a null base it measures, then it hands out. A streamed matrix has its entries elsewhere. */
static size_t Carve(CSROverlap *ov, bool entries, void *base)
{
  GallopCarver carver(base);
  PetscInt    *i, *j = NULL;
  PetscScalar *a = NULL;

  carver.Take(i, ov->m + 1);
  carver.Pad(CSROVERLAP_PAD);
  if (entries) {
    carver.Take(j, ov->nz);
    carver.Pad(CSROVERLAP_PAD);
    carver.Take(a, ov->nz);
    carver.Pad(CSROVERLAP_PAD);
  }
  carver.Take(ov->batch_works, ov->batch_num);
  carver.Take(ov->batch_infos, ov->batch_num);
  carver.Take(ov->long_row_infos, ov->long_row_num);
  carver.Take(ov->pieces, ov->piece_num);
  carver.Take(ov->partial, ov->piece_num);
  carver.Take(ov->arrived, ov->piece_num);
  ov->row_offsets    = i;
  ov->column_indices = j;
  ov->values         = a;
  return carver.Bytes();
}

static PetscErrorCode CSROverlapDestroy_Device(void **data)
{
  CSROverlap *ov = (CSROverlap *)*data;

  PetscFunctionBegin;
  PetscCall(CSROverlapTransferDestroy(&ov->transfer));
  PetscCall(GallopDeviceFree((void *)ov->row_offsets)); /* where the one allocation begins */
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapRefresh_Device(void *data, const GallopCSR *csr)
{
  CSROverlap             *ov = (CSROverlap *)data;
  cudaStream_t            stream;
  cudaStreamCaptureStatus capture;

  PetscFunctionBegin;
  ov->fresh = PETSC_TRUE;
  if (ov->transfer) PetscCall(CSROverlapTransferRefresh(ov, csr));
  if (ov->transfer && (PetscMemTypeHost(csr->memtype) || !ov->values)) PetscFunctionReturn(PETSC_SUCCESS); /* the next product copies */
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync((void *)ov->values, csr->a, (size_t)ov->nz * sizeof(PetscScalar), PetscMemTypeHost(csr->memtype) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream));
  if (PetscMemTypeHost(csr->memtype)) {
    PetscCallCUDA(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) PetscCallCUDA(cudaStreamSynchronize(stream)); /* as for the products that copy: the matrix's arrays may be pinned */
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)ov->nz * sizeof(PetscScalar)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix is streamed that nobody asked to be */
static PetscErrorCode WarnStreamed(const CSROverlap *ov)
{
  static PetscBool warned = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscInfo(NULL, "No room on the GPU for %" PetscCount_FMT " entries: each product copies them\n", ov->nz));
  if (!warned)
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no room on the GPU for %" PetscCount_FMT " entries of a CSROVERLAP matrix: each product copies them from the host. Further matrices: -info\n", ov->nz));
  warned = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for the whole matrix, or for what a matrix from the host that is streamed needs besides its buffers; *base is NULL where neither fits, and beyond maxbytes */
static PetscErrorCode Allocate(CSROverlap *ov, const GallopCSR *csr, const BatchInfo batch_infos[], const LongRowPiece pieces[], PetscCount maxbytes, void **base)
{
  const bool       fromhost = PetscMemTypeHost(csr->memtype);
  const PetscCount limit = fromhost ? ov->options.device_memory : 0, most = !maxbytes ? limit : limit ? PetscMin(limit, maxbytes) : maxbytes;

  PetscFunctionBegin;
  *base     = NULL;
  ov->bytes = Carve(ov, true, NULL);
  if (!limit || ov->bytes <= (size_t)limit) {
    if (maxbytes && ov->bytes > (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GallopDeviceMalloc(ov->bytes, base));
    if (*base) (void)Carve(ov, true, *base);
    if (*base && fromhost) PetscCall(CSROverlapTransferCreate(ov, csr, batch_infos, pieces, 0, &ov->transfer));
    if (*base || !fromhost) PetscFunctionReturn(PETSC_SUCCESS);
  }
  ov->bytes = Carve(ov, false, NULL);
  if (most && ov->bytes >= (size_t)most) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(ov->bytes, base));
  if (!*base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(ov, false, *base);
  PetscCall(CSROverlapTransferCreate(ov, csr, batch_infos, pieces, most, &ov->transfer));
  if (!ov->transfer) {
    PetscCall(GallopDeviceFree(*base));
    *base = NULL;
  } else if (!limit) PetscCall(WarnStreamed(ov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapBuild_Device(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  const cudaMemcpyKind kind = PetscMemTypeHost(csr->memtype) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
  CSROverlap          *ov;
  BatchInfo           *batch_infos, *order;
  PetscInt            *long_row_infos;
  LongRowPiece        *pieces;
  void                *base;
  PetscBool            partitioned = PETSC_FALSE;
  int                  processors;
  cudaStream_t         stream;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscNew(&ov));
  ov->memtype = PETSC_MEMTYPE_CUDA;
  ov->m       = csr->m;
  ov->n       = csr->n;
  ov->nz      = csr->nz;
  ov->options = *(const CSROverlapOptions *)opts;
  CSROverlapBatchSize(&ov->options, csr->m, csr->nz, csr->host_i, &ov->max_batch_size, &ov->even);
  PetscCall(PrepareKernel(ov, &processors));
  if (!PetscMemTypeHost(csr->memtype))
    PetscCall(CSROverlapPartition_Device(ov->max_batch_size, csr->m, csr->i, csr->host_i, &ov->batch_num, &batch_infos, &ov->long_row_num, &long_row_infos, &partitioned));
  if (!partitioned) PetscCall(CSROverlapPartition(ov->max_batch_size, csr->m, csr->host_i, &ov->batch_num, &batch_infos, &ov->long_row_num, &long_row_infos));
  PetscCall(CutLongRows(ov->long_row_num, long_row_infos, csr->host_i, processors, &ov->piece_num, &pieces));
  PetscCall(OrderBatches(ov->batch_num, batch_infos, csr->host_i, &ov->busy_num, &order));
  PetscCall(Allocate(ov, csr, order ? order : batch_infos, pieces, maxbytes, &base));
  if (base) {
    PetscCallCUDA(cudaMemcpyAsync((void *)ov->row_offsets, csr->i, (size_t)(ov->m + 1) * sizeof(PetscInt), kind, stream));
    if (!ov->transfer) PetscCallCUDA(cudaMemcpyAsync((void *)ov->column_indices, csr->j, (size_t)ov->nz * sizeof(PetscInt), kind, stream));
    PetscCall(GallopDeviceCopyIn(ov->batch_infos, order ? order : batch_infos, (size_t)ov->batch_num * sizeof(BatchInfo)));
    PetscCall(GallopDeviceCopyIn(ov->long_row_infos, long_row_infos, (size_t)ov->long_row_num * sizeof(PetscInt)));
    PetscCall(GallopDeviceCopyIn(ov->pieces, pieces, (size_t)ov->piece_num * sizeof(LongRowPiece)));
    PetscCall(GallopDeviceZero(ov->arrived, (size_t)ov->piece_num * sizeof(int)));
    if (ov->batch_num) {
      DescribeBatchesKernel<<<(unsigned int)(((PetscCount)ov->batch_num + Warps - 1) / Warps), Threads, 0, stream>>>(ov->batch_num, ov->batch_infos, ov->row_offsets, ov->options, CSROverlapEach(ov->max_batch_size), ov->batch_works);
      GallopCheckLaunch();
    }
    if (order) PetscCall(GallopDeviceCopyIn(ov->batch_infos, batch_infos, (size_t)ov->batch_num * sizeof(BatchInfo)));
    PetscCall(GallopDeviceZero((void *)(ov->row_offsets + ov->m + 1), CSROVERLAP_PAD));
    if (ov->values) {
      PetscCall(GallopDeviceZero((void *)(ov->column_indices + ov->nz), CSROVERLAP_PAD));
      PetscCall(GallopDeviceZero((void *)(ov->values + ov->nz), CSROVERLAP_PAD));
    }
    ov->fresh = PETSC_TRUE;
    if (!ov->transfer) PetscCall(CSROverlapRefresh_Device(ov, csr));
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* the infos are pageable and about to go */
    *built = ov;
  } else PetscCall(PetscFree(ov));
  PetscCall(PetscFree(batch_infos));
  PetscCall(PetscFree(order));
  PetscCall(PetscFree(long_row_infos));
  PetscCall(PetscFree(pieces));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches and pieces of a range, with entries at columns and values: number 0 of these may lie before the memory that is theirs. Where the product adds to z, rows without entries are left alone. */
PetscErrorCode CSROverlapLaunch(const CSROverlap *ov, const GallopProduct *p, const CSROverlapRange *range, const PetscInt *columns, const PetscScalar *values, PetscBool overlaps, PetscBool fresh, cudaStream_t stream)
{
  const GallopVectors<PetscScalar>     v   = GallopVectorsOf(p);
  const PetscInt                       end = p->y == p->z && *p->beta == PetscScalar(1) ? PetscMin(range->batch_end, ov->busy_num) : range->batch_end;
  const PetscInt                       num = PetscMax(end - range->batch_begin, 0), piece_num = range->piece_end - range->piece_begin;
  const PetscInt                       run = PetscMin((num + ov->resident - 1) / ov->resident, BatchRun), blocks = run ? (num + run - 1) / run : 0;
  const CsrView<PetscScalar, PetscInt> view =
    {ov->row_offsets, columns, values, ov->batch_works + range->batch_begin, ov->pieces, ov->partial, ov->arrived, num, run, range->piece_begin, piece_num, (int)ov->max_batch_size};

  PetscFunctionBegin;
  if (!num && !piece_num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(GallopLaunch(GetKernel(ov->max_batch_size, ov->even), {(PetscCount)blocks + piece_num, Threads, 1, SharedBytes(ov->max_batch_size), stream, (bool)overlaps}, view, v, (bool)fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapApply_Device(void *data, const GallopProduct *p)
{
  CSROverlap           *ov   = (CSROverlap *)data;
  const CSROverlapRange all  = {0, ov->batch_num, 0, ov->piece_num};
  PetscBool             done = PETSC_FALSE;
  cudaStream_t          stream;

  PetscFunctionBegin;
  if (ov->transfer) PetscCall(CSROverlapTransferApply(ov, p, &done));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!done) PetscCall(CSROverlapLaunch(ov, p, &all, ov->column_indices, ov->values, ov->overlaps, ov->fresh, stream));
  PetscCallCUDA(GallopNotFresh(stream, &ov->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapDevice = {CSROverlapBuild_Device, CSROverlapRefresh_Device, CSROverlapApply_Device, CSROverlapDestroy_Device, NULL, NULL};
