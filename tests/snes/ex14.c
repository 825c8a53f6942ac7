/* SPDX-License-Identifier: BSD-2-Clause */
/* PETSc's own Bratu problem, as installed and with its own main(): compare runs it with each matrix type */
#include <snes/tutorials/ex14.c>

/*TEST

  test:
    suffix: jacobi
    requires: !single
    nsize: {{1 2 4}}
    command: ${GALLOP_TESTS}/snes/compare -mat_type ${GALLOP_MPIEXEC} -n ${insize} ${executable} -da_grid_x 12 -da_grid_y 12 -da_grid_z 12 -pc_type jacobi
    output_file: output/empty.out

TEST*/
