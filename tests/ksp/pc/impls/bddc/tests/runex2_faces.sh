#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex2'
testname='runex2_faces'
label='ksp_pc_impls_bddc_tests-ex2_faces'
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
args='-petsc_ci -ksp_error_if_not_converged -ksp_rtol 1e-12 -order 2 -faces -permuted -distributed_primal'
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





pc_bddc_nedelec_field_primal_in=${pc_bddc_nedelec_field_primal:-0 1}
local_primal_in=${local_primal:-0 1}
nsize_in=${nsize:-3}


for ipc_bddc_nedelec_field_primal in ${pc_bddc_nedelec_field_primal_in}; do
   for ilocal_primal in ${local_primal_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -pc_bddc_nedelec_field_primal ${ipc_bddc_nedelec_field_primal} -local_primal ${ilocal_primal}" ex2_faces.tmp ${testname}.err "${label}+pc_bddc_nedelec_field_primal-${ipc_bddc_nedelec_field_primal}_local_primal-${ilocal_primal}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/pc/impls/bddc/tests/output/empty.out ex2_faces.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+pc_bddc_nedelec_field_primal-${ipc_bddc_nedelec_field_primal}_local_primal-${ilocal_primal} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
