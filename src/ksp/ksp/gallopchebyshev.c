/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCHEBYSHEV: PETSc's KSPCHEBYSHEV, of which a step with Jacobi's preconditioner is one product on the GPU

  It is KSPCHEBYSHEV with another KSPSolve(): options, estimates of eigenvalues and what is not fused are the parent's. It takes the name KSPCHEBYSHEV, too, for matrices of ours, so
  that multigrid smooths with it.
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/kspimpl.h>
#include "gallopjacobi.h"

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

#define GALLOP_CHEBYSHEV "GallopChebyshev"
/* What belongs to one solver, beside the parent's data */
typedef struct {
  struct _KSPOps parent;
  PetscBool      device; /* the vectors of all processes are on the GPU, when it was set up */
  PetscBool      fused;  /* the last solve */
  const char    *why;    /* it was not */
  GallopDiagonal diagonal;
} GallopChebyshev;

static PetscErrorCode GetData(KSP ksp, GallopChebyshev **cheb)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)ksp, GALLOP_CHEBYSHEV, cheb));
  PetscCheck(*cheb, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "Not a solver of type %s", KSPGALLOPCHEBYSHEV);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the parent's data looks as we think: what PETSc tells of it is there */
static PetscErrorCode LayoutIsKnown(KSP ksp, PetscBool *known)
{
  const ParentData *data = (const ParentData *)ksp->data;
  KSPChebyshevKind  kind;
  KSP               est;

  PetscFunctionBegin;
  PetscCall(KSPChebyshevGetKind(ksp, &kind));
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

static PetscErrorCode CanFuse(KSP ksp, const GallopChebyshev *cheb, Mat A, const char **why)
{
  MatNullSpace     space;
  KSPChebyshevKind kind;
  GallopPCKind     pc;
  PetscBool        named, ours, known = PETSC_FALSE, x, b;

  PetscFunctionBegin;
  *why = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGALLOPCHEBYSHEV, &named));
  PetscCall(PCGallopGetKind(ksp->pc, &pc));
  PetscCall(VecGallopIsCUDA(ksp->vec_sol, &x));
  PetscCall(VecGallopIsCUDA(ksp->vec_rhs, &b));
  PetscCall(MatGallopIsFormat(A, &ours));
  PetscCall(MatGetNullSpace(A, &space));
  PetscCall(KSPChebyshevGetKind(ksp, &kind));
  PetscCall(LayoutIsKnown(ksp, &known));
  if (!named && !ours) *why = "the matrix is none of ours";
  else if (pc == GALLOP_PC_OTHER || (pc == GALLOP_PC_DIAGONAL && cheb->device && !cheb->diagonal.d)) *why = "the preconditioner is not Jacobi's";
  else if (!cheb->device || !x || !b) *why = "vectors are on the host";
  else if (ksp->normtype != KSP_NORM_NONE) *why = "norms are wanted";
  else if (kind != KSP_CHEBYSHEV_FIRST) *why = "the polynomial is not of the first kind";
  else if (space) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is the transposed one";
  else if (ksp->err_hist) *why = "a history of errors is wanted";
  else if (!known) *why = "this PETSc is not known";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is on the host goes to the GPU */
static PetscErrorCode ToDevice(Vec v)
{
  const PetscScalar *array;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(v, &array, NULL));
  PetscCall(VecRestoreArrayReadAndMemType(v, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  x_1 = x_0 + s D (b - A x_0) and x_{k+1} = omega (x_k + s D (b - A x_k)) + (1 - omega) x_{k-1}, which takes the place of x_{k-1}
*/
static PetscErrorCode Solve_Fused(KSP ksp, Mat A, Vec d)
{
  Vec         before = ksp->vec_sol, now = ksp->work[0], work = ksp->work[1], swap;
  PetscReal   emax, emin, scale, mu, c[2];
  GallopTerms terms = {.d = d};

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
  PetscCall(ToDevice(ksp->vec_rhs));
  PetscCall(ToDevice(before));

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
  PetscCall(GetData(ksp, &cheb));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  if (PetscDefined(HAVE_CUDA)) PetscCall(CanFuse(ksp, cheb, A, &cheb->why));
  else cheb->why = "PETSc was configured without CUDA";
  cheb->fused = PetscNot(cheb->why);
  if (cheb->fused) {
    PetscCall(PCGallopGetKind(ksp->pc, &kind));
    if (kind == GALLOP_PC_DIAGONAL) PetscCall(GallopDiagonalUpdate(&cheb->diagonal, ksp->pc, ksp->work[0]));
    PetscCall(PetscLogEventBegin(ChebyshevFused, ksp, 0, 0, 0));
    PetscCall(Solve_Fused(ksp, A, kind == GALLOP_PC_DIAGONAL ? cheb->diagonal.d : NULL));
    PetscCall(PetscLogEventEnd(ChebyshevFused, ksp, 0, 0, 0));
  } else PetscCall((*cheb->parent.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solver ---- */

/* The parent's chooses KSPSolve(). All processes agree on where vectors are, since some may have bound theirs to the host. */
static PetscErrorCode KSPSetUp_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;
  GallopPCKind     kind;
  PetscMPIInt      size;

  PetscFunctionBegin;
  PetscCall(GetData(ksp, &cheb));
  PetscCall((*cheb->parent.setup)(ksp));
  cheb->parent.solve   = ksp->ops->solve;
  ksp->ops->solve      = KSPSolve_GallopChebyshev;
  cheb->diagonal.valid = PETSC_FALSE;
  cheb->device         = PETSC_FALSE;
  if (!PetscDefined(HAVE_CUDA) || !ksp->work) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGallopIsCUDA(ksp->work[0], &cheb->device));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &cheb->device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  PetscCall(PCGallopGetKind(ksp->pc, &kind));
  if (cheb->device && kind == GALLOP_PC_DIAGONAL) PetscCall(GallopDiagonalCreate(&cheb->diagonal, ksp->work[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;
  PetscErrorCode (*destroy)(KSP);

  PetscFunctionBegin;
  PetscCall(GetData(ksp, &cheb));
  destroy = cheb->parent.destroy;
  PetscCall(PetscObjectCompose((PetscObject)ksp, GALLOP_CHEBYSHEV, NULL)); /* frees cheb */
  PetscCall((*destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_GallopChebyshev(KSP ksp)
{
  GallopChebyshev *cheb;

  PetscFunctionBegin;
  PetscCall(GetData(ksp, &cheb));
  PetscCall(VecDestroy(&cheb->diagonal.d));
  if (cheb->parent.reset) PetscCall((*cheb->parent.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DataDestroy(PetscCtxRt ctx)
{
  GallopChebyshev *cheb = *(GallopChebyshev **)ctx;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&cheb->diagonal.d));
  PetscCall(PetscFree(cheb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_GallopChebyshev(KSP ksp, PetscViewer viewer)
{
  GallopChebyshev *cheb;
  PetscBool        ascii, named;

  PetscFunctionBegin;
  PetscCall(GetData(ksp, &cheb));
  PetscCall((*cheb->parent.view)(ksp, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGALLOPCHEBYSHEV, &named));
  if (ascii && cheb->fused) PetscCall(PetscViewerASCIIPrintf(viewer, "  steps are fused with the product on the GPU\n"));
  else if (ascii && named && cheb->why) PetscCall(PetscViewerASCIIPrintf(viewer, "  steps are not fused: %s\n", cheb->why));
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
  cheb->parent = *ksp->ops;
  PetscCall(PetscObjectContainerCompose((PetscObject)ksp, GALLOP_CHEBYSHEV, cheb, DataDestroy));
  ksp->ops->setup   = KSPSetUp_GallopChebyshev;
  ksp->ops->reset   = KSPReset_GallopChebyshev;
  ksp->ops->destroy = KSPDestroy_GallopChebyshev;
  ksp->ops->view    = KSPView_GallopChebyshev;
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
