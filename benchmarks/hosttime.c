/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Time of the host's thread for a product: with a small matrix, the GPU's work is less than the host's.\n\
  -types a,b       matrix types, the first is what the others are compared with (default: aijcusparse,evchyb, without a GPU aij,evchyb)\n\
  -products n      products of each kind (default 10000)\n\
  -rows n          rows of the matrix (default 64)\n\
  -columns n       columns of the dense matrix (default 4)\n\n";

#include <petscmat.h>
#include <petscgallop.h>
#include <petscdevice.h>
#include <petsctime.h>
#include "bench.h"

/* The queue of the GPU takes about a thousand launches; a full one would have the host wait, so it is emptied, outside of the time, before */
#define BATCH 100

typedef enum { MULT, MULTADD, TRANSPOSE, TRANSPOSEADD, HERMITIAN, HERMITIANADD, MATMATMULT, PTAP, KINDS } Kind;
static const char *const KindNames[] = {"MatMult", "MatMultAdd", "MatMultTranspose", "MatMultTransposeAdd", "MatMultHermitianTranspose", "MatMultHermitianTransposeAdd", "MatMatMult", "MatPtAP"};

static PetscErrorCode CreateMatrix(MatType type, PetscInt n, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    if (i) PetscCall(MatSetValue(*A, i, i - 1, -1.0, INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(*A, i, i + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(*A, i, i, 2.0 + i % 3, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What products of one type work on */
typedef struct {
  Mat A, B, C, P;
  Vec x, y, z;
} Operands;

static PetscErrorCode OperandsCreate(MatType type, PetscInt n, PetscInt columns, Operands *o)
{
  VecType vtype;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(type, n, &o->A));
  PetscCall(MatCreateVecs(o->A, &o->x, &o->z));
  PetscCall(VecDuplicate(o->z, &o->y));
  PetscCall(VecSet(o->x, 1.0));
  PetscCall(VecSet(o->y, 1.0));
  PetscCall(MatGetVecType(o->A, &vtype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vtype, PETSC_DECIDE, PETSC_DECIDE, n, columns, PETSC_DEFAULT, NULL, &o->B));
  PetscCall(MatSetRandom(o->B, NULL));
  PetscCall(MatMatMult(o->A, o->B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &o->C));
  PetscCall(MatPtAP(o->A, o->A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &o->P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperandsDestroy(Operands *o)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&o->P));
  PetscCall(MatDestroy(&o->C));
  PetscCall(MatDestroy(&o->B));
  PetscCall(VecDestroy(&o->x));
  PetscCall(VecDestroy(&o->y));
  PetscCall(VecDestroy(&o->z));
  PetscCall(MatDestroy(&o->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait(void)
{
  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Operands *o, Kind kind)
{
  PetscFunctionBegin;
  switch (kind) {
  case MULT:
    PetscCall(MatMult(o->A, o->x, o->z));
    break;
  case MULTADD:
    PetscCall(MatMultAdd(o->A, o->x, o->y, o->z));
    break;
  case TRANSPOSE:
    PetscCall(MatMultTranspose(o->A, o->x, o->z));
    break;
  case TRANSPOSEADD: /* with y as z: AIJCUSPARSE gives something else otherwise */
    PetscCall(MatMultTransposeAdd(o->A, o->x, o->z, o->z));
    break;
  case HERMITIAN:
    PetscCall(MatMultHermitianTranspose(o->A, o->x, o->z));
    break;
  case HERMITIANADD:
    PetscCall(MatMultHermitianTransposeAdd(o->A, o->x, o->z, o->z));
    break;
  case MATMATMULT:
    PetscCall(MatMatMult(o->A, o->B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &o->C));
    break;
  default:
    PetscCall(MatPtAP(o->A, o->A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &o->P));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds of the host's thread per product: the median of batches, which the types take by turns */
static PetscErrorCode Measure(PetscInt ntypes, char *const types[], Operands o[], Kind kind, PetscInt batches, PetscReal us[])
{
  PetscReal *times;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(ntypes * batches, &times));
  for (PetscInt k = -1; k < batches; k++) { /* the first is no part of the time */
    for (PetscInt t = 0; t < ntypes; t++) {
      PetscLogDouble start, end;
      PetscBool      cusparse;

      us[t] = 0;
      PetscCall(PetscStrendswith(types[t], MATAIJCUSPARSE, &cusparse));
      if (!PetscDefined(USE_COMPLEX) && cusparse && (kind == HERMITIAN || kind == HERMITIANADD)) continue; /* an error of cuSPARSE's, for real matrices */
      if (kind == TRANSPOSEADD || kind == HERMITIANADD) PetscCall(VecSet(o[t].z, 0.0));
      PetscCall(Wait());
      PetscCall(PetscTime(&start));
      for (int b = 0; b < BATCH; b++) PetscCall(Product(&o[t], kind));
      PetscCall(PetscTime(&end));
      us[t] = 1;
      if (k >= 0) times[t * batches + k] = (PetscReal)((end - start) * 1e6 / BATCH);
    }
  }
  for (PetscInt t = 0; t < ntypes; t++) {
    if (us[t] == 0) continue;
    PetscCall(PetscSortReal(batches, times + t * batches));
    us[t] = times[t * batches + batches / 2];
  }
  PetscCall(PetscFree(times));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     *types[16];
  PetscInt  ntypes = 16, products = 10000, n = 64, columns = 4;
  Operands  o[16];
  PetscReal us[16];
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BenchOptionByItself("-mat_gallop_build", "first")); /* products are timed, not whether they pay */
  PetscCall(BenchOptionByItself("-mat_gallop_explicit_transpose", "never")); /* those that are the parent's are timed too */
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &ntypes, &set));
  if (!set) {
    const char *const gpus = getenv("GALLOP_GPUS");

    ntypes = 2;
    PetscCall(PetscStrallocpy(gpus && strcmp(gpus, "0") ? MATAIJCUSPARSE : MATAIJ, &types[0]));
    PetscCall(PetscStrallocpy(MATEVCHYB, &types[1]));
  }
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(OperandsCreate(types[t], n, columns, &o[t]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "us of the host per product, %" PetscInt_FMT " rows, median of batches of %d\n%-30s", n, BATCH, ""));
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %14s", types[t]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  for (int kind = 0; kind < KINDS; kind++) {
    PetscCall(Measure(ntypes, types, o, (Kind)kind, PetscMax(1, products / BATCH), us));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-30s", KindNames[kind]));
    for (PetscInt t = 0; t < ntypes; t++) {
      if (us[t] > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %14.2f", (double)us[t]));
      else PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %14s", "-"));
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  }
  for (PetscInt t = 0; t < ntypes; t++) {
    PetscCall(OperandsDestroy(&o[t]));
    PetscCall(PetscFree(types[t]));
  }
  PetscCall(PetscFinalize());
  return 0;
}
