/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "C = A B in MPI: ghost rows of B, in one batch of columns or several, none, processes without rows, reuse, no room on one of them.\n\n";

#include "../densetest.h"

/* What couples rows: any columns, the neighbours, or themselves alone */
typedef enum { RANDOM, NEIGHBOURS, ALONE } Coupling;

static PetscErrorCode FillNear(Mat A, Coupling coupling, PetscInt seed)
{
  PetscInt begin, end, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt r = begin; r < end; r++) {
    const PetscInt by = coupling == NEIGHBOURS ? 1 : 0;

    for (PetscInt c = PetscMax(0, r - by); c <= r + by && c < n; c++) PetscCall(MatSetValue(A, r, c, TestValue(seed, r, c), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreatePair(PetscInt m, PetscInt n, Coupling coupling, PetscInt seed, Mat *A, Mat *R)
{
  const TestShape shape = {m, n, PETSC_TRUE};

  PetscFunctionBegin;
  if (coupling == RANDOM) {
    PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), shape, seed, A, R));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) {
    Mat *M = k ? R : A;

    PetscCall(MatCreate(PETSC_COMM_WORLD, M));
    PetscCall(MatSetSizes(*M, PETSC_DECIDE, PETSC_DECIDE, m, n));
    PetscCall(MatSetType(*M, k ? MATAIJ : TestFormat("")));
    PetscCall(MatSetFromOptions(*M));
    PetscCall(MatSetUp(*M));
    PetscCall(FillNear(*M, coupling, seed));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This process's rows of C against its rows of R and all of B, whose entries are TestValue(seed, row, column) */
static PetscErrorCode Compare(Mat R, Mat B, PetscInt seed, Mat C, const char what[])
{
  Mat          rows, all, local;
  PetscInt     n, columns;
  PetscScalar *b;
  PetscBool    seq;

  PetscFunctionBegin;
  PetscCall(MatGetSize(B, &n, &columns));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, columns, NULL, &all));
  PetscCall(MatDenseGetArrayWrite(all, &b));
  for (PetscInt k = 0; k < columns; k++)
    for (PetscInt r = 0; r < n; r++) b[r + k * n] = TestValue(seed, r, k);
  PetscCall(MatDenseRestoreArrayWrite(all, &b));
  PetscCall(PetscObjectTypeCompare((PetscObject)R, MATSEQAIJ, &seq));
  if (seq) rows = R;
  else PetscCall(MatMPIAIJGetLocalMat(R, MAT_INITIAL_MATRIX, &rows));
  PetscCall(MatDenseGetLocalMatrix(C, &local));
  PetscCall(TestCompareDense(rows, all, local, what));
  if (!seq) PetscCall(MatDestroy(&rows));
  PetscCall(MatDestroy(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Blocks with entries: each has its structure. The diagonal block, with entries or without, computes once, the other, if it has entries, once for each batch of columns: as many as
  -matproduct_batch_size says, else one where columns are 0
*/
static PetscErrorCode Counts(Mat A, PetscInt builds, PetscInt refreshes, PetscBool device, PetscInt columns, MatGallopStatistics *last, const char what[])
{
  MatGallopStatistics now;
  Mat                 blocks[2] = {A, NULL};
  PetscBool           seq;
  PetscInt64          with = 0, products, batches = 1;
  PetscInt            batch = 0;
  PetscBool           off   = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, TestFormat("seqaij"), &seq));
  if (!seq) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int k = 0; k < 2; k++) {
    MatInfo info;

    if (!blocks[k]) continue;
    PetscCall(MatGetInfo(blocks[k], MAT_LOCAL, &info));
    with += info.nz_used > 0;
    off = (PetscBool)(k && info.nz_used > 0);
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-matproduct_batch_size", &batch, NULL));
  if (batch) batches = (columns + batch - 1) / batch;
  PetscCall(MatGallopGetStatistics(A, &now));
  products = device ? now.dense_products_device - last->dense_products_device : now.dense_products_host - last->dense_products_host;
  PetscCheck(now.dense_builds - last->dense_builds == builds * with && now.dense_refreshes - last->dense_refreshes == refreshes * with, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes in %" PetscInt64_FMT " blocks", what,
             now.dense_builds - last->dense_builds, now.dense_refreshes - last->dense_refreshes, with);
  /* without the option there are several batches where a process has many ghost rows, which another one decides too */
  PetscCheck(products >= 1 + (off ? batches : 0) && (products == 1 + (off ? batches : 0) || (off && !batch)) && now.dense_fallbacks == last->dense_fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products of %" PetscInt64_FMT " blocks, %" PetscInt64_FMT " by the parent", what, products, with,
             now.dense_fallbacks - last->dense_fallbacks);
  PetscCheck(now.products_host == last->products_host && now.products_device == last->products_device && now.fallbacks == last->fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the format for vectors was used", what);
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reuse(PetscInt m, PetscInt n, Coupling coupling, MatType type, PetscBool device, PetscInt columns, PetscBool lda)
{
  Mat                 A, R, B, D, C;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  if (!TestInPart()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CreatePair(m, n, coupling, 3, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, lda, 40, &B));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, PetscNot(lda), 41, &D));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 40, C, "new result"));
  PetscCall(Counts(A, 1, 0, device, columns, &last, "new result"));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 40, C, "same again"));
  PetscCall(Counts(A, 0, 0, device, columns, &last, "same again"));
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(R, -2.0));
  PetscCall(MatProductReplaceMats(NULL, D, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(Compare(R, D, 41, C, "new values, other B"));
  PetscCall(Counts(A, 0, 1, device, columns, &last, "new values, other B"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another pattern, and with it other ghost rows, and other numbers of columns with the same matrix */
static PetscErrorCode NewPattern(MatType type, PetscBool device)
{
  Mat                 A, R, B, C, D, E;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, RANDOM, 5, &A, &R));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 7, PETSC_FALSE, 42, &B));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 19, PETSC_FALSE, 43, &D));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 42, C, "7 columns"));
  PetscCall(Counts(A, 1, 0, device, 7, &last, "7 columns"));
  PetscCall(MatMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(Compare(R, D, 43, E, "19 columns"));
  PetscCall(Counts(A, 0, 0, device, 19, &last, "19 columns"));
  PetscCall(TestFill(A, 7, 8));
  PetscCall(TestFill(R, 7, 8));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 42, C, "new pattern"));
  PetscCall(Counts(A, 1, 0, device, 7, &last, "new pattern"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first process has no room: it computes by columns, what the others do does not change */
static PetscErrorCode NoRoom(MatType type)
{
  Mat                 A, R, B, C;
  PetscInt            lines = 0, messages = 0;
  PetscMPIInt         rank;
  MatGallopStatistics stats;
  static PetscBool    said = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(CreatePair(150, 150, RANDOM, 13, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 20, PETSC_TRUE, 50, &B));
  PetscCall(TestCaptureBegin());
  if (rank == 0) PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_memory", "1000"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 50, C, "no room"));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 50, C, "no room again"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_tiledspmm_memory"));
  PetscCall(TestCaptureEnd("Gallop: no room for the TILEDSPMM format of a ", &lines, &messages));
  PetscCheck(lines == messages && messages == (rank || said ? 0 : 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines);
  said = PETSC_TRUE;
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(rank ? !stats.dense_fallbacks : stats.dense_fallbacks > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products were not TiledSpMM's", stats.dense_fallbacks);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent computes few columns, on all processes, and the format one column */
static PetscErrorCode FewColumns(MatType type, PetscBool device)
{
  Mat                 A, R, B, C;
  MatGallopStatistics stats;

  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 5));
  for (PetscInt columns = 1; columns < 5; columns += 3) {
    PetscCall(CreatePair(150, 150, RANDOM, 14, &A, &R));
    PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, PETSC_FALSE, 51, &B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(Compare(R, B, 51, C, "few columns"));
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck(!stats.dense_builds && (columns > 1) == (stats.dense_fallbacks > 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " columns: %" PetscInt64_FMT " structures, %" PetscInt64_FMT " products by the parent", columns,
               stats.dense_builds, stats.dense_fallbacks);
    PetscCheck(columns > 1 || (device ? stats.dense_products_device : stats.dense_products_host) > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "one column is not the format's");
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product that TiledSpMM computes, then the parent, then TiledSpMM again */
static PetscErrorCode Alternate(MatType type)
{
  static const PetscInt least[] = {1, 30, 1, 30};
  Mat                   A, R, B, C;
  MatGallopStatistics   stats;

  PetscFunctionBegin;
  PetscCall(CreatePair(150, 150, RANDOM, 15, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, 7, PETSC_FALSE, 52, &B));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(least); k++) {
    PetscInt64 before;

    PetscCall(TestSetIntOption("-mat_tiledspmm_least", least[k]));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatGallopGetStatistics(A, &stats));
    before = stats.dense_fallbacks;
    PetscCall(MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(Compare(R, B, 52, C, "ours and the parent's in turn"));
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck((stats.dense_fallbacks > before) == (least[k] > 7), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the parent", stats.dense_fallbacks - before);
  }
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first process has all rows but one each for the others, which need nearly all of B: it travels a few columns at a time */
static PetscErrorCode UnequalRows(MatType type, PetscBool device)
{
  const PetscInt      columns = 33, n = 200;
  Mat                 pair[2], B, C;
  PetscInt            begin, end;
  PetscMPIInt         rank, size;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &pair[k]));
    PetscCall(MatSetSizes(pair[k], rank ? 1 : n - (size - 1), rank ? 1 : n - (size - 1), n, n));
    PetscCall(MatSetType(pair[k], k ? MATAIJ : TestFormat("")));
    PetscCall(MatSetFromOptions(pair[k]));
    PetscCall(MatSetUp(pair[k]));
    PetscCall(MatGetOwnershipRange(pair[k], &begin, &end));
    for (PetscInt r = begin; r < end; r++)
      for (PetscInt c = rank ? 0 : r; c < (rank ? n : r + 1); c++) PetscCall(MatSetValue(pair[k], r, c, TestValue(16, r, c), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(pair[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(pair[k], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(TestCreateDense(pair[0], PETSC_FALSE, type, columns, PETSC_TRUE, 53, &B));
  PetscCall(MatMatMult(pair[0], B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(pair[1], B, 53, C, "unequal rows"));
  PetscCall(MatGallopGetStatistics(pair[0], &last));
  if (rank) {
    PetscInt   batch = 16; /* the fewest, unless the option has another number */
    PetscInt64 products, expected;

    PetscCall(PetscOptionsGetInt(NULL, NULL, "-matproduct_batch_size", &batch, NULL));
    expected = 1 + (columns + batch - 1) / batch;
    products = device ? last.dense_products_device : last.dense_products_host;
    PetscCheck(products == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "unequal rows: %" PetscInt64_FMT " products, not %" PetscInt64_FMT, products, expected);
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&pair[0]));
  PetscCall(MatDestroy(&pair[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result with B's array is refused before anything travels: the matrix works on, and its view tells what it has built in all its blocks */
static PetscErrorCode AliasAndView(void)
{
  Mat            A, R, B, C;
  PetscScalar   *b;
  PetscErrorCode ierr;
  PetscInt       n;
  PetscViewer    viewer;
  FILE          *file;
  char           line[1024];
  PetscBool      found = PETSC_FALSE;
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(CreatePair(120, 120, NEIGHBOURS, 17, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, MATDENSE, 20, PETSC_FALSE, 54, &B));
  PetscCall(MatGetLocalSize(B, &n, NULL));
  PetscCall(MatDenseGetArray(B, &b));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, 120, 20, b, &C));
  PetscCall(MatDenseRestoreArray(B, &b));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_IDN, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a result with the array of B gives error %d", (int)ierr);
  PetscCall(MatDestroy(&C));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 54, C, "after a product that was refused"));
  file = tmpfile();
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, file, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  rewind(file);
  while (fgets(line, sizeof(line), file))
    if (strstr(line, "TiledSpMM: ")) found = PETSC_TRUE;
  PetscCheck(found || rank, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the view does not tell of the structure for dense matrices");
  fclose(file);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt columns[]   = {1, 2, 16, 19, 33};
  static const PetscInt shapes[][2] = {
    {150, 150},
    {70,  240},
    {240, 70 },
    {3,   40 }, /* with four processes one has no rows */
    {40,  3  },
  };
  PetscBool gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscCall(TestHasDevice(&gpu));
  for (int g = 0; g <= (int)gpu; g++) {
    MatType type = g ? MATDENSECUDA : MATDENSE;

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
      for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) PetscCall(Reuse(shapes[s][0], shapes[s][1], RANDOM, type, (PetscBool)g, columns[k], (PetscBool)((k + s) % 2)));
      PetscCall(Reuse(120, 120, NEIGHBOURS, type, (PetscBool)g, columns[k], (PetscBool)(k % 2)));
      PetscCall(Reuse(120, 120, ALONE, type, (PetscBool)g, columns[k], (PetscBool)(k % 2)));
    }
    if (TestInPart()) PetscCall(NewPattern(type, (PetscBool)g));
    if (TestInPart()) PetscCall(NoRoom(type));
    if (TestInPart()) PetscCall(FewColumns(type, (PetscBool)g));
    if (TestInPart()) PetscCall(Alternate(type));
    if (TestInPart()) PetscCall(UnequalRows(type, (PetscBool)g));
  }
  if (TestInPart()) PetscCall(AliasAndView());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 3 4}}
    test:
      suffix: evchyb
    test:
      suffix: csroverlap
      args: -format csroverlap
    test:
      suffix: fastload
      args: -format fastload
    test:
      suffix: hbp
      args: -format hbp
  test:
    output_file: output/empty.out
    suffix: batches
    nsize: 3
    args: -matproduct_batch_size 5

TEST*/
