/* SPDX-License-Identifier: BSD-2-Clause */
/* The pipelined variant of KSPGALLOPCG: all vector operations of an iteration in one kernel */

#include "gallopfused.cuh"
#include "gallopcg.h"

struct State {
  FusedState fused;
};

struct Step : FusedStep<State> {
  bool        ofr, first; /* the norm is that of r, not of u; of the first iteration */
  PetscScalar a, b;
};

struct PipeSums {
  PetscScalar ru, wu;
  PetscReal   norm;
};

static __device__ __forceinline__ PipeSums operator+(const PipeSums &a, const PipeSums &b)
{
  return {a.ru + b.ru, a.wu + b.wu, a.norm + b.norm};
}

static __device__ __forceinline__ PipeSums SumsOf(const Step &s, PetscScalar r, PetscScalar u, PetscScalar w)
{
  return {Dot(true, r, u), Dot(true, w, u), Square(s.ofr ? r : u)};
}

/* All threads of a block call it */
static __device__ __forceinline__ void FinishSums(const Step &s, const PipeSums &mine)
{
  PipeSums all;

  if (AddUp(s, mine, &all)) Publish(s, all.ru, all.wu, all.norm, 0);
}

/* B v of a preconditioner that is part of the kernels */
template <int PC>
static __device__ __forceinline__ PetscScalar Preconditioned(const PetscScalar *__restrict__ d, PetscScalar v, PetscCount i)
{
  if constexpr (PC == GALLOP_PC_DIAGONAL) return d[i] * v;
  else return v;
}

/* Of the first residual */
template <int PC>
static __global__ __launch_bounds__(Threads) void SumsKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ r, const PetscScalar *__restrict__ u, const PetscScalar *__restrict__ w, PetscScalar *__restrict__ m)
{
  PipeSums mine = {0, 0, 0};

  if (!Enter(s)) return;
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i], wi = w[i], ui = PC == GALLOP_PC_OTHER ? u[i] : Preconditioned<PC>(d, ri, i);

    if constexpr (PC == GALLOP_PC_DIAGONAL) m[i] = Preconditioned<PC>(d, wi, i);
    mine = mine + SumsOf(s, ri, ui, wi);
  }
  FinishSums(s, mine);
}

/*
  z = n + b z, q = m + b q, p = u + b p, s = w + b s; x += a p, u -= a q, w -= a z, r -= a s; and the sums of the new ones

  A preconditioner that is part of the kernel gives u, q and m from r, s and w; m of the new w is stored then, since the next product reads it, unless it is w.
*/
template <int PC>
static __global__ __launch_bounds__(Threads) void UpdateKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ nv, PetscScalar *__restrict__ x, PetscScalar *__restrict__ r, PetscScalar *__restrict__ u, PetscScalar *__restrict__ w, PetscScalar *__restrict__ m, PetscScalar *__restrict__ p, PetscScalar *__restrict__ sv, PetscScalar *__restrict__ q, PetscScalar *__restrict__ z)
{
  PipeSums mine = {0, 0, 0};

  if (!Enter(s)) return;
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar none = 0;
    PetscScalar       ri = r[i], wi = w[i], ui = PC == GALLOP_PC_OTHER ? u[i] : Preconditioned<PC>(d, ri, i);
    const PetscScalar zi = nv[i] + (s.first ? none : s.b * z[i]), pi = ui + (s.first ? none : s.b * p[i]), si = wi + (s.first ? none : s.b * sv[i]);

    z[i]  = zi;
    p[i]  = pi;
    sv[i] = si;
    x[i] += s.a * pi;
    ri -= s.a * si;
    wi -= s.a * zi;
    r[i] = ri;
    w[i] = wi;
    if constexpr (PC == GALLOP_PC_OTHER) {
      const PetscScalar qi = m[i] + (s.first ? none : s.b * q[i]);

      q[i] = qi;
      ui -= s.a * qi;
      u[i] = ui;
    } else ui = Preconditioned<PC>(d, ri, i);
    if constexpr (PC == GALLOP_PC_DIAGONAL) m[i] = Preconditioned<PC>(d, wi, i);
    mine = mine + SumsOf(s, ri, ui, wi);
  }
  FinishSums(s, mine);
}

/* ---- the host ---- */

static Step StepOf(const GallopFused *work, const GallopCGMethod *method, PetscInt iteration)
{
  return {FusedStepOf<State>(work), method->norm == KSP_NORM_UNPRECONDITIONED, iteration == 0, method->factor, method->b};
}

/* Of kernels that have the preconditioner as their parameter, that of the method */
#define CHOOSE(kernel, pc) (pc == GALLOP_PC_DIAGONAL ? kernel<GALLOP_PC_DIAGONAL> : pc == GALLOP_PC_NONE ? kernel<GALLOP_PC_NONE> : kernel<GALLOP_PC_OTHER>)

/* GallopPipeCGSums - r.u, w.u and the norm of the first residual, and m */
PetscErrorCode GallopPipeCGSums(GallopFused *work, const GallopPipeCGArrays *v, const GallopCGMethod *method)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(SumsKernel, method->pc), work, StepOf(work, method, 0), v->length, method->pc == GALLOP_PC_DIAGONAL ? 8 : 6, v->d, v->r, v->u, v->w, v->m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopPipeCGUpdate - All vectors of an iteration, whose n is there, and the sums of the next one */
PetscErrorCode GallopPipeCGUpdate(GallopFused *work, const GallopPipeCGArrays *v, const GallopCGMethod *method, PetscInt iteration)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(UpdateKernel, method->pc), work, StepOf(work, method, iteration), v->length,
                  method->pc == GALLOP_PC_OTHER  ? 22
                  : method->pc == GALLOP_PC_NONE ? 18
                                                 : 21,
                  v->d, v->n, v->x, v->r, v->u, v->w, v->m, v->p, v->s, v->q, v->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
