/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the host: building it from CSR. The reference for the GPU's build. */

#include "fastload.h"

/* Tasks that entries are shared out to, where options leave the height of blocks open: more of them balance the work better, but each has to be found */
static const PetscInt FewestTasks = 2048, MostTasks = 8192, EntriesPerTask = 512;

/* Rows are long that have more entries than FewestLong, and than LongOverMean times the mean or 1/LongPart of all, whichever is less */
static const PetscInt FewestLong = 1024, LongOverMean = 16, LongPart = 1024;

/* Most lines of a block then, over the entries that a column has in a part of the result that FASTLOAD_WINDOW holds */
static const double LinesPerPart = 1.1;

/*
  What the options leave open. Columns are cut so that there is work for all warps of a GPU; small matrices, whose entries are in its cache, need fewer. spread is the sum of
  FastLoadSpread() over the samples, of interest where the result is large: where entries lie anywhere, a task shall add to a part of it.
*/
FastLoadOptions FastLoadChoose(const FastLoadOptions *options, const GallopCSR *csr, PetscCount spread)
{
  FastLoadOptions o = *options;

  if (o.deterministic) { /* a lane has all entries of a column */
    o.groups   = PETSC_TRUE;
    o.height   = 0;
    o.long_row = PETSC_INT_MAX;
    o.sorted_x = PETSC_FALSE;
  }
  if (o.height == FASTLOAD_CHOOSE) {
    const PetscCount tasks = PetscMin(PetscMax(csr->nz / EntriesPerTask, FewestTasks), MostTasks);
    const PetscReal  parts = (PetscReal)csr->m * sizeof(PetscScalar) / FASTLOAD_WINDOW;

    for (o.height = 1; o.height < FASTLOAD_HIGHEST && csr->nz / (2 * o.height * FASTLOAD_LENGTH) >= tasks;) o.height *= 2;
    if (o.groups && FastLoadIsLarge(csr->m) && FastLoadIsScattered(csr->n, spread))
      while (o.height > 1 && o.height * parts > LinesPerPart * csr->nz / csr->n) o.height /= 2;
  }
  if (!o.long_row) o.long_row = (PetscInt)PetscMin(PetscMax(FewestLong, PetscMin(csr->nz / csr->m * LongOverMean, csr->nz / LongPart)), PETSC_INT_MAX);
  if (!o.groups || o.window >= csr->n || o.window > PETSC_INT_MAX - FASTLOAD_LENGTH) o.window = 0; /* the last, since rounded up it may be more than a PetscInt can count */
  o.window = FastLoadCeil(o.window, FASTLOAD_LENGTH) * FASTLOAD_LENGTH;
  return o;
}

static PetscCount Spread(const GallopCSR *csr)
{
  PetscCount sum = 0;

  for (int k = 0; k < FASTLOAD_SAMPLES && FastLoadIsLarge(csr->m); k++) sum += FastLoadSpread(csr->m, csr->i, csr->j, k);
  return sum;
}

/*
  FastLoadPlan - Where the entries and the blocks of each step begin, where steps are made of all columns

  Input Parameters:
+ num    - number of steps
. steps  - start, base and height of each
. ncols  - sorted columns, without empty ones
. length - columns of a block
- limit  - most entries of a column in a block, 0 for no limit

  Output Parameters:
+ steps  - ptr and blk of each
- blkNum - number of blocks
*/
void FastLoadPlan(PetscInt num, FastLoadStep steps[], PetscInt ncols, PetscInt length, PetscInt limit, PetscInt *blkNum)
{
  PetscCount ptr = 0;
  PetscInt   blk = 0;

  for (PetscInt t = 0; t < num; t++) {
    steps[t].ptr = ptr;
    steps[t].blk = blk;
    ptr += (PetscCount)(ncols - steps[t].start) * steps[t].height;
    blk += FastLoadCeil(ncols - steps[t].start, length) * FastLoadPieces(&steps[t], limit); /* at most as many as entries */
  }
  *blkNum = blk;
}

/* perm, from how many entries columns have */
static PetscErrorCode SortColumns(FastLoad *fl, const PetscInt count[])
{
  const PetscInt window = fl->options.window ? fl->options.window : PetscMax(fl->n, 1);
  PetscInt      *first, empty = 0, longest = 0;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < fl->n; c++) {
    empty += !count[c];
    longest = PetscMax(longest, count[c]); /* more than m where rows name a column more than once */
  }
  fl->ncols = fl->options.groups ? fl->n : fl->n - empty;
  PetscCall(PetscMalloc1(fl->ncols, &fl->perm));
  PetscCall(PetscMalloc1((PetscCount)longest + 2, &first));
  for (PetscInt w = 0; w < fl->n; w += PetscMin(window, fl->n - w)) {
    const PetscInt end  = w + PetscMin(window, fl->n - w);
    PetscInt       most = 0;

    for (PetscInt c = w; c < end; c++) most = PetscMax(most, count[c]);
    PetscCall(PetscArrayzero(first, most + 2));
    for (PetscInt c = w; c < end; c++) first[count[c] + 1]++;
    if (!fl->options.groups) first[1] = 0;
    for (PetscInt len = 0; len <= most; len++) first[len + 1] += first[len];
    for (PetscInt c = w; c < end; c++)
      if (fl->options.groups || count[c]) fl->perm[w + first[count[c]]++] = c;
  }
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets a block, or only counts it where there is no memory yet, and its lines */
static void AddBlock(FastLoad *fl, FastLoadBlock block)
{
  if (fl->blkPtr) {
    fl->blkPtr[fl->blkNum]    = block.ptr;
    fl->blkColIdx[fl->blkNum] = block.colidx;
    fl->blkHeight[fl->blkNum] = block.height;
    fl->blkLength[fl->blkNum] = (unsigned char)block.length;
    fl->blkLine[fl->blkNum]   = fl->lineNum;
  }
  fl->blkNum++;
  fl->lineNum += block.height;
}

static void AddTask(FastLoad *fl)
{
  if (fl->taskBlk) fl->taskBlk[fl->taskNum] = fl->blkNum;
  fl->taskNum++;
}

/* Blocks and tasks from the lengths of the sorted columns, those of skip groups of empty ones left out */
static PetscErrorCode PlanGroups(FastLoad *fl, PetscInt skip, const PetscInt len[])
{
  const PetscInt limit = fl->height;
  PetscCount     ptr   = 0;

  PetscFunctionBegin;
  fl->blkNum = fl->lineNum = fl->taskNum = 0;
  fl->single                             = PETSC_TRUE;
  fl->zeros                              = skip ? PETSC_TRUE : PETSC_FALSE;
  for (PetscInt s = skip; s < fl->ncols; s += fl->length) {
    const PetscInt end = PetscMin(s + fl->length, fl->ncols), most = len[end - 1 - skip];
    PetscInt       at = s, chain = 0;

    if (!len[s - skip]) fl->zeros = PETSC_TRUE;
    for (PetscInt k = 0; k < most;) {
      PetscInt stop, cut;

      while (len[at - skip] <= k) at++; /* columns that are at their end */
      stop = len[at - skip];
      cut  = limit ? FastLoadCut(limit, fl->length, end - at) : most;
      if (k % cut == 0 || (limit && most > limit && chain == FASTLOAD_CHAIN)) {
        AddTask(fl);
        chain = 0;
        if (k) fl->single = PETSC_FALSE;
      }
      chain++;
      stop = PetscMin(stop, (k / cut + 1) * cut);
      AddBlock(fl, (FastLoadBlock){ptr, at, end - at, stop - k, k});
      ptr += (PetscCount)(end - at) * (stop - k);
      k = stop;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same with the paper's steps, of all columns */
static PetscErrorCode PlanSteps(FastLoad *fl, const PetscInt len[])
{
  FastLoadStep *steps;
  PetscInt      num = 0, blkNum, before = 0;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < fl->ncols; s++) num += !s || len[s] != len[s - 1];
  PetscCall(PetscMalloc1(num, &steps));
  num = 0;
  for (PetscInt s = 0; s < fl->ncols; s++) {
    if (s && len[s] == len[s - 1]) continue;
    steps[num++] = (FastLoadStep){.start = s, .base = before, .height = len[s] - before};
    before       = len[s];
  }
  FastLoadPlan(num, steps, fl->ncols, fl->length, fl->height, &blkNum);
  fl->blkNum = fl->lineNum = fl->taskNum = 0;
  fl->single                             = PETSC_FALSE;
  fl->zeros                              = PETSC_TRUE;
  for (PetscInt b = 0; b < blkNum; b++) {
    AddTask(fl);
    AddBlock(fl, FastLoadGetBlock(num, steps, fl->ncols, fl->length, fl->height, b));
  }
  PetscCall(PetscFree(steps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Plan(FastLoad *fl, PetscInt skip, const PetscInt len[])
{
  PetscFunctionBegin;
  if (fl->options.groups) PetscCall(PlanGroups(fl, skip, len));
  else PetscCall(PlanSteps(fl, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The class of each block, the lowest rows of its lines, and how many bytes the others take; rows has the row of each entry. Where most rows are empty, those that are not go by their first entries. */
static PetscErrorCode Classify(FastLoad *fl, const GallopCSR *csr, const PetscInt rows[])
{
  const PetscBool few = (PetscBool)(fl->nz < fl->m);
  const PetscInt  num = few ? (PetscInt)fl->nz : fl->m;
  PetscInt       *block; /* of each row: the one that has entries of it, or -2 when there is more than one or the row stands apart in a line */
  PetscCount     *line;  /* of each row: the last line that has entries of it */
  PetscCount      lines = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(num, &block, num, &line));
  for (PetscInt k = 0; k < num; k++) block[k] = line[k] = -1;
  fl->blkRow[0] = 0;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscInt length = fl->blkLength[b];
    PetscBool      onerow = PETSC_TRUE, distinct = PETSC_TRUE, follow = PETSC_TRUE;
    PetscInt       spread = 0, longest = 1;

    for (PetscInt q = 0; q < fl->blkHeight[b]; q++, lines++) {
      const PetscInt *row = rows + fl->blkPtr[b] + (PetscCount)q * length;
      PetscInt        lo = row[0], hi = row[0], run = 1;

      for (PetscInt l = 0; l < length; l++) {
        const PetscInt  r = row[l], at = few ? csr->i[r] : r;
        const PetscBool same = (PetscBool)(l && row[l - 1] == r);

        if (same) distinct = PETSC_FALSE;
        else if (l) onerow = PETSC_FALSE;
        if (r != row[0] + l) follow = PETSC_FALSE;
        run     = same ? run + 1 : 1;
        longest = PetscMax(longest, run);
        lo      = PetscMin(lo, r);
        hi      = PetscMax(hi, r);
        if ((block[at] >= 0 && block[at] != b) || (line[at] == lines && !same)) block[at] = -2;
        else if (block[at] == -1) block[at] = b;
        line[at] = lines;
      }
      fl->lineRow[lines] = lo;
      spread             = PetscMax(spread, hi - lo);
    }
    fl->blkClass[b]   = FastLoadClass(fl->options.sums, onerow, distinct, follow, spread, longest);
    fl->blkRow[b + 1] = fl->blkRow[b] + FastLoadRowBytes(FASTLOAD_WIDTH(fl->blkClass[b]), fl->blkPtr[b + 1] - fl->blkPtr[b]);
  }
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    for (PetscCount k = fl->blkPtr[b]; k < fl->blkPtr[b + 1]; k++)
      if (block[few ? csr->i[rows[k]] : rows[k]] < 0) fl->blkClass[b] |= FASTLOAD_SHARED;
  }
  PetscCall(PetscFree2(block, line));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Once rowIdx has memory */
static void StoreRows(FastLoad *fl, const PetscInt rows[])
{
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const int width = FASTLOAD_WIDTH(fl->blkClass[b]);

    for (PetscCount k = 0; k < fl->blkPtr[b + 1] - fl->blkPtr[b] && width != FASTLOAD_IMPLIED; k++) {
      unsigned char *const at  = fl->rowIdx + fl->blkRow[b];
      const PetscInt       off = rows[fl->blkPtr[b] + k] - fl->lineRow[fl->blkLine[b] + k / fl->blkLength[b]];

      if (width == FASTLOAD_BYTE) at[k] = (unsigned char)off;
      else if (width == FASTLOAD_SHORT) ((unsigned short *)at)[k] = (unsigned short)off;
      else ((PetscInt *)at)[k] = off;
    }
  }
}

/* Where each sorted column begins among entries sorted by columns, in place of their lengths, and the rows and places of these in CSR; long rows are left out. next is of each column of the matrix. */
static PetscErrorCode Transpose(const FastLoad *fl, const GallopCSR *csr, PetscInt skip, PetscInt len[], PetscInt next[], PetscInt *rows, PetscInt *entries)
{
  PetscInt at = 0;

  PetscFunctionBegin;
  for (PetscInt s = skip; s < fl->ncols; s++) {
    const PetscInt begin = at;

    at += len[s - skip];
    len[s - skip] = next[fl->perm[s]] = begin;
  }
  for (PetscInt r = 0; r < csr->m; r++) {
    if (FastLoadIsLong(csr->i, r, fl->options.long_row)) continue;
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      const PetscInt to = next[csr->j[k]]++;

      rows[to]    = r;
      entries[to] = k;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillLongRows(FastLoad *fl, const GallopCSR *csr)
{
  PetscInt t = 0;

  PetscFunctionBegin;
  fl->longPtr[0] = 0;
  for (PetscInt r = 0; r < csr->m; r++) {
    if (!FastLoadIsLong(csr->i, r, fl->options.long_row)) continue;
    fl->longRow[t]     = r;
    fl->longPtr[t + 1] = fl->longPtr[t] + csr->i[r + 1] - csr->i[r];
    PetscCall(PetscArraycpy(fl->longCol + fl->longPtr[t], csr->j + csr->i[r], csr->i[r + 1] - csr->i[r]));
    t++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for all arrays that have none yet, as perm has, but rowIdx */
static PetscErrorCode Allocate(FastLoad *fl)
{
  PetscFunctionBegin;
#define ALLOCATE(array, number) \
  if (!fl->array) PetscCall(PetscMalloc1(number, &fl->array));
  FASTLOAD_ARRAYS(fl, ALLOCATE, FASTLOAD_NOT_HERE);
#undef ALLOCATE
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(const FastLoad *fl)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*fl->array);
  FASTLOAD_ARRAYS(fl, ADD, FASTLOAD_NOT_HERE);
#undef ADD
  return bytes;
}

/* Entries of each column but those of long rows, and how many rows are long; sorted is false where the columns of one of the other rows do not increase */
static void CountEntries(FastLoad *fl, const GallopCSR *csr, PetscInt count[], PetscBool *sorted)
{
  *sorted = PETSC_TRUE;
  for (PetscInt r = 0; r < csr->m; r++) {
    const int islong = FastLoadIsLong(csr->i, r, fl->options.long_row);

    fl->longNum += islong;
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1] && !islong; k++) {
      count[csr->j[k]]++;
      fl->blknz++;
      if (k > csr->i[r] && csr->j[k] <= csr->j[k - 1]) *sorted = PETSC_FALSE;
    }
  }
}

/* The row of each entry in the order of blocks, and where it is in CSR, from those sorted by columns, of which next has the next one of each sorted column */
static void PlaceEntries(FastLoad *fl, PetscInt skip, PetscInt next[], const PetscInt rows[], const PetscInt entries[], PetscInt placed[])
{
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    for (PetscInt l = 0; l < fl->blkLength[b]; l++) {
      PetscInt *from = &next[fl->blkColIdx[b] + l - skip];

      for (PetscInt q = 0; q < fl->blkHeight[b]; q++) {
        const PetscCount at = fl->blkPtr[b] + (PetscCount)q * fl->blkLength[b] + l;

        placed[at] = rows[*from];
        if (fl->csrIdx) fl->csrIdx[at] = entries[*from];
        (*from)++;
      }
    }
  }
}

/* FastLoadBuild_Host - The format with blocks of any length up to FASTLOAD_LENGTH; *built is NULL where it would take more than maxbytes */
PetscErrorCode FastLoadBuild_Host(PetscInt length, const FastLoadOptions *options, const GallopCSR *csr, PetscCount maxbytes, FastLoad **built)
{
  FastLoad *fl;
  PetscInt *count, *len, *rows, *entries, *placed, skip = 0;
  PetscBool sorted;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_HOST;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = length;
  fl->rows    = -1;
  fl->options = FastLoadChoose(options, csr, Spread(csr));
  fl->height  = fl->options.height;
  PetscCall(PetscCalloc1(csr->n, &count));
  CountEntries(fl, csr, count, &sorted);
  fl->indexed = (PetscBool)(!sorted || fl->options.deterministic);
  PetscCall(SortColumns(fl, count));
  while (skip < fl->ncols - length && !count[fl->perm[skip + length - 1]]) skip += length; /* groups of empty columns, which come first */
  PetscCall(PetscMalloc1(fl->ncols - skip, &len));
  for (PetscInt s = skip; s < fl->ncols; s++) len[s - skip] = count[fl->perm[s]];
  PetscCall(Plan(fl, skip, len));
  PetscCall(Allocate(fl));
  PetscCall(Plan(fl, skip, len));
  fl->blkPtr[fl->blkNum]   = fl->blknz;
  fl->blkLine[fl->blkNum]  = fl->lineNum;
  fl->taskBlk[fl->taskNum] = fl->blkNum;
  PetscCall(FillLongRows(fl, csr));
  PetscCall(PetscMalloc3(fl->blknz, &rows, fl->blknz, &entries, fl->blknz, &placed));
  PetscCall(Transpose(fl, csr, skip, len, count, rows, entries));
  PetscCall(PetscFree(count));
  PlaceEntries(fl, skip, len, rows, entries, placed);
  PetscCall(PetscFree(len));
  PetscCall(Classify(fl, csr, placed));
  PetscCall(PetscCalloc1(fl->blkRow[fl->blkNum], &fl->rowIdx)); /* tests compare all bytes */
  StoreRows(fl, placed);
  PetscCall(PetscFree3(rows, entries, placed));
  fl->bytes = Bytes(fl) + (size_t)fl->blkRow[fl->blkNum];
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) {
    PetscCall(FastLoadRefresh_Host(fl, csr, 0, NULL));
    *built = fl;
  } else PetscCall(FastLoadFree_Host(fl));
  PetscFunctionReturn(PETSC_SUCCESS);
}
