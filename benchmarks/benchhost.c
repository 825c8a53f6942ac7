/* SPDX-License-Identifier: BSD-2-Clause */
/* The host as the place of products: one core, the clock, and memory that is written to flush the caches */

#include <petsctime.h>
#include "bench.h"

static double         *HostArray;
static const size_t    HostLength = (size_t)256 << 17; /* 256 MiB */
static volatile double HostSum;                        /* so that the compiler keeps what is summed */

static PetscErrorCode HostTime(BenchWork work, void *ctx, PetscInt n, PetscLogDouble *seconds)
{
  PetscLogDouble begin, end;

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  for (PetscInt k = 0; k < n; k++) PetscCall((*work)(ctx));
  PetscCall(PetscTime(&end));
  *seconds = end - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostTimeCold(BenchWork work, void *ctx, PetscLogDouble *seconds)
{
  static double value = 0;

  PetscFunctionBegin;
  value++;
  for (size_t k = 0; k < HostLength; k++) HostArray[k] = value;
  PetscCall(HostTime(work, ctx, 1, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostRead(void *unused)
{
  double part[8] = {0};

  PetscFunctionBegin;
  for (size_t k = 0; k < HostLength; k += 8)
    for (int p = 0; p < 8; p++) part[p] += HostArray[k + p];
  for (int p = 0; p < 8; p++) HostSum += part[p];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchHostBandwidth(PetscLogDouble *bandwidth)
{
  PetscLogDouble seconds;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(HostLength, &HostArray));
  for (size_t k = 0; k < HostLength; k++) HostArray[k] = (double)k; /* pages of zeros might all be the same page of memory */
  *bandwidth = 0;
  for (int k = 0; k < 5; k++) {
    PetscCall(HostTime(HostRead, NULL, 1, &seconds));
    *bandwidth = PetscMax(*bandwidth, HostLength * sizeof(double) / seconds);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostStart(PetscLogDouble *bandwidth)
{
  FILE *file = fopen("/proc/cpuinfo", "r");
  char  line[256], model[256] = "unknown";

  PetscFunctionBegin;
  while (file && fgets(line, sizeof(line), file))
    if (sscanf(line, "model name : %255[^\n]", model) == 1) break;
  if (file) (void)fclose(file);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# no GPU: products on one core of the host\n# machine: %s\n", model));
  PetscCall(BenchHostBandwidth(bandwidth));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostFinish(void)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(HostArray));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const BenchPlace BenchHost = {HostStart, HostFinish, HostTime, HostTimeCold, PetscMemoryGetCurrentUsage, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL};
