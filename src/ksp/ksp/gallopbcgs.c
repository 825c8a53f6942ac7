/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPBCGS: PETSc's KSPBCGS, whose vector operations are fused on the GPU

  It is KSPBCGS with another KSPSolve(): options, set-up and what is not fused are the parent's. Names and the order of tests are those of PETSc's KSPSolve_BCGS().
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/pcimpl.h>
#include "gallopbcgs.h"
#include "gallopksp.h"
#include <assert.h>

static_assert(offsetof(GallopBCGSMethod, alpha) % sizeof(PetscScalar) == 0, "CUDA's code has another layout");

static PetscErrorCode (*parentcreate)(KSP) = NULL;
static PetscLogEvent BCGSFused             = -1;

typedef struct {
  GallopKSP base;
} GallopBCGS;

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode CanFuse(KSP ksp, const char **why)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopCanFuse(ksp, why));
  if (!*why && ksp->pc_side == PC_RIGHT && !ksp->guess_zero) *why = "there are a guess and a preconditioner on the right";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a fused solve ---- */

static const char BCGSFusedCitation
  [] = "@article{vorst92,\n  title = {{Bi-CGSTAB}: A Fast and Smoothly Converging Variant of {Bi-CG} for the Solution of Nonsymmetric Linear Systems},\n  author = {van der Vorst, H. A.},\n"
       "  journal = {SIAM Journal on Scientific and Statistical Computing},\n  volume = {13},\n  number = {2},\n  pages = {631--644},\n  year = {1992}\n}\n";
static PetscBool BCGSFusedCited = PETSC_FALSE;

typedef struct {
  KSP               ksp;
  GallopBCGS       *bcgs;
  Mat               A;
  Vec               x, r, rp, v, t, s, p;
  GallopPCKind      pc; /* on the left; GALLOP_PC_OTHER is any that PETSc applies */
  GallopBCGSMethod  method;
  GallopBCGSArrays  arrays;
  PetscInt          ahead, started;         /* iterations that are started before the host knows the results of the first of them, and all that are */
  PetscInt64        number[GALLOP_RECORDS]; /* of results of iteration i, in i % GALLOP_RECORDS */
  PetscBool         dotted;                 /* the last product computed (v, rp) */
  PetscBool         unwinds;                /* x is still to be multiplied by a preconditioner on the right, which PETSc's does not do where it returns early */
  KSPGallopRecorder graph;
  PetscLogDouble    flops[6]; /* of a graph's iteration: p, v, s, t, the dot products of t, and x and r */
} Solve;

/* y = K x, with the preconditioner; w is workspace. With (y, with) where that is not NULL and the product computes it: s->dotted. */
static PetscErrorCode Apply(Solve *s, Vec x, Vec y, Vec w, Vec with, const PetscScalar **array)
{
  const PetscLogDouble flops = KSPGallopFlops();
  GallopTerms          terms = {.alpha = 1.0, .d = s->pc == GALLOP_PC_DIAGONAL ? s->bcgs->base.diagonal.d : NULL, .with = with};

  PetscFunctionBegin;
  if (with) s->dotted = PETSC_FALSE;
  if (s->pc == GALLOP_PC_OTHER) PetscCall(KSP_PCApplyBAorAB(s->ksp, x, y, w));
  else {
    if (with && !s->method.local) PetscCall(GallopBCGSGetDot(&s->bcgs->base.work, &terms.dot));
    PetscCall(MatGallopMultTerms(s->A, &terms, x, NULL, y, y, terms.dot ? &s->dotted : NULL));
  }
  s->flops[with ? 1 : 3] = KSPGallopFlops() - flops;
  PetscCall(VecGallopToDevice(y, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first residual r, and its norm */
static PetscErrorCode Begin(Solve *s, GallopRecord *record)
{
  GallopFused *work = &s->bcgs->base.work;

  PetscFunctionBegin;
  PetscCall(KSPInitialResidual(s->ksp, s->x, s->v, s->t, s->r, s->ksp->vec_rhs));
  PetscCall(GallopFusedGo(work, PETSC_TRUE));
  PetscCall(VecGetLocalSize(s->r, &s->arrays.n));
  PetscCall(VecGallopToWrite(s->x, &s->arrays.x));
  PetscCall(VecGallopToWrite(s->r, &s->arrays.r));
  PetscCall(VecGallopToWrite(s->rp, &s->arrays.rp));
  work->number++;
  GallopFusedLog(BCGSFused, s->ksp, PetscCall(GallopBCGSBegin(work, &s->arrays, &s->method)));
  PetscCall(KSPGallopWait(s->ksp, &s->bcgs->base, s->method.local, work->number, record));
  if (s->method.local) record->norm = PetscSqrtReal(record->norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* p, v = K p and (v, rp) */
static PetscErrorCode Direction(Solve *s, PetscInt i)
{
  GallopFused *work = &s->bcgs->base.work;

  PetscFunctionBegin;
  PetscCall(VecGallopToWrite(s->p, &s->arrays.p));
  GallopFusedLogKept(BCGSFused, s->ksp, s->flops[0], PetscCall(GallopBCGSDirection(work, &s->arrays, &s->method, (PetscBool)!i)));
  PetscCall(Apply(s, s->p, s->v, s->t, s->rp, &s->arrays.v));
  if (s->dotted && work->group) GallopFusedLog(BCGSFused, s->ksp, PetscCall(GallopFusedSumDot(work)));
  if (!s->dotted) GallopFusedLog(BCGSFused, s->ksp, PetscCall(GallopBCGSDotVRP(work, &s->arrays, &s->method)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* s, t = K s, (s, t) and (t, t); r is workspace of a preconditioner, as in PETSc */
static PetscErrorCode Half(Solve *s)
{
  GallopFused *work = &s->bcgs->base.work;

  PetscFunctionBegin;
  PetscCall(VecGallopToWrite(s->s, &s->arrays.s));
  GallopFusedLogKept(BCGSFused, s->ksp, s->flops[2], PetscCall(GallopBCGSHalf(work, &s->arrays, &s->method)));
  PetscCall(Apply(s, s->s, s->t, s->r, NULL, &s->arrays.t));
  GallopFusedLogKept(BCGSFused, s->ksp, s->flops[4], PetscCall(GallopBCGSDotST(work, &s->arrays, &s->method)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x and r, and the sums. PETSc need not know of each new x and r where it looks at none. */
static PetscErrorCode Update(Solve *s, PetscInt i)
{
  PetscFunctionBegin;
  if (s->ahead == 1) {
    PetscCall(VecGallopToWrite(s->x, &s->arrays.x));
    PetscCall(VecGallopToWrite(s->r, &s->arrays.r));
  }
  GallopFusedLogKept(BCGSFused, s->ksp, s->flops[5], PetscCall(GallopBCGSUpdate(&s->bcgs->base.work, &s->arrays, &s->method, (PetscBool)(i + 1 >= s->ksp->min_it))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next iteration but k, as kernels or into a graph */
static PetscErrorCode Next(void *ctx, PetscInt k)
{
  Solve         *s = (Solve *)ctx;
  const PetscInt i = s->started + k;

  PetscFunctionBegin;
  s->number[i % GALLOP_RECORDS] = ++s->bcgs->base.work.number;
  PetscCall(Direction(s, i));
  if (s->method.local) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Half(s));
  PetscCall(Update(s, i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What an iteration of a graph adds to the log, and its number */
static PetscErrorCode Replay(void *ctx, PetscInt k)
{
  Solve *s = (Solve *)ctx;

  PetscFunctionBegin;
  GallopFusedLog(BCGSFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[0])));
  PetscCall(MatGallopMultAgain_Seq(s->A, s->p, s->v, s->flops[1]));
  GallopFusedLog(BCGSFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[2])));
  PetscCall(MatGallopMultAgain_Seq(s->A, s->s, s->t, s->flops[3]));
  GallopFusedLog(BCGSFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[4])));
  GallopFusedLog(BCGSFused, s->ksp, PetscCall(PetscLogGpuFlops(s->flops[5])));
  s->number[(s->started + k) % GALLOP_RECORDS] = ++s->bcgs->base.work.number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* (v, rp) of iteration i. Where the GPU has the sums of all processes, iterations are started up to the one that the host goes ahead to, and the other results come, too, unless the GPU has stopped. */
static PetscErrorCode GetVRP(Solve *s, PetscInt i, GallopRecord *record)
{
  PetscFunctionBegin;
  /* one at least, as PETSc's BCGS */
  while (s->started < PetscMax(PetscMin(i + s->ahead, s->ksp->max_it), i + 1)) {
    PetscBool graph = s->dotted;

    if (graph) PetscCall(KSPGallopRecordable(s->ksp, s->A, &s->graph, s->started, &graph));
    if (graph) PetscCall(KSPGallopGraph(&s->bcgs->base.work, &s->graph, Next, Replay, s, &s->started));
    else {
      PetscCall(Next(s, 0));
      s->started++;
    }
  }
  PetscCall(KSPGallopWait(s->ksp, &s->bcgs->base, s->method.local, s->number[i % GALLOP_RECORDS], record));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether t is 0 in this iteration */
static PetscErrorCode IsZero(Solve *s, PetscScalar rho, GallopRecord *record, PetscBool *zero)
{
  PetscFunctionBegin;
  *zero = (PetscBool)(record->stopped == GALLOP_BCGS_ST);
  if (!s->method.local) PetscFunctionReturn(PETSC_SUCCESS);
  s->method.alpha = rho / record->sum[0];
  s->bcgs->base.work.number++;
  PetscCall(Half(s));
  PetscCall(KSPGallopWait(s->ksp, &s->bcgs->base, s->method.local, s->bcgs->base.work.number, record));
  *zero           = (PetscBool)(record->norm == 0);
  s->method.omega = record->sum[0] / record->norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rho of the next iteration, and the norm */
static PetscErrorCode GetNorm(Solve *s, PetscInt i, PetscScalar rho, GallopRecord *record)
{
  PetscFunctionBegin;
  if (!s->method.local) PetscFunctionReturn(PETSC_SUCCESS); /* they came with (v, rp) */
  s->bcgs->base.work.number++;
  PetscCall(Update(s, i));
  PetscCall(KSPGallopWait(s->ksp, &s->bcgs->base, s->method.local, s->bcgs->base.work.number, record));
  record->norm   = PetscSqrtReal(record->norm);
  s->method.beta = (record->sum[1] / rho) * (s->method.alpha / s->method.omega);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BreakDown(KSP ksp, const char message[], const char info[])
{
  PetscFunctionBegin;
  PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "%s", message);
  ksp->reason = KSP_DIVERGED_BREAKDOWN;
  PetscCall(PetscInfo(ksp, "%s\n", info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t is 0. If s is, too, then alpha v = r, and x + alpha p may be the solution. */
static PetscErrorCode TryHalf(Solve *s, PetscInt i, PetscScalar alpha, PetscReal norm)
{
  KSP          ksp = s->ksp;
  GallopScalar dot; /* VecDot() wants it aligned */

  PetscFunctionBegin;
  PetscCall(VecDot(s->s, s->s, &dot));
  if (dot != 0.0) {
    PetscCall(BreakDown(ksp, "KSPSolve has failed due to singular preconditioned operator", "Failed due to singular preconditioned operator"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecAXPY(s->x, alpha, s->p));
  ksp->its++;
  ksp->rnorm  = 0.0;
  ksp->reason = KSP_CONVERGED_RTOL;
  PetscCall(KSPLogResidualHistory(ksp, norm));
  PetscCall(KSPMonitor(ksp, i + 1, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Iterate(Solve *s)
{
  KSP             ksp   = s->ksp;
  const PetscBool norms = (PetscBool)(ksp->normtype != KSP_NORM_NONE);
  PetscInt        i     = 0;
  PetscReal       norm;
  PetscScalar     rho, vrp;
  PetscBool       zero;
  GallopRecord    record;

  PetscFunctionBegin;
  PetscCall(Begin(s, &record));
  norm = norms ? record.norm : 0;
  if (norms) KSPCheckNorm(ksp, norm);
  ksp->its = 0;
  PetscCall(KSPGallopTest(ksp, 0, norm));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  rho             = record.sum[1];
  s->method.ttol  = ksp->converged == KSPConvergedDefault ? ksp->ttol : -1;
  s->method.limit = ksp->converged == KSPConvergedDefault ? ksp->divtol * ksp->rnorm0 : PETSC_MAX_REAL;
  do {
    PetscCall(GetVRP(s, i, &record));
    vrp = record.sum[0];
    KSPCheckDot(ksp, vrp);
    if (vrp == 0.0) {
      PetscCall(BreakDown(ksp, "KSPSolve breakdown due to zero inner product", "Breakdown due to zero inner product"));
      break;
    }
    PetscCall(IsZero(s, rho, &record, &zero));
    if (zero) {
      PetscCall(TryHalf(s, i, rho / vrp, norm));
      break;
    }
    PetscCall(GetNorm(s, i, rho, &record));
    if (norms) {
      norm = record.norm;
      KSPCheckNorm(ksp, norm);
    }
    ksp->its++;
    PetscCall(KSPGallopTest(ksp, i + 1, norm));
    PetscCheck(!ksp->reason || record.stopped || s->started == i + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The GPU has gone on after iteration %" PetscInt_FMT ", which ended the solve", i + 1);
    if (ksp->reason) break;
    if (rho == 0.0) {
      PetscCall(BreakDown(ksp, "KSPSolve breakdown due to zero inner product", "Breakdown due to zero rho inner product"));
      break;
    }
    rho = record.sum[1];
    i++;
    if (record.stopped && i < ksp->max_it) { /* the host knows better */
      PetscCall(GallopFusedGo(&s->bcgs->base.work, PETSC_FALSE));
      s->started       = i;
      s->graph.records = PETSC_FALSE;
    }
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  s->unwinds = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve_Fused(KSP ksp, GallopBCGS *bcgs)
{
  Solve s = {.ksp = ksp, .bcgs = bcgs, .x = ksp->vec_sol, .r = ksp->work[0], .rp = ksp->work[1], .v = ksp->work[2], .t = ksp->work[3], .s = ksp->work[4], .p = ksp->work[5], .method = {.norm = ksp->normtype}};

  PetscFunctionBegin;
  PetscCall(PetscCitationsRegister(BCGSFusedCitation, &BCGSFusedCited));
  PetscCall(KSPGallopGetGroup(ksp, &bcgs->base, &s.method.local));
  PetscCall(PCGetOperators(ksp->pc, &s.A, NULL));
  PetscCall(PCGallopGetKind(ksp->pc, &s.pc));
  if ((ksp->pc_side == PC_RIGHT && s.pc == GALLOP_PC_DIAGONAL) || ksp->pc->erroriffailure) s.pc = GALLOP_PC_OTHER;
  if (s.pc == GALLOP_PC_DIAGONAL) PetscCall(KSPGallopGetDiagonal(ksp, &bcgs->base, s.r, s.t));
  PetscCall(KSPGallopGetAhead(ksp, &bcgs->base, s.A, s.pc, &s.ahead));
  PetscCall(KSPGallopRecords(ksp, &bcgs->base, s.ahead, &s.graph));
  PetscCall(Iterate(&s));
  if (s.ahead > 1) { /* what kernels have written without PETSc's knowledge */
    PetscCall(VecGallopToWrite(s.x, &s.arrays.x));
    PetscCall(VecGallopToWrite(s.r, &s.arrays.r));
  }
  if (s.unwinds) PetscCall(KSPUnwindPreconditioner(ksp, s.x, s.t));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* ---- the solver ---- */

static PetscErrorCode KSPSolve_GallopBCGS(KSP ksp)
{
  GallopBCGS *bcgs;
  PetscBool   takes, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &bcgs));
  PetscCall(KSPGallopBegin(ksp, &bcgs->base, &takes));
  if (!takes) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
  PetscCall(CanFuse(ksp, &bcgs->base.why));
  PetscCall(KSPGallopGetRoom(ksp, &bcgs->base, PETSC_TRUE, &done));
  if (done) PetscCall(Solve_Fused(ksp, bcgs));
#else
  bcgs->base.why = "PETSc was configured without CUDA";
#endif
  PetscCall(KSPGallopEnd(ksp, &bcgs->base, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGALLOPBCGS - "gallopbcgs" - PETSc's `KSPBCGS`, the stabilized biconjugate gradient method, with vector operations that are fused on the GPU

  Options Database Keys:
+ -ksp_type gallopbcgs     - takes it
. -ksp_gallop_graph <true> - launch several iterations at once, as a CUDA graph, where systems are small
- -ksp_gallop_sums <auto>  - where sums of several processes are added up: `auto`, `mpi` or `device`, as `KSPGALLOPCG` has it

  Level: beginner

  Notes:
  Method, options, norms, tests, monitors, reasons and, up to rounding, iterates are those of `KSPBCGS`. An iteration has four kernels beside the products and the preconditioner: p; s; s.t and
  t.t; x and r with the norm and the next rho; v.rp comes out of the product of a sequential `MATEVCHYB`, `MATCSROVERLAP` or `MATHBP`, and is a fifth kernel else. With `PCJACOBI` on the left and `PCNONE` a product of a matrix of ours and the preconditioner are one kernel. On one process scalars stay on the
  GPU, and where PETSc's own test is used and no monitor is set, the host starts the next iterations before it knows the norm of the last one: a GPU that has found that the solve is over leaves the
  iterates as they are. On several processes there are three reductions in an iteration, on the GPUs or by MPI, as with `KSPGALLOPCG`.

  On one process, and where sums are added up on GPUs, each run gives the same bits on the same kind of GPU.

  `KSPBCGS` is this solver where the matrix is one of Gallop's, unless `-ksp_gallop_fuse` is false.

  It is `KSPBCGS` itself, without anything fused, with vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()`; with a preconditioner on the right and an initial guess;
  after `KSPSetCheckNormIteration()`. `KSPView()` and -info tell the reason.

  The matrix may be of any type, the fastest are Gallop's.

.seealso: `KSPBCGS`, `KSPGALLOPCG`, `MATEVCHYB`
M*/
PETSC_INTERN PetscErrorCode KSPCreate_GallopBCGS(KSP ksp)
{
  GallopBCGS *bcgs;

  PetscFunctionBegin;
  PetscCall((*parentcreate)(ksp));
  PetscCall(PetscNew(&bcgs));
  PetscCall(KSPGallopCompose(ksp, KSPGALLOPBCGS, &bcgs->base));
  ksp->ops->solve = KSPSolve_GallopBCGS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopBCGS(void)
{
  PetscFunctionBegin;
  PetscCall(GallopLogEventRegister("GallopBCGSFused", KSP_CLASSID, &BCGSFused));
  PetscCall(KSPGallopRegister(KSPGALLOPBCGS, KSPBCGS, KSPCreate_GallopBCGS, &parentcreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
