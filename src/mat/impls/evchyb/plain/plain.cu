/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: the product */

#include "plainkernels.cuh"
#include "../evchyb.h"

/* z = beta y for all rows, to which the kernel adds: some are empty and not listed. Nothing to do in the off-diagonal block of an MPI product. beta is 0 or 1 where rows are left alone: EVCHYBStoresRows() */
static PetscErrorCode ScaleAll(PetscInt m, GallopVectors<PetscScalar> *v, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!v->readsy) PetscCallCUDA(cudaMemsetAsync(v->z, 0, m * sizeof(PetscScalar), stream));
  else if (v->y != v->z) PetscCallCUDA(cudaMemcpyAsync(v->z, v->y, m * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
  v->y    = v->z;
  v->beta = PetscScalar(1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(EVCHYB *ev, const GallopProduct *p)
{
  const EVCHYBPlain         *plain  = ev->plain;
  GallopVectors<PetscScalar> v      = GallopVectorsOf(p);
  const PetscInt            *perm   = ev->clusters ? ev->clusters->places : plain->perm;
  EVCHYBLaunch               launch = ev->launch;
  cudaStream_t               stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (EVCHYBLeavesRows(plain, ev->nempty)) {
    if (!GallopOnlyAdds(p)) PetscCall(ScaleAll(ev->m, &v, stream));
  } else if (plain->nlisted && GallopOnlyAdds(p)) launch.n--; /* empty rows come last, and keep what they have */
  if (launch.n) {
    v.blocks = (unsigned int)launch.range[launch.n - 1].next;
    v.parts  = launch.range[0].kind == EVCHYB_RANGE_SPLIT ? (unsigned int)plain->csr.parts.nsplit : 0; /* clusters leave no parts */
    if (plain->inorder && !ev->clusters) PetscCallCUDA(LaunchPlain<true, PetscScalar, GallopColumn>(plain, perm, &launch, v, (bool)ev->overlaps, (bool)ev->fresh, stream));
    else PetscCallCUDA(LaunchPlain<false, PetscScalar, GallopColumn>(plain, perm, &launch, v, (bool)ev->overlaps, (bool)ev->fresh, stream));
    PetscCallCUDA(GallopNotFresh(stream, &ev->fresh));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const EVCHYBStorageWork EVCHYBPlainDevice = {EVCHYBPlainRefresh_Device, Apply, EVCHYBPlainFree_Device};
