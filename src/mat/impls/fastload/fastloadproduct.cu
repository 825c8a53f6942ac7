/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU: its products */

#include "fastloadkernels.cuh"

/* Whether the products' kernels can start while those before them end */
PetscErrorCode FastLoadProductOverlaps(PetscBool *overlaps)
{
  PetscFunctionBegin;
  PetscCallCUDA(GallopKernelOverlaps(FastLoadKernel<PetscScalar, PetscReal, PetscInt>, overlaps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x in the order of columns, as the paper has it: those of a block lie side by side then. The next kernel may start at once: it waits for this one before it loads x. */
template <typename V, typename I>
__global__ static void __launch_bounds__(Threads) SortXKernel(I ncols, In<I> perm, const V *x, V *sortedX)
{
  const PetscCount k = GallopGlobalThread();

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  if (k < ncols) sortedX[k] = x[perm[k]];
}

/* A thread block for each piece of a long row, then a warp for each task */
static PetscCount BlocksOf(const FastLoad *fl)
{
  return fl->pieceNum + ((PetscCount)fl->taskNum + Warps - 1) / Warps;
}

static GallopGrid GridOf(const FastLoad *fl, PetscCount blocks, cudaStream_t stream)
{
  return {blocks, Threads, 1, 0, stream, (bool)(fl->overlaps && !fl->fresh)}; /* new values must have been written */
}

PetscErrorCode FastLoadApply_Device(void *data, const GallopProduct *p)
{
  FastLoad                  *fl     = (FastLoad *)data;
  const PetscCount           blocks = BlocksOf(fl);
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (fl->products) {
    PetscCall(FastLoadApplyDeterministic(fl, &v, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(GallopBegin(fl->m, &v, stream, fl->overlaps && !fl->fresh));
  if (fl->sortedX && fl->ncols) PetscCallCUDA(GallopLaunch(SortXKernel<PetscScalar, PetscInt>, GridOf(fl, ((PetscCount)fl->ncols + Threads - 1) / Threads, stream), fl->ncols, fl->perm, v.x, fl->sortedX));
  PetscCallCUDA(GallopLaunch(FastLoadKernel<PetscScalar, PetscReal, PetscInt>, GridOf(fl, blocks, stream), FastLoadArraysOf(fl), v.alpha, v.x, v.z, (bool)fl->fresh));
  PetscCallCUDA(GallopNotFresh(stream, &fl->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadApplyTranspose_Device(void *data, const GallopProduct *p, PetscBool conjugate)
{
  FastLoad                  *fl     = (FastLoad *)data;
  const PetscCount           blocks = BlocksOf(fl);
  const bool                 alone  = fl->single && !fl->pieceNum; /* each column is one lane's */
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!alone || fl->zeros) PetscCallCUDA(GallopBegin(fl->n, &v, stream, fl->overlaps && !fl->fresh));
  if (blocks) PetscCallCUDA(GallopLaunch(TransposedKernel<PetscScalar, PetscReal, PetscInt>, GridOf(fl, blocks, stream), FastLoadArraysOf(fl), v, (bool)conjugate, alone, (bool)fl->fresh));
  PetscCallCUDA(GallopNotFresh(stream, &fl->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}
