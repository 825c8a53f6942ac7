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

/* Two solves, then two more after the values have changed. Guesses and right-hand sides are new on the host each time. */
static PetscErrorCode Solve(const Case *c, MatType type, KSPType ksptype, PetscInt *its, KSPConvergedReason *reason, PetscInt *fused, PetscInt *added, Vec results[4])
{
  KSP       ksp;
  PC        pc;
  Mat       A, other;
  Vec       x, b;
  PetscInt  before = 0, addedbefore = 0;
  PetscInt  rstart, rend;
  PetscReal shift = 0.25, norm;

  PetscFunctionBegin;
  PetscCall(TestEventCount("GallopChebFused", &before, NULL));
  PetscCall(TestEventCount("GallopTermsAdd", &addedbefore, NULL));
  PetscCall(TestCreateLaplace(type, GRID, c->space ? 0 : 0.5, c->space ? 0 : 1, 5, &A));
  PetscCall(TestCreateLaplace(type, GRID, c->space ? 0 : 0.5, c->space ? 0 : 1, 6, &other));
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
  PetscCall(TestEventCount("GallopChebFused", fused, NULL));
  *fused -= before;
  PetscCall(TestEventCount("GallopTermsAdd", added, NULL));
  *added -= addedbefore;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Case *c, MatType type, KSPType ksptype, PetscBool fuses, PetscBool device)
{
  const PetscReal    tolerance = (PetscReal)(sizeof(PetscReal) < 8 ? 1e-3 : 1e-9);
  PetscInt           its[2];
  KSPConvergedReason reason[2];
  Vec                theirs[4], ours[4];
  PetscInt           fused, added, expected = 0;
  PetscMPIInt        size;
  PetscBool          format, fastload;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall(Solve(c, device ? MATAIJCUSPARSE : MATAIJ, KSPCHEBYSHEV, &its[0], &reason[0], &fused, &added, theirs));
  TestCheck(!fused, "%" PetscInt_FMT " fused solves with the parent's type", c->name, fused);
  PetscCall(Solve(c, type, ksptype, &its[1], &reason[1], &fused, &added, ours));
  TestCheck(fused == (fuses && c->fuses ? 4 : 0), "%" PetscInt_FMT " fused solves of %s with %s", c->name, fused, ksptype, type);
  /* a kernel after each product, or only in first steps, without a product, where the format adds all terms itself */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscStrcmp(type, TestFormat(""), &format));
  PetscCall(PetscStrcmp(type, MATFASTLOAD, &fastload));
  if (fused) expected = 4 * (format && !fastload && size == 1 ? (PetscInt)(!c->guess && c->max_it > 0) : c->max_it);
  TestCheck(added == expected, "terms added %" PetscInt_FMT " times, not %" PetscInt_FMT ", by %s with %s", c->name, added, expected, ksptype, type);
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
  PetscCall(TestClearOptions(c->options));
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
