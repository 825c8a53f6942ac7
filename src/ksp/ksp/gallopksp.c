/* SPDX-License-Identifier: BSD-2-Clause */
/* Solvers that are one of PETSc's with another KSPSolve(), as a Gallop matrix is an AIJ matrix with another product */

#include <gallop/matgallopimpl.h>
#include <petsc/private/logimpl.h>
#include "gallopksp.h"

#define GALLOP_KSP "GallopKSP"

static const char *const SumsWays[] = {"auto", "mpi", "device"};

static PetscErrorCode DataDestroy(PetscCtxRt ctx)
{
  GallopKSP *data = *(GallopKSP **)ctx;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&data->diagonal.d));
  PetscCall(GallopBlocksReset(&data->blocks));
#if PetscDefined(HAVE_CUDA)
  PetscCall(GallopFusedDestroy(&data->work));
  PetscCall(GallopGroupDestroy(&data->group));
#endif
  PetscCall(PetscFree(data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_Gallop(KSP ksp)
{
  GallopKSP *data;
  PetscErrorCode (*destroy)(KSP);

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  destroy = data->parent.destroy;
  PetscCall(PetscObjectCompose((PetscObject)ksp, GALLOP_KSP, NULL)); /* destroys data */
  PetscCall((*destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_Gallop(KSP ksp)
{
  GallopKSP *data;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  PetscCall(VecDestroy(&data->diagonal.d));
  PetscCall(GallopBlocksReset(&data->blocks));
  if (data->parent.reset) PetscCall((*data->parent.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopRegister - Registers a type under its own name, if it has one, and in the parent's place, whose creator goes to *parentcreate */
PetscErrorCode KSPGallopRegister(KSPType own, KSPType parent, PetscErrorCode (*create)(KSP), PetscErrorCode (**parentcreate)(KSP))
{
  PetscErrorCode (*before)(KSP);

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(KSPList, parent, &before));
  PetscCheck(before, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no solver of type %s", parent);
  if (before != create) *parentcreate = before;
  if (own) PetscCall(KSPRegister(own, create));
  PetscCall(KSPRegister(parent, create));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Says whether the last solve was fused, or why not */
static PetscErrorCode KSPView_Gallop(KSP ksp, PetscViewer viewer)
{
  GallopKSP *data;
  PetscBool  ascii, named;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  if (data->parent.view) PetscCall((*data->parent.view)(ksp, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, data->own, &named));
  if (ascii && data->fused) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s are fused%s on the GPU%s\n", data->what, data->with, data->work.group ? ", which adds up the sums of all processes" : ""));
  else if (ascii && named && data->why) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s are not fused: %s\n", data->what, data->why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopCompose - Makes data, which is zeroed, that of a solver whose parent has created it. The caller then replaces other functions. */
PetscErrorCode KSPGallopCompose(KSP ksp, KSPType own, GallopKSP *data)
{
  PetscFunctionBegin;
  data->parent = *ksp->ops;
  data->own    = own;
  data->what   = "vector operations";
  data->with   = "";
  data->tried  = GALLOP_SUMS_NOT_TRIED;
  PetscCall(PetscObjectContainerCompose((PetscObject)ksp, GALLOP_KSP, data, DataDestroy));
  ksp->ops->destroy        = KSPDestroy_Gallop;
  ksp->ops->reset          = KSPReset_Gallop;
  ksp->ops->setfromoptions = KSPSetFromOptions_Gallop;
  ksp->ops->view           = KSPView_Gallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopTakes - Whether a solve is ours as far as names tell, alike on all processes: under our name any, under the parent's one with a matrix of ours */
PetscErrorCode KSPGallopTakes(KSP ksp, const GallopKSP *data, PetscBool *takes)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, data->own, takes));
  if (*takes || data->asis) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGallopIsFormat(A, takes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPSetFromOptions_Gallop(KSP ksp, PetscOptionItems PetscOptionsObject)
{
  GallopKSP *data;
  PetscBool  fuse, graph;
  PetscInt   sums;

  PetscFunctionBegin;
  PetscCall(KSPGallopGet(ksp, &data));
  if (data->parent.setfromoptions) PetscCall((*data->parent.setfromoptions)(ksp, PetscOptionsObject));
  fuse = PetscNot(data->asis);
  PetscCall(PetscOptionsBool("-ksp_gallop_fuse", "Fuse vector operations with a Gallop matrix on the GPU", "KSPGALLOPCG", fuse, &fuse, NULL));
  data->asis = PetscNot(fuse);
  graph      = PetscNot(data->nograph);
  PetscCall(PetscOptionsBool("-ksp_gallop_graph", "Launch iterations of small systems as CUDA graphs", "KSPGALLOPCG", graph, &graph, NULL));
  data->nograph = PetscNot(graph);
  sums          = (PetscInt)data->sums;
  PetscCall(PetscOptionsEList("-ksp_gallop_sums", "Where sums of several processes are added up", "KSPGALLOPCG", SumsWays, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(SumsWays), SumsWays[sums], &sums, NULL));
  data->sums = (GallopSums)sums;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopGet - *data is what KSPGallopCompose() got, of the type that begins with it */
PetscErrorCode KSPGallopGet(KSP ksp, PetscCtxRt data)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)ksp, GALLOP_KSP, data));
  PetscCheck(*(GallopKSP **)data, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "Not a solver of ours");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether kernels can have the array of a vector, on this process: other vectors with memory of two kinds may have it on the host */
PetscErrorCode VecGallopIsCUDA(Vec v, PetscBool *is)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, is, VECSEQCUDA, VECMPICUDA, ""));
  if (!GallopVecOnDevice(v)) *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A preconditioner, a monitor or a test of the program's may have bound a vector to the CPU since the solve has begun */
static PetscErrorCode Unbind(Vec v)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(VecBoundToCPU(v, &bound));
  if (bound) PetscCall(VecBindToCPU(v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VecGallopToDevice - Copies what is on the host, and gives the array on the GPU, to read */
PetscErrorCode VecGallopToDevice(Vec v, const PetscScalar **array)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Unbind(v));
  PetscCall(VecGetArrayReadAndMemType(v, &a, NULL));
  *array = a;
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VecGallopToWrite - Where the array of a vector is on the GPU; PETSc is told that it changes */
PetscErrorCode VecGallopToWrite(Vec v, PetscScalar **array)
{
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Unbind(v));
  PetscCall(VecGetArrayAndMemType(v, &a, NULL));
  *array = a;
  PetscCall(VecRestoreArrayAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopBegin - The parent's KSPSolve() where the solve is not ours, as KSPGallopTakes() tells: that exchanges no more messages than PETSc's */
PetscErrorCode KSPGallopBegin(KSP ksp, GallopKSP *base, PetscBool *takes)
{
  PetscFunctionBegin;
  PetscCall(KSPGallopTakes(ksp, base, takes));
  if (*takes) PetscFunctionReturn(PETSC_SUCCESS);
  base->fused = PETSC_FALSE;
  base->why   = NULL;
  PetscCall((*base->parent.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopLengthsMatch - Whether the vectors of a solve have the lengths of its work vectors, on this process; if not, PETSc's solver says so */
PetscErrorCode KSPGallopLengthsMatch(KSP ksp, PetscBool *match)
{
  PetscInt x, b, work;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(ksp->vec_sol, &x));
  PetscCall(VecGetLocalSize(ksp->vec_rhs, &b));
  PetscCall(VecGetLocalSize(ksp->work[0], &work));
  *match = (PetscBool)(x == work && b == work);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopCanFuse - *why is NULL where a solve can be fused as far as all fused solvers want the same */
PetscErrorCode KSPGallopCanFuse(KSP ksp, const char **why)
{
  const Vec    vecs[] = {ksp->vec_sol, ksp->vec_rhs, ksp->work[0]};
  Mat          A;
  MatNullSpace space;
  PetscBool    device = PETSC_TRUE, alike;

  PetscFunctionBegin;
  *why = NULL;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &space));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(vecs) && device; k++) PetscCall(VecGallopIsCUDA(vecs[k], &device));
  PetscCall(KSPGallopLengthsMatch(ksp, &alike));
  if (!device) *why = "vectors are on the host";
  else if (!alike) *why = "vectors have other lengths than the matrix";
  else if (space) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is the transposed one";
  else if (ksp->chknorm >= 0) *why = "norms are not wanted in each iteration";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopVecsFit - Whether vectors have room on the GPU that the parent does without, as many as one that is there: PETSc would end in an error at their first use */
PetscErrorCode KSPGallopVecsFit(Vec like, PetscInt num, PetscBool *fit)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(like, &n));
  PetscCall(GallopDeviceFits((size_t)num * (size_t)n * sizeof(PetscScalar), fit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  KSPGallopGetRoom - Memory for a fused solve, of a type that takes it, and with diagonal room for that of Jacobi's preconditioner. *done is false, and base->why is set, where there is none or another
  process cannot fuse: some may have bound vectors to the host.
*/
PetscErrorCode KSPGallopGetRoom(KSP ksp, GallopKSP *base, PetscBool diagonal, PetscBool *done)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
#if PetscDefined(HAVE_CUDA)
  if (!base->why) PetscCall(GallopFusedCreate(&base->work, done));
  if (*done && diagonal && !base->diagonal.d) {
    GallopPCKind kind;

    PetscCall(PCGallopGetKind(ksp->pc, &kind));
    if (kind == GALLOP_PC_DIAGONAL) PetscCall(KSPGallopVecsFit(ksp->work[0], 1, done));
  }
#else
  (void)diagonal;
#endif
  if (!base->why && !*done) base->why = "the GPU has no room";
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, done, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  if (!base->why && !*done) base->why = "another process cannot";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopEnd - The parent's KSPSolve() where nothing was fused, for the reason that is known */
PetscErrorCode KSPGallopEnd(KSP ksp, GallopKSP *base, PetscBool fused)
{
  PetscFunctionBegin;
  base->fused = fused;
  if (fused) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscInfo(ksp, "Vector operations are not fused: %s\n", base->why));
  PetscCall((*base->parent.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopGetDiagonal - What Jacobi's preconditioner multiplies by, anew in each solve; like and ones are vectors of the solve, the latter workspace */
PetscErrorCode KSPGallopGetDiagonal(KSP ksp, GallopKSP *base, Vec like, Vec ones)
{
  PetscFunctionBegin;
  PetscCall(GallopDiagonalCreate(&base->diagonal, like));
  base->diagonal.valid = PETSC_FALSE;
  PetscCall(GallopDiagonalUpdate(&base->diagonal, ksp->pc, ones));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/*
  KSPGallopGetGroup - For a method whose sums are added up in its kernels: whether they are those of this process alone, which MPI has to reduce

  Collective; processes are connected once, unless the option changes
*/
PetscErrorCode KSPGallopGetGroup(KSP ksp, GallopKSP *base, PetscBool *local)
{
  PetscMPIInt size;
  const char *why;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1 && base->sums != base->tried) {
    PetscCall(GallopGroupDestroy(&base->group));
    if (base->sums != GALLOP_SUMS_MPI) {
      PetscCall(GallopGroupCreate(PetscObjectComm((PetscObject)ksp), &GallopIPCTable_Device, (PetscBool)(base->sums == GALLOP_SUMS_DEVICE), &base->group, &why));
      if (why) PetscCall(PetscInfo(ksp, "Sums of processes are added up by MPI, since %s\n", why));
      else PetscCall(PetscInfo(ksp, "Sums of processes are added up on their GPUs\n"));
    }
    base->tried = base->sums;
  }
  base->work.group = base->group.device;
  *local           = (PetscBool)(size > 1 && !base->work.group);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopReduce - Of the sums of this process those of all */
PetscErrorCode KSPGallopReduce(KSP ksp, GallopRecord *record)
{
  PetscScalar sums[] = {record->sum[0], record->sum[1], record->norm};

  PetscFunctionBegin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, sums, 3, MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)ksp)));
  record->sum[0] = sums[0];
  record->sum[1] = sums[1];
  record->norm   = PetscRealPart(sums[2]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopWait - Results of this number; where they are local, the sums of all processes */
PetscErrorCode KSPGallopWait(KSP ksp, GallopKSP *base, PetscBool local, PetscInt64 number, GallopRecord *record)
{
  PetscFunctionBegin;
  PetscCall(GallopFusedWait(&base->work, number, record));
  if (local) PetscCall(KSPGallopReduce(ksp, record));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  KSPGallopGetAhead - How many iterations are started before the host knows the results of the first of them

  The host is ahead of the GPU by a few where the GPU finds by itself what ends the solve, and nobody looks at iterates: with the sums of all processes, with PETSc's own test and without monitors. It then starts
  products that nobody needs, which only those of a matrix's entries are cheap enough for; so are no applications of a preconditioner.
*/
PetscErrorCode KSPGallopGetAhead(KSP ksp, const GallopKSP *base, Mat A, GallopPCKind pc, PetscInt *ahead)
{
  PetscBool   aij, ours;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &aij, MATSEQAIJCUSPARSE, MATSEQSELLCUDA, ""));
  PetscCall(MatGallopIsFormat(A, &ours));
  *ahead = (size == 1 || base->work.group) && (aij || ours) && pc != GALLOP_PC_OTHER && (ksp->converged == KSPConvergedDefault || ksp->converged == KSPConvergedSkip) && !ksp->numbermonitors ? 3 : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  KSPGallopRecords - Whether iterations may be launched as CUDA graphs

  They are where kernels take less time than their launches, and the host goes ahead. Not on several processes, whose exchanges have numbers, nor with -log_view_gpu_time, whose events would be recorded too.
*/
PetscErrorCode KSPGallopRecords(KSP ksp, const GallopKSP *base, PetscInt ahead, KSPGallopRecorder *g)
{
  const PetscInt most = 1 << 18; /* rows */
  PetscInt       n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
  g->records  = (PetscBool)(ahead > 1 && !base->work.group && n <= most && !base->nograph && !PetscLogGpuTimeFlag);
  g->recorded = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopRecordable - Whether the next iterations are alike, and as many as a graph has; started are those before them. Not while the format of A is to become a faster one. */
PetscErrorCode KSPGallopRecordable(KSP ksp, Mat A, const KSPGallopRecorder *g, PetscInt started, PetscBool *recordable)
{
  PetscBool tries;

  PetscFunctionBegin;
  *recordable = (PetscBool)(g->records && started >= GALLOP_GRAPH_FROM && started % 2 == 0 && started + 1 >= ksp->min_it && started + GALLOP_GRAPH_ITERATIONS <= ksp->max_it);
  if (!*recordable || g->recorded) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopTries(A, &tries));
  *recordable = PetscNot(tries);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* KSPGallopGraph - The next iterations, launched at once: iterate(ctx, k) launches the k-th of them, once, for the record, and replay(ctx, k) logs it. Starts none where they cannot be recorded. */
PetscErrorCode KSPGallopGraph(GallopFused *work, KSPGallopRecorder *g, PetscErrorCode (*iterate)(void *, PetscInt), PetscErrorCode (*replay)(void *, PetscInt), void *ctx, PetscInt *started)
{
  PetscFunctionBegin;
  if (!g->recorded) {
    PetscCall(GallopFusedCountFrom(work));
    PetscCall(GallopFusedRecord(work, GALLOP_GRAPH_ITERATIONS, iterate, ctx, &g->recorded));
    g->records = g->recorded;
    if (!g->recorded) PetscFunctionReturn(PETSC_SUCCESS);
  } else
    for (PetscInt k = 0; k < GALLOP_GRAPH_ITERATIONS; k++) PetscCall((*replay)(ctx, k));
  PetscCall(GallopFusedLaunch(work));
  *started += GALLOP_GRAPH_ITERATIONS;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* KSPGallopTest - What PETSc's solvers do with the norm of an iteration's residual */
PetscErrorCode KSPGallopTest(KSP ksp, PetscInt its, PetscReal norm)
{
  PetscFunctionBegin;
  ksp->rnorm = norm;
  PetscCall(KSPLogResidualHistory(ksp, norm));
  PetscCall(KSPMonitor(ksp, its, norm));
  PetscCall((*ksp->converged)(ksp, its, norm, &ksp->reason, ksp->cnvP));
  PetscFunctionReturn(PETSC_SUCCESS);
}
