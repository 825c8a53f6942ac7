/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "KSPGALLOPCG beside KSPCG.\n\n";

#include "fusedtest.h"

typedef enum {
  MAT_DEFINITE,
  MAT_INDEFINITE,    /* a part of the diagonal is negative; the preconditioner is of the definite one */
  MAT_INDEFINITE_PC, /* the other way round */
  MAT_SINGULAR,      /* with a null space */
  MAT_ARROW,         /* larger, and the first row and column are full */
  MAT_UNEVEN,        /* as large, and a few rows and columns have hundreds of entries */
  MAT_BAND           /* as large, and rows have 21 entries each */
} Kind;

#define LEAST (sizeof(PetscReal) < 8 ? 30 : 60) /* more iterations than the tolerance asks for, and not so many that single precision breaks down */

/* clang-format off */
static const Case cases[] = {
  {"Jacobi",                       PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, unpreconditioned",     PCJACOBI, KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, natural",              PCJACOBI, KSP_NORM_NATURAL,          RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"Jacobi, no norm",              PCJACOBI, KSP_NORM_NONE,             RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    13,  0,  "",                        PETSC_TRUE },
  {"no preconditioner",            PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"block Jacobi",                 PCBJACOBI, KSP_NORM_PRECONDITIONED,  RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-sub_pc_type jacobi",     PETSC_TRUE },
  {"SOR, unpreconditioned",        PCSOR,    KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"GAMG",                         PCGAMG,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"a guess",                      PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"the solution as guess",        PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_EXACT,  MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"b = 0",                        PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_ZERO,   GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"b = 0 and a guess",            PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_ZERO,   GUESS_RANDOM, MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"NaN in b",                     PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_NAN,    GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"no iteration",                 PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    0,   0,  "",                        PETSC_TRUE },
  {"few iterations",               PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    7,   0,  "",                        PETSC_TRUE },
  {"few are enough",               PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    7,   0,  "-ksp_converged_maxits",   PETSC_TRUE },
  {"a least number",               PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, LEAST, "-ksp_rtol 1e-3",          PETSC_TRUE },
  {"diverges by its tolerance",    PCNONE,   KSP_NORM_UNPRECONDITIONED, RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_divtol 1.0001",      PETSC_TRUE },
  {"indefinite",                   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE,    LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"negative curvature",           PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE,    LOOK_NONE,    300, 0,  "-ksp_converged_neg_curve", PETSC_TRUE },
  {"indefinite preconditioner",    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_INDEFINITE_PC, LOOK_NONE,    300, 0,  "",                        PETSC_TRUE },
  {"a monitor",                    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_MONITOR, 300, 0,  "",                        PETSC_TRUE },
  {"a test of the user's",         PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_TEST,    300, 0,  "",                        PETSC_TRUE },
  {"null space",                   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_SINGULAR,      LOOK_NONE,    300, 0,  "",                        PETSC_FALSE},
  {"norms from the fifth on",      PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_check_norm_iteration 5", PETSC_FALSE},
  {"eigenvalues",                  PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_view_eigenvalues ascii:/dev/null", PETSC_FALSE},
  {"a long row, plain",            PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_ARROW,         LOOK_NONE,    300, 0,  "-mat_evchyb_storage plain", PETSC_TRUE},
  {"a long row, packed",           PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_ARROW,         LOOK_NONE,    300, 0,  "-mat_evchyb_storage packed", PETSC_TRUE},
  {"a long row in blocks",         PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_ARROW,         LOOK_NONE,    300, 0,  "-mat_hbp_block_cols 1000 -mat_hbp_map 0 -mat_hbp_long_row 20000", PETSC_TRUE},
  {"uneven rows",                  PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_hbp_long_row 200",   PETSC_TRUE },
  {"uneven rows, other lengths",   PCNONE,   KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 512 -mat_hbp_block_cols 3000 -mat_hbp_map 1", PETSC_TRUE},
  {"uneven rows, small batches",   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 256", PETSC_TRUE},
  {"uneven rows, larger batches",  PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 1024", PETSC_TRUE},
  {"uneven rows, large batches",   PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 4096", PETSC_TRUE},
  {"uneven rows, largest batches", PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_UNEVEN,        LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 5000", PETSC_TRUE},
  {"even rows",                    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_BAND,          LOOK_NONE,    300, 0,  "-mat_csroverlap_max_batch_size 1024", PETSC_TRUE},
  {"symmetric",                    PCJACOBI, KSP_NORM_PRECONDITIONED,   RHS_RANDOM, GUESS_ZERO,   MAT_DEFINITE,      LOOK_NONE,    300, 0,  "-ksp_cg_type symmetric",  PETSC_TRUE },
};
/* clang-format on */

#define FAR 150 /* from the diagonal */

/* Whether there is an entry beside the three diagonals: in the first row and column, within 10 of the diagonal, or in rows 250, 750, ... and columns, as near to the diagonal as FAR */
static PetscBool HasFar(int kind, PetscInt r, PetscInt c)
{
  if (PetscAbsInt(r - c) <= 1) return PETSC_FALSE;
  if (kind == MAT_ARROW) return (PetscBool)(r == 0 || c == 0);
  if (kind == MAT_BAND) return (PetscBool)(PetscAbsInt(r - c) <= 10);
  return (PetscBool)(PetscAbsInt(r - c) <= FAR && (r % 500 == 250 || c % 500 == 250));
}

/* Three diagonals and longer rows: one that several thread blocks compute, some beside short ones, or all rows */
static PetscErrorCode CreateLonger(MatType type, int kind, Mat *A)
{
  const PetscInt n = 10000, most = 20; /* entries of a row in the mean */
  PetscInt       rstart, rend, first, last, *i, *j;
  PetscScalar   *a;
  PetscCount     k = 0;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  PetscCall(PetscMalloc3(most * (rend - rstart) + n, &i, most * (rend - rstart) + n, &j, most * (rend - rstart) + n, &a));
  for (PetscInt r = rstart; r < rend; r++) {
    for (PetscInt c = r - 1; c <= r + 1; c++) {
      if (c < 0 || c >= n) continue;
      i[k]   = r;
      j[k]   = c;
      a[k++] = c == r ? 2 + TestRandom(3, r, 0) : -1.0;
    }
    first = kind == MAT_ARROW ? 0 : PetscMax(r - FAR, 0);
    last  = kind == MAT_ARROW ? (r ? 0 : n - 1) : PetscMin(r + FAR, n - 1);
    for (PetscInt c = first; c <= last; c++)
      if (HasFar(kind, r, c)) {
        i[k]   = r;
        j[k]   = c;
        a[k++] = -1e-3;
      }
  }
  PetscCall(MatSetPreallocationCOO(*A, k, i, j));
  PetscCall(MatSetValuesCOO(*A, a, INSERT_VALUES));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where it is to be indefinite, each third number on the diagonal is negative */
static PetscErrorCode CreateMatrix(MatType type, int kind, PetscBool pc, Mat *A)
{
  const PetscBool singular = (PetscBool)(kind == MAT_SINGULAR);
  Vec             diagonal;
  PetscScalar    *d;
  PetscInt        rstart, rend;

  PetscFunctionBegin;
  if (kind == MAT_ARROW || kind == MAT_UNEVEN || kind == MAT_BAND) {
    PetscCall(CreateLonger(type, kind, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TestCreateLaplace(type, GRID, singular ? 0 : 1, singular ? 0 : 3, 3, A));
  if (kind == (pc ? MAT_INDEFINITE_PC : MAT_INDEFINITE)) {
    PetscCall(MatCreateVecs(*A, NULL, &diagonal));
    PetscCall(MatGetDiagonal(*A, diagonal));
    PetscCall(VecGetOwnershipRange(diagonal, &rstart, &rend));
    PetscCall(VecGetArray(diagonal, &d));
    for (PetscInt r = rstart; r < rend; r++)
      if (r % 3 == 0) d[r - rstart] = -d[r - rstart];
    PetscCall(VecRestoreArray(diagonal, &d));
    PetscCall(MatDiagonalSet(*A, diagonal, INSERT_VALUES));
    PetscCall(VecDestroy(&diagonal));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Solver solver    = {KSPCG, KSPGALLOPCG, "GallopCGFused", 2, 4, 2, CreateMatrix, KSPCGGetObjFcn};
static const Solver single    = {KSPCG, KSPGALLOPCG, "GallopCGFused", 1, 3, 1, CreateMatrix, NULL}; /* the variants have no objective function */
static const Solver pipelined = {KSPPIPECG, KSPGALLOPCG, "GallopCGFused", 1, 1, 0, CreateMatrix, NULL};

/* The same cases by a variant. The pipelined one tests for no breakdown, after which rounding errors decide what comes. */
static PetscErrorCode RunVariant(const Solver *variant, const char option[], PetscBool device)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Case  c = cases[k];
    char  name[64], options[128];
    char *symmetric;

    PetscCall(PetscStrstr(c.options, "symmetric", &symmetric));
    if (variant != &solver && symmetric && PetscDefined(USE_COMPLEX)) continue; /* which PETSc's pipelined one is not for, and its one with one reduction takes conjugate numbers then */
    if (variant == &pipelined && (c.kind == MAT_INDEFINITE || c.kind == MAT_INDEFINITE_PC)) c.max_it = 5;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s", c.name, option));
    PetscCall(PetscSNPrintf(options, sizeof(options), "%s %s", c.options, option));
    c.name    = name;
    c.options = options;
    PetscCall(RunAll(variant, 1, &c, device));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another type and back, a reset, another size, a radius: the solver forgets what belonged to what was before */
static PetscErrorCode Change(MatType type)
{
  const KSPType      types[] = {KSPGALLOPCG, KSPGMRES, KSPGALLOPCG, KSPGALLOPCHEBYSHEV, KSPGALLOPCG, KSPGALLOPCG};
  KSP                ksp;
  PC                 pc;
  Mat                A[2];
  Vec                x, b, r;
  PetscReal          norm, norm0;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(type, MAT_DEFINITE, PETSC_FALSE, &A[0]));
  PetscCall(MatDuplicate(A[0], MAT_COPY_VALUES, &A[1]));
  PetscCall(MatScale(A[1], 3.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(MatCreateVecs(A[0], &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(VecNorm(b, NORM_2, &norm0));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat now = A[k % 2];

    if (k == 4) PetscCall(KSPReset(ksp));
    PetscCall(KSPSetOperators(ksp, now, now));
    PetscCall(KSPSetType(ksp, types[k]));
    PetscCall(KSPSetTolerances(ksp, (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8), PETSC_CURRENT, PETSC_CURRENT, 1000));
    if (k == 5) PetscCall(KSPCGSetRadius(ksp, 0.01));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    if (k == 5) {
      PetscCheck(reason == KSP_CONVERGED_STEP_LENGTH, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with a radius, not CONVERGED_STEP_LENGTH", KSPConvergedReasons[reason]);
      continue;
    }
    PetscCall(MatMult(now, x, r));
    PetscCall(VecAXPY(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCheck(reason > 0 && norm <= (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6) * norm0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "solve %d, of type %s: %s, residual %g of %g", (int)k, types[k], KSPConvergedReasons[reason], (double)norm, (double)norm0);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A[0]));
  PetscCall(MatDestroy(&A[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solver takes each variant after each other, by options and by PETSc's function. What tells them apart: the objective function, iterations beyond the limit, and kernels. */
static PetscErrorCode ChangeVariant(PetscBool device)
{
  const struct {
    const char *options; /* or PETSc's function */
    PetscBool   single;
    PetscInt    variant; /* 0, 1 or 2 */
  } steps[] = {
    {"-ksp_gallopcg_variant pipelined", PETSC_FALSE, 2},
    {NULL,                              PETSC_TRUE,  1},
    {"-ksp_gallopcg_variant pipelined", PETSC_FALSE, 2},
    {NULL,                              PETSC_FALSE, 0},
    {"-ksp_gallopcg_variant single",    PETSC_FALSE, 1},
    {"-ksp_gallopcg_variant standard",  PETSC_FALSE, 0},
    {"-ksp_max_it 3",                   PETSC_FALSE, 0},
    {"-ksp_gallopcg_variant pipelined", PETSC_FALSE, 2}
  };
  KSP      ksp;
  PC       pc;
  Mat      A;
  Vec      x, b;
  PetscInt its, before = 0, kernels = 0;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(device ? MATAIJCUSPARSE : MATAIJ, MAT_DEFINITE, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGALLOPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCBJACOBI)); /* sums are kernels of their own, as is p.w with a matrix of PETSc's */
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-12, PETSC_CURRENT, PETSC_CURRENT, 3));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(steps); k++) {
    const PetscInt variant = steps[k].variant, wanted[] = {1 + 4 * 3, 2 + 3 * 3, 1 + 4};
    void (*objective)(void);

    if (steps[k].options) {
      PetscCall(PetscOptionsInsertString(NULL, steps[k].options));
      PetscCall(KSPSetFromOptions(ksp));
      PetscCall(TestClearOptions(steps[k].options));
    } else PetscCall(KSPCGUseSingleReduction(ksp, steps[k].single));
    PetscCall(TestEventCount("GallopCGFused", &before, NULL));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(TestEventCount("GallopCGFused", &kernels, NULL));
    kernels -= before;
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", &objective));
    PetscCheck(its == (variant == 2 ? 4 : 3), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %d, variant %" PetscInt_FMT ": %" PetscInt_FMT " iterations", (int)k, variant, its);
    PetscCheck(!objective == (variant > 0), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %d, variant %" PetscInt_FMT ": %s objective function", (int)k, variant, objective ? "an" : "no");
    PetscCheck(kernels == (device ? wanted[variant] : 0), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "step %d, variant %" PetscInt_FMT ": %" PetscInt_FMT " kernels", (int)k, variant, kernels);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether p.w comes out of the products, on several processes too: kernels with vectors alone then have no flops of it */
static PetscErrorCode RunDots(PetscBool device)
{
  const PetscInt its = 3;
  KSP            ksp;
  PC             pc;
  Mat            A;
  Vec            x, b;
  PetscInt       n, kernels;
  PetscMPIInt    size;
  PetscBool      hbp;
  PetscLogDouble before = 0, flops = 0, wanted;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(TestFormat(""), MAT_DEFINITE, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecGetLocalSize(b, &n));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGALLOPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-12, PETSC_CURRENT, PETSC_CURRENT, its));
  for (int k = 0; k < 2; k++) { /* the first product of CSROVERLAP copies the matrix, and has no dot product */
    PetscCall(TestEventCount("GallopCGFused", &kernels, &before));
    PetscCall(KSPSolve(ksp, b, x));
  }
  PetscCall(TestEventCount("GallopCGFused", &kernels, &flops));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJHBP, &hbp)); /* has none for what the off-diagonal block adds */
  wanted = device ? PETSC_FLOPS_PER_OP * n * (4.0 + its * (2.0 + 9.0 + (size > 1 && hbp ? 2.0 : 0.0))) : 0;
  PetscCheck(PetscAbs(flops - before - wanted) < 0.5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g flops beside the products, not %g", flops - before, wanted);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where sums of several processes are added up: on GPUs a solve takes as many reductions by MPI whatever its iterations, but for those by which a debug PETSc checks arguments, and each run gives the same bits */
static PetscErrorCode RunSums(KSPType type, PetscBool device)
{
  const char *const ways[] = {"mpi", "device", "device"};
  const PetscInt    its[]  = {5, 15, 25};
  KSP               ksp;
  PC                pc;
  Mat               A;
  Vec               x[3], b;
  PetscMPIInt       size;
  PetscLogDouble    bympi = 0;
  PetscReal         norm, error;
  PetscBool         equal;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1 || !device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CreateMatrix(TestFormat(""), MAT_DEFINITE, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(VecSetRandom(b, NULL));
  for (int w = 0; w < 3; w++) {
    PetscLogDouble reductions[3], grows;

    PetscCall(VecDuplicate(b, &x[w]));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, type));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_gallop_sums", ways[w]));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(PetscOptionsClearValue(NULL, "-ksp_gallop_sums"));
    for (int k = -1; k < 3; k++) { /* the first solve connects the processes */
      const PetscLogDouble before = petsc_allreduce_ct;

      PetscCall(KSPSetTolerances(ksp, (PetscReal)1e-30, (PetscReal)1e-30, PETSC_CURRENT, its[PetscMax(k, 0)]));
      PetscCall(KSPSolve(ksp, b, x[w]));
      if (k >= 0) reductions[k] = petsc_allreduce_ct - before;
    }
    PetscCall(KSPDestroy(&ksp));
    grows = reductions[2] - reductions[1];
    if (w == 0) {
      bympi = grows;
      PetscCheck(grows >= 2 * 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g reductions in 15 iterations, %g in 25", type, reductions[1], reductions[2]);
    } else if (PetscDefined(USE_DEBUG)) PetscCheck(bympi - grows >= 2 * 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, sums on GPUs: %g reductions in 10 iterations, %g by MPI", type, grows, bympi);
    else
      PetscCheck(reductions[1] == reductions[2] && reductions[0] == reductions[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, sums on GPUs: %g reductions in 5 iterations, %g in 15, %g in 25", type, reductions[0], reductions[1], reductions[2]);
  }
  PetscCall(VecEqual(x[1], x[2], &equal));
  PetscCheck(equal, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, sums on GPUs: another run gives other bits", type);
  PetscCall(TestVecError(x[2], x[0], &error, &norm));
  PetscCheck(error <= (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6) * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, sums on GPUs: solutions differ by %g of %g", type, (double)error, (double)norm);
  for (int w = 0; w < 3; w++) PetscCall(VecDestroy(&x[w]));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A preconditioner and a monitor that work on the host, and leave vectors of the solve bound to the CPU */
static PetscErrorCode HalveOnHost(PC pc, Vec r, Vec z)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscInt           n;

  (void)pc;
  PetscFunctionBegin;
  PetscCall(VecBindToCPU(z, PETSC_TRUE));
  PetscCall(VecGetLocalSize(z, &n));
  PetscCall(VecGetArrayRead(r, &from)); /* not VecCopy(), which writes the GPU's array of a vector that both have, bound or not */
  PetscCall(VecGetArrayWrite(z, &to));
  for (PetscInt i = 0; i < n; i++) to[i] = (PetscReal)0.5 * from[i];
  PetscCall(VecRestoreArrayWrite(z, &to));
  PetscCall(VecRestoreArrayRead(r, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BindSolution(KSP ksp, PetscInt its, PetscReal rnorm, PetscCtx ctx)
{
  Vec x;

  PetscFunctionBegin;
  (void)its, (void)rnorm, (void)ctx;
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(VecBindToCPU(x, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products on the host read what kernels have written: the matrix is bound to the CPU, vectors are not. With PCSHELL vectors are, in the course of the solve. */
static PetscErrorCode RunBound(MatType type, PCType pctype, const char options[], PetscBool device)
{
  const PetscBool    shell = PetscNot(strcmp(pctype, PCSHELL));
  KSP                ksp;
  PC                 pc;
  Mat                A, bound;
  Vec                x, b, r;
  PetscReal          norm, norm0;
  PetscInt           before = 0, kernels = 0;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(type, MAT_DEFINITE, PETSC_FALSE, &A));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &bound));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(VecNorm(b, NORM_2, &norm0));
  if (!shell) PetscCall(MatBindToCPU(bound, PETSC_TRUE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, bound, A));
  PetscCall(KSPSetType(ksp, KSPGALLOPCG));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  if (shell) PetscCall(PCShellSetApply(pc, HalveOnHost));
  if (shell) PetscCall(KSPMonitorSet(ksp, BindSolution, NULL, NULL));
  PetscCall(KSPSetTolerances(ksp, (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8), PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(TestClearOptions(options));
  PetscCall(TestEventCount("GallopCGFused", &before, NULL));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TestEventCount("GallopCGFused", &kernels, NULL));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(VecBindToCPU(x, PETSC_FALSE));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCheck(reason > 0 && norm <= (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6) * norm0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, bound to the CPU, %s %s: %s, residual %g of %g", type, pctype, options, KSPConvergedReasons[reason], (double)norm, (double)norm0);
  PetscCheck((kernels > before) == device, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, bound to the CPU, %s %s: %" PetscInt_FMT " kernels", type, pctype, options, kernels - before);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const options[] = {"", "-ksp_cg_single_reduction", "-ksp_gallopcg_variant pipelined"};
  PetscBool         device = PETSC_FALSE, alone = PETSC_FALSE, sums = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sums_alone", &alone, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-ksp_gallop_sums", &sums));
  if (alone || (sums && !device)) { /* under compute-sanitizer all others take too long; on the host the option changes nothing in them */
    if (TestInPart()) PetscCall(RunSums(KSPGALLOPCG, device));
    if (TestInPart()) PetscCall(RunSums(KSPGALLOPBCGS, device));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(RunAll(&solver, PETSC_STATIC_ARRAY_LENGTH(cases), cases, device));
  PetscCall(RunVariant(&single, "-ksp_cg_single_reduction", device));
  PetscCall(RunVariant(&pipelined, "-ksp_gallopcg_variant pipelined", device));
  if (TestInPart()) PetscCall(ChangeVariant(device));
  if (TestInPart()) PetscCall(RunDots(device));
  if (TestInPart()) PetscCall(RunSums(KSPGALLOPCG, device));
  if (TestInPart()) PetscCall(RunSums(KSPGALLOPBCGS, device));
  if (TestInPart()) PetscCall(Change(TestFormat("")));
  if (TestInPart()) PetscCall(Change(device ? MATAIJCUSPARSE : MATAIJ));
  for (int k = 0; k < 3; k++)
    for (int none = 0; none < 2; none++) {
      if (TestInPart()) PetscCall(RunBound(TestFormat(""), none ? PCNONE : PCJACOBI, options[k], device));
      if (TestInPart()) PetscCall(RunBound(device ? MATAIJCUSPARSE : MATAIJ, none ? PCNONE : PCJACOBI, options[k], device));
    }
  if (TestInPart()) PetscCall(RunGraph(&solver, "-ksp_rtol 1e-6", device));
  if (TestInPart()) PetscCall(RunGraph(&single, "-ksp_rtol 1e-6 -ksp_cg_single_reduction", device));
  if (TestInPart()) PetscCall(RunGraph(&pipelined, "-ksp_rtol 1e-6 -ksp_gallopcg_variant pipelined", device));
  for (int k = 0; k < 3; k++)
    if (TestInPart()) PetscCall(RunBound(TestFormat(""), PCSHELL, options[k], device));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2 4}}
    output_file: output/empty.out

  test:
    suffix: formats
    nsize: {{1 2}}
    args: -format {{csroverlap hbp}}
    output_file: output/empty.out

  test:
    suffix: clusters
    nsize: {{1 2}}
    args: -mat_evchyb_order cluster -mat_evchyb_storage {{plain packed}}
    output_file: output/empty.out

  test:
    suffix: sums
    nsize: {{2 4}}
    args: -format {{evchyb hbp}} -ksp_gallop_sums device
    command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args} -format ${iformat}
    output_file: output/empty.out

  test:
    suffix: sumsalone
    nsize: {{2 4}}
    args: -sums_alone
    command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}
    output_file: output/empty.out

TEST*/
