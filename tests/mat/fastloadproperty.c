static char help[] = "Random matrices of many shapes in the FastLoad format: what its arrays must be, whoever built them, products, Inf and NaN in x; arrays of host and GPU against each other.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/fastload/fastload.h"

typedef enum {
  LAW_RANDOM,
  LAW_BAND,
  LAW_POWER,  /* few columns have most entries */
  LAW_COLUMN, /* a full column, and a full row */
  LAW_EMPTY,  /* most columns and rows */
  LAW_EQUAL,  /* all columns of the same length */
  LAW_DENSE,
  LAW_ONE, /* one entry */
  LAW_COUNT
} Law;

static PetscBool HasEntry(Law law, PetscInt seed, PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  const PetscReal r = TestRandom(seed, i, j), c = TestRandom(seed, -1, j);

  switch (law) {
  case LAW_RANDOM:
    return (PetscBool)(r < 0.05);
  case LAW_BAND:
    return (PetscBool)(i - j <= 2 && j - i <= 3);
  case LAW_POWER:
    return (PetscBool)(r < 0.002 / (0.002 + c));
  case LAW_COLUMN:
    return (PetscBool)(j == n / 2 || i == m / 3 || r < 0.02);
  case LAW_EMPTY:
    return (PetscBool)(c < 0.2 && TestRandom(seed, i, -1) < 0.2 && r < 0.4);
  case LAW_EQUAL:
    return (PetscBool)((i + 7 * j) % m < PetscMin(3, m));
  case LAW_DENSE:
    return (PetscBool)(r < 0.8);
  default:
    return (PetscBool)(i == m / 2 && j == n / 3);
  }
}

static PetscErrorCode CreateMatrix(Law law, PetscInt seed, PetscInt m, PetscInt n, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSetUp(*A));
  for (PetscInt i = 0; i < m; i++) {
    for (PetscInt j = 0; j < n; j++)
      if (HasEntry(law, seed, m, n, i, j)) PetscCall(MatSetValue(*A, i, j, TestValue(seed, i, j), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the format is built with */
typedef struct {
  PetscInt  height, window, long_row;
  PetscBool groups, deterministic;
} Setting;

static const Setting settings[] = {
  {-1, 0,  0, PETSC_TRUE,  PETSC_FALSE}, /* the defaults */
  {0,  0,  0, PETSC_FALSE, PETSC_FALSE}, /* the paper's */
  {1,  0,  0, PETSC_FALSE, PETSC_FALSE},
  {8,  0,  0, PETSC_FALSE, PETSC_FALSE},
  {4,  0,  3, PETSC_FALSE, PETSC_FALSE},
  {0,  0,  0, PETSC_TRUE,  PETSC_FALSE},
  {2,  0,  7, PETSC_TRUE,  PETSC_FALSE},
  {32, 32, 0, PETSC_TRUE,  PETSC_FALSE},
  {4,  64, 5, PETSC_TRUE,  PETSC_FALSE},
  {-1, 0,  0, PETSC_TRUE,  PETSC_TRUE },
};

#define PROPERTY(cond, ...) PetscCheck(cond, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", setting %" PetscInt_FMT ": " __VA_ARGS__)

/* What holds for the arrays of any matrix */
static PetscErrorCode CheckArrays(Mat A, const FastLoad *fl, PetscInt setting, PetscInt number)
{
  const Setting     *o      = &settings[setting];
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
  PROPERTY(fl->nz == i[m] && fl->blkPtr[0] == 0 && fl->blkPtr[fl->blkNum] == fl->blknz && fl->height == height, "entries", number, setting);
  PROPERTY(!!fl->csrIdx == o->deterministic, "csrIdx", number, setting);
  PetscCall(PetscCalloc6(n, &count, fl->nz, &seen, m, &block, m, &apart, n, &taken, n, &last));
  for (PetscInt r = 0; r < m; r++) {
    if (o->long_row && !o->deterministic && i[r + 1] - i[r] > o->long_row) {
      PROPERTY(fl->longRow[longrows] == r && fl->longPtr[longrows + 1] - fl->longPtr[longrows] == i[r + 1] - i[r], "row %" PetscInt_FMT " is long", number, setting, r);
      for (PetscInt k = 0; k < i[r + 1] - i[r]; k++) {
        const PetscCount at = fl->longPtr[longrows] + k;

        PROPERTY(fl->longCol[at] == j[i[r] + k] && fl->value[fl->blknz + at] == a[i[r] + k], "entry %" PetscInt_FMT " of long row %" PetscInt_FMT, number, setting, k, r);
        seen[i[r] + k] = PETSC_TRUE;
      }
      longrows++;
    } else {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) count[j[k]]++;
    }
  }
  PROPERTY(fl->longNum == longrows && fl->longPtr[longrows] == fl->nz - fl->blknz, "%" PetscInt_FMT " long rows, should be %" PetscInt_FMT, number, setting, fl->longNum, longrows);
  {
    PetscInt empty = 0;

    for (PetscInt c = 0; c < n; c++) empty += count[c] == 0;
    PROPERTY(fl->ncols == (o->groups ? n : n - empty), "%" PetscInt_FMT " columns", number, setting, fl->ncols);
  }
  for (PetscInt s = 0; s < fl->ncols; s++) {
    const PetscInt c = fl->perm[s], b = s ? fl->perm[s - 1] : -1;

    PROPERTY(o->groups || count[c] > 0, "an empty column", number, setting);
    if (s && s / window == (s - 1) / window) PROPERTY(count[b] < count[c] || (count[b] == count[c] && b < c), "columns are not sorted stably", number, setting);
    if (o->groups) PROPERTY(s / window == c / window, "column %" PetscInt_FMT " left its window", number, setting, c);
    if (o->groups && (s % FASTLOAD_LENGTH == FASTLOAD_LENGTH - 1 || s == fl->ncols - 1)) {
      if (!count[fl->perm[s / FASTLOAD_LENGTH * FASTLOAD_LENGTH]]) zeros = 1;
    }
  }
  if (!o->groups) single = 0;
  for (PetscInt r = 0; r < m; r++) block[r] = -1;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscInt length = fl->blkLength[b], first = fl->blkColIdx[b], end = o->groups ? PetscMin(fl->ncols, (first / FASTLOAD_LENGTH + 1) * FASTLOAD_LENGTH) : fl->ncols;
    PetscBool      runs = PETSC_FALSE, onerow = PETSC_TRUE, follow = PETSC_TRUE, begins;
    PetscInt       spread = 0, longest = 1, run = 1, most = height; /* lines, of few columns more */

    for (PetscInt k = length; o->groups && 2 * k <= FASTLOAD_LENGTH; k *= 2) most *= 2;
    PROPERTY(length >= 1 && length <= FASTLOAD_LENGTH && fl->blkHeight[b] >= 1 && (!height || fl->blkHeight[b] <= most) && first >= 0 && first + length <= end, "block %" PetscInt_FMT, number, setting, b);
    PROPERTY(fl->blkPtr[b + 1] - fl->blkPtr[b] == (PetscCount)length * fl->blkHeight[b], "block %" PetscInt_FMT " has padding", number, setting, b);
    PROPERTY((!o->groups && length == FASTLOAD_LENGTH) || first + length == end, "block %" PetscInt_FMT " is short", number, setting, b);
    PROPERTY(fl->blkLine[b] == line && fl->blkRow[b] % FASTLOAD_ALIGN == 0, "block %" PetscInt_FMT ": lines", number, setting, b);
    begins = (PetscBool)(!o->groups || (height ? taken[first] % most == 0 || (count[fl->perm[end - 1]] > height && chain == FASTLOAD_CHAIN) : taken[first] == 0));
    chain  = begins ? 1 : chain + 1;
    if (begins && taken[first]) single = 0;
    if (begins) PROPERTY(fl->taskBlk[task++] == b, "block %" PetscInt_FMT " does not begin a task", number, setting, b);
    if (o->groups) PROPERTY(begins || (b && fl->blkColIdx[b - 1] / FASTLOAD_LENGTH == first / FASTLOAD_LENGTH), "the task of block %" PetscInt_FMT, number, setting, b);
    for (PetscInt k = 0; k < fl->blkPtr[b + 1] - fl->blkPtr[b]; k++) {
      const PetscInt   lane = k % length, col = first + lane, q = k / length, low = fl->lineRow[line + q];
      const PetscInt   row    = FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane);
      const PetscInt   before = lane ? FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, lane - 1) : -1;
      const PetscInt   top    = FastLoadRow(fl->blkClass[b], low, fl->rowIdx + fl->blkRow[b], q * length, 0);
      const PetscCount at     = fl->blkPtr[b] + k;
      PetscInt         from   = -1;

      PROPERTY(row >= low && row < m, "row %" PetscInt_FMT, number, setting, row);
      for (PetscInt e = i[row]; e < i[row + 1]; e++)
        if (j[e] == fl->perm[col]) from = e;
      PROPERTY(from >= 0 && !seen[from] && (!fl->csrIdx || fl->csrIdx[at] == from), "the entry of row %" PetscInt_FMT ", column %" PetscInt_FMT, number, setting, row, fl->perm[col]);
      seen[from] = PETSC_TRUE;
      PROPERTY(fl->value[at] == a[from], "entry %" PetscInt_FMT, number, setting, from);
      PROPERTY(!taken[col] || last[col] < row, "column %" PetscInt_FMT " is not in order of rows", number, setting, fl->perm[col]);
      last[col] = row;
      taken[col]++;
      PROPERTY(!lane || taken[col] == taken[col - 1], "the columns of block %" PetscInt_FMT " are not equally far", number, setting, b);
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
    PROPERTY(FASTLOAD_ADD(fl->blkClass[b]) == (!runs ? FASTLOAD_DISTINCT : onerow ? FASTLOAD_ONE_ROW : FASTLOAD_RUNS), "block %" PetscInt_FMT " is of class %d", number, setting, b, fl->blkClass[b]);
    PROPERTY(FASTLOAD_WIDTH(fl->blkClass[b]) == (follow || (runs && onerow) ? FASTLOAD_IMPLIED
                                                 : spread < 256             ? FASTLOAD_BYTE
                                                                            : FASTLOAD_SHORT),
             "block %" PetscInt_FMT " stores rows by width %d", number, setting, b, FASTLOAD_WIDTH(fl->blkClass[b]));
    PROPERTY(1 << FASTLOAD_STEPS(fl->blkClass[b]) >= longest && (longest == 1 || 1 << (FASTLOAD_STEPS(fl->blkClass[b]) - 1) < longest), "block %" PetscInt_FMT " has runs of %" PetscInt_FMT, number, setting, b, longest);
    PROPERTY(fl->blkRow[b + 1] - fl->blkRow[b] == FastLoadRowBytes(FASTLOAD_WIDTH(fl->blkClass[b]), fl->blkPtr[b + 1] - fl->blkPtr[b]), "bytes of block %" PetscInt_FMT, number, setting, b);
  }
  PROPERTY(fl->taskNum == task && fl->taskBlk[task] == fl->blkNum && fl->lineNum == line, "%" PetscInt_FMT " tasks", number, setting, fl->taskNum);
  for (PetscCount k = 0; k < fl->nz; k++) PROPERTY(seen[k], "entry %" PetscCount_FMT " is missing", number, setting, k);
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    PetscBool shared = PETSC_FALSE;

    for (PetscInt k = 0; k < fl->blkPtr[b + 1] - fl->blkPtr[b]; k++) {
      const PetscInt q = k / fl->blkLength[b];

      if (apart[FastLoadRow(fl->blkClass[b], fl->lineRow[fl->blkLine[b] + q], fl->rowIdx + fl->blkRow[b], q * fl->blkLength[b], k % fl->blkLength[b])]) shared = PETSC_TRUE;
    }
    PROPERTY(!!(fl->blkClass[b] & FASTLOAD_SHARED) == shared, "block %" PetscInt_FMT " is of class %d", number, setting, b, fl->blkClass[b]);
  }
  PROPERTY(fl->single == single && fl->zeros == zeros, "single is %d, zeros %d", number, setting, fl->single, fl->zeros);
  PetscCall(PetscFree6(count, seen, block, apart, taken, last));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors of a type */
static PetscErrorCode CheckProducts(Mat A, Mat B, VecType vectype, PetscInt number, PetscInt setting)
{
  Vec                 x, y, z, u;
  PetscInt            m, n;
  MatGallopStatistics before, after;
  PetscBool           device;
  char                what[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", setting %" PetscInt_FMT, number, setting));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &device));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, n, n));
  PetscCall(VecSetType(x, vectype));
  PetscCall(VecCreate(PETSC_COMM_SELF, &z));
  PetscCall(VecSetSizes(z, m, m));
  PetscCall(VecSetType(z, vectype));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(TestSetVec(x, number));
  PetscCall(TestSetVec(y, number + 1));
  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(TestAdds(B, A, TEST_MULT, x, y, z, what));

  PetscCall(TestTransposed(B, A, x, y, u, what));

  PetscCall(TestSpecial(B, A, TEST_MULT, x, z, what));
  PetscCall(TestSpecial(B, A, TEST_TRANSPOSE, y, u, what));
  PetscCall(MatGallopGetStatistics(B, &after));
  PROPERTY((device ? after.products_device - before.products_device : after.products_host - before.products_host) == 10, "not all products were the format's", number, setting);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SAME(what, n) PROPERTY(!(n) || !memcmp(h->what, d->what, (size_t)(n) * sizeof(*h->what)), "host and GPU differ in " #what, number, setting);

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt number, PetscInt setting)
{
  const void *data;
  FastLoad   *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, &data));
  PROPERTY(data, "no format", number, setting);
  PetscCall(FastLoadCopyToHost((const FastLoad *)data, &h));
  PetscCall(CheckArrays(A, h, setting, number));
  if (device) {
    PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, &data));
    PROPERTY(data, "no format on the GPU", number, setting);
    PetscCall(FastLoadCopyToHost((const FastLoad *)data, &d));
    PROPERTY(h->ncols == d->ncols && h->blkNum == d->blkNum && h->nz == d->nz && h->blknz == d->blknz && h->lineNum == d->lineNum && h->taskNum == d->taskNum && h->longNum == d->longNum, "host and GPU differ", number, setting);
    PROPERTY(h->single == d->single && h->zeros == d->zeros && h->height == d->height && !h->csrIdx == !d->csrIdx, "host and GPU differ", number, setting);
    FASTLOAD_ARRAYS(h, SAME, FASTLOAD_NOT_HERE);
    PROPERTY(!memcmp(h->rowIdx, d->rowIdx, (size_t)h->blkRow[h->blkNum]), "host and GPU differ in rowIdx", number, setting);
    PetscCall(FastLoadDestroyHostCopy(&d));
  }
  PetscCall(FastLoadDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt sizes[]   = {1, 2, 7, 31, 32, 33, 63, 64, 65, 97, 129, 200};
  const PetscInt        nsettings = PETSC_STATIC_ARRAY_LENGTH(settings);
  PetscInt              matrices = 130, first = 0, each = 2;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-each", &each, NULL)); /* settings a matrix */
  for (PetscInt number = first; number < first + matrices; number++) {
    const PetscInt m = sizes[(size_t)(TestRandom(number, 0, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))], n = number % 3 ? m : sizes[(size_t)(TestRandom(number, 1, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))];
    Mat            A;
    MatInfo        info;

    PetscCall(CreateMatrix((Law)(number % LAW_COUNT), number, m, n, &A));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    for (PetscInt k = 0; k < each; k++) {
      const PetscInt setting = (number / LAW_COUNT * each + number % LAW_COUNT + k) % nsettings;
      Mat            B, C;
      VecType        vectype;
      PetscBool      device;

      PetscCall(TestSetIntOption("-mat_fastload_block_height", settings[setting].height));
      PetscCall(TestSetIntOption("-mat_fastload_window", settings[setting].window));
      PetscCall(TestSetIntOption("-mat_fastload_long_row", settings[setting].long_row));
      PetscCall(TestSetIntOption("-mat_fastload_group_steps", settings[setting].groups));
      PetscCall(TestSetIntOption("-mat_fastload_deterministic", settings[setting].deterministic));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
      PetscCall(MatConvert(C, MATFASTLOAD, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatGetVecType(B, &vectype));
      PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
      for (int values = 0; values < 2; values++) { /* new values in the same pattern the second time */
        PetscCall(CheckProducts(C, B, VECSEQ, number, setting));
        if (device) PetscCall(CheckProducts(C, B, VECSEQCUDA, number, setting));
        if (info.nz_used > 0) PetscCall(CheckFormat(C, B, device, number, setting));
        PetscCall(MatScale(C, -1.5));
        PetscCall(MatScale(B, -1.5));
      }
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
    }
    PetscCall(MatDestroy(&A));
  }
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
