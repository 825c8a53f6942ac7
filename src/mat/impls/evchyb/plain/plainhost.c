/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the host: building it from CSR, renewing its values, its product. The reference for the GPU's. */

#include "../evchyb.h"
#include <gallop/deviceimpl.h>

/* The lengths of the column blocks, and the order in which they are stored */
static PetscErrorCode OrderColumnBlocks(EVCHYBPlain *p, const PetscInt i[], int rowbits)
{
  SubELL   *ell = &p->ell;
  PetscInt *perm, *clen, *order;
  uint64_t *keys;

  PetscFunctionBegin;
  PetscCall(PetscMalloc4(ell->n, &perm, ell->nb, &clen, ell->nb, &order, ell->nb, &keys));
  for (PetscInt b = 0; b < ell->nb; b++) {
    clen[b] = 0;
    for (PetscInt r = b * EVCHYB_BLOCK; r < (b + 1) * EVCHYB_BLOCK; r++) {
      const PetscInt len = i[p->perm[r] + 1] - i[p->perm[r]];

      clen[b] = PetscMax(clen[b], len);
      p->nzell += len;
    }
    ell->LCmax = PetscMax(ell->LCmax, clen[b]);
    ell->classes[EVCHYBClass(clen[b])]++;
    keys[b]  = EVCHYBBlockKey(p->byrow, rowbits, clen[b], p->perm[b * EVCHYB_BLOCK]);
    order[b] = b;
  }
  PetscCall(EVCHYBSortByKey(ell->nb, EVCHYBBlockKeyBits(p->byrow, rowbits), keys, order));
  PetscCall(PetscArraycpy(perm, p->perm, ell->n));
  for (PetscInt b = 0; b < ell->nb; b++) {
    ell->clen[b] = clen[order[b]];
    PetscCall(PetscArraycpy(p->perm + b * EVCHYB_BLOCK, perm + order[b] * EVCHYB_BLOCK, EVCHYB_BLOCK));
  }
  PetscCall(PetscFree4(perm, clen, order, keys));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All but the entries: the rows of both parts, and the order of column blocks */
static PetscErrorCode Arrange(const EVCHYB *ev, const GallopCSR *csr, const EVCHYBRows *rows, EVCHYBPlain **arranged)
{
  EVCHYBPlain *p;
  PetscInt     n;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  EVCHYBPlainSplit(ev, rows, p);
  n = p->ell.n + p->csr.n;
  PetscCall(PetscMalloc1(n + p->nlisted, &p->perm));
  PetscCall(PetscArraycpy(p->perm, rows->nonempty, n));
  for (PetscInt r = 0, k = n; r < csr->m && p->nlisted; r++)
    if (csr->i[r + 1] == csr->i[r]) p->perm[k++] = r;
  PetscCall(PetscMalloc1(p->ell.nb + 1, &p->ell.bnz));
  PetscCall(PetscMalloc1(p->ell.nb, &p->ell.clen));
  p->ell.bnz[0] = 0;
  PetscCall(OrderColumnBlocks(p, csr->i, EVCHYBRowBits(csr->m)));
  p->inorder = PETSC_TRUE;
  for (PetscInt r = 0; r < n + p->nlisted; r++) p->inorder = (PetscBool)(p->inorder && p->perm[r] == r);
  *arranged = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* j and as, or only as, from the rows of the matrix */
static void Fill(EVCHYBPlain *p, const GallopCSR *csr, PetscBool pattern)
{
  SubELL *ell = &p->ell;
  SubCSR *sub = &p->csr;

  for (PetscInt b = 0; b < ell->nb; b++) {
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) {
      const PetscInt   row  = p->perm[b * EVCHYB_BLOCK + r];
      const PetscCount from = csr->i[row], to = ell->bnz[b] + r;
      const PetscInt   len = csr->i[row + 1] - csr->i[row];

      for (PetscInt k = 0; k < len; k++) {
        ell->as[to + (PetscCount)k * EVCHYB_BLOCK] = csr->a[from + k];
        if (pattern) ell->j[to + (PetscCount)k * EVCHYB_BLOCK] = (GallopColumn)csr->j[from + k];
      }
      for (PetscInt k = len; pattern && k < ell->clen[b]; k++) {
        ell->as[to + (PetscCount)k * EVCHYB_BLOCK] = 0.0;
        ell->j[to + (PetscCount)k * EVCHYB_BLOCK]  = -1;
      }
    }
  }
  for (PetscInt r = 0; r < sub->n; r++) {
    const PetscInt   row  = p->perm[ell->n + r];
    const PetscCount from = csr->i[row], to = sub->i[r];
    const PetscInt   len = csr->i[row + 1] - csr->i[row];

    for (PetscInt k = 0; k < len; k++) {
      sub->as[to + k] = csr->a[from + k];
      if (pattern) sub->j[to + k] = (GallopColumn)csr->j[from + k];
    }
    for (PetscCount k = to + len; pattern && k < sub->i[r + 1]; k++) {
      sub->as[k] = 0.0;
      sub->j[k]  = -1;
    }
  }
}

PetscErrorCode EVCHYBPlainFree_Host(EVCHYBPlain **plain)
{
  PetscFunctionBegin;
  if (!*plain) PetscFunctionReturn(PETSC_SUCCESS);
#define FREE(array, n) PetscCall(PetscFree((*plain)->array));
  EVCHYB_PLAIN_ARRAYS(FREE, *plain)
#undef FREE
  PetscCall(EVCHYBPartsFree(&(*plain)->csr.parts));
  PetscCall(PetscFree(*plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPlainBuild_Host - *done is false where it would take more than maxbytes. Frees the rows when they are needed no more, before there are entries. */
PetscErrorCode EVCHYBPlainBuild_Host(EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, PetscCount maxbytes, PetscBool *done)
{
  EVCHYBPlain *p;
  SubELL      *ell;
  SubCSR      *sub;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(Arrange(ev, csr, rows, &p));
  PetscCall(EVCHYBRowsFree_Host(rows));
  ell = &p->ell;
  sub = &p->csr;
  for (PetscInt b = 0; b < ell->nb; b++) ell->bnz[b + 1] = ell->bnz[b] + (PetscCount)ell->clen[b] * EVCHYB_BLOCK;
  ell->nz = ell->bnz[ell->nb];
  PetscCall(PetscMalloc1(sub->n + 1, &sub->i));
  sub->i[0] = 0;
  for (PetscInt r = 0; r < sub->n; r++) {
    const PetscInt row = p->perm[ell->n + r];

    sub->i[r + 1] = sub->i[r] + EVCHYBRoundUp(csr->i[row + 1] - csr->i[row]);
  }
  sub->nz   = sub->i[sub->n];
  ev->bytes = 0;
#define ADD(array, n) ev->bytes += (size_t)(n) * sizeof(*p->array);
  EVCHYB_PLAIN_ARRAYS(ADD, p)
#undef ADD
  if (maxbytes && ev->bytes > (size_t)maxbytes) {
    PetscCall(EVCHYBPlainFree_Host(&p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1(ell->nz, &ell->j));
  PetscCall(PetscMalloc1(ell->nz, &ell->as));
  PetscCall(PetscMalloc1(sub->nz, &sub->j));
  PetscCall(PetscMalloc1(sub->nz, &sub->as));
  Fill(p, csr, PETSC_TRUE);
  PetscCall(EVCHYBPlainPlan(ev, p, sub->i));
  ev->plain = p;
  ev->work  = &EVCHYBPlainHost;
  *done     = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPlainOrder_Host - The order in which rows are stored; empty ones are the last, be they listed or not */
PetscErrorCode EVCHYBPlainOrder_Host(const EVCHYBOptions *options, const GallopCSR *csr, PetscInt order[])
{
  EVCHYB       ev   = {.memtype = PETSC_MEMTYPE_HOST, .m = csr->m, .n = csr->n, .nz = csr->nz};
  EVCHYBRows   rows = {.memory = NULL};
  EVCHYBPlain *p;
  PetscInt     k;

  PetscFunctionBegin;
  ev.options = EVCHYBOptionsFor(options, csr);
  EVCHYBRowsCount(ev.options.maxell, csr->m, csr->i, &rows);
  PetscCall(EVCHYBRowsSort_Host(&ev.options, csr, PETSC_FALSE, &rows));
  PetscCall(Arrange(&ev, csr, &rows, &p));
  PetscCall(EVCHYBRowsFree_Host(&rows));
  k = csr->m - rows.nempty;
  PetscCall(PetscArraycpy(order, p->perm, k));
  for (PetscInt r = 0; r < csr->m; r++)
    if (csr->i[r + 1] == csr->i[r]) order[k++] = r;
  PetscCall(EVCHYBPlainFree_Host(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refresh(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  PetscFunctionBegin;
  Fill(ev->plain, csr, PETSC_FALSE);
  *fits = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBPlainFree_Host(&ev->plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of 32 rows, column by column: the innermost loop is what a compiler makes vectors of. Only a column block with padding looks for it. */
static inline void ColumnBlock(PetscInt len, const GallopColumn *PETSC_RESTRICT j, const PetscScalar *PETSC_RESTRICT as, const PetscScalar *PETSC_RESTRICT x, PetscScalar *PETSC_RESTRICT sum)
{
  PetscInt k = 0;

  for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) sum[r] = 0.0;
  for (; k < len && j[k * EVCHYB_BLOCK] >= 0; k++) {
    const GallopColumn *jk    = j + k * EVCHYB_BLOCK;
    const PetscScalar  *ak    = as + k * EVCHYB_BLOCK;
    GallopColumn        least = 0;

    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) least |= jk[r];
    if (least < 0) break;
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) sum[r] = GallopMultiplyAdd(ak[r], x[jk[r]], sum[r]);
  }
  for (; k < len; k++) {
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++)
      if (j[k * EVCHYB_BLOCK + r] >= 0) sum[r] = GallopMultiplyAdd(as[k * EVCHYB_BLOCK + r], x[j[k * EVCHYB_BLOCK + r]], sum[r]);
  }
}

/* z = alpha sum + beta y for the rows of a column block; row is NULL where they are consecutive, and z and y begin with them */
static inline void StoreBlock(const PetscInt *row, PetscScalar alpha, const PetscScalar *sum, PetscBool readsy, PetscScalar beta, const PetscScalar *y, PetscScalar *z)
{
  if (!row) {
    if (!readsy)
      for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) z[r] = alpha * sum[r];
    else
      for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) z[r] = GallopMultiplyAdd(alpha, sum[r], beta * y[r]);
  } else if (!readsy)
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) z[row[r]] = alpha * sum[r];
  else
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) z[row[r]] = GallopMultiplyAdd(alpha, sum[r], beta * y[row[r]]);
}

static PetscErrorCode Apply(EVCHYB *ev, const GallopProduct *p)
{
  const EVCHYBPlain *plain   = ev->plain;
  const SubELL      *ell     = &plain->ell;
  const SubCSR      *csr     = &plain->csr;
  const PetscBool    inplace = EVCHYBLeavesRows(plain, ev->nempty), readsy = (PetscBool)(*p->beta != (PetscScalar)0.0);
  const PetscScalar  alpha = *p->alpha, beta = inplace && readsy ? (PetscScalar)1.0 : *p->beta; /* z = beta y for all rows comes first then */
  const PetscScalar *y = p->y;

  PetscFunctionBegin;
  if (inplace) y = p->z; /* the rows that are not listed */
  if (inplace) {
    if (!readsy) PetscCall(PetscArrayzero(p->z, ev->m));
    else if (p->y != p->z || *p->beta != (PetscScalar)1.0)
      for (PetscInt r = 0; r < ev->m; r++) p->z[r] = *p->beta * p->y[r];
  }
  for (PetscInt r = 0; r < plain->nlisted; r++) {
    const PetscInt row = plain->perm[ell->n + csr->n + r];

    p->z[row] = readsy ? beta * y[row] : 0.0;
  }
  for (PetscInt b = 0; b < ell->nb; b++) {
    const PetscInt first = b * EVCHYB_BLOCK;
    PetscScalar    sum[EVCHYB_BLOCK];

    ColumnBlock(ell->clen[b], ell->j + ell->bnz[b], ell->as + ell->bnz[b], p->x, sum);
    if (plain->inorder) StoreBlock(NULL, alpha, sum, readsy, beta, y ? y + first : NULL, p->z + first);
    else StoreBlock(plain->perm + first, alpha, sum, readsy, beta, y, p->z);
  }
  for (PetscInt r = 0; r < csr->n; r++) {
    const PetscInt row = plain->inorder ? ell->n + r : plain->perm[ell->n + r];
    PetscScalar    sum = 0.0;

    for (PetscCount k = csr->i[r]; k < csr->i[r + 1] && csr->j[k] >= 0; k++) sum = GallopMultiplyAdd(csr->as[k], p->x[csr->j[k]], sum); /* padding is at the end */
    if (!readsy) p->z[row] = alpha * sum;
    else p->z[row] = GallopMultiplyAdd(alpha, sum, beta * y[row]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const EVCHYBStorageWork EVCHYBPlainHost = {Refresh, Apply, Destroy};

/* EVCHYBPlainCopyToHost - A copy on the host of arrays at either place; EVCHYBPlainFree_Host() frees it */
PetscErrorCode EVCHYBPlainCopyToHost(const EVCHYBPlain *p, PetscMemType memtype, EVCHYBPlain **copy)
{
  EVCHYBPlain *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h = *p;
#define COPY(array, n) \
  PetscCall(PetscMalloc1(n, &h->array)); \
  PetscCall(GallopCopyToHost(h->array, memtype, p->array, (size_t)(n) * sizeof(*p->array)));
  EVCHYB_PLAIN_ARRAYS(COPY, p)
#undef COPY
  PetscCall(EVCHYBPartsCopyToHost(&p->csr.parts, memtype, &h->csr.parts));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}
