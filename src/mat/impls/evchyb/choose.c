/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB: plain or packed storage, and the order of packed rows */

#include "evchyb.h"
#include <gallop/deviceimpl.h>

/* EVCHYBTriesPacked - Whether packed storage is to be looked at. Where most rows are empty, plain storage leaves them alone, and packed slices have them all. */
PetscBool EVCHYBTriesPacked(const EVCHYB *ev, const GallopCSR *csr, PetscInt nempty)
{
  if (ev->options.storage == EVCHYB_PLAIN || !EVCHYBPackIndicesFit(csr)) return PETSC_FALSE;
  if (ev->options.storage == EVCHYB_PACKED) return PETSC_TRUE;
  return (PetscBool)(ev->processors && csr->nz >= EVCHYB_PACK_ENTRIES * ev->processors && nempty <= csr->m / 2);
}

/* Bytes of n entries by a sample of them; as many as in CSR where it has none */
static PetscLogDouble BytesBySample(const EVCHYBPackCost *cost, PetscLogDouble n)
{
  const PetscLogDouble csr = sizeof(PetscScalar) + sizeof(int32_t);

  return n * (cost->entries ? (PetscLogDouble)(cost->bytes - cost->saved) / (PetscLogDouble)cost->entries : csr);
}

static PetscInt PiecesOf(PetscCount len)
{
  return (PetscInt)((len + EVCHYB_PIECE - 1) / EVCHYB_PIECE);
}

/*
  EVCHYBCutRows - Cuts the long rows into pieces of EVCHYB_PIECE entries

  Input Parameters:
+ csr   - the matrix
. rows  - its rows
- every - 1 for all pieces, n for every n-th of them, which are a sample

  Output Parameters:
+ order - its pieces, where csr is, for EVCHYBFreePieces()
- done  - false where the GPU has no room for them
*/
PetscErrorCode EVCHYBCutRows(const GallopCSR *csr, const EVCHYBRows *rows, PetscInt every, EVCHYBPackOrder *order, PetscBool *done)
{
  const PetscInt *host_i;
  PetscInt       *piece, all = 0, k = 0, n = 0;

  PetscFunctionBegin;
  *done         = PETSC_TRUE;
  order->pieces = 0;
  if (!rows->nlong) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopCSRGetHostI(csr, &host_i));
  for (PetscInt r = 0; r < rows->nlong; r++) all += PiecesOf(host_i[rows->longrows[r] + 1] - host_i[rows->longrows[r]]);
  order->pieces = (all + every - 1) / every;
  if (!order->pieces) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(2 * (PetscCount)order->pieces, &piece));
  for (PetscInt r = 0; r < rows->nlong; r++) {
    const PetscInt row = rows->longrows[r];

    for (PetscInt at = 0; at < host_i[row + 1] - host_i[row]; at += EVCHYB_PIECE) {
      if (k++ % every) continue;
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

/*
  Rows stay in the order of the matrix, which reads and writes vectors best, unless sorted rows take a tenth less. They are not even sorted where they cannot. cost and pieces: what the samples of
  slices and of pieces take. *fits is false where there is no room to sort.
*/
static PetscErrorCode ChooseOrder(const EVCHYB *ev, const EVCHYBPack *pack, const GallopCSR *csr, EVCHYBRows *rows, EVCHYBPackOrder *order, EVCHYBPackCost *cost, EVCHYBPackCost *pieces, PetscBool *fits)
{
  EVCHYBPackOrder sorted = {.num = rows->nempty + rows->nshort, .longest = ev->options.maxell};
  EVCHYBPackCost  costs[EVCHYB_PACK_COSTS];

  PetscFunctionBegin;
  PetscCall(EVCHYBPackMeasure(pack, csr, order, costs));
  order->stride = EVCHYBPackPickStride(costs);
  *cost         = costs[order->stride - 1];
  *pieces       = costs[EVCHYB_PACK_STRIDES];
  if (ev->options.window == 1 || !sorted.num || (PetscLogDouble)cost->least >= 0.9 * (PetscLogDouble)cost->bytes) PetscFunctionReturn(PETSC_SUCCESS);
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
+ ev   - what is known of the matrix
. csr  - its arrays
- rows - in the order of rows.h, or counted: they are sorted where that is needed

  Output Parameter:
. choice - a pack with its dictionary, which EVCHYBPackedBuild() completes or destroys, and the order of its rows; no pack for plain storage
*/
PetscErrorCode EVCHYBChoose(const EVCHYB *ev, const GallopCSR *csr, EVCHYBRows *rows, EVCHYBChoice *choice)
{
  const EVCHYBOptions *o     = &ev->options;
  const PetscBool      asked = (PetscBool)(o->storage == EVCHYB_PACKED);
  EVCHYBPackOrder      order = {.num = csr->m, .longest = o->maxell, .piece = EVCHYB_SAMPLED};
  EVCHYBPackCost       cost = {0}, costofpieces = {0};
  PetscBool            done   = PETSC_TRUE;
  PetscLogDouble       nlong  = 0;
  const PetscInt      *host_i = NULL;
  PetscInt             pieces = 0, slices; /* with pieces: units of work for warps and thread blocks */

  PetscFunctionBegin;
  *choice = (EVCHYBChoice){.pack = NULL};
  if (!EVCHYBTriesPacked(ev, csr, rows->nempty)) PetscFunctionReturn(PETSC_SUCCESS);
  if (rows->nlong) PetscCall(EVCHYBRowsNeed(ev, csr, rows, &done));
  if (!done) PetscFunctionReturn(PETSC_SUCCESS);
  if (rows->nlong) PetscCall(GallopCSRGetHostI(csr, &host_i));
  for (PetscInt k = 0; k < rows->nlong; k++) {
    const PetscInt len = host_i[rows->longrows[k] + 1] - host_i[rows->longrows[k]];

    nlong += (PetscLogDouble)len;
    pieces += PiecesOf(len);
  }
  slices = (csr->m - rows->nlong) / EVCHYB_PACK_ROWS + pieces;
  if (!asked && slices < EVCHYB_PACK_SLICES * ev->processors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(EVCHYBPackBegin(csr, &choice->pack));
  if (!choice->pack) PetscFunctionReturn(PETSC_SUCCESS);
  if (!asked) PetscCall(EVCHYBCutRows(csr, rows, PetscMax(1, (pieces + EVCHYB_SAMPLE - 1) / EVCHYB_SAMPLE), &order, &done));
  if (done) PetscCall(ChooseOrder(ev, choice->pack, csr, rows, &order, &cost, &costofpieces, &done));
  PetscCall(EVCHYBFreePieces(csr, &order));
  if (done && !asked) { /* packed storage has to be small */
    const PetscLogDouble most = (PetscLogDouble)sizeof(PetscScalar) + (slices >= EVCHYB_PACK_STORED_SLICES * ev->processors ? EVCHYB_PACK_STORED_BYTES : EVCHYB_PACK_BYTES);

    done = (PetscBool)(BytesBySample(&cost, (PetscLogDouble)csr->nz - nlong) + BytesBySample(&costofpieces, nlong) <= most * (PetscLogDouble)csr->nz);
  }
  choice->sorted = (PetscBool)(order.perm != NULL);
  choice->stride = order.stride;
  if (!done) PetscCall(EVCHYBPackDestroy(&choice->pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}
