/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of EVC-HYB's data cost a product: the library's own kernel, which loads less of them. Section 3.3 of the paper. */

#include "../src/mat/impls/evchyb/evchyb.h"
#include "../src/mat/impls/evchyb/plain/plainkernels.cuh"
#include "bench.h"
#include "generate.h"

static char help[] = "Times products of EVC-HYB on one GPU, and the same kernel with a part of its data constant.\n\
  -generate <name,...>    matrices by name, see below\n\
  -f <file,...>           matrices from files: .mtx, .mtx.gz, or PETSc's binary format; one whose values are all 1 gets random values\n\
  -min_ms <30>            how long products are repeated with warm caches\n\
  -seed <1>               of the generated matrices and of x\n\
  -once                   launches the kernel five times a matrix, with y in order of the matrix, and as the rows are stored: with all data, x past L1, x constant, and A constant; times nothing: for a profiler\n\
and the options of evchyb, such as -mat_evchyb_window 0, the paper's order\n\
\n\
Ways: full, the product; inorder, results are left in the order of the stored rows (the paper's \"without reordering\"), as they are in all that follow;\n\
pastL1, loads of x pass L1, which is the texture cache of today (the paper's Table 4); constX, no index is loaded and all of x is its first number (the paper's T_A + T_Y); constA, no value is loaded (T_X + T_Y); constAX, neither (T_Y)\n\
Output: lines # STREAM, the bandwidth of copies and triads, and # latencies, cycles of a load, and one line a matrix and way, fields separated by tabs\n\
  matrix m nnz stored what   stored: entries of the format, padding included\n\
  warm_us cold_us            as gallopbench's\n\
  err                        of full, inorder and pastL1, as gallopbench's; - for the others, whose results are no products\n\
  warm_min warm_max cold_min cold_max\n\
\n" BENCH_GENERATORS_HELP;

/* ---- data that is not loaded: the kernel is compiled for types whose loads are none ---- */

/* A column of the matrix */
struct NoIndex {
  GallopColumn value;

  NoIndex() = default;
  __device__ explicit NoIndex(GallopColumn v) : value(v) { }
  __device__ operator GallopColumn() const { return value; }
};

/* A number of the matrix, x and y; Loaded: whether those of the matrix are loaded, and then x past L1 */
template <bool Loaded>
struct Value {
  PetscScalar value;

  Value() = default;
  __host__          __device__ explicit Value(PetscScalar v) : value(v) { }
  __host__          __device__ explicit Value(int v) : value((PetscReal)v) { }
  __device__ Value &operator+=(const Value &other)
  {
    value += other.value;
    return *this;
  }
  __device__ Value &operator*=(const Value &other)
  {
    value *= other.value;
    return *this;
  }
};

template <bool Loaded>
static __device__ __forceinline__ bool operator!=(const Value<Loaded> &a, const Value<Loaded> &b)
{
  return a.value != b.value;
}

template <bool Loaded>
static __device__ __forceinline__ Value<Loaded> operator*(const Value<Loaded> &a, const Value<Loaded> &b)
{
  return Value<Loaded>(a.value * b.value);
}

template <bool Loaded>
static __device__ __forceinline__ Value<Loaded> operator+(const Value<Loaded> &a, const Value<Loaded> &b)
{
  return Value<Loaded>(a.value + b.value);
}

/* No product here has a dot product, but the kernels have code for it */
template <bool Loaded>
static __device__ __forceinline__ Value<Loaded> GallopConjugate(const Value<Loaded> &value, bool)
{
  return value;
}

using NoValue  = Value<false>;
using FarValue = Value<true>;

/* The kernel loads the matrix by this function, and x and y otherwise */
static __device__ __forceinline__ NoIndex GallopLoadOnce(const NoIndex *)
{
  return NoIndex(GallopColumn(0));
}

static __device__ __forceinline__ NoValue GallopLoadOnce(const NoValue *)
{
  return NoValue(1);
}

static __device__ __forceinline__ FarValue GallopLoadOnce(const FarValue *from)
{
  return FarValue(GallopLoadOnce(&from->value));
}

static __device__ __forceinline__ FarValue LoadX(const FarValue *x, const GallopColumn &column)
{
  return FarValue(GallopLoadFromL2(&x[column].value));
}

/* ---- products ---- */

enum { FULL, INORDER, PASTL1, CONSTX, CONSTA, CONSTAX, WAYS };

static const char *const Names[WAYS] = {"full", "inorder", "pastL1", "constX", "constA", "constAX"};

struct Product {
  EVCHYB            *ev;
  int                way;
  const PetscScalar *x;
  PetscScalar       *z;
};

template <typename V, typename I>
static PetscErrorCode ApplyPart(const Product *p)
{
  const EVCHYB    *ev = p->ev;
  GallopVectors<V> v  = {};
  cudaStream_t     stream;

  PetscFunctionBegin;
  v.alpha = V(1);
  v.x     = reinterpret_cast<const V *>(p->x);
  v.z     = reinterpret_cast<V *>(p->z);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (EVCHYBLeavesRows(ev->plain, ev->nempty)) PetscCallCUDA(cudaMemsetAsync(p->z, 0, ev->m * sizeof(PetscScalar), stream));
  if (ev->launch.n) PetscCallCUDA((LaunchPlain<true, V, I>(ev->plain, ev->plain->perm, &ev->launch, v, (bool)ev->overlaps, (bool)ev->fresh, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *ctx)
{
  static const PetscScalar one = 1, zero = 0;
  const Product           *p = (const Product *)ctx;

  PetscFunctionBegin;
  switch (p->way) {
  case FULL: {
    const GallopProduct product = {&one, &zero, p->x, NULL, p->z, NULL, NULL};

    PetscCall((*p->ev->work->apply)(p->ev, &product));
    break;
  }
  case INORDER:
    PetscCall(ApplyPart<PetscScalar, GallopColumn>(p));
    break;
  case PASTL1:
    PetscCall(ApplyPart<FarValue, GallopColumn>(p));
    break;
  case CONSTX:
    PetscCall(ApplyPart<PetscScalar, NoIndex>(p));
    break;
  case CONSTA:
    PetscCall(ApplyPart<NoValue, GallopColumn>(p));
    break;
  default:
    PetscCall(ApplyPart<NoValue, NoIndex>(p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- measurements ---- */

typedef struct {
  BenchInput in;
  PetscBool  once;
} Bench;

/* Results in the order of stored rows are brought back to that of the matrix first */
static PetscErrorCode CheckResult(Bench *b, const BenchProblem *problem, Product *p, Vec y, PetscReal *err)
{
  const PetscScalar *values;
  PetscScalar       *back = NULL;

  PetscFunctionBegin;
  PetscCall(VecSet(y, INFINITY)); /* so that what a product does not write shows */
  PetscCall(Apply(p));
  PetscCall(VecGetArrayRead(y, &values));
  if (p->way != FULL) {
    const EVCHYBPlain *plain = p->ev->plain;
    const PetscInt     rows  = plain->ell.n + plain->csr.n + plain->nlisted;
    EVCHYB            *copy;

    PetscCall(EVCHYBCopyToHost(p->ev, &copy));
    PetscCall(PetscCalloc1(problem->m, &back)); /* rows that are not stored are empty */
    for (PetscInt k = 0; k < rows; k++) back[copy->plain->perm[k]] = values[k];
    PetscCall(EVCHYBDestroyHostCopy(&copy));
  }
  PetscCall(BenchProblemError(problem, back ? back : values, problem->m, err));
  PetscCall(PetscFree(back));
  PetscCall(VecRestoreArrayRead(y, &values));
  if (*err <= (100 + problem->longest) * PETSC_MACHINE_EPSILON) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# WRONG %s %s: error %.1e\n", problem->name, Names[p->way], (double)*err));
  b->in.wrong++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(void *ctx, const char given[], PetscBool file)
{
  Bench             *b = (Bench *)ctx;
  BenchProblem       problem;
  Mat                A;
  Vec                x, y;
  EVCHYB             copy;
  const void        *data;
  PetscScalar       *array;
  PetscReal          err, warms[2], colds[2];
  PetscLogDouble     warm, cold;

  PetscFunctionBegin;
  PetscCall(BenchProblemCreate(given, file, b->in.seed, PETSC_FALSE, 0, &problem));
  PetscCheck(problem.nz, PETSC_COMM_SELF, PETSC_ERR_USER, "Matrix %s has no entries", problem.name);
  PetscCall(BenchProblemRemark(&problem));
  PetscCall(MatConvert(problem.A, MATEVCHYB, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecGetArrayWrite(x, &array));
  PetscCall(BenchProblemFill(&problem, array));
  PetscCall(VecRestoreArrayWrite(x, &array));
  PetscCall(MatMult(A, x, y)); /* builds the format */
  PetscCall(MatGallopGetFormatData(A, PETSC_MEMTYPE_CUDA, &data));
  PetscCheck(data, PETSC_COMM_SELF, PETSC_ERR_MEM, "The GPU has no room for matrix %s in EVC-HYB", problem.name);
  copy = *(const EVCHYB *)data; /* products write which values are new */
  PetscCheck(copy.plain, PETSC_COMM_SELF, PETSC_ERR_SUP, "Packed storage has no such parts: matrix %s must be stored by -mat_evchyb_storage plain", problem.name);
  Product p = {&copy, FULL, NULL, NULL};
  PetscCall(BenchDeviceArrays(x, y, &p.x, &p.z));
  if (b->once) {
    for (p.way = INORDER; p.way <= CONSTA; p.way++) PetscCall(Apply(&p));
    PetscCallCUDA(cudaDeviceSynchronize());
  }
  for (p.way = FULL; p.way < WAYS && !b->once; p.way++) {
    const bool product = p.way <= PASTL1;

    PetscCall(BenchTimeWarm(&BenchDevice, Apply, &p, b->in.min_ms, &warm, warms));
    PetscCall(BenchTimeCold(&BenchDevice, Apply, &p, &cold, colds));
    if (product) PetscCall(CheckResult(b, &problem, &p, y, &err));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%" PetscCount_FMT "\t%s\t%.2f\t%.2f\t", problem.name, problem.m, problem.nz, copy.plain->ell.nz + copy.plain->csr.nz, Names[p.way], warm * 1e6, cold * 1e6));
    if (product) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%.1e", (double)err));
    else PetscCall(PetscPrintf(PETSC_COMM_SELF, "-"));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\t%.2f\t%.2f\t%.2f\t%.2f\n", (double)warms[0] * 1e6, (double)warms[1] * 1e6, (double)colds[0] * 1e6, (double)colds[1] * 1e6));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(BenchProblemDestroy(&problem));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the paper's Table 2: STREAM's copy and triad ---- */

static constexpr PetscCount StreamNumbers = (PetscCount)64 << 20; /* of an array: 512 MB in double precision, many times any L2 */

struct Stream {
  double *a, *b, *c;
};

template <bool Triad>
__global__ static void StreamKernel(double *__restrict__ a, const double *__restrict__ b, const double *__restrict__ c)
{
  for (PetscCount k = blockIdx.x * (PetscCount)blockDim.x + threadIdx.x; k < StreamNumbers; k += (PetscCount)gridDim.x * blockDim.x) a[k] = Triad ? b[k] + 3.0 * c[k] : b[k];
}

template <bool Triad>
static PetscErrorCode StreamWork(void *ctx)
{
  const Stream *s = (const Stream *)ctx;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  StreamKernel<Triad><<<(unsigned int)(StreamNumbers / 256), 256, 0, stream>>>(s->a, s->b, s->c);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A line of the head; none where the GPU has no room for three arrays */
static PetscErrorCode PrintStream(PetscReal min_ms)
{
  const size_t   bytes = (size_t)StreamNumbers * sizeof(double);
  PetscLogDouble copy, triad;
  Stream         s;
  void          *memory;

  PetscFunctionBegin;
  PetscCall(GallopDeviceMalloc(3 * bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceZero(memory, 3 * bytes));
  s.a = (double *)memory;
  s.b = s.a + StreamNumbers;
  s.c = s.b + StreamNumbers;
  PetscCall(BenchTimeWarm(&BenchDevice, StreamWork<false>, &s, min_ms, &copy, NULL));
  PetscCall(BenchTimeWarm(&BenchDevice, StreamWork<true>, &s, min_ms, &triad, NULL));
  PetscCall(GallopDeviceFree(memory));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# STREAM: copy %.0f GB/s, triad %.0f GB/s\n", 2 * (double)bytes / copy * 1e-9, 3 * (double)bytes / triad * 1e-9));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- cycles of a load that waits for the one before ---- */

/* Each number is the place of the next; L1 has them, or is passed by */
template <bool L1>
__global__ static void ChaseKernel(const unsigned int *next, int warm, int loads, double *cycles)
{
  unsigned int at = 0;
  long long    begin;

  for (int k = 0; k < warm; k++) at = L1 ? __ldca(next + at) : __ldcg(next + at);
  begin = clock64() + (at == ~0u); /* one load may be under way, as it is at the end */
  for (int k = 0; k < loads; k++) at = L1 ? __ldca(next + at) : __ldcg(next + at);
  *cycles = (double)(clock64() - begin + (at == ~0u)) / loads;
}

__global__ static void ChainKernel(unsigned int *next, unsigned int n, unsigned int stride)
{
  for (unsigned int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) next[k] = (k + stride) % n;
}

/* A ring of numbers that are stride apart, so that each has a line of its own; all of them first, where they are to come from a cache */
template <bool L1>
static PetscErrorCode Chase(unsigned int *next, int lines, unsigned int stride, bool first, double *memory, double *cycles)
{
  const unsigned int n     = (unsigned int)lines * stride;
  const int          loads = PetscMin(lines, 8192);

  PetscFunctionBegin;
  ChainKernel<<<1024, 256>>>(next, n, stride);
  ChaseKernel<L1><<<1, 1>>>(next, first ? lines : 0, loads, memory);
  GallopCheckLaunch();
  PetscCallCUDA(cudaMemcpy(cycles, memory, sizeof(*cycles), cudaMemcpyDeviceToHost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A line of the head; none where the GPU has no room for many times its L2 */
static PetscErrorCode PrintLatencies(void)
{
  const unsigned int near = 33, far = 16385; /* numbers between loads */
  const int          most = 16384;           /* loads: 1 GiB */
  double             l1, l2, dram;
  void              *memory;

  PetscFunctionBegin;
  PetscCall(GallopDeviceMalloc(((size_t)most * far + 2) * sizeof(unsigned int), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Chase<true>((unsigned int *)memory + 2, 124, near, true, (double *)memory, &l1));    /* 16 KiB */
  PetscCall(Chase<false>((unsigned int *)memory + 2, 65536, near, true, (double *)memory, &l2)); /* 8 MiB */
  PetscCall(Chase<false>((unsigned int *)memory + 2, most, far, false, (double *)memory, &dram));
  PetscCall(GallopDeviceFree(memory));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# latencies: L1 %.0f, L2 %.0f, memory %.0f cycles\n", l1, l2, dram));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench          b = {};
  PetscBool      available;
  PetscLogDouble bandwidth;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(BenchOptionByItself("-mat_evchyb_storage", "plain")); /* the paper's, which has these parts */
  PetscCall(BenchOptionByItself("-mat_evchyb_order", "none"));
  PetscCall(BenchOptionByItself("-mat_gallop_build", "first"));
  PetscCall(BenchInputCreate(&b.in));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-once", &b.once, NULL));
  PetscCall(BenchDeviceAvailable(&available));
  PetscCheck(available, PETSC_COMM_WORLD, PETSC_ERR_GPU, "This program times parts of a kernel, and there is no GPU");

  PetscCall(BenchPrintHead(&BenchDevice, &bandwidth));
  if (!b.once) {
    PetscCall(PrintStream(b.in.min_ms));
    PetscCall(PrintLatencies());
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# matrix\tm\tnnz\tstored\twhat\twarm_us\tcold_us\terr\twarm_min\twarm_max\tcold_min\tcold_max\n"));
  PetscCall(BenchInputRun(&b.in, RunMatrix, &b));

  PetscCall((*BenchDevice.finish)());
  PetscCall(BenchInputDestroy(&b.in));
  PetscCall(PetscFinalize());
  return 0;
}
