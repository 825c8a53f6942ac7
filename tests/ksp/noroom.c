/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Solves where the GPU has no room for what fused ones need besides PETSc's vectors: PETSc's solver, with the same answer, and fused ones where there is room again.\n\n";

#include "../galloptest.h"
#include <petscksp.h>
#include <petscgallop.h>

typedef struct {
  KSPType     type;
  PCType      pc;
  const char *event;
  PetscInt    requests; /* of memory, before the first solve: the state, the sums, and a look whether vectors have room */
} Case;

static const Case cases[] = {
  {KSPGALLOPCG,         PCJACOBI,   "GallopCGFused",   3},
  {KSPGALLOPCG,         PCNONE,     "GallopCGFused",   2},
  {KSPGALLOPBCGS,       PCJACOBI,   "GallopBCGSFused", 3},
  {KSPGALLOPCHEBYSHEV,  PCJACOBI,   "GallopChebFused", 1},
  {KSPGALLOPRICHARDSON, PCJACOBI,   "GallopRichFused", 1},
  {KSPGALLOPRICHARDSON, PCPBJACOBI, "GallopRichFused", 1},
};

/* From zero, whether the solve was fused */
static PetscErrorCode Solve(KSP ksp, const Case *c, Vec b, Vec x, PetscBool *fused)
{
  PetscInt before = 0, after = 0;

  PetscFunctionBegin;
  PetscCall(TestEventCount(c->event, &before, NULL));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TestEventCount(c->event, &after, NULL));
  *fused = (PetscBool)(after > before);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Case *c, Mat A, PetscBool device)
{
  Vec       b, x, y;
  PetscReal norm, error;
  char      what[64];

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSetRandom(b, NULL));
  for (PetscInt n = 0; n <= c->requests; n++) {
    KSP       ksp;
    PC        pc;
    PetscBool fused;

    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s, room for %" PetscInt_FMT, c->type, c->pc, n - 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, c->type));
    PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
    PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
    PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 4));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, c->pc));
    if (!strcmp(c->type, KSPGALLOPCHEBYSHEV)) PetscCall(KSPChebyshevSetEigenvalues(ksp, 2.0, 0.1));
    PetscCall(KSPSetUp(ksp));
    if (n) PetscCall(TestSetIntOption("-gallop_device_malloc_fail", n));
    PetscCall(Solve(ksp, c, b, n ? y : x, &fused));
    PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
    TestCheck(fused == (device && !n), "%s", what, fused ? "fused" : "not fused");
    if (n) {
      PetscCall(VecAXPY(y, -1.0, x));
      PetscCall(VecNorm(x, NORM_2, &norm));
      PetscCall(VecNorm(y, NORM_2, &error));
      TestCheck(error <= (PetscReal)1000 * PETSC_MACHINE_EPSILON * norm, "solutions differ by %g of %g", what, (double)error, (double)norm);
      PetscCall(KSPReset(ksp));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(Solve(ksp, c, b, y, &fused));
      TestCheck(fused == device, "%s, where there is room again", what, fused ? "fused" : "not fused");
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A;
  Vec       x, y;
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(TestCreateLaplace(MATEVCHYB, 16, 0.5, 1, 3, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y)); /* the format is there before memory is short */
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) PetscCall(Run(&cases[k], A, device));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    output_file: output/empty.out

TEST*/
