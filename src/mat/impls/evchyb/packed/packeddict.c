/* Packed storage on the host: the dictionary of a matrix that has few distinct numbers */

#include "packedhost.h"

/* For qsort(): the order of a dictionary's numbers */
int GallopPackCompareBits(const void *a, const void *b)
{
  const GallopPackBits x = GallopPackBitsOf(*(const PetscReal *)a), y = GallopPackBitsOf(*(const PetscReal *)b);

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
  const GallopPackBits bits = GallopPackBitsOf(number);
  PetscInt             at   = (PetscInt)(GallopPackHash(bits) % (uint64_t)t->places);

  while (t->used[at] && GallopPackBitsOf(t->number[at]) != bits) at = at + 1 == t->places ? 0 : at + 1;
  if (t->used[at]) return PETSC_FALSE;
  t->used[at]   = PETSC_TRUE;
  t->number[at] = number;
  t->num++;
  return PETSC_TRUE;
}

static PetscErrorCode FindDistinct(const GallopCSR *csr, PetscReal **dict, PetscInt *ndict)
{
  const PetscReal *a = (const PetscReal *)csr->a;
  const PetscCount n = GALLOP_PACK_PARTS * csr->nz;
  Table            t = {.places = 2 * GALLOP_PACK_DICT};

  PetscFunctionBegin;
  *dict  = NULL;
  *ndict = 0;
  PetscCall(PetscCalloc2(t.places, &t.number, t.places, &t.used));
  if (n >= GALLOP_PACK_LOOKS_FROM) {
    PetscInt equal = 0;

    for (int k = 0; k < GALLOP_PACK_LOOKS; k++) equal += !AddDistinct(&t, a[GallopPackLook(k, n)]);
    if (equal < GALLOP_PACK_LOOKS_EQUAL) t.num = GALLOP_PACK_DICT + 1;
  }
  for (PetscCount k = 0; k < n && t.num <= GALLOP_PACK_DICT; k++) (void)AddDistinct(&t, a[k]);
  if (t.num && GallopPackDictPays(t.num, csr->nz)) {
    PetscCall(PetscMalloc1(t.num, dict));
    for (PetscInt at = 0; at < t.places; at++)
      if (t.used[at]) (*dict)[(*ndict)++] = t.number[at];
    qsort(*dict, (size_t)*ndict, sizeof(**dict), GallopPackCompareBits);
  }
  PetscCall(PetscFree2(t.number, t.used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackFree_Host(GallopPack *pack)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(pack->dict));
  PetscCall(PetscFree4(pack->slice, pack->line, pack->stream, pack->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopPackBegin_Host(const GallopCSR *csr, GallopPack **pack)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(pack));
  (*pack)->memtype = PETSC_MEMTYPE_HOST;
  (*pack)->m       = csr->m;
  (*pack)->n       = csr->n;
  PetscCall(FindDistinct(csr, &(*pack)->dict, &(*pack)->ndict));
  PetscFunctionReturn(PETSC_SUCCESS);
}
