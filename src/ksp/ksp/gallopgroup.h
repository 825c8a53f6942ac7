/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that add up the sums of a fused solver on their GPUs: each writes its own into the memory of all others, by CUDA IPC, waits for theirs, and adds all in the order of ranks */
#pragma once

#include <petscksp.h>
#include <gallop/exchangeimpl.h>

/* Numbers of the sums of a kernel, of this kind or another */
#define GALLOP_GROUP_REALS (4 * GALLOP_IPC_SCALAR)

typedef struct {
  GallopIPC ipc;
  void     *device; /* a DeviceGroup, which kernels take; NULL for no group */
} GallopGroup;

PETSC_INTERN PetscErrorCode GallopGroupCreate(MPI_Comm, const GallopIPCTable *, PetscBool, GallopGroup *, const char **);
PETSC_INTERN PetscErrorCode GallopGroupDestroy(GallopGroup *);
PETSC_INTERN PetscErrorCode GallopGroupGetDevice_Device(char[16]);
PETSC_INTERN PetscErrorCode GallopGroupCreate_Device(GallopIPC, PetscMPIInt, void **);
