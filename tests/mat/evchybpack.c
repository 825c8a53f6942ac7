static char help[] = "Packed storage of EVC-HYB: every entry is there, bit for bit; matrices made for each way to store columns and values, and for changes between them; products as in plain storage "
                     "to the last bit.\n\n";

#include "propertytest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"

/* ---- matrices ---- */

/* Values of each kind (of complex ones, zero is a number too): all different, few, many but not too many, and such as single precision has */
typedef enum { VALUES_ALL, VALUES_256, VALUES_257, VALUES_MANY, VALUES_SINGLE, VALUES_KINDS } Values;

static PetscScalar ValueOf(Values kind, PetscInt k)
{
  const PetscReal real = PetscRealPart(TestValue(5, k, 1));

  switch (kind) {
  case VALUES_256:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % (PetscDefined(USE_COMPLEX) ? 255 : 256) + 3));
  case VALUES_257:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % (PetscDefined(USE_COMPLEX) ? 256 : 257) + 3));
  case VALUES_MANY:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % 20000 + 3));
  case VALUES_SINGLE:
    return (PetscScalar)(PetscReal)(float)(real + (PetscReal)k);
  default:
    return TestValue(5, k, 1);
  }
}

/* 7 points on a grid of nx x ny x nz nodes with dof unknowns each, all of a node's with all of a neighbour's */
static PetscErrorCode Stencil(PetscInt nx, PetscInt ny, PetscInt nz, PetscInt dof, Values values, Mat *A)
{
  const PetscInt m     = nx * ny * nz * dof;
  PetscInt       count = 0;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt node = r / dof, x = node % nx, y = node / nx % ny, z = node / nx / ny;
    const PetscInt at[7] = {z > 0 ? node - nx * ny : -1, y > 0 ? node - nx : -1,      x > 0 ? node - 1 : -1,           node,
                            x + 1 < nx ? node + 1 : -1,  y + 1 < ny ? node + nx : -1, z + 1 < nz ? node + nx * ny : -1};

    for (int k = 0; k < 7; k++)
      for (PetscInt d = 0; d < dof && at[k] >= 0; d++) PetscCall(TestEntriesPut(&e, at[k] * dof + d, ValueOf(values, count++)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of width entries. Within a slice their first columns are apart by range - 1, and not by a stride; so are the second ones, and so on, or those are the first ones and one, and so on. */
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

/* Rows of many lengths, empty ones and long ones among them; columns in any order where asked for */
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

/* Rows of a few entries, and between them so many without that slices are empty */
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

/* Rows of one entry, and here and there one of each entries: a slice has more lines than a word of a mask has bits, but so few entries that they are copied at once */
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

static PetscScalar Stored(const GallopPack *p, const GallopPackSlice *s, PetscInt k, int place)
{
  const unsigned char *line = p->value + ((size_t)s->value + (size_t)k * GallopPackValueUnits((GallopPackValues)s->values)) * GALLOP_PACK_UNIT;
  PetscScalar          value;
  PetscReal           *part = (PetscReal *)&value;

  for (int q = 0; q < GALLOP_PACK_PARTS; q++) {
    const int at = place * GALLOP_PACK_PARTS + q;

    part[q] = s->values == GALLOP_PACK_VALUE  ? ((const PetscReal *)line)[at]
            : s->values == GALLOP_PACK_SINGLE ? (PetscReal)((const float *)line)[at]
                                              : p->dict[s->values == GALLOP_PACK_DICT8 ? line[at] : ((const uint16_t *)line)[at]];
  }
  return value;
}

/* Each row once, in a slice or in pieces, and its entries in order, all bits of them */
static PetscErrorCode CheckEntries(Mat A, const EVCHYB *ev, const char what[])
{
  const GallopPack  *p = ev->pack;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, lines[GALLOP_PACK_CLASSES] = {0}, shared = 0;
  PetscCount         nz = 0;
  PetscBool          done, *seen;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(PetscCalloc1(m, &seen));
  for (PetscInt s = 0; s < p->nslice; s++) {
    const GallopPackSlice *slice = &p->slice[s];

    for (PetscInt k = 0; k < slice->width; k++) {
      const GallopPackLine *line = &p->line[slice->line + k];

      lines[GallopPackClassOf(*line)]++;
      if (GallopPackClassOf(*line) != GALLOP_PACK_STRIDED && k && line->info == line[-1].info) shared++;
    }
    if (slice->last) {
      const PetscInt row  = slice->rows.base;
      PetscInt       next = i[row] + (PetscInt)slice->at * GALLOP_PACK_ROWS;

      TestCheck(s >= p->nslice - p->npiece && !seen[row], "slice %" PetscInt_FMT " is a piece of row %" PetscInt_FMT, what, s, row);
      for (PetscInt k = 0; k < slice->width; k++) {
        for (int l = 0; l < (k + 1 < slice->width ? GALLOP_PACK_ROWS : slice->last); l++, next++, nz++) {
          const PetscScalar value = Stored(p, slice, k, GallopPackPlace(l));

          TestCheck(next < i[row + 1] && GallopPackNumber(p->line[slice->line + k], p->stream, GallopPackPlace(l)) == j[next] && !memcmp(&value, &a[next], sizeof(value)), "entry %d of line %" PetscInt_FMT ", row %" PetscInt_FMT, what, l, k, row);
        }
      }
      seen[row] = (PetscBool)(next == i[row + 1]);
      TestCheck(seen[row] || (s + 1 < p->nslice && p->slice[s + 1].rows.base == row && (PetscInt)p->slice[s + 1].at * GALLOP_PACK_ROWS == next - i[row]), "row %" PetscInt_FMT " does not go on", what, row);
      continue;
    }
    for (int l = 0; l < GALLOP_PACK_ROWS; l++) {
      const int      place = GallopPackPlace(l);
      const PetscInt row   = GallopPackRowOf(slice->rows, p->stream, place);
      PetscInt       next  = row < 0 ? 0 : i[row];

      TestCheck(row < m && (row < 0 || !seen[row]), "slice %" PetscInt_FMT " has row %" PetscInt_FMT, what, s, row);
      if (row >= 0) seen[row] = PETSC_TRUE;
      for (PetscInt k = 0; k < slice->width; k++) {
        PetscScalar value;

        if (!(GallopPackMaskOf(slice, p->stream, k / GALLOP_PACK_CHUNK, place) >> k % GALLOP_PACK_CHUNK & 1)) continue;
        value = Stored(p, slice, k, place);
        TestCheck(row >= 0 && next < i[row + 1] && GallopPackNumber(p->line[slice->line + k], p->stream, place) == j[next] && !memcmp(&value, &a[next], sizeof(value)), "line %" PetscInt_FMT " of slice %" PetscInt_FMT ", row %" PetscInt_FMT ": column %" PetscInt_FMT ", value %g", what, k, s, row,
                  GallopPackNumber(p->line[slice->line + k], p->stream, place), (double)PetscRealPart(value));
        next++;
        nz++;
      }
      TestCheck(row < 0 || next == i[row + 1], "%" PetscInt_FMT " entries of row %" PetscInt_FMT " are missing", what, i[row + 1] - next, row);
    }
  }
  for (PetscInt r = 0; r < ev->csr.n; r++) TestCheck(i[ev->perm[r] + 1] - i[ev->perm[r]] > ev->options.maxell, "row %" PetscInt_FMT " is not long", what, ev->perm[r]);
  for (PetscInt r = 0; r < m; r++) TestCheck(seen[r], "row %" PetscInt_FMT " is nowhere", what, r);
  for (int k = 0; k < GALLOP_PACK_CLASSES; k++)
    TestCheck(lines[k] == p->figures.lines[k], "%" PetscInt_FMT " lines of class %d, %" PetscCount_FMT " were counted", what, lines[k], k, p->figures.lines[k]);
  TestCheck(shared == p->figures.shared, "%" PetscInt_FMT " lines share their columns, %" PetscCount_FMT " were counted", what, shared, p->figures.shared);
  TestCheck(nz == p->nz, "%" PetscCount_FMT " entries, not %" PetscCount_FMT, what, nz, p->nz);
  PetscCall(PetscFree(seen));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSame(const GallopPack *h, const GallopPack *d, const char what[])
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
  TestSameArray(h, d, stream, h->nstream * GALLOP_PACK_UNIT, what);
  TestSameArray(h, d, value, h->nvalue * GALLOP_PACK_UNIT, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products ---- */

static PetscErrorCode CreateStored(Mat A, const char storage[], PetscBool unsorted, Mat *B)
{
  char      window[16];
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_evchyb_window", window, sizeof(window), &set));
  if (unsorted) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", "1"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", storage));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, B));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_storage"));
  if (set) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", window));
  else PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_window"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format that a matrix has on the host or the GPU, after a product there */
static PetscErrorCode FormatAt(Mat A, PetscMemType memtype, const EVCHYB **ev)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(A, memtype, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No format on %s", PetscMemTypeHost(memtype) ? "the host" : "the GPU");
  *ev = (const EVCHYB *)data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount compared; /* rows of which every bit was, on the GPU */

/* The rows of packed slices that plain storage, at the place of the last product, adds up from their first entry on */
static PetscErrorCode AddedInOrder(Mat A, Mat plain, PetscBool device, PetscBool inorder[])
{
  const EVCHYB   *at = NULL;
  EVCHYB         *ev;
  PetscInt        m;
  const PetscInt *i, *j;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  for (PetscInt r = 0; r < m; r++) inorder[r] = (PetscBool)(!device && i[r + 1] - i[r] <= 128);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FormatAt(plain, PETSC_MEMTYPE_CUDA, &at));
  PetscCall(EVCHYBCopyToHost(at, &ev));
  for (int k = 0; k < ev->launch.n; k++) {
    const EVCHYBRange *range = &ev->launch.range[k];

    if (range->kind != EVCHYB_RANGE_ELL) continue; /* several threads share a row of others */
    for (PetscInt r = range->first * EVCHYB_BLOCK; r < range->end * EVCHYB_BLOCK; r++) {
      inorder[ev->perm[r]] = PETSC_TRUE;
      compared++;
    }
  }
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are added up in the same order have the same bits in both, but of complex numbers, whose products compilers round in several ways; all have the right sums */
static PetscErrorCode CompareProducts(Mat A, Mat plain, Mat packed, VecType vectype, const char what[])
{
  Vec                 x, y, z, w;
  PetscInt            m, n;
  const PetscScalar  *za, *wa;
  PetscBool           device, *inorder;
  MatGallopStatistics before, after;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(TestCreateVecsOfType(A, vectype, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(z, &w));
  PetscCall(TestSetVec(x, 2));
  PetscCall(TestSetVec(y, 3));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &device));
  PetscCall(PetscMalloc1(m, &inorder));
  PetscCall(MatGallopGetStatistics(packed, &before));
  for (int add = 0; add < 2; add++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(TestSpoilVec(w));
    if (add) PetscCall(MatMultAdd(packed, x, y, z));
    else PetscCall(MatMult(packed, x, z));
    PetscCall(TestCompare(A, TEST_MULT, x, add ? y : NULL, z, what));
    if (add) PetscCall(MatMultAdd(plain, x, y, w));
    else PetscCall(MatMult(plain, x, w));
    PetscCall(AddedInOrder(A, plain, device, inorder));
    PetscCall(VecGetArrayRead(z, &za));
    PetscCall(VecGetArrayRead(w, &wa));
    for (PetscInt r = 0; r < m; r++)
      PetscCheck(PetscDefined(USE_COMPLEX) || !inorder[r] || !memcmp(&za[r], &wa[r], sizeof(*za)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, vectors %s: row %" PetscInt_FMT " is %g, in plain storage %g", what, vectype, r, (double)PetscRealPart(za[r]), (double)PetscRealPart(wa[r]));
    PetscCall(VecRestoreArrayRead(z, &za));
    PetscCall(VecRestoreArrayRead(w, &wa));
  }
  PetscCall(PetscFree(inorder));
  PetscCall(TestSpecial(packed, A, TEST_MULT, x, z, what));
  PetscCall(MatGallopGetStatistics(packed, &after));
  TestCheck(after.products_host + after.products_device - before.products_host - before.products_device == 3, "the products were not ours", what);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is expected of a pack; -1 for what does not matter */
typedef struct {
  PetscInt  stride, values; /* values: the class of all of them */
  PetscInt  lines;          /* the class of most lines */
  PetscBool shared;         /* whether most share the offsets of the line before */
} Expect;

static const Expect Anything = {-1, -1, -1, PETSC_FALSE};

static PetscErrorCode CheckExpect(const GallopPack *p, Expect expect, const char what[])
{
  PetscCount all = 0;

  PetscFunctionBegin;
  if (expect.stride >= 0) TestCheck(p->stride == expect.stride, "stride %" PetscInt_FMT ", not %" PetscInt_FMT, what, p->stride, expect.stride);
  for (int k = 0; k < GALLOP_PACK_VALUES && expect.values >= 0; k++)
    TestCheck(k == expect.values || !p->figures.slots[k], "%" PetscCount_FMT " values are stored in way %d, not %" PetscInt_FMT, what, p->figures.slots[k], k, expect.values);
  for (int k = 0; k < GALLOP_PACK_CLASSES; k++) all += p->figures.lines[k];
  if (expect.lines >= 0)
    TestCheck(10 * p->figures.lines[expect.lines] > 9 * all, "%" PetscCount_FMT " of %" PetscCount_FMT " lines are of class %" PetscInt_FMT, what, p->figures.lines[expect.lines], all, expect.lines);
  if (expect.shared) TestCheck(10 * p->figures.shared > 9 * all, "%" PetscCount_FMT " of %" PetscCount_FMT " lines share their columns", what, p->figures.shared, all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The packs at the places that a matrix has been multiplied at */
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
    TestCheck(copy[k]->pack, "not packed", what);
    PetscCall(CheckEntries(A, copy[k], what));
    PetscCall(CheckExpect(copy[k]->pack, expect, what));
  }
  if (copy[1]) PetscCall(CheckSame(copy[0]->pack, copy[1]->pack, what));
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
    const void *data;

    PetscCall(MatGallopGetFormatData(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
    dict[k] = data && ((const EVCHYB *)data)->pack ? ((const EVCHYB *)data)->pack->dict : NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix, then with other values, which have to be stored in other ways but where they are numbers of a dictionary: those change in their places */
static PetscErrorCode Check(Mat *A, Expect expect, PetscBool unsorted, const char what[])
{
  Mat         plain, packed;
  MatInfo     info;
  const void *dict[2][2];

  PetscFunctionBegin;
  PetscCall(MatGetInfo(*A, MAT_LOCAL, &info));
  if (info.nz_used == 0) { /* for which no format is made */
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
  if (values == VALUES_256) return GALLOP_PACK_DICT8;
  if (values == VALUES_257) return GALLOP_PACK_DICT16;
  if (values == VALUES_MANY) return -1; /* where the matrix has enough of them */
  return values == VALUES_SINGLE && sizeof(PetscReal) > sizeof(float) ? GALLOP_PACK_SINGLE : GALLOP_PACK_VALUE;
}

/* ---- special numbers ---- */

static PetscReal FromBits(uint64_t bits)
{
  union
  {
    GallopPackBits bits;
    PetscReal      value;
  } u;

  u.bits = (GallopPackBits)bits;
  return u.value;
}

/* z = A x of a square matrix, on the host or the GPU */
static PetscErrorCode MultiplyAt(Mat A, PetscInt m, int place, Vec *x, Vec *z)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, x));
  PetscCall(VecSetSizes(*x, m, m));
  PetscCall(VecSetType(*x, place ? VECSEQCUDA : VECSEQ));
  PetscCall(VecDuplicate(*x, z));
  PetscCall(TestSetVec(*x, 2));
  PetscCall(MatMult(A, *x, *z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bits that arithmetic would not keep: a negative zero, denormals, NaNs with a payload. Few of them are in a dictionary, among many others they are stored as they are. */
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
  PetscCall(CheckPacks(A, packed, few ? (Expect){1, GALLOP_PACK_DICT8, GALLOP_PACK_STRIDED} : (Expect){1, -1, GALLOP_PACK_STRIDED}, "special numbers"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

/* A mark on the packs at both places that new ones would not have, or whether it is still there */
static PetscErrorCode MarkPacks(Mat packed, PetscInt by, PetscBool kept[2])
{
  const void *data[2];

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(packed, PETSC_MEMTYPE_HOST, &data[0]));
  PetscCall(MatGallopGetFormatData(packed, PETSC_MEMTYPE_CUDA, &data[1]));
  for (int k = 0; k < 2; k++) {
    const EVCHYB *ev = (const EVCHYB *)data[k];

    PetscCheck(!ev || ev->pack, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Not packed on %s", k ? "the GPU" : "the host");
    kept[k] = (PetscBool)(ev && ev->pack->figures.lines[GALLOP_PACK_32] >= PETSC_INT_MAX / 2);
    if (ev && (by > 0 || kept[k])) ev->pack->figures.lines[GALLOP_PACK_32] += by;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values: one of another; for all numbers others, in another order; the same numbers elsewhere; few; all equal; all different */
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

/*
  The matrix is packed again where new values are stored in other ways, else they are renewed, or their dictionary is: in its place, where each number becomes one other or values are numbers that it
  has
*/
static PetscErrorCode CheckNewValues(Values values, PetscScalar newvalue, PetscInt before, PetscInt after)
{
  const PetscInt  mark = PETSC_INT_MAX / 2;
  const PetscBool few  = (PetscBool)(after != GALLOP_PACK_VALUE);
  Mat             A, plain, packed;
  PetscBool       kept[2], device;
  const void     *dict[2][2];

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(Stencil(20, 10, 5, 1, values, &A));
  PetscCall(CreateStored(A, "plain", PETSC_FALSE, &plain));
  PetscCall(CreateStored(A, "packed", PETSC_FALSE, &packed));
  PetscCall(CheckMatrix(A, plain, packed, (Expect){1, before, GALLOP_PACK_STRIDED}, "before a new value"));
  for (int step = 0; step < NEW_STEPS; step++) {
    const PetscBool same  = (PetscBool)(step == NEW_ONE ? before == after : step == NEW_ALL ? !few : PETSC_TRUE);
    const PetscBool place = (PetscBool)(few && (step == NEW_RECIPROCALS || step == NEW_ELSEWHERE || step == NEW_EQUAL));
    const PetscInt  kind  = step == NEW_ALL ? GALLOP_PACK_VALUE : after;

    PetscCall(MarkPacks(packed, mark, kept));
    PetscCall(GetDicts(packed, dict[0]));
    for (int k = 0; k < 3; k++) PetscCall(SetNewValues(k == 0 ? A : k == 1 ? plain : packed, (NewValues)step, newvalue));
    PetscCall(CompareProducts(A, plain, packed, VECSEQ, "after a new value"));
    if (device) PetscCall(CompareProducts(A, plain, packed, VECSEQCUDA, "after a new value"));
    PetscCall(MarkPacks(packed, -mark, kept));
    PetscCall(GetDicts(packed, dict[1]));
    for (int k = 0; k < (device ? 2 : 1); k++) {
      const char   *where = k ? "the GPU" : "the host";
      const EVCHYB *ev    = NULL;

      PetscCall(FormatAt(packed, k ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
      PetscCheck(kept[k] == same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The pack on %s was %skept, with values of kind %d, step %d", where, kept[k] ? "" : "not ", (int)values, step);
      PetscCheck(!place || dict[0][k] == dict[1][k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The dictionary on %s has moved, with values of kind %d, step %d", where, (int)values, step);
      PetscCheck(ev->pack->unsorted == (PetscBool)(few && step == NEW_RECIPROCALS), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The dictionary on %s is %sin order, with values of kind %d, step %d", where,
                 ev->pack->unsorted ? "not " : "", (int)values, step);
    }
    PetscCall(CheckMatrix(A, plain, packed, (Expect){1, kind, GALLOP_PACK_STRIDED}, "after a new value"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&packed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { COLUMNS_STRIDED, COLUMNS_SHARED, COLUMNS_NEAR, COLUMNS_RANDOM } Columns;

/* Values enough that some are looked at before they are counted, which must not make too many of 65,000: num different ones, or all where it is 0 */
static PetscErrorCode CheckLooks(PetscInt num, PetscInt kind)
{
  Mat          A;
  MatInfo      info;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Stencil(60, 50, 30, 1, VALUES_ALL, &A));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCheck(info.nz_used >= GALLOP_PACK_LOOKS_FROM, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g values are too few", info.nz_used);
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used && num; k++) a[k] = (PetscScalar)(PetscReal)(1.0 / (PetscReal)((PetscInt64)k * 7919 % num + 3));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(Check(&A, (Expect){-1, kind, GALLOP_PACK_STRIDED}, PETSC_FALSE, "many values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The ranges of GPU blocks have all slices, each once: fewer a warp towards the end, where no number is given; one where columns are stored */
static PetscErrorCode CheckRanges(const EVCHYB *ev, Columns columns)
{
  const PetscInt wanted = ev->options.slices || columns != COLUMNS_STRIDED ? 1 : 4;
  PetscInt       next = 0, each = EVCHYB_PACK_EACH + 1, most = 0, different = 0;

  PetscFunctionBegin;
  for (int k = 0; k < ev->launch.n; k++) {
    const EVCHYBRange *range   = &ev->launch.range[k];
    const PetscInt     ofblock = range->count * EVCHYB_THREADS / EVCHYB_BLOCK;

    if (range->kind != EVCHYB_RANGE_PACKED) continue;
    PetscCheck(range->first == next && range->end > next && range->count < each, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Slices %" PetscInt_FMT " to %" PetscInt_FMT ", %d a warp, behind %" PetscInt_FMT " with %" PetscInt_FMT,
               range->first, range->end, range->count, next, each);
    PetscCheck((PetscInt)(range->next - range->begin) == (range->end - range->first + ofblock - 1) / ofblock, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%u GPU blocks for %" PetscInt_FMT " slices, %d a warp",
               range->next - range->begin, range->end - range->first, range->count);
    next = range->end;
    each = range->count;
    most = PetscMax(most, each);
    different++;
  }
  PetscCheck(next == ev->pack->nslice - ev->pack->npiece, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " of %" PetscInt_FMT " slices are computed", next, ev->pack->nslice - ev->pack->npiece);
  PetscCheck(ev->options.slices || columns != COLUMNS_STRIDED || most > 1 || next <= 2 * EVCHYB_PACK_WARPS * ev->processors, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices by strides, one a warp", next);
  PetscCheck(ev->options.slices || columns == COLUMNS_STRIDED || each == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices a warp, of columns of kind %d", each, (int)columns);
  PetscCheck((wanted > 1 && next < 9 * EVCHYB_PACK_WARPS * ev->processors) || different == wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " slices in %" PetscInt_FMT " ranges, not %" PetscInt_FMT, next, different, wanted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entry k of each of a row of m: by a stride; in 8 or 16 bits, as far from each other as in all rows about; in 16 bits; in 32 */
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

/* The GPU's multiprocessors; without one, as many as that of the defaults has, for matrices that are then stored plainly */
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
  Where nothing is asked for, a matrix of so many slices a multiprocessor is packed on the GPU as expected, with columns of a kind, each entries in each of the first rows of a share of all, many more in
  every so manieth, of another kind; never on the host
*/
static PetscErrorCode CheckAuto(PetscInt processors, PetscInt slices, PetscInt each, PetscInt every, Columns columns, Columns longer, PetscReal share, PetscBool expected)
{
  const PetscInt longest = 300;
  PetscInt       m       = slices * processors * GALLOP_PACK_ROWS;
  TestEntries    e;
  Mat            A, B;
  Vec            x, z;
  PetscBool      device;
  const EVCHYB  *ev = NULL;

  PetscFunctionBegin;
  if (columns == COLUMNS_RANDOM || longer == COLUMNS_RANDOM) m = PetscMax(m, 400000); /* for which 16 bits do not do */
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscBool islong = (PetscBool)(every && r % every == 0);
    const PetscInt  len    = islong ? longest : each;

    for (PetscInt k = 0; k < len && (PetscReal)r < share * (PetscReal)m; k++) PetscCall(TestEntriesPut(&e, ColumnOf(islong ? longer : columns, m, len, r, k), TestValue(6, r, k)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, &A));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestHasDevice(&device));
  for (int place = 0; place < (device ? 2 : 1); place++) {
    PetscCall(MultiplyAt(B, m, place, &x, &z));
    PetscCall(TestCompare(A, TEST_MULT, x, NULL, z, "storage auto"));
    PetscCall(FormatAt(B, place ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &ev));
    PetscCheck((PetscBool)(ev->pack != NULL) == (PetscBool)(place && expected), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Storage auto: %spacked, with columns of kind %d in %" PetscInt_FMT " rows on %s", ev->pack ? "" : "not ", (int)columns, m, place ? "the GPU" : "the host");
    if (ev->pack) PetscCall(CheckRanges(ev, columns));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of many long rows those of up to EVCHYB_WARP_ROW entries are computed by a warp each, longer ones and those of several pieces by GPU blocks */
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
    const GallopPackSlice *piece = ev->pack->slice + ev->pack->nslice - ev->pack->npiece;

    for (PetscInt q = range->first; q < range->end && range->kind == EVCHYB_RANGE_PIECES; q++) {
      const PetscInt  entries = (piece[q].width - 1) * GALLOP_PACK_ROWS + piece[q].last;
      const PetscBool several = (PetscBool)(piece[q].at || (q + 1 < ev->pack->npiece && piece[q + 1].at));

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

int main(int argc, char **argv)
{
  static const PetscInt ranges[] = {255, 256, 257, 65535, 65536, 65537, 200000};
  static const PetscInt sizes[]  = {1, 2, 63, 64, 65, 127, 128, 129, 500, 1000, 3000};
  Mat                   A;
  PetscInt              processors;
  PetscBool             device;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (int values = 0; values < VALUES_KINDS; values++) {
    const PetscInt kind = ClassOfValues((Values)values);

    PetscCall(Stencil(23, 11, 37, 1, (Values)values, &A));
    PetscCall(Check(&A, (Expect){1, kind, GALLOP_PACK_STRIDED}, PETSC_FALSE, "7-point stencil"));
    PetscCall(Stencil(17, 9, 13, 3, (Values)values, &A));
    PetscCall(Check(&A, (Expect){3, kind, GALLOP_PACK_STRIDED}, PETSC_FALSE, "three unknowns a node"));
    PetscCall(Gaps((Values)values, &A));
    PetscCall(Check(&A, Anything, PETSC_FALSE, "slices without entries"));
    for (PetscInt each = 32; each < 70; each += 33) { /* 32 lines, and 65 */
      PetscCall(Uneven(each, (Values)values, &A));
      PetscCall(Check(&A, Anything, PETSC_FALSE, "few rows of many entries"));
    }
    PetscCall(Long((Values)values, &A));
    PetscCall(Check(&A, (Expect){-1, values == VALUES_MANY ? -1 : kind, -1}, PETSC_FALSE, "long rows"));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ranges); k++) {
      const PetscInt lines = ranges[k] <= 256 ? GALLOP_PACK_8 : ranges[k] <= 65536 ? GALLOP_PACK_16 : GALLOP_PACK_32;

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
  PetscCall(CheckNewValues(VALUES_256, 1.0 / 700.0, GALLOP_PACK_DICT8, GALLOP_PACK_DICT16));
  PetscCall(CheckNewValues(VALUES_256, 1.0 / 7.0, GALLOP_PACK_DICT8, GALLOP_PACK_DICT8));
  PetscCall(CheckNewValues(VALUES_257, 1.0 / 700.0, GALLOP_PACK_DICT16, GALLOP_PACK_DICT16));
  PetscCall(CheckNewValues(VALUES_ALL, 1.0 / 700.0, GALLOP_PACK_VALUE, GALLOP_PACK_VALUE));
  PetscCall(CheckLooks(65000, GALLOP_PACK_DICT16));
  PetscCall(CheckLooks(200000, GALLOP_PACK_VALUE));
  PetscCall(CheckLooks(0, GALLOP_PACK_VALUE));
  PetscCall(GetProcessors(&processors));
  PetscCall(CheckWarpRows(processors));
  PetscCall(CheckAuto(processors, 150, 3, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 150, 3, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 0.4, PETSC_FALSE)); /* most rows are empty */
  PetscCall(CheckAuto(processors, 60, 3, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 11, 3, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_FALSE)); /* few entries */
  PetscCall(CheckAuto(processors, 11, 13, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 9, 16, 0, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_FALSE)); /* few slices */
  PetscCall(CheckAuto(processors, 15, 12, 0, COLUMNS_SHARED, COLUMNS_SHARED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 15, 12, 0, COLUMNS_NEAR, COLUMNS_NEAR, 1, PETSC_FALSE)); /* few for columns that are stored */
  PetscCall(CheckAuto(processors, 21, 12, 200, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 9, 12, 20, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE)); /* few slices, many pieces */
  PetscCall(CheckAuto(processors, 1, 3, 1, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));   /* nothing else */
  PetscCall(CheckAuto(processors, 47, 3, 60, COLUMNS_STRIDED, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 47, 3, 60, COLUMNS_STRIDED, COLUMNS_NEAR, 1, PETSC_TRUE)); /* most lines are those of pieces, which do not tell how many slices a warp has */
  PetscCall(CheckAuto(processors, 47, 3, 60, COLUMNS_NEAR, COLUMNS_STRIDED, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 47, 3, 60, COLUMNS_STRIDED, COLUMNS_RANDOM, 1, PETSC_FALSE)); /* most entries are in long rows, whose columns take 32 bits */
  PetscCall(CheckAuto(processors, 21, 12, 0, COLUMNS_NEAR, COLUMNS_NEAR, 1, PETSC_TRUE));
  PetscCall(CheckAuto(processors, 80, 3, 0, COLUMNS_RANDOM, COLUMNS_RANDOM, 1, PETSC_FALSE));
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
