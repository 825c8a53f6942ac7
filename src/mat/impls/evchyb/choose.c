/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB: plain or packed storage, and the order of packed rows */

#include "evchyb.h"
#include <gallop/deviceimpl.h>

/* EVCHYBTriesPacked - Whether packed storage is to be looked at, as far as that can be told without the lengths of rows */
PetscBool EVCHYBTriesPacked(const EVCHYB *ev, const GallopCSR *csr)
{
  const PetscCount mostlong = PetscMin((PetscCount)csr->m, csr->nz / ((PetscCount)ev->options.maxell + 1));

  if (ev->options.storage == EVCHYB_PLAIN || !EVCHYBPackIndicesFit(csr)) return PETSC_FALSE;
  if (ev->options.storage == EVCHYB_PACKED) return PETSC_TRUE;
  return (PetscBool)(ev->processors && csr->nz >= (PetscCount)EVCHYB_PACK_ENTRIES * ev->processors && csr->m / EVCHYB_PACK_ROWS + mostlong + csr->nz / EVCHYB_PIECE >= (PetscCount)EVCHYB_PACK_SLICES * ev->processors);
}

void EVCHYBPackGetTerms(const EVCHYB *ev, EVCHYBPackTerms *terms)
{
  terms->asked        = (PetscBool)(ev->options.storage == EVCHYB_PACKED);
  terms->sorts        = (PetscBool)(ev->options.window != 1);
  terms->longest      = ev->options.maxell;
  terms->slices       = EVCHYB_PACK_SLICES * ev->processors;
  terms->storedslices = EVCHYB_PACK_STORED_SLICES * ev->processors;
  terms->bytes        = (PetscLogDouble)sizeof(PetscScalar) + EVCHYB_PACK_BYTES;
  terms->storedbytes  = (PetscLogDouble)sizeof(PetscScalar) + EVCHYB_PACK_STORED_BYTES;
  terms->nz           = ev->nz;
  terms->uneven       = EVCHYB_PACK_UNEVEN;
  terms->lines        = ev->processors ? EVCHYB_PACK_SHARE * (PetscLogDouble)ev->nz / (EVCHYB_PACK_ROWS * EVCHYB_PACK_WARPS * (PetscLogDouble)ev->processors) : 0;
}

/*
  EVCHYBCutRows - Cuts the long rows into pieces of EVCHYB_PIECE entries

  Input Parameters:
+ csr  - the matrix
- rows - its rows

  Output Parameters:
+ order - its pieces, where csr is, for EVCHYBFreePieces()
- done  - false where the GPU has no room for them
*/
PetscErrorCode EVCHYBCutRows(const GallopCSR *csr, const EVCHYBRows *rows, EVCHYBPackOrder *order, PetscBool *done)
{
  const PetscInt *host_i;
  PetscInt       *piece, n = 0;

  PetscFunctionBegin;
  *done         = PETSC_TRUE;
  order->pieces = 0;
  if (!rows->nlong) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopCSRGetHostI(csr, &host_i));
  for (PetscInt r = 0; r < rows->nlong; r++) order->pieces += EVCHYBPackPiecesOf(host_i[rows->longrows[r] + 1] - host_i[rows->longrows[r]]);
  if (!order->pieces) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(2 * (PetscCount)order->pieces, &piece));
  for (PetscInt r = 0; r < rows->nlong; r++) {
    const PetscInt row = rows->longrows[r];

    for (PetscInt at = 0; at < host_i[row + 1] - host_i[row]; at += EVCHYB_PIECE) {
      piece[n]                   = row;
      piece[order->pieces + n++] = at;
    }
  }
  order->pieceRow = piece;
  if (PetscMemTypeCUDA(csr->memtype)) {
    const size_t bytes = 2 * (size_t)order->pieces * sizeof(*piece);
    void        *memory;

    PetscCall(GallopWorkspaceMalloc(bytes, &memory));
    *done = (PetscBool)(memory != NULL);
    if (memory) PetscCall(GallopDeviceCopyIn(memory, piece, bytes));
    PetscCall(PetscFree(piece));
    order->pieceRow = (const PetscInt *)memory;
  }
  order->pieceAt = order->pieceRow ? order->pieceRow + order->pieces : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBFreePieces(const GallopCSR *csr, EVCHYBPackOrder *order)
{
  PetscFunctionBegin;
  if (PetscMemTypeCUDA(csr->memtype)) PetscCall(GallopWorkspaceFree((void *)order->pieceRow));
  else PetscCall(PetscFree(order->pieceRow));
  order->pieceRow = order->pieceAt = NULL;
  order->pieces                    = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lengths of rows that the host has sorted; that of the longest short one only where packed storage is not asked for, which needs none */
static PetscErrorCode GetLengths(const GallopCSR *csr, const EVCHYBRows *rows, const EVCHYBPackTerms *terms, EVCHYBPackLengths *lengths)
{
  const PetscInt *host_i;

  PetscFunctionBegin;
  *lengths = (EVCHYBPackLengths){.nempty = rows->nempty, .nlong = rows->nlong};
  PetscCall(GallopCSRGetHostI(csr, &host_i));
  for (PetscInt r = 0; r < csr->m && !terms->asked; r++) {
    const PetscInt len = host_i[r + 1] - host_i[r];

    if (len <= terms->longest) lengths->longest = PetscMax(lengths->longest, len);
  }
  for (PetscInt k = 0; k < rows->nlong; k++) {
    const PetscInt len = host_i[rows->longrows[k] + 1] - host_i[rows->longrows[k]];

    lengths->entries += len;
    lengths->pieces += EVCHYBPackPiecesOf(len);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Rows stay in the order of the matrix unless sorted ones take a tenth less. They are not even sorted where they cannot, or where the matrix is hardly packed then. cost and pieces: what the samples of slices and of pieces take. *fits is false
  where there is no room to sort.
*/
static PetscErrorCode ChooseOrder(const EVCHYB *ev, const EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackTerms *terms, const EVCHYBPackLengths *lengths, const EVCHYBPackSurvey *survey, EVCHYBRows *rows, EVCHYBPackOrder *order, EVCHYBPackCost *cost, EVCHYBPackCost *pieces, PetscBool *fits)
{
  const PetscBool known  = (PetscBool)(survey && survey->ndict == pack->ndict); /* with another dictionary, or without, slices take something else */
  EVCHYBPackOrder sorted = {.num = rows->nempty + rows->nshort, .longest = ev->options.maxell};
  EVCHYBPackCost  costs[EVCHYB_PACK_COSTS];

  PetscFunctionBegin;
  if (known) PetscCall(PetscArraycpy(costs, survey->cost, EVCHYB_PACK_COSTS));
  else PetscCall(EVCHYBPackMeasure(pack, csr, order, costs));
  order->stride = EVCHYBPackPickStride(costs);
  *cost         = costs[order->stride - 1];
  *pieces       = costs[EVCHYB_PACK_STRIDES];
  if (!EVCHYBPackSortingMayPay(terms, csr->m, lengths, cost) || !EVCHYBPackSortingMayDecide(terms, csr->m, lengths, cost, pieces)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(EVCHYBRowsNeed(ev, csr, rows, fits));
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  sorted.perm = rows->all;
  PetscCall(EVCHYBPackMeasure(pack, csr, &sorted, costs));
  if ((PetscLogDouble)costs[0].bytes * (PetscLogDouble)cost->entries < 0.9 * (PetscLogDouble)cost->bytes * (PetscLogDouble)costs[0].entries) {
    order->perm = sorted.perm;
    order->num  = sorted.num;
    *cost       = costs[0];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBChoose - Plain or packed storage, by the options or by a sample of what entries would take packed

  Input Parameters:
+ ev     - what is known of the matrix
. csr    - its arrays
. survey - what the GPU has found out, whose memory is freed as soon as it is of no more use; NULL on the host, and where the GPU had no room
- rows   - in the order of rows.h, or counted: they are sorted where that is needed

  Output Parameter:
. choice - a pack with its dictionary, which EVCHYBPackedBuild() completes or destroys, and the order of its rows; no pack for plain storage
*/
PetscErrorCode EVCHYBChoose(const EVCHYB *ev, const GallopCSR *csr, EVCHYBPackSurvey *survey, EVCHYBRows *rows, EVCHYBChoice *choice)
{
  EVCHYBPackOrder   order = {.num = csr->m, .longest = ev->options.maxell, .piece = EVCHYB_PACK_SAMPLED};
  EVCHYBPackCost    cost = {0}, costofpieces = {0};
  EVCHYBPackLengths lengths;
  EVCHYBPackTerms   terms;
  PetscBool         done = PETSC_TRUE;

  PetscFunctionBegin;
  *choice = (EVCHYBChoice){.survey = survey, .scattered = PETSC_TRUE};
  if (!EVCHYBTriesPacked(ev, csr) || (PetscMemTypeCUDA(csr->memtype) && !survey)) PetscFunctionReturn(PETSC_SUCCESS);
  EVCHYBPackGetTerms(ev, &terms);
  if (survey) lengths = survey->rows;
  else PetscCall(GetLengths(csr, rows, &terms, &lengths));
  if (EVCHYBPackMayPay(&terms, csr->m, &lengths)) PetscCall(EVCHYBPackBegin(csr, survey, &choice->pack));
#if PetscDefined(HAVE_CUDA)
  if (survey && (!choice->pack || !survey->stride)) PetscCall(EVCHYBPackSurveyFree_Device(survey));
#endif
  if (!choice->pack) PetscFunctionReturn(PETSC_SUCCESS);
  if (!terms.asked && rows->nlong) order.looks = EVCHYB_PACK_PIECE_LOOKS;
  PetscCall(ChooseOrder(ev, choice->pack, csr, &terms, &lengths, survey, rows, &order, &cost, &costofpieces, &done));
  done              = (PetscBool)(done && EVCHYBPackPays(&terms, csr->m, &lengths, &cost, &costofpieces));
  choice->sorted    = (PetscBool)(order.perm != NULL);
  choice->scattered = (PetscBool)(10 * (cost.columns + cost.saved) >= 19 * cost.entries);
  choice->stride    = order.stride;
  if (done && rows->nlong) PetscCall(EVCHYBLongRowsNeed(ev, csr, rows, &done));
  if (!done) PetscCall(EVCHYBPackDestroy(&choice->pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}
