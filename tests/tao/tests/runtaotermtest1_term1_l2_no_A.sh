#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../taotermtest1'
testname='runtaotermtest1_term1_l2_no_A'
label='tao_tests-taotermtest1_term1_l2_no_A'
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
args='-petsc_ci -tao_type nls -use_term1 -term1_has_A 0 -reg1_tao_term_type halfl2squared'
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





term1_has_params_in=${term1_has_params:-0 1}
nsize_in=${nsize:-1}


for iterm1_has_params in ${term1_has_params_in}; do
   for insize in ${nsize_in}; do

      petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -term1_has_params ${iterm1_has_params} -term1_scale 0.12" taotermtest1_term1_l2_no_A.tmp ${testname}.err "${label}+a+term1_has_params-${iterm1_has_params}" 
      res=$?

      if test $res = 0; then
         petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/tao/tests/output/taotermtest1.out taotermtest1_term1_l2_no_A.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+a+term1_has_params-${iterm1_has_params} ""
      else
         petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
      fi

   done
done

term1_has_params_in=${term1_has_params:-0 1}
nsize_in=${nsize:-1}


for iterm1_has_params in ${term1_has_params_in}; do
   for insize in ${nsize_in}; do

      petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -term1_has_params ${iterm1_has_params} -tao_term_sum_reg1_scale 0.12 -term1_scale_callback 0.12" taotermtest1_term1_l2_no_A.tmp ${testname}.err "${label}+b+term1_has_params-${iterm1_has_params}" 
      res=$?

      if test $res = 0; then
         petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/tao/tests/output/taotermtest1.out taotermtest1_term1_l2_no_A.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+b+term1_has_params-${iterm1_has_params} ""
      else
         petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
      fi

   done
done

petsc_testend "/work/main/tests" 
