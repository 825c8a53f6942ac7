/* SPDX-License-Identifier: BSD-2-Clause */
/* What kernels need of a connection, on the GPU */

#include "gallopgroup.cuh"

/* GallopGroupGetDevice_Device - Which of the host's GPUs this process has */
PetscErrorCode GallopGroupGetDevice_Device(char id[16])
{
  int device;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetPCIBusId(id, 16, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopGroupCreate_Device - *device is NULL where there is no room */
PetscErrorCode GallopGroupCreate_Device(GallopIPC ipc, PetscMPIInt rank, void **device)
{
  DeviceGroup group = {};

  PetscFunctionBegin;
  group.n    = ipc->nneighbors;
  group.rank = rank;
  for (int k = 0; k < ipc->nneighbors; k++) {
    const GallopIPCNeighbor &neighbor = ipc->neighbor[k];
    GroupMember             &member   = group.member[neighbor.place];

    for (int b = 0; b < 2; b++) {
      member.to[b]   = neighbor.to[b];
      member.from[b] = ipc->buffer[b] + (size_t)neighbor.place * GALLOP_GROUP_REALS;
    }
    member.raise = neighbor.raise;
    member.flag  = (unsigned int *)(ipc->piece.memory + (size_t)k * GALLOP_IPC_FLAG);
  }
  PetscCall(GallopDeviceMalloc(sizeof(group), device));
  if (*device) PetscCall(GallopDeviceCopyIn(*device, &group, sizeof(group)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
