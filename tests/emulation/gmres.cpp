/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Classical Gram-Schmidt of GMRES: src/ksp/ksp/gallopgmresdevice.cu beside sums on the host, and gallopgmres.c beside PETSc's solvers
*/
#include "solvers.h"
#include "ksp/ksp/gallopgmresdevice.cu"
#define VecGallopIsCUDA VecIsHere /* which a test says */
static PetscErrorCode VecIsHere(Vec, PetscBool *);
#include "ksp/ksp/gallopgmres.c"
#undef VecGallopIsCUDA

PetscErrorCode PCGallopGetKind(PC, GallopPCKind *kind)
{
  *kind = GALLOP_PC_OTHER;
  return PETSC_SUCCESS;
}

static GallopFused      work;
static GallopProjection projection;
static const PetscInt   Most = 300; /* vectors */

/* Whole numbers, so that sums are exact in any order */
static PetscScalar Whole(int most)
{
  const PetscReal re = (PetscReal)((int)(choice() % (2 * most + 1)) - most);

#if PetscDefined(USE_COMPLEX)
  return PetscCMPLX(re, (PetscReal)((int)(choice() % (2 * most + 1)) - most));
#else
  return re;
#endif
}

static PetscScalar *NewVector(PetscInt n, bool whole, int most)
{
  std::vector<PetscScalar> v(n);

  for (auto &e : v) e = whole ? Whole(most) : Any();
  return emu::Guarded(v);
}

/* What the launchers leave: factors in pinned memory, w and the square of its norm */
static PetscReal Run(PetscInt n, PetscInt nv, const std::vector<const PetscScalar *> &v, PetscScalar *w, bool local)
{
  GallopRecord record;

  Scatter();
  std::fill(projection.result, projection.result + nv, (PetscScalar)NAN);
  work.number++;
  CheckCall(GallopProjectionDots(&work, &projection, n, nv, v.data(), w, (PetscBool)local));
  if (local) {
    CheckCall(GallopFusedWait(&work, work.number, &record));
    for (PetscInt j = 0; j < nv; j++)
      if (!IsFinite(projection.result[j])) return 0; /* the host ends the solve */
    work.number++;
  }
  CheckCall(GallopProjectionSubtract(&work, &projection, n, nv, v.data(), local ? projection.result : NULL, w));
  CheckCall(GallopFusedWait(&work, work.number, &record));
  emu::Sync();
  emu::CheckCanaries("Gram-Schmidt");
  return record.norm;
}

static void CheckState(const char *name)
{
  const State *state = (State *)work.state;
  unsigned     ended = state->fused.ended + state->groupsended;

  for (unsigned e : state->groupended) ended += e;
  if (ended) emu::Fail("%s: counters of thread blocks are not 0", name);
}

static void Test(PetscInt n, PetscInt nv, bool whole, int bad, bool local)
{
  const PetscReal                  tolerance = whole ? 0 : (PetscReal)n * nv * 8 * PETSC_MACHINE_EPSILON;
  std::vector<const PetscScalar *> v(nv);
  std::vector<PetscScalar *>       written(nv);
  std::vector<PetscScalar>         h(nv), wanted(n);
  PetscScalar                     *w    = NewVector(n, whole, 2), *again;
  PetscReal                        norm = 0, found;
  char                             name[200];

  snprintf(name, sizeof(name), "%ld rows, %ld vectors, whole %d, bad %d, local %d, %d processors", (long)n, (long)nv, whole, bad, local, emu::processors);
  for (PetscInt j = 0; j < nv; j++) v[j] = written[j] = NewVector(n, whole, 1);
  if (bad && n) {
    if (bad == 1) w[choice() % n] = NAN;
    else written[choice() % nv][choice() % n] = INFINITY;
  }
  again = emu::Guarded(std::vector<PetscScalar>(w, w + n));
  for (PetscInt i = 0; i < n; i++) wanted[i] = w[i];
  for (PetscInt j = 0; j < nv; j++)
    for (PetscInt i = 0; i < n; i++) h[j] += w[i] * PetscConj(v[j][i]);
  for (PetscInt i = 0; i < n && !bad; i++) {
    for (PetscInt j = 0; j < nv; j++) wanted[i] -= h[j] * v[j][i];
    norm += PetscRealPart(wanted[i] * PetscConj(wanted[i]));
  }
  found = Run(n, nv, v, w, local);
  CheckState(name);
  if (bad && n) {
    bool finite = true;

    for (PetscInt j = 0; j < nv; j++) finite = finite && IsFinite(projection.result[j]);
    if (finite) emu::Fail("%s: all factors are numbers", name);
    if (memcmp((void *)w, (void *)again, n * sizeof(*w))) emu::Fail("%s: w has changed", name);
    return;
  }
  for (PetscInt j = 0; j < nv; j++)
    if (!(PetscAbsScalar(projection.result[j] - h[j]) <= tolerance)) emu::Fail("%s: factor %ld is %g, not %g", name, (long)j, (double)PetscRealPart(projection.result[j]), (double)PetscRealPart(h[j]));
  for (PetscInt i = 0; i < n; i++)
    if (!(PetscAbsScalar(w[i] - wanted[i]) <= tolerance * nv)) emu::Fail("%s: row %ld is %g, not %g", name, (long)i, (double)PetscRealPart(w[i]), (double)PetscRealPart(wanted[i]));
  if (!(PetscAbsReal(found - norm) <= (whole ? 4 * PETSC_MACHINE_EPSILON * n : tolerance * nv) * (1 + norm))) emu::Fail("%s: the square of the norm is %g, not %g", name, (double)found, (double)norm);

  const std::vector<PetscScalar> first(projection.result, projection.result + nv);
  const PetscReal                other = Run(n, nv, v, again, local);

  if (memcmp(&other, &found, sizeof(found)) || memcmp((void *)w, (void *)again, n * sizeof(*w)) || memcmp((void *)first.data(), (void *)projection.result, nv * sizeof(*w)))
    emu::Fail("%s: another order of thread blocks gives other bits", name);
}

/* ---- solvers ---- */

static bool away; /* vectors are elsewhere, on the first process */

static PetscErrorCode VecIsHere(Vec v, PetscBool *is)
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)v), &rank));
  *is = (PetscBool)(!away || rank);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* They leave after *ctx iterations */
static PetscErrorCode Leave(KSP, PetscInt its, PetscReal, PetscCtx ctx)
{
  away = its >= *(int *)ctx;
  return PETSC_SUCCESS;
}

/* b, x and its of a solve; ours has the orthogonalization of gallopgmres.c */
static PetscErrorCode Solve(KSPType type, bool ours, PetscInt restart, KSPOrthogonalizationCGSRefinementType refinement, int leaves, Vec b, Vec x, Mat A, PetscInt *its, KSPConvergedReason *reason, int *norms)
{
  KSP                ksp;
  PC                 pc;
  PetscEventPerfInfo info, before;
  PetscLogEvent      norm;

  PetscFunctionBegin;
  PetscCall(PetscLogEventGetId("VecNorm", &norm));
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, norm, &before));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGMRESSetRestart(ksp, restart));
  PetscCall(KSPOrthogonalizationSetCGSRefinementType(ksp, refinement));
  PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetTolerances(ksp, 1e-4, PETSC_CURRENT, PETSC_CURRENT, 60));
  PetscCall(KSPMonitorSet(ksp, Leave, &leaves, NULL));
  if (!ours) PetscCall(KSPOrthogonalizationSet(ksp, KSPOrthogonalizationClassicalGramSchmidt));
  PetscCall(VecSet(x, 0));
  launches = 0;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, norm, &info));
  *norms = info.count - before.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSolve(KSPType type, PetscInt restart, KSPOrthogonalizationCGSRefinementType refinement, bool nan, int leaves)
{
  const PetscInt     n = 200;
  Mat                A;
  Vec                b, x, y;
  PetscInt           rstart, rend, its, wanted;
  PetscReal          difference, size;
  KSPConvergedReason reason, theirs;
  int                norms, theirnorms;
  long               least, most;
  char               name[200];

  PetscFunctionBegin;
  snprintf(name, sizeof(name), "%s, restart %ld, refinement %d, NaN %d, leaves %d", type, (long)restart, refinement, nan, leaves);
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 3, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt r = rstart; r < rend; r++) {
    PetscCall(MatSetValue(A, r, r, nan && r == 7 ? NAN : 2.2 + (PetscReal)(r % 7) / 5, INSERT_VALUES));
    if (r) PetscCall(MatSetValue(A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(A, r, r + 1, -0.9, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(b, 1));
  emu::async = false;
  PetscCall(Solve(type, false, restart, refinement, leaves, b, y, A, &wanted, &theirs, &theirnorms));
  if (launches) emu::Fail("%s: kernels in PETSc's solver", name);
  away = false;
  PetscCall(Solve(type, true, restart, refinement, leaves, b, x, A, &its, &reason, &norms));
  away = false;
  if (its != wanted || reason != theirs) emu::Fail("%s: %s after %ld iterations, not %s after %ld", name, KSPConvergedReasons[reason], (long)its, KSPConvergedReasons[theirs], (long)wanted);
  if (norms != theirnorms) emu::Fail("%s: %d norms, not %d", name, norms, theirnorms);
  least = leaves < its ? 0 : 2 * its * (refinement == KSP_ORTHOGONALIZATION_CGS_REFINE_ALWAYS ? 2 : 1);
  most  = leaves < its ? 2 * (refinement == KSP_ORTHOGONALIZATION_CGS_REFINE_NEVER ? 1 : 2) * leaves + its - leaves : 2 * its * (refinement == KSP_ORTHOGONALIZATION_CGS_REFINE_NEVER ? 1 : 2);
  if (!nan && (launches < least || launches > most)) emu::Fail("%s: %ld kernels in %ld iterations", name, launches, (long)its);
  PetscCall(VecAXPY(x, -1, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCall(VecNorm(y, NORM_2, &size));
  if (!(difference <= (PetscReal)(sizeof(PetscReal) < 8 ? 1e-3 : 1e-9) * (1 + size))) emu::Fail("%s: solutions differ by %g of %g", name, (double)difference, (double)size);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSolves()
{
  PetscFunctionBegin;
  PetscCall(PetscInitializeNoArguments());
  PetscCall(PetscLogDefaultBegin());
  PetscCall(KSPInitializePackage());
  PetscCall(KSPRegister_GallopGMRES());
  for (KSPType type : {KSPGALLOPGMRES, KSPGMRES, KSPFGMRES, KSPLGMRES})
    for (PetscInt restart : {4, 30})
      for (int refinement = 0; refinement < 3; refinement++)
        for (bool nan : {false, true})
          for (int leaves : {0, 3, 1000}) PetscCall(TestSolve(type, restart, (KSPOrthogonalizationCGSRefinementType)refinement, nan, leaves));
  PetscCall(PetscFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool done;

  Begin(argc, argv);
  if (HasSameTypes()) CheckCall(TestSolves());
  else printf("  no solvers: PETSc has other types\n");
  for (int processors : {1, 3}) {
    emu::processors = processors;
    CheckCall(GallopFusedCreate(&work, &done));
    CheckCall(GallopProjectionCreate(&projection, Most, &done));
    CheckCall(GallopFusedGo(&work, PETSC_TRUE));
    for (PetscInt n : {0, 1, 255, 700, 2500})
      for (PetscInt nv : {1, 2, 4, 5, 8, 9, 16, 17, 31, 33, 100, 128, 129, 300})
        for (int kind = 0; kind < 8; kind++)
          if (full || choice() % (nv > 40 ? 24 : 6) == 0) Test(n, nv, kind % 2, kind >= 6 ? kind - 5 : 0, kind / 2 % 2);
    CheckCall(GallopProjectionDestroy(&projection));
    CheckCall(GallopFusedDestroy(&work));
  }
  return End();
}
