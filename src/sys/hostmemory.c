/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory of the host may be pinned: what the system, and the control groups (cgroups) in which this process is, have left */

#include <gallop/deviceimpl.h>
#include <errno.h>

/* The number after key in a file of lines "key number", or at its beginning where key is ""; *number stays as it is where there is none */
static PetscErrorCode ReadNumber(const char folder[], const char name[], const char key[], PetscCount *number)
{
  char         path[PETSC_MAX_PATH_LEN], line[256];
  const size_t length = strlen(key);
  FILE        *file;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", folder, name));
  file = fopen(path, "r");
  if (!file) PetscFunctionReturn(PETSC_SUCCESS);
  while (fgets(line, sizeof(line), file)) {
    char              *begin = line + length, *end;
    unsigned long long value;

    if (strncmp(line, key, length)) continue;
    errno = 0;
    value = strtoull(begin, &end, 10);
    if (end == begin) continue; /* "max" in place of a limit */
    *number = errno || value > (unsigned long long)PETSC_COUNT_MAX ? PETSC_COUNT_MAX : (PetscCount)value;
    break;
  }
  (void)fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The files of a control group, in version 1 and 2. Of what it uses, the system gives back cached files that are not in use. */
static const struct {
  const char *mount, *limits[2], *used, *cached;
} Groups[] = {
  {"sys/fs/cgroup/memory", {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file "},
  {"sys/fs/cgroup",        {"memory.max", "memory.high"},   "memory.current",        "inactive_file "      }
};

/*
  What a control group and those around it leave. Not all of the path need be there: in a container the mount is often the container's own group while the path is
  the one outside.
*/
static PetscErrorCode LimitByGroups(const char root[], int version, char path[], PetscCount *available)
{
  char folder[PETSC_MAX_PATH_LEN];

  PetscFunctionBegin;
  for (;;) {
    PetscCount limit = PETSC_COUNT_MAX, used = 0, cached = 0;
    char      *last = strrchr(path, '/');

    PetscCall(PetscSNPrintf(folder, sizeof(folder), "%s/%s%s", root, Groups[version].mount, path));
    for (int k = 0; k < 2 && Groups[version].limits[k]; k++) {
      PetscCount number = PETSC_COUNT_MAX;

      PetscCall(ReadNumber(folder, Groups[version].limits[k], "", &number));
      limit = PetscMin(limit, number);
    }
    PetscCall(ReadNumber(folder, Groups[version].used, "", &used));
    PetscCall(ReadNumber(folder, "memory.stat", Groups[version].cached, &cached));
    used       = PetscMax(used - cached, 0);
    *available = PetscMin(*available, PetscMax(limit - used, 0));
    if (!last) break;
    *last = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopHostMemoryAvailable - Bytes of the host's memory that this process can get without swapping

  Input Parameter:
. root - the folder that proc and sys are in, "" but for tests

  Output Parameter:
. available - the least of what the system and each control group leave; PETSC_COUNT_MAX where none tells
*/
PetscErrorCode GallopHostMemoryAvailable(const char root[], PetscCount *available)
{
  char       folder[PETSC_MAX_PATH_LEN], line[PETSC_MAX_PATH_LEN];
  PetscCount kbytes = PETSC_COUNT_MAX / 1024;
  FILE      *file;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(folder, sizeof(folder), "%s/proc", root));
  PetscCall(ReadNumber(folder, "meminfo", "MemAvailable:", &kbytes));
  *available = kbytes < PETSC_COUNT_MAX / 1024 ? kbytes * 1024 : PETSC_COUNT_MAX;
  PetscCall(PetscSNPrintf(folder, sizeof(folder), "%s/proc/self/cgroup", root));
  file = fopen(folder, "r");
  if (!file) PetscFunctionReturn(PETSC_SUCCESS);
  while (fgets(line, sizeof(line), file)) { /* number:controllers:path, 0::path in version 2 */
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL, *token;
    int   version = -1;

    if (!path) continue;
    *path++                   = 0;
    path[strcspn(path, "\n")] = 0;
    if (!strcmp(line, "0:")) version = 1;
    for (token = strtok(controllers + 1, ","); token; token = strtok(NULL, ","))
      if (!strcmp(token, "memory")) version = 0;
    if (!strcmp(path, "/")) *path = 0;
    if (version >= 0) PetscCall(LimitByGroups(root, version, path, available));
  }
  (void)fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount pinned = 0; /* bytes, by this process */

/*
  GallopPinnedTake - Counts memory that is to be pinned, if it may be

  Pinned memory cannot be swapped: the system would rather end a process than refuse it. So all that is pinned is no more than half of what there was before.
*/
PetscErrorCode GallopPinnedTake(const char root[], PetscCount bytes, PetscBool *taken)
{
  PetscCount available;

  PetscFunctionBegin;
  PetscCall(GallopHostMemoryAvailable(root, &available));
  *taken = (PetscBool)(bytes <= (available - pinned) / 2); /* what is pinned is available no more: (available + pinned) / 2 - pinned */
  if (*taken) pinned += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPinnedGiveBack(PetscCount bytes)
{
  PetscFunctionBegin;
  pinned -= bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}
