/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: the pieces of long rows */

#include <gallop/cudaimpl.h>
#include "longrows.h"

/* Entries [begin, end) of long row number row: a piece as GallopLongRowsPlan() cuts them, of most entries or fewer */
template <typename I>
struct GallopPiece {
  I row, begin, end;
};

template <typename I>
static __device__ __forceinline__ GallopPiece<I> GallopGetPiece(const I *pieceRow, const I *pieceAt, const I *longPtr, PetscInt piece, PetscInt most)
{
  const I row = pieceRow[piece], begin = pieceAt[piece], stop = longPtr[row + 1];

  return {row, begin, stop - begin < most ? stop : begin + (I)most};
}

/* A piece from CSR, where its row begins with entry first, by the threads of a thread block; columns too where they are wanted. value and col are of all long rows. */
static __device__ __forceinline__ void GallopCopyPiece(const GallopPiece<PetscInt> &p, const PetscInt *longPtr, PetscInt first, const PetscInt *j, const PetscScalar *a, PetscScalar *value, PetscInt *col, bool columns)
{
  const PetscInt by = first - longPtr[p.row];

  for (PetscCount k = (PetscCount)p.begin + threadIdx.x; k < p.end; k += blockDim.x) {
    value[k] = a[k + by];
    if (columns) col[k] = j[k + by];
  }
}
