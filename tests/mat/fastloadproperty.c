/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Random matrices of many shapes in the FastLoad format: what its arrays must be, whoever built them, products, Inf and NaN in x; arrays of host and GPU against each other.\n\n";

#include "propertytest.h"
#include "../../src/mat/impls/fastload/fastload.h"

static PetscErrorCode CreateMatrix(TestLaw law, PetscInt number, Mat *A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  TestPropertySize(number, &m, &n);
  PetscCall(TestCreateByLaw(law, number, m, n, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the format is built with */
typedef struct {
  PetscInt  height, window, long_row;
  PetscBool groups, deterministic, sorted_x;
  int       sums;
} Setting;

static const Setting settings[] = {
  {-1, 0,  0, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     }, /* the defaults */
  {0,  0,  0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     }, /* the paper's */
  {1,  0,  0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {8,  0,  0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {4,  0,  3, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {0,  0,  0, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {2,  0,  7, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {32, 32, 0, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {4,  64, 5, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {-1, 0,  0, PETSC_TRUE,  PETSC_TRUE,  PETSC_FALSE, FASTLOAD_SUMS_ALL     },
  {-1, 0,  0, PETSC_TRUE,  PETSC_FALSE, PETSC_TRUE,  FASTLOAD_SUMS_ALL     },
  {4,  0,  3, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE,  FASTLOAD_SUMS_ALL     }, /* the paper's product, too */
  {-1, 0,  0, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_SEGMENTS},
  {2,  0,  7, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_NONE    },
  {4,  0,  3, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE,  FASTLOAD_SUMS_SEGMENTS},
  {8,  0,  0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, FASTLOAD_SUMS_NONE    },
};

/* What holds for the arrays of any matrix */
static PetscErrorCode CheckArrays(Mat A, const FastLoad *fl, const Setting *o, const char what[])
{
  const PetscInt     height = o->deterministic ? 0 : o->height < 0 ? 1 : o->height, window = o->window ? o->window : PETSC_INT_MAX;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, *count, *block, chain = 0, task = 0, line = 0, longrows = 0, single = 1, zeros = !o->groups;
  PetscInt          *taken, *last; /* entries of each sorted column in the blocks so far, and the row of the last one */
  PetscBool          done, *seen, *apart;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  TestCheck(fl->nz == i[m] && fl->blkPtr[0] == 0 && fl->blkPtr[fl->blkNum] == fl->blknz && fl->height == height, "entries", what);
  TestCheck(!!fl->csrIdx == o->deterministic, "csrIdx", what);
  PetscCall(PetscCalloc6(n, &count, fl->nz, &seen, m, &block, m, &apart, n, &taken, n, &last));
  for (PetscInt r = 0; r < m; r++) {
    if (o->long_row && !o->deterministic && i[r + 1] - i[r] > o->long_row) {
      TestCheck(fl->longRow[longrows] == r && fl->longPtr[longrows + 1] - fl->longPtr[longrows] == i[r + 1] - i[r], "row %" PetscInt_FMT " is long", what, r);
      for (PetscInt k = 0; k < i[r + 1] - i[r]; k++) {
        const PetscCount at = fl->longPtr[longrows] + k;

        TestCheck(fl->longCol[at] == j[i[r] + k] && fl->value[fl->blknz + at] == a[i[r] + k], "entry %" PetscInt_FMT " of long row %" PetscInt_FMT, what, k, r);
        seen[i[r] + k] = PETSC_TRUE;
      }
      longrows++;
    } else {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) count[j[k]]++;
    }
  }
  TestCheck(fl->longNum == longrows && fl->longPtr[longrows] == fl->nz - fl->blknz, "%" PetscInt_FMT " long rows, should be %" PetscInt_FMT, what, fl->longNum, longrows);
  {
    PetscInt empty = 0;

    for (PetscInt c = 0; c < n; c++) empty += count[c] == 0;
    TestCheck(fl->ncols == (o->groups ? n : n - empty), "%" PetscInt_FMT " columns", what, fl->ncols);
  }
  for (PetscInt s = 0; s < fl->ncols; s++) {
    const PetscInt c = fl->perm[s], b = s ? fl->perm[s - 1] : -1;

    TestCheck(o->groups || count[c] > 0, "an empty column", what);
    if (s && s / window == (s - 1) / window) TestCheck(count[b] < count[c] || (count[b] == count[c] && b < c), "columns are not sorted stably", what);
    if (o->groups) TestCheck(s / window == c / window, "column %" PetscInt_FMT " left its window", what, c);
    if (o->groups && (s % FASTLOAD_LENGTH == FASTLOAD_LENGTH - 1 || s == fl->ncols - 1)) {
      if (!count[fl->perm[s / FASTLOAD_LENGTH * FASTLOAD_LENGTH]]) zeros = 1;
    }
  }
  if (!o->groups) single = 0;
  for (PetscInt r = 0; r < m; r++) block[r] = -1;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscInt length = fl->blkLength[b], first = fl->blkColIdx[b], end = o->groups ? PetscMin(fl->ncols, (first / FASTLOAD_LENGTH + 1) * FASTLOAD_LENGTH) : fl->ncols;
    PetscBool      runs = PETSC_FALSE, onerow = PETSC_TRUE, follow = PETSC_TRUE, begins;
    PetscInt       spread = 0, longest = 1, run = 1, most = height; /* lines; blocks of few columns may have more */

    for (PetscInt k = length; o->groups && 2 * k <= FASTLOAD_LENGTH; k *= 2) most *= 2;
    TestCheck(length >= 1 && length <= FASTLOAD_LENGTH && fl->blkHeight[b] >= 1 && (!height || fl->blkHeight[b] <= most) && first >= 0 && first + length <= end, "block %" PetscInt_FMT, what, b);
    TestCheck(fl->blkPtr[b + 1] - fl->blkPtr[b] == (PetscCount)length * fl->blkHeight[b], "block %" PetscInt_FMT " has padding", what, b);
    TestCheck((!o->groups && length == FASTLOAD_LENGTH) || first + length == end, "block %" PetscInt_FMT " is short", what, b);
    TestCheck(fl->blkLine[b] == line && fl->blkRow[b] % FASTLOAD_ALIGN == 0, "block %" PetscInt_FMT ": lines", what, b);
    begins = (PetscBool)(!o->groups || (height ? taken[first] % most == 0 || (count[fl->perm[end - 1]] > height && chain == FASTLOAD_CHAIN) : taken[first] == 0));
    chain  = begins ? 1 : chain + 1;
    if (begins && taken[first]) single = 0;
    if (begins) TestCheck(fl->taskBlk[task++] == b, "block %" PetscInt_FMT " does not begin a task", what, b);
    if (o->groups) TestCheck(begins || (b && fl->blkColIdx[b - 1] / FASTLOAD_LENGTH == first / FASTLOAD_LENGTH), "the task of block %" PetscInt_FMT, what, b);
    for (PetscInt k = 0; k < fl->blkPtr[b + 1] - fl->blkPtr[b]; k++) {
      const PetscInt   lane = k % length, col = first + lane, q = k / length, low = fl->lineRow[line + q];
      const PetscInt   row    = FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane);
      const PetscInt   before = lane ? FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane - 1) : -1;
      const PetscInt   top    = FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, 0);
      const PetscCount at     = fl->blkPtr[b] + k;
      PetscInt         from   = -1;

      TestCheck(row >= low && row < m, "row %" PetscInt_FMT, what, row);
      for (PetscInt e = i[row]; e < i[row + 1]; e++)
        if (j[e] == fl->perm[col]) from = e;
      TestCheck(from >= 0 && !seen[from] && (!fl->csrIdx || fl->csrIdx[at] == from), "the entry of row %" PetscInt_FMT ", column %" PetscInt_FMT, what, row, fl->perm[col]);
      seen[from] = PETSC_TRUE;
      TestCheck(fl->value[at] == a[from], "entry %" PetscInt_FMT, what, from);
      TestCheck(!taken[col] || last[col] < row, "column %" PetscInt_FMT " is not in order of rows", what, fl->perm[col]);
      last[col] = row;
      taken[col]++;
      TestCheck(!lane || taken[col] == taken[col - 1], "the columns of block %" PetscInt_FMT " are not equally far", what, b);
      if (block[row] >= 0 && block[row] != b) apart[row] = PETSC_TRUE;
      block[row] = b;
      for (PetscInt p = 0; p < lane - 1; p++)
        if (before != row && FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, p) == row) apart[row] = PETSC_TRUE;
      if (lane && before == row) runs = PETSC_TRUE;
      if (lane && before != row) onerow = PETSC_FALSE;
      if (row != top + lane) follow = PETSC_FALSE;
      run     = lane && before == row ? run + 1 : 1;
      longest = PetscMax(longest, run);
      spread  = PetscMax(spread, row - low);
    }
    line += fl->blkHeight[b];
    TestCheck(FASTLOAD_ADD(fl->blkClass[b]) == (!runs || o->sums == FASTLOAD_SUMS_NONE   ? FASTLOAD_DISTINCT
                                                : onerow && o->sums == FASTLOAD_SUMS_ALL ? FASTLOAD_ONE_ROW
                                                                                         : FASTLOAD_RUNS),
              "block %" PetscInt_FMT " is of class %d", what, b, fl->blkClass[b]);
    TestCheck(FASTLOAD_WIDTH(fl->blkClass[b]) == (follow || (runs && onerow && o->sums == FASTLOAD_SUMS_ALL) ? FASTLOAD_IMPLIED
                                                  : spread < 256                                             ? FASTLOAD_BYTE
                                                                                                             : FASTLOAD_SHORT),
              "block %" PetscInt_FMT " stores rows by width %d", what, b, FASTLOAD_WIDTH(fl->blkClass[b]));
    TestCheck(1 << FASTLOAD_STEPS(fl->blkClass[b]) >= longest && (longest == 1 || 1 << (FASTLOAD_STEPS(fl->blkClass[b]) - 1) < longest), "block %" PetscInt_FMT " has runs of %" PetscInt_FMT, what, b, longest);
    TestCheck(fl->blkRow[b + 1] - fl->blkRow[b] == FastLoadRowBytes(FASTLOAD_WIDTH(fl->blkClass[b]), fl->blkPtr[b + 1] - fl->blkPtr[b]), "bytes of block %" PetscInt_FMT, what, b);
  }
  TestCheck(fl->taskNum == task && fl->taskBlk[task] == fl->blkNum && fl->lineNum == line, "%" PetscInt_FMT " tasks", what, fl->taskNum);
  for (PetscCount k = 0; k < fl->nz; k++) TestCheck(seen[k], "entry %" PetscCount_FMT " is missing", what, k);
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    PetscBool shared = PETSC_FALSE;

    for (PetscInt k = 0; k < fl->blkPtr[b + 1] - fl->blkPtr[b]; k++) {
      const PetscInt length = fl->blkLength[b], q = k / length, lane = k % length, low = fl->lineRow[fl->blkLine[b] + q];
      const PetscInt row = FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane);

      if (apart[row]) shared = PETSC_TRUE;
      if (o->sums == FASTLOAD_SUMS_NONE && lane && FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane - 1) == row) shared = PETSC_TRUE;
    }
    TestCheck(!!(fl->blkClass[b] & FASTLOAD_SHARED) == shared, "block %" PetscInt_FMT " is of class %d", what, b, fl->blkClass[b]);
  }
  TestCheck(fl->single == single && fl->zeros == zeros, "single is %d, zeros %d", what, fl->single, fl->zeros);
  PetscCall(PetscFree6(count, seen, block, apart, taken, last));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What host and GPU have built is the same */
static PetscErrorCode CompareArrays(const FastLoad *h, const FastLoad *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, ncols, what);
  TestSameNumber(h, d, blkNum, what);
  TestSameNumber(h, d, nz, what);
  TestSameNumber(h, d, blknz, what);
  TestSameNumber(h, d, lineNum, what);
  TestSameNumber(h, d, taskNum, what);
  TestSameNumber(h, d, longNum, what);
  TestSameNumber(h, d, single, what);
  TestSameNumber(h, d, zeros, what);
  TestSameNumber(h, d, height, what);
  TestSamePresence(h, d, csrIdx, what);
  TestSameArray(h, d, perm, h->ncols, what);
  TestSameArray(h, d, blkPtr, h->blkNum + 1, what);
  TestSameArray(h, d, blkColIdx, h->blkNum, what);
  TestSameArray(h, d, blkHeight, h->blkNum, what);
  TestSameArray(h, d, blkLength, h->blkNum, what);
  TestSameArray(h, d, blkClass, h->blkNum, what);
  TestSameArray(h, d, blkLine, h->blkNum + 1, what);
  TestSameArray(h, d, blkRow, h->blkNum + 1, what);
  TestSameArray(h, d, lineRow, h->lineNum, what);
  TestSameArray(h, d, rowIdx, h->blkRow[h->blkNum], what);
  TestSameArray(h, d, taskBlk, h->taskNum + 1, what);
  TestSameArray(h, d, value, h->nz, what);
  TestSameArray(h, d, longRow, h->longNum, what);
  TestSameArray(h, d, longPtr, h->longNum + 1, what);
  TestSameArray(h, d, longCol, h->nz - h->blknz, what);
  if (h->csrIdx) TestSameArray(h, d, csrIdx, h->blknz, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt setting, const char what[])
{
  const void *data;
  FastLoad   *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, &data));
  TestCheck(data, "no format", what);
  PetscCall(FastLoadCopyToHost((const FastLoad *)data, &h));
  PetscCall(CheckArrays(A, h, &settings[setting], what));
  TestCheck(h->options.sorted_x == settings[setting].sorted_x, "x is %ssorted for each product", what, h->options.sorted_x ? "" : "not ");
  if (device) {
    PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, &data));
    TestCheck(data, "no format on the GPU", what);
    TestCheck(!!((const FastLoad *)data)->sortedX == settings[setting].sorted_x, "%s memory for sorted x on the GPU", what, ((const FastLoad *)data)->sortedX ? "there is" : "no");
    PetscCall(FastLoadCopyToHost((const FastLoad *)data, &d));
    PetscCall(CompareArrays(h, d, what));
    PetscCall(FastLoadDestroyHostCopy(&d));
  }
  PetscCall(FastLoadDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOptions(PetscInt setting)
{
  static const char *const sums[] = {"all", "segments", "none"};

  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_fastload_block_height", settings[setting].height));
  PetscCall(TestSetIntOption("-mat_fastload_window", settings[setting].window));
  PetscCall(TestSetIntOption("-mat_fastload_long_row", settings[setting].long_row));
  PetscCall(TestSetIntOption("-mat_fastload_group_steps", settings[setting].groups));
  PetscCall(TestSetIntOption("-mat_fastload_deterministic", settings[setting].deterministic));
  PetscCall(TestSetIntOption("-mat_fastload_sorted_x", settings[setting].sorted_x));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_sums", sums[settings[setting].sums]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const TestLaw laws[]     = {TEST_LAW_RANDOM, TEST_LAW_BAND, TEST_LAW_POWER_COLUMNS, TEST_LAW_CROSS, TEST_LAW_EMPTY, TEST_LAW_EQUAL_COLUMNS, TEST_LAW_DENSE, TEST_LAW_ONE};
  const TestProperties properties = {.format = MATFASTLOAD, .laws = laws, .nlaws = PETSC_STATIC_ARRAY_LENGTH(laws), .nsettings = PETSC_STATIC_ARRAY_LENGTH(settings), .create = CreateMatrix, .setoptions = SetOptions, .check = CheckFormat};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestPropertiesRun(&properties, NULL));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
    test:
      suffix: 2
      args: -first 130
    test:
      suffix: 3
      args: -first 260
    test:
      suffix: 4
      args: -first 390

TEST*/
