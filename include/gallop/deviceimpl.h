/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The few things that host code asks of the GPU. Without CUDA the functions say that there is none. */

#include <petscviewer.h>

PETSC_INTERN PetscErrorCode GallopDeviceAvailable(PetscBool *);
PETSC_INTERN PetscErrorCode GallopDeviceView(PetscViewer); /* lines on CUDA and the GPUs */
PETSC_INTERN PetscErrorCode GallopDeviceDisabled(PetscBool *);
PETSC_INTERN PetscErrorCode GallopDeviceGetProcessors(int *multiprocessors);
PETSC_INTERN PetscErrorCode GallopDeviceWarn(PetscBool here);
PETSC_INTERN PetscErrorCode GallopCUSPARSETakes(PetscCount nz, PetscBool *takes); /* whether it multiplies a matrix with so many nonzeros */
PETSC_INTERN PetscErrorCode GallopDeviceIsCapturing(PetscBool *); /* whether a CUDA graph records PETSc's current stream */

/* *ptr stays NULL when the GPU has no room, which is no error here */
PETSC_INTERN PetscErrorCode GallopDeviceMalloc(size_t bytes, void **ptr);
PETSC_INTERN PetscErrorCode GallopDeviceMallocFails(PetscBool request, PetscBool *fails); /* whether -gallop_device_malloc_fail takes the room away; counts the requests */
PETSC_INTERN PetscErrorCode GallopDeviceGetFree(size_t *bytes);                           /* what the driver says is free; 0 while -gallop_device_malloc_fail takes the room away */
PETSC_INTERN PetscErrorCode GallopDeviceFits(size_t bytes, PetscBool *fits);              /* whether somebody else could have so much; a request, and cheap where there is twice as much */
PETSC_INTERN PetscErrorCode GallopDeviceTry(size_t bytes, PetscBool *fits);               /* the same without the driver's word: frees what is kept, and allocates */
PETSC_INTERN PetscErrorCode GallopDeviceFree(void *ptr);                                  /* waits for all work on the GPU */
PETSC_INTERN PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **ptr);              /* for work on the current stream, in which it is to be freed; costs little, for what is freed is kept */
PETSC_INTERN PetscErrorCode GallopWorkspaceFree(void *ptr);                               /* what was queued on the current stream may still use it */
PETSC_EXTERN PetscErrorCode GallopDeviceFreeKept(PetscBool workspace);                    /* gives back what was freed and is kept, of workspaces alone or all; waits for the GPU if that is anything */
PETSC_INTERN PetscErrorCode GallopPinnedMalloc(size_t bytes, void **ptr);                 /* memory of the host that the GPU copies from by itself; *ptr stays NULL when there is none to be had */
PETSC_INTERN PetscErrorCode GallopPinnedFree(size_t bytes, void *ptr);                    /* as many bytes as were asked for */
PETSC_INTERN PetscErrorCode GallopHostMap(const void *host, size_t bytes, void **device); /* kernels read memory of the host at *device, until GallopHostUnmap(); *device stays NULL where the system refuses */
PETSC_INTERN PetscErrorCode GallopHostUnmap(const void *host, size_t bytes);              /* after the kernels */
PETSC_INTERN PetscErrorCode GallopDeviceCopyIn(void *device, const void *host, size_t bytes);
PETSC_INTERN PetscErrorCode GallopDeviceGetReply(void **memory); /* a few pinned bytes that the GPU writes to by itself, until the next reply; NULL where there are none */
PETSC_INTERN PetscErrorCode GallopDeviceCopyOut(void *host, const void *device, size_t bytes);
PETSC_INTERN PetscErrorCode GallopCopyToHost(void *host, PetscMemType memtype, const void *from, size_t bytes); /* from either place */
PETSC_INTERN PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes);
PETSC_EXTERN PetscErrorCode GallopDeviceReadBandwidth(size_t bytes, PetscLogDouble *bandwidth); /* of memory in bytes per second, measured by reading this many bytes; 0 when there is no room for them */
PETSC_INTERN PetscErrorCode GallopDeviceZero(void *ptr, size_t bytes);
PETSC_INTERN PetscErrorCode GallopDeviceCountRows(PetscInt m, const PetscInt i[], PetscInt *rows); /* those that have entries, by CSR's i on the GPU; *rows stays as it is when there is no room to count */

/* What GallopPinnedMalloc() asks before; root is "" but for tests */
PETSC_EXTERN PetscErrorCode GallopHostMemoryAvailable(const char root[], PetscCount *available);
PETSC_EXTERN PetscErrorCode GallopPinnedTake(const char root[], PetscCount bytes, PetscBool *taken);
PETSC_EXTERN PetscErrorCode GallopPinnedGiveBack(PetscCount bytes);
