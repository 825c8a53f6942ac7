#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex71'
testname='runex71_aij_dmda_preall'
label='ksp_ksp_tutorials-ex71_aij_dmda_preall'
runfiles=''
wPETSC_DIR='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_arch=''
# Must be consistent with gmakefile.test
testlogtapfile=/work/main/tests/test_${petsc_arch}_tap.log
testlogerrfile=/work/main/tests/test_${petsc_arch}_err.log
config_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/config'
filter='sed -e "s/CONVERGED_RTOL iterations 7/CONVERGED_RTOL iterations 6/g"'
filter_output=''
petsc_bindir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib/petsc/bin'
DATAFILESPATH=${DATAFILESPATH:-""}
# -petsc_ci must be a command line argument because if it is from the environment it will be listed by PetscOptionsMonitor()
args='-petsc_ci -pde_type Poisson -dim 1 -cells 6 -pc_type none -ksp_converged_reason -dm_mat_type aij'
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





dm_preallocate_only_in=${dm_preallocate_only:-0 1}
dirichlet_in=${dirichlet:-0 1}
nsize_in=${nsize:-2}


for idm_preallocate_only in ${dm_preallocate_only_in}; do
   for idirichlet in ${dirichlet_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -dm_preallocate_only ${idm_preallocate_only} -dirichlet ${idirichlet}" ex71_aij_dmda_preall.tmp ${testname}.err "${label}+dm_preallocate_only-${idm_preallocate_only}_dirichlet-${idirichlet}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex71_aij_dmda_preall.out ex71_aij_dmda_preall.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+dm_preallocate_only-${idm_preallocate_only}_dirichlet-${idirichlet} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
