/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MATGALLOP measures its choice: on the host, by a clock that the test makes up, and with formats that stand in for those to choose from.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/gallop/measure.h"

/* ---- what stands in for formats ---- */

/* A copy of CSR arrays */
typedef struct {
  GallopChoice choice;
  PetscInt     m, *i, *j;
  PetscCount   nz;
  PetscScalar *a;
} Copy;

/* What they did, and are to do */
static PetscInt  waits, alive, mostalive, built[GALLOP_CHOICES], multiplied[GALLOP_CHOICES], freedincapture;
static PetscBool noroom[GALLOP_CHOICES], rebuilds;

/* ---- the clock ---- */

static PetscLogDouble now, product[GALLOP_CHOICES + 1], build; /* the time, and what things take */
static PetscBool      ran, late, capturing;                    /* ran: since begin(); else it was the parent */
static char           gpu[64] = "a made-up GPU";

typedef struct {
  PetscLogDouble begin, end;
} Timer;

static PetscErrorCode ClockName(char name[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(PetscStrncpy(name, gpu, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClockBegin(void **timer)
{
  PetscFunctionBegin;
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a timer while a graph is recorded");
  if (!*timer) PetscCall(PetscNew((Timer **)timer));
  ((Timer *)*timer)->begin = now;
  ran                      = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClockEnd(void *timer)
{
  PetscFunctionBegin;
  if (!ran) now += product[GALLOP_PARENT];
  ((Timer *)timer)->end = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClockRead(void *timer, PetscBool wait, PetscLogDouble *seconds)
{
  const Timer *t = (const Timer *)timer;

  PetscFunctionBegin;
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a timer was read while a graph is recorded");
  *seconds = late && !wait ? -1 : t->end - t->begin;
  waits += late && wait;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClockDestroy(void **timer)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(*timer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClockCapturing(PetscBool *is)
{
  PetscFunctionBegin;
  *is = capturing;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GallopClock clockhere = {ClockName, ClockBegin, ClockEnd, ClockRead, ClockDestroy, ClockCapturing, 0};

/* ---- */

static PetscErrorCode CopyBuild(GallopChoice choice, const GallopCSR *csr, void **data)
{
  Copy *c;

  PetscFunctionBegin;
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a build while a graph is recorded");
  ran = PETSC_TRUE;
  now += build;
  *data = NULL;
  if (noroom[choice]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&c));
  c->choice = choice;
  c->m      = csr->m;
  c->nz     = csr->nz;
  PetscCall(PetscMalloc1(c->m + 1, &c->i));
  PetscCall(PetscMalloc2(c->nz, &c->j, c->nz, &c->a));
  PetscCall(PetscArraycpy(c->i, csr->i, c->m + 1));
  PetscCall(PetscArraycpy(c->j, csr->j, c->nz));
  PetscCall(PetscArraycpy(c->a, csr->a, c->nz));
  alive++;
  mostalive = PetscMax(mostalive, alive);
  built[choice]++;
  *data = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyRefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  Copy *c = (Copy *)data;

  PetscFunctionBegin;
  if (rebuilds) *answer = GALLOP_REBUILD;
  else PetscCall(PetscArraycpy(c->a, csr->a, c->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyApply(void *data, const GallopProduct *p)
{
  const Copy *c = (const Copy *)data;

  PetscFunctionBegin;
  PetscCheck(!p->epilogue, PETSC_COMM_SELF, PETSC_ERR_PLIB, "an epilogue that no format has said that it can do");
  ran = PETSC_TRUE;
  now += product[c->choice];
  multiplied[c->choice]++;
  for (PetscInt r = 0; r < c->m; r++) {
    PetscScalar sum = 0;

    for (PetscInt k = c->i[r]; k < c->i[r + 1]; k++) sum += c->a[k] * p->x[c->j[k]];
    GallopStoreRow(p, r, sum);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyDestroy(void **data)
{
  Copy *c = (Copy *)*data;

  PetscFunctionBegin;
  freedincapture += capturing;
  alive--;
  PetscCall(PetscFree(c->i));
  PetscCall(PetscFree2(c->j, c->a));
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount CopyBytes(const void *data)
{
  return 12 * ((const Copy *)data)->nz;
}

static PetscBool CopyStoresRows(const void *data)
{
  return PETSC_TRUE;
}

static PetscCount CopyDotParts(const void *data, PetscBool adds)
{
  return 1;
}

#define STANDIN(NAME) \
  static PetscErrorCode Build##NAME(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data) \
  { \
    return CopyBuild(GALLOP_##NAME, csr, data); \
  } \
  static const GallopFormatWork Work##NAME = {Build##NAME, CopyRefresh, CopyApply, CopyDestroy, NULL};
STANDIN(EVCHYB)
STANDIN(CSROVERLAP)
STANDIN(HBP)
STANDIN(FASTLOAD)

static const GallopFormatWork *const Works[GALLOP_CHOICES] = {&WorkEVCHYB, &WorkCSROVERLAP, &WorkHBP, &WorkFASTLOAD};
static const GallopFormat           *real[GALLOP_CHOICES];
static GallopFormat                  standin[GALLOP_CHOICES];

static void StandIn(PetscBool stand)
{
  GallopClockHost = stand ? &clockhere : NULL;
  for (int k = 0; k < GALLOP_CHOICES; k++) {
    if (!real[k]) {
      real[k]    = GallopChoiceFormats[k];
      standin[k] = *real[k];

      standin[k].host            = Works[k];
      standin[k].refresh_columns = NULL;
      standin[k].storesrows      = CopyStoresRows;
      standin[k].dotparts        = CopyDotParts;
      standin[k].view_detail     = NULL;
      standin[k].nonempty        = NULL;
      standin[k].bytes           = CopyBytes;
    }
    GallopChoiceFormats[k] = stand ? &standin[k] : real[k];
  }
}

/* ---- the matrix ---- */

/* Columns anywhere, and as many as make x take so much of the made-up cache that HBP, EVCHYB and the parent are near, in this order */
static const PetscInt Rows = 101000, Length = 10; /* of a block */

static PetscErrorCode Fill(Mat A, PetscInt len)
{
  PetscInt     n, rstart, rend, *j;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(PetscMalloc2(len, &j, len, &a));
  for (PetscInt r = rstart; r < rend; r++) {
    for (PetscInt k = 0; k < len; k++) {
      j[k] = (PetscInt)(TestRandom(6, r, k) * (PetscReal)(n / len)) + n / len * k;
      a[k] = TestValue(1, r, k);
    }
    PetscCall(MatSetValues(A, 1, &r, len, j, a, INSERT_VALUES));
  }
  PetscCall(PetscFree2(j, a));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(MPI_Comm comm, MatType type, Mat *A)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, Rows, Rows, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, size * Length, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, size * Length, NULL, size * Length, NULL));
  PetscCall(Fill(*A, size * Length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a case ---- */

typedef struct {
  Mat         A, R;
  Vec         x, z; /* on the host */
  PetscInt    products;
  PetscBool   negative; /* values are -1 times those of a new matrix */
  const char *what;
} Case;

/* Times of products by EVCHYB, HBP and the parent, and of any build */
static PetscErrorCode Begin(Case *c, const char what[], PetscLogDouble evchyb, PetscLogDouble hbp, PetscLogDouble parent, PetscLogDouble builds)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(built, sizeof(built)));
  PetscCall(PetscMemzero(multiplied, sizeof(multiplied)));
  PetscCall(PetscMemzero(noroom, sizeof(noroom)));
  mostalive = freedincapture = waits = 0;
  rebuilds = late = capturing = PETSC_FALSE;
  product[GALLOP_EVCHYB]      = evchyb;
  product[GALLOP_HBP]         = hbp;
  product[GALLOP_PARENT]      = parent;
  product[GALLOP_CSROVERLAP]  = 1;
  build                       = builds;
  clockhere.l2                = (PetscCount)((PetscReal)Rows * sizeof(PetscScalar) / (PetscReal)0.9);
  if (c->negative) PetscCall(MatScale(c->R, -1.0));
  c->negative = PETSC_FALSE;
  c->what     = what;
  c->products = 0;
  PetscCall(Create(PETSC_COMM_SELF, MATSEQAIJGALLOP, &c->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Case *c)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&c->A));
  TestCheck(!alive, "%" PetscInt_FMT " formats are left", c->what, alive);
  TestCheck(mostalive <= 2, "%" PetscInt_FMT " formats at once", c->what, mostalive);
  TestCheck(!freedincapture, "memory was freed while a graph was recorded", c->what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Case *c, PetscInt n)
{
  MatGallopStatistics s;
  PetscInt64          ours = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(TestSpoilVec(c->z));
    PetscCall(MatMult(c->A, c->x, c->z));
    PetscCall(TestCompare(c->R, TEST_MULT, c->x, NULL, c->z, c->what));
  }
  c->products += n;
  for (int k = 0; k < GALLOP_CHOICES; k++) ours += multiplied[k];
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(s.products_host == ours && s.fallbacks + ours == c->products, "%" PetscInt64_FMT " products of ours and %" PetscInt64_FMT " of the parent are counted; %" PetscInt64_FMT " of %" PetscInt_FMT " were ours", c->what, s.products_host, s.fallbacks, ours, c->products);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewValues(Case *c)
{
  PetscFunctionBegin;
  PetscCall(MatScale(c->A, -1.0));
  PetscCall(MatScale(c->R, -1.0));
  c->negative = PetscNot(c->negative);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetChosen(const Case *c, const GallopChosen **chosen)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(c->A, PETSC_MEMTYPE_HOST, &data));
  TestCheck(data, "nothing is chosen", c->what);
  *chosen = (const GallopChosen *)data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen, how, who was built how often, and how many products the parent computed */
static PetscErrorCode Check(const Case *c, GallopChoice choice, GallopWay way, PetscInt evchyb, PetscInt hbp, PetscInt parent)
{
  const PetscBool     does = (PetscBool)(choice != GALLOP_PARENT && way != GALLOP_BY_COMING_TIMES);
  const GallopChosen *chosen;
  const GallopFormat *format;
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(GetChosen(c, &chosen));
  PetscCall(MatGallopGetFormat(c->A, &format));
  TestCheck((*format->storesrows)(chosen) == does && (*format->dotparts)(chosen, PETSC_FALSE) == (PetscCount)does, "a candidate is asked for more than a product, or the choice is not", c->what);
  TestCheck(chosen->tuned.choice == choice && chosen->tuned.way == way, "choice %d in way %d, should be %d, %d", c->what, (int)chosen->tuned.choice, (int)chosen->tuned.way, (int)choice, (int)way);
  TestCheck(!chosen->measure == (PetscBool)(way != GALLOP_BY_COMING_TIMES), "the measurement is not over, or is", c->what);
  TestCheck(chosen->now.format == (choice == GALLOP_PARENT ? NULL : &standin[choice]), "another format computes", c->what);
  TestCheck(built[GALLOP_EVCHYB] == evchyb && built[GALLOP_HBP] == hbp, "EVCHYB was built %" PetscInt_FMT " times, HBP %" PetscInt_FMT, c->what, built[GALLOP_EVCHYB], built[GALLOP_HBP]);
  TestCheck(way == GALLOP_BY_COMING_TIMES || alive == (choice != GALLOP_PARENT), "%" PetscInt_FMT " formats are kept", c->what, alive);
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(rebuilds || s.builds == built[GALLOP_EVCHYB] + built[GALLOP_HBP], "%" PetscInt64_FMT " builds are counted", c->what, s.builds);
  TestCheck(parent < 0 || s.fallbacks == parent, "%" PetscInt64_FMT " products by the parent, should be %" PetscInt_FMT, c->what, s.fallbacks, parent);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define TURN (1 + GALLOP_TIMED) /* products of a candidate, one of them not timed */

static PetscErrorCode Choices(Case *c)
{
  PetscFunctionBegin;
  PetscCall(Begin(c, "EVCHYB is the fastest", 4, 5, 6, 10));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_COMING_TIMES, 0, 0, TURN));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_COMING_TIMES, 0, 1, TURN));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, TURN));
  PetscCall(Multiply(c, 3));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 3));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));

  PetscCall(Begin(c, "another matrix of the pattern", 4, 5, 6, 10));
  PetscCall(Multiply(c, 3));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 0, 0));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "HBP is the fastest, EVCHYB is given up at once", 8, 5, 6, 10));
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1, TURN));
  TestCheck(multiplied[GALLOP_EVCHYB] == 2, "%" PetscInt_FMT " products of a slow candidate", c->what, multiplied[GALLOP_EVCHYB]);
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "as fast as each other", 5, 5, 6, 10));
  PetscCall(Multiply(c, 3 * TURN + 1));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "the parent is the fastest, by too little", 9, 5.05, 5, 10));
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "the parent is the fastest", 6, 5, 4, 10));
  PetscCall(Multiply(c, 3 * TURN + 1));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 2));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Budgets(Case *c)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_products", "5")); /* a build is expected to take 13 */
  PetscCall(Begin(c, "a second build beyond the budget", 4, 5, 6, 10));
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 0, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_tune_products"));
  PetscCall(Begin(c, "a build that takes longer than expected", 4, 5, 6, 160));
  PetscCall(Multiply(c, 3 * TURN + 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_products", "0"));
  PetscCall(Begin(c, "no budget", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_RULES, 0, 1, 0));
  PetscCall(End(c));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_tune_products"));

  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "rules"));
  PetscCall(Begin(c, "by rules", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_RULES, 0, 1, 0));
  PetscCall(End(c));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));

  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_memory", "100000000"));
  PetscCall(Begin(c, "within a limit of memory", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_RULES, 0, 1, 0));
  PetscCall(End(c));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_memory"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Times(Case *c)
{
  PetscFunctionBegin;
  PetscCall(Begin(c, "times come late", 4, 5, 6, 10));
  late = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_COMING_TIMES, 0, 0, 2 * TURN));
  late = PETSC_FALSE;
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_COMING_TIMES, 0, 1, 2 * TURN));
  late = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_COMING_TIMES, 0, 1, 2 * TURN));
  late = PETSC_FALSE;
  PetscCall(Multiply(c, TURN + 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, 2 * TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "times never come", 4, 5, 6, 10));
  late = PETSC_TRUE;
  PetscCall(Multiply(c, 30));
  TestCheck(!waits, "the host waits", c->what);
  PetscCall(Multiply(c, 70));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, -1));
  TestCheck(waits == 3 * GALLOP_TIMED + 2, "the host waits %" PetscInt_FMT " times", c->what, waits);
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "new values meanwhile", 4, 5, 6, 10));
  for (int k = 0; k < 3 * TURN + 3; k++) {
    PetscCall(NewValues(c));
    PetscCall(Multiply(c, 2)); /* a product after a refresh builds nothing */
  }
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "new values that take builds", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN + 2));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, TURN));
  rebuilds = PETSC_TRUE;
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 2, 2, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Captures(Case *c)
{
  PetscFunctionBegin;
  PetscCall(Begin(c, "a graph records the parent", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2));
  capturing = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_COMING_TIMES, 0, 0, -1));
  capturing = PETSC_FALSE;
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "a graph records while a candidate has no time yet", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN + 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, TURN));
  capturing = PETSC_TRUE;
  PetscCall(Multiply(c, 1));
  TestCheck(multiplied[GALLOP_HBP] == TURN + 1 && alive == 2, "the graph has another format, or one has gone", c->what);
  capturing = PETSC_FALSE;
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "a graph records a candidate that is faster", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN + 4));
  capturing = PETSC_TRUE;
  PetscCall(Multiply(c, 1));
  TestCheck(multiplied[GALLOP_EVCHYB] == 5 && alive == 2, "the graph has another format, or one has gone", c->what);
  capturing = PETSC_FALSE;
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Rooms(Case *c)
{
  const GallopChosen *chosen;
  PetscInt            lines, matches;

  PetscFunctionBegin;
  PetscCall(Begin(c, "no room for HBP", 5, 4, 6, 10));
  noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 0, TURN));
  PetscCall(GetChosen(c, &chosen));
  TestCheck(chosen->nofit, "nobody says so", c->what);
  PetscCall(End(c));

  PetscCall(Begin(c, "no room for EVCHYB beside HBP", 4, 5, 6, 10));
  PetscCall(Multiply(c, TURN + 1));
  noroom[GALLOP_EVCHYB] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 0, 1, TURN));
  PetscCall(End(c));

  PetscCall(Begin(c, "room for the parent alone, which is a candidate", 4, 5, 6, 10));
  noroom[GALLOP_EVCHYB] = noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_RULES, 0, 0, 2 * TURN));
  PetscCall(End(c));

  /* new values of both formats find no room: all begins anew */
  PetscCall(Begin(c, "no room for new values", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN + 2));
  noroom[GALLOP_HBP] = rebuilds = PETSC_TRUE;
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 3, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  /* with the rules */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "rules"));
  PetscCall(Begin(c, "no room, by rules", 4, 5, 6, 10));
  noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2));
  PetscCall(GetChosen(c, &chosen));
  TestCheck(chosen->tuned.choice == GALLOP_CSROVERLAP && multiplied[GALLOP_CSROVERLAP] == 2, "choice %d", c->what, (int)chosen->tuned.choice);
  PetscCall(End(c));
  PetscCall(TestCaptureBegin());
  PetscCall(Begin(c, "no room at all", 4, 5, 6, 10));
  noroom[GALLOP_HBP] = noroom[GALLOP_CSROVERLAP] = PETSC_TRUE;
  PetscCall(Multiply(c, 3));
  PetscCall(End(c));
  PetscCall(TestCaptureEnd("no room for the GALLOP format", &lines, &matches));
  TestCheck(lines == 1 && matches == 1, "%" PetscInt_FMT " messages, %" PetscInt_FMT " of them right", c->what, lines, matches);
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Processes choose for themselves, and differ */
static PetscErrorCode Processes(void)
{
  Mat         A, R;
  Vec         x, z;
  Case        c = {.what = "processes"};
  PetscMPIInt rank;
  const void *data;
  Mat         diagonal, off;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Begin(&c, "processes", rank ? 7 : 4, 5, 6, 10));
  PetscCall(End(&c));
  PetscCall(Create(PETSC_COMM_WORLD, MATMPIAIJGALLOP, &A));
  PetscCall(Create(PETSC_COMM_WORLD, MATMPIAIJ, &R));
  PetscCall(MatCreateVecs(R, &x, &z));
  PetscCall(TestSetVec(x, 3));
  clockhere.l2 = (PetscCount)((PetscReal)Rows * sizeof(PetscScalar) / (PetscReal)0.9);
  for (PetscInt k = 0; k < 4 * TURN; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    if (k % TURN == 0) PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, c.what));
  }
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, c.what));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off, NULL));
  PetscCall(MatGallopGetFormatData(diagonal, PETSC_MEMTYPE_HOST, &data));
  TestCheck(data, "nothing is chosen", c.what);
  TestCheck(((const GallopChosen *)data)->tuned.choice == (rank ? GALLOP_HBP : GALLOP_EVCHYB), "choice %d", c.what, (int)((const GallopChosen *)data)->tuned.choice);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a view says, whose numbers are those of this test */
static PetscErrorCode Views(Case *c)
{
  PetscFunctionBegin;
  PetscCall(PetscViewerPushFormat(PETSC_VIEWER_STDOUT_SELF, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(Begin(c, "views", 4e-6, 5e-6, 6e-6, 1e-5));
  for (int k = 0; k < 3; k++) {
    PetscCall(Multiply(c, TURN + 1));
    PetscCall(MatView(c->A, PETSC_VIEWER_STDOUT_SELF));
  }
  PetscCall(End(c));
  PetscCall(PetscViewerPopFormat(PETSC_VIEWER_STDOUT_SELF));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Real formats, and on a GPU its clock: whatever is chosen, products are right and counted, and one format at most is left */
static PetscErrorCode Real(Case *c, PetscBool device)
{
  const GallopChosen *chosen;
  MatGallopStatistics s;
  const void         *data;
  PetscInt            k;
  Vec                 x, z;

  PetscFunctionBegin;
  StandIn(PETSC_FALSE);
  if (!device) GallopClockHost = &clockhere;
  PetscCall(Begin(c, "real formats", 4, 5, 6, 10));
  if (device) PetscCall(MatCreateVecs(c->A, &x, &z));
  else {
    PetscCall(VecDuplicate(c->x, &x));
    PetscCall(VecDuplicate(c->z, &z));
  }
  PetscCall(TestSetVec(x, 3));
  for (k = 0; k < 100; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(c->A, x, z));
    if (k % 20 < 3 || !device) PetscCall(TestCompare(c->R, TEST_MULT, x, NULL, z, c->what));
    PetscCall(MatGallopGetFormatData(c->A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
    TestCheck(data, "nothing is chosen", c->what);
    chosen = (const GallopChosen *)data;
    if (!chosen->measure) break;
  }
  TestCheck(!chosen->measure, "after 100 products it is still measured", c->what);
  TestCheck(!chosen->best.format, "two formats are kept", c->what);
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(s.fallbacks + s.products_host + s.products_device == k + 1, "%" PetscInt64_FMT " products are counted, not %" PetscInt_FMT, c->what, s.fallbacks + s.products_host + s.products_device, k + 1);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&c->A));
  StandIn(PETSC_TRUE);
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Case        c      = {NULL, NULL, NULL, NULL, 0, PETSC_FALSE, ""};
  PetscBool   device = PETSC_FALSE, view = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-view", &view, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestHasDevice(&device));
  StandIn(PETSC_TRUE);
  PetscCall(Create(PETSC_COMM_SELF, MATSEQAIJ, &c.R));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, Rows, &c.x));
  PetscCall(VecDuplicate(c.x, &c.z));
  PetscCall(TestSetVec(c.x, 3));
  if (size > 1) PetscCall(Processes());
  else if (view) PetscCall(Views(&c));
  else {
    PetscCall(Choices(&c));
    PetscCall(Budgets(&c));
    PetscCall(Times(&c));
    PetscCall(Captures(&c));
    PetscCall(Rooms(&c));
    PetscCall(Real(&c, PETSC_FALSE));
    if (device) PetscCall(Real(&c, PETSC_TRUE));
  }
  PetscCall(VecDestroy(&c.x));
  PetscCall(VecDestroy(&c.z));
  PetscCall(MatDestroy(&c.R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    args: -format gallop
    output_file: output/empty.out

  test:
    suffix: processes
    nsize: 2
    args: -format gallop
    output_file: output/empty.out

  test:
    suffix: view
    args: -format gallop -view
    filter: grep Gallop | grep -v sectors

TEST*/
