/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Loads Matrix Market files, good ones and bad ones.\n\n";

#include <petscgallop.h>
#include <sys/resource.h>
#if defined(__GLIBC__)
  #include <malloc.h>
#endif
#include <unistd.h>

static char lasterror[2048];

/* Keeps the innermost message and goes on returning the code */
static PetscErrorCode KeepMessage(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) (void)snprintf(lasterror, sizeof(lasterror), "%s", mess);
  return n;
}

static PetscErrorCode WriteFile(const char name[], const char text[])
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!rank) {
    FILE *fp = fopen(name, "w");

    PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", name);
    (void)fputs(text, fp);
    (void)fclose(fp);
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs a command on the first process, with the name in place of %s */
static PetscErrorCode RunShell(const char format[], const char name[])
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!rank) {
    char  command[PETSC_MAX_PATH_LEN];
    FILE *fp;

    PetscCall(PetscSNPrintf(command, sizeof(command), format, name));
    PetscCall(PetscPOpen(PETSC_COMM_SELF, NULL, command, "r", &fp));
    PetscCall(PetscPClose(PETSC_COMM_SELF, fp));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The load must fail with this code and a sentence that has this in it, on every process, and leave the matrix usable */
static PetscErrorCode ExpectErrorFor(Mat A, const char name[], PetscErrorCode code, const char part[])
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  lasterror[0] = 0;
  PetscCall(PetscPushErrorHandler(KeepMessage, NULL));
  ierr = MatGallopLoadMatrixMarket(A, name);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == code, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, not %d", name, (int)ierr, (int)code);
  PetscCheck(strstr(lasterror, part), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the message \"%s\" does not say \"%s\"", name, lasterror, part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ExpectError(const char name[], PetscErrorCode code, const char part[])
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, MATEVCHYB));
  PetscCall(ExpectErrorFor(A, name, code, part));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sizes that the program has set stay, local ones too: all of a matrix of 3 by 3 on the first process. Others than the file's are an error. */
static PetscErrorCode ExpectSizes(const char name[])
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (PetscInt size = 3; size < 5; size++) {
    for (int global = 0; global < 2; global++) {
      const PetscInt of = rank ? 0 : size;
      PetscInt       m, n;
      Mat            A;

      PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
      PetscCall(MatSetSizes(A, of, of, global ? size : PETSC_DETERMINE, PETSC_DETERMINE));
      PetscCall(MatSetType(A, MATEVCHYB));
      if (size == 3) {
        PetscCall(MatGallopLoadMatrixMarket(A, name));
        PetscCall(MatGetLocalSize(A, &m, &n));
        PetscCheck(m == of && n == of, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " by %" PetscInt_FMT " on this process, should be %" PetscInt_FMT, name, m, n, of);
      } else PetscCall(ExpectErrorFor(A, name, PETSC_ERR_ARG_SIZ, "holds a 3 by 3 matrix, the matrix to load it into is 4 by 4"));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sum of all entries and of squares tell the matrix apart from its mistakes */
static PetscErrorCode ExpectMatrix(const char name[], MatType type, PetscInt m, PetscInt n, PetscInt nz, const PetscReal rowsums[])
{
  Mat                A;
  Vec                x, y;
  PetscInt           M, N, start, end;
  MatInfo            info;
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, type));
  PetscCall(MatGallopLoadMatrixMarket(A, name));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCheck(M == m && N == n && (PetscInt)info.nz_used == nz, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " by %" PetscInt_FMT " with %g entries", name, M, N, info.nz_used);
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetOwnershipRange(y, &start, &end));
  PetscCall(VecGetArrayRead(y, &a));
  for (PetscInt r = start; r < end; r++) PetscCheck(PetscAbsScalar(a[r - start] - rowsums[r]) < 1e-5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " sums to %g, not %g", name, r, (double)PetscRealPart(a[r - start]), (double)rowsums[r]);
  PetscCall(VecRestoreArrayRead(y, &a));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each field is read whole: a line with anything else is an error that shows it */
static PetscErrorCode ExpectWholeFields(const char name[])
{
  static const char *const sizes[] = {"2 2 1 junk", "2 2 1.5", "2 2 1x", "2 2", "2 2 99999999999999999999", "0x2 2 1"};
  static const struct {
    const char *field, *entry;
  } bad[] = {
    {"real",    "2 2 1,5"                 },
    {"real",    "2 2 3abc"                },
    {"real",    "2 2.5 7"                 },
    {"real",    "2 2.5"                   },
    {"real",    "2 2"                     },
    {"real",    "2 2 1 7"                 },
    {"real",    "2 2 1e400"               },
    {"real",    "2 2 -1D400"              },
    {"real",    "2 2 1d3d"                },
    {"real",    "2 2 1d"                  },
    {"real",    "2 2 1-101"               },
    {"real",    "2 2 0x10"                },
    {"real",    "2 2 inf"                 },
    {"real",    "2 2 nan"                 },
    {"real",    "2 2 ."                   },
    {"real",    "2,2 1"                   },
    {"real",    "2 99999999999999999999 1"},
    {"pattern", "2 2 1"                   },
    {"pattern", "2 2x"                    },
    {"pattern", "2"                       },
  };
  char text[4096], message[256], digits[2001];

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%%%%MatrixMarket matrix coordinate real general\n%% a comment\n%s\n2 2 1\n", sizes[k]));
    PetscCall(PetscSNPrintf(message, sizeof(message), "%s, line 3: rows, columns and entries are expected where it says: %s", name, sizes[k]));
    PetscCall(WriteFile(name, text));
    PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, message));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    const PetscBool pattern = (PetscBool)!strcmp(bad[k].field, "pattern");

    PetscCall(PetscSNPrintf(text, sizeof(text), "%%%%MatrixMarket matrix coordinate %s general\n\n2 2 2\n1 1%s\n%s\n", bad[k].field, pattern ? "" : " 1", bad[k].entry));
    PetscCall(PetscSNPrintf(message, sizeof(message), "%s, line 5: entry 2 is not a row and a column%s: %s", name, pattern ? "" : ", and a number that PetscReal can hold", bad[k].entry));
    PetscCall(WriteFile(name, text));
    PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, message));
  }
  for (size_t k = 0; k < sizeof(digits) - 1; k++) digits[k] = '0'; /* a number longer than the buffer of a line */
  digits[sizeof(digits) - 1] = 0;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%%%%MatrixMarket matrix coordinate real general\n2 2 1\n2 2 1.%s\n", digits));
  PetscCall(WriteFile(name, text));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "line 3: entry 1 is not"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n2 2 1\n"));
  PetscCall(RunShell("printf '2 2 1\\0 7\\n' >>%s", name)); /* a zero byte */
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "line 3: entry 1 is not"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\r\n2\t2  5 \r\n 1 1 +1d3\r\n1 2 -.5D+1\r\n2 1 25.e-1\r\n2 2 1E-400\r\n2 2 7"));
  PetscCall(ExpectMatrix(name, MATAIJ, 2, 2, 4, (PetscReal[]){995, 9.5}));
#if defined(PETSC_USE_COMPLEX)
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1d3 0d0\n"));
  PetscCall(ExpectMatrix(name, MATAIJ, 1, 1, 1, (PetscReal[]){1000}));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1d3\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "two numbers"));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What gzip says of a file counts, and a file may begin with a dash */
static PetscErrorCode ExpectGzipStatus(void)
{
  static const char *const text   = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 5\n2 2 3\n";
  const PetscReal          sums[] = {5, 3};
  char                     path[2 * PETSC_MAX_PATH_LEN];

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(path, getenv("PATH") ? getenv("PATH") : "", sizeof(path)));
  PetscCall(WriteFile("-dash.mtx", text));
  PetscCall(ExpectMatrix("-dash.mtx", MATAIJ, 2, 2, 2, sums));
  PetscCall(RunShell("gzip -c <%s >-dash.mtx.gz", "-dash.mtx"));
  PetscCall(ExpectMatrix("-dash.mtx.gz", MATAIJ, 2, 2, 2, sums));
  PetscCall(RunShell("cat ./-dash.mtx.gz >%s; printf 'behind the end' >>warning.mtx.gz", "warning.mtx.gz"));
  PetscCall(ExpectMatrix("warning.mtx.gz", MATAIJ, 2, 2, 2, sums));
  PetscCall(RunShell("head -c -8 ./-dash.mtx.gz >%s; printf 'checksum' >>damaged.mtx.gz", "damaged.mtx.gz"));
  PetscCall(ExpectError("damaged.mtx.gz", PETSC_ERR_FILE_READ, "damaged.mtx.gz is damaged or not compressed with gzip: gzip ended with status 1"));
  PetscCall(RunShell("head -c -8 ./-dash.mtx.gz >%s", "damaged.mtx.gz"));
  PetscCall(ExpectError("damaged.mtx.gz", PETSC_ERR_FILE_READ, "status 1"));
  PetscCall(WriteFile("damaged.mtx.gz", text));
  PetscCall(ExpectError("damaged.mtx.gz", PETSC_ERR_FILE_READ, "status 1"));
  /* wrong in its second line, and too long for a pipe to hold the rest */
  PetscCall(RunShell("{ echo '%%%%MatrixMarket matrix coordinate real general'; echo junk; yes '1 1 1' | head -n 200000; } | gzip -1 >%s", "wrong.mtx.gz"));
  PetscCall(ExpectError("wrong.mtx.gz", PETSC_ERR_FILE_UNEXPECTED, "wrong.mtx.gz, line 2: rows, columns and entries are expected where it says: junk"));
  PetscCall(RunShell("mkdir -p %s; printf '#!/bin/sh\\n/bin/cat ./-dash.mtx; kill -9 $$\\n' >signal/gzip; chmod 755 signal/gzip", "signal"));
  PetscCheck(!setenv("PATH", "signal", 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "no PATH set");
  PetscCall(ExpectError("-dash.mtx.gz", PETSC_ERR_FILE_READ, "status 137"));
  PetscCheck(!setenv("PATH", "no-such-directory", 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "no PATH set");
  PetscCall(ExpectError("-dash.mtx.gz", PETSC_ERR_FILE_OPEN, "the program gzip is not found"));
  PetscCheck(!setenv("PATH", path, 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "no PATH set");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process alone runs out of memory */
static PetscErrorCode ExpectNoMemory(const char name[])
{
  PetscMPIInt   rank;
  unsigned long pages = 0;
  struct rlimit saved, limit;
  FILE         *fp;

  PetscFunctionBegin;
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n2000 2000 2000000\n1 1 1\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!rank) {
    fp = fopen("/proc/self/statm", "r");
    PetscCheck(fp && fscanf(fp, "%lu", &pages) == 1, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "no /proc/self/statm");
    (void)fclose(fp);
    (void)getrlimit(RLIMIT_AS, &saved);
    limit          = saved;
    limit.rlim_cur = (rlim_t)pages * sysconf(_SC_PAGESIZE) + 3 * 1048576; /* less than the first entries take */
    PetscCheck(!setrlimit(RLIMIT_AS, &limit), PETSC_COMM_SELF, PETSC_ERR_SYS, "no limit set");
  }
  PetscCall(ExpectError(name, PETSC_ERR_MEM, "not enough memory"));
  if (!rank) (void)setrlimit(RLIMIT_AS, &saved);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const banner    = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n";
  const PetscReal   general[] = {3.5, 0, 7}, symmetric[] = {-1, 6, 4}, skew[] = {-4, 4, 0}, pattern[] = {2, 0, 1};
  const char *const huge[] = {"10", "999999999999999", "3074457345618258603", "4611686018427387904", "9223372036854775807"};
  char              name[PETSC_MAX_PATH_LEN], text[2048], longer[4096], gz[2 * PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
#if defined(__GLIBC__)
  (void)mallopt(M_MMAP_THRESHOLD, 65536); /* what is freed goes back: a limit of memory holds for what is asked for then */
#endif
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscSNPrintf(name, sizeof(name), "matrixmarket-test.mtx"));

  PetscCall(PetscSNPrintf(text, sizeof(text), "%s3 4 4\n1 1 1.5\n1 4 2\n3 2 3e0\n3 2 4\n", banner)); /* one entry twice: summed */
  PetscCall(WriteFile(name, text));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 4, 3, general));
  PetscCall(ExpectMatrix(name, MATAIJ, 3, 4, 3, general));
  PetscCall(RunShell("gzip -f -k '%s'", name));
  PetscCall(PetscSNPrintf(gz, sizeof(gz), "%s.gz", name));
  PetscCall(ExpectMatrix(gz, MATEVCHYB, 3, 4, 3, general));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 -1\n2 2 2\n3 2 4\n"));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 3, 4, symmetric));
  PetscCall(WriteFile(name, "%%matrixmarket MATRIX Coordinate Real Skew-Symmetric\n3 3 1\n2 1 4\n"));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 3, 2, skew));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 1\n1 3\n3 3\n"));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 3, 3, pattern));
  PetscCall(ExpectSizes(name));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 5 0\n"));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 5, 0, (PetscReal[]){0, 0, 0}));

  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 1\n1 3\n3 3\n\n% a comment\n  \n"));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 3, 3, pattern));
  (void)memset(text, 'x', 1500); /* a comment longer than any buffer */
  text[1500] = 0;
  PetscCall(PetscSNPrintf(longer, sizeof(longer), "%%%%MatrixMarket matrix coordinate pattern general\n%%%s\n3 3 3\n1 1\n1 3\n3 3\n%%%s\n", text, text));
  PetscCall(WriteFile(name, longer));
  PetscCall(ExpectMatrix(name, MATEVCHYB, 3, 3, 3, pattern));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n1 1 3\n1 1 1\n1 1 2\n1 1 3\n")); /* more entries than places, summed */
  PetscCall(ExpectMatrix(name, MATEVCHYB, 1, 1, 1, (PetscReal[]){6}));

  PetscCall(ExpectError("no-such-file.mtx", PETSC_ERR_FILE_OPEN, "no file that can be read"));
  PetscCall(ExpectError(".", PETSC_ERR_FILE_OPEN, "no file that can be read"));
  PetscCall(WriteFile(name, ""));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "no Matrix Market file"));
  PetscCall(WriteFile(name, "\177ELF and so on\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "no Matrix Market file"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix array real general\n1 1\n1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_SUP, "only a matrix in coordinate format"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate quaternion general\n1 1 1\n1 1 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "quaternion"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real lopsided\n1 1 1\n1 1 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "lopsided"));
  if (!PetscDefined(USE_COMPLEX)) {
    PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n"));
    PetscCall(ExpectError(name, PETSC_ERR_SUP, "complex values"));
  }
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n% nothing more\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "ends before the line with its sizes"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\nthree by three\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "rows, columns and entries"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real symmetric\n3 4 1\n1 1 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "symmetric"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 2\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "truncated: it has 2 of the 3"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n2 2\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "entry 2 is not a row and a column"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n4 2 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "row 4, column 2"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 1\n0 1 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "row 0, column 1"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 -2 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "column -2"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(huge); k++) { /* counts whose arrays no memory holds, or whose size no number holds */
    for (int mirrored = 0; mirrored < 2; mirrored++) {
      PetscCall(PetscSNPrintf(text, sizeof(text), "%%%%MatrixMarket matrix coordinate real %s\n3 3 %s\n1 1 1\n2 2 2\n", mirrored ? "symmetric" : "general", huge[k]));
      PetscCall(WriteFile(name, text));
      PetscCall(PetscSNPrintf(text, sizeof(text), "%s announces %s entries, more than a matrix of 3 rows and 3 columns has, and ends after 2", name, huge[k]));
      PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, text));
    }
  }
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 999999999999999\n1 1 1\n")); /* as many could be there */
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "truncated: it has 1 of the 999999999999999"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n0 3 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_READ, "more than a matrix of 0 rows and 3 columns has"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1\n2 2 2\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "matrixmarket-test.mtx, line 4: the file goes on after the 1 entries that it announces: 2 2 2"));
  PetscCall(WriteFile(name, "%%MatrixMarket matrix coordinate real general\n3 3 0\n1 1 1\n"));
  PetscCall(ExpectError(name, PETSC_ERR_FILE_UNEXPECTED, "goes on after the 0 entries"));
  PetscCall(ExpectWholeFields(name));
  PetscCall(ExpectGzipStatus());
  PetscCall(ExpectNoMemory(name));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "good files load, bad ones say what is wrong\n"));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2 3}}
    output_file: output/matrixmarket_1.out

TEST*/
