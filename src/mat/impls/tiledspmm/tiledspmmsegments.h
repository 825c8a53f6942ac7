/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files: the arrays of segments as the cached and the transposed kernel have them */

#include "tiledspmmproduct.h"

template <typename V, typename I>
struct SegmentsView {
  PetscCount          num;
  const PetscCount   *slicedispl; /* the cached kernel's */
  const I            *ptr, *row;  /* row is NULL where each row is one segment */
  const GallopColumn *col;
  const V            *value;
};

static inline SegmentsView<PetscScalar, PetscInt> SegmentsOf(const TiledSpMM *t)
{
  return {t->nseg, t->slicedispl, t->segptr, t->segment ? t->segrow : NULL, t->col, t->value};
}
