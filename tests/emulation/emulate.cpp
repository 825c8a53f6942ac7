/* SPDX-License-Identifier: BSD-2-Clause */
/* Fibers, their scheduler, and those of CUDA's and PETSc's functions that launch code calls */
#include "emulate.h"
#include <cstdarg>
#include <deque>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

dim3 gridDim, blockDim;

namespace emu
{
Block          *block;
Fiber          *fiber;
std::mt19937_64 random;
int             resident = 3, preempt = 4, cluster = 1, processors = 9, occupancy = 2;
bool            async   = false;
unsigned long   kernels = 0;

static const size_t        StackBytes = 65536, Page = 4096, MostShared = 1 << 19;
static const unsigned      TimeLimit = 120; /* seconds of a kernel */
static const unsigned char Unset = 0xC7, Alive = 0xA5;

static const std::function<void()> *body;
static const char                  *kernelname = "no kernel";
static void                        *scheduler; /* its stack pointer */
static std::vector<Block *>         live;
static std::vector<long>            arrived; /* at the barrier of each cluster */
static std::vector<char *>          stacks;  /* unused ones */

void Fail(const char *format, ...)
{
  va_list list;

  va_start(list, format);
  fprintf(stderr, "FAIL %s %s: ", block ? "in" : "after", kernelname);
  vfprintf(stderr, format, list);
  if (fiber && block) fprintf(stderr, " (thread block %u, thread %u)", block->number, fiber->id.x);
  fprintf(stderr, "\n");
  fflush(stdout);
  _exit(1);
}

/* ---- fibers ---- */

/* Saves registers that a call keeps and the stack pointer, and goes on where another fiber did so */
extern "C" void emu_switch(void **save, void *to);
asm(".text\n.globl emu_switch\nemu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\nmovq %rsp,(%rdi)\n"
    "movq %rsi,%rsp\npopq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

static void Leave(State state)
{
  fiber->state = state;
  emu_switch(&fiber->sp, scheduler);
}

static void Entry()
{
  (*body)();
  for (;;) Leave(ENDED);
}

static char *NewStack()
{
  char *stack;

  if (stacks.empty()) {
    stack = (char *)mmap(NULL, StackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, Page, PROT_NONE)) Fail("no memory for stacks");
  } else {
    stack = stacks.back();
    stacks.pop_back();
  }
  return stack;
}

static void Yield()
{
  block->ready.push_back((int)(fiber - block->fiber.data()));
  Leave(READY);
}

void MayYield()
{
  if (preempt && random() % (unsigned)preempt == 0) Yield();
}

/* ---- barriers and warps ---- */

int Barrier(bool vote)
{
  fiber->in = vote;
  Leave(AT_BARRIER);
  return (int)fiber->out;
}

/* Threads that have ended count as having arrived, as on a GPU */
static void CheckBarrier(Block &b)
{
  size_t at = 0, ended = 0, votes = 0;

  for (auto &f : b.fiber) {
    at += f.state == AT_BARRIER;
    ended += f.state == ENDED;
    votes += f.state == AT_BARRIER && f.in;
  }
  if (!at || at + ended < b.fiber.size()) return;
  for (size_t k = 0; k < b.fiber.size(); k++)
    if (b.fiber[k].state == AT_BARRIER) {
      b.fiber[k].state = READY;
      b.fiber[k].out   = votes;
      b.ready.push_back((int)k);
    }
}

uint64_t Warp(WarpOp op, unsigned mask, uint64_t in, int by, int width)
{
  if (!(mask >> fiber->lane & 1)) Fail("a lane is not in its own mask");
  fiber->op    = op;
  fiber->mask  = mask;
  fiber->in    = in;
  fiber->by    = by;
  fiber->width = width;
  Leave(AT_WARP);
  return fiber->out;
}

/* The operation of one set of lanes, all of which have reached it */
static void FinishWarp(Block &b, int first, unsigned mask)
{
  Fiber *const f    = &b.fiber[first];
  uint64_t     some = 0, least = ~(uint64_t)0;
  int64_t      most   = INT64_MIN;
  unsigned     ballot = 0;

  for (int k = 0; k < 32; k++)
    if (mask >> k & 1) {
      least = std::min(least, f[k].in);
      most  = std::max(most, (int64_t)f[k].in);
      some |= f[k].in;
      ballot |= (unsigned)(f[k].in != 0) << k;
    }
  for (int k = 0; k < 32; k++) {
    if (!(mask >> k & 1)) continue;
    const int by = f[k].by, width = f[k].width, within = k & (width - 1);
    int       from = k;

    switch (f[k].op) {
    case SHFL:
      from = k - within + (by & (width - 1));
      break;
    case SHFL_UP:
      from = within >= by ? k - by : k;
      break;
    case SHFL_DOWN:
      from = within + by < width ? k + by : k;
      break;
    case SHFL_XOR:
      from = k ^ by;
      break;
    }
    switch (f[k].op) {
    case REDUCE_MIN:
      f[k].out = least;
      break;
    case REDUCE_MAX:
      f[k].out = (uint64_t)most;
      break;
    case REDUCE_OR:
      f[k].out = some;
      break;
    case ALL:
      f[k].out = ballot == mask;
      break;
    case ANY:
      f[k].out = ballot != 0;
      break;
    case BALLOT:
      f[k].out = ballot;
      break;
    case MATCH:
      f[k].out = 0;
      for (int l = 0; l < 32; l++) f[k].out |= (uint64_t)((mask >> l & 1) && f[l].in == f[k].in) << l;
      break;
    default:
      f[k].out = mask >> from & 1 ? f[from].in : 0xdeadbeefdeadbeefull; /* undefined on a GPU */
    }
    f[k].state = READY;
    b.ready.push_back(first + k);
  }
}

static void CheckWarp(Block &b, int first)
{
  const int n     = (int)std::min<size_t>(32, b.fiber.size() - first);
  unsigned  ended = n < 32 ? ~0u << n : 0, at = 0;

  for (int k = 0; k < n; k++) {
    const Fiber &f = b.fiber[first + k];
    ended |= (unsigned)(f.state == ENDED) << k;
    at |= (unsigned)(f.state == AT_WARP) << k;
  }
  for (int k = 0; k < n; k++) {
    Fiber &f    = b.fiber[first + k];
    bool   same = true;

    if (f.state != AT_WARP || f.mask & ~(at | ended)) continue;
    block = &b;
    fiber = &f;
    if (f.mask & ended) Fail("a warp operation waits for a lane that has ended: mask %x, ended %x", f.mask, ended);
    for (int l = 0; l < n; l++) {
      const Fiber &g = b.fiber[first + l];
      if (!(f.mask >> l & 1)) continue;
      if (g.mask != f.mask) same = false;
      else if (g.op != f.op) Fail("lanes of a warp are at different operations");
    }
    if (!same) continue;
    FinishWarp(b, first, f.mask);
    return;
  }
}

/* ---- shared memory ---- */

static thread_local int mark = 1; /* tells which block of thread-local variables is the program's */
static char            *shared;
static size_t           sharedbytes;

static int FindShared(dl_phdr_info *info, size_t, void *)
{
  for (int k = 0; k < info->dlpi_phnum; k++) {
    char *const begin = (char *)info->dlpi_tls_data, *const end = begin + info->dlpi_phdr[k].p_memsz;
    if (info->dlpi_phdr[k].p_type != PT_TLS || !begin || (char *)&mark < begin || (char *)&mark >= end) continue;
    shared      = begin;
    sharedbytes = (size_t)(end - begin);
    return 1;
  }
  return 0;
}

void ClusterArrive()
{
  arrived[block->number / cluster]++;
  fiber->phases++;
}

void ClusterWait()
{
  while (arrived[block->number / cluster] < fiber->phases * cluster * (long)blockDim.x) Yield();
}

void *OfBlock(void *variable, unsigned number)
{
  for (auto b : live)
    if (b->number == number) {
      if (b->ended == (int)blockDim.x) break;
      return b == block ? variable : b->shared + ((char *)variable - shared);
    }
  Fail("shared memory of a thread block that has ended");
}

/* ---- the copy engine ---- */

/* One of the copies that are not done yet */
static void CopySome(Block &b)
{
  const size_t k = random() % b.copies.size();
  const auto   f = b.copies[k];

  b.copies.erase(b.copies.begin() + k);
  f();
}

/* The number of the phase is in the upper half of the barrier, bytes that are expected in the lower one */
static void Arrives(unsigned long long *barrier, unsigned bytes)
{
  if ((unsigned)*barrier < bytes) Fail("the copy engine writes bytes that nobody expects");
  *barrier -= bytes;
  if (!(unsigned)*barrier) *barrier += 1ull << 32;
}

void ExpectBytes(unsigned long long *barrier, unsigned bytes)
{
  if ((unsigned)*barrier) Fail("bytes are expected before those before them have come");
  *barrier += bytes;
  if (!bytes) Arrives(barrier, 0);
}

void CopyBytes(unsigned long long *barrier, void *to, const void *from, unsigned bytes)
{
  if (((size_t)to | (size_t)from | bytes) % 16) Fail("the copy engine copies units of 16 bytes");
  block->copies.push_back([=] {
    memcpy(to, from, bytes);
    Arrives(barrier, bytes);
  });
  if (random() % 2) CopySome(*block);
}

void WaitForBytes(unsigned long long *barrier, unsigned parity)
{
  while ((*barrier >> 32 & 1) == parity) {
    if (block->copies.empty()) Yield();
    else CopySome(*block);
  }
}

/* ---- kernels ---- */

static size_t DynamicRoom(size_t bytes)
{
  return (bytes + Page - 1) / Page * Page;
}

/* It ends where memory ends that may be touched */
static char *NewDynamic(size_t bytes)
{
  const size_t room = DynamicRoom(bytes);
  char *const  p    = (char *)mmap(NULL, room + Page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (p == MAP_FAILED || mprotect(p + room, Page, PROT_NONE)) Fail("no memory for shared memory");
  memset(p, Unset, room);
  return p + room - (bytes + 15) / 16 * 16;
}

static void FreeDynamic(char *p, size_t bytes)
{
  const size_t room = DynamicRoom(bytes);

  munmap(p - (room - (bytes + 15) / 16 * 16), room + Page);
}

static Block *NewBlock(unsigned number, unsigned threads, size_t dynamic)
{
  Block *b = new Block();

  b->number = number;
  b->fiber.resize(threads);
  b->shared  = (char *)malloc(sharedbytes);
  b->dynamic = NewDynamic(dynamic);
  memset(b->shared, Unset, sharedbytes);
  for (unsigned k = 0; k < threads; k++) {
    Fiber    &f = b->fiber[k] = Fiber();
    char     *stack           = NewStack();
    uint64_t *sp              = (uint64_t *)(stack + StackBytes - 64);

    *--sp = 0;
    *--sp = (uint64_t)Entry;
    for (int r = 0; r < 6; r++) *--sp = 0; /* registers that emu_switch() takes from the stack */
    f.id    = {k, 0, 0};
    f.lane  = (int)(k % 32);
    f.stack = stack;
    f.sp    = sp;
    b->ready.push_back((int)k);
  }
  return b;
}

/* A random number of turns, in which sometimes one warp runs ahead of the others */
static void RunBlock(Block &b)
{
  const bool ahead = random() % 2;
  const int  warp  = (int)(random() % ((b.fiber.size() + 31) / 32));

  for (int turns = 1 + (int)(random() % 400); turns && !b.ready.empty(); turns--) {
    size_t at = random() % b.ready.size();

    for (int t = 0; ahead && t < 8 && b.ready[at] / 32 != warp; t++) at = random() % b.ready.size();
    const int k = b.ready[at];
    b.ready[at] = b.ready.back();
    b.ready.pop_back();
    fiber = &b.fiber[k];
    emu_switch(&scheduler, fiber->sp);
    if (!b.copies.empty() && random() % 64 == 0) CopySome(b);
    if (b.fiber[k].state == ENDED) b.ended++;
    if (b.fiber[k].state == AT_WARP || b.fiber[k].state == ENDED) CheckWarp(b, k / 32 * 32);
    if (b.ready.empty()) CheckBarrier(b);
  }
}

static void OnAlarm(int)
{
  Fail("no end after %u s", TimeLimit);
}

void Run(const char *name, const Cfg &cfg, int of, const std::function<void()> &kernel)
{
  static char           keep[MostShared];
  static const bool     trace = getenv("EMU_TRACE");
  std::vector<unsigned> order(cfg.grid);
  size_t                next = 0, most = (size_t)resident;
  Block                *loaded = NULL;

  if (!shared) {
    dl_iterate_phdr(FindShared, NULL);
    signal(SIGALRM, OnAlarm);
    if (!shared || sharedbytes > MostShared) Fail("shared variables are not found, or too many");
  }
  if (trace) fprintf(stderr, "%s: %u thread blocks of %u, clusters of %d\n", name, cfg.grid, cfg.block, of);
  kernelname = name;
  body       = &kernel;
  gridDim    = dim3(cfg.columns, cfg.grid / cfg.columns);
  blockDim   = dim3(cfg.block);
  cluster    = of;
  if (!cfg.grid || cfg.grid % of) Fail("a grid of %u thread blocks, clusters of %d", cfg.grid, of);
  if (of > 1) most = cfg.grid; /* a cluster's are resident together */
  arrived.assign(cfg.grid / of, 0);
  for (unsigned k = 0; k < cfg.grid; k++) order[k] = k;
  std::shuffle(order.begin(), order.end(), random);

  memcpy(keep, shared, sharedbytes);
  alarm(TimeLimit);
  while (next < order.size() || !live.empty()) {
    while (live.size() < most && next < order.size()) live.push_back(NewBlock(order[next++], cfg.block, cfg.shared));
    const size_t which = random() % live.size();
    block              = live[which];
    if (loaded != block) {
      if (loaded) memcpy(loaded->shared, shared, sharedbytes);
      memcpy(shared, block->shared, sharedbytes);
      loaded = block;
    }
    RunBlock(*block);
    if (!block->ready.empty()) continue;
    if (block->ended < (int)cfg.block) {
      int at[4] = {};
      for (auto &f : block->fiber) at[f.state]++;
      Fail("a deadlock: %d threads at a barrier, %d at a warp operation, %d ended", at[AT_BARRIER], at[AT_WARP], at[ENDED]);
    }
    for (auto &f : block->fiber) stacks.push_back(f.stack);
    if (!block->copies.empty()) Fail("a thread block has ended before what it copies has come");
    free(block->shared);
    FreeDynamic(block->dynamic, cfg.shared);
    delete block;
    live[which] = live.back();
    live.pop_back();
    loaded = NULL;
  }
  alarm(0);
  memcpy(shared, keep, sharedbytes);
  block   = NULL;
  fiber   = NULL;
  cluster = 1;
  kernels++;
}

/* ---- the stream ---- */

static std::deque<std::function<void()>> queue;

Graph *recording = nullptr;

void Enqueue(std::function<void()> f)
{
  if (recording) {
    recording->push_back(f);
    return;
  }
  if (!async) {
    f();
    return;
  }
  queue.push_back(f);
  while (random() % 3 == 0 && Step()) { }
}

bool Step()
{
  if (queue.empty()) return false;
  const auto f = queue.front();
  queue.pop_front();
  f();
  return true;
}

void Sync()
{
  while (Step()) { }
}

/* ---- memory ---- */

struct Watched {
  unsigned char *begin, *end;
  std::string    what;
};
static std::vector<Watched> watched;

void Canary(void *begin, void *end, const char *what)
{
  memset(begin, Alive, (size_t)((char *)end - (char *)begin));
  watched.push_back({(unsigned char *)begin, (unsigned char *)end, what});
}

void CheckCanaries(const char *where)
{
  for (auto &w : watched)
    for (unsigned char *p = w.begin; p < w.end; p++)
      if (*p != Alive) Fail("%s: written %ld bytes behind the end of an array %s", where, (long)(p - w.begin), w.what.c_str());
}

void ClearCanaries()
{
  watched.clear();
}

void *Guarded(const void *from, size_t bytes, size_t align)
{
  const size_t room = (bytes + Page - 1) / Page * Page;
  char        *p    = (char *)mmap(NULL, room + Page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (p == MAP_FAILED || mprotect(p + room, Page, PROT_NONE)) Fail("no memory");
  p += room - (bytes + align - 1) / align * align;
  if (bytes) memcpy(p, from, bytes);
  return p;
}
} // namespace emu

/* ---- CUDA's functions, and PETSc's, which are the library's no more ---- */

extern "C" {
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t)
{
  emu::Enqueue([=] { memset(p, v, n); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *p, const void *q, size_t n, enum cudaMemcpyKind, cudaStream_t)
{
  emu::Enqueue([=] { memcpy(p, q, n); });
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
  emu::Sync();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
  return emu::Step() ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaGetLastError()
{
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int)
{
  switch (what) {
  case cudaDevAttrMultiProcessorCount:
    *value = emu::processors;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = 227 << 10;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = 228 << 10;
    break;
  case cudaDevAttrReservedSharedMemoryPerBlock:
    *value = 1 << 10;
    break;
  default:
    *value = 9; /* the compute capability's first number */
  }
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status)
{
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

PetscErrorCode PetscGetCurrentCUDAStream(cudaStream_t *stream)
{
  *stream = NULL;
  return PETSC_SUCCESS;
}

PetscErrorCode PetscError(MPI_Comm, int line, const char *function, const char *file, PetscErrorCode code, PetscErrorType, const char *message, ...)
{
  fprintf(stderr, "error %d in %s() at %s:%d: %s\n", (int)code, function, file, line, message ? message : "");
  return code;
}
}
