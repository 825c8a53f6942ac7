/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  TiledSpMM: the structure for C = A B with dense B and C in column-major order, after

    Optimizing Tiled Sparse Matrix Multiplication with Performance Modeling on GPUs, sections 2.5 and 3

  Staged: a thread block computes a row panel, each thread one of its rows. The rows of B that a panel refers to are its footprint. The footprint, in order, is cut into
  stages that fit in shared memory: a thread block loads a stage of B, R columns at a time, adds its products to what its threads hold in registers, R outputs each, and goes
  on to the next stage. So an entry of A is read once for R columns, by a two-byte index (B_IS) into the stage, and a row of B once for a panel.

  The entries of a panel that belong to a stage are in S-ELL: the 32 rows of a warp are stored column by column, as wide as the longest of them has entries in that stage.
  Padding is behind the entries of its row and is never read by a product: lengths tell where a row ends.

  Where rows with like patterns are far apart, panels may be of rows in another order (section 4.2); C is in the order of the matrix all the same.

  This header is read by C and by CUDA: both places have the same arrays.
*/

#include <gallop/formatimpl.h>

#define TILEDSPMM_WARP         32   /* rows that are padded together: the width of a warp */
#define TILEDSPMM_MAX_PANEL    512  /* with 512 threads per thread block, each can have 128 registers: R = 16 outputs in double precision and what else it needs */
#define TILEDSPMM_MAX_STAGE    4096 /* two bytes could tell more rows of B apart, but one column of 4096 complex numbers is all the shared memory that some GPUs have */
#define TILEDSPMM_MAX_COLUMNS  32
#define TILEDSPMM_LEAST_DEVICE 2
#define TILEDSPMM_FEW          32 /* partial sums of a row, up to which a single warp adds them */
#define TILEDSPMM_TILE_ROWS    8  /* of a tile, and its columns: what tensor cores multiply with sixteen columns of B at once */
#define TILEDSPMM_TILE_COLS    8

/*
  What a product on the GPU is computed by: stages of B in shared memory; rows, each by a thread, where the L1 cache serves B; rows of a transposed copy of B; tiles, by tensor cores. The host
  has stages. Long rows are cut into segments, rows of tiles into units.
*/
typedef enum { TILEDSPMM_STAGED, TILEDSPMM_CACHED, TILEDSPMM_TRANSPOSED, TILEDSPMM_TENSOR, TILEDSPMM_CHOOSE } TiledSpMMKernel;

PETSC_INTERN const char *const TiledSpMMKernels[]; /* their names */

/* Whether panels have rows in the order of their patterns: choose where that takes much less memory traffic, the scattered stores of C included */
typedef enum { TILEDSPMM_REORDER_NEVER, TILEDSPMM_REORDER_ALWAYS, TILEDSPMM_REORDER_CHOOSE } TiledSpMMReorder;

typedef struct {
  PetscInt         panel;       /* rows of a panel, a multiple of TILEDSPMM_WARP */
  PetscInt         stage;       /* most rows of B in a stage */
  PetscInt         columns;     /* R: most columns of B that are computed at once, a power of two, 0 to choose */
  PetscInt         segment;     /* most entries of a segment, 0 to choose */
  PetscInt         least;       /* fewest columns of B that are worth it, 0 to choose */
  PetscReal        utilization; /* U below which there are too few rows for the GPU */
  PetscReal        imbalance;   /* sigma / mu above which rows are too unlike */
  TiledSpMMKernel  kernel;
  TiledSpMMReorder reorder;
} TiledSpMMOptions;

typedef unsigned short TiledSpMMIndex; /* B_IS = 2 bytes */

/* Of TILEDSPMM_TILE_ROWS rows the entries in TILEDSPMM_TILE_COLS columns from a multiple of that on. Values of entries, no others, are stored row by row. */
typedef struct {
  unsigned long long mask;  /* bit TILEDSPMM_TILE_COLS row + column: whether there is an entry */
  int                block; /* column / TILEDSPMM_TILE_COLS */
  unsigned int       first; /* its first value, counted from that of its eight rows */
} TiledSpMMTile;

typedef struct {
  PetscMemType    memtype;
  PetscInt        m, n;
  PetscCount      nz;         /* entries of the matrix */
  PetscInt        panels;     /* of options.panel rows each, or segments where rows are cut, the last perhaps of fewer */
  PetscCount      stages;     /* of all panels */
  PetscCount      nmap;       /* rows of B in all stages: nz / nmap is rho, how often one that is staged is used */
  PetscCount      nmapgiven;  /* what nmap is with rows in the order of the matrix */
  PetscCount      stored;     /* entries, padding included: stored / nz is Z */
  PetscBool       reordered;  /* panels have rows in the order of their patterns */
  PetscCount     *stagedispl; /* [panels + 1] first stage of each panel */
  PetscCount     *mapdispl;   /* [stages + 1] where the rows of B in each stage begin in map */
  PetscInt       *map;        /* [nmap] the footprints: a row of B */
  PetscCount     *warpdispl;  /* [stages x warps of a panel + 1] first entry of each warp in each stage */
  TiledSpMMIndex *len;        /* [stages x rows of a panel] entries of each row in each stage */
  PetscInt       *roworder;   /* [TiledSpMMPlaces(), or none where not reordered] the row, or segment, at each place of the panels */
  TiledSpMMIndex *index;      /* [stored] row of B, counted in its stage. Entry k of lane l is at warpdispl + TILEDSPMM_WARP k + l. */
  PetscScalar    *value;      /* [stored] */
  PetscInt       *from;       /* [stored] which entry of CSR it is, -1 for padding: for new values */

  /* rows in segments of at most segment entries (0: each row is one), in the order of CSR. Without stages, where most rows are empty, as in an off-diagonal block, these have none. */
  PetscInt      segment;
  PetscCount    nseg, slices;                   /* slices of TILEDSPMM_WARP segments, for the cached kernel: padded to the longest, entry k of lane l is at slicedispl + TILEDSPMM_WARP k + l */
  PetscCount    nsplit, nslots;                 /* rows of several segments, and their segments, which have partial sums */
  PetscInt     *segptr;                         /* [nseg + 1] where a segment begins in CSR */
  PetscInt     *segrow;                         /* [nseg] its row, or -1 - the place of its partial sum, where rows are cut */
  PetscCount    nmany;                          /* of the rows of several segments, those with more than TILEDSPMM_FEW, which come last, in the order from the end */
  PetscInt     *splitrow, *splitptr, *splitnum; /* [nsplit] rows of several segments, where their partial sums begin, and how many there are */
  PetscCount   *slicedispl;                     /* [slices + 1] */
  GallopColumn *col;                            /* [stored] columns, and values as above, in slices or as in CSR */

  /* tensor: tiles with entries, of eight rows after eight, and units of consecutive ones, each the work of a warp. Eight rows of more than one unit have partial sums. */
  PetscCount     nunit, ntile;
  PetscInt      *unitrow;  /* [nunit] first of its rows */
  PetscInt      *unitslot; /* [nunit] the place of its first row's partial sum, -1 where there are none */
  PetscInt      *unitnum;  /* [nunit] units of its rows: how far apart the places of their partial sums are */
  PetscCount    *tileptr;  /* [nunit + 1] first tile */
  PetscCount    *valueptr; /* [nunit] first value of its rows */
  TiledSpMMTile *tile;     /* [ntile] */

  PetscScalar     *work;      /* on the host: the staged part of B and the sums of a panel. On the GPU: B transposed, and partial sums */
  size_t           workbytes; /* on the GPU, where it is made for the columns of the products */
  PetscBool        recorded;  /* a CUDA graph has a product with this work */
  void           **older;     /* [nolder] works before it that CUDA graphs have */
  int              nolder;
  size_t           bytes;     /* of these arrays without work */
  size_t           shared;    /* bytes of shared memory that a thread block can have, 0 on the host */
  int              multiprocessors;
  PetscBool        scattered; /* loads of B by the cached kernel touch much more than they need */
  PetscBool        skips;     /* rows without entries have no segment */
  PetscBool        overlaps;  /* kernels may start while the one before them ends, and load entries then */
  PetscBool        fresh;     /* not the first ones after the entries have been written */
  TiledSpMMKernel  kernel;
  TiledSpMMOptions options;
} TiledSpMM;

/* Of the staged kernel: how many rows, or segments where rows are cut, its panels have */
static inline PetscInt TiledSpMMPlaces(const TiledSpMM *t)
{
  return t->segment ? (PetscInt)t->nseg : t->m;
}

/* What of a structure lies in memory, once for all who allocate, copy or measure it: X(array, number). Of the panels and their stages, and of entries, of which there are stored. */
#define TILEDSPMM_STAGES(t, X) \
  X(stagedispl, (t)->panels + 1) \
  X(mapdispl, (t)->stages + 1) \
  X(map, (t)->nmap) \
  X(warpdispl, (t)->stages *((t)->options.panel / TILEDSPMM_WARP) + 1) \
  X(len, (t)->stages *(t)->options.panel) \
  X(roworder, (t)->reordered ? TiledSpMMPlaces(t) : 0)
#define TILEDSPMM_ENTRIES(t, X) \
  X(index, (t)->stored) \
  X(from, (t)->stored) \
  X(value, (t)->stored)
#define TILEDSPMM_SPLITS(t, X) \
  X(splitrow, (t)->nsplit) \
  X(splitptr, (t)->nsplit) \
  X(splitnum, (t)->nsplit)
#define TILEDSPMM_SEGMENTS(t, X) \
  X(segptr, (t)->nseg + 1) \
  X(segrow, (t)->segment ? (t)->nseg : 0) \
  TILEDSPMM_SPLITS(t, X) \
  X(slicedispl, (t)->kernel == TILEDSPMM_CACHED ? (t)->slices + 1 : 0)
#define TILEDSPMM_COLUMNS(t, X) \
  X(col, (t)->stored) \
  X(value, (t)->stored)
#define TILEDSPMM_UNITS(t, X) \
  X(tileptr, (t)->nunit + 1) \
  X(valueptr, (t)->nunit) \
  X(unitrow, (t)->nunit) \
  X(unitslot, (t)->nunit) \
  X(unitnum, (t)->nunit) \
  TILEDSPMM_SPLITS(t, X) \
  X(tile, (t)->ntile) \
  X(value, (t)->stored)
#define TILEDSPMM_ARRAYS(t, X) \
  do { \
    if ((t)->kernel == TILEDSPMM_STAGED) { \
      if ((t)->segment) { TILEDSPMM_SEGMENTS(t, X) } \
      TILEDSPMM_STAGES(t, X) \
      TILEDSPMM_ENTRIES(t, X) \
    } else if ((t)->kernel == TILEDSPMM_TENSOR) { \
      TILEDSPMM_UNITS(t, X) \
    } else { \
      TILEDSPMM_SEGMENTS(t, X) \
      TILEDSPMM_COLUMNS(t, X) \
    } \
  } while (0)

/* Bytes of all these arrays */
static inline size_t TiledSpMMBytes(const TiledSpMM *t)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*t->array);
  TILEDSPMM_ARRAYS(t, ADD);
#undef ADD
  return bytes;
}

/* Most threads of a thread block with R outputs each: a thread can have 128 registers, 64 where its outputs take 64 bytes or less, and where it holds more than 16 outputs 255 */
#define TILEDSPMM_MAX_THREADS(R) ((R) > 16 ? TILEDSPMM_MAX_PANEL / 2 : TILEDSPMM_MAX_PANEL)

/* R of the staged kernel and of its model: as asked for, or fewer where stages of R columns do not fit in shared memory, or the outputs of large panels not in registers */
static inline PetscInt TiledSpMMStagedColumns(const TiledSpMM *t)
{
  PetscInt R = t->options.columns ? t->options.columns : 16;

  while (R > 1 && ((t->shared && (size_t)t->options.stage * R * sizeof(PetscScalar) > t->shared) || t->options.panel > TILEDSPMM_MAX_THREADS(R))) R /= 2;
  return R;
}

PETSC_INTERN PetscErrorCode         TiledSpMMApplyDense_Host(void *, const GallopDenseProduct *, PetscBool *);
PETSC_INTERN PetscErrorCode         TiledSpMMApplyDense_Device(void *, const GallopDenseProduct *, PetscBool *);
PETSC_INTERN const GallopFormatWork TiledSpMMHost, TiledSpMMDevice;

/*
  What sections 2.3 and 3 say of a product, from the pattern and the structure. Intensities are flops for each byte of memory traffic: without tiles, each thread an output of a row (equation 2); with
  tiles where rows of B come and go without loss (equation 3 with Gamma = 1), as they do where a cache keeps what it has once had (Gamma), and where each load misses it (C in its place). Beyond the
  printed equation 3, the store of C counts, and a row of B in map is read once for R columns.
*/
typedef struct {
  PetscReal mu, sigma;   /* entries of a row, or of a segment where rows are cut (mu*): mean and standard deviation */
  PetscReal rho, Z;      /* how often a staged row of B is used; stored entries for each entry of the matrix */
  PetscReal delta;       /* bytes of displacements and lengths for each row, or segment */
  PetscReal C, L, Gamma; /* bytes of lines that loads of B touch over those they need; how many panels load a row of B; C / L (equation 4) */
  PetscReal naive, tiled, effective, miss;
} TiledSpMMModel;

#define TILEDSPMM_LINE 64 /* bytes of a cache line, of two sectors */

/* How a kernel without stages computes a product */
typedef struct {
  PetscInt columns;  /* of B that a thread block computes: cached, thread blocks for all columns run side by side, transposed, one launch follows the other */
  PetscInt entries;  /* of a segment that are under way at once */
  PetscInt segments; /* of a thread block */
  PetscInt each;     /* segments of a thread or team, one after the other */
  PetscInt resident; /* thread blocks that a multiprocessor has at once */
} TiledSpMMPlan;

/* What the model has to know of a GPU */
typedef struct {
  PetscLogDouble bandwidth; /* of memory in bytes per second, as measured, 0 where there was no room to measure it */
  PetscLogDouble clock;     /* in 1/s */
  PetscLogDouble l1, l2;    /* bytes of the caches: of L1, what each multiprocessor has */
  PetscInt       multiprocessors;
} TiledSpMMMachine;

typedef struct {
  PetscLogDouble memory, l2; /* bytes from and to memory, 0 where L2 has them all, and between L2 and the multiprocessors */
  PetscLogDouble seconds;
} TiledSpMMPrediction;

#if defined(__CUDACC__)
  #define TILEDSPMM_BOTH static __host__ __device__ __forceinline__
#else
  #define TILEDSPMM_BOTH static inline
#endif

/*
  The order of rows r and s by section 4.2, negative where r comes first: a row is the binary number with ones where it has entries, its first column the most significant digit. The largest
  comes first, which leaves a matrix in order whose rows begin one after the other; equal rows stay in order. Columns increase.
*/
TILEDSPMM_BOTH int TiledSpMMCompareRows(const PetscInt i[], const PetscInt j[], PetscInt r, PetscInt s)
{
  const PetscInt  lenr = i[r + 1] - i[r], lens = i[s + 1] - i[s];
  const PetscInt *colr = j + i[r], *cols = j + i[s];

  for (PetscInt k = 0; k < lenr && k < lens; k++)
    if (colr[k] != cols[k]) return colr[k] < cols[k] ? -1 : 1;
  if (lenr != lens) return lenr > lens ? -1 : 1;
  return r < s ? -1 : r > s;
}

/* The line of memory that a row of B or C is in, where columns begin with a line */
TILEDSPMM_BOTH PetscCount TiledSpMMLineOf(PetscInt row)
{
  return (PetscCount)row * (PetscCount)sizeof(PetscScalar) / TILEDSPMM_LINE;
}

/*
  Whether rows in the order of their patterns are kept: with fewer rows of B in all stages, nmap, and at most two thirds of the lines of memory for a column of B and C. given and sorted are
  those of B with either order, stores those that 32 rows of C at once are in when sorted. A line of C costs two: where only a part of it is stored, the rest is read. Where less is saved some
  matrices lose time: caches serve loads of B that are counted here, but no stores.
*/
static inline PetscBool TiledSpMMKeepsOrder(const TiledSpMM *t, PetscCount nmap, PetscCount given, PetscCount sorted, PetscCount stores)
{
  const PetscCount inorder = TiledSpMMLineOf(t->m - 1) + 1;

  return (PetscBool)(t->options.reorder == TILEDSPMM_REORDER_ALWAYS || (nmap < t->nmapgiven && 3 * (sorted + 2 * stores) <= 2 * (given + 2 * inorder)));
}

PETSC_INTERN PetscErrorCode TiledSpMMInspect(const TiledSpMMOptions *, const GallopCSR *, PetscInt, PetscCount, TiledSpMM **);
PETSC_INTERN PetscErrorCode TiledSpMMFree_Host(TiledSpMM **);
PETSC_EXTERN PetscErrorCode TiledSpMMSortRows(PetscInt, const PetscInt[], const PetscInt[], PetscInt **); /* for tests, too */

/* a host copy of what either place has, for tests */
PETSC_EXTERN PetscErrorCode TiledSpMMCopyToHost(const TiledSpMM *, TiledSpMM **);
PETSC_EXTERN PetscErrorCode TiledSpMMDestroyHostCopy(TiledSpMM **);
PETSC_EXTERN PetscErrorCode TiledSpMMGetModel(const TiledSpMM *, TiledSpMMModel *); /* of a structure on the host */
PETSC_INTERN PetscErrorCode TiledSpMMUnstagedToCSR(const TiledSpMM *, PetscInt **, PetscInt **);
PETSC_EXTERN PetscErrorCode TiledSpMMPredict(const TiledSpMM *, const PetscInt[], const TiledSpMMPlan *, const TiledSpMMMachine *, PetscInt, TiledSpMMPrediction *);
#if defined(PETSC_HAVE_CUDA)
PETSC_EXTERN PetscErrorCode TiledSpMMGetPlan(const TiledSpMM *, PetscInt columns, TiledSpMMPlan *);
PETSC_INTERN PetscErrorCode TiledSpMMGetMachine(const TiledSpMM *, TiledSpMMMachine *);
PETSC_INTERN PetscErrorCode TiledSpMMViewTimes(const TiledSpMM *, const TiledSpMMModel *, PetscViewer); /* of a host copy of what the GPU has */
#endif
