#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex19'
testname='runex19_1_b'
label='vec_is_sf_tests-ex19_1_b'
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
args='-petsc_ci -localmode USE_POINTER'
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





remotemode_in=${remotemode:-COPY_VALUES OWN_POINTER USE_POINTER}
n_leaves_per_rank_in=${n_leaves_per_rank:-0 5}
leave_step_in=${leave_step:-1 3}
nsize_in=${nsize:-1 3}


for iremotemode in ${remotemode_in}; do
   for in_leaves_per_rank in ${n_leaves_per_rank_in}; do
      for ileave_step in ${leave_step_in}; do
         for insize in ${nsize_in}; do

            petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -remotemode ${iremotemode} -n_leaves_per_rank ${in_leaves_per_rank} -leave_step ${ileave_step}" ex19_1_b.tmp ${testname}.err "${label}+remotemode-${iremotemode}_n_leaves_per_rank-${in_leaves_per_rank}_leave_step-${ileave_step}_nsize-${insize}" 
            res=$?

            if test $res = 0; then
               petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/vec/is/sf/tests/output/empty.out ex19_1_b.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+remotemode-${iremotemode}_n_leaves_per_rank-${in_leaves_per_rank}_leave_step-${ileave_step}_nsize-${insize} ""
            else
               petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
            fi

         done
      done
   done
done

petsc_testend "/work/main/tests" 
