static char help[] = "Bad input to the Gallop types: PETSc's error code, or the right answer and one message.\n\n";

#include "../galloptest.h"
#include <petsc/private/matimpl.h>

/* What one call gives while errors are returned rather than printed */
#define ErrorOf(call, ierr) \
  do { \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    ierr = call; \
    PetscCall(PetscPopErrorHandler()); \
  } while (0)

static PetscErrorCode OptionsOutOfRange(void)
{
  static const struct {
    const char *option, *value;
  } bad[] = {
    {"window",           "-1"    },
    {"max_ell",          "-1"    },
    {"max_ell",          "100000"},
    {"split",            "0"     },
    {"split",            "31"    },
    {"rows_per_thread",  "0"     },
    {"rows_per_thread",  "1000"  },
    {"columns_per_warp", "0"     },
    {"by_row",           "-1"    },
    {"memory",           "-1"    },
  };
  static const struct {
    const char *option, *value;
  } edge[] = {
    {"window",           "0"        },
    {"window",           "1"        },
    {"window",           "100000000"},
    {"max_ell",          "0"        },
    {"max_ell",          "65535"    },
    {"split",            "32"       },
    {"split",            "33"       },
    {"rows_per_thread",  "128"      },
    {"columns_per_warp", "1"        },
    {"by_row",           "0"        },
    {"by_row",           "1"        },
    {"memory",           "0"        },
  };
  Mat                 A, R;
  PetscErrorCode      ierr;
  char                name[64];
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "-bad_mat_evchyb_%s", bad[k].option));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 10, 10));
    PetscCall(MatSetType(A, MATEVCHYB));
    PetscCall(MatSetOptionsPrefix(A, "bad_"));
    PetscCall(PetscOptionsSetValue(NULL, name, bad[k].value));
    ErrorOf(MatSetFromOptions(A), ierr);
    PetscCheck(ierr == PETSC_ERR_ARG_OUTOFRANGE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s %s gave error %d", name, bad[k].value, (int)ierr);
    PetscCall(PetscOptionsClearValue(NULL, name));
    PetscCall(MatDestroy(&A));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(edge); k++) { /* the last values that are allowed */
    PetscCall(PetscMemzero(&last, sizeof(last)));
    PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, 0, &A, &R));
    PetscCall(PetscSNPrintf(name, sizeof(name), "-edge_mat_evchyb_%s", edge[k].option));
    PetscCall(MatSetOptionsPrefix(A, "edge_"));
    PetscCall(PetscOptionsSetValue(NULL, name, edge[k].value));
    PetscCall(MatSetFromOptions(A));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, name));
    PetscCall(PetscOptionsClearValue(NULL, name));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode WrongCalls(void)
{
  const TestShape     shape = {20, 30, PETSC_TRUE};
  Mat                 A, R, B;
  Vec                 x, y;
  PetscErrorCode      ierr;
  PetscMPIInt         size;
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, shape, 0, &A, &R));
  ErrorOf(MatGallopGetStatistics(R, &now), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_WRONG, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "statistics of a plain matrix: error %d", (int)ierr);
  PetscCall(MatCreateVecs(A, &x, &y));
  ErrorOf(MatMult(A, y, x), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_SIZ, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "vectors of the wrong size: error %d", (int)ierr);
  ErrorOf(MatMultAdd(A, x, x, y), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_SIZ, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "vectors of the wrong size: error %d", (int)ierr);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));

  PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
  PetscCall(MatSetSizes(B, PETSC_DECIDE, PETSC_DECIDE, 20, 20));
  ErrorOf(MatSetType(B, "evchbb"), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_UNKNOWN_TYPE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "unknown type: error %d", (int)ierr);
  PetscCall(MatSetType(B, MATAIJ));
  PetscCall(MatSetUp(B));
  ErrorOf(MatConvert(B, MATEVCHYB, MAT_INITIAL_MATRIX, &R), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "conversion of an unassembled matrix: error %d", (int)ierr);
  PetscCall(MatDestroy(&B));
  if (size > 1) { /* a sequential type on several processes */
    PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
    PetscCall(MatSetSizes(B, PETSC_DECIDE, PETSC_DECIDE, 20, 20));
    ErrorOf(MatSetType(B, MATSEQAIJEVCHYB), ierr);
    PetscCheck(ierr, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "a sequential type on several processes is no error");
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Types that PETSc has no way from, other than rows or columns one by one */
static PetscErrorCode ConvertOthers(void)
{
  static const char *const types[] = {MATSEQAIJPERM, MATSEQAIJCRL, MATSEQBAIJ, MATSEQDENSE};
  Mat                      A, R;
  MatGallopStatistics      last;
  PetscMPIInt              size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(PetscMemzero(&last, sizeof(last)));
    PetscCall(TestCreate(PETSC_COMM_WORLD, MATAIJ, TestSquare, 0, &A, &R));
    PetscCall(MatConvert(A, types[k], MAT_INPLACE_MATRIX, &A));
    PetscCall(MatConvert(A, MATSEQAIJEVCHYB, MAT_INPLACE_MATRIX, &A));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, types[k]));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's stream for errors goes to a file while the tests run that should write there */
static FILE *stderr_saved, *stderr_file;

static PetscErrorCode CaptureBegin(void)
{
  PetscFunctionBegin;
  stderr_saved = PETSC_STDERR;
  stderr_file  = tmpfile();
  PetscCheck(stderr_file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PETSC_STDERR = stderr_file;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaptureEnd(const char text[], PetscInt *lines, PetscInt *matches)
{
  char line[512], *found;

  PetscFunctionBegin;
  PETSC_STDERR = stderr_saved;
  rewind(stderr_file);
  *lines = *matches = 0;
  while (fgets(line, sizeof(line), stderr_file)) {
    (*lines)++;
    PetscCall(PetscStrstr(line, text, &found));
    if (found) (*matches)++;
  }
  (void)fclose(stderr_file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A format that may take no more memory than it needs: the parent computes, and that is said once */
static PetscErrorCode NoRoom(void)
{
  Mat                 A[2], R[2];
  MatGallopStatistics last[2] = {{0}, {0}};
  PetscInt            lines, matches;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_memory", "500"));
  PetscCall(CaptureBegin());
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, k ? TestSquare : TestTall, k, &A[k], &R[k]));
    PetscCall(TestProducts(A[k], R[k], TEST_FALLBACK, &last[k], "no room"));
    PetscCall(MatScale(A[k], 2.0));
    PetscCall(MatScale(R[k], 2.0));
    PetscCall(TestProducts(A[k], R[k], TEST_FALLBACK, &last[k], "no room, new values"));
    PetscCall(MatSetOption(A[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(R[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(TestFill(A[k], k + 5, k));
    PetscCall(TestFill(R[k], k + 5, k));
    PetscCall(TestProducts(A[k], R[k], TEST_FALLBACK, &last[k], "no room, new pattern"));
  }
  PetscCall(CaptureEnd("Gallop: no room for the EVCHYB format", &lines, &matches));
  PetscCheck(lines == 1 && matches == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines and %" PetscInt_FMT " messages", lines, matches);

  /* more room: the format is built after all */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_memory", "1e8"));
  PetscCall(MatSetFromOptions(A[1]));
  PetscCall(TestProducts(A[1], R[1], TEST_BUILD, &last[1], "room"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_memory"));
  for (PetscInt k = 0; k < 2; k++) PetscCall(TestDestroy(&A[k], &R[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inf and NaN in x touch the rows that have an entry there, and no other by way of padding */
static PetscErrorCode InfAndNan(void)
{
  Mat                 A, R;
  Vec                 x, y;
  PetscScalar        *a;
  const PetscScalar  *z;
  PetscInt            m, n, rstart, rend, cstart, cend;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (PetscInt c = 0; c < n; c += 10) {
    for (int kind = 0; kind < 2; kind++) {
      PetscCall(TestSetVec(x, 97));
      PetscCall(VecGetArrayWrite(x, &a));
      for (PetscInt i = cstart; i < cend; i++) a[i - cstart] = i == c ? (PetscScalar)(kind ? (PetscReal)NAN : (PetscReal)INFINITY) : TestValue(97, i, 0);
      PetscCall(VecRestoreArrayWrite(x, &a));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      PetscUseTypeMethod(A, mult, x, y); /* MatMult() of a debugging PETSc wants numbers */
      PetscCall(PetscPopErrorHandler());
      PetscCall(VecGetArrayRead(y, &z));
      for (PetscInt i = rstart; i < rend; i++) {
        const PetscBool touched = TestHasEntry(0, m, n, i, c), finite = PetscNot(PetscIsInfOrNanScalar(z[i - rstart]));

        PetscCheck(touched != finite, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s at %" PetscInt_FMT ": row %" PetscInt_FMT " is %s", kind ? "NaN" : "Inf", c, i, finite ? "finite" : "not finite");
      }
      PetscCall(VecRestoreArrayRead(y, &z));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCheck(!last.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "products by the parent");
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(NoRoom());
  PetscCall(OptionsOutOfRange());
  PetscCall(WrongCalls());
  PetscCall(ConvertOthers());
  PetscCall(InfAndNan());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out
    nsize: {{1 2 4}}
    args: -malloc_dump 0 -checkfunctionlist 0 # what an error interrupts is not freed

TEST*/
