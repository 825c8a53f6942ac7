/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of random matrices of many shapes in the EVC-HYB format, against sums in long double, host and GPU; the arrays that host and GPU build, against each other.\n\n";

#include "propertytest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"

typedef enum { LAW_EMPTY, LAW_CONSTANT, LAW_RANDOM, LAW_POWER, LAW_HUGE, LAW_WARP, LAW_SPLIT, LAW_SPARSE, LAW_COUNT } Law;

/* A generator that gives the same matrices everywhere */
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
  const PetscInt constant = RandomBelow(36);
  PetscInt      *lens;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m, &lens));
  for (PetscInt r = 0; r < m; r++) lens[r] = RowLength(law, r, m, n, constant);
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = lens[r], step = len ? n / len : 0, shift = len ? RandomBelow(n - step * len + 1) : 0;

    for (PetscInt k = 0; k < len; k++) {
      const PetscInt column = shift + k * step + RandomBelow(step);

      PetscCall(TestEntriesPut(&e, column, RandomScalar()));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscCall(PetscFree(lens));
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

/* Rounding errors are at most this many units of the sum of |a x| and |y|; those of transposed products, which the parent computes */
#define ULPS           16
#define ULPS_TRANSPOSE 64

/* Every product of B, with vectors of type vectype, against sums over the entries of A; the format itself must compute the first three */
static PetscErrorCode CheckProducts(Mat A, Mat B, VecType vectype, const char what[])
{
  Vec                 x, y, z, t;
  PetscInt            m, n;
  PetscInt64          host, device;
  MatGallopStatistics before, after;
  PetscBool           ondevice, raced = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(TestCreateVecsOfType(A, vectype, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(Fill(x));
  PetscCall(Fill(y));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &ondevice));

  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(VecSet(z, PETSC_MAX_REAL)); /* so that an entry which is not written shows */
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, ULPS, what));
  PetscCall(VecSet(z, PETSC_MAX_REAL));
  PetscCall(MatMultAdd(B, x, y, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, y, z, ULPS, what));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(B, x, z, z));
  PetscCall(TestCompareLong(A, TEST_MULT, x, y, z, ULPS, what));
  PetscCall(MatGallopGetStatistics(B, &after));
  host   = after.products_host - before.products_host;
  device = after.products_device - before.products_device;
  TestCheck(host == (ondevice ? 0 : 3) && device == (ondevice ? 3 : 0), "%" PetscInt64_FMT " products of 3 on the host, %" PetscInt64_FMT " on the GPU, with vectors of type %s", what, host, device, vectype);

  PetscCall(VecSet(t, PETSC_MAX_REAL));
  PetscCall(MatMultTranspose(B, y, t));
  PetscCall(TestCompareLong(A, TEST_TRANSPOSE, y, NULL, t, ULPS_TRANSPOSE, what));
  PetscCall(MatMultTransposeAdd(B, y, x, t));
  PetscCall(TestCompareLong(A, TEST_TRANSPOSE, y, x, t, ULPS_TRANSPOSE, what));
  if (ondevice && PetscDefined(USE_COMPLEX)) PetscCall(TestIsRaced(A, &raced)); /* which is the parent's product */
  if (!raced) {
    PetscCall(MatMultHermitianTranspose(B, y, t));
    PetscCall(TestCompareLong(A, TEST_HERMITIAN, y, NULL, t, ULPS_TRANSPOSE, what));
    PetscCall(MatMultHermitianTransposeAdd(B, y, x, t));
    PetscCall(TestCompareLong(A, TEST_HERMITIAN, y, x, t, ULPS_TRANSPOSE, what));
  }

  if (n > 3) { /* Inf and NaN in x touch the rows that have entries there, and no others */
    PetscScalar *xa;

    PetscCall(VecGetArray(x, &xa));
    xa[0] = xa[n - 1] = (PetscScalar)INFINITY;
    xa[n / 2]         = (PetscScalar)NAN;
    PetscCall(VecRestoreArray(x, &xa));
    PetscCall(MatMult(B, x, z));
    PetscCall(TestCompareLong(A, TEST_MULT, x, NULL, z, ULPS, what));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays that host and GPU have built are the same. Nothing else here looks into EVCHYB. */
/* Rows that several thread blocks compute */
static PetscErrorCode CompareParts(const EVCHYBParts *h, const EVCHYBParts *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, nsplit, what);
  TestSameNumber(h, d, nparts, what);
  TestSameArray(h, d, splitblk, h->nsplit + 1, what);
  TestSameArray(h, d, splitrow, h->nparts, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays of plain storage */
static PetscErrorCode ComparePlain(const EVCHYBPlain *h, const EVCHYBPlain *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, nzell, what);
  TestSameNumber(h, d, ell.n, what);
  TestSameNumber(h, d, ell.nb, what);
  TestSameNumber(h, d, ell.nz, what);
  TestSameNumber(h, d, ell.LCmax, what);
  TestSameNumber(h, d, csr.n, what);
  TestSameNumber(h, d, csr.nmerged, what);
  TestSameNumber(h, d, csr.nz, what);
  TestSameArray(h, d, ell.classes, EVCHYB_CLASSES, what);
  TestSameNumber(h, d, nlisted, what);
  TestSameNumber(h, d, byrow, what);
  TestSameNumber(h, d, inorder, what);
  TestSameArray(h, d, perm, h->ell.n + h->csr.n + h->nlisted, what);
  TestSameArray(h, d, ell.bnz, h->ell.nb + 1, what);
  TestSameArray(h, d, ell.clen, h->ell.nb, what);
  TestSameArray(h, d, ell.j, h->ell.nz, what);
  TestSameArray(h, d, ell.as, h->ell.nz, what);
  TestSameArray(h, d, csr.i, h->csr.n + 1, what);
  TestSameArray(h, d, csr.j, h->csr.nz, what);
  TestSameArray(h, d, csr.as, h->csr.nz, what);
  PetscCall(CompareParts(&h->csr.parts, &d->csr.parts, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CompareArrays(Mat B, const char what[])
{
  const EVCHYB *host, *device;
  EVCHYB       *h, *d;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_HOST, (const void **)&host));
  PetscCall(MatGallopGetFormatData(B, PETSC_MEMTYPE_CUDA, (const void **)&device));
  TestCheck(host && device, "not built at both places", what);
  PetscCall(EVCHYBCopyToHost(host, &h));
  PetscCall(EVCHYBCopyToHost(device, &d));
  TestSameNumber(h, d, m, what);
  TestSameNumber(h, d, n, what);
  TestSameNumber(h, d, nz, what);
  TestSameNumber(h, d, nempty, what);
  TestCheck(!h->clusters == !d->clusters, "host and GPU have different orders", what);
  if (h->clusters) {
    TestSameNumber(h, d, clusters->num, what);
    TestSameArray(h, d, clusters->order, h->m, what);
  }
  TestCheck(!h->plain == !d->plain, "host and GPU have different storages", what);
  if (h->plain) PetscCall(ComparePlain(h->plain, d->plain, what));
  else { /* the pack is for evchybpack.c */ TestSameNumber(h->packed, d->packed, nlong, what);
    PetscCall(CompareParts(&h->packed->parts, &d->packed->parts, what));
  }
  PetscCall(EVCHYBDestroyHostCopy(&h));
  PetscCall(EVCHYBDestroyHostCopy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows that are not split, by the largest number there is */
static PetscErrorCode Unsplit(void)
{
  const char *const what = "Rows that are not split";
  char              most[32];
  Mat               A, B;
  VecType           vectype;
  PetscBool         device;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(most, sizeof(most), "%" PetscInt_FMT, PETSC_INT_MAX));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_split", most));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_max_ell", "5"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", "plain"));
  PetscCall(RandomMatrix(LAW_SPLIT, 1001, 3000, &A));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatGetVecType(B, &vectype));
  PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
  PetscCall(CheckProducts(A, B, VECSEQ, what));
  if (device) PetscCall(CheckProducts(A, B, VECSEQCUDA, what));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
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
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL)); /* enough rows, windows and column blocks for the GPU to sort and add up in other ways */
  for (PetscInt number = first; number < first + matrices; number++) {
    const Law law = large ? (number % 2 ? LAW_HUGE : LAW_SPARSE) : (Law)(number % LAW_COUNT);
    PetscInt  m, n;
    VecType   vectype;
    MatInfo   info;
    char      what[32];

    if (!TestInPart()) continue;
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
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", number / 8 % 2 ? "cluster" : "none"));
    if (large) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", !number ? "1024" : number == 1 ? "256" : "0"));
    if (large) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", number < 2 ? "none" : "cluster"));
    PetscCall(RandomMatrix(law, m, n, &A));
    PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", law %d", number, (int)law));
    PetscCall(PetscInfo(A, "Matrix %" PetscInt_FMT ", law %d\n", number, (int)law));
    PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatGetVecType(B, &vectype));
    PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    for (int values = 0; values < 2; values++) { /* new values in the same pattern the second time */
      PetscCall(CheckProducts(A, B, VECSEQ, what));
      if (device) PetscCall(CheckProducts(A, B, VECSEQCUDA, what));
      if (device && info.nz_used > 0) PetscCall(CompareArrays(B, what));
      if (values) break;
      PetscCall(MatScale(A, 3.0));
      PetscCall(MatScale(B, 3.0));
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  if (!first && !large) PetscCall(Unsplit());
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
