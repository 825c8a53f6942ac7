/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP: the partition into batches (Algorithm 3), made on the GPU where the row offsets are there */

#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_select.cuh>
#include "csroverlapdevice.h"

/* The row after the batch, or the long row, that begins with a row, for each that it could begin with */
__global__ static void EndsKernel(PetscInt max_batch_size, PetscInt m, const PetscInt *row_offsets, PetscInt *ends, unsigned char *begins)
{
  const PetscCount row = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;

  if (row > m) return;
  ends[row]   = row < m ? CSROverlapBatchEnd(max_batch_size, m, row_offsets, (PetscInt)row) : m;
  begins[row] = row == 0;
}

/* Jumps over 2^k batches become jumps over 2^(k+1); what a jump from the beginning of a batch reaches is the beginning of another */
__global__ static void JumpKernel(PetscInt m, const PetscInt *jump, PetscInt *further, unsigned char *begins)
{
  const PetscCount row = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;

  if (row > m) return;
  const PetscInt to = jump[row];

  if (begins[row]) begins[to] = 1; /* seen by others in this launch or not: it is true in any case */
  further[row] = jump[to];
}

typedef struct {
  PetscInt      *jump[2]; /* [m + 1] */
  unsigned char *begins;  /* [m + 1] whether a batch or a long row begins */
  PetscInt      *rows;    /* [m + 1] these rows */
  PetscInt      *num;
  char          *cub;
  size_t         cubbytes;
} Workspace;

static size_t Carve(Workspace *w, PetscInt m, void *base)
{
  GallopCarver carver(base);

  for (PetscInt *&jump : w->jump) carver.Take(jump, (PetscCount)m + 1);
  carver.Take(w->begins, (PetscCount)m + 1);
  carver.Take(w->rows, (PetscCount)m + 1);
  carver.Take(w->num, 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/*
  CSROverlapPartition_Device - As CSROverlapPartition(), with the same result

  Input Parameters:
+ max_batch_size, m - as there
. row_offsets       - on the GPU
- host_row_offsets  - the same on the host

  Output Parameters:
+ batches - as there, on the host
- fits    - false where the GPU has no room for the workspace; then there is no result

  Note:
  A batch begins where the one before it ends. Jumps of doubled length find all beginnings in as many steps as a row number has bits.
*/
PetscErrorCode CSROverlapPartition_Device(PetscInt max_batch_size, PetscInt m, const PetscInt row_offsets[], const PetscInt host_row_offsets[], CSROverlapBatches *batches, PetscBool *fits)
{
  const thrust::counting_iterator<PetscInt> all(0);
  const unsigned int                        blocks = GallopBlocksFor((PetscCount)m + 1, Threads);
  Workspace                                 w      = {};
  PetscInt                                  num, *rows;
  size_t                                    bytes;
  void                                     *base;
  cudaStream_t                              stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cub::DeviceSelect::Flagged(nullptr, w.cubbytes, all, w.begins, w.rows, w.num, (PetscCount)m + 1, stream));
  bytes = Carve(&w, m, NULL);
  PetscCall(GallopWorkspaceMalloc(bytes, &base));
  *fits = (PetscBool)(base != NULL);
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, m, base);
  EndsKernel<<<blocks, Threads, 0, stream>>>(max_batch_size, m, row_offsets, w.jump[0], w.begins);
  GallopCheckLaunch();
  for (PetscCount length = 1, k = 0; length <= m; length *= 2, k = 1 - k) {
    JumpKernel<<<blocks, Threads, 0, stream>>>(m, w.jump[k], w.jump[1 - k], w.begins);
    GallopCheckLaunch();
  }
  PetscCallCUDA(cub::DeviceSelect::Flagged(w.cub, w.cubbytes, all, w.begins, w.rows, w.num, (PetscCount)m + 1, stream));
  PetscCall(GallopDeviceCopyOut(&num, w.num, sizeof(num)));
  PetscCall(PetscMalloc1(num, &rows));
  PetscCall(GallopDeviceCopyOut(rows, w.rows, (size_t)num * sizeof(*rows)));
  PetscCall(GallopWorkspaceFree(base));

  batches->batch_num    = 0;
  batches->long_row_num = 0;
  PetscCall(PetscMalloc1(num, &batches->batch_infos));
  for (PetscInt k = 0; k + 1 < num; k++) { /* the last is row m, where no batch begins. Long rows stay in rows; one pass, as each look at the host's array misses the caches. */
    if (CSROverlapIsLong(max_batch_size, host_row_offsets, rows[k])) rows[batches->long_row_num++] = rows[k];
    else batches->batch_infos[batches->batch_num++] = {rows[k], rows[k + 1]};
  }
  batches->long_row_infos = rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}
