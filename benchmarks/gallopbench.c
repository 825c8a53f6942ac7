#include <petscgallop.h>
#include <petsctime.h>
#include <ctype.h>
#include "bench.h"
#include "generate.h"

static char help[] = "Times matrix-vector products of PETSc's and Gallop's matrix types, and of cuSPARSE, one process and one GPU.\n\
  -generate <name,...>    matrices by name, see below\n\
  -f <file,...>           matrices from files: .mtx, .mtx.gz, or PETSc's binary format; one whose values are all 1 gets random values\n\
  -types <type,...>       matrix types (aijcusparse,evchyb,csroverlap; without a GPU aij for aijcusparse). For type@name the options\n\
                          begin with name_: -types evchyb,evchyb@w -w_mat_evchyb_window 64\n\
  -raw                    also cuSPARSE called directly, with its algorithms CSR_ALG1 and CSR_ALG2\n\
  -setup                  instead of products: the times of conversion, build and refresh\n\
  -min_ms <30>            how long products are repeated with warm caches\n\
  -seed <1>               of the generated matrices and of x\n\
All other options are PETSc's and those of the types. The program runs where there is a GPU on the GPU, else on the host.\n\
\n\
Output: one line a matrix and type, fields separated by tabs\n\
  matrix m n nnz what k   k is the number of vectors, 1\n\
  setup_ms                from an AIJ matrix on the host until the first product has finished\n\
  warm_us                 time of a product, of many in a row: median of 7 measurements\n\
  cold_us                 time of a product before which 256 MiB were written, to flush caches: median of 7 measurements\n\
  GF_warm                 2 nnz / warm_us\n\
  eff                     bytes of the CSR arrays, x and y over cold_us, relative to the read bandwidth\n\
  B/nnz                   memory that the type took, in the place of the products\n\
  err                     largest error of an entry of the result, relative to the sum of |a x| of its row\n\
and with -setup\n\
  matrix nnz product_us convert_ms build_us refresh_us build/product refresh/product what\n\
  convert_ms is setup_ms; build and refresh begin with entries that are in the place of the products, medians of 5\n\
\n" BENCH_GENERATORS_HELP;

#if !defined(GALLOP_COMMIT)
  #define GALLOP_COMMIT "unknown"
#endif
#define MOST_NAMES 256

#if defined(PETSC_USE_COMPLEX)
typedef long double _Complex Long;
#else
typedef long double Long;
#endif

typedef struct {
  const BenchPlace *place;
  PetscLogDouble    bandwidth;
  PetscInt          seed, wrong;
  PetscReal         min_ms;
} Bench;

/* A matrix, a vector, and their product as it should be */
typedef struct {
  const char  *name;
  Mat          A;
  PetscInt     m, n, nz, longest;
  PetscScalar *x;
  Long        *y;
  PetscReal   *sums; /* of |a x|, by rows */
} Problem;

/* What is timed */
typedef struct {
  const Problem *problem;
  const char    *what;
  PetscInt       raw; /* which product by a library, or -1 for a matrix type */
  Mat            A;
  Vec            x, y;
  void          *rawdata;
  PetscInt       scalings;
} Case;

/* ---- the host as the place of products ---- */

static double         *HostArray;
static const size_t    HostLength = (size_t)256 << 17; /* 256 MiB */
static volatile double HostSum;                        /* so that the compiler keeps what is summed */

static PetscErrorCode HostAvailable(PetscBool *available)
{
  PetscFunctionBegin;
  *available = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostTime(BenchWork work, void *ctx, PetscInt n, PetscLogDouble *seconds)
{
  PetscLogDouble begin, end;

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  for (PetscInt k = 0; k < n; k++) PetscCall((*work)(ctx));
  PetscCall(PetscTime(&end));
  *seconds = end - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostTimeCold(BenchWork work, void *ctx, PetscLogDouble *seconds)
{
  static double value = 0;

  PetscFunctionBegin;
  value++;
  for (size_t k = 0; k < HostLength; k++) HostArray[k] = value;
  PetscCall(HostTime(work, ctx, 1, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostRead(void *unused)
{
  double part[8] = {0};

  PetscFunctionBegin;
  for (size_t k = 0; k < HostLength; k += 8)
    for (int p = 0; p < 8; p++) part[p] += HostArray[k + p];
  for (int p = 0; p < 8; p++) HostSum += part[p];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostStart(PetscLogDouble *bandwidth)
{
  FILE          *file = fopen("/proc/cpuinfo", "r");
  char           line[256], model[256] = "unknown";
  PetscLogDouble seconds;

  PetscFunctionBegin;
  while (file && fgets(line, sizeof(line), file))
    if (sscanf(line, "model name : %255[^\n]", model) == 1) break;
  if (file) (void)fclose(file);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# no GPU: products on one core of the host\n# machine: %s\n", model));
  PetscCall(PetscMalloc1(HostLength, &HostArray));
  for (size_t k = 0; k < HostLength; k++) HostArray[k] = (double)k; /* pages of zeros might all be the same page of memory */
  *bandwidth = 0;
  for (int k = 0; k < 5; k++) {
    PetscCall(HostTime(HostRead, NULL, 1, &seconds));
    *bandwidth = PetscMax(*bandwidth, HostLength * sizeof(double) / seconds);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostFinish(void)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(HostArray));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const BenchPlace BenchHost = {HostAvailable, HostStart, HostFinish, HostTime, HostTimeCold, PetscMemoryGetCurrentUsage, 0, NULL, NULL, NULL, NULL};

/* ---- problems ---- */

static PetscErrorCode Load(const char file[], Mat *A)
{
  PetscBool gz, mtx;

  PetscFunctionBegin;
  PetscCall(PetscStrendswith(file, ".mtx.gz", &gz));
  PetscCall(PetscStrendswith(file, ".mtx", &mtx));
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  if (gz || mtx) PetscCall(MatGallopLoadMatrixMarket(*A, file));
  else {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(*A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that are all 1 are those of a pattern; the error of products with them would show little */
static PetscErrorCode FillPattern(const Bench *b, Mat A)
{
  PetscInt        m, nz;
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscBool       done, pattern = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArray(A, &a));
  nz = i[m];
  for (PetscInt k = 0; k < nz && pattern; k++) pattern = (PetscBool)(a[k] == (PetscScalar)1.0);
  for (PetscInt r = 0; r < m && pattern; r++)
    for (PetscInt k = i[r]; k < i[r + 1]; k++) a[k] = BenchRandom(b->seed, r, j[k]);
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The name that the output shows: what stands before the =, or a file's name without folders and ending */
static PetscErrorCode ProblemName(const char given[], PetscBool file, char name[], size_t len, const char **rest)
{
  char *end = strchr((char *)given, '=');

  PetscFunctionBegin;
  *rest = given;
  if (file) {
    PetscCall(PetscStrrchr(given, '/', &end));
    PetscCall(PetscStrncpy(name, end, len));
    for (int k = 0; k < 3; k++) {
      static const char *const endings[] = {".gz", ".mtx", ".bin"};
      PetscBool                match;

      PetscCall(PetscStrendswith(name, endings[k], &match));
      if (match) name[strlen(name) - strlen(endings[k])] = 0;
    }
  } else {
    PetscCall(PetscStrncpy(name, given, len));
    if (!end) PetscFunctionReturn(PETSC_SUCCESS);
    name[PetscMin((size_t)(end - given), len - 1)] = 0;
    *rest                                          = end + 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemCreate(const Bench *b, const char name[], const char given[], PetscBool file, Problem *p)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  p->name = name;
  if (file) {
    PetscCall(Load(given, &p->A));
    PetscCall(FillPattern(b, p->A));
  } else PetscCall(BenchGenerate(given, b->seed, &p->A));
  PetscCall(MatGetSize(p->A, &p->m, &p->n));
  PetscCall(PetscMalloc3(p->n, &p->x, p->m, &p->y, p->m, &p->sums));
  for (PetscInt k = 0; k < p->n; k++) p->x[k] = BenchRandom(b->seed, -1, k);
  PetscCall(MatGetRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(p->A, &a));
  p->nz = i[p->m];
  for (PetscInt r = 0; r < p->m; r++) {
    p->y[r]    = 0;
    p->sums[r] = 0;
    p->longest = PetscMax(p->longest, i[r + 1] - i[r]);
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      p->y[r] += (Long)a[k] * (Long)p->x[j[k]];
      p->sums[r] += PetscAbsScalar(a[k] * p->x[j[k]]);
    }
  }
  PetscCall(MatSeqAIJRestoreArrayRead(p->A, &a));
  PetscCall(MatRestoreRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(Problem *p)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(p->x, p->y, p->sums));
  PetscCall(MatDestroy(&p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- cases ---- */

/* From the host's matrix to the end of the first product; Case.what says which */
typedef struct {
  const Bench *b;
  Case        *c;
} Start;

static PetscErrorCode CaseApply(void *ctx)
{
  const Case *c = (const Case *)ctx;

  PetscFunctionBegin;
  PetscCall(MatMult(c->A, c->x, c->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseStart(void *ctx)
{
  const Start   *s = (const Start *)ctx;
  Case          *c = s->c;
  const Problem *p = c->problem;
  char           type[128], prefix[128];
  char          *at;
  PetscScalar   *x;

  PetscFunctionBegin;
  if (c->raw >= 0) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &c->x));
    PetscCall(VecSetSizes(c->x, p->n, p->n));
    PetscCall(VecSetType(c->x, VECSEQCUDA));
    PetscCall(VecCreate(PETSC_COMM_SELF, &c->y));
    PetscCall(VecSetSizes(c->y, p->m, p->m));
    PetscCall(VecSetType(c->y, VECSEQCUDA));
  } else {
    PetscCall(PetscStrncpy(type, c->what, sizeof(type)));
    PetscCall(PetscStrchr(type, '@', &at));
    if (at) *at = 0;
    PetscCall(MatConvert(p->A, type, MAT_INITIAL_MATRIX, &c->A));
    if (at) {
      PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "%s_", at + 1));
      PetscCall(MatSetOptionsPrefix(c->A, prefix));
    }
    PetscCall(MatSetFromOptions(c->A));
    PetscCall(MatCreateVecs(c->A, &c->x, &c->y));
  }
  PetscCall(VecGetArrayWrite(c->x, &x));
  PetscCall(PetscArraycpy(x, p->x, p->n));
  PetscCall(VecRestoreArrayWrite(c->x, &x));
  if (c->raw >= 0) {
    PetscCall((*s->b->place->rawcreate)(p->A, c->raw, c->x, c->y, &c->rawdata));
    PetscCall((*s->b->place->rawapply)(c->rawdata));
  } else PetscCall(CaseApply(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDestroy(const Bench *b, Case *c)
{
  PetscFunctionBegin;
  if (c->rawdata) PetscCall((*b->place->rawdestroy)(&c->rawdata));
  PetscCall(MatDestroy(&c->A));
  PetscCall(VecDestroy(&c->x));
  PetscCall(VecDestroy(&c->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of a type that are not the type's own are worth a remark */
static PetscErrorCode CaseRemark(const Case *c)
{
  PetscBool           is = PETSC_FALSE;
  MatGallopStatistics stats;

  PetscFunctionBegin;
  if (c->A) PetscCall(MatGallopIsFormat(c->A, &is));
  if (!is) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetStatistics(c->A, &stats));
  if (stats.fallbacks) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# %s %s: %" PetscInt64_FMT " products were the parent type's\n", c->problem->name, c->what, stats.fallbacks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With NaN for an entry that is none; the comparison lets it through */
static PetscErrorCode CaseError(const Case *c, PetscReal *err)
{
  const Problem     *p = c->problem;
  const PetscScalar *y;

  PetscFunctionBegin;
  *err = 0;
  PetscCall(VecGetArrayRead(c->y, &y));
  for (PetscInt r = 0; r < p->m; r++) {
    const PetscReal difference = PetscAbsScalar((PetscScalar)((Long)y[r] - p->y[r])), e = difference == 0 ? 0 : difference / p->sums[r];

    if (!(e <= *err)) *err = e;
  }
  PetscCall(VecRestoreArrayRead(c->y, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MEASUREMENTS 7

static PetscErrorCode Median(PetscInt n, PetscReal times[], PetscLogDouble *median)
{
  PetscFunctionBegin;
  PetscCall(PetscSortReal(n, times));
  *median = times[n / 2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeWarm(const Bench *b, BenchWork work, void *ctx, PetscLogDouble *warm)
{
  PetscReal      times[MEASUREMENTS];
  PetscLogDouble t;
  PetscInt       repeat;

  PetscFunctionBegin;
  PetscCall((*b->place->time)(work, ctx, 5, &t));
  PetscCall((*b->place->time)(work, ctx, 5, &t));
  repeat = (PetscInt)PetscClipInterval(b->min_ms * 1e-3 / MEASUREMENTS / (t / 5), 3, 10000);
  for (PetscInt k = 0; k < MEASUREMENTS; k++) {
    PetscCall((*b->place->time)(work, ctx, repeat, &t));
    times[k] = (PetscReal)t / repeat;
  }
  PetscCall(Median(MEASUREMENTS, times, warm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeProducts(Bench *b, Case *c)
{
  const Problem *p     = c->problem;
  const double   bytes = (double)p->nz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (p->m + 1.0) * sizeof(PetscInt) + ((double)p->m + p->n) * sizeof(PetscScalar);
  Start          start = {b, c};
  BenchWork      work  = c->raw >= 0 ? b->place->rawapply : CaseApply;
  PetscReal      err, times[MEASUREMENTS];
  PetscLogDouble before, after, setup, warm, cold;
  PetscBool      right;

  PetscFunctionBegin;
  PetscCall((*b->place->memory)(&before));
  PetscCall((*b->place->time)(CaseStart, &start, 1, &setup));
  PetscCall((*b->place->memory)(&after));
  void *ctx = c->raw >= 0 ? c->rawdata : c;
  PetscCall(TimeWarm(b, work, ctx, &warm));
  for (PetscInt k = 0; k < MEASUREMENTS; k++) {
    PetscCall((*b->place->timecold)(work, ctx, &cold));
    times[k] = (PetscReal)cold;
  }
  PetscCall(Median(MEASUREMENTS, times, &cold));
  PetscCall(VecSet(c->y, PETSC_INFINITY)); /* so that what a product does not write shows */
  PetscCall((*work)(ctx));
  PetscCall(CaseError(c, &err));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%s\t1\t%.3f\t%.2f\t%.2f\t%.1f\t%.3f\t%.2f\t%.1e\n", p->name, p->m, p->n, p->nz, c->what, setup * 1e3, warm * 1e6, cold * 1e6, 2e-9 * p->nz / warm, bytes / cold / b->bandwidth, (after - before) / PetscMax(p->nz, 1), (double)err));
  PetscCall(CaseRemark(c));
  right = (PetscBool)(err <= (100 + p->longest) * PETSC_MACHINE_EPSILON);
  if (!right) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# WRONG %s %s: error %.1e\n", p->name, c->what, (double)err));
  b->wrong += !right;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- -setup ---- */

static PetscErrorCode CaseScale(void *ctx)
{
  Case *c = (Case *)ctx;

  PetscFunctionBegin;
  PetscCall(MatScale(c->A, c->scalings++ % 2 ? 0.5 : 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseScaleAndApply(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(CaseScale(ctx));
  PetscCall(CaseApply(ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeSetup(Bench *b, Case *c)
{
  enum { BUILDS = 5, SCALINGS = 20 };
  Start          start = {b, c};
  PetscReal      builds[BUILDS], refreshes[BUILDS];
  PetscLogDouble convert, product, build, refresh = 0, scale, both;

  PetscFunctionBegin;
  PetscCall((*b->place->time)(CaseStart, &start, 1, &convert));
  PetscCall(TimeWarm(b, CaseApply, c, &product));
  for (PetscInt k = 0; k < BUILDS; k++) {
    Case copy = *c;

    PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &copy.A));
    PetscCall(MatMultTranspose(copy.A, c->y, c->x)); /* the parent's: it brings the entries to the place of the products, and builds nothing */
    PetscCall((*b->place->time)(CaseApply, &copy, 1, &build));
    PetscCall((*b->place->time)(CaseScale, &copy, SCALINGS, &scale));
    PetscCall((*b->place->time)(CaseScaleAndApply, &copy, SCALINGS, &both));
    builds[k]    = (PetscReal)(build - product);
    refreshes[k] = (PetscReal)((both - scale) / SCALINGS - product);
    PetscCall(MatDestroy(&copy.A));
  }
  PetscCall(Median(BUILDS, builds, &build));
  PetscCall(Median(BUILDS, refreshes, &refresh));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%.2f\t%s\n", c->problem->name, c->problem->nz, product * 1e6, convert * 1e3, build * 1e6, refresh * 1e6, build / product, refresh / product, c->what));
  PetscCall(CaseRemark(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- runs ---- */

/* What else the options database holds for the types; docs and tables show it */
static PetscErrorCode PrintOptions(void)
{
  char     *all, *word, *rest;
  PetscBool ours = PETSC_FALSE, first = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetAll(NULL, &all));
  for (word = rest = all; (word = strsep(&rest, " "));) {
    if (word[0] == '-' && isalpha((unsigned char)word[1])) ours = (PetscBool)(strstr(word, "mat_") != NULL);
    if (!ours || !*word) continue;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s %s", first ? "# options:" : "", word));
    first = PETSC_FALSE;
  }
  if (!first) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Bench *b, const char given[], PetscBool file, PetscInt ntypes, char *types[], PetscBool raw, PetscErrorCode (*measure)(Bench *, Case *))
{
  Problem     p;
  const char *rest;
  char        name[PETSC_MAX_PATH_LEN];

  PetscFunctionBegin;
  PetscCall(ProblemName(given, file, name, sizeof(name), &rest));
  PetscCall(ProblemCreate(b, name, rest, file, &p));
  for (PetscInt t = 0; t < ntypes + (raw ? b->place->nraw : 0); t++) {
    Case c = {&p, t < ntypes ? types[t] : b->place->rawnames[t - ntypes], t < ntypes ? -1 : t - ntypes, NULL, NULL, NULL, NULL, 0};

    PetscCall((*measure)(b, &c));
    PetscCall(CaseDestroy(b, &c));
  }
  PetscCall(ProblemDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first product of a process sets up what later ones find: handles, pools, kernels */
static PetscErrorCode WarmUp(Bench *b, Case *c)
{
  Start          start = {b, c};
  PetscLogDouble t;

  PetscFunctionBegin;
  PetscCall((*b->place->time)(CaseStart, &start, 1, &t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench       b = {&BenchHost, 0, 1, 0, 30};
  char       *types[MOST_NAMES], *files[MOST_NAMES], *names[MOST_NAMES], version[256];
  PetscInt    ntypes = MOST_NAMES, nfiles = MOST_NAMES, nnames = MOST_NAMES;
  PetscBool   raw = PETSC_FALSE, setup = PETSC_FALSE, set, available, match;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_WRONG_MPI_SIZE, "This program runs on one process");
#if defined(PETSC_HAVE_CUDA)
  PetscCall((*BenchDevice.available)(&available));
  if (available) b.place = &BenchDevice;
#endif
  PetscCall((*b.place->available)(&available));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-f", files, &nfiles, &set));
  if (!set) nfiles = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-generate", names, &nnames, &set));
  if (!set) nnames = 0;
  PetscCheck(nfiles + nnames, PETSC_COMM_WORLD, PETSC_ERR_USER, "Name matrices: -generate star7_100 or -f matrix.mtx; -help lists all options");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &ntypes, &set));
  if (!set) {
    ntypes = 3;
    PetscCall(PetscStrallocpy(MATAIJCUSPARSE, &types[0]));
    PetscCall(PetscStrallocpy(MATEVCHYB, &types[1]));
    PetscCall(PetscStrallocpy(MATCSROVERLAP, &types[2]));
  }
  for (PetscInt t = 0; t < ntypes; t++) {
    PetscCall(PetscStrcmp(types[t], MATAIJCUSPARSE, &match));
    if (match && b.place == &BenchHost) types[t][3] = 0;
  }
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-raw", &raw, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setup", &setup, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-min_ms", &b.min_ms, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &b.seed, NULL));

  PetscCall(PetscGetVersion(version, sizeof(version)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# Gallop commit " GALLOP_COMMIT "\n# %s\n", version));
  PetscCall((*b.place->start)(&b.bandwidth));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# read bandwidth %.0f GB/s\n", b.bandwidth * 1e-9));
  PetscCall(PrintOptions());
  PetscCall(PetscPrintf(PETSC_COMM_SELF, setup ? "# matrix\tnnz\tproduct_us\tconvert_ms\tbuild_us\trefresh_us\tbuild/product\trefresh/product\twhat\n" : "# matrix\tm\tn\tnnz\twhat\tk\tsetup_ms\twarm_us\tcold_us\tGF_warm\teff\tB/nnz\terr\n"));
  PetscCall(Run(&b, "star5_32", PETSC_FALSE, ntypes, types, (PetscBool)(raw && !setup), WarmUp));
  for (PetscInt k = 0; k < nnames + nfiles; k++)
    PetscCall(Run(&b, k < nnames ? names[k] : files[k - nnames], (PetscBool)(k >= nnames), ntypes, types, (PetscBool)(raw && !setup), setup ? TimeSetup : TimeProducts));

  PetscCall((*b.place->finish)());
  for (PetscInt k = 0; k < nnames; k++) PetscCall(PetscFree(names[k]));
  for (PetscInt k = 0; k < nfiles; k++) PetscCall(PetscFree(files[k]));
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(PetscFree(types[t]));
  PetscCheck(!b.wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " results are wrong", b.wrong);
  PetscCall(PetscFinalize());
  return 0;
}
