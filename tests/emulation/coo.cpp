/* SPDX-License-Identifier: BSD-2-Clause */
/* Indices of COO assembly on the GPU, src/mat/impls/base/gallopcoodevice.cu, beside a map on the host: without room too */
#include <map>
#include "memory.h"
#include "mat/impls/base/gallopcoodevice.cu"

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  emu::Sync();
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  emu::Enqueue([=] { memcpy(to, from, bytes); });
  return PETSC_SUCCESS;
}

PetscErrorCode PetscGetMemType(const void *, PetscMemType *type)
{
  *type = PETSC_MEMTYPE_HOST;
  return PETSC_SUCCESS;
}

/* ---- the test ---- */

struct Entries {
  PetscInt              m, n;
  std::vector<PetscInt> i, j;
};

static void Test(const char *name, const Entries &e)
{
  const PetscCount                                   n = (PetscCount)e.i.size();
  std::map<std::pair<PetscInt, PetscInt>, PetscReal> sums;
  std::vector<PetscScalar>                           v(n), a, wanted;
  std::pair<PetscInt, PetscInt>                      before(-1, -1);
  bool                                               ordered = true;
  size_t                                             valid   = 0;
  GallopCOO                                         *coo;

  for (PetscCount k = 0; k < n; k++) {
    const std::pair<PetscInt, PetscInt> at(e.i[k], e.j[k]);
    const bool                          in = at.first >= 0 && at.second >= 0;

    v[k] = (PetscReal)(1 + k % 1000); /* sums of which are exact in any order */
    if (in) sums[at] += (PetscReal)(1 + k % 1000);
    valid += in;
    ordered = ordered && in && before < at;
    before  = at;
  }
  failing = requests = 0;
  for (int fail = 0; fail == 0 || !coo; fail++) { /* first with room, then until there is room again */
    PetscInt k = 0;

    failing  = fail;
    requests = 0;
    CheckCall(GallopCOOCreate_Device(e.m, e.n, n, e.i.data(), e.j.data(), &coo));
    emu::Sync();
    emu::CheckCanaries(name);
    if (fail && !coo) continue;
    if (!coo) emu::Fail("%s: no indices", name);
    if (fail && requests >= fail) emu::Fail("%s: indices without room", name);
    if (coo->n != n || coo->nz != (PetscInt)sums.size()) emu::Fail("%s: %ld nonzeros, not %zu", name, (long)coo->nz, sums.size());
    if (!coo->perm != ordered || !coo->jmap != (sums.size() == valid)) emu::Fail("%s: more indices than are needed, or fewer", name);
    for (bool add : {false, true}) {
      a.assign(coo->nz, (PetscReal)7);
      CheckCall(GallopCOOSetValues_Device(coo, v.data(), add ? ADD_VALUES : INSERT_VALUES, a.data()));
      emu::Sync();
      k = 0;
      for (auto &[at, sum] : sums) {
        if (a[k] != (PetscScalar)(sum + (add ? 7 : 0))) emu::Fail("%s: value %ld", name, (long)k);
        k++;
      }
    }
    if (fail) break;
    coo = NULL;
  }
}

static Entries Random(PetscInt m, PetscInt n, PetscCount count, int ignored)
{
  Entries e = {m, n};

  for (PetscCount k = 0; k < count; k++) {
    e.i.push_back(ignored && choice() % ignored == 0 ? -1 : (PetscInt)(choice() % m));
    e.j.push_back(ignored && choice() % ignored == 0 ? -3 : (PetscInt)(choice() % n));
  }
  return e;
}

static Entries Ordered(PetscInt m, PetscInt n, int every)
{
  Entries e = {m, n};

  for (PetscInt i = 0; i < m; i++)
    for (PetscInt j = 0; j < n; j++)
      if (choice() % every == 0) {
        e.i.push_back(i);
        e.j.push_back(j);
      }
  return e;
}

int main(int argc, char **argv)
{
  Entries once = Ordered(100, 90, 5), swapped = once, twice = once, ignored = once;

  Begin(argc, argv);
  std::swap(swapped.j[3], swapped.j[4]);
  twice.i.insert(twice.i.begin() + 50, twice.i[50]);
  twice.j.insert(twice.j.begin() + 50, twice.j[50]);
  ignored.i[0] = -1;
  Test("in order", once);
  Test("two of a row the other way round", swapped);
  Test("one of them twice", twice);
  Test("one of them to be ignored", ignored);
  Test("one", {1, 1, {0}, {0}});
  Test("one that is to be ignored", {1, 1, {-1}, {0}});
  Test("all the same", {5, 5, std::vector<PetscInt>(700, 3), std::vector<PetscInt>(700, 4)});
  Test("many of few", Random(10, 10, 3000, 0));
  Test("few of many", Random(2000000000, 2000000000, 500, 0));
  Test("some to be ignored", Random(50, 70, 2000, 5));
  for (int t = 0; t < (full ? 50 : 5); t++) Test("random", Random(1 + choice() % 100, 1 + choice() % 100, 1 + choice() % 2000, (int)(choice() % 4)));
  return End();
}
