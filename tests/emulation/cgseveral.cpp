/* SPDX-License-Identifier: BSD-2-Clause */
/* CG on several processes: src/ksp/ksp/gallopcgsolve.c and gallopcgdevice.cu with gallopgroup.* beside PETSc's KSPCG */
#include "several.h"

static void Decides(PetscInt64, PetscScalar, PetscScalar) { }
static void HostDecides(PetscInt64, PetscInt, PetscScalar, PetscScalar) { }
#include "ksp/ksp/gallopcgdevice.cu"
#include "ksp/ksp/gallopcg.c"
#include "ksp/ksp/gallopcgsolve.c"

PetscErrorCode KSPGallopPipeCGSolve(KSP, GallopCG *)
{
  emu::Fail("another variant has solved");
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  emu::processors = 3;
  if (HasSameTypes()) CheckCall(TestSolves(KSPGALLOPCG, KSPCG, KSPRegister_GallopCG, {"-ksp_gallop_sums device", "-ksp_gallop_sums device -ksp_cg_single_reduction"}));
  else printf("  no solvers: PETSc has other types\n");
  return End();
}
