/*
  CSROVERLAP, CSR-Full-Overlap (section 4.2, Algorithms 7 and 8): the entries of a matrix that was assembled on the host come in big batches, while the kernel works
  on those that have arrived. A matrix that does not fit the GPU comes anew for every product, through a few buffers.

  Copies run on PETSc's stream and the kernels meanwhile on a side stream; the last kernel follows the last copy on PETSc's stream. So the first copy waits for no
  other stream, and what the last kernel waits for has ended before the last copy.
*/

#include "csroverlapdevice.h"

static constexpr int        Depth       = 3;       /* buffers of a streamed matrix */
static constexpr int        Parts       = 4;       /* most big batches of a resident matrix, unless an option sets their size */
static constexpr int        Shrink      = 8;       /* each is so much smaller than what came before it: the kernel is by more than that faster than the copies */
static constexpr PetscCount Worthwhile  = 1 << 20; /* entries: a copy more takes as long as the product of a smaller matrix */
static constexpr PetscCount StreamedBig = 4 << 20; /* entries of a big batch of a streamed matrix */
static constexpr PetscCount Staged      = 1 << 20; /* entries: new values go to pinned memory while those before them go on to the GPU */
static constexpr PetscCount Aligned     = 16;      /* entries: buffers are as aligned as the arrays are for which they stand */

struct _CSROverlapTransfer {
  PetscInt           num;  /* big batches */
  PetscCount         size; /* entries of one, or of the largest of a resident matrix */
  CSROverlapRange   *ranges;
  PetscCount        *from, *to;    /* [num] the entries that are copied; of a resident matrix, whose columns come at once, the values */
  const PetscInt    *host_columns; /* what is copied: the matrix's own arrays, or these */
  const PetscScalar *host_values;
  void              *columns;
  PetscScalar       *values;
  size_t             column_bytes, value_bytes;
  const PetscScalar *newer;           /* the matrix's values, to be put into values before they are copied */
  size_t            *packed;          /* where in columns those of each big batch of a streamed matrix begin, or of a resident one, and end; NULL where they are not packed */
  PetscBool          pinned;          /* columns and values are pinned */
  PetscBool          pending_columns; /* not on the GPU yet */
  PetscBool          pending_values;
  PetscCount         capacity;       /* entries of a buffer of a streamed matrix */
  PetscInt          *buffer_columns; /* [Depth * capacity] */
  PetscScalar       *buffer_values;
  cudaStream_t       side;
  cudaEvent_t        copied;                    /* on PETSc's stream, behind the copies so far */
  cudaEvent_t        unpacked, computed[Depth]; /* on the side stream */
};

static PetscBool Streamed(const CSROverlap *ov)
{
  return (PetscBool)!ov->values;
}

/*
  Entries that have arrived with big batch g. Big batches are of equal size where an option sets it and where the matrix is streamed. Else the last ones are small:
  what is computed after the last copy is all that a product takes longer than the copies.
*/
static PetscCount Arrived(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g)
{
  PetscCount rest = ov->nz;

  if (g + 1 == t->num) return ov->nz;
  if (Streamed(ov) || ov->options.big_batch_size) return (g + 1) * t->size;
  rest -= t->size;
  for (PetscInt k = 0; k < g; k++) rest /= Shrink;
  return ov->nz - rest;
}

/*
  Algorithm 7: a batch, or a piece of a long row, is computed with the big batch in which its last entry arrives. Big batches of a resident matrix are parts of its
  entries; what is copied for one of a streamed matrix begins with the first entry of what is computed.
*/
static PetscErrorCode Plan(const CSROverlap *ov, CSROverlapTransfer *t, PetscInt num, const PetscInt i[], const BatchInfo batch_infos[], const LongRowPiece pieces[])
{
  CSROverlapRange range = {0, 0, 0, 0};

  PetscFunctionBegin;
  t->num      = num;
  t->capacity = 0;
  PetscCall(PetscFree3(t->ranges, t->from, t->to));
  PetscCall(PetscMalloc3(t->num, &t->ranges, t->num, &t->from, t->num, &t->to));
  for (PetscInt g = 0; g < t->num; g++) {
    const PetscCount arrived = Arrived(ov, t, g);
    PetscCount       from = ov->nz, to = 0;

    range.batch_begin = range.batch_end;
    range.piece_begin = range.piece_end;
    while (range.batch_end < ov->batch_num && i[batch_infos[range.batch_end].end_row] <= arrived) range.batch_end++;
    while (range.piece_end < ov->piece_num && pieces[range.piece_end].end <= arrived) range.piece_end++;
    if (range.batch_begin < PetscMin(range.batch_end, ov->busy_num)) { /* those without entries come last, anywhere */
      from = PetscMin(from, i[batch_infos[range.batch_begin].start_row]);
      to   = PetscMax(to, i[batch_infos[PetscMin(range.batch_end, ov->busy_num) - 1].end_row]);
    }
    if (range.piece_begin < range.piece_end) {
      from = PetscMin(from, pieces[range.piece_begin].begin);
      to   = PetscMax(to, pieces[range.piece_end - 1].end);
    }
    t->ranges[g] = range;
    t->from[g]   = Streamed(ov) ? PetscMin(from / Aligned * Aligned, to) : g ? t->to[g - 1] : 0;
    t->to[g]     = Streamed(ov) ? to : arrived;
    t->capacity  = PetscMax(t->capacity, t->to[g] - t->from[g]);
  }
  t->capacity = (t->capacity / Aligned + 2) * Aligned; /* and room behind for what the kernel reads in vain */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Buffers for a streamed matrix within limit, 0 for no limit; none where they do not fit */
static PetscErrorCode CreateBuffers(CSROverlap *ov, CSROverlapTransfer *t, const PetscInt i[], const BatchInfo batch_infos[], const LongRowPiece pieces[], PetscCount limit)
{
  const PetscCount entry = sizeof(PetscScalar) + sizeof(PetscInt), room = limit ? (limit - (PetscCount)ov->bytes) / (Depth * entry) : 0;

  PetscFunctionBegin;
  for (t->size = ov->options.big_batch_size ? ov->options.big_batch_size : limit ? PetscMin(room, StreamedBig) : StreamedBig; t->size >= 32 && !t->buffer_values; t->size = t->size / 4 * 3) {
    void *values, *columns;

    PetscCall(Plan(ov, t, (PetscInt)((ov->nz - 1) / t->size + 1), i, batch_infos, pieces));
    if (limit && t->capacity > room) continue;
    PetscCall(GallopDeviceMalloc((size_t)(Depth * t->capacity) * sizeof(PetscScalar), &values));
    PetscCall(GallopDeviceMalloc((size_t)(Depth * t->capacity) * sizeof(PetscInt), &columns));
    if (values && columns) {
      t->buffer_values  = (PetscScalar *)values;
      t->buffer_columns = (PetscInt *)columns;
      ov->bytes += (size_t)(Depth * t->capacity * entry);
      PetscCall(GallopDeviceZero(values, (size_t)(Depth * t->capacity) * sizeof(PetscScalar)));
      PetscCall(GallopDeviceZero(columns, (size_t)(Depth * t->capacity) * sizeof(PetscInt)));
      break;
    }
    PetscCall(GallopDeviceFree(values));
    PetscCall(GallopDeviceFree(columns));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of which columns are copied at a time */
static void ColumnsOf(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g, PetscCount *from, PetscCount *to)
{
  *from = Streamed(ov) ? t->from[g] : 0;
  *to   = Streamed(ov) ? t->to[g] : ov->nz;
}

/* Packed columns come to the end of the place of the values, which come later: where in it, in bytes */
static size_t PackedPlace(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g)
{
  return ((size_t)(Streamed(ov) ? t->capacity : ov->nz) * sizeof(PetscScalar) - (t->packed[g + 1] - t->packed[g])) / 16 * 16;
}

/* Packs columns where that is worth it. *bytes: of pinned memory for columns */
static PetscErrorCode PlanPacked(const CSROverlap *ov, CSROverlapTransfer *t, const PetscInt columns[], size_t *bytes)
{
  const PetscInt num  = Streamed(ov) ? t->num : 1;
  const size_t   most = (size_t)(Streamed(ov) ? t->capacity : ov->nz) * sizeof(PetscScalar) / 4 * 3; /* values can be copied meanwhile to the rest */
  size_t         all = 0, some = 0;

  PetscFunctionBegin;
  *bytes = (size_t)ov->nz * sizeof(PetscInt);
  if (!ov->options.pack_columns || ov->nz < ov->options.pack_columns) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(num + 1, &t->packed));
  t->packed[0] = 0;
  for (PetscInt g = 0; g < num && some <= most; g++) {
    PetscCount from, to;

    ColumnsOf(ov, t, g, &from, &to);
    PetscCall(CSROverlapPackedBytes(to - from, columns + from, &some));
    if (some <= most) t->packed[g + 1] = t->packed[g] + some;
    all += (size_t)(to - from) * sizeof(PetscInt);
  }
  if (some > most || t->packed[num] > all / 8 * 7) PetscCall(PetscFree(t->packed));
  else *bytes = t->packed[num];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of the entries from which the GPU copies by itself, where memory can be had */
static PetscErrorCode CreatePinned(const CSROverlap *ov, CSROverlapTransfer *t, const GallopCSR *csr)
{
  static PetscBool warned  = PETSC_FALSE;
  const size_t     value_bytes = (size_t)ov->nz * sizeof(PetscScalar);
  void            *columns = NULL, *values = NULL;
  size_t           bytes;

  PetscFunctionBegin;
  t->host_columns = csr->j;
  t->host_values  = csr->a;
  if (!ov->options.pinned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PlanPacked(ov, t, csr->j, &bytes));
  PetscCall(GallopPinnedMalloc(bytes, &columns));
  if (columns) PetscCall(GallopPinnedMalloc(value_bytes, &values));
  if (!values) {
    PetscCall(GallopPinnedFree(bytes, columns));
    PetscCall(PetscFree(t->packed));
    PetscCall(PetscInfo(NULL, "No pinned memory for %" PetscCount_FMT " entries\n", ov->nz));
    if (!warned)
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no pinned memory for %" PetscCount_FMT " entries of a CSROVERLAP matrix: they are copied to the GPU from pageable memory, which is slower. Further matrices: -info\n", ov->nz));
    warned = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  t->pinned       = PETSC_TRUE;
  t->columns      = columns;
  t->column_bytes = bytes;
  t->value_bytes  = value_bytes;
  t->values       = (PetscScalar *)values;
  t->host_columns = (const PetscInt *)columns;
  t->host_values  = t->values;
  if (!t->packed) PetscCall(PetscMemcpy(columns, csr->j, bytes));
  for (PetscInt g = 0; t->packed && g < (Streamed(ov) ? t->num : 1); g++) {
    PetscCount from, to;

    ColumnsOf(ov, t, g, &from, &to);
    PetscCall(CSROverlapPack(to - from, csr->j + from, (char *)columns + t->packed[g]));
  }
  PetscCall(PetscArraycpy(t->values, csr->a, ov->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Big batches of a matrix that stays on the GPU */
static PetscErrorCode PlanResident(const CSROverlap *ov, CSROverlapTransfer *t, const PetscInt i[], const BatchInfo batch_infos[], const LongRowPiece pieces[])
{
  PetscInt num = 1;

  PetscFunctionBegin;
  if (ov->options.big_batch_size) {
    t->size = ov->options.big_batch_size;
    num     = (PetscInt)((ov->nz - 1) / t->size + 1);
  } else {
    t->size = ov->nz - ov->nz / Shrink;
    if (t->packed) t->size = PetscMin(t->size, (PetscCount)(PackedPlace(ov, t, 0) / sizeof(PetscScalar)));
    if (t->packed || ov->nz >= Worthwhile) num = 2; /* what is packed parts the values anyway */
    for (PetscCount rest = ov->nz - t->size; num > 1 && num < Parts && rest >= Worthwhile; rest /= Shrink) num++;
  }
  PetscCall(Plan(ov, t, num, i, batch_infos, pieces));
  if (!ov->options.big_batch_size) t->size = t->to[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  CSROverlapTransferCreate - Plans the copies of a matrix whose arrays are on the host

  Input Parameters:
+ ov                  - without values on the GPU it is streamed
. csr                 - on the host
. batch_infos, pieces - of ov, on the host
- limit               - most bytes on the GPU for a streamed matrix, 0 for no limit

  Output Parameter:
. transfer - NULL where the GPU has no room for the buffers of a streamed matrix
*/
PetscErrorCode CSROverlapTransferCreate(CSROverlap *ov, const GallopCSR *csr, const BatchInfo batch_infos[], const LongRowPiece pieces[], PetscCount limit, CSROverlapTransfer **transfer)
{
  CSROverlapTransfer *t;

  PetscFunctionBegin;
  PetscCall(PetscNew(&t));
  *transfer = t;
  if (Streamed(ov)) {
    PetscCall(CreateBuffers(ov, t, csr->host_i, batch_infos, pieces, limit));
    if (!t->buffer_values) {
      PetscCall(CSROverlapTransferDestroy(transfer));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(CreatePinned(ov, t, csr));
  if (!Streamed(ov)) PetscCall(PlanResident(ov, t, csr->host_i, batch_infos, pieces));
  t->pending_columns = PETSC_TRUE;
  t->pending_values  = PETSC_TRUE;
  PetscCallCUDA(cudaStreamCreateWithFlags(&t->side, cudaStreamNonBlocking));
  PetscCallCUDA(cudaEventCreateWithFlags(&t->copied, cudaEventDisableTiming));
  PetscCallCUDA(cudaEventCreateWithFlags(&t->unpacked, cudaEventDisableTiming));
  for (cudaEvent_t &event : t->computed) PetscCallCUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CSROverlapTransferDestroy(CSROverlapTransfer **transfer)
{
  CSROverlapTransfer *t = *transfer;

  PetscFunctionBegin;
  if (!t) PetscFunctionReturn(PETSC_SUCCESS);
  if (t->copied) {
    PetscCallCUDA(cudaEventSynchronize(t->copied)); /* pinned memory must not go before it has been read */
    PetscCallCUDA(cudaEventDestroy(t->copied));
  }
  if (t->unpacked) PetscCallCUDA(cudaEventDestroy(t->unpacked));
  if (t->side) PetscCallCUDA(cudaStreamDestroy(t->side));
  for (cudaEvent_t event : t->computed)
    if (event) PetscCallCUDA(cudaEventDestroy(event));
  PetscCall(GallopDeviceFree(t->buffer_values));
  PetscCall(GallopDeviceFree(t->buffer_columns));
  if (t->pinned) {
    PetscCall(GallopPinnedFree(t->value_bytes, t->values));
    PetscCall(GallopPinnedFree(t->column_bytes, t->columns));
  } else PetscCall(PetscFree(t->values));
  PetscCall(PetscFree(t->packed));
  PetscCall(PetscFree3(t->ranges, t->from, t->to));
  PetscCall(PetscFree(*transfer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  cudaStreamCaptureStatus capture;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(stream));
  PetscCallCUDA(cudaStreamIsCapturing(*stream, &capture));
  PetscCheck(capture == cudaStreamCaptureStatusNone, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product that copies the matrix from the host cannot be recorded in a CUDA graph: %s", Streamed(ov) ? "the matrix does not fit the GPU" : "multiply once before");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The columns of a resident matrix, or of a big batch of a streamed one. Entry 0 of the matrix would lie at columns and at values. Packed ones are unpacked on the side
  stream while values are copied: *cut is the entry from which on these come where packed columns are, PETSC_COUNT_MAX where there are none. From there on they wait for
  unpacked, and so does what reads the columns.
*/
static PetscErrorCode CopyColumns(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g, PetscInt *columns, PetscScalar *values, cudaStream_t stream, PetscCount *cut)
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
  } else {
    bytes = (size_t)(to - from) * sizeof(PetscInt);
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

/* New values, of which the next product copies what it needs */
PetscErrorCode CSROverlapTransferRefresh(CSROverlap *ov, const GallopCSR *csr)
{
  CSROverlapTransfer *t = ov->transfer;

  PetscFunctionBegin;
  if (!PetscMemTypeHost(csr->memtype) && !Streamed(ov) && t->pending_columns) { /* before the values come, whose place they may need */
    cudaStream_t stream;
    PetscCount   cut;

    PetscCall(GetStream(ov, &stream));
    PetscCall(CopyColumns(ov, t, 0, (PetscInt *)ov->column_indices, (PetscScalar *)ov->values, stream, &cut));
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

/* Algorithm 8. *done is false where all entries are on the GPU already. PETSc's stream waits for all kernels. */
PetscErrorCode CSROverlapTransferApply(CSROverlap *ov, const GallopProduct *p, PetscBool *done)
{
  CSROverlapTransfer *t        = ov->transfer;
  const PetscBool     streamed = Streamed(ov);
  PetscCount          cut      = PETSC_COUNT_MAX;
  cudaStream_t        stream;
  Timeline            timeline;

  PetscFunctionBegin;
  *done = (PetscBool)(streamed || t->pending_values);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetStream(ov, &stream));
  if (t->newer) PetscCallCUDA(cudaEventSynchronize(t->copied)); /* pinned memory may still be read for the product before */
  PetscCall(timeline.Create(ov->options.timeline, t->num, stream));
  for (PetscInt g = 0; g < t->num; g++) {
    const bool         last    = g + 1 == t->num;
    const int          slot    = (int)(g % Depth);
    const PetscCount   base    = slot * t->capacity - t->from[g];
    PetscInt *const    columns = streamed ? t->buffer_columns + base : (PetscInt *)ov->column_indices; /* where entry 0 of the matrix would lie */
    PetscScalar *const values  = streamed ? t->buffer_values + base : (PetscScalar *)ov->values;
    const cudaStream_t where   = last ? stream : t->side;

    if (streamed && g >= Depth) PetscCallCUDA(cudaStreamWaitEvent(stream, t->computed[slot], 0));
    PetscCall(timeline.Record(g, Timeline::COPY_BEGIN, stream));
    if (streamed || (t->pending_columns && g == 0)) PetscCall(CopyColumns(ov, t, g, columns, values, stream, &cut));
    PetscCall(CopyValues(t, t->from[g], PetscMin(t->to[g], cut), values, stream));
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
    PetscCall(CSROverlapLaunch(ov, p, &t->ranges[g], columns, values, PETSC_FALSE, PETSC_TRUE, where));
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
  place->column_bytes   = t->packed ? (PetscCount)t->packed[Streamed(ov) ? t->num : 1] : ov->nz * (PetscCount)sizeof(PetscInt);
  PetscFunctionReturn(PETSC_SUCCESS);
}
