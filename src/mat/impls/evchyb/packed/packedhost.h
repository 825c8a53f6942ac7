/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the files of the host share that plan packed storage, store it and multiply by it */

#include "packedplan.h"
#include <gallop/deviceimpl.h>

/* The rows of a slice, and their entries */
typedef struct {
  PetscInt row[EVCHYB_PACK_ROWS];
  PetscInt first[EVCHYB_PACK_ROWS], len[EVCHYB_PACK_ROWS];
  PetscInt lo, longest; /* the least row; entries of the longest one */
  PetscInt step;        /* what columns of a diagonal grow by from row to row, 0 where rows have no such order */
} EVCHYBPackRows;

/* The columns of a line, -1 where it has no entry, those of the line before, if there is one, and what they may grow by */
typedef struct {
  PetscInt  column[EVCHYB_PACK_ROWS], before[EVCHYB_PACK_ROWS], step;
  PetscBool follows;
} EVCHYBPackColumns;

/* Where the values of line k of a slice are */
static inline unsigned char *EVCHYBPackValuesOfLine(const EVCHYBPack *pack, const EVCHYBPackSlice *slice, PetscInt k)
{
  return pack->value + ((size_t)slice->value + (size_t)k * EVCHYBPackValueUnits((EVCHYBPackValues)slice->values)) * EVCHYB_PACK_UNIT;
}

PETSC_INTERN void            EVCHYBPackColumnsOfRows(const GallopCSR *, const EVCHYBPackRows *, PetscInt, EVCHYBPackColumns *);
PETSC_INTERN void            EVCHYBPackColumnsOfPiece(const GallopCSR *, const EVCHYBPackPlan *, PetscInt, EVCHYBPackColumns *);
PETSC_INTERN EVCHYBPackClass EVCHYBPackClassOfLine(const EVCHYBPackColumns *, PetscInt *, PetscBool *);
PETSC_INTERN PetscBool       EVCHYBPackNextDiagonal(const GallopCSR *, const EVCHYBPackRows *, const PetscInt[], PetscInt *);
PETSC_INTERN PetscBool       EVCHYBPackIsOn(const GallopCSR *, const EVCHYBPackRows *, const PetscInt[], int, PetscInt);
PETSC_INTERN void            EVCHYBPackPlanSlice(const EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, PetscInt, EVCHYBPackRows *, EVCHYBPackPlan *);
PETSC_INTERN void            EVCHYBPackPlanPiece(const EVCHYBPack *, const GallopCSR *, EVCHYBPackPlan *);
PETSC_INTERN int             EVCHYBPackCompareBits(const void *, const void *);
