/* SPDX-License-Identifier: BSD-2-Clause */
/*
  KSPGALLOPCG: PETSc's KSPCG, whose vector operations are fused on the GPU, and its variants, of which the pipelined one is PETSc's KSPPIPECG

  It is KSPCG with another KSPSolve(): options, set-up and what is not fused are the parent's. gallopcgsolve.c has the fused solve, galloppipecg.c that of the pipelined variant.
*/

#include <gallop/matgallopimpl.h>
#include "gallopcgimpl.h"

static PetscErrorCode (*parentcreate)(KSP), (*pipecreate)(KSP); /* of KSPCG and KSPPIPECG */
PetscLogEvent KSP_GallopCGFused = -1;

static const char *const Variants[] = {"standard", "single", "pipelined", "KSPGallopCGVariant", "GALLOP_CG_", NULL};

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode CanFuse(KSP ksp, const GallopCG *cg, const char **why)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopCanFuse(ksp, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->calc_sings) *why = "eigenvalues are wanted";
  else if (cg->radius != 0 || cg->target < 0) *why = "there is a trust region or a target of the objective";
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode KSPSolve_GallopCG(KSP ksp)
{
  GallopCG *cg;
  PetscBool takes, done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCheck(!PetscDefined(USE_COMPLEX) || cg->variant != GALLOP_CG_PIPELINED || cg->type == KSP_CG_HERMITIAN, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "The pipelined variant of CG is for Hermitian matrices only");
  PetscCall(KSPGallopBegin(ksp, &cg->base, &takes));
  if (!takes) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
  PetscCall(CanFuse(ksp, cg, &cg->base.why));
  PetscCall(KSPGallopGetRoom(ksp, &cg->base, PETSC_TRUE, &done));
  if (done && cg->variant == GALLOP_CG_PIPELINED) PetscCall(KSPGallopPipeCGSolve(ksp, cg));
  else if (done) PetscCall(KSPGallopCGSolve(ksp, cg));
#else
  cg->base.why = "PETSc was configured without CUDA";
#endif
  PetscCall(KSPGallopEnd(ksp, &cg->base, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGGetObjFcn_GallopCG(KSP ksp, PetscReal *objective)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  if (cg->base.fused) *objective = cg->objective;
  else PetscCall((*cg->getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPSetUp() and KSPSolve() of PETSc's KSPPIPECG, which need nothing of a solver but its work vectors */
static PetscErrorCode GetPipelined(PetscErrorCode (**setup)(KSP), PetscErrorCode (**solve)(KSP))
{
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall((*pipecreate)(ksp));
  *setup = ksp->ops->setup;
  *solve = ksp->ops->solve;
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc replaces KSPSolve() by that of the variant with one reduction, and brings KSPCG's back. Only KSPCG's has an objective function. */
static PetscErrorCode SetVariant(KSP ksp, GallopCG *cg, GallopCGVariant variant)
{
  PetscFunctionBegin;
  PetscCall((*cg->setsinglereduction)(ksp, (PetscBool)(variant == GALLOP_CG_SINGLE)));
  cg->base.parent.solve = ksp->ops->solve;
  ksp->ops->setup       = cg->base.parent.setup;
  if (variant == GALLOP_CG_PIPELINED) PetscCall(GetPipelined(&ksp->ops->setup, &cg->base.parent.solve));
  if (cg->variant != variant) ksp->setupstage = KSP_SETUP_NEW; /* with other work vectors */
  cg->variant     = variant;
  ksp->ops->solve = KSPSolve_GallopCG;
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", variant == GALLOP_CG_STANDARD ? KSPCGGetObjFcn_GallopCG : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGUseSingleReduction_GallopCG(KSP ksp, PetscBool flg)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall(SetVariant(ksp, cg, flg ? GALLOP_CG_SINGLE : GALLOP_CG_STANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_GallopCG(KSP ksp, PetscOptionItems PetscOptionsObject)
{
  GallopCG       *cg;
  GallopCGVariant variant;
  PetscBool       set;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall(KSPSetFromOptions_Gallop(ksp, PetscOptionsObject));
  if (PetscDefined(USE_COMPLEX))
    PetscCall(PetscOptionsGetEnum(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_cg_type", KSPCGTypes, (PetscEnum *)&cg->type, NULL)); /* which the parent does not tell */
  PetscCall(PetscOptionsEnum("-ksp_gallopcg_variant", "Reductions of an iteration: two, one, or one during the preconditioner and the product", "KSPGALLOPCG", Variants, (PetscEnum)cg->variant, (PetscEnum *)&variant, &set));
  if (set) PetscCall(SetVariant(ksp, cg, variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

KSP_GALLOP_SETTER(GallopCG, KSPCGSetType, KSPCGType, type, settype)
KSP_GALLOP_SETTER(GallopCG, KSPCGSetRadius, PetscReal, radius, setradius)
KSP_GALLOP_SETTER(GallopCG, KSPCGSetObjectiveTarget, PetscReal, target, settarget)

/* The parent tells of the variant with one reduction */
static PetscErrorCode KSPView_GallopCG(KSP ksp, PetscViewer viewer)
{
  GallopCG *cg;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &cg));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (ascii && cg->variant == GALLOP_CG_PIPELINED) PetscCall(PetscViewerASCIIPrintf(viewer, "  using pipelined variant\n"));
  PetscCall((*cg->view)(ksp, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGALLOPCG - "gallopcg" - PETSc's `KSPCG` with vector operations that are fused on the GPU

  Options Database Keys:
+ -ksp_type gallopcg       - takes it
. -ksp_gallop_fuse <true>  - false leaves `KSPCG` as PETSc has it, also with Gallop's matrices
. -ksp_gallop_graph <true> - launch several iterations at once, as a CUDA graph, where systems are small
. -ksp_gallop_sums <auto>  - where sums of several processes are added up: `auto`, `mpi` or `device`, as told below
. -ksp_cg_type <type>      - hermitian or symmetric, as for `KSPCG`, for complex numbers
. -ksp_cg_single_reduction - as for `KSPCG`: the variant with one reduction, fused too
- -ksp_gallopcg_variant <standard> - standard, single (the same variant with one reduction) or pipelined

  Level: beginner

  Notes:
  `KSPCG` is this solver where the matrix is one of Gallop's.

  `KSPCGUseSingleReduction()` takes the variant of Chronopoulos and Gear: a single kernel beside the product and the preconditioner, and one reduction by MPI in an iteration on several processes. It
  keeps A z and A p instead of computing the latter, and loses some accuracy, as PETSc's does. The sign of p.w is tested as `KSPCG` does without it.

  The pipelined variant of Ghysels and Vanroose is PETSc's `KSPPIPECG`, in all that is said here in place of `KSPCG`: the reduction of several processes is under way during the preconditioner and the
  product, which read vectors of recurrences and not its results. All vector operations, with the sums, are one kernel, for any preconditioner. It is for many processes: with more vectors it reads and
  writes more than the other variants, and it is less accurate. It tests for no breakdown, and ends with `KSP_DIVERGED_ITS` after one iteration more than the limit, as PETSc's does. `KSPPIPECG` is
  this variant where the matrix is one of Gallop's.

  Method, options, norms, tests, monitors, reasons and, up to rounding, iterates are those of `KSPCG`. An iteration has two kernels beside the product and the preconditioner, p, and x and r
  with z.r and the norm; p.w comes out of the product of `MATEVCHYB`, `MATCSROVERLAP` and, on one process, `MATHBP`, and is a third kernel with other matrices. On one process scalars stay on the GPU. With `PCJACOBI` and `PCNONE`, which are part of these kernels, and where PETSc's own test is used and no monitor is set, the host
  starts the next iterations before it knows the norm of the last one: a GPU that has found that the solve is over leaves the iterates as they are. Those of a system of up to 262,144 unknowns
  are launched as CUDA graphs, from the ninth iteration on.

  On several processes an iteration has two reductions, by MPI or on the GPUs, where the kernel that has the sums of its process writes them into the memory of the others, by CUDA IPC, and waits for
  theirs. That is so where all processes of `MPI_COMM_WORLD`, up to 33, solve together on one host and each has a GPU of its own; with `-ksp_gallop_sums device` also on fewer of them, and where they share GPUs. p.w of a
  product is then added up by one kernel more, there are no CUDA graphs, and all else is as on one process: the host goes ahead where it does there. The variant with one reduction has two on GPUs. The
  pipelined one takes MPI.

  On one process, and where sums are added up on GPUs, each run gives the same bits on the same kind of GPU.

  It is `KSPCG` itself, without anything fused, with vectors on the host; for a matrix with a null space; in `KSPSolveTranspose()`; where eigenvalues, a trust region,
  a target of the objective or `KSPSetCheckNormIteration()` are wanted. `KSPView()` and -info tell the reason.

  The matrix may be of any type, the fastest are Gallop's.

.seealso: `KSPCG`, `KSPPIPECG`, `KSPCGUseSingleReduction()`, `MATEVCHYB`
M*/
PETSC_INTERN PetscErrorCode KSPCreate_GallopCG(KSP ksp)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall((*parentcreate)(ksp));
  PetscCall(PetscNew(&cg));
  cg->type = PetscDefined(USE_COMPLEX) ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC;
  PetscCall(KSPGallopCompose(ksp, KSPGALLOPCG, &cg->base));
  cg->view                 = ksp->ops->view;
  ksp->ops->solve          = KSPSolve_GallopCG;
  ksp->ops->setfromoptions = KSPSetFromOptions_GallopCG;
  ksp->ops->view           = KSPView_GallopCG;
  KSPGallopReplace("KSPCGSetType_C", KSPCGSetType_GallopCG, cg->settype);
  KSPGallopReplace("KSPCGSetRadius_C", KSPCGSetRadius_GallopCG, cg->setradius);
  KSPGallopReplace("KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_GallopCG, cg->settarget);
  KSPGallopReplace("KSPCGGetObjFcn_C", KSPCGGetObjFcn_GallopCG, cg->getobjective);
  KSPGallopReplace("KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_GallopCG, cg->setsinglereduction);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's KSPPIPECG, which has no name of ours for other matrices */
static PetscErrorCode KSPCreate_GallopPipeCG(KSP ksp)
{
  GallopCG *cg;

  PetscFunctionBegin;
  PetscCall((*pipecreate)(ksp));
  PetscCall(PetscNew(&cg));
  cg->type    = KSP_CG_HERMITIAN;
  cg->variant = GALLOP_CG_PIPELINED;
  PetscCall(KSPGallopCompose(ksp, KSPGALLOPCG, &cg->base));
  ksp->ops->solve = KSPSolve_GallopCG;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPRegister_GallopCG(void)
{
  PetscFunctionBegin;
  PetscCall(GallopLogEventRegister("GallopCGFused", KSP_CLASSID, &KSP_GallopCGFused));
  PetscCall(KSPGallopRegister(KSPGALLOPCG, KSPCG, KSPCreate_GallopCG, &parentcreate));
  PetscCall(KSPGallopRegister(NULL, KSPPIPECG, KSPCreate_GallopPipeCG, &pipecreate));
  PetscFunctionReturn(PETSC_SUCCESS);
}
