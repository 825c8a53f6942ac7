#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex18'
testname='runex18_4_tet_test_orient'
label='dm_impls_plex_tests-ex18_4_tet_test_orient'
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
args='-petsc_ci -dim 3 -distribute 0 -dm_plex_check_all'
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





rotate_interface_0_in=${rotate_interface_0:-0 1 2 11 12 13}
rotate_interface_1_in=${rotate_interface_1:-0 1 2 11 12 13}
nsize_in=${nsize:-2}


for irotate_interface_0 in ${rotate_interface_0_in}; do
   for irotate_interface_1 in ${rotate_interface_1_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -rotate_interface_0 ${irotate_interface_0} -rotate_interface_1 ${irotate_interface_1}" ex18_4_tet_test_orient.tmp ${testname}.err "${label}+rotate_interface_0-${irotate_interface_0}_rotate_interface_1-${irotate_interface_1}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/dm/impls/plex/tests/output/ex18_4_tet_test_orient.out ex18_4_tet_test_orient.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+rotate_interface_0-${irotate_interface_0}_rotate_interface_1-${irotate_interface_1} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
