/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP: a new format, and what its blocks are chosen from; see hbpchoose.h */

#include <gallop/deviceimpl.h>
#include "hbpchoose.h"

#define NARROW_BYTES (64 << 10) /* of shared memory that x of a narrow block takes */

/* HBPCreate - A format of the matrix whose blocks are still to be chosen */
PetscErrorCode HBPCreate(const GallopCSR *csr, const HBPOptions *options, PetscMemType memtype, HBP **h)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(h));
  (*h)->memtype = memtype;
  (*h)->m       = csr->m;
  (*h)->n       = csr->n;
  (*h)->nz      = csr->nz;
  (*h)->options = *options;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPTellRefusal - With -info, why HBP does not store a matrix for which there may be room. why is NULL where HBPFits() says no. */
PetscErrorCode HBPTellRefusal(const HBP *h, const char why[])
{
  PetscFunctionBegin;
  if (!why && (double)h->rowBlocks * h->colBlocks > (double)HBP_MOST_BLOCKS(h->nz)) why = "it would have more blocks, empty ones included, than four per nonzero and 16 million";
  else if (!why && h->rowBlocks >= HBP_ROW_BLOCKS) why = "it would have too many blocks of rows";
  else if (!why) why = "it has nearly as many rows or nonzeros as an index can count";
  PetscCall(PetscInfo(NULL, "HBP does not store a %" PetscInt_FMT " by %" PetscInt_FMT " matrix with %" PetscCount_FMT " nonzeros: %s\n", h->m, h->n, h->nz, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  HBPGetSharedCols - Sets options->shared_cols, unless it is set, to what the GPU has room for. The host's format gets the same number, so that it has the same blocks; without a GPU it gets
  what most GPUs have room for. The GPU is only asked where x may be in shared memory, since that takes loading the kernel.
*/
PetscErrorCode HBPGetSharedCols(const GallopCSR *csr, HBPOptions *options)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  if (options->shared_cols) PetscFunctionReturn(PETSC_SUCCESS);
  options->shared_cols = HBP_MAX_SHARED_COLS;
  if (HBPMayShare(options, csr->n)) PetscCall(GallopDeviceAvailable(&device));
#if PetscDefined(HAVE_CUDA)
  if (device) PetscCall(HBPGetSharedCols_Device(&options->shared_cols));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of a block that are candidates: few, whose x fits in shared memory, and many */
void HBPCandidates(const HBPOptions *options, PetscInt M[2])
{
  M[HBP_NARROW] = options->block_cols ? options->block_cols : PetscMin((PetscInt)(NARROW_BYTES / sizeof(PetscScalar)), PetscMax(options->shared_cols, 1));
  M[HBP_WIDE]   = options->block_cols ? options->block_cols : HBP_MAX_COLS;
}
