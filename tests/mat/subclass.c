/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Places of PETSc that look at the exact type name of a matrix, or make matrices of its type, do with ours what they do with plain ones.\n\n";

#include "../galloptest.h"
#include <petscdmda.h>

/* Interpolation and restriction of a grid keep the type, whichever of its names the grid has: PETSc keeps only those that begin with that of AIJ. tests/ksp/interpolation.c has other meshes. */
static PetscErrorCode Interpolation(const char prefix[])
{
  DM                  da[2], fine[2];
  Mat                 P[2];
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 8, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da[k]));
    PetscCall(DMSetUp(da[k]));
    PetscCall(DMSetMatType(da[k], k ? MATAIJ : TestFormat(prefix)));
    PetscCall(DMRefine(da[k], PETSC_COMM_WORLD, &fine[k]));
    PetscCall(DMSetMatType(fine[k], k ? MATAIJ : TestFormat(prefix)));
    PetscCall(DMCreateInterpolation(da[k], fine[k], &P[k], NULL));
  }
  PetscCall(TestIsOurs(P[0], PETSC_TRUE, "DMCreateInterpolation()"));
  PetscCall(TestProducts(P[0], P[1], TEST_BUILD, &last, "DMCreateInterpolation()"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&P[k]));
    PetscCall(DMDestroy(&fine[k]));
    PetscCall(DMDestroy(&da[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatUpdateMPIAIJWithArray(): new values for the pattern that preallocation from CSR gave */
static PetscErrorCode UpdateWithArray(void)
{
  enum { M = 30 };
  Mat                 A[2];
  PetscMPIInt         rank, size;
  PetscInt            i[M + 1], *j, N;
  PetscScalar        *v;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  N = M * size;
  PetscCall(PetscMalloc2(5 * M, &j, 5 * M, &v));
  for (PetscInt r = 0; r <= M; r++) i[r] = 5 * r;
  for (PetscInt r = 0; r < M; r++) {
    for (PetscInt k = 0; k < 5; k++) {
      j[5 * r + k] = k * (N / 5) + r % (N / 5);
      v[5 * r + k] = TestValue(21, r + M * rank, k);
    }
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A[k]));
    PetscCall(MatSetSizes(A[k], M, M, N, N));
    PetscCall(MatSetType(A[k], k ? MATMPIAIJ : TestFormat("mpiaij")));
    PetscCall(MatMPIAIJSetPreallocationCSR(A[k], i, j, v));
  }
  PetscCall(TestProducts(A[0], A[1], TEST_BUILD, &last, "MatMPIAIJSetPreallocationCSR()"));
  for (PetscInt k = 0; k < 5 * M; k++) v[k] *= 3.0;
  for (int k = 0; k < 2; k++) PetscCall(MatUpdateMPIAIJWithArray(A[k], v));
  PetscCall(TestProducts(A[0], A[1], TEST_REFRESH, &last, "MatUpdateMPIAIJWithArray()"));
  PetscCall(PetscFree2(j, v));
  PetscCall(TestDestroy(&A[0], &A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many colors as for a plain matrix. jp and power, and greedy of distance one, ask for the exact type on several processes and refuse PETSc's own subclasses too. */
static PetscErrorCode Coloring(void)
{
  static const char *const types[] = {MATCOLORINGGREEDY, MATCOLORINGSL};
  Mat                      A[2];

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 31, &A[0], &A[1]));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    PetscInt colors[2];

    for (int k = 0; k < 2; k++) {
      MatColoring coloring;
      ISColoring  is;

      PetscCall(MatColoringCreate(A[k], &coloring));
      PetscCall(MatColoringSetType(coloring, types[t]));
      PetscCall(MatColoringApply(coloring, &is));
      PetscCall(ISColoringGetColors(is, NULL, &colors[k], NULL));
      PetscCall(ISColoringDestroy(&is));
      PetscCall(MatColoringDestroy(&coloring));
    }
    PetscCheck(colors[0] == colors[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "coloring %s: %" PetscInt_FMT " colors, %" PetscInt_FMT " with a plain matrix", types[t], colors[0], colors[1]);
  }
  PetscCall(TestDestroy(&A[0], &A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix for several right-hand sides at once */
static PetscErrorCode MAIJ(void)
{
  Mat       A[2], M[2];
  Vec       x, z[2];
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 32, &A[0], &A[1]));
  for (int k = 0; k < 2; k++) PetscCall(MatCreateMAIJ(A[k], 3, &M[k]));
  PetscCall(MatCreateVecs(M[1], &x, &z[1]));
  PetscCall(VecDuplicate(z[1], &z[0]));
  PetscCall(TestSetVec(x, 5));
  for (int k = 0; k < 2; k++) PetscCall(MatMult(M[k], x, z[k]));
  PetscCall(TestVecError(z[0], z[1], &error, &norm));
  PetscCheck(norm > 0 && error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatCreateMAIJ(): error %g of %g", (double)error, (double)norm);
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&z[k]));
    PetscCall(MatDestroy(&M[k]));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(TestDestroy(&A[0], &A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(Interpolation("aij"));
  PetscCall(Interpolation(""));
  PetscCall(UpdateWithArray());
  PetscCall(Coloring());
  PetscCall(MAIJ());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out
    nsize: {{1 2 4}}

  test:
    suffix: chosen
    args: -format gallop -mat_gallop_format {{evchyb hbp}} -options_left no
    output_file: output/empty.out
    nsize: {{1 2}}

TEST*/
