/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's order of rows: keys, and sorting on the host */

#include "evchyb.h"
#include "../common/bits.h"

void EVCHYBGetKeyShape(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBKeyShape *shape)
{
  const int       most       = 62; /* bits left beside the class */
  const int       columns    = GallopBitsFor((uint64_t)PetscMax(csr->n - 1, 0));
  const int       windowbits = options->window && csr->m ? GallopBitsFor((uint64_t)((csr->m - 1) / options->window)) : 0;
  const int       longbits   = GallopBitsFor((uint64_t)csr->nz);                       /* a row that names columns more than once may have more than n entries */
  const PetscBool sorted     = (PetscBool)(options->firstcol && options->window != 1); /* nor are rows of one length sorted, where none are */
  int             shortkey, longkey;

  shape->window       = options->window;
  shape->maxell       = options->maxell;
  shape->lenbits      = GallopBitsFor((uint64_t)options->maxell);
  shape->colbits      = sorted ? PetscMax(0, PetscMin(columns, most - windowbits - shape->lenbits)) : 0;
  shape->colshift     = columns - shape->colbits;
  shape->longcolbits  = sorted ? PetscMax(0, PetscMin(columns, most - longbits)) : 0;
  shape->longcolshift = columns - shape->longcolbits;
  shortkey            = windowbits + shape->lenbits + shape->colbits;
  longkey             = longbits + shape->longcolbits;
  shape->classbit     = PetscMax(shortkey, longkey);
}

#define RADIX_BITS     11
#define INSERTION_MOST 32

/* Stable sort of rows by key: a few by insertion, more by digits, the least significant first, of 8 bits where counting the values of wider ones would take longer than the rows */
PetscErrorCode EVCHYBSortByKey(PetscInt n, int bits, uint64_t *keys, PetscInt *rows)
{
  const int digit = n < 4096 ? 8 : RADIX_BITS, values = 1 << digit;
  uint64_t *keys2;
  PetscInt *rows2, count[(1 << RADIX_BITS) + 1], k;

  PetscFunctionBegin;
  for (k = 1; k < n && keys[k - 1] <= keys[k]; k++) { }
  if (k >= n) PetscFunctionReturn(PETSC_SUCCESS);
  if (n <= INSERTION_MOST) {
    for (; k < n; k++) {
      const uint64_t key = keys[k];
      const PetscInt row = rows[k];
      PetscInt       at  = k;

      for (; at > 0 && keys[at - 1] > key; at--) {
        keys[at] = keys[at - 1];
        rows[at] = rows[at - 1];
      }
      keys[at] = key;
      rows[at] = row;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc2(n, &keys2, n, &rows2));
  for (int shift = 0; shift < bits; shift += digit) {
    PetscCall(PetscArrayzero(count, values + 1));
    for (k = 0; k < n; k++) count[(keys[k] >> shift & (uint64_t)(values - 1)) + 1]++;
    for (k = 0; k < values && count[k + 1] != n; k++) { }
    if (k < values) continue; /* all keys share this digit */
    for (k = 0; k < values; k++) count[k + 1] += count[k];
    for (k = 0; k < n; k++) {
      const PetscInt to = count[keys[k] >> shift & (uint64_t)(values - 1)]++;

      keys2[to] = keys[k];
      rows2[to] = rows[k];
    }
    PetscCall(PetscArraycpy(keys, keys2, n));
    PetscCall(PetscArraycpy(rows, rows2, n));
  }
  PetscCall(PetscFree2(keys2, rows2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBRowsCount - How many rows are empty, short and long; sets nothing else. i is on the host. */
void EVCHYBRowsCount(PetscInt maxell, PetscInt m, const PetscInt i[], EVCHYBRows *rows)
{
  PetscInt nempty = 0, nlong = 0;

  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = i[r + 1] - i[r];

    nempty += len == 0;
    nlong += len > maxell;
  }
  EVCHYBRowsSetCounts(m, nempty, nlong, rows);
}

void EVCHYBRowsSetCounts(PetscInt m, PetscInt nempty, PetscInt nlong, EVCHYBRows *rows)
{
  rows->counted = PETSC_TRUE;
  rows->nempty  = nempty;
  rows->nlong   = nlong;
  rows->nshort  = m - nempty - nlong;
  if (rows->all) rows->nonempty = rows->all + nempty;
}

/* EVCHYBRowsSort_Host - Sorts rows that have been counted; the empty ones are among them, before the others, where withempty says so. EVCHYBRowsFree_Host() frees them. */
PetscErrorCode EVCHYBRowsSort_Host(const EVCHYBOptions *options, const GallopCSR *csr, PetscBool withempty, EVCHYBRows *rows)
{
  const PetscInt first = withempty ? rows->nempty : 0, n = first + rows->nshort + rows->nlong, nlong = rows->nlong; /* first: of the rows that are not empty */
  EVCHYBKeyShape shape;
  uint64_t      *keys;
  PetscInt      *sorted, at[3];

  PetscFunctionBegin;
  EVCHYBGetKeyShape(options, csr, &shape);
  PetscCall(PetscMalloc1(n, &keys));
  PetscCall(PetscMalloc1(n, &sorted));
  at[EVCHYB_EMPTY] = 0;
  at[EVCHYB_SHORT] = first;
  at[EVCHYB_LONG]  = n - nlong;
  for (PetscInt r = 0; r < csr->m; r++) {
    const PetscInt len = csr->i[r + 1] - csr->i[r];
    PetscInt       k;

    if (!len && !withempty) continue;
    k         = at[len > options->maxell ? EVCHYB_LONG : len ? EVCHYB_SHORT : EVCHYB_EMPTY]++;
    keys[k]   = EVCHYBKey(&shape, r, len, len ? csr->j[csr->i[r]] : 0);
    sorted[k] = r;
  }
  for (PetscInt begin = first, end; begin < n - nlong; begin = end) { /* each window for itself, whose keys stay in the cache */
    const int      bits   = shape.lenbits + shape.colbits;
    const uint64_t window = keys[begin] >> bits;

    for (end = begin + 1; end < n - nlong && keys[end] >> bits == window; end++) { }
    PetscCall(EVCHYBSortByKey(end - begin, bits, keys + begin, sorted + begin));
  }
  PetscCall(EVCHYBSortByKey(nlong, shape.classbit, keys + n - nlong, sorted + n - nlong));
  PetscCall(PetscFree(keys));
  rows->all      = withempty ? sorted : NULL;
  rows->nonempty = sorted + first;
  rows->longrows = sorted + n - nlong;
  rows->memory   = sorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBRowsFree_Host(EVCHYBRows *rows)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(rows->memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}
