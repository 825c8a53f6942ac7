/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Solves between calls that change the solver, its matrix or its vectors, in an order that a seed chooses: with a Gallop matrix as with MATAIJ, by PETSc's methods or by Gallop's.\n\
  -seed <k>: of the first sequence; a failure tells the seed and the calls before it\n\
  -sequences <n>: how many\n\
  -calls <n>: in each\n\
  -list <name,...>: these calls, instead of drawn ones\n\
  -show: what is called, before it is\n\n";

#include "../randomtest.h"
#include <petscksp.h>

#define MOST  600 /* norms of a history */
#define LEAST 45  /* rows that no method solves exactly in a few iterations, where norms are rounding errors */

typedef struct {
  Mat       A[2]; /* ours, and plain */
  KSP       ksp[2];
  TestDraws d;
  PetscInt  n, bs, values, off; /* bs: rows of a block; values: seed of the entries; off: of the pattern */
  PetscBool symmetric, hostvectors, transpose, jacobi, scaled; /* scaled: by a diagonal */
  PetscInt  looks[2];
  PetscInt  solves, converged;
} Run;

/* ---- the matrix: its rows, and columns, stay dominated by the diagonal, so that all methods converge soon ---- */

static PetscScalar Entry(const Run *r, PetscInt i, PetscInt j)
{
  const PetscScalar v = TestValue(r->values, PetscMin(i, j), PetscMax(i, j)) * (PetscReal)0.5;

  if (r->symmetric) return i < j ? v : PetscConj(v);
  return i < j ? v : (PetscReal)0.25 * v;
}

/* The entries of block j of columns in row i */
static PetscErrorCode FillBlock(const Run *r, Mat M, PetscInt i, PetscInt j)
{
  PetscFunctionBegin;
  for (PetscInt k = j * r->bs; k < (j + 1) * r->bs; k++) {
    if (k != i) PetscCall(MatSetValue(M, i, k, Entry(r, i, k), INSERT_VALUES));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Neighbours at a few distances, so that processes have ghost values of near and far ones; off changes the pattern. The rows of a block have one pattern. */
static PetscErrorCode Fill(Run *r, Mat M, PetscInt off)
{
  const PetscInt distances[] = {1, 2, 7 + off, 29}, nblocks = r->n / r->bs;
  PetscInt       rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(M, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    const PetscInt block = i / r->bs;

    PetscCall(MatSetValue(M, i, i, 4 * r->bs + TestRandom(r->values, i, 1), INSERT_VALUES));
    PetscCall(FillBlock(r, M, i, block));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(distances); k++) {
      const PetscInt left = block - distances[k], right = block + distances[k];

      if (left >= 0 && TestRandom(7 + off, left, block) < 0.8) PetscCall(FillBlock(r, M, i, left));
      if (right < nblocks && TestRandom(7 + off, block, right) < 0.8) PetscCall(FillBlock(r, M, i, right));
    }
  }
  PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Run *r, PetscInt off)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &r->A[k]));
    PetscCall(MatSetSizes(r->A[k], PETSC_DECIDE, PETSC_DECIDE, r->n, r->n));
    PetscCall(MatSetBlockSize(r->A[k], r->bs));
    PetscCall(MatSetType(r->A[k], k ? MATAIJ : TestFormat("")));
    PetscCall(MatSetFromOptions(r->A[k]));
    PetscCall(MatSetUp(r->A[k]));
    PetscCall(MatSetOption(r->A[k], MAT_USE_INODES, PETSC_FALSE)); /* by which MATAIJ relaxes blocks of rows, and AIJCUSPARSE rows */
    PetscCall(Fill(r, r->A[k], off));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's point-block Jacobi points into the matrix that it was made of, and where it is reused does so after that is gone */
static PetscErrorCode PointsIntoMatrix(Run *r, PetscBool *points)
{
  PC        pc;
  PetscBool reuse;

  PetscFunctionBegin;
  PetscCall(KSPGetPC(r->ksp[1], &pc));
  PetscCall(KSPGetReusePreconditioner(r->ksp[1], &reuse));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCPBJACOBI, points));
  *points = (PetscBool)(*points && reuse);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewValues(Run *r)
{
  PetscFunctionBegin;
  r->values += 100;
  r->scaled = PETSC_FALSE;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatZeroEntries(r->A[k]));
    PetscCall(MatSetOption(r->A[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(Fill(r, r->A[k], r->n > 3000 ? r->off : 0)); /* entries that are new cost too much in a large matrix */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Run *r)
{
  const PetscReal factor = TestDraw(&r->d) < 0.5 ? 2 : 0.5;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatScale(r->A[k], factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shift(Run *r)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatShift(r->A[k], 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* And back, the next time */
static PetscErrorCode DiagonalScale(Run *r)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(r->A[1], &d, NULL));
  {
    PetscScalar *a;
    PetscInt     start, end;

    PetscCall(VecGetOwnershipRange(d, &start, &end));
    PetscCall(VecGetArrayWrite(d, &a));
    for (PetscInt i = start; i < end; i++) a[i - start] = TestRandom(r->d.seed, i, 11) < 0.5 ? 1 : r->scaled ? 0.5 : 2;
    PetscCall(VecRestoreArrayWrite(d, &a));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatDiagonalScale(r->A[k], d, d));
  r->scaled = PetscNot(r->scaled);
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsColumns(Run *r)
{
  PetscMPIInt rank;
  PetscInt    rows[3];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (int k = 0; k < 3; k++) rows[k] = TestDrawInt(&r->d, r->n);
  for (int k = 0; k < 2; k++) PetscCall(MatZeroRowsColumns(r->A[k], rank ? 0 : 3, rows, 4.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As a program does that assembles its matrix anew */
static PetscErrorCode Replace(Run *r)
{
  const PetscInt off = TestDrawInt(&r->d, 3);
  PetscBool      points;

  PetscFunctionBegin;
  PetscCall(PointsIntoMatrix(r, &points));
  if (points) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&r->A[k]));
  r->values += 100;
  r->off    = off;
  r->scaled = PETSC_FALSE;
  PetscCall(Create(r, off));
  for (int k = 0; k < 2; k++) PetscCall(KSPSetOperators(r->ksp[k], r->A[k], r->A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another preconditioning matrix than the operator, or the same again */
static PetscErrorCode Operators(Run *r)
{
  const PetscBool other = (PetscBool)(TestDraw(&r->d) < 0.6);
  PetscBool       points;

  PetscFunctionBegin;
  PetscCall(PointsIntoMatrix(r, &points));
  if (points) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    Mat P;

    if (other) {
      PetscCall(MatDuplicate(r->A[k], MAT_COPY_VALUES, &P));
      PetscCall(MatShift(P, 1.0));
      PetscCall(KSPSetOperators(r->ksp[k], r->A[k], P));
      PetscCall(MatDestroy(&P));
    } else PetscCall(KSPSetOperators(r->ksp[k], r->A[k], r->A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another of our types or a plain one, or back, in place */
static PetscErrorCode Convert(Run *r)
{
  const MatType types[] = {TestFormat(""), TestFormat(""), MATCSROVERLAP, MATHBP, MATAIJ, MATGALLOP};
  const MatType type    = types[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(types))];
  PetscBool     points, blocks, plain;
  PC            pc;

  PetscFunctionBegin;
  PetscCall(PointsIntoMatrix(r, &points));
  if (points) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetPC(r->ksp[0], &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCBJACOBI, &blocks));
  PetscCall(PetscStrcmp(type, MATAIJ, &plain));
  if (blocks && plain) PetscFunctionReturn(PETSC_SUCCESS); /* whose ILU goes on asking for the package that it has found first, cuSPARSE */
  PetscCall(TestNote(&r->d, type));
  PetscCall(MatConvert(r->A[0], type, MAT_INPLACE_MATRIX, &r->A[0]));
  PetscCall(MatSetOption(r->A[0], MAT_USE_INODES, PETSC_FALSE)); /* as in Create(): it may be another matrix now */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bind(Run *r)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(r->A[0], &bound));
  PetscCall(MatBindToCPU(r->A[0], PetscNot(bound)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's GMRES keeps vectors of the other kind, and computes with both as if they were of one */
static PetscErrorCode Vectors(Run *r)
{
  PetscBool gmres;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)r->ksp[1], &gmres, KSPGMRES, KSPFGMRES, KSPLGMRES, ""));
  if (gmres) PetscFunctionReturn(PETSC_SUCCESS);
  r->hostvectors = PetscNot(r->hostvectors);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solver ---- */

/* PETSc's LGMRES has nothing for it, and loses its memory */
static PetscErrorCode Reset(Run *r)
{
  PetscBool lgmres;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)r->ksp[1], KSPLGMRES, &lgmres));
  if (lgmres) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPReset(r->ksp[k]));
    PetscCall(KSPSetOperators(r->ksp[k], r->A[k], r->A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As in multigrid; six iterations, before there is nothing left to gain */
static PetscErrorCode WithoutNorms(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 6));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Type(Run *r)
{
  static const char *const any[]       = {KSPBCGS, KSPGMRES, KSPFGMRES, KSPLGMRES, KSPRICHARDSON};
  static const char *const symmetric[] = {KSPCG, KSPCG, KSPCG, KSPPIPECG, KSPBCGS, KSPGMRES, KSPFGMRES, KSPLGMRES, KSPCHEBYSHEV, KSPRICHARDSON, KSPMINRES, KSPCR};
  static const char *const own[][2]    = {{KSPCG, KSPGALLOPCG}, {KSPBCGS, KSPGALLOPBCGS}, {KSPGMRES, KSPGALLOPGMRES}, {KSPCHEBYSHEV, KSPGALLOPCHEBYSHEV}, {KSPRICHARDSON, KSPGALLOPRICHARDSON}};
  const char              *type = r->symmetric ? symmetric[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(symmetric))] : any[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(any))], *ours = type;
  const PetscBool          named = (PetscBool)(TestDraw(&r->d) < 0.3), bare = (PetscBool)(TestDraw(&r->d) < 0.8 && r->n >= LEAST);
  const PetscBool          smooths = (PetscBool)(bare && (!strcmp(type, KSPCHEBYSHEV) || !strcmp(type, KSPRICHARDSON)));

  PetscFunctionBegin;
  for (size_t k = 0; named && k < PETSC_STATIC_ARRAY_LENGTH(own); k++)
    if (!strcmp(type, own[k][0])) ours = own[k][1];
  PetscCall(TestNote(&r->d, ours));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetType(r->ksp[k], KSPPREONLY)); /* the same type again would keep what it has */
    PetscCall(KSPSetType(r->ksp[k], k ? type : ours));
    PetscCall(KSPSetNormType(r->ksp[k], KSP_NORM_DEFAULT));
    PetscCall(KSPSetPCSide(r->ksp[k], PC_SIDE_DEFAULT));
    if (smooths) PetscCall(WithoutNorms(r->ksp[k]));
    PetscCall(KSPSetFromOptions(r->ksp[k])); /* of the method */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preconditioner(Run *r)
{
  static const char *const types[] = {PCJACOBI, PCJACOBI, PCJACOBI, PCNONE, PCPBJACOBI, PCBJACOBI, PCSOR};
  const char              *type = types[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(types))];
  PC                       pc;

  PetscFunctionBegin;
  PetscCall(TestNote(&r->d, type));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPGetPC(r->ksp[k], &pc));
    PetscCall(PCSetType(pc, type));
    if (r->symmetric && !strcmp(type, PCSOR)) PetscCall(PCSORSetSymmetric(pc, SOR_LOCAL_SYMMETRIC_SWEEP));
  }
  r->jacobi = (PetscBool)(strcmp(type, PCNONE) != 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Tolerances(Run *r)
{
  const PetscReal rtol = TestDraw(&r->d) < 0.5 ? (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8) : (PetscReal)1e-3;
  const PetscInt  most = TestDraw(&r->d) < 0.7 ? 300 : TestDrawInt(&r->d, 6);
  KSPNormType     type;

  PetscFunctionBegin;
  PetscCall(KSPGetNormType(r->ksp[1], &type));
  for (int k = 0; k < 2; k++) PetscCall(KSPSetTolerances(r->ksp[k], rtol, PETSC_CURRENT, PETSC_CURRENT, type == KSP_NORM_NONE ? 6 : most));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of those that the method has */
static PetscErrorCode SetNormType(Run *r)
{
  static const KSPNormType types[] = {KSP_NORM_DEFAULT, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE};
  const KSPNormType        type    = types[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(types))];
  PetscBool                has;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)r->ksp[1], &has, KSPCG, KSPPIPECG, ""));
  if (!has && type == KSP_NORM_NATURAL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)r->ksp[1], &has, KSPCG, KSPPIPECG, KSPBCGS, KSPCHEBYSHEV, KSPRICHARDSON, ""));
  if (!has && type != KSP_NORM_DEFAULT) PetscFunctionReturn(PETSC_SUCCESS);
  if (type == KSP_NORM_NONE && r->n < LEAST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestNote(&r->d, KSPNormTypes[type]));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetNormType(r->ksp[k], type));
    PetscCall(KSPSetPCSide(r->ksp[k], PC_SIDE_DEFAULT)); /* where this norm is */
    if (type == KSP_NORM_NONE) PetscCall(WithoutNorms(r->ksp[k]));
  }
  PetscCall(Reset(r)); /* PETSc's BiCGStab with the preconditioner on the right adds the last initial guess to results, also of solves that have none or the other side */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Guess(Run *r)
{
  PetscBool guess;

  PetscFunctionBegin;
  PetscCall(KSPGetInitialGuessNonzero(r->ksp[1], &guess));
  for (int k = 0; k < 2; k++) PetscCall(KSPSetInitialGuessNonzero(r->ksp[k], PetscNot(guess)));
  PetscCall(Reset(r)); /* as in SetNormType() */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt its, PetscReal rnorm, PetscCtx ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)its, (void)rnorm;
  ++*(PetscInt *)ctx;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetMonitor(Run *r)
{
  const PetscBool set = (PetscBool)(TestDraw(&r->d) < 0.5);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPMonitorCancel(r->ksp[k]));
    if (set) PetscCall(KSPMonitorSet(r->ksp[k], Monitor, &r->looks[k], NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode History(Run *r)
{
  const PetscBool set = (PetscBool)(TestDraw(&r->d) < 0.7);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(KSPSetResidualHistory(r->ksp[k], NULL, set ? MOST : 0, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SingleReduction(Run *r)
{
  const PetscBool single = (PetscBool)(TestDraw(&r->d) < 0.5);

  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX)) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) PetscCall(KSPCGUseSingleReduction(r->ksp[k], single));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Restart(Run *r)
{
  const PetscInt restart = 2 + TestDrawInt(&r->d, 30);
  PetscBool      lgmres;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)r->ksp[1], KSPLGMRES, &lgmres));
  if (lgmres) PetscFunctionReturn(PETSC_SUCCESS); /* as in Reset() */
  for (int k = 0; k < 2; k++) PetscCall(KSPGMRESSetRestart(r->ksp[k], restart));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reuse(Run *r)
{
  PetscBool reuse;

  PetscFunctionBegin;
  PetscCall(KSPGetReusePreconditioner(r->ksp[1], &reuse));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetUp(r->ksp[k])); /* what is reused is of the matrix that there is */
    PetscCall(KSPSetReusePreconditioner(r->ksp[k], PetscNot(reuse)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Run *r)
{
  PetscFunctionBegin;
  r->transpose = PetscNot(r->transpose);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of ours alone */
static PetscErrorCode Options(Run *r)
{
  static const char *const options[] = {"-ksp_gallop_fuse true", "-ksp_gallop_fuse true", "-ksp_gallop_fuse false", "-ksp_gallop_graph true", "-ksp_gallop_graph false"};
  const char              *option = options[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(options))];

  PetscFunctionBegin;
  PetscCall(TestNote(&r->d, option));
  PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(KSPSetFromOptions(r->ksp[0]));
  PetscCall(TestClearOptions(option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nothing(Run *r)
{
  PetscFunctionBegin;
  (void)r;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *name;
  PetscErrorCode (*call)(Run *);
} Call;

static const Call Calls[] = {
  {"newvalues",       NewValues      },
  {"scale",           Scale          },
  {"shift",           Shift          },
  {"diagonalscale",   DiagonalScale  },
  {"zerorowscolumns", ZeroRowsColumns},
  {"replace",         Replace        },
  {"operators",       Operators      },
  {"convert",         Convert        },
  {"bind",            Bind           },
  {"vectors",         Vectors        },
  {"type",            Type           },
  {"type",            Type           },
  {"type",            Type           },
  {"pc",              Preconditioner },
  {"pc",              Preconditioner },
  {"tolerances",      Tolerances     },
  {"normtype",        SetNormType    },
  {"guess",           Guess          },
  {"monitor",         SetMonitor     },
  {"history",         History        },
  {"singlereduction", SingleReduction},
  {"restart",         Restart        },
  {"reuse",           Reuse          },
  {"reset",           Reset          },
  {"transpose",       Transposed     },
  {"options",         Options        },
  {"nothing",         Nothing        },
};

/* ---- solves ---- */

/* PETSc estimates eigenvalues with random vectors, which the GPU draws otherwise */
static PetscErrorCode SetEigenvalues(Run *r)
{
  PetscReal norm = 2;

  PetscFunctionBegin;
  if (!r->jacobi) PetscCall(MatNorm(r->A[1], NORM_INFINITY, &norm));
  for (int k = 0; k < 2; k++) PetscCall(KSPChebyshevSetEigenvalues(r->ksp[k], norm, norm / 20));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Run *r)
{
  const PetscReal    tolerance = (PetscReal)(sizeof(PetscReal) < 8 ? 1e-2 : 1e-6);
  Vec                b[2], x[2];
  PetscInt           its[2], most, nhistory[2], looks[2] = {r->looks[0], r->looks[1]};
  const PetscReal   *history[2];
  KSPConvergedReason reason[2];
  KSPNormType        normtype;
  PetscReal          norm, error, rnorm[2];
  PetscBool          chebyshev, richardson, transpose;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)r->ksp[1], KSPCHEBYSHEV, &chebyshev));
  PetscCall(PetscObjectTypeCompare((PetscObject)r->ksp[1], KSPRICHARDSON, &richardson));
  if (chebyshev) PetscCall(SetEigenvalues(r));
  if (richardson) {
    if (!r->jacobi) PetscCall(MatNorm(r->A[1], NORM_INFINITY, &norm));
    for (int k = 0; k < 2; k++) PetscCall(KSPRichardsonSetScale(r->ksp[k], r->jacobi ? 0.8 : 1 / norm));
  }
  PetscCall(PetscObjectTypeCompareAny((PetscObject)r->ksp[1], &transpose, KSPCG, KSPBCGS, KSPGMRES, KSPRICHARDSON, KSPCHEBYSHEV, ""));
  transpose = (PetscBool)(transpose && r->transpose && !PetscDefined(USE_COMPLEX));
  if (transpose) { /* not all have a transpose */
    PC pc;

    PetscCall(KSPGetPC(r->ksp[1], &pc));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &transpose, PCJACOBI, PCNONE, PCPBJACOBI, ""));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(r->A[r->hostvectors ? 1 : k], &x[k], &b[k]));
    PetscCall(TestSetVec(b[k], r->d.seed));
    PetscCall(TestSetVec(x[k], r->d.seed + 1));
    if (transpose) PetscCall(KSPSolveTranspose(r->ksp[k], b[k], x[k]));
    else PetscCall(KSPSolve(r->ksp[k], b[k], x[k]));
    PetscCall(KSPGetIterationNumber(r->ksp[k], &its[k]));
    PetscCall(KSPGetConvergedReason(r->ksp[k], &reason[k]));
    PetscCall(KSPGetResidualNorm(r->ksp[k], &rnorm[k]));
    PetscCall(KSPGetTolerances(r->ksp[k], NULL, NULL, NULL, &most));
    PetscCall(KSPGetResidualHistory(r->ksp[k], &history[k], &nhistory[k]));
  }
  PetscCall(TestNoteInt(&r->d, its[1]));
  /* sums in another order may put a norm on the other side of what it is to fall to */
  TestCheck(PetscAbsInt(its[0] - its[1]) <= (sizeof(PetscReal) < 8 ? 1 + its[1] / 10 : 1), "%" PetscInt_FMT " iterations, not %" PetscInt_FMT, r->d.history, its[0], its[1]);
  TestCheck(reason[0] == reason[1] || (reason[0] > 0 && reason[1] > 0) || its[0] != its[1] || its[0] == most, "%s, not %s", r->d.history, KSPConvergedReasons[reason[0]], KSPConvergedReasons[reason[1]]);
  if (its[0] == its[1] && r->n >= LEAST) {
    TestCheck(nhistory[0] == nhistory[1], "%" PetscInt_FMT " norms, not %" PetscInt_FMT, r->d.history, nhistory[0], nhistory[1]);
    TestCheck(r->looks[0] - looks[0] == r->looks[1] - looks[1], "%" PetscInt_FMT " calls of the monitor, not %" PetscInt_FMT, r->d.history, r->looks[0] - looks[0], r->looks[1] - looks[1]);
    for (PetscInt k = 0; k < nhistory[1]; k++)
      TestCheck(PetscAbsReal(history[0][k] - history[1][k]) <= tolerance * PetscMax(1, history[1][0]), "norm %" PetscInt_FMT " is %g, not %g", r->d.history, k, (double)history[0][k], (double)history[1][k]);
    PetscCall(KSPGetNormType(r->ksp[1], &normtype));
    TestCheck(normtype == KSP_NORM_NONE || PetscAbsReal(rnorm[0] - rnorm[1]) <= tolerance * PetscMax(1, rnorm[1]), "the last norm is %g, not %g", r->d.history, (double)rnorm[0], (double)rnorm[1]);
  }
  PetscCall(TestVecError(x[0], x[1], &error, &norm));
  if (its[0] == its[1] || reason[1] > 0) {
    PetscReal rtol;

    PetscCall(KSPGetTolerances(r->ksp[1], &rtol, NULL, NULL, NULL));
    TestCheck(error <= (its[0] == its[1] ? tolerance : PetscMax(tolerance, 100 * rtol)) * PetscMax(1, norm), "solutions differ by %g of %g", r->d.history, (double)error, (double)norm);
  }
  r->solves++;
  r->converged += reason[1] > 0;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&b[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- sequences ---- */

static PetscErrorCode Sequence(PetscInt seed, const TestSequences *s, PetscInt *solves, PetscInt *converged)
{
  static const PetscInt sizes[] = {1, 7, 45, 200, 500, 3000, 12000}, blocks[] = {1, 1, 2, 3};
  Run                   r;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&r, sizeof(r)));
  r.d.seed = r.values = seed;
  r.n               = sizes[TestDrawInt(&r.d, PETSC_STATIC_ARRAY_LENGTH(sizes))];
  r.bs              = blocks[TestDrawInt(&r.d, PETSC_STATIC_ARRAY_LENGTH(blocks))];
  r.n               = r.bs * PetscMax(1, r.n / r.bs);
  r.symmetric       = (PetscBool)(TestDraw(&r.d) < 0.7);
  r.jacobi          = PETSC_TRUE;
  PetscCall(PetscSNPrintf(r.d.history, sizeof(r.d.history), "seed %" PetscInt_FMT ": %" PetscInt_FMT " rows, blocks of %" PetscInt_FMT ", %s", seed, r.n, r.bs, r.symmetric ? "symmetric:" : "not symmetric:"));
  PetscCall(Create(&r, 0));
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &r.ksp[k]));
    PetscCall(KSPSetOperators(r.ksp[k], r.A[k], r.A[k]));
    PetscCall(KSPSetType(r.ksp[k], r.symmetric ? KSPCG : KSPBCGS));
    PetscCall(KSPGetPC(r.ksp[k], &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(r.ksp[k], (PetscReal)(sizeof(PetscReal) < 8 ? 1e-4 : 1e-8), PETSC_CURRENT, PETSC_CURRENT, 300));
    PetscCall(KSPSetFromOptions(r.ksp[k]));
  }
  for (PetscInt k = 0; k < s->calls; k++) {
    const Call *call;
    PetscInt    more;

    PetscCall(TestChooseCall(&r.d, s, k, Calls, sizeof(*Calls), PETSC_STATIC_ARRAY_LENGTH(Calls), &call));
    more = s->listed ? 1 : TestDrawInt(&r.d, 3);
    PetscCall(TestNote(&r.d, call->name));
    PetscCall(TestShow(&r.d, s));
    TestDo(&r.d, (*call->call)(&r));
    for (PetscInt l = 0; l < more; l++) TestDo(&r.d, Solve(&r));
  }
  TestDo(&r.d, Solve(&r));
  PetscCall(TestShow(&r.d, s));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPDestroy(&r.ksp[k]));
    PetscCall(MatDestroy(&r.A[k]));
  }
  *solves += r.solves;
  *converged += r.converged;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fused(const char event[], PetscBool expected)
{
  PetscInt count = 0;

  PetscFunctionBegin;
  PetscCall(TestEventCount(event, &count, NULL));
  TestCheck(count > 0 || !expected, "no %s", "fused solves", event);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  TestSequences s;
  PetscInt      solves = 0, converged = 0;
  PetscBool     device = PETSC_FALSE;
  PetscMPIInt   size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscLogDefaultBegin());
  PetscCall(TestSequencesBegin(&s));
  PetscCall(TestHasDevice(&device));
  for (PetscInt k = 0; k < s.sequences; k++)
    if (TestInPart()) PetscCall(Sequence(s.seed + 1000 * k, &s, &solves, &converged));
  PetscCall(TestSequencesEnd(&s));
  TestCheck(2 * converged >= solves || solves < 400, "of %" PetscInt_FMT " solves %" PetscInt_FMT " converged", "solves", solves, converged);
  /* of fewer it may be none */
  PetscCall(Fused("GallopCGFused", device && solves >= 400));
  PetscCall(Fused("GallopBCGSFused", device && solves >= 400));
  PetscCall(Fused("GallopGMRESFused", device && solves >= 400));
  PetscCall(Fused("GallopChebFused", device && solves >= 1000));
  /* on several processes it asks for a test of convergence that a debug PETSc cannot take */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Fused("GallopRichFused", device && solves >= 1000 && !(PetscDefined(USE_DEBUG) && size > 1)));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 3}}
    test:
      suffix: 1
      args: -sequences 40
    test:
      suffix: types
      args: -format {{csroverlap fastload hbp gallop}} -sequences 6

TEST*/
