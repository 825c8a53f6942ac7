static char help[] = "Time of the host's thread for a product: with a small matrix, the GPU's work is less than the host's.\n\
  -types a,b       matrix types, the first is what the others are compared with (default: aijcusparse,evchyb, without a GPU aij,evchyb)\n\
  -products n      products of each kind (default 10000)\n\
  -rows n          rows of the matrix (default 64)\n\
  -columns n       columns of the dense matrix (default 4)\n\n";

#include <petscmat.h>
#include <petscgallop.h>
#include <petscdevice.h>
#include <petsctime.h>

/* The queue of the GPU takes about a thousand launches; a full one would have the host wait, so it is emptied, outside of the time, before */
#define BATCH 100

typedef enum { MULT, MULTADD, TRANSPOSE, TRANSPOSEADD, HERMITIAN, HERMITIANADD, MATMATMULT, PTAP, KINDS } Kind;
static const char *const KindNames[] = {"MatMult", "MatMultAdd", "MatMultTranspose", "MatMultTransposeAdd", "MatMultHermitianTranspose", "MatMultHermitianTransposeAdd", "MatMatMult", "MatPtAP"};

static PetscErrorCode CreateMatrix(MatType type, PetscInt n, Mat *A)
{
  PetscInt rstart, rend;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    if (i) PetscCall(MatSetValue(*A, i, i - 1, -1.0, INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(*A, i, i + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(*A, i, i, 2.0 + i % 3, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wait(void)
{
  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds of the host's thread per product of each kind */
static PetscErrorCode Measure(MatType type, PetscInt n, PetscInt columns, PetscInt products, PetscLogDouble us[KINDS])
{
  Mat            A, B, C, P;
  Vec            x, y, z;
  VecType        vtype;
  PetscLogDouble start, end;
  PetscBool      cusparse;

  PetscFunctionBegin;
  PetscCall(CreateMatrix(type, n, &A));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(y, 1.0));
  PetscCall(MatGetVecType(A, &vtype));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, vtype, PETSC_DECIDE, PETSC_DECIDE, n, columns, PETSC_DEFAULT, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &P));
  PetscCall(PetscStrcmp(type, MATAIJCUSPARSE, &cusparse));
  for (int kind = 0; kind < KINDS; kind++) {
    us[kind] = 0;
    if (!PetscDefined(USE_COMPLEX) && cusparse && (kind == HERMITIAN || kind == HERMITIANADD)) continue; /* an error of cuSPARSE's, for real matrices */
    for (PetscInt k = -BATCH; k < products; k += BATCH) {                                                /* the first batch is no part of the time */
      PetscCall(Wait());
      PetscCall(PetscTime(&start));
      for (int b = 0; b < BATCH; b++) {
        switch ((Kind)kind) {
        case MULT:
          PetscCall(MatMult(A, x, z));
          break;
        case MULTADD:
          PetscCall(MatMultAdd(A, x, y, z));
          break;
        case TRANSPOSE:
          PetscCall(MatMultTranspose(A, x, z));
          break;
        case TRANSPOSEADD:
          PetscCall(MatMultTransposeAdd(A, x, z, z));
          break;
        case HERMITIAN:
          PetscCall(MatMultHermitianTranspose(A, x, z));
          break;
        case HERMITIANADD:
          PetscCall(MatMultHermitianTransposeAdd(A, x, z, z));
          break;
        case MATMATMULT:
          PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
          break;
        default:
          PetscCall(MatPtAP(A, A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &P));
          break;
        }
        if (kind == TRANSPOSEADD || kind == HERMITIANADD) PetscCall(VecSet(z, 1.0)); /* or it would grow without end: in all types alike */
      }
      PetscCall(PetscTime(&end));
      if (k >= 0) us[kind] += (end - start) * 1e6 / products;
    }
  }
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char          *types[16];
  PetscInt       ntypes = 16, products = 10000, n = 64, columns = 4;
  PetscLogDouble us[16][KINDS];
  PetscBool      set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &ntypes, &set));
  if (!set) {
    const char *const gpus = getenv("GALLOP_GPUS");

    ntypes = 2;
    PetscCall(PetscStrallocpy(gpus && strcmp(gpus, "0") ? MATAIJCUSPARSE : MATAIJ, &types[0]));
    PetscCall(PetscStrallocpy(MATEVCHYB, &types[1]));
  }
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(Measure(types[t], n, columns, products, us[t]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "us of the host per product, %" PetscInt_FMT " rows, %" PetscInt_FMT " products\n%-30s", n, products, ""));
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %12s", types[t]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  for (int kind = 0; kind < KINDS; kind++) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-30s", KindNames[kind]));
    for (PetscInt t = 0; t < ntypes; t++) {
      if (us[t][kind] > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %12.2f", us[t][kind]));
      else PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %12s", "-"));
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  }
  for (PetscInt t = 0; t < ntypes; t++) PetscCall(PetscFree(types[t]));
  PetscCall(PetscFinalize());
  return 0;
}
