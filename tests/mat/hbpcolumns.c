/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Random matrices in the HBP format's column blocks: what its arrays must be, whoever built them, products; arrays of host and GPU against each other; when columns are cut.\n\n";

#include "hbptest.h"

#define MOST 255 /* entries of a segment */

/* What the format is built with */
static const struct {
  PetscInt columns, block_rows, keep_x;
} settings[] = {
  {2,    0,  1},
  {3,    7,  0},
  {5,    64, 1},
  {2,    33, 0},
  {100,  1,  1},
  {4096, 20, 0},
  {7,    0,  1}
};

static PetscInt met[2]; /* formats with column blocks and without */

static PetscErrorCode CreateMatrix(TestLaw law, PetscInt number, Mat *A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  TestPropertySize(number, &m, &n);
  if (number % 7 == 2) m = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* tall */
  if (number % 7 == 5) n = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* wide */
  PetscCall(TestCreateByLaw(law, number, m, n, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of a block: whole chunks, as few as make no more blocks than are asked for */
static PetscInt BlockColumns(PetscInt n, PetscInt columns)
{
  PetscInt M = HBP_CHUNK;

  while ((n + M - 1) / M > columns) M += HBP_CHUNK;
  return M;
}

/* Whether a matrix has column blocks, by its longest segment */
static PetscBool HasBlocks(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt M)
{
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = i[r], len = 0; k < i[r + 1]; k++) {
      len = k > i[r] && j[k] / M == j[k - 1] / M ? len + 1 : 1;
      if (len > MOST) return PETSC_FALSE;
    }
  return PETSC_TRUE;
}

/* Entries of rows in a stage, and in turn the longest and first of those that are left */
typedef struct {
  PetscInt row, first, len;
} Segment;

static PetscErrorCode CheckStage(const HBPColumns *c, PetscInt s, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscInt *seg, PetscInt *line, PetscInt *ptr, const char what[])
{
  const PetscInt tile = s / c->num, first = s % c->num * c->M;
  PetscInt       segs = 0, lines = 0;
  Segment       *list;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(c->N, &list));
  TestCheck(c->segPtr[s] == *seg && c->linePtr[s] == *line, "stage %" PetscInt_FMT " begins with segment %" PetscInt_FMT ", line %" PetscInt_FMT, what, s, c->segPtr[s], c->linePtr[s]);
  for (PetscInt r = tile * c->N; r < PetscMin(c->m, (tile + 1) * c->N); r++) {
    Segment  of = {r, 0, 0};
    PetscInt at;

    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      if (j[k] < first || j[k] >= first + c->M) continue;
      if (!of.len) of.first = k;
      of.len++;
    }
    if (!of.len) continue;
    for (at = segs; at > 0 && list[at - 1].len < of.len; at--) list[at] = list[at - 1];
    list[at] = of;
    segs++;
    lines = PetscMax(lines, of.len);
  }
  for (PetscInt g = 0; g < segs; g++) TestCheck(c->row[*seg + g] == list[g].row - tile * c->N, "row of segment %" PetscInt_FMT " of stage %" PetscInt_FMT, what, g, s);
  for (PetscInt l = 0; l < lines; l++) {
    TestCheck(c->line[*line + l] == *ptr, "line %" PetscInt_FMT " of stage %" PetscInt_FMT " begins at %" PetscInt_FMT, what, l, s, c->line[*line + l]);
    for (PetscInt g = 0; g < segs && list[g].len > l; g++, (*ptr)++) {
      const PetscInt k = list[g].first + l;

      TestCheck((PetscInt)c->col[*ptr] == j[k] - first && c->data[*ptr] == a[k], "entry %" PetscInt_FMT " of segment %" PetscInt_FMT " of stage %" PetscInt_FMT, what, l, g, s);
    }
  }
  *seg += segs;
  *line += lines;
  PetscCall(PetscFree(list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckArrays(Mat A, const HBP *h, PetscInt setting, const char what[])
{
  const HBPColumns  *c = h->columns;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, M, seg = 0, line = 0, ptr = 0;
  PetscBool          done, has;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  M   = BlockColumns(n, settings[setting].columns);
  has = (PetscBool)(n > M && HasBlocks(m, i, j, M));
  TestCheck(!!c == has, "columns are %scut into blocks", what, c ? "" : "not ");
  met[!c]++;
  if (c) {
    const PetscInt stages = c->tiles * c->num;

    TestCheck(c->keep == settings[setting].keep_x, "L2 is %sasked to keep x", what, c->keep ? "" : "not ");
    TestCheck(c->m == m && c->nz == i[m] && c->M == M && c->num == (n + M - 1) / M, "%" PetscInt_FMT " blocks of %" PetscInt_FMT " columns", what, c->num, c->M);
    TestCheck(settings[setting].block_rows ? c->N == settings[setting].block_rows : c->N % 32 == 0, "tiles of %" PetscInt_FMT " rows", what, c->N);
    TestCheck(c->tiles == (m + c->N - 1) / c->N, "%" PetscInt_FMT " tiles", what, c->tiles);
    for (PetscInt s = 0; s < stages; s++) PetscCall(CheckStage(c, s, i, j, a, &seg, &line, &ptr, what));
    TestCheck(ptr == i[m] && c->segNum == seg && c->lineNum == line && c->segPtr[stages] == seg && c->linePtr[stages] == line && c->line[line] == ptr, "numbers", what);
    TestCheck(h->bytes >= (size_t)i[m] * (sizeof(PetscScalar) + 4) + (size_t)(line + 2 * stages) * sizeof(PetscInt) + 2 * (size_t)seg, "%g bytes", what, (double)h->bytes);
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What host and GPU have built is the same */
static PetscErrorCode CompareArrays(const HBPColumns *h, const HBPColumns *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, num, what);
  TestSameNumber(h, d, M, what);
  TestSameNumber(h, d, tiles, what);
  TestSameNumber(h, d, N, what);
  TestSameNumber(h, d, segNum, what);
  TestSameNumber(h, d, lineNum, what);
  TestSameNumber(h, d, keep, what);
#define SAME(array, number) TestSameArray(h, d, array, number, what);
  HBP_COLUMNS_ARRAYS(h, SAME);
#undef SAME
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt setting, const char what[])
{
  HBP *h, *d;

  PetscFunctionBegin;
  PetscCall(GetFormatAt(B, PETSC_MEMTYPE_HOST, what, &h));
  PetscCall(CheckArrays(A, h, setting, what));
  if (device) {
    PetscCall(GetFormatAt(B, PETSC_MEMTYPE_CUDA, what, &d));
    TestSamePresence(h, d, columns, what);
    if (h->columns) PetscCall(CompareArrays(h->columns, d->columns, what));
    PetscCall(HBPDestroyHostCopy(&d));
  }
  PetscCall(HBPDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOptions(PetscInt setting)
{
  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_hbp_columns", settings[setting].columns));
  PetscCall(TestSetIntOption("-mat_hbp_block_rows", settings[setting].block_rows));
  PetscCall(TestSetIntOption("-mat_hbp_keep_x", settings[setting].keep_x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  When columns are cut without being asked for: where x is more than L2 has room for, into blocks of which four and a half fill L2. Not where entries have others near them, where a row has very many, where
  few meet in x, where rows have no increasing columns, or where an option asks for something else. Where they are asked for, -info says why there are none.
*/
static PetscErrorCode TestChoice(void)
{
  enum { ANYWHERE, BAND, ONE_LONG, DECREASING };
  const PetscInt m = 4000, n = 24000, values = 24000 * (PetscInt)sizeof(PetscScalar);
  const struct {
    PetscInt len, kind, cache, num;
    PetscInt columns, shared_x;
  } cases[] = {
    {30, ANYWHERE,   values / 2,           9, 0, HBP_SHARED_CHOOSE},
    {30, ANYWHERE,   values - values / 10, 5, 0, HBP_SHARED_CHOOSE},
    {30, ANYWHERE,   2 * values,           0, 0, HBP_SHARED_CHOOSE},
    {30, ANYWHERE,   2 * values,           2, 2, HBP_SHARED_CHOOSE},
    {30, ANYWHERE,   values / 2,           0, 1, HBP_SHARED_CHOOSE},
    {30, ANYWHERE,   values / 2,           0, 0, HBP_SHARED_ALWAYS},
    {30, BAND,       values / 2,           0, 0, HBP_SHARED_CHOOSE},
    {30, ONE_LONG,   values / 2,           0, 0, HBP_SHARED_CHOOSE},
    {30, DECREASING, values / 2,           0, 0, HBP_SHARED_CHOOSE},
    {30, ONE_LONG,   2 * values,           0, 2, HBP_SHARED_CHOOSE},
    {30, DECREASING, 2 * values,           0, 2, HBP_SHARED_CHOOSE},
    {2,  ANYWHERE,   values / 2,           0, 0, HBP_SHARED_CHOOSE}
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const HBPOptions options = {.shared_x = cases[k].shared_x, .map = HBP_MAP_CHOOSE, .fixed = -1, .columns = cases[k].columns, .cache = cases[k].cache, .tile_rows = 1024, .agents = 7, .shared_cols = 1000};
    GallopCSR        csr = {.m = m, .n = n, .memtype = PETSC_MEMTYPE_HOST};
    PetscInt        *i, *j, num;
    PetscScalar *a;
    HBP         *h;

    PetscCall(PetscMalloc2(m + 1, &i, (m + 100) * cases[k].len, &j));
    PetscCall(PetscCalloc1((m + 100) * cases[k].len, &a));
    i[0] = 0;
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt len = cases[k].kind == ONE_LONG && r == 1234 ? 100 * cases[k].len : cases[k].len;

      for (PetscInt e = 0; e < len; e++) j[i[r] + e] = cases[k].kind == BAND ? PetscMin(r, n - len) + e : e * (n / len) + (PetscInt)(TestRandom(9, r, e) * (n / len));
      i[r + 1] = i[r] + len;
    }
    if (cases[k].kind == DECREASING) {
      num            = j[i[1234]];
      j[i[1234]]     = j[i[1234] + 1];
      j[i[1234] + 1] = num;
    }
    csr.i = csr.host_i = i;
    csr.j              = j;
    csr.a              = a;
    csr.nz             = i[m];
    PetscCall(TestInfoBegin());
    PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, 0, &h));
    PetscCall(CheckInfo("-mat_hbp_columns does nothing for a 4000 by 24000 matrix: " HBP_COLUMNS_ROWS, (PetscBool)(cases[k].columns > 1 && !cases[k].num), "choice"));
    PetscCheck(h, PETSC_COMM_SELF, PETSC_ERR_PLIB, "choice %d: no format", (int)k);
    num = h->columns ? h->columns->num : 0;
    PetscCheck(num == cases[k].num, PETSC_COMM_SELF, PETSC_ERR_PLIB, "choice %d: %" PetscInt_FMT " blocks of columns, not %" PetscInt_FMT, (int)k, num, cases[k].num);
    if (num)
      PetscCheck(h->columns->N == 576 && h->columns->tiles == 7, PETSC_COMM_SELF, PETSC_ERR_PLIB, "choice %d: %" PetscInt_FMT " tiles of %" PetscInt_FMT " rows", (int)k, h->columns->tiles, h->columns->N);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(PetscFree2(i, j));
    PetscCall(PetscFree(a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const TestLaw laws[] = {TEST_LAW_RANDOM, TEST_LAW_BAND, TEST_LAW_POWER, TEST_LAW_CROSS, TEST_LAW_EMPTY, TEST_LAW_EQUAL_ROWS, TEST_LAW_DENSE, TEST_LAW_ONE};
  const TestProperties properties = {.format = MATHBP, .laws = laws, .nlaws = PETSC_STATIC_ARRAY_LENGTH(laws), .nsettings = PETSC_STATIC_ARRAY_LENGTH(settings), .create = CreateMatrix, .setoptions = SetOptions, .check = CheckFormat};
  PetscBool            all = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestChoice());
  PetscCall(TestPropertiesRun(&properties, &all));
  if (all) PetscCheck(met[0] >= 100 && met[1] >= 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " formats with column blocks, %" PetscInt_FMT " without", met[0], met[1]);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -mat_gallop_explicit_transpose never
    test:
      suffix: 1
    test:
      suffix: 2
      args: -first 130

TEST*/
