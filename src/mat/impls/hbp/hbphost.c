/* HBP on the host: the choice of blocks, the build, the product */

#include <gallop/deviceimpl.h>
#include "hbp.h"

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

static PetscErrorCode Free(HBP *h)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(h->begin_nnz, h->colGroup));
  PetscCall(PetscFree4(h->group, h->output_hash, h->col, h->data));
  PetscCall(PetscFree(h->nnz_perrow));
  PetscCall(PetscFree3(h->partialPtr, h->partial, h->direct));
  PetscCall(PetscFree3(h->combinePtr, h->combinePos, h->combineEnd));
  PetscCall(PetscFree(h->mapPtr));
  PetscCall(PetscFree(h->map));
  PetscCall(GallopLongRowsFree(&h->longRows));
  PetscCall(PetscFree(h->longCol));
  PetscCall(PetscFree(h->csrIdx));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllocateBlocks(HBP *h)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc2(h->blkNum + 1, &h->begin_nnz, h->colBlocks + 1, &h->colGroup));
  PetscCall(PetscMalloc4(h->groupNum + 1, &h->group, h->segNum, &h->output_hash, h->blknz, &h->col, h->nz, &h->data));
  h->nnz_perrow = NULL;
  if (h->longest > HBP_PACKED) PetscCall(PetscMalloc1(h->segNum, &h->nnz_perrow));
  PetscCall(PetscMalloc3(h->rowBlocks + 1, &h->partialPtr, h->partialNum, &h->partial, h->rowBlocks * HBPWords(h->N), &h->direct));
  PetscCall(PetscMalloc3(h->rowBlocks + 1, &h->combinePtr, h->partialNum, &h->combinePos, (size_t)h->combineNum * h->N, &h->combineEnd));
  PetscCall(PetscMalloc1(h->nz - h->blknz, &h->longCol));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(const HBP *h)
{
  const GallopLongRows *l       = &h->longRows;
  const size_t          blocks  = (size_t)(h->blkNum + 1) * sizeof(*h->begin_nnz) + (size_t)(h->colBlocks + 1) * sizeof(*h->colGroup);
  const size_t          groups  = (size_t)(h->groupNum + 1) * sizeof(*h->group) + (size_t)h->segNum * (sizeof(*h->output_hash) + (h->longest > HBP_PACKED ? sizeof(*h->nnz_perrow) : 0));
  const size_t          entries = (size_t)h->nz * sizeof(*h->data) + (size_t)h->blknz * (sizeof(*h->col) + (h->csrIdx ? sizeof(*h->csrIdx) : 0));
  const size_t          rows    = (size_t)(h->rowBlocks + 1) * (sizeof(*h->partialPtr) + sizeof(*h->combinePtr)) + (size_t)h->rowBlocks * HBPWords(h->N) * sizeof(*h->direct);
  const size_t          combine = ((size_t)h->partialNum + (size_t)h->combineNum * h->N) * sizeof(*h->combinePos);

  const size_t maps = ((h->mapChunks ? (size_t)h->rowBlocks + 1 : 0) + (size_t)h->mapNum) * sizeof(PetscInt);

  return blocks + groups + entries + rows + combine + maps + (size_t)(3 * l->num + 2 + 2 * l->pieceNum + l->nz) * sizeof(PetscInt);
}

/* A segment before it has found its place, and what blocks have */
typedef struct {
  PetscInt       start, len;
  unsigned short row;
} Record;

typedef struct {
  PetscInt segs, partials, seg, partial; /* how many, and the first one */
  PetscInt lanes[HBP_LANES];             /* segments by log2 of lanes */
} Block;

/* What the build needs and the product does not */
typedef struct {
  unsigned short *partialRow; /* of each partial sum, in its block */
  PetscInt       *j, *from;   /* columns in increasing order, and where each was in CSR; NULL where they are so in CSR */
  Block          *block;      /* of each block, with entries or without, column by column */
  Record         *record;     /* by blocks, in order of rows */
  PetscInt       *place;      /* the record of each place of a block */
  PetscInt       *begin;      /* of each hash, its first place */
} Workspace;

static PetscBool IsLong(const HBP *h, const PetscInt i[], PetscInt row)
{
  return (PetscBool)(i[row + 1] - i[row] > h->longRow);
}

static PetscBool IsDirect(const HBP *h, const PetscInt i[], const PetscInt j[], PetscInt row)
{
  return (PetscBool)(i[row + 1] > i[row] && (HBPIsMapped(h->mapPtr, row / h->N) || j[i[row]] / h->M == j[i[row + 1] - 1] / h->M));
}

/* The block that the segment beginning with entry k of a row is in, and where it ends */
static Block *FindSegment(const HBP *h, const PetscInt i[], const PetscInt j[], PetscInt row, PetscInt k, const Workspace *w, PetscInt *end)
{
  const PetscBool mapped = (PetscBool)HBPIsMapped(h->mapPtr, row / h->N);

  *end = mapped ? i[row + 1] : HBPSegmentEnd(j, k, i[row + 1], h->M);
  return &w->block[(mapped ? 0 : (PetscCount)(j[k] / h->M) * h->rowBlocks) + row / h->N];
}

/* The maps; without any other blocks there is one column of them */
static PetscErrorCode MakeMaps(HBP *h, const PetscInt i[], const PetscInt j[])
{
  PetscInt *seen, *chunk, num, plain = 0;

  PetscFunctionBegin;
  if (!h->mapChunks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(h->rowBlocks + 1, &h->mapPtr));
  PetscCall(PetscMalloc1(PetscMin((PetscCount)h->rowBlocks * h->mapChunks, h->nz), &h->map));
  PetscCall(PetscCalloc1(h->n / HBP_CHUNK + 1, &seen)); /* 1 + the last block of rows that has entries there */
  PetscCall(PetscMalloc1(h->mapChunks, &chunk));
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    num           = 0;
    h->mapPtr[rb] = h->mapNum;
    for (PetscInt r = rb * h->N; r < PetscMin(h->m, (rb + 1) * h->N) && num <= h->mapChunks; r++) {
      for (PetscInt k = i[r]; k < i[r + 1] && !IsLong(h, i, r) && num <= h->mapChunks; k++) {
        const PetscInt c = j[k] / HBP_CHUNK;

        if (seen[c] == rb + 1) continue;
        seen[c] = rb + 1;
        if (num < h->mapChunks) chunk[num] = c * HBP_CHUNK;
        num++;
      }
    }
    if (num > h->mapChunks) plain++;
    else {
      PetscCall(PetscSortInt(num, chunk));
      PetscCall(PetscArraycpy(h->map + h->mapNum, chunk, num));
      h->mapNum += num;
      h->mapped += num > 0;
    }
  }
  h->mapPtr[h->rowBlocks] = h->mapNum;
  PetscCall(PetscRealloc((size_t)h->mapNum * sizeof(PetscInt), &h->map));
  if (!plain) {
    h->allMapped = PETSC_TRUE;
    h->colBlocks = 1;
  }
  PetscCall(PetscFree(seen));
  PetscCall(PetscFree(chunk));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In rows of blocks with maps any order will do */
static PetscErrorCode SortColumns(const HBP *h, const GallopCSR *csr, Workspace *w)
{
  PetscBool sorted = PETSC_TRUE;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < csr->m && sorted && !h->allMapped; r++)
    for (PetscInt k = csr->i[r] + 1; k < csr->i[r + 1] && !HBPIsMapped(h->mapPtr, r / h->N); k++)
      if (csr->j[k] <= csr->j[k - 1]) sorted = PETSC_FALSE;
  w->j = w->from = NULL;
  if (sorted) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(csr->nz, &w->j));
  PetscCall(PetscMalloc1(csr->nz, &w->from));
  PetscCall(PetscArraycpy(w->j, csr->j, csr->nz));
  for (PetscCount k = 0; k < csr->nz; k++) w->from[k] = (PetscInt)k;
  for (PetscInt r = 0; r < csr->m; r++) PetscCall(PetscSortIntWithArray(csr->i[r + 1] - csr->i[r], w->j + csr->i[r], w->from + csr->i[r]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of everything, and where the segments and partial sums of each block begin */
static PetscErrorCode Count(HBP *h, PetscInt group, const PetscInt i[], const PetscInt j[], Workspace *w)
{
  PetscFunctionBegin;
  h->alone = PETSC_TRUE;
  for (PetscInt r = 0; r < h->m; r++) {
    const PetscBool direct = IsDirect(h, i, j, r);

    if (!direct || IsLong(h, i, r)) h->alone = PETSC_FALSE;
    for (PetscInt k = i[r], end; k < i[r + 1] && !IsLong(h, i, r); k = end) {
      Block *b = FindSegment(h, i, j, r, k, w, &end);

      b->segs++;
      h->longest = PetscMax(h->longest, end - k);
      if (!direct) b->partials++;
      b->lanes[HBPLanes(&h->hash, h->laneEntries, end - k)]++;
    }
  }
  for (PetscCount b = 0; b < (PetscCount)h->rowBlocks * h->colBlocks; b++) {
    w->block[b].seg = h->segNum;
    h->segNum += w->block[b].segs;
    for (int l = 0; l < HBP_LANES; l++) h->groupNum += (w->block[b].lanes[l] + PetscMax(group >> l, 1) - 1) / PetscMax(group >> l, 1);
    if (w->block[b].segs) h->blkNum++;
  }
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
      Block *b = &w->block[(PetscCount)cb * h->rowBlocks + rb];

      b->partial = h->partialNum;
      h->partialNum += b->partials;
    }
    h->combineNum += (h->partialNum - w->block[rb].partial + HBP_COMBINED - 1) / HBP_COMBINED;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CollectSegments(const HBP *h, const PetscInt i[], const PetscInt j[], Workspace *w)
{
  for (PetscCount b = 0; b < (PetscCount)h->rowBlocks * h->colBlocks; b++) w->block[b].segs = 0;
  for (PetscInt r = 0; r < h->m; r++) {
    const PetscBool direct = IsDirect(h, i, j, r);

    if (direct || IsLong(h, i, r)) h->direct[(size_t)(r / h->N) * HBPWords(h->N) + r % h->N / 32] |= 1u << r % h->N % 32;
    for (PetscInt k = i[r], end; k < i[r + 1] && !IsLong(h, i, r); k = end) {
      Block *b = FindSegment(h, i, j, r, k, w, &end);

      w->record[b->seg + b->segs].start = k;
      w->record[b->seg + b->segs].len   = end - k;
      w->record[b->seg + b->segs++].row = (unsigned short)(r % h->N | (direct ? HBP_FLAG : 0));
    }
  }
}

/* Places by hash; of equal ones the order stays that of rows */
static void Hash(const HBP *h, const Block *b, Workspace *w)
{
  const PetscInt hashes = HBPHashes(&h->hash);
  const Record  *rec    = w->record + b->seg;

  for (PetscInt k = 0; k <= hashes; k++) w->begin[k] = 0;
  for (PetscInt k = 0; k < b->segs; k++) w->begin[HBPHashOf(&h->hash, rec[k].len) + 1]++;
  for (PetscInt k = 0; k < hashes; k++) w->begin[k + 1] += w->begin[k];
  for (PetscInt k = 0; k < b->segs; k++) w->place[w->begin[HBPHashOf(&h->hash, rec[k].len)]++] = k;
}

/* One group of a block: its segments, and its entries as the lanes meet them; returns whether all lanes have as many */
static PetscBool FillGroup(HBP *h, PetscInt rb, const Record rec[], const PetscInt place[], PetscInt count, int lanes, PetscInt seg, PetscInt *ptr, const PetscInt j[], PetscInt from[])
{
  const PetscInt each = (PetscInt)1 << lanes, all = count << lanes;
  PetscBool      equal = PETSC_TRUE;
  PetscInt       left  = count;

  for (PetscInt l = 0; l < count; l++) {
    h->output_hash[seg + l] = HBPOutput(rec[place[l]].row, rec[place[l]].len, h->longest);
    if (h->nnz_perrow) h->nnz_perrow[seg + l] = (unsigned short)(rec[place[l]].len - 1);
  }
  for (PetscInt k = 0; left; k += each) {
    left = 0;
    for (PetscInt l = 0; l < all; l++) {
      const Record  *r = &rec[place[l >> lanes]];
      const PetscInt e = k + (l & (each - 1));

      if (e >= r->len) continue;
      left++;
      from[*ptr]       = r->start + e;
      h->col[(*ptr)++] = HBPColumnIn(h->mapPtr, h->map, h->M, rb, j[r->start + e]);
    }
    if (left && left < all) equal = PETSC_FALSE;
  }
  return equal;
}

/* The groups of a block */
static void FillBlock(HBP *h, PetscInt size, PetscInt cb, PetscInt rb, Workspace *w, const PetscInt j[], PetscInt from[], PetscInt *g, PetscInt *ptr)
{
  const Block  *b       = &w->block[(PetscCount)cb * h->rowBlocks + rb];
  const Record *rec     = w->record + b->seg;
  PetscInt      partial = b->partial, count;

  Hash(h, b, w);
  for (PetscInt s = 0; s < b->segs; s += count) {
    const int      lanes = HBPLanes(&h->hash, h->laneEntries, rec[w->place[s]].len);
    const PetscInt seg = b->seg + s, out = partial;
    PetscBool      equal;

    for (count = 1; s + count < b->segs && count < size >> lanes && HBPLanes(&h->hash, h->laneEntries, rec[w->place[s + count]].len) == lanes;) count++;
    h->group[*g].begin_ptr = *ptr;
    h->group[*g].seg       = seg;
    equal                  = FillGroup(h, rb, rec, w->place + s, count, lanes, seg, ptr, j, from);
    for (PetscInt l = 0; l < count; l++)
      if (!(h->output_hash[seg + l] & HBP_FLAG)) w->partialRow[partial++] = (unsigned short)HBPOutputRow(h->output_hash[seg + l]);
    h->group[*g].out      = HBPIsMapped(h->mapPtr, rb) ? -2 - h->mapPtr[rb] : partial > out ? out : -1;
    h->group[(*g)++].info = HBPInfo(rb, equal, lanes);
  }
}

static void Fill(HBP *h, PetscInt size, Workspace *w, const PetscInt j[], PetscInt from[])
{
  PetscInt blk = 0, g = 0, ptr = 0;

  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    h->colGroup[cb] = g;
    for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
      if (!w->block[(PetscCount)cb * h->rowBlocks + rb].segs) continue;
      h->begin_nnz[blk++] = ptr;
      FillBlock(h, size, cb, rb, w, j, from, &g, &ptr);
    }
  }
  h->colGroup[h->colBlocks] = g;
  h->begin_nnz[blk]         = ptr;
  h->group[g]               = (HBPGroup){ptr, h->segNum, -1, 0};
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) h->partialPtr[rb] = w->block[rb].partial; /* of the first column */
  h->partialPtr[h->rowBlocks] = h->partialNum;
}

/* Pieces of partial sums: the place of each by rows, and where those of each row end */
static void PlanCombine(HBP *h, const unsigned short row[])
{
  PetscInt piece = 0, place[HBP_MAX_ROWS];

  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
    h->combinePtr[rb] = piece;
    for (PetscInt begin = h->partialPtr[rb]; begin < h->partialPtr[rb + 1]; begin += HBP_COMBINED, piece++) {
      const PetscInt        end  = PetscMin(begin + HBP_COMBINED, h->partialPtr[rb + 1]);
      unsigned short *const ends = h->combineEnd + (size_t)piece * h->N;

      for (PetscInt r = 0; r < h->N; r++) ends[r] = 0;
      for (PetscInt k = begin; k < end; k++) ends[row[k]]++;
      for (PetscInt r = 0; r < h->N; r++) {
        place[r] = r ? ends[r - 1] : 0;
        ends[r] += (unsigned short)place[r];
      }
      for (PetscInt k = begin; k < end; k++) h->combinePos[k] = (unsigned short)place[row[k]]++;
    }
  }
  h->combinePtr[h->rowBlocks] = piece;
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  HBP                  *h = (HBP *)data;
  const GallopLongRows *l = &h->longRows;

  PetscFunctionBegin;
  for (PetscInt t = 0; t < l->num; t++) PetscCall(PetscArraycpy(h->data + h->blknz + l->ptr[t], csr->a + csr->i[l->row[t]], l->ptr[t + 1] - l->ptr[t]));
  if (h->csrIdx) {
    for (PetscCount k = 0; k < h->blknz; k++) h->data[k] = csr->a[h->csrIdx[k]];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) {
      const HBPGroup *group = &h->group[g];
      const PetscInt  count = group[1].seg - group->seg, lanes = group->info & 7, each = (PetscInt)1 << lanes;
      PetscInt        start[HBP_GROUP];

      for (PetscInt l = 0; l < count; l++) {
        const PetscInt row = (group->info >> 4) * h->N + HBPOutputRow(h->output_hash[group->seg + l]);

        start[l] = HBPSegmentBegin(csr->j, csr->i[row], csr->i[row + 1], (PetscCount)cb * h->M);
      }
      for (PetscInt k = 0, ptr = group->begin_ptr; ptr < group[1].begin_ptr; k += each)
        for (PetscInt l = 0; l < count << lanes; l++)
          if (k + (l & (each - 1)) < HBPLength(h->output_hash, h->nnz_perrow, group->seg + (l >> lanes))) h->data[ptr++] = csr->a[start[l >> lanes] + k + (l & (each - 1))];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlanLongRows(HBP *h, const PetscInt i[])
{
  PetscInt num = 0, *rows;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < h->m; r++) num += IsLong(h, i, r);
  PetscCall(PetscMalloc1(num, &rows));
  num = 0;
  for (PetscInt r = 0; r < h->m; r++)
    if (IsLong(h, i, r)) rows[num++] = r;
  PetscCall(GallopLongRowsPlan(i, num, rows, HBP_PIECE, &h->longRows));
  PetscCall(PetscFree(rows));
  h->blknz = h->nz - h->longRows.nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds a segment of len entries */
static void AddSegment(HBPSample *s, int width, PetscInt len)
{
  s->segs[width]++;
  s->logs[width][HBPLog(len)]++;
}

static PetscErrorCode Look(const GallopCSR *csr, const PetscInt M[2], HBPSample *s)
{
  const PetscInt *j = csr->j;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  for (int k = 0; k < HBP_SAMPLES; k++) {
    const HBPSampled row = HBPSampledRow(csr->m, csr->i, k);

    for (PetscInt e = row.begin; e < row.end; e++) {
      s->entries++;
      if (HBPIsNear(j, &row, j[e])) s->near++;
      else s->chunks += e == row.begin || j[e] / HBP_CHUNK != j[e - 1] / HBP_CHUNK;
    }
    for (int w = HBP_NARROW; w <= HBP_WIDE; w++) {
      for (PetscInt e = row.begin, begin = e; e < row.end; e++) {
        if (e + 1 < row.end && j[e + 1] / M[w] == j[e] / M[w]) continue;
        AddSegment(s, w, e + 1 - begin);
        begin = e + 1;
      }
    }
    if (row.end > row.begin) AddSegment(s, HBP_ROW, row.end - row.begin);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPBuild_Host - The format with groups of up to HBP_GROUP segments; *built is NULL where it would take more than maxbytes, or where there would be far more blocks than entries */
PetscErrorCode HBPBuild_Host(PetscInt group, const HBPOptions *options, const GallopCSR *csr, PetscCount maxbytes, HBP **built)
{
  HBP            *h;
  HBPSample       s;
  Workspace       w;
  PetscInt        M[2], *from = NULL;
  const PetscInt *j;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&h));
  h->memtype = PETSC_MEMTYPE_HOST;
  h->m       = csr->m;
  h->n       = csr->n;
  h->nz      = csr->nz;
  h->options = *options;
  PetscCall(HBPGetSharedCols(csr, &h->options));
  HBPCandidates(&h->options, M);
  PetscCall(Look(csr, M, &s));
  HBPChoose(&h->options, csr, M, &s, h);
  if (!HBPFits(h)) {
    PetscCall(PetscFree(h));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PlanLongRows(h, csr->i));
  PetscCall(MakeMaps(h, csr->i, csr->j));
  PetscCall(SortColumns(h, csr, &w));
  j = w.j ? w.j : csr->j;
  PetscCall(PetscCalloc1((PetscCount)h->rowBlocks * h->colBlocks, &w.block));
  PetscCall(Count(h, group, csr->i, j, &w));
  PetscCall(AllocateBlocks(h));
  PetscCall(PetscArrayzero(h->direct, h->rowBlocks * HBPWords(h->N)));
  PetscCall(PetscMalloc3(h->segNum, &w.record, PetscMin(h->N, h->m), &w.place, HBPHashes(&h->hash) + 1, &w.begin));
  PetscCall(PetscMalloc1(h->partialNum, &w.partialRow));
  PetscCall(PetscMalloc1(h->blknz, &from));
  CollectSegments(h, csr->i, j, &w);
  Fill(h, group, &w, j, from);
  PlanCombine(h, w.partialRow);
  for (PetscInt t = 0; t < h->longRows.num; t++) PetscCall(PetscArraycpy(h->longCol + h->longRows.ptr[t], csr->j + csr->i[h->longRows.row[t]], h->longRows.ptr[t + 1] - h->longRows.ptr[t]));
  if (w.from)
    for (PetscCount k = 0; k < h->blknz; k++) from[k] = w.from[from[k]];
  h->csrIdx = from; /* at hand, whether it is kept or not */
  PetscCall(Refresh(h, csr));
  if (!w.from) {
    PetscCall(PetscFree(from));
    h->csrIdx = NULL;
  }
  h->bytes = Bytes(h);
  if (h->longest <= HBP_MAX_COLS && (!maxbytes || h->bytes + (size_t)(h->partialNum + h->longRows.pieceNum) * sizeof(PetscScalar) <= (size_t)maxbytes)) *built = h;
  else PetscCall(Free(h)); /* without room, or with a segment that names columns more than once and has more entries than two bytes tell */
  PetscCall(PetscFree3(w.record, w.place, w.begin));
  PetscCall(PetscFree(w.partialRow));
  PetscCall(PetscFree(w.block));
  PetscCall(PetscFree(w.j));
  PetscCall(PetscFree(w.from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  HBP *h;

  PetscFunctionBegin;
  PetscCall(HBPBuild_Host(HBP_GROUP, (const HBPOptions *)options, csr, maxbytes, &h));
  *built = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A group's lines of entries: entry ptr + t is that of lane live[t], as others have ended before */
typedef struct {
  PetscInt line, ptr, lives, live[HBP_GROUP];
  int      lanes; /* log2 of those of a segment */
} Lines;

static void FirstLine(const HBP *h, PetscInt g, Lines *l)
{
  l->line  = 0;
  l->ptr   = h->group[g].begin_ptr;
  l->lanes = (int)(h->group[g].info & 7);
  l->lives = (h->group[g + 1].seg - h->group[g].seg) << l->lanes;
  for (PetscInt t = 0; t < l->lives; t++) l->live[t] = t;
}

static void NextLine(const HBP *h, PetscInt g, Lines *l)
{
  PetscInt stay = 0;

  l->line++;
  l->ptr += l->lives;
  for (PetscInt t = 0; t < l->lives; t++)
    if (HBPLaneLength(HBPLength(h->output_hash, h->nnz_perrow, h->group[g].seg + (l->live[t] >> l->lanes)), l->lanes, l->live[t] & ((1 << l->lanes) - 1)) > l->line) l->live[stay++] = l->live[t];
  l->lives = stay;
}

/* The place of a column in a column of blocks, or with a map in a vector */
static inline PetscInt PlaceOf(const PetscInt map[], PetscInt col)
{
  return map ? map[col / HBP_CHUNK] + col % HBP_CHUNK : col;
}

static const PetscInt *MapOf(const HBP *h, PetscInt g)
{
  const PetscInt map = HBPMapOf(h->group[g].out);

  return map < 0 ? NULL : h->map + map;
}

/* The sums of a group; x is that of its column of blocks */
static void MultiplyGroup(const HBP *h, PetscInt g, const PetscScalar x[], PetscScalar sums[])
{
  const PetscInt *map = MapOf(h, g), all = (h->group[g + 1].seg - h->group[g].seg) << (h->group[g].info & 7);
  Lines           l;

  for (PetscInt t = 0; t < all; t++) sums[t] = 0.0;
  for (FirstLine(h, g, &l); l.lives; NextLine(h, g, &l))
    for (PetscInt t = 0; t < l.lives; t++) sums[l.live[t]] += h->data[l.ptr + t] * x[PlaceOf(map, h->col[l.ptr + t])];
  for (PetscInt t = 0; l.lanes && t < all; t++) { /* of a segment's lanes */
    if (t & ((1 << l.lanes) - 1)) sums[t >> l.lanes] += sums[t];
    else sums[t >> l.lanes] = sums[t];
  }
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) {
      const HBPGroup *group = &h->group[g];
      PetscScalar     sums[HBP_GROUP];
      PetscInt        out = group->out;

      MultiplyGroup(h, g, p->x + (PetscCount)cb * h->M, sums);
      for (PetscInt l = 0; l < group[1].seg - group->seg; l++) {
        const int row = h->output_hash[group->seg + l];

        if (row & HBP_FLAG) GallopStoreRow(p, (group->info >> 4) * h->N + HBPOutputRow(row), sums[l]);
        else h->partial[out++] = sums[l];
      }
    }
  }
  for (PetscInt rb = 0; rb < h->rowBlocks && !h->alone; rb++) {
    const unsigned int *direct = h->direct + (size_t)rb * HBPWords(h->N);
    PetscScalar         sum[HBP_MAX_ROWS], ordered[HBP_COMBINED];

    for (PetscInt r = 0; r < h->N; r++) sum[r] = 0.0;
    for (PetscInt piece = h->combinePtr[rb]; piece < h->combinePtr[rb + 1]; piece++) {
      const PetscInt        begin = h->partialPtr[rb] + (piece - h->combinePtr[rb]) * HBP_COMBINED, end = PetscMin(begin + HBP_COMBINED, h->partialPtr[rb + 1]);
      const unsigned short *ends = h->combineEnd + (size_t)piece * h->N;

      for (PetscInt k = begin; k < end; k++) ordered[h->combinePos[k]] = h->partial[k];
      for (PetscInt r = 0, k = 0; r < h->N; r++)
        for (; k < ends[r]; k++) sum[r] += ordered[k];
    }
    for (PetscInt r = 0; r < PetscMin(h->N, h->m - rb * h->N); r++)
      if (!(direct[r / 32] >> r % 32 & 1)) GallopStoreRow(p, rb * h->N + r, sum[r]);
  }
  for (PetscInt t = 0; t < h->longRows.num; t++) {
    PetscScalar sum = 0.0;

    for (PetscInt k = h->longRows.ptr[t]; k < h->longRows.ptr[t + 1]; k++) sum += h->data[h->blknz + k] * p->x[h->longCol[k]];
    GallopStoreRow(p, h->longRows.row[t], sum);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the transposed product of a group to z of its column of blocks */
static void AddGroup(const HBP *h, PetscInt g, const GallopProduct *p, PetscBool conjugate, PetscScalar z[])
{
  const PetscInt *map = MapOf(h, g), first = (h->group[g].info >> 4) * h->N;
  Lines           l;

  for (FirstLine(h, g, &l); l.lives; NextLine(h, g, &l))
    for (PetscInt t = 0; t < l.lives; t++) {
      const PetscScalar value = h->data[l.ptr + t];

      z[PlaceOf(map, h->col[l.ptr + t])] += *p->alpha * ((conjugate ? PetscConj(value) : value) * p->x[first + HBPOutputRow(h->output_hash[h->group[g].seg + (l.live[t] >> l.lanes)])]);
    }
}

static PetscErrorCode ApplyTranspose(void *data, const GallopProduct *p, PetscBool conjugate)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < h->n; c++) p->z[c] = *p->beta == (PetscScalar)0.0 ? 0.0 : *p->beta * p->y[c];
  for (PetscInt cb = 0; cb < h->colBlocks; cb++)
    for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) AddGroup(h, g, p, conjugate, p->z + (PetscCount)cb * h->M);
  for (PetscInt t = 0; t < h->longRows.num; t++)
    for (PetscInt k = h->longRows.ptr[t]; k < h->longRows.ptr[t + 1]; k++) {
      const PetscScalar value = h->data[h->blknz + k];

      p->z[h->longCol[k]] += *p->alpha * ((conjugate ? PetscConj(value) : value) * p->x[h->longRows.row[t]]);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((HBP *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork HBPHost = {Build, Refresh, Apply, Destroy, ApplyTranspose, NULL};

/* HBPGetAddSign - The paper's add_sign of each entry: how far the next one of its row is in its block, -1 for the last one. Segments must have a lane each. */
PetscErrorCode HBPGetAddSign(const HBP *h, PetscInt add_sign[])
{
  PetscFunctionBegin;
  for (PetscInt g = 0; g < h->groupNum; g++) {
    const PetscInt count = h->group[g + 1].seg - h->group[g].seg;
    PetscInt       live = count, ptr = h->group[g].begin_ptr;

    for (PetscInt k = 0; ptr < h->group[g + 1].begin_ptr; k++) {
      for (PetscInt l = 0; l < count; l++) { /* the rows that end before it in this step are as many entries less in the next */
        const PetscInt last = HBPLength(h->output_hash, h->nnz_perrow, h->group[g].seg + l) - 1;

        if (last == k) live--;
        if (last >= k) add_sign[ptr++] = last == k ? -1 : live;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the standard deviations of warps of so many lengths, and counts the warps */
static void AddDeviations(PetscInt n, const PetscInt len[], PetscReal *sum, PetscCount *warps)
{
  for (PetscInt k = 0; k < n; k += HBP_GROUP) {
    const PetscInt count = PetscMin(HBP_GROUP, n - k);
    PetscReal      mean = 0.0, square = 0.0;

    for (PetscInt l = k; l < k + count; l++) mean += (PetscReal)len[l] / count;
    for (PetscInt l = k; l < k + count; l++) square += PetscSqr(len[l] - mean) / count;
    *sum += PetscSqrtReal(square);
    if (warps) (*warps)++;
  }
}

/* HBPGetDeviations - Means over warps of the standard deviation of segments' lengths: with the segments of a block in order of rows, and by hash (the paper's Figure 6). A copy on the host. */
PetscErrorCode HBPGetDeviations(const HBP *h, PetscReal *byrow, PetscReal *byhash)
{
  PetscCount warps = 0;
  PetscInt   row[HBP_MAX_ROWS], len[HBP_MAX_ROWS];

  PetscFunctionBegin;
  *byrow = *byhash = 0.0;
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt g = h->colGroup[cb], end; g < h->colGroup[cb + 1]; g = end) { /* groups of a block */
      PetscInt n;

      for (end = g + 1; end < h->colGroup[cb + 1] && h->group[end].info >> 4 == h->group[g].info >> 4;) end++;
      n = h->group[end].seg - h->group[g].seg;
      for (PetscInt k = 0; k < n; k++) {
        row[k] = HBPOutputRow(h->output_hash[h->group[g].seg + k]);
        len[k] = HBPLength(h->output_hash, h->nnz_perrow, h->group[g].seg + k);
      }
      AddDeviations(n, len, byhash, &warps);
      PetscCall(PetscSortIntWithArray(n, row, len));
      AddDeviations(n, len, byrow, NULL);
    }
  }
  if (warps) {
    *byrow /= warps;
    *byhash /= warps;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPCopyToHost - A copy on the host of a format that was built at either place; HBPDestroyHostCopy() frees it */
PetscErrorCode HBPCopyToHost(const HBP *h, HBP **copy)
{
  const GallopLongRows *l = &h->longRows;
  HBP                  *c;

  PetscFunctionBegin;
  PetscCall(PetscNew(&c));
  *c             = *h;
  c->memtype     = PETSC_MEMTYPE_HOST;
  c->plan        = NULL;
  c->longPartial = NULL;
  PetscCall(AllocateBlocks(c));
  PetscCall(PetscMalloc5(l->num, &c->longRows.row, l->num + 1, &c->longRows.ptr, l->pieceNum, &c->longRows.pieceRow, l->pieceNum, &c->longRows.pieceAt, l->num + 1, &c->longRows.firstPiece));
  if (h->csrIdx) PetscCall(PetscMalloc1(h->blknz, &c->csrIdx));
  PetscCall(PetscMalloc1(h->mapPtr ? h->rowBlocks + 1 : 0, &c->mapPtr));
  PetscCall(PetscMalloc1(h->mapNum, &c->map));
  {
    const struct {
      void       *to;
      const void *from;
      size_t      bytes;
    } arrays[] = {
      {c->begin_nnz,           h->begin_nnz,   (size_t)(h->blkNum + 1) * sizeof(PetscInt)                          },
      {c->colGroup,            h->colGroup,    (size_t)(h->colBlocks + 1) * sizeof(PetscInt)                       },
      {c->group,               h->group,       (size_t)(h->groupNum + 1) * sizeof(HBPGroup)                        },
      {c->output_hash,         h->output_hash, (size_t)h->segNum * sizeof(unsigned short)                          },
      {c->nnz_perrow,          h->nnz_perrow,  h->nnz_perrow ? (size_t)h->segNum * sizeof(unsigned short) : 0      },
      {c->col,                 h->col,         (size_t)h->blknz * sizeof(unsigned short)                           },
      {c->data,                h->data,        (size_t)h->nz * sizeof(PetscScalar)                                 },
      {c->partialPtr,          h->partialPtr,  (size_t)(h->rowBlocks + 1) * sizeof(PetscInt)                       },
      {c->combinePtr,          h->combinePtr,  (size_t)(h->rowBlocks + 1) * sizeof(PetscInt)                       },
      {c->combinePos,          h->combinePos,  (size_t)h->partialNum * sizeof(unsigned short)                      },
      {c->combineEnd,          h->combineEnd,  (size_t)h->combineNum * (size_t)h->N * sizeof(unsigned short)       },
      {c->direct,              h->direct,      (size_t)h->rowBlocks * (size_t)HBPWords(h->N) * sizeof(unsigned int)},
      {c->mapPtr,              h->mapPtr,      h->mapPtr ? (size_t)(h->rowBlocks + 1) * sizeof(PetscInt) : 0       },
      {c->map,                 h->map,         (size_t)h->mapNum * sizeof(PetscInt)                                },
      {c->longRows.row,        l->row,         (size_t)l->num * sizeof(PetscInt)                                   },
      {c->longRows.ptr,        l->ptr,         (size_t)(l->num + 1) * sizeof(PetscInt)                             },
      {c->longRows.firstPiece, l->firstPiece,  (size_t)(l->num + 1) * sizeof(PetscInt)                             },
      {c->longRows.pieceRow,   l->pieceRow,    (size_t)l->pieceNum * sizeof(PetscInt)                              },
      {c->longRows.pieceAt,    l->pieceAt,     (size_t)l->pieceNum * sizeof(PetscInt)                              },
      {c->longCol,             h->longCol,     (size_t)l->nz * sizeof(PetscInt)                                    },
      {c->csrIdx,              h->csrIdx,      h->csrIdx ? (size_t)h->blknz * sizeof(PetscInt) : 0                 },
    };

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(arrays); k++)
      if (arrays[k].bytes) PetscCall(GallopCopyToHost(arrays[k].to, h->memtype, arrays[k].from, arrays[k].bytes));
  }
  *copy = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HBPDestroyHostCopy(HBP **copy)
{
  PetscFunctionBegin;
  PetscCall(Free(*copy));
  *copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
