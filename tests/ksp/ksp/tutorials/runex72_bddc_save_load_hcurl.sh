#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex72'
testname='runex72_bddc_save_load_hcurl'
label='ksp_ksp_tutorials-ex72_bddc_save_load_hcurl'
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
args='-petsc_ci -pc_type bddc -ksp_type cg -ksp_norm_type natural -ksp_error_if_not_converged -mat_type is -mat_is_load_variableblocksizes -pc_bddc_use_local_mat_graph 0 -test_bddc_save_load -pc_bddc_save bddc_setup.dat -f ${DATAFILESPATH}/matrices/matis/fdm_hcurl_multi_deg3_4x4x4.dat -pc_bddc_load ${DATAFILESPATH}/matrices/matis/bddc_fdm_hcurl_multi_deg3_4x4x4.dat -pc_bddc_levels 2 -pc_bddc_coarsening_ratio 8 -pc_bddc_aggregator_petscpartitioner_type simple'
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



if ! $force; then
    if test -z "${DATAFILESPATH}"; then
        petsc_report_tapoutput "" "${label}" "SKIP Requires DATAFILESPATH"
        total=1; skip=1
        petsc_testend "/work/main/tests" 
        exit
    fi
fi


nsize_in=${nsize:-1 3}


for insize in ${nsize_in}; do

   /usr/bin/rm -f bddc_setup.dat bddc_setup.dat.info bddc_roundtrip.dat bddc_roundtrip.dat.info
   petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args} " ex72_bddc_save_load_hcurl.tmp ${testname}.err "${label}+nsize-${insize}" 
   res=$?

   if test $res = 0; then
      petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex72_matis_bddc_multisub_hcurl_3d_fdm_multilevel.out ex72_bddc_save_load_hcurl.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+nsize-${insize} ""
   else
      petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
   fi

done

petsc_testend "/work/main/tests" 
