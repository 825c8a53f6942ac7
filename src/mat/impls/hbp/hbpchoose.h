/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP: the choice of blocks, for the host and for a kernel, which makes it where the host need not wait for what a look at the matrix has found */

#include "hbp.h"

/* Measured on an H200, docs/development/hbp.md */
#define HBP_ROWS_LOCAL   512        /* rows of a block where most entries have others near them in the row before */
#define HBP_ROWS_FEW     1024       /* and where not, but the matrix has few rows */
#define HBP_MAP_FILLED   0.75       /* how much of the chunks that a map may have blocks are expected to need, at most */
#define HBP_SPARE_BLOCKS 1e6        /* blocks are not worth more rows as long as there are not this many more than entries */
#define HBP_LONG_LEAST   1024       /* entries of a long row, at least */
#define HBP_LONG_SHARED  16384      /* and with x in shared memory */
#define HBP_MANY_GROUPS  4096       /* groups of 32 entries per lane that a GPU needs */

/* Whether the x of a block may be kept in shared memory */
HBP_HD PetscBool HBPMayShare(const HBPOptions *options, PetscInt n)
{
  return (PetscBool)(options->shared_x == HBP_SHARED_CHOOSE ? (size_t)n * sizeof(PetscScalar) > HBP_CACHE : options->shared_x == HBP_SHARED_ALWAYS);
}

/* A hash whose last class has at most an eighth of the segments, and that tells the longest segments from each other */
HBP_HD HBPHash HBPChooseHash(PetscInt N, const unsigned long long logs[])
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
HBP_HD PetscBool HBPMayMap(const HBPOptions *options, PetscInt n, PetscInt M)
{
  if (options->map == HBP_MAP_NEVER || (options->map == HBP_MAP_CHOOSE && options->block_cols)) return PETSC_FALSE;
  return (PetscBool)(n > M && n / HBP_CHUNK < PETSC_INT32_MAX);
}

/* The most chunks of a map, 0 for no maps; blocks become so low that most have few enough. chunks: of a row that are not those of the row before. */
HBP_HD void HBPChooseMaps(PetscReal chunks, HBP *h)
{
  const HBPOptions *options = &h->options;
  PetscInt          N       = h->N;

  h->mapChunks = !h->shared && HBPMayMap(options, h->n, h->M) ? h->M / HBP_CHUNK : 0;
  if (!h->mapChunks || options->map != HBP_MAP_CHOOSE) return;
  while (!options->block_rows && N > HBP_LEAST_ROWS && chunks * N > HBP_MAP_FILLED * h->mapChunks) N /= 2;
  if (chunks * N > h->mapChunks) h->mapChunks = 0;
  else h->N = N;
}

/* Entries of a row from which on it is long: much more than others have, and enough to be worth thread blocks of their own */
HBP_HD PetscInt HBPChooseLongRow(const HBP *h)
{
  const PetscCount least = h->shared ? HBP_LONG_SHARED : h->mapChunks ? HBP_LONG_LEAST : PetscMax(HBP_LONG_LEAST, h->nz / 4096);

  return (PetscInt)PetscMin(PetscMax(least, PetscMin(h->nz / h->m * 16, h->nz / 1024)), (PetscCount)PETSC_INT_MAX);
}

/*
  HBPChoose - Blocks and hash, from a look at some rows with blocks of M[0] and of M[1] columns

  The x of a block is kept in shared memory where x is more than stays in L2 and few entries have others near them. Else the caches do better, and blocks are as wide as 16 bits allow, so
  that most rows have one segment. With maps all rows have one; blocks are then low enough to have entries in no more chunks than a map may have.
*/
HBP_HD void HBPChoose(const PetscInt M[2], const HBPSample *s, HBP *h)
{
  const HBPOptions *options = &h->options;
  const PetscBool   local = (PetscBool)(2 * s->near >= s->entries), fits = (PetscBool)(M[HBP_NARROW] <= options->shared_cols);
  const PetscBool   alone = (PetscBool)(4 * s->chunks > 3 * s->entries); /* most entries have none near them */
  int               w;                                                   /* which of the samples' segments blocks will have */

  h->shared    = (PetscBool)(fits && HBPMayShare(options, h->n) && (options->shared_x == HBP_SHARED_ALWAYS || (!local && alone)));
  w            = h->shared ? HBP_NARROW : HBP_WIDE;
  h->N         = options->block_rows ? options->block_rows : local ? HBP_ROWS_LOCAL : h->m < HBP_MANY_ROWS ? HBP_ROWS_FEW : HBP_MAX_ROWS;
  h->M         = M[w];
  h->colBlocks = (h->n - 1) / h->M + 1;
  HBPChooseMaps((PetscReal)s->chunks / HBP_SAMPLES, h);
  if (h->mapChunks) w = HBP_ROW;
  if (!options->block_rows && !h->mapChunks) {
    const PetscReal segs = (PetscReal)s->segs[w] / HBP_SAMPLES / h->colBlocks; /* of a row in a block */

    while (!local && h->N < HBP_MAX_ROWS && segs * h->N < HBP_GROUP) h->N *= 2; /* enough segments for a group */
    while (h->N < HBP_MAX_ROWS && ((h->m - 1) / h->N + 1) * (PetscReal)h->colBlocks > h->nz + HBP_SPARE_BLOCKS) h->N *= 2;
  }
  h->rowBlocks   = (h->m - 1) / h->N + 1;
  h->hash        = HBPChooseHash(h->N, s->logs[w]);
  h->longRow     = options->long_row ? options->long_row : HBPChooseLongRow(h);
  h->laneEntries = options->lane_entries;
  if (!h->laneEntries) h->laneEntries = h->shared ? 8 : !local || h->nz / (32 * HBP_GROUP) < HBP_MANY_GROUPS ? 16 : 32; /* with fewer groups a GPU has too few */
}
