/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the vectors of an unmodified program on the GPU: the names of PETSc's types for the host stand for those of CUDA. */

#include <petscvec.h>

PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallopvectors(void)
{
  const char *const types[][2] = {
    {VECSEQ,      "seqcuda"},
    {VECMPI,      "mpicuda"},
    {VECSTANDARD, "cuda"   }
  };

  PetscFunctionBegin;
  PetscCall(VecInitializePackage());
  PetscCall(VecRegisterAll());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscErrorCode (*create)(Vec);

    PetscCall(PetscFunctionListFind(VecList, types[k][1], &create));
    PetscCheck(create, PETSC_COMM_SELF, PETSC_ERR_SUP, "PETSc has no vectors of type %s", types[k][1]);
    PetscCall(VecRegister(types[k][0], create));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
