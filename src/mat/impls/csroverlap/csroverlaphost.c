/* CSROVERLAP on the host: the partition into batches, and the product batch by batch */

#include "csroverlap.h"

/*
  CSROverlapPartition - Algorithm 3: runs of whole rows with at most max_batch_size entries and rows, and the rows that are longer

  Input Parameters:
+ options     - max_batch_size
. m           - rows
- row_offsets - on the host

  Output Parameters:
+ batch_num, batch_infos       - the batches, to be freed by the caller
- long_row_num, long_row_infos - the longer rows, likewise
*/
PetscErrorCode CSROverlapPartition(const CSROverlapOptions *options, PetscInt m, const PetscInt row_offsets[], PetscInt *batch_num, BatchInfo **batch_infos, PetscInt *long_row_num, PetscInt **long_row_infos)
{
  const PetscInt most = options->max_batch_size;

  PetscFunctionBegin;
  *batch_infos    = NULL;
  *long_row_infos = NULL;
  for (int pass = 0; pass < 2; pass++) { /* counts, then writes */
    PetscInt batches = 0, longs = 0;

    for (PetscInt start = 0; start < m;) {
      PetscInt end = start;

      if (row_offsets[start + 1] - row_offsets[start] > most) {
        if (pass) (*long_row_infos)[longs] = start;
        longs++;
        start++;
        continue;
      }
      while (end < m && end - start < most && row_offsets[end + 1] - row_offsets[start] <= most) end++;
      if (pass) (*batch_infos)[batches] = (BatchInfo){start, end};
      batches++;
      start = end;
    }
    *batch_num    = batches;
    *long_row_num = longs;
    if (!pass) {
      PetscCall(PetscMalloc1(batches, batch_infos));
      PetscCall(PetscMalloc1(longs, long_row_infos));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What viewers show of the batches */
void CSROverlapMeasure(CSROverlap *ov, const PetscInt row_offsets[], const BatchInfo batch_infos[])
{
  for (PetscInt b = 0; b < ov->batch_num; b++) {
    const PetscInt rows = batch_infos[b].end_row - batch_infos[b].start_row, nnz = row_offsets[batch_infos[b].end_row] - row_offsets[batch_infos[b].start_row];

    ov->batch_nz += nnz;
    ov->sum_squares += (PetscLogDouble)nnz * (PetscLogDouble)nnz;
    ov->sizes[CSROverlapVectorSize(&ov->options, rows, nnz)]++;
  }
}

#if !PetscDefined(HAVE_CUDA)
PetscErrorCode CSROverlapBuild_Device(const CSROverlapOptions *options, const GallopCSR *csr, PetscCount maxbytes, CSROverlap **built)
{
  (void)options, (void)csr, (void)maxbytes, (void)built;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode CSROverlapRefresh_Device(CSROverlap *ov, const GallopCSR *csr)
{
  (void)ov, (void)csr;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode CSROverlapApply_Device(CSROverlap *ov, const GallopProduct *p)
{
  (void)ov, (void)p;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode CSROverlapDestroy_Device(CSROverlap **ov)
{
  (void)ov;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}
#endif
