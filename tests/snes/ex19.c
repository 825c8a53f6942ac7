/* SPDX-License-Identifier: BSD-2-Clause */
/* PETSc's own driven cavity, as installed and with its own main(): compare runs it with each matrix type */
#include <snes/tutorials/ex19.c>

/*TEST

  test:
    suffix: mg
    requires: !single
    nsize: {{1 2 4}}
    command: ${GALLOP_TESTS}/snes/compare -dm_mat_type ${GALLOP_MPIEXEC} -n ${insize} ${executable} -da_refine 3 -pc_type mg
    output_file: output/empty.out

TEST*/
