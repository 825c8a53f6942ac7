/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP: a new format, and the choice of its blocks, for host and GPU */

#include <gallop/deviceimpl.h>
#include "hbp.h"

#define NARROW_BYTES (64 << 10) /* of shared memory that x of a narrow block takes */
#define ROWS_LOCAL   512        /* rows of a block where most entries have others near them in the row before */
#define ROWS_FEW     1024       /* and where not, but the matrix has few rows */
#define MAP_FILLED   0.75       /* how much of the chunks that a map may have blocks are expected to need, at most */
#define SPARE_BLOCKS 1e6        /* blocks are not worth more rows as long as there are not this many more than entries */
#define LONG_LEAST   1024       /* entries of a long row, at least */
#define LONG_SHARED  16384      /* and with x in shared memory */
#define MANY_GROUPS  4096       /* groups of 32 entries per lane that a GPU needs */

/* HBPCreate - A format of the matrix whose blocks are still to be chosen */
PetscErrorCode HBPCreate(const GallopCSR *csr, const HBPOptions *options, PetscMemType memtype, HBP **h)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(h));
  (*h)->memtype = memtype;
  (*h)->m       = csr->m;
  (*h)->n       = csr->n;
  (*h)->nz      = csr->nz;
  (*h)->options = *options;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the x of a block may be kept in shared memory */
static PetscBool MayShare(const HBPOptions *options, const GallopCSR *csr)
{
  return (PetscBool)(options->shared_x == HBP_SHARED_CHOOSE ? (size_t)csr->n * sizeof(PetscScalar) > HBP_CACHE : options->shared_x == HBP_SHARED_ALWAYS);
}

/*
  HBPGetSharedCols - Sets options->shared_cols, unless it is set, to what the GPU has room for. The host's format gets the same number, so that it has the same blocks; without a GPU it gets
  what most GPUs have room for. The GPU is only asked where x may be in shared memory, since that takes loading the kernel.
*/
PetscErrorCode HBPGetSharedCols(const GallopCSR *csr, HBPOptions *options)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  if (options->shared_cols) PetscFunctionReturn(PETSC_SUCCESS);
  options->shared_cols = HBP_MAX_SHARED_COLS;
  if (MayShare(options, csr)) PetscCall(GallopDeviceAvailable(&device));
#if PetscDefined(HAVE_CUDA)
  if (device) PetscCall(HBPGetSharedCols_Device(&options->shared_cols));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of a block that are candidates: few, whose x fits in shared memory, and many */
void HBPCandidates(const HBPOptions *options, PetscInt M[2])
{
  M[HBP_NARROW] = options->block_cols ? options->block_cols : PetscMin((PetscInt)(NARROW_BYTES / sizeof(PetscScalar)), PetscMax(options->shared_cols, 1));
  M[HBP_WIDE]   = options->block_cols ? options->block_cols : HBP_MAX_COLS;
}

/* A hash whose last class has at most an eighth of the segments, and that tells the longest segments from each other */
static HBPHash ChooseHash(PetscInt N, const unsigned long long logs[])
{
  HBPHash            h     = {0, PetscMax(1, PetscMin(N / 8, HBP_FINE)), 0, 1};
  unsigned long long all   = 0, below;
  int                first = 3, longest = 0; /* lengths below 2^first are not in the last class */

  for (int k = 0; k < HBP_LOGS; k++) {
    all += logs[k];
    if (logs[k]) longest = k + 1;
  }
  for (;; first++) {
    below = 0;
    for (int k = 0; k < first && k < HBP_LOGS; k++) below += logs[k];
    if (8 * below >= 7 * all) break;
  }
  h.a = first - 3;
  while (HBPFine(((PetscInt)1 << longest) >> h.c) >= h.b && h.c < longest) h.c++;
  return h;
}

/* Whether blocks of rows may have maps: where there are several columns of blocks, and columns of maps can be counted */
static PetscBool MayMap(const HBPOptions *options, const GallopCSR *csr, const HBP *h)
{
  if (options->map == HBP_MAP_NEVER || (options->map == HBP_MAP_CHOOSE && options->block_cols)) return PETSC_FALSE;
  return (PetscBool)(!h->shared && h->colBlocks > 1 && csr->n / HBP_CHUNK < PETSC_INT32_MAX);
}

/* The most chunks of a map, 0 for no maps; blocks become so low that most have few enough. chunks: of a row that are not those of the row before. */
static void ChooseMaps(const HBPOptions *options, const GallopCSR *csr, PetscReal chunks, HBP *h)
{
  PetscInt N = h->N;

  h->mapChunks = MayMap(options, csr, h) ? h->M / HBP_CHUNK : 0;
  if (!h->mapChunks || options->map != HBP_MAP_CHOOSE) return;
  while (!options->block_rows && N > HBP_LEAST_ROWS && chunks * N > MAP_FILLED * h->mapChunks) N /= 2;
  if (chunks * N > h->mapChunks) h->mapChunks = 0;
  else h->N = N;
}

/* Entries of a row from which on it is long: much more than others have, and enough to be worth thread blocks of their own */
static PetscInt ChooseLongRow(const GallopCSR *csr, const HBP *h)
{
  const PetscCount least = h->shared ? LONG_SHARED : h->mapChunks ? LONG_LEAST : PetscMax(LONG_LEAST, csr->nz / 4096);

  return (PetscInt)PetscMin(PetscMax(least, PetscMin(csr->nz / csr->m * 16, csr->nz / 1024)), PETSC_INT_MAX);
}

/*
  HBPChoose - Blocks and hash, from a look at some rows with blocks of M[0] and of M[1] columns

  The x of a block is kept in shared memory where x is more than stays in L2 and few entries have others near them. Else the caches do better, and blocks are as wide as 16 bits allow, so
  that most rows have one segment. With maps all rows have one; blocks are then low enough to have entries in no more chunks than a map may have.
*/
void HBPChoose(const HBPOptions *options, const GallopCSR *csr, const PetscInt M[2], const HBPSample *s, HBP *h)
{
  const PetscBool local = (PetscBool)(2 * s->near >= s->entries), fits = (PetscBool)(M[HBP_NARROW] <= options->shared_cols);
  const PetscBool alone = (PetscBool)(4 * s->chunks > 3 * s->entries); /* most entries have none near them */
  int             w;                                                   /* which of the samples' segments blocks will have */

  h->shared    = (PetscBool)(fits && MayShare(options, csr) && (options->shared_x == HBP_SHARED_ALWAYS || (!local && alone)));
  w            = h->shared ? HBP_NARROW : HBP_WIDE;
  h->N         = options->block_rows ? options->block_rows : local ? ROWS_LOCAL : csr->m < HBP_MANY_ROWS ? ROWS_FEW : HBP_MAX_ROWS;
  h->M         = M[w];
  h->colBlocks = (csr->n - 1) / h->M + 1;
  ChooseMaps(options, csr, (PetscReal)s->chunks / HBP_SAMPLES, h);
  if (h->mapChunks) w = HBP_ROW;
  if (!options->block_rows && !h->mapChunks) {
    const PetscReal segs = (PetscReal)s->segs[w] / HBP_SAMPLES / h->colBlocks; /* of a row in a block */

    while (!local && h->N < HBP_MAX_ROWS && segs * h->N < HBP_GROUP) h->N *= 2; /* enough segments for a group */
    while (h->N < HBP_MAX_ROWS && ((csr->m - 1) / h->N + 1) * (PetscReal)h->colBlocks > csr->nz + SPARE_BLOCKS) h->N *= 2;
  }
  h->rowBlocks   = (csr->m - 1) / h->N + 1;
  h->hash        = ChooseHash(h->N, s->logs[w]);
  h->longRow     = options->long_row ? options->long_row : ChooseLongRow(csr, h);
  h->laneEntries = options->lane_entries;
  if (!h->laneEntries) h->laneEntries = h->shared ? 8 : !local || csr->nz / (32 * HBP_GROUP) < MANY_GROUPS ? 16 : 32; /* with fewer groups a GPU has too few */
}
