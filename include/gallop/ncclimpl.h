/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Values that go from process to process by NCCL: what is used of it

  The library is opened when the first matrix asks for it, so that neither a build nor a program needs it. The types and numbers are those of NCCL's ABI since 2.7, the first version that sends
  from process to process, up to 2.28.9; all of 2 have them.
*/

#include <gallop/exchangeimpl.h>

#define GALLOP_NCCL_FIRST 2700  /* ncclGetVersion() of 2.7.0; from 2.9 on it is 20900 and so on */
#define GALLOP_NCCL_END   30000 /* of 3.0.0, whose ABI nobody knows */
#define GALLOP_NCCL_BYTE  0     /* ncclInt8: numbers of any kind are sent as bytes */

/* ncclUniqueId, which is passed by value */
typedef struct {
  char internal[128];
} GallopNCCLId;

/* NCCL's functions. A result is an ncclResult_t, 0 for success; a stream is a cudaStream_t. */
typedef struct {
  int (*getversion)(int *);
  int (*getuniqueid)(GallopNCCLId *);
  int (*comminitrank)(GallopNCCLComm *, int ranks, GallopNCCLId, int rank);
  int (*commdestroy)(GallopNCCLComm);
  int (*commabort)(GallopNCCLComm);
  int (*commgetasyncerror)(GallopNCCLComm, int *);
  int (*groupstart)(void);
  int (*groupend)(void);
  int (*send)(const void *, size_t, int type, int rank, GallopNCCLComm, void *stream);
  int (*recv)(void *, size_t, int type, int rank, GallopNCCLComm, void *stream);
  const char *(*geterrorstring)(int);
  const char *(*getlasterror)(GallopNCCLComm); /* NULL before 2.13 */

  /* of the library of the tests alone, which takes memory of the host: which GPU this process would have, and to wait for what has been queued */
  int (*hostdevice)(char id[16]);
  int (*hostwait)(void);
} GallopNCCLFunctions;

/* What the place where vectors are tells of itself. There is one side stream per process, whatever the communicator: kernels of NCCL begin on it in the order of the program, which is the same on all processes. */
typedef struct {
  PetscErrorCode (*getdevice)(char id[16], PetscBool *part); /* whose communicator it would be; part: of a GPU, which NCCL takes for all of it */
  PetscErrorCode (*recover)(void);                           /* an error of NCCL's is no error of the next call */
  PetscErrorCode (*finish)(void);                            /* the process waits for the side stream */
} GallopNCCLPlace;

/* gallopnccl.c */
PETSC_INTERN char           GallopNCCLName[32]; /* NCCL with its version, once it is open */
PETSC_INTERN PetscErrorCode GallopNCCLOpen(const GallopNCCLFunctions **);
PETSC_INTERN PetscErrorCode GallopNCCLGetComm(MPI_Comm, const GallopNCCLPlace *, GallopNCCLComm *, const char **);
PETSC_INTERN PetscErrorCode GallopNCCLFinalize(void);

/* gallopexchangenccl.c */
PETSC_INTERN PetscBool      GallopNCCLLands(GallopIPC, PetscInt);
PETSC_INTERN PetscErrorCode GallopNCCLExchange(GallopIPC, const GallopNCCLFunctions *, const PetscReal *, PetscReal *, PetscInt, void *);

PETSC_INTERN const GallopNCCLPlace GallopNCCLPlace_Host;

/* An error of NCCL's as one of PETSc's; of a communicator or NULL */
#define GallopCallNCCL(functions, comm, name, call) \
  do { \
    const int result_ = (call); \
    PetscCheck(!result_, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s of NCCL failed: %s (%d)%s%s", name, (functions)->geterrorstring(result_), result_, (functions)->getlasterror ? ". Its last error: " : "", \
               (functions)->getlasterror ? (functions)->getlasterror(comm) : ""); \
  } while (0)
