/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Ghost values by NCCL: src/mat/impls/base/gallopexchangenccldevice.cu, and of gallopexchangenccl.c what products do

  Processes run the same program, in which matrices on some of them are made, multiplied and destroyed in turn. Each has a host, which goes on as it likes, two streams of PETSc's and the side stream; what goes
  on next, anywhere, is chosen at random. A group of NCCL's operations is done when it is the first on its stream, and so are the groups that it exchanges with. A product checks the ghost values that it reads.
*/
#include "testing.h"
#include <deque>
#include <set>

struct Event {
  long recorded = 0, done = 0;
};

enum { STREAMS = 3, SIDE = 2 };

static cudaStream_t current; /* PETSc's stream */
static void         DeviceSynchronize();
static cudaError_t  RecordEvent(cudaEvent_t, cudaStream_t), WaitEvent(cudaStream_t, cudaEvent_t);

#define cudaDeviceSynchronize()                             (DeviceSynchronize(), cudaSuccess)
#define cudaEventCreateWithFlags(event, flags)              (*(event) = (cudaEvent_t) new Event(), cudaSuccess)
#define cudaEventDestroy(event)                             (delete (Event *)(event), cudaSuccess)
#define cudaEventRecord(event, stream)                      RecordEvent(event, stream)
#define cudaStreamWaitEvent(stream, event, flags)           WaitEvent(stream, event)
#define PetscGetCurrentCUDAStream(stream)                   (*(stream) = current, PETSC_SUCCESS)

/* a vector is its array here */
#define VecGetArrayReadAndMemType(v, array, type)          (*(array) = (const PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayReadAndMemType(v, array)            PETSC_SUCCESS
#define VecGetArrayWriteAndMemType(v, array, type)         (*(array) = (PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayWriteAndMemType(v, array)           PETSC_SUCCESS
#define VecCreateSeqCUDAWithArray(comm, bs, n, array, vec) (*(vec) = (Vec)(array), PETSC_SUCCESS)
#include "vec/vecpermute.cu"
#include "mat/impls/base/gallopexchangenccldevice.cu"
#include "mat/impls/base/gallopexchangenccl.c"

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

PetscErrorCode GallopDeviceFree(void *p)
{
  DeviceSynchronize();
  free(p);
  return PETSC_SUCCESS;
}

/* for the host's table and for set-up, which this program does not use */
PetscErrorCode GallopNCCLOpen(const GallopNCCLFunctions **)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopNCCLGetComm(MPI_Comm, const GallopNCCLTable *, GallopNCCLComm *, const char **)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopDeviceMallocFails(PetscBool, PetscBool *)
{
  return PETSC_ERR_SUP;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
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

struct Connection {
  GallopNCCL            nccl    = NULL;
  PetscInt              product = 0;
  PetscScalar          *x[2]    = {NULL, NULL}; /* by PETSc's stream */
  std::vector<PetscInt> wanted;                 /* of each ghost value, 1000 times its process plus its place there */
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

/* Kernels that the library has launched, all on the side stream */
static void Flush()
{
  for (auto f : launched) Push(SIDE, {f, Ready, {}});
  launched.clear();
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

static GallopNCCLFunctions functions;

/* One of a group's transfers, if the other process is as far; true where something happens */
static bool RunTransfer(int me, std::vector<Transfer> &mine)
{
  Transfer &t    = mine[choice() % mine.size()];
  auto     &side = processes[t.peer].stream[SIDE];

  if (t.done || t.to || side.empty()) return false;
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

/* ---- matrices ---- */

struct Matrix {
  std::vector<int>                   member;
  std::vector<std::vector<PetscInt>> sends; /* from process to process, by their numbers times processes.size(): places in x */
};

static std::vector<Matrix> matrices;

static PetscScalar Value(int process, PetscInt place, PetscInt product)
{
  return (PetscReal)(1000 * process + place) + (PetscReal)product / 1024;
}

static void CreateMatrix(Matrix *m)
{
  const int size = (int)processes.size(), dense = (int)(choice() % 4);

  m->sends.resize((size_t)size * size);
  for (int p = 0; p < size; p++)
    if (choice() % 4) m->member.push_back(p);
  for (int p : m->member)
    for (int q : m->member) {
      if (p == q || (int)(choice() % 4) > dense) continue;
      const PetscInt n = choice() % 20 == 0 ? 256 + (PetscInt)(choice() % 256) : 1 + (PetscInt)(choice() % 9);
      for (PetscInt k = 0; k < n; k++) m->sends[(size_t)p * size + q].push_back((PetscInt)(choice() % 50));
    }
}

/* The process's part of a matrix. Ranks are those of all processes here. */
static void Create(const Matrix &m, int me, size_t number, Connection *c)
{
  const int             size = (int)processes.size();
  GallopNCCL            n = c->nccl = new _GallopNCCL();
  std::vector<PetscInt> index;

  n->table     = &GallopNCCLTable_Device;
  n->functions = &functions;
  n->comm      = (GallopNCCLComm)number;
  n->send      = new GallopNCCLMessage[size];
  n->recv      = new GallopNCCLMessage[size];
  for (int q = 0; q < size; q++) {
    const auto &sends = m.sends[(size_t)me * size + q], &comes = m.sends[(size_t)q * size + me];

    if (!sends.empty()) n->send[n->nsends++] = {q, (PetscInt)index.size(), (PetscInt)sends.size()};
    index.insert(index.end(), sends.begin(), sends.end());
    if (!comes.empty()) n->recv[n->nrecvs++] = {q, (PetscInt)c->wanted.size(), (PetscInt)comes.size()};
    for (PetscInt place : comes) c->wanted.push_back(1000 * q + place);
  }
  n->nindex = (PetscInt)index.size();
  n->index  = new PetscInt[index.size()];
  std::copy(index.begin(), index.end(), n->index);
  for (auto &x : c->x) x = (PetscScalar *)malloc(50 * sizeof(PetscScalar));
  CheckCall((*n->table->create)(n, (PetscInt)c->wanted.size()));
}

static void Multiply(int me, Connection *c)
{
  const PetscInt     product = ++c->product;
  PetscScalar *const x       = c->x[(size_t)current];
  Vec                ghost;

  emu::recording = &launched;
  Push((size_t)current, {[=] {
                           for (PetscInt k = 0; k < 50; k++) x[k] = Value(me, k, product);
                         },
                         Ready,
                         {}});
  CheckCall(GallopNCCLBegin(c->nccl, (Vec)x, &ghost));
  Push((size_t)current, {[] {}, Ready, {}}); /* the diagonal block */
  CheckCall(GallopNCCLEnd(c->nccl));
  emu::recording = nullptr;
  for (int part = 0; part < 2; part++) /* a product takes its time */
    Push((size_t)current, {[=] {
                             for (size_t k = 0; k < c->wanted.size(); k++)
                               if (((PetscScalar *)ghost)[k] != Value(0, c->wanted[k], product))
                                 emu::Fail("process %d, product %ld: ghost value %ld is %g, not %g", me, (long)product, (long)k, PetscRealPart(((PetscScalar *)ghost)[k]), PetscRealPart(Value(0, c->wanted[k], product)));
                           },
                           Ready,
                           {}});
}

/* ---- the program that all processes run ---- */

enum Kind { CREATE, PRODUCT, DESTROY, STREAM };
struct Step {
  Kind   kind;
  size_t matrix;
};

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
    else if (step.kind == PRODUCT) Multiply(me, c);
    else CheckCall((*c->nccl->table->destroy)(c->nccl));
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
  std::vector<size_t> live;
  const int           slow = (int)(choice() % (unsigned)size); /* its streams lag behind */
  int                 idle = 0, left = size;

  program.clear();
  processes.clear();
  processes.resize(size);
  matrices.assign(nmatrices, Matrix());
  for (auto &m : matrices) CreateMatrix(&m);
  for (auto &p : processes) p.connection.resize(nmatrices);
  for (size_t m = 0; m < (size_t)nmatrices; m++) {
    program.push_back({CREATE, m});
    live.push_back(m);
    for (int k = 0; k < products; k++) {
      if (choice() % 8 == 0) program.push_back({STREAM, 0});
      program.push_back({PRODUCT, live[choice() % live.size()]});
    }
    while (live.size() > 2 || (m + 1 == (size_t)nmatrices && !live.empty())) {
      const size_t at = choice() % live.size();

      program.push_back({DESTROY, live[at]});
      live.erase(live.begin() + (long)at);
    }
  }
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
  for (int k = 0; k < (full ? 200 : 10); k++) Test(1 + (int)(choice() % 8), 1 + (int)(choice() % 6), 10);
  return End();
}
