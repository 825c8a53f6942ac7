/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The benchmark's generated matrices that have the lengths of rows of a paper's.\n\n";

#include <petscgallop.h>
#include "../../benchmarks/generate.c"

/* A matrix is the same each time, and has the wanted share of rows that are longer than split, none above longest, entries on the diagonal, and sorted columns. Returns its rows. */
static PetscErrorCode Generate(const char name[], PetscInt m, PetscInt split, PetscReal share, PetscInt longest, Mat *A, const PetscInt **i, const PetscInt **j)
{
  Mat             B;
  const PetscInt *bi, *bj;
  PetscInt        n, longer = 0;
  PetscBool       done, same, more;

  PetscFunctionBegin;
  PetscCall(BenchGenerate(name, 1, A));
  PetscCall(BenchGenerate(name, 1, &B));
  PetscCall(MatGetRowIJ(*A, 0, PETSC_FALSE, PETSC_FALSE, &n, i, j, &done));
  PetscCall(MatGetRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &bi, &bj, &done));
  PetscCheck(n == m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " rows", name, n);
  PetscCall(PetscArraycmp(*i, bi, m + 1, &same));
  PetscCall(PetscArraycmp(*j, bj, (*i)[m], &more));
  PetscCheck(same && more, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is another matrix the second time", name);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt length   = (*i)[r + 1] - (*i)[r];
    PetscBool      diagonal = length ? PETSC_FALSE : PETSC_TRUE;

    longer += length > split;
    PetscCheck(length <= longest, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " has %" PetscInt_FMT " entries", name, r, length);
    for (PetscInt k = (*i)[r]; k < (*i)[r + 1]; k++) {
      if ((*j)[k] == r) diagonal = PETSC_TRUE;
      PetscCheck(k == (*i)[r] || (*j)[k - 1] < (*j)[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: columns of row %" PetscInt_FMT " are not sorted", name, r);
    }
    PetscCheck(diagonal, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " has no entry on the diagonal", name, r);
  }
  PetscCheck(PetscAbsReal((PetscReal)longer / (PetscReal)m - share) < (PetscReal)0.02, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " of %" PetscInt_FMT " rows have more than %" PetscInt_FMT " entries", name, longer, m, split);
  PetscCall(MatRestoreRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &bi, &bj, &done));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Mat *A, const PetscInt **i, const PetscInt **j)
{
  PetscInt  n;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatRestoreRowIJ(*A, 0, PETSC_FALSE, PETSC_FALSE, &n, i, j, &done));
  PetscCall(MatDestroy(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat             A;
  const PetscInt *i, *j;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());

  /* the three unknowns of a point have their rows alike, in blocks of three columns */
  PetscCall(Generate("points9k_3_66_128_165_.45", 9000, 128, (PetscReal)0.45, 165, &A, &i, &j));
  for (PetscInt r = 0; r < 9000; r++) {
    const PetscInt length = i[r + 1] - i[r], first = r / 3 * 3;

    PetscCheck(length % 3 == 0 && length >= 66, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " has %" PetscInt_FMT " entries", r, length);
    PetscCheck(length == i[first + 1] - i[first], PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " is not as long as row %" PetscInt_FMT, r, first);
    for (PetscInt k = 0; k < length; k++)
      PetscCheck(j[i[r] + k] == j[i[first] + k] && j[i[r] + k] % 3 == k % 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " is not in blocks as row %" PetscInt_FMT, r, first);
  }
  PetscCall(Destroy(&A, &i, &j));

  /* the nearest to a point inside are its neighbours in the grid, of side 20; some rows are empty, those inside as long as drawn */
  PetscCall(Generate("points8k_1_0_7_7_0", 8000, 3, (PetscReal)0.5, 7, &A, &i, &j));
  for (PetscInt r = 0; r < 8000; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const PetscInt inside = r % 20 > 0 && r % 20 < 19 && r / 20 % 20 > 0 && r / 20 % 20 < 19 && r / 400 > 0 && r / 400 < 19, d = PetscAbsInt(r - j[k]);

      PetscCheck(!inside || d == 0 || d == 1 || d == 20 || d == 400, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " has an entry in column %" PetscInt_FMT, r, j[k]);
    }
  }
  PetscCall(Destroy(&A, &i, &j));
  PetscCall(Generate("points8k_1_0_42_81_.015_7k", 8000, 42, (PetscReal)0.015, 81, &A, &i, &j));
  PetscCall(Destroy(&A, &i, &j));

  /* a grid of side 20, all over the columns */
  PetscCall(Generate("shuffled7_20", 8000, 4, (PetscReal)1, 7, &A, &i, &j));
  PetscCheck(i[8000] == 7 * 8000 - 6 * 400, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " entries", i[8000]);
  {
    PetscInt near = 0;

    for (PetscInt r = 0; r < 8000; r++)
      for (PetscInt k = i[r]; k < i[r + 1]; k++) near += PetscAbsInt(r - j[k]) < 1000;
    PetscCheck(near < i[8000] / 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " entries are near the diagonal", near);
  }
  PetscCall(Destroy(&A, &i, &j));

  PetscCall(Generate("cage20k_9_20_30_.1", 20000, 20, (PetscReal)0.1, 30, &A, &i, &j));
  for (PetscInt r = 0; r < 20000; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      PetscInt d = PetscAbsInt(r - j[k]);

      PetscCheck(d <= 2500, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " reaches column %" PetscInt_FMT, r, j[k]);
      while (d && d % 3 == 0) d /= 3;
      PetscCheck(d <= 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " has an entry in column %" PetscInt_FMT, r, j[k]);
    }
  }
  PetscCall(Destroy(&A, &i, &j));

  /* one of each 100 rows has some 400 entries more */
  PetscCall(Generate("circuit20k_4_0_0_100_500", 20000, 200, (PetscReal)0.01, 600, &A, &i, &j));
  for (PetscInt r = 50; r < 20000; r += 100) PetscCheck(i[r + 1] - i[r] > 200, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " has %" PetscInt_FMT " entries", r, i[r + 1] - i[r]);
  PetscCall(Destroy(&A, &i, &j));

  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    output_file: output/empty.out

TEST*/
