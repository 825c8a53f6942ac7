/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectors multiplied by small blocks on the diagonal, see gallopblocks.c */

#include <gallop/cudaimpl.h>
#include "gallopblocks.h"

static constexpr int Threads = 256, BlocksPerProcessor = 8;

static unsigned int ThreadBlocksFor(PetscInt n, int processors)
{
  return PetscMin(GallopBlocksFor(n, Threads), (unsigned int)(processors * BlocksPerProcessor));
}

static __global__ __launch_bounds__(Threads) void UnitKernel(PetscCount n, PetscInt bs, PetscInt k, PetscScalar *__restrict__ v)
{
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) v[i] = (PetscScalar)((PetscInt)i % bs == k ? 1 : 0);
}

/* GallopBlocksUnit_Device - 1 in the k-th row of each block, else 0 */
PetscErrorCode GallopBlocksUnit_Device(PetscInt n, PetscInt bs, PetscInt k, PetscScalar *v)
{
  int          processors;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&processors));
  UnitKernel<<<ThreadBlocksFor(n, processors), Threads, 0, stream>>>(n, bs, k, v);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int BS>
struct Columns {
  const PetscScalar *of[BS];
};

struct Factors {
  PetscScalar beta, gamma, delta;
};

/* A thread computes a row: columns are read in the order of rows, and the rows of r that a block needs are those of its neighbors. u and x may be z. */
template <int BS>
static __global__ __launch_bounds__(Threads) void AddKernel(PetscCount n, Columns<BS> columns, const PetscScalar *__restrict__ r, const PetscScalar *u, const PetscScalar *x, Factors f, PetscScalar *z)
{
  for (PetscCount i = GallopGlobalThread(); i < n; i += (PetscCount)gridDim.x * Threads) {
    const PetscInt row = (PetscInt)i, first = row - row % BS;
    PetscScalar    sum = 0;

#pragma unroll
    for (int k = 0; k < BS; k++) sum += columns.of[k][row] * r[first + k];
    z[row] = GallopFinish<PetscScalar>(nullptr, u, f.gamma, f.delta, x, row, f.beta * sum);
  }
}

template <int BS>
static PetscErrorCode Add(PetscInt n, const PetscScalar *const *columns, const PetscScalar *r, const PetscScalar *u, const PetscScalar *x, const PetscScalar factors[3], PetscScalar *z)
{
  Columns<BS>  c;
  int          processors;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceGetProcessors(&processors));
  for (int k = 0; k < BS; k++) c.of[k] = columns[k];
  AddKernel<BS><<<ThreadBlocksFor(n, processors), Threads, 0, stream>>>(n, c, r, u, x, {GallopScalarAt(factors), GallopScalarAt(factors + 1), GallopScalarAt(factors + 2)}, z);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopBlocksAdd_Device - z = beta D r + gamma u + delta x, by the columns of blocks; factors: beta, gamma and delta */
PetscErrorCode GallopBlocksAdd_Device(PetscInt n, PetscInt bs, const PetscScalar *const *columns, const PetscScalar *r, const PetscScalar *u, const PetscScalar *x, const PetscScalar factors[3], PetscScalar *z)
{
  static PetscErrorCode (*const add[])(PetscInt, const PetscScalar *const *, const PetscScalar *, const PetscScalar *, const PetscScalar *, const PetscScalar[3],
                                       PetscScalar *) = {Add<2>, Add<3>, Add<4>, Add<5>, Add<6>, Add<7>, Add<8>};
  static_assert(PETSC_STATIC_ARRAY_LENGTH(add) == GALLOP_BLOCK_MOST - 1, "one for each size");

  PetscFunctionBegin;
  PetscCheck(bs >= 2 && bs <= GALLOP_BLOCK_MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Blocks of %" PetscInt_FMT " rows", bs);
  PetscCall((*add[bs - 2])(n, columns, r, u, x, factors, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
