/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Rows that name columns more than once, in order and not: arrays of the user's own, which a PETSc without debugging takes, and binary files, which any PETSc takes.\n\n";

#include "../densetest.h"

typedef enum { KIND_ONE, KIND_MANY, KIND_STEPS, KIND_WIDE, KIND_TALL, KIND_LENGTHS, KIND_BORDERS, KIND_MIXED, KIND_COUNT } Kind;

static const struct {
  const char *what;
  PetscInt    m, n;
  PetscBool   more; /* rows have more entries than there are columns: PETSc refuses a file */
} kinds[KIND_COUNT] = {
  {"2 by 2, one column",             2,    2,     PETSC_FALSE},
  {"3 rows, 400 entries in a place", 3,    500,   PETSC_FALSE},
  {"a row",                          1,    40,    PETSC_TRUE },
  {"wide",                           20,   3000,  PETSC_FALSE},
  {"tall",                           3000, 20,    PETSC_FALSE},
  {"rows of many lengths",           200,  3,     PETSC_TRUE },
  {"borders of blocks and stages",   40,   70000, PETSC_FALSE},
  {"short rows and a long one",      500,  500,   PETSC_TRUE },
};

#define MOST_ENTRIES 4000 /* of a row */

/* The columns that a row names, how often it names them; returns how many that are */
static PetscInt RowOf(Kind kind, PetscInt row, PetscInt col[])
{
  static const PetscInt borders[] = {0, 7, 8, 15, 16, 31, 32, 63, 64, 4095, 4096, 8191, 8192, 65535, 65536, 69999};
  const PetscInt        n         = kinds[kind].n;
  PetscInt              len       = 0, distinct;

  switch (kind) {
  case KIND_ONE:
    for (PetscInt k = 0; k < 2; k++) col[len++] = 0;
    break;
  case KIND_MANY:
    for (PetscInt k = 0; k < 400; k++) col[len++] = row / 2;
    if (row) col[len++] = 2;
    break;
  case KIND_STEPS: /* no two columns have as many entries */
    for (PetscInt c = 0; c < n; c++)
      for (PetscInt k = 0; k <= (7 * c) % n; k++) col[len++] = c;
    break;
  case KIND_WIDE:
    for (PetscInt k = 0; k < 60; k++)
      for (PetscInt more = (PetscInt)(4 * TestRandom(1, row, k)); more >= 0; more--) col[len++] = (PetscInt)(n * TestRandom(2, row, k));
    break;
  case KIND_TALL:
    distinct = (PetscInt)(21 * TestRandom(3, row, 0));
    for (PetscInt k = 0; k < distinct; k++) col[len++] = (PetscInt)(n * TestRandom(4, row, k));
    break;
  case KIND_LENGTHS:
    distinct = 129 + (PetscInt)(1900 * TestRandom(5, row, 0));
    for (PetscInt k = 0; k < distinct; k++) col[len++] = (PetscInt)(n * TestRandom(6, row, k));
    break;
  case KIND_BORDERS:
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(borders); k++)
      for (PetscInt more = (row + (PetscInt)k) % 6; more > 0; more--) col[len++] = borders[k];
    break;
  default:
    for (PetscInt k = 0; k < 3; k++) {
      col[len++] = 0;
      col[len++] = row;
      col[len++] = n - 1 - row;
    }
    for (PetscInt k = 0; row == 250 && k < 3900; k++) col[len++] = (PetscInt)(n * TestRandom(7, row, k));
  }
  return len;
}

/* Rows [begin, end), of the columns [cbegin, cend) or of all others: in order of columns, or not */
typedef struct {
  PetscInt    *i, *j;
  PetscScalar *a;
} Rows;

static PetscErrorCode GetRows(Kind kind, PetscInt begin, PetscInt end, PetscInt cbegin, PetscInt cend, PetscBool inside, PetscBool sorted, Rows *rows)
{
  PetscInt col[MOST_ENTRIES], len, nz = 0;

  PetscFunctionBegin;
  for (PetscInt r = begin; r < end; r++) nz += RowOf(kind, r, col);
  PetscCall(PetscMalloc3(end - begin + 1, &rows->i, nz, &rows->j, nz, &rows->a));
  rows->i[0] = nz = 0;
  for (PetscInt r = begin; r < end; r++) {
    len = RowOf(kind, r, col);
    if (sorted) PetscCall(PetscSortInt(len, col));
    else
      for (PetscInt k = len - 1; k > 0; k--) {
        const PetscInt other = (PetscInt)((k + 1) * TestRandom(8, r, k)), c = col[k];

        col[k]     = col[other];
        col[other] = c;
      }
    for (PetscInt k = 0; k < len; k++) {
      if ((PetscBool)(col[k] >= cbegin && col[k] < cend) != inside) continue;
      rows->j[nz]   = inside ? col[k] - cbegin : col[k];
      rows->a[nz++] = TestValue(9, r, k);
    }
    rows->i[r - begin + 1] = nz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A file as MatView() writes it */
static PetscErrorCode Write(Kind kind, PetscBool sorted, const char name[])
{
  const PetscInt m         = kinds[kind].m;
  PetscInt       header[4] = {MAT_FILE_CLASSID, m, kinds[kind].n, 0}, *len;
  PetscViewer    viewer;
  Rows           rows;

  PetscFunctionBegin;
  PetscCall(GetRows(kind, 0, m, 0, kinds[kind].n, PETSC_TRUE, sorted, &rows));
  PetscCall(PetscMalloc1(m, &len));
  for (PetscInt r = 0; r < m; r++) len[r] = rows.i[r + 1] - rows.i[r];
  header[3] = rows.i[m];
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, name, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinaryWrite(viewer, header, 4, PETSC_INT));
  PetscCall(PetscViewerBinaryWrite(viewer, len, m, PETSC_INT));
  PetscCall(PetscViewerBinaryWrite(viewer, rows.j, header[3], PETSC_INT));
  PetscCall(PetscViewerBinaryWrite(viewer, rows.a, header[3], PETSC_SCALAR));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscFree(len));
  PetscCall(PetscFree3(rows.i, rows.j, rows.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Load(const char name[], MatType type, Mat *A)
{
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, name, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a part of the matrix, on any process, has more entries than places: cuSPARSE refuses that, so that on a machine with a GPU the host computes its products */
static PetscErrorCode IsOverfull(Mat A, PetscBool *overfull)
{
  Mat parts[2];
  int number = 0;

  PetscFunctionBegin;
  *overfull = PETSC_FALSE;
  PetscCall(TestGetBlocks(A, parts, &number));
  for (int k = 0; k < number; k++) {
    MatInfo  info;
    PetscInt m, n;

    PetscCall(MatGetInfo(parts[k], MAT_LOCAL, &info));
    PetscCall(MatGetLocalSize(parts[k], &m, &n));
    if (info.nz_used > (PetscLogDouble)m * n) *overfull = PETSC_TRUE;
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, overfull, 1, MPI_C_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products with vectors and some with dense matrices, before and after the values have changed */
static PetscErrorCode TestMatrix(Mat A, Mat R, const char what[])
{
  MatGallopStatistics last   = {0}, now;
  PetscBool           device = PETSC_FALSE, overfull;
  Mat                 B, C;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(IsOverfull(A, &overfull));
  if (device && overfull) { /* answers alone: who computes which part differs from process to process. The harness's -petsc_ci has events wait for all processes: products must not. */
    Vec x, y, z, t;

    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(VecDuplicate(z, &y));
    PetscCall(VecDuplicate(x, &t));
    PetscCall(TestAnswers(A, R, x, y, z, y, t, what));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(VecDestroy(&t));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, what));
  PetscCall(MatScale(A, -3.0));
  PetscCall(MatScale(R, -3.0));
  PetscCall(TestProductsBriefly(A, R, TEST_REFRESH, &last, what));
  PetscCall(TestCreateDense(A, PETSC_FALSE, device ? MATDENSECUDA : MATDENSE, 5, PETSC_FALSE, 10, &B));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    for (PetscInt c = 0; c < 5; c++) {
      Vec x, z;

      PetscCall(MatDenseGetColumnVecRead(B, c, &x));
      PetscCall(MatDenseGetColumnVecRead(C, c, &z));
      PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, what));
      PetscCall(MatDenseRestoreColumnVecRead(C, c, &z));
      PetscCall(MatDenseRestoreColumnVecRead(B, c, &x));
    }
    PetscCall(MatScale(A, 0.5));
    PetscCall(MatScale(R, 0.5));
  }
  PetscCall(MatGallopGetStatistics(A, &now));
  PetscCheck(!now.dense_fallbacks && (device ? now.dense_products_device : now.dense_products_host) >= 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products with dense matrices on the host, %" PetscInt64_FMT " on the GPU, %" PetscInt64_FMT " by the parent", what,
             now.dense_products_host, now.dense_products_device, now.dense_fallbacks);
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFile(Kind kind, PetscBool sorted, const char what[])
{
  const char *const name = "repeated.petsc";
  Mat               A, R;

  PetscFunctionBegin;
  PetscCall(Write(kind, sorted, name));
  PetscCall(Load(name, TestFormat(""), &A));
  PetscCall(Load(name, MATAIJ, &R));
  PetscCall(TestMatrix(A, R, what));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestArrays(Kind kind, PetscBool sorted, const char what[])
{
  PetscInt    m = PETSC_DECIDE, M = kinds[kind].m, n = PETSC_DECIDE, N = kinds[kind].n, end, cend;
  PetscMPIInt size;
  Rows        diagonal, others;
  Mat         A, R;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &M));
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &n, &N));
  PetscCallMPI(MPI_Scan(&m, &end, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Scan(&n, &cend, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(GetRows(kind, end - m, end, cend - n, cend, PETSC_TRUE, sorted, &diagonal));
  PetscCall(GetRows(kind, end - m, end, cend - n, cend, PETSC_FALSE, sorted, &others));
  if (size == 1) PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_WORLD, m, n, diagonal.i, diagonal.j, diagonal.a, &R));
  else PetscCall(MatCreateMPIAIJWithSplitArrays(PETSC_COMM_WORLD, m, n, M, N, diagonal.i, diagonal.j, diagonal.a, others.i, others.j, others.a, &R));
  PetscCall(MatConvert(R, TestFormat(""), MAT_INITIAL_MATRIX, &A));
  PetscCall(TestMatrix(A, R, what));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFree3(diagonal.i, diagonal.j, diagonal.a));
  PetscCall(PetscFree3(others.i, others.j, others.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1)); /* on the host, too */
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    for (int sorted = 0; sorted < 2; sorted++) {
      char what[128];

      PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s, from a file", kinds[kind].what, sorted ? "in order" : "in no order"));
      if (size == 1 && !kinds[kind].more) PetscCall(TestFile((Kind)kind, (PetscBool)sorted, what)); /* several processes would keep one entry in a place, or refuse the file */
      PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s, from arrays", kinds[kind].what, sorted ? "in order" : "in no order"));
      if (!PetscDefined(USE_DEBUG)) PetscCall(TestArrays((Kind)kind, (PetscBool)sorted, what)); /* a PETSc with debugging refuses such arrays */
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    filter: sed "/^Gallop: a .* matrix has more entries than places, which cuSPARSE does not take; the host computes its products/d"
    test:
      suffix: 1
      nsize: {{1 2}}
      args: -options_left no -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: evchyb
      args: -format evchyb -mat_evchyb_storage {{plain packed}} -mat_evchyb_window {{0 64}} -mat_evchyb_first_column
    test:
      suffix: fastload
      args: -format fastload -mat_fastload_group_steps {{0 1}} -mat_fastload_window 32
    test:
      suffix: fastload_deterministic
      args: -format fastload -mat_fastload_deterministic
    test:
      suffix: hbp
      args: -format hbp -mat_hbp_block_rows 64 -mat_hbp_block_cols 64 -mat_hbp_map {{0 1}} -mat_hbp_shared_x {{0 1}}
    test:
      suffix: kernels
      args: -mat_tiledspmm_kernel {{staged cached transposed tensor}} -mat_tiledspmm_segment 4

TEST*/
