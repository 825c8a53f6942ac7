/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the host: the dictionary of a matrix that has few distinct numbers */

#include "packedhost.h"

/* For qsort(): the order of a dictionary's numbers */
int EVCHYBPackCompareBits(const void *a, const void *b)
{
  const EVCHYBPackBits x = EVCHYBPackBitsOf(*(const PetscReal *)a), y = EVCHYBPackBitsOf(*(const PetscReal *)b);

  return x < y ? -1 : x > y;
}

/* A table of distinct numbers: one is at the first free place from where its hash says */
typedef struct {
  PetscInt   num, places;
  PetscReal *number;
  PetscBool *used;
} Table;

static PetscBool AddDistinct(Table *t, PetscReal number)
{
  const EVCHYBPackBits bits = EVCHYBPackBitsOf(number);
  PetscInt             at   = (PetscInt)(EVCHYBPackHash(bits) % (uint64_t)t->places);

  while (t->used[at] && EVCHYBPackBitsOf(t->number[at]) != bits) at = at + 1 == t->places ? 0 : at + 1;
  if (t->used[at]) return PETSC_FALSE;
  t->used[at]   = PETSC_TRUE;
  t->number[at] = number;
  t->num++;
  return PETSC_TRUE;
}

static PetscErrorCode FindDistinct(const GallopCSR *csr, PetscReal **dict, PetscInt *ndict)
{
  const PetscReal *a = (const PetscReal *)csr->a;
  const PetscCount n = EVCHYB_PACK_PARTS * csr->nz;
  Table            t = {.places = 2 * EVCHYB_PACK_DICT};

  PetscFunctionBegin;
  *dict  = NULL;
  *ndict = 0;
  PetscCall(PetscCalloc2(t.places, &t.number, t.places, &t.used));
  if (n >= EVCHYB_PACK_LOOKS_FROM) {
    PetscInt equal = 0;

    for (int k = 0; k < EVCHYB_PACK_LOOKS; k++) equal += !AddDistinct(&t, a[EVCHYBPackLook(k, n)]);
    if (equal < EVCHYB_PACK_LOOKS_EQUAL) t.num = EVCHYB_PACK_DICT + 1;
  }
  for (PetscCount k = 0; k < n && t.num <= EVCHYB_PACK_DICT; k++) (void)AddDistinct(&t, a[k]);
  if (t.num && EVCHYBPackDictPays(t.num, csr->nz)) {
    PetscCall(PetscMalloc1(t.num, dict));
    for (PetscInt at = 0; at < t.places; at++)
      if (t.used[at]) (*dict)[(*ndict)++] = t.number[at];
    qsort(*dict, (size_t)*ndict, sizeof(**dict), EVCHYBPackCompareBits);
  }
  PetscCall(PetscFree2(t.number, t.used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackFree_Host(EVCHYBPack *pack)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(pack->dict));
  PetscCall(PetscFree4(pack->slice, pack->line, pack->stream, pack->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackBegin_Host(const GallopCSR *csr, const EVCHYBPackSurvey *survey, EVCHYBPack **pack)
{
  PetscFunctionBegin;
  (void)survey;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_HOST;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  PetscCall(FindDistinct(csr, &(*pack)->dict, &(*pack)->ndict));
  PetscFunctionReturn(PETSC_SUCCESS);
}
