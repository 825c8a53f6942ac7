/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: how a warp of a FASTLOAD product walks over the lines of its blocks */

#include "fastloaddevice.h"

/* What the kernels of products know of a FastLoad */
template <typename V, typename I>
struct FastLoadArrays {
  PetscInt             taskNum, pieceNum;
  PetscCount           blknz;
  const FastLoadTask  *tasks;
  const I             *blkHeight, *lineRow, *perm, *longRow, *longPtr, *longCol, *pieceRow, *pieceAt, *csrIdx;
  const unsigned char *blkLength, *blkClass, *rowIdx;
  const V             *value, *sortedX;
};

static inline FastLoadArrays<PetscScalar, PetscInt> FastLoadArraysOf(const FastLoad *fl)
{
  FastLoadArrays<PetscScalar, PetscInt> view = {};

  view.taskNum   = fl->taskNum;
  view.pieceNum  = fl->pieceNum;
  view.blknz     = fl->blknz;
  view.tasks     = fl->tasks;
  view.blkHeight = fl->blkHeight;
  view.lineRow   = fl->lineRow;
  view.perm      = fl->perm;
  view.longRow   = fl->longRow;
  view.longPtr   = fl->longPtr;
  view.longCol   = fl->longCol;
  view.pieceRow  = fl->pieceRow;
  view.pieceAt   = fl->pieceAt;
  view.csrIdx    = fl->csrIdx;
  view.blkLength = fl->blkLength;
  view.blkClass  = fl->blkClass;
  view.rowIdx    = fl->rowIdx;
  view.value     = fl->value;
  view.sortedX   = fl->sortedX;
  return view;
}

/* Where a block's entries, offsets and lines begin: as in a task, in few registers */
template <typename I>
struct BlockView {
  int length, kind;
  I   height, ptr, row, line;
};

template <typename I>
static __device__ __forceinline__ BlockView<I> FirstBlock(const FastLoadTask &task)
{
  return {task.length, task.kind, task.height, task.ptr, task.row, task.line};
}

/* Block b of a task, from the one before. The columns of a task's blocks end together. */
template <typename V, typename I>
static __device__ __forceinline__ void NextBlock(const FastLoadArrays<V, I> &fl, I b, BlockView<I> *block)
{
  const I entries = block->height * block->length;

  block->ptr += entries;
  block->line += block->height;
  block->row += (I)(FastLoadRowBytes(FASTLOAD_WIDTH(block->kind), entries) / FASTLOAD_ALIGN);
  block->length = fl.blkLength[b];
  block->kind   = fl.blkClass[b];
  block->height = fl.blkHeight[b];
}

template <typename V, typename I>
static __device__ __forceinline__ const unsigned char *Offsets(const FastLoadArrays<V, I> &fl, const BlockView<I> &block)
{
  return fl.rowIdx + (PetscCount)block.row * FASTLOAD_ALIGN;
}

/* In as few loads as can be */
static __device__ __forceinline__ FastLoadTask LoadTask(const FastLoadTask *tasks, PetscCount t)
{
  static_assert(sizeof(FastLoadTask) % sizeof(int4) == 0, "tasks are loaded 16 bytes at a time");
  union
  {
    FastLoadTask task;
    int4         part[sizeof(FastLoadTask) / sizeof(int4)];
  } u;

#pragma unroll
  for (size_t k = 0; k < sizeof(FastLoadTask) / sizeof(int4); k++) u.part[k] = __ldg(reinterpret_cast<const int4 *>(tasks + t) + k);
  return u.task;
}

/* Calls what() with the type of the rows of a block of 32 columns */
template <typename I, typename What>
static __device__ __forceinline__ void ByWidth(int kind, What what)
{
  switch (FASTLOAD_WIDTH(kind)) {
  case FASTLOAD_IMPLIED:
    what((void *)nullptr);
    break;
  case FASTLOAD_BYTE:
    what((unsigned char *)nullptr);
    break;
  case FASTLOAD_SHORT:
    what((unsigned short *)nullptr);
    break;
  default:
    what((I *)nullptr);
  }
}

/* The column of the matrix that the lane has in a task, 0 where none */
template <typename V, typename I>
static __device__ __forceinline__ I ColumnOf(const FastLoadArrays<V, I> &fl, const FastLoadTask &task, int lane)
{
  if (lane >= task.length) return I(0);
  return task.follow ? task.colidx + lane : fl.perm[task.colidx + lane];
}

/* The lane's entries of the next lines of a block of 32 columns: values, and rows as offsets from the lowest one of the line */
template <int Lines, typename V, typename I>
struct Entries {
  V value[Lines];
  I offset[Lines];

  /* Those from line on; W is how offsets are stored, void where they are implied */
  template <typename W>
  __device__ __forceinline__ void Load(const FastLoadArrays<V, I> &fl, const BlockView<I> &block, int lane, I line)
  {
    const I        at   = line * WarpSize + lane;
    const V *const from = fl.value + block.ptr + at;

#pragma unroll
    for (int u = 0; u < Lines; u++) {
      value[u]  = line + u < block.height ? GallopLoadOnce(from + u * WarpSize) : V(0);
      offset[u] = 0;
      if constexpr (!cuda::std::is_void_v<W>) offset[u] = line + u < block.height ? (I)GallopLoadOnce(reinterpret_cast<const W *>(Offsets(fl, block)) + at + u * WarpSize) : I(0);
    }
  }
};

/* Calls what(value, offset, low) for all lines of a block of 32 columns in turn, and ready() before, when the first have been asked for */
template <typename W, int Lines, typename V, typename I, typename Ready, typename What>
static __device__ __forceinline__ void WalkLines(const FastLoadArrays<V, I> &fl, const BlockView<I> &block, int lane, Ready ready, What what)
{
  constexpr int Most = WarpSize / Lines * Lines;
  I             low  = 0; /* lowest rows of lines, one in each lane */
  int           used = Most;

#pragma unroll 1
  for (I line = 0; line < block.height; line += Lines, used += Lines) {
    Entries<Lines, V, I> entries;

    if (used == Most) {
      low  = line + lane < block.height ? fl.lineRow[block.line + line + lane] : I(0);
      used = 0;
    }
    entries.template Load<W>(fl, block, lane, line);
    if (line == 0) ready();
#pragma unroll
    for (int u = 0; u < Lines; u++)
      if (line + u < block.height) what(entries.value[u], entries.offset[u], __shfl_sync(All, low, used + u));
  }
}

/* Calls what(entry, row) for the entries of a block of fewer columns. As many lines as lanes suffice for go at once: all entries of a lane are of its column. */
template <typename I>
struct Part {
  int length, lines, column;
  I   first; /* line of the lane */

  __device__ __forceinline__ Part(int length, I height, int lane) : length(length), lines(WarpSize / length), column(lane % length), first(lane / length < lines ? lane / length : height) { }
  template <typename What>
  __device__ __forceinline__ void Walk(int kind, I height, const I *lineRow, const unsigned char *rowIdx, What what) const
  {
#pragma unroll 2
    for (I line = first; line < height; line += lines) {
      const PetscCount at = (PetscCount)line * length;

      what(at + column, FastLoadRow(kind, lineRow[line], rowIdx, at, column));
    }
  }
};
