/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of an MPI matrix with vectors that the first process has bound to the host, as -vec_bind_below does where there are few rows: all processes take PetscSF.\n\n";

#include "../galloptest.h"

#define GRID 30

static PetscErrorCode Check(Vec found, Vec wanted, const char what[])
{
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(TestVecError(found, wanted, &error, &norm));
  PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the error is %g of %g", what, (double)error, (double)norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product and a transposed one of A, and of R with the same numbers */
static PetscErrorCode Multiply(Mat A, Mat R, Vec x, Vec xr, Vec y, Vec yr, const char what[])
{
  PetscFunctionBegin;
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(R, xr, yr));
  PetscCall(Check(y, yr, what));
  PetscCall(MatMultTranspose(A, x, y));
  PetscCall(MatMultTranspose(R, xr, yr));
  PetscCall(Check(y, yr, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bound: which of the vectors the first process has on the host. With debugging PETSc wants all processes to bind them alike. */
static PetscErrorCode Test(PetscBool boundx, PetscBool boundy, const char what[])
{
  Mat                 A, R;
  Vec                 x, y, xr, yr;
  MatGallopStatistics s;
  PetscMPIInt         rank;
  PetscBool           device = PETSC_FALSE, nccl = PETSC_FALSE;
  char                way[16] = "";
  const PetscInt64    least   = boundx ? 4 : 2; /* products read x alone, transposed ones write to y by the exchange */
  PetscInt64          byipc;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_exchange", way, sizeof(way), NULL));
  PetscCall(PetscStrcmp(way, "nccl", &nccl));
  byipc = device && !nccl ? 4 - least : 0; /* what is left to the way, which NCCL may not be able to go */
  PetscCall(TestCreateLaplace(TestFormat(""), GRID, 1, 3, 3, &A));
  PetscCall(TestCreateLaplace(MATAIJ, GRID, 1, 3, 3, &R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(R, &xr, &yr));
  PetscCall(VecSetRandom(xr, NULL));
  PetscCall(VecCopy(xr, x));
  if (rank == 0 && boundx) PetscCall(VecBindToCPU(x, PETSC_TRUE));
  if (rank == 0 && boundy) PetscCall(VecBindToCPU(y, PETSC_TRUE));
  for (int k = 0; k < 2; k++) PetscCall(Multiply(A, R, x, xr, y, yr, what));
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCheck(s.exchanges_sf >= least, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " exchanges by PetscSF, not %" PetscInt64_FMT, what, s.exchanges_sf, least);
  PetscCheck(s.exchanges_sf + s.exchanges_ipc + s.exchanges_nccl == 4, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " exchanges by PetscSF, %" PetscInt64_FMT " by CUDA IPC", what, s.exchanges_sf, s.exchanges_ipc);
  PetscCheck(s.exchanges_ipc == byipc, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " exchanges by CUDA IPC, not %" PetscInt64_FMT, what, s.exchanges_ipc, byipc);

  /* the first process's are on the GPU, too, from here on */
  if (rank == 0 && boundx) PetscCall(VecBindToCPU(x, PETSC_FALSE));
  if (rank == 0 && boundy) PetscCall(VecBindToCPU(y, PETSC_FALSE));
  PetscCall(Multiply(A, R, x, xr, y, yr, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(Test(PETSC_TRUE, PETSC_TRUE, "both vectors"));
  PetscCall(Test(PETSC_TRUE, PETSC_FALSE, "x"));
  PetscCall(Test(PETSC_FALSE, PETSC_TRUE, "y"));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{2 4}}
    requires: !defined(PETSC_USE_DEBUG)
    args: -mat_gallop_exchange {{auto ipc nccl}}
    output_file: output/empty.out

TEST*/
