/* SPDX-License-Identifier: BSD-2-Clause */
/* What is shared by tests of solvers on several processes of MPI that add up their sums in kernels: what is the memory of GPUs elsewhere is memory that they share */
#pragma once
#include <map>
#define SUMS_BY_PROCESSES
#define GallopIPCTable_Device GallopIPCTable_Shared
#include "solvetest.h"
#include "mat/impls/base/gallopexchangeedges.c"
#include "mat/impls/base/gallopexchangeipc.c"
#include "mat/impls/base/gallopexchangememory.c"
#include "mat/impls/base/gallopexchangeshared.c"
#include "ksp/ksp/gallopgroup.cu"
#include "ksp/ksp/gallopgroup.c"
#include "ksp/ksp/gallopjacobi.c"
#define KSPGallopCanFuse CanFuseHere /* vectors are on the host */
static PetscErrorCode CanFuseHere(KSP, const char **why)
{
  *why = NULL;
  return PETSC_SUCCESS;
}

/* A product on the host reads a copy of x, which is made anew where PETSc knows that x has changed */
static PetscErrorCode CheckIsTold(Vec x)
{
  struct Copy {
    PetscObjectState         state;
    std::vector<PetscScalar> values;
  };
  static std::map<PetscObjectId, Copy> copies;
  PetscObjectId                        id;
  PetscObjectState                     state;
  const PetscScalar                   *a;
  PetscInt                             n;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)x, &id));
  PetscCall(PetscObjectStateGet((PetscObject)x, &state));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  Copy &copy = copies[id];
  if ((PetscInt)copy.values.size() == n && copy.state == state && memcmp((void *)copy.values.data(), (void *)a, n * sizeof(PetscScalar)))
    emu::Fail("the vector of a product has changed without PETSc's knowledge");
  copy = {state, std::vector<PetscScalar>(a, a + n)};
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product computes the dot product of this process, or none */
static bool dots;

PetscErrorCode MatGallopMultTerms(Mat A, const GallopTerms *t, Vec x, Vec, Vec, Vec z, PetscBool *dot)
{
  const PetscScalar *with, *result;
  PetscInt           n;
  PetscScalar        sum = 0;

  PetscFunctionBegin;
  PetscCall(CheckIsTold(x));
  PetscCall(MatMult(A, x, z));
  if (t->d) PetscCall(VecPointwiseMult(z, t->d, z));
  if (dot) *dot = (PetscBool)dots;
  if (!dot || !dots) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(z, &n));
  PetscCall(VecGetArrayRead(t->with, &with));
  PetscCall(VecGetArrayRead(z, &result));
  for (PetscInt k = 0; k < n; k++) sum += t->dot->conjugate ? with[k] * PetscConj(result[k]) : with[k] * result[k];
  PetscCall(VecRestoreArrayRead(z, &result));
  PetscCall(VecRestoreArrayRead(t->with, &with));
  *t->dot->result = sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGallopMultAgain_Seq(Mat, Vec, Vec, PetscLogDouble)
{
  emu::Fail("a graph on several processes");
}

PetscErrorCode GallopFusedCountFrom(GallopFused *)
{
  emu::Fail("a graph on several processes");
}

PetscErrorCode GallopFusedRecord(GallopFused *, PetscInt, PetscErrorCode (*)(void *, PetscInt), void *, PetscBool *)
{
  emu::Fail("a graph on several processes");
}

PetscErrorCode GallopFusedLaunch(const GallopFused *)
{
  emu::Fail("a graph on several processes");
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceMallocFails(PetscBool, PetscBool *fails)
{
  *fails = PETSC_FALSE;
  return PETSC_SUCCESS;
}

/* Reductions by MPI are few, however long a solve is */
static PetscErrorCode TestSolves(KSPType own, KSPType parent, PetscErrorCode (*enroll)(void), const std::vector<const char *> &variants, PetscErrorCode (*more)(void) = NULL)
{
  const auto  few = [](const Result &r, PCType) { return r.reductions <= 12 && r.kernels >= r.its; };
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCall(PetscInitializeNoArguments());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  emu::random.seed(emu::random() + (unsigned)rank); /* each has its order of threads */
  PetscCall(PetscLogDefaultBegin());
  PetscCall(KSPInitializePackage());
  PetscCall((*enroll)());
  for (const char *options : variants)
    for (KSPType type : {own, parent})
      for (PCType pc : {PCJACOBI, PCNONE, PCSOR})
        for (KSPNormType norm : {KSP_NORM_NONE, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL})
          for (int variant = 0; variant < VARIANTS; variant++) {
            const unsigned where = choice() % 3; /* on none of the processes, on all, or on the first */

            dots = where == 1 || (where == 2 && rank == 0);
            if (!strcmp(parent, KSPBCGS) && (norm == KSP_NORM_NATURAL || (variant == GUESS && norm == KSP_NORM_UNPRECONDITIONED)))
              continue; /* no such norm; or with a guess and on the right, not fused */
            if (full || choice() % 3 == 0) PetscCall(TestSolve({parent, options, few, true}, type, pc, norm, (Variant)variant));
          }
  if (more) PetscCall((*more)());
  printf("  %ld solves, %ld iterations\n", solves, iterations);
  PetscCall(GallopIPCFinalize());
  PetscCall(PetscFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}
