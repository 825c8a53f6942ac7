/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values that go from process to process: what exchangeimpl.h describes, whatever the way and wherever vectors are. MPI is called to connect the processes, and not for products.

  All processes of the PetscSF agree whether they do so. A process that cannot says so in a reduction, and all take PetscSF then.
*/

#include <gallop/matgallopimpl.h>

/* Why not; of several reasons the last one is told */
typedef enum { GALLOP_IPC_FINE, GALLOP_IPC_PATTERN, GALLOP_IPC_LARGE, GALLOP_IPC_MANY, GALLOP_IPC_HOSTS, GALLOP_IPC_SHUT, GALLOP_IPC_REFUSED, GALLOP_IPC_ROOM } Reason;
static const char *const Reasons[] = {NULL, "its PetscSF is of another kind than expected", "a process exchanges 2^31 numbers or more", "a process has too many neighbors", "some neighbors are on different hosts", "there is no memory that other processes can open", "a process cannot open the memory of another one", "a process has no memory for it"};

/* What a process tells a neighbor */
typedef struct {
  GallopIPCAllocation allocation;
  PetscInt64 buffer[2], flag, n, ld; /* places in the allocation of the values that come from the neighbor, and of its flag; how many units it gets from there, and numbers from column to column */
} Offer;

static PetscErrorCode Agree(MPI_Comm comm, Reason *reason)
{
  PetscMPIInt most = (PetscMPIInt)*reason;

  PetscFunctionBegin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm));
  *reason = (Reason)most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether MPI says that the neighbors can share memory. Of a communicator that PETSc has seen already it knows. */
static PetscErrorCode CheckHosts(MPI_Comm comm, GallopIPC ipc, Reason *reason)
{
#if PetscDefined(HAVE_MPI_PROCESS_SHARED_MEMORY)
  PetscShmComm shared;
  PetscMPIInt  local;

  PetscFunctionBegin;
  PetscCall(PetscShmCommGet(comm, &shared));
  for (int k = 0; k < ipc->nneighbors && !*reason; k++) {
    PetscCall(PetscShmCommGlobalToLocal(shared, ipc->neighbor[k].rank, &local));
    if (local == MPI_PROC_NULL) *reason = GALLOP_IPC_HOSTS;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  PetscFunctionBegin;
  (void)comm, (void)ipc;
  *reason = GALLOP_IPC_HOSTS;
  PetscFunctionReturn(PETSC_SUCCESS);
#endif
}

static size_t Aligned(size_t bytes)
{
  return (bytes + 255) / 256 * 256;
}

/* Numbers of a column of a buffer */
static PetscCount ColumnLength(GallopIPC ipc)
{
  return (PetscCount)ipc->nghost * ipc->kind.bs;
}

/* Bytes before a buffer */
static size_t BufferOffset(GallopIPC ipc, int buffer)
{
  return Aligned((size_t)ipc->nneighbors * GALLOP_IPC_FLAG) + (size_t)buffer * Aligned((size_t)ColumnLength(ipc) * (size_t)ipc->kind.columns * sizeof(PetscReal));
}

static PetscErrorCode CreateBuffers(GallopIPC ipc, Reason *reason)
{
  PetscFunctionBegin;
  if (!ipc->nneighbors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopIPCPieceGet(ipc->table, BufferOffset(ipc, 2), &ipc->piece));
  if (ipc->piece.memory) PetscCall((*ipc->table->clear)(ipc->piece.memory, BufferOffset(ipc, 0)));
  else *reason = GALLOP_IPC_SHUT;
  for (int b = 0; b < 2 && ipc->piece.memory; b++) ipc->buffer[b] = (PetscReal *)(ipc->piece.memory + BufferOffset(ipc, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tells each neighbor where this process's buffers and flags are, and opens theirs */
static PetscErrorCode Introduce(MPI_Comm comm, GallopIPC ipc, Reason *reason)
{
  const int           n = ipc->nneighbors;
  GallopIPCAllocation mine;
  Offer              *out, *in;
  MPI_Request        *requests;
  PetscMPIInt         tag;

  PetscFunctionBegin;
  PetscCall(PetscCommGetNewTag(comm, &tag));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc3(n, &out, n, &in, 2 * n, &requests));
  PetscCall(GallopIPCPieceGetAllocation(ipc->table, &ipc->piece, &mine));
  for (int k = 0; k < n; k++) {
    PetscCallMPI(MPIU_Irecv(&in[k], sizeof(Offer), MPI_BYTE, ipc->neighbor[k].rank, tag, comm, &requests[k]));
    out[k].allocation = mine;
    out[k].flag       = (PetscInt64)ipc->piece.offset + k * GALLOP_IPC_FLAG;
    for (int b = 0; b < 2; b++) out[k].buffer[b] = (PetscInt64)(ipc->piece.offset + BufferOffset(ipc, b) + (size_t)ipc->neighbor[k].place * (size_t)ipc->kind.bs * sizeof(PetscReal));
    out[k].n  = ipc->neighbor[k].ngives;
    out[k].ld = ColumnLength(ipc);
    PetscCallMPI(MPIU_Isend(&out[k], sizeof(Offer), MPI_BYTE, ipc->neighbor[k].rank, tag, comm, &requests[n + k]));
  }
  PetscCallMPI(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
  for (int k = 0; k < n; k++) {
    GallopIPCNeighbor *neighbor = &ipc->neighbor[k];
    void              *memory;

    PetscCheck(in[k].n == neighbor->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " units for process %d, which expects %" PetscInt64_FMT, neighbor->n, neighbor->rank, in[k].n);
    PetscCall(GallopIPCOpen(ipc->table, &in[k].allocation, &memory));
    if (!memory) {
      *reason = GALLOP_IPC_REFUSED;
      continue;
    }
    PetscCall(PetscMemcmp(mine.device, in[k].allocation.device, sizeof(mine.device), &neighbor->near));
    neighbor->raise = (unsigned int *)((char *)memory + in[k].flag);
    neighbor->ld    = (PetscCount)in[k].ld;
    for (int b = 0; b < 2; b++) neighbor->to[b] = (PetscReal *)((char *)memory + in[k].buffer[b]);
  }
  PetscCall(PetscFree3(out, in, requests));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FindEdges(MPI_Comm comm, PetscSF sf, GallopIPC ipc, Reason *reason)
{
  PetscBool other;

  PetscFunctionBegin;
  PetscCall(GallopIPCFindEdges(comm, sf, ipc, &other));
  if (other) *reason = GALLOP_IPC_PATTERN;
  else if (PetscMax(PetscMax(ipc->nghost, ipc->nindex), ipc->list[GALLOP_IPC_SELF].nfrom) >= (PetscInt64)PETSC_INT32_MAX / ipc->kind.bs)
    *reason = GALLOP_IPC_LARGE; /* kernels count numbers of a column by 32 bits */
  else if (ipc->comm && ipc->kind.columns > 1 && (PetscInt64)ipc->nghost * ipc->kind.bs * (PetscInt64)sizeof(PetscReal) > PETSC_INT32_MAX)
    *reason = GALLOP_IPC_LARGE; /* so long are rows of a copy at the most */
  else if (ipc->nneighbors > GALLOP_IPC_NEIGHBORS && !ipc->comm) *reason = GALLOP_IPC_MANY;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Buffers and flags, and where the neighbors have theirs */
static PetscErrorCode ConnectMemory(MPI_Comm comm, GallopIPC ipc, Reason *reason)
{
  PetscFunctionBegin;
  PetscCall(CheckHosts(comm, ipc, reason));
  if (!*reason) PetscCall(CreateBuffers(ipc, reason));
  PetscCall(Agree(comm, reason));
  if (!*reason) PetscCall(Introduce(comm, ipc, reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopIPCConnect - Connects the processes of a PetscSF, or tells why it cannot be done

  Collective

  Input Parameters:
+ comm  - PETSc's communicator
. sf    - the edges
. kind  - what is exchanged along them, on all processes alike but for the leaves
- table - the way, and the place where vectors are

  Output Parameters:
+ ipc - NULL on all processes where one of them cannot
- why - the reason then
*/
PetscErrorCode GallopIPCConnect(MPI_Comm comm, PetscSF sf, const GallopIPCKind *kind, const GallopIPCTable *table, GallopIPC *ipc, const char **why)
{
  Reason    reason = GALLOP_IPC_FINE;
  GallopIPC i;

  PetscFunctionBegin;
  PetscCall(PetscNew(&i));
  i->table = table;
  i->kind  = *kind;
  *why     = NULL;
  if (table->join) PetscCall((*table->join)(comm, i, why));
  if (!*why) {
    PetscCall(FindEdges(comm, sf, i, &reason));
    if (!i->comm) PetscCall(ConnectMemory(comm, i, &reason));
    if (!reason) PetscCall((*table->plancreate)(i, &i->plan));
    if (!reason && !i->plan) reason = GALLOP_IPC_ROOM;
    PetscCall(Agree(comm, &reason));
    *why = Reasons[reason];
  }
  if (*why) PetscCall(GallopIPCDestroy(&i));
  *ipc = i;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopIPCDestroy - Waits until all neighbors have written what they had to for this process, whose buffers another matrix may use then

  It waits for products that the neighbors have begun or will begin, since a product is collective, and for nothing else that they do. Buffers of NCCL's exchanges the plan frees, when all is done.
*/
PetscErrorCode GallopIPCDestroy(GallopIPC *ipc)
{
  GallopIPC i = *ipc;

  PetscFunctionBegin;
  if (!i) PetscFunctionReturn(PETSC_SUCCESS);
  if (i->product && i->piece.memory) {
    PetscCall((*i->table->wait)(i, 0, i->nneighbors, i->product));
    PetscCall((*i->table->finish)());
  }
  for (int b = 0; b < 2; b++) PetscCall(VecDestroy(&i->ghost[b]));
  if (i->plan) PetscCall((*i->table->plandestroy)(&i->plan));
  if (i->piece.memory) PetscCall(GallopIPCPieceReturn(i->table, &i->piece));
  PetscCall(GallopIPCFreeEdges(i));
  PetscCall(PetscFree(*ipc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCSend - Begins a product: sends columns of x, which are ld numbers apart, to the neighbors. What comes from them is in *buffer after GallopIPCReceive(), until the next product, or the one after it where processes write into each other's memory. */
PetscErrorCode GallopIPCSend(GallopIPC ipc, const PetscReal *x, PetscCount ld, PetscInt columns, int *buffer)
{
  const unsigned int number = ipc->product + 1;

  PetscFunctionBegin;
  *buffer = (int)(number % 2);
  if (ipc->nneighbors) {
    /* those that give values have been waited for in the last product, and all by NCCL */
    if (ipc->ngive < ipc->nneighbors && !ipc->comm) PetscCall((*ipc->table->wait)(ipc, ipc->ngive, ipc->nneighbors, number - 1));
    PetscCall((*ipc->table->send)(ipc, *buffer, number, x, ld, columns));
  }
  ipc->product = number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCReceive(GallopIPC ipc)
{
  const int last = ipc->comm ? ipc->nneighbors : ipc->ngive; /* NCCL's side stream reads x also where nothing comes */

  PetscFunctionBegin;
  if (last) PetscCall((*ipc->table->wait)(ipc, 0, last, ipc->product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCBegin - Sends values of x to the neighbors; those that come from them are in ghost after GallopIPCEnd() */
PetscErrorCode GallopIPCBegin(GallopIPC ipc, Vec x, Vec *ghost)
{
  const PetscScalar *array;
  int                b;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(x, &array, NULL));
  PetscCall(GallopIPCSend(ipc, (const PetscReal *)array, 0, 1, &b));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  if (!ipc->ghost[b]) PetscCall((*ipc->table->createvec)(ipc->nghost, (PetscScalar *)ipc->buffer[b], &ipc->ghost[b]));
  *ghost = ipc->ghost[b];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCEnd(GallopIPC ipc, Vec ghost)
{
  PetscScalar *array;

  PetscFunctionBegin;
  PetscCall(GallopIPCReceive(ipc));
  if (!ipc->ngive) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayWriteAndMemType(ghost, &array, NULL)); /* it has changed, and there */
  PetscCall(VecRestoreArrayWriteAndMemType(ghost, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCScatterBegin - Sends units of x to the neighbors, and puts those that stay in this process where they go in y, or adds them there; GallopIPCScatterEnd() does so with those that come */
PetscErrorCode GallopIPCScatterBegin(GallopIPC ipc, const PetscReal *x, PetscReal *y, PetscBool add)
{
  int buffer;

  PetscFunctionBegin;
  PetscCall(GallopIPCSend(ipc, x, 0, 1, &buffer));
  if (ipc->list[GALLOP_IPC_SELF].n) PetscCall((*ipc->table->unpack)(ipc, GALLOP_IPC_SELF, x, y, add));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCScatterEnd(GallopIPC ipc, PetscReal *y, PetscBool add)
{
  PetscFunctionBegin;
  PetscCall(GallopIPCReceive(ipc));
  if (ipc->list[GALLOP_IPC_REMOTE].n) PetscCall((*ipc->table->unpack)(ipc, GALLOP_IPC_REMOTE, ipc->buffer[ipc->product % 2], y, add));
  PetscFunctionReturn(PETSC_SUCCESS);
}
