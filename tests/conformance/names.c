/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives PETSc's solvers the names of ours, for a program that runs without the library: GALLOP_SOLVERS lists PETSc's name and ours, for each. */

#include <petscksp.h>

PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallopnames(void)
{
  const char *const solvers = getenv("GALLOP_SOLVERS");
  char            **names;
  int               n;

  PetscFunctionBegin;
  if (!solvers) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPInitializePackage());
  PetscCall(PetscStrToArray(solvers, ' ', &n, &names));
  for (int k = 0; k + 1 < n; k += 2) {
    PetscErrorCode (*create)(KSP);

    PetscCall(PetscFunctionListFind(KSPList, names[k], &create));
    PetscCheck(create, PETSC_COMM_SELF, PETSC_ERR_SUP, "PETSc has no solver %s", names[k]);
    PetscCall(KSPRegister(names[k + 1], create));
  }
  PetscCall(PetscStrToArrayDestroy(n, names));
  PetscFunctionReturn(PETSC_SUCCESS);
}
