/* SPDX-License-Identifier: BSD-2-Clause */
#include <petscgallop.h>
#include <gallop/deviceimpl.h>
#include <ctype.h>
#include "bench.h"
#include "generate.h"
#include "../src/mat/impls/tiledspmm/tiledspmm.h" /* for TiledSpMMSortRows() */

static char help[] = "Times products of PETSc's and Gallop's matrix types, and of cuSPARSE, one process and one GPU.\n\
  -generate <name,...>    matrices by name, see below\n\
  -f <file,...>           matrices from files: .mtx, .mtx.gz, or PETSc's binary format; one whose values are all 1 gets random values\n\
  -types <type,...>       matrix types (aijcusparse,evchyb,csroverlap,fastload,hbp,sellcuda; without a GPU aij and sell; sell not with -k, -transpose and -first). For type@name the options\n\
                          begin with name_: -types evchyb,evchyb@w -w_mat_evchyb_window 64. With type+inorder rows and columns are permuted once, by the\n\
                          ordering gallop, and x and y with them: -types evchyb,evchyb+inorder. With type+sorted rows alone, in the order of their\n\
                          patterns that TiledSpMM has, and y with them. Types of the host are timed on it where there is a GPU, too\n\
  -k <0>                  products with dense matrices of k columns, column by column in memory, instead of with vectors; several numbers, one after the other: -k 8,32\n\
  -raw                    also cuSPARSE called directly: CSR_ALG1, CSR_ALG2, with -k CSR_ALG3, and SpMVOp where the library has it. What begins with\n\
                          rowmajor_ has dense matrices row by row in memory: another layout, beside which no column-major product is to be compared\n\
  -csc_warp               also the basic product by columns on the GPU: a warp a column, which adds to y by atomic operations\n\
  -transpose              transposed products\n\
  -setup                  instead of products: the times of conversion, build and refresh\n\
  -first                  instead of products: the time of the first one of a matrix from the host, beside that of a copy of its entries. With -raw that of\n\
                          cuSPARSE's too: columns and values are copied, two copies from pinned memory, and the product follows them\n\
  -view <::ascii_info>    shows the matrix behind each line: what it has built and, with ::ascii_info_detail and -k, how long products should take\n\
  -min_ms <30>            how long products are repeated with warm caches\n\
  -seed <1>               of the generated matrices and of x\n\
  -announce               a line before each case, and one after the last, for a program that reads the output\n\
  -skip <0>               leaves out so many cases, the first ones\n\
All other options are PETSc's and those of the types. The program runs where there is a GPU on the GPU, else on the host.\n\
\n\
Output: one line a matrix and type, fields separated by tabs, after a comment with the lengths of the matrix's rows: the mean,\n\
the variation, which is the standard deviation over the mean, and the longest\n\
  matrix m n nnz what k   k is the number of columns, 1 for a vector\n\
  setup_ms                from an AIJ matrix on the host until the first product has finished\n\
  warm_us                 time of a product, of many in a row: median of 7 measurements\n\
  cold_us                 time of a product before which 256 MiB were written, to flush caches: median of 7 measurements\n\
  GF_warm                 2 k nnz / warm_us\n\
  eff                     bytes of the CSR arrays, x and y, or the dense matrices, over cold_us, relative to the read bandwidth\n\
  B/nnz                   memory that the type took, in the place of the products; with -k without the dense matrices\n\
  err                     largest error of an entry of the result, relative to the sum of |a x| of its row\n\
  warm_min warm_max cold_min cold_max   in microseconds: the smallest and the largest of the 7\n\
and with -setup\n\
  matrix nnz product_us convert_ms build_us refresh_us build/product refresh/product what build_min build_max refresh_min refresh_max peak_B/nnz\n\
  convert_ms is setup_ms; build and refresh begin with entries that are in the place of the products, medians of 7, and microseconds of the smallest and largest;\n\
  peak_B/nnz is the most memory of the GPU that was in use until the first product had finished, as a second thread saw it; without vectors or dense matrices, and nan below 16 MiB, which cannot be measured\n\
and with -first, the best of 3\n\
  matrix nnz copy_ms first_ms first/copy resident_us newvalues_ms what\n\
  copy_ms is of all values and columns from pinned memory, also where the product copies fewer bytes; what is built before the first product is not in first_ms with\n\
  -mat_csroverlap_build_in_assembly; newvalues_ms is of the product after the host's values changed\n\
\n" BENCH_GENERATORS_HELP;

typedef struct {
  const BenchPlace *place;
  PetscLogDouble    bandwidth;
  PetscLogDouble    hostbandwidth; /* 0 where no type of the host is asked for */
  PetscBool         transpose, raw, announce, csc;
  BenchInput        in;
  PetscInt          ntypes, skip, ncases, nk, k[BENCH_MOST_NAMES]; /* ncases: so far, those that were left out too */
  BenchProblem      small;                                         /* the first products of a process set up what later ones find: handles, pools, kernels */
  PetscBool         warmed;
  char             *types[BENCH_MOST_NAMES];
  BenchWork         measure;
} Bench;

/* What is timed */
typedef struct {
  Bench              *b;
  const BenchPlace   *place;
  const BenchProblem *p;
  const char         *what;
  PetscInt            raw;     /* which product by a library, or -1 for a matrix type */
  Mat                 A, B, C; /* dense ones: B has the array of x */
  Vec                 x, y;    /* with dense matrices for a library one array each, y for no one else */
  void               *rawdata;
  IS                  order;   /* of rows, or NULL */
  PetscBool           columns; /* and of columns */
  PetscInt            scalings;
} Case;

/* ---- cases ---- */

static PetscErrorCode CaseApply(void *ctx)
{
  Case *c = (Case *)ctx;

  PetscFunctionBegin;
  if (c->rawdata) PetscCall((*c->place->rawapply)(c->rawdata));
  else if (c->B && c->b->transpose) PetscCall(MatTransposeMatMult(c->A, c->B, c->C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, &c->C));
  else if (c->B) PetscCall(MatMatMult(c->A, c->B, c->C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DETERMINE, &c->C));
  else if (c->b->transpose) PetscCall(MatMultTranspose(c->A, c->x, c->y));
  else PetscCall(MatMult(c->A, c->x, c->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateVec(VecType type, PetscInt n, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, v));
  PetscCall(VecSetSizes(*v, n, n));
  PetscCall(VecSetType(*v, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a type is called without what follows it: +inorder or +sorted, @name */
static PetscErrorCode CaseType(const char what[], char type[], size_t len, PetscBool *inorder, PetscBool *sorted, const char **name)
{
  char *plus;

  PetscFunctionBegin;
  PetscCall(BenchSplitType(what, type, len, name));
  PetscCall(PetscStrendswith(type, "+inorder", inorder));
  PetscCall(PetscStrendswith(type, "+sorted", sorted));
  PetscCall(PetscStrchr(type, '+', &plus));
  if (*inorder || *sorted) *plus = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of m lines of n numbers those that stand below each other come to follow each other: from columns to rows, and back */
static void Transpose(PetscInt m, PetscInt n, const PetscScalar from[], PetscScalar to[])
{
  for (PetscInt i = 0; i < m; i++)
    for (PetscInt j = 0; j < n; j++) to[(PetscCount)j * m + i] = from[(PetscCount)i * n + j];
}

/* Puts the numbers of each column into the order of the case, or back where they were */
static PetscErrorCode CasePermute(const Case *c, PetscInt n, PetscBool back, const PetscScalar from[], PetscScalar to[])
{
  const PetscInt *order;

  PetscFunctionBegin;
  PetscCall(ISGetIndices(c->order, &order));
  for (PetscInt k = 0; k < PetscMax(c->p->k, 1); k++, from += n, to += n) {
    for (PetscInt r = 0; r < n; r++) {
      if (back) to[order[r]] = from[r];
      else to[r] = from[order[r]];
    }
  }
  PetscCall(ISRestoreIndices(c->order, &order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool CaseRowMajor(const Case *c)
{
  return (PetscBool)(c->raw >= 0 && c->place->raws[c->raw].rowmajor);
}

static PetscErrorCode CaseFill(const Case *c)
{
  const BenchProblem *p = c->p;
  PetscScalar        *x, *columns;

  PetscFunctionBegin;
  PetscCall(VecGetArrayWrite(c->x, &x));
  if (CaseRowMajor(c) || c->columns) {
    PetscCall(PetscMalloc1((size_t)p->nx * PetscMax(p->k, 1), &columns));
    PetscCall(BenchProblemFill(p, columns));
    if (c->columns) PetscCall(CasePermute(c, p->nx, PETSC_FALSE, columns, x));
    else Transpose(p->k, p->nx, columns, x);
    PetscCall(PetscFree(columns));
  } else PetscCall(BenchProblemFill(p, x));
  PetscCall(VecRestoreArrayWrite(c->x, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PETSc with CUDA makes slices of 16 rows, and its products on the host refuse them: 8 there, unless the user says otherwise */
static PetscErrorCode IsSellOfHost(const char type[], PetscBool *sell)
{
  PetscBool seq, set;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATSELL, sell));
  PetscCall(PetscStrcmp(type, MATSEQSELL, &seq));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_sell_slice_height", &set));
  *sell = (PetscBool)((*sell || seq) && PetscDefined(HAVE_CUDA) && !set);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's matrix with rows in the order of their patterns, or itself, where they are */
static PetscErrorCode SortRows(Case *c, Mat *sorted)
{
  const PetscInt *i, *j;
  PetscInt       *order, m;
  PetscBool       done;
  IS              columns;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(c->p->A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(TiledSpMMSortRows(m, i, j, &order));
  PetscCall(MatRestoreRowIJ(c->p->A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  if (!order) {
    *sorted = c->p->A;
    PetscCall(PetscObjectReference((PetscObject)*sorted));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, c->p->m, order, PETSC_OWN_POINTER, &c->order));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, c->p->n, 0, 1, &columns));
  PetscCall(MatCreateSubMatrix(c->p->A, c->order, columns, MAT_INITIAL_MATRIX, sorted));
  PetscCall(ISDestroy(&columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateMatrix(Case *c)
{
  char        type[128];
  const char *name;
  PetscBool   inorder, sorted, sell, sellcuda;
  Mat         given = c->p->A;

  PetscFunctionBegin;
  PetscCall(CaseType(c->what, type, sizeof(type), &inorder, &sorted, &name));
  if (sorted) PetscCall(SortRows(c, &given));
  else PetscCall(PetscObjectReference((PetscObject)given));
  PetscCall(IsSellOfHost(type, &sell));
  if (sell) PetscCall(PetscOptionsSetValue(NULL, "-mat_sell_slice_height", "8"));
  PetscCall(PetscStrcmpAny(type, &sellcuda, MATSELLCUDA, MATSEQSELLCUDA, ""));
  if (sellcuda) { /* MatConvert() would enter values one by one, without preallocation, and move all of them for each slice */
    PetscCall(MatConvert(given, MATSEQSELL, MAT_INITIAL_MATRIX, &c->A));
    PetscCall(MatConvert(c->A, MATSEQSELLCUDA, MAT_INPLACE_MATRIX, &c->A));
  } else PetscCall(MatConvert(given, type, MAT_INITIAL_MATRIX, &c->A));
  PetscCall(MatDestroy(&given));
  if (name) {
    PetscCall(MatSetOptionsPrefix(c->A, name));
    PetscCall(MatAppendOptionsPrefix(c->A, "_"));
  }
  PetscCall(MatSetFromOptions(c->A));
  if (sell) PetscCall(PetscOptionsClearValue(NULL, "-mat_sell_slice_height"));
  if (inorder) {
    Mat permuted;
    IS  columns;

    c->columns = PETSC_TRUE;
    PetscCall(MatGetOrdering(c->A, MATORDERINGGALLOP, &c->order, &columns));
    PetscCall(MatGallopPermute(c->A, c->order, columns, MAT_INITIAL_MATRIX, &permuted));
    PetscCall(ISDestroy(&columns));
    PetscCall(MatDestroy(&c->A));
    c->A = permuted;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the host's matrix to the end of the first product */
static PetscErrorCode CaseStart(void *ctx)
{
  Case               *c = (Case *)ctx;
  const BenchProblem *p = c->p;
  PetscScalar        *x;
  VecType             vectype;

  PetscFunctionBegin;
  if (c->raw < 0) {
    PetscCall(CreateMatrix(c));
    PetscCall(MatGetVecType(c->A, &vectype));
    if (p->k) PetscCall(CreateVec(vectype, p->nx * p->k, &c->x));
    else if (c->b->transpose) PetscCall(MatCreateVecs(c->A, &c->y, &c->x));
    else PetscCall(MatCreateVecs(c->A, &c->x, &c->y));
  } else {
    PetscCall(CreateVec(VECSEQCUDA, p->nx * PetscMax(p->k, 1), &c->x));
    PetscCall(CreateVec(VECSEQCUDA, p->ny * PetscMax(p->k, 1), &c->y));
  }
  PetscCall(CaseFill(c));
  if (p->k && c->raw < 0) {
    PetscCall(VecGetArrayAndMemType(c->x, &x, NULL));
    PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, vectype, p->nx, p->k, p->nx, p->k, p->nx, x, &c->B));
    PetscCall(VecRestoreArrayAndMemType(c->x, &x));
  }
  if (c->raw >= 0) PetscCall((*c->place->rawcreate)(p->A, c->raw, c->b->transpose, p->k, c->x, c->y, &c->rawdata));
  PetscCall(CaseApply(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDestroy(Case *c)
{
  PetscFunctionBegin;
  if (c->rawdata) PetscCall((*c->place->rawdestroy)(&c->rawdata));
  PetscCall(MatDestroy(&c->A));
  PetscCall(MatDestroy(&c->B));
  PetscCall(MatDestroy(&c->C));
  PetscCall(VecDestroy(&c->x));
  PetscCall(VecDestroy(&c->y));
  PetscCall(ISDestroy(&c->order));
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
  stats.fallbacks += stats.dense_fallbacks;
  if (c->p->k && c->b->transpose) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# %s %s: all products were the parent type's\n", c->p->name, c->what));
  else if (stats.fallbacks) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# %s %s: %" PetscInt64_FMT " products were the parent type's\n", c->p->name, c->what, stats.fallbacks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResultError(const Case *c, const PetscScalar y[], PetscInt lda, PetscReal *err)
{
  const BenchProblem *p = c->p;
  const PetscInt      k = PetscMax(p->k, 1);
  PetscScalar        *columns;

  PetscFunctionBegin;
  if (CaseRowMajor(c) || c->order) {
    PetscCheck(CaseRowMajor(c) || lda == p->ny, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Columns do not follow each other");
    PetscCall(PetscMalloc1((size_t)p->ny * k, &columns));
    if (c->order) PetscCall(CasePermute(c, p->ny, PETSC_TRUE, y, columns));
    else Transpose(p->ny, k, y, columns);
    PetscCall(BenchProblemError(p, columns, p->ny, err));
    PetscCall(PetscFree(columns));
  } else PetscCall(BenchProblemError(p, y, lda, err));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The error of a product into a place without numbers, so that what it does not write shows */
static PetscErrorCode CaseError(Case *c, PetscReal *err)
{
  const PetscScalar *y;
  PetscInt           lda = c->p->ny;

  PetscFunctionBegin;
  if (c->C) {
    for (PetscInt k = 0; k < c->p->k; k++) {
      Vec column;

      PetscCall(MatDenseGetColumnVecWrite(c->C, k, &column));
      PetscCall(VecSet(column, INFINITY));
      PetscCall(MatDenseRestoreColumnVecWrite(c->C, k, &column));
    }
    PetscCall(CaseApply(c));
    PetscCall(MatDenseGetLDA(c->C, &lda));
    PetscCall(MatDenseGetArrayRead(c->C, &y));
    PetscCall(ResultError(c, y, lda, err));
    PetscCall(MatDenseRestoreArrayRead(c->C, &y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecSet(c->y, INFINITY));
  PetscCall(CaseApply(c));
  PetscCall(VecGetArrayRead(c->y, &y));
  PetscCall(ResultError(c, y, lda, err));
  PetscCall(VecRestoreArrayRead(c->y, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeProducts(void *ctx)
{
  Case               *c       = (Case *)ctx;
  const BenchProblem *p       = c->p;
  const BenchPlace   *place   = c->place;
  const PetscInt      columns = PetscMax(p->k, 1);
  const double        dense = (double)columns * ((double)p->m + p->n) * sizeof(PetscScalar), bytes = (double)p->nz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (p->m + 1.0) * sizeof(PetscInt) + dense;
  PetscReal           err, warms[2], colds[2];
  PetscLogDouble      before, after, setup, warm, cold, bandwidth = place == c->b->place ? c->b->bandwidth : c->b->hostbandwidth;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFreeKept(PETSC_FALSE)); /* of cases before, or less would seem to be taken */
  PetscCall((*place->memory)(&before));
  PetscCall((*place->time)(CaseStart, c, 1, &setup));
  PetscCall((*place->memory)(&after));
  PetscCall(BenchTimeWarm(place, CaseApply, c, c->b->in.min_ms, &warm, warms));
  PetscCall(BenchTimeCold(place, CaseApply, c, &cold, colds));
  PetscCall(CaseError(c, &err));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%" PetscInt_FMT "\t%s\t%" PetscInt_FMT "\t%.3f\t%.2f\t%.2f\t%.1f\t%.3f\t%.2f\t%.1e\t%.2f\t%.2f\t%.2f\t%.2f\n", p->name, p->m, p->n, p->nz, c->what, columns, setup * 1e3, warm * 1e6, cold * 1e6, 2e-9 * p->nz * columns / warm, bytes / cold / bandwidth, (after - before - (p->k ? dense : 0)) / PetscMax(p->nz, 1), (double)err, (double)warms[0] * 1e6, (double)warms[1] * 1e6, (double)colds[0] * 1e6, (double)colds[1] * 1e6));
  PetscCall(CaseRemark(c));
  if (c->A) PetscCall(MatViewFromOptions(c->A, (PetscObject)c->p->A, "-view"));
  if (!(err <= (100 + p->longest) * PETSC_MACHINE_EPSILON)) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "# WRONG %s %s: error %.1e\n", p->name, c->what, (double)err));
    c->b->in.wrong++;
  }
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

/* C, without a product yet */
static PetscErrorCode CreateResult(Case *c)
{
  PetscFunctionBegin;
  PetscCall(MatProductCreate(c->A, c->B, NULL, &c->C));
  PetscCall(MatProductSetType(c->C, c->b->transpose ? MATPRODUCT_AtB : MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(c->C));
  PetscCall(MatProductSymbolic(c->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has the entries at the place of the products, and nothing built: A^T B is the parent's */
static PetscErrorCode BringEntries(Mat A)
{
  Mat      B, C;
  VecType  vectype;
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatGetVecType(A, &vectype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, vectype, m, 1, m, 1, m, NULL, &B));
  PetscCall(MatZeroEntries(B));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeSetup(void *ctx)
{
  enum {
    SCALINGS = 20,
    SEEN     = 1 << 24 /* bytes: the GPU gives memory in pieces of 2 MiB */
  };
  Case             *c     = (Case *)ctx;
  const BenchPlace *place = c->place;
  PetscReal         builds[BENCH_MEASUREMENTS], refreshes[BENCH_MEASUREMENTS], range[2][2];
  PetscLogDouble    convert, product, build, refresh = 0, scale, both, before, peak = NAN;
  PetscBool         aij;

  PetscFunctionBegin;
  if (place->peak) {
    Case fresh = *c;

    PetscCall(GallopDeviceFreeKept(PETSC_FALSE));
    PetscCall((*place->memory)(&before));
    PetscCall((*place->peak)(CaseStart, &fresh, &peak));
    peak -= before + ((double)c->p->nx + c->p->ny) * PetscMax(c->p->k, 1) * sizeof(PetscScalar);
    peak = peak < SEEN ? NAN : peak / PetscMax(c->p->nz, 1);
    PetscCall(CaseDestroy(&fresh));
  }
  PetscCall((*place->time)(CaseStart, c, 1, &convert));
  PetscCall(PetscStrbeginswith(c->what, "sell", &aij));
  aij = (PetscBool)!aij;
  PetscCall(BenchTimeWarm(place, CaseApply, c, c->b->in.min_ms, &product, NULL));
  for (PetscInt k = 0; k < BENCH_MEASUREMENTS; k++) {
    Case copy = *c;

    PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &copy.A));
    if (aij && place->copy) PetscCall(BringEntries(copy.A)); /* on the host they are there */
    copy.C = NULL;
    if (copy.B) PetscCall(CreateResult(&copy));
    PetscCall((*place->time)(CaseApply, &copy, 1, &build));
    PetscCall((*place->time)(CaseScale, &copy, SCALINGS, &scale));
    PetscCall((*place->time)(CaseScaleAndApply, &copy, SCALINGS, &both));
    builds[k]    = (PetscReal)(build - product);
    refreshes[k] = (PetscReal)((both - scale) / SCALINGS - product);
    PetscCall(MatDestroy(&copy.A));
    PetscCall(MatDestroy(&copy.C));
  }
  PetscCall(BenchMedian(builds, &build, range[0]));
  PetscCall(BenchMedian(refreshes, &refresh, range[1]));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%.2f\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\n", c->p->name, c->p->nz, product * 1e6, convert * 1e3, build * 1e6, refresh * 1e6, build / product, refresh / product, c->what, (double)range[0][0] * 1e6, (double)range[0][1] * 1e6, (double)range[1][0] * 1e6, (double)range[1][1] * 1e6, peak));
  if (!aij && place->copy) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# %s %s: the build is what the first product of a copy takes longer, that to the GPU included\n", c->p->name, c->what));
  PetscCall(CaseRemark(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- -first ---- */

/* A product of cuSPARSE's whose matrix comes from the host, and one for which only values do */
static PetscErrorCode CaseLoadAndApply(void *ctx)
{
  Case *c = (Case *)ctx;

  PetscFunctionBegin;
  PetscCall((*c->place->rawload)(c->rawdata, PETSC_TRUE));
  PetscCall(CaseApply(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseLoadValuesAndApply(void *ctx)
{
  Case *c = (Case *)ctx;

  PetscFunctionBegin;
  PetscCall((*c->place->rawload)(c->rawdata, PETSC_FALSE));
  PetscCall(CaseApply(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeFirst(void *ctx)
{
  enum { REPEAT = 3 };
  Case             *c     = (Case *)ctx;
  const BenchPlace *place = c->place;
  PetscLogDouble    copy, t, first = PETSC_MAX_REAL, resident = PETSC_MAX_REAL, newvalues = PETSC_MAX_REAL;

  PetscFunctionBegin;
  PetscCall((*place->copy)((PetscLogDouble)c->p->nz * (sizeof(PetscScalar) + sizeof(PetscInt)), &copy));
  PetscCall(CaseStart(c));
  for (PetscInt k = 0; k < REPEAT; k++) {
    Case         fresh = *c;
    PetscScalar *a;

    if (c->rawdata) { /* in new memory, as a matrix's own */
      PetscCall((*place->rawdestroy)(&c->rawdata));
      PetscCall((*place->rawcreate)(c->p->A, c->raw, c->b->transpose, c->p->k, c->x, c->y, &c->rawdata));
      PetscCall((*place->rawload)(c->rawdata, PETSC_TRUE)); /* makes what is copied */
      fresh.rawdata = c->rawdata;
    } else {
      PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &fresh.A));
      PetscCall(MatAssemblyBegin(fresh.A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(fresh.A, MAT_FINAL_ASSEMBLY));
    }
    PetscCall((*place->time)(c->A ? CaseApply : CaseLoadAndApply, &fresh, 1, &t));
    first = PetscMin(first, t);
    for (PetscInt r = 0; r < 5; r++) {
      PetscCall((*place->time)(CaseApply, &fresh, 1, &t));
      resident = PetscMin(resident, t);
    }
    if (c->A) {
      PetscCall(MatSeqAIJGetArray(fresh.A, &a));
      a[0] *= 2;
      PetscCall(MatSeqAIJRestoreArray(fresh.A, &a));
    }
    PetscCall((*place->time)(c->A ? CaseApply : CaseLoadValuesAndApply, &fresh, 1, &t));
    newvalues = PetscMin(newvalues, t);
    PetscCall(MatDestroy(&fresh.A));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%.3f\t%.3f\t%.4f\t%.1f\t%.3f\t%s\n", c->p->name, c->p->nz, copy * 1e3, first * 1e3, first / copy, resident * 1e6, newvalues * 1e3, c->what));
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

/* Types whose products are on the host though there is a GPU */
static PetscErrorCode IsHostType(const char what[], PetscBool *host)
{
  static const char *const types[] = {MATAIJ, MATSEQAIJ, MATSELL, MATSEQSELL};
  char                     type[128];
  const char              *name;
  PetscBool                inorder, sorted, match;

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  PetscCall(CaseType(what, type, sizeof(type), &inorder, &sorted, &name));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(PetscStrcmp(type, types[k], &match));
    if (match) *host = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is not timed, and why, in a remark */
static PetscErrorCode LeftOut(const Case *c, BenchWork measure, PetscBool *out)
{
  const BenchProblem *p = c->p;
  char                type[128];
  const char         *name;
  PetscBool           inorder = PETSC_FALSE, sorted = PETSC_FALSE;

  PetscFunctionBegin;
  if (c->raw < 0) PetscCall(CaseType(c->what, type, sizeof(type), &inorder, &sorted, &name));
  *out = PETSC_TRUE;
  if (inorder && p->m != p->n) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# LEFT OUT %s %s: rows and columns of a rectangular matrix have no common order\n", p->name, c->what));
  else if (sorted && c->b->transpose) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# LEFT OUT %s %s: rows are sorted for products that are not transposed\n", p->name, c->what));
  else if (measure == TimeFirst && c->place != c->b->place) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# LEFT OUT %s %s: -first is for types of the GPU\n", p->name, c->what));
  else *out = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunCase(Bench *b, const BenchProblem *p, PetscInt t, BenchWork measure)
{
  const PetscInt raw = t - b->ntypes;
  Case           c   = {.b = b, .place = b->place, .p = p, .raw = raw < 0 ? -1 : raw}, small;
  PetscBool      out = PETSC_FALSE;

  PetscFunctionBegin;
  if (raw >= 0) {
    const BenchRaw *known = &b->place->raws[raw];

    if (known->asked ? !b->csc : !b->raw) PetscFunctionReturn(PETSC_SUCCESS);
    if (known->dense != (PetscBool)(p->k > 0) || (b->transpose && !known->transpose)) PetscFunctionReturn(PETSC_SUCCESS);
    c.what = known->name;
  } else {
    c.what = b->types[t];
    PetscCall(IsHostType(c.what, &out));
    if (out) c.place = &BenchHost;
  }
  if (b->ncases++ < b->skip) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LeftOut(&c, measure, &out));
  if (out) PetscFunctionReturn(PETSC_SUCCESS);
  if (b->announce) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# begins\t%" PetscInt_FMT "\t%s\t%s\t%" PetscInt_FMT "\n", b->ncases, p->name, c.what, PetscMax(p->k, 1)));
  if (!b->warmed) {
    small      = c;
    small.p    = &b->small;
    b->small.k = p->k;
    PetscCall(CaseStart(&small));
    PetscCall(CaseDestroy(&small));
  }
  PetscCall((*measure)(&c));
  PetscCall(CaseDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void *ctx, const char given[], PetscBool file)
{
  Bench       *b = (Bench *)ctx;
  BenchProblem p;
  PetscInt     most = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < b->nk; k++) most = PetscMax(most, b->k[k]);
  PetscCall(BenchProblemCreate(given, file, b->in.seed, b->transpose, most, &p));
  PetscCall(BenchProblemRemark(&p));
  if (!b->warmed) PetscCall(BenchProblemCreate("star5_32", PETSC_FALSE, b->in.seed, b->transpose, most, &b->small));
  for (PetscInt k = 0; k < b->nk; k++) {
    p.k = b->k[k];
    if (p.k > PETSC_INT_MAX / PetscMax(1, PetscMax(p.m, p.n))) {
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "# LEFT OUT %s with %" PetscInt_FMT " columns: more numbers than a PetscInt counts\n", p.name, p.k));
      continue;
    }
    for (PetscInt t = 0; t < b->ntypes + b->place->nraws; t++) PetscCall(RunCase(b, &p, t, b->measure));
  }
  if (!b->warmed) PetscCall(BenchProblemDestroy(&b->small));
  b->warmed = PETSC_TRUE;
  PetscCall(BenchProblemDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Without a GPU the host's types stand for those that need one */
static PetscErrorCode UseHostTypes(Bench *b)
{
  static const char *const pairs[][2] = {
    {MATAIJCUSPARSE, MATAIJ },
    {MATSELLCUDA,    MATSELL}
  };

  PetscFunctionBegin;
  for (PetscInt t = 0; t < b->ntypes; t++) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(pairs); k++) {
      char *const end = b->types[t] + strlen(pairs[k][0]);
      PetscBool   match;

      PetscCall(PetscStrbeginswith(b->types[t], pairs[k][0], &match));
      if (match) PetscCall(PetscMemmove(b->types[t] + strlen(pairs[k][1]), end, strlen(end) + 1));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the types of the host want beforehand */
static PetscErrorCode PrepareHostTypes(Bench *b)
{
  PetscBool host, any = PETSC_FALSE;

  PetscFunctionBegin;
  for (PetscInt t = 0; t < b->ntypes; t++) {
    PetscCall(IsHostType(b->types[t], &host));
    if (host) any = PETSC_TRUE;
  }
  if (any && b->place != &BenchHost) PetscCall(BenchHostBandwidth(&b->hostbandwidth));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const types[] = {MATAIJCUSPARSE, MATEVCHYB, MATCSROVERLAP, MATFASTLOAD, MATHBP, MATSELLCUDA};
  Bench                    b       = {.place = &BenchHost, .measure = TimeProducts};
  PetscBool                setup = PETSC_FALSE, firsts = PETSC_FALSE, match;
  const char              *columns = "# matrix\tm\tn\tnnz\twhat\tk\tsetup_ms\twarm_us\tcold_us\tGF_warm\teff\tB/nnz\terr\twarm_min\twarm_max\tcold_min\tcold_max\n";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BenchOptionByItself("-mat_gallop_build", "first")); /* products are timed, not whether they pay */
  PetscCall(GallopInitializePackage());
  PetscCall(BenchInputCreate(&b.in));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(BenchDeviceAvailable(&match));
  if (match) b.place = &BenchDevice;
#endif
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-raw", &b.raw, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &b.transpose, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setup", &setup, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-csc_warp", &b.csc, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-announce", &b.announce, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-skip", &b.skip, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-first", &firsts, NULL));
  b.nk = BENCH_MOST_NAMES;
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-k", b.k, &b.nk, NULL));
  b.nk = PetscMax(1, b.nk);
  for (PetscInt k = 0; k < b.nk; k++)
    PetscCheck(b.k[k] >= (b.nk > 1) && !(b.k[k] && firsts), PETSC_COMM_WORLD, PETSC_ERR_USER, "Option -k is %" PetscInt_FMT ", but must be at least 0, not 0 among several, and 0 with -first", b.k[k]);
  /* by default nothing is asked of sell but what it does on the GPU: products with vectors that are not transposed */
  PetscCall(BenchList("-types", PETSC_STATIC_ARRAY_LENGTH(types) - (b.k[0] || b.transpose || firsts ? 1 : 0), types, &b.ntypes, b.types));
  if (b.place == &BenchHost) PetscCall(UseHostTypes(&b));
  PetscCheck(!firsts || b.place->copy, PETSC_COMM_WORLD, PETSC_ERR_USER, "-first is for a GPU, and there is none");
  if (setup) {
    b.measure = TimeSetup;
    columns   = "# matrix\tnnz\tproduct_us\tconvert_ms\tbuild_us\trefresh_us\tbuild/product\trefresh/product\twhat\tbuild_min\tbuild_max\trefresh_min\trefresh_max\tpeak_B/nnz\n";
  } else if (firsts) {
    b.measure = TimeFirst;
    columns   = "# matrix\tnnz\tcopy_ms\tfirst_ms\tfirst/copy\tresident_us\tnewvalues_ms\twhat\n";
  }
  if (setup) b.raw = PETSC_FALSE;
  if (setup || firsts) b.csc = PETSC_FALSE;

  PetscCall(BenchPrintHead(b.place, &b.bandwidth));
  PetscCall(PrintOptions());
  PetscCall(PrepareHostTypes(&b));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s", columns));
  PetscCall(BenchInputRun(&b.in, Run, &b));
  if (b.announce) PetscCall(PetscPrintf(PETSC_COMM_SELF, "# done\n"));

  PetscCall((*b.place->finish)());
  if (b.hostbandwidth > 0) PetscCall((*BenchHost.finish)());
  PetscCall(BenchFreeList(b.ntypes, b.types));
  PetscCall(BenchInputDestroy(&b.in));
  PetscCall(PetscFinalize());
  return 0;
}
