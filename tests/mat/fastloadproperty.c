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

#define PROPERTY(cond, ...) PetscCheck(cond, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", height %" PetscInt_FMT ": " __VA_ARGS__)

/* What holds for the arrays of any matrix */
static PetscErrorCode CheckArrays(Mat A, const FastLoad *fl, PetscInt height, PetscInt number)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, *count, *block, empty = 0;
  PetscInt          *taken, *last; /* entries of each sorted column in the blocks so far, and the row of the last one */
  PetscBool          done, *seen, *apart;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PROPERTY(fl->nz == i[m] && fl->blkPtr[0] == 0 && fl->blkPtr[fl->blkNum] == fl->nz, "entries", number, height);
  PetscCall(PetscCalloc6(n, &count, fl->nz, &seen, m, &block, m, &apart, n, &taken, n, &last));
  for (PetscInt k = 0; k < i[m]; k++) count[j[k]]++;
  for (PetscInt c = 0; c < n; c++) empty += count[c] == 0;
  PROPERTY(fl->ncols == n - empty, "%" PetscInt_FMT " columns", number, height, fl->ncols);
  for (PetscInt c = 0; c < fl->ncols; c++) {
    PROPERTY(count[fl->perm[c]] > 0, "an empty column", number, height);
    PROPERTY(!c || count[fl->perm[c - 1]] < count[fl->perm[c]] || (count[fl->perm[c - 1]] == count[fl->perm[c]] && fl->perm[c - 1] < fl->perm[c]), "columns are not sorted stably", number, height);
  }
  for (PetscInt r = 0; r < m; r++) block[r] = -1;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscInt length = fl->blkLength[b];
    PetscBool      runs = PETSC_FALSE, onerow = PETSC_TRUE;

    PROPERTY(length >= 1 && length <= FASTLOAD_LENGTH && fl->blkHeight[b] >= 1 && (!height || fl->blkHeight[b] <= height) && fl->blkColIdx[b] >= 0 && fl->blkColIdx[b] + length <= fl->ncols, "block %" PetscInt_FMT, number, height, b);
    PROPERTY(fl->blkPtr[b + 1] - fl->blkPtr[b] == (PetscCount)length * fl->blkHeight[b], "block %" PetscInt_FMT " has padding", number, height, b);
    PROPERTY(length == FASTLOAD_LENGTH || fl->blkColIdx[b] + length == fl->ncols, "block %" PetscInt_FMT " is short", number, height, b);
    for (PetscCount k = fl->blkPtr[b]; k < fl->blkPtr[b + 1]; k++) {
      const PetscInt   lane = (PetscInt)((k - fl->blkPtr[b]) % length), row = fl->rowIdx[k], from = fl->csrIdx[k], col = fl->blkColIdx[b] + lane;
      const PetscCount line = k - lane;

      PROPERTY(from >= 0 && from < i[m] && !seen[from], "entry %" PetscInt_FMT " is stored twice", number, height, from);
      seen[from] = PETSC_TRUE;
      PROPERTY(row >= 0 && row < m && from >= i[row] && from < i[row + 1], "entry %" PetscInt_FMT " is not in row %" PetscInt_FMT, number, height, from, row);
      PROPERTY(j[from] == fl->perm[col] && fl->value[k] == a[from], "entry %" PetscInt_FMT, number, height, from);
      PROPERTY(!taken[col] || last[col] < row, "column %" PetscInt_FMT " is not in order of rows", number, height, fl->perm[col]);
      last[col] = row;
      taken[col]++;
      PROPERTY(!lane || taken[col] == taken[col - 1], "the columns of block %" PetscInt_FMT " are not equally far", number, height, b);
      if (block[row] >= 0 && block[row] != b) apart[row] = PETSC_TRUE;
      block[row] = b;
      for (PetscCount p = line; p < k; p++)
        if (fl->rowIdx[p] == row && fl->rowIdx[k - 1] != row) apart[row] = PETSC_TRUE;
      if (lane && fl->rowIdx[k - 1] == row) runs = PETSC_TRUE;
      if (lane && fl->rowIdx[k - 1] != row) onerow = PETSC_FALSE;
    }
    PROPERTY((fl->blkClass[b] & ~FASTLOAD_SHARED) == (!runs    ? FASTLOAD_DISTINCT
                                                      : onerow ? FASTLOAD_ONE_ROW
                                                               : FASTLOAD_RUNS),
             "block %" PetscInt_FMT " is of class %d", number, height, b, fl->blkClass[b]);
  }
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    PetscBool shared = PETSC_FALSE;

    for (PetscCount k = fl->blkPtr[b]; k < fl->blkPtr[b + 1]; k++) {
      PROPERTY((fl->rowShared[k / 32] >> (k % 32) & 1) == apart[fl->rowIdx[k]], "rowShared of entry %" PetscCount_FMT, number, height, k);
      if (apart[fl->rowIdx[k]]) shared = PETSC_TRUE;
    }
    PROPERTY(!!(fl->blkClass[b] & FASTLOAD_SHARED) == shared, "block %" PetscInt_FMT " is of class %d", number, height, b, fl->blkClass[b]);
  }
  PetscCall(PetscFree6(count, seen, block, apart, taken, last));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x, y and z; made once a matrix, since memory of a GPU takes long to get */
static PetscErrorCode CreateVectors(VecType type, PetscInt m, PetscInt n, Vec v[])
{
  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    const PetscInt size = k ? m : n;

    PetscCall(VecCreate(PETSC_COMM_SELF, &v[k]));
    PetscCall(VecSetSizes(v[k], size, size));
    PetscCall(VecSetType(v[k], type));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors at one place. Inf and NaN in x touch the rows that have entries there, and no others. */
static PetscErrorCode CheckProducts(Mat A, Mat B, const Vec v[], PetscBool device, PetscInt number, PetscInt height)
{
  const Vec           x = v[0], y = v[1], z = v[2];
  Vec                 xhost, w;
  PetscInt            m, n;
  const PetscScalar  *za, *wa;
  PetscScalar        *xa;
  MatGallopStatistics before, after;
  char                what[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", height %" PetscInt_FMT, number, height));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(TestSetVec(x, number));
  PetscCall(TestSetVec(y, number + 1));
  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultAdd(B, x, y, z));
  PetscCall(TestCompare(A, TEST_MULT, x, y, z, what));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(B, x, z, z));
  PetscCall(TestCompare(A, TEST_MULT, x, y, z, what));

  PetscCall(VecGetArray(x, &xa));
  xa[n / 3]     = (PetscScalar)NAN;
  xa[n / 2]     = (PetscScalar)PETSC_INFINITY;
  xa[2 * n / 3] = (PetscScalar)PETSC_NINFINITY;
  PetscCall(VecRestoreArray(x, &xa));
  PetscCall(MatMult(B, x, z));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &xhost));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m, &w));
  PetscCall(VecCopy(x, xhost));
  PetscCall(MatMult(A, xhost, w));
  PetscCall(VecGetArrayRead(z, &za));
  PetscCall(VecGetArrayRead(w, &wa));
  for (PetscInt r = 0; r < m; r++) {
    PROPERTY(PetscIsInfOrNanScalar(za[r]) == PetscIsInfOrNanScalar(wa[r]), "row %" PetscInt_FMT " is %g, should be %g", number, height, r, (double)PetscRealPart(za[r]), (double)PetscRealPart(wa[r]));
    PROPERTY(PetscDefined(USE_COMPLEX) || PetscIsNanScalar(za[r]) == PetscIsNanScalar(wa[r]), "row %" PetscInt_FMT " is %g, should be %g", number, height, r, (double)PetscRealPart(za[r]), (double)PetscRealPart(wa[r]));
  }
  PetscCall(VecRestoreArrayRead(z, &za));
  PetscCall(VecRestoreArrayRead(w, &wa));
  PetscCall(MatGallopGetStatistics(B, &after));
  PROPERTY((device ? after.products_device - before.products_device : after.products_host - before.products_host) == 4, "not all products were the format's", number, height);
  PetscCall(VecDestroy(&xhost));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SAME(what, n) PROPERTY(!memcmp(h->what, d->what, (size_t)(n) * sizeof(*h->what)), "host and GPU differ in " #what, number, height)

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt number, PetscInt height)
{
  const void *data;
  FastLoad   *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, &data));
  PROPERTY(data, "no format", number, height);
  PetscCall(FastLoadCopyToHost((const FastLoad *)data, &h));
  PetscCall(CheckArrays(A, h, height, number));
  if (device) {
    PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, &data));
    PROPERTY(data, "no format on the GPU", number, height);
    PetscCall(FastLoadCopyToHost((const FastLoad *)data, &d));
    PROPERTY(h->ncols == d->ncols && h->blkNum == d->blkNum && h->nz == d->nz, "host and GPU differ", number, height);
    SAME(perm, h->ncols);
    SAME(blkPtr, h->blkNum + 1);
    SAME(blkColIdx, h->blkNum);
    SAME(blkHeight, h->blkNum);
    SAME(blkLength, h->blkNum);
    SAME(rowIdx, h->nz);
    SAME(csrIdx, h->nz);
    SAME(value, h->nz);
    SAME(rowShared, (h->nz + 31) / 32);
    SAME(blkClass, h->blkNum);
    PetscCall(FastLoadDestroyHostCopy(&d));
  }
  PetscCall(FastLoadDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt sizes[] = {1, 2, 7, 31, 32, 33, 63, 64, 65, 97, 129, 200}, heights[] = {0, 1, 2, 4, 8, 16, 32};
  PetscInt              matrices = 150, first = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  for (PetscInt number = first; number < first + matrices; number++) {
    const PetscInt m = sizes[(size_t)(TestRandom(number, 0, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))], n = number % 3 ? m : sizes[(size_t)(TestRandom(number, 1, 0) * PETSC_STATIC_ARRAY_LENGTH(sizes))];
    const PetscInt height = heights[number % (PetscInt)PETSC_STATIC_ARRAY_LENGTH(heights)]; /* each with each law: their numbers have no common divisor */
    Vec            host[3], gpu[3] = {NULL, NULL, NULL};
    Mat            A, B;
    MatInfo        info;
    VecType        vectype;
    PetscBool      device;
    char           text[16];

    PetscCall(CreateMatrix((Law)(number % LAW_COUNT), number, m, n, &A));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT, height));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_fastload_block_height", text));
    PetscCall(MatConvert(A, MATFASTLOAD, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatGetVecType(B, &vectype));
    PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
    PetscCall(CreateVectors(VECSEQ, m, n, host));
    if (device) PetscCall(CreateVectors(VECSEQCUDA, m, n, gpu));
    for (int values = 0; values < 2; values++) { /* new values in the same pattern the second time */
      PetscCall(CheckProducts(A, B, host, PETSC_FALSE, number, height));
      if (device) PetscCall(CheckProducts(A, B, gpu, PETSC_TRUE, number, height));
      if (info.nz_used > 0) PetscCall(CheckFormat(A, B, device, number, height));
      PetscCall(MatScale(A, -1.5));
      PetscCall(MatScale(B, -1.5));
    }
    for (int k = 0; k < 3; k++) {
      PetscCall(VecDestroy(&host[k]));
      PetscCall(VecDestroy(&gpu[k]));
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
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
      args: -first 150
    test:
      suffix: 3
      args: -first 300
    test:
      suffix: 4
      args: -first 450

TEST*/
