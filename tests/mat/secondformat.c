/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A format is one table of functions: this one is made in a test, and the base does the rest.\n\n";

#include "../galloptest.h"
#include <gallop/formatimpl.h>

/* Row, column and value of each entry, in the order of rows or in the reverse of it */
typedef struct {
  PetscInt     m;
  PetscCount   nz;
  PetscBool    reverse;
  PetscInt    *i, *j;
  PetscScalar *a;
} TOYCOO;

typedef struct {
  PetscBool reverse;
} TOYCOOOptions;

GALLOP_FORMAT_TYPES(TOYCOO)

static PetscErrorCode TOYCOOOptionsDefault(void *options)
{
  PetscFunctionBegin;
  ((TOYCOOOptions *)options)->reverse = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOOOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  TOYCOOOptions  *o      = (TOYCOOOptions *)options;
  const PetscBool before = o->reverse;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscOptionsBool("-mat_toycoo_reverse", "Last row first", NULL, o->reverse, &o->reverse, NULL));
  if (o->reverse != before) *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOODestroy(void **data)
{
  TOYCOO *coo = (TOYCOO *)*data;

  PetscFunctionBegin;
  if (coo) PetscCall(PetscFree3(coo->i, coo->j, coo->a));
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOORefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  TOYCOO *coo = (TOYCOO *)data;

  PetscFunctionBegin;
  for (PetscCount k = 0; k < coo->nz; k++) coo->a[coo->reverse ? coo->nz - 1 - k : k] = csr->a[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOOBuild(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data)
{
  TOYCOO *coo;

  PetscFunctionBegin;
  *data = NULL; /* nothing that does not fit: the parent computes the products */
  if (maxbytes && csr->nz * (PetscCount)(2 * sizeof(PetscInt) + sizeof(PetscScalar)) > maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&coo));
  coo->m       = csr->m;
  coo->nz      = csr->nz;
  coo->reverse = ((const TOYCOOOptions *)options)->reverse;
  PetscCall(PetscMalloc3(csr->nz, &coo->i, csr->nz, &coo->j, csr->nz, &coo->a));
  for (PetscInt r = 0; r < csr->m; r++) {
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      const PetscCount to = coo->reverse ? coo->nz - 1 - k : k;

      coo->i[to] = r;
      coo->j[to] = csr->j[k];
    }
  }
  PetscCall(TOYCOORefresh(coo, csr, 0, NULL));
  *data = coo;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOOApply(void *data, const GallopProduct *p)
{
  const TOYCOO *coo = (const TOYCOO *)data;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < coo->m; r++) p->z[r] = *p->beta == (PetscScalar)0.0 ? 0.0 : *p->beta * p->y[r];
  for (PetscCount k = 0; k < coo->nz; k++) p->z[coo->i[k]] += *p->alpha * coo->a[k] * p->x[coo->j[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOOFigures(const void *data, PetscLogDouble figures[GALLOP_MAX_FIGURES])
{
  PetscFunctionBegin;
  figures[0] = (PetscLogDouble)((const TOYCOO *)data)->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TOYCOOView(const PetscLogDouble figures[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "TOYCOO: %.0f entries\n", figures[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GallopFormatWork TOYCOOHost = {TOYCOOBuild, TOYCOORefresh, TOYCOOApply, TOYCOODestroy, NULL};

/* nothing on the GPU: there the parent computes the products */
const GallopFormat GallopFormat_TOYCOO = {
  .name            = "toycoo",
  .ucname          = "TOYCOO",
  .citation        = "@misc{toycoo}\n",
  .createseq       = MatCreate_SeqAIJTOYCOO,
  .creatempi       = MatCreate_MPIAIJTOYCOO,
  .options_size    = sizeof(TOYCOOOptions),
  .options_default = TOYCOOOptionsDefault,
  .options_set     = TOYCOOOptionsSet,
  .host            = &TOYCOOHost,
  .figures         = TOYCOOFigures,
  .view            = TOYCOOView,
};

/* On a GPU this format has nothing, but bound to the CPU it has */
static PetscErrorCode Products(Mat A, Mat R, TestExpect expect, MatGallopStatistics *last, const char what[])
{
  Vec       x, y;
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestOnDevice(A, x, y, &device));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  if (device) {
    PetscCall(TestProducts(A, R, TEST_FALLBACK, last, what));
    PetscCall(MatBindToCPU(A, PETSC_TRUE));
  }
  PetscCall(TestProducts(A, R, expect, last, what));
  if (device) PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(TestShape shape)
{
  Mat                 A, R, B, T;
  MatGallopStatistics last = {0}, blast = {0};
  PetscMPIInt         size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestCreate(PETSC_COMM_WORLD, "toycoo", shape, 0, &A, &R));
  PetscCall(TestHasType(A, "seqaijtoycoo", "mpiaijtoycoo", "MatSetType()"));
  PetscCall(Products(A, R, TEST_BUILD, &last, "second format"));
  PetscCall(TestFill(A, 0, 1));
  PetscCall(TestFill(R, 0, 1));
  PetscCall(Products(A, R, TEST_REFRESH, &last, "second format, new values"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_toycoo_reverse", "1"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_toycoo_reverse"));
  PetscCall(Products(B, R, TEST_BUILD, &blast, "duplicate of the second format"));
  PetscCall(MatScale(B, 3.0));
  PetscCall(Products(A, R, TEST_NOTHING, &last, "second format whose duplicate changed"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(TestFill(A, 1, 2));
  PetscCall(TestFill(R, 1, 2));
  PetscCall(Products(A, R, size > 1 ? TEST_CHANGED : TEST_BUILD, &last, "second format, new pattern"));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTranspose(R, MAT_INITIAL_MATRIX, &T));
  PetscCall(PetscMemzero(&blast, sizeof(blast)));
  PetscCall(TestHasType(B, "seqaijtoycoo", "mpiaijtoycoo", "MatTranspose()"));
  PetscCall(Products(B, T, TEST_BUILD, &blast, "transpose of the second format"));
  PetscCall(TestDestroy(&B, &T));

  /* from one format to the other and back */
  PetscCall(MatConvert(A, MATEVCHYB, MAT_INITIAL_MATRIX, &B));
  PetscCall(TestHasType(B, MATSEQAIJEVCHYB, MATMPIAIJEVCHYB, "MatConvert() between formats"));
  PetscCall(PetscMemzero(&blast, sizeof(blast)));
  PetscCall(TestProducts(B, R, TEST_BUILD, &blast, "MatConvert() between formats"));
  PetscCall(MatConvert(B, "toycoo", MAT_INPLACE_MATRIX, &B));
  PetscCall(TestHasType(B, "seqaijtoycoo", "mpiaijtoycoo", "MatConvert() between formats"));
  PetscCall(PetscMemzero(&blast, sizeof(blast)));
  PetscCall(Products(B, R, TEST_BUILD, &blast, "MatConvert() between formats in place"));
  PetscCall(MatConvert(B, "aijtoycoo", MAT_INPLACE_MATRIX, &B));
  PetscCall(MatConvert(B, MATAIJ, MAT_INPLACE_MATRIX, &B));
  PetscCall(TestIsOurs(B, PETSC_FALSE, "MatConvert() of the second format to plain"));
  PetscCall(MatDestroy(&B));

  /* no room */
  PetscCall(MatSetOptionsPrefix(A, "tight_"));
  PetscCall(PetscOptionsSetValue(NULL, "-tight_mat_toycoo_memory", "1"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatSetOptionsPrefix(B, "tight_"));
  PetscCall(MatSetFromOptions(B));
  PetscCall(PetscOptionsClearValue(NULL, "-tight_mat_toycoo_memory"));
  PetscCall(PetscMemzero(&blast, sizeof(blast)));
  PetscCall(TestProducts(B, R, TEST_FALLBACK, &blast, "second format without room"));
  PetscCall(MatDestroy(&B));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode View(void)
{
  Mat A, R;

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, "toycoo", TestSquare, 0, &A, &R));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(PetscViewerPushFormat(PETSC_VIEWER_STDOUT_WORLD, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(A, PETSC_VIEWER_STDOUT_WORLD));
  PetscCall(PetscViewerPopFormat(PETSC_VIEWER_STDOUT_WORLD));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(GallopFormatRegister(&GallopFormat_TOYCOO));
  PetscCall(GallopFormatRegister(&GallopFormat_TOYCOO)); /* twice is once */
  PetscCall(Test(TestSquare));
  PetscCall(Test(TestWide));
  PetscCall(Test(TestTall));
  PetscCall(View());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2 4}}
    output_file: output/secondformat_1.out
    filter: grep "TOYCOO:"

TEST*/
