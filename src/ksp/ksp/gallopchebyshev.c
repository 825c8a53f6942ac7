/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCHEBYSHEV: PETSc's KSPCHEBYSHEV, of which a step with Jacobi's preconditioner is one product on the GPU, see gallopsteps.c. Estimates of eigenvalues are the parent's. */

#include <gallop/matgallopimpl.h>
#include "gallopsteps.h"

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

static PetscErrorCode LookAtSetUp(KSP ksp, const char **never)
{
  KSPChebyshevKind kind;
  PetscBool        known = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPChebyshevGetKind(ksp, &kind));
  PetscCall(LayoutIsKnown(ksp, kind, &known));
  if (kind != KSP_CHEBYSHEV_FIRST) *never = "the polynomial is not of the first kind";
  else if (!known) *never = "this PETSc is not known";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x_1 = x_0 + s D (b - A x_0) and x_{k+1} = omega (x_k + s D (b - A x_k)) + (1 - omega) x_{k-1}, which takes the place of x_{k-1} */
static PetscErrorCode Solve(KSP ksp, GallopSteps *steps)
{
  Vec       before = ksp->vec_sol, now = ksp->work[0], swap;
  PetscReal emax, emin, scale, mu, c[2];

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
  PetscCall(KSPGallopStep(ksp, steps, scale, 0, NULL, 1, ksp->guess_zero ? NULL : before, now));
  for (ksp->its = 1; ksp->its < ksp->max_it; ksp->its++) {
    const PetscReal next = 2 * mu * c[1] - c[0], omega = 2 * mu * c[1] / next;

    PetscCall(KSPGallopStep(ksp, steps, omega * scale, 1 - omega, ksp->its == 1 && ksp->guess_zero ? NULL : before, omega, now, before));
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

static PetscErrorCode KSPCreate_GallopChebyshev(KSP);

static GallopStepsType chebyshev = {KSPGALLOPCHEBYSHEV, KSPCHEBYSHEV, "GallopChebFused", KSPCreate_GallopChebyshev, LookAtSetUp, NULL, Solve, NULL, -1};

/*MC
  KSPGALLOPCHEBYSHEV - "gallopchebyshev" - PETSc's `KSPCHEBYSHEV`, of which a step is one product on the GPU

  Options Database Keys:
+ -ksp_type gallopchebyshev           - takes it
- -mg_levels_ksp_type gallopchebyshev - smooths with it in multigrid

  Level: intermediate

  Notes:
  Method, options, estimates of eigenvalues and, up to rounding, iterates are those of `KSPCHEBYSHEV`. With `PCJACOBI` or `PCNONE` the residual, its scaling, the recurrence and the update are computed
  where a Gallop matrix stores its product, or in one kernel after the product of another matrix and of an MPI matrix. With `PCPBJACOBI` of an AIJ matrix with blocks of up to 8 rows a step is the
  residual, likewise, and one kernel that multiplies by the blocks and adds the rest.

  `KSPCHEBYSHEV` itself does so for operators that are Gallop matrices: multigrid needs no option. This name does it for operators of other types, too. In `PCGAMG` it estimates eigenvalues anew,
  since that gives those of its set-up to `KSPCHEBYSHEV` alone.

  It is `KSPCHEBYSHEV` without anything fused where norms are wanted (-ksp_norm_type none, which multigrid sets, wants none); for polynomials of the fourth kind; with another preconditioner; with
  vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()`. `KSPView()` tells the reason.

.seealso: `KSPCHEBYSHEV`, `KSPGALLOPCG`, `MATEVCHYB`
M*/
static PetscErrorCode KSPCreate_GallopChebyshev(KSP ksp)
{
  GallopSteps *steps;

  PetscFunctionBegin;
  PetscCall(PetscNew(&steps));
  PetscCall(KSPGallopStepsCreate(ksp, &chebyshev, steps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopChebyshev(void)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopStepsRegister(&chebyshev));
  PetscFunctionReturn(PETSC_SUCCESS);
}
