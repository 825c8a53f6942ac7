/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what GallopView() shows, and checks a product of each type. Nothing but the public header is needed. */

static char help[] = "gallop-info: which Gallop this is, what it has to work with, and whether its products are right here.\n"
                     "A product of a small matrix of each type, and one with a dense matrix by TiledSpMM, are compared with those of the host's AIJ.\n"
                     "The exit status is not 0 if one of them is not ok. The program also runs on several processes, and without a GPU.\n\n";

#include <petscgallop.h>

enum {
  SIDE    = 40, /* of a grid whose points are the rows */
  COLUMNS = 8   /* of the dense matrix */
};

/* Rows of one to five entries, with neighbours on a grid, and a full row */
static PetscErrorCode CreateMatrix(Mat *A)
{
  const PetscInt n = SIDE * SIDE;
  PetscInt       rstart, rend;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt row = rstart; row < rend; row++) {
    const PetscInt neighbours[] = {row - SIDE, row - 1, row + 1, row + SIDE};

    PetscCall(MatSetValue(*A, row, row, 4.1, INSERT_VALUES));
    for (int k = 0; k < 4; k++)
      if (neighbours[k] >= 0 && neighbours[k] < n && (row + neighbours[k]) % 5) PetscCall(MatSetValue(*A, row, neighbours[k], -1.0 / (1 + row % 7), INSERT_VALUES));
    for (PetscInt col = 0; row == n / 2 && col < n; col++) PetscCall(MatSetValue(*A, row, col, 1.0 / (1 + col), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscScalar Entry(PetscInt row, PetscInt column)
{
  return (PetscScalar)(1.0 + (PetscReal)((row + 3 * column) % 11));
}

static PetscErrorCode SetEntries(Vec x, PetscInt column)
{
  PetscInt rstart, rend;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(x, &rstart, &rend));
  for (PetscInt k = rstart; k < rend; k++) PetscCall(VecSetValue(x, k, Entry(k, column), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |y - R x| / |R x| for the column; y may be anywhere, R and what is made here are on the host */
static PetscErrorCode Compare(Mat R, PetscInt column, Vec y, PetscReal *error)
{
  Vec       x, z, yhost;
  PetscReal norm, distance;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(R, &x, &z));
  PetscCall(VecDuplicate(z, &yhost));
  PetscCall(SetEntries(x, column));
  PetscCall(MatMult(R, x, z));
  PetscCall(VecCopy(y, yhost));
  PetscCall(VecNorm(z, NORM_2, &norm));
  PetscCall(VecAXPY(yhost, -1.0, z));
  PetscCall(VecNorm(yhost, NORM_2, &distance));
  *error = PetscIsInfOrNanReal(distance) ? PETSC_INFINITY : PetscMax(*error, distance / norm);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&yhost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VectorProduct(Mat A, Mat R, PetscReal *error)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y)); /* on the GPU where the matrix is */
  PetscCall(SetEntries(x, 0));
  PetscCall(MatMult(A, x, y));
  PetscCall(Compare(R, 0, y, error));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseProduct(Mat A, Mat R, PetscReal *error)
{
  Mat                B, C;
  Vec                column;
  VecType            vectype;
  PetscInt           n, rstart, ld;
  PetscScalar       *b;
  const PetscScalar *c;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatGetOwnershipRangeColumn(A, &rstart, NULL));
  PetscCall(MatGetVecType(A, &vectype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vectype, n, PETSC_DECIDE, SIDE * SIDE, COLUMNS, PETSC_DECIDE, NULL, &B));
  PetscCall(MatDenseGetLDA(B, &ld));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  for (PetscInt k = 0; k < COLUMNS; k++)
    for (PetscInt row = 0; row < n; row++) b[k * ld + row] = Entry(rstart + row, k);
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_CURRENT, &C));
  PetscCall(MatDenseGetLDA(C, &ld));
  PetscCall(MatDenseGetArrayRead(C, &c));
  for (PetscInt k = 0; k < COLUMNS; k++) {
    PetscCall(VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, n, SIDE * SIDE, c + k * ld, &column));
    PetscCall(Compare(R, k, column, error));
    PetscCall(VecDestroy(&column));
  }
  PetscCall(MatDenseRestoreArrayRead(C, &c));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscReal  error;
  PetscInt64 host, device, parent; /* who computed, summed over processes */
} Result;

static PetscErrorCode Product(MatType type, PetscBool dense, Mat R, Result *result)
{
  Mat                 A;
  MatGallopStatistics s;
  PetscInt64          counts[3];

  PetscFunctionBeginUser;
  PetscCall(MatConvert(R, type, MAT_INITIAL_MATRIX, &A));
  if (dense) PetscCall(DenseProduct(A, R, &result->error));
  else PetscCall(VectorProduct(A, R, &result->error));
  PetscCall(MatGallopGetStatistics(A, &s));
  counts[0] = dense ? s.dense_products_host : s.products_host;
  counts[1] = dense ? s.dense_products_device : s.products_device;
  counts[2] = dense ? s.dense_fallbacks : s.fallbacks;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, counts, 3, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  result->host   = counts[0];
  result->device = counts[1];
  result->parent = counts[2];
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the first message of an error */
static PetscErrorCode KeepMessage(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode ierr, PetscErrorType kind, const char *text, PetscCtx ctx)
{
  (void)comm, (void)line, (void)function, (void)file;
  if (kind == PETSC_ERROR_INITIAL) (void)PetscStrncpy((char *)ctx, text, 512);
  return ierr;
}

/* One line of output. An error on one process is no more than a line; of several processes, the others might wait for ever, and so it ends them all. */
static PetscErrorCode CheckType(const char name[], MatType type, PetscBool dense, Mat R, PetscBool *ok)
{
  Result         result       = {0, 0, 0, 0};
  char           message[512] = "";
  PetscMPIInt    size;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscCall(PetscPushErrorHandler(KeepMessage, message));
  ierr = Product(type, dense, R, &result);
  if (size == 1) PetscCall(PetscPopErrorHandler());
  else PetscCall(ierr);
  *ok = PETSC_FALSE;
  if (ierr) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: not ok: %s\n", name, message));
  else if (!(result.error <= 100 * PETSC_MACHINE_EPSILON)) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: not ok: the product differs by %.1e\n", name, (double)result.error));
  else if (result.parent) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: not ok: the parent type computed the product\n", name));
  else if (result.host && result.device) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: not ok: a part was computed on the GPU and another on the host\n", name));
  else {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: ok, on the %s\n", name, result.device ? "GPU" : "host"));
    *ok = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const types[] = {MATEVCHYB, MATCSROVERLAP, MATFASTLOAD, MATHBP};
  Mat                      R;
  PetscBool                ok, all = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_build", "first")); /* one product is all that there is */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_tiledspmm_least", "2"));  /* on the host TiledSpMM has to be asked for */
  PetscCall(GallopInitializePackage());
  PetscCall(GallopView(PETSC_VIEWER_STDOUT_WORLD));
  PetscCall(CreateMatrix(&R));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    PetscCall(CheckType(types[t], types[t], PETSC_FALSE, R, &ok));
    if (!ok) all = PETSC_FALSE;
  }
  PetscCall(CheckType("TiledSpMM", MATEVCHYB, PETSC_TRUE, R, &ok));
  if (!ok) all = PETSC_FALSE;
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return all ? 0 : 1;
}
