/* SPDX-License-Identifier: BSD-2-Clause */
/* KSPGALLOPBCGS: the kernels of an iteration beside the two products */

#include "gallopfused.cuh"
#include "gallopbcgs.h"

struct State {
  FusedState  fused;
  PetscScalar rho, omega, beta;
  PetscScalar vrp; /* (rp, v), whose conjugate the method wants: so a product adds it up */
};

struct Step : FusedStep<State> {
  KSPNormType norm;
  PetscReal   ttol, limit;
  bool        first, tests, local;
  PetscScalar alpha, omega, beta; /* where sums are local */
};

/* rp = r, whose norm and rho are told */
static __global__ __launch_bounds__(Threads) void BeginKernel(Step s, PetscCount n, const PetscScalar *__restrict__ r, PetscScalar *__restrict__ rp)
{
  Sums mine = {0, 0}, all;

  if (!Enter(s, true)) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ri = r[i];

    rp[i] = ri;
    mine.norm += Square(ri);
  }
  if (!AddUp(s, mine, &all)) return;
  s.state->rho = all.norm;
  Publish(s, 0, all.norm, s.local ? all.norm : PetscSqrtReal(all.norm), GALLOP_BCGS_GOES);
}

/* p = r - beta (omega v - p), or r in the first iteration */
static __global__ __launch_bounds__(Threads) void DirectionKernel(Step s, PetscCount n, const PetscScalar *__restrict__ r, const PetscScalar *__restrict__ v, PetscScalar *__restrict__ p)
{
  if (!Enter(s)) return;

  const PetscScalar beta = s.local ? s.beta : s.state->beta, ofv = -(s.local ? s.omega : s.state->omega) * beta;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) p[i] = s.first ? r[i] : r[i] + ofv * v[i] + beta * p[i];
}

/* (v, rp) of this iteration */
static __device__ __forceinline__ PetscScalar VRP(const Step &s)
{
  return GallopConjugate(s.state->vrp, true);
}

static __global__ __launch_bounds__(Threads) void DotVRPKernel(Step s, PetscCount n, const PetscScalar *__restrict__ v, const PetscScalar *__restrict__ rp)
{
  Sums mine = {0, 0}, all;

  if (!Enter(s, true)) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) mine.dot += Dot(true, rp[i], v[i]);
  if (!AddUp(s, mine, &all)) return;
  s.state->vrp = all.dot;
  if (s.local) Publish(s, GallopConjugate(all.dot, true), 0, 0, GALLOP_BCGS_GOES);
}

/* s = r - alpha v, unless (v, rp) ends the solve, of which all threads think alike; the first one of the grid tells the host */
static __global__ __launch_bounds__(Threads) void HalfKernel(Step s, PetscCount n, const PetscScalar *__restrict__ r, const PetscScalar *__restrict__ v, PetscScalar *__restrict__ to)
{
  if (!Enter(s)) return;

  const PetscScalar vrp = VRP(s);

  if (!s.local && (!IsFinite(vrp) || vrp == (PetscScalar)0)) {
    if (GallopGlobalThread() == 0) Publish(s, vrp, s.state->rho, 0, GALLOP_BCGS_VRP);
    return;
  }

  const PetscScalar alpha = s.local ? s.alpha : s.state->rho / vrp;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) to[i] = r[i] - alpha * v[i];
}

static __global__ __launch_bounds__(Threads) void DotSTKernel(Step s, PetscCount n, const PetscScalar *__restrict__ half, const PetscScalar *__restrict__ t)
{
  Sums mine = {0, 0}, all;

  if (!Enter(s, true)) return;
#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar ti = t[i];

    mine.dot += Dot(true, half[i], ti);
    mine.norm += Square(ti);
  }
  if (!AddUp(s, mine, &all)) return;
  if (s.local) Publish(s, all.dot, 0, all.norm, GALLOP_BCGS_GOES);
  else if (all.norm == 0) Publish(s, VRP(s), s.state->rho, 0, GALLOP_BCGS_ST);
  else s.state->omega = all.dot / all.norm;
}

/* x += alpha p + omega s and r = s - omega t, and with them rho of the next iteration */
static __global__ __launch_bounds__(Threads) void UpdateKernel(Step s, PetscCount n, const PetscScalar *__restrict__ p, const PetscScalar *__restrict__ half, const PetscScalar *__restrict__ t, const PetscScalar *__restrict__ rp, PetscScalar *__restrict__ x, PetscScalar *__restrict__ r)
{
  Sums mine = {0, 0}, all;

  if (!Enter(s, true)) return;

  const PetscScalar alpha = s.local ? s.alpha : s.state->rho / VRP(s), omega = s.local ? s.omega : s.state->omega;

#pragma unroll 4
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscScalar si = half[i], ri = si - omega * t[i];

    x[i] += alpha * p[i] + omega * si;
    r[i] = ri;
    mine.dot += Dot(true, ri, rp[i]);
    mine.norm += Square(ri);
  }
  if (!AddUp(s, mine, &all)) return;
  if (s.local) {
    Publish(s, 0, all.dot, all.norm, GALLOP_BCGS_GOES);
    return;
  }

  State          *state = s.state;
  const PetscReal norm  = PetscSqrtReal(all.norm);
  const bool      stop  = state->rho == (PetscScalar)0 || (s.norm != KSP_NORM_NONE && (!IsFinite(norm) || (s.tests && (norm <= s.ttol || norm >= s.limit))));

  state->beta = (all.dot / state->rho) * (alpha / omega);
  state->rho  = all.dot;
  Publish(s, VRP(s), all.dot, norm, stop ? GALLOP_BCGS_NORM : GALLOP_BCGS_GOES);
}

/* ---- the host ---- */

static Step StepOf(const GallopFused *work, const GallopBCGSMethod *method, PetscBool first, PetscBool tests)
{
  return {FusedStepOf<State>(work), method->norm, method->ttol, method->limit, (bool)first, (bool)tests, (bool)method->local, method->alpha, method->omega, method->beta};
}

PetscErrorCode GallopBCGSBegin(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method)
{
  PetscFunctionBegin;
  PetscCall(Start(BeginKernel, work, StepOf(work, method, PETSC_TRUE, PETSC_FALSE), a->n, 2, a->r, a->rp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBCGSDirection(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method, PetscBool first)
{
  PetscFunctionBegin;
  PetscCall(Start(DirectionKernel, work, StepOf(work, method, first, PETSC_FALSE), a->n, first ? 0 : 4, a->r, a->v, a->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopBCGSGetDot - (v, rp), for a product that computes it */
PetscErrorCode GallopBCGSGetDot(GallopFused *work, GallopDot **dot)
{
  State *state = (State *)work->state;

  PetscFunctionBegin;
  *dot              = &work->dot;
  (*dot)->conjugate = PETSC_TRUE;
  (*dot)->result    = &state->vrp;
  (*dot)->ended     = &state->fused.productended;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBCGSDotVRP(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method)
{
  PetscFunctionBegin;
  PetscCall(Start(DotVRPKernel, work, StepOf(work, method, PETSC_FALSE, PETSC_FALSE), a->n, 2, a->v, a->rp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBCGSHalf(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method)
{
  PetscFunctionBegin;
  PetscCall(Start(HalfKernel, work, StepOf(work, method, PETSC_FALSE, PETSC_FALSE), a->n, 2, a->r, a->v, a->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBCGSDotST(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method)
{
  PetscFunctionBegin;
  PetscCall(Start(DotSTKernel, work, StepOf(work, method, PETSC_FALSE, PETSC_FALSE), a->n, 4, a->s, a->t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopBCGSUpdate(GallopFused *work, const GallopBCGSArrays *a, const GallopBCGSMethod *method, PetscBool tests)
{
  PetscFunctionBegin;
  PetscCall(Start(UpdateKernel, work, StepOf(work, method, PETSC_FALSE, tests), a->n, 10, a->p, a->s, a->t, a->rp, a->x, a->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}
