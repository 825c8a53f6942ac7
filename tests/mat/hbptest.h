/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the tests with written matrices in the HBP format share */

#include "propertytest.h"
#include "../../src/mat/impls/hbp/hbp.h"

static inline PetscErrorCode GetFormat(Mat A, const char what[], HBP **copy)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(TestFormatData(A, what, &data));
  PetscCall(HBPCopyToHost((const HBP *)data, copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of what is at a place */
static inline PetscErrorCode GetFormatAt(Mat A, PetscMemType memtype, const char what[], HBP **copy)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(A, memtype, &data));
  TestCheck(data, "no format%s", what, PetscMemTypeHost(memtype) ? "" : " on the GPU");
  PetscCall(HBPCopyToHost((const HBP *)data, copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After TestInfoBegin(): whether some line of -info had this text */
static inline PetscErrorCode CheckInfo(const char text[], PetscBool should, const char what[])
{
  PetscBool has = PETSC_FALSE;
  char      line[512], *found;
  FILE     *info = NULL; /* unless an error leaves TestInfoEnd() */

  PetscFunctionBegin;
  PetscCall(TestInfoEnd(&info));
  while (fgets(line, sizeof(line), info)) {
    PetscCall(PetscStrstr(line, text, &found));
    if (found) has = PETSC_TRUE;
  }
  (void)fclose(info);
  TestCheck(has == should, "-info %s: %s", what, has ? "says" : "does not say", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SetBlocks(PetscInt N, PetscInt M)
{
  PetscFunctionBegin;
  PetscCall(TestSetIntOption("-mat_hbp_block_rows", N));
  PetscCall(TestSetIntOption("-mat_hbp_block_cols", M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products of a matrix, and its format as it was with the first values */
static inline PetscErrorCode TestProductsOf(Mat A, const char what[], HBP **copy)
{
  Vec x, z;

  PetscFunctionBegin;
  if (copy) {
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(TestSetVec(x, 1));
    PetscCall(MatMult(A, x, z));
    PetscCall(GetFormat(A, what, copy));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(TestFormatProducts(A, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}
