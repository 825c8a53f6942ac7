/* SPDX-License-Identifier: BSD-2-Clause */
/* PETSc's own sort the integers that it was built for, a test has others */
#pragma once

#include "emulate.h"
#include <algorithm>
#include <tuple>
#include <vector>

PetscErrorCode PetscSortInt(PetscCount n, PetscInt a[])
{
  std::sort(a, a + n);
  return PETSC_SUCCESS;
}

PetscErrorCode PetscSortIntWithArray(PetscCount n, PetscInt a[], PetscInt b[])
{
  std::vector<std::pair<PetscInt, PetscInt>> pairs(n);

  for (PetscCount k = 0; k < n; k++) pairs[k] = {a[k], b[k]};
  std::stable_sort(pairs.begin(), pairs.end(), [](auto &x, auto &y) { return x.first < y.first; });
  for (PetscCount k = 0; k < n; k++) std::tie(a[k], b[k]) = pairs[k];
  return PETSC_SUCCESS;
}
