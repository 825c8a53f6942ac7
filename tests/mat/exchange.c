/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Ghost values that processes write into each other's memory give the bits that PetscSF gives, whatever is done to matrices and in whichever order.\n\
  -way <ipc>      what is compared with PetscSF: ipc, nccl, auto, or shared, which is for the host too\n\
  -products <40>  products of a matrix, which nobody waits for in between\n\
  -cycles <20>    matrices that are made and destroyed\n\
  -delay <100>    microseconds that a process may rest before a product\n\
  -one            one matrix, and nothing else\n\
  -pattern <0>    its pattern\n\n";

#include "exchangetest.h"

static PetscInt  products = 40, cycles = 20, delay = 100;
static PetscBool sums = PETSC_TRUE; /* not while products are on another stream: PETSc adds vectors on the default one */

static Vec work; /* on the GPU where there is one */

/* Processes are never in step, nor are their GPUs */
static PetscErrorCode Rest(void)
{
  PetscFunctionBegin;
  if (Random(8) == 0) (void)usleep((unsigned int)Random(delay));
  for (PetscInt k = Random(8) == 0 ? Random(20) : 0; k > 0; k--) PetscCall(VecScale(work, -1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define VECTORS 5

/* NCCL is for two processes and more */
static PetscErrorCode Goes(Mat A, PetscBool *tested)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (nccl && size == 1) *tested = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many products as are wanted of two matrices in turn, or of one, none of which is waited for, against those of R and S. A sum keeps the trace of each product. */
static PetscErrorCode Products(Mat A, Mat R, Mat B, Mat S, PetscInt n, PetscBool tested, const char what[])
{
  Mat                 mats[2] = {A, B}, refs[2] = {R, S};
  Vec                 x[2][VECTORS], z[2][VECTORS], sum[2];
  MatGallopStatistics before[2];
  const PetscInt      nmats = B ? 2 : 1;

  PetscFunctionBegin;
  for (PetscInt m = 0; m < nmats; m++) {
    PetscCall(MatGallopGetStatistics(mats[m], &before[m]));
    PetscCall(MatCreateVecs(mats[m], NULL, &sum[m]));
    PetscCall(VecSet(sum[m], 0.0));
    for (int v = 0; v < VECTORS; v++) {
      PetscCall(MatCreateVecs(mats[m], &x[m][v], &z[m][v]));
      PetscCall(TestSetVec(x[m][v], 17 + v));
      PetscCall(VecSet(z[m][v], 0.0));
    }
  }
  PetscCall(TestWaitForDefaultStream());
  for (PetscInt k = 0; k < n; k++) {
    for (PetscInt m = 0; m < nmats; m++) {
      const int v = (int)(k % VECTORS);

      PetscCall(Rest());
      switch (k % 3) { /* x of the next product is z of this one, at times, so that an error of timing grows */
      case 0:
        PetscCall(MatMult(mats[m], x[m][v], z[m][v]));
        break;
      case 1:
        PetscCall(MatMultAdd(mats[m], x[m][v], z[m][v], z[m][v]));
        break;
      default:
        PetscCall(MatResidual(mats[m], z[m][(v + 1) % VECTORS], x[m][v], z[m][v]));
        break;
      }
      if (sums) PetscCall(VecAXPY(sum[m], 1.0, z[m][v]));
    }
  }
  for (PetscInt m = 0; m < nmats; m++) {
    Vec       zr[VECTORS], sumr;
    PetscBool goes = tested;

    PetscCall(VecDuplicate(sum[m], &sumr));
    PetscCall(VecSet(sumr, 0.0));
    PetscCall(Goes(mats[m], &goes));
    PetscCall(CheckWay(mats[m], goes, Exchanges(&before[m], goes), n, what));
    for (int v = 0; v < VECTORS; v++) {
      PetscCall(VecDuplicate(z[m][v], &zr[v]));
      PetscCall(VecSet(zr[v], 0.0));
    }
    PetscCall(TestWaitForDefaultStream());
    for (PetscInt k = 0; k < n; k++) {
      const int v = (int)(k % VECTORS);

      if (k % 3 == 0) PetscCall(MatMult(refs[m], x[m][v], zr[v]));
      else if (k % 3 == 1) PetscCall(MatMultAdd(refs[m], x[m][v], zr[v], zr[v]));
      else PetscCall(MatResidual(refs[m], zr[(v + 1) % VECTORS], x[m][v], zr[v]));
      if (sums) PetscCall(VecAXPY(sumr, 1.0, zr[v]));
    }
    for (int v = 0; v < VECTORS; v++) {
      PetscCall(SameBits(z[m][v], zr[v], what));
      PetscCall(VecDestroy(&zr[v]));
      PetscCall(VecDestroy(&x[m][v]));
      PetscCall(VecDestroy(&z[m][v]));
    }
    PetscCall(SameBits(sum[m], sumr, what));
    PetscCall(VecDestroy(&sumr));
    PetscCall(VecDestroy(&sum[m]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with other values, other ghosts, as a copy, and as AIJ and back */
static PetscErrorCode Changes(Mat A, Mat R, PetscBool tested)
{
  Mat            mats[] = {A, R}, copy, refcopy;
  PetscInt       rstart, rend, N;
  const PetscInt n = 6;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(Products(A, R, NULL, NULL, n, tested, "new"));
  for (int k = 0; k < 2; k++) PetscCall(MatScale(mats[k], 2.0));
  PetscCall(Products(A, R, NULL, NULL, n, tested, "other values"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(mats[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(mats[k], MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
    for (PetscInt i = rstart; i < rend; i++) PetscCall(MatSetValue(mats[k], i, (7 * i + 3) % N, 3.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(mats[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(mats[k], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(Products(A, R, NULL, NULL, n, tested, "other ghosts"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &copy));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &refcopy));
  PetscCall(MatScale(copy, -1.0));
  PetscCall(MatScale(refcopy, -1.0));
  PetscCall(Products(A, R, copy, refcopy, n, tested, "with a copy in turn"));
  PetscCall(MatDestroy(&refcopy));
  PetscCall(MatConvert(copy, MATAIJ, MAT_INPLACE_MATRIX, &copy)); /* just after a product */
  PetscCall(MatDestroy(&copy));
  PetscCall(Products(A, R, NULL, NULL, n, tested, "without it"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices on different communicators, in turn, destroyed in any order */
static PetscErrorCode Communicators(PetscBool tested)
{
  PetscMPIInt rank;
  MPI_Comm    half;
  Mat         A[2], R[2];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, rank % 2, rank, &half));
  PetscCall(Create(PETSC_COMM_WORLD, ALL, way, 3, &A[0]));
  PetscCall(Create(PETSC_COMM_WORLD, ALL, "sf", 3, &R[0]));
  PetscCall(Create(half, RING, way, 4, &A[1]));
  PetscCall(Create(half, RING, "sf", 4, &R[1]));
  PetscCall(Products(A[0], R[0], A[1], R[1], products, tested, "two communicators"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&A[k]));
    PetscCall(MatDestroy(&R[1 - k]));
  }
  PetscCallMPI(MPI_Comm_free(&half));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices of all sizes come and go, so that each gets the memory of others */
static PetscErrorCode Cycles(PetscBool tested)
{
  Mat kept[3] = {NULL, NULL, NULL}, R[3] = {NULL, NULL, NULL};

  PetscFunctionBegin;
  for (PetscInt c = 0; c < cycles; c++) {
    const int     k = (int)(c % 3), other = (int)((c + 1) % 3);
    const Pattern pattern = (Pattern)(c * 5 % PATTERNS);

    PetscCall(MatDestroy(&kept[k]));
    PetscCall(MatDestroy(&R[k]));
    PetscCall(Create(PETSC_COMM_WORLD, pattern, way, c, &kept[k]));
    PetscCall(Create(PETSC_COMM_WORLD, pattern, "sf", c, &R[k]));
    PetscCall(Products(kept[k], R[k], kept[other], R[other], 1 + c % 4, tested, "made and destroyed"));
  }
  for (int k = 0; k < 3; k++) {
    PetscCall(MatDestroy(&kept[k]));
    PetscCall(MatDestroy(&R[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process has no memory, or then cannot open that of another one: all of them take PetscSF. Nothing must have been set up before. */
static PetscErrorCode NoMemory(void)
{
  static const char *const fail[] = {"1", "2"};
  PetscMPIInt              rank, size;
  Mat                      A, R;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS); /* it needs none */
  for (int k = 0; k < (nccl ? 1 : 2); k++) {         /* by NCCL nothing is opened */
    PetscCall(Create(PETSC_COMM_WORLD, ALL, "sf", 1, &A));
    PetscCall(Create(PETSC_COMM_WORLD, ALL, "sf", 1, &R));
    PetscCall(Products(A, R, NULL, NULL, 1, PETSC_FALSE, "formats that find room"));
    PetscCall(MatSetOptionsPrefix(A, "other_"));
    PetscCall(PetscOptionsSetValue(NULL, "-other_mat_gallop_exchange", way));
    PetscCall(MatSetFromOptions(A));
    if (rank == 0) PetscCall(PetscOptionsSetValue(NULL, "-gallop_device_malloc_fail", fail[k]));
    PetscCall(Products(A, R, NULL, NULL, 4, PETSC_FALSE, "a process without memory"));
    if (rank == 0) PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's stream changes while products are under way */
static PetscErrorCode Streams(PetscBool tested)
{
  PetscBool          device;
  PetscDeviceContext before, context[2];
  Mat                A, R;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Create(PETSC_COMM_WORLD, ALL, way, 5, &A));
  PetscCall(Create(PETSC_COMM_WORLD, ALL, "sf", 5, &R));
  PetscCall(Products(A, R, NULL, NULL, 3, tested, "the default stream"));
  PetscCall(PetscDeviceContextGetCurrentContext(&before));
  sums = PETSC_FALSE;
  for (int k = 0; k < 2; k++) {
    Mat S;

    PetscCall(PetscDeviceContextSynchronize(before));
    PetscCall(PetscDeviceContextCreate(&context[k]));
    PetscCall(PetscDeviceContextSetStreamType(context[k], PETSC_STREAM_NONBLOCKING));
    PetscCall(PetscDeviceContextSetUp(context[k]));
    PetscCall(PetscDeviceContextSetCurrentContext(context[k]));
    PetscCall(Create(PETSC_COMM_WORLD, ALL, "sf", 5, &S)); /* a PetscSF stays on the stream that it was first used on */
    PetscCall(Products(A, S, NULL, NULL, products, tested, "another stream"));
    PetscCall(MatDestroy(&S));
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscDeviceContextSynchronize(context[k]));
  PetscCall(PetscDeviceContextSetCurrentContext(before));
  sums = PETSC_TRUE;
  for (int k = 0; k < 2; k++) PetscCall(PetscDeviceContextDestroy(&context[k]));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What waits for ghost values is what options say */
static PetscErrorCode Waits(PetscBool tested)
{
  static const char *const kinds[] = {"Ghost values: by"};
  Mat                      A;
  Vec                      x, z;
  FILE                    *info = NULL;

  PetscFunctionBegin;
  if (!tested || nccl) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Create(PETSC_COMM_WORLD, ALL, way, 6, &A));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestInfoBegin());
  PetscCall(MatMult(A, x, z));
  PetscCall(TestInfoEnd(&info));
  PetscCall(CheckWaits(info, PETSC_STATIC_ARRAY_LENGTH(kinds), kinds));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, R;
  PetscBool   tested = PETSC_FALSE, one = PETSC_FALSE, device;
  PetscMPIInt rank;
  PetscInt    pattern = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-way", way, sizeof(way), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cycles", &cycles, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-delay", &delay, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-one", &one, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-pattern", &pattern, NULL));
  PetscCall(PetscStrcmp(way, "nccl", &nccl));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  state = 12345 + 77 * (uint64_t)rank;
  PetscCall(Expected(&tested));
  PetscCall(VecCreate(PETSC_COMM_SELF, &work));
  PetscCall(VecSetSizes(work, 20000, 20000));
  PetscCall(TestHasDevice(&device));
  PetscCall(VecSetType(work, device ? VECCUDA : VECSTANDARD));
  PetscCall(VecSet(work, 1.0));
  if (!one) {
    PetscCall(NoMemory());
    PetscCall(Waits(tested));
  }
  for (PetscInt p = pattern; p < (one ? pattern + 1 : PATTERNS); p++) {
    PetscCall(Create(PETSC_COMM_WORLD, (Pattern)p, way, p, &A));
    PetscCall(Create(PETSC_COMM_WORLD, (Pattern)p, "sf", p, &R));
    PetscCall(Products(A, R, NULL, NULL, products, tested, Names[p]));
    if (!one && p != WIDE) PetscCall(Changes(A, R, tested));
    PetscCall(MatViewFromOptions(A, NULL, "-view"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  if (!one) {
    PetscCall(Communicators(tested));
    PetscCall(Cycles(tested));
    PetscCall(Streams(tested));
  }
  PetscCall(VecDestroy(&work));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      nsize: {{1 2 3}}
      args: -way {{shared ipc auto}}
    test:
      suffix: 8
      nsize: 8
      args: -way shared -cycles 10
    # make stress has more products
    test:
      suffix: long
      nsize: 8
      args: -way shared -one -products 1000
    test:
      suffix: nccl
      nsize: {{1 2 3}}
      args: -way nccl -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL}
    test:
      suffix: nccl_8
      nsize: 8
      args: -way nccl -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL} -cycles 10
    # more neighbors than a kernel writes to
    test:
      suffix: nccl_many
      nsize: 34
      args: -way nccl -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL} -one -pattern 3 -products 4

  testset:
    requires: cuda
    output_file: output/empty.out
    test:
      suffix: nccl_gpus
      nsize: {{2 4}separate output}
      args: -way nccl
      command: ${GALLOP_TESTS}/with-gpus ${label} ${insize} nccl -n ${insize} ${executable} ${args}
    test:
      suffix: kernel
      nsize: 3
      args: -way ipc -mat_gallop_exchange_wait kernel
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}
    test:
      suffix: side
      nsize: 3
      args: -way ipc -mat_gallop_exchange_stream side
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}
    test:
      suffix: side_kernel
      nsize: 3
      args: -way ipc -mat_gallop_exchange_stream side -mat_gallop_exchange_wait kernel
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}

  # said once
  test:
    suffix: host
    nsize: 2
    args: -one -way ipc -device_enable none -info :mat
    filter: grep -o "Ghost values:.*"
  test:
    suffix: apart
    nsize: 2
    args: -one -way shared -noshared -info :mat
    filter: grep -o "Ghost values:.*"
  test:
    suffix: nccl_view
    nsize: 2
    args: -one -way nccl -device_enable none -mat_gallop_nccl ${GALLOP_TEST_NCCL} -info :mat -nccl_view ::ascii_info
    filter: grep -o "Ghost values:.*"

TEST*/
