/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For TiledSpMM's .cu files that build arrays: searches, memory, and rows that are cut into pieces */

#include "tiledspmmdevice.h"

static constexpr int Threads = 256; /* of a thread block, where a kernel needs no other number */

/* Arrays of a kernel that are in no other of its arguments: of those that are only read the compiler sees that nothing writes them */
template <typename T>
using In = const T *__restrict__;
template <typename T>
using Out = T *__restrict__;

/* ---- searches ---- */

/* The first of sorted numbers array[begin, end) that is not less */
template <typename Array, typename T>
static __device__ __forceinline__ PetscCount LowerBound(const Array &array, PetscCount begin, PetscCount end, T value)
{
  while (begin < end) {
    const PetscCount mid = begin + (end - begin) / 2;

    if (array[mid] < value) begin = mid + 1;
    else end = mid;
  }
  return begin;
}

/* The last of 0 to last where what(k), which does not decrease, is not above limit; what(0) is not */
template <typename What>
static __device__ __forceinline__ PetscInt LastNotAbove(PetscInt last, PetscCount limit, What what)
{
  PetscInt lo = 0, hi = last;

  while (lo < hi) {
    const PetscInt mid = hi - (hi - lo) / 2;

    if (what(mid) <= limit) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/* ---- memory ---- */

/* One allocation by GallopDeviceMalloc() or GallopWorkspaceMalloc() for what take(carver) takes, which is called once to measure and once to hand out. Where there is no room
   *memory and the arrays are NULL. */
template <typename Take>
static PetscErrorCode Allocate(PetscErrorCode (*get)(size_t, void **), Take take, void **memory)
{
  GallopCarver measure(NULL);

  PetscFunctionBegin;
  take(measure);
  PetscCall((*get)(measure.Bytes(), memory));
  if (*memory) {
    GallopCarver carver(*memory);

    take(carver);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for the arrays of one of TiledSpMM's lists, which are kept: *done tells whether there was room */
#define TILEDSPMM_TAKE(array, number) carver.Take(t->array, number);
#define TILEDSPMM_ALLOCATE(name, LIST) \
  static PetscErrorCode name(TiledSpMM *t, PetscBool *done) \
  { \
    void *memory; \
\
    PetscFunctionBegin; \
    PetscCall(Allocate( \
      GallopDeviceMalloc, [&](GallopCarver &carver) { LIST(t, TILEDSPMM_TAKE) }, &memory)); \
    *done = (PetscBool)(memory != NULL); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

/* Whether the structure, of which all sizes are known, may take as much memory as it does. Counts its bytes. */
static inline bool FitsMemory(TiledSpMM *t, PetscCount maxbytes)
{
  t->bytes = TiledSpMMBytes(t);
  return !maxbytes || t->bytes <= (size_t)maxbytes;
}

/* ---- pieces: segments of a row, or units of eight rows ---- */

/* Of some rows: pieces, rows of several pieces, with few and with many of them, and the partial sums of these */
struct Pieces {
  PetscCount num, few, many, slots;
};

struct PiecesAdd {
  __host__ __device__ Pieces operator()(const Pieces &a, const Pieces &b) const { return {a.num + b.num, a.few + b.few, a.many + b.many, a.slots + b.slots}; }
};

/* Of rows that are cut into num pieces each, at the same places */
static __host__ __device__ __forceinline__ Pieces PiecesOf(PetscCount num, PetscCount rows)
{
  return {num, num > 1 && num <= TILEDSPMM_FEW ? rows : 0, num > TILEDSPMM_FEW ? rows : 0, num > 1 ? num * rows : 0};
}

static inline void SetSplits(TiledSpMM *t, const Pieces &all)
{
  t->nsplit = all.few + all.many;
  t->nmany  = all.many;
  t->nslots = all.slots;
}

/* The arrays TILEDSPMM_SPLITS, of rows of several pieces */
struct SplitRows {
  PetscCount nsplit;
  PetscInt  *row, *ptr, *num;

  explicit SplitRows(const TiledSpMM *t) : nsplit(t->nsplit), row(t->splitrow), ptr(t->splitptr), num(t->splitnum) { }

  /* Number r, which is row, of the rows that are cut as own says, with the pieces of rows before: those with many pieces come from the end on */
  __device__ __forceinline__ void Set(const Pieces &own, const Pieces &before, PetscCount r, PetscInt which) const
  {
    const PetscCount at = own.few ? before.few + r : nsplit - 1 - (before.many + r);

    row[at] = which;
    ptr[at] = (PetscInt)(before.slots + r * own.num);
    num[at] = (PetscInt)own.num;
  }
};
