/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What exchanges do on the GPU whatever their way: units are packed and unpacked, and a product's work is on PETSc's stream or on the side stream */

#include <gallop/cudaimpl.h>
#include <gallop/exchangeimpl.h>

static constexpr int PackThreads = 256, PackUnroll = 4, PackValues = PackThreads * PackUnroll; /* of a thread block and column */
static constexpr int PackColumns = 16;                                                         /* thread blocks that share columns */

/* What the kernel needs of a neighbor, for one of the two buffers */
struct PackTo {
  PetscReal    *to;
  unsigned int *raise; /* NULL for no flag */
  PetscCount    ld;
  PetscInt      first;
  unsigned int  n, block; /* numbers of a column; the first thread block that works for it */
};

struct PackArguments {
  PackTo neighbor[GALLOP_IPC_NEIGHBORS];
  int    n;
};

/* A plan begins with it */
struct GallopDevicePlan {
  PetscInt     *index;
  GallopIPCList list[2]; /* on the GPU */
  PetscBool     sent;
  cudaStream_t  stream;       /* PETSc's, of the last product */
  cudaStream_t  side;         /* NULL where all is on PETSc's */
  cudaEvent_t   before, come; /* on PETSc's stream, when values may be packed, and on the side stream, when others have come, if that waits */
};

PETSC_INTERN PetscErrorCode GallopDevicePlanCopyIn(GallopIPC, GallopDevicePlan *);
PETSC_INTERN PetscErrorCode GallopDevicePlanTakeSide(GallopDevicePlan *);
PETSC_INTERN PetscErrorCode GallopDevicePlanReset(GallopDevicePlan *);
PETSC_INTERN PetscErrorCode GallopDevicePlanGetStream(GallopDevicePlan *, cudaStream_t *);
PETSC_INTERN PetscErrorCode GallopDevicePlanBegin(GallopDevicePlan *, cudaStream_t *);
PETSC_INTERN PetscErrorCode GallopDevicePack(cudaStream_t, const PackArguments &, unsigned int, PetscInt, const PetscInt *, const PetscReal *, PetscCount, PetscInt, unsigned int, unsigned int *, unsigned int *);
PETSC_INTERN PetscErrorCode GallopIPCUnpack_Device(GallopIPC, GallopIPCScope, const PetscReal *, PetscReal *, PetscBool);
PETSC_INTERN PetscErrorCode GallopIPCCreateVec_Device(PetscInt, PetscScalar *, Vec *);
PETSC_INTERN PetscErrorCode GallopIPCFinish_Device(void);

/* The plan's arrays on the GPU, which the caller has memory for */
static inline void GallopDevicePlanCarve(GallopIPC ipc, GallopCarver &carver, GallopDevicePlan *plan)
{
  carver.Take(plan->index, ipc->nindex);
  for (int s = 0; s < 2; s++) {
    const GallopIPCList &list = ipc->list[s];

    plan->list[s] = list;
    if (list.place) carver.Take(plan->list[s].place, list.n);
    if (list.start) carver.Take(plan->list[s].start, list.n + 1);
    if (list.from) carver.Take(plan->list[s].from, list.nfrom);
  }
}
