/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPGALLOPGMRES beside KSPGMRES, and what KSPFGMRES and KSPLGMRES do with a Gallop matrix.\n\n";

#include "fusedtest.h"

#define REFINES "-ksp_orthogonalization_cgs_refinement_type "

typedef enum {
  MAT_GENERAL, /* not symmetric */
  MAT_SHIFT,   /* a permutation: restarts make no progress */
  MAT_NAN      /* in one entry */
} Kind;

/* clang-format off */
static const Case cases[] = {
  {"Jacobi",                PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"restart 5",             PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    60,  0,  "-ksp_gmres_restart 5",                        PETSC_TRUE },
  {"restart 100",           PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_gmres_restart 100 -ksp_rtol 1e-9",       PETSC_TRUE },
  {"preallocated",          PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_gmres_preallocate",                      PETSC_TRUE },
  {"no norm",               PCJACOBI,  KSP_NORM_NONE,             RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    13,  0,  "",                                            PETSC_TRUE },
  {"no preconditioner",     PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    60,  0,  "",                                            PETSC_TRUE },
  {"SOR",                   PCSOR,     KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"GAMG",                  PCGAMG,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_GENERAL, LOOK_NONE,    300, 0,  "-pc_gamg_esteig_ksp_gallop_fuse false",       PETSC_TRUE }, /* whose estimates of eigenvalues are by GMRES too */
  {"right",                 PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_pc_side right",                          PETSC_TRUE },
  {"right and a guess",     PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_RANDOM, MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_pc_side right",                          PETSC_TRUE },
  {"a guess",               PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"the solution as guess", PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_EXACT,  MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"b = 0",                 PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_ZERO,   GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"NaN in b",              PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_NAN,    GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
  {"no iteration",          PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    0,   0,  "",                                            PETSC_TRUE },
  {"few iterations",        PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    7,   0,  "",                                            PETSC_TRUE },
  {"at least 30",           PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 30, "-ksp_rtol 1e-3",                              PETSC_TRUE },
  {"refined if needed",     PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  REFINES "refine_ifneeded",                     PETSC_TRUE },
  {"a monitor",             PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_MONITOR, 300, 0,  "",                                            PETSC_TRUE },
  {"a test of the user's",  PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_TEST,    300, 0,  "",                                            PETSC_TRUE },
  {"modified",              PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_orthogonalization mgs",                  PETSC_FALSE},
  {"PETSc's",               PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_orthogonalization cgs",                  PETSC_FALSE},
};

static const Case refined[] = {
  {"restart 150",           PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_SHIFT,   LOOK_NONE,    140, 0,  "-ksp_gmres_restart 150 " REFINES "refine_always", PETSC_TRUE }, /* more vectors than a launch takes */
  {"refined always",        PCJACOBI,  KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  REFINES "refine_always",                       PETSC_TRUE },
};

/* A dot product is not a number, whose reason the first kernel's results tell */
static const Case broken[] = {
  {"NaN in the matrix",     PCNONE,    KSP_NORM_PRECONDITIONED,   RHS_ONES,   GUESS_ZERO,   MAT_NAN,     LOOK_NONE,    300, 0,  "",                                            PETSC_TRUE },
};

static const Case others[] = {
  {"Jacobi",                PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_pc_side right",                          PETSC_TRUE },
  {"restart 5",             PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    60,  0,  "-ksp_pc_side right -ksp_gmres_restart 5",     PETSC_TRUE },
  {"a guess",               PCNONE,    KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_RANDOM, MAT_GENERAL, LOOK_NONE,    60,  0,  "-ksp_pc_side right -ksp_gmres_restart 100",   PETSC_TRUE },
  {"modified",              PCJACOBI,  KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_GENERAL, LOOK_NONE,    300, 0,  "-ksp_pc_side right -ksp_orthogonalization mgs", PETSC_FALSE},
};
/* clang-format on */

static PetscErrorCode CreateMatrix(MatType type, int kind, PetscBool pc, Mat *A)
{
  const PetscInt n = GRID * GRID;
  Vec            factors;
  PetscInt       rstart, rend;

  PetscFunctionBegin;
  (void)pc;
  if (kind == MAT_SHIFT) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
    for (PetscInt r = rstart; r < rend; r++) PetscCall(MatSetValue(*A, r, (r + 1) % n, 1.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TestCreateLaplace(type, GRID, (PetscReal)0.1, 1, 3, A));
  PetscCall(MatCreateVecs(*A, NULL, &factors));
  PetscCall(VecGetOwnershipRange(factors, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) PetscCall(VecSetValue(factors, r, kind == MAT_NAN && r == 77 ? NAN : 1 + (PetscReal)(r % 5) / 5, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(factors));
  PetscCall(VecAssemblyEnd(factors));
  PetscCall(MatDiagonalScale(*A, factors, NULL));
  PetscCall(VecDestroy(&factors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc 3.26's VecMDot() of 33 to 127 vectors on the GPU can be wrong: threads store sums where others still read. Refined twice, classical Gram-Schmidt gives what the modified one gives. */
static PetscErrorCode Modified(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPOrthogonalizationSet(ksp, KSPOrthogonalizationModifiedGramSchmidt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Solver gmres  = {KSPGMRES, KSPGALLOPGMRES, "GallopGMRESFused", 2, 4, 0, CreateMatrix, NULL, PETSC_TRUE};
static const Solver twice  = {KSPGMRES, KSPGALLOPGMRES, "GallopGMRESFused", 4, 4, 0, CreateMatrix, NULL, PETSC_TRUE, Modified};
static const Solver fgmres = {KSPFGMRES, KSPFGMRES, "GallopGMRESFused", 2, 2, 0, CreateMatrix, NULL, PETSC_TRUE};
static const Solver lgmres = {KSPLGMRES, KSPLGMRES, "GallopGMRESFused", 2, 2, 0, CreateMatrix, NULL, PETSC_TRUE};

/* A solver that changes its type, and one whose orthogonalization was set before */
static PetscErrorCode RunTypes(void)
{
  KSP                     ksp;
  Mat                     A;
  Vec                     x, b;
  KSPConvergedReason      reason;
  KSPOrthogonalizationFn *first, *orthog;
  const KSPType           types[] = {KSPGALLOPGMRES, KSPCG, KSPGMRES, KSPLGMRES, KSPDGMRES, KSPFGMRES, KSPIDR, KSPGALLOPGMRES};

  PetscFunctionBegin;
  PetscCall(CreateMatrix(TestFormat(""), MAT_GENERAL, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-3, PETSC_CURRENT, PETSC_CURRENT, 500));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPOrthogonalizationGet(ksp, &first));
  TestCheck(first != KSPOrthogonalizationClassicalGramSchmidt, "the orthogonalization is PETSc's", "a new solver");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    const PetscBool ours = (PetscBool)(k == 0 || k == 2 || k == 3 || k == 5 || k == 7);

    if (PetscDefined(USE_COMPLEX) && k == 4) continue; /* which PETSc has for real numbers only */
    PetscCall(KSPSetType(ksp, types[k]));
    PetscCall(KSPOrthogonalizationGet(ksp, &orthog));
    TestCheck(orthog == (ours ? first : KSPOrthogonalizationClassicalGramSchmidt), "the orthogonalization is not the type's", types[k]);
    if (k == 1) continue;                           /* the matrix is not symmetric */
    PetscCall(KSPOrthogonalizationSet(ksp, first)); /* which any type may have */
    PetscCall(VecSet(x, 0.0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    TestCheck(reason > 0, "%s", types[k], KSPConvergedReasons[reason]);
    PetscCall(KSPOrthogonalizationSet(ksp, ours ? first : KSPOrthogonalizationClassicalGramSchmidt));
  }
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPOrthogonalizationSet(ksp, KSPOrthogonalizationModifiedGramSchmidt));
  PetscCall(KSPSetType(ksp, KSPGALLOPGMRES));
  PetscCall(KSPOrthogonalizationGet(ksp, &orthog));
  TestCheck(orthog == KSPOrthogonalizationModifiedGramSchmidt, "the user's orthogonalization is lost", "another type");
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a viewer prints is PETSc's, and a line of ours */
static PetscErrorCode RunView(PetscBool device)
{
  /* in the order of KSPOrthogonalizationCGSRefinementType */
  static const char *const wanted[] = {"no iterative refinement", "one step of iterative refinement when needed", "one step of iterative refinement", "modified Gram-Schmidt orthogonalization"};
  KSP                      ksp;
  Mat                      A;
  Vec                      x, b;
  PetscViewer              viewer;
  char                     text[4096], line[256];
  char                    *found;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(TestFormat(""), MAT_GENERAL, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  for (int k = 0; k < 4; k++) {
    PetscMPIInt rank;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, KSPGMRES));
    if (k < 3) PetscCall(KSPOrthogonalizationSetCGSRefinementType(ksp, (KSPOrthogonalizationCGSRefinementType)k));
    else PetscCall(KSPOrthogonalizationSet(ksp, KSPOrthogonalizationModifiedGramSchmidt));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "gmresview.txt", &viewer));
    PetscCall(KSPView(ksp, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    if (rank == 0) {
      FILE  *file = fopen("gmresview.txt", "r");
      size_t n    = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

      if (file) fclose(file);
      text[n] = 0;
      PetscCall(PetscSNPrintf(line, sizeof(line), "using %s%s\n", k < 3 ? "classical (unmodified) Gram-Schmidt orthogonalization with " : "", wanted[k]));
      PetscCall(PetscStrstr(text, line, &found));
      TestCheck(found, "the view does not say so: %s", wanted[k], text);
      PetscCall(PetscStrstr(text, "  vector operations are fused in the orthogonalization on the GPU\n", &found));
      TestCheck(!found == !(device && k < 3), "whether it is fused is not told: %s", wanted[k], text);
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
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
  PetscCall(RunAll(&gmres, PETSC_STATIC_ARRAY_LENGTH(cases), cases, device));
  PetscCall(RunAll(&twice, PETSC_STATIC_ARRAY_LENGTH(refined), refined, device));
  PetscCall(RunAll(&gmres, PETSC_STATIC_ARRAY_LENGTH(broken), broken, device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(others); k++) { /* which have no name of ours for other matrices */
    PetscCall(Run(&fgmres, &others[k], TestFormat(""), device));
    PetscCall(Run(&lgmres, &others[k], TestFormat(""), device));
  }
  PetscCall(RunTypes());
  PetscCall(RunView(device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2 4}}
    output_file: output/empty.out

TEST*/
