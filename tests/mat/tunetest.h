/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Measured choice on the host: a clock that the test makes up, formats that stand in for those to choose from, and a matrix for which by the rules HBP, EVCHYB and the parent are near, in this order.
*/

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

static inline PetscErrorCode ClockName(char name[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(PetscStrncpy(name, gpu, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ClockBegin(void **timer)
{
  PetscFunctionBegin;
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a timer while a graph is recorded");
  if (!*timer) PetscCall(PetscNew((Timer **)timer));
  ((Timer *)*timer)->begin = now;
  ran                      = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ClockEnd(void *timer)
{
  PetscFunctionBegin;
  if (!ran) now += product[GALLOP_PARENT];
  ((Timer *)timer)->end = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ClockRead(void *timer, PetscBool wait, PetscLogDouble *seconds)
{
  const Timer *t = (const Timer *)timer;

  PetscFunctionBegin;
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a timer was read while a graph is recorded");
  *seconds = late && !wait ? -1 : t->end - t->begin;
  waits += late && wait;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ClockDestroy(void **timer)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(*timer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ClockCapturing(PetscBool *is)
{
  PetscFunctionBegin;
  *is = capturing;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GallopClock clockhere = {ClockName, ClockBegin, ClockEnd, ClockRead, ClockDestroy, ClockCapturing, 0};

/* ---- */

static inline PetscErrorCode CopyBuild(GallopChoice choice, const GallopCSR *csr, void **data)
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

static inline PetscErrorCode CopyRefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  Copy *c = (Copy *)data;

  PetscFunctionBegin;
  if (rebuilds) *answer = GALLOP_REBUILD;
  else PetscCall(PetscArraycpy(c->a, csr->a, c->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CopyApply(void *data, const GallopProduct *p)
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

static inline PetscErrorCode CopyDestroy(void **data)
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

static PetscBool CopyStoresRows(const void *data, PetscBool adds)
{
  return PETSC_TRUE;
}

static PetscCount CopyDotParts(const void *data, PetscBool adds)
{
  return 1;
}

#define STANDIN(NAME) \
  static inline PetscErrorCode Build##NAME(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data) \
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

static inline void StandIn(PetscBool stand)
{
  GallopClockHost = stand ? &clockhere : NULL;
  for (int k = 0; k < GALLOP_CHOICES; k++) {
    if (!real[k]) {
      real[k]    = GallopChoiceFormats[k];
      standin[k] = *real[k];

      standin[k].host            = Works[k];
      standin[k].refresh_columns = NULL;
      standin[k].trial           = NULL; /* EVCHYB's looks into its own data */
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

static inline PetscErrorCode Fill(Mat A, PetscInt len)
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

static inline PetscErrorCode Create(MPI_Comm comm, MatType type, Mat *A)
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
static inline PetscErrorCode Begin(Case *c, const char what[], PetscLogDouble evchyb, PetscLogDouble hbp, PetscLogDouble parent, PetscLogDouble builds)
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

static inline PetscErrorCode End(Case *c)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&c->A));
  TestCheck(!alive, "%" PetscInt_FMT " formats are left", c->what, alive);
  TestCheck(mostalive <= 2, "%" PetscInt_FMT " formats at once", c->what, mostalive);
  TestCheck(!freedincapture, "memory was freed while a graph was recorded", c->what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Multiply(Case *c, PetscInt n)
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

static inline PetscErrorCode NewValues(Case *c)
{
  PetscFunctionBegin;
  PetscCall(MatScale(c->A, -1.0));
  PetscCall(MatScale(c->R, -1.0));
  c->negative = PetscNot(c->negative);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode GetChosen(const Case *c, const GallopChosen **chosen)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(c->A, PETSC_MEMTYPE_HOST, &data));
  TestCheck(data, "nothing is chosen", c->what);
  *chosen = (const GallopChosen *)data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen, how, who was built how often, and how many products the parent computed */
static inline PetscErrorCode Check(const Case *c, GallopChoice choice, GallopWay way, PetscInt evchyb, PetscInt hbp, PetscInt parent)
{
  const PetscBool     does = (PetscBool)(choice != GALLOP_PARENT && way != GALLOP_BY_COMING_TIMES);
  const GallopChosen *chosen = NULL;
  const GallopFormat *format;
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(GetChosen(c, &chosen));
  PetscCall(MatGallopGetFormat(c->A, &format));
  TestCheck((*format->storesrows)(chosen, PETSC_FALSE) == does && (*format->dotparts)(chosen, PETSC_FALSE) == (PetscCount)does, "a candidate is asked for more than a product, or the choice is not", c->what);
  TestCheck(chosen->tuned.choice == choice && chosen->tuned.way == way, "choice %d in way %d, should be %d, %d", c->what, (int)chosen->tuned.choice, (int)chosen->tuned.way, (int)choice, (int)way);
  TestCheck(!chosen->measure == (PetscBool)(way != GALLOP_BY_COMING_TIMES), "the measurement is not over, or is", c->what);
  TestCheck(chosen->now.format == (choice == GALLOP_PARENT ? NULL : &standin[choice]), "another format computes", c->what);
  TestCheck(built[GALLOP_EVCHYB] == evchyb && built[GALLOP_HBP] == hbp, "EVCHYB was built %" PetscInt_FMT " times, HBP %" PetscInt_FMT, c->what, built[GALLOP_EVCHYB], built[GALLOP_HBP]);
  TestCheck(way == GALLOP_BY_COMING_TIMES || alive == (choice != GALLOP_PARENT), "%" PetscInt_FMT " formats are kept", c->what, alive);
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(rebuilds || s.builds == built[GALLOP_EVCHYB] + built[GALLOP_HBP] + built[GALLOP_CSROVERLAP], "%" PetscInt64_FMT " builds are counted", c->what, s.builds);
  TestCheck(parent < 0 || s.fallbacks == parent, "%" PetscInt64_FMT " products by the parent, should be %" PetscInt_FMT, c->what, s.fallbacks, parent);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define TURN (1 + GALLOP_TIMED) /* products of a candidate, one of them not timed */

static inline PetscErrorCode CaseCreate(Case *c)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_share", "1000")); /* nobody waits */
  StandIn(PETSC_TRUE);
  PetscCall(Create(PETSC_COMM_SELF, MATSEQAIJ, &c->R));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, Rows, &c->x));
  PetscCall(VecDuplicate(c->x, &c->z));
  PetscCall(TestSetVec(c->x, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CaseDestroy(Case *c)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&c->x));
  PetscCall(VecDestroy(&c->z));
  PetscCall(MatDestroy(&c->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}
