/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The batches of CSROVERLAP for row lengths small enough to write them down.\n\n";

#include "propertytest.h"
#include "../../src/mat/impls/csroverlap/csroverlap.h"

#define MOST 16

/* Batches [start_row, end_row) and long rows that a matrix with such row lengths must have, ended by -1 */
typedef struct {
  const char *what;
  const char *limit; /* max_batch_size */
  PetscInt    len[MOST], batches[MOST], longs[MOST];
} Case;

static const Case cases[] = {
  {"Figure 5",                     "64", {32, 15, 16, 11, 8, 38, 256, 25, 16, 130, 2, 22, 33, -1}, {0, 3, 3, 6, 7, 9, 10, 13, -1}, {6, 9, -1}   },
  {"a limit hit exactly",          "32", {16, 16, 32, 1, 31, 32, 33, -1},                          {0, 2, 2, 3, 3, 5, 5, 6, -1},   {6, -1}      },
  {"all rows long",                "32", {33, 40, 100, -1},                                        {-1},                           {0, 1, 2, -1}},
  {"one row",                      "32", {7, -1},                                                  {0, 1, -1},                     {-1}         },
  {"empty rows first",             "32", {0, 0, 30, 3, -1},                                        {0, 3, 3, 4, -1},               {-1}         },
  {"empty rows between",           "32", {30, 0, 2, 0, 0, 1, -1},                                  {0, 5, 5, 6, -1},               {-1}         },
  {"empty rows last",              "32", {20, 12, 0, 0, -1},                                       {0, 4, -1},                     {-1}         },
  {"empty rows around a long one", "32", {0, 50, 0, 5, -1},                                        {0, 1, 2, 4, -1},               {1, -1}      },
  {"a long row first and last",    "32", {64, 3, 64, -1},                                          {1, 2, -1},                     {0, 2, -1}   },
};

static PetscErrorCode Create(const PetscInt len[], PetscInt n, Mat *A)
{
  PetscInt m = 0;

  PetscFunctionBegin;
  while (len[m] >= 0) m++;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATCSROVERLAP));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt k = 0; k < len[i]; k++) PetscCall(MatSetValue(*A, i, k, TestValue(1, i, k), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format that a product with vectors on the host makes */
static PetscErrorCode Product(Mat A, const CSROverlap **ov)
{
  Vec      x, z;
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &x));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m, &z));
  PetscCall(TestSetVec(x, 2));
  PetscCall(MatMult(A, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, "product"));
  PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_HOST, (const void **)ov));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPartition(const Case *c)
{
  Mat               A;
  const CSROverlap *ov;
  const BatchInfo  *kept;
  PetscInt          b = 0, l = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", c->limit));
  PetscCall(Create(c->len, 256, &A));
  PetscCall(Product(A, &ov));
  PetscCheck(ov, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: no format", c->what);
  for (; c->batches[2 * b] >= 0; b++)
    PetscCheck(b < ov->batch_num && ov->batch_infos[b].start_row == c->batches[2 * b] && ov->batch_infos[b].end_row == c->batches[2 * b + 1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: batch %" PetscInt_FMT " is not [%" PetscInt_FMT ", %" PetscInt_FMT ")", c->what, b, c->batches[2 * b], c->batches[2 * b + 1]);
  for (; c->longs[l] >= 0; l++)
    PetscCheck(l < ov->long_row_num && ov->long_row_infos[l] == c->longs[l], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: long row %" PetscInt_FMT " is not %" PetscInt_FMT, c->what, l, c->longs[l]);
  PetscCheck(ov->batch_num == b && ov->long_row_num == l, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " batches and %" PetscInt_FMT " long rows", c->what, ov->batch_num, ov->long_row_num);
  /* new values leave the partition as it is */
  kept = ov->batch_infos;
  PetscCall(MatScale(A, 2.0));
  PetscCall(Product(A, &ov));
  PetscCheck(ov->batch_infos == kept, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the partition was made again for new values", c->what);
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A batch has no more rows than a thread block has threads, however empty they are */
static PetscErrorCode TestManyEmptyRows(void)
{
  Mat               A;
  const CSROverlap *ov;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", "32"));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 600, 5, 600, 5));
  PetscCall(MatSetType(A, MATCSROVERLAP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatSetValue(A, 599, 4, 3.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Product(A, &ov));
  PetscCheck(ov->batch_num == 3 && ov->batch_infos[1].end_row == 512 && ov->long_row_num == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " batches of 600 rows", ov->batch_num);
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Algorithm 6 with the numbers of Table 2: ten rows of equal length, then one of them longer */
static PetscErrorCode TestKind(void)
{
  static const PetscInt mean[] = {0, 16, 17, 33, 34, 63, 64, 121, 122, 215, 216, 1000}, expected[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
  CSROverlapOptions     table2 = {
        .switch_points = {17, 34, 64, 122, 216},
          .rows_in_registers = PETSC_TRUE, .uneven = PETSC_TRUE
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(mean); k++) {
    const int kind = CSROverlapKind(&table2, 4, 10, 10 * mean[k], 8);

    PetscCheck(kind == expected[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "mean row length %" PetscInt_FMT ": kind %d", mean[k], kind);
  }
  PetscCheck(CSROverlapKind(&table2, 4, 10, 100, 9) == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a row of 9 among ten does not get two threads");
  PetscCheck(CSROverlapKind(&table2, 4, 10, 100, 17) == (1 | CSROVERLAP_KIND_UNEVEN), PETSC_COMM_SELF, PETSC_ERR_PLIB, "a row of 17 among ten does not wait for a warp");
  PetscCheck(CSROverlapKind(&table2, 4, 10, 1300, 700) == (4 | CSROVERLAP_KIND_UNEVEN), PETSC_COMM_SELF, PETSC_ERR_PLIB, "vector_size of uneven rows is raised to that of warps");
  PetscCheck(CSROverlapKind(&table2, 4, 10, 25, 4) == CSROVERLAP_KIND_ROWS && CSROverlapKind(&table2, 4, 10, 25, 5) == 0 && CSROverlapKind(&table2, 4, 10, 20, 4) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "rows in registers");
  table2.uneven = PETSC_FALSE;
  PetscCheck(CSROverlapKind(&table2, 4, 10, 100, 9) == 0 && CSROverlapKind(&table2, 4, 10, 100, 17) == 0 && CSROverlapKind(&table2, 4, 10, 1300, 700) == 4, PETSC_COMM_SELF, PETSC_ERR_PLIB, "vector_size is not that of the mean length, where nothing else is wanted");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product with vectors of a place, and the kind of the one batch that the matrix has there */
static PetscErrorCode GetKind(Mat A, PetscBool device, const char what[], int *kind)
{
  const void *data;
  BatchInfo  *infos;
  PetscInt   *longs;
  BatchWork  *works;
  Vec         x, z;

  PetscFunctionBegin;
  PetscCall(TestCreateVecsOfType(A, device ? VECSEQCUDA : VECSEQ, &x, &z));
  PetscCall(TestSetVec(x, 2));
  PetscCall(MatMult(A, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(MatGallopGetFormatData(A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
  TestCheck(data && ((const CSROverlap *)data)->batch_num == 1, "no format, or not one batch", what);
  PetscCall(CSROverlapGetBatches((const CSROverlap *)data, &infos, &longs, &works));
  *kind = works[0].kind;
  PetscCall(PetscFree(infos));
  PetscCall(PetscFree(longs));
  PetscCall(PetscFree(works));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options by which a batch is computed, from the database: a batch of 100 rows, whose kind is another one with them. The options make the format anew. */
static PetscErrorCode TestKindOptions(PetscBool device)
{
  static const struct {
    const char *options;
    PetscInt    first, len; /* entries of the first row, and of the others */
    int         without, with;
  } c[] = {
    {"-mat_csroverlap_switch_points 17,34,64,122,216 -mat_csroverlap_uneven 0", 20, 20, 2,                          1},
    {"-mat_csroverlap_switch_points 17,34,64,122,216",                          14, 14, 2,                          1}, /* 0, and twice as many threads since 14 is more than 8 */
    {"-mat_csroverlap_switch_points 1,2,3,4,20",                                20, 20, 2,                          5},
    {"-mat_csroverlap_uneven 0",                                                30, 5,  2,                          1},
    {"-mat_csroverlap_uneven 0",                                                60, 5,  2 | CSROVERLAP_KIND_UNEVEN, 1},
    {"-mat_csroverlap_rows_in_registers 0",                                     5,  5,  CSROVERLAP_KIND_ROWS,       1},
  };

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", "2048")); /* eight entries for each thread */
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(c); k++) {
    PetscInt            len[101];
    Mat                 A;
    MatGallopStatistics stats;
    int                 without = -1, with = -1;

    for (int row = 0; row < 100; row++) len[row] = row ? c[k].len : c[k].first;
    len[100] = -1;
    PetscCall(Create(len, 256, &A));
    PetscCall(GetKind(A, device, "no options", &without));
    PetscCall(PetscOptionsInsertString(NULL, c[k].options));
    PetscCall(MatSetFromOptions(A));
    PetscCall(TestClearOptions(c[k].options));
    PetscCall(GetKind(A, device, c[k].options, &with));
    PetscCheck(without == c[k].without && with == c[k].with, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, rows of %" PetscInt_FMT " and %" PetscInt_FMT " on the %s: kind %d without, %d with", c[k].options, c[k].first, c[k].len, device ? "GPU" : "host", without, with);
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck(stats.builds == 2 && (device ? stats.products_device : stats.products_host) == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds", c[k].options, stats.builds);
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines that two products write, of which the first one copies the matrix to the GPU */
static PetscErrorCode CountLines(Mat A, PetscInt lines[2])
{
  FILE *const out = PETSC_STDOUT;
  char        line[128];
  Vec         x, z;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 2));
  for (int k = 0; k < 2; k++) {
    FILE *const file = tmpfile();

    lines[k] = 0;
    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
    PETSC_STDOUT = file;
    PetscCall(MatMult(A, x, z));
    PETSC_STDOUT = out;
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
      PetscInt number;
      float    at[4];

      if (!lines[k]) PetscCheck(!strncmp(line, "CSR-Overlap timeline", 20), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Above the timeline: %s", line);
      else PetscCheck(sscanf(line, "%" PetscInt_FMT " %f %f %f %f", &number, &at[0], &at[1], &at[2], &at[3]) == 5 && number == lines[k] - 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Line %" PetscInt_FMT " of the timeline: %s", lines[k], line);
      lines[k]++;
    }
    (void)fclose(file);
    PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, "timeline"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_csroverlap_timeline: a line for each big batch, below one that says what they are; none on the host, where nothing is copied, and none without the option */
static PetscErrorCode TestTimeline(PetscBool device)
{
  const PetscInt len[] = {20, 20, 20, 20, 20, 20, 20, 20, -1};
  PetscInt       lines[2], wanted = 0;
  Mat            A;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", "32"));
  for (int timeline = 0; timeline < 2; timeline++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_timeline", timeline ? "1" : "0"));
    PetscCall(Create(len, 256, &A));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_csroverlap_timeline"));
    PetscCall(CountLines(A, lines));
#if PetscDefined(HAVE_CUDA)
    if (device && timeline) {
      const void     *data;
      CSROverlapPlace place;

      PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, &data));
      PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "timeline: no format on the GPU");
      PetscCall(CSROverlapGetPlace((const CSROverlap *)data, &place));
      PetscCheck(place.big_batch_num > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "timeline: the entries do not come from the host");
      wanted = 1 + place.big_batch_num;
    }
#endif
    PetscCheck(lines[0] == wanted && lines[1] == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Timeline %s: %" PetscInt_FMT " lines of the first product, not %" PetscInt_FMT ", and %" PetscInt_FMT " of the second", timeline ? "on" : "off", lines[0], wanted, lines[1]);
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The size of batches by the lengths of rows, and whether they are even */
static PetscErrorCode TestBatchSize(void)
{
  static const struct {
    PetscInt  len[2], m, size; /* lengths of rows of even and odd number */
    PetscBool even;
  } c[] = {
    {{7, 6},   200000, 2048, PETSC_FALSE},
    {{3, 3},   200000, 512,  PETSC_FALSE},
    {{10, 6},  200000, 1024, PETSC_FALSE},
    {{26, 27}, 50000,  1024, PETSC_TRUE },
    {{26, 27}, 1000,   512,  PETSC_TRUE },
    {{1, 99},  50000,  1024, PETSC_FALSE},
    {{0, 1},   10,     512,  PETSC_FALSE}
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(c); k++) {
    for (int option = 0; option < 2; option++) {
      const PetscInt    n = 128;
      Mat               A;
      const CSROverlap *ov;
      PetscInt         *i, *j;
      PetscScalar      *a;

      PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", option ? "96" : "0"));
      PetscCall(PetscMalloc1(c[k].m + 1, &i));
      i[0] = 0;
      for (PetscInt row = 0; row < c[k].m; row++) i[row + 1] = i[row] + c[k].len[(row / 3) % 2];
      PetscCall(PetscMalloc2(i[c[k].m], &j, i[c[k].m], &a));
      for (PetscInt row = 0; row < c[k].m; row++) {
        for (PetscInt e = i[row]; e < i[row + 1]; e++) {
          j[e] = e - i[row];
          a[e] = TestValue(1, row, j[e]);
        }
      }
      PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, c[k].m, n, i, j, a, &A));
      PetscCall(MatConvert(A, MATCSROVERLAP, MAT_INPLACE_MATRIX, &A));
      PetscCall(Product(A, &ov));
      PetscCheck(ov->max_batch_size == (option ? 96 : c[k].size) && ov->even == c[k].even, PETSC_COMM_SELF, PETSC_ERR_PLIB, "rows of %" PetscInt_FMT " and %" PetscInt_FMT ": batches of %" PetscInt_FMT ", even %d",
                 c[k].len[0], c[k].len[1], ov->max_batch_size, ov->even);
      PetscCall(MatDestroy(&A));
      PetscCall(PetscFree(i));
      PetscCall(PetscFree2(j, a));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The partition that was made on the GPU is that of the host, and so is what the kernel knows of the batches */
static PetscErrorCode TestSameArrays(Mat A, const char what[])
{
  const PetscMemType memtypes[] = {PETSC_MEMTYPE_HOST, PETSC_MEMTYPE_CUDA};
  const CSROverlap  *ov[2];
  BatchInfo         *infos[2];
  PetscInt          *longs[2];
  BatchWork         *works[2];

  PetscFunctionBegin;
  PetscCall(Product(A, &ov[0])); /* with vectors on the host */
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGallopGetFormatData(A, memtypes[k], (const void **)&ov[k]));
    PetscCheck(ov[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Not built at both places");
    PetscCall(CSROverlapGetBatches(ov[k], &infos[k], &longs[k], &works[k]));
  }
  TestSameNumber(ov[0], ov[1], batch_num, what);
  TestSameNumber(ov[0], ov[1], long_row_num, what);
  TestSameNumber(ov[0], ov[1], max_batch_size, what);
  TestSameNumber(ov[0], ov[1], even, what);
  PetscCall(TestSameBytes(infos[0], infos[1], (size_t)ov[0]->batch_num * sizeof(BatchInfo), "batches", what));
  PetscCall(TestSameBytes(longs[0], longs[1], (size_t)ov[0]->long_row_num * sizeof(PetscInt), "long rows", what));
  for (PetscInt b = 0; b < ov[0]->batch_num; b++) {
    const BatchWork *h = &works[0][b], *d = &works[1][b];

    TestSameNumber(h, d, start_row, what);
    TestSameNumber(h, d, begin, what);
    TestSameNumber(h, d, nnz, what);
    TestSameNumber(h, d, rows, what);
    TestSameNumber(h, d, kind, what);
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscFree(infos[k]));
    PetscCall(PetscFree(longs[k]));
    PetscCall(PetscFree(works[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches at odd offsets, every vector_size, and rows of all lengths, where the vectors of MatCreateVecs() live */
static PetscErrorCode TestLengths(const char limit[], PetscInt m, PetscInt longest, PetscInt seed, PetscBool fromdevice)
{
  Mat                 A;
  Vec                 x, y, z;
  MatGallopStatistics stats;
  PetscBool           device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_csroverlap_max_batch_size", limit));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, m, longest, m, longest));
  PetscCall(MatSetType(A, MATCSROVERLAP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  for (PetscInt i = 0; i < m; i++) {
    const PetscReal r   = TestRandom(seed, i, 0);
    const PetscInt  len = TestRandom(seed, i / 40, 1) < 0.3 ? (PetscInt)(3 * r) : (PetscInt)((PetscReal)longest * r * r * r), step = len ? longest / len : 0;

    for (PetscInt k = 0; k < len; k++) PetscCall(MatSetValue(A, i, k * step, TestValue(seed, i, k), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (fromdevice) PetscCall(MatScale(A, 2.0)); /* the parent does that on the GPU, where there is one */
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestSetVec(x, seed + 1));
  PetscCall(TestSetVec(y, seed + 2));
  for (int k = 0; k < 3; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, "MatMult()"));
    PetscCall(MatMultAdd(A, x, y, z));
    PetscCall(TestCompare(A, TEST_MULT, x, y, z, "MatMultAdd()"));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(TestHasDevice(&device));
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck((device ? stats.products_device : stats.products_host) == 6 && stats.builds == 1 && stats.refreshes == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products of the format",
             stats.products_device + stats.products_host);
  if (device) {
    const CSROverlap *ov;

    PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, (const void **)&ov));
    PetscCheck(!ov->transfer == fromdevice, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The format was not built from arrays %s", fromdevice ? "on the GPU" : "on the host");
    PetscCall(TestSameArrays(A, "rows of all lengths"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool                device   = PETSC_FALSE;
  static const char *const limits[] = {"32", "96", "512", "1024", "2048", "4096", sizeof(PetscScalar) > 8 ? "5000" : "8192" /* fits in shared memory */, "0"};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) PetscCall(TestPartition(&cases[k]));
  PetscCall(TestManyEmptyRows());
  PetscCall(TestKind());
  PetscCall(TestHasDevice(&device));
  for (int g = 0; g <= (int)device; g++) PetscCall(TestKindOptions((PetscBool)g));
  PetscCall(TestTimeline(device));
  PetscCall(TestBatchSize());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(limits); k++)
    for (PetscInt seed = 0; seed < 4; seed++) PetscCall(TestLengths(limits[k], seed == 3 ? 1 : 700 + 31 * seed, seed == 2 ? 20 : 500 + 301 * seed, 10 * (PetscInt)k + seed, (PetscBool)(seed % 2)));
  /* so many rows that the GPU partitions them: the last of its chunks full, of one row, and one of several */
  PetscCall(TestLengths("0", 131072, 40, 101, PETSC_TRUE));
  PetscCall(TestLengths("32", 131073, 70, 102, PETSC_TRUE));
  PetscCall(TestLengths("96", 140000, 3, 103, PETSC_TRUE));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out

TEST*/
