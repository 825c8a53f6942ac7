/* SPDX-License-Identifier: BSD-2-Clause */
/*
  What exchange.cpp and exchangenccl.cpp share: matrices on some of the processes, what a process knows of its neighbors, and products, which check what they read, or get

  Here are the sources that do not depend on the way: gallopexchangeunits.cu, the lists of gallopexchangeedges.c, and of gallopexchangeipc.c what products do. A test then includes those of its way.
*/
#pragma once

#include "testing.h"
#include <algorithm>
#include <deque>
#include <petscsf.h>

struct Event {
  long recorded = 0, done = 0;
};

static cudaStream_t current; /* PETSc's, 0 or 1 */
static void         DeviceSynchronize();
static cudaError_t  RecordEvent(cudaEvent_t, cudaStream_t), WaitEvent(cudaStream_t, cudaEvent_t);

#undef PetscInfo
#define PetscInfo(...)                            PETSC_SUCCESS
#define PetscGetCurrentCUDAStream(stream)         (*(stream) = current, PETSC_SUCCESS)
#define cudaEventCreateWithFlags(event, flags)    (*(event) = (cudaEvent_t) new Event(), cudaSuccess)
#define cudaEventDestroy(event)                   (delete (Event *)(event), cudaSuccess)
#define cudaEventRecord(event, stream)            RecordEvent(event, stream)
#define cudaStreamWaitEvent(stream, event, flags) WaitEvent(stream, event)
#define cudaDeviceSynchronize()                   (DeviceSynchronize(), cudaSuccess)

/* a vector is its array here */
#define VecGetArrayReadAndMemType(v, array, type)  (*(array) = (const PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayReadAndMemType(v, array)    PETSC_SUCCESS
#define VecGetArrayWriteAndMemType(v, array, type) (*(array) = (PetscScalar *)(v), PETSC_SUCCESS)
#define VecRestoreArrayWriteAndMemType(v, array)   PETSC_SUCCESS
#include "mat/impls/base/gallopexchangeunits.cu"
#include "mat/impls/base/gallopexchangeedges.c"
#include "mat/impls/base/gallopexchangeipc.c"

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceIsCapturing(PetscBool *capturing)
{
  *capturing = PETSC_FALSE;
  return PETSC_SUCCESS;
}

/* What a function of the library launches goes to the stream that the caller says */
template <typename F>
static std::vector<std::function<void()>> Launched(F f)
{
  emu::Graph graph;

  emu::recording = &graph;
  CheckCall(f());
  emu::recording = nullptr;
  return graph;
}

static void Queue(std::function<void()>); /* on PETSc's stream */

/* A process's part of a matrix */
struct Connection {
  GallopIPC             ipc     = NULL;
  PetscInt              product = 0;
  PetscReal            *x[2], *y[2];   /* by PETSc's stream */
  std::vector<PetscInt> wanted, place; /* of each unit that comes, 1000 times its process plus its place there; where it goes in y */
  std::vector<PetscInt> self, selfplace;
};

static constexpr PetscInt Places = 50; /* units in x, and in y */

struct Matrix {
  GallopIPCKind                      kind;
  std::vector<int>                   member;
  std::vector<std::vector<PetscInt>> sends, places; /* from process to process, by their numbers times that of all: places in x, and in y */
};

static std::vector<Matrix> matrices;

/* A number of a unit: small, so that sums are exact */
static PetscReal Value(PetscInt process, PetscInt place, PetscInt product, PetscInt column, PetscInt part)
{
  return (PetscReal)((process * 7919 + place * 677 + product * 31 + column * 211 + part * 5) % 1021);
}

static void CreateMatrix(int size, Matrix *m)
{
  const int dense = (int)(choice() % 4);

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

/* What a process finds of its part. Ranks are those of all processes here. */
static void FindPart(const Matrix &m, int size, int me, Connection *c)
{
  GallopIPC             ipc = c->ipc = new _GallopIPC();
  std::vector<PetscInt> index;

  ipc->kind     = m.kind;
  ipc->neighbor = new GallopIPCNeighbor[size]();
  for (int q = 0; q < size; q++) { /* those that give come first */
    const size_t       pair     = (size_t)q * size + me;
    GallopIPCNeighbor &neighbor = ipc->neighbor[ipc->nneighbors];

    if (!m.sends[pair].empty() && q != me) {
      neighbor.rank   = q;
      neighbor.place  = (PetscInt)c->wanted.size();
      neighbor.ngives = (PetscInt)m.sends[pair].size();
      ipc->nneighbors++;
    }
    for (size_t k = 0; k < m.sends[pair].size(); k++) {
      (q == me ? c->self : c->wanted).push_back(1000 * q + m.sends[pair][k]);
      (q == me ? c->selfplace : c->place).push_back(m.places[pair][k]);
    }
  }
  ipc->ngive = ipc->nneighbors;
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
  for (int s = 0; s < 2; s++) {
    c->x[s] = (PetscReal *)malloc((size_t)(Places * m.kind.bs * m.kind.columns) * sizeof(PetscReal));
    c->y[s] = (PetscReal *)malloc((size_t)(Places * m.kind.bs) * sizeof(PetscReal));
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
  const PetscInt   product = ++c->product, bs = c->ipc->kind.bs, columns = 1 + product % c->ipc->kind.columns, n = c->ipc->nghost;
  PetscReal *const x = c->x[(size_t)current];
  int              b;

  Queue([=] { Fill(x, me, product, bs, columns); });
  CheckCall(GallopIPCSend(c->ipc, x, Places * bs, columns, &b));
  Queue([] {}); /* the diagonal block */
  CheckCall(GallopIPCReceive(c->ipc));
  for (int part = 0; part < 2; part++) /* a product takes its time */
    Queue([=] {
      for (PetscInt j = 0; j < columns; j++)
        for (PetscInt k = 0; k < n; k++)
          for (PetscInt i = 0; i < bs; i++) Compare(me, product, k, c->ipc->buffer[b][(j * n + k) * bs + i], Value(c->wanted[k] / 1000, c->wanted[k] % 1000, product, j, i));
    });
}

/* What a scatter gives, an edge after the other */
static void Scatter(int me, Connection *c)
{
  const PetscInt   product = ++c->product, bs = c->ipc->kind.bs;
  const PetscBool  add = product % 2 ? PETSC_TRUE : PETSC_FALSE;
  PetscReal *const x = c->x[(size_t)current], *const y = c->y[(size_t)current];

  Queue([=] {
    Fill(x, me, product, bs, 1);
    Fill(y, me, -product, bs, 1);
  });
  CheckCall(GallopIPCScatterBegin(c->ipc, x, y, add));
  CheckCall(GallopIPCScatterEnd(c->ipc, y, add));
  Queue([=] {
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
    for (PetscInt k = 0; k < Places * bs; k++) Compare(me, product, k / bs, y[k], wanted[(size_t)k]);
  });
}

/* ---- the program that all processes run ---- */

enum Kind { CREATE, PRODUCT, DESTROY, STREAM };
struct Step {
  Kind   kind;
  size_t matrix;
};

/* streams: PETSc's stream changes at times */
static std::vector<Step> CreateProgram(int nmatrices, int products, bool streams)
{
  std::vector<Step>   program;
  std::vector<size_t> live;

  for (size_t m = 0; m < (size_t)nmatrices; m++) {
    program.push_back({CREATE, m});
    live.push_back(m);
    for (int k = 0; k < products; k++) {
      if (streams && choice() % 8 == 0) program.push_back({STREAM, 0});
      program.push_back({PRODUCT, live[choice() % live.size()]});
    }
    while (live.size() > 2 || (m + 1 == (size_t)nmatrices && !live.empty())) {
      const size_t at = choice() % live.size();

      program.push_back({DESTROY, live[at]});
      live.erase(live.begin() + (long)at);
    }
  }
  return program;
}
