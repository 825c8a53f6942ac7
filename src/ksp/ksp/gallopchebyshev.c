/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCHEBYSHEV: PETSc's KSPCHEBYSHEV, of which a step with Jacobi's preconditioner is one product on the GPU

  It is KSPCHEBYSHEV with another KSPSolve(): options, estimates of eigenvalues and what is not fused are the parent's. It takes the name KSPCHEBYSHEV, too, for matrices of ours, so
  that multigrid smooths with it.
*/

#include <gallop/matgallopimpl.h>
#include "gallopksp.h"

static PetscErrorCode (*parentcreate)(KSP) = NULL;
static PetscLogEvent ChebyshevFused        = -1;

/* PETSc's KSP_Chebyshev, which no function tells the eigenvalues of; see LayoutIsKnown() */
typedef struct {
  PetscReal        emin, emax;
  PetscReal        emin_computed, emax_computed;
  PetscReal        emin_provided, emax_provided;
  PetscReal       *betas;
  PetscInt         num_betas_alloc;
  KSP              kspest;
  PetscReal        tform[4];
  PetscInt         eststeps;
  PetscBool        usenoisy;
  KSPChebyshevKind chebykind;
} ParentData;

typedef struct {
  GallopKSP   base;
  const char *never; /* why no solve can be fused until the next set-up; NULL if some can */
} GallopChebyshev;

/* Whether the parent's data looks as we think, by what PETSc tells of it */
static PetscErrorCode LayoutIsKnown(KSP ksp, KSPChebyshevKind kind, PetscBool *known)
{
  const ParentData *data = (const ParentData *)ksp->data;
  KSP               est;

  PetscFunctionBegin;
  PetscCall(KSPChebyshevEstEigGetKSP(ksp, &est));
  *known = (PetscBool)(data->chebykind == kind && data->kspest == est);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As PETSc's KSPChebyshevGetEigenvalues_Chebyshev() */
static void GetEigenvalues(const KSP ksp, PetscReal *emax, PetscReal *emin)
{
  const ParentData *data = (const ParentData *)ksp->data;
  const PetscReal  *t    = data->tform;

  *emax = data->emax != 0          ? data->emax
        : data->emax_computed != 0 ? t[2] * data->emin_computed + t[3] * data->emax_computed
        : data->emax_provided != 0 ? t[2] * data->emin_provided + t[3] * data->emax_provided
                                   : 0;
  *emin = data->emin != 0          ? data->emin
        : data->emin_computed != 0 ? t[0] * data->emin_computed + t[1] * data->emax_computed
        : data->emin_provided != 0 ? t[0] * data->emin_provided + t[1] * data->emax_provided
                                   : 0;
}

/* ---- a fused solve ---- */

/* What a set-up decides. All processes agree on where vectors are, since some may have bound theirs to the host. */
static PetscErrorCode LookAtSetUp(KSP ksp, const char **never)
{
  KSPChebyshevKind kind;
  PetscBool        device = PETSC_FALSE, known = PETSC_FALSE;
  PetscMPIInt      size;

  PetscFunctionBegin;
  *never = NULL;
  if (!PetscDefined(HAVE_CUDA)) {
    *never = "PETSc was configured without CUDA";
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGallopIsCUDA(ksp->work[0], &device));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  PetscCall(KSPChebyshevGetKind(ksp, &kind));
  PetscCall(LayoutIsKnown(ksp, kind, &known));
  if (!device) *never = "vectors are on the host";
  else if (kind != KSP_CHEBYSHEV_FIRST) *never = "the polynomial is not of the first kind";
  else if (!known) *never = "this PETSc is not known";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CanFuse(KSP ksp, const GallopChebyshev *cheb, Mat A, GallopPCKind pc, const char **why)
{
  MatNullSpace space;
  PetscBool    takes, x, b;

  PetscFunctionBegin;
  *why = cheb->never;
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopIsFormat(A, &takes));
  if (!takes) PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGALLOPCHEBYSHEV, &takes));
  PetscCall(VecGallopIsCUDA(ksp->vec_sol, &x));
  PetscCall(VecGallopIsCUDA(ksp->vec_rhs, &b));
  PetscCall(MatGetNullSpace(A, &space));
  if (!takes) *why = "the matrix is none of ours";
  else if (pc == GALLOP_PC_OTHER || (pc == GALLOP_PC_DIAGONAL && !cheb->base.diagonal.d)) *why = "the preconditioner is not Jacobi's";
  else if (!x || !b) *why = "vectors are on the host";
  else if (ksp->normtype != KSP_NORM_NONE) *why = "norms are wanted";
  else if (space) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is the transposed one";
  else if (ksp->err_hist) *why = "a history of errors is wanted";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  x_1 = x_0 + s D (b - A x_0) and x_{k+1} = omega (x_k + s D (b - A x_k)) + (1 - omega) x_{k-1}, which takes the place of x_{k-1}
*/
static PetscErrorCode Solve_Fused(KSP ksp, Mat A, Vec d)
{
  Vec                before = ksp->vec_sol, now = ksp->work[0], work = ksp->work[1], swap;
  PetscReal          emax, emin, scale, mu, c[2];
  GallopTerms        terms = {.d = d};
  const PetscScalar *array;

  PetscFunctionBegin;
  ksp->its    = 0;
  ksp->reason = KSP_CONVERGED_ITERATING;
  if (ksp->max_it == 0) { /* as in a V(0, k) cycle */
    ksp->reason = KSP_DIVERGED_ITS;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GetEigenvalues(ksp, &emax, &emin);
  scale = 2 / (emax + emin);
  mu    = 1 / (1 - scale * emin);
  c[0]  = 1;
  c[1]  = mu;
  PetscCall(VecGallopToDevice(ksp->vec_rhs, &array));
  PetscCall(VecGallopToDevice(before, &array));

  terms.beta = scale;
  if (ksp->guess_zero) PetscCall(MatGallopMultTerms(NULL, &terms, NULL, ksp->vec_rhs, NULL, now));
  else {
    terms.alpha = -scale;
    terms.delta = 1;
    PetscCall(MatGallopMultTerms(A, &terms, before, ksp->vec_rhs, work, now));
  }
  for (ksp->its = 1; ksp->its < ksp->max_it; ksp->its++) {
    const PetscReal next = 2 * mu * c[1] - c[0], omega = 2 * mu * c[1] / next;

    terms.alpha = -omega * scale;
    terms.beta  = omega * scale;
    terms.gamma = 1 - omega;
    terms.delta = omega;
    terms.u     = ksp->its == 1 && ksp->guess_zero ? NULL : before;
    PetscCall(MatGallopMultTerms(A, &terms, now, ksp->vec_rhs, work, before));
    swap   = before;
    before = now;
    now    = swap;
    c[0]   = c[1];
    c[1]   = next;
  }
  if (now != ksp->vec_sol) PetscCall(VecCopy(now, ksp->vec_sol));
  ksp->reason = KSP_CONVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;
  GallopPCKind     kind;
  Mat              A;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cheb));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PCGallopGetKind(ksp->pc, &kind));
  PetscCall(CanFuse(ksp, cheb, A, kind, &cheb->base.why));
  cheb->base.fused = PetscNot(cheb->base.why);
  if (cheb->base.fused) {
    if (kind == GALLOP_PC_DIAGONAL) PetscCall(GallopDiagonalUpdate(&cheb->base.diagonal, ksp->pc, ksp->work[0]));
    PetscCall(PetscLogEventBegin(ChebyshevFused, ksp, 0, 0, 0));
    PetscCall(Solve_Fused(ksp, A, kind == GALLOP_PC_DIAGONAL ? cheb->base.diagonal.d : NULL));
    PetscCall(PetscLogEventEnd(ChebyshevFused, ksp, 0, 0, 0));
  } else PetscCall((*cheb->base.parent.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solver ---- */

/* The parent's chooses KSPSolve() */
static PetscErrorCode KSPSetUp_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;
  GallopPCKind     kind;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cheb));
  PetscCall((*cheb->base.parent.setup)(ksp));
  cheb->base.parent.solve   = ksp->ops->solve;
  ksp->ops->solve           = KSPSolve_GallopChebyshev;
  cheb->base.diagonal.valid = PETSC_FALSE;
  PetscCall(LookAtSetUp(ksp, &cheb->never));
  PetscCall(PCGallopGetKind(ksp->pc, &kind));
  if (!cheb->never && kind == GALLOP_PC_DIAGONAL) PetscCall(GallopDiagonalCreate(&cheb->base.diagonal, ksp->work[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_GallopChebyshev(KSP ksp, PetscViewer viewer)
{
  GallopChebyshev *cheb;
  PetscBool        ascii, named;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cheb));
  PetscCall((*cheb->base.parent.view)(ksp, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGALLOPCHEBYSHEV, &named));
  if (ascii && cheb->base.fused) PetscCall(PetscViewerASCIIPrintf(viewer, "  steps are fused with the product on the GPU\n"));
  else if (ascii && named && cheb->base.why) PetscCall(PetscViewerASCIIPrintf(viewer, "  steps are not fused: %s\n", cheb->base.why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGALLOPCHEBYSHEV - "gallopchebyshev" - PETSc's `KSPCHEBYSHEV`, of which a step is one product on the GPU

  Options Database Keys:
+ -ksp_type gallopchebyshev           - takes it
- -mg_levels_ksp_type gallopchebyshev - smooths with it in multigrid

  Level: intermediate

  Notes:
  Method, options, estimates of eigenvalues and, up to rounding, iterates are those of `KSPCHEBYSHEV`. With `PCJACOBI` or `PCNONE` the residual, its scaling, the recurrence and the update are computed
  where a Gallop matrix stores its product, or in one kernel after the product of another matrix and of an MPI matrix.

  `KSPCHEBYSHEV` itself does so for operators that are Gallop matrices: multigrid needs no option. This name does it for operators of other types, too. In `PCGAMG` it estimates eigenvalues anew,
  since that gives those of its set-up to `KSPCHEBYSHEV` alone.

  It is `KSPCHEBYSHEV` without anything fused where norms are wanted (-ksp_norm_type none, which multigrid sets, wants none); for polynomials of the fourth kind; with another preconditioner; with
  vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()`. `KSPView()` tells the reason.

.seealso: `KSPCHEBYSHEV`, `KSPGALLOPCG`, `MATEVCHYB`
M*/
static PetscErrorCode KSPCreate_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;

  PetscFunctionBegin;
  PetscCall((*parentcreate)(ksp));
  PetscCall(PetscNew(&cheb));
  PetscCall(KSPGallopCompose(ksp, &cheb->base));
  ksp->ops->setup = KSPSetUp_GallopChebyshev;
  ksp->ops->view  = KSPView_GallopChebyshev;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopChebyshev(void)
{
  PetscErrorCode (*create)(KSP);

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(KSPList, KSPCHEBYSHEV, &create));
  PetscCheck(create, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no solver of type %s", KSPCHEBYSHEV);
  if (create != KSPCreate_GallopChebyshev) parentcreate = create;
  PetscCall(PetscLogEventRegister("GallopChebFused", KSP_CLASSID, &ChebyshevFused));
  PetscCall(KSPRegister(KSPGALLOPCHEBYSHEV, KSPCreate_GallopChebyshev));
  PetscCall(KSPRegister(KSPCHEBYSHEV, KSPCreate_GallopChebyshev));
  PetscFunctionReturn(PETSC_SUCCESS);
}
