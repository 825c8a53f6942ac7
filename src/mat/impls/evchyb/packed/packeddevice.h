/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files: what the kernels tell each other that look at a matrix, and how they are launched */

#include <gallop/cudaimpl.h>
#include "packedplan.h"

/* Distinct numbers among the values */
struct EVCHYBPackDistinct {
  unsigned int num, hasfree; /* how many there are; whether one of them is the one whose bits mark free places of the table */
};

/* What a thread decides for those who plan: whether they do, rows of which stride, and for how many numbers of the dictionary */
struct EVCHYBPackDecided {
  int      plans;
  PetscInt stride, ndict;
};

/* Sums over the slices of a thread block, and over all slices */
template <typename T>
struct EVCHYBPackSums {
  T lines[EVCHYB_PACK_CLASSES], slots[EVCHYB_PACK_VALUES];
  T strided; /* lines of pieces whose columns are not stored */
  T entries;
  T longslots; /* places for values of pieces */
  T shared;
};

/* What the host waits for, by one copy: behind the end of the last slice. Zero in the beginning. */
struct EVCHYBPackFound {
  EVCHYBPackLengths                  rows;
  EVCHYBPackDistinct                 distinct;
  EVCHYBPackCost                     cost[EVCHYB_PACK_COSTS];
  EVCHYBPackDecided                  decided;
  EVCHYBPackSums<unsigned long long> sums;
};

/* Kernels that have nothing to do where the lengths of rows tell already that the matrix is not packed; rows is NULL where it is */
struct EVCHYBPackGate {
  const EVCHYBPackLengths *rows;
  EVCHYBPackTerms          terms;
  PetscInt                 m;

  __device__ __forceinline__ bool IsShut() const { return rows && !EVCHYBPackMayPay(&terms, m, rows); }
};

/* The dictionary that pays for a matrix with nz entries, 0 for none */
static __device__ __forceinline__ PetscInt EVCHYBPackDictOf(const EVCHYBPackDistinct *distinct, PetscCount nz)
{
  return EVCHYBPackDictPays((PetscCount)distinct->num, nz) ? (PetscInt)distinct->num : 0;
}

/* Slices and their places */
struct EVCHYBPackPlans {
  EVCHYBPackPlan   *plans;  /* [nslice] */
  EVCHYBPackPlaces *places; /* [nslice + 1] */
};

static constexpr int                EVCHYBPackTable = 4 * EVCHYB_PACK_DICT; /* places of the table of distinct numbers; a number is at the first free one from where its hash says */
static constexpr unsigned long long EVCHYBPackFree  = ~0ull;                /* which are also the bits of one number */

/* Launches that nothing waits for; the table is free, the numbers of what is counted are 0 */
PETSC_INTERN PetscErrorCode EVCHYBPackDistinctEnqueue(const GallopCSR *, const EVCHYBPackGate &, unsigned long long *table, EVCHYBPackBits *numbers, EVCHYBPackDistinct *);
PETSC_INTERN PetscErrorCode EVCHYBPackMeasureEnqueue(const GallopCSR *, const EVCHYBPackGate &, PetscInt ndict, const EVCHYBPackDistinct *, const EVCHYBPackOrder *, EVCHYBPackCost[EVCHYB_PACK_COSTS]);
PETSC_INTERN PetscErrorCode EVCHYBPackPlanEnqueue(const GallopCSR *, PetscInt ndict, const EVCHYBPackDecided *, const EVCHYBPackOrder *, PetscInt nslice, PetscInt npiece, PetscInt most, const EVCHYBPackPlans *, EVCHYBPackSums<unsigned long long> *, void *cub, size_t cubbytes);
PETSC_INTERN PetscErrorCode EVCHYBPackPlanScanBytes(PetscInt most, size_t *cubbytes);

/* What is stored after all has been planned */
PETSC_INTERN PetscErrorCode EVCHYBPackPlan_Device(EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackPlans *, EVCHYBPackPlaces *, void **memory);

static inline void EVCHYBPackFiguresOf(const EVCHYBPackSums<unsigned long long> *sums, EVCHYBPackFigures *figures)
{
  for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) figures->lines[k] = (PetscCount)sums->lines[k];
  for (int k = 0; k < EVCHYB_PACK_VALUES; k++) figures->slots[k] = (PetscCount)sums->slots[k];
  figures->strided = (PetscCount)sums->strided;
  figures->shared  = (PetscCount)sums->shared;
}
