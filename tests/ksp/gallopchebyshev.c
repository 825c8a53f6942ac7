/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPCHEBYSHEV with fused steps, beside PETSc's own: iterates, and whether steps were fused.\n\n";

#include "stepstest.h"

/* clang-format off */
static const Case cases[] = {
  {"no step",               PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 0, 1, "",                                               NULL},
  {"one step",              PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 1, 1, "",                                               NULL},
  {"one step from x",       PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 1, 1, "",                                               NULL},
  {"two steps",             PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 2, 1, "",                                               NULL},
  {"two steps from x",      PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 2, 1, "",                                               NULL},
  {"seven steps",           PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 7, 1, "",                                               NULL},
  {"eight steps from x",    PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 8, 1, "",                                               NULL},
  {"no preconditioner",     PCNONE,     KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, 1, "",                                               NULL},
  {"row sums",              PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, 1, "-pc_jacobi_type rowl1 -pc_jacobi_fixdiagonal 0", NULL},
  {"given eigenvalues",     PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 5, 1, "-ksp_chebyshev_eigenvalues 0.25,2.25",           NULL},
  {"another transform",     PCJACOBI,   KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 5, 1, "-ksp_chebyshev_esteig 0.1,0.2,0.1,1.2",          NULL},
  {"SOR",                   PCSOR,      KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, 1, "",                                               "the preconditioner is not Jacobi's"},
  {"norms",                 PCJACOBI,   KSP_NORM_PRECONDITIONED, PETSC_TRUE,  PETSC_FALSE, 4, 1, "",                                               "norms are wanted"},
  {"of the fourth kind",    PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 4, 1, "-ksp_chebyshev_kind fourth",                     "the polynomial is not of the first kind"},
  {"null space",            PCJACOBI,   KSP_NORM_NONE,           PETSC_TRUE,  PETSC_TRUE,  4, 1, "",                                               "the matrix has a null space"},
  {"blocks of 1",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 3, 1, "",                                               NULL},
  {"blocks of 2, no step",  PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 0, 2, "",                                               NULL},
  {"blocks of 2, one step", PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 1, 2, "",                                               NULL},
  {"blocks of 2",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 4, 2, "",                                               NULL},
  {"blocks of 2, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 3, 2, "",                                               NULL},
  {"blocks of 3",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 2, 3, "",                                               NULL},
  {"blocks of 3, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 1, 3, "",                                               NULL},
  {"blocks of 4",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 3, 4, "",                                               NULL},
  {"blocks of 4, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 2, 4, "",                                               NULL},
  {"blocks of 5",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 4, 5, "",                                               NULL},
  {"blocks of 5, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 3, 5, "",                                               NULL},
  {"blocks of 6",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 2, 6, "",                                               NULL},
  {"blocks of 6, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 1, 6, "",                                               NULL},
  {"blocks of 7",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 3, 7, "",                                               NULL},
  {"blocks of 7, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 2, 7, "",                                               NULL},
  {"blocks of 8",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_FALSE, PETSC_FALSE, 4, 8, "",                                               NULL},
  {"blocks of 8, from x",   PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 3, 8, "",                                               NULL},
  {"blocks of 9",           PCPBJACOBI, KSP_NORM_NONE,           PETSC_TRUE,  PETSC_FALSE, 3, 9, "",                                               "blocks of the preconditioner have more than 8 rows"},
  {"blocks, norms",         PCPBJACOBI, KSP_NORM_PRECONDITIONED, PETSC_TRUE,  PETSC_FALSE, 3, 3, "",                                               "norms are wanted"},
};
/* clang-format on */

static const Solver solver = {KSPCHEBYSHEV, KSPGALLOPCHEBYSHEV, "GallopChebFused", PETSC_STATIC_ARRAY_LENGTH(cases), cases};

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(RunAll(&solver, device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

  test:
    suffix: clusters
    nsize: {{1 2}}
    args: -mat_evchyb_order cluster -mat_evchyb_storage {{plain packed}}
    output_file: output/empty.out

TEST*/
