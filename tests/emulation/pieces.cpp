/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Large pieces of memory that are kept for the next matrix: src/sys/largepieces.h. There are no kernels here: a GPU of so many bytes counts what it has lent, and a list of what is in use what the
  class gives.
*/
#include "testing.h"
#include <map>

static constexpr size_t Memory = 1 << 20;

static std::map<void *, size_t> allocated; /* by CUDA */
static int                      device;
static size_t                   calls, addresses; /* of cudaMemGetInfo(); that pieces have had */

static size_t Allocated()
{
  size_t all = 0;

  for (const auto &a : allocated) all += a.second;
  return all;
}

static cudaError_t Malloc(void **ptr, size_t bytes)
{
  if (Allocated() + bytes > Memory) return cudaErrorMemoryAllocation;
  *ptr            = (void *)(++addresses * 256); /* each piece has its own */
  allocated[*ptr] = bytes;
  return cudaSuccess;
}

static cudaError_t Free(void *ptr)
{
  if (!allocated.erase(ptr)) emu::Fail("memory is freed that is not there");
  return cudaSuccess;
}

static cudaError_t GetInfo(size_t *left, size_t *total)
{
  calls++;
  *left  = Memory - Allocated();
  *total = Memory;
  return cudaSuccess;
}

#define cudaMalloc(ptr, bytes)      Malloc(ptr, bytes)
#define cudaFree(ptr)               Free(ptr)
#define cudaMemGetInfo(left, total) GetInfo(left, total)
#define cudaGetDevice(number)       (*(number) = device, cudaSuccess)
#include "sys/largepieces.h"

struct Use {
  size_t       bytes;
  cudaStream_t stream;
  int          device;
};

static size_t Kept(const std::map<void *, Use> &used)
{
  size_t all = 0;

  for (const auto &a : allocated)
    if (!used.count(a.first)) all += a.second;
  return all;
}

static void Test(size_t part, size_t most, double slack, bool drops, int steps)
{
  LargePieces                                    pieces(part, most, slack, drops);
  std::map<void *, Use>                          used;
  std::map<void *, std::pair<cudaStream_t, int>> last; /* for whom a piece was first */

  for (int k = 0; k < steps; k++) {
    device = (int)(choice() % 2);
    if (choice() % 2 || used.empty()) {
      const size_t       bytes  = 1 + choice() % (Memory / 8);
      const cudaStream_t stream = (cudaStream_t)(choice() % 2);
      const auto         before = allocated;
      void              *ptr    = NULL;
      const cudaError_t  err    = pieces.DeviceAllocate(&ptr, bytes, stream);

      if (err == cudaErrorMemoryAllocation) {
        if (drops && Kept(used)) emu::Fail("pieces are kept that were of no use");
        if (pieces.FreeAllCached() != cudaSuccess || Kept(used)) emu::Fail("%zu bytes are kept", Kept(used));
        continue;
      }
      if (err != cudaSuccess || !allocated.count(ptr) || used.count(ptr)) emu::Fail("a piece that is not there, or in use");
      if (allocated[ptr] < bytes) emu::Fail("%zu bytes of %zu", allocated[ptr], bytes);
      if (before.count(ptr)) {
        if (slack && (double)allocated[ptr] > slack * (double)bytes) emu::Fail("%zu bytes for %zu", allocated[ptr], bytes);
        if (last[ptr] != std::make_pair(stream, device)) emu::Fail("a piece of another stream or GPU");
      } else last[ptr] = {stream, device};
      used[ptr] = {bytes, stream, device};
    } else {
      auto         at   = std::next(used.begin(), (long)(choice() % used.size()));
      void *const  ptr  = at->first;
      const size_t kept = Kept(used);

      if (!pieces.Has(ptr)) emu::Fail("a piece in use is not known");
      used.erase(at);
      if (pieces.DeviceFree(ptr) != cudaSuccess || pieces.Has(ptr)) emu::Fail("a piece stays in use");
      /* a limit of what was free, for workspace at another time: never more than of all */
      if (Kept(used) > kept && Kept(used) > (drops ? Memory : Memory - Allocated() + Kept(used)) / part) emu::Fail("%zu bytes are kept of %zu", Kept(used), Memory);
      if (allocated.size() - used.size() > most) emu::Fail("%zu pieces are kept", allocated.size() - used.size());
    }
  }
  while (!used.empty()) {
    (void)pieces.DeviceFree(used.begin()->first);
    used.erase(used.begin());
  }
  if (pieces.FreeAllCached() != cudaSuccess || !allocated.empty()) emu::Fail("%zu pieces are never freed", allocated.size());
}

/* What a build after a build finds */
static void Again()
{
  LargePieces  memories(8, 2, 8. / 7., false), workspaces(8, 1, 0, true);
  void        *first, *second, *three[3];
  const size_t bytes = Memory / 16;

  (void)memories.DeviceAllocate(&first, bytes, NULL);
  (void)memories.DeviceFree(first);
  (void)memories.DeviceAllocate(&second, bytes - bytes / 10, NULL);
  if (second != first) emu::Fail("a piece that is a tenth too large is not found");
  (void)memories.DeviceFree(second);
  (void)memories.DeviceAllocate(&second, bytes / 2, NULL);
  if (second == first) emu::Fail("a piece is found that is twice too large");
  (void)memories.DeviceFree(second);
  (void)memories.FreeAllCached();
  /* two are kept: the third takes the place of the first, whatever their sizes */
  for (int k = 0; k < 3; k++) (void)memories.DeviceAllocate(&three[k], bytes >> k, NULL);
  for (int k = 0; k < 3; k++) (void)memories.DeviceFree(three[k]);
  if (allocated.count(three[0]) || !allocated.count(three[1]) || !allocated.count(three[2])) emu::Fail("pieces stay that are of no use");
  (void)memories.FreeAllCached();
  (void)workspaces.DeviceAllocate(&first, bytes, NULL);
  (void)workspaces.DeviceAllocate(&second, bytes / 2, NULL);
  (void)workspaces.DeviceFree(first);
  (void)workspaces.DeviceFree(second);
  if (!allocated.count(first) || allocated.count(second)) emu::Fail("of workspace the smaller piece stays");
  calls = 0;
  (void)workspaces.DeviceAllocate(&second, 1, NULL);
  (void)workspaces.DeviceFree(second);
  if (second != first || calls) emu::Fail("workspace is not found, or what is free is asked again");
  (void)workspaces.FreeAllCached();
  if (!allocated.empty()) emu::Fail("pieces are never freed");
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  Again();
  for (int k = 0; k < (full ? 300 : 30); k++) {
    Test(4 + choice() % 60, 1 + choice() % 8, 8. / 7., false, 300);
    Test(16, 1, 0, true, 300);
  }
  return End();
}
