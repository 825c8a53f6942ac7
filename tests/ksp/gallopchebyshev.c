/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPCHEBYSHEV with fused steps, beside PETSc's own: iterates, and whether steps were fused.\n\n";

#include "../galloptest.h"
#include <petscksp.h>

#define GRID 40

typedef struct {
  const char *name;
  PCType      pc;
  KSPNormType norm;
  PetscBool   guess, space;
  PetscInt    max_it;
  const char *options;
  PetscBool   fuses; /* with a GPU */
} Case;

static const Case cases[] = {
  {"no step",            PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 0, "",                                      PETSC_TRUE },
  {"one step",           PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 1, "",                                      PETSC_TRUE },
  {"one step from x",    PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 1, "",                                      PETSC_TRUE },
  {"two steps",          PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 2, "",                                      PETSC_TRUE },
  {"two steps from x",   PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 2, "",                                      PETSC_TRUE },
  {"seven steps",        PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 7, "",                                      PETSC_TRUE },
  {"eight steps from x", PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 8, "",                                      PETSC_TRUE },
  {"no preconditioner",  PCNONE,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, "",                                      PETSC_TRUE },
  {"row sums",           PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, "-pc_jacobi_type rowl1",                 PETSC_TRUE },
  {"given eigenvalues",  PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 5, "-ksp_chebyshev_eigenvalues 0.25,2.25",  PETSC_TRUE },
  {"another transform",  PCJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 5, "-ksp_chebyshev_esteig 0.1,0.2,0.1,1.2", PETSC_TRUE },
  {"SOR",                PCSOR,    KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, "",                                      PETSC_FALSE},
  {"norms",              PCJACOBI, KSP_NORM_PRECONDITIONED, PETSC_TRUE,  PETSC_FALSE, 4, "",                                      PETSC_FALSE},
  {"of the fourth kind", PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, "-ksp_chebyshev_kind fourth",            PETSC_FALSE},
  {"null space",         PCJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_TRUE,  4, "",                                      PETSC_FALSE},
};

static PetscErrorCode CreateMatrix(MatType type, PetscBool space, PetscInt seed, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, GRID * GRID, GRID * GRID));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    const PetscInt  i = r % GRID, j = r / GRID, near[] = {r - 1, r + 1, r - GRID, r + GRID};
    const PetscBool in[]     = {(PetscBool)(i > 0), (PetscBool)(i < GRID - 1), (PetscBool)(j > 0), (PetscBool)(j < GRID - 1)};
    PetscScalar     diagonal = space ? 0.0 : 0.5 + TestRandom(seed, r, 0);

    for (int k = 0; k < 4; k++)
      if (in[k]) {
        PetscCall(MatSetValue(*A, r, near[k], -1.0, INSERT_VALUES));
        diagonal += 1.0;
      }
    PetscCall(MatSetValue(*A, r, r, diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (space) {
    MatNullSpace null;

    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
    PetscCall(MatSetNullSpace(*A, null));
    PetscCall(MatNullSpaceDestroy(&null));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fused(int *solves)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;

  PetscFunctionBegin;
  PetscCall(PetscLogEventGetId("GallopChebFused", &event));
  PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no event GallopChebFused");
  PetscCall(PetscLogEventGetPerfInfo(0, event, &info));
  *solves = info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves, then two more after the values have changed. Guesses and right-hand sides are new on the host each time. */
static PetscErrorCode Solve(const Case *c, MatType type, KSPType ksptype, PetscInt *its, KSPConvergedReason *reason, int *fused, Vec results[4])
{
  KSP       ksp;
  PC        pc;
  Mat       A, other;
  Vec       x, b;
  int       before;
  PetscInt  rstart, rend;
  PetscReal shift = 0.25, norm;

  PetscFunctionBegin;
  PetscCall(Fused(&before));
  PetscCall(CreateMatrix(type, c->space, 5, &A));
  PetscCall(CreateMatrix(type, c->space, 6, &other));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ksptype));
  PetscCall(KSPSetNormType(ksp, c->norm));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, c->pc));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-30, PETSC_CURRENT, PETSC_CURRENT, c->max_it));
  if (c->norm == KSP_NORM_NONE) PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPSetInitialGuessNonzero(ksp, c->guess));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(VecGetOwnershipRange(x, &rstart, &rend));
  for (int k = 0; k < 4; k++) {
    PetscScalar *xx, *bb;

    PetscCall(VecGetArrayWrite(x, &xx));
    PetscCall(VecGetArrayWrite(b, &bb));
    for (PetscInt r = rstart; r < rend; r++) {
      xx[r - rstart] = TestValue(k, r, 1);
      bb[r - rstart] = TestValue(k, r, 2);
    }
    PetscCall(VecRestoreArrayWrite(x, &xx));
    PetscCall(VecRestoreArrayWrite(b, &bb));
    if (k == 2 && !c->space) PetscCall(MatAXPY(A, shift, other, SAME_NONZERO_PATTERN));
    if (k == 2) PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecDuplicate(x, &results[k]));
    PetscCall(VecCopy(x, results[k]));
    PetscCall(VecNorm(results[k], NORM_2, &norm)); /* waits: PETSc's own solver may still copy b from pinned memory, which the next right-hand side is written to */
  }
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&other));
  PetscCall(Fused(fused));
  *fused -= before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Case *c, MatType type, KSPType ksptype, PetscBool fuses, PetscBool device)
{
  const PetscReal    tolerance = (PetscReal)(sizeof(PetscReal) < 8 ? 1e-3 : 1e-9);
  PetscInt           its[2];
  KSPConvergedReason reason[2];
  Vec                theirs[4], ours[4];
  int                fused, n;
  char             **words;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall(Solve(c, device ? MATAIJCUSPARSE : MATAIJ, KSPCHEBYSHEV, &its[0], &reason[0], &fused, theirs));
  TestCheck(!fused, "%d fused solves with the parent's type", c->name, fused);
  PetscCall(Solve(c, type, ksptype, &its[1], &reason[1], &fused, ours));
  TestCheck(fused == (fuses && c->fuses ? 4 : 0), "%d fused solves of %s with %s", c->name, fused, ksptype, type);
  TestCheck(its[0] == its[1] && reason[0] == reason[1], "%" PetscInt_FMT " iterations and %s, not %" PetscInt_FMT " and %s", c->name, its[1], KSPConvergedReasons[reason[1]], its[0], KSPConvergedReasons[reason[0]]);
  for (int k = 0; k < 4; k++) {
    PetscReal norm, error;

    PetscCall(VecNorm(theirs[k], NORM_2, &norm));
    PetscCall(VecAXPY(ours[k], -1.0, theirs[k]));
    PetscCall(VecNorm(ours[k], NORM_2, &error));
    TestCheck(error <= tolerance * norm, "solve %d of %s with %s differs by %g of %g", c->name, k, ksptype, type, (double)error, (double)norm);
    PetscCall(VecDestroy(&theirs[k]));
    PetscCall(VecDestroy(&ours[k]));
  }
  PetscCall(PetscStrToArray(c->options, ' ', &n, &words));
  for (int k = 0; k < n; k++)
    if (words[k][0] == '-' && (words[k][1] < '0' || words[k][1] > '9')) PetscCall(PetscOptionsClearValue(NULL, words[k]));
  PetscCall(PetscStrToArrayDestroy(n, words));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscCall(Run(&cases[k], TestFormat(""), KSPCHEBYSHEV, device, device));
    PetscCall(Run(&cases[k], TestFormat(""), KSPGALLOPCHEBYSHEV, device, device));
    PetscCall(Run(&cases[k], device ? MATAIJCUSPARSE : MATAIJ, KSPGALLOPCHEBYSHEV, device, device));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

TEST*/
