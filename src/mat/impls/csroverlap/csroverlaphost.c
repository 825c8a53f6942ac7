/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP on the host: the partition into batches, and the product batch by batch */

#include <gallop/deviceimpl.h>
#include "csroverlap.h"

/* What chooses max_batch_size. All was measured on an H200; see docs/development/csroverlap.md. */
static const PetscInt   MediumBatch = 1024;
static const double     VeryShort   = 3.5;    /* mean length of rows below which they are */
static const PetscCount SmallMatrix = 500000; /* entries below which a matrix is */

/* Rows are even where they have EvenMean entries on average, and where the variance of their lengths is less than the square of the mean over EvenSpread */
static const PetscInt EvenMean = 16, EvenSpread = 4;

void CSROverlapTakeSample(PetscInt m, const PetscInt row_offsets[], CSROverlapSample *sample)
{
  *sample = (CSROverlapSample){0};
  for (PetscInt k = 0; k < PetscMin(m, CSROVERLAP_SAMPLES); k++) {
    const unsigned long long len = (unsigned long long)CSROverlapSampleLength(m, row_offsets, k);

    sample->sum += len;
    sample->squares += len * len;
    sample->above += len > CSROVERLAP_ROW_IN_REGISTERS;
  }
}

/* CSROverlapBatchSize - max_batch_size, where no option sets it by the lengths of some rows: large batches serve rows that a thread can hold in its registers, small ones very short rows and small matrices */
PetscInt CSROverlapBatchSize(const CSROverlapOptions *options, PetscInt m, PetscCount nz, const CSROverlapSample *sample)
{
  const PetscReal mean = m ? (PetscReal)nz / (PetscReal)m : 0;

  if (options->max_batch_size) return options->max_batch_size;
  if (mean < VeryShort) return CSROVERLAP_SMALL_BATCH;
  if (CSROverlapSampleFits(m, sample)) return CSROVERLAP_LARGE_BATCH;
  return nz < SmallMatrix ? CSROVERLAP_SMALL_BATCH : MediumBatch;
}

/* CSROverlapIsEven - Whether rows are of about the same length */
PetscBool CSROverlapIsEven(PetscInt m, PetscCount nz, const CSROverlapSample *sample)
{
  const PetscReal samples = PetscMax(PetscMin(m, CSROVERLAP_SAMPLES), 1), mean = m ? (PetscReal)nz / (PetscReal)m : 0, sum = (PetscReal)sample->sum / samples, squares = (PetscReal)sample->squares / samples;

  return (PetscBool)(mean >= EvenMean && squares - sum * sum < sum * sum / EvenSpread);
}

/* CSROverlapBatchEnd(), which is sought from a guess of the batch's rows on: where lengths change little a look at two neighbours is enough */
static PetscInt BatchEnd(PetscInt max_batch_size, PetscInt m, const PetscInt row_offsets[], PetscInt start, PetscInt guess)
{
  const PetscInt most = m - start < CSROVERLAP_THREADS ? m : start + CSROVERLAP_THREADS;
  PetscInt       low = start, high = most, step = 1; /* rows up to low fit, those up to high do not */

#define Fits(end) (row_offsets[end] - row_offsets[start] <= max_batch_size)
  if (Fits(most)) return most;
  guess = start + PetscMin(guess, most - start - 1);
  if (Fits(guess)) {
    for (low = guess; step < high - low && Fits(low + step); step *= 2) low += step;
    high = low + PetscMin(step, high - low);
  } else {
    for (high = guess; step < high - low && !Fits(high - step); step *= 2) high -= step;
    low = high - PetscMin(step, high - low);
  }
  while (high - low > 1) {
    const PetscInt mid = low + (high - low) / 2;

    if (Fits(mid)) low = mid;
    else high = mid;
  }
#undef Fits
  return PetscMax(low, start + 1);
}

/*
  CSROverlapPartition - Algorithm 3: runs of whole rows with at most max_batch_size entries and CSROVERLAP_THREADS rows, and the rows that are longer

  Input Parameters:
+ max_batch_size - as named
. m              - rows
- row_offsets    - on the host

  Output Parameter:
. batches - to be freed by CSROverlapBatchesFree()

  Note:
  The time grows with the number of batches, not of rows: their ends are searched for.
*/
PetscErrorCode CSROverlapPartition(PetscInt max_batch_size, PetscInt m, const PetscInt row_offsets[], CSROverlapBatches *batches)
{
  /* a batch ends because of its rows, of a long row, or of a row that is too much: two that follow each other there have more entries than fit one */
  const PetscInt longs = m ? (row_offsets[m] - row_offsets[0]) / max_batch_size : 0, most = 3 * longs + m / CSROVERLAP_THREADS + 1;
  PetscInt       b = 0, l = 0, busy = 0, end;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(most, &batches->batch_infos));
  PetscCall(PetscMalloc1(longs, &batches->long_row_infos));
  for (PetscInt start = 0, guess = 1; start < m; start = end) {
    end = BatchEnd(max_batch_size, m, row_offsets, start, guess);
    if (CSROverlapIsLong(max_batch_size, row_offsets, start)) batches->long_row_infos[l++] = start;
    else {
      batches->batch_infos[b++] = (BatchInfo){start, end};
      guess                     = end - start;
      if (row_offsets[end] > row_offsets[start]) busy++;
    }
  }
  batches->batch_num    = b;
  batches->busy_num     = busy;
  batches->long_row_num = l;
  PetscCall(PetscRealloc(b * sizeof(*batches->batch_infos), &batches->batch_infos));
  PetscCall(PetscRealloc(l * sizeof(*batches->long_row_infos), &batches->long_row_infos));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CSROverlapBatchesFree(CSROverlapBatches *batches)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(batches->batch_infos));
  PetscCall(PetscFree(batches->long_row_infos));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the GPU's kernel knows of a batch */
static BatchWork Describe(const CSROverlap *ov, BatchInfo info)
{
  const PetscInt *i       = ov->row_offsets;
  PetscInt        longest = 0;

  for (PetscInt row = info.start_row; row < info.end_row; row++) longest = PetscMax(longest, i[row + 1] - i[row]);
  return CSROverlapDescribe(&ov->options, CSROverlapEach(ov->max_batch_size), info, i, longest);
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
    for (PetscInt b = 0; b < ov->batch_num; b++) (*batch_works)[b] = Describe(ov, ov->batch_infos[b]);
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
  CSROverlapBatches        batches;
  CSROverlapSample         sample;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&ov));
  *ov = (CSROverlap){.memtype = PETSC_MEMTYPE_HOST, .m = csr->m, .n = csr->n, .nz = csr->nz, .row_offsets = csr->i, .host_column_indices = csr->j, .values = csr->a, .options = *options};
  CSROverlapTakeSample(csr->m, csr->i, &sample);
  ov->nonempty       = -1;
  ov->max_batch_size = CSROverlapBatchSize(options, csr->m, csr->nz, &sample);
  ov->even           = CSROverlapIsEven(csr->m, csr->nz, &sample);
  PetscCall(CSROverlapPartition(ov->max_batch_size, csr->m, csr->i, &batches));
  ov->batch_num      = batches.batch_num;
  ov->batch_infos    = batches.batch_infos;
  ov->long_row_num   = batches.long_row_num;
  ov->long_row_infos = batches.long_row_infos;
  ov->bytes          = (size_t)ov->batch_num * sizeof(BatchInfo) + (size_t)ov->long_row_num * sizeof(PetscInt);
  if (maxbytes && ov->bytes > (size_t)maxbytes) {
    PetscCall(Free(ov));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *built = ov;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays are the matrix's own, wherever they are now */
static PetscErrorCode CSROverlapRefresh_Host(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  CSROverlap *ov = (CSROverlap *)data;

  PetscFunctionBegin;
  ov->row_offsets         = csr->i;
  ov->host_column_indices = csr->j;
  ov->values              = csr->a;
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

      for (PetscInt k = ov->row_offsets[row]; k < ov->row_offsets[row + 1]; k++) sum += ov->values[k] * p->x[ov->host_column_indices[k]];
      GallopStoreRow(p, row, sum);
    }
    if (islong) l++;
    else b++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapHost = {CSROverlapBuild_Host, CSROverlapRefresh_Host, CSROverlapApply_Host, CSROverlapDestroy_Host, NULL};
