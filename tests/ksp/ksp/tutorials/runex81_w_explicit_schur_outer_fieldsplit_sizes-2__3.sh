#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex81'
testname='runex81_w_explicit_schur_outer_fieldsplit_sizes-2__3'
label='ksp_ksp_tutorials-ex81_w_explicit_schur_outer_fieldsplit_sizes-2__3'
runfiles=''
wPETSC_DIR='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_arch=''
# Must be consistent with gmakefile.test
testlogtapfile=/work/main/tests/test_${petsc_arch}_tap.log
testlogerrfile=/work/main/tests/test_${petsc_arch}_err.log
config_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/config'
filter='sed -e "s/seq/mpi/g" -e "s/CONVERGED_ATOL/CONVERGED_RTOL/g" -e "s/ 1 MPI process/ 3 MPI processes/g" -e "s/iterations [1-2]/iterations 1/g" -e "s/hermitiantranspose/transpose/g"'
filter_output=''
petsc_bindir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib/petsc/bin'
DATAFILESPATH=${DATAFILESPATH:-""}
# -petsc_ci must be a command line argument because if it is from the environment it will be listed by PetscOptionsMonitor()
args='-petsc_ci -ksp_view_mat -pc_type fieldsplit -ksp_converged_reason -fieldsplit_pc_type jacobi -pc_fieldsplit_type schur -pc_fieldsplit_schur_fact_type full -pc_fieldsplit_schur_precondition full -outer_fieldsplit_sizes 2,3'
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





nsize_in=${nsize:-1 3}


for insize in ${nsize_in}; do

   petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args} " ex81_w_explicit_schur_outer_fieldsplit_sizes-2__3.tmp ${testname}.err "${label}+nsize-${insize}" 
   res=$?

   if test $res = 0; then
      petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex81_w_explicit_schur_outer_fieldsplit_sizes-2__3.out ex81_w_explicit_schur_outer_fieldsplit_sizes-2__3.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+nsize-${insize} ""
   else
      petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
   fi

done

petsc_testend "/work/main/tests" 
