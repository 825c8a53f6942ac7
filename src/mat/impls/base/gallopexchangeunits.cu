/* SPDX-License-Identifier: BSD-2-Clause */
/* Units on the GPU: packed for the neighbors, in their memory or for NCCL, and unpacked; and the order of this with what PETSc's stream does */

#include "gallopexchangeunits.cuh"
#include "gallopflags.cuh"

/* The number v of units that are listed: where it is. Bs: real numbers of a unit, or 0 where bs tells */
template <int Bs>
static __device__ __forceinline__ PetscCount PlaceOf(const PetscInt *__restrict__ index, unsigned int v, unsigned int bs)
{
  const unsigned int size = Bs ? Bs : bs, k = v / size;

  return (PetscCount)index[k] * size + (v - k * size);
}

/* Each thread block writes up to PackValues numbers of some columns for one neighbor, to which the last one that ends raises the flag, if it has one. ended is 0 for all neighbors, and is left so; packed counts neighbors. */
template <int Bs>
static __global__ void __launch_bounds__(PackThreads) PackKernel(const __grid_constant__ PackArguments to, unsigned int bs, const PetscInt *__restrict__ index, const PetscReal *__restrict__ x, PetscCount ld, PetscInt columns, unsigned int number, unsigned int *ended, unsigned int *packed)
{
  int        p = 0;
  PetscCount place[PackUnroll];

  while (p + 1 < to.n && blockIdx.x >= to.neighbor[p + 1].block) p++;
  const PackTo      &neighbor = to.neighbor[p];
  const unsigned int blocks   = ((p + 1 < to.n ? to.neighbor[p + 1].block : gridDim.x) - neighbor.block) * gridDim.y;
  const unsigned int first    = (blockIdx.x - neighbor.block) * PackValues + threadIdx.x;

#pragma unroll
  for (int u = 0; u < PackUnroll; u++) {
    const unsigned int v = first + u * PackThreads;

    place[u] = v < neighbor.n ? PlaceOf<Bs>(index + neighbor.first, v, bs) : 0;
  }
  for (PetscInt c = (PetscInt)blockIdx.y; c < columns; c += (PetscInt)gridDim.y) {
#pragma unroll
    for (int u = 0; u < PackUnroll; u++) {
      const unsigned int v = first + u * PackThreads;

      if (v < neighbor.n) neighbor.to[c * neighbor.ld + v] = x[c * ld + place[u]];
    }
  }
  if (!neighbor.raise) return;
  __syncthreads();
  if (threadIdx.x) return;
  __threadfence_system(); /* for the values of all threads, which the barrier orders before */
  if (blocks > 1) {
    if (atomicAdd(&ended[p], 1u) != blocks - 1) return;
    ended[p] = 0;
    __threadfence_system();
  }
  GallopRaise(neighbor.raise, number);
  atomicAdd(packed, 1u);
}

/* A thread puts the numbers of a place there, or adds them in the order of the list. from may be the buffer, which other processes write to: no read-only loads. */
template <int Bs, bool Add>
static __global__ void __launch_bounds__(PackThreads) UnpackKernel(const GallopIPCList list, unsigned int bs, const PetscReal *from, PetscReal *to)
{
  const unsigned int size = Bs ? Bs : bs, v = blockIdx.x * PackThreads + threadIdx.x, k = v / size, part = v - k * size;

  if (k >= (unsigned int)list.n) return;
  const PetscInt   begin = list.start ? list.start[k] : (PetscInt)k, end = list.start ? list.start[k + 1] : begin + 1;
  PetscReal *const place = to + ((PetscCount)list.place[k] * size + part);
  PetscReal        value = Add ? *place : PetscReal(0);

  for (PetscInt e = Add ? begin : end - 1; e < end; e++) {
    const PetscReal more = from[(PetscCount)(list.from ? list.from[e] : e) * size + part];

    value = Add ? value + more : more;
  }
  *place = value;
}

/* ---------------------------------------------------------------- plans */

static PetscErrorCode CopyIn(PetscInt *to, const PetscInt *from, PetscInt n)
{
  PetscFunctionBegin;
  if (from && n) PetscCall(GallopDeviceCopyIn(to, from, (size_t)n * sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDevicePlanCopyIn(GallopIPC ipc, GallopDevicePlan *plan)
{
  PetscFunctionBegin;
  PetscCall(CopyIn(plan->index, ipc->index, ipc->nindex));
  for (int s = 0; s < 2; s++) {
    PetscCall(CopyIn(plan->list[s].place, ipc->list[s].place, ipc->list[s].n));
    PetscCall(CopyIn(plan->list[s].start, ipc->list[s].start, ipc->list[s].n + 1));
    PetscCall(CopyIn(plan->list[s].from, ipc->list[s].from, ipc->list[s].nfrom));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDevicePlanTakeSide(GallopDevicePlan *plan)
{
  PetscFunctionBegin;
  PetscCall(GallopGetSideStream(&plan->side));
  PetscCallCUDA(cudaEventCreateWithFlags(&plan->before, cudaEventDisableTiming));
  PetscCallCUDA(cudaEventCreateWithFlags(&plan->come, cudaEventDisableTiming));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDevicePlanReset(GallopDevicePlan *plan)
{
  PetscFunctionBegin;
  if (plan->side) {
    PetscCallCUDA(cudaEventDestroy(plan->before));
    PetscCallCUDA(cudaEventDestroy(plan->come));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's stream. When it is another one than before, what the last product still reads must not be overwritten, which the next exchange allows. */
PetscErrorCode GallopDevicePlanGetStream(GallopDevicePlan *plan, cudaStream_t *stream)
{
  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(stream));
  if (plan->sent && plan->stream != *stream) PetscCallCUDA(cudaDeviceSynchronize());
  plan->stream = *stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopDevicePlanBegin - The stream on which a product packs units, behind what PETSc's stream has to do. Each launch of a CUDA graph would send the number of the product that it has recorded, and neighbors take old values for new ones. */
PetscErrorCode GallopDevicePlanBegin(GallopDevicePlan *plan, cudaStream_t *stream)
{
  PetscBool capturing;

  PetscFunctionBegin;
  PetscCall(GallopDeviceIsCapturing(&capturing));
  PetscCheck(!capturing, PETSC_COMM_SELF, PETSC_ERR_SUP, "Products that send values to other processes cannot be recorded in a CUDA graph");
  PetscCall(GallopDevicePlanGetStream(plan, stream));
  plan->sent = PETSC_TRUE;
  if (plan->side) {
    PetscCallCUDA(cudaEventRecord(plan->before, *stream));
    PetscCallCUDA(cudaStreamWaitEvent(plan->side, plan->before, 0));
    *stream = plan->side;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/* GallopDevicePack - Units of columns of x for neighbors, as PackKernel() has it; ended and packed may be NULL where no neighbor has a flag */
PetscErrorCode GallopDevicePack(cudaStream_t stream, const PackArguments &to, unsigned int blocks, PetscInt bs, const PetscInt *index, const PetscReal *x, PetscCount ld, PetscInt columns, unsigned int number, unsigned int *ended, unsigned int *packed)
{
  const auto kernel = bs == GALLOP_IPC_SCALAR ? PackKernel<GALLOP_IPC_SCALAR> : PackKernel<0>;
  const dim3 grid(blocks, (unsigned int)PetscMax(1, PetscMin(columns, PackColumns)));

  PetscFunctionBegin;
  kernel<<<grid, PackThreads, 0, stream>>>(to, (unsigned int)bs, index, x, ld, columns, number, ended, packed);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCUnpack_Device(GallopIPC ipc, GallopIPCScope scope, const PetscReal *from, PetscReal *to, PetscBool add)
{
  GallopDevicePlan    *plan = (GallopDevicePlan *)ipc->plan;
  const GallopIPCList &list = plan->list[scope];
  const unsigned int   bs = (unsigned int)ipc->kind.bs, blocks = GallopBlocksFor((PetscCount)list.n * bs, PackThreads);
  const auto           scalar = add ? UnpackKernel<GALLOP_IPC_SCALAR, true> : UnpackKernel<GALLOP_IPC_SCALAR, false>;
  const auto           any    = add ? UnpackKernel<0, true> : UnpackKernel<0, false>;
  const auto           kernel = bs == GALLOP_IPC_SCALAR ? scalar : any;
  cudaStream_t         stream;

  PetscFunctionBegin;
  PetscCall(GallopDevicePlanGetStream(plan, &stream));
  PetscCall(PetscLogGpuTimeBegin());
  kernel<<<blocks, PackThreads, 0, stream>>>(list, bs, from, to);
  GallopCheckLaunch();
  PetscCall(PetscLogGpuTimeEnd());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCCreateVec_Device(PetscInt n, PetscScalar *array, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, n, array, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCFinish_Device(void)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}
