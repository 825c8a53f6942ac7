/* SPDX-License-Identifier: BSD-2-Clause */
/* How processes are connected that add up their sums on their GPUs: as for an exchange in which each has one unit for all others */

#include <gallop/matgallopimpl.h>
#include "gallopgroup.h"

#if PetscDefined(HAVE_CUDA)
/* Leaf k is the one root of the k-th of the other processes */
static PetscErrorCode CreateEdges(MPI_Comm comm, PetscMPIInt rank, PetscMPIInt size, PetscSF *sf)
{
  PetscSFNode *remote;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(size - 1, &remote));
  for (PetscMPIInt k = 0; k < size - 1; k++) remote[k] = (PetscSFNode){k < rank ? k : k + 1, 0};
  PetscCall(PetscSFCreate(comm, sf));
  PetscCall(PetscSFSetType(*sf, PETSCSFBASIC));
  PetscCall(PetscSFSetGraph(*sf, 1, size - 1, NULL, PETSC_OWN_POINTER, remote, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(*sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether some processes have the same GPU, of which they tell each other */
static PetscErrorCode ShareDevices(MPI_Comm comm, PetscMPIInt size, PetscBool *share)
{
  struct {
    char host[64], device[16];
  } mine, *all;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&mine, sizeof(mine)));
  PetscCall(PetscGetHostName(mine.host, sizeof(mine.host)));
  PetscCall(GallopGroupGetDevice_Device(mine.device));
  PetscCall(PetscMalloc1(size, &all));
  PetscCallMPI(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, comm));
  *share = PETSC_FALSE;
  for (PetscMPIInt r = 1; r < size; r++)
    for (PetscMPIInt q = 0; q < r; q++)
      if (!memcmp(&all[r], &all[q], sizeof(mine))) *share = PETSC_TRUE;
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopGroupCreate - Connects the processes of a communicator, or tells why it cannot be done

  Collective

  Input Parameters:
+ comm   - PETSc's communicator, of several processes
. table  - how they write into each other's memory
- shared - also where processes may share a GPU, which goes from one to the other in turn, so that waits are long

  Output Parameters:
+ group - zeroed on all processes where one of them cannot
- why   - the reason then
*/
PetscErrorCode GallopGroupCreate(MPI_Comm comm, const GallopIPCTable *table, PetscBool shared, GallopGroup *group, const char **why)
{
  const GallopIPCKind kind = {.leaves = -1, .bs = GALLOP_GROUP_REALS, .columns = 1};
  PetscMPIInt         rank, size, all;
  PetscSF             sf;
  PetscBool           share = PETSC_FALSE, fits;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(group, sizeof(*group)));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCallMPI(MPI_Comm_size(MPI_COMM_WORLD, &all)); /* PETSC_COMM_WORLD is one process on the first of those of -mpi_linear_solver_server, and all are to decide alike */
  *why = size - 1 > GALLOP_IPC_NEIGHBORS ? "there are too many" : size < all && !shared ? "there are others, which may share their GPUs" : NULL;
  if (!*why && !shared) PetscCall(ShareDevices(comm, size, &share));
  if (share) *why = "processes share a GPU";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CreateEdges(comm, rank, size, &sf));
  PetscCall(GallopIPCConnect(comm, sf, &kind, table, &group->ipc, why));
  PetscCall(PetscSFDestroy(&sf));
  if (!group->ipc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopGroupCreate_Device(group->ipc, rank, &group->device));
  fits = (PetscBool)(group->device != NULL);
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_C_BOOL, MPI_LAND, comm));
  if (!fits) {
    *why = "the GPU of a process has no room";
    PetscCall(GallopGroupDestroy(group));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopGroupDestroy - Once all sums of this process are known, nobody writes for it any more */
PetscErrorCode GallopGroupDestroy(GallopGroup *group)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(group->device)); /* waits for kernels */
  PetscCall(GallopIPCDestroy(&group->ipc));
  PetscCall(PetscMemzero(group, sizeof(*group)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
