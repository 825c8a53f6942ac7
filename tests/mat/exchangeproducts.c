/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Transposed products and products with dense matrices, whose processes write into each other's memory or send by NCCL, give what they give by PetscSF.\n\
  -way <ipc>      what is compared with PetscSF: ipc, nccl, auto, or shared, which is for the host too\n\
  -products <12>  transposed products of a matrix, which nobody waits for in between\n\
  -one            one matrix, and nothing else\n\n";

#include "exchangetest.h"

static PetscInt products = 12;

/* The same bits; or the same up to rounding: on the GPU PetscSF adds what comes for one row in any order */
static PetscErrorCode Compare(Vec x, Vec y, PetscBool device, const char what[])
{
  Vec       w;
  PetscReal error, size;

  PetscFunctionBegin;
  if (!device) PetscCall(SameBits(x, y, what));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(VecWAXPY(w, -1.0, x, y));
  PetscCall(VecNorm(w, NORM_INFINITY, &error));
  PetscCall(VecNorm(x, NORM_INFINITY, &size));
  PetscCheck(error <= 1e3 * PETSC_MACHINE_EPSILON * size, PetscObjectComm((PetscObject)x), PETSC_ERR_PLIB, "%s: error %g of %g", what, (double)error, (double)size);
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each takes what the last one gave, so that an error of timing grows; z keeps what all of them gave */
static PetscErrorCode Transposed(Mat A, Vec x, Vec z)
{
  Vec w;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(z, &w));
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestSetVec(z, 18));
  PetscCall(TestWaitForDefaultStream());
  for (PetscInt k = 0; k < products; k++) {
    if (Random(8) == 0) (void)usleep((unsigned int)Random(100));
    if (k % 2) PetscCall(MatMultTransposeAdd(A, x, z, z));
    else {
      PetscCall(MatMultTranspose(A, x, w));
      PetscCall(VecAXPY(z, 0.5, w));
    }
    PetscCall(VecScale(x, -0.5));
  }
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With products in between, which have connections of their own, and twice, with the same bits */
static PetscErrorCode TestTransposed(Mat A, Mat R, PetscBool tested, PetscBool device, const char what[])
{
  MatGallopStatistics s, r;
  Vec                 x, y, z, again, reference;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &z, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(z, &again));
  PetscCall(VecDuplicate(z, &reference));
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCall(Transposed(A, x, z));
  PetscCall(MatMult(A, z, y));
  PetscCall(Transposed(A, x, again));
  PetscCall(CheckWay(A, tested, Exchanges(&s, tested), 2 * products + 1, what));
  PetscCall(MatGallopGetStatistics(R, &r));
  PetscCall(Transposed(R, x, reference));
  PetscCall(CheckWay(R, PETSC_FALSE, r.exchanges_sf, products, "by PetscSF"));
  PetscCall(Compare(z, reference, device, what));
  if (tested) PetscCall(SameBits(z, again, "the same again"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&again));
  PetscCall(VecDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateDense(Mat A, PetscInt columns, PetscBool device, Mat *B)
{
  PetscInt     m, rstart;
  PetscScalar *b;
  PetscInt     ld;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, NULL, &m));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), m, PETSC_DECIDE, PETSC_DETERMINE, columns, NULL, B));
  if (device) PetscCall(MatConvert(*B, MATDENSECUDA, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGetOwnershipRange(*B, &rstart, NULL));
  PetscCall(MatDenseGetLDA(*B, &ld));
  PetscCall(MatDenseGetArrayWrite(*B, &b));
  for (PetscInt k = 0; k < columns; k++)
    for (PetscInt i = 0; i < m; i++) b[i + k * ld] = TestValue(7, rstart + i, k);
  PetscCall(MatDenseRestoreArrayWrite(*B, &b));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches of columns, as many as an option says, again and again, and with another number of columns */
static PetscErrorCode TestDense(Mat A, Mat R, PetscInt columns, PetscInt batch, PetscBool tested, PetscBool device, const char what[])
{
  const PetscInt      batches = (columns + batch - 1) / batch, times = 3;
  MatGallopStatistics s;
  Mat                 B, C, D;
  PetscBool           same;

  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-matproduct_batch_size", batch));
  PetscCall(CreateDense(A, columns, device, &B));
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  for (PetscInt k = 1; k < times; k++) {
    if (Random(4) == 0) (void)usleep((unsigned int)Random(200));
    PetscCall(MatZeroEntries(C));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  }
  PetscCall(CheckWay(A, tested, Exchanges(&s, tested), times * batches, what));
  PetscCall(MatMatMult(R, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(MatEqual(C, D, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: a product with %" PetscInt_FMT " columns differs from that by PetscSF", what, columns);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What waits for values of each kind of product is what options say */
static PetscErrorCode Waits(PetscBool tested, PetscBool device)
{
  static const char *const kinds[] = {"Ghost values: by", "Transposed products: by", "Ghost rows: by"};
  Mat                      A, B, C;
  Vec                      x, z;
  FILE                    *info = NULL;

  PetscFunctionBegin;
  if (!tested || nccl) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Create(PETSC_COMM_WORLD, ALL, way, 6, &A));
  PetscCall(CreateDense(A, 19, device, &B));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestInfoBegin());
  PetscCall(MatMult(A, x, z));
  PetscCall(MatMultTranspose(A, z, x));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestInfoEnd(&info));
  PetscCall(CheckWaits(info, PETSC_STATIC_ARRAY_LENGTH(kinds), kinds));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, R;
  PetscBool   tested = PETSC_FALSE, one = PETSC_FALSE, device;
  PetscMPIInt rank, size;
  char        option[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-way", way, sizeof(way), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-one", &one, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscStrcmp(way, "nccl", &nccl));
  state = 12345 + 77 * (uint64_t)rank;
  PetscCall(Expected(&tested));
  if (nccl && size == 1) tested = PETSC_FALSE; /* NCCL is for two processes and more */
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_mat_tiledspmm_least", way));
  PetscCall(TestSetIntOption(option, 1));
  PetscCall(TestSetIntOption("-sf_mat_tiledspmm_least", 1));
  if (size > 1) PetscCall(Waits(tested, device)); /* one process has no ghost rows */
  for (int p = 0; p < (one ? 1 : PATTERNS); p++) {
    PetscCall(Create(PETSC_COMM_WORLD, (Pattern)p, way, p, &A));
    PetscCall(Create(PETSC_COMM_WORLD, (Pattern)p, "sf", p, &R));
    PetscCall(TestTransposed(A, R, tested, device, Names[p]));
    if (size > 1) {
      PetscCall(TestDense(A, R, 19, 19, tested, device, Names[p]));
      PetscCall(TestDense(A, R, 19, 4, tested, device, Names[p]));
      PetscCall(TestDense(A, R, 3, 1, tested, device, Names[p]));
      PetscCall(TestDense(A, R, 40, 40, tested, device, Names[p]));
    }
    PetscCall(TestTransposed(A, R, tested, device, Names[p]));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
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
      args: -way shared
    test:
      suffix: apart
      nsize: 2
      args: -one -way shared -noshared
    test:
      suffix: nccl
      nsize: {{1 2 3}}
      args: -way nccl -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL}
    test:
      suffix: nccl_8
      nsize: 8
      args: -way nccl -device_enable none -options_left no -mat_gallop_nccl ${GALLOP_TEST_NCCL}

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

TEST*/
