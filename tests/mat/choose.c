/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MATGALLOP chooses a format by the pattern: what it finds, what the rules make of it, and who computes the products then.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/gallop/choice.h"

typedef enum { SMALL, MESH, SCATTERED, POWER, KINDS } Kind;

static const char *const Names[KINDS] = {"a small matrix", "a mesh", "scattered columns", "a power law"};

/* What the rules are to say of each on a GPU whose L2 cache has 50 MiB */
static const GallopChoice Expected[KINDS] = {GALLOP_EVCHYB, GALLOP_EVCHYB, GALLOP_HBP, GALLOP_PARENT};

/* and how many may be the fastest */
static const int Near[KINDS] = {1, 1, 1, 2};

#define L2 ((PetscCount)50 << 20)

static PetscInt Length(Kind kind, PetscInt r)
{
  switch (kind) {
  case SCATTERED:
    return 10;
  case POWER: /* mean about 2.5 */
    return 1 + (PetscInt)PetscMin(0.45 * PetscPowReal(TestRandom(5, r, 0) + (PetscReal)1e-7, (PetscReal)-0.62), 2000);
  default:
    return 5;
  }
}

static PetscInt Column(Kind kind, PetscInt m, PetscInt n, PetscInt r, PetscInt k)
{
  if (kind == SCATTERED) return (PetscInt)(TestRandom(6, r, k) * (PetscReal)n / 10) + n / 10 * k;
  if (kind == POWER && k > 1 && TestRandom(7, r, k) < 0.6) return (PetscInt)(TestRandom(8, r, k) * (PetscReal)n);
  return PetscMin(PetscMax(r - 2 + k, 0), n - 1);
}

static PetscErrorCode Create(Kind kind, MatType type, Mat *A)
{
  const PetscInt m = kind == SMALL ? 1000 : kind == MESH ? 220000 : kind == SCATTERED ? 101000 : 700000, n = kind == SCATTERED ? (64 << 20) / (PetscInt)sizeof(PetscScalar) : m;
  PetscInt      *i, *j, nz = 0;
  PetscScalar   *a;
  Mat            S;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) nz += Length(kind, r);
  PetscCall(PetscMalloc1(m + 1, &i));
  PetscCall(PetscMalloc2(nz, &j, nz, &a));
  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    PetscInt len = Length(kind, r), at = i[r];

    for (PetscInt k = 0; k < len; k++) j[at + k] = Column(kind, m, n, r, k);
    PetscCall(PetscSortRemoveDupsInt(&len, j + at));
    for (PetscInt k = 0; k < len; k++) a[at + k] = TestValue(9, r, j[at + k]);
    i[r + 1] = at + len;
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, i, j, a, &S));
  PetscCall(MatConvert(S, type, MAT_INITIAL_MATRIX, A));
  PetscCall(MatDestroy(&S));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree2(j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetCSR(Mat R, GallopCSR *csr)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(csr, sizeof(*csr)));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &csr->m, &csr->i, &csr->j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no CSR arrays");
  PetscCall(MatGetSize(R, NULL, &csr->n));
  csr->nz = csr->i[csr->m];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sectors, of four columns whatever the numbers are, are counted by hashing: close to those that are there, by marks of all columns */
static PetscErrorCode CheckPattern(Kind kind, const GallopCSR *csr, const GallopPattern *p, const GallopLook *look)
{
  const int          windows  = GallopWindows(csr->nz);
  unsigned long long nonempty = 0, squares = 0, longest = 0;
  PetscInt64         sectors = 0, entries = 0;
  PetscInt          *seen;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < csr->m; r++) {
    const unsigned long long len = (unsigned long long)(csr->i[r + 1] - csr->i[r]);

    nonempty += len > 0;
    squares += len * len;
    longest = PetscMax(longest, len);
  }
  TestCheck(p->nonempty == nonempty && p->squares == squares && p->longest == longest, "%llu rows with entries, squares %llu, longest %llu, not %llu, %llu, %llu", Names[kind], p->nonempty, p->squares, p->longest, nonempty, squares, longest);
  PetscCall(PetscCalloc1(csr->n / 4 + 1, &seen));
  for (int k = 0; k < windows; k++) {
    const PetscCount begin = GallopWindowBegin(csr->nz, windows, k), end = GallopWindowEnd(csr->nz, windows, k);

    TestCheck(begin >= 0 && begin < end && end <= csr->nz, "window %d from %" PetscCount_FMT " to %" PetscCount_FMT, Names[kind], k, begin, end);
    entries += end - begin;
    for (PetscCount e = begin; e < end; e++) {
      PetscInt *mark = &seen[csr->j[e] / 4];

      if (*mark != k + 1) sectors++;
      *mark = k + 1;
    }
  }
  PetscCall(PetscFree(seen));
  TestCheck(PetscAbsReal(look->footprint * (PetscReal)entries - (PetscReal)sectors) < (PetscReal)0.02 * (PetscReal)sectors, "footprint %g of %g sectors and %g entries", Names[kind], (double)look->footprint, (double)sectors, (double)entries);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The GPU finds the same numbers, to the last bit */
static PetscErrorCode CheckDevice(Kind kind, const GallopPattern *p)
{
#if PetscDefined(HAVE_CUDA)
  Mat           D;
  GallopCSR     csr = {0};
  GallopPattern q;
  PetscCount    l2;
  PetscMemType  memtype;
  PetscScalar  *a;
  PetscBool     done;

  PetscFunctionBegin;
  PetscCall(Create(kind, MATSEQAIJCUSPARSE, &D));
  PetscCall(MatGetSize(D, &csr.m, &csr.n));
  PetscCall(GetCSR(D, &csr)); /* on the host, for the number of entries */
  PetscCall(MatSeqAIJGetCSRAndMemType(D, &csr.i, &csr.j, &a, &memtype));
  PetscCheck(PetscMemTypeCUDA(memtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "CSR arrays on the host");
  PetscCall(GallopPatternGet_Device(&csr, GALLOP_DOUBLES, &q, &l2, &done));
  TestCheck(done && l2 > 0, "the GPU did not look", Names[kind]);
  TestCheck(q.nonempty == p->nonempty && q.squares == p->squares && q.longest == p->longest && q.marks == p->marks, "the GPU finds %llu, %llu, %llu, %llu, the host %llu, %llu, %llu, %llu", Names[kind], q.nonempty, q.squares, q.longest, q.marks, p->nonempty, p->squares, p->longest, p->marks);
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  return PETSC_SUCCESS;
#endif
}

/* A product with a dense matrix of one column is the format's where there is one */
static PetscErrorCode OneColumn(Kind kind, Mat A, Mat R, Vec x, Vec z)
{
  Mat                B, C;
  VecType            vtype;
  PetscScalar       *b;
  const PetscScalar *a;
  PetscInt           m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetVecType(A, &vtype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, vtype, n, 1, n, 1, PETSC_DECIDE, NULL, &B));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(PetscArraycpy(b, a, n));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatDenseGetArrayRead(C, &a));
  PetscCall(VecGetArrayWrite(z, &b));
  for (PetscInt r = 0; r < m; r++) b[r] = (PetscScalar)0.5 * a[r]; /* of A's new values, which are twice R's */
  PetscCall(VecRestoreArrayWrite(z, &b));
  PetscCall(MatDenseRestoreArrayRead(C, &a));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, Names[kind]));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who computes, and whether it is right */
static PetscErrorCode CheckProducts(Kind kind, Mat R, const GallopPattern *p, PetscBool device)
{
  Mat                 A;
  Vec                 x, z;
  MatGallopStatistics s;
  const void         *data;
  const GallopChosen *chosen;
  PetscBool           ours;

  PetscFunctionBegin;
  PetscCall(Create(kind, MATSEQAIJGALLOP, &A));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 3));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, Names[kind]));
    if (!k) { /* new values */
      PetscCall(MatScale(A, 2.0));
      PetscCall(MatScale(R, 2.0));
    }
  }
  PetscCall(MatScale(R, 0.5));
  PetscCall(MatGallopGetFormatData(A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: nothing was chosen", Names[kind]);
  chosen = (const GallopChosen *)data;
  if (!device) TestCheck(chosen->tuned.choice == GALLOP_PARENT, "choice %d on the host", Names[kind], (int)chosen->tuned.choice);
  else {
    TestCheck(chosen->looked == (PetscBool)(kind != SMALL), "looked %d times", Names[kind], chosen->looked);
    TestCheck(!chosen->looked || chosen->tuned.pattern.marks == p->marks, "%llu marks, not %llu", Names[kind], chosen->tuned.pattern.marks, p->marks);
    TestCheck(chosen->tuned.choice == GallopChooseByRules(&chosen->look), "choice %d is not that of the rules", Names[kind], (int)chosen->tuned.choice);
    if (kind != SCATTERED || chosen->look.l2 > 1) TestCheck(chosen->tuned.choice == Expected[kind], "choice %d", Names[kind], (int)chosen->tuned.choice);
  }
  TestCheck(!chosen->now.format == (PetscBool)(chosen->tuned.choice == GALLOP_PARENT), "choice %d with format %s", Names[kind], (int)chosen->tuned.choice, chosen->now.format ? chosen->now.format->name : "none");
  ours = (PetscBool)(chosen->tuned.choice != GALLOP_PARENT);
  PetscCall(MatGallopGetStatistics(A, &s));
  TestCheck(s.fallbacks == (ours ? 0 : 2) && s.products_device == (ours && device ? 2 : 0) && s.builds == ours && s.refreshes == ours, "%" PetscInt64_FMT " products by the parent, %" PetscInt64_FMT " by us, %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes", Names[kind], s.fallbacks, s.products_device, s.builds, s.refreshes);
  PetscCall(OneColumn(kind, A, R, x, z));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the rules say of matrices that were measured, by what a look finds, the longest row over the mean; GALLOP_AUTO where there are no more candidates */
static PetscErrorCode CheckCandidates(void)
{
  static const struct {
    const char  *name;
    PetscCount   nz;
    PetscReal    mean, variation, longest, footprint, l2;
    GallopChoice candidates[GALLOP_CANDIDATES];
  } known[] = {
    {"uniform8M_8",        64000000,  8,              0,               1,     (PetscReal)1.0,  (PetscReal)1.2,  {GALLOP_HBP, GALLOP_AUTO, GALLOP_AUTO}     },
    {"wide3M_6M_10",       30000000,  10,             0,               1,     (PetscReal)1.0,  (PetscReal)0.9,  {GALLOP_HBP, GALLOP_EVCHYB, GALLOP_PARENT} },
    {"uniform4M_16",       64000000,  16,             0,               1,     (PetscReal)1.0,  (PetscReal)0.64, {GALLOP_HBP, GALLOP_EVCHYB, GALLOP_PARENT} },
    {"uniform1M_16",       16000000,  16,             0,               1,     (PetscReal)1.0,  (PetscReal)0.15, {GALLOP_EVCHYB, GALLOP_PARENT, GALLOP_AUTO}},
    {"kron20",             88710000,  84,             (PetscReal)7.54, 2000,  (PetscReal)0.8,  (PetscReal)0.16, {GALLOP_HBP, GALLOP_EVCHYB, GALLOP_AUTO}   },
    {"a larger graph",     700000000, 84,             (PetscReal)7.54, 2000,  (PetscReal)0.95, (PetscReal)2.5,  {GALLOP_HBP, GALLOP_EVCHYB, GALLOP_AUTO}   },
    {"web7M",              127660000, 18,             (PetscReal)1.57, 880,   (PetscReal)0.23, (PetscReal)1.1,  {GALLOP_PARENT, GALLOP_CSROVERLAP, GALLOP_AUTO}},
    {"web1M",              2570000,   (PetscReal)2.6, (PetscReal)3.33, 840,   (PetscReal)0.45, (PetscReal)0.15, {GALLOP_PARENT, GALLOP_EVCHYB, GALLOP_AUTO}},
    {"nearly a power law", 2570000,   (PetscReal)2.6, (PetscReal)5.5,  100,   (PetscReal)0.55, (PetscReal)0.15, {GALLOP_EVCHYB, GALLOP_PARENT, GALLOP_AUTO}},
    {"circuit682k",        5230000,   (PetscReal)7.7, 62,              39000, (PetscReal)0.25, (PetscReal)0.1,  {GALLOP_EVCHYB, GALLOP_AUTO, GALLOP_AUTO}  },
    {"torso_like",         8010000,   69,             (PetscReal)5.58, 37,    (PetscReal)0.54, (PetscReal)0.02, {GALLOP_EVCHYB, GALLOP_AUTO, GALLOP_AUTO}  },
    {"a mesh",             26460000,  26,             (PetscReal)0.08, 1,     (PetscReal)0.63, (PetscReal)0.15, {GALLOP_EVCHYB, GALLOP_AUTO, GALLOP_AUTO}  },
    {"few entries",        999999,    10,             0,               1,     (PetscReal)1.0,  (PetscReal)1.2,  {GALLOP_EVCHYB, GALLOP_AUTO, GALLOP_AUTO}  }
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(known); k++) {
    GallopChoice candidates[GALLOP_CANDIDATES] = {GALLOP_AUTO, GALLOP_AUTO, GALLOP_AUTO};
    GallopLook   look                          = {.nz = known[k].nz, .mean = known[k].mean, .variation = known[k].variation, .footprint = known[k].footprint, .l2 = known[k].l2};

    look.longest = (PetscInt64)(known[k].longest * known[k].mean);
    (void)GallopCandidatesByRules(&look, candidates);
    for (int c = 0; c < GALLOP_CANDIDATES; c++)
      TestCheck(candidates[c] == known[k].candidates[c], "candidate %d is %d, should be %d", known[k].name, c, (int)candidates[c], (int)known[k].candidates[c]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(CheckCandidates());
  for (int kind = 0; kind < KINDS; kind++) {
    Mat           R;
    GallopCSR     csr;
    GallopPattern p;
    GallopLook    look;
    GallopChoice  candidates[GALLOP_CANDIDATES];
    int           n;

    PetscCall(Create((Kind)kind, MATSEQAIJ, &R));
    PetscCall(GetCSR(R, &csr));
    PetscCall(GallopPatternGet_Host(&csr, GALLOP_DOUBLES, &p));
    PetscCall(GallopPatternLook(&csr, &p, L2, &look));
    PetscCall(CheckPattern((Kind)kind, &csr, &p, &look));
    TestCheck(GallopChooseByRules(&look) == Expected[kind], "choice %d by mean %g, variation %g, longest %" PetscInt64_FMT ", footprint %g, x over L2 %g", Names[kind], (int)GallopChooseByRules(&look),
              (double)look.mean, (double)look.variation, look.longest, (double)look.footprint, (double)look.l2);
    n = GallopCandidatesByRules(&look, candidates);
    TestCheck(n == Near[kind] && candidates[0] == Expected[kind], "%d candidates", Names[kind], n);
    look.transpose = PETSC_TRUE;
    n              = GallopCandidatesByRules(&look, candidates);
    for (int k = 0; k < n; k++) TestCheck(candidates[k] != GALLOP_PARENT, "the parent's products of a transpose are other products", Names[kind]);
    look.transpose = PETSC_FALSE;
    look.refused   = PETSC_TRUE;
    n              = GallopCandidatesByRules(&look, candidates);
    for (int k = 0; k < n; k++) TestCheck(candidates[k] != GALLOP_PARENT, "cuSPARSE does not multiply it", Names[kind]);
    if (device) PetscCall(CheckDevice((Kind)kind, &p));
    PetscCall(CheckProducts((Kind)kind, R, &p, device));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    args: -format gallop
    output_file: output/empty.out

TEST*/
