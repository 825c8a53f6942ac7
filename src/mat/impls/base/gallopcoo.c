/* SPDX-License-Identifier: BSD-2-Clause */
/*
  MatSetPreallocationCOO() and MatSetValuesCOO(). A sequential matrix whose parent computes on the GPU keeps indices of its own there, of 4 bytes and only where they are needed. AIJCUSPARSE keeps
  two of 8, more than the CSR arrays take. The pattern, and indices on the host, are PETSc's. An MPI matrix has PETSc's alone.
*/

#include <petscdevice.h>
#include <gallop/cooimpl.h>
#include <gallop/matgallopimpl.h>

#if PetscDefined(HAVE_CUDA)
PETSC_EXTERN PetscErrorCode MatSeqAIJCUSPARSEGetIJ(Mat, PetscBool, const PetscInt *[], const PetscInt *[]);

static const char PetscsOnDevice[] = "__PETSc_MatCOOStruct_Device";

static PetscErrorCode COODestroy(PetscCtxRt data)
{
  GallopCOO *coo = *(GallopCOO **)data;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(coo->perm));
  PetscCall(GallopDeviceFree(coo->jmap));
  PetscCall(PetscFree(coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL also where the parent has newer indices of its own */
static PetscErrorCode GetCOO(Mat A, GallopCOO **coo)
{
  PetscObject petscs;

  PetscFunctionBegin;
  *coo = NULL;
  PetscCall(PetscObjectQuery((PetscObject)A, PetscsOnDevice, &petscs));
  if (!petscs) PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_COO, coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's functions for matrices on the host */
static PetscErrorCode GetHostFunctions(PetscErrorCode (**preallocation)(Mat, PetscCount, PetscInt[], PetscInt[]), PetscErrorCode (**values)(Mat, const PetscScalar[], InsertMode))
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatGallopCreatePlain(&B));
  if (preallocation) PetscCall(PetscObjectQueryFunction((PetscObject)B, "MatSetPreallocationCOO_C", preallocation));
  if (values) PetscCall(PetscObjectQueryFunction((PetscObject)B, "MatSetValuesCOO_C", values));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_SeqGallop(Mat, const PetscScalar[], InsertMode);

static PetscErrorCode MatSetPreallocationCOO_SeqGallop(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  PetscErrorCode (*host)(Mat, PetscCount, PetscInt[], PetscInt[]);
  Mat_Gallop  *g;
  GallopCOO   *coo   = NULL;
  PetscInt    *copyi = NULL, *copyj = NULL;
  PetscMemType memtype;
  PetscBool    hypre;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscStrcmp(((PetscObject)A)->name, "_internal_COO_mat_for_hypre", &hypre)); /* whose rows PETSc orders otherwise */
  if (n && n < (PetscCount)UINT32_MAX && A->rmap->n < PETSC_INT64_MAX / PetscMax(A->cmap->n, 1) && !A->structure_only && !hypre)
    PetscCall(GallopCOOCreate_Device(A->rmap->n, A->cmap->n, n, i, j, &coo));
  if (!coo) {
    GallopCallByName(A, NULL, (*g->setpreallocationcoo)(A, n, i, j));
    PetscCall(PetscObjectCompose((PetscObject)A, GALLOP_COO, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  coo->setvalues = g->setvaluescoo;
  PetscCall(PetscObjectContainerCompose((PetscObject)A, GALLOP_COO, coo, COODestroy));
  PetscCall(PetscObjectCompose((PetscObject)A, PetscsOnDevice, NULL));
  PetscCall(PetscGetMemType(i, &memtype));
  if (PetscMemTypeDevice(memtype)) {
    PetscCall(PetscMalloc2(n, &copyi, n, &copyj));
    PetscCall(GallopDeviceCopyOut(copyi, i, (size_t)n * sizeof(*i)));
    PetscCall(GallopDeviceCopyOut(copyj, j, (size_t)n * sizeof(*j)));
  }
  PetscCall(GetHostFunctions(&host, NULL));
  PetscCall((*host)(A, n, copyi ? copyi : i, copyj ? copyj : j));
  PetscCall(PetscFree2(copyi, copyj));
  A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(MatGallopToDevice(A)); /* a program may ask for the arrays on the GPU next */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix may have become one of the parent's type meanwhile */
static PetscErrorCode MatSetValuesCOO_SeqGallop(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat_Gallop     *g;
  GallopCOO      *coo;
  const PetscInt *i, *j;
  PetscScalar    *a, *copy = NULL;
  PetscMemType    memtype;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(GetCOO(A, &coo));
  if (!coo) {
    if (!g) PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_COO, &coo));
    PetscCheck(g || coo, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "MatSetPreallocationCOO() comes first");
    GallopCallByName(A, NULL, (g ? *g->setvaluescoo : *coo->setvalues)(A, v, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGallopGetHostPattern(A, &i, &j));
  PetscCheck(i[A->rmap->n] == coo->nz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has %" PetscInt_FMT " nonzeros now, and had %" PetscInt_FMT " after MatSetPreallocationCOO()", i[A->rmap->n],
             coo->nz);
  PetscCall(PetscGetMemType(v, &memtype));
  if (PetscMemTypeHost(memtype)) {
    PetscCall(GallopWorkspaceMalloc((size_t)coo->n * sizeof(*v), (void **)&copy));
    if (!copy) {
      PetscErrorCode (*host)(Mat, const PetscScalar[], InsertMode);

      PetscCall(GetHostFunctions(NULL, &host));
      PetscCall((*host)(A, v, mode));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(GallopDeviceCopyIn(copy, v, (size_t)coo->n * sizeof(*v)));
    PetscCall(PetscDeviceContextSynchronize(NULL)); /* the host's may be pinned, and change soon */
  }
  if (g) PetscCall(MatGallopGetDeviceValuesWrite(A, &a));
  else {
    PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j)); /* makes the copy on the GPU where it is missing or old */
    PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  }
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(GallopCOOSetValues_Device(coo, copy ? copy : v, mode, a));
  PetscCall(PetscLogGpuTimeEnd());
  if (g) PetscCall(MatGallopRestoreDeviceValuesWrite(A, &a));
  else PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(A, &a));
  PetscCall(GallopWorkspaceFree(copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's function makes new blocks, of the type that the matrix has then, and uses them: where that checks names, they are the parent's, and become ours behind it */
static PetscErrorCode MatSetPreallocationCOO_MPIGallop(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_Gallop *g;
  GallopLoan  loan;
  PetscBool   bound;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopUnbind(A, &bound));
  PetscCall(GallopLoanBegin(&loan));
  if (GALLOP_NAMES_CHECKED) PetscCall(GallopLoanAdd(&loan, A));
  GallopLoanCall(&loan, (*g->setpreallocationcoo)(A, n, i, j));
  if (GALLOP_NAMES_CHECKED) PetscCall(MatGallopGetBlocks(A, NULL, NULL));
  PetscCall(MatGallopRebind(A, bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's function takes it for granted that the blocks of a duplicate are on the GPU */
static PetscErrorCode MatSetValuesCOO_MPIGallop(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat_Gallop *g;
  Mat         blocks[2];
  PetscBool   bound;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopUnbind(A, &bound));
  PetscCall(MatGallopGetBlocks(A, &blocks[0], &blocks[1]));
  PetscCall(MatGallopKeepCopy(A));
  for (int k = 0; k < 2; k++) PetscCall(MatGallopToDevice(blocks[k]));
  GallopCallByName(blocks[0], blocks[1], (*g->setvaluescoo)(A, v, mode));
  PetscCall(MatGallopRebind(A, bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopComposeCOO - Puts our functions over the parent's, which has none while it is bound to the CPU */
PetscErrorCode MatGallopComposeCOO(Mat A)
{
  PetscErrorCode (*preallocation)(Mat, PetscCount, PetscInt[], PetscInt[]), (*ownpreallocation)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*values)(Mat, const PetscScalar[], InsertMode), (*own)(Mat, const PetscScalar[], InsertMode);
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  own              = g->mpi ? MatSetValuesCOO_MPIGallop : MatSetValuesCOO_SeqGallop;
  ownpreallocation = g->mpi ? MatSetPreallocationCOO_MPIGallop : MatSetPreallocationCOO_SeqGallop;
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &values));
  if (!g->deviceparent || !values) PetscFunctionReturn(PETSC_SUCCESS);
  if (values != own) g->setvaluescoo = values;
  else if (!g->setvaluescoo) { /* it was another type of ours */
    GallopCOO *coo;

    PetscCall(PetscObjectContainerQuery((PetscObject)A, GALLOP_COO, &coo));
    if (coo) g->setvaluescoo = coo->setvalues;
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", own));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &preallocation));
  if (preallocation != ownpreallocation) g->setpreallocationcoo = preallocation;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", ownpreallocation));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopForgetCOO - Of a matrix that becomes the parent's type, or a copy that is. Where our indices stay, so does the function that knows them. */
PetscErrorCode MatGallopForgetCOO(Mat copy, Mat_Gallop *g)
{
  PetscErrorCode (*values)(Mat, const PetscScalar[], InsertMode);
  GallopCOO *coo;

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)copy, "MatSetValuesCOO_C", &values));
  if (values != MatSetValuesCOO_MPIGallop && values != MatSetValuesCOO_SeqGallop) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatSetPreallocationCOO_C", g->setpreallocationcoo));
  PetscCall(GetCOO(copy, &coo));
  if (!coo) PetscCall(PetscObjectComposeFunction((PetscObject)copy, "MatSetValuesCOO_C", g->setvaluescoo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopShareCOO - A duplicate has the indices of A, as with PETSc's */
PetscErrorCode MatGallopShareCOO(Mat A, Mat B)
{
  PetscObject coo;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, GALLOP_COO, &coo));
  if (coo) PetscCall(PetscObjectCompose((PetscObject)B, GALLOP_COO, coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopHasCOO - Whether MatSetValuesCOO() will find indices on the GPU */
PetscErrorCode MatGallopHasCOO(Mat A, PetscBool *has)
{
  PetscObject own, petscs;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, GALLOP_COO, &own));
  PetscCall(PetscObjectQuery((PetscObject)A, PetscsOnDevice, &petscs));
  *has = (PetscBool)(own || petscs);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode MatGallopComposeCOO(Mat A)
{
  (void)A;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopForgetCOO(Mat copy, Mat_Gallop *g)
{
  (void)copy, (void)g;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopShareCOO(Mat A, Mat B)
{
  (void)A, (void)B;
  return PETSC_SUCCESS;
}
#endif
