/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCG: PETSc's KSPCG, whose vector operations are fused on the GPU

  It is KSPCG with another KSPSolve(): options, set-up and what is not fused are the parent's. The order of tests is that of PETSc's KSPSolve_CG().
*/

#include <gallop/matgallopimpl.h>
#include "gallopcg.h"
#include "gallopksp.h"

static PetscErrorCode (*parentcreate)(KSP) = NULL;
static PetscLogEvent CGFused              = -1;

typedef struct {
  GallopKSP base;
  PetscErrorCode (*settype)(KSP, KSPCGType);
  PetscErrorCode (*setradius)(KSP, PetscReal);
  PetscErrorCode (*settarget)(KSP, PetscReal);
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
  PetscErrorCode (*setsinglereduction)(KSP, PetscBool);
  KSPCGType type;
  PetscReal radius, target, objective;
} GallopCG;

#if PetscDefined(HAVE_CUDA)
/* ---- whether a solve can be fused ---- */

static PetscErrorCode CanFuse(KSP ksp, const GallopCG *cg, const char **why)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopCanFuse(ksp, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->calc_sings) *why = "eigenvalues are wanted";
  else if (cg->radius != 0 || cg->target < 0) *why = "there is a trust region or a target of the objective";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a fused solve ---- */

static const char CGFusedCitation[] = "@article{hs:52,\n  title = {Methods of Conjugate Gradients for Solving Linear Systems},\n  author = {Hestenes, Magnus R. and Stiefel, Eduard},\n"
                                      "  journal = {Journal of Research of the National Bureau of Standards},\n  volume = {49},\n  number = {6},\n  pages = {409--436},\n  year = {1952}\n}\n";
static PetscBool  CGFusedCited      = PETSC_FALSE;

typedef struct {
  KSP            ksp;
  GallopCG      *cg;
  Mat            A;
  Vec            x, r, z, p, w; /* w is z too where z is needed no more when there is w */
  GallopCGMethod method;
  GallopCGArrays arrays;
  PetscInt       ahead, started;         /* iterations that are started before the host knows the results of the first of them, and all that are */
  PetscInt64     number[GALLOP_RECORDS]; /* of results of iteration i, in i % GALLOP_RECORDS */
} Solve;

/* Results of this number, on several processes the sums of all: of dpi, or of beta and of the square of the norm */
static PetscErrorCode Wait(Solve *s, PetscInt64 number, GallopRecord *record)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopWait(s->ksp, &s->cg->base, s->method.local, number, record));
  if (s->method.local) record->norm = s->method.norm == KSP_NORM_NONE ? 0 : PetscSqrtReal(s->method.norm == KSP_NORM_NATURAL ? PetscAbsScalar(record->sum[1]) : record->norm);
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
  if (s->method.pc == GALLOP_PC_OTHER) {
    PetscCall(KSP_PCApply(s->ksp, s->r, s->z));
    PetscCall(VecGallopToDevice(s->z, &s->arrays.z));
  }
  work->number++;
  GallopFusedLog(CGFused, s->ksp, PetscCall(GallopCGSums(work, &s->arrays, &s->method, -1, PETSC_FALSE)));
  PetscCall(Wait(s, work->number, record));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* p, w = A p, and p.w, which a product of ours computes on the way */
static PetscErrorCode Product(Solve *s, PetscInt i)
{
  GallopFused *work  = &s->cg->base.work;
  GallopTerms  terms = {.alpha = 1.0, .with = s->p};
  PetscBool    done, dot = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(VecGallopToWrite(s->p, &s->arrays.p));
  GallopFusedLog(CGFused, s->ksp, PetscCall(GallopCGDirection(work, &s->arrays, &s->method, i)));
  if (s->method.local || s->ksp->transpose_solve) PetscCall(KSP_MatMult(s->ksp, s->A, s->p, s->w));
  else {
    PetscCall(GallopCGGetDot(work, &s->method, i, &terms.dot));
    PetscCall(MatGallopMultTerms_Seq(s->A, &terms, s->p, NULL, s->w, s->w, &done, &dot));
  }
  PetscCall(VecGallopToDevice(s->w, &s->arrays.w));
  s->number[i % GALLOP_RECORDS] = ++work->number;
  if (!dot) GallopFusedLog(CGFused, s->ksp, PetscCall(GallopCGDot(work, &s->arrays, &s->method, i)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x and r, and the sums. PETSc need not know of each new x and r where it looks at none. */
static PetscErrorCode Update(Solve *s, PetscInt i)
{
  GallopFused    *work  = &s->cg->base.work;
  const PetscBool tests = (PetscBool)(i + 1 >= s->ksp->min_it);

  PetscFunctionBegin;
  if (s->ahead == 1) {
    PetscCall(VecGallopToWrite(s->x, &s->arrays.x));
    PetscCall(VecGallopToWrite(s->r, &s->arrays.r));
  }
  GallopFusedLog(CGFused, s->ksp, PetscCall(GallopCGUpdate(work, &s->arrays, &s->method, i, tests)));
  if (s->method.pc != GALLOP_PC_OTHER) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSP_PCApply(s->ksp, s->r, s->z));
  PetscCall(VecGallopToDevice(s->z, &s->arrays.z));
  GallopFusedLog(CGFused, s->ksp, PetscCall(GallopCGSums(work, &s->arrays, &s->method, i, tests)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  p.w of iteration i. On one process iterations are started up to the one that the host goes ahead to, and their other results come, too, unless the GPU has stopped.
*/
static PetscErrorCode GetDpi(Solve *s, PetscInt i, GallopRecord *record)
{
  PetscFunctionBegin;
  /* one at least, as PETSc's CG */
  for (; s->started < PetscMax(PetscMin(i + s->ahead, s->ksp->max_it), i + 1); s->started++) {
    PetscCall(Product(s, s->started));
    if (!s->method.local) PetscCall(Update(s, s->started));
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
  work->number++;
  PetscCall(Update(s, i));
  PetscCall(Wait(s, work->number, record));
  s->method.factor = record->sum[1] / betaold;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x, and the objective function 1/2 x'A x - x'b there */
static PetscErrorCode FirstResidual(Solve *s)
{
  KSP         ksp = s->ksp;
  PetscScalar rx, bx;

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

static PetscErrorCode CheckDpi(KSP ksp, PetscInt i, PetscScalar dpi, PetscScalar dpiold)
{
  PetscFunctionBegin;
  KSPCheckDot(ksp, dpi);
  if (dpi != 0.0 && (!i || PetscSign(PetscRealPart(dpi)) * PetscSign(PetscRealPart(dpiold)) >= 0.0)) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->converged_neg_curve) {
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
  PetscCall(KSPGallopGetAhead(ksp, s->A, s->method.pc, &s->ahead));
  PetscCall(FirstResidual(s));
  PetscCall(Begin(s, &record));
  PetscCall(CheckSums(ksp, &record));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGallopTest(ksp, 0, record.norm));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  beta = record.sum[1];
  KSPCheckDot(ksp, beta);
  s->method.ttol  = ksp->converged == KSPConvergedDefault ? ksp->ttol : -1;
  s->method.limit = ksp->converged == KSPConvergedDefault ? ksp->divtol * ksp->rnorm0 : PETSC_MAX_REAL;
  do {
    ksp->its = i + 1;
    PetscCall(CheckBeta(ksp, i, beta, betaold));
    if (ksp->reason) break;
    PetscCall(GetDpi(s, i, &record));
    betaold = beta;
    dpiold  = dpi;
    dpi     = record.sum[0];
    PetscCall(CheckDpi(ksp, i, dpi, dpiold));
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
      s->started = i;
    }
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* ---- the solver ---- */

static PetscErrorCode KSPSolve_GallopCG(KSP ksp)
{
  GallopCG *cg;
  PetscBool takes, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall(KSPGallopBegin(ksp, &cg->base, &takes));
  if (!takes) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
  PetscMPIInt size;

  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(CanFuse(ksp, cg, &cg->base.why));
  PetscCall(KSPGallopGetRoom(ksp, &cg->base, &done));
  if (done) {
    Solve s = {
      .ksp = ksp, .cg = cg, .x = ksp->vec_sol, .r = ksp->work[0], .z = ksp->work[1], .w = ksp->work[1], .p = ksp->work[2], .method = {.norm = ksp->normtype, .conjugate = (PetscBool)(cg->type == KSP_CG_HERMITIAN), .local = (PetscBool)(size > 1)}
    };

    PetscCall(PetscCitationsRegister(CGFusedCitation, &CGFusedCited));
    PetscCall(PCGetOperators(ksp->pc, &s.A, NULL));
    PetscCall(PCGallopGetKind(ksp->pc, &s.method.pc));
    if (s.method.pc == GALLOP_PC_DIAGONAL) PetscCall(KSPGallopGetDiagonal(ksp, &cg->base, s.r, s.z));
    PetscCall(Solve_Fused(&s));
    if (s.ahead > 1) { /* what kernels have written without PETSc's knowledge */
      PetscCall(VecGallopToWrite(s.x, &s.arrays.x));
      PetscCall(VecGallopToWrite(s.r, &s.arrays.r));
    }
  }
#else
  cg->base.why = "PETSc was configured without CUDA";
#endif
  PetscCall(KSPGallopEnd(ksp, &cg->base, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_GallopCG(KSP ksp, PetscOptionItems PetscOptionsObject)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall(KSPSetFromOptions_Gallop(ksp, PetscOptionsObject));
  if (PetscDefined(USE_COMPLEX))
    PetscCall(PetscOptionsGetEnum(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_cg_type", KSPCGTypes, (PetscEnum *)&cg->type, NULL)); /* which the parent does not tell */
  PetscFunctionReturn(PETSC_SUCCESS);
}

KSP_GALLOP_SETTER(GallopCG, KSPCGSetType, KSPCGType, type, settype)
KSP_GALLOP_SETTER(GallopCG, KSPCGSetRadius, PetscReal, radius, setradius)
KSP_GALLOP_SETTER(GallopCG, KSPCGSetObjectiveTarget, PetscReal, target, settarget)

static PetscErrorCode KSPCGGetObjFcn_GallopCG(KSP ksp, PetscReal *objective)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  if (cg->base.fused) *objective = cg->objective;
  else PetscCall((*cg->getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's variant with one reduction replaces KSPSolve(), and brings KSPCG's back */
static PetscErrorCode KSPCGUseSingleReduction_GallopCG(KSP ksp, PetscBool flg)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall((*cg->setsinglereduction)(ksp, flg));
  if (flg) {
    cg->base.fused = PETSC_FALSE;
    cg->base.why   = "KSPCGUseSingleReduction() was called";
  } else {
    cg->base.why          = NULL;
    cg->base.parent.solve = ksp->ops->solve;
    ksp->ops->solve       = KSPSolve_GallopCG;
    PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_GallopCG));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGALLOPCG - "gallopcg" - PETSc's `KSPCG` with vector operations that are fused on the GPU

  Options Database Keys:
+ -ksp_type gallopcg       - takes it
. -ksp_gallop_fuse <true>  - false leaves `KSPCG` as PETSc has it, also with Gallop's matrices
. -ksp_cg_type <type>      - hermitian or symmetric, as for `KSPCG`, for complex numbers
- -ksp_cg_single_reduction - as for `KSPCG`, whose variant then runs

  Level: beginner

  Notes:
  `KSPCG` is this solver where the matrix is one of Gallop's.

  Method, options, norms, tests, monitors, reasons and, up to rounding, iterates are those of `KSPCG`. An iteration has two kernels beside the product and the preconditioner, p, and x and r
  with z.r and the norm; p.w comes out of the product of a sequential `MATEVCHYB`, and is a third kernel with other matrices. On one process scalars stay on the GPU. With `PCJACOBI` and `PCNONE`, which are part of these kernels, and where PETSc's own test is used and no monitor is set, the host
  starts the next iterations before it knows the norm of the last one: a GPU that has found that the solve is over leaves the iterates as they are. On several processes there are two
  reductions in an iteration, by way of the host.

  On one process each run gives the same bits on the same kind of GPU.

  It is `KSPCG` itself, without anything fused, with vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()`; where eigenvalues, a trust region,
  a target of the objective or `KSPSetCheckNormIteration()` are wanted. `KSPView()` and -info tell the reason.

  The matrix may be of any type, the fastest are Gallop's.

.seealso: `KSPCG`, `MATEVCHYB`
M*/
PETSC_INTERN PetscErrorCode KSPCreate_GallopCG(KSP ksp)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall((*parentcreate)(ksp));
  PetscCall(PetscNew(&cg));
  cg->type = PetscDefined(USE_COMPLEX) ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC;
  PetscCall(KSPGallopCompose(ksp, KSPGALLOPCG, &cg->base));
  ksp->ops->solve          = KSPSolve_GallopCG;
  ksp->ops->setfromoptions = KSPSetFromOptions_GallopCG;
  KSPGallopReplace("KSPCGSetType_C", KSPCGSetType_GallopCG, cg->settype);
  KSPGallopReplace("KSPCGSetRadius_C", KSPCGSetRadius_GallopCG, cg->setradius);
  KSPGallopReplace("KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_GallopCG, cg->settarget);
  KSPGallopReplace("KSPCGGetObjFcn_C", KSPCGGetObjFcn_GallopCG, cg->getobjective);
  KSPGallopReplace("KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_GallopCG, cg->setsinglereduction);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopCG(void)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("GallopCGFused", KSP_CLASSID, &CGFused));
  PetscCall(KSPGallopRegister(KSPGALLOPCG, KSPCG, KSPCreate_GallopCG, &parentcreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
