/* SPDX-License-Identifier: BSD-2-Clause */
/* BiCGStab on several processes: src/ksp/ksp/gallopbcgs.c and gallopbcgsdevice.cu with gallopgroup.* beside PETSc's KSPBCGS */
#include "several.h"
#include "ksp/ksp/gallopbcgsdevice.cu"
#include "ksp/ksp/gallopbcgs.c"

int main(int argc, char **argv)
{
  Begin(argc, argv);
  emu::processors = 3;
  if (HasSameTypes()) CheckCall(TestSolves(KSPGALLOPBCGS, KSPBCGS, KSPRegister_GallopBCGS, {"-ksp_gallop_sums device"}));
  else printf("  no solvers: PETSc has other types\n");
  return End();
}
