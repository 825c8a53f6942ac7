/* SPDX-License-Identifier: BSD-2-Clause */
static char
  help[] = "Random matrices with the HBP format's hot columns: what its arrays must be, whoever built them, products; arrays of host and GPU against each other; when there are hot columns.\n\n";

#include "hbptest.h"

#define PIECE 1024 /* entries of a part */

static const PetscInt settings[] = {1, 5, 40, 300, 100000}; /* -mat_hbp_hot_columns */

static PetscInt met[3]; /* formats with hot columns only, with others too, with long rows */

static PetscErrorCode CreateMatrix(TestLaw law, PetscInt number, Mat *A)
{
  PetscInt m, n;

  PetscFunctionBegin;
  TestPropertySize(number, &m, &n);
  if (number % 7 == 2) m = 200 + (PetscInt)(TestRandom(number, 2, 0) * 1301); /* tall */
  if (number % 7 == 5) n = 200 + (PetscInt)(TestRandom(number, 2, 0) * 2501); /* wide */
  PetscCall(TestCreateByLaw(law, number, m, n, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No column that is not hot has as many entries as one that is; and there is no room for those that have the next most. Returns which are hot. */
static PetscErrorCode CheckColumns(const HBPHot *h, const PetscInt j[], PetscInt places, PetscBool hot[], const char what[])
{
  PetscInt *count, least = PETSC_INT_MAX, next = 0, more = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(h->n, &count));
  for (PetscInt c = 0; c < h->n; c++) hot[c] = PETSC_FALSE;
  for (PetscInt k = 0; k < h->nz; k++) count[j[k]]++;
  for (PetscInt t = 0; t < h->num; t++) {
    TestCheck(!t || h->hotColumn[t] > h->hotColumn[t - 1], "hot columns are not in order", what);
    hot[h->hotColumn[t]] = PETSC_TRUE;
    least                = PetscMin(least, count[h->hotColumn[t]]);
    TestCheck(h->rank[h->hotColumn[t]] == t, "rank of column %" PetscInt_FMT, what, h->hotColumn[t]);
  }
  for (PetscInt c = 0; c < h->n; c++)
    if (!hot[c]) {
      TestCheck(h->rank[c] == HBP_COLD, "rank of column %" PetscInt_FMT, what, c);
      next = PetscMax(next, count[c]);
    }
  for (PetscInt c = 0; c < h->n; c++) more += !hot[c] && count[c] == next;
  TestCheck(h->num > 0 && h->num <= places && least > next && (!next || h->num + more > places), "%" PetscInt_FMT " hot columns", what, h->num);
  PetscCall(PetscFree(count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lanes of a part, and what parts are ordered by: as few lanes as have 32 entries each */
static int LanesOf(PetscInt len)
{
  int lanes = 0;

  while (len > 32 << lanes) lanes++;
  return lanes;
}

/* The parts: each row's entries once, in order of lanes, hot entries, others, rows */
static PetscErrorCode CheckParts(const HBPHot *h, const PetscInt i[], const PetscInt j[], const PetscBool hot[], PetscInt *pieces, const char what[])
{
  PetscInt  at = 0, longs = 0, before[5] = {5, PIECE, PIECE, -1, -1};
  PetscInt *seen; /* entries of each row */

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(h->m, &seen));
  *pieces = 0;
  for (PetscInt r = 0; r < h->m; r++) {
    if (i[r + 1] - i[r] <= PIECE) continue;
    TestCheck(longs < h->longNum && h->longRow[longs] == r && h->longPiece[longs] == *pieces, "long row %" PetscInt_FMT, what, r);
    for (PetscInt k = i[r]; k < i[r + 1]; k += PIECE) TestCheck(h->pieceLong[(*pieces)++] == longs, "piece of row %" PetscInt_FMT, what, r);
    longs++;
  }
  TestCheck(h->longNum == longs && h->pieceNum == *pieces && h->longPiece[longs] == *pieces, "%" PetscInt_FMT " long rows", what, h->longNum);
  for (PetscInt p = 0; p < h->partNum; p++) {
    const PetscInt hots = (PetscInt)(h->len[p] & 65535), colds = (PetscInt)(h->len[p] >> 16), piece = -1 - h->row[p], row = piece < 0 ? h->row[p] : h->longRow[h->pieceLong[piece]];
    const PetscInt now[5] = {LanesOf(hots + colds), hots, colds, row, piece};
    PetscInt       is     = 0;
    int            k      = 0;

    TestCheck(h->begin[p] == i[row] + (piece < 0 ? 0 : (piece - h->longPiece[h->pieceLong[piece]]) * PIECE), "part %" PetscInt_FMT " begins with entry %" PetscInt_FMT, what, p, h->begin[p]);
    TestCheck(hots + colds == (piece < 0 ? i[row + 1] - i[row] : PetscMin(PIECE, i[row + 1] - h->begin[p])), "entries of part %" PetscInt_FMT, what, p);
    for (PetscInt e = h->begin[p]; e < h->begin[p] + hots + colds; e++) is += hot[j[e]];
    TestCheck(is == hots, "hot entries of part %" PetscInt_FMT, what, p);
    while (k < 4 && now[k] == before[k]) k++;
    TestCheck(!p || (k < 3 ? now[k] < before[k] : now[k] > before[k]), "part %" PetscInt_FMT " is not in order", what, p);
    for (k = 0; k < 5; k++) before[k] = now[k];
    seen[row] += hots + colds;
    at++;
  }
  for (PetscInt r = 0; r < h->m; r++) TestCheck(seen[r] == i[r + 1] - i[r], "parts of row %" PetscInt_FMT, what, r);
  PetscCall(PetscFree(seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines of groups, and the entries in them */
static PetscErrorCode CheckLines(const HBPHot *h, const PetscInt j[], const PetscScalar a[], const PetscBool hot[], const char what[])
{
  PetscInt g = 0, hotline = 0, coldline = 0;

  PetscFunctionBegin;
  for (PetscInt p = 0, count; p < h->partNum; p += count, g++) {
    const int lanes = LanesOf((PetscInt)((h->len[p] & 65535) + (h->len[p] >> 16)));
    PetscInt  hots = 0, colds = 0;

    TestCheck(g < h->groupNum && h->line[g].hot == hotline && h->line[g].cold == coldline, "group %" PetscInt_FMT " begins with lines %" PetscInt_FMT ", %" PetscInt_FMT, what, g, h->line[g].hot,
              h->line[g].cold);
    for (count = 0; count < 32 >> lanes && p + count < h->partNum && LanesOf((PetscInt)((h->len[p + count] & 65535) + (h->len[p + count] >> 16))) == lanes; count++) {
      PetscInt q[2] = {0, 0}; /* others, hot ones */

      for (PetscInt e = h->begin[p + count]; e < h->begin[p + count] + (PetscInt)((h->len[p + count] & 65535) + (h->len[p + count] >> 16)); e++) {
        const PetscInt of = q[hot[j[e]]]++, place = ((hot[j[e]] ? hotline : coldline) + of / (1 << lanes)) * 32 + count * (1 << lanes) + of % (1 << lanes);

        TestCheck((hot[j[e]] ? h->hotData : h->coldData)[place] == a[e], "value of entry %" PetscInt_FMT, what, e);
        TestCheck((hot[j[e]] ? h->hotColumn[h->hotCol[place]] : h->coldCol[place]) == j[e], "column of entry %" PetscInt_FMT, what, e);
      }
      hots  = PetscMax(hots, (q[1] + (1 << lanes) - 1) / (1 << lanes));
      colds = PetscMax(colds, (q[0] + (1 << lanes) - 1) / (1 << lanes));
    }
    hotline += hots;
    coldline += colds;
  }
  TestCheck(h->groupNum == g && h->line[g].hot == hotline && h->line[g].cold == coldline && h->lines.hot == hotline && h->lines.cold == coldline, "%" PetscInt_FMT " groups", what, h->groupNum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckArrays(Mat A, const HBPHot *h, PetscInt setting, const char what[])
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, n, pieces = 0;
  PetscBool          done, *hot;

  PetscFunctionBegin;
  TestCheck(h, "no hot columns", what);
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(PetscMalloc1(n, &hot));
  TestCheck(h->m == m && h->n == n && h->nz == i[m], "numbers", what);
  PetscCall(CheckColumns(h, j, settings[setting], hot, what));
  PetscCall(CheckParts(h, i, j, hot, &pieces, what));
  PetscCall(CheckLines(h, j, a, hot, what));
  met[h->lines.cold ? 1 : 0]++;
  if (pieces) met[2]++;
  PetscCall(PetscFree(hot));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where few columns have so few entries more than others that there is no place for all of them, there are no hot columns */
static PetscErrorCode CheckFormat(Mat A, Mat B, PetscBool device, PetscInt setting, const char what[])
{
  HBP *h, *d;

  PetscFunctionBegin;
  PetscCall(GetFormatAt(B, PETSC_MEMTYPE_HOST, what, &h));
  if (h->hot || settings[setting] >= 2701) PetscCall(CheckArrays(A, h->hot, setting, what));
  if (device) {
    PetscCall(GetFormatAt(B, PETSC_MEMTYPE_CUDA, what, &d));
    TestSamePresence(h, d, hot, what);
    if (h->hot) PetscCall(CheckArrays(A, d->hot, setting, what)); /* which leaves no choice */
    PetscCall(HBPDestroyHostCopy(&d));
  }
  PetscCall(HBPDestroyHostCopy(&h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOptions(PetscInt setting)
{
  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_hbp_hot_columns", settings[setting]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  When there are hot columns without being asked for: in a large matrix, whose rows have 60 or 1500 entries, one in each of as many equal ranges of columns, if most of these are in one column of 44.
  Not if the entries are in any column.
*/
static PetscErrorCode TestChoice(void)
{
  enum { M = 84000, N = 40000, EACH = 44, MOST = 1500, FEW = 60, LONG = 40 };
  const PetscReal share[] = {0.75, 0.0}; /* of the entries that are to be in those columns */

  PetscFunctionBegin;
  for (int t = 0; t < 2; t++) {
    const HBPOptions options = {.shared_x = HBP_SHARED_CHOOSE, .map = HBP_MAP_CHOOSE, .fixed = -1, .hot_columns = -1, .hot_room = 1000, .columns = 1, .shared_cols = 1000};
    GallopCSR        csr     = {.m = M, .n = N, .nz = M / LONG * MOST + (M - M / LONG) * FEW, .memtype = PETSC_MEMTYPE_HOST};
    PetscInt        *i, *j;
    PetscScalar     *a;
    HBP             *h;

    PetscCall(PetscMalloc2(M + 1, &i, csr.nz, &j));
    PetscCall(PetscCalloc1(csr.nz, &a));
    i[0] = 0;
    for (PetscInt r = 0; r < M; r++) {
      const PetscInt len = r % LONG ? FEW : MOST;

      for (PetscInt e = 0; e < len; e++) {
        const PetscInt first = e * N / len, next = (e + 1) * N / len, any = first + (PetscInt)(TestRandom(7, r, e) * (next - first)), hot = (any + EACH / 2) / EACH * EACH;

        j[i[r] + e] = TestRandom(8, r, e) < share[t] && hot >= first && hot < next ? hot : any;
      }
      i[r + 1] = i[r] + len;
    }
    csr.i = csr.host_i = i;
    csr.j              = j;
    csr.a              = a;
    PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, 0, &h));
    PetscCheck(h && !h->hot == !share[t], PETSC_COMM_SELF, PETSC_ERR_PLIB, "choice %d: %s hot columns", t, h && h->hot ? "there are" : "no");
    if (h->hot) PetscCheck(h->hot->num > 800 && h->hot->num <= 1000, PETSC_COMM_SELF, PETSC_ERR_PLIB, "choice %d: %" PetscInt_FMT " hot columns", t, h->hot->num);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(PetscFree2(i, j));
    PetscCall(PetscFree(a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The least limit with which there are hot columns: all that is allocated, also for the sums of pieces */
static PetscErrorCode TestLimit(void)
{
  enum { M = 3, LEN = 3000, N = M * LEN };
  const HBPOptions options = {.shared_x = HBP_SHARED_CHOOSE, .map = HBP_MAP_CHOOSE, .fixed = -1, .hot_columns = 30, .hot_room = 1000, .columns = 1, .shared_cols = 1000};
  PetscInt         i[M + 1] = {0}, *j;
  PetscScalar     *a;
  GallopCSR        csr   = {.m = M, .n = N, .nz = M * LEN, .memtype = PETSC_MEMTYPE_HOST};
  PetscCount       bytes = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(csr.nz, &j));
  PetscCall(PetscCalloc1(csr.nz, &a));
  for (PetscInt r = 0; r < M; r++) {
    for (PetscInt e = 0; e < LEN; e++) j[i[r] + e] = e < 20 ? e : e + LEN * r; /* 20 columns have three entries, others one */
    i[r + 1] = i[r] + LEN;
  }
  csr.i = csr.host_i = i;
  csr.j              = j;
  csr.a              = a;
  for (int t = 0; t < 3; t++) {
    HBP *h;

    PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, t ? bytes + 1 - t : 0, &h));
    if (t == 2) PetscCheck(!h || !h->hot, PETSC_COMM_SELF, PETSC_ERR_PLIB, "hot columns in fewer bytes than they take");
    else {
      PetscCheck(h && h->hot && h->hot->pieceNum == 9, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no hot columns, or no pieces%s", t ? " in the bytes that they take" : "");
      bytes = (PetscCount)(h->bytes + 9 * sizeof(PetscScalar));
    }
    if (h) PetscCall(HBPDestroyHostCopy(&h));
  }
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const TestLaw laws[] = {TEST_LAW_RANDOM, TEST_LAW_BAND, TEST_LAW_POWER, TEST_LAW_CROSS, TEST_LAW_EMPTY, TEST_LAW_EQUAL_ROWS, TEST_LAW_DENSE, TEST_LAW_ONE};
  const TestProperties properties = {.format = MATHBP, .laws = laws, .nlaws = PETSC_STATIC_ARRAY_LENGTH(laws), .nsettings = PETSC_STATIC_ARRAY_LENGTH(settings), .create = CreateMatrix, .setoptions = SetOptions, .check = CheckFormat};
  PetscBool            all = PETSC_FALSE, choice = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-choice", &choice, NULL));
  if (choice) PetscCall(TestChoice());
  else {
    PetscCall(TestLimit());
    PetscCall(TestPropertiesRun(&properties, &all));
  }
  if (all)
    PetscCheck(met[0] >= 30 && met[1] >= 30 && met[2] >= 5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "formats with hot columns only: %" PetscInt_FMT ", with others: %" PetscInt_FMT ", with long rows: %" PetscInt_FMT, met[0], met[1], met[2]);
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
      suffix: choice
      args: -choice
    test:
      suffix: 2
      args: -first 130

TEST*/
