/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests share. A test's arguments: the seed, and `full` for all cases. */
#pragma once
#include "emulate.h"
#include <petscconfiginfo.h>

static std::mt19937_64 choice; /* what cases are made of */
static bool            full;

static inline void Begin(int argc, char **argv)
{
  choice.seed(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
  full = argc > 2 && !strcmp(argv[2], "full");
  emu::random.seed(choice());
}

static inline int End()
{
  printf("  %lu kernels\n", emu::kernels);
  return 0;
}

static inline void CheckCall(PetscErrorCode code)
{
  if (code) emu::Fail("an error where there should be none");
}

/* Between -1 and 1 */
static inline PetscReal RandomReal()
{
  return (PetscReal)(choice() % 2001) / 1000 - 1;
}

/* Whether PETSc's library has the types of this program, for which other types may have been asked */
static inline bool HasSameTypes()
{
  const auto configured = [](const char *option) { return strstr(petscconfigureoptions, option) != NULL; };

  return configured("scalar-type=complex") == PetscDefined(USE_COMPLEX) && configured("64-bit-indices") == PetscDefined(USE_64BIT_INDICES) && configured("precision=single") == PetscDefined(USE_REAL_SINGLE);
}
