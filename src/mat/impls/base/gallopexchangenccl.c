/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by NCCL: those for neighbors are packed, and a group of sends and receives brings them into the neighbors' buffers, on a side stream, while PETSc's stream computes the diagonal block and then
  waits.

  NCCL wants the operations of a communicator in the same order on all of its processes, and those of several communicators too where a process is in more than one: products are collective, and a program
  has them in one order.
*/

#include <gallop/matgallopimpl.h>

/*
  GallopNCCLExchange - Sends packed units of some columns to the neighbors, and receives theirs in the buffer. A network that has failed in an earlier product is told of here.

  Both have the columns one after the other: the units for a neighbor, and those from it, are together in each column, but not from column to column.
*/
PetscErrorCode GallopNCCLExchange(GallopIPC ipc, const GallopNCCLFunctions *f, const PetscReal *packed, PetscReal *buffer, PetscInt columns, void *stream)
{
  const PetscCount bs     = ipc->kind.bs;
  int              failed = 0;

  PetscFunctionBegin;
  GallopCallNCCL(f, ipc->comm, "ncclCommGetAsyncError()", (*f->commgetasyncerror)(ipc->comm, &failed));
  GallopCallNCCL(f, ipc->comm, "An earlier operation", failed);
  GallopCallNCCL(f, ipc->comm, "ncclGroupStart()", (*f->groupstart)());
  for (int k = 0; k < ipc->nneighbors; k++) {
    const GallopIPCNeighbor *neighbor = &ipc->neighbor[k];

    for (PetscInt c = 0; c < columns && neighbor->n; c++)
      GallopCallNCCL(f, ipc->comm, "ncclSend()",
                     (*f->send)(packed + ((PetscCount)c * ipc->nindex + neighbor->first) * bs, (size_t)(neighbor->n * bs) * sizeof(PetscReal), GALLOP_NCCL_BYTE, neighbor->rank, ipc->comm, stream));
    for (PetscInt c = 0; c < columns && neighbor->ngives; c++)
      GallopCallNCCL(f, ipc->comm, "ncclRecv()",
                     (*f->recv)(buffer + ((PetscCount)c * ipc->nghost + neighbor->place) * bs, (size_t)(neighbor->ngives * bs) * sizeof(PetscReal), GALLOP_NCCL_BYTE, neighbor->rank, ipc->comm, stream));
  }
  GallopCallNCCL(f, ipc->comm, "ncclGroupEnd()", (*f->groupend)());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- on the host, for tests: with a library that takes memory of the host, and that says when it has done what was queued */

typedef struct {
  const GallopNCCLFunctions *functions;
  PetscReal                 *packed, *buffer;
} Plan;

static PetscErrorCode GetDevice_Host(char id[16], PetscBool *part)
{
  const GallopNCCLFunctions *f;

  PetscFunctionBegin;
  PetscCall(GallopNCCLOpen(&f));
  *part = (PetscBool)(*f->hostdevice)(id);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nothing_Host(void)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopNCCLPlace GallopNCCLPlace_Host = {GetDevice_Host, Nothing_Host, Nothing_Host};

static PetscErrorCode Join_NCCLHost(MPI_Comm comm, GallopIPC ipc, const char **why)
{
  PetscFunctionBegin;
  PetscCall(GallopNCCLGetComm(comm, &GallopNCCLPlace_Host, &ipc->comm, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanCreate_NCCLHost(GallopIPC ipc, void **data)
{
  const size_t columns = (size_t)(ipc->kind.bs * ipc->kind.columns);
  PetscBool    fails;
  Plan        *plan;

  PetscFunctionBegin;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&plan));
  PetscCall(GallopNCCLOpen(&plan->functions));
  PetscCall(PetscMalloc2((size_t)ipc->nindex * columns, &plan->packed, (size_t)ipc->nghost * columns, &plan->buffer));
  *data = plan;

  ipc->buffer[0] = ipc->buffer[1] = plan->buffer;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanDestroy_NCCLHost(void **data)
{
  Plan *plan = (Plan *)*data;

  PetscFunctionBegin;
  PetscCall(PetscFree2(plan->packed, plan->buffer));
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send_NCCLHost(GallopIPC ipc, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  const Plan      *plan = (Plan *)ipc->plan;
  const PetscCount bs   = ipc->kind.bs;

  PetscFunctionBegin;
  (void)number;
  for (PetscInt c = 0; c < columns; c++)
    for (PetscInt k = 0; k < ipc->nindex; k++)
      for (PetscInt i = 0; i < bs; i++) plan->packed[((PetscCount)c * ipc->nindex + k) * bs + i] = x[c * ld + ipc->index[k] * bs + i];
  PetscCall(GallopNCCLExchange(ipc, plan->functions, plan->packed, ipc->buffer[buffer], columns, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_NCCLHost(GallopIPC ipc, int first, int last, unsigned int number)
{
  const Plan *plan = (Plan *)ipc->plan;

  PetscFunctionBegin;
  (void)first, (void)last, (void)number;
  GallopCallNCCL(plan->functions, ipc->comm, "The exchange", (*plan->functions->hostwait)());
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopIPCTable GallopIPCTable_NCCLHost = {
  .name        = GallopNCCLName,
  .join        = Join_NCCLHost,
  .createvec   = GallopIPCCreateVec_Host,
  .plancreate  = PlanCreate_NCCLHost,
  .plandestroy = PlanDestroy_NCCLHost,
  .send        = Send_NCCLHost,
  .wait        = Wait_NCCLHost,
  .unpack      = GallopIPCUnpack_Host,
  .finish      = Nothing_Host,
  .describe    = GallopIPCDescribe_Host,
};
