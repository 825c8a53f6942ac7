/* CSROVERLAP on the host: the partition into batches, and the product batch by batch */

#include <gallop/deviceimpl.h>
#include "csroverlap.h"

/*
  CSROverlapBatchSize - max_batch_size where no option sets it, by the lengths of some rows, and whether rows are of about the same length

  Batches of 2048 serve rows that a thread can hold in its registers, 512 very short rows and small matrices. All was measured on an H200; see docs/csroverlap.md.
*/
void CSROverlapBatchSize(const CSROverlapOptions *options, PetscInt m, PetscCount nz, const PetscInt row_offsets[], PetscInt *max_batch_size, PetscBool *even)
{
  const PetscInt  samples = PetscMin(m, 4096);
  const PetscReal mean    = m ? (PetscReal)nz / (PetscReal)m : 0;
  PetscReal       squares = 0, sum = 0;
  PetscInt        above = 0; /* rows that do not fit a thread's registers */

  for (PetscInt k = 0; k < samples; k++) {
    const PetscInt  row = (PetscInt)((PetscCount)k * m / samples);
    const PetscReal len = (PetscReal)(row_offsets[row + 1] - row_offsets[row]);

    sum += len;
    squares += len * len;
    if (len > 8) above++;
  }
  sum /= PetscMax(samples, 1);
  squares /= PetscMax(samples, 1);
  *even = (PetscBool)(mean >= 16 && squares - sum * sum < sum * sum / 4);
  if (options->max_batch_size) *max_batch_size = options->max_batch_size;
  else if (mean >= 3.5 && 100 * (PetscCount)above < samples) *max_batch_size = 2048;
  else if (mean < 3.5 || nz < 500000) *max_batch_size = 512;
  else *max_batch_size = 1024;
}

/*
  CSROverlapPartition - Algorithm 3: runs of whole rows with at most max_batch_size entries and CSROVERLAP_THREADS rows, and the rows that are longer

  Input Parameters:
+ max_batch_size - as named
. m              - rows
- row_offsets    - on the host

  Output Parameters:
+ batch_num, batch_infos       - the batches, to be freed by the caller
- long_row_num, long_row_infos - the longer rows, likewise

  Note:
  The time grows with the number of batches, not of rows: their ends are searched for.
*/
PetscErrorCode CSROverlapPartition(PetscInt max_batch_size, PetscInt m, const PetscInt row_offsets[], PetscInt *batch_num, BatchInfo **batch_infos, PetscInt *long_row_num, PetscInt **long_row_infos)
{
  PetscFunctionBegin;
  *batch_infos    = NULL;
  *long_row_infos = NULL;
  for (int pass = 0; pass < 2; pass++) { /* counts, then writes */
    PetscInt batches = 0, longs = 0;

    for (PetscInt start = 0, end; start < m; start = end) {
      end = CSROverlapBatchEnd(max_batch_size, m, row_offsets, start);
      if (row_offsets[end] - row_offsets[start] > max_batch_size) {
        if (pass) (*long_row_infos)[longs] = start;
        longs++;
      } else {
        if (pass) (*batch_infos)[batches] = (BatchInfo){start, end};
        batches++;
      }
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

/* What the GPU's kernel knows of a batch */
static void Describe(const CSROverlap *ov, BatchInfo info, BatchWork *work)
{
  const PetscInt *i       = ov->row_offsets;
  PetscInt        longest = 0;

  for (PetscInt row = info.start_row; row < info.end_row; row++) longest = PetscMax(longest, i[row + 1] - i[row]);
  work->start_row = info.start_row;
  work->begin     = i[info.start_row];
  work->rows      = (unsigned short)(info.end_row - info.start_row);
  work->nnz       = (int)(i[info.end_row] - work->begin);
  work->kind      = (unsigned short)CSROverlapKind(&ov->options, CSROverlapEach(ov->max_batch_size), work->rows, work->nnz, longest);
}

/* CSROverlapGetBatches - Copies on the host of the partition, and of what the GPU's kernel knows of the batches, for a format that was built at either place */
PetscErrorCode CSROverlapGetBatches(const CSROverlap *ov, BatchInfo **batch_infos, PetscInt **long_row_infos, BatchWork **batch_works)
{
  const size_t infos = (size_t)ov->batch_num * sizeof(BatchInfo), longs = (size_t)ov->long_row_num * sizeof(PetscInt), works = (size_t)ov->batch_num * sizeof(BatchWork);
  BatchWork   *ordered;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(ov->batch_num, batch_infos));
  PetscCall(PetscMalloc1(ov->long_row_num, long_row_infos));
  PetscCall(PetscCalloc1(ov->batch_num, batch_works)); /* no byte of it unset */
  PetscCall(GallopCopyToHost(*batch_infos, ov->memtype, ov->batch_infos, infos));
  PetscCall(GallopCopyToHost(*long_row_infos, ov->memtype, ov->long_row_infos, longs));
  if (PetscMemTypeHost(ov->memtype)) {
    for (PetscInt b = 0; b < ov->batch_num; b++) Describe(ov, ov->batch_infos[b], &(*batch_works)[b]);
  } else {
    PetscCall(PetscMalloc1(ov->batch_num, &ordered));
    PetscCall(GallopDeviceCopyOut(ordered, ov->batch_works, works));
    for (PetscInt b = 0, busy = 0, idle = ov->busy_num; b < ov->batch_num; b++) { /* by rows again */
      const PetscBool isbusy = (PetscBool)(idle == ov->batch_num || (busy < ov->busy_num && ordered[busy].start_row < ordered[idle].start_row));

      (*batch_works)[b] = ordered[isbusy ? busy++ : idle++];
    }
    PetscCall(PetscFree(ordered));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
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
  CSROverlapBatchSize(options, csr->m, csr->nz, csr->i, &ov->max_batch_size, &ov->even);
  PetscCall(CSROverlapPartition(ov->max_batch_size, csr->m, csr->i, &ov->batch_num, &ov->batch_infos, &ov->long_row_num, &ov->long_row_infos));
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
  const CSROverlap *ov = (const CSROverlap *)data;

  PetscFunctionBegin;
  for (PetscInt b = 0, l = 0; b < ov->batch_num || l < ov->long_row_num;) {
    /* batches and long rows in the order of their rows */
    const PetscBool islong = (PetscBool)(b == ov->batch_num || (l < ov->long_row_num && ov->long_row_infos[l] < ov->batch_infos[b].start_row));
    const BatchInfo batch  = islong ? (BatchInfo){ov->long_row_infos[l], ov->long_row_infos[l] + 1} : ov->batch_infos[b];

    for (PetscInt row = batch.start_row; row < batch.end_row; row++) {
      PetscScalar sum = 0.0;

      for (PetscInt k = ov->row_offsets[row]; k < ov->row_offsets[row + 1]; k++) sum += ov->values[k] * p->x[ov->column_indices[k]];
      GallopStoreRow(p, row, sum);
    }
    if (islong) l++;
    else b++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapHost = {CSROverlapBuild_Host, CSROverlapRefresh_Host, CSROverlapApply_Host, CSROverlapDestroy_Host, NULL, NULL};
