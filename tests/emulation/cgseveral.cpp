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

/* The diagonal of a Jacobi preconditioner is its own after each change of what it is, and computed only then */
static PetscErrorCode TestDiagonal()
{
  const PetscInt n        = 10;
  GallopDiagonal diagonal = {};
  KSP            ksp;
  PC             pc;
  Mat            A;
  Vec            ones, wanted;
  PetscInt       rstart, rend;
  PetscBool      equal;
  int            before, after;

  PetscFunctionBegin;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 1, NULL, 1, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) PetscCall(MatSetValue(A, r, r, r % 2 ? -1 - (PetscReal)r : 2 + (PetscReal)r, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &ones, &wanted));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetUp(ksp));
  PetscCall(GallopDiagonalCreate(&diagonal, ones));
  for (int k = 0; k < 7; k++) {
    if (k == 1) PetscCall(PCJacobiSetUseAbs(pc, PETSC_TRUE)); /* holds from the next set-up on */
    if (k == 2) PetscCall(PCReset(pc));
    if (k == 3) PetscCall(MatScale(A, 2));
    if (k == 4) {
      PetscCall(PCSetType(pc, PCNONE));
      PetscCall(PCSetType(pc, PCJACOBI));
    }
    if (k == 5) {
      PetscCall(PCJacobiSetUseAbs(pc, PETSC_TRUE));
      PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
      PetscCall(PCSetType(pc, PCJACOBI));
      PetscCall(PCJacobiSetUseAbs(pc, PETSC_TRUE));
      PetscCall(KSPSetPC(ksp, pc));
      PetscCall(PCDestroy(&pc));
      PetscCall(KSPGetPC(ksp, &pc));
    }
    if (k == 6) { /* its values are those of now, although it is not set up again */
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
      PetscCall(MatScale(A, 2));
      PetscCall(PCJacobiSetType(pc, PC_JACOBI_ROWMAX));
      PetscCall(PCJacobiSetType(pc, PC_JACOBI_DIAGONAL));
    }
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetUp(ksp));
    PetscCall(GallopDiagonalUpdate(&diagonal, pc, ones));
    PetscCall(GetApplied(&before));
    PetscCall(GallopDiagonalUpdate(&diagonal, pc, ones));
    PetscCall(GetApplied(&after));
    if (after != before) emu::Fail("diagonal %d: it is computed again", k);
    PetscCall(VecSet(ones, 1));
    PetscCall(PCApply(pc, ones, wanted));
    PetscCall(VecEqual(diagonal.d, wanted, &equal));
    if (!equal) emu::Fail("diagonal %d: it is not the preconditioner's", k);
  }
  PetscCall(VecDestroy(&diagonal.d));
  PetscCall(VecDestroy(&ones));
  PetscCall(VecDestroy(&wanted));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  emu::processors = 3;
  if (HasSameTypes()) CheckCall(TestSolves(KSPGALLOPCG, KSPCG, KSPRegister_GallopCG, {"-ksp_gallop_sums device", "-ksp_gallop_sums device -ksp_cg_single_reduction"}, TestDiagonal));
  else printf("  no solvers: PETSc has other types\n");
  return End();
}
