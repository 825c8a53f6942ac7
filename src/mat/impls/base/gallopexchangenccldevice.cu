/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Ghost values by NCCL, on the GPU: memory, and events between the side stream and PETSc's

  All exchanges of a process are on one side stream. Kernels of NCCL wait for those of other processes, and two of different communicators that ran at the same time could each keep multiprocessors
  from the other one, on different GPUs in different order. Its priority lets their thread blocks go before those of the diagonal block's product, which wait for nothing.
*/

#include <gallop/cudaimpl.h>
#include <gallop/exchangeimpl.h>
#include <gallop/ncclimpl.h>
#include "../../../vec/vecpermute.h"

/* Of one matrix */
struct Plan {
  void        *memory;
  PetscInt    *index;
  cudaEvent_t  before, done; /* values may be packed, and have come */
  cudaStream_t stream, side; /* PETSc's, of the last product; that of exchanges */
  bool         sent;
};

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

static PetscErrorCode Create_Device(GallopNCCL n, PetscInt ghosts)
{
  Plan        *plan = new Plan();
  GallopCarver size(NULL);

  PetscFunctionBegin;
  size.Take(n->packed, n->nindex);
  size.Take(n->array, ghosts);
  size.Take(plan->index, n->nindex);
  size.Pad(1); /* there are processes without neighbors */
  PetscCall(GallopDeviceMalloc(size.Bytes(), &plan->memory));
  if (!plan->memory) {
    delete plan;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GallopCarver carver(plan->memory);
  carver.Take(n->packed, n->nindex);
  carver.Take(n->array, ghosts);
  carver.Take(plan->index, n->nindex);
  if (n->nindex) PetscCall(GallopDeviceCopyIn(plan->index, n->index, (size_t)n->nindex * sizeof(PetscInt)));
  PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, ghosts, n->array, &n->ghost));
  PetscCall(GallopGetSideStream(&plan->side));
  PetscCallCUDA(cudaEventCreateWithFlags(&plan->before, cudaEventDisableTiming));
  PetscCallCUDA(cudaEventCreateWithFlags(&plan->done, cudaEventDisableTiming));
  n->plan = plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy_Device(GallopNCCL n)
{
  Plan *plan = (Plan *)n->plan;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(plan->memory)); /* waits for all streams */
  PetscCallCUDA(cudaEventDestroy(plan->before));
  PetscCallCUDA(cudaEventDestroy(plan->done));
  delete plan;
  n->plan = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pack_Device(GallopNCCL n, const PetscScalar *x, void **to)
{
  Plan        *plan = (Plan *)n->plan;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (plan->sent && plan->stream != stream) PetscCallCUDA(cudaDeviceSynchronize()); /* the last product may still read ghost values, on another stream */
  plan->stream = stream;
  plan->sent   = true;
  PetscCallCUDA(cudaEventRecord(plan->before, stream));
  PetscCallCUDA(cudaStreamWaitEvent(plan->side, plan->before, 0));
  PetscCall(GallopDevicePermuteOn(plan->side, n->nindex, plan->index, PETSC_FALSE, x, n->packed));
  *to = plan->side;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sent_Device(GallopNCCL n)
{
  const Plan *plan = (Plan *)n->plan;

  PetscFunctionBegin;
  PetscCallCUDA(cudaEventRecord(plan->done, plan->side));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_Device(GallopNCCL n)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaStreamWaitEvent(stream, ((Plan *)n->plan)->done, 0));
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

const GallopNCCLTable GallopNCCLTable_Device = {GetDevice_Device, Recover_Device, Create_Device, Destroy_Device, Pack_Device, Sent_Device, Wait_Device, Finish_Device};
