/* EVCHYB on the host: building it from CSR, renewing its values, its product. The reference for the GPU's. */

#include "evchyb.h"
#include <gallop/deviceimpl.h>

#define RADIX_BITS     11
#define INSERTION_MOST 32

/* Stable sort of rows by key: a few by insertion, more by digits, the least significant first, of 8 bits where counting the values of wider ones would take longer than the rows */
static PetscErrorCode SortByKey(PetscInt n, int bits, uint64_t *keys, PetscInt *rows)
{
  const int digit = n < 4096 ? 8 : RADIX_BITS, values = 1 << digit;
  uint64_t *keys2;
  PetscInt *rows2, count[(1 << RADIX_BITS) + 1], k;

  PetscFunctionBegin;
  for (k = 1; k < n && keys[k - 1] <= keys[k]; k++) { }
  if (k >= n) PetscFunctionReturn(PETSC_SUCCESS);
  if (n <= INSERTION_MOST) {
    for (; k < n; k++) {
      const uint64_t key = keys[k];
      const PetscInt row = rows[k];
      PetscInt       at  = k;

      for (; at > 0 && keys[at - 1] > key; at--) {
        keys[at] = keys[at - 1];
        rows[at] = rows[at - 1];
      }
      keys[at] = key;
      rows[at] = row;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc2(n, &keys2, n, &rows2));
  for (int shift = 0; shift < bits; shift += digit) {
    PetscCall(PetscArrayzero(count, values + 1));
    for (k = 0; k < n; k++) count[(keys[k] >> shift & (uint64_t)(values - 1)) + 1]++;
    for (k = 0; k < values && count[k + 1] != n; k++) { }
    if (k < values) continue; /* all keys share this digit */
    for (k = 0; k < values; k++) count[k + 1] += count[k];
    for (k = 0; k < n; k++) {
      const PetscInt to = count[keys[k] >> shift & (uint64_t)(values - 1)]++;

      keys2[to] = keys[k];
      rows2[to] = rows[k];
    }
    PetscCall(PetscArraycpy(keys, keys2, n));
    PetscCall(PetscArraycpy(rows, rows2, n));
  }
  PetscCall(PetscFree2(keys2, rows2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lengths of the column blocks, and the order in which they are stored */
static PetscErrorCode OrderColumnBlocks(EVCHYB *ev, const PetscInt i[])
{
  SubELL   *ell = &ev->ell;
  PetscInt *perm, *clen, *order;
  uint64_t *keys;

  PetscFunctionBegin;
  PetscCall(PetscMalloc4(ell->n, &perm, ell->nb, &clen, ell->nb, &order, ell->nb, &keys));
  for (PetscInt b = 0; b < ell->nb; b++) {
    clen[b] = 0;
    for (PetscInt r = b * EVCHYB_BLOCK; r < (b + 1) * EVCHYB_BLOCK; r++) {
      const PetscInt len = i[ev->perm[r] + 1] - i[ev->perm[r]];

      clen[b] = PetscMax(clen[b], len);
      ev->nzell += len;
    }
    ell->LCmax = PetscMax(ell->LCmax, clen[b]);
    ell->classes[EVCHYBClass(clen[b])]++;
    keys[b]  = EVCHYBBlockKey(ev->byrow, clen[b], ev->perm[b * EVCHYB_BLOCK]);
    order[b] = b;
  }
  PetscCall(SortByKey(ell->nb, ev->byrow ? EVCHYB_ROWBITS + 5 : 5, keys, order));
  PetscCall(PetscArraycpy(perm, ev->perm, ell->n));
  for (PetscInt b = 0; b < ell->nb; b++) {
    ell->clen[b] = clen[order[b]];
    PetscCall(PetscArraycpy(ev->perm + b * EVCHYB_BLOCK, perm + order[b] * EVCHYB_BLOCK, EVCHYB_BLOCK));
  }
  PetscCall(PetscFree4(perm, clen, order, keys));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* j and as, or only as, from the rows of the matrix */
static void Fill(EVCHYB *ev, const GallopCSR *csr, PetscBool pattern)
{
  SubELL *ell = &ev->ell;
  SubCSR *sub = &ev->csr;

  for (PetscInt b = 0; b < ell->nb; b++) {
    for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) {
      const PetscInt   row  = ev->perm[b * EVCHYB_BLOCK + r];
      const PetscCount from = csr->i[row], to = ell->bnz[b] + r;
      const PetscInt   len = csr->i[row + 1] - csr->i[row];

      for (PetscInt k = 0; k < len; k++) {
        ell->as[to + (PetscCount)k * EVCHYB_BLOCK] = csr->a[from + k];
        if (pattern) ell->j[to + (PetscCount)k * EVCHYB_BLOCK] = csr->j[from + k];
      }
      for (PetscInt k = len; pattern && k < ell->clen[b]; k++) {
        ell->as[to + (PetscCount)k * EVCHYB_BLOCK] = 0.0;
        ell->j[to + (PetscCount)k * EVCHYB_BLOCK]  = -1;
      }
    }
  }
  for (PetscInt r = 0; r < (sub->nz ? sub->n : 0); r++) {
    const PetscInt   row  = ev->perm[ell->n + r];
    const PetscCount from = csr->i[row], to = sub->i[r];
    const PetscInt   len = csr->i[row + 1] - csr->i[row];

    for (PetscInt k = 0; k < len; k++) {
      sub->as[to + k] = csr->a[from + k];
      if (pattern) sub->j[to + k] = csr->j[from + k];
    }
    for (PetscCount k = to + len; pattern && k < sub->i[r + 1]; k++) {
      sub->as[k] = 0.0;
      sub->j[k]  = -1;
    }
  }
}

static PetscErrorCode Free(EVCHYB *ev)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(ev->perm));
  PetscCall(PetscFree2(ev->ell.bnz, ev->ell.clen));
  PetscCall(PetscFree2(ev->ell.j, ev->ell.as));
  PetscCall(PetscFree(ev->csr.i));
  PetscCall(PetscFree2(ev->csr.j, ev->csr.as));
  PetscCall(PetscFree2(ev->csr.splitblk, ev->csr.splitrow));
  PetscCall(GallopPackDestroy(&ev->pack));
  PetscCall(PetscFree(ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBDestroy_Host(void **data)
{
  PetscFunctionBegin;
  PetscCall(Free((EVCHYB *)*data));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the rows, and packs them where that is asked for and pays: all that is known before other entries are stored */
static PetscErrorCode SortRows(const EVCHYBOptions *given, const GallopCSR *csr, PetscBool pack, PetscCount maxbytes, EVCHYB **sorted)
{
  const PetscInt       m = csr->m;
  const EVCHYBOptions *options;
  EVCHYB              *ev;
  EVCHYBKeyShape       shape;
  uint64_t            *keys;
  PetscBool            wanted;
  PetscInt            *rows, nempty = 0, nlong = 0, first, n, at[3]; /* first: of the rows that are not empty, in rows */

  PetscFunctionBegin;
  PetscCall(PetscNew(&ev));
  ev->memtype  = PETSC_MEMTYPE_HOST;
  ev->m        = m;
  ev->n        = csr->n;
  ev->nz       = csr->nz;
  ev->maxbytes = maxbytes;
  ev->options  = EVCHYBOptionsFor(given, csr);
  options      = &ev->options;
  EVCHYBGetKeyShape(options, csr, &shape);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = csr->i[r + 1] - csr->i[r];

    nempty += len == 0;
    nlong += len > options->maxell;
  }
  wanted = (PetscBool)(pack && EVCHYBWantsPack(ev, csr, nempty));
  first  = wanted ? nempty : 0; /* only a pack wants the empty ones as well, before the others */
  n      = first + m - nempty;
  PetscCall(PetscMalloc2(n, &keys, n, &rows));
  at[EVCHYB_EMPTY] = 0;
  at[EVCHYB_SHORT] = first;
  at[EVCHYB_LONG]  = n - nlong;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = csr->i[r + 1] - csr->i[r];
    PetscInt       k;

    if (!len && !wanted) continue;
    k       = at[len > options->maxell ? EVCHYB_LONG : len ? EVCHYB_SHORT : EVCHYB_EMPTY]++;
    keys[k] = EVCHYBKey(&shape, r, len, len ? csr->j[csr->i[r]] : 0);
    rows[k] = r;
  }
  for (PetscInt begin = first, end; begin < n - nlong; begin = end) { /* each window for itself, whose keys stay in the cache */
    const int      bits   = shape.lenbits + shape.colbits;
    const uint64_t window = keys[begin] >> bits;

    for (end = begin + 1; end < n - nlong && keys[end] >> bits == window; end++) { }
    PetscCall(SortByKey(end - begin, bits, keys + begin, rows + begin));
  }
  PetscCall(SortByKey(nlong, shape.classbit, keys + n - nlong, rows + n - nlong));
  if (wanted) PetscCall(EVCHYBMakePack(csr, rows, n - nlong, rows + n - nlong, nlong, ev));
  EVCHYBSplit(nempty, m - nempty - nlong, nlong, ev);
  PetscCall(PetscMalloc1(ev->ell.n + ev->csr.n + ev->nlisted, &ev->perm));
  PetscCall(PetscArraycpy(ev->perm, rows + n - ev->ell.n - ev->csr.n, ev->ell.n + ev->csr.n));
  for (PetscInt r = 0, k = ev->ell.n + ev->csr.n; r < m && ev->nlisted; r++)
    if (csr->i[r + 1] == csr->i[r]) ev->perm[k++] = r;
  PetscCall(PetscFree2(keys, rows));
  PetscCall(PetscMalloc2(ev->ell.nb + 1, &ev->ell.bnz, ev->ell.nb, &ev->ell.clen));
  ev->ell.bnz[0] = 0;
  PetscCall(OrderColumnBlocks(ev, csr->i));
  ev->inorder = PETSC_TRUE;
  for (PetscInt r = 0; r < ev->ell.n + ev->csr.n + ev->nlisted; r++) ev->inorder = (PetscBool)(ev->inorder && ev->perm[r] == r);
  *sorted = ev;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBOrder_Host - The order in which rows are stored; empty ones are the last, be they listed or not */
PetscErrorCode EVCHYBOrder_Host(const void *options, const GallopCSR *csr, PetscInt order[])
{
  EVCHYB  *ev;
  PetscInt k;

  PetscFunctionBegin;
  PetscCall(SortRows((const EVCHYBOptions *)options, csr, PETSC_FALSE, 0, &ev));
  k = csr->m - ev->nempty;
  PetscCall(PetscArraycpy(order, ev->perm, k));
  for (PetscInt r = 0; r < csr->m; r++)
    if (csr->i[r + 1] == csr->i[r]) order[k++] = r;
  PetscCall(Free(ev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBBuild_Host(const void *opts, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  EVCHYB *ev;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(SortRows((const EVCHYBOptions *)opts, csr, PETSC_TRUE, maxbytes, &ev));
  for (PetscInt b = 0; b < ev->ell.nb; b++) ev->ell.bnz[b + 1] = ev->ell.bnz[b] + (PetscCount)ev->ell.clen[b] * EVCHYB_BLOCK;
  ev->ell.nz = ev->ell.bnz[ev->ell.nb];
  PetscCall(PetscMalloc1(ev->csr.n + 1, &ev->csr.i));
  ev->csr.i[0] = 0;
  for (PetscInt r = 0; r < ev->csr.n; r++) {
    const PetscInt row = ev->perm[ev->ell.n + r];

    ev->csr.i[r + 1] = ev->csr.i[r] + EVCHYBRoundUp(csr->i[row + 1] - csr->i[row]);
  }
  ev->csr.nz = ev->pack ? 0 : ev->csr.i[ev->csr.n];
  ev->bytes  = (size_t)(ev->ell.nz + ev->csr.nz) * (sizeof(PetscInt) + sizeof(PetscScalar)) + (size_t)(ev->ell.n + ev->csr.n + ev->nlisted) * sizeof(PetscInt) + (size_t)(ev->ell.nb + ev->csr.n + 2) * sizeof(PetscCount) +
              (size_t)ev->ell.nb * sizeof(PetscInt) + (ev->pack ? ev->pack->bytes : 0);
  if (maxbytes && ev->bytes > (size_t)maxbytes) {
    PetscCall(Free(ev));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc2(ev->ell.nz, &ev->ell.j, ev->ell.nz, &ev->ell.as));
  PetscCall(PetscMalloc2(ev->csr.nz, &ev->csr.j, ev->csr.nz, &ev->csr.as));
  Fill(ev, csr, PETSC_TRUE);
  PetscCall(EVCHYBPlan(ev, ev->csr.i, &ev->csr.splitblk, &ev->csr.splitrow));
  *built = ev;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBRefresh_Host(void *data, const GallopCSR *csr)
{
  EVCHYB   *ev   = (EVCHYB *)data;
  PetscBool fits = PETSC_TRUE;

  PetscFunctionBegin;
  if (ev->pack) PetscCall(EVCHYBRefreshPack(&EVCHYBHost, csr, ev, &fits));
  if (fits) Fill(ev, csr, PETSC_FALSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of 32 rows, column by column: the innermost loop is what a compiler makes vectors of. Only a column block with padding looks for it. */
static inline void ColumnBlock(PetscInt len, const PetscInt *PETSC_RESTRICT j, const PetscScalar *PETSC_RESTRICT as, const PetscScalar *PETSC_RESTRICT x, PetscScalar *PETSC_RESTRICT sum)
{
  PetscInt k = 0;

  for (PetscInt r = 0; r < EVCHYB_BLOCK; r++) sum[r] = 0.0;
  for (; k < len && j[k * EVCHYB_BLOCK] >= 0; k++) {
    const PetscInt    *jk    = j + k * EVCHYB_BLOCK;
    const PetscScalar *ak    = as + k * EVCHYB_BLOCK;
    PetscInt           least = 0;

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

static PetscErrorCode EVCHYBApply_Host(void *data, const GallopProduct *p)
{
  const EVCHYB      *ev      = (const EVCHYB *)data;
  const SubELL      *ell     = &ev->ell;
  const SubCSR      *csr     = &ev->csr;
  const PetscBool    inplace = EVCHYBLeavesRows(ev), readsy = (PetscBool)(*p->beta != (PetscScalar)0.0);
  const PetscScalar  alpha = *p->alpha, beta = inplace && readsy ? (PetscScalar)1.0 : *p->beta; /* z = beta y for all rows comes first then */
  const PetscScalar *y = p->y;

  PetscFunctionBegin;
  if (inplace) y = p->z; /* the rows that are not listed */
  if (inplace) {
    if (!readsy) PetscCall(PetscArrayzero(p->z, ev->m));
    else if (p->y != p->z || *p->beta != (PetscScalar)1.0)
      for (PetscInt r = 0; r < ev->m; r++) p->z[r] = *p->beta * p->y[r];
  }
  for (PetscInt r = 0; r < ev->nlisted; r++) {
    const PetscInt row = ev->perm[ell->n + csr->n + r];

    p->z[row] = readsy ? beta * y[row] : 0.0;
  }
  if (ev->pack) PetscCall(GallopPackApply_Host(ev->pack, p));
  for (PetscInt b = 0; b < ell->nb; b++) {
    const PetscInt first = b * EVCHYB_BLOCK;
    PetscScalar    sum[EVCHYB_BLOCK];

    ColumnBlock(ell->clen[b], ell->j + ell->bnz[b], ell->as + ell->bnz[b], p->x, sum);
    if (ev->inorder) StoreBlock(NULL, alpha, sum, readsy, beta, y ? y + first : NULL, p->z + first);
    else StoreBlock(ev->perm + first, alpha, sum, readsy, beta, y, p->z);
  }
  for (PetscInt r = 0; r < (csr->nz ? csr->n : 0); r++) {
    const PetscInt row = ev->inorder ? ell->n + r : ev->perm[ell->n + r];
    PetscScalar    sum = 0.0;

    for (PetscCount k = csr->i[r]; k < csr->i[r + 1] && csr->j[k] >= 0; k++) sum = GallopMultiplyAdd(csr->as[k], p->x[csr->j[k]], sum); /* padding is at the end */
    if (!readsy) p->z[row] = alpha * sum;
    else p->z[row] = GallopMultiplyAdd(alpha, sum, beta * y[row]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork EVCHYBHost = {EVCHYBBuild_Host, EVCHYBRefresh_Host, EVCHYBApply_Host, EVCHYBDestroy_Host, NULL, NULL};

/* EVCHYBCopyToHost - A copy on the host of a format that was built at either place; EVCHYBDestroyHostCopy() frees it */
PetscErrorCode EVCHYBCopyToHost(const EVCHYB *ev, EVCHYB **copy)
{
  EVCHYB *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *ev;
  h->memtype = PETSC_MEMTYPE_HOST;
  PetscCall(PetscMalloc1(h->ell.n + h->csr.n + h->nlisted, &h->perm));
  PetscCall(PetscMalloc2(h->ell.nb + 1, &h->ell.bnz, h->ell.nb, &h->ell.clen));
  PetscCall(PetscMalloc2(h->ell.nz, &h->ell.j, h->ell.nz, &h->ell.as));
  PetscCall(PetscMalloc1(h->csr.n + 1, &h->csr.i));
  PetscCall(PetscMalloc2(h->csr.nz, &h->csr.j, h->csr.nz, &h->csr.as));
  PetscCall(PetscMalloc2(h->csr.nsplit + 1, &h->csr.splitblk, h->csr.nparts, &h->csr.splitrow));
  if (ev->pack) PetscCall(GallopPackCopyToHost(ev->pack, &h->pack));
  h->csr.partial = NULL;
  h->csr.arrived = NULL;
  {
    const struct {
      void       *to;
      const void *from;
      size_t      bytes;
    } arrays[] = {
      {h->perm,         ev->perm,         (size_t)(h->ell.n + h->csr.n + h->nlisted) * sizeof(PetscInt)},
      {h->ell.bnz,      ev->ell.bnz,      (size_t)(h->ell.nb + 1) * sizeof(PetscCount)                 },
      {h->ell.clen,     ev->ell.clen,     (size_t)h->ell.nb * sizeof(PetscInt)                         },
      {h->ell.j,        ev->ell.j,        (size_t)h->ell.nz * sizeof(PetscInt)                         },
      {h->ell.as,       ev->ell.as,       (size_t)h->ell.nz * sizeof(PetscScalar)                      },
      {h->csr.i,        ev->csr.i,        (size_t)(h->csr.n + 1) * sizeof(PetscCount)                  },
      {h->csr.j,        ev->csr.j,        (size_t)h->csr.nz * sizeof(PetscInt)                         },
      {h->csr.as,       ev->csr.as,       (size_t)h->csr.nz * sizeof(PetscScalar)                      },
      {h->csr.splitblk, ev->csr.splitblk, (size_t)(h->csr.nsplit + 1) * sizeof(PetscCount)             },
      {h->csr.splitrow, ev->csr.splitrow, (size_t)h->csr.nparts * sizeof(PetscInt)                     },
    };

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(arrays); k++) PetscCall(GallopCopyToHost(arrays[k].to, ev->memtype, arrays[k].from, arrays[k].bytes));
  }
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBDestroyHostCopy(EVCHYB **copy)
{
  PetscFunctionBegin;
  PetscCall(Free(*copy));
  *copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
