/* SPDX-License-Identifier: BSD-2-Clause */
/* The example, with its own main(). It knows nothing of the library, which comes by -dll_append. */
#include "../../examples/nonlinear.c"

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    test:
      suffix: jacobi
      command: ${GALLOP_TESTS}/examples/compare -dm_mat_type EVCHYBMult ${GALLOP_MPIEXEC} -n ${insize} ${executable} -dll_append ${GALLOP_LIB} -da_grid_x 40 -da_grid_y 30 -ksp_type cg -pc_type jacobi
    test:
      suffix: default
      command: ${GALLOP_TESTS}/examples/compare -dm_mat_type EVCHYBMult ${GALLOP_MPIEXEC} -n ${insize} ${executable} -dll_append ${GALLOP_LIB}

TEST*/
