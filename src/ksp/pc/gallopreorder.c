/* SPDX-License-Identifier: BSD-2-Clause */
/* PCGALLOPREORDER: a solver inside that works on the permuted operator, whose products permute nothing */

#include <petsc/private/pcimpl.h>
#include <petsc/private/kspimpl.h>
#include <gallop/matgallopimpl.h>

#define NULL_SPACES 3 /* of an operator: its own, that of its transpose, and the near one */

static PetscErrorCode (*const GetNullSpace[NULL_SPACES])(Mat, MatNullSpace *) = {MatGetNullSpace, MatGetTransposeNullSpace, MatGetNearNullSpace};
static PetscErrorCode (*const SetNullSpace[NULL_SPACES])(Mat, MatNullSpace)   = {MatSetNullSpace, MatSetTransposeNullSpace, MatSetNearNullSpace};

/* An operator: its state and its null spaces when they were permuted last, and the permuted operator */
typedef struct {
  MatState     state;
  MatNullSpace nullspace[NULL_SPACES]; /* references, so that the address of one is not used again for another */
  Mat          permuted;
} Operator;

typedef struct {
  PetscReal rtol, abstol, divtol;
  PetscInt  max_it, min_it;
} Tolerances;

/* What the outer solver, whose KSPSolve() runs, makes of the solver inside. KSPMatSolve() and PCApply() do not say who calls. */
typedef enum {
  OUTER_UNKNOWN,
  OUTER_ITERATES, /* a preconditioner, which may be inexact */
  OUTER_INNER,    /* KSPPREONLY within another preconditioner, which may be inexact too */
  OUTER_PREONLY   /* all that is solved */
} Outer;

typedef struct {
  KSP        ksp;
  IS         order;
  char      *first;       /* the ordering of PETSc's in which rows and columns come before the format's; NULL for none */
  Operator   amat, pmat;  /* pmat.permuted is NULL where the two are the same matrix */
  Vec        x, b;        /* permuted */
  Tolerances given;       /* what the solver inside has been given last; where it has something else, that was set for it alone */
  PetscBool  fromoptions; /* KSPSetFromOptions() of the outer solver has been called since it last solved */
  Outer      outer;
  PetscBool  guess; /* the outer solver has an initial guess that it hands on */
} PC_GallopReorder;

static PetscErrorCode OperatorReset(Operator *op)
{
  PetscFunctionBegin;
  for (int k = 0; k < NULL_SPACES; k++) PetscCall(MatNullSpaceDestroy(&op->nullspace[k]));
  PetscCall(MatDestroy(&op->permuted));
  PetscCall(MatStateInvalidate(op->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PermuteNullSpace(PC_GallopReorder *reorder, MatNullSpace from, Mat to, PetscErrorCode (*set)(Mat, MatNullSpace))
{
  MatNullSpace sp = NULL;
  PetscBool    constant;
  PetscInt     n;
  const Vec   *vecs;
  Vec         *permuted;

  PetscFunctionBegin;
  if (from) {
    PetscCall(MatNullSpaceGetVecs(from, &constant, &n, &vecs));
    PetscCall(PetscMalloc1(n, &permuted));
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(VecDuplicate(reorder->b, &permuted[k]));
      PetscCall(VecGallopPermute(vecs[k], reorder->order, PETSC_FALSE, permuted[k]));
    }
    PetscCall(MatNullSpaceCreate(PetscObjectComm((PetscObject)to), constant, n, permuted, &sp));
    for (PetscInt k = 0; k < n; k++) PetscCall(VecDestroy(&permuted[k]));
    PetscCall(PetscFree(permuted));
  }
  PetscCall((*set)(to, sp));
  PetscCall(MatNullSpaceDestroy(&sp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PermuteNullSpaces(PC_GallopReorder *reorder, Operator *op, Mat mat)
{
  PetscFunctionBegin;
  for (int k = 0; k < NULL_SPACES; k++) {
    MatNullSpace sp;

    PetscCall((*GetNullSpace[k])(mat, &sp));
    PetscCall(PermuteNullSpace(reorder, sp, op->permuted, SetNullSpace[k]));
    PetscCall(PetscObjectReference((PetscObject)sp));
    PetscCall(MatNullSpaceDestroy(&op->nullspace[k]));
    op->nullspace[k] = sp;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSetNullSpace() does not change the state of a matrix, and PETSc reads the null space at each solve. An operator that is not the permuted one, as with KSPSetReusePreconditioner(), keeps the old null spaces. */
static PetscErrorCode UpdateNullSpaces(PC_GallopReorder *reorder, Operator *op, Mat mat)
{
  MatState  now;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatGetState(mat, &now));
  PetscCall(MatStateCompare(now, op->state, &same));
  if (!same) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < NULL_SPACES && same; k++) {
    MatNullSpace sp;

    PetscCall((*GetNullSpace[k])(mat, &sp));
    same = (PetscBool)(sp == op->nullspace[k]);
  }
  if (!same) PetscCall(PermuteNullSpaces(reorder, op, mat)); /* all, as MatSetNullSpace() of a symmetric matrix sets that of the transpose too */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The permuted operator as its operator is now: as it is, with new values, or made anew */
static PetscErrorCode OperatorUpdate(PC_GallopReorder *reorder, Operator *op, Mat mat)
{
  MatState  now;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatGetState(mat, &now));
  PetscCall(MatStateCompare(now, op->state, &same));
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  if (now.id != op->state.id || now.nonzerostate != op->state.nonzerostate) PetscCall(OperatorReset(op));
  PetscCall(MatGallopPermute(mat, reorder->order, reorder->order, op->permuted ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &op->permuted));
  op->state = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckOperator(PC pc, Mat mat, const char which[])
{
  PetscBool aij;
  PetscInt  M, N;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)mat, &aij, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCheck(aij, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PCGALLOPREORDER permutes matrices of type aij and those derived from it, but the %s matrix is of type %s", which, ((PetscObject)mat)->type_name);
  PetscCall(MatGetSize(mat, &M, &N));
  PetscCheck(M == N, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_SIZ, "PCGALLOPREORDER permutes rows and columns alike, but the %s matrix has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", which, M, N);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order is the operator's: it computes the products of the solver inside */
static PetscErrorCode Update(PC pc)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;
  Mat               amat = pc->mat, pmat = pc->pmat;
  MatState          now;

  PetscFunctionBegin;
  PetscCall(CheckOperator(pc, amat, "system"));
  if (pmat != amat) PetscCall(CheckOperator(pc, pmat, "preconditioning"));
  PetscCall(MatGetState(amat, &now));
  if (!reorder->order || now.id != reorder->amat.state.id || now.nonzerostate != reorder->amat.state.nonzerostate) {
    PetscCall(ISDestroy(&reorder->order));
    PetscCall(OperatorReset(&reorder->amat));
    PetscCall(OperatorReset(&reorder->pmat));
    PetscCall(MatGallopGetOrdering(amat, reorder->first, &reorder->order));
  }
  PetscCall(OperatorUpdate(reorder, &reorder->amat, amat));
  if (pmat != amat) PetscCall(OperatorUpdate(reorder, &reorder->pmat, pmat));
  else PetscCall(OperatorReset(&reorder->pmat));
  if (!reorder->x) PetscCall(MatCreateVecs(reorder->amat.permuted, &reorder->x, &reorder->b));
  PetscCall(PermuteNullSpaces(reorder, &reorder->amat, amat));
  if (pmat != amat) PetscCall(PermuteNullSpaces(reorder, &reorder->pmat, pmat));
  PetscCall(KSPSetOperators(reorder->ksp, reorder->amat.permuted, pmat != amat ? reorder->pmat.permuted : reorder->amat.permuted));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetTolerances(KSP ksp, Tolerances *t)
{
  PetscFunctionBegin;
  PetscCall(KSPGetTolerances(ksp, &t->rtol, &t->abstol, &t->divtol, &t->max_it));
  PetscCall(KSPGetMinimumIterations(ksp, &t->min_it));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSC_UNLIMITED, PETSC_DETERMINE and PETSC_CURRENT, which are options too, become the numbers that the solver has for them */
static PetscErrorCode SetTolerances(KSP ksp, Tolerances *t)
{
  PetscFunctionBegin;
  PetscCall(KSPSetTolerances(ksp, t->rtol, t->abstol, t->divtol, t->max_it));
  PetscCall(KSPSetMinimumIterations(ksp, t->min_it));
  PetscCall(GetTolerances(ksp, t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those that the options database has for a solver; the others stay */
static PetscErrorCode ReadTolerances(KSP ksp, Tolerances *t)
{
  PetscOptions options = ((PetscObject)ksp)->options;
  const char  *prefix  = ((PetscObject)ksp)->prefix;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetReal(options, prefix, "-ksp_rtol", &t->rtol, NULL));
  PetscCall(PetscOptionsGetReal(options, prefix, "-ksp_atol", &t->abstol, NULL));
  PetscCall(PetscOptionsGetReal(options, prefix, "-ksp_divtol", &t->divtol, NULL));
  PetscCall(PetscOptionsGetInt(options, prefix, "-ksp_max_it", &t->max_it, NULL));
  PetscCall(PetscOptionsGetInt(options, prefix, "-ksp_min_it", &t->min_it, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solver inside has the outer one's tolerances as they are now, but for those that were set for it alone */
static PetscErrorCode HandTolerances(PC_GallopReorder *reorder, KSP outer)
{
  Tolerances from, now;

  PetscFunctionBegin;
  PetscCall(GetTolerances(outer, &from));
  if (reorder->fromoptions) { /* KSPPREONLY does not read them */
    PetscCall(ReadTolerances(outer, &from));
    PetscCall(SetTolerances(outer, &from));
  }
  PetscCall(GetTolerances(reorder->ksp, &now));
  PetscCall(ReadTolerances(reorder->ksp, &from)); /* also a value that it had anyway holds once it is an option */
  PetscCall(SetTolerances(reorder->ksp, &from));  /* which makes numbers of words such as unlimited */
  if (now.rtol == reorder->given.rtol) now.rtol = reorder->given.rtol = from.rtol;
  if (now.abstol == reorder->given.abstol) now.abstol = reorder->given.abstol = from.abstol;
  if (now.divtol == reorder->given.divtol) now.divtol = reorder->given.divtol = from.divtol;
  if (now.max_it == reorder->given.max_it) now.max_it = reorder->given.max_it = from.max_it;
  if (now.min_it == reorder->given.min_it) now.min_it = reorder->given.min_it = from.min_it;
  PetscCall(SetTolerances(reorder->ksp, &now));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_GallopReorder(PC pc)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;

  PetscFunctionBegin;
  PetscCall(Update(pc));
  PetscCall(KSPSetUp(reorder->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called at the beginning of each KSPSolve() and KSPMatSolve(): nothing has failed in it yet */
static PetscErrorCode PCSetUpOnBlocks_GallopReorder(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCSetFailedReason(pc, PC_NOERROR));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCPreSolve_GallopReorder(PC pc, KSP ksp, Vec b, Vec x)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;
  PetscBool         preonly;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &preonly, KSPPREONLY, KSPNONE, ""));
  if (ksp->pc != pc) preonly = PETSC_FALSE; /* one of several, in a PCCOMPOSITE */
  /* PCBJACOBI counts its solvers' level; those of most others look like a solver that TAO or the program owns, and a failure that is told is better than one that is not */
  reorder->outer = !preonly ? OUTER_ITERATES : ksp->nestlevel > 0 ? OUTER_INNER : OUTER_PREONLY;
  if (ksp->pc == pc && ksp->reason == KSP_DIVERGED_PC_FAILED) ksp->reason = KSP_CONVERGED_ITERATING; /* KSPSetUp() found the failure of the solve before */
  if (preonly) {
    PetscCall(HandTolerances(reorder, ksp));
    PetscCall(KSPGetInitialGuessNonzero(ksp, &reorder->guess));
    if (reorder->guess) PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE)); /* till PCPostSolve(): KSPPREONLY refuses it */
  }
  reorder->fromoptions = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCPostSolve_GallopReorder(PC pc, KSP ksp, Vec b, Vec x)
{
  PC_GallopReorder  *reorder = (PC_GallopReorder *)pc->data;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(KSPGetConvergedReason(reorder->ksp, &reason));
  /* KSPPREONLY has overwritten the solution because of the failure, where other solvers leave the last iterate */
  if (reorder->outer == OUTER_PREONLY && reason < 0 && reason != KSP_DIVERGED_NANORINF && reason != KSP_DIVERGED_PC_FAILED) PetscCall(VecGallopPermute(reorder->x, reorder->order, PETSC_TRUE, x));
  if (reorder->guess) PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  reorder->guess = PETSC_FALSE;
  reorder->outer = OUTER_UNKNOWN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCheckSolve() takes KSP_DIVERGED_ITS for no failure, since solvers inside others may be inexact: not so where nobody corrects the solution */
static PetscErrorCode CheckIterations(PC pc)
{
  PC_GallopReorder  *reorder = (PC_GallopReorder *)pc->data;
  KSPConvergedReason reason;
  PetscInt           its;
  PetscBool          error;

  PetscFunctionBegin;
  PetscCall(KSPGetConvergedReason(reorder->ksp, &reason));
  if (reason != KSP_DIVERGED_ITS || reorder->outer == OUTER_ITERATES || reorder->outer == OUTER_INNER) PetscFunctionReturn(PETSC_SUCCESS);
  if (reorder->outer == OUTER_PREONLY) {
    PetscCall(KSPGetErrorIfNotConverged(reorder->ksp, &error));
    PetscCall(KSPGetIterationNumber(reorder->ksp, &its));
    PetscCheck(!error && !pc->erroriffailure, PetscObjectComm((PetscObject)pc), PETSC_ERR_NOT_CONVERGED, "The solver inside PCGALLOPREORDER has not converged: %s, %" PetscInt_FMT " iterations", KSPConvergedReasons[reason], its);
  }
  PetscCall(PCSetFailedReason(pc, PC_SUBPC_ERROR)); /* which only KSPPREONLY looks at while there are no infinite norms */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(PC pc, Vec b, Vec x, PetscErrorCode (*solve)(KSP, Vec, Vec))
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;
  PetscBool         nonzero;
  MatState          now;

  PetscFunctionBegin;
  /* PETSc sets a preconditioner up again when pmat has changed, not when only amat or an option has */
  PetscCall(MatGetState(pc->mat, &now));
  if (!reorder->order || (!pc->reusepreconditioner && (now.id != reorder->amat.state.id || now.state != reorder->amat.state.state))) PetscCall(Update(pc));
  else {
    PetscCall(UpdateNullSpaces(reorder, &reorder->amat, pc->mat));
    PetscCall(UpdateNullSpaces(reorder, &reorder->pmat, pc->pmat));
  }
  PetscCall(KSPGetInitialGuessNonzero(reorder->ksp, &nonzero));
  if (nonzero || reorder->guess) PetscCall(VecGallopPermute(x, reorder->order, PETSC_FALSE, reorder->x));
  if (reorder->guess) PetscCall(KSPSetInitialGuessNonzero(reorder->ksp, PETSC_TRUE));
  PetscCall(VecGallopPermute(b, reorder->order, PETSC_FALSE, reorder->b));
  PetscCall((*solve)(reorder->ksp, reorder->b, reorder->x));
  if (reorder->guess) PetscCall(KSPSetInitialGuessNonzero(reorder->ksp, nonzero));
  PetscCall(VecGallopPermute(reorder->x, reorder->order, PETSC_TRUE, x));
  PetscCall(KSPCheckSolve(reorder->ksp, pc, x)); /* which overwrites the solution after a failure; reorder->x still has it for PCPostSolve() */
  PetscCall(CheckIterations(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_GallopReorder(PC pc, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(Apply(pc, b, x, KSPSolve));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose of a symmetrically permuted matrix is the permuted transpose */
static PetscErrorCode PCApplyTranspose_GallopReorder(PC pc, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(Apply(pc, b, x, KSPSolveTranspose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_GallopReorder(PC pc)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;

  PetscFunctionBegin;
  PetscCall(OperatorReset(&reorder->amat));
  PetscCall(OperatorReset(&reorder->pmat));
  PetscCall(ISDestroy(&reorder->order));
  PetscCall(VecDestroy(&reorder->x));
  PetscCall(VecDestroy(&reorder->b));
  PetscCall(KSPReset(reorder->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_GallopReorder(PC pc)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;

  PetscFunctionBegin;
  PetscCall(PCReset_GallopReorder(pc));
  PetscCall(KSPDestroy(&reorder->ksp));
  PetscCall(PetscFree(reorder->first));
  PetscCall(PetscObjectComposeFunction((PetscObject)pc, "PCGallopReorderGetKSP_C", NULL));
  PetscCall(PetscFree(pc->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetFromOptions_GallopReorder(PC pc, PetscOptionItems PetscOptionsObject)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;

  char      first[64] = "format";
  PetscBool set, format, same;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "PCGALLOPREORDER options");
  PetscCall(PetscOptionsString("-reorder_order", "The order of rows and columns: the format's, or that of an ordering first, such as rcm", "MatGetOrdering", reorder->first ? reorder->first : first, first, sizeof(first), &set));
  PetscOptionsHeadEnd();
  PetscCall(PetscStrcmp(first, reorder->first ? reorder->first : "format", &same));
  if (set && !same) {
    PetscCall(PetscStrcmp(first, "format", &format));
    PetscCall(PetscFree(reorder->first));
    if (!format) PetscCall(PetscStrallocpy(first, &reorder->first));
    PetscCall(ISDestroy(&reorder->order)); /* Apply() gets another, as PETSc need not set up anew */
  }
  PetscCall(KSPSetFromOptions(reorder->ksp));
  reorder->fromoptions = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_GallopReorder(PC pc, PetscViewer viewer)
{
  PC_GallopReorder *reorder = (PC_GallopReorder *)pc->data;
  PetscBool         isascii, isstring;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERSTRING, &isstring));
  if (isascii) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  rows and columns in the order of the format%s%s; the solver inside:\n", reorder->first ? ", after " : "", reorder->first ? reorder->first : ""));
    PetscCall(KSPView(reorder->ksp, viewer));
  } else if (isstring) {
    PetscCall(PetscViewerStringSPrintf(viewer, " Gallop reorder preconditioner"));
    PetscCall(KSPView(reorder->ksp, viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGallopReorderGetKSP_GallopReorder(PC pc, KSP *ksp)
{
  PetscFunctionBegin;
  *ksp = ((PC_GallopReorder *)pc->data)->ksp;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCGallopReorderGetKSP - Gives the solver inside a `PCGALLOPREORDER`, which works on the permuted operator

  Not Collective

  Input Parameter:
. pc - the preconditioner

  Output Parameter:
. ksp - the solver inside; its options begin with `-reorder_`

  Level: intermediate

.seealso: `PCGALLOPREORDER`, `KSP`, `PCRedistributeGetKSP()`
@*/
PetscErrorCode PCGallopReorderGetKSP(PC pc, KSP *ksp)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscAssertPointer(ksp, 2);
  PetscUseMethod(pc, "PCGallopReorderGetKSP_C", (PC, KSP *), (pc, ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  PCGALLOPREORDER - "gallopreorder" - Solves with the rows and columns of the operator in the order in which its format keeps rows

  Options Database Keys:
+ -reorder_ksp_type <gmres> - the Krylov method of the solver inside; all options of a `KSP` with this prefix, such as `-reorder_ksp_rtol`
. -reorder_pc_type <type>   - its preconditioner, likewise
. -reorder_order <format>   - the order: `format`, or a `MatOrderingType` such as `rcm` in which rows and columns come before the format puts them into its own
. -ksp_rtol <1e-5>          - of an outer `KSPPREONLY`, which does not use it: holds inside, as do the following ones
. -ksp_atol <1e-50>         - absolute tolerance
. -ksp_divtol <1e4>         - divergence tolerance
. -ksp_max_it <10000>       - maximum number of iterations
- -ksp_min_it <0>           - minimum number of iterations

  Level: intermediate

  Notes:
  Normally used with `-ksp_type preonly -pc_type gallopreorder -reorder_ksp_type cg -reorder_pc_type jacobi`.

  The format of a `MATEVCHYB` matrix sorts rows by length, and each of its products puts results back to where they belong. Here the operator is permuted symmetrically by that order once,
  the right-hand side once a solve and the solution back once a solve; the products of the solver inside permute nothing. Rows stay on their MPI process.

  The order of a `MATEVCHYB` matrix is by clusters of neighbours where these pay, as for a mesh that is numbered at random, or `-mat_evchyb_order cluster` asks for them. With `-reorder_order rcm` rows and columns are put into the order of
  `MATORDERINGRCM` first, on the host; the format sorts by length within windows of that order then.

  The permuted operator is a second matrix, of the type and options of the first. New values are brought over without finding out anew where they go, on the GPU where they are there; a new nonzero
  pattern gives a new order and a new matrix. Where the preconditioner is made from another matrix than the operator both are permuted by the order of the operator. Null spaces and near null spaces of both go along,
  as they are at each solve, but those that are a function of the user. Vectors of a null space that are changed in place are seen when the operator changes.

  Operators must be of type `MATAIJ` or derive from it, and square. Those of other types than `MATEVCHYB` have the order of `MATORDERINGGALLOP` too.

  What depends on the order of rows, such as `PCILU` or `PCSOR`, is another preconditioner for the permuted operator, and may converge slower or faster. Block sizes are lost.

  Within `KSPPREONLY` the solver inside stands for the outer `KSP`. Its tolerances and its maximum and minimum number of iterations are those that the outer `KSP` has at each `KSPSolve()`, be they
  from `KSPSetTolerances()` or from options. What is set for the solver inside, by an option with its prefix or by the program, comes first. An initial guess of the outer `KSP` is where it begins.

  When it does not converge, `KSPGetConvergedReason()` of the outer `KSP` gives `KSP_DIVERGED_PC_FAILED`, and the solution is the last iterate, or infinite after `KSP_DIVERGED_NANORINF` and
  `KSP_DIVERGED_PC_FAILED` inside. With `-ksp_error_if_not_converged` or
  `-reorder_ksp_error_if_not_converged` that is an error; with `-reorder_ksp_converged_maxits` a fixed number of iterations is no failure.

  After `KSPSetReusePreconditioner()` the permuted operator keeps its old values, so that a `KSPPREONLY` goes on solving the old system. `-reorder_ksp_reuse_preconditioner` reuses what is inside alone.

  `KSPMatSolve()` does not tell a preconditioner which `KSP` calls it: failures are reported, tolerances are those that the solver inside has already.

  Within other types of `KSP` it is a preconditioner, which may be inexact: reaching its maximum number of iterations is no failure, and its tolerances are its own. Nor is that a failure in the
  `KSPPREONLY` of a block of `PCBJACOBI`. In that of other preconditioners, such as `PCASM` or `PCMG`, it is one, since PETSc does not tell it from the solver of a program: there
  `-reorder_ksp_converged_maxits` makes a fixed number of iterations no failure. With
  `-reorder_ksp_initial_guess_nonzero` it begins with what is in the vector that `PCApply()` puts its result into.

.seealso: `PCGallopReorderGetKSP()`, `MATORDERINGGALLOP`, `MatGallopPermute()`, `VecGallopPermute()`, `MATEVCHYB`, `PCREDISTRIBUTE`, `PC`, `PCSetType()`
M*/
PETSC_INTERN PetscErrorCode PCCreate_GallopReorder(PC pc)
{
  PC_GallopReorder *reorder;
  const char       *prefix;

  PetscFunctionBegin;
  PetscCall(PetscNew(&reorder));
  pc->data                = (void *)reorder;
  pc->ops->setup          = PCSetUp_GallopReorder;
  pc->ops->setuponblocks  = PCSetUpOnBlocks_GallopReorder;
  pc->ops->presolve       = PCPreSolve_GallopReorder;
  pc->ops->postsolve      = PCPostSolve_GallopReorder;
  pc->ops->apply          = PCApply_GallopReorder;
  pc->ops->applytranspose = PCApplyTranspose_GallopReorder;
  pc->ops->reset          = PCReset_GallopReorder;
  pc->ops->destroy        = PCDestroy_GallopReorder;
  pc->ops->setfromoptions = PCSetFromOptions_GallopReorder;
  pc->ops->view           = PCView_GallopReorder;

  PetscCall(KSPCreate(PetscObjectComm((PetscObject)pc), &reorder->ksp));
  PetscCall(KSPSetNestLevel(reorder->ksp, pc->kspnestlevel));
  PetscCall(KSPSetErrorIfNotConverged(reorder->ksp, pc->erroriffailure));
  PetscCall(GetTolerances(reorder->ksp, &reorder->given));
  PetscCall(PetscObjectIncrementTabLevel((PetscObject)reorder->ksp, (PetscObject)pc, 1));
  PetscCall(PCGetOptionsPrefix(pc, &prefix));
  PetscCall(KSPSetOptionsPrefix(reorder->ksp, prefix));
  PetscCall(KSPAppendOptionsPrefix(reorder->ksp, "reorder_"));
  PetscCall(PetscObjectComposeFunction((PetscObject)pc, "PCGallopReorderGetKSP_C", PCGallopReorderGetKSP_GallopReorder));
  PetscFunctionReturn(PETSC_SUCCESS);
}
