#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex24'
testname='runex24_2d_rt1_p0_bddc'
label='snes_tutorials-ex24_2d_rt1_p0_bddc'
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
args='-petsc_ci -sol_type quadratic -potential_petscspace_degree 0 -potential_petscdualspace_lagrange_use_moments -potential_petscdualspace_lagrange_moment_order 2 -field_petscfe_default_quadrature_order 1 -field_petscspace_degree 1 -field_petscspace_type sum -field_petscspace_variables 2 -field_petscspace_components 2 -field_petscspace_sum_spaces 2 -field_petscspace_sum_concatenate true -field_sumcomp_0_petscspace_variables 2 -field_sumcomp_0_petscspace_type tensor -field_sumcomp_0_petscspace_tensor_spaces 2 -field_sumcomp_0_petscspace_tensor_uniform false -field_sumcomp_0_tensorcomp_0_petscspace_degree 1 -field_sumcomp_0_tensorcomp_1_petscspace_degree 0 -field_sumcomp_1_petscspace_variables 2 -field_sumcomp_1_petscspace_type tensor -field_sumcomp_1_petscspace_tensor_spaces 2 -field_sumcomp_1_petscspace_tensor_uniform false -field_sumcomp_1_tensorcomp_0_petscspace_degree 0 -field_sumcomp_1_tensorcomp_1_petscspace_degree 1 -field_petscdualspace_form_degree -1 -field_petscdualspace_order 1 -field_petscdualspace_lagrange_trimmed true -dm_plex_box_faces 3,3 dm_refine 1 -dm_plex_simplex 0 -dmsnes_check .001 -snes_error_if_not_converged -ksp_error_if_not_converged -ksp_type cg -petscpartitioner_type simple -dm_mat_type is -pc_type bddc -pc_bddc_use_local_mat_graph 0 -pc_bddc_benign_trick -pc_bddc_nonetflux -pc_bddc_detect_disconnected -pc_bddc_use_qr_single -pc_bddc_coarse_redundant_pc_type svd -pc_bddc_neumann_pc_type svd -pc_bddc_dirichlet_pc_type svd'
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





nsize_in=${nsize:-9}


for insize in ${nsize_in}; do

   petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args} " ex24_2d_rt1_p0_bddc.tmp ${testname}.err "${label}" 
   res=$?

   if test $res = 0; then
      petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/snes/tutorials/output/ex24_2d_rt1_p0_bddc.out ex24_2d_rt1_p0_bddc.tmp" diff-${testname}.out diff-${testname}.out diff-${label} ""
   else
      petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
   fi

done

petsc_testend "/work/main/tests" 
