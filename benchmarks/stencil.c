/* SPDX-License-Identifier: BSD-2-Clause */
/* The problem of the benchmarks that solve, on a grid that is spread over all processes */

#include <petscdmda.h>
#include <petscdevice.h>
#include <petsctime.h>
#include "bench.h"
#include "generate.h"

/* Of a point, between 1 and 2, the same on any number of processes */
static PetscReal ScaleOf(const BenchStencil *p, PetscInt i, PetscInt j, PetscInt k)
{
  return p->scaled ? (PetscReal)1.5 + BenchRandom(0, -1, i + p->grid[0] * (j + p->grid[1] * k)) / 2 : 1;
}

/* Symmetric and positive definite: a graph's Laplacian times a small matrix that couples the unknowns of a point, Dirichlet borders */
static PetscErrorCode Assemble(DM da, const BenchStencil *p, Mat A)
{
  PetscInt xs, ys, zs, xm, ym, zm;

  PetscFunctionBegin;
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  for (PetscInt k = zs; k < zs + zm; k++)
    for (PetscInt j = ys; j < ys + ym; j++)
      for (PetscInt i = xs; i < xs + xm; i++)
        for (PetscInt c = 0; c < p->dof; c++) {
          const MatStencil row   = {k, j, i, c};
          const PetscReal  scale = ScaleOf(p, i, j, k);
          MatStencil       col[27 * BENCH_MOST_DOF];
          PetscScalar      v[27 * BENCH_MOST_DOF];
          PetscInt         n = 0;

          for (PetscInt dk = -1; dk <= 1; dk++)
            for (PetscInt dj = -1; dj <= 1; dj++)
              for (PetscInt di = -1; di <= 1; di++) {
                const PetscInt  far    = PetscAbs(di) + PetscAbs(dj) + PetscAbs(dk);
                const PetscBool inside = (PetscBool)(i + di >= 0 && i + di < p->grid[0] && j + dj >= 0 && j + dj < p->grid[1] && k + dk >= 0 && k + dk < p->grid[2]);

                if ((far > 1 && !p->box) || !inside) continue;
                for (PetscInt d = 0; d < p->dof; d++) {
                  const PetscReal couples = c == d ? 1.0 : 0.25 / p->dof;

                  col[n] = (MatStencil){k + dk, j + dj, i + di, d};
                  v[n++] = scale * ScaleOf(p, i + di, j + dj, k + dk) * couples * (far ? -1.0 / far : p->box ? 6.0 + 12 / 2.0 + 8 / 3.0 : 6.0);
                }
              }
          PetscCall(MatSetValuesStencil(A, 1, &row, n, col, v, INSERT_VALUES));
        }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchStencilCreate(const BenchStencil *p, MatType type, PetscBool device, DM *da, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, p->box ? DMDA_STENCIL_BOX : DMDA_STENCIL_STAR, p->grid[0], p->grid[1], p->grid[2], p->processes[0], p->processes[1], p->processes[2], p->dof, 1, NULL, NULL, NULL, da));
  PetscCall(DMSetMatType(*da, type));
  if (device) PetscCall(DMSetVecType(*da, VECCUDA)); /* multigrid makes vectors of its levels by it */
  PetscCall(DMSetUp(*da));
  PetscCall(DMSetMatrixPreallocateOnly(*da, PETSC_TRUE));
  PetscCall(DMCreateMatrix(*da, A));
  PetscCall(Assemble(*da, p, *A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that was begun on the GPU has ended, on all processes */
PetscErrorCode BenchNow(PetscBool device, PetscLogDouble *t)
{
  PetscFunctionBegin;
  if (device) PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}
