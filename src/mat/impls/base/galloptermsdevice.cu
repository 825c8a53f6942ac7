/* SPDX-License-Identifier: BSD-2-Clause */
/* The terms of a sum that a product has not added, see gallopterms.c */

#include <gallop/cudaimpl.h>
#include <gallop/matgallopimpl.h>

static constexpr int Threads = 256, BlocksPerProcessor = 8;

struct Factors {
  PetscScalar alpha, beta, gamma, delta;
};

/* u and w may be z */
static __global__ __launch_bounds__(Threads) void TermsKernel(PetscCount n, const PetscScalar *w, const PetscScalar *__restrict__ y, const PetscScalar *__restrict__ d, const PetscScalar *u, const PetscScalar *__restrict__ x, Factors f, PetscScalar *z)
{
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    PetscScalar value = y ? f.beta * y[i] : (PetscScalar)0;

    if (w) value += f.alpha * w[i];
    z[i] = GallopFinish(d, u, f.gamma, f.delta, x, (PetscInt)i, value);
  }
}

/* factors: alpha, beta, gamma and delta */
PetscErrorCode GallopTermsAdd_Device(PetscInt n, const PetscScalar *w, const PetscScalar *y, const PetscScalar *d, const PetscScalar *u, const PetscScalar *x, const PetscScalar factors[4], PetscScalar *z)
{
  const Factors f = {GallopScalarAt(factors), GallopScalarAt(factors + 1), GallopScalarAt(factors + 2), GallopScalarAt(factors + 3)};
  int           processors;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&processors));
  TermsKernel<<<PetscMin(GallopBlocksFor(n, Threads), (unsigned int)(processors * BlocksPerProcessor)), Threads, 0, stream>>>(n, w, y, d, u, x, f, z);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
