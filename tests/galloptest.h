/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  What the tests share: matrices whose entries depend on row, column and a seed but not on how they are distributed, and a check of every product.

  A test keeps two matrices, ours and a plain MATAIJ one, and does the same to both. TestProducts() then compares ours with sums over the rows of the
  plain one, and the statistics of ours with what should have been built, refreshed and computed. Vectors come from MatCreateVecs(), so that on a machine
  with a GPU the same test runs there.
*/

#include <petscdevice.h>
#include <gallop/formatimpl.h>
#include <math.h>
#include <unistd.h>

/* ---- the format ---- */

/* The format that a test is about: -format, evchyb where none is given. With a prefix, "aij", "seqaij" or "mpiaij", the names of its other types. */
static inline MatType TestFormat(const char prefix[])
{
  static char names[8][64];
  char        format[32] = MATEVCHYB, name[64];
  int         k          = 0;

  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(NULL, NULL, "-format", format, sizeof(format), NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscSNPrintf(name, sizeof(name), "%s%s", prefix, format));
  while (k < 7 && names[k][0] && strcmp(names[k], name)) k++; /* the caller may keep the pointer */
  PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(names[k], name, sizeof(name)));
  return names[k];
}

/* -mat_FORMAT_what */
static inline const char *TestOption(const char prefix[], const char what[])
{
  static char names[8][64];
  static int  next;
  char       *name = names[next++ % 8];

  PetscCallAbort(PETSC_COMM_SELF, PetscSNPrintf(name, sizeof(names[0]), "-%smat_%s_%s", prefix, TestFormat(""), what));
  return name;
}

/* ---- checks ---- */

/* PetscCheck() on one process, whose message begins with what is tested: TestCheck(condition, format, what, ...) */
#define TestCheck(cond, ...) PetscCheck(cond, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: " __VA_ARGS__)

/* ---- parts ---- */

/* Whether the part of a test that runs has the next of its cases, which all processes come to in one order: of -parts n that of -part k has each n-th case from the k-th on. For tools under which a whole test takes long: make kernels */
static inline PetscBool TestInPart(void)
{
  static PetscInt parts, part, next;

  if (!parts) {
    parts = 1;
    PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetInt(NULL, NULL, "-parts", &parts, NULL));
    PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetInt(NULL, NULL, "-part", &part, NULL));
  }
  return (PetscBool)(next++ % parts == part);
}

/* ---- options ---- */

/* Options of a case, which are no other's: names and values of PetscOptionsInsertString() */
static inline PetscErrorCode TestClearOptions(const char options[])
{
  int    n;
  char **words;

  PetscFunctionBegin;
  PetscCall(PetscStrToArray(options, ' ', &n, &words)); /* a name, a value, ... */
  for (int k = 0; k < n; k++)
    if (words[k][0] == '-') PetscCall(PetscOptionsClearValue(NULL, words[k]));
  PetscCall(PetscStrToArrayDestroy(n, words));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- numbers and matrices ---- */

static inline PetscReal TestRandom(PetscInt seed, PetscInt i, PetscInt j)
{
  uint64_t h = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);

  h += (uint64_t)i * 0xbf58476d1ce4e5b9u + (uint64_t)j * 0x94d049bb133111ebu;
  for (int k = 0; k < 2; k++) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  return (PetscReal)(h >> 11) / (PetscReal)((uint64_t)1 << 53);
}

static inline PetscScalar TestValue(PetscInt seed, PetscInt i, PetscInt j)
{
  const PetscReal re = (PetscReal)2.0 * TestRandom(seed, i, j) - (PetscReal)1.0;

#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, (PetscReal)2.0 * TestRandom(seed + 1000, i, j) - (PetscReal)1.0);
#else
  return re;
#endif
}

/* Rows of very different lengths: each 11th is empty, the middle one nearly full, the diagonal of each 3rd is absent */
static inline PetscBool TestHasEntry(PetscInt seed, PetscInt m, PetscInt n, PetscInt i, PetscInt j)
{
  const PetscReal density = (PetscReal)0.06 * TestRandom(seed, i, -7);

  if (i % 11 == 5) return PETSC_FALSE;
  if (i == j) return (PetscBool)(i % 3 != 1);
  return (PetscBool)(TestRandom(seed, i, j) < (i == m / 2 ? (PetscReal)0.9 : density));
}

/* Sets the owned rows. The pattern belongs to seed, the values to valueseed. */
static inline PetscErrorCode TestFill(Mat A, PetscInt seed, PetscInt valueseed)
{
  PetscInt m, n, rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt j = 0; j < n; j++) {
      if (TestHasEntry(seed, m, n, i, j)) PetscCall(MatSetValue(A, i, j, TestValue(valueseed, i, j), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Minus Laplace on grid by grid points, and something between least and least + range on the diagonal. Without that the constants are a null space. */
static inline PetscErrorCode TestCreateLaplace(MatType type, PetscInt grid, PetscReal least, PetscReal range, PetscInt seed, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, grid * grid, grid * grid));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    const PetscInt  i = r % grid, j = r / grid, near[] = {r - 1, r + 1, r - grid, r + grid};
    const PetscBool in[]     = {(PetscBool)(i > 0), (PetscBool)(i < grid - 1), (PetscBool)(j > 0), (PetscBool)(j < grid - 1)};
    PetscScalar     diagonal = least + range * TestRandom(seed, r, 0);

    for (int k = 0; k < 4; k++)
      if (in[k]) {
        PetscCall(MatSetValue(*A, r, near[k], -1.0, INSERT_VALUES));
        diagonal += 1.0;
      }
    PetscCall(MatSetValue(*A, r, r, diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (least == 0 && range == 0) {
    MatNullSpace space;

    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &space));
    PetscCall(MatSetNullSpace(*A, space));
    PetscCall(MatNullSpaceDestroy(&space));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt  m, n;
  PetscBool preallocate; /* else assembly goes by way of a hash table */
} TestShape;

static const TestShape TestSquare = {150, 150, PETSC_TRUE}, TestSquareHash = {150, 150, PETSC_FALSE}, TestWide = {70, 240, PETSC_TRUE}, TestTall = {240, 70, PETSC_FALSE};

static inline PetscErrorCode TestPreallocate(Mat A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatSeqAIJSetPreallocation(A, n, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, n, NULL, n, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestCreateEmpty(MPI_Comm comm, MatType type, TestShape shape, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, shape.m, shape.n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  if (shape.preallocate) PetscCall(TestPreallocate(*A));
  else PetscCall(MatSetUp(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Our matrix and the plain one that it is compared with */
static inline PetscErrorCode TestCreate(MPI_Comm comm, MatType type, TestShape shape, PetscInt seed, Mat *A, Mat *R)
{
  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(comm, type, shape, A));
  PetscCall(TestCreateEmpty(comm, MATAIJ, shape, R));
  PetscCall(TestFill(*A, seed, seed));
  PetscCall(TestFill(*R, seed, seed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestDestroy(Mat *A, Mat *R)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(A));
  PetscCall(MatDestroy(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type of vectors that suits a matrix type: those of a DM are on the host unless told */
static inline PetscErrorCode TestGetVecType(MatType type, char vtype[], size_t len)
{
  Mat     A;
  VecType t;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, type));
  PetscCall(MatGetVecType(A, &t));
  PetscCall(PetscStrncpy(vtype, t, len));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestHasDevice(PetscBool *device)
{
  char vtype[64];

  PetscFunctionBegin;
  PetscCall(TestGetVecType(TestFormat(""), vtype, sizeof(vtype)));
  PetscCall(PetscStrcmp(vtype, VECCUDA, device));
  PetscCheck(*device || !getenv("GALLOP_TEST_GPU"), PETSC_COMM_WORLD, PETSC_ERR_SUP, "PETSc finds no GPU, without which tests/with-gpus does not run this test");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How often an event has been logged, and its flops where they are wanted */
static inline PetscErrorCode TestEventCount(const char name[], PetscInt *count, PetscLogDouble *flops)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;

  PetscFunctionBegin;
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no event %s", name);
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
  *count = info.count;
  if (flops) *flops = info.flops;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestSetVec(Vec x, PetscInt seed)
{
  PetscScalar *a;
  PetscInt     rstart, rend;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &rstart, &rend));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt i = rstart; i < rend; i++) a[i - rstart] = TestValue(seed, i, 0);
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether two runs of a product, not of the transpose, with the tested format give the same bits. On a GPU FASTLOAD adds atomically, in any order of warps. */
static inline PetscErrorCode TestReproducible(PetscBool *reproducible)
{
  PetscBool fastload = PETSC_FALSE, device = PETSC_FALSE, deterministic = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(TestFormat(""), MATFASTLOAD, &fastload));
  PetscCall(TestHasDevice(&device));
  if (fastload) PetscCall(PetscOptionsGetBool(NULL, NULL, TestOption("", "deterministic"), &deterministic, NULL));
  *reproducible = (PetscBool)(!fastload || !device || deterministic);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether u and v can be two runs of the same products. They have the same bits, or differ by at most ulps units of rounding of the largest entry where the tested format may give other bits. */
static inline PetscErrorCode TestSameResult(Vec u, Vec v, PetscReal ulps, PetscBool *same)
{
  PetscBool reproducible = PETSC_FALSE;
  PetscReal size, error;
  Vec       w;

  PetscFunctionBegin;
  PetscCall(TestReproducible(&reproducible));
  if (reproducible) PetscCall(VecEqual(u, v, same));
  else {
    PetscCall(VecDuplicate(u, &w));
    PetscCall(VecWAXPY(w, -1.0, u, v));
    PetscCall(VecNorm(w, NORM_INFINITY, &error));
    PetscCall(VecNorm(u, NORM_INFINITY, &size));
    PetscCall(VecDestroy(&w));
    *same = (PetscBool)(error <= ulps * PETSC_MACHINE_EPSILON * size); /* no for NaN */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc sets vectors, new ones to 0, on the default stream. If a nonblocking stream is current, a product would not wait for that. */
static inline PetscErrorCode TestWaitForDefaultStream(void)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  if (device) PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products are on the stream of the current context */
static inline PetscErrorCode TestWaitForCurrentStream(void)
{
  PetscDeviceContext context;
  PetscBool          device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new current context, whose stream waits for no other, and no other for it */
static inline PetscErrorCode TestNonblockingBegin(PetscDeviceContext *before, PetscDeviceContext *context)
{
  PetscFunctionBegin;
  PetscCall(PetscDeviceContextGetCurrentContext(before));
  PetscCall(PetscDeviceContextSynchronize(*before));
  PetscCall(PetscDeviceContextCreate(context));
  PetscCall(PetscDeviceContextSetStreamType(*context, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(*context));
  PetscCall(PetscDeviceContextSetCurrentContext(*context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that a product must not read, or must overwrite. VecSet() puts them where the vector lives; a host array that the GPU only overwrites would never be copied there. */
static inline PetscErrorCode TestSpoilVec(Vec x)
{
  PetscFunctionBegin;
  PetscCall(VecSet(x, (PetscScalar)NAN));
  PetscCall(TestWaitForDefaultStream());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the reference ---- */

typedef enum { TEST_MULT, TEST_TRANSPOSE, TEST_HERMITIAN } TestOp;

/* Rounding errors are at most this many units of the sum of |a x| and |y| */
#define TEST_ULPS 10

/* A sum of products in long double, and of their sizes, for its rounding errors */
typedef struct {
  long double re, im, size;
} TestSum;

static inline void TestSumAdd(TestSum *sum, PetscScalar a, PetscScalar x)
{
  sum->re += (long double)PetscRealPart(a) * PetscRealPart(x) - (long double)PetscImaginaryPart(a) * PetscImaginaryPart(x);
  sum->im += (long double)PetscRealPart(a) * PetscImaginaryPart(x) + (long double)PetscImaginaryPart(a) * PetscRealPart(x);
  sum->size += (long double)PetscAbsScalar(a) * PetscAbsScalar(x);
}

/* A computed number must be the sum. Where the sum is not finite the number is not either, and NaN for NaN; which of Inf and NaN a complex sum gives depends on its order. */
static inline PetscErrorCode TestCompareSum(const TestSum *sum, PetscScalar got, PetscReal ulps, PetscInt row, PetscInt column, const char what[])
{
  const PetscBool   finite = (PetscBool)(!PetscIsInfOrNanReal((PetscReal)sum->re) && !PetscIsInfOrNanReal((PetscReal)sum->im));
  const long double error  = hypotl(PetscRealPart(got) - sum->re, PetscImaginaryPart(got) - sum->im);
  PetscBool         same;

  PetscFunctionBegin;
  if (finite) same = (PetscBool)(error <= ulps * (long double)PETSC_MACHINE_EPSILON * sum->size);
  else same = (PetscBool)(PetscIsInfOrNanScalar(got) && (PetscDefined(USE_COMPLEX) || PetscIsNanScalar(got) == PetscIsNanReal((PetscReal)sum->re)));
  TestCheck(same, "row %" PetscInt_FMT ", column %" PetscInt_FMT " is %g, should be %g: error %g, of %g that was added up", what, row, column, (double)PetscRealPart(got), (double)sum->re, (double)error,
            (double)sum->size);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares z with op(R) x + y, computed from the rows of R; y may be NULL */
static inline PetscErrorCode TestCompare(Mat R, TestOp op, Vec x, Vec y, Vec z, const char what[])
{
  MPI_Comm           comm = PetscObjectComm((PetscObject)R);
  PetscInt           N, xstart, xend, zstart, zend, rstart, rend;
  const PetscScalar *a;
  PetscScalar       *xall, *sum;
  PetscReal         *size;

  PetscFunctionBegin;
  PetscCall(VecGetSize(x, &N));
  PetscCall(VecGetOwnershipRange(x, &xstart, &xend));
  PetscCall(PetscCalloc1(N, &xall));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(PetscArraycpy(xall + xstart, a, xend - xstart));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, xall, N, MPIU_SCALAR, MPIU_SUM, comm));

  PetscCall(VecGetSize(z, &N));
  PetscCall(VecGetOwnershipRange(z, &zstart, &zend));
  PetscCall(PetscCalloc2(N, &sum, N, &size));
  PetscCall(MatGetOwnershipRange(R, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscInt           n;
    const PetscInt    *j;
    const PetscScalar *v;

    PetscCall(MatGetRow(R, i, &n, &j, &v));
    for (PetscInt k = 0; k < n; k++) {
      const PetscInt    from = op == TEST_MULT ? j[k] : i, to = op == TEST_MULT ? i : j[k];
      const PetscScalar ax = (op == TEST_HERMITIAN ? PetscConj(v[k]) : v[k]) * xall[from];

      sum[to] += ax;
      size[to] += PetscAbsScalar(ax);
    }
    PetscCall(MatRestoreRow(R, i, &n, &j, &v));
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, sum, N, MPIU_SCALAR, MPIU_SUM, comm));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, size, N, MPIU_REAL, MPIU_SUM, comm));
  if (y) {
    PetscCall(VecGetArrayRead(y, &a));
    for (PetscInt i = zstart; i < zend; i++) {
      sum[i] += a[i - zstart];
      size[i] += PetscAbsScalar(a[i - zstart]);
    }
    PetscCall(VecRestoreArrayRead(y, &a));
  }

  PetscCall(VecGetArrayRead(z, &a));
  for (PetscInt i = zstart; i < zend; i++) {
    const PetscReal error = PetscAbsScalar(a[i - zstart] - sum[i]), bound = TEST_ULPS * PETSC_MACHINE_EPSILON * size[i];

    TestCheck(error <= bound, "entry %" PetscInt_FMT " is %g, should be %g: error %g, allowed %g", what, i, (double)PetscRealPart(a[i - zstart]), (double)PetscRealPart(sum[i]), (double)error, (double)bound);
  }
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(PetscFree(xall));
  PetscCall(PetscFree2(sum, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The answers of three products, whoever computes them: z = A x, z = A x + y and zt = A^T xt. xt may be y. */
static inline PetscErrorCode TestAnswers(Mat A, Mat R, Vec x, Vec y, Vec z, Vec xt, Vec zt, const char what[])
{
  PetscFunctionBegin;
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestSetVec(y, 18));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(A, x, z));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, what));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultAdd(A, x, y, z));
  PetscCall(TestCompare(R, TEST_MULT, x, y, z, what));
  PetscCall(TestSetVec(xt, 19));
  PetscCall(TestSpoilVec(zt));
  PetscCall(MatMultTranspose(A, xt, zt));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, xt, NULL, zt, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The norms of what is wrong with found, which may be on the GPU, and of wanted */
static inline PetscErrorCode TestVecError(Vec found, Vec wanted, PetscReal *error, PetscReal *norm)
{
  Vec difference;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(wanted, &difference));
  PetscCall(VecCopy(found, difference));
  PetscCall(VecAXPY(difference, -1.0, wanted));
  PetscCall(VecNorm(difference, NORM_2, error));
  PetscCall(VecNorm(wanted, NORM_2, norm));
  PetscCall(VecDestroy(&difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the statistics ---- */

static inline PetscErrorCode TestIsOurs(Mat A, PetscBool ours, const char what[])
{
  PetscBool flg;
  MatType   type;

  PetscFunctionBegin;
  PetscCall(MatGallopIsFormat(A, &flg));
  PetscCall(MatGetType(A, &type));
  PetscCheck(flg == ours, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "%s: the matrix is of type %s", what, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestHasType(Mat A, const char seq[], const char mpi[], const char what[])
{
  PetscMPIInt size;
  PetscBool   same;
  MatType     type;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrcmp(type, size > 1 ? mpi : seq, &same));
  PetscCheck(same, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "%s: the matrix is of type %s, not %s", what, type, size > 1 ? mpi : seq);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sequential matrices that A consists of on this process, n of them: itself, or the diagonal and the off-diagonal block */
static inline PetscErrorCode TestGetBlocks(Mat A, Mat blocks[2], int *n)
{
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  *n        = mpi ? 2 : 1;
  blocks[0] = A;
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sequential matrices that compute a product on this process: the matrix, or its diagonal block, and its off-diagonal block if that has entries. filled is how many of them have entries, since only those have a format. */
static inline PetscErrorCode TestPartsFilled(Mat A, PetscInt *parts, PetscInt *filled)
{
  Mat     blocks[2];
  int     n = 0;
  MatInfo info;

  PetscFunctionBegin;
  *parts = *filled = 0;
  PetscCall(TestGetBlocks(A, blocks, &n));
  for (int k = 0; k < n; k++) {
    PetscCall(MatGetInfo(blocks[k], MAT_LOCAL, &info));
    *parts += k == 0 || info.nz_used > 0;
    *filled += info.nz_used > 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestParts(Mat A, PetscInt *parts)
{
  PetscInt filled;

  PetscFunctionBegin;
  PetscCall(TestPartsFilled(A, parts, &filled));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the product of A, x and z belongs on the GPU */
static inline PetscErrorCode TestOnDevice(Mat A, Vec x, Vec z, PetscBool *device)
{
  const Vec          v[] = {x, z};
  const PetscScalar *a;
  PetscMemType       memtype;
  PetscBool          bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  *device = PetscNot(bound);
  for (int k = 0; k < 2; k++) {
    PetscCall(VecGetArrayReadAndMemType(v[k], &a, &memtype));
    PetscCall(VecRestoreArrayReadAndMemType(v[k], &a));
    if (!PetscMemTypeDevice(memtype)) *device = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What should have happened to the format of every part since the counts were last looked at */
typedef enum {
  TEST_NOTHING, /* it was kept */
  TEST_REFRESH, /* its values were renewed, once */
  TEST_RENEWED, /* its values were renewed, of one part at least */
  TEST_BUILD,   /* it was built, once */
  TEST_CHANGED, /* on some process a part was built; the other parts may have been refreshed */
  TEST_ANY,     /* it does not matter */
  TEST_FALLBACK /* there is none: the parent computes the products */
} TestExpect;

static inline PetscErrorCode TestCounts(Mat A, TestExpect expect, PetscBool device, MatGallopStatistics *last, const char what[])
{
  MatGallopStatistics now;
  PetscInt            parts = 0, filled = 0;
  PetscInt64          builds, refreshes, products, fallbacks, more;
  PetscBool           wrong = PETSC_FALSE, inassembly;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, TestOption("", "build_in_assembly"), &inassembly));
  PetscCall(TestPartsFilled(A, &parts, &filled));
  more = inassembly ? 2 * parts : 0; /* one change by the user may be several assemblies: from a hash table, of an off-diagonal block with new columns */
  PetscCall(MatGallopGetStatistics(A, &now));
  builds    = now.builds - last->builds;
  refreshes = now.refreshes - last->refreshes;
  products  = device ? now.products_device - last->products_device : now.products_host - last->products_host;
  fallbacks = now.fallbacks - last->fallbacks;
  switch (expect) {
  case TEST_NOTHING:
    wrong = (PetscBool)(builds || refreshes);
    break;
  case TEST_REFRESH:
    wrong = (PetscBool)(builds || refreshes < filled || refreshes > filled + more);
    break;
  case TEST_RENEWED:
    wrong = (PetscBool)(builds || refreshes < PetscMin(filled, 1) || refreshes > filled + more);
    break;
  case TEST_BUILD:
    wrong = (PetscBool)(builds < filled || builds > filled + more || refreshes > more);
    break;
  case TEST_CHANGED: {
    PetscInt64 somewhere = builds;

    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &somewhere, 1, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
    wrong = (PetscBool)(somewhere == 0 || builds + refreshes > filled + more);
  } break;
  case TEST_FALLBACK:
    wrong = (PetscBool)(builds || refreshes);
    break;
  case TEST_ANY:
    break;
  }
  TestCheck(!wrong, "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes of %" PetscInt_FMT " parts with entries", what, builds, refreshes, filled);
  if (expect == TEST_FALLBACK) {
    TestCheck(fallbacks == filled && products == parts - filled, "%" PetscInt64_FMT " products by the parent and %" PetscInt64_FMT " by the format, of %" PetscInt_FMT " parts", what, fallbacks, products, parts);
  } else {
    TestCheck(products == parts, "%" PetscInt64_FMT " products on the %s of %" PetscInt_FMT " parts, %" PetscInt64_FMT " by the parent", what, products, device ? "GPU" : "host", parts, fallbacks);
    TestCheck(!fallbacks, "%" PetscInt64_FMT " products by the parent", what, fallbacks);
  }
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A transposed product was counted: as one of the format if it has such a product and was built, else as one of the parent */
static inline PetscErrorCode TestTransposeCounts(Mat A, MatGallopStatistics *last, const char what[])
{
  MatGallopStatistics now;
  const GallopFormat *format;
  PetscBool           own;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormat(A, &format));
  own = GallopComputesTranspose(format);
  PetscCall(MatGallopGetStatistics(A, &now));
  PetscCheck(now.fallbacks + now.products_host + now.products_device > last->fallbacks + last->products_host + last->products_device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was not counted", what);
  PetscCheck(own || (now.builds == last->builds && now.refreshes == last->refreshes), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s built a format that it does not use", what);
  PetscCheck(!own || !now.builds || now.fallbacks == last->fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was the parent's", what);
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the check ---- */

/* The format that products with vectors of MatCreateVecs() use, on one process */
static inline PetscErrorCode TestFormatData(Mat A, const char what[], const void **data)
{
  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, data));
  if (!*data) PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_HOST, data));
  TestCheck(*data, "no format", what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestSetIntOption(const char name[], PetscInt value)
{
  char text[32];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT, value));
  PetscCall(PetscOptionsSetValue(NULL, name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGetDiagonal() of A into a, whose entries were others, and of R into r: the same but for rounding of so many units, 0 for the same bits */
static inline PetscErrorCode TestDiagonal(Mat A, Mat R, Vec a, Vec r, PetscReal ulps, const char what[])
{
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(VecSet(a, 77)); /* VecNorm() may pass over NaN */
  PetscCall(TestWaitForDefaultStream());
  PetscCall(MatGetDiagonal(A, a));
  PetscCall(MatGetDiagonal(R, r));
  PetscCall(VecNorm(r, NORM_INFINITY, &norm));
  PetscCall(VecAXPY(r, -1.0, a));
  PetscCall(VecNorm(r, NORM_INFINITY, &error));
  TestCheck(error <= ulps * PETSC_MACHINE_EPSILON * norm, "the diagonal differs by %g", what, (double)error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One MatMult(), which makes the format, for tests that need the counts of it alone */
static inline PetscErrorCode TestMult(Mat A, Mat R, Vec x, Vec z, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(A, x, z));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, what));
  PetscCall(TestOnDevice(A, x, z, &device));
  PetscCall(TestCounts(A, expect, device, last, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One MatMultTranspose(). The parent computes it from a copy of its own, which changes must renew. */
static inline PetscErrorCode TestMultTranspose(Mat A, Mat R, Vec x, Vec z, MatGallopStatistics *last, const char what[])
{
  PetscFunctionBegin;
  PetscCall(TestSetVec(x, 19));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultTranspose(A, x, z));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, x, NULL, z, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultTranspose()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product of each kind, to see that the entries are current. It is a fraction of the work of TestProducts(), which matters where processes share a GPU. */
static inline PetscErrorCode TestProductsBriefly(Mat A, Mat R, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  Vec x, z;

  PetscFunctionBegin;
  PetscCall(TestIsOurs(A, PETSC_TRUE, what));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestMult(A, R, x, z, expect, last, what));
  PetscCall(TestMultTranspose(A, R, z, x, last, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products of a matrix and of its transposes, twice. *last has the counts from before the change that is tested: 0 for a new matrix. */
static inline PetscErrorCode TestProducts(Mat A, Mat R, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  const TestExpect after = expect == TEST_FALLBACK ? TEST_FALLBACK : TEST_NOTHING;
  Vec              x, y, z, xt, yt, zt;
  PetscBool        device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestIsOurs(A, PETSC_TRUE, what));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestMult(A, R, x, z, expect, last, what));
  PetscCall(TestMult(A, R, x, z, after, last, what));

  PetscCall(TestOnDevice(A, x, z, &device));
  PetscCall(TestSetVec(y, 18));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMultAdd(A, x, y, z));
  PetscCall(TestCompare(R, TEST_MULT, x, y, z, what));
  PetscCall(TestCounts(A, after, device, last, what));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(A, x, z, z));
  PetscCall(TestCompare(R, TEST_MULT, x, y, z, what));
  PetscCall(TestCounts(A, after, device, last, what));

  PetscCall(VecDuplicate(z, &xt));
  PetscCall(VecDuplicate(x, &yt));
  PetscCall(VecDuplicate(x, &zt));
  PetscCall(TestMultTranspose(A, R, xt, zt, last, what));
  PetscCall(TestSetVec(yt, 20));
  PetscCall(TestSpoilVec(zt));
  PetscCall(MatMultTransposeAdd(A, xt, yt, zt));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, xt, yt, zt, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultTransposeAdd()"));
  PetscCall(VecCopy(yt, zt));
  PetscCall(MatMultTransposeAdd(A, xt, zt, zt));
  PetscCall(TestCompare(R, TEST_TRANSPOSE, xt, yt, zt, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultTransposeAdd() in place"));
  PetscCall(TestSpoilVec(zt));
  PetscCall(MatMultHermitianTranspose(A, xt, zt));
  PetscCall(TestCompare(R, TEST_HERMITIAN, xt, NULL, zt, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultHermitianTranspose()"));
  PetscCall(TestSpoilVec(zt));
  PetscCall(MatMultHermitianTransposeAdd(A, xt, yt, zt));
  PetscCall(TestCompare(R, TEST_HERMITIAN, xt, yt, zt, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultHermitianTransposeAdd()"));
  PetscCall(VecCopy(yt, zt));
  PetscCall(MatMultHermitianTransposeAdd(A, xt, zt, zt));
  PetscCall(TestCompare(R, TEST_HERMITIAN, xt, yt, zt, what));
  PetscCall(TestTransposeCounts(A, last, "MatMultHermitianTransposeAdd() in place"));

  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&xt));
  PetscCall(VecDestroy(&yt));
  PetscCall(VecDestroy(&zt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- messages ---- */

/* PETSc's stream for errors goes to a file between TestCaptureBegin() and TestCaptureEnd() */
static FILE *test_stderr, *test_file;

/* The message of an error belongs on the screen all the same */
static inline PetscErrorCode TestCaptureError(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode ierr, PetscErrorType type, const char *text, PetscCtx ctx)
{
  PETSC_STDERR = test_stderr;
  return PetscTraceBackErrorHandler(comm, line, function, file, ierr, type, text, ctx);
}

static inline PetscErrorCode TestCaptureBegin(void)
{
  PetscFunctionBegin;
  test_stderr = PETSC_STDERR;
  test_file   = tmpfile();
  PetscCheck(test_file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PETSC_STDERR = test_file;
  PetscCall(PetscPushErrorHandler(TestCaptureError, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestCaptureEnd(const char text[], PetscInt *lines, PetscInt *matches)
{
  char line[512], *found;

  PetscFunctionBegin;
  PetscCall(PetscPopErrorHandler());
  PETSC_STDERR = test_stderr;
  rewind(test_file);
  *lines = *matches = 0;
  while (fgets(line, sizeof(line), test_file)) {
    (*lines)++;
    PetscCall(PetscStrstr(line, text, &found));
    if (found) (*matches)++;
  }
  (void)fclose(test_file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PetscInfo() says on this process between TestInfoBegin() and TestInfoEnd(), which opens it for the caller to read and close */
static char test_info[32];

static inline PetscErrorCode TestInfoBegin(void)
{
  int descriptor;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(test_info, "infoXXXXXX", sizeof(test_info)));
  descriptor = mkstemp(test_info);
  PetscCheck(descriptor >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  (void)close(descriptor);
  PetscCall(PetscInfoSetFile(test_info, "w"));
  PetscCall(PetscInfoAllow(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestInfoEnd(FILE **info)
{
  char name[64];

  PetscFunctionBegin;
  PetscCall(PetscInfoSetFile(NULL, NULL));
  PetscCall(PetscInfoAllow(PETSC_FALSE));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s.%d", test_info, PetscGlobalRank)); /* as PETSc names it */
  *info = fopen(name, "r");
  PetscCheck(*info, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no file %s", name);
  (void)unlink(name);
  (void)unlink(test_info);
  PetscFunctionReturn(PETSC_SUCCESS);
}
