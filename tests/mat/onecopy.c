/* SPDX-License-Identifier: BSD-2-Clause */
static char
  help[] = "-mat_gallop_csr release and host: the CSR arrays of a matrix assembled on the host do not stay on the GPU beside the format, come back for the parent's operations, and answers are right "
           "all the while.\n\n";

#include "../galloptest.h"
#include <petsc/private/matimpl.h>

static PetscBool device = PETSC_FALSE, takeshost = PETSC_FALSE; /* CSROVERLAP copies from the host itself */
static PetscBool maps = PETSC_FALSE;                            /* builds and refreshes read the host's arrays where they are */

/* What went since this was asked last: copies for a build or a refresh, or what was read on the host instead, and copies of the parent's */
static PetscErrorCode Went(Mat A, PetscInt64 uploads, PetscInt64 releases, MatGallopStatistics *before, const char what[])
{
  MatGallopStatistics now;

  PetscFunctionBegin;
  PetscCall(MatGallopGetStatistics(A, &now));
  if (!device || takeshost) uploads = 0;
  if (!device) releases = 0;
  TestCheck(now.csr_uploads - before->csr_uploads == (maps ? 0 : uploads) && now.csr_maps - before->csr_maps == (maps ? uploads : 0) && now.csr_releases - before->csr_releases == releases, "%" PetscInt64_FMT " uploads, %" PetscInt64_FMT " times read on the host, %" PetscInt64_FMT " releases, should be %" PetscInt64_FMT " in all and %" PetscInt64_FMT, what,
            now.csr_uploads - before->csr_uploads, now.csr_maps - before->csr_maps, now.csr_releases - before->csr_releases, uploads, releases);
  *before = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the parent has a current copy on the GPU of all blocks */
static PetscErrorCode HasCopy(Mat A, PetscBool has, const char what[])
{
  Mat blocks[2];
  int n = 0;

  PetscFunctionBegin;
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestGetBlocks(A, blocks, &n));
#if PetscDefined(HAVE_DEVICE)
  for (int k = 0; k < n; k++) {
    MatInfo info;

    PetscCall(MatGetInfo(blocks[k], MAT_LOCAL, &info));
    if (info.nz_used > 0)
      TestCheck((blocks[k]->offloadmask == PETSC_OFFLOAD_BOTH || blocks[k]->offloadmask == PETSC_OFFLOAD_GPU) == has, "the parent has %s copy of block %d", what, has ? "no" : "a", k);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewValues(Mat A, Mat R, PetscInt seed)
{
  PetscFunctionBegin;
  PetscCall(TestFill(A, 0, seed));
  PetscCall(TestFill(R, 0, seed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameDiagonal(Mat A, Mat R, const char what[])
{
  Vec a, r;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &a, NULL));
  PetscCall(MatCreateVecs(R, &r, NULL));
  PetscCall(TestDiagonal(A, R, a, r, 0, what));
  PetscCall(VecDestroy(&a));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent never has a copy, but for an operation of its own on the GPU, which changes values there */
static PetscErrorCode BuiltFirst(void)
{
  Mat                 A, R, B;
  Vec                 x, z;
  PetscInt            parts, filled;
  MatGallopStatistics last = {0}, went = {0}, blast = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestPartsFilled(A, &parts, &filled));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "new matrix"));
  PetscCall(Went(A, filled, 0, &went, "new matrix"));
  PetscCall(HasCopy(A, PETSC_FALSE, "new matrix"));
  PetscCall(TestMult(A, R, x, z, TEST_NOTHING, &last, "same matrix"));
  PetscCall(Went(A, 0, 0, &went, "same matrix"));

  for (int k = 0; k < 3; k++) {
    PetscCall(NewValues(A, R, 10 + k));
    PetscCall(SameDiagonal(A, R, "new values on the host"));
    PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "new values on the host"));
    PetscCall(Went(A, filled, 0, &went, "new values on the host"));
    PetscCall(SameDiagonal(A, R, "refreshed"));
    PetscCall(HasCopy(A, PETSC_FALSE, "new values on the host"));
  }

  PetscCall(MatZeroEntries(A));
  PetscCall(MatZeroEntries(R));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "MatZeroEntries()"));
  PetscCall(NewValues(A, R, 20));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "MatSetValues() after MatZeroEntries()"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(TestMult(B, R, x, z, TEST_BUILD, &blast, "MatDuplicate()"));
  PetscCall(MatBindToCPU(B, PETSC_TRUE));
  PetscCall(MatBindToCPU(B, PETSC_FALSE));
  PetscCall(TestMult(B, R, x, z, TEST_ANY, &blast, "MatBindToCPU() to and fro"));
  PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
  PetscCall(TestMult(B, R, x, z, TEST_REFRESH, &blast, "MatCopy()"));
  PetscCall(HasCopy(B, PETSC_FALSE, "MatCopy()"));

  /* the parent makes its copy, and values are on the GPU alone then: it stays, and refreshes take them from there */
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(HasCopy(A, PETSC_TRUE, "MatScale()"));
  PetscCall(Went(A, 2 * filled, 0, &went, "MatZeroEntries() and MatSetValues()"));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "MatScale()"));
  PetscCall(HasCopy(A, PETSC_TRUE, "MatScale(), refreshed"));
  PetscCall(MatAXPY(A, -0.5, B, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &B));
  PetscCall(MatScale(B, 0.5));
  PetscCall(MatAXPY(R, -0.5, B, SAME_NONZERO_PATTERN));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "MatAXPY()"));
  PetscCall(NewValues(A, R, 30));
  PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "host again"));
  PetscCall(Went(A, 0, 0, &went, "copy that stays"));
  if (!takeshost) PetscCall(HasCopy(A, PETSC_TRUE, "host again"));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products until every block has had a build, or with refresh a refresh */
static PetscErrorCode MultiplyUntil(Mat A, Vec x, Vec z, PetscBool refresh)
{
  const PetscInt      most = 2000;
  PetscInt            parts, filled;
  PetscBool           all = PETSC_FALSE;
  MatGallopStatistics first, now;

  PetscFunctionBegin;
  PetscCall(TestPartsFilled(A, &parts, &filled));
  PetscCall(MatGallopGetStatistics(A, &first));
  for (PetscInt n = 0; n < most && !all; n++) {
    PetscCall(MatMult(A, x, z));
    PetscCall(MatGallopGetStatistics(A, &now));
    all = (PetscBool)((refresh ? now.refreshes - first.refreshes : now.builds - first.builds) >= filled);
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &all, 1, MPI_C_BOOL, MPI_LAND, PETSC_COMM_WORLD));
  }
  PetscCheck(all, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No %s in %" PetscInt_FMT " products", refresh ? "refresh" : "build", most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent computes products until the format pays, and its copy goes then. The parent's transposed products bring it back, once for a pattern. */
static PetscErrorCode BuiltWhenItPays(void)
{
  Mat                 A, R;
  Vec                 x, z;
  PetscInt            parts, filled;
  PetscBool           evchyb;
  MatGallopStatistics last = {0}, went = {0};

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(TestFormat(""), MATEVCHYB, &evchyb));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "pays"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_explicit_transpose", "never"));
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(TestPartsFilled(A, &parts, &filled));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestSetVec(x, 17));
  PetscCall(MultiplyUntil(A, x, z, PETSC_FALSE));
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "format that pays"));
  PetscCall(Went(A, maps ? filled : 0, takeshost ? 0 : filled, &went, "format that pays")); /* the parent's copy goes before a build that reads the host's */
  PetscCall(HasCopy(A, PETSC_FALSE, "format that pays"));
  PetscCall(MatGallopGetStatistics(A, &last));
  PetscCall(TestMult(A, R, x, z, TEST_NOTHING, &last, "same values"));

  /* a refresh pays at once, as the parent would have to make its copy */
  PetscCall(NewValues(A, R, 10));
  if (device) {
    PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "new values"));
    PetscCall(Went(A, filled, 0, &went, "new values"));
  }

  if (evchyb) {
    for (int k = 0; k < 2; k++) PetscCall(MatMultTranspose(A, z, x));
    PetscCall(TestCompare(R, TEST_TRANSPOSE, z, NULL, x, "transposed"));
    PetscCall(HasCopy(A, PETSC_TRUE, "transposed"));
    PetscCall(NewValues(A, R, 11));
    PetscCall(TestSetVec(x, 17));
    PetscCall(MultiplyUntil(A, x, z, PETSC_TRUE));
    PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "copy that came back"));
    PetscCall(Went(A, 0, 0, &went, "copy that came back"));
    PetscCall(HasCopy(A, PETSC_TRUE, "copy that came back"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&A, &R));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_explicit_transpose"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "first"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Phases of a product of matrices keep addresses of the copies of its factors: these stay once there was a product */
static PetscErrorCode ProductOfMatrices(void)
{
  Mat                 A, R, C, S;
  Vec                 x, z;
  MatGallopStatistics last = {0}, clast = {0}, went = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, TestFormat(""), TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "factor"));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &S));
  PetscCall(MatGallopGetStatistics(A, &went));
  for (int k = 0; k < 2; k++) {
    PetscCall(NewValues(A, R, 10 + k));
    PetscCall(TestMult(A, R, x, z, TEST_REFRESH, &last, "factor, new values"));
    PetscCall(Went(A, 0, 0, &went, "factor, new values"));
    PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatMatMult(R, R, MAT_REUSE_MATRIX, PETSC_DETERMINE, &S));
    PetscCall(TestMult(C, S, x, z, TEST_ANY, &clast, "product"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(TestDestroy(&C, &S));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char csr[16] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscStrcmp(TestFormat(""), MATCSROVERLAP, &takeshost));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_csr", csr, sizeof(csr), NULL));
  PetscCall(PetscStrcmp(csr, "host", &maps));
  PetscCall(BuiltFirst());
  PetscCall(BuiltWhenItPays());
  PetscCall(ProductOfMatrices());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2}}
    args: -mat_gallop_csr {{release host}} -format {{evchyb csroverlap fastload hbp}}
    output_file: output/empty.out

TEST*/
