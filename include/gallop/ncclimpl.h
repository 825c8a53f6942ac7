/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Ghost values by NCCL: what is used of it, and the exchange of one matrix

  The library is opened when the first matrix asks for it, so that neither a build nor a program needs it. The types and numbers are those of NCCL's ABI since 2.7, the first version that sends
  from process to process, up to 2.28.9; all of 2 have them.
*/

#include <petscvec.h>
#include <petscsf.h>

#define GALLOP_NCCL_FIRST 2700  /* ncclGetVersion() of 2.7.0; from 2.9 on it is 20900 and so on */
#define GALLOP_NCCL_END   30000 /* of 3.0.0, whose ABI nobody knows */
#define GALLOP_NCCL_BYTE  0     /* ncclInt8: numbers of any kind are sent as bytes */

typedef struct _GallopNCCLComm *GallopNCCLComm; /* ncclComm_t */

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

typedef struct _GallopNCCL *GallopNCCL;

/* What the place where vectors are does. There is one side stream per process, whatever the communicator: kernels of NCCL begin on it in the order of the program, which is the same on all processes. */
typedef struct {
  PetscErrorCode (*getdevice)(char id[16], PetscBool *part); /* whose communicator it would be; part: of a GPU, which NCCL takes for all of it */
  PetscErrorCode (*recover)(void);                           /* an error of NCCL's is no error of the next call */
  PetscErrorCode (*create)(GallopNCCL, PetscInt ghosts);     /* plan stays NULL where there is no room */
  PetscErrorCode (*destroy)(GallopNCCL);
  PetscErrorCode (*pack)(GallopNCCL, const PetscScalar *x, void **stream); /* which then has to wait for that */
  PetscErrorCode (*sent)(GallopNCCL);                                      /* all of the exchange is on the side stream */
  PetscErrorCode (*wait)(GallopNCCL);                                      /* for it; on the GPU it is PETSc's stream that waits */
  PetscErrorCode (*finish)(void);                                          /* the process waits for the side stream */
} GallopNCCLTable;

/* Values for a process or from it: n of them, beginning with the first one */
typedef struct {
  PetscMPIInt rank;
  PetscInt    first, n;
} GallopNCCLMessage;

struct _GallopNCCL {
  const GallopNCCLTable     *table;
  const GallopNCCLFunctions *functions;
  GallopNCCLComm             comm; /* belongs to MPI's communicator */
  int                        nsends, nrecvs;
  GallopNCCLMessage         *send, *recv;
  PetscInt                   nindex, *index; /* of the values that are sent, one message after the other */
  PetscScalar               *packed;         /* these */
  PetscScalar               *array;          /* of ghost */
  Vec                        ghost;
  void                      *plan; /* the table's own */
};

/* gallopnccl.c */
PETSC_INTERN PetscErrorCode GallopNCCLOpen(const GallopNCCLFunctions **);
PETSC_INTERN PetscErrorCode GallopNCCLDescribe(char[], size_t);
PETSC_INTERN PetscErrorCode GallopNCCLGetComm(MPI_Comm, const GallopNCCLTable *, GallopNCCLComm *, const char **);
PETSC_INTERN PetscErrorCode GallopNCCLFinalize(void);

/* gallopexchangenccl.c */
PETSC_INTERN PetscErrorCode GallopNCCLCreate(MPI_Comm, PetscSF, PetscInt, const GallopNCCLTable *, GallopNCCL *, const char **);
PETSC_INTERN PetscErrorCode GallopNCCLDestroy(GallopNCCL *);
PETSC_INTERN PetscErrorCode GallopNCCLBegin(GallopNCCL, Vec, Vec *);
PETSC_INTERN PetscErrorCode GallopNCCLEnd(GallopNCCL);

PETSC_INTERN const GallopNCCLTable GallopNCCLTable_Host;
#if PetscDefined(HAVE_CUDA)
PETSC_INTERN const GallopNCCLTable GallopNCCLTable_Device;
#endif

/* An error of NCCL's as one of PETSc's; of a communicator or NULL */
#define GallopCallNCCL(functions, comm, name, call) \
  do { \
    const int result_ = (call); \
    PetscCheck(!result_, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s of NCCL failed: %s (%d)%s%s", name, (functions)->geterrorstring(result_), result_, (functions)->getlasterror ? ". Its last error: " : "", \
               (functions)->getlasterror ? (functions)->getlasterror(comm) : ""); \
  } while (0)
