/* SPDX-License-Identifier: BSD-2-Clause */
/*
  A library with NCCL's functions for tests without a GPU: it takes memory of the host, and sends by MPI

  What is queued happens late: ghost values are NaN, and the buffers of what is sent are not read, until gallopTestWait(), which is to the host what an event is to PETSc's stream. So a product that reads
  too early, or writes too early over what it sends, gives a wrong result.

  Environment variables, read at each call:
    GALLOP_TEST_NCCL_VERSION    what ncclGetVersion() says
    GALLOP_TEST_NCCL_DEVICES    so many GPUs are there, which processes of MPI_COMM_WORLD take in turn; -1: each has a part of one
    GALLOP_TEST_NCCL_FAIL       the function that fails

  Where NCCL's header is there, the compiler compares its declarations with these and with those of the library.
*/

#include <gallop/ncclimpl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#if defined(PETSC_HAVE_CUDA) && defined(__has_include)
  #if __has_include(<nccl.h>)
    #define HAVE_HEADER 1
    #include <nccl.h>
  #endif
#endif
#if defined(HAVE_HEADER)
_Static_assert(sizeof(ncclUniqueId) == sizeof(GallopNCCLId), "passed by value");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int), "passed as int");
_Static_assert(ncclSuccess == 0 && ncclInt8 == GALLOP_NCCL_BYTE, "numbers");
_Static_assert(NCCL_VERSION(2, 7, 0) == GALLOP_NCCL_FIRST && NCCL_VERSION(3, 0, 0) == GALLOP_NCCL_END, "how versions are written");
#else
typedef struct ncclComm *ncclComm_t;
typedef GallopNCCLId     ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclSystemError = 2, ncclInvalidArgument = 4 } ncclResult_t;
typedef enum { ncclInt8 = 0 } ncclDataType_t;
typedef void *cudaStream_t;
#endif
#define EXPORT __attribute__((visibility("default")))

struct ncclComm {
  int  size, rank, tag;
  int *world; /* ranks in MPI_COMM_WORLD */
};

typedef struct {
  const char *from;
  char       *to; /* one of the two */
  size_t      bytes;
  int         peer, tag;
} Operation;

#define OPERATIONS 1024
static Operation operation[OPERATIONS];
static int       noperations, grouped, groups, inits, destroyed;

static int Fails(const char function[])
{
  const char *fail = getenv("GALLOP_TEST_NCCL_FAIL");

  return fail && !strcmp(fail, function);
}

static int Number(const char variable[], int otherwise)
{
  const char *value = getenv(variable);

  return value ? atoi(value) : otherwise;
}

static int WorldRank(void)
{
  int rank;

  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

EXPORT ncclResult_t ncclGetVersion(int *version)
{
  *version = Number("GALLOP_TEST_NCCL_VERSION", 22809);
  return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
  return result == ncclSuccess ? "no error" : result == ncclInvalidArgument ? "invalid argument" : "unhandled system error";
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
  (void)comm;
  return "as the test wants it";
}

/* The process that the others tell who they are, and a number of its communicators */
EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
  static int number   = 0;
  const int  words[2] = {WorldRank(), ++number};

  memset(id, 0, sizeof(*id));
  memcpy(id, words, sizeof(words));
  return Fails("ncclGetUniqueId") ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
  ncclComm_t c = malloc(sizeof(*c));
  int        words[2], mine[2] = {rank, WorldRank()}, other[2];

  memcpy(words, &id, sizeof(words));
  c->size  = size;
  c->rank  = rank;
  c->tag   = 1 + (words[0] * 100 + words[1]) % 30000;
  c->world = malloc((size_t)size * sizeof(int));
  if (mine[1] == words[0]) {
    c->world[rank] = mine[1];
    for (int k = 1; k < size; k++) {
      (void)MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, c->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      c->world[other[0]] = other[1];
    }
    for (int k = 0; k < size; k++)
      if (k != rank) (void)MPI_Send(c->world, size, MPI_INT, c->world[k], c->tag, MPI_COMM_WORLD);
  } else {
    (void)MPI_Send(mine, 2, MPI_INT, words[0], c->tag, MPI_COMM_WORLD);
    (void)MPI_Recv(c->world, size, MPI_INT, words[0], c->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  *comm = c;
  inits++;
  if (!Fails("ncclCommInitRank")) return ncclSuccess;
  destroyed++;
  free(c->world);
  free(c);
  return ncclSystemError;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
  free(comm->world);
  free(comm);
  destroyed++;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
  return ncclCommDestroy(comm);
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *failed)
{
  (void)comm;
  *failed = Fails("network") ? ncclSystemError : ncclSuccess;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupStart(void)
{
  grouped = noperations;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
  for (int k = grouped; k < noperations; k++)
    if (operation[k].to) memset(operation[k].to, 0xff, operation[k].bytes); /* NaN */
  groups++;
  return Fails("ncclGroupEnd") ? ncclInvalidArgument : ncclSuccess;
}

static ncclResult_t Queue(const void *from, void *to, size_t bytes, ncclDataType_t type, int peer, ncclComm_t comm)
{
  if (type != ncclInt8 || peer < 0 || peer >= comm->size || noperations == OPERATIONS) return ncclInvalidArgument;
  operation[noperations++] = (Operation){from, to, bytes, comm->world[peer], comm->tag};
  return ncclSuccess;
}

EXPORT ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
  (void)stream;
  return Fails("ncclSend") ? ncclInvalidArgument : Queue(buffer, NULL, count, type, peer, comm);
}

EXPORT ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
  (void)stream;
  return Fails("ncclRecv") ? ncclInvalidArgument : Queue(NULL, buffer, count, type, peer, comm);
}

/* ---- for tests ---- */

/* A GPU's name for this process; whether it is a part of one */
EXPORT int gallopTestDevice(char id[16])
{
  const int devices = Number("GALLOP_TEST_NCCL_DEVICES", 0), number = devices > 0 ? WorldRank() % devices : WorldRank();

  memset(id, 0, 16);
  memcpy(id, &number, sizeof(number));
  return devices < 0;
}

EXPORT int gallopTestWait(void)
{
  MPI_Request request[OPERATIONS];

  for (int k = 0; k < noperations; k++) {
    if (operation[k].to) (void)MPI_Irecv(operation[k].to, (int)operation[k].bytes, MPI_BYTE, operation[k].peer, operation[k].tag, MPI_COMM_WORLD, &request[k]);
    else (void)MPI_Isend(operation[k].from, (int)operation[k].bytes, MPI_BYTE, operation[k].peer, operation[k].tag, MPI_COMM_WORLD, &request[k]);
  }
  (void)MPI_Waitall(noperations, request, MPI_STATUSES_IGNORE);
  noperations = 0;
  return 0;
}

/* Communicators that were made, those that there are, and groups of operations */
EXPORT void gallopTestCounts(int *made, int *left, int *ngroups)
{
  *made    = inits;
  *left    = inits - destroyed;
  *ngroups = groups;
}
