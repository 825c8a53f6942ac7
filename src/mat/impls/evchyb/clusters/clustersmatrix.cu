/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters on the GPU: the matrix in their order, and the product */

#include "clustersdevice.h"

static constexpr int Threads = EVCHYBClusterThreads, Lanes = EVCHYBClusterLanes, Groups = Threads / Lanes;

/* Where each row goes, and the length of each in the new order, to be added up */
__global__ static void __launch_bounds__(Threads) LengthsKernel(PetscInt m, const PetscInt *__restrict__ order, const PetscInt *__restrict__ i, PetscInt *pos, PetscCount *start)
{
  const PetscCount k = GallopGlobalThread();

  if (k == m) start[m] = 0;
  if (k >= m) return;
  const PetscInt row = order[k];

  pos[row] = (PetscInt)k;
  start[k] = i[row + 1] - i[row];
}

/* Some lanes have a row: entries by EVCHYBClusterKey(), those of long rows as they come. An entry comes behind all with a smaller key, and those of the same column before it. */
__global__ static void __launch_bounds__(Threads) EntriesKernel(PetscInt m, const PetscInt *__restrict__ order, const PetscInt *__restrict__ pos, const PetscCount *__restrict__ start, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, PetscInt *newi, PetscInt *newj, PetscScalar *newa)
{
  __shared__ uint32_t keys[Groups][EVCHYB_CLUSTER_LONGEST];
  const PetscCount    k    = GallopGlobalThread() / Lanes;
  const int           lane = threadIdx.x % Lanes;
  uint32_t *const     own  = keys[threadIdx.x / Lanes];
  PetscCount          to   = 0;
  PetscInt            from = 0, length = 0;

  if (k <= m) {
    to = start[k];
    if (lane == 0) newi[k] = (PetscInt)to;
  }
  if (k < m) {
    from   = i[order[k]];
    length = (PetscInt)(start[k + 1] - to);
  }
  if (length > EVCHYB_CLUSTER_LONGEST) {
    for (PetscInt e = lane; e < length; e += Lanes) {
      newj[to + e] = pos[j[from + e]];
      newa[to + e] = a[from + e];
    }
    length = 0;
  }
  for (PetscInt e = lane; e < length; e += Lanes) own[e] = EVCHYBClusterKey(m, (PetscInt)k, pos[j[from + e]]);
  __syncwarp();
  for (PetscInt e = lane; e < length; e += Lanes) {
    const uint32_t key = own[e];
    PetscCount     at  = to;

    for (PetscInt l = 0; l < length; l++) at += own[l] < key || (own[l] == key && l < e);
    newj[at] = EVCHYBClusterColumn(m, key);
    newa[at] = a[from + e];
  }
}

struct Workspace {
  PetscInt    *i, *j, *pos;
  PetscScalar *a;
  PetscCount  *start;
  char        *cub;
  size_t       cubbytes;
};

static size_t Carve(Workspace *w, PetscInt m, PetscCount nz, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->i, (PetscCount)m + 1);
  carver.Take(w->j, nz);
  carver.Take(w->a, nz);
  carver.Take(w->pos, m);
  carver.Take(w->start, (PetscCount)m + 1);
  carver.Take(w->cub, (PetscCount)w->cubbytes);
  return carver.Bytes();
}

/* EVCHYBClusterPermute_Device - As EVCHYBClusterPermute_Host() */
PetscErrorCode EVCHYBClusterPermute_Device(const PetscInt order[], const GallopCSR *csr, EVCHYBClusterMatrix *matrix, PetscBool *fits)
{
  const PetscInt m = csr->m;
  Workspace      w = {};
  cudaStream_t   stream;

  PetscFunctionBegin;
  *matrix = {};
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(EVCHYBDeviceScan(nullptr, w.cubbytes, w.start, (PetscCount)m + 1, stream));
  PetscCall(GallopWorkspaceMalloc(Carve(&w, m, csr->nz, NULL), &matrix->memory));
  *fits = (PetscBool)(matrix->memory != NULL);
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(&w, m, csr->nz, matrix->memory);
  LengthsKernel<<<GallopBlocksFor((PetscCount)m + 1, Threads), Threads, 0, stream>>>(m, order, csr->i, w.pos, w.start);
  GallopCheckLaunch();
  PetscCallCUDA(EVCHYBDeviceScan(w.cub, w.cubbytes, w.start, (PetscCount)m + 1, stream));
  EntriesKernel<<<GallopBlocksFor(((PetscCount)m + 1) * Lanes, Threads), Threads, 0, stream>>>(m, order, w.pos, w.start, csr->i, csr->j, csr->a, w.i, w.j, w.a);
  GallopCheckLaunch();
  matrix->csr        = *csr;
  matrix->csr.i      = w.i;
  matrix->csr.j      = w.j;
  matrix->csr.a      = w.a;
  matrix->csr.host_i = NULL;
  matrix->csr.host_j = NULL;
  matrix->csr.copied = &matrix->copied;
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ static void __launch_bounds__(Threads) PlacesKernel(PetscInt n, const PetscInt *__restrict__ order, const PetscInt *__restrict__ perm, PetscInt *places)
{
  const PetscCount k = GallopGlobalThread();

  if (k < n) places[k] = order[perm[k]];
}

/* EVCHYBClustersPlaces_Device - The row of the matrix that each of n stored rows is, which are perm of its order */
PetscErrorCode EVCHYBClustersPlaces_Device(EVCHYBClusters *clusters, const PetscInt perm[], PetscInt n)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PlacesKernel<<<GallopBlocksFor(n, Threads), Threads, 0, stream>>>(n, clusters->order, perm, clusters->places);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next kernel may start at once: it waits for this one before it loads x */
__global__ static void __launch_bounds__(Threads) GatherKernel(PetscInt m, const PetscInt *__restrict__ order, const PetscScalar *x, PetscScalar *gathered)
{
  const PetscCount k = GallopGlobalThread();

  GallopLetSuccessorStart();
  GallopWaitForPredecessor();
  if (k < m) gathered[k] = x[order[k]];
}

/* EVCHYBClustersApply_Device - x is copied to the storage's order; the storage's product writes each result to its row */
PetscErrorCode EVCHYBClustersApply_Device(EVCHYB *ev, const GallopProduct *p)
{
  EVCHYBClusters *clusters = ev->clusters;
  GallopProduct   q        = *p;
  cudaStream_t    stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  q.x     = clusters->x;
  q.xrows = p->x;
  PetscCallCUDA(GallopLaunch(GatherKernel, {((PetscCount)clusters->m + Threads - 1) / Threads, Threads, 1, 0, stream, (bool)ev->overlaps}, clusters->m, clusters->order, p->x, clusters->x));
  PetscCall((*ev->work->apply)(ev, &q));
  PetscFunctionReturn(PETSC_SUCCESS);
}
