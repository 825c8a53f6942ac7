/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Matrices of CSROVERLAP whose entries come from the host in big batches, once or for every product.\n\n";

#include <petsc/private/matimpl.h>
#include "propertytest.h"
#include "../../src/mat/impls/csroverlap/csroverlap.h"

/* How the lengths of rows are drawn */
typedef enum {
  SHORT,  /* up to 12 */
  MIXED,  /* empty ones, short ones, and some far longer than a batch */
  LONG,   /* nothing but long ones: no batch at all */
  AT_END, /* one long row behind short ones */
  WIDE,   /* of 16 entries, whose columns lie as far apart as packed columns have limits: 2^k - 1 and 2^k, and all at the same place before */
  LAWS
} Law;

static PetscInt RowLength(Law law, PetscInt row, PetscInt m, PetscInt n)
{
  const PetscReal r = TestRandom(31 + law, row, 0);

  switch (law) {
  case SHORT:
    return (PetscInt)(13 * r);
  case MIXED:
    if (row >= 1000 && row < 1800) return 0; /* batches without entries */
    return row % 97 == 5 ? n - row % 50 : row % 7 == 3 ? 0 : (PetscInt)(30 * r * r);
  case LONG:
    return n / 2 + (PetscInt)(r * (PetscReal)n / 2);
  case WIDE:
    return row < 128 ? 1 : 16;
  default:
    return row == m - 1 ? n : 3;
  }
}

/* Eight rows of WIDE are a group of columns that are packed together */
static PetscInt Column(Law law, PetscInt row, PetscInt k, PetscInt len, PetscInt n)
{
  const PetscInt group = row / 8, first = group * 37 % 1000;

  if (law != WIDE) return (PetscInt)((PetscCount)k * n / len);
  if (len == 1) return 7;
  return k + 1 < len ? first + k : first + ((PetscInt)1 << (5 + group / 2 % 14)) - group % 2;
}

/* Assembled on the host, whatever the type */
static PetscErrorCode Create(Law law, PetscInt m, PetscInt n, MatType type, Mat *A)
{
  TestEntries e;
  Mat         plain;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt row = 0; row < m; row++) {
    const PetscInt len = RowLength(law, row, m, n);

    for (PetscInt k = 0; k < len; k++) PetscCall(TestEntriesPut(&e, Column(law, row, k, len, n), TestValue(law, row, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &plain));
  PetscCall(MatConvert(plain, type, MAT_INITIAL_MATRIX, A));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the parent has no copy on the GPU */
static PetscBool OnHostOnly(Mat A)
{
#if PetscDefined(HAVE_CUDA)
  return (PetscBool)(A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED);
#else
  (void)A;
  return PETSC_TRUE;
#endif
}

/* New values on the host: the GPU's are old then */
static PetscErrorCode ChangeOnHost(Mat A, Mat R, PetscReal factor)
{
  Mat both[] = {A, R};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscScalar    *a;
    PetscInt        m;
    const PetscInt *i, *j;
    PetscBool       done;

    PetscCall(MatGetRowIJ(both[k], 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
    PetscCall(MatSeqAIJGetArray(both[k], &a));
    for (PetscInt e = 0; e < i[m]; e++) a[e] = factor * (a[e] + (PetscReal)(e % 3));
    PetscCall(MatSeqAIJRestoreArray(both[k], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *big;
  PetscInt    memory; /* of the GPU, for so many entries */
  const char *pinned, *batch;
  PetscBool   streamed;
  const char *pack;
  PetscInt    num; /* big batches of one size, 0 for as many as there are */
} Setting;

static PetscErrorCode SetOptions(const Setting *set)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_big_batch_size", set->big));
  PetscCall(TestSetIntOption("-mat_csroverlap_big_batch_num", set->num));
  PetscCall(TestSetIntOption("-mat_csroverlap_device_memory", set->memory * (PetscInt)(sizeof(PetscScalar) + sizeof(GallopColumn))));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_pinned", set->pinned));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", set->batch));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_pack_columns", set->pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies to the GPU that PETSc and this library have logged */
static PetscLogDouble CopiesIn(void)
{
#if PetscDefined(HAVE_DEVICE)
  return petsc_ctog_ct;
#else
  return 0;
#endif
}

/* again: whether products copy entries to the GPU again, which only those of a streamed matrix do */
static PetscErrorCode Products(Mat A, Mat R, Vec x, Vec y, Vec z, PetscBool again, const char what[])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscLogDouble copies;

    PetscCall(TestSpoilVec(z));
    copies = CopiesIn();
    PetscCall(MatMult(A, x, z));
    copies = CopiesIn() - copies;
    PetscCheck(!k || (copies > 0) == (int)again, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g copies to the GPU in the second product", what, copies);
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, what));
    PetscCall(TestAdds(A, R, TEST_MULT, x, y, z, what));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether entries come from pinned memory, and columns packed; those of a small big batch may not */
static PetscErrorCode CheckPacked(const CSROverlap *ov, const Setting *set)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  const PetscBool pinned = (PetscBool)(set->pinned[0] == 'a' || (set->pinned[0] == 's' && set->streamed)), wanted = (PetscBool)(pinned && set->pack[0] == '1');
  CSROverlapPlace place;

  PetscCall(CSROverlapGetPlace(ov, &place));
  PetscCheck(place.pinned == pinned, PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_csroverlap_pinned %s: entries are %s pinned memory", set->pinned, place.pinned ? "in" : "not in");
  PetscCheck(!set->num || place.big_batch_num == set->num, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " big batches, not %" PetscInt_FMT, place.big_batch_num, set->num);
  if (set->streamed && set->big[0] != '0') PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck((place.column_bytes < ov->nz * (PetscCount)sizeof(GallopColumn)) == (int)wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscCount_FMT " bytes for %" PetscCount_FMT " columns", place.column_bytes, ov->nz);
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Setting *set, Law law, PetscBool device)
{
  const PetscInt      m = law == LONG ? 60 : 3000, n = law == WIDE ? 263200 : 2500;
  const PetscBool     again = (PetscBool)(device && set->streamed);
  Mat                 A, R, B;
  Vec                 x, y, z, w;
  const CSROverlap   *ov;
  MatGallopStatistics stats;
  PetscViewer         viewer;

  PetscFunctionBegin;
  PetscCall(SetOptions(set));
  PetscCall(Create(law, m, n, MATCSROVERLAP, &A));
  PetscCall(Create(law, m, n, MATSEQAIJ, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(TestSetVec(x, 5));
  PetscCall(TestSetVec(y, 6));
  PetscCall(Products(A, R, x, y, z, again, "new matrix"));
  if (device) {
    PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, (const void **)&ov));
    PetscCheck(ov && ov->transfer && !ov->values == set->streamed, PETSC_COMM_SELF, PETSC_ERR_PLIB, "law %d, limit %" PetscInt_FMT ": the matrix is %s", law, set->memory,
               !ov             ? "not there"
               : !ov->transfer ? "not from the host"
               : ov->values    ? "resident"
                               : "streamed");
    PetscCall(CheckPacked(ov, set));
    PetscCheck(OnHostOnly(A), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The parent copied the matrix to the GPU too");
  }
  PetscCall(ChangeOnHost(A, R, 0.5));
  PetscCall(Products(A, R, x, y, z, again, "new values on the host"));
  PetscCall(ChangeOnHost(A, R, 0.25));
  PetscCall(ChangeOnHost(A, R, 2.0));
  PetscCall(Products(A, R, x, y, z, again, "newer values on the host"));
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck((device ? stats.products_device : stats.products_host) == 18 && stats.builds == 1 && stats.refreshes == 2 && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products, %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes",
             stats.products_device + stats.products_host, stats.builds, stats.refreshes);
  /* the parent's, on the host when the GPU is too small */
  PetscCall(TestSpoilVec(w));
  PetscCall(MatMultTranspose(A, y, w));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, y, NULL, w, "transposed"));
  if (device && set->streamed) PetscCheck(OnHostOnly(A), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The transposed product copied the matrix to the GPU");
  PetscCall(MatScale(A, 3.0)); /* on the GPU where the parent has the matrix there */
  PetscCall(MatScale(R, 3.0));
  PetscCall(Products(A, R, x, y, z, again, "new values on the GPU"));
  PetscCall(ChangeOnHost(A, R, 0.5));
  PetscCall(Products(A, R, x, y, z, again, "new values on the host again"));
  /* right after a product, a change and the end */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatMult(B, x, z));
  PetscCall(ChangeOnHost(B, R, 0.5));
  PetscCall(MatMult(B, x, z));
  PetscCall(MatDestroy(&B));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "destroyed matrix"));
  /* built, then new values on the GPU before the first product: of what is copied, columns are still the host's */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, "/dev/null", &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(B, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatGallopGetStatistics(B, &stats));
  PetscCheck(stats.builds == 1 && !stats.products_host && !stats.products_device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds by a viewer", stats.builds);
  PetscCall(MatCopy(B, R, SAME_NONZERO_PATTERN));
  PetscCall(MatScale(B, 3.0));
  PetscCall(MatScale(R, 3.0));
  PetscCall(Products(B, R, x, y, z, again, "new values on the GPU before the first product"));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No room on the GPU, or no pinned memory, for each of the arrays in turn that a matrix from the host needs */
static PetscErrorCode NoRoom(const Setting *set, PetscBool device)
{
  const PetscInt needed = set->streamed ? 3 : 1; /* rows and two buffers, or everything in one */
  PetscInt       lines = 0, messages = 0;

  PetscFunctionBegin;
  PetscCall(SetOptions(set));
  PetscCall(TestCaptureBegin());
  for (PetscInt fail = 1; fail <= needed + 2; fail++) { /* pinned memory; nothing fails */
    const PetscBool     fits = (PetscBool)(!device || fail > needed);
    Mat                 A, R;
    Vec                 x, z;
    char                number[8];
    MatGallopStatistics stats;

    PetscCall(Create(MIXED, 3000, 2500, MATCSROVERLAP, &A));
    PetscCall(Create(MIXED, 3000, 2500, MATSEQAIJ, &R));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(TestSetVec(x, 5));
    PetscCall(PetscSNPrintf(number, sizeof(number), "%" PetscInt_FMT, fail));
    PetscCall(PetscOptionsSetValue(NULL, "-gallop_device_malloc_fail", number));
    for (int k = 0; k < 2; k++) {
      PetscCall(TestSpoilVec(z));
      PetscCall(MatMult(A, x, z));
      PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "no room"));
      PetscCall(ChangeOnHost(A, R, 0.5));
    }
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck(stats.builds == (fits ? 1 : 0) && stats.fallbacks == (fits ? 0 : 2), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Limit %" PetscInt_FMT ", request %" PetscInt_FMT " fails: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " products of the parent",
               set->memory, fail, stats.builds, stats.fallbacks);
    PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(TestCaptureEnd("Gallop: ", &lines, &messages));
  PetscCheck(lines == messages, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Something else among %" PetscInt_FMT " messages", lines);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The limit holds for each block of an MPI matrix, and all are streamed here */
static PetscErrorCode Parallel(PetscBool device)
{
  const Setting       set = {"2000", 16666, "streamed", "64", PETSC_TRUE, "1", 0};
  const PetscInt      n   = 8000;
  Mat                 A[2], blocks[2];
  Vec                 x, y, z;
  PetscInt            parts;
  PetscMPIInt         size;
  MatGallopStatistics stats;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(SetOptions(&set));
  for (int k = 0; k < 2; k++) {
    PetscInt rstart, rend;

    PetscCall(MatCreate(PETSC_COMM_WORLD, &A[k]));
    PetscCall(MatSetSizes(A[k], PETSC_DECIDE, PETSC_DECIDE, n, n));
    PetscCall(MatSetType(A[k], k ? MATAIJ : MATCSROVERLAP));
    PetscCall(MatSetFromOptions(A[k]));
    PetscCall(MatSetUp(A[k]));
    PetscCall(MatGetOwnershipRange(A[k], &rstart, &rend));
    for (PetscInt row = rstart; row < rend; row++)
      for (PetscInt e = 0; e < 12; e++) PetscCall(MatSetValue(A[k], row, (row + 661 * e) % n, TestValue(3, row, e), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[k], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatCreateVecs(A[0], &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestSetVec(x, 5));
  PetscCall(TestSetVec(y, 6));
  PetscCall(Products(A[0], A[1], x, y, z, device, "MPI matrix"));
  PetscCall(TestParts(A[0], &parts));
  PetscCall(MatGallopGetStatistics(A[0], &stats));
  PetscCheck((device ? stats.products_device : stats.products_host) == 6 * parts && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products and %" PetscInt64_FMT " by the parent",
             stats.products_device + stats.products_host, stats.fallbacks);
  blocks[0] = A[0];
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A[0], &blocks[0], &blocks[1], NULL));
  for (int k = 0; device && k < parts; k++) {
    const CSROverlap *ov;

    PetscCall(MatGallopGetFormatData(blocks[k], PETSC_MEMTYPE_CUDA, (const void **)&ov));
    PetscCheck(ov && !ov->values && OnHostOnly(blocks[k]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Block %d is not streamed", k);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A[0]));
  PetscCall(MatDestroy(&A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Setting settings[] = {
    {"0",    0,     "always",   "0",    PETSC_FALSE, "1", 0},
    {"0",    0,     "always",   "0",    PETSC_FALSE, "0", 0},
    {"32",   0,     "always",   "32",   PETSC_FALSE, "1", 0}, /* many big batches without a batch: long rows end later */
    {"1000", 0,     "always",   "0",    PETSC_FALSE, "1", 0},
    {"5000", 0,     "never",    "96",   PETSC_FALSE, "1", 0},
    {"0",    12500, "always",   "32",   PETSC_TRUE,  "1", 0},
    {"0",    12500, "never",    "64",   PETSC_TRUE,  "1", 0},
    {"100",  15000, "always",   "1024", PETSC_TRUE,  "1", 0},
    {"1000", 15000, "always",   "512",  PETSC_TRUE,  "0", 0},
    {"0",    0,     "streamed", "0",    PETSC_FALSE, "1", 0},
    {"0",    12500, "streamed", "32",   PETSC_TRUE,  "1", 0},
    {"1000", 0,     "always",   "0",    PETSC_FALSE, "1", 2},
    {"0",    0,     "never",    "96",   PETSC_FALSE, "0", 5},
  };
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(settings); k++)
    for (int law = 0; law < LAWS; law++) {
      if (law == AT_END && settings[k].streamed) continue; /* too small to be streamed within the limit */
      if (!TestInPart()) continue;
      PetscCall(Run(&settings[k], (Law)law, device));
    }
  if (TestInPart()) PetscCall(Parallel(device));
  if (TestInPart()) PetscCall(NoRoom(&settings[0], device));
  if (TestInPart()) PetscCall(NoRoom(&settings[5], device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    output_file: output/empty.out

TEST*/
