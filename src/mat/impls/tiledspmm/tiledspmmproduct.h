/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files that compute products: the dense matrices, how their columns are gone through, and partial sums */

#include "tiledspmmdevice.h"

/* B and C from some column on, how many columns they have from there, and whether C has numbers that the product is added to */
template <typename V, typename I>
struct DenseView {
  const V *b;
  V       *c;
  I        ldb, ldc, columns;
  bool     add;
};

using Dense = DenseView<PetscScalar, PetscInt>;

template <typename V, typename I>
static __device__ __forceinline__ void Store(const DenseView<V, I> &dense, I row, I column, V sum)
{
  V *const to = dense.c + (PetscCount)column * dense.ldc + row;

  *to = dense.add ? *to + sum : sum;
}

static inline Dense DenseFrom(const GallopDenseProduct *p, PetscCount begin, PetscCount columns)
{
  return {p->b + begin * p->ldb, p->c + begin * p->ldc, p->ldb, p->ldc, (PetscInt)columns, (bool)p->add};
}

/* The smallest power of two that is not less than n; most, a power of two itself, where that would be larger */
static inline PetscInt PowerOfTwo(PetscInt n, PetscInt most)
{
  PetscInt power = 1;

  while (power < n && power < most) power *= 2;
  return power;
}

/* f(n), a power of two from N to Most, which f gets as a constant: decltype() of it has a value */
template <int Most, int N = 1, typename F>
static inline cudaError_t WithPower(PetscInt n, F f)
{
  if constexpr (N < Most)
    if (n > N) return WithPower<Most, 2 * N>(n, f);
  return f(cuda::std::integral_constant<int, N>());
}

/* Kernels load what no other kernel writes while the one before them ends, but in the first product after entries were written */
static inline bool Overlaps(const TiledSpMM *t)
{
  return t->overlaps && !t->fresh;
}

/* Partial sums, of the kernels that cut rows, and the memory for them */
PETSC_INTERN PetscErrorCode TiledSpMMGetWork(TiledSpMM *, size_t, PetscBool *);
PETSC_INTERN PetscErrorCode TiledSpMMCombine(const TiledSpMM *, const PetscScalar *, int, const Dense &, cudaStream_t);

/*
  A product by a kernel that needs no copy of B. launch(dense, R, stream) computes the columns of dense, R at once, in blocks thread blocks for each R columns: one launch takes as many
  columns as a grid has place for; what is left over after the last R is launched with the next power of two. *done false: there is no room for the partial sums.
*/
template <typename Launch>
static PetscErrorCode ComputeColumns(TiledSpMM *t, const GallopDenseProduct *p, PetscInt R, PetscCount blocks, Launch launch, PetscBool *done)
{
  const PetscCount whole = p->columns / R * R, most = PetscMax((PetscCount)1, (PetscCount)PETSC_INT32_MAX / blocks) * R;
  cudaStream_t     stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(TiledSpMMGetWork(t, (size_t)t->nslots * p->columns * sizeof(PetscScalar), done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscCount begin = 0, columns; begin < p->columns; begin += columns) {
    const bool full = begin < whole;

    columns           = full ? PetscMin(whole - begin, most) : p->columns - whole;
    const Dense dense = DenseFrom(p, begin, columns);

    PetscCallCUDA(launch(dense, full ? R : PowerOfTwo((PetscInt)columns, R), stream));
    PetscCall(TiledSpMMCombine(t, t->work, (int)columns, dense, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
