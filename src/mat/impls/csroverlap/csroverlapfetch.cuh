/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: how the kernel of CSROVERLAP copies batches to shared memory, by copies that occupy no thread */

#include <cuda_pipeline.h>
#include "csroverlapdevice.h"

template <typename V, typename I>
struct CsrView {
  const I            *row_offsets;
  const GallopColumn *column_indices;
  const V            *values;
  const BatchWork    *batch_works;
  const LongRowPiece *pieces;
  V                  *partial;
  int                *arrived;
  PetscInt            batch_num, block_batch_num, piece_begin, piece_num; /* of this launch; pieces from piece_begin on */
  int                 max_batch_size;
};

/* Shared memory of a thread block: the batch that is being copied, the row offsets of two batches, products of the batch that is being computed, and its rows that wait */
template <typename T>
static __host__ __device__ constexpr size_t PaddedBytes(int items) /* room for the units around them */
{
  return (items * sizeof(T) + 2 * CopyUnit) / CopyUnit * CopyUnit;
}

template <typename V, typename I>
struct Shared {
  int max_batch_size;

  __host__ __device__ size_t Columns() const { return PaddedBytes<V>(max_batch_size); }
  __host__ __device__ size_t Offsets(int slot) const { return Columns() + PaddedBytes<GallopColumn>(max_batch_size) + slot * PaddedBytes<I>(Threads + 1); }
  __host__ __device__ size_t Products() const { return Offsets(2); }
  __host__ __device__ size_t Waiting() const { return Products() + PaddedBytes<V>(max_batch_size > Threads + Warps ? max_batch_size : Threads + Warps); }
  __host__ __device__ size_t Bytes() const { return Waiting() + Threads * sizeof(int); }
};

/* Items of a unit */
template <typename T>
static constexpr int PerUnit = CopyUnit / (int)sizeof(T);

/* The first item of the unit that item begin is in, from which on it is copied */
template <typename T>
static __device__ __forceinline__ PetscCount UnitBegin(PetscCount begin)
{
  return begin / PerUnit<T> * PerUnit<T>;
}

/* Where item begin is in a copy */
template <typename T>
static __device__ __forceinline__ const T *Placed(const unsigned char *at, PetscCount begin)
{
  return reinterpret_cast<const T *>(at) + begin % PerUnit<T>;
}

template <typename T>
static __device__ __forceinline__ unsigned int CopyBytes(PetscCount begin, PetscCount end)
{
  return (unsigned int)(((end + PerUnit<T> - 1) / PerUnit<T> - begin / PerUnit<T>)*CopyUnit);
}

#if __CUDA_ARCH__ >= 900
/* The copy engine writes for itself, one thread starts it, and an mbarrier counts the bytes */
struct Arrival {
  unsigned long long *barrier;
  unsigned int        parity = 0;
  unsigned long long  once; /* the matrix is read once per product: what it pushes out of L2 should not be x */

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

/* From 8.0 on every thread starts copies of a unit, which below are ordinary ones */
template <typename T>
static __device__ __forceinline__ void CopyByThreads(unsigned char *to, const T *from, PetscCount begin, PetscCount end)
{
  const unsigned char *first = reinterpret_cast<const unsigned char *>(from + UnitBegin<T>(begin));

  for (unsigned int at = threadIdx.x * CopyUnit; at < CopyBytes<T>(begin, end); at += Threads * CopyUnit) __pipeline_memcpy_async(to + at, first + at, CopyUnit);
}

/* Begins to copy a batch. Arrays are padded, so that the last unit may be read where a part of it is theirs. */
template <typename V, typename I, typename A>
static __device__ __forceinline__ void Fetch(const CsrView<V, I> &csr, const Shared<V, I> &layout, unsigned char *shared, int slot, const BatchWork &work, const A &arrival)
{
  const PetscCount begin = work.begin, end = begin + work.nnz, row = work.start_row, rowend = row + work.rows + 1;

#if __CUDA_ARCH__ >= 900
  const unsigned int values = work.nnz ? CopyBytes<V>(begin, end) : 0, columns = work.nnz ? CopyBytes<GallopColumn>(begin, end) : 0, offsets = CopyBytes<I>(row, rowend);

  if (threadIdx.x != 0) return;
  arrival.Expect(values + columns + offsets);
  if (work.nnz) {
    arrival.Copy(shared, csr.values + UnitBegin<V>(begin), values);
    arrival.Copy(shared + layout.Columns(), csr.column_indices + UnitBegin<GallopColumn>(begin), columns);
  }
  arrival.Copy(shared + layout.Offsets(slot), csr.row_offsets + UnitBegin<I>(row), offsets);
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
