#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex70'
testname='runex70_2_cuda_real'
label='mat_tests-ex70_2_cuda_real'
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
args='-petsc_ci -M 7 -N 9 -K 2 -testnest 0'
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
A_mat_type_in=${A_mat_type:-seqdensecuda seqdense}
xgpu_in=${xgpu:-0 1}
bgpu_in=${bgpu:-0 1}
nsize_in=${nsize:-1}


for ilocal in ${local_in}; do
   for iA_mat_type in ${A_mat_type_in}; do
      for ixgpu in ${xgpu_in}; do
         for ibgpu in ${bgpu_in}; do
            for insize in ${nsize_in}; do

               petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -local ${ilocal} -A_mat_type ${iA_mat_type} -xgpu ${ixgpu} -bgpu ${ibgpu}" ex70_2_cuda_real.tmp ${testname}.err "${label}+local-${ilocal}_A_mat_type-${iA_mat_type}_xgpu-${ixgpu}_bgpu-${ibgpu}" 
               res=$?

               if test $res = 0; then
                  petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/mat/tests/output/empty.out ex70_2_cuda_real.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+local-${ilocal}_A_mat_type-${iA_mat_type}_xgpu-${ixgpu}_bgpu-${ibgpu} ""
               else
                  petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
               fi

            done
         done
      done
   done
done

petsc_testend "/work/main/tests" 
