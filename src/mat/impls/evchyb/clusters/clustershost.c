/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters on the host: how they are found, the matrix in their order, and its product. The reference for the GPU's. */

#include "../evchyb.h"

/* What clusters are found with */
typedef struct {
  const GallopCSR *csr;
  uint64_t        *state;   /* [m] level and seed of each row */
  PetscInt        *cluster; /* [m] */
  PetscInt        *rank;    /* [num] place of each cluster among all */
  PetscInt        *pos;     /* [m] where each row is in the new order */
  PetscInt         num;
} Finder;

/* All clusters grow by a level: the rows of the frontier that is now reach the next one */
static PetscInt Spread(const Finder *f, uint64_t level, const PetscInt frontier[], PetscInt n, PetscInt next[])
{
  const GallopCSR *csr = f->csr;
  PetscInt         num = 0;

  for (PetscInt k = 0; k < n; k++) {
    const PetscInt row = frontier[k];
    const uint64_t key = (level + 1) << 32 | (uint32_t)f->state[row];

    if (csr->i[row + 1] - csr->i[row] > EVCHYB_CLUSTER_LONGEST) continue;
    for (PetscInt e = csr->i[row]; e < csr->i[row + 1]; e++) {
      const PetscInt column = csr->j[e];

      if (f->state[column] == EVCHYB_CLUSTER_FREE) next[num++] = column;
      f->state[column] = PetscMin(f->state[column], key);
    }
  }
  return num;
}

static PetscErrorCode Grow(Finder *f)
{
  const PetscInt m = f->csr->m;
  PetscInt      *frontier, *next, *swap, n = 0;
  uint64_t       level = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m, &frontier));
  PetscCall(PetscMalloc1(m, &next));
  for (PetscInt r = 0; r < m; r++) f->state[r] = EVCHYB_CLUSTER_FREE;
  for (int phase = 0; phase < EVCHYB_CLUSTER_PHASES; phase++) {
    for (PetscInt r = 0; r < m; r++) {
      if (f->state[r] != EVCHYB_CLUSTER_FREE || EVCHYBClusterHash((uint32_t)r, phase) > EVCHYBClusterBound(m, phase)) continue;
      f->state[r]   = level << 32 | (uint32_t)r;
      frontier[n++] = r;
    }
    for (int k = 0; k < EVCHYBClusterLevels(phase); k++, level++) {
      n        = Spread(f, level, frontier, n, next);
      swap     = frontier;
      frontier = next;
      next     = swap;
    }
  }
  PetscCall(PetscFree(frontier));
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Clusters are numbered by their seeds; rows that belong to none are one more */
static PetscErrorCode Number(Finder *f)
{
  const PetscInt m = f->csr->m;
  PetscInt      *number;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m, &number));
  f->num = 0;
  for (PetscInt r = 0; r < m; r++)
    if (f->state[r] != EVCHYB_CLUSTER_FREE && (uint32_t)f->state[r] == (uint32_t)r) number[r] = f->num++;
  for (PetscInt r = 0; r < m; r++) f->cluster[r] = f->state[r] == EVCHYB_CLUSTER_FREE ? f->num : number[(uint32_t)f->state[r]];
  PetscCall(PetscFree(number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The clusters' graph, as bits where there is room for it, and what was counted on the way */
static void Look(const Finder *f, PetscInt words, uint32_t *bits, EVCHYBClusterCounts *counts)
{
  const GallopCSR *csr = f->csr;

  counts->num = f->num;
  for (PetscInt r = 0; r < csr->m; r += EVCHYBClusterStep(csr->m)) {
    const PetscInt a = f->cluster[r];

    counts->entries += (unsigned long long)(csr->i[r + 1] - csr->i[r]);
    if (a == f->num || csr->i[r + 1] - csr->i[r] > EVCHYB_CLUSTER_LONGEST) continue;
    for (PetscInt e = csr->i[r]; e < csr->i[r + 1]; e++) {
      const PetscInt b = f->cluster[csr->j[e]];

      if (a == b) counts->inside++;
      else if (bits && b < f->num) {
        bits[(size_t)a * words + b / 32] |= 1u << b % 32;
        bits[(size_t)b * words + a / 32] |= 1u << a % 32;
      }
    }
  }
}

/* Cuthill and McKee from a cluster on: visited clusters are left out. Returns where it ends in the queue. */
static PetscInt Visit(PetscInt words, const uint32_t *bits, PetscInt from, PetscInt begin, PetscInt queue[], unsigned char visited[])
{
  PetscInt end = begin;

  queue[end++]  = from;
  visited[from] = 1;
  for (PetscInt k = begin; k < end; k++)
    for (PetscInt w = 0; w < words; w++) {
      PetscInt c = 32 * w;

      for (uint32_t left = bits[(size_t)queue[k] * words + w]; left; left >>= 1, c++) {
        if (!(left & 1) || visited[c]) continue;
        visited[c]   = 1;
        queue[end++] = c;
      }
    }
  return end;
}

/* Each connected part begins with a cluster that is far from others; after some parts clusters come as they are numbered */
static PetscErrorCode Rank(Finder *f, PetscInt words, const uint32_t *bits)
{
  PetscInt      *queue, end = 0, from = 0;
  unsigned char *visited;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(f->num, &queue));
  PetscCall(PetscCalloc1(f->num, &visited));
  for (int part = 0; part < EVCHYB_CLUSTER_PARTS && end < f->num; part++) {
    const PetscInt begin = end;

    while (visited[from]) from++;
    queue[begin] = from;
    end          = begin + 1;
    for (int sweep = 0; sweep < EVCHYB_CLUSTER_SWEEPS; sweep++) {
      const PetscInt last = queue[end - 1];

      for (PetscInt k = begin; k < end; k++) visited[queue[k]] = 0;
      end = Visit(words, bits, last, begin, queue, visited);
    }
  }
  for (PetscInt c = 0; c < f->num; c++)
    if (!visited[c]) queue[end++] = c;
  for (PetscInt k = 0; k < f->num; k++) f->rank[queue[k]] = k;
  PetscCall(PetscFree(queue));
  PetscCall(PetscFree(visited));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows [first, last) are a level of a cluster, those of [before, first) the level before it: by the first of their neighbours there */
static PetscErrorCode SortLevel(const Finder *f, PetscInt before, PetscInt first, PetscInt last, PetscInt order[], PetscInt moved[], uint64_t keys[])
{
  const GallopCSR *csr = f->csr;

  PetscFunctionBegin;
  for (PetscInt k = first; k < last; k++) {
    const PetscInt row = order[k], end = csr->i[row + 1] - csr->i[row] > EVCHYB_CLUSTER_LONGEST ? csr->i[row] : csr->i[row + 1];

    keys[k]  = (uint64_t)(uint32_t)last;
    moved[k] = row;
    for (PetscInt e = csr->i[row]; e < end; e++) {
      const PetscInt at = f->pos[csr->j[e]];

      if (at >= before && at < first) keys[k] = PetscMin(keys[k], (uint64_t)at);
    }
  }
  PetscCall(EVCHYBSortByKey(last - first, 32, keys + first, moved + first));
  for (PetscInt k = first; k < last; k++) {
    order[k]         = moved[k];
    f->pos[moved[k]] = k;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows by cluster, level and number; then the levels of each cluster */
static PetscErrorCode Order(Finder *f, PetscInt order[])
{
  const PetscInt m = f->csr->m;
  uint64_t      *keys;
  PetscInt      *moved;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m, &keys));
  PetscCall(PetscMalloc1(m, &moved));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt c = f->cluster[r];

    keys[r]  = c == f->num ? (uint64_t)c << EVCHYB_LEVEL_BITS : (uint64_t)f->rank[c] << EVCHYB_LEVEL_BITS | f->state[r] >> 32;
    order[r] = r;
  }
  PetscCall(EVCHYBSortByKey(m, 32 + EVCHYB_LEVEL_BITS, keys, order));
  for (PetscInt k = 0; k < m; k++) f->pos[order[k]] = k;
  for (PetscInt begin = 0, end; begin < m; begin = end) {
    const PetscInt c      = f->cluster[order[begin]];
    PetscInt       before = begin;

    for (end = begin + 1; end < m && f->cluster[order[end]] == c; end++) { }
    if (c == f->num || end - begin > EVCHYB_CLUSTER_MOST) continue;
    for (PetscInt first = begin, last; first < end; before = first, first = last) {
      const uint64_t level = f->state[order[first]] >> 32;

      for (last = first + 1; last < end && f->state[order[last]] >> 32 == level; last++) { }
      PetscCall(SortLevel(f, before, first, last, order, moved, keys));
    }
  }
  PetscCall(PetscFree(keys));
  PetscCall(PetscFree(moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBClusterFind_Host - The order of rows by clusters

  Input Parameters:
+ csr    - a square matrix
- inside - the least share of entries that have to be within clusters

  Output Parameters:
+ found - its order stays NULL where fewer are; EVCHYBClusterOrderFree() frees it
- fits  - false where there is no room
*/
PetscErrorCode EVCHYBClusterFind_Host(const GallopCSR *csr, PetscReal inside, EVCHYBClusterOrder *found, PetscBool *fits)
{
  Finder    f    = {.csr = csr};
  uint32_t *bits = NULL;
  PetscInt  words;

  PetscFunctionBegin;
  *fits  = PETSC_TRUE;
  *found = (EVCHYBClusterOrder){.order = NULL};
  PetscCall(PetscMalloc1(csr->m, &f.state));
  PetscCall(PetscMalloc1(csr->m, &f.cluster));
  PetscCall(Grow(&f));
  PetscCall(Number(&f));
  words = (f.num + 31) / 32;
  if (f.num <= EVCHYB_CLUSTERS) PetscCall(PetscCalloc1((size_t)f.num * words, &bits));
  Look(&f, words, bits, &found->counts);
  if ((PetscReal)found->counts.inside >= inside * (PetscReal)found->counts.entries) {
    PetscCall(PetscMalloc1(f.num, &f.rank));
    PetscCall(PetscMalloc1(csr->m, &f.pos));
    PetscCall(PetscMalloc1(csr->m, &found->order));
    found->memory = found->order;
    if (bits) PetscCall(Rank(&f, words, bits));
    else
      for (PetscInt c = 0; c < f.num; c++) f.rank[c] = c;
    PetscCall(Order(&f, found->order));
    PetscCall(PetscFree(f.rank));
    PetscCall(PetscFree(f.pos));
  }
  PetscCall(PetscFree(bits));
  PetscCall(PetscFree(f.state));
  PetscCall(PetscFree(f.cluster));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClusterPermute_Host - P A P^T: rows in their order, entries of rows that are not long by EVCHYBClusterKey(); the pattern alone where there are no values. EVCHYBClusterMatrixFree() frees it. */
PetscErrorCode EVCHYBClusterPermute_Host(const PetscInt order[], const GallopCSR *csr, EVCHYBClusterMatrix *matrix, PetscBool *fits)
{
  const PetscInt m = csr->m;
  PetscInt      *i, *j, *pos, from[EVCHYB_CLUSTER_LONGEST];
  uint32_t       keys[EVCHYB_CLUSTER_LONGEST];
  PetscScalar   *a;

  PetscFunctionBegin;
  *fits   = PETSC_TRUE;
  *matrix = (EVCHYBClusterMatrix){.csr = *csr};
  PetscCall(PetscMalloc3(m + 1, &i, csr->nz, &j, csr->nz, &a));
  PetscCall(PetscMalloc1(m, &pos));
  for (PetscInt k = 0; k < m; k++) pos[order[k]] = k;
  i[0] = 0;
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt begin = csr->i[order[k]], length = csr->i[order[k] + 1] - begin;

    i[k + 1] = i[k] + length;
    for (PetscInt e = 0; e < length; e++) j[i[k] + e] = pos[csr->j[begin + e]];
    if (length > EVCHYB_CLUSTER_LONGEST) {
      if (csr->a) PetscCall(PetscArraycpy(a + i[k], csr->a + begin, length));
    } else {
      for (PetscInt e = 0; e < length; e++) { /* entries of one column stay as they come */
        const uint32_t key = EVCHYBClusterKey(m, k, j[i[k] + e]);
        PetscInt       at  = e;

        for (; at > 0 && keys[at - 1] > key; at--) {
          keys[at] = keys[at - 1];
          from[at] = from[at - 1];
        }
        keys[at] = key;
        from[at] = e;
      }
      for (PetscInt e = 0; e < length; e++) j[i[k] + e] = EVCHYBClusterColumn(m, keys[e]);
      for (PetscInt e = 0; e < length && csr->a; e++) a[i[k] + e] = csr->a[begin + from[e]];
    }
  }
  PetscCall(PetscFree(pos));
  matrix->memory     = i;
  matrix->csr.i      = i;
  matrix->csr.j      = j;
  matrix->csr.a      = a;
  matrix->csr.host_i = i;
  matrix->csr.host_j = j;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClustersApply_Host - The storage's product in the order that it has, whose results go to their rows */
PetscErrorCode EVCHYBClustersApply_Host(EVCHYB *ev, const GallopProduct *p)
{
  EVCHYBClusters   *clusters = ev->clusters;
  const PetscScalar one = 1.0, zero = 0.0;
  GallopProduct     q = {&one, &zero, clusters->x, NULL, clusters->z, NULL, NULL};

  PetscFunctionBegin;
  for (PetscInt k = 0; k < clusters->m; k++) clusters->x[k] = p->x[clusters->order[k]];
  PetscCall((*ev->work->apply)(ev, &q));
  for (PetscInt k = 0; k < clusters->m; k++) GallopStoreRow(p, clusters->order[k], clusters->z[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
