#pragma once

/* What the files of the host share that plan packed storage, store it and multiply by it */

#include "packedplan.h"
#include <gallop/deviceimpl.h>

/* The rows of a slice, and their entries */
typedef struct {
  PetscInt row[GALLOP_PACK_ROWS];
  PetscInt first[GALLOP_PACK_ROWS], len[GALLOP_PACK_ROWS];
  PetscInt lo, longest; /* the least row; entries of the longest one */
  PetscInt step;        /* what columns of a diagonal grow by from row to row, 0 where rows have no such order */
} GallopPackRows;

/* The columns of a line, -1 where it has no entry, those of the line before, if there is one, and what they may grow by */
typedef struct {
  PetscInt  column[GALLOP_PACK_ROWS], before[GALLOP_PACK_ROWS], step;
  PetscBool follows;
} GallopPackColumns;

/* Where the values of line k of a slice are */
static inline unsigned char *GallopPackValuesOfLine(const GallopPack *pack, const GallopPackSlice *slice, PetscInt k)
{
  return pack->value + ((size_t)slice->value + (size_t)k * GallopPackValueUnits((GallopPackValues)slice->values)) * GALLOP_PACK_UNIT;
}

PETSC_INTERN void            GallopPackColumnsOfRows(const GallopCSR *, const GallopPackRows *, PetscInt, GallopPackColumns *);
PETSC_INTERN void            GallopPackColumnsOfPiece(const GallopCSR *, const GallopPackPlan *, PetscInt, GallopPackColumns *);
PETSC_INTERN GallopPackClass GallopPackClassOfLine(const GallopPackColumns *, PetscInt *, PetscBool *);
PETSC_INTERN PetscBool       GallopPackNextDiagonal(const GallopCSR *, const GallopPackRows *, const PetscInt[], PetscInt *);
PETSC_INTERN PetscBool       GallopPackIsOn(const GallopCSR *, const GallopPackRows *, const PetscInt[], int, PetscInt);
PETSC_INTERN void            GallopPackPlanSlice(const GallopPack *, const GallopCSR *, const GallopPackOrder *, PetscInt, GallopPackRows *, GallopPackPlan *);
PETSC_INTERN void            GallopPackPlanPiece(const GallopPack *, const GallopCSR *, const GallopPackOrder *, PetscInt, GallopPackPlan *);
PETSC_INTERN int             GallopPackCompareBits(const void *, const void *);
