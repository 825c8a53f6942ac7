#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex14'
testname='runex14_multiplicative_cycles'
label='ksp_pc_tests-ex14_multiplicative_cycles'
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
args='-petsc_ci -mg_levels_ksp_type richardson -mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2 -mg_coarse_ksp_type richardson -mg_coarse_pc_type jacobi -mg_coarse_ksp_max_it 4 -mg_coarse_ksp_norm_type none -pc_mg_type multiplicative -pc_mg_multiplicative_cycles 2'
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





distinct_restriction_in=${distinct_restriction:-0 1}
nsize_in=${nsize:-1 2}


for idistinct_restriction in ${distinct_restriction_in}; do
   for insize in ${nsize_in}; do

      petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -distinct_restriction ${idistinct_restriction}" ex14_multiplicative_cycles.tmp ${testname}.err "${label}+distinct_restriction-${idistinct_restriction}_nsize-${insize}" 
      res=$?

      if test $res = 0; then
         petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/pc/tests/output/ex14_1.out ex14_multiplicative_cycles.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+distinct_restriction-${idistinct_restriction}_nsize-${insize} ""
      else
         petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
      fi

   done
done

petsc_testend "/work/main/tests" 
