/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The arrays of the FastLoad format for matrices small enough to write them down.\n\n";

#include "propertytest.h"
#include "../../src/mat/impls/fastload/fastload.h"

#define MOST 50

/* Columns of the matrix, as lists of rows ended by -1, and the arrays that they must give. Lists of numbers end by -1, too. */
typedef struct {
  const char *what;
  PetscInt    m, length, height;
  PetscInt    columns[9][10];
  PetscInt    perm[10];
  PetscInt    blkPtr[MOST], blkColIdx[MOST], blkHeight[MOST], blkLength[MOST], blkClass[MOST];
  PetscInt    rowIdx[MOST + 1];
  PetscInt    taskBlk[10]; /* none where steps are of all columns: a task then is a block */
} Case;

#define ONE_ROW  FASTLOAD_ONE_ROW
#define RUNS     FASTLOAD_RUNS
#define DISTINCT FASTLOAD_DISTINCT
#define SHARED   FASTLOAD_SHARED
#define END \
  { \
    -1 \
  }

/*
  A matrix of 9 rows, 9 columns and 50 entries in blocks of 4 columns, like that of Figure 6, whose blocks 0 and 5 have the blkPtr, blkColIdx, blkHeight and blkLength that section IV.B
  tells: 0, 0, 2, 4 and 34, 2, 1, 4. Columns 4, 8, 0, 1, 5, 7, 2, 3, 6 have 2, 4, 5, 6, 6, 6, 7, 7 and 7 entries.
*/
#define FIGURE_6_COLUMNS \
  { \
    {0, 2, 3, 4, 5, -1}, {1, 2, 3, 4, 5, 6, -1}, {0, 1, 3, 4, 6, 7, 8, -1}, {0, 1, 3, 5, 6, 7, 8, -1}, {0, 1, -1}, {1, 2, 4, 5, 6, 7, -1}, {0, 1, 3, 5, 6, 7, 8, -1}, {0, 2, 4, 6, 7, 8, -1}, \
    { \
      0, 1, 2, 3, -1 \
    } \
  }
#define FIGURE_6_PERM \
  { \
    4, 8, 0, 1, 5, 7, 2, 3, 6, -1 \
  }
#define FIGURE_6_ROWS \
  { \
    0, 0, 0, 1, 1, 1, 2, 2, 1, 0, 0, 0, 2, 2, 1, 1, 0, 1, 2, 3, 3, 4, 3, 4, 4, 5, 4, 3, 3, 3, 6, 4, 5, 5, 5, 5, 6, 7, 6, 6, 6, 6, 7, 8, 7, 7, 7, 8, 8, 8, -1 \
  }
#define FIGURE_6_BLOCKS \
  {0, 8, 16, 18, 26, 34, 38, 41, 45, 47, 50, -1}, {0, 4, 8, 1, 5, 2, 6, 3, 7, 6, -1}, {2, 2, 2, 2, 2, 1, 1, 1, 1, 1, -1}, {4, 4, 1, 4, 4, 4, 3, 4, 2, 3, -1}, \
  { \
    RUNS | SHARED, RUNS | SHARED, DISTINCT | SHARED, RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, ONE_ROW | SHARED, DISTINCT | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, -1 \
  }

/* Columns that begin in row 0 and have no gaps */
#define TOP1 \
  { \
    0, -1 \
  }
#define TOP2 \
  { \
    0, 1, -1 \
  }
#define TOP3 \
  { \
    0, 1, 2, -1 \
  }
#define TOP5 \
  { \
    0, 1, 2, 3, 4, -1 \
  }
#define TOP9 \
  { \
    0, 1, 2, 3, 4, 5, 6, 7, 8, -1 \
  }
#define EQUAL_COLUMNS \
  { \
    TOP5, TOP5, TOP5, TOP5, TOP5, TOP5, TOP5, END, END \
  }
#define EQUAL_PERM \
  { \
    0, 1, 2, 3, 4, 5, 6, -1 \
  }
#define EQUAL_ROWS \
  { \
    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, -1 \
  }
#define FULL_COLUMNS \
  { \
    TOP9, TOP1, TOP1, END, END, END, END, END, END \
  }
#define FULL_PERM \
  { \
    1, 2, 0, -1 \
  }
#define FULL_ROWS \
  { \
    0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1 \
  }

/* clang-format off */
static const Case cases[] = {
  {"Figure 6, no limit", 9, 4, 0,  FIGURE_6_COLUMNS, FIGURE_6_PERM, FIGURE_6_BLOCKS, FIGURE_6_ROWS, END},
  {"Figure 6, height 32", 9, 4, 32, FIGURE_6_COLUMNS, FIGURE_6_PERM, FIGURE_6_BLOCKS, FIGURE_6_ROWS, END},
  {"Figure 6, height 2", 9, 4, 2,  FIGURE_6_COLUMNS, FIGURE_6_PERM, FIGURE_6_BLOCKS, FIGURE_6_ROWS, END},
  {"Figure 6, height 1", 9, 4, 1,  FIGURE_6_COLUMNS, FIGURE_6_PERM,
   {0, 4, 8, 12, 16, 17, 18, 22, 26, 30, 34, 38, 41, 45, 47, 50, -1},
   {0, 0, 4, 4, 8, 8, 1, 1, 5, 5, 2, 6, 3, 7, 6, -1},
   {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1},
   {4, 4, 4, 4, 1, 1, 4, 4, 4, 4, 4, 3, 4, 2, 3, -1},
   {RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, DISTINCT | SHARED, DISTINCT | SHARED, RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, RUNS | SHARED, ONE_ROW | SHARED,
    DISTINCT | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, -1},
   FIGURE_6_ROWS, END},
  {"equal columns, no limit", 5, 4, 0, EQUAL_COLUMNS, EQUAL_PERM, {0, 20, 35, -1}, {0, 4, -1}, {5, 5, -1}, {4, 3, -1}, {ONE_ROW | SHARED, ONE_ROW | SHARED, -1}, EQUAL_ROWS, END},
  {"equal columns, height 4", 5, 4, 4, EQUAL_COLUMNS, EQUAL_PERM, {0, 16, 20, 32, 35, -1}, {0, 0, 4, 4, -1}, {4, 1, 4, 1, -1}, {4, 4, 3, 3, -1},
   {ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, -1}, EQUAL_ROWS, END},
  {"equal columns, height 2", 5, 4, 2, EQUAL_COLUMNS, EQUAL_PERM, {0, 8, 16, 20, 26, 32, 35, -1}, {0, 0, 0, 4, 4, 4, -1}, {2, 2, 1, 2, 2, 1, -1}, {4, 4, 4, 3, 3, 3, -1},
   {ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, ONE_ROW | SHARED, -1}, EQUAL_ROWS, END},
  {"empty columns", 3, 4, 0, {END, TOP3, END, TOP1, END, END, END, END, END}, {3, 1, -1}, {0, 2, 4, -1}, {0, 1, -1}, {1, 2, -1}, {2, 1, -1}, {ONE_ROW, DISTINCT, -1}, {0, 0, 1, 2, -1}, END},
  {"fewer columns than a block has", 2, 32, 1, {TOP2, TOP2, TOP2, END, END, END, END, END, END}, {0, 1, 2, -1}, {0, 3, 6, -1}, {0, 0, -1}, {1, 1, -1}, {3, 3, -1}, {ONE_ROW, ONE_ROW, -1},
   {0, 0, 0, 1, 1, 1, -1}, END},
  {"a full column, no limit", 9, 4, 0, FULL_COLUMNS, FULL_PERM, {0, 3, 11, -1}, {0, 2, -1}, {1, 8, -1}, {3, 1, -1}, {ONE_ROW, DISTINCT, -1}, FULL_ROWS, END},
  {"a full column, height 4", 9, 32, 4, FULL_COLUMNS, FULL_PERM, {0, 3, 7, 11, -1}, {0, 2, 2, -1}, {1, 4, 4, -1}, {3, 1, 1, -1}, {ONE_ROW, DISTINCT, DISTINCT, -1}, FULL_ROWS, END},
  {"a full column, height 1", 9, 32, 1, FULL_COLUMNS, FULL_PERM, {0, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1}, {0, 2, 2, 2, 2, 2, 2, 2, 2, -1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, -1},
   {3, 1, 1, 1, 1, 1, 1, 1, 1, -1}, {ONE_ROW, DISTINCT, DISTINCT, DISTINCT, DISTINCT, DISTINCT, DISTINCT, DISTINCT, DISTINCT, -1}, FULL_ROWS, END},
  {"one entry", 3, 32, 1, {END, {2, -1}, END, END, END, END, END, END, END}, {1, -1}, {0, 1, -1}, {0, -1}, {1, -1}, {1, -1}, {DISTINCT, -1}, {2, -1}, END},
  /* row 3 stands apart in the only line: two lanes add to it */
  {"a row apart", 6, 32, 1, {{3, -1}, {5, -1}, {3, -1}, END, END, END, END, END, END}, {0, 1, 2, -1}, {0, 3, -1}, {0, -1}, {1, -1}, {3, -1}, {DISTINCT | SHARED, -1}, {3, 5, 3, -1}, END},
  /* row 1 is in both lines of a block, at different columns, and in no other block */
  {"a row in two lines", 4, 32, 2, {{0, 1, -1}, {1, 2, -1}, END, END, END, END, END, END, END}, {0, 1, -1}, {0, 4, -1}, {0, -1}, {2, -1}, {2, -1}, {DISTINCT, -1}, {0, 1, 1, 2, -1}, END},
  /* groups of columns 4, 8, 0, 1; 5, 7, 2, 3; 6 with 2, 4, 5, 6; 6, 6, 7, 7; 7 entries */
  {"Figure 6, groups", 9, 4, 0, FIGURE_6_COLUMNS, FIGURE_6_PERM, {0, 8, 14, 16, 17, 41, 43, 50, -1}, {0, 1, 2, 3, 4, 6, 8, -1}, {2, 2, 1, 1, 6, 1, 7, -1}, {4, 3, 2, 1, 4, 2, 1, -1},
   {RUNS | SHARED, RUNS | SHARED, ONE_ROW | SHARED, DISTINCT | SHARED, RUNS | SHARED, ONE_ROW | SHARED, DISTINCT | SHARED, -1},
   {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 1, 0, 0, 0, 2, 2, 1, 1, 4, 4, 3, 3, 5, 6, 4, 5, 6, 7, 6, 6, 7, 8, 7, 7, 8, 8, 0, 1, 3, 5, 6, 7, 8, -1}, {0, 4, 6, 7, -1}},
  /* 4 lines of 4 columns are cut, 4 of 3, 8 of 2, 16 of 1 */
  {"Figure 6, groups, height 4", 9, 4, 4, FIGURE_6_COLUMNS, FIGURE_6_PERM, {0, 8, 14, 16, 17, 33, 41, 43, 50, -1}, {0, 1, 2, 3, 4, 4, 6, 8, -1}, {2, 2, 1, 1, 4, 2, 1, 7, -1},
   {4, 3, 2, 1, 4, 4, 2, 1, -1},
   {RUNS | SHARED, RUNS | SHARED, ONE_ROW | SHARED, DISTINCT | SHARED, RUNS | SHARED, RUNS | SHARED, ONE_ROW | SHARED, DISTINCT | SHARED, -1},
   {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 1, 0, 0, 0, 2, 2, 1, 1, 4, 4, 3, 3, 5, 6, 4, 5, 6, 7, 6, 6, 7, 8, 7, 7, 8, 8, 0, 1, 3, 5, 6, 7, 8, -1}, {0, 4, 5, 7, 8, -1}},
  {"empty columns, groups", 3, 4, 0, {END, TOP3, END, TOP1, END, END, END, END, END}, {0, 2, 4, 5, 6, 7, 8, 3, 1, -1}, {0, 1, 4, -1}, {7, 8, -1}, {1, 3, -1}, {1, 1, -1}, {DISTINCT | SHARED, DISTINCT | SHARED, -1},
   {0, 0, 1, 2, -1}, {0, 1, 2, -1}},
  {"equal columns, groups", 5, 4, 1, {TOP2, TOP2, TOP2, END, END, END, END, END, END}, {3, 4, 5, 6, 7, 8, 0, 1, 2, -1}, {0, 4, 6, -1}, {6, 8, -1}, {2, 2, -1}, {2, 1, -1}, {ONE_ROW | SHARED, DISTINCT | SHARED, -1}, {0, 0, 1, 1, 0, 1, -1}, {0, 1, 2, -1}},
};
/* clang-format on */

#define CHECK(name, n, mask) \
  for (PetscInt k = 0; k < PetscMax(n, 1); k++) PetscCall(TestCheckList(c->what, #name, n, c->name, -1, k, k < (n) ? (PetscInt)(fl->name[k] & (mask)) : -1))

static PetscErrorCode CheckArrays(const Case *c, const FastLoad *fl)
{
  PetscFunctionBegin;
  PetscCheck(fl->m == c->m && fl->n == 9 && fl->length == c->length, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: shape", c->what);
  CHECK(perm, fl->ncols, -1);
  CHECK(blkPtr, fl->blkNum + 1, -1);
  CHECK(blkColIdx, fl->blkNum, -1);
  CHECK(blkHeight, fl->blkNum, -1);
  CHECK(blkLength, fl->blkNum, -1);
  CHECK(blkClass, fl->blkNum, 3 | FASTLOAD_SHARED);
  if (c->taskBlk[0] == 0) CHECK(taskBlk, fl->taskNum + 1, -1);
  else
    for (PetscInt b = 0; b <= fl->blkNum; b++) PetscCheck(fl->taskNum == fl->blkNum && fl->taskBlk[b] == b, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: task %" PetscInt_FMT, c->what, b);
  PetscCheck(!fl->longNum && !fl->csrIdx && fl->blknz == fl->nz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: long rows", c->what);
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    for (PetscCount k = fl->blkPtr[b]; k < fl->blkPtr[b + 1]; k++) {
      const PetscInt    lane = (PetscInt)((k - fl->blkPtr[b]) % fl->blkLength[b]), line = (PetscInt)((k - fl->blkPtr[b]) / fl->blkLength[b]);
      const PetscInt    row    = FastLoadRow(fl->blkClass[b], fl->lineRow[fl->blkLine[b] + line], fl->rowIdx + fl->blkRow[b], line * fl->blkLength[b], lane);
      const PetscInt    column = fl->perm[fl->blkColIdx[b] + lane];
      const PetscScalar value  = TestValue(1, row, column);

      PetscCall(TestCheckList(c->what, "rowIdx", (PetscInt)fl->nz, c->rowIdx, -1, (PetscInt)k, row));
      PetscCheck(fl->value[k] == value, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: value[%" PetscCount_FMT "] is not that of row %" PetscInt_FMT ", column %" PetscInt_FMT, c->what, k, row, column);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of a case in CSR; freed by PetscFree3() */
static PetscErrorCode GetCSR(const Case *c, PetscInt **i, PetscInt **j, PetscScalar **a)
{
  PetscInt nz = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(c->m + 1, i, 9 * c->m, j, 9 * c->m, a));
  (*i)[0] = 0;
  for (PetscInt r = 0; r < c->m; r++) {
    for (PetscInt col = 0; col < 9; col++) {
      for (PetscInt k = 0; c->columns[col][k] >= 0; k++) {
        if (c->columns[col][k] != r) continue;
        (*j)[nz]   = col;
        (*a)[nz++] = TestValue(1, r, col);
      }
    }
    (*i)[r + 1] = nz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestArrays(const Case *c)
{
  const FastLoadOptions options = {.height = c->height, .groups = (PetscBool)(c->taskBlk[0] == 0)};
  GallopCSR             csr     = {.m = c->m, .n = 9, .memtype = PETSC_MEMTYPE_HOST};
  PetscInt             *i, *j;
  PetscScalar          *a;
  FastLoad             *fl;

  PetscFunctionBegin;
  PetscCall(GetCSR(c, &i, &j, &a));
  csr.nz = i[c->m];
  csr.i = csr.host_i = i;
  csr.j              = j;
  csr.a              = a;
  PetscCall(FastLoadBuild_Host(c->length, &options, &csr, 0, &fl));
  PetscCall(CheckArrays(c, fl));
  PetscCall(FastLoadDestroyHostCopy(&fl));
  PetscCall(FastLoadBuild_Host(c->length, &options, &csr, 10, &fl));
  PetscCheck(!fl, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: built in 10 bytes", c->what);
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetFormat(Mat A, const char what[], FastLoad **copy)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(TestFormatData(A, what, &data));
  PetscCall(FastLoadCopyToHost((const FastLoad *)data, copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products where the vectors of MatCreateVecs() live, and the arrays of blocks of 32 columns there */
static PetscErrorCode TestMatrix(const Case *c)
{
  Mat                 A;
  Vec                 x, y, z;
  PetscInt           *i, *j;
  PetscScalar        *a;
  char                height[16];
  MatGallopStatistics stats;

  PetscFunctionBegin;
  PetscCall(GetCSR(c, &i, &j, &a));
  PetscCall(PetscSNPrintf(height, sizeof(height), "%" PetscInt_FMT, c->height));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_block_height", height));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_group_steps", c->taskBlk[0] == 0 ? "true" : "false"));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, c->m, 9, c->m, 9));
  PetscCall(MatSetType(A, MATFASTLOAD));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestSetVec(x, 2));
  PetscCall(TestSetVec(y, 3));
  for (int k = 0; k < 2; k++) {
    FastLoad *copy;

    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, c->what));
    PetscCall(TestAdds(A, A, TEST_MULT, x, y, z, c->what));
    PetscCall(MatMultTranspose(A, y, x));
    PetscCall(TestCompare(A, TEST_TRANSPOSE, y, NULL, x, c->what));
    PetscCall(TestSetVec(x, 2));
    PetscCall(GetFormat(A, c->what, &copy));
    if (c->length == FASTLOAD_LENGTH && !k) PetscCall(CheckArrays(c, copy));
    PetscCall(FastLoadDestroyHostCopy(&copy));
    PetscCall(MatScale(A, 3.0));
  }
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(stats.builds == 1 && stats.refreshes == 1 && stats.products_host + stats.products_device == 8, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", c->what,
             stats.builds, stats.refreshes);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products of a matrix, and its format */
static PetscErrorCode TestProductsOf(Mat A, const char what[], FastLoad **copy)
{
  PetscFunctionBegin;
  PetscCall(TestFormatProducts(A, what));
  PetscCall(GetFormat(A, what, copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two columns with an entry each: how their rows are stored depends on how far they are apart */
static PetscErrorCode TestWidths(void)
{
  static const struct {
    PetscInt row[2];
    int      width;
  } cases[] = {
    {{7, 8},         FASTLOAD_IMPLIED},
    {{7, 7},         FASTLOAD_IMPLIED},
    {{8, 7},         FASTLOAD_BYTE   },
    {{7, 9},         FASTLOAD_BYTE   },
    {{7, 7 + 255},   FASTLOAD_BYTE   },
    {{7 + 256, 7},   FASTLOAD_SHORT  },
    {{7, 7 + 65535}, FASTLOAD_SHORT  },
    {{7 + 65536, 7}, FASTLOAD_INT    },
  };

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_group_steps", "true"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_block_height", "-1"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Mat       A;
    FastLoad *fl;
    char      what[64];

    PetscCall(PetscSNPrintf(what, sizeof(what), "rows %" PetscInt_FMT " and %" PetscInt_FMT, cases[k].row[0], cases[k].row[1]));
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, 70000, 2, 70000, 2));
    PetscCall(MatSetType(A, MATFASTLOAD));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSeqAIJSetPreallocation(A, 2, NULL));
    for (PetscInt c = 0; c < 2; c++) PetscCall(MatSetValue(A, cases[k].row[c], c, TestValue(1, cases[k].row[c], c), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(TestProductsOf(A, what, &fl));
    TestCheck(fl->blkNum == 1 && FASTLOAD_WIDTH(fl->blkClass[0]) == cases[k].width, "%" PetscInt_FMT " blocks, class %d", what, fl->blkNum, fl->blkClass[0]);
    TestCheck(fl->blkRow[1] == FastLoadRowBytes(cases[k].width, 2), "%" PetscCount_FMT " bytes", what, fl->blkRow[1]);
    PetscCall(FastLoadDestroyHostCopy(&fl));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays of the user's own need not have the columns of a row in order: where entries are is stored then */
static PetscErrorCode TestUnsorted(void)
{
  PetscInt    i[] = {0, 3, 4, 4, 7}, j[] = {2, 0, 4, 1, 3, 4, 0};
  PetscScalar a[7];
  Mat         A;
  FastLoad   *fl;

  PetscFunctionBegin;
  for (int k = 0; k < 7; k++) a[k] = TestValue(5, k, 0);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 4, 5, i, j, a, &A));
  PetscCall(MatConvert(A, MATFASTLOAD, MAT_INPLACE_MATRIX, &A));
  PetscCall(TestProductsOf(A, "unsorted rows", &fl));
  PetscCheck(fl->csrIdx, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no places in CSR of unsorted rows");
  PetscCall(FastLoadDestroyHostCopy(&fl));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A full row among short ones: long by its length and by the option, and not long */
static PetscErrorCode TestLongRows(void)
{
  static const char *const limits[] = {"0", "1999", "2000"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(limits); k++) {
    const PetscInt n = 2000, longrows = k < 2;
    Mat            A;
    FastLoad      *fl;
    char           what[64];

    PetscCall(PetscSNPrintf(what, sizeof(what), "a full row, limit %s", limits[k]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_long_row", limits[k]));
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, n, n, n, n));
    PetscCall(MatSetType(A, MATFASTLOAD));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    for (PetscInt r = 0; r < n; r++) PetscCall(MatSetValue(A, r, n - 1 - r, TestValue(1, r, 0), INSERT_VALUES));
    for (PetscInt c = 0; c < n; c++) PetscCall(MatSetValue(A, 5, c, TestValue(2, 5, c), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(TestProductsOf(A, what, &fl));
    TestCheck(fl->longNum == longrows && fl->nz - fl->blknz == longrows * n, "%" PetscInt_FMT " long rows", what, fl->longNum);
    PetscCall(FastLoadDestroyHostCopy(&fl));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_long_row", "0"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with 8 entries that lie anywhere, empty ones between them: where the result is large columns are cut, so that a task adds to a part of it. Matrices with two results. */
static PetscErrorCode TestLarge(void)
{
  const PetscInt n = 61440, apart[] = {7, 140};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat       A;
    FastLoad *fl;

    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, apart[k] * n, n, 8, NULL, &A));
    for (PetscInt q = 0; q < n; q++) {
      for (PetscInt e = 0; e < 8; e++) PetscCall(MatSetValue(A, apart[k] * q, (q + e * n / 8) % n, TestValue(3, q, e), INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatConvert(A, MATFASTLOAD, MAT_INPLACE_MATRIX, &A));
    PetscCall(TestProductsOf(A, "a large result", &fl));
    if (sizeof(PetscScalar) == 8) PetscCheck(fl->height == (k ? 2 : 4), PETSC_COMM_SELF, PETSC_ERR_PLIB, "a large result: height %" PetscInt_FMT, fl->height);
    PetscCall(FastLoadDestroyHostCopy(&fl));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscCall(TestArrays(&cases[k]));
    PetscCall(TestMatrix(&cases[k]));
  }
  PetscCall(TestWidths());
  if (!PetscDefined(USE_DEBUG)) PetscCall(TestUnsorted()); /* a PETSc with debugging refuses such arrays */
  PetscCall(TestLongRows());
  PetscCall(TestLarge());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out

TEST*/
