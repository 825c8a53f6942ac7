/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU: the product that gives the same bits in every run. Tasks add to no row: they store their products where the entries are in CSR, and a second kernel sums rows in order. */

#include "fastloadwalk.cuh"

/* Products in order of CSR */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) MultiplyKernel(const __grid_constant__ FastLoadArrays<V, I> fl, In<V> x, V *products)
{
  const PetscCount t    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (t >= fl.taskNum) return;
  const FastLoadTask task  = LoadTask(fl.tasks, t);
  BlockView<I>       block = FirstBlock<I>(task);
  const V            xl    = lane < task.length ? x[ColumnOf(fl, task, lane)] : V(0);

  for (I b = task.blk;;) {
    const I *const at = fl.csrIdx + block.ptr;
    const Part<I>  part(block.length, block.height, lane);
    const V        xc = GallopShuffle(xl, task.length - block.length + part.column);

    for (I line = part.first; line < block.height; line += part.lines) {
      const PetscCount k = (PetscCount)line * block.length + part.column;

      products[GallopLoadOnce(at + k)] = GallopLoadOnce(fl.value + block.ptr + k) * xc;
    }
    if (++b == task.end) break;
    NextBlock(fl, b, &block);
  }
}

/* The sums of rows from them, by width threads per row */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) RowSumKernel(I m, int width, In<I> rowPtr, In<V> products, const GallopVectors<V> v)
{
  const PetscCount row    = GallopGlobalThread() / width;
  const bool       inside = row < m;
  const int        lane   = threadIdx.x % width;
  V                sum    = V(0);

  if (inside)
    for (PetscCount k = (PetscCount)rowPtr[row] + lane; k < rowPtr[row + 1]; k += width) sum += products[k];
  sum = GallopGroupSum(sum, width);
  if (inside && lane == 0) GallopStore(v, (PetscInt)row, sum);
}

/* FastLoadApplyDeterministic - As many threads per row, up to a warp, as rows have entries on average */
PetscErrorCode FastLoadApplyDeterministic(const FastLoad *fl, const GallopVectors<PetscScalar> *v, cudaStream_t stream)
{
  int width = 1;

  PetscFunctionBegin;
  while (width < WarpSize && 2 * width * (PetscCount)fl->m <= fl->nz) width *= 2;
  MultiplyKernel<PetscScalar, PetscInt><<<WarpsFor(fl->taskNum), Threads, 0, stream>>>(FastLoadArraysOf(fl), v->x, fl->products);
  GallopCheckLaunch();
  RowSumKernel<PetscScalar, PetscInt><<<GallopBlocksFor((PetscCount)fl->m * width, Threads), Threads, 0, stream>>>(fl->m, width, fl->rowPtr, fl->products, *v);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
