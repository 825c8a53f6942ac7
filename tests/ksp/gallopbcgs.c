/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPGALLOPBCGS beside KSPBCGS.\n\n";

#include "fusedtest.h"

typedef enum {
  MAT_GENERAL,   /* not symmetric */
  MAT_IDENTITY,  /* 2 I: the first half of an iteration solves */
  MAT_SKEW,      /* (A r, r) is 0 */
  MAT_NEARLY,    /* and small */
  MAT_HALF,      /* the residual after half an iteration is in the null space */
  MAT_NULL_SPACE /* PETSc knows of one */
} Kind;

/* clang-format off */
static const Case cases[] = {
  {"Jacobi",                    PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"Jacobi, no norm",           PCJACOBI,  KSP_NORM_NONE,             RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    13,  0,  "",                      PETSC_TRUE },
  {"no preconditioner",         PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"block Jacobi",              PCBJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "-sub_pc_type jacobi",   PETSC_TRUE },
  {"SOR",                       PCSOR,     KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"GAMG",                      PCGAMG,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_RANDOM, MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"right",                     PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "-ksp_pc_side right",    PETSC_TRUE },
  {"right, none",               PCNONE,    KSP_NORM_UNPRECONDITIONED, RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "-ksp_pc_side right",    PETSC_TRUE },
  {"right, a monitor",          PCSOR,     KSP_NORM_UNPRECONDITIONED, RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_MONITOR, 300, 0,  "-ksp_pc_side right",    PETSC_TRUE },
  {"right and a guess",         PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM,   GUESS_RANDOM, MAT_GENERAL,    LOOK_NONE,    300, 0,  "-ksp_pc_side right",    PETSC_FALSE},
  {"a guess",                   PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_RANDOM, MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"the solution as guess",     PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_EXACT,  MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"b = 0",                     PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_ZERO,     GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"b = 0, no norm",            PCJACOBI,  KSP_NORM_NONE,             RHS_ZERO,     GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    9,   0,  "",                      PETSC_TRUE },
  {"NaN in b",                  PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_NAN,      GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"NaN in b, no norm",         PCJACOBI,  KSP_NORM_NONE,             RHS_NAN,      GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    9,   0,  "",                      PETSC_TRUE },
  {"no iteration",              PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    0,   0,  "",                      PETSC_TRUE },
  {"few iterations",            PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    7,   0,  "",                      PETSC_TRUE },
  {"at least 30",               PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 30, "-ksp_rtol 1e-3",        PETSC_TRUE },
  {"diverges by its tolerance", PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_NEARLY,     LOOK_NONE,    300, 0,  "-ksp_divtol 1.0001",    PETSC_TRUE },
  {"half an iteration",         PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_ONES,     GUESS_ZERO,   MAT_IDENTITY,   LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"skew-symmetric",            PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_ONES,     GUESS_ZERO,   MAT_SKEW,       LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"singular",                  PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_ONE_ZERO, GUESS_ZERO,   MAT_HALF,       LOOK_NONE,    300, 0,  "",                      PETSC_TRUE },
  {"a monitor",                 PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_MONITOR, 300, 0,  "",                      PETSC_TRUE },
  {"a test of the user's",      PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_TEST,    300, 0,  "",                      PETSC_TRUE },
  {"null space",                PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_NULL_SPACE, LOOK_NONE,    300, 0,  "",                      PETSC_FALSE},
  {"norms from the fifth on",   PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM,   GUESS_ZERO,   MAT_GENERAL,    LOOK_NONE,    300, 0,  "-ksp_check_norm_iteration 5", PETSC_FALSE},
};
/* clang-format on */

/* 2 I, a tridiagonal matrix that is skew-symmetric or nearly so, or blocks with rows (1, 0) and (1, 0) */
static PetscErrorCode CreateSpecial(MatType type, int kind, Mat *A)
{
  const PetscInt n = GRID * GRID;
  PetscInt       rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    if (kind == MAT_SKEW || kind == MAT_NEARLY) {
      if (r) PetscCall(MatSetValue(*A, r, r - 1, -1.0, INSERT_VALUES));
      if (r < n - 1) PetscCall(MatSetValue(*A, r, r + 1, 1.0, INSERT_VALUES));
      if (kind == MAT_NEARLY) PetscCall(MatSetValue(*A, r, r, 0.01, INSERT_VALUES));
    } else PetscCall(MatSetValue(*A, r, kind == MAT_HALF ? r - r % 2 : r, kind == MAT_HALF ? 1.0 : 2.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(MatType type, int kind, PetscBool pc, Mat *A)
{
  const PetscBool space = (PetscBool)(kind == MAT_NULL_SPACE);
  Vec             factors;
  PetscInt        rstart, rend;

  PetscFunctionBegin;
  (void)pc;
  if (kind != MAT_GENERAL && !space) {
    PetscCall(CreateSpecial(type, kind, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TestCreateLaplace(type, GRID, space ? 0 : (PetscReal)0.1, space ? 0 : 1, 3, A));
  PetscCall(MatCreateVecs(*A, NULL, &factors));
  PetscCall(VecGetOwnershipRange(factors, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) PetscCall(VecSetValue(factors, r, 1 + (PetscReal)(r % 5) / 5, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(factors));
  PetscCall(VecAssemblyEnd(factors));
  PetscCall(MatDiagonalScale(*A, factors, NULL));
  PetscCall(VecDestroy(&factors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Solver solver = {KSPBCGS, KSPGALLOPBCGS, "GallopBCGSFused", 4, 5, 4, CreateMatrix, NULL};

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(RunAll(&solver, PETSC_STATIC_ARRAY_LENGTH(cases), cases, device));
  if (TestInPart()) PetscCall(RunGraph(&solver, "-ksp_rtol 1e-6", device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2 4}}
    output_file: output/empty.out

  test:
    suffix: sums
    nsize: {{2 4}}
    args: -ksp_gallop_sums device
    output_file: output/empty.out

TEST*/
