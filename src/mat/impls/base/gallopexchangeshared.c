/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by memory of the host that processes share, with the flags of CUDA IPC: -mat_gallop_exchange shared and -sf_gallop_exchange shared, for tests on machines without a GPU

  It is Linux's only: an allocation is a file without a name, which other processes open by its number in /proc.
*/

#define _GNU_SOURCE
#include <gallop/matgallopimpl.h>
#include <sched.h>
#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
  #include <sys/mman.h>
#endif

#define POLLS 64 /* of a flag, until MPI is given a chance: another process may wait for a message */

static PetscErrorCode Map(int file, size_t bytes, void **memory)
{
  PetscFunctionBegin;
#if defined(__linux__)
  *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (*memory == MAP_FAILED) *memory = NULL;
#else
  (void)file, (void)bytes;
  *memory = NULL;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Allocate_Shared(size_t bytes, void **memory, GallopIPCHandle *handle, char device[16])
{
  int       file = -1;
  PetscBool fails;

  PetscFunctionBegin;
  *memory = NULL;
  (void)device;
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails));
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
#if defined(MFD_CLOEXEC)
  file = memfd_create("gallop", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes) == 0) PetscCall(Map(file, bytes, memory));
  if (file >= 0 && !*memory) (void)close(file);
#endif
  PetscCall(PetscMemcpy(handle->bytes, &file, sizeof(file)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Close_Shared(const GallopIPCAllocation *allocation, void *memory)
{
  PetscFunctionBegin;
#if defined(__linux__)
  (void)munmap(memory, (size_t)allocation->bytes);
#else
  (void)allocation, (void)memory;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free_Shared(const GallopIPCAllocation *allocation, void *memory)
{
  int file;

  PetscFunctionBegin;
  PetscCall(PetscMemcpy(&file, allocation->handle.bytes, sizeof(file)));
  PetscCall(Close_Shared(allocation, memory));
  (void)close(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Open_Shared(const GallopIPCAllocation *allocation, void **memory)
{
  char path[64];
  int  file, here;

  PetscFunctionBegin;
  *memory = NULL;
  PetscCall(PetscMemcpy(&file, allocation->handle.bytes, sizeof(file)));
  PetscCall(PetscSNPrintf(path, sizeof(path), "/proc/%" PetscInt64_FMT "/fd/%d", allocation->process[0], file));
  here = open(path, O_RDWR);
  if (here < 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Map(here, (size_t)allocation->bytes, memory));
  (void)close(here);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Clear_Shared(void *memory, size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(memory, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCCreateVec_Host(PetscInt n, PetscScalar *array, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, array, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanCreate_Shared(GallopIPC ipc, void **plan)
{
  PetscFunctionBegin;
  *plan = ipc; /* nothing to plan */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanDestroy_Shared(void **plan)
{
  PetscFunctionBegin;
  *plan = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send_Shared(GallopIPC ipc, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  const PetscInt bs = ipc->kind.bs;

  PetscFunctionBegin;
  for (int k = 0; k < ipc->nneighbors; k++) {
    const GallopIPCNeighbor *neighbor = &ipc->neighbor[k];

    for (PetscInt c = 0; c < columns; c++)
      for (PetscInt j = 0; j < neighbor->n; j++)
        for (PetscInt i = 0; i < bs; i++) neighbor->to[buffer][c * neighbor->ld + (PetscCount)j * bs + i] = x[c * ld + (PetscCount)ipc->index[neighbor->first + j] * bs + i];
    __atomic_store_n(neighbor->raise, number, __ATOMIC_RELEASE);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCUnpack_Host(GallopIPC ipc, GallopIPCScope scope, const PetscReal *from, PetscReal *to, PetscBool add)
{
  const GallopIPCList *list = &ipc->list[scope];
  const PetscInt       bs   = ipc->kind.bs;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < list->n; k++) {
    const PetscInt begin = list->start ? list->start[k] : k, end = list->start ? list->start[k + 1] : k + 1;
    PetscReal     *place = to + (PetscCount)list->place[k] * bs;

    for (PetscInt e = begin; e < end; e++) {
      const PetscReal *unit = from + (PetscCount)(list->from ? list->from[e] : e) * bs;

      for (PetscInt i = 0; i < bs; i++) place[i] = add ? place[i] + unit[i] : unit[i];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait_Shared(GallopIPC ipc, int first, int last, unsigned int number)
{
  int polls = 0, there;

  PetscFunctionBegin;
  for (int k = first; k < last; k++) {
    const unsigned int *flag = (const unsigned int *)(ipc->piece.memory + (size_t)k * GALLOP_IPC_FLAG);

    while ((int)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - number) < 0) { /* numbers may wrap around */
      if (++polls % POLLS == 0) PetscCallMPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, PETSC_COMM_SELF, &there, MPI_STATUS_IGNORE));
      (void)sched_yield();
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Finish_Shared(void)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCDescribe_Host(GallopIPC ipc, const char **how)
{
  PetscFunctionBegin;
  (void)ipc;
  *how = "the process";
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopIPCTable GallopIPCTable_Shared = {
  .name        = "memory that processes share",
  .allocate    = Allocate_Shared,
  .free        = Free_Shared,
  .open        = Open_Shared,
  .close       = Close_Shared,
  .clear       = Clear_Shared,
  .createvec   = GallopIPCCreateVec_Host,
  .plancreate  = PlanCreate_Shared,
  .plandestroy = PlanDestroy_Shared,
  .send        = Send_Shared,
  .wait        = Wait_Shared,
  .unpack      = GallopIPCUnpack_Host,
  .finish      = Finish_Shared,
  .describe    = GallopIPCDescribe_Host,
};
