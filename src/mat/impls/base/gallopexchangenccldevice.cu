/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by NCCL, on the GPU: memory, and events between the side stream and PETSc's

  All exchanges of a process are on one side stream. Kernels of NCCL wait for those of other processes, and two of different communicators that ran at the same time could each keep multiprocessors
  from the other one, on different GPUs in different order. Its priority lets their thread blocks go before those of the diagonal block's product, which wait for nothing.
*/

#include "gallopexchangeunits.cuh"
#include <gallop/ncclimpl.h>

static PetscErrorCode GetDevice_Device(char id[16], PetscBool *part)
{
  cudaDeviceProp prop;
  int            device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaGetDeviceProperties(&prop, device));
  static_assert(sizeof(prop.uuid) == 16, "as many bytes as processes exchange");
  PetscCall(PetscMemcpy(id, &prop.uuid, sizeof(prop.uuid)));
  *part = (PetscBool)(strstr(prop.name, " MIG ") != NULL); /* as in "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Recover_Device(void)
{
  PetscFunctionBegin;
  (void)cudaGetLastError();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Finish_Device(void)
{
  cudaStream_t side;

  PetscFunctionBegin;
  PetscCall(GallopGetSideStream(&side));
  PetscCallCUDA(cudaStreamSynchronize(side));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GallopNCCLPlace place = {GetDevice_Device, Recover_Device, Finish_Device};

/* ---------------------------------------------------------------- exchanges */

struct NCCLPlan : GallopDevicePlan {
  const GallopNCCLFunctions *functions;
  void                      *memory; /* of all arrays */
  PetscReal                 *packed, *landed, *buffer;
};

static PetscErrorCode Join_NCCLDevice(MPI_Comm comm, GallopIPC ipc, const char **why)
{
  PetscFunctionBegin;
  PetscCall(GallopNCCLGetComm(comm, &place, &ipc->comm, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Carve(GallopIPC ipc, GallopCarver &carver, NCCLPlan *plan)
{
  const PetscCount columns = (PetscCount)ipc->kind.bs * ipc->kind.columns;

  carver.Take(plan->packed, ipc->nindex * columns);
  if (GallopNCCLLands(ipc, ipc->kind.columns)) carver.Take(plan->landed, ipc->nghost * columns);
  carver.Take(plan->buffer, ipc->nghost * columns);
  GallopDevicePlanCarve(ipc, carver, plan);
  carver.Pad(1); /* there are processes without neighbors */
}

static PetscErrorCode PlanCreate_NCCLDevice(GallopIPC ipc, void **data)
{
  NCCLPlan    *plan = new NCCLPlan();
  GallopCarver size(NULL);

  PetscFunctionBegin;
  Carve(ipc, size, plan);
  PetscCall(GallopDeviceMalloc(size.Bytes(), &plan->memory));
  if (!plan->memory) {
    delete plan;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GallopCarver carver(plan->memory);
  Carve(ipc, carver, plan);
  PetscCall(GallopNCCLOpen(&plan->functions));
  PetscCall(GallopDevicePlanCopyIn(ipc, plan));
  PetscCall(GallopDevicePlanTakeSide(plan));
  *data = plan;

  ipc->buffer[0] = ipc->buffer[1] = plan->buffer;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanDestroy_NCCLDevice(void **data)
{
  NCCLPlan *plan = (NCCLPlan *)*data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(plan->memory)); /* waits for all streams */
  PetscCall(GallopDevicePlanReset(plan));
  delete plan;
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The messages, one after the other: those of one column as if they were for one neighbor */
static PetscErrorCode Pack(GallopIPC ipc, cudaStream_t side, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  NCCLPlan      *plan   = (NCCLPlan *)ipc->plan;
  const PetscInt bs     = ipc->kind.bs;
  const int      n      = columns > 1 ? ipc->nneighbors : PetscMin(ipc->nneighbors, 1);
  PackArguments  to     = {};
  unsigned int   blocks = 0;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    const PetscInt     first = columns > 1 ? ipc->neighbor[k].first : 0, units = columns > 1 ? ipc->neighbor[k].n : ipc->nindex;
    const unsigned int numbers = (unsigned int)(units * bs);

    if (numbers) {
      to.neighbor[to.n++] = {plan->packed + (PetscCount)first * bs * columns, NULL, (PetscCount)numbers, first, numbers, blocks};
      blocks += GallopBlocksFor(numbers, PackValues);
    }
    if (to.n == GALLOP_IPC_NEIGHBORS || (to.n && k == n - 1)) {
      PetscCall(GallopDevicePack(side, to, blocks, bs, plan->index, x, ld, columns, 0, NULL, NULL));
      to.n   = 0;
      blocks = 0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Messages of several columns, to where these are in the buffer */
static PetscErrorCode Land(GallopIPC ipc, cudaStream_t side, PetscInt columns)
{
  const NCCLPlan *plan = (NCCLPlan *)ipc->plan;
  const size_t    unit = (size_t)ipc->kind.bs * sizeof(PetscReal);

  PetscFunctionBegin;
  for (int k = 0; k < ipc->ngive; k++) {
    const GallopIPCNeighbor &neighbor = ipc->neighbor[k];
    const size_t             bytes    = (size_t)neighbor.ngives * unit;

    PetscCallCUDA(cudaMemcpy2DAsync((char *)plan->buffer + (size_t)neighbor.place * unit, (size_t)ipc->nghost * unit, (const char *)plan->landed + (size_t)neighbor.place * (size_t)columns * unit, bytes, bytes, (size_t)columns, cudaMemcpyDeviceToDevice, side));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send_NCCLDevice(GallopIPC ipc, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  NCCLPlan       *plan  = (NCCLPlan *)ipc->plan;
  const PetscBool lands = GallopNCCLLands(ipc, columns);
  cudaStream_t    side;

  PetscFunctionBegin;
  (void)number;
  PetscCall(GallopDevicePlanBegin(plan, &side));
  PetscCall(Pack(ipc, side, x, ld, columns));
  PetscCall(GallopNCCLExchange(ipc, plan->functions, plan->packed, lands ? plan->landed : ipc->buffer[buffer], columns, side));
  if (lands) PetscCall(Land(ipc, side, columns));
  PetscCallCUDA(cudaEventRecord(plan->come, side));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_NCCLDevice(GallopIPC ipc, int first, int last, unsigned int number)
{
  NCCLPlan    *plan = (NCCLPlan *)ipc->plan;
  cudaStream_t stream;

  PetscFunctionBegin;
  (void)first, (void)last, (void)number;
  PetscCall(GallopDevicePlanGetStream(plan, &stream));
  PetscCallCUDA(cudaStreamWaitEvent(stream, plan->come, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Describe_NCCLDevice(GallopIPC ipc, const char **how)
{
  PetscFunctionBegin;
  (void)ipc;
  *how = "the stream";
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopIPCTable GallopIPCTable_NCCLDevice = {GallopNCCLName, Join_NCCLDevice, NULL, NULL, NULL, NULL, NULL, GallopIPCCreateVec_Device, PlanCreate_NCCLDevice, PlanDestroy_NCCLDevice, Send_NCCLDevice, Wait_NCCLDevice, GallopIPCUnpack_Device, GallopIPCFinish_Device, Describe_NCCLDevice};
