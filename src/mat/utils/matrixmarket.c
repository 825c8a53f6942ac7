/* SPDX-License-Identifier: BSD-2-Clause */
/* Matrix Market files, plain or compressed with gzip, into any matrix type that takes coordinate input */

#include <petscgallop.h>
#include <petsc/private/petscimpl.h>
#include <errno.h>
#include <locale.h>
#include <sys/wait.h>

/* What one process reads and all must know before they assemble, or fail, together */
typedef struct {
  PetscInt64     m, n, nz; /* nz: entries, the mirrored half of a symmetric file included */
  PetscErrorCode error;
  char           message[512];
} Header;

typedef enum {
  MIRROR_NONE,
  MIRROR_SYMMETRIC,
  MIRROR_SKEW,
  MIRROR_HERMITIAN
} Mirror;

/* Remembers the first error; the file is read by one process, and the others must not wait for it */
#define FAIL(code, ...) \
  do { \
    h->error = code; \
    PetscCall(PetscSNPrintf(h->message, sizeof(h->message), __VA_ARGS__)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  } while (0)

/* The entries read so far; the arrays grow with them, since a header can announce any number */
typedef struct {
  PetscInt    *i, *j;
  PetscScalar *v;
  PetscInt64   n, room;
} Entries;

/* With realloc(): only the process that reads can run out of memory here, and must not raise an error by itself */
static PetscBool GrowArray(size_t bytes, void **array)
{
  void *grown = realloc(*array, bytes);

  if (grown) *array = grown;
  return grown ? PETSC_TRUE : PETSC_FALSE;
}

static PetscBool GrowEntries(Entries *e, PetscInt64 most)
{
  const PetscInt64 first = 1048576, room = e->room ? (e->room < most / 2 ? 2 * e->room : most) : PetscMin(first, most);

  if (!GrowArray((size_t)room * sizeof(*e->i), (void **)&e->i) || !GrowArray((size_t)room * sizeof(*e->j), (void **)&e->j) || !GrowArray((size_t)room * sizeof(*e->v), (void **)&e->v)) return PETSC_FALSE;
  e->room = room;
  return PETSC_TRUE;
}

static void FreeEntries(Entries *e)
{
  free(e->i);
  free(e->j);
  free(e->v);
}

typedef struct {
  FILE       *fp;
  const char *name;
  long long   number; /* of the line, from 1 */
  char        line[1024];
  PetscBool   whole; /* else the line is longer than that, or has a zero byte in it */
} Reader;

#define WHITE " \t\r\n\v\f"

/* The next line that is neither blank nor a comment, without its end */
static PetscBool NextLine(Reader *r)
{
  do {
    size_t len = 0;
    int    c;

    r->whole = PETSC_TRUE;
    while ((c = getc_unlocked(r->fp)) != EOF && c != '\n') {
      if (c && len < sizeof(r->line) - 1) r->line[len++] = (char)c;
      else r->whole = PETSC_FALSE;
    }
    r->line[len] = 0;
    if (c == EOF && !len && r->whole) return PETSC_FALSE;
    r->number++;
  } while (r->line[0] == '%' || (r->whole && !r->line[strspn(r->line, WHITE)]));
  return PETSC_TRUE;
}

/* Reads the field at *at, which must be an integer to its end, and goes on behind it */
static PetscBool NextInteger(char **at, long long *value)
{
  char *field = *at + strspn(*at, WHITE);

  errno  = 0;
  *value = strtoll(field, at, 10);
  return (PetscBool)(*at != field && *at == field + strcspn(field, WHITE) && errno != ERANGE);
}

/* Likewise a number in decimal notation, with Fortran's d for e, that is finite as a PetscReal */
static PetscBool NextNumber(char **at, PetscReal *value)
{
  char *field = *at + strspn(*at, WHITE), *end = field + strcspn(field, WHITE), *d = field + strcspn(field, "dD");
  char  letter = *d;

  if (field == end || field + strspn(field, "+-.0123456789eEdD") < end) return PETSC_FALSE; /* strtod() takes inf, nan and hexadecimal numbers too */
  if (d < end) *d = 'e';
  *value = (PetscReal)strtod(field, at);
  if (d < end) *d = letter; /* messages show the line as it was */
  return (PetscBool)(*at == end && !PetscIsInfOrNanReal(*value));
}

static PetscBool AtEnd(const char at[])
{
  return (PetscBool)!at[strspn(at, WHITE)];
}

static PetscErrorCode ReadBanner(Reader *r, Header *h, PetscBool *pattern, PetscBool *complexfield, Mirror *mirror)
{
  const char *const name = r->name;
  char              object[64], format[64], field[64], symmetry[64];

  PetscFunctionBegin;
  if (!fgets(r->line, sizeof(r->line), r->fp)) r->line[0] = 0;
  r->number = 1;
  PetscCall(PetscStrtolower(r->line));
  if (sscanf(r->line, "%%%%matrixmarket %63s %63s %63s %63s", object, format, field, symmetry) != 4)
    FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s is no Matrix Market file: its first line does not begin with %%%%MatrixMarket object format field symmetry", name);
  if (strcmp(object, "matrix") || strcmp(format, "coordinate")) FAIL(PETSC_ERR_SUP, "%s holds a Matrix Market %s in %s format; only a matrix in coordinate format is sparse", name, object, format);
  *pattern = (PetscBool)!strcmp(field, "pattern");
  *complexfield = (PetscBool)!strcmp(field, "complex");
  if (!*pattern && !*complexfield && strcmp(field, "real") && strcmp(field, "integer") && strcmp(field, "double")) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s: field %s is not one of real, integer, complex, pattern", name, field);
  if (*complexfield && !PetscDefined(USE_COMPLEX)) FAIL(PETSC_ERR_SUP, "%s has complex values, and PETSc was configured for real ones", name);
  if (!strcmp(symmetry, "general")) *mirror = MIRROR_NONE;
  else if (!strcmp(symmetry, "symmetric")) *mirror = MIRROR_SYMMETRIC;
  else if (!strcmp(symmetry, "skew-symmetric")) *mirror = MIRROR_SKEW;
  else if (!strcmp(symmetry, "hermitian")) *mirror = MIRROR_HERMITIAN;
  else FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s: symmetry %s is not one of general, symmetric, skew-symmetric, hermitian", name, symmetry);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadEntries(Reader *r, Header *h, Entries *e)
{
  const char *const name = r->name;
  char             *at;
  PetscBool         pattern = PETSC_FALSE, complexfield = PETSC_FALSE, toomany;
  Mirror            mirror = MIRROR_NONE;
  long long         m = -1, n = -1, stored = -1;
  PetscInt64        most;

  PetscFunctionBegin;
  PetscCall(ReadBanner(r, h, &pattern, &complexfield, &mirror));
  if (h->error) PetscFunctionReturn(PETSC_SUCCESS);
  if (!NextLine(r)) FAIL(PETSC_ERR_FILE_READ, "%s ends before the line with its sizes", name);
  at = r->line;
  if (!r->whole || !NextInteger(&at, &m) || !NextInteger(&at, &n) || !NextInteger(&at, &stored) || !AtEnd(at) || m < 0 || n < 0 || stored < 0) {
    FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s, line %lld: rows, columns and entries are expected where it says: %.80s", name, r->number, r->line);
  }
  if (m > PETSC_INT_MAX || n > PETSC_INT_MAX) FAIL(PETSC_ERR_ARG_OUTOFRANGE, "%s has %lld rows and %lld columns, more than PetscInt can count: configure PETSc --with-64-bit-indices", name, m, n);
  if (mirror != MIRROR_NONE && m != n) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s says that it is symmetric, but has %lld rows and %lld columns", name, m, n);
  h->m    = m;
  h->n    = n;
  toomany = (PetscBool)(stored > 0 && (!m || !n || (stored - 1) / m >= n)); /* no error by itself: entries given several times are summed */
  most    = mirror == MIRROR_NONE || stored > PETSC_INT64_MAX / 2 ? stored : 2 * stored;
  for (long long k = 0; k < stored; k++) {
    long long   row, col;
    PetscReal   re = 1.0, im = 0.0;
    PetscScalar value;

    if (!NextLine(r)) {
      if (toomany) FAIL(PETSC_ERR_FILE_READ, "%s announces %lld entries, more than a matrix of %lld rows and %lld columns has, and ends after %lld", name, stored, m, n, k);
      FAIL(PETSC_ERR_FILE_READ, "%s is truncated: it has %lld of the %lld entries that it announces", name, k, stored);
    }
    at = r->line;
    if (!r->whole || !NextInteger(&at, &row) || !NextInteger(&at, &col) || (!pattern && !NextNumber(&at, &re)) || (complexfield && !NextNumber(&at, &im)) || !AtEnd(at)) {
      const char *values = pattern ? "" : complexfield ? ", and two numbers that PetscReal can hold" : ", and a number that PetscReal can hold";

      FAIL(PETSC_ERR_FILE_READ, "%s, line %lld: entry %lld is not a row and a column%s: %.80s", name, r->number, k + 1, values, r->line);
    }
    if (row < 1 || row > m || col < 1 || col > n) {
      FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s, line %lld: entry %lld is in row %lld, column %lld of a matrix of %lld rows and %lld columns; they count from 1", name, r->number, k + 1, row, col, m, n);
    }
    if (e->n + 2 > e->room && e->room < most && !GrowEntries(e, most)) {
      FAIL(PETSC_ERR_MEM, "%s: there is not enough memory for more than %lld of the %lld entries that it announces", name, k, stored);
    }
#if defined(PETSC_USE_COMPLEX)
    value = PetscCMPLX(re, im);
#else
    value = re;
#endif
    e->i[e->n]   = (PetscInt)row - 1;
    e->j[e->n]   = (PetscInt)col - 1;
    e->v[e->n++] = value;
    if (mirror != MIRROR_NONE && row != col) {
      e->i[e->n]   = (PetscInt)col - 1;
      e->j[e->n]   = (PetscInt)row - 1;
      e->v[e->n++] = mirror == MIRROR_SKEW ? -value : mirror == MIRROR_HERMITIAN ? PetscConj(value) : value;
    }
  }
  if (NextLine(r)) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s, line %lld: the file goes on after the %lld entries that it announces: %.80s", name, r->number, stored, r->line);
  h->nz = e->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How gzip ended; of a pipe closed before its end that says nothing */
static PetscErrorCode CloseGzip(const Reader *r, Header *h)
{
  const PetscBool early = (PetscBool)(h->error && !feof(r->fp));
  const int       wait = pclose(r->fp), status = wait == -1 ? -1 : WIFEXITED(wait) ? WEXITSTATUS(wait) : 128 + WTERMSIG(wait); /* as a shell counts */

  PetscFunctionBegin;
  if (early || !status) PetscFunctionReturn(PETSC_SUCCESS);
  if (status == 2) PetscCall(PetscInfo(NULL, "gzip gave a warning for %s\n", r->name));
  else if (status == 127) FAIL(PETSC_ERR_FILE_OPEN, "%s: the program gzip is not found", r->name);
  else FAIL(PETSC_ERR_FILE_READ, "%s is damaged or not compressed with gzip: gzip ended with status %d", r->name, status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadFile(const char name[], Header *h, Entries *e)
{
  Reader    r;
  char      command[PETSC_MAX_PATH_LEN + 32];
  PetscBool exists, gz;
  locale_t  c, before;

  PetscFunctionBegin;
  PetscCall(PetscTestFile(name, 'r', &exists));
  if (!exists) FAIL(PETSC_ERR_FILE_OPEN, "%s is no file that can be read", name);
  PetscCall(PetscStrendswith(name, ".gz", &gz));
  r.name = name;
  if (gz) {
    if (strchr(name, '\'')) FAIL(PETSC_ERR_FILE_OPEN, "%s: a name with a quote in it is not handed to gzip", name);
    PetscCall(PetscSNPrintf(command, sizeof(command), "gzip -dc 2>/dev/null <'%s'", name)); /* not as an argument: a name can begin with a dash */
    r.fp = popen(command, "r");
  } else r.fp = fopen(name, "r");
  if (!r.fp) FAIL(PETSC_ERR_FILE_OPEN, "%s cannot be opened", name);
  c      = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); /* numbers have a point, also where the program's locale has a comma */
  before = uselocale(c);
  PetscCall(ReadEntries(&r, h, e));
  (void)uselocale(before);
  if (c) freelocale(c);
  if (gz) PetscCall(CloseGzip(&r, h));
  else (void)fclose(r.fp);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A global size that is not set, -1, is that of the local ones where these are; else they are -1 too, which is PETSC_DECIDE */
static PetscErrorCode AddLocalSizes(MPI_Comm comm, PetscInt local, PetscInt *global)
{
  PetscInt64 sums[2] = {local < 0, local};

  PetscFunctionBegin;
  if (*global >= 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, sums, 2, MPIU_INT64, MPI_SUM, comm));
  if (!sums[0]) *global = (PetscInt)sums[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGallopLoadMatrixMarket - Loads a matrix from a Matrix Market file

  Collective

  Input Parameters:
+ A    - the matrix; it gets type `MATAIJ` if none is set, and the sizes of the file where none are set: local ones of the program's stay
- name - the file, `.mtx`, or `.mtx.gz` where the program gzip is found

  Level: intermediate

  Notes:
  The file is in coordinate format; its field is real, integer, complex or pattern (every value 1), its symmetry general, symmetric, skew-symmetric or Hermitian,
  of which the half that the file leaves out is added. Entries that are given several times are summed. Numbers are in decimal notation, with an exponent after `e`, `E` or, as
  Fortran writes it, `d` or `D`.

  The first MPI process reads the file. An error in it, a missing, truncated, damaged or foreign file, a line with anything else than its numbers, an index out of range or more lines than it announces, is raised on every
  process with the same message: `PETSC_ERR_FILE_OPEN`, `PETSC_ERR_FILE_READ`, `PETSC_ERR_FILE_UNEXPECTED`, `PETSC_ERR_MEM` or `PETSC_ERR_SUP`; `A` is then as it was.

.seealso: `MatLoad()`, `MATEVCHYB`, `MatSetPreallocationCOO()`
@*/
PetscErrorCode MatGallopLoadMatrixMarket(Mat A, const char name[])
{
  MPI_Comm    comm;
  PetscMPIInt rank;
  Header      h = {0, 0, 0, PETSC_SUCCESS, ""};
  Entries     e = {NULL, NULL, NULL, 0, 0};
  PetscInt    m, n, M, N;
  PetscBool   sets, fits;
  MatType     type;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(name, 2);
  PetscCall(PetscObjectGetComm((PetscObject)A, &comm));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) PetscCall(ReadFile(name, &h, &e));
  PetscCallMPI(MPI_Bcast(&h, (PetscMPIInt)sizeof(h), MPI_BYTE, 0, comm));
  if (h.error) FreeEntries(&e);
  PetscCheck(!h.error, comm, h.error, "%s", h.message);
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  sets = (PetscBool)(M < 0 || N < 0);
  PetscCall(AddLocalSizes(comm, m, &M));
  PetscCall(AddLocalSizes(comm, n, &N));
  fits = (PetscBool)((M < 0 || M == h.m) && (N < 0 || N == h.n));
  if (!fits) FreeEntries(&e);
  PetscCheck(fits, comm, PETSC_ERR_ARG_SIZ, "%s holds a %" PetscInt64_FMT " by %" PetscInt64_FMT " matrix, the matrix to load it into is %" PetscInt_FMT " by %" PetscInt_FMT, name, h.m, h.n, M, N);
  if (sets) PetscCall(MatSetSizes(A, m, n, (PetscInt)h.m, (PetscInt)h.n));
  PetscCall(MatGetType(A, &type));
  if (!type) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatSetPreallocationCOO(A, rank ? 0 : (PetscCount)h.nz, e.i, e.j));
  PetscCall(MatSetValuesCOO(A, e.v, ADD_VALUES));
  FreeEntries(&e);
  PetscFunctionReturn(PETSC_SUCCESS);
}
