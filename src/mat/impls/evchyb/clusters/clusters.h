/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Clusters: an order of rows and columns of the format's own, for square matrices whose entries lie anywhere though neighbours in the graph could lie side by side, such as a mesh that is numbered at
  random. Each entry of x is then a sector of its own for each entry of the matrix.

  Seeds are chosen by a hash of their number, and all grow at once, a level at a time, along the entries of rows: a row belongs to the seed that comes first, of several to the one with the least number.
  Rows that nothing has reached after some levels get seeds that are closer together; what is left in the end stays together, at the end. Clusters come in the order of Cuthill and McKee of the graph
  that they are the vertices of, rows of a cluster by levels, within a level by the place of the first of their neighbours in the level before. All of that depends on the pattern alone, not on the order of threads.

  A storage is built of the matrix P A P^T. A product copies x to that order once, and stores each result at its row's place.

  This header is read by C and by CUDA: the host and the GPU find the same clusters.
*/

#include "../rows.h"

typedef enum { EVCHYB_ORDER_NONE, EVCHYB_ORDER_CLUSTER, EVCHYB_ORDER_AUTO, EVCHYB_ORDER_REORDER } EVCHYBOrder;

#define EVCHYB_CLUSTER_ROWS    1024                      /* of a cluster, about; more where there would be more clusters than CLUSTERS, fewer of small matrices */
#define EVCHYB_CLUSTERS        8192                      /* which have an order by their graph; of more the seeds' */
#define EVCHYB_CLUSTER_LONGEST 128                       /* entries of a row along which a cluster grows, and which are put in order: hubs have more */
#define EVCHYB_CLUSTER_NEAR    (EVCHYB_CLUSTER_ROWS / 2) /* entries of a row that are nearer to the diagonal come before others */
#define EVCHYB_CLUSTER_MOST    32768                     /* rows of a cluster whose levels are put in order */
#define EVCHYB_CLUSTER_PARTS   64                        /* connected parts of the clusters' graph that are put in order */
#define EVCHYB_CLUSTER_SWEEPS  2                         /* through a part: each begins where the one before ended, far from where that began */
#define EVCHYB_CLUSTER_PHASES  4
#define EVCHYB_LEVEL_BITS      7
#define EVCHYB_CLUSTER_FREE    (~(uint64_t)0) /* a row that belongs to no cluster yet */

/* By `auto`: from sectors that were counted, and times on H200s and an H100, docs/development/evchyb.md */
#define EVCHYB_CLUSTER_COLUMNS 131072  /* of fewer, x stays in near caches */
#define EVCHYB_CLUSTER_ENTRIES 1000000 /* of fewer, a build would take longer than many products */
#define EVCHYB_CLUSTER_INSIDE  0.25    /* of the entries of rows that were looked at, at least, have to be within clusters */
#define EVCHYB_CLUSTER_GAIN    0.8     /* of the bytes before, at most */
#define EVCHYB_CLUSTER_L2      50000000 /* bytes of L2, where no GPU is asked: an H100's, and less than an H200's 60 MiB */
#define EVCHYB_CLUSTER_FAR     3       /* times the bytes, for vectors that do not fit there */
#define EVCHYB_CLUSTER_FEW     30      /* products of the same values that gain less than the refresh before them took longer: 5 to 15 were measured, docs/evchyb.md */
#define EVCHYB_CLUSTER_AFTER   1000    /* products of the same values, of which the search takes 3 % at the most */

/* Levels by which clusters grow in each phase; seeds of each are four times as close as those before */
EVCHYB_HD int EVCHYBClusterLevels(int phase)
{
  return phase == 0 ? 24 : phase == 1 ? 12 : 8;
}

/* A seed is whoever has a hash below this; rows: of a cluster, about, in this phase */
EVCHYB_HD uint32_t EVCHYBClusterBound(PetscInt m, int phase)
{
  const PetscInt few = m / 64 > 8 ? m / 64 : 8, usual = few < EVCHYB_CLUSTER_ROWS ? few : EVCHYB_CLUSTER_ROWS, most = m / (EVCHYB_CLUSTERS / 2), rows = (most > usual ? most : usual) >> 2 * phase;

  return 0xffffffffu / (uint32_t)(rows > 2 ? rows : 2);
}

EVCHYB_HD uint32_t EVCHYBClusterHash(uint32_t row, int phase)
{
  uint32_t h = row ^ (uint32_t)(phase + 1) * 0x9e3779b9u;

  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) * 0x846ca68bu;
  return h ^ h >> 16;
}

/*
  By which entries of row come: near columns first. Rows of a cluster have most of their columns there, and a column now and then in others, anywhere: in order of columns alone, these would come between, so that in few lines of packed
  storage all columns are near each other.
*/
EVCHYB_HD uint32_t EVCHYBClusterKey(PetscInt m, PetscInt row, PetscInt column)
{
  const PetscInt apart = column < row ? row - column : column - row;

  return (uint32_t)column + (apart < EVCHYB_CLUSTER_NEAR ? 0 : (uint32_t)m);
}

EVCHYB_HD PetscInt EVCHYBClusterColumn(PetscInt m, uint32_t key)
{
  return (PetscInt)(key < (uint32_t)m ? key : key - (uint32_t)m);
}

/* Every row, or every so many-th, is looked at for the clusters' graph */
EVCHYB_HD PetscInt EVCHYBClusterStep(PetscInt m)
{
  return m < 65536 ? 1 : 4;
}

/* What is known of clusters before rows are put in order: entries of the rows looked at, and those of them within a cluster */
typedef struct {
  unsigned long long entries, inside;
  PetscCount         num;
} EVCHYBClusterCounts;

/* An order, where csr is, as long as it is needed for a build */
typedef struct {
  PetscInt           *order; /* [m] the row that each is; NULL where there is none */
  EVCHYBClusterCounts counts;
  void               *memory;
} EVCHYBClusterOrder;

/* P A P^T, while a storage is built of it or refreshed */
typedef struct {
  GallopCSR csr;
  PetscInt *copied;
  void     *memory;
} EVCHYBClusterMatrix;

/* What an ordered format keeps */
typedef struct {
  PetscInt     m;
  PetscMemType memtype;
  PetscInt    *order;         /* [m] the row and column of the matrix that each of the storage is */
  PetscInt    *places;        /* [m] on the GPU, of plain storage: the row of the matrix that each stored row is */
  PetscScalar *x;             /* [m] in that order */
  PetscScalar *z;             /* [m] on the host */
  PetscCount   num;           /* clusters */
  PetscReal    before, after; /* sectors of x per entry, 0 where they were not counted */
  size_t       bytes;
} EVCHYBClusters;

PETSC_INTERN PetscBool      EVCHYBClustersTries(const EVCHYBOptions *, const GallopCSR *, PetscBool);
PETSC_INTERN PetscErrorCode EVCHYBClustersMayPay(const GallopCSR *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClustersChoose(const EVCHYBOptions *, const GallopCSR *, EVCHYBClusterOrder *, EVCHYBClusterMatrix *, PetscReal[2]);
PETSC_INTERN PetscErrorCode EVCHYBClustersCreate(const GallopCSR *, const EVCHYBClusterOrder *, const PetscReal[2], PetscCount, EVCHYBClusters **);
PETSC_INTERN PetscErrorCode EVCHYBClustersCopyToHost(const EVCHYBClusters *, EVCHYBClusters **);
PETSC_INTERN PetscErrorCode EVCHYBClustersDestroy(EVCHYBClusters **);
PETSC_INTERN PetscErrorCode EVCHYBClusterOrderFree(const GallopCSR *, EVCHYBClusterOrder *);
PETSC_INTERN PetscErrorCode EVCHYBClusterPermute(const PetscInt[], const GallopCSR *, EVCHYBClusterMatrix *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClusterMatrixFree(EVCHYBClusterMatrix *);

/* At either place: *fits is false where there is no room */
PETSC_INTERN PetscErrorCode EVCHYBClusterFind_Host(const GallopCSR *, PetscReal, EVCHYBClusterOrder *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClusterPermute_Host(const PetscInt[], const GallopCSR *, EVCHYBClusterMatrix *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClustersApply_Host(EVCHYB *, const GallopProduct *);
PETSC_INTERN PetscErrorCode EVCHYBClusterFind_Device(const GallopCSR *, PetscReal, EVCHYBClusterOrder *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClusterPermute_Device(const PetscInt[], const GallopCSR *, EVCHYBClusterMatrix *, PetscBool *);
PETSC_INTERN PetscErrorCode EVCHYBClustersPlaces_Device(EVCHYBClusters *, const PetscInt[], PetscInt);
PETSC_INTERN PetscErrorCode EVCHYBClustersApply_Device(EVCHYB *, const GallopProduct *);
