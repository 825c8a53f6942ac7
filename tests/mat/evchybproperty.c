static char help[] = "Products of random matrices of many shapes in the EVC-HYB format, against sums in long double, host and GPU; the arrays that host and GPU build, against each other.\n\n";

#include <petscgallop.h>
#include "../../src/mat/impls/evchyb/evchyb.h"

typedef enum { LAW_EMPTY, LAW_CONSTANT, LAW_RANDOM, LAW_POWER, LAW_HUGE, LAW_WARP, LAW_SPLIT, LAW_SPARSE, LAW_COUNT } Law;

/* A small generator of its own: the same matrices everywhere */
static uint64_t seed;

static uint32_t Random(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33);
}

static PetscInt RandomBelow(PetscInt n)
{
  return n > 0 ? (PetscInt)(Random() % (uint32_t)n) : 0;
}

static PetscScalar RandomScalar(void)
{
  const PetscReal re = (PetscReal)Random() / 2147483648.0 - 0.5, im = (PetscReal)Random() / 2147483648.0 - 0.5;

#if defined(PETSC_USE_COMPLEX)
  return re + im * PETSC_i;
#else
  (void)im;
  return re;
#endif
}

static PetscInt RowLength(Law law, PetscInt row, PetscInt m, PetscInt n, PetscInt constant)
{
  static const PetscInt warp[] = {31, 32, 33, 127, 128, 129, 0, 1};
  PetscInt              len    = 0;

  switch (law) {
  case LAW_EMPTY:
    len = 0;
    break;
  case LAW_CONSTANT:
    len = constant;
    break;
  case LAW_RANDOM:
    len = RandomBelow(40);
    break;
  case LAW_POWER:
    len = (PetscInt)(1.0 / ((PetscReal)(Random() % 1000 + 1) / 1000.0));
    break;
  case LAW_HUGE:
    len = row == m / 2 ? n : 3;
    break;
  case LAW_WARP:
    len = warp[Random() % 8];
    break;
  case LAW_SPLIT:
    len = row % 17 == 3 ? n - RandomBelow(n / 3 + 1) : RandomBelow(6);
    break;
  default:
    len = Random() % 10 ? 0 : RandomBelow(9);
    break;
  }
  return PetscMin(len, n);
}

/* Distinct columns in increasing order: every n / len-th, shaken */
static PetscErrorCode RandomMatrix(Law law, PetscInt m, PetscInt n, Mat *A)
{
  PetscInt    *i, *j, constant = RandomBelow(36), nz = 0;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m + 1, &i));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) i[r + 1] = i[r] + RowLength(law, r, m, n, constant);
  nz = i[m];
  PetscCall(PetscMalloc2(nz, &j, nz, &a));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = i[r + 1] - i[r], step = len ? n / len : 0, shift = len ? RandomBelow(n - step * len + 1) : 0;

    for (PetscInt k = 0; k < len; k++) {
      j[i[r] + k] = shift + k * step + RandomBelow(step);
      a[i[r] + k] = RandomScalar();
    }
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, j, a));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree2(j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(Vec v)
{
  PetscScalar *a;
  PetscInt     n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt k = 0; k < n; k++) a[k] = RandomScalar();
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z against A x (+ y): the largest difference in units of eps (|y| + sum |a x|). NaN and Inf must stand where the reference has them. */
static PetscErrorCode Check(Mat A, Vec x, Vec y, Vec z, PetscBool transpose, PetscBool conjugate, const char what[], PetscInt number, PetscReal tol)
{
  const PetscInt    *i, *j;
  const PetscScalar *a, *xa, *ya = NULL, *za;
  PetscInt           m, n, rows;
  PetscBool          done;
  long double       *re, *im, *mag;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  rows = transpose ? n : m;
  PetscCall(PetscCalloc3(rows, &re, rows, &im, rows, &mag));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(VecGetArrayRead(x, &xa));
  if (y) PetscCall(VecGetArrayRead(y, &ya));
  PetscCall(VecGetArrayRead(z, &za));
  for (PetscInt r = 0; r < rows && y; r++) {
    re[r]  = PetscRealPart(ya[r]);
    im[r]  = PetscImaginaryPart(ya[r]);
    mag[r] = PetscAbsScalar(ya[r]);
  }
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const PetscInt    to = transpose ? j[k] : r, from = transpose ? r : j[k];
      const PetscScalar v = conjugate ? PetscConj(a[k]) : a[k];

      re[to] += (long double)PetscRealPart(v) * PetscRealPart(xa[from]) - (long double)PetscImaginaryPart(v) * PetscImaginaryPart(xa[from]);
      im[to] += (long double)PetscRealPart(v) * PetscImaginaryPart(xa[from]) + (long double)PetscImaginaryPart(v) * PetscRealPart(xa[from]);
      mag[to] += (long double)PetscAbsScalar(v) * PetscAbsScalar(xa[from]);
    }
  }
  for (PetscInt r = 0; r < rows; r++) {
    const PetscBool   finite = (PetscBool)!PetscIsInfOrNanReal((PetscReal)(re[r] + im[r]));
    const long double err    = hypotl(PetscRealPart(za[r]) - re[r], PetscImaginaryPart(za[r]) - im[r]);

    if (!finite) { /* AIJ's answer is not finite in this row, so ours is not either; which of Inf and NaN depends on the order in no sum of one infinity */
      PetscCheck(PetscIsInfOrNanScalar(za[r]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", %s: row %" PetscInt_FMT " is finite, should not be", number, what, r);
      if (!PetscDefined(USE_COMPLEX))
        PetscCheck(PetscIsNanScalar(za[r]) == PetscIsNanReal((PetscReal)re[r]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", %s: row %" PetscInt_FMT " is %g, should be %g", number, what, r, (double)PetscRealPart(za[r]), (double)re[r]);
      continue;
    }
    PetscCheck(err <= tol * (long double)PETSC_MACHINE_EPSILON * mag[r], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ", %s: row %" PetscInt_FMT " is off by %g eps", number, what, r, (double)(err / (mag[r] * PETSC_MACHINE_EPSILON)));
  }
  PetscCall(VecRestoreArrayRead(z, &za));
  if (y) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(PetscFree3(re, im, mag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetProducts(Mat A, PetscInt64 *products, PetscInt64 *device)
{
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &s));
  *products = s.products_host + s.products_device;
  *device   = s.products_device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every product of B, with vectors of type vectype, against sums over the entries of A; the first two must be our kernel's */
static PetscErrorCode CheckProducts(Mat A, Mat B, VecType vectype, PetscInt number)
{
  Vec        x, y, z, w, t;
  PetscInt   m, n;
  PetscInt64 before = 0, after = 0, device = 0, devicebefore = 0;
  PetscBool  ondevice;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, n, n));
  PetscCall(VecSetType(x, vectype));
  PetscCall(VecCreate(PETSC_COMM_SELF, &z));
  PetscCall(VecSetSizes(z, m, m));
  PetscCall(VecSetType(z, vectype));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(z, &w));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(Fill(x));
  PetscCall(Fill(y));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &ondevice));

  PetscCall(GetProducts(B, &before, &devicebefore));
  PetscCall(VecSet(z, PETSC_MAX_REAL)); /* what is not written shows */
  PetscCall(MatMult(B, x, z));
  PetscCall(Check(A, x, NULL, z, PETSC_FALSE, PETSC_FALSE, "MatMult", number, 16));
  PetscCall(VecSet(z, PETSC_MAX_REAL));
  PetscCall(MatMultAdd(B, x, y, z));
  PetscCall(Check(A, x, y, z, PETSC_FALSE, PETSC_FALSE, "MatMultAdd", number, 16));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(B, x, z, z));
  PetscCall(Check(A, x, y, z, PETSC_FALSE, PETSC_FALSE, "MatMultAdd in place", number, 16));
  PetscCall(GetProducts(B, &after, &device));
  PetscCheck(after == before + 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": %d products of 3 were ours", number, (int)(after - before));
  PetscCheck(device - devicebefore == (ondevice ? 3 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": %d products ran on the GPU with vectors of type %s", number, (int)(device - devicebefore), vectype);

  PetscCall(VecSet(t, PETSC_MAX_REAL));
  PetscCall(MatMultTranspose(B, y, t));
  PetscCall(Check(A, y, NULL, t, PETSC_TRUE, PETSC_FALSE, "MatMultTranspose", number, 64));
  PetscCall(MatMultTransposeAdd(B, y, x, t));
  PetscCall(Check(A, y, x, t, PETSC_TRUE, PETSC_FALSE, "MatMultTransposeAdd", number, 64));
  PetscCall(MatMultHermitianTranspose(B, y, t));
  PetscCall(Check(A, y, NULL, t, PETSC_TRUE, PETSC_TRUE, "MatMultHermitianTranspose", number, 64));
  PetscCall(MatMultHermitianTransposeAdd(B, y, x, t));
  PetscCall(Check(A, y, x, t, PETSC_TRUE, PETSC_TRUE, "MatMultHermitianTransposeAdd", number, 64));

  if (n > 3) { /* Inf and NaN in x touch the rows that have entries there, and no others */
    PetscScalar *xa;

    PetscCall(VecGetArray(x, &xa));
    xa[0] = xa[n - 1] = (PetscScalar)INFINITY;
    xa[n / 2]         = (PetscScalar)NAN;
    PetscCall(VecRestoreArray(x, &xa));
    PetscCall(MatMult(B, x, z));
    PetscCall(Check(A, x, NULL, z, PETSC_FALSE, PETSC_FALSE, "MatMult with Inf and NaN", number, 16));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SAME(what, n) PetscCheck(!(n) || !memcmp(h->what, d->what, (size_t)(n) * sizeof(*h->what)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": host and GPU differ in " #what, number)
#define EQUAL(what)   PetscCheck(h->what == d->what, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": host and GPU differ in " #what ": %g, %g", number, (double)h->what, (double)d->what)

static PetscErrorCode CompareArrays(Mat B, PetscInt number)
{
  const EVCHYB *host, *device;
  EVCHYB       *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, (const void **)&host));
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, (const void **)&device));
  PetscCheck(host && device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": not built at both places", number);
  PetscCall(EVCHYBCopyToHost(host, &h));
  PetscCall(EVCHYBCopyToHost(device, &d));
  EQUAL(m);
  EQUAL(n);
  EQUAL(nz);
  EQUAL(nempty);
  PetscCheck(!h->plain == !d->plain, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix %" PetscInt_FMT ": host and GPU have other storages", number);
  if (h->plain) {
  EQUAL(plain->nzell);
  EQUAL(plain->ell.n);
  EQUAL(plain->ell.nb);
  EQUAL(plain->ell.nz);
  EQUAL(plain->ell.LCmax);
  EQUAL(plain->csr.n);
  EQUAL(plain->csr.nmerged);
  EQUAL(plain->csr.nz);
  EQUAL(plain->csr.parts.nsplit);
  EQUAL(plain->csr.parts.nparts);
  SAME(plain->ell.classes, EVCHYB_CLASSES);
  EQUAL(plain->nlisted);
  EQUAL(plain->byrow);
  EQUAL(plain->inorder);
  SAME(plain->perm, h->plain->ell.n + h->plain->csr.n + h->plain->nlisted);
  SAME(plain->ell.bnz, h->plain->ell.nb + 1);
  SAME(plain->ell.clen, h->plain->ell.nb);
  SAME(plain->ell.j, h->plain->ell.nz);
  SAME(plain->ell.as, h->plain->ell.nz);
  SAME(plain->csr.i, h->plain->csr.n + 1);
  SAME(plain->csr.j, h->plain->csr.nz);
  SAME(plain->csr.as, h->plain->csr.nz);
  SAME(plain->csr.parts.splitblk, h->plain->csr.parts.nsplit + 1);
  SAME(plain->csr.parts.splitrow, h->plain->csr.parts.nparts);
  } else {
    EQUAL(packed->nlong);
    EQUAL(packed->parts.nsplit);
    EQUAL(packed->parts.nparts);
    SAME(packed->parts.splitblk, h->packed->parts.nsplit + 1);
    SAME(packed->parts.splitrow, h->packed->parts.nparts);
  }
  PetscCall(EVCHYBDestroyHostCopy(&h));
  PetscCall(EVCHYBDestroyHostCopy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt    sizes[]   = {1, 2, 7, 31, 32, 33, 63, 64, 65, 95, 97, 127, 128, 129, 255, 257, 500, 1000, 1023, 3100};
  static const char *const windows[] = {"0", "0", "32", "64", "100", "256", "300", "1024", "3000", "4096"};
  static const char *const maxells[] = {"128", "-1", "-1", "5", "0", "300"};
  static const char *const splits[]  = {"1024", "64", "256"}; /* where rows are longer than 1024, host and GPU would split at different lengths */
  static const char *const rows[]    = {"1", "4", "128"};
  PetscInt                 matrices = 600, first = 0;
  PetscBool                device = PETSC_FALSE, large = PETSC_FALSE;
  Mat                      A, B;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL)); /* so many rows, windows and column blocks that the GPU takes other ways to sort and add up */
  for (PetscInt number = first; number < first + matrices; number++) {
    const Law law = large ? (number % 2 ? LAW_HUGE : LAW_SPARSE) : (Law)(number % LAW_COUNT);
    PetscInt  m, n;
    MatType   parent;
    VecType   vectype;
    MatInfo   info;

    seed = 1234567u + (uint64_t)number * 7919u;
    for (int k = 0; k < 8; k++) (void)Random();
    m = sizes[RandomBelow(PETSC_STATIC_ARRAY_LENGTH(sizes))];
    n = number % 3 ? m : sizes[RandomBelow(PETSC_STATIC_ARRAY_LENGTH(sizes))];
    if (number % 50 == 49) m = 0;
    if (number % 50 == 48) n = 0;
    if (large) m = n = 2200000;
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", windows[Random() % PETSC_STATIC_ARRAY_LENGTH(windows)]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_max_ell", maxells[Random() % PETSC_STATIC_ARRAY_LENGTH(maxells)]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_split", splits[Random() % PETSC_STATIC_ARRAY_LENGTH(splits)]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_rows_per_thread", rows[Random() % PETSC_STATIC_ARRAY_LENGTH(rows)]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_columns_per_warp", Random() % 2 ? "32" : "3"));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_by_row", Random() % 2 ? "0" : "100"));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_first_column", number % 5 < 3 ? "1" : "0"));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", number / 8 % 3 == 2 ? "packed" : "plain"));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_slices_per_warp", number / 24 % 2 ? "0" : "5"));
    if (large) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", number < 2 ? "256" : "0"));
    PetscCall(RandomMatrix(law, m, n, &A));
    PetscCall(PetscInfo(A, "Matrix %" PetscInt_FMT ", law %d\n", number, (int)law));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatGetType(B, &parent));
    PetscCall(MatGetVecType(B, &vectype));
    PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
    PetscCall(CheckProducts(A, B, VECSEQ, number));
    if (device) PetscCall(CheckProducts(A, B, VECSEQCUDA, number));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    if (device && info.nz_used > 0) PetscCall(CompareArrays(B, number));
    /* new values in the same pattern, then the same again */
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatScale(B, 3.0));
    PetscCall(CheckProducts(A, B, VECSEQ, number));
    if (device) PetscCall(CheckProducts(A, B, VECSEQCUDA, number));
    if (device && info.nz_used > 0) PetscCall(CompareArrays(B, number));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " matrices\n", matrices));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    args: -matrices 150
    output_file: output/evchybproperty_1.out

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

  test:
    suffix: large
    args: -large -matrices 3

TEST*/
