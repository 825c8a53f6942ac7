/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A repeated solve with a Gallop type copies nothing between host and GPU that AIJCUSPARSE does not copy, and waits no more often for the GPU.\n\n";

#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif

#include "../galloptest.h"
#include <petscdmda.h>
#include <petscksp.h>

#if PetscDefined(HAVE_CUDA)
  #include <dlfcn.h>
  #include <string.h>
  #include <petscdevice_cuda.h>
#endif

#define POINTS 33

typedef struct {
  PetscLogDouble in, out, waits;
} Traffic;

static PetscLogDouble waits = 0;

#if PetscDefined(HAVE_CUDA)
static PetscBool waiting = PETSC_FALSE; /* the last query found a busy stream */

/* These go before the runtime library's own, for PETSc and for this library. PETSc first asks whether a stream is idle, and waits only if it is not:
   the question counts, for how often it is idle differs between runs. Fused solvers look at memory, and ask CUDA from time to time whether it has failed: that does not count. */
PETSC_VISIBILITY_PUBLIC cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  cudaError_t (*real)(cudaStream_t), err;
  Dl_info caller = {NULL, NULL, NULL, NULL};

  *(void **)&real = dlsym(RTLD_NEXT, "cudaStreamQuery");
  (void)dladdr(__builtin_return_address(0), &caller);
  if (caller.dli_fname && strstr(caller.dli_fname, "libgallop")) return (*real)(stream);
  waits++;
  err     = (*real)(stream);
  waiting = (PetscBool)(err == cudaErrorNotReady);
  return err;
}

PETSC_VISIBILITY_PUBLIC cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  cudaError_t (*real)(cudaStream_t);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaStreamSynchronize");
  if (!waiting) waits++;
  waiting = PETSC_FALSE;
  return (*real)(stream);
}

PETSC_VISIBILITY_PUBLIC cudaError_t cudaDeviceSynchronize(void)
{
  cudaError_t (*real)(void);

  *(void **)&real = dlsym(RTLD_NEXT, "cudaDeviceSynchronize");
  waits++;
  return (*real)();
}

  /* cuBLAS waits for the results of these, which go to the host */
  #define WAITING_DOT(name, type) \
    PETSC_VISIBILITY_PUBLIC cublasStatus_t name(cublasHandle_t handle, int n, const type *x, int incx, const type *y, int incy, type *result) \
    { \
      cublasStatus_t (*real)(cublasHandle_t, int, const type *, int, const type *, int, type *); \
\
      *(void **)&real = dlsym(RTLD_NEXT, PetscStringize(name)); \
      waits++; \
      return (*real)(handle, n, x, incx, y, incy, result); \
    }
  #define WAITING_NORM(name, type, norm) \
    PETSC_VISIBILITY_PUBLIC cublasStatus_t name(cublasHandle_t handle, int n, const type *x, int incx, norm *result) \
    { \
      cublasStatus_t (*real)(cublasHandle_t, int, const type *, int, norm *); \
\
      *(void **)&real = dlsym(RTLD_NEXT, PetscStringize(name)); \
      waits++; \
      return (*real)(handle, n, x, incx, result); \
    }

  #if PetscDefined(USE_COMPLEX) && PetscDefined(USE_REAL_SINGLE)
WAITING_DOT(cublasCdotc_v2, cuComplex)
WAITING_DOT(cublasCdotu_v2, cuComplex)
WAITING_NORM(cublasScnrm2_v2, cuComplex, float)
  #elif PetscDefined(USE_COMPLEX)
WAITING_DOT(cublasZdotc_v2, cuDoubleComplex)
WAITING_DOT(cublasZdotu_v2, cuDoubleComplex)
WAITING_NORM(cublasDznrm2_v2, cuDoubleComplex, double)
  #elif PetscDefined(USE_REAL_SINGLE)
WAITING_DOT(cublasSdot_v2, float)
WAITING_NORM(cublasSnrm2_v2, float, float)
  #else
WAITING_DOT(cublasDdot_v2, double)
WAITING_NORM(cublasDnrm2_v2, double, double)
  #endif
#endif

static Traffic TrafficSince(Traffic before)
{
  Traffic now = {0, 0, waits};

#if PetscDefined(HAVE_DEVICE)
  now.in  = petsc_ctog_ct + petsc_ctog_ct_scalar;
  now.out = petsc_gtoc_ct + petsc_gtoc_ct_scalar;
#endif
  now.in -= before.in;
  now.out -= before.out;
  now.waits -= before.waits;
  return now;
}

/* A solve as a user's program makes it; all but the kind of matrix comes from options */
typedef struct {
  const char *name, *options;
  PetscInt    dof;
  enum {
    OWN,    /* the matrix of the DM */
    NEST,   /* MATNEST of it, twice */
    SHELL,  /* MATSHELL around it */
    VALUES, /* the matrix of the DM, whose values change between solves */
    SHIFT   /* likewise, by MatShift() and MatAXPY(), as TS changes Jacobians */
  } kind;
  PetscBool dm; /* the KSP has the DM */
} Case;

static const Case cases[] = {
  {"Jacobi",            "-ksp_type cg -pc_type jacobi",                                                                                      1, OWN,    PETSC_FALSE},
  {"GMRES",             "-ksp_type gmres -pc_type jacobi",                                                                                   2, OWN,    PETSC_FALSE},
  {"BiCG",              "-ksp_type bicg -pc_type jacobi",                                                                                    1, OWN,    PETSC_FALSE},
  {"GAMG",              "-ksp_type cg -pc_type gamg",                                                                                        1, OWN,    PETSC_FALSE},
  {"GAMG, new values",  "-ksp_type cg -pc_type gamg -pc_gamg_reuse_interpolation",                                                           1, VALUES, PETSC_FALSE},
  {"MG",                "-ksp_type cg -pc_type mg -pc_mg_levels 3 -mg_levels_pc_type jacobi -mg_coarse_pc_type jacobi",                      1, OWN,    PETSC_TRUE },
  {"MG, Galerkin",      "-ksp_type cg -pc_type mg -pc_mg_levels 3 -pc_mg_galerkin both -mg_levels_pc_type jacobi -mg_coarse_pc_type jacobi", 1, OWN,    PETSC_TRUE },
  {"block Jacobi",      "-ksp_type cg -pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type jacobi",                                            1, OWN,    PETSC_FALSE},
  {"ASM",               "-ksp_type gmres -pc_type asm -sub_pc_type jacobi",                                                                  1, OWN,    PETSC_FALSE},
  {"fieldsplit",        "-ksp_type gmres -pc_type fieldsplit -fieldsplit_pc_type jacobi",                                                    2, OWN,    PETSC_FALSE},
  {"MATNEST",           "-ksp_type cg -pc_type none",                                                                                        1, NEST,   PETSC_FALSE},
  {"MATSHELL",          "-ksp_type cg -pc_type none",                                                                                        1, SHELL,  PETSC_FALSE},
  {"new values",        "-ksp_type cg -pc_type jacobi",                                                                                      1, VALUES, PETSC_FALSE},
  {"shifted Jacobians", "-ksp_type cg -pc_type jacobi",                                                                                      1, SHIFT,  PETSC_FALSE},
};

static PetscErrorCode Fill(DM da, Mat A)
{
  DMDALocalInfo info;

  PetscFunctionBegin;
  PetscCall(DMDAGetLocalInfo(da, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++)
      for (PetscInt c = 0; c < info.dof; c++) {
        const MatStencil row =
                           {
                             0, j, i, c
        },
                         cols[] = {row, {0, j, i - 1, c}, {0, j, i + 1, c}, {0, j - 1, i, c}, {0, j + 1, i, c}, {0, j, i, info.dof - 1 - c}};
        const PetscScalar v[]   = {4.5, -1, -1, -1, -1, -0.25};
        const PetscBool   in[]  = {PETSC_TRUE, (PetscBool)(i > 0), (PetscBool)(i < info.mx - 1), (PetscBool)(j > 0), (PetscBool)(j < info.my - 1), (PetscBool)(info.dof > 1)};

        for (int k = 0; k < 6; k++)
          if (in[k]) PetscCall(MatSetValuesStencil(A, 1, &row, 1, &cols[k], &v[k], INSERT_VALUES));
      }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComputeMatrix(KSP ksp, Mat J, Mat A, PetscCtx ctx)
{
  DM da;

  PetscFunctionBegin;
  (void)J, (void)ctx;
  PetscCall(KSPGetDM(ksp, &da));
  PetscCall(Fill(da, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellMult(Mat shell, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(MatShellGetContext(shell, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operator(const Case *c, Mat A, Mat *op)
{
  Mat      block[4] = {A, NULL, NULL, A};
  PetscInt m, n;
  VecType  type;

  PetscFunctionBegin;
  if (c->kind == NEST) PetscCall(MatCreateNest(PetscObjectComm((PetscObject)A), 2, NULL, 2, NULL, block, op));
  else if (c->kind == SHELL) {
    PetscCall(MatGetLocalSize(A, &m, &n));
    PetscCall(MatCreateShell(PetscObjectComm((PetscObject)A), m, n, PETSC_DETERMINE, PETSC_DETERMINE, A, op));
    PetscCall(MatShellSetOperation(*op, MATOP_MULT, (PetscErrorCodeFn *)ShellMult));
    PetscCall(MatGetVecType(A, &type));
    PetscCall(MatSetVecType(*op, type));
  } else {
    PetscCall(PetscObjectReference((PetscObject)A));
    *op = A;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The third solve: the second one may still make what the first did not need */
static PetscErrorCode Solve(const Case *c, MatType type, Traffic *traffic, PetscInt *its)
{
  DM         da;
  KSP        ksp;
  Mat        A, op, other;
  Vec        x, b;
  char       vtype[64];
  const char prefix[] = "copies_";

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, c->options)); /* with no prefix: those of sub-solvers have their own */
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, POINTS, POINTS, PETSC_DECIDE, PETSC_DECIDE, c->dof, 1, NULL, NULL, &da));
  PetscCall(DMSetOptionsPrefix(da, prefix));
  PetscCall(DMSetMatType(da, type));
  PetscCall(TestGetVecType(type, vtype, sizeof(vtype)));
  PetscCall(DMSetVecType(da, vtype));
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(Fill(da, A));
  PetscCall(Operator(c, A, &op));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &other));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  if (c->dm) {
    PetscCall(KSPSetDM(ksp, da));
    PetscCall(KSPSetComputeOperators(ksp, ComputeMatrix, NULL));
    PetscCall(DMCreateGlobalVector(da, &x));
    PetscCall(VecDuplicate(x, &b));
  } else {
    PetscCall(KSPSetOperators(ksp, op, op));
    PetscCall(MatCreateVecs(op, &x, &b));
  }
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-4, PETSC_CURRENT, PETSC_CURRENT, 500));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = 0; k < 3; k++) {
    *traffic = TrafficSince((Traffic){0, 0, 0});
    if (k && c->kind == VALUES) PetscCall(MatScale(A, 1.25));
    if (k && c->kind == SHIFT) {
      PetscCall(MatShift(A, 0.25));
      PetscCall(MatAXPY(A, 0.5, other, SAME_NONZERO_PATTERN));
    }
    if (k && (c->kind == VALUES || c->kind == SHIFT)) PetscCall(KSPSetOperators(ksp, op, op));
    PetscCall(KSPSolve(ksp, b, x));
    *traffic = TrafficSince(*traffic);
  }
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&other));
  PetscCall(MatDestroy(&op));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE, show = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-show", &show, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const Case *c = &cases[k];
    Traffic     parents, ours;
    PetscInt    its[2];

    if (!TestInPart()) continue;
    PetscCall(Solve(c, device ? MATAIJCUSPARSE : MATAIJ, &parents, &its[0]));
    PetscCall(Solve(c, TestFormat(""), &ours, &its[1]));
    if (show)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-18s %3" PetscInt_FMT " %3" PetscInt_FMT " iterations, copies to the GPU %g %g, from it %g %g, waits %g %g\n", c->name, its[0], its[1], parents.in, ours.in,
                            parents.out, ours.out, parents.waits, ours.waits));
    PetscCheck(PetscAbsInt(its[0] - its[1]) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, %" PetscInt_FMT " with the parent's type", c->name, its[1], its[0]);
    if (its[0] == its[1])
      PetscCheck(ours.in <= parents.in && ours.out <= parents.out && ours.waits <= parents.waits, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g copies to the GPU, %g from it and %g waits, with the parent's type %g, %g and %g", c->name,
                 ours.in, ours.out, ours.waits, parents.in, parents.out, parents.waits);
    PetscCall(TestClearOptions(c->options));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

  test:
    suffix: gallop
    nsize: {{1 2}}
    args: -format gallop -mat_gallop_format evchyb
    output_file: output/empty.out

TEST*/
