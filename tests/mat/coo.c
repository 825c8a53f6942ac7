/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Assembly by COO where a sequential matrix keeps indices of its own on the GPU: entries in any order, repeated, to be ignored; without room; with indices on the GPU.\n\n";

#include "cootest.h"
#include <gallop/cooimpl.h>

typedef enum {
  ORDERED,  /* by rows and columns, each once */
  SHUFFLED, /* each once */
  REPEATED, /* up to three times in any order, and some to be ignored */
  KINDS
} Kind;

static const PetscInt rows = 97, cols = 61;

static PetscErrorCode CreateEntries(Kind kind, PetscBool device, COO *e)
{
  PetscRandom random;

  PetscFunctionBegin;
  e->n = 0;
  PetscCall(PetscMalloc2(4 * rows * cols, &e->i, 4 * rows * cols, &e->j));
  for (PetscInt i = 0; i < rows; i++) {
    if (i == 3) continue; /* an empty row */
    for (PetscInt j = 0; j < cols; j++) {
      if (!TestHasEntry(5, rows, cols, i, j)) continue;
      for (PetscInt r = 0; r <= (kind == REPEATED ? (i + j) % 3 : 0); r++) {
        e->i[e->n]   = i;
        e->j[e->n++] = j;
      }
      if (kind == REPEATED && j % 7 == 0) {
        e->i[e->n]   = j % 2 ? i : -1;
        e->j[e->n++] = j % 2 ? -2 : j;
      }
    }
  }
  if (kind != ORDERED) {
    PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
    PetscCall(PetscRandomSetSeed(random, 7));
    for (PetscCount k = e->n - 1; k > 0; k--) {
      PetscReal  r;
      PetscCount o;
      PetscInt   t;

      PetscCall(PetscRandomGetValueReal(random, &r));
      o       = PetscMin((PetscCount)(r * (k + 1)), k);
      t       = e->i[k];
      e->i[k] = e->i[o];
      e->i[o] = t;
      t       = e->j[k];
      e->j[k] = e->j[o];
      e->j[o] = t;
    }
    PetscCall(PetscRandomDestroy(&random));
  }
  PetscCall(VecCreate(PETSC_COMM_SELF, &e->v));
  PetscCall(VecSetSizes(e->v, e->n, e->n));
  PetscCall(VecSetType(e->v, device ? VECCUDA : VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Integers where vectors are: in the array of one. There is no other way to GPU memory without CUDA's own functions. */
static PetscErrorCode ToVec(const PetscInt from[], PetscCount n, Vec *v)
{
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, v));
  PetscCall(VecSetSizes(*v, n, n));
  PetscCall(VecSetType(*v, VECCUDA));
  PetscCall(VecGetArrayWrite(*v, &a));
  PetscCall(PetscMemcpy(a, from, (size_t)n * sizeof(*from)));
  PetscCall(VecRestoreArrayWrite(*v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetPattern(Mat A, const COO *e, PetscBool ondevice)
{
  Vec          vi, vj;
  PetscScalar *ai, *aj;

  PetscFunctionBegin;
  if (!ondevice) {
    PetscCall(COOSetPattern(A, e));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ToVec(e->i, e->n, &vi));
  PetscCall(ToVec(e->j, e->n, &vj));
  PetscCall(VecGetArrayAndMemType(vi, &ai, NULL));
  PetscCall(VecGetArrayAndMemType(vj, &aj, NULL));
  PetscCall(MatSetPreallocationCOO(A, e->n, (PetscInt *)ai, (PetscInt *)aj));
  PetscCall(VecRestoreArrayAndMemType(vi, &ai));
  PetscCall(VecRestoreArrayAndMemType(vj, &aj));
  PetscCall(VecDestroy(&vi));
  PetscCall(VecDestroy(&vj));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entry by entry; the sums of a few values may differ by rounding */
static PetscErrorCode Compare(Mat A, Mat R, Kind kind, const char what[])
{
  const PetscInt    *i, *j, *ri, *rj;
  const PetscScalar *a, *r;
  PetscInt           m;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatGetRowIJ(R, 0, PETSC_FALSE, PETSC_FALSE, &m, &ri, &rj, &done));
  PetscCheck(i[m] == ri[m], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d, %s: %" PetscInt_FMT " nonzeros of %" PetscInt_FMT, (int)kind, what, i[m], ri[m]);
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(MatSeqAIJGetArrayRead(R, &r));
  for (PetscInt k = 0; k < ri[m]; k++) {
    PetscCheck(j[k] == rj[k] && PetscAbsScalar(a[k] - r[k]) <= 20 * PETSC_MACHINE_EPSILON * (1 + PetscAbsScalar(r[k])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d, %s: nonzero %" PetscInt_FMT " is %g in column %" PetscInt_FMT ", not %g in column %" PetscInt_FMT, (int)kind, what, k, (double)PetscRealPart(a[k]), j[k], (double)PetscRealPart(r[k]), rj[k]);
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(R, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether indices are where they should be, and no more of them than are needed */
static PetscErrorCode CheckIndices(Mat A, const COO *e, Kind kind, PetscBool own)
{
  PetscObject petscs;
  GallopCOO  *coo;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_COO, &coo));
  PetscCheck(!own == !coo, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d: %s indices of its own on the GPU", (int)kind, own ? "no" : "unexpected");
  if (!own) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectQuery((PetscObject)A, "__PETSc_MatCOOStruct_Device", &petscs));
  PetscCheck(!petscs, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d: PETSc's indices are on the GPU too", (int)kind);
  PetscCheck(coo->n == e->n && !coo->perm == (kind == ORDERED) && !coo->jmap == (kind != REPEATED), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d: %s order and %s beginnings for %" PetscCount_FMT " values", (int)kind, coo->perm ? "an" : "no", coo->jmap ? "with" : "no",
             coo->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreatePair(Mat *A, Mat *R)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, rows, cols, rows, cols));
  PetscCall(MatSetType(*A, TestFormat("")));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatCreate(PETSC_COMM_SELF, R));
  PetscCall(MatSetSizes(*R, rows, cols, rows, cols));
  PetscCall(MatSetType(*R, MATSEQAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors on the host, where the parent computes the second one: PETSc binds it to the CPU, and back */
static PetscErrorCode MultiplyOnHost(Mat A)
{
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, cols, &x));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, rows, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultTranspose(A, y, x));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One pattern after the other for the same matrix */
static PetscErrorCode Patterns(PetscBool device, PetscBool ondevice)
{
  const Kind          kinds[] = {SHUFFLED, REPEATED, ORDERED, REPEATED};
  MatGallopStatistics last    = {0};
  Mat                 A, R, B, S;
  COO                 e;

  PetscFunctionBegin;
  PetscCall(CreatePair(&A, &R));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kinds); k++) {
    const PetscScalar *v;
    PetscLogDouble     copies;

    PetscCall(CreateEntries(kinds[k], device, &e));
    PetscCall(SetPattern(A, &e, ondevice));
    PetscCall(SetPattern(R, &e, PETSC_FALSE));
    PetscCall(CheckIndices(A, &e, kinds[k], device));
    PetscCall(COOSetValues(A, R, &e, 11, INSERT_VALUES, PETSC_FALSE));
    PetscCall(TestProducts(A, R, TEST_BUILD, &last, "COO assembly"));
    PetscCall(COOSetValues(A, R, &e, 12, ADD_VALUES, PETSC_TRUE));
    PetscCall(TestProducts(A, R, TEST_REFRESH, &last, "values of the host added"));
    PetscCall(TestSetVec(e.v, 13));
    PetscCall(VecGetArrayReadAndMemType(e.v, &v, NULL));
    copies = petsc_ctog_ct + petsc_gtoc_ct;
    PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
    copies = petsc_ctog_ct + petsc_gtoc_ct - copies;
    PetscCall(VecRestoreArrayReadAndMemType(e.v, &v));
    PetscCheck(copies == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d: %g copies between host and GPU for values that are there", (int)kinds[k], copies);
    PetscCall(COOSetValues(R, R, &e, 13, INSERT_VALUES, PETSC_TRUE));
    PetscCall(Compare(A, R, kinds[k], "values of the GPU"));

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
    PetscCall(MultiplyOnHost(B));
    PetscCall(COOSetValues(B, S, &e, 14, ADD_VALUES, PETSC_FALSE));
    PetscCall(Compare(B, S, kinds[k], "a duplicate"));
    PetscCall(Compare(A, R, kinds[k], "the original of a duplicate"));
    PetscCall(TestDestroy(&B, &S));

    /* the parent's type takes values as before, and a new pattern */
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
    PetscCall(MultiplyOnHost(B));
    PetscCall(MatConvert(B, device ? MATAIJCUSPARSE : MATAIJ, MAT_INPLACE_MATRIX, &B));
    PetscCall(TestIsOurs(B, PETSC_FALSE, "converted"));
    PetscCall(COOSetValues(B, S, &e, 15, ADD_VALUES, PETSC_FALSE));
    PetscCall(Compare(B, S, kinds[k], "converted"));
    PetscCall(COODestroy(&e));
    PetscCall(CreateEntries(SHUFFLED, device, &e));
    PetscCall(SetPattern(B, &e, PETSC_FALSE));
    PetscCall(SetPattern(S, &e, PETSC_FALSE));
    PetscCall(COOSetValues(B, S, &e, 16, INSERT_VALUES, PETSC_FALSE));
    PetscCall(Compare(B, S, kinds[k], "converted, with a new pattern"));
    PetscCall(TestDestroy(&B, &S));
    PetscCall(COODestroy(&e));

    /* another type of ours, where the new pattern has no room at first */
    PetscCall(CreateEntries(kinds[k], device, &e));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
    PetscCall(MatConvert(B, strcmp(TestFormat(""), MATHBP) ? MATHBP : MATEVCHYB, MAT_INPLACE_MATRIX, &B));
    PetscCall(COOSetValues(B, S, &e, 17, ADD_VALUES, PETSC_FALSE));
    PetscCall(Compare(B, S, kinds[k], "another type of ours"));
    PetscCall(COODestroy(&e));
    for (int room = 0; room < 2; room++) {
      PetscCall(CreateEntries(REPEATED, device, &e));
      if (!room) PetscCall(TestSetIntOption("-gallop_device_malloc_fail", 1));
      PetscCall(SetPattern(B, &e, PETSC_FALSE));
      PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
      PetscCall(SetPattern(S, &e, PETSC_FALSE));
      PetscCall(CheckIndices(B, &e, REPEATED, (PetscBool)(device && room)));
      PetscCall(COOSetValues(B, S, &e, 18 + room, INSERT_VALUES, PETSC_FALSE));
      PetscCall(Compare(B, S, kinds[k], "another type of ours, with a new pattern"));
      PetscCall(COODestroy(&e));
    }
    PetscCall(TestDestroy(&B, &S));
  }
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No room for one after the other of what is asked for: the parent's indices, and the same matrix */
static PetscErrorCode NoRoom(PetscBool device)
{
  PetscFunctionBegin;
  for (int kind = 0; kind < KINDS; kind++) {
    PetscBool own = PETSC_FALSE;

    for (PetscInt fail = 1; !own && fail < 20; fail++) {
      Mat        A, R;
      COO        e;
      GallopCOO *coo;

      PetscCall(CreatePair(&A, &R));
      PetscCall(CreateEntries((Kind)kind, device, &e));
      PetscCall(SetPattern(R, &e, PETSC_FALSE));
      PetscCall(TestSetIntOption("-gallop_device_malloc_fail", fail));
      PetscCall(SetPattern(A, &e, PETSC_FALSE));
      PetscCall(COOSetValues(A, R, &e, 21, INSERT_VALUES, PETSC_TRUE));
      PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
      PetscCall(Compare(A, R, (Kind)kind, "no room"));
      PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_COO, &coo));
      own = (PetscBool)(coo || !device);
      PetscCall(COOSetValues(A, R, &e, 22, ADD_VALUES, PETSC_FALSE));
      PetscCall(Compare(A, R, (Kind)kind, "room again"));
      PetscCall(COODestroy(&e));
      PetscCall(TestDestroy(&A, &R));
    }
    PetscCheck(own, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kind %d: never room", kind);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Indices out of range, and values for a pattern that has changed */
static PetscErrorCode Errors(PetscBool device)
{
  Mat            A, R;
  COO            e;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int column = 0; column < 2; column++) {
    PetscCall(CreatePair(&A, &R));
    PetscCall(CreateEntries(SHUFFLED, device, &e));
    if (column) e.j[7] = cols;
    else e.i[7] = rows;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = SetPattern(A, &e, PETSC_FALSE);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_ARG_OUTOFRANGE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An index out of range: error %d", (int)ierr);
    PetscCall(COODestroy(&e));
    PetscCall(TestDestroy(&A, &R));
  }
  if (device) {
    const PetscScalar *v;

    PetscCall(CreatePair(&A, &R));
    PetscCall(CreateEntries(SHUFFLED, device, &e));
    PetscCall(SetPattern(A, &e, PETSC_FALSE));
    PetscCall(SetPattern(R, &e, PETSC_FALSE));
    PetscCall(COOSetValues(A, R, &e, 31, INSERT_VALUES, PETSC_FALSE));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValue(A, 3, 0, 1.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(VecGetArrayReadAndMemType(e.v, &v, NULL));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatSetValuesCOO(A, v, INSERT_VALUES);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Values for another pattern: error %d", (int)ierr);
    PetscCall(VecRestoreArrayReadAndMemType(e.v, &v));
    PetscCall(COODestroy(&e));
    PetscCall(TestDestroy(&A, &R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool device = PETSC_FALSE, errors;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHasDevice(&device));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-errors", &errors));
  if (errors) PetscCall(Errors(device));
  else {
    PetscCall(Patterns(device, PETSC_FALSE));
    if (device) PetscCall(Patterns(device, PETSC_TRUE));
    PetscCall(NoRoom(device));
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      suffix: 1
    test:
      suffix: formats
      args: -format {{csroverlap hbp fastload}}
    test:
      suffix: errors
      args: -errors -malloc_dump 0

TEST*/
