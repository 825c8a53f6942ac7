/* SPDX-License-Identifier: BSD-2-Clause */
/* The example in C, with its own main(), and those in Python and Fortran */
#include "../../examples/solve.c"

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2}}
    test:
      suffix: c
      command: ${GALLOP_TESTS}/examples/compare -mat_type EVCHYBMult ${GALLOP_MPIEXEC} -n ${insize} ${executable} -f ${GALLOP_TESTS}/../examples/matrices/bcsstk16.mtx.gz -ksp_type cg -pc_type jacobi
    test:
      suffix: python
      command: ${GALLOP_TESTS}/examples/with-python ${label} ${GALLOP_TESTS}/examples/compare -mat_type EVCHYBMult ${GALLOP_MPIEXEC} -n ${insize} PYTHON ${GALLOP_TESTS}/../examples/solve.py -side 40 -ksp_type cg -pc_type jacobi
    test:
      suffix: fortran
      command: ${GALLOP_TESTS}/examples/with-fortran ${label} ${GALLOP_TESTS}/../examples/solve.F90 ${GALLOP_TESTS}/examples/compare -mat_type EVCHYBMult ${GALLOP_MPIEXEC} -n ${insize} FORTRAN -dll_append ${GALLOP_LIB} -side 40 -ksp_type cg -pc_type jacobi

  test:
    suffix: pip
    output_file: output/empty.out
    command: ${GALLOP_TESTS}/examples/with-python ${label} ${GALLOP_TESTS}/examples/pip ${label} PYTHON

TEST*/
