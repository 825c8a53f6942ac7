static char help[] = "C = A B in MPI: ghost rows of B, in one batch of columns or several, none, processes without rows, reuse, no room on one of them.\n\n";

#include "../galloptest.h"

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

/* Blocks with entries: each has its structure, and computes once, the one off the diagonal once for each batch of columns */
static PetscErrorCode Counts(Mat A, PetscInt builds, PetscInt refreshes, PetscBool device, MatGallopStatistics *last, const char what[])
{
  MatGallopStatistics now;
  Mat                 blocks[2] = {A, NULL};
  PetscBool           seq;
  PetscInt64          with = 0, products;
  PetscInt            rows;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, TestFormat("seqaij"), &seq));
  if (!seq) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  PetscCall(MatGetLocalSize(A, &rows, NULL));
  for (int k = 0; k < 2; k++) {
    MatInfo info;

    if (!blocks[k]) continue;
    PetscCall(MatGetInfo(blocks[k], MAT_LOCAL, &info));
    with += info.nz_used > 0;
  }
  PetscCall(MatGallopGetStatistics(A, &now));
  products = device ? now.dense_products_device - last->dense_products_device : now.dense_products_host - last->dense_products_host;
  PetscCheck(now.dense_builds - last->dense_builds == builds * with && now.dense_refreshes - last->dense_refreshes == refreshes * with, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes in %" PetscInt64_FMT " blocks", what,
             now.dense_builds - last->dense_builds, now.dense_refreshes - last->dense_refreshes, with);
  PetscCheck(products >= with && (!rows || products > 0) && now.dense_fallbacks == last->dense_fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products of %" PetscInt64_FMT " blocks, %" PetscInt64_FMT " by the parent", what, products, with,
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
  PetscCall(CreatePair(m, n, coupling, 3, &A, &R));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, lda, 40, &B));
  PetscCall(TestCreateDense(A, PETSC_FALSE, type, columns, PetscNot(lda), 41, &D));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 40, C, "new result"));
  PetscCall(Counts(A, 1, 0, device, &last, "new result"));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 40, C, "same again"));
  PetscCall(Counts(A, 0, 0, device, &last, "same again"));
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(R, -2.0));
  PetscCall(MatProductReplaceMats(NULL, D, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(Compare(R, D, 41, C, "new values, other B"));
  PetscCall(Counts(A, 0, 1, device, &last, "new values, other B"));
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
  PetscCall(MatMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(Compare(R, B, 42, C, "7 columns"));
  PetscCall(Compare(R, D, 43, E, "19 columns"));
  PetscCall(Counts(A, 1, 0, device, &last, "two results"));
  PetscCall(TestFill(A, 7, 8));
  PetscCall(TestFill(R, 7, 8));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(Compare(R, B, 42, C, "new pattern"));
  PetscCall(Counts(A, 1, 0, device, &last, "new pattern"));
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
  PetscCheck(lines == messages && messages <= (rank ? 0 : 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " messages in %" PetscInt_FMT " lines", messages, lines);
  PetscCall(MatGallopGetStatistics(A, &stats));
  PetscCheck(rank ? !stats.dense_fallbacks : stats.dense_fallbacks > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products were not TiledSpMM's", stats.dense_fallbacks);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Few columns are the parent's, on all processes, and one column the format's */
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

/* A product that is ours, then the parent's, then ours */
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
    PetscCall(NewPattern(type, (PetscBool)g));
    PetscCall(NoRoom(type));
    PetscCall(FewColumns(type, (PetscBool)g));
    PetscCall(Alternate(type));
  }
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

TEST*/
