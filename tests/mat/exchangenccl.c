/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Whether ghost values come by NCCL, why not, and what becomes of its errors and communicators: with a library that has NCCL's functions and takes memory of the host.\n\
  -case <name>    one of those in the code\n\n";

#include "../galloptest.h"
#include <dlfcn.h>

static PetscMPIInt rank, size;
static char        library[PETSC_MAX_PATH_LEN]; /* of the tests */

/* Rows of a process have an entry in the columns of the next one */
static PetscErrorCode Create(MPI_Comm comm, const char way[], Mat *A)
{
  PetscInt rstart, rend, N;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_exchange", way));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_least", "1"));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, 5, 5, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, MATMPIAIJEVCHYB));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetSize(*A, &N, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscCall(MatSetValue(*A, i, i, 2.0, ADD_VALUES));
    PetscCall(MatSetValue(*A, i, (i + 5) % N, 1.0, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether entries of this process are 2 v_i + v_k, where k is some rows on, of a column of values */
static PetscErrorCode CheckValues(const PetscScalar *a, PetscInt rstart, PetscInt N, PetscInt on, PetscInt column, const char what[])
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < 5; i++) {
    const PetscInt    row    = rstart + i;
    const PetscScalar wanted = 2.0 * TestValue(3, row, column) + TestValue(3, (row + on) % N, column);

    PetscCheck(PetscAbsScalar(a[i] - wanted) <= 4 * PETSC_MACHINE_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " is %g, not %g", what, row, (double)PetscRealPart(a[i]), (double)PetscRealPart(wanted));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define COLUMNS 3

static PetscErrorCode MultiplyDense(Mat A, PetscInt rstart, PetscInt N)
{
  Mat          B, C;
  PetscScalar *b;
  PetscInt     ld;

  PetscFunctionBegin;
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), 5, PETSC_DECIDE, PETSC_DETERMINE, COLUMNS, NULL, &B));
  PetscCall(MatDenseGetLDA(B, &ld));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  for (PetscInt c = 0; c < COLUMNS; c++)
    for (PetscInt i = 0; i < 5; i++) b[c * ld + i] = TestValue(3, rstart + i, c);
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatDenseGetLDA(C, &ld));
  PetscCall(MatDenseGetArray(C, &b));
  for (PetscInt c = 0; c < COLUMNS; c++) PetscCall(CheckValues(b + c * ld, rstart, N, 5, c, "MatMatMult()"));
  PetscCall(MatDenseRestoreArray(C, &b));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of each kind, whose result is known */
static PetscErrorCode Multiply(Mat A)
{
  Vec                x, z;
  const PetscScalar *a;
  PetscInt           rstart, N;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecGetOwnershipRange(z, &rstart, NULL));
  PetscCall(VecGetSize(z, &N));
  PetscCall(TestSetVec(x, 3));
  PetscCall(MatMult(A, x, z));
  PetscCall(VecGetArrayRead(z, &a));
  PetscCall(CheckValues(a, rstart, N, 5, 0, "MatMult()"));
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(MatMultTranspose(A, x, z));
  PetscCall(VecGetArrayRead(z, &a));
  PetscCall(CheckValues(a, rstart, N, N - 5, 0, "MatMultTranspose()"));
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(MultiplyDense(A, rstart, N));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of a new matrix, whose values go by NCCL, or else by PetscSF for that reason, which -info tells once for each kind of product */
static PetscErrorCode Check(const char way[], PetscBool nccl, const char why[])
{
  static const char *const kinds[] = {"Ghost values: by", "Transposed products: by", "Ghost rows: by"};
  char                     line[512], *found;
  int                      lines[3] = {0};
  MPI_Comm                 comm;
  Mat                      A;
  MatGallopStatistics      s;
  FILE                    *info = NULL;

  PetscFunctionBegin;
  PetscCall(TestInfoBegin());
  PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &comm)); /* NCCL is tried once per communicator */
  PetscCall(Create(comm, way, &A));
  for (int k = 0; k < 3; k++) PetscCall(Multiply(A));
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCheck(s.exchanges_nccl == (nccl ? 9 : 0) && s.exchanges_sf == (nccl ? 0 : 9) && !s.exchanges_ipc, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " exchanges by NCCL and %" PetscInt64_FMT " by PetscSF", s.exchanges_nccl, s.exchanges_sf);
  PetscCall(MatDestroy(&A));
  PetscCallMPI(MPI_Comm_free(&comm));
  PetscCall(TestInfoEnd(&info));
  while (fgets(line, sizeof(line), info)) {
    for (int k = 0; k < 3; k++) {
      PetscCall(PetscStrstr(line, kinds[k], &found));
      if (!found) continue;
      lines[k]++;
      PetscCall(PetscStrstr(line, why, &found));
      PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "\"%s\" is not in %s", why, line);
    }
  }
  for (int k = 0; k < 3; k++) PetscCheck(lines[k] == 1 || (rank && !lines[k]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d lines with \"%s\"", lines[k], kinds[k]);
  (void)fclose(info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the text of the error that comes first */
static PetscErrorCode KeepText(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode ierr, PetscErrorType type, const char *text, PetscCtx ctx)
{
  (void)comm, (void)line, (void)function, (void)file;
  if (type == PETSC_ERROR_INITIAL && text) (void)PetscStrncpy((char *)ctx, text, 256);
  return ierr;
}

/* A call of NCCL's that fails is an error of the product, on all processes here, with NCCL's words */
static PetscErrorCode Errors(void)
{
  static const char *const calls[] = {"network", "ncclSend", "ncclRecv", "ncclGroupEnd"};
  Mat                      A;

  PetscFunctionBegin;
  PetscCall(Create(PETSC_COMM_WORLD, "nccl", &A));
  PetscCall(Multiply(A));
  for (int k = 0; k < 4; k++) {
    PetscErrorCode ierr;
    Vec            x, z;
    char           text[256] = "", wanted[256];
    PetscBool      same;

    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(PetscSNPrintf(wanted, sizeof(wanted), "%s%s of NCCL failed: %s. Its last error: as the test wants it", k ? calls[k] : "An earlier operation", k ? "()" : "", k ? "invalid argument (4)" : "unhandled system error (2)"));
    PetscCheck(!setenv("GALLOP_TEST_NCCL_FAIL", calls[k], 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "setenv() failed");
    PetscCall(PetscPushErrorHandler(KeepText, text));
    ierr = MatMult(A, x, z);
    PetscCall(PetscPopErrorHandler());
    (void)unsetenv("GALLOP_TEST_NCCL_FAIL");
    PetscCall(PetscStrcmp(text, wanted, &same));
    PetscCheck(ierr == PETSC_ERR_LIB && same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, \"%s\", not \"%s\"", calls[k], (int)ierr, text, wanted);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void (*counts)(int *, int *, int *);

static PetscErrorCode CheckCounts(int made, int left, const char what[])
{
  int m, l, groups;

  PetscFunctionBegin;
  (*counts)(&m, &l, &groups);
  PetscCheck(m == made && l == left, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d communicators of NCCL were made and %d are left, not %d and %d", what, m, l, made, left);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A communicator of NCCL's belongs to a communicator, whatever matrices come and go there */
static PetscErrorCode Communicators(void)
{
  MPI_Comm    dup, turned, alone;
  Mat         A, B, C, D;
  int         made, left, before, after;
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIGetStdout(PETSC_COMM_WORLD, &viewer)); /* keeps PETSc's communicator */
  PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &dup));
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, 0, -rank, &turned));
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, rank, 0, &alone));
  PetscCall(Create(alone, "nccl", &A));
  PetscCall(Multiply(A));
  PetscCall(MatDestroy(&A));
  PetscCallMPI(MPI_Comm_free(&alone));
  PetscCall(CheckCounts(0, 0, "one process"));
  PetscCall(Create(PETSC_COMM_WORLD, "nccl", &A));
  PetscCall(Multiply(A));
  PetscCall(CheckCounts(1, 1, "the first product"));
  PetscCall(Create(PETSC_COMM_WORLD, "nccl", &B));
  PetscCall(Multiply(B));
  PetscCall(Multiply(A));
  PetscCall(CheckCounts(1, 1, "another matrix"));
  PetscCall(MatDestroy(&A));
  PetscCall(Create(dup, "nccl", &C));
  PetscCall(Create(turned, "nccl", &D));
  for (int k = 0; k < 2; k++) {
    PetscCall(Multiply(C));
    PetscCall(Multiply(D));
    PetscCall(Multiply(B));
  }
  PetscCall(CheckCounts(3, 3, "three communicators"));
  PetscCall(MatDestroy(&C));
  PetscCall(CheckCounts(3, 2, "one that no object is on"));
  PetscCallMPI(MPI_Comm_free(&dup));
  PetscCall(Multiply(D));
  PetscCall(Multiply(B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&D));
  PetscCallMPI(MPI_Comm_free(&turned));
  PetscCall(CheckCounts(3, 1, "that of PETSC_COMM_WORLD"));
  PetscCall(Create(PETSC_COMM_WORLD, "nccl", &A));
  (*counts)(&made, &left, &before);
  PetscCall(Multiply(A));
  (*counts)(&made, &left, &after);
  PetscCheck(made == 3 && after == before + 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d communicators, and %d groups of operations for three products", made, after - before);
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a case sets, on all processes or one: a variable of the library, or its name; and what comes of it */
static const struct {
  const char *name, *way, *variable, *value;
  int         process; /* -1 for all */
  PetscBool   nccl;
  const char *why;
} cases[] = {
  {"there",      "nccl", NULL,                       NULL,               -1, PETSC_TRUE,  "by NCCL 2.28.9, with 2 neighbors of which 1 give values"              },
  {"oldest",     "nccl", "GALLOP_TEST_NCCL_VERSION", "2708",             -1, PETSC_TRUE,  "by NCCL 2.7.8"                                                        },
  {"gpus",       "nccl", "GALLOP_TEST_NCCL_DEVICES", "3",                -1, PETSC_TRUE,  "by NCCL"                                                              },
  {"auto",       "auto", NULL,                       NULL,               -1, PETSC_TRUE,  "by NCCL"                                                              },
  {"aware",      "auto", NULL,                       NULL,               -1, PETSC_FALSE, "by PetscSF and not by NCCL, since MPI takes GPU pointers"             },
  {"unnamed",    "nccl", "library",                  NULL,               -1, PETSC_FALSE, "by PetscSF and not by NCCL, since vectors are on the host"            },
  {"missing",    "nccl", "library",                  "/nowhere/nccl.so", -1, PETSC_FALSE, "by PetscSF and not by NCCL, since a process does not find the library"},
  {"onemissing", "nccl", "library",                  "/nowhere/nccl.so", 1,  PETSC_FALSE, "a process does not find the library"                                  },
  {"other",      "nccl", "library",                  "libm.so.6",        -1, PETSC_FALSE, "the library of a process is not of a version from 2.7 to 2.x"         },
  {"old",        "nccl", "GALLOP_TEST_NCCL_VERSION", "2604",             -1, PETSC_FALSE, "the library of a process is not of a version from 2.7 to 2.x"         },
  {"new",        "nccl", "GALLOP_TEST_NCCL_VERSION", "30001",            2,  PETSC_FALSE, "the library of a process is not of a version from 2.7 to 2.x"         },
  {"versions",   "nccl", "GALLOP_TEST_NCCL_VERSION", "22807",            0,  PETSC_FALSE, "processes have different versions of it"                              },
  {"share",      "nccl", "GALLOP_TEST_NCCL_DEVICES", "2",                -1, PETSC_FALSE, "processes share a GPU"                                                },
  {"part",       "nccl", "GALLOP_TEST_NCCL_DEVICES", "-1",               1,  PETSC_FALSE, "a process has a part of a GPU"                                        },
  {"id",         "nccl", "GALLOP_TEST_NCCL_FAIL",    "ncclGetUniqueId",  0,  PETSC_FALSE, "it cannot be set up"                                                  },
  {"init",       "nccl", "GALLOP_TEST_NCCL_FAIL",    "ncclCommInitRank", 1,  PETSC_FALSE, "it cannot be set up"                                                  },
  {"room",       "nccl", "room",                     "1",                1,  PETSC_FALSE, "a process has no memory for it"                                       },
};

static PetscErrorCode Run(const char name[])
{
  PetscBool same = PETSC_FALSE;
  size_t    k    = 0;

  PetscFunctionBegin;
  while (k < PETSC_STATIC_ARRAY_LENGTH(cases)) {
    PetscCall(PetscStrcmp(name, cases[k].name, &same));
    if (same) break;
    k++;
  }
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "no case %s", name);
  if (cases[k].variable && (cases[k].process < 0 || cases[k].process == rank)) {
    PetscCall(PetscStrcmp(cases[k].variable, "library", &same));
    if (same && cases[k].value) PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_nccl", cases[k].value));
    else if (same) PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_nccl"));
    else PetscCheck(!setenv(cases[k].variable, cases[k].value, 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "setenv() failed");
    PetscCall(PetscStrcmp(cases[k].variable, "room", &same));
    if (same) PetscCall(PetscOptionsSetValue(NULL, "-gallop_device_malloc_fail", cases[k].value));
  }
  for (int again = 0; again < 2; again++) PetscCall(Check(cases[k].way, cases[k].nccl, cases[k].why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      name[32] = "";
  PetscBool errors, communicators;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_nccl", library, sizeof(library), NULL));
  PetscCall(PetscStrcmp(name, "errors", &errors));
  PetscCall(PetscStrcmp(name, "communicators", &communicators));
  if (communicators) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    PetscCheck(handle, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
    *(void **)&counts = dlsym(handle, "gallopTestCounts");
    PetscCall(Communicators());
  } else if (errors) PetscCall(Errors());
  else PetscCall(Run(name));
  PetscCall(PetscFinalize());
  if (communicators) {
    int made, left, groups;

    (*counts)(&made, &left, &groups);
    if (made != 3 || left) {
      (void)fprintf(stderr, "after PetscFinalize() %d of %d communicators are left\n", left, made);
      return 1;
    }
  }
  return 0;
}

/*TEST

  testset:
    nsize: 3
    args: -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL}
    output_file: output/empty.out
    test:
      args: -case {{there oldest gpus auto unnamed missing onemissing other old new versions share part id init room errors communicators}} -use_gpu_aware_mpi 0
    test:
      suffix: aware
      args: -case aware -use_gpu_aware_mpi 1

TEST*/
