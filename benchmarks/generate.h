/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <petscmat.h>
#include <stdint.h>

/* What BenchGenerate() makes; numbers may end in k (1,000) or M (1,000,000), and what stands in brackets may be left out */
#define BENCH_GENERATORS_HELP \
  "Generators, by name:\n\
  star5_N[_R] star7_N[_R]      2D or 3D grid of side N, each point with its neighbours along the axes to distance R (1)\n\
  box27_N[_R]                  3D grid of side N, each point with all of the cube of radius R (1) around it\n\
  elast27b3_N[_R]              the same with three unknowns a point\n\
  band<n>_<h>  dense<n>        h diagonals on both sides of the main one; all entries\n\
  kron<S>[_<e>]                Kronecker graph (R-MAT) of 2^S vertices, e 2^S (48) edges in both directions\n\
  web<n>_<k>[_<a>_<l>]         power-law row lengths of mean k and exponent a (1.7), a share l (0.7) of the columns near the diagonal\n\
  circuit<n>_<k>[_<d>_<L>]     k short-range entries per row, and d rows and columns (0) of L, L/2, L/3... entries; _<h>_<H> behind these: and H\n\
                               entries, within H of the diagonal, in each h-th row\n\
  uniform<n>_<k>               k random columns in each row\n\
  uneven<n>_<k>                1 to k random columns in each row, each number as likely\n\
  random<n>_<k>                n k random positions\n\
  longrows<n>_<s>_<L>_<k>      a share s of the rows has L entries, the others k\n\
  wide<m>_<n>_<k>[_<L>]        m by n, k random columns in each row, L in the middle one\n\
  lp<m>_<n>_<k>                m by n, k entries per column, and in 20 rows n/8 more\n\
  mesh<N>[_<b>[_<w>]]          3D grid of side N, b unknowns a point (1), each point with all around it, numbered at random within windows\n\
                               of w points (N^2, a layer): as an unstructured mesh whose neighbours have near numbers\n\
  shuffled7_<N>                3D grid of side N, each point with those beside it along the axes, numbered at random\n\
  points<n>_<b>_<l>_<k>_<L>_<s>[_<w>] n rows of a 3D grid of points, b unknowns each, each point with those nearest to it: rows of l to k entries,\n\
                               or, a share s, of k+1 to L, each length as likely; numbered at random within windows of w points (1)\n\
  cage<n>_<l>_<k>_<L>_<s>      rows of such lengths, with entries 3^i and 2 3^i columns from the diagonal, to n/8\n\
A name that ends in _c has constant values, -1 off the diagonal; otherwise values are random in [-1,1), the same for (i,j) and (j,i), and complex\n\
ones have two such parts, but with a name that ends in _r no imaginary one.\n\
An entry that is drawn several times is kept once. label=name shows the matrix under another name.\n"

/* A random number in [-1,1) that depends on nothing but its arguments */
static inline uint64_t BenchMix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u; /* splitmix64 */
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline PetscReal BenchRandom(PetscInt seed, PetscInt i, PetscInt j)
{
  const uint64_t bits = BenchMix(BenchMix(BenchMix((uint64_t)seed + 0x9e3779b97f4a7c15u) + (uint64_t)i) * 3 + (uint64_t)j);

  return (PetscReal)((double)(bits >> 11) * 0x1p-52 - 1.0);
}

/* Both parts of a complex one */
static inline PetscScalar BenchRandomScalar(PetscInt seed, PetscInt i, PetscInt j)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(BenchRandom(seed, i, j), BenchRandom(seed + 1, j + 1, i));
#else
  return BenchRandom(seed, i, j);
#endif
}

PETSC_INTERN PetscErrorCode BenchGenerate(const char name[], PetscInt seed, Mat *A);
