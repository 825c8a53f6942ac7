/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Packed storage of EVC-HYB: every entry is there, bit for bit; matrices made for each way to store columns and values, and for changes between them; products as in plain storage "
                     "to the last bit.\n\n";

#include "packtest.h"

/* ---- matrices ---- */

/* Rows of width entries. Within a slice the columns of first entries span range, and are not by a stride. The columns of entries k do so too, or are, if shared, those of first entries plus k. */
static PetscErrorCode Ranges(PetscInt m, PetscInt width, PetscInt range, PetscBool shared, Values values, Mat *A)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, shared ? range + width : range * width, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < width; k++) {
      const PetscInt from = r % 11 == 5 ? range - 1 : r % 11 == 9 ? 0 : (r * 7919 * (shared ? 1 : k + 1)) % range; /* whatever the stride */

      PetscCall(TestEntriesPut(&e, shared ? from + k : from + k * range, ValueOf(values, r * width + k)));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of many lengths, empty and long ones among them; with unordered, some have their columns in decreasing order */
static PetscErrorCode Mixed(PetscInt m, PetscInt n, PetscInt seed, PetscBool unordered, Values values, Mat *A)
{
  TestEntries e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    PetscInt len = (r * (seed + 3) + r / 7) % 11, step;

    if (r % 97 == 40 + seed) len = 50;
    if (m > 200 && r % (m / 8 + 1) == 17) len = r < m / 2 ? 300 : 9000; /* longer than ELL takes, and than a piece */
    len  = PetscMin(len, n);
    step = len ? n / len : 0;
    for (PetscInt k = 0; k < len; k++) {
      const PetscInt at = unordered && r % 5 == 0 ? len - 1 - k : k;

      PetscCall(TestEntriesPut(&e, at * step + (r * 31 + at * 17 + seed) % step, ValueOf(values, e.nz + seed)));
    }
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of a few entries, and between them enough rows without any that slices are empty */
static PetscErrorCode Gaps(Values values, Mat *A)
{
  const PetscInt m = 3000;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < 5 && r / 300 % 2; k++) PetscCall(TestEntriesPut(&e, r + k * 11, ValueOf(values, e.nz)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of one entry, and a few rows of each entries: a slice has more lines than a word of a mask has bits, but few enough entries to be copied at once */
static PetscErrorCode Uneven(PetscInt each, Values values, Mat *A)
{
  const PetscInt m     = 200;
  PetscInt       count = 0;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < (r % 50 == 17 ? each : 1); k++) PetscCall(TestEntriesPut(&e, (r + k) % m, ValueOf(values, count++)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows: all columns, every third one, some far apart */
static PetscErrorCode Long(Values values, Mat *A)
{
  const PetscInt m = 20, n = 70000;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, n, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < 129 + 450 * r; k++) PetscCall(TestEntriesPut(&e, r % 3 == 0 ? r + k : r % 3 == 1 ? 3 * k : 7 * k + k * k % 7, ValueOf(values, e.nz)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what a pack holds ---- */

static PetscScalar Stored(const EVCHYBPack *p, const EVCHYBPackSlice *s, PetscInt k, int place)
{
  const unsigned char *line = p->value + ((size_t)s->value + (size_t)k * EVCHYBPackValueUnits((EVCHYBPackValues)s->values)) * EVCHYB_PACK_UNIT;
  PetscScalar          value;
  PetscReal           *part = (PetscReal *)&value;

  if (s->values == EVCHYB_PACK_REAL) return (PetscScalar)((const PetscReal *)line)[place];
  for (int q = 0; q < EVCHYB_PACK_PARTS; q++) {
    const int at = place * EVCHYB_PACK_PARTS + q;

    part[q] = s->values == EVCHYB_PACK_VALUE  ? ((const PetscReal *)line)[at]
            : s->values == EVCHYB_PACK_SINGLE ? (PetscReal)((const float *)line)[at]
                                              : p->dict[s->values == EVCHYB_PACK_DICT8 ? line[at] : ((const uint16_t *)line)[at]];
  }
  return value;
}

/* Each row once, in a slice or in pieces, and its entries in order, all bits of them */
static PetscErrorCode CheckEntries(Mat A, const EVCHYBPack *p, const char what[])
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, lines[EVCHYB_PACK_CLASSES] = {0}, shared = 0;
  PetscCount         nz = 0;
  PetscBool          done, *seen;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(PetscCalloc1(m, &seen));
  for (PetscInt s = 0; s < p->nslice; s++) {
    const EVCHYBPackSlice *slice = &p->slice[s];

    for (PetscInt k = 0; k < slice->width; k++) {
      const EVCHYBPackLine *line = &p->line[slice->line + k];

      lines[EVCHYBPackClassOf(*line)]++;
      if (EVCHYBPackClassOf(*line) != EVCHYB_PACK_STRIDED && k && line->info == line[-1].info) shared++;
    }
    if (slice->last) {
      const PetscInt row  = slice->rows.base;
      PetscInt       next = i[row] + (PetscInt)slice->at * EVCHYB_PACK_ROWS;

      TestCheck(s >= p->nslice - p->npiece && !seen[row], "slice %" PetscInt_FMT " is a piece of row %" PetscInt_FMT, what, s, row);
      for (PetscInt k = 0; k < slice->width; k++) {
        for (int l = 0; l < (k + 1 < slice->width ? EVCHYB_PACK_ROWS : slice->last); l++, next++, nz++) {
          const PetscScalar value = Stored(p, slice, k, EVCHYBPackPlace(l));

          TestCheck(next < i[row + 1] && EVCHYBPackNumber(p->line[slice->line + k], p->stream, EVCHYBPackPlace(l)) == j[next] && !memcmp(&value, &a[next], sizeof(value)), "entry %d of line %" PetscInt_FMT ", row %" PetscInt_FMT, what, l, k, row);
        }
      }
      seen[row] = (PetscBool)(next == i[row + 1]);
      TestCheck(seen[row] || (s + 1 < p->nslice && p->slice[s + 1].rows.base == row && (PetscInt)p->slice[s + 1].at * EVCHYB_PACK_ROWS == next - i[row]), "row %" PetscInt_FMT " does not go on", what, row);
      continue;
    }
    for (int l = 0; l < EVCHYB_PACK_ROWS; l++) {
      const int      place = EVCHYBPackPlace(l);
      const PetscInt row   = EVCHYBPackRowOf(slice->rows, p->stream, place);
      PetscInt       next  = row < 0 ? 0 : i[row];

      TestCheck(row < m && (row < 0 || !seen[row]), "slice %" PetscInt_FMT " has row %" PetscInt_FMT, what, s, row);
      if (row >= 0) seen[row] = PETSC_TRUE;
      for (PetscInt k = 0; k < slice->width; k++) {
        PetscScalar value;

        if (!(EVCHYBPackMaskOf(slice, p->stream, k / EVCHYB_PACK_CHUNK, place) >> k % EVCHYB_PACK_CHUNK & 1)) continue;
        value = Stored(p, slice, k, place);
        TestCheck(row >= 0 && next < i[row + 1] && EVCHYBPackNumber(p->line[slice->line + k], p->stream, place) == j[next] && !memcmp(&value, &a[next], sizeof(value)), "line %" PetscInt_FMT " of slice %" PetscInt_FMT ", row %" PetscInt_FMT ": column %" PetscInt_FMT ", value %g", what, k, s, row,
                  EVCHYBPackNumber(p->line[slice->line + k], p->stream, place), (double)PetscRealPart(value));
        next++;
        nz++;
      }
      TestCheck(row < 0 || next == i[row + 1], "%" PetscInt_FMT " entries of row %" PetscInt_FMT " are missing", what, i[row + 1] - next, row);
    }
  }
  for (PetscInt r = 0; r < m; r++) TestCheck(seen[r], "row %" PetscInt_FMT " is in no slice", what, r);
  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++)
    TestCheck(lines[k] == p->figures.lines[k], "%" PetscInt_FMT " lines of class %d, %" PetscCount_FMT " were counted", what, lines[k], k, p->figures.lines[k]);
  TestCheck(shared == p->figures.shared, "%" PetscInt_FMT " lines share their columns, %" PetscCount_FMT " were counted", what, shared, p->figures.shared);
  TestCheck(nz == p->nz, "%" PetscCount_FMT " entries, not %" PetscCount_FMT, what, nz, p->nz);
  PetscCall(PetscFree(seen));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows in pieces have more entries than those in slices may have */
static PetscErrorCode CheckLongRows(Mat A, const EVCHYB *ev, const char what[])
{
  const EVCHYBPack *p = ev->packed->pack;
  const PetscInt   *i;
  PetscInt          m;
  PetscBool         done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, NULL, &done));
  for (PetscInt q = p->nslice - p->npiece; q < p->nslice; q++) {
    const PetscInt row = p->slice[q].rows.base;

    TestCheck(i[row + 1] - i[row] > ev->options.maxell, "row %" PetscInt_FMT " is not long", what, row);
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, NULL, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSame(const EVCHYBPack *h, const EVCHYBPack *d, const char what[])
{
  PetscFunctionBegin;
  TestSameNumber(h, d, stride, what);
  TestSameNumber(h, d, nslice, what);
  TestSameNumber(h, d, ndict, what);
  TestSameNumber(h, d, nz, what);
  TestSameNumber(h, d, nline, what);
  TestSameNumber(h, d, nstream, what);
  TestSameNumber(h, d, nvalue, what);
  TestSameNumber(h, d, npiece, what);
  TestSameNumber(h, d, nlong, what);
  TestSameNumber(h, d, bytes, what);
  PetscCall(TestSameBytes(&h->figures, &d->figures, sizeof(h->figures), "figures", what));
  TestSameArray(h, d, dict, h->ndict, what);
  TestSameArray(h, d, slice, h->nslice, what);
  TestSameArray(h, d, line, h->nline, what);
  TestSameArray(h, d, stream, h->nstream * EVCHYB_PACK_UNIT, what);
  TestSameArray(h, d, value, h->nvalue * EVCHYB_PACK_UNIT, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the checks of a matrix ---- */

/* What is expected of a pack; -1 for what does not matter */
typedef struct {
  PetscInt  stride, values; /* values: the class of all of them */
  PetscInt  lines;          /* the class of most lines */
  PetscBool shared;         /* whether most share the offsets of the line before */
} Expect;

static const Expect Anything = {-1, -1, -1, PETSC_FALSE};

static PetscErrorCode CheckExpect(const EVCHYBPack *p, Expect expect, const char what[])
{
  PetscCount all = 0;

  PetscFunctionBegin;
  if (expect.stride >= 0) TestCheck(p->stride == expect.stride, "stride %" PetscInt_FMT ", not %" PetscInt_FMT, what, p->stride, expect.stride);
  for (int k = 0; k < EVCHYB_PACK_VALUES && expect.values >= 0; k++)
    TestCheck(k == expect.values || !p->figures.slots[k], "%" PetscCount_FMT " values are stored in way %d, not %" PetscInt_FMT, what, p->figures.slots[k], k, expect.values);
  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) all += p->figures.lines[k];
  if (expect.lines >= 0)
    TestCheck(10 * p->figures.lines[expect.lines] > 9 * all, "%" PetscCount_FMT " of %" PetscCount_FMT " lines are of class %" PetscInt_FMT, what, p->figures.lines[expect.lines], all, expect.lines);
  if (expect.shared) TestCheck(10 * p->figures.shared > 9 * all, "%" PetscCount_FMT " of %" PetscCount_FMT " lines share their columns", what, p->figures.shared, all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The packs at the places where a matrix has been multiplied */
static PetscErrorCode CheckPacks(Mat A, Mat packed, Expect expect, const char what[])
{
  const void *data[2];
  EVCHYB     *copy[2] = {NULL, NULL};

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(packed, PETSC_MEMTYPE_HOST, &data[0]));
  PetscCall(MatGallopGetFormatData(packed, PETSC_MEMTYPE_CUDA, &data[1]));
  TestCheck(data[0], "nothing was built", what);
  for (int k = 0; k < 2; k++) {
    if (!data[k]) continue;
    PetscCall(EVCHYBCopyToHost((const EVCHYB *)data[k], &copy[k]));
    TestCheck(copy[k]->packed, "not packed", what);
    PetscCall(CheckEntries(A, copy[k]->packed->pack, what));
    PetscCall(CheckLongRows(A, copy[k], what));
    PetscCall(CheckExpect(copy[k]->packed->pack, expect, what));
  }
  if (copy[1]) PetscCall(CheckSame(copy[0]->packed->pack, copy[1]->packed->pack, what));
  for (int k = 0; k < 2; k++)
    if (copy[k]) PetscCall(EVCHYBDestroyHostCopy(&copy[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckMatrix(Mat A, Mat plain, Mat packed, Expect expect, const char what[])
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(CompareProducts(A, plain, packed, VECSEQ, what));
  if (device) PetscCall(CompareProducts(A, plain, packed, VECSEQCUDA, what));
  PetscCall(CheckPacks(A, packed, expect, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the dictionaries at both places are, NULL where there is none */
static PetscErrorCode GetDicts(Mat packed, const void *dict[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    EVCHYBPack *pack = NULL;

    PetscCall(PackAt(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
    dict[k] = pack ? pack->dict : NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix, then the same with other values. Values in a dictionary change in their places, others may have to be stored in another way. */
static PetscErrorCode Check(Mat *A, Expect expect, PetscBool unsorted, const char what[])
{
  Mat         plain, packed;
  MatInfo     info;
  const void *dict[2][2];

  PetscFunctionBegin;
  PetscCall(MatGetInfo(*A, MAT_LOCAL, &info));
  if (info.nz_used == 0) { /* no format is made of it */
    PetscCall(MatDestroy(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(CreateStored(*A, "plain", unsorted, &plain));
  PetscCall(CreateStored(*A, "packed", unsorted, &packed));
  PetscCall(CheckMatrix(*A, plain, packed, expect, what));
  PetscCall(GetDicts(packed, dict[0]));
  PetscCall(MatScale(*A, 1.0 / 3.0));
  PetscCall(MatScale(plain, 1.0 / 3.0));
  PetscCall(MatScale(packed, 1.0 / 3.0));
  expect.values = -1;
  PetscCall(CheckMatrix(*A, plain, packed, expect, what));
  PetscCall(GetDicts(packed, dict[1]));
  for (int k = 0; k < 2; k++) TestCheck(!dict[0][k] || dict[0][k] == dict[1][k], "the dictionary on %s has moved", what, k ? "the GPU" : "the host");
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscCall(MatDestroy(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt ClassOfValues(Values values)
{
  if (values == VALUES_256) return EVCHYB_PACK_DICT8;
  if (values == VALUES_257) return EVCHYB_PACK_DICT16;
  if (values == VALUES_MANY) return -1; /* what it is depends on how many values the matrix has */
  if (values == VALUES_SINGLE && sizeof(PetscReal) > sizeof(float)) return EVCHYB_PACK_SINGLE;
  return values != VALUES_ALL && PetscDefined(USE_COMPLEX) ? EVCHYB_PACK_REAL : EVCHYB_PACK_VALUE;
}

/* ---- special numbers ---- */

static PetscReal FromBits(uint64_t bits)
{
  union
  {
    EVCHYBPackBits bits;
    PetscReal      value;
  } u;

  u.bits = (EVCHYBPackBits)bits;
  return u.value;
}

/* Bits that arithmetic would not keep: a negative zero, denormals, NaNs with a payload. If few, they are in a dictionary; among many other values they are stored as they are. */
static PetscErrorCode CheckBits(PetscBool few)
{
  const int       shift  = sizeof(PetscReal) == sizeof(float) ? 32 : 0;
  const PetscReal bits[] = {FromBits(0x8000000000000000 >> shift), FromBits(1), FromBits(0x7ff8000012345678 >> shift), FromBits(0xffffffffffffffff >> shift),
                            FromBits(0x7ff0000000000000 >> shift), 0.0,         FromBits(0x36a0000000000000 >> shift)};
  const PetscInt  m      = 200;
  TestEntries     e;
  Mat             A, packed;
  Vec             x, z;
  PetscBool       device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = -3; k <= 3; k++) PetscCall(TestEntriesPut(&e, r + k, few || (r + k) % 3 ? bits[(r + k + 7) % 7] : TestValue(5, r, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &A));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(TestHasDevice(&device));
  for (int place = 0; place < (device ? 2 : 1); place++) {
    PetscCall(MultiplyAt(packed, m, place, &x, &z));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(CheckPacks(A, packed, few ? (Expect){1, EVCHYB_PACK_DICT8, EVCHYB_PACK_STRIDED} : (Expect){1, -1, EVCHYB_PACK_STRIDED}, "special numbers"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

/* Marks the packs at both places by a count that no new pack has, or takes the mark away and tells where it was kept */
static PetscErrorCode MarkPacks(Mat packed, PetscInt by, PetscBool kept[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    EVCHYBPack *pack = NULL;

    PetscCall(PackAt(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
    kept[k] = (PetscBool)(pack && pack->figures.lines[EVCHYB_PACK_32] >= PETSC_INT_MAX / 2);
    if (pack && (by > 0 || kept[k])) pack->figures.lines[EVCHYB_PACK_32] += by;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values: one entry changes; each number becomes another, in another order; the same numbers at other entries; few numbers; one; all different */
typedef enum { NEW_ONE, NEW_RECIPROCALS, NEW_ELSEWHERE, NEW_FEW, NEW_EQUAL, NEW_ALL, NEW_STEPS } NewValues;

static PetscErrorCode SetNewValues(Mat A, NewValues step, PetscScalar newvalue)
{
  MatInfo      info;
  PetscScalar *a, *before;
  PetscInt     nz;

  PetscFunctionBegin;
  if (step == NEW_ONE) {
    PetscCall(MatSetValue(A, 500, 501, newvalue, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  nz = (PetscInt)info.nz_used;
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall(PetscMalloc1(nz, &before));
  PetscCall(PetscArraycpy(before, a, nz));
  for (PetscInt k = 0; k < nz; k++) {
    if (step == NEW_RECIPROCALS) a[k] = 1.0 / before[k];
    else if (step == NEW_ELSEWHERE) a[k] = before[7 * k % nz];
    else if (step == NEW_FEW) a[k] = k % 7 ? 1.0 / 3.0 : -7.0;
    else a[k] = step == NEW_EQUAL ? 1.0 : ValueOf(VALUES_ALL, k + 1000000);
  }
  PetscCall(PetscFree(before));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values for a matrix and both that store it, whose products are compared; kept: at which places the pack is the one before */
static PetscErrorCode Renew(Mat A, Mat plain, Mat packed, NewValues step, PetscScalar newvalue, PetscBool kept[2])
{
  const PetscInt mark   = PETSC_INT_MAX / 2;
  PetscBool      device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(MarkPacks(packed, mark, kept));
  for (int k = 0; k < 3; k++) PetscCall(SetNewValues(k == 0 ? A : k == 1 ? plain : packed, step, newvalue));
  PetscCall(CompareProducts(A, plain, packed, VECSEQ, "after a new value"));
  if (device) PetscCall(CompareProducts(A, plain, packed, VECSEQCUDA, "after a new value"));
  PetscCall(MarkPacks(packed, -mark, kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The matrix is packed again where new values are stored in other ways, else they are renewed, or their dictionary is: in its place, where each number becomes one other or values are numbers that it
  has
*/
static PetscErrorCode CheckNewValues(Values values, PetscScalar newvalue, PetscInt before, PetscInt after)
{
  const PetscBool few = (PetscBool)(after != EVCHYB_PACK_VALUE);
  Mat             A, plain, packed;
  PetscBool       kept[2], device;
  const void     *dict[2][2];

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(Stencil(20, 10, 5, 1, values, &A));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &plain));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(CheckMatrix(A, plain, packed, (Expect){1, before, EVCHYB_PACK_STRIDED}, "before a new value"));
  for (int step = 0; step < NEW_STEPS; step++) {
    const PetscBool same  = (PetscBool)(step == NEW_ONE ? before == after : step == NEW_ALL ? !few : PETSC_TRUE);
    const PetscBool place = (PetscBool)(few && (step == NEW_RECIPROCALS || step == NEW_ELSEWHERE || step == NEW_EQUAL));
    const PetscInt  kind  = step == NEW_ALL ? EVCHYB_PACK_VALUE : after;

    PetscCall(GetDicts(packed, dict[0]));
    PetscCall(Renew(A, plain, packed, (NewValues)step, newvalue, kept));
    PetscCall(GetDicts(packed, dict[1]));
    for (int k = 0; k < (device ? 2 : 1); k++) {
      const char *where = k ? "the GPU" : "the host";
      EVCHYBPack *pack  = NULL;

      PetscCall(PackAt(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
      PetscCheck(pack, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Not packed on %s", where);
      PetscCheck(kept[k] == same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The pack on %s was %skept, with values of kind %d, step %d", where, kept[k] ? "" : "not ", (int)values, step);
      PetscCheck(!place || dict[0][k] == dict[1][k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The dictionary on %s has moved, with values of kind %d, step %d", where, (int)values, step);
      PetscCheck(pack->unsorted == (PetscBool)(few && step == NEW_RECIPROCALS), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The dictionary on %s is %sin order, with values of kind %d, step %d", where, pack->unsorted ? "not " : "", (int)values, step);
    }
    PetscCall(CheckMatrix(A, plain, packed, (Expect){1, kind, EVCHYB_PACK_STRIDED}, "after a new value"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_USE_COMPLEX)
/* Complex values without an imaginary part: a slice is stored in another way once one of its values has one, be it -0 */
static PetscErrorCode CheckReal(void)
{
  const PetscReal imaginary[] = {0.0, -0.0, 1.0};
  const PetscBool same[]      = {PETSC_TRUE, PETSC_FALSE, PETSC_TRUE};
  Mat             A, plain, packed;
  PetscBool       kept[2], device;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(Stencil(20, 10, 5, 1, VALUES_REAL, &A));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &plain));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(CheckMatrix(A, plain, packed, (Expect){1, EVCHYB_PACK_REAL, EVCHYB_PACK_STRIDED}, "no imaginary parts"));
  for (size_t step = 0; step < PETSC_STATIC_ARRAY_LENGTH(imaginary); step++) {
    PetscCall(Renew(A, plain, packed, NEW_ONE, PetscCMPLX(1.0 / 700.0, imaginary[step]), kept));
    for (int k = 0; k < (device ? 2 : 1); k++) {
      EVCHYBPack *pack = NULL;

      PetscCall(PackAt(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &pack));
      PetscCheck(kept[k] == same[step], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The pack on %s was %skept when an imaginary part became %g", k ? "the GPU" : "the host", kept[k] ? "" : "not ", (double)imaginary[step]);
      PetscCheck(pack->figures.slots[EVCHYB_PACK_VALUE] == (step ? 7 * EVCHYB_PACK_ROWS : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscCount_FMT " values on %s have imaginary parts", pack->figures.slots[EVCHYB_PACK_VALUE], k ? "the GPU" : "the host");
    }
    PetscCall(CheckMatrix(A, plain, packed, (Expect){1, step ? -1 : EVCHYB_PACK_REAL, EVCHYB_PACK_STRIDED}, "a new imaginary part"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Enough values that a sample is looked at before they are counted: num different ones, or all different if num is 0. The sample must not take 65,000 numbers for too many. */
static PetscErrorCode CheckLooks(PetscInt num, PetscInt kind)
{
  Mat          A;
  MatInfo      info;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Stencil(60, 50, 30, 1, VALUES_ALL, &A));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCheck(info.nz_used >= EVCHYB_PACK_LOOKS_FROM, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g values are too few", info.nz_used);
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used && num; k++) a[k] = (PetscScalar)(PetscReal)(1.0 / (PetscReal)((PetscInt64)k * 7919 % num + 3));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(Check(&A, (Expect){-1, kind, EVCHYB_PACK_STRIDED}, PETSC_FALSE, "many values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt ranges[] = {255, 256, 257, 65535, 65536, 65537, 200000};
  static const PetscInt sizes[]  = {1, 2, 63, 64, 65, 127, 128, 129, 500, 1000, 3000};
  Mat                   A;
  PetscBool             device;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (int values = 0; values < VALUES_KINDS; values++) {
    const PetscInt kind = ClassOfValues((Values)values);

    PetscCall(Stencil(23, 11, 37, 1, (Values)values, &A));
    PetscCall(Check(&A, (Expect){1, kind, EVCHYB_PACK_STRIDED}, PETSC_FALSE, "7-point stencil"));
    PetscCall(Stencil(17, 9, 13, 3, (Values)values, &A));
    PetscCall(Check(&A, (Expect){3, kind, EVCHYB_PACK_STRIDED}, PETSC_FALSE, "three unknowns per node"));
    PetscCall(Gaps((Values)values, &A));
    PetscCall(Check(&A, Anything, PETSC_FALSE, "slices without entries"));
    for (PetscInt each = 32; each < 70; each += 33) { /* 32 lines, and 65 */
      PetscCall(Uneven(each, (Values)values, &A));
      PetscCall(Check(&A, Anything, PETSC_FALSE, "few rows of many entries"));
    }
    PetscCall(Long((Values)values, &A));
    PetscCall(Check(&A, (Expect){-1, values == VALUES_MANY ? -1 : kind, -1}, PETSC_FALSE, "long rows"));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ranges); k++) {
      const PetscInt lines = ranges[k] <= 256 ? EVCHYB_PACK_8 : ranges[k] <= 65536 ? EVCHYB_PACK_16 : EVCHYB_PACK_32;

      for (int shared = 0; shared < 2; shared++) {
        PetscCall(Ranges(320, shared ? 11 : 5, ranges[k], (PetscBool)shared, (Values)values, &A));
        PetscCall(Check(&A, (Expect){-1, kind, lines, (PetscBool)shared}, PETSC_TRUE /* sorted, they would be closer */, "columns apart"));
      }
    }
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
      for (int other = 0; other < 3; other++) {
        const PetscInt n = other == 0 ? sizes[k] : other == 1 ? 1 : 20000;

        PetscCall(Mixed(sizes[k], n, (PetscInt)k, (PetscBool)(other == 2), (Values)values, &A));
        PetscCall(Check(&A, Anything, PETSC_FALSE, "rows of many lengths"));
      }
    }
  }
  for (PetscInt dof = 1; dof <= 8; dof++) { /* the last group of slices is not full */
    PetscCall(Stencil(13, 7, 5, dof, VALUES_ALL, &A));
    PetscCall(Check(&A, (Expect){-1, -1, -1}, PETSC_FALSE, "unknowns of a node"));
  }
  PetscCall(CheckBits(PETSC_TRUE));
  PetscCall(CheckBits(PETSC_FALSE));
  PetscCall(CheckNewValues(VALUES_256, 1.0 / 700.0, EVCHYB_PACK_DICT8, EVCHYB_PACK_DICT16));
  PetscCall(CheckNewValues(VALUES_256, 1.0 / 7.0, EVCHYB_PACK_DICT8, EVCHYB_PACK_DICT8));
  PetscCall(CheckNewValues(VALUES_257, 1.0 / 700.0, EVCHYB_PACK_DICT16, EVCHYB_PACK_DICT16));
  PetscCall(CheckNewValues(VALUES_ALL, 1.0 / 700.0, EVCHYB_PACK_VALUE, EVCHYB_PACK_VALUE));
#if defined(PETSC_USE_COMPLEX)
  PetscCall(CheckReal());
#endif
  PetscCall(CheckLooks(65000, EVCHYB_PACK_DICT16));
  PetscCall(CheckLooks(200000, ClassOfValues(VALUES_REAL)));
  PetscCall(CheckLooks(0, EVCHYB_PACK_VALUE));
  PetscCall(TestHasDevice(&device));
  PetscCheck(!device || compared, PETSC_COMM_SELF, PETSC_ERR_PLIB, "On the GPU no row was compared bit by bit");
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
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
