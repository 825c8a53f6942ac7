/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's plain storage on the GPU: entries, from CSR */

#include <gallop/cudaimpl.h>
#include "../evchyb.h"
#include "plaindevice.h"

static constexpr int WarpsInBlock = EVCHYB_THREADS / WarpSize;

/* The widths of a tile, which is what a warp copies of a column block at once. A wide one reads whole cache lines of long rows, a narrow one leaves registers for more warps where most rows fit into it. */
static constexpr int FillWide = sizeof(PetscScalar) > 8 ? 8 : 16, FillNarrow = FillWide / 2;

/* How the entries are shared out among warps: a small matrix has too few column blocks to keep the GPU busy with a warp each */
struct FillShape {
  int parts; /* warps per column block: each takes every parts-th tile */
  int chunk; /* entries of SubCSR per warp: a row may have many more */
};
static constexpr int FillChunk = 512; /* the most */
static constexpr int FillWarps = 64;  /* wanted per multiprocessor: twice what runs at once, since most of those that share a column block of a small matrix find no tile in it */
static_assert(FillChunk / EVCHYB_BLOCK <= WarpSize, "a lane for each row");

/*
  Columns k to k + columns of a column block, from CSR rows of which a lane knows its own. They are read along the rows, Width neighbours at once, and written along the columns: a
  lane that walked its row would ask for 32 sectors with every load. Between they meet in shared memory.
*/
template <int Width, typename S, typename T>
static __device__ __forceinline__ void FillTile(void *shared, const S *from, PetscInt first, PetscInt len, PetscInt k, int columns, T padding, T *to)
{
  constexpr int Rows = WarpSize / Width; /* that the warp reads from at once */
  const int     lane = threadIdx.x % WarpSize, column = lane % Width;
  T(*tile)[Width + 1] = static_cast<T(*)[Width + 1]>(shared);
  T value[Width];

#pragma unroll
  for (int u = 0; u < Width; u++) {
    const int        row   = u * Rows + lane / Width;
    const PetscCount begin = __shfl_sync(0xffffffffu, first, row);
    const PetscInt   n     = __shfl_sync(0xffffffffu, len, row);

    value[u] = k + column < n ? (T)from[begin + k + column] : padding;
  }
#pragma unroll
  for (int u = 0; u < Width; u++) tile[u * Rows + lane / Width][column] = value[u];
  __syncwarp();
#pragma unroll
  for (int u = 0; u < Width; u++)
    if (u < columns) to[u * WarpSize + lane] = tile[lane][u];
  __syncwarp(); /* the next tile takes the same place */
}

/* Of n ascending numbers, the first of which is at most limit, the last that is: a warp looks at 32 at once */
static __device__ __forceinline__ PetscInt LastAtMost(const PetscCount *__restrict__ numbers, PetscInt n, PetscCount limit)
{
  PetscInt lo = 0;

  while (n > 1) {
    const PetscInt     step = (n + WarpSize - 1) / WarpSize, at = (PetscInt)(threadIdx.x % WarpSize) * step;
    const unsigned int lanes = __ballot_sync(0xffffffffu, at < n && numbers[lo + at] <= limit);
    const PetscInt     skip  = (__popc(lanes) - 1) * step;

    lo += skip;
    n = step < n - skip ? step : n - skip;
  }
  return lo;
}

/* n entries of SubCSR from begin on, both multiples of 32. A lane looks after a row; 32 entries are of one row, whatever its length. */
template <bool Pattern, int AtOnce>
static __device__ __forceinline__ void FillRows(const SubCSR &csr, PetscCount begin, int n, const PetscInt *__restrict__ perm, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  const int        lane   = threadIdx.x % WarpSize;
  const PetscInt   r      = LastAtMost(csr.i, csr.n, begin) + lane;
  const bool       inside = r < csr.n;
  const PetscCount at = (inside ? csr.i[r] : csr.nz) - begin, next = (inside ? csr.i[r + 1] : csr.nz) - begin; /* where the row is in the chunk */
  const PetscInt   row = inside ? perm[r] : 0;

  GallopWaitForPredecessor();
  const PetscInt   first = i[row], len = i[row + 1] - first;
  const PetscCount shift = first - at;                         /* entry k of the chunk is entry shift + k of the matrix */
  const int        stop  = (int)(at + len < n ? at + len : n); /* where the row's entries end */
  const int        end   = (int)(next < n ? next : n);         /* and where its padding does */

  for (int k = 0; k < n; k += AtOnce * WarpSize) {
    GallopColumn column[AtOnce];
    PetscScalar  value[AtOnce];

#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int mine = k + u * WarpSize + lane, owner = __popc(__ballot_sync(0xffffffffu, end <= k + u * WarpSize)); /* rows that end before; all of them behind the chunk, where no lane has any entries */
      const PetscCount from = __shfl_sync(0xffffffffu, shift, owner) + mine;
      const bool       real = mine < __shfl_sync(0xffffffffu, stop, owner);

      if (Pattern) column[u] = real ? (GallopColumn)j[from] : -1;
      value[u] = real ? a[from] : PetscScalar(0);
    }
#pragma unroll
    for (int u = 0; u < AtOnce; u++) {
      const int mine = k + u * WarpSize + lane;

      if (mine >= n) break;
      if (Pattern) csr.j[begin + mine] = column[u];
      csr.as[begin + mine] = value[u];
    }
  }
}

/*
  j and as, or only as; padding too, so that whole sectors are written. What a column block is made of is loaded before the wait for the predecessor, which may be writing i, j and a:
  these are not __restrict__. So the compiler lets none of their loads go ahead of a store, and a thread has to load a batch before it stores any.
*/
template <bool Pattern, int Width>
__global__ static void __launch_bounds__(EVCHYB_THREADS, Width == FillWide ? 4 : 6) FillKernel(const SubELL ell, const SubCSR csr, const FillShape shape, const PetscInt *__restrict__ perm, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  constexpr size_t   Largest = sizeof(PetscScalar) > sizeof(GallopColumn) ? sizeof(PetscScalar) : sizeof(GallopColumn);
  const unsigned int parts = shape.parts, warp = blockIdx.x * WarpsInBlock + threadIdx.x / WarpSize, ellwarps = (unsigned int)ell.nb * parts;
  __shared__ __align__(16) unsigned char tiles[WarpsInBlock][WarpSize * (Width + 1) * Largest];

  if (warp < ellwarps) {
    const PetscCount b   = ell.nb - 1 - (PetscInt)(warp / parts); /* the longest stand last */
    const PetscInt   row = perm[b * EVCHYB_BLOCK + threadIdx.x % WarpSize], all = ell.clen[b];
    const PetscCount to   = ell.bnz[b];
    void            *tile = tiles[threadIdx.x / WarpSize];

    GallopWaitForPredecessor();
    const PetscInt first = i[row], len = i[row + 1] - first;

    for (PetscInt k = (PetscInt)(warp % parts) * Width; k < all; k += shape.parts * Width) {
      const PetscCount at      = to + (PetscCount)k * EVCHYB_BLOCK;
      const int        columns = all - k < Width ? (int)(all - k) : Width;

      if (Pattern) FillTile<Width>(tile, j, first, len, k, columns, GallopColumn(-1), ell.j + at);
      FillTile<Width>(tile, a, first, len, k, columns, PetscScalar(0), ell.as + at);
    }
  } else {
    const PetscCount begin = (PetscCount)(warp - ellwarps) * shape.chunk, n = csr.nz - begin < shape.chunk ? csr.nz - begin : shape.chunk;

    if (n > 0) FillRows<Pattern, Width / (Pattern ? 4 : 2)>(csr, begin, (int)n, perm + ell.n, i, j, a);
    else GallopWaitForPredecessor();
  }
}

template <int Width>
static cudaError_t LaunchFill(const EVCHYBPlain *p, const GallopCSR *csr, const FillShape &shape, bool pattern, bool overlaps, cudaStream_t stream)
{
  const PetscCount warps = (PetscCount)p->ell.nb * shape.parts + (p->csr.nz + shape.chunk - 1) / shape.chunk;

  return GallopLaunch(pattern ? FillKernel<true, Width> : FillKernel<false, Width>, {GallopBlocksFor(warps * WarpSize, EVCHYB_THREADS), EVCHYB_THREADS, 1, 0, stream, overlaps}, p->ell, p->csr, shape, p->perm,
                      csr->i, csr->j, csr->a);
}

/* EVCHYBPlainFill_Device - Columns and values, or values only. In a build it may not start early: what it loads first has just been written. */
PetscErrorCode EVCHYBPlainFill_Device(EVCHYB *ev, const EVCHYBPlain *p, const GallopCSR *csr, PetscBool pattern)
{
  const PetscCount wanted = (PetscCount)ev->processors * FillWarps, nb = p->ell.nb;
  const bool       overlaps = ev->overlaps && !pattern;
  FillShape        shape    = {1, FillChunk};
  cudaStream_t     stream;

  PetscFunctionBegin;
  ev->fresh = PETSC_TRUE;
  if (!nb && !p->csr.nz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  while (shape.chunk > 128 && p->csr.nz / shape.chunk < wanted) shape.chunk /= 2;
  if (nb >= wanted && p->ell.nz <= (PetscCount)FillNarrow * p->ell.n && p->csr.nz < p->ell.nz) PetscCallCUDA(LaunchFill<FillNarrow>(p, csr, shape, pattern, overlaps, stream));
  else {
    while (shape.parts * FillWide < p->ell.LCmax && nb * shape.parts * 2 <= wanted) shape.parts *= 2;
    PetscCallCUDA(LaunchFill<FillWide>(p, csr, shape, pattern, overlaps, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPlainRefresh_Device(EVCHYB *ev, const GallopCSR *csr, PetscCount maxbytes, PetscBool *fits)
{
  PetscFunctionBegin;
  PetscCall(EVCHYBPlainFill_Device(ev, ev->plain, csr, PETSC_FALSE));
  *fits = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

cudaError_t EVCHYBPlainOverlaps(PetscBool *overlaps)
{
  return GallopKernelOverlaps(FillKernel<true, FillWide>, overlaps);
}
