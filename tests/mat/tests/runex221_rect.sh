#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex221'
testname='runex221_rect'
label='mat_tests-ex221_rect'
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
args='-petsc_ci -loop 3'
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





keep_in=${keep:-0 1}
M_in=${M:-12 19}
N_in=${N:-19 12}
submat_in=${submat:-0 1}
test_axpy_different_in=${test_axpy_different:-0 1}
nsize_in=${nsize:-1 3}


for ikeep in ${keep_in}; do
   for iM in ${M_in}; do
      for iN in ${N_in}; do
         for isubmat in ${submat_in}; do
            for itest_axpy_different in ${test_axpy_different_in}; do
               for insize in ${nsize_in}; do

                  petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -keep ${ikeep} -M ${iM} -N ${iN} -submat ${isubmat} -test_axpy_different ${itest_axpy_different}" ex221_rect.tmp ${testname}.err "${label}+keep-${ikeep}_M-${iM}_N-${iN}_submat-${isubmat}_test_axpy_different-${itest_axpy_different}_nsize-${insize}" 
                  res=$?

                  if test $res = 0; then
                     petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/mat/tests/output/empty.out ex221_rect.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+keep-${ikeep}_M-${iM}_N-${iN}_submat-${isubmat}_test_axpy_different-${itest_axpy_different}_nsize-${insize} ""
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
