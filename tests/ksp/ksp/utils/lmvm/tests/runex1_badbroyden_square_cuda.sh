#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex1'
testname='runex1_badbroyden_square_cuda'
label='ksp_ksp_utils_lmvm_tests-ex1_badbroyden_square_cuda'
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
args='-petsc_ci -m 15 -n 15 -B_mat_type lmvmbadbroyden -vec_type cuda'
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





B_mat_lmvm_J0_mat_type_in=${B_mat_lmvm_J0_mat_type:-constantdiagonal diagonal}
B_mat_lmvm_mult_algorithm_in=${B_mat_lmvm_mult_algorithm:-recursive dense compact_dense}
B_mat_lmvm_cache_J0_products_in=${B_mat_lmvm_cache_J0_products:-false true}
nsize_in=${nsize:-2}


for iB_mat_lmvm_J0_mat_type in ${B_mat_lmvm_J0_mat_type_in}; do
   for iB_mat_lmvm_mult_algorithm in ${B_mat_lmvm_mult_algorithm_in}; do
      for iB_mat_lmvm_cache_J0_products in ${B_mat_lmvm_cache_J0_products_in}; do
         for insize in ${nsize_in}; do

            petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -B_mat_lmvm_J0_mat_type ${iB_mat_lmvm_J0_mat_type} -B_mat_lmvm_mult_algorithm ${iB_mat_lmvm_mult_algorithm} -B_mat_lmvm_cache_J0_products ${iB_mat_lmvm_cache_J0_products}" ex1_badbroyden_square_cuda.tmp ${testname}.err "${label}+B_mat_lmvm_J0_mat_type-${iB_mat_lmvm_J0_mat_type}_B_mat_lmvm_mult_algorithm-${iB_mat_lmvm_mult_algorithm}_B_mat_lmvm_cache_J0_products-${iB_mat_lmvm_cache_J0_products}" 
            res=$?

            if test $res = 0; then
               petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/utils/lmvm/tests/output/empty.out ex1_badbroyden_square_cuda.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+B_mat_lmvm_J0_mat_type-${iB_mat_lmvm_J0_mat_type}_B_mat_lmvm_mult_algorithm-${iB_mat_lmvm_mult_algorithm}_B_mat_lmvm_cache_J0_products-${iB_mat_lmvm_cache_J0_products} ""
            else
               petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
            fi

         done
      done
   done
done

petsc_testend "/work/main/tests" 
