/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by CUDA IPC: src/mat/impls/base/gallopexchangedevice.cu, the lists of gallopexchangeedges.c, and of gallopexchangeipc.c what products and the end of a matrix do

  Processes run the same program, in which matrices on some of them are made, multiplied and destroyed in turn. Each has a host, which goes on as it likes, and a stream of kernels and
  waits, or two; what goes on next, anywhere, is chosen at random. Of some matrices a product uses values in the buffer, in one column or several, of others it puts or adds them to places that several
  of them may go to. It checks what it reads, or gets.
*/
#include "testing.h"
#include <deque>
#include <map>
#include <petscsf.h>

struct Event {
  long recorded = 0, done = 0;
};

static void        DeviceSynchronize();
static cudaError_t EntryPoint(void **, cudaDriverEntryPointQueryResult *), RecordEvent(cudaEvent_t, cudaStream_t), WaitEvent(cudaStream_t, cudaEvent_t);
static PetscInt    waitby, streamby; /* 1: by the stream, 2: by a kernel; 1: on the same stream, 2: on the side stream */

#undef PetscInfo
#define PetscInfo(...)                                                PETSC_SUCCESS
#define PetscOptionsGetEList(options, prefix, name, list, n, to, set) (*(to) = strstr(name, "wait") ? waitby : streamby, PETSC_SUCCESS)
#define cudaEventCreateWithFlags(event, flags)                        (*(event) = (cudaEvent_t) new Event(), cudaSuccess)
#define cudaEventDestroy(event)                                       (delete (Event *)(event), cudaSuccess)
#define cudaEventRecord(event, stream)                                RecordEvent(event, stream)
#define cudaStreamWaitEvent(stream, event, flags)                     WaitEvent(stream, event)
#define cudaDeviceSynchronize()                                       (DeviceSynchronize(), cudaSuccess)
#undef cudaGetDriverEntryPointByVersion
#define cudaGetDriverEntryPointByVersion(name, function, version, flags, result) EntryPoint(function, result)
#define cudaGetDriverEntryPoint(name, function, flags, result)                   EntryPoint(function, result)

/* a vector is its array here */
#define VecGetArrayReadAndMemType(v, array, type)  (*(array) = (const PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayReadAndMemType(v, array)    PETSC_SUCCESS
#define VecGetArrayWriteAndMemType(v, array, type) (*(array) = (PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayWriteAndMemType(v, array)   PETSC_SUCCESS
#include "mat/impls/base/gallopexchangedevice.cu"
#include "mat/impls/base/gallopexchangeedges.c"
#include "mat/impls/base/gallopexchangeipc.c"
#include "memory.h"

enum { MAIN, SIDE, STREAMS };

PetscErrorCode GallopGetSideStream(cudaStream_t *stream)
{
  *stream = (cudaStream_t)SIDE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMallocFails(PetscBool, PetscBool *fails)
{
  *fails = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceTry(size_t, PetscBool *fits)
{
  *fits = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

/* ---- a process ---- */

struct Operation {
  std::function<void()> run;
  std::function<bool()> ready;
};

struct Connection {
  GallopIPC             ipc     = NULL;
  PetscInt              product = 0;
  char                 *memory  = NULL;
  PetscReal            *x = NULL, *y = NULL;
  std::vector<PetscInt> wanted, place; /* of each unit that comes, 1000 times its process plus its place there; where it goes in y */
  std::vector<PetscInt> self, selfplace;
};

struct Process {
  std::deque<Operation>                 stream[STREAMS];
  size_t                                at      = 0; /* in the program */
  bool                                  arrived = false;
  std::vector<Connection>               connection; /* by matrix */
  std::map<size_t, std::vector<char *>> kept;       /* memory by its size, for the next matrix */
};

static std::vector<Process> processes;
static int                  now; /* whose host runs */

static void Push(
  std::function<void()> run, std::function<bool()> ready = [] { return true; }, size_t stream = MAIN)
{
  processes[now].stream[stream].push_back({run, ready});
}

static cudaError_t RecordEvent(cudaEvent_t e, cudaStream_t stream)
{
  Event *const event  = (Event *)e;
  const long   number = ++event->recorded;

  Push([=] { event->done = number; }, [] { return true; }, (size_t)stream);
  return cudaSuccess;
}

static cudaError_t WaitEvent(cudaStream_t stream, cudaEvent_t e)
{
  Event *const event  = (Event *)e;
  const long   number = event->recorded;

  Push([] {}, [=] { return event->done >= number; }, (size_t)stream);
  return cudaSuccess;
}

static bool IsIdle(const Process &p)
{
  return p.stream[MAIN].empty() && p.stream[SIDE].empty();
}

/* What a function of the library launches goes to the stream */
template <typename F>
static std::vector<std::function<void()>> Launched(F f)
{
  emu::Graph graph;

  emu::recording = &graph;
  CheckCall(f());
  emu::recording = nullptr;
  return graph;
}

static bool RunStream(Process &p)
{
  auto &stream = p.stream[choice() % STREAMS];

  if (stream.empty() || !stream.front().ready()) return false;
  const auto run = stream.front().run;
  stream.pop_front();
  run();
  return true;
}

static void DeviceSynchronize()
{
  Process &mine  = processes[now];
  int      tries = 0;

  while (!IsIdle(mine)) {
    Process &one = processes[choice() % processes.size()];

    if ((&one == &mine || choice() % 50 == 0) && RunStream(one)) tries = 0;
    else if (++tries > 100) return; /* for others' hosts to go on: the caller tries again */
  }
}

static CUresult BatchMemOperations(CUstream, unsigned n, CUstreamBatchMemOpParams *of, unsigned)
{
  std::vector<CUstreamBatchMemOpParams> waits(of, of + n);

  emu::Enqueue([=] {
    for (const auto &w : waits)
      if ((int)(*(unsigned *)w.waitValue.address - (unsigned)w.waitValue.value) < 0) emu::Fail("a stream went on before its flag");
  });
  return CUDA_SUCCESS;
}

static cudaError_t EntryPoint(void **function, cudaDriverEntryPointQueryResult *result)
{
  *function = (void *)BatchMemOperations;
  *result   = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

/* What is launched until the flags of neighbors are there waits for them */
static std::function<bool()> FlagsOf(GallopIPC ipc, int first, int last, unsigned number)
{
  const char *const flags = ipc->piece.memory;

  return [=] {
    for (int k = first; k < last; k++)
      if ((int)(*(const unsigned *)(flags + (size_t)k * GALLOP_IPC_FLAG) - number) < 0) return false;
    return true;
  };
}

/* The library's functions, of whose launches the second one of a Send(), if there is one, waits for flags. Events go to their streams by themselves, with what comes behind them in these. */
static PetscErrorCode Send(GallopIPC ipc, int buffer, unsigned number, const PetscReal *x, PetscCount ld, PetscInt columns)
{
  const unsigned long flags  = (unsigned long)ipc->nneighbors;
  const Plan *const   plan   = (Plan *)ipc->plan;
  const size_t        stream = (size_t)plan->side;
  const bool          waits  = stream == SIDE && plan->streamwaits;
  auto               &queue  = processes[now].stream[SIDE];
  const auto          launched = Launched([&] { return Send_Device(ipc, buffer, number, x, ld, columns); });
  Operation           come;

  if (waits) { /* the last event, which the launches come before */
    come = queue.back();
    queue.pop_back();
  }
  Push(
    [=] {
      const unsigned long before = cuda::stores;

      launched[0]();
      if (cuda::stores - before != flags) emu::Fail("flags were raised %lu times for %lu neighbors", cuda::stores - before, flags);
    },
    [] { return true; }, stream);
  if (launched.size() != (waits ? 2 : 1)) emu::Fail("%zu launches", launched.size());
  if (waits) {
    Push(launched[1], FlagsOf(ipc, 0, ipc->ngive, number), stream);
    queue.push_back(come);
  }
  return PETSC_SUCCESS;
}

static PetscErrorCode Unpack(GallopIPC ipc, GallopIPCScope scope, const PetscReal *from, PetscReal *to, PetscBool add)
{
  for (auto f : Launched([&] { return Unpack_Device(ipc, scope, from, to, add); })) Push(f);
  return PETSC_SUCCESS;
}

static PetscErrorCode Wait(GallopIPC ipc, int first, int last, unsigned number)
{
  const Plan *const plan   = (Plan *)ipc->plan;
  const auto        flags  = FlagsOf(ipc, first, last, number);
  const unsigned    packed = plan->neighbors;

  for (auto f : Launched([&] { return Wait_Device(ipc, first, last, number); }))
    Push(f, [=] { return flags() && (first || !plan->side || (int)(*plan->packed - packed) >= 0); });
  return PETSC_SUCCESS;
}

static GallopIPCTable table;

/* ---- matrices ---- */

static constexpr PetscInt Places = 50; /* units in x, and in y */

struct Matrix {
  GallopIPCKind                      kind;
  std::vector<int>                   member;
  std::vector<std::vector<PetscInt>> sends, places; /* from process to process, by their numbers times processes.size(): places in x, and in y */
};

static std::vector<Matrix> matrices;

/* A number of a unit: small, so that sums are exact */
static PetscReal Value(PetscInt process, PetscInt place, PetscInt product, PetscInt column, PetscInt part)
{
  return (PetscReal)((process * 7919 + place * 677 + product * 31 + column * 211 + part * 5) % 1021);
}

static void CreateMatrix(Matrix *m)
{
  const int size = (int)processes.size(), dense = (int)(choice() % 4);

  m->kind.scatter = choice() % 2 ? PETSC_TRUE : PETSC_FALSE;
  m->kind.bs      = choice() % 2 ? GALLOP_IPC_SCALAR : 3;
  m->kind.columns = m->kind.scatter || choice() % 2 ? 1 : 1 + (PetscInt)(choice() % 40);
  m->sends.resize((size_t)size * size);
  m->places.resize((size_t)size * size);
  for (int p = 0; p < size; p++)
    if (choice() % 4) m->member.push_back(p);
  for (int p : m->member)
    for (int q : m->member) {
      const size_t pair = (size_t)p * size + q;

      if ((p == q && !m->kind.scatter) || (int)(choice() % 4) > dense) continue;
      const PetscInt n = choice() % 20 == 0 ? PackValues + (PetscInt)(choice() % PackValues) : 1 + (PetscInt)(choice() % 9);
      for (PetscInt k = 0; k < n; k++) {
        m->sends[pair].push_back((PetscInt)(choice() % Places));
        m->places[pair].push_back((PetscInt)(choice() % Places));
      }
    }
  if (choice() % 2) /* each place at most once, as far as they reach */
    for (int q : m->member) {
      PetscInt next = 0;

      for (int p : m->member)
        for (PetscInt &place : m->places[(size_t)p * size + q])
          if (next < Places) place = next++;
    }
}

/* The process's part of a matrix, before it knows where others have their memory */
static void Begin(const Matrix &m, int me, Connection *c)
{
  const int size = (int)processes.size();
  GallopIPC ipc = c->ipc = new _GallopIPC();

  ipc->table    = &table;
  ipc->kind     = m.kind;
  ipc->neighbor = new GallopIPCNeighbor[GALLOP_IPC_NEIGHBORS]();
  for (int q = 0; q < size; q++) { /* those that give come first */
    const size_t pair = (size_t)q * size + me;

    for (size_t k = 0; k < m.sends[pair].size(); k++) {
      (q == me ? c->self : c->wanted).push_back(1000 * q + m.sends[pair][k]);
      (q == me ? c->selfplace : c->place).push_back(m.places[pair][k]);
    }
    if (m.sends[pair].empty() || q == me) continue;
    ipc->neighbor[ipc->nneighbors].rank    = q;
    ipc->neighbor[ipc->nneighbors++].gives = PETSC_TRUE;
  }
  ipc->ngive = ipc->nneighbors;
  std::vector<PetscInt> index;
  for (int q = 0; q < size; q++) {
    const auto &sends = m.sends[(size_t)me * size + q];
    int         k     = 0;

    if (sends.empty() || q == me) continue;
    while (k < ipc->nneighbors && ipc->neighbor[k].rank != q) k++;
    if (k == ipc->nneighbors) ipc->neighbor[ipc->nneighbors++].rank = q;
    ipc->neighbor[k].first = (PetscInt)index.size();
    ipc->neighbor[k].n     = (PetscInt)sends.size();
    index.insert(index.end(), sends.begin(), sends.end());
  }
  ipc->nindex = (PetscInt)index.size();
  ipc->index  = new PetscInt[index.size()];
  std::copy(index.begin(), index.end(), ipc->index);
  ipc->nghost = (PetscInt)c->wanted.size();
  if (m.kind.scatter) {
    const auto &self = m.sends[(size_t)me * size + me];

    CheckCall(ListCreate(ipc->nghost, c->place.data(), NULL, &ipc->list[GALLOP_IPC_REMOTE]));
    CheckCall(ListCreate((PetscInt)self.size(), c->selfplace.data(), self.data(), &ipc->list[GALLOP_IPC_SELF]));
  }
  c->x = (PetscReal *)malloc((size_t)(Places * m.kind.bs * m.kind.columns) * sizeof(PetscReal));
  c->y = (PetscReal *)malloc((size_t)(Places * m.kind.bs) * sizeof(PetscReal));

  size_t bytes = 4096;
  while (bytes < BufferOffset(ipc, 2)) bytes *= 2;
  auto &kept = processes[me].kept[ipc->piece.bytes = bytes];
  if (kept.empty()) kept.push_back((char *)aligned_alloc(256, bytes + 256));
  ipc->piece.memory = c->memory = kept.back();
  kept.pop_back();
  CheckCall(Clear_Device(c->memory, BufferOffset(ipc, 0)));
  for (int b = 0; b < 2; b++) ipc->buffer[b] = (PetscReal *)(c->memory + BufferOffset(ipc, b));
}

static void Connect(const Matrix &m, size_t number)
{
  for (int p : m.member) {
    GallopIPC ipc = processes[p].connection[number].ipc;

    for (int k = 0; k < ipc->nneighbors; k++) {
      const Connection &other = processes[ipc->neighbor[k].rank].connection[number];
      PetscInt          first = 0;
      int               j     = 0;

      while (other.ipc->neighbor[j].rank != p) j++;
      for (int i = 0; i < j; i++) first += other.ipc->neighbor[i].gives ? (PetscInt)m.sends[(size_t)other.ipc->neighbor[i].rank * processes.size() + ipc->neighbor[k].rank].size() : 0;
      ipc->neighbor[k].near  = choice() % 2 ? PETSC_TRUE : PETSC_FALSE;
      ipc->neighbor[k].raise = (unsigned *)(other.memory + (size_t)j * GALLOP_IPC_FLAG);
      ipc->neighbor[k].ld    = ColumnLength(other.ipc);
      for (int b = 0; b < 2; b++) ipc->neighbor[k].to[b] = other.ipc->buffer[b] + first * m.kind.bs;
    }
    waitby   = 1 + (PetscInt)(choice() % 2);
    streamby = 1 + (PetscInt)(choice() % 2);
    CheckCall(PlanCreate_Device(ipc, &ipc->plan));
  }
}

static void Fill(PetscReal *x, PetscInt process, PetscInt product, PetscInt bs, PetscInt columns)
{
  for (PetscInt c = 0; c < columns; c++)
    for (PetscInt k = 0; k < Places; k++)
      for (PetscInt i = 0; i < bs; i++) x[(c * Places + k) * bs + i] = Value(process, k, product, c, i);
}

static void Compare(int me, PetscInt product, PetscInt unit, PetscReal is, PetscReal wanted)
{
  if (is != wanted) emu::Fail("process %d, product %ld: a number of unit %ld is %g, not %g", me, (long)product, (long)unit, (double)is, (double)wanted);
}

static void Multiply(int me, Connection *c)
{
  const PetscInt product = ++c->product, bs = c->ipc->kind.bs, columns = 1 + product % c->ipc->kind.columns, n = c->ipc->nghost;
  int            b;

  Push([=] { Fill(c->x, me, product, bs, columns); });
  CheckCall(GallopIPCSend(c->ipc, c->x, Places * bs, columns, &b));
  CheckCall(GallopIPCReceive(c->ipc));
  for (int part = 0; part < 2; part++) /* a product takes its time */
    Push([=] {
      for (PetscInt j = 0; j < columns; j++)
        for (PetscInt k = 0; k < n; k++)
          for (PetscInt i = 0; i < bs; i++) Compare(me, product, k, c->ipc->buffer[b][(j * n + k) * bs + i], Value(c->wanted[k] / 1000, c->wanted[k] % 1000, product, j, i));
    });
}

/* What a scatter gives, an edge after the other */
static void Scatter(int me, Connection *c)
{
  const PetscInt  product = ++c->product, bs = c->ipc->kind.bs;
  const PetscBool add = product % 2 ? PETSC_TRUE : PETSC_FALSE;

  Push([=] {
    Fill(c->x, me, product, bs, 1);
    Fill(c->y, me, -product, bs, 1);
  });
  CheckCall(GallopIPCScatterBegin(c->ipc, c->x, c->y, add));
  CheckCall(GallopIPCScatterEnd(c->ipc, c->y, add));
  Push([=] {
    std::vector<PetscReal> wanted((size_t)(Places * bs));
    const auto             edges = [&](const std::vector<PetscInt> &from, const std::vector<PetscInt> &to) {
      for (size_t k = 0; k < from.size(); k++)
        for (PetscInt i = 0; i < bs; i++) {
          PetscReal      &place = wanted[(size_t)(to[k] * bs + i)];
          const PetscReal value = Value(from[k] / 1000, from[k] % 1000, product, 0, i);

          place = add ? place + value : value;
        }
    };

    Fill(wanted.data(), me, -product, bs, 1);
    edges(c->self, c->selfplace);
    edges(c->wanted, c->place);
    for (PetscInt k = 0; k < Places * bs; k++) Compare(me, product, k / bs, c->y[k], wanted[(size_t)k]);
  });
}

/* ---- the program that all processes run ---- */

enum Kind { CREATE, PRODUCT, DESTROY };
struct Step {
  Kind   kind;
  size_t matrix;
};

/* One step of a host; false where it has to wait for others */
static bool RunHost(int me, const std::vector<Step> &program)
{
  Process &p = processes[me];

  if (p.at == program.size()) return false;
  const Step    step = program[p.at];
  const Matrix &m    = matrices[step.matrix];
  Connection   *c    = &p.connection[step.matrix];

  now = me;
  if (std::find(m.member.begin(), m.member.end(), me) == m.member.end()) {
    p.at++;
    return true;
  }
  switch (step.kind) {
  case CREATE: {
    bool all = true;

    if (p.arrived) return false;
    p.arrived = true;
    Begin(m, me, c);
    for (int q : m.member)
      if (!processes[q].arrived || processes[q].at != p.at) all = false;
    if (!all) return true;
    Connect(m, step.matrix);
    for (int q : m.member) {
      processes[q].arrived = false;
      processes[q].at++;
    }
    return true;
  }
  case PRODUCT:
    if (p.stream[MAIN].size() > 40) return false;
    if (m.kind.scatter) Scatter(me, c);
    else Multiply(me, c);
    break;
  case DESTROY: {
    GallopIPC    ipc   = c->ipc;
    const size_t bytes = ipc->piece.bytes;

    /* what GallopIPCDestroy() waits for, while other hosts go on */
    if (ipc->product && ipc->nneighbors && !p.arrived) CheckCall(Wait(ipc, 0, ipc->nneighbors, ipc->product));
    p.arrived = true;
    DeviceSynchronize();
    if (!IsIdle(p)) return false;
    p.arrived = false;
    p.kept[bytes].push_back(c->memory);
    CheckCall(PlanDestroy_Device(&ipc->plan));
    break;
  }
  }
  p.at++;
  return true;
}

static void Test(int size, int nmatrices, int products)
{
  std::vector<Step>   program;
  std::vector<size_t> live;
  const int           slow = (int)(choice() % (unsigned)size); /* its stream lags behind */
  int                 idle = 0, left = size;

  processes.assign(size, Process());
  matrices.assign(nmatrices, Matrix());
  for (auto &m : matrices) CreateMatrix(&m);
  for (auto &p : processes) p.connection.resize(nmatrices);
  for (size_t m = 0; m < (size_t)nmatrices; m++) {
    program.push_back({CREATE, m});
    live.push_back(m);
    for (int k = 0; k < products; k++) program.push_back({PRODUCT, live[choice() % live.size()]});
    while (live.size() > 2 || (m + 1 == (size_t)nmatrices && !live.empty())) {
      const size_t at = choice() % live.size();

      program.push_back({DESTROY, live[at]});
      live.erase(live.begin() + (long)at);
    }
  }
  while (left) {
    const int k = (int)(choice() % (unsigned)size);

    if (k == slow && choice() % 50) continue;
    const bool went = choice() % 3 ? RunStream(processes[k]) : RunHost(k, program);

    idle = went ? 0 : idle + 1;
    if (idle > 100000) emu::Fail("a deadlock of %d processes", size);
    left = 0;
    for (auto &p : processes) left += p.at < program.size() || !IsIdle(p);
  }
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  table        = GallopIPCTable_Device;
  table.send   = Send;
  table.wait   = Wait;
  table.unpack = Unpack;
  for (int k = 0; k < (full ? 200 : 10); k++) Test(1 + (int)(choice() % 8), 1 + (int)(choice() % 6), 10);
  return End();
}
