/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP: what the paper shows of the format, from a copy on the host */

#include "hbp.h"

/* HBPGetAddSign - The paper's add_sign of each entry: how far behind it the next one of its row is stored, -1 for the last one in the block. Each segment must have one lane. */
PetscErrorCode HBPGetAddSign(const HBP *h, PetscInt add_sign[])
{
  PetscFunctionBegin;
  for (PetscInt g = 0; g < h->groupNum; g++) {
    const PetscInt count = h->group[g + 1].seg - h->group[g].seg;
    PetscInt       live = count, ptr = h->group[g].begin_ptr;

    for (PetscInt k = 0; ptr < h->group[g + 1].begin_ptr; k++) {
      for (PetscInt l = 0; l < count; l++) { /* each row that ends before it in this step has no entry in the next */
        const PetscInt last = HBPLength(h->output_hash, h->nnz_perrow, h->group[g].seg + l) - 1;

        if (last == k) live--;
        if (last >= k) add_sign[ptr++] = last == k ? -1 : live;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the standard deviations of the n lengths within each warp, and counts the warps */
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

/* HBPGetDeviations - Means over warps of the standard deviation of segments' lengths: with the segments of a block in order of rows, and by hash (the paper's Figure 6). h is on the host. */
PetscErrorCode HBPGetDeviations(const HBP *h, PetscReal *byrow, PetscReal *byhash)
{
  PetscCount warps = 0;
  PetscInt   row[HBP_MAX_ROWS], len[HBP_MAX_ROWS];

  PetscFunctionBegin;
  *byrow = *byhash = 0.0;
  for (PetscInt cb = 0; cb < h->colBlocks; cb++) {
    for (PetscInt g = h->colGroup[cb], end; g < h->colGroup[cb + 1]; g = end) { /* groups of a block */
      PetscInt n;

      for (end = g + 1; end < h->colGroup[cb + 1] && HBPInfoRowBlock(h->group[end].info) == HBPInfoRowBlock(h->group[g].info);) end++;
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
