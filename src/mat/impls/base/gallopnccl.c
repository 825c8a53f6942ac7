/* SPDX-License-Identifier: BSD-2-Clause */
/*
  NCCL: the library, opened at run time, and its communicators, of which an MPI communicator has one

  The communicator is an attribute of PETSc's communicator of a matrix, as its PetscCommDuplicate() gives it: all matrices of a user's communicator share one, and it goes with the last object of PETSc's
  on that communicator, or in PetscFinalize(). Both are collective, as ncclCommDestroy() is on some versions.
*/

#include <gallop/matgallopimpl.h>
#if PetscDefined(HAVE_DLOPEN)
  #include <dlfcn.h>
#endif

/* Why not; of several reasons the last one is told */
typedef enum { NCCL_FINE, NCCL_MISSING, NCCL_FOREIGN, NCCL_HOST, NCCL_PART, NCCL_VERSIONS, NCCL_SHARED, NCCL_ALONE, NCCL_FAILED, NCCL_NOT_TRIED } Reason;
static const char *const Reasons[] = {NULL, "a process does not find the library", "the library of a process is not of a version from 2.7 to 2.x", "vectors are on the host", "a process has a part of a GPU", "processes have different versions of it", "processes share a GPU", "there is one process, without ghost values", "it cannot be set up"};

/* ---------------------------------------------------------------- the library */

static Reason              library = NCCL_NOT_TRIED;
static GallopNCCLFunctions nccl;
static int                 version;
static char                name[PETSC_MAX_PATH_LEN];
char                       GallopNCCLName[32] = "NCCL";

#if PetscDefined(HAVE_DLOPEN)
static PetscBool FindFunctions(void *handle)
{
  const struct {
    const char *name;
    void      **function;
    PetscBool   optional;
  } functions[] = {
    {"ncclGetVersion",        (void **)&nccl.getversion,        PETSC_FALSE},
    {"ncclGetUniqueId",       (void **)&nccl.getuniqueid,       PETSC_FALSE},
    {"ncclCommInitRank",      (void **)&nccl.comminitrank,      PETSC_FALSE},
    {"ncclCommDestroy",       (void **)&nccl.commdestroy,       PETSC_FALSE},
    {"ncclCommAbort",         (void **)&nccl.commabort,         PETSC_FALSE},
    {"ncclCommGetAsyncError", (void **)&nccl.commgetasyncerror, PETSC_FALSE},
    {"ncclGroupStart",        (void **)&nccl.groupstart,        PETSC_FALSE},
    {"ncclGroupEnd",          (void **)&nccl.groupend,          PETSC_FALSE},
    {"ncclSend",              (void **)&nccl.send,              PETSC_FALSE},
    {"ncclRecv",              (void **)&nccl.recv,              PETSC_FALSE},
    {"ncclGetErrorString",    (void **)&nccl.geterrorstring,    PETSC_FALSE},
    {"ncclGetLastError",      (void **)&nccl.getlasterror,      PETSC_TRUE },
    {"gallopTestDevice",      (void **)&nccl.hostdevice,        PETSC_TRUE },
    {"gallopTestWait",        (void **)&nccl.hostwait,          PETSC_TRUE }
  };
  PetscBool all = PETSC_TRUE;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(functions); k++) {
    *functions[k].function = dlsym(handle, functions[k].name);
    if (!*functions[k].function && !functions[k].optional) all = PETSC_FALSE;
  }
  return all;
}
#endif

/* It stays open until the process ends, since NCCL has threads */
static PetscErrorCode Open(void)
{
  PetscFunctionBegin;
  library = NCCL_MISSING;
#if PetscDefined(HAVE_DLOPEN)
  void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  int         major;

  if (handle) {
    const PetscBool all = FindFunctions(handle);

    if (!nccl.getversion || (*nccl.getversion)(&version)) version = 0;
    major = version < 10000 ? 1000 : 10000;
    PetscCall(PetscSNPrintf(GallopNCCLName, sizeof(GallopNCCLName), "NCCL %d.%d.%d", version / major, version % major / 100, version % 100));
    library = all && version >= GALLOP_NCCL_FIRST && version < GALLOP_NCCL_END ? NCCL_FINE : NCCL_FOREIGN;
    PetscCall(PetscInfo(NULL, "NCCL: %s is version %d\n", name, version));
  } else PetscCall(PetscInfo(NULL, "NCCL: %s\n", dlerror()));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopNCCLOpen - NCCL's functions, or NULL; it is tried once for each name that -mat_gallop_nccl gives the library, until one is there */
PetscErrorCode GallopNCCLOpen(const GallopNCCLFunctions **functions)
{
  char      wanted[PETSC_MAX_PATH_LEN] = "libnccl.so.2";
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_nccl", wanted, sizeof(wanted), NULL));
  PetscCall(PetscStrcmp(wanted, name, &same));
  if (library && !same) {
    PetscCall(PetscStrncpy(name, wanted, sizeof(name)));
    PetscCall(Open());
  }
  *functions = library ? NULL : &nccl;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- communicators */

/* The attribute */
typedef struct _Communicator *Communicator;
struct _Communicator {
  GallopNCCLComm         comm; /* NULL where there is none, for this reason */
  Reason                 reason;
  const GallopNCCLPlace *place;
  MPI_Comm               of;
  Communicator           next; /* the one that was made before */
};

static PetscMPIInt  keyval = MPI_KEYVAL_INVALID;
static Communicator all;

/* What processes tell each other */
typedef struct {
  int  reason, version;
  char device[16];
} Answer;

static int CompareAnswers(const void *a, const void *b)
{
  return memcmp(((const Answer *)a)->device, ((const Answer *)b)->device, sizeof(((const Answer *)a)->device));
}

/* Whether each process has a whole GPU of its own, and the same NCCL: on all processes alike */
static PetscErrorCode Ask(MPI_Comm comm, const GallopNCCLPlace *place, Reason *reason)
{
  const GallopNCCLFunctions *functions;
  PetscMPIInt                size;
  Answer                     mine, *answers;
  PetscBool                  part = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&mine, sizeof(mine)));
  PetscCall(GallopNCCLOpen(&functions));
  mine.reason  = (int)library;
  mine.version = version;
  if (functions && (functions->hostdevice != NULL) != (place == &GallopNCCLPlace_Host)) mine.reason = NCCL_HOST;
  if (!mine.reason) PetscCall((*place->getdevice)(mine.device, &part));
  if (part) mine.reason = NCCL_PART;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size == 1 && !mine.reason) mine.reason = NCCL_ALONE;
  PetscCall(PetscMalloc1(size, &answers));
  PetscCallMPI(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, answers, sizeof(mine), MPI_BYTE, comm));
  *reason = NCCL_FINE;
  for (PetscMPIInt r = 0; r < size; r++) *reason = PetscMax(*reason, (Reason)answers[r].reason);
  for (PetscMPIInt r = 1; r < size && !*reason; r++)
    if (answers[r].version != answers[0].version) *reason = NCCL_VERSIONS;
  if (!*reason) {
    qsort(answers, (size_t)size, sizeof(*answers), CompareAnswers);
    for (PetscMPIInt r = 1; r < size; r++)
      if (!CompareAnswers(&answers[r - 1], &answers[r])) *reason = NCCL_SHARED;
  }
  PetscCall(PetscFree(answers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error here is no error of the program: PetscSF does without */
static PetscErrorCode NoteError(const char function[], int result, GallopNCCLComm comm)
{
  PetscFunctionBegin;
  if (result)
    PetscCall(PetscInfo(NULL, "NCCL: %s(): %s (%d)%s%s\n", function, (*nccl.geterrorstring)(result), result, nccl.getlasterror ? ". " : "", nccl.getlasterror ? (*nccl.getlasterror)(comm) : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Connect(MPI_Comm mpi, Communicator c)
{
  struct {
    GallopNCCLId id;
    int          result;
  } first;
  PetscMPIInt rank, size;
  int         fails;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(mpi, &rank));
  PetscCallMPI(MPI_Comm_size(mpi, &size));
  PetscCall(PetscMemzero(&first, sizeof(first)));
  if (rank == 0) {
    first.result = (*nccl.getuniqueid)(&first.id);
    PetscCall(NoteError("ncclGetUniqueId", first.result, NULL));
  }
  PetscCallMPI(MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, mpi));
  fails = first.result;
  if (!fails) {
    fails = (*nccl.comminitrank)(&c->comm, size, first.id, rank);
    PetscCall(NoteError("ncclCommInitRank", fails, NULL));
    if (fails) c->comm = NULL;
    fails = !!fails;
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &fails, 1, MPI_INT, MPI_MAX, mpi));
  }
  if (fails) {
    if (c->comm) PetscCall(NoteError("ncclCommAbort", (*nccl.commabort)(c->comm), NULL));
    c->comm   = NULL;
    c->reason = NCCL_FAILED;
    PetscCall((*c->place->recover)());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPI's communicator goes: a function of MPI's kind, called on all of its processes */
static PetscMPIInt MPIAPI Destroy(MPI_Comm mpi, PetscMPIInt key, void *attribute, void *extra)
{
  Communicator c = (Communicator)attribute, *link = &all;

  PetscFunctionBegin;
  (void)mpi, (void)key, (void)extra;
  while (*link && *link != c) link = &(*link)->next;
  if (*link) *link = c->next;
  if (c->comm) {
    PetscCallReturnMPI((*c->place->finish)());
    PetscCallReturnMPI(NoteError("ncclCommDestroy", (*nccl.commdestroy)(c->comm), NULL));
  }
  PetscCallReturnMPI(PetscFree(c));
  PetscFunctionReturn(MPI_SUCCESS);
}

/*
  GallopNCCLGetComm - NCCL's communicator of the processes of a matrix, made for the first one; or NULL on all processes, and the reason

  Collective
*/
PetscErrorCode GallopNCCLGetComm(MPI_Comm mpi, const GallopNCCLPlace *place, GallopNCCLComm *comm, const char **why)
{
  Communicator c;
  PetscMPIInt  found;

  PetscFunctionBegin;
  if (keyval == MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Destroy, &keyval, NULL));
  PetscCallMPI(MPI_Comm_get_attr(mpi, keyval, &c, &found));
  if (found && c->place != place && !c->comm) { /* another place was not possible; this one may be */
    PetscCallMPI(MPI_Comm_delete_attr(mpi, keyval));
    found = 0;
  }
  if (!found) {
    PetscCall(PetscNew(&c));
    c->place = place;
    c->of    = mpi;
    PetscCall(Ask(mpi, place, &c->reason));
    if (!c->reason) PetscCall(Connect(mpi, c));
    c->next = all;
    all     = c;
    PetscCallMPI(MPI_Comm_set_attr(mpi, keyval, c));
  }
  *comm = c->place == place ? c->comm : NULL;
  *why  = *comm ? NULL : Reasons[c->reason ? c->reason : NCCL_HOST];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopNCCLFinalize - Collective on PETSC_COMM_WORLD: communicators that are left go, on all processes in the same order, while there still is a GPU */
PetscErrorCode GallopNCCLFinalize(void)
{
  PetscFunctionBegin;
  while (all) PetscCallMPI(MPI_Comm_delete_attr(all->of, keyval));
  if (keyval != MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_free_keyval(&keyval));
  PetscFunctionReturn(PETSC_SUCCESS);
}
