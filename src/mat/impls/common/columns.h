/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: entries of CSR arrays on the GPU in order of their columns, of which a transpose is made, and FASTLOAD's blocks where columns are long */

#include <gallop/cudaimpl.h>
#include <type_traits>

static constexpr int GallopColumnShort = 128; /* entries of a column that lanes compare each with all others; where one has more, CUB sorts all entries */

/* Stored at once: the places that entries go to are not next to each other. 8 bytes with 64-bit indices too, which may be too large for 32 bits: there an entry's place is counted from the beginning of its row. */
struct __align__(8) GallopColumnEntry {
  unsigned int place, row;

  static constexpr bool ofRow = sizeof(PetscInt) > sizeof(unsigned int);
  using Key                   = std::conditional_t<ofRow, unsigned long long, unsigned int>;

  static __device__ __forceinline__ GallopColumnEntry Of(PetscInt row, PetscInt k, PetscInt begin)
  {
    return {(unsigned int)(ofRow ? k - begin : k), (unsigned int)row};
  }

  /* Where it is in CSR */
  __device__ __forceinline__ PetscInt Entry(const PetscInt *__restrict__ i) const
  {
    return (PetscInt)place + (ofRow ? i[row] : 0);
  }

  /* Ascends as Entry() does */
  __device__ __forceinline__ Key Order() const
  {
    return ofRow ? (Key)((unsigned long long)row << 32 | place) : (Key)place;
  }
};

static constexpr PetscCount GallopColumnRows = UINT_MAX; /* most rows that it tells apart */

/* What kernels tell the host */
struct GallopColumnsFound {
  int longest;  /* entries of the longest column */
  int nlong;    /* rows that were left out */
  int unsorted; /* whether the columns of some row do not increase; told only with a limit */
};

/* Either entries or values are there */
struct GallopColumns {
  void              *memory; /* for GallopWorkspaceFree(), NULL where the GPU has no room */
  size_t             bytes;
  PetscInt          *begin;     /* [n + 1] where the entries of each column begin */
  PetscInt          *row;       /* [begin[n]] the row of each; rows ascend in each column */
  PetscInt          *entry;     /* [begin[n]] where it is in CSR */
  PetscScalar       *values;    /* [begin[n]] */
  PetscInt          *longrows;  /* [found.nlong] rows that were left out, in any order */
  PetscInt          *unused[2]; /* [nz] memory that is free, with entries */
  GallopColumnsFound found;
};

/* Lanes, a power of two, for rows or columns with nz entries together, of which a lane has about each */
static inline int GallopColumnsLanes(PetscCount nz, PetscInt n, int each)
{
  int lanes = 1;

  while (lanes < WarpSize && (PetscCount)lanes * n * each < nz) lanes *= 2;
  return lanes;
}

static constexpr int GallopColumnsRowLanes = 8; /* entries of a row for each lane: lanes of neighbouring rows often have neighbouring columns */

PETSC_INTERN PetscErrorCode GallopColumnsCount(const GallopCSR *, PetscInt, unsigned int *, unsigned char *, PetscInt *, GallopColumnsFound *, cudaStream_t);
PETSC_INTERN PetscErrorCode GallopColumnsSort(const GallopCSR *, PetscInt, PetscBool, GallopColumns *, cudaStream_t);

/* columnssort.cu: kernels that most matrices need not load */
PETSC_INTERN PetscErrorCode GallopColumnsSortByCUB(const GallopCSR *, PetscInt, PetscBool, GallopColumns *, cudaStream_t);
