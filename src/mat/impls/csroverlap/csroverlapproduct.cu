/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP on the GPU: what the kernel of its product needs, and the launch */

#include "csroverlapkernels.cuh"

static constexpr int BatchRun = 4;                                    /* most batches of a thread block, one after the other */
static constexpr int Carveout = 132 << 10, CarveoutLarge = 164 << 10; /* bytes of shared memory of a multiprocessor: what is left is L1, where loads of x wait, unless rows are even */

typedef void (*Kernel)(const CsrView<PetscScalar, PetscInt>, const GallopVectors<PetscScalar>, const bool);

/* Even has kernels of its own because the carveout belongs to a kernel */
template <bool Dot>
static Kernel GetKernel(PetscInt max_batch_size, PetscBool even)
{
  switch (CSROverlapEach(max_batch_size)) {
  case 1:
    return csr_partial_overlapping<1, false, Dot, PetscScalar, PetscInt>;
  case 2:
    return csr_partial_overlapping<2, false, Dot, PetscScalar, PetscInt>;
  case 4:
    return even ? csr_partial_overlapping<4, true, Dot, PetscScalar, PetscInt> : csr_partial_overlapping<4, false, Dot, PetscScalar, PetscInt>;
  case 8:
    return csr_partial_overlapping<8, false, Dot, PetscScalar, PetscInt>;
  case 16:
    return csr_partial_overlapping<16, false, Dot, PetscScalar, PetscInt>;
  default:
    return csr_partial_overlapping<32, false, Dot, PetscScalar, PetscInt>;
  }
}

static size_t SharedBytes(PetscInt max_batch_size)
{
  const Shared<PetscScalar, PetscInt> layout = {(int)max_batch_size};

  return layout.Bytes();
}

/* CSROverlapLargestBatch - Most entries of a batch that a thread block of this GPU has shared memory for */
PetscErrorCode CSROverlapLargestBatch(const CSROverlapOptions *options, PetscInt *largest)
{
  PetscInt           most = CSROVERLAP_LARGEST_BATCH;
  cudaFuncAttributes attr = {};
  int                device, block;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaFuncGetAttributes(&attr, GetKernel<false>(CSROVERLAP_SMALL_BATCH, PETSC_FALSE))); /* what it has of a fixed size is the same for all: that is rounded up to 128 bytes */
  while (most > CSROVERLAP_SMALLEST_BATCH && SharedBytes(most) + attr.sharedSizeBytes > (size_t)block) most -= CSROVERLAP_SMALLEST_BATCH;
  PetscCheck(options->max_batch_size <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_csroverlap_max_batch_size %" PetscInt_FMT " takes more shared memory than the %d bytes that a block of this GPU has: must be between 32 and %" PetscInt_FMT, options->max_batch_size, block, most);
  *largest = most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the kernel of a matrix needs of the GPU, and how many of its thread blocks fit there. The former is the kernel's for as long as the process lives, and so for the largest batches of all matrices that it serves. */
template <bool Dot>
static PetscErrorCode Prepare(const CSROverlap *ov, PetscInt largest, int *resident)
{
  const Kernel kernel = GetKernel<Dot>(ov->max_batch_size, ov->even);
  int          device, processor, processors, each = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SharedBytes(PetscMin(CSROverlapEach(ov->max_batch_size) * Threads, largest))));
  if (!ov->even || GetKernel<Dot>(ov->max_batch_size, PETSC_FALSE) == kernel)
    PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, PetscMin(100, (CSROverlapEach(ov->max_batch_size) >= 8 ? CarveoutLarge : Carveout) / (processor / 100) + 1)));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Threads, SharedBytes(ov->max_batch_size)));
  *resident = PetscMax(each, 1) * processors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSROverlapPrepareKernel - Once max_batch_size is known */
PetscErrorCode CSROverlapPrepareKernel(CSROverlap *ov, PetscInt largest, int *processors)
{
  int device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(GallopKernelOverlaps(GetKernel<false>(ov->max_batch_size, ov->even), &ov->overlaps));
  PetscCall(Prepare<false>(ov, largest, &ov->resident));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The kernel with a dot product. Not before the first such product: most matrices need none, and this loads it. */
static PetscErrorCode PrepareDot(CSROverlap *ov)
{
  PetscInt largest;

  PetscFunctionBegin;
  if (ov->dotresident) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CSROverlapLargestBatch(&ov->options, &largest));
  PetscCall(Prepare<true>(ov, largest, &ov->dotresident));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches of a thread block, and thread blocks for num batches */
static PetscInt GetBlocks(PetscInt num, int resident, PetscInt *run)
{
  *run = PetscMin((num + resident - 1) / resident, BatchRun);
  return *run ? (num + *run - 1) / *run : 0;
}

/* CSROverlapDotParts - None of a product that copies the matrix from the host: it takes several launches, and the copies take much longer than a dot product */
PetscCount CSROverlapDotParts(const void *data, PetscBool adds)
{
  CSROverlap *ov = (CSROverlap *)data;
  PetscInt    run;

  if (CSROverlapTransferIsDue(ov) || PrepareDot(ov)) return 0;
  return (PetscCount)GetBlocks(ov->batch_num, ov->dotresident, &run) + ov->piece_num;
}

/* CSROverlapLaunch - Where the product adds to z, rows without entries are left alone */
PetscErrorCode CSROverlapLaunch(const CSROverlap *ov, const GallopProduct *p, const CSROverlapPart *part, cudaStream_t stream)
{
  const CSROverlapRange         &range = part->range;
  GallopVectors<PetscScalar>     v     = GallopVectorsOf(p);
  const PetscInt                 end   = GallopOnlyAdds(p) ? PetscMin(range.batch_end, ov->busy_num) : range.batch_end;
  const PetscInt                 num = PetscMax(end - range.batch_begin, 0), piece_num = range.piece_end - range.piece_begin;
  PetscInt                       run;
  const PetscCount               blocks = (PetscCount)GetBlocks(num, v.with ? ov->dotresident : ov->resident, &run) + piece_num;
  const GallopGrid               grid   = {blocks, Threads, 1, SharedBytes(ov->max_batch_size), stream, (bool)part->overlaps};
  CsrView<PetscScalar, PetscInt> view   = {};

  PetscFunctionBegin;
  if (!num && !piece_num) PetscFunctionReturn(PETSC_SUCCESS);
  v.blocks             = (unsigned int)blocks;
  view.row_offsets     = ov->row_offsets;
  view.column_indices  = part->columns;
  view.values          = part->values;
  view.batch_works     = ov->batch_works + range.batch_begin;
  view.pieces          = ov->pieces;
  view.partial         = ov->partial;
  view.arrived         = ov->arrived;
  view.batch_num       = num;
  view.block_batch_num = run;
  view.piece_begin     = range.piece_begin;
  view.piece_num       = piece_num;
  view.max_batch_size  = (int)ov->max_batch_size;
  PetscCallCUDA(GallopLaunch(v.with ? GetKernel<true>(ov->max_batch_size, ov->even) : GetKernel<false>(ov->max_batch_size, ov->even), grid, view, v, (bool)part->fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}
