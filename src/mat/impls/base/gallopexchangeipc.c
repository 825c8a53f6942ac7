/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Ghost values that processes of one host write into each other's memory: what exchangeimpl.h describes, wherever vectors are. MPI is called when a matrix is set up, and not for its products.

  All processes of the matrix agree whether they do so. A process that cannot says so in a reduction, and all take PetscSF then.
*/

#include <gallop/matgallopimpl.h>

/* Why not; of several reasons the last one is told */
typedef enum { GALLOP_IPC_FINE, GALLOP_IPC_PATTERN, GALLOP_IPC_MANY, GALLOP_IPC_HOSTS, GALLOP_IPC_ROOM, GALLOP_IPC_REFUSED } Reason;
static const char *const Reasons[] = {NULL, "its PetscSF is of another kind than expected", "a process has too many neighbors", "some neighbors are on different hosts", "there is no memory that other processes can open", "a process cannot open the memory of another one"};

/* What a process tells a neighbor */
typedef struct {
  GallopIPCAllocation allocation;
  PetscInt64          buffer[2], flag, n; /* places in the allocation of the values that come from the neighbor, and of its flag; how many values it gets from there */
} Offer;

static PetscErrorCode Agree(MPI_Comm comm, Reason *reason)
{
  PetscMPIInt most = (PetscMPIInt)*reason;

  PetscFunctionBegin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm));
  *reason = (Reason)most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finds a neighbor by its rank, or adds it; NULL where there is no room for it */
static GallopIPCNeighbor *Neighbor(GallopIPC ipc, PetscMPIInt rank)
{
  GallopIPCNeighbor *neighbor;
  int                k = 0;

  while (k < ipc->nneighbors && ipc->neighbor[k].rank != rank) k++;
  if (k == GALLOP_IPC_NEIGHBORS) return NULL;
  neighbor       = &ipc->neighbor[k];
  neighbor->rank = rank;
  if (k == ipc->nneighbors) ipc->nneighbors++;
  return neighbor;
}

/* Neighbors of this process by the PetscSF, with first[k] the place among the ghost values of those that come from neighbor k */
static PetscErrorCode FindNeighbors(MPI_Comm comm, PetscSF sf, PetscInt ghosts, GallopIPC ipc, PetscInt first[], PetscInt ngives[], Reason *reason)
{
  PetscMPIInt        nranks, rank;
  const PetscMPIInt *ranks;
  const PetscInt    *offset, *mine, *roots;
  PetscInt           nleaves;
  PetscBool          basic;
  GallopIPCNeighbor *neighbor;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)sf, &basic, PETSCSFBASIC, PETSCSFNEIGHBOR, ""));
  PetscCall(PetscSFGetGraph(sf, NULL, &nleaves, NULL, NULL));
  if (!basic || nleaves != ghosts) {
    *reason = GALLOP_IPC_PATTERN;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSFGetRootRanks(sf, &nranks, &ranks, &offset, &mine, NULL));
  for (PetscMPIInt r = 0; r < nranks; r++) {
    const PetscInt n = offset[r + 1] - offset[r];

    if (!n) continue;
    neighbor = Neighbor(ipc, ranks[r]);
    if (!neighbor) *reason = GALLOP_IPC_MANY;
    if (ranks[r] == rank) *reason = GALLOP_IPC_PATTERN;
    for (PetscInt k = offset[r]; k < offset[r + 1]; k++)
      if (mine[k] != mine[offset[r]] + k - offset[r]) *reason = GALLOP_IPC_PATTERN;
    if (*reason) PetscFunctionReturn(PETSC_SUCCESS);
    neighbor->gives                  = PETSC_TRUE;
    first[neighbor - ipc->neighbor]  = mine[offset[r]];
    ngives[neighbor - ipc->neighbor] = n;
  }
  ipc->ngive = ipc->nneighbors;
  PetscCall(PetscSFGetLeafRanks(sf, &nranks, &ranks, &offset, &roots));
  ipc->nindex = 0;
  for (PetscMPIInt r = 0; r < nranks; r++) ipc->nindex += offset[r + 1] - offset[r];
  PetscCall(PetscMalloc1(ipc->nindex, &ipc->index));
  ipc->nindex = 0;
  for (PetscMPIInt r = 0; r < nranks; r++) {
    const PetscInt n = offset[r + 1] - offset[r];

    if (!n) continue;
    neighbor = Neighbor(ipc, ranks[r]);
    if (!neighbor) *reason = GALLOP_IPC_MANY;
    if (ranks[r] == rank) *reason = GALLOP_IPC_PATTERN;
    if (*reason) PetscFunctionReturn(PETSC_SUCCESS);
    neighbor->first = ipc->nindex;
    neighbor->n     = n;
    PetscCall(PetscArraycpy(ipc->index + ipc->nindex, roots + offset[r], n));
    ipc->nindex += n;
  }
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

/* Bytes before a buffer */
static size_t BufferOffset(GallopIPC ipc, PetscInt ghosts, int buffer)
{
  return Aligned((size_t)ipc->nneighbors * GALLOP_IPC_FLAG) + (size_t)buffer * Aligned((size_t)ghosts * sizeof(PetscScalar));
}

static PetscErrorCode CreateBuffers(GallopIPC ipc, PetscInt ghosts, Reason *reason)
{
  PetscFunctionBegin;
  if (!ipc->nneighbors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopIPCPieceGet(ipc->table, BufferOffset(ipc, ghosts, 2), &ipc->piece));
  if (ipc->piece.memory) PetscCall((*ipc->table->clear)(ipc->piece.memory, BufferOffset(ipc, ghosts, 0)));
  else *reason = GALLOP_IPC_ROOM;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tells each neighbor where this process's buffers and flags are, and opens theirs */
static PetscErrorCode Connect(MPI_Comm comm, GallopIPC ipc, PetscInt ghosts, const PetscInt first[], const PetscInt ngives[], Reason *reason)
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
    for (int b = 0; b < 2; b++) out[k].buffer[b] = (PetscInt64)(ipc->piece.offset + BufferOffset(ipc, ghosts, b) + (size_t)first[k] * sizeof(PetscScalar));
    out[k].n = ngives[k];
    PetscCallMPI(MPIU_Isend(&out[k], sizeof(Offer), MPI_BYTE, ipc->neighbor[k].rank, tag, comm, &requests[n + k]));
  }
  PetscCallMPI(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
  for (int k = 0; k < n; k++) {
    GallopIPCNeighbor *neighbor = &ipc->neighbor[k];
    void              *memory;

    PetscCheck(in[k].n == neighbor->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " ghost values for process %d, which expects %" PetscInt64_FMT, neighbor->n, neighbor->rank, in[k].n);
    PetscCall(GallopIPCOpen(ipc->table, &in[k].allocation, &memory));
    if (!memory) {
      *reason = GALLOP_IPC_REFUSED;
      continue;
    }
    PetscCall(PetscMemcmp(mine.device, in[k].allocation.device, sizeof(mine.device), &neighbor->near));
    neighbor->raise = (unsigned int *)((char *)memory + in[k].flag);
    for (int b = 0; b < 2; b++) neighbor->to[b] = (PetscScalar *)((char *)memory + in[k].buffer[b]);
  }
  PetscCall(PetscFree3(out, in, requests));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopIPCCreate - Connects the processes of a matrix, or tells why it cannot be done

  Collective

  Input Parameters:
+ comm   - PETSc's communicator of the matrix
. sf     - brings ghost values from their processes
. ghosts - how many this process has
- table  - the place where vectors are

  Output Parameters:
+ ipc - NULL on all processes where one of them cannot
- why - the reason then
*/
PetscErrorCode GallopIPCCreate(MPI_Comm comm, PetscSF sf, PetscInt ghosts, const GallopIPCTable *table, GallopIPC *ipc, const char **why)
{
  PetscInt  first[GALLOP_IPC_NEIGHBORS] = {0}, ngives[GALLOP_IPC_NEIGHBORS] = {0};
  Reason    reason = GALLOP_IPC_FINE;
  GallopIPC i;

  PetscFunctionBegin;
  PetscCall(PetscNew(&i));
  i->table = table;
  PetscCall(PetscCalloc1(GALLOP_IPC_NEIGHBORS, &i->neighbor));
  PetscCall(FindNeighbors(comm, sf, ghosts, i, first, ngives, &reason));
  PetscCall(CheckHosts(comm, i, &reason));
  if (!reason) PetscCall(CreateBuffers(i, ghosts, &reason));
  PetscCall(Agree(comm, &reason));
  if (!reason) {
    PetscCall(Connect(comm, i, ghosts, first, ngives, &reason));
    if (!reason) {
      for (int b = 0; b < 2; b++) PetscCall((*table->createvec)(ghosts, i->piece.memory ? (PetscScalar *)(i->piece.memory + BufferOffset(i, ghosts, b)) : NULL, &i->ghost[b]));
      PetscCall((*table->plancreate)(i, &i->plan));
      if (!i->plan) reason = GALLOP_IPC_ROOM;
    }
    PetscCall(Agree(comm, &reason));
  }
  *why = Reasons[reason];
  if (reason) PetscCall(GallopIPCDestroy(&i));
  *ipc = i;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopIPCDestroy - Waits until all neighbors have written what they had to for this process, whose buffers another matrix may use then

  It waits for products that the neighbors have begun or will begin, since a product is collective, and for nothing else that they do.
*/
PetscErrorCode GallopIPCDestroy(GallopIPC *ipc)
{
  GallopIPC i = *ipc;

  PetscFunctionBegin;
  if (!i) PetscFunctionReturn(PETSC_SUCCESS);
  if (i->product && i->nneighbors) {
    PetscCall((*i->table->wait)(i, 0, i->nneighbors, i->product));
    PetscCall((*i->table->finish)());
  }
  if (i->plan) PetscCall((*i->table->plandestroy)(&i->plan));
  for (int b = 0; b < 2; b++) PetscCall(VecDestroy(&i->ghost[b]));
  PetscCall(GallopIPCPieceReturn(i->table, &i->piece));
  PetscCall(PetscFree(i->neighbor));
  PetscCall(PetscFree(i->index));
  PetscCall(PetscFree(*ipc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCBegin - Sends values of x to the neighbors; those that come from them are in ghost after GallopIPCEnd() */
PetscErrorCode GallopIPCBegin(GallopIPC ipc, Vec x, Vec *ghost)
{
  const PetscScalar *array;
  const unsigned int number = ++ipc->product;
  const int          buffer = (int)(number % 2);

  PetscFunctionBegin;
  *ghost = ipc->ghost[buffer];
  if (!ipc->nneighbors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayReadAndMemType(x, &array, NULL));
  /* those that give values have been waited for in the last product */
  if (ipc->ngive < ipc->nneighbors) PetscCall((*ipc->table->wait)(ipc, ipc->ngive, ipc->nneighbors, number - 1));
  PetscCall((*ipc->table->send)(ipc, buffer, number, array));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCEnd(GallopIPC ipc, Vec ghost)
{
  PetscScalar *array;

  PetscFunctionBegin;
  if (!ipc->ngive) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*ipc->table->wait)(ipc, 0, ipc->ngive, ipc->product));
  PetscCall(VecGetArrayWriteAndMemType(ghost, &array, NULL)); /* it has changed, and there */
  PetscCall(VecRestoreArrayWriteAndMemType(ghost, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}
