/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "HBP's share of the work that warps have beforehand: as many of the parts as -mat_hbp_fixed says, and products with the others taken by tickets, or none.\n\n";

#include "../../src/mat/impls/hbp/hbpdevice.h"
#include "../galloptest.h"

/* Rows of three entries from the diagonal on, of our type and plain */
static PetscErrorCode Create(PetscInt m, Mat *A, Mat *R)
{
  PetscInt    *i, *j;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(m + 1, &i, 3 * m, &j, 3 * m, &a));
  for (PetscInt r = 0; r <= m; r++) i[r] = 3 * r;
  for (PetscInt e = 0; e < 3 * m; e++) {
    j[e] = e / 3 + e % 3;
    a[e] = TestValue(1, e / 3, e % 3);
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, R));
  PetscCall(MatSetSizes(*R, m, m + 2, m, m + 2));
  PetscCall(MatSetType(*R, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*R, i, j, a));
  PetscCall(MatConvert(*R, MATHBP, MAT_INITIAL_MATRIX, A));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A part is a group of 32 rows, since there are at most eight for each warp; at least two, since a multiprocessor has four to sixteen thread blocks of four warps at once. All of them are given beforehand
  with 100 percent but what is left when warps have the same number, and one, which needs no ticket, with 0; 75 percent without the option.
*/
static PetscErrorCode Check(Mat A, Mat R, Vec x, Vec z, PetscInt processors, const char fixed[], PetscInt percent)
{
  const void *data;

  PetscFunctionBegin;
  if (fixed) PetscCall(PetscOptionsSetValue(NULL, "-mat_hbp_fixed", fixed));
  PetscCall(MatSetFromOptions(A));
  if (fixed) PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_fixed"));
  for (int k = 0; k < 2; k++) { /* tickets are as they were after a product */
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "product"));
  }
  PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No format on the GPU");
  const HBP       *h      = (const HBP *)data;
  const HBPPlan   *plan   = (const HBPPlan *)h->plan;
  const PetscInt   warps  = plan->blocks * (plan->threads / WarpSize);
  const PetscCount wanted = PetscMax((PetscCount)1, (PetscCount)h->groupNum * percent / 100 / warps);

  PetscCheck(plan->groups && h->groupNum == 128 * processors && plan->partNum == h->groupNum, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " parts of %" PetscInt_FMT " groups", plan->partNum, h->groupNum);
  PetscCheck(warps >= 16 * processors && warps <= 64 * processors, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " warps on %" PetscInt_FMT " multiprocessors", warps, processors);
  PetscCheck(plan->fixedEach == wanted && (percent < 100 || wanted > 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "-mat_hbp_fixed %s: a warp has %" PetscInt_FMT " of %" PetscInt_FMT " parts beforehand, with %" PetscInt_FMT " warps", fixed ? fixed : "not given",
             plan->fixedEach, plan->partNum, warps);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;
  int       number, processors;
  Mat       A, R;
  Vec       x, z;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  if (device) {
    PetscCallCUDA(cudaGetDevice(&number));
    PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, number));
    PetscCall(Create(4096 * processors, &A, &R));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(TestSetVec(x, 2));
    PetscCall(Check(A, R, x, z, processors, NULL, 75));
    PetscCall(Check(A, R, x, z, processors, "0", 0));
    PetscCall(Check(A, R, x, z, processors, "100", 100));
    PetscCall(Check(A, R, x, z, processors, "50", 50));
    PetscCall(Check(A, R, x, z, processors, "-1", 75));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  build:
    requires: cuda

  test:
    suffix: 1
    output_file: output/empty.out

TEST*/
