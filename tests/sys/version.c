/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "GallopGetVersion() and GallopGetCommit(): what the header and CITATION.cff say, and texts that are cut.\n\n";

#include "../galloptest.h"

/* The version in CITATION.cff, which stands beside the folder of the tests */
static PetscErrorCode GetCitedVersion(char version[], size_t len)
{
  char        path[PETSC_MAX_PATH_LEN], line[256];
  const char *tests = getenv("GALLOP_TESTS");
  FILE       *file;

  PetscFunctionBeginUser;
  PetscCheck(tests, PETSC_COMM_SELF, PETSC_ERR_USER, "GALLOP_TESTS is not set");
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/../CITATION.cff", tests));
  file = fopen(path, "r");
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no %s", path);
  version[0] = 0;
  while (fgets(line, sizeof(line), file)) {
    if (strncmp(line, "version: ", 9)) continue;
    line[strcspn(line, "\n")] = 0;
    PetscCall(PetscStrncpy(version, line + 9, len));
  }
  (void)fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A text that is longer than there is room for is cut */
static PetscErrorCode IsCut(PetscErrorCode (*get)(char[], size_t), const char whole[])
{
  char cut[4];

  PetscFunctionBeginUser;
  PetscCall((*get)(cut, sizeof(cut)));
  PetscCheck(strlen(cut) == 3 && !strncmp(cut, whole, 3), PETSC_COMM_SELF, PETSC_ERR_PLIB, "three characters of %s are \"%s\"", whole, cut);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char version[32], header[32], cited[32], commit[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(GallopGetVersion(version, sizeof(version)));
  PetscCall(PetscSNPrintf(header, sizeof(header), "%d.%d.%d", GALLOP_VERSION_MAJOR, GALLOP_VERSION_MINOR, GALLOP_VERSION_SUBMINOR));
  PetscCheck(!strcmp(version, header), PETSC_COMM_SELF, PETSC_ERR_PLIB, "the library is %s, the header %s", version, header);
  PetscCall(GetCitedVersion(cited, sizeof(cited)));
  PetscCheck(!strcmp(version, cited), PETSC_COMM_SELF, PETSC_ERR_PLIB, "the library is %s, CITATION.cff says \"%s\"", version, cited);
  PetscCall(IsCut(GallopGetVersion, version));

  PetscCall(GallopGetCommit(commit, sizeof(commit)));
  if (strcmp(commit, "unknown")) {
    const size_t hash = strspn(commit, "0123456789abcdef");

    PetscCheck(hash >= 7 && (!commit[hash] || !strcmp(commit + hash, "-dirty")), PETSC_COMM_SELF, PETSC_ERR_PLIB, "\"%s\" is no commit", commit);
  }
  PetscCall(IsCut(GallopGetCommit, commit));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    output_file: output/empty.out

TEST*/
