/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The CSR arrays of a transpose, on the GPU. Where the pattern is symmetric, i and j are those of the matrix, and each value is looked up: that takes a fraction of a sort's time and half of its
  memory, and nothing need be kept from one set of values to the next. Else entries are sorted by their columns.
*/

#include <gallop/cudaimpl.h>
#include <gallop/matgallopimpl.h>
#include "../common/columns.h"

static constexpr int    Threads = 256;
static constexpr int    Looked  = 4;        /* entries that a lane looks up at once */
static constexpr int    Blocks  = 32;       /* most thread blocks for each multiprocessor: several times what it runs at once, so that none has to wait long for the last */
static constexpr int    Sampled = 1024;     /* rows that are looked at first where memory for all values takes long to come by */
static constexpr size_t Cheap   = 64 << 20; /* bytes up to which GallopWorkspaceMalloc() keeps pieces */

/*
  The value of the entry in row c, column r for that in row r, column c, for every step-th row; *differs where there is none, or columns of a row do not increase. Without values only that. A thread
  block takes neighbouring rows: where other rows that it looks into are the same, they are in L1.
*/
__global__ static void __launch_bounds__(Threads) MirrorKernel(PetscInt m, PetscInt step, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, PetscScalar *values, int *differs)
{
  const int        lane = (int)(threadIdx.x % lanes), rows = Threads / lanes; /* rows: at once */
  const PetscCount all = ((PetscCount)m - 1) / step + 1, each = ((all - 1) / gridDim.x / rows + 1) * rows, first = blockIdx.x * each, last = first + each < all ? first + each : all;
  bool             wrong = false;

  for (PetscCount n = first + threadIdx.x / lanes; n < last; n += rows) {
    const PetscCount r     = n * step;
    const PetscInt   begin = i[r], end = i[r + 1];

    if (wrong || *(volatile int *)differs) break;
    for (PetscInt k = begin + lane; k < end; k += Looked * lanes) {
      PetscInt col[Looked], low[Looked], high[Looked], at[Looked], found[Looked];
      bool     more = false;

#pragma unroll
      for (int u = 0; u < Looked; u++) {
        const PetscInt own = k + u * lanes < end ? k + u * lanes : k;

        col[u] = j[own];
        wrong  = wrong || (own > begin && col[u] <= j[own - 1]);
      }
#pragma unroll
      for (int u = 0; u < Looked; u++) {
        low[u]  = i[col[u]];
        high[u] = i[col[u] + 1];
      }
#pragma unroll
      for (int u = 0; u < Looked; u++) { /* rows that are all alike have it as far from their end as the entry is from the beginning of its row */
        const PetscInt guess = high[u] - 1 - ((k + u * lanes < end ? k + u * lanes : k) - begin);

        wrong    = wrong || low[u] == high[u];
        at[u]    = guess < low[u] ? (low[u] < high[u] ? low[u] : k) : guess;
        found[u] = j[at[u]];
      }
#pragma unroll
      for (int u = 0; u < Looked; u++) more = more || found[u] != r;
      while (more && !wrong) {
        more = false;
#pragma unroll
        for (int u = 0; u < Looked; u++) {
          if (found[u] == r) continue;
          if (found[u] < r) low[u] = at[u] + 1;
          else high[u] = at[u];
          wrong = wrong || low[u] >= high[u];
          if (low[u] < high[u]) at[u] = low[u] + (high[u] - low[u]) / 2;
        }
#pragma unroll
        for (int u = 0; u < Looked; u++) found[u] = j[at[u]];
#pragma unroll
        for (int u = 0; u < Looked; u++) more = more || found[u] != r;
      }
      if (wrong) break;
      if (values) {
        PetscScalar value[Looked];

#pragma unroll
        for (int u = 0; u < Looked; u++) value[u] = a[at[u]];
#pragma unroll
        for (int u = 0; u < Looked; u++)
          if (k + u * lanes < end) values[k + u * lanes] = value[u];
      }
    }
  }
  if (wrong) *(volatile int *)differs = 1;
}

/* Looks up values, or only looks at every step-th row where they are NULL; *symmetric is false where some are missing */
static PetscErrorCode Mirror(const GallopCSR *csr, PetscInt step, PetscScalar *values, int *differs, cudaStream_t stream, PetscBool *symmetric)
{
  const int  lanes = GallopColumnsLanes(csr->nz, csr->m, Looked);
  PetscCount blocks;
  int        processors, found;

  PetscFunctionBegin;
  PetscCall(GallopDeviceGetProcessors(&processors));
  blocks = PetscMin((PetscCount)GallopBlocksFor(((PetscCount)csr->m - 1) / step * lanes + lanes, Threads), (PetscCount)processors * Blocks);
  PetscCallCUDA(cudaMemsetAsync(differs, 0, sizeof(*differs), stream));
  MirrorKernel<<<(unsigned int)blocks, Threads, 0, stream>>>(csr->m, step, lanes, csr->i, csr->j, csr->a, values, differs);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&found, differs, sizeof(found)));
  *symmetric = (PetscBool)!found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Carve(const GallopCSR *csr, PetscScalar **values, int **differs, void *base)
{
  GallopCarver carver(base);

  carver.Take(*differs, 1);
  if (values) carver.Take(*values, csr->nz);
  return carver.Bytes();
}

/* The transpose of a matrix with a symmetric pattern: leaves no arrays where it has none, or the GPU has no room */
static PetscErrorCode CreateMirrored(const GallopCSR *csr, GallopTransposed *t, cudaStream_t stream)
{
  const PetscInt step = csr->m / Sampled;
  size_t         bytes;
  PetscScalar   *values;
  int           *differs;
  void          *memory;
  PetscBool      symmetric = PETSC_TRUE;

  PetscFunctionBegin;
  if (csr->m != csr->n) PetscFunctionReturn(PETSC_SUCCESS);
  bytes = Carve(csr, &values, &differs, NULL);
  if (bytes > Cheap && step > 1) {
    PetscCall(GallopWorkspaceMalloc(Carve(csr, NULL, &differs, NULL), &memory));
    if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
    (void)Carve(csr, NULL, &differs, memory);
    PetscCall(Mirror(csr, step, NULL, differs, stream, &symmetric));
    PetscCall(GallopWorkspaceFree(memory));
  }
  if (!symmetric) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(csr, &values, &differs, memory);
  PetscCall(Mirror(csr, 1, values, differs, stream, &symmetric));
  if (symmetric) {
    t->memory = memory;
    t->bytes  = bytes;
    t->csr    = {csr->n, csr->m, csr->nz, csr->i, csr->j, values, csr->host_i, csr->host_j, PETSC_MEMTYPE_CUDA, &t->host, PETSC_TRUE, PETSC_TRUE};
  } else PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves no arrays where the GPU has no room */
PetscErrorCode GallopTransposedCreate_Device(const GallopCSR *csr, GallopTransposed *t)
{
  GallopColumns c;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(CreateMirrored(csr, t, stream));
  if (t->csr.i) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopColumnsSort(csr, 0, PETSC_TRUE, &c, stream));
  if (!c.memory) PetscFunctionReturn(PETSC_SUCCESS);
  t->memory = c.memory;
  t->bytes  = c.bytes;
  t->csr    = {csr->n, csr->m, csr->nz, c.begin, c.row, c.values, NULL, NULL, PETSC_MEMTYPE_CUDA, &t->host, PETSC_TRUE, PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}
