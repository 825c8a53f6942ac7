/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Values that go from process to process along the edges of a PetscSF. Processes of one host write them straight into each other's memory: on the GPU by CUDA IPC, and for tests on the host by memory
  that they share. Or NCCL brings them, between hosts too.

  They are the ghost values of a matrix, the ghost rows of a dense one, what a transposed product adds to the rows of other processes, and what a PetscSF of type gallop is given. Below, a
  product is one exchange of any of these.

  Where processes write into each other's memory each has two buffers for the values that come, used in turn, and a flag for each of its neighbors. A product has a number. Its kernel writes values into
  the neighbors' buffers, and then the product's number into the flag that each neighbor has for this process. Neighbors raise flags for each other also where values go one way only.
  Thus the flag of product k - 1 says that the neighbor has read the values of product k - 2, whose buffer is that of product k: there are no acknowledgements.

  NCCL needs no flags, and one buffer: on the receiving process the exchange begins when PETSc's stream has done what reads the values of the last one. Several columns from several neighbors have another
  one, where they come.

  A unit is what one edge carries: bs real numbers, of which a PetscScalar has one or two. Some products carry several columns of units, ld real numbers apart.
*/

#include <petscvec.h>
#include <petscsf.h>

typedef struct _GallopIPC      *GallopIPC;
typedef struct _GallopNCCLComm *GallopNCCLComm; /* ncclComm_t */

/* Neighbors that one process may write to: as many as the arguments of a kernel have room for */
#define GALLOP_IPC_NEIGHBORS 32

/* Bytes from flag to flag: a cache line */
#define GALLOP_IPC_FLAG 128

typedef struct {
  char bytes[64];
} GallopIPCHandle;

/* An allocation of some process, by which another one opens it */
typedef struct {
  PetscInt64      process[2], number; /* of the process, and of the allocation there */
  PetscInt64      bytes;
  char            device[16]; /* the GPU that it is on */
  GallopIPCHandle handle;
} GallopIPCAllocation;

/* A process that values go to or come from */
typedef struct {
  PetscMPIInt   rank;          /* in the matrix's communicator */
  PetscInt      place, ngives; /* it gives ngives units, 0 for none: place is where the first one goes in the buffer */
  PetscInt      first, n;      /* it gets n units: index[first] is where the first one is in x, ... */
  PetscBool     near;          /* it is on the same GPU */
  PetscReal    *to[2];         /* where those that it gets go, in its buffers, */
  PetscCount    ld;            /* and from column to column there */
  unsigned int *raise;         /* the flag that it has for this process */
} GallopIPCNeighbor;

/* Units that go to places of an array. A place gets those that from lists from start[k] on, in this order; where start is NULL each place gets one, and where from is NULL, too, place[k] gets unit k. */
typedef struct {
  PetscInt  n, nfrom;
  PetscInt *place, *start, *from;
} GallopIPCList;

/* Edges within the process, whose units come from x, and those from other processes, whose units come from the buffer */
typedef enum { GALLOP_IPC_SELF, GALLOP_IPC_REMOTE } GallopIPCScope;

/* What is exchanged */
typedef struct {
  PetscBool reverse; /* from leaves to roots */
  PetscBool scatter; /* units go from the buffer to where the PetscSF says; else they are used in the buffer, where unit k is leaf k */
  PetscInt  leaves;  /* the number that is expected, -1 for any */
  PetscInt  bs, columns;
  PetscBool aside; /* something long runs between Send() and Receive(), beside which values are to travel; a process decides it alone */
} GallopIPCKind;

#define GALLOP_IPC_SCALAR ((PetscInt)(sizeof(PetscScalar) / sizeof(PetscReal)))

/*
  What a way does at the place where vectors are. A pointer that is given back is NULL where there is no room, or no permission.

  By NCCL, which has join(), no memory is opened: buffers belong to the plan, and the functions from allocate() to clear() are NULL.
*/
typedef struct {
  const char *name;
  PetscErrorCode (*join)(MPI_Comm, GallopIPC, const char **why); /* collective: gets NCCL's communicator, or tells on all processes why there is none */
  PetscErrorCode (*allocate)(size_t, void **, GallopIPCHandle *, char device[16]);
  PetscErrorCode (*free)(const GallopIPCAllocation *, void *);
  PetscErrorCode (*open)(const GallopIPCAllocation *, void **);
  PetscErrorCode (*close)(const GallopIPCAllocation *, void *);
  PetscErrorCode (*clear)(void *, size_t); /* has cleared it when it returns */
  PetscErrorCode (*createvec)(PetscInt, PetscScalar *, Vec *);
  PetscErrorCode (*plancreate)(GallopIPC, void **);
  PetscErrorCode (*plandestroy)(void **);
  PetscErrorCode (*send)(GallopIPC, int buffer, unsigned int number, const PetscReal *x, PetscCount ld, PetscInt columns); /* values, and flags if there are any, to all neighbors */
  PetscErrorCode (*wait)(GallopIPC, int first, int last, unsigned int number); /* for these neighbors, or by NCCL for all of the exchange; on the GPU it is the stream that waits */
  PetscErrorCode (*unpack)(GallopIPC, GallopIPCScope, const PetscReal *from, PetscReal *to, PetscBool add); /* by the list; without add the last unit of a place stays there */
  PetscErrorCode (*finish)(void);                                                                           /* the process waits for what it has queued */
  PetscErrorCode (*describe)(GallopIPC, const char **);                                                     /* how it waits */
} GallopIPCTable;

/* A piece of an allocation of this process, for one matrix */
typedef struct {
  int    allocation;
  size_t offset, bytes;
  char  *memory; /* NULL for none */
} GallopIPCPiece;

struct _GallopIPC {
  const GallopIPCTable *table;
  GallopIPCKind         kind;
  int                   nneighbors, ngive; /* the first ones give values */
  GallopIPCNeighbor    *neighbor;
  GallopNCCLComm        comm;           /* NULL where processes write into each other's memory */
  PetscInt              nindex, *index; /* of the units that go to neighbors, one neighbor after the other */
  PetscInt              nghost;         /* units that come from them */
  GallopIPCList         list[2];        /* by scope, of a scatter */
  GallopIPCPiece        piece;          /* flags, one for each neighbor, and buffers */
  PetscReal            *buffer[2];      /* NULL for none */
  Vec                   ghost[2];       /* the buffers as vectors, of ghost values */
  void                 *plan;           /* the table's own */
  unsigned int          product;        /* number of the last one */
};

/* gallopexchangememory.c */
PETSC_INTERN PetscErrorCode GallopIPCPieceGet(const GallopIPCTable *, size_t, GallopIPCPiece *);
PETSC_INTERN PetscErrorCode GallopIPCPieceReturn(const GallopIPCTable *, GallopIPCPiece *);
PETSC_INTERN PetscErrorCode GallopIPCPieceGetAllocation(const GallopIPCTable *, const GallopIPCPiece *, GallopIPCAllocation *);
PETSC_INTERN PetscErrorCode GallopIPCOpen(const GallopIPCTable *, const GallopIPCAllocation *, void **);
PETSC_INTERN PetscErrorCode GallopIPCFinalize(void);

/* gallopexchangeedges.c */
PETSC_INTERN PetscErrorCode GallopIPCFindEdges(MPI_Comm, PetscSF, GallopIPC, PetscBool *);
PETSC_INTERN PetscErrorCode GallopIPCFreeEdges(GallopIPC);

/* gallopexchangeipc.c */
PETSC_INTERN PetscErrorCode GallopIPCConnect(MPI_Comm, PetscSF, const GallopIPCKind *, const GallopIPCTable *, GallopIPC *, const char **);
PETSC_INTERN PetscErrorCode GallopIPCDestroy(GallopIPC *);
PETSC_INTERN PetscErrorCode GallopIPCSend(GallopIPC, const PetscReal *, PetscCount, PetscInt, int *);
PETSC_INTERN PetscErrorCode GallopIPCReceive(GallopIPC);
PETSC_INTERN PetscErrorCode GallopIPCBegin(GallopIPC, Vec, Vec *);
PETSC_INTERN PetscErrorCode GallopIPCEnd(GallopIPC, Vec);
PETSC_INTERN PetscErrorCode GallopIPCScatterBegin(GallopIPC, const PetscReal *, PetscReal *, PetscBool);
PETSC_INTERN PetscErrorCode GallopIPCScatterEnd(GallopIPC, PetscReal *, PetscBool);

/* gallopexchangeshared.c: what all ways do on the host */
PETSC_INTERN PetscErrorCode GallopIPCCreateVec_Host(PetscInt, PetscScalar *, Vec *);
PETSC_INTERN PetscErrorCode GallopIPCUnpack_Host(GallopIPC, GallopIPCScope, const PetscReal *, PetscReal *, PetscBool);
PETSC_INTERN PetscErrorCode GallopIPCDescribe_Host(GallopIPC, const char **);

PETSC_INTERN const GallopIPCTable GallopIPCTable_Shared, GallopIPCTable_NCCLHost;
#if PetscDefined(HAVE_CUDA)
PETSC_INTERN const GallopIPCTable GallopIPCTable_Device, GallopIPCTable_NCCLDevice;
struct CUstream_st; /* what a cudaStream_t points to */
PETSC_INTERN PetscErrorCode GallopGetSideStream(struct CUstream_st **);
PETSC_INTERN PetscErrorCode GallopSideStreamDestroy(void);
#endif
