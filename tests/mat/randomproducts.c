/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Products of sparse matrices, computed again between calls that change their factors or a result, in an order that a seed chooses: of Gallop matrices as of MATAIJ.\n\
  -seed <k>: of the first sequence; a failure tells the seed and the calls before it\n\
  -sequences <n>: how many\n\
  -calls <n>: in each\n\
  -list <name,...>: these calls, instead of drawn ones\n\
  -show: what is called, before it is\n\n";

#include "../producttest.h"
#include "../randomtest.h"

typedef enum { A, P, R, FACTORS } Factor; /* a square matrix, a tall one and a wide one */

typedef struct {
  const char    *name;
  MatProductType type;
  Factor         factors[3];
  int            n;
  PetscBool      alone; /* on one process only: PETSc has none of MPI matrices, or takes a wrong factor when it is computed again */
} Kind;

static const Kind Kinds[] = {
  {"AP",    MATPRODUCT_AB,   {A, P},    2, PETSC_FALSE},
  {"AA",    MATPRODUCT_AB,   {A, A},    2, PETSC_FALSE},
  {"RA",    MATPRODUCT_AB,   {R, A},    2, PETSC_FALSE},
  {"A^TP",  MATPRODUCT_AtB,  {A, P},    2, PETSC_FALSE},
  {"P^TP",  MATPRODUCT_AtB,  {P, P},    2, PETSC_FALSE},
  {"AR^T",  MATPRODUCT_ABt,  {A, R},    2, PETSC_TRUE },
  {"P^TAP", MATPRODUCT_PtAP, {A, P},    2, PETSC_FALSE},
  {"P^TAP", MATPRODUCT_PtAP, {A, P},    2, PETSC_FALSE},
  {"RAR^T", MATPRODUCT_RARt, {A, R},    2, PETSC_TRUE },
  {"RAP",   MATPRODUCT_ABC,  {R, A, P}, 3, PETSC_TRUE },
};

typedef struct {
  const Kind *kind; /* NULL: there is none */
  PetscBool   api;  /* by MatMatMult() and the functions like it */
  Mat         D[2]; /* of ours, and of plain matrices */
} Result;

typedef struct {
  Mat       M[FACTORS][2]; /* ours, and plain */
  Result    results[3];
  TestDraws d;
  PetscInt  values; /* seed of the entries */
  PetscInt  computed;
} Run;

static PetscErrorCode DestroyResult(Result *result)
{
  PetscFunctionBegin;
  if (result->kind) PetscCall(TestDestroy(&result->D[0], &result->D[1]));
  result->kind = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a factor that is of another type now, or of another pattern: they would have to be set up again */
static PetscErrorCode DestroyResultsOf(Run *r, Factor f)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(r->results); k++) {
    Result   *result = &r->results[k];
    PetscBool has    = PETSC_FALSE;

    for (int l = 0; result->kind && l < result->kind->n; l++) has = (PetscBool)(has || result->kind->factors[l] == f);
    if (has) PetscCall(DestroyResult(result));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static Factor DrawFactor(Run *r)
{
  return (Factor)TestDrawInt(&r->d, FACTORS);
}

/* One that is there, or NULL */
static Result *DrawResult(Run *r)
{
  Result *there[PETSC_STATIC_ARRAY_LENGTH(r->results)];
  int     n = 0;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(r->results); k++)
    if (r->results[k].kind) there[n++] = &r->results[k];
  return n ? there[TestDrawInt(&r->d, n)] : NULL;
}

/* ---- products ---- */

static PetscErrorCode ByPhases(const Kind *kind, Mat M[3], MatReuse reuse, Mat *D)
{
  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(MatProductCreate(M[0], M[1], M[2], D));
    PetscCall(MatProductSetType(*D, kind->type));
    PetscCall(MatProductSetFromOptions(*D));
    PetscCall(MatProductSymbolic(*D));
  } else PetscCall(MatProductReplaceMats(M[0], M[1], M[2], *D));
  PetscCall(MatProductNumeric(*D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compute(Run *r, Result *result, MatReuse reuse)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat M[3] = {NULL, NULL, NULL};

    for (int l = 0; l < result->kind->n; l++) M[l] = r->M[result->kind->factors[l]][k];
    if (result->api) PetscCall(TestMatProduct(result->kind->type, M, reuse, &result->D[k]));
    else PetscCall(ByPhases(result->kind, M, reuse, &result->D[k]));
  }
  r->computed++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its entries, and a product with it */
static PetscErrorCode Check(Run *r, Mat D[2])
{
  Vec       x[2], z[2];
  PetscReal norm, size, error, unused;

  PetscFunctionBegin;
  PetscCall(TestCompareEntries(D[0], D[1], r->d.history));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(D[k], &x[k], &z[k]));
    PetscCall(TestSetVec(x[k], r->d.seed));
    PetscCall(MatMult(D[k], x[k], z[k]));
  }
  PetscCall(MatNorm(D[1], NORM_FROBENIUS, &norm));
  PetscCall(VecNorm(x[1], NORM_2, &size));
  PetscCall(TestVecError(z[0], z[1], &error, &unused));
  TestCheck(error <= 200 * PETSC_MACHINE_EPSILON * norm * size, "a product with the result differs by %g", r->d.history, (double)error);
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&z[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(Run *r)
{
  Result     *result = &r->results[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(r->results))];
  const Kind *kind   = &Kinds[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(Kinds))];
  PetscBool   gallop, ours = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (kind->alone && size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(DestroyResult(result));
  result->kind = kind;
  result->api  = (PetscBool)(TestDraw(&r->d) < 0.5);
  PetscCall(TestNote(&r->d, kind->name));
  PetscCall(Compute(r, result, MAT_INITIAL_MATRIX));
  for (int l = 0; l < kind->n; l++) {
    PetscCall(MatGallopIsFormat(r->M[kind->factors[l]][0], &gallop));
    ours = (PetscBool)(ours || gallop);
  }
  PetscCall(TestIsOurs(result->D[0], ours, r->d.history));
  PetscCall(Check(r, result->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Again(Run *r)
{
  Result *result = DrawResult(r);

  PetscFunctionBegin;
  if (!result) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestNote(&r->d, result->kind->name));
  PetscCall(Compute(r, result, MAT_REUSE_MATRIX));
  PetscCall(Check(r, result->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- factors ---- */

static PetscErrorCode NewValues(Run *r)
{
  const Factor f = DrawFactor(r);

  PetscFunctionBegin;
  r->values++;
  for (int k = 0; k < 2; k++) PetscCall(TestFill(r->M[f][k], r->d.seed + f, r->values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the GPU, if there is one; of a factor or a result */
static PetscErrorCode Scale(Run *r)
{
  static const PetscReal factors[] = {-1, 2, 0.5};
  const PetscReal        factor    = factors[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(factors))];
  const Factor           f         = DrawFactor(r);
  Result                *result    = TestDraw(&r->d) < 0.3 ? DrawResult(r) : NULL;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatScale(result ? result->D[k] : r->M[f][k], factor));
  if (result) PetscCall(Check(r, result->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Run *r)
{
  const Factor f = DrawFactor(r);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Vec left;

    PetscCall(MatCreateVecs(r->M[f][k], NULL, &left));
    PetscCall(TestSetVec(left, r->d.seed));
    PetscCall(VecShift(left, 2.0));
    PetscCall(VecScale(left, 0.5));
    PetscCall(MatDiagonalScale(r->M[f][k], left, NULL));
    PetscCall(VecDestroy(&left));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY(Run *r)
{
  const Factor f = DrawFactor(r);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat X;

    PetscCall(MatDuplicate(r->M[f][k], MAT_COPY_VALUES, &X));
    PetscCall(MatAXPY(r->M[f][k], 0.5, X, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&X));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another matrix of the same pattern, which results are computed of from now on. Some of PETSc's keep the transpose that they have made of the first P or R. */
static PetscErrorCode Duplicate(Run *r)
{
  const Factor f = DrawFactor(r);

  PetscFunctionBegin;
  if (f != A) PetscCall(DestroyResultsOf(r, f));
  for (int k = 0; k < 2; k++) {
    Mat X;

    PetscCall(MatDuplicate(r->M[f][k], MAT_COPY_VALUES, &X));
    PetscCall(MatScale(X, -1.0));
    PetscCall(MatDestroy(&r->M[f][k]));
    r->M[f][k] = X;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place */
static PetscErrorCode Convert(Run *r)
{
  const MatType types[] = {TestFormat(""), TestFormat(""), MATHBP, MATAIJ, MATGALLOP};
  const MatType type    = types[TestDrawInt(&r->d, PETSC_STATIC_ARRAY_LENGTH(types))];
  const Factor  f       = DrawFactor(r);

  PetscFunctionBegin;
  PetscCall(TestNote(&r->d, type));
  PetscCall(DestroyResultsOf(r, f));
  PetscCall(MatConvert(r->M[f][0], type, MAT_INPLACE_MATRIX, &r->M[f][0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bind(Run *r)
{
  const Factor f = DrawFactor(r);
  PetscBool    bound;

  PetscFunctionBegin;
  PetscCall(DestroyResultsOf(r, f));
  PetscCall(MatBoundToCPU(r->M[f][0], &bound));
  PetscCall(MatBindToCPU(r->M[f][0], PetscNot(bound)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors, which build a format */
static PetscErrorCode Mult(Run *r)
{
  const Factor f = DrawFactor(r);

  PetscFunctionBegin;
  PetscCall(Check(r, r->M[f]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char HostOptions[] = "-matmatmult_backend_cpu 1 -mattransposematmult_backend_cpu 1 -matptap_backend_cpu 1 -matrart_backend_cpu 1 -matmatmatmult_backend_cpu 1 -mat_product_algorithm_backend_cpu 1";

/* Products that are set up from now on are the host's, or not */
static PetscErrorCode Backend(Run *r)
{
  PetscFunctionBegin;
  if (TestDraw(&r->d) < 0.5) PetscCall(PetscOptionsInsertString(NULL, HostOptions));
  else PetscCall(TestClearOptions(HostOptions));
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
  {"new",           New          },
  {"new",           New          },
  {"new",           New          },
  {"newvalues",     NewValues    },
  {"newvalues",     NewValues    },
  {"scale",         Scale        },
  {"scale",         Scale        },
  {"diagonalscale", DiagonalScale},
  {"axpy",          AXPY         },
  {"duplicate",     Duplicate    },
  {"convert",       Convert      },
  {"bind",          Bind         },
  {"mult",          Mult         },
  {"backend",       Backend      },
  {"nothing",       Nothing      },
};

/* ---- sequences ---- */

static PetscErrorCode Sequence(PetscInt seed, const TestSequences *s, PetscInt *computed)
{
  static const PetscInt rows[] = {7, 28, 45, 60, 130}, columns[] = {4, 25, 45}; /* in a result of one entry, a sum may all but vanish */
  Run                   r;
  PetscInt              m, n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&r, sizeof(r)));
  r.d.seed = r.values = seed;
  m                   = rows[TestDrawInt(&r.d, PETSC_STATIC_ARRAY_LENGTH(rows))];
  n                   = columns[TestDrawInt(&r.d, PETSC_STATIC_ARRAY_LENGTH(columns))];
  PetscCall(PetscSNPrintf(r.d.history, sizeof(r.d.history), "seed %" PetscInt_FMT ": %" PetscInt_FMT " and %" PetscInt_FMT " rows:", seed, m, n));
  for (int f = 0; f < FACTORS; f++) {
    const TestShape shape = {f == R ? n : m, f == P ? n : m, PETSC_TRUE};
    const PetscBool ours  = (PetscBool)(TestDraw(&r.d) < 0.8);

    PetscCall(TestCreate(PETSC_COMM_WORLD, ours ? TestFormat("") : MATAIJ, shape, seed + f, &r.M[f][0], &r.M[f][1]));
    PetscCall(TestNote(&r.d, ours ? "ours" : "plain"));
  }
  for (PetscInt k = 0; k < s->calls; k++) {
    const Call *call;
    PetscInt    more;

    PetscCall(TestChooseCall(&r.d, s, k, Calls, sizeof(*Calls), PETSC_STATIC_ARRAY_LENGTH(Calls), &call));
    more = s->listed ? 1 : TestDrawInt(&r.d, 3);
    PetscCall(TestNote(&r.d, call->name));
    PetscCall(TestShow(&r.d, s));
    TestDo(&r.d, (*call->call)(&r));
    for (PetscInt l = 0; l < more; l++) TestDo(&r.d, Again(&r));
  }
  PetscCall(TestShow(&r.d, s));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(r.results); k++) PetscCall(DestroyResult(&r.results[k]));
  for (int f = 0; f < FACTORS; f++) PetscCall(TestDestroy(&r.M[f][0], &r.M[f][1]));
  PetscCall(TestClearOptions(HostOptions));
  *computed += r.computed;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  TestSequences s;
  PetscInt      computed = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestSequencesBegin(&s));
  for (PetscInt k = 0; k < s.sequences; k++)
    if (TestInPart()) PetscCall(Sequence(s.seed + 1000 * k, &s, &computed));
  PetscCall(TestSequencesEnd(&s));
  TestCheck(computed >= 5 * s.sequences || s.sequences < 20, "%" PetscInt_FMT " in %" PetscInt_FMT " sequences", "computed products", computed, s.sequences);
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 2 3}}
    test:
      suffix: 1
      args: -sequences 30 -options_left no
    test:
      suffix: types
      args: -format {{csroverlap fastload hbp gallop}} -sequences 6 -options_left no

TEST*/
