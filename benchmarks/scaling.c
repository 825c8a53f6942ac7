/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Times products and solves with a 7-point stencil on a 3D grid that is spread over all processes, with each matrix type.\n\
  -types a,b       matrix types, the first is what the others are compared with (default: aijcusparse,evchyb, without a GPU aij,evchyb)\n\
  -grid n          points in each direction (default 64)\n\
  -scaled <1>      each row and column is scaled by a number of its own; without, there are two values\n\
  -weak            so many for each process: the grid has the blocks of all of them side by side\n\
  -columns k       of the dense matrix, 0 for no products with one (default 32)\n\
  -solvers a+b,... KSP and PC (default: cg+jacobi,gallopcg+jacobi); those that begin with gallop are for types of Gallop's only\n\
  -iterations n    of a solve at most (default 100), which ends before at a relative tolerance of 1e-8\n\
-mat_gallop_exchange chooses how ghost values travel. Formats are built for the first product, unless -mat_gallop_build says otherwise.\n\
Output: a line per type and what is timed, fields separated by tabs\n\
  type processes unknowns what first_ms later_ms iterations host_KB way\n\
  what: MatMult, MatMatMult or a solver; first_ms has builds and set-ups in it, for the first type also the loading of kernels, later_ms is a median per product or solve, host_KB what all processes copy between host and GPU in one of\n\
  these, way how ghost values of the matrix travel\n\n";

#include "bench.h"
#include <petscgallop.h>
#include <petscksp.h>
#include <petscdevice.h>

#define PRODUCTS 20 /* in a batch; of dense ones a quarter */
#define BATCHES  5

typedef struct {
  MPI_Comm    comm;
  PetscMPIInt size;
  PetscBool   device;
  PetscInt    columns, iterations, nsolvers;
  char       *solvers[BENCH_MOST_NAMES];
  PetscReal   norms[2]; /* of the products of the first type */
} Scaling;

typedef struct {
  const char *type, *what;
  Mat         A, B, C;
  Vec         x, y;
  KSP         ksp;
} Work;

static PetscErrorCode Do(const Work *w)
{
  PetscFunctionBegin;
  if (w->ksp) PetscCall(KSPSolve(w->ksp, w->x, w->y));
  else if (w->B) PetscCall(MatMatMult(w->A, w->B, MAT_REUSE_MATRIX, PETSC_DETERMINE, (Mat *)&w->C));
  else PetscCall(MatMult(w->A, w->x, w->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopiedBytes(MPI_Comm comm, PetscLogDouble *bytes)
{
  PetscFunctionBegin;
  *bytes = 0;
#if defined(PETSC_HAVE_DEVICE)
  *bytes = petsc_ctog_sz + petsc_gtoc_sz;
#endif
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, bytes, 1, MPI_DOUBLE, MPI_SUM, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetWay(Mat A, const char *way[])
{
  MatGallopStatistics s;
  PetscBool           ours;

  PetscFunctionBegin;
  PetscCall(MatGallopIsFormat(A, &ours));
  *way = "-";
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetStatistics(A, &s));
  *way = s.exchanges_ipc ? "ipc" : s.exchanges_nccl ? "nccl" : s.exchanges_sf ? "sf" : "-";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first time, and those after it in batches that begin and end together on all processes */
static PetscErrorCode Measure(const Scaling *c, const Work *w, PetscInt n, PetscLogDouble first)
{
  PetscReal      later[BATCHES];
  PetscLogDouble begin, end, before, after;
  PetscInt       unknowns, its = 0;
  const char    *way;

  PetscFunctionBegin;
  PetscCall(CopiedBytes(c->comm, &before));
  for (PetscInt b = 0; b < BATCHES; b++) {
    PetscCall(BenchNow(c->device, &begin));
    for (PetscInt k = 0; k < n; k++) PetscCall(Do(w));
    PetscCall(BenchNow(c->device, &end));
    later[b] = (PetscReal)((end - begin) / n);
  }
  PetscCall(CopiedBytes(c->comm, &after));
  PetscCall(PetscSortReal(BATCHES, later));
  PetscCall(MatGetSize(w->A, &unknowns, NULL));
  if (w->ksp) PetscCall(KSPGetIterationNumber(w->ksp, &its));
  PetscCall(GetWay(w->A, &way));
  PetscCall(PetscPrintf(c->comm, "%s\t%d\t%" PetscInt_FMT "\t%s\t%.4f\t%.4f\t%" PetscInt_FMT "\t%.3f\t%s\n", w->type, c->size, unknowns, w->what, 1e3 * first, 1e3 * (double)later[BATCHES / 2], its, (after - before) / (1e3 * n * BATCHES), way));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All types have the same result */
static PetscErrorCode Compare(const Work *w, PetscReal norm, PetscReal *other)
{
  PetscFunctionBegin;
  if (*other == 0) *other = norm;
  PetscCheck(PetscAbsReal(norm - *other) <= 1000 * PETSC_MACHINE_EPSILON * norm, PetscObjectComm((PetscObject)w->A), PETSC_ERR_PLIB, "%s with %s: the result has the norm %g, not %g", w->what, w->type, (double)norm, (double)*other);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Scaling *c, Work *w)
{
  PetscLogDouble begin, end;
  PetscReal      norm;

  PetscFunctionBegin;
  w->what = "MatMult";
  PetscCall(BenchNow(c->device, &begin));
  PetscCall(Do(w));
  PetscCall(BenchNow(c->device, &end));
  PetscCall(Measure(c, w, PRODUCTS, end - begin));
  PetscCall(VecNorm(w->y, NORM_2, &norm));
  PetscCall(Compare(w, norm, &c->norms[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseProducts(Scaling *c, Work *w)
{
  PetscLogDouble begin, end;
  PetscReal      norm;
  PetscInt       n;
  VecType        type;

  PetscFunctionBegin;
  w->what = "MatMatMult";
  PetscCall(VecGetLocalSize(w->x, &n));
  PetscCall(VecGetType(w->x, &type));
  PetscCall(MatCreateDenseFromVecType(c->comm, type, n, PETSC_DECIDE, PETSC_DETERMINE, c->columns, PETSC_DECIDE, NULL, &w->B));
  for (PetscInt k = 0; k < c->columns; k++) {
    Vec b;

    PetscCall(MatDenseGetColumnVecWrite(w->B, k, &b));
    PetscCall(VecCopy(w->x, b));
    PetscCall(VecScale(b, k + 1));
    PetscCall(MatDenseRestoreColumnVecWrite(w->B, k, &b));
  }
  PetscCall(BenchNow(c->device, &begin));
  PetscCall(MatMatMult(w->A, w->B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &w->C));
  PetscCall(BenchNow(c->device, &end));
  PetscCall(Measure(c, w, PRODUCTS / 4, end - begin));
  PetscCall(MatNorm(w->C, NORM_FROBENIUS, &norm));
  PetscCall(Compare(w, norm, &c->norms[1]));
  PetscCall(MatDestroy(&w->B));
  PetscCall(MatDestroy(&w->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solves(const Scaling *c, Work *w, const char solver[])
{
  char              *type, *pctype;
  PC                 pc;
  PetscBool          gallop, ours;
  PetscLogDouble     begin, end;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatGallopIsFormat(w->A, &ours));
  PetscCall(PetscStrbeginswith(solver, "gallop", &gallop));
  if (gallop && !ours) PetscFunctionReturn(PETSC_SUCCESS);
  w->what = solver;
  PetscCall(PetscStrallocpy(solver, &type));
  PetscCall(PetscStrchr(type, '+', &pctype));
  PetscCheck(pctype, c->comm, PETSC_ERR_ARG_WRONG, "-solvers has %s, which is no KSP+PC", solver);
  *pctype++ = 0;
  PetscCall(KSPCreate(c->comm, &w->ksp));
  PetscCall(KSPSetOperators(w->ksp, w->A, w->A));
  PetscCall(KSPSetType(w->ksp, type));
  PetscCall(KSPGetPC(w->ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(w->ksp, 1e-8, PETSC_CURRENT, PETSC_CURRENT, c->iterations));
  PetscCall(KSPSetFromOptions(w->ksp));
  PetscCall(BenchNow(c->device, &begin));
  PetscCall(KSPSolve(w->ksp, w->x, w->y));
  PetscCall(BenchNow(c->device, &end));
  PetscCall(Measure(c, w, 1, end - begin));
  PetscCall(KSPGetConvergedReason(w->ksp, &reason));
  PetscCheck(reason > 0 || reason == KSP_DIVERGED_ITS, c->comm, PETSC_ERR_NOT_CONVERGED, "%s with %s: %s", solver, w->type, KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&w->ksp));
  PetscCall(PetscFree(type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Scaling *c, const BenchStencil *stencil, const char type[])
{
  Work        w = {.type = type};
  DM          da;
  PetscRandom random;

  PetscFunctionBegin;
  PetscCall(BenchStencilCreate(stencil, type, c->device, &da, &w.A));
  PetscCall(MatCreateVecs(w.A, &w.x, &w.y));
  PetscCall(PetscRandomCreate(c->comm, &random)); /* the same numbers for all types: those of a vector on the GPU are others by default */
  PetscCall(PetscRandomSetType(random, PETSCRANDER48));
  PetscCall(VecSetRandom(w.x, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(Products(c, &w));
  if (c->columns) PetscCall(DenseProducts(c, &w));
  for (PetscInt s = 0; s < c->nsolvers; s++) PetscCall(Solves(c, &w, c->solvers[s]));
  PetscCall(VecDestroy(&w.x));
  PetscCall(VecDestroy(&w.y));
  PetscCall(MatDestroy(&w.A));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of processes as near to a cube as can be, more in the last directions */
static void Blocks(PetscMPIInt size, PetscInt n[3])
{
  PetscInt sum = 3 * size + 1;

  for (PetscInt a = 1; a <= size; a++)
    for (PetscInt b = a; size % a == 0 && b <= size / a; b++)
      if (size / a % b == 0 && size / a / b >= b && a + b + size / a / b < sum) {
        n[0] = a;
        n[1] = b;
        n[2] = size / a / b;
        sum  = n[0] + n[1] + n[2];
      }
}

int main(int argc, char **argv)
{
  Scaling           c             = {.columns = 32, .iterations = 100, .nsolvers = BENCH_MOST_NAMES};
  BenchStencil      stencil       = {.dof = 1, .box = PETSC_FALSE, .scaled = PETSC_TRUE}, small;
  const char       *defaults[2]   = {MATAIJ, MATEVCHYB};
  const char *const solvers[2]    = {"cg+jacobi", "gallopcg+jacobi"};
  char             *types[BENCH_MOST_NAMES];
  PetscInt          n, grid = 64;
  PetscBool         weak = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BenchOptionByItself("-mat_gallop_build", "first")); /* products are timed, not whether they pay */
  PetscCall(GallopInitializePackage());
  c.comm = PETSC_COMM_WORLD;
  PetscCallMPI(MPI_Comm_size(c.comm, &c.size));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(BenchDeviceAvailable(&c.device));
  if (c.device) defaults[0] = MATAIJCUSPARSE;
#endif
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-grid", &grid, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-scaled", &stencil.scaled, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-weak", &weak, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &c.columns, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-iterations", &c.iterations, NULL));
  PetscCheck(grid > 1 && c.columns >= 0 && c.iterations > 0, c.comm, PETSC_ERR_ARG_OUTOFRANGE, "-grid has to be 2 or more, -columns 0 or more, -iterations 1 or more");
  PetscCall(BenchList("-types", 2, defaults, &n, types));
  PetscCall(BenchList("-solvers", 2, solvers, &c.nsolvers, c.solvers));
  Blocks(c.size, stencil.processes);
  for (int d = 0; d < 3; d++) stencil.grid[d] = weak ? grid * stencil.processes[d] : grid;
  small = stencil;
  for (int d = 0; d < 3; d++) small.grid[d] = 4 * stencil.processes[d];
  PetscCall(PetscPrintf(c.comm, "# type\tprocesses\tunknowns\twhat\tfirst_ms\tlater_ms\titerations\thost_KB\tway\n"));
  for (PetscInt k = 0; k < n; k++) { /* libraries and the GPU are ready then */
    DM  da;
    Mat A;
    Vec x, y;

    PetscCall(BenchStencilCreate(&small, types[k], c.device, &da, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscCall(DMDestroy(&da));
  }
  for (PetscInt k = 0; k < n; k++) PetscCall(Run(&c, &stencil, types[k]));
  PetscCall(BenchFreeList(n, types));
  PetscCall(BenchFreeList(c.nsolvers, c.solvers));
  PetscCall(PetscFinalize());
  return 0;
}
