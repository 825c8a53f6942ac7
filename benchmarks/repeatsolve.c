/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Solves one system again and again, with each matrix type: a stencil on a 3D grid, by the KSP and PC of the options.\n\
  -types a,b       matrix types, the first is what the others are compared with (default: aijcusparse,evchyb, without a GPU aij,evchyb); type+solver takes that solver\n\
                   in place of -ksp_type's, such as evchyb+gallopcg\n\
  -grid n          points in each direction (default 32)\n\
  -dof d           unknowns per point (default 1, at most 8)\n\
  -box             27 points, not 7\n\
  -solves k        solves after the first, whose median is shown (default 5)\n\
  -new_values      the values change before each of them, so that KSPSolve() sets the preconditioner up again\n\
Output: one line per type, fields separated by tabs\n\
  type unknowns nonzeros setup_ms first_ms later_ms iterations residual gpu_MB\n\
  setup_ms is that of KSPSetUp(), first_ms and later_ms those of KSPSolve(), residual the true one over that of x = 0, gpu_MB what the GPU has in use beyond what it had before\n\
With -log_view, set-up and first solve are a stage that is named after the type\n\n";

#include "bench.h"
#include <petscdmda.h>
#include <petscgallop.h>
#include <petscksp.h>

typedef struct {
  PetscInt  grid, dof, solves;
  PetscBool box, newvalues, quiet;
} Problem;

/* what: a matrix type, or type+solver */
static PetscErrorCode Run(const Problem *p, const char what[], const BenchPlace *place, PetscBool device)
{
  const BenchStencil         stencil = {{p->grid, p->grid, p->grid}, {PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE}, p->dof, p->box, PETSC_FALSE};
  char                       type[64], *solver;
  DM                         da;
  Mat                        A;
  Vec                        x, b, r;
  KSP                        ksp;
  PC                         pc;
  PetscBool                  multigrid;
  PetscReal                 *later, norm, norm0;
  PetscLogDouble             t[3], before, after, begin, end;
  PetscInt                   its, n;
  MatInfo                    info;
  PETSC_UNUSED PetscLogStage stage;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(type, what, sizeof(type)));
  PetscCall(PetscStrchr(type, '+', &solver));
  if (solver) *solver++ = 0;
  PetscCall((*place->memory)(&before));
  PetscCall(BenchStencilCreate(&stencil, type, device, &da, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSetRandom(b, NULL)); /* no product: the first solve has the matrix's copy to the GPU and the build of its format */
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  if (solver) PetscCall(KSPSetType(ksp, solver));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCMG, &multigrid));
  if (multigrid) { /* its levels are those of the grid */
    PetscCall(KSPSetDM(ksp, da));
    PetscCall(KSPSetDMActive(ksp, KSP_DMACTIVE_ALL, PETSC_FALSE));
  }

  if (!p->quiet) {
    PetscCall(PetscLogStageGetId(what, &stage)); /* a type may be named twice */
    if (stage < 0) PetscCall(PetscLogStageRegister(what, &stage));
    PetscCall(PetscLogStagePush(stage));
  }
  PetscCall(BenchNow(device, &t[0]));
  PetscCall(KSPSetUp(ksp));
  PetscCall(BenchNow(device, &t[1]));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(BenchNow(device, &t[2]));
  if (!p->quiet) PetscCall(PetscLogStagePop());
  PetscCall(PetscMalloc1(p->solves, &later));
  for (PetscInt k = 0; k < p->solves; k++) {
    if (p->newvalues) {
      PetscCall(MatScale(A, k % 2 ? 0.5 : 2.0));
      PetscCall(VecScale(b, k % 2 ? 0.5 : 2.0));
      PetscCall(KSPSetOperators(ksp, A, A));
    }
    PetscCall(BenchNow(device, &begin));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(BenchNow(device, &end));
    later[k] = (PetscReal)(end - begin);
  }
  PetscCall(PetscSortReal(p->solves, later));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(VecNorm(b, NORM_2, &norm0));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall((*place->memory)(&after));
  PetscCall(VecGetSize(x, &n));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  if (!p->quiet)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\t%" PetscInt_FMT "\t%.0f\t%.3f\t%.3f\t%.3f\t%" PetscInt_FMT "\t%.1e\t%.1f\n", what, n, info.nz_used, 1e3 * (t[1] - t[0]), 1e3 * (t[2] - t[1]), 1e3 * (double)later[p->solves / 2], its, (double)(norm / norm0), (after - before) / 1e6));
  PetscCall(PetscFree(later));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Problem           p = {.grid = 32, .dof = 1, .solves = 5}, small;
  char             *types[BENCH_MOST_NAMES];
  const char       *defaults[2] = {MATAIJ, MATEVCHYB};
  PetscInt          n;
  PetscBool         device = PETSC_FALSE;
  const BenchPlace *place  = &BenchHost;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
#if defined(PETSC_HAVE_CUDA)
  PetscCall(BenchDeviceAvailable(&device));
  if (device) {
    place       = &BenchDevice;
    defaults[0] = MATAIJCUSPARSE;
  }
#endif
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-grid", &p.grid, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-dof", &p.dof, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-solves", &p.solves, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-box", &p.box, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-new_values", &p.newvalues, NULL));
  PetscCheck(p.grid > 1 && p.dof > 0 && p.dof <= BENCH_MOST_DOF && p.solves > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-grid has to be 2 or more, -dof 1 to %d, -solves 1 or more", BENCH_MOST_DOF);
  PetscCall(BenchList("-types", 2, defaults, &n, types));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "# type\tunknowns\tnonzeros\tsetup_ms\tfirst_ms\tlater_ms\titerations\tresidual\tgpu_MB\n"));
  small       = p;
  small.grid  = p.grid % 2 ? PetscMin(p.grid, 17) : 4; /* for multigrid four times half of it, and one more */
  small.quiet = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k++) PetscCall(Run(&small, types[k], place, device)); /* libraries and the GPU are ready then, for the first type as for the others */
  for (PetscInt k = 0; k < n; k++) PetscCall(Run(&p, types[k], place, device));
  PetscCall(BenchFreeList(n, types));
  PetscCall(PetscFinalize());
  return 0;
}
