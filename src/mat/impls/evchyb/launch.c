/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB: ranges of thread blocks, and rows that several of them compute */

#include "launch.h"
#include <gallop/deviceimpl.h>

void EVCHYBMarksAdd(EVCHYBMarks *marks, PetscInt rows, PetscCount blocks, EVCHYBRangeKind kind, PetscInt count)
{
  const PetscInt k = marks->np++;

  marks->rmark[k + 1]  = marks->rmark[k] + rows;
  marks->gbmark[k + 1] = marks->gbmark[k] + blocks;
  marks->kind[k]       = kind;
  marks->count[k]      = count;
}

void EVCHYBLaunchAdd(EVCHYBLaunch *launch, const EVCHYBMarks *marks, PetscInt k)
{
  EVCHYBRange *range = &launch->range[launch->n];

  range->begin = launch->n ? launch->range[launch->n - 1].next : 0;
  range->next  = range->begin + (unsigned int)(marks->gbmark[k + 1] - marks->gbmark[k]);
  range->first = marks->rmark[k];
  range->end   = marks->rmark[k + 1];
  range->kind  = (short)marks->kind[k];
  range->count = (short)marks->count[k];
  launch->n++;
}

/*
  EVCHYBPartsPlan - Shares rows out among thread blocks

  Input Parameters:
+ nsplit - rows
. i      - where the entries of each begin, [nsplit + 1]
- split  - entries for a thread block

  Output Parameter:
. parts - its arrays are on the host; EVCHYBPartsFree() frees them
*/
PetscErrorCode EVCHYBPartsPlan(PetscInt nsplit, const PetscCount i[], PetscInt split, EVCHYBParts *parts)
{
  PetscFunctionBegin;
  *parts = (EVCHYBParts){.nsplit = nsplit};
  for (PetscInt b = 0; b < nsplit; b++) parts->nparts += (i[b + 1] - i[b] + split - 1) / split;
  PetscCall(PetscMalloc1(nsplit + 1, &parts->splitblk));
  PetscCall(PetscMalloc1(parts->nparts, &parts->splitrow));
  parts->splitblk[0] = 0;
  for (PetscInt b = 0; b < nsplit; b++) {
    parts->splitblk[b + 1] = parts->splitblk[b] + (i[b + 1] - i[b] + split - 1) / split;
    for (PetscCount k = parts->splitblk[b]; k < parts->splitblk[b + 1]; k++) parts->splitrow[k] = b;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPartsFree(EVCHYBParts *parts)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(parts->splitblk));
  PetscCall(PetscFree(parts->splitrow));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPartsCopyToHost - A copy on the host, for EVCHYBPartsFree(), without what belongs to products on the GPU */
PetscErrorCode EVCHYBPartsCopyToHost(const EVCHYBParts *parts, PetscMemType memtype, EVCHYBParts *copy)
{
  PetscFunctionBegin;
  *copy = (EVCHYBParts){.nsplit = parts->nsplit, .nparts = parts->nparts};
  PetscCall(PetscMalloc1(parts->nsplit + 1, &copy->splitblk));
  PetscCall(PetscMalloc1(parts->nparts, &copy->splitrow));
  copy->splitblk[0] = 0;
  if (!parts->nsplit) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopCopyToHost(copy->splitblk, memtype, parts->splitblk, (size_t)(parts->nsplit + 1) * sizeof(*copy->splitblk)));
  PetscCall(GallopCopyToHost(copy->splitrow, memtype, parts->splitrow, (size_t)parts->nparts * sizeof(*copy->splitrow)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
