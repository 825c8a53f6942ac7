/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks that a point-block Jacobi preconditioner multiplies by, for fused solvers */
#pragma once

#include <petscksp.h>
#include <gallop/matgallopimpl.h>

#define GALLOP_BLOCK_MOST 8 /* rows of a block */

/* What the blocks are, and what they were computed for. Zeroed, there are none. */
typedef struct {
  PetscInt  bs;
  Vec       column[GALLOP_BLOCK_MOST]; /* entry i of column k is in row i of the matrix, and column k of that row's block */
  PetscBool valid;                     /* to be made false when the solver is set up */
  MatState  matrix;
} GallopBlocks;

PETSC_INTERN PetscErrorCode PCGallopGetBlockSize(PC, PetscInt *);
PETSC_INTERN PetscErrorCode GallopBlocksCreate(GallopBlocks *, PetscInt, Vec);
PETSC_INTERN PetscErrorCode GallopBlocksReset(GallopBlocks *);
PETSC_INTERN PetscErrorCode GallopBlocksUpdate(GallopBlocks *, PC, Vec);
PETSC_INTERN PetscErrorCode GallopBlocksAdd(const GallopBlocks *, const GallopTerms *, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode GallopBlocksUnit_Device(PetscInt, PetscInt, PetscInt, PetscScalar *);
PETSC_INTERN PetscErrorCode GallopBlocksAdd_Device(PetscInt, PetscInt, const PetscScalar *const *, const PetscScalar *, const PetscScalar *, const PetscScalar *, const PetscScalar[3], PetscScalar *);
