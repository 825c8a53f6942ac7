/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The pipelined variant of KSPGALLOPCG: the fused solve of PETSc's KSPPIPECG, whose order of tests it has

  The host computes a and b from the sums of each iteration. It does so while the GPU multiplies: the reduction of several processes, or the wait for the sums of one, is over when the product is.
*/

#include <gallop/matgallopimpl.h>
#include "gallopcg.h"
#include "gallopcgimpl.h"

#if PetscDefined(HAVE_CUDA)
typedef struct {
  KSP                ksp;
  GallopFused       *work;
  Mat                A;
  Vec                x, r, u, w, m, n, p, s, q, z; /* u is r and m is w for want of a preconditioner */
  GallopCGMethod     method;
  GallopPipeCGArrays arrays;
  PetscBool          several; /* processes */
  PetscScalar        sums[3]; /* r.u, w.u and the square of the norm */
  MPI_Request        request;
} Solve;

/* Sums of this process */
static PetscErrorCode GetLocalSums(Solve *s)
{
  GallopRecord record;

  PetscFunctionBegin;
  PetscCall(GallopFusedWait(s->work, s->work->number, &record));
  s->sums[0] = record.sum[0];
  s->sums[1] = record.sum[1];
  s->sums[2] = record.norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSumsBegin(Solve *s)
{
  PetscFunctionBegin;
  if (!s->several) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetLocalSums(s));
  PetscCallMPI(MPI_Iallreduce(MPI_IN_PLACE, s->sums, 3, MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)s->ksp), &s->request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of all processes, and the norm */
static PetscErrorCode GetSumsEnd(Solve *s, PetscReal *norm)
{
  PetscFunctionBegin;
  if (s->several) PetscCallMPI(MPI_Wait(&s->request, MPI_STATUS_IGNORE));
  else PetscCall(GetLocalSums(s));
  switch (s->method.norm) {
  case KSP_NORM_NONE:
    *norm = 0;
    break;
  case KSP_NORM_NATURAL:
    *norm = PetscSqrtReal(PetscAbsScalar(s->sums[0]));
    break;
  default:
    *norm = PetscSqrtReal(PetscRealPart(s->sums[2]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where arrays are on the GPU. PETSc is told that they change, and vectors that it has computed on the host are copied. */
static PetscErrorCode GetArrays(Solve *s, PetscBool begins)
{
  const struct {
    Vec           v;
    PetscScalar **array;
  } written[] = {
    {s->x, &s->arrays.x},
    {s->r, &s->arrays.r},
    {s->w, &s->arrays.w},
    {s->p, &s->arrays.p},
    {s->s, &s->arrays.s},
    {s->z, &s->arrays.z},
    {s->u, &s->arrays.u}, /* with another preconditioner, as q */
    {s->q, &s->arrays.q}
  };
  const PetscBool other = (PetscBool)(s->method.pc == GALLOP_PC_OTHER);

  PetscFunctionBegin;
  for (int k = 0; k < (other ? 8 : 6); k++) PetscCall(VecGallopToWrite(written[k].v, written[k].array));
  if (s->method.pc == GALLOP_PC_DIAGONAL) PetscCall(VecGallopToWrite(s->m, &s->arrays.m));
  if (begins) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGallopToDevice(s->n, &s->arrays.n));
  if (other) {
    const PetscScalar *m;

    PetscCall(VecGallopToDevice(s->m, &m));
    s->arrays.m = (PetscScalar *)m; /* which the kernel only reads */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r, u, w, and the kernel of the first sums */
static PetscErrorCode Begin(Solve *s)
{
  KSP ksp = s->ksp;

  PetscFunctionBegin;
  if (ksp->guess_zero) PetscCall(VecCopy(ksp->vec_rhs, s->r));
  else {
    PetscCall(KSP_MatMult(ksp, s->A, s->x, s->r));
    PetscCall(VecAYPX(s->r, -1.0, ksp->vec_rhs));
  }
  if (s->u != s->r) PetscCall(KSP_PCApply(ksp, s->r, s->u));
  PetscCall(KSP_MatMult(ksp, s->A, s->u, s->w));
  PetscCall(VecGetLocalSize(s->r, &s->arrays.length));
  PetscCall(GetArrays(s, PETSC_TRUE));
  PetscCall(GallopFusedGo(s->work, PETSC_TRUE));
  s->work->number++;
  GallopFusedLog(KSP_GallopCGFused, ksp, PetscCall(GallopPipeCGSums(s->work, &s->arrays, &s->method)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Update(Solve *s, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(GetArrays(s, PETSC_FALSE));
  s->work->number++;
  GallopFusedLog(KSP_GallopCGFused, s->ksp, PetscCall(GallopPipeCGUpdate(s->work, &s->arrays, &s->method, i)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve_Fused(Solve *s)
{
  KSP         ksp = s->ksp;
  PetscInt    i   = 0;
  PetscScalar gamma, gammaold = 0.0, alpha = 0.0;
  PetscReal   norm;

  PetscFunctionBegin;
  ksp->its = 0;
  PetscCall(Begin(s));
  PetscCall(GetSumsBegin(s));
  PetscCall(GetSumsEnd(s, &norm));
  if (ksp->normtype == KSP_NORM_NATURAL) KSPCheckDot(ksp, s->sums[0]);
  PetscCall(KSPGallopTest(ksp, 0, norm));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  do {
    if (i) PetscCall(GetSumsBegin(s));
    if (s->method.pc == GALLOP_PC_OTHER) PetscCall(KSP_PCApply(ksp, s->w, s->m));
    PetscCall(KSP_MatMult(ksp, s->A, s->m, s->n));
    if (i) {
      PetscCall(GetSumsEnd(s, &norm));
      PetscCall(KSPGallopTest(ksp, i, norm));
      if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
    }
    gamma            = s->sums[0];
    s->method.b      = i ? gamma / gammaold : 0.0;
    alpha            = gamma / (i ? s->sums[1] - s->method.b / alpha * gamma : s->sums[1]);
    s->method.factor = alpha;
    PetscCall(Update(s, i));
    gammaold = gamma;
    ksp->its = ++i;
  } while (i <= ksp->max_it); /* one more than is asked for, as PETSc's */
  ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGallopPipeCGSolve - A solve that can be fused, and has room, with the work vectors of KSPPIPECG */
PetscErrorCode KSPGallopPipeCGSolve(KSP ksp, GallopCG *cg)
{
  Vec *const v = ksp->work;
  Solve      s = {
         .ksp = ksp, .work = &cg->base.work, .x = ksp->vec_sol, .r = v[0], .u = v[6], .w = v[4], .m = v[7], .n = v[3], .p = v[2], .s = v[8], .q = v[5], .z = v[1], .method = {.norm = ksp->normtype, .local = PETSC_TRUE}
  };
  PetscMPIInt size;

  PetscFunctionBegin;
  s.work->group = NULL; /* sums are reduced while the GPU multiplies */
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  s.several = (PetscBool)(size > 1);
  PetscCall(PCGetOperators(ksp->pc, &s.A, NULL));
  PetscCall(PCGallopGetKind(ksp->pc, &s.method.pc));
  if (s.method.pc == GALLOP_PC_NONE) {
    s.u = s.r;
    s.m = s.w;
  }
  if (s.method.pc == GALLOP_PC_DIAGONAL) {
    PetscCall(KSPGallopGetDiagonal(ksp, &cg->base, s.r, s.z));
    PetscCall(VecGallopToDevice(cg->base.diagonal.d, &s.arrays.d));
  }
  PetscCall(Solve_Fused(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
