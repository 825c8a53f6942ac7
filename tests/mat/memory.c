/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "-mat_gallop_memory: what all copies of a matrix take together, and which of them go for the others. Answers are right all the while.\n\n";

#include "../densetest.h"

static PetscBool device = PETSC_FALSE;

/* The bytes of the format */
static PetscErrorCode FormatBytes(Mat A, PetscInt *bytes)
{
  const GallopFormat *format;
  const void         *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormat(A, &format));
  PetscCall(TestFormatData(A, "bytes", &data));
  *bytes = (PetscInt)(*format->bytes)(data);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another limit, with which all begins anew */
static PetscErrorCode SetLimit(Mat A, PetscInt bytes)
{
  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_gallop_memory", bytes));
  PetscCall(MatSetFromOptions(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product, who computes it, and what is built for it */
static PetscErrorCode Product(Mat A, Mat R, Vec x, Vec z, PetscBool transpose, PetscBool ours, PetscInt builds, const char what[])
{
  MatGallopStatistics last, now;
  PetscInt64          products, built;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(TestSetVec(x, 17));
  PetscCall(TestSpoilVec(z));
  if (transpose) PetscCall(MatMultTranspose(A, x, z));
  else PetscCall(MatMult(A, x, z));
  PetscCall(TestCompare(R, transpose ? TEST_TRANSPOSE : TEST_MULT, x, NULL, z, what));
  PetscCall(MatGallopGetStatistics(A, &now));
  products = now.products_host + now.products_device - last.products_host - last.products_device;
  built    = transpose ? now.transpose_builds - last.transpose_builds : now.builds - last.builds;
  TestCheck(products == (ours ? 1 : 0) && now.fallbacks - last.fallbacks == (ours ? 0 : 1), "%" PetscInt64_FMT " products by a format, %" PetscInt64_FMT " by the parent", what, products,
            now.fallbacks - last.fallbacks);
  TestCheck(built == builds, "%" PetscInt64_FMT " builds, should be %" PetscInt_FMT, what, built, builds);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format, and that of the transpose */
static PetscErrorCode Transpose(void)
{
  Mat                 A, R;
  Vec                 x, z;
  PetscInt            format, limit, lines = 0, messages = 0;
  MatGallopStatistics s = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_SELF, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "no limit"));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_TRUE, 1, "no limit, transposed"));
  PetscCall(FormatBytes(A, &format));

  PetscCall(TestCaptureBegin());
  PetscCall(SetLimit(A, format - 1));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_FALSE, 0, "too little for the format"));
  PetscCall(TestCaptureEnd("Gallop: no room for the EVCHYB format of a 150 by 150 matrix within -mat_gallop_memory; ", &lines, &messages));
  PetscCheck(lines == 1 && messages == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines);

  PetscCall(SetLimit(A, format));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "enough for the format"));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_FALSE, 0, "too little for both, transposed"));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 0, "the format stays"));

  /* what is enough for the format of the transpose alone, which makes room for the format then */
  for (limit = format; limit < 100 * format && s.transpose_builds < 2; limit += limit / 8) {
    PetscCall(SetLimit(A, limit));
    PetscCall(MatMultTranspose(A, x, z));
    PetscCall(MatGallopGetStatistics(A, &s));
  }
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_TRUE, 0, "enough for the transpose"));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "the transpose makes room"));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_FALSE, 0, "the transpose has made room"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 0, "new values"));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_FALSE, 0, "new values, transposed"));

  PetscCall(SetLimit(A, 100 * limit));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_TRUE, 1, "enough for both, transposed"));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "enough for both"));
  PetscCall(Product(A, R, x, z, PETSC_TRUE, PETSC_TRUE, 0, "both"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_memory"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What products with dense matrices use makes room for the format */
static PetscErrorCode Dense(void)
{
  Mat                 A, R, B, C;
  Vec                 x, z;
  PetscInt            limit, format, n;
  const void         *data;
  MatGallopStatistics s = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_SELF, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "no limit"));
  PetscCall(FormatBytes(A, &format));
  PetscCall(TestCreateDense(A, PETSC_FALSE, device ? MATSEQDENSECUDA : MATSEQDENSE, 6, PETSC_FALSE, 40, &B));
  PetscCall(TestCaptureBegin());
  for (limit = format; limit < 100 * format && !s.dense_builds; limit += limit / 8) {
    PetscCall(SetLimit(A, limit));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(TestCompareDense(R, B, C, "dense"));
    PetscCall(MatGallopGetStatistics(A, &s));
    PetscCall(MatDestroy(&C));
  }
  PetscCheck(s.dense_builds == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " structures for dense matrices", s.dense_builds);
  PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, "the structure for dense matrices makes room"));
  PetscCall(MatGallopGetTiledSpMMData(A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
  PetscCheck(!data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "It has made no room");
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TestCompareDense(R, B, C, "dense, without a structure"));
  PetscCall(TestCaptureEnd("Gallop: no room for the ", &n, &n));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_memory"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The bytes of HBP's formats are the least limit with which they are built: they count the workspace of products */
static PetscErrorCode Workspace(void)
{
  static const struct {
    const char *option;
    PetscInt    value;
    const char *what;
  } cases[] = {
    {"-mat_hbp_block_cols", 64, "partial sums"},
    {"-mat_hbp_long_row",   50, "long rows"   }
  };
  const PetscInt m = 40, n = 5000;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Mat      A, R;
    Vec      x, z;
    PetscInt format, ignored;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_hbp_map", "0"));
    PetscCall(TestSetIntOption(cases[k].option, cases[k].value));
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, m, n, n, NULL, &R));
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt c = r; c < n; c += r % 8 == 3 ? 1 : 100 + r) PetscCall(MatSetValue(R, r, c, TestValue(3, r, c), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
    PetscCall(MatConvert(R, MATHBP, MAT_INITIAL_MATRIX, &A));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, cases[k].what));
    PetscCall(FormatBytes(A, &format));
    PetscCall(TestCaptureBegin());
    PetscCall(SetLimit(A, format - 1));
    PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_FALSE, 0, cases[k].what));
    PetscCall(TestCaptureEnd("Gallop: no room for the HBP format", &ignored, &ignored));
    PetscCall(SetLimit(A, format));
    PetscCall(Product(A, R, x, z, PETSC_FALSE, PETSC_TRUE, 1, cases[k].what));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_memory"));
    PetscCall(PetscOptionsClearValue(NULL, cases[k].option));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(Transpose());
  PetscCall(Dense());
  PetscCall(Workspace());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    args: -mat_gallop_explicit_transpose always -mat_tiledspmm_least 1
    output_file: output/empty.out

TEST*/
