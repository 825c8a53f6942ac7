/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The pipelined variant of CG: src/ksp/ksp/galloppipecgdevice.cu beside loops on the host, and galloppipecg.c, inside of gallopcg.c, beside PETSc's KSPPIPECG
*/
#include "solvers.h"
#include "ksp/ksp/galloppipecgdevice.cu"
#include "ksp/ksp/gallopjacobi.c"
#define KSPGallopCanFuse CanFuseHere /* vectors are on the host */
static PetscErrorCode CanFuseHere(KSP, const char **why)
{
  *why = NULL;
  return PETSC_SUCCESS;
}
#include "ksp/ksp/gallopcg.c"
#include "ksp/ksp/galloppipecg.c"

static long others, solves, iterations;

PetscErrorCode KSPGallopCGSolve(KSP, GallopCG *)
{
  others++;
  return PETSC_SUCCESS;
}

static const PetscReal Tolerance = sizeof(PetscReal) < 8 ? 1e-4 : 1e-12;

/* ---- kernels ---- */

static const int Vectors = 11;

typedef std::vector<std::vector<PetscScalar>> Host;

static GallopPipeCGArrays ArraysOf(PetscInt n, PetscScalar *const v[], GallopPCKind pc)
{
  GallopPipeCGArrays a = {n, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]};

  if (pc != GALLOP_PC_OTHER) a.u = a.q = NULL; /* which no kernel is to touch */
  if (pc != GALLOP_PC_DIAGONAL) a.d = NULL;
  if (pc == GALLOP_PC_NONE) a.m = NULL;
  return a;
}

/* The same on the host, by the names of PETSc's KSPPIPECG */
static void Iterate(Host &v, GallopPCKind pc, const GallopCGMethod &method, bool first, bool updates, PetscScalar sums[])
{
  auto &d = v[0], &n = v[1], &x = v[2], &r = v[3], &u = v[4], &w = v[5], &m = v[6], &p = v[7], &s = v[8], &q = v[9], &z = v[10];

  sums[0] = sums[1] = sums[2] = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const PetscScalar b = first ? 0 : method.b, a = method.factor, di = pc == GALLOP_PC_DIAGONAL ? d[i] : (PetscScalar)1;

    if (pc != GALLOP_PC_OTHER) {
      u[i] = di * r[i];
      m[i] = di * w[i];
      q[i] = di * s[i];
    }
    if (updates) {
      z[i] = first ? n[i] : n[i] + b * z[i];
      q[i] = first ? m[i] : m[i] + b * q[i];
      p[i] = first ? u[i] : u[i] + b * p[i];
      s[i] = first ? w[i] : w[i] + b * s[i];
      x[i] += a * p[i];
      u[i] -= a * q[i];
      w[i] -= a * z[i];
      r[i] -= a * s[i];
      if (pc != GALLOP_PC_OTHER) m[i] = di * w[i];
    }
    sums[0] += r[i] * PetscConj(u[i]);
    sums[1] += w[i] * PetscConj(u[i]);
    sums[2] += method.norm == KSP_NORM_UNPRECONDITIONED ? r[i] * PetscConj(r[i]) : u[i] * PetscConj(u[i]);
  }
}

static void TestKernels(GallopFused *work, PetscInt n, GallopPCKind pc, KSPNormType norm, bool first, bool updates)
{
  /* d, n, x, r, u, w, m, p, s, q, z: what is written */
  const bool     other = pc == GALLOP_PC_OTHER, diagonal = pc == GALLOP_PC_DIAGONAL;
  const bool     written[Vectors] = {false, false, updates, updates, other && updates, updates, diagonal, updates, updates, other && updates, updates};
  GallopCGMethod method           = {pc, norm};
  Host           host(Vectors);
  PetscScalar   *v[2][Vectors], sums[3];
  GallopRecord   record[2];
  char           name[200];

  snprintf(name, sizeof(name), "%ld rows, preconditioner %d, norm %d, first %d, updates %d", (long)n, pc, norm, first, updates);
  method.factor = Any();
  method.b      = Any();
  for (auto &h : host)
    for (PetscInt i = 0; i < n; i++) h.push_back(Any());
  if (first)
    for (int k = 7; k < Vectors; k++) std::fill(host[k].begin(), host[k].end(), (PetscScalar)NAN); /* nobody has written p, s, q and z */
  for (int t = 0; t < 2; t++) {
    for (int k = 0; k < Vectors; k++) v[t][k] = emu::Guarded(host[k]);
    const GallopPipeCGArrays arrays = ArraysOf(n, v[t], pc);

    Scatter();
    work->number++;
    if (updates) CheckCall(GallopPipeCGUpdate(work, &arrays, &method, first ? 0 : 1));
    else CheckCall(GallopPipeCGSums(work, &arrays, &method));
    CheckCall(GallopFusedWait(work, work->number, &record[t]));
    emu::Sync();
    emu::CheckCanaries(name);
    if (((FusedState *)work->state)->ended) emu::Fail("%s: the counter of thread blocks is not 0", name);
    if (t && memcmp((void *)record[0].sum, (void *)record[1].sum, sizeof(record[0].sum) + sizeof(PetscReal))) emu::Fail("%s: another order of thread blocks gives other bits", name);
  }

  const Host before = host;

  Iterate(host, pc, method, first, updates, sums);
  for (int k = 0; k < Vectors; k++)
    for (PetscInt i = 0; i < n; i++) {
      if (!written[k] && memcmp((void *)&v[0][k][i], (void *)&before[k][i], sizeof(PetscScalar))) emu::Fail("%s: vector %d has changed", name, k);
      if (written[k] && !(PetscAbsScalar(v[0][k][i] - host[k][i]) <= 50 * Tolerance))
        emu::Fail("%s: row %ld of vector %d is %g, not %g", name, (long)i, k, (double)PetscRealPart(v[0][k][i]), (double)PetscRealPart(host[k][i]));
    }
  const PetscScalar found[] = {record[0].sum[0], record[0].sum[1], record[0].norm};
  for (int k = 0; k < 3; k++)
    if (!(PetscAbsScalar(found[k] - sums[k]) <= Tolerance * (1 + 20 * n))) emu::Fail("%s: sum %d is %g, not %g", name, k, (double)PetscRealPart(found[k]), (double)PetscRealPart(sums[k]));
}

/* ---- solvers ---- */

typedef enum { USUAL, GUESS, ZERO, NOT_A_NUMBER, NO_ITERATION, FEW_ITERATIONS, VARIANTS } Variant;

struct Result {
  PetscInt               its;
  KSPConvergedReason     reason;
  std::vector<PetscReal> norms;
  long                   kernels;
};

static PetscErrorCode SolveOnce(KSPType type, const char *options, PCType pctype, KSPNormType norm, Variant variant, Mat A, Vec b, Vec x, Result *result)
{
  KSP              ksp;
  PC               pc;
  const PetscReal *norms;
  PetscInt         n;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(ksp, 1e-7, PETSC_CURRENT, PETSC_CURRENT, variant == NO_ITERATION ? 0 : variant == FEW_ITERATIONS || norm == KSP_NORM_NONE ? 4 : 100));
  PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)(variant == GUESS)));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 200, PETSC_TRUE));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClear(NULL));
  PetscCall(VecSet(x, variant == GUESS ? 0.25 : 0));
  launches = 0;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &result->its));
  PetscCall(KSPGetConvergedReason(ksp, &result->reason));
  PetscCall(KSPGetResidualHistory(ksp, &norms, &n));
  result->norms.assign(norms, norms + n);
  result->kernels = launches;
  PetscCall(KSPDestroy(&ksp));
  emu::CheckCanaries("after a solve");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool Near(PetscReal a, PetscReal b, PetscReal scale)
{
  if (!isfinite(a) || !isfinite(b)) return isfinite(a) == isfinite(b);
  return fabs(a - b) <= 1e-9 * scale;
}

static PetscErrorCode TestSolve(KSPType type, PCType pc, KSPNormType norm, Variant variant)
{
  const PetscInt n = 700;
  Mat            A;
  Vec            b, x, y, again;
  PetscInt       rstart, rend;
  PetscReal      difference, size;
  PetscMPIInt    processes;
  PetscBool      equal;
  Result         wanted, found;
  char           name[200];

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "%s, %s, norm %d, variant %d", type, pc, norm, variant);
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 3, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    PetscCall(MatSetValue(A, r, r, 2.02 + (PetscReal)(r % 7) / 20, INSERT_VALUES));
    if (r) PetscCall(MatSetValue(A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(A, r, r + 1, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &again));
  for (PetscInt r = rstart; r < rend; r++) PetscCall(VecSetValue(b, r, variant == ZERO ? 0 : variant == NOT_A_NUMBER && r == 7 ? NAN : 1 + r % 3, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  emu::async    = false;
  emu::resident = 1 + (int)(choice() % 5);
  PetscCall(SolveOnce(KSPPIPECG, "-ksp_gallop_fuse false", pc, norm, variant, A, b, y, &wanted));
  if (wanted.kernels) emu::Fail("%s: kernels in PETSc's solver", name);
  PetscCall(SolveOnce(type, "-ksp_gallopcg_variant pipelined", pc, norm, variant, A, b, x, &found));
  emu::resident = 1 + (int)(choice() % 5);
  PetscCall(SolveOnce(type, "-ksp_gallopcg_variant pipelined", pc, norm, variant, A, b, again, &found));
  if (found.its != wanted.its || found.reason != wanted.reason)
    emu::Fail("%s: %s after %ld iterations, not %s after %ld", name, KSPConvergedReasons[found.reason], (long)found.its, KSPConvergedReasons[wanted.reason], (long)wanted.its);
  solves++;
  iterations += found.its;
  if (found.kernels != 1 + found.its) emu::Fail("%s: %ld kernels in %ld iterations", name, found.kernels, (long)found.its);
  if (found.norms.size() != wanted.norms.size()) emu::Fail("%s: %zu norms, not %zu", name, found.norms.size(), wanted.norms.size());
  for (size_t k = 0; k < wanted.norms.size(); k++)
    if (!Near(found.norms[k], wanted.norms[k], wanted.norms[0])) emu::Fail("%s: norm %zu is %g, not %g", name, k, (double)found.norms[k], (double)wanted.norms[k]);
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &processes));
  PetscCall(VecEqual(x, again, &equal));
  PetscCall(VecAXPY(x, -1, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCall(VecNorm(y, NORM_2, &size));
  if (isfinite(size) != isfinite(difference) || (isfinite(size) && !(difference <= 1e-9 * (1 + size)))) emu::Fail("%s: solutions differ by %g of %g", name, (double)difference, (double)size);
  if (isfinite(size) && processes == 1 && !equal) emu::Fail("%s: another order of thread blocks gives other bits", name);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&again));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSolves()
{
  PetscFunctionBegin;
  PetscCall(PetscInitializeNoArguments());
  PetscCall(KSPInitializePackage());
  PetscCall(KSPRegister_GallopCG());
  for (KSPType type : {KSPGALLOPCG, KSPPIPECG})
    for (PCType pc : {PCJACOBI, PCNONE, PCSOR})
      for (KSPNormType norm : {KSP_NORM_NONE, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL})
        for (int variant = 0; variant < VARIANTS; variant++)
          if (full || choice() % 3 == 0) PetscCall(TestSolve(type, pc, norm, (Variant)variant));
  if (others) emu::Fail("another variant has solved");
  printf("  %ld solves, %ld iterations\n", solves, iterations);
  PetscCall(PetscFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  GallopFused work = {};
  PetscBool   done;

  Begin(argc, argv);
  emu::processors = 3;
  if (HasSameTypes()) CheckCall(TestSolves());
  else printf("  no solvers: PETSc has other types\n");
  CheckCall(GallopFusedCreate(&work, &done));
  CheckCall(GallopFusedGo(&work, PETSC_TRUE));
  for (PetscInt n : {0, 1, 255, 700, 9000})
    for (GallopPCKind pc : {GALLOP_PC_DIAGONAL, GALLOP_PC_NONE, GALLOP_PC_OTHER})
      for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED})
        for (bool first : {false, true})
          for (bool updates : {false, true}) TestKernels(&work, n, pc, norm, first, updates);
  return End();
}
