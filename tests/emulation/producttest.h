/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of formats' products share: matrices, memory of the GPU, and products with a dot product beside sums on the host */
#pragma once
#include "sort.h"
#include "testing.h"
#include <gallop/cudaimpl.h>

/* ---- matrices ---- */

typedef std::function<int(int)> Length; /* entries of a row */

struct Matrix {
  GallopCSR                csr;
  std::vector<PetscInt>    i, j;
  std::vector<PetscScalar> a;
};

static PetscScalar RandomScalar()
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(RandomReal(), RandomReal());
#else
  return RandomReal();
#endif
}

/* Entries of a row are spread over all columns, or, where there is a window, in so many columns from its own on, as many as it has entries at least */
static Matrix NewMatrix(PetscInt m, PetscInt n, const Length &length, PetscInt window = 0)
{
  Matrix A;

  A.i.push_back(0);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt num = std::min<PetscInt>(length((int)r), n), width = std::min(n, std::max(window, num)), first = window ? std::min((PetscInt)((PetscCount)r * n / m), n - width) : 0;

    if (window)
      for (PetscInt c = 0, left = num; left; c++) {
        if (width - c > left && (PetscInt)(choice() % (width - c)) >= left) continue;
        A.j.push_back(first + c);
        left--;
      }
    else
      for (PetscInt k = 0; k < num; k++) A.j.push_back((PetscInt)((PetscCount)k * n / num + r % (n / num)));
    for (PetscInt k = 0; k < num; k++) A.a.push_back(RandomScalar());
    A.i.push_back((PetscInt)A.j.size());
  }
  A.csr.m       = m;
  A.csr.n       = n;
  A.csr.nz      = (PetscCount)A.j.size();
  A.csr.i       = emu::Guarded(A.i);
  A.csr.j       = emu::Guarded(A.j);
  A.csr.a       = emu::Guarded(A.a);
  A.csr.host_i  = A.i.data();
  A.csr.host_j  = A.j.data();
  A.csr.memtype = PETSC_MEMTYPE_CUDA;
  A.csr.copied  = NULL;
  return A;
}

/* ---- of the rest of the library ---- */

PetscErrorCode GallopCSRGetHostI(const GallopCSR *csr, const PetscInt **i)
{
  *i = csr->host_i;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  *p = emu::Guarded(std::vector<char>(bytes, (char)0xC7).data(), bytes, 256);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceFree(void *)
{
  emu::ClearCanaries();
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **p)
{
  return GallopDeviceMalloc(bytes, p);
}

PetscErrorCode GallopWorkspaceFree(void *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  if (bytes) memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  return GallopDeviceCopy(to, from, bytes);
}

PetscErrorCode GallopDeviceCopyOut(void *to, const void *from, size_t bytes)
{
  return GallopDeviceCopy(to, from, bytes);
}

PetscErrorCode GallopCopyToHost(void *to, PetscMemType, const void *from, size_t bytes)
{
  return GallopDeviceCopy(to, from, bytes);
}

PetscErrorCode GallopDeviceZero(void *p, size_t bytes)
{
  memset(p, 0, bytes);
  return PETSC_SUCCESS;
}

static bool captures; /* a CUDA graph records */

PetscErrorCode GallopDeviceIsCapturing(PetscBool *capturing)
{
  *capturing = (PetscBool)captures;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceAvailable(PetscBool *available)
{
  *available = PETSC_TRUE;
  return PETSC_SUCCESS;
}

/* ---- products ---- */

/*
  z = d (alpha A x + beta y) + gamma u + delta x and a dot product with z, which is made of room sums, or without where room is 0, z += A x with one of A x, made of addedroom sums, and z += d alpha A x:
  several times, each in another order of threads, which must give the same bits. look: what else is to be as it was after a product
*/
static void TestProducts(const char *name, const Matrix &A, const GallopFormatWork &work, void *data, PetscCount room, PetscCount addedroom, const std::function<void()> &look)
{
  const PetscInt           m      = A.csr.m;
  const bool               square = m == A.csr.n;
  const PetscReal          small  = 2000 * PETSC_MACHINE_EPSILON;
  const PetscScalar        one = 1, alpha = RandomReal(), beta = RandomReal(), gamma = RandomReal(), delta = square ? RandomReal() : (PetscReal)0;
  std::vector<PetscScalar> xs(A.csr.n), ys(m), ds(m), us(m), withs(m), z0(m);
  PetscScalar *z = emu::Guarded(std::vector<PetscScalar>(m)), *partial = emu::Guarded(std::vector<PetscScalar>(room)), *addedpartial = emu::Guarded(std::vector<PetscScalar>(addedroom)), dot;
  unsigned int ended = 0;

  for (auto *v : {&xs, &ys, &ds, &us, &withs})
    for (auto &e : *v) e = RandomScalar();
  const PetscScalar *x = emu::Guarded(xs), *y = emu::Guarded(ys), *d = emu::Guarded(ds), *u = emu::Guarded(us), *with = emu::Guarded(withs);

  /* the plain product, that with all terms, where there is a dot product, without it, z += A x, and z += d alpha A x */
  for (int kind = 0; kind < 5; kind++) {
    if (kind == 3 && !addedroom) continue;
    const bool               terms = kind == 1, adds = kind == 3, scaled = kind == 4, dots = (room && kind < 2) || adds;
    const PetscBool          conjugate = (PetscBool)(kind == 1 || adds);
    const PetscScalar        zero = 0, before = 0.5;
    std::vector<PetscScalar> wanted(m), first;
    std::vector<PetscReal>   scale(m);
    PetscScalar              wanteddot = 0, firstdot = 0;
    PetscReal                size = 0;

    for (PetscInt r = 0; r < m; r++) {
      PetscScalar sum = 0;

      for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
        sum += A.a[k] * xs[A.j[k]];
        scale[r] += PetscAbsScalar(A.a[k] * xs[A.j[k]]);
      }
      wanted[r] = terms ? ds[r] * (alpha * sum + beta * ys[r]) + gamma * us[r] + (square ? delta * xs[r] : (PetscScalar)0) : adds ? ys[r] + sum : scaled ? ys[r] + ds[r] * alpha * sum : sum;
      scale[r] += 4;
      const PetscScalar of = adds ? sum : wanted[r];
      wanteddot += withs[r] * (conjugate ? PetscConj(of) : of);
      size += PetscAbsScalar(withs[r]) * scale[r];
    }
    if (adds) wanteddot += before;
    for (int run = 0; run < (full ? 6 : 3); run++) {
      GallopDot      g = {with, conjugate, &dot, adds ? addedpartial : partial, adds ? addedroom : room, &ended, (PetscBool)adds};
      GallopEpilogue e = {terms || scaled ? d : NULL, terms ? u : scaled ? z : NULL, terms ? &gamma : scaled ? &one : &zero, terms ? &delta : &zero, dots ? &g : NULL};
      GallopProduct  p = {terms || scaled ? &alpha : &one, terms ? &beta : adds ? &one : &zero, x, terms ? y : adds ? z : NULL, z, terms || scaled || dots ? &e : NULL};

      for (PetscCount k = 0; k < room; k++) partial[k] = NAN; /* all are to be written in each product */
      for (PetscCount k = 0; k < addedroom; k++) addedpartial[k] = NAN;
      for (PetscInt k = 0; k < m; k++) z[k] = adds || scaled ? ys[k] : (PetscScalar)NAN;
      dot           = adds ? before : (PetscScalar)NAN;
      emu::resident = 1 + run * 2;
      emu::preempt  = run ? 4 : 0;
      CheckCall((*work.apply)(data, &p));
      for (PetscInt r = 0; r < m; r++)
        if (!(PetscAbsScalar(z[r] - wanted[r]) <= small * scale[r])) emu::Fail("%s: row %ld is %g, not %g", name, (long)r, (double)PetscRealPart(z[r]), (double)PetscRealPart(wanted[r]));
      if (!run) first.assign(z, z + m);
      if (memcmp(first.data(), z, m * sizeof(*z))) emu::Fail("%s: the result has other bits", name);
      if (look) look();
      if (!dots) continue;
      if (!(PetscAbsScalar(dot - wanteddot) <= small * size)) emu::Fail("%s: the dot product is %g, not %g", name, (double)PetscRealPart(dot), (double)PetscRealPart(wanteddot));
      if (!run) firstdot = dot;
      if (dot != firstdot) emu::Fail("%s: the dot product has other bits", name);
      if (ended) emu::Fail("%s: the counter of ended thread blocks is not 0 after the product", name);
    }
  }
}

/* z = alpha A^H x + beta y of an m by n matrix, by product(&p), which may add in any order */
template <typename Product>
static void TestTransposed(const char *name, PetscInt m, PetscInt n, const Matrix &A, Product product)
{
  const PetscScalar        alpha = RandomReal(), beta = RandomReal();
  std::vector<PetscScalar> xs(m), ys(n), wanted(n);
  std::vector<PetscReal>   scale(n, 4);
  PetscScalar             *z = emu::Guarded(std::vector<PetscScalar>(n, NAN));

  for (auto &e : xs) e = RandomScalar();
  for (auto &e : ys) e = RandomScalar();
  for (PetscInt k = 0; k < n; k++) wanted[k] = beta * ys[k];
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      wanted[A.j[k]] += alpha * PetscConj(A.a[k]) * xs[r];
      scale[A.j[k]] += PetscAbsScalar(A.a[k]);
    }
  const GallopProduct p = {&alpha, &beta, emu::Guarded(xs), emu::Guarded(ys), z, NULL};

  CheckCall(product(&p));
  for (PetscInt k = 0; k < n; k++)
    if (!(PetscAbsScalar(z[k] - wanted[k]) <= 2000 * PETSC_MACHINE_EPSILON * scale[k])) emu::Fail("%s: column %ld of the transposed product", name, (long)k);
}
