/* SPDX-License-Identifier: BSD-2-Clause */
/*
  MATGALLOP, measured choice: what is known of patterns, from this process and from the tune file

  A line of the file has these fields, with tabs between them: library and types, GPU, what the pattern is known by, the choice, the times of products in seconds. A process reads the file once,
  and appends a line for each choice that it measures, by one write(), so that processes can share a file. The last line of a pattern holds.
*/

#include <petscgallop.h>
#include "choice.h"
#include <fcntl.h>
#include <unistd.h>
#include <errno.h>

typedef struct _Known *Known;
struct _Known {
  char        name[GALLOP_GPU_NAME];
  GallopTuned tuned;
  Known       next;
};

#define LINE_MOST 1024

static Known     list;
static char      file[PETSC_MAX_PATH_LEN];
static PetscBool set, wasread, warned, registered; /* set: by option; else the environment may */

/* GallopTuneForget - Nothing is known any more, and the file is read again */
PetscErrorCode GallopTuneForget(void)
{
  PetscFunctionBegin;
  while (list) {
    Known next = list->next;

    PetscCall(PetscFree(list));
    list = next;
  }
  wasread = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Finalize(void)
{
  PetscFunctionBegin;
  PetscCall(GallopTuneForget());
  file[0] = 0;
  set = warned = registered = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Register(void)
{
  PetscFunctionBegin;
  if (!registered) PetscCall(PetscRegisterFinalize(Finalize));
  registered = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopTuneFileSet - Another file than that of the environment, or than before; "" for none */
PetscErrorCode GallopTuneFileSet(const char name[])
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(Register());
  PetscCall(PetscStrcmp(file, name, &same));
  if (!same) {
    wasread = PETSC_FALSE;
    warned  = PETSC_FALSE;
  }
  set = PETSC_TRUE;
  PetscCall(PetscStrncpy(file, name, sizeof(file)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first field: times hold for the same code and sizes of types */
static PetscErrorCode Library(char text[], size_t len)
{
  char version[32];

  PetscFunctionBegin;
  PetscCall(GallopGetVersion(version, sizeof(version)));
  PetscCall(PetscSNPrintf(text, len, "gallop %s, %s scalars of %d bytes, indices of %d", version, PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)sizeof(PetscScalar), (int)sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SamePattern(const GallopTuned *a, const GallopTuned *b)
{
  return (PetscBool)(a->m == b->m && a->n == b->n && a->nz == b->nz && a->pattern.nonempty == b->pattern.nonempty && a->pattern.squares == b->pattern.squares && a->pattern.longest == b->pattern.longest &&
                     a->pattern.marks == b->pattern.marks);
}

static PetscErrorCode Remember(const char name[], const GallopTuned *tuned)
{
  Known known;

  PetscFunctionBegin;
  PetscCall(PetscNew(&known));
  PetscCall(PetscStrncpy(known->name, name, sizeof(known->name)));
  known->tuned = *tuned;
  known->next  = list; /* before older ones */
  list         = known;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool ChoiceOf(const char name[], GallopChoice *choice)
{
  for (int k = 0; k <= GALLOP_CHOICES; k++) {
    *choice = (GallopChoice)k;
    if (!strcmp(name, GallopChoiceName(*choice))) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* What the fields behind library and GPU say; PETSC_FALSE where they are no such fields */
static PetscBool Parse(const char pattern[], const char choice[], char times[], GallopTuned *t)
{
  long long n[3];
  int       end = 0;
  char     *word, *more = NULL;

  memset(t, 0, sizeof(*t));
  t->way = GALLOP_BY_FILE;
  if (sscanf(pattern, "%lld %lld %lld %llu %llu %llu %llu%n", &n[0], &n[1], &n[2], &t->pattern.nonempty, &t->pattern.squares, &t->pattern.longest, &t->pattern.marks, &end) != 7 || pattern[end])
    return PETSC_FALSE;
  t->m  = n[0];
  t->n  = n[1];
  t->nz = n[2];
  if (!ChoiceOf(choice, &t->choice)) return PETSC_FALSE;
  for (word = strtok_r(times, " ", &more); word; word = strtok_r(NULL, " ", &more)) {
    char        *number = strtok_r(NULL, " ", &more), *rest;
    GallopChoice whose;
    double       seconds;

    if (!number || !ChoiceOf(word, &whose)) return PETSC_FALSE;
    seconds = strtod(number, &rest);
    if (*rest || !(seconds > 0) || PetscIsInfReal((PetscReal)seconds)) return PETSC_FALSE;
    t->time[whose] = seconds;
  }
  return (PetscBool)(t->time[t->choice] > 0);
}

static PetscErrorCode ReadLine(const char name[], const char library[], char line[], PetscInt number)
{
  char       *field[5], *at = line;
  int         n   = 0;
  const char *why = NULL;
  GallopTuned tuned;

  PetscFunctionBegin;
  while (n < 5 && at) {
    field[n++] = at;
    at         = strchr(at, '\t');
    if (at) *at++ = 0;
  }
  if (n < 5 || at || !Parse(field[2], field[3], field[4], &tuned)) why = "is damaged";
  if (n > 1 && strcmp(field[1], name)) why = "is of another GPU";
  if (strcmp(field[0], library)) why = "is of another version, or no line of such a file";
  if (why) PetscCall(PetscInfo(NULL, "Tune file %s: line %" PetscInt_FMT " %s\n", file, number, why));
  else PetscCall(Remember(name, &tuned));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Read(const char name[])
{
  char     line[LINE_MOST], library[128];
  PetscInt number = 0;
  FILE    *f;

  PetscFunctionBegin;
  if (wasread) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Register());
  wasread = PETSC_TRUE;
  if (!set) {
    const char *environment = getenv("GALLOP_TUNE_FILE");

    PetscCall(PetscStrncpy(file, environment ? environment : "", sizeof(file)));
  }
  f = file[0] ? fopen(file, "r") : NULL;
  if (file[0] && !f) PetscCall(PetscInfo(NULL, "Tune file %s is not read: %s\n", file, strerror(errno)));
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Library(library, sizeof(library)));
  while (fgets(line, sizeof(line), f)) {
    const size_t len = strlen(line);

    if (len && line[len - 1] == '\n') line[len - 1] = 0; /* without one: damaged, or longer than any of ours, which the number of fields shows */
    PetscCall(ReadLine(name, library, line, ++number));
  }
  (void)fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopTuneFind - What is known of a pattern, whose numbers tuned has, on this GPU; tuned stays as it is where nothing is */
PetscErrorCode GallopTuneFind(const char name[], GallopTuned *tuned, PetscBool *found)
{
  PetscFunctionBegin;
  *found = PETSC_FALSE;
  PetscCall(Read(name));
  for (Known known = list; known && !*found; known = known->next) {
    if (strcmp(known->name, name) || !SamePattern(&known->tuned, tuned)) continue;
    *tuned = known->tuned;
    *found = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One line, by one write() */
static PetscErrorCode Append(const char name[], const GallopTuned *t)
{
  char      line[LINE_MOST], library[128];
  size_t    len;
  PetscBool first = PETSC_TRUE, failed;
  int       fd;

  PetscFunctionBegin;
  PetscCall(Library(library, sizeof(library)));
  PetscCall(PetscSNPrintf(line, sizeof(line), "%s\t%s\t%lld %lld %lld %llu %llu %llu %llu\t%s\t", library, name, (long long)t->m, (long long)t->n, (long long)t->nz, t->pattern.nonempty, t->pattern.squares,
                          t->pattern.longest, t->pattern.marks, GallopChoiceName(t->choice)));
  for (int k = 0; k <= GALLOP_CHOICES; k++) {
    if (!(t->time[k] > 0)) continue;
    PetscCall(PetscStrlen(line, &len));
    PetscCall(PetscSNPrintf(line + len, sizeof(line) - len, "%s%s %.3e", first ? "" : " ", GallopChoiceName((GallopChoice)k), (double)t->time[k]));
    first = PETSC_FALSE;
  }
  PetscCall(PetscStrlcat(line, "\n", sizeof(line)));
  PetscCall(PetscStrlen(line, &len));
  fd     = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
  failed = (PetscBool)(fd < 0 || write(fd, line, len) != (ssize_t)len);
  if (fd >= 0) (void)close(fd);
  if (failed && !warned) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Gallop: cannot write the tune file %s; this run goes on without\n", file));
  if (failed) warned = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopTuneAdd - What has been found out: for matrices of this process, and where times decided for later runs */
PetscErrorCode GallopTuneAdd(const char name[], const GallopTuned *tuned)
{
  PetscFunctionBegin;
  PetscCall(Read(name)); /* else what is added would be older than lines of the file */
  PetscCall(Remember(name, tuned));
  if (file[0] && tuned->way == GALLOP_BY_TIMES) PetscCall(Append(name, tuned));
  PetscFunctionReturn(PETSC_SUCCESS);
}
