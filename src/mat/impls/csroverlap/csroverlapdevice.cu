/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP on the GPU: a copy of the CSR arrays, and the batches */

#include "csroverlapdevice.h"

static constexpr int PieceLow  = 1024; /* entries of a piece of a long row, at least and at most */
static constexpr int PieceHigh = 16384;
static constexpr int PieceBusy = 16; /* pieces that keep a multiprocessor busy */

/* Batches of a small matrix are a parameter of the kernel that describes them: they are not copied, and the host does not wait for that */
static constexpr int FewBatches = 3584 / sizeof(BatchInfo);

struct FewInfos {
  BatchInfo info[FewBatches];
};

/* A warp looks at the rows of a batch; what its first lane is told is right */
__device__ static __forceinline__ BatchWork Describe(const BatchInfo &info, const PetscInt *row_offsets, const CSROverlapOptions &options, int each)
{
  PetscInt longest = 0;

  for (PetscInt row = info.start_row + (PetscInt)(threadIdx.x % WarpSize); row < info.end_row; row += WarpSize) {
    const PetscInt length = row_offsets[row + 1] - row_offsets[row];

    longest = length > longest ? length : longest;
  }
  for (int by = WarpSize / 2; by > 0; by /= 2) {
    const PetscInt other = GallopShuffleDown(longest, by, WarpSize);

    longest = other > longest ? other : longest;
  }
  return CSROverlapDescribe(&options, each, info, row_offsets, longest);
}

/* A warp for each batch, which it describes to the kernel */
__global__ static void DescribeBatchesKernel(PetscInt num, const BatchInfo *infos, const PetscInt *row_offsets, const CSROverlapOptions options, int each, BatchWork *works)
{
  const PetscCount b = GallopGlobalThread() / WarpSize;

  if (b >= num) return;
  const BatchWork work = Describe(infos[b], row_offsets, options, each);

  if (threadIdx.x % WarpSize == 0) works[b] = work;
}

/* The same for few batches, and all else that a build stores beside copies of the CSR arrays: the batches, and zeros behind the arrays */
__global__ static void FewBatchesKernel(PetscInt num, const __grid_constant__ FewInfos few, const PetscInt *row_offsets, const CSROverlapOptions options, int each, BatchWork *works, BatchInfo *infos, char *pad0, char *pad1, char *pad2)
{
  const PetscCount b = GallopGlobalThread() / WarpSize;

  if (blockIdx.x == 0 && threadIdx.x < CSROVERLAP_PAD) {
    pad0[threadIdx.x] = 0;
    if (pad1) pad1[threadIdx.x] = 0;
    if (pad2) pad2[threadIdx.x] = 0;
  }
  if (b >= num) return;
  const BatchInfo info = few.info[b];
  const BatchWork work = Describe(info, row_offsets, options, each);

  if (threadIdx.x % WarpSize) return;
  works[b] = work;
  infos[b] = info;
}

/* Batches in the order in which the kernel takes them, those without entries last: a product that adds to z leaves them out */
static PetscErrorCode OrderBatches(CSROverlapPlan *plan)
{
  const PetscInt   num   = plan->batches.batch_num;
  const BatchInfo *infos = plan->batches.batch_infos;
  PetscInt         busy = 0, idle = plan->batches.busy_num;
  const auto       has = [&](PetscInt b) { return plan->row_offsets[infos[b].end_row] > plan->row_offsets[infos[b].start_row]; };

  PetscFunctionBegin;
  plan->reordered = NULL;
  plan->order     = infos;
  if (idle == num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(num, &plan->reordered));
  for (PetscInt b = 0; b < num; b++) plan->reordered[has(b) ? busy++ : idle++] = infos[b];
  plan->order = plan->reordered;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows in pieces: as many as keep the GPU busy, neither too small nor too large */
static PetscErrorCode CutLongRows(PetscInt num, const LongRowRange longs[], int processors, LongRowPiece **cut, PetscInt *piece_num)
{
  PetscCount entries = 0;
  PetscInt   size    = PieceLow;
  const auto pieces  = [&](const LongRowRange &l) { return (l.end - l.begin - 1) / size + 1; };

  PetscFunctionBegin;
  for (PetscInt l = 0; l < num; l++) entries += longs[l].end - longs[l].begin;
  while (size < PieceHigh && entries / size > (PetscCount)PieceBusy * processors) size *= 2;
  *piece_num = 0;
  for (PetscInt l = 0; l < num; l++) *piece_num += pieces(longs[l]);
  PetscCall(PetscMalloc1(*piece_num, cut));
  for (PetscInt l = 0, p = 0; l < num; l++) {
    const PetscInt row = longs[l].row, begin = longs[l].begin, end = longs[l].end, n = pieces(longs[l]), first = p;

    for (PetscInt k = 0; k < n; k++, p++) (*cut)[p] = {row, begin + k * size, k + 1 < n ? begin + (k + 1) * size : end, first, n};
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From so many batches on they are found on the GPU: its launches take as long as the host for a few hundred */
static const PetscCount ManyBatches = 512;

/* How long rows are cut, from the plan on the host or on the GPU */
static PetscErrorCode PlanLongRows(CSROverlap *ov, int processors, CSROverlapPlan *plan)
{
  const CSROverlapParts *parts = &plan->parts;
  const PetscInt         num   = ov->long_row_num;
  LongRowRange          *longs;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(num, &longs));
  if (parts->memory) {
    PetscCall(PetscMalloc1(num, &plan->batches.long_row_infos));
    if (num) PetscCall(GallopDeviceCopyOut(longs, parts->longs, (size_t)num * sizeof(*longs)));
    for (PetscInt l = 0; l < num; l++) plan->batches.long_row_infos[l] = longs[l].row;
  } else
    for (PetscInt l = 0; l < num; l++) {
      const PetscInt row = plan->batches.long_row_infos[l];

      longs[l] = {row, plan->row_offsets[row], plan->row_offsets[row + 1]};
    }
  PetscCall(CutLongRows(num, longs, processors, &plan->pieces, &ov->piece_num));
  PetscCall(PetscFree(longs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches and their order; PlanFree() frees them. largest: most entries of a batch */
static PetscErrorCode PlanBatches(CSROverlap *ov, const GallopCSR *csr, PetscInt largest, CSROverlapPlan *plan)
{
  CSROverlapParts *parts = &plan->parts;
  CSROverlapSample sample;

  PetscFunctionBegin;
  if (PetscMemTypeCUDA(csr->memtype) && PetscMax(csr->m / CSROVERLAP_THREADS, csr->nz / CSROVERLAP_LARGE_BATCH) >= ManyBatches)
    PetscCall(CSROverlapPartition_Device(&ov->options, largest, csr->m, csr->nz, csr->i, parts));
  if (parts->memory) {
    ov->max_batch_size = parts->max_batch_size;
    ov->even           = parts->even;
    ov->nonempty       = parts->nonempty;
    ov->batch_num      = parts->batch_num;
    ov->busy_num       = parts->busy_num;
    ov->long_row_num   = parts->long_row_num;
  } else {
    PetscCall(GallopCSRGetHostI(csr, &plan->row_offsets));
    CSROverlapTakeSample(csr->m, plan->row_offsets, &sample);
    ov->max_batch_size = PetscMin(CSROverlapBatchSize(&ov->options, csr->m, csr->nz, &sample), largest);
    ov->even           = CSROverlapIsEven(csr->m, csr->nz, &sample);
    ov->nonempty       = -1;
    PetscCall(CSROverlapPartition(ov->max_batch_size, csr->m, plan->row_offsets, &plan->batches));
    ov->batch_num    = plan->batches.batch_num;
    ov->busy_num     = plan->batches.busy_num;
    ov->long_row_num = plan->batches.long_row_num;
    PetscCall(OrderBatches(plan));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanFree(CSROverlapPlan *plan)
{
  PetscFunctionBegin;
  PetscCall(GallopWorkspaceFree(plan->parts.memory));
  PetscCall(CSROverlapBatchesFree(&plan->batches));
  PetscCall(PetscFree(plan->reordered));
  PetscCall(PetscFree(plan->pieces));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs twice: with a null base it measures, then it hands out. A streamed matrix has its entries elsewhere. Nothing but zeros lies between columns and values, which may come in one copy. */
static size_t Carve(CSROverlap *ov, bool entries, void *base)
{
  GallopCarver carver(base);
  PetscInt     *i;
  GallopColumn *j = NULL;
  PetscScalar  *a = NULL;

  carver.Take(i, ov->m + 1);
  carver.Pad(CSROVERLAP_PAD);
  if (entries) {
    carver.Take(j, ov->nz);
    carver.Pad(CSROVERLAP_PAD);
    carver.Take(a, ov->nz);
    carver.Pad(CSROVERLAP_PAD);
  }
  carver.Take(ov->batch_works, ov->batch_num);
  carver.Take(ov->batch_infos, ov->batch_num);
  carver.Take(ov->long_row_infos, ov->long_row_num);
  carver.Take(ov->pieces, ov->piece_num);
  carver.Take(ov->partial, ov->piece_num);
  carver.Take(ov->arrived, ov->piece_num);
  ov->row_offsets    = i;
  ov->column_indices = j;
  ov->values         = a;
  return carver.Bytes();
}

static PetscErrorCode CSROverlapDestroy_Device(void **data)
{
  CSROverlap *ov = (CSROverlap *)*data;

  PetscFunctionBegin;
  PetscCall(CSROverlapTransferDestroy(&ov->transfer));
  PetscCall(GallopDeviceFree((void *)ov->row_offsets)); /* where the one allocation begins */
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapRefresh_Device(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  CSROverlap  *ov = (CSROverlap *)data;
  cudaStream_t stream;
  PetscBool    capturing;

  PetscFunctionBegin;
  ov->fresh = PETSC_TRUE;
  if (ov->transfer) PetscCall(CSROverlapTransferRefresh(ov, csr));
  if (ov->transfer && (PetscMemTypeHost(csr->memtype) || !ov->values)) PetscFunctionReturn(PETSC_SUCCESS); /* the next product copies */
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync((void *)ov->values, csr->a, (size_t)ov->nz * sizeof(PetscScalar), PetscMemTypeHost(csr->memtype) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream));
  if (PetscMemTypeHost(csr->memtype)) {
    PetscCall(GallopDeviceIsCapturing(&capturing));
    if (!capturing) PetscCallCUDA(cudaStreamSynchronize(stream)); /* as for the products that copy: the matrix's arrays may be pinned */
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)ov->nz * sizeof(PetscScalar)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix is streamed that nobody asked to be */
static PetscErrorCode WarnStreamed(const CSROverlap *ov)
{
  static PetscBool warned = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscInfo(NULL, "No room on the GPU for %" PetscCount_FMT " entries: each product copies them\n", ov->nz));
  if (!warned)
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: no room on the GPU for %" PetscCount_FMT " entries of a CSROVERLAP matrix: each product copies them from the host. Further matrices: -info\n", ov->nz));
  warned = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for the whole matrix, or for what a matrix from the host that is streamed needs besides its buffers; *base is NULL where neither fits, and beyond maxbytes */
static PetscErrorCode Allocate(CSROverlap *ov, const GallopCSR *csr, const CSROverlapPlan *plan, PetscCount maxbytes, void **base)
{
  const bool       fromhost = PetscMemTypeHost(csr->memtype);
  const PetscCount limit = fromhost ? ov->options.device_memory : 0, most = !maxbytes ? limit : limit ? PetscMin(limit, maxbytes) : maxbytes;
  bool             wanted; /* the whole matrix on the GPU */

  PetscFunctionBegin;
  *base     = NULL;
  ov->bytes = Carve(ov, true, NULL);
  wanted    = !limit || ov->bytes <= (size_t)limit;
  if (wanted) {
    if (maxbytes && ov->bytes > (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GallopDeviceMalloc(ov->bytes, base));
    if (*base) (void)Carve(ov, true, *base);
    if (*base && fromhost) PetscCall(CSROverlapTransferCreate(ov, csr, plan, 0, &ov->transfer));
    if (*base || !fromhost) PetscFunctionReturn(PETSC_SUCCESS);
  }
  ov->bytes = Carve(ov, false, NULL);
  if (most && ov->bytes >= (size_t)most) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(ov->bytes, base));
  if (!*base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(ov, false, *base);
  PetscCall(CSROverlapTransferCreate(ov, csr, plan, most, &ov->transfer));
  if (!ov->transfer) {
    PetscCall(GallopDeviceFree(*base));
    *base = NULL;
  } else if (wanted) PetscCall(WarnStreamed(ov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches, and zeros behind arrays; row offsets are there. *waits: the host's part of the plan is being copied */
static PetscErrorCode FillBatches(CSROverlap *ov, const CSROverlapPlan *plan, cudaStream_t stream, bool *waits)
{
  const size_t       batches = (size_t)ov->batch_num * sizeof(BatchInfo);
  const int          each    = CSROverlapEach(ov->max_batch_size);
  const unsigned int blocks  = ov->batch_num ? GallopBlocksFor((PetscCount)ov->batch_num, Warps) : 0;
  char *const        pads[]  = {(char *)(ov->row_offsets + ov->m + 1), ov->values ? (char *)(ov->column_indices + ov->nz) : NULL, ov->values ? (char *)(ov->values + ov->nz) : NULL};

  PetscFunctionBegin;
  *waits = false;
  if (!plan->parts.memory && !plan->reordered && !ov->long_row_num && ov->batch_num > 0 && ov->batch_num <= FewBatches) {
    FewInfos few = {};

    PetscCall(PetscArraycpy(few.info, plan->order, ov->batch_num));
    FewBatchesKernel<<<blocks, Threads, 0, stream>>>(ov->batch_num, few, ov->row_offsets, ov->options, each, ov->batch_works, ov->batch_infos, pads[0], pads[1], pads[2]);
    GallopCheckLaunch();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *waits = !plan->parts.memory || ov->long_row_num;
  if (plan->parts.memory) PetscCall(GallopDeviceCopy(ov->batch_infos, plan->parts.order, batches));
  else PetscCall(GallopDeviceCopyIn(ov->batch_infos, plan->order, batches));
  PetscCall(GallopDeviceCopyIn(ov->long_row_infos, plan->batches.long_row_infos, (size_t)ov->long_row_num * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(ov->pieces, plan->pieces, (size_t)ov->piece_num * sizeof(LongRowPiece)));
  PetscCall(GallopDeviceZero(ov->arrived, (size_t)ov->piece_num * sizeof(int)));
  if (ov->batch_num) {
    DescribeBatchesKernel<<<blocks, Threads, 0, stream>>>(ov->batch_num, ov->batch_infos, ov->row_offsets, ov->options, each, ov->batch_works);
    GallopCheckLaunch();
  }
  if (plan->parts.memory) PetscCall(GallopDeviceCopy(ov->batch_infos, plan->parts.infos, batches)); /* in order of rows from now on */
  else if (plan->reordered) PetscCall(GallopDeviceCopyIn(ov->batch_infos, plan->batches.batch_infos, batches));
  for (char *pad : pads)
    if (pad) PetscCall(GallopDeviceZero(pad, CSROVERLAP_PAD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays, but for entries that come with the first product */
static PetscErrorCode Fill(CSROverlap *ov, const GallopCSR *csr, const CSROverlapPlan *plan)
{
  const bool           fromhost = PetscMemTypeHost(csr->memtype);
  const cudaMemcpyKind kind     = fromhost ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
  cudaStream_t         stream;
  bool                 waits;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync((void *)ov->row_offsets, csr->i, (size_t)(ov->m + 1) * sizeof(PetscInt), kind, stream));
  if (!ov->transfer) PetscCall(CSROverlapNarrow(ov->nz, csr->j, (GallopColumn *)ov->column_indices, stream));
  PetscCall(FillBatches(ov, plan, stream, &waits));
  ov->fresh = PETSC_TRUE;
  if (!ov->transfer) PetscCall(CSROverlapRefresh_Device(ov, csr, 0, NULL));
  if (fromhost || waits) PetscCallCUDA(cudaStreamSynchronize(stream)); /* what is copied may change, or is about to go */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapBuild_Device(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  CSROverlap    *ov;
  CSROverlapPlan plan = {};
  PetscInt       largest;
  void          *base;
  int            processors;

  PetscFunctionBegin;
  *built = NULL;
  if (!GallopColumnsFit(csr)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&ov));
  ov->memtype = PETSC_MEMTYPE_CUDA;
  ov->m       = csr->m;
  ov->n       = csr->n;
  ov->nz      = csr->nz;
  ov->options = *(const CSROverlapOptions *)opts;
  PetscCall(CSROverlapLargestBatch(&ov->options, &largest));
  PetscCall(PlanBatches(ov, csr, largest, &plan));
  PetscCall(CSROverlapPrepareKernel(ov, largest, &processors));
  PetscCall(PlanLongRows(ov, processors, &plan));
  PetscCall(Allocate(ov, csr, &plan, maxbytes, &base));
  if (base) {
    PetscCall(Fill(ov, csr, &plan));
    *built = ov;
  } else PetscCall(PetscFree(ov));
  PetscCall(PlanFree(&plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapApply_Device(void *data, const GallopProduct *p)
{
  CSROverlap          *ov  = (CSROverlap *)data;
  const CSROverlapPart all = {
    {0, ov->batch_num, 0, ov->piece_num},
    ov->column_indices, ov->values, ov->overlaps, ov->fresh
  };
  PetscBool    done = PETSC_FALSE;
  cudaStream_t stream;

  PetscFunctionBegin;
  if (ov->transfer) PetscCall(CSROverlapTransferApply(ov, p, &done));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!done) PetscCall(CSROverlapLaunch(ov, p, &all, stream));
  PetscCallCUDA(GallopNotFresh(stream, &ov->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork CSROverlapDevice = {CSROverlapBuild_Device, CSROverlapRefresh_Device, CSROverlapApply_Device, CSROverlapDestroy_Device, NULL};
