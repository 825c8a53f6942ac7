/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A CUDA graph cannot record products that send values to other processes: an error, after which products are right.\n\n";

#include "graphtest.h"

static PetscErrorCode Test(PetscBool device)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "before"));
#if PetscDefined(HAVE_CUDA)
  if (device) {
    Vec             x, z;
    PetscErrorCode  ierr = PETSC_SUCCESS; /* unless an error leaves TestRecord() */
    cudaGraphExec_t exec;

    PetscCheck(last.exchanges_ipc > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no exchange by CUDA IPC");
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(VecSet(x, 1.0));
    PetscCall(TestRecord(A, x, z, &exec, &ierr));
    TestCheck(ierr == PETSC_ERR_SUP && !exec, "error %d", "recorded", (int)ierr);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatGallopGetStatistics(A, &last)); /* which may have the product */
  }
#else
  (void)device;
#endif
  PetscCall(TestProducts(A, R, TEST_NOTHING, &last, "after"));
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
  PetscCall(Test(device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{2 3}}
    args: -format {{evchyb csroverlap}}
    output_file: output/empty.out

TEST*/
