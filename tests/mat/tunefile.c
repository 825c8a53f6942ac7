/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The tune file of MATGALLOP: written, read again, by several processes at once, and with lines that are not ours.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/gallop/choice.h"
#include <unistd.h>

static const char GPU[] = "NVIDIA Made-up 200";

/* What a process found out of a pattern of number k */
static GallopTuned Tuned(PetscInt k)
{
  GallopTuned t = {
    .m = 1000 + k, .n = 2000, .nz = 5000000 + k, .pattern = {.nonempty = 900, .squares = 123456789012345ull, .longest = 77, .marks = (unsigned long long)k},
                   .way = GALLOP_BY_TIMES
  };

  t.choice              = k % 2 ? GALLOP_PARENT : GALLOP_HBP;
  t.time[GALLOP_HBP]    = 1e-5 * (double)(k + 1);
  t.time[GALLOP_PARENT] = 1.25e-4;
  return t;
}

static PetscErrorCode Find(const char gpu[], PetscInt k, PetscBool *found, GallopTuned *t)
{
  const GallopTuned known = Tuned(k);

  PetscFunctionBegin;
  *t = (GallopTuned){.m = known.m, .n = known.n, .nz = known.nz, .pattern = known.pattern, .choice = GALLOP_EVCHYB};
  PetscCall(GallopTuneFind(gpu, t, found));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(PetscInt k, GallopWay way, const char what[])
{
  const GallopTuned known = Tuned(k);
  GallopTuned       t;
  PetscBool         found;

  PetscFunctionBegin;
  PetscCall(Find(GPU, k, &found, &t));
  TestCheck(found, "pattern %" PetscInt_FMT " is not known", what, k);
  TestCheck(t.way == way && t.choice == known.choice, "pattern %" PetscInt_FMT ": choice %d in way %d", what, k, (int)t.choice, (int)t.way);
  for (int c = 0; c <= GALLOP_CHOICES; c++) TestCheck(PetscAbs(t.time[c] - known.time[c]) <= 1e-3 * known.time[c], "pattern %" PetscInt_FMT ": time %d is %g", what, k, c, (double)t.time[c]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckUnknown(const char gpu[], PetscInt k, const char what[])
{
  GallopTuned t;
  PetscBool   found;

  PetscFunctionBegin;
  PetscCall(Find(gpu, k, &found, &t));
  TestCheck(!found && t.choice == GALLOP_EVCHYB, "pattern %" PetscInt_FMT " is known", what, k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each process writes its patterns while the others do, and then knows all */
static PetscErrorCode Together(const char file[], PetscMPIInt rank, PetscMPIInt size)
{
  const PetscInt each = 300;

  PetscFunctionBegin;
  PetscCall(GallopTuneFileSet(file));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  for (PetscInt k = 0; k < each; k++) {
    const GallopTuned t = Tuned(each * rank + k);

    PetscCall(GallopTuneAdd(GPU, &t));
    PetscCall(Check(each * rank + k, GALLOP_BY_TIMES, "written"));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(GallopTuneForget());
  for (PetscInt k = 0; k < each * size; k++) PetscCall(Check(k, GALLOP_BY_FILE, "read again"));
  PetscCall(CheckUnknown(GPU, each * size, "another pattern"));
  PetscCall(CheckUnknown("NVIDIA Made-up 100", 1, "another GPU"));
  PetscCall(GallopTuneForget());
  PetscCall(CheckUnknown("NVIDIA Made-up 100", 1, "another GPU reads the file"));
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another line: that of pattern 0, which is the file's first, with new in the place of old, or ending there; alone: and not the first one itself */
static PetscErrorCode AppendChanged(const char file[], const char old[], const char new[], PetscBool ends, PetscBool alone)
{
  FILE *f = fopen(file, "r");
  char  line[1024], *at;

  PetscFunctionBegin;
  TestCheck(f && fgets(line, sizeof(line), f), "no line", file);
  (void)fclose(f);
  at = strstr(line, old);
  TestCheck(at, "no %s in %s", file, old, line);
  f = fopen(file, alone ? "w" : "a");
  fprintf(f, "%.*s%s%s", (int)(at - line), line, new, ends ? "" : at + strlen(old));
  (void)fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Damaged(const char file[])
{
  const GallopTuned  t            = Tuned(0);
  static const char *changes[][2] = {
    {"1000 ",    "1000 x "    },
    {"hbp\t",    "nothing\t"  },
    {"hbp\t",    "evchyb\t"   }, /* which has no time */
    {"e-0",      "f-0"        },
    {"\thbp",    " hbp"       },
    {"\thbp",    "\t\thbp"    },
    {"gallop",   "other"      },
    {"gallop 0", "gallop 9990"},
    {"NVIDIA",   "Other"      }
  };
  char  longer[3000];
  FILE *f;

  PetscFunctionBegin;
  PetscCall(GallopTuneFileSet(file));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes); k++) {
    (void)remove(file);
    PetscCall(GallopTuneAdd(GPU, &t));
    PetscCall(AppendChanged(file, changes[k][0], changes[k][1], PETSC_FALSE, PETSC_TRUE));
    PetscCall(GallopTuneForget());
    PetscCall(CheckUnknown(GPU, 0, changes[k][1]));
  }
  (void)remove(file);
  PetscCall(GallopTuneAdd(GPU, &t));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes); k++) PetscCall(AppendChanged(file, changes[k][0], changes[k][1], PETSC_FALSE, PETSC_FALSE));
  memset(longer, 'x', sizeof(longer));
  longer[sizeof(longer) - 1] = 0;
  f                          = fopen(file, "a");
  fprintf(f, "\n\n\t\t\t\t\n%s\t\t\t\t\n%s\n", longer, "gallop");
  fprintf(f, "%c%c\n", 0, 0); /* zeros, which a crash can leave */
  (void)fclose(f);
  PetscCall(AppendChanged(file, "hbp", "", PETSC_TRUE, PETSC_FALSE)); /* a process ended while it wrote */
  PetscCall(GallopTuneForget());
  PetscCall(Check(0, GALLOP_BY_FILE, "among damaged lines"));
  for (PetscInt k = 1; k < 4; k++) {
    const GallopTuned more = Tuned(k); /* the first of them ends the line without an end */

    PetscCall(GallopTuneAdd(GPU, &more));
  }
  PetscCall(GallopTuneForget());
  PetscCall(Check(3, GALLOP_BY_FILE, "after damaged lines"));
  PetscCall(Check(0, GALLOP_BY_FILE, "among damaged lines"));
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Unwritable(const char file[])
{
  char     name[PETSC_MAX_PATH_LEN];
  PetscInt lines = 0, matches = 0;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s.no/such/folder", file));
  PetscCall(TestCaptureBegin());
  PetscCall(GallopTuneFileSet(name));
  for (PetscInt k = 0; k < 3; k++) {
    const GallopTuned t = Tuned(k);

    PetscCall(GallopTuneAdd(GPU, &t));
    PetscCall(Check(k, GALLOP_BY_TIMES, "without a file"));
  }
  PetscCall(TestCaptureEnd("cannot write the tune file", &lines, &matches));
  PetscCheck(lines == 1 && matches == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages, %" PetscInt_FMT " of them right", lines, matches);
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        file[PETSC_MAX_PATH_LEN], own[PETSC_MAX_PATH_LEN];
  PetscMPIInt rank, size;
  int         process;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  process = (int)getpid();
  PetscCallMPI(MPI_Bcast(&process, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCall(PetscSNPrintf(file, sizeof(file), "gallop-tune-%d", process));
  PetscCall(PetscSNPrintf(own, sizeof(own), "%s-%d", file, rank));

  PetscCall(Together(file, rank, size));
  PetscCall(Damaged(own));
  PetscCall(Unwritable(own));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  (void)remove(own);
  if (!rank) (void)remove(file);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2}}
    output_file: output/empty.out

TEST*/
