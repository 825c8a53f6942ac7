#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex3span'
testname='runex3span_3none'
label='ts_event_tests-ex3span_3none'
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
args='-petsc_ci -ts_event_dt_min 1e-6 -ts_adapt_type none -dir 0 -ts_event_post_event_second_step 0.12'
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





ts_event_post_event_step_in=${ts_event_post_event_step:--1 0.11}
dt2_at6_in=${dt2_at6:--2 0.08 0.15}
nsize_in=${nsize:-3}


for its_event_post_event_step in ${ts_event_post_event_step_in}; do
   for idt2_at6 in ${dt2_at6_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -ts_event_post_event_step ${its_event_post_event_step} -dt2_at6 ${idt2_at6}" ex3span_3none.tmp ${testname}.err "${label}+ts_event_post_event_step-${its_event_post_event_step}_dt2_at6-${idt2_at6}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ts/event/tests/output/ex3span_3none.out ex3span_3none.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+ts_event_post_event_step-${its_event_post_event_step}_dt2_at6-${idt2_at6} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
