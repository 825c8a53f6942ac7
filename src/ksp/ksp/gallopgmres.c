/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPGMRES: PETSc's KSPGMRES, whose classical Gram-Schmidt is two kernels on the GPU, and the same for KSPFGMRES and KSPLGMRES */

#include <gallop/matgallopimpl.h>
#include "gallopksp.h"
#include "gallopgmres.h"

static PetscLogEvent GMRESFused = -1;

static PetscErrorCode (*gmrescreate)(KSP), (*fgmrescreate)(KSP), (*lgmrescreate)(KSP); /* the parents' */

typedef struct {
  GallopKSP base;
  PetscErrorCode (*destroy)(KSP); /* of all solvers of ours */
  PetscErrorCode (*view)(KSP, PetscViewer);
  PetscBool           solving; /* in a solve whose vectors are orthogonalized here */
  GallopProjection    projection;
  const PetscScalar **v; /* the vectors' arrays on the GPU, [projection.room] */
} GallopGMRES;

static PetscErrorCode KSPSolve_GallopGMRES(KSP);

/* ---- the orthogonalization ---- */

#if PetscDefined(HAVE_CUDA)
static PetscReal knownnorm;

static PetscErrorCode VecNorm_Known(Vec v, NormType type, PetscReal *norm)
{
  PetscFunctionBegin;
  (void)v, (void)type;
  *norm = knownnorm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Lets PETSc know the norm of a vector: the next VecNorm() looks it up

  PETSc keeps it where only its own functions write, so VecNorm() is given the number in place of the one that it would compute. Where squares are so small that some may be 0, or too large, it is
  left to compute the norm itself.
*/
static PetscErrorCode VecSetNorm(Vec v, PetscReal square)
{
  const PetscReal least = (PetscReal)(sizeof(PetscReal) < 8 ? 1e-24 : 1e-270);
  PetscReal       told;
  PetscErrorCode (*norm)(Vec, NormType, PetscReal *);

  PetscFunctionBegin;
  if (PetscIsInfOrNanReal(square) || square < least) PetscFunctionReturn(PETSC_SUCCESS);
  knownnorm    = PetscSqrtReal(square);
  norm         = v->ops->norm;
  v->ops->norm = VecNorm_Known;
  PetscCall(VecNorm(v, NORM_2, &told)); /* which writes an old norm there before it asks for the new one */
  v->ops->norm = norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether kernels can have all vectors, on this process */
static PetscErrorCode AreCUDA(PetscInt n, const Vec V[], Vec w, PetscBool *are)
{
  PetscFunctionBegin;
  PetscCall(VecGallopIsCUDA(w, are));
  for (PetscInt j = 0; j < n && *are; j++) PetscCall(VecGallopIsCUDA(V[j], are));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckDots(KSP ksp, PetscInt n, const PetscScalar h[])
{
  PetscFunctionBegin;
  for (PetscInt j = 0; j < n; j++) KSPCheckDot(ksp, h[j]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The dot products of all processes, in projection.result. A process whose vectors are not there says so, and adds nothing; then *all is false. */
static PetscErrorCode Reduce(KSP ksp, GallopGMRES *gmres, PetscInt n, PetscBool here, PetscBool *all)
{
  PetscScalar *const h = gmres->projection.result;

  PetscFunctionBegin;
  if (!here) PetscCall(PetscArrayzero(h, n));
  h[n] = here ? 0 : 1;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, h, (PetscMPIInt)n + 1, MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)ksp)));
  *all = (PetscBool)(h[n] == (PetscScalar)0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* h = <v, w> in projection.result, then w -= h v, whose norm PETSc gets to know if it is wanted. *done is false, and w as it was, where some process has other vectors. */
static PetscErrorCode Project(KSP ksp, GallopGMRES *gmres, PetscInt n, const Vec V[], Vec w, PetscBool norm, PetscBool *done)
{
  GallopFused *const work = &gmres->base.work;
  const PetscScalar *read = NULL;
  PetscScalar       *written;
  PetscInt           rows;
  PetscMPIInt        size;
  GallopRecord       record;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(AreCUDA(n, V, w, done));
  if (size == 1 && !*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(w, &rows));
  if (*done) {
    for (PetscInt j = 0; j < n; j++) PetscCall(VecGallopToDevice(V[j], &gmres->v[j]));
    PetscCall(VecGallopToDevice(w, &read));
    work->number++;
    GallopFusedLog(GMRESFused, ksp, PetscCall(GallopProjectionDots(work, &gmres->projection, rows, n, gmres->v, read, (PetscBool)(size > 1))));
    if (size > 1) PetscCall(GallopFusedWait(work, work->number, &record));
  }
  if (size > 1) {
    PetscCall(Reduce(ksp, gmres, n, *done, done));
    if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(CheckDots(ksp, n, gmres->projection.result));
    if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
    work->number++;
  }
  PetscCall(VecGallopToWrite(w, &written));
  GallopFusedLog(GMRESFused, ksp, PetscCall(GallopProjectionSubtract(work, &gmres->projection, rows, n, gmres->v, size > 1 ? gmres->projection.result : NULL, written)));
  if (size == 1 || norm) PetscCall(GallopFusedWait(work, work->number, &record));
  if (size == 1) PetscCall(CheckDots(ksp, n, gmres->projection.result));
  if (!norm || ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &record.norm, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)ksp)));
  PetscCall(VecSetNorm(w, record.norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether what PETSc tests says that a second step is necessary */
static PetscErrorCode NeedsRefinement(KSP ksp, PetscInt n, const PetscScalar h[], Vec w, PetscBool *needs)
{
  PetscReal hnrm = 0, wnrm;

  PetscFunctionBegin;
  *needs = (PetscBool)(ksp->cgstype == KSP_ORTHOGONALIZATION_CGS_REFINE_ALWAYS);
  if (ksp->cgstype != KSP_ORTHOGONALIZATION_CGS_REFINE_IFNEEDED) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt j = 0; j < n; j++) hnrm += PetscRealPart(h[j] * PetscConj(h[j]));
  hnrm = PetscSqrtReal(hnrm);
  PetscCall(VecNorm(w, NORM_2, &wnrm));
  KSPCheckNorm(ksp, wnrm);
  *needs = (PetscBool)(wnrm < hnrm);
  if (*needs) PetscCall(PetscInfo(ksp, "Performing iterative refinement wnorm %g hnorm %g\n", (double)wnrm, (double)hnrm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Orthogonalize(KSP ksp, GallopGMRES *gmres, PetscInt n, const Vec V[], Vec w, PetscScalar h[], PetscBool *done)
{
  const PetscBool once = (PetscBool)(ksp->cgstype != KSP_ORTHOGONALIZATION_CGS_REFINE_ALWAYS);
  PetscBool       refines, again;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(h, n));
  PetscCall(Project(ksp, gmres, n, V, w, once, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  gmres->base.fused = PETSC_TRUE;
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscArraycpy(h, gmres->projection.result, n));
  PetscCall(NeedsRefinement(ksp, n, h, w, &refines));
  if (!refines || ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Project(ksp, gmres, n, V, w, PETSC_TRUE, &again));
  PetscCheck(again, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Vectors have left the GPU during an orthogonalization");
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt j = 0; j < n; j++) h[j] += gmres->projection.result[j];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL where this solver does not fuse, or not now; alike on all processes */
static PetscErrorCode GetSolving(KSP ksp, PetscInt n, GallopGMRES **gmres)
{
  PetscFunctionBegin;
  *gmres = NULL;
  if (ksp->ops->solve != KSPSolve_GallopGMRES) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGallopGet(ksp, gmres));
  if (!(*gmres)->solving || n < 1 || n > (*gmres)->projection.room) *gmres = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* KSPOrthogonalizationGallop - KSPOrthogonalizationClassicalGramSchmidt(), of which solvers of this file compute each step by two kernels; any other solver may have it, for which it is that function */
static PetscErrorCode KSPOrthogonalizationGallop(KSP ksp, Vec V[], PetscInt n, Vec x, PetscScalar h[])
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  GallopGMRES *gmres;

  PetscCall(GetSolving(ksp, n, &gmres));
  if (gmres) {
    PetscCall(PetscLogEventBegin(KSP_Orthogonalization, ksp, 0, 0, 0));
    PetscCall(Orthogonalize(ksp, gmres, n, V, x ? x : V[n], h, &done));
    PetscCall(PetscLogEventEnd(KSP_Orthogonalization, ksp, 0, 0, 0));
  }
#endif
  if (!done) PetscCall(KSPOrthogonalizationClassicalGramSchmidt(ksp, V, n, x, h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solvers ---- */

#if PetscDefined(HAVE_CUDA)
/* The memory of a solve, and base->why it is not fused, on this process */
static PetscErrorCode Prepare(KSP ksp, GallopGMRES *gmres)
{
  PetscInt  restart, room = gmres->projection.room;
  PetscBool device, fits;

  PetscFunctionBegin;
  gmres->base.why = NULL;
  PetscCall(AreCUDA(1, &ksp->vec_rhs, ksp->vec_sol, &device));
  if (!device) gmres->base.why = "vectors are on the host";
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGMRESGetRestart(ksp, &restart));
  PetscCall(GallopProjectionCreate(&gmres->projection, restart + 2, &fits));
  if (!fits) gmres->base.why = "the GPU has no room";
  else if (gmres->projection.room != room) {
    PetscCall(PetscFree(gmres->v));
    PetscCall(PetscMalloc1(gmres->projection.room, &gmres->v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent's, during which the orthogonalization may be ours */
static PetscErrorCode KSPSolve_GallopGMRES(KSP ksp)
{
  GallopGMRES *gmres;
  PetscBool    takes, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &gmres));
  gmres->solving = PETSC_FALSE; /* after a solve that ended with an error */
  PetscCall(KSPGallopBegin(ksp, &gmres->base, &takes));
  if (!takes) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
  if (ksp->orthog != KSPOrthogonalizationGallop) gmres->base.why = "another orthogonalization is set";
  else {
    PetscCall(Prepare(ksp, gmres));
    PetscCall(KSPGallopGetRoom(ksp, &gmres->base, PETSC_FALSE, &done));
  }
#else
  gmres->base.why = "PETSc was configured without CUDA";
#endif
  if (!done) {
    PetscCall(KSPGallopEnd(ksp, &gmres->base, PETSC_FALSE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if PetscDefined(HAVE_CUDA)
  PetscCall(GallopFusedGo(&gmres->base.work, PETSC_TRUE));
#endif
  gmres->base.fused = PETSC_FALSE; /* until it is */
  gmres->solving    = PETSC_TRUE;
  PetscCall((*gmres->base.parent.solve)(ksp));
  gmres->solving = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent knows the name of PETSc's orthogonalization */
static PetscErrorCode KSPView_GallopGMRES(KSP ksp, PetscViewer viewer)
{
  GallopGMRES                  *gmres;
  KSPOrthogonalizationFn *const orthog = ksp->orthog;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &gmres));
  if (orthog == KSPOrthogonalizationGallop) ksp->orthog = KSPOrthogonalizationClassicalGramSchmidt;
  PetscCall((*gmres->view)(ksp, viewer));
  ksp->orthog = orthog;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next type has PETSc's orthogonalization */
static PetscErrorCode KSPDestroy_GallopGMRES(KSP ksp)
{
  GallopGMRES *gmres;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &gmres));
  if (ksp->orthog == KSPOrthogonalizationGallop) ksp->orthog = KSPOrthogonalizationClassicalGramSchmidt;
#if PetscDefined(HAVE_CUDA)
  PetscCall(GallopProjectionDestroy(&gmres->projection));
#endif
  PetscCall(PetscFree(gmres->v));
  PetscCall((*gmres->destroy)(ksp)); /* frees gmres */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(KSP ksp, PetscErrorCode (*parentcreate)(KSP))
{
  GallopGMRES *gmres;

  PetscFunctionBegin;
  PetscCall((*parentcreate)(ksp));
  PetscCall(PetscNew(&gmres));
  PetscCall(KSPGallopCompose(ksp, KSPGALLOPGMRES, &gmres->base));
  gmres->base.with  = " in the orthogonalization";
  gmres->destroy    = ksp->ops->destroy;
  gmres->view       = ksp->ops->view;
  ksp->ops->solve   = KSPSolve_GallopGMRES;
  ksp->ops->view    = KSPView_GallopGMRES;
  ksp->ops->destroy = KSPDestroy_GallopGMRES;
  if (ksp->orthog == KSPOrthogonalizationClassicalGramSchmidt) ksp->orthog = KSPOrthogonalizationGallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGALLOPGMRES - "gallopgmres" - PETSc's `KSPGMRES`, the generalized minimal residual method, with an orthogonalization that is fused on the GPU

  Options Database Key:
. -ksp_type gallopgmres - takes it

  Level: beginner

  Notes:
  Method, options, norms, tests, monitors, reasons and, up to rounding, iterates are those of `KSPGMRES`. A step of classical Gram-Schmidt is two kernels: the dot products of the new vector with all
  others; their multiples subtracted from it, with its norm. The host waits once, for both, where PETSc's waits for the dot products and for the norm; with a second step,
  `-ksp_orthogonalization_cgs_refinement_type`, twice. On several processes there are two reductions, of the dot products and of the norm, as there are in PETSc's.

  On one process each run gives the same bits on the same kind of GPU, as far as the matrix and the preconditioner do.

  `KSPGMRES`, `KSPFGMRES` and `KSPLGMRES` do so, too, where the matrix is one of Gallop's, unless `-ksp_gallop_fuse` is false. This name does it for any matrix on the GPU.

  `KSPOrthogonalizationGet()` gives the function of Gallop's in place of `KSPOrthogonalizationClassicalGramSchmidt()`. What `KSPOrthogonalizationSet()` or -ksp_orthogonalization asks for, PETSc's
  classical Gram-Schmidt too, takes its place.

  It is `KSPGMRES` itself, without anything fused, with vectors on the host and with another orthogonalization. `KSPView()` and -info tell the reason.

.seealso: `KSPGMRES`, `KSPFGMRES`, `KSPLGMRES`, `KSPOrthogonalizationSetCGSRefinementType()`, `KSPGALLOPCG`, `MATEVCHYB`
M*/
static PetscErrorCode KSPCreate_GallopGMRES(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Create(ksp, gmrescreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCreate_GallopFGMRES(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Create(ksp, fgmrescreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCreate_GallopLGMRES(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Create(ksp, lgmrescreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopGMRES(void)
{
  PetscFunctionBegin;
  PetscCall(GallopLogEventRegister("GallopGMRESFused", KSP_CLASSID, &GMRESFused));
  PetscCall(KSPGallopRegister(KSPGALLOPGMRES, KSPGMRES, KSPCreate_GallopGMRES, &gmrescreate));
  PetscCall(KSPGallopRegister(NULL, KSPFGMRES, KSPCreate_GallopFGMRES, &fgmrescreate));
  PetscCall(KSPGallopRegister(NULL, KSPLGMRES, KSPCreate_GallopLGMRES, &lgmrescreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
