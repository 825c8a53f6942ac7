/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files only: entries of CSR arrays on the GPU in order of their columns, of which a transpose is made, and FASTLOAD's blocks */

#include <gallop/cudaimpl.h>

static constexpr int GallopColumnShort = 128; /* entries of a column that lanes compare each with all others; where one has more, CUB sorts all entries */

/* Stored at once: the places that entries go to are not next to each other */
struct __align__(2 * sizeof(PetscInt)) GallopColumnEntry {
  PetscInt row, entry;
};

/* What kernels tell the host */
struct GallopColumnsFound {
  int longest;  /* entries of the longest column */
  int nlong;    /* rows that were left out */
  int unsorted; /* whether the columns of some row do not increase */
};

struct GallopColumns {
  PetscInt          *begin;     /* [n + 1] where the entries of each column begin */
  PetscInt          *entry;     /* [begin[n]] where entries are in CSR; they ascend in each column */
  PetscInt          *row;       /* [begin[n]] the row of each */
  PetscInt          *longrows;  /* [found.nlong] rows that were left out, in any order, in memory of the caller's */
  PetscInt          *unused[2]; /* [nz] memory that is free once entries are sorted */
  GallopColumnsFound found;

  /* workspace */
  unsigned int       *count; /* [n + 1] */
  GallopColumnEntry  *pairs;
  PetscInt           *first, *second;
  GallopColumnsFound *counts;
  char               *cub;
  size_t              cubbytes;
};

/* Numbers that begin where CUB likes them to, behind nz others */
static inline PetscInt *GallopColumnsSecondHalf(const GallopColumns *c, PetscCount nz)
{
  return reinterpret_cast<PetscInt *>(c->pairs) + (nz + 63) / 64 * 64;
}

/* Takes memory for the sort and its result, after GallopColumnsPrepare() */
static inline void GallopColumnsCarve(const GallopCSR *csr, GallopCarver *carver, GallopColumns *c)
{
  carver->Take(c->begin, (PetscCount)csr->n + 1);
  carver->Take(c->count, (PetscCount)csr->n + 1);
  carver->Take(c->pairs, csr->nz + 32); /* two arrays, the second one aligned */
  carver->Take(c->first, csr->nz);
  carver->Take(c->second, csr->nz);
  carver->Take(c->counts, 1);
  carver->Take(c->cub, (PetscCount)c->cubbytes);
}

PETSC_INTERN PetscErrorCode GallopColumnsPrepare(const GallopCSR *, GallopColumns *, cudaStream_t);
PETSC_INTERN PetscErrorCode GallopColumnsSort(const GallopCSR *, PetscInt, PetscScalar *, GallopColumns *, cudaStream_t);

/* columnssort.cu: kernels that most matrices need not load */
PETSC_INTERN PetscErrorCode GallopColumnsSortByCUB(const GallopCSR *, PetscInt, PetscScalar *, GallopColumns *, cudaStream_t);
PETSC_INTERN PetscErrorCode GallopColumnsSortByCUBNeeds(const GallopCSR *, size_t *, cudaStream_t);
