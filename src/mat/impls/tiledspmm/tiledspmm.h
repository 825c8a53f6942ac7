#pragma once

/*
  TiledSpMM: the structure for C = A B with dense B and C in column-major order, after

    Optimizing Tiled Sparse Matrix Multiplication with Performance Modeling on GPUs, sections 2.5 and 3

  A GPU block computes a row panel, a thread a row of it. The rows of B that a panel refers to are its footprint. The footprint, in order, is cut into
  stages that fit in shared memory: a GPU block loads a stage of B, R columns at a time, adds its products to what its threads hold in registers, R outputs each, and goes
  on to the next stage. So an entry of A is read once for R columns, by a two-byte index (B_IS) into the stage, and a row of B once for a panel.

  The entries of a panel that belong to a stage are in S-ELL: the 32 rows of a warp are stored column by column, as wide as the longest of them has entries in that stage.
  Padding is behind the entries of its row and is never read by a product: lengths tell where a row ends.

  This header is read by C and by CUDA: both places have the same arrays.
*/

#include <gallop/formatimpl.h>

#define TILEDSPMM_WARP        32   /* rows that are padded together: the width of a warp */
#define TILEDSPMM_MAX_PANEL   512  /* with 512 threads a GPU block, each can have 128 registers: R = 16 outputs and what else it needs */
#define TILEDSPMM_MAX_STAGE   4096 /* two bytes could tell more rows of B apart, but one column of so many complex numbers is all the shared memory that some GPUs have */
#define TILEDSPMM_MAX_COLUMNS 32
#define TILEDSPMM_LEAST_HOST  16 /* with fewer, what staging takes is more than what it saves on the host */

typedef struct {
  PetscInt panel;   /* rows of a panel, a multiple of TILEDSPMM_WARP */
  PetscInt stage;   /* most rows of B in a stage */
  PetscInt columns; /* R: most columns of B that a GPU block computes at once, a power of two */
  PetscInt least;   /* fewest columns of B that are worth it, 0 to choose */
} TiledSpMMOptions;

typedef unsigned short TiledSpMMIndex; /* B_IS = 2 bytes */

typedef struct {
  PetscMemType     memtype;
  PetscInt         m, n;
  PetscCount       nz;         /* entries of the matrix */
  PetscInt         panels;     /* of options.panel rows each, the last perhaps of fewer */
  PetscCount       stages;     /* of all panels */
  PetscCount       nmap;       /* rows of B in all stages: nz / nmap is rho, how often one that is staged is used */
  PetscCount       stored;     /* entries, padding included: stored / nz is Z */
  PetscCount      *stagedispl; /* [panels + 1] first stage of each panel */
  PetscCount      *mapdispl;   /* [stages + 1] where the rows of B in each stage begin in map */
  PetscInt        *map;        /* [nmap] the footprints: a row of B */
  PetscCount      *warpdispl;  /* [stages x warps of a panel + 1] first entry of each warp in each stage */
  TiledSpMMIndex  *len;        /* [stages x rows of a panel] entries of each row in each stage */
  TiledSpMMIndex  *index;      /* [stored] row of B, counted in its stage. Entry k of lane l is at warpdispl + TILEDSPMM_WARP k + l. */
  PetscScalar     *value;      /* [stored] */
  PetscInt        *from;       /* [stored] which entry of CSR it is, -1 for padding: for new values */
  PetscScalar     *work;       /* on the host: the staged part of B and the sums of a panel */
  size_t           bytes;      /* of these arrays without work */
  size_t           shared;     /* bytes of shared memory that a GPU block can have, 0 on the host */
  TiledSpMMOptions options;
} TiledSpMM;

/* What of a structure lies in memory, once for all who allocate, copy or measure it: X(array, number). Of the panels and their stages, and of entries, of which there are stored. */
#define TILEDSPMM_STAGES(t, X) \
  X(stagedispl, (t)->panels + 1) \
  X(mapdispl, (t)->stages + 1) \
  X(map, (t)->nmap) \
  X(warpdispl, (t)->stages *((t)->options.panel / TILEDSPMM_WARP) + 1) \
  X(len, (t)->stages *(t)->options.panel)
#define TILEDSPMM_ENTRIES(t, X) \
  X(index, (t)->stored) \
  X(from, (t)->stored) \
  X(value, (t)->stored)
#define TILEDSPMM_ARRAYS(t, X) \
  TILEDSPMM_STAGES(t, X) \
  TILEDSPMM_ENTRIES(t, X)

/* Bytes of all these arrays */
static inline size_t TiledSpMMBytes(const TiledSpMM *t)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*t->array);
  TILEDSPMM_ARRAYS(t, ADD)
#undef ADD
  return bytes;
}

PETSC_INTERN const GallopFormatWork TiledSpMMHost, TiledSpMMDevice;

/*
  What sections 2.3 and 3 say of a product, from the pattern and the structure. Intensities are flops for each byte of memory traffic: without tiles, each thread an output of a row (equation 2); with
  tiles where rows of B come and go without loss (equation 3 with Gamma = 1), and as they do. Beyond the printed equation 3, the store of C counts, and a row of B in map is read once for R columns.
*/
typedef struct {
  PetscReal mu, sigma;   /* entries of a row: mean and standard deviation */
  PetscReal rho, Z;      /* how often a staged row of B is used; stored entries for each entry of the matrix */
  PetscReal delta;       /* bytes of displacements and lengths for each row */
  PetscReal C, L, Gamma; /* bytes of lines that loads of B touch over those they need; how many panels load a row of B; C / L (equation 4) */
  PetscReal naive, tiled, effective;
} TiledSpMMModel;

#define TILEDSPMM_LINE 64 /* bytes of a cache line, of two sectors */

PETSC_INTERN PetscErrorCode TiledSpMMInspect(const TiledSpMMOptions *, const GallopCSR *, PetscCount, TiledSpMM **);
PETSC_INTERN PetscErrorCode TiledSpMMFree_Host(TiledSpMM **);

/* a host copy of what either place has, for tests */
PETSC_EXTERN PetscErrorCode TiledSpMMCopyToHost(const TiledSpMM *, TiledSpMM **);
PETSC_EXTERN PetscErrorCode TiledSpMMDestroyHostCopy(TiledSpMM **);
PETSC_EXTERN PetscErrorCode TiledSpMMGetModel(const TiledSpMM *, TiledSpMMModel *); /* of a structure on the host */
