/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Factorizations: PETSc's own, which it finds by the beginning of the type name, and on the GPU cuSPARSE's of the parent, whose solves are
  wrapped so that they take vectors on the host.
*/

#include <gallop/matgallopimpl.h>

#define GALLOP_FACTOR "MatGallopFactor"
typedef PetscErrorCode (*ILUSymbolic)(Mat, Mat, IS, IS, const MatFactorInfo *);
typedef PetscErrorCode (*ICCSymbolic)(Mat, Mat, IS, const MatFactorInfo *);

typedef struct {
  ILUSymbolic ilu, lu;
  ICCSymbolic icc, cholesky;
  PetscErrorCode (*lunumeric)(Mat, Mat, const MatFactorInfo *);
  PetscErrorCode (*choleskynumeric)(Mat, Mat, const MatFactorInfo *);
  PetscErrorCode (*solve)(Mat, Vec, Vec);
  PetscErrorCode (*solvetranspose)(Mat, Vec, Vec);
  Vec ondevice[2]; /* right-hand side and solution, for vectors that live on the host */
} Phases;

static PetscErrorCode PhasesDestroy(PetscCtxRt ctx)
{
  Phases *phases = *(Phases **)ctx;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&phases->ondevice[k]));
  PetscCall(PetscFree(phases));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cuSPARSE's solves, with vectors on the host, leave the result on the GPU and say nothing (PETSc 3.26): such vectors are copied there and back */
static PetscErrorCode SolveOnDevice(Mat F, PetscErrorCode (*solve)(Mat, Vec, Vec), Phases *phases, Vec b, Vec x)
{
  const PetscScalar *array;
  PetscMemType       memtype[2];
  const Vec          v[2] = {b, x};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecGetArrayReadAndMemType(v[k], &array, &memtype[k]));
    PetscCall(VecRestoreArrayReadAndMemType(v[k], &array));
  }
  if (PetscMemTypeCUDA(memtype[0]) && PetscMemTypeCUDA(memtype[1])) {
    PetscCall((*solve)(F, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) {
    if (!phases->ondevice[k]) PetscCall(GallopVecCreateOnDevice(v[k], &phases->ondevice[k]));
  }
  PetscCall(VecCopy(b, phases->ondevice[0]));
  PetscCall((*solve)(F, phases->ondevice[0], phases->ondevice[1]));
  PetscCall(VecCopy(phases->ondevice[1], x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_Gallop(Mat F, Vec b, Vec x)
{
  Phases *phases;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  PetscCall(SolveOnDevice(F, phases->solve, phases, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolveTranspose_Gallop(Mat F, Vec b, Vec x)
{
  Phases *phases;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  PetscCall(SolveOnDevice(F, phases->solvetranspose, phases, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc sets the functions of a factor phase by phase: what a phase has set is taken after it */
#define TAKE(slot, function, kept) \
  if (F->ops->slot && F->ops->slot != function) { \
    kept         = F->ops->slot; \
    F->ops->slot = function; \
  }

/* cuSPARSE's takes the values on the GPU, also of a matrix that has been bound to the CPU since it was factored first */
static PetscErrorCode Numeric(Mat F, Mat A, const MatFactorInfo *info, PetscErrorCode (*numeric)(Mat, Mat, const MatFactorInfo *), Phases *phases)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatGallopUnbind(A, &bound));
  GallopCallByName(A, NULL, (*numeric)(F, A, info));
  PetscCall(MatGallopRebind(A, bound));
  TAKE(solve, MatSolve_Gallop, phases->solve)
  TAKE(solvetranspose, MatSolveTranspose_Gallop, phases->solvetranspose)
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorNumeric_Gallop(Mat F, Mat A, const MatFactorInfo *info)
{
  Phases *phases;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  PetscCall(Numeric(F, A, info, phases->lunumeric, phases));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCholeskyFactorNumeric_Gallop(Mat F, Mat A, const MatFactorInfo *info)
{
  Phases *phases;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  PetscCall(Numeric(F, A, info, phases->choleskynumeric, phases));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's of a matrix with inodes reads the host's values as they are, however old */
static PetscErrorCode MatLUFactorNumeric_GallopHost(Mat F, Mat A, const MatFactorInfo *info)
{
  Phases *phases;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  PetscCall(MatGallopBringToHost(A));
  PetscCall((*phases->lunumeric)(F, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TakeNumeric(Mat F, Phases *phases)
{
  static const char *const ofdevice[] = {"MatSeqAIJCopySubArray_C", "MatCUSPARSESetFormat_C", "MatCUSPARSESetUseCPUSolve_C", "MatProductSetFromOptions_seqaijcusparse_seqdensecuda_C", "MatProductSetFromOptions_seqaijcusparse_seqdense_C", "MatProductSetFromOptions_seqaijcusparse_seqaijcusparse_C"};
  PetscBool                device;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)F, MATSEQAIJCUSPARSE, &device));
  if (!device) { /* nor is a factor on the host what AIJCUSPARSE takes it for */
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ofdevice); k++) PetscCall(PetscObjectComposeFunction((PetscObject)F, ofdevice[k], NULL));
    TAKE(lufactornumeric, MatLUFactorNumeric_GallopHost, phases->lunumeric)
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  TAKE(lufactornumeric, MatLUFactorNumeric_Gallop, phases->lunumeric)
  TAKE(choleskyfactornumeric, MatCholeskyFactorNumeric_Gallop, phases->choleskynumeric)
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc makes some factors as copies of the matrix, with all that is composed with it, and then they are none of ours */
#define ILU_SYMBOLIC(name, kept) \
  static PetscErrorCode name(Mat F, Mat A, IS rows, IS columns, const MatFactorInfo *info) \
  { \
    Phases *phases; \
\
    PetscFunctionBegin; \
    PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases)); \
    GallopCallByName(A, NULL, (*phases->kept)(F, A, rows, columns, info)); \
    PetscCall(MatGallopForget(F, A)); \
    PetscCall(TakeNumeric(F, phases)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
ILU_SYMBOLIC(MatILUFactorSymbolic_Gallop, ilu)
ILU_SYMBOLIC(MatLUFactorSymbolic_Gallop, lu)

#define ICC_SYMBOLIC(name, kept) \
  static PetscErrorCode name(Mat F, Mat A, IS rows, const MatFactorInfo *info) \
  { \
    Phases *phases; \
\
    PetscFunctionBegin; \
    PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases)); \
    GallopCallByName(A, NULL, (*phases->kept)(F, A, rows, info)); \
    PetscCall(MatGallopForget(F, A)); \
    PetscCall(TakeNumeric(F, phases)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
ICC_SYMBOLIC(MatICCFactorSymbolic_Gallop, icc)
ICC_SYMBOLIC(MatCholeskyFactorSymbolic_Gallop, cholesky)

static PetscErrorCode TakeSymbolic(Mat A, Mat F)
{
  Mat_Gallop *g;
  Phases     *phases;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (!g || !F) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectContainerQuery((PetscObject)F, GALLOP_FACTOR, &phases));
  if (phases) PetscFunctionReturn(PETSC_SUCCESS); /* by PETSc's creator, which another of ours has called */
  PetscCall(PetscNew(&phases));
  TAKE(ilufactorsymbolic, MatILUFactorSymbolic_Gallop, phases->ilu)
  TAKE(lufactorsymbolic, MatLUFactorSymbolic_Gallop, phases->lu)
  TAKE(iccfactorsymbolic, MatICCFactorSymbolic_Gallop, phases->icc)
  TAKE(choleskyfactorsymbolic, MatCholeskyFactorSymbolic_Gallop, phases->cholesky)
  PetscCall(PetscObjectContainerCompose((PetscObject)F, GALLOP_FACTOR, phases, PhasesDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Stands where PETSc's stood, for every sequential AIJ matrix, and does more for ours only: one function of PETSc's creates all of these */
static PetscErrorCode (*PetscCreateFactor)(Mat, MatFactorType, Mat *);

static PetscErrorCode MatGetFactor_gallop_petsc(Mat A, MatFactorType ftype, Mat *F)
{
  PetscFunctionBegin;
  PetscCall((*PetscCreateFactor)(A, ftype, F));
  PetscCall(TakeSymbolic(A, *F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_gallop_cusparse(Mat A, MatFactorType ftype, Mat *F)
{
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *) = NULL;
  Mat_Gallop *g;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatGallopGetContext(A, &g));
  if (g && g->deviceparent) {
    PetscCall(MatGallopKeepCopy(A)); /* each numeric phase reads it */
    PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, GallopParentType(g->mpi, PETSC_TRUE), ftype, NULL, NULL, &create));
  } else { /* on the host since another process has no GPU: PETSc may take NULL for a factor */
    PetscCall(PetscInfo(A, "The matrix lives on the host: PETSc's own factorization instead of %s's\n", MATSOLVERCUSPARSE));
    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, ftype, NULL, NULL, &create));
  }
  if (create) PetscCall((*create)(A, ftype, F));
  PetscCall(TakeSymbolic(A, *F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSolverTypeRegister_Gallop(void)
{
  const MatFactorType ftypes[]                        = {MAT_FACTOR_LU, MAT_FACTOR_ILU};
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *) = NULL;

  PetscFunctionBegin;
  PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, MAT_FACTOR_ILU, NULL, NULL, &create));
  if (create && create != MatGetFactor_gallop_petsc) {
    PetscCreateFactor = create;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ftypes); k++) PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJ, ftypes[k], MatGetFactor_gallop_petsc));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only once there is a matrix on the GPU: else PETSc's own error says that the type has no such factorization, where a function that gives none would have PETSc use NULL */
PetscErrorCode MatSolverTypeRegisterCUSPARSE_Gallop(GallopType type)
{
  const MatFactorType ftypes[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  if (type->cusparse) PetscFunctionReturn(PETSC_SUCCESS);
  type->cusparse = PETSC_TRUE;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ftypes); k++) PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, type->seq, ftypes[k], MatGetFactor_gallop_cusparse));
  PetscFunctionReturn(PETSC_SUCCESS);
}
