/* SPDX-License-Identifier: BSD-2-Clause */
/* Assembly by COO, for tests of it */
#pragma once

#include "../galloptest.h"

typedef struct {
  PetscCount n;
  PetscInt  *i, *j;
  Vec        v; /* values, on the GPU when the products are there */
} COO;

static inline PetscErrorCode COOSetPattern(Mat A, const COO *coo)
{
  PetscInt *i, *j;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(coo->n, &i, coo->n, &j));
  PetscCall(PetscArraycpy(i, coo->i, coo->n)); /* MatSetPreallocationCOO() may change them */
  PetscCall(PetscArraycpy(j, coo->j, coo->n));
  PetscCall(MatSetPreallocationCOO(A, coo->n, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the array of a vector where it is, or from the host */
static inline PetscErrorCode COOSetValues(Mat A, Mat R, COO *coo, PetscInt seed, InsertMode mode, PetscBool fromhost)
{
  const PetscScalar *v;
  PetscScalar       *next;
  PetscMemType       memtype;

  PetscFunctionBegin;
  PetscCall(TestSetVec(coo->v, seed));
  PetscCall(VecGetArrayRead(coo->v, &v));
  PetscCall(MatSetValuesCOO(R, v, mode));
  if (fromhost) PetscCall(MatSetValuesCOO(A, v, mode));
  PetscCall(VecRestoreArrayRead(coo->v, &v));
  if (fromhost) { /* the array of a vector is pinned, and a program may put the next values there at once */
    PetscCall(VecGetArrayWrite(coo->v, &next));
    PetscCall(PetscArrayzero(next, coo->n));
    PetscCall(VecRestoreArrayWrite(coo->v, &next));
  } else {
    PetscCall(VecGetArrayReadAndMemType(coo->v, &v, &memtype));
    PetscCall(MatSetValuesCOO(A, v, mode));
    PetscCall(VecRestoreArrayReadAndMemType(coo->v, &v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode COODestroy(COO *coo)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(coo->i, coo->j));
  PetscCall(VecDestroy(&coo->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
