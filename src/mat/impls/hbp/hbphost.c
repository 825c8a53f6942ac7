/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the host: its arrays, the build, new values */

#include <gallop/deviceimpl.h>
#include "hbpchoose.h"

static PetscErrorCode Free(HBP *h)
{
  PetscFunctionBegin;
  PetscCall(GallopLongRowsFree(&h->longRows));
  PetscCall(HBPColumnsDestroy(&h->columns));
  PetscCall(HBPHotDestroy(&h->hot));
#define FREE(array, number) PetscCall(PetscFree(h->array));
  HBP_ARRAYS(h, FREE);
#undef FREE
  PetscCall(PetscFree(h->partial));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of the arrays that are not there yet */
static PetscErrorCode Allocate(HBP *h)
{
  PetscFunctionBegin;
#define ALLOCATE(array, number) \
  if (!h->array) PetscCall(PetscMalloc1(number, &h->array));
  HBP_ARRAYS(h, ALLOCATE);
#undef ALLOCATE
  PetscCall(PetscMalloc1(h->partialNum, &h->partial));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(const HBP *h)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*h->array);
  HBP_ARRAYS(h, ADD);
#undef ADD
#define ADD(array, number) bytes += (size_t)(number) * sizeof(*h->longRows.array);
  HBP_LONG_ROWS(&h->longRows, ADD);
#undef ADD
  return bytes;
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
  PetscCall(HBPColumnsCopyToHost(h->columns, &c->columns));
  PetscCall(HBPHotCopyToHost(h->hot, &c->hot));
  if (!HBPHasBlocks(h)) {
    *copy = c;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#define COPY(array, number) \
  PetscCall(PetscMalloc1(number, &c->array)); \
  if ((number) > 0) PetscCall(GallopCopyToHost(c->array, h->memtype, h->array, (size_t)(number) * sizeof(*h->array)));
  HBP_ARRAYS(h, COPY);
#undef COPY
  PetscCall(PetscMalloc1(h->partialNum, &c->partial));
  PetscCall(PetscMalloc5(l->num, &c->longRows.row, l->num + 1, &c->longRows.ptr, l->pieceNum, &c->longRows.pieceRow, l->pieceNum, &c->longRows.pieceAt, l->num + 1, &c->longRows.firstPiece));
#define COPY(array, number) \
  if ((number) > 0) PetscCall(GallopCopyToHost(c->longRows.array, h->memtype, l->array, (size_t)(number) * sizeof(*l->array)));
  HBP_LONG_ROWS(l, COPY);
#undef COPY
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

/* A segment before it has found its place: its first entry, how many it has, the row in its block and HBP_FLAG */
typedef struct {
  PetscInt       start, len;
  unsigned short row;
} Record;

/* What a block has */
typedef struct {
  PetscInt segs, partials;   /* segments, those that give partial sums */
  PetscInt seg, partial;     /* the first of each */
  PetscInt lanes[HBP_LANES]; /* segments by log2 of lanes */
} Block;

/* What the build needs and the product does not */
typedef struct {
  PetscInt        size;   /* most segments of a group */
  const PetscInt *i, *j;  /* rows, and columns in increasing order */
  PetscInt       *sorted; /* j, and where its entries were in CSR, where columns of rows do not increase there; else NULL */
  PetscInt       *sortedfrom;
  PetscInt       *from;       /* of each entry in blocks, where it is in j */
  Block          *block;      /* of each block, with entries or without, column by column */
  Record         *record;     /* by blocks, in order of rows */
  PetscInt       *place;      /* the record of each place of a block */
  PetscInt       *begin;      /* of each hash, its first place */
  unsigned short *partialRow; /* row in its block of each partial sum */
} Workspace;

static PetscBool IsLong(const HBP *h, const PetscInt i[], PetscInt row)
{
  return (PetscBool)(i[row + 1] - i[row] > h->longRow);
}

/* Whether all entries of a row that is not long are in one block */
static PetscBool IsDirect(const HBP *h, const PetscInt i[], const PetscInt j[], PetscInt row)
{
  return (PetscBool)(i[row + 1] > i[row] && (HBPIsMapped(h->mapPtr, row / h->N) || j[i[row]] / h->M == j[i[row + 1] - 1] / h->M));
}

/* The block that the segment beginning with entry k of a row is in, and where it ends */
static Block *FindSegment(const HBP *h, const Workspace *w, PetscInt row, PetscInt k, PetscInt *end)
{
  const PetscBool mapped = (PetscBool)HBPIsMapped(h->mapPtr, row / h->N);

  *end = mapped ? w->i[row + 1] : HBPSegmentEnd(w->j, k, w->i[row + 1], h->M);
  return &w->block[(mapped ? 0 : (PetscCount)(w->j[k] / h->M) * h->rowBlocks) + row / h->N];
}

/* Maps of blocks of rows. If all have one, there is one column of blocks. */
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

/* Columns of rows in increasing order, but for rows of blocks with maps and where there is one column of blocks: there any order will do */
static PetscErrorCode SortColumns(HBP *h, const GallopCSR *csr, Workspace *w)
{
  PetscBool sorted = PETSC_TRUE;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < csr->m && sorted && h->colBlocks > 1; r++)
    for (PetscInt k = csr->i[r] + 1; k < csr->i[r + 1] && !HBPIsMapped(h->mapPtr, r / h->N); k++)
      if (csr->j[k] <= csr->j[k - 1]) sorted = PETSC_FALSE;
  w->i = csr->i;
  w->j = csr->j;
  if (sorted) PetscFunctionReturn(PETSC_SUCCESS);
  h->indexed = PETSC_TRUE;
  PetscCall(PetscMalloc1(csr->nz, &w->sorted));
  PetscCall(PetscMalloc1(csr->nz, &w->sortedfrom));
  PetscCall(PetscArraycpy(w->sorted, csr->j, csr->nz));
  for (PetscCount k = 0; k < csr->nz; k++) w->sortedfrom[k] = (PetscInt)k;
  for (PetscInt r = 0; r < csr->m; r++) PetscCall(PetscSortIntWithArray(csr->i[r + 1] - csr->i[r], w->sorted + csr->i[r], w->sortedfrom + csr->i[r]));
  w->j = w->sorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of everything, and where the segments and partial sums of each block begin */
static void Count(HBP *h, Workspace *w)
{
  const PetscInt *i = w->i;

  h->alone = PETSC_TRUE;
  for (PetscInt r = 0; r < h->m; r++) {
    const PetscBool direct = IsDirect(h, i, w->j, r);

    if (i[r + 1] == i[r]) h->empty++;
    if (!direct || IsLong(h, i, r)) h->alone = PETSC_FALSE;
    for (PetscInt k = i[r], end; k < i[r + 1] && !IsLong(h, i, r); k = end) {
      Block *b = FindSegment(h, w, r, k, &end);

      b->segs++;
      h->longest = PetscMax(h->longest, end - k);
      if (!direct) b->partials++;
      b->lanes[HBPLanes(&h->hash, h->laneEntries, end - k)]++;
    }
  }
  for (PetscCount b = 0; b < (PetscCount)h->rowBlocks * h->colBlocks; b++) {
    w->block[b].seg = h->segNum;
    h->segNum += w->block[b].segs;
    for (int l = 0; l < HBP_LANES; l++) {
      const PetscInt most = PetscMax(w->size >> l, 1); /* segments of a group */

      h->groupNum += (w->block[b].lanes[l] + most - 1) / most;
    }
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
}

/* The segments of each block, in order of rows; and which rows are done without the combine part */
static void CollectSegments(const HBP *h, Workspace *w)
{
  const PetscInt *i = w->i;

  for (PetscCount b = 0; b < (PetscCount)h->rowBlocks * h->colBlocks; b++) w->block[b].segs = 0;
  for (PetscInt r = 0; r < h->m; r++) {
    const PetscBool direct = IsDirect(h, i, w->j, r);

    if (direct || IsLong(h, i, r)) h->direct[(size_t)(r / h->N) * HBPWords(h->N) + r % h->N / 32] |= 1u << r % h->N % 32;
    for (PetscInt k = i[r], end; k < i[r + 1] && !IsLong(h, i, r); k = end) {
      Block *b = FindSegment(h, w, r, k, &end);

      w->record[b->seg + b->segs++] = (Record){.start = k, .len = end - k, .row = (unsigned short)(r % h->N | (direct ? HBP_FLAG : 0))};
    }
  }
}

/* Places by hash; segments with the same hash stay in order of rows */
static void Hash(const HBP *h, const Block *b, Workspace *w)
{
  const PetscInt hashes = HBPHashes(&h->hash);
  const Record  *rec    = w->record + b->seg;

  for (PetscInt k = 0; k <= hashes; k++) w->begin[k] = 0;
  for (PetscInt k = 0; k < b->segs; k++) w->begin[HBPHashOf(&h->hash, rec[k].len) + 1]++;
  for (PetscInt k = 0; k < hashes; k++) w->begin[k + 1] += w->begin[k];
  for (PetscInt k = 0; k < b->segs; k++) w->place[w->begin[HBPHashOf(&h->hash, rec[k].len)]++] = k;
}

/* The entries of group g, which has count segments from place on, as the lanes meet them; *ptr is the first one. Returns whether all lanes have equally many. */
static PetscBool FillEntries(HBP *h, const Workspace *w, PetscInt rb, const Record rec[], const PetscInt place[], PetscInt count, int lanes, PetscInt *ptr)
{
  const PetscInt each = (PetscInt)1 << lanes, all = count << lanes;
  PetscBool      equal = PETSC_TRUE;
  PetscInt       left  = count;

  for (PetscInt k = 0; left; k += each) {
    left = 0;
    for (PetscInt l = 0; l < all; l++) {
      const Record  *r = &rec[place[l >> lanes]];
      const PetscInt e = k + HBPLaneInSegment((int)l, lanes);

      if (e >= r->len) continue;
      left++;
      w->from[*ptr]    = r->start + e;
      h->col[(*ptr)++] = HBPColumnIn(h->mapPtr, h->map, h->M, rb, w->j[r->start + e]);
    }
    if (left && left < all) equal = PETSC_FALSE;
  }
  return equal;
}

/* The groups of a block from *g on, and their segments; *ptr is the first entry */
static void FillBlock(HBP *h, Workspace *w, PetscInt cb, PetscInt rb, PetscInt *g, PetscInt *ptr)
{
  const Block  *b       = &w->block[(PetscCount)cb * h->rowBlocks + rb];
  const Record *rec     = w->record + b->seg;
  PetscInt      partial = b->partial, count;

  Hash(h, b, w);
  for (PetscInt s = 0; s < b->segs; s += count) {
    const int      lanes = HBPLanes(&h->hash, h->laneEntries, rec[w->place[s]].len);
    const PetscInt seg = b->seg + s, begin = *ptr, out = partial;
    PetscBool      equal;

    for (count = 1; s + count < b->segs && count < w->size >> lanes && HBPLanes(&h->hash, h->laneEntries, rec[w->place[s + count]].len) == lanes;) count++;
    equal = FillEntries(h, w, rb, rec, w->place + s, count, lanes, ptr);
    for (PetscInt l = 0; l < count; l++) {
      const Record *r = &rec[w->place[s + l]];

      h->output_hash[seg + l] = HBPOutput(r->row, r->len, h->longest);
      if (h->nnz_perrow) h->nnz_perrow[seg + l] = (unsigned short)(r->len - 1);
      if (!(r->row & HBP_FLAG)) w->partialRow[partial++] = r->row;
    }
    h->group[(*g)++] = (HBPGroup){.begin_ptr = begin, .seg = seg, .out = HBPIsMapped(h->mapPtr, rb) ? HBPOutOfMap(h->mapPtr[rb]) : partial > out ? out : -1, .info = HBPInfo(rb, equal, lanes)};
  }
}

static void Fill(HBP *h, Workspace *w)
{
  PetscInt blk = 0, g = 0, ptr = 0;

  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    h->colGroup[cb] = g;
    for (PetscInt rb = 0; rb < h->rowBlocks; rb++) {
      if (!w->block[(PetscCount)cb * h->rowBlocks + rb].segs) continue;
      h->begin_nnz[blk++] = ptr;
      FillBlock(h, w, cb, rb, &g, &ptr);
    }
  }
  h->colGroup[h->colBlocks] = g;
  h->begin_nnz[blk]         = ptr;
  h->group[g]               = (HBPGroup){.begin_ptr = ptr, .seg = h->segNum, .out = -1};
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++) h->partialPtr[rb] = w->block[rb].partial; /* of the first column of blocks */
  h->partialPtr[h->rowBlocks] = h->partialNum;
}

/* Pieces of the combine part: the place of each partial sum in order of rows, and where those of each row end */
static void FillCombine(HBP *h, const unsigned short row[])
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

/* Values: those of long rows, and those of blocks, which are in CSR where from tells */
static PetscErrorCode CopyLongValues(HBP *h, const GallopCSR *csr)
{
  const GallopLongRows *l = &h->longRows;

  PetscFunctionBegin;
  for (PetscInt t = 0; t < l->num; t++) PetscCall(PetscArraycpy(h->data + h->blknz + l->ptr[t], csr->a + csr->i[l->row[t]], l->ptr[t + 1] - l->ptr[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CopyValues(HBP *h, const GallopCSR *csr, const PetscInt from[])
{
  for (PetscCount k = 0; k < h->blknz; k++) h->data[k] = csr->a[from[k]];
}

/* New values of a group in column of blocks cb: a segment is looked up in its row */
static void RefreshGroup(HBP *h, const GallopCSR *csr, PetscInt cb, const HBPGroup *group)
{
  const int      lanes = HBPInfoLanes(group->info);
  const PetscInt count = group[1].seg - group->seg;
  PetscInt       start[HBP_GROUP];

  for (PetscInt l = 0; l < count; l++) {
    const PetscInt row = HBPInfoRowBlock(group->info) * h->N + HBPOutputRow(h->output_hash[group->seg + l]);

    start[l] = cb ? HBPSegmentBegin(csr->j, csr->i[row], csr->i[row + 1], (PetscCount)cb * h->M) : csr->i[row];
  }
  for (PetscInt k = 0, ptr = group->begin_ptr; ptr < group[1].begin_ptr; k += (PetscInt)1 << lanes) {
    for (PetscInt l = 0; l < count << lanes; l++) {
      const PetscInt seg = l >> lanes, e = k + HBPLaneInSegment((int)l, lanes);

      if (e < HBPLength(h->output_hash, h->nnz_perrow, group->seg + seg)) h->data[ptr++] = csr->a[start[seg] + e];
    }
  }
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  HBP *h = (HBP *)data;

  PetscFunctionBegin;
  if (h->columns) HBPColumnsFill_Host(h->columns, csr, PETSC_FALSE);
  if (h->hot) HBPHotFill_Host(h->hot, csr, PETSC_FALSE);
  if (!HBPHasBlocks(h)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CopyLongValues(h, csr));
  if (h->indexed) CopyValues(h, csr, h->csrIdx);
  else
    for (PetscInt cb = 0; cb < h->colBlocks; cb++)
      for (PetscInt g = h->colGroup[cb]; g < h->colGroup[cb + 1]; g++) RefreshGroup(h, csr, cb, &h->group[g]);
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

/* Counts a segment of len entries */
static void AddSegment(HBPSample *s, int width, PetscInt len)
{
  s->segs[width]++;
  s->logs[width][HBPLog(len)]++;
}

/* Looks at some rows, with blocks of M[0] and of M[1] columns */
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

/* All arrays, after Count() */
static PetscErrorCode FillArrays(HBP *h, const GallopCSR *csr, Workspace *w)
{
  const GallopLongRows *l = &h->longRows;

  PetscFunctionBegin;
  PetscCall(Allocate(h));
  PetscCall(PetscArrayzero(h->direct, h->rowBlocks * HBPWords(h->N)));
  PetscCall(PetscMalloc3(h->segNum, &w->record, PetscMin(h->N, h->m), &w->place, HBPHashes(&h->hash) + 1, &w->begin));
  PetscCall(PetscMalloc1(h->partialNum, &w->partialRow));
  PetscCall(PetscMalloc1(h->blknz, &w->from));
  CollectSegments(h, w);
  Fill(h, w);
  FillCombine(h, w->partialRow);
  for (PetscInt t = 0; t < l->num; t++) PetscCall(PetscArraycpy(h->longCol + l->ptr[t], csr->j + csr->i[l->row[t]], l->ptr[t + 1] - l->ptr[t]));
  for (PetscCount k = 0; k < h->blknz && h->indexed; k++) h->csrIdx[k] = w->sortedfrom[w->from[k]];
  PetscCall(CopyLongValues(h, csr));
  CopyValues(h, csr, h->indexed ? h->csrIdx : w->from);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeWorkspace(Workspace *w)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(w->record, w->place, w->begin));
  PetscCall(PetscFree(w->partialRow));
  PetscCall(PetscFree(w->from));
  PetscCall(PetscFree(w->block));
  PetscCall(PetscFree(w->sorted));
  PetscCall(PetscFree(w->sortedfrom));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPBuild_Host - The format with groups of at most size segments, HBP_GROUP or fewer; *built is NULL where it would take more than maxbytes, or where HBP cannot store the matrix */
PetscErrorCode HBPBuild_Host(PetscInt size, const HBPOptions *options, const GallopCSR *csr, PetscCount maxbytes, HBP **built)
{
  HBP      *h;
  HBPSample s;
  Workspace w = {.size = size};
  PetscInt  M[2];
  PetscBool fits;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(HBPCreate(csr, options, PETSC_MEMTYPE_HOST, &h));
  PetscCall(HBPGetSharedCols(csr, &h->options));
  HBPCandidates(&h->options, M);
  PetscCall(Look(csr, M, &s));
  PetscCall(HBPColumnsBuild_Host(h, csr, &s, maxbytes));
  if (!h->columns) PetscCall(HBPHotBuild_Host(h, csr, &s, maxbytes));
  if (!HBPHasBlocks(h)) {
    *built = h;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HBPChoose(M, &s, h);
  fits = (PetscBool)HBPFits(h);
  if (fits) {
    PetscCall(PlanLongRows(h, csr->i));
    PetscCall(MakeMaps(h, csr->i, csr->j));
    PetscCall(SortColumns(h, csr, &w));
    PetscCall(PetscCalloc1((PetscCount)h->rowBlocks * h->colBlocks, &w.block));
    Count(h, &w);
    PetscCall(FillArrays(h, csr, &w));
    PetscCall(FreeWorkspace(&w));
    h->bytes = Bytes(h);
    fits     = (PetscBool)(h->longest <= HBP_MAX_COLS); /* else some row names columns more than once, and has more entries than two bytes tell */
    if (!fits) PetscCall(HBPTellRefusal(h, HBP_REFUSED_ROW));
    if (maxbytes && h->bytes + HBPWorkspaceBytes(h) > (size_t)maxbytes) fits = PETSC_FALSE;
  } else PetscCall(HBPTellRefusal(h, NULL));
  if (fits) *built = h;
  else PetscCall(Free(h));
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

static PetscErrorCode Destroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((HBP *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork HBPHost = {Build, Refresh, HBPApply_Host, Destroy, HBPApplyTranspose_Host};
