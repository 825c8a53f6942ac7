/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products queued one behind the other, with vectors and matrices changed in between: a kernel that starts before its predecessor has ended must still see all that it wrote.\n\n";

#include "../galloptest.h"
#include <petscdevice.h>

/* Rows of 1 to 12 entries and some of `longest`, each with a sum of one, so that products can follow each other without growing */
static PetscErrorCode Create(MatType type, PetscInt m, PetscInt every, PetscInt longest, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, m, m));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    const PetscInt len = i % every == 1 ? longest : 1 + (PetscInt)(12 * TestRandom(3, i, 0)), step = m / len, shift = (PetscInt)(step * TestRandom(4, i, 0));

    for (PetscInt k = 0; k < len; k++) PetscCall(MatSetValue(*A, i, shift + k * step, (PetscScalar)(1.0 / (PetscReal)len), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool device; /* without one there is nothing to wait for */

static PetscErrorCode Wait(PetscBool wait)
{
  PetscDeviceContext dctx;

  PetscFunctionBegin;
  if (wait && device) {
    PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
    PetscCall(PetscDeviceContextSynchronize(dctx));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is in x at the end. The matrices end as they were. */
static PetscErrorCode Run(Mat A, Mat B, PetscBool wait, Vec x)
{
  Vec y, z;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(TestSetVec(x, 11));
  for (PetscInt k = 0; k < 60; k++) {
    PetscCall(MatMult(A, x, y));
    PetscCall(Wait(wait));
    PetscCall(MatMult(B, y, z));
    PetscCall(Wait(wait));
    PetscCall(MatMultAdd(A, z, y, x));
    PetscCall(Wait(wait));
    PetscCall(VecAXPBY(x, 0.25, 0.5, z));
    PetscCall(Wait(wait));
    if (k % 6 == 2) PetscCall(MatScale(A, 2.0)); /* exact: the second run starts with the same numbers */
    if (k % 6 == 4) PetscCall(MatScale(A, 0.5));
    if (k % 5 == 4) PetscCall(MatScale(B, k % 2 ? 4.0 : 0.25));
    PetscCall(Wait(wait));
  }
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same result queued at once and step by step, and the numbers of plain AIJ */
static PetscErrorCode TestSequence(PetscInt m, PetscInt every, PetscInt longest, const char what[])
{
  const PetscInt      runs = device ? 5 : 1; /* the host does one thing after the other */
  const PetscReal     ulps = 1000 + longest; /* of the largest entry: no row's sum of |a x| is larger than that of x */
  Mat                 A, B, C, D;
  Vec                 queued, stepped, plain;
  PetscBool           same;
  PetscReal           size, error;
  MatGallopStatistics stats;

  PetscFunctionBegin;
  PetscCall(Create(TestFormat(""), m, every, longest, &A));
  PetscCall(Create(TestFormat(""), m, every + 2, longest, &B));
  PetscCall(Create(MATAIJ, m, every, longest, &C));
  PetscCall(Create(MATAIJ, m, every + 2, longest, &D));
  PetscCall(MatCreateVecs(A, &queued, NULL));
  PetscCall(VecDuplicate(queued, &stepped));
  PetscCall(MatCreateVecs(C, &plain, NULL));
  PetscCall(Run(A, B, PETSC_TRUE, stepped));
  for (PetscInt k = 0; k < runs; k++) {
    PetscCall(Run(A, B, PETSC_FALSE, queued));
    PetscCall(TestSameResult(stepped, queued, ulps, &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: products queued at once differ from those that waited", what);
  }
  PetscCall(Run(C, D, PETSC_FALSE, plain));
  PetscCall(VecNorm(plain, NORM_INFINITY, &size));
  PetscCall(VecCopy(stepped, queued));
  PetscCall(VecAXPY(plain, -1.0, queued));
  PetscCall(VecNorm(plain, NORM_INFINITY, &error));
  PetscCheck(size > 0 && error <= ulps * PETSC_MACHINE_EPSILON * size, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: differs from MATAIJ by %g of %g", what, (double)error, (double)size);
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck((device ? stats.products_device : stats.products_host) >= (1 + runs) * 120 && !stats.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the format computed %" PetscInt64_FMT " products on the GPU, %" PetscInt64_FMT " on the host", what,
             stats.products_device, stats.products_host);
  PetscCall(VecDestroy(&queued));
  PetscCall(VecDestroy(&stepped));
  PetscCall(VecDestroy(&plain));
  PetscCall(TestDestroy(&A, &B));
  PetscCall(TestDestroy(&C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(TestSequence(20000, 20001, 1, "Short rows"));
  PetscCall(TestSequence(20000, 4000, 9000, "A few long rows"));
  PetscCall(TestSequence(4000, 150, 4000, "Long rows"));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "sequences of products agree\n"));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/sequence.out
    nsize: {{1 2 4}}

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/sequence.out
    nsize: {{1 2}}

TEST*/
