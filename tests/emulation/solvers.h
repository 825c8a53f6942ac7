/* SPDX-License-Identifier: BSD-2-Clause */
/*
  For tests of fused solvers that are PETSc's own, with ours inside, and vectors on the host, which kernels of the emulation take as they are

  mpiexec -n 2 runs them on several processes.
*/
#pragma once
#include "testing.h"
#include <petscksp.h>

static void Publishes(PetscInt64 number, int stopped) /* called by the GPU: prepare.py */
{
  (void)number, (void)stopped;
}

#include "ksp/ksp/gallopfused.cu"
#include "ksp/ksp/gallopksp.h"

static long launches;

#undef GallopFusedLog
#define GallopFusedLog(event, ksp, ...) \
  do { \
    launches++; \
    __VA_ARGS__; \
  } while (0)
#include "ksp/ksp/gallopksp.c"

#ifndef SUMS_BY_PROCESSES /* which the test has */
/* Sums of several processes are reduced by MPI */
extern "C" const GallopIPCTable GallopIPCTable_Device;
const GallopIPCTable            GallopIPCTable_Device = {};

PetscErrorCode GallopGroupCreate(MPI_Comm, const GallopIPCTable *, PetscBool, GallopGroup *, const char **why)
{
  *why = "there is no GPU";
  return PETSC_SUCCESS;
}

PetscErrorCode GallopGroupDestroy(GallopGroup *)
{
  return PETSC_SUCCESS;
}
#endif

PetscErrorCode MatGallopTries(Mat, PetscBool *tries)
{
  *tries = PETSC_FALSE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopGraphDestroy(GallopGraph *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = emu::processors;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **p)
{
  const size_t room = (bytes + 255) / 256 * 256 + 256;

  *p = aligned_alloc(256, room);
  memset(*p, 0x77, bytes);
  emu::Canary((char *)*p + bytes, (char *)*p + room, "of a solver");
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceFits(size_t, PetscBool *fits)
{
  *fits = PETSC_TRUE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopPinnedMalloc(size_t bytes, void **p)
{
  return GallopDeviceMalloc(bytes, p);
}

PetscErrorCode GallopDeviceFree(void *)
{
  return PETSC_SUCCESS; /* canaries are looked at to the end */
}

PetscErrorCode GallopPinnedFree(size_t, void *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceZero(void *p, size_t bytes)
{
  emu::Enqueue([=] { memset(p, 0, bytes); });
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopIsFormat(Mat, PetscBool *is)
{
  *is = PETSC_TRUE;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopBlocksReset(GallopBlocks *)
{
  return PETSC_SUCCESS;
}

static void Scatter()
{
  emu::Sync();
  emu::async    = choice() % 2;
  emu::resident = 1 + (int)(choice() % 5);
  emu::preempt  = choice() % 3 ? 4 : 0;
}

/* Any between -1 and 1 */
static PetscScalar Any()
{
#if PetscDefined(USE_COMPLEX)
  return PetscCMPLX(RandomReal(), RandomReal());
#else
  return RandomReal();
#endif
}

/* The library's, of a file that is not part of these */
PetscErrorCode GallopLogEventRegister(const char name[], PetscClassId classid, PetscLogEvent *event)
{
  return PetscLogEventRegister(name, classid, event);
}
