/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A product of an up-to-date matrix copies nothing between host and GPU but ghost values, and runs on whatever stream is current.\n\n";

#include "../galloptest.h"
#include <petscdevice.h>

#define PRODUCTS 20

static PetscBool automatic = PETSC_FALSE; /* -mat_gallop_exchange auto, which takes CUDA IPC on a GPU */

typedef struct {
  PetscLogDouble in, out; /* copies to the GPU and from it, of arrays or of scalars */
} Copies;

/* PETSc and this library log what they copy */
static Copies CopiesNow(void)
{
  Copies now = {0, 0};

#if PetscDefined(HAVE_DEVICE)
  now.in  = petsc_ctog_ct + petsc_ctog_ct_scalar;
  now.out = petsc_gtoc_ct + petsc_gtoc_ct_scalar;
#endif
  return now;
}

static Copies CopiesSince(Copies before)
{
  Copies now = CopiesNow();

  now.in -= before.in;
  now.out -= before.out;
  return now;
}

/* What the exchange of ghost values alone copies: by PetscSF, since nothing else does */
static PetscErrorCode ExchangeCopies(Mat A, Vec x, PetscBool ipc, Copies *copies)
{
  PetscBool mpi, device;
  Mat       offdiagonal;
  Vec       ghost;
  PetscSF   sf;
  PetscInt  n;

  PetscFunctionBegin;
  copies->in = copies->out = 0;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (!mpi || ipc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &offdiagonal, NULL));
  PetscCall(MatGetLocalSize(offdiagonal, NULL, &n));
  PetscCall(TestHasDevice(&device));
  PetscCall(VecCreate(PETSC_COMM_SELF, &ghost));
  PetscCall(VecSetSizes(ghost, n, n));
  PetscCall(VecSetType(ghost, device ? VECCUDA : VECSTANDARD));
  PetscCall(VecSet(ghost, 0.0));
  PetscCall(TestWaitForDefaultStream());
  *copies = CopiesNow();
  for (int k = 0; k < PRODUCTS; k++) {
    PetscCall(VecScatterBegin(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
  }
  *copies = CopiesSince(*copies);
  PetscCall(VecDestroy(&ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors that suit the matrix; the first makes the format what it should be, the others count */
static PetscErrorCode Products(Mat A, Mat R, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  Vec                 x, y, z;
  PetscInt            parts = 0;
  PetscInt64          products, byipc;
  PetscBool           device = PETSC_FALSE, add = PETSC_FALSE, mpi;
  Copies              copies, exchange;
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCall(TestParts(A, &parts));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecSet(y, 3.0));
  PetscCall(TestMult(A, R, x, z, expect, last, what));
  PetscCall(TestOnDevice(A, x, z, &device));
  if (device) PetscCall(VecSet(z, 0.0)); /* the comparison has brought it to the host */
  PetscCall(ExchangeCopies(A, x, last->exchanges_ipc + last->exchanges_nccl > 0, &exchange));
  PetscCall(TestWaitForDefaultStream());

  copies = CopiesNow();
  for (int k = 0; k < PRODUCTS; k++, add = PetscNot(add)) {
    if (add) PetscCall(MatMultAdd(A, x, y, z));
    else PetscCall(MatMult(A, x, z));
  }
  copies = CopiesSince(copies);
  PetscCheck(copies.in == exchange.in && copies.out == exchange.out, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d products copied %g times to the GPU and %g times from it, the exchange of ghost values alone %g and %g times", what, PRODUCTS,
             copies.in, copies.out, exchange.in, exchange.out);
  PetscCall(MatGallopGetStatistics(A, &now));
  products = device ? now.products_device - last->products_device : now.products_host - last->products_host;
  PetscCheck(products == PRODUCTS * parts && now.fallbacks == last->fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the format did %" PetscInt64_FMT " of %" PetscInt_FMT " products on the %s", what, products, PRODUCTS * parts, device ? "GPU" : "host");
  PetscCheck(now.builds == last->builds && now.refreshes == last->refreshes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the format was not up to date", what);
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  byipc = mpi && device && automatic ? PRODUCTS : 0;
  PetscCheck(now.exchanges_ipc - last->exchanges_ipc == byipc, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: ghost values of %" PetscInt64_FMT " products went by CUDA IPC, not of %" PetscInt64_FMT, what,
             now.exchanges_ipc - last->exchanges_ipc, byipc);
  *last = now;
  PetscCall(TestCompare(R, TEST_MULT, x, y, z, what)); /* the last one added */
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of a matrix on the host take a copy of the values alone, by the parent or, where its CSR arrays do not stay on the GPU, by the refresh, whose first one copies where rows begin too */
static PetscErrorCode ValuesOfHost(void)
{
  Mat                 A, R;
  Vec                 x, z;
  MatInfo             info;
  MatGallopStatistics last = {0};
  PetscBool           release;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gallop_csr", &release));
  PetscCall(TestCreate(PETSC_COMM_SELF, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "values of the host"));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  for (int k = 0; k < 3; k++) {
    PetscLogDouble bytes = 0, values = info.nz_used * sizeof(PetscScalar), rows = release && !k ? (TestSquare.m + 1) * (PetscLogDouble)sizeof(PetscInt) : 0;

    PetscCall(TestFill(A, 0, 10 + k));
    PetscCall(TestFill(R, 0, 10 + k));
    PetscCall(VecSet(x, 1.0 + k)); /* on the GPU, both */
    PetscCall(VecSet(z, 0.0));
#if PetscDefined(HAVE_DEVICE)
    bytes = petsc_ctog_sz;
#endif
    PetscCall(MatMult(A, x, z));
#if PetscDefined(HAVE_DEVICE)
    bytes = petsc_ctog_sz - bytes;
#endif
    PetscCheck(bytes == values + rows, PETSC_COMM_SELF, PETSC_ERR_PLIB, "New values, time %d: %g bytes were copied to the GPU, %g of values", k, bytes, values);
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "values of the host"));
  }
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCheck(last.csr_uploads == (release ? 4 : 0) && last.refreshes == 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " copies for a build and %" PetscInt64_FMT " refreshes", last.csr_uploads,
             last.refreshes);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of matrices that the GPU computed, whose values the host has read since, is not copied back to the GPU: new, and with new values */
static PetscErrorCode ProductOfMatrices(Mat A)
{
  Mat            C, blocks[2];
  Vec            x, z;
  int            n     = 0;
  MatInfo        info;
  PetscLogDouble bytes = 0;

  PetscFunctionBegin;
  PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestIsOurs(C, PETSC_TRUE, "product of matrices"));
  PetscCall(MatCreateVecs(C, &x, &z));
  PetscCall(VecSet(x, 1.0));
  for (int k = 0; k < 2; k++) {
    if (k) PetscCall(MatPtAP(A, A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestGetBlocks(C, blocks, &n));
    for (int b = 0; b < n; b++) {
      const PetscScalar *a;

      PetscCall(MatSeqAIJGetArrayRead(blocks[b], &a));
      PetscCall(MatSeqAIJRestoreArrayRead(blocks[b], &a));
    }
#if PetscDefined(HAVE_DEVICE)
    bytes = petsc_ctog_sz;
#endif
    PetscCall(MatMult(C, x, z));
#if PetscDefined(HAVE_DEVICE)
    bytes = petsc_ctog_sz - bytes;
#endif
    PetscCall(MatGetInfo(C, MAT_LOCAL, &info));
    PetscCheck(bytes < info.nz_used * sizeof(PetscScalar) / 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A product of matrices%s: its first product with a vector copied %g bytes to the GPU", k ? ", new values" : "", bytes);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A stream that waits for no other, and that no other waits for */
static PetscErrorCode NonblockingStream(Mat A, Mat R, MatGallopStatistics *last)
{
  Mat                 B, S;
  PetscDeviceContext  before, context;
  PetscMPIInt         size;
  MatGallopStatistics lastB = {0};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestNonblockingBegin(&before, &context));
  if (size == 1) PetscCall(Products(A, R, TEST_NOTHING, last, "format of another stream")); /* a PetscSF stays on the stream that it was first used on */
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquareHash, 1, &B, &S));
  PetscCall(Products(B, S, TEST_BUILD, &lastB, "nonblocking stream"));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatScale(S, 2.0));
  PetscCall(Products(B, S, TEST_REFRESH, &lastB, "nonblocking stream, new values"));
  PetscCall(TestDestroy(&B, &S));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscCall(PetscDeviceContextSetCurrentContext(before));
  PetscCall(PetscDeviceContextDestroy(&context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                 A, R;
  PetscBool           device  = PETSC_FALSE;
  char                way[16] = "";
  MatGallopStatistics last    = {0};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_exchange", way, sizeof(way), NULL));
  PetscCall(PetscStrcmp(way, "auto", &automatic));
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(Products(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(Products(A, R, TEST_REFRESH, &last, "new values"));
  PetscCall(ProductOfMatrices(A));
  if (device) PetscCall(NonblockingStream(A, R, &last));
  if (device) PetscCall(ValuesOfHost());
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    nsize: {{1 2}}
    args: -mat_gallop_exchange {{auto nccl sf}}
    output_file: output/empty.out
    test:
      suffix: 1
    test:
      suffix: release
      args: -mat_gallop_csr release

TEST*/
