/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The Bratu problem in three dimensions through SNES and DMDA: one build, then a refresh for each Newton step, all products ours.\n\n";

#include "../galloptest.h"
#include <petscdmda.h>
#include <petscsnes.h>

#define LAMBDA 5

static PetscErrorCode Function(DMDALocalInfo *info, void *px, void *pf, PetscCtx ctx)
{
  PetscScalar  ***x = (PetscScalar ***)px, ***f = (PetscScalar ***)pf;
  const PetscReal h = (PetscReal)1.0 / (info->mx - 1), s = h * h * h * LAMBDA;

  PetscFunctionBegin;
  (void)ctx;
  for (PetscInt k = info->zs; k < info->zs + info->zm; k++) {
    for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
      for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
        if (i == 0 || j == 0 || k == 0 || i == info->mx - 1 || j == info->my - 1 || k == info->mz - 1) f[k][j][i] = x[k][j][i];
        else f[k][j][i] = h * ((PetscReal)6.0 * x[k][j][i] - x[k][j][i - 1] - x[k][j][i + 1] - x[k][j - 1][i] - x[k][j + 1][i] - x[k - 1][j][i] - x[k + 1][j][i]) - s * PetscExpScalar(x[k][j][i]);
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Jacobian(DMDALocalInfo *info, void *px, Mat J, Mat P, PetscCtx ctx)
{
  PetscScalar  ***x = (PetscScalar ***)px;
  const PetscReal h = (PetscReal)1.0 / (info->mx - 1), s = h * h * h * LAMBDA;

  PetscFunctionBegin;
  (void)ctx;
  for (PetscInt k = info->zs; k < info->zs + info->zm; k++) {
    for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
      for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
        MatStencil  row = {k, j, i, 0}, cols[7] = {row, row, row, row, row, row, row};
        PetscScalar v[7] = {1, -h, -h, -h, -h, -h, -h};

        if (i == 0 || j == 0 || k == 0 || i == info->mx - 1 || j == info->my - 1 || k == info->mz - 1) {
          PetscCall(MatSetValuesStencil(P, 1, &row, 1, &row, v, INSERT_VALUES));
          continue;
        }
        v[0] = 6 * h - s * PetscExpScalar(x[k][j][i]);
        cols[1].i--;
        cols[2].i++;
        cols[3].j--;
        cols[4].j++;
        cols[5].k--;
        cols[6].k++;
        PetscCall(MatSetValuesStencil(P, 1, &row, 7, cols, v, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
  if (J != P) {
    PetscCall(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(const char prefix[], PetscBool ours, PetscInt *its, PetscInt *linear, PetscReal *norm)
{
  DM                  da;
  SNES                snes;
  Vec                 x;
  Mat                 A;
  PetscInt            parts, places;
  MatGallopStatistics now;
  char                vtype[64];

  PetscFunctionBegin;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 11, 11, 11, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetOptionsPrefix(da, prefix));
  PetscCall(TestGetVecType(ours ? TestFormat("") : MATAIJ, vtype, sizeof(vtype)));
  PetscCall(DMSetVecType(da, vtype));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMDASNESSetFunctionLocal(da, INSERT_VALUES, Function, NULL));
  PetscCall(DMDASNESSetJacobianLocal(da, Jacobian, NULL));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetOptionsPrefix(snes, prefix));
  PetscCall(SNESSetDM(snes, da));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(DMCreateGlobalVector(da, &x));
  PetscCall(VecSet(x, 0.1));
  PetscCall(SNESSolve(snes, NULL, x));
  PetscCall(SNESGetIterationNumber(snes, its));
  PetscCall(SNESGetLinearSolveIterations(snes, linear));
  PetscCall(VecNorm(x, NORM_2, norm));
  PetscCall(SNESGetJacobian(snes, &A, NULL, NULL, NULL));
  PetscCall(TestIsOurs(A, ours, "Jacobian"));
  if (ours) {
    PetscCall(TestHasType(A, TestFormat("seqaij"), TestFormat("mpiaij"), "Jacobian"));
    PetscCall(TestParts(A, &parts));
    PetscCall(MatGallopGetStatistics(A, &now));
    places = now.products_host && now.products_device ? 2 : 1; /* vectors of the DM on the host, those of the solver on the GPU: both places have the format */
    PetscCheck(now.builds == places * parts && now.refreshes >= (*its - 1) * parts && now.refreshes <= places * (*its - 1) * parts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " builds and %" PetscInt64_FMT " refreshes of %" PetscInt_FMT " parts in %" PetscInt_FMT " Newton steps",
               now.builds, now.refreshes, parts, *its);
    PetscCheck(now.products_host + now.products_device >= (PetscInt64)*linear * parts && !now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products in %" PetscInt_FMT " linear iterations, %" PetscInt64_FMT " by the parent",
               now.products_host + now.products_device, *linear, now.fallbacks);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    its[2], linear[2];
  PetscReal   norm[2];
  PetscBool   bymat = PETSC_FALSE, aij = PETSC_FALSE;
  const char *option;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-by_mat_type", &bymat, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-aij_name", &aij, NULL));
  option = bymat ? "-mat_type" : "-gallop_dm_mat_type";
  PetscCall(PetscOptionsSetValue(NULL, option, TestFormat(aij ? "aij" : "")));
  PetscCall(Solve("gallop_", PETSC_TRUE, &its[0], &linear[0], &norm[0]));
  PetscCall(PetscOptionsClearValue(NULL, option)); /* -mat_type goes to the matrices of every DM */
  PetscCall(Solve("plain_", PETSC_FALSE, &its[1], &linear[1], &norm[1]));
  PetscCheck(PetscAbsInt(its[0] - its[1]) <= 1 && PetscAbsInt(linear[0] - linear[1]) <= its[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " Newton steps and %" PetscInt_FMT " linear iterations, %" PetscInt_FMT " and %" PetscInt_FMT " with a plain matrix", its[0], linear[0], its[1], linear[1]);
  PetscCheck(PetscAbsReal(norm[0] - norm[1]) <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "norm of the solution %g, %g with a plain matrix", (double)norm[0], (double)norm[1]);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 4}}
    args: -format {{evchyb csroverlap fastload hbp}}
    test:
      suffix: dm_mat_type
      args: -aij_name {{0 1}}
    test:
      suffix: mat_type
      args: -by_mat_type
    test:
      suffix: jacobi
      args: -gallop_pc_type jacobi -plain_pc_type jacobi
    test:
      suffix: gamg
      args: -gallop_pc_type gamg -plain_pc_type gamg
    # vectors on the host: with those of the GPU PETSc 3.26 computes a wrong coloring Jacobian of an MPI matrix, of MATAIJCUSPARSE as of ours
    test:
      suffix: fd_color
      args: -gallop_dm_vec_type standard -gallop_snes_fd_color -plain_snes_fd_color

TEST*/
