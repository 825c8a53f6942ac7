/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Random matrices of many shapes as MATGALLOP, with each format that it hands products on to, with none, and with that of its own choice: answers, and who computed.\n\n";

#include "propertytest.h"

static const char *const Formats[] = {"auto", "evchyb", "csroverlap", "hbp", "fastload", "parent"};

enum { AUTO = 0, PARENT = 5, SETTINGS = 6 };

static PetscErrorCode CreateMatrix(TestLaw law, PetscInt number, Mat *A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  TestPropertySize(number, &m, &n);
  PetscCall(TestCreateByLaw(law, number, m, n, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors of a type. Transposed ones are those of a format of the transpose, or the parent's. */
static PetscErrorCode Products(Mat A, Mat B, VecType type, PetscInt seed, PetscInt setting, const char what[])
{
  Vec                 x, y, z, u;
  MatGallopStatistics before, after;
  PetscInt64          products;
  PetscBool           device, ours;
  MatInfo             info;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, VECSEQCUDA, &device));
  PetscCall(TestProductVecsCreate(A, type, seed, &x, &y, &z, &u));
  PetscCall(MatGallopGetStatistics(B, &before));
  PetscCall(TestSpoilVec(z));
  PetscCall(MatMult(B, x, z));
  PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, what));
  PetscCall(TestAdds(B, A, TEST_MULT, x, y, z, what));
  PetscCall(TestSpecial(B, A, TEST_MULT, x, z, what));
  PetscCall(MatGallopGetStatistics(B, &after));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  products = device ? after.products_device - before.products_device : after.products_host - before.products_host;
  ours     = (PetscBool)(info.nz_used > 0 && setting != PARENT && (setting != AUTO || device)); /* by itself it leaves the host to AIJ */
  if (info.nz_used > 0) TestCheck(products == (ours ? 4 : 0), "%" PetscInt64_FMT " products of 4 were a format's", what, products);
  TestCheck(after.products_device == before.products_device || device, "products with vectors of the host on the GPU", what);

  PetscCall(TestSetVec(x, seed + 2));
  PetscCall(TestSpoilVec(u));
  PetscCall(MatMultTranspose(B, y, u));
  PetscCall(TestCompare(A, TEST_TRANSPOSE, y, NULL, u, what));
  PetscCall(TestAdds(B, A, TEST_TRANSPOSE, y, x, u, what));
  PetscCall(TestProductVecsDestroy(&x, &y, &z, &u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const TestLaw laws[]   = {TEST_LAW_RANDOM, TEST_LAW_BAND, TEST_LAW_POWER_COLUMNS, TEST_LAW_CROSS, TEST_LAW_EMPTY, TEST_LAW_EQUAL_COLUMNS, TEST_LAW_DENSE, TEST_LAW_ONE};
  PetscInt             matrices = 130, first = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matrices", &matrices, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  for (PetscInt number = first; number < first + matrices; number++) {
    Mat A;

    PetscCall(CreateMatrix(laws[(size_t)number % PETSC_STATIC_ARRAY_LENGTH(laws)], number, &A));
    for (PetscInt setting = 0; setting < SETTINGS; setting++) {
      Mat                 B, C;
      VecType             vectype;
      PetscBool           device, raced = PETSC_FALSE;
      MatGallopStatistics stats;
      MatInfo             info;
      char                what[64];

      PetscCall(PetscSNPrintf(what, sizeof(what), "Matrix %" PetscInt_FMT ", %s", number, Formats[setting]));
      PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_format", Formats[setting]));
      PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", number % 2 ? "rules" : "measure"));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
      PetscCall(MatConvert(C, MATGALLOP, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatGetVecType(B, &vectype));
      PetscCall(PetscStrcmp(vectype, VECCUDA, &device));
      if (setting == PARENT) PetscCall(TestIsRaced(A, &raced));
      for (int values = 0; values < 2; values++) {
        PetscCall(Products(C, B, VECSEQ, number, setting, what));
        if (device && !raced) PetscCall(Products(C, B, VECSEQCUDA, number, setting, what));
        PetscCall(MatScale(C, -1.5));
        PetscCall(MatScale(B, -1.5));
      }
      PetscCall(MatGallopGetStatistics(B, &stats));
      PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
      if (info.nz_used > 0 && setting != AUTO && setting != PARENT) TestCheck(stats.builds == 1 + device && stats.refreshes == 1 + device, "%" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", what, stats.builds, stats.refreshes);
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&C));
    }
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
    test:
      suffix: 2
      args: -first 130

TEST*/
