/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Fused conjugate gradients: src/ksp/ksp/gallopcgsolve.c, gallopcgdevice.cu and gallopfused.*, beside the method on the host

  Vectors, matrices and preconditioners are small ones of this file, under the names of PETSc's functions. The host goes on while kernels run; what the GPU decides is compared with what
  the host decides from the same numbers, and iterates must stay as they are after the GPU has stopped.
*/
#include "testing.h"
#include <map>

static void Decides(PetscInt64 number, PetscScalar dpi, PetscScalar dpiold);                 /* called by the GPU, */
static void Publishes(PetscInt64 number, int stopped);                                       /* too, */
static void HostDecides(PetscInt64 number, PetscInt i, PetscScalar dpi, PetscScalar dpiold); /* and by the host: prepare.py */

#include "ksp/ksp/gallopfused.cu"
#include "ksp/ksp/gallopgraph.cu"
#include "ksp/ksp/gallopcgdevice.cu"
#include "ksp/ksp/gallopksp.h"
#undef GallopFusedLog
#define GallopFusedLog(event, ksp, ...) __VA_ARGS__
extern "C" PetscLogEvent KSP_GallopCGFused;
PetscLogEvent            KSP_GallopCGFused = -1;
#include "ksp/ksp/gallopcgsolve.c"
#include "mat/impls/evchyb/parts.cuh"

/* ---- vectors, matrices and a preconditioner ---- */

struct Vector : _p_Vec {
  PetscInt     n;
  PetscScalar *a;
};

struct Matrix : _p_Mat {
  PetscInt               n, nsplit; /* rows, the last of which several thread blocks compute */
  PetscInt              *i, *j;
  PetscScalar           *a;
  PetscCount             nparts;
  PartsView<PetscScalar> parts;
  bool                   dots; /* the product computes p.w */
};

static const PetscInt Split = 100, Width = 256; /* entries of a row for a thread block, and its threads */

static const Vector *diagonal; /* that the preconditioner multiplies by, NULL for none */
static int           ahead;    /* iterations that the host starts */
static bool          graphs;   /* iterations may be recorded */
static int           stubborn; /* how many times the host goes on where it would end */

static PetscScalar *ArrayOf(Vec v)
{
  return static_cast<Vector *>(v)->a;
}

static Vector *NewVector(PetscInt n, PetscScalar value)
{
  Vector *v = new Vector();

  v->n = n;
  v->a = emu::Guarded(std::vector<PetscScalar>(n, value));
  return v;
}

static void Fill(Vector *v, PetscScalar value)
{
  std::fill(v->a, v->a + v->n, value);
}

PetscErrorCode VecGetLocalSize(Vec v, PetscInt *n)
{
  *n = static_cast<Vector *>(v)->n;
  return PETSC_SUCCESS;
}

PetscErrorCode VecGallopToWrite(Vec v, PetscScalar **a)
{
  *a = ArrayOf(v);
  return PETSC_SUCCESS;
}

PetscErrorCode VecGallopToDevice(Vec v, const PetscScalar **a)
{
  *a = ArrayOf(v);
  return PETSC_SUCCESS;
}

PetscErrorCode VecCopy(Vec from, Vec to)
{
  const PetscInt n = static_cast<Vector *>(from)->n;

  emu::Enqueue([=] { std::copy_n(ArrayOf(from), n, ArrayOf(to)); });
  return PETSC_SUCCESS;
}

PetscErrorCode VecAYPX(Vec y, PetscScalar factor, Vec x)
{
  const PetscInt n = static_cast<Vector *>(y)->n;

  emu::Enqueue([=] {
    for (PetscInt k = 0; k < n; k++) ArrayOf(y)[k] = ArrayOf(x)[k] + factor * ArrayOf(y)[k];
  });
  return PETSC_SUCCESS;
}

static PetscScalar Dot(PetscInt n, const PetscScalar *a, const PetscScalar *b, bool conjugate)
{
  PetscScalar sum = 0;

  for (PetscInt k = 0; k < n; k++) sum += a[k] * (conjugate ? PetscConj(b[k]) : b[k]);
  return sum;
}

PetscErrorCode VecDot(Vec a, Vec b, PetscScalar *sum)
{
  emu::Sync();
  *sum = Dot(static_cast<Vector *>(a)->n, ArrayOf(a), ArrayOf(b), true);
  return PETSC_SUCCESS;
}

PetscErrorCode VecTDot(Vec a, Vec b, PetscScalar *sum)
{
  emu::Sync();
  *sum = Dot(static_cast<Vector *>(a)->n, ArrayOf(a), ArrayOf(b), false);
  return PETSC_SUCCESS;
}

PetscErrorCode VecNorm(Vec v, NormType, PetscReal *norm)
{
  emu::Sync();
  *norm = PetscSqrtReal(PetscRealPart(Dot(static_cast<Vector *>(v)->n, ArrayOf(v), ArrayOf(v), true)));
  return PETSC_SUCCESS;
}

PetscErrorCode VecFlag(Vec, PetscInt)
{
  return PETSC_SUCCESS;
}

static void Precondition(PetscInt n, const PetscScalar *r, PetscScalar *z)
{
  for (PetscInt k = 0; k < n; k++) z[k] = diagonal ? diagonal->a[k] * r[k] : r[k];
}

PetscErrorCode PCApply(PC, Vec r, Vec z)
{
  emu::Enqueue([=] { Precondition(static_cast<Vector *>(r)->n, ArrayOf(r), ArrayOf(z)); });
  return PETSC_SUCCESS;
}

PetscErrorCode PCReduceFailedReason(PC)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PCGetFailedReason(PC, PCFailedReason *reason)
{
  *reason = PC_NOERROR;
  return PETSC_SUCCESS;
}

static void Multiply(const Matrix *A, const PetscScalar *x, PetscScalar *y)
{
  for (PetscInt r = 0; r < A->n; r++) {
    PetscScalar sum = 0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) sum += A->a[k] * x[A->j[k]];
    y[r] = sum;
  }
}

PetscErrorCode MatMult(Mat A, Vec x, Vec y)
{
  emu::Enqueue([=] { Multiply(static_cast<Matrix *>(A), ArrayOf(x), ArrayOf(y)); });
  return PETSC_SUCCESS;
}

/* A thread for each row, and thread blocks for the last rows, as in EVCHYB's */
static __global__ void ProductKernel(PetscInt rows, unsigned shortblocks, const PetscInt *i, const PetscInt *j, const PetscScalar *a, PartsView<PetscScalar> parts, GallopVectors<PetscScalar> v)
{
  PetscScalar sum = 0, dot = 0;

  GallopWaitForPredecessor();
  if (blockIdx.x < shortblocks) {
    const PetscInt r = blockIdx.x * Width + threadIdx.x;

    if (r < rows) {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) sum += a[k] * v.x[j[k]];
      GallopStore(v, r, sum, &dot);
    }
  } else {
    const PetscCount part = blockIdx.x - shortblocks;
    const PetscInt   lo = parts.splitrow[part], r = rows + lo, begin = i[r] + (PetscInt)(part - parts.splitblk[lo]) * Split, end = PetscMin(begin + Split, i[r + 1]);

    for (PetscInt k = begin + threadIdx.x; k < end; k += Width) sum += a[k] * v.x[j[k]];
    StoreSplit(parts, lo, part, r, GallopWarpsSum<Width>(sum, Width), v);
  }
  GallopFinishDot<Width>(v, dot);
}

PetscErrorCode MatGallopMultTerms(Mat mat, const GallopTerms *t, Vec x, Vec, Vec, Vec z, PetscBool *dot)
{
  Matrix *const    A           = static_cast<Matrix *>(mat);
  GallopDot *const d           = t->dot;
  const PetscInt   rows        = A->n - A->nsplit;
  const unsigned   shortblocks = GallopBlocksFor(rows, Width), blocks = shortblocks + (unsigned)A->nparts;

  if (dot) *dot = (PetscBool)A->dots;
  if (!A->dots || !dot) return MatMult(A, x, z);
  if ((PetscCount)blocks + A->nsplit > d->room) {
    d->room    = blocks + A->nsplit;
    d->partial = emu::Guarded(std::vector<PetscScalar>(d->room));
  }
  emu::Enqueue([p = d->partial, n = d->room] { std::fill(p, p + n, (PetscScalar)NAN); }); /* each product is to write all */
  d->with = ArrayOf(x);

  const GallopEpilogue       e = {NULL, NULL, &t->gamma, &t->delta, d};
  const GallopProduct        p = {&t->alpha, &t->beta, ArrayOf(x), NULL, ArrayOf(z), &e};
  GallopVectors<PetscScalar> v = GallopVectorsOf(&p);
  v.blocks                     = blocks;
  v.parts                      = (unsigned)A->nsplit;
  emu::Launch("ProductKernel", emu::Cfg(blocks, Width), ProductKernel, rows, shortblocks, A->i, A->j, A->a, A->parts, v);
  return PETSC_SUCCESS;
}

/* ---- the solver's surroundings ---- */

PetscErrorCode PetscInfo_Private(const char[], PetscObject, const char[], ...)
{
  return PETSC_SUCCESS;
}

PetscErrorCode KSPConvergedDefault(KSP ksp, PetscInt n, PetscReal rnorm, KSPConvergedReason *reason, PetscCtx)
{
  *reason = KSP_CONVERGED_ITERATING;
  if (ksp->normtype == KSP_NORM_NONE) return PETSC_SUCCESS;
  if (!n) {
    ksp->rnorm0 = rnorm;
    ksp->ttol   = PetscMax(ksp->rtol * ksp->rnorm0, ksp->abstol);
  }
  if (!isfinite(rnorm)) {
    *reason = KSP_DIVERGED_NANORINF;
    return PETSC_SUCCESS;
  }
  if (n < ksp->min_it) return PETSC_SUCCESS;
  if (rnorm <= ksp->ttol) *reason = rnorm < ksp->abstol ? KSP_CONVERGED_ATOL : KSP_CONVERGED_RTOL;
  else if (rnorm >= ksp->divtol * ksp->rnorm0) *reason = KSP_DIVERGED_DTOL;
  if (*reason && stubborn) {
    stubborn--;
    *reason = KSP_CONVERGED_ITERATING;
  }
  return PETSC_SUCCESS;
}

PetscErrorCode KSPConvergedSkip(KSP ksp, PetscInt n, PetscReal, KSPConvergedReason *reason, PetscCtx)
{
  *reason = n >= ksp->max_it ? KSP_CONVERGED_ITS : KSP_CONVERGED_ITERATING;
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopTest(KSP ksp, PetscInt its, PetscReal norm)
{
  ksp->rnorm = norm;
  return ksp->converged(ksp, its, norm, &ksp->reason, NULL);
}

PetscErrorCode KSPGallopGetGroup(KSP, GallopKSP *, PetscBool *local)
{
  *local = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopGetAhead(KSP, const GallopKSP *, Mat, GallopPCKind pc, PetscInt *n)
{
  *n = pc == GALLOP_PC_OTHER ? 1 : ahead;
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopRecords(KSP, const GallopKSP *, PetscInt n, KSPGallopRecorder *g)
{
  *g = {(PetscBool)(n > 1 && graphs), PETSC_FALSE};
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopRecordable(KSP ksp, Mat, const KSPGallopRecorder *g, PetscInt started, PetscBool *recordable)
{
  *recordable = (PetscBool)(g->records && started >= GALLOP_GRAPH_FROM && started % 2 == 0 && started + 1 >= ksp->min_it && started + GALLOP_GRAPH_ITERATIONS <= ksp->max_it);
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopGraph(GallopFused *work, KSPGallopRecorder *g, PetscErrorCode (*iterate)(void *, PetscInt), PetscErrorCode (*replay)(void *, PetscInt), void *ctx, PetscInt *started)
{
  if (!g->recorded) {
    CheckCall(GallopFusedCountFrom(work));
    CheckCall(GallopFusedRecord(work, GALLOP_GRAPH_ITERATIONS, iterate, ctx, &g->recorded));
  } else
    for (PetscInt k = 0; k < GALLOP_GRAPH_ITERATIONS; k++) CheckCall((*replay)(ctx, k));
  CheckCall(GallopFusedLaunch(work));
  *started += GALLOP_GRAPH_ITERATIONS;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopMultAgain_Seq(Mat, Vec, Vec, PetscLogDouble)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextCreate(PetscDeviceContext *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextGetDevice(PetscDeviceContext, PetscDevice *device)
{
  *device = NULL;
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextSetDevice(PetscDeviceContext, PetscDevice)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextSetStreamType(PetscDeviceContext, PetscStreamType)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextSetUp(PetscDeviceContext)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextGetCurrentContext(PetscDeviceContext *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextSetCurrentContext(PetscDeviceContext)
{
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDeviceContextDestroy(PetscDeviceContext *)
{
  return PETSC_SUCCESS;
}

/* One process, whose sums are those of all */
PetscErrorCode KSPGallopReduce(KSP, GallopRecord *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode KSPGallopWait(KSP, GallopKSP *base, PetscBool, PetscInt64 number, GallopRecord *record)
{
  return GallopFusedWait(&base->work, number, record);
}

/* ---- what is looked at ---- */

struct Decision {
  PetscScalar dpi, dpiold;
};

static std::map<PetscInt64, Decision> decisions;
static std::map<PetscInt64, int>      published;
static Vector                        *watchedx, *watchedr;
static std::vector<PetscScalar>       stoppedx, stoppedr; /* as the GPU stopped, empty while it works */
static long                           stops, restarts;

static bool Same(PetscScalar a, PetscScalar b)
{
  return !memcmp((void *)&a, (void *)&b, sizeof(a));
}

static void Decides(PetscInt64 number, PetscScalar dpi, PetscScalar dpiold)
{
  decisions[number] = {dpi, dpiold};
}

static void HostDecides(PetscInt64 number, PetscInt i, PetscScalar dpi, PetscScalar dpiold)
{
  if (!decisions.count(number)) emu::Fail("iteration %ld: the GPU has not decided whether to go on", (long)i);
  const Decision d = decisions[number];
  if (!Same(d.dpi, dpi) || (i && !Same(d.dpiold, dpiold)))
    emu::Fail("iteration %ld: p.w is %g after %g on the GPU, %g after %g on the host", (long)i, (double)PetscRealPart(d.dpi), (double)PetscRealPart(d.dpiold), (double)PetscRealPart(dpi), (double)PetscRealPart(dpiold));
}

static void Publishes(PetscInt64 number, int stopped)
{
  if (published[number]++) emu::Fail("results %ld are published twice", (long)number);
  if (!stopped) return;
  if (!stoppedx.empty()) emu::Fail("the GPU stops twice");
  stops++;
  stoppedx.assign(watchedx->a, watchedx->a + watchedx->n);
  stoppedr.assign(watchedr->a, watchedr->a + watchedr->n);
}

static void CheckStopped(const char *name)
{
  const size_t bytes = stoppedx.size() * sizeof(PetscScalar);

  if (bytes && (memcmp((void *)stoppedx.data(), (void *)watchedx->a, bytes) || memcmp((void *)stoppedr.data(), (void *)watchedr->a, bytes)))
    emu::Fail("%s: x or r changes after the GPU has stopped", name);
  stoppedx.clear();
}

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 2;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  const size_t room = (bytes + 255) / 256 * 256 + 256;

  *p = aligned_alloc(256, room);
  memset(*p, 0x77, bytes);
  emu::Canary((char *)*p + bytes, (char *)*p + room, "of a solver");
  return PETSC_SUCCESS;
}

PetscErrorCode GallopPinnedMalloc(size_t bytes, void **p)
{
  return GallopDeviceMalloc(bytes, p);
}

PetscErrorCode GallopDeviceFree(void *)
{
  return PETSC_SUCCESS; /* one solver has its memory to the end */
}

PetscErrorCode GallopPinnedFree(size_t, void *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceZero(void *p, size_t bytes)
{
  emu::Enqueue([=] {
    CheckStopped("when the GPU starts again");
    restarts += bytes < StateBytes;
    memset(p, 0, bytes);
  });
  return PETSC_SUCCESS;
}

/* ---- the method on the host, with the tests of PETSc's KSPSolve_CG() in their order ---- */

static PetscReal NormOf(KSPNormType type, const std::vector<PetscScalar> &z, const std::vector<PetscScalar> &r, bool conjugate)
{
  const PetscInt n = (PetscInt)r.size();

  switch (type) {
  case KSP_NORM_PRECONDITIONED:
    return PetscSqrtReal(PetscRealPart(Dot(n, z.data(), z.data(), true)));
  case KSP_NORM_UNPRECONDITIONED:
    return PetscSqrtReal(PetscRealPart(Dot(n, r.data(), r.data(), true)));
  case KSP_NORM_NATURAL:
    return PetscSqrtReal(PetscAbsScalar(Dot(n, z.data(), r.data(), conjugate)));
  default:
    return 0;
  }
}

static bool Finite(PetscScalar a)
{
  return isfinite(PetscRealPart(a)) && isfinite(PetscImaginaryPart(a));
}

/* True if the reason is final whatever the number of iterations */
static bool Iterate(KSP ksp, const Matrix *A, bool conjugate, std::vector<PetscScalar> &x)
{
  const PetscInt           n = A->n;
  std::vector<PetscScalar> r(ArrayOf(ksp->vec_rhs), ArrayOf(ksp->vec_rhs) + n), z(n), p(n), w(n);
  PetscScalar              beta, betaold = 1, dpi = 0, dpiold;
  PetscReal                norm;
  PetscInt                 i = 0;

  if (!ksp->guess_zero) {
    Multiply(A, x.data(), w.data());
    for (PetscInt k = 0; k < n; k++) r[k] -= w[k];
  }
  Precondition(n, r.data(), z.data());
  norm = NormOf(ksp->normtype, z, r, conjugate);
  beta = Dot(n, z.data(), r.data(), conjugate);
  if (isfinite(norm)) KSPGallopTest(ksp, 0, norm);
  else ksp->reason = KSP_DIVERGED_NANORINF;
  if (!ksp->reason && !Finite(beta)) ksp->reason = KSP_DIVERGED_NANORINF;
  if (ksp->reason) return true;
  do {
    ksp->its = i + 1;
    if (beta == (PetscScalar)0) {
      ksp->reason = KSP_CONVERGED_ATOL;
      break;
    }
    if (!PetscDefined(USE_COMPLEX) && i > 0 && PetscRealPart(beta * betaold) < 0) {
      ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
      break;
    }
    for (PetscInt k = 0; k < n; k++) p[k] = i ? z[k] + beta / betaold * p[k] : z[k];
    Multiply(A, p.data(), w.data());
    dpiold  = dpi;
    dpi     = Dot(n, p.data(), w.data(), conjugate);
    betaold = beta;
    if (!Finite(dpi)) {
      ksp->reason = KSP_DIVERGED_NANORINF;
      return true;
    }
    if (dpi == (PetscScalar)0 || (i > 0 && PetscSign(PetscRealPart(dpi)) * PetscSign(PetscRealPart(dpiold)) < 0)) {
      ksp->reason = ksp->converged_neg_curve ? KSP_CONVERGED_NEG_CURVE : KSP_DIVERGED_INDEFINITE_MAT;
      break;
    }
    for (PetscInt k = 0; k < n; k++) {
      x[k] += beta / dpi * p[k];
      r[k] -= beta / dpi * w[k];
    }
    Precondition(n, r.data(), z.data());
    norm = NormOf(ksp->normtype, z, r, conjugate);
    if (!isfinite(norm)) {
      ksp->reason = KSP_DIVERGED_NANORINF;
      return true;
    }
    KSPGallopTest(ksp, i + 1, norm);
    if (ksp->reason) break;
    beta = Dot(n, z.data(), r.data(), conjugate);
    if (!Finite(beta)) {
      ksp->reason = KSP_DIVERGED_NANORINF;
      return true;
    }
    i++;
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  return false;
}

/* ---- systems ---- */

typedef std::vector<std::map<PetscInt, PetscScalar>> Rows;

struct System {
  const char *name;
  Matrix     *A;
  Vector     *b, *d; /* the right-hand side, and the diagonal of the preconditioner */
};

static Matrix *NewMatrix(const Rows &rows, PetscInt nsplit = 0)
{
  Matrix *const            A = new Matrix();
  std::vector<PetscInt>    i{0}, j, splitrow;
  std::vector<PetscCount>  splitblk{0};
  std::vector<PetscScalar> a;

  A->n      = (PetscInt)rows.size();
  A->nsplit = nsplit;
  for (auto &row : rows) {
    for (auto &[column, value] : row) {
      j.push_back(column);
      a.push_back(value);
    }
    i.push_back((PetscInt)j.size());
  }
  for (PetscInt k = 0; k < nsplit; k++) {
    const PetscInt length = i[A->n - nsplit + k + 1] - i[A->n - nsplit + k];

    splitrow.insert(splitrow.end(), PetscMax((length + Split - 1) / Split, 1), k);
    splitblk.push_back((PetscCount)splitrow.size());
  }
  A->i      = emu::Guarded(i);
  A->j      = emu::Guarded(j);
  A->a      = emu::Guarded(a);
  A->nparts = (PetscCount)splitrow.size();
  A->parts  = {emu::Guarded(splitblk), emu::Guarded(splitrow), emu::Guarded(std::vector<PetscScalar>(A->nparts)), emu::Guarded(std::vector<int>(nsplit))};
  return A;
}

static void SetBoth(Rows &rows, PetscInt r, PetscInt c, PetscScalar value)
{
  rows[r][c] = value;
  rows[c][r] = PetscConj(value);
}

/* Hermitian, with few entries in a row but the last nsplit; definite, unless each so many-th row has a negative diagonal */
static Matrix *RandomMatrix(PetscInt n, PetscInt nsplit = 0, PetscInt negative = 0)
{
  Rows rows(n);

  for (PetscInt r = 0; r < n; r++)
    for (int t = 0; t < 3; t++) {
      const PetscInt c     = (PetscInt)(choice() % n);
      PetscScalar    value = RandomReal();

#if PetscDefined(USE_COMPLEX)
      value += RandomReal() * PETSC_i;
#endif

      if (c != r) SetBoth(rows, r, c, value);
    }
  for (PetscInt r = n - nsplit; r < n; r++)
    for (PetscInt c = 0; c < n - nsplit; c++)
      if (choice() % 2) SetBoth(rows, r, c, RandomReal() / 10);
  for (PetscInt r = 0; r < n; r++) {
    PetscReal sum = 0;

    for (auto &[column, value] : rows[r]) sum += PetscAbsScalar(value);
    rows[r][r] = !negative ? sum + (PetscReal)0.2 + (PetscReal)(choice() % 100) / 20 : r % negative ? sum + 1 : -sum - 1;
  }
  return NewMatrix(rows, nsplit);
}

static Matrix *DiagonalMatrix(PetscInt n, PetscScalar even, PetscScalar odd)
{
  Rows rows(n);

  for (PetscInt r = 0; r < n; r++) rows[r][r] = r % 2 ? odd : even;
  return NewMatrix(rows);
}

static Vector *RandomVector(PetscInt n)
{
  Vector *v = NewVector(n, 0);

  for (PetscInt k = 0; k < n; k++) v->a[k] = RandomReal();
  return v;
}

/* Jacobi's, of which each so many-th is negative */
static Vector *Jacobi(const Matrix *A, PetscInt negative = 0)
{
  Vector *d = NewVector(A->n, 1);

  for (PetscInt r = 0; r < A->n; r++)
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++)
      if (A->j[k] == r) d->a[r] = (negative && r % negative == 0 ? -1 : 1) / PetscAbsScalar(A->a[k]);
  return d;
}

static System Random(const char *name, PetscInt n, PetscInt nsplit = 0, PetscInt negative = 0, PetscInt negativepc = 0)
{
  Matrix *A = RandomMatrix(n, nsplit, negative);

  return {name, A, RandomVector(n), Jacobi(A, negativepc)};
}

static std::vector<System> Systems()
{
  std::vector<System> s;

  for (PetscInt n : {1, 2, 31, 300, 1000, 5003})
    if (full || n < 5000) s.push_back(Random("definite", n, n >= 300 ? 3 : 0));
  s.push_back(Random("indefinite", 700, 2, 3));
  s.push_back(Random("a little indefinite", 400, 0, 40));
  s.push_back(Random("an indefinite preconditioner", 500, 1, 0, 2));
  s.push_back(Random("a negative preconditioner", 500, 1, 0, 1));
  s.push_back({"p.w is 0", DiagonalMatrix(300, -1, 1), NewVector(300, 1), NewVector(300, 1)});
  s.push_back({"a multiple of the identity", DiagonalMatrix(300, 2, 2), NewVector(300, 1), NewVector(300, 0.5)});
  s.push_back({"b is 0", DiagonalMatrix(300, 2, 2), NewVector(300, 0), NewVector(300, 0.5)});
  s.push_back(Random("NaN in the matrix", 600));
  s.back().A->a[77] = NAN;
  s.push_back(Random("NaN in the preconditioner", 600));
  s.back().d->a[55] = NAN;
  s.push_back(Random("infinity in b", 600));
  s.back().b->a[7] = INFINITY;
  s.push_back(Random("overflow", 600));
  for (PetscInt k = 0; k < s.back().A->i[600]; k++) s.back().A->a[k] *= 1e170;
  Fill(s.back().d, 1e160);
  return s;
}

/* ---- the test ---- */

typedef enum {
  USUAL,
  FEW_ITERATIONS,
  GUESS,
  NO_TEST, /* of convergence */
  STUBBORN,
  AT_LEAST,
  NO_ITERATION,
  MANY_ITERATIONS,
  VARIANTS
} Variant;

static long solves;

static void Test(const System &s, Vector *work[6], GallopPCKind pc, KSPNormType norm, bool dots, bool local, bool single, Variant variant)
{
  static GallopCG          cg;
  const PetscInt           n         = s.A->n;
  const bool               conjugate = PetscDefined(USE_COMPLEX) && choice() % 3;
  const int                goeson    = variant == STUBBORN ? 1 + (int)(choice() % 4) : 0;
  _p_KSP                   ksp       = {};
  Vec                      vecs[5];
  std::vector<PetscScalar> x(n, variant == GUESS ? 0.25 : 0);
  PetscReal                difference = 0, size = PETSC_SMALL * PETSC_SMALL;
  PetscBool                done;
  char                     name[200];

  CheckCall(GallopFusedCreate(&cg.base.work, &done));
  Fill(work[0], x[0]);
  for (int k = 0; k < 5; k++) {
    vecs[k] = work[k + 1];
    Fill(work[k + 1], NAN);
  }
  ksp.vec_rhs             = s.b;
  ksp.vec_sol             = work[0];
  ksp.work                = vecs;
  ksp.pc_side             = PC_RIGHT; /* no null space is asked for */
  ksp.normtype            = norm;
  ksp.guess_zero          = (PetscBool)(variant != GUESS);
  ksp.converged_neg_curve = (PetscBool)(choice() % 2 && !single); /* which PETSc's variant does not ask */
  ksp.converged           = variant == NO_TEST ? KSPConvergedSkip : KSPConvergedDefault;
  ksp.divtol              = 1e5;
  ksp.abstol              = 1e-50;
  ksp.rtol                = variant == STUBBORN ? 1e-2 : variant == AT_LEAST ? 0.3 : variant == MANY_ITERATIONS ? 1e-5 : 1e-3;
  ksp.max_it              = variant == FEW_ITERATIONS ? 1 + (int)(choice() % 4) : variant == NO_TEST ? 5 : variant == NO_ITERATION ? 0 : variant == MANY_ITERATIONS && norm != KSP_NORM_NONE ? 40 : 8;
  ksp.min_it              = variant == AT_LEAST ? 3 + (int)(choice() % 3) : 0;
  diagonal                = pc == GALLOP_PC_NONE ? NULL : s.d;
  graphs                  = choice() % 2;
  ahead                   = local || (variant <= GUESS && choice() % 2) ? 1 : 3;
  s.A->dots               = dots;
  cg.base.diagonal.d      = s.d;
  cg.type                 = conjugate ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC;
  emu::async              = choice() % 4;
  emu::resident           = 1 + (int)(choice() % 4);
  emu::preempt            = choice() % 3 ? 4 : 0;
  snprintf(name, sizeof(name), "%s, %ld rows, preconditioner %d, norm %d, dots %d, local %d, one reduction %d, variant %d", s.name, (long)n, pc, norm, dots, local, single, variant);

  _p_KSP wanted = ksp;
  stubborn      = goeson;
  Iterate(&wanted, s.A, conjugate, x);

  stubborn = goeson;
  watchedx = work[0];
  watchedr = work[1];
  stoppedx.clear();
  decisions.clear();
  published.clear();
  Solve solve = {
    .ksp = &ksp, .cg = &cg, .A = s.A, .x = work[0], .r = work[1], .z = work[2], .p = work[3], .w = work[2], .method = {.norm = norm, .conjugate = (PetscBool)conjugate, .local = (PetscBool)local, .single = (PetscBool)single}
  };
  if (single) {
    solve.s = work[4];
    solve.w = work[5];
    if (pc == GALLOP_PC_NONE) solve.z = solve.r;
  }
  solve.method.pc = pc;
  if (Solve_Fused(&solve)) emu::Fail("%s: an error", name);
  emu::Sync();
  emu::async = false;
  CheckStopped(name);
  emu::CheckCanaries(name);
  const FusedState *state = (FusedState *)cg.base.work.state;
  if (state->ended || state->productended) emu::Fail("%s: counters of thread blocks are not 0", name);
  if (ksp.reason != wanted.reason || ksp.its != wanted.its) emu::Fail("%s: reason %d after %ld iterations, not %d after %ld", name, ksp.reason, (long)ksp.its, wanted.reason, (long)wanted.its);
  for (PetscInt k = 0; k < n; k++) {
    difference = std::max<PetscReal>(difference, PetscAbsScalar(work[0]->a[k] - x[k]));
    size       = std::max<PetscReal>(size, PetscAbsScalar(x[k]));
  }
  if (Finite(x[0]) && !(difference <= (PetscReal)1e-7 * size)) emu::Fail("%s: x differs by %g of %g", name, (double)difference, (double)size);
  solves++;
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  if (PetscDefined(USE_REAL_SINGLE)) {
    printf("  not in single precision, where the host's numbers of iterations are others\n");
    return 0;
  }
  for (auto &s : Systems()) {
    Vector *work[6];

    for (auto &v : work) v = NewVector(s.A->n, 0);
    for (GallopPCKind pc : {GALLOP_PC_DIAGONAL, GALLOP_PC_NONE, GALLOP_PC_OTHER})
      for (KSPNormType norm : {KSP_NORM_NONE, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL})
        for (bool dots : {false, true})
          for (bool local : {false, true})
            for (bool single : {false, s.A->n > 10}) /* after the solution of fewer equations the host's method has other rounding errors left */
              for (int variant = 0; variant < (local ? STUBBORN : VARIANTS); variant++)
                if (full || choice() % 6 == 0) Test(s, work, pc, norm, dots, local, single, (Variant)variant);
  }
  printf("  %ld solves, %ld that the GPU stopped, %ld that went on\n", solves, stops, restarts);
  return End();
}
