/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of a matrix that may have more than 2^31 nonzeros, made on the GPU, and again with new values. The host has its pattern alone, which PETSc keeps there.\n\n";

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1
#include <petscdevice_cuda.h>
#include "../galloptest.h"

/* Rows of the same length: entry k of row i is at column i + k^2 */
typedef struct {
  PetscInt m, n, length;
} Shape;

static const int Threads = 256;

static unsigned int Blocks(PetscCount n)
{
  return (unsigned int)PetscMin((n + Threads - 1) / Threads, (PetscCount)1 << 20);
}

/* The same for each seed and place, between -1 and 1 */
static __device__ PetscReal Number(unsigned long long seed, unsigned long long place)
{
  unsigned long long h = (place + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

  for (int k = 0; k < 2; k++) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
  }
  return (PetscReal)2 * (PetscReal)(h >> 11) / (PetscReal)(1ull << 53) - (PetscReal)1;
}

static __device__ PetscScalar Value(unsigned long long seed, unsigned long long place)
{
#if PetscDefined(USE_COMPLEX)
  return PetscScalar(Number(seed, place), Number(seed + 1000, place));
#else
  return Number(seed, place);
#endif
}

static __device__ PetscCount Thread()
{
  return (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ PetscCount AllThreads()
{
  return (PetscCount)gridDim.x * blockDim.x;
}

__global__ static void FillPattern(Shape s, PetscInt *i, PetscInt *j)
{
  for (PetscCount r = Thread(); r <= s.m; r += AllThreads()) {
    i[r] = (PetscInt)(r * s.length);
    for (PetscInt k = 0; k < s.length && r < s.m; k++) j[r * s.length + k] = (PetscInt)(r + k * k);
  }
}

__global__ static void FillValues(PetscCount n, unsigned long long seed, PetscScalar *a)
{
  for (PetscCount k = Thread(); k < n; k += AllThreads()) a[k] = Value(seed, (unsigned long long)k);
}

static __device__ PetscReal Size(PetscScalar a)
{
#if PetscDefined(USE_COMPLEX)
  return sqrt(a.real() * a.real() + a.imag() * a.imag());
#else
  return a < 0 ? -a : a;
#endif
}

/* How many rows of z are not the sums of their entries, from the last one to the first; the sums of two orders differ by some rounding errors of the sum of their sizes */
__global__ static void CountWrong(Shape s, unsigned long long seed, PetscReal eps, const PetscScalar *x, const PetscScalar *z, unsigned long long *wrong)
{
  for (PetscCount r = Thread(); r < s.m; r += AllThreads()) {
    PetscScalar sum  = 0;
    PetscReal   size = 0;

    for (PetscInt k = s.length - 1; k >= 0; k--) {
      const PetscScalar term = Value(seed, (unsigned long long)(r * s.length + k)) * x[r + k * k];

      sum = sum + term;
      size += Size(term);
    }
    if (!(Size(sum - z[r]) <= 2 * (s.length + 2) * eps * size)) atomicAdd(wrong, 1ull);
  }
}

/* On the GPU, then to the host, on which nothing of it is computed */
static PetscErrorCode CreatePattern(const Shape *s, PetscInt i[], PetscInt j[])
{
  const PetscCount nz = (PetscCount)s->m * s->length;
  PetscInt        *di, *dj;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMalloc((void **)&di, (size_t)(s->m + 1) * sizeof(*di)));
  PetscCallCUDA(cudaMalloc((void **)&dj, (size_t)nz * sizeof(*dj)));
  FillPattern<<<Blocks(s->m + 1), Threads>>>(*s, di, dj);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpy(i, di, (size_t)(s->m + 1) * sizeof(*i), cudaMemcpyDeviceToHost));
  PetscCallCUDA(cudaMemcpy(j, dj, (size_t)nz * sizeof(*j), cudaMemcpyDeviceToHost));
  PetscCallCUDA(cudaFree(di));
  PetscCallCUDA(cudaFree(dj));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValues(const Shape *s, unsigned long long seed, Mat A)
{
  PetscScalar *a;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatSeqAIJCUSPARSEGetArray(A, &a));
  FillValues<<<Blocks((PetscCount)s->m * s->length), Threads, 0, stream>>>((PetscCount)s->m * s->length, seed, a);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(const Shape *s, unsigned long long seed, Mat A, Vec x, Vec z, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  const PetscScalar  *from, *to;
  unsigned long long *wrong, num;
  cudaStream_t        stream;

  PetscFunctionBegin;
  PetscCall(VecSet(z, 7.0));
  PetscCall(MatMult(A, x, z));
  PetscCall(TestCounts(A, expect, PETSC_TRUE, last, what));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(VecCUDAGetArrayRead(x, &from));
  PetscCall(VecCUDAGetArrayRead(z, &to));
  PetscCallCUDA(cudaMalloc((void **)&wrong, sizeof(*wrong)));
  PetscCallCUDA(cudaMemsetAsync(wrong, 0, sizeof(*wrong), stream));
  CountWrong<<<Blocks(s->m), Threads, 0, stream>>>(*s, seed, PETSC_MACHINE_EPSILON, from, to, wrong);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(&num, wrong, sizeof(num), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCallCUDA(cudaFree(wrong));
  PetscCall(VecCUDARestoreArrayRead(x, &from));
  PetscCall(VecCUDARestoreArrayRead(z, &to));
  TestCheck(num == 0, "%llu rows of %" PetscInt_FMT " are wrong", what, num, s->m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Shape               s = {2000, 0, 15};
  PetscInt           *i, *j, nz;
  PetscScalar        *a, *to;
  PetscBool           device = PETSC_FALSE, fallback;
  Mat                 A;
  Vec                 x, z;
  cudaStream_t        stream;
  MatGallopStatistics last = {0};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &s.m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-row_length", &s.length, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-fallback", &fallback)); /* no format has room, and cuSPARSE does not take the matrix: the host computes */
  PetscCall(TestHasDevice(&device));
  if (device) {
    s.n = s.m + s.length * s.length;
    PetscCall(PetscIntCast((PetscCount)s.m * s.length, &nz));
    PetscCall(PetscMalloc2(s.m + 1, &i, nz, &j));
    a = (PetscScalar *)calloc((size_t)nz, sizeof(*a)); /* never written, so that it takes no memory: PETSC_OFFLOAD_GPU from the first values on */
    PetscCheck(a, PETSC_COMM_SELF, PETSC_ERR_MEM, "no address space for %" PetscInt_FMT " values", nz);
    PetscCall(CreatePattern(&s, i, j));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, s.m, s.n, i, j, a, &A));
    PetscCall(MatConvert(A, TestFormat(""), MAT_INPLACE_MATRIX, &A));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(VecCUDAGetArrayWrite(x, &to));
    FillValues<<<Blocks(s.n), Threads, 0, stream>>>(s.n, 5, to);
    PetscCallCUDA(cudaGetLastError());
    PetscCall(VecCUDARestoreArrayWrite(x, &to));
    for (unsigned long long seed = 0; seed < 3; seed++) {
      PetscCall(SetValues(&s, seed, A));
      PetscCall(Product(&s, seed, A, x, z, fallback ? TEST_FALLBACK : seed ? TEST_REFRESH : TEST_BUILD, &last, seed ? "new values" : "first product"));
      PetscCall(Product(&s, seed, A, x, z, fallback ? TEST_FALLBACK : TEST_NOTHING, &last, "again"));
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFree2(i, j));
    free(a);
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  build:
    requires: cuda

  testset:
    requires: !defined(PETSC_USE_DEBUG) # it lets only matrices of AIJCUSPARSE's own name have their values so
    output_file: output/empty.out
    test:
      suffix: 1
      args: -format {{evchyb csroverlap fastload hbp}} -rows {{1 2000 200000}}
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args} -format ${iformat} -rows ${irows}
    test:
      suffix: refused
      args: -format {{evchyb gallop}} -rows 2000 -mat_gallop_build pays -gallop_cusparse_nonzeros 100
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args} -format ${iformat}
    test:
      suffix: fallback
      args: -fallback -format evchyb -rows 2000 -mat_evchyb_memory 1000 -gallop_cusparse_nonzeros 100
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}
      filter: sed "/^Gallop: no room for the EVCHYB format of a 2000 by 2225 matrix within -mat_evchyb_memory; the host computes its products/d"

TEST*/
