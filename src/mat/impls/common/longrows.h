/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Rows that are too long for a format, kept in CSR and cut into pieces that are computed apart */

#include <gallop/formatimpl.h>

/* num rows in order, and where their entries begin, counted over them alone; and pieces: which of the rows each is of, and where it begins */
typedef struct {
  PetscInt   num, pieceNum;
  PetscCount nz;
  PetscInt  *row, *ptr, *pieceRow, *pieceAt, *firstPiece; /* ptr and firstPiece have num + 1 */
} GallopLongRows;

PETSC_INTERN PetscErrorCode GallopLongRowsPlan(const PetscInt[], PetscInt, PetscInt[], PetscInt, GallopLongRows *);
PETSC_INTERN PetscErrorCode GallopLongRowsFree(GallopLongRows *);
