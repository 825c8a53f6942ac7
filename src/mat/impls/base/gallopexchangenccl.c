/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by NCCL: those for neighbors are packed, and a group of sends and receives brings them into the neighbors' buffers, on a side stream, while PETSc's stream computes the diagonal block and then
  waits.

  NCCL wants the operations of a communicator in the same order on all of its processes, and those of several communicators too where a process is in more than one: products are collective, and a program
  has them in one order.
*/

#include <gallop/matgallopimpl.h>

/* GallopNCCLLands - Whether what comes has to be put into the columns of the buffer: those of one giver are there as they come, and so is one column */
PetscBool GallopNCCLLands(GallopIPC ipc, PetscInt columns)
{
  return (PetscBool)(columns > 1 && ipc->ngive > 1);
}

/*
  GallopNCCLExchange - Sends packed units of some columns to the neighbors, and receives theirs. A network that has failed in an earlier product is told of here.

  A neighbor gets one message, whose columns are one after the other, and gives one: each message takes NCCL a few microseconds.
*/
PetscErrorCode GallopNCCLExchange(GallopIPC ipc, const GallopNCCLFunctions *f, const PetscReal *packed, PetscReal *landed, PetscInt columns, void *stream)
{
  const PetscCount numbers = (PetscCount)ipc->kind.bs * columns; /* of a unit */
  int              failed  = 0;

  PetscFunctionBegin;
  GallopCallNCCL(f, ipc->comm, "ncclCommGetAsyncError()", (*f->commgetasyncerror)(ipc->comm, &failed));
  GallopCallNCCL(f, ipc->comm, "An earlier operation", failed);
  GallopCallNCCL(f, ipc->comm, "ncclGroupStart()", (*f->groupstart)());
  for (int k = 0; k < ipc->nneighbors; k++) {
    const GallopIPCNeighbor *neighbor = &ipc->neighbor[k];

    if (neighbor->n)
      GallopCallNCCL(f, ipc->comm, "ncclSend()", (*f->send)(packed + neighbor->first * numbers, (size_t)(neighbor->n * numbers) * sizeof(PetscReal), GALLOP_NCCL_BYTE, neighbor->rank, ipc->comm, stream));
    if (neighbor->ngives)
      GallopCallNCCL(f, ipc->comm, "ncclRecv()", (*f->recv)(landed + neighbor->place * numbers, (size_t)(neighbor->ngives * numbers) * sizeof(PetscReal), GALLOP_NCCL_BYTE, neighbor->rank, ipc->comm, stream));
  }
  GallopCallNCCL(f, ipc->comm, "ncclGroupEnd()", (*f->groupend)());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- on the host, for tests: with a library that takes memory of the host, and that says when it has done what was queued */

typedef struct {
  const GallopNCCLFunctions *functions;
  PetscReal                 *packed, *landed, *buffer;
  PetscInt                   columns; /* of the last product */
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
  PetscCall(PetscMalloc3((size_t)ipc->nindex * columns, &plan->packed, GallopNCCLLands(ipc, ipc->kind.columns) ? (size_t)ipc->nghost * columns : 0, &plan->landed, (size_t)ipc->nghost * columns, &plan->buffer));
  *data = plan;

  ipc->buffer[0] = ipc->buffer[1] = plan->buffer;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanDestroy_NCCLHost(void **data)
{
  Plan *plan = (Plan *)*data;

  PetscFunctionBegin;
  PetscCall(PetscFree3(plan->packed, plan->landed, plan->buffer));
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send_NCCLHost(GallopIPC ipc, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  Plan            *plan = (Plan *)ipc->plan;
  const PetscCount bs   = ipc->kind.bs;

  PetscFunctionBegin;
  (void)number;
  plan->columns = columns;
  for (int p = 0; p < ipc->nneighbors; p++) {
    const GallopIPCNeighbor *neighbor = &ipc->neighbor[p];
    PetscReal               *to       = plan->packed + neighbor->first * bs * columns;

    for (PetscInt c = 0; c < columns; c++)
      for (PetscInt k = 0; k < neighbor->n; k++)
        for (PetscInt i = 0; i < bs; i++) *to++ = x[c * ld + ipc->index[neighbor->first + k] * bs + i];
  }
  if (GallopNCCLLands(ipc, columns)) (void)memset(plan->buffer, 0xff, (size_t)ipc->nghost * (size_t)(bs * columns) * sizeof(PetscReal)); /* not a number: who reads too early is wrong */
  PetscCall(GallopNCCLExchange(ipc, plan->functions, plan->packed, GallopNCCLLands(ipc, columns) ? plan->landed : ipc->buffer[buffer], columns, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_NCCLHost(GallopIPC ipc, int first, int last, unsigned int number)
{
  const Plan      *plan = (Plan *)ipc->plan;
  const PetscCount bs   = ipc->kind.bs;

  PetscFunctionBegin;
  (void)first, (void)last, (void)number;
  GallopCallNCCL(plan->functions, ipc->comm, "The exchange", (*plan->functions->hostwait)());
  for (int p = 0; p < ipc->ngive && GallopNCCLLands(ipc, plan->columns); p++)
    for (PetscInt c = 0; c < plan->columns; c++) {
      const GallopIPCNeighbor *neighbor = &ipc->neighbor[p];

      PetscCall(PetscArraycpy(plan->buffer + ((PetscCount)c * ipc->nghost + neighbor->place) * bs, plan->landed + ((PetscCount)plan->columns * neighbor->place + (PetscCount)c * neighbor->ngives) * bs,
                              neighbor->ngives * bs));
    }
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
