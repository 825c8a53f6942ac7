/* SPDX-License-Identifier: BSD-2-Clause */
/* Matrices whose processes exchange values, of all patterns, and the way that they should take */
#pragma once

#include "../galloptest.h"
#include <dlfcn.h>

typedef enum { RING, ONEWAY, STAR, ALL, NOGHOSTS, OWNSALL, EMPTY, WIDE, PATTERNS } Pattern;
static const char *const Names[] = {"ring", "one way", "star", "all to all", "no ghosts", "one process owns all", "empty processes", "wide"};

static char     way[16] = "ipc"; /* what is compared with PetscSF */
static PetscBool nccl; /* -way nccl */

static uint64_t state;

static PetscInt Random(PetscInt n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return n > 0 ? (PetscInt)((state >> 33) % (uint64_t)n) : 0;
}

static PetscInt LocalSize(Pattern pattern, PetscInt rank, PetscInt size)
{
  if (pattern == OWNSALL) return rank == size - 1 ? 60 : 0;
  if (pattern == EMPTY) return rank % 2 ? 0 : 17;
  if (pattern == WIDE) return 3000;
  return 5 + 7 * rank % 11;
}

/* Whether rows of one process have entries in columns of another one */
static PetscBool Couples(Pattern pattern, PetscInt row, PetscInt column, PetscInt size)
{
  switch (pattern) {
  case RING:
    return (PetscBool)((column + 1) % size == row || (row + 1) % size == column);
  case ONEWAY:
    return (PetscBool)(column + 1 == row);
  case STAR:
    return (PetscBool)(column == 0);
  case NOGHOSTS:
    return PETSC_FALSE;
  default:
    return PETSC_TRUE;
  }
}

/* The pattern belongs to seed */
static PetscErrorCode Create(MPI_Comm comm, Pattern pattern, const char exchange[], PetscInt seed, Mat *A)
{
  PetscMPIInt     rank, size;
  PetscInt        rstart, rend, N, owner = 0;
  const PetscInt *ranges;
  char            option[64];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_mat_gallop_exchange", exchange));
  PetscCall(PetscOptionsSetValue(NULL, option, exchange));
  PetscCall(MatCreate(comm, A));
  PetscCall(PetscSNPrintf(option, sizeof(option), "%s_", exchange));
  PetscCall(MatSetOptionsPrefix(*A, option));
  PetscCall(MatSetSizes(*A, LocalSize(pattern, rank, size), LocalSize(pattern, rank, size), PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, MATMPIAIJEVCHYB));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetSize(*A, &N, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  PetscCall(MatGetOwnershipRanges(*A, &ranges));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscCall(MatSetValue(*A, i, i, TestValue(seed, i, i), INSERT_VALUES));
    if (pattern == WIDE) {
      PetscCall(MatSetValue(*A, i, (i + 3000) % N, TestValue(seed, i, 1), INSERT_VALUES));
      PetscCall(MatSetValue(*A, i, (i + N - 3000) % N, TestValue(seed, i, 2), INSERT_VALUES));
      continue;
    }
    owner = 0;
    for (PetscInt j = 0; j < N; j++) {
      while (j >= ranges[owner + 1]) owner++;
      if (owner != rank && !Couples(pattern, rank, owner, size)) continue;
      if (TestRandom(seed, i, j) < 0.3) PetscCall(MatSetValue(*A, i, j, TestValue(seed + 1, i, j), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameBits(Vec x, Vec y, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(TestWaitForCurrentStream()); /* PETSc copies on the default one */
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  for (PetscInt i = 0; i < n; i++)
    PetscCheck(memcmp(&a[i], &b[i], sizeof(a[i])) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " is %g, by PetscSF %g", what, i, (double)PetscRealPart(a[i]), (double)PetscRealPart(b[i]));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products by the tested way, or by PetscSF */
static PetscInt64 Exchanges(const MatGallopStatistics *s, PetscBool tested)
{
  return !tested ? s->exchanges_sf : nccl ? s->exchanges_nccl : s->exchanges_ipc;
}

/* Which way the products of a matrix went */
static PetscErrorCode CheckWay(Mat A, PetscBool tested, PetscInt64 before, PetscInt64 n, const char what[])
{
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &s));
  PetscCheck(Exchanges(&s, tested) - before == n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " exchanges by IPC, %" PetscInt64_FMT " by NCCL and %" PetscInt64_FMT " by PetscSF, not %" PetscInt64_FMT " more by %s", what, s.exchanges_ipc, s.exchanges_nccl, s.exchanges_sf, n, tested ? way : "PetscSF");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether products go the tested way, and not by PetscSF: NCCL takes one GPU for each process, or the library of the tests memory of the host */
static PetscErrorCode Expected(PetscBool *tested)
{
  PetscBool   device, shared, apart, host;
  PetscMPIInt size;
  const char *gpus = getenv("GALLOP_GPUS");

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscStrcmp(way, "shared", &shared));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-noshared", &apart)); /* PETSc's: as if each process had a host of its own */
  *tested = (PetscBool)((device || shared) && !apart);
  if (!nccl) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gallop_nccl", &host));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  *tested = (PetscBool)(device ? !host && size <= (gpus ? atoi(gpus) : 0) && dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) : host);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OptionIs(const char option[], const char value[], PetscBool *is)
{
  char given[16] = "";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, option, given, sizeof(given), NULL));
  PetscCall(PetscStrcmp(given, value, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What waits for values and on which stream they are packed, of each kind of product that -info has a line of, is what options say: bits are the same anyhow.

  The first process, which has that line, has neighbors that give values; where it is not told, products are too short for the side stream.
*/
static PetscErrorCode CheckWaits(FILE *info, int n, const char *const kinds[])
{
  char        line[512], *found;
  int         lines[3] = {0};
  PetscBool   device = PETSC_FALSE, kernel = PETSC_FALSE, side = PETSC_FALSE;
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestHasDevice(&device));
  PetscCall(OptionIs("-mat_gallop_exchange_wait", "kernel", &kernel));
  PetscCall(OptionIs("-mat_gallop_exchange_stream", "side", &side));
  while (fgets(line, sizeof(line), info)) {
    for (int k = 0; k < n; k++) {
      PetscCall(PetscStrstr(line, kinds[k], &found));
      if (!found) continue;
      lines[k]++;
      PetscCall(PetscStrstr(line, device ? "by CUDA IPC" : "by memory that processes share", &found));
      PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Another way than the tested one: %s", line);
      PetscCall(PetscStrstr(line, !device ? "; the process waits for them" : kernel ? "; a kernel" : " waits for them", &found));
      PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Something else waits than options say: %s", line);
      PetscCall(PetscStrstr(line, "side stream", &found));
      PetscCheck((found != NULL) == (device && side && size > 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Another stream than options say: %s", line);
    }
  }
  for (int k = 0; k < n; k++) PetscCheck(lines[k] == (rank ? 0 : 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d lines with \"%s\"", lines[k], kinds[k]);
  (void)fclose(info);
  PetscFunctionReturn(PETSC_SUCCESS);
}
