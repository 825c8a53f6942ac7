/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "PCPBJACOBI and PCVPBJACOBI of a Gallop matrix: what they give for a plain one, on the GPU when the vectors are there, and on the host when they are not.\n\n";

#include "../galloptest.h"
#include <petscpc.h>
#include <petsc/private/vecimpl.h>

#define BS 3

/* Blocks of BS rows, each with a strong diagonal block */
static PetscErrorCode CreateMatrix(MatType type, PetscInt blocks, PetscInt seed, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, BS * blocks, BS * blocks));
  PetscCall(MatSetBlockSize(*A, BS));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt k = 0; k < BS; k++) {
      const PetscInt j = i - i % BS + k, far = (j + 7 * BS) % (BS * blocks);

      PetscCall(MatSetValue(*A, i, j, TestValue(seed, i, j) + (i == j ? 5.0 : 0.0), INSERT_VALUES));
      PetscCall(MatSetValue(*A, i, far, TestValue(seed, i, far), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetVariableBlocks(Mat A)
{
  PetscInt n, *sizes, blocks = 0;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n, &sizes));
  for (PetscInt i = 0; i < n; i += sizes[blocks++]) sizes[blocks] = PetscMin(n - i, blocks % 2 ? BS : 2 * BS);
  PetscCall(MatSetVariableBlockSizes(A, blocks, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = op(M) x must be as for a plain matrix, within rounding */
static PetscErrorCode Compare(PC pc, PC plain, PetscBool transpose, Vec x, Vec y, Vec xplain, Vec yplain, const char what[])
{
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(TestSetVec(xplain, 21));
  PetscCall(VecCopy(xplain, x));
  if (transpose) PetscCall(PCApplyTranspose(pc, x, y));
  else PetscCall(PCApply(pc, x, y));
  if (transpose) PetscCall(PCApplyTranspose(plain, xplain, yplain));
  else PetscCall(PCApply(plain, xplain, yplain));
  PetscCall(TestVecError(y, yplain, &error, &norm));
  PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: differs by %g from the plain matrix's %g", what, (double)error, (double)norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* It must also copy nothing with vectors on the GPU */
static PetscErrorCode Apply(PC pc, PC plain, PetscBool transpose, Vec x, Vec y, Vec xplain, Vec yplain, const char what[])
{
  PetscLogDouble in = 0, out = 0;
  PetscBool      device = (PetscBool)(x->ops->getarrayandmemtype != NULL);

  PetscFunctionBegin;
  PetscCall(TestSetVec(xplain, 21));
  PetscCall(VecCopy(xplain, x));
  PetscCall(VecSet(y, 0.0));
  if (device) PetscCall(TestWaitForDefaultStream());
  for (int k = 0; k < 3; k++) {
#if PetscDefined(HAVE_DEVICE)
    in  = petsc_ctog_ct;
    out = petsc_gtoc_ct;
#endif
    if (transpose) PetscCall(PCApplyTranspose(pc, x, y));
    else PetscCall(PCApply(pc, x, y));
#if PetscDefined(HAVE_DEVICE)
    in  = petsc_ctog_ct - in;
    out = petsc_gtoc_ct - out;
#endif
  }
  PetscCheck(in == 0 && out == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: copied %g times to the GPU and %g times from it", what, in, out);
  PetscCall(Compare(pc, plain, transpose, x, y, xplain, yplain, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same preconditioners for a larger matrix, after PCReset(), and back */
static PetscErrorCode Larger(PC pc, PC plain)
{
  Mat before[2], A, R;
  Vec x, y, xplain, yplain;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &before[0], NULL));
  PetscCall(PCGetOperators(plain, &before[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(PetscObjectReference((PetscObject)before[k]));
  PetscCall(CreateMatrix(TestFormat(""), 400, 2, &A));
  PetscCall(CreateMatrix(MATAIJ, 400, 2, &R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(R, &xplain, &yplain));
  PetscCall(PCReset(pc));
  PetscCall(PCReset(plain));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetOperators(plain, R, R));
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUp(plain));
  PetscCall(Apply(pc, plain, PETSC_FALSE, x, y, xplain, yplain, "a larger matrix"));
  PetscCall(PCReset(pc));
  PetscCall(PCReset(plain));
  PetscCall(PCSetOperators(pc, before[0], before[0]));
  PetscCall(PCSetOperators(plain, before[1], before[1]));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&before[k]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xplain));
  PetscCall(VecDestroy(&yplain));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(PCType type, PetscBool variable)
{
  Mat A, R;
  PC  pc, plain;
  Vec x, y, xplain, yplain;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(TestFormat(""), 17, 1, &A));
  PetscCall(CreateMatrix(MATAIJ, 17, 1, &R));
  if (variable) PetscCall(SetVariableBlocks(A));
  if (variable) PetscCall(SetVariableBlocks(R));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetType(pc, type));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &plain));
  PetscCall(PCSetType(plain, type));
  PetscCall(PCSetOperators(plain, R, R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(R, &xplain, &yplain));
  for (int k = 0; k < 2; k++) {
    PetscCall(PCSetUp(pc));
    PetscCall(TestIsOurs(A, PETSC_TRUE, "matrix after the set-up"));
    PetscCall(PCSetUp(plain));
    PetscCall(Apply(pc, plain, PETSC_FALSE, x, y, xplain, yplain, k ? "application, new values" : "application"));
    PetscCall(Apply(pc, plain, PETSC_TRUE, x, y, xplain, yplain, k ? "transposed application, new values" : "transposed application"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  /* the matrix on the host for a while, with new values: the vectors stay where they are */
  for (int k = 0; k < 2; k++) {
    PetscCall(MatBindToCPU(A, PetscNot(k)));
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatScale(R, 3.0));
    PetscCall(PCSetUp(pc));
    PetscCall(PCSetUp(plain));
    PetscCall(Compare(pc, plain, PETSC_FALSE, x, y, xplain, yplain, k ? "no more bound to the CPU" : "bound to the CPU"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  if (!variable) PetscCall(Larger(pc, plain)); /* PETSc's PCVPBJACOBI does not take one */
  /* vectors on the host, and again after new values */
  PetscCall(VecDuplicate(xplain, &x));
  PetscCall(VecDuplicate(yplain, &y));
  /* reused: the blocks are those of the values that the matrix had */
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUp(plain));
  for (int k = 0; k < 2; k++) PetscCall(PCSetReusePreconditioner(k ? plain : pc, PETSC_TRUE));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUp(plain));
  for (int k = 0; k < 2; k++) PetscCall(Compare(pc, plain, (PetscBool)k, x, y, xplain, yplain, "host vectors, reused"));
  for (int k = 0; k < 2; k++) PetscCall(PCSetReusePreconditioner(k ? plain : pc, PETSC_FALSE));
  for (int k = 0; k < 2; k++) {
    PetscCall(PCSetUp(pc));
    PetscCall(PCSetUp(plain));
    PetscCall(Apply(pc, plain, PetscNot(k), x, y, xplain, yplain, "host vectors"));
    PetscCall(Apply(pc, plain, (PetscBool)k, x, y, xplain, yplain, "host vectors, the other application"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xplain));
  PetscCall(VecDestroy(&yplain));
  PetscCall(PCDestroy(&pc));
  PetscCall(PCDestroy(&plain));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(Check(PCPBJACOBI, PETSC_FALSE));
  PetscCall(Check(PCVPBJACOBI, PETSC_TRUE));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 3}}
    args: -format {{evchyb hbp}}
    output_file: output/empty.out

TEST*/
