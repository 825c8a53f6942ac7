#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex17'
testname='runex17_ge_q1_gmg'
label='snes_tutorials-ex17_ge_q1_gmg'
runfiles=''
wPETSC_DIR='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt'
petsc_arch=''
# Must be consistent with gmakefile.test
testlogtapfile=/work/main/tests/test_${petsc_arch}_tap.log
testlogerrfile=/work/main/tests/test_${petsc_arch}_err.log
config_dir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/config'
filter='grep -v "variant HERMITIAN"'
filter_output=''
petsc_bindir='/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib/petsc/bin'
DATAFILESPATH=${DATAFILESPATH:-""}
# -petsc_ci must be a command line argument because if it is from the environment it will be listed by PetscOptionsMonitor()
args='-petsc_ci -dm_plex_dim 3 -dm_plex_simplex 0 -dm_plex_box_lower -5,-5,-0.25 -dm_plex_box_upper 5,5,0.25 -dm_plex_box_faces 5,5,2 -dm_plex_separate_marker -dm_refine 0 -petscpartitioner_type simple -sol_type elas_ge -displacement_petscspace_degree 1 -dm_plex_box_faces 2,2 -dm_refine_hierarchy 3 -snes_max_it 2 -snes_rtol 1.e-10 -ksp_type cg -ksp_rtol 1.e-10 -ksp_max_it 100 -ksp_norm_type unpreconditioned -pc_type mg -pc_mg_type full -mg_levels_ksp_max_it 4 -mg_levels_esteig_ksp_type cg -mg_levels_esteig_ksp_max_it 10 -mg_levels_ksp_chebyshev_esteig 0,0.1,0,1.1 -mg_levels_pc_type jacobi'
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





nsize_in=${nsize:-1}


for insize in ${nsize_in}; do

   petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args} " ex17_ge_q1_gmg.tmp ${testname}.err "${label}" 
   res=$?

   if test $res = 0; then
      petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/snes/tutorials/output/empty.out ex17_ge_q1_gmg.tmp" diff-${testname}.out diff-${testname}.out diff-${label} ""
   else
      petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
   fi

done

petsc_testend "/work/main/tests" 
