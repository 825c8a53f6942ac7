/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What TiledSpMM chooses by itself on the GPU: the kernel, and the size of segments, as -mat_tiledspmm_utilization and _imbalance have it. On the host there are stages, and no row is cut.\n\n";

#include "propertytest.h"
#include "../densetest.h"
#include "../../src/mat/impls/tiledspmm/tiledspmm.h"
#include "../tiledspmmcases.h"

#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif

static const char *const kernels[] = {"staged", "cached", "transposed", "tensor", "choose"};

/* Multiprocessors and the L2 cache of the GPU, of which the choice depends; without one, those of the GPU that the defaults are for */
static PetscErrorCode GetDevice(PetscBool device, PetscInt *processors, size_t *l2)
{
  PetscFunctionBegin;
  *processors = 132;
  *l2         = 60 << 20;
#if PetscDefined(HAVE_CUDA)
  if (device) {
    int number, value;

    PetscCallCUDA(cudaGetDevice(&number));
    PetscCallCUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, number));
    *processors = value;
    PetscCallCUDA(cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, number));
    *l2 = (size_t)value;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(const TiledSpMMCase *c, PetscInt m, PetscInt n, Mat *R)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = CaseLength(c, m, r);

    for (PetscInt k = 0; k < len; k++) PetscCall(TestEntriesPut(&e, CaseColumn(c, m, n, r, k), TestValue(7600, r, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of the case alone, and on the host, which leaves products to the parent by itself, one more */
static PetscErrorCode SetOptions(const TiledSpMMCase *c, PetscBool device)
{
  char number[32];

  PetscFunctionBegin;
  if (!device) PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  if (c->staged) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "staged"));
    PetscCall(TestSetIntOption("-mat_tiledspmm_panel", CASE_PANEL));
  }
  PetscCall(PetscSNPrintf(number, sizeof(number), "%g", c->utilization));
  if (c->utilization >= 0) PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_utilization", number));
  PetscCall(PetscSNPrintf(number, sizeof(number), "%g", c->imbalance));
  if (c->imbalance >= 0) PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_imbalance", number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClearOptions(void)
{
  PetscFunctionBegin;
  PetscCall(TestClearOptions("-mat_tiledspmm_least -mat_tiledspmm_kernel -mat_tiledspmm_panel -mat_tiledspmm_utilization -mat_tiledspmm_imbalance"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen for a matrix on the GPU. Tiles are for real numbers in double precision, where kernels can start early too: both take the same compute capability. */
static PetscErrorCode CheckDevice(const TiledSpMMCase *c, const TiledSpMM *t, PetscInt m, PetscInt processors)
{
  const PetscBool       tensor  = (PetscBool)(t->overlaps && PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX) && c->pattern != CASE_FULLER); /* whose tiles turn out to be few */
  const TiledSpMMKernel kernel  = tensor ? c->kernel : c->other;
  const PetscInt        segment = kernel == TILEDSPMM_TENSOR ? 0 : CaseSegment(c, t->nz, processors);
  PetscInt              cut     = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m && segment; r++) cut += CaseLength(c, m, r) > segment;
  TestCheck(t->kernel == kernel, "the kernel is %s, not %s", c->what, kernels[t->kernel], kernels[kernel]);
  TestCheck(t->segment == segment, "segments of %" PetscInt_FMT " entries, not %" PetscInt_FMT, c->what, t->segment, segment);
  TestCheck(t->nsplit == cut, "%" PetscCount_FMT " rows are cut, not %" PetscInt_FMT, c->what, t->nsplit, cut);
  TestCheck((t->ntile > 0) == (kernel == TILEDSPMM_TENSOR), "%" PetscCount_FMT " tiles", c->what, t->ntile);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(const TiledSpMMCase *c, PetscBool device)
{
  PetscInt            m, n, processors;
  size_t              l2;
  Mat                 A, R, B, C;
  const void         *data;
  const TiledSpMM    *t;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(GetDevice(device, &processors, &l2));
  CaseSizes(c, processors, l2, &m, &n);
  PetscCall(CreateMatrix(c, m, n, &R));
  PetscCall(SetOptions(c, device));
  PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
  PetscCall(ClearOptions());
  PetscCall(TestCreateDense(A, PETSC_FALSE, device ? MATSEQDENSECUDA : MATSEQDENSE, 2, PETSC_FALSE, 9, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, c->what));
  PetscCall(TestDenseCounts(A, 1, 0, device ? TEST_DENSE_DEVICE : TEST_DENSE_HOST, &last, c->what));
  PetscCall(MatGallopGetTiledSpMMData(A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
  t = (const TiledSpMM *)data;
  TestCheck(t, "no structure", c->what);
  /* what the choice is made by, wherever it is: the options, of the database or as they are without */
  TestCheck(t->options.kernel == (c->staged ? TILEDSPMM_STAGED : TILEDSPMM_CHOOSE) && t->options.segment == 0, "kernel %s and segments of %" PetscInt_FMT " entries are asked for", c->what, kernels[t->options.kernel], t->options.segment);
  TestCheck(t->options.utilization == (PetscReal)(c->utilization < 0 ? CASE_UTILIZATION : c->utilization), "utilization %g", c->what, (double)t->options.utilization);
  TestCheck(t->options.imbalance == (PetscReal)(c->imbalance < 0 ? CASE_IMBALANCE : c->imbalance), "imbalance %g", c->what, (double)t->options.imbalance);
  if (device) PetscCall(CheckDevice(c, t, m, processors));
  else TestCheck(t->kernel == TILEDSPMM_STAGED && !t->segment && !t->nsplit, "kernel %s on the host, segments of %" PetscInt_FMT " entries", c->what, kernels[t->kernel], t->segment);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(tiledspmmcases); k++)
    for (int g = 0; g <= (int)device; g++)
      if (TestInPart()) PetscCall(Check(&tiledspmmcases[k], (PetscBool)g));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out

TEST*/
