/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How a warp reads the rows of a slice, two a lane, or the lines of a piece: by shared memory */

#include <cuda_pipeline.h>
#include "packedkernels.cuh"
#include "packedplan.h"

static constexpr int Threads = 128, Half = WarpSize;
static constexpr int Together = 2; /* lines whose values are stored at once */
static_assert(EVCHYB_PACK_ROWS == 2 * WarpSize, "a lane has two rows of a slice");

static __device__ __forceinline__ PetscCount WarpOfGrid()
{
  return (blockIdx.x * (PetscCount)Threads + threadIdx.x) / WarpSize;
}

/* ---------------------------------------------------------------- what a slice will take */

/* No number that is compared is below -Bias: the least is column 0 in a slice's last row, less what columns grow by from the first row to the last */
static constexpr int Bias = EVCHYB_PACK_STRIDES * EVCHYB_PACK_ROWS;

/* Over the warp, of numbers from -Bias on */
static __device__ __forceinline__ int WarpMin(int value)
{
  return (int)GallopWarpMin((unsigned int)(value + Bias)) - Bias;
}

static __device__ __forceinline__ int WarpMax(int value)
{
  return (int)GallopWarpMax((unsigned int)(value + Bias)) - Bias;
}

static constexpr int None = PETSC_INT32_MAX - Bias; /* more than any number here */

static __device__ __forceinline__ int RowInSlice(int h)
{
  return (int)(threadIdx.x % WarpSize) + h * Half;
}

static __device__ __forceinline__ unsigned char *PlaceOf(unsigned char *array, int64_t unit)
{
  return array + unit * EVCHYB_PACK_UNIT;
}

/* Waits until what the lanes of a warp have asked for is in shared memory, and visible to all of them */
static __device__ __forceinline__ void WaitForCopies()
{
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
}

/* Asks for entries that follow each other */
template <typename T>
static __device__ __forceinline__ void CopyPiece(const T *from, int entries, T *room)
{
  constexpr int AtOnce = 8;
  const int     lane   = threadIdx.x % WarpSize;

  from += lane; /* here, so that what is added below are constants of the instructions */
  room += lane;
#pragma unroll 1
  for (int left = entries - lane; left > 0; left -= AtOnce * WarpSize, from += AtOnce * WarpSize, room += AtOnce * WarpSize) {
#pragma unroll
    for (int u = 0; u < AtOnce; u++)
      if (u * WarpSize < left) __pipeline_memcpy_async(room + u * WarpSize, from + u * WarpSize, sizeof(T));
  }
}

/*
  The next entries of a warp's 64 rows, BytesARow of each row, in shared memory: neighbouring lanes read what stands side by side. Lanes that read their own rows would want 64 lines of L1 at once.
*/
template <typename T, int BytesARow>
struct Window {
  static constexpr int Size = BytesARow / (int)sizeof(T), Stride = Size + 1;                       /* odd: the same entries of rows are in different banks */
  static constexpr int Entries = EVCHYB_PACK_ROWS * Stride, Bytes = Entries * (int)sizeof(T) + 16; /* and what a row that has none left reads */
  static_assert(EVCHYB_PACK_CHUNK % Size == 0, "a chunk of lines begins with entries of its own");
  static_assert(Size % Together == 0, "lines that are dealt with at once are read at once");

  const T *array;
  T       *room;
  PetscInt last;             /* entry of the array */
  PetscInt end[2], shift[2]; /* an entry less where it is in the room */

  __device__ __forceinline__ Window(const T *array, PetscInt num, const PetscInt end[2], unsigned char *room) : array(array), room(reinterpret_cast<T *>(room)), last(num - 1), end{end[0], end[1]} { }

  template <int Each>
  __device__ __forceinline__ void Read(const PetscInt next[2], int left)
  {
    const int lane = threadIdx.x % WarpSize, entry = lane % Each;

#pragma unroll
    for (int h = 0; h < 2; h++) {
      const PetscInt own = next[h] < end[h] ? next[h] : -1;

#pragma unroll 8
      for (int part = 0; part < Each; part++) {
        const int      row   = part * (WarpSize / Each) + lane / Each;
        const PetscInt first = __shfl_sync(0xffffffffu, own, row);

        if (entry < left && first >= 0) __pipeline_memcpy_async(room + (row + h * Half) * Stride + entry, array + first + PetscMin((PetscInt)entry, last - first), sizeof(T));
      }
      shift[h] = next[h] - RowInSlice(h) * Stride;
    }
  }

  /* Before line k: the lane's rows go on at next, and take at most one entry in each line. Returns how many entries the longest row has left, where it reads. */
  __device__ __forceinline__ int Move(int k, const PetscInt next[2])
  {
    if (k % Size) return 0;
    const int left = WarpMax((int)PetscMax(end[0] - next[0], end[1] - next[1]));

    __syncwarp();
    if (left > Size / 2) Read<Size>(next, left);
    else Read<Size / 2>(next, left);
    WaitForCopies();
    return left;
  }

  __device__ __forceinline__ T At(int h, PetscInt next) const
  {
    return room[(int)(next - shift[h])];
  }
};

using Columns = Window<PetscInt, 64>;

/* The next lines of a piece, Bytes of them, in shared memory: a warp that goes through a row alone waits once for all of them */
template <typename T>
struct Lines {
  static constexpr int Bytes = 4096, AtOnce = Bytes / (EVCHYB_PACK_ROWS * (int)sizeof(T));
  static_assert(AtOnce % Together == 0, "lines that are dealt with at once are read at once");

  const T *array; /* from the piece's first entry on */
  T       *room;
  int      entries;

  __device__ __forceinline__ Lines(const T *array, int64_t first, int64_t entries, unsigned char *room) : array(array + first), room(reinterpret_cast<T *>(room)), entries((int)entries) { }

  /* Before line k */
  __device__ __forceinline__ void Move(int k)
  {
    const int from = k * EVCHYB_PACK_ROWS;

    if (k % AtOnce) return;
    __syncwarp();
    CopyPiece(array + from, min(AtOnce * EVCHYB_PACK_ROWS, entries - from), room);
    WaitForCopies();
  }

  __device__ __forceinline__ bool Has(int k, int h) const { return RowInSlice(h) < EVCHYBPackInLine(entries, k); }
  __device__ __forceinline__ T    Take(int k, int h) const { return room[k % AtOnce * EVCHYB_PACK_ROWS + RowInSlice(h)]; }
};

static_assert(Lines<PetscInt>::Bytes <= Columns::Bytes, "where slices have columns, pieces have lines of columns, and of values");

/*
  Windows of values, and the thread blocks that have them. Where rows are long a window is wide, so that fewer sectors are read twice; and as caches have to keep sectors that are read in part, fewer
  warps run at once: a thread block takes more shared memory than it uses.
*/
template <bool Long>
struct ValuesOfRows {
  using Values                   = Window<PetscScalar, Long ? 128 : 64>;
  static constexpr int RoomBytes = Values::Bytes > Columns::Bytes ? (int)Values::Bytes : (int)Columns::Bytes;
  static constexpr int MinBlocks = Long ? 4 : 8;
};

/* Whether rows are so long that wide windows and fewer warps are faster, measured */
static bool HasLongRows(const EVCHYBPack *pack)
{
  return pack->nline > 16 * (PetscCount)pack->nslice;
}

static PetscErrorCode UnusedShared(bool haslong, size_t *bytes)
{
  constexpr int Most = 46 * 1024, Used = Threads / WarpSize * ValuesOfRows<true>::RoomBytes, Reserved = 1024; /* what a kernel gets without asking; what a thread block uses; what the system takes of each */
  int           device, all;

  PetscFunctionBegin;
  *bytes = 0;
  if (!haslong) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  *bytes = (size_t)PetscMax(0, PetscMin(Most, all / ValuesOfRows<true>::MinBlocks - Reserved) - Used);
  PetscFunctionReturn(PETSC_SUCCESS);
}
