/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Time of products whose ghost values come from one or two neighbors on a ring of processes, by each way that they may take.\n\
  -type <evchyb>      matrix type\n\
  -ways <sf,ipc>      values of -mat_gallop_exchange\n\
  -bytes <1024,32768,1048576> of ghost values from each neighbor\n\
  -neighbors <2>      1 or 2\n\
  -op <mult>          mult, transpose, dense: a product with a dense matrix, or scatter: ghost values by a PetscSF alone, which is of type gallop with ipc and else basic, to and fro\n\
  -columns <16>       of the dense matrix\n\
  -products <10000>   of each kind, in batches of 100; those with vectors multiply the result of the one before\n\n\
A row without a way is the product alone: the matrix has no ghost values.\n\n";

#include <petscmat.h>
#include <petscsf.h>
#include <petscgallop.h>
#include <petscdevice.h>
#include <petsctime.h>
#include "bench.h"

#define BATCH 100

typedef enum { MULT, TRANSPOSE, DENSE, SCATTER } Operation;
static const char *const Operations[] = {"mult", "transpose", "dense", "scatter"};

typedef struct {
  Operation op;
  char      way[16];
  Mat       A, B, C;
  Vec       x, z, ghost;
  PetscSF   sf;
} Case;

/* Ghost values alone, by a PetscSF of its own */
static PetscErrorCode CreateScatter(Case *c)
{
  PetscSF   sf;
  PetscInt  leaves;
  PetscBool basic, device;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(c->way, "sf", &basic));
  PetscCall(MatMult(c->A, c->x, c->z));
  PetscCall(MatGetMultPetscSF(c->A, &sf));
  PetscCall(PetscSFGetGraph(sf, NULL, &leaves, NULL, NULL));
  PetscCall(PetscSFDuplicate(sf, PETSCSF_DUPLICATE_GRAPH, &c->sf));
  PetscCall(PetscSFSetType(c->sf, basic ? PETSCSFBASIC : PETSCSFGALLOP));
  PetscCall(PetscSFSetUp(c->sf));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)c->x, &device, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecCreate(PETSC_COMM_SELF, &c->ghost));
  PetscCall(VecSetSizes(c->ghost, leaves, leaves));
  PetscCall(VecSetType(c->ghost, device ? VECCUDA : VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B is 1, as x is, and so is C */
static PetscErrorCode CreateDense(Case *c, PetscInt columns)
{
  PetscInt n;
  VecType  type;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(c->x, &n));
  PetscCall(VecGetType(c->x, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, type, n, PETSC_DECIDE, PETSC_DETERMINE, columns, PETSC_DECIDE, NULL, &c->B));
  for (PetscInt k = 0; k < columns; k++) {
    Vec b;

    PetscCall(MatDenseGetColumnVecWrite(c->B, k, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(MatDenseRestoreColumnVecWrite(c->B, k, &b));
  }
  PetscCall(MatMatMult(c->A, c->B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &c->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Case *c, PetscBool back)
{
  const Vec x = back ? c->z : c->x, z = back ? c->x : c->z;

  PetscFunctionBegin;
  if (c->op == MULT) PetscCall(MatMult(c->A, x, z));
  else if (c->op == TRANSPOSE) PetscCall(MatMultTranspose(c->A, x, z));
  else if (c->op == DENSE) PetscCall(MatMatMult(c->A, c->B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &c->C));
  else if (back) {
    PetscCall(VecScatterBegin(c->sf, c->ghost, c->x, INSERT_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(c->sf, c->ghost, c->x, INSERT_VALUES, SCATTER_REVERSE));
  } else {
    PetscCall(VecScatterBegin(c->sf, c->x, c->ghost, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(c->sf, c->x, c->ghost, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDestroy(Case *c)
{
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&c->sf));
  PetscCall(MatDestroy(&c->A));
  PetscCall(MatDestroy(&c->B));
  PetscCall(MatDestroy(&c->C));
  PetscCall(VecDestroy(&c->x));
  PetscCall(VecDestroy(&c->z));
  PetscCall(VecDestroy(&c->ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row has the diagonal entry and one in the rows of each neighbor. On two processes both neighbors are the same: then there is one. */
static PetscErrorCode CaseCreate(MatType type, Operation op, const char way[], PetscInt n, PetscInt neighbors, PetscInt columns, Case *c)
{
  PetscMPIInt size;
  PetscInt    rstart, rend;
  char        option[64];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMemzero(c, sizeof(*c)));
  c->op = op;
  PetscCall(PetscStrncpy(c->way, way, sizeof(c->way)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &c->A));
  if (way[0]) {
    PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_mat_gallop_exchange", way));
    PetscCall(PetscOptionsSetValue(NULL, option, way));
    PetscCall(PetscSNPrintf(option, sizeof(option), "%s_", way));
    PetscCall(MatSetOptionsPrefix(c->A, option));
  }
  PetscCall(MatSetSizes(c->A, n, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(c->A, type));
  PetscCall(MatSetFromOptions(c->A));
  PetscCall(MatSetUp(c->A));
  PetscCall(MatGetOwnershipRange(c->A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    const PetscInt near[] = {i, (i + n) % (n * size), (i + n * (size - 1)) % (n * size)}, num = way[0] && size > 1 ? 1 + neighbors : 1;

    for (PetscInt k = 0; k < num; k++) PetscCall(MatSetValue(c->A, i, near[k], (PetscScalar)((PetscReal)1 / num), ADD_VALUES)); /* x stays 1 */
  }
  PetscCall(MatAssemblyBegin(c->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(c->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(c->A, &c->x, &c->z));
  PetscCall(VecSet(c->x, 1.0));
  if (op == DENSE) PetscCall(CreateDense(c, columns));
  if (op == SCATTER) PetscCall(CreateScatter(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait(void)
{
  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds per product, of the slowest process: until the host has launched it, and until it is done; medians of batches */
static PetscErrorCode Measure(Case *c, PetscInt batches, PetscReal us[2])
{
  PetscReal *times[2];

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(batches, &times[0], batches, &times[1]));
  for (PetscInt k = -2; k < batches; k++) { /* the first ones are no part of the time */
    PetscLogDouble start, launched, end;

    PetscCall(Wait());
    PetscCall(PetscTime(&start));
    for (int b = 0; b < BATCH; b++) PetscCall(Multiply(c, (PetscBool)(b % 2)));
    PetscCall(PetscTime(&launched));
    PetscCall(Wait());
    PetscCall(PetscTime(&end));
    if (k < 0) continue;
    times[0][k] = (PetscReal)((launched - start) * 1e6 / BATCH);
    times[1][k] = (PetscReal)((end - start) * 1e6 / BATCH);
  }
  for (int t = 0; t < 2; t++) {
    PetscCall(PetscSortReal(batches, times[t]));
    us[t] = times[t][batches / 2];
  }
  PetscCall(PetscFree2(times[0], times[1]));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, us, 2, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        type[32] = MATEVCHYB, *ways[8];
  PetscInt    nways = 8, nbytes = 16, bytes[16] = {1024, 32768, 1048576}, neighbors = 2, columns = 16, op = MULT, products = 10000;
  PetscMPIInt size;
  PetscBool   set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BenchOptionByItself("-mat_gallop_build", "first")); /* products are timed, not whether they pay */
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-neighbors", &neighbors, NULL));
  PetscCheck(neighbors == 1 || neighbors == 2, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "Option -neighbors is %" PetscInt_FMT ", but must be 1 or 2", neighbors);
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-op", Operations, 4, &op, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-bytes", bytes, &nbytes, &set));
  if (!set) nbytes = 3;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-ways", ways, &nways, &set));
  if (!set) {
    nways = 2;
    PetscCall(PetscStrallocpy("sf", &ways[0]));
    PetscCall(PetscStrallocpy("ipc", &ways[1]));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "us per product (%s), %d processes, medians of batches of %d\n%-10s %-8s %10s %10s %s\n", Operations[op], size, BATCH, "bytes", "way", "host", "all", "exchanges by IPC, by NCCL, by PetscSF"));
  for (PetscInt b = 0; b < nbytes; b++) {
    for (PetscInt w = op == SCATTER ? 0 : -1; w < nways; w++) {
      Case                c;
      PetscReal           us[2];
      MatGallopStatistics s;

      PetscCall(CaseCreate(type, (Operation)op, w < 0 ? "" : ways[w], PetscMax(1, bytes[b] / (PetscInt)sizeof(PetscScalar)), neighbors, columns, &c));
      PetscCall(Measure(&c, PetscMax(1, products / BATCH), us));
      s.exchanges_nccl = 0;
      if (op == SCATTER) PetscCall(PetscSFGallopGetExchanges(c.sf, &s.exchanges_ipc, &s.exchanges_sf));
      else PetscCall(MatGallopGetStatistics(c.A, &s));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-10" PetscInt_FMT " %-8s %10.2f %10.2f %" PetscInt64_FMT ", %" PetscInt64_FMT ", %" PetscInt64_FMT "\n", bytes[b], w < 0 ? "-" : c.way, (double)us[0], (double)us[1], s.exchanges_ipc, s.exchanges_nccl, s.exchanges_sf));
      PetscCall(CaseDestroy(&c));
    }
  }
  for (PetscInt w = 0; w < nways; w++) PetscCall(PetscFree(ways[w]));
  PetscCall(PetscFinalize());
  return 0;
}
