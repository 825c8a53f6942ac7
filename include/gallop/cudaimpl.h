/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only */

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1

#include <petscdevice_cuda.h>
#include <gallop/deviceimpl.h>
#include <gallop/formatimpl.h>
#include <gallop/warpimpl.h>
#include <cuda/std/type_traits>

/* Thread blocks that have n threads together, at least one: a kernel that has nothing to do is no error, a grid without thread blocks is */
static inline unsigned int GallopBlocksFor(PetscCount n, int threads)
{
  return (unsigned int)PetscMax((n + threads - 1) / threads, 1);
}

/* A thread's number among those of all thread blocks */
static __device__ __forceinline__ PetscCount GallopGlobalThread()
{
  return (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
}

/* What every launcher does after a launch */
#define GallopCheckLaunch() PetscCallCUDA(cudaGetLastError())

/* Whether a kernel can start early and its blocks form clusters: it takes compute capability 9.0, of the GPU and of what the kernel was compiled for */
template <typename Kernel>
static inline cudaError_t GallopKernelOverlaps(Kernel *kernel, PetscBool *overlaps)
{
  cudaFuncAttributes attr = {};
  int                device, major = 0;
  cudaError_t        err = cudaGetDevice(&device);

  if (err == cudaSuccess) err = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (err == cudaSuccess) err = cudaFuncGetAttributes(&attr, kernel);
  *overlaps = (PetscBool)(major >= 9 && attr.ptxVersion >= 90);
  return err;
}

/* After a product that ran, the values are fresh no more: the next product need not wait for them. A product that a CUDA graph only recorded has not run. */
static inline cudaError_t GallopNotFresh(cudaStream_t stream, PetscBool *fresh)
{
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t             err    = *fresh ? cudaStreamIsCapturing(stream, &status) : cudaSuccess;

  if (status == cudaStreamCaptureStatusNone) *fresh = PETSC_FALSE;
  return err;
}

/* How GallopLaunch() launches */
struct GallopGrid {
  PetscCount   blocks;
  int          threads;
  int          cluster; /* thread blocks of a cluster; those that fill up the last one have numbers beyond blocks. More than 1 needs compute capability 9.0. */
  size_t       shared;  /* bytes of dynamic shared memory */
  cudaStream_t stream;
  bool         overlaps; /* the kernel may start while the one before it in the stream ends, and calls GallopWaitForPredecessor() in time. Needs compute capability 9.0. */
};

template <typename... Params, typename... Args>
static inline cudaError_t GallopLaunch(void (*kernel)(Params...), const GallopGrid &grid, Args... args)
{
  cudaLaunchAttribute attrs[2] = {};
  cudaLaunchConfig_t  config   = {};

  attrs[0].id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  attrs[0].val.programmaticStreamSerializationAllowed = 1;
  attrs[1].id                                         = cudaLaunchAttributeClusterDimension;
  attrs[1].val.clusterDim.x                           = grid.cluster;
  attrs[1].val.clusterDim.y                           = 1;
  attrs[1].val.clusterDim.z                           = 1;
  config.gridDim                                      = dim3((unsigned int)((grid.blocks + grid.cluster - 1) / grid.cluster * grid.cluster));
  config.blockDim                                     = dim3((unsigned int)grid.threads);
  config.dynamicSmemBytes                             = grid.shared;
  config.stream                                       = grid.stream;
  config.attrs                                        = grid.overlaps ? attrs : attrs + 1;
  config.numAttrs                                     = (grid.overlaps ? 1 : 0) + (grid.cluster > 1 ? 1 : 0);
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

/* Parts of one allocation, each aligned as cudaMalloc() aligns */
class GallopCarver {
public:
  explicit GallopCarver(void *base) : base_(static_cast<char *>(base)) { }
  template <typename T>
  void Take(T *&ptr, PetscCount n)
  {
    ptr = base_ ? reinterpret_cast<T *>(base_ + bytes_) : nullptr;
    bytes_ += (((size_t)n * sizeof(T)) + 255) / 256 * 256;
  }
  void   Pad(size_t bytes) { bytes_ += (bytes + 255) / 256 * 256; } /* for reads behind what was taken last */
  size_t Bytes() const { return bytes_; }

private:
  char  *base_;
  size_t bytes_ = 0;
};

/* ---- for kernels ---- */

/*
  A kernel may start while the one before it in the stream still runs (programmatic dependent launch): what no other kernel writes, the matrix, is
  loaded before this, vectors and partial sums after it. Some thread always waits, so that the kernel never ends before its predecessor.
*/
static __device__ __forceinline__ void GallopWaitForPredecessor()
{
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/* For a kernel whose successor waits before it touches what this one reads or writes, as all that are launched so do: it then starts when the last block of this one has */
static __device__ __forceinline__ void GallopLetSuccessorStart()
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* Matrix data is read once a product: it should not push x out of the caches. For complex numbers there is no such load. */
template <typename T>
static __device__ __forceinline__ T GallopLoadOnce(const T *p)
{
  if constexpr (cuda::std::is_arithmetic_v<T>) return __ldcs(p);
  else return *p;
}

/*
  x of a product, which nothing writes meanwhile: such loads the compiler lets go ahead of each other, and ahead of GallopWaitForPredecessor() too. So their
  addresses must come from a load, other than a read-only one, or a barrier that is behind the wait; the same is true of __restrict__ const arguments of kernels.
*/
template <typename T>
static __device__ __forceinline__ T GallopLoadReadOnly(const T *p)
{
  if constexpr (cuda::std::is_arithmetic_v<T>) return __ldg(p);
  else return *p;
}

/* So many bytes of matrix data into a word whose bits are 0, if there are any. Written out, since the compiler waits for a load that depends on a condition before it starts the next one. */
template <int Bytes, typename Word>
static __device__ __forceinline__ void GallopLoadWordOnceIf(const void *p, bool there, Word *word)
{
  static_assert(sizeof(Word) == (Bytes <= 4 ? 4 : 8), "what registers there are");
  if constexpr (Bytes == 2) asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %2, 0;\n@there ld.global.cs.u16 %0, [%1];\n}" : "+r"(*word) : "l"(p), "r"((int)there));
  else if constexpr (Bytes == 4) asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %2, 0;\n@there ld.global.cs.b32 %0, [%1];\n}" : "+r"(*word) : "l"(p), "r"((int)there));
  else asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %2, 0;\n@there ld.global.cs.b64 %0, [%1];\n}" : "+l"(*word) : "l"(p), "r"((int)there));
}

/* Matrix data that is there, or bits of 0. It is aligned as its size is. */
template <typename T>
static __device__ __forceinline__ T GallopLoadOnceIf(const T *p, bool there)
{
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) % 16 == 0, "what one load, or several of 16 bytes, can take");
  constexpr int Words = sizeof(T) < 16 ? 1 : sizeof(T) / 8;
  using Word          = cuda::std::conditional_t<sizeof(T) <= 4, unsigned int, unsigned long long>;
  union U
  {
    __device__ U() { }
    T          t;
    Word       word[Words];
  } u;

#pragma unroll
  for (int k = 0; k < Words; k++) u.word[k] = 0;
  if constexpr (sizeof(T) <= 8) GallopLoadWordOnceIf<(int)sizeof(T)>(p, there, u.word);
  else {
#pragma unroll
    for (int k = 0; k < Words; k += 2)
      asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %3, 0;\n@there ld.global.cs.v2.b64 {%0, %1}, [%2];\n}"
                   : "+l"(u.word[k]), "+l"(u.word[k + 1])
                   : "l"(reinterpret_cast<const Word *>(p) + k), "r"((int)there));
  }
  return u.t;
}

/* What other blocks wrote in this launch is in L2, not in L1 */
template <typename T>
static __device__ __forceinline__ T GallopLoadFromL2(const T *p)
{
  using Word = cuda::std::conditional_t<sizeof(T) % sizeof(long long) == 0, long long, int>;
  static_assert(sizeof(T) % sizeof(Word) == 0, "scalars are whole words");
  union
  {
    T    t;
    Word word[sizeof(T) / sizeof(Word)];
  } u = {T()};

#pragma unroll
  for (int k = 0; k < (int)(sizeof(T) / sizeof(Word)); k++) u.word[k] = __ldcg((const Word *)p + k);
  return u.t;
}

template <typename V>
struct GallopVectors {
  V        alpha, beta;
  const V *x, *y;
  V       *z;
  bool     readsy, more;  /* more: an epilogue */
  const V *xrows, *d, *u; /* xrows: x as rows have it */
  V        gamma, delta;

  /* a dot product with z, where with is not NULL: sums of blocks thread blocks, then of parts that several of them have computed */
  const V      *with;
  bool          conjugate, adds;
  V            *result, *partial;
  unsigned int *ended, blocks, parts;
};

static inline GallopVectors<PetscScalar> GallopVectorsOf(const GallopProduct *p)
{
  const GallopEpilogue      *e   = p->epilogue;
  const GallopDot           *dot = e ? e->dot : NULL;
  GallopVectors<PetscScalar> v   = {};

  v.alpha  = GallopScalarAt(p->alpha);
  v.beta   = GallopScalarAt(p->beta);
  v.x      = p->x;
  v.xrows  = p->xrows ? p->xrows : p->x;
  v.y      = p->y;
  v.z      = p->z;
  v.readsy = v.beta != PetscScalar(0);
  v.more   = e != NULL;
  if (e) {
    v.d     = e->d;
    v.u     = e->u;
    v.gamma = GallopScalarAt(e->gamma);
    v.delta = GallopScalarAt(e->delta);
  }
  if (dot) {
    v.with      = dot->with;
    v.conjugate = (bool)dot->conjugate;
    v.adds      = (bool)dot->adds;
    v.result    = dot->result;
    v.partial   = dot->partial;
    v.ended     = dot->ended;
  }
  return v;
}

/* d value + gamma u + delta x, see GallopEpilogue; x is that of the row, not that of a column */
template <typename V>
static __device__ __forceinline__ V GallopFinish(const V *d, const V *u, V gamma, V delta, const V *x, PetscInt row, V value)
{
  if (d) value *= d[row];
  if (u) value += gamma * u[row];
  if (delta != V(0)) value += delta * x[row];
  return value;
}

template <typename V>
static __device__ __forceinline__ V GallopConjugate(const V &value, bool conjugate)
{
#if defined(PETSC_USE_COMPLEX)
  return conjugate ? PetscConj(value) : value;
#else
  (void)conjugate;
  return value;
#endif
}

/* What a row adds to the dot product */
template <typename V>
static __device__ __forceinline__ V GallopDotOf(const GallopVectors<V> &v, PetscInt row, V value)
{
  return v.with[row] * GallopConjugate(value, v.conjugate);
}

/* dot: what the thread's rows add to the dot product, of formats that have one. It is the same in every run where the same thread stores the same rows in the same order. */
template <typename V>
static __device__ __forceinline__ void GallopStore(const GallopVectors<V> &v, PetscInt row, V sum, V *dot = nullptr)
{
  V value = v.readsy ? v.alpha * sum + v.beta * v.y[row] : v.alpha * sum;

  if (v.more) {
    value = GallopFinish(v.d, v.u, v.gamma, v.delta, v.xrows, row, value);
    if (dot && v.with) *dot += GallopDotOf(v, row, v.adds ? v.alpha * sum : value);
  }
  v.z[row] = value;
}

/*
  The end of a thread block whose first thread has left the block's sum, where all threads call it: the last block to come adds the sums of all, and of the parts, in their order, AtOnce of them in
  flight per thread
*/
template <int BlockThreads, int AtOnce = 4, typename V>
static __device__ __forceinline__ void GallopAddDots(const GallopVectors<V> &v)
{
  __shared__ bool last;
  V               dot = V(0);

  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(v.ended, 1u) == v.blocks - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
#pragma unroll AtOnce
  for (unsigned int k = threadIdx.x; k < v.blocks + v.parts; k += BlockThreads) dot += GallopLoadFromL2(v.partial + k);
  dot = GallopWarpsSum<BlockThreads>(dot, BlockThreads);
  if (threadIdx.x == 0) {
    *v.result = v.adds ? *v.result + dot : dot;
    *v.ended  = 0;
  }
}

/* The end of a kernel that has a dot product: every thread of the first v.blocks thread blocks calls it */
template <int BlockThreads, int AtOnce = 4, typename V>
static __device__ __forceinline__ void GallopFinishDot(const GallopVectors<V> &v, V dot)
{
  if (!v.with) return;
  __syncthreads(); /* others may have used the same shared memory */
  dot = GallopWarpsSum<BlockThreads>(dot, BlockThreads);
  if (threadIdx.x == 0) v.partial[blockIdx.x] = dot;
  GallopAddDots<BlockThreads, AtOnce>(v);
}

/* The parts of a complex number one after the other: who reads z later sees both */
template <typename R, typename V>
static __device__ __forceinline__ void GallopAtomicAdd(V *to, const V &value)
{
  const R *const from = reinterpret_cast<const R *>(&value);

#pragma unroll
  for (int k = 0; k < (int)(sizeof(V) / sizeof(R)); k++) atomicAdd(reinterpret_cast<R *>(to) + k, from[k]);
}

static constexpr int GallopBeginThreads = 256;

/* z = beta y where a product adds to something else than z as it is. The next kernel may start at once: it waits for this one before it adds. */
template <typename V>
__global__ static void __launch_bounds__(GallopBeginThreads) GallopBeginKernel(PetscInt n, const GallopVectors<V> v)
{
  const PetscCount k = (PetscCount)blockIdx.x * GallopBeginThreads + threadIdx.x;

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  if (k < n) v.z[k] = v.readsy ? v.beta * v.y[k] : V(0);
}

/* z = beta y. From then on the product adds to z. */
template <typename V>
static inline cudaError_t GallopBegin(PetscInt n, GallopVectors<V> *v, cudaStream_t stream, bool overlaps)
{
  cudaError_t err = cudaSuccess;

  if (!v->readsy || v->y != v->z || v->beta != V(1))
    err = GallopLaunch(GallopBeginKernel<V>, {((PetscCount)n + GallopBeginThreads - 1) / GallopBeginThreads, GallopBeginThreads, 1, 0, stream, overlaps}, n, *v);
  if (v->readsy) {
    v->y    = v->z;
    v->beta = V(1);
  }
  return err;
}
