/* SPDX-License-Identifier: BSD-2-Clause */
/* PETSc's own example, as installed and with its own main(): -dll_append brings matrix type and preconditioner */
#include <ksp/ksp/tutorials/ex2.c>

/*TEST

  test:
    nsize: {{1 4}}
    requires: dynamic_libraries !single
    args: -dll_append ${GALLOP_LIB} -mat_type evchyb -m 30 -n 20 -ksp_type preonly -pc_type gallopreorder -reorder_ksp_type cg -reorder_pc_type jacobi -reorder_ksp_rtol 1e-13 -ksp_view
    filter: grep -o -e "type: gallopreorder" -e "in the order of the format" -e "KSP Object: (reorder_)" -e "type: jacobi" -e "type: [a-z]*aijevchyb" -e "error [0-9.e+-]* iterations 1" | sed -e "s/seqaij/aij/" -e "s/mpiaij/aij/" -e "s/error .*e-1[0-9]/error small/"

TEST*/
