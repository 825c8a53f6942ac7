/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Geometric multigrid over a DMDA with a Gallop type: the operators of all levels are ours, assembled or Galerkin products.\n\n";

#include "../galloptest.h"
#include <petscdmda.h>
#include <petscksp.h>

static PetscErrorCode ComputeMatrix(KSP ksp, Mat J, Mat A, PetscCtx ctx)
{
  DM            da;
  DMDALocalInfo info;

  PetscFunctionBegin;
  (void)J, (void)ctx;
  PetscCall(KSPGetDM(ksp, &da));
  PetscCall(DMDAGetLocalInfo(da, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      MatStencil  row = {0, j, i, 0}, cols[5];
      PetscScalar v[5];
      PetscInt    n = 0;

      if (i > 0) {
        cols[n] = (MatStencil){0, j, i - 1, 0};
        v[n++]  = -1;
      }
      if (i < info.mx - 1) {
        cols[n] = (MatStencil){0, j, i + 1, 0};
        v[n++]  = -1;
      }
      if (j > 0) {
        cols[n] = (MatStencil){0, j - 1, i, 0};
        v[n++]  = -1;
      }
      if (j < info.my - 1) {
        cols[n] = (MatStencil){0, j + 1, i, 0};
        v[n++]  = -1;
      }
      cols[n] = row;
      v[n++]  = 4;
      PetscCall(MatSetValuesStencil(A, 1, &row, n, cols, v, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComputeRHS(KSP ksp, Vec b, PetscCtx ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)ctx;
  PetscCall(VecSet(b, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(MatType type, PetscBool galerkin, PetscInt *its, PetscReal *norm)
{
  DM   da, fine;
  KSP  ksp;
  PC   pc;
  Vec  x;
  char vtype[64];

  PetscFunctionBegin;
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 9, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  PetscCall(DMSetMatType(da, type));
  PetscCall(TestGetVecType(type, vtype, sizeof(vtype)));
  PetscCall(DMSetVecType(da, vtype));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  for (int k = 0; k < 2; k++) {
    PetscCall(DMRefine(da, PETSC_COMM_WORLD, &fine));
    PetscCall(DMDestroy(&da));
    da = fine;
  }
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetDM(ksp, da));
  PetscCall(KSPSetComputeOperators(ksp, ComputeMatrix, NULL));
  PetscCall(KSPSetComputeRHS(ksp, ComputeRHS, NULL));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, 100));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCMG));
  PetscCall(PCMGSetLevels(pc, 3, NULL));
  PetscCall(PCMGSetGalerkin(pc, galerkin ? PC_MG_GALERKIN_BOTH : PC_MG_GALERKIN_NONE));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, NULL, NULL));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(VecNorm(x, NORM_2, norm));
  for (PetscInt l = 1; l < 3 && strcmp(type, MATAIJ); l++) {
    KSP                 smoother;
    Mat                 A;
    MatGallopStatistics now;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(TestIsOurs(A, PETSC_TRUE, "operator of a level"));
    PetscCall(MatGallopGetStatistics(A, &now));
    PetscCheck(now.products_host + now.products_device >= 2 * *its && !now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "level %" PetscInt_FMT ": %" PetscInt64_FMT " products, %" PetscInt64_FMT " by the parent", l,
               now.products_host + now.products_device, now.fallbacks);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  for (int galerkin = 0; galerkin < 2; galerkin++) {
    const char *const names[] = {MATAIJ, TestFormat(""), TestFormat("aij")};
    PetscInt          its[3];
    PetscReal         norm[3];

    for (int k = 0; k < 3; k++) {
      PetscCall(Solve(names[k], (PetscBool)galerkin, &its[k], &norm[k]));
      PetscCheck(PetscAbsInt(its[k] - its[0]) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, %" PetscInt_FMT " with a plain matrix", names[k], its[k], its[0]);
      PetscCheck(PetscAbsReal(norm[k] - norm[0]) <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: norm of the solution %g, %g with a plain matrix", names[k], (double)norm[k], (double)norm[0]);
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out
    nsize: {{1 2 4}}

TEST*/
