/* SPDX-License-Identifier: BSD-2-Clause */
/*
  CSROVERLAP, CSR-Full-Overlap (section 4.2, Algorithm 7): which entries of a matrix that was assembled on the host come to the GPU in which big batch, and the memory
  that they come from and go to. csroverlaptransfer.cu copies.
*/

#include "csroverlaptransfer.h"

static constexpr int        Parts       = 4;       /* most big batches of a resident matrix, unless an option sets their size */
static constexpr int        Shrink      = 8;       /* each is smaller by this factor than what came before it: the kernel is faster than the copies by more than that */
static constexpr PetscCount Worthwhile  = 1 << 20; /* entries: a copy more takes as long as the product of a smaller matrix */
static constexpr PetscCount StreamedBig = 4 << 20; /* entries of a big batch of a streamed matrix */
static constexpr PetscCount Aligned     = 16;      /* entries: buffers are as aligned as the arrays are for which they stand */
static constexpr size_t     PageBytes   = 4096;    /* of pinned memory, in which values begin a page where they are copied alone */

/* Entries of the big batches of a resident matrix if all but the last are of one size, else 0 */
static PetscCount EqualSize(const CSROverlap *ov)
{
  const PetscInt num = ov->options.big_batch_num;

  return num ? PetscMax((ov->nz - 1) / num + 1, CSROVERLAP_SMALLEST_BIG) : ov->options.big_batch_size;
}

/*
  Entries that have arrived with big batch g. Big batches are of equal size where an option sets it and where the matrix is streamed. Else the last ones are small:
  what is computed after the last copy is all that a product takes longer than the copies.
*/
static PetscCount Arrived(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g)
{
  PetscCount rest = ov->nz;

  if (g + 1 == t->num) return ov->nz;
  if (Streamed(ov) || EqualSize(ov)) return (g + 1) * t->size;
  rest -= t->size;
  for (PetscInt k = 0; k < g; k++) rest /= Shrink;
  return ov->nz - rest;
}

/* The first batch with entries, from batch on, whose last entry is not among those that have arrived; there may be none */
static PetscInt FirstWithout(const CSROverlap *ov, const CSROverlapPlan *plan, PetscInt batch, PetscCount arrived)
{
  PetscInt end = ov->busy_num;

  while (batch < end) {
    const PetscInt mid = batch + (end - batch) / 2;

    if (plan->row_offsets[plan->order[mid].end_row] <= arrived) batch = mid + 1;
    else end = mid;
  }
  return batch;
}

/*
  Algorithm 7: a batch, or a piece of a long row, is computed with the big batch in which its last entry arrives. Big batches of a resident matrix are parts of its
  entries; what is copied for one of a streamed matrix begins with the first entry of what is computed.
*/
static PetscErrorCode PlanBig(const CSROverlap *ov, CSROverlapTransfer *t, PetscInt num, const CSROverlapPlan *plan)
{
  const PetscInt     *i           = plan->row_offsets;
  const BatchInfo    *batch_infos = plan->order;
  const LongRowPiece *pieces      = plan->pieces;
  CSROverlapRange     range       = {0, 0, 0, 0};

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
    range.batch_end   = g + 1 < t->num ? FirstWithout(ov, plan, range.batch_end, arrived) : ov->batch_num;
    while (range.piece_end < ov->piece_num && pieces[range.piece_end].end <= arrived) range.piece_end++;
    if (range.batch_begin < PetscMin(range.batch_end, ov->busy_num)) { /* those without entries come last */
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
static PetscErrorCode CreateBuffers(CSROverlap *ov, CSROverlapTransfer *t, const CSROverlapPlan *plan, PetscCount limit)
{
  const PetscCount entry = sizeof(PetscScalar) + sizeof(GallopColumn), room = limit ? (limit - (PetscCount)ov->bytes) / (Depth * entry) : 0;

  PetscFunctionBegin;
  t->size = limit ? PetscMin(room, StreamedBig) : StreamedBig;
  if (ov->options.big_batch_size) t->size = ov->options.big_batch_size;
  for (; t->size >= CSROVERLAP_SMALLEST_BIG && !t->buffer_values; t->size = t->size / 4 * 3) { /* smaller ones until they fit */
    void *values, *columns;

    PetscCall(PlanBig(ov, t, (PetscInt)((ov->nz - 1) / t->size + 1), plan));
    if (limit && t->capacity > room) continue;
    PetscCall(GallopDeviceMalloc((size_t)(Depth * t->capacity) * sizeof(PetscScalar), &values));
    PetscCall(GallopDeviceMalloc((size_t)(Depth * t->capacity) * sizeof(GallopColumn), &columns));
    if (values && columns) {
      t->buffer_values  = (PetscScalar *)values;
      t->buffer_columns = (GallopColumn *)columns;
      ov->bytes += (size_t)(Depth * t->capacity * entry);
      PetscCall(GallopDeviceZero(values, (size_t)(Depth * t->capacity) * sizeof(PetscScalar)));
      PetscCall(GallopDeviceZero(columns, (size_t)(Depth * t->capacity) * sizeof(GallopColumn)));
      break;
    }
    PetscCall(GallopDeviceFree(values));
    PetscCall(GallopDeviceFree(columns));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Packs columns where that is worth it. *bytes: of pinned memory for columns */
static PetscErrorCode PlanPacked(const CSROverlap *ov, CSROverlapTransfer *t, const PetscInt columns[], size_t *bytes)
{
  const PetscInt num  = Streamed(ov) ? t->num : 1;
  const size_t   most = (size_t)(Streamed(ov) ? t->capacity : ov->nz) * sizeof(PetscScalar) / 4 * 3; /* values can be copied meanwhile to the rest */
  size_t         all = 0, some = 0;

  PetscFunctionBegin;
  *bytes = (size_t)ov->nz * sizeof(GallopColumn);
  if (!ov->options.pack_columns || ov->nz < ov->options.pack_columns) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(num + 1, &t->packed));
  t->packed[0] = 0;
  for (PetscInt g = 0; g < num && some <= most; g++) {
    PetscCount from, to;

    ColumnsOf(ov, t, g, &from, &to);
    PetscCall(CSROverlapPackedBytes(to - from, columns + from, &some));
    if (some <= most) t->packed[g + 1] = t->packed[g] + some;
    all += (size_t)(to - from) * sizeof(GallopColumn);
  }
  if (some > most || t->packed[num] > all / 8 * 7) PetscCall(PetscFree(t->packed)); /* no room, or less than an eighth is saved */
  else *bytes = t->packed[num];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix's own arrays */
static void TakeOwn(CSROverlapTransfer *t, const GallopCSR *csr)
{
  t->host_values = csr->a;
#if PetscDefined(USE_64BIT_INDICES)
  t->wide_columns = csr->j;
#else
  t->host_columns = csr->j;
#endif
}

/* Columns of a matrix as the format has them, both on the host */
static PetscErrorCode Narrow(PetscCount nz, const PetscInt j[], GallopColumn *columns)
{
  PetscFunctionBegin;
#if PetscDefined(USE_64BIT_INDICES)
  for (PetscCount k = 0; k < nz; k++) columns[k] = (GallopColumn)j[k];
#else
  PetscCall(PetscArraycpy(columns, j, nz));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A copy of the entries from which the GPU copies by itself, where memory can be had. To pin memory takes longer than ten copies from the matrix's own arrays: only many copies pay for that.
  Columns of a resident matrix that are not packed lie before the values as they do on the GPU.
*/
static PetscErrorCode CreatePinned(const CSROverlap *ov, CSROverlapTransfer *t, const GallopCSR *csr)
{
  static PetscBool warned = PETSC_FALSE;
  void            *columns;
  size_t           bytes, place;

  PetscFunctionBegin;
  if (ov->options.pinned == CSROVERLAP_PINNED_NEVER || (ov->options.pinned == CSROVERLAP_PINNED_STREAMED && !Streamed(ov))) {
    TakeOwn(t, csr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PlanPacked(ov, t, csr->j, &bytes));
  place           = Streamed(ov) || t->packed ? (bytes + PageBytes - 1) / PageBytes * PageBytes : ValuesPlace(ov);
  t->pinned_bytes = place + (size_t)ov->nz * sizeof(PetscScalar);
  PetscCall(GallopPinnedMalloc(t->pinned_bytes, &columns));
  if (!columns) {
    PetscCall(PetscFree(t->packed));
    TakeOwn(t, csr);
    PetscCall(PetscInfo(NULL, "No pinned memory for %" PetscCount_FMT " entries\n", ov->nz));
    if (!warned)
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no pinned memory for %" PetscCount_FMT " entries of a CSROVERLAP matrix: they are copied to the GPU from pageable memory, which is slower. Further matrices: -info\n", ov->nz));
    warned = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  t->pinned       = PETSC_TRUE;
  t->columns      = columns;
  t->values       = (PetscScalar *)((char *)columns + place);
  t->host_columns = (const GallopColumn *)columns;
  t->host_values  = t->values;
  if (!t->packed) PetscCall(Narrow(ov->nz, csr->j, (GallopColumn *)columns));
  PetscCall(PetscMemzero((char *)columns + bytes, place - bytes)); /* the GPU has zeros behind the columns */
  for (PetscInt g = 0; t->packed && g < (Streamed(ov) ? t->num : 1); g++) {
    PetscCount from, to;

    ColumnsOf(ov, t, g, &from, &to);
    PetscCall(CSROverlapPack(to - from, csr->j + from, (char *)columns + t->packed[g]));
  }
  PetscCall(PetscArraycpy(t->values, csr->a, ov->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Big batches of a matrix that stays on the GPU */
static PetscErrorCode PlanResident(const CSROverlap *ov, CSROverlapTransfer *t, const CSROverlapPlan *plan)
{
  PetscInt num = 1;

  PetscFunctionBegin;
  if (EqualSize(ov)) {
    t->size = EqualSize(ov);
    num     = (PetscInt)((ov->nz - 1) / t->size + 1);
  } else {
    t->size = ov->nz - ov->nz / Shrink;
    if (t->packed) t->size = PetscMin(t->size, (PetscCount)(PackedPlace(ov, t, 0) / sizeof(PetscScalar)));
    if (t->packed || ov->nz >= Worthwhile) num = 2; /* what is packed parts the values anyway */
    for (PetscCount rest = ov->nz - t->size; num > 1 && num < Parts && rest >= Worthwhile; rest /= Shrink) num++;
  }
  PetscCall(PlanBig(ov, t, num, plan));
  t->together = (PetscBool)(t->pinned && !t->packed && num == 1 && ov->nz < Worthwhile); /* the kernel waits for all values anyway */
  if (!EqualSize(ov)) t->size = t->to[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  CSROverlapTransferCreate - Plans the copies of a matrix whose arrays are on the host

  Input Parameters:
+ ov    - without values on the GPU it is streamed
. csr   - on the host
. plan  - of ov
- limit - most bytes on the GPU for a streamed matrix, 0 for no limit

  Output Parameter:
. transfer - NULL where the GPU has no room for the buffers of a streamed matrix
*/
PetscErrorCode CSROverlapTransferCreate(CSROverlap *ov, const GallopCSR *csr, const CSROverlapPlan *plan, PetscCount limit, CSROverlapTransfer **transfer)
{
  CSROverlapTransfer *t;

  PetscFunctionBegin;
  PetscCall(PetscNew(&t));
  *transfer = t;
  if (Streamed(ov)) {
    PetscCall(CreateBuffers(ov, t, plan, limit));
    if (!t->buffer_values) {
      PetscCall(CSROverlapTransferDestroy(transfer));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(CreatePinned(ov, t, csr));
  if (!Streamed(ov)) PetscCall(PlanResident(ov, t, plan));
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
  if (t->pinned) PetscCall(GallopPinnedFree(t->pinned_bytes, t->columns));
  else PetscCall(PetscFree(t->values));
  PetscCall(PetscFree(t->packed));
  PetscCall(PetscFree3(t->ranges, t->from, t->to));
  PetscCall(PetscFree(*transfer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
