/* SPDX-License-Identifier: BSD-2-Clause */
/* What the benchmark programs share: problems, medians, lists of options */

#include <petscgallop.h>
#include "bench.h"
#include "generate.h"

#if defined(PETSC_USE_COMPLEX)
typedef long double _Complex Long;
#else
typedef long double Long;
#endif

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
static PetscErrorCode FillPattern(PetscInt seed, Mat A)
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
    for (PetscInt k = i[r]; k < i[r + 1]; k++) a[k] = BenchRandomScalar(seed, PetscMin(r, j[k]), PetscMax(r, j[k]));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The name that the output shows: what stands before a =, or a file's name without folders and ending */
PetscErrorCode BenchProblemCreate(const char given[], PetscBool file, PetscInt seed, PetscBool transpose, PetscInt columns, BenchProblem *p)
{
  static const char *const endings[] = {".gz", ".mtx", ".bin"};
  char                    *rest;
  const PetscInt          *i, *j;
  const PetscScalar       *a;
  PetscBool                done;
  Long                    *y;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscCall(PetscStrncpy(p->name, given, sizeof(p->name)));
  if (file) {
    PetscCall(PetscStrrchr(given, '/', &rest));
    PetscCall(PetscStrncpy(p->name, rest, sizeof(p->name)));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(endings); k++) {
      PetscCall(PetscStrendswith(p->name, endings[k], &done));
      if (done) p->name[strlen(p->name) - strlen(endings[k])] = 0;
    }
    PetscCall(Load(given, &p->A));
    PetscCall(FillPattern(seed, p->A));
  } else {
    PetscCall(PetscStrchr(p->name, '=', &rest));
    if (rest) *rest = 0;
    PetscCall(BenchGenerate(rest ? given + (rest - p->name) + 1 : given, seed, &p->A));
  }
  PetscCall(MatGetSize(p->A, &p->m, &p->n));
  p->nx      = transpose ? p->m : p->n;
  p->ny      = transpose ? p->n : p->m;
  p->k       = columns;
  p->columns = PetscMax(1, PetscMin(columns, BENCH_COLUMNS));
  PetscCall(PetscMalloc3(p->columns * p->nx, &p->x, p->columns * p->ny, &y, p->columns * p->ny, &p->sums));
  p->y = y;
  PetscCall(PetscArrayzero(p->sums, p->columns * p->ny));
  for (PetscInt k = 0; k < p->columns * p->ny; k++) y[k] = 0;
  for (PetscInt k = 0; k < p->columns * p->nx; k++) p->x[k] = BenchRandomScalar(seed, -1, k);
  PetscCall(MatGetRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(p->A, &a));
  p->nz = i[p->m];
  for (PetscInt r = 0; r < p->m; r++) {
    p->longest = PetscMax(p->longest, i[r + 1] - i[r]);
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      for (PetscInt c = 0; c < p->columns; c++) {
        const PetscInt from = c * p->nx + (transpose ? r : j[k]), to = c * p->ny + (transpose ? j[k] : r);

        y[to] += (Long)a[k] * (Long)p->x[from];
        p->sums[to] += PetscAbsScalar(a[k] * p->x[from]);
      }
    }
  }
  PetscCall(MatSeqAIJRestoreArrayRead(p->A, &a));
  PetscCall(MatRestoreRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far the lengths of rows are from the mean, relative to it, tells more of a matrix than its size */
PetscErrorCode BenchProblemRemark(const BenchProblem *p)
{
  const PetscInt *i;
  PetscBool       done;
  const PetscReal mean    = (PetscReal)p->nz / PetscMax(p->m, 1);
  PetscReal       squares = 0;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, NULL, &done));
  for (PetscInt r = 0; r < p->m; r++) squares += PetscSqr(i[r + 1] - i[r] - mean);
  PetscCall(MatRestoreRowIJ(p->A, 0, PETSC_FALSE, PETSC_FALSE, NULL, &i, NULL, &done));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# %s has rows of %.1f entries, variation %.3f, the longest %" PetscInt_FMT "\n", p->name, (double)mean, (double)(mean > 0 ? PetscSqrtReal(squares / p->m) / mean : 0), p->longest));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchProblemDestroy(BenchProblem *p)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(p->x, p->y, p->sums));
  PetscCall(MatDestroy(&p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which of the columns that differ another one is a multiple of, and by which power of two: its result is that power's multiple too, to the last bit */
static PetscReal Multiple(const BenchProblem *p, PetscInt column, PetscInt *of)
{
  *of = column % p->columns;
  return (PetscReal)((PetscInt)1 << column / p->columns % 5);
}

PetscErrorCode BenchProblemFill(const BenchProblem *p, PetscScalar x[])
{
  PetscFunctionBegin;
  for (PetscInt c = 0; c < PetscMax(p->k, 1); c++) {
    PetscInt        of;
    const PetscReal multiple = Multiple(p, c, &of);

    for (PetscInt r = 0; r < p->nx; r++) x[(PetscCount)c * p->nx + r] = multiple * p->x[of * p->nx + r];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest, or NaN where an entry is none: once it is there no other is larger */
PetscErrorCode BenchProblemError(const BenchProblem *p, const PetscScalar y[], PetscInt lda, PetscReal *err)
{
  PetscFunctionBegin;
  *err = 0;
  for (PetscInt c = 0; c < PetscMax(p->k, 1); c++) {
    PetscInt           of;
    const PetscReal    multiple = Multiple(p, c, &of);
    const Long        *exact    = (const Long *)p->y + of * p->ny;
    const PetscReal   *sums     = p->sums + of * p->ny;
    const PetscScalar *column   = y + (PetscCount)c * lda;

    for (PetscInt r = 0; r < p->ny; r++) {
      const PetscReal difference = PetscAbsScalar((PetscScalar)((Long)column[r] / multiple - exact[r])), e = difference == 0 ? 0 : difference / sums[r];

      if (PetscIsNanReal(e) || e > *err) *err = e;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- times ---- */

PetscErrorCode BenchMedian(PetscReal times[], PetscLogDouble *median, PetscReal range[2])
{
  PetscFunctionBegin;
  PetscCall(PetscSortReal(BENCH_MEASUREMENTS, times));
  *median = times[BENCH_MEASUREMENTS / 2];
  if (range) {
    range[0] = times[0];
    range[1] = times[BENCH_MEASUREMENTS - 1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchTimeWarm(const BenchPlace *place, BenchWork work, void *ctx, PetscReal min_ms, PetscLogDouble *warm, PetscReal range[2])
{
  PetscReal      times[BENCH_MEASUREMENTS];
  PetscLogDouble t;
  PetscInt       repeat;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < 2; k++) PetscCall((*place->time)(work, ctx, 5, &t));
  repeat = (PetscInt)PetscClipInterval(min_ms * 1e-3 / BENCH_MEASUREMENTS / (t / 5), 3, 10000);
  for (PetscInt k = 0; k < BENCH_MEASUREMENTS; k++) {
    PetscCall((*place->time)(work, ctx, repeat, &t));
    times[k] = (PetscReal)t / repeat;
  }
  PetscCall(BenchMedian(times, warm, range));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchTimeCold(const BenchPlace *place, BenchWork work, void *ctx, PetscLogDouble *cold, PetscReal range[2])
{
  PetscReal times[BENCH_MEASUREMENTS];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < BENCH_MEASUREMENTS; k++) {
    PetscCall((*place->timecold)(work, ctx, cold));
    times[k] = (PetscReal)*cold;
  }
  PetscCall(BenchMedian(times, cold, range));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- options ---- */

/* A misspelled option must not pass for one that had no effect */
static PetscErrorCode PrintUnused(void)
{
  PetscInt n;
  char   **names, **values;

  PetscFunctionBegin;
  PetscCall(PetscOptionsLeftGet(NULL, &n, &names, &values));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# NOT USED -%s %s\n", names[k], values[k] ? values[k] : ""));
  PetscCall(PetscOptionsLeftRestore(NULL, &n, &names, &values));
  PetscCall(PetscOptionsSetValue(NULL, "-options_left", "0")); /* PETSc would say it again, in lines that are no comments */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The strings that an option lists; those of ifnot when it is not given */
PetscErrorCode BenchList(const char option[], PetscInt nifnot, const char *const ifnot[], PetscInt *n, char *list[])
{
  PetscBool set;

  PetscFunctionBegin;
  *n = BENCH_MOST_NAMES;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, list, n, &set));
  if (set) PetscFunctionReturn(PETSC_SUCCESS);
  for (*n = 0; *n < nifnot; (*n)++) PetscCall(PetscStrallocpy(ifnot[*n], &list[*n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchFreeList(PetscInt n, char *list[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscFree(list[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchSplitType(const char what[], char type[], size_t len, const char **name)
{
  char *end;

  PetscFunctionBegin;
  PetscCall(PetscStrchr(what, '@', &end));
  *name = end ? what + (end - what) + 1 : NULL;
  PetscCall(PetscStrncpy(type, what, len));
  PetscCall(PetscStrchr(type, '@', &end));
  if (end) *end = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- programs ---- */

PetscErrorCode BenchInputCreate(BenchInput *in)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_WRONG_MPI_SIZE, "This program runs on one process");
  in->seed   = 1;
  in->min_ms = 30;
  in->wrong  = 0;
  PetscCall(BenchList("-f", 0, NULL, &in->nfiles, in->files));
  PetscCall(BenchList("-generate", 0, NULL, &in->nnames, in->names));
  PetscCheck(in->nfiles + in->nnames, PETSC_COMM_WORLD, PETSC_ERR_USER, "Name matrices: -generate star7_100 or -f matrix.mtx; -help lists all options");
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-min_ms", &in->min_ms, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &in->seed, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchPrintHead(const BenchPlace *place, PetscLogDouble *bandwidth)
{
  char commit[64], version[256];

  PetscFunctionBegin;
  PetscCall(GallopGetCommit(commit, sizeof(commit)));
  PetscCall(PetscGetVersion(version, sizeof(version)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# Gallop commit %s\n# %s\n# numbers of %d bytes, indices of %d\n", commit, version, (int)sizeof(PetscScalar), (int)sizeof(PetscInt)));
  PetscCall((*place->start)(bandwidth));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# read bandwidth %.0f GB/s\n", *bandwidth * 1e-9));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchInputRun(BenchInput *in, PetscErrorCode (*work)(void *, const char[], PetscBool), void *ctx)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < in->nnames; k++) PetscCall((*work)(ctx, in->names[k], PETSC_FALSE));
  for (PetscInt k = 0; k < in->nfiles; k++) PetscCall((*work)(ctx, in->files[k], PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchInputDestroy(BenchInput *in)
{
  PetscFunctionBegin;
  PetscCall(PrintUnused());
  PetscCall(BenchFreeList(in->nnames, in->names));
  PetscCall(BenchFreeList(in->nfiles, in->files));
  PetscCheck(!in->wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " results are wrong", in->wrong);
  PetscFunctionReturn(PETSC_SUCCESS);
}
