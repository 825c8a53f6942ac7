/* SPDX-License-Identifier: BSD-2-Clause */
/*
  CSROVERLAP, CSR-Full-Overlap (section 4.2, Algorithm 8): the entries of a matrix that was assembled on the host come in big batches, while the kernel works
  on those that have arrived. A matrix that does not fit the GPU comes anew for every product, through a few buffers.

  Copies run on PETSc's stream and the kernels meanwhile on a side stream; the last kernel follows the last copy on PETSc's stream. So the first copy waits for no
  other stream, and what the last kernel waits for has ended before the last copy.
*/

#include "csroverlaptransfer.h"

static constexpr PetscCount Staged = 1 << 20; /* entries: new values go to pinned memory while those before them go on to the GPU */

/* When copies and kernels of a product ran, for -mat_csroverlap_timeline */
class Timeline {
public:
  enum { COPY_BEGIN, COPY_END, KERNEL_BEGIN, KERNEL_END, KINDS };

  PetscErrorCode Create(bool wanted, PetscInt num, cudaStream_t stream)
  {
    PetscFunctionBegin;
    if (!wanted) PetscFunctionReturn(PETSC_SUCCESS);
    num_ = num;
    PetscCall(PetscMalloc1(num * KINDS + 1, &events_));
    for (PetscInt k = 0; k <= num * KINDS; k++) PetscCallCUDA(cudaEventCreate(&events_[k]));
    PetscCallCUDA(cudaEventRecord(events_[num * KINDS], stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscErrorCode Record(PetscInt g, int kind, cudaStream_t stream)
  {
    PetscFunctionBegin;
    if (events_) PetscCallCUDA(cudaEventRecord(events_[g * KINDS + kind], stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscErrorCode Print(cudaStream_t stream)
  {
    PetscFunctionBegin;
    if (!events_) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "CSR-Overlap timeline, microseconds: big batch, copy from, to, kernel from, to\n"));
    for (PetscInt g = 0; g < num_; g++) {
      float at[KINDS];

      for (int kind = 0; kind < KINDS; kind++) PetscCallCUDA(cudaEventElapsedTime(&at[kind], events_[num_ * KINDS], events_[g * KINDS + kind]));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%" PetscInt_FMT "\t%.1f\t%.1f\t%.1f\t%.1f\n", g, 1e3 * at[COPY_BEGIN], 1e3 * at[COPY_END], 1e3 * at[KERNEL_BEGIN], 1e3 * at[KERNEL_END]));
    }
    for (PetscInt k = 0; k <= num_ * KINDS; k++) PetscCallCUDA(cudaEventDestroy(events_[k]));
    PetscCall(PetscFree(events_));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

private:
  cudaEvent_t *events_ = NULL;
  PetscInt     num_    = 0;
};

/* Copies cannot be recorded in a CUDA graph: they happen once, or are not the same for each product */
static PetscErrorCode GetStream(const CSROverlap *ov, cudaStream_t *stream)
{
  PetscBool capturing;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(stream));
  PetscCall(GallopDeviceIsCapturing(&capturing));
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product that copies the matrix from the host cannot be recorded in a CUDA graph: %s", Streamed(ov) ? "the matrix does not fit the GPU" : "multiply once before");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of more bytes than the format's: they come to the place of the values, which come later, as many at a time as that has room for */
static PetscErrorCode CopyWide(const CSROverlapTransfer *t, PetscCount from, PetscCount to, GallopColumn *columns, PetscScalar *values, cudaStream_t stream)
{
  const PetscCount room = PetscMax((to - from) * (PetscCount)sizeof(PetscScalar) / (PetscCount)sizeof(PetscInt), 1);
  PetscInt *const  at   = (PetscInt *)(values + from);

  PetscFunctionBegin;
  for (PetscCount begin = from; begin < to; begin += room) {
    const PetscCount n = PetscMin(room, to - begin);

    PetscCallCUDA(cudaMemcpyAsync(at, t->wide_columns + begin, (size_t)n * sizeof(PetscInt), cudaMemcpyHostToDevice, stream));
    PetscCall(CSROverlapNarrow(n, at, columns + begin, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The columns of a resident matrix, or of a big batch of a streamed one. Entry 0 of the matrix would lie at columns and at values. Packed ones are unpacked on the side
  stream while values are copied: *cut is the entry from which on these come where packed columns are, PETSC_COUNT_MAX where there are none. From there on they wait for
  unpacked, and so does what reads the columns.
*/
static PetscErrorCode CopyColumns(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g, GallopColumn *columns, PetscScalar *values, cudaStream_t stream, PetscCount *cut)
{
  PetscCount from, to;
  size_t     bytes;

  PetscFunctionBegin;
  ColumnsOf(ov, t, g, &from, &to);
  if (t->packed) {
    const size_t place = PackedPlace(ov, t, g);
    char *const  at    = (char *)(values + from) + place;

    bytes = t->packed[g + 1] - t->packed[g];
    PetscCallCUDA(cudaMemcpyAsync(at, (const char *)t->columns + t->packed[g], bytes, cudaMemcpyHostToDevice, stream));
    PetscCallCUDA(cudaEventRecord(t->copied, stream));
    PetscCallCUDA(cudaStreamWaitEvent(t->side, t->copied, 0));
    PetscCall(CSROverlapUnpack(to - from, at, columns + from, t->side));
    PetscCallCUDA(cudaEventRecord(t->unpacked, t->side));
    *cut = PetscMin(from + (PetscCount)(place / sizeof(PetscScalar)), to);
  } else if (t->wide_columns) {
    bytes = (size_t)(to - from) * sizeof(PetscInt);
    PetscCall(CopyWide(t, from, to, columns, values, stream));
    *cut = PETSC_COUNT_MAX;
  } else {
    bytes = (size_t)(to - from) * sizeof(GallopColumn);
    PetscCallCUDA(cudaMemcpyAsync(columns + from, t->host_columns + from, bytes, cudaMemcpyHostToDevice, stream));
    *cut = PETSC_COUNT_MAX;
  }
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values [from, to): newer ones to pinned memory first, piece by piece, and all from there, or from the matrix's own array, to the GPU */
static PetscErrorCode CopyValues(const CSROverlapTransfer *t, PetscCount from, PetscCount to, PetscScalar *values, cudaStream_t stream)
{
  const PetscCount step = t->newer ? Staged : PetscMax(to - from, 1);

  PetscFunctionBegin;
  for (PetscCount begin = from; begin < to; begin += step) {
    const PetscCount n = PetscMin(step, to - begin);

    if (t->newer) PetscCall(PetscArraycpy(t->values + begin, t->newer + begin, n));
    PetscCallCUDA(cudaMemcpyAsync(values + begin, t->host_values + begin, (size_t)n * sizeof(PetscScalar), cudaMemcpyHostToDevice, stream));
  }
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)(to - from) * sizeof(PetscScalar)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns and values of a small matrix, whose kernel waits for all of them, in one copy */
static PetscErrorCode CopyTogether(const CSROverlap *ov, const CSROverlapTransfer *t, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (t->newer) PetscCall(PetscArraycpy(t->values, t->newer, ov->nz));
  PetscCallCUDA(cudaMemcpyAsync((void *)ov->column_indices, t->columns, t->pinned_bytes, cudaMemcpyHostToDevice, stream));
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)ov->nz * (sizeof(GallopColumn) + sizeof(PetscScalar))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values, of which the next product copies what it needs */
PetscErrorCode CSROverlapTransferRefresh(CSROverlap *ov, const GallopCSR *csr)
{
  CSROverlapTransfer *t = ov->transfer;

  PetscFunctionBegin;
  if (!PetscMemTypeHost(csr->memtype) && !Streamed(ov) && t->pending_columns) { /* before the values come, whose place they may need */
    cudaStream_t stream;
    PetscCount   cut;

    PetscCall(GetStream(ov, &stream));
    PetscCall(CopyColumns(ov, t, 0, (GallopColumn *)ov->column_indices, (PetscScalar *)ov->values, stream, &cut));
    if (t->packed) PetscCallCUDA(cudaStreamWaitEvent(stream, t->unpacked, 0));
    PetscCallCUDA(cudaEventRecord(t->copied, stream));
    if (!t->pinned) PetscCallCUDA(cudaEventSynchronize(t->copied));
    t->pending_columns = PETSC_FALSE;
  }
  t->newer          = NULL;
  t->pending_values = PetscMemTypeHost(csr->memtype) ? PETSC_TRUE : PETSC_FALSE;
  if (PetscMemTypeHost(csr->memtype)) {
    if (!t->pinned) t->host_values = csr->a;
    else t->newer = csr->a;
  } else if (Streamed(ov)) {
    if (!t->values) PetscCall(PetscMalloc1(ov->nz, &t->values));
    t->host_values = t->values;
    PetscCallCUDA(cudaEventSynchronize(t->copied));
    PetscCall(GallopDeviceCopyOut(t->values, csr->a, (size_t)ov->nz * sizeof(PetscScalar)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the next product copies entries from the host */
PetscBool CSROverlapTransferIsDue(const CSROverlap *ov)
{
  return (PetscBool)(ov->transfer && (Streamed(ov) || ov->transfer->pending_values));
}

/* Algorithm 8. *done is false where all entries are on the GPU already. PETSc's stream waits for all kernels. */
PetscErrorCode CSROverlapTransferApply(CSROverlap *ov, const GallopProduct *p, PetscBool *done)
{
  CSROverlapTransfer *t        = ov->transfer;
  const PetscBool     streamed = Streamed(ov);
  PetscCount          cut      = PETSC_COUNT_MAX;
  cudaStream_t        stream;
  Timeline            timeline;

  PetscFunctionBegin;
  *done = CSROverlapTransferIsDue(ov);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetStream(ov, &stream));
  if (t->newer) PetscCallCUDA(cudaEventSynchronize(t->copied)); /* pinned memory may still be read for the product before */
  PetscCall(timeline.Create(ov->options.timeline, t->num, stream));
  for (PetscInt g = 0; g < t->num; g++) {
    const bool           last    = g + 1 == t->num;
    const int            slot    = (int)(g % Depth);
    const PetscCount     base    = slot * t->capacity - t->from[g];
    GallopColumn *const  columns = streamed ? t->buffer_columns + base : (GallopColumn *)ov->column_indices; /* where entry 0 of the matrix would lie */
    PetscScalar *const   values  = streamed ? t->buffer_values + base : (PetscScalar *)ov->values;
    const cudaStream_t   where   = last ? stream : t->side;
    const CSROverlapPart part    = {t->ranges[g], columns, values, PETSC_FALSE, PETSC_TRUE};

    if (streamed && g >= Depth) PetscCallCUDA(cudaStreamWaitEvent(stream, t->computed[slot], 0));
    PetscCall(timeline.Record(g, Timeline::COPY_BEGIN, stream));
    if (t->pending_columns && t->together) PetscCall(CopyTogether(ov, t, stream));
    else {
      if (streamed || (t->pending_columns && g == 0)) PetscCall(CopyColumns(ov, t, g, columns, values, stream, &cut));
      PetscCall(CopyValues(t, t->from[g], PetscMin(t->to[g], cut), values, stream));
    }
    if (cut <= t->to[g]) {
      PetscCallCUDA(cudaStreamWaitEvent(stream, t->unpacked, 0));
      PetscCall(CopyValues(t, PetscMax(t->from[g], cut), t->to[g], values, stream));
      cut = PETSC_COUNT_MAX;
    }
    PetscCall(timeline.Record(g, Timeline::COPY_END, stream));
    PetscCallCUDA(cudaEventRecord(t->copied, stream));
    if (!last) PetscCallCUDA(cudaStreamWaitEvent(t->side, t->copied, 0)); /* and so for the vectors, and for products before this one */
    else if (g) PetscCallCUDA(cudaStreamWaitEvent(stream, t->computed[(g - 1) % Depth], 0));
    PetscCall(timeline.Record(g, Timeline::KERNEL_BEGIN, where));
    PetscCall(CSROverlapLaunch(ov, p, &part, where));
    PetscCall(timeline.Record(g, Timeline::KERNEL_END, where));
    if (!last) PetscCallCUDA(cudaEventRecord(t->computed[slot], t->side));
  }
  PetscCall(timeline.Print(stream));
  /* what is copied may change or go once this returns: copies wait for that by themselves only where it is pageable, which the matrix's own arrays need not be */
  if (!t->pinned) PetscCallCUDA(cudaEventSynchronize(t->copied));
  t->newer           = NULL;
  t->pending_columns = PETSC_FALSE;
  t->pending_values  = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CSROverlapGetPlace(const CSROverlap *ov, CSROverlapPlace *place)
{
  const CSROverlapTransfer *t = ov->transfer;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(place, sizeof(*place)));
  if (!t) PetscFunctionReturn(PETSC_SUCCESS);
  place->fromhost       = PETSC_TRUE;
  place->pinned         = t->pinned;
  place->streamed       = Streamed(ov);
  place->big_batch_size = t->size;
  place->big_batch_num  = t->num;
  place->column_bytes   = t->packed ? (PetscCount)t->packed[Streamed(ov) ? t->num : 1] : ov->nz * (PetscCount)(t->wide_columns ? sizeof(PetscInt) : sizeof(GallopColumn));
  PetscFunctionReturn(PETSC_SUCCESS);
}
