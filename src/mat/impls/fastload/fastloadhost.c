/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the host: renewing its values, and its products. The reference for the GPU's. */

#include "fastload.h"
#include <gallop/deviceimpl.h>

PetscErrorCode FastLoadFree_Host(FastLoad *fl)
{
  PetscFunctionBegin;
#define FREE(array, number) PetscCall(PetscFree(fl->array));
  FASTLOAD_ARRAYS(fl, FREE, FASTLOAD_NOT_HERE);
#undef FREE
  PetscCall(PetscFree(fl->rowIdx));
  PetscCall(PetscFree(fl));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadRefresh_Host(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  FastLoad *fl = (FastLoad *)data;

  PetscFunctionBegin;
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    for (PetscInt q = 0; q < fl->blkHeight[b]; q++) {
      for (PetscInt l = 0; l < fl->blkLength[b]; l++) {
        const PetscCount k = (PetscCount)q * fl->blkLength[b] + l, at = fl->blkPtr[b] + k;

        if (fl->csrIdx) fl->value[at] = csr->a[fl->csrIdx[at]];
        else {
          const PetscInt row = FastLoadRow(fl->blkClass[b], fl->lineRow[fl->blkLine[b] + q], fl->rowIdx + fl->blkRow[b], k - l, l);

          fl->value[at] = csr->a[FastLoadFind(csr->i, csr->j, row, fl->perm[fl->blkColIdx[b] + l])];
        }
      }
    }
  }
  for (PetscInt t = 0; t < fl->longNum; t++) PetscCall(PetscArraycpy(fl->value + fl->blknz + fl->longPtr[t], csr->a + csr->i[fl->longRow[t]], fl->longPtr[t + 1] - fl->longPtr[t]));
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

/* z = 0, or beta y where that is not z already */
static PetscErrorCode Begin(PetscInt n, const GallopProduct *p)
{
  PetscFunctionBegin;
  if (*p->beta == (PetscScalar)0.0) PetscCall(PetscArrayzero(p->z, n));
  else if (p->y != p->z || *p->beta != (PetscScalar)1.0)
    for (PetscInt r = 0; r < n; r++) p->z[r] = *p->beta * p->y[r];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  FastLoad         *fl    = (FastLoad *)data;
  const PetscScalar alpha = *p->alpha;
  PetscInt          from = 0, to = 0; /* the columns whose x is in sorted: blocks that follow each other have the same */
  PetscScalar       sorted[FASTLOAD_LENGTH];

  PetscFunctionBegin;
  PetscCall(Begin(fl->m, p));
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const unsigned char *offsets = fl->rowIdx + fl->blkRow[b];
    const PetscInt       len = fl->blkLength[b], col = fl->blkColIdx[b];
    const int            kind = fl->blkClass[b];
    const PetscScalar   *x;

    if (col < from || col + len > to) {
      from = col;
      to   = col + len;
      for (PetscInt l = 0; l < len; l++) sorted[l] = p->x[fl->perm[col + l]];
    }
    x = sorted + (col - from);

    for (PetscInt q = 0; q < fl->blkHeight[b]; q++) {
      const PetscCount   first = (PetscCount)q * len;
      const PetscInt     base  = fl->lineRow[fl->blkLine[b] + q];
      const PetscScalar *value = fl->value + fl->blkPtr[b] + first;

      if (FASTLOAD_ADD(kind) == FASTLOAD_DISTINCT) {
        switch (FASTLOAD_WIDTH(kind)) { /* outside of the loop */
        case FASTLOAD_IMPLIED:
          for (PetscInt l = 0; l < len; l++) p->z[base + l] += alpha * (value[l] * x[l]);
          break;
        case FASTLOAD_BYTE:
          for (PetscInt l = 0; l < len; l++) p->z[base + offsets[first + l]] += alpha * (value[l] * x[l]);
          break;
        default:
          for (PetscInt l = 0; l < len; l++) p->z[FastLoadRow(kind, base, offsets, first, l)] += alpha * (value[l] * x[l]);
        }
      } else {
        for (PetscInt l = 0; l < len;) { /* a run; the only one where all is one row */
          const PetscInt row = FastLoadRow(kind, base, offsets, first, l);
          PetscScalar    sum = value[l] * x[l];

          for (l++; l < len && FastLoadRow(kind, base, offsets, first, l) == row; l++) sum += value[l] * x[l];
          p->z[row] += alpha * sum;
        }
      }
    }
  }
  for (PetscInt t = 0; t < fl->longNum; t++) {
    PetscScalar sum = 0.0;

    for (PetscInt k = fl->longPtr[t]; k < fl->longPtr[t + 1]; k++) sum += fl->value[fl->blknz + k] * p->x[fl->longCol[k]];
    p->z[fl->longRow[t]] += alpha * sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A column of a block is a sum of its own */
static PetscErrorCode ApplyTranspose(void *data, const GallopProduct *p, PetscBool conjugate)
{
  FastLoad         *fl    = (FastLoad *)data;
  const PetscScalar alpha = *p->alpha;

  PetscFunctionBegin;
  PetscCall(Begin(fl->n, p));
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    const PetscInt len                   = fl->blkLength[b];
    PetscScalar    sums[FASTLOAD_LENGTH] = {0.0};

    for (PetscInt q = 0; q < fl->blkHeight[b]; q++) {
      const PetscCount   first = (PetscCount)q * len;
      const PetscInt     base  = fl->lineRow[fl->blkLine[b] + q];
      const PetscScalar *value = fl->value + fl->blkPtr[b] + first;

      for (PetscInt l = 0; l < len; l++) sums[l] += (conjugate ? PetscConj(value[l]) : value[l]) * p->x[FastLoadRow(fl->blkClass[b], base, fl->rowIdx + fl->blkRow[b], first, l)];
    }
    for (PetscInt l = 0; l < len; l++) p->z[fl->perm[fl->blkColIdx[b] + l]] += alpha * sums[l];
  }
  for (PetscInt t = 0; t < fl->longNum; t++) {
    for (PetscInt k = fl->longPtr[t]; k < fl->longPtr[t + 1]; k++) {
      const PetscScalar value = fl->value[fl->blknz + k];

      p->z[fl->longCol[k]] += alpha * ((conjugate ? PetscConj(value) : value) * p->x[fl->longRow[t]]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  PetscFunctionBegin;
  PetscCall(FastLoadFree_Host((FastLoad *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork FastLoadHost = {Build, FastLoadRefresh_Host, Apply, Destroy, ApplyTranspose};

/* FastLoadCopyToHost - A copy on the host of a format that was built at either place; FastLoadDestroyHostCopy() frees it */
PetscErrorCode FastLoadCopyToHost(const FastLoad *fl, FastLoad **copy)
{
  FastLoad  *h;
  PetscCount rowbytes;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *fl;
  h->memtype = PETSC_MEMTYPE_HOST;
#define FORGET(array, number) h->array = NULL;
#define COPY(array, number) \
  PetscCall(PetscMalloc1(number, &h->array)); \
  if (number) PetscCall(GallopCopyToHost(h->array, fl->memtype, fl->array, (size_t)(number) * sizeof(*h->array)));
  FASTLOAD_ARRAYS(fl, COPY, FORGET);
#undef COPY
#undef FORGET
  rowbytes = h->blkRow[h->blkNum];
  PetscCall(PetscMalloc1(rowbytes, &h->rowIdx));
  if (rowbytes) PetscCall(GallopCopyToHost(h->rowIdx, fl->memtype, fl->rowIdx, (size_t)rowbytes));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadDestroyHostCopy(FastLoad **copy)
{
  PetscFunctionBegin;
  PetscCall(FastLoadFree_Host(*copy));
  *copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
