/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM's order of rows by their patterns (section 4.2), on the host. The GPU sorts by the same comparison. */

#include "tiledspmm.h"

typedef struct {
  const PetscInt *i, *j;
} Pattern;

static int CompareRows(const void *left, const void *right, void *ctx)
{
  const Pattern *A = (const Pattern *)ctx;

  return TiledSpMMCompareRows(A->i, A->j, *(const PetscInt *)left, *(const PetscInt *)right);
}

/* Whether the columns of all rows increase, and some row is out of order */
static PetscBool Sortable(PetscInt m, const PetscInt i[], const PetscInt j[])
{
  PetscBool unsorted = PETSC_FALSE;

  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r] + 1; k < i[r + 1]; k++)
      if (j[k - 1] >= j[k]) return PETSC_FALSE;
    if (!unsorted && r && TiledSpMMCompareRows(i, j, r - 1, r) > 0) unsorted = PETSC_TRUE;
  }
  return unsorted;
}

/* TiledSpMMSortRows - Rows in the order of their patterns; NULL where they are in order, or the columns of some row do not increase */
PetscErrorCode TiledSpMMSortRows(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt **order)
{
  Pattern A = {i, j};

  PetscFunctionBegin;
  *order = NULL;
  if (!Sortable(m, i, j)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, order));
  for (PetscInt r = 0; r < m; r++) (*order)[r] = r;
  PetscCall(PetscTimSort(m, *order, sizeof(**order), CompareRows, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
