#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex70'
testname='runex70_1_cuda'
label='mat_tests-ex70_1_cuda'
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
args='-petsc_ci '
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





local_in=${local:-0 1}
xgpu_in=${xgpu:-0 1}
bgpu_in=${bgpu:-0 1}
A_mat_type_in=${A_mat_type:-seqaijcusparse seqaij}
testshellops_in=${testshellops:-0 1}
nsize_in=${nsize:-1}


for ilocal in ${local_in}; do
   for ixgpu in ${xgpu_in}; do
      for ibgpu in ${bgpu_in}; do
         for iA_mat_type in ${A_mat_type_in}; do
            for itestshellops in ${testshellops_in}; do
               for insize in ${nsize_in}; do

                  petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -local ${ilocal} -xgpu ${ixgpu} -bgpu ${ibgpu} -A_mat_type ${iA_mat_type} -testshellops ${itestshellops}" ex70_1_cuda.tmp ${testname}.err "${label}+local-${ilocal}_xgpu-${ixgpu}_bgpu-${ibgpu}_A_mat_type-${iA_mat_type}_testshellops-${itestshellops}" 
                  res=$?

                  if test $res = 0; then
                     petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/mat/tests/output/empty.out ex70_1_cuda.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+local-${ilocal}_xgpu-${ixgpu}_bgpu-${ibgpu}_A_mat_type-${iA_mat_type}_testshellops-${itestshellops} ""
                  else
                     petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
                  fi

               done
            done
         done
      done
   done
done

petsc_testend "/work/main/tests" 
