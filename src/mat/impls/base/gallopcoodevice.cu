/* SPDX-License-Identifier: BSD-2-Clause */
/* Assembly by COO on the GPU, see gallopcoo.c: entries are sorted by rows and columns by CUB's sort, unless they come so */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <gallop/cooimpl.h>
#include <gallop/cudaimpl.h>
#include "../common/bits.h"

static constexpr int Threads = 256;

struct Found {
  unsigned int unordered; /* whether entries do not come by rows and columns, each once and none to be ignored */
  unsigned int valid, nz; /* entries that are not ignored, and those that are the first of their nonzero */
};

/* What entries are sorted by; those to be ignored come last */
static __global__ void __launch_bounds__(Threads) KeysKernel(PetscCount ncoo, PetscInt m, PetscInt n, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, uint64_t *keys)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= ncoo) return;
  keys[k] = i[k] < 0 || j[k] < 0 || i[k] >= m || j[k] >= n ? (uint64_t)m * (uint64_t)n : (uint64_t)i[k] * (uint64_t)n + (uint64_t)j[k];
}

static __global__ void __launch_bounds__(Threads) OrderKernel(PetscCount ncoo, uint64_t none, const uint64_t *__restrict__ keys, Found *found)
{
  const PetscCount k = GallopGlobalThread();

  if (k < ncoo && (keys[k] == none || (k && keys[k - 1] >= keys[k]))) *(volatile unsigned int *)&found->unordered = 1;
}

static __global__ void __launch_bounds__(Threads) NumbersKernel(PetscCount ncoo, unsigned int *perm)
{
  const PetscCount k = GallopGlobalThread();

  if (k < ncoo) perm[k] = (unsigned int)k;
}

/* Of sorted keys: which are the first of their kind, and how many there are before those to be ignored */
static __global__ void __launch_bounds__(Threads) FirstsKernel(PetscCount ncoo, uint64_t none, const uint64_t *__restrict__ keys, char *first, Found *found)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= ncoo) return;
  first[k] = keys[k] != none && (!k || keys[k - 1] != keys[k]);
  if (keys[k] != none && (k == ncoo - 1 || keys[k + 1] == none)) found->valid = (unsigned int)k + 1;
}

static __global__ void __launch_bounds__(Threads) ValuesKernel(PetscInt nz, const unsigned int *__restrict__ jmap, const unsigned int *__restrict__ perm, const PetscScalar *__restrict__ v, bool add, PetscScalar *a)
{
  const PetscCount k   = GallopGlobalThread();
  PetscScalar      sum = 0;

  if (k >= nz) return;
  for (PetscCount p = jmap ? jmap[k] : k, end = jmap ? jmap[k + 1] : k + 1; p < end; p++) sum += v[perm ? perm[p] : p];
  a[k] = add ? a[k] + sum : sum;
}

struct Sorting {
  uint64_t     *keys;    /* the other half of the buffer; after the sort, which entries are the first of their nonzero */
  unsigned int *perm[2]; /* [n]; after the sort, the other holds where nonzeros begin */
  char         *cub;
  size_t        cubbytes;
};

static size_t Carve(PetscCount n, Sorting *s, void *base)
{
  GallopCarver carver(base);

  carver.Take(s->keys, n);
  for (int k = 0; k < 2; k++) carver.Take(s->perm[k], n + 1);
  carver.Take(s->cub, (PetscCount)s->cubbytes);
  return carver.Bytes();
}

/* *to stays NULL where there is no room */
static PetscErrorCode Keep(const unsigned int *from, size_t n, unsigned int **to)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceMalloc(n * sizeof(*from), (void **)to));
  if (*to) PetscCall(GallopDeviceCopy(*to, from, n * sizeof(*from)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *made is false where there is no room */
static PetscErrorCode Sort(PetscCount n, uint64_t none, uint64_t *keys, Found *device, GallopCOO *coo, PetscBool *made, cudaStream_t stream)
{
  const unsigned int              blocks  = GallopBlocksFor(n, Threads);
  const auto                      numbers = thrust::make_counting_iterator(0u);
  cub::DoubleBuffer<uint64_t>     k(keys, nullptr);
  cub::DoubleBuffer<unsigned int> p;
  Sorting                         s = {};
  Found                           found;
  void                           *memory;
  unsigned int                   *begins;
  char                           *first;
  size_t                          bytes;

  PetscFunctionBegin;
  *made = PETSC_FALSE;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, s.cubbytes, k, p, n, 0, GallopSortBits(none), stream));
  PetscCallCUDA(cub::DeviceSelect::Flagged(nullptr, bytes, numbers, (char *)nullptr, (unsigned int *)nullptr, &device->nz, n, stream));
  s.cubbytes = PetscMax(s.cubbytes, bytes);
  PetscCall(GallopWorkspaceMalloc(Carve(n, &s, NULL), &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)Carve(n, &s, memory);
  k = cub::DoubleBuffer<uint64_t>(keys, s.keys);
  p = cub::DoubleBuffer<unsigned int>(s.perm[0], s.perm[1]);
  NumbersKernel<<<blocks, Threads, 0, stream>>>(n, p.Current());
  GallopCheckLaunch();
  bytes = s.cubbytes;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(s.cub, bytes, k, p, n, 0, GallopSortBits(none), stream));
  first  = (char *)k.Alternate();
  begins = p.Alternate();
  FirstsKernel<<<blocks, Threads, 0, stream>>>(n, none, k.Current(), first, device);
  GallopCheckLaunch();
  bytes = s.cubbytes;
  PetscCallCUDA(cub::DeviceSelect::Flagged(s.cub, bytes, numbers, first, begins, &device->nz, n, stream));
  PetscCall(GallopDeviceCopyOut(&found, device, sizeof(found)));
  coo->nz = (PetscInt)found.nz;
  PetscCall(Keep(p.Current(), PetscMax(found.valid, 1), &coo->perm));
  if (found.nz < found.valid) {
    PetscCallCUDA(cudaMemcpyAsync(begins + found.nz, &device->valid, sizeof(*begins), cudaMemcpyDeviceToDevice, stream));
    PetscCall(Keep(begins, (size_t)found.nz + 1, &coo->jmap));
  }
  *made = (PetscBool)(coo->perm && (coo->jmap || found.nz == found.valid));
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopCOOCreate_Device(PetscInt m, PetscInt n, PetscCount ncoo, const PetscInt i[], const PetscInt j[], GallopCOO **coo)
{
  const uint64_t     none   = (uint64_t)m * (uint64_t)n;
  const unsigned int blocks = GallopBlocksFor(ncoo, Threads);
  PetscInt          *copyi = NULL, *copyj = NULL;
  uint64_t          *keys;
  Found             *device, found;
  PetscBool          made = PETSC_TRUE;
  PetscMemType       memtype;
  cudaStream_t       stream;

  PetscFunctionBegin;
  *coo = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscGetMemType(i, &memtype));
  PetscCall(GallopWorkspaceMalloc(sizeof(found), (void **)&device));
  PetscCall(GallopWorkspaceMalloc((size_t)ncoo * sizeof(*keys), (void **)&keys));
  if (PetscMemTypeHost(memtype)) {
    PetscCall(GallopWorkspaceMalloc((size_t)ncoo * sizeof(*i), (void **)&copyi));
    PetscCall(GallopWorkspaceMalloc((size_t)ncoo * sizeof(*j), (void **)&copyj));
  }
  if (device && keys && (!PetscMemTypeHost(memtype) || (copyi && copyj))) {
    if (PetscMemTypeHost(memtype)) {
      PetscCall(GallopDeviceCopyIn(copyi, i, (size_t)ncoo * sizeof(*i)));
      PetscCall(GallopDeviceCopyIn(copyj, j, (size_t)ncoo * sizeof(*j)));
    }
    PetscCall(PetscNew(coo));
    (*coo)->n  = ncoo;
    (*coo)->nz = (PetscInt)ncoo;
    PetscCallCUDA(cudaMemsetAsync(device, 0, sizeof(*device), stream));
    KeysKernel<<<blocks, Threads, 0, stream>>>(ncoo, m, n, copyi ? copyi : i, copyj ? copyj : j, keys);
    GallopCheckLaunch();
    OrderKernel<<<blocks, Threads, 0, stream>>>(ncoo, none, keys, device);
    GallopCheckLaunch();
    PetscCall(GallopDeviceCopyOut(&found, device, sizeof(found)));
    PetscCall(GallopWorkspaceFree(copyi));
    PetscCall(GallopWorkspaceFree(copyj));
    copyi = copyj = NULL;
    if (found.unordered) PetscCall(Sort(ncoo, none, keys, device, *coo, &made, stream));
    if (!made) {
      PetscCall(GallopDeviceFree((*coo)->perm));
      PetscCall(GallopDeviceFree((*coo)->jmap));
      PetscCall(PetscFree(*coo));
    }
  }
  PetscCall(GallopWorkspaceFree(copyi));
  PetscCall(GallopWorkspaceFree(copyj));
  PetscCall(GallopWorkspaceFree(keys));
  PetscCall(GallopWorkspaceFree(device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopCOOSetValues_Device(const GallopCOO *coo, const PetscScalar v[], InsertMode mode, PetscScalar a[])
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ValuesKernel<<<GallopBlocksFor(coo->nz, Threads), Threads, 0, stream>>>(coo->nz, coo->jmap, coo->perm, v, mode != INSERT_VALUES, a);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
