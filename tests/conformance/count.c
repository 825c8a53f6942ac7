/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the products that a Gallop format computes in an unmodified program: loaded after libgallop.so, it watches the format's log event. */

#include <petscsys.h>
#include <unistd.h>

static PetscLogEvent event;
static long          products;

static PetscErrorCode EventBegin(PetscLogEvent e, int unused, PetscObject o1, PetscObject o2, PetscObject o3, PetscObject o4)
{
  if (e == event) products++;
  return PETSC_SUCCESS;
}

/* One line per process, written at once since processes share the file: the folder that the test runs in, and its products */
static PetscErrorCode Report(void)
{
  const char *const path = getenv("GALLOP_COUNT_FILE");
  char              folder[PETSC_MAX_PATH_LEN];
  FILE             *file;

  PetscFunctionBegin;
  if (!path || !products || !getcwd(folder, sizeof(folder))) PetscFunctionReturn(PETSC_SUCCESS);
  file = fopen(path, "a");
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", path);
  fprintf(file, "%ld %s\n", products, folder);
  fclose(file);
  products = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallopcount(void)
{
  const char *const name = getenv("GALLOP_COUNT_EVENT");

  PetscFunctionBegin;
  if (!name) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "There is no log event %s: libgallop.so must be loaded first", name);
  PetscCall(PetscLogLegacyCallbacksBegin(EventBegin, NULL, NULL, NULL));
  PetscCall(PetscRegisterFinalize(Report));
  PetscFunctionReturn(PETSC_SUCCESS);
}
