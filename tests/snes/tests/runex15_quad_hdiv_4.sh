#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex15'
testname='runex15_quad_hdiv_4'
label='snes_tests-ex15_quad_hdiv_4'
runfiles=''
wPETSC_DIR='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_arch=''
# Must be consistent with gmakefile.test
testlogtapfile=/work/main/tests/test_${petsc_arch}_tap.log
testlogerrfile=/work/main/tests/test_${petsc_arch}_err.log
config_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/config'
filter=''
filter_output=''
petsc_bindir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib/petsc/bin'
DATAFILESPATH=${DATAFILESPATH:-""}
# -petsc_ci must be a command line argument because if it is from the environment it will be listed by PetscOptionsMonitor()
args='-petsc_ci -dm_plex_simplex 0 -dm_plex_box_bd periodic,none -dm_plex_box_faces 3,1 -dm_plex_box_lower 0,-1 -dm_plex_box_upper 6.283185307179586,1 -phi_petscspace_degree 0 -phi_petscdualspace_lagrange_use_moments -phi_petscdualspace_lagrange_moment_order 2 -q_petscfe_default_quadrature_order 1 -q_petscspace_type sum -q_petscspace_variables 2 -q_petscspace_components 2 -q_petscspace_sum_spaces 2 -q_petscspace_sum_concatenate true -q_sumcomp_0_petscspace_variables 2 -q_sumcomp_0_petscspace_type tensor -q_sumcomp_0_petscspace_tensor_spaces 2 -q_sumcomp_0_petscspace_tensor_uniform false -q_sumcomp_0_tensorcomp_0_petscspace_degree 1 -q_sumcomp_0_tensorcomp_1_petscspace_degree 0 -q_sumcomp_1_petscspace_variables 2 -q_sumcomp_1_petscspace_type tensor -q_sumcomp_1_petscspace_tensor_spaces 2 -q_sumcomp_1_petscspace_tensor_uniform false -q_sumcomp_1_tensorcomp_0_petscspace_degree 0 -q_sumcomp_1_tensorcomp_1_petscspace_degree 1 -q_petscdualspace_form_degree -1 -q_petscdualspace_order 1 -q_petscdualspace_lagrange_trimmed true -ksp_error_if_not_converged -pc_type fieldsplit -pc_fieldsplit_type schur -pc_fieldsplit_schur_fact_type full -pc_fieldsplit_schur_precondition full -sol_type trigx -fieldsplit_q_pc_type lu -fieldsplit_phi_pc_type svd'
diff_args=''
timeoutfactor=1
export PETSC_OPTIONS="${PETSC_OPTIONS} -check_pointer_intensity 0 -error_output_stdout -malloc_dump -checkfunctionlist -nox_warning"

mpiexec=${PETSCMPIEXEC:-"/usr/bin/mpiexec"}
diffexec=${PETSCDIFF:-"${petsc_bindir}/petscdiff"}
mpiexec_tail=''

. "${config_dir}/petsc_harness.sh"

# The diff flags come from script arguments
diff_exe="${diffexec} ${diff_flags} ${diff_args}"
mpiexec="${mpiexec} ${mpiexec_flags}"





nsize_in=${nsize:-1}


for insize in ${nsize_in}; do

   petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args} " ex15_quad_hdiv_4.tmp ${testname}.err "${label}" 
   res=$?

   if test $res = 0; then
      petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/snes/tests/output/empty.out ex15_quad_hdiv_4.tmp" diff-${testname}.out diff-${testname}.out diff-${label} ""
   else
      petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
   fi

done

petsc_testend "/work/main/tests" 
