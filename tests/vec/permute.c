/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "VecGallopPermute(): there and back, in place and not, on the host and on the GPU, without copies between them once the order is known; orders that are none.\n\n";

#include "../galloptest.h"
#include <petscdevice.h>

/* An order of the n entries from rstart on: a walk whose step has no common factor with n */
static PetscErrorCode CreateOrder(PetscInt n, PetscInt rstart, IS *order)
{
  PetscInt *k, step = PetscMax(2 * n / 3, 1), a, b;

  PetscFunctionBegin;
  for (;; step++) {
    for (a = step, b = n; b;) {
      const PetscInt rest = a % b;

      a = b;
      b = rest;
    }
    if (a == 1 || !n) break;
  }
  PetscCall(PetscMalloc1(n, &k));
  for (PetscInt i = 0; i < n; i++) k[i] = rstart + (PetscInt)(((PetscCount)i * step + n / 2) % n);
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n, k, PETSC_OWN_POINTER, order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What y should hold, by the definition */
static PetscErrorCode Check(Vec x, IS order, PetscBool inverse, Vec y, const char what[])
{
  const PetscScalar *a, *b;
  const PetscInt    *k;
  PetscInt           n, rstart;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetOwnershipRange(x, &rstart, NULL));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  PetscCall(ISGetIndices(order, &k));
  for (PetscInt i = 0; i < n; i++) {
    const PetscInt from = inverse ? i : k[i] - rstart, to = inverse ? k[i] - rstart : i;

    PetscCheck(b[to] == a[from], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %g, not %g", what, to, (double)PetscRealPart(b[to]), (double)PetscRealPart(a[from]));
  }
  PetscCall(ISRestoreIndices(order, &k));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscLogDouble Copies(void)
{
#if PetscDefined(HAVE_DEVICE)
  return petsc_ctog_ct + petsc_gtoc_ct;
#else
  return 0;
#endif
}

static PetscErrorCode Permute(PetscInt n, VecType xtype, VecType ytype)
{
  Vec            x, y, z;
  IS             order;
  PetscInt       rstart;
  PetscBool      same;
  PetscLogDouble before;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, n, PETSC_DETERMINE));
  PetscCall(VecSetType(x, xtype));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &y));
  PetscCall(VecSetSizes(y, n, PETSC_DETERMINE));
  PetscCall(VecSetType(y, ytype));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecGetOwnershipRange(x, &rstart, NULL));
  PetscCall(CreateOrder(n, rstart, &order));
  PetscCall(TestSetVec(x, 5));
  for (int inverse = 0; inverse < 2; inverse++) {
    PetscCall(TestSpoilVec(y));
    PetscCall(VecGallopPermute(x, order, (PetscBool)inverse, y));
    PetscCall(Check(x, order, (PetscBool)inverse, y, inverse ? "inverse" : "forward"));
    PetscCall(VecCopy(x, z));
    PetscCall(VecGallopPermute(z, order, (PetscBool)inverse, z));
    PetscCall(Check(x, order, (PetscBool)inverse, z, inverse ? "inverse in place" : "forward in place"));
    PetscCall(VecGallopPermute(z, order, PetscNot(inverse), z));
    PetscCall(VecEqual(x, z, &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "there and back is not where it began");
  }
  /* by now the order is where the vectors are; two that are at one place stay there */
  PetscCall(PetscStrcmp(xtype, ytype, &same));
  PetscCall(VecSet(x, 2.0));
  PetscCall(VecSet(y, 3.0));
  before = Copies();
  PetscCall(VecGallopPermute(x, order, PETSC_FALSE, y));
  PetscCall(VecGallopPermute(y, order, PETSC_TRUE, x));
  PetscCall(VecGallopPermute(y, order, PETSC_TRUE, y));
  if (same) PetscCheck(Copies() == before, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g copies between host and GPU", Copies() - before);
  PetscCall(ISDestroy(&order));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The error of an order, on every process, whose last entry is changed to what is given */
static PetscErrorCode BadOrder(PetscInt n, PetscInt extra, PetscInt last, PetscErrorCode wanted, const char what[])
{
  Vec            x;
  IS             order;
  PetscInt      *k, rstart;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, n, PETSC_DETERMINE, &x));
  PetscCall(VecGetOwnershipRange(x, &rstart, NULL));
  PetscCall(PetscMalloc1(n + extra, &k));
  for (PetscInt i = 0; i < n + extra; i++) k[i] = rstart + i;
  if (!extra) k[n - 1] = rstart + last;
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n + extra, k, PETSC_OWN_POINTER, &order));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = VecGallopPermute(x, order, PETSC_FALSE, x);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s gave error %d, not %d", what, (int)ierr, (int)wanted);
  PetscCall(ISDestroy(&order));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt rank;
  PetscBool   device = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(TestHasDevice(&device));
  for (PetscInt n = 0; n < 3; n++) {
    const PetscInt local = n == 0 ? 0 : n == 1 ? 1 + 2 * rank : 1000 - 300 * (rank % 3);

    PetscCall(Permute(local, VECSTANDARD, VECSTANDARD));
    if (!device) continue;
    PetscCall(Permute(local, VECCUDA, VECCUDA));
    PetscCall(Permute(local, VECCUDA, VECSTANDARD));
    PetscCall(Permute(local, VECSTANDARD, VECCUDA));
  }
  PetscCall(BadOrder(10, 0, 3, PETSC_ERR_ARG_WRONG, "an entry twice"));
  PetscCall(BadOrder(10, 0, 10, PETSC_ERR_ARG_OUTOFRANGE, "an entry of the next process"));
  PetscCall(BadOrder(10, 0, -1, PETSC_ERR_ARG_OUTOFRANGE, "an entry of the process before"));
  PetscCall(BadOrder(10, 1, 0, PETSC_ERR_ARG_SIZ, "one entry too many"));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 4}}
    output_file: output/empty.out

TEST*/
