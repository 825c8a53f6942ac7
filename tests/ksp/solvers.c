/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Krylov methods and preconditioners with a Gallop matrix: the iterations of a plain one, the products ours.\n\n";

#include "../galloptest.h"
#include <petscksp.h>

#define GRID 24

/* -Laplace u + u on a square, with a wind when it shall not be symmetric */
static PetscErrorCode Fill(Mat A, PetscReal wind)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    const PetscInt i = r % GRID, j = r / GRID;

    PetscCall(MatSetValue(A, r, r, 4.5, INSERT_VALUES));
    if (i > 0) PetscCall(MatSetValue(A, r, r - 1, -1 - wind, INSERT_VALUES));
    if (i < GRID - 1) PetscCall(MatSetValue(A, r, r + 1, -1 + wind, INSERT_VALUES));
    if (j > 0) PetscCall(MatSetValue(A, r, r - GRID, -1.0, INSERT_VALUES));
    if (j < GRID - 1) PetscCall(MatSetValue(A, r, r + GRID, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (wind == 0) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every operator of a multigrid is ours and has computed its products itself */
static PetscErrorCode CheckLevels(PC pc)
{
  PetscInt  levels;
  PetscBool mg;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &mg, PCGAMG, PCMG, ""));
  if (!mg) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCheck(levels > 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", levels);
  for (PetscInt l = 1; l < levels; l++) {
    KSP                 smoother;
    Mat                 A;
    PetscInt            m;
    MatGallopStatistics now;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(TestIsOurs(A, PETSC_TRUE, "operator of a level"));
    PetscCall(MatGallopGetStatistics(A, &now));
    PetscCall(MatGetLocalSize(A, &m, NULL));
    PetscCheck(now.products_host + now.products_device > 0 || !m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no products on level %" PetscInt_FMT, l);
    PetscCheck(!now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt64_FMT " products by the parent on level %" PetscInt_FMT, now.fallbacks, l);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, KSPType ksptype, const char pctype[], const char subpctype[], PetscInt *its)
{
  KSP       ksp;
  PC        pc;
  Vec       x, b;
  PetscReal norm, residual;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestSetVec(b, 61));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ksptype));
  PetscCall(KSPSetTolerances(ksp, 10 * PETSC_SQRT_MACHINE_EPSILON, PETSC_CURRENT, PETSC_CURRENT, 200));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  if (subpctype) {
    KSP     *sub;
    PC       subpc;
    PetscInt n;

    if (strcmp(pctype, PCASM)) PetscCall(PCBJacobiGetSubKSP(pc, &n, NULL, &sub));
    else PetscCall(PCASMGetSubKSP(pc, &n, NULL, &sub));
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(KSPGetPC(sub[k], &subpc));
      PetscCall(PCSetType(subpc, subpctype));
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(KSPSolve(ksp, b, x)); /* the second finds all set up */
  PetscCall(KSPGetIterationNumber(ksp, its));
  {
    KSPConvergedReason reason;

    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with %s: %s", ksptype, pctype, KSPConvergedReasons[reason]);
  }
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(VecScale(b, -1.0));
  PetscCall(MatMultAdd(A, x, b, b));
  PetscCall(VecNorm(b, NORM_2, &residual));
  PetscCheck(residual <= 1000 * PETSC_SQRT_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with %s: residual %g of %g", ksptype, pctype, (double)residual, (double)norm);
  {
    PetscBool ours;

    PetscCall(MatGallopIsFormat(A, &ours));
    if (ours) PetscCall(CheckLevels(pc));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(KSPType ksptype, const char pctype[], const char subpctype[])
{
  const TestShape     shape = {GRID * GRID, GRID * GRID, PETSC_FALSE};
  const PetscReal     wind  = strcmp(ksptype, KSPCG) && (!subpctype || strcmp(subpctype, PCICC)) && strcmp(pctype, PCICC) ? (PetscReal)0.4 : 0;
  Mat                 A, R;
  PetscInt            its[2], parts;
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  PetscCall(Fill(A, wind));
  PetscCall(Fill(R, wind));
  PetscCall(Solve(A, ksptype, pctype, subpctype, &its[0]));
  PetscCall(Solve(R, ksptype, pctype, subpctype, &its[1]));
  PetscCheck(PetscAbsInt(its[0] - its[1]) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with %s, %s: %" PetscInt_FMT " iterations, %" PetscInt_FMT " with a plain matrix", ksptype, pctype, subpctype ? subpctype : "", its[0], its[1]);
  PetscCall(MatGallopGetStatistics(A, &now));
  PetscCall(TestParts(A, &parts));
  PetscCheck(now.products_host + now.products_device > (PetscInt64)parts * 2 * (its[0] - 1) && now.builds == parts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s: %" PetscInt64_FMT " products, %" PetscInt64_FMT " builds on %" PetscInt_FMT " parts in %" PetscInt_FMT " iterations", ksptype, pctype,
             now.products_host + now.products_device, now.builds, parts, its[0]);
  PetscCheck(!now.fallbacks && !now.refreshes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s: %" PetscInt64_FMT " products by the parent, %" PetscInt64_FMT " refreshes", ksptype, pctype, now.fallbacks,
             now.refreshes);
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix changes between solves, as in a time loop */
static PetscErrorCode Sequence(void)
{
  const TestShape     shape = {GRID * GRID, GRID * GRID, PETSC_FALSE};
  Mat                 A, R;
  KSP                 ksp[2];
  Vec                 x[2], b[2];
  PetscInt            parts, its[2];
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
  PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(Fill(k ? R : A, 0));
    PetscCall(MatCreateVecs(k ? R : A, &x[k], &b[k]));
    PetscCall(TestSetVec(b[k], 62));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
    PetscCall(KSPSetType(ksp[k], KSPCG));
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCSetType(pc, PCBJACOBI));
    PetscCall(KSPSetOperators(ksp[k], k ? R : A, k ? R : A));
  }
  PetscCall(TestParts(A, &parts));
  for (PetscInt step = 0; step < 4; step++) {
    for (int k = 0; k < 2; k++) {
      if (step) PetscCall(MatShift(k ? R : A, 0.5));
      PetscCall(KSPSetOperators(ksp[k], k ? R : A, k ? R : A));
      PetscCall(KSPSolve(ksp[k], b[k], x[k]));
      PetscCall(KSPGetIterationNumber(ksp[k], &its[k]));
    }
    PetscCheck(PetscAbsInt(its[0] - its[1]) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %" PetscInt_FMT ": %" PetscInt_FMT " iterations, %" PetscInt_FMT " with a plain matrix", step, its[0], its[1]);
    PetscCall(MatGallopGetStatistics(A, &now));
    PetscCheck(now.builds == parts && now.refreshes >= step && now.refreshes <= step * parts && !now.fallbacks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "step %" PetscInt_FMT ": %" PetscInt64_FMT " builds, %" PetscInt64_FMT " refreshes, %" PetscInt64_FMT " fallbacks", step,
               now.builds, now.refreshes, now.fallbacks);
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPDestroy(&ksp[k]));
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&b[k]));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Methods that use the transpose, whose products are the parent's with some formats */
static PetscErrorCode TransposeMethods(void)
{
  static const char *const types[] = {KSPBICG, KSPLSQR, KSPCGNE};
  const TestShape          shape   = {GRID * GRID, GRID * GRID, PETSC_FALSE};
  Mat                      A, R;
  PetscInt                 its[2];
  MatGallopStatistics      now;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, TestFormat(""), shape, &A));
    PetscCall(TestCreateEmpty(PETSC_COMM_WORLD, MATAIJ, shape, &R));
    PetscCall(Fill(A, (PetscReal)0.4));
    PetscCall(Fill(R, (PetscReal)0.4));
    PetscCall(Solve(A, types[k], PCNONE, NULL, &its[0]));
    PetscCall(Solve(R, types[k], PCNONE, NULL, &its[1]));
    PetscCheck(PetscAbsInt(its[0] - its[1]) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, %" PetscInt_FMT " with a plain matrix", types[k], its[0], its[1]);
    PetscCall(MatGallopGetStatistics(A, &now));
    PetscCheck(now.products_host + now.products_device >= 2 * its[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products", types[k], now.products_host + now.products_device);
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const ksps[] = {KSPCG, KSPGMRES, KSPBCGS};
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ksps); k++) {
    PetscCall(Test(ksps[k], PCNONE, NULL));
    PetscCall(Test(ksps[k], PCJACOBI, NULL));
    PetscCall(Test(ksps[k], PCBJACOBI, PCILU));
    PetscCall(Test(ksps[k], PCBJACOBI, PCICC));
    PetscCall(Test(ksps[k], PCBJACOBI, PCLU));
    PetscCall(Test(ksps[k], PCASM, PCILU));
    PetscCall(Test(ksps[k], PCGAMG, NULL));
    if (size == 1) {
      PetscCall(Test(ksps[k], PCILU, NULL));
      PetscCall(Test(ksps[k], PCICC, NULL));
      PetscCall(Test(ksps[k], PCLU, NULL));
      PetscCall(Test(ksps[k], PCSOR, NULL));
    }
  }
  PetscCall(Test(KSPCHEBYSHEV, PCJACOBI, NULL));
  PetscCall(Sequence());
  PetscCall(TransposeMethods());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
      nsize: {{1 2 4}}
    test:
      suffix: csroverlap
      nsize: {{1 4}}
      args: -format csroverlap
    test:
      suffix: fastload
      nsize: {{1 4}}
      args: -format fastload
    test:
      suffix: hbp
      nsize: {{1 4}}
      args: -format hbp
    test:
      suffix: gallop
      nsize: {{1 4}}
      args: -format gallop -mat_gallop_format evchyb
    test:
      suffix: gamg_classical
      requires: !defined(PETSC_USE_DEBUG)
      nsize: {{1 2}}
      args: -pc_gamg_type classical

TEST*/
