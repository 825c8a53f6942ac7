/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Values by CUDA IPC: src/mat/impls/base/gallopexchangedevice.cu, and what exchangetest.h has

  Processes run the same program, in which matrices on some of them are made, multiplied and destroyed in turn. Each has a host, which goes on as it likes, and a stream of kernels and
  waits, or two; what goes on next, anywhere, is chosen at random. Of some matrices a product uses values in the buffer, in one column or several, of others it puts or adds them to places that several
  of them may go to. It checks what it reads, or gets.
*/
#include "exchangetest.h"
#include <map>

static cudaError_t EntryPoint(void **, cudaDriverEntryPointQueryResult *);
static PetscInt    waitby, streamby; /* 1: by the stream, 2: by a kernel; 1: on the same stream, 2: on the side stream */

#define PetscOptionsGetEList(options, prefix, name, list, n, to, set) (*(to) = strstr(name, "wait") ? waitby : streamby, PETSC_SUCCESS)
#undef cudaGetDriverEntryPointByVersion
#define cudaGetDriverEntryPointByVersion(name, function, version, flags, result) EntryPoint(function, result)
#define cudaGetDriverEntryPoint(name, function, flags, result)                   EntryPoint(function, result)
#include "mat/impls/base/gallopexchangedevice.cu"
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

/* ---- a process ---- */

struct Operation {
  std::function<void()> run;
  std::function<bool()> ready;
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

static void Queue(std::function<void()> run)
{
  Push(run);
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
  const unsigned long flags    = (unsigned long)ipc->nneighbors;
  const Plan *const   plan     = (Plan *)ipc->plan;
  const size_t        stream   = (size_t)plan->side;
  const bool          waits    = stream == SIDE && plan->streamwaits;
  auto               &queue    = processes[now].stream[SIDE];
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
  for (auto f : Launched([&] { return GallopIPCUnpack_Device(ipc, scope, from, to, add); })) Push(f);
  return PETSC_SUCCESS;
}

static PetscErrorCode Wait(GallopIPC ipc, int first, int last, unsigned number)
{
  const Plan *const plan   = (Plan *)ipc->plan;
  const auto        flags  = FlagsOf(ipc, first, last, number);
  const unsigned    packed = plan->neighbors;

  for (auto f : Launched([&] { return Wait_Device(ipc, first, last, number); })) Push(f, [=] { return flags() && (first || !plan->side || (int)(*plan->packed - packed) >= 0); });
  return PETSC_SUCCESS;
}

static GallopIPCTable table;

/* ---- matrices ---- */

/* The process's memory, before it knows where others have theirs */
static void GetMemory(int me, GallopIPC ipc)
{
  size_t bytes = 4096;

  ipc->table = &table;
  while (bytes < BufferOffset(ipc, 2)) bytes *= 2;
  auto &kept = processes[me].kept[ipc->piece.bytes = bytes];
  if (kept.empty()) kept.push_back((char *)aligned_alloc(256, bytes + 256));
  ipc->piece.memory = kept.back();
  kept.pop_back();
  CheckCall(Clear_Device(ipc->piece.memory, BufferOffset(ipc, 0)));
  for (int b = 0; b < 2; b++) ipc->buffer[b] = (PetscReal *)(ipc->piece.memory + BufferOffset(ipc, b));
}

/* What -info says is what options ask for, and what is done */
static void CheckDescription(GallopIPC ipc)
{
  const Plan *const plan   = (Plan *)ipc->plan;
  const bool        stream = ipc->nneighbors && waitby == 1, side = ipc->ngive && streamby == 2;
  const char       *how;

  CheckCall(Describe_Device(ipc, &how));
  if ((strncmp(how, "a kernel", 8) != 0) != stream || (strstr(how, "side stream") != NULL) != side) emu::Fail("\"%s\" waits; the options are %d for that and %d for the stream", how, (int)waitby, (int)streamby);
  if (plan->streamwaits != stream || (plan->side != NULL) != side) emu::Fail("what is said and what is done differ: \"%s\"", how);
}

static void Connect(const Matrix &m, size_t number)
{
  for (int p : m.member) {
    GallopIPC ipc = processes[p].connection[number].ipc;

    for (int k = 0; k < ipc->nneighbors; k++) {
      const Connection &other = processes[ipc->neighbor[k].rank].connection[number];
      int               j     = 0;

      while (other.ipc->neighbor[j].rank != p) j++;
      ipc->neighbor[k].near  = choice() % 2 ? PETSC_TRUE : PETSC_FALSE;
      ipc->neighbor[k].raise = (unsigned *)(other.ipc->piece.memory + (size_t)j * GALLOP_IPC_FLAG);
      ipc->neighbor[k].ld    = ColumnLength(other.ipc);
      for (int b = 0; b < 2; b++) ipc->neighbor[k].to[b] = other.ipc->buffer[b] + other.ipc->neighbor[j].place * m.kind.bs;
    }
    waitby   = 1 + (PetscInt)(choice() % 2);
    streamby = 1 + (PetscInt)(choice() % 2);
    CheckCall(PlanCreate_Device(ipc, &ipc->plan));
    CheckDescription(ipc);
  }
}

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
    FindPart(m, (int)processes.size(), me, c);
    GetMemory(me, c->ipc);
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
    p.kept[bytes].push_back(ipc->piece.memory);
    CheckCall(PlanDestroy_Device(&ipc->plan));
    break;
  }
  case STREAM:
    break;
  }
  p.at++;
  return true;
}

static void Test(int size, int nmatrices, int products)
{
  const int slow = (int)(choice() % (unsigned)size); /* its stream lags behind */
  int       idle = 0, left = size;

  processes.assign(size, Process());
  matrices.assign(nmatrices, Matrix());
  for (auto &m : matrices) CreateMatrix(size, &m);
  for (auto &p : processes) p.connection.resize(nmatrices);
  const auto program = CreateProgram(nmatrices, products, false);
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
