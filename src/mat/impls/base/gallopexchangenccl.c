/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Ghost values by NCCL: those for neighbors are packed, and a group of sends and receives brings them into the ghost vector, on a side stream, while PETSc's stream computes the diagonal block and
  then waits. One buffer for what leaves and one for what comes are enough: a product waits for its exchange, and the next exchange for what PETSc's stream did before it.

  NCCL wants the operations of a communicator in the same order on all of its processes, and those of several communicators too where a process is in more than one: products are collective, and a program
  has them in one order. MPI is called when a matrix is set up, and not for its products.
*/

#include <gallop/matgallopimpl.h>

typedef enum { NCCL_FINE, NCCL_PATTERN, NCCL_ROOM } Reason;
static const char *const Reasons[] = {NULL, "its PetscSF is of another kind than expected", "a process has no memory for it"};

/* What this process sends and receives by the PetscSF */
static PetscErrorCode FindMessages(MPI_Comm comm, PetscSF sf, PetscInt ghosts, GallopNCCL nccl, Reason *reason)
{
  PetscMPIInt        nranks, rank;
  const PetscMPIInt *ranks;
  const PetscInt    *offset, *mine, *roots;
  PetscInt           nleaves;
  PetscBool          basic;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)sf, &basic, PETSCSFBASIC, PETSCSFNEIGHBOR, ""));
  PetscCall(PetscSFGetGraph(sf, NULL, &nleaves, NULL, NULL));
  if (!basic || nleaves != ghosts) {
    *reason = NCCL_PATTERN;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSFGetRootRanks(sf, &nranks, &ranks, &offset, &mine, NULL));
  PetscCall(PetscMalloc1(nranks, &nccl->recv));
  for (PetscMPIInt r = 0; r < nranks; r++) {
    const PetscInt begin = offset[r], n = offset[r + 1] - begin;

    if (!n) continue;
    nccl->recv[nccl->nrecvs++] = (GallopNCCLMessage){ranks[r], mine[begin], n};
    for (PetscInt k = 0; k < n; k++)
      if (mine[begin + k] != mine[begin] + k) *reason = NCCL_PATTERN; /* they come in one piece */
  }
  PetscCall(PetscSFGetLeafRanks(sf, &nranks, &ranks, &offset, &roots));
  PetscCall(PetscMalloc1(nranks, &nccl->send));
  for (PetscMPIInt r = 0; r < nranks; r++)
    if (offset[r + 1] > offset[r]) nccl->send[nccl->nsends++] = (GallopNCCLMessage){ranks[r], offset[r], offset[r + 1] - offset[r]};
  nccl->nindex = nranks ? offset[nranks] : 0;
  PetscCall(PetscMalloc1(nccl->nindex, &nccl->index));
  PetscCall(PetscArraycpy(nccl->index, roots, nccl->nindex));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopNCCLCreate - Sets up the exchange of a matrix by NCCL, or tells why it cannot be done

  Collective

  Input Parameters:
+ comm   - PETSc's communicator of the matrix
. sf     - brings ghost values from their processes
. ghosts - how many this process has
- table  - the place where vectors are

  Output Parameters:
+ nccl - NULL on all processes where one of them cannot
- why  - the reason then
*/
PetscErrorCode GallopNCCLCreate(MPI_Comm comm, PetscSF sf, PetscInt ghosts, const GallopNCCLTable *table, GallopNCCL *nccl, const char **why)
{
  GallopNCCL  n;
  Reason      reason = NCCL_FINE;
  PetscMPIInt most;

  PetscFunctionBegin;
  *nccl = NULL;
  PetscCall(PetscNew(&n));
  n->table = table;
  PetscCall(GallopNCCLGetComm(comm, table, &n->comm, why));
  if (n->comm) {
    PetscCall(GallopNCCLOpen(&n->functions));
    PetscCall(FindMessages(comm, sf, ghosts, n, &reason));
    if (!reason) {
      PetscCall((*table->create)(n, ghosts));
      if (!n->plan) reason = NCCL_ROOM;
    }
    most = (PetscMPIInt)reason;
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm));
    *why = Reasons[most];
  }
  if (*why) PetscCall(GallopNCCLDestroy(&n));
  *nccl = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopNCCLDestroy - Others write to what goes here by NCCL alone, and what was queued for that is waited for */
PetscErrorCode GallopNCCLDestroy(GallopNCCL *nccl)
{
  GallopNCCL n = *nccl;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDestroy(&n->ghost));
  if (n->plan) PetscCall((*n->table->destroy)(n));
  PetscCall(PetscFree(n->send));
  PetscCall(PetscFree(n->recv));
  PetscCall(PetscFree(n->index));
  PetscCall(PetscFree(*nccl));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopNCCLBegin - Sends values of x to the neighbors; those that come from them are in ghost after GallopNCCLEnd(). A network that has failed in an earlier product is told of here. */
PetscErrorCode GallopNCCLBegin(GallopNCCL n, Vec x, Vec *ghost)
{
  const GallopNCCLFunctions *const f = n->functions;
  const PetscScalar               *array;
  void                            *stream;
  int                              failed = 0;

  PetscFunctionBegin;
  *ghost = n->ghost;
  if (!n->nsends && !n->nrecvs) PetscFunctionReturn(PETSC_SUCCESS);
  GallopCallNCCL(f, n->comm, "ncclCommGetAsyncError()", (*f->commgetasyncerror)(n->comm, &failed));
  GallopCallNCCL(f, n->comm, "An earlier operation", failed);
  PetscCall(VecGetArrayReadAndMemType(x, &array, NULL));
  PetscCall((*n->table->pack)(n, array, &stream));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  GallopCallNCCL(f, n->comm, "ncclGroupStart()", (*f->groupstart)());
  for (int k = 0; k < n->nsends; k++)
    GallopCallNCCL(f, n->comm, "ncclSend()", (*f->send)(n->packed + n->send[k].first, (size_t)n->send[k].n * sizeof(PetscScalar), GALLOP_NCCL_BYTE, n->send[k].rank, n->comm, stream));
  for (int k = 0; k < n->nrecvs; k++)
    GallopCallNCCL(f, n->comm, "ncclRecv()", (*f->recv)(n->array + n->recv[k].first, (size_t)n->recv[k].n * sizeof(PetscScalar), GALLOP_NCCL_BYTE, n->recv[k].rank, n->comm, stream));
  GallopCallNCCL(f, n->comm, "ncclGroupEnd()", (*f->groupend)());
  PetscCall((*n->table->sent)(n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopNCCLEnd(GallopNCCL n)
{
  PetscScalar *array;

  PetscFunctionBegin;
  if (!n->nsends && !n->nrecvs) PetscFunctionReturn(PETSC_SUCCESS);
  /* also for what is sent, which the next product writes over */
  PetscCall((*n->table->wait)(n));
  PetscCall(VecGetArrayWriteAndMemType(n->ghost, &array, NULL)); /* it has changed, and there */
  PetscCall(VecRestoreArrayWriteAndMemType(n->ghost, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- on the host, for tests: with a library that takes memory of the host, and that says when it has done what was queued */

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

static PetscErrorCode Create_Host(GallopNCCL n, PetscInt ghosts)
{
  PetscBool fails;

  PetscFunctionBegin;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc2(n->nindex, &n->packed, ghosts, &n->array));
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, ghosts, n->array, &n->ghost));
  n->plan = n; /* nothing to plan */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy_Host(GallopNCCL n)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(n->packed, n->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pack_Host(GallopNCCL n, const PetscScalar *x, void **stream)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n->nindex; k++) n->packed[k] = x[n->index[k]];
  *stream = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sent_Host(GallopNCCL n)
{
  PetscFunctionBegin;
  (void)n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_Host(GallopNCCL n)
{
  PetscFunctionBegin;
  GallopCallNCCL(n->functions, n->comm, "The exchange", (*n->functions->hostwait)());
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopNCCLTable GallopNCCLTable_Host = {
  .getdevice = GetDevice_Host,
  .recover   = Nothing_Host,
  .create    = Create_Host,
  .destroy   = Destroy_Host,
  .pack      = Pack_Host,
  .sent      = Sent_Host,
  .wait      = Wait_Host,
  .finish    = Nothing_Host,
};
