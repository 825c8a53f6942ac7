/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "How much of the host's memory may be pinned, by what the system and control groups say in a folder of such files.\n\n";

#include "../galloptest.h"
#include <gallop/deviceimpl.h>
#include <stdarg.h>
#include <sys/stat.h>

#define SYSTEM_HAS_8MB "proc/meminfo", "MemTotal:       16384 kB\nMemFree:         1024 kB\nMemAvailable:    8192 kB\n"
#define SELF           "proc/self/cgroup"
#define V1             "sys/fs/cgroup/memory/"
#define V2             "sys/fs/cgroup/"
#define V1_UNLIMITED   "9223372036854771712\n"
#define MB             ((PetscCount)1 << 20)
#define MB1            "1048576\n"
#define MB2            "2097152\n"
#define MB3            "3145728\n"
#define MB4            "4194304\n"

static PetscErrorCode WriteFile(const char root[], const char name[], const char text[])
{
  char  path[PETSC_MAX_PATH_LEN];
  FILE *file;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", root, name));
  for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    (void)mkdir(path, 0777);
    *slash = '/';
  }
  file = fopen(path, "w");
  PetscCheck(file && fputs(text, file) >= 0 && !fclose(file), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "cannot write %s", path);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Names of files and what is in them, in a folder of that name; NULL behind the last */
static PetscErrorCode Expect(PetscCount expected, const char root[], ...)
{
  const char *name;
  PetscCount  available;
  va_list     files;

  PetscFunctionBeginUser;
  va_start(files, root);
  while ((name = va_arg(files, const char *))) PetscCall(WriteFile(root, name, va_arg(files, const char *)));
  va_end(files);
  PetscCall(GallopHostMemoryAvailable(root, &available));
  PetscCheck(available == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscCount_FMT " bytes, not %" PetscCount_FMT, root, available, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestAvailable(void)
{
  PetscFunctionBeginUser;
  PetscCall(Expect(PETSC_COUNT_MAX, "nothing", NULL));
  PetscCall(Expect(8 * MB, "system", SYSTEM_HAS_8MB, NULL));
  PetscCall(Expect(8 * MB, "nogroup", SYSTEM_HAS_8MB, SELF, "0::/\n", NULL));
  PetscCall(Expect(3 * MB, "v2", SYSTEM_HAS_8MB, SELF, "0::/job\n", V2 "job/memory.max", MB4, V2 "job/memory.current", MB1, NULL));
  PetscCall(Expect(0, "v2full", SYSTEM_HAS_8MB, SELF, "0::/job\n", V2 "job/memory.max", MB1, V2 "job/memory.current", MB2, NULL));
  PetscCall(Expect(8 * MB, "v2loose", SYSTEM_HAS_8MB, SELF, "0::/job\n", V2 "job/memory.max", "104857600\n", V2 "job/memory.current", MB1, NULL));
  PetscCall(Expect(1 * MB, "v2high", SYSTEM_HAS_8MB, SELF, "0::/job\n", V2 "job/memory.max", "max\n", V2 "job/memory.high", MB2, V2 "job/memory.current", MB1, NULL));
  PetscCall(Expect(2 * MB, "v2cache", SYSTEM_HAS_8MB, SELF, "0::/job\n", V2 "job/memory.max", MB4, V2 "job/memory.current", MB3, V2 "job/memory.stat", "anon 1048576\nfile 2097152\nactive_file 1048576\ninactive_file " MB1, NULL));
  PetscCall(Expect(3 * MB, "v2container", SYSTEM_HAS_8MB, SELF, "0::/\n", V2 "memory.max", MB4, V2 "memory.current", MB1, NULL));
  /* the least of what the groups around one another leave: here that of the outermost */
  PetscCall(Expect(1 * MB, "v2nested", SYSTEM_HAS_8MB, SELF, "0::/outer/middle/inner\n", V2 "outer/memory.max", MB4, V2 "outer/memory.current", MB3, V2 "outer/middle/memory.max", MB3, V2 "outer/middle/memory.current", MB1, V2 "outer/middle/inner/memory.max", "max\n", V2 "outer/middle/inner/memory.current", MB1, NULL));
  PetscCall(Expect(3 * MB, "v1", SYSTEM_HAS_8MB, SELF, "9:name=systemd:/\n4:cpu,memory:/job/step\n0::/\n", V1 "job/step/memory.limit_in_bytes", V1_UNLIMITED, V1 "job/memory.limit_in_bytes", MB4, V1 "job/memory.usage_in_bytes", MB2, V1 "job/memory.stat", "inactive_file 7\ntotal_inactive_file " MB1, NULL));
  PetscCall(Expect(8 * MB, "v1unlimited", SYSTEM_HAS_8MB, SELF, "4:memory:/\n", V1 "memory.limit_in_bytes", V1_UNLIMITED, V1 "memory.usage_in_bytes", MB1, NULL));
  /* the path is that outside the container, whose own group is all that it sees */
  PetscCall(Expect(3 * MB, "v1container", SYSTEM_HAS_8MB, SELF, "4:memory:/docker/0123abcd\n", V1 "memory.limit_in_bytes", MB4, V1 "memory.usage_in_bytes", MB1, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Take(PetscCount available, PetscCount bytes, PetscBool expected)
{
  const char *const root = "pinned";
  char              text[64];
  PetscBool         taken;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "MemAvailable: %" PetscCount_FMT " kB\n", available / 1024));
  PetscCall(WriteFile(root, "proc/meminfo", text));
  PetscCall(GallopPinnedTake(root, bytes, &taken));
  PetscCheck(taken == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscCount_FMT " bytes of %" PetscCount_FMT ": %s", bytes, available, PetscBools[taken]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of 100 MB half, however many ask; what is pinned is no longer available */
static PetscErrorCode TestTake(void)
{
  PetscFunctionBeginUser;
  PetscCall(Take(100 * MB, 51 * MB, PETSC_FALSE));
  PetscCall(Take(100 * MB, 40 * MB, PETSC_TRUE));
  PetscCall(Take(60 * MB, 20 * MB, PETSC_FALSE)); /* less than half of what is left */
  PetscCall(Take(60 * MB, 10 * MB, PETSC_TRUE));
  PetscCall(Take(50 * MB, 1, PETSC_FALSE));
  PetscCall(GallopPinnedGiveBack(40 * MB));
  PetscCall(Take(90 * MB, 40 * MB, PETSC_TRUE));
  PetscCall(GallopPinnedGiveBack(40 * MB));
  PetscCall(GallopPinnedGiveBack(10 * MB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscCount available;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestAvailable());
  PetscCall(TestTake());
  PetscCall(GallopHostMemoryAvailable("", &available));
  PetscCheck(available >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscCount_FMT " bytes on this machine", available);
  PetscCall(GallopInitializePackage());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    output_file: output/empty.out

TEST*/
