/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "How often the host waits for the GPU while a format is built there: once, for numbers, unless there is something unusual. EVC-HYB looks at long rows or an order of rows for "
                     "packed storage, HBP at blocks where rows are in several, FASTLOAD at long rows, and at columns far longer than the mean. What the host has planned of long rows is copied from memory that is "
                     "freed then, for which it waits once more.\n\n";

#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif

#include "packtest.h"

static PetscInt waits = 0;

#if PetscDefined(HAVE_CUDA)
  #include <dlfcn.h>
  #include <string.h>
  #include <petscdevice_cuda.h>

/* Those of this library count, whether it logs a copy for them or not. PETSc has its own, when a copy of the matrix that it made goes. */
static void CountWait(void *caller)
{
  Dl_info info = {NULL, NULL, NULL, NULL};

  if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libgallop")) waits++;
}

/* These go before the runtime library's own, for PETSc and for this library */
PETSC_VISIBILITY_PUBLIC cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  cudaError_t (*real)(cudaStream_t);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaStreamSynchronize");
  CountWait(__builtin_return_address(0));
  return (*real)(stream);
}

PETSC_VISIBILITY_PUBLIC cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  cudaError_t (*real)(cudaEvent_t);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaEventSynchronize");
  CountWait(__builtin_return_address(0));
  return (*real)(event);
}

PETSC_VISIBILITY_PUBLIC cudaError_t cudaDeviceSynchronize(void)
{
  cudaError_t (*real)(void);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaDeviceSynchronize");
  CountWait(__builtin_return_address(0));
  return (*real)();
}

PETSC_VISIBILITY_PUBLIC cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
  cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaMemcpy");
  CountWait(__builtin_return_address(0));
  return (*real)(to, from, bytes, kind);
}
#endif

/* Copies from the GPU that are logged */
static PetscLogDouble Copies(void)
{
#if PetscDefined(HAVE_DEVICE)
  return petsc_gtoc_ct;
#else
  return 0;
#endif
}

/* Rows with lengths that differ, or a long one now and then, or empty ones */
static PetscErrorCode Rows(PetscInt m, PetscInt least, PetscInt differ, PetscInt every, PetscInt longer, Mat *A)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = every && r % every == 5 ? longer : least + (differ ? (PetscInt)(2654435761u * (uint32_t)(r + 1) >> 20) % differ : 0);

    for (PetscInt k = 0; k < len; k++) PetscCall(TestEntriesPut(&e, r % (m / len) + k * (m / len), ValueOf(VALUES_ALL, e.nz)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's product first, which copies the matrix to the GPU; then one that builds, for which the host waits so often, and one more, for which it does not */
static PetscErrorCode Check(const char what[], Mat A, MatType type, PetscInt least, PetscInt most, PetscBool packed)
{
  Mat                 B;
  Vec                 x, z;
  PetscInt            m, before, build, later;
  EVCHYBPack         *pack = NULL;
  PetscLogDouble      copies;
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "pays"));
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
  PetscCall(MultiplyAt(B, m, 1, &x, &z));
  PetscCall(MatGallopGetStatistics(B, &now));
  PetscCheck(!now.builds, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: built before its time", what);
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "first"));
  PetscCall(MatSetFromOptions(B));
  before = waits;
  PetscCall(MatMult(B, x, z));
  build  = waits - before;
  before = waits;
  copies = Copies();
  PetscCall(MatMult(B, x, z));
  later  = waits - before;
  copies = Copies() - copies;
  PetscCall(MatGallopGetStatistics(B, &now));
  PetscCheck(now.builds == 1 && now.products_device == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " products of the format on the GPU", what, now.builds,
             now.products_device);
  if (!strcmp(type, MATEVCHYB)) PetscCall(PackAt(B, PETSC_MEMTYPE_CUDA, &pack));
  PetscCheck((pack != NULL) == packed, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %spacked", what, pack ? "" : "not ");
  PetscCheck(build >= least && build <= most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the host waits %" PetscInt_FMT " times in a build, expected are %" PetscInt_FMT " to %" PetscInt_FMT, what, build, least, most);
  PetscCheck(later == 0 && copies == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the host waits %" PetscInt_FMT " times in the next product, and makes %g copies", what, later, copies);
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;
  Mat       A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  if (device) {
    PetscCall(Stencil(20, 20, 20, 1, VALUES_ALL, &A));
    PetscCall(Check("small", A, MATEVCHYB, 1, 1, PETSC_FALSE));
    PetscCall(Rows(150000, 1, 5, 0, 0, &A));
    PetscCall(Check("more rows than one thread block puts into order", A, MATEVCHYB, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 0, 2, 0, 0, &A));
    PetscCall(Check("many empty rows", A, MATEVCHYB, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 2, 5, 100, 300, &A));
    PetscCall(Check("long rows", A, MATEVCHYB, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 2, 5, 20, 150, &A));
    PetscCall(Check("more long rows than one copy tells the host", A, MATEVCHYB, 1, 2, PETSC_FALSE));
    PetscCall(Rows(20000, 2, 5, 10000, 20000, &A));
    PetscCall(Check("rows that several thread blocks compute", A, MATEVCHYB, 2, 2, PETSC_FALSE)); /* for numbers, and for the plan of these rows to be copied */
    PetscCall(Stencil(1200, 300, 1, 1, VALUES_ALL, &A));
    PetscCall(Check("packed", A, MATEVCHYB, 1, 1, PETSC_TRUE));
    PetscCall(Stencil(1200, 300, 1, 1, VALUES_256, &A));
    PetscCall(Check("packed, with a dictionary", A, MATEVCHYB, 1, 2, PETSC_TRUE));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "auto"));
    PetscCall(Stencil(1200, 300, 1, 1, VALUES_ALL, &A));
    PetscCall(Check("packed, after a look whether another order pays", A, MATEVCHYB, 1, 2, PETSC_TRUE));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_order", "none"));
    PetscCall(Stencil(20, 20, 20, 1, VALUES_ALL, &A));
    PetscCall(Check("small", A, MATHBP, 1, 1, PETSC_FALSE));
    PetscCall(Stencil(70, 70, 70, 1, VALUES_ALL, &A));
    PetscCall(Check("maps, and so many rows that the host does not count them", A, MATHBP, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 0, 2, 0, 0, &A));
    PetscCall(Check("many empty rows", A, MATHBP, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 4, 0, 2000, 1500, &A));
    PetscCall(Check("long rows", A, MATHBP, 1, 1, PETSC_FALSE));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_hbp_map", "0"));
    PetscCall(Stencil(50, 50, 50, 1, VALUES_ALL, &A));
    PetscCall(Check("rows in several blocks", A, MATHBP, 1, 2, PETSC_FALSE));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
    PetscCall(Stencil(20, 20, 20, 1, VALUES_ALL, &A));
    PetscCall(Check("small", A, MATFASTLOAD, 1, 1, PETSC_FALSE));
    PetscCall(Stencil(70, 70, 70, 1, VALUES_ALL, &A));
    PetscCall(Check("so many rows that the host does not count them", A, MATFASTLOAD, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 0, 2, 0, 0, &A));
    PetscCall(Check("many empty rows", A, MATFASTLOAD, 1, 1, PETSC_FALSE));
    PetscCall(Rows(20000, 4, 0, 2000, 1500, &A));
    PetscCall(Check("long rows", A, MATFASTLOAD, 3, 3, PETSC_FALSE)); /* for all numbers, for which rows are long, and for their pieces to be copied */
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out
    args: -mat_gallop_explicit_transpose never -mat_evchyb_order none
    command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}

TEST*/
