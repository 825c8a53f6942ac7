/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that are too long for a format */

#include "longrows.h"

/* GallopLongRowsPlan - From CSR's i on the host and num rows in any order, which it sorts; a piece has as many entries, the last one of a row fewer. GallopLongRowsFree() frees it. */
PetscErrorCode GallopLongRowsPlan(const PetscInt i[], PetscInt num, PetscInt rows[], PetscInt piece, GallopLongRows *l)
{
  PetscInt p = 0;

  PetscFunctionBegin;
  PetscCall(PetscSortInt(num, rows));
  l->num      = num;
  l->pieceNum = 0;
  for (PetscInt t = 0; t < num; t++) l->pieceNum += (i[rows[t] + 1] - i[rows[t]] - 1) / piece + 1;
  PetscCall(PetscMalloc5(num, &l->row, num + 1, &l->ptr, l->pieceNum, &l->pieceRow, l->pieceNum, &l->pieceAt, num + 1, &l->firstPiece));
  l->ptr[0] = l->firstPiece[0] = 0;
  for (PetscInt t = 0; t < num; t++) {
    l->row[t]     = rows[t];
    l->ptr[t + 1] = l->ptr[t] + i[rows[t] + 1] - i[rows[t]];
    for (PetscInt k = l->ptr[t]; k < l->ptr[t + 1]; k += PetscMin(piece, l->ptr[t + 1] - k)) {
      l->pieceRow[p]  = t;
      l->pieceAt[p++] = k;
    }
    l->firstPiece[t + 1] = p;
  }
  l->nz = l->ptr[num];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopLongRowsFree(GallopLongRows *l)
{
  PetscFunctionBegin;
  PetscCall(PetscFree5(l->row, l->ptr, l->pieceRow, l->pieceAt, l->firstPiece));
  PetscFunctionReturn(PETSC_SUCCESS);
}
