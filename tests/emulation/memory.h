/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of the library's: memory for builds, of which a request may fail, and copies to the host, which are counted */
#pragma once

#include "testing.h"
#include <gallop/deviceimpl.h>

static std::vector<void *> allocations;
static int                 waits, requests, failing, freed; /* how often the host waits; which request of memory fails, 0 for none */

static void *Allocate(size_t bytes)
{
  void *p = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);

  if (++requests == failing) {
    free(p);
    return NULL;
  }
  memset(p, 0x5B, bytes);
  allocations.push_back(p);
  return p;
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **p)
{
  *p = Allocate(bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  *p = Allocate(bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopWorkspaceFree(void *p)
{
  emu::CheckCanaries("before memory is freed");
  freed += p != NULL;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceFree(void *p)
{
  return GallopWorkspaceFree(p);
}

PetscErrorCode GallopDeviceCopyOut(void *to, const void *from, size_t bytes)
{
  waits++;
  emu::Sync();
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}
