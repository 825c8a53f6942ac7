/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: what the parts of CSROVERLAP on the GPU, its build, its product and its copies from the host, know of each other */

#include <gallop/cudaimpl.h>
#include "csroverlap.h"

static constexpr int Threads = CSROVERLAP_THREADS;
static constexpr int Warps   = Threads / WarpSize;

static constexpr int CopyUnit = 16; /* bytes: what is copied to shared memory begins and ends at multiples of it */

#define CSROVERLAP_PAD CopyUnit /* bytes behind arrays that the kernel may read */

/* Batches [batch_begin, batch_end) and pieces of long rows [piece_begin, piece_end) */
typedef struct {
  PetscInt batch_begin, batch_end, piece_begin, piece_end;
} CSROverlapRange;

/* What a launch computes: a range with entries at columns and values, of which number 0 may lie before the memory that is theirs */
typedef struct {
  CSROverlapRange     range;
  const GallopColumn *columns;
  const PetscScalar  *values;
  PetscBool           overlaps; /* the kernel may start while the one before it ends */
  PetscBool           fresh;    /* then it waits before it reads the matrix */
} CSROverlapPart;

/* A long row and its entries [begin, end) */
typedef struct {
  PetscInt row, begin, end;
} LongRowRange;

/* A partition on the GPU, where the row offsets are there */
typedef struct {
  void         *memory; /* NULL where the partition was made on the host */
  PetscInt      batch_num, busy_num, long_row_num;
  PetscInt      max_batch_size, nonempty; /* nonempty: rows with entries */
  PetscBool     even;
  BatchInfo    *infos; /* [batch_num] in order of rows */
  BatchInfo    *order; /* [batch_num] as the kernel takes them */
  LongRowRange *longs; /* [long_row_num] */
} CSROverlapParts;

/* What is known of a format while it is built: a partition at either place, and on the host all of long rows. order: the batches as the kernel takes them. */
typedef struct {
  CSROverlapParts   parts;
  const PetscInt   *row_offsets; /* NULL with parts */
  CSROverlapBatches batches;     /* only long_row_infos with parts */
  const BatchInfo  *order;
  BatchInfo        *reordered; /* NULL where order is that of batches */
  LongRowPiece     *pieces;
} CSROverlapPlan;

/* csroverlapproduct.cu */
PETSC_INTERN PetscErrorCode CSROverlapLargestBatch(const CSROverlapOptions *, PetscInt *);
PETSC_INTERN PetscErrorCode CSROverlapPrepareKernel(CSROverlap *, PetscInt, int *);
PETSC_INTERN PetscErrorCode CSROverlapLaunch(const CSROverlap *, const GallopProduct *, const CSROverlapPart *, cudaStream_t);

/* csroverlappartition.cu */
PETSC_INTERN PetscErrorCode CSROverlapPartition_Device(const CSROverlapOptions *, PetscInt, PetscInt, PetscCount, const PetscInt[], CSROverlapParts *);

/* csroverlappack.cu */
#define CSROVERLAP_PACK_UNIT 16 /* bytes: packed columns, and their parts, begin at multiples of it */

PETSC_INTERN PetscErrorCode CSROverlapPackedBytes(PetscCount, const PetscInt[], size_t *);
PETSC_INTERN PetscErrorCode CSROverlapPack(PetscCount, const PetscInt[], void *);
PETSC_INTERN PetscErrorCode CSROverlapUnpack(PetscCount, const void *, GallopColumn *, cudaStream_t);
PETSC_INTERN PetscErrorCode CSROverlapNarrow(PetscCount, const PetscInt[], GallopColumn *, cudaStream_t);

/* csroverlaptransferplan.cu and csroverlaptransfer.cu */
PETSC_INTERN PetscErrorCode CSROverlapTransferCreate(CSROverlap *, const GallopCSR *, const CSROverlapPlan *, PetscCount, CSROverlapTransfer **);
PETSC_INTERN PetscErrorCode CSROverlapTransferDestroy(CSROverlapTransfer **);
PETSC_INTERN PetscErrorCode CSROverlapTransferRefresh(CSROverlap *, const GallopCSR *);
PETSC_INTERN PetscErrorCode CSROverlapTransferApply(CSROverlap *, const GallopProduct *, PetscBool *);
PETSC_INTERN PetscBool      CSROverlapTransferIsDue(const CSROverlap *);
