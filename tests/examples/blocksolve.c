/* SPDX-License-Identifier: BSD-2-Clause */
/* The example, with its own main(): one block is one product, where single columns would be as many of another event */
#include "../../examples/blocksolve.c"

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    test:
      suffix: gamg
      command: ${GALLOP_TESTS}/examples/compare -mat_type TILEDSPMMMult ${GALLOP_MPIEXEC} -n ${insize} ${executable} -mat_tiledspmm_least 2 -side 30 -mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6 -mg_levels_pc_type jacobi
    test:
      suffix: bjacobi
      command: ${GALLOP_TESTS}/examples/compare -mat_type TILEDSPMMMult ${GALLOP_MPIEXEC} -n ${insize} ${executable} -mat_tiledspmm_least 2 -side 8 -columns 20 -pc_type bjacobi -ksp_richardson_scale 1

TEST*/
