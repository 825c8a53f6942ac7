#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex102'
testname='runex102_cuda'
label='mat_tests-ex102_cuda'
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
args='-petsc_ci -A_mat_type aijcusparse -U_mat_type densecuda -V_mat_type densecuda'
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





low_rank_in=${low_rank:-0 1}
use_c_in=${use_c:-0 1}
nsize_in=${nsize:-1 2}


for ilow_rank in ${low_rank_in}; do
   for iuse_c in ${use_c_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -low_rank ${ilow_rank} -use_c ${iuse_c}" ex102_cuda.tmp ${testname}.err "${label}+low_rank-${ilow_rank}_use_c-${iuse_c}_nsize-${insize}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/mat/tests/output/empty.out ex102_cuda.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+low_rank-${ilow_rank}_use_c-${iuse_c}_nsize-${insize} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
