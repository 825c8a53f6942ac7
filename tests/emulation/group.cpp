/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Sums of several processes: src/ksp/ksp/gallopgroup.cu and gallopgroup.cuh

  A thread block is a process, which adds up sums as often as the others, each as fast as it likes.
*/
#include "testing.h"

static void Publishes(PetscInt64 number, int stopped) /* called by the GPU: prepare.py */
{
  (void)number, (void)stopped;
}

#include "ksp/ksp/gallopfused.cuh"
#include "ksp/ksp/gallopgroup.cu"

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  *p = emu::Guarded(std::vector<char>(bytes));
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

/* What a process adds to the sums of this number */
static Sums SumsOf(int process, int number)
{
  const PetscReal value = std::sin((PetscReal)(37 * process + 11 * number + 1));

  return {(PetscScalar)value, value * value};
}

static void SumKernel(DeviceGroup *const *group, int numbers, Sums *sums, PetscScalar *dots)
{
  for (int k = 0; k < numbers; k++) {
    const Sums sum = SumOfProcesses(group[blockIdx.x], SumsOf((int)blockIdx.x, 2 * k));

    __syncwarp(); /* a kernel of a solver has sums once */

    const PetscScalar dot = SumOfProcesses(group[blockIdx.x], SumsOf((int)blockIdx.x, 2 * k + 1).dot);

    if (threadIdx.x == 0) {
      sums[(size_t)blockIdx.x * numbers + k] = sum;
      dots[(size_t)blockIdx.x * numbers + k] = dot;
    }
    __syncwarp();
  }
}

/* The same in the order of processes */
template <typename S, typename Of>
static S Expected(int processes, Of of)
{
  S sum = S();

  for (int p = 0; p < processes; p++) sum = sum + of(p);
  return sum;
}

static void Test(int processes, int numbers)
{
  const int                  n = processes - 1;
  std::vector<_GallopIPC>    ipc(processes);
  std::vector<DeviceGroup *> group(processes);
  std::vector<Sums>          sums((size_t)processes * numbers);
  std::vector<PetscScalar>   dots(sums.size());
  std::vector<int>           order(processes);

  for (int p = 0; p < processes; p++) {
    ipc[p].piece.memory = emu::Guarded(std::vector<char>((size_t)n * GALLOP_IPC_FLAG));
    for (int b = 0; b < 2; b++) ipc[p].buffer[b] = emu::Guarded(std::vector<PetscReal>((size_t)n * GALLOP_GROUP_REALS, NAN));
    ipc[p].nneighbors = n;
    ipc[p].neighbor   = new GallopIPCNeighbor[GALLOP_IPC_NEIGHBORS]();
    for (int k = 0; k < n; k++) {
      ipc[p].neighbor[k].rank  = k < p ? k : k + 1;
      ipc[p].neighbor[k].place = k;
    }
    std::shuffle(ipc[p].neighbor, ipc[p].neighbor + n, choice);
  }
  for (int p = 0; p < processes; p++)
    for (int k = 0; k < n; k++) {
      GallopIPCNeighbor &to    = ipc[p].neighbor[k];
      _GallopIPC        &other = ipc[to.rank];
      int                at    = 0;

      while (other.neighbor[at].rank != p) at++;
      to.raise = (unsigned int *)(other.piece.memory + (size_t)at * GALLOP_IPC_FLAG);
      for (int b = 0; b < 2; b++) to.to[b] = other.buffer[b] + (size_t)(p < to.rank ? p : p - 1) * GALLOP_GROUP_REALS;
    }
  for (int p = 0; p < processes; p++) CheckCall(GallopGroupCreate_Device(&ipc[p], p, (void **)&group[p]));
  emu::resident = processes;
  for (int launch = 0; launch < 2; launch++) {
    emu::Launch("SumKernel", emu::Cfg((size_t)processes, 32), SumKernel, group.data(), numbers, sums.data(), dots.data());
    emu::Sync();
    emu::CheckCanaries("sums");
    for (int p = 0; p < processes; p++)
      for (int k = 0; k < numbers; k++) {
        const Sums        sum = Expected<Sums>(processes, [=](int q) { return SumsOf(q, 2 * k); });
        const PetscScalar dot = Expected<PetscScalar>(processes, [=](int q) { return SumsOf(q, 2 * k + 1).dot; });
        const size_t      at  = (size_t)p * numbers + k;

        if (sums[at].dot != sum.dot || sums[at].norm != sum.norm || dots[at] != dot) emu::Fail("sums %d of process %d of %d are not those of all in the order of processes", k, p, processes);
      }
  }
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  for (int processes = 2; processes <= 5; processes++) Test(processes, 20);
  Test(8, 10);
  Test(GALLOP_IPC_NEIGHBORS + 1, 3);
  return End();
}
