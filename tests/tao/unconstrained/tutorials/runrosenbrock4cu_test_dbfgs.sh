#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../rosenbrock4cu'
testname='runrosenbrock4cu_test_dbfgs'
label='tao_unconstrained_tutorials-rosenbrock4cu_test_dbfgs'
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
args='-petsc_ci -mat_type aijcusparse -n 10 -tao_type bqnktr -test_lmvm -tao_max_it 10 -tao_bqnk_mat_type lmvmdbfgs -tao_bqnk_mat_lmvm_scale_type none'
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





tao_bqnk_mat_lbfgs_type_in=${tao_bqnk_mat_lbfgs_type:-inplace reorder}
tao_bqnk_mat_lbfgs_recursive_in=${tao_bqnk_mat_lbfgs_recursive:-0 1}
nsize_in=${nsize:-1 2 3}


for itao_bqnk_mat_lbfgs_type in ${tao_bqnk_mat_lbfgs_type_in}; do
   for itao_bqnk_mat_lbfgs_recursive in ${tao_bqnk_mat_lbfgs_recursive_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -tao_bqnk_mat_lbfgs_type ${itao_bqnk_mat_lbfgs_type} -tao_bqnk_mat_lbfgs_recursive ${itao_bqnk_mat_lbfgs_recursive}" rosenbrock4cu_test_dbfgs.tmp ${testname}.err "${label}+tao_bqnk_mat_lbfgs_type-${itao_bqnk_mat_lbfgs_type}_tao_bqnk_mat_lbfgs_recursive-${itao_bqnk_mat_lbfgs_recursive}_nsize-${insize}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/tao/unconstrained/tutorials/output/rosenbrock1_14.out rosenbrock4cu_test_dbfgs.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+tao_bqnk_mat_lbfgs_type-${itao_bqnk_mat_lbfgs_type}_tao_bqnk_mat_lbfgs_recursive-${itao_bqnk_mat_lbfgs_recursive}_nsize-${insize} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
