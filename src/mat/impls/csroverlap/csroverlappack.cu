/* SPDX-License-Identifier: BSD-2-Clause */
/*
  CSROVERLAP: columns on their way to the GPU, in fewer bytes. Of each group of 128 entries, whatever their rows, the smallest column is stored and the distances of all
  from it, with as many bits as the largest distance takes. Packed columns are

    firsts - [groups] the smallest columns
    starts - [groups + 1] where distances of a group begin, in units of 16 bytes: as many units as a distance has bits
    words  - distances: those of entries k, k + 4, k + 8, ... of a group follow each other in words k, k + 4, k + 8, ...

  each beginning at a multiple of 16 bytes.
*/

#include "csroverlapdevice.h"

static constexpr int Unit  = CSROVERLAP_PACK_UNIT;
static constexpr int Group = 128; /* entries */
static constexpr int Lanes = 4;   /* words of a unit */
static constexpr int Word  = 32;  /* bits */

/* Where the parts of packed columns are */
struct Layout {
  PetscCount groups;

  explicit Layout(PetscCount nz) : groups((nz + Group - 1) / Group) { }
  size_t              StartsAt() const { return Padded((size_t)groups * sizeof(PetscInt)); }
  size_t              WordsAt() const { return StartsAt() + Padded((size_t)(groups + 1) * sizeof(unsigned int)); }
  const PetscInt     *Firsts(const void *packed) const { return (const PetscInt *)packed; }
  const unsigned int *Starts(const void *packed) const { return (const unsigned int *)((const char *)packed + StartsAt()); }
  const unsigned int *Words(const void *packed) const { return (const unsigned int *)((const char *)packed + WordsAt()); }

private:
  static size_t Padded(size_t bytes) { return (bytes + Unit - 1) / Unit * Unit; }
};

/* The smallest column of a group, and the bits of distances from it */
static int Measure(const PetscInt columns[], PetscCount n, PetscInt *first)
{
  PetscInt low = columns[0], high = columns[0];
  int      bits = 0;

  for (PetscCount k = 1; k < n; k++) {
    low  = PetscMin(low, columns[k]);
    high = PetscMax(high, columns[k]);
  }
  *first = low;
  for (PetscCount span = (PetscCount)high - low; span; span /= 2) bits++;
  return bits;
}

/* Bytes of packed columns; SIZE_MAX where they cannot be packed */
PetscErrorCode CSROverlapPackedBytes(PetscCount nz, const PetscInt columns[], size_t *bytes)
{
  const Layout layout(nz);
  PetscInt     first;

  PetscFunctionBegin;
  *bytes = layout.groups > UINT_MAX / Word ? SIZE_MAX : layout.WordsAt();
  for (PetscCount e = 0; e < nz && *bytes != SIZE_MAX; e += Group) {
    const int width = Measure(columns + e, PetscMin((PetscCount)Group, nz - e), &first);

    *bytes = width > Word ? SIZE_MAX : *bytes + Unit * (size_t)width;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* packed: at a multiple of 16 bytes */
PetscErrorCode CSROverlapPack(PetscCount nz, const PetscInt columns[], void *packed)
{
  const Layout        layout(nz);
  PetscInt *const     firsts = const_cast<PetscInt *>(layout.Firsts(packed));
  unsigned int *const starts = const_cast<unsigned int *>(layout.Starts(packed));
  unsigned int       *words  = const_cast<unsigned int *>(layout.Words(packed));

  PetscFunctionBegin;
  starts[0] = 0;
  for (PetscCount g = 0; g < layout.groups; g++) {
    const PetscCount   n     = PetscMin((PetscCount)Group, nz - g * Group);
    const PetscInt    *group = columns + g * Group;
    const int          width = Measure(group, n, &firsts[g]);
    const PetscInt     first = firsts[g];
    PetscInt           filled[Group]; /* the last group may have fewer entries */
    unsigned long long bits[Lanes] = {0};
    int                have        = 0;

    if (n < Group) {
      for (PetscCount k = 0; k < Group; k++) filled[k] = k < n ? group[k] : first;
      group = filled;
    }
    for (int k = 0; k < Group; k += Lanes) {
      for (int lane = 0; lane < Lanes; lane++) bits[lane] |= (unsigned long long)(group[k + lane] - first) << have;
      have += width;
      if (have < Word) continue;
      for (int lane = 0; lane < Lanes; lane++) {
        *words++ = (unsigned int)bits[lane];
        bits[lane] >>= Word;
      }
      have -= Word;
    }
    starts[g + 1] = starts[g] + (unsigned int)width;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ static void UnpackKernel(PetscCount nz, const PetscInt *firsts, const unsigned int *starts, const unsigned int *words, GallopColumn *columns)
{
  const PetscCount e = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x, g = e / Group;

  if (e >= nz) return;
  const unsigned int  start = starts[g];
  const int           width = (int)(starts[g + 1] - start), bit = (int)(e % Group) / Lanes * width, shift = bit % Word;
  const unsigned int *at   = words + ((PetscCount)start + bit / Word) * Lanes + e % Lanes;
  unsigned long long  bits = width ? at[0] : 0;

  if (shift + width > Word) bits |= (unsigned long long)at[Lanes] << Word;
  columns[e] = (GallopColumn)(firsts[g] + (PetscInt)(bits >> shift & ((1ull << width) - 1)));
}

/* Both on the GPU */
PetscErrorCode CSROverlapUnpack(PetscCount nz, const void *packed, GallopColumn *columns, cudaStream_t stream)
{
  const Layout layout(nz);

  PetscFunctionBegin;
  if (!nz) PetscFunctionReturn(PETSC_SUCCESS);
  UnpackKernel<<<GallopBlocksFor(nz, Threads), Threads, 0, stream>>>(nz, layout.Firsts(packed), layout.Starts(packed), layout.Words(packed), columns);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(USE_64BIT_INDICES)
__global__ static void NarrowKernel(PetscCount nz, const PetscInt *j, GallopColumn *columns)
{
  const PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < nz) columns[k] = (GallopColumn)j[k];
}
#endif

/* Columns of a matrix as the format has them, both on the GPU */
PetscErrorCode CSROverlapNarrow(PetscCount nz, const PetscInt j[], GallopColumn *columns, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!nz) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(USE_64BIT_INDICES)
  NarrowKernel<<<GallopBlocksFor(nz, Threads), Threads, 0, stream>>>(nz, j, columns);
  GallopCheckLaunch();
#else
  PetscCallCUDA(cudaMemcpyAsync(columns, j, (size_t)nz * sizeof(*columns), cudaMemcpyDeviceToDevice, stream));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
