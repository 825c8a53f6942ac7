/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: the one kernel of CSROVERLAP's product */

#include "csroverlapfetch.cuh"

/* Algorithm 5: VectorSize threads sum a row, of products in shared memory. Dot: a row that waits is added to the dot product by the thread that has its number in the batch, else by the one that stores it. */
template <int VectorSize, bool Dot, typename V, typename I>
static __device__ __forceinline__ void VectorCompute(const BatchWork &work, V *products, const I *offsets, int *waiting, int *nwaiting, const GallopVectors<V> &v, V *dot)
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
    if (inside && lane == 0) GallopStore(v, work.start_row + row, sum, dot);
  }
  if (uneven) { /* a warp sums each of the rows that wait: their order does not matter */
    __syncthreads();
    for (int i = threadIdx.x / WarpSize; i < *nwaiting; i += Warps) {
      const int row = waiting[i], end = (int)(offsets[row + 1] - work.begin);
      V         sum = V(0);

#pragma unroll 4
      for (int k = (int)(offsets[row] - work.begin) + threadIdx.x % WarpSize; k < end; k += WarpSize) sum += products[k];
      sum = GallopGroupSum(sum, WarpSize);
      if constexpr (Dot) {
        V own = V(0);

        if (threadIdx.x % WarpSize == 0) {
          GallopStore(v, work.start_row + row, sum, &own);
          products[offsets[row] - work.begin] = own; /* for that thread: which warp sums a row that waits differs from run to run */
        }
      } else if (threadIdx.x % WarpSize == 0) GallopStore(v, work.start_row + row, sum);
    }
    __syncthreads();
    if (threadIdx.x == 0) *nwaiting = 0;
    if constexpr (Dot) {
      const int row = threadIdx.x;

      if (row < work.rows && offsets[row + 1] - offsets[row] > CSROVERLAP_UNEVEN * VectorSize) *dot += products[offsets[row] - work.begin];
    }
  }
}

/* vector_size 32: warps have equal shares of the entries, whatever the rows; each sums its part of a row, and these meet in parts[row + warp] */
template <int Each, typename V, typename I>
static __device__ __forceinline__ void WarpCompute(const BatchWork &work, const V (&product)[Each], const I *offsets, V *parts, const GallopVectors<V> &v, V *dot)
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
    GallopStore(v, work.start_row + row, sum, dot);
  }
}

/*
  Algorithm 9 for a piece of a long row; where the row has several, the last block to come adds them, in their order. Dot: what the row adds to the dot product goes to the place of the block
  with the first piece, whichever comes last, and 0 to those of the others.
*/
template <bool Dot, typename V, typename I>
static __device__ __forceinline__ void LongRow(const CsrView<V, I> &csr, const GallopVectors<V> &v)
{
  const PetscInt     number = csr.piece_begin + (PetscInt)blockIdx.x;
  const LongRowPiece piece  = csr.pieces[number];
  V                  sum    = V(0);
  PetscCount         k      = (PetscCount)piece.begin + threadIdx.x;

  for (; k + 3 * Threads < piece.end; k += 4 * Threads) {
    GallopColumn column[4];
    V            value[4];

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
    if (Dot && number != piece.first) v.partial[blockIdx.x] = V(0);
    csr.partial[number] = sum;
    __threadfence();
    if (atomicAdd(csr.arrived + piece.first, 1) != (int)piece.pieces - 1) return;
    csr.arrived[piece.first] = 0; /* for the next product */
    __threadfence();
    sum = V(0);
    for (PetscInt p = piece.first; p < piece.first + piece.pieces; p++) sum += GallopLoadFromL2(csr.partial + p);
  }
  if constexpr (Dot) {
    V dot = V(0);

    GallopStore(v, piece.row, sum, &dot);
    v.partial[piece.first - csr.piece_begin] = dot;
  } else GallopStore(v, piece.row, sum);
}

/*
  Algorithm 4. The first blocks compute the long rows, so that these start first; no second kernel is needed.

  The two places of the paper's pipeline are shared memory and the registers: once a block's threads have loaded a batch to registers, where they fetch x for it, the
  place in shared memory is free for the next one.

  Dot: also a dot product with the result. It is another kernel, so that the one without needs no register for it.
*/
template <int Each, bool Even, bool Dot, typename V, typename I>
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
    LongRow<Dot>(csr, v);
    if constexpr (Dot) GallopAddDots<Threads>(v);
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
  V own = V(0), *const dot = Dot ? &own : nullptr;

  if (threadIdx.x == 0) nwaiting = 0;
  Fetch(csr, layout, shared, 0, work, arrival);
  GallopWaitForPredecessor(); /* the matrix comes without waiting, vectors do not */
  for (PetscCount b = begin; b < end; b++) {
    const int           slot    = (int)(b - begin) % 2;
    const I            *offsets = Placed<I>(shared + layout.Offsets(slot), work.start_row);
    const GallopColumn *columns = Placed<GallopColumn>(shared + layout.Columns(), work.begin);
    const V            *values  = Placed<V>(shared, work.begin);
    const bool          rows    = work.kind & CSROVERLAP_KIND_ROWS;
    V                   product[Each];
    GallopColumn        column[Each];
    int                 mixed = 0;

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
      if ((int)threadIdx.x < work.rows) GallopStore(v, work.start_row + (PetscInt)threadIdx.x, sum, dot);
    } else if ((work.kind & CSROVERLAP_KIND_SIZE) == CSROVERLAP_SIZES - 1) {
      WarpCompute<Each>(work, product, offsets, products, v, dot);
    } else {
      int *const waiting = reinterpret_cast<int *>(shared + layout.Waiting());

#pragma unroll
      for (int e = 0; e < Each; e++)
        if (column[e] >= 0) products[first + e * WarpSize] = product[e];
      __syncthreads();
      switch (work.kind & CSROVERLAP_KIND_SIZE) {
      case 0:
        VectorCompute<1, Dot>(work, products, offsets, waiting, &nwaiting, v, dot);
        break;
      case 1:
        VectorCompute<2, Dot>(work, products, offsets, waiting, &nwaiting, v, dot);
        break;
      case 2:
        VectorCompute<4, Dot>(work, products, offsets, waiting, &nwaiting, v, dot);
        break;
      case 3:
        VectorCompute<8, Dot>(work, products, offsets, waiting, &nwaiting, v, dot);
        break;
      default:
        VectorCompute<16, Dot>(work, products, offsets, waiting, &nwaiting, v, dot);
      }
    }
    work = next;
    next = after;
  }
  if constexpr (Dot) GallopFinishDot<Threads>(v, own);
}
