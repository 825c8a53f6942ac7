/* SPDX-License-Identifier: BSD-2-Clause */
/* The edges of a PetscSF as an exchange needs them: which units go to each neighbor, and where those go that come */

#include <gallop/matgallopimpl.h>

/* One side of the edges: processes, self among them, and for each of them places in this process's array; edge k of two processes is the same at both of them */
typedef struct {
  PetscMPIInt        nranks;
  const PetscMPIInt *ranks;
  const PetscInt    *offset, *place;
} Side;

/* Finds a neighbor by its rank, or adds it */
static GallopIPCNeighbor *Neighbor(GallopIPC ipc, PetscMPIInt rank)
{
  int k = 0;

  while (k < ipc->nneighbors && ipc->neighbor[k].rank != rank) k++;
  ipc->neighbor[k].rank = rank;
  if (k == ipc->nneighbors) ipc->nneighbors++;
  return &ipc->neighbor[k];
}

/* Edges of a scatter in the order of their places, those of one place in the order in which they come: so sums have one order. from: NULL for units 0, 1, ... */
static PetscErrorCode ListCreate(PetscInt n, const PetscInt place[], const PetscInt from[], GallopIPCList *list)
{
  PetscInt *count, size = 0;
  PetscBool several = PETSC_FALSE;

  PetscFunctionBegin;
  list->n = list->nfrom = n;
  for (PetscInt k = 0; k < n; k++) size = PetscMax(size, place[k] + 1);
  PetscCall(PetscCalloc1(size + 1, &count));
  for (PetscInt k = 0; k < n; k++)
    if (count[place[k]]++) several = PETSC_TRUE;
  PetscCall(PetscMalloc1(n, &list->place));
  if (several || from) PetscCall(PetscMalloc1(n, &list->from));
  if (!several) {
    PetscCall(PetscArraycpy(list->place, place, n));
    if (from) PetscCall(PetscArraycpy(list->from, from, n));
  } else {
    PetscInt places = 0, next = 0;

    for (PetscInt p = 0; p < size; p++) places += count[p] > 0;
    PetscCall(PetscMalloc1(places + 1, &list->start));
    list->n = 0;
    for (PetscInt p = 0; p < size; p++) {
      if (!count[p]) continue;
      list->place[list->n]   = p;
      list->start[list->n++] = next;
      next += count[p];
      count[p] = list->start[list->n - 1]; /* where the next edge to it goes */
    }
    list->start[places] = next;
    for (PetscInt k = 0; k < n; k++) list->from[count[place[k]]++] = from ? from[k] : k;
  }
  PetscCall(PetscFree(count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Neighbors that give values. In the buffer these are one neighbor after the other, or by their leaves. */
static PetscErrorCode FindGiving(GallopIPC ipc, PetscMPIInt rank, const Side *to, PetscBool *other)
{
  PetscInt *place, total = 0;

  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < to->nranks; r++) total += to->offset[r + 1] - to->offset[r];
  PetscCall(PetscMalloc1(total, &place));
  for (PetscMPIInt r = 0; r < to->nranks; r++) {
    const PetscInt     n = to->offset[r + 1] - to->offset[r], *from = to->place + to->offset[r];
    GallopIPCNeighbor *neighbor;

    if (!n || to->ranks[r] == rank) continue;
    neighbor         = Neighbor(ipc, to->ranks[r]);
    neighbor->place  = ipc->kind.scatter ? ipc->nghost : from[0];
    neighbor->ngives = n;
    for (PetscInt k = 0; k < n && !ipc->kind.scatter; k++)
      if (from[k] != from[0] + k) *other = PETSC_TRUE;
    PetscCall(PetscArraycpy(place + ipc->nghost, from, n));
    ipc->nghost += n;
  }
  ipc->ngive = ipc->nneighbors;
  if (ipc->kind.scatter) PetscCall(ListCreate(ipc->nghost, place, NULL, &ipc->list[GALLOP_IPC_REMOTE]));
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FindTaking(GallopIPC ipc, PetscMPIInt rank, const Side *from)
{
  PetscInt total = 0;

  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < from->nranks; r++) total += from->offset[r + 1] - from->offset[r];
  PetscCall(PetscMalloc1(total, &ipc->index));
  for (PetscMPIInt r = 0; r < from->nranks; r++) {
    const PetscInt     n = from->offset[r + 1] - from->offset[r];
    GallopIPCNeighbor *neighbor;

    if (!n || from->ranks[r] == rank) continue;
    neighbor        = Neighbor(ipc, from->ranks[r]);
    neighbor->first = ipc->nindex;
    neighbor->n     = n;
    PetscCall(PetscArraycpy(ipc->index + ipc->nindex, from->place + from->offset[r], n));
    ipc->nindex += n;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Edges of the process with itself: at both ends they are of the one process that has its rank */
static PetscErrorCode FindSelf(GallopIPC ipc, PetscMPIInt rank, const Side *from, const Side *to, PetscBool *other)
{
  PetscMPIInt f = 0, t = 0;
  PetscInt    n;

  PetscFunctionBegin;
  while (f < from->nranks && from->ranks[f] != rank) f++;
  while (t < to->nranks && to->ranks[t] != rank) t++;
  if (t == to->nranks) PetscFunctionReturn(PETSC_SUCCESS);
  n = to->offset[t + 1] - to->offset[t];
  if (n && !ipc->kind.scatter) *other = PETSC_TRUE;
  else if (n) PetscCall(ListCreate(n, to->place + to->offset[t], from->place + from->offset[f], &ipc->list[GALLOP_IPC_SELF]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopIPCFindEdges - Finds the neighbors of this process, what they get and give, and where values go; or *other: the edges are not of the kind that is expected
*/
PetscErrorCode GallopIPCFindEdges(MPI_Comm comm, PetscSF sf, GallopIPC ipc, PetscBool *other)
{
  PetscMPIInt rank;
  PetscInt    nleaves;
  PetscBool   basic;
  Side        side[2], *from, *to;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)sf, &basic, PETSCSFBASIC, PETSCSFNEIGHBOR, PETSCSFGALLOP, ""));
  PetscCall(PetscSFGetGraph(sf, NULL, &nleaves, NULL, NULL));
  *other = (PetscBool)(!basic || (ipc->kind.leaves >= 0 && nleaves != ipc->kind.leaves));
  if (*other) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSFGetLeafRanks(sf, &side[0].nranks, &side[0].ranks, &side[0].offset, &side[0].place)); /* places of roots */
  PetscCall(PetscSFGetRootRanks(sf, &side[1].nranks, &side[1].ranks, &side[1].offset, &side[1].place, NULL));
  from = &side[ipc->kind.reverse ? 1 : 0];
  to   = &side[ipc->kind.reverse ? 0 : 1];
  PetscCall(PetscCalloc1((size_t)from->nranks + (size_t)to->nranks + 1, &ipc->neighbor));
  PetscCall(FindGiving(ipc, rank, to, other));
  PetscCall(FindTaking(ipc, rank, from));
  PetscCall(FindSelf(ipc, rank, from, to, other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCFreeEdges(GallopIPC ipc)
{
  PetscFunctionBegin;
  for (int s = 0; s < 2; s++) {
    PetscCall(PetscFree(ipc->list[s].place));
    PetscCall(PetscFree(ipc->list[s].start));
    PetscCall(PetscFree(ipc->list[s].from));
  }
  PetscCall(PetscFree(ipc->neighbor));
  PetscCall(PetscFree(ipc->index));
  PetscFunctionReturn(PETSC_SUCCESS);
}
