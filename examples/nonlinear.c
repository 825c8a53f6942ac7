/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A nonlinear problem on a DMDA, solved by SNES, in a program that includes and links nothing of the library. What it needs comes at run time:

    make examples     # prints the folder of the programs, and the path of libgallop.so
    mpiexec -n 2 nonlinear -dll_append /path/to/libgallop.so -dm_mat_type evchyb -da_grid_x 400 -da_grid_y 400 -ksp_type cg -pc_type jacobi -log_view

  and on a GPU -dm_vec_type cuda, so that the vectors live there too. -log_view lists the products that the library computed as EVCHYBMult; without
  -dll_append and -dm_mat_type the same program runs with PETSc's own matrices.

  The equation is -div grad u + u^3 = f in the unit square, u = 0 on its boundary. f is chosen such that u = 16 x (1 - x) y (1 - y), which the five-point
  stencil gives exactly, so that the error is that of the solver. The program stops with an error if it is too large.
*/
static char help[] = "Solves -div grad u + u^3 = f in the unit square by SNES and DMDA.\n\
  -da_grid_x <n> -da_grid_y <n>: points a side\n\
  -dll_append /path/to/libgallop.so -dm_mat_type evchyb -dm_vec_type cuda, and all other options of PETSc\n\n";

#include <petscdmda.h>
#include <petscsnes.h>

/* The solution and the right-hand side at a point */
static void Exact(const DMDALocalInfo *info, PetscInt i, PetscInt j, PetscReal *u, PetscReal *f)
{
  const PetscReal x = (PetscReal)i / (info->mx - 1), y = (PetscReal)j / (info->my - 1), gx = x * (1 - x), gy = y * (1 - y);

  *u = 16 * gx * gy;
  *f = 32 * (gx + gy) + *u * *u * *u;
}

static PetscBool OnBoundary(const DMDALocalInfo *info, PetscInt i, PetscInt j)
{
  return (PetscBool)(i == 0 || j == 0 || i == info->mx - 1 || j == info->my - 1);
}

/* The residual at the points of this process, times the area of a cell */
static PetscErrorCode Function(DMDALocalInfo *info, void *pu, void *pr, PetscCtx ctx)
{
  PetscScalar   **u = (PetscScalar **)pu, **r = (PetscScalar **)pr;
  const PetscReal hx = (PetscReal)1 / (info->mx - 1), hy = (PetscReal)1 / (info->my - 1);

  PetscFunctionBeginUser;
  (void)ctx;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      PetscReal exact, f;

      if (OnBoundary(info, i, j)) {
        r[j][i] = u[j][i];
        continue;
      }
      Exact(info, i, j, &exact, &f);
      r[j][i] = (2 * u[j][i] - u[j][i - 1] - u[j][i + 1]) * (hy / hx) + (2 * u[j][i] - u[j - 1][i] - u[j + 1][i]) * (hx / hy) + (u[j][i] * u[j][i] * u[j][i] - f) * (hx * hy);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its derivative. Where a neighbour is on the boundary u is 0 there and stays so: without that entry the matrix is symmetric. */
static PetscErrorCode Jacobian(DMDALocalInfo *info, void *pu, Mat J, Mat P, PetscCtx ctx)
{
  PetscScalar   **u  = (PetscScalar **)pu;
  const PetscReal hx = (PetscReal)1 / (info->mx - 1), hy = (PetscReal)1 / (info->my - 1);

  PetscFunctionBeginUser;
  (void)ctx;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      const PetscInt  ni[] = {i - 1, i + 1, i, i}, nj[] = {j, j, j - 1, j + 1};
      const PetscReal weight[] = {hy / hx, hy / hx, hx / hy, hx / hy};
      MatStencil      row = {.i = i, .j = j}, col[5] = {row};
      PetscScalar     v[5] = {1};
      PetscInt        n    = 1;

      if (!OnBoundary(info, i, j)) {
        v[0] = 2 * (hy / hx + hx / hy) + 3 * u[j][i] * u[j][i] * (hx * hy);
        for (int k = 0; k < 4; k++) {
          if (OnBoundary(info, ni[k], nj[k])) continue;
          col[n].i = ni[k];
          col[n].j = nj[k];
          v[n++]   = -weight[k];
        }
      }
      PetscCall(MatSetValuesStencil(P, 1, &row, n, col, v, INSERT_VALUES));
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

/* Takes the solution off the vector, and gives the largest entry of what is left */
static PetscErrorCode Error(DM da, Vec x, PetscReal *error)
{
  DMDALocalInfo info;
  PetscScalar **u;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(da, &info));
  PetscCall(DMDAVecGetArray(da, x, &u));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      PetscReal exact, f;

      Exact(&info, i, j, &exact, &f);
      u[j][i] -= exact;
    }
  }
  PetscCall(DMDAVecRestoreArray(da, x, &u));
  PetscCall(VecNorm(x, NORM_INFINITY, error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  DM                  da;
  SNES                snes;
  Vec                 x;
  SNESConvergedReason reason;
  PetscInt            steps, its;
  PetscReal           error;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 33, 33, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMDASNESSetFunctionLocal(da, INSERT_VALUES, Function, NULL));
  PetscCall(DMDASNESSetJacobianLocal(da, Jacobian, NULL));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetDM(snes, da));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(DMCreateGlobalVector(da, &x));
  PetscCall(VecSet(x, 0.0));

  PetscCall(SNESSolve(snes, NULL, x));
  PetscCall(SNESGetConvergedReason(snes, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "Not solved: %s", SNESConvergedReasons[reason]);
  PetscCall(SNESGetIterationNumber(snes, &steps));
  PetscCall(SNESGetLinearSolveIterations(snes, &its));
  PetscCall(Error(da, x, &error));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Newton steps %" PetscInt_FMT " iterations %" PetscInt_FMT " error %g\n", steps, its, (double)error));
  PetscCheck(error <= 100 * PETSC_SQRT_MACHINE_EPSILON, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "The error is %g", (double)error);

  PetscCall(VecDestroy(&x));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscFinalize());
  return 0;
}
