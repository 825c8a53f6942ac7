/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCG: the fused solve. The order of tests is that of PETSc's KSPSolve_CG() and KSPSolve_CG_SingleReduction().
*/

#include <gallop/matgallopimpl.h>
#include "gallopcg.h"
#include "gallopcgimpl.h"
#include <assert.h>

static_assert(sizeof(GallopRecord) % sizeof(PetscScalar) == 0 && offsetof(GallopCGMethod, factor) % sizeof(PetscScalar) == 0, "CUDA's code has another layout");

#if PetscDefined(HAVE_CUDA)
static const char CGFusedCitation[] = "@article{hs:52,\n  title = {Methods of Conjugate Gradients for Solving Linear Systems},\n  author = {Hestenes, Magnus R. and Stiefel, Eduard},\n"
                                      "  journal = {Journal of Research of the National Bureau of Standards},\n  volume = {49},\n  number = {6},\n  pages = {409--436},\n  year = {1952}\n}\n";
static PetscBool  CGFusedCited      = PETSC_FALSE;

typedef struct {
  KSP               ksp;
  GallopCG         *cg;
  Mat               A;
  Vec               x, r, z, p, w; /* w is z too where z is needed no more when there is w; z is r for want of a preconditioner in the variant with one reduction, which has also */
  Vec               s;             /* A z */
  PetscScalar       delta;         /* and z.s, where sums are local */
  GallopCGMethod    method;
  GallopCGArrays    arrays;
  PetscInt          ahead, started;         /* iterations that are started before the host knows the results of the first of them, and all that are */
  PetscInt64        number[GALLOP_RECORDS]; /* of results of iteration i, in i % GALLOP_RECORDS */
  PetscBool         dotted;                 /* the last product computed its dot product */
  KSPGallopRecorder graph;
  PetscLogDouble    flops[3]; /* of a graph's iteration: p, the product, x and r */
} Solve;

/* What is done after the sums of this process, or of all, have come: a norm is that of the squares then */
static PetscErrorCode Reduce(Solve *s, GallopRecord *record)
{
  PetscFunctionBegin;
  if (!s->method.local) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGallopReduce(s->ksp, record));
  record->norm = s->method.norm == KSP_NORM_NONE ? 0 : PetscSqrtReal(s->method.norm == KSP_NORM_NATURAL ? PetscAbsScalar(record->sum[1]) : record->norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Results of this number, on several processes the sums of all: of dpi, or of beta and of the square of the norm */
static PetscErrorCode Wait(Solve *s, PetscInt64 number, GallopRecord *record)
{
  PetscFunctionBegin;
  PetscCall(GallopFusedWait(&s->cg->base.work, number, record));
  PetscCall(Reduce(s, record));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of one reduction, with the results before these, whose dot product is delta */
static PetscErrorCode WaitForBoth(Solve *s, PetscInt64 number, GallopRecord *record)
{
  GallopRecord dot;

  PetscFunctionBegin;
  PetscCall(GallopFusedWait(&s->cg->base.work, number, &dot));
  PetscCall(GallopFusedWait(&s->cg->base.work, number - 1, record));
  record->sum[0] = dot.sum[0];
  PetscCall(Reduce(s, record));
  s->delta = record->sum[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to = A from, and their dot product, which a product of ours computes on the way */
static PetscErrorCode Product(Solve *s, Vec from, Vec to, PetscInt i)
{
  const PetscLogDouble flops = KSPGallopFlops();
  GallopTerms          terms = {.alpha = 1.0, .with = from};

  PetscFunctionBegin;
  PetscCall(GallopCGGetDot(&s->cg->base.work, &s->method, i, &terms.dot));
  PetscCall(MatGallopMultTerms(s->A, &terms, from, NULL, to, to, &s->dotted));
  s->flops[1] = KSPGallopFlops() - flops;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Unless the product has computed it. The host waits for that of its process. */
static PetscErrorCode Dot(Solve *s, PetscInt i)
{
  PetscFunctionBegin;
  if (s->dotted && s->method.local) GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopCGPublishDot(&s->cg->base.work, &s->method, i)));
  if (s->dotted && s->cg->base.work.group) GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopFusedSumDot(&s->cg->base.work)));
  if (!s->dotted) GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopCGDot(&s->cg->base.work, &s->arrays, &s->method, i)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* s = A z and delta of the next iteration, whose results have the next number */
static PetscErrorCode SingleProduct(Solve *s, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(Product(s, s->z, s->s, i));
  PetscCall(VecGallopToDevice(s->s, &s->arrays.s));
  if (s->method.local) s->cg->base.work.number++;
  PetscCall(Dot(s, i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z by the preconditioner of the user's, and the sums that need it */
static PetscErrorCode Precondition(Solve *s, PetscInt i, PetscBool tests)
{
  const PetscScalar *z;

  PetscFunctionBegin;
  PetscCall(KSP_PCApply(s->ksp, s->r, s->z));
  PetscCall(VecGallopToDevice(s->z, &z)); /* which no kernel writes then: one that was computed on the host stays there too */
  s->arrays.z = (PetscScalar *)z;
  GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopCGSums(&s->cg->base.work, &s->arrays, &s->method, i, tests)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of the first residual, and what the host needs of them */
static PetscErrorCode Begin(Solve *s, GallopRecord *record)
{
  GallopFused *work = &s->cg->base.work;

  PetscFunctionBegin;
  PetscCall(GallopFusedGo(work, PETSC_TRUE));
  PetscCall(VecGetLocalSize(s->r, &s->arrays.n));
  PetscCall(VecGallopToWrite(s->x, &s->arrays.x));
  PetscCall(VecGallopToWrite(s->r, &s->arrays.r));
  if (s->method.pc == GALLOP_PC_DIAGONAL) PetscCall(VecGallopToDevice(s->cg->base.diagonal.d, &s->arrays.d));
  work->number++;
  if (s->method.pc == GALLOP_PC_OTHER) PetscCall(Precondition(s, -1, PETSC_FALSE));
  else GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopCGSums(work, &s->arrays, &s->method, -1, PETSC_FALSE)));
  if (s->method.single) {
    if (s->method.pc == GALLOP_PC_DIAGONAL) PetscCall(KSP_PCApply(s->ksp, s->r, s->z));
    if (s->method.pc != GALLOP_PC_OTHER) PetscCall(VecGallopToWrite(s->z, &s->arrays.z));
    PetscCall(VecGallopToWrite(s->p, &s->arrays.p));
    PetscCall(VecGallopToWrite(s->w, &s->arrays.w));
    PetscCall(SingleProduct(s, 0));
  }
  if (s->method.single && s->method.local) PetscCall(WaitForBoth(s, work->number, record));
  else PetscCall(Wait(s, work->number, record));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* p, w = A p, and p.w */
static PetscErrorCode Direction(Solve *s, PetscInt i)
{
  GallopFused *work = &s->cg->base.work;

  PetscFunctionBegin;
  PetscCall(VecGallopToWrite(s->p, &s->arrays.p));
  GallopFusedLogKept(KSP_GallopCGFused, s->ksp, s->flops[0], PetscCall(GallopCGDirection(work, &s->arrays, &s->method, i)));
  PetscCall(Product(s, s->p, s->w, i));
  PetscCall(VecGallopToWrite(s->w, &s->arrays.w));
  s->number[i % GALLOP_RECORDS] = ++work->number;
  PetscCall(Dot(s, i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x and r, and the sums; with one reduction before that p and w, and then s and delta. PETSc need not know of each new x and r where it looks at none. */
static PetscErrorCode Update(Solve *s, PetscInt i)
{
  GallopFused    *work  = &s->cg->base.work;
  const PetscBool tests = (PetscBool)(i + 1 >= s->ksp->min_it);

  PetscFunctionBegin;
  if (s->ahead == 1) {
    PetscCall(VecGallopToWrite(s->x, &s->arrays.x));
    PetscCall(VecGallopToWrite(s->r, &s->arrays.r));
  }
  if (s->method.single) {
    if (s->method.pc != GALLOP_PC_OTHER) PetscCall(VecGallopToWrite(s->z, &s->arrays.z)); /* or a product on the host would read what it read before; z may be r */
    s->number[i % GALLOP_RECORDS] = ++work->number;
    GallopFusedLogKept(KSP_GallopCGFused, s->ksp, s->flops[2], PetscCall(GallopCGSingle(work, &s->arrays, &s->method, i, tests)));
  } else GallopFusedLogKept(KSP_GallopCGFused, s->ksp, s->flops[2], PetscCall(GallopCGUpdate(work, &s->arrays, &s->method, i, tests)));
  if (s->method.pc == GALLOP_PC_OTHER) PetscCall(Precondition(s, i, tests));
  if (s->method.single) PetscCall(SingleProduct(s, i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next iteration but k, as kernels or into a graph */
static PetscErrorCode Iterate(void *ctx, PetscInt k)
{
  Solve *s = (Solve *)ctx;

  PetscFunctionBegin;
  if (!s->method.single) PetscCall(Direction(s, s->started + k));
  PetscCall(Update(s, s->started + k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What an iteration of a graph adds to the log, and its number */
static PetscErrorCode Replay(void *ctx, PetscInt k)
{
  Solve          *s      = (Solve *)ctx;
  const PetscBool single = s->method.single;

  PetscFunctionBegin;
  if (!single) GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[0])));
  PetscCall(MatGallopMultAgain_Seq(s->A, single ? s->z : s->p, single ? s->s : s->w, s->flops[1]));
  GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[2])));
  s->number[(s->started + k) % GALLOP_RECORDS] = ++s->cg->base.work.number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  p.w of iteration i. Where the GPU has the sums of all processes, iterations are started up to the one that the host goes ahead to, and their other results come, too, unless the GPU has stopped.
  Where MPI adds them up, it comes from delta where there is one reduction.
*/
static PetscErrorCode GetDpi(Solve *s, PetscInt i, PetscScalar dpiold, GallopRecord *record)
{
  PetscFunctionBegin;
  if (s->method.single && s->method.local) {
    record->sum[0] = i ? s->delta - s->method.b * s->method.b * dpiold : s->delta;
    s->started     = i + 1;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* one at least, as PETSc's CG */
  while (s->started < PetscMax(PetscMin(i + s->ahead, s->ksp->max_it), i + 1)) {
    PetscBool graph = s->dotted;

    if (graph) PetscCall(KSPGallopRecordable(s->ksp, s->A, &s->graph, s->started, &graph));
    if (graph) PetscCall(KSPGallopGraph(&s->cg->base.work, &s->graph, Iterate, Replay, s, &s->started));
    else {
      if (s->method.local) PetscCall(Direction(s, s->started));
      else PetscCall(Iterate(s, 0));
      s->started++;
    }
  }
  PetscCall(Wait(s, s->number[i % GALLOP_RECORDS], record));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other results of iteration i; betaold is beta before it */
static PetscErrorCode GetSums(Solve *s, PetscInt i, PetscScalar betaold, GallopRecord *record)
{
  GallopFused *work = &s->cg->base.work;

  PetscFunctionBegin;
  if (!s->method.local) PetscFunctionReturn(PETSC_SUCCESS); /* they came with dpi */
  s->method.factor = betaold / record->sum[0];
  if (s->method.single) {
    PetscCall(Update(s, i));
    PetscCall(WaitForBoth(s, work->number, record));
    s->method.b = record->sum[1] / betaold;
  } else {
    work->number++;
    PetscCall(Update(s, i));
    PetscCall(Wait(s, work->number, record));
    s->method.factor = record->sum[1] / betaold;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x, and the objective function 1/2 x'A x - x'b there */
static PetscErrorCode FirstResidual(Solve *s)
{
  KSP          ksp = s->ksp;
  GallopScalar rx, bx; /* VecDot() wants them aligned */

  PetscFunctionBegin;
  s->cg->objective = 0;
  if (ksp->guess_zero) PetscCall(VecCopy(ksp->vec_rhs, s->r));
  else {
    PetscCall(KSP_MatMult(ksp, s->A, s->x, s->r)); /* not MatResidual(), which rounds differently: an exact solution has no residual, as in KSPCG */
    PetscCall(VecAYPX(s->r, -1.0, ksp->vec_rhs));
    if (s->cg->type == KSP_CG_HERMITIAN) {
      PetscCall(VecDot(s->r, s->x, &rx));
      PetscCall(VecDot(ksp->vec_rhs, s->x, &bx));
    } else {
      PetscCall(VecTDot(s->r, s->x, &rx));
      PetscCall(VecTDot(ksp->vec_rhs, s->x, &bx));
    }
    s->cg->objective = 0.5 * PetscRealPart(rx) - 0.5 * PetscRealPart(bx);
  }
  PetscCall(VecFlag(s->r, ksp->reason == KSP_DIVERGED_PC_FAILED)); /* perhaps on this process alone: the first norm shows it to all */
  ksp->reason = KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As KSPCheckNorm() and KSPCheckDot() do for norm types that use them */
static PetscErrorCode CheckSums(KSP ksp, const GallopRecord *record)
{
  PetscFunctionBegin;
  KSPCheckNorm(ksp, record->norm);
  if (ksp->normtype == KSP_NORM_NATURAL) KSPCheckDot(ksp, record->sum[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether PETSc's CG tests the norm of the first residual before it applies a preconditioner that is costly, or fails */
static PetscBool TestsResidual(const Solve *s)
{
  return (PetscBool)(s->method.pc == GALLOP_PC_OTHER && (s->method.norm == KSP_NORM_UNPRECONDITIONED || s->method.norm == KSP_NORM_NONE));
}

static PetscErrorCode TestResidual(Solve *s)
{
  KSP       ksp  = s->ksp;
  PetscReal norm = 0;

  PetscFunctionBegin;
  if (s->method.norm == KSP_NORM_UNPRECONDITIONED) PetscCall(VecNorm(s->r, NORM_2, &norm));
  KSPCheckNorm(ksp, norm);
  PetscCall(KSPGallopTest(ksp, 0, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What ends the method itself: the parameters of PETSc's KSPSolve_CG(), in its words */
static PetscErrorCode CheckBeta(KSP ksp, PetscInt i, PetscScalar beta, PetscScalar betaold)
{
  PetscFunctionBegin;
  if (beta == 0.0) {
    ksp->reason = KSP_CONVERGED_ATOL;
    PetscCall(PetscInfo(ksp, "converged due to beta = 0\n"));
  #if !PetscDefined(USE_COMPLEX)
  } else if (i > 0 && beta * betaold < 0.0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite preconditioner, beta %g, betaold %g", (double)PetscRealPart(beta), (double)PetscRealPart(betaold));
    ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite preconditioner\n"));
  #endif
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckDpi(KSP ksp, PetscBool single, PetscInt i, PetscScalar dpi, PetscScalar dpiold)
{
  PetscFunctionBegin;
  KSPCheckDot(ksp, dpi);
  if (dpi != 0.0 && (!i || PetscSign(PetscRealPart(dpi)) * PetscSign(PetscRealPart(dpiold)) >= 0.0)) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->converged_neg_curve && !single) {
    PetscCall(PetscInfo(ksp, "converged due to negative curvature: %g\n", (double)PetscRealPart(dpi)));
    ksp->reason = KSP_CONVERGED_NEG_CURVE;
  } else {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite matrix, dpi %g, dpiold %g", (double)PetscRealPart(dpi), (double)PetscRealPart(dpiold));
    ksp->reason = KSP_DIVERGED_INDEFINITE_MAT;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite matrix\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve_Fused(Solve *s)
{
  KSP          ksp = s->ksp;
  PetscInt     i   = 0;
  PetscScalar  beta, betaold = 1.0, dpi = 0.0, dpiold;
  GallopRecord record;

  PetscFunctionBegin;
  ksp->its = 0;
  PetscCall(KSPGallopGetAhead(ksp, &s->cg->base, s->A, s->method.pc, &s->ahead));
  PetscCall(KSPGallopRecords(ksp, &s->cg->base, s->ahead, &s->graph));
  PetscCall(FirstResidual(s));
  if (TestsResidual(s)) PetscCall(TestResidual(s));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Begin(s, &record));
  PetscCall(CheckSums(ksp, &record));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (!TestsResidual(s)) PetscCall(KSPGallopTest(ksp, 0, record.norm));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  beta = record.sum[1];
  KSPCheckDot(ksp, beta);
  s->method.ttol  = ksp->converged == KSPConvergedDefault ? ksp->ttol : -1;
  s->method.limit = ksp->converged == KSPConvergedDefault ? ksp->divtol * ksp->rnorm0 : PETSC_MAX_REAL;
  do {
    ksp->its = i + 1;
    PetscCall(CheckBeta(ksp, i, beta, betaold));
    if (ksp->reason) break;
    PetscCall(GetDpi(s, i, dpi, &record));
    betaold = beta;
    dpiold  = dpi;
    dpi     = record.sum[0];
    PetscCall(CheckDpi(ksp, s->method.single, i, dpi, dpiold));
    if (ksp->reason == KSP_DIVERGED_NANORINF || ksp->reason == KSP_DIVERGED_PC_FAILED) PetscFunctionReturn(PETSC_SUCCESS); /* whatever max_it */
    if (ksp->reason) break;
    PetscCall(GetSums(s, i, betaold, &record));
    PetscCall(CheckSums(ksp, &record));
    if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
    s->cg->objective -= PetscRealPart(0.5 * (betaold / dpi) * betaold);
    PetscCall(KSPGallopTest(ksp, i + 1, record.norm));
    PetscCheck(!ksp->reason || record.stopped || s->started == i + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The GPU has gone on after iteration %" PetscInt_FMT ", which ended the solve", i + 1);
    if (ksp->reason) break;
    beta = record.sum[1];
    KSPCheckDot(ksp, beta);
    i++;
    if (record.stopped && i < ksp->max_it) { /* the host knows better */
      PetscCall(GallopFusedGo(&s->cg->base.work, PETSC_FALSE));
      if (s->method.single) PetscCall(SingleProduct(s, i)); /* whose dot product may be a kernel that did nothing */
      s->started       = i;
      s->graph.records = PETSC_FALSE;
    }
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopCGSolve - A solve that can be fused, and has room */
PetscErrorCode KSPGallopCGSolve(KSP ksp, GallopCG *cg)
{
  const PetscBool single = (PetscBool)(cg->variant == GALLOP_CG_SINGLE);
  Solve           s      = {
                   .ksp = ksp, .cg = cg, .x = ksp->vec_sol, .r = ksp->work[0], .z = ksp->work[1], .p = ksp->work[2], .method = {.norm = ksp->normtype, .conjugate = (PetscBool)(cg->type == KSP_CG_HERMITIAN), .single = single}
  };

  PetscFunctionBegin;
  PetscCall(PetscCitationsRegister(CGFusedCitation, &CGFusedCited));
  PetscCall(KSPGallopGetGroup(ksp, &cg->base, &s.method.local));
  PetscCall(PCGetOperators(ksp->pc, &s.A, NULL));
  PetscCall(PCGallopGetKind(ksp->pc, &s.method.pc));
  if (s.method.pc == GALLOP_PC_DIAGONAL) PetscCall(KSPGallopGetDiagonal(ksp, &cg->base, s.r, s.z));
  if (single) {
    s.s = ksp->work[3];
    s.w = ksp->work[4];
    if (s.method.pc == GALLOP_PC_NONE) s.z = s.r;
  } else s.w = s.z;
  PetscCall(Solve_Fused(&s));
  if (s.ahead > 1) { /* what kernels have written without PETSc's knowledge */
    PetscCall(VecGallopToWrite(s.x, &s.arrays.x));
    PetscCall(VecGallopToWrite(s.r, &s.arrays.r));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
