/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters on the GPU: the order of clusters, and that of the rows of each */

#include "clustersdevice.h"

static constexpr int Threads = EVCHYBClusterThreads, RankThreads = 1024, SortThreads = 128, Words = EVCHYBClusterWords, None = EVCHYB_CLUSTERS;

/* ---- clusters ---- */

/* Of the thread block that ranks clusters */
struct RankShared {
  uint32_t visited[Words];
  int      first[EVCHYB_CLUSTERS]; /* place of the first visited neighbour, None where there is none */
  int      fresh, least;
};

/* The queue's end becomes that level whose clusters have a place in first: by it, then by number. fresh: a place for each of them, in any order. */
static __device__ __forceinline__ int AddLevel(RankShared &s, int num, int end, int *queue, int *fresh)
{
  for (int c = threadIdx.x; c < num; c += RankThreads)
    if (s.first[c] < None) fresh[atomicAdd(&s.fresh, 1)] = c;
  __syncthreads();
  const int n = s.fresh;

  for (int k = threadIdx.x; k < n; k += RankThreads) {
    const int c = fresh[k], key = s.first[c];
    int       at = end;

    for (int l = 0; l < n; l++) {
      const int other = s.first[fresh[l]];

      at += other < key || (other == key && fresh[l] < c);
    }
    queue[at] = c;
    atomicOr(&s.visited[c / 32], 1u << c % 32);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += RankThreads) s.first[fresh[k]] = None;
  if (threadIdx.x == 0) s.fresh = 0;
  __syncthreads();
  return end + n;
}

/* Cuthill and McKee from a cluster on, behind those that were visited. Returns where it ends in the queue. */
static __device__ __forceinline__ int Visit(RankShared &s, int num, const uint32_t *__restrict__ bits, int from, int begin, int *queue, int *fresh)
{
  const int words = (num + 31) / 32, lane = threadIdx.x % WarpSize;
  int       level = begin, end = begin + 1;

  if (threadIdx.x == 0) {
    queue[begin] = from;
    s.visited[from / 32] |= 1u << from % 32;
  }
  __syncthreads();
  while (level < end) {
    for (int k = level + (int)threadIdx.x / WarpSize; k < end; k += RankThreads / WarpSize) {
      const uint32_t *row = bits + (size_t)queue[k] * Words;

      for (int w = lane; w < words; w += WarpSize)
        for (uint32_t left = row[w] & ~s.visited[w]; left; left &= left - 1) atomicMin(&s.first[32 * w + __ffs((int)left) - 1], k);
    }
    __syncthreads();
    level = end;
    end   = AddLevel(s, num, end, queue, fresh);
  }
  return end;
}

/* Each connected part begins with a cluster that is far from others; after some parts clusters come as they are numbered. One thread block. */
__global__ static void __launch_bounds__(RankThreads) RankKernel(int num, const uint32_t *__restrict__ bits, int *queue, int *fresh, int *rank)
{
  __shared__ RankShared s;
  int                   end = 0;

  for (int w = threadIdx.x; w < Words; w += RankThreads) s.visited[w] = 0;
  for (int c = threadIdx.x; c < EVCHYB_CLUSTERS; c += RankThreads) s.first[c] = None;
  if (threadIdx.x == 0) s.fresh = 0;
  for (int part = 0; part < EVCHYB_CLUSTER_PARTS && end < num; part++) {
    const int begin = end;

    if (threadIdx.x == 0) s.least = None;
    __syncthreads();
    for (int w = threadIdx.x; w < (num + 31) / 32; w += RankThreads)
      if (~s.visited[w]) atomicMin(&s.least, 32 * w + __ffs((int)~s.visited[w]) - 1);
    __syncthreads();
    for (int sweep = 0; sweep < EVCHYB_CLUSTER_SWEEPS; sweep++) {
      const int last = sweep ? queue[end - 1] : s.least;

      __syncthreads();
      for (int k = begin + threadIdx.x; sweep && k < end; k += RankThreads) atomicAnd(&s.visited[queue[k] / 32], ~(1u << queue[k] % 32));
      __syncthreads();
      end = Visit(s, num, bits, last, begin, queue, fresh);
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < end; k += RankThreads) rank[queue[k]] = k;
  for (int c = threadIdx.x; c < num; c += RankThreads) {
    int at = end;

    if (s.visited[c / 32] >> c % 32 & 1) continue;
    for (int w = 0; w < c / 32; w++) at += __popc(~s.visited[w]);
    rank[c] = at + __popc(~s.visited[c / 32] & ((1u << c % 32) - 1));
  }
}

PetscErrorCode EVCHYBClusterRank_Device(const EVCHYBClusterWork *w, PetscCount num)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  RankKernel<<<1, RankThreads, 0, stream>>>((int)num, w->bits, w->queue, reinterpret_cast<int *>(w->keys[0]) /* which have been sorted */, w->rank);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- rows ---- */

/* Where clusters begin among the sorted rows; each has its seed at least */
__global__ static void __launch_bounds__(Threads) BeginKernel(PetscInt m, PetscCount num, const uint64_t *__restrict__ keys, PetscCount *begin)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= m) return;
  const PetscCount c = (PetscCount)(keys[k] >> EVCHYB_LEVEL_BITS);

  if (!k || (PetscCount)(keys[k - 1] >> EVCHYB_LEVEL_BITS) != c) begin[c] = k;
  if (k == m - 1) {
    if (c < num) begin[num] = m; /* all rows belong to clusters */
    begin[num + 1] = m;
  }
}

/* The size of each cluster at its rank, to be added up */
__global__ static void __launch_bounds__(Threads) SizesKernel(PetscCount num, const int *__restrict__ rank, const PetscCount *__restrict__ begin, PetscCount *place)
{
  const PetscCount c = GallopGlobalThread();

  if (c < num) place[rank[c]] = begin[c + 1] - begin[c];
  if (c == num) place[num] = 0;
}

/* Rows by cluster, level and number */
__global__ static void __launch_bounds__(Threads) PlaceKernel(PetscInt m, PetscCount num, const uint64_t *__restrict__ keys, const PetscInt *__restrict__ rows, const int *__restrict__ rank, const EVCHYBClusterPlaces p, PetscInt *order, PetscInt *pos)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= m) return;
  const PetscCount c  = (PetscCount)(keys[k] >> EVCHYB_LEVEL_BITS);
  const PetscCount at = EVCHYBClusterPlace(p, rank, num, c) + k - p.begin[c];

  order[at]    = rows[k];
  pos[rows[k]] = (PetscInt)at;
}

/* A thread block orders the rows of a cluster, a level at a time: by the first of their neighbours in the level before, then by number. first: the place of that neighbour. */
__global__ static void __launch_bounds__(SortThreads) SortKernel(PetscCount num, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const uint64_t *__restrict__ keys, const PetscInt *__restrict__ rows, const int *__restrict__ rank, const EVCHYBClusterPlaces p, PetscInt *order, PetscInt *pos, PetscInt *first)
{
  constexpr uint64_t Level = ((uint64_t)1 << EVCHYB_LEVEL_BITS) - 1;

  for (PetscCount c = blockIdx.x; c < num; c += gridDim.x) {
    const PetscCount begin = p.begin[c], end = p.begin[c + 1], by = EVCHYBClusterPlace(p, rank, num, c) - begin; /* by: from a sorted row to its place */
    PetscCount       before = begin, now = begin, next = begin;

    if (end - begin > EVCHYB_CLUSTER_MOST) continue;
    for (; now < end; before = now, now = next) {
      const uint64_t level = keys[now] & Level;
      int            more;

      do {
        more = __syncthreads_count(next + (PetscCount)threadIdx.x < end && (keys[next + threadIdx.x] & Level) == level);
        next += more;
      } while (more == SortThreads);
      for (PetscCount k = now + threadIdx.x; k < next; k += SortThreads) {
        const PetscInt row = rows[k];
        PetscInt       e = i[row], stop = i[row + 1];
        PetscCount     least = next + by;

        if (stop - e > EVCHYB_CLUSTER_LONGEST) stop = e;
        for (; e < stop; e++) {
          const PetscCount at = __ldcg(pos + j[e]); /* other thread blocks move rows, but none to there */

          if (at >= before + by && at < now + by && at < least) least = at;
        }
        first[k] = (PetscInt)least;
      }
      __syncthreads();
      for (PetscCount k = now + threadIdx.x; k < next; k += SortThreads) {
        const PetscInt own = first[k], row = rows[k];
        PetscCount     at = now + by;

        for (PetscCount l = now; l < next; l++) at += first[l] < own || (first[l] == own && l < k);
        order[at] = row;
        pos[row]  = (PetscInt)at;
      }
      __syncthreads();
    }
  }
}

PetscErrorCode EVCHYBClusterSort_Device(const GallopCSR *csr, const EVCHYBClusterWork *w, const EVCHYBClusterPlaces *places, PetscCount num)
{
  const int     *rank = num <= EVCHYB_CLUSTERS ? w->rank : NULL;
  const PetscInt m    = csr->m;
  cudaStream_t   stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  BeginKernel<<<GallopBlocksFor(m, Threads), Threads, 0, stream>>>(m, num, w->keys[1], places->begin);
  GallopCheckLaunch();
  if (rank) {
    SizesKernel<<<GallopBlocksFor(num + 1, Threads), Threads, 0, stream>>>(num, rank, places->begin, places->place);
    GallopCheckLaunch();
    ScanKernel<PetscCount><<<1, ScanThreads, 0, stream>>>(places->place, (int)num + 1);
    GallopCheckLaunch();
  }
  PlaceKernel<<<GallopBlocksFor(m, Threads), Threads, 0, stream>>>(m, num, w->keys[1], w->rows[1], rank, *places, w->order, w->pos);
  GallopCheckLaunch();
  if (!num) PetscFunctionReturn(PETSC_SUCCESS);
  SortKernel<<<(unsigned int)PetscMin(num, 65536), SortThreads, 0, stream>>>(num, csr->i, csr->j, w->keys[1], w->rows[1], rank, *places, w->order, w->pos, w->cluster);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
