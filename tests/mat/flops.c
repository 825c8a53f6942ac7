/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of a Gallop matrix log as many flops as those of a plain one.\n\n";

#include "../galloptest.h"

static PetscErrorCode Flops(Mat A, PetscBool add, PetscLogDouble *flops)
{
  Vec            x, y, z;
  PetscLogDouble before;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestSetVec(y, 18));
  PetscCall(PetscGetFlops(&before));
  if (add) PetscCall(MatMultAdd(A, x, y, z));
  else PetscCall(MatMult(A, x, z));
  PetscCall(PetscGetFlops(flops));
  *flops -= before;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Twice: when the format is built or renewed, and when it is kept */
static PetscErrorCode Compare(Mat A, Mat R, const char what[])
{
  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    const PetscBool add = (PetscBool)(k % 2);
    PetscLogDouble  ours, plain;

    PetscCall(Flops(A, add, &ours));
    PetscCall(Flops(R, add, &plain));
    PetscCheck(ours == plain, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s logs %g flops, %g with a plain matrix", what, add ? "MatMultAdd()" : "MatMult()", ours, plain);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* More rows than are counted on the host where there is a GPU, each third one without entries; m: so many that csroverlap counts them too, or fewer */
static PetscErrorCode TestManyRows(PetscInt m)
{
  PetscInt    *i, *j;
  PetscScalar *a;
  Mat          B, A, R;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(m + 1, &i, 2 * m, &j, 2 * m, &a));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    i[r + 1] = i[r];
    if (r % 3 == 1) continue;
    for (PetscInt c = 0; c < 2; c++) {
      a[i[r + 1]]   = TestValue(9, r, c);
      j[i[r + 1]++] = PetscMin(r, m - 2) + c;
    }
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, m, i, j, a, &B));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &R));
  PetscCall(MatConvert(B, TestFormat(""), MAT_INITIAL_MATRIX, &A));
  PetscCall(Compare(A, R, "many rows"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const TestShape     shapes[] = {TestSquare, TestSquareHash, TestWide, TestTall};
  MatGallopStatistics now;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    Mat A, R, M[2];

    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shapes[s], (PetscInt)s, &A, &R));
    PetscCall(Compare(A, R, "new matrix"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(Compare(A, R, "new values"));
    M[0] = A;
    M[1] = R;
    for (int k = 0; k < 2; k++) { /* entries in rows that had none */
      PetscInt rstart, rend;

      PetscCall(MatSetOption(M[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatGetOwnershipRange(M[k], &rstart, &rend));
      for (PetscInt i = rstart; i < rend; i++)
        if (i % 22 == 5) PetscCall(MatSetValue(M[k], i, i % 50, 0.5, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(M[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(M[k], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(Compare(A, R, "new pattern"));
    PetscCall(MatGallopGetStatistics(A, &now));
    PetscCheck(!now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the parent", now.fallbacks);
    PetscCall(TestDestroy(&A, &R));
  }
  PetscCall(TestManyRows(100000));
  PetscCall(TestManyRows(1 << 17));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out
    nsize: {{1 2 4}}

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/empty.out
    nsize: {{1 2}}

TEST*/
