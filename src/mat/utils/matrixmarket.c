/* Matrix Market files, plain or compressed with gzip, into any matrix type that takes coordinate input */

#include <petscgallop.h>
#include <petsc/private/petscimpl.h>

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

static PetscErrorCode ReadBanner(FILE *fp, const char name[], Header *h, PetscBool *pattern, PetscBool *complexfield, Mirror *mirror)
{
  char line[1024], object[64], format[64], field[64], symmetry[64];

  PetscFunctionBegin;
  if (!fgets(line, sizeof(line), fp)) line[0] = 0;
  PetscCall(PetscStrtolower(line));
  if (sscanf(line, "%%%%matrixmarket %63s %63s %63s %63s", object, format, field, symmetry) != 4)
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

static PetscErrorCode ReadEntries(FILE *fp, const char name[], Header *h, PetscInt **i, PetscInt **j, PetscScalar **v)
{
  char      line[1024];
  PetscBool pattern = PETSC_FALSE, complexfield = PETSC_FALSE;
  Mirror    mirror = MIRROR_NONE;
  long long m, n, stored;
  PetscInt64 k, to = 0;

  PetscFunctionBegin;
  PetscCall(ReadBanner(fp, name, h, &pattern, &complexfield, &mirror));
  if (h->error) PetscFunctionReturn(PETSC_SUCCESS);
  do {
    if (!fgets(line, sizeof(line), fp)) FAIL(PETSC_ERR_FILE_READ, "%s ends before the line with its sizes", name);
  } while (line[0] == '%' || line[strspn(line, " \t\r\n")] == '\0');
  if (sscanf(line, "%lld %lld %lld", &m, &n, &stored) != 3 || m < 0 || n < 0 || stored < 0) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s: rows, columns and entries are expected where it says: %.80s", name, line);
  if (m > PETSC_INT_MAX || n > PETSC_INT_MAX) FAIL(PETSC_ERR_ARG_OUTOFRANGE, "%s has %lld rows and %lld columns, more than PetscInt can count: configure PETSc --with-64-bit-indices", name, m, n);
  if (mirror != MIRROR_NONE && m != n) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s says that it is symmetric, but has %lld rows and %lld columns", name, m, n);
  h->m = m;
  h->n = n;
  PetscCall(PetscMalloc3((size_t)(mirror ? 2 : 1) * stored, i, (size_t)(mirror ? 2 : 1) * stored, j, (size_t)(mirror ? 2 : 1) * stored, v));
  for (k = 0; k < stored; k++) {
    long long row, col;
    double    re = 1.0, im = 0.0;
    int       fields;

    do {
      if (!fgets(line, sizeof(line), fp)) FAIL(PETSC_ERR_FILE_READ, "%s is truncated: it has %lld of the %lld entries that it announces", name, (long long)k, stored);
    } while (line[strspn(line, " \t\r\n")] == '\0');
    fields = sscanf(line, "%lld %lld %lf %lf", &row, &col, &re, &im);
    if (fields < (pattern ? 2 : complexfield ? 4 : 3)) FAIL(PETSC_ERR_FILE_READ, "%s: entry %lld is cut short or is no entry: %.80s", name, (long long)k + 1, line);
    if (row < 1 || row > m || col < 1 || col > n) FAIL(PETSC_ERR_FILE_UNEXPECTED, "%s: entry %lld is in row %lld, column %lld of a matrix of %lld rows and %lld columns; they count from 1", name, (long long)k + 1, row, col, m, n);
    (*i)[to] = (PetscInt)row - 1;
    (*j)[to] = (PetscInt)col - 1;
#if defined(PETSC_USE_COMPLEX)
    (*v)[to] = re + (complexfield ? im : 0.0) * PETSC_i;
#else
    (*v)[to] = re;
#endif
    to++;
    if (mirror != MIRROR_NONE && row != col) {
      const PetscScalar value = (*v)[to - 1];

      (*i)[to] = (PetscInt)col - 1;
      (*j)[to] = (PetscInt)row - 1;
      (*v)[to] = mirror == MIRROR_SKEW ? -value : mirror == MIRROR_HERMITIAN ? PetscConj(value) : value;
      to++;
    }
  }
  h->nz = to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadFile(const char name[], Header *h, PetscInt **i, PetscInt **j, PetscScalar **v)
{
  FILE     *fp;
  char      command[PETSC_MAX_PATH_LEN + 32];
  PetscBool exists, gz;

  PetscFunctionBegin;
  PetscCall(PetscTestFile(name, 'r', &exists));
  if (!exists) FAIL(PETSC_ERR_FILE_OPEN, "%s is no file that can be read", name);
  PetscCall(PetscStrendswith(name, ".gz", &gz));
  if (gz) {
    if (strchr(name, '\'')) FAIL(PETSC_ERR_FILE_OPEN, "%s: a name with a quote in it is not handed to gzip", name);
    PetscCall(PetscSNPrintf(command, sizeof(command), "gzip -dc '%s' 2>/dev/null", name));
    fp = popen(command, "r");
  } else fp = fopen(name, "r");
  if (!fp) FAIL(PETSC_ERR_FILE_OPEN, "%s cannot be opened", name);
  PetscCall(ReadEntries(fp, name, h, i, j, v));
  if (gz) (void)pclose(fp); /* what gzip could not read shows as a file that ends early */
  else (void)fclose(fp);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGallopLoadMatrixMarket - Loads a matrix from a Matrix Market file

  Collective

  Input Parameters:
+ A    - the matrix; it gets type `MATAIJ` if none is set, and the sizes of the file if none are set
- name - the file, `.mtx`, or `.mtx.gz` where the program gzip is found

  Level: intermediate

  Notes:
  The file is in coordinate format; its field is real, integer, complex or pattern (every value 1), its symmetry general, symmetric, skew-symmetric or Hermitian,
  of which the half that the file leaves out is added. Entries that are given several times are summed.

  The first MPI process reads the file. An error in it, a missing, truncated or foreign file or an index out of range, is raised on every process with the
  same message: `PETSC_ERR_FILE_OPEN`, `PETSC_ERR_FILE_READ`, `PETSC_ERR_FILE_UNEXPECTED` or `PETSC_ERR_SUP`; `A` is then as it was.

.seealso: `MatLoad()`, `MATEVCHYB`, `MatSetPreallocationCOO()`
@*/
PetscErrorCode MatGallopLoadMatrixMarket(Mat A, const char name[])
{
  MPI_Comm     comm;
  PetscMPIInt  rank;
  Header       h = {0, 0, 0, PETSC_SUCCESS, ""};
  PetscInt    *i = NULL, *j = NULL, M, N;
  PetscScalar *v = NULL;
  MatType      type;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(name, 2);
  PetscCall(PetscObjectGetComm((PetscObject)A, &comm));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) PetscCall(ReadFile(name, &h, &i, &j, &v));
  PetscCallMPI(MPI_Bcast(&h, (PetscMPIInt)sizeof(h), MPI_BYTE, 0, comm));
  if (h.error) PetscCall(PetscFree3(i, j, v));
  PetscCheck(!h.error, comm, h.error, "%s", h.message);
  PetscCall(MatGetSize(A, &M, &N));
  if (M < 0 || N < 0) PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, (PetscInt)h.m, (PetscInt)h.n));
  else {
    if (M != h.m || N != h.n) PetscCall(PetscFree3(i, j, v));
    PetscCheck(M == h.m && N == h.n, comm, PETSC_ERR_ARG_SIZ, "%s holds a %" PetscInt64_FMT " by %" PetscInt64_FMT " matrix, the matrix to load it into is %" PetscInt_FMT " by %" PetscInt_FMT, name, h.m, h.n, M, N);
  }
  PetscCall(MatGetType(A, &type));
  if (!type) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatSetPreallocationCOO(A, rank ? 0 : (PetscCount)h.nz, i, j));
  PetscCall(MatSetValuesCOO(A, v, ADD_VALUES));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
