#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex4'
testname='runex4_0'
label='dm_dt_fe_tests-ex4_0'
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
args='-petsc_ci -dm_plex_box_faces 3,3,3 -dm_plex_simplex 0 -petscpartitioner_type simple'
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





dm_plex_dim_in=${dm_plex_dim:-2 3}
f0_petscspace_degree_in=${f0_petscspace_degree:-0 1}
f1_petscspace_degree_in=${f1_petscspace_degree:-0 1}
f2_petscspace_degree_in=${f2_petscspace_degree:-0 1}
nsize_in=${nsize:-1 2}


for idm_plex_dim in ${dm_plex_dim_in}; do
   for if0_petscspace_degree in ${f0_petscspace_degree_in}; do
      for if1_petscspace_degree in ${f1_petscspace_degree_in}; do
         for if2_petscspace_degree in ${f2_petscspace_degree_in}; do
            for insize in ${nsize_in}; do

               petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -dm_plex_dim ${idm_plex_dim} -f0_petscspace_degree ${if0_petscspace_degree} -f1_petscspace_degree ${if1_petscspace_degree} -f2_petscspace_degree ${if2_petscspace_degree}" ex4_0.tmp ${testname}.err "${label}+dm_plex_dim-${idm_plex_dim}_f0_petscspace_degree-${if0_petscspace_degree}_f1_petscspace_degree-${if1_petscspace_degree}_f2_petscspace_degree-${if2_petscspace_degree}_nsize-${insize}" 
               res=$?

               if test $res = 0; then
                  petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/dm/dt/fe/tests/output/empty.out ex4_0.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+dm_plex_dim-${idm_plex_dim}_f0_petscspace_degree-${if0_petscspace_degree}_f1_petscspace_degree-${if1_petscspace_degree}_f2_petscspace_degree-${if2_petscspace_degree}_nsize-${insize} ""
               else
                  petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
               fi

            done
         done
      done
   done
done

petsc_testend "/work/main/tests" 
