/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <petscsys.h>

/* Bits that numbers up to the largest one have: of keys, for one */
static inline int GallopBitsFor(uint64_t largest)
{
  int bits = 0;

  for (; largest; largest >>= 1) bits++;
  return bits;
}

/* The same for sorts of CUB's, which take at least one */
static inline int GallopSortBits(uint64_t largest)
{
  return PetscMax(GallopBitsFor(largest), 1);
}
