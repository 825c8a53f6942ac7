/* SPDX-License-Identifier: BSD-2-Clause */
/*
  MATGALLOP, measured choice: whose turn it is, what the timers say, and when to stop.

  The parent is timed first: its products cost nothing beyond what a program without a format pays, and they tell what the budget is. Then each format is built and multiplies, a further one when products have
  taken so long that its build is a small share of that: before, the fastest so far computes. A format's first product
  loads kernels and fills caches, and is not timed; of the next GALLOP_TIMED the shortest counts, which other work on the GPU disturbs least. Until a time has come the same candidate goes on: the host does
  not wait for it, unless it is so far ahead that the candidate would go on for long. What follows, a build or the end of a format, waits for the GPU anyway. A candidate whose first time is far above the best is given up with that.
*/

#include "measure.h"

const GallopClock *GallopClockHost = NULL;

/* Estimates: how much slower than the best a candidate is whose first time is enough; and by how much one has to be faster than another that the rules prefer, so that noise does not decide */
static const PetscLogDouble Clearly = 1.3, Faster = 0.98;

/* What the GPU has before it, in seconds, when the host waits for times: to wait takes some 10 microseconds, and a turn that goes on takes the time of slower products. No more than so many. */
static const PetscReal Ahead = 2e-4;
static const PetscInt  MostAhead = 32;

PetscErrorCode GallopMeasureCreate(const GallopClock *clock, int n, const GallopChoice candidates[], const PetscReal cost[], PetscReal seconds, PetscInt products, PetscReal share, GallopMeasure **measure)
{
  GallopMeasure *m;

  PetscFunctionBegin;
  PetscCall(PetscNew(&m));
  m->clock      = clock;
  m->allowed    = products;
  m->share      = share;
  m->patience   = 1 + GALLOP_TIMED + (PetscInt)PetscMin(Ahead / seconds, MostAhead);
  m->best       = GALLOP_AUTO;
  m->builtfirst = GALLOP_AUTO;
  m->candidates = n;
  PetscCall(PetscArraycpy(m->cost, cost, GALLOP_CHOICES));
  m->turn[m->turns++] = GALLOP_PARENT;
  for (int k = 0; k < n; k++) {
    m->preferred[k] = candidates[k];
    if (candidates[k] != GALLOP_PARENT) m->turn[m->turns++] = candidates[k];
  }
  *measure = m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopMeasureDestroy(GallopMeasure **measure)
{
  GallopMeasure *m = *measure;

  PetscFunctionBegin;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < GALLOP_TIMED; k++)
    if (m->timer[k]) PetscCall((*m->clock->destroy)(&m->timer[k]));
  if (m->buildtimer) PetscCall((*m->clock->destroy)(&m->buildtimer));
  PetscCall(PetscFree(*measure));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopMeasureBuild - Before and after a candidate is built, whose turn begins */
PetscErrorCode GallopMeasureBuild(GallopMeasure *m, PetscBool ends)
{
  PetscFunctionBegin;
  if (!ends) PetscCall((*m->clock->begin)(&m->buildtimer));
  else PetscCall((*m->clock->end)(m->buildtimer));
  m->buildunread = ends;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopMeasureRecords - Before a product: whether a CUDA graph records it. CUDA allows no timers and no questions meanwhile. */
PetscErrorCode GallopMeasureRecords(GallopMeasure *m, PetscBool *records)
{
  PetscFunctionBegin;
  PetscCall((*m->clock->capturing)(&m->captured));
  *records = m->captured;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopMeasureProduct - Before and after a product of the candidate whose turn it is */
PetscErrorCode GallopMeasureProduct(GallopMeasure *m, PetscBool ends)
{
  PetscBool records;

  PetscFunctionBegin;
  if (ends) {
    if (m->running) PetscCall((*m->clock->end)(m->timer[m->begun++]));
    m->running = PETSC_FALSE;
    if (!m->captured) {
      m->products++;
      m->all++;
    }
  } else if (!m->waiting && m->products > 0 && m->begun < GALLOP_TIMED) {
    PetscCall(GallopMeasureRecords(m, &records)); /* nobody else has asked where the parent computes until new values pay */
    if (records) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall((*m->clock->begin)(&m->timer[m->begun]));
    m->running = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the rules alone would not have this build: they build one format at most, and none where they prefer the parent */
static PetscBool IsFurther(const GallopMeasure *m, GallopChoice choice)
{
  return (PetscBool)(m->preferred[0] == GALLOP_PARENT || (m->builtfirst != GALLOP_AUTO && m->builtfirst != choice));
}

static PetscErrorCode Read(GallopMeasure *m)
{
  const PetscBool wait = (PetscBool)(m->products >= m->patience);
  PetscLogDouble *best = &m->time[m->turn[m->at]], t;

  PetscFunctionBegin;
  if (m->buildunread) {
    PetscCall((*m->clock->read)(m->buildtimer, wait, &t));
    if (t < 0) PetscFunctionReturn(PETSC_SUCCESS);
    m->buildunread = PETSC_FALSE;
    if (IsFurther(m, m->turn[m->at])) m->spent += t;
  }
  while (m->read < m->begun) {
    PetscCall((*m->clock->read)(m->timer[m->read], wait, &t));
    if (t < 0) break;
    m->read++;
    if (!*best || t < *best) *best = t;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a further build would take too large a share of all products' time, as far as that is known */
static PetscBool Waits(const GallopMeasure *m, GallopChoice next)
{
  if (!IsFurther(m, next) || m->best == GALLOP_AUTO) return PETSC_FALSE;
  return (PetscBool)(m->spent + (m->cost[next] + 1 + GALLOP_TIMED) * m->time[GALLOP_PARENT] > m->share * (PetscReal)m->all * m->time[m->best]);
}

/* GallopMeasureIsOver - Before a product that no graph records: whether it is known how fast the candidate is whose turn it is, and the next one need not wait */
PetscErrorCode GallopMeasureIsOver(GallopMeasure *m, PetscBool *over)
{
  const GallopChoice now = m->turn[m->at];

  PetscFunctionBegin;
  *over = PETSC_FALSE;
  if (m->waiting) {
    *over = PetscNot(Waits(m, m->turn[m->at + 1]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Read(m));
  *over = (PetscBool)(m->read == GALLOP_TIMED || (m->read && m->best != GALLOP_AUTO && m->time[now] > Clearly * m->time[m->best]) || (!m->begun && ++m->asked > MostAhead));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Rank(const GallopMeasure *m, GallopChoice choice)
{
  int k = 0;

  while (k < m->candidates && m->preferred[k] != choice) k++;
  return k; /* m->candidates: it is none */
}

/* GallopMeasureBetter - Whether a is the better choice, by what is known */
PetscBool GallopMeasureBetter(const GallopMeasure *m, GallopChoice a, GallopChoice b)
{
  if (a == GALLOP_AUTO || Rank(m, a) == m->candidates || !m->time[a]) return PETSC_FALSE;
  if (b == GALLOP_AUTO || Rank(m, b) == m->candidates || !m->time[b]) return PETSC_TRUE;
  return (PetscBool)(Rank(m, a) < Rank(m, b) ? Faster * m->time[a] <= m->time[b] : m->time[a] < Faster * m->time[b]);
}

/* Whether a build is within the budget, which is for further ones */
static PetscBool Affordable(const GallopMeasure *m, GallopChoice next)
{
  return (PetscBool)(!IsFurther(m, next) || m->spent + m->cost[next] * m->time[GALLOP_PARENT] <= (PetscLogDouble)m->allowed * m->time[GALLOP_PARENT]);
}

/* The next turn is that of a format that is to be built; or it is not yet; or all have had theirs: GALLOP_AUTO in both cases */
static void Advance(GallopMeasure *m, GallopChoice *next)
{
  *next      = GALLOP_AUTO;
  m->waiting = PETSC_FALSE;
  if (m->at + 1 >= m->turns || !Affordable(m, m->turn[m->at + 1])) return;
  m->waiting = Waits(m, m->turn[m->at + 1]);
  if (m->waiting) return;
  *next       = m->turn[++m->at];
  m->asked    = 0;
  m->products = 0;
  m->begun    = 0;
  m->read     = 0;
  if (m->builtfirst == GALLOP_AUTO) m->builtfirst = *next;
}

/* GallopMeasureNext - After a turn: the one that is to be built now, or GALLOP_AUTO, when m->best is the choice, for now where m->waiting; GALLOP_AUTO there if nothing is known */
void GallopMeasureNext(GallopMeasure *m, GallopChoice *next)
{
  const GallopChoice   now  = m->turn[m->at];
  const PetscLogDouble time = m->time[now];

  if (m->waiting) {
    Advance(m, next);
    return;
  }
  if (GallopMeasureBetter(m, now, m->best)) m->best = now;
  else if (m->best != GALLOP_AUTO && time > m->time[m->best]) m->spent += (PetscLogDouble)m->products * (time - m->time[m->best]);
  Advance(m, next);
}

/* GallopMeasureNoRoom - Likewise, after one found no room: it is no candidate any more */
void GallopMeasureNoRoom(GallopMeasure *m, GallopChoice *next)
{
  const GallopChoice now  = m->turn[m->at];
  const int          rank = Rank(m, now);

  m->buildunread = PETSC_FALSE;
  if (m->builtfirst == now) m->builtfirst = GALLOP_AUTO;
  if (rank < m->candidates) m->candidates--;
  for (int k = rank; k < m->candidates; k++) m->preferred[k] = m->preferred[k + 1];
  Advance(m, next);
}
