/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage: where the sorted rows are split, and what thread blocks do. Host and GPU share both. */

#include "../evchyb.h"

void EVCHYBPlainSplit(const EVCHYB *ev, const EVCHYBRows *rows, EVCHYBPlain *plain)
{
  const EVCHYBSplit split = EVCHYBSplitOf(ev->m, rows->nempty, rows->nlong);

  plain->byrow       = (PetscBool)(ev->options.byrow && ev->nz >= ev->options.byrow);
  plain->nlisted     = split.nlisted;
  plain->ell.nb      = split.nb;
  plain->ell.n       = split.nb * EVCHYB_BLOCK;
  plain->csr.nmerged = split.nmerged;
  plain->csr.n       = split.ncsr;
}

/* Threads per row: each has at most eight entries in the paper's Figure 1. Rows longer than the paper's SubELL takes have a warp at least, and more entries per thread where the GPU is busy without more threads. */
static PetscInt ThreadsPerRow(PetscCount len, PetscInt entries)
{
  const PetscBool shorter = (PetscBool)(len <= 4 * EVCHYB_BLOCK);
  PetscInt        tpr     = shorter ? 1 : EVCHYB_BLOCK;

  while (tpr < EVCHYB_THREADS && len > (shorter ? 8 : entries) * tpr) tpr *= 2;
  return tpr;
}

/* The order in which a GPU starts thread blocks is that of their numbers: what takes longest comes first */
static void LaunchPlan(EVCHYB *ev, EVCHYBPlain *plain)
{
  const EVCHYBMarks *csr = &plain->csr.marks, *ell = &plain->ell.marks;
  const PetscInt     perblock = EVCHYB_THREADS * 4;
  EVCHYBMarks        empty    = {0};

  ev->launch.n = 0;
  for (PetscInt k = csr->np - 1; k >= 0; k--) EVCHYBLaunchAdd(&ev->launch, csr, k);
  for (PetscInt k = ell->np - 1; k >= 0; k--) EVCHYBLaunchAdd(&ev->launch, ell, k);
  if (plain->nlisted) {
    EVCHYBMarksAdd(&empty, plain->nlisted, (plain->nlisted + perblock - 1) / perblock, EVCHYB_RANGE_EMPTY, 0);
    EVCHYBLaunchAdd(&ev->launch, &empty, 0);
  }
  /* measured, docs/development/evchyb.md */
  if (plain->csr.nz > plain->ell.nz) plain->shape = EVCHYB_SHAPE_DEEP;
  else if (plain->byrow) plain->shape = EVCHYB_SHAPE_LARGE;
  else plain->shape = plain->ell.nz <= 6 * (PetscCount)plain->ell.n && 8 * plain->csr.nz <= plain->ell.nz ? EVCHYB_SHAPE_SHORT : EVCHYB_SHAPE_DEEP;
}

/*
  EVCHYBPlainPlan - Distributes the thread blocks: rmark, gbmark and gpublks of both parts, and the rows that several compute

  Input Parameter:
. i - row pointer of SubCSR, on the host

  Note:
  The arrays of csr.parts are on the host afterwards.
*/
PetscErrorCode EVCHYBPlainPlan(EVCHYB *ev, EVCHYBPlain *plain, const PetscCount i[])
{
  const EVCHYBOptions *o            = &ev->options;
  SubELL              *ell          = &plain->ell;
  SubCSR              *csr          = &plain->csr;
  const PetscInt       warpsinblock = EVCHYB_THREADS / EVCHYB_BLOCK, processors = ev->processors;
  PetscInt             r, columns = o->columns, split = o->split, longest = o->split, entries = 8;

  PetscFunctionBegin;
  /* a matrix that would leave the GPU idle is cut finer, until every processor has EVCHYB_WARPS_WANTED warps or a thread has no more entries than it asks for at once */
  if (processors) {
    columns = PetscMin(columns, PetscMax(EVCHYB_ATONCE, (PetscInt)(ell->nz / EVCHYB_BLOCK / (processors * EVCHYB_WARPS_WANTED))));
    entries = PetscMax(8, (PetscInt)PetscMin(64, csr->nz / ((PetscCount)processors * EVCHYB_WARPS_WANTED * EVCHYB_BLOCK)));
    split   = PetscMin(split, PetscMax(4 * EVCHYB_THREADS, EVCHYBRoundUp((PetscInt)(csr->nz / (processors * EVCHYB_WARPS_WANTED / warpsinblock)))));
    longest = PetscMax(split, PetscMin(longest, EVCHYB_ATONCE * EVCHYB_THREADS)); /* what one thread block has in flight at once is not worth adding up partial sums */
  }
  csr->split = split;
  PetscCall(PetscMemzero(&ell->marks, sizeof(ell->marks)));
  for (int c = 0; c < EVCHYB_CLASSES; c++) {
    EVCHYBRangeKind kind  = EVCHYB_RANGE_ELL;
    PetscInt        warps = 1, rows = 1, perblock, blocks = ell->classes[c];

    if (plain->byrow) { /* in order of rows, lengths are mixed */
      if (c < EVCHYB_LONGCLASS) continue;
      if (c == EVCHYB_LONGCLASS)
        for (int k = 0; k < c; k++) blocks += ell->classes[k];
    }
    if (!blocks) continue;
    while (warps < warpsinblock && ((PetscInt)1 << c) > columns * warps && c > (plain->byrow ? EVCHYB_LONGCLASS : 0)) warps *= 2;
    /* rows half as long as the longest: two a thread, and so on */
    while (kind == EVCHYB_RANGE_ELL && warps == 1 && !plain->byrow && rows < o->rowsmax && ((PetscInt)2 << c) * rows <= ell->LCmax) rows *= 2;
    perblock = warpsinblock / warps * rows;
    if (warps > 1) kind = EVCHYB_RANGE_SHARED;
    EVCHYBMarksAdd(&ell->marks, blocks, (blocks + perblock - 1) / perblock, kind, warps > 1 ? warps : rows);
  }
  ell->gpublks = ell->marks.gbmark[ell->marks.np];

  PetscCall(PetscMemzero(&csr->marks, sizeof(csr->marks)));
  for (r = 0; r < csr->n && i[r + 1] - i[r] <= longest;) {
    PetscInt   next = r + 1, tpr;
    PetscCount most = i[r + 1] - i[r];

    if (r < csr->nmerged) { /* the rows merged from SubELL come in no order of length: one row block */
      for (; next < csr->nmerged; next++) most = PetscMax(most, i[next + 1] - i[next]);
      next = csr->nmerged;
      tpr  = ThreadsPerRow(most, entries);
    } else {
      tpr = ThreadsPerRow(most, entries);
      for (; next < csr->n && i[next + 1] - i[next] <= longest && ThreadsPerRow(i[next + 1] - i[next], entries) == tpr; next++) { }
    }
    EVCHYBMarksAdd(&csr->marks, next - r, ((PetscCount)(next - r) * tpr + EVCHYB_THREADS - 1) / EVCHYB_THREADS, EVCHYB_RANGE_CSR, tpr);
    r = next;
  }
  PetscCall(EVCHYBPartsPlan(csr->n - r, i + r, split, &csr->parts));
  /* a cluster adds up sooner than blocks that meet in memory, but all blocks of the launch then start by clusters */
  if (csr->parts.nsplit && ev->overlaps && i[csr->n] - i[csr->n - 1] <= EVCHYB_CLUSTER * EVCHYB_ATONCE * EVCHYB_THREADS && 2 * (i[csr->n] - i[r]) > ev->nz)
    EVCHYBMarksAdd(&csr->marks, csr->parts.nsplit, EVCHYB_CLUSTER * csr->parts.nsplit, EVCHYB_RANGE_CLUSTER, EVCHYB_CLUSTER);
  else if (csr->parts.nsplit) EVCHYBMarksAdd(&csr->marks, csr->parts.nsplit, csr->parts.nparts, EVCHYB_RANGE_SPLIT, split);
  csr->gpublks = csr->marks.gbmark[csr->marks.np];
  LaunchPlan(ev, plain);
  PetscFunctionReturn(PETSC_SUCCESS);
}
