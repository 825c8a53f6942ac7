#!/usr/bin/env bash
# This script was created by gmakegentest.py





# PATH for DLLs on windows
PATH="$PATH":"/root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/lib"

executable='../ex74'
testname='runex74_3'
label='ksp_ksp_tutorials-ex74_3'
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
args='-petsc_ci -a 1 -dt .33 -niter 3 -imax 40 -ksp_monitor -pc_type pbjacobi -ksp_atol 1e-6 -irk_type gauss -irk_nstages 4 -ksp_gmres_restart 100 -physics_type advection'
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





vec_mdot_use_gemv_in=${vec_mdot_use_gemv:-0 1}
vec_maxpy_use_gemv_in=${vec_maxpy_use_gemv:-0 1}
nsize_in=${nsize:-1}


for ivec_mdot_use_gemv in ${vec_mdot_use_gemv_in}; do
   for ivec_maxpy_use_gemv in ${vec_maxpy_use_gemv_in}; do
      for insize in ${nsize_in}; do

         petsc_testrun "${mpiexec} -n ${insize} ${mpiexec_tail} ${executable} ${args}  -vec_mdot_use_gemv ${ivec_mdot_use_gemv} -vec_maxpy_use_gemv ${ivec_maxpy_use_gemv} " ex74_3.tmp ${testname}.err "${label}+a+vec_mdot_use_gemv-${ivec_mdot_use_gemv}_vec_maxpy_use_gemv-${ivec_maxpy_use_gemv}" 
         res=$?

         if test $res = 0; then
            petsc_testrun "${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex74_3.out ex74_3.tmp > diff-${testname}-0.out 2> diff-${testname}-0.out || ${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex74_3_alt.out ex74_3.tmp > diff-${testname}-1.out 2> diff-${testname}-1.out || ${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex74_3_alt_2.out ex74_3.tmp > diff-${testname}-2.out 2> diff-${testname}-2.out || ${diff_exe} /root/.cache/gallop/petsc-3.26.1-cuda-sm90-opt/share/petsc/examples/src/ksp/ksp/tutorials/output/ex74_3_alt_3.out ex74_3.tmp" diff-${testname}.out diff-${testname}.out diff-${label}+a+vec_mdot_use_gemv-${ivec_mdot_use_gemv}_vec_maxpy_use_gemv-${ivec_maxpy_use_gemv} ""
         else
            petsc_report_tapoutput "" ${label} "SKIP Command failed so no diff"
         fi

      done
   done
done

petsc_testend "/work/main/tests" 
