#pragma once

/* What the two halves of CSROVERLAP on the GPU, its kernel and its copies from the host, know of each other */

#include <gallop/cudaimpl.h>
#include "csroverlap.h"

#define CSROVERLAP_PAD 16 /* bytes behind arrays that the kernel may read */

/* Batches [batch_begin, batch_end) and pieces of long rows [piece_begin, piece_end) */
typedef struct {
  PetscInt batch_begin, batch_end, piece_begin, piece_end;
} CSROverlapRange;

PETSC_INTERN PetscErrorCode CSROverlapLaunch(const CSROverlap *, const GallopProduct *, const CSROverlapRange *, const PetscInt *, const PetscScalar *, PetscBool, PetscBool, cudaStream_t);

PETSC_INTERN PetscErrorCode CSROverlapPartition_Device(PetscInt, PetscInt, const PetscInt[], const PetscInt[], PetscInt *, BatchInfo **, PetscInt *, PetscInt **, PetscBool *);

PETSC_INTERN PetscErrorCode CSROverlapPackedBytes(PetscCount, const PetscInt[], size_t *);
PETSC_INTERN PetscErrorCode CSROverlapPack(PetscCount, const PetscInt[], void *);
PETSC_INTERN PetscErrorCode CSROverlapUnpack(PetscCount, const void *, PetscInt *, cudaStream_t);

PETSC_INTERN PetscErrorCode CSROverlapTransferCreate(CSROverlap *, const GallopCSR *, const BatchInfo[], const LongRowPiece[], PetscCount, CSROverlapTransfer **);
PETSC_INTERN PetscErrorCode CSROverlapTransferRefresh(CSROverlap *, const GallopCSR *);
PETSC_INTERN PetscErrorCode CSROverlapTransferApply(CSROverlap *, const GallopProduct *, PetscBool *);
PETSC_INTERN PetscErrorCode CSROverlapTransferDestroy(CSROverlapTransfer **);
