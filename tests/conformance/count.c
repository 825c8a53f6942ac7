/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts what the library does in an unmodified program: loaded after libgallop.so, it watches log events, such as a format's product. */

#include <petscsys.h>
#include <unistd.h>

static char        **names; /* of the events */
static int           n;
static PetscLogEvent events[8];
static long          counts[PETSC_STATIC_ARRAY_LENGTH(events)];

static PetscErrorCode EventBegin(PetscLogEvent e, int unused, PetscObject o1, PetscObject o2, PetscObject o3, PetscObject o4)
{
  for (int k = 0; k < n; k++)
    if (e == events[k]) counts[k]++;
  return PETSC_SUCCESS;
}

/* One line per process and event, written at once since processes share the file: how often, the event, and the folder that the test runs in */
static PetscErrorCode Report(void)
{
  const char *const path = getenv("GALLOP_COUNT_FILE");
  char              folder[PETSC_MAX_PATH_LEN];
  FILE             *file;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    if (!path || !counts[k] || !getcwd(folder, sizeof(folder))) continue;
    file = fopen(path, "a");
    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", path);
    fprintf(file, "%ld %s %s\n", counts[k], names[k], folder);
    fclose(file);
    counts[k] = 0;
  }
  PetscCall(PetscStrToArrayDestroy(n, names));
  n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallopcount(void)
{
  const char *const asked = getenv("GALLOP_COUNT_EVENTS");

  PetscFunctionBegin;
  if (!asked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrToArray(asked, ' ', &n, &names));
  PetscCheck(n <= (int)PETSC_STATIC_ARRAY_LENGTH(events), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Too many events: %s", asked);
  for (int k = 0; k < n; k++) {
    PetscCall(PetscLogEventGetId(names[k], &events[k]));
    PetscCheck(events[k] >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "There is no log event %s: libgallop.so must be loaded first", names[k]);
  }
  PetscCall(PetscLogLegacyCallbacksBegin(EventBegin, NULL, NULL, NULL));
  PetscCall(PetscRegisterFinalize(Report));
  PetscFunctionReturn(PETSC_SUCCESS);
}
