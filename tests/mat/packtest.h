/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the tests of packed EVC-HYB share: values of several kinds, and products in packed storage beside those in plain storage */

#include "propertytest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"

/* ---- matrices ---- */

/* Values that are all different; of 256 or 257 numbers; of many numbers, but not too many for a dictionary; that single precision has; all different without an imaginary part. Of complex values zero is a number too. */
typedef enum { VALUES_ALL, VALUES_256, VALUES_257, VALUES_MANY, VALUES_SINGLE, VALUES_REAL, VALUES_KINDS } Values;

static inline PetscScalar ValueOf(Values kind, PetscInt k)
{
  const PetscReal real = PetscRealPart(TestValue(5, k, 1));

  switch (kind) {
  case VALUES_256:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % (PetscDefined(USE_COMPLEX) ? 255 : 256) + 3));
  case VALUES_257:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % (PetscDefined(USE_COMPLEX) ? 256 : 257) + 3));
  case VALUES_MANY:
    return (PetscScalar)(PetscReal)(1.0 / (PetscReal)(k % 20000 + 3));
  case VALUES_SINGLE:
    return (PetscScalar)(PetscReal)(float)(real + (PetscReal)k);
  case VALUES_REAL:
    return (PetscScalar)real;
  default:
    return TestValue(5, k, 1);
  }
}

/* 7 points on a grid of nx x ny x nz nodes with dof unknowns each, all of a node's with all of a neighbour's */
static inline PetscErrorCode Stencil(PetscInt nx, PetscInt ny, PetscInt nz, PetscInt dof, Values values, Mat *A)
{
  const PetscInt m     = nx * ny * nz * dof;
  PetscInt       count = 0;
  TestEntries    e;

  PetscFunctionBegin;
  PetscCall(TestEntriesBegin(m, m, &e));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt node = r / dof, x = node % nx, y = node / nx % ny, z = node / nx / ny;
    const PetscInt at[7] = {z > 0 ? node - nx * ny : -1, y > 0 ? node - nx : -1,      x > 0 ? node - 1 : -1,           node,
                            x + 1 < nx ? node + 1 : -1,  y + 1 < ny ? node + nx : -1, z + 1 < nz ? node + nx * ny : -1};

    for (int k = 0; k < 7; k++)
      for (PetscInt d = 0; d < dof && at[k] >= 0; d++) PetscCall(TestEntriesPut(&e, at[k] * dof + d, ValueOf(values, count++)));
    TestEntriesEndRow(&e);
  }
  PetscCall(TestEntriesEnd(&e, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- formats and products ---- */

static inline PetscErrorCode CreateStored(Mat A, const char storage[], PetscBool unsorted, Mat *B)
{
  char      window[16];
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_evchyb_window", window, sizeof(window), &set));
  if (unsorted) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", "1"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_storage", storage));
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, B));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_storage"));
  if (set) PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", window));
  else PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_window"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format that a matrix has on the host or the GPU, after a product there */
static inline PetscErrorCode FormatAt(Mat A, PetscMemType memtype, const EVCHYB **ev)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(A, memtype, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No format on %s", PetscMemTypeHost(memtype) ? "the host" : "the GPU");
  *ev = (const EVCHYB *)data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its pack, NULL where there is no format, or one in plain storage */
static inline PetscErrorCode PackAt(Mat A, PetscMemType memtype, EVCHYBPack **pack)
{
  const void *data;

  PetscFunctionBegin;
  PetscCall(MatGallopGetFormatData(A, memtype, &data));
  *pack = data && ((const EVCHYB *)data)->packed ? ((const EVCHYB *)data)->packed->pack : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x of a square matrix, on the host or the GPU */
static inline PetscErrorCode MultiplyAt(Mat A, PetscInt m, int place, Vec *x, Vec *z)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, x));
  PetscCall(VecSetSizes(*x, m, m));
  PetscCall(VecSetType(*x, place ? VECSEQCUDA : VECSEQ));
  PetscCall(VecDuplicate(*x, z));
  PetscCall(TestSetVec(*x, 2));
  PetscCall(MatMult(A, *x, *z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount compared; /* rows of which every bit was compared, on the GPU */

/* The rows in packed slices that plain storage, at the place of the last product, adds up in order from their first entry on */
static inline PetscErrorCode AddedInOrder(Mat A, Mat plain, PetscBool device, PetscBool inorder[])
{
  const EVCHYB   *at = NULL;
  EVCHYB         *ev;
  PetscInt        m;
  const PetscInt *i, *j;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  for (PetscInt r = 0; r < m; r++) inorder[r] = (PetscBool)(!device && i[r + 1] - i[r] <= 128);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FormatAt(plain, PETSC_MEMTYPE_CUDA, &at));
  PetscCall(EVCHYBCopyToHost(at, &ev));
  for (int k = 0; k < ev->launch.n; k++) {
    const EVCHYBRange *range = &ev->launch.range[k];

    if (range->kind != EVCHYB_RANGE_ELL) continue; /* several threads share a row of others */
    for (PetscInt r = range->first * EVCHYB_BLOCK; r < range->end * EVCHYB_BLOCK; r++) {
      inorder[ev->plain->perm[r]] = PETSC_TRUE;
      compared++;
    }
  }
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All rows have the right sums, and rows that are added up in the same order the same bits in both storages; not of complex numbers, whose products compilers round in several ways */
static inline PetscErrorCode CompareProducts(Mat A, Mat plain, Mat packed, VecType vectype, const char what[])
{
  Vec                 x, y, z, w;
  PetscInt            m, n;
  const PetscScalar  *za, *wa;
  PetscBool           device, *inorder;
  MatGallopStatistics before, after;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(TestCreateVecsOfType(A, vectype, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(z, &w));
  PetscCall(TestSetVec(x, 2));
  PetscCall(TestSetVec(y, 3));
  PetscCall(PetscStrcmp(vectype, VECSEQCUDA, &device));
  PetscCall(PetscMalloc1(m, &inorder));
  PetscCall(MatGallopGetStatistics(packed, &before));
  for (int add = 0; add < 2; add++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(TestSpoilVec(w));
    if (add) PetscCall(MatMultAdd(packed, x, y, z));
    else PetscCall(MatMult(packed, x, z));
    PetscCall(TestCompare(A, TEST_MULT, x, add ? y : NULL, z, what));
    if (add) PetscCall(MatMultAdd(plain, x, y, w));
    else PetscCall(MatMult(plain, x, w));
    PetscCall(AddedInOrder(A, plain, device, inorder));
    PetscCall(VecGetArrayRead(z, &za));
    PetscCall(VecGetArrayRead(w, &wa));
    for (PetscInt r = 0; r < m; r++)
      PetscCheck(PetscDefined(USE_COMPLEX) || !inorder[r] || !memcmp(&za[r], &wa[r], sizeof(*za)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, vectors %s: row %" PetscInt_FMT " is %g, in plain storage %g", what, vectype, r, (double)PetscRealPart(za[r]), (double)PetscRealPart(wa[r]));
    PetscCall(VecRestoreArrayRead(z, &za));
    PetscCall(VecRestoreArrayRead(w, &wa));
  }
  PetscCall(PetscFree(inorder));
  PetscCall(TestSpecial(packed, A, TEST_MULT, x, z, what));
  PetscCall(MatGallopGetStatistics(packed, &after));
  TestCheck(after.products_host + after.products_device - before.products_host - before.products_device == 3, "the products were not ours", what);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}
