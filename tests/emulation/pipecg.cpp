/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The pipelined variant of CG: src/ksp/ksp/galloppipecgdevice.cu beside loops on the host, and galloppipecg.c, inside of gallopcg.c, beside PETSc's KSPPIPECG
*/
#include "solvetest.h"
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

static long others;

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

static PetscErrorCode TestSolves()
{
  const Solver solver = {KSPPIPECG, "-ksp_gallopcg_variant pipelined", [](const Result &r, PCType) { return r.kernels == 1 + r.its; }, false};

  PetscFunctionBegin;
  PetscCall(PetscInitializeNoArguments());
  PetscCall(KSPInitializePackage());
  PetscCall(KSPRegister_GallopCG());
  for (KSPType type : {KSPGALLOPCG, KSPPIPECG})
    for (PCType pc : {PCJACOBI, PCNONE, PCSOR})
      for (KSPNormType norm : {KSP_NORM_NONE, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL})
        for (int variant = 0; variant < VARIANTS; variant++)
          if (full || choice() % 3 == 0) PetscCall(TestSolve(solver, type, pc, norm, (Variant)variant));
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
