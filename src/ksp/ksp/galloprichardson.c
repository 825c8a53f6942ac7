/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPRICHARDSON: PETSc's KSPRICHARDSON, of which a step with Jacobi's preconditioner is one product on the GPU, see gallopsteps.c */

#include <gallop/matgallopimpl.h>
#include "gallopsteps.h"

/* The parent tells neither value: its setters, which its options call, too, are replaced */
typedef struct {
  GallopSteps steps;
  PetscReal   scale;
  PetscBool   selfscale;
  PetscErrorCode (*setscale)(KSP, PetscReal);
  PetscErrorCode (*setselfscale)(KSP, PetscBool);
} GallopRichardson;

KSP_GALLOP_SETTER(GallopRichardson, KSPRichardsonSetScale, PetscReal, scale, setscale)
KSP_GALLOP_SETTER(GallopRichardson, KSPRichardsonSetSelfScale, PetscBool, selfscale, setselfscale)

/* The parent calls monitors and the test also where no norm is wanted, and they may look at the iterate */
static PetscErrorCode CanFuse(KSP ksp, const GallopSteps *steps, const char **why)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (((const GallopRichardson *)steps)->selfscale) *why = "the scale is computed in each step";
  else if (ksp->numbermonitors) *why = "a monitor is set";
  else if (ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip) *why = "the test of convergence is the user's";
  /* where other processes may not fuse: PETSc's messages would come in another order */
  else if (ksp->max_it < 1) *why = "no iteration is wanted";
  else if (PetscDefined(USE_DEBUG) && size > 1 && ksp->converged != KSPConvergedSkip) *why = "the test of convergence exchanges messages in a debug PETSc";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  x_{k+1} = x_k + s D (b - A x_k)

  Iterates alternate between two vectors, since a product needs all of x_k until it ends. A zero guess is in neither, so that the last iterate can be in the solution. With blocks, the product has
  ended when x_{k+1} is written: it takes the place of x_k.
*/
static PetscErrorCode Solve(KSP ksp, GallopSteps *steps)
{
  const PetscReal scale = ((const GallopRichardson *)steps)->scale;
  Vec             now   = ksp->guess_zero ? NULL : ksp->vec_sol;

  PetscFunctionBegin;
  for (ksp->its = 0; ksp->its < ksp->max_it; ksp->its++) {
    const PetscBool insolution = (PetscBool)(steps->bs > 1 || (now ? now != ksp->vec_sol : (ksp->max_it - ksp->its) % 2 == 1));
    Vec             next       = insolution ? ksp->vec_sol : ksp->work[0];

    PetscCall(KSPGallopTest(ksp, ksp->its, 0));
    if (ksp->reason) break;
    PetscCall(KSPGallopStep(ksp, steps, scale, 0, NULL, 1, now, next));
    now = next;
  }
  if (now && now != ksp->vec_sol) PetscCall(VecCopy(now, ksp->vec_sol));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  ksp->rnorm = 0;
  PetscCall(KSPLogResidualHistory(ksp, 0));
  ksp->reason = KSP_CONVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCreate_GallopRichardson(KSP);

static GallopStepsType richardson = {KSPGALLOPRICHARDSON, KSPRICHARDSON, "GallopRichFused", KSPCreate_GallopRichardson, NULL, CanFuse, Solve, NULL, -1};

/*MC
  KSPGALLOPRICHARDSON - "galloprichardson" - PETSc's `KSPRICHARDSON`, of which a step is one product on the GPU

  Options Database Keys:
+ -ksp_type galloprichardson           - takes it
. -ksp_richardson_scale <scale>        - as for `KSPRICHARDSON`
- -mg_levels_ksp_type galloprichardson - smooths with it in multigrid

  Level: intermediate

  Notes:
  Method, options and, up to rounding, iterates are those of `KSPRICHARDSON`. With `PCJACOBI` or `PCNONE` the residual, its scaling and the update are computed where a Gallop matrix stores its product,
  or in one kernel after the product of another matrix and of an MPI matrix. With `PCPBJACOBI` of an AIJ matrix with blocks of up to 8 rows a step is the residual, likewise, and one kernel that
  multiplies by the blocks and adds the rest.

  `KSPRICHARDSON` itself does so for operators that are Gallop matrices: -mg_levels_ksp_type richardson -mg_levels_pc_type jacobi needs no other option. This name does it for operators of other
  types, too.

  It is `KSPRICHARDSON` without anything fused where norms are wanted (-ksp_norm_type none, which multigrid sets, wants none); with -ksp_richardson_self_scale; with monitors or a test of convergence of
  the user's; with another preconditioner; with vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()` and `KSPMatSolve()`. `KSPView()` tells the reason.

.seealso: `KSPRICHARDSON`, `KSPGALLOPCHEBYSHEV`, `KSPRichardsonSetScale()`, `MATEVCHYB`
M*/
static PetscErrorCode KSPCreate_GallopRichardson(KSP ksp)
{
  GallopRichardson *rich;

  PetscFunctionBegin;
  PetscCall(PetscNew(&rich));
  rich->scale = 1;
  PetscCall(KSPGallopStepsCreate(ksp, &richardson, &rich->steps));
  KSPGallopReplace("KSPRichardsonSetScale_C", KSPRichardsonSetScale_GallopRichardson, rich->setscale);
  KSPGallopReplace("KSPRichardsonSetSelfScale_C", KSPRichardsonSetSelfScale_GallopRichardson, rich->setselfscale);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopRichardson(void)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopStepsRegister(&richardson));
  PetscFunctionReturn(PETSC_SUCCESS);
}
