/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "When EVC-HYB packs a matrix on its own, and how packed slices and long rows are distributed over warps and thread blocks of the GPU; products where columns are asked for ahead.\n\n";

#include "packtest.h"

/* How columns are packed: by a stride; in 8 or 16 bits, where each line of a slice has the offsets of the line before; in 16 bits; in 32 */
typedef enum { COLUMNS_STRIDED, COLUMNS_SHARED, COLUMNS_NEAR, COLUMNS_RANDOM } Columns;

/* Slices that -mat_evchyb_slices_per_warp gives a warp, 0 where they are chosen */
static PetscErrorCode GivenSlices(PetscInt *slices)
{
  PetscFunctionBegin;
  *slices = 0;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_evchyb_slices_per_warp", slices, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The ranges of the launch have all slices, each once. Unless their number is given, a warp has fewer slices towards the end, and one where columns are stored. */
static PetscErrorCode CheckRanges(const EVCHYB *ev, Columns columns)
{
  PetscInt given, wanted, next = 0, each = EVCHYB_PACK_EACH + 1, most = 0, different = 0;

  PetscFunctionBegin;
  PetscCall(GivenSlices(&given));
  wanted = given || columns != COLUMNS_STRIDED ? 1 : 4;
  for (int k = 0; k < ev->launch.n; k++) {
    const EVCHYBRange *range   = &ev->launch.range[k];
    const PetscInt     ofblock = range->count * EVCHYB_THREADS / EVCHYB_BLOCK;

    if (range->kind != EVCHYB_RANGE_PACKED) continue;
    PetscCheck(!given || range->count == given, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d slices per warp, not %" PetscInt_FMT, range->count, given);
    PetscCheck(range->first == next && range->end > next && range->count < each, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Slices %" PetscInt_FMT " to %" PetscInt_FMT ", %d per warp, behind %" PetscInt_FMT " with %" PetscInt_FMT,
               range->first, range->end, range->count, next, each);
    PetscCheck((PetscInt)(range->next - range->begin) == (range->end - range->first + ofblock - 1) / ofblock, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%u thread blocks for %" PetscInt_FMT " slices, %d per warp",
               range->next - range->begin, range->end - range->first, range->count);
    next = range->end;
    each = range->count;
    most = PetscMax(most, each);
    different++;
  }
  PetscCheck(next == ev->packed->pack->nslice - ev->packed->pack->npiece, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " of %" PetscInt_FMT " slices are computed", next,
             ev->packed->pack->nslice - ev->packed->pack->npiece);
  PetscCheck(given || columns != COLUMNS_STRIDED || most > 1 || next <= 2 * EVCHYB_PACK_WARPS * ev->processors, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices by strides, one per warp", next);
  PetscCheck(given || columns == COLUMNS_STRIDED || each == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices per warp, of columns of kind %d", each, (int)columns);
  PetscCheck((wanted > 1 && next < 9 * EVCHYB_PACK_WARPS * ev->processors) || different == wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices in %" PetscInt_FMT " ranges, not %" PetscInt_FMT, next, different, wanted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The column of entry k of row r, of m rows with each entries */
static PetscInt ColumnOf(Columns columns, PetscInt m, PetscInt each, PetscInt r, PetscInt k)
{
  const PetscInt near = PetscMin(m, 60000);

  switch (columns) {
  case COLUMNS_STRIDED:
    return r + k;
  case COLUMNS_SHARED:
    return r / 1000 * 1000 + (PetscInt)(7919 * (PetscInt64)r % 997) + k;
  case COLUMNS_NEAR:
    return PetscMin(r / 1000 * 1000, m - near) + k * (near / each) + (PetscInt)(7919 * (PetscInt64)r * (k + 1) % (near / each - 1));
  default:
    return k * (m / each) + (PetscInt)(2654435761u * (uint32_t)(r * each + k + 1) % (uint32_t)(m / each));
  }
}

/* The multiprocessors of the GPU; without one, those of the GPU that the defaults are for, and matrices are stored plainly */
static PetscErrorCode GetProcessors(PetscInt *processors)
{
  Mat           A, B;
  Vec           x, z;
  PetscBool     device;
  const EVCHYB *ev;

  PetscFunctionBegin;
  *processors = 132;
  PetscCall(TestHasDevice(&device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Stencil(10, 10, 10, 1, VALUES_ALL, &A));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(MultiplyAt(B, 1000, 1, &x, &z));
  PetscCall(FormatAt(B, PETSC_MEMTYPE_CUDA, &ev));
  *processors = ev->processors;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Without options a matrix is packed on the GPU if expected, and never on the host. slices is how many slices it has per multiprocessor. The first rows, a share of all, have each entries, with columns of one
  kind; where every is given, row 0 and each every-th row after it have longest entries, if there are as many columns behind the diagonal, with columns of another kind. Values differ, but for matrices whose
  longest rows are short: with all of them 1 nothing but the lengths of rows speaks against packing.
*/
static PetscErrorCode CheckAuto(PetscInt processors, PetscInt slices, PetscInt each, PetscInt every, PetscInt longest, Columns columns, Columns longer, PetscReal share, PetscBool expected)
{
  PetscInt      m = slices * processors * EVCHYB_PACK_ROWS;
  TestEntries   e;
  Mat           A, B;
  Vec           x, z;
  PetscBool     device;
  const EVCHYB *ev   = NULL;
  EVCHYBPack   *pack = NULL;

  PetscFunctionBegin;
  if (!TestInPart()) PetscFunctionReturn(PETSC_SUCCESS);
  if (columns == COLUMNS_RANDOM || longer == COLUMNS_RANDOM) m = PetscMax(m, 400000); /* for which 16 bits do not do */
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscBool islong = (PetscBool)(every && r % every == 0 && r + longest <= m); /* at the end a part of such a row would be a short one */
    const PetscInt  len    = islong ? longest : each;

    for (PetscInt k = 0; k < len && (PetscReal)r < share * (PetscReal)m; k++) PetscCall(TestEntriesPut(&e, ColumnOf(islong ? longer : columns, m, len, r, k), longest < 300 ? (PetscScalar)1.0 : TestValue(6, r, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &A));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestHasDevice(&device));
  for (int place = 0; place < (device ? 2 : 1); place++) {
    PetscCall(MultiplyAt(B, m, place, &x, &z));
    PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, "storage auto"));
    PetscCall(FormatAt(B, place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
    PetscCall(PackAt(B, place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
    PetscCheck((PetscBool)(pack != NULL) == (PetscBool)(place && expected), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Storage auto: %spacked, with columns of kind %d in %" PetscInt_FMT " rows on %s", pack ? "" : "not ", (int)columns, m, place ? "the GPU" : "the host");
    if (pack) PetscCall(CheckRanges(ev, columns));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of many long rows those of up to EVCHYB_WARP_ROW entries are each computed by a warp, longer ones and those of several pieces by thread blocks */
static PetscErrorCode CheckWarpRows(PetscInt processors)
{
  const PetscInt n = 9000, longer[] = {EVCHYB_WARP_ROW, EVCHYB_WARP_ROW + 1, EVCHYB_PIECE, EVCHYB_PIECE + 1, n};
  const PetscInt m      = 24 * processors;
  PetscInt       bywarp = 0, most = 0;
  PetscBool      device;
  TestEntries    e;
  Mat            A, plain, packed;
  const EVCHYB  *at;
  EVCHYB        *ev;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = r < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(longer) ? longer[r] : 600 + 200 * (r % 11);

    for (PetscInt k = 0; k < len; k++) PetscCall(TestEntriesPut(&e, len == n ? k : r % 7 + k * 2 - k % (r % 2 + 1), ValueOf(VALUES_ALL, e.nz)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &A));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &plain));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(CompareProducts(A, plain, packed, VECSEQCUDA, "many long rows"));
  PetscCall(FormatAt(packed, PETSC_MEMTYPE_CUDA, &at));
  PetscCall(EVCHYBCopyToHost(at, &ev));
  for (int k = 0; k < ev->launch.n; k++) {
    const EVCHYBRange     *range = &ev->launch.range[k];
    const EVCHYBPackSlice *piece = ev->packed->pack->slice + ev->packed->pack->nslice - ev->packed->pack->npiece;

    for (PetscInt q = range->first; q < range->end && range->kind == EVCHYB_RANGE_PIECES; q++) {
      const PetscInt  entries = (piece[q].width - 1) * EVCHYB_PACK_ROWS + piece[q].last;
      const PetscBool several = (PetscBool)(piece[q].at || (q + 1 < ev->packed->pack->npiece && piece[q + 1].at));

      PetscCheck((range->count == 1) == (!several && entries <= EVCHYB_WARP_ROW), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A piece of %" PetscInt_FMT " entries is computed by %d warps", entries, (int)range->count);
      if (range->count > 1) continue;
      bywarp++;
      most = PetscMax(most, entries);
    }
  }
  PetscCheck(bywarp == m - 4 && most == EVCHYB_WARP_ROW, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " of %" PetscInt_FMT " rows are computed by a warp, the longest of them has %" PetscInt_FMT " entries", bywarp, m, most);
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Enough slices, most of whose columns are stored in 16 bits, that columns are asked for ahead on the GPU: some in 8 and 32, beside slices by strides and empty ones; values as they are, in single precision and
  without imaginary parts, by slices; from no entry to 40 in a row
*/
static PetscErrorCode CheckAhead(PetscInt processors)
{
  const PetscInt m = (4 * EVCHYB_THREADS / EVCHYB_BLOCK * processors + 500) * EVCHYB_PACK_ROWS;
  PetscBool      device;
  TestEntries    e;
  Mat            A, plain, packed;
  const EVCHYB  *ev   = NULL;
  EVCHYBPack    *pack = NULL;
  PetscInt       given;

  PetscFunctionBegin;
  PetscCall(GivenSlices(&given));
  PetscCall(TestHasDevice(&device));
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt  slice = r / EVCHYB_PACK_ROWS, each = slice % 29 == 3 ? 0 : slice % 50 == 7 ? r % 41 : slice % 22 == 0 ? 3 : 5 + slice % 7 - (r % 31 == 0);
    const PetscInt  near  = PetscMax(each, slice % 22 == 0 ? m : slice % 22 == 11 ? 200 : 6000);
    const PetscBool strided = (PetscBool)(slice % 23 == 2);
    const Values    values  = slice % 5 == 1 ? VALUES_SINGLE : slice % 5 == 2 ? VALUES_REAL : VALUES_ALL;

    for (PetscInt k = 0; k < each; k++) {
      const PetscInt column = strided ? PetscMin(r, m - each) + k : PetscMin(slice * EVCHYB_PACK_ROWS, m - near) + k * (near / each) + (PetscInt)(7919 * (PetscInt64)r * (k + 1) % (near / each));

      PetscCall(TestEntriesPut(&e, column, ValueOf(values, e.nz)));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &A));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &plain));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(CompareProducts(A, plain, packed, VECSEQ, "columns that are stored"));
  if (device) PetscCall(CompareProducts(A, plain, packed, VECSEQCUDA, "columns that are stored"));
  PetscCall(FormatAt(packed, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
  PetscCall(PackAt(packed, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
  PetscCheck(EVCHYBPackGainsAhead(pack, 0, 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " pieces of long rows, %" PetscCount_FMT " of %" PetscCount_FMT " lines in 16 bits", pack->npiece, pack->figures.lines[EVCHYB_PACK_16], pack->nline);
  PetscCheck(!device || given || EVCHYBPackGainsAhead(pack, ev->processors, ev->launch.range[ev->launch.n - 1].next), PETSC_COMM_SELF, PETSC_ERR_PLIB, "So few thread blocks run at once that columns are not asked for ahead");
  if (given) PetscCall(CheckRanges(ev, COLUMNS_NEAR)); /* on the host too: it plans the ranges of packed slices as the GPU does */
  for (int k = EVCHYB_PACK_STRIDED; k < EVCHYB_PACK_CLASSES; k++) PetscCheck(pack->figures.lines[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "No line has columns of class %d", k);
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the slice of the longest short row takes longest: 10000 rows of 10 entries on average, beside empty and long ones */
static PetscErrorCode CheckUneven(void)
{
  EVCHYBPackTerms   terms = {.nz = 100000 + 5000, .uneven = 4};
  EVCHYBPackLengths rows  = {.nempty = 100, .nlong = 10, .entries = 5000, .pieces = 10};
  const struct {
    PetscInt  longest;
    PetscReal lines;
    PetscBool uneven;
  } cases[] = {
    {51, 50,  PETSC_TRUE },
    {50, 50,  PETSC_FALSE},
    {51, 51,  PETSC_FALSE},
    {41, 10,  PETSC_TRUE },
    {40, 10,  PETSC_FALSE},
    {0,  0,   PETSC_FALSE}
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    terms.lines  = (PetscLogDouble)cases[k].lines;
    rows.longest = cases[k].longest;
    PetscCheck(EVCHYBPackIsUneven(&terms, 10110, &rows) == cases[k].uneven, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A longest row of %" PetscInt_FMT " entries beside %g lines", cases[k].longest, (double)cases[k].lines);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt processors;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(GetProcessors(&processors));
  if (TestInPart()) PetscCall(CheckUneven());
  if (TestInPart()) PetscCall(CheckWarpRows(processors));
  if (TestInPart()) PetscCall(CheckAhead(processors));
  PetscCall(CheckAuto(processors, 150, 3, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 150, 3, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 0.4, PETSC_FALSE)); /* most rows are empty */
  PetscCall(CheckAuto(processors, 60, 3, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 11, 3, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_FALSE)); /* few entries */
  PetscCall(CheckAuto(processors, 11, 13, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 9, 16, 0, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_FALSE)); /* few slices */
  PetscCall(CheckAuto(processors, 15, 12, 0, 300, COLUMNS_SHARED, COLUMNS_SHARED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 15, 12, 0, 300, COLUMNS_NEAR, COLUMNS_NEAR, 1, PETSC_FALSE)); /* few for columns that are stored */
  PetscCall(CheckAuto(processors, 21, 12, 200, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 9, 12, 20, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE)); /* few slices, many pieces */
  PetscCall(CheckAuto(processors, 1, 3, 1, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));   /* nothing else */
  PetscCall(CheckAuto(processors, 47, 3, 60, 300, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 47, 3, 60, 300, COLUMNS_STRIDED, COLUMNS_NEAR, 1, PETSC_TRUE)); /* most lines are those of pieces, which do not tell how many slices a warp should have */
  PetscCall(CheckAuto(processors, 47, 3, 60, 300, COLUMNS_NEAR, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 47, 3, 60, 300, COLUMNS_STRIDED, COLUMNS_RANDOM, 1, PETSC_FALSE)); /* most entries are in long rows, whose columns take 32 bits */
  PetscCall(CheckAuto(processors, 60, 3, 200, 100, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_FALSE)); /* short rows of very different lengths */
  PetscCall(CheckAuto(processors, 21, 12, 0, 300, COLUMNS_NEAR, COLUMNS_NEAR, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 80, 3, 0, 300, COLUMNS_RANDOM, COLUMNS_RANDOM, 1, PETSC_FALSE));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    args: -mat_evchyb_order none
    test:
      suffix: 1
    test:
      suffix: window
      args: -mat_evchyb_window {{0 1 64}}
    test:
      suffix: slices
      args: -mat_evchyb_slices_per_warp {{3 8}}
    test:
      suffix: max_ell
      args: -mat_evchyb_max_ell 128 -mat_evchyb_by_row 0 -mat_evchyb_columns_per_warp 1000

TEST*/
