/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU, the first stage of its build where columns may be long: entries in order of columns, and columns in order of their lengths */

#include "../common/bits.h"
#include "fastloaddevice.h"

__global__ static void SpreadKernel(PetscInt m, In<PetscInt> i, In<PetscInt> j, unsigned long long *sum)
{
  const int k = (int)GallopGlobalThread();

  if (k < FASTLOAD_SAMPLES) atomicAdd(sum, (unsigned long long)FastLoadSpread(m, i, j, k));
}

/* What columns are sorted by: their window, and in it their length */
__global__ static void ColumnKeyKernel(PetscInt n, PetscInt window, int bits, In<PetscInt> begin, unsigned long long *key, PetscInt *col)
{
  const PetscCount c = GallopGlobalThread();

  if (c >= n) return;
  key[c] = (unsigned long long)(window ? c / window : 0) << bits | (unsigned long long)(begin[c + 1] - begin[c]);
  col[c] = (PetscInt)c;
}

/* Where columns with entries begin among sorted ones; *first is n where none have */
__global__ static void FirstKernel(PetscInt n, int bits, In<unsigned long long> key, PetscInt *first)
{
  const PetscCount         s    = GallopGlobalThread();
  const unsigned long long mask = (1ull << bits) - 1;

  if (s < n && key[s] & mask && (!s || !(key[s - 1] & mask))) *first = (PetscInt)s;
}

/* The length of each sorted column, and where its entries begin. len[n] is 0: one too many, so that the exclusive sum ends with the total */
__global__ static void LengthKernel(PetscInt n, int bits, In<unsigned long long> key, In<PetscInt> cols, In<PetscInt> start, PetscInt *len, PetscInt *from)
{
  const PetscCount s = GallopGlobalThread();

  if (s < n) {
    len[s]  = (PetscInt)(key[s] & ((1ull << bits) - 1));
    from[s] = start[cols[s]];
  } else if (s == n) len[n] = 0;
}

/* FastLoadSumSpread - Adds FastLoadSpread() of the samples, of interest where the result is large, to a number on the GPU */
PetscErrorCode FastLoadSumSpread(const GallopCSR *csr, unsigned long long *sum, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!FastLoadIsLarge(csr->m)) PetscFunctionReturn(PETSC_SUCCESS);
  SpreadKernel<<<GallopBlocksFor(FASTLOAD_SAMPLES, Threads), Threads, 0, stream>>>(csr->m, csr->i, csr->j, sum);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadGetSpread - Sum of FastLoadSpread() over the samples, as on the host; *fits is false where there is no memory for a number */
PetscErrorCode FastLoadGetSpread(const GallopCSR *csr, PetscCount *spread, PetscBool *fits)
{
  unsigned long long sum = 0;
  void              *total;
  cudaStream_t       stream;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (FastLoadIsLarge(csr->m)) {
    PetscCall(GallopWorkspaceMalloc(sizeof(sum), &total));
    *fits = (PetscBool)(total != NULL);
    if (*fits) {
      PetscCallCUDA(cudaMemsetAsync(total, 0, sizeof(sum), stream));
      PetscCall(FastLoadSumSpread(csr, (unsigned long long *)total, stream));
      PetscCall(GallopDeviceCopyOut(&sum, total, sizeof(sum)));
      PetscCall(GallopWorkspaceFree(total));
    }
  }
  *spread = (PetscCount)sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadCountColumns - The lengths of columns, and their order, from entries in order of columns */
PetscErrorCode FastLoadCountColumns(FastLoad *fl, const GallopCSR *csr, FastLoadWorkspace *w)
{
  const unsigned int cols = GallopBlocksFor((PetscCount)csr->n + 1, Threads);
  PetscInt           skip = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(w->found, 0, sizeof(*w->found), w->stream));
  fl->longNum = w->columns.found.nlong;
  ColumnKeyKernel<<<cols, Threads, 0, w->stream>>>(csr->n, fl->options.window, w->lenbits, w->columns.begin, w->colkey, w->cols);
  GallopCheckLaunch();
  PetscCall(FastLoadSortColumns(w, csr->n));
  if (!fl->options.groups) { /* the paper leaves empty columns out */
    PetscCall(GallopDeviceCopyIn(w->firstcol, &csr->n, sizeof(PetscInt)));
    FirstKernel<<<cols, Threads, 0, w->stream>>>(csr->n, w->lenbits, w->sortedcolkey, w->firstcol);
    GallopCheckLaunch();
    PetscCall(GallopDeviceCopyOut(&skip, w->firstcol, sizeof(PetscInt)));
    w->sortedcolkey += skip;
    w->sortedcols += skip;
  }
  fl->ncols = csr->n - skip;
  LengthKernel<<<GallopBlocksFor((PetscCount)fl->ncols + 1, Threads), Threads, 0, w->stream>>>(fl->ncols, w->lenbits, w->sortedcolkey, w->sortedcols, w->columns.begin, w->len, w->from);
  GallopCheckLaunch();
  PetscCall(FastLoadSum(w, w->len, w->begin, (PetscCount)fl->ncols + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}
