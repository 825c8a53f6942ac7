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

static PetscErrorCode Free(CSROverlap *ov)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(ov->batch_infos));
  PetscCall(PetscFree(ov->long_row_infos));
  PetscCall(PetscFree(ov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapDestroy_Host(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((CSROverlap *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes nothing but the batches: the entries stay where they are */
static PetscErrorCode CSROverlapBuild_Host(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  const CSROverlapOptions *options = (const CSROverlapOptions *)opts;
  CSROverlap              *ov;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&ov));
  *ov = (CSROverlap){.memtype = PETSC_MEMTYPE_HOST, .m = csr->m, .n = csr->n, .nz = csr->nz, .row_offsets = csr->i, .column_indices = csr->j, .values = csr->a, .options = *options};
  PetscCall(CSROverlapPartition(options, csr->m, csr->i, &ov->batch_num, &ov->batch_infos, &ov->long_row_num, &ov->long_row_infos));
  CSROverlapMeasure(ov, csr->i, ov->batch_infos);
  ov->bytes = (size_t)ov->batch_num * sizeof(BatchInfo) + (size_t)ov->long_row_num * sizeof(PetscInt);
  if (maxbytes && ov->bytes > (size_t)maxbytes) {
    PetscCall(Free(ov));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *built = ov;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays are the matrix's own, wherever they are now */
static PetscErrorCode CSROverlapRefresh_Host(void *data, const GallopCSR *csr)
{
  CSROverlap *ov = (CSROverlap *)data;

  PetscFunctionBegin;
  ov->row_offsets    = csr->i;
  ov->column_indices = csr->j;
  ov->values         = csr->a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapApply_Host(void *data, const GallopProduct *p)
{
  const CSROverlap *ov     = (const CSROverlap *)data;
  const PetscBool   readsy = (PetscBool)(*p->beta != (PetscScalar)0.0);

  PetscFunctionBegin;
  for (PetscInt b = 0, l = 0; b < ov->batch_num || l < ov->long_row_num;) {
    /* batches and long rows in the order of their rows */
    const PetscBool islong = (PetscBool)(b == ov->batch_num || (l < ov->long_row_num && ov->long_row_infos[l] < ov->batch_infos[b].start_row));
    const BatchInfo batch  = islong ? (BatchInfo){ov->long_row_infos[l], ov->long_row_infos[l] + 1} : ov->batch_infos[b];

    for (PetscInt row = batch.start_row; row < batch.end_row; row++) {
      PetscScalar sum = 0.0;

      for (PetscInt k = ov->row_offsets[row]; k < ov->row_offsets[row + 1]; k++) sum += ov->values[k] * p->x[ov->column_indices[k]];
      p->z[row] = readsy ? *p->alpha * sum + *p->beta * p->y[row] : *p->alpha * sum;
    }
    if (islong) l++;
    else b++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapHost = {CSROverlapBuild_Host, CSROverlapRefresh_Host, CSROverlapApply_Host, CSROverlapDestroy_Host};
