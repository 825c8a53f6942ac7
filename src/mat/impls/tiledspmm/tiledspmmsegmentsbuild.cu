/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The segments of TiledSpMM's kernels: rows of A, long ones cut. How many there are is counted, then the arrays are filled. The cached and the transposed kernel have all of theirs from here, the staged
  one those of a matrix with long rows, in place of whose rows its panels have them.
*/

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include "tiledspmmbuild.h"

/* ---------------------------------------------------------------- count */

/* Segments of a row; none of the row behind the last, which ends the sums. An empty row has one, or none. */
struct SegmentsOfRow {
  const PetscInt *i;
  PetscInt        m, segment;
  bool            skips;

  __host__ __device__ Pieces operator()(PetscInt r) const
  {
    const PetscInt   len = r < m ? i[r + 1] - i[r] : 0;
    const PetscCount num = r < m ? (len > segment ? (len + segment - 1) / segment : len || !skips) : 0;

    return PiecesOf(num, 1);
  }
};

/* What is needed until the segments are there: of the rows before each, where rows are cut, and room for sums */
struct SegmentsWork {
  Pieces *before;
  char   *cub;
  size_t  cubbytes;
  void   *memory;
};

/* How many segments there are, which is asked before there is room for them */
static PetscErrorCode CountSegments(TiledSpMM *t, const SegmentsOfRow &rows, SegmentsWork *w, PetscBool *done)
{
  const auto   each = thrust::make_transform_iterator(thrust::make_counting_iterator((PetscInt)0), rows);
  const auto   scan = [&](cudaStream_t stream) { return cub::DeviceScan::ExclusiveScan(w->cub, w->cubbytes, each, w->before, PiecesAdd(), Pieces{0, 0, 0, 0}, (PetscCount)t->m + 1, stream); };
  Pieces       all;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(scan(stream)); /* without memory it tells how much it needs */
  PetscCall(Allocate(
    GallopWorkspaceMalloc,
    [&](GallopCarver &carver) {
      carver.Take(w->before, (PetscCount)t->m + 1);
      carver.Take(w->cub, (PetscCount)w->cubbytes);
    },
    &w->memory));
  *done = (PetscBool)(w->memory != NULL);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(scan(stream));
  PetscCall(GallopDeviceCopyOut(&all, w->before + t->m, sizeof(all)));
  t->nseg = all.num;
  SetSplits(t, all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- fill */

/* The arrays that SegmentsKernel fills */
struct SegmentArrays {
  PetscCount nseg, nslots;
  PetscInt  *ptr, *row;
  SplitRows  splits;

  explicit SegmentArrays(const TiledSpMM *t) : nseg(t->nseg), nslots(t->nslots), ptr(t->segptr), row(t->segrow), splits(t) { }
};

/* A thread for each row, and one for each segment of rows that have several, which are those with partial sums: a row may have millions */
__global__ static void __launch_bounds__(Threads) SegmentsKernel(const SegmentsOfRow rows, const Pieces *__restrict__ before, const SegmentArrays to)
{
  const PetscCount r               = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  PetscInt *const __restrict__ ptr = to.ptr, *const __restrict__ row = to.row;

  if (r < to.nslots) {
    const PetscInt   of = LastNotAbove(rows.m - 1, r, [&](PetscInt k) { return before[k].slots; });
    const PetscCount k = r - before[of].slots, at = before[of].num + k;

    ptr[at] = rows.i[of] + (PetscInt)k * rows.segment;
    row[at] = (PetscInt)(-1 - r);
  }
  if (r > rows.m) return;
  const Pieces b = before[r], own = rows((PetscInt)r);

  if (r == rows.m) {
    ptr[to.nseg] = rows.i[r];
    return;
  }
  if (own.num == 1) {
    ptr[b.num] = rows.i[r];
    row[b.num] = (PetscInt)r;
  } else if (own.num) to.splits.Set(own, b, 0, (PetscInt)r);
}

/* The room of each slice of 32 segments, 0 behind the last. Each warp has a slice. */
__global__ static void __launch_bounds__(Threads) SlicesKernel(PetscCount nseg, const PetscInt *__restrict__ ptr, PetscCount slices, PetscCount *__restrict__ room)
{
  const PetscCount seg  = blockIdx.x * (PetscCount)Threads + threadIdx.x;
  const PetscInt   len  = seg < nseg ? ptr[seg + 1] - ptr[seg] : 0;
  PetscInt         most = len;

  for (int by = WarpSize / 2; by; by /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, by));
  if (seg % WarpSize == 0 && seg / WarpSize <= slices) room[seg / WarpSize] = (PetscCount)most * WarpSize;
}

/* Segments in slices, and what goes into them from CSR: values, and columns where col is not NULL */
struct SliceArrays {
  PetscCount        nseg;
  const PetscInt   *ptr;
  const PetscCount *slicedispl;
  GallopColumn     *col;
  PetscScalar      *value;
};

/* CSR's entries, in slices, with 0 in what is padding, which no product reads */
__global__ static void __launch_bounds__(Threads) FillKernel(const SliceArrays to, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const PetscInt *const __restrict__ ptr          = to.ptr;
  const PetscCount *const __restrict__ slicedispl = to.slicedispl;
  GallopColumn *const __restrict__ col            = to.col;
  PetscScalar *const __restrict__ value           = to.value;
  const PetscCount seg = blockIdx.x * (PetscCount)Threads + threadIdx.x, slice = seg / WarpSize;

  if (slice * WarpSize >= to.nseg) return;
  const PetscInt   begin = seg < to.nseg ? ptr[seg] : 0, len = seg < to.nseg ? ptr[seg + 1] - begin : 0;
  const PetscCount first = slicedispl[slice], width = (slicedispl[slice + 1] - first) / WarpSize;

  for (PetscCount k = 0; k < width; k++) {
    const PetscCount at = first + k * WarpSize + seg % WarpSize;

    if (col) col[at] = k < len ? (GallopColumn)j[begin + k] : 0;
    value[at] = k < len ? a[begin + k] : PetscScalar(0);
  }
}

/* CSR's columns where they have other bytes */
__global__ static void __launch_bounds__(Threads) ColumnsKernel(PetscCount nz, const PetscInt *__restrict__ j, GallopColumn *__restrict__ col)
{
  for (PetscCount k = GallopGlobalThread(); k < nz; k += (PetscCount)gridDim.x * Threads) col[k] = (GallopColumn)j[k];
}

static PetscErrorCode CopyColumns(TiledSpMM *t, const GallopCSR *csr, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (sizeof(PetscInt) == sizeof(GallopColumn)) PetscCall(GallopDeviceCopy(t->col, csr->j, (size_t)t->nz * sizeof(*t->col)));
  else if (t->nz) {
    ColumnsKernel<<<GallopBlocksFor(PetscMin(t->nz, (PetscCount)1 << 30), Threads), Threads, 0, stream>>>(t->nz, csr->j, t->col);
    GallopCheckLaunch();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries, as they are in CSR or in slices; or only their values */
static PetscErrorCode FillEntries(TiledSpMM *t, const GallopCSR *csr, bool columns, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (t->kernel == TILEDSPMM_CACHED) {
    const SliceArrays slices = {t->nseg, t->segptr, t->slicedispl, columns ? t->col : NULL, t->value};

    FillKernel<<<GallopBlocksFor(t->slices * WarpSize, Threads), Threads, 0, stream>>>(slices, csr->j, csr->a);
    GallopCheckLaunch();
  } else {
    if (columns) PetscCall(CopyColumns(t, csr, stream));
    PetscCall(GallopDeviceCopy(t->value, csr->a, (size_t)t->nz * sizeof(*t->value)));
  }
  t->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TiledSpMMSegmentsRefresh(TiledSpMM *t, const GallopCSR *csr)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(FillEntries(t, csr, false, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The slices of the cached kernel, whose sizes tell how many entries are stored */
static PetscErrorCode FillSlices(TiledSpMM *t, PetscBool *done)
{
  const auto   scan     = [&](void *cub, size_t &bytes, cudaStream_t stream) { return cub::DeviceScan::ExclusiveSum(cub, bytes, t->slicedispl, t->slicedispl, t->slices + 1, stream); };
  size_t       cubbytes = 0;
  void        *memory;
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(scan(nullptr, cubbytes, stream));
  PetscCall(GallopWorkspaceMalloc(cubbytes, &memory));
  *done = (PetscBool)(memory != NULL);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  SlicesKernel<<<GallopBlocksFor(t->slices * WarpSize + 1, Threads), Threads, 0, stream>>>(t->nseg, t->segptr, t->slices, t->slicedispl);
  GallopCheckLaunch();
  PetscCallCUDA(scan(memory, cubbytes, stream));
  PetscCall(GallopDeviceCopyOut(&t->stored, t->slicedispl + t->slices, sizeof(t->stored)));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- both */

TILEDSPMM_ALLOCATE(AllocateSegments, TILEDSPMM_SEGMENTS)
TILEDSPMM_ALLOCATE(AllocateColumns, TILEDSPMM_COLUMNS)

/* TiledSpMMCutRows - Where segments begin, and whose they are, with rows cut where they are longer than segment, which is 0 where none is and none is left out. Room for the slices of the cached kernel, too. */
PetscErrorCode TiledSpMMCutRows(TiledSpMM *t, const GallopCSR *csr, PetscInt segment, PetscBool *done)
{
  const SegmentsOfRow rows = {csr->i, csr->m, segment, (bool)t->skips};
  SegmentsWork        w    = {};
  cudaStream_t        stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  *done      = PETSC_TRUE;
  t->segment = segment;
  t->nseg    = t->m;
  if (segment) PetscCall(CountSegments(t, rows, &w, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  t->slices = t->kernel == TILEDSPMM_CACHED ? (t->nseg + WarpSize - 1) / WarpSize : 0;
  PetscCall(AllocateSegments(t, done));
  if (*done && segment) {
    SegmentsKernel<<<GallopBlocksFor(PetscMax((PetscCount)t->m + 1, t->nslots), Threads), Threads, 0, stream>>>(rows, w.before, SegmentArrays(t));
    GallopCheckLaunch();
  } else if (*done) PetscCall(GallopDeviceCopy(t->segptr, csr->i, (size_t)(t->m + 1) * sizeof(PetscInt)));
  if (w.memory) PetscCall(GallopWorkspaceFree(w.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMSegmentsBuild - For t->kernel, cached or transposed, with segments as above */
PetscErrorCode TiledSpMMSegmentsBuild(TiledSpMM *t, const GallopCSR *csr, PetscInt segment, PetscCount maxbytes, PetscBool *done)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(TiledSpMMKernelsOverlap(&t->overlaps));
  t->stored = t->nz;
  PetscCall(TiledSpMMCutRows(t, csr, segment, done));
  if (*done && t->kernel == TILEDSPMM_CACHED) PetscCall(FillSlices(t, done));
  if (*done) *done = (PetscBool)FitsMemory(t, maxbytes);
  if (*done) PetscCall(AllocateColumns(t, done));
  if (*done) PetscCall(FillEntries(t, csr, true, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
