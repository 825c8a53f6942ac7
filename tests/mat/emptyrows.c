/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A matrix of many rows and columns without entries: what its format takes on the host, while it is built.\n\n";

#include "../galloptest.h"
#include <sys/resource.h>
#include <unistd.h>

/*
  A product that builds the format may take bytes more of address space for each row, and some for all. FASTLOAD needs three integers for each column: the sorted columns, how many entries they have and,
  while they are sorted, where those of a length begin.
*/
static PetscErrorCode ProductWithin(Mat A, Vec x, Vec y, PetscInt bytes)
{
  unsigned long  pages = 0;
  struct rlimit  saved, limit;
  PetscInt       m;
  PetscErrorCode ierr;
  FILE          *fp = fopen("/proc/self/statm", "r");

  PetscFunctionBegin;
  PetscCheck(fp && fscanf(fp, "%lu", &pages) == 1, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "no /proc/self/statm");
  (void)fclose(fp);
  PetscCall(MatGetSize(A, &m, NULL));
  (void)getrlimit(RLIMIT_AS, &saved);
  limit          = saved;
  limit.rlim_cur = (rlim_t)pages * sysconf(_SC_PAGESIZE) + (rlim_t)bytes * m + 16 * 1048576;
  PetscCheck(!setrlimit(RLIMIT_AS, &limit), PETSC_COMM_SELF, PETSC_ERR_SYS, "no limit set");
  ierr = MatMult(A, x, y);
  (void)setrlimit(RLIMIT_AS, &saved);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt      n = 8000000, rows[] = {3, n - 7}, cols[] = {n - 2, 5};
  const PetscScalar   values[] = {2, 3};
  PetscInt            bytes    = 1;
  Mat                 A;
  Vec                 x, y;
  MatGallopStatistics s;
  const PetscScalar  *a;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-bytes", &bytes, NULL));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, n, n, n, n));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatSetPreallocationCOO(A, 2, (PetscInt *)rows, (PetscInt *)cols));
  PetscCall(MatSetValuesCOO(A, values, INSERT_VALUES));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(y, 7.0));
  PetscCall(ProductWithin(A, x, y, bytes));
  PetscCall(VecGetArrayRead(y, &a));
  for (PetscInt r = 0; r < n; r++) {
    const PetscScalar should = r == rows[0] ? values[0] : r == rows[1] ? values[1] : 0;

    PetscCheck(a[r] == should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "row %" PetscInt_FMT " is %g", r, (double)PetscRealPart(a[r]));
  }
  PetscCall(VecRestoreArrayRead(y, &a));
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCheck(s.products_host == 1 && !s.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s did not compute the product", TestFormat(""));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: evchyb
      args: -format evchyb
    test:
      suffix: csroverlap
      args: -format csroverlap
    test:
      suffix: hbp
      args: -format hbp
    test:
      requires: !defined(PETSC_USE_64BIT_INDICES)
      suffix: fastload
      args: -format fastload -bytes 12
    test:
      requires: defined(PETSC_USE_64BIT_INDICES)
      suffix: fastload_int64
      args: -format fastload -bytes 24

TEST*/
