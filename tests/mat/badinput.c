/* SPDX-License-Identifier: BSD-2-Clause */
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

/* Keeps the text of the error */
static PetscErrorCode KeepText(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode ierr, PetscErrorType type, const char *text, PetscCtx ctx)
{
  (void)comm, (void)line, (void)function, (void)file;
  if (type == PETSC_ERROR_INITIAL && text) (void)PetscStrncpy((char *)ctx, text, 256);
  return ierr;
}

/* The error of an option names it as the user wrote it, the value and the range */
static PetscErrorCode OptionOutOfRange(const char prefix[], const char name[], const char value[], const char range[])
{
  Mat            A;
  PetscErrorCode ierr;
  PetscBool      same;
  char           text[256] = "", wanted[256];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(wanted, sizeof(wanted), "Option %s is %s, but must be %s", name, value, range));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 10, 10));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetOptionsPrefix(A, prefix));
  PetscCall(PetscOptionsSetValue(NULL, name, value));
  PetscCall(PetscPushErrorHandler(KeepText, text));
  ierr = MatSetFromOptions(A);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_OUTOFRANGE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s %s gave error %d", name, value, (int)ierr);
  PetscCall(PetscStrcmp(text, wanted, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s %s gave the text \"%s\", not \"%s\"", name, value, text, wanted);
  PetscCall(PetscOptionsClearValue(NULL, name));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options of one format, or of all where none is named */
static PetscErrorCode OptionsOutOfRange(void)
{
  static const struct {
    const char *format, *option, *value, *range;
  } bad[] = {
    {NULL,          "memory",           "-1",                    "between 0 and 9223372036854775807"},
    {NULL,          "memory",           "147573952589676412928", "between 0 and 9223372036854775807"}, /* 2^67 */
    {MATEVCHYB,     "window",           "-3",                    "at least 0"                       },
    {MATEVCHYB,     "max_ell",          "-2",                    "between -1 and 65535"             },
    {MATEVCHYB,     "max_ell",          "100000",                "between -1 and 65535"             },
    {MATEVCHYB,     "split",            "0",                     "at least 32"                      },
    {MATEVCHYB,     "split",            "31",                    "at least 32"                      },
    {MATEVCHYB,     "rows_per_thread",  "0",                     "between 1 and 128"                },
    {MATEVCHYB,     "rows_per_thread",  "1000",                  "between 1 and 128"                },
    {MATEVCHYB,     "columns_per_warp", "0",                     "at least 1"                       },
    {MATEVCHYB,     "by_row",           "-1",                    "at least 0"                       },
    {MATCSROVERLAP, "max_batch_size",   "-1",                    "between 32 and 8192, or 0"        },
    {MATCSROVERLAP, "big_batch_size",   "31",                    "at least 32, or 0"                },
    {MATCSROVERLAP, "big_batch_size",   "-5",                    "at least 32, or 0"                },
    {MATCSROVERLAP, "big_batch_num",    "-1",                    "at least 0"                       },
    {MATCSROVERLAP, "device_memory",    "-1",                    "at least 1, or 0"                 },
    {MATCSROVERLAP, "pack_columns",     "-1",                    "at least 1, or 0"                 },
    {MATCSROVERLAP, "max_batch_size",   "31",                    "between 32 and 8192, or 0"        },
    {MATCSROVERLAP, "max_batch_size",   "8193",                  "between 32 and 8192, or 0"        },
    {MATFASTLOAD,   "block_height",     "-2",                    "1, 2, 4, 8, 16 or 32, or 0, or -1"},
    {MATFASTLOAD,   "block_height",     "3",                     "1, 2, 4, 8, 16 or 32, or 0, or -1"},
    {MATFASTLOAD,   "block_height",     "64",                    "1, 2, 4, 8, 16 or 32, or 0, or -1"},
    {MATFASTLOAD,   "window",           "-1",                    "at least 0"                       },
    {MATFASTLOAD,   "long_row",         "-1",                    "at least 0"                       },
    {MATHBP,        "block_rows",       "-1",                    "between 0 and 2048"               },
    {MATHBP,        "block_rows",       "2049",                  "between 0 and 2048"               },
    {MATHBP,        "block_cols",       "-1",                    "between 0 and 65536"              },
    {MATHBP,        "block_cols",       "65537",                 "between 0 and 65536"              },
    {MATHBP,        "shared_x",         "-1",                    "between 0 and 2"                  },
    {MATHBP,        "shared_x",         "3",                     "between 0 and 2"                  },
    {MATHBP,        "map",              "-1",                    "between 0 and 2"                  },
    {MATHBP,        "map",              "3",                     "between 0 and 2"                  },
    {MATHBP,        "fixed",            "-2",                    "between -1 and 100"               },
    {MATHBP,        "fixed",            "101",                   "between -1 and 100"               },
    {MATHBP,        "long_row",         "-1",                    "at least 0"                       },
    {MATHBP,        "lane_entries",     "-1",                    "at least 0"                       },
    {MATHBP,        "lane_entries",     "1",                     "at least 2, or 0"                 },
    {MATGALLOP,     "tune_products",    "-1",                    "at least 0"                       },
    {MATGALLOP,     "tune_share",       "0.",                    "positive"                         },
    {MATGALLOP,     "tune_share",       "-0.5",                  "positive"                         },
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    if (bad[k].format && strcmp(bad[k].format, TestFormat(""))) continue;
    PetscCall(OptionOutOfRange("bad_", TestOption("bad_", bad[k].option), bad[k].value, bad[k].range));
    PetscCall(OptionOutOfRange(NULL, TestOption("", bad[k].option), bad[k].value, bad[k].range));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last values that are allowed */
static PetscErrorCode OptionsAtTheEdge(void)
{
  static const struct {
    const char *format, *option, *value;
  } edge[] = {
    {NULL,          "memory",            "0"        },
    {MATEVCHYB,     "window",            "0"        },
    {MATEVCHYB,     "window",            "1"        },
    {MATEVCHYB,     "window",            "100000000"},
    {MATEVCHYB,     "max_ell",           "0"        },
    {MATEVCHYB,     "max_ell",           "65535"    },
    {MATEVCHYB,     "split",             "32"       },
    {MATEVCHYB,     "split",             "33"       },
    {MATEVCHYB,     "rows_per_thread",   "128"      },
    {MATEVCHYB,     "columns_per_warp",  "1"        },
    {MATEVCHYB,     "by_row",            "0"        },
    {MATEVCHYB,     "by_row",            "1"        },
    {MATCSROVERLAP, "max_batch_size",    "32"       },
    {MATCSROVERLAP, "max_batch_size",    "0"        },
    {MATCSROVERLAP, "max_batch_size",    PetscDefined(USE_COMPLEX) ? "4096" : "8192"}, /* what a thread block has shared memory for */
    {MATCSROVERLAP, "big_batch_size",    "32"       },
    {MATCSROVERLAP, "big_batch_num",     "2"        },
    {MATCSROVERLAP, "device_memory",     "0"        },
    {MATCSROVERLAP, "pack_columns",      "0"        },
    {MATCSROVERLAP, "pinned",            "never"    },
    {MATCSROVERLAP, "rows_in_registers", "0"        },
    {MATCSROVERLAP, "uneven",            "0"        },
    {MATFASTLOAD,   "block_height",      "0"        },
    {MATFASTLOAD,   "block_height",      "1"        },
    {MATFASTLOAD,   "block_height",      "-1"       },
    {MATFASTLOAD,   "window",            "1"        },
    {MATFASTLOAD,   "long_row",          "1"        },
    {MATFASTLOAD,   "block_height",      "32"       },
    {MATHBP,        "block_rows",        "1"        },
    {MATHBP,        "block_rows",        "2048"     },
    {MATHBP,        "block_cols",        "1"        },
    {MATHBP,        "block_cols",        "65536"    },
    {MATHBP,        "shared_x",          "0"        },
    {MATHBP,        "shared_x",          "1"        },
    {MATHBP,        "map",               "0"        },
    {MATHBP,        "map",               "1"        },
    {MATHBP,        "fixed",             "-1"       },
    {MATHBP,        "fixed",             "0"        },
    {MATHBP,        "fixed",             "100"      },
    {MATHBP,        "long_row",          "1"        },
    {MATHBP,        "lane_entries",      "2"        },
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(edge); k++) {
    Mat                 A, R;
    MatGallopStatistics last = {0};

    if (edge[k].format && strcmp(edge[k].format, TestFormat(""))) continue;
    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
    PetscCall(MatSetOptionsPrefix(A, "edge_"));
    PetscCall(PetscOptionsSetValue(NULL, TestOption("edge_", edge[k].option), edge[k].value));
    PetscCall(MatSetFromOptions(A));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, edge[k].option));
    PetscCall(PetscOptionsClearValue(NULL, TestOption("edge_", edge[k].option)));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of products with dense matrices, which all formats have */
static PetscErrorCode DenseOptionsOutOfRange(void)
{
  static const struct {
    const char *option, *value, *range;
  } bad[] = {
    {"panel",       "0",    "between 32 and 512"               },
    {"panel",       "544",  "between 32 and 512"               },
    {"panel",       "33",   "a multiple of 32"                 },
    {"stage",       "0",    "between 1 and 4096"               },
    {"stage",       "4097", "between 1 and 4096"               },
    {"columns",     "-1",   "between 0 and 32"                 },
    {"columns",     "33",   "between 0 and 32"                 },
    {"columns",     "12",   "a power of two"                   },
    {"segment",     "-1",   "at least 0"                       },
    {"utilization", "-0.5", "at least 0"                       },
    {"imbalance",   "-0.5", "at least 0"                       },
    {"least",       "-1",   "at least 0"                       },
    {"memory",      "-1",   "between 0 and 9223372036854775807"},
  };
  static const char *enums[] = {"-mat_tiledspmm_kernel", "-mat_tiledspmm_reorder"};
  char               name[64], text[256] = "";
  Mat                A;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "-bad_mat_tiledspmm_%s", bad[k].option));
    PetscCall(OptionOutOfRange("bad_", name, bad[k].value, bad[k].range));
    PetscCall(PetscSNPrintf(name, sizeof(name), "-mat_tiledspmm_%s", bad[k].option));
    PetscCall(OptionOutOfRange(NULL, name, bad[k].value, bad[k].range));
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 10, 10));
  PetscCall(MatSetType(A, TestFormat("")));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(enums); k++) {
    PetscCall(PetscOptionsSetValue(NULL, enums[k], "fast"));
    PetscCall(PetscPushErrorHandler(KeepText, text));
    ierr = MatSetFromOptions(A);
    PetscCall(PetscPopErrorHandler());
    PetscCall(PetscOptionsClearValue(NULL, enums[k]));
    PetscCheck(ierr == PETSC_ERR_USER && strstr(text, "fast") && strstr(text, enums[k] + 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s fast gave error %d, \"%s\"", enums[k], (int)ierr, text);
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBP keeps the x of a block in shared memory where it shall: the block must not be wider than has room there */
static PetscErrorCode SharedTooWide(void)
{
  static const char *const prefixes[] = {"bad_", NULL};
  const PetscInt           most       = (PetscInt)((96 << 10) / sizeof(PetscScalar));
  Mat                      A, R;
  MatGallopStatistics      last = {0};
  char                     value[16], range[128];

  PetscFunctionBegin;
  if (strcmp(TestFormat(""), MATHBP)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(range, sizeof(range), "1 to %" PetscInt_FMT ", or 0, with -mat_hbp_shared_x 1: the x of a block is kept in shared memory", most));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(prefixes); k++) {
    const char *prefix = prefixes[k] ? prefixes[k] : "";

    PetscCall(PetscOptionsSetValue(NULL, TestOption(prefix, "shared_x"), "1"));
    PetscCall(OptionOutOfRange(prefixes[k], TestOption(prefix, "block_cols"), "30000", range));
    PetscCall(PetscSNPrintf(value, sizeof(value), "%" PetscInt_FMT, most + 1));
    PetscCall(OptionOutOfRange(prefixes[k], TestOption(prefix, "block_cols"), value, range));
    PetscCall(PetscOptionsClearValue(NULL, TestOption(prefix, "shared_x")));
  }
  PetscCall(PetscSNPrintf(value, sizeof(value), "%" PetscInt_FMT, most));
  PetscCall(PetscOptionsSetValue(NULL, "-edge_mat_hbp_shared_x", "1"));
  PetscCall(PetscOptionsSetValue(NULL, "-edge_mat_hbp_block_cols", value));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatSetOptionsPrefix(A, "edge_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "the widest block"));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscOptionsClearValue(NULL, "-edge_mat_hbp_shared_x"));
  PetscCall(PetscOptionsClearValue(NULL, "-edge_mat_hbp_block_cols"));
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
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, 0, &A, &R));
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
  ErrorOf(MatConvert(B, TestFormat(""), MAT_INITIAL_MATRIX, &R), ierr);
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "conversion of an unassembled matrix: error %d", (int)ierr);
  PetscCall(MatDestroy(&B));
  if (size > 1) { /* a sequential type on several processes */
    PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
    PetscCall(MatSetSizes(B, PETSC_DECIDE, PETSC_DECIDE, 20, 20));
    ErrorOf(MatSetType(B, TestFormat("seqaij")), ierr);
    PetscCheck(ierr, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "a sequential type on several processes is no error");
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The phases of a product with a user's matrix, which take our factor under the name of its parent, and fail */
static PetscErrorCode SymbolicFails(Mat S, Mat A, Mat C, void **ctx)
{
  PetscFunctionBegin;
  (void)S, (void)C, (void)ctx;
  PetscCall(TestIsOurs(A, PETSC_TRUE, "factor of a product"));
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER, "symbolic phase");
}

static PetscErrorCode Symbolic(Mat S, Mat A, Mat C, void **ctx)
{
  PetscFunctionBegin;
  (void)S, (void)A;
  PetscCall(MatSetUp(C));
  *ctx = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumericFails(Mat S, Mat A, Mat C, void *ctx)
{
  PetscFunctionBegin;
  (void)S, (void)C, (void)ctx;
  PetscCall(TestIsOurs(A, PETSC_TRUE, "factor of a product"));
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER, "numeric phase");
}

/* An error in a phase of a product leaves the factors what they were */
static PetscErrorCode ErrorInProduct(void)
{
  const MatType       parents[] = {MATAIJ, MATAIJCUSPARSE};
  Mat                 A, R, S, C;
  PetscInt            m, M;
  PetscErrorCode      ierr;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "factor of a product"));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  for (int numeric = 0; numeric < 2; numeric++) {
    PetscCall(MatCreateShell(PETSC_COMM_WORLD, m, m, M, M, NULL, &S));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(parents); k++)
      PetscCall(MatShellSetMatProductOperation(S, MATPRODUCT_AB, numeric ? Symbolic : SymbolicFails, NumericFails, NULL, parents[k], MATDENSE));
    PetscCall(MatProductCreate(S, A, NULL, &C));
    PetscCall(MatProductSetType(C, MATPRODUCT_AB));
    PetscCall(MatProductSetFromOptions(C));
    ErrorOf(MatProductSymbolic(C), ierr);
    PetscCheck(ierr == (numeric ? PETSC_SUCCESS : PETSC_ERR_USER), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "symbolic phase of a product: error %d", (int)ierr);
    if (numeric) {
      ErrorOf(MatProductNumeric(C), ierr);
      PetscCheck(ierr == PETSC_ERR_USER, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "numeric phase of a product: error %d", (int)ierr);
    }
    PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), "factor of a product that failed"));
    PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "factor of a product that failed"));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&S));
  }
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C)); /* and there are products as ever */
  PetscCall(TestHasType(C, TestFormat("seqaij"), TestFormat("mpiaij"), "product after one that failed"));
  PetscCall(MatDestroy(&C));
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
    PetscCall(MatConvert(A, TestFormat("seqaij"), MAT_INPLACE_MATRIX, &A));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, types[k]));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A format that may take no more memory than it needs: the parent computes, and that is said once */
static PetscErrorCode NoRoom(void)
{
  Mat                 A[2], R[2];
  MatGallopStatistics last[2] = {{0}, {0}};
  PetscInt            lines = 0, matches = 0;
  char                name[32], message[64];

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, TestOption("", "memory"), "1"));
  PetscCall(TestCaptureBegin());
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), k ? TestSquare : TestTall, k, &A[k], &R[k]));
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
  PetscCall(PetscStrncpy(name, TestFormat(""), sizeof(name)));
  PetscCall(PetscStrtoupper(name));
  PetscCall(PetscSNPrintf(message, sizeof(message), "Gallop: no room for the %s format", name));
  PetscCall(TestCaptureEnd(message, &lines, &matches));
  PetscCheck(lines == 1 && matches == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines and %" PetscInt_FMT " messages", lines, matches);

  /* more room: the format is built after all */
  PetscCall(PetscOptionsSetValue(NULL, TestOption("", "memory"), "1e8"));
  PetscCall(MatSetFromOptions(A[1]));
  PetscCall(TestProducts(A[1], R[1], TEST_BUILD, &last[1], "room"));
  PetscCall(PetscOptionsClearValue(NULL, TestOption("", "memory")));
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
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
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

/* More nonzeros than indices of 32 bits count: PETSc's own error, and the matrix takes fewer after it */
static PetscErrorCode TooManyNonzeros(void)
{
  const PetscInt m = 1000000;
  PetscInt      *lengths;
  PetscErrorCode ierr;
  Mat            A;
  Vec            x, y;

  PetscFunctionBegin;
  if (PetscDefined(USE_64BIT_INDICES)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, &lengths));
  for (PetscInt r = 0; r < m; r++) lengths[r] = 2200 + r % 100;
  for (int each = 0; each < 2; each++) {
    char      text[256] = "";
    PetscBool same;

    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, m, m, m, m));
    PetscCall(MatSetType(A, TestFormat("")));
    PetscCall(PetscPushErrorHandler(KeepText, text));
    ierr = MatSeqAIJSetPreallocation(A, 2250, each ? lengths : NULL);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_SUP || ierr == PETSC_ERR_ARG_OUTOFRANGE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "too many nonzeros: error %d, %s", (int)ierr, text);
    PetscCheck(strstr(text, "64-bit-indices"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "too many nonzeros: %s", text);
    PetscCall(MatSeqAIJSetPreallocation(A, 1, NULL));
    for (PetscInt r = 0; r < m; r++) PetscCall(MatSetValue(A, r, r, 3.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(TestSetVec(x, 31));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecScale(x, 3.0));
    PetscCall(VecEqual(x, y, &same));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a wrong product after too many nonzeros");
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFree(lengths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool chooses;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscStrcmp(TestFormat(""), MATGALLOP, &chooses));
  PetscCall(OptionsOutOfRange());
  PetscCall(TooManyNonzeros());
  if (!chooses) { /* on the host it leaves products to the parent, of which others expect that they are a format's */
    PetscCall(NoRoom());
    PetscCall(OptionsAtTheEdge());
    PetscCall(DenseOptionsOutOfRange());
    PetscCall(SharedTooWide());
    PetscCall(WrongCalls());
    PetscCall(ErrorInProduct());
    PetscCall(ConvertOthers());
    PetscCall(InfAndNan());
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out
    nsize: {{1 2 4}}
    args: -format {{evchyb csroverlap fastload hbp}} -malloc_dump 0 -checkfunctionlist 0 # what an error interrupts is not freed

  test:
    suffix: gallop
    output_file: output/empty.out
    args: -format gallop -malloc_dump 0 -checkfunctionlist 0

TEST*/
