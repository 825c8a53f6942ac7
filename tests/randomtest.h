/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Tests that make calls in an order that a seed chooses: what is drawn, the same on all processes; which sequences and calls; and what a failure tells */

#include "galloptest.h"

typedef struct {
  PetscInt seed, draws;
  char     history[4096];
} TestDraws;

/* From 0 to 1 */
static inline PetscReal TestDraw(TestDraws *d)
{
  return TestRandom(d->seed, d->draws++, 3);
}

/* 0 to n - 1 */
static inline PetscInt TestDrawInt(TestDraws *d, PetscInt n)
{
  return PetscMin((PetscInt)((PetscReal)n * TestDraw(d)), n - 1);
}

/* For a failure to tell */
static inline PetscErrorCode TestNote(TestDraws *d, const char what[])
{
  PetscFunctionBegin;
  PetscCall(PetscStrlcat(d->history, " ", sizeof(d->history)));
  PetscCall(PetscStrlcat(d->history, what, sizeof(d->history)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestNoteInt(TestDraws *d, PetscInt number)
{
  char text[32];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT, number));
  PetscCall(TestNote(d, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error of a call's own, told with what came before, as a difference is */
#define TestDo(d, ...) \
  do { \
    const PetscErrorCode ierr_do_ = __VA_ARGS__; \
    PetscCheck(!ierr_do_, PETSC_COMM_SELF, ierr_do_, "%s", (d)->history); \
  } while (0)

/* -seed, -sequences, -calls, -list and -show, which each of these tests has */
typedef struct {
  PetscInt  seed, sequences, calls;
  PetscBool listed, show;
  char     *list[25];
} TestSequences;

static inline PetscErrorCode TestSequencesBegin(TestSequences *s)
{
  PetscInt n = PETSC_STATIC_ARRAY_LENGTH(s->list);

  PetscFunctionBegin;
  s->seed      = 1;
  s->sequences = 20;
  s->calls     = 25;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &s->seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-sequences", &s->sequences, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-calls", &s->calls, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-show", &s->show));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-list", s->list, &n, &s->listed));
  if (s->listed) s->calls = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TestSequencesEnd(TestSequences *s)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < s->calls && s->listed; k++) PetscCall(PetscFree(s->list[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The k-th call of a sequence, drawn or listed: its line in a table of n, each of size bytes, which begins with a name */
static inline PetscErrorCode TestChooseCall(TestDraws *d, const TestSequences *s, PetscInt k, const void *table, size_t size, size_t n, const void *call)
{
  const char *line = (const char *)table + (size_t)TestDrawInt(d, (PetscInt)n) * size;
  PetscBool   same = PETSC_FALSE;

  PetscFunctionBegin;
  for (size_t l = 0; s->listed && l < n && !same; l++) {
    line = (const char *)table + l * size;
    PetscCall(PetscStrcmp(s->list[k], *(const char *const *)line, &same));
  }
  PetscCheck(same || !s->listed, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-list: there is no call %s", s->list[k]);
  *(const void **)call = line;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With -show, what has been called by now */
static inline PetscErrorCode TestShow(const TestDraws *d, const TestSequences *s)
{
  PetscFunctionBegin;
  if (s->show) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", d->history));
  PetscFunctionReturn(PETSC_SUCCESS);
}
