/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPCG: the kernels of an iteration beside the product */

#include "gallopfused.cuh"
#include "gallopcg.h"

struct State {
  FusedState  fused;
  PetscScalar beta, betaold, b;
  PetscScalar dpi[2]; /* p.w of this iteration and of the one before */
  PetscScalar delta;  /* z.s of the variant with one reduction */
};

struct Step : FusedStep<State> {
  KSPNormType norm;
  PetscReal   ttol, limit;
  bool        conjugate, tests, local;
  bool        begins, first; /* of the first residual; of the first iteration */
  int         now;           /* which dpi is this iteration's */
  PetscScalar factor;        /* a or b, where sums are local */
  PetscScalar b;             /* beside a, of the variant with one reduction */
  bool        single;        /* that variant: a dot product is z.s */
};

template <int PC>
static __device__ __forceinline__ PetscScalar Preconditioned(const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, PetscScalar r, PetscCount i)
{
  if constexpr (PC == GALLOP_PC_DIAGONAL) return d[i] * r;
  else if constexpr (PC == GALLOP_PC_NONE) return r;
  else return z[i];
}

static __device__ void FinishSums(const Step &s, const Sums &sums)
{
  State          *state = s.state;
  const PetscReal dp    = s.norm == KSP_NORM_NONE ? 0 : s.norm == KSP_NORM_NATURAL ? PetscSqrtReal(PetscAbsScalar(sums.dot)) : PetscSqrtReal(sums.norm);
  bool            stop  = false;

  if (s.local) {
    Publish(s, 0, sums.dot, sums.norm, 0);
    return;
  }
  state->betaold = state->beta;
  state->beta    = sums.dot;
  state->b       = state->beta / state->betaold;
  if (!s.begins) { /* the host looks at the first ones */
    stop = !IsFinite(dp) || !IsFinite(state->beta) || state->beta == (PetscScalar)0 || (s.tests && s.norm != KSP_NORM_NONE && (dp <= s.ttol || dp >= s.limit));
#if !PetscDefined(USE_COMPLEX)
    stop = stop || state->beta * state->betaold < 0;
#endif
  }
  Publish(s, state->dpi[s.now], state->beta, dp, stop);
}

/* Whether p.w lets the method go on, of which all threads think alike; the first one of the grid tells the host if not */
static __device__ __forceinline__ bool GoesOn(const Step &s, PetscScalar dpi)
{
  const PetscReal now = PetscRealPart(dpi), before = PetscRealPart(s.state->dpi[1 - s.now]);

  if (IsFinite(dpi) && dpi != (PetscScalar)0 && (s.first || !((now > 0 && before < 0) || (now < 0 && before > 0)))) return true;
  if (GallopGlobalThread() == 0) Publish(s, dpi, s.state->beta, 0, 1);
  return false;
}

template <int PC>
static __global__ __launch_bounds__(Threads) void SumsKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, const PetscScalar *__restrict__ r)
{
  const bool ofr  = s.norm == KSP_NORM_UNPRECONDITIONED;
  Sums       mine = {0, 0}, all;

  if (!Enter(s, true)) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i], zi = Preconditioned<PC>(d, z, ri, i);

    mine.dot += Dot(s.conjugate, zi, ri);
    mine.norm += Square(ofr ? ri : zi);
  }
  if (AddUp(s, mine, &all)) FinishSums(s, all);
}

template <int PC>
static __global__ __launch_bounds__(Threads) void DirectionKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ z, const PetscScalar *__restrict__ r, PetscScalar *__restrict__ p)
{
  if (!Enter(s)) return;

  const PetscScalar b = s.local ? s.factor : s.state->b;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar zi = Preconditioned<PC>(d, z, PC == GALLOP_PC_OTHER ? (PetscScalar)0 : r[i], i);

    p[i] = s.first ? zi : zi + b * p[i];
  }
}

static __global__ __launch_bounds__(Threads) void DotKernel(Step s, PetscCount n, const PetscScalar *__restrict__ p, const PetscScalar *__restrict__ w)
{
  Sums mine = {0, 0}, all;

  if (!Enter(s, true)) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) mine.dot += Dot(s.conjugate, p[i], w[i]);
  if (!AddUp(s, mine, &all)) return;
  if (s.single) s.state->delta = all.dot;
  else s.state->dpi[s.now] = all.dot;
  if (s.local) Publish(s, all.dot, 0, 0, 0);
}

static __global__ void PublishKernel(Step s, PetscCount)
{
  if (Enter(s) && GallopGlobalThread() == 0) Publish(s, s.single ? s.state->delta : s.state->dpi[s.now], 0, 0, 0);
}

/* With sums unless z comes from PCApply(), which needs r first */
template <int PC>
static __global__ __launch_bounds__(Threads) void UpdateKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, const PetscScalar *__restrict__ p, const PetscScalar *__restrict__ w, PetscScalar *__restrict__ x, PetscScalar *__restrict__ r)
{
  const bool ofr  = s.norm == KSP_NORM_UNPRECONDITIONED;
  Sums       mine = {0, 0}, all;

  if (!Enter(s, PC != GALLOP_PC_OTHER) || (!s.local && !GoesOn(s, s.state->dpi[s.now]))) return;

  const PetscScalar a = s.local ? s.factor : s.state->beta / s.state->dpi[s.now];

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i] - a * w[i];

    x[i] += a * p[i];
    r[i] = ri;
    if constexpr (PC != GALLOP_PC_OTHER) {
      const PetscScalar zi = Preconditioned<PC>(d, NULL, ri, i);

      mine.dot += Dot(s.conjugate, zi, ri);
      mine.norm += Square(ofr ? ri : zi);
    }
  }
  if constexpr (PC != GALLOP_PC_OTHER) {
    if (AddUp(s, mine, &all)) FinishSums(s, all);
  }
}

/* p.w of an iteration with one reduction, from z.s */
static __device__ __forceinline__ PetscScalar SingleDpi(const Step &s)
{
  return s.first ? s.state->delta : s.state->delta - s.state->b * s.state->b * s.state->dpi[1 - s.now];
}

/*
  Of the variant with one reduction: p = z + b p, w = s + b w, x += a p, r -= a w. z of the new r is stored, since the next product reads it, with sums, unless it comes from PCApply() or is r.
*/
template <int PC>
static __global__ __launch_bounds__(Threads) void SingleKernel(Step s, PetscCount n, const PetscScalar *__restrict__ d, PetscScalar *__restrict__ z, const PetscScalar *__restrict__ sv, PetscScalar *__restrict__ p, PetscScalar *__restrict__ w, PetscScalar *__restrict__ x, PetscScalar *__restrict__ r)
{
  const bool  ofr  = s.norm == KSP_NORM_UNPRECONDITIONED;
  Sums        mine = {0, 0}, all;
  PetscScalar dpi = 0, a = s.factor, b = s.b;

  if (!Enter(s, PC != GALLOP_PC_OTHER)) return;
  if (!s.local) {
    dpi = SingleDpi(s);
    if (!GoesOn(s, dpi)) return;
    a = s.state->beta / dpi;
    b = s.state->b;
  }
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    PetscScalar       ri = r[i];
    const PetscScalar pi = Preconditioned<PC>(d, z, ri, i) + (s.first ? (PetscScalar)0 : b * p[i]), wi = sv[i] + (s.first ? (PetscScalar)0 : b * w[i]);

    ri -= a * wi;
    p[i] = pi;
    w[i] = wi;
    x[i] += a * pi;
    r[i] = ri;
    if constexpr (PC != GALLOP_PC_OTHER) {
      const PetscScalar zi = Preconditioned<PC>(d, NULL, ri, i);

      if constexpr (PC == GALLOP_PC_DIAGONAL) z[i] = zi;
      mine.dot += Dot(s.conjugate, zi, ri);
      mine.norm += Square(ofr ? ri : zi);
    }
  }
  if constexpr (PC == GALLOP_PC_OTHER) { /* there is nothing to add up yet: who comes last is wanted */
    mine    = {0, 0};
    s.group = NULL;
  }
  if (!AddUp(s, mine, &all)) return;
  s.state->dpi[s.now] = dpi;
  if constexpr (PC != GALLOP_PC_OTHER) FinishSums(s, all);
}

/* ---- the host ---- */

static Step StepOf(const GallopFused *work, const GallopCGMethod *method, PetscInt iteration, PetscBool tests)
{
  return {FusedStepOf<State>(work),          method->norm,   method->ttol, method->limit,       (bool)method->conjugate, (bool)tests, (bool)method->local, iteration < 0, iteration <= 0,
          (int)(PetscMax(iteration, 0) % 2), method->factor, method->b,    (bool)method->single};
}

/* Of kernels that have the preconditioner as their parameter, that of the method */
#define CHOOSE(kernel, pc) (pc == GALLOP_PC_DIAGONAL ? kernel<GALLOP_PC_DIAGONAL> : pc == GALLOP_PC_NONE ? kernel<GALLOP_PC_NONE> : kernel<GALLOP_PC_OTHER>)

/* GallopCGSums - z.r and the norm */
PetscErrorCode GallopCGSums(GallopFused *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscInt iteration, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(SumsKernel, method->pc), work, StepOf(work, method, iteration, tests), v->n, 4, v->d, v->z, v->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGDirection - p = z + b p, or z in the first iteration */
PetscErrorCode GallopCGDirection(GallopFused *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscInt iteration)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(DirectionKernel, method->pc), work, StepOf(work, method, iteration, PETSC_FALSE), v->n, 2, v->d, v->z, v->r, v->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGGetDot - p.w of an iteration, for a product that computes it */
PetscErrorCode GallopCGGetDot(GallopFused *work, const GallopCGMethod *method, PetscInt iteration, GallopDot **dot)
{
  State *state = (State *)work->state;

  PetscFunctionBegin;
  *dot              = &work->dot;
  (*dot)->conjugate = method->conjugate;
  (*dot)->result    = method->single ? &state->delta : &state->dpi[iteration % 2];
  (*dot)->ended     = &state->fused.productended;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGDot - p.w, or z.s with one reduction, where the product has not computed it */
PetscErrorCode GallopCGDot(GallopFused *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscInt iteration)
{
  PetscFunctionBegin;
  PetscCall(Start(DotKernel, work, StepOf(work, method, iteration, PETSC_FALSE), v->n, 2, method->single ? v->z : v->p, method->single ? v->s : v->w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGPublishDot - Likewise, for the host, where a product has computed it and sums are local */
PetscErrorCode GallopCGPublishDot(GallopFused *work, const GallopCGMethod *method, PetscInt iteration)
{
  PetscFunctionBegin;
  PetscCall(Start(PublishKernel, work, StepOf(work, method, iteration, PETSC_FALSE), 1, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGUpdate - x += a p and r -= a w, and what GallopCGSums() sums where z needs no PCApply(); nothing where p.w ends the solve */
PetscErrorCode GallopCGUpdate(GallopFused *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscInt iteration, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(UpdateKernel, method->pc), work, StepOf(work, method, iteration, tests), v->n,
                  method->pc == GALLOP_PC_OTHER  ? 4
                  : method->pc == GALLOP_PC_NONE ? 8
                                                 : 9,
                  v->d, v->p, v->w, v->x, v->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopCGSingle - All that an iteration with one reduction has before its product, s = A z; with sums unless z needs PCApply() */
PetscErrorCode GallopCGSingle(GallopFused *work, const GallopCGArrays *v, const GallopCGMethod *method, PetscInt iteration, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(CHOOSE(SingleKernel, method->pc), work, StepOf(work, method, iteration, tests), v->n,
                  method->pc == GALLOP_PC_OTHER  ? 8
                  : method->pc == GALLOP_PC_NONE ? 12
                                                 : 14,
                  v->d, v->z, v->s, v->p, v->w, v->x, v->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}
