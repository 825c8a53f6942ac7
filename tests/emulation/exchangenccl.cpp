/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by NCCL: src/mat/impls/base/gallopexchangenccldevice.cu, of gallopexchangenccl.c what products do, and what exchangetest.h has

  Processes run the same program, in which matrices on some of them are made, multiplied and destroyed in turn. Each has a host, which goes on as it likes, two streams of PETSc's and the side stream; what goes
  on next, anywhere, is chosen at random. A group of NCCL's operations is done when it is the first on its stream, and so are the groups that it exchanges with. A
  product checks what it reads, or gets.
*/
#include "exchangetest.h"
static cudaError_t Copy2D(void *, size_t, const void *, size_t, size_t, size_t, cudaStream_t);
#define cudaMemcpy2DAsync(to, topitch, from, frompitch, width, height, kind, stream) Copy2D(to, topitch, from, frompitch, width, height, stream)
#include "mat/impls/base/gallopexchangenccldevice.cu"
#include "mat/impls/base/gallopexchangenccl.c"
#include <map>

enum { STREAMS = 3, SIDE = 2 };

static GallopNCCLFunctions functions;
char                       GallopNCCLName[32] = "NCCL";

PetscErrorCode GallopGetSideStream(cudaStream_t *stream)
{
  *stream = (cudaStream_t)SIDE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(*p, 0xC7, bytes);
  return PETSC_SUCCESS;
}

/* kept, with its canaries */
PetscErrorCode GallopDeviceFree(void *)
{
  DeviceSynchronize();
  emu::CheckCanaries("before memory is freed");
  return PETSC_SUCCESS;
}

PetscErrorCode GallopNCCLOpen(const GallopNCCLFunctions **f)
{
  *f = &functions;
  return PETSC_SUCCESS;
}

/* for the host's table and for set-up, which this program does not use */
PetscErrorCode GallopNCCLGetComm(MPI_Comm, const GallopNCCLPlace *, GallopNCCLComm *, const char **)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopDeviceMallocFails(PetscBool, PetscBool *)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopIPCCreateVec_Host(PetscInt, PetscScalar *, Vec *)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopIPCUnpack_Host(GallopIPC, GallopIPCScope, const PetscReal *, PetscReal *, PetscBool)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopIPCDescribe_Host(GallopIPC, const char **)
{
  return PETSC_ERR_SUP;
}

/* ---- a process ---- */

struct Transfer {
  const void *from;
  void       *to; /* NULL of a send */
  size_t      bytes;
  int         peer;
  size_t      matrix; /* stands for the communicator */
  bool        done;
};

struct Operation {
  std::function<void()> run;
  std::function<bool()> ready;
  std::vector<Transfer> group; /* of NCCL's, or empty */
};

struct Process {
  std::deque<Operation>   stream[STREAMS];
  size_t                  at     = 0; /* in the program */
  bool                    blocks = false;
  std::vector<Connection> connection; /* by matrix */

  bool Idle() const { return stream[0].empty() && stream[1].empty() && stream[SIDE].empty(); }
};

static std::vector<Process>  processes;
static int                   now; /* whose host runs */
static emu::Graph            launched;
static std::vector<Transfer> group;

static void Push(size_t stream, Operation operation)
{
  processes[now].stream[stream].push_back(operation);
}

static bool Ready()
{
  return true;
}

static void Queue(std::function<void()> run)
{
  Push((size_t)current, {run, Ready, {}});
}

/* Kernels that the library has launched before a group */
static void Flush()
{
  for (auto f : launched) Push(SIDE, {f, Ready, {}});
  launched.clear();
}

static cudaError_t Copy2D(void *to, size_t topitch, const void *from, size_t frompitch, size_t width, size_t height, cudaStream_t stream)
{
  const auto copy = [=] {
    for (size_t k = 0; k < height; k++) memcpy((char *)to + k * topitch, (const char *)from + k * frompitch, width);
  };

  Push((size_t)stream, {copy, Ready, {}});
  return cudaSuccess;
}

static cudaError_t RecordEvent(cudaEvent_t e, cudaStream_t stream)
{
  Event *const event  = (Event *)e;
  const long   number = ++event->recorded;

  Push((size_t)stream, {[=] { event->done = number; }, Ready, {}});
  return cudaSuccess;
}

static cudaError_t WaitEvent(cudaStream_t stream, cudaEvent_t e)
{
  Event *const event  = (Event *)e;
  const long   number = event->recorded;

  Push((size_t)stream, {[] {}, [=] { return event->done >= number; }, {}});
  return cudaSuccess;
}

/* ---- NCCL ---- */

static int Zero(GallopNCCLComm, int *failed)
{
  *failed = 0;
  return 0;
}

static int GroupStart()
{
  Flush();
  group.clear();
  return 0;
}

static int GroupEnd()
{
  if (!group.empty()) Push(SIDE, {[] {}, Ready, group});
  return 0;
}

static int Send(const void *from, size_t bytes, int, int peer, GallopNCCLComm comm, void *stream)
{
  if ((size_t)stream != SIDE) emu::Fail("a send on another stream");
  group.push_back({from, NULL, bytes, peer, (size_t)comm, false});
  return 0;
}

static int Recv(void *to, size_t bytes, int, int peer, GallopNCCLComm comm, void *stream)
{
  if ((size_t)stream != SIDE) emu::Fail("a receive on another stream");
  group.push_back({NULL, to, bytes, peer, (size_t)comm, false});
  return 0;
}

/* One of a group's transfers, if the other process is as far; true where something happens. Those of two processes are in the order of both groups. */
static bool RunTransfer(int me, std::vector<Transfer> &mine)
{
  std::map<int, Transfer *> next; /* by peer */

  for (Transfer &t : mine)
    if (!t.to && !t.done) next.emplace(t.peer, &t);
  if (next.empty()) return false;
  Transfer &t    = *std::next(next.begin(), (long)(choice() % next.size()))->second;
  auto     &side = processes[t.peer].stream[SIDE];

  if (side.empty()) return false;
  for (Transfer &other : side.front().group) {
    if (other.done || !other.to || other.peer != me || other.matrix != t.matrix) continue;
    if (other.bytes != t.bytes) emu::Fail("%zu bytes are sent, %zu are expected", t.bytes, other.bytes);
    memcpy(other.to, t.from, t.bytes);
    t.done = other.done = true;
    return true;
  }
  return false;
}

static bool RunStream(int me)
{
  auto &stream = processes[me].stream[choice() % STREAMS];

  if (stream.empty() || !stream.front().ready()) return false;
  if (!stream.front().group.empty()) {
    const auto &all = stream.front().group;

    if (!std::all_of(all.begin(), all.end(), [](const Transfer &t) { return t.done; })) return RunTransfer(me, stream.front().group);
  }
  const auto run = stream.front().run;
  stream.pop_front();
  run();
  return true;
}

/* The library's functions. Kernels that send launches are on the side stream before the group; those that unpack are on PETSc's. */
static PetscErrorCode SendToNeighbors(GallopIPC ipc, int buffer, unsigned number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  emu::recording = &launched;
  CheckCall((*GallopIPCTable_NCCLDevice.send)(ipc, buffer, number, x, ld, columns));
  emu::recording = nullptr;
  if (!launched.empty()) emu::Fail("a kernel after the group");
  return PETSC_SUCCESS;
}

static PetscErrorCode Unpack(GallopIPC ipc, GallopIPCScope scope, const PetscReal *from, PetscReal *to, PetscBool add)
{
  for (auto f : Launched([&] { return (*GallopIPCTable_NCCLDevice.unpack)(ipc, scope, from, to, add); })) Queue(f);
  return PETSC_SUCCESS;
}

static GallopIPCTable table;

/* The process's part of a matrix */
static void Create(const Matrix &m, int me, size_t number, Connection *c)
{
  FindPart(m, (int)processes.size(), me, c);
  c->ipc->table = &table;
  c->ipc->comm  = (GallopNCCLComm)(number + 1);
  CheckCall((*table.plancreate)(c->ipc, &c->ipc->plan));
}

static std::vector<Step> program;

/* One step of a host that does not wait for its GPU; false where the queues are long, or the program has ended */
static bool RunHost(int me)
{
  static std::vector<cudaStream_t> streams;
  Process                         &p = processes[me];

  if (p.blocks || p.at == program.size() || p.stream[0].size() + p.stream[1].size() > 60) return false;
  const Step    step   = program[p.at++];
  const Matrix &m      = matrices[step.matrix];
  Connection   *c      = &p.connection[step.matrix];
  const int     before = now;

  now = me;
  streams.resize(64);
  if (step.kind == STREAM) streams[me] = (cudaStream_t)(1 - (size_t)streams[me]);
  else if (std::find(m.member.begin(), m.member.end(), me) != m.member.end()) {
    const cudaStream_t stream = current;

    current = streams[me];
    if (step.kind == CREATE) Create(m, me, step.matrix, c);
    else if (step.kind == DESTROY) CheckCall((*table.plandestroy)(&c->ipc->plan));
    else if (m.kind.scatter) Scatter(me, c);
    else Multiply(me, c);
    current = stream;
  }
  now = before;
  return true;
}

/* The host waits for its GPU, while other hosts and GPUs go on */
static void DeviceSynchronize()
{
  const int          me     = now;
  const cudaStream_t stream = current;
  emu::Graph *const  graph  = emu::recording;
  const auto         queued = launched;
  long               idle   = 0;

  processes[me].blocks = true;
  while (!processes[me].Idle()) {
    const int k = (int)(choice() % processes.size());

    emu::recording = nullptr;
    launched.clear();
    idle = (choice() % 4 ? RunStream(k) : processes[k].at < processes[me].at && RunHost(k)) ? 0 : idle + 1; /* hosts that are ahead could wait for this one, which cannot go on in here */
    if (idle > 100000) emu::Fail("a deadlock of %zu processes, one of which waits for its GPU", processes.size());
  }
  processes[me].blocks = false;
  now                  = me;
  current              = stream;
  emu::recording       = graph;
  launched             = queued;
}

static void Test(int size, int nmatrices, int products)
{
  const int slow = (int)(choice() % (unsigned)size); /* its streams lag behind */
  int       idle = 0, left = size;

  processes.clear();
  processes.resize(size);
  matrices.assign(nmatrices, Matrix());
  for (auto &m : matrices) CreateMatrix(size, &m);
  for (auto &p : processes) p.connection.resize(nmatrices);
  program = CreateProgram(nmatrices, products, true);
  while (left) {
    const int k = (int)(choice() % (unsigned)size);

    if (k == slow && choice() % 50) continue;
    idle = (choice() % 4 ? RunStream(k) : RunHost(k)) ? 0 : idle + 1;
    if (idle > 100000) emu::Fail("a deadlock of %d processes", size);
    left = 0;
    for (auto &p : processes) left += p.at < program.size() || !p.Idle();
  }
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  functions.commgetasyncerror = Zero;
  functions.groupstart        = GroupStart;
  functions.groupend          = GroupEnd;
  functions.send              = Send;
  functions.recv              = Recv;
  table                       = GallopIPCTable_NCCLDevice;
  table.send                  = SendToNeighbors;
  table.unpack                = Unpack;
  for (int k = 0; k < (full ? 200 : 10); k++) Test(1 + (int)(choice() % 8), 1 + (int)(choice() % 6), 10);
  return End();
}
