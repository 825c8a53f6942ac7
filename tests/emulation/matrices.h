/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns of matrices in CSR, for tests of what is built of them */
#pragma once
#include "testing.h"

struct Matrix {
  PetscInt              m, n;
  std::vector<PetscInt> i, j;
};

typedef std::function<int(PetscInt)> Length; /* of a row or a column */

/* So many different numbers below n */
static std::vector<PetscInt> Some(int count, PetscInt n)
{
  std::vector<PetscInt> all(n);

  for (PetscInt k = 0; k < n; k++) all[k] = k;
  count = (int)std::min<PetscInt>(count, n);
  for (int k = 0; k < count; k++) std::swap(all[k], all[k + choice() % (n - k)]);
  all.resize(count);
  return all;
}

static Matrix FromRows(PetscInt n, const std::vector<std::vector<PetscInt>> &rows)
{
  Matrix A{(PetscInt)rows.size(), n, {0}, {}};

  for (auto &row : rows) {
    A.j.insert(A.j.end(), row.begin(), row.end());
    A.i.push_back((PetscInt)A.j.size());
  }
  return A;
}

static Matrix Rows(PetscInt m, PetscInt n, const Length &length, bool sorted = true)
{
  std::vector<std::vector<PetscInt>> rows(m);

  for (PetscInt r = 0; r < m; r++) {
    rows[r] = Some(length(r), n);
    if (sorted) std::sort(rows[r].begin(), rows[r].end());
  }
  return FromRows(n, rows);
}

static Matrix Columns(PetscInt m, PetscInt n, const Length &length)
{
  std::vector<std::vector<PetscInt>> rows(m);

  for (PetscInt c = 0; c < n; c++)
    for (PetscInt r : Some(length(c), m)) rows[r].push_back(c);
  return FromRows(n, rows);
}

/* Five points on a square of cells */
static Matrix Stencil(PetscInt width)
{
  std::vector<std::vector<PetscInt>> rows(width * width);

  for (PetscInt y = 0; y < width; y++)
    for (PetscInt x = 0; x < width; x++) {
      auto &row = rows[y * width + x];
      if (y) row.push_back((y - 1) * width + x);
      if (x) row.push_back(y * width + x - 1);
      row.push_back(y * width + x);
      if (x < width - 1) row.push_back(y * width + x + 1);
      if (y < width - 1) row.push_back((y + 1) * width + x);
    }
  return FromRows(width * width, rows);
}
