/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: what the plan of CSROVERLAP's copies from the host, and the copies, know of each other */

#include "csroverlapdevice.h"

static constexpr int Depth = 3; /* buffers of a streamed matrix */

struct _CSROverlapTransfer {
  PetscInt            num;  /* big batches */
  PetscCount          size; /* entries of one, or of the largest of a resident matrix */
  CSROverlapRange    *ranges;
  PetscCount         *from, *to;    /* [num] the entries that are copied; of a resident matrix, whose columns come at once, the values */
  const GallopColumn *host_columns; /* what is copied: the matrix's own arrays, or these; */
  const PetscInt     *wide_columns; /* NULL, or the matrix's own in place of them, which have more bytes */
  const PetscScalar  *host_values;
  void               *columns; /* where both are in pinned memory, its beginning */
  PetscScalar        *values;
  size_t              pinned_bytes;
  const PetscScalar  *newer;           /* the matrix's values, to be put into values before they are copied */
  size_t             *packed;          /* where in columns those of each big batch of a streamed matrix begin, or of a resident one, and end; NULL where they are not packed */
  PetscBool           pinned;          /* columns and values are pinned */
  PetscBool           together;        /* and come in one copy: they lie there as on the GPU */
  PetscBool           pending_columns; /* not on the GPU yet */
  PetscBool           pending_values;
  PetscCount          capacity;       /* entries of a buffer of a streamed matrix */
  GallopColumn       *buffer_columns; /* [Depth * capacity] */
  PetscScalar        *buffer_values;
  cudaStream_t        side;
  cudaEvent_t         copied;                    /* on PETSc's stream, behind the copies so far */
  cudaEvent_t         unpacked, computed[Depth]; /* on the side stream */
};

static inline PetscBool Streamed(const CSROverlap *ov)
{
  return (PetscBool)!ov->values;
}

/* From columns to values of a resident matrix, which are in one allocation on the GPU, in bytes */
static inline size_t ValuesPlace(const CSROverlap *ov)
{
  return (size_t)((const char *)ov->values - (const char *)ov->column_indices);
}

/* Entries of which columns are copied at a time */
static inline void ColumnsOf(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g, PetscCount *from, PetscCount *to)
{
  *from = Streamed(ov) ? t->from[g] : 0;
  *to   = Streamed(ov) ? t->to[g] : ov->nz;
}

/* Where packed columns of a big batch come to, in bytes from the place of its values: to the end of that place, since values come later */
static inline size_t PackedPlace(const CSROverlap *ov, const CSROverlapTransfer *t, PetscInt g)
{
  return ((size_t)(Streamed(ov) ? t->capacity : ov->nz) * sizeof(PetscScalar) - (t->packed[g + 1] - t->packed[g])) / CSROVERLAP_PACK_UNIT * CSROVERLAP_PACK_UNIT;
}
