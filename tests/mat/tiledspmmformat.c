/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The arrays of TiledSpMM for matrices small enough to write them down, and their products.\n\n";

#include "../densetest.h"
#include "../../src/mat/impls/tiledspmm/tiledspmm.h"

#define EXPECT(what, should) \
  PetscCheck((PetscInt64)(what) == (PetscInt64)(should), PETSC_COMM_SELF, PETSC_ERR_PLIB, #what " is %" PetscInt64_FMT ", not %" PetscInt64_FMT, (PetscInt64)(what), (PetscInt64)(should))

/*
  34 by 7, panels of 32 rows, stages of two rows of B:

    row  0: columns 1, 4, 5 with values 1, 2, 3      panel 0, footprint 0 1 | 4 5
    row  1: column 4 with value 4
    row 31: columns 0, 5 with values 5, 6
    row 32: column 3 with value 7                    panel 1, footprint 3

  Rows 2 to 30 and 33 are empty, columns 2 and 6 too.
*/
enum { M = 34, N = 7, NZ = 7 };
static const PetscInt    rows[NZ] = {0, 0, 0, 1, 31, 31, 32}, cols[NZ] = {1, 4, 5, 4, 0, 5, 3};
static const PetscScalar values[NZ] = {1, 2, 3, 4, 5, 6, 7};

/* One entry of the structure: where it is, and what stands there */
typedef struct {
  PetscInt at, index, from;
} Stored;

/* the first stage of panel 0 is one entry wide, the second two: padding is what is not listed */
static const Stored stored[NZ] = {
  {0,       1, 0}, /* row 0, column 1 */
  {31,      0, 4}, /* row 31, column 0 */
  {32,      0, 1}, /* row 0, column 4 */
  {32 + 1,  0, 3}, /* row 1, column 4 */
  {32 + 31, 1, 5}, /* row 31, column 5 */
  {64,      1, 2}, /* row 0, column 5 */
  {96,      0, 6}, /* row 32, column 3 */
};

static PetscErrorCode Expect(const char what[], PetscReal is, PetscReal should)
{
  PetscFunctionBegin;
  PetscCheck(PetscAbsReal(is - should) <= 10 * PETSC_MACHINE_EPSILON * should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is %g, not %g", what, (double)is, (double)should);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the model predicts for this matrix, by hand: rows of 3, 1, 2 and 1 entries, 30 empty ones; in each of three stages one line of B is touched, and rows of B L times on average */
static PetscErrorCode CheckModel(const TiledSpMM *t, PetscReal R, PetscReal L)
{
  const PetscReal bt = (PetscReal)sizeof(PetscScalar), bi = (PetscReal)sizeof(PetscInt), mu = 7.0 / 34, rho = 7.0 / 5, Z = 128.0 / 7;
  const PetscReal delta = (8 * (3 + 4 + 4) + 2 * 3 * 32) / 34.0, C = PetscMax(1, 3 * 64 / (5 * bt)), bytes = (bt + 2) * Z / R + bi / (rho * R) + delta / (R * mu) + bt / mu;
  TiledSpMMModel  m;

  PetscFunctionBegin;
  PetscCall(TiledSpMMGetModel(t, &m));
  PetscCall(Expect("mu", m.mu, mu));
  PetscCall(Expect("sigma", m.sigma, PetscSqrtReal(15 / (PetscReal)34 - mu * mu)));
  PetscCall(Expect("rho", m.rho, rho));
  PetscCall(Expect("Z", m.Z, Z));
  PetscCall(Expect("delta", m.delta, delta));
  PetscCall(Expect("C", m.C, C));
  PetscCall(Expect("L", m.L, L));
  PetscCall(Expect("Gamma", m.Gamma, C / L));
  PetscCall(Expect("the intensity without tiles", m.naive, 2 * mu / (mu * (bt + bi) + mu * bt + bt + 2 * bi)));
  PetscCall(Expect("the intensity with Gamma 1", m.tiled, 2 / (bytes + bt / rho)));
  PetscCall(Expect("the intensity", m.effective, 2 / (bytes + bt * C / (L * rho))));
  PetscCall(Expect("the intensity with misses", m.miss, 2 / (bytes + bt * C / rho)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two rows that name the same row of B, once each: L1 has it for the second unless another thread block computes that row; no bytes come from memory where L2 holds everything */
static PetscErrorCode CheckPrediction(void)
{
  const PetscInt         j[]   = {0, 0};
  const TiledSpMMMachine small = {1e12, 1e9, 8 * 4096, 0, 1}, large = {1e12, 1e9, 8 * 4096, 1 << 20, 1};
  const PetscReal        row = 32 * sizeof(PetscScalar), matrix = 2 * (sizeof(PetscScalar) + sizeof(GallopColumn));
  PetscInt               segptr[] = {0, 1, 2};
  TiledSpMM              t;
  TiledSpMMPrediction    p;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  t.m = t.nz = t.nseg = t.stored = 2;
  t.n                            = 1;
  t.segptr                       = segptr;
  t.kernel                       = TILEDSPMM_TRANSPOSED;
  for (PetscInt blocks = 1; blocks <= 2; blocks++) {
    const TiledSpMMPlan plan = {32, 4, 2 / blocks, 1, 8};

    PetscCall(TiledSpMMPredict(&t, j, &plan, &small, 64, &p));
    PetscCall(Expect("bytes of memory", p.memory, 2 * (matrix + 2 * row + blocks * row + 2 * row))); /* twice 32 columns: A, C, B as it is loaded and as it is transposed */
    PetscCall(Expect("bytes of L2", p.l2, 2 * (matrix + 2 * row + blocks * row + 2 * row)));
    PetscCheck(p.seconds > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A product takes %g s", p.seconds);
    PetscCall(TiledSpMMPredict(&t, j, &plan, &large, 64, &p));
    EXPECT(p.memory, 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* R of the staged kernel and of the model: as many columns as asked for, 16 by itself, fewer where shared memory or registers do not suffice */
static PetscErrorCode CheckColumns(void)
{
  static const struct {
    PetscInt columns, panel, stage;
    size_t   numbers; /* what shared memory holds, 0 where that is not known */
    PetscInt R;
  } cases[] = {
    {0,  256, 512,  0,     16},
    {0,  512, 4096, 0,     16},
    {0,  256, 512,  4096,  8 },
    {0,  256, 512,  4095,  4 },
    {0,  256, 4096, 4096,  1 },
    {32, 256, 512,  16384, 32},
    {32, 512, 512,  16384, 16},
    {16, 512, 512,  4096,  8 },
    {1,  512, 4096, 1,     1 },
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    TiledSpMM t;

    PetscCall(PetscMemzero(&t, sizeof(t)));
    t.options.columns = cases[k].columns;
    t.options.panel   = cases[k].panel;
    t.options.stage   = cases[k].stage;
    t.shared          = cases[k].numbers * sizeof(PetscScalar);
    EXPECT(TiledSpMMStagedColumns(&t), cases[k].R);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Mat A, PetscReal scale)
{
  static const PetscInt stagedispl[] = {0, 2, 3}, mapdispl[] = {0, 2, 4, 5}, map[] = {0, 1, 4, 5, 3}, warpdispl[] = {0, 32, 96, 128};
  const void           *data;
  TiledSpMM            *t;
  PetscInt              len[3][32] = {{0}};

  PetscFunctionBegin;
  PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_CUDA, &data));
  if (!data) PetscCall(MatGallopGetTiledSpMMData(A, PETSC_MEMTYPE_HOST, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No structure was built");
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)data, &t));
  EXPECT(t->m, M);
  EXPECT(t->n, N);
  EXPECT(t->nz, NZ);
  EXPECT(t->panels, 2);
  EXPECT(t->stages, 3);
  EXPECT(t->nmap, 5);
  EXPECT(t->stored, 128);
  for (int k = 0; k < 3; k++) EXPECT(t->stagedispl[k], stagedispl[k]);
  for (int k = 0; k < 4; k++) EXPECT(t->mapdispl[k], mapdispl[k]);
  for (int k = 0; k < 5; k++) EXPECT(t->map[k], map[k]);
  for (int k = 0; k < 4; k++) EXPECT(t->warpdispl[k], warpdispl[k]);
  len[0][0] = len[0][31] = 1;
  len[1][0]              = 2;
  len[1][1] = len[1][31] = 1;
  len[2][0]              = 1;
  for (int s = 0; s < 3; s++)
    for (int r = 0; r < 32; r++) EXPECT(t->len[32 * s + r], len[s][r]);
  for (PetscInt k = 0; k < 128; k++) {
    Stored    should = {k, 0, -1};
    PetscReal value;

    for (int e = 0; e < NZ; e++)
      if (stored[e].at == k) should = stored[e];
    value = should.from < 0 ? 0 : scale * PetscRealPart(values[should.from]);
    EXPECT(t->index[k], should.index);
    EXPECT(t->from[k], should.from);
    PetscCheck(PetscRealPart(t->value[k]) == value && PetscImaginaryPart(t->value[k]) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "value[%" PetscInt_FMT "] is %g, not %g", k, (double)PetscRealPart(t->value[k]), (double)value);
  }
  PetscCall(CheckModel(t, (PetscReal)TiledSpMMStagedColumns(t), 1));
  t->options.columns = 0; /* then 16 */
  PetscCall(CheckModel(t, 16, 1));
  t->map[4] = 0; /* the other panel has it, too */
  PetscCall(CheckModel(t, 16, (PetscReal)1.25));
  PetscCall(TiledSpMMDestroyHostCopy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B is 10 r + k + 1 in row r and column k; results are sums of whole numbers */
static PetscErrorCode CheckResult(Mat C, PetscReal scale)
{
  const PetscScalar *c;

  PetscFunctionBegin;
  PetscCall(MatDenseGetArrayRead(C, &c));
  for (PetscInt k = 0; k < 3; k++) {
    for (PetscInt r = 0; r < M; r++) {
      PetscReal should = 0;

      if (r == 0) should = 1 * (11 + k) + 2 * (41 + k) + 3 * (51 + k);
      if (r == 1) should = 4 * (41 + k);
      if (r == 31) should = 5 * (1 + k) + 6 * (51 + k);
      if (r == 32) should = 7 * (31 + k);
      PetscCheck(c[r + k * M] == (PetscScalar)(scale * should), PETSC_COMM_SELF, PETSC_ERR_PLIB, "C in row %" PetscInt_FMT " and column %" PetscInt_FMT " is %g, not %g", r, k, (double)PetscRealPart(c[r + k * M]), (double)(scale * should));
    }
  }
  PetscCall(MatDenseRestoreArrayRead(C, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of section 4.2: each row a binary number, largest first, equal ones in order. By hand, as in Figure 7. */
static PetscErrorCode CheckOrder(void)
{
  /*
    row 0   0 1 1 0 0 1    row 4   1 1 0 0 1 0
    row 1   1 0 0 0 1 0    row 5   0 0 0 0 0 0
    row 2   0 1 1 0 0 1    row 6   1 0 0 0 1 0
    row 3   0 1 1 0 0 0    row 7   0 0 0 0 0 1
  */
  static const PetscInt i[] = {0, 3, 5, 8, 10, 13, 13, 15, 16}, j[] = {1, 2, 5, 0, 4, 1, 2, 5, 1, 2, 0, 1, 4, 0, 4, 5}, sorted[] = {4, 1, 6, 0, 2, 3, 7, 5};
  static const PetscInt inorder[] = {0, 2, 3, 3}, inorderj[] = {0, 1, 0}, decreasing[] = {0, 1, 3}, decreasingj[] = {2, 1, 0};
  PetscInt             *order;

  PetscFunctionBegin;
  PetscCall(TiledSpMMSortRows(8, i, j, &order));
  PetscCheck(order, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rows were not sorted");
  for (int r = 0; r < 8; r++) EXPECT(order[r], sorted[r]);
  PetscCall(PetscFree(order));
  PetscCall(TiledSpMMSortRows(3, inorder, inorderj, &order));
  PetscCheck(!order, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rows in order were sorted");
  PetscCall(TiledSpMMSortRows(2, decreasing, decreasingj, &order));
  PetscCheck(!order, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rows whose columns do not increase were sorted");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix whose entries are 1, and its product at a place with B of ones, which is the lengths of its rows */
static PetscErrorCode CreateOnes(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], PetscBool device, Mat *A, TiledSpMM **t)
{
  const void        *data;
  PetscScalar       *a, *b;
  const PetscScalar *c;
  Mat                B, C;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(i[m], &a));
  for (PetscInt k = 0; k < i[m]; k++) a[k] = 1.0;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, TestFormat("")));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, j, a));
  PetscCall(TestCreateDense(*A, PETSC_FALSE, device ? MATSEQDENSECUDA : MATSEQDENSE, 3, PETSC_FALSE, 0, &B));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  for (PetscInt k = 0; k < 3 * n; k++) b[k] = 1.0;
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(MatMatMult(*A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatDenseGetArrayRead(C, &c));
  for (PetscInt k = 0; k < 3; k++)
    for (PetscInt r = 0; r < m; r++)
      PetscCheck(c[r + k * m] == (PetscScalar)(PetscReal)(i[r + 1] - i[r]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "C in row %" PetscInt_FMT " is %g", r, (double)PetscRealPart(c[r + k * m]));
  PetscCall(MatDenseRestoreArrayRead(C, &c));
  PetscCall(MatGallopGetTiledSpMMData(*A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No structure was built");
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)data, t));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  64 by 6, panels of 32 rows, stages of two rows of B: even rows have columns 2 and 5, odd rows 0, 2 and 3, but row 7 has none.

  As they are, a panel refers to 0 2 | 3 5. Sorted, the odd rows come first and row 7 is the last, so that the first even row is in the first panel: 0 2 | 3 5, and 2 5.
*/
static PetscErrorCode CheckReordered(PetscBool device, TiledSpMMReorder reorder)
{
  static const PetscInt odd[] = {0, 2, 3}, even[] = {2, 5};
  static const PetscInt mapdispl[][5] =
    {
      {0, 2, 4, 6, 8},
      {0, 2,  4,  6}
  },
                        map[][8] = {{0, 2, 3, 5, 0, 2, 3, 5}, {0, 2, 3, 5, 2, 5}}, warpdispl[][5] = {{0, 64, 96, 160, 192}, {0, 64, 96, 160}};
  const int                sorted = reorder == TILEDSPMM_REORDER_ALWAYS, stages = sorted ? 3 : 4;
  static const char *const names[] = {"never", "always", "choose"};
  PetscInt                 i[65], j[3 * 64], order[64], places = 0;
  TiledSpMM               *t;
  Mat                      A;

  PetscFunctionBegin;
  i[0] = 0;
  for (PetscInt r = 0; r < 64; r++) {
    const PetscInt len = r == 7 ? 0 : r % 2 ? 3 : 2;

    for (PetscInt k = 0; k < len; k++) j[i[r] + k] = r % 2 ? odd[k] : even[k];
    i[r + 1] = i[r] + len;
  }
  for (PetscInt r = 1; r < 64; r += 2)
    if (r != 7) order[places++] = r;
  for (PetscInt r = 0; r < 64; r += 2) order[places++] = r;
  order[places] = 7;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "staged"));
  PetscCall(TestSetIntOption("-mat_tiledspmm_panel", 32));
  PetscCall(TestSetIntOption("-mat_tiledspmm_stage", 2));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_reorder", names[reorder]));
  PetscCall(CreateOnes(64, 6, i, j, device, &A, &t));
  EXPECT(t->reordered, sorted); /* six rows of B are fewer than eight, but no fewer lines of it: not the choice */
  EXPECT(t->stages, stages);
  EXPECT(t->nmapgiven, 8);
  EXPECT(t->nmap, sorted ? 6 : 8);
  for (int k = 0; k <= stages; k++) EXPECT(t->mapdispl[k], mapdispl[sorted][k]);
  for (PetscCount k = 0; k < t->nmap; k++) EXPECT(t->map[k], map[sorted][k]);
  for (int k = 0; k <= stages; k++) EXPECT(t->warpdispl[k], warpdispl[sorted][k]);
  if (sorted) {
    for (int r = 0; r < 64; r++) EXPECT(t->roworder[r], order[r]);
    for (int r = 0; r < 32; r++) { /* 31 odd rows and the first even one, which the first two stages and the last have */
      EXPECT(t->len[r], r < 31 ? 2 : 1);
      EXPECT(t->len[32 + r], 1);
      EXPECT(t->len[64 + r], r < 31 ? 2 : 0);
      EXPECT(t->from[r], i[order[r]]);
      EXPECT(t->from[32 + r], r < 31 ? i[order[r]] + 1 : -1);
      EXPECT(t->index[r], r < 31 ? 0 : 1);
      EXPECT(t->from[64 + r], i[order[r]] + (r < 31 ? 2 : 1));
      EXPECT(t->index[64 + r], r < 31 ? 0 : 1);
    }
  }
  PetscCall(TiledSpMMDestroyHostCopy(&t));
  PetscCall(MatViewFromOptions(A, NULL, "-view_reordered"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Segmented CSR, Figure 5: rows of 5, 1, 0, 3 and 2 entries in segments of two. Rows 0 and 3 are cut, their five partial sums are the places -1 to -5. The staged kernel has stages of two rows of B:
  columns 0 and 1, 2 and 3, 4 and 5, and after a sort of the segments by their patterns a panel in that order.
*/
static PetscErrorCode CheckSegments(const char kernel[], PetscBool device, PetscBool sort)
{
  static const PetscInt i[] = {0, 5, 6, 6, 9, 11}, j[] = {0, 1, 2, 3, 5, 4, 1, 3, 5, 0, 4};
  static const PetscInt segptr[] = {0, 2, 4, 5, 6, 6, 8, 9, 11}, segrow[] = {-1, -2, -3, 1, 2, -4, -5, 4}, splitrow[] = {0, 3}, splitptr[] = {0, 3}, splitnum[] = {3, 2};
  static const PetscInt order[] = {0, 7, 5, 1, 3, 2, 6, 4}; /* 0 1, 0 4, 1 3, 2 3, 4, 5, 5 and none */
  TiledSpMM            *t;
  Mat                   A;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", kernel));
  PetscCall(TestSetIntOption("-mat_tiledspmm_segment", 2));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_reorder", sort ? "always" : "never"));
  PetscCall(CreateOnes(5, 6, i, j, device, &A, &t));
  EXPECT(t->segment, 2);
  EXPECT(t->nseg, 8);
  EXPECT(t->nsplit, 2);
  EXPECT(t->nmany, 0);
  EXPECT(t->nslots, 5);
  for (int k = 0; k < 9; k++) EXPECT(t->segptr[k], segptr[k]);
  for (int k = 0; k < 8; k++) EXPECT(t->segrow[k], segrow[k]);
  for (int k = 0; k < 2; k++) {
    EXPECT(t->splitrow[k], splitrow[k]);
    EXPECT(t->splitptr[k], splitptr[k]);
    EXPECT(t->splitnum[k], splitnum[k]);
  }
  if (t->kernel == TILEDSPMM_CACHED) {
    EXPECT(t->slices, 1);
    EXPECT(t->slicedispl[0], 0);
    EXPECT(t->slicedispl[1], 64);
  }
  if (t->kernel == TILEDSPMM_STAGED) {
    EXPECT(t->panels, 1);
    EXPECT(t->stages, 3);
    for (int place = 0; place < 8; place++) {
      const PetscInt seg = sort ? t->roworder[place] : place;

      if (sort) EXPECT(seg, order[place]);
      for (int s = 0; s < 3; s++) {
        PetscInt len = 0;

        for (PetscInt e = segptr[seg]; e < segptr[seg + 1]; e++) len += j[e] / 2 == s;
        EXPECT(t->len[32 * s + place], len);
      }
    }
  }
  for (int seg = 0; seg < 8 && t->kernel != TILEDSPMM_STAGED; seg++)
    for (PetscInt e = segptr[seg]; e < segptr[seg + 1]; e++) EXPECT(t->col[t->kernel == TILEDSPMM_CACHED ? seg + 32 * (e - segptr[seg]) : e], j[e]);
  if (t->kernel == TILEDSPMM_STAGED) PetscCall(MatViewFromOptions(A, NULL, "-view_segments"));
  PetscCall(TiledSpMMDestroyHostCopy(&t));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_tiledspmm_segment"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Tiles, which only the GPU has: eight rows with three tiles, cut into units of one, and two rows with two tiles, which are one unit

    row 0: columns 0 1 8, row 1: 7, row 3: 9 17, row 7: 0 15; row 8: 16, row 9: 3 4 16 17
*/
static PetscErrorCode CheckTiles(void)
{
  static const PetscInt           i[] = {0, 3, 4, 4, 6, 6, 6, 6, 8, 9, 13}, j[] = {0, 1, 8, 7, 9, 17, 0, 15, 16, 3, 4, 16, 17};
  static const PetscInt           block[] = {0, 1, 2, 0, 2}, unitrow[] = {0, 0, 0, 8}, unitslot[] = {0, 1, 2, -1}, unitnum[] = {3, 3, 3, 1}, first[] = {0, 4, 7, 0, 2};
  static const PetscCount         tileptr[] = {0, 1, 2, 3, 5}, valueptr[] = {0, 0, 0, 8};
  static const unsigned long long mask[] = {0x0100000000008003, 0x8000000002000001, 0x2000000, 0x1800, 0x301};
  TiledSpMM                      *t;
  Mat                             A;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_kernel", "tensor"));
  PetscCall(TestSetIntOption("-mat_tiledspmm_segment", 1));
  PetscCall(CreateOnes(10, 18, i, j, PETSC_TRUE, &A, &t));
  EXPECT(t->kernel, TILEDSPMM_TENSOR);
  EXPECT(t->ntile, 5);
  EXPECT(t->nunit, 4);
  EXPECT(t->nsplit, 8);
  EXPECT(t->nmany, 0);
  EXPECT(t->nslots, 24);
  for (int k = 0; k < 5; k++) {
    EXPECT(t->tile[k].block, block[k]);
    EXPECT(t->tile[k].mask == mask[k], 1);
    EXPECT(t->tile[k].first, first[k]);
    EXPECT(t->tileptr[k], tileptr[k]);
  }
  for (int k = 0; k < 4; k++) {
    EXPECT(t->unitrow[k], unitrow[k]);
    EXPECT(t->valueptr[k], valueptr[k]);
    EXPECT(t->unitslot[k], unitslot[k]);
    EXPECT(t->unitnum[k], unitnum[k]);
  }
  for (int k = 0; k < 8; k++) {
    EXPECT(t->splitrow[k], k);
    EXPECT(t->splitptr[k], 3 * k);
    EXPECT(t->splitnum[k], 3);
  }
  PetscCall(TiledSpMMDestroyHostCopy(&t));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_tiledspmm_segment"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat          A, B, C;
  PetscBool    device = PETSC_FALSE;
  PetscScalar *b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestSetIntOption("-mat_tiledspmm_least", 1));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_utilization", "0")); /* rows are cut where it is asked for */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_imbalance", "1e30"));
  PetscCall(TestHasDevice(&device));
  PetscCall(CheckPrediction());
  PetscCall(CheckColumns());
  PetscCall(CheckOrder());
  for (int g = 0; g <= (int)device; g++) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, M, N, M, N));
    PetscCall(MatSetType(A, TestFormat("")));
    for (int e = 0; e < NZ; e++) PetscCall(MatSetValue(A, rows[e], cols[e], values[e], INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(TestCreateDense(A, PETSC_FALSE, g ? MATSEQDENSECUDA : MATSEQDENSE, 3, PETSC_FALSE, 0, &B));
    PetscCall(MatDenseGetArrayWrite(B, &b));
    for (PetscInt k = 0; k < 3; k++)
      for (PetscInt r = 0; r < N; r++) b[r + k * N] = (PetscScalar)(10 * r + k + 1);
    PetscCall(MatDenseRestoreArrayWrite(B, &b));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(Check(A, 1));
    PetscCall(CheckResult(C, 1));
    PetscCall(MatViewFromOptions(A, NULL, "-view"));
    PetscCall(MatScale(A, -2.0));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(Check(A, -2));
    PetscCall(CheckResult(C, -2));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  for (int g = 0; g <= (int)device; g++)
    for (int k = TILEDSPMM_REORDER_NEVER; k <= TILEDSPMM_REORDER_CHOOSE; k++) PetscCall(CheckReordered((PetscBool)g, (TiledSpMMReorder)k));
  for (int g = 0; g <= (int)device; g++)
    for (int sort = 0; sort < 2; sort++) PetscCall(CheckSegments("staged", (PetscBool)g, (PetscBool)sort));
  if (device) {
    PetscCall(CheckSegments("cached", PETSC_TRUE, PETSC_FALSE));
    PetscCall(CheckSegments("transposed", PETSC_TRUE, PETSC_FALSE));
    PetscCall(CheckTiles());
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -mat_tiledspmm_kernel staged -mat_tiledspmm_panel 32 -mat_tiledspmm_stage 2
    test:
      suffix: 1
    test:
      suffix: columns
      args: -format hbp -mat_tiledspmm_columns {{1 2 32}}

  testset:
    requires: double !complex !defined(PETSC_USE_64BIT_INDICES)
    args: -mat_tiledspmm_kernel staged -mat_tiledspmm_panel 32 -mat_tiledspmm_stage 2 -mat_tiledspmm_columns 2
    filter: grep -o "TiledSpMM:.*" | grep -v "should take" | sort -u # what the GPU adds is its own
    test:
      suffix: view_info
      args: -view ::ascii_info
    test:
      suffix: view_detail
      args: -view ::ascii_info_detail
    test:
      suffix: view_reordered
      args: -view_reordered ::ascii_info
    test:
      suffix: view_segments
      args: -view_segments ::ascii_info_detail

TEST*/
