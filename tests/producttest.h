/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Products of sparse matrices */

#include "galloptest.h"

/* By the function that is for it. Of three factors M[2] counts for MATPRODUCT_ABC alone. */
static inline PetscErrorCode TestMatProduct(MatProductType type, const Mat M[3], MatReuse reuse, Mat *D)
{
  PetscFunctionBegin;
  switch (type) {
  case MATPRODUCT_AB:
    PetscCall(MatMatMult(M[0], M[1], reuse, PETSC_DETERMINE, D));
    break;
  case MATPRODUCT_AtB:
    PetscCall(MatTransposeMatMult(M[0], M[1], reuse, PETSC_DETERMINE, D));
    break;
  case MATPRODUCT_ABt:
    PetscCall(MatMatTransposeMult(M[0], M[1], reuse, PETSC_DETERMINE, D));
    break;
  case MATPRODUCT_PtAP:
    PetscCall(MatPtAP(M[0], M[1], reuse, PETSC_DETERMINE, D));
    break;
  case MATPRODUCT_RARt:
    PetscCall(MatRARt(M[0], M[1], reuse, PETSC_DETERMINE, D));
    break;
  default:
    PetscCall(MatMatMatMult(M[0], M[1], M[2], reuse, PETSC_DETERMINE, D));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of D, which may be of any type, against those of a plain E */
static inline PetscErrorCode TestCompareEntries(Mat D, Mat E, const char what[])
{
  Mat       F;
  PetscReal size, error;

  PetscFunctionBegin;
  PetscCall(MatConvert(D, MATAIJ, MAT_INITIAL_MATRIX, &F));
  PetscCall(MatNorm(E, NORM_FROBENIUS, &size));
  PetscCall(MatAXPY(F, -1.0, E, UNKNOWN_NONZERO_PATTERN));
  PetscCall(MatNorm(F, NORM_FROBENIUS, &error));
  TestCheck(error <= 100 * PETSC_MACHINE_EPSILON * size, "error %g of norm %g", what, (double)error, (double)size);
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}
