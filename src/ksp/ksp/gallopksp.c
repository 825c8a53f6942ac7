/* SPDX-License-Identifier: BSD-2-Clause */
/* Solvers that are one of PETSc's with another KSPSolve(), as a Gallop matrix is an AIJ matrix with another product */

#include <gallop/matgallopimpl.h>
#include "gallopksp.h"

#define GALLOP_KSP "GallopKSP"

static PetscErrorCode DataDestroy(PetscCtxRt ctx)
{
  GallopKSP *data = *(GallopKSP **)ctx;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&data->diagonal.d));
  if (data->clear) PetscCall((*data->clear)(data));
  PetscCall(PetscFree(data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_Gallop(KSP ksp)
{
  GallopKSP *data;
  PetscErrorCode (*destroy)(KSP);

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  destroy = data->parent.destroy;
  PetscCall(PetscObjectCompose((PetscObject)ksp, GALLOP_KSP, NULL)); /* destroys data */
  PetscCall((*destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_Gallop(KSP ksp)
{
  GallopKSP *data;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  PetscCall(VecDestroy(&data->diagonal.d));
  if (data->parent.reset) PetscCall((*data->parent.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopCompose - Makes data, which is zeroed but for clear, that of a solver whose parent has created it. The caller then replaces other functions. */
PetscErrorCode KSPGallopCompose(KSP ksp, GallopKSP *data)
{
  PetscFunctionBegin;
  data->parent = *ksp->ops;
  PetscCall(PetscObjectContainerCompose((PetscObject)ksp, GALLOP_KSP, data, DataDestroy));
  ksp->ops->destroy = KSPDestroy_Gallop;
  ksp->ops->reset   = KSPReset_Gallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopGet - *data is what KSPGallopCompose() got, of the type that begins with it */
PetscErrorCode KSPGallopGet(KSP ksp, PetscCtxRt data)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)ksp, GALLOP_KSP, data));
  PetscCheck(*(GallopKSP **)data, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "Not a solver of ours");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether kernels can have the array of a vector, on this process: other vectors with memory of two kinds may have it on the host */
PetscErrorCode VecGallopIsCUDA(Vec v, PetscBool *is)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, is, VECSEQCUDA, VECMPICUDA, ""));
  if (!GallopVecOnDevice(v)) *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VecGallopToDevice - Copies what is on the host, and gives the array on the GPU, to read */
PetscErrorCode VecGallopToDevice(Vec v, const PetscScalar **array)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(v, &a, NULL));
  *array = a;
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
