/* HBP: a new format, and the choice of its blocks, for host and GPU */

#include <gallop/deviceimpl.h>
#include "hbp.h"

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

/* Whether the x of blocks may be kept in shared memory, where their rows are such */
static PetscBool MayShare(const HBPOptions *options, const GallopCSR *csr)
{
  return (PetscBool)(options->shared_x == HBP_SHARED_CHOOSE ? (size_t)csr->n * sizeof(PetscScalar) > HBP_CACHE : options->shared_x == HBP_SHARED_ALWAYS);
}

/*
  HBPGetSharedCols - Sets options->shared_cols, unless it is set: to what the GPU has room for, at either place, so that both have the same blocks; without a GPU to what most have room for. Where no x
  may be in shared memory the GPU is not asked, which takes loading the kernel.
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

/* Columns of a block that are looked at: few, whose x fits shared memory, and many */
void HBPCandidates(const HBPOptions *options, PetscInt M[2])
{
  M[0] = options->block_cols ? options->block_cols : PetscMin((PetscInt)((64 << 10) / sizeof(PetscScalar)), PetscMax(options->shared_cols, 1));
  M[1] = options->block_cols ? options->block_cols : HBP_MAX_COLS;
}

/* As many as leave but 7/8 of the lengths in all classes but the last, and tell the longest from each other */
static HBPHash ChooseHash(PetscInt N, const unsigned long long logs[])
{
  HBPHash            h     = {0, PetscMax(1, PetscMin(N / 8, HBP_FINE)), 0, 1};
  unsigned long long all   = 0, below;
  int                first = 3, longest = 0; /* lengths below 2^first are in all classes but the last */

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

/*
  Blocks and hash, from a look at some rows with blocks of M[0] and M[1] columns.

  The x of a block is kept in shared memory where x is more than stays in L2 and few entries have others near them. Else the caches do better, and blocks are as wide as 16 bits
  allow, so that most rows have one segment; with maps all rows have, of blocks that are low enough to have entries in no more chunks than a map may have.
*/
void HBPChoose(const HBPOptions *options, const GallopCSR *csr, const PetscInt M[2], const HBPSample *s, HBP *h)
{
  const PetscBool local = (PetscBool)(2 * s->near >= s->entries), fits = (PetscBool)(M[HBP_NARROW] <= options->shared_cols);
  const PetscBool alone  = (PetscBool)(4 * s->chunks > 3 * s->entries); /* most entries have none near them */
  const PetscReal chunks = (PetscReal)s->chunks / HBP_SAMPLES;
  int             w;

  h->shared    = (PetscBool)(fits && MayShare(options, csr) && (options->shared_x == HBP_SHARED_ALWAYS || (!local && alone)));
  w            = h->shared ? HBP_NARROW : HBP_WIDE;
  h->N         = options->block_rows ? options->block_rows : local ? 512 : csr->m < HBP_MANY_ROWS ? 1024 : 2048;
  h->M         = M[w];
  h->colBlocks = (csr->n - 1) / h->M + 1;
  h->mapChunks = h->shared || h->colBlocks == 1 || csr->n / HBP_CHUNK >= PETSC_INT32_MAX || options->map == HBP_MAP_NEVER || (options->map == HBP_MAP_CHOOSE && options->block_cols) ? 0 : h->M / HBP_CHUNK;
  if (h->mapChunks && options->map == HBP_MAP_CHOOSE) {
    PetscInt N = h->N;

    while (!options->block_rows && N > HBP_LEAST_ROWS && chunks * N > 0.75 * h->mapChunks) N /= 2;
    if (chunks * N > h->mapChunks) h->mapChunks = 0;
    else h->N = N;
  }
  if (h->mapChunks) w = HBP_ROW;
  if (!options->block_rows && !local && !h->mapChunks) { /* enough segments for a group */
    const PetscReal segs = (PetscReal)s->segs[w] / HBP_SAMPLES / h->colBlocks;

    while (h->N < 2048 && segs * h->N < HBP_GROUP) h->N *= 2;
  }
  while (!options->block_rows && !h->mapChunks && h->N < HBP_MAX_ROWS && ((csr->m - 1) / h->N + 1) * (PetscReal)h->colBlocks > csr->nz + 1e6) h->N *= 2;
  h->rowBlocks = (csr->m - 1) / h->N + 1;
  h->hash      = ChooseHash(h->N, s->logs[w]);
  h->longRow   = options->long_row;
  if (!h->longRow) {
    const PetscCount least = h->shared ? 16384 : h->mapChunks ? 1024 : PetscMax(1024, csr->nz / 4096);

    h->longRow = (PetscInt)PetscMin(PetscMax(least, PetscMin(csr->nz / csr->m * 16, csr->nz / 1024)), PETSC_INT_MAX);
  }
  h->laneEntries = options->lane_entries;
  if (!h->laneEntries) h->laneEntries = h->shared ? 8 : !local || csr->nz / (32 * HBP_GROUP) < 4096 ? 16 : 32; /* groups enough for a GPU */
}
