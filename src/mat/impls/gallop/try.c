/* SPDX-License-Identifier: BSD-2-Clause */
/*
  MATGALLOP, measured choice: the formats that are tried. measure.c says when; here they are built and freed, two at most at a time, and the fastest stays.
*/

#include "measure.h"

PetscErrorCode GallopTryBegin(GallopChosen *chosen, const GallopChoiceOptions *options, int n, const GallopChoice candidates[])
{
  const PetscReal m = (PetscReal)chosen->tuned.m, nz = (PetscReal)chosen->tuned.nz;
  PetscReal       cost[GALLOP_CHOICES];

  PetscFunctionBegin;
  for (int k = 0; k < GALLOP_CHOICES; k++) cost[k] = GallopBuildProducts(GallopChoiceFormats[k], m, nz);
  PetscCall(GallopMeasureCreate(GallopClockFor(chosen->memtype), n, candidates, cost, GallopParentSeconds(m, nz), options->products, options->share, &chosen->measure));
  PetscCall(PetscNew(&chosen->options));
  *chosen->options     = *options;
  chosen->tuned.choice = GALLOP_PARENT; /* whose turn is the first */
  chosen->tuned.way    = GALLOP_BY_COMING_TIMES;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopTryDestroy(GallopChosen *chosen)
{
  PetscFunctionBegin;
  PetscCall(GallopChoiceUnmake(chosen->memtype, &chosen->best));
  PetscCall(GallopMeasureDestroy(&chosen->measure));
  PetscCall(PetscFree(chosen->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values for all that there is. A format that has to be built again and finds no room ends the measurement: the answer is that all is to be built anew. */
PetscErrorCode GallopTryRefresh(GallopChosen *chosen, const GallopCSR *csr, GallopRefresh *answer)
{
  GallopMade        *made[]   = {&chosen->now, &chosen->best};
  const GallopChoice choice[] = {chosen->tuned.choice, chosen->measure->best};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    GallopRefresh one = GALLOP_REFRESHED;

    if (!made[k]->format || (k == 1 && chosen->recorded)) continue; /* what a graph records is the choice, and the other one goes after it */
    PetscCall((*GallopMadeWork(made[k], csr->memtype)->refresh)(made[k]->data, csr, 0, &one));
    if (one == GALLOP_REFRESHED) continue;
    PetscCall(GallopChoiceUnmake(chosen->memtype, made[k]));
    PetscCall(GallopChoiceMake(chosen->options, choice[k], csr, 0, made[k]));
    if (!made[k]->format) *answer = GALLOP_REBUILD;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other format is the choice */
static void Swap(GallopChosen *chosen)
{
  const GallopMade now = chosen->now;

  chosen->now          = chosen->best;
  chosen->best         = now;
  chosen->tuned.choice = chosen->measure->best;
}

/* What computes now stays: the measurement is over, and what it found is kept for matrices of this pattern. Not where memory decided, which may be free another time, or a graph of the program's. */
static PetscErrorCode Finish(GallopChosen *chosen)
{
  GallopTuned         *tuned = &chosen->tuned;
  const GallopMeasure *m     = chosen->measure;
  char                 name[GALLOP_GPU_NAME];
  int                  others = 0;

  PetscFunctionBegin;
  PetscCall(PetscArraycpy(tuned->time, m->time, GALLOP_CHOICES + 1));
  for (int k = 0; k <= GALLOP_CHOICES; k++) others += k != (int)tuned->choice && tuned->time[k] > 0;
  tuned->way = tuned->time[tuned->choice] > 0 && others ? GALLOP_BY_TIMES : GALLOP_BY_RULES;
  PetscCall((*m->clock->name)(name, sizeof(name)));
  if (!chosen->nofit && !chosen->recorded && tuned->time[tuned->choice] > 0) PetscCall(GallopTuneAdd(name, tuned));
  PetscCall(GallopTryDestroy(chosen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the format that was chosen, which may try another one by itself */
static const GallopFormatTrial *Own(const GallopChosen *chosen)
{
  return !chosen->measure && chosen->now.format ? chosen->now.format->trial : NULL;
}

static PetscBool Tries(const void *data)
{
  const GallopChosen      *chosen = (const GallopChosen *)data;
  const GallopFormatTrial *own    = Own(chosen);

  return (PetscBool)(chosen->measure || (own && (*own->tries)(chosen->now.data)));
}

static PetscBool Keeps(const void *data)
{
  const GallopChosen      *chosen = (const GallopChosen *)data;
  const GallopFormatTrial *own    = Own(chosen);

  return (PetscBool)(chosen->measure || (own && own->keeps && (*own->keeps)(chosen->now.data)));
}

static PetscBool Restores(const void *data)
{
  const GallopChosen      *chosen = (const GallopChosen *)data;
  const GallopFormatTrial *own    = Own(chosen);

  return (PetscBool)(own && own->restores && (*own->restores)(chosen->now.data));
}

/*
  A CUDA graph that records a product may run for as long as the matrix lives, so what computes then is the choice; memory of the other one is freed after the recording. While the parent's turn is, no
  memory of ours is recorded, and it goes on.
*/
static PetscErrorCode Records(void *data, PetscBool *records)
{
  GallopChosen            *chosen = (GallopChosen *)data;
  const GallopMeasure     *m      = chosen->measure;
  const GallopFormatTrial *own;

  PetscFunctionBegin;
  *records = PETSC_FALSE;
  if (m) {
    PetscCall(GallopMeasureRecords(chosen->measure, records));
    if (!*records) PetscFunctionReturn(PETSC_SUCCESS);
    if (!chosen->recorded && chosen->best.format && !GallopMeasureBetter(m, chosen->tuned.choice, m->best)) Swap(chosen);
    chosen->recorded = (PetscBool)(chosen->now.format != NULL);
  }
  own = chosen->now.format ? chosen->now.format->trial : NULL; /* which notes it, and stays as it is, too */
  if (own && (*own->tries)(chosen->now.data)) PetscCall((*own->records)(chosen->now.data, records));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Asks(void *data, PetscBool *asks)
{
  GallopChosen  *chosen = (GallopChosen *)data;
  GallopMeasure *m      = chosen->measure;
  GallopChoice   next;
  PetscBool      over;

  PetscFunctionBegin;
  *asks = PETSC_FALSE;
  if (!m) {
    PetscCall((*Own(chosen)->asks)(chosen->now.data, asks));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GallopMeasureIsOver(m, &over));
  if (chosen->recorded) PetscCall(Finish(chosen));
  else if (over) {
    GallopMeasureNext(m, &next);
    *asks = (PetscBool)(next != GALLOP_AUTO);
    if (*asks) PetscFunctionReturn(PETSC_SUCCESS);
    if (m->best != GALLOP_AUTO && m->best != chosen->tuned.choice) Swap(chosen);
    if (m->waiting) PetscCall(GallopChoiceUnmake(chosen->memtype, &chosen->best)); /* which is the slower one now */
    else PetscCall(Finish(chosen));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The candidate whose turn begins, or the next one that there is room for; GALLOP_AUTO for none */
static PetscErrorCode MakeNext(GallopChosen *chosen, const GallopCSR *csr, GallopChoice *choice)
{
  GallopMeasure *m = chosen->measure;

  PetscFunctionBegin;
  *choice = m->turn[m->at];
  while (*choice != GALLOP_AUTO) {
    if (csr) {
      PetscCall(GallopMeasureBuild(m, PETSC_FALSE));
      PetscCall(GallopChoiceMake(chosen->options, *choice, csr, 0, &chosen->now));
      PetscCall(GallopMeasureBuild(m, PETSC_TRUE));
    }
    if (chosen->now.format) break;
    chosen->nofit = PETSC_TRUE;
    GallopMeasureNoRoom(m, choice);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The slower of the two goes before another is built. Without room for any candidate the fastest so far stays, or CSROVERLAP comes, as without a measurement. */
static PetscErrorCode Next(void *data, const GallopCSR *csr, PetscInt *builds, PetscBool *fits)
{
  GallopChosen  *chosen = (GallopChosen *)data;
  GallopMeasure *m      = chosen->measure;
  GallopChoice   choice;

  PetscFunctionBegin;
  if (!m) {
    PetscCall((*Own(chosen)->next)(chosen->now.data, csr, builds, fits));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (m->best == chosen->tuned.choice) {
    PetscCall(GallopChoiceUnmake(chosen->memtype, &chosen->best));
    chosen->best = chosen->now;
    chosen->now  = (GallopMade){NULL, NULL};
  } else PetscCall(GallopChoiceUnmake(chosen->memtype, &chosen->now));
  PetscCall(MakeNext(chosen, csr, &choice));
  *fits = PETSC_TRUE;
  if (choice != GALLOP_AUTO) {
    chosen->tuned.choice = choice;
    *builds              = 1;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (m->best != GALLOP_AUTO) Swap(chosen);
  else {
    chosen->tuned.choice = GALLOP_CSROVERLAP;
    if (csr) PetscCall(GallopChoiceMake(chosen->options, GALLOP_CSROVERLAP, csr, 0, &chosen->now));
    *fits = (PetscBool)(chosen->now.format != NULL);
    if (*fits) *builds = 1;
  }
  PetscCall(Finish(chosen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Parent(void *data, PetscBool ends)
{
  PetscFunctionBegin;
  PetscCall(GallopMeasureProduct(((GallopChosen *)data)->measure, ends));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatTrial GallopChoiceTrial = {Tries, Keeps, Restores, Records, Asks, Next, Parent};
