/* FASTLOAD on the host: building it from CSR, renewing its values, its product. The reference for the GPU's. */

#include "fastload.h"
#include <gallop/deviceimpl.h>

/*
  FastLoadPlan - Where the entries and the blocks of each step begin

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

/* perm, and the steps: to be freed by the caller. rank[c] is the place of column c among the sorted ones. */
static PetscErrorCode SortColumns(const GallopCSR *csr, FastLoad *fl, PetscInt *rank, PetscInt *num, FastLoadStep **steps)
{
  PetscInt *count, *first, before = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2(csr->n, &count, csr->m + 2, &first));
  for (PetscCount k = 0; k < csr->nz; k++) count[csr->j[k]]++;
  for (PetscInt c = 0; c < csr->n; c++) first[count[c] + 1]++; /* a column has at most m entries */
  fl->ncols = csr->n - first[1];
  *num      = 0;
  for (PetscInt len = 1; len <= csr->m; len++) *num += first[len + 1] > 0;
  PetscCall(PetscMalloc1(*num, steps));
  *num     = 0;
  first[1] = 0;
  for (PetscInt len = 1; len <= csr->m; len++) {
    if (first[len + 1]) {
      (*steps)[(*num)++] = (FastLoadStep){.start = first[len], .base = before, .height = len - before};
      before             = len;
    }
    first[len + 1] += first[len];
  }
  PetscCall(PetscMalloc1(fl->ncols, &fl->perm));
  for (PetscInt c = 0; c < csr->n; c++) {
    if (!count[c]) continue;
    rank[c]           = first[count[c]]++;
    fl->perm[rank[c]] = c;
  }
  PetscCall(PetscFree2(count, first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The class of each block, and the rows that need care */
static PetscErrorCode Classify(FastLoad *fl)
{
  PetscInt   *block; /* of each row: the one that has entries of it, or -2 when there is more than one or the row stands apart in a line */
  PetscCount *line;  /* of each row: the last line that has entries of it */
  PetscCount  lines = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(fl->m, &block, fl->m, &line));
  for (PetscInt r = 0; r < fl->m; r++) block[r] = line[r] = -1;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    PetscBool onerow = PETSC_TRUE, distinct = PETSC_TRUE;

    for (PetscInt q = 0; q < fl->blkHeight[b]; q++, lines++) {
      const PetscInt *row = fl->rowIdx + fl->blkPtr[b] + (PetscCount)q * fl->blkLength[b];

      for (PetscInt l = 0; l < fl->blkLength[b]; l++) {
        const PetscInt  r    = row[l];
        const PetscBool same = (PetscBool)(l && row[l - 1] == r);

        if (same) distinct = PETSC_FALSE;
        else if (l) onerow = PETSC_FALSE;
        if ((block[r] >= 0 && block[r] != b) || (line[r] == lines && !same)) block[r] = -2;
        else if (block[r] == -1) block[r] = b;
        line[r] = lines;
      }
    }
    fl->blkClass[b] = (unsigned char)(distinct ? FASTLOAD_DISTINCT : onerow ? FASTLOAD_ONE_ROW : FASTLOAD_RUNS);
  }
  PetscCall(PetscArrayzero(fl->rowShared, (fl->nz + 31) / 32));
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    for (PetscCount k = fl->blkPtr[b]; k < fl->blkPtr[b + 1]; k++) {
      if (block[fl->rowIdx[k]] >= 0) continue;
      fl->rowShared[k / 32] |= 1u << (k % 32);
      fl->blkClass[b] |= FASTLOAD_SHARED;
    }
  }
  PetscCall(PetscFree2(block, line));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(FastLoad *fl)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(fl->perm));
  PetscCall(PetscFree(fl->sortedX));
  PetscCall(PetscFree5(fl->blkPtr, fl->blkColIdx, fl->blkHeight, fl->blkLength, fl->blkClass));
  PetscCall(PetscFree4(fl->rowIdx, fl->value, fl->csrIdx, fl->rowShared));
  PetscCall(PetscFree(fl));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllocateBlocks(FastLoad *fl)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc5(fl->blkNum + 1, &fl->blkPtr, fl->blkNum, &fl->blkColIdx, fl->blkNum, &fl->blkHeight, fl->blkNum, &fl->blkLength, fl->blkNum, &fl->blkClass));
  PetscCall(PetscMalloc4(fl->nz, &fl->rowIdx, fl->nz, &fl->value, fl->nz, &fl->csrIdx, (fl->nz + 31) / 32, &fl->rowShared));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(void *data, const GallopCSR *csr)
{
  FastLoad *fl = (FastLoad *)data;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < fl->nz; k++) fl->value[k] = csr->a[fl->csrIdx[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadBuild_Host - The format with blocks of any length up to FASTLOAD_LENGTH; *built is NULL where it would take more than maxbytes */
PetscErrorCode FastLoadBuild_Host(PetscInt length, const FastLoadOptions *options, const GallopCSR *csr, PetscCount maxbytes, FastLoad **built)
{
  FastLoad     *fl;
  FastLoadStep *steps;
  PetscInt     *rank, *taken, num;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscNew(&fl));
  fl->memtype = PETSC_MEMTYPE_HOST;
  fl->m       = csr->m;
  fl->n       = csr->n;
  fl->nz      = csr->nz;
  fl->length  = length;
  fl->options = *options;
  PetscCall(PetscCalloc2(csr->n, &rank, csr->n, &taken));
  PetscCall(SortColumns(csr, fl, rank, &num, &steps));
  FastLoadPlan(num, steps, fl->ncols, length, options->height, &fl->blkNum);
  fl->bytes = (size_t)fl->nz * (2 * sizeof(PetscInt) + sizeof(PetscScalar)) + (size_t)((fl->nz + 31) / 32) * sizeof(unsigned int) + (size_t)fl->ncols * (sizeof(PetscInt) + sizeof(PetscScalar)) +
              (size_t)fl->blkNum * (sizeof(PetscCount) + 2 * sizeof(PetscInt) + 2) + sizeof(PetscCount);
  if (!maxbytes || fl->bytes <= (size_t)maxbytes) {
    PetscCall(PetscMalloc1(fl->ncols, &fl->sortedX));
    PetscCall(AllocateBlocks(fl));
    for (PetscInt b = 0; b < fl->blkNum; b++) {
      const FastLoadBlock block = FastLoadGetBlock(num, steps, fl->ncols, length, options->height, b);

      fl->blkPtr[b]    = block.ptr;
      fl->blkColIdx[b] = block.colidx;
      fl->blkHeight[b] = block.height;
      fl->blkLength[b] = (unsigned char)block.length;
    }
    fl->blkPtr[fl->blkNum] = fl->nz;
    for (PetscInt r = 0; r < csr->m; r++) {
      for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
        const PetscInt   c  = csr->j[k];
        const PetscCount at = FastLoadPosition(num, steps, fl->ncols, length, rank[c], taken[c]++);

        fl->rowIdx[at] = r;
        fl->csrIdx[at] = k;
      }
    }
    PetscCall(Refresh(fl, csr));
    PetscCall(Classify(fl));
    *built = fl;
  } else PetscCall(Free(fl));
  PetscCall(PetscFree2(rank, taken));
  PetscCall(PetscFree(steps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  FastLoad *fl;

  PetscFunctionBegin;
  PetscCall(FastLoadBuild_Host(FASTLOAD_LENGTH, (const FastLoadOptions *)options, csr, maxbytes, &fl));
  *built = fl;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  FastLoad         *fl     = (FastLoad *)data;
  const PetscBool   readsy = (PetscBool)(*p->beta != (PetscScalar)0.0);
  const PetscScalar alpha = *p->alpha, beta = *p->beta;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < fl->ncols; c++) fl->sortedX[c] = p->x[fl->perm[c]];
  if (!readsy) PetscCall(PetscArrayzero(p->z, fl->m));
  else if (p->y != p->z || beta != (PetscScalar)1.0)
    for (PetscInt r = 0; r < fl->m; r++) p->z[r] = beta * p->y[r];
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscScalar *x   = fl->sortedX + fl->blkColIdx[b];
    const PetscInt     len = fl->blkLength[b];

    for (PetscInt q = 0; q < fl->blkHeight[b]; q++) {
      const PetscInt    *row   = fl->rowIdx + fl->blkPtr[b] + (PetscCount)q * len;
      const PetscScalar *value = fl->value + fl->blkPtr[b] + (PetscCount)q * len;

      if ((fl->blkClass[b] & ~FASTLOAD_SHARED) == FASTLOAD_DISTINCT) {
        for (PetscInt l = 0; l < len; l++) p->z[row[l]] += alpha * (value[l] * x[l]);
      } else {
        for (PetscInt l = 0; l < len;) { /* a run; the only one where all is one row */
          const PetscInt first = l;
          PetscScalar    sum   = value[l] * x[l];

          for (l++; l < len && row[l] == row[first]; l++) sum += value[l] * x[l];
          p->z[row[first]] += alpha * sum;
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((FastLoad *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadHost = {Build, Refresh, Apply, Destroy};

/* FastLoadCopyToHost - A copy on the host of a format that was built at either place; FastLoadDestroyHostCopy() frees it */
PetscErrorCode FastLoadCopyToHost(const FastLoad *fl, FastLoad **copy)
{
  FastLoad *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *fl;
  h->memtype = PETSC_MEMTYPE_HOST;
  h->sortedX = NULL;
  PetscCall(PetscMalloc1(h->ncols, &h->perm));
  PetscCall(AllocateBlocks(h));
  {
    const struct {
      void       *to;
      const void *from;
      size_t      bytes;
    } arrays[] = {
      {h->perm,      fl->perm,      (size_t)h->ncols * sizeof(PetscInt)               },
      {h->blkPtr,    fl->blkPtr,    (size_t)(h->blkNum + 1) * sizeof(PetscCount)      },
      {h->blkColIdx, fl->blkColIdx, (size_t)h->blkNum * sizeof(PetscInt)              },
      {h->blkHeight, fl->blkHeight, (size_t)h->blkNum * sizeof(PetscInt)              },
      {h->blkLength, fl->blkLength, (size_t)h->blkNum                                 },
      {h->blkClass,  fl->blkClass,  (size_t)h->blkNum                                 },
      {h->rowIdx,    fl->rowIdx,    (size_t)h->nz * sizeof(PetscInt)                  },
      {h->value,     fl->value,     (size_t)h->nz * sizeof(PetscScalar)               },
      {h->csrIdx,    fl->csrIdx,    (size_t)h->nz * sizeof(PetscInt)                  },
      {h->rowShared, fl->rowShared, (size_t)((h->nz + 31) / 32) * sizeof(unsigned int)},
    };

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(arrays); k++) PetscCall(GallopCopyToHost(arrays[k].to, fl->memtype, arrays[k].from, arrays[k].bytes));
  }
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadDestroyHostCopy(FastLoad **copy)
{
  PetscFunctionBegin;
  PetscCall(Free(*copy));
  *copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
