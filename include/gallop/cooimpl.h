/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Assembly by COO on the GPU, with indices as short as they can be, see gallopcoo.c */

#include <petscmat.h>

#define GALLOP_COO "__Gallop_COO" /* what a matrix and its duplicates share */

/* Which of the values given make up each nonzero, by 4 bytes each on the GPU; PETSc has 8 */
typedef struct {
  PetscCount    n;                                                   /* values given to MatSetValuesCOO() */
  PetscInt      nz;                                                  /* nonzeros */
  unsigned int *perm;                                                /* the values by rows and columns; NULL where they come in that order */
  unsigned int *jmap;                                                /* [nz + 1] where those of each nonzero begin; NULL where each has one */
  PetscErrorCode (*setvalues)(Mat, const PetscScalar[], InsertMode); /* the parent's, for its own indices */
} GallopCOO;

/* i and j on the GPU or the host. *coo stays NULL where there is no room. An index out of range is taken for one to be ignored. */
PETSC_INTERN PetscErrorCode GallopCOOCreate_Device(PetscInt m, PetscInt n, PetscCount ncoo, const PetscInt i[], const PetscInt j[], GallopCOO **coo);
PETSC_INTERN PetscErrorCode GallopCOOSetValues_Device(const GallopCOO *, const PetscScalar v[], InsertMode, PetscScalar a[]); /* v and a on the GPU */
