#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex3span'
testname='runex3span_fin'
label='ts_event_tests-ex3span_fin'
runfiles=''
wPETSC_DIR='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_arch=''
# Must be consistent with gmakefile.test
testlogtapfile=/work/main/tests/test_${petsc_arch}_tap.log
testlogerrfile=/work/main/tests/test_${petsc_arch}_err.log
config_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/config'
filter='grep "Final time ="'
filter_output='grep "Final time ="'
petsc_bindir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib/petsc/bin'
DATAFILESPATH=${DATAFILESPATH:-""}
# -petsc_ci must be a command line argument because if it is from the environment it will be listed by PetscOptionsMonitor()
args='-petsc_ci -ts_event_dt_min 1e-6 -dtpost 0.1125 -D 0.0025 -ts_time_step 0.3025'
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





ts_max_time_in=${ts_max_time:-8.21 8.99 9 9.04 9.05 9.06 9.21 9.99 12}
ts_adapt_type_in=${ts_adapt_type:-none basic}
dir_in=${dir:-0 -1 1}
ts_type_in=${ts_type:-rk bdf}
nsize_in=${nsize:-2}


for its_max_time in ${ts_max_time_in}; do
   for its_adapt_type in ${ts_adapt_type_in}; do
      for idir in ${dir_in}; do
         for its_type in ${ts_type_in}; do
            for insize in ${nsize_in}; do

               petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -ts_max_time ${its_max_time} -ts_adapt_type ${its_adapt_type} -dir ${idir} -ts_type ${its_type}" ex3span_fin.tmp ${testname}.err "${label}+ts_max_time-${its_max_time}_ts_adapt_type-${its_adapt_type}_dir-${idir}_ts_type-${its_type}" 
               res=$?

               if test $res = 0; then
                  petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ts/event/tests/output/ex3span_fin.out ex3span_fin.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+ts_max_time-${its_max_time}_ts_adapt_type-${its_adapt_type}_dir-${idir}_ts_type-${its_type} ""
               else
                  petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
               fi

            done
         done
      done
   done
done

petsc_testend "/work/main/tests" 
