/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What -gallop_view tells of the library, PETSc, MPI and the GPUs.\n\n";

#include "../galloptest.h"

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(GallopInitializePackage()); /* the view comes once */
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/view.out
    nsize: {{1 2}}
    test:
      suffix: linked
      args: -gallop_view
      filter: ${GALLOP_TESTS}/sys/checkview
    test:
      suffix: loaded
      requires: dynamic_libraries
      args: -dll_append ${GALLOP_LIB} -gallop_view
      filter: ${GALLOP_TESTS}/sys/checkview
    test:
      suffix: host
      requires: cuda
      args: -gallop_view -device_enable none
      filter: ${GALLOP_TESTS}/sys/checkview host

TEST*/
