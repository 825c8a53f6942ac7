/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream of a process for exchanges that something else runs beside */

#include <gallop/cudaimpl.h>
#include <gallop/exchangeimpl.h>

static cudaStream_t side;

PetscErrorCode GallopSideStreamDestroy(void)
{
  PetscFunctionBegin;
  if (side) PetscCallCUDA(cudaStreamDestroy(side));
  side = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopGetSideStream - Gets it, from its first use to GallopSideStreamDestroy()

  There is one, so that exchanges are in the same order on all processes. Thread blocks on it go before those on PETSc's stream, which wait for nothing.
*/
PetscErrorCode GallopGetSideStream(cudaStream_t *stream)
{
  int least, greatest;

  PetscFunctionBegin;
  if (!side) {
    PetscCallCUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    PetscCallCUDA(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, greatest));
  }
  *stream = side;
  PetscFunctionReturn(PETSC_SUCCESS);
}
