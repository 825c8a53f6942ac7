/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What -help and -citations say of a Gallop type.\n\n";

#include "../galloptest.h"

int main(int argc, char **argv)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: help
    args: -help
    filter: grep -o "mat_evchyb_[a-z_]*:.*" | sed "s/:.*(/ (/" | sort -u

  test:
    suffix: help_dense
    args: -help
    filter: grep -o "mat_tiledspmm_[a-z_]*:.*" | sed "s/:.*(/ (/" | sort -u

  test:
    suffix: citations
    nsize: {{1 2}}
    args: -citations
    filter: grep -A 3 GuoGroppOlson2016
    output_file: output/options_citations.out

TEST*/
