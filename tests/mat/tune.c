/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MATGALLOP measures its choice: whose turn it is and who stays, by a clock that the test makes up, with budgets, late times, new values and CUDA graphs.\n\n";

#include "tunetest.h"

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
  const GallopChosen *chosen;

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
  PetscCall(Multiply(c, TURN));
  PetscCall(GetChosen(c, &chosen));
  TestCheck(chosen->measure->patience > 2 * TURN && chosen->measure->patience < 30, "the host waits after %" PetscInt_FMT " products", c->what, chosen->measure->patience);
  PetscCall(Multiply(c, chosen->measure->patience - TURN));
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

/* After HBP's turn the fastest so far computes, until all products have taken as long as EVCHYB's build and turn are expected to */
static PetscErrorCode Wait(Case *c, GallopChoice choice)
{
  const GallopChosen *chosen;
  PetscLogDouble      needed;
  PetscInt            products;

  PetscFunctionBegin;
  PetscCall(Multiply(c, 2 * TURN + 1));
  PetscCall(Check(c, choice, GALLOP_BY_COMING_TIMES, 0, 1, -1));
  PetscCall(GetChosen(c, &chosen));
  needed   = chosen->measure->spent + (chosen->measure->cost[GALLOP_EVCHYB] + TURN) * product[GALLOP_PARENT];
  products = (PetscInt)PetscCeilReal((PetscReal)(needed / product[choice]));
  TestCheck(products > 3 * TURN, "a build is expected to take so little that there is nothing to wait for", c->what);
  PetscCall(Multiply(c, products - c->products));
  PetscCall(Check(c, choice, GALLOP_BY_COMING_TIMES, 0, 1, -1));
  TestCheck(alive == (choice != GALLOP_PARENT), "%" PetscInt_FMT " formats wait", c->what, alive);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the rules prefer the parent, the first build is further than theirs too, and waits */
static PetscErrorCode WaitParent(void)
{
  const GallopChoice candidates[]         = {GALLOP_PARENT, GALLOP_EVCHYB};
  const PetscReal    cost[GALLOP_CHOICES] = {10, 10, 10, 10};
  GallopMeasure     *m;
  GallopChoice       next = GALLOP_AUTO;
  PetscBool          over;
  PetscInt           products = 0;

  PetscFunctionBegin;
  product[GALLOP_PARENT] = 2;
  late = capturing = PETSC_FALSE;
  PetscCall(GallopMeasureCreate(&clockhere, 2, candidates, cost, 1e-5, 20, 0.5, &m));
  while (next == GALLOP_AUTO && products < 100) {
    ran = PETSC_FALSE;
    PetscCall(GallopMeasureProduct(m, PETSC_FALSE));
    PetscCall(GallopMeasureProduct(m, PETSC_TRUE));
    products++;
    PetscCall(GallopMeasureIsOver(m, &over));
    if (over) GallopMeasureNext(m, &next);
    PetscCheck(m->waiting == (products >= TURN && next == GALLOP_AUTO), PETSC_COMM_SELF, PETSC_ERR_PLIB, "After %" PetscInt_FMT " products a build %s", products, m->waiting ? "waits" : "does not wait");
  }
  PetscCheck(products == 2 * (10 + TURN) && next == GALLOP_EVCHYB, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Choice %d is built after %" PetscInt_FMT " products", (int)next, products);
  PetscCall(GallopMeasureDestroy(&m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Waits(Case *c)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_share", "1"));
  PetscCall(Begin(c, "a further build waits", 4, 5, 6, 10));
  PetscCall(Wait(c, GALLOP_HBP));
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, TURN));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "the parent computes until then", 3, 5, 4, 10));
  PetscCall(Wait(c, GALLOP_PARENT));
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 2)); /* a product after a refresh builds nothing */
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, -1));
  PetscCall(Multiply(c, TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "new values meanwhile, and the other is slower", 6, 5, 5.5, 10));
  PetscCall(Wait(c, GALLOP_HBP));
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 2 + TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  PetscCall(Begin(c, "a graph records meanwhile", 4, 5, 6, 10));
  PetscCall(Wait(c, GALLOP_HBP));
  capturing = PETSC_TRUE;
  PetscCall(Multiply(c, 2));
  capturing = PETSC_FALSE;
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 0, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_share", "1000"));
  PetscCall(WaitParent());
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

  PetscCall(Begin(c, "a graph records the parent after new values", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2));
  PetscCall(NewValues(c));
  capturing = PETSC_TRUE;
  PetscCall(Multiply(c, 1));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_COMING_TIMES, 0, 0, 3));
  capturing = PETSC_FALSE;
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, -1));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  for (int takesbuilds = 0; takesbuilds < 2; takesbuilds++) {
    PetscCall(Begin(c, takesbuilds ? "a graph records a candidate after new values, and others take builds" : "a graph records a candidate after new values", 4, 5, 6, 10));
    PetscCall(Multiply(c, 2 * TURN + 1));
    PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_COMING_TIMES, 1, 1, TURN));
    PetscCall(NewValues(c));
    capturing = PETSC_TRUE;
    PetscCall(Multiply(c, 1));
    TestCheck(multiplied[GALLOP_HBP] == TURN + 1 && alive == 2, "the graph has another format, or one has gone", c->what);
    capturing = PETSC_FALSE;
    rebuilds  = (PetscBool)takesbuilds;
    if (rebuilds) PetscCall(NewValues(c));
    PetscCall(Multiply(c, 2));
    PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 1, 1 + takesbuilds, TURN)); /* the other one is not built again */
    PetscCall(End(c));
    PetscCall(GallopTuneForget());
  }

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

int main(int argc, char **argv)
{
  Case      c;
  PetscBool view = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-view", &view, NULL));
  PetscCall(CaseCreate(&c));
  if (view) PetscCall(Views(&c));
  else {
    PetscCall(Choices(&c));
    PetscCall(Budgets(&c));
    PetscCall(Times(&c));
    PetscCall(Waits(&c));
    PetscCall(Captures(&c));
  }
  PetscCall(CaseDestroy(&c));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    output_file: output/empty.out

  test:
    suffix: view
    args: -view
    filter: grep Gallop | grep -v sectors

TEST*/
