/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Times the first k products of a matrix that is on the GPU, with each matrix type: whether a format pays that is built for them.\n\
  -types a,b       matrix types, the first is what the others are compared with (default: aijcusparse,evchyb, without a GPU aij,evchyb); for type@name options begin with of, such as\n\
                   -types aijcusparse,evchyb,evchyb@first -first_mat_gallop_build first\n\
  -k 1,3,...       how many products, at most 16 numbers (default 1,3,10,30,100,1000)\n\
  -transpose       transposed products\n\
  -new_values n    after k products the values change, where the matrix is, n times with k products between; those after the last are timed: a refresh, not a build\n\
  -generate, -f    matrices, as gallopbench takes them\n\
  -measurements    how many, 31 at most, of which the median counts (default 7); of more than one, where matrices are small, there are more, until they have taken a sixth of a second together\n\
  -forget          what the type gallop measured of one matrix is forgotten before the next, so that it is measured again\n\
  -coo             matrices are assembled on the GPU by MatSetValuesCOO(), an entry for each nonzero, and so are new values\n\
  -assembled_on_host  products of a matrix that is on the host alone: copies to the GPU are timed, too\n\
  -memory          no times, but memory of the GPU that a matrix assembled on the host, or by -coo, takes after the largest number of products, and the most while these are computed, and while as many are\n\
                   with new values, each type's in a line that begins with # memory: matrix nnz type and three numbers of bytes per nonzero\n\
  -view            at the end of each type, what -mat_view ::ascii_info_detail says of its last matrix\n\
  -calls           with LD_PRELOAD=libcudacalls.so, which make bench-fewproducts sets then: the calls of CUDA's runtime in the last measurement\n\
Each time is the median of as many new matrices, whose entries MatScale() has brought to the place of the products.\n\
Output: a line per matrix, type and k, fields separated by tabs\n\
  matrix nnz type k us over   over: the time over that of the first type\n\n";

#include "bench.h"
#include <petsctime.h>
#include <petscgallop.h>
#include <gallop/deviceimpl.h>
#include "../src/mat/impls/gallop/choice.h"
#include <dlfcn.h>

#define MOST_COUNTS       16
#define MOST_MEASUREMENTS 31
#define ENOUGH_SECONDS    0.16 /* with making the matrices */

typedef struct {
  const BenchPlace *place;
  BenchInput        in;
  PetscInt          ntypes, ncounts, counts[MOST_COUNTS], measurements, newvalues;
  char             *types[BENCH_MOST_NAMES];
  PetscBool         transpose, forget, view, memory, onhost, coo;
  void (*callsbegin)(void);
  void (*callsend)(void);
} Few;

typedef struct {
  Mat       A;
  Vec       x, y;
  Vec       values; /* of MatSetValuesCOO(), or NULL */
  PetscInt  k;
  PetscBool transpose;
} Products;

static PetscErrorCode Multiply(void *ctx)
{
  Products *p = (Products *)ctx;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < p->k; k++) {
    if (p->transpose) PetscCall(MatMultTranspose(p->A, p->y, p->x));
    else PetscCall(MatMult(p->A, p->x, p->y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValuesCOO(Products *p)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(p->values, &a, NULL));
  PetscCall(MatSetValuesCOO(p->A, a, INSERT_VALUES));
  PetscCall(VecRestoreArrayReadAndMemType(p->values, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values lie on the GPU where the type has its vectors there */
static PetscErrorCode CreateCOO(Mat R, const char type[], const char prefix[], Products *p)
{
  const PetscInt    *ai, *aj;
  const PetscScalar *a;
  PetscScalar       *values;
  PetscInt          *rows, m, n;
  PetscBool          done;
  VecType            where;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &m, &n));
  PetscCall(MatCreate(PETSC_COMM_SELF, &p->A));
  PetscCall(MatSetSizes(p->A, m, n, m, n));
  PetscCall(MatSetOptionsPrefix(p->A, prefix));
  PetscCall(MatSetType(p->A, type));
  PetscCall(MatSetFromOptions(p->A));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  PetscCall(PetscMalloc1(ai[m], &rows));
  for (PetscInt i = 0; i < m; i++)
    for (PetscInt k = ai[i]; k < ai[i + 1]; k++) rows[k] = i;
  PetscCall(MatSetPreallocationCOO(p->A, ai[m], rows, (PetscInt *)aj));
  PetscCall(PetscFree(rows));
  PetscCall(VecCreate(PETSC_COMM_SELF, &p->values));
  PetscCall(VecSetSizes(p->values, ai[m], ai[m]));
  PetscCall(MatGetVecType(p->A, &where));
  PetscCall(VecSetType(p->values, where));
  PetscCall(MatSeqAIJGetArrayRead(R, &a));
  PetscCall(VecGetArrayWrite(p->values, &values));
  PetscCall(PetscArraycpy(values, a, ai[m]));
  PetscCall(VecRestoreArrayWrite(p->values, &values));
  PetscCall(MatSeqAIJRestoreArrayRead(R, &a));
  PetscCall(MatRestoreRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  PetscCall(SetValuesCOO(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new matrix of a type with the entries of R, and its vectors */
static PetscErrorCode ProductsCreate(const Few *f, Mat R, const char type[], const char prefix[], Products *p)
{
  PetscFunctionBegin;
  p->values = NULL;
  if (f->coo) PetscCall(CreateCOO(R, type, prefix, p));
  else {
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &p->A));
    PetscCall(MatSetOptionsPrefix(p->A, prefix));
    PetscCall(MatConvert(p->A, type, MAT_INPLACE_MATRIX, &p->A));
    PetscCall(MatSetFromOptions(p->A));
  }
  PetscCall(MatCreateVecs(p->A, &p->x, &p->y));
  PetscCall(VecSet(p->x, 1.0));
  PetscCall(VecSet(p->y, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductsDestroy(Products *p)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&p->x));
  PetscCall(VecDestroy(&p->y));
  PetscCall(VecDestroy(&p->values));
  PetscCall(MatDestroy(&p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the matrix is */
static PetscErrorCode NewValues(const Few *f, Products *p)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  if (f->coo) {
    PetscCall(VecScale(p->values, 3.0));
    PetscCall(SetValuesCOO(p));
  } else if (f->onhost) {
    PetscCall(MatGetInfo(p->A, MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(p->A, &a));
    for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] *= 3.0;
    PetscCall(MatSeqAIJRestoreArray(p->A, &a));
  } else PetscCall(MatScale(p->A, 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeOnce(const Few *f, Mat R, const char type[], const char prefix[], PetscInt k, PetscBool calls, PetscBool view, PetscLogDouble *t)
{
  Products p = {.k = k, .transpose = f->transpose};

  PetscFunctionBegin;
  if (f->forget) PetscCall(GallopTuneForget());
  PetscCall(ProductsCreate(f, R, type, prefix, &p));
  if (!f->onhost && !f->coo) PetscCall(NewValues(f, &p));
  for (PetscInt n = 0; n < f->newvalues; n++) {
    PetscCall(Multiply(&p));
    PetscCall(NewValues(f, &p));
  }
  if (calls) (*f->callsbegin)();
  PetscCall((*f->place->time)(Multiply, &p, 1, t));
  if (calls) (*f->callsend)();
  if (view) {
    PetscCall(PetscViewerPushFormat(PETSC_VIEWER_STDOUT_SELF, PETSC_VIEWER_ASCII_INFO_DETAIL));
    PetscCall(MatView(p.A, PETSC_VIEWER_STDOUT_SELF));
    PetscCall(PetscViewerPopFormat(PETSC_VIEWER_STDOUT_SELF));
  }
  PetscCall(ProductsDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Without what the vectors take */
static PetscErrorCode Memory(const Few *f, Mat R, const char name[], PetscInt nz, const char what[], const char type[], const char prefix[])
{
  Products       p = {.k = f->counts[f->ncounts - 1], .transpose = f->transpose};
  PetscLogDouble before, built, steady, refreshed;
  PetscInt       m, n;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFreeKept(PETSC_FALSE));        /* such as what the machine's bandwidth was measured with */
  if (f->coo) PetscCall((*f->place->memory)(&before)); /* the matrix comes to the GPU when it is assembled */
  PetscCall(ProductsCreate(f, R, type, prefix, &p));
  if (f->coo) {
    PetscCall(MatGetSize(p.A, &m, &n));
    before += sizeof(PetscScalar) * ((PetscLogDouble)m + n + nz);
  } else PetscCall((*f->place->memory)(&before));
  PetscCall((*f->place->peak)(Multiply, &p, &built));
  PetscCall((*f->place->memory)(&steady));
  PetscCall(NewValues(f, &p));
  PetscCall((*f->place->peak)(Multiply, &p, &refreshed));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# memory\t%s\t%" PetscInt_FMT "\t%s\t%.2f\t%.2f\t%.2f\n", name, nz, what, (steady - before) / nz, (built - before) / nz, (refreshed - before) / nz));
  PetscCall(ProductsDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void *ctx, const char name[], PetscBool file)
{
  Few           *f = (Few *)ctx;
  BenchProblem   problem;
  PetscLogDouble base[MOST_COUNTS], t;

  PetscFunctionBegin;
  PetscCall(BenchProblemCreate(name, file, f->in.seed, f->transpose, 0, &problem));
  for (PetscInt w = 0; w < f->ntypes; w++) {
    char        type[64], prefix[64] = "";
    const char *of;

    PetscCall(BenchSplitType(f->types[w], type, sizeof(type), &of));
    if (of) PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "%s_", of));
    if (f->memory) {
      PetscCall(Memory(f, problem.A, problem.name, problem.nz, f->types[w], type, prefix));
      continue;
    }
    PetscCall(TimeOnce(f, problem.A, type, prefix, 500, PETSC_FALSE, PETSC_FALSE, &t)); /* kernels are loaded at their first launch */
    for (PetscInt c = 0; c < f->ncounts; c++) {
      PetscReal      times[MOST_MEASUREMENTS];
      PetscLogDouble median, begin, now;
      PetscInt       m = 0;

      PetscCall(PetscTime(&begin));
      for (PetscBool last = PETSC_FALSE; !last; m++) {
        PetscCall(PetscTime(&now));
        last = (PetscBool)(m + 1 == MOST_MEASUREMENTS || (m + 1 >= f->measurements && (now - begin >= ENOUGH_SECONDS || f->measurements == 1)));
        PetscCall(TimeOnce(f, problem.A, type, prefix, f->counts[c], (PetscBool)(f->callsbegin && last), (PetscBool)(f->view && last && c == f->ncounts - 1), &t));
        times[m] = (PetscReal)t;
      }
      PetscCall(PetscSortReal(m, times));
      median = times[m / 2];
      if (!w) base[c] = median;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%" PetscInt_FMT "\t%s\t%" PetscInt_FMT "\t%.1f\t%.3f\n", problem.name, problem.nz, f->types[w], f->counts[c], 1e6 * median, median / base[c]));
    }
  }
  PetscCall(BenchProblemDestroy(&problem));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const onhost[] = {MATAIJ, MATEVCHYB}, *const ongpu[] = {MATAIJCUSPARSE, MATEVCHYB};
  const PetscInt counts[] = {1, 3, 10, 30, 100, 1000};
  Few            f        = {.place = &BenchHost, .ncounts = MOST_COUNTS, .measurements = BENCH_MEASUREMENTS};
  PetscLogDouble bandwidth;
  PetscBool      set, calls = PETSC_FALSE, gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(BenchInputCreate(&f.in));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(BenchDeviceAvailable(&gpu));
  if (gpu) f.place = &BenchDevice;
#endif
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &f.transpose, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-new_values", &f.newvalues, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-forget", &f.forget, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-view", &f.view, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-memory", &f.memory, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-assembled_on_host", &f.onhost, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-coo", &f.coo, NULL));
  if (f.memory) f.onhost = PETSC_TRUE;
  PetscCheck(!f.memory || f.place->peak, PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "-memory needs a GPU");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-measurements", &f.measurements, NULL));
  PetscCheck(f.measurements >= 1 && f.measurements <= MOST_MEASUREMENTS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option -measurements is %" PetscInt_FMT ", but must be between 1 and %d", f.measurements, MOST_MEASUREMENTS);
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-calls", &calls, NULL));
  if (calls) {
    *(void **)&f.callsbegin = dlsym(RTLD_DEFAULT, "CudaCallsBegin");
    *(void **)&f.callsend   = dlsym(RTLD_DEFAULT, "CudaCallsEnd");
    PetscCheck(f.callsbegin && f.callsend, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-calls needs LD_PRELOAD=libcudacalls.so");
  }
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-k", f.counts, &f.ncounts, &set));
  if (!set) {
    f.ncounts = PETSC_STATIC_ARRAY_LENGTH(counts);
    PetscCall(PetscArraycpy(f.counts, counts, f.ncounts));
  }
  PetscCall(BenchList("-types", 2, gpu ? ongpu : onhost, &f.ntypes, f.types));
  PetscCall(BenchPrintHead(f.place, &bandwidth));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "# matrix\tnnz\ttype\tk\tus\tover\n"));
  PetscCall(BenchInputRun(&f.in, Run, &f));
  PetscCall((*f.place->finish)());
  PetscCall(BenchFreeList(f.ntypes, f.types));
  PetscCall(BenchInputDestroy(&f.in));
  PetscCall(PetscFinalize());
  return 0;
}
